/* Embeddings of several tokens in a row, on one rank (model/ngram.h). */
#include "model/ngram.h"
#include "model/operators_build.h"

static const LsTableNames table_names
    = { "ngram-words",           "ngram-lookup",     "ngram-lookup-mask",
        "ngram-words-grad-zero", "ngram-words-grad", "ngram-words-grad-accumulate" };
static const LsLinearNames proj_names = { "ngram-proj", "ngram-proj-dgrad", "ngram-proj-wgrad" };

void
ls_operators_ngram (GArray *operators, const LsCut *cut)
{
  const LsModel *m = cut->model;
  uint64_t h = m->hidden, rows = cut->local_tokens;
  if (m->ngram_tables == 0)
    return;
  ls_operators_table (operators, cut, &table_names, ls_ngram_rows (m) / cut->shard->tp, ls_ngram_width (m),
                      m->ngram_tables * ls_ngram_width (m));
  for (uint32_t i = 0; i < m->ngram_tables; i++) {
    LsOperator *op = ls_operator_append (operators, proj_names.fwd, LS_TP_NONE);
    ls_operator_local_linear (op, cut, &proj_names, cut->act, ls_ngram_width (m), h);
  }
  LsOperator *op = ls_operator_append (operators, "ngram-add", LS_TP_NONE);
  ls_operator_fwd (
      op, ls_cut_stream (cut, "ngram-add", LS_KERNEL_ELEMENTWISE, rows, h, (m->ngram_tables + 2) * cut->elt));
  ls_operator_igrad (op, ls_cut_stream (cut, "ngram-add-bwd", LS_KERNEL_ELEMENTWISE, rows, h, 2 * cut->elt));
}
