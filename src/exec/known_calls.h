/* exec/known_calls.h — calls as they were planned, and what they take alone, kept from one run to the next
 * (private to exec/). */
#ifndef LS_EXEC_KNOWN_CALLS_H
#define LS_EXEC_KNOWN_CALLS_H

#include "exec/run.h"

struct LsKnownCalls {
  GMutex lock;
  LsArena *arena;     /* of plans */
  GHashTable *plans;  /* GBytes of known_calls_key() -> LsCollPlan * */
  GHashTable *bounds; /* the same -> BoundCall * (shortcuts/plan_bound_sum.h) */
};

/* Around every use of its members. */
void known_calls_lock (struct LsKnownCalls *calls);
void known_calls_unlock (struct LsKnownCalls *calls);

/* All that a plan of the request depends on but NCCL and fidelity. NULL: there is more to it, or none are
 * kept. */
GBytes *known_calls_key (const LsKnownCalls *calls, const LsCluster *cluster, const LsCollRequest *request);

#endif
