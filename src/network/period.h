/* network/period.h — calls whose hosts repeat (private to network/). See period.c. */
#ifndef LS_NETWORK_PERIOD_H
#define LS_NETWORK_PERIOD_H

#include "cluster/places.h"
#include "network/algorithm.h"

typedef struct LsCollPeriod {
  const LsPlaces *at;
  uint32_t n;                  /* periods: two or more                              */
  uint32_t n_hosts, n_members; /* of one                                            */
  uint32_t first_host, shift;  /* where that of the first begins; hosts to the next */
  const uint32_t *like;        /* [n] of a call that does not turn: the first period that is loaded so */
} LsCollPeriod;

/* False: they do not repeat, or the call does not turn. Borrows the places. Cost: linear in the members. */
bool ls_coll_period (const LsCollCall *call, const LsPlaces *at, LsCollPeriod *ret);

/* Whether a period is the first of its sort. */
static inline bool
ls_coll_period_is_kept (const LsCollPeriod *p, uint32_t k)
{
  return p->like ? p->like[k] == k : k == 0;
}

/* What all periods load at a place of those that are kept, of what messages of these load anywhere: their
 * messages and, where the call does not turn, those to their members. */
void ls_coll_period_fold (const LsCollPeriod *p, const LsCluster *c, LsArena *arena, LsPhase *phase);

#endif
