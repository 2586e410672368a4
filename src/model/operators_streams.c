/* Residual streams on one rank (model/streams.h): what stands before and behind a half of a layer, and at
 * both ends of a model. They lie outside of the tensor-parallel regions, as the residual does: each rank has
 * its s b / t tokens of them with sequence parallelism. Their weights are on every rank.
 *
 * Kept: the streams before each half, and its output. */
#include "model/streams.h"

#include "model/operators_build.h"

static const LsLinearNames mix_names = { "streams-mix", "streams-mix-dgrad", "streams-mix-wgrad" };
static const LsLinearNames end_names = { "streams-end", "streams-end-dgrad", "streams-end-wgrad" };

static LsKernel
pass (const LsCut *cut, const char *name, LsKernelKind kind, uint32_t n_elements)
{
  return ls_cut_stream (cut, name, kind, cut->local_tokens, cut->model->hidden, n_elements * cut->elt);
}

/* Weights from all streams, then the mean; the product keeps the streams. Its gradient is added to that of
 * the mean, which is one kernel's. */
static void
append_mean (GArray *operators, const LsCut *cut, const char *name, const LsLinearNames *names,
             uint64_t columns, uint64_t n_others)
{
  uint64_t n = ls_model_n_streams (cut->model), in = n * cut->model->hidden;
  LsOperator *op = ls_operator_append (operators, name, LS_TP_NONE);
  ls_operator_local_linear (op, cut, names, cut->act, in, columns);
  ls_operator_fwd (op, pass (cut, "streams-mean", LS_KERNEL_REDUCTION, (uint32_t) n + 1));
  ls_operator_igrad (op, pass (cut, "streams-mean-bwd", LS_KERNEL_ELEMENTWISE, 3 * (uint32_t) n + 1));
  ls_operator_param (op, n_others);
}

void
ls_operators_streams_in (GArray *operators, const LsCut *cut, const char *name)
{
  const LsModel *m = cut->model;
  uint64_t columns = ls_streams_linear_params (m) / ((uint64_t) ls_model_n_streams (m) * m->hidden);
  append_mean (operators, cut, name, &mix_names, columns, ls_streams_other_params (m));
}

void
ls_operators_streams_out (GArray *operators, const LsCut *cut, const char *name)
{
  uint32_t n = ls_model_n_streams (cut->model);
  LsOperator *op = ls_operator_append (operators, name, LS_TP_NONE);
  ls_operator_fwd (op, pass (cut, "streams-add", LS_KERNEL_ELEMENTWISE, 2 * n + 1));
  ls_operator_igrad (op, pass (cut, "streams-add-bwd", LS_KERNEL_ELEMENTWISE, 3 * n + 2));
  op->saved_bytes = cut->local_tokens * cut->model->hidden * cut->elt;
}

void
ls_operators_streams_begin (GArray *operators, const LsCut *cut)
{
  uint32_t n = ls_model_n_streams (cut->model);
  if (n == 1)
    return;
  LsOperator *op = ls_operator_append (operators, "streams-begin", LS_TP_NONE);
  ls_operator_fwd (op, pass (cut, "streams-copy", LS_KERNEL_ELEMENTWISE, n + 1));
  ls_operator_igrad (op, pass (cut, "streams-grad-sum", LS_KERNEL_REDUCTION, n + 1));
}

void
ls_operators_streams_end (GArray *operators, const LsCut *cut)
{
  const LsModel *m = cut->model;
  uint64_t n = ls_model_n_streams (m);
  if (n > 1)
    append_mean (operators, cut, "streams-end", &end_names, n, ls_streams_end_other_params (m));
}
