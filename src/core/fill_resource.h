/* core/fill_resource.h — a resource as the fast solver keeps it: who is on it, and where it fills.
 *
 * W of core/fill.h depends on the levels of those below it. What they take is kept as a sum, so
 * W mostly follows without a look at them. Who is on a resource is one of two:
 *
 *     frozen   at a level below that of the resource: cap or another resource holds it back
 *     rising   to the level of the resource, which holds it back
 *
 * Few change sides when levels move: a level that moves changes nothing in the sums of those
 * that rise. Private to fill.c. */
#ifndef LS_CORE_FILL_RESOURCE_H
#define LS_CORE_FILL_RESOURCE_H

#include "core/flow.h"
#include "core/level.h"
#include "core/waiting.h"

#define LS_FILL_N_WATCHED 64 /* bits of LsFlow.watched: of its first uses */

/* An activity on a resource. */
typedef struct {
  uint64_t coef;
  LsFlow *flow;
  uint32_t use; /* of the flow: flow->uses[use].slot leads back here */
} LsFillUser;

/* Those that are frozen come first. In the order in which it is read. */
typedef struct {
  LsLoad left; /* of the capacity by those that are frozen        */
  int64_t level;
  int64_t most_frozen; /* nobody is frozen above it                       */
  int64_t *frozen;     /* [n_frozen]: levels                              */
  LsFillUser *users;   /* [n]                                             */
  uint32_t n, n_frozen;
  uint32_t n_counts; /* changes below its level since it was slack      */
  bool is_touched, is_slack;
  bool is_far; /* is or was beyond the first uses of an activity  */

  uint64_t coefs;  /* sum of coef                                     */
  uint64_t rising; /* of those that rise                              */
  LsLoad capacity;
  int64_t next;    /* W                                               */
  LsWaiter waiter; /* while its level is not W                        */
  uint32_t max;    /* users there is room for                         */
} __attribute__ ((aligned (64))) LsFillResource;

void ls_fill_resource_add (LsFillResource *r, LsFlow *f, uint32_t use); /* frozen at 0 */
void ls_fill_resource_remove (LsFillResource *r, const LsFlowUse *use);

/* From one side to the other: `level` is below that of r. */
void ls_fill_resource_freeze (LsFillResource *r, uint32_t slot, int64_t level);
void ls_fill_resource_thaw (LsFillResource *r, uint32_t slot);

/* W of the users as they are. */
int64_t ls_fill_resource_w (LsFillResource *r);
/* Its level becomes r->next: who is frozen there or above rises. */
void ls_fill_resource_change_level (LsFillResource *r);

/* Lets the activities on it change up to some level without a look at r: see core/fill.h. Not
 * while some rise. */
void ls_fill_resource_make_slack (LsFillResource *r);
/* One on slack r reaches this level. Returns up to which level r then counts it, or "never" if
 * r is not slack any more. */
int64_t ls_fill_resource_reserve (LsFillResource *r, const LsFlowUse *use, int64_t level);

/* Asserts, after a settling: what is counted is what the activities have. */
void ls_fill_resource_check (const LsFillResource *r);

#endif
