/* parallel/lower.c — model x strategy -> plan: chunks, communicators, bindings and
 * one program per pipeline stage. Ranks that differ only in tp, cp and dp share
 * their program. */
#include "parallel/lower.h"

#include <string.h>

#include <lockstep/error.h>

#include "parallel/bind.h"
#include "parallel/chunks.h"
#include "parallel/lower_state.h"

static guint
kernel_hash (gconstpointer key)
{
  const LsKernel *k = key;
  guint h = g_str_hash (k->name);
  h = h * 33 + (guint) k->kind;
  h = h * 33 + (guint) k->m;
  h = h * 33 + (guint) k->n;
  h = h * 33 + (guint) k->k;
  return h * 33 + (guint) k->batch;
}

static gboolean
kernel_equal (gconstpointer a, gconstpointer b)
{
  const LsKernel *x = a, *y = b;
  return x->kind == y->kind && x->dtype == y->dtype && x->m == y->m && x->n == y->n && x->k == y->k
         && x->batch == y->batch && x->flops == y->flops && x->bytes == y->bytes && strcmp (x->name, y->name) == 0;
}

static void
lower_init (Lower *l, const LsModel *m, const LsStrategy *s)
{
  *l = (Lower) { .model = m, .s = s };
  l->shard = (LsShard) {
    .tp = s->tp, .sp = s->sp && s->tp > 1, .micro_batch = s->micro_batch, .seq = s->seq,
    .attention = (LsAttention) s->attention, .dtype = (LsDtype) s->dtype, .grad_dtype = (LsDtype) s->grad_dtype,
  };
  l->mesh = (LsMesh) { s->tp, s->cp, s->dp, s->pp };
  l->n_micro_batches = s->global_batch / (s->dp * s->micro_batch);
  l->plan = g_new0 (LsPlan, 1);
  l->plan->arena = ls_arena_new ();
  l->segments = g_array_new (FALSE, FALSE, sizeof (LsSegment));
  l->kernels = g_array_new (FALSE, FALSE, sizeof (LsKernel));
  l->segment_ids = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  l->kernel_ids = g_hash_table_new_full (kernel_hash, kernel_equal, g_free, NULL);
}

static void
lower_clear (Lower *l)
{
  for (uint32_t i = 0; l->chunks && i < l->s->pp * l->s->vpp; i++)
    chunk_clear (&l->chunks[i]);
  g_free (l->chunks);
  ls_orders_free (l->orders);
  g_free (l->times);
  posts_clear (l);
  g_array_unref (l->segments);
  g_array_unref (l->kernels);
  g_hash_table_unref (l->segment_ids);
  g_hash_table_unref (l->kernel_ids);
  g_free (l->too_long);
  ls_plan_free (l->plan);
}

/* --- chunks ------------------------------------------------------------------- */

/* Far from where a 64-bit sum of bytes would wrap. */
#define MAX_BYTES 4e18

static gboolean
lower_chunks (Lower *l, GError **error)
{
  uint32_t n = l->s->pp * l->s->vpp;
  g_autofree uint32_t *n_layers = g_new0 (uint32_t, n);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  if (!ls_chunk_layers (l->s, l->model, n_layers, diags))
    return ls_diag_list_to_error (diags, error);
  l->chunks = g_new0 (Chunk, n);
  double kept = 0;
  for (uint32_t i = 0; i < n; i++) {
    chunk_init (l, &l->chunks[i], n_layers[i], i == 0, i == n - 1);
    for (guint o = 0; o < l->chunks[i].operators->len; o++)
      kept += (double) g_array_index (l->chunks[i].operators, LsOperator, o).saved_bytes;
  }
  if (kept * l->n_micro_batches > MAX_BYTES) {
    g_set_error (error, LS_ERROR, LS_ERROR_LIMIT, "micro-batches of %u x %u tokens would keep %.3g bytes of activations; bytes are counted up to %.3g",
                 l->s->micro_batch, l->s->seq, kept * l->n_micro_batches, MAX_BYTES);
    return FALSE;
  }
  return TRUE;
}

/* --- communicators and bindings ------------------------------------------------- */

static bool
uses_slot (const Lower *l, LsSlot slot)
{
  const LsMesh *m = &l->mesh;
  switch (slot) {
  case LS_SLOT_TP:
    return m->tp > 1;
  case LS_SLOT_DP:
    return m->dp > 1;
  case LS_SLOT_EMBEDDING:
    return is_tied_over_ranks (l);
  case LS_SLOT_MODEL:
    return m->tp * m->pp > 1;
  case LS_SLOT_WORLD:
    return m->dp > 1 && l->s->zero_stage > 0;
  default:
    return false;
  }
}

static void
lower_bindings (Lower *l)
{
  uint32_t slots = 0;
  for (int s = 0; s < LS_SLOT_PREV; s++)
    slots |= uses_slot (l, (LsSlot) s) ? LS_SLOT_BIT (s) : 0;
  ls_plan_bind_mesh (l->plan, &l->mesh, slots);
}

/* --- programs ---------------------------------------------------------------------- */

/* Bytes alive for the whole run: 16-bit (or fp32) weights and gradients of all
 * parameters, and what the optimizer keeps of those that this rank owns: master
 * weights, momentum and variance in fp32 (fp32 training has no extra master). */
static void
lower_static_memory (const Lower *l, LsProgram *p)
{
  bool is_mixed = l->shard.dtype != LS_DTYPE_FP32;
  uint64_t n = p->n_params, owned = l->s->zero_stage > 0 ? (n + l->mesh.dp - 1) / l->mesh.dp : n;
  p->static_bytes[LS_MEM_PARAMETERS] = n * (is_mixed ? 2 : 4);
  p->static_bytes[LS_MEM_GRADIENTS] = n * ls_dtype_bytes (l->shard.grad_dtype);
  p->static_bytes[LS_MEM_OPTIMIZER] = owned * (is_mixed ? 12 : 8);
}

static uint32_t
n_events_of (const Lower *l, const LsProgram *p)
{
  uint32_t n = 0;
  g_autofree bool *seen = g_new0 (bool, l->segments->len);
  for (uint32_t i = 0; i < p->n_instances; i++) {
    uint32_t id = p->instances[i].segment;
    const LsSegment *seg = &g_array_index (l->segments, LsSegment, id);
    for (uint32_t o = 0; o < seg->n_ops && !seen[id]; o++)
      if ((seg->ops[o].kind == LS_OP_RECORD || seg->ops[o].kind == LS_OP_WAIT) && seg->ops[o].event != LS_EVENT_NONE)
        n = MAX (n, seg->ops[o].event + 1u);
    seen[id] = true;
  }
  return n;
}

static gboolean
lower_programs (Lower *l, GError **error)
{
  l->plan->n_roles = l->mesh.pp;
  l->plan->programs = ls_arena_new_array (l->plan->arena, LsProgram, l->mesh.pp);
  for (uint32_t r = 0; r < l->mesh.pp; r++) {
    LsProgram *p = &l->plan->programs[r];
    g_autoptr (GArray) instances = pipe_instances (l, r);
    if (l->too_long) {
      g_set_error (error, LS_ERROR, LS_ERROR_LIMIT,
                   "segment \"%s\" has more than %u ops: more pipeline stages or chunks make it shorter", l->too_long, MAX_OPS);
      return FALSE;
    }
    p->n_instances = instances->len;
    p->instances = ls_arena_new_array (l->plan->arena, LsInstance, instances->len);
    memcpy (p->instances, instances->data, instances->len * sizeof (LsInstance));
    p->n_events = n_events_of (l, p);
    p->stage = (uint16_t) r;
    for (uint32_t c = 0; c < l->s->vpp; c++)
      p->n_params += chunk_at (l, r, c)->n_params;
    lower_static_memory (l, p);
  }
  return TRUE;
}

static void
freeze (Lower *l)
{
  LsPlan *p = l->plan;
  p->n_micro_batches = l->n_micro_batches;
  p->n_chunks = l->s->vpp;
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
  double n = (l->sched->n_warmup ? 4.0 : 10.0) * l->n_micro_batches * l->s->vpp * l->mesh.pp;
  if (n > MAX_INSTANCES) {
    g_set_error (error, LS_ERROR, LS_ERROR_LIMIT, "%u micro-batches through %u chunks of %u stages make a plan of %.3g entries; the limit is %.3g",
                 l->n_micro_batches, l->s->vpp, l->mesh.pp, n, MAX_INSTANCES);
    return FALSE;
  }
  return TRUE;
}

static gboolean
find_sched (Lower *l, GError **error)
{
  l->sched = ls_sched_find (l->s->schedule);
  if (l->sched && !ls_sched_lower_refusal (l->sched))
    return TRUE;
  g_set_error (error, LS_ERROR, LS_ERROR_UNSUPPORTED, "schedule %s: %s", l->s->schedule,
               l->sched ? ls_sched_lower_refusal (l->sched) : "there is none of that name");
  return FALSE;
}

LsPlan *
ls_lower_orders (const LsModel *m, const LsStrategy *s, const LsOrders *orders, const LsLowerCosts *costs, GError **error)
{
  Lower l;
  LsPlan *plan = NULL;
  lower_init (&l, m, s);
  l.costs = costs;
  if (find_sched (&l, error) && check_size (&l, error) && lower_chunks (&l, error)) {
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
