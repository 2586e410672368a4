/* data/traces/goal_calls.h — collectives of a plan as the messages of each member (private to goal_*.c). */
#ifndef LS_DATA_TRACES_GOAL_CALLS_H
#define LS_DATA_TRACES_GOAL_CALLS_H

#include "data/traces/goal.h"

typedef struct {
  uint32_t round, lane;
  uint32_t peer; /* rank */
  uint64_t bytes;
  bool is_send;
} GoalMessage;

/* Of one collective of a communicator. */
typedef struct {
  bool has_lanes;   /* else a round waits for all of the one before */
  uint32_t n_lanes; /* 1 without them */
  uint32_t n;
  GArray **members; /* [n] of GoalMessage, by round, then as the sender has them */
} GoalCall;

typedef struct {
  const LsGoal *goal;
  GHashTable *calls; /* char * -> GoalCall */
  uint64_t n_messages;
  uint32_t n_rings;
} GoalCalls;

void goal_calls_init (GoalCalls *c, const LsGoal *goal);
void goal_calls_clear (GoalCalls *c);

/* The messages of a collective op on a communicator; each distinct one is made once. NULL: errors as of
 * ls_goal_write(). */
const GoalCall *goal_calls_find (GoalCalls *c, const LsOp *op, uint32_t comm, GError **error);

#endif
