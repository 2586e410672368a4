/* Adapters on one rank, and what is left of operators whose weights are frozen (model/lora.h). */
#include <string.h>

#include "model/operators_build.h"

static const LsLinearNames a_names = { "lora-a", "lora-a-dgrad", "lora-a-wgrad" };
static const LsLinearNames b_names = { "lora-b", "lora-b-dgrad", "lora-b-wgrad" };

/* The input of all modules is one, kept once; each adds its gradient to that of the frozen layer. */
static void
append_a (GArray *operators, const LsCut *cut, const LsAdapted *what)
{
  uint64_t rank = cut->shard->lora.rank;
  LsCut own = *cut;
  own.tokens = what->is_row ? cut->tokens : cut->local_tokens;
  LsOperator *op = ls_operator_append (operators, a_names.fwd, what->is_row ? LS_TP_ROW : LS_TP_NONE);
  for (uint32_t i = 0; i < what->n; i++) {
    ls_operator_linear (op, &own, &a_names, cut->act, what->in, rank);
    ls_operator_igrad (
        op, ls_cut_stream (cut, "lora-grad-add", LS_KERNEL_ELEMENTWISE, own.tokens, what->in, 3 * cut->elt));
    ls_operator_weight (op, what->is_row ? LS_TENSOR_COLUMNS : LS_TENSOR_WHOLE, rank, what->in, 1);
  }
  op->is_adapter = true;
  op->param_replicated = !what->is_row;
  if (what->is_row)
    op->tp_bytes = cut->tokens * rank * cut->elt;
}

static void
append_b (GArray *operators, const LsCut *cut, const LsAdapted *what)
{
  uint64_t rank = cut->shard->lora.rank;
  LsCut own = *cut;
  own.tokens = what->is_row ? cut->local_tokens : cut->tokens;
  LsOperator *op = ls_operator_append (operators, b_names.fwd, what->is_row ? LS_TP_NONE : LS_TP_COLUMN);
  uint64_t kept = 0;
  for (uint32_t i = 0; i < what->n; i++) {
    uint64_t out = what->out[i];
    ls_operator_igrad (
        op, ls_cut_stream (cut, "lora-scale-bwd", LS_KERNEL_ELEMENTWISE, own.tokens, out, 2 * cut->elt));
    ls_operator_linear (op, &own, &b_names, cut->act, rank, out);
    ls_operator_fwd (op,
                     ls_cut_stream (cut, "lora-scale", LS_KERNEL_ELEMENTWISE, own.tokens, out, 2 * cut->elt));
    ls_operator_fwd (op,
                     ls_cut_stream (cut, "lora-add", LS_KERNEL_ELEMENTWISE, own.tokens, out, 3 * cut->elt));
    ls_operator_weight (op, what->is_row ? LS_TENSOR_WHOLE : LS_TENSOR_ROWS, out, rank, 1);
    kept += op->input_bytes;
  }
  op->saved_bytes = op->input_bytes = kept;
  op->is_adapter = true;
  op->param_replicated = what->is_row;
  if (!what->is_row)
    op->tp_bytes = cut->tokens * rank * what->n * cut->elt;
}

void
ls_operators_adapter (GArray *operators, const LsCut *cut, const LsAdapted *what)
{
  if (what->n == 0)
    return;
  append_a (operators, cut, what);
  append_b (operators, cut, what);
}

/* Written in 16 bits before each use. */
static void
dequantise (LsOperator *op, const LsCut *cut)
{
  uint64_t numel = op->param_numel[0];
  LsKernel kernel = ls_kernel_stream ("nf4-dequant", LS_KERNEL_ELEMENTWISE, cut->act, 1, numel,
                                      (double) ls_nf4_bytes (numel) + cut->elt * (double) numel, 0);
  g_assert (op->n_fwd < LS_OPERATOR_MAX_KERNELS && op->n_igrad < LS_OPERATOR_MAX_KERNELS);
  memmove (&op->fwd[1], &op->fwd[0], op->n_fwd++ * sizeof *op->fwd);
  memmove (&op->igrad[1], &op->igrad[0], op->n_igrad++ * sizeof *op->igrad);
  op->fwd[0] = op->igrad[0] = kernel;
  op->is_nf4 = true;
}

void
ls_operators_freeze (GArray *operators, guint from, const LsCut *cut)
{
  for (guint i = from; cut->shard->lora.rank > 0 && i < operators->len; i++) {
    LsOperator *op = &g_array_index (operators, LsOperator, i);
    if (op->is_adapter)
      continue;
    op->is_frozen = op->n_params > 0;
    op->n_wgrad = 0;
    op->saved_bytes -= op->input_bytes;
    op->input_bytes = 0;
    if (cut->shard->lora.is_nf4 && op->n_products > 0)
      dequantise (op, cut);
  }
}
