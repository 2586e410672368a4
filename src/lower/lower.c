/* lower/lower.c — model x strategy -> plan: chunks, communicators, bindings and
 * one program per pipeline stage. Ranks that differ only in tp, cp and dp share
 * their program, but for cp where its ranks have unequal shares of attention, and for copies
 * whose micro-batches hold different documents: a program for each of them. */
#include "lower/lower.h"

#include <math.h>
#include <string.h>

#include <lockstep/error.h>

#include "lower/data/lower_dp.h"
#include "lower/layers/lower_layers.h"
#include "lower/lower_build.h"
#include "lower/pipeline/lower_pipe.h"
#include "model/expert_load.h"
#include "plan/mesh.h"
#include "strategy/shard.h"

static guint
kernel_hash (gconstpointer key)
{
  const LsKernel *k = key;
  uint64_t flops;
  memcpy (&flops, &k->flops, sizeof flops); /* documents differ in these alone */
  guint h = g_str_hash (k->name) * 33 + (guint) (flops ^ flops >> 32);
  h = h * 33 + (guint) k->kind;
  h = h * 33 + (guint) k->m;
  h = h * 33 + (guint) k->n;
  return (h * 33 + (guint) k->k) * 33 + (guint) k->batch;
}

static gboolean
kernel_equal (gconstpointer a, gconstpointer b)
{
  const LsKernel *x = a, *y = b;
  return x->kind == y->kind && x->dtype == y->dtype && x->m == y->m && x->n == y->n && x->k == y->k
      && x->batch == y->batch && x->flops == y->flops && x->bytes == y->bytes && x->access == y->access
      && x->by_blocks == y->by_blocks && x->masked == y->masked && x->unaligned == y->unaligned
      && x->attention == y->attention && x->n_serial == y->n_serial
      && (x->name == y->name || strcmp (x->name, y->name) == 0);
}

static const DpBackend *const backends[LS_N_DP_KINDS] = {
  [LS_DP_AUTO] = &dp_backend_none,
  [LS_DP_NONE] = &dp_backend_none,
  [LS_DP_PS] = &dp_backend_ps,
  [LS_DP_DDP] = &dp_backend_ddp,
  [LS_DP_MEGATRON] = &dp_backend_megatron,
  [LS_DP_FSDP1] = &dp_backend_fsdp,
  [LS_DP_FSDP2] = &dp_backend_fsdp,
  [LS_DP_DEEPSPEED] = &dp_backend_deepspeed,
  [LS_DP_XLA_FSDP] = &dp_backend_xla_fsdp,
};

static void
lower_init (Lower *l, const LsModel *m, const LsStrategy *s, const LsLowerCosts *costs)
{
  *l = (Lower) { .model = m, .s = s, .costs = costs };
  bool is_zero3 = s->dp_kind == LS_DP_DEEPSPEED && s->zero_stage == 3;
  l->backend = is_zero3 ? &dp_backend_deepspeed3 : backends[s->dp_kind];
  l->shard = ls_strategy_shard (s, m);
  l->mesh = ls_strategy_mesh (s);
  l->mesh.split = ls_encoder_chunks (s, m) + 1 < s->pp ? ls_encoder_chunks (s, m) : 0;
  l->mesh.shard = s->data.zero_group;
  if (ls_dp_traits (s->dp_kind)->has_reshard && s->data.reshard_after_forward > 1)
    l->mesh.shard = s->data.reshard_after_forward; /* with a zero_group it is refused */
  l->n_cp_roles = ls_context_is_uneven (&l->shard) ? s->cp : 1;
  l->cp_rank = l->n_cp_roles - 1; /* schedules reckon with the slowest */
  l->act = ls_dtype_between (l->shard.dtype);
  l->n_ep_roles = 1;
  l->n_dp_roles = 1;
  l->n_micro_batches = ls_strategy_most_micro_batches (s);
  l->plan = g_new0 (LsPlan, 1);
  l->plan->arena = ls_arena_new ();
  l->segments = g_array_new (FALSE, FALSE, sizeof (LsSegment));
  l->kernels = g_array_new (FALSE, FALSE, sizeof (LsKernel));
  l->segment_ids = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  l->pieces = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, (GDestroyNotify) g_array_unref);
  l->kernel_ids = g_hash_table_new_full (kernel_hash, kernel_equal, g_free, NULL);
}

void
lower_clear (Lower *l)
{
  chunks_clear (l);
  g_free (l->expert_share);
  g_free (l->dp_role);
  ls_packing_free (l->packing);
  g_free (l->roles);
  orders_clear (l);
  g_array_unref (l->segments);
  g_clear_pointer (&l->spare_ops, g_array_unref);
  g_array_unref (l->kernels);
  g_hash_table_unref (l->segment_ids);
  g_hash_table_unref (l->pieces);
  g_hash_table_unref (l->kernel_ids);
  g_free (l->too_long);
  ls_plan_free (l->plan);
}

/* --- experts ------------------------------------------------------------------ */

#define MAX_WEIGHT_SUM (1u << 30)

/* What the ranks of an ep group receive, as weights. */
static void
weigh_parts (Lower *l, const uint64_t *tokens)
{
  LsPlan *p = l->plan;
  double sum = 0;
  p->n_weights = l->mesh.ep;
  p->weights = ls_arena_new_array (p->arena, uint32_t, p->n_weights);
  for (uint32_t r = 0; r < p->n_weights; r++)
    sum += (double) tokens[r];
  for (uint32_t r = 0; r < p->n_weights; r++)
    p->weights[r] = (uint32_t) (sum <= MAX_WEIGHT_SUM ? (double) tokens[r]
                                                      : rint ((double) tokens[r] * (MAX_WEIGHT_SUM / sum)));
}

/* How tokens fall on experts, and whether ranks differ in it; schedules reckon with the
 * busiest. */
static gboolean
lower_experts (Lower *l, GError **error)
{
  if (l->model->moe.n_experts == 0)
    return TRUE;
  g_autofree char *why = NULL;
  l->expert_share = ls_expert_shares (l->s->experts.load, l->model, &why);
  if (why)
    return ls_fail (error, LS_ERROR_CONFLICT, "expert_load: %s", why);
  l->shard.experts.share = l->expert_share;
  if (l->shard.experts.sends_tokens_once)
    l->plan->spread
        = (LsSpread) { ls_expert_draw (l->model, &l->shard),
                       l->s->micro_batch * UINT64_C (1) * l->s->seq / (l->s->cp * l->s->tp),
                       l->s->experts.dispatch_sms, l->s->experts.dispatcher == LS_DISPATCHER_HYBRIDEP };
  g_autofree uint64_t *tokens = g_new (uint64_t, l->mesh.ep);
  ls_expert_rows_of_ranks (l->model, &l->shard, tokens);
  for (uint32_t r = 0; r < l->mesh.ep; r++) {
    l->n_ep_roles = tokens[r] != tokens[0] ? l->mesh.ep : l->n_ep_roles;
    l->shard.experts.ep_rank = tokens[r] > tokens[l->shard.experts.ep_rank] ? r : l->shard.experts.ep_rank;
  }
  if (l->n_ep_roles > 1)
    weigh_parts (l, tokens);
  return TRUE;
}

/* --- documents ---------------------------------------------------------------- */

static bool
meets_unequal_parts (const Lower *l)
{
  const LsPacking *p = l->packing;
  for (guint i = 0; p && i < p->n_drawn; i++)
    for (uint32_t r = 1; p->drawn[i].of_rank && r < l->s->cp; r++)
      if (p->drawn[i].of_rank[r] != p->drawn[i].of_rank[0])
        return true;
  return false;
}

/* Copies with the same documents in the same order, or as many micro-batches, share the first one's role. */
static void
number_copies (Lower *l)
{
  const LsPacking *p = l->packing;
  const uint32_t *of = p ? p->number : l->s->layout.micro_batches_per_replica;
  size_t n = p ? l->n_micro_batches : 1;
  g_autoptr (GHashTable) known
      = g_hash_table_new_full (g_bytes_hash, g_bytes_equal, (GDestroyNotify) g_bytes_unref, NULL);
  l->n_dp_roles = 0;
  for (uint32_t d = 0; d < l->s->dp; d++) {
    g_autoptr (GBytes) key = g_bytes_new_static (of + d * n, n * sizeof *of);
    gpointer found = g_hash_table_lookup (known, key);
    l->dp_role[d] = found ? GPOINTER_TO_UINT (found) - 1 : l->n_dp_roles++;
    if (!found)
      g_hash_table_insert (known, g_steal_pointer (&key), GUINT_TO_POINTER (l->n_dp_roles));
  }
}

/* Micro-batches with other documents have passes of their own, of so many ops a layer of some 200 bytes. */
#define OPS_OF_LAYER 60.0
#define MAX_PASS_OPS 40e6

static gboolean
check_documents (const Lower *l, GError **error)
{
  double n = l->packing ? l->packing->n_drawn * OPS_OF_LAYER * l->model->n_layers : 0;
  if (n <= MAX_PASS_OPS)
    return TRUE;
  return ls_fail (
      error, LS_ERROR_LIMIT,
      "lengths: %u micro-batches with different documents make passes of about %.2g ops; the limit is "
      "%.2g. With lengths_draw mean all have the mean of the step",
      l->packing->n_drawn, n, MAX_PASS_OPS);
}

static gboolean
lower_documents (Lower *l, GError **error)
{
  l->dp_role = g_new0 (uint32_t, l->s->dp);
  if (!ls_packing_new (l->s, l->model, &l->packing, error) || !check_documents (l, error))
    return FALSE;
  if ((l->packing && l->packing->number) || l->s->layout.micro_batches_per_replica)
    number_copies (l);
  if (meets_unequal_parts (l)) {
    l->n_cp_roles = l->s->cp;
    l->cp_rank = l->n_cp_roles - 1;
  }
  return TRUE;
}

/* --- chunks ------------------------------------------------------------------- */

static void
use_chunks_of (Lower *l, uint32_t ep_rank)
{
  l->shard.experts.ep_rank = ep_rank;
  l->chunks = l->all_chunks + (l->n_ep_roles > 1 ? ep_rank * l->n_stages : 0);
}

/* Of one ep rank; bytes that they keep. */
static double
init_chunks (Lower *l, const uint32_t *n_layers)
{
  double kept = 0;
  for (uint32_t i = 0, first = 0; i < l->n_stages; first += n_layers[i], i++) {
    chunk_init (l, &l->chunks[i], first, n_layers[i], i == 0, i == l->n_stages - 1);
    for (guint o = 0; o < l->chunks[i].operators->len; o++)
      kept += (double) operator_at (&l->chunks[i], o)->kept.saved_bytes;
  }
  for (uint32_t r = 0; r < l->mesh.pp; r++)
    for (uint32_t i = 0; i < l->n_chunks; i++) {
      Chunk *c = chunk_at (l, r, i);
      c->n_recomputed = recompute_n_layers (l, r, c->n_layers);
      recompute_prepare (l, c);
    }
  return kept;
}

/* Far from where a 64-bit sum of bytes would wrap. */
#define MAX_BYTES 4e18

static gboolean
lower_chunks (Lower *l, GError **error)
{
  uint32_t n = l->s->pp * l->s->vpp;
  g_autofree uint32_t *n_layers = g_new0 (uint32_t, n);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsStrategy s;
  ls_strategy_copy (&s, l->s);
  bool is_known = ls_strategy_balance (&s, l->model, l->costs, error);
  bool is_legal = is_known && ls_chunk_layers (&s, l->model, n_layers, diags);
  ls_strategy_clear (&s);
  if (!is_legal)
    return is_known ? ls_diag_list_to_error (diags, error) : FALSE;
  l->all_chunks = g_new0 (Chunk, l->n_ep_roles * n);
  uint32_t busiest = l->shard.experts.ep_rank;
  double kept = 0;
  for (uint32_t e = 0; e < l->n_ep_roles; e++) {
    use_chunks_of (l, l->n_ep_roles > 1 ? e : busiest);
    double of_rank = init_chunks (l, n_layers);
    kept = MAX (kept, of_rank);
  }
  use_chunks_of (l, busiest);
  l->n_piece_events = n_piece_events (l);
  if (kept * l->n_micro_batches > MAX_BYTES)
    return ls_fail (
        error, LS_ERROR_LIMIT,
        "micro-batches of %u x %u tokens would keep %.3g bytes of activations; bytes are counted up to %.3g",
        l->s->micro_batch, l->s->seq, kept * l->n_micro_batches, MAX_BYTES);
  return TRUE;
}

/* --- communicators and bindings ------------------------------------------------- */

static bool
uses_slot (const Lower *l, LsSlot slot)
{
  const LsMesh *m = &l->mesh;
  bool has_experts = l->model->moe.n_experts > 0;
  const bool uses[LS_N_SLOTS] = {
    [LS_SLOT_TP] = m->tp > 1,
    [LS_SLOT_DP] = m->dp * m->cp > 1,
    [LS_SLOT_CP] = m->cp > 1,
    [LS_SLOT_SHARD] = m->shard > 0,
    [LS_SLOT_REPLICA] = m->shard > 0,
    [LS_SLOT_EP] = has_experts,
    [LS_SLOT_EDP] = has_experts,
    [LS_SLOT_ETP] = has_experts && m->etp != m->tp,
    [LS_SLOT_EMBEDDING] = is_tied_over_ranks (l),
    [LS_SLOT_PIPES] = has_pipes (l),
    [LS_SLOT_MODEL] = m->tp * m->pp > 1,
    [LS_SLOT_WORLD] = l->s->zero_stage > 0 || m->ep > 1,
  };
  bool is_of_amax = slot == LS_SLOT_STAGE || slot == LS_SLOT_TP_CP;
  return is_of_amax ? is_amax_slot (l, slot) : uses[slot];
}

/* Among all that could be: what ranks of a role have in common. They were bound by their stage. */
static uint32_t
role_of_rank (const Lower *l, uint32_t rank)
{
  LsCoord at = ls_mesh_coord (&l->mesh, rank);
  uint32_t role = l->n_cp_roles > 1 ? at.pp * l->n_cp_roles + at.cp : at.pp;
  role = l->n_ep_roles > 1 ? role * l->n_ep_roles + ls_mesh_expert_coord (&l->mesh, rank).ep : role;
  return role * l->n_dp_roles + l->dp_role[at.dp];
}

/* Those that ranks have, without gaps. */
static void
number_roles (Lower *l)
{
  LsPlan *p = l->plan;
  uint32_t n_all = l->mesh.pp * l->n_cp_roles * l->n_ep_roles * l->n_dp_roles;
  g_autofree uint32_t *number = g_new0 (uint32_t, n_all);
  l->roles = g_new (uint32_t, n_all);
  for (uint32_t i = 0; i < n_all; i++)
    l->roles[i] = i;
  if (n_all == l->mesh.pp) { /* each has the role of its stage (ls_plan_bind_mesh()) */
    p->n_roles = n_all;
    return;
  }
  p->role_of_rank = ls_arena_new_array (p->arena, uint32_t, p->n_ranks);
  for (uint32_t r = 0; r < p->n_ranks; r++) {
    p->role_of_rank[r] = role_of_rank (l, r);
    number[p->role_of_rank[r]] = 1;
  }
  for (uint32_t i = 0; i < n_all; i++)
    if (number[i]) {
      l->roles[p->n_roles] = i;
      number[i] = p->n_roles++;
    }
  for (uint32_t r = 0; r < p->n_ranks; r++)
    p->role_of_rank[r] = number[p->role_of_rank[r]];
}

static void
lower_bindings (Lower *l)
{
  uint32_t slots = 0;
  for (int s = 0; s < LS_SLOT_PREV; s++)
    slots |= uses_slot (l, (LsSlot) s) ? LS_SLOT_BIT (s) : 0;
  ls_plan_bind_mesh (l->plan, &l->mesh, slots);
  number_roles (l);
}

/* --- programs ---------------------------------------------------------------------- */

static uint32_t
n_events_of (const Lower *l, const LsProgram *p)
{
  uint32_t n = 0;
  g_autofree bool *seen = g_new0 (bool, l->segments->len);
  for (uint32_t i = 0; i < p->n_instances; i++) {
    uint32_t id = p->instances[i].segment;
    const LsSegment *seg = &g_array_index (l->segments, LsSegment, id);
    for (uint32_t o = 0; o < seg->n_ops && !seen[id]; o++)
      if (ls_op_has (seg->ops[o].kind, LS_HAS_EVENT) && seg->ops[o].event != LS_EVENT_NONE)
        n = MAX (n, seg->ops[o].event + 1u);
    seen[id] = true;
  }
  return n;
}

static gboolean
lower_programs (Lower *l, GError **error)
{
  l->plan->programs = ls_arena_new_array (l->plan->arena, LsProgram, l->plan->n_roles);
  for (uint32_t role = 0; role < l->plan->n_roles; role++) {
    LsProgram *p = &l->plan->programs[role];
    uint32_t id = l->roles[role] / l->n_dp_roles, r = id / (l->n_cp_roles * l->n_ep_roles);
    for (l->dp_rank = 0; l->dp_role[l->dp_rank] != l->roles[role] % l->n_dp_roles;)
      l->dp_rank++;
    orders_use (l, l->dp_role[l->dp_rank]);
    l->cp_rank = id / l->n_ep_roles % l->n_cp_roles;
    if (l->n_ep_roles > 1)
      use_chunks_of (l, id % l->n_ep_roles);
    g_autoptr (GArray) instances = pipe_instances (l, r, &p->n_lead);
    if (l->too_long)
      return refuse_long_segment (l, error);
    p->n_instances = instances->len;
    p->instances = ls_arena_new_array (l->plan->arena, LsInstance, instances->len);
    memcpy (p->instances, instances->data, instances->len * sizeof (LsInstance));
    p->n_events = n_events_of (l, p);
    p->stage = (uint16_t) r;
    p->n_per_flush = l->orders->layout.n_micro_batches / l->n_flushes;
    for (uint32_t c = 0; c < l->n_chunks; c++)
      p->n_params += chunk_at (l, r, c)->n_params;
    step_static_memory (l, r, p);
    LsSchedShape shape = ls_strategy_sched_shape (l->s, l->n_micro_batches);
    p->static_bytes[LS_MEM_PARAMETERS] *= ls_sched_n_versions (l->sched, &shape, r); /* of 16-bit weights */
  }
  return TRUE;
}

static void
freeze (Lower *l)
{
  LsPlan *p = l->plan;
  p->n_micro_batches = orders_most_micro_batches (l);
  p->n_chunks = l->n_chunks;
  p->n_segments = l->segments->len;
  p->segments = ls_arena_new_array (p->arena, LsSegment, p->n_segments);
  memcpy (p->segments, l->segments->data, p->n_segments * sizeof (LsSegment));
  p->n_kernels = l->kernels->len;
  p->kernels = ls_arena_new_array (p->arena, LsKernel, MAX (1, p->n_kernels));
  if (p->n_kernels > 0)
    memcpy (p->kernels, l->kernels->data, p->n_kernels * sizeof (LsKernel));
}

/* Instances that the programs of a plan may have: passes, and between them groups; without
 * a recipe of p2p also what records and awaits their receives. */
#define MAX_INSTANCES 50e6

static gboolean
check_size (const Lower *l, GError **error)
{
  double n = (l->sched->recipe == LS_RECIPE_MEGATRON ? 4.0 : 10.0) * l->n_micro_batches * l->s->vpp
      * l->mesh.pp * l->n_cp_roles * l->n_ep_roles * l->n_dp_roles;
  if (n > MAX_INSTANCES)
    return ls_fail (
        error, LS_ERROR_LIMIT,
        "%u micro-batches through %u chunks of %u stages make a plan of %.3g entries; the limit is %.3g",
        l->n_micro_batches, l->s->vpp, l->mesh.pp, n, MAX_INSTANCES);
  return TRUE;
}

static void
count_chunks (Lower *l)
{
  l->n_stages = l->s->pp * l->s->vpp;
  l->n_chunks = l->s->vpp;
  if (!has_pipes (l))
    return;
  l->n_chunks = ls_sched_n_chunks (
      l->sched, &(LsSchedShape) { .pp = l->mesh.pp, .n_micro_batches = l->n_micro_batches });
  l->mesh.pipes = l->n_chunks;
}

static gboolean
find_sched (Lower *l, GError **error)
{
  l->sched = ls_sched_find (l->s->schedule);
  if (l->sched) {
    count_chunks (l);
    return TRUE;
  }
  return ls_fail (error, LS_ERROR_UNSUPPORTED, "schedule %s: there is none of that name", l->s->schedule);
}

gboolean
lower_begin (Lower *l, const LsModel *m, const LsStrategy *s, const LsLowerCosts *costs, GError **error)
{
  lower_init (l, m, s, costs);
  return find_sched (l, error) && lower_experts (l, error) && lower_documents (l, error)
      && check_size (l, error);
}

LsPlan *
ls_lower_orders (const LsModel *m, const LsStrategy *s, const LsOrders *orders, const LsLowerCosts *costs,
                 GError **error)
{
  Lower l;
  LsPlan *plan = NULL;
  if (lower_begin (&l, m, s, costs, error) && lower_chunks (&l, error)) {
    orders_init (&l, orders);
    lower_bindings (&l);
    if (lower_programs (&l, error)) {
      freeze (&l);
      plan = g_steal_pointer (&l.plan);
    }
  }
  lower_clear (&l);
  return plan;
}

LsPlan *
ls_lower (const LsModel *m, const LsStrategy *s, const LsLowerCosts *costs, GError **error)
{
  return ls_lower_orders (m, s, NULL, costs, error);
}
