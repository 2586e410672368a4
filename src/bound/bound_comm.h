/* bound/bound_comm.h — what communication of the ranks of a pipeline takes at least (private to bound*.c). */
#ifndef LS_BOUND_BOUND_COMM_H
#define LS_BOUND_BOUND_COMM_H

#include "job/hardware.h"
#include "network/call_times.h"
#include "strategy/strategy.h"

/* Of a job: borrows all. */
typedef struct {
  LsCallTimes *times;
  const LsCluster *cluster;
  const LsStrategy *s; /* resolved */
} BoundComm;

/* Of the groups with tp, cp and dp index 0 of each stage the fastest; 0 for nothing to do. */
LsTime bound_tp_time (const BoundComm *c, LsCollKind kind, uint64_t bytes);
/* The same over the ranks with the same parameters. */
LsTime bound_dp_time (const BoundComm *c, LsCollKind kind, uint64_t bytes);
/* From a stage to the next, or back from the last to the first, whichever is fastest. */
LsTime bound_send_time (const BoundComm *c, uint64_t bytes);

#endif
