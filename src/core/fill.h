/* core/fill.h — max-min fair levels, kept while activities come and go.
 *
 * Problem. One flow more or less changes the rates of few others. Those shall be found
 * without a look at the rest, and exactly as core/maxmin.h would find them from nothing.
 *
 * Equations. Level[r] of a resource is where it fills, "never" if it does not; level[f]
 * of an activity is the least of its cap and the levels of its resources. Progressive
 * filling gives each resource a level that depends only on activities that froze below:
 *
 *     W[r] = the least x with  left (x) / rising (x) <= x,  rounded down, where
 *     left (x)   = C[r] - sum of k[f,r] * level[f] over f on r with level[f] < x
 *     rising (x) = sum of k[f,r] over the others on r
 *
 * So levels with level[r] = W[r] for all r are the max-min fair ones: the lowest depends
 * on nothing, the next on it alone, and so on. This holds whatever way led to them.
 *
 * Algorithm. A resource is touched when an activity on it came, went, or changed its level
 * below the resource's. Of those that are touched W is computed anew; who is held back by
 * the resource counts as one that rises. Where W[r] differs from level[r], r
 * waits in a heap with the lesser of the two, x. Those with the least x go first, together:
 * either r fills at x and pulls down who was above, or it no longer fills at x, takes its
 * new level, and those who were at x rise to what their resources now allow. Who changes
 * touches its other resources. What lies below x is settled: changes spread upwards only,
 * so the work is about that of the activities whose rates change.
 *
 *     C = 10            C = 4         A only on link 0:   8
 *     link 0 --------- link 1         B on links 0 and 1: 2
 *     A, B             B, D           D only on link 1:   2
 *
 *     D ends: link 1 is touched, W = 4 > 2. At x = 2 it takes level 4, B rises to 4 and
 *     touches link 0, where W = 6 < 8. At x = 6 A is pulled down.
 *
 * A resource that does not fill, and where all could rise by a quantum, is not touched: its
 * load is known as a sum. So a trunk with thousands of activities costs nothing until it
 * fills. Then a change of its level costs a pass over those that rise on it.
 *
 * Where that has lasted for as many changes as there are activities, the resource becomes
 * slack: it counts each at more than its level, by half of what is left (by all, where one is alone), and
 * until one rises beyond what it is counted at, the resource is not looked at. In a fabric with narrow trunks
 * these are the NICs: half of what a change would pass through.
 *
 * Reference. J. Ros, W. K. Tsai, "A theory of convergence order of maxmin rate
 * allocation and an optimal protocol", INFOCOM 2001, for the order among bottlenecks. */
#ifndef LS_CORE_FILL_H
#define LS_CORE_FILL_H

#include "core/flow.h"
#include "core/level.h"

typedef struct LsFill LsFill;

LsFill *ls_fill_new (uint32_t n, const double *capacity);
void ls_fill_free (LsFill *fill); /* NULL allowed */

void ls_fill_add (LsFill *fill, LsFlow *f);
void ls_fill_remove (LsFill *fill, LsFlow *f);
void ls_fill_set_cap (LsFill *fill, LsFlow *f); /* f->cap is new */

/* Finds all levels. Those whose level may have changed since the last call, each once,
 * are in *ret_changed until the next call of any of these. Returns whether a resource had
 * to be filled. */
bool ls_fill_settle (LsFill *fill, LsFlow ***ret_changed, uint32_t *ret_n);

/* Asserts, after a settling: what is counted is what the activities have. */
void ls_fill_check (const LsFill *fill);

double ls_fill_quantum (const LsFill *fill);

/* bytes/s, after a settling */
static inline double
ls_fill_rate (const LsFlow *f, double quantum)
{
  return f->level == f->cap_level ? ls_rate_at_cap (f->cap, f->level, quantum, f->n_uses > 0)
                                  : (double) f->level * quantum;
}

#endif
