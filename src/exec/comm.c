/* exec/comm.c — communication: launched, resident, matched, latency, moving, done.
 *
 * A collective matches when all members have launched call number k of the
 * communicator; each transfer of a p2p group matches alone, in the order of posts
 * per directed pair of neighbours and direction (forward traffic and backward
 * traffic use a communicator each, as Megatron-LM does when pp = 2). From launch
 * to end it holds its share of the SMs of each member. */
#include "exec/state.h"

#include <math.h>
#include <string.h>

/* --- motion -------------------------------------------------------------- */

static void
phase_begin (Run *x, Motion *m, LsTime at)
{
  if (m->phase == m->call->plan->n_phases)
    ls_engine_at (&x->engine, &m->start, at, LS_PHASE_COMPLETE);
  else
    ls_engine_at (&x->engine, &m->start, at + m->call->plan->phases[m->phase].latency, LS_PHASE_COMPLETE);
}

static void
phase_over (Run *x, Motion *m, LsTime at)
{
  if (++m->phase < m->call->plan->n_phases) {
    phase_begin (x, m, at);
    return;
  }
  m->finished (x, m, at);
}

static void
latency_over (LsEvent *event, void *context)
{
  Run *x = context;
  Motion *m = (Motion *) event;
  const LsCollPlan *plan = m->call->plan;
  if (m->phase == plan->n_phases) {
    m->finished (x, m, event->at);
    return;
  }
  const LsPhase *p = &plan->phases[m->phase];
  if (p->demand_bytes <= 0) {
    phase_over (x, m, event->at);
    return;
  }
  m->flow.remaining = p->demand_bytes;
  m->flow.cap = m->flow.nominal_rate = p->rate_cap;
  m->flow.nominal = ls_time_from_s_up (p->demand_bytes / p->rate_cap);
  m->flow.uses = m->call->uses[m->phase];
  m->flow.n_uses = p->n_loads;
  ls_flow_add (x->net, &m->flow);
}

static void
flow_over (LsEvent *event, void *context)
{
  Run *x = context;
  Motion *m = (Motion *) ((char *) event - G_STRUCT_OFFSET (Motion, flow.done));
  ls_flow_remove (x->net, &m->flow);
  phase_over (x, m, event->at);
}

static void
motion_init (Motion *m, void (*finished) (void *, Motion *, LsTime))
{
  ls_event_init (&m->start, latency_over);
  ls_event_init (&m->flow.done, flow_over);
  m->finished = finished;
}

static void
motion_begin (Run *x, Motion *m, Call *call, uint32_t step, LsTime at)
{
  m->call = call;
  m->phase = 0;
  uint32_t parity = step & 1;
  if (call->step[parity] != step + 1) {
    call->step[parity] = step + 1;
    call->count[parity] = 0;
  }
  call->count[parity]++;
  phase_begin (x, m, at);
}

/* --- calls ---------------------------------------------------------------- */

static LsFlowUse *
uses_of (Run *x, const LsPhase *p)
{
  LsFlowUse *uses = ls_arena_new_array (x->arena, LsFlowUse, p->n_loads);
  for (uint32_t i = 0; i < p->n_loads; i++) {
    uses[i].resource = p->loads[i].resource;
    uses[i].coef = p->loads[i].coef;
  }
  return uses;
}

static Call *
call_for (Run *x, Call **calls, LsCollKind kind, uint64_t bytes, const uint32_t *ranks, uint32_t n)
{
  for (Call *c = *calls; c; c = c->next)
    if (c->kind == kind && c->bytes == bytes)
      return c;
  g_autofree uint32_t *gpus = g_new (uint32_t, n);
  for (uint32_t i = 0; i < n; i++)
    gpus[i] = x->plan->gpu_of_rank[ranks[i]];
  Call *c = ls_arena_new_array (x->arena, Call, 1);
  c->kind = (uint8_t) kind;
  c->bytes = bytes;
  c->plan = ls_coll_plan (x->cluster, x->nccl, kind, gpus, n, bytes, x->options->network, x->arena);
  c->sm_share = (uint64_t) llround (c->plan->sm_share * (double) LS_COEF_ONE);
  c->uses = ls_arena_new_array (x->arena, LsFlowUse *, c->plan->n_phases);
  for (uint32_t i = 0; i < c->plan->n_phases; i++)
    c->uses[i] = uses_of (x, &c->plan->phases[i]);
  c->next = *calls;
  *calls = c;
  return c;
}

/* A group matches when its last transfer does. */
static void
set_matched (Run *x, uint32_t rank, uint64_t frame, uint16_t op, LsTime at)
{
  Rank *r = &x->ranks[rank];
  const Frame *f = rank_frame (r, frame);
  LsSpan *span = span_at (r, f->span[op]);
  if (span && (span->matched == LS_TIME_NEVER || span->matched < at))
    span->matched = at;
}

/* The op is over on this rank. */
static void
release (Run *x, uint32_t rank, uint64_t frame, uint16_t op, uint64_t sm_share, LsTime at)
{
  Rank *r = &x->ranks[rank];
  Frame *f = rank_frame (r, frame);
  const XOp *xop = &f->seg->x[op];
  LsSpan *span = span_at (r, f->span[op]);
  if (span)
    span->end = at;
  if (xop->kind == LS_OP_COLLECTIVE) {
    r->calls_done[xop->slot]++;
    r->call_end[xop->slot] = at;
    r->call_span[xop->slot] = f->span[op];
  }
  kernel_residency (x, r, sm_share, -1);
  rank_op_ended (x, r, frame, op, at);
  rank_ready (x, r);
}

/* --- collectives ---------------------------------------------------------- */

static void
collective_finished (void *run, Motion *m, LsTime at)
{
  Run *x = run;
  Comm *c = (Comm *) m;
  const LsCommunicator *group = &x->plan->comms[c->id];
  digest_add (x, at, c->id);
  c->n_arrived = 0;
  c->arrived = 0;
  for (uint32_t i = 0; i < group->n_ranks; i++)
    release (x, group->ranks[i], c->frame[i], c->op[i], m->call->sm_share, at);
}

static void
mismatch (Run *x, Comm *c, Rank *r, const LsOp *op)
{
  const LsCommunicator *group = &x->plan->comms[c->id];
  if (x->error)
    return;
  x->error = g_error_new (LS_ERROR, LS_ERROR_INPUT,
                          "communicator %u (%s): rank %u calls %s of %" G_GUINT64_FORMAT " bytes (%s), "
                          "but rank %u called %s of %" G_GUINT64_FORMAT " bytes (%s)",
                          c->id, ls_axis_name (group->axis), r->id, ls_coll_kind_name (op->coll), op->bytes,
                          ls_dtype_name (op->dtype), c->first_rank, ls_coll_kind_name (c->motion.call->kind),
                          c->motion.call->bytes, ls_dtype_name (c->dtype));
  x->engine.stop_at = x->engine.now;
}

void
comm_launch (Run *x, Rank *r, uint64_t frame, uint16_t op_index, LsTime at)
{
  Frame *f = rank_frame (r, frame);
  const LsOp *op = &f->seg->ops[op_index];
  uint32_t id = r->binding->comm[op->slot], member = r->binding->member[op->slot];
  Comm *c = &x->comms[id];
  const LsCommunicator *group = &x->plan->comms[id];
  if (c->n_arrived == 0) {
    c->motion.call = call_for (x, &c->calls, op->coll, op->bytes, group->ranks, group->n_ranks);
    c->first_rank = r->id;
    c->dtype = op->dtype;
  } else if (c->motion.call->kind != op->coll || c->motion.call->bytes != op->bytes || c->dtype != op->dtype) {
    mismatch (x, c, r, op);
    return;
  }
  c->frame[member] = frame;
  c->op[member] = op_index;
  c->arrived = MAX (c->arrived, at);
  kernel_residency (x, r, c->motion.call->sm_share, +1);
  if (++c->n_arrived < group->n_ranks)
    return;
  for (uint32_t i = 0; i < group->n_ranks; i++)
    set_matched (x, group->ranks[i], c->frame[i], c->op[i], c->arrived);
  motion_begin (x, &c->motion, (Call *) c->motion.call, f->step, c->arrived);
}

/* --- p2p groups ------------------------------------------------------------ */

static void channel_try (Run *x, Channel *ch);

/* While a group runs, Frame.time counts its transfers: those not over in the lower
 * half, those not matched in the upper. */
#define UNMATCHED_ONE ((LsTime) 1 << 32)

/* One transfer of the op is over; the group is when all are. */
static void
transfer_over (Run *x, const Post *p, uint64_t sm_share, LsTime at)
{
  Frame *f = rank_frame (&x->ranks[p->rank], p->frame);
  if (--f->time[p->op] == 0)
    release (x, p->rank, p->frame, p->op, sm_share, at);
}

static void
transfer_matched (Run *x, const Post *p, LsTime at)
{
  rank_frame (&x->ranks[p->rank], p->frame)->time[p->op] -= UNMATCHED_ONE;
  set_matched (x, p->rank, p->frame, p->op, at);
}

void
group_hide_partial_matches (Rank *r)
{
  for (uint32_t s = 0; s < LS_N_STREAMS; s++) {
    const Stream *st = &r->streams[s];
    if (!st->is_busy)
      continue;
    const Frame *f = rank_frame (r, st->frame);
    LsSpan *span = span_at (r, f->span[st->op]);
    if (f->seg->x[st->op].kind == LS_OP_P2P && f->time[st->op] >= UNMATCHED_ONE && span)
      span->matched = LS_TIME_NEVER;
  }
}

/* SMs that a group holds: those of one peer's channels. ncclGroup runs all its
 * transfers in one kernel. */
static uint64_t
group_share (const Run *x)
{
  return (uint64_t) llround (x->nccl->channels_p2p * x->nccl->sm_share_per_channel * (double) LS_COEF_ONE);
}

static void
transfer_finished (void *run, Motion *m, LsTime at)
{
  Run *x = run;
  Channel *ch = (Channel *) m;
  g_autofree Post *send = g_queue_pop_head (&ch->sends);
  g_autofree Post *recv = g_queue_pop_head (&ch->recvs);
  digest_add (x, at, (uint64_t) ch->from << 32 | ch->to);
  ch->is_busy = false;
  transfer_over (x, send, group_share (x), at);
  transfer_over (x, recv, group_share (x), at);
  channel_try (x, ch);
}

static void
channel_try (Run *x, Channel *ch)
{
  const Post *send = g_queue_peek_head (&ch->sends), *recv = g_queue_peek_head (&ch->recvs);
  if (ch->is_busy || !send || !recv || x->error)
    return;
  if (send->bytes != recv->bytes) {
    x->error = g_error_new (LS_ERROR, LS_ERROR_INPUT,
                            "rank %u sends %" G_GUINT64_FORMAT " bytes to rank %u, which expects %" G_GUINT64_FORMAT,
                            ch->from, send->bytes, ch->to, recv->bytes);
    x->engine.stop_at = x->engine.now;
    return;
  }
  uint32_t ranks[2] = { ch->from, ch->to };
  Call *call = call_for (x, &ch->calls, LS_COLL_SEND_RECV, send->bytes, ranks, 2);
  LsTime at = MAX (MAX (send->at, recv->at), x->engine.now);
  uint32_t step = rank_frame (&x->ranks[ch->from], send->frame)->step;
  ch->is_busy = true;
  transfer_matched (x, send, at);
  transfer_matched (x, recv, at);
  motion_begin (x, &ch->motion, call, step, at);
}

void
group_launch (Run *x, Rank *r, uint64_t frame, uint16_t op_index, LsTime at)
{
  Frame *f = rank_frame (r, frame);
  const LsOp *op = &f->seg->ops[op_index];
  f->time[op_index] = op->n_transfers * (UNMATCHED_ONE + 1);
  kernel_residency (x, r, group_share (x), +1);
  for (uint32_t i = 0; i < op->n_transfers; i++) {
    const LsTransfer *t = &op->transfers[i];
    bool is_to_next = t->slot == LS_SLOT_NEXT;
    uint32_t peer = r->binding->peer[is_to_next ? 1 : 0];
    /* A send to next travels on my forward channel; a receive from previous on
     * the forward channel of the previous rank; and so on. */
    uint32_t owner = t->is_send ? r->id : peer;
    bool is_forward = t->is_send == is_to_next;
    Channel *ch = &x->channels[2 * owner + (is_forward ? 0 : 1)];
    Post *post = g_new (Post, 1);
    *post = (Post) { r->id, op_index, frame, at, t->bytes };
    g_queue_push_tail (t->is_send ? &ch->sends : &ch->recvs, post);
    ch->from = t->is_send ? r->id : peer;
    ch->to = t->is_send ? peer : r->id;
    channel_try (x, ch);
  }
}

/* --- life ------------------------------------------------------------------- */

void
comm_init (Run *x)
{
  x->comms = g_new0 (Comm, x->plan->n_comms);
  for (uint32_t i = 0; i < x->plan->n_comms; i++) {
    Comm *c = &x->comms[i];
    motion_init (&c->motion, collective_finished);
    c->id = i;
    c->frame = ls_arena_new_array (x->arena, uint64_t, x->plan->comms[i].n_ranks);
    c->op = ls_arena_new_array (x->arena, uint16_t, x->plan->comms[i].n_ranks);
    memset (c->op, 0xff, x->plan->comms[i].n_ranks * sizeof *c->op); /* NO_OP */
  }
  x->channels = g_new0 (Channel, 2 * (gsize) x->plan->n_ranks);
  for (uint32_t i = 0; i < 2 * x->plan->n_ranks; i++)
    motion_init (&x->channels[i].motion, transfer_finished);
}

void
comm_clear (Run *x)
{
  for (uint32_t i = 0; x->channels && i < 2 * x->plan->n_ranks; i++) {
    g_queue_clear_full (&x->channels[i].sends, g_free);
    g_queue_clear_full (&x->channels[i].recvs, g_free);
  }
  g_free (x->channels);
  g_free (x->comms);
}

static void
count_calls (const Call *calls, uint32_t step, double *resource_bytes)
{
  for (const Call *c = calls; c; c = c->next) {
    if (c->step[step & 1] != step + 1)
      continue;
    for (uint32_t i = 0; i < c->plan->n_phases; i++) {
      const LsPhase *p = &c->plan->phases[i];
      for (uint32_t l = 0; l < p->n_loads; l++)
        resource_bytes[p->loads[l].resource]
            += (double) c->count[step & 1] * p->demand_bytes * ((double) p->loads[l].coef / (double) LS_COEF_ONE);
    }
  }
}

void
comm_count_bytes (const Run *x, uint32_t step, double *resource_bytes)
{
  for (uint32_t i = 0; i < x->plan->n_comms; i++)
    count_calls (x->comms[i].calls, step, resource_bytes);
  for (uint32_t i = 0; i < 2 * x->plan->n_ranks; i++)
    count_calls (x->channels[i].calls, step, resource_bytes);
}
