/* exec/replay/check.c — what always holds of a run, asserted after events (LS_DEBUG=check).
 *
 * Counters are sums of what they count, each found anew: ops that are not over, streams that are busy, SMs
 * that are held, flows in the net. What is busy moves, and nothing else. No link is over its capacity, once
 * the rates of an instant are found. After every event of a small run; of a large one so often that an event
 * costs no more than a look at some hundred ops. */
#include "exec/replay/motion.h"
#include "exec/replay/op_begin.h"
#include "exec/replay/state.h"

#define LOOKS_PER_EVENT 256

/* Ops of the frame that are not over. One that a hook has taken is as it was issued, but for their number. */
static uint32_t
check_frame (const Frame *f)
{
  uint32_t n_left = 0;
  g_assert (f->n_issued <= f->seg->n_ops);
  for (uint32_t i = 0; i < f->seg->n_ops; i++) {
    n_left += f->state[i] != OP_ENDED;
    g_assert ((f->state[i] == OP_WAITING) == (i >= f->n_issued));
  }
  g_assert (f->n_left == n_left || f->n_left == 0);
  return f->n_left;
}

/* At so many ops. */
static uint32_t
check_frames (Rank *r)
{
  uint32_t n_outstanding = 0, n_looks = 0;
  for (uint64_t i = r->frames_first; i < r->frames_end; i++) {
    n_outstanding += check_frame (rank_frame (r, i));
    n_looks += rank_frame (r, i)->seg->n_ops;
  }
  g_assert (r->n_outstanding == n_outstanding);
  return n_looks;
}

/* What is busy holds SMs, is copied or is the kernel. */
static void
check_streams (Run *x, Rank *r)
{
  uint32_t n_busy = 0;
  uint64_t sm_share = 0;
  for (uint32_t s = 0; s < LS_N_STREAMS; s++) {
    const Stream *st = &r->streams[s];
    g_assert ((st->op != NO_OP) == ((r->with_head & 1u << s) != 0));
    g_assert (st->frame <= r->frames_end && (st->op == NO_OP) == (st->frame == r->frames_end));
    if (st->op == NO_OP)
      continue;
    const Frame *f = rank_frame (r, st->frame);
    const OpBegin *by = &op_begins[f->seg->x[st->op].kind];
    g_assert (st->is_busy == (f->state[st->op] == OP_RUNNING));
    n_busy += st->is_busy;
    sm_share += st->is_busy && by->sm_share ? by->sm_share (x, r, &f->seg->ops[st->op]) : 0;
  }
  g_assert (n_busy == r->n_resident + r->n_copies + r->is_kernel_running);
  g_assert (r->sm_share == sm_share && r->sm_margin <= sm_share);
  g_assert (r->n_resident > 0 || r->stall == 0);
}

/* Of so many things. */
static uint32_t
check_rank (Run *x, Rank *r)
{
  uint32_t n_looks = check_frames (r);
  check_streams (x, r);
  for (int i = 0; i < 2; i++)
    g_assert (r->n_spans[i] <= r->span_room[i]);
  for (int s = 0; s < LS_N_SLOTS; s++)
    g_assert (r->calls_done[s] <= r->calls_opened[s]);
  return n_looks + LS_N_STREAMS + LS_N_SLOTS;
}

static bool
is_moving (const Motion *m)
{
  return ls_event_is_queued (&m->start) || m->flow.is_active;
}

/* Those of phases that are in the net. */
static uint32_t
check_motions (const Run *x)
{
  uint32_t n_active = 0;
  for (uint32_t i = 0; i < x->plan->n_comms; i++) {
    const Comm *c = &x->comms[i];
    g_assert (!is_moving (&c->motion) || c->n_arrived == c->group.n_ranks);
    n_active += c->motion.flow.is_active;
  }
  for (uint32_t i = 0; i < 2 * x->plan->n_ranks; i++) {
    Channel *ch = &x->channels[i];
    g_assert (ch->is_busy == is_moving (&ch->motion));
    g_assert (ch->is_busy == (ch->sends.length > 0 && ch->recvs.length > 0));
    n_active += ch->motion.flow.is_active;
  }
  for (uint32_t i = 0; i < LS_N_COPY_DIRECTIONS * x->plan->n_ranks; i++) {
    g_assert (x->copies[i].is_busy == is_moving (&x->copies[i].motion));
    n_active += x->copies[i].motion.flow.is_active;
  }
  return n_active;
}

void
run_check (void *run)
{
  Run *x = run;
  if (x->error || x->engine.n_events < x->next_check)
    return;
  uint64_t n_looks = x->plan->n_comms + x->whole->n_resources;
  uint32_t n_active = check_motions (x);
  for (uint32_t i = 0; i < x->plan->n_ranks; i++) {
    n_looks += check_rank (x, &x->ranks[i]);
    n_active += x->ranks[i].is_kernel_running;
  }
  g_assert (ls_flow_net_n_active (x->net) >= n_active);
  g_assert (x->extras || ls_flow_net_n_active (x->net) == n_active);
  if (ls_flow_net_is_settled (x->net))
    ls_flow_net_check (x->net);
  x->next_check = x->engine.n_events + 1 + n_looks / LOOKS_PER_EVENT;
}

void
run_check_spans (const LsRankSpans *spans)
{
  for (uint32_t i = 0; i < spans->n; i++) {
    const LsSpan *s = &spans->spans[i];
    g_assert (s->issued <= s->start && s->start <= s->end);
    g_assert (s->cause == LS_SPAN_NONE || s->cause < spans->n);
  }
}
