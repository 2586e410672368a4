/* Embeddings on one rank: vocabulary-parallel words, then, after the reduction,
 * learned positions and dropout on this rank's tokens.
 *
 * Words keep nothing but token ids (with the data, not counted); the dropout
 * keeps its mask, s b h (/ t with SP), as Korthikanti et al. 2022 section 4.3. */
#include "model/operators_build.h"

static uint32_t
grad_bytes (const LsCut *cut)
{
  return ls_dtype_bytes (cut->shard->grad_dtype);
}

/* A lookup has no input gradient. Its weight gradient is dense: zeroed, rows
 * added to it, then accumulated into the gradient buffer, for no GEMM is there to
 * fuse that with. */
static void
lookup (LsOperator *op, const LsCut *cut)
{
  uint64_t h = cut->model->hidden;
  ls_operator_fwd (
      op, ls_cut_stream (cut, "embedding-lookup", LS_KERNEL_EMBEDDING, cut->tokens, h, 2 * cut->elt));
  if (cut->shard->tp > 1) { /* zeros for the words of other ranks */
    double others = 1 - 1.0 / cut->shard->tp;
    ls_operator_fwd (
        op, ls_cut_stream (cut, "embedding-mask", LS_KERNEL_ELEMENTWISE, cut->tokens, h, cut->elt * others));
  }
  ls_operator_wgrad (op,
                     ls_cut_stream (cut, "embedding-grad-zero", LS_KERNEL_MEMSET, cut->vocab, h, cut->elt));
  ls_operator_wgrad (
      op, ls_cut_stream (cut, "embedding-grad", LS_KERNEL_EMBEDDING, cut->tokens, h, 3 * cut->elt));
}

/* A row of V that is 1 at its word, times the table; its transpose times the gradient. */
static void
multiply_one_hot (LsOperator *op, const LsCut *cut)
{
  uint64_t h = cut->model->hidden;
  ls_operator_fwd (
      op, ls_kernel_gemm ("one-hot-lookup", cut->act, cut->tokens, h, cut->vocab, 1, cut->elt, false));
  ls_operator_wgrad (
      op, ls_kernel_gemm ("one-hot-wgrad", cut->act, cut->vocab, h, cut->tokens, 1, cut->elt, false));
}

static void
append_words (GArray *operators, const LsCut *cut)
{
  uint64_t h = cut->model->hidden;
  bool has_positions = cut->model->position == LS_POSITION_LEARNED;
  const LsRecipe *r = ls_recipe_find (cut->shard->recipes, LS_RECIPE_EMBEDDING, cut->model);
  LsOperator *op = ls_operator_append (operators, "word-embedding", has_positions ? LS_TP_VOCAB : LS_TP_ROW);

  (r && r->is_one_hot ? multiply_one_hot : lookup) (op, cut);
  ls_operator_as_launched (op, cut, LS_RECIPE_EMBEDDING, cut->tokens, cut->ffn);
  if (!cut->shard->grad_is_fresh)
    ls_operator_wgrad (op,
                       ls_cut_stream (cut, "embedding-grad-accumulate", LS_KERNEL_ELEMENTWISE, cut->vocab, h,
                                      cut->elt + (cut->shard->grad_is_cast ? 4 : 2) * grad_bytes (cut)));
  ls_operator_table (op, LS_TENSOR_ROWS, cut->vocab, h);
}

/* Adds row i to token i of each sequence; with SP each rank then keeps its part
 * (Megatron-LM reduce-scatters the words only where there are no learned positions). */
static void
append_positions (GArray *operators, const LsCut *cut)
{
  uint64_t h = cut->model->hidden, rows = cut->tokens;
  double sequences = cut->shard->micro_batch;
  LsOperator *op = ls_operator_append (operators, "position-embedding", LS_TP_NONE);

  ls_operator_fwd (
      op,
      ls_cut_stream (cut, "position-add", LS_KERNEL_ELEMENTWISE, rows, h, cut->elt * (2 + 1 / sequences)));
  if (cut->local_tokens < cut->tokens)
    ls_operator_fwd (
        op,
        ls_cut_stream (cut, "sequence-scatter", LS_KERNEL_ELEMENTWISE, cut->local_tokens, h, 2 * cut->elt));
  ls_operator_wgrad (op,
                     ls_cut_stream (cut, "position-grad", LS_KERNEL_REDUCTION, rows, h,
                                    cut->elt + 2 * grad_bytes (cut) / sequences));
  ls_operator_table (op, LS_TENSOR_WHOLE, cut->model->seq, h);
  op->param_replicated = op->grad_is_whole = true;
}

static void
append_dropout (GArray *operators, const LsCut *cut)
{
  uint64_t h = cut->model->hidden, rows = cut->local_tokens;
  LsOperator *op = ls_operator_append (operators, "embedding-dropout", LS_TP_NONE);

  ls_operator_fwd (op, ls_cut_random_stream (cut, "embedding-dropout", rows, h, 2 * cut->elt + 1));
  ls_operator_igrad (
      op, ls_cut_stream (cut, "embedding-dropout-bwd", LS_KERNEL_ELEMENTWISE, rows, h, 2 * cut->elt + 1));
  op->saved_bytes = rows * h;
}

void
ls_operators_embedding (const LsModel *m, const LsShard *s, GArray *operators)
{
  LsCut cut;
  LsShard own = *s;
  if (m->encoder_layers > 0) /* the words of both sides */
    own.seq = s->seq + ls_model_decoder_seq (m, s->seq);
  ls_cut_init (&cut, m, &own);
  guint from = operators->len;

  append_words (operators, &cut);
  if (m->encoder_layers > 0)
    g_array_index (operators, LsOperator, operators->len - 1).tp_bytes = cut.tokens * m->hidden * cut.elt;
  if (m->position == LS_POSITION_LEARNED)
    append_positions (operators, &cut);
  if (m->dropout)
    append_dropout (operators, &cut);
  ls_operators_freeze (operators, from, &cut);
}
