/* show/run/p2p_pairs.h — which send of a timeline met which receive.
 *
 * The k-th send to the next stage meets the k-th receive of that rank from its previous stage, and the k-th
 * send to the previous stage the k-th receive from the next: one order for each direction, as in exec, even
 * where both neighbours are the same rank. Who stands for a neighbour is taken for it. k counts in the order
 * of the program and within a step, so it does not depend on which spans the window kept. */
#ifndef LS_SHOW_RUN_P2P_PAIRS_H
#define LS_SHOW_RUN_P2P_PAIRS_H

#include "exec/timeline.h"

typedef struct {
  uint32_t from, to;           /* ranks                       */
  uint32_t from_span, to_span; /* indices in their span lists */
} LsP2pPair;

/* LsP2pPair values, ordered by (from, to, direction, step, k), of transfers whose two spans
 * are both in the timeline. Free with g_array_unref(). */
GArray *ls_p2p_pairs (const LsTimeline *t);

#endif
