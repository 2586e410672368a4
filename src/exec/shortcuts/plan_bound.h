/* exec/shortcuts/plan_bound.h — what a step takes at least, read off a plan without replaying it.
 *
 * Problem. A search over configurations that has a plan wants to know whether replaying it can
 * still be worth the time, which is a thousand times that of lowering it.
 *
 * Equations. Of the first rank of each role, over the instances of one step:
 *
 *     T >= max (sum of all its kernels,
 *               for each of its streams: sum of what runs on it,
 *               W + I + max over streams of loss (C - I),
 *               longest chain through the ranks of a pipeline: plan_bound.c)
 *
 * where all is taken as long as it takes alone, and
 *     W  its kernels on the compute stream
 *     I  what the compute stream waits for in the middle of segments at least: for a chain that
 *        begins behind one of its own ops and ends before another
 *     C  how long the collectives of a stream move data
 *     loss (c)  by how much kernels get longer at least if communication moves beside them for a
 *        time of c: those that mind it least come first
 *
 * Proof. A stream runs one op at a time, and a GPU one kernel; nothing is faster than alone (core/maxmin.h:
 * sharing only slows; exec/replay/kernel_run.c), so what is in a step, and comes round every step, takes at
 * least its sum. On the compute stream T = W + loss + idle, loss and idle being what they are. (1) idle >=
 * I. Let L be the longest path through a segment between its compute ops; idle is L less the kernels. As one
 * of these gets longer L grows by as much or not at all, so idle does not grow: I is computed with all of
 * them as long as the SMs that are left make them, and all else alone. One that the HBM makes longer still
 * takes no more off idle than it adds to the loss, and to what lies beside kernels. (2) While a collective
 * moves, the compute stream idles or a kernel runs at the rate that LsNccl.stall_per_byte and, unless it is
 * a persistent GEMM that was there first, the channels leave it (exec/replay/kernel_run.c), at most 1 - its
 * loss; so at least C - idle lie beside kernels. (3) W + idle + loss (C - idle) grows with idle, since a
 * unit of C costs less than a unit of time: the least is at idle = I.
 *
 * Worked example. 100 ms of GEMMs that run at 0.6 beside communication and 40 ms of norms that do
 * not mind; gathers move for 90 ms; I = 10 ms. 80 ms of gathers lie beside kernels, 40 of them
 * beside norms, 40 beside GEMMs, which lose 16: T >= 140 + 10 + 16 = 166 ms.
 *
 * Deviations. It is of steps in the long run: one of ranks that share nothing may end early behind a first
 * one that ended late on another rank. What launching costs the host and who shares what link count as
 * nothing; but for the chain sends and receives, waits for events of other segments, host syncs and latencies
 * beside kernels do too; in the chain loss does. With --network step collectives and messages do
 * everywhere. */
#ifndef LS_EXEC_SHORTCUTS_PLAN_BOUND_H
#define LS_EXEC_SHORTCUTS_PLAN_BOUND_H

#include "exec/run.h"

/* Rates of the network are rounded to whole numbers of a quantum (core/level.h): in a bound, times of
 * collectives count this much of themselves. */
#define LS_RATE_ROUNDING 0.9999

/* The plan is one that a run of it would accept; 0 if not. */
LsTime ls_plan_bound (const LsPlan *plan, const LsCluster *cluster, const LsCalibration *calibration,
                      const LsNccl *nccl, const LsRunOptions *options);

#endif
