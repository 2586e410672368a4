/* A real-gated linear recurrent unit on one rank (rglru of model/mixer.h), behind its convolution. */
#include "model/mixer.h"
#include "model/operators_build.h"

/* Of rglru: both gates of each head in one product, of the convolution's output, which is kept already. */
static void
append_head_gates (GArray *operators, const LsCut *cut)
{
  const LsModel *m = cut->model;
  uint64_t heads = m->mixer.heads / cut->shard->tp, width = m->mixer.head_dim, tokens = cut->tokens;
  bool is_fused = ls_cut_fuses_gradients (cut);
  uint32_t grad_bytes = is_fused ? ls_dtype_bytes (cut->shard->grad_dtype) : cut->elt;
  LsOperator *op = ls_operator_append (operators, "mixer-head-gates", LS_TP_NONE);
  ls_operator_fwd (op,
                   ls_kernel_gemm ("head-gates", cut->act, tokens, 2 * width, width, heads, cut->elt, false));
  ls_operator_igrad (
      op, ls_kernel_gemm ("head-gates-dgrad", cut->act, tokens, width, 2 * width, heads, cut->elt, false));
  ls_operator_wgrad (
      op,
      ls_kernel_gemm ("head-gates-wgrad", cut->act, 2 * width, width, tokens, heads, grad_bytes, is_fused));
  ls_operator_accumulate (op, cut, width, 2 * width * heads);
  ls_operator_weight (op, LS_TENSOR_WHOLE, width, width, 2 * heads);
  op->kept.saved_bytes = tokens * 2 * width * heads * cut->elt;
}

/* Reads x and both gates, writes h, which is kept; backwards h and its gradient too, and three gradients. */
static void
append_recurrence (GArray *operators, const LsCut *cut)
{
  uint64_t inner = ls_mixer_inner (cut->model) / cut->shard->tp;
  double elements = (double) cut->tokens * (double) inner, bytes = 4 * elements * cut->elt;
  LsOperator *op = ls_operator_append (operators, "mixer-scan", LS_TP_NONE);
  ls_operator_fwd (op,
                   ls_kernel_stream ("recurrence", LS_KERNEL_ELEMENTWISE, cut->act, cut->tokens, inner, bytes,
                                     10 * elements));
  ls_operator_igrad (op,
                     ls_kernel_stream ("recurrence-bwd", LS_KERNEL_ELEMENTWISE, cut->act, cut->tokens, inner,
                                       2 * bytes, 25 * elements));
  op->kept.saved_bytes = cut->tokens * inner * cut->elt;
}

void
ls_operators_recurrence (GArray *operators, const LsCut *cut)
{
  append_head_gates (operators, cut);
  append_recurrence (operators, cut);
}
