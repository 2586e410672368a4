/* exec/replay/compile.c — what a replay can know before the clock starts: the time of
 * each kernel alone, the place of each op in its stream and communicator, and what each call loads. */
#include <lockstep/error.h>

#include "base/diag.h"
#include "exec/replay/state.h"

#include <math.h>

static gboolean
refuse (const LsSegment *seg, uint32_t op, const char *why, GError **error)
{
  return ls_fail (error, LS_ERROR_INPUT, "segment %s, op %u (%s): %s", seg->name, op,
                  seg->ops[op].name ? seg->ops[op].name : "unnamed", why);
}

static void
cost_kernels (Run *x, uint32_t kind)
{
  XKind *of = &x->kinds[kind];
  of->gpu = &ls_cluster_spec_of_kind (&x->cluster->spec, kind)->gpu;
  of->costs = ls_arena_new_array (x->arena, LsKernelCost, MAX (1, x->plan->n_kernels));
  for (const XJob *job = x->jobs; job < x->jobs + x->n_jobs; job++) {
    LsCalibration room;
    const LsCalibration *calibration = ls_calibration_of_kind (job->calibration, kind, of->gpu, &room);
    for (uint32_t i = job->first_kernel; i < job->first_kernel + job->plan->n_kernels; i++)
      of->costs[i] = ls_kernel_cost (calibration, of->gpu, &x->plan->kernels[i]);
  }
  const LsCalibration *first = x->jobs[0].calibration;
  of->around = kind == 0 ? &first->around : &first->others[kind - 1].around;
  of->gemms = ls_around_gemms (of->around, of->gpu->persistent_gemms, first->dynamic_gemms);
}

/* Repeated: the host goes on when all are issued, but the first may start by then. */
static bool
repeat (uint32_t n, XOp *to)
{
  return __builtin_mul_overflow (to->host, (LsTime) n - 1, &to->host_rest)
      || __builtin_mul_overflow (to->alone, (LsTime) n, &to->alone);
}

/* "All issued before on stream s" is the last such op of the segment, if there
 * is one; else the stream's tail where the frame begins. */
static LsDep
resolve_dep (const LsSegment *seg, uint32_t op, LsDep dep)
{
  if (dep.kind != LS_DEP_STREAM)
    return dep;
  for (uint32_t i = op; i-- > 0;)
    if (seg->ops[i].stream == dep.index && !ls_op_is_of_host (seg->ops[i].kind))
      return (LsDep) { LS_DEP_END, (uint16_t) i };
  return dep;
}

/* Inside a CUDA graph a kernel begins sooner behind the one before. */
static LsTime
alone_of (const XKind *kind, const LsOp *op)
{
  const LsKernelCost *cost = &kind->costs[op->kernel];
  return op->is_in_graph
      ? MAX (0, cost->alone - ls_around_graph_saves (kind->around, ls_time_from_s (cost->launch_s)))
      : cost->alone;
}

static gboolean
compile_op (Run *x, XJob *job, uint32_t kind, const LsSegment *seg, uint32_t i, XOp *to, GError **error)
{
  const LsOp *op = &seg->ops[i];
  if (op->kind >= LS_N_OP_KINDS || op->stream >= LS_N_STREAMS || op->host >= LS_N_HOST_COSTS
      || op->slot >= LS_N_SLOTS)
    return refuse (seg, i, "kind, stream, host cost or slot out of range", error);
  if (ls_op_has (op->kind, LS_HAS_CALL) && op->coll >= LS_COLL_SEND_RECV)
    return refuse (seg, i, "there is no such collective", error);
  if (op->algorithm >= LS_N_ALGORITHMS)
    return refuse (seg, i, "there is no such algorithm", error);
  *to = (XOp) { .kind = op->kind,
                .takes = ls_op_kinds[op->kind].takes,
                .host_waits = ls_op_kinds[op->kind].host_waits,
                .stream = op->stream,
                .slot = op->slot,
                .cost = op->kernel,
                .n_deps = op->n_deps,
                .next = NO_OP,
                .host = job->host->cost[op->host] };
  if (ls_op_is_of_host (op->kind) && ls_op_has (op->kind, LS_HAS_RECORDED))
    to->host = op->recorded > LS_TIME_NEVER - to->host ? LS_TIME_NEVER : to->host + op->recorded;

  if (ls_op_takes (op->kind, LS_TAKES_GPU) || ls_op_takes (op->kind, LS_TAKES_ENGINE)) {
    if (op->recorded != LS_TIME_NEVER)
      to->alone = op->recorded;
    else if (ls_op_takes (op->kind, LS_TAKES_ENGINE))
      to->alone = LS_TIME_NEVER; /* its path decides */
    else if (op->kernel >= x->plan->n_kernels)
      return refuse (seg, i, "a kernel needs a shape or a recorded duration", error);
    else
      to->alone = alone_of (&x->kinds[kind], op);
  }

  g_assert (to->host >= 0 && to->alone >= 0);
  if (ls_op_takes (op->kind, LS_TAKES_GPU) && op->kernel < x->plan->n_kernels && to->alone > 0)
    job->fastest_kernel[kind]
        = MAX (job->fastest_kernel[kind], x->plan->kernels[op->kernel].bytes / ls_time_to_s (to->alone));
  if (op->repeat > 1 && repeat (op->repeat, to))
    return refuse (seg, i, "it repeats for too long", error);

  LsDep *deps = ls_arena_new_array (x->arena, LsDep, op->n_deps);
  for (uint32_t d = 0; d < op->n_deps; d++) {
    deps[d] = resolve_dep (seg, i, op->deps[d]);
    if (deps[d].kind == LS_DEP_STREAM ? deps[d].index >= LS_N_STREAMS : deps[d].index >= i)
      return refuse (seg, i, "depends on a later op", error);
  }
  to->deps = deps;
  return TRUE;
}

/* What takes too long to be added up is issued op by op. */
static void
compile_issues (Run *x, XSegment *to)
{
  LsTime at = 0;
  to->issued = ls_arena_new_array (x->arena, LsTime, to->n_ops + 1);
  for (; to->n_ahead < to->n_ops && !ls_op_is_of_host (to->x[to->n_ahead].kind); to->n_ahead++) {
    const XOp *op = &to->x[to->n_ahead];
    LsTime next;
    if (__builtin_add_overflow (at, op->host, &to->issued[to->n_ahead])
        || __builtin_add_overflow (to->issued[to->n_ahead], op->host_rest, &next))
      break;
    at = next;
  }
  to->issued[to->n_ahead] = at;
}

static gboolean
compile_segment (Run *x, XJob *job, uint32_t kind, const LsSegment *seg, XSegment *to, GError **error)
{
  if (seg->n_ops >= NO_OP)
    return ls_fail (error, LS_ERROR_LIMIT, "segment %s has %u ops; the limit is %u", seg->name, seg->n_ops,
                    NO_OP - 1);
  to->n_ops = seg->n_ops;
  to->ops = seg->ops;
  to->x = ls_arena_new_array (x->arena, XOp, MAX (1, seg->n_ops));
  uint16_t last[LS_N_STREAMS];
  for (int s = 0; s < LS_N_STREAMS; s++)
    to->first[s] = last[s] = NO_OP;

  for (uint32_t i = 0; i < seg->n_ops; i++) {
    XOp *op = &to->x[i];
    if (!compile_op (x, job, kind, seg, i, op, error))
      return FALSE;
    to->n_spans += ls_op_has_span (op->kind);
    if (ls_op_has (op->kind, LS_HAS_CALL))
      op->call = to->n_calls[op->slot]++;
    if (ls_op_is_of_host (op->kind))
      continue;
    if (last[op->stream] == NO_OP)
      to->first[op->stream] = (uint16_t) i;
    else
      to->x[last[op->stream]].next = (uint16_t) i;
    last[op->stream] = (uint16_t) i;
  }
  compile_issues (x, to);
  return TRUE;
}

/* Of each role, those on nodes of that kind; newly allocated. */
static uint64_t *
ranks_of_kind (const Run *x, const XKind *kind)
{
  if (!x->cluster->kind_of_host)
    return ls_plan_ranks_of_roles (x->plan);
  uint64_t *n_ranks = g_new0 (uint64_t, x->plan->n_roles + 1);
  for (uint32_t r = 0; r < x->plan->n_ranks; r++)
    n_ranks[ls_plan_role (x->plan, r)] += run_kind_of (x, x->plan, r) == kind;
  return n_ranks;
}

/* Seconds of kernels of one step by the source of their cost, over all ranks on nodes of that kind. */
static void
count_cost_sources (Run *x, const XKind *kind)
{
  g_autofree uint64_t *n_ranks = ranks_of_kind (x, kind);
  for (uint32_t role = 0; role < x->plan->n_roles; role++) {
    if (n_ranks[role] == 0)
      continue;
    g_autofree uint32_t *n_uses = ls_program_uses (x->plan, &x->plan->programs[role], 0);
    for (uint32_t s = 0; s < x->plan->n_segments; s++)
      for (uint32_t i = 0; n_uses[s] && i < kind->segments[s].n_ops; i++) {
        const XOp *op = &kind->segments[s].x[i];
        if (!ls_op_takes (op->kind, LS_TAKES_GPU))
          continue;
        double seconds = ls_time_to_s (op->alone) * (double) (n_uses[s] * n_ranks[role]);
        bool is_recorded = x->plan->segments[s].ops[i].recorded != LS_TIME_NEVER;
        LsCostSource source = is_recorded ? LS_COST_MEASURED : kind->costs[op->cost].source;
        x->cost_share[source == LS_COST_ROOFLINE ? 2 : source == LS_COST_FITTED ? 1 : 0] += seconds;
        if (!is_recorded && kind->costs[op->cost].extrapolated)
          x->cost_share[3] += seconds;
        if (!is_recorded && kind->costs[op->cost].is_guess)
          x->cost_share[4] += seconds;
      }
  }
}

static void
count_spans (Run *x)
{
  x->spans_of_role = ls_arena_new_array (x->arena, uint32_t, MAX (1, x->plan->n_roles));
  for (uint32_t role = 0; role < x->plan->n_roles; role++)
    for (uint32_t i = 0; i < x->plan->programs[role].n_instances; i++)
      x->spans_of_role[role] += x->segments[x->plan->programs[role].instances[i].segment].n_spans;
  x->last_spans = 1;
  for (uint32_t s = 0; s < x->plan->n_segments; s++)
    while (x->last_spans < x->segments[s].n_spans)
      x->last_spans *= 2;
}

static gboolean
compile_kind (Run *x, uint32_t kind, GError **error)
{
  XSegment *segments = ls_arena_new_array (x->arena, XSegment, MAX (1, x->plan->n_segments));
  cost_kernels (x, kind);
  x->kinds[kind].segments = segments;
  g_autofree bool *is_used = g_new0 (bool, x->plan->n_segments); /* others are not even checked */
  for (uint32_t role = 0; role < x->plan->n_roles; role++)
    for (uint32_t i = 0; i < x->plan->programs[role].n_instances; i++)
      is_used[x->plan->programs[role].instances[i].segment] = true;
  for (XJob *job = x->jobs; job < x->jobs + x->n_jobs; job++)
    for (uint32_t i = job->first_segment; i < job->first_segment + job->plan->n_segments; i++)
      if (is_used[i] && !compile_segment (x, job, kind, &x->plan->segments[i], &segments[i], error))
        return FALSE;
  count_cost_sources (x, &x->kinds[kind]);
  return TRUE;
}

/* Of the kinds of node that there are ranks on; of the first in any case. */
gboolean
run_compile (Run *x, GError **error)
{
  bool is_used[LS_MAX_NODE_KINDS] = { true };
  for (uint32_t r = 0; r < x->plan->n_ranks && x->cluster->kind_of_host; r++)
    is_used[run_kind_of (x, x->plan, r) - x->kinds] = true;
  for (uint32_t kind = 0; kind < LS_MAX_NODE_KINDS; kind++)
    if (is_used[kind] && !compile_kind (x, kind, error))
      return FALSE;
  x->segments = x->kinds[0].segments;
  count_spans (x);
  return TRUE;
}

/* --- the calls of a run ----------------------------------------------------------- */

typedef struct {
  Run *x;
  LsCollMemo *memo; /* of the calls of one communicator */
} Planning;

/* n_alike: so many make it, for whom this one stands. */
static void
add_uses (Run *x, Call *c, const LsCollPlan *plan, uint32_t n_alike)
{
  for (uint32_t i = 0; i < plan->n_phases; i++) {
    const LsPhase *p = &plan->phases[i];
    uint32_t n_most = MIN (p->n_loads, x->whole->n_resources);
    if (n_most == 0)
      continue;
    c->uses[i] = ls_arena_new_array (x->arena, LsFlowUse, n_most);
    c->n_uses[i] = run_uses (x, p->loads, p->n_loads, n_alike, c->uses[i]);
    g_assert (c->n_uses[i] <= n_most);
  }
}

static Call *
add_call (Run *x, Call **calls, CallKey key, const LsCollPlan *plan, uint32_t n_alike)
{
  Call *c = *calls = call_new (x->arena, key, call_keep_plan (x->arena, plan, false), *calls);
  add_uses (x, c, plan, n_alike);
  return c;
}

/* ranks: of the whole plan. */
static gboolean
plan_call (Planning *p, Call **calls, CallKey key, const uint32_t *ranks, uint32_t n, GError **error)
{
  Run *x = p->x;
  if (call_find (*calls, key))
    return TRUE;
  g_autoptr (LsArena) scratch = ls_arena_new ();
  LsCollRequest request = run_request (x, key, ranks, n, p->memo, scratch);
  const LsCollPlan *plan = x->hooks.plan_call ? x->hooks.plan_call (x, &request, scratch, error)
                                              : call_plan (x, &request, scratch, error);
  if (!plan)
    return FALSE;
  Call *c = add_call (x, calls, key, plan, 1);
  c->stall = call_stall (x, key, &request, plan);
  return !x->hooks.plan_messages || x->hooks.plan_messages (x, c, ranks, n, p->memo, error);
}

/* Members whose calls do not match are found out when they meet: what any of them calls is planned. */
static gboolean
plan_comm (Planning *p, uint32_t id, const GArray *keys, GError **error)
{
  const Whole *w = p->x->whole;
  if (w->calls) {
    p->x->comms[id].calls = w->calls[id];
    return TRUE;
  }
  const LsCommunicator whole = ls_plan_communicator (w->plan, id);
  g_autofree uint32_t *ranks = ls_comm_ranks (&whole);
  g_autoptr (LsCollMemo) memo = p->memo = ls_coll_memo_new ();
  gboolean ok = TRUE;
  for (guint i = 0; i < keys->len && ok; i++)
    ok = plan_call (p, &p->x->comms[id].calls, g_array_index (keys, CallKey, i), ranks, whole.n_ranks, error);
  p->memo = NULL;
  return ok;
}

static gboolean
plan_channel (Planning *p, uint32_t sender, bool is_to_next, const GArray *keys, GError **error)
{
  const Whole *w = p->x->whole;
  Channel *ch = &p->x->channels[2 * sender + !is_to_next];
  if (w->calls) {
    ch->calls = w->calls[p->x->plan->n_comms + 2 * sender + is_to_next];
    return TRUE;
  }
  const uint32_t ranks[] = { sender, ls_plan_peer (w->plan, sender, is_to_next) };
  for (guint i = 0; i < keys->len; i++)
    if (!plan_call (p, &ch->calls, g_array_index (keys, CallKey, i), ranks, 2, error))
      return FALSE;
  return TRUE;
}

static void
plan_copies (Planning *p, uint32_t rank, int direction, const GArray *keys)
{
  Run *x = p->x;
  for (guint i = 0; i < keys->len; i++) {
    CallKey key = g_array_index (keys, CallKey, i);
    const LsCollPlan *plan
        = ls_copy_plan (x->cluster, ls_plan_gpu (x->plan, rank), (LsCopyDirection) direction, key.bytes,
                        x->options.network, x->arena);
    add_call (x, &x->copies[rank * LS_N_COPY_DIRECTIONS + (uint32_t) direction].calls, key, plan,
              whole_n_of_rank (x->whole, rank));
  }
}

/* What it sends travels on its own channels, what it receives on those of its peers. */
static gboolean
plan_rank (Planning *p, uint32_t rank, const RoleCalls *role, GError **error)
{
  const LsBinding b = ls_plan_binding (p->x->plan, rank);
  for (int next = 0; next < 2; next++) {
    if (b.peer[next] == UINT32_MAX)
      continue;
    if (!plan_channel (p, rank, next, role->keys[SENDS + next], error)
        || !plan_channel (p, b.peer[next], !next, role->keys[RECEIVES + next], error))
      return FALSE;
  }
  for (int d = 0; d < LS_N_COPY_DIRECTIONS; d++)
    plan_copies (p, rank, d, role->keys[COPIES + d]);
  return TRUE;
}

/* planned: [n_comms] of the lists of calls, that which was planned last. */
static gboolean
plan_comms_of_rank (Planning *p, uint32_t rank, const RoleCalls *role, uint32_t *planned, GError **error)
{
  const LsBinding b = ls_plan_binding (p->x->plan, rank);
  for (int s = 0; s < LS_SLOT_PREV; s++) {
    uint32_t id = b.comm[s];
    if (id == UINT32_MAX || role->id[CALLS + s] == 0 || role->id[CALLS + s] == planned[id])
      continue;
    planned[id] = role->id[CALLS + s];
    if (!plan_comm (p, id, role->keys[CALLS + s], error))
      return FALSE;
  }
  return TRUE;
}

gboolean
run_plan_calls (Run *x, GError **error)
{
  g_autofree uint32_t *planned = g_new0 (uint32_t, x->plan->n_comms + 1);
  Planning p = { .x = x };
  gboolean ok = TRUE;
  for (uint32_t i = 0; i < x->plan->n_ranks && ok; i++) {
    const RoleCalls *role = &x->role_calls[ls_plan_role (x->plan, i)];
    ok = plan_comms_of_rank (&p, i, role, planned, error) && plan_rank (&p, i, role, error);
  }
  return ok;
}
