/* Embeddings of several tokens in a row, on one rank (model/ngram.h). */
#include "model/ngram.h"
#include "model/operators_build.h"

static const LsLinearNames proj_names = { "ngram-proj", "ngram-proj-dgrad", "ngram-proj-wgrad" };

static void
append_tables (GArray *operators, const LsCut *cut)
{
  const LsModel *m = cut->model;
  uint64_t width = ls_ngram_width (m), all = m->ngram_tables * width,
           rows = ls_ngram_rows (m) / cut->shard->tp;
  double others = 1 - 1.0 / cut->shard->tp;
  LsOperator *op = ls_operator_append (operators, "ngram-words", LS_TP_ROW);
  ls_operator_fwd (op,
                   ls_cut_stream (cut, "ngram-lookup", LS_KERNEL_EMBEDDING, cut->tokens, all, 2 * cut->elt));
  if (cut->shard->tp > 1)
    ls_operator_fwd (
        op,
        ls_cut_stream (cut, "ngram-lookup-mask", LS_KERNEL_ELEMENTWISE, cut->tokens, all, cut->elt * others));
  ls_operator_wgrad (op,
                     ls_cut_stream (cut, "ngram-words-grad-zero", LS_KERNEL_MEMSET, rows, width, cut->elt));
  ls_operator_wgrad (
      op, ls_cut_stream (cut, "ngram-words-grad", LS_KERNEL_EMBEDDING, cut->tokens, all, 3 * cut->elt));
  if (!cut->shard->grad_is_fresh)
    ls_operator_wgrad (op,
                       ls_cut_stream (cut, "ngram-words-grad-accumulate", LS_KERNEL_ELEMENTWISE, rows, width,
                                      ls_cut_accumulate_bytes (cut)));
  ls_operator_table (op, LS_TENSOR_ROWS, rows, width);
  op->tp_bytes = cut->tokens * all * cut->elt;
}

void
ls_operators_ngram (GArray *operators, const LsCut *cut)
{
  const LsModel *m = cut->model;
  uint64_t h = m->hidden, rows = cut->local_tokens;
  if (m->ngram_tables == 0)
    return;
  append_tables (operators, cut);
  for (uint32_t i = 0; i < m->ngram_tables; i++) {
    LsOperator *op = ls_operator_append (operators, proj_names.fwd, LS_TP_NONE);
    ls_operator_local_linear (op, cut, &proj_names, cut->act, ls_ngram_width (m), h);
  }
  LsOperator *op = ls_operator_append (operators, "ngram-add", LS_TP_NONE);
  ls_operator_fwd (
      op, ls_cut_stream (cut, "ngram-add", LS_KERNEL_ELEMENTWISE, rows, h, (m->ngram_tables + 2) * cut->elt));
  ls_operator_igrad (op, ls_cut_stream (cut, "ngram-add-bwd", LS_KERNEL_ELEMENTWISE, rows, h, 2 * cut->elt));
}
