/* model/convolved.h — queries and keys that pass convolutions over tokens, routers with layers of their own,
 * residuals that are scaled.
 *
 * Compressed convolutional attention (Figliolia et al. 2025, arXiv 2510.04476). Queries and keys together, C
 * columns of a + b heads of d, pass a convolution of t taps of each column, then one of u taps in which the
 * columns of a head meet each other: a product of d u by d for each head. The means of queries and keys of a
 * group are added, heads are normed without weights, keys scaled by a number each. Of values one half is that
 * of the token before. Weights beside those of plain attention: C d u, of products; C t + 2 C + b.
 *
 * Routers: a product to R columns, to which those of the layer before are added, scaled; a norm; two products
 * of R x R with biases; one to the experts. h R + 2 R^2 + R E, and 5 R (of which the first layer has 4 R).
 *
 * Residuals: each half adds (x + b1) s1 + (r + b2) s2, four vectors of h.
 *
 * Elements moved beside the products, of C and of values v: 2 C and 3 C back for taps, 4 C each way for
 * means, 2 C and 3 C for norms, 2 v each way; of h 4, and 6 back, for scales. Kept: C twice, R six times, h
 * twice.
 *
 * Worked example. ZAYA1-8B (h 2048, 8 heads of 128, 2 of keys, R 256, 16 experts of 2048): convolutions have
 * 0.33 M of 5.6 M weights of attention, a router 0.66 M, the experts 201.3 M; 40 layers with one table of
 * 262,272 rows 8.84 G.
 *
 * Deviations. The number that biases and scales of a router add, and what a first layer's router lacks, are
 * R; residuals in fp32 are taken in 16 bits.
 *
 * Reference: huggingface/transformers@060988b6 src/transformers/models/zaya/modular_zaya.py. */
#ifndef LS_MODEL_CONVOLVED_H
#define LS_MODEL_CONVOLVED_H

#include "model/model.h"

/* What is wrong with any of it; NULL: nothing. Static. */
const char *ls_model_check_convolved (const LsModel *m);

#endif
