#include "strategy/shard.h"

#include "model/expert_load.h"
#include "strategy/dp_traits.h"

/* --- chunks -------------------------------------------------------------------------------------- */

static G_GNUC_PRINTF (3, 4) gboolean refuse (LsDiagList *diags, const char *pointer, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *message = g_strdup_vprintf (format, args);
  va_end (args);
  ls_diag_add (diags, LS_ERROR_CONFLICT, NULL, 0, 0, pointer, NULL, NULL, "%s", message);
  return FALSE;
}

static gboolean
check_given (const LsStrategy *s, const LsModel *m, uint32_t n_chunks, LsDiagList *diags)
{
  static const char pointer[] = "/layers_per_chunk";

  if (s->layout.n_layers_per_chunk != n_chunks)
    return refuse (diags, pointer, "expected pp * vpp = %u * %u = %u numbers; got %u", s->pp, s->vpp,
                   n_chunks, s->layout.n_layers_per_chunk);

  uint64_t sum = 0;
  for (uint32_t i = 0; i < n_chunks; i++) {
    if (s->layout.layers_per_chunk[i] == 0 && i > 0 && i < n_chunks - 1)
      return refuse (diags, pointer,
                     "expected at least one layer in chunk %u; got 0 (only the first and"
                     " the last chunk may be without)",
                     i);
    sum += s->layout.layers_per_chunk[i];
  }
  if (sum != m->n_layers)
    return refuse (diags, pointer,
                   "expected numbers that sum to the model's %u layers; got %" G_GUINT64_FORMAT, m->n_layers,
                   sum);
  return TRUE;
}

/* Each chunk between the first and the last needs a layer. */
static gboolean
check_room (const LsStrategy *s, const LsModel *m, uint32_t n_chunks, LsDiagList *diags)
{
  if (n_chunks <= m->n_layers + UINT64_C (2))
    return TRUE;
  return refuse (diags, s->vpp > 1 ? "/vpp" : "/pp",
                 "expected pp * vpp to be at most layers + 2 = %u + 2, as only the first and the"
                 " last chunk may be without layers; got %u * %u = %u",
                 m->n_layers, s->pp, s->vpp, n_chunks);
}

bool
ls_chunks_are_even (uint32_t n_layers, uint64_t n_chunks)
{
  return n_layers % n_chunks == 0 || (n_layers + UINT64_C (2)) % n_chunks == 0;
}

bool
ls_chunks_want_balance (const LsStrategy *s, const LsModel *m)
{
  uint64_t n_chunks = (uint64_t) s->pp * s->vpp;
  return !s->layout.layers_per_chunk && n_chunks > 1
      && (s->layout.layer_rule != LS_LAYER_RULE_AUTO || !ls_chunks_are_even (m->n_layers, n_chunks));
}

static uint32_t
layers_of_chunk (const LsStrategy *s, const LsModel *m, uint32_t n_chunks, uint32_t chunk)
{
  if (s->layout.layers_per_chunk)
    return s->layout.layers_per_chunk[chunk];
  if (m->n_layers % n_chunks == 0)
    return m->n_layers / n_chunks;
  gboolean is_end = chunk == 0 || chunk == n_chunks - 1;
  return (m->n_layers + 2) / n_chunks - (is_end ? 1 : 0);
}

gboolean
ls_chunk_layers (const LsStrategy *s, const LsModel *m, uint32_t *ret_layers, LsDiagList *diags)
{
  if ((uint64_t) s->pp * s->vpp > LS_MAX_CHUNKS)
    return refuse (diags, "/pp", "expected pp * vpp to be at most %d; got %u * %u", LS_MAX_CHUNKS, s->pp,
                   s->vpp);

  uint32_t n_chunks = s->pp * s->vpp;
  if (!(s->layout.layers_per_chunk ? check_given : check_room) (s, m, n_chunks, diags))
    return FALSE;

  g_assert (!ret_layers || !ls_chunks_want_balance (s, m));
  for (uint32_t i = 0; ret_layers && i < n_chunks; i++)
    ret_layers[i] = layers_of_chunk (s, m, n_chunks, i);
  return TRUE;
}

uint32_t
ls_encoder_chunks (const LsStrategy *s, const LsModel *m)
{
  uint32_t n_chunks = s->pp * s->vpp, sum = 0;
  for (uint32_t i = 0; i < n_chunks && sum <= m->sides.encoder_layers && !ls_chunks_want_balance (s, m);
       i++) {
    sum += layers_of_chunk (s, m, n_chunks, i);
    if (sum == m->sides.encoder_layers)
      return i + 1;
  }
  return 0;
}

/* --- operators ----------------------------------------------------------------------------------- */

LsLora
ls_strategy_lora (const LsStrategy *s, const LsModel *m)
{
  LsLora lora = { .rank = s->lora.rank,
                  .is_nf4 = s->lora.qlora,
                  .is_fp8 = s->fp8.params && s->fp8.recipe != LS_FP8_MXFP8 };
  g_autofree char *wrong = NULL;
  if (lora.rank > 0)
    ls_lora_modules (m, s->lora.modules, &lora.modules, &wrong);
  return lora;
}

static bool
has_shards (const LsStrategy *s)
{
  return s->dp_kind == LS_DP_FSDP1 || s->dp_kind == LS_DP_FSDP2;
}

/* What runs again op by op has its inputs in 16 bits. */
static LsFp8Linear
fp8_linear (const LsStrategy *s)
{
  bool has_ops = s->recompute == LS_RECOMPUTE_SELECTIVE && (s->memory.recompute_parts & LS_RECOMPUTE_OP);
  if (s->dtype != LS_DTYPE_FP8)
    return LS_FP8_LINEAR_TE;
  return has_ops && s->fp8.linear ? LS_FP8_LINEAR_TORCHAO : (LsFp8Linear) s->fp8.linear;
}

bool
ls_strategy_steps_on_weights (const LsStrategy *s)
{
  return has_shards (s) || ls_master_is_the_weight ((LsMaster) s->opt.master);
}

bool
ls_strategy_has_buckets (const LsStrategy *s)
{
  return s->dp_kind == LS_DP_DDP && s->data.overlap && !s->data.bucket_view;
}

LsDtype
ls_strategy_weights (const LsStrategy *s)
{
  bool is_wide = has_shards (s) ? !s->data.narrow_shards : s->opt.master == LS_MASTER_WEIGHTS;
  return is_wide ? LS_DTYPE_FP32 : ls_dtype_between ((LsDtype) s->dtype);
}

LsAdamStates
ls_strategy_adam (const LsStrategy *s)
{
  LsAdamStates states
      = { (LsMaster) s->opt.master, (LsDtype) s->opt.moment_dtype, (LsDtype) s->opt.variance_dtype };
  if (states.master == LS_MASTER_NONE)
    states.moment = states.variance = ls_strategy_weights (s);
  return states;
}

LsStepped
ls_strategy_optimizer_kernels (const LsStrategy *s, uint64_t n, GArray *kernels)
{
  const LsAdamStates states = ls_strategy_adam (s);
  LsDtype dtype = (LsDtype) s->dtype, grad = (LsDtype) s->opt.grad_dtype, weights = ls_strategy_weights (s);
  bool is_own = ls_strategy_steps_on_weights (s), is_plain = ls_adam_is_plain (&states);
  if (is_own)
    ls_optimizer_kernels_own (n, dtype, weights, kernels);
  else if (is_plain)
    ls_optimizer_kernels (n, dtype, grad, kernels);
  else
    ls_optimizer_kernels_narrow (n, dtype, grad, &states, kernels);
  return (LsStepped) { .n_params = n,
                       .is_not_adam = (!is_own && !is_plain) || s->opt.kind,
                       .is_narrow = is_own && weights != LS_DTYPE_FP32 };
}

static LsFormats
formats_of (const LsStrategy *s)
{
  LsFormats formats = s->fp8.module_formats;
  if (s->fp8.bf16_experts)
    formats.of[LS_MODULE_EXPERT_FC1] = formats.of[LS_MODULE_EXPERT_FC2] = LS_FORMAT_BF16;
  return formats;
}

LsShard
ls_strategy_shard (const LsStrategy *s, const LsModel *m)
{
  return (LsShard) {
    .tp = s->tp,
    .sp = s->sp && s->tp > 1,
    .micro_batch = s->micro_batch,
    .seq = s->seq,
    .attention = (LsAttention) s->use.attention,
    .qkv_layout = (LsQkvLayout) s->use.qkv_layout,
    .loss = (LsLoss) s->use.loss_kernel,
    .vocab_multiple = s->use.vocab_multiple,
    .train_metrics = s->use.train_metrics,
    .dtype = (LsDtype) s->dtype,
    .grad_dtype = (LsDtype) s->opt.grad_dtype,
    .cp = s->cp,
    .cp_kind = (LsCpKind) s->mp.cp_kind,
    .cp_steps = s->docs.lengths ? LS_CP_STEPS_TE : (LsCpSteps) s->mp.cp_steps, /* flex_attention gathers */
    .cp_balance = s->mp.cp_balance,
    .sp_save_gathered = s->mp.sp_save_gathered,
    .ep = s->ep,
    .etp = s->experts.etp,
    .routes_in_turn = ls_expert_load_is_in_turn (s->experts.load),
    .sends_tokens_once = s->experts.dispatcher != LS_DISPATCHER_ALL_TO_ALL && s->ep > 1,
    .pads_sent_tokens = s->experts.dispatcher == LS_DISPATCHER_HYBRIDEP && s->ep > 1,
    .grouped_gemm = s->experts.grouped_gemm,
    .dispatch_fp8 = s->experts.dispatcher == LS_DISPATCHER_DEEPEP && s->experts.dispatch_fp8,
    .shared_is_beside = s->experts.shared_overlap && s->ep > 1,
    .expert_capacity = s->experts.capacity,
    .expert_padding = (LsExpertPadding) s->experts.padding,
    .fp8_act_store = s->fp8.act_store,
    .fp8_recipe = (LsFp8Recipe) s->fp8.recipe,
    .fp8_linear = fp8_linear (s),
    .fp8_weights = s->fp8.params && s->fp8.recipe != LS_FP8_MXFP8,
    .fp8_attention = (LsFp8Attention) s->fp8.attention,
    .window_mask = s->use.window_mask && !s->docs.lengths, /* kernels that keep documents apart skip */
    .formats = formats_of (s),
    .bf16_first = s->fp8.bf16_first,
    .bf16_last = s->fp8.bf16_last,
    .flash_is_core = s->memory.recompute_flash,
    .apex_norm = s->use.apex_norm,
    .bias_is_apart = s->use.split_bias_dropout,
    .grad_is_fused = s->use.grad_fusion,
    .grad_is_apart = s->use.grad_apart,
    .grad_is_cast = s->dp_kind == LS_DP_DEEPSPEED && s->zero_stage <= 1 && s->dtype == LS_DTYPE_BF16
        && s->opt.grad_dtype == LS_DTYPE_FP32,
    .grad_is_fresh = ls_dp_traits (s->dp_kind)->grad_is_fresh,
    .grad_is_own = ls_master_is_the_weight ((LsMaster) s->opt.master),
    .recipes = s->use.recipes,
    .lora = ls_strategy_lora (s, m),
    .sides_are_apart = m->sides.encoder_layers > 0 && s->pp > 1,
    .gathers_in_pieces
    = s->sp && s->tp > 1 && s->mp.tp_overlap && s->mp.tp_overlap_kind == LS_TP_OVERLAP_RING,
  };
}
