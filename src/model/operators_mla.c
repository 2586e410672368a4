/* Multi-head latent attention on one rank (DeepSeek-AI 2024, DeepSeek-V2, section 2.1 and
 * appendix B), as Megatron-LM trains it (core/transformer/multi_latent_attention.py):
 *
 *     x -- q-down -- q-norm -- q-up ----------------.
 *      `-- kv-down -- kv-norm -- kv-up -- rope ------+-- attention -- proj
 *               `-- rotated key, one for all heads -'
 *
 * Without a query latent one column-parallel q replaces the three. The down-projections are
 * on every tensor-parallel rank, and work on its s b / t tokens with sequence parallelism;
 * the up-projections are column-parallel and gather the latents, which are narrow: q_lora,
 * and kv_lora with the rotated key (which Megatron-LM gathers in a call of its own).
 * Keys are n wide of which rope_dim are rotated, values v: the attention kernel has
 * 2 s^2 (n + v) FLOPs per head, as if both were (n + v) / 2 wide. Keys and values are put
 * together whole for every head, as in training nothing is gained by absorbing the
 * up-projections into others.
 *
 * An indexer (DeepSeek-AI 2025, DeepSeek-V3.2, section 2.1) scores all keys before a query with narrow heads,
 * and attention meets the best so many: its kernels have the FLOPs of a window of as many. Deviation:
 * gathered keys are taken to be met as fast as those of a window.
 *
 * Beside grouped-query attention (MiniMax-M3; MiniMaxM3VLIndexer of huggingface/transformers@0117d5f7,
 * src/transformers/models/minimax_m3_vl/modular_minimax_m3_vl.py) its heads are those of groups: each
 * chooses for itself, by the best score in a block of keys, so a score of each head and block is written.
 * Deviations: the choice is of whole blocks, that of the query among them, and meets as many keys as a
 * window; the indexer is taken to be trained by a loss of its own here too, which that code does not show.
 *
 * A gate (Kimi Team 2026, Kimi K3: mla_use_output_gate) is a product more, column-parallel, whose sigmoid the
 * context is multiplied by. Without rope keys are put together as with it.
 *
 * Where queries alone come from a latent (multi-matrix factorization attention, Step-3), one product makes it
 * together with the keys and values of all heads, on every rank for its tokens: qkv-down, whose three
 * gradients are put together first. A norm and a column-parallel product make queries; latents, keys and
 * values are gathered (Step3TextAttention of vllm-project/vllm@0169d396, model_executor/models/step3_text.py,
 * whose qkv_proj is whole on each rank and whose wq is cut). How StepFun trains it is not published.
 *
 * Worked example. Step-3 (h 7168, q_lora 2048, 64 heads of 256, one of keys and values): 7168 (2048 + 512) +
 * 2048 x 16384 + 16384 x 7168 = 169.3 M weights, where whole queries would have 238.6 M.
 *
 * Kept: the norm's output, the latents and their normalised forms, q, k and v. */
#include "model/operators_build.h"

#define FP32_BYTES  4
#define INDEX_BYTES 4 /* of a chosen key */

static const LsLinearNames q_down_names = LS_LINEAR ("q-down", LS_MODULE_QKV);
static const LsLinearNames q_up_names = LS_LINEAR ("q-up", LS_MODULE_QKV);
static const LsLinearNames qkv_down_names = LS_LINEAR ("qkv-down", LS_MODULE_QKV);
static const LsLinearNames kv_down_names = LS_LINEAR ("kv-down", LS_MODULE_QKV);
static const LsLinearNames kv_up_names = LS_LINEAR ("kv-up", LS_MODULE_QKV);
static const LsLinearNames index_key_names = LS_LINEAR ("index-key", 0);
static const LsLinearNames index_query_names = LS_LINEAR ("index-query", 0);
static const LsLinearNames gate_names = LS_LINEAR ("gate", 0);
static const LsLinearNames proj_names = LS_LINEAR ("proj", LS_MODULE_PROJ);

/* Latents (operators_mla.c): a product of this rank's tokens with a weight that every tensor-parallel rank
 * has; a norm of rows of so many numbers; a column-parallel product of what is gathered, of which `gathered`
 * columns by tensor parallelism; queries, through a latent of q_lora where there is one. */
static LsOperator *
ls_operators_down (GArray *operators, const LsCut *cut, const LsLinearNames *names, uint64_t width)
{
  LsOperator *op = ls_operators_local (operators, cut, names, cut->shard->dtype, cut->model->hidden, width);
  ls_operator_product (op, width);
  return op;
}

LsOperator *
ls_operators_down_beside (GArray *operators, const LsCut *cut, const LsLinearNames *names, uint64_t width)
{
  LsOperator *op = ls_operators_down (operators, cut, names, width);
  ls_operator_passes (op, cut, cut->local_tokens, cut->model->hidden, NULL, 0, "latent-grad-add", 3);
  op->kept.saved_bytes = op->kept.input_bytes = 0;
  return op;
}

static void
ls_operators_up (GArray *operators, const LsCut *cut, const LsLinearNames *names, uint64_t in,
                 uint64_t gathered, uint64_t out)
{
  LsOperator *op = ls_operators_linear (operators, cut, names, LS_TP_COLUMN, in, out);
  ls_operator_product (op, out);
  op->comm.tp_bytes = cut->tokens * gathered * cut->elt;
  op->kept.is_latent_up = true;
}

/* The latent of queries before its norm and behind it, side by side, makes them and a gate; backward the
 * gradient of the first meets what comes through the norm. */
static void
append_both_latents (GArray *operators, const LsCut *cut)
{
  const LsModel *m = cut->model;
  uint64_t both = 2 * (uint64_t) m->latent.q_lora, values = cut->heads * m->v_dim;
  LsOperator *op = ls_operator_append (operators, "q-latents", LS_TP_NONE);
  ls_operator_passes (op, cut, cut->local_tokens, both, "q-latents-join", 2, NULL, 0);
  ls_operator_passes (op, cut, cut->local_tokens, m->latent.q_lora, NULL, 0, "q-latents-grad-add", 3);
  ls_operators_up (operators, cut, &q_up_names, both, both, cut->q_width + values);
}

static void
append_up_adapter (GArray *operators, const LsCut *cut, LsLoraModule module, uint64_t in, uint64_t out)
{
  ls_operators_adapter_of (operators, cut, module,
                           (LsAdapted) { .cuts_out = true, .in = in, .out = { out } });
}

void
ls_operators_latent_query (GArray *operators, const LsCut *cut)
{
  const LsModel *m = cut->model;
  if (m->latent.q_lora == 0) {
    ls_operators_up (operators, cut, &q_up_names, m->hidden, m->hidden, cut->q_width);
    append_up_adapter (operators, cut, LS_LORA_Q, m->hidden, cut->q_width);
    return;
  }
  ls_operators_down (operators, cut, &q_down_names, m->latent.q_lora);
  ls_operators_adapter_of (operators, cut, LS_LORA_Q,
                           (LsAdapted) { .in = m->hidden, .out = { m->latent.q_lora } });
  ls_operators_latent_norm (operators, cut, "q-norm", cut->local_tokens, m->latent.q_lora);
  if (m->latent.gate)
    append_both_latents (operators, cut);
  else {
    ls_operators_up (operators, cut, &q_up_names, m->latent.q_lora, m->latent.q_lora, cut->q_width);
    append_up_adapter (operators, cut, LS_LORA_Q, m->latent.q_lora, cut->q_width);
  }
}

void
ls_operators_latent_qkv (GArray *operators, const LsCut *cut)
{
  const LsModel *m = cut->model;
  uint64_t keys = (uint64_t) m->n_kv_heads * m->head_dim,
           values = (uint64_t) m->n_kv_heads * ls_model_v_dim (m), width = m->latent.q_lora + keys + values;
  LsOperator *op = ls_operator_append (operators, qkv_down_names.fwd, LS_TP_NONE);
  ls_operator_passes (op, cut, cut->local_tokens, width, NULL, 0, "qkv-grad-concat", 2);
  ls_operator_local_linear (op, cut, &qkv_down_names, cut->shard->dtype, m->hidden, width);
  ls_operator_product (op, m->latent.q_lora);
  ls_operator_product (op, keys);
  ls_operator_product (op, values);
  ls_operators_latent_norm (operators, cut, "q-norm", cut->local_tokens, m->latent.q_lora);
  ls_operators_up (operators, cut, &q_up_names, m->latent.q_lora, width, cut->q_width);
  op = &g_array_index (operators, LsOperator, operators->len - 1);
  op->kept.saved_bytes += cut->tokens * (cut->q_width + cut->k_width + cut->v_width) * cut->elt; /* Q, K, V */
}

/* The layer norm's output is kept by what computes the queries. */
static void
append_key_value (GArray *operators, const LsCut *cut)
{
  const LsModel *m = cut->model;
  uint64_t latent = m->latent.kv_lora + m->latent.rope_dim,
           width = cut->heads * (m->head_dim - m->latent.rope_dim + m->v_dim);
  ls_operators_down_beside (operators, cut, &kv_down_names, latent);
  ls_operators_adapter_of (operators, cut, LS_LORA_K,
                           (LsAdapted) { .in = m->hidden,
                                         .out = { latent },
                                         .is_input_kept = cut->shard->lora.modules & LS_LORA_Q });
  ls_operators_latent_norm (operators, cut, "kv-norm", cut->local_tokens, m->latent.kv_lora);
  ls_operators_up (operators, cut, &kv_up_names, m->latent.kv_lora, latent, width);
  append_up_adapter (operators, cut, LS_LORA_K, m->latent.kv_lora, width);
}

/* Rotates the queries in place; writes keys, with the rotated part in each head, and values. */
static void
append_rope (GArray *operators, const LsCut *cut)
{
  const LsModel *m = cut->model;
  uint64_t nope = m->head_dim - m->latent.rope_dim;
  uint64_t queries = 2 * cut->heads * m->latent.rope_dim;
  uint64_t read = cut->heads * (nope + m->v_dim) + m->latent.rope_dim,
           written = cut->heads * (m->head_dim + m->v_dim);
  LsOperator *op = ls_operator_append (operators, "rope", LS_TP_NONE);
  op->role = LS_OPERATOR_ROPE;
  ls_operator_passes (op, cut, cut->tokens, queries + read + written, "mla-rope-fwd", 1, "mla-rope-bwd", 1);
  op->kept.saved_bytes = cut->tokens * cut->heads * (2 * m->head_dim + m->v_dim) * cut->elt; /* q, k, v */
  ls_operator_as_launched (op, cut, LS_RECIPE_LATENT_ROPE, cut->tokens, cut->ffn);
  op->kept.is_latent_up = true;
}

/* From the latent of queries; of plain attention from the layer norm's output, which is kept already, each
 * head with a norm. */
static void
append_index_query (GArray *operators, const LsCut *cut, uint64_t width)
{
  const LsModel *m = cut->model;
  bool is_plain = m->latent.q_lora == 0;
  LsOperator *op = ls_operators_local (operators, cut, &index_query_names, cut->shard->dtype,
                                       is_plain ? m->hidden : m->latent.q_lora, width);
  if (!is_plain)
    return;
  op->kept.saved_bytes = op->kept.input_bytes = 0;
  ls_operators_latent_norm (operators, cut, "index-query-norm", cut->local_tokens * m->index.heads,
                            m->index.dim);
}

/* Every rank scores its own tokens against all before them: Q K^T of each head, weighted and summed in the
 * same kernel, so one score of 4 bytes a pair is written, and read to choose from. Trained by a loss of its
 * own, whose gradients end at its products. */
void
ls_operators_indexer (GArray *operators, const LsCut *cut, const LsIndexer *what)
{
  const LsModel *m = cut->model;
  uint64_t sequences = cut->shard->micro_batch, queries = cut->local_tokens / sequences,
           keys = cut->shard->seq / what->ratio;
  uint64_t width = (uint64_t) m->index.heads * m->index.dim, scores = cut->local_tokens * keys / 2;
  LsOperator *op = ls_operators_down (operators, cut, &index_key_names, what->columns);
  op->kept.saved_bytes = op->kept.input_bytes = 0;
  if (what->n_others > 0)
    ls_operator_param (op, what->n_others);
  ls_operators_latent_norm (operators, cut, "index-norm", cut->local_tokens / what->ratio, what->norm);
  append_index_query (operators, cut, width);
  op = ls_operator_append (operators, "index-scores", LS_TP_NONE);
  LsKernel kernel = ls_kernel_gemm ("index-scores", cut->act, queries, keys / 2, m->index.dim,
                                    m->index.heads * sequences, cut->elt, false);
  kernel.flops = (double) scores * 2 * (double) width;
  kernel.bytes = (double) cut->elt
          * ((double) cut->local_tokens * (double) width
             + (double) (cut->local_tokens / what->ratio) * (double) m->index.dim)
      + FP32_BYTES * what->scores * (double) scores;
  ls_operator_fwd (op, kernel);
  ls_operator_fwd (op,
                   ls_kernel_stream ("index-choice", LS_KERNEL_REDUCTION, LS_DTYPE_FP32, cut->local_tokens,
                                     keys / 2, FP32_BYTES * what->scores * (double) scores, 0));
  kernel.name = "index-scores-bwd";
  kernel.flops *= 2;
  kernel.bytes *= 2;
  ls_operator_igrad (op, kernel);
  op->kept.saved_bytes = cut->local_tokens * what->chosen * INDEX_BYTES;
}

static void
append_attention (GArray *operators, const LsCut *cut)
{
  uint64_t s = cut->shard->seq;
  LsAttentionPart whole
      = { .queries = s, .keys = s, .heads = cut->heads, .kv_heads = cut->heads, .pairs = 0.5 };
  LsOperator *op = ls_operator_append (operators, "attention", LS_TP_NONE);
  op->role = LS_OPERATOR_ATTENTION;
  op->kept.is_latent_attention = true;
  op->layer_kind = cut->kind;
  op->kept.is_core = cut->shard->flash_is_core;
  if (cut->shard->cp > 1) {
    ls_operator_context_parallel (op, cut);
    return;
  }
  ls_operator_fwd (op, ls_attention_kernel (cut, &whole, false));
  ls_operator_igrad (op, ls_attention_kernel (cut, &whole, true));
  op->kept.saved_bytes = 4 * cut->tokens * cut->heads; /* log-sum-exp, fp32 */
}

/* The norm's output is kept already, and the gradients of it meet. */
static void
append_gate (GArray *operators, const LsCut *cut, uint64_t values)
{
  uint64_t h = cut->model->hidden;
  LsOperator *op = ls_operators_linear (operators, cut, &gate_names, LS_TP_COLUMN, h, values);
  ls_operator_passes (op, cut, cut->local_tokens, h, NULL, 0, "latent-grad-add", 3);
  ls_operator_product (op, values);
  op->kept.input_bytes = op->kept.saved_bytes = 0;
  ls_operator_gate (operators, cut, values);
}

void
ls_operators_latent_attention (GArray *operators, const LsCut *cut)
{
  const LsModel *m = cut->model;
  uint64_t values = cut->heads * m->v_dim;

  ls_operators_latent_query (operators, cut);
  append_key_value (operators, cut);
  append_rope (operators, cut);
  if (m->index.heads > 0)
    ls_operators_indexer (operators, cut,
                          &(LsIndexer) { .columns = m->index.dim + m->index.heads,
                                         .norm = 2 * (uint64_t) m->index.dim,
                                         .ratio = 1,
                                         .chosen = m->attn.window,
                                         .scores = 1 });
  append_attention (operators, cut);
  if (m->attn.gate)
    append_gate (operators, cut, values);
  if (m->latent.gate)
    ls_operator_gate (operators, cut, values);
  ls_operator_product (ls_operators_linear (operators, cut, &proj_names, LS_TP_ROW, values, m->hidden),
                       m->hidden);
  ls_operators_adapter_of (operators, cut, LS_LORA_O,
                           (LsAdapted) { .cuts_in = true, .in = values, .out = { m->hidden } });
}
