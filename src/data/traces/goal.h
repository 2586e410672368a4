/* data/traces/goal.h — a plan as GOAL (Group Operation Assembly Language): for each rank what it computes,
 * what it sends and receives, and what must be over before.
 *
 *     num_ranks 2
 *     rank 0 {
 *     l1: calc 1200 cpu 0
 *     l2: send 1024b to 1 tag 0 cpu 1
 *     l2 requires l1
 *     }
 *
 * Model. A kernel is a calc of the time that it takes alone, in nanoseconds; so is a copy, and a delay of
 * the host. Rounding is carried on: the calcs of a rank add up to what its plan takes, to the nanosecond. A
 * collective is its messages, by the algorithm and with the members' order that the simulator itself takes
 * (network/script.h); a round begins when all of the one before is over, and receives are posted when the
 * call begins. A send of a pipeline is one message. What must be over: the op before in the stream, what an
 * op waits for, and the last that held the host up. `cpu` is the stream. A step is one step with what leads
 * to it.
 *
 * Tags. The k-th message from one rank to another on a communicator has the tag 16 k + c, c counting the
 * communicators that both have; on pipelines c is 14 to the next and 15 to the previous stage. So a tag
 * names one message of a pair.
 *
 * Deviations. What the language cannot say is left out: what issuing costs the host, what kernels and
 * communication take from each other, memory. Calls in switches (NVLS, SHARP) become rings, as switches that
 * compute are no ranks. A message of no bytes, as of a barrier, has one.
 *
 * Reference: Hoefler, Siebert, Lumsdaine, "Group Operation Assembly Language", ICPP 2009; the grammar is
 * that of spcl/LogGOPSim@76451de, src/LogGOPSim/txt2bin.re. */
#ifndef LS_DATA_TRACES_GOAL_H
#define LS_DATA_TRACES_GOAL_H

#include "cluster/cluster.h"
#include "network/nccl/nccl.h"
#include "plan/plan.h"

/* Lines and messages that are written at most. */
#define LS_GOAL_MAX_LINES 1e8

typedef struct {
  const LsPlan *plan;
  const LsCluster *cluster;
  const LsNccl *nccl;
  const LsTime *kernel_times; /* [n_kernels] */
  const char *source;         /* what it is of: a comment */
} LsGoal;

/* ret_n_rings: distinct calls in switches that were written as rings. LS_ERROR_LIMIT: too long;
 * LS_ERROR_CONFLICT: an algorithm does not do a call; LS_ERROR_IO, LS_ERROR_USAGE: the file cannot be
 * written. */
gboolean ls_goal_write (const LsGoal *goal, const char *path, uint32_t *ret_n_rings, GError **error);

#endif
