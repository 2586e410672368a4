#include "strategy/strategy.h"

#include "strategy/dp_traits.h"

static const char *const p2p_names[] = {
  [LS_P2P_AUTO] = "auto",
  [LS_P2P_NONE] = "none",
  [LS_P2P_BATCHED] = "batched",
  [LS_P2P_SCATTER_GATHER] = "scatter-gather",
  [LS_P2P_OVERLAPPED] = "overlapped",
  [LS_P2P_DEEPSPEED] = "deepspeed",
};

static const char *const recompute_names[] = {
  [LS_RECOMPUTE_NONE] = "none",
  [LS_RECOMPUTE_SELECTIVE] = "selective",
  [LS_RECOMPUTE_FULL] = "full",
};

static const char *const dispatcher_names[] = {
  [LS_DISPATCHER_ALL_TO_ALL] = "all-to-all",
  [LS_DISPATCHER_DEEPEP] = "deepep",
  [LS_DISPATCHER_HYBRIDEP] = "hybridep",
};

const char *
ls_dp_kind_name (int kind)
{
  return ls_dp_traits (kind)->name;
}

const char *
ls_p2p_name (int p2p)
{
  return p2p_names[p2p];
}

const char *
ls_dispatcher_name (int dispatcher)
{
  return dispatcher_names[dispatcher];
}

const char *
ls_recompute_name (int recompute)
{
  return recompute_names[recompute];
}

void
ls_strategy_init (LsStrategy *s)
{
  *s = (LsStrategy) {
    .tp = 1,
    .pp = 1,
    .cp = 1,
    .ep = 1,
    .vpp = 1,
    .dp_kind = LS_DP_AUTO,
    .dp_overlap = true,
    .tp_async = true,
    .p2p = LS_P2P_AUTO,
    .micro_batch = 1,
    .recompute = LS_RECOMPUTE_NONE,
    .attention = LS_ATTENTION_AUTO,
    .dtype = LS_DTYPE_BF16,
    .grad_dtype = LS_DTYPE_AUTO,
    .grad_norm = true,
    .vocab_multiple = LS_VOCAB_MULTIPLE,
    .zero_stage = LS_ZERO_AUTO,
    .gather_overlap = LS_FLAG_AUTO,
    .dispatch_sms = 20,
    .ep_overlap = LS_FLAG_AUTO,
    .delay_wgrad = LS_FLAG_AUTO,
    .layers_per_unit = 1,
    .bucket_view = true,
    .limit_all_gathers = true,
    .reshard_after_forward = LS_RESHARD_AUTO,
    .reduce_bucket = 500000000,
    .allgather_bucket = 500000000,
    .prefetch_bucket = 50000000,
    .persistence_threshold = 100000,
    .max_live_params = 1000000000,
    .max_reuse_distance = 1000000000,
    .cp_balance = true,
    .host = { [0 ... LS_N_HOST_COSTS - 1] = LS_HOST_AUTO },
    .tp_overlap_kind = LS_TP_OVERLAP_RING,
    .tp_overlap_margin = true,
  };
}

LsMesh
ls_strategy_mesh (const LsStrategy *s)
{
  LsMesh m = { .tp = s->tp, .cp = s->cp, .dp = s->dp, .pp = s->pp, .ep = s->ep, .etp = s->etp };
  uint32_t named;
  bool is_order = !s->rank_order || ls_rank_order_parse (s->rank_order, &m.order, &named);
  g_assert (is_order); /* it was read before */
  return m;
}

bool
ls_strategy_is_ordered (const LsStrategy *s, const char *order)
{
  const LsMesh own = ls_strategy_mesh (s);
  LsMesh other = own;
  uint32_t named;
  return ls_rank_order_parse (order, &other.order, &named) && ls_mesh_is_alike (&own, &other);
}

void
ls_strategy_forget_placement (LsStrategy *s)
{
  g_clear_pointer (&s->placement, g_free);
  ls_allocation_unref (s->allocation);
  s->allocation = NULL;
}

/* Between two flushes, of so many in a step; a number that the rules refuse may leave a rest. */
static uint32_t
micro_batches_of_flush (const LsStrategy *s, uint32_t n_micro_batches)
{
  uint32_t n = s->pp > 1 ? s->pipeline_batch / s->micro_batch : 0;
  return n > 0 ? MIN (n, n_micro_batches) : n_micro_batches;
}

LsSchedShape
ls_strategy_sched_shape (const LsStrategy *s, uint32_t n_micro_batches)
{
  const LsSched *sched = s->schedule ? ls_sched_find (s->schedule) : NULL;
  return (LsSchedShape) {
    .pp = s->pp,
    .vpp = s->vpp,
    .n_micro_batches = micro_batches_of_flush (s, n_micro_batches),
    .has_pairs = s->ep_overlap == 1 && sched && (sched->knobs & LS_SCHED_PAIRS),
  };
}

uint32_t
ls_strategy_micro_batches (const LsStrategy *s, uint32_t dp_rank)
{
  if (!s->micro_batches_per_replica)
    return s->global_batch / (s->dp * s->micro_batch);
  g_assert (dp_rank < s->n_micro_batches_per_replica);
  return s->micro_batches_per_replica[dp_rank];
}

uint32_t
ls_strategy_most_micro_batches (const LsStrategy *s)
{
  uint32_t most = s->micro_batches_per_replica ? 0 : ls_strategy_micro_batches (s, 0);
  for (uint32_t d = 0; d < s->n_micro_batches_per_replica; d++)
    most = MAX (most, s->micro_batches_per_replica[d]);
  return most;
}

void
ls_strategy_forget_layers (LsStrategy *s)
{
  g_clear_pointer (&s->layers_per_chunk, g_free);
  s->n_layers_per_chunk = 0;
  s->layers_are_found = false;
}

void
ls_strategy_forget_kernels (LsStrategy *s)
{
  g_clear_pointer (&s->kernels, g_free);
  ls_recipes_unref (s->recipes);
  s->recipes = NULL;
}

const char *
ls_strategy_default_here (const LsStrategy *s, const char *key)
{
  const char *found = NULL;
  for (guint i = 0; s->architecture && s->by_architecture && i < s->by_architecture->len; i++) {
    const LsArchitectureDefaults *d = s->by_architecture->pdata[i];
    g_auto (GStrv) names = g_strsplit (d->architectures, ",", -1);
    const char *value = g_strv_contains ((const char *const *) names, s->architecture)
        ? g_environ_getenv (d->settings, key)
        : NULL;
    found = value ? value : found;
  }
  return found;
}

void
ls_strategy_lend_own (LsStrategy *dest, const LsStrategy *source)
{
  dest->attention_else = source->attention_else;
  g_clear_pointer (&dest->by_architecture, g_ptr_array_unref);
  if (source->by_architecture)
    dest->by_architecture = g_ptr_array_ref (source->by_architecture);
}

void
ls_strategy_clear (LsStrategy *s)
{
  if (!s)
    return;
  g_free (s->name);
  g_free (s->source);
  g_free (s->software);
  g_free (s->schedule);
  g_free (s->rank_order);
  g_free (s->placement);
  ls_allocation_unref (s->allocation);
  g_free (s->layers_per_chunk);
  g_free (s->micro_batches_per_replica);
  g_free (s->expert_load);
  g_free (s->lora_modules);
  g_free (s->lengths);
  ls_lengths_unref (s->lengths_drawn);
  g_free (s->recompute_stages);
  g_free (s->kernels);
  ls_recipes_unref (s->recipes);
  g_clear_pointer (&s->by_architecture, g_ptr_array_unref);
  g_free (s->optimizer);
  ls_optimizer_kind_unref (s->optimizer_kind);
  ls_strategy_init (s);
}

void
ls_strategy_copy (LsStrategy *dest, const LsStrategy *source)
{
  *dest = *source;
  dest->name = g_strdup (source->name);
  dest->source = g_strdup (source->source);
  dest->software = g_strdup (source->software);
  dest->schedule = g_strdup (source->schedule);
  dest->rank_order = g_strdup (source->rank_order);
  dest->placement = g_strdup (source->placement);
  dest->allocation = ls_allocation_ref (source->allocation);
  dest->layers_per_chunk
      = g_memdup2 (source->layers_per_chunk, source->n_layers_per_chunk * sizeof *source->layers_per_chunk);
  dest->micro_batches_per_replica
      = g_memdup2 (source->micro_batches_per_replica,
                   source->n_micro_batches_per_replica * sizeof *source->micro_batches_per_replica);
  dest->expert_load = g_strdup (source->expert_load);
  dest->lora_modules = g_strdup (source->lora_modules);
  dest->lengths = g_strdup (source->lengths);
  dest->lengths_drawn = ls_lengths_ref (source->lengths_drawn);
  dest->kernels = g_strdup (source->kernels);
  dest->recipes = ls_recipes_ref (source->recipes);
  dest->by_architecture = source->by_architecture ? g_ptr_array_ref (source->by_architecture) : NULL;
  dest->optimizer = g_strdup (source->optimizer);
  dest->optimizer_kind = ls_optimizer_kind_ref (source->optimizer_kind);
  dest->recompute_stages
      = g_memdup2 (source->recompute_stages, source->n_recompute_stages * sizeof *source->recompute_stages);
}
