/* network/sums.h — what the messages of rounds add up to, in blocks: on members, and on
 * trunks (private to network/). The same for an array of any size. */
#ifndef LS_NETWORK_SUMS_H
#define LS_NETWORK_SUMS_H

#include "network/algorithm.h"

typedef enum { LS_WAY_INTRA, LS_WAY_INTER, LS_WAY_SWITCH, LS_N_WAYS } LsWay;

/* Blocks that a member sends and receives. */
typedef struct {
  uint64_t out[LS_N_WAYS], in[LS_N_WAYS];
} LsTraffic;

typedef struct {
  const LsTraffic *traffic; /* [n] of the members                                    */
  uint32_t n_loads;
  const LsLoad *loads;     /* coef: blocks times LS_HOP_WHOLE; sorted by resource   */
  bool has_way[LS_N_WAYS]; /* whether any message goes this way, blocks or not      */
} LsSums;

/* Rounds first .. first + n_rounds - 1. Of call->memo, or else in arena. Cost: linear in the
 * messages, where the memo does not know it. */
const LsSums *ls_sums_of_rounds (const LsCollCall *call, const LsScript *s, uint32_t first, uint32_t n_rounds,
                                 LsArena *arena);

#endif
