/* exec/replay/state.h — the state of a run, and its ends: steps, timeline, deadlocks (private to exec/). */
#ifndef LS_EXEC_REPLAY_STATE_H
#define LS_EXEC_REPLAY_STATE_H

#include "exec/replay/calls.h"
#include "exec/replay/rank.h"
#include "exec/replay/replay.h"
#include "exec/replay/whole.h"

/* ---- what moves: collectives, transfers of groups, copies ---- */

/* What moves: a collective or one transfer of a p2p group. Phase by phase, first
 * the latency, then the flow. */
typedef struct Motion Motion;
struct Motion {
  LsEvent start; /* end of the latency of a phase */
  LsFlow flow;
  Call *call;
  uint32_t phase, step;
  void (*finished) (void *run, Motion *m, LsTime at);
  /* Data begin to move (sign 1) or no longer do (-1), at the cost of kernels or other copies; may be NULL. */
  void (*moving) (void *run, const Motion *m, int sign);
};

typedef struct Comm {
  Motion motion; /* first member: events lead back here */
  uint32_t id;
  uint32_t n_arrived;
  LsCommunicator group; /* its members */
  LsTime arrived;       /* latest */
  uint64_t *frame;      /* [n_ranks] of the op that arrived */
  uint16_t *op;
  uint32_t first_rank, step; /* who arrived first, and in which step it was */
  LsDtype dtype;
  Call *calls;
} Comm;

typedef struct {
  uint32_t rank;
  uint16_t op;
  uint64_t frame;
  LsTime at;
  uint64_t bytes;
  uint8_t max_ctas;
} Post;

/* The sends of one rank to its next (or previous) neighbour. */
typedef struct Channel {
  Motion motion; /* first member */
  bool is_busy;
  uint32_t from, to;   /* ranks */
  GQueue sends, recvs; /* Post */
  Call *calls;
} Channel;

/* A copy engine. */
typedef struct Copy {
  Motion motion; /* first member */
  bool is_busy;
  bool is_moving; /* past its latency */
  uint32_t rank;
  uint64_t frame;
  uint16_t op;
  Call *calls;
} Copy;

/* ---- hooks ---- */

/* Where the plain replay asks what else there is. All are NULL in the plain machine,
 * which then does what stands behind the semicolon. */
typedef struct {
  /* ---- before the clock starts ---- */

  /* True: x->whole is another, and x->plan a quotient; each stands for itself (whole.h). */
  bool (*stand_for) (Run *x);
  /* All is there but its calls. */
  void (*begun) (Run *x);
  /* As call_plan(), which is what happens otherwise. */
  const LsCollPlan *(*plan_call) (const Run *x, const LsCollRequest *request, LsArena *arena, GError **error);
  /* Makes c->messages of these ranks of the whole plan, if it goes message by message; by phases. */
  gboolean (*plan_messages) (Run *x, Call *c, const uint32_t *ranks, uint32_t n, LsCollMemo *memo,
                             GError **error);
  /* As run_uses(), of a load that each of n_alike makes. */
  uint32_t (*uses) (const Run *x, const LsLoad *loads, uint32_t n, uint32_t n_alike, LsFlowUse *ret_uses);

  /* ---- on the clock ---- */

  /* Whether nothing outside can touch the rank, so that it may go ahead of the clock; it never may. */
  bool (*may_run_ahead) (const Run *x, const Rank *r);
  /* Of a rank that may: the frame of its next head, all at once. False: op by op. */
  bool (*take_frame) (Run *x, Rank *r, const Candidate *head);
  void (*frame_over) (Run *x, Rank *r, uint64_t frame); /* that retires */
  /* The host goes on behind this op, for which it waited. */
  void (*host_passed) (Run *x, const Rank *r, const Frame *f, uint64_t frame, uint16_t op);
  void (*send) (Run *x, Motion *m); /* the call has messages; their latency is over */
  /* All ranks of the job are done with this step. True: whoever says so calls step_done() later; at once. */
  bool (*step_waits) (Run *x, XJob *job, uint32_t step);
  /* It is over, and the hook says when the run ends; that is after the last step asked for. */
  void (*step_over) (Run *x, XJob *job, uint32_t step);

  /* ---- afterwards ---- */

  /* Adds what moved in this step and is of no call's phases; nothing. */
  void (*add_bytes) (const Run *x, uint32_t step, double *bytes);
} Hooks;

/* By parity of the step: sums over completions, so that ties have no order, of weight times time to the
 * power of k. */
#define N_DIGEST_POWERS 4
typedef uint64_t DigestSums[2][N_DIGEST_POWERS];

/* One of the plans that a run replays; a run of several has them joined (plan/plan.h). Steps are counted for
 * each by itself. */
struct XJob {
  const LsPlan *plan; /* its own, unfolded */
  const LsCalibration *calibration;
  const LsHostCosts *host;
  LsTime start;   /* its hosts issue nothing before */
  bool is_absent; /* nor ever: it only has its GPUs */
  /* Where what it has begins in the joined plan. */
  uint32_t first_rank, first_role, first_segment, first_kernel;
  uint32_t n_ranks;                         /* of the replay                          */
  double fastest_kernel[LS_MAX_NODE_KINDS]; /* most bytes/s that a kernel moves alone */
  uint32_t n_kept;                          /* steps that there is room for           */
  uint32_t *step_n_done;                    /* [n_kept] ranks that are done with it   */
  LsTime *step_end;                         /* [n_kept]                               */
  DigestSums digest;
  uint64_t last_digest; /* of the step that was over last */
};

/* Ranks, communicators and resources are those of the plan that is replayed (whole.h). */
struct Run {
  Hooks hooks;
  struct Extras *extras; /* what the hooks keep (exec/extras.h); NULL in the plain machine */
  const LsPlan *plan;    /* that is replayed */
  Whole *whole;
  const LsCluster *cluster;
  const LsNccl *nccl;
  XKind kinds[LS_MAX_NODE_KINDS];
  XJob *jobs; /* [n_jobs] */
  uint32_t n_jobs;
  LsReplayOptions options;
  LsArena *arena;
  LsEngine engine;
  LsFlowNet *net;
  RoleCalls *role_calls; /* [n_roles] of the whole plan, and of what is replayed, which has the same roles */
  XSegment *segments;    /* of the first kind of node: what is the same of all */
  uint32_t *spans_of_role;   /* [n_roles] spans of one step of one rank */
  uint32_t last_spans;       /* of a rank that a step that is not reported keeps: a power of two, and at least
                               those of any segment */
  const LsBinding *bindings; /* [n_ranks] */
  Rank *ranks;
  Comm *comms;
  Channel *channels; /* [2 * n_ranks]: to next, to previous */
  Copy *copies;      /* [n_ranks * LS_N_COPY_DIRECTIONS], of a rank by LsCopyDirection */
  LsEvent dispatch;
  GPtrArray *ready;      /* Rank */
  GPtrArray *ready_next; /* scratch of dispatch */
  uint32_t n_steps;
  uint32_t last_step; /* the one reported, once known; NO_ID before */
  bool is_periodic;
  bool begins_late; /* in the middle of the first step, which is unlike all others */
  bool keeps_all_spans;
  uint64_t n_ops, n_segments; /* that are over */
  double cost_share[LS_N_COST_SHARES];
  GError *error;       /* stops the run */
  uint32_t n_ticks;    /* of ls_stop_tick () */
  uint64_t next_check; /* check.c: after so many events */
};

/* Of a rank of the whole plan. */
static inline const XKind *
run_kind_of (const Run *x, const LsPlan *whole, uint32_t rank)
{
  return &x->kinds[ls_cluster_kind_of (x->cluster,
                                       ls_cluster_host_of (x->cluster, ls_plan_gpu (whole, rank)))];
}

static inline XJob *
run_job_of_role (const Run *x, uint32_t role)
{
  XJob *job = x->jobs;
  while (role >= job->first_role + job->plan->n_roles)
    job++;
  return job;
}

/* whole.c: what each resource can carry, in the arena: [resources of the cluster]. Kernels may be
 * calibrated to more bandwidth than the data file grants the HBM; a kernel with the GPU to itself must run at
 * its time alone. */
double *run_capacities (const Run *x, LsArena *arena);
/* Of one job on nodes of one kind, one by one. fastest: run_fastest_kernel(). */
double run_capacity (const Run *x, const LsPlaces *at, double fastest, uint32_t resource);
double run_fastest_kernel (const Run *x);

/* refuse.c: what the plan asks of the cluster is there; what cannot be represented or would not fit is
 * refused before it is begun. */
gboolean run_check_plan (const Run *x, GError **error);
gboolean run_check_limits (const Run *x, GError **error); /* of what is replayed */

/* replay.c: x has its hooks, the plan, the cluster, the jobs and all that they were costed by. What begins,
 * ends with run_clear(), whatever became of it. */
gboolean run_begin (Run *x, GError **error); /* up to the clock */
gboolean run_clock (Run *x, GError **error); /* LS_ERROR_DEADLOCK and others, or it was stopped */
void run_clear (Run *x);

/* check.c: asserts what always holds, of a run that asks for it: after events; of what is collected. */
void run_check (void *run);
void run_check_spans (const LsRankSpans *spans);

/* check.c, too: a violation is LS_ERROR_FAILED, an error of ours and not of the input */
void conserve_flow (Run *x, const LsFlow *f, double asked);                            /* that is over  */
gboolean conserve_step (const Run *x, const XJob *job, uint32_t step, GError **error); /* that is over */

/* replay.c, too */
void step_rank_done (Run *x, Rank *r, uint32_t step, LsTime end);
void step_done (Run *x, XJob *job, uint32_t step); /* by all ranks of the job, and the clock is there */

/* timeline.c: the reported step, and what overlaps its end. */
LsTimeline *timeline_collect (Run *x);
/* [resources of the cluster], newly allocated: what a step of the job moved over each. */
double *timeline_count_bytes (const Run *x, const XJob *job, uint32_t step);

/* blocked.c */
/* What the head of the rank's compute stream waits for. */
void blocked_by (Run *x, Rank *r, LsCause *ret_kind, SpanRef *ret_span);
GError *deadlock_report (Run *x);

/* motion.c */
void motion_moves (Run *x, const Motion *m, int sign); /* see Motion.moving */
void motion_over (Run *x, Motion *m, LsTime at);       /* all of its call is there */

/* collectives */
void collectives_init (Run *x);
void comm_launch (Run *x, Rank *r, uint64_t frame, uint16_t op, LsTime at);

/* groups of sends and receives */
uint64_t group_share (Run *x, const Rank *r, const LsOp *op); /* of the SMs, that it holds */
void groups_init (Run *x);
void groups_clear (Run *x);
void group_launch (Run *x, Rank *r, uint64_t frame, uint16_t op, LsTime at);
Channel *group_channel (Run *x, const Rank *r, const LsTransfer *t);
/* A group of which some transfer has found no partner has not matched yet. */
void group_hide_partial_matches (Rank *r);

/* copies */
void copies_init (Run *x);
bool copy_can_start (const Run *x, const Rank *r, const LsOp *op);
void copy_start (Run *x, Rank *r, uint64_t frame, uint16_t op, LsTime at);

#endif
