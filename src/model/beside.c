/* model/beside.c — what stands next to the halves of a layer: an input of its own for each layer, products of
 * low rank next to attention, keys and values of a layer before it, an MLP whose gate keeps few values.
 *
 * Inputs of layers. A table of `layer_vocab` rows has p numbers for each of the L layers. With e the
 * embedding of a token, t its row, each layer gets
 *
 *     u = (norm (M e) + t) / sqrt 2            M: h x L p, the norm over p
 *
 * and behind its MLP adds norm (W (act (G x) u)) to what it made, G of h x p and W of p x h. Of alternating
 * streams (model/streams.c) x is the computed one times a vector, and what is added goes to all others.
 * Elements for a token of a layer: act and product read 2 p, written p, backward 5 p; the sum 3 h, or
 * 2 n - 1 of h with n streams. The table is looked up as words are: its gradient is as large as it is.
 *
 * LAuReL: beside attention x, the normed input, goes through two products of rank r: y = x + norm (B A x),
 * with r of 2 h weights; then the sum of attention and residual is (sum + y) / sqrt 2.
 *
 * Norm gates (A.X-K2): what a norm before attention, or before experts, gives is y = n sigmoid (B silu (A
 * n)), A of h x r and B of r x h. Elements for a token: of r read 1, written 1, backward 3; of h 3,
 * backward 5. Kept: n, B's output, twice r. Queries there come of their latent, before and behind its norm
 * side by side: a product of 2 q_lora columns makes them and a gate of attention's output, a (d + v)
 * columns (latent_gate).
 *
 * Shared keys and values: a layer has queries only and meets what a layer before it made, which gets their
 * gradients in a sum. It keeps no keys and values of its own. A mixer among such layers gates what one before
 * it made (model/difference.c).
 *
 * Sparse MLP: of each token the gate's mean and standard deviation give a threshold; what is below becomes 0,
 * of the rest it is taken. Products are computed whole. Of f numbers: read 1 for each of both and for the
 * threshold, written 1; backward 4. Kept beside what the activation keeps: the gate as it was.
 *
 * Worked example. Gemma 3n E4B (h 2048, L 35, p 256, r 64, 262144 rows): the table has 2.349 G of 6.84 G
 * weights, M 18.4 M; of a layer G and W 1.05 M, A and B 0.26 M, beside 111 M of attention and MLP. The table
 * costs with Adam in fp32 beside bf16 18 bytes a weight, 42 GB, as other weights do.
 *
 * Deviations. The mean and deviation of a gate that is cut over tp are 2 numbers a token, not sent. Layers
 * that run again keep what others took of their keys and values: not counted, as it is two layers' of all.
 *
 * References: huggingface/transformers@004edfe2 src/transformers/models/gemma3n/modular_gemma3n.py;
 * huggingface/transformers@033b1a82 src/transformers/models/gemma4/modular_gemma4.py;
 * huggingface/transformers@0572057b src/transformers/models/axk2/modular_axk2.py; Menghani et al. 2024,
 * LAuReL: Learned Augmented Residual Layer, arXiv 2411.07501.
 *
 * What stands next to the halves of a layer, on one rank. All but the table lies outside of
 * the tensor-parallel regions: weights are on every rank, which has its s b / t tokens with sequence
 * parallelism. The table is cut as that of words is; what is looked up is summed over tp. */

#include "model/operators_build.h"

bool
ls_model_has_beside (const LsModel *m)
{
  return m->halves.layer_input + m->halves.laurel_rank + m->halves.kv_shared_layers + m->halves.sparse_layers
      > 0
      || ls_streams_alternate (m);
}

static const LsLinearNames down_names = LS_LINEAR ("laurel-down", 0);
static const LsLinearNames up_names = LS_LINEAR ("laurel-up", 0);
static const LsLinearNames gate_down_names = LS_LINEAR ("norm-gate-down", 0);
static const LsLinearNames gate_up_names = LS_LINEAR ("norm-gate-up", 0);
static const LsLinearNames gate_names = LS_LINEAR ("layer-input-gate", 0);
static const LsLinearNames proj_names = LS_LINEAR ("layer-input-proj", 0);
static const LsLinearNames all_names = LS_LINEAR ("layer-inputs-proj", 0);

static LsKernel
pass (const LsCut *cut, const char *name, uint64_t width, uint32_t n)
{
  return ls_cut_stream (cut, name, LS_KERNEL_ELEMENTWISE, cut->local_tokens, width, n * cut->elt);
}

/* What attention reads is kept there. */
void
ls_operators_laurel (GArray *operators, const LsCut *cut)
{
  static const LsNormPlace place = { "laurel-norm", LS_RECIPE_INPUT_NORM, LS_RECIPE_ATTENTION_ADD, false };
  uint64_t h = cut->model->hidden, r = cut->model->halves.laurel_rank;
  if (r == 0)
    return;
  LsOperator *op = ls_operators_local (operators, cut, &down_names, cut->act, h, r);
  ls_operator_igrad (op, pass (cut, "laurel-grad-add", h, 4)); /* of attention, of this, of the sum */
  op->kept.saved_bytes = op->kept.input_bytes = 0;
  ls_operators_local (operators, cut, &up_names, cut->act, r, h);
  ls_operators_norm (operators, cut, &place, cut->elt);
  op = ls_operator_append (operators, "laurel-add", LS_TP_NONE);
  op->role = LS_OPERATOR_RESIDUAL;
  ls_operator_fwd (op, pass (cut, "laurel-sum", h, 3));
  ls_operator_passes (op, cut, cut->local_tokens, h, "laurel-add", 3, "laurel-add-bwd", 2);
}

void
ls_operators_norm_gate (GArray *operators, const LsCut *cut)
{
  uint64_t h = cut->model->hidden, r = cut->model->halves.norm_gate_rank;
  if (r == 0)
    return;
  ls_operators_local (operators, cut, &gate_down_names, cut->act, h, r);
  ls_operators_passes (operators, cut, cut->local_tokens, r, "norm-gate-act", 2, "norm-gate-act-bwd", 3, 1);
  ls_operators_local (operators, cut, &gate_up_names, cut->act, r, h);
  LsOperator *op /* keeps the gate's; the norm's output is the way in's */
      = ls_operators_passes (operators, cut, cut->local_tokens, h, "norm-gate", 3, "norm-gate-bwd", 5, 1);
  ls_operator_igrad (op, pass (cut, "norm-gate-grad-add", h, 3)); /* of the norm's output, read twice */
}

/* dK and dV go to the layer that made both. */
void
ls_operators_shared_keys (GArray *operators, const LsCut *cut)
{
  if (!(cut->kind & LS_LAYER_KV_SHARED))
    return;
  uint64_t width = cut->k_width + (cut->model->attn.full_k_is_v ? 0 : cut->v_width);
  LsOperator *op = ls_operator_append (operators, "shared-keys", LS_TP_NONE);
  ls_operator_passes (op, cut, cut->tokens, width, NULL, 0, "shared-keys-grad-add", 3);
}

void
ls_operators_sparse_gate (GArray *operators, const LsCut *cut)
{
  if (!(cut->kind & LS_LAYER_SPARSE))
    return;
  uint64_t rows = cut->tokens, f = cut->ffn;
  LsOperator *op = ls_operator_append (operators, "sparse-gate", LS_TP_NONE);
  ls_operator_streams (op, cut, LS_KERNEL_REDUCTION, rows, f, "gate-mean", 1, NULL, 0);
  ls_operator_streams (op, cut, LS_KERNEL_REDUCTION, rows, f, "gate-deviation", 1, NULL, 0);
  ls_operator_passes (op, cut, rows, f, "gate-cutoff", 2, "gate-cutoff-bwd", 4);
  op->kept.saved_bytes = rows * f * cut->elt;
}

/* The vector that scales what the gate reads is among the streams' weights. */
void
ls_operators_layer_input (GArray *operators, const LsCut *cut)
{
  static const LsNormPlace place = { "layer-input-norm", LS_RECIPE_MLP_NORM, LS_RECIPE_MLP_ADD, false };
  uint64_t h = cut->model->hidden, p = cut->model->halves.layer_input;
  uint32_t n = ls_model_n_streams (cut->model);
  if (p == 0)
    return;
  ls_operators_local (operators, cut, &gate_names, cut->act, h, p);
  ls_operators_passes (operators, cut, cut->local_tokens, p, "layer-input-act", 3, "layer-input-act-bwd", 5,
                       1); /* what the gate made; the input is kept with all */
  ls_operators_local (operators, cut, &proj_names, cut->act, p, h);
  ls_operators_norm (operators, cut, &place, cut->elt);
  ls_operators_passes (operators, cut, cut->local_tokens, h, "layer-input-add", n > 1 ? 2 * n - 1 : 3,
                       "layer-input-grad-add", n > 1 ? n : 3, 0)
      ->role
      = LS_OPERATOR_RESIDUAL;
}

void
ls_operators_layer_inputs (GArray *operators, const LsCut *cut)
{
  static const LsTableNames names
      = { "layer-words",           "layer-lookup",     "layer-lookup-mask",
          "layer-words-grad-zero", "layer-words-grad", "layer-words-grad-accumulate" };
  const LsModel *m = cut->model;
  uint64_t p = m->halves.layer_input, width = m->n_layers * p;
  if (p == 0)
    return;
  ls_operators_table (operators, cut, &names, m->halves.layer_vocab / cut->shard->tp, width, width);
  ls_operators_local (operators, cut, &all_names, cut->act, m->hidden, width);
  ls_operators_latent_norm (operators, cut, "layer-inputs-norm", cut->local_tokens * m->n_layers, p);
  ls_operators_passes (operators, cut, cut->local_tokens, width, "layer-inputs-add", 3, "layer-inputs-grad",
                       2, 1) /* kept for all layers */
      ->role
      = LS_OPERATOR_RESIDUAL;
}

/* --- embeddings of several tokens in a row ------------------------------------------------------------ */

/* Embeddings of several tokens in a row next to that of each token.
 *
 * Problem. Beside the table of words there are n tables of w = h / n columns. A hash of a token and of one,
 * two or more before it gives a row of each; the first has r rows, each next one two more, so that hashes
 * differ. A product of each, w x h, is added to the word:
 *
 *     x = (e + sum_i P_i t_i) / (n + 1)
 *
 * A token multiplies n w h numbers and meets n rows. Numbers of h that are read and written for a token: the
 * lookups 2, the sums n + 2 in one kernel, backward 2; the gradient of a table is as large as it is. What was
 * looked up is kept for the gradients of the products: h.
 *
 * Tables are cut over tp as that of words is, and what is looked up is summed over tp; products are on each
 * rank, for its tokens with sequence parallelism.
 *
 * Worked example. LongCat-Flash-Lite (h 3072, 131,072 words, 78 times as many rows): 12 tables of 10.2 M rows
 * of 256 are 31.4 G of its 68.5 G weights, products 9.4 M.
 *
 * Deviations. Hashes take no time. All tables are looked up in one kernel, and cut by rows as one.
 *
 * References: ml-explore/mlx-lm@06232baa mlx_lm/models/longcat_flash_ngram.py, NgramEmbedding; Meituan
 * LongCat Team 2026, LongCat-Flash-Lite. */

uint64_t
ls_ngram_width (const LsModel *m)
{
  return m->halves.ngram_tables > 0 ? m->hidden / m->halves.ngram_tables : 0;
}

uint64_t
ls_ngram_rows (const LsModel *m)
{
  uint64_t n = m->halves.ngram_tables;
  return n > 0 ? n * m->halves.ngram_rows + n * (n - 1) : 0;
}

static const LsTableNames ngram_table_names
    = { "ngram-words",           "ngram-lookup",     "ngram-lookup-mask",
        "ngram-words-grad-zero", "ngram-words-grad", "ngram-words-grad-accumulate" };
static const LsLinearNames ngram_proj_names = LS_LINEAR ("ngram-proj", 0);

void
ls_operators_ngram (GArray *operators, const LsCut *cut)
{
  const LsModel *m = cut->model;
  uint64_t h = m->hidden, rows = cut->local_tokens;
  if (m->halves.ngram_tables == 0)
    return;
  ls_operators_table (operators, cut, &ngram_table_names, ls_ngram_rows (m) / cut->shard->tp,
                      ls_ngram_width (m), m->halves.ngram_tables * ls_ngram_width (m));
  for (uint32_t i = 0; i < m->halves.ngram_tables; i++)
    ls_operators_local (operators, cut, &ngram_proj_names, cut->act, ls_ngram_width (m), h);
  ls_operators_passes (operators, cut, rows, h, "ngram-add", m->halves.ngram_tables + 2, "ngram-add-bwd", 2,
                       0)
      ->role
      = LS_OPERATOR_RESIDUAL;
}
