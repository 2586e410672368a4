/* job/lower_costs.h — what the lowering has to know of a cluster to order a pipeline: how
 * long kernels, tensor-parallel collectives and sends between stages take alone. Zero
 * bubble's authors measure the same in the first iterations of a run.
 *
 * A send is the mean over neighbouring stages of the first replica, a collective that of
 * the first tensor-parallel group. */
#ifndef LS_JOB_LOWER_COSTS_H
#define LS_JOB_LOWER_COSTS_H

#include "job/hardware.h"
#include "lower/lower.h"
#include "network/call_times.h"

typedef struct {
  const LsHardware *hardware;
  const LsCluster *cluster;
  const LsStrategy *strategy; /* resolved */
  LsCallTimes *call_times;    /* with the hardware's NCCL */
} LsCostSources;

/* Borrows `of`, which must outlive the result. */
LsLowerCosts ls_lower_costs (LsCostSources *of);

#endif
