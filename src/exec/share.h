/* exec/share.h — several jobs on one cluster, replayed together on one clock.
 *
 * Problem. Jobs that are placed beside each other share leaves, spines and storage. What each takes alone
 * says nothing of what they take from each other, which depends on when each of them communicates.
 *
 * Solution. Their plans are joined into one (plan/plan.h) and replayed by one engine over one set of links,
 * so that all flows share by the same rules (core/maxmin.h), whosever they are. Kernels and hosts of each job
 * are costed as it would be alone. A job does its steps over and over, as long as any is measured, so that
 * none meets a cluster that others have left already.
 *
 * What is measured. The window opens when every job has done two steps, the first of which began cold. It
 * closes
 *     - when some steps of the first job are as so many before them, to the picosecond: at the end of each,
 *       how far every other job is into its step, and when all was over in its last one. That is taken to
 *       repeat, as two equal steps of one job are (replay/replay.c), and the window is such a period
 *       (is_periodic); or
 *     - after n_steps - 2 more steps of every job. With traffic (below) always so.
 * The step of a job is the mean over its whole steps in the window; the shortest and the longest are told
 * beside it. Jobs on links that they have to themselves come out as alone, to the picosecond: in the run of
 * one alone the others are there, with their GPUs, and do nothing.
 *
 * Worked example. Two jobs compute for 6 ms and then reduce 4 ms over the same link. Begun together, each
 * reduction gets half of the link: 8 ms, and steps of 14 ms. Begun 5 ms apart they do not meet: 10 ms.
 *
 * Deviations. Shares settle at once (core/maxmin.h), and jobs keep the phase that they have; in networks with
 * congestion control they drift. GPUs are of one job. Two jobs whose steps are not commensurate have no
 * period: their means are over n_steps - 2 steps.
 * Reference: Rajasekaran et al., CASSINI: Network-Aware Job Scheduling in Machine Learning Clusters, NSDI
 * 2024, which shifts jobs in time by the phases of their communication on a common circle. */
#ifndef LS_EXEC_SHARE_H
#define LS_EXEC_SHARE_H

#include "exec/run.h"

/* ---- what moves between nodes and is of no job: checkpoints, storage ---- */

/* Problem. Jobs share the fabric with traffic that nobody replays op by op, and that does not wait for them.
 *
 * Model. So many bytes from one node to another, over and over: begun every period, or, where one is not over
 * by then, right after it; with no period one after the other, without end. They are spread evenly over the
 * NICs of the two nodes, which move together: one activity with a flow for each NIC, from the sender's NIC
 * over the fabric to the receiver's,
 *
 *     bytes / NICs on each flow,   rate <= min (rate asked for, capacity of each link alone)
 *
 * that shares links with the flows of jobs by the same rules (core/maxmin.h).
 *
 * Worked example. 20 GB every 2 s over two NICs of 25 GB/s: 10 GB on each, 0.4 s where nothing else moves,
 * 0.8 s next to a flow that takes half of each.
 *
 * Deviations. Inside the nodes nothing is loaded: no memory, no PCIe. No latency. A slow NIC slows all.
 * Storage is a node that stands for it; a network of its own is none of ours. */

typedef struct {
  uint32_t node_from, node_to; /* two of the cluster */
  uint64_t bytes;              /* > 0 */
  LsTime period;               /* 0: one behind the other */
  LsTime start;
  double rate; /* bytes/s at most, 0: any */
} LsTraffic;

/* What one of them loads, in arena: demand_bytes and rate_cap of one flow, of *ret_n_flows. NULL: the nodes
 * have no NICs, or there is no way. */
LsPhase *ls_traffic_phase (const LsCluster *c, const LsTraffic *t, uint32_t *ret_n_flows, LsArena *arena);

/* ---- several jobs ---- */

#define LS_SHARE_ALL       UINT32_MAX
#define LS_SHARE_MAX_STEPS 10000 /* of one job, while another is measured */

/* Borrows all. */
typedef struct {
  const LsPlan *plan; /* gpu_of_rank: of the cluster of all */
  const LsCalibration *calibration;
  const LsHostCosts *host;
  const double *slow; /* [ranks of the plan] kernel time multiplier, or NULL */
  LsTime start;       /* of its first step, >= 0 */
} LsShareJob;

/* Of one job. */
typedef struct {
  uint32_t n_steps; /* in the window; 0: the job was not there */
  double step_ps;   /* their mean                             */
  LsTime shortest, longest;
  double *resource_bytes; /* [n_resources] of one step              */
} LsShareSteps;

/* Beside the jobs; borrowed. */
typedef struct {
  const LsTraffic *flows;
  uint32_t n;
} LsShareTraffic;

typedef struct {
  uint32_t n_jobs, n_resources;
  LsShareSteps *jobs; /* [n_jobs] */
  /* [traffic] bytes/s that it moved, at most those of its whole periods in the window: NaN without one; of
   * traffic without a period while the window was open. NULL: none */
  double *traffic_rate;
  double *resource_rate; /* [n_resources] bytes/s of traffic on each while the window was open; likewise */
  bool is_periodic;
  LsTime window_start, window_end; /* ends of steps of the first job that is there */
  uint64_t digest;                 /* of all that was over in the last steps */
  uint32_t n_classes, n_ranks;
  LsArena *arena; /* of all of it */
} LsShare;

void ls_share_free (LsShare *share); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsShare, ls_share_free)

/* only: the number of one job, for it alone and without traffic, or LS_SHARE_ALL. traffic: NULL: none.
 * options: n_steps counts the two steps before the window, host, slow and stragglers are those of the jobs,
 * and there are no spans. calibrations of all jobs are those of one GPU. Errors as of ls_run();
 * LS_ERROR_CONFLICT: two jobs on one GPU; LS_ERROR_UNSUPPORTED: message by message; LS_ERROR_INPUT: a step
 * that takes no time; LS_ERROR_LIMIT: LS_SHARE_MAX_STEPS. With LS_SHORTCUT_CHECK all is done the plain way
 * too: LS_ERROR_FAILED where that is not the same. */
LsShare *ls_run_share (const LsShareJob *jobs, uint32_t n_jobs, uint32_t only, const LsShareTraffic *traffic,
                       const LsCluster *cluster, const LsNccl *nccl, const LsRunOptions *options,
                       GError **error);

#endif
