/* exec/replay/op_begin.c — what begins an op, by its kind (rank.h). */
#include "exec/replay/state.h"
/* ---- what moves: collectives, groups of transfers, copies ---- */

/* Resident, or on a copy engine, from now on. */
static bool
launch (Run *x, Rank *r, const Candidate *c, const XOp *call, LsTime alone_until)
{
  Stream *st = &r->streams[c->stream];
  uint64_t frame = st->frame;
  uint16_t op = st->op;
  Frame *f = rank_frame (r, frame);
  f->state[op] = OP_RUNNING;
  f->span[op] = span_add (x, r, f, op, c->start, LS_TIME_NEVER, LS_TIME_NEVER, c->kind, c->span);
  st->is_busy = true;
  op_begins[call->kind].start (x, r, frame, op, c->start);
  return true;
}

static bool
call_may_begin (Run *x, Rank *r, const Frame *f, uint16_t op, Candidate *c)
{
  const XOp *call = &f->seg->x[op];
  g_assert (r->calls_done[call->slot] <= f->call_base[call->slot] + call->call);
  if (r->calls_done[call->slot] != f->call_base[call->slot] + call->call)
    return false;
  candidate_later (c, r->call_end[call->slot], LS_CAUSE_STREAM, r->call_span[call->slot]);
  return true;
}

static uint64_t
call_share (Run *x, const Rank *r, const LsOp *op)
{
  return call_find (x->comms[r->binding->comm[op->slot]].calls, collective_key (op))->sm_share;
}

static bool
copy_may_begin (Run *x, Rank *r, const Frame *f, uint16_t op, Candidate *c)
{
  return f->seg->x[op].alone != LS_TIME_NEVER || copy_can_start (x, r, &f->seg->ops[op]);
}

/* One of recorded length loads nothing. */
static bool
copy_begin (Run *x, Rank *r, const Candidate *c, const XOp *op, LsTime alone_until)
{
  if (op->alone == LS_TIME_NEVER)
    return launch (x, r, c, op, alone_until);
  uint16_t index = r->streams[c->stream].op;
  uint64_t frame = r->streams[c->stream].frame;
  Frame *f = rank_frame (r, frame);
  LsTime end = c->start + op->alone;
  f->span[index] = span_add (x, r, f, index, c->start, op->alone, end, c->kind, c->span);
  rank_op_ended (x, r, frame, index, end);
  return true;
}

/* ---- kernels ---- */

static bool
kernel_may_begin (Run *x, Rank *r, const Frame *f, uint16_t op, Candidate *c)
{
  if (r->is_kernel_running)
    return false;
  c->ready = MAX (c->start, f->issued[op]);
  c->start = MAX (c->start, r->gpu_free);
  return true;
}

static bool
kernel_begin (Run *x, Rank *r, const Candidate *c, const XOp *op, LsTime alone_until)
{
  if (alone_until >= c->start + kernel_time_alone (r->slow, op))
    kernel_run_alone (x, r, c);
  else if (c->start > x->engine.now)
    return false;
  else
    kernel_start (x, r, c);
  return true;
}

/* ---- events ---- */

EventRecord *
event_record (Run *x, Rank *r, const Frame *f, const LsOp *op)
{
  return &r->events[ls_plan_event (x->plan, f->instance, op)];
}

static bool
wait_may_begin (Run *x, Rank *r, const Frame *f, uint16_t op, Candidate *c)
{
  const EventRecord *e = event_record (x, r, f, &f->seg->ops[op]);
  if (e->step != f->step + 1)
    return false;
  candidate_later (c, e->at, LS_CAUSE_DEP, e->span);
  return true;
}

static bool
event_begin (Run *x, Rank *r, const Candidate *c, const XOp *op, LsTime alone_until)
{
  Stream *st = &r->streams[c->stream];
  Frame *f = rank_frame (r, st->frame);
  const LsOp *event = &f->seg->ops[st->op];
  if (ls_op_records (event))
    *event_record (x, r, f, event) = (EventRecord) { c->start, c->span, f->step + 1 };
  f->span[st->op] = c->span;
  st->tail_kind = c->kind;
  rank_op_ended (x, r, st->frame, st->op, c->start);
  return true;
}

const OpBegin op_begins[LS_N_OP_KINDS] = {
  [LS_OP_KERNEL] = { kernel_may_begin, kernel_begin },
  [LS_OP_COLLECTIVE] = { call_may_begin, launch, comm_launch, call_share },
  [LS_OP_P2P] = { NULL, launch, group_launch, group_share },
  [LS_OP_COPY] = { copy_may_begin, copy_begin, copy_start },
  [LS_OP_RECORD] = { NULL, event_begin },
  [LS_OP_WAIT] = { wait_may_begin, event_begin },
};
