/* exec/state.h — the state of a run, shared by the files of exec/ and by nobody
 * else.
 *
 * A rank has a host and streams. The host walks the program and opens a *frame*
 * for each segment instance: it writes the issue time of every op, in order, up to
 * a host sync that is not resolved yet. Streams take ops from the frames in order.
 * A frame is dropped when all its ops have ended.
 *
 *     program   [ F0 ][ F1 ][ B0 ][ F2 ][ B1 ] ...
 *     frames          [ 5  ][ 6  ][ 7  ]            open: host is issuing 7
 *     compute               ^ frame 6, op 3
 *     tp                    ^ frame 6, op 4
 *     dp                          ^ frame 7, op 9
 *
 * Running ahead. As long as no communication is resident on a rank and no kernel
 * is held as an activity, nothing outside the rank can touch it: its kernels then
 * take the time that they take alone, and the rank is advanced in its own local
 * time, without events, to its next communication. That is exact, and makes the
 * cost of a run proportional to communications rather than to kernels.
 * LsRunOptions.no_run_ahead switches it off; the results are the same. */
#ifndef LS_EXEC_STATE_H
#define LS_EXEC_STATE_H

#include <lockstep/error.h>

#include "base/digest.h"
#include "cluster/route.h"
#include "core/flow.h"
#include "exec/calls.h"
#include "exec/messages/messages.h"
#include "exec/run.h"
#include "exec/shortcuts/fold.h"

#define NO_OP UINT16_MAX
#define NO_ID UINT32_MAX

/* CUDA queues about this many launches per device before a launch blocks
 * (observed limit of 1024 pending launches, NVIDIA developer forum). Counted by
 * whole frames: a frame is opened when fewer ops are pending, and the host then
 * goes on from the end of the op that made room. */
#define LOOKAHEAD_OPS 1024

/* A span is referred to by its index among the spans of its step on its rank, with the
 * low bits of that step on top; LS_SPAN_NONE: no span. Spans are kept two steps deep:
 * what an op of step s waited for is a span of s or s - 1, or not told. */
typedef uint32_t SpanRef;
#define SPAN_STEP_BITS   3
#define SPAN_INDEX_BITS  (32 - SPAN_STEP_BITS)
#define SPAN_PARITY(ref) ((ref) >> SPAN_INDEX_BITS & 1)
#define SPAN_INDEX(ref)  ((ref) & ((1u << SPAN_INDEX_BITS) - 1))

static inline SpanRef
span_ref (uint32_t step, uint32_t index)
{
  return step << SPAN_INDEX_BITS | index;
}

static inline bool
span_is_of (SpanRef ref, uint32_t step)
{
  return ref != LS_SPAN_NONE && (ref ^ span_ref (step, 0)) >> SPAN_INDEX_BITS == 0;
}

/* The same, as far as step s may refer to it. */
static inline SpanRef
span_known (SpanRef ref, uint32_t s)
{
  return span_is_of (ref, s) || span_is_of (ref, s - 1) ? ref : LS_SPAN_NONE;
}

typedef enum { OP_WAITING, OP_ISSUED, OP_RUNNING, OP_ENDED } OpState;

/* An op as the replay wants it; the LsOp beside it has the rest. */
typedef struct {
  LsTime alone;     /* kernel: its time with the GPU to itself                  */
  LsTime host;      /* what issuing it costs                                    */
  LsTime host_rest; /* what issuing those that it repeats costs, behind it     */
  const LsDep *deps;
  uint32_t cost; /* kernels: index into Run.costs                            */
  uint16_t n_deps;
  uint16_t next; /* following op of the same stream, or NO_OP                */
  uint16_t call; /* ordinal among the calls on its slot within the segment   */
  uint8_t kind, stream, slot;
} XOp;

typedef struct {
  uint32_t n_ops;
  const LsOp *ops;
  XOp *x;
  uint16_t first[LS_N_STREAMS];
  uint16_t n_calls[LS_N_SLOTS];
  uint32_t n_spans;
  uint32_t slots;      /* coarsen.c: bit s: calls on slot s                                */
  uint32_t streams;    /* likewise: uses stream s, or waits for it as it is before         */
  uint32_t n_launched; /* likewise: ops that fill the launch queue                   */
  bool is_quiet;       /* nothing in it starts before the compute stream gets there         */
  bool is_fit;         /* for being run in one piece                                        */
} XSegment;

typedef struct {
  const XSegment *seg;
  const LsInstance *instance;
  uint32_t instance_id;
  uint32_t step;
  uint32_t n_issued, n_left;
  /* End of the last op before this frame, per stream; valid once the stream's
   * cursor has entered the frame. */
  LsTime tail[LS_N_STREAMS];
  SpanRef tail_span[LS_N_STREAMS];
  uint32_t call_base[LS_N_SLOTS];
  uint32_t cap;
  LsTime *time;   /* issued: when; p2p group running: see group.c; ended: when */
  SpanRef *span;  /* issued: span that held up the host; later: its own span  */
  uint8_t *state; /* OpState */
} Frame;

typedef struct {
  uint64_t frame;    /* ordinal since the start of the run     */
  uint16_t op;       /* head; NO_OP: past the end of the frame */
  uint8_t tail_kind; /* LsCause: why the tail is where it is */
  bool is_busy;      /* the head is running                    */
  LsTime tail;       /* when the stream became free            */
  SpanRef tail_span;
} Stream;

typedef struct {
  LsTime at;
  SpanRef span;
  uint32_t step; /* + 1; 0: never recorded */
} EventRecord;

typedef struct Profiles Profiles; /* coarsen.c */

typedef struct {
  uint32_t id;
  const LsProgram *program;
  const LsBinding *binding;
  double slow; /* kernel time multiplier */

  LsTime host_time;
  SpanRef host_span; /* what last held the host up */
  uint32_t next_instance, next_step;
  bool is_gated; /* waits for other ranks to finish an earlier step */

  Frame *frames; /* ring */
  uint32_t frames_cap;
  uint64_t frames_first, frames_end; /* ordinals */
  uint32_t n_outstanding;            /* ops issued or to be issued in open frames */
  bool is_full;                      /* the launch queue is, and the host waits  */
  LsTime room_at;                    /* when an op last ended that made room      */
  uint32_t calls_opened[LS_N_SLOTS];
  uint32_t calls_done[LS_N_SLOTS];
  LsTime call_end[LS_N_SLOTS];
  SpanRef call_span[LS_N_SLOTS];
  Stream streams[LS_N_STREAMS];
  EventRecord *events;

  LsTime gpu_free; /* end of the last kernel                          */
  bool is_kernel_running;
  LsFlow kernel; /* the kernel that is held as an activity          */
  LsFlowUse kernel_use;
  uint64_t kernel_frame;
  uint16_t kernel_op;
  LsTime kernel_start;
  bool is_kernel_split; /* its blocks found only part of the SMs: two waves */
  uint64_t sm_margin;   /* of sm_share, what GEMMs were launched to leave */
  uint32_t n_copies;    /* in progress                                */
  uint32_t n_resident;  /* communication ops from launch to end          */
  uint64_t sm_share;    /* that they hold, in 1/LS_COEF_ONE              */
  uint64_t stall;       /* that moving data take of a kernel's rate besides */

  LsEvent wake;
  bool is_ready;
  uint32_t steps_done;
  LsTime step_end[2]; /* by parity */
  Profiles *profiles; /* NULL: no coarsening */

  bool keeps_spans;
  LsSpan *spans[2]; /* by parity of the step */
  uint32_t n_spans[2], span_step[2];
} Rank;

/* What moves: a collective or one transfer of a p2p group. Phase by phase, first
 * the latency, then the flow. */
typedef struct Motion Motion;
struct Motion {
  LsEvent start; /* end of the latency of a phase */
  LsFlow flow;
  Call *call;
  uint32_t phase, step;
  void (*finished) (void *run, Motion *m, LsTime at);
  /* Data begin to move (sign 1) or no longer do (-1), at the cost of kernels; may be NULL. */
  void (*moving) (void *run, const Motion *m, int sign);
};

typedef struct {
  Motion motion; /* first member: events lead back here */
  uint32_t id;
  uint32_t n_arrived;
  LsTime arrived;  /* latest */
  uint64_t *frame; /* [n_ranks] of the op that arrived */
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
} Post;

/* The sends of one rank to its next (or previous) neighbour. */
typedef struct {
  Motion motion; /* first member */
  bool is_busy;
  uint32_t from, to;   /* ranks */
  GQueue sends, recvs; /* Post */
  Call *calls;
} Channel;

/* A copy engine. */
typedef struct {
  Motion motion; /* first member */
  bool is_busy;
  uint32_t rank;
  uint64_t frame;
  uint16_t op;
  Call *calls;
} Copy;

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
  Channel *channels;                    /* [2 * n_ranks]: to next, to previous */
  Copy (*copies)[LS_N_COPY_DIRECTIONS]; /* [n_ranks] by LsCopyDirection */
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

/* compile.c */
gboolean run_compile (Run *x, const LsCalibration *calibration, GError **error);
/* The calls of all communicators, channels and copy engines, each once. Errors as of call_plan(). */
gboolean run_plan_calls (Run *x, GError **error);

static inline Frame *
rank_frame (Rank *r, uint64_t ordinal)
{
  return &r->frames[ordinal & (r->frames_cap - 1)];
}

/* Its next instance is the first of a step. */
static inline bool
rank_begins_step (const Rank *r)
{
  return r->next_instance == (r->next_step > 0 ? r->program->n_lead : 0);
}

/* frame.c */
void frame_open (Run *x, Rank *r);           /* of the next instance of the program */
void frame_enter (Rank *r, uint32_t stream); /* past frames without ops of the stream */
void rank_op_ended (Run *x, Rank *r, uint64_t frame, uint16_t op, LsTime at);
void rank_ready (Run *x, Rank *r); /* advance it once all completions of this instant are applied */

/* kernel_run.c */
/* As much of a kernel's rate as communication beside it ever takes. */
#define MOST_SHARE 0.95
/* An op that could start: the head of a stream, when, and what it waited for last. */
typedef struct {
  LsTime start;
  LsTime ready; /* but for a kernel of another stream that runs until start */
  LsCause kind;
  SpanRef span;
  uint32_t stream; /* NO_ID: none */
} Candidate;

void kernel_init (Run *x, Rank *r);
bool kernel_is_persistent (const Run *x,
                           uint32_t kernel); /* of the plan: a GEMM whose blocks keep their SMs */
double kernel_least_lost (const Run *x,
                          uint32_t kernel); /* of the SMs that communication holds, what it loses at least */
/* slow: of its rank. */
LsTime kernel_time_alone (double slow, const XOp *op);
void kernel_run_alone (Run *x, Rank *r, const Candidate *c); /* it meets nobody         */
void kernel_start (Run *x, Rank *r, const Candidate *c);     /* as an activity          */
/* Communication that holds this share of the SMs was launched (+1) or is over (-1). */
void kernel_residency (Run *x, Rank *r, const LsOp *op, uint64_t sm_share, int sign);
/* Moving data take this share of a compute-bound kernel's rate (+1), or no longer do (-1). */
void kernel_stall (Run *x, Rank *r, uint64_t stall, int sign);

/* coarsen.c: segments in one piece. */
void coarsen_init (Run *x);
void coarsen_clear (Run *x);
void coarsen_rank_clear (Rank *r);
/* The frame of this head, as a whole, if it is known and nothing can disturb it; false: op by op. */
bool coarsen_frame (Run *x, Rank *r, const Candidate *head);
void coarsen_frame_over (Run *x, Rank *r, uint64_t frame); /* the one that retires */

/* rank.c */
void host_advance (Run *x, Rank *r);                                         /* issues what it can */
EventRecord *event_record (Run *x, Rank *r, const Frame *f, const LsOp *op); /* of a record or wait */
void rank_init (Run *x, Rank *r, uint32_t id);
void rank_clear (Rank *r);
void rank_advance (Run *x, Rank *r);

/* spans.c: something of this step was over at this time, of weight digest_of() or, of several alike, their
 * sum: the digest is linear in it, and depends on times from the start of the step only. */
uint64_t digest_of (uint64_t what);
void digest_add (Run *x, uint32_t step, LsTime at, uint64_t weight);
uint64_t digest_of_step (const Run *x, uint32_t step); /* that was over last on all ranks: its duration too */

/* motion.c */
void motions_init (Run *x, const double *capacity);
void motions_clear (Run *x);
void motion_init (Motion *m, void (*finished) (void *run, Motion *m, LsTime at),
                  void (*moving) (void *run, const Motion *m, int sign));
void motion_begin (Run *x, Motion *m, Call *call, uint32_t step, LsTime at);
/* The script, message by message, with its motions. */
Messages *motion_messages (Run *x, const LsScript *script);

/* All partners of an op are there (a group: when its last transfer's are); it is over. */
void comm_matched (Run *x, uint32_t rank, uint64_t frame, uint16_t op, LsTime at);
void comm_over (Run *x, uint32_t rank, uint64_t frame, uint16_t op, uint64_t sm_share, LsTime at);

/* rendezvous.c */
void collectives_init (Run *x);
void comm_launch (Run *x, Rank *r, uint64_t frame, uint16_t op, LsTime at);

/* group.c */
void groups_init (Run *x);
void groups_clear (Run *x);
void group_launch (Run *x, Rank *r, uint64_t frame, uint16_t op, LsTime at);
Channel *group_channel (Run *x, const Rank *r, const LsTransfer *t);
/* A group of which some transfer has found no partner has not matched yet. */
void group_hide_partial_matches (Rank *r);

/* copy.c */
void copies_init (Run *x);
bool copy_can_start (const Run *x, const Rank *r, const LsOp *op);
void copy_start (Run *x, Rank *r, uint64_t frame, uint16_t op, LsTime at);

/* conserve.c: a violation is LS_ERROR_FAILED, an error of ours and not of the input */
void conserve_flow (Run *x, const LsFlow *f, double asked);           /* that is over  */
gboolean conserve_step (const Run *x, uint32_t step, GError **error); /* that is over */

/* spans.c */
SpanRef span_add (Run *x, Rank *r, const Frame *f, uint16_t op, LsTime start, LsTime matched, LsTime end,
                  LsCause kind, SpanRef cause);
LsSpan *span_at (Rank *r, SpanRef span);

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
