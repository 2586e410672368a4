/* job/lower_costs.h — what parallel/ has to know of a cluster to order a pipeline: how
 * long kernels, tensor-parallel collectives and sends between stages take alone. Zero
 * bubble's authors measure the same in the first iterations of a run.
 *
 * A send is the mean over neighbouring stages of the first replica, a collective that of
 * the first tensor-parallel group. */
#ifndef LS_JOB_LOWER_COSTS_H
#define LS_JOB_LOWER_COSTS_H

#include "job/hardware.h"
#include "lower/lower.h"

typedef struct {
  const LsHardware *hardware;
  const LsCluster *cluster;
  const LsStrategy *strategy; /* resolved */
  GHashTable *call_times;     /* of ls_call_times_new(): what calls took is kept there; NULL: nowhere */
} LsCostSources;

/* Calls that were timed, for any strategies on clusters that outlive it, with one NCCL. One thread at a time.
 * Free with g_hash_table_unref(). */
GHashTable *ls_call_times_new (void);

/* Borrows `of`, which must outlive the result. */
LsLowerCosts ls_lower_costs (LsCostSources *of);

#endif
