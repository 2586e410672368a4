/* Attention to compressed keys on one rank (model/compressed.h):
 *
 *     x -- q-down -- q-norm -- q-up ------------------ rope --.
 *      |-- kv-down -- kv-norm --------------------------'      |-- attention -- rope back -- out-down -- proj
 *      |-- pool-down -- pool -- (its norm) --------------------|
 *      `-- index-key -- index-norm -- index-scores ------------'   (CSA)
 *
 * Queries and the way out are cut over tensor-parallel ranks by heads; what makes keys is on every rank, and
 * works on its s b / t tokens with sequence parallelism. What tensor parallelism gathers are latents.
 * Queries are normalised without weights in the kernel that rotates them; what is rotated of the output is
 * turned back.
 *
 * Kept: the norm's output, latents and keys with their normalised forms, q, and columns of which keys are
 * made. */
#include "model/compressed.h"

#include "model/operators_build.h"

#define FP32_BYTES 4

static const LsLinearNames kv_down_names = LS_LINEAR ("kv-down", LS_MODULE_QKV);
static const LsLinearNames pool_names = LS_LINEAR ("pool-down", 0);
static const LsLinearNames out_names = LS_LINEAR ("out-down", LS_MODULE_PROJ);
static const LsLinearNames proj_names = LS_LINEAR ("proj", LS_MODULE_PROJ);

/* Means of tokens by a softmax over their weights, in one kernel each way. */
static void
append_pool (GArray *operators, const LsCut *cut)
{
  const LsModel *m = cut->model;
  uint64_t columns = ls_compressed_columns (m, cut->kind), ratio = ls_compressed_ratio (m, cut->kind);
  double made = (double) m->head_dim / (double) ratio / (double) columns; /* for a column of a token */
  ls_operators_down_beside (operators, cut, &pool_names, columns);
  LsOperator *op = ls_operator_append (operators, "pool", LS_TP_NONE);
  ls_operator_fwd (op,
                   ls_cut_stream (cut, "pool-fwd", LS_KERNEL_REDUCTION, cut->local_tokens, columns,
                                  cut->elt * (1 + made)));
  ls_operator_passes (op, cut, cut->local_tokens, columns, NULL, 0, "pool-bwd", 2 + made);
  ls_operator_param (op, ratio * columns / 2);
  op->params.is_replicated = true;
  op->kept.saved_bytes = cut->local_tokens * columns * cut->elt;
  ls_operators_latent_norm (operators, cut, "pool-norm", cut->local_tokens / ratio, m->head_dim);
}

/* All of the queries go by, as they are normalised; of the keys, and of the output on its way back, what is
 * rotated. */
static void
append_rope (GArray *operators, const LsCut *cut)
{
  const LsModel *m = cut->model;
  uint64_t width = cut->q_width + m->latent.rope_dim;
  LsOperator *op = ls_operator_append (operators, "rope", LS_TP_NONE);
  op->role = LS_OPERATOR_ROPE;
  ls_operator_fwd (op,
                   ls_cut_stream (cut, "norm-rope-fwd", LS_KERNEL_NORM, cut->tokens, width, 2 * cut->elt));
  ls_operator_igrad (op,
                     ls_cut_stream (cut, "norm-rope-bwd", LS_KERNEL_NORM, cut->tokens, width, 3 * cut->elt));
  op->kept.saved_bytes = cut->tokens * (2 * cut->q_width + m->head_dim) * cut->elt;
  op->kept.is_latent_up = true;
}

static void
append_attention (GArray *operators, const LsCut *cut)
{
  uint64_t s = cut->shard->seq, turned = cut->heads * cut->model->latent.rope_dim;
  LsAttentionPart whole = { .queries = s, .keys = s, .heads = cut->heads, .kv_heads = 1, .pairs = 0.5 };
  LsOperator *op = ls_operator_append (operators, "attention", LS_TP_NONE);
  op->role = LS_OPERATOR_ATTENTION;
  ls_operator_fwd (op, ls_attention_kernel (cut, &whole, false));
  ls_operator_igrad (op, ls_attention_kernel (cut, &whole, true));
  ls_operator_param (op, cut->heads); /* sinks */
  op->kept.is_latent_attention = true;
  op->layer_kind = cut->kind;
  op->kept.saved_bytes = FP32_BYTES * cut->tokens * cut->heads; /* log-sum-exp */

  op = ls_operator_append (operators, "rope-back", LS_TP_NONE);
  LsKernel turn = ls_cut_stream (cut, "rope-back", LS_KERNEL_ELEMENTWISE, cut->tokens, turned, 2 * cut->elt);
  ls_operator_fwd (op, turn);
  turn.name = "rope-back-bwd";
  ls_operator_igrad (op, turn);
}

/* The product of each group is as many columns of one; its input are all heads. */
static void
append_out (GArray *operators, const LsCut *cut)
{
  const LsModel *m = cut->model;
  uint64_t groups = m->compressed.out_groups / cut->shard->tp, in = cut->q_width / groups,
           out = groups * m->compressed.out_lora;
  LsOperator *op = ls_operator_append (operators, "out-down", LS_TP_NONE);
  ls_operator_linear (op, cut, &out_names, cut->shard->dtype, in, out);
  ls_operator_weight (op, LS_TENSOR_ROWS, out, in, 1);
  op->kept.saved_bytes = op->kept.input_bytes = groups * op->kept.input_bytes;

  op = ls_operator_append (operators, "proj", LS_TP_ROW);
  ls_operator_linear (op, cut, &proj_names, cut->shard->dtype, out, m->hidden);
  ls_operator_weight (op, LS_TENSOR_COLUMNS, m->hidden, out, 1);
}

void
ls_operators_compressed_attention (GArray *operators, const LsCut *cut)
{
  const LsModel *m = cut->model;
  ls_operators_latent_query (operators, cut);
  ls_operators_down_beside (operators, cut, &kv_down_names, m->head_dim);
  ls_operators_latent_norm (operators, cut, "kv-norm", cut->local_tokens, m->head_dim);
  if (ls_compressed_ratio (m, cut->kind) > 0)
    append_pool (operators, cut);
  if (cut->kind & LS_LAYER_CSA)
    ls_operators_indexer (
        operators, cut,
        &(LsIndexer) { .columns = ls_compressed_index_columns (m, cut->kind) + m->index.heads,
                       .norm = m->index.dim,
                       .n_others = m->compressed.csa_ratio * ls_compressed_index_columns (m, cut->kind) / 2,
                       .ratio = m->compressed.csa_ratio,
                       .chosen = m->index.top,
                       .scores = 1 });
  append_rope (operators, cut);
  append_attention (operators, cut);
  append_out (operators, cut);
}
