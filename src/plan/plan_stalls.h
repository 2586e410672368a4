/* plan/plan_stalls.h — the host is held up before ops of a plan: by calls of the driver, which a
 * plan cannot know when it is made.
 *
 * Each instance with a stall gets a segment of its own: before the op stand a wait for all that was
 * issued before, on every stream, where there is to be one, and the time that the host is busy. */
#ifndef LS_PARALLEL_PLAN_STALLS_H
#define LS_PARALLEL_PLAN_STALLS_H

#include "plan/plan.h"

typedef struct {
  uint32_t instance;
  uint16_t op;
  bool waits;  /* for the device */
  LsTime time; /* of the host, behind the wait */
} LsStall;

/* Into the program of a role. stalls: LsStall, by instance, then op, of each op at most one. Only what
 * `segments`, `n_segments` and the program's `instances` point to is replaced; the arena keeps what was
 * there. LS_ERROR_LIMIT where a segment would have too many ops; the plan is then as before. */
gboolean ls_plan_add_stalls (LsPlan *plan, uint32_t role, const GArray *stalls, GError **error);

#endif
