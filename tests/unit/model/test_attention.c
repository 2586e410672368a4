/* Pins attention and the loss as frameworks run them: kernels around them, and sequences cut over ranks. */
#include "ls_test.h"
#include "model_shapes.h"

#include "model/operators.h"

/* Pins the kernels that frameworks put around flash attention and in the place of the
 * vocabulary-parallel loss: traffic in bytes per token, and what stays kept. */

#define HIDDEN 2048
#define VOCAB  51200 /* a multiple of 128 */

static double
fwd_bytes (const LsOperator *o)
{
  double bytes = 0;
  for (uint32_t i = 0; i < o->n_fwd; i++)
    bytes += o->fwd[i].bytes;
  return bytes;
}

static double
igrad_bytes (const LsOperator *o)
{
  double bytes = 0;
  for (uint32_t i = 0; i < o->n_igrad; i++)
    bytes += o->igrad[i].bytes;
  return bytes;
}

typedef struct {
  double fwd, igrad, saved;
} Sums;

static Sums
sums (GArray *operators)
{
  Sums s = { 0 };
  for (guint i = 0; i < operators->len; i++) {
    const LsOperator *o = &g_array_index (operators, LsOperator, i);
    s.fwd += fwd_bytes (o);
    s.igrad += igrad_bytes (o);
    s.saved += (double) o->kept.saved_bytes;
  }
  g_array_unref (operators);
  return s;
}

static LsModel
mpt (void)
{
  LsModel m = gpt (24, HIDDEN, 16);
  m.attention = LS_ATTENTION_FLASH;
  m.dropout = false;
  return m;
}

static Sums
layer_of_layout (LsQkvLayout layout)
{
  LsModel m = mpt ();
  LsShard s = shard (&m, 1, false, 1);
  s.qkv_layout = layout;
  return sums (layer_operators (&m, &s));
}

/* torch.cat of dQ, dK, dV: each of 3 h values of a token is read and written once. */
static void
gradients_of_views_are_concatenated (void)
{
  Sums joint = layer_of_layout (LS_QKV_JOINT), split = layer_of_layout (LS_QKV_SPLIT);
  double tokens = mpt ().seq;
  LS_CHECK_DOUBLE (split.fwd, ==, joint.fwd);
  LS_CHECK_DOUBLE (split.igrad - joint.igrad, ==, tokens * 3 * HIDDEN * 2 * 2);
  LS_CHECK_DOUBLE (split.saved, ==, joint.saved);
}

/* Forward: Q, K, V gathered (4 bytes a value), the context scattered into zeros (2 + 4), an index
 * of 8 bytes from a mask that is read twice for each of the three. Backward: the context's gradient
 * gathered, those of Q, K, V scattered into zeros. */
static void
padding_is_taken_out_and_put_back (void)
{
  Sums split = layer_of_layout (LS_QKV_SPLIT), unpadded = layer_of_layout (LS_QKV_UNPADDED);
  double tokens = mpt ().seq, values = tokens * HIDDEN;
  LS_CHECK_DOUBLE (unpadded.fwd - split.fwd, ==, values * (3 * 4 + 6) + tokens * 3 * (1 + 1 + 8));
  LS_CHECK_DOUBLE (unpadded.igrad - split.igrad, ==, values * (4 + 3 * 6));
  LS_CHECK_DOUBLE (unpadded.saved - split.saved, ==, values * 2);
}

static void
the_host_reads_two_results_of_each_mask (void)
{
  LsModel m = mpt ();
  LsShard s = shard (&m, 1, false, 1);
  s.qkv_layout = LS_QKV_UNPADDED;
  g_autoptr (GArray) layer = layer_operators (&m, &s);
  guint n = 0;
  for (guint i = 0; i < layer->len; i++)
    n += g_array_index (layer, LsOperator, i).n_host_reads;
  LS_CHECK_INT (n, ==, 6);
}

static Sums
head (LsLoss loss, uint32_t n_metrics)
{
  LsModel m = mpt ();
  LsShard s = shard (&m, 1, false, 1);
  s.loss = loss;
  s.train_metrics = n_metrics;
  GArray *operators = operators_new ();
  ls_operators_head (&m, &s, false, operators);
  return sums (operators);
}

/* Of a 16-bit logit, forward 2 bytes instead of 6 + 4 + 8 + 8 + 4 + 8, backward 4 instead of 8 + 6;
 * kept 2 instead of 4. */
static void
a_fused_loss_passes_once_each_way (void)
{
  Sums parallel = head (LS_LOSS_PARALLEL, 0), fused = head (LS_LOSS_FUSED, 0);
  double logits = (double) mpt ().seq * VOCAB;
  LS_CHECK_DOUBLE (parallel.fwd - fused.fwd, ==, logits * (38 - 2));
  LS_CHECK_DOUBLE (parallel.igrad - fused.igrad, ==, logits * (14 - 4));
  LS_CHECK_DOUBLE (parallel.saved - fused.saved, ==, logits * 2);
}

/* torch: to fp32 (2 + 4), log-softmax, which reads a row of words three times (12 + 4). */
static void
a_metric_is_a_loss_without_gradient (void)
{
  Sums none = head (LS_LOSS_FUSED, 0), two = head (LS_LOSS_FUSED, 2);
  LS_CHECK_DOUBLE (two.fwd - none.fwd, ==, 2 * 22 * (double) mpt ().seq * VOCAB);
  LS_CHECK_DOUBLE (two.igrad, ==, none.igrad);
}

/* Pins attention over sequences that are cut over ranks: shapes of its steps, and what is kept. */

static const LsModel model = {
  .name = (char *) "m",
  .n_layers = 1,
  .hidden = 4096,
  .n_heads = 32,
  .n_kv_heads = 8,
  .head_dim = 128,
  .ffn = 16384,
  .vocab = 32000,
  .seq = 8192,
  .mlp = LS_MLP_SWIGLU,
  .norm = LS_NORM_RMSNORM,
  .position = LS_POSITION_ROPE,
  .attention = LS_ATTENTION_FLASH,
};

static LsShard
cut_shard (uint32_t cp, LsCpKind kind, bool balance)
{
  return (LsShard) { .tp = 1,
                     .micro_batch = 1,
                     .seq = 8192,
                     .attention = LS_ATTENTION_FLASH,
                     .dtype = LS_DTYPE_BF16,
                     .grad_dtype = LS_DTYPE_FP32,
                     .cp = cp,
                     .cp_kind = kind,
                     .cp_balance = balance };
}

/* The worked example of operators_attention.c. */
static void
steps_of_a_balanced_ring_compute_the_same (void)
{
  LsShard s = cut_shard (4, LS_CP_RING, true);
  LS_CHECK (!ls_context_is_uneven (&s));
  for (uint32_t i = 0; i < 4; i++) {
    LsContextStep step;
    ls_context_step (&model, &s, (LsContextPlace) { .step = i }, &step);
    LS_CHECK (!step.is_idle);
    LS_CHECK_DOUBLE (step.fwd.flops, ==, 4 * 2048.0 * 2048 * 4096 / 2);
    LS_CHECK_DOUBLE (step.bwd.flops, ==, 2.5 * step.fwd.flops);
    LS_CHECK_INT (step.fwd.m, ==, i == 3 ? 1024 : 2048);
    LS_CHECK_INT (step.fwd.n, ==, i == 1 || i == 2 ? 1024 : 2048);
    LS_CHECK (step.merge.bytes > 0 && step.merge_grad.bytes > 0);
  }
}

/* PyTorch's: 2048 tokens of 4096 wide are o elements, keys and values of all heads as many each. Compiled, step 1
 * reads a first result of 16 bits and writes fp32, the last reads fp32 and writes 16 bits; step 3 has half of the
 * queries, steps 1 and 2 half of the keys. */
static void
steps_of_pytorch_sum_in_fp32 (void)
{
  static const LsCpKind kinds[] = { LS_CP_RING, LS_CP_ALL_GATHER };
  const double o = 2048.0 * 4096;
  static const double eager[] = { 6, 42, 42, 42 / 2.0 + 8 + 6 },
                      compiled[] = { 0, 2 + 2 + 4, 4 + 2 + 4, 4 + 1 + 2 },
                      eager_grad[]
      = { 14 + 2 * (14 + 8), 10 + 2 * (5 + 8 + 8), 10 + 2 * (5 + 8 + 8), 5 + 8 + 6 + 2 * (10 + 8) },
                      compiled_grad[]
      = { 3 * (4 + 2), 8 + 2 + 2 * (8 + 1), 8 + 2 + 2 * (8 + 1), 8 + 1 + 6 + 2 * (8 + 2) };
  for (guint k = 0; k < G_N_ELEMENTS (kinds); k++)
    for (uint32_t i = 0; i < 4; i++) {
      LsShard s = cut_shard (4, kinds[k], true);
      LsContextStep step;
      s.cp_steps = LS_CP_STEPS_PYTORCH;
      ls_context_step (&model, &s, (LsContextPlace) { .step = i }, &step);
      LS_CHECK_DOUBLE (step.fwd.flops, ==, 4 * 2048.0 * 2048 * 4096 / 2);
      LS_CHECK_DOUBLE (step.merge.bytes, ==, eager[i] * o);
      LS_CHECK_DOUBLE (step.merge_grad.bytes, ==, eager_grad[i] * o);
      s.cp_steps = LS_CP_STEPS_PYTORCH_COMPILE;
      ls_context_step (&model, &s, (LsContextPlace) { .step = i }, &step);
      LS_CHECK_DOUBLE (step.merge.bytes, ==, compiled[i] * o);
      LS_CHECK_DOUBLE (step.merge_grad.bytes, ==, compiled_grad[i] * o);
      LS_CHECK_INT (ls_context_bytes (&model, &s).k, ==, 2 * 2048 * 4096);
    }
}

static void
an_unbalanced_rank_sees_what_is_before_it (void)
{
  LsShard ring = cut_shard (4, LS_CP_RING, false), gather = cut_shard (4, LS_CP_ALL_GATHER, false);
  double one = 4 * 2048.0 * 2048 * 4096;
  LS_CHECK (ls_context_is_uneven (&ring) && ls_context_is_uneven (&gather));
  for (uint32_t rank = 0; rank < 4; rank++) {
    LsContextStep step;
    for (uint32_t i = 0; i < 4; i++) {
      ls_context_step (&model, &ring, (LsContextPlace) { .cp_rank = rank, .step = i }, &step);
      LS_CHECK_INT (step.is_idle, ==, i > rank);
      LS_CHECK_DOUBLE (step.fwd.flops, ==, i > rank ? 0 : i == 0 ? one / 2 : one);
    }
    ls_context_step (&model, &gather, (LsContextPlace) { .cp_rank = rank }, &step);
    LS_CHECK_INT (step.fwd.m, ==, 2048);
    LS_CHECK_INT (step.fwd.n, ==, 2048 * (rank + 1));
    LS_CHECK_NEAR (step.fwd.flops, (rank + 0.5) * one, 1e-12);
  }
}

static void
ulysses_has_whole_sequences_of_few_heads (void)
{
  LsShard s = cut_shard (4, LS_CP_ULYSSES, true);
  LsContextStep step;
  ls_context_step (&model, &s, (LsContextPlace) { 0 }, &step);
  LS_CHECK_INT (step.fwd.batch, ==, 8);
  LS_CHECK_INT (step.fwd.m, ==, 8192);
  LS_CHECK_DOUBLE (step.fwd.flops, ==, 4 * 8192.0 * 8192 * 1024 / 2);
  LS_CHECK_DOUBLE (step.merge.bytes, ==, 0.0);
  LsContextBytes bytes = ls_context_bytes (&model, &s);
  LS_CHECK_INT (bytes.q, ==, 2048 * 4096 * 2);
  LS_CHECK_INT (bytes.k, ==, 2048 * 1024 * 2);
  LS_CHECK_INT (bytes.v, ==, bytes.k);
  LS_CHECK_INT (bytes.context, ==, bytes.q);

  /* 8 heads of K and V on 16 ranks are sent as 16. */
  s = cut_shard (16, LS_CP_ULYSSES, true);
  ls_context_step (&model, &s, (LsContextPlace) { 0 }, &step);
  bytes = ls_context_bytes (&model, &s);
  LS_CHECK_INT (step.fwd.batch, ==, 2);
  LS_CHECK_DOUBLE (step.fwd.flops, ==, 4 * 8192.0 * 8192 * 256 / 2);
  LS_CHECK_INT (bytes.q, ==, 512 * 4096 * 2);
  LS_CHECK_INT (bytes.k, ==, 512 * 2048 * 2);
}

/* The model of operators_mla.c's worked example, at 8192: keys 192 wide, values and so the context 128. */
static void
latent_attention_sends_what_its_heads_are_wide (void)
{
  const LsModel latent = { .name = (char *) "latent",
                           .n_layers = 2,
                           .hidden = 2048,
                           .n_heads = 16,
                           .n_kv_heads = 16,
                           .head_dim = 192,
                           .v_dim = 128,
                           .latent.kv_lora = 512,
                           .latent.rope_dim = 64,
                           .ffn = 8192,
                           .vocab = 50000,
                           .seq = 8192,
                           .position = LS_POSITION_ROPE,
                           .attention = LS_ATTENTION_FLASH };
  const LsCpKind kinds[] = { LS_CP_RING, LS_CP_ALL_GATHER, LS_CP_ULYSSES };
  const double whole = 2.0 * 8192 * 8192 * 16 * (192 + 128) / 2;
  for (size_t k = 0; k < G_N_ELEMENTS (kinds); k++) {
    LsShard s = cut_shard (4, kinds[k], true);
    LsContextBytes bytes = ls_context_bytes (&latent, &s);
    LsContextStep step;
    double sum = 0;
    for (uint32_t i = 0; i < (kinds[k] == LS_CP_RING ? 4 : 1); i++) {
      ls_context_step (&latent, &s, (LsContextPlace) { .step = i }, &step);
      sum += step.fwd.flops;
      LS_CHECK_DOUBLE (step.bwd.flops, ==, 2.5 * step.fwd.flops);
    }
    LS_CHECK_NEAR (4 * sum, whole, 1e-12);
    LS_CHECK_INT (bytes.q, ==, 2048 * 16 * 192 * 2);
    LS_CHECK_INT (bytes.k, ==, bytes.q);
    LS_CHECK_INT (bytes.v, ==, 2048 * 16 * 128 * 2);
    LS_CHECK_INT (bytes.context, ==, bytes.v);
  }
  /* Of 2048 queries and 1024 keys, step 1: two of O and one of the sum; two of dQ, dK and dV and one. */
  LsShard ring = cut_shard (4, LS_CP_RING, true);
  LsContextStep second;
  ls_context_step (&latent, &ring, (LsContextPlace) { .step = 1 }, &second);
  LS_CHECK_DOUBLE (second.merge.bytes, ==, 3 * 16 * 2048.0 * (2 * 128 + 4));
  LS_CHECK_DOUBLE (second.merge_grad.bytes, ==, 3 * 16 * 2.0 * (2048 * 192 + 1024 * (192 + 128)));
}

static uint64_t
kept (const LsShard *s)
{
  g_autoptr (GArray) operators = ls_operators_new ();
  uint64_t sum = 0;
  ls_operators_layer (&model, s, 0, operators);
  for (guint i = 0; i < operators->len; i++)
    sum += g_array_index (operators, LsOperator, i).kept.saved_bytes;
  return sum;
}

/* Ulysses keeps the context twice. */
static void
a_layer_keeps_a_cp_th (void)
{
  LsShard whole = cut_shard (1, LS_CP_RING, true), ring = cut_shard (4, LS_CP_RING, true),
          gather = cut_shard (4, LS_CP_ALL_GATHER, true), ulysses = cut_shard (4, LS_CP_ULYSSES, true);
  LS_CHECK_INT (4 * kept (&ring), ==, kept (&whole));
  LS_CHECK_INT (4 * kept (&gather), ==, kept (&whole));
  LS_CHECK_INT (kept (&ulysses), ==, kept (&ring) + 2048 * 4096 * 2);
}

/* Inputs of qkv and fc1, of 2 b s h bytes each, whole instead of a part. */
static void
gathered_inputs_may_be_kept (void)
{
  LsShard s = cut_shard (1, LS_CP_RING, true);
  s.tp = 8;
  s.sp = true;
  uint64_t parts = kept (&s);
  s.sp_save_gathered = true;
  LS_CHECK_INT (kept (&s) - parts, ==, 2 * (8192 - 1024) * UINT64_C (4096) * 2);
}

/* Half of the pairs of whole sequences, three quarters of those that a window leaves; of the pairs of ranks a
 * quarter and three quarters. Queries and bytes stay. */
static void
documents_leave_fewer_keys (void)
{
  static const double of_rank[] = { 0.25, 0.75, 0.5, 0.5 };
  const LsDocuments documents = { 0.5, 0.75, NULL }, parts = { 0.5, 0.75, of_rank };
  LsShard whole = cut_shard (4, LS_CP_RING, true), s = whole;
  for (LsCpKind kind = LS_CP_RING; kind <= LS_CP_ULYSSES; kind++)
    for (uint32_t windowed = 0; windowed <= LS_LAYER_WINDOWED; windowed += LS_LAYER_WINDOWED) {
      LsContextPlace place = { .layer_kind = windowed, .cp_rank = 1, .step = kind == LS_CP_RING };
      LsContextStep before, after;
      double pairs = kind == LS_CP_ALL_GATHER ? 0.75 : 0.5;
      whole.cp_kind = s.cp_kind = kind;
      s.documents = kind == LS_CP_ALL_GATHER ? &parts : &documents;
      ls_context_step (&model, &whole, place, &before);
      ls_context_step (&model, &s, place, &after);
      LS_CHECK_INT (after.fwd.m, ==, before.fwd.m);
      LS_CHECK_INT (after.fwd.n, ==, (uint64_t) ((double) before.fwd.n * pairs));
      LS_CHECK_DOUBLE (after.fwd.flops, ==, before.fwd.flops * pairs * (windowed ? 1.5 : 1));
      LS_CHECK_DOUBLE (after.bwd.flops, ==, 2.5 * after.fwd.flops);
      LS_CHECK_DOUBLE (after.bwd.bytes, ==, before.bwd.bytes);
      LS_CHECK_DOUBLE (after.merge.bytes, ==, before.merge.bytes);
    }
}

/* The mask of model/operators_attention.c makes a kernel meet all pairs, and is kept in 16 bits. One longer
 * than the sequence is none. */
static void
a_window_that_is_a_mask_skips_nothing (void)
{
  LsModel m = llama (32, 4096, 32, 8, 14336, 32000);
  LsShard s = { .tp = 1, .cp = 1, .micro_batch = 1, .seq = 8192, .attention = LS_ATTENTION_FLASH };
  s.window_mask = true;
  s.dtype = LS_DTYPE_BF16;
  m.attn.window = 8193;
  g_autoptr (GArray) wide = operators_new (), masked = operators_new ();
  ls_operators_layer (&m, &s, LS_LAYER_WINDOWED, wide);
  m.attn.window = 4096;
  ls_operators_layer (&m, &s, LS_LAYER_WINDOWED, masked);
  const LsOperator *op = find_operator (masked, "attention"), *causal = find_operator (wide, "attention");
  LS_CHECK_INT (causal->n_fwd, ==, 1);
  LS_CHECK_INT (op->n_fwd, ==, 2);
  LS_CHECK_STR (op->fwd[0].name, "window-mask");
  LS_CHECK_DOUBLE (op->fwd[0].bytes, ==, 8192.0 * 8192 * 3);
  LS_CHECK_DOUBLE (op->fwd[1].flops, ==, 4 * 8192.0 * 8192 * 4096);
  LS_CHECK_DOUBLE (op->fwd[1].flops, ==, 2 * causal->fwd[0].flops);
  LS_CHECK_DOUBLE (op->igrad[0].flops, ==, 2.5 * op->fwd[1].flops);
  LS_CHECK (op->fwd[1].masked && op->igrad[0].masked && !causal->fwd[0].masked);
  LS_CHECK_INT (op->kept.saved_bytes - causal->kept.saved_bytes, ==, 8192 * 8192 * 2);
}

/* Attention in fp8: the worked example of model/operators_build.h, 8,192 tokens of 32 heads of 128 and 8 of keys. Bytes
 * of all kernels around the attention, and what is kept of Q, K and V. */
static void
attention_in_fp8_is_cast_around (void)
{
  const double T = 8192, q = 32 * 128, qkv = (32 + 16) * 128, block = 1 + 1.0 / 32;
  const struct {
    LsFp8Attention way;
    double fwd, igrad, kept;
  } ways[] = { { LS_FP8_ATTENTION_DELAYED, T * (qkv * 7 + q * 3), T * (q * 3 + qkv * 5), 1 },
               { LS_FP8_ATTENTION_CURRENT, T * qkv * 9, T * q * 5, 1 },
               { LS_FP8_ATTENTION_MXFP8, T * qkv * (2 + 2 * block), T * q * (2 + 2 * block), 2 * block } };
  const double sum = T * 256 * (8 * 32 + 2 * 8);
  LsModel m = llama (32, 4096, 32, 8, 14336, 128256);
  LsShard s = { .tp = 1, .cp = 1, .micro_batch = 1, .seq = 8192, .attention = LS_ATTENTION_FLASH };
  s.dtype = LS_DTYPE_FP8;
  double plain = sums (layer_operators (&m, &s)).saved;
  for (guint i = 0; i < G_N_ELEMENTS (ways); i++) {
    s.fp8.attention = ways[i].way;
    double saved = sums (layer_operators (&m, &s)).saved;
    LS_CHECK_DOUBLE (plain - saved, ==, T * qkv * (2 - ways[i].kept));
    g_autoptr (GArray) layer = layer_operators (&m, &s);
    const LsOperator *o = find_operator (layer, "attention");
    double own[2] = { 0 };
    for (uint32_t k = 0; k < o->n_fwd; k++)
      own[0] += o->fwd[k].kind == LS_KERNEL_ATTENTION_FWD ? 0 : o->fwd[k].bytes;
    for (uint32_t k = 0; k < o->n_igrad; k++) {
      bool is_attention = o->igrad[k].kind == LS_KERNEL_ATTENTION_BWD;
      own[1] += is_attention ? 0 : o->igrad[k].bytes;
      LS_CHECK (!is_attention || o->igrad[k].dtype == LS_DTYPE_FP8);
      LS_CHECK (!is_attention || o->igrad[k].by_blocks == (ways[i].way == LS_FP8_ATTENTION_MXFP8));
    }
    LS_CHECK_DOUBLE (own[0], ==, ways[i].fwd);
    LS_CHECK_DOUBLE (own[1], ==, ways[i].igrad + sum);
  }
  s.dtype = LS_DTYPE_BF16; /* as a layer at an end of the model has it */
  g_autoptr (GArray) layer = layer_operators (&m, &s);
  LS_CHECK_INT (find_operator (layer, "attention")->n_fwd, ==, 1);
  LS_CHECK_INT (find_operator (layer, "attention")->igrad[0].dtype, ==, LS_DTYPE_BF16);
}

LS_TEST_SUITE (LS_TEST (gradients_of_views_are_concatenated), LS_TEST (padding_is_taken_out_and_put_back),
               LS_TEST (the_host_reads_two_results_of_each_mask), LS_TEST (a_fused_loss_passes_once_each_way),
               LS_TEST (a_metric_is_a_loss_without_gradient),
               LS_TEST (steps_of_a_balanced_ring_compute_the_same), LS_TEST (steps_of_pytorch_sum_in_fp32),
               LS_TEST (an_unbalanced_rank_sees_what_is_before_it),
               LS_TEST (ulysses_has_whole_sequences_of_few_heads),
               LS_TEST (latent_attention_sends_what_its_heads_are_wide), LS_TEST (a_layer_keeps_a_cp_th),
               LS_TEST (gathered_inputs_may_be_kept), LS_TEST (attention_in_fp8_is_cast_around),
               LS_TEST (documents_leave_fewer_keys), LS_TEST (a_window_that_is_a_mask_skips_nothing))
