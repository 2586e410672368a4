/* exec/replay/rank.h — a rank: its host, its streams, its open frames, its kernels (private).
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
 * A rank may go ahead of the clock where a hook says that nothing outside can touch
 * it (../extras.c): then what begins later than now need not wait for an event. */
#ifndef LS_EXEC_REPLAY_RANK_H
#define LS_EXEC_REPLAY_RANK_H

#include "core/flow.h"
#include "compute/cost.h"
#include "exec/replay/timeline.h"
#include "network/coll.h"

typedef struct Run Run;

/* ---- what is known before the clock starts: segments as the replay wants them (compile.c) ---- */

#define NO_OP UINT16_MAX
#define NO_ID UINT32_MAX

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
  uint8_t takes;   /* LsOpTakes of its kind */
  bool host_waits; /* of its kind           */
} XOp;

typedef struct XSegment {
  uint32_t n_ops;
  const LsOp *ops;
  XOp *x;
  uint32_t n_ahead; /* the first ops, up to one of the host's own: they wait for nothing to be issued */
  LsTime *issued;   /* [n_ahead + 1] since the first is begun: when each is; last, when the host goes on */
  uint16_t first[LS_N_STREAMS];
  uint16_t n_calls[LS_N_SLOTS];
  uint32_t n_spans;
} XSegment;

/* What kernels of one kind of node take (LsClusterSpec.others). */
typedef struct {
  const LsGpu *gpu; /* NULL: no rank is on such a node           */
  const LsAround *around;
  LsGemms gemms;       /* how GEMMs of its jobs lie on the SMs             */
  LsKernelCost *costs; /* [n_kernels]                              */
  XSegment *segments;  /* [n_segments], the same but for their times */
} XKind;

gboolean run_compile (Run *x, GError **error);
/* The calls of all communicators, channels and copy engines, each once. Errors as of call_plan(). */
gboolean run_plan_calls (Run *x, GError **error);

/* ---- references to spans, spans as recorded, and the digest of a step (spans.c) ---- */

typedef struct Rank Rank;
typedef struct Frame Frame;
typedef struct XJob XJob;

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

/* matched: or alone, as in LsSpan. */
SpanRef span_add (Run *x, Rank *r, const Frame *f, uint16_t op, LsTime start, LsTime matched, LsTime end,
                  LsCause kind, SpanRef cause);
LsSpan *span_at (Rank *r, SpanRef span); /* NULL: none, or not kept */
/* n spans of ops that are over, and so read again only if the step is reported. True: it never is; they are
 * counted from *ret_first on, and need not be added. False: nothing has changed. */
bool spans_skip (Run *x, Rank *r, uint32_t step, uint32_t n, uint32_t *ret_first);

/* Something of this step was over at this time, of weight digest_of() or, of several alike, their
 * sum: the digest is linear in it, and depends on times from the start of the step only. */
static inline uint64_t
digest_of (uint64_t what)
{
  return ls_sig_mix (what + LS_SIG_SALT_A);
}

/* The weight of one rank for what it does: a copy, or what it sends to a rank at that distance. */
#define DIGEST_COPY            UINT64_MAX
#define DIGEST_RANKS_PER_BLOCK 4096
static inline uint64_t
digest_word_of_rank (uint32_t rank_in_block)
{
  return ls_sig_mix (LS_SIG_SALT_B + rank_in_block * LS_SIG_SALT_A);
}

static inline uint64_t
digest_word_of_block (uint64_t what, uint32_t block)
{
  return ls_sig_mix (digest_of (what) + block * LS_SIG_SALT_A);
}

static inline uint64_t
digest_weight (uint64_t what, uint32_t rank)
{
  return digest_word_of_rank (rank % DIGEST_RANKS_PER_BLOCK)
      * digest_word_of_block (what, rank / DIGEST_RANKS_PER_BLOCK);
}

void digest_add (XJob *job, uint32_t step, LsTime at, uint64_t weight);
uint64_t digest_of_step (const XJob *job, uint32_t step); /* over last on all ranks: its duration too */

/* ---- a rank ---- */

/* CUDA queues about this many launches per device before a launch blocks
 * (observed limit of 1024 pending launches, NVIDIA developer forum). Counted by
 * whole frames: a frame is opened when fewer ops are pending, and the host then
 * goes on from the end of the op that made room. */
#define LOOKAHEAD_OPS 1024

typedef enum { OP_WAITING, OP_ISSUED, OP_RUNNING, OP_ENDED } OpState;

struct Frame {
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
  uint8_t *state; /* OpState */
  union {
    LsTime *issued; /* when, of ops that have not ended */
    LsTime *ended;  /* when, of those that have         */
  };
  union {
    SpanRef *host_span; /* what held up the host, of ops that are issued       */
    SpanRef *span;      /* their own, of ops that are begun; of the host: above */
  };
};

typedef struct {
  uint64_t frame;    /* ordinal since the start of the run     */
  uint16_t op;       /* head; NO_OP: past the end of the frame */
  uint8_t tail_kind; /* LsCause: why the tail is where it is */
  bool is_busy;      /* the head is running                    */
  LsTime tail;       /* when the stream became free            */
  SpanRef tail_span;
  uint32_t n_unmatched, n_moving; /* of a group that runs: transfers without a partner; not over */
} Stream;

typedef struct {
  LsTime at;
  SpanRef span;
  uint32_t step; /* + 1; 0: never recorded */
} EventRecord;

struct Rank {
  uint32_t id;
  const LsProgram *program;
  const LsBinding *binding;
  XJob *job;
  const XKind *kind; /* of its node           */
  double slow;       /* kernel time multiplier */

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
  uint32_t with_head; /* bit s: stream s has a head */
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

  bool keeps_spans;
  /* By parity of the step: all of it, the i-th at i; or the last ones, at i & span_mask (spans.c). */
  LsSpan *spans[2];
  uint32_t n_spans[2], span_step[2], span_mask[2];
  uint32_t span_room[2]; /* of a step that is kept as a whole: how many there is room for */
};

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
typedef struct Candidate {
  LsTime start;
  LsTime ready; /* but for a kernel of another stream that runs until start */
  LsCause kind;
  bool is_barred; /* communication that kernels of the same instant keep from SMs (kernel_run.c) */
  SpanRef span;
  uint32_t stream; /* NO_ID: none */
} Candidate;

/* It does not start before, and that is why. */
static inline void
candidate_later (Candidate *c, LsTime at, LsCause kind, SpanRef span)
{
  if (at <= c->start)
    return;
  c->start = at;
  c->kind = kind;
  c->span = span;
}

void kernel_init (Run *x, Rank *r);
/* Of the SMs that communication holds, what it loses at least. */
double kernel_least_lost (const Run *x, const XKind *kind, uint32_t kernel);
/* slow: of its rank. */
LsTime kernel_time_alone (double slow, const XOp *op);
void kernel_run_alone (Run *x, Rank *r, const Candidate *c); /* it meets nobody         */
void kernel_start (Run *x, Rank *r, const Candidate *c);     /* as an activity          */
/* When communication that needs SMs and is ready finds some, if the kernel that runs now runs on until then;
 * GEMMs may leave it a margin. */
LsTime kernel_lets_in (const Run *x, Rank *r, LsTime ready, bool has_margin);
/* Communication that holds this share of the SMs was launched (+1) or is over (-1). */
void kernel_residency (Run *x, Rank *r, const LsOp *op, uint64_t sm_share, int sign);
/* Moving data take this share of a compute-bound kernel's rate (+1), or no longer do (-1). */
void kernel_stall (Run *x, Rank *r, uint64_t stall, int sign);

/* rank.c */
void host_advance (Run *x, Rank *r); /* issues what it can */
void rank_init (Run *x, Rank *r, uint32_t id);
void rank_clear (Rank *r);
void rank_advance (Run *x, Rank *r);

/* op_begin.c: what begins an op, by its kind: one row each. The other half of plan/plan.h: how a replay
 * treats a kind that stands in a stream. Kinds of the host (LS_TAKES_HOST) have no row: rank.c issues
 * them. */
typedef struct {
  /* Of the head of a stream, issued, once all that it depends on is over: false if it waits for something
   * whose end is not known; else c->start may be put off, with its cause. NULL: it waits for nothing more. */
  bool (*may_begin) (Run *x, Rank *r, const Frame *f, uint16_t op, Candidate *c);
  /* Begins the op, head of the stream of c. Up to alone_until nothing else of the rank begins, nor can
   * anything outside touch it; 0: something may. False: not before the clock is at c->start. */
  bool (*begin) (Run *x, Rank *r, const Candidate *c, const XOp *op, LsTime alone_until);
  /* Of what is launched: it is resident, or on a copy engine, from then on. NULL: of others. */
  void (*start) (Run *x, Rank *r, uint64_t frame, uint16_t op, LsTime at);
  /* Of the SMs, what it holds, in 1 / LS_COEF_ONE. NULL: none. */
  uint64_t (*sm_share) (Run *x, const Rank *r, const LsOp *op);
} OpBegin;

extern const OpBegin op_begins[LS_N_OP_KINDS];

/* Of a record or wait. */
EventRecord *event_record (Run *x, Rank *r, const Frame *f, const LsOp *op);

#endif
