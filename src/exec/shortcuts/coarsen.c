/* exec/shortcuts/coarsen.c — segments that nothing disturbs, in one piece.
 *
 * Problem. A step of a pipeline runs the same forward and backward hundreds of times on each
 * rank, op by op, and most of them meet nobody: their collectives are among ranks of one
 * class, over links that only these use.
 *
 * Solution. A frame that nothing can disturb until it ends is recorded op by op when it first
 * runs: when each op ends, relative to where the frame begins. When the same segment begins in
 * the same state again, all of that is added at once, and the rank stands at its end, ahead of
 * the clock, as when it runs ahead kernel by kernel (rank.h).
 *
 * What it begins with. Either all that it uses was idle when its first op was issued, and times
 * count from there; or its compute stream was the last to be busy, times count from there, and
 * the host was so far ahead that it held nothing up, or ahead by an exact time. The rest of the
 * state is in no op's way.
 *
 * When nothing can disturb it. (1) The rank may run ahead: nothing of it is resident, copied or
 * running. (2) All earlier frames are over. (3) Its collectives are of communicators that are one
 * rank in the quotient, and load what nothing loads in which that rank has no part
 * (fold.h). (4) All ops of other streams, in this frame and in those that the host may
 * have opened before it ends, follow ops of the compute stream of their frame, or all that was
 * issued there before: none starts before this frame has left the compute stream. (5) It ends
 * with an op of the compute stream. (6) What the host waits for in those frames follows the compute
 * stream too, and it does not come to a step that other ranks may not let it begin: else it would
 * go on half-way, and find more of the launch queue pending. So no frame has to be opened half-way.
 *
 * Worked example. A forward of 10 us is issued while the compute stream is busy until 50 us,
 * runs from 50 to 60 and is recorded. The next one finds the stream busy until 80: it ends at 90.
 * One that is issued at 200, behind a send that the host waited for, finds everything idle: it is
 * recorded again, as its kernels may now wait for the host.
 *
 * What the host does meanwhile is done too: where the launch queue is full, it opens frames as ops
 * end. --coarsen check compares with a run op by op. Reference: memoisation (Michie, Nature 218,
 * 1968). */

#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "exec/extras.h"

/* How far ahead the host was. */
#define LEAD_IDLE   (-1) /* not at all: everything was idle when the first op was issued */
#define LEAD_ENOUGH LS_TIME_NEVER
#define LEAD_NEVER  (-2)

/* A span: of the profile, by number; or of before. */
typedef uint32_t Ref;
#define REF_NONE         LS_SPAN_NONE
#define REF_HOST         (LS_SPAN_NONE - 1) /* what held the host up                        */
#define REF_COMPUTE      (LS_SPAN_NONE - 2) /* the tail of the compute stream, and its kind  */
#define REF_JOINED       (LS_SPAN_NONE - 3) /* the same, as a dependency of another stream   */
#define REF_UNKNOWN      (LS_SPAN_NONE - 4)
#define IS_INTERNAL(ref) ((ref) < REF_UNKNOWN)

/* Of a stream or slot, by number, or of an op that records. */
typedef struct {
  LsTime at;
  Ref span;
  uint16_t of;
  uint8_t kind; /* of a stream: LsCause */
} End;

typedef struct {
  LsTime at;
  Call *call;
  uint32_t comm;
} CallEnd;

/* Times count from where the frame begins. */
typedef struct Profile Profile;
struct Profile {
  Profile *next;
  LsTime lead;
  LsTime end; /* of all, and of the compute stream */
  LsTime gpu_free;
  LsTime *ends; /* [n_ops] in order of time */
  uint32_t n_streams, n_slots, n_records, n_calls, n_spans;
  End *streams, *slots, *records;
  CallEnd *calls;
  LsSpan *spans; /* .cause is a Ref */
};

/* Of a segment, on a rank: beyond, it stays op by op. */
#define MOST_PROFILES 8

/* Of a segment. */
typedef struct {
  uint32_t slots;      /* bit s: calls on slot s                                   */
  uint32_t streams;    /* bit s: uses stream s, or waits for it as it is before    */
  uint32_t n_launched; /* ops that fill the launch queue: what the host does itself is over when issued */
  bool is_quiet;       /* nothing in it starts before the compute stream gets there */
  bool is_fit;         /* for being run in one piece                               */
} Look;

/* Of a rank. */
typedef struct {
  GHashTable *of_segment; /* XSegment -> Profile */
  uint32_t slots;         /* bit s: what the communicator of slot s loads is the rank's own */
  bool is_recording;
  uint64_t frame; /* that is recorded */
  LsTime lead, begin;
  uint32_t first_span;
} Profiles;

struct Coarse {
  Look *looks;        /* [n_segments] */
  uint32_t **quiet;   /* [n_roles] of each instance; see quiet_after() */
  Profiles *profiles; /* [n_ranks]    */
  uint64_t n_frames;  /* that ran in one piece */
};

static Profiles *
profiles_of (const Run *x, const Rank *r)
{
  return &x->extras->coarse->profiles[r->id];
}

/* --- which segments ----------------------------------------------------------------- */

/* Whether each op of another stream follows one of the compute stream, here or before, and so does
 * each wait of the host. */
static bool
is_quiet (const XSegment *seg)
{
  g_autofree bool *follows = g_new0 (bool, seg->n_ops + 1);
  bool stream_follows[LS_N_STREAMS] = { [LS_STREAM_COMPUTE] = true };
  for (uint32_t i = 0; i < seg->n_ops; i++) {
    const XOp *op = &seg->x[i];
    bool is_sync = ls_op_kinds[op->kind].host_waits;
    if (ls_op_is_of_host (op->kind) && (!is_sync || op->n_deps == 0))
      continue;
    follows[i] = !is_sync && stream_follows[op->stream];
    for (uint32_t d = 0; d < op->n_deps; d++) {
      bool is_end = op->deps[d].kind == LS_DEP_END, is_tail = op->deps[d].kind == LS_DEP_STREAM;
      follows[i]
          |= (is_end && follows[op->deps[d].index]) || (is_tail && op->deps[d].index == LS_STREAM_COMPUTE);
    }
    if (!follows[i])
      return false;
    stream_follows[op->stream] = true;
  }
  return true;
}

/* [n_instances] ops from behind an instance up to the next segment that is not quiet, or so many
 * that the host cannot have opened it before the instance is over. */
static uint32_t *
quiet_after (const Run *x, const LsProgram *p)
{
  uint32_t *quiet = ls_arena_new_array (x->arena, uint32_t, p->n_instances + 1),
           n_looked = 2 * (p->n_instances - p->n_lead) + p->n_lead;
  for (uint32_t k = n_looked; k-- > 0;) {
    uint32_t i = k >= p->n_instances ? k - (p->n_instances - p->n_lead) : k,
             next = i + 1 < p->n_instances ? i + 1 : p->n_lead;
    const Look *look = &x->extras->coarse->looks[p->instances[next].segment];
    quiet[i] = look->is_quiet ? MIN (LOOKAHEAD_OPS, look->n_launched + quiet[next]) : 0;
  }
  return quiet;
}

static uint32_t
private_slots (const Run *x, const Rank *r)
{
  uint32_t slots = 0;
  for (uint32_t s = 0; s < LS_SLOT_PREV; s++) {
    uint32_t c = r->binding->comm[s];
    bool is_alone = c != UINT32_MAX
        && (ls_plan_communicator (x->plan, c).n_ranks == 1
            && (!x->extras->fold || x->extras->fold->is_private[c]));
    slots |= is_alone ? 1u << s : 0;
  }
  return slots;
}

/* Of one that is used. Its first op of the compute stream must be no record, which would hand on what is not
 * known. */
static Look
look_at (const XSegment *seg)
{
  uint16_t first = seg->first[LS_STREAM_COMPUTE];
  Look look = { .is_quiet = is_quiet (seg) };
  look.is_fit = look.is_quiet && first != NO_OP && !ls_op_kinds[seg->x[first].kind].records;
  for (uint32_t s = 0; s < LS_N_SLOTS; s++)
    look.slots |= seg->n_calls[s] > 0 ? 1u << s : 0;
  for (uint32_t i = 0; i < seg->n_ops; i++) {
    const XOp *op = &seg->x[i];
    look.is_fit &= ls_op_takes (op->kind, LS_TAKES_GPU) || ls_op_has (op->kind, LS_HAS_CALL)
        || ls_op_kinds[op->kind].records;
    look.n_launched += !ls_op_is_of_host (op->kind);
    look.streams |= 1u << op->stream;
    for (uint32_t d = 0; d < op->n_deps; d++)
      look.streams |= op->deps[d].kind == LS_DEP_STREAM ? 1u << op->deps[d].index : 0;
  }
  return look;
}

/* --- recording -------------------------------------------------------------------------- */

/* REF_UNKNOWN: of before. */
static Ref
ref_of (const Run *x, const Rank *r, const Frame *f, SpanRef span)
{
  if (!r->keeps_spans)
    return REF_NONE;
  bool is_own = span_is_of (span, f->step) && SPAN_INDEX (span) >= profiles_of (x, r)->first_span;
  return is_own ? SPAN_INDEX (span) - profiles_of (x, r)->first_span : REF_UNKNOWN;
}

/* Of a span whose cause was there before the frame began. The first op waits for nothing but what
 * the frame begins with, others may wait for the host. */
static Ref
ref_before (const Run *x, const Rank *r, const XOp *op, const LsSpan *s)
{
  if (s->start > profiles_of (x, r)->begin || profiles_of (x, r)->lead == LEAD_IDLE)
    return s->cause_kind == LS_CAUSE_HOST ? REF_HOST : REF_UNKNOWN;
  if (op->stream == LS_STREAM_COMPUTE)
    return REF_COMPUTE;
  return s->cause_kind == LS_CAUSE_DEP ? REF_JOINED : REF_UNKNOWN;
}

static void
record_call (Run *x, const Rank *r, const Frame *f, Profile *p, uint16_t i)
{
  const XOp *op = &f->seg->x[i];
  uint32_t comm = r->binding->comm[op->slot];
  LsTime at = f->ended[i] - profiles_of (x, r)->begin;
  Ref span = ref_of (x, r, f, f->span[i]);
  p->calls[p->n_calls++]
      = (CallEnd) { at, call_find (x->comms[comm].calls, collective_key (&f->seg->ops[i])), comm };
  if (op->call + 1 == f->seg->n_calls[op->slot])
    p->slots[p->n_slots++] = (End) { at, span, op->slot, 0 };
}

static void
record_ops (Run *x, Rank *r, const Frame *f, Profile *p)
{
  LsTime begin = profiles_of (x, r)->begin;
  uint16_t last[LS_N_STREAMS];
  memset (last, 0xff, sizeof last); /* NO_OP */
  p->gpu_free = LS_TIME_NEVER;
  for (uint16_t i = 0; i < f->seg->n_ops; i++) {
    const XOp *op = &f->seg->x[i];
    last[op->stream] = i;
    p->ends[i] = f->ended[i] - begin;
    p->end = MAX (p->end, p->ends[i]);
    if (ls_op_has (op->kind, LS_HAS_CALL))
      record_call (x, r, f, p, i);
    else if (ls_op_takes (op->kind, LS_TAKES_GPU))
      p->gpu_free = p->gpu_free == LS_TIME_NEVER ? p->ends[i] : MAX (p->gpu_free, p->ends[i]);
    else if (f->seg->ops[i].event != LS_EVENT_NONE)
      p->records[p->n_records++] = (End) { p->ends[i], ref_of (x, r, f, f->span[i]), i, 0 };
  }
  for (uint32_t s = 0; s < LS_N_STREAMS; s++)
    if (last[s] != NO_OP)
      p->streams[p->n_streams++] = (End) { f->ended[last[s]] - begin, ref_of (x, r, f, f->span[last[s]]),
                                           (uint16_t) s, r->streams[s].tail_kind };
  qsort (p->ends, f->seg->n_ops, sizeof *p->ends, ls_compare_int64);
}

static void
record_spans (const Run *x, Rank *r, const Frame *f, Profile *p)
{
  uint32_t first = profiles_of (x, r)->first_span;
  p->n_spans = r->keeps_spans ? f->seg->n_spans : 0;
  for (uint32_t i = 0; i < p->n_spans; i++) {
    LsSpan *s = &p->spans[i];
    *s = *span_at (r, span_ref (f->step, first + i));
    const XOp *op = &f->seg->x[s->op];
    Ref cause = ref_of (x, r, f, s->cause);
    s->cause = cause != REF_UNKNOWN ? cause : ref_before (x, r, op, s);
    s->start -= profiles_of (x, r)->begin;
    s->end -= profiles_of (x, r)->begin;
    if (ls_op_has (op->kind, LS_HAS_CALL))
      s->matched -= profiles_of (x, r)->begin;
  }
}

/* Whether it ended with the compute stream, and had its spans to itself. */
static bool
is_closed (const Run *x, const Rank *r, const Frame *f)
{
  LsTime end = 0, compute_end = 0;
  for (uint16_t i = 0; i < f->seg->n_ops; i++) {
    end = MAX (end, f->ended[i]);
    if (f->seg->x[i].stream == LS_STREAM_COMPUTE)
      compute_end = f->ended[i];
  }
  bool is_apart
      = !r->keeps_spans || r->n_spans[f->step & 1] == profiles_of (x, r)->first_span + f->seg->n_spans;
  return compute_end == end && is_apart;
}

/* Whether all its causes are understood, and what it leaves behind is its own. */
static bool
is_understood (const Profile *p)
{
  for (uint32_t i = 0; i < p->n_spans; i++)
    if (p->spans[i].cause == REF_UNKNOWN)
      return false;
  for (uint32_t i = 0; i < p->n_streams; i++)
    if (p->streams[i].span == REF_UNKNOWN)
      return false;
  for (uint32_t i = 0; i < p->n_records; i++)
    if (p->records[i].span == REF_UNKNOWN)
      return false;
  return true;
}

static Profile *
profile_new (Run *x, Rank *r, const Frame *f)
{
  uint32_t n = f->seg->n_ops, n_calls = 0;
  for (uint32_t s = 0; s < LS_N_SLOTS; s++)
    n_calls += f->seg->n_calls[s];
  Profile *p = ls_arena_new_array (x->arena, Profile, 1);
  p->lead = profiles_of (x, r)->lead;
  p->ends = ls_arena_new_array (x->arena, LsTime, n);
  p->streams = ls_arena_new_array (x->arena, End, LS_N_STREAMS);
  p->slots = ls_arena_new_array (x->arena, End, LS_N_SLOTS);
  p->records = ls_arena_new_array (x->arena, End, MAX (1, n - f->seg->n_spans));
  p->calls = ls_arena_new_array (x->arena, CallEnd, MAX (1, n_calls));
  p->spans = ls_arena_new_array (x->arena, LsSpan, r->keeps_spans ? MAX (1, f->seg->n_spans) : 1);
  record_ops (x, r, f, p);
  record_spans (x, r, f, p);
  return p;
}

static void
frame_over (Run *x, Rank *r, uint64_t frame)
{
  Profiles *all = profiles_of (x, r);
  if (!all->is_recording || all->frame != frame)
    return;
  Frame *f = rank_frame (r, frame);
  all->is_recording = false;
  bool is_of_use = is_closed (x, r, f);
  Profile *p = is_of_use ? profile_new (x, r, f) : ls_arena_new_array (x->arena, Profile, 1);
  if (!is_of_use || !is_understood (p))
    p->lead = LEAD_NEVER; /* it counts, but is never found */
  p->next = g_hash_table_lookup (all->of_segment, f->seg);
  g_hash_table_replace (all->of_segment, (gpointer) f->seg, p);
}

/* --- what was recorded, from another time on -------------------------------------------------- */

typedef struct {
  Rank *r;
  const Frame *f;
  const Profile *p;
  LsTime begin;
  uint32_t first_span;
  SpanRef compute_span; /* before */
  LsCause compute_kind;
} Replay;

/* *kind: as it was recorded. */
static SpanRef
span_of (const Replay *y, Ref ref, uint16_t op, uint8_t *kind)
{
  if (ref == REF_NONE)
    return LS_SPAN_NONE;
  if (IS_INTERNAL (ref))
    return span_ref (y->f->step, y->first_span + ref);
  if (ref == REF_HOST)
    return y->f->host_span[op];
  if (ref == REF_COMPUTE)
    *kind = (uint8_t) y->compute_kind;
  return y->compute_span;
}

static void
replay_spans (Run *x, Replay *y)
{
  if (spans_skip (x, y->r, y->f->step, y->p->n_spans, &y->first_span))
    return;
  for (uint32_t i = 0; i < y->p->n_spans; i++) {
    const LsSpan *s = &y->p->spans[i];
    uint8_t kind = s->cause_kind;
    SpanRef cause = span_of (y, s->cause, s->op, &kind);
    bool is_kernel = ls_op_takes (y->f->seg->x[s->op].kind, LS_TAKES_GPU);
    SpanRef own
        = span_add (x, y->r, y->f, s->op, y->begin + s->start, is_kernel ? s->alone : y->begin + s->matched,
                    y->begin + s->end, (LsCause) kind, cause);
    if (i == 0)
      y->first_span = SPAN_INDEX (own);
  }
}

static void
replay_calls (Run *x, const Replay *y)
{
  for (uint32_t i = 0; i < y->p->n_calls; i++) {
    const CallEnd *c = &y->p->calls[i];
    call_count (c->call, y->f->step, 1, 1);
    digest_add (y->r->job, y->f->step, y->begin + c->at, whole_weight_of_comm (x->whole, c->comm));
  }
  for (uint32_t i = 0; i < y->p->n_slots; i++) {
    const End *s = &y->p->slots[i];
    g_assert (y->r->calls_done[s->of] == y->f->call_base[s->of]);
    y->r->calls_done[s->of] += y->f->seg->n_calls[s->of];
    y->r->call_end[s->of] = y->begin + s->at;
    y->r->call_span[s->of] = span_of (y, s->span, 0, &(uint8_t) { 0 });
  }
}

static void
replay_streams (Run *x, const Replay *y)
{
  Rank *r = y->r;
  uint64_t frame = r->frames_first;
  for (uint32_t i = 0; i < y->p->n_records; i++) {
    const End *e = &y->p->records[i];
    *event_record (x, r, y->f, &y->f->seg->ops[e->of])
        = (EventRecord) { y->begin + e->at, span_of (y, e->span, e->of, &(uint8_t) { 0 }), y->f->step + 1 };
  }
  for (uint32_t i = 0; i < y->p->n_streams; i++) {
    const End *e = &y->p->streams[i];
    Stream *st = &r->streams[e->of];
    st->tail = y->begin + e->at;
    st->tail_kind = e->kind;
    st->tail_span = span_of (y, e->span, 0, &st->tail_kind);
    st->op = NO_OP;
    r->with_head &= ~(1u << e->of);
    st->frame = frame + 1;
    frame_enter (r, e->of);
  }
  if (y->p->gpu_free != LS_TIME_NEVER)
    r->gpu_free = y->begin + y->p->gpu_free;
}

/* Ops end one by one, and the host opens frames as soon as there is room. */
static void
replay_room (Run *x, const Replay *y)
{
  Rank *r = y->r;
  uint32_t n = y->f->seg->n_ops, done = 0;
  g_assert (y->f->n_left == n && r->n_outstanding >= n);
  while (done < n) {
    bool is_full = r->n_outstanding >= LOOKAHEAD_OPS;
    uint32_t k = MIN (n - done, is_full ? r->n_outstanding - LOOKAHEAD_OPS + 1 : n);
    done += k;
    r->n_outstanding -= k;
    if (!is_full || r->n_outstanding >= LOOKAHEAD_OPS)
      continue;
    r->room_at = y->begin + y->p->ends[done - 1];
    host_advance (x, r);
  }
}

/* The oldest open frame of the rank, all at once; it begins at that time. */
static void
profile_replay (Run *x, Rank *r, const Profile *p, LsTime begin)
{
  const Stream *compute = &r->streams[LS_STREAM_COMPUTE];
  uint64_t frame = r->frames_first;
  Replay y = { .r = r,
               .f = rank_frame (r, frame),
               .p = p,
               .begin = begin,
               .compute_span = compute->tail_span,
               .compute_kind = (LsCause) compute->tail_kind };
  uint32_t step = y.f->step;
  replay_spans (x, &y);
  replay_calls (x, &y);
  replay_streams (x, &y);
  r->step_end[step & 1] = MAX (r->step_end[step & 1], begin + p->end);
  x->n_ops += y.f->seg->n_ops;
  replay_room (x, &y); /* the frame stays open meanwhile, but may move */
  rank_frame (r, frame)->n_left = 0;
}

/* --- what a frame begins with -------------------------------------------------------------- */

/* False: something else than the host or the compute stream may hold it up. */
static bool
find_beginning (const Run *x, const Rank *r, const Frame *f, LsTime *ret_begin, LsTime *ret_lead)
{
  LsTime issued = f->issued[0], compute = r->streams[LS_STREAM_COMPUTE].tail, others = 0;
  for (uint32_t s = 0; s < LS_N_STREAMS; s++)
    if (s != LS_STREAM_COMPUTE && (x->extras->coarse->looks[f->instance->segment].streams & 1u << s) != 0)
      others = MAX (others, r->streams[s].tail);
  for (uint32_t s = 0; s < LS_N_SLOTS; s++)
    if (f->seg->n_calls[s] > 0)
      others = MAX (others, r->call_end[s]);
  bool is_idle = MAX (MAX (compute, others), r->gpu_free) < issued;
  *ret_begin = is_idle ? issued : compute;
  *ret_lead = is_idle ? LEAD_IDLE : f->issued[f->seg->n_ops - 1] <= compute ? LEAD_ENOUGH : compute - issued;
  return is_idle || (issued <= compute && others < compute && r->gpu_free <= compute);
}

/* Whether all have ended the step before: the host is let into the next one when it gets there, or
 * not before this rank has ended its own. */
static bool
is_in_step (const XJob *job, const Frame *f)
{
  return f->step == 0 || job->step_n_done[f->step - 1] == job->n_ranks;
}

/* --- a frame ------------------------------------------------------------------------------------ */

static bool
take_frame (Run *x, Rank *r, const Candidate *head)
{
  Coarse *coarse = x->extras->coarse;
  Profiles *all = &coarse->profiles[r->id];
  uint64_t ordinal = r->streams[head->stream].frame;
  if (ordinal != r->frames_first)
    return false;
  const Frame *f = rank_frame (r, ordinal);
  const XSegment *seg = f->seg;
  bool is_whole = f->n_left == seg->n_ops && f->n_issued == seg->n_ops;
  const Look *look = &coarse->looks[f->instance->segment];
  if (!is_whole || !look->is_fit || !is_in_step (r->job, f) || (look->slots & ~all->slots) != 0
      || coarse->quiet[r->binding->role][f->instance_id] < LOOKAHEAD_OPS)
    return false;
  LsTime begin, lead;
  if (!find_beginning (x, r, f, &begin, &lead) || begin < x->engine.now)
    return false;
  if (!all->of_segment)
    all->of_segment = ls_arena_table (x->arena, NULL, NULL);
  uint32_t n = 0;
  for (const Profile *p = g_hash_table_lookup (all->of_segment, seg); p; p = p->next, n++)
    if (p->lead == lead) {
      profile_replay (x, r, p, begin);
      coarse->n_frames++;
      return true;
    }
  all->is_recording = n < MOST_PROFILES;
  all->frame = ordinal;
  all->begin = begin;
  all->lead = lead;
  all->first_span = r->keeps_spans && r->span_step[f->step & 1] == f->step + 1 ? r->n_spans[f->step & 1] : 0;
  return false;
}

/* --- a run -------------------------------------------------------------------------------------- */

void
coarsen_init (Run *x)
{
  bool is_on = x->extras->options->coarsen != LS_SHORTCUT_OFF && x->options.network != LS_NETWORK_STEP
      && x->hooks.may_run_ahead;
  if (!is_on)
    return;
  Coarse *coarse = x->extras->coarse = ls_arena_new_array (x->arena, Coarse, 1);
  coarse->looks = ls_arena_new_array (x->arena, Look, x->plan->n_segments);
  for (uint32_t i = 0; i < x->plan->n_segments; i++)
    if (x->segments[i].x)
      coarse->looks[i] = look_at (&x->segments[i]);
  coarse->quiet = ls_arena_new_array (x->arena, uint32_t *, x->plan->n_roles);
  for (uint32_t i = 0; i < x->plan->n_roles; i++)
    if (x->plan->programs[i].n_instances > 0)
      coarse->quiet[i] = quiet_after (x, &x->plan->programs[i]);
  coarse->profiles = ls_arena_new_array (x->arena, Profiles, x->plan->n_ranks);
  for (uint32_t i = 0; i < x->plan->n_ranks; i++)
    coarse->profiles[i].slots = private_slots (x, &x->ranks[i]);
  x->hooks.take_frame = take_frame;
  x->hooks.frame_over = frame_over;
}

uint64_t
coarsen_count (const Run *x)
{
  return x->extras->coarse ? x->extras->coarse->n_frames : 0;
}
