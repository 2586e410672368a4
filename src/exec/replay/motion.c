/* exec/replay/motion.c — what moves: phase by phase, first the latency, then the flow; or, by a hook,
 * message by message.
 *
 * Collectives, transfers of p2p groups and copies are all motions; what they load is a Call
 * (exec/replay/calls.h). */
#include "exec/replay/motion.h"
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

void
motion_init (Motion *m, void (*finished) (void *, Motion *, LsTime),
             void (*moving) (void *, const Motion *, int))
{
  ls_event_init (&m->start, latency_over);
  ls_flow_init (&m->flow, flow_over);
  m->finished = finished;
  m->moving = moving;
}

void
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

/* A group matches when its last transfer does. */
void
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
void
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
