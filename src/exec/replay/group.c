/* exec/replay/group.c — groups of sends and receives (ncclGroup, batch_isend_irecv).
 *
 * Each transfer matches and moves alone, in the order of posts per directed pair of
 * neighbours and direction (forward and backward traffic use a communicator each, as
 * Megatron-LM does when pp = 2); the group is over when all its transfers are. */
#include <lockstep/error.h>

#include "exec/replay/motion.h"
#include "exec/replay/state.h"

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

static const Call *
transfer_call (Run *x, const Rank *r, const LsTransfer *t)
{
  return call_find (group_channel (x, r, t)->calls, transfer_key (t->bytes, t->max_ctas));
}

/* ncclGroup runs all transfers in one kernel: the most SMs that one of them needs. */
uint64_t
group_share (Run *x, const Rank *r, const LsOp *op)
{
  uint64_t most = 0;
  for (uint32_t i = 0; i < op->n_transfers; i++)
    most = MAX (most, transfer_call (x, r, &op->transfers[i])->sm_share);
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
  x->channels = g_new0 (Channel, 2 * (gsize) x->plan->n_ranks);
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
  g_free (x->channels);
}
