/* Defaults and legality of a strategy (src/manual/formats/legal.md).
 *
 * First what is derived is filled in, then each rule looks at the result on its own,
 * so that all broken rules are reported at once. A number that could not be derived
 * stays 0 and silences the rules that need it. */
#include <string.h>

#include "model/expert_load.h"
#include "model/mixer.h"
#include "schedules/sched.h"
#include "strategy/shard.h"
#include "strategy/strategy.h"
#include "strategy/strategy_rules.h"

/* ---- what must hold before anything can be derived ---- */

static gboolean
check_values (const LsStrategy *s, LsDiagList *diags)
{
  const struct {
    const char *pointer;
    uint32_t value;
  } at_least_one[] = {
    { "/tp", s->tp },
    { "/pp", s->pp },
    { "/cp", s->cp },
    { "/ep", s->ep },
    { "/vpp", s->vpp },
    { "/micro_batch", s->micro_batch },
    { "/layers_per_unit", s->data.layers_per_unit },
  };

  guint n_before = ls_diag_list_n (diags);
  for (guint i = 0; i < G_N_ELEMENTS (at_least_one); i++)
    if (at_least_one[i].value == 0)
      conflict (diags, at_least_one[i].pointer, "expected at least 1; got 0");
  if (s->zero_stage > 3 && s->zero_stage != LS_ZERO_AUTO)
    conflict (diags, "/zero", "expected a stage from 0 to 3; got %u", s->zero_stage);
  return ls_diag_list_n (diags) == n_before;
}

/* ---- defaults ---- */

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

static LsDtype
default_grad_dtype (int dtype)
{
  switch (dtype) {
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
  if (n_copies (s) == 1 && n_expert_copies (s, m) <= 1 && !offloads) {
    s->dp_kind = LS_DP_NONE;
    s->data.overlap = false;
    s->zero_stage = 0;
  }
  s->dp_kind = ls_strategy_dp_kind (s);
  if (s->zero_stage == LS_ZERO_AUTO)
    s->zero_stage = ls_dp_traits (s->dp_kind)->is_fsdp ? 3 : 0;
  if (s->zero_stage == 0 || s->data.zero_group == n_copies (s))
    s->data.zero_group = 0;
  s->data.collective_lists = s->data.collective_lists && s->dp_kind != LS_DP_NONE;
  if (s->dp_kind != LS_DP_NONE && s->dp_kind != LS_DP_DDP
      && ls_master_is_the_weight ((LsMaster) s->opt.master))
    s->opt.master = LS_MASTER_FP32;
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

static void
fill_from_model (LsStrategy *s, const LsModel *model)
{
  if (s->seq == 0)
    s->seq = model->seq;
  if (s->use.attention == LS_ATTENTION_AUTO)
    s->use.attention = model->attention;
  if (s->opt.grad_dtype == LS_DTYPE_AUTO)
    s->opt.grad_dtype
        = s->opt.master == LS_MASTER_WEIGHTS ? LS_DTYPE_FP32 : (int) default_grad_dtype (s->dtype);
  s->fp8.params &= s->dtype == LS_DTYPE_FP8;
  if (!ls_dtype_is_scaled ((LsDtype) s->dtype))
    s->fp8.bf16_first = s->fp8.bf16_last = 0;
  fill_kernels (s);
}

static void
fill (LsStrategy *s, const LsModel *model, uint32_t n_gpus, LsDiagList *diags)
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

/* ---- rules ---- */

static void
check_tensor_parallel (const LsStrategy *s, const LsModel *m, LsDiagList *diags)
{
  if (m->n_heads % s->tp != 0)
    conflict (diags, "/tp", "expected a divisor of the model's %u heads; got %u", m->n_heads, s->tp);
  if (m->n_kv_heads % s->tp != 0 && s->tp % m->n_kv_heads != 0)
    conflict (diags, "/tp", "expected a divisor or a multiple of the model's %u key-value heads; got %u",
              m->n_kv_heads, s->tp);
  else if (m->moe.attention_experts > 0 && m->n_heads / m->moe.attention_top_k % s->tp != 0)
    conflict (diags, "/tp", "expected a divisor of the %u heads of an expert of attention; got %u",
              m->n_heads / m->moe.attention_top_k, s->tp);
  check_widths (s, m, diags);
  if (m->ffn % s->tp != 0)
    conflict (diags, "/tp", "expected a divisor of the model's ffn width %u; got %u", m->ffn, s->tp);
  if (ls_mixers[m->mixer.kind].is_whole && s->tp > 1)
    unsupported (
        diags, "/tp",
        "linear layers or RWKV in the place of attention, cut over ranks: not modelled; expected 1, got %u",
        s->tp);
  else if (m->mixer.kind != LS_MIXER_NONE && (m->mixer.heads % s->tp != 0 || m->mixer.groups % s->tp != 0))
    conflict (diags, "/tp", "expected a divisor of the model's %u heads and %u groups of mixers; got %u",
              m->mixer.heads, m->mixer.groups, s->tp);
  if (s->sp && s->seq % s->tp != 0)
    conflict (diags, "/sp", "expected a sequence length divisible by tp = %u; got %u", s->tp, s->seq);
}

/* Copy engines and userbuffers reach the GPUs of a node. */
static void
check_tp_overlap (const LsStrategy *s, uint32_t gpus_per_node, LsDiagList *diags)
{
  if (!s->mp.tp_overlap)
    return;
  if (!s->sp)
    conflict (diags, "/tp_overlap",
              "expected sequence parallelism (sp) with it, whose collectives it cuts in pieces; got none");
  if (s->mp.tp_overlap_kind == LS_TP_OVERLAP_RING && gpus_per_node % s->tp != 0)
    conflict (diags, "/tp_overlap",
              "expected tp groups inside a node, as pieces move by copy engines: a divisor of %u, the size "
              "of a node; got tp %u",
              gpus_per_node, s->tp);
}

static void
check_data_parallel (const LsStrategy *s, const LsModel *m, LsDiagList *diags)
{
  if (s->dp_kind == LS_DP_NONE && n_copies (s) == 1 && n_expert_copies (s, m) > 1)
    conflict (diags, "/dp_kind",
              "expected a way to reduce gradients of experts, which %" G_GUINT64_FORMAT " ranks have alike; "
              "got none",
              n_expert_copies (s, m));
  if (s->dp_kind == LS_DP_NONE && n_copies (s) > 1)
    conflict (diags, "/dp_kind", "expected a way to reduce gradients, as dp * cp = %u * %u; got none", s->dp,
              s->cp);
  const LsDpTraits *kind = ls_dp_traits (s->dp_kind);
  if (kind->stages != 0 && !(kind->stages >> s->zero_stage & 1))
    conflict (diags, "/zero", "expected %s; got %u", kind->expected, s->zero_stage);
  if (s->data.zero_group > 0 && n_copies (s) > 0 && n_copies (s) % s->data.zero_group != 0)
    conflict (diags, "/zero", "expected groups whose size divides dp * cp = %u * %u; got %u@%u", s->dp, s->cp,
              s->zero_stage, s->data.zero_group);
  bool sums_each = s->data.grad_sync == LS_GRAD_SYNC_EACH;
  if (s->dp_kind == LS_DP_MEGATRON && sums_each)
    conflict (diags, "/grad_sync",
              "expected last, as Megatron-LM reduces with the last micro-batch only; got each");
  if (s->dp_kind == LS_DP_DEEPSPEED && s->pp == 1 && sums_each != (s->zero_stage >= 2))
    conflict (diags, "/grad_sync", "expected %s with deepspeed's stage %u; got %s",
              s->zero_stage >= 2 ? "each" : "last", s->zero_stage, sums_each ? "each" : "last");
  if (s->dp_kind == LS_DP_PS && sums_each)
    conflict (diags, "/grad_sync", "expected last, as servers sum the gradients of a step; got each");
  if (s->data.collective_lists
      && (s->dp_kind != LS_DP_DEEPSPEED || s->zero_stage != 3 || s->memory.offload != LS_OFFLOAD_NONE))
    conflict (diags, "/collective_lists",
              "expected dp_kind deepspeed, zero 3 and no offload with it; got %s, %u%s",
              ls_dp_kind_name (s->dp_kind), s->zero_stage,
              s->memory.offload != LS_OFFLOAD_NONE ? " and offload" : "");
  if (s->use.wgrad_placeholders && s->dp_kind != LS_DP_MEGATRON && s->dp_kind != LS_DP_NONE)
    conflict (diags, "/wgrad_placeholders", "expected dp_kind megatron with it; got %s",
              ls_dp_kind_name (s->dp_kind));
  if (s->dp_kind == LS_DP_DEEPSPEED && s->zero_stage >= 2 && s->pp > 1)
    conflict (diags, "/zero",
              "expected 0 or 1 with pp %u, as DeepSpeed's pipeline engine accumulates whole gradients; got "
              "%u",
              s->pp, s->zero_stage);
}

static void
check_fsdp (const LsStrategy *s, LsDiagList *diags)
{
  if (s->dp_kind == LS_DP_FSDP1 && s->data.forward_prefetch > 1)
    conflict (diags, "/forward_prefetch", "expected 0 or 1, as FSDP1 gathers one unit ahead; got %u",
              s->data.forward_prefetch);
  if (s->dp_kind != LS_DP_FSDP2)
    return;
  uint32_t n = s->data.reshard_after_forward;
  if (s->zero_stage == 2 && n != 0)
    conflict (diags, "/reshard_after_forward",
              "expected 0 with zero 2, which keeps parameters for the backward; got %u", n);
  if (n <= 1)
    return;
  if (n_copies (s) > 0 && n_copies (s) % n != 0)
    conflict (diags, "/reshard_after_forward",
              "expected 0, 1 or a size of groups that divides dp * cp = %u * %u; got %u", s->dp, s->cp, n);
  if (s->data.zero_group > 0 || s->ep > 1)
    unsupported (diags, "/reshard_after_forward",
                 "groups of %u after a forward go neither with zero %u@group nor with ep %u: a rank has one "
                 "kind"
                 " of sharding group; expected 0 or 1",
                 n, s->zero_stage, s->ep);
}

/* Ulysses deals out heads; where ranks are a multiple of those of keys and values, programs but those with
 * Transformer Engine repeat them. */
static void
check_context_parallel (const LsStrategy *s, const LsModel *m, LsDiagList *diags)
{
  if (s->cp == 1)
    return;
  bool is_halved = s->mp.cp_balance && s->mp.cp_kind != LS_CP_ULYSSES;
  uint64_t parts = (uint64_t) s->cp * (is_halved ? 2 : 1) * (s->sp ? s->tp : 1);
  if (s->seq % parts != 0)
    conflict (diags, "/cp", "expected a sequence length divisible by %" G_GUINT64_FORMAT " (cp%s%s); got %u",
              parts, is_halved ? ", twice for the balance" : "", s->sp ? ", tp for sp" : "", s->seq);
  uint32_t heads = MAX (m->n_heads / s->tp, 1), kv_heads = MAX (m->n_kv_heads / s->tp, 1);
  bool repeats = ls_strategy_dp_kind (s) != LS_DP_MEGATRON && s->cp % kv_heads == 0;
  if (s->mp.cp_kind == LS_CP_ULYSSES && (heads % s->cp != 0 || (kv_heads % s->cp != 0 && !repeats)))
    conflict (diags, "/cp",
              "expected a divisor of the %u heads and %u key-value heads of a rank, which ulysses cuts; got "
              "%u",
              heads, kv_heads, s->cp);
  const char *wanted = ls_mixer_check_cut (m, s->tp, s->cp);
  if (!ls_mixer_has_context_parallelism (m))
    unsupported (diags, "/cp",
                 "mixers of this kind, which pass their state from token to token, cut over ranks are not "
                 "modelled; expected 1, got %u",
                 s->cp);
  else if (wanted)
    conflict (diags, "/cp", "expected %s; got %u", wanted, s->cp);
  if (ls_model_heads_differ (m))
    unsupported (
        diags, "/cp",
        "layers whose heads differ, of a sequence that is cut over ranks, are not modelled; expected "
        "1, got %u",
        s->cp);
  if (s->use.attention == LS_ATTENTION_UNFUSED)
    conflict (diags, "/cp", "expected flash attention with cp %u; got unfused", s->cp);
}

/* Which passes through layers run again, and who may cut what they start from. */
static void
check_recompute (const LsStrategy *s, const LsModel *m, LsDiagList *diags)
{
  bool is_full = s->recompute == LS_RECOMPUTE_FULL;
  bool has_ops
      = s->recompute == LS_RECOMPUTE_SELECTIVE && s->memory.recompute_parts & LS_RECOMPUTE_BY_OPERATORS;
  bool is_op = s->memory.recompute_parts & LS_RECOMPUTE_OP;
  if (has_ops && s->memory.recompute_parts & ~(uint32_t) (is_op ? LS_RECOMPUTE_OP : LS_RECOMPUTE_DOTS_FLASH))
    conflict (diags, "/recompute_parts",
              "expected op alone, or dots, dots-flash and what begins with but-, which leave nothing for "
              "other parts; got others too");
  else if (has_ops && ops_refusal (s, m, s->memory.recompute_parts))
    unsupported (diags, "/recompute_parts", "expected core, norm or activation %s",
                 ops_refusal (s, m, s->memory.recompute_parts));
  if (s->memory.recompute_stages && (!is_full || s->memory.recompute_method != LS_RECOMPUTE_BLOCK))
    conflict (diags, "/recompute_stages", "expected recompute full by block; got %s%s",
              ls_recompute_names[s->recompute].name, is_full ? " uniform" : "");
  else if (s->memory.recompute_stages && s->memory.n_recompute_stages != s->pp)
    conflict (diags, "/recompute_stages", "expected a number for each of the %u pipeline ranks; got %u",
              s->pp, s->memory.n_recompute_stages);
  if (s->memory.partition_activations && (!is_full || s->sp))
    conflict (diags, "/partition_activations",
              "expected recompute full without sp, which cuts them already; got %s, tp %u%s",
              ls_recompute_names[s->recompute].name, s->tp, s->sp ? " + sp" : "");
  bool is_grouped
      = is_full && s->memory.recompute_method == LS_RECOMPUTE_UNIFORM && s->memory.recompute_layers > 1;
  uint32_t unit = s->dp_kind == LS_DP_FSDP1 || s->dp_kind == LS_DP_FSDP2 ? s->data.layers_per_unit : 1;
  if (is_grouped && s->zero_stage == 3 && s->dp_kind != LS_DP_XLA_FSDP && s->dp_kind != LS_DP_DEEPSPEED
      && unit % s->memory.recompute_layers != 0)
    conflict (diags, "/recompute_layers",
              "expected a divisor of the %u layers whose parameters are gathered together; got %u", unit,
              s->memory.recompute_layers);
}

static void
check_bf16_layers (const LsStrategy *s, const LsModel *m, LsDiagList *diags)
{
  uint64_t n = (uint64_t) s->fp8.bf16_first + s->fp8.bf16_last;
  if (n > m->n_layers)
    conflict (diags, s->fp8.bf16_last > 0 ? "/bf16_last" : "/bf16_first",
              "expected bf16_first + bf16_last up to the %u layers; got %u + %u", m->n_layers,
              s->fp8.bf16_first, s->fp8.bf16_last);
  if (n > 0 && s->fp8.params)
    ls_diag_add (diags, LS_ERROR_UNSUPPORTED, NULL, 0, 0, "/fp8_params", NULL, NULL,
                 "expected false with layers in bf16, whose parameters would be gathered in another format");
}

static void
check_dtypes (const LsStrategy *s, const LsModel *m, LsDiagList *diags)
{
  check_bf16_layers (s, m, diags);
  if (s->dtype == LS_DTYPE_TF32 || s->dtype == LS_DTYPE_BYTE)
    conflict (diags, "/dtype", "expected fp16, bf16, fp8, nvfp4 or fp32; got %s", ls_dtype_name (s->dtype));

  LsDtype own = default_grad_dtype (s->dtype);
  if (s->opt.grad_dtype != LS_DTYPE_FP32 && s->opt.grad_dtype != (int) own)
    conflict (diags, "/grad_dtype", "expected %s%s with dtype %s; got %s", ls_dtype_name (own),
              own == LS_DTYPE_FP32 ? "" : " or fp32", ls_dtype_name (s->dtype),
              ls_dtype_name (s->opt.grad_dtype));
}

/* Micro-batches of a rank, or 0, with a diagnostic if the numbers are there. */
static uint32_t
check_batch (const LsStrategy *s, LsDiagList *diags)
{
  if (s->dp == 0 || s->global_batch == 0)
    return 0;
  uint64_t per_step = (uint64_t) s->dp * s->micro_batch;
  if (s->global_batch % per_step != 0) {
    conflict (diags, "/global_batch",
              "expected a multiple of dp * micro_batch = %u * %u = %" G_GUINT64_FORMAT "; got %u", s->dp,
              s->micro_batch, per_step, s->global_batch);
    return 0;
  }
  return (uint32_t) (s->global_batch / per_step);
}

/* ---- all of it ---- */

gboolean
ls_strategy_resolve (LsStrategy *s, const LsModel *model, uint32_t n_gpus, uint32_t gpus_per_node,
                     LsDiagList *diags)
{
  guint n_before = ls_diag_list_n (diags);
  if (!check_values (s, diags))
    return FALSE;
  if (s->layout.layers_are_found)
    ls_strategy_forget_layers (s);
  fill (s, model, n_gpus, diags);
  check_tensor_parallel (s, model, diags);
  check_tp_overlap (s, gpus_per_node, diags);
  check_data_parallel (s, model, diags);
  check_fsdp (s, diags);
  check_context_parallel (s, model, diags);
  check_experts (s, model, diags);
  check_rank_order (s, model, diags);
  check_latent_attention (s, model, diags);
  check_encoder (s, model, diags);
  check_again (s, model, diags);
  check_beside (s, model, diags);
  check_lora (s, model, diags);
  check_recompute (s, model, diags);
  check_dtypes (s, model, diags);
  check_optimizer (s, diags);
  check_kernels (s, model, diags);
  ls_chunk_layers (s, model, NULL, diags);
  if (s->layout.micro_batches_per_replica)
    check_replicas (s, model, diags);
  else
    check_pipeline (s, model, check_batch (s, diags), diags);
  return ls_diag_list_n (diags) == n_before;
}

/* ---- which options of a strategy make no difference to a job, and why ---- */

bool
ls_strategy_recompute_frees_nothing (const LsStrategy *s)
{
  return s->recompute == LS_RECOMPUTE_SELECTIVE && s->memory.recompute_parts == LS_RECOMPUTE_CORE
      && s->use.attention == LS_ATTENTION_FLASH;
}

bool
ls_strategy_recomputes_nothing (const LsStrategy *s)
{
  return ls_strategy_recompute_frees_nothing (s) && !s->memory.recompute_flash;
}

/* --- conditions: true where the knobs named below make no difference --- */

typedef bool Condition (const LsStrategy *s, const LsModel *m);

#define CONDITION(name, expression)                                                                          \
  static bool name (const LsStrategy *s, const LsModel *m)                                                   \
  {                                                                                                          \
    return expression;                                                                                       \
  }

CONDITION (has_one_tp, s->tp == 1)
CONDITION (has_one_stage, s->pp == 1)
CONDITION (has_one_degree,
           (s->tp > 1) + (s->cp > 1) + (s->dp > 1) + (s->pp > 1) <= 1
               && (m->moe.n_experts == 0 || s->ep == 1 || s->tp * s->cp * s->dp == s->ep * s->experts.etp))
CONDITION (has_one_rank, s->tp * s->cp * s->dp * s->pp == 1)
CONDITION (has_one_cp, s->cp == 1)
CONDITION (has_cp, s->cp > 1)
CONDITION (has_one_copy, s->dp_kind == LS_DP_NONE)
CONDITION (has_one_issued_copy, s->dp_kind == LS_DP_NONE && !s->launch.is_compiled)
CONDITION (has_no_sp, !s->sp)
CONDITION (fetches_everywhere_or_never,
           !s->launch.batch_sync || s->pp * s->vpp <= 2 || s->mp.p2p == LS_P2P_DEEPSPEED)
CONDITION (has_one_ep, s->ep == 1)
CONDITION (has_no_experts, m->moe.n_experts == 0)
CONDITION (has_no_nccl_tp, s->tp == 1 || s->mp.tp_overlap)
CONDITION (has_no_nccl_ep, s->ep == 1 || s->experts.dispatcher != LS_DISPATCHER_ALL_TO_ALL)
CONDITION (is_not_deepep, s->ep == 1 || s->experts.dispatcher != LS_DISPATCHER_DEEPEP)
CONDITION (is_all_to_all, s->ep == 1 || s->experts.dispatcher == LS_DISPATCHER_ALL_TO_ALL)
CONDITION (sends_to_each_expert, is_all_to_all (s, m) && ls_expert_load_is_in_turn (s->experts.load))
CONDITION (has_no_ep_overlap, !s->mp.ep_overlap)
CONDITION (has_even_attention, s->mp.cp_kind == LS_CP_ULYSSES)
CONDITION (is_unfused, s->use.attention == LS_ATTENTION_UNFUSED)
CONDITION (is_not_fp8, s->dtype != LS_DTYPE_FP8)
CONDITION (has_own_scales, !ls_strategy_delays_scales (s) || s->tp * s->cp * s->dp == 1)
CONDITION (is_not_scaled, !ls_dtype_is_scaled ((LsDtype) s->dtype))
CONDITION (has_no_tp_overlap, !s->mp.tp_overlap)
CONDITION (is_fsdp, s->dp_kind == LS_DP_FSDP1 || s->dp_kind == LS_DP_FSDP2)
CONDITION (is_fp32, s->dtype == LS_DTYPE_FP32)
CONDITION (is_not_fsdp1, s->dp_kind != LS_DP_FSDP1)
CONDITION (is_not_fsdp2, s->dp_kind != LS_DP_FSDP2)
CONDITION (is_not_torch_fsdp, s->dp_kind != LS_DP_FSDP1 && s->dp_kind != LS_DP_FSDP2)
CONDITION (has_no_ddp_buckets, s->dp_kind != LS_DP_DDP && s->dp_kind != LS_DP_PS)
CONDITION (has_no_reducer, s->dp_kind != LS_DP_DDP || !s->data.overlap)
CONDITION (has_no_servers, s->dp_kind != LS_DP_PS)
CONDITION (is_not_xla, s->dp_kind != LS_DP_XLA_FSDP || !s->data.overlap)
CONDITION (is_not_looped, s->dp_kind != LS_DP_XLA_FSDP)
CONDITION (is_not_megatron, s->dp_kind != LS_DP_MEGATRON)
CONDITION (is_not_megatron1, s->dp_kind != LS_DP_MEGATRON || s->zero_stage == 0)
CONDITION (is_not_deepspeed, s->dp_kind != LS_DP_DEEPSPEED)
CONDITION (is_not_deepspeed12, s->dp_kind != LS_DP_DEEPSPEED || s->zero_stage == 0 || s->zero_stage == 3)
CONDITION (is_not_deepspeed3, s->dp_kind != LS_DP_DEEPSPEED || s->zero_stage != 3)
CONDITION (has_masters,
           s->dp_kind != LS_DP_NONE && s->dp_kind != LS_DP_DDP && s->opt.master == LS_MASTER_FP32)
CONDITION (is_not_offloaded, s->memory.offload == LS_OFFLOAD_NONE)
CONDITION (keeps_core,
           s->recompute != LS_RECOMPUTE_SELECTIVE || !(s->memory.recompute_parts & LS_RECOMPUTE_CORE))
CONDITION (is_not_full, s->recompute != LS_RECOMPUTE_FULL)
CONDITION (offloads_no_activations, !s->memory.offload_activations)
CONDITION (is_not_selective, s->recompute != LS_RECOMPUTE_SELECTIVE)
CONDITION (recomputes_nothing, ls_strategy_recomputes_nothing (s))
CONDITION (has_no_parts_to_name, ls_strategy_recomputes_nothing (s) && s->lora.rank > 0)
CONDITION (is_not_overlapped, s->mp.p2p != LS_P2P_OVERLAPPED)
CONDITION (scatters_nothing, s->mp.p2p == LS_P2P_SCATTER_GATHER && s->tp == 1)
CONDITION (has_no_lora, s->lora.rank == 0)
CONDITION (drops_nothing,
           ls_expert_load_is_even (s->experts.load) && s->experts.capacity >= 1
               && s->experts.padding != LS_EXPERT_PADDING_CAPACITY)
CONDITION (has_lone_experts, s->experts.padding != LS_EXPERT_PADDING_CAPACITY && m->moe.n_experts == s->ep)
CONDITION (pads_nothing,
           ls_expert_load_is_even (s->experts.load)
               && (s->experts.padding != LS_EXPERT_PADDING_CAPACITY || s->experts.capacity == 1))
CONDITION (has_no_lengths, !s->docs.lengths)
CONDITION (has_lengths, s->docs.lengths)
CONDITION (has_mean_lengths, !s->docs.lengths || s->docs.draw == LS_LENGTHS_MEAN)
CONDITION (has_no_attention, ls_model_n_attention_layers (m) == 0)
CONDITION (has_no_layernorm, !ls_norm_is_layernorm (m->norm))
CONDITION (has_no_bias, !m->linear_bias)
CONDITION (has_no_norm, !s->opt.grad_norm)
CONDITION (has_no_window, m->attn.window == 0 && m->layers.n_window == 0)
CONDITION (has_whole_optimizer, s->zero_stage == 0)
CONDITION (deals_tensors, s->opt.cut == LS_OPTIMIZER_CUT_TENSORS)
CONDITION (needs_no_matrices,
           !s->opt.kind || !(ls_optimizer_multiplies (s->opt.kind) || ls_optimizer_factors (s->opt.kind)))
CONDITION (multiplies_nothing, !s->opt.kind || !ls_optimizer_multiplies (s->opt.kind))

static bool
has_alike_replicas (const LsStrategy *s, const LsModel *m)
{
  for (uint32_t d = 1; d < s->layout.n_micro_batches_per_replica; d++)
    if (s->layout.micro_batches_per_replica[d] != s->layout.micro_batches_per_replica[0])
      return false;
  return true;
}

static const struct {
  Condition *is_idle;
  const char *keys, *why; /* words */
} rules[] = {
  { has_one_degree, "rank_order", "one degree at most is above 1" },
  { has_one_rank, "placement", "there is one rank" },
  { has_alike_replicas, "micro_batches_per_replica", "all replicas have as many" },
  { has_one_tp, "sp tp_overlap tp_async optimizer_tp partition_activations", "tp is 1" },
  { has_no_sp, "sp_save_gathered", "it needs --sp, and tp above 1" },
  { has_no_tp_overlap, "tp_overlap_kind tp_overlap_margin", "it needs --tp-overlap 1" },
  { has_no_nccl_tp, "tp_max_ctas", "tp is 1, or tp_overlap has communication of its own" },
  { has_one_cp, "cp_max_ctas cp_kind cp_steps cp_balance", "cp is 1" },
  { has_no_nccl_ep, "ep_max_ctas",
    "ep is 1, or the dispatcher's kernels have blocks of their own (--dispatch-sms)" },
  { has_one_copy, "dp_max_ctas", "nothing is reduced over copies" },
  { has_one_stage, "pp_max_ctas p2p pipeline_batch", "pp is 1" },
  { drops_nothing, "expert_capacity",
    "tokens fall on experts evenly (--expert-load): none has more than the mean" },
  { sends_to_each_expert, "expert_load",
    "it needs ep above 1 and --dispatcher deepep or hybridep: else a token is sent to each of its experts" },
  { is_not_scaled, "fp8_attention bf16_first bf16_experts bf16_last module_formats",
    "it needs --dtype fp8 or nvfp4" },
  { has_no_experts, "expert_padding grouped_gemm bf16_experts", "the model has no experts" },
  { has_lone_experts, "expert_padding", "a rank has one expert, which is its fullest" },
  { pads_nothing, "expert_padding", "tokens fall on experts evenly (--expert-load): they are alike" },
  { has_one_ep, "dispatcher ep_overlap shared_overlap", "ep is 1" },
  { is_all_to_all, "dispatch_sms dispatch_margin",
    "it needs ep above 1 and --dispatcher deepep or hybridep" },
  { is_not_deepep, "dispatch_fp8", "it needs ep above 1 and --dispatcher deepep" },
  { has_no_ep_overlap, "delay_wgrad", "it needs --ep-overlap 1" },
  { has_even_attention, "cp_steps cp_balance", "with ulysses each rank has whole sequences of some heads" },
  { has_one_copy, "zero dp_overlap grad_sync", "there is one copy of the model: dp and cp are 1" },
  { has_one_issued_copy, "dp_kind", "there is one copy of the model: dp and cp are 1" },
  { is_fsdp, "dp_overlap", "FSDP always reduces together with the backward" },
  { is_not_xla, "loop_overlap", "it needs --dp-kind xla-fsdp with --dp-overlap 1" },
  { is_not_looped, "loop_copies", "it needs --dp-kind xla-fsdp" },
  { is_not_megatron1, "gather_overlap", "it needs --dp-kind megatron with --zero 1" },
  { deals_tensors, "gather_overlap", "tensors that are dealt out are gathered after the step" },
  { has_masters, "master", "it needs one copy of the model, or --dp-kind ddp" },
  { has_whole_optimizer, "optimizer_cut", "zero is 0: each rank steps on all of its parameters" },
  { needs_no_matrices, "optimizer_cut", "the optimizer steps on each element by itself" },
  { multiplies_nothing, "optimizer_tp", "the optimizer multiplies no matrices" },
  { is_not_torch_fsdp, "layers_per_unit narrow_shards forward_prefetch",
    "it needs --dp-kind fsdp1 or fsdp2" },
  { is_fp32, "narrow_shards", "weights are fp32" },
  { is_not_fsdp1, "limit_all_gathers backward_prefetch", "it needs --dp-kind fsdp1" },
  { is_not_fsdp2, "backward_prefetch_units reshard_after_forward", "it needs --dp-kind fsdp2" },
  { is_not_deepspeed, "reduce_bucket", "it needs --dp-kind deepspeed" },
  { is_not_deepspeed12, "allgather_bucket", "it needs --dp-kind deepspeed with --zero 1 or 2" },
  { is_not_deepspeed3,
    "prefetch_bucket persistence_threshold max_live_params max_reuse_distance collective_lists",
    "it needs --dp-kind deepspeed with --zero 3" },
  { is_not_offloaded, "offload_to", "it needs --offload optimizer or parameters" },
  { has_no_servers, "ps_servers", "it needs --dp-kind ps" },
  { has_no_ddp_buckets, "bucket_bytes", "it needs --dp-kind ddp or ps" },
  { has_no_reducer, "bucket_view", "it needs --dp-kind ddp, and --dp-overlap" },
  { is_not_megatron, "bucket_params grad_check", "it needs --dp-kind megatron" },
  { scatters_nothing, "p2p", "tp is 1: there is nothing to scatter" },
  { is_not_overlapped, "p2p_warmup_flush", "it needs --p2p overlapped" },
  { has_no_norm, "post_validation", "no norm of the gradients is taken" },
  { has_no_parts_to_name, "recompute",
    "flash attention computes its inside again by itself; together with adapters --recompute full drops "
    "more" },
  { recomputes_nothing, "recompute",
    "flash attention computes its inside again by itself; --recompute-parts norm,activation drops more" },
  { is_not_selective, "recompute_parts", "it needs --recompute selective" },
  { keeps_core, "recompute_flash", "it needs --recompute selective with the part core" },
  { is_unfused, "recompute_flash attention_kernel qkv_layout", "it needs --attention flash" },
  { is_not_full, "recompute_method recompute_layers recompute_early_stop", "it needs --recompute full" },
  { offloads_no_activations, "offload_layers", "it needs --offload-activations" },
  { has_no_layernorm, "apex_norm", "the model has no layer norms" },
  { fetches_everywhere_or_never, "batch_ends", "it needs --set batch_sync=1 and more than two stages" },
  { has_no_bias, "split_bias_dropout", "the model's products have no bias" },
  { is_unfused, "window_mask", "attention that is not fused masks anyway" },
  { has_no_window, "window_mask", "no layer of the model has a window" },
  { has_cp, "window_mask", "it needs --cp 1" },
  { has_lengths, "window_mask", "kernels that keep documents apart skip what a window leaves out" },
  { is_not_fp8, "fp8_recipe fp8_linear fp8_params", "it needs --dtype fp8" },
  { has_own_scales, "fp8_amax_reduction",
    "it needs --dtype fp8 --fp8-recipe delayed, and more than one rank" },
  { has_no_attention, "lengths", "the model has no attention" },
  { has_no_lengths, "lengths_draw lengths_seed", "it needs --lengths" },
  { has_mean_lengths, "lengths_balance", "it needs --lengths, and --lengths-draw each" },
  { has_no_lora, "lora_modules qlora", "it needs --lora-rank" },
};

static bool
has_word (const char *words, const char *word)
{
  size_t n = strlen (word);
  for (const char *at = strstr (words, word); at; at = strstr (at + 1, word))
    if ((at == words || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0'))
      return true;
  return false;
}

const char *
ls_strategy_idle (const LsStrategy *s, const LsModel *m, const char *key)
{
  for (guint i = 0; i < G_N_ELEMENTS (rules); i++)
    if (has_word (rules[i].keys, key) && rules[i].is_idle (s, m))
      return rules[i].why;
  return NULL;
}
