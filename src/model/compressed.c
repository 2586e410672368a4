/* model/compressed.c — attention to keys that are made of several tokens each (DeepSeek-V4).
 *
 * Problem. All a heads share one key of d numbers a token, which is its own value, and a query meets the last
 * `window` of them. In two kinds of layers it meets compressed keys besides, one of every r tokens:
 *
 *     S  compressed sparse attention (CSA), r = csa_ratio: of the compressed keys before it the `index_top`
 *        that an indexer with `index_heads` heads of `index_dim` scores best
 *     H  heavily compressed attention (HCA), r = hca_ratio: all of them
 *
 * Equations. A compressed key is a mean of tokens, weighted by a softmax over them: each token is projected
 * to a value and a weight of d numbers; of CSA, whose means overlap, to two of each. Queries come through a
 * latent of q_lora. On the way out each of g groups of heads, a d / g columns, is brought to out_lora, and
 * the g out_lora to h. Weights of a layer's products:
 *
 *     queries    h q_lora + q_lora a d          keys      h d
 *     output     a d out_lora + g out_lora h
 *     CSA        4 h d, and of the indexer 4 h index_dim + h index_heads + q_lora index_heads index_dim
 *     HCA        2 h d
 *
 * and what is learned beside them: norms of q_lora and d, a sink for each head; of CSA 2 r d + d and 2 r
 * index_dim + index_dim, of HCA r d + d. Of the s^2 pairs of a query and a token's key a layer has
 *
 *     window     w s - w^2 / 2
 *     CSA        that, and n s - r n^2 / 2 with n = min (index_top, s / r)
 *     HCA        that, and s^2 / (2 r)
 *
 * each of 4 a d FLOPs forward, and an indexer 2 index_heads index_dim for each of s^2 / (2 r).
 *
 * Worked example. DeepSeek-V4-Pro, 4,096 tokens: window 128 x 4096 - 128^2 / 2 = 516,096 pairs; CSA
 * 1024 x 4096 - 4 x 1024^2 / 2 = 2,097,152 more; HCA 65,536 more. A causal mask alone leaves 8,388,608.
 *
 * Deviations. Compressed keys are met as fast as those of a window, in one kernel with them; the means of CSA
 * over the first tokens, which have none before them, count as others; a product of each group of the output
 * is taken for as many columns of one.
 *
 * References: DeepSeek-AI 2026, DeepSeek-V4, section 2.3; Transformers, models/deepseek_v4.
 *
 * Attention to compressed keys on one rank:
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
  ls_operator_streams (op, cut, LS_KERNEL_REDUCTION, cut->local_tokens, columns, "pool-fwd", 1 + made, NULL,
                       0);
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
  ls_operator_streams (op, cut, LS_KERNEL_NORM, cut->tokens, width, "norm-rope-fwd", 2, "norm-rope-bwd", 3);
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

  ls_operators_passes (operators, cut, cut->tokens, turned, "rope-back", 2, "rope-back-bwd", 2, 0);
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
  ls_operators_linear (operators, cut, &proj_names, LS_TP_ROW, out, m->hidden);
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
