/* model/block.h — a block of attention and an MLP whose weights several layers share, before a mixer (Zamba).
 *
 * Problem. A model of mixers has one or a few transformer blocks, which come again at many places: layers B
 * of its pattern take the `shared_blocks` sets of weights in turn. With x what comes in, e the embedding of
 * the same tokens, h hidden, q and k the widths of all queries, and of all keys, f ffn:
 *
 *     u = norm [x; e]                            of 2 h
 *     a = norm (attention (u) W)                 queries, keys and values of 2 h, W of q x h; the norm of h
 *     y = x + (MLP (a)) L                        L of h x h, each place its own
 *     out = x + mixer (norm (y))
 *
 * with no residual inside of the block. Adapters of each place (Hu et al. 2021, LoRA; trained as all else
 * is): of rank r beside gate and up, h r + r 2 f; of rank s beside queries, keys and values, 2 h s + s q (or
 * s k) each. Weights:
 *
 *     of a set       2 h (q + 2 k) + q h + 3 h f (with a gate), norms of 3 h
 *     of a place     h^2, its adapters, its mixer with a norm
 *
 * Worked example. Zamba2-2.7B (h 2560, f 10240, q = k = 5120, r 128, two sets, nine places of 54 layers): a
 * set has 170.4 M, a place 9.5 M beside its mixer of 39.9 M; all 2.66 G.
 *
 * Tensor parallelism. The block is cut as other layers are; what tp gathers before attention is 2 h wide. L
 * and the narrow products of adapters are on every rank, for its tokens.
 *
 * Deviations. The copy of e that the code makes (torch.clone) is left out: the first layer keeps e.
 *
 * References: Glorioso et al. 2024, Zamba, arXiv 2405.16712, section 2, and The Zamba2 Suite, arXiv
 * 2411.15242, section 2; huggingface/transformers@00511f5d src/transformers/models/zamba2/modular_zamba2.py,
 * huggingface/transformers@010496ec src/transformers/models/zamba/modeling_zamba.py. */
#ifndef LS_MODEL_BLOCK_H
#define LS_MODEL_BLOCK_H

#include "model/model.h"

/* What is wrong with such blocks; NULL: nothing. Static. */
const char *ls_model_check_blocks (const LsModel *m);

#endif
