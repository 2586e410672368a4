/* exec/motion.c — what moves: phase by phase, first the latency, then the flow.
 *
 * Collectives, transfers of p2p groups and copies are all motions; what they load
 * is lowered once per (kind, bytes) and kept as a Call. */
#include "exec/state.h"

#include <math.h>

static void
motion_over (Run *x, Motion *m, LsTime at)
{
  uint32_t parity = m->step & 1;
  m->call->n_over[parity] += m->call->step[parity] == m->step + 1;
  m->finished (x, m, at);
}

static void
phase_begin (Run *x, Motion *m, LsTime at)
{
  ls_engine_at (&x->engine, &m->start, at + m->call->plan->phases[m->phase].latency, LS_PHASE_COMPLETE);
}

static void
phase_over (Run *x, Motion *m, LsTime at)
{
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
  m->flow.n_uses = p->n_loads;
  ls_flow_add (x->net, &m->flow);
}

static void
flow_over (LsEvent *event, void *context)
{
  Run *x = context;
  Motion *m = (Motion *) ((char *) event - G_STRUCT_OFFSET (Motion, flow.done));
  ls_flow_remove (x->net, &m->flow);
  conserve_flow (x, m);
  phase_over (x, m, event->at);
}

void
motion_init (Motion *m, void (*finished) (void *, Motion *, LsTime))
{
  ls_event_init (&m->start, latency_over);
  ls_event_init (&m->flow.done, flow_over);
  m->finished = finished;
}

void
motion_begin (Run *x, Motion *m, Call *call, uint32_t step, LsTime at)
{
  m->call = call;
  m->phase = 0;
  m->step = step;
  uint32_t parity = step & 1;
  if (call->step[parity] != step + 1) {
    call->step[parity] = step + 1;
    call->count[parity] = call->n_over[parity] = 0;
  }
  call->count[parity]++;
  if (call->plan->n_phases == 0) /* one member: over at once, also for a rank that runs ahead */
    motion_over (x, m, at);
  else
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

Call *
call_find (Call *calls, uint8_t kind, uint64_t bytes)
{
  while (calls && (calls->kind != kind || calls->bytes != bytes))
    calls = calls->next;
  return calls;
}

Call *
call_add (Run *x, Call **calls, uint8_t kind, uint64_t bytes, const LsCollPlan *plan)
{
  Call *c = ls_arena_new_array (x->arena, Call, 1);
  c->kind = kind;
  c->bytes = bytes;
  c->plan = plan;
  c->sm_share = (uint64_t) llround (plan->sm_share * (double) LS_COEF_ONE);
  c->uses = ls_arena_new_array (x->arena, LsFlowUse *, plan->n_phases);
  for (uint32_t i = 0; i < plan->n_phases; i++)
    c->uses[i] = uses_of (x, &plan->phases[i]);
  c->next = *calls;
  *calls = c;
  return c;
}

Call *
call_for_ranks (Run *x, Call **calls, LsCollKind kind, uint64_t bytes, const uint32_t *ranks, uint32_t n)
{
  Call *known = call_find (*calls, (uint8_t) kind, bytes);
  if (known)
    return known;
  g_autofree uint32_t *gpus = g_new (uint32_t, n);
  for (uint32_t i = 0; i < n; i++)
    gpus[i] = x->plan->gpu_of_rank[ranks[i]];
  return call_add (x, calls, (uint8_t) kind, bytes,
                   ls_coll_plan (x->cluster, x->nccl, kind, gpus, n, bytes, x->options->network, x->arena));
}

void
calls_count_bytes (const Call *calls, uint32_t step, double *resource_bytes)
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

/* --- ends on a rank ---------------------------------------------------------- */

/* A group matches when its last transfer does. */
void
comm_matched (Run *x, uint32_t rank, uint64_t frame, uint16_t op, LsTime at)
{
  Rank *r = &x->ranks[rank];
  const Frame *f = rank_frame (r, frame);
  LsSpan *span = span_at (r, f->span[op]);
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
  if (span)
    span->end = at;
  if (xop->kind == LS_OP_COLLECTIVE) {
    r->calls_done[xop->slot]++;
    r->call_end[xop->slot] = at;
    r->call_span[xop->slot] = f->span[op];
  }
  if (xop->kind != LS_OP_COPY) /* copy engines hold no SMs */
    kernel_residency (x, r, sm_share, -1);
  rank_op_ended (x, r, frame, op, at);
  rank_ready (x, r);
}
