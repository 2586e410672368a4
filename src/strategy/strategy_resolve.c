/* Defaults and legality of a strategy (src/manual/formats/legal.md).
 *
 * First what is derived is filled in, then each rule looks at the result on its own,
 * so that all broken rules are reported at once. A number that could not be derived
 * stays 0 and silences the rules that need it. */
#include <string.h>

#include "model/mixer.h"
#include "schedules/sched.h"
#include "strategy/shard.h"
#include "strategy/dp_traits.h"
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
    { "/layers_per_unit", s->layers_per_unit },
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
  for (uint32_t d = 0; d < s->n_micro_batches_per_replica; d++)
    batch += (uint64_t) s->micro_batches_per_replica[d] * s->micro_batch;
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
  return s->offload != LS_OFFLOAD_NONE && (s->dp_kind == LS_DP_AUTO || s->dp_kind == LS_DP_DEEPSPEED);
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
  s->is_compiled |= s->dp_kind == LS_DP_XLA_FSDP;
  bool offloads = may_offload (s);
  if (offloads && s->zero_stage == LS_ZERO_AUTO)
    s->zero_stage = s->offload == LS_OFFLOAD_PARAMETERS || s->offload_to == LS_OFFLOAD_TO_NVME ? 3 : 2;
  if (n_copies (s) == 1 && n_expert_copies (s, m) <= 1 && !offloads) {
    s->dp_kind = LS_DP_NONE;
    s->dp_overlap = false;
    s->zero_stage = 0;
  }
  s->dp_kind = ls_strategy_dp_kind (s);
  if (s->zero_stage == LS_ZERO_AUTO)
    s->zero_stage = ls_dp_traits (s->dp_kind)->is_fsdp ? 3 : 0;
  if (s->zero_stage == 0 || s->zero_group == n_copies (s))
    s->zero_group = 0;
  s->collective_lists = s->collective_lists && s->dp_kind != LS_DP_NONE;
  if (s->dp_kind != LS_DP_NONE && s->dp_kind != LS_DP_DDP && ls_master_is_the_weight ((LsMaster) s->master))
    s->master = LS_MASTER_FP32;
}

void
ls_strategy_fill_auto (LsStrategy *s)
{
  if (s->gather_overlap == LS_FLAG_AUTO)
    s->gather_overlap = s->dp_overlap;
  fill_grad_sync (s);
  if (s->reshard_after_forward == LS_RESHARD_AUTO)
    s->reshard_after_forward = s->zero_stage == 3 && s->pp == 1;
  if (s->etp == 0)
    s->etp = s->tp;
  if (s->recompute_layers == 0 && s->recompute_method == LS_RECOMPUTE_UNIFORM)
    s->recompute_layers = 1;
  if (s->recompute_parts == 0)
    s->recompute_parts = LS_RECOMPUTE_CORE;
  fill_overlap (s);
  fill_optimizer (s);
}

static void
fill_tensor_parallel (LsStrategy *s)
{
  if (s->tp == 1) {
    s->sp = false;
    s->tp_overlap = false;
    s->partition_activations = false;
  }
}

static void
fill_pipeline (LsStrategy *s)
{
  if (s->pp == 1)
    s->p2p = LS_P2P_NONE;
  if (!s->schedule)
    s->schedule = g_strdup (s->vpp > 1 ? "interleaved-1f1b" : s->pp > 1 ? "1f1b" : "none");
  const LsSched *sched = ls_sched_find (s->schedule);
  if (sched && strcmp (sched->name, s->schedule) != 0) { /* "1F1B" */
    g_free (s->schedule);
    s->schedule = g_strdup (sched->name);
  }
  bool is_flushed = !sched || ls_sched_is_flushed (sched);
  if (s->p2p == LS_P2P_AUTO)
    s->p2p = is_flushed ? LS_P2P_BATCHED : LS_P2P_OVERLAPPED;
  s->grad_norm &= is_flushed; /* stages update at different times: they have no common norm */
  s->post_validation &= s->grad_norm;
  if (s->vpp == 1 && sched && ls_sched_fixes_chunks (sched))
    s->vpp = sched->n_chunks (&(LsSchedShape) { .pp = s->pp, .n_micro_batches = 1 });
}

static void
fill_from_model (LsStrategy *s, const LsModel *model)
{
  if (s->seq == 0)
    s->seq = model->seq;
  if (s->attention == LS_ATTENTION_AUTO)
    s->attention = model->attention;
  if (s->grad_dtype == LS_DTYPE_AUTO)
    s->grad_dtype = s->master == LS_MASTER_WEIGHTS ? LS_DTYPE_FP32 : (int) default_grad_dtype (s->dtype);
  s->fp8_params &= s->dtype == LS_DTYPE_FP8;
  if (!ls_dtype_is_scaled ((LsDtype) s->dtype))
    s->bf16_first = s->bf16_last = 0;
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
  if (model->n_experts > 0 && s->ep == 1)
    s->ep_overlap = s->delay_wgrad = 0; /* no exchange */
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
  else if (m->attention_experts > 0 && m->n_heads / m->attention_top_k % s->tp != 0)
    conflict (diags, "/tp", "expected a divisor of the %u heads of an expert of attention; got %u",
              m->n_heads / m->attention_top_k, s->tp);
  check_widths (s, m, diags);
  if (m->ffn % s->tp != 0)
    conflict (diags, "/tp", "expected a divisor of the model's ffn width %u; got %u", m->ffn, s->tp);
  if ((m->mixer == LS_MIXER_PRODUCT || m->mixer == LS_MIXER_RWKV7) && s->tp > 1)
    unsupported (
        diags, "/tp",
        "linear layers or RWKV in the place of attention, cut over ranks: not modelled; expected 1, got %u",
        s->tp);
  else if (m->mixer != LS_MIXER_NONE && (m->mixer_heads % s->tp != 0 || m->mixer_groups % s->tp != 0))
    conflict (diags, "/tp", "expected a divisor of the model's %u heads and %u groups of mixers; got %u",
              m->mixer_heads, m->mixer_groups, s->tp);
  if (s->sp && s->seq % s->tp != 0)
    conflict (diags, "/sp", "expected a sequence length divisible by tp = %u; got %u", s->tp, s->seq);
}

/* Copy engines and userbuffers reach the GPUs of a node. */
static void
check_tp_overlap (const LsStrategy *s, uint32_t gpus_per_node, LsDiagList *diags)
{
  if (!s->tp_overlap)
    return;
  if (!s->sp)
    conflict (diags, "/tp_overlap",
              "expected sequence parallelism (sp) with it, whose collectives it cuts in pieces; got none");
  if (s->tp_overlap_kind == LS_TP_OVERLAP_RING && gpus_per_node % s->tp != 0)
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
  if (s->zero_group > 0 && n_copies (s) > 0 && n_copies (s) % s->zero_group != 0)
    conflict (diags, "/zero", "expected groups whose size divides dp * cp = %u * %u; got %u@%u", s->dp, s->cp,
              s->zero_stage, s->zero_group);
  bool sums_each = s->grad_sync == LS_GRAD_SYNC_EACH;
  if (s->dp_kind == LS_DP_MEGATRON && sums_each)
    conflict (diags, "/grad_sync",
              "expected last, as Megatron-LM reduces with the last micro-batch only; got each");
  if (s->dp_kind == LS_DP_DEEPSPEED && s->pp == 1 && sums_each != (s->zero_stage >= 2))
    conflict (diags, "/grad_sync", "expected %s with deepspeed's stage %u; got %s",
              s->zero_stage >= 2 ? "each" : "last", s->zero_stage, sums_each ? "each" : "last");
  if (s->dp_kind == LS_DP_PS && sums_each)
    conflict (diags, "/grad_sync", "expected last, as servers sum the gradients of a step; got each");
  if (s->collective_lists
      && (s->dp_kind != LS_DP_DEEPSPEED || s->zero_stage != 3 || s->offload != LS_OFFLOAD_NONE))
    conflict (
        diags, "/collective_lists", "expected dp_kind deepspeed, zero 3 and no offload with it; got %s, %u%s",
        ls_dp_kind_name (s->dp_kind), s->zero_stage, s->offload != LS_OFFLOAD_NONE ? " and offload" : "");
  if (s->wgrad_placeholders && s->dp_kind != LS_DP_MEGATRON && s->dp_kind != LS_DP_NONE)
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
  if (s->dp_kind == LS_DP_FSDP1 && s->forward_prefetch > 1)
    conflict (diags, "/forward_prefetch", "expected 0 or 1, as FSDP1 gathers one unit ahead; got %u",
              s->forward_prefetch);
  if (s->dp_kind != LS_DP_FSDP2)
    return;
  uint32_t n = s->reshard_after_forward;
  if (s->zero_stage == 2 && n != 0)
    conflict (diags, "/reshard_after_forward",
              "expected 0 with zero 2, which keeps parameters for the backward; got %u", n);
  if (n <= 1)
    return;
  if (n_copies (s) > 0 && n_copies (s) % n != 0)
    conflict (diags, "/reshard_after_forward",
              "expected 0, 1 or a size of groups that divides dp * cp = %u * %u; got %u", s->dp, s->cp, n);
  if (s->zero_group > 0 || s->ep > 1)
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
  bool is_halved = s->cp_balance && s->cp_kind != LS_CP_ULYSSES;
  uint64_t parts = (uint64_t) s->cp * (is_halved ? 2 : 1) * (s->sp ? s->tp : 1);
  if (s->seq % parts != 0)
    conflict (diags, "/cp", "expected a sequence length divisible by %" G_GUINT64_FORMAT " (cp%s%s); got %u",
              parts, is_halved ? ", twice for the balance" : "", s->sp ? ", tp for sp" : "", s->seq);
  uint32_t heads = MAX (m->n_heads / s->tp, 1), kv_heads = MAX (m->n_kv_heads / s->tp, 1);
  bool repeats = ls_strategy_dp_kind (s) != LS_DP_MEGATRON && s->cp % kv_heads == 0;
  if (s->cp_kind == LS_CP_ULYSSES && (heads % s->cp != 0 || (kv_heads % s->cp != 0 && !repeats)))
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
  if (s->attention == LS_ATTENTION_UNFUSED)
    conflict (diags, "/cp", "expected flash attention with cp %u; got unfused", s->cp);
}

/* Which passes through layers run again, and who may cut what they start from. */
static void
check_recompute (const LsStrategy *s, const LsModel *m, LsDiagList *diags)
{
  bool is_full = s->recompute == LS_RECOMPUTE_FULL;
  bool has_ops = s->recompute == LS_RECOMPUTE_SELECTIVE && s->recompute_parts & LS_RECOMPUTE_BY_OPERATORS;
  bool is_op = s->recompute_parts & LS_RECOMPUTE_OP;
  if (has_ops && s->recompute_parts & ~(uint32_t) (is_op ? LS_RECOMPUTE_OP : LS_RECOMPUTE_DOTS_FLASH))
    conflict (diags, "/recompute_parts",
              "expected op alone, or dots, dots-flash and what begins with but-, which leave nothing for "
              "other parts; got others too");
  else if (has_ops && ops_refusal (s, m, s->recompute_parts))
    unsupported (diags, "/recompute_parts", "expected core, norm or activation %s",
                 ops_refusal (s, m, s->recompute_parts));
  if (s->recompute_stages && (!is_full || s->recompute_method != LS_RECOMPUTE_BLOCK))
    conflict (diags, "/recompute_stages", "expected recompute full by block; got %s%s",
              ls_recompute_name (s->recompute), is_full ? " uniform" : "");
  else if (s->recompute_stages && s->n_recompute_stages != s->pp)
    conflict (diags, "/recompute_stages", "expected a number for each of the %u pipeline ranks; got %u",
              s->pp, s->n_recompute_stages);
  if (s->partition_activations && (!is_full || s->sp))
    conflict (diags, "/partition_activations",
              "expected recompute full without sp, which cuts them already; got %s, tp %u%s",
              ls_recompute_name (s->recompute), s->tp, s->sp ? " + sp" : "");
  bool is_grouped = is_full && s->recompute_method == LS_RECOMPUTE_UNIFORM && s->recompute_layers > 1;
  uint32_t unit = s->dp_kind == LS_DP_FSDP1 || s->dp_kind == LS_DP_FSDP2 ? s->layers_per_unit : 1;
  if (is_grouped && s->zero_stage == 3 && s->dp_kind != LS_DP_XLA_FSDP && s->dp_kind != LS_DP_DEEPSPEED
      && unit % s->recompute_layers != 0)
    conflict (diags, "/recompute_layers",
              "expected a divisor of the %u layers whose parameters are gathered together; got %u", unit,
              s->recompute_layers);
}

static void
check_bf16_layers (const LsStrategy *s, const LsModel *m, LsDiagList *diags)
{
  uint64_t n = (uint64_t) s->bf16_first + s->bf16_last;
  if (n > m->n_layers)
    conflict (diags, s->bf16_last > 0 ? "/bf16_last" : "/bf16_first",
              "expected bf16_first + bf16_last up to the %u layers; got %u + %u", m->n_layers, s->bf16_first,
              s->bf16_last);
  if (n > 0 && s->fp8_params)
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
  if (s->grad_dtype != LS_DTYPE_FP32 && s->grad_dtype != (int) own)
    conflict (diags, "/grad_dtype", "expected %s%s with dtype %s; got %s", ls_dtype_name (own),
              own == LS_DTYPE_FP32 ? "" : " or fp32", ls_dtype_name (s->dtype),
              ls_dtype_name (s->grad_dtype));
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
  if (s->layers_are_found)
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
  if (s->micro_batches_per_replica)
    check_replicas (s, model, diags);
  else
    check_pipeline (s, model, check_batch (s, diags), diags);
  return ls_diag_list_n (diags) == n_before;
}
