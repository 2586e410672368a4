/* model/operators_head.c — both ends of a model: embeddings; final norm, logits, vocabulary-parallel
 * loss.
 *
 * The loss is Megatron-LM's vocabulary-parallel cross-entropy (Shoeybi et al.
 * 2019, section 3): on fp32 logits x of this rank's V/t words, each step in
 * place, with an all-reduce of one fp32 value per token between the steps:
 *
 *     m = max x          all-reduce (max)
 *     x = x - m; p = x[target]   all-reduce
 *     x = exp x; z = sum x       all-reduce
 *     loss = log z - p;  x = x / z, kept for the backward: 4 s b V / t bytes
 *
 * Fused (LS_LOSS_FUSED; flash-attn's xentropy): one kernel reads the 16-bit logits, one reads them again and
 * writes their gradient. Nothing is kept but they, 2 s b V.
 *
 * Train metrics: a trainer may compute the loss again from the logits for what it logs; in torch's
 * cross-entropy they become fp32, and these log-softmax. Its kernel (cunn_SoftMaxForward, SoftMax.cu) reads
 * a row for its maximum, for its sum and to write it, and keeps none that exceeds shared memory, 48 kB: a
 * row of words goes by three times. Composer computes two in each micro-batch, behind the backward
 * (trainer.py, _eval_train_metrics), cross-entropy and perplexity; here the kernels are in the forward, and
 * their memory is not counted.
 *
 * Blocks of multi-token prediction (model/layers.c) stand behind the head, whose weight they share.
 * Deviations: the embedding of the next token is looked up for nothing, as if its table were the one of the
 * first stage; with tensor parallelism the projection's parts are gathered for nothing.
 *
 * Behind an encoder the tokens are the decoder's. The norm at the encoder's end stands here, too; what it
 * makes is kept for all layers that meet it. In a pipeline encoder and decoder are apart: the norm ends the
 * encoder's last stage, the decoder's first stage has the table of words again, and each stage of the decoder
 * keeps the encoder's output of a micro-batch, which it received.
 *
 * With the norm's and the logits' inputs the head keeps 4 s b h (1/t with SP) +
 * 4 s b V / t (Korthikanti et al. 2022, section 4.3). */
#include <string.h>

#include "model/operators_build.h"

/* Embeddings on one rank: vocabulary-parallel words, then, after the reduction, learned positions and
 * dropout on this rank's tokens. */

/* Words keep nothing but token ids (with the data, not counted); the dropout
 * keeps its mask, s b h (/ t with SP), as Korthikanti et al. 2022 section 4.3. */

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
    ls_operator_passes (op, cut, cut->tokens, h, "embedding-mask", others, NULL, 0);
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
  ls_operator_add_grad (op, cut, LS_ROLE_ADD_WORDS, "embedding-grad-accumulate", cut->vocab, h);
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
    ls_operator_passes (op, cut, cut->local_tokens, h, "sequence-scatter", 2, NULL, 0);
  ls_operator_wgrad (op,
                     ls_cut_stream (cut, "position-grad", LS_KERNEL_REDUCTION, rows, h,
                                    cut->elt + 2 * ls_dtype_bytes (cut->shard->grad_dtype) / sequences));
  ls_operator_table (op, LS_TENSOR_WHOLE, cut->model->seq, h);
  op->params.is_replicated = op->params.has_whole_grad = true;
}

static void
append_dropout (GArray *operators, const LsCut *cut)
{
  uint64_t h = cut->model->hidden, rows = cut->local_tokens;
  LsOperator *op = ls_operator_append (operators, "embedding-dropout", LS_TP_NONE);

  ls_operator_fwd (op, ls_cut_random_stream (cut, "embedding-dropout", rows, h, 2 * cut->elt + 1));
  ls_operator_igrad (
      op, ls_cut_stream (cut, "embedding-dropout-bwd", LS_KERNEL_ELEMENTWISE, rows, h, 2 * cut->elt + 1));
  op->kept.saved_bytes = rows * h;
}

/* Of so many tokens a sequence. */
static void
append_embedding (const LsModel *m, const LsShard *s, uint32_t seq, GArray *operators)
{
  LsCut cut;
  LsShard own = *s;
  own.seq = seq;
  ls_cut_init (&cut, m, &own);
  guint from = operators->len;

  append_words (operators, &cut);
  if (m->sides.encoder_layers > 0)
    g_array_index (operators, LsOperator, operators->len - 1).comm.tp_bytes
        = cut.tokens * m->hidden * cut.elt;
  if (m->position == LS_POSITION_LEARNED)
    append_positions (operators, &cut);
  if (m->dropout)
    append_dropout (operators, &cut);
  ls_operators_ngram (operators, &cut);
  ls_operators_layer_inputs (operators, &cut);
  ls_operators_streams_begin (operators, &cut);
  ls_operators_freeze (operators, from, &cut);
}

void
ls_operators_embedding (const LsModel *m, const LsShard *s, GArray *operators)
{
  bool has_both = m->sides.encoder_layers > 0 && !s->sides_are_apart;
  append_embedding (m, s, s->seq + (has_both ? ls_model_decoder_seq (m, s->seq) : 0), operators);
}

void
ls_operators_decoder_embedding (const LsModel *m, const LsShard *s, GArray *operators)
{
  append_embedding (m, s, ls_model_decoder_seq (m, s->seq), operators);
}

/* --- final norm, logits and loss on one rank ----------------------------------------------------- */

#define FP32_BYTES 4

static const LsLinearNames predict_names = LS_LINEAR ("predict-proj", LS_MODULE_MTP);
static const LsLinearNames logits_names = LS_LINEAR ("logits", 0);

static LsKernel
logits_pass (const LsCut *cut, const char *name, LsDtype dtype, uint32_t bytes_per_logit)
{
  double bytes = (double) cut->tokens * (double) cut->vocab * bytes_per_logit;
  return ls_kernel_stream (name, LS_KERNEL_CROSS_ENTROPY, dtype, cut->tokens, cut->vocab, bytes, 0);
}

static LsKernel
in_place_pass (const LsCut *cut, const char *name)
{
  return logits_pass (cut, name, LS_DTYPE_FP32, 2 * FP32_BYTES);
}

static LsOperator *
append_reduced (GArray *operators, const LsCut *cut, const char *name)
{
  LsOperator *op = ls_operator_append (operators, name, LS_TP_REDUCE);
  op->comm.reduce_bytes = FP32_BYTES * cut->tokens;
  return op;
}

static void
append_logits (GArray *operators, const LsCut *cut, bool with_weight)
{
  uint64_t h = cut->model->hidden;
  LsOperator *op = ls_operator_append (operators, "logits", LS_TP_COLUMN);

  op->is_logits = true;
  ls_operator_linear (op, cut, &logits_names, cut->act, h, cut->vocab);
  if (with_weight)
    ls_operator_table (op, LS_TENSOR_ROWS, cut->vocab, h);
  ls_operator_as_launched (op, cut, LS_RECIPE_LOGITS, cut->tokens, cut->ffn);
  ls_operator_mark_unaligned (op, cut);
}

/* Over all logits, which are kept. */
static void
append_whole (GArray *operators, const LsCut *cut, const char *name, const char *fwd, double n_fwd,
              const char *igrad, double n_igrad)
{
  LsOperator *op = ls_operator_append (operators, name, LS_TP_NONE);
  ls_operator_streams (op, cut, LS_KERNEL_CROSS_ENTROPY, cut->tokens, cut->vocab, fwd, n_fwd, igrad, n_igrad);
  op->kept.saved_bytes = cut->elt * cut->tokens * cut->vocab;
}

/* Of a cut vocabulary as some software launches it, behind three reductions of a number of each token. */
static void
append_listed_vocab_loss (GArray *operators, const LsCut *cut)
{
  append_reduced (operators, cut, "loss-max");
  append_reduced (operators, cut, "loss-sum-exp");
  append_reduced (operators, cut, "loss-predicted-logit");
  LsOperator *op = ls_operator_append (operators, "loss", LS_TP_NONE);
  op->kept.saved_bytes = FP32_BYTES * cut->tokens * cut->vocab;
  ls_operator_as_launched (op, cut, LS_RECIPE_VOCAB_LOSS, cut->tokens, cut->ffn);
}

static void
append_loss (GArray *operators, const LsCut *cut)
{
  LsOperator *op = append_reduced (operators, cut, "loss-max");
  if (cut->elt != FP32_BYTES) {
    ls_operator_fwd (op, logits_pass (cut, "logits-to-fp32", cut->act, cut->elt + FP32_BYTES));
    ls_operator_igrad (op, logits_pass (cut, "logits-grad-from-fp32", LS_DTYPE_FP32, cut->elt + FP32_BYTES));
  }
  ls_operator_fwd (op, logits_pass (cut, "logits-max", LS_DTYPE_FP32, FP32_BYTES));

  /* The gather of one logit per token is a few kB: not a pass of its own. */
  op = append_reduced (operators, cut, "loss-predicted-logit");
  ls_operator_fwd (op, in_place_pass (cut, "logits-subtract-max"));

  op = append_reduced (operators, cut, "loss-sum-exp");
  ls_operator_fwd (op, in_place_pass (cut, "logits-exp"));
  ls_operator_fwd (op, logits_pass (cut, "logits-sum", LS_DTYPE_FP32, FP32_BYTES));

  op = ls_operator_append (operators, "loss-softmax", LS_TP_NONE);
  ls_operator_fwd (op, in_place_pass (cut, "logits-normalise"));
  ls_operator_igrad (op, in_place_pass (cut, "cross-entropy-bwd"));
  op->kept.saved_bytes = FP32_BYTES * cut->tokens * cut->vocab;
}

/* The logits of all ranks on each (DTensor: ColwiseParallel with replicated outputs); backward: a copy of
 * this rank's part of their gradient. */
static void
append_gathered_logits (GArray *operators, const LsCut *cut)
{
  const LsRecipe *copies = ls_recipe_find (cut->shard->recipes, LS_RECIPE_TP, cut->model);
  const LsRecipeKernel *listed
      = copies ? ls_recipe_kernel_named (copies->forward, ls_tp_copies[LS_TP_COPIES_CUT]) : NULL;
  LsOperator *op = ls_operator_append (operators, "logits-gather", LS_TP_GATHER);
  LsKernel copy
      = ls_kernel_stream (ls_tp_copies[LS_TP_COPIES_CUT], LS_KERNEL_ELEMENTWISE, cut->act, cut->tokens,
                          cut->vocab, 2.0 * (double) (cut->elt * cut->tokens * cut->vocab), 0);
  copy.access = listed ? (LsAccess) listed->access : LS_ACCESS_NONE;
  ls_operator_igrad (op, copy);
  op->comm.reduce_bytes = cut->elt * cut->tokens * cut->vocab * cut->shard->tp;
}

static bool
gathers_logits (const LsCut *cut)
{
  const LsRecipe *r = ls_recipe_find (cut->shard->recipes, LS_RECIPE_LOGITS, cut->model);
  return cut->shard->tp > 1 && r && r->gathers_output;
}

/* PyTorch's, as it launches it. */
static void
append_listed_loss (GArray *operators, const LsCut *cut)
{
  LsOperator *op = ls_operator_append (operators, "loss", LS_TP_NONE);
  const LsRecipe *r = ls_recipe_find (cut->shard->recipes, LS_RECIPE_LOSS, cut->model);
  op->kept.saved_bytes = FP32_BYTES * cut->tokens * cut->vocab;
  ls_operator_as_launched (op, cut, LS_RECIPE_LOSS, cut->tokens, cut->ffn);
  if (!r->logits_again)
    return;
  g_assert (op->n_igrad < LS_OPERATOR_MAX_KERNELS);
  memmove (op->igrad + 1, op->igrad, op->n_igrad * sizeof *op->igrad);
  op->igrad[0] = ls_kernel_gemm ("logits-again", cut->act, cut->tokens, cut->vocab, cut->model->hidden, 1,
                                 cut->elt, false);
  op->n_igrad++;
}

static void
append_final_norm (GArray *operators, const LsCut *cut)
{
  static const LsNormPlace last = { "final-norm", LS_RECIPE_FINAL_NORM, LS_RECIPE_RESIDUAL, false };
  ls_operators_streams_end (operators, cut);
  ls_operators_norm (operators, cut, &last, cut->elt);
}

static void
append_head (GArray *operators, const LsCut *cut, bool with_weight)
{
  const LsShard *s = cut->shard;
  append_logits (operators, cut, with_weight);
  if (cut->model->attn.logit_cap)
    append_whole (operators, cut, "logit-cap", "logit-cap", 2, "logit-cap-bwd", 3); /* c tanh (x / c) */
  LsCut loss = *cut;
  if (gathers_logits (cut)) {
    append_gathered_logits (operators, cut);
    loss.vocab *= s->tp;
  }
  if (s->loss == LS_LOSS_FUSED)
    append_whole (operators, &loss, "loss", "cross-entropy", 1, "cross-entropy-bwd", 2);
  else if ((s->tp == 1 || gathers_logits (cut)) && ls_recipe_find (s->recipes, LS_RECIPE_LOSS, cut->model)) {
    append_listed_loss (operators, &loss);
  } else if (s->tp > 1 && ls_recipe_find (s->recipes, LS_RECIPE_VOCAB_LOSS, cut->model))
    append_listed_vocab_loss (operators, cut);
  else
    append_loss (operators, cut);
}

/* Megatron-LM enters one autocast for a whole block: fp8 whatever the layers at the ends are in, no fp4
 * (NVIDIA/Megatron-LM@d98e8a64, megatron/core/transformer/multi_token_prediction.py,
 * _proj_and_transformer_layer). */
static LsShard
shard_of_block (const LsShard *s)
{
  LsShard own = *s;
  own.fp8.bf16_first = own.fp8.bf16_last = 0;
  own.dtype = s->dtype == LS_DTYPE_NVFP4 ? LS_DTYPE_BF16 : s->dtype;
  if (s->fp8.formats.of[LS_MODULE_MTP] != LS_FORMAT_OF_ALL)
    memset (own.fp8.formats.of, s->fp8.formats.of[LS_MODULE_MTP], sizeof own.fp8.formats.of);
  return own;
}

static void
append_block_layers (GArray *operators, const LsCut *cut, uint32_t block)
{
  const LsModel *m = cut->model;
  uint32_t n = ls_model_block_layers (m);
  guint from = operators->len;
  for (uint32_t i = 0; i < n; i++)
    ls_operators_layer (m, cut->shard, m->n_layers + block * n + i, operators);
  for (guint i = from; i < operators->len; i++)
    g_array_index (operators, LsOperator, i).is_of_block = true;
}

/* The norms of what comes from the layers and of the embedding of the next token, both through one
 * projection, the layers of the block, and the head again. */
static void
append_prediction (GArray *operators, const LsCut *cut, uint32_t block)
{
  static const LsNormPlace state = { "predict-state-norm", LS_RECIPE_INPUT_NORM, LS_RECIPE_RESIDUAL, false },
                           token = { "predict-token-norm", LS_RECIPE_INPUT_NORM, LS_RECIPE_RESIDUAL, false };
  uint64_t h = cut->model->hidden;
  guint from = operators->len;
  LsShard own = shard_of_block (cut->shard);
  LsCut inside = *cut;
  inside.shard = &own;
  ls_operators_norm (operators, cut, &token, cut->elt);
  ls_operators_norm (operators, cut, &state, cut->elt);
  LsOperator *op = ls_operator_append (operators, "predict-proj", LS_TP_NONE);
  ls_operator_linear (op, &inside, &predict_names, own.dtype, 2 * h, h / cut->shard->tp);
  ls_operator_weight (op, LS_TENSOR_ROWS, h / cut->shard->tp, 2 * h, 1);
  ls_operators_streams_begin (operators, cut);
  append_block_layers (operators, &inside, block);
  append_final_norm (operators, cut);
  for (guint i = from; i < operators->len; i++)
    g_array_index (operators, LsOperator, i).is_in_block = true;
  g_array_index (operators, LsOperator, from).begins_block = true;
  append_head (operators, cut, false);
  if (ls_model_block_is_again (cut->model, block))
    ls_operators_leave_params (operators, from);
}

void
ls_operators_encoder_end (const LsModel *m, const LsShard *s, GArray *operators)
{
  static const LsNormPlace end = { "encoder-norm", LS_RECIPE_FINAL_NORM, LS_RECIPE_RESIDUAL, false };
  LsCut cut;
  ls_cut_init (&cut, m, s);
  ls_operators_norm (operators, &cut, &end, cut.elt);
}

void
ls_operators_encoder_output (const LsModel *m, const LsShard *s, GArray *operators)
{
  ls_operator_append (operators, "encoder-output", LS_TP_NONE)->kept.saved_bytes = ls_boundary_bytes (m, s);
}

/* Of the decoder's tokens. */
static void
append_decoder_head (GArray *operators, const LsModel *m, const LsShard *s, bool with_weight)
{
  LsShard own = *s;
  LsCut cut;
  own.seq = ls_model_decoder_seq (m, s->seq);
  ls_cut_init (&cut, m, &own);
  guint from = operators->len;
  append_final_norm (operators, &cut);
  append_head (operators, &cut, with_weight);
  for (guint i = from; i < operators->len; i++) {
    LsOperator *op = &g_array_index (operators, LsOperator, i);
    if (op->tp == LS_TP_COLUMN)
      op->comm.tp_bytes = cut.tokens * m->hidden * cut.elt;
  }
}

void
ls_operators_head (const LsModel *m, const LsShard *s, bool with_weight, GArray *operators)
{
  LsCut cut;
  guint begin = operators->len;
  ls_cut_init (&cut, m, s);
  if (m->sides.encoder_layers > 0) {
    if (!s->sides_are_apart) {
      ls_operators_encoder_end (m, s, operators);
      g_array_index (operators, LsOperator, operators->len - 1).kept.saved_bytes += ls_boundary_bytes (m, s);
    }
    append_decoder_head (operators, m, s, with_weight);
  } else {
    append_final_norm (operators, &cut);
    append_head (operators, &cut, with_weight);
  }
  for (uint32_t i = 0; i < m->predict.layers; i++)
    append_prediction (operators, &cut, i);
  for (uint32_t i = 0; i < s->train_metrics; i++) {
    LsOperator *op = ls_operator_append (operators, "metric", LS_TP_NONE);
    if (cut.elt != FP32_BYTES)
      ls_operator_fwd (op, logits_pass (&cut, "metric-to-fp32", cut.act, cut.elt + FP32_BYTES));
    ls_operator_fwd (op, logits_pass (&cut, "metric-log-softmax", LS_DTYPE_FP32, 4 * FP32_BYTES));
    ls_operator_as_launched (op, &cut, LS_RECIPE_METRIC, cut.tokens, cut.ffn);
  }
  ls_operators_freeze (operators, begin, &cut);
}
