/* network/place_loads.h — what is loaded at the same few trunks of many places (private to network/).
 *
 * Messages between thousands of hosts that lie alike cross a handful of trunks of each. So sums are kept in a
 * row for each trunk of a tier, by place, where a table of all resources (LsLoadList) has to look each of
 * them up. */
#ifndef LS_NETWORK_PLACE_LOADS_H
#define LS_NETWORK_PLACE_LOADS_H

#include "cluster/places.h"
#include "network/algorithm.h"

#define LS_N_TIERS 3

#define LS_MOST_OF_ROW 8

/* Trunks that always carry the same, by their numbers at a place, of all places of a tier. */
typedef struct {
  uint32_t tier, n, local[LS_MOST_OF_ROW];
  uint64_t *sums; /* [places of the tier] of each trunk */
} LsPlaceRow;

typedef struct {
  const LsPlaces *at;
  uint32_t first[LS_N_TIERS], n[LS_N_TIERS]; /* places of each tier */
  GArray *rows;                              /* LsPlaceRow */
} LsPlaceLoads;

static inline void
ls_place_loads_add (LsPlaceLoads *p, uint32_t row, uint32_t place, uint64_t coef)
{
  const LsPlaceRow *r = &g_array_index (p->rows, LsPlaceRow, row);
  r->sums[place - p->first[r->tier]] += coef;
}

/* Calls whose hosts repeat (private to network/). See loads.c. */

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
