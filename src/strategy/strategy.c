#include "strategy/strategy.h"

#include <stddef.h>

#include "model/operators.h"
#include "strategy/shard.h"
#include "strategy/strategy_rules.h"

static const char *const p2p_names[] = {
  [LS_P2P_AUTO] = "auto",
  [LS_P2P_NONE] = "none",
  [LS_P2P_BATCHED] = "batched",
  [LS_P2P_SCATTER_GATHER] = "scatter-gather",
  [LS_P2P_OVERLAPPED] = "overlapped",
  [LS_P2P_DEEPSPEED] = "deepspeed",
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
  return ls_dp_traits (kind)->name;
}

const char *
ls_p2p_name (int p2p)
{
  return p2p_names[p2p];
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

/* ---- strategy layers ---- */

/* What layers have next to attention and an MLP, and widths that differ: what is legal of these. */

/* Convolutions of keys, and differences: calls of flash attention, of pairs of heads. */
static void
check_difference (const LsStrategy *s, const LsModel *m, LsDiagList *diags)
{
  if (m->attn.qk_conv > 0 && m->n_kv_heads % s->tp != 0)
    conflict (diags, "/tp", "expected a divisor of the %u heads of keys that are convolved; got %u",
              m->n_kv_heads, s->tp);
  if (m->attn.kv_conv + m->attn.qk_conv > 0 && s->cp > 1)
    unsupported (diags, "/cp",
                 "keys that meet those of tokens on another rank are not modelled; expected 1, got %u",
                 s->cp);
  if (!m->attn.difference)
    return;
  uint32_t second = m->attn.noise_heads > 0 ? m->attn.noise_heads : m->n_heads / 2;
  if (second % s->tp != 0 || m->n_kv_heads / 2 % s->tp != 0)
    conflict (diags, "/tp",
              "expected a divisor of the %u heads of second attentions and %u pairs of heads of keys; got %u",
              second, m->n_kv_heads / 2, s->tp);
  if (s->use.attention == LS_ATTENTION_UNFUSED || s->cp > 1 || s->fp8.attention != LS_FP8_ATTENTION_NONE)
    unsupported (
        diags,
        s->cp > 1                                      ? "/cp"
            : s->use.attention == LS_ATTENTION_UNFUSED ? "/attention"
                                                       : "/fp8_attention",
        "differences of two attentions are modelled in flash kernels of 16 bits, of whole sequences");
}

/* Inputs of layers come from the first stage, shared keys and values from a layer before. */
void
check_beside (const LsStrategy *s, const LsModel *m, LsDiagList *diags)
{
  if (s->pp > 1 && m->halves.layer_input + m->halves.kv_shared_layers > 0)
    unsupported (
        diags, "/pp",
        "inputs of layers, and keys and values that layers share, on another stage are not modelled; "
        "expected 1, got %u",
        s->pp);
  if (s->cp > 1 && m->halves.kv_shared_layers > 0)
    unsupported (diags, "/cp",
                 "keys and values that layers share in sequences that are cut are not modelled; expected 1, "
                 "got %u",
                 s->cp);
  check_difference (s, m, diags);
  if (ls_ngram_rows (m) % s->tp != 0)
    conflict (diags, "/tp",
              "expected a divisor of the %" G_GUINT64_FORMAT " rows of tables of several tokens; got %u",
              ls_ngram_rows (m), s->tp);
  if (m->halves.layer_vocab % s->tp != 0)
    conflict (diags, "/tp", "expected a divisor of the %u rows of the table of layers' inputs; got %u",
              m->halves.layer_vocab, s->tp);
}

void
check_widths (const LsStrategy *s, const LsModel *m, LsDiagList *diags)
{
  if (!ls_model_widths_differ (m))
    return;
  uint32_t first[LS_MAX_MODEL_KINDS], n = ls_model_first_of_kinds (m, first);
  for (uint32_t i = 0; i < n; i++) {
    LsModel own = ls_model_of_kind (m, ls_model_layer_kind (m, first[i]));
    uint32_t heads = own.n_heads, kv_heads = own.n_kv_heads, ffn = own.ffn;
    bool is_cut = heads % s->tp == 0 && (kv_heads % s->tp == 0 || s->tp % kv_heads == 0);
    bool is_usual = heads == m->n_heads && kv_heads == m->n_kv_heads && ffn == m->ffn;
    if (is_usual || (is_cut && ffn % s->tp == 0))
      continue;
    conflict (diags, "/tp",
              "expected a divisor of the %u heads and the ffn width %u of layer %u, and a "
              "divisor or a multiple of its %u key-value heads; got %u",
              heads, ffn, first[i], kv_heads, s->tp);
    return;
  }
}

/* ---- what is legal of the kernels around attention and loss ---- */

/* --- attention in fp8 -------------------------------------------------------------------------- */

/* NVIDIA/TransformerEngine@d0067d0d, transformer_engine/pytorch/attention/dot_product_attention/utils.py,
 * get_attention_backend, and transformer_engine/common/fused_attn/fused_attn.cpp: cuDNN's alone, scaled in
 * one of three ways, over whole sequences, with heads up to 128, from Blackwell on up to 192 with values of
 * 128. Beside linear layers in nvfp4 it is so only where it is told a way of its own, beside those in blocks
 * of 128 never. */
#define WIDE_HEAD 128
#define MAX_HEAD  192

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

void
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
check_fp8_ways (const LsStrategy *s, LsDiagList *diags)
{
  bool is_in_blocks
      = s->dtype == LS_DTYPE_FP8 && (s->fp8.recipe == LS_FP8_BLOCKWISE || s->fp8.recipe == LS_FP8_DEEPSEEK);
  if (is_in_blocks)
    conflict (
        diags, "/fp8_attention",
        "expected none with linear layers scaled in blocks of 128, as Transformer Engine has no attention in "
        "fp8 next to them");
  else if (s->fp8.attention == LS_FP8_ATTENTION_RECIPE)
    conflict (diags, "/fp8_attention",
              "expected delayed, current or mxfp8 with nvfp4, of which attention has no recipe; got recipe");
  if (s->use.attention_kernel != LS_ATTENTION_KERNEL_CUDNN)
    conflict (diags, "/attention_kernel", "expected cudnn or auto with attention in fp8; got another");
}

static void
check_fp8_shapes (const LsStrategy *s, const LsModel *m, LsDiagList *diags)
{
  bool is_wide = m->head_dim > WIDE_HEAD;
  if (m->moe.attention_experts > 0 || m->index.heads > 0 || ls_model_is_compressed (m))
    unsupported (diags, "/fp8_attention",
                 "attention in fp8 with experts of its own, with an indexer or to compressed keys is not "
                 "modelled; expected none");
  else if (m->head_dim > MAX_HEAD || ls_model_v_dim (m) > WIDE_HEAD)
    unsupported (diags, "/fp8_attention",
                 "attention in fp8 with heads wider than %u, or values wider than %u, is not modelled; "
                 "expected none",
                 MAX_HEAD, WIDE_HEAD);
  else if (is_wide && s->fp8.attention == LS_FP8_ATTENTION_DELAYED)
    conflict (
        diags, "/fp8_attention",
        "expected current, mxfp8 or none with heads wider than %u, as cuDNN has them from Blackwell on; "
        "got delayed",
        WIDE_HEAD);
  if (m->sides.encoder_layers > 0)
    unsupported (diags, "/fp8_attention", "attention in fp8 with an encoder is not modelled; expected none");
  if (s->cp > 1)
    unsupported (diags, "/fp8_attention",
                 "attention in fp8 cut over ranks is not modelled; expected none with cp %u", s->cp);
}

static void
check_fp8_attention (const LsStrategy *s, const LsModel *m, LsDiagList *diags)
{
  if (s->fp8.attention == LS_FP8_ATTENTION_NONE)
    return;
  if (s->use.attention != LS_ATTENTION_FLASH)
    conflict (diags, "/fp8_attention", "expected none with unfused attention");
  if (s->docs.lengths || s->use.qkv_layout == LS_QKV_UNPADDED)
    conflict (diags, "/fp8_attention",
              "expected none with several documents in a sequence or without padding, as cuDNN has whole "
              "sequences in fp8");
  check_fp8_ways (s, diags);
  check_fp8_shapes (s, m, diags);
}

/* torchao has recipes of its own (float8/config.py, Float8LinearRecipeName; prototype/mx_formats). */
static void
check_fp8_linear (const LsStrategy *s, LsDiagList *diags)
{
  bool is_te = s->dtype != LS_DTYPE_FP8 || s->fp8.linear == LS_FP8_LINEAR_TE;
  if (!is_te && s->fp8.recipe != LS_FP8_CURRENT && s->fp8.recipe != LS_FP8_MXFP8)
    conflict (diags, "/fp8_recipe",
              "expected current or mxfp8, as linear layers of torchao (fp8_linear) have no other");
  if (!is_te && s->lora.rank > 0)
    unsupported (diags, "/fp8_linear",
                 "adapters next to linear layers of torchao in fp8 are not modelled; expected te");
}

static void
check_scaled_experts (const LsStrategy *s, const LsModel *m, LsDiagList *diags)
{
  bool has_bf16 = s->fp8.bf16_experts && (m->moe.n_experts > 0 || m->moe.attention_experts > 0);
  if (has_bf16 && s->fp8.params)
    unsupported (diags, "/fp8_params",
                 "expected false with experts in bf16, whose parameters would be gathered in another format");
  bool takes_bf16 = has_bf16 || s->fp8.module_formats.of[LS_MODULE_EXPERT_FC1] == LS_FORMAT_BF16;
  if (takes_bf16 && s->experts.dispatch_fp8 && s->experts.dispatcher == LS_DISPATCHER_DEEPEP)
    conflict (diags, "/dispatch_fp8", "expected false with experts in bf16, which do not take fp8");
}

/* Recipes of layers know no scales of earlier steps, but for all of the model (NVIDIA/Megatron-LM@d98e8a64,
 * megatron/core/extensions/transformer_engine.py, TEQuantizationRecipe.parse_from_config); what a norm casts
 * then is not known here. */
static void
check_module_formats (const LsStrategy *s, LsDiagList *diags)
{
  bool is_te = s->dtype != LS_DTYPE_FP8
      || (s->fp8.linear == LS_FP8_LINEAR_TE && s->fp8.recipe != LS_FP8_DELAYED
          && s->fp8.recipe != LS_FP8_DEEPSEEK);
  if (!ls_formats_any (&s->fp8.module_formats))
    return;
  if (!is_te)
    unsupported (diags, "/module_formats",
                 "formats of single modules next to scales of earlier steps, DeepSeek's kernels or torchao's "
                 "linear layers are not modelled; expected none");
  if (s->fp8.params)
    unsupported (
        diags, "/fp8_params",
        "expected false with formats of single modules, whose parameters would be gathered in another one");
  if (s->lora.rank > 0)
    unsupported (diags, "/module_formats",
                 "formats of single modules together with adapters are not modelled; expected none");
}

/* --- kernels that are listed; documents -------------------------------------------------------- */

/* Their bytes are those of 16 bits. */
static void
check_recipes (const LsStrategy *s, const LsModel *m, LsDiagList *diags)
{
  if ((s->dtype == LS_DTYPE_FP32 || s->dtype == LS_DTYPE_TF32) && ls_recipes_fit (s->use.recipes, m))
    conflict (diags, "/kernels", "expected bf16, fp16, fp8 or nvfp4 with listed kernels; got %s",
              ls_dtype_name ((LsDtype) s->dtype));
}

static void
check_documents (const LsStrategy *s, const LsModel *m, LsDiagList *diags)
{
  if (!s->docs.lengths)
    return;
  if (s->use.attention == LS_ATTENTION_UNFUSED)
    conflict (diags, "/lengths",
              "expected whole with unfused attention, which computes the scores of whole sequences and masks "
              "them; got \"%s\"",
              s->docs.lengths);
  if (m->sides.encoder_layers > 0 || m->index.heads > 0 || ls_model_is_compressed (m)
      || m->layers.n_window > 0)
    unsupported (diags, "/lengths",
                 "several documents in a sequence with an encoder, with an indexer that chooses keys, with "
                 "compressed keys or with windows by layer, are not modelled; expected whole, got \"%s\"",
                 s->docs.lengths);
}

void
check_kernels (const LsStrategy *s, const LsModel *m, LsDiagList *diags)
{
  bool is_plain_flash = s->use.attention == LS_ATTENTION_FLASH && s->cp == 1 && !ls_model_has_latents (m)
      && m->moe.attention_experts == 0;
  if (s->use.qkv_layout != LS_QKV_JOINT && !is_plain_flash)
    conflict (
        diags, "/qkv_layout",
        "expected joint but for flash attention over whole sequences, without latent attention or experts of "
        "attention; got %s",
        s->use.qkv_layout == LS_QKV_SPLIT ? "split" : "unpadded");
  if (s->use.loss_kernel == LS_LOSS_FUSED && s->tp > 1)
    conflict (diags, "/loss_kernel", "expected parallel with tp %u, which cuts the vocabulary; got fused",
              s->tp);
  check_fp8_linear (s, diags);
  check_module_formats (s, diags);
  check_scaled_experts (s, m, diags);
  check_fp8_attention (s, m, diags);
  check_recipes (s, m, diags);
  check_documents (s, m, diags);
}

/* ---- what is legal of the optimizer, and of what is offloaded with it ---- */

static bool
needs_matrices (const LsOptimizerKind *kind)
{
  return ls_optimizer_multiplies (kind) || ls_optimizer_factors (kind);
}

void
fill_optimizer (LsStrategy *s)
{
  bool is_asked = s->zero_stage > 0 && s->opt.kind && needs_matrices (s->opt.kind);
  if (!is_asked && s->opt.cut == LS_OPTIMIZER_CUT_ELEMENTS)
    s->opt.cut = LS_OPTIMIZER_CUT_AUTO;
  if (s->zero_stage == 0)
    s->opt.cut = LS_OPTIMIZER_CUT_AUTO;
  else if (is_asked && s->opt.cut == LS_OPTIMIZER_CUT_AUTO && s->dp_kind == LS_DP_MEGATRON)
    s->opt.cut = LS_OPTIMIZER_CUT_TENSORS;
  if (s->opt.cut == LS_OPTIMIZER_CUT_TENSORS)
    s->data.gather_overlap = 0;
}

static bool
sums_products (const LsOptimizerKind *kind)
{
  for (guint p = 0; p < kind->parts->len; p++) {
    const GArray *kernels = g_array_index (kind->parts, LsOptimizerPart, p).kernels;
    for (guint i = 0; i < kernels->len; i++)
      if (g_array_index (kernels, LsOptimizerKernel, i).sums)
        return true;
  }
  return false;
}

/* Preconditioners and sums of rows are of whole matrices; Newton-Schulz is known of pieces that are gathered.
 */
static void
check_shards (const LsStrategy *s, LsDiagList *diags)
{
  const LsOptimizerKind *kind = s->opt.kind;
  if (s->zero_stage == 0 || s->opt.cut == LS_OPTIMIZER_CUT_TENSORS || !needs_matrices (kind))
    return;
  if (s->dp_kind != LS_DP_MEGATRON)
    unsupported (
        diags, "/optimizer",
        "%s needs whole matrices, of which ranks have pieces with dp_kind %s and zero %u: how they are "
        "put together there has no source here; expected zero 0, or dp_kind megatron with zero 1",
        s->opt.optimizer, ls_dp_kind_name (s->dp_kind), s->zero_stage);
  else if (!sums_products (kind))
    unsupported (
        diags, "/optimizer_cut",
        "%s keeps preconditioners, or sums of rows and columns, of whole matrices: how pieces of them "
        "are put together has no source here; expected tensors",
        s->opt.optimizer);
}

static void
check_dealt (const LsStrategy *s, LsDiagList *diags)
{
  if (s->opt.cut != LS_OPTIMIZER_CUT_TENSORS)
    return;
  if (!s->opt.kind || !needs_matrices (s->opt.kind))
    conflict (diags, "/optimizer_cut",
              "expected elements with an optimizer that steps on each element by itself; got tensors");
  if (s->dp_kind != LS_DP_MEGATRON)
    conflict (diags, "/optimizer_cut",
              "expected elements with dp_kind %s, as Megatron-LM deals tensors out; got "
              "tensors",
              ls_dp_kind_name (s->dp_kind));
  if (s->data.zero_group > 0)
    unsupported (diags, "/optimizer_cut",
                 "tensors are dealt out over all data-parallel ranks, not over groups of "
                 "%u; expected zero 1 without a group",
                 s->data.zero_group);
}

/* PyTorch's gradients have the format of their weights, and moments too. */
static void
check_own_weights (const LsStrategy *s, LsDiagList *diags)
{
  LsDtype own = ls_strategy_weights (s);
  if (s->opt.grad_dtype != (int) own)
    conflict (diags, "/grad_dtype", "expected %s with master %s, as weights are; got %s", ls_dtype_name (own),
              s->opt.master == LS_MASTER_NONE ? "none" : "weights",
              ls_dtype_name ((LsDtype) s->opt.grad_dtype));
  bool is_first = s->opt.moment_dtype != LS_DTYPE_FP32;
  if (is_first || s->opt.variance_dtype != LS_DTYPE_FP32)
    conflict (
        diags, is_first ? "/moment_dtype" : "/variance_dtype",
        "expected fp32, its default, with master none or weights, whose moments are as weights are; got %s",
        ls_dtype_name ((LsDtype) (is_first ? s->opt.moment_dtype : s->opt.variance_dtype)));
  if (s->use.grad_fusion)
    conflict (diags, "/grad_fusion",
              "expected false with master none or weights: autograd adds gradients; got true");
}

static void
check_states (const LsStrategy *s, LsDiagList *diags)
{
  const LsAdamStates states = ls_strategy_adam (s);
  if (ls_master_is_the_weight (states.master)) {
    check_own_weights (s, diags);
    return;
  }
  const char *pointer = s->opt.master != LS_MASTER_FP32 ? "/master"
      : s->opt.moment_dtype != LS_DTYPE_FP32            ? "/moment_dtype"
                                                        : "/variance_dtype";
  bool is_alone = s->dp_kind == LS_DP_NONE, is_megatron = s->dp_kind == LS_DP_MEGATRON && s->zero_stage == 1;
  if (ls_adam_is_plain (&states))
    return;
  if (s->opt.kind)
    conflict (diags, pointer, "expected fp32 with optimizer %s, whose file says what it keeps",
              s->opt.optimizer);
  else if ((!is_alone && !is_megatron) || s->memory.offload != LS_OFFLOAD_NONE)
    conflict (diags, pointer,
              "expected fp32 but with dp_kind megatron and zero 1, whose precision-aware optimizer alone has "
              "narrower states; got dp_kind %s and zero %u",
              ls_dp_kind_name (s->dp_kind), s->zero_stage);
  bool is_bf16 = ls_dtype_between ((LsDtype) s->dtype) == LS_DTYPE_BF16;
  if (s->opt.master != LS_MASTER_FP32 && !is_bf16)
    conflict (diags, "/master",
              "expected fp32 with dtype %s, as bf16 weights only have 16 bits of an fp32 one; got "
              "%s",
              ls_dtype_name ((LsDtype) s->dtype), s->opt.master == LS_MASTER_FP16 ? "fp16" : "remainder");
}

/* ZeRO-Offload and ZeRO-Infinity. */
static void
check_offload (const LsStrategy *s, LsDiagList *diags)
{
  if (s->memory.offload == LS_OFFLOAD_NONE)
    return;
  if (s->dp_kind != LS_DP_DEEPSPEED)
    conflict (diags, "/offload",
              "expected none with dp_kind %s, as only --dp-kind deepspeed offloads; got %s",
              ls_dp_kind_name (s->dp_kind),
              s->memory.offload == LS_OFFLOAD_PARAMETERS ? "parameters" : "optimizer");
  else if (s->memory.offload == LS_OFFLOAD_PARAMETERS && s->zero_stage != 3)
    conflict (diags, "/offload",
              "expected none or optimizer with zero %u, as only stage 3 gathers parameters when they are "
              "used; got parameters",
              s->zero_stage);
  else if (s->zero_stage == 0)
    conflict (diags, "/offload", "expected zero 1 to 3 with it, whose optimizer is cut; got zero 0");
  else if (s->memory.offload_to == LS_OFFLOAD_TO_NVME && s->zero_stage != 3)
    conflict (diags, "/offload_to", "expected cpu with zero %u, as ZeRO-Infinity is stage 3; got nvme",
              s->zero_stage);
  if (s->opt.post_validation)
    conflict (diags, "/post_validation",
              "expected none with offload, whose optimizer waits for the norm; got it");
}

void
check_optimizer (const LsStrategy *s, LsDiagList *diags)
{
  check_offload (s, diags);
  check_states (s, diags);
  check_dealt (s, diags);
  if (!s->opt.kind)
    return;
  check_shards (s, diags);
  if (s->memory.offload != LS_OFFLOAD_NONE)
    unsupported (diags, "/optimizer", "what %s takes on a CPU has no source here; expected adam with offload",
                 s->opt.optimizer);
  if (s->opt.tp == LS_OPTIMIZER_TP_DISTRIBUTED && !sums_products (s->opt.kind))
    conflict (diags, "/optimizer_tp",
              "expected blockwise, as %s has no product that is summed over ranks; got "
              "distributed",
              s->opt.optimizer);
  if (s->opt.tp == LS_OPTIMIZER_TP_DUPLICATED && ls_optimizer_has_tiles (s->opt.kind))
    conflict (diags, "/optimizer_tp",
              "expected blockwise, as %s cuts what a rank has of a matrix into tiles; got duplicated",
              s->opt.optimizer);
}
