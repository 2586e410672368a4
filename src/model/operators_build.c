#include "model/operators_build.h"

#include <stddef.h>
#include <string.h>

static uint64_t
divide (uint64_t n, uint64_t by)
{
  g_assert (by > 0 && n % by == 0);
  return n / by;
}

void
ls_cut_init (LsCut *cut, const LsModel *m, const LsShard *s)
{
  *cut = (LsCut) { .model = m, .shard = s };
  cut->tokens = divide (s->seq, MAX (s->cp, 1)) * s->micro_batch;
  cut->local_tokens = s->sp ? divide (cut->tokens, s->tp) : cut->tokens;
  cut->heads = divide (m->n_heads, s->tp);
  /* More ranks than KV heads: Megatron-LM gives each rank a copy of one. */
  cut->kv_heads = s->tp > m->n_kv_heads ? 1 : divide (m->n_kv_heads, s->tp);
  cut->q_width = cut->heads * m->head_dim;
  cut->k_width = cut->kv_heads * m->head_dim;
  cut->v_width = cut->kv_heads * ls_model_v_dim (m);
  cut->context_width = m->attn.difference
      ? 2 * (cut->heads - ls_difference_noise_heads (m, cut->heads)) * m->head_dim
      : cut->heads * ls_model_v_dim (m);
  cut->ffn = divide (m->ffn, s->tp);
  cut->vocab = ls_model_padded_vocab (m, s->vocab_multiple, s->tp) / s->tp;
  cut->act = ls_dtype_between (s->dtype);
  cut->elt = ls_dtype_bytes (cut->act);
}

LsKernel
ls_cut_stream (const LsCut *cut, const char *name, LsKernelKind kind, uint64_t rows, uint64_t cols,
               double bytes_per_element)
{
  double bytes = (double) rows * (double) cols * bytes_per_element;
  return ls_kernel_stream (name, kind, cut->act, rows, cols, bytes, 0);
}

LsKernel
ls_cut_pass (const LsCut *cut, const char *name, uint64_t width, uint32_t n)
{
  return ls_cut_stream (cut, name, LS_KERNEL_ELEMENTWISE, cut->tokens, width, n * cut->elt);
}

/* PyTorch's dropout draws from cuRAND's Philox4x32-10 (aten/src/ATen/native/cuda/Dropout.cu), four
 * numbers at a time: ten rounds of two 32 x 32 -> 64 bit products (two issue slots each), two
 * three-input xors and two additions to the key, and six for the counter: 86 integer operations
 * (Salmon et al., SC 2011). They issue at half of the fp32 FLOP rate on V100 and A100 (64 lanes each of int32
 * and fp32, a multiply-add being two FLOPs: CUDA C++ Programming Guide, arithmetic instructions);
 * on H100, with 128 lanes of fp32, at a quarter: there this is too fast. */
#define RANDOM_FLOPS (2 * 86.0 / 4)

LsKernel
ls_cut_random_stream (const LsCut *cut, const char *name, uint64_t rows, uint64_t cols,
                      double bytes_per_element)
{
  LsKernel kernel = ls_cut_stream (cut, name, LS_KERNEL_ELEMENTWISE, rows, cols, bytes_per_element);
  kernel.flops = RANDOM_FLOPS * (double) rows * (double) cols;
  return kernel;
}

G_STATIC_ASSERT (sizeof (LsOperator) <= 2048); /* lists of them are copied */

static void
operator_clear (gpointer operator_)
{
  g_free (((LsOperator *) operator_)->fwd);
}

GArray *
ls_operators_new (void)
{
  GArray *operators = g_array_sized_new (FALSE, TRUE, sizeof (LsOperator), LS_OPERATORS_USUAL);
  g_array_set_clear_func (operators, operator_clear);
  return operators;
}

/* Room for as many kernels of each pass as there may be. */
static void
make_room (LsOperator *op)
{
  op->fwd = g_new (LsKernel, 3 * LS_OPERATOR_MAX_KERNELS);
  op->igrad = op->fwd + LS_OPERATOR_MAX_KERNELS;
  op->wgrad = op->igrad + LS_OPERATOR_MAX_KERNELS;
}

LsOperator *
ls_operator_append (GArray *operators, const char *name, LsTpMode tp)
{
  g_array_set_size (operators, operators->len + 1);
  LsOperator *op = &g_array_index (operators, LsOperator, operators->len - 1);
  make_room (op);
  op->name = name;
  op->tp = tp;
  return op;
}

void
ls_operator_copy (LsOperator *dest, const LsOperator *source)
{
  if (!dest->fwd)
    make_room (dest);
  LsKernel *fwd = dest->fwd, *igrad = dest->igrad, *wgrad = dest->wgrad;
  *dest = *source;
  dest->fwd = fwd;
  dest->igrad = igrad;
  dest->wgrad = wgrad;
  memcpy (dest->fwd, source->fwd, source->n_fwd * sizeof (LsKernel));
  memcpy (dest->igrad, source->igrad, source->n_igrad * sizeof (LsKernel));
  memcpy (dest->wgrad, source->wgrad, source->n_wgrad * sizeof (LsKernel));
}

void
ls_operator_fwd (LsOperator *op, LsKernel kernel)
{
  g_assert (op->n_fwd < LS_OPERATOR_MAX_KERNELS);
  op->fwd[op->n_fwd++] = kernel;
}

void
ls_operator_igrad (LsOperator *op, LsKernel kernel)
{
  g_assert (op->n_igrad < LS_OPERATOR_MAX_KERNELS);
  op->igrad[op->n_igrad++] = kernel;
}

void
ls_operator_wgrad (LsOperator *op, LsKernel kernel)
{
  g_assert (op->n_wgrad < LS_OPERATOR_MAX_KERNELS);
  op->wgrad[op->n_wgrad++] = kernel;
}

void
ls_operator_streams (LsOperator *op, const LsCut *cut, LsKernelKind kind, uint64_t rows, uint64_t columns,
                     const char *fwd, double n_fwd, const char *igrad, double n_igrad)
{
  if (fwd)
    ls_operator_fwd (op, ls_cut_stream (cut, fwd, kind, rows, columns, n_fwd * cut->elt));
  if (igrad)
    ls_operator_igrad (op, ls_cut_stream (cut, igrad, kind, rows, columns, n_igrad * cut->elt));
}

void
ls_operator_passes (LsOperator *op, const LsCut *cut, uint64_t rows, uint64_t columns, const char *fwd,
                    double n_fwd, const char *igrad, double n_igrad)
{
  ls_operator_streams (op, cut, LS_KERNEL_ELEMENTWISE, rows, columns, fwd, n_fwd, igrad, n_igrad);
}

LsOperator *
ls_operators_passes (GArray *operators, const LsCut *cut, uint64_t rows, uint64_t columns, const char *fwd,
                     double n_fwd, const char *igrad, double n_igrad, uint64_t n_kept)
{
  LsOperator *op = ls_operator_append (operators, fwd, LS_TP_NONE);
  ls_operator_passes (op, cut, rows, columns, fwd, n_fwd, igrad, n_igrad);
  op->kept.saved_bytes = n_kept * rows * columns * cut->elt;
  return op;
}

static void
add_param (LsOperator *op, LsTensor shape, uint64_t n)
{
  g_assert (op->params.n < LS_OPERATOR_MAX_PARAMS);
  op->params.shape[op->params.n] = shape;
  op->params.alike[op->params.n] = n;
  op->params.numel[op->params.n++] = n * ls_tensor_numel (&shape);
}

void
ls_operator_param (LsOperator *op, uint64_t numel)
{
  add_param (op, (LsTensor) { .kind = LS_TENSOR_VECTOR, .rows = 1, .columns = numel }, 1);
}

void
ls_operator_weight (LsOperator *op, LsTensorCut cut, uint64_t rows, uint64_t columns, uint64_t n)
{
  add_param (op, (LsTensor) { .kind = LS_TENSOR_MATRIX, .cut = cut, .rows = rows, .columns = columns }, n);
}

void
ls_operator_table (LsOperator *op, LsTensorCut cut, uint64_t rows, uint64_t columns)
{
  add_param (op, (LsTensor) { .kind = LS_TENSOR_TABLE, .cut = cut, .rows = rows, .columns = columns }, 1);
}

/* Whether the weight is that of its products side by side, which are matrices by themselves. */
static bool
is_split (const LsOperator *op, const LsTensor *weight, bool gate_is_apart)
{
  uint64_t rows = 0;
  for (uint32_t i = 0; i < op->n_products; i++)
    rows += op->product_columns[i];
  return weight->kind == LS_TENSOR_MATRIX && rows == weight->rows && (op->n_products > 2 || gate_is_apart);
}

void
ls_operator_tensors (const LsOperator *op, bool gate_is_apart, GArray *tensors)
{
  for (uint32_t i = 0; i < op->params.n; i++) {
    LsTensor t = op->params.shape[i];
    bool has_parts = is_split (op, &t, gate_is_apart);
    t.is_expert = op->params.is_expert;
    for (uint64_t n = 0; n < op->params.alike[i]; n++)
      for (uint32_t p = 0; p < (has_parts ? op->n_products : 1); p++) {
        t.rows = has_parts ? op->product_columns[p] : t.rows;
        g_array_append_val (tensors, t);
      }
  }
}

void
ls_operator_product (LsOperator *op, uint64_t columns)
{
  g_assert (op->n_products < LS_OPERATOR_MAX_PRODUCTS);
  op->product_columns[op->n_products++] = columns;
}

void
ls_operators_leave_params (GArray *operators, guint from)
{
  for (guint i = from; i < operators->len; i++)
    g_array_index (operators, LsOperator, i).params.n = 0;
}

void
ls_operator_bias (LsOperator *op, const LsCut *cut, LsBias bias, uint64_t rows, uint64_t cols)
{
  add_param (op, (LsTensor) { .kind = LS_TENSOR_VECTOR, .rows = 1, .columns = cols }, MAX (1, bias.n));
  const LsRecipe *r = ls_recipe_find (cut->shard->recipes, bias.which, cut->model);
  if (!r || !r->bias_grad_is_listed)
    ls_operator_wgrad (op, ls_cut_stream (cut, bias.grad_name, LS_KERNEL_REDUCTION, rows, cols, cut->elt));
}

bool
ls_cut_fuses_gradients (const LsCut *cut)
{
  const LsShard *s = cut->shard;
  bool is_apart = s->grad.is_fresh || s->grad.is_own || s->grad.is_cast || s->grad.is_apart;
  return (s->grad_dtype == LS_DTYPE_FP32 || s->grad.is_fused) && !is_apart;
}

void
ls_operator_add_grad (LsOperator *op, const LsCut *cut, LsKernelRole role, const char *name, uint64_t rows,
                      uint64_t width)
{
  if (cut->shard->grad.is_fresh)
    return;
  /* Of an element: read, and added to what is there; by DeepSpeed after a cast into a temporary.
   * Autograd adds two of the weight's own format. */
  const LsShard *s = cut->shard;
  uint32_t grad = ls_dtype_bytes (s->grad_dtype),
           bytes = (s->grad.is_own ? grad : cut->elt) + (s->grad.is_cast ? 4 : 2) * grad;
  LsKernel add = ls_cut_stream (cut, name, LS_KERNEL_ELEMENTWISE, rows, width, bytes);
  add.role = role;
  ls_operator_wgrad (op, add);
}

/* The gradient of the weight. apex's fused kernel lets the GEMM add to an fp32 main
 * gradient, and since 2023 to a 16-bit one (wgrad_gemm_accum_fp16 beside _fp32); before, that
 * is added to by a kernel of its own (Megatron-LM's hook
 * main_grad.add_(grad), and autograd's accumulation likewise). DeepSpeed's bf16 optimizer
 * (runtime/bf16_optimizer.py, update_hp_grads) casts into a temporary, one kernel, and adds
 * that, another; here they are one, with the traffic of both. */
void
ls_operator_accumulate (LsOperator *op, const LsCut *cut, uint64_t in, uint64_t out)
{
  if (!ls_cut_fuses_gradients (cut))
    ls_operator_add_grad (op, cut, LS_ROLE_ADD_GRAD, "grad-accumulate", out, in);
}

void
ls_operator_linear (LsOperator *op, const LsCut *of_layer, const LsLinearNames *names, LsDtype all,
                    uint64_t in, uint64_t out)
{
  LsShard own;
  const LsCut of_module = ls_cut_in_format (of_layer, names->module, all, &own), *cut = &of_module;
  LsDtype dtype = own.dtype;
  uint64_t tokens = cut->tokens;
  bool is_column = op->tp == LS_TP_COLUMN;
  bool is_scaled = ls_dtype_is_scaled (dtype);
  const LsScaled product = { .in = in, .out = out, .n = 1 };

  if (is_scaled)
    ls_scaled_before_fwd (op, cut, &product);
  ls_operator_fwd (op, ls_kernel_gemm (names->fwd, dtype, tokens, out, in, 1, cut->elt, false));

  if (is_scaled)
    ls_scaled_before_igrad (op, cut, &product);
  ls_operator_igrad (op, ls_kernel_gemm (names->igrad, dtype, tokens, in, out, 1, cut->elt, false));

  if (is_scaled)
    ls_scaled_before_wgrad (op, cut, &product);
  bool is_fused = ls_cut_fuses_gradients (cut);
  uint32_t grad_bytes = is_fused ? ls_dtype_bytes (cut->shard->grad_dtype) : cut->elt;
  LsKernel gradient = ls_kernel_gemm (names->wgrad, dtype, out, in, tokens, 1, grad_bytes, is_fused);
  ls_operator_wgrad (op, ls_scaled_wgrad (cut->shard, gradient));
  ls_operator_accumulate (op, cut, in, out);

  /* With SP a COLUMN layer keeps its own part and gathers the input again, unless it is to keep all. */
  bool keeps_part = is_column && !cut->shard->sp_save_gathered;
  op->kept.saved_bytes = op->kept.input_bytes = ls_dtype_array_bytes (
      ls_scaled_kept (cut->shard, dtype), (keeps_part ? cut->local_tokens : tokens) * in);
}

void
ls_operator_each_head (LsOperator *op, const LsCut *cut, const LsLinearNames *names, uint64_t heads,
                       uint64_t in, uint64_t out)
{
  bool is_fused = ls_cut_fuses_gradients (cut);
  uint32_t grad_bytes = is_fused ? ls_dtype_bytes (cut->shard->grad_dtype) : cut->elt;
  ls_operator_fwd (op, ls_kernel_gemm (names->fwd, cut->act, cut->tokens, out, in, heads, cut->elt, false));
  ls_operator_igrad (op,
                     ls_kernel_gemm (names->igrad, cut->act, cut->tokens, in, out, heads, cut->elt, false));
  ls_operator_wgrad (
      op, ls_kernel_gemm (names->wgrad, cut->act, out, in, cut->tokens, heads, grad_bytes, is_fused));
  ls_operator_accumulate (op, cut, in, out * heads);
}

void
ls_operator_local_linear (LsOperator *op, const LsCut *cut, const LsLinearNames *names, LsDtype dtype,
                          uint64_t in, uint64_t out)
{
  LsCut local = *cut;
  local.tokens = cut->local_tokens;
  ls_operator_linear (op, &local, names, dtype, in, out);
  ls_operator_weight (op, LS_TENSOR_WHOLE, out, in, 1);
  op->params.is_replicated = true;
}

LsOperator *
ls_operators_linear (GArray *operators, const LsCut *cut, const LsLinearNames *names, LsTpMode tp,
                     uint64_t in, uint64_t out)
{
  LsOperator *op = ls_operator_append (operators, names->fwd, tp);
  ls_operator_linear (op, cut, names, cut->shard->dtype, in, out);
  ls_operator_weight (op, tp == LS_TP_ROW ? LS_TENSOR_COLUMNS : LS_TENSOR_ROWS, out, in, 1);
  return op;
}

LsOperator *
ls_operators_local (GArray *operators, const LsCut *cut, const LsLinearNames *names, LsDtype dtype,
                    uint64_t in, uint64_t out)
{
  LsOperator *op = ls_operator_append (operators, names->fwd, LS_TP_NONE);
  ls_operator_local_linear (op, cut, names, dtype, in, out);
  return op;
}

/* Y = X W^T has rows of `out`, X and W of `in`; so have dX = dY W and dW = dY^T X, in other places. A product
 * that writes rows that begin on no 16 bytes runs the same slow kernels as one that reads them: 50257 words
 * from 8192 x 768 on an H100, torch 2.11, in bf16: 6.63 ms of cutlass_75_tensorop_bf16_s1688gemm, 95 TFLOP/s;
 * the two of the backward 140 and 148. */
static void
mark_unaligned (LsKernel *kernels, uint32_t n, uint32_t elt, bool is_wgrad)
{
  for (LsKernel *k = kernels; k < kernels + n; k++)
    k->unaligned
        = k->kind == LS_KERNEL_GEMM && (elt * k->n % 16 != 0 || elt * (is_wgrad ? k->m : k->k) % 16 != 0);
}

void
ls_operator_mark_unaligned (LsOperator *op, const LsCut *cut)
{
  mark_unaligned (op->fwd, op->n_fwd, cut->elt, false);
  mark_unaligned (op->igrad, op->n_igrad, cut->elt, false);
  mark_unaligned (op->wgrad, op->n_wgrad, cut->elt, true);
}

void
ls_operators_mark_unaligned (GArray *operators, guint from, const LsCut *cut)
{
  for (guint i = from; i < operators->len; i++) {
    LsOperator *op = &g_array_index (operators, LsOperator, i);
    if (op->params.n > 0)
      ls_operator_mark_unaligned (op, cut);
  }
}

/* apex's layer norm does not keep up with memory. Measured on an A100 (NVIDIA/apex, pull request 1037,
 * January 2021: 16384 rows of 1024 in fp16): forward 75.1 us, backward 176.2 us; FastLayerNorm, which that
 * adds and Megatron-LM uses since 2022, takes 53.5 and 86.6. Less 2 us a launch, at 1370 GB/s (88 % of an
 * A100-40GB's) and with arithmetic and memory overlapping as for dropout (p = 1.65 in compute/cost.h), what
 * is left of
 *
 *     4.36^p = 2.92^p + a^p, 10.26^p = 7.30^p + b^p    in ps per element
 *
 * is a = 2.81 and b = 6.15 ps, or 55 and 120 FLOPs at 19.5 TFLOP/s; two fifths of the backward are for
 * gamma and beta, which is their share of its bytes. */
#define APEX_NORM_FWD_FLOPS 55.0
#define APEX_NORM_BWD_FLOPS 120.0

static LsKernel
norm_stream (const LsCut *cut, const char *name, uint32_t bytes_per_element, double apex_flops)
{
  uint64_t rows = cut->local_tokens, h = cut->model->hidden;
  LsKernel kernel = ls_cut_stream (cut, name, LS_KERNEL_NORM, rows, h, bytes_per_element);
  if (cut->shard->apex_norm)
    kernel.flops = apex_flops * (double) rows * (double) h;
  return kernel;
}

/* apex: one kernel for the gradients of gamma and beta, one for dx, each reading
 * x and dy. RMSNorm (Transformer Engine): both in one pass. */
static void
norm_backward (LsOperator *op, const LsCut *cut)
{
  uint64_t rows = cut->local_tokens, h = cut->model->hidden;

  if (ls_norm_is_layernorm (cut->model->norm)) {
    if (cut->shard->lora.rank == 0)
      ls_operator_igrad (
          op, norm_stream (cut, "layernorm-gamma-beta-grad", 2 * cut->elt, APEX_NORM_BWD_FLOPS * 2 / 5));
    ls_operator_igrad (op, norm_stream (cut, "layernorm-dgrad", 3 * cut->elt, APEX_NORM_BWD_FLOPS * 3 / 5));
  } else {
    ls_operator_igrad (op, ls_cut_stream (cut, "rmsnorm-bwd", LS_KERNEL_NORM, rows, h, 3 * cut->elt));
  }
}

void
ls_operators_norm (GArray *operators, const LsCut *cut, const LsNormPlace *place, uint32_t out_bytes)
{
  bool is_layernorm = ls_norm_is_layernorm (cut->model->norm);
  uint64_t rows = cut->local_tokens, h = cut->model->hidden;
  LsOperator *op = ls_operator_append (operators, place->name, LS_TP_NONE);

  ls_operator_fwd (op,
                   is_layernorm
                       ? norm_stream (cut, "layernorm-fwd", cut->elt + out_bytes, APEX_NORM_FWD_FLOPS)
                       : ls_cut_stream (cut, "rmsnorm-fwd", LS_KERNEL_NORM, rows, h, cut->elt + out_bytes));
  norm_backward (op, cut);
  if (cut->model->norm != LS_NORM_LAYERNORM_PLAIN)
    ls_operator_param (op, h);
  if (cut->model->norm == LS_NORM_LAYERNORM)
    ls_operator_param (op, h);
  op->params.is_replicated = op->kept.is_norm = true;
  op->kept.saved_bytes = rows * h * cut->elt;
  ls_operator_as_launched (op, cut, place->which, rows, cut->ffn);
  if (place->in_residual && !ls_operator_residual_sum (op, cut, place->sum))
    ls_operator_passes (op, cut, rows, h, NULL, 0, "residual-grad-add", 3);
}

uint64_t
ls_boundary_bytes (const LsModel *m, const LsShard *s)
{
  LsCut cut;
  ls_cut_init (&cut, m, s);
  return cut.local_tokens * m->hidden * cut.elt;
}

uint64_t
ls_residual_bytes (const LsModel *m, const LsShard *s)
{
  return ls_model_n_streams (m) * ls_boundary_bytes (m, s);
}

uint32_t
ls_residual_tensors (const LsModel *m, const LsShard *s, uint32_t layer, uint64_t ret_bytes[2])
{
  uint32_t n = 0;
  if (m->sides.encoder_layers > 0 && layer > m->sides.encoder_layers) {
    LsShard own = *s;
    own.seq = ls_model_decoder_seq (m, s->seq);
    ret_bytes[n++] = ls_boundary_bytes (m, &own);
  }
  ret_bytes[n++] = ls_residual_bytes (m, s);
  return n;
}

void
ls_operators_latent_norm (GArray *operators, const LsCut *cut, const char *name, uint64_t rows,
                          uint64_t width)
{
  LsOperator *op = ls_operator_append (operators, name, LS_TP_NONE);
  ls_operator_fwd (op, ls_cut_stream (cut, "latent-norm-fwd", LS_KERNEL_NORM, rows, width, 2 * cut->elt));
  ls_operator_igrad (op, ls_cut_stream (cut, "latent-norm-bwd", LS_KERNEL_NORM, rows, width, 3 * cut->elt));
  ls_operator_param (op, width);
  op->params.is_replicated = op->kept.is_norm = true;
  op->kept.saved_bytes = rows * width * cut->elt;
  ls_operator_norm_as_launched (op, cut, rows, width);
}

void
ls_operators_table (GArray *operators, const LsCut *cut, const LsTableNames *names, uint64_t rows,
                    uint64_t width, uint64_t n_columns)
{
  double others = 1 - 1.0 / cut->shard->tp;
  LsOperator *op = ls_operator_append (operators, names->table, LS_TP_ROW);
  ls_operator_fwd (
      op, ls_cut_stream (cut, names->lookup, LS_KERNEL_EMBEDDING, cut->tokens, n_columns, 2 * cut->elt));
  if (cut->shard->tp > 1)
    ls_operator_fwd (
        op,
        ls_cut_stream (cut, names->mask, LS_KERNEL_ELEMENTWISE, cut->tokens, n_columns, cut->elt * others));
  ls_operator_wgrad (op, ls_cut_stream (cut, names->zero, LS_KERNEL_MEMSET, rows, width, cut->elt));
  ls_operator_wgrad (
      op, ls_cut_stream (cut, names->grad, LS_KERNEL_EMBEDDING, cut->tokens, n_columns, 3 * cut->elt));
  ls_operator_add_grad (op, cut, LS_ROLE_ADD_GRAD, names->accumulate, rows, width);
  ls_operator_table (op, LS_TENSOR_ROWS, rows, width);
  op->comm.tp_bytes = cut->tokens * n_columns * cut->elt;
}
