/* model/beside.h — what stands next to the halves of a layer: an input of its own for each layer, products of
 * low rank next to attention, keys and values of a layer before it, an MLP whose gate keeps few values.
 *
 * Inputs of layers. A table of `layer_vocab` rows has p numbers for each of the L layers. With e the
 * embedding of a token, t its row, each layer gets
 *
 *     u = (norm (M e) + t) / sqrt 2            M: h x L p, the norm over p
 *
 * and behind its MLP adds norm (W (act (G x) u)) to what it made, G of h x p and W of p x h. Of alternating
 * streams (model/streams.h) x is the computed one times a vector, and what is added goes to all others.
 * Elements for a token of a layer: act and product read 2 p, written p, backward 5 p; the sum 3 h, or
 * 2 n - 1 of h with n streams. The table is looked up as words are: its gradient is as large as it is.
 *
 * LAuReL: beside attention x, the normed input, goes through two products of rank r: y = x + norm (B A x),
 * with r of 2 h weights; then the sum of attention and residual is (sum + y) / sqrt 2.
 *
 * Norm gates (A.X-K2): what a norm before attention, or before experts, gives is y = n sigmoid (B silu (A
 * n)), A of h x r and B of r x h. Elements for a token: of r read 1, written 1, backward 3; of h 3,
 * backward 5. Kept: n, B's output, twice r. Queries there come of their latent, before and behind its norm
 * side by side: a product of 2 q_lora columns makes them and a gate of attention's output, a (d + v)
 * columns (latent_gate).
 *
 * Shared keys and values: a layer has queries only and meets what a layer before it made, which gets their
 * gradients in a sum. It keeps no keys and values of its own. A mixer among such layers gates what one before
 * it made (model/difference.h).
 *
 * Sparse MLP: of each token the gate's mean and standard deviation give a threshold; what is below becomes 0,
 * of the rest it is taken. Products are computed whole. Of f numbers: read 1 for each of both and for the
 * threshold, written 1; backward 4. Kept beside what the activation keeps: the gate as it was.
 *
 * Worked example. Gemma 3n E4B (h 2048, L 35, p 256, r 64, 262144 rows): the table has 2.349 G of 6.84 G
 * weights, M 18.4 M; of a layer G and W 1.05 M, A and B 0.26 M, beside 111 M of attention and MLP. The table
 * costs with Adam in fp32 beside bf16 18 bytes a weight, 42 GB, as other weights do.
 *
 * Deviations. The mean and deviation of a gate that is cut over tp are 2 numbers a token, not sent. Layers
 * that run again keep what others took of their keys and values: not counted, as it is two layers' of all.
 *
 * References: huggingface/transformers@004edfe2 src/transformers/models/gemma3n/modular_gemma3n.py;
 * huggingface/transformers@033b1a82 src/transformers/models/gemma4/modular_gemma4.py;
 * huggingface/transformers@0572057b src/transformers/models/axk2/modular_axk2.py; Menghani et al. 2024,
 * LAuReL: Learned Augmented Residual Layer, arXiv 2411.07501. */
#ifndef LS_MODEL_BESIDE_H
#define LS_MODEL_BESIDE_H

#include "model/model.h"

/* Whether layers have anything of this, or streams that alternate. */
bool ls_model_has_beside (const LsModel *m);

/* What is wrong with gates of norms, or with a gate of the latent of queries; NULL: nothing. Static. */
const char *ls_model_check_norm_gate (const LsModel *m);

/* What is wrong with any of it; NULL: nothing. Static. */
const char *ls_model_check_beside (const LsModel *m);

/* Embeddings of several tokens in a row next to that of each token.
 *
 * Problem. Beside the table of words there are n tables of w = h / n columns. A hash of a token and of one,
 * two or more before it gives a row of each; the first has r rows, each next one two more, so that hashes
 * differ. A product of each, w x h, is added to the word:
 *
 *     x = (e + sum_i P_i t_i) / (n + 1)
 *
 * A token multiplies n w h numbers and meets n rows. Numbers of h that are read and written for a token: the
 * lookups 2, the sums n + 2 in one kernel, backward 2; the gradient of a table is as large as it is. What was
 * looked up is kept for the gradients of the products: h.
 *
 * Tables are cut over tp as that of words is, and what is looked up is summed over tp; products are on each
 * rank, for its tokens with sequence parallelism.
 *
 * Worked example. LongCat-Flash-Lite (h 3072, 131,072 words, 78 times as many rows): 12 tables of 10.2 M rows
 * of 256 are 31.4 G of its 68.5 G weights, products 9.4 M.
 *
 * Deviations. Hashes take no time. All tables are looked up in one kernel, and cut by rows as one.
 *
 * References: ml-explore/mlx-lm@06232baa mlx_lm/models/longcat_flash_ngram.py, NgramEmbedding; Meituan
 * LongCat Team 2026, LongCat-Flash-Lite. */

/* Columns and rows of all tables; 0: there are none. */
uint64_t ls_ngram_width (const LsModel *m);
uint64_t ls_ngram_rows (const LsModel *m);

/* What is wrong with them; NULL: nothing. Static. */
const char *ls_model_check_ngram (const LsModel *m);

#endif
