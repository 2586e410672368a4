/* exec/state.h — the state of a run, and its ends: steps, the timeline, deadlocks (private to exec/). */
#ifndef LS_EXEC_STATE_H
#define LS_EXEC_STATE_H

#include "core/flow.h"
#include "exec/calls.h"
#include "exec/run.h"
#include "exec/spans.h"

typedef struct XSegment XSegment; /* compile.h */
typedef struct Comm Comm;         /* motion.h  */
typedef struct Channel Channel;
typedef struct Copy Copy;
typedef struct Steady Steady; /* steady.c */

/* Ranks, communicators and resources are those of the quotient (fold.h). */
struct Run {
  const LsPlan *plan;
  Fold *fold;
  const LsCluster *cluster;
  const LsNccl *nccl;
  const LsAround *around; /* of the calibration */
  const LsRunOptions *options;
  LsArena *arena;
  LsEngine engine;
  LsFlowNet *net;
  MessageNet message_net;
  GPtrArray *messages;      /* Messages: of all calls that have them */
  double *message_bytes[2]; /* by resource, never folded; by parity of the step */
  uint32_t message_step[2]; /* + 1                                   */
  LsKernelCost *costs;      /* [n_kernels] */
  RoleCalls *role_calls;    /* [n_roles] of the whole plan, and of its quotient, which has the same roles */
  XSegment *segments;
  uint32_t *spans_of_role; /* [n_roles] spans of one step of one rank */
  Rank *ranks;
  Comm *comms;
  Channel *channels; /* [2 * n_ranks]: to next, to previous */
  Copy *copies;      /* [n_ranks * LS_N_COPY_DIRECTIONS], of a rank by LsCopyDirection */
  LsEvent dispatch;
  GPtrArray *ready;      /* Rank */
  GPtrArray *ready_next; /* scratch of dispatch */
  uint32_t n_steps;
  uint32_t *step_n_done; /* [n_steps + 1] */
  LsTime *step_end;      /* [n_steps + 1] */
  uint32_t last_step;    /* the one reported, once known; NO_ID before */
  bool is_periodic;
  Steady *steady;            /* NULL: none           */
  bool begins_at_quiescence; /* instead of cold      */
  bool keeps_all_spans;
  /* By parity of the step: sums over completions, so that ties have no order, of weight times time to the
   * power of k. */
#define N_DIGEST_POWERS 4
  uint64_t digest[2][N_DIGEST_POWERS];
  uint64_t last_digest; /* of the step that was over last */
  uint64_t n_ops;
  uint64_t n_segments, n_coarse; /* that are over; of these, in one piece */
  uint32_t **quiet;              /* [n_roles] see coarsen.c; NULL: no coarsening */
  double cost_share[4];
  double fastest_kernel; /* most bytes/s that a kernel moves alone */
  GError *error;         /* stops the run */
};

/* conserve.c: a violation is LS_ERROR_FAILED, an error of ours and not of the input */
void conserve_flow (Run *x, const LsFlow *f, double asked);           /* that is over  */
gboolean conserve_step (const Run *x, uint32_t step, GError **error); /* that is over */

/* steps.c */
void step_rank_done (Run *x, Rank *r, uint32_t step, LsTime end);

/* steady.c */
void steady_init (Run *x); /* after the ranks */
/* The host goes on behind this op, a HOST_SYNC; where all that follow are known to be like it, the step is
 * the last. */
void steady_pass (Run *x, const Rank *r, const Frame *f, uint64_t frame, uint16_t op);

/* timeline.c: the reported step, and what overlaps its end. */
LsTimeline *timeline_collect (Run *x);

/* blocked.c */
/* What the head of the rank's compute stream waits for. */
void blocked_by (Run *x, Rank *r, LsCause *ret_kind, SpanRef *ret_span);
GError *deadlock_report (Run *x);

#endif
