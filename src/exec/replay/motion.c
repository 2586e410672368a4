/* exec/replay/motion.c — what moves: phase by phase, first the latency, then the flow; or, by a hook,
 * message by message.
 *
 * Collectives, transfers of p2p groups and copies are all motions; what they load is a Call
 * (exec/replay/calls.h). */
#include <string.h>

#include <lockstep/error.h>

#include "exec/replay/state.h"

void
motion_over (Run *x, Motion *m, LsTime at)
{
  call_count (m->call, m->step, 0, 1);
  m->finished (x, m, at);
}

void
motion_moves (Run *x, const Motion *m, int sign)
{
  if (m->moving)
    m->moving (x, m, sign);
}

static void
phase_begin (Run *x, Motion *m, LsTime at)
{
  ls_engine_at (&x->engine, &m->start, at + m->call->plan->phases[m->phase].latency, LS_PHASE_COMPLETE);
}

static void
phase_over (Run *x, Motion *m, LsTime at)
{
  g_assert (m->phase < m->call->plan->n_phases);
  if (++m->phase < m->call->plan->n_phases) {
    phase_begin (x, m, at);
    return;
  }
  motion_over (x, m, at);
}

static void
latency_over (LsEvent *event, void *context)
{
  Run *x = context;
  Motion *m = (Motion *) event;
  if (m->call->messages) {
    motion_moves (x, m, 1);
    x->hooks.send (x, m);
    return;
  }
  const LsCollPlan *plan = m->call->plan;
  const LsPhase *p = &plan->phases[m->phase];
  if (p->demand_bytes <= 0) {
    phase_over (x, m, event->at);
    return;
  }
  m->flow.remaining = p->demand_bytes;
  m->flow.cap = m->flow.nominal_rate = p->rate_cap;
  m->flow.nominal = ls_time_from_s_up (p->demand_bytes / p->rate_cap);
  m->flow.uses = m->call->uses[m->phase];
  m->flow.n_uses = m->call->n_uses[m->phase];
  ls_flow_add (x->net, &m->flow);
  motion_moves (x, m, 1);
}

static void
flow_over (LsEvent *event, void *context)
{
  Run *x = context;
  Motion *m = (Motion *) ((char *) event - G_STRUCT_OFFSET (Motion, flow.done));
  ls_flow_remove (x->net, &m->flow);
  motion_moves (x, m, -1);
  conserve_flow (x, &m->flow, m->call->plan->phases[m->phase].demand_bytes);
  phase_over (x, m, event->at);
}

static void
motion_init (Motion *m, void (*finished) (void *, Motion *, LsTime),
             void (*moving) (void *, const Motion *, int))
{
  ls_event_init (&m->start, latency_over);
  ls_flow_init (&m->flow, flow_over);
  m->finished = finished;
  m->moving = moving;
}

static void
motion_begin (Run *x, Motion *m, Call *call, uint32_t step, LsTime at)
{
  g_assert (call && !m->flow.is_active && !ls_event_is_queued (&m->start));
  m->call = call;
  m->phase = 0;
  m->step = step;
  call_count (call, step, 1, 0);
  if (call->plan->n_phases == 0) /* one member: over at once, also for a rank that runs ahead */
    motion_over (x, m, at);
  else if (call->messages)
    ls_engine_at (&x->engine, &m->start, at + call->base, LS_PHASE_COMPLETE);
  else
    phase_begin (x, m, at);
}

/* --- ends on a rank ---------------------------------------------------------- */

/* All partners of an op are there. A group matches when its last transfer does. */
static void
comm_matched (Run *x, uint32_t rank, uint64_t frame, uint16_t op, LsTime at)
{
  Rank *r = &x->ranks[rank];
  const Frame *f = rank_frame (r, frame);
  LsSpan *span = span_at (r, f->span[op]);
  g_assert (!span || at >= span->start);
  if (span && (span->matched == LS_TIME_NEVER || span->matched < at))
    span->matched = at;
}

/* The op is over on this rank. */
static void
comm_over (Run *x, uint32_t rank, uint64_t frame, uint16_t op, uint64_t sm_share, LsTime at)
{
  Rank *r = &x->ranks[rank];
  Frame *f = rank_frame (r, frame);
  const XOp *xop = &f->seg->x[op];
  LsSpan *span = span_at (r, f->span[op]);
  g_assert (f->state[op] == OP_RUNNING);
  g_assert (!span || (at >= span->matched && span->end == LS_TIME_NEVER));
  if (span)
    span->end = at;
  if (ls_op_has (xop->kind, LS_HAS_CALL)) {
    r->calls_done[xop->slot]++;
    r->call_end[xop->slot] = at;
    r->call_span[xop->slot] = f->span[op];
  }
  if (xop->takes != LS_TAKES_ENGINE) /* copy engines hold no SMs */
    kernel_residency (x, r, &f->seg->ops[op], sm_share, -1);
  rank_op_ended (x, r, frame, op, at);
  rank_ready (x, r);
}

/* ---- collectives ---- */

/* Collectives: launched, resident, matched, latency, moving, done.
 *
 * Call number k of a communicator matches when all members have launched it. From
 * launch to end it holds its share of the SMs of each member. */

static void
collective_finished (void *run, Motion *m, LsTime at)
{
  Run *x = run;
  Comm *c = (Comm *) m;
  const LsCommunicator *group = &c->group;
  digest_add (x->ranks[ls_comm_rank (group, 0)].job, m->step, at, whole_weight_of_comm (x->whole, c->id));
  g_assert (c->n_arrived == group->n_ranks && at >= c->arrived);
  c->n_arrived = 0;
  c->arrived = 0;
  for (uint32_t i = 0; i < group->n_ranks; i++)
    comm_over (x, ls_comm_rank (group, i), c->frame[i], c->op[i], m->call->sm_share, at);
}

/* Newly allocated. */
static char *
describe (CallKey key, LsDtype dtype)
{
  static const char *const parts[LS_N_PARTS_KINDS] = {
    [LS_PARTS_EQUAL] = "", [LS_PARTS_RECEIVED] = ", parts by receiver", [LS_PARTS_SENT] = ", parts by sender"
  };
  LsCollKind kind = (LsCollKind) key.kind;
  const char *algorithm = ls_coll_algorithm_name (key.algorithm);
  g_autofree char *root
      = ls_coll_kind_has_root (kind) ? g_strdup_printf (", root %u", key.root) : g_strdup ("");
  return g_strdup_printf ("%s of %" G_GUINT64_FORMAT " bytes (%s)%s%s%s%s", ls_coll_kind_name (kind),
                          key.bytes, ls_dtype_name (dtype), root, parts[key.parts], algorithm ? ", by " : "",
                          algorithm ? algorithm : "");
}

static void
collective_moving (void *run, const Motion *m, int sign)
{
  Run *x = run;
  const LsCommunicator *group = &((const Comm *) m)->group;
  for (uint32_t i = 0; i < group->n_ranks && m->call->stall > 0; i++)
    kernel_stall (x, &x->ranks[ls_comm_rank (group, i)], m->call->stall, sign);
}

static void
mismatch (Run *x, Comm *c, Rank *r, uint32_t step, const LsOp *op)
{
  const LsCommunicator *group = &c->group;
  if (x->error)
    return;
  x->engine.stop_at = x->engine.now;
  if (c->step != step) {
    x->error
        = g_error_new (LS_ERROR, LS_ERROR_INPUT,
                       "communicator %u (%s): a call of rank %u in step %u meets one of rank %u in step %u",
                       c->id, ls_axis_names[group->axis].name, r->id, step, c->first_rank, c->step);
    return;
  }
  g_autofree char *is = describe (collective_key (op), op->dtype),
                  *was = describe (c->motion.call->key, c->dtype);
  x->error = g_error_new (LS_ERROR, LS_ERROR_INPUT,
                          "communicator %u (%s): rank %u calls %s, but rank %u called %s", c->id,
                          ls_axis_names[group->axis].name, r->id, is, c->first_rank, was);
}

void
comm_launch (Run *x, Rank *r, uint64_t frame, uint16_t op_index, LsTime at)
{
  Frame *f = rank_frame (r, frame);
  const LsOp *op = &f->seg->ops[op_index];
  uint32_t id = r->binding->comm[op->slot], member = r->binding->member[op->slot];
  Comm *c = &x->comms[id];
  const LsCommunicator *group = &c->group;
  if (c->n_arrived == 0) {
    c->motion.call = call_find (c->calls, collective_key (op));
    c->first_rank = r->id;
    c->step = f->step;
    c->dtype = op->dtype;
  } else if (c->step != f->step || !call_key_equal (c->motion.call->key, collective_key (op))
             || c->dtype != op->dtype) {
    mismatch (x, c, r, f->step, op);
    return;
  }
  g_assert (c->motion.call && member < group->n_ranks && c->n_arrived < group->n_ranks);
  c->frame[member] = frame;
  c->op[member] = op_index;
  c->arrived = MAX (c->arrived, at);
  kernel_residency (x, r, op, c->motion.call->sm_share, +1);
  if (++c->n_arrived < group->n_ranks)
    return;
  for (uint32_t i = 0; i < group->n_ranks; i++)
    comm_matched (x, ls_comm_rank (group, i), c->frame[i], c->op[i], c->arrived);
  motion_begin (x, &c->motion, c->motion.call, f->step, c->arrived);
}

void
collectives_init (Run *x)
{
  x->comms = ls_arena_new_array (x->arena, Comm, x->plan->n_comms);
  for (uint32_t i = 0; i < x->plan->n_comms; i++) {
    Comm *c = &x->comms[i];
    c->group = ls_plan_communicator (x->plan, i);
    uint32_t n = c->group.n_ranks;
    motion_init (&c->motion, collective_finished, collective_moving);
    c->id = i;
    c->frame = ls_arena_new_array (x->arena, uint64_t, n);
    c->op = ls_arena_new_array (x->arena, uint16_t, n);
    memset (c->op, 0xff, n * sizeof *c->op); /* NO_OP */
  }
}

/* ---- groups of sends and receives ---- */

/* Groups of sends and receives (ncclGroup, batch_isend_irecv).
 *
 * Each transfer matches and moves alone, in the order of posts per directed pair of
 * neighbours and direction (forward and backward traffic use a communicator each, as
 * Megatron-LM does when pp = 2); the group is over when all its transfers are. */

static void channel_try (Run *x, Channel *ch);

/* The channel that a transfer of rank r travels on: a send to next on its own
 * forward channel, a receive from previous on that of the previous rank; and so on. */
Channel *
group_channel (Run *x, const Rank *r, const LsTransfer *t)
{
  bool is_to_next = t->slot == LS_SLOT_NEXT;
  uint32_t sender = t->is_send ? r->id : r->binding->peer[is_to_next ? 1 : 0];
  return &x->channels[2 * sender + (t->is_send == is_to_next ? 0 : 1)];
}

/* ncclGroup runs all transfers in one kernel: the most SMs that one of them needs. */
uint64_t
group_share (Run *x, const Rank *r, const LsOp *op)
{
  uint64_t most = 0;
  for (uint32_t i = 0; i < op->n_transfers; i++) {
    const LsTransfer *t = &op->transfers[i];
    const Call *c = call_find (group_channel (x, r, t)->calls, transfer_key (t->bytes, t->max_ctas));
    most = MAX (most, c->sm_share);
  }
  return most;
}

/* Its group runs, so it is the head. */
static Stream *
stream_of (Run *x, const Post *p)
{
  Rank *r = &x->ranks[p->rank];
  return &r->streams[rank_frame (r, p->frame)->seg->x[p->op].stream];
}

/* One transfer of the op is over; the group is when all are. */
static void
transfer_over (Run *x, const Post *p, LsTime at)
{
  Rank *r = &x->ranks[p->rank];
  Stream *st = stream_of (x, p);
  g_assert (st->n_moving > st->n_unmatched);
  if (--st->n_moving == 0)
    comm_over (x, p->rank, p->frame, p->op, group_share (x, r, &rank_frame (r, p->frame)->seg->ops[p->op]),
               at);
}

static void
transfer_matched (Run *x, const Post *p, LsTime at)
{
  Stream *st = stream_of (x, p);
  g_assert (st->n_unmatched > 0);
  st->n_unmatched--;
  comm_matched (x, p->rank, p->frame, p->op, at);
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
    if (ls_op_has (f->seg->x[st->op].kind, LS_HAS_TRANSFERS) && st->n_unmatched > 0 && span)
      span->matched = LS_TIME_NEVER;
  }
}

static void
transfer_finished (void *run, Motion *m, LsTime at)
{
  Run *x = run;
  Channel *ch = (Channel *) m;
  g_autofree Post *send = g_queue_pop_head (&ch->sends);
  g_autofree Post *recv = g_queue_pop_head (&ch->recvs);
  g_assert (ch->is_busy && send && recv && at >= MAX (send->at, recv->at));
  digest_add (x->ranks[ch->from].job, m->step, at,
              whole_weight_of_channel (x->whole, (uint32_t) (ch - x->channels)));
  ch->is_busy = false;
  transfer_over (x, send, at);
  transfer_over (x, recv, at);
  channel_try (x, ch);
}

static void
transfer_moving (void *run, const Motion *m, int sign)
{
  Run *x = run;
  const Channel *ch = (const Channel *) m;
  if (m->call->stall == 0)
    return;
  kernel_stall (x, &x->ranks[ch->from], m->call->stall, sign);
  kernel_stall (x, &x->ranks[ch->to], m->call->stall, sign);
}

static void
channel_try (Run *x, Channel *ch)
{
  const Post *send = g_queue_peek_head (&ch->sends), *recv = g_queue_peek_head (&ch->recvs);
  if (ch->is_busy || !send || !recv || x->error)
    return;
  uint32_t step = rank_frame (&x->ranks[ch->from], send->frame)->step;
  uint32_t recv_step = rank_frame (&x->ranks[recv->rank], recv->frame)->step;
  if (step != recv_step) {
    x->error = g_error_new (LS_ERROR, LS_ERROR_INPUT,
                            "a send of rank %u in step %u meets a receive of rank %u in step %u", ch->from,
                            step, ch->to, recv_step);
    x->engine.stop_at = x->engine.now;
    return;
  }
  if (send->bytes != recv->bytes) {
    x->error = g_error_new (LS_ERROR, LS_ERROR_INPUT,
                            "rank %u sends %" G_GUINT64_FORMAT
                            " bytes to rank %u, which expects %" G_GUINT64_FORMAT,
                            ch->from, send->bytes, ch->to, recv->bytes);
    x->engine.stop_at = x->engine.now;
    return;
  }
  g_assert (send->rank == ch->from && recv->rank == ch->to);
  Call *call = call_find (ch->calls, transfer_key (send->bytes, send->max_ctas));
  LsTime at = MAX (MAX (send->at, recv->at), x->engine.now);
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
  Stream *st = &r->streams[f->seg->x[op_index].stream];
  st->n_unmatched = st->n_moving = op->n_transfers;
  kernel_residency (x, r, op, group_share (x, r, op), +1);
  for (uint32_t i = 0; i < op->n_transfers; i++) {
    const LsTransfer *t = &op->transfers[i];
    Channel *ch = group_channel (x, r, t);
    Post *post = g_new (Post, 1);
    *post = (Post) { r->id, op_index, frame, at, t->bytes, t->max_ctas };
    g_queue_push_tail (t->is_send ? &ch->sends : &ch->recvs, post);
    channel_try (x, ch);
  }
}

void
groups_init (Run *x)
{
  x->channels = ls_arena_new_array (x->arena, Channel, 2 * (gsize) x->plan->n_ranks);
  for (uint32_t i = 0; i < 2 * x->plan->n_ranks; i++) {
    Channel *ch = &x->channels[i];
    ch->from = i / 2;
    ch->to = ls_plan_peer (x->plan, ch->from, i % 2 == 0 ? 1 : 0);
    motion_init (&ch->motion, transfer_finished, transfer_moving);
  }
}

void
groups_clear (Run *x)
{
  for (uint32_t i = 0; x->channels && i < 2 * x->plan->n_ranks; i++) {
    g_queue_clear_full (&x->channels[i].sends, g_free);
    g_queue_clear_full (&x->channels[i].recvs, g_free);
  }
}

/* ---- copies ---- */

/* Copies between a GPU and the memory of its host's CPU, or its NVMe drive:
 * copy engines, one per direction, that hold no SMs and share PCIe, the CPU's memory or the
 * drive, and the HBM.
 *
 * A link carries as much each way whatever goes the other. Where a calibration knows better
 * (LsAround.copy_duplex), a copy to the device and one to the host move at that share of their rates while
 * both do. The share is of one GPU with the host to itself; what several GPUs share is the links' and the
 * memory's. Copies to and from a drive, whose rate is a fraction of the link's, neither cause it nor pay it.
 *
 * Worked example. 10 GB each way at 50 GB/s, copy_duplex 0.8: 250 ms. 10 GB in and 5 GB out: the 5 GB take
 * 125 ms at 40 GB/s; the 5 GB that are left go at 50 GB/s, 225 ms in all. */

static void
copy_finished (void *run, Motion *m, LsTime at)
{
  Copy *c = (Copy *) m;
  Run *x = run;
  digest_add (x->ranks[c->rank].job, m->step, at, whole_weight_of_copy (x->whole, c->rank));
  g_assert (c->is_busy && !c->is_moving && x->ranks[c->rank].n_copies > 0);
  c->is_busy = false;
  x->ranks[c->rank].n_copies--;
  comm_over (x, c->rank, c->frame, c->op, 0, at);
}

static void
copy_recap (Run *x, Copy *c, double share)
{
  LsFlow *f = &c->motion.flow;
  double cap = f->nominal_rate * share;
  if (c->is_moving)
    ls_flow_set_cap (x->net, f, cap);
}

static void
copy_moving (void *run, const Motion *m, int sign)
{
  Run *x = run;
  Copy *c = (Copy *) m, *engines = &x->copies[c->rank * LS_N_COPY_DIRECTIONS],
       *in = &engines[LS_COPY_TO_DEVICE], *out = &engines[LS_COPY_TO_HOST];
  g_assert (c->is_busy && c->is_moving == (sign < 0));
  c->is_moving = sign > 0;
  double share = in->is_moving && out->is_moving ? ls_around_duplex (x->ranks[c->rank].kind->around) : 1;
  copy_recap (x, in, share);
  copy_recap (x, out, share);
}

static Copy *
engine_of (const Run *x, const Rank *r, const LsOp *op)
{
  return &x->copies[r->id * LS_N_COPY_DIRECTIONS + op->direction];
}

bool
copy_can_start (const Run *x, const Rank *r, const LsOp *op)
{
  return !engine_of (x, r, op)->is_busy;
}

void
copy_start (Run *x, Rank *r, uint64_t frame, uint16_t op_index, LsTime at)
{
  const LsOp *op = &rank_frame (r, frame)->seg->ops[op_index];
  Copy *c = engine_of (x, r, op);
  Call *call = call_find (c->calls, copy_key (op));
  c->is_busy = true;
  c->rank = r->id;
  c->frame = frame;
  c->op = op_index;
  r->n_copies++;
  comm_matched (x, r->id, frame, op_index, at);
  motion_begin (x, &c->motion, call, rank_frame (r, frame)->step, at);
}

void
copies_init (Run *x)
{
  uint32_t n = x->plan->n_ranks * LS_N_COPY_DIRECTIONS;
  x->copies = ls_arena_new_array (x->arena, Copy, n);
  for (uint32_t i = 0; i < n; i++)
    motion_init (&x->copies[i].motion, copy_finished, copy_moving);
}

/* ---- a copy to or from the memory of the host as a plan ---- */

void
ls_copy_route (const LsCluster *c, uint32_t gpu, LsCopyDirection direction, LsRoute *ret_route)
{
  static void (*const ways[LS_N_COPY_WAYS]) (const LsCluster *, uint32_t, bool, LsRoute *)
      = { [LS_COPY_BY_HOST] = ls_route_host_memory, [LS_COPY_BY_NVME] = ls_route_nvme };
  const LsCopyRow *row = &ls_copies[direction];
  ways[row->way](c, gpu, row->is_out, ret_route);
  if (!row->is_in_host || ret_route->n_hops == 0)
    return;
  ret_route->hop[0] = ret_route->hop[ret_route->n_hops - 1];
  ret_route->n_hops = 1;
  ret_route->latency = 0;
}

const LsCollPlan *
ls_copy_plan (const LsCluster *c, uint32_t gpu, LsCopyDirection direction, uint64_t bytes,
              LsNetworkFidelity network, LsArena *arena)
{
  LsRoute route;
  ls_copy_route (c, gpu, direction, &route);
  LsPhase *phase = ls_arena_new_array (arena, LsPhase, 1);
  phase->loads = ls_arena_new_array (arena, LsLoad, route.n_hops + 1);
  phase->latency = route.latency;
  phase->demand_bytes = (double) bytes;
  uint32_t n = route.n_hops + !ls_copies[direction].is_in_host; /* past the last hop: the HBM */
  for (uint32_t i = 0; i < n; i++) {
    LsHop hop = i < route.n_hops ? route.hop[i] : (LsHop) { ls_cluster_hbm_resource (c, gpu), LS_HOP_WHOLE };
    double capacity = ls_cluster_resource_capacity (c, hop.trunk) * LS_HOP_WHOLE / hop.share;
    phase->loads[phase->n_loads++]
        = (LsLoad) { hop.trunk, (uint64_t) LS_COEF_ONE * hop.share / LS_HOP_WHOLE };
    phase->rate_cap = i == 0 ? capacity : MIN (phase->rate_cap, capacity);
  }
  if (network == LS_NETWORK_ALPHABETA)
    phase->n_loads = 0;
  LsCollPlan *plan = ls_arena_new_array (arena, LsCollPlan, 1);
  *plan = (LsCollPlan) {
    .algorithm = "copy", .protocol = "DMA", .n_phases = 1, .phases = phase, .n_periods = 1
  };
  return plan;
}
