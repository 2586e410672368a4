/* What is legal of the kernels around attention and loss. */
#include "strategy/strategy_rules.h"

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
  int way = s->dtype == LS_DTYPE_FP8 ? ways[s->fp8_recipe] : LS_FP8_ATTENTION_NONE;
  return way == LS_FP8_ATTENTION_NONE ? LS_FP8_ATTENTION_RECIPE : way;
}

void
fill_kernels (LsStrategy *s)
{
  s->bf16_experts &= ls_dtype_is_scaled ((LsDtype) s->dtype);
  if (!ls_dtype_is_scaled ((LsDtype) s->dtype))
    s->module_formats = (LsFormats) { 0 };
  if (!ls_dtype_is_scaled ((LsDtype) s->dtype))
    s->fp8_attention = LS_FP8_ATTENTION_NONE;
  if (s->fp8_attention == LS_FP8_ATTENTION_RECIPE)
    s->fp8_attention = attention_of_recipe (s);
  if (s->fp8_attention != LS_FP8_ATTENTION_NONE && s->attention_kernel == LS_ATTENTION_KERNEL_AUTO)
    s->attention_kernel = LS_ATTENTION_KERNEL_CUDNN;
}

static void
check_fp8_ways (const LsStrategy *s, LsDiagList *diags)
{
  bool is_in_blocks
      = s->dtype == LS_DTYPE_FP8 && (s->fp8_recipe == LS_FP8_BLOCKWISE || s->fp8_recipe == LS_FP8_DEEPSEEK);
  if (is_in_blocks)
    conflict (
        diags, "/fp8_attention",
        "expected none with linear layers scaled in blocks of 128, as Transformer Engine has no attention in "
        "fp8 next to them");
  else if (s->fp8_attention == LS_FP8_ATTENTION_RECIPE)
    conflict (diags, "/fp8_attention",
              "expected delayed, current or mxfp8 with nvfp4, of which attention has no recipe; got recipe");
  if (s->attention_kernel != LS_ATTENTION_KERNEL_CUDNN)
    conflict (diags, "/attention_kernel", "expected cudnn or auto with attention in fp8; got another");
}

static void
check_fp8_shapes (const LsStrategy *s, const LsModel *m, LsDiagList *diags)
{
  bool is_wide = m->head_dim > WIDE_HEAD;
  if (m->attention_experts > 0 || m->index_heads > 0 || ls_model_is_compressed (m))
    unsupported (diags, "/fp8_attention",
                 "attention in fp8 with experts of its own, with an indexer or to compressed keys is not "
                 "modelled; expected none");
  else if (m->head_dim > MAX_HEAD || ls_model_v_dim (m) > WIDE_HEAD)
    unsupported (diags, "/fp8_attention",
                 "attention in fp8 with heads wider than %u, or values wider than %u, is not modelled; "
                 "expected none",
                 MAX_HEAD, WIDE_HEAD);
  else if (is_wide && s->fp8_attention == LS_FP8_ATTENTION_DELAYED)
    conflict (
        diags, "/fp8_attention",
        "expected current, mxfp8 or none with heads wider than %u, as cuDNN has them from Blackwell on; "
        "got delayed",
        WIDE_HEAD);
  if (m->encoder_layers > 0)
    unsupported (diags, "/fp8_attention", "attention in fp8 with an encoder is not modelled; expected none");
  if (s->cp > 1)
    unsupported (diags, "/fp8_attention",
                 "attention in fp8 cut over ranks is not modelled; expected none with cp %u", s->cp);
}

static void
check_fp8_attention (const LsStrategy *s, const LsModel *m, LsDiagList *diags)
{
  if (s->fp8_attention == LS_FP8_ATTENTION_NONE)
    return;
  if (s->attention != LS_ATTENTION_FLASH)
    conflict (diags, "/fp8_attention", "expected none with unfused attention");
  if (s->lengths || s->qkv_layout == LS_QKV_UNPADDED)
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
  bool is_te = s->dtype != LS_DTYPE_FP8 || s->fp8_linear == LS_FP8_LINEAR_TE;
  if (!is_te && s->fp8_recipe != LS_FP8_CURRENT && s->fp8_recipe != LS_FP8_MXFP8)
    conflict (diags, "/fp8_recipe",
              "expected current or mxfp8, as linear layers of torchao (fp8_linear) have no other");
  if (!is_te && s->lora_rank > 0)
    unsupported (diags, "/fp8_linear",
                 "adapters next to linear layers of torchao in fp8 are not modelled; expected te");
}

static void
check_scaled_experts (const LsStrategy *s, const LsModel *m, LsDiagList *diags)
{
  bool has_bf16 = s->bf16_experts && (m->n_experts > 0 || m->attention_experts > 0);
  if (has_bf16 && s->fp8_params)
    unsupported (diags, "/fp8_params",
                 "expected false with experts in bf16, whose parameters would be gathered in another format");
  bool takes_bf16 = has_bf16 || s->module_formats.of[LS_MODULE_EXPERT_FC1] == LS_FORMAT_BF16;
  if (takes_bf16 && s->dispatch_fp8 && s->dispatcher == LS_DISPATCHER_DEEPEP)
    conflict (diags, "/dispatch_fp8", "expected false with experts in bf16, which do not take fp8");
}

/* Recipes of layers know no scales of earlier steps, but for all of the model (NVIDIA/Megatron-LM@d98e8a64,
 * megatron/core/extensions/transformer_engine.py, TEQuantizationRecipe.parse_from_config); what a norm casts
 * then is not known here. */
static void
check_module_formats (const LsStrategy *s, LsDiagList *diags)
{
  bool is_te = s->dtype != LS_DTYPE_FP8
      || (s->fp8_linear == LS_FP8_LINEAR_TE && s->fp8_recipe != LS_FP8_DELAYED
          && s->fp8_recipe != LS_FP8_DEEPSEEK);
  if (!ls_formats_any (&s->module_formats))
    return;
  if (!is_te)
    unsupported (diags, "/module_formats",
                 "formats of single modules next to scales of earlier steps, DeepSeek's kernels or torchao's "
                 "linear layers are not modelled; expected none");
  if (s->fp8_params)
    unsupported (
        diags, "/fp8_params",
        "expected false with formats of single modules, whose parameters would be gathered in another one");
  if (s->lora_rank > 0)
    unsupported (diags, "/module_formats",
                 "formats of single modules together with adapters are not modelled; expected none");
}

/* --- kernels that are listed; documents -------------------------------------------------------- */

/* Their bytes are those of 16 bits. */
static void
check_recipes (const LsStrategy *s, const LsModel *m, LsDiagList *diags)
{
  if ((s->dtype == LS_DTYPE_FP32 || s->dtype == LS_DTYPE_TF32) && ls_recipes_fit (s->recipes, m))
    conflict (diags, "/kernels", "expected bf16, fp16, fp8 or nvfp4 with listed kernels; got %s",
              ls_dtype_name ((LsDtype) s->dtype));
}

static void
check_documents (const LsStrategy *s, const LsModel *m, LsDiagList *diags)
{
  if (!s->lengths)
    return;
  if (s->attention == LS_ATTENTION_UNFUSED)
    conflict (diags, "/lengths",
              "expected whole with unfused attention, which computes the scores of whole sequences and masks "
              "them; got \"%s\"",
              s->lengths);
  if (m->encoder_layers > 0 || m->index_heads > 0 || ls_model_is_compressed (m) || m->n_layer_window > 0)
    unsupported (diags, "/lengths",
                 "several documents in a sequence with an encoder, with an indexer that chooses keys, with "
                 "compressed keys or with windows by layer, are not modelled; expected whole, got \"%s\"",
                 s->lengths);
}

void
check_kernels (const LsStrategy *s, const LsModel *m, LsDiagList *diags)
{
  bool is_plain_flash = s->attention == LS_ATTENTION_FLASH && s->cp == 1 && !ls_model_has_latents (m)
      && m->attention_experts == 0;
  if (s->qkv_layout != LS_QKV_JOINT && !is_plain_flash)
    conflict (
        diags, "/qkv_layout",
        "expected joint but for flash attention over whole sequences, without latent attention or experts of "
        "attention; got %s",
        s->qkv_layout == LS_QKV_SPLIT ? "split" : "unpadded");
  if (s->loss_kernel == LS_LOSS_FUSED && s->tp > 1)
    conflict (diags, "/loss_kernel", "expected parallel with tp %u, which cuts the vocabulary; got fused",
              s->tp);
  check_fp8_linear (s, diags);
  check_module_formats (s, diags);
  check_scaled_experts (s, m, diags);
  check_fp8_attention (s, m, diags);
  check_recipes (s, m, diags);
  check_documents (s, m, diags);
}
