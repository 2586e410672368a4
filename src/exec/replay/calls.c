#include <lockstep/error.h>

#include "base/diag.h"
#include "base/order.h"
#include "exec/replay/state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

CallKey
collective_key (const LsOp *op)
{
  return (CallKey) { .kind = op->coll,
                     .algorithm = op->algorithm,
                     .parts = op->parts,
                     .max_ctas = op->max_ctas,
                     .is_light = op->is_light,
                     .carries_scores = op->carries_scores,
                     .root = op->root,
                     .bytes = op->bytes };
}

CallKey
transfer_key (uint64_t bytes, uint8_t max_ctas)
{
  return (CallKey) { .kind = LS_COLL_SEND_RECV, .max_ctas = max_ctas, .bytes = bytes };
}

CallKey
copy_key (const LsOp *op)
{
  return (CallKey) { .kind = op->direction, .bytes = op->bytes };
}

/* --- what programs call --------------------------------------------------------- */

static int
by_key (const void *a, const void *b)
{
  const CallKey *x = a, *y = b;
  LS_SMALLER_FIRST (x->kind, y->kind);
  LS_SMALLER_FIRST (x->algorithm, y->algorithm);
  LS_SMALLER_FIRST (x->parts, y->parts);
  LS_SMALLER_FIRST (x->max_ctas, y->max_ctas);
  LS_SMALLER_FIRST (x->is_light, y->is_light);
  LS_SMALLER_FIRST (x->carries_scores, y->carries_scores);
  LS_SMALLER_FIRST (x->root, y->root);
  return LS_ORDER (x->bytes, y->bytes);
}

void
op_calls (const LsOp *op, void (*call) (void *to, int list, CallKey key), void *to)
{
  if (ls_op_has (op->kind, LS_HAS_CALL))
    call (to, CALLS + op->slot, collective_key (op));
  else if (ls_op_takes (op->kind, LS_TAKES_ENGINE) && op->recorded == LS_TIME_NEVER)
    call (to, COPIES + op->direction, copy_key (op));
  for (uint32_t i = 0; i < op->n_transfers; i++) {
    const LsTransfer *t = &op->transfers[i];
    call (to, (t->is_send ? SENDS : RECEIVES) + (t->slot == LS_SLOT_NEXT),
          transfer_key (t->bytes, t->max_ctas));
  }
}

static void
add_key (void *role, int list, CallKey key)
{
  g_array_append_val (((RoleCalls *) role)->keys[list], key);
}

static void
keep_each_once (GArray *keys)
{
  guint n = 0;
  if (keys->len > 0)
    qsort (keys->data, keys->len, sizeof (CallKey), by_key);
  for (guint i = 0; i < keys->len; i++) {
    const CallKey *key = &g_array_index (keys, CallKey, i);
    if (n == 0 || by_key (key, &g_array_index (keys, CallKey, n - 1)) != 0)
      g_array_index (keys, CallKey, n++) = *key;
  }
  g_array_set_size (keys, n);
}

static void
collect_role (const LsPlan *plan, const LsProgram *p, RoleCalls *role, LsArena *arena)
{
  g_autofree uint32_t *n_uses = ls_program_uses (plan, p, 0);
  for (int i = 0; i < N_CALL_LISTS; i++)
    role->keys[i] = ls_arena_list (arena, sizeof (CallKey));
  for (uint32_t s = 0; s < plan->n_segments; s++)
    for (uint32_t o = 0; o < plan->segments[s].n_ops && n_uses[s] > 0; o++)
      op_calls (&plan->segments[s].ops[o], add_key, role);
  for (int i = 0; i < N_CALL_LISTS; i++)
    keep_each_once (role->keys[i]);
}

static bool
is_same_list (const GArray *a, const GArray *b)
{
  if (a->len != b->len)
    return false;
  for (guint i = 0; i < a->len; i++)
    if (by_key (&g_array_index (a, CallKey, i), &g_array_index (b, CallKey, i)) != 0)
      return false;
  return true;
}

RoleCalls *
role_calls_new (const LsPlan *plan, LsArena *arena)
{
  RoleCalls *roles = ls_arena_new_array (arena, RoleCalls, plan->n_roles + 1);
  g_autoptr (GPtrArray) known = g_ptr_array_new ();
  for (uint32_t r = 0; r < plan->n_roles; r++) {
    RoleCalls *role = &roles[r];
    collect_role (plan, &plan->programs[r], role, arena);
    for (int i = 0; i < N_CALL_LISTS; i++) {
      guint at = 0;
      while (at < known->len && !is_same_list (known->pdata[at], role->keys[i]))
        at++;
      if (at == known->len && role->keys[i]->len > 0)
        g_ptr_array_add (known, role->keys[i]);
      role->id[i] = role->keys[i]->len > 0 ? at + 1 : 0;
    }
  }
  return roles;
}

/* --- one call ------------------------------------------------------------------- */

/* So few that a member moves a cache line at most, as in the all-reduce of a norm: that takes its time, but
 * shares with nobody, and counts nowhere. */
#define TINY_BYTES 32

LsCollRequest
call_request (const LsPlan *plan, CallKey key, const uint32_t *ranks, uint32_t n, LsCollMemo *memo,
              LsArena *arena)
{
  uint32_t *gpus = ls_arena_new_array (arena, uint32_t, n);
  g_assert (key.parts == LS_PARTS_EQUAL || plan->n_weights == n);
  for (uint32_t i = 0; i < n; i++)
    gpus[i] = ls_plan_gpu (plan, ranks[i]);
  return (LsCollRequest) {
    .kind = (LsCollKind) key.kind,
    .gpus = gpus,
    .n = n,
    .root = key.root,
    .bytes = key.bytes,
    .memo = memo,
    .max_ctas = key.max_ctas,
    .is_light = key.is_light,
    .carries_scores = key.carries_scores,
    .is_tiny = key.bytes <= TINY_BYTES,
    .algorithm = ls_coll_algorithm_name (key.algorithm),
    .weights = key.parts == LS_PARTS_EQUAL ? NULL : plan->weights,
    .weighs_senders = key.parts == LS_PARTS_SENT,
    .spread = plan->spread.draw.n_drawn > 0 ? &plan->spread : NULL,
  };
}

LsCollRequest
run_request (const Run *x, CallKey key, const uint32_t *ranks, uint32_t n, LsCollMemo *memo, LsArena *arena)
{
  const XJob *job = run_job_of_role (x, ls_plan_role (x->whole->plan, ranks[0]));
  if (x->n_jobs == 1)
    return call_request (job->plan, key, ranks, n, memo, arena);
  g_autofree uint32_t *own = g_new (uint32_t, n);
  for (uint32_t i = 0; i < n; i++)
    own[i] = ranks[i] - job->first_rank;
  return call_request (job->plan, key, own, n, memo, arena);
}

/* Two members have one message each way, which is never too large. */
bool
call_check (const LsCluster *cluster, const LsNccl *nccl, const LsCollRequest *request,
            LsNetworkFidelity network, GError **error)
{
  if (ls_coll_applies (cluster, nccl, request))
    return request->n <= 2 || ls_coll_check_size (cluster, nccl, request, network, error);
  g_autofree char *rule = error ? ls_coll_rule (request->algorithm) : NULL;
  return ls_fail (error, LS_ERROR_CONFLICT, "an %s over %u ranks by %s: it does %s",
                  ls_coll_kind_name (request->kind), request->n, request->algorithm, rule ? rule : "");
}

const LsCollPlan *
call_plan (const Run *x, const LsCollRequest *request, LsArena *arena, GError **error)
{
  LsNetworkFidelity network = x->options.network;
  return call_check (x->cluster, x->nccl, request, network, error)
      ? ls_coll_plan (x->cluster, x->nccl, request, network, arena)
      : NULL;
}

const LsCollPlan *
call_keep_plan (LsArena *arena, const LsCollPlan *plan, bool with_loads)
{
  LsCollPlan *kept = ls_arena_new_array (arena, LsCollPlan, 1);
  *kept = *plan;
  kept->like_period = NULL;
  if (with_loads && plan->like_period)
    kept->like_period = memcpy (ls_arena_new_array (arena, uint32_t, plan->n_periods), plan->like_period,
                                plan->n_periods * sizeof *plan->like_period);
  kept->phases = ls_arena_new_array (arena, LsPhase, plan->n_phases);
  for (uint32_t i = 0; i < plan->n_phases; i++) {
    const LsPhase *from = &plan->phases[i];
    LsPhase *to = &kept->phases[i];
    *to = (LsPhase) { from->latency, from->demand_bytes, from->rate_cap };
    if (!with_loads)
      continue;
    *to = *from;
    to->loads = ls_arena_new_array (arena, LsLoad, from->n_loads);
    if (from->n_loads > 0)
      memcpy (to->loads, from->loads, from->n_loads * sizeof *from->loads);
  }
  return kept;
}

/* Of kernels that communicate; of copy engines, which hold no SMs, nothing is known. See
 * LsNccl.stall_per_byte: over the time that the call moves when it is alone. */
uint64_t
call_stall (const Run *x, CallKey key, const LsCollRequest *request, const LsCollPlan *plan)
{
  const LsNccl *nccl = ls_nccl_among (x->nccl, ls_coll_kinds (x->cluster, request->gpus, request->n));
  bool is_by_copy_engines = key.kind == LS_COLL_COPY_PERMUTE && plan->sm_share <= 0;
  double passes = key.kind == LS_COLL_ALL_REDUCE ? 2 : is_by_copy_engines ? 0 : 1;
  double hbm = INFINITY;
  for (uint32_t i = 0; i < request->n && (i == 0 || x->cluster->kind_of_host); i++)
    hbm = fmin (hbm, ls_cluster_gpu_spec (x->cluster, request->gpus[i])->hbm_bytes_per_s);
  double lost_s = nccl->stall_per_byte * passes * plan->array_bytes / hbm;
  LsTime moving = ls_coll_time_alone (x->cluster, plan);
  for (uint32_t i = 0; i < plan->n_phases; i++)
    moving -= plan->phases[i].latency;
  return lost_s > 0 && moving > 0
      ? (uint64_t) llround (fmin (1, lost_s / ls_time_to_s (moving)) * (double) LS_COEF_ONE)
      : 0;
}

/* --- planned calls ----------------------------------------------------------------- */

Call *
call_new (LsArena *arena, CallKey key, const LsCollPlan *plan, Call *next)
{
  Call *c = ls_arena_new_array (arena, Call, 1);
  g_assert (plan->sm_share >= 0 && plan->sm_share <= 1);
  *c = (Call) { .next = next,
                .key = key,
                .plan = plan,
                .uses = ls_arena_new_array (arena, LsFlowUse *, plan->n_phases),
                .n_uses = ls_arena_new_array (arena, uint32_t, plan->n_phases),
                .n_ample = ls_arena_new_array (arena, uint32_t, plan->n_phases),
                .sm_share = (uint64_t) llround (plan->sm_share * (double) LS_COEF_ONE) };
  return c;
}

Call *
call_find (Call *calls, CallKey key)
{
  while (calls && !call_key_equal (calls->key, key))
    calls = calls->next;
  return calls;
}

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
  g_assert (call->n_over[parity] <= call->count[parity]);
}

void
calls_count_bytes (const Call *calls, uint32_t step, ExactBytes *resource_bytes)
{
  for (const Call *c = calls; c; c = c->next) {
    if (c->step[step & 1] != step + 1 || c->messages)
      continue;
    for (uint32_t i = 0; i < c->plan->n_phases; i++) {
      ExactBytes demand
          = (ExactBytes) rint (ldexp (c->plan->phases[i].demand_bytes, 20)) * c->count[step & 1];
      for (uint32_t u = 0; u < c->n_uses[i] + c->n_ample[i]; u++)
        resource_bytes[c->uses[i][u].resource] += demand * c->uses[i][u].coef;
    }
  }
}
