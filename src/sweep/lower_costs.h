/* sweep/lower_costs.h — what parallel/ has to know of a cluster to order a pipeline: how
 * long kernels, tensor-parallel collectives and sends between stages take alone. Zero
 * bubble's authors measure the same in the first iterations of a run.
 *
 * A send is the mean over neighbouring stages of the first replica, a collective that of
 * the first tensor-parallel group. */
#ifndef LS_SWEEP_LOWER_COSTS_H
#define LS_SWEEP_LOWER_COSTS_H

#include "parallel/lower.h"
#include "sweep/hardware.h"

typedef struct {
  const LsHardware *hardware;
  const LsCluster *cluster;
  const LsStrategy *strategy; /* resolved */
} LsCostSources;

/* Borrows `of`, which must outlive the result. */
LsLowerCosts ls_lower_costs (LsCostSources *of);

#endif
