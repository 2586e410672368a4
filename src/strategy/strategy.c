#include "strategy/strategy.h"

#include <stddef.h>
#include <string.h>

#include "model/operators.h"
#include "strategy/shard.h"

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
  offsetof (LsStrategy, opt.optimizer), offsetof (LsStrategy, launch.nccl_env),
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

int64_t
ls_strategy_n_copies (const LsStrategy *s)
{
  return (int64_t) s->dp * s->cp;
}

int64_t
ls_strategy_n_expert_copies (const LsStrategy *s, const LsModel *m)
{
  uint32_t etp = s->experts.etp ? s->experts.etp : s->tp;
  return m->moe.n_experts == 0 ? 1 : s->tp * ls_strategy_n_copies (s) / (s->ep * etp);
}

/* --- defaults --- */

#define conflict(diags, pointer, ...)                                                                        \
  ls_diag_add (diags, LS_ERROR_CONFLICT, NULL, 0, 0, pointer, NULL, NULL, __VA_ARGS__)

/* tp * pp * cp, or UINT64_MAX if that overflows. */
static uint64_t
ranks_per_replica (const LsStrategy *s)
{
  uint64_t n;
  if (!g_uint64_checked_mul (&n, (uint64_t) s->tp * s->pp, s->cp))
    return UINT64_MAX;
  return n;
}

/* The data-parallel degree that the numbers of GPUs and of ranks per replica imply,
 * or 0, with a diagnostic. */
static uint32_t
derive_dp (const LsStrategy *s, uint32_t n_gpus, LsDiagList *diags)
{
  uint64_t replica = ranks_per_replica (s);

  if (s->gpus > n_gpus) {
    conflict (diags, "/gpus", "expected at most the %u of the cluster; got %u", n_gpus, s->gpus);
    return 0;
  }
  if (s->gpus % replica != 0 || s->gpus == 0) {
    conflict (diags, "/gpus", "expected a multiple of tp * pp * cp = %u * %u * %u; got %u", s->tp, s->pp,
              s->cp, s->gpus);
    return 0;
  }

  uint32_t dp = s->gpus / (uint32_t) replica;
  if (s->dp != 0 && s->dp != dp) {
    g_autofree char *hint = g_strdup_printf ("dp follows from gpus; to use a part of the cluster, set gpus to"
                                             " tp * pp * cp * dp = %" G_GUINT64_FORMAT,
                                             replica * s->dp);
    ls_diag_add (diags, LS_ERROR_CONFLICT, NULL, 0, 0, "/dp", NULL, s->dp < dp ? hint : NULL,
                 "expected gpus / (tp * pp * cp) = %u / (%u * %u * %u) = %u; got %u", s->gpus, s->tp, s->pp,
                 s->cp, dp, s->dp);
    return 0;
  }
  return dp;
}

static uint32_t
derive_global_batch (const LsStrategy *s, LsDiagList *diags)
{
  uint64_t batch = 0;
  for (uint32_t d = 0; d < s->layout.n_micro_batches_per_replica; d++)
    batch += (uint64_t) s->layout.micro_batches_per_replica[d] * s->micro_batch;
  if (batch > 0)
    return (uint32_t) MIN (batch, UINT32_MAX);
  if (!g_uint64_checked_mul (&batch, (uint64_t) s->dp * s->micro_batch, s->pp) || batch > UINT32_MAX) {
    conflict (diags, "/global_batch", "expected dp * micro_batch * pp = %u * %u * %u to stay below 2^32",
              s->dp, s->micro_batch, s->pp);
    return 0;
  }
  return (uint32_t) batch;
}

LsDtype
ls_strategy_usual_grad_dtype (const LsStrategy *s)
{
  switch (s->dtype) {
  case LS_DTYPE_FP16:
    return LS_DTYPE_FP16;
  case LS_DTYPE_BF16:
  case LS_DTYPE_FP8: /* recipes of scaled formats keep their gradients in bf16 */
  case LS_DTYPE_NVFP4:
    return LS_DTYPE_BF16;
  default:
    return LS_DTYPE_FP32;
  }
}

static bool
may_offload (const LsStrategy *s)
{
  return s->memory.offload != LS_OFFLOAD_NONE && (s->dp_kind == LS_DP_AUTO || s->dp_kind == LS_DP_DEEPSPEED);
}

int
ls_strategy_dp_kind (const LsStrategy *s)
{
  bool is_sharded = s->zero_stage != LS_ZERO_AUTO && s->zero_stage >= 2;
  if (s->dp_kind != LS_DP_AUTO)
    return s->dp_kind;
  return may_offload (s) || is_sharded ? LS_DP_DEEPSPEED : LS_DP_MEGATRON;
}

/* Data parallelism: what a single copy makes void, then the kind that zero asks for, and
 * the stage that the kind asks for. */
static void
fill_data_parallel (LsStrategy *s, const LsModel *m)
{
  s->launch.is_compiled |= s->dp_kind == LS_DP_XLA_FSDP;
  bool offloads = may_offload (s);
  if (offloads && s->zero_stage == LS_ZERO_AUTO)
    s->zero_stage
        = s->memory.offload == LS_OFFLOAD_PARAMETERS || s->memory.offload_to == LS_OFFLOAD_TO_NVME ? 3 : 2;
  if (ls_strategy_n_copies (s) == 1 && ls_strategy_n_expert_copies (s, m) <= 1 && !offloads) {
    s->dp_kind = LS_DP_NONE;
    s->data.overlap = false;
    s->zero_stage = 0;
  }
  s->dp_kind = ls_strategy_dp_kind (s);
  if (s->zero_stage == LS_ZERO_AUTO)
    s->zero_stage = ls_dp_traits (s->dp_kind)->is_fsdp ? 3 : 0;
  if (s->zero_stage == 0 || s->data.zero_group == ls_strategy_n_copies (s))
    s->data.zero_group = 0;
  s->data.collective_lists = s->data.collective_lists && s->dp_kind != LS_DP_NONE;
  if (s->dp_kind != LS_DP_NONE && s->dp_kind != LS_DP_DDP
      && ls_master_is_the_weight ((LsMaster) s->opt.master))
    s->opt.master = LS_MASTER_FP32;
}

bool
ls_strategy_may_reduce_before_flush (const LsStrategy *s)
{
  return s->dp_kind == LS_DP_FSDP2 || (s->dp_kind == LS_DP_DDP && s->data.overlap);
}

/* Without a pipeline each micro-batch ends what would be flushed; with one flush the step does. */
static void
fill_grad_sync (LsStrategy *s)
{
  bool is_sharded = s->zero_stage >= 2 && s->dp_kind != LS_DP_MEGATRON, is_alone = s->pp == 1;
  if (s->data.grad_sync == LS_GRAD_SYNC_AUTO && s->mp.pipeline_batch > 0 && !is_alone
      && ls_strategy_may_reduce_before_flush (s))
    s->data.grad_sync = LS_GRAD_SYNC_FLUSH;
  else if (s->data.grad_sync == LS_GRAD_SYNC_AUTO)
    s->data.grad_sync = is_sharded && is_alone ? LS_GRAD_SYNC_EACH : LS_GRAD_SYNC_LAST;
  else if (s->data.grad_sync == LS_GRAD_SYNC_FLUSH && (is_alone || s->mp.pipeline_batch == 0))
    s->data.grad_sync = is_alone ? LS_GRAD_SYNC_EACH : LS_GRAD_SYNC_LAST;
}

/* Schedules that are made of pairs are meant for it. */
static void
fill_overlap (LsStrategy *s)
{
  const LsSched *sched = s->schedule ? ls_sched_find (s->schedule) : NULL;
  bool is_paired = sched && sched->always_pairs;
  if (s->mp.ep_overlap == LS_FLAG_AUTO)
    s->mp.ep_overlap = s->ep > 1 && is_paired;
  if (s->mp.delay_wgrad == LS_FLAG_AUTO)
    s->mp.delay_wgrad = s->mp.ep_overlap && is_paired;
}

bool
ls_strategy_needs_matrices (const LsStrategy *s)
{
  return s->opt.kind && (ls_optimizer_needs (s->opt.kind) & LS_NEEDS_MATRICES);
}

static void
fill_optimizer (LsStrategy *s)
{
  bool is_asked = s->zero_stage > 0 && ls_strategy_needs_matrices (s);
  if (!is_asked && s->opt.cut == LS_OPTIMIZER_CUT_ELEMENTS)
    s->opt.cut = LS_OPTIMIZER_CUT_AUTO;
  if (s->zero_stage == 0)
    s->opt.cut = LS_OPTIMIZER_CUT_AUTO;
  else if (is_asked && s->opt.cut == LS_OPTIMIZER_CUT_AUTO && s->dp_kind == LS_DP_MEGATRON)
    s->opt.cut = LS_OPTIMIZER_CUT_TENSORS;
  if (s->opt.cut == LS_OPTIMIZER_CUT_TENSORS)
    s->data.gather_overlap = 0;
}

void
ls_strategy_fill_auto (LsStrategy *s)
{
  if (s->data.gather_overlap == LS_FLAG_AUTO)
    s->data.gather_overlap = s->data.overlap;
  fill_grad_sync (s);
  if (s->data.reshard_after_forward == LS_RESHARD_AUTO)
    s->data.reshard_after_forward = s->zero_stage == 3 && s->pp == 1;
  if (s->experts.etp == 0)
    s->experts.etp = s->tp;
  if (s->memory.recompute_layers == 0 && s->memory.recompute_method == LS_RECOMPUTE_UNIFORM)
    s->memory.recompute_layers = 1;
  if (s->memory.recompute_parts == 0)
    s->memory.recompute_parts = LS_RECOMPUTE_CORE;
  fill_overlap (s);
  fill_optimizer (s);
}

static void
fill_tensor_parallel (LsStrategy *s)
{
  if (s->tp == 1) {
    s->sp = false;
    s->mp.tp_overlap = false;
    s->memory.partition_activations = false;
  }
}

static void
fill_pipeline (LsStrategy *s)
{
  if (s->pp == 1)
    s->mp.p2p = LS_P2P_NONE;
  if (!s->schedule)
    s->schedule = g_strdup (ls_sched_usual (s->pp, s->vpp)->name);
  const LsSched *sched = ls_sched_find (s->schedule);
  if (sched && strcmp (sched->name, s->schedule) != 0) { /* "1F1B" */
    g_free (s->schedule);
    s->schedule = g_strdup (sched->name);
  }
  bool is_flushed = !sched || ls_sched_is_flushed (sched);
  if (s->mp.p2p == LS_P2P_AUTO)
    s->mp.p2p = is_flushed ? LS_P2P_BATCHED : LS_P2P_OVERLAPPED;
  s->opt.grad_norm &= is_flushed; /* stages update at different times: they have no common norm */
  s->opt.post_validation &= s->opt.grad_norm;
  if (s->vpp == 1 && sched && ls_sched_fixes_chunks (sched))
    s->vpp = sched->n_chunks (&(LsSchedShape) { .pp = s->pp, .n_micro_batches = 1 });
}

static int
attention_of_recipe (const LsStrategy *s)
{
  static const int ways[] = { [LS_FP8_DELAYED] = LS_FP8_ATTENTION_DELAYED,
                              [LS_FP8_CURRENT] = LS_FP8_ATTENTION_CURRENT,
                              [LS_FP8_MXFP8] = LS_FP8_ATTENTION_MXFP8,
                              [LS_FP8_DEEPSEEK] = LS_FP8_ATTENTION_NONE };
  int way = s->dtype == LS_DTYPE_FP8 ? ways[s->fp8.recipe] : LS_FP8_ATTENTION_NONE;
  return way == LS_FP8_ATTENTION_NONE ? LS_FP8_ATTENTION_RECIPE : way;
}

static void
fill_kernels (LsStrategy *s)
{
  s->fp8.bf16_experts &= ls_dtype_is_scaled ((LsDtype) s->dtype);
  if (!ls_dtype_is_scaled ((LsDtype) s->dtype))
    s->fp8.module_formats = (LsFormats) { 0 };
  if (!ls_dtype_is_scaled ((LsDtype) s->dtype))
    s->fp8.attention = LS_FP8_ATTENTION_NONE;
  if (s->fp8.attention == LS_FP8_ATTENTION_RECIPE)
    s->fp8.attention = attention_of_recipe (s);
  if (s->fp8.attention != LS_FP8_ATTENTION_NONE && s->use.attention_kernel == LS_ATTENTION_KERNEL_AUTO)
    s->use.attention_kernel = LS_ATTENTION_KERNEL_CUDNN;
}

static void
fill_from_model (LsStrategy *s, const LsModel *model)
{
  if (s->seq == 0)
    s->seq = model->seq;
  if (s->use.attention == LS_ATTENTION_AUTO)
    s->use.attention = model->attention;
  if (s->opt.grad_dtype == LS_DTYPE_AUTO)
    s->opt.grad_dtype
        = s->opt.master == LS_MASTER_WEIGHTS ? LS_DTYPE_FP32 : (int) ls_strategy_usual_grad_dtype (s);
  s->fp8.params &= s->dtype == LS_DTYPE_FP8;
  if (!ls_dtype_is_scaled ((LsDtype) s->dtype))
    s->fp8.bf16_first = s->fp8.bf16_last = 0;
  fill_kernels (s);
}

void
ls_strategy_fill (LsStrategy *s, const LsModel *model, uint32_t n_gpus, LsDiagList *diags)
{
  if (s->gpus == 0)
    s->gpus = n_gpus;
  s->dp = derive_dp (s, n_gpus, diags);
  fill_data_parallel (s, model);
  fill_tensor_parallel (s);
  fill_pipeline (s);
  if (model->moe.n_experts > 0 && s->ep == 1)
    s->mp.ep_overlap = s->mp.delay_wgrad = 0; /* no exchange */
  ls_strategy_fill_auto (s);
  fill_from_model (s, model);
  if (s->global_batch == 0 && s->dp != 0)
    s->global_batch = derive_global_batch (s, diags);
}
