/* model/streams.h — several residual streams: hyper-connections, alternating updates.
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
 * Alternating updates (AltUp). A layer, F, computes one stream, X_0, and predicts all:
 *
 *     P = X + A X,  Y = F (P_0),  X'_i = P_i + b_i (Y - P_0)
 *
 * A (n x n) and b come from n numbers, tanh (norm (x) R) with x = X_0 for A and x = Y for b: one norm and one
 * R of h x n for both, then products with n^3 and n^2 weights. A vector of h scales X'_0 for what the layer
 * does next (model/beside.h). Before the first layer the other n - 1 streams are products of the embedding,
 * behind the last products of the streams give their mean: 2 (n - 1) h^2 weights. Elements of h for a token:
 *
 *     norm       read 1, written 1             backward 3, twice
 *     predict    read n, written n             backward 3 n
 *     correct    read n + 1, written n         backward 2 n + 3
 *     begin      read n - 1, written n - 1     backward 3 (n - 1); the lengths of products are made alike
 *     end        read n, written 1             backward 3 n
 *
 * Worked example. n 4, h 2048 (Gemma 3n E4B): of a layer R has 8192 weights, 80 are beside it and 4096 in
 * vectors; both ends have 25.2 M. The n^3 + n^2 products of a token take no time.
 *
 * References: Xie et al. 2025, mHC: Manifold-Constrained Hyper-Connections; DeepSeek-AI 2026, DeepSeek-V4,
 * section 2.2; Transformers, models/deepseek_v4. Baykal et al. 2023, Alternating Updates for Efficient
 * Transformers, arXiv 2301.13310; huggingface/transformers@004edfe2
 * src/transformers/models/gemma3n/modular_gemma3n.py, Gemma3nTextAltUp, Gemma3nTextModel. */
#ifndef LS_MODEL_STREAMS_H
#define LS_MODEL_STREAMS_H

#include "model/model.h"

uint32_t ls_model_n_streams (const LsModel *m); /* at least 1 */
bool ls_streams_mix (const LsModel *m);         /* each half reads and writes all of several */
bool ls_streams_alternate (const LsModel *m);   /* each layer computes one of several */

/* Of a layer, what a token multiplies a second time. */
uint64_t ls_streams_again_params (const LsModel *m);

#endif
