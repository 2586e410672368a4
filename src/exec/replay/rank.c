/* exec/replay/rank.c — one rank: its host and its streams.
 *
 * rank_advance() repeats: let the host issue what it can; among the heads of all
 * streams take the one that can start first, and start it. Of kernels that wait for the GPU it is
 * the one that has waited longest, as a kernel of another stream slips in behind the one
 * that runs; communication that waits for SMs is behind all others of its instant (kernel_run.c); other
 * ties: first issued. It stops when nothing can start, or when the next start lies in the future and
 * the rank must not run ahead (rank.h), in which case the rank's wake event is set. */
#include <lockstep/error.h>

#include "base/stop.h"
#include "exec/replay/state.h"

static void wake_fired (LsEvent *event, void *context);

void
rank_init (Run *x, Rank *r, uint32_t id)
{
  r->id = id;
  r->binding = &x->bindings[id];
  r->program = &x->plan->programs[r->binding->role];
  r->slow = x->options.slow ? x->options.slow[whole_rank (x->whole, id)] : 1.0;
  r->kind = run_kind_of (x, x->plan, id);
  r->job = run_job_of_role (x, r->binding->role);
  r->host_time = r->job->start;
  r->job->n_ranks++;
  r->host_span = LS_SPAN_NONE;
  g_assert (r->slow > 0 && r->program->n_lead <= r->program->n_instances);
  for (int s = 0; s < LS_N_STREAMS; s++)
    r->streams[s] = (Stream) { .op = NO_OP, .tail_span = NO_ID };
  for (int s = 0; s < LS_N_SLOTS; s++)
    r->call_span[s] = NO_ID;
  if (r->program->n_events > 0)
    r->events
        = g_new0 (EventRecord, (gsize) r->program->n_events * x->plan->n_micro_batches * x->plan->n_chunks);
  r->frames_cap = 4;
  r->frames = g_new0 (Frame, r->frames_cap);
  ls_event_init (&r->wake, wake_fired);
  kernel_init (x, r);
}

void
rank_clear (Rank *r)
{
  for (uint32_t i = 0; i < r->frames_cap; i++) {
    g_free (r->frames[i].issued);
    g_free (r->frames[i].span);
    g_free (r->frames[i].state);
  }
  g_free (r->frames);
  g_free (r->events);
  g_free (r->spans[0]);
  g_free (r->spans[1]);
}

/* --- the host ----------------------------------------------------------- */

/* True, and when and by which span, once the dependency of an op of this frame is met.
 * Ops are issued in program order, so LS_DEP_ISSUE always is. */
static inline bool
dep_met (const Rank *r, const Frame *f, uint64_t ordinal, LsDep dep, LsTime *ret_at, SpanRef *ret_span)
{
  if (dep.kind == LS_DEP_END) {
    *ret_at = f->ended[dep.index];
    *ret_span = f->span[dep.index];
    return f->state[dep.index] == OP_ENDED;
  }
  if (dep.kind == LS_DEP_STREAM) {
    *ret_at = f->tail[dep.index];
    *ret_span = f->tail_span[dep.index];
    return r->streams[dep.index].frame >= ordinal;
  }
  *ret_at = 0;
  *ret_span = LS_SPAN_NONE;
  return true;
}

/* True, and when, once every dependency of a host sync has ended. */
static bool
deps_ended (const Rank *r, const Frame *f, uint64_t ordinal, const XOp *op, LsTime *ret_at, SpanRef *ret_span)
{
  *ret_at = 0;
  *ret_span = LS_SPAN_NONE;
  for (uint32_t d = 0; d < op->n_deps; d++) {
    LsTime end;
    SpanRef by;
    if (!dep_met (r, f, ordinal, op->deps[d], &end, &by))
      return false;
    if (end > *ret_at || *ret_span == LS_SPAN_NONE) {
      *ret_at = MAX (*ret_at, end);
      *ret_span = by;
    }
  }
  return true;
}

/* Those at the beginning of a segment for which the host waits for nothing. */
static void
issue_ahead (Rank *r, Frame *f)
{
  const XSegment *seg = f->seg;
  uint32_t n = seg->n_ahead;
  for (uint32_t i = 0; i < n; i++) {
    f->issued[i] = r->host_time + seg->issued[i];
    f->host_span[i] = r->host_span;
  }
  memset (f->state, OP_ISSUED, n);
  f->n_issued = n;
  r->host_time += seg->issued[n];
}

static bool
issue_op (Run *x, Rank *r, Frame *f, uint64_t ordinal)
{
  uint16_t i = (uint16_t) f->n_issued;
  const XOp *op = &f->seg->x[i];
  g_assert (f->state[i] == OP_WAITING);
  if (op->host_waits) {
    LsTime at;
    SpanRef span;
    if (!deps_ended (r, f, ordinal, op, &at, &span))
      return false;
    if (at > r->host_time) {
      r->host_time = at;
      r->host_span = span;
    }
  }
  r->host_time += op->host;
  f->state[i] = OP_ISSUED;
  f->issued[i] = r->host_time;
  f->host_span[i] = r->host_span;
  f->n_issued++;
  r->host_time += op->host_rest;
  if (op->takes == LS_TAKES_HOST)
    rank_op_ended (x, r, ordinal, i, r->host_time);
  if (op->host_waits && x->hooks.host_passed)
    x->hooks.host_passed (x, r, f, ordinal, i);
  return true;
}

/* Steps may overlap by one: step s waits until all ranks have finished s - 2, and
 * nobody goes beyond the one that follows the reported step. */
static bool
may_begin_step (Run *x, Rank *r)
{
  uint32_t last = x->last_step != NO_ID ? x->last_step + 1 : x->n_steps;
  if (!rank_begins_step (r) || r->next_step < 2)
    return r->next_step <= last;
  r->is_gated = r->job->step_n_done[r->next_step - 2] < r->job->n_ranks;
  if (r->is_gated || r->next_step > last)
    return false;
  r->host_time = MAX (r->host_time, r->job->step_end[r->next_step - 2]); /* may lie ahead of the clock */
  return true;
}

/* With the launch queue full the host blocks until an op ends. */
static bool
has_room (Rank *r)
{
  if (r->n_outstanding >= LOOKAHEAD_OPS) {
    r->is_full = true;
    return false;
  }
  if (r->is_full)
    r->host_time = MAX (r->host_time, r->room_at);
  r->is_full = false;
  return true;
}

/* The frames at the front that are over. */
static void
retire_frames (Run *x, Rank *r)
{
  while (r->frames_first < r->frames_end) {
    Frame *f = rank_frame (r, r->frames_first);
    if (f->n_left > 0)
      return;
    g_assert (f->n_issued == f->seg->n_ops);
    x->n_segments++;
    if (x->hooks.frame_over)
      x->hooks.frame_over (x, r, r->frames_first);
    r->frames_first++;
    if (f->instance_id + 1 == r->program->n_instances)
      step_rank_done (x, r, f->step, r->step_end[f->step & 1]);
  }
}

void
host_advance (Run *x, Rank *r)
{
  for (;;) {
    retire_frames (x, r);
    if (r->frames_end > r->frames_first) {
      uint64_t ordinal = r->frames_end - 1;
      Frame *f = rank_frame (r, ordinal);
      if (f->n_issued == 0)
        issue_ahead (r, f);
      while (f->n_issued < f->seg->n_ops)
        if (!issue_op (x, r, f, ordinal))
          return;
    }
    if (r->program->n_instances == 0 || !has_room (r) || !may_begin_step (x, r))
      return;
    frame_open (x, r);
  }
}

/* --- which head can start, and when ------------------------------------- */

/* start is LS_TIME_NEVER if it depends on something whose end is not known. */
static Candidate
head_start (Run *x, Rank *r, uint32_t s)
{
  Stream *st = &r->streams[s];
  Candidate never = { .start = LS_TIME_NEVER, .stream = NO_ID };
  if (st->is_busy || st->op == NO_OP)
    return never;
  Frame *f = rank_frame (r, st->frame);
  const XOp *op = &f->seg->x[st->op];
  if (f->state[st->op] != OP_ISSUED)
    return never;

  Candidate c = { .start = st->tail, .kind = st->tail_kind, .span = st->tail_span, .stream = s };
  for (uint32_t d = 0; d < op->n_deps; d++) {
    LsTime end;
    SpanRef by;
    if (!dep_met (r, f, st->frame, op->deps[d], &end, &by))
      return never;
    candidate_later (&c, end, LS_CAUSE_DEP, by);
  }
  const OpBegin *by = &op_begins[op->kind];
  if (by->may_begin && !by->may_begin (x, r, f, st->op, &c))
    return never;
  candidate_later (&c, f->issued[st->op], LS_CAUSE_HOST, f->host_span[st->op]);
  if (op->takes != LS_TAKES_GPU)
    c.ready = c.start;
  c.is_barred
      = r->kind->around->priority_wait > 0 && by->sm_share && by->sm_share (x, r, &f->seg->ops[st->op]) > 0;
  if (c.is_barred)
    c.start = c.ready = kernel_lets_in (x, r, c.start, f->seg->ops[st->op].has_margin);
  return c;
}

/* Of two that could start at one instant. */
static bool
is_before (const Rank *r, const Candidate *c, const Candidate *best)
{
  const Stream *a = &r->streams[c->stream], *b = &r->streams[best->stream];
  return c->is_barred != best->is_barred ? best->is_barred
      : c->ready != best->ready          ? c->ready < best->ready
      : a->frame != b->frame             ? a->frame < b->frame
                                         : a->op < b->op;
}

/* The first of all heads; *ret_second is when the next one could start. */
static Candidate
first_head (Run *x, Rank *r, LsTime *ret_second)
{
  Candidate best = { .start = LS_TIME_NEVER, .stream = NO_ID };
  LsTime second = LS_TIME_NEVER;
  for (uint32_t heads = r->with_head; heads; heads &= heads - 1) {
    Candidate c = head_start (x, r, (uint32_t) __builtin_ctz (heads));
    if (c.start == LS_TIME_NEVER)
      continue;
    if (c.start < best.start || (c.start == best.start && is_before (r, &c, &best))) {
      second = best.start;
      best = c;
    } else
      second = MIN (second, c.start);
  }
  *ret_second = second;
  return best;
}

/* --- advancing ---------------------------------------------------------- */

/* By an error, or as nobody wants it any longer. */
static bool
run_is_stopped (Run *x)
{
  if (ls_stop_tick (&x->n_ticks) && !x->error)
    x->error = g_error_new (LS_ERROR, LS_ERROR_STOPPED, "stopped in the middle of a step");
  return x->error != NULL;
}

static void
wake_fired (LsEvent *event, void *context)
{
  rank_advance (context, (Rank *) ((char *) event - G_STRUCT_OFFSET (Rank, wake)));
}

void
rank_advance (Run *x, Rank *r)
{
  LsTime now = x->engine.now;
  for (;;) {
    host_advance (x, r);
    LsTime second;
    Candidate c = first_head (x, r, &second);
    if (c.stream == NO_ID || run_is_stopped (x))
      return;
    g_assert (c.start <= second);
    c.start = MAX (c.start, now);
    bool is_free = x->hooks.may_run_ahead && x->hooks.may_run_ahead (x, r);
    if (c.start > now && !is_free) {
      if (!ls_event_is_queued (&r->wake) || r->wake.at != c.start)
        ls_engine_at (&x->engine, &r->wake, c.start, LS_PHASE_DISPATCH);
      return;
    }
    if (is_free && x->hooks.take_frame && x->hooks.take_frame (x, r, &c))
      continue;
    const Stream *st = &r->streams[c.stream];
    const Frame *f = rank_frame (r, st->frame);
    const XOp *op = &f->seg->x[st->op];
    g_assert (!st->is_busy && f->state[st->op] == OP_ISSUED);
    if (!op_begins[op->kind].begin (x, r, &c, op, is_free ? second : 0)) {
      g_assert (c.start > now);
      ls_engine_at (&x->engine, &r->wake, c.start, LS_PHASE_DISPATCH);
      return;
    }
  }
}
