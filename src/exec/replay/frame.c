/* exec/replay/frame.c — the ring of open frames of a rank (rank.h), the streams' cursors that enter them, and
 * what an op that ends changes there. */
#include "exec/replay/state.h"

#include <string.h>

static void
grow_ring (Rank *r)
{
  uint32_t cap = r->frames_cap * 2;
  g_assert (r->frames_end - r->frames_first == r->frames_cap);
  Frame *frames = g_new0 (Frame, cap);
  for (uint64_t i = r->frames_first; i < r->frames_first + r->frames_cap; i++)
    frames[i & (cap - 1)] = r->frames[i & (r->frames_cap - 1)];
  g_free (r->frames);
  r->frames = frames;
  r->frames_cap = cap;
}

/* The stream enters the frame after the one that it has finished, if that is open. */
void
frame_enter (Rank *r, uint32_t s)
{
  Stream *st = &r->streams[s];
  while (st->op == NO_OP && st->frame < r->frames_end) {
    Frame *f = rank_frame (r, st->frame);
    f->tail[s] = st->tail;
    f->tail_span[s] = st->tail_span;
    st->op = f->seg->first[s];
    if (st->op == NO_OP)
      st->frame++;
    else
      r->with_head |= 1u << s;
  }
}

/* References are told apart for a few steps only. */
static void
forget_old_spans (Rank *r, uint32_t step)
{
  r->host_span = span_known (r->host_span, step);
  for (uint32_t s = 0; s < LS_N_STREAMS; s++)
    r->streams[s].tail_span = span_known (r->streams[s].tail_span, step);
  for (uint32_t s = 0; s < LS_N_SLOTS; s++)
    r->call_span[s] = span_known (r->call_span[s], step);
}

void
frame_open (Run *x, Rank *r)
{
  if (rank_begins_step (r))
    forget_old_spans (r, r->next_step);
  if (r->frames_end - r->frames_first == r->frames_cap)
    grow_ring (r);
  Frame *f = rank_frame (r, r->frames_end);
  g_assert (f->n_left == 0 && r->next_instance < r->program->n_instances);
  f->instance_id = r->next_instance;
  f->instance = &r->program->instances[r->next_instance];
  f->seg = &r->kind->segments[f->instance->segment];
  f->step = r->next_step;
  f->n_issued = 0;
  f->n_left = f->seg->n_ops;
  if (f->cap < MAX (1, f->seg->n_ops)) {
    f->cap = MAX (1, f->seg->n_ops);
    f->issued = g_renew (LsTime, f->issued, f->cap);
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
    r->next_instance = r->program->n_lead;
    r->next_step++;
  }
  for (uint32_t s = 0; s < LS_N_STREAMS; s++)
    frame_enter (r, s);
}

/* --- ops that end ------------------------------------------------------- */

void
rank_op_ended (Run *x, Rank *r, uint64_t frame, uint16_t op, LsTime at)
{
  Frame *f = rank_frame (r, frame);
  const XOp *xop = &f->seg->x[op];
  g_assert (f->state[op] != OP_ENDED && r->n_outstanding >= f->n_left);
  f->state[op] = OP_ENDED;
  f->ended[op] = at;
  f->n_left--;
  if (--r->n_outstanding + 1 == LOOKAHEAD_OPS)
    r->room_at = at;
  x->n_ops++;
  r->step_end[f->step & 1] = MAX (r->step_end[f->step & 1], at);
  if (xop->takes == LS_TAKES_HOST)
    return;

  Stream *st = &r->streams[xop->stream];
  g_assert (st->frame == frame && st->op == op && at >= st->tail);
  st->is_busy = false;
  st->tail = at;
  st->tail_span = f->span[op];
  if (xop->takes != LS_TAKES_NOTHING)
    st->tail_kind = LS_CAUSE_STREAM; /* events hand on what they waited for */
  st->op = xop->next;
  if (st->op == NO_OP) {
    st->frame++;
    r->with_head &= ~(1u << xop->stream);
    frame_enter (r, xop->stream);
  }
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
