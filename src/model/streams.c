/* model/streams.c — several residual streams: hyper-connections, alternating updates.
 *
 * Problem. In the place of one residual stream there are n. Attention and the MLP each read one mean of them,
 * and their output is added to all; between them the streams are mixed.
 *
 * Equations. Of the n streams of a token, X (n x h), a product with c = n^2 + 2 n columns of n h gives n
 * weights of the mean (p), n of the output (q) and a matrix of n x n, which 20 rounds of scaling make doubly
 * stochastic (B). A half of a layer, F, makes
 *
 *     x = p X,  y = F (norm (x)),  X' = B X + q y
 *
 * with c n h weights in a product and c + 3 numbers beside it. Before the first layer each stream is the
 * embedding; behind the last a product with n columns gives the weights of one mean, n^2 h weights and n + 1
 * numbers. Elements of h that are read and written for a token:
 *
 *     weights    read n                        backward read n, n of gradients added to: 3 n
 *     mean       read n, written 1             backward 3 n + 1
 *     output     read n + 1, written n         backward 3 n + 2
 *
 * Worked example. n 4, h 7168, 16 bits: a token of a half reads and writes (4 + 5 + 9) x 7168 x 2 = 258 KB,
 * where a sum with one stream takes 43; its product is 2 x 24 x 28672 = 1.4 MFLOP.
 *
 * Deviations. The rounds of scaling, of 16 numbers a token, take no time. Each of the three is taken for one
 * kernel, as fused ones are (the first reference, section 4.3).
 *
 * Alternating updates (AltUp). A layer, F, computes one stream, X_0, and predicts all:
 *
 *     P = X + A X,  Y = F (P_0),  X'_i = P_i + b_i (Y - P_0)
 *
 * A (n x n) and b come from n numbers, tanh (norm (x) R) with x = X_0 for A and x = Y for b: one norm and one
 * R of h x n for both, then products with n^3 and n^2 weights. A vector of h scales X'_0 for what the layer
 * does next (model/beside.c). Before the first layer the other n - 1 streams are products of the embedding,
 * behind the last products of the streams give their mean: 2 (n - 1) h^2 weights. Elements of h for a token:
 *
 *     norm       read 1, written 1             backward 3, twice
 *     predict    read n, written n             backward 3 n
 *     correct    read n + 1, written n         backward 2 n + 3
 *     begin      read n - 1, written n - 1     backward 3 (n - 1); the lengths of products are made alike
 *     end        read n, written 1             backward 3 n
 *
 * Worked example. n 4, h 2048 (Gemma 3n E4B): of a layer R has 8192 weights, 80 are beside it and 4096 in
 * vectors; both ends have 25.2 M. The n^3 + n^2 products of a token take no time.
 *
 * References: Xie et al. 2025, mHC: Manifold-Constrained Hyper-Connections; DeepSeek-AI 2026, DeepSeek-V4,
 * section 2.2; Transformers, models/deepseek_v4. Baykal et al. 2023, Alternating Updates for Efficient
 * Transformers, arXiv 2301.13310; huggingface/transformers@004edfe2
 * src/transformers/models/gemma3n/modular_gemma3n.py, Gemma3nTextAltUp, Gemma3nTextModel.
 *
 * Residual streams on one rank: what stands before and behind a half of a layer, and at
 * both ends of a model. They lie outside of the tensor-parallel regions, as the residual does: each rank has
 * its s b / t tokens of them with sequence parallelism. Their weights are on every rank.
 *
 * Kept: the streams before each half, and its output; of alternating ones those before each layer. */
#include "model/operators_build.h"

uint32_t
ls_model_n_streams (const LsModel *m)
{
  return MAX (1, m->halves.streams);
}

bool
ls_streams_mix (const LsModel *m)
{
  return m->halves.streams > 1 && m->halves.stream_kind == LS_STREAMS_MIXED;
}

bool
ls_streams_alternate (const LsModel *m)
{
  return m->halves.streams > 1 && m->halves.stream_kind == LS_STREAMS_ALTERNATE;
}

uint64_t
ls_streams_again_params (const LsModel *m)
{
  return ls_streams_alternate (m) ? (uint64_t) ls_model_n_streams (m) * m->hidden : 0;
}

static const LsLinearNames mix_names = LS_LINEAR ("streams-mix", 0);
static const LsLinearNames end_names = LS_LINEAR ("streams-end", 0);

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
  uint64_t n = ls_model_n_streams (m), columns = n * n + 2 * n;
  append_mean (operators, cut, name, &mix_names, columns, columns + 3);
}

void
ls_operators_streams_out (GArray *operators, const LsCut *cut, const char *name)
{
  uint32_t n = ls_model_n_streams (cut->model);
  LsOperator *op = ls_operator_append (operators, name, LS_TP_NONE);
  ls_operator_passes (op, cut, cut->local_tokens, cut->model->hidden, "streams-add", 2 * n + 1,
                      "streams-add-bwd", 3 * n + 2);
  op->kept.saved_bytes = cut->local_tokens * cut->model->hidden * cut->elt;
}

/* --- alternating -------------------------------------------------------------------------- */

static const LsLinearNames router_names = LS_LINEAR ("streams-router", 0);

/* The norm and the product that give n numbers of a token, from the computed stream. */
static LsOperator *
append_router (GArray *operators, const LsCut *cut, const LsNormPlace *place)
{
  ls_operators_norm (operators, cut, place, cut->elt);
  return ls_operators_local (operators, cut, &router_names, cut->act, cut->model->hidden,
                             ls_model_n_streams (cut->model));
}

/* Keeps the streams, the first of which the norm keeps. */
void
ls_operators_streams_predict (GArray *operators, const LsCut *cut)
{
  static const LsNormPlace place = { "streams-norm", LS_RECIPE_INPUT_NORM, LS_RECIPE_ATTENTION_ADD, false };
  const LsModel *m = cut->model;
  uint32_t n = ls_model_n_streams (m);
  append_router (operators, cut, &place);
  LsOperator *op = ls_operators_passes (operators, cut, cut->local_tokens, m->hidden, "streams-predict",
                                        2 * n, "streams-predict-bwd", 3 * n, n - 1);
  ls_operator_param (op, (uint64_t) n * n * n);
  op->params.is_replicated = true;
}

/* With the norm and the product of the prediction. What is predicted of the computed stream is kept by the
 * norm that reads it, and what was computed by the norm here. */
void
ls_operators_streams_correct (GArray *operators, const LsCut *cut)
{
  static const LsNormPlace place = { "streams-out-norm", LS_RECIPE_MLP_NORM, LS_RECIPE_MLP_ADD, false };
  const LsModel *m = cut->model;
  uint32_t n = ls_model_n_streams (m);
  append_router (operators, cut, &place)->params.n = 0;
  g_array_index (operators, LsOperator, operators->len - 2).params.n = 0;
  LsOperator *op = ls_operators_passes (operators, cut, cut->local_tokens, m->hidden, "streams-correct",
                                        2 * n + 1, "streams-correct-bwd", 2 * n + 3, 1);
  ls_operator_passes (op, cut, cut->local_tokens, m->hidden, "streams-scale", 2, "streams-scale-bwd", 3);
  ls_operator_param (op, (uint64_t) n * n);
  ls_operator_param (op, m->hidden);
  op->params.is_replicated = true;
}

/* n - 1 products of a stream; with `is_of_one` they all read the same one, which is kept once. */
static void
append_projections (GArray *operators, const LsCut *cut, const LsLinearNames *names, bool is_of_one)
{
  uint64_t h = cut->model->hidden;
  for (uint32_t i = 1; i < ls_model_n_streams (cut->model); i++) {
    LsOperator *op = ls_operators_local (operators, cut, names, cut->act, h, h);
    if (is_of_one && i > 1)
      op->kept.saved_bytes = op->kept.input_bytes = 0;
  }
}

/* What follows them, with so many streams read and written; keeps what they made. */
static void
append_behind_projections (GArray *operators, const LsCut *cut, const char *fwd, uint32_t n_fwd,
                           const char *igrad, uint32_t n_igrad)
{
  uint64_t h = cut->model->hidden;
  LsOperator *op = ls_operator_append (operators, fwd, LS_TP_NONE);
  ls_operator_streams (op, cut, LS_KERNEL_NORM, cut->local_tokens, h, fwd, n_fwd, igrad, n_igrad);
  op->kept.saved_bytes = (ls_model_n_streams (cut->model) - 1) * cut->local_tokens * h * cut->elt;
}

/* --- both ends ---------------------------------------------------------------------------- */

void
ls_operators_streams_begin (GArray *operators, const LsCut *cut)
{
  uint32_t n = ls_model_n_streams (cut->model);
  if (n == 1)
    return;
  if (ls_streams_alternate (cut->model)) { /* the others are products of the first, made as long */
    static const LsLinearNames names = LS_LINEAR ("streams-begin", 0);
    append_projections (operators, cut, &names, true);
    append_behind_projections (operators, cut, "streams-length", 2 * n - 2, "streams-length-bwd", 3 * n - 3);
    return;
  }
  LsOperator *op = ls_operator_append (operators, "streams-begin", LS_TP_NONE);
  ls_operator_fwd (op, pass (cut, "streams-copy", LS_KERNEL_ELEMENTWISE, n + 1));
  ls_operator_igrad (op, pass (cut, "streams-grad-sum", LS_KERNEL_REDUCTION, n + 1));
}

void
ls_operators_streams_end (GArray *operators, const LsCut *cut)
{
  const LsModel *m = cut->model;
  uint32_t n = ls_model_n_streams (m);
  if (ls_streams_alternate (m)) { /* the mean of the first and of products of the others */
    append_projections (operators, cut, &end_names, false);
    append_behind_projections (operators, cut, "streams-mean", n + 1, "streams-mean-bwd", 3 * n);
  } else if (n > 1)
    append_mean (operators, cut, "streams-end", &end_names, n, n + 1);
}
