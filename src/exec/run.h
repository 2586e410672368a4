/* exec/run.h — replay a plan on a cluster: the one entry into exec/. */
#ifndef LS_EXEC_RUN_H
#define LS_EXEC_RUN_H

#include "exec/memory/memory.h"
#include "exec/replay/replay.h"

/* Ranks whose kernels take longer than others'.
 *
 * Named ranks take `factor` times as long. With sigma > 0 each rank draws a factor
 *
 *     exp (sigma z),  z normal with mean 0 and variance 1
 *
 * so that half of the ranks are slower than the calibration says and half faster; a named
 * rank takes its own factor on top of that. z is drawn by the polar form of Box and Muller
 * (Annals of Mathematical Statistics 29, 1958) from GLib's Mersenne twister: rank r always
 * has the same for a seed, however many ranks there are. Factors end at LS_SLOW_MIN and LS_SLOW_MAX.
 *
 * Worked example: sigma 0.05: two thirds of the ranks are within 5 %, the slowest of 1,000
 * some 1.18; a step with a barrier waits for that one.
 *
 * Deviation: a factor holds for all kernels of a rank and for the whole run. */
#define LS_SLOW_MIN 0.1
#define LS_SLOW_MAX 100.0

typedef struct {
  uint32_t rank;
  double factor; /* LS_SLOW_MIN .. LS_SLOW_MAX */
} LsSlowRank;

typedef struct {
  GArray *ranks; /* LsSlowRank; NULL: none */
  double sigma;  /* 0: none                */
  uint32_t seed;
} LsSlow;

void ls_slow_clear (LsSlow *s);

/* [n_ranks] factors, newly allocated; NULL without an error: all are 1. LS_ERROR_CONFLICT: a
 * rank that there is not. */
double *ls_slow_factors (const LsSlow *s, uint32_t n_ranks, GError **error);

/* What does not change the result. AUTO: taken where it provably does not; CHECK: and gone without as well,
 * which must come out the same. */
typedef enum { LS_SHORTCUT_OFF, LS_SHORTCUT_AUTO, LS_SHORTCUT_CHECK } LsShortcut;

/* Calls as they were planned, and what they take alone, kept from one plan to the next. For one NCCL and one
 * fidelity of the network, and clusters that outlive it. By any threads at once. Whether a call is known
 * makes no difference to a run. */
typedef struct LsKnownCalls LsKnownCalls;
LsKnownCalls *ls_known_calls_new (void);
void ls_known_calls_free (LsKnownCalls *calls); /* NULL allowed */

typedef struct {
  uint32_t n_steps;          /* 3; stops early once the period repeats      */
  bool steady;               /* only the steady state is wanted: the first step may be cut short (steady.c) */
  LsNetworkFidelity network; /* LS_NETWORK_FLOW                             */
  LsQueueKind queue;         /* LS_QUEUE_FAST                               */
  LsSolverKind solver;       /* LS_SOLVER_FAST; with the reference every message is a
                                 flow of the net too (exec/messages/lease.h)          */
  LsShortcut fold; /* ranks that behave alike are simulated once; OFF. No effect with LS_NETWORK_STEP */
  /* What is known to repeat is not done again: segments that nothing disturbs run in one piece, and no
   * further step where the next is known to be as the last (steady.c); OFF. No effect with LS_NETWORK_STEP
   * and no_run_ahead. */
  LsShortcut coarsen;
  bool no_spans;             /* keep step times only (a sweep needs no more) */
  uint64_t max_spans;        /* of a step: with more, one rank of each role keeps them; 20e6 */
  uint64_t max_memory_bytes; /* refuse runs that would need more; 16 GiB     */
  bool no_run_ahead;         /* every op through the event queue (reference) */
  bool checks;               /* what always holds is asserted after every event (exec/replay/check.c) */
  bool folds_by_walk;        /* who is alike is found out rank by rank (reference) */
  LsHostCosts host;
  LsMemoryOptions memory;   /* how bytes are counted afterwards             */
  const double *slow;       /* [n_ranks] kernel time multiplier, or NULL    */
  const LsSlow *stragglers; /* where that is NULL: borrowed; NULL: none     */
  LsKnownCalls *calls;      /* of runs and bounds before; borrowed, or NULL */
} LsRunOptions;

void ls_run_options_init (LsRunOptions *o);

/* The plan must be one that ls_plan_check() accepts, but for what ranks owe each other (calls and transfers
 * that do not match): indices, bindings and events are not looked at again. Errors: LS_ERROR_DEADLOCK with
 * the report, LS_ERROR_INPUT for mismatched collectives and transfers, LS_ERROR_CONFLICT for a GPU that the
 * cluster does not have, LS_ERROR_LIMIT, LS_ERROR_FAILED if not all that was asked to move did. The plan is
 * borrowed and must outlive the timeline. ret_cost_share: [4], see analysis/report.h; may be NULL. */
LsTimeline *ls_run (const LsPlan *plan, const LsCluster *cluster, const LsCalibration *calibration,
                    const LsNccl *nccl, const LsRunOptions *options, double *ret_cost_share, GError **error);

#endif
