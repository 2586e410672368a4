#include "strategy/strategy.h"

#include <stddef.h>

#include "model/operators.h"

const LsEnumName ls_dp_kind_names[] = {
  { "none", LS_DP_NONE },
  { "ps", LS_DP_PS },
  { "ddp", LS_DP_DDP },
  { "megatron", LS_DP_MEGATRON },
  { "fsdp1", LS_DP_FSDP1 },
  { "fsdp2", LS_DP_FSDP2 },
  { "deepspeed", LS_DP_DEEPSPEED },
  { "xla-fsdp", LS_DP_XLA_FSDP },
  { "auto", LS_DP_AUTO },
  { NULL },
};
const LsEnumName ls_p2p_names[] = {
  { "none", LS_P2P_NONE },
  { "batched", LS_P2P_BATCHED },
  { "scatter-gather", LS_P2P_SCATTER_GATHER },
  { "overlapped", LS_P2P_OVERLAPPED },
  { "deepspeed", LS_P2P_DEEPSPEED },
  { "auto", LS_P2P_AUTO },
  { NULL },
};
const LsEnumName ls_recompute_names[] = { { "none", LS_RECOMPUTE_NONE },
                                          { "selective", LS_RECOMPUTE_SELECTIVE },
                                          { "full", LS_RECOMPUTE_FULL },
                                          { NULL } };
const LsEnumName ls_dispatcher_names[] = { { "all-to-all", LS_DISPATCHER_ALL_TO_ALL },
                                           { "deepep", LS_DISPATCHER_DEEPEP },
                                           { "hybridep", LS_DISPATCHER_HYBRIDEP },
                                           { NULL } };

const char *
ls_dp_kind_name (int kind)
{
  return ls_enum_name (ls_dp_kind_names, kind);
}

const char *
ls_p2p_name (int p2p)
{
  return ls_enum_name (ls_p2p_names, p2p);
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
    .data.overlap = true,
    .mp.tp_async = true,
    .mp.p2p = LS_P2P_AUTO,
    .micro_batch = 1,
    .recompute = LS_RECOMPUTE_NONE,
    .use.attention = LS_ATTENTION_AUTO,
    .dtype = LS_DTYPE_BF16,
    .opt.grad_dtype = LS_DTYPE_AUTO,
    .opt.grad_norm = true,
    .use.vocab_multiple = LS_VOCAB_MULTIPLE,
    .zero_stage = LS_ZERO_AUTO,
    .data.gather_overlap = LS_FLAG_AUTO,
    .experts.dispatch_sms = 20,
    .mp.ep_overlap = LS_FLAG_AUTO,
    .mp.delay_wgrad = LS_FLAG_AUTO,
    .data.layers_per_unit = 1,
    .data.bucket_view = true,
    .data.limit_all_gathers = true,
    .data.reshard_after_forward = LS_RESHARD_AUTO,
    .data.reduce_bucket = 500000000,
    .data.allgather_bucket = 500000000,
    .data.prefetch_bucket = 50000000,
    .data.persistence_threshold = 100000,
    .data.max_live_params = 1000000000,
    .data.max_reuse_distance = 1000000000,
    .mp.cp_balance = true,
    .launch.host = { [0 ... LS_N_HOST_COSTS - 1] = LS_HOST_AUTO },
    .mp.tp_overlap_kind = LS_TP_OVERLAP_RING,
    .mp.tp_overlap_margin = true,
  };
}

LsMesh
ls_strategy_mesh (const LsStrategy *s)
{
  LsMesh m = { .tp = s->tp, .cp = s->cp, .dp = s->dp, .pp = s->pp, .ep = s->ep, .etp = s->experts.etp };
  uint32_t named;
  bool is_order = !s->layout.rank_order || ls_rank_order_parse (s->layout.rank_order, &m.order, &named);
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
  g_clear_pointer (&s->layout.placement, g_free);
  ls_allocation_unref (s->layout.allocation);
  s->layout.allocation = NULL;
}

/* Between two flushes, of so many in a step; a number that the rules refuse may leave a rest. */
static uint32_t
micro_batches_of_flush (const LsStrategy *s, uint32_t n_micro_batches)
{
  uint32_t n = s->pp > 1 ? s->mp.pipeline_batch / s->micro_batch : 0;
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
    .has_pairs = s->mp.ep_overlap == 1 && sched && (sched->knobs & LS_SCHED_PAIRS),
  };
}

uint32_t
ls_strategy_micro_batches (const LsStrategy *s, uint32_t dp_rank)
{
  if (!s->layout.micro_batches_per_replica)
    return s->global_batch / (s->dp * s->micro_batch);
  g_assert (dp_rank < s->layout.n_micro_batches_per_replica);
  return s->layout.micro_batches_per_replica[dp_rank];
}

uint32_t
ls_strategy_most_micro_batches (const LsStrategy *s)
{
  uint32_t most = s->layout.micro_batches_per_replica ? 0 : ls_strategy_micro_batches (s, 0);
  for (uint32_t d = 0; d < s->layout.n_micro_batches_per_replica; d++)
    most = MAX (most, s->layout.micro_batches_per_replica[d]);
  return most;
}

void
ls_strategy_forget_layers (LsStrategy *s)
{
  g_clear_pointer (&s->layout.layers_per_chunk, g_free);
  s->layout.n_layers_per_chunk = 0;
  s->layout.layers_are_found = false;
}

void
ls_strategy_forget_kernels (LsStrategy *s)
{
  g_clear_pointer (&s->use.kernels, g_free);
  ls_recipes_unref (s->use.recipes);
  s->use.recipes = NULL;
}

const char *
ls_strategy_default_here (const LsStrategy *s, const char *key)
{
  const char *found = NULL;
  for (guint i = 0;
       s->program.architecture && s->program.by_architecture && i < s->program.by_architecture->len; i++) {
    const LsArchitectureDefaults *d = s->program.by_architecture->pdata[i];
    g_auto (GStrv) names = g_strsplit (d->architectures, ",", -1);
    const char *value = g_strv_contains ((const char *const *) names, s->program.architecture)
        ? g_environ_getenv (d->settings, key)
        : NULL;
    found = value ? value : found;
  }
  return found;
}

void
ls_strategy_lend_own (LsStrategy *dest, const LsStrategy *source)
{
  dest->program.attention_else = source->program.attention_else;
  g_clear_pointer (&dest->program.by_architecture, g_ptr_array_unref);
  if (source->program.by_architecture)
    dest->program.by_architecture = g_ptr_array_ref (source->program.by_architecture);
}

/* What a strategy owns, by its places in it. */
static const size_t strings[] = {
  offsetof (LsStrategy, name),          offsetof (LsStrategy, source),
  offsetof (LsStrategy, schedule),      offsetof (LsStrategy, program.software),
  offsetof (LsStrategy, experts.load),  offsetof (LsStrategy, layout.rank_order),
  offsetof (LsStrategy, lora.modules),  offsetof (LsStrategy, layout.placement),
  offsetof (LsStrategy, docs.lengths),  offsetof (LsStrategy, use.kernels),
  offsetof (LsStrategy, opt.optimizer),
};

static const struct {
  size_t numbers, n;
} arrays[] = {
  { offsetof (LsStrategy, layout.layers_per_chunk), offsetof (LsStrategy, layout.n_layers_per_chunk) },
  { offsetof (LsStrategy, layout.micro_batches_per_replica),
    offsetof (LsStrategy, layout.n_micro_batches_per_replica) },
  { offsetof (LsStrategy, memory.recompute_stages), offsetof (LsStrategy, memory.n_recompute_stages) },
};

void
ls_strategy_clear (LsStrategy *s)
{
  if (!s)
    return;
  for (guint i = 0; i < G_N_ELEMENTS (strings); i++)
    g_free (G_STRUCT_MEMBER (char *, s, strings[i]));
  for (guint i = 0; i < G_N_ELEMENTS (arrays); i++)
    g_free (G_STRUCT_MEMBER (uint32_t *, s, arrays[i].numbers));
  ls_allocation_unref (s->layout.allocation);
  ls_lengths_unref (s->docs.drawn);
  ls_recipes_unref (s->use.recipes);
  g_clear_pointer (&s->program.by_architecture, g_ptr_array_unref);
  ls_optimizer_kind_unref (s->opt.kind);
  ls_strategy_init (s);
}

void
ls_strategy_copy (LsStrategy *dest, const LsStrategy *source)
{
  *dest = *source;
  for (guint i = 0; i < G_N_ELEMENTS (strings); i++)
    G_STRUCT_MEMBER (char *, dest, strings[i]) = g_strdup (G_STRUCT_MEMBER (char *, source, strings[i]));
  for (guint i = 0; i < G_N_ELEMENTS (arrays); i++)
    G_STRUCT_MEMBER (uint32_t *, dest, arrays[i].numbers)
        = g_memdup2 (G_STRUCT_MEMBER (uint32_t *, source, arrays[i].numbers),
                     G_STRUCT_MEMBER (uint32_t, source, arrays[i].n) * sizeof (uint32_t));
  ls_allocation_ref (source->layout.allocation);
  ls_lengths_ref (source->docs.drawn);
  ls_recipes_ref (source->use.recipes);
  if (source->program.by_architecture)
    g_ptr_array_ref (source->program.by_architecture);
  ls_optimizer_kind_ref (source->opt.kind);
}
