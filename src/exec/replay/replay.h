/* exec/replay/replay.h — a frozen plan replayed on a cluster, each rank by itself and each op by an event:
 * the plain machine, which README.md next to this file explains. All that makes it faster, or joins several
 * jobs, hangs on its hooks (state.h) and is none of its own. */
#ifndef LS_EXEC_REPLAY_REPLAY_H
#define LS_EXEC_REPLAY_REPLAY_H

#include "compute/cost.h"
#include "exec/replay/timeline.h"
#include "network/coll.h"

typedef enum { LS_QUEUE_FAST, LS_QUEUE_REFERENCE } LsQueueKind;
typedef enum { LS_SOLVER_FAST, LS_SOLVER_REFERENCE } LsSolverKind;

/* What the host pays, by LsHostCost. */
typedef struct {
  LsTime cost[LS_N_HOST_COSTS];
  bool is_final; /* neither a strategy nor a fit of the cluster replaces them */
} LsHostCosts;

/* The costs that a run uses unless told otherwise; their source is in host.c. */
void ls_host_costs_default (LsHostCosts *ret_costs);

/* As in LsRunOptions (exec/run.h), which has more for the hooks. */
typedef struct {
  uint32_t n_steps;
  LsNetworkFidelity network; /* not LS_NETWORK_STEP, which hangs on a hook */
  LsQueueKind queue;
  LsSolverKind solver;
  bool no_spans;
  bool checks; /* what always holds is asserted after every event (check.c) */
  uint64_t max_spans, max_memory_bytes;
  const double *slow; /* [n_ranks], or NULL */
} LsReplayOptions;

/* What is replayed, on what, and how; borrowed. */
typedef struct {
  const LsPlan *plan;
  const LsCluster *cluster;
  const LsCalibration *calibration;
  const LsNccl *nccl;
  const LsHostCosts *host;
  LsReplayOptions options;
} LsReplayInput;

/* Every hook NULL. Errors, and what must outlive the timeline, are those of ls_run() (exec/run.h). */
LsTimeline *ls_replay (const LsReplayInput *input, GError **error);

#endif
