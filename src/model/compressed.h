/* model/compressed.h — attention to keys that are made of several tokens each (DeepSeek-V4).
 *
 * Problem. All a heads share one key of d numbers a token, which is its own value, and a query meets the last
 * `window` of them. In two kinds of layers it meets compressed keys besides, one of every r tokens:
 *
 *     S  compressed sparse attention (CSA), r = csa_ratio: of the compressed keys before it the `index_top`
 *        that an indexer with `index_heads` heads of `index_dim` scores best
 *     H  heavily compressed attention (HCA), r = hca_ratio: all of them
 *
 * Equations. A compressed key is a mean of tokens, weighted by a softmax over them: each token is projected
 * to a value and a weight of d numbers; of CSA, whose means overlap, to two of each. Queries come through a
 * latent of q_lora. On the way out each of g groups of heads, a d / g columns, is brought to out_lora, and
 * the g out_lora to h. Weights of a layer's products:
 *
 *     queries    h q_lora + q_lora a d          keys      h d
 *     output     a d out_lora + g out_lora h
 *     CSA        4 h d, and of the indexer 4 h index_dim + h index_heads + q_lora index_heads index_dim
 *     HCA        2 h d
 *
 * and what is learned beside them: norms of q_lora and d, a sink for each head; of CSA 2 r d + d and 2 r
 * index_dim + index_dim, of HCA r d + d. Of the s^2 pairs of a query and a token's key a layer has
 *
 *     window     w s - w^2 / 2
 *     CSA        that, and n s - r n^2 / 2 with n = min (index_top, s / r)
 *     HCA        that, and s^2 / (2 r)
 *
 * each of 4 a d FLOPs forward, and an indexer 2 index_heads index_dim for each of s^2 / (2 r).
 *
 * Worked example. DeepSeek-V4-Pro, 4,096 tokens: window 128 x 4096 - 128^2 / 2 = 516,096 pairs; CSA
 * 1024 x 4096 - 4 x 1024^2 / 2 = 2,097,152 more; HCA 65,536 more. A causal mask alone leaves 8,388,608.
 *
 * Deviations. Compressed keys are met as fast as those of a window, in one kernel with them; the means of CSA
 * over the first tokens, which have none before them, count as others; a product of each group of the output
 * is taken for as many columns of one.
 *
 * References: DeepSeek-AI 2026, DeepSeek-V4, section 2.3; Transformers, models/deepseek_v4. */
#ifndef LS_MODEL_COMPRESSED_H
#define LS_MODEL_COMPRESSED_H

#include "model/model.h"

/* Whether attention of the model is of this sort; of this one, or latent attention: queries or keys come from
 * latents that every tensor-parallel rank makes. */
bool ls_model_is_compressed (const LsModel *m);
bool ls_model_has_latents (const LsModel *m);

/* Of a layer of this kind (LsLayerTrait): tokens of a compressed key; 0: it has none. */
uint32_t ls_compressed_ratio (const LsModel *m, uint32_t kind);
/* Columns that a token is projected to for compressed keys, and for those of the indexer, without its
 * weights. */
uint64_t ls_compressed_columns (const LsModel *m, uint32_t kind);
uint64_t ls_compressed_index_columns (const LsModel *m, uint32_t kind);

/* Pairs with compressed keys of a sequence, of seq^2. */
double ls_compressed_pairs (const LsModel *m, uint32_t kind, uint32_t seq);

#endif
