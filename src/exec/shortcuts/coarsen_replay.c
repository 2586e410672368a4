/* exec/shortcuts/coarsen_replay.c — a frame in one piece: what it was recorded to do, from another time
 * on. */
#include "exec/replay/op_begin.h"
#include "exec/shortcuts/coarsen.h"

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
    return y->f->span[op];
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
    const SlotEnd *s = &y->p->slots[i];
    g_assert (y->r->calls_done[s->slot] == y->f->call_base[s->slot]);
    y->r->calls_done[s->slot] += y->f->seg->n_calls[s->slot];
    y->r->call_end[s->slot] = y->begin + s->at;
    y->r->call_span[s->slot] = span_of (y, s->span, 0, &(uint8_t) { 0 });
  }
}

static void
replay_streams (Run *x, const Replay *y)
{
  Rank *r = y->r;
  uint64_t frame = r->frames_first;
  for (uint32_t i = 0; i < y->p->n_records; i++) {
    const Recorded *e = &y->p->records[i];
    *event_record (x, r, y->f, &y->f->seg->ops[e->op])
        = (EventRecord) { y->begin + e->at, span_of (y, e->span, e->op, &(uint8_t) { 0 }), y->f->step + 1 };
  }
  for (uint32_t i = 0; i < y->p->n_streams; i++) {
    const StreamEnd *e = &y->p->streams[i];
    Stream *st = &r->streams[e->stream];
    st->tail = y->begin + e->at;
    st->tail_kind = e->kind;
    st->tail_span = span_of (y, e->span, 0, &st->tail_kind);
    st->op = NO_OP;
    r->with_head &= ~(1u << e->stream);
    st->frame = frame + 1;
    frame_enter (r, e->stream);
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

void
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
