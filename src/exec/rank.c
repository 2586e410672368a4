/* exec/rank.c — one rank: its host, its streams, its kernels.
 *
 * rank_advance() repeats: let the host issue what it can; among the heads of all
 * streams take the one that can start first (ties: first issued); start it. It
 * stops when nothing can start, or when the next start lies in the future and the
 * rank must not run ahead (state.h), in which case the rank's wake event is set. */
#include "exec/state.h"

#include <math.h>
#include <string.h>

typedef struct {
  LsTime start;
  LsCause kind;
  SpanRef span;
  uint32_t stream; /* NO_ID: no candidate */
} Candidate;

static void wake_fired (LsEvent *event, void *context);
static void kernel_done (LsEvent *event, void *context);

void
rank_init (Run *x, Rank *r, uint32_t id)
{
  r->id = id;
  r->binding = &x->plan->bindings[id];
  r->program = &x->plan->programs[r->binding->role];
  r->slow = x->options->slow ? x->options->slow[id] : 1.0;
  r->host_span = LS_SPAN_NONE;
  for (int s = 0; s < LS_N_STREAMS; s++)
    r->streams[s] = (Stream) { .op = NO_OP, .tail_span = NO_ID };
  for (int s = 0; s < LS_N_SLOTS; s++)
    r->call_span[s] = NO_ID;
  if (r->program->n_events > 0)
    r->events = g_new0 (EventRecord, (gsize) r->program->n_events * x->plan->n_micro_batches * x->plan->n_chunks);
  r->frames_cap = 4;
  r->frames = g_new0 (Frame, r->frames_cap);
  ls_event_init (&r->wake, wake_fired);
  ls_event_init (&r->kernel.done, kernel_done);
  r->kernel.uses = &r->kernel_use;
  r->kernel_use.resource = ls_cluster_hbm_resource (x->cluster, x->plan->gpu_of_rank[id]);
  r->kernel_use.coef = LS_COEF_ONE;
}

void
rank_clear (Rank *r)
{
  for (uint32_t i = 0; i < r->frames_cap; i++) {
    g_free (r->frames[i].time);
    g_free (r->frames[i].span);
    g_free (r->frames[i].state);
  }
  g_free (r->frames);
  g_free (r->events);
  g_free (r->spans[0]);
  g_free (r->spans[1]);
}

/* --- frames ------------------------------------------------------------- */

Frame *
rank_frame (Rank *r, uint64_t ordinal)
{
  return &r->frames[ordinal & (r->frames_cap - 1)];
}

static void
grow_ring (Rank *r)
{
  uint32_t cap = r->frames_cap * 2;
  Frame *frames = g_new0 (Frame, cap);
  for (uint64_t i = r->frames_first; i < r->frames_first + r->frames_cap; i++)
    frames[i & (cap - 1)] = r->frames[i & (r->frames_cap - 1)];
  g_free (r->frames);
  r->frames = frames;
  r->frames_cap = cap;
}

/* The stream enters the frame after the one that it has finished, if that is open. */
static void
enter_frames (Rank *r, uint32_t s)
{
  Stream *st = &r->streams[s];
  while (st->op == NO_OP && st->frame < r->frames_end) {
    Frame *f = rank_frame (r, st->frame);
    f->tail[s] = st->tail;
    f->tail_span[s] = st->tail_span;
    st->op = f->seg->first[s];
    if (st->op == NO_OP)
      st->frame++;
  }
}

static void
open_frame (Run *x, Rank *r)
{
  if (r->frames_end - r->frames_first == r->frames_cap)
    grow_ring (r);
  Frame *f = rank_frame (r, r->frames_end);
  f->instance_id = r->next_instance;
  f->instance = &r->program->instances[r->next_instance];
  f->seg = &x->segments[f->instance->segment];
  f->step = r->next_step;
  f->n_issued = 0;
  f->n_left = f->seg->n_ops;
  if (f->cap < f->seg->n_ops) {
    f->cap = f->seg->n_ops;
    f->time = g_renew (LsTime, f->time, f->cap);
    f->span = g_renew (uint32_t, f->span, f->cap);
    f->state = g_renew (uint8_t, f->state, f->cap);
  }
  memset (f->state, OP_WAITING, f->seg->n_ops);
  for (int s = 0; s < LS_N_SLOTS; s++) {
    f->call_base[s] = r->calls_opened[s];
    r->calls_opened[s] += f->seg->n_calls[s];
  }
  r->n_outstanding += f->seg->n_ops;
  r->frames_end++;
  if (++r->next_instance == r->program->n_instances) {
    r->next_instance = 0;
    r->next_step++;
  }
  for (uint32_t s = 0; s < LS_N_STREAMS; s++)
    enter_frames (r, s);
}

static void
retire_frames (Run *x, Rank *r)
{
  while (r->frames_first < r->frames_end) {
    Frame *f = rank_frame (r, r->frames_first);
    if (f->n_left > 0)
      return;
    r->frames_first++;
    if (f->instance_id + 1 == r->program->n_instances)
      step_rank_done (x, r, f->step, r->step_end[f->step & 1]);
  }
}

/* --- ops that end ------------------------------------------------------- */

void
rank_op_ended (Run *x, Rank *r, uint64_t frame, uint16_t op, LsTime at)
{
  Frame *f = rank_frame (r, frame);
  const XOp *xop = &f->seg->x[op];
  f->state[op] = OP_ENDED;
  f->time[op] = at;
  f->n_left--;
  if (--r->n_outstanding + 1 == LOOKAHEAD_OPS)
    r->room_at = at;
  x->n_ops++;
  r->step_end[f->step & 1] = MAX (r->step_end[f->step & 1], at);
  if (xop->kind == LS_OP_HOST_SYNC || xop->kind == LS_OP_HOST_DELAY)
    return;

  Stream *st = &r->streams[xop->stream];
  st->is_busy = false;
  st->tail = at;
  st->tail_span = f->span[op];
  if (xop->kind != LS_OP_WAIT && xop->kind != LS_OP_RECORD)
    st->tail_kind = LS_CAUSE_STREAM; /* events hand on what they waited for */
  st->op = xop->next;
  if (st->op == NO_OP) {
    st->frame++;
    enter_frames (r, xop->stream);
  }
}

/* --- the host ----------------------------------------------------------- */

/* True, and when, once every dependency of a host sync has ended. */
static bool
deps_ended (const Rank *r, const Frame *f, uint64_t ordinal, const XOp *op, LsTime *ret_at, SpanRef *ret_span)
{
  LsTime at = 0;
  SpanRef span = LS_SPAN_NONE;
  for (uint32_t d = 0; d < op->n_deps; d++) {
    LsDep dep = op->deps[d];
    LsTime end;
    SpanRef by;
    if (dep.kind == LS_DEP_STREAM) {
      if (r->streams[dep.index].frame < ordinal)
        return false;
      end = f->tail[dep.index];
      by = f->tail_span[dep.index];
    } else if (dep.kind == LS_DEP_END) {
      if (f->state[dep.index] != OP_ENDED)
        return false;
      end = f->time[dep.index];
      by = f->span[dep.index];
    } else {
      continue; /* after its issue: the host issues in program order */
    }
    if (end > at || span == LS_SPAN_NONE) {
      at = MAX (at, end);
      span = by;
    }
  }
  *ret_at = at;
  *ret_span = span;
  return true;
}

static bool
issue_op (Run *x, Rank *r, Frame *f, uint64_t ordinal)
{
  uint16_t i = (uint16_t) f->n_issued;
  const XOp *op = &f->seg->x[i];
  if (op->kind == LS_OP_HOST_SYNC) {
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
  f->time[i] = r->host_time;
  f->span[i] = r->host_span;
  f->n_issued++;
  if (op->kind == LS_OP_HOST_SYNC || op->kind == LS_OP_HOST_DELAY)
    rank_op_ended (x, r, ordinal, i, r->host_time);
  return true;
}

/* Steps may overlap by one: step s waits until all ranks have finished s - 2, and
 * nobody goes beyond the one that follows the reported step. */
static bool
may_begin_step (Run *x, Rank *r)
{
  uint32_t last = x->last_step != NO_ID ? x->last_step + 1 : x->n_steps;
  if (r->next_instance > 0 || r->next_step < 2)
    return r->next_step <= last;
  r->is_gated = x->step_n_done[r->next_step - 2] < x->plan->n_ranks;
  return !r->is_gated && r->next_step <= last;
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

static void
host_advance (Run *x, Rank *r)
{
  for (;;) {
    retire_frames (x, r);
    if (r->frames_end > r->frames_first) {
      uint64_t ordinal = r->frames_end - 1;
      Frame *f = rank_frame (r, ordinal);
      while (f->n_issued < f->seg->n_ops)
        if (!issue_op (x, r, f, ordinal))
          return;
    }
    if (r->program->n_instances == 0 || !has_room (r) || !may_begin_step (x, r))
      return;
    open_frame (x, r);
  }
}

/* --- which head can start, and when ------------------------------------- */

static EventRecord *
event_record (Run *x, Rank *r, const Frame *f, const LsOp *op)
{
  gsize at = ((gsize) op->event * x->plan->n_micro_batches + f->instance->mb) * x->plan->n_chunks + f->instance->chunk;
  return &r->events[at];
}

static void
later (Candidate *c, LsTime at, LsCause kind, SpanRef span)
{
  if (at <= c->start)
    return;
  c->start = at;
  c->kind = kind;
  c->span = span;
}

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

  Candidate c = { st->tail, st->tail_kind, st->tail_span, s };
  for (uint32_t d = 0; d < op->n_deps; d++) {
    LsDep dep = op->deps[d];
    if (dep.kind == LS_DEP_END) {
      if (f->state[dep.index] != OP_ENDED)
        return never;
      later (&c, f->time[dep.index], LS_CAUSE_DEP, f->span[dep.index]);
    } else if (dep.kind == LS_DEP_STREAM) {
      if (r->streams[dep.index].frame < st->frame)
        return never;
      later (&c, f->tail[dep.index], LS_CAUSE_DEP, f->tail_span[dep.index]);
    }
  }
  if (op->kind == LS_OP_KERNEL) {
    if (r->is_kernel_running)
      return never;
    c.start = MAX (c.start, r->gpu_free);
  } else if (op->kind == LS_OP_COLLECTIVE) {
    if (r->calls_done[op->slot] != f->call_base[op->slot] + op->call)
      return never;
    later (&c, r->call_end[op->slot], LS_CAUSE_STREAM, r->call_span[op->slot]);
  } else if (op->kind == LS_OP_WAIT) {
    const EventRecord *e = event_record (x, r, f, &f->seg->ops[st->op]);
    if (e->step != f->step + 1)
      return never;
    later (&c, e->at, LS_CAUSE_DEP, e->span);
  }
  later (&c, f->time[st->op], LS_CAUSE_HOST, f->span[st->op]);
  return c;
}

/* The first of all heads; *ret_second is when the next one could start. */
static Candidate
first_head (Run *x, Rank *r, LsTime *ret_second)
{
  Candidate best = { .start = LS_TIME_NEVER, .stream = NO_ID };
  LsTime second = LS_TIME_NEVER;
  for (uint32_t s = 0; s < LS_N_STREAMS; s++) {
    if (r->streams[s].op == NO_OP)
      continue;
    Candidate c = head_start (x, r, s);
    if (c.start == LS_TIME_NEVER)
      continue;
    bool is_first = c.start < best.start;
    if (c.start == best.start) {
      const Stream *a = &r->streams[s], *b = &r->streams[best.stream];
      is_first = a->frame != b->frame ? a->frame < b->frame : a->op < b->op;
    }
    if (is_first) {
      second = best.start;
      best = c;
    } else
      second = MIN (second, c.start);
  }
  *ret_second = second;
  return best;
}

/* --- kernels ------------------------------------------------------------ */

static LsTime
time_alone (const Rank *r, const XOp *op)
{
  return r->slow == 1.0 ? op->alone : ls_time_from_s (ls_time_to_s (op->alone) * r->slow);
}

static void
kernel_finish (Run *x, Rank *r, uint64_t frame, uint16_t op, LsTime end)
{
  r->gpu_free = end;
  rank_op_ended (x, r, frame, op, end);
}

/* The kernel meets nobody: it takes its time alone. */
static void
kernel_run_alone (Run *x, Rank *r, const Candidate *c)
{
  Stream *st = &r->streams[c->stream];
  uint64_t frame = st->frame;
  uint16_t op = st->op;
  Frame *f = rank_frame (r, frame);
  LsTime alone = time_alone (r, &f->seg->x[op]), end = c->start + alone;
  f->span[op] = span_add (x, r, f, op, c->start, alone, end, c->kind, c->span);
  kernel_finish (x, r, frame, op, end);
}

/* Rate of the running kernel, in bytes/s (per second if it has no traffic), when
 * communication holds part of the SMs. */
static double
kernel_cap (Run *x, const Rank *r)
{
  Rank *m = (Rank *) r;
  const Frame *f = rank_frame (m, r->kernel_frame);
  const XOp *op = &f->seg->x[r->kernel_op];
  if (r->sm_share == 0)
    return r->kernel.nominal_rate;
  double share = fmin ((double) r->sm_share / (double) LS_COEF_ONE, 0.95);
  bool is_recorded = f->seg->ops[r->kernel_op].recorded != LS_TIME_NEVER;
  if (is_recorded) /* nothing is known of what bounds it: take it for compute */
    return r->kernel.nominal_rate * (1 - share);
  LsTime beside = ls_kernel_time_beside (&x->costs[op->cost], share);
  return r->kernel.nominal_rate * fmin (1, ls_time_to_s (op->alone) / ls_time_to_s (beside));
}

static void
kernel_start (Run *x, Rank *r, const Candidate *c)
{
  Stream *st = &r->streams[c->stream];
  Frame *f = rank_frame (r, st->frame);
  const XOp *op = &f->seg->x[st->op];
  LsTime alone = time_alone (r, op);
  if (alone == 0) {
    kernel_run_alone (x, r, c);
    return;
  }
  bool has_traffic = op->cost != NO_ID && f->seg->ops[st->op].kernel != NO_ID && x->plan->kernels[op->cost].bytes > 0;
  f->state[st->op] = OP_RUNNING;
  f->span[st->op] = span_add (x, r, f, st->op, c->start, alone, LS_TIME_NEVER, c->kind, c->span);
  st->is_busy = true;
  r->is_kernel_running = true;
  r->kernel_frame = st->frame;
  r->kernel_op = st->op;
  r->kernel_start = c->start;
  r->kernel.remaining = has_traffic ? x->plan->kernels[op->cost].bytes : 1.0;
  r->kernel.n_uses = has_traffic ? 1 : 0;
  r->kernel.nominal = alone;
  r->kernel.nominal_rate = r->kernel.remaining / ls_time_to_s (alone);
  r->kernel.cap = kernel_cap (x, r);
  ls_flow_add (x->net, &r->kernel);
}

static void
kernel_done (LsEvent *event, void *context)
{
  Run *x = context;
  Rank *r = (Rank *) ((char *) event - G_STRUCT_OFFSET (Rank, kernel.done));
  ls_flow_remove (x->net, &r->kernel);
  r->is_kernel_running = false;
  Frame *f = rank_frame (r, r->kernel_frame);
  LsSpan *span = span_at (r, f->span[r->kernel_op]);
  if (span)
    span->end = event->at;
  kernel_finish (x, r, r->kernel_frame, r->kernel_op, event->at);
  rank_ready (x, r);
}

void
rank_residency (Run *x, Rank *r, uint64_t sm_share, int sign)
{
  r->n_resident = (uint32_t) ((int64_t) r->n_resident + sign);
  r->sm_share = sign > 0 ? r->sm_share + sm_share : r->sm_share - sm_share;
  if (r->is_kernel_running)
    ls_flow_set_cap (x->net, &r->kernel, kernel_cap (x, r));
}

/* --- advancing ---------------------------------------------------------- */

static void
wake_fired (LsEvent *event, void *context)
{
  rank_advance (context, (Rank *) ((char *) event - G_STRUCT_OFFSET (Rank, wake)));
}

void
rank_ready (Run *x, Rank *r)
{
  if (r->is_ready)
    return;
  r->is_ready = true;
  g_ptr_array_add (x->ready, r);
  if (!ls_event_is_queued (&x->dispatch))
    ls_engine_at (&x->engine, &x->dispatch, x->engine.now, LS_PHASE_DISPATCH);
}

static bool
may_run_ahead (const Run *x, const Rank *r)
{
  return r->n_resident == 0 && !r->is_kernel_running && !x->options->no_run_ahead && r->steps_done < x->n_steps
         && x->last_step == NO_ID;
}

/* Events and copies of fixed length. */
static void
run_instant (Run *x, Rank *r, const Candidate *c)
{
  Stream *st = &r->streams[c->stream];
  uint64_t frame = st->frame;
  uint16_t op = st->op;
  Frame *f = rank_frame (r, frame);
  if (f->seg->x[op].kind == LS_OP_COPY) {
    LsTime alone = f->seg->x[op].alone;
    f->span[op] = span_add (x, r, f, op, c->start, alone, c->start + alone, c->kind, c->span);
    rank_op_ended (x, r, frame, op, c->start + alone);
    return;
  }
  if (f->seg->x[op].kind == LS_OP_RECORD && f->seg->ops[op].event != LS_EVENT_NONE)
    *event_record (x, r, f, &f->seg->ops[op]) = (EventRecord) { c->start, c->span, f->step + 1 };
  f->span[op] = c->span;
  st->tail_kind = c->kind;
  rank_op_ended (x, r, frame, op, c->start);
}

void
rank_advance (Run *x, Rank *r)
{
  LsTime now = x->engine.now;
  for (;;) {
    host_advance (x, r);
    LsTime second;
    Candidate c = first_head (x, r, &second);
    if (c.stream == NO_ID || x->error)
      return;
    c.start = MAX (c.start, now);
    bool is_ahead = c.start > now;
    if (is_ahead && !may_run_ahead (x, r)) {
      if (!ls_event_is_queued (&r->wake) || r->wake.at != c.start)
        ls_engine_at (&x->engine, &r->wake, c.start, LS_PHASE_DISPATCH);
      return;
    }
    const Stream *st = &r->streams[c.stream];
    const Frame *f = rank_frame (r, st->frame);
    const XOp *op = &f->seg->x[st->op];
    switch (op->kind) {
    case LS_OP_KERNEL:
      if (may_run_ahead (x, r) && second >= c.start + time_alone (r, op))
        kernel_run_alone (x, r, &c);
      else if (is_ahead) {
        ls_engine_at (&x->engine, &r->wake, c.start, LS_PHASE_DISPATCH);
        return;
      } else
        kernel_start (x, r, &c);
      break;
    case LS_OP_COLLECTIVE:
    case LS_OP_P2P: {
      uint64_t frame = st->frame;
      uint16_t head = st->op;
      Frame *own = rank_frame (r, frame);
      own->state[head] = OP_RUNNING;
      own->span[head] = span_add (x, r, own, head, c.start, LS_TIME_NEVER, LS_TIME_NEVER, c.kind, c.span);
      r->streams[c.stream].is_busy = true;
      if (op->kind == LS_OP_COLLECTIVE)
        comm_launch (x, r, frame, head, c.start);
      else
        group_launch (x, r, frame, head, c.start);
      break;
    }
    default:
      run_instant (x, r, &c);
    }
  }
}
