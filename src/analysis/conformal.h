/* analysis/conformal.h — what must be held of n known values so that one more is held with a given
 * probability.
 *
 * Of n + 1 exchangeable values one is unknown, and might lie anywhere. To hold a share L of the n + 1, of the
 * n known ones the share
 *
 *     c = L (n + 1) / n        so n >= L / (1 - L): four for L = 0.8
 *
 * must be held. That is exact where it holds the smallest ones, as of distances: k of n hold one more with k
 * / (n + 1). A range that is spanned by k of n values holds it with (k - 1) / (n + 1). Values weigh what the
 * caller says; weights sum to 1.
 *
 * Reference. V. Vovk, A. Gammerman, G. Shafer, Algorithmic Learning in a Random World (2005). */
#ifndef LS_ANALYSIS_CONFORMAL_H
#define LS_ANALYSIS_CONFORMAL_H

#include <glib.h>
#include <stdbool.h>

typedef struct {
  double value, weight;
} LsWeighted;

double ls_conformal_share (guint n, double level); /* c; above 1: n are too few. Of none: infinity */
bool ls_conformal_is_enough (guint n, double level);
guint ls_conformal_least (double level); /* how many are enough; level below 1 */

void ls_weighted_sort (GArray *values); /* LsWeighted, by value */

/* Of sorted values: the shortest range with such a share of the weight; of equally short ones the lowest. A
 * share above that of all: *ret_low and *ret_high stay. */
void ls_weighted_range (const GArray *values, double share, double *ret_low, double *ret_high);
/* The least that a share of the weight is not above; of no values 0. */
double ls_weighted_quantile (const GArray *values, double share);

#endif
