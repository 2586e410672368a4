/* model/streams.h — residual streams that are mixed: hyper-connections.
 *
 * Problem. In the place of one residual stream there are n. Attention and the MLP each read one mean of them,
 * and their output is added to all; between them the streams are mixed.
 *
 * Equations. Of the n streams of a token, X (n x h), a product with c = n^2 + 2 n columns of n h gives n
 * weights of the mean (p), n of the output (q) and a matrix of n x n, which 20 rounds of scaling make doubly
 * stochastic (B). A half of a layer, F, makes
 *
 *     x = p X,  y = F (norm (x)),  X' = B X + q y
 *
 * with c n h weights in a product and c + 3 numbers beside it. Before the first layer each stream is the
 * embedding; behind the last a product with n columns gives the weights of one mean, n^2 h weights and n + 1
 * numbers. Elements of h that are read and written for a token:
 *
 *     weights    read n                        backward read n, n of gradients added to: 3 n
 *     mean       read n, written 1             backward 3 n + 1
 *     output     read n + 1, written n         backward 3 n + 2
 *
 * Worked example. n 4, h 7168, 16 bits: a token of a half reads and writes (4 + 5 + 9) x 7168 x 2 = 258 KB,
 * where a sum with one stream takes 43; its product is 2 x 24 x 28672 = 1.4 MFLOP.
 *
 * Deviations. The rounds of scaling, of 16 numbers a token, take no time. Each of the three is taken for one
 * kernel, as fused ones are (the first reference, section 4.3).
 *
 * References: Xie et al. 2025, mHC: Manifold-Constrained Hyper-Connections; DeepSeek-AI 2026, DeepSeek-V4,
 * section 2.2; Transformers, models/deepseek_v4. */
#ifndef LS_MODEL_STREAMS_H
#define LS_MODEL_STREAMS_H

#include "model/model.h"

uint32_t ls_model_n_streams (const LsModel *m); /* at least 1 */

/* Of a half of a layer; of the mean behind the last. 0 with one stream. */
uint64_t ls_streams_linear_params (const LsModel *m);
uint64_t ls_streams_other_params (const LsModel *m);
uint64_t ls_streams_end_linear_params (const LsModel *m);
uint64_t ls_streams_end_other_params (const LsModel *m);

#endif
