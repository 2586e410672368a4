/* Pins attention over sequences that are cut over ranks: shapes of its steps, and what is kept. */
#include "ls_test.h"

#include "model/operators.h"

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
shard (uint32_t cp, LsCpKind kind, bool balance)
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

/* The worked example of operators_context.c. */
static void
steps_of_a_balanced_ring_compute_the_same (void)
{
  LsShard s = shard (4, LS_CP_RING, true);
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

static void
an_unbalanced_rank_sees_what_is_before_it (void)
{
  LsShard ring = shard (4, LS_CP_RING, false), gather = shard (4, LS_CP_ALL_GATHER, false);
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
  LsShard s = shard (4, LS_CP_ULYSSES, true);
  LsContextStep step;
  ls_context_step (&model, &s, (LsContextPlace) { 0 }, &step);
  LS_CHECK_INT (step.fwd.batch, ==, 8);
  LS_CHECK_INT (step.fwd.m, ==, 8192);
  LS_CHECK_DOUBLE (step.fwd.flops, ==, 4 * 8192.0 * 8192 * 1024 / 2);
  LS_CHECK_DOUBLE (step.merge.bytes, ==, 0.0);
  LS_CHECK_INT (ls_context_q_bytes (&model, &s), ==, 2048 * 4096 * 2);
  LS_CHECK_INT (ls_context_k_bytes (&model, &s), ==, 2048 * 1024 * 2);
}

static uint64_t
kept (const LsShard *s)
{
  g_autoptr (GArray) operators = g_array_new (FALSE, FALSE, sizeof (LsOperator));
  uint64_t sum = 0;
  ls_operators_layer (&model, s, 0, operators);
  for (guint i = 0; i < operators->len; i++)
    sum += g_array_index (operators, LsOperator, i).saved_bytes;
  return sum;
}

/* Ulysses keeps the context twice. */
static void
a_layer_keeps_a_cp_th (void)
{
  LsShard whole = shard (1, LS_CP_RING, true), ring = shard (4, LS_CP_RING, true),
          gather = shard (4, LS_CP_ALL_GATHER, true), ulysses = shard (4, LS_CP_ULYSSES, true);
  LS_CHECK_INT (4 * kept (&ring), ==, kept (&whole));
  LS_CHECK_INT (4 * kept (&gather), ==, kept (&whole));
  LS_CHECK_INT (kept (&ulysses), ==, kept (&ring) + 2048 * 4096 * 2);
}

/* Inputs of qkv and fc1, of 2 b s h bytes each, whole instead of a part. */
static void
gathered_inputs_may_be_kept (void)
{
  LsShard s = shard (1, LS_CP_RING, true);
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
  LsShard whole = shard (4, LS_CP_RING, true), s = whole;
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

LS_TEST_SUITE (LS_TEST (steps_of_a_balanced_ring_compute_the_same),
               LS_TEST (an_unbalanced_rank_sees_what_is_before_it),
               LS_TEST (ulysses_has_whole_sequences_of_few_heads), LS_TEST (a_layer_keeps_a_cp_th),
               LS_TEST (gathered_inputs_may_be_kept), LS_TEST (documents_leave_fewer_keys))
