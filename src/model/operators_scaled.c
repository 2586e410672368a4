/* model/operators_scaled.c — what fp8 and nvfp4 add around matrix products. */
#include "model/operators_build.h"

/* How a tensor is brought into a format: bytes that a layout takes per element, scales counted; whether its
 * maximum comes first; whether the layout for W is made from the 16-bit tensor too, as it cannot be had by
 * transposing. */
typedef struct {
  double layout_bytes;
  bool wants_amax, makes_both;
} Way;

static Way
way_of (const LsShard *s)
{
  static const Way fp8[] = {
    [LS_FP8_DELAYED] = { 1, false, false },
    [LS_FP8_CURRENT] = { 1, true, false },
    [LS_FP8_BLOCKWISE] = { 1 + 4.0 / 128, false, false }, /* fp32 for 1 x 128 */
    [LS_FP8_MXFP8] = { 1 + 1.0 / 32, false, true },       /* E8M0 for 1 x 32  */
    [LS_FP8_DEEPSEEK] = { 1 + 4.0 / 128, false, false },
  };
  return s->dtype == LS_DTYPE_NVFP4 ? (Way) { ls_dtype_size (LS_DTYPE_NVFP4), true, true }
                                    : fp8[s->fp8.recipe];
}

/* A norm writes fp8 itself where its scale is known before. */
static bool
norm_casts (const LsShard *s)
{
  return s->dtype == LS_DTYPE_FP8 && s->fp8.recipe == LS_FP8_DELAYED && s->lora.rank == 0;
}

LsCut
ls_cut_in_format (const LsCut *cut, LsModule module, LsDtype dtype, LsShard *own)
{
  static const LsFp8Recipe recipes[LS_N_FORMATS] = { [LS_FORMAT_CURRENT] = LS_FP8_CURRENT,
                                                     [LS_FORMAT_BLOCKWISE] = LS_FP8_BLOCKWISE,
                                                     [LS_FORMAT_MXFP8] = LS_FP8_MXFP8 };
  LsCut of_module = *cut;
  *own = *cut->shard;
  own->dtype = dtype;
  of_module.shard = own;
  uint8_t format = ls_dtype_is_scaled (dtype) ? own->fp8.formats.of[module] : LS_FORMAT_OF_ALL;
  if (format == LS_FORMAT_OF_ALL)
    return of_module;
  own->fp8.recipe = recipes[format];
  own->dtype = format == LS_FORMAT_BF16 ? LS_DTYPE_BF16
      : format == LS_FORMAT_NVFP4       ? LS_DTYPE_NVFP4
                                        : LS_DTYPE_FP8;
  return of_module;
}

static const char *
named (const LsCut *cut, const char *fp8, const char *nvfp4)
{
  return cut->shard->dtype == LS_DTYPE_NVFP4 ? nvfp4 : fp8;
}

static LsKernel
stream (const LsCut *cut, const char *name, uint64_t rows, uint64_t cols, double bytes_per_element)
{
  return ls_cut_stream (cut, name, LS_KERNEL_ELEMENTWISE, rows, cols, bytes_per_element);
}

static LsKernel
amax (const LsCut *cut, uint64_t rows, uint64_t cols)
{
  return ls_cut_stream (cut, named (cut, "fp8-amax", "nvfp4-amax"), LS_KERNEL_REDUCTION, rows, cols,
                        cut->elt);
}

static bool
is_torchao (const LsShard *s)
{
  return s->dtype == LS_DTYPE_FP8 && s->fp8.linear != LS_FP8_LINEAR_TE;
}

/* Tensor parallelism of torchao casts before it gathers, with one scale for a tensor. */
bool
ls_scaled_keeps_input (const LsShard *s)
{
  bool is_cast = s->fp8.linear == LS_FP8_LINEAR_TORCHAO_CAST || s->tp > 1;
  return is_torchao (s) && (s->fp8.recipe != LS_FP8_CURRENT || !is_cast);
}

LsDtype
ls_scaled_kept (const LsShard *s, LsDtype dtype)
{
  return ls_dtype_is_scaled (dtype) && ls_scaled_keeps_input (s) ? ls_dtype_between (dtype) : dtype;
}

/* Of the input of a COLUMN layer, or the gradient of a ROW layer's output: sequence parallelism cuts it. */
static LsKernel
shared_amax (const LsCut *cut, uint64_t rows, uint64_t cols, bool is_between)
{
  LsKernel k = amax (cut, rows, cols);
  k.is_cast = true;
  k.of_cut = is_between && cut->local_tokens < cut->tokens;
  return k;
}

/* Of one number, by one thread. */
static LsKernel
tiny (const LsCut *cut, const char *name)
{
  LsKernel k = ls_cut_stream (cut, name, LS_KERNEL_REDUCTION, 1, 1, 8);
  k.access = LS_ACCESS_TINY;
  k.is_cast = true;
  return k;
}

typedef void Append (LsOperator *op, LsKernel kernel);

/* Of Transformer Engine's kernels for scales of 32 values, and of 128. */
static LsAccess
access_of_cast (const LsCut *cut, uint32_t n_layouts)
{
  const LsShard *s = cut->shard;
  if (s->dtype != LS_DTYPE_FP8 || is_torchao (s))
    return LS_ACCESS_NONE;
  if (s->fp8.recipe == LS_FP8_BLOCKWISE)
    return LS_ACCESS_BLOCK_CAST;
  if (s->fp8.recipe != LS_FP8_MXFP8)
    return LS_ACCESS_NONE;
  return n_layouts > 1 ? LS_ACCESS_MX_CAST_BOTH : LS_ACCESS_MX_CAST;
}

/* Into one layout, or into both. */
static LsKernel
cast (const LsCut *cut, uint64_t rows, uint64_t cols, uint32_t n_layouts)
{
  const char *name = n_layouts > 1 ? named (cut, "fp8-cast-transpose", "nvfp4-cast-transpose")
                                   : named (cut, "fp8-cast", "nvfp4-cast");
  LsKernel k = stream (cut, name, rows, cols, cut->elt + n_layouts * way_of (cut->shard).layout_bytes);
  k.is_cast = true;
  k.access = access_of_cast (cut, n_layouts);
  return k;
}

uint32_t
ls_scaled_norm_out_bytes (const LsShard *s)
{
  return norm_casts (s) ? 1 : ls_dtype_bytes (ls_dtype_between (s->dtype));
}

/* --- each layout by itself (deepseek) ---------------------------------------------------------------- */

static bool
is_layout_by_layout (const LsShard *s)
{
  return s->dtype == LS_DTYPE_FP8 && s->fp8.recipe == LS_FP8_DEEPSEEK;
}

/* From 16 bits, or from the other layout. */
static LsKernel
cast_across (const LsCut *cut, uint64_t rows, uint64_t cols, bool is_fp8)
{
  double layout = way_of (cut->shard).layout_bytes;
  return stream (cut, "fp8-column-cast", rows, cols, (is_fp8 ? layout : cut->elt) + layout);
}

LsKernel
ls_scaled_wgrad (const LsShard *s, LsKernel gemm)
{
  gemm.by_blocks = gemm.dtype == LS_DTYPE_FP8 && is_layout_by_layout (s);
  return gemm;
}

void
ls_scaled_cast_sent (LsOperator *op, const LsCut *cut, uint64_t rows, uint64_t cols)
{
  if (cut->shard->experts.dispatch_fp8 && is_layout_by_layout (cut->shard))
    ls_operator_fwd (op, cast (cut, rows, cols, 1));
}

/* No weight gradient wants a layout of its own. */
static bool
is_frozen (const LsCut *cut)
{
  return cut->shard->lora.rank > 0;
}

/* The inputs of a rank's experts, cast one by one before products that are launched so; with delayed scales
 * one kernel casts all (transformer_engine/pytorch/csrc/extensions, multi_tensor_quantize). */
static LsKernel
of_experts (LsKernel k, const LsCut *cut, const LsScaled *p)
{
  bool is_fused = cut->shard->experts.grouped_gemm
      || (cut->shard->dtype == LS_DTYPE_FP8 && cut->shard->fp8.recipe == LS_FP8_DELAYED);
  k.n_launches = is_fused ? 0 : (uint32_t) p->n;
  if (k.access != LS_ACCESS_NONE)
    k.batch = is_fused ? 1 : p->n;
  return k;
}

/* The largest number, which a kernel of its own sets to zero first; of fp8 another makes the scale of it
 * (NVIDIA/TransformerEngine@d0067d0d, common/recipe/current_scaling.cu: zero_amax_kernel, amax_kernel,
 * compute_scale_from_amax_kernel), of fp4 the cast does. */
static void
append_amax (LsOperator *op, const LsCut *cut, const LsScaled *p, LsKernel largest, Append *append)
{
  append (op, of_experts (tiny (cut, "amax-zero"), cut, p));
  append (op, of_experts (largest, cut, p));
  if (cut->shard->dtype == LS_DTYPE_FP8)
    append (op, of_experts (tiny (cut, "fp8-scale"), cut, p));
}

/* --- torchao ------------------------------------------------------------------------------------------- */

static void
torchao_before_fwd (LsOperator *op, const LsCut *cut, const LsScaled *p)
{
  bool is_column = op->tp == LS_TP_COLUMN && !ls_scaled_keeps_input (cut->shard),
       has_amax = way_of (cut->shard).wants_amax;
  uint64_t rows = is_column ? cut->local_tokens : cut->tokens, n_rows = p->n * p->out;
  if (has_amax)
    ls_operator_fwd (op, of_experts (shared_amax (cut, rows, p->in, is_column), cut, p));
  ls_operator_fwd (op, of_experts (cast (cut, rows, p->in, 1), cut, p));
  if (has_amax && !cut->shard->fp8.weights)
    ls_operator_fwd (op, of_experts (shared_amax (cut, n_rows, p->in, false), cut, p));
  if (!cut->shard->fp8.weights)
    ls_operator_fwd (op, of_experts (cast (cut, n_rows, p->in, 1), cut, p));
}

/* Of mxfp8 the layout of a gradient for W is a kernel of its own. */
static void
torchao_before_igrad (LsOperator *op, const LsCut *cut, const LsScaled *p)
{
  Way way = way_of (cut->shard);
  bool is_from_fp8 = cut->shard->fp8.weights || !ls_scaled_keeps_input (cut->shard);
  if (way.wants_amax)
    ls_operator_igrad (op, of_experts (shared_amax (cut, cut->tokens, p->out, op->tp == LS_TP_ROW), cut, p));
  ls_operator_igrad (op, of_experts (cast (cut, cut->tokens, p->out, way.makes_both ? 1 : 2), cut, p));
  ls_operator_igrad (op, of_experts (cast_across (cut, p->n * p->out, p->in, is_from_fp8), cut, p));
}

static void
torchao_before_wgrad (LsOperator *op, const LsCut *cut, const LsScaled *p)
{
  bool is_from_fp8 = !ls_scaled_keeps_input (cut->shard);
  ls_operator_wgrad (op, of_experts (cast_across (cut, cut->tokens, p->in, is_from_fp8), cut, p));
  if (way_of (cut->shard).makes_both)
    ls_operator_wgrad (op, of_experts (cast_across (cut, cut->tokens, p->out, false), cut, p));
}

void
ls_scaled_drop_casts (const LsShard *s, LsOperator *op)
{
  uint8_t n = 0;
  bool has_product = false;
  for (uint32_t k = 0; k < op->n_fwd; k++)
    has_product |= op->fwd[k].kind == LS_KERNEL_GEMM;
  for (uint32_t k = 0; k < op->n_fwd; k++)
    if (!is_torchao (s) || !op->fwd[k].is_cast || (has_product && op->fwd[k].kind != LS_KERNEL_REDUCTION))
      op->fwd[n++] = op->fwd[k];
  op->n_fwd = n;
}

/* --- before products ---------------------------------------------------------------------------------- */

void
ls_scaled_before_fwd (LsOperator *op, const LsCut *cut, const LsScaled *p)
{
  if (p->is_sent && is_layout_by_layout (cut->shard))
    return;
  if (is_torchao (cut->shard)) {
    torchao_before_fwd (op, cut, p);
    return;
  }
  bool is_column = op->tp == LS_TP_COLUMN, is_cast_already = is_column && norm_casts (cut->shard);
  uint64_t rows = is_column ? cut->local_tokens : cut->tokens;
  Way way = way_of (cut->shard);
  bool is_one = is_layout_by_layout (cut->shard) || (is_column && !way.makes_both) || is_frozen (cut);
  if (way.wants_amax)
    append_amax (op, cut, p, shared_amax (cut, rows, p->in, is_column), ls_operator_fwd);
  if (!is_cast_already)
    ls_operator_fwd (op, of_experts (cast (cut, rows, p->in, is_one ? 1 : 2), cut, p));
}

void
ls_scaled_before_igrad (LsOperator *op, const LsCut *cut, const LsScaled *p)
{
  if (is_torchao (cut->shard)) {
    torchao_before_igrad (op, cut, p);
    return;
  }
  bool is_one = is_layout_by_layout (cut->shard) || is_frozen (cut);
  if (way_of (cut->shard).wants_amax)
    append_amax (op, cut, p, shared_amax (cut, cut->tokens, p->out, op->tp == LS_TP_ROW), ls_operator_igrad);
  ls_operator_igrad (op, of_experts (cast (cut, cut->tokens, p->out, is_one ? 1 : 2), cut, p));
  if (is_layout_by_layout (cut->shard) || (is_frozen (cut) && cut->shard->lora.is_fp8))
    ls_operator_igrad (op, stream (cut, "fp8-transpose", p->n * p->out, p->in, 2));
}

void
ls_scaled_before_wgrad (LsOperator *op, const LsCut *cut, const LsScaled *p)
{
  if (is_layout_by_layout (cut->shard)) {
    bool is_gathered = op->tp == LS_TP_COLUMN && cut->local_tokens < cut->tokens;
    ls_operator_wgrad (op, cast_across (cut, cut->tokens, p->in, p->is_sent || is_gathered));
    ls_operator_wgrad (op, cast_across (cut, cut->tokens, p->out, false));
    return;
  }
  if (is_torchao (cut->shard)) {
    torchao_before_wgrad (op, cut, p);
    return;
  }
  bool is_gathered = cut->local_tokens < cut->tokens;
  if (op->tp != LS_TP_COLUMN)
    return;
  if (!way_of (cut->shard).makes_both)
    ls_operator_wgrad (op, stream (cut, "fp8-transpose", cut->tokens, p->in, 2));
  else if (cut->shard->dtype == LS_DTYPE_NVFP4 && is_gathered)
    ls_operator_wgrad (
        op, stream (cut, "nvfp4-interleave", cut->tokens, p->in, 2 * ls_dtype_size (LS_DTYPE_NVFP4)));
}

/* --- attention ---------------------------------------------------------------------------------------- */

bool
ls_scaled_attention (const LsCut *cut)
{
  return cut->shard->fp8.attention != LS_FP8_ATTENTION_NONE && ls_dtype_is_scaled (cut->shard->dtype);
}

#define MXFP8_BYTES (1 + 1.0 / 32)

static bool
is_mxfp8 (const LsCut *cut)
{
  return cut->shard->fp8.attention == LS_FP8_ATTENTION_MXFP8;
}

static bool
is_delayed (const LsCut *cut)
{
  return cut->shard->fp8.attention == LS_FP8_ATTENTION_DELAYED;
}

/* Of a tensor, in the layouts that it is cast into. */
static double
cast_bytes (const LsCut *cut)
{
  return is_mxfp8 (cut) ? 2 * MXFP8_BYTES : 1;
}

double
ls_scaled_attention_kept (const LsCut *cut)
{
  return ls_scaled_attention (cut) ? cast_bytes (cut) : cut->elt;
}

LsScaledAttention
ls_scaled_attention_bytes (const LsCut *cut)
{
  return (LsScaledAttention) { .in = is_mxfp8 (cut) ? MXFP8_BYTES : 1,
                               .out = is_delayed (cut) ? 1 : cut->elt,
                               .by_blocks = is_mxfp8 (cut) };
}

static void
append_cast (LsOperator *op, const LsCut *cut, uint64_t width, Append *append)
{
  if (cut->shard->fp8.attention == LS_FP8_ATTENTION_CURRENT)
    append (op, ls_cut_stream (cut, "attention-amax", LS_KERNEL_REDUCTION, cut->tokens, width, cut->elt));
  LsKernel k = stream (cut, "attention-cast", cut->tokens, width, cut->elt + cast_bytes (cut));
  k.access = is_mxfp8 (cut) ? LS_ACCESS_MX_CAST_BOTH : LS_ACCESS_NONE;
  append (op, k);
}

void
ls_scaled_before_attention (LsOperator *op, const LsCut *cut, bool is_backward)
{
  uint64_t width = cut->q_width + cut->k_width + cut->v_width;
  if (is_backward) {
    append_cast (op, cut, cut->context_width, ls_operator_igrad);
    return;
  }
  if (!is_mxfp8 (cut))
    ls_operator_fwd (op, stream (cut, "attention-cat", cut->tokens, width, 2.0 * cut->elt));
  append_cast (op, cut, width, ls_operator_fwd);
}

/* The sum of gradients over the heads of a group. */
static void
append_group_sum (LsOperator *op, const LsCut *cut)
{
  uint64_t width = cut->model->head_dim + ls_model_v_dim (cut->model);
  double bytes = ls_attention_group_sum_bytes (cut->tokens, cut->heads, cut->kv_heads, width);
  if (bytes > 0)
    ls_operator_igrad (op,
                       ls_kernel_stream ("attention-group-sum", LS_KERNEL_REDUCTION, cut->act, cut->tokens,
                                         cut->heads * width, bytes, 0));
}

void
ls_scaled_after_attention (LsOperator *op, const LsCut *cut, bool is_backward)
{
  uint64_t width = cut->q_width + cut->k_width + cut->v_width;
  if (is_backward)
    append_group_sum (op, cut);
  if (!is_delayed (cut))
    return;
  if (!is_backward) {
    ls_operator_fwd (op, stream (cut, "attention-dequantize", cut->tokens, cut->context_width, 1 + cut->elt));
    return;
  }
  ls_operator_igrad (op, stream (cut, "attention-cat", cut->tokens, width, 2));
  ls_operator_igrad (op, stream (cut, "attention-dequantize", cut->tokens, width, 1 + cut->elt));
}
