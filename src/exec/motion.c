/* exec/motion.c — what moves: phase by phase, first the latency, then the flow; or with
 * --network step message by message (messages.h).
 *
 * Collectives, transfers of p2p groups and copies are all motions; what they load
 * is lowered once per (kind, root, bytes) and kept as a Call. */
#include "exec/state.h"

#include <math.h>
#include <string.h>

/* An end of a step that is no longer looked at counts as nothing. */
void
call_count (Call *call, uint32_t step, uint64_t n_begun, uint64_t n_over)
{
  uint32_t parity = step & 1;
  if (n_begun > 0 && call->step[parity] != step + 1) {
    call->step[parity] = step + 1;
    call->count[parity] = call->n_over[parity] = 0;
  }
  call->count[parity] += n_begun;
  if (call->step[parity] == step + 1)
    call->n_over[parity] += n_over;
}

static void
motion_over (Run *x, Motion *m, LsTime at)
{
  call_count (m->call, m->step, 0, 1);
  m->finished (x, m, at);
}

static void
motion_moves (Run *x, const Motion *m, int sign)
{
  if (m->moving && m->call->stall > 0)
    m->moving (x, m, sign);
}

static double *
bytes_of_step (Run *x, uint32_t step)
{
  uint32_t parity = step & 1, n = ls_cluster_n_resources (x->cluster);
  if (!x->message_bytes[parity])
    x->message_bytes[parity] = g_new (double, n);
  if (x->message_step[parity] != step + 1)
    memset (x->message_bytes[parity], 0, n * sizeof (double));
  x->message_step[parity] = step + 1;
  return x->message_bytes[parity];
}

static void
messages_over (void *context, void *motion, LsTime at)
{
  motion_moves (context, motion, -1);
  motion_over (context, motion, at);
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
  if (m->call->messages) {
    motion_moves (x, m, 1);
    messages_begin (m->call->messages, m, bytes_of_step (x, m->step));
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
  leases_enter (x->message_net.leases, &m->flow);
  ls_flow_add (x->net, &m->flow);
  motion_moves (x, m, 1);
}

static void
flow_over (LsEvent *event, void *context)
{
  Run *x = context;
  Motion *m = (Motion *) ((char *) event - G_STRUCT_OFFSET (Motion, flow.done));
  ls_flow_remove (x->net, &m->flow);
  leases_leave (x->message_net.leases, &m->flow);
  motion_moves (x, m, -1);
  conserve_flow (x, &m->flow, m->call->plan->phases[m->phase].demand_bytes);
  phase_over (x, m, event->at);
}

void
motion_init (Motion *m, void (*finished) (void *, Motion *, LsTime),
             void (*moving) (void *, const Motion *, int))
{
  ls_event_init (&m->start, latency_over);
  ls_event_init (&m->flow.done, flow_over);
  m->finished = finished;
  m->moving = moving;
}

void
motion_begin (Run *x, Motion *m, Call *call, uint32_t step, LsTime at)
{
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

static void
message_flow_over (void *context, const LsFlow *f, double asked)
{
  conserve_flow (context, f, asked);
}

void
motions_init (Run *x, const double *capacity)
{
  x->message_net = (MessageNet) { .engine = &x->engine, .flows = x->net, .context = x, .flow_over = message_flow_over };
  x->coll_memo = ls_coll_memo_new ();
  x->messages = g_ptr_array_new_with_free_func ((GDestroyNotify) messages_free);
  if (x->options->network == LS_NETWORK_STEP && x->options->solver != LS_SOLVER_REFERENCE)
    x->message_net.leases = leases_new (ls_cluster_n_resources (x->cluster), capacity, messages_revoked);
}

void
motions_clear (Run *x)
{
  g_ptr_array_unref (x->messages);
  leases_free (x->message_net.leases);
  ls_coll_memo_free (x->coll_memo);
  g_free (x->message_bytes[0]);
  g_free (x->message_bytes[1]);
}

/* --- calls ---------------------------------------------------------------- */

Call *
call_find (Call *calls, CallKey key)
{
  while (calls && !call_key_equal (calls->key, key))
    calls = calls->next;
  return calls;
}

/* Of kernels that communicate; of copy engines, which hold no SMs, nothing is known. See
 * LsNccl.stall_per_byte: over the time that the call moves when it is alone. */
uint64_t
call_stall (const Run *x, CallKey key, const LsCollPlan *plan)
{
  bool is_by_copy_engines = key.kind == LS_COLL_COPY_PERMUTE && plan->sm_share <= 0;
  double passes = key.kind == LS_COLL_ALL_REDUCE ? 2 : is_by_copy_engines ? 0 : 1;
  double lost_s = x->nccl->stall_per_byte * passes * (double) key.bytes / x->cluster->spec.gpu.hbm_bytes_per_s;
  LsTime moving = ls_coll_time_alone (x->cluster, plan);
  for (uint32_t i = 0; i < plan->n_phases; i++)
    moving -= plan->phases[i].latency;
  return lost_s > 0 && moving > 0 ? (uint64_t) llround (fmin (1, lost_s / ls_time_to_s (moving)) * (double) LS_COEF_ONE) : 0;
}

/* A phase without bytes is no flow. */
static void
add_uses (Run *x, Call *c, uint32_t n_alike)
{
  c->uses = ls_arena_new_array (x->arena, LsFlowUse *, c->plan->n_phases);
  c->n_uses = ls_arena_new_array (x->arena, uint32_t, c->plan->n_phases);
  for (uint32_t i = 0; i < c->plan->n_phases; i++) {
    const LsPhase *p = &c->plan->phases[i];
    uint32_t n_most = p->demand_bytes > 0 ? MIN (p->n_loads, x->fold->n_resources) : 0;
    if (n_most == 0)
      continue;
    c->uses[i] = ls_arena_new_array (x->arena, LsFlowUse, n_most);
    c->n_uses[i] = fold_uses (x->fold, p->loads, p->n_loads, n_alike, c->uses[i]);
  }
}

Call *
call_add (Run *x, Call **calls, CallKey key, const LsCollPlan *plan, uint32_t n_alike)
{
  Call *c = ls_arena_new_array (x->arena, Call, 1);
  c->key = key;
  c->plan = plan;
  c->sm_share = (uint64_t) llround (plan->sm_share * (double) LS_COEF_ONE);
  add_uses (x, c, n_alike);
  c->next = *calls;
  *calls = c;
  return c;
}

/* One message is a flow: sends, receives and copies have no script. */
static void
add_messages (Run *x, Call *c, const LsScript *script)
{
  x->messages_bytes += messages_bytes (script);
  if (x->messages_bytes > x->options->max_memory_bytes) {
    g_autofree char *need = ls_format_bytes (x->messages_bytes), *may = ls_format_bytes (x->options->max_memory_bytes);
    if (!x->error)
      x->error = g_error_new (LS_ERROR, LS_ERROR_LIMIT, "the messages of %s over %u ranks need %s of memory with what came before; --max-memory is %s",
                              ls_coll_kind_name ((LsCollKind) c->key.kind), script->n, need, may);
    x->engine.stop_at = x->engine.now;
    return;
  }
  c->messages = messages_new (&x->message_net, script, messages_over);
  c->base = script->base;
  g_ptr_array_add (x->messages, c->messages);
}

/* Else the run ends here. */
static bool
can_be_met (Run *x, const LsCollRequest *request)
{
  if (ls_coll_applies (x->cluster, x->nccl, request))
    return true;
  g_autofree char *rule = ls_coll_rule (request->algorithm);
  if (!x->error)
    x->error = g_error_new (LS_ERROR, LS_ERROR_CONFLICT, "an %s over %u ranks by %s: it does %s", ls_coll_kind_name (request->kind),
                            request->n, request->algorithm, rule);
  x->engine.stop_at = x->engine.now;
  return false;
}

/* The same. */
static bool
is_small (Run *x, const LsCollRequest *request)
{
  if (ls_coll_check_size (x->cluster, x->nccl, request, x->options->network, x->error ? NULL : &x->error))
    return true;
  x->engine.stop_at = x->engine.now;
  return false;
}

/* A script keeps its GPUs: in arena. */
LsCollRequest
call_request (const Run *x, CallKey key, const uint32_t *ranks, uint32_t n, LsCollMemo *memo, LsArena *arena)
{
  const LsPlan *plan = x->fold->plan;
  uint32_t *gpus = ls_arena_new_array (arena, uint32_t, n);
  g_assert (key.parts == LS_PARTS_EQUAL || plan->n_weights == n);
  for (uint32_t i = 0; i < n; i++)
    gpus[i] = plan->gpu_of_rank[ranks[i]];
  return (LsCollRequest) {
    .kind = (LsCollKind) key.kind, .gpus = gpus, .n = n, .root = key.root, .bytes = key.bytes, .memo = memo,
    .algorithm = key.algorithm > 0 ? ls_coll_algorithms ()[key.algorithm - 1] : NULL,
    .weights = key.parts == LS_PARTS_EQUAL ? NULL : plan->weights, .weighs_senders = key.parts == LS_PARTS_SENT,
  };
}

Call *
call_for_ranks (Run *x, Call **calls, CallKey key, const uint32_t *ranks, uint32_t n, uint32_t n_alike)
{
  Call *known = call_find (*calls, key);
  if (known)
    return known;
  LsCollRequest request = call_request (x, key, ranks, n, x->coll_memo, x->arena);
  if (!can_be_met (x, &request) || !is_small (x, &request))
    return call_add (x, calls, key, ls_arena_new_array (x->arena, LsCollPlan, 1), n_alike);
  const LsCollPlan *plan = ls_coll_plan (x->cluster, x->nccl, &request, x->options->network, x->arena);
  Call *c = call_add (x, calls, key, plan, n_alike);
  c->stall = call_stall (x, key, plan);
  request.algorithm = plan->algorithm;
  if (x->options->network == LS_NETWORK_STEP && request.kind != LS_COLL_SEND_RECV && n > 1)
    add_messages (x, c, ls_coll_script (x->cluster, x->nccl, &request, x->arena));
  return c;
}

void
calls_count_bytes (const Call *calls, uint32_t step, ExactBytes *resource_bytes)
{
  for (const Call *c = calls; c; c = c->next) {
    if (c->step[step & 1] != step + 1 || c->messages)
      continue;
    for (uint32_t i = 0; i < c->plan->n_phases; i++) {
      ExactBytes demand = (ExactBytes) rint (ldexp (c->plan->phases[i].demand_bytes, 20)) * c->count[step & 1];
      for (uint32_t u = 0; u < c->n_uses[i]; u++)
        resource_bytes[c->uses[i][u].resource] += demand * c->uses[i][u].coef;
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
    kernel_residency (x, r, &f->seg->ops[op], sm_share, -1);
  rank_op_ended (x, r, frame, op, at);
  rank_ready (x, r);
}
