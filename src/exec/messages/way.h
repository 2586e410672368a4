/* exec/messages/way.h — what a message of a script uses on its way, and how long it takes alone (private).
 *
 * A message of n blocks is `flows` equal flows of demand bytes each: on each trunk of the routes of its
 * channels, and on the HBMs at both ends (network/script.h). Alone its bytes have left after
 *
 *     moving = ceil (demand / cap),   demand = n block_bytes / flows */
#ifndef LS_EXEC_MESSAGES_WAY_H
#define LS_EXEC_MESSAGES_WAY_H

#include "core/flow.h"
#include "network/script.h"

/* No event fires later (as in run.c): half of what can be represented, so that a message that
 * begins before it may take as long again. */
#define MESSAGES_CLOCK_END (LS_TIME_NEVER / 2)

typedef struct {
  LsFlowUse *uses; /* [max_uses] */
  uint32_t n_uses, max_uses;
} Way;

void way_find (Way *way, const LsScript *script, uint32_t from,
               uint32_t to); /* way: zeroed, or used before */
void way_clear (Way *way);

double way_demand (const LsScript *script, uint32_t n);             /* bytes of each flow */
LsTime way_moving (const LsScript *script, uint32_t n, double cap); /* MESSAGES_CLOCK_END at most */

#endif
