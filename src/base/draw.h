/* base/draw.h — how many parts a draw hits; numbers at random; how many draws are below one.
 *
 * Problem. Of N items, k different ones are drawn, all alike likely. The items lie in p equal parts, one
 * behind the other: how many of the parts are hit, in the mean? Where items are in G equal groups, one behind
 * the other, first g of the groups are drawn, then the items from these.
 *
 * Equations. A part of m items that could be drawn, of M in all (g N / G, or N), is missed with
 *
 *     q (m) = C (M - m, k) / C (M, k)
 *
 * and m is the sum of what lies in the part of the groups that were drawn: of w whole groups and of the
 * pieces of groups at its two ends. The mean is the sum over parts of 1 - E (q). Draws that follow each other
 * in turn have the k items from i k on, modulo N: there the mean is that of all starts.
 *
 * Worked example. 8 of 256, on 8 parts of 32: 8 (1 - C (224, 8) / C (256, 8)) = 5.29. From 4 of 8 groups,
 * which are the parts: all 4 but for 4 C (96, 8) / C (128, 8) = 0.37: 3.63. In turn each lies in one part: 1.
 *
 * Deviations. Items are drawn by how much they fit, not by chance; experts are trained to be chosen alike. */
#ifndef LS_BASE_DRAW_H
#define LS_BASE_DRAW_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
  uint32_t n_items, n_drawn;         /* n_drawn <= what the groups that are drawn hold */
  uint32_t n_groups, n_groups_drawn; /* up to 1024; 0: items are drawn from all        */
  bool in_turn;                      /* those that follow what was drawn before, whatever the groups */
} LsDraw;

/* In [1, n_parts], n_parts <= n_items. Cost: parts x whole groups in a part. */
double ls_draw_parts (const LsDraw *draw, uint32_t n_parts);

/* SplitMix64 (Steele, Lea, Flood 2014): the same for a seed everywhere. The state begins as the seed. */
uint64_t ls_draw_bits (uint64_t *state);
double ls_draw_uniform (uint64_t *state); /* above 0, up to 1                        */
double ls_draw_normal (uint64_t *state);  /* mean 0, variance 1: Box and Muller 1958 */

/* Below which a normal draw (mean 0, variance 1) lies with probability p, 0 < p < 1; relative error some
 * 1e-16. Rational functions in three ranges: Wichura 1988, Algorithm AS 241 (Applied Statistics 37, 477),
 * PPND16. */
double ls_normal_quantile (double p);

#endif
