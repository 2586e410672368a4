/* Pins adapters on frozen weights (model/lora.h) against counts by hand: what learns, what is computed and kept, how
 * tensor parallelism cuts it, and weights of 4 bits. */
#include "ls_test.h"

#include "model_shapes.h"
#include "model/lora.h"

static GArray *
adapted (const LsModel *m, LsLora lora, uint32_t tp, bool sp)
{
  GArray *operators = operators_new ();
  LsShard s = shard (m, tp, sp, 1);
  s.lora = lora;
  ls_operators_layer (m, &s, 0, operators);
  return operators;
}

static uint64_t
n_params (const GArray *operators, bool is_frozen)
{
  uint64_t sum = 0;
  for (guint i = 0; i < operators->len; i++) {
    const LsOperator *op = &g_array_index (operators, LsOperator, i);
    for (uint32_t p = 0; p < op->n_params && op->is_frozen == is_frozen; p++)
      sum += op->param_numel[p];
  }
  return sum;
}

static double
gemm_flops (const LsKernel *kernels, uint32_t n)
{
  double flops = 0;
  for (uint32_t i = 0; i < n; i++)
    flops += is_gemm (&kernels[i]) ? kernels[i].flops : 0;
  return flops;
}

/* The worked example of lora.h: a layer of Llama 3.1 8B. Weights that do not learn have no gradients; each
 * adapter has three products of each of its two. */
static void
adapters_learn_alone (void)
{
  LsModel m = llama (32, 4096, 32, 8, 14336, 128256);
  LsLora lora = { .rank = 16, .modules = LS_LORA_ALL };
  double tokens = m.seq;
  g_autoptr (GArray) operators = adapted (&m, lora, 1, false), whole = adapted (&m, (LsLora) { 0 }, 1, false);
  LS_CHECK_INT (n_params (operators, false), ==,
                16 * (2 * 4096 + 2 * (4096 + 1024) + 2 * 4096 + 3 * (4096 + 14336)));
  LS_CHECK_INT (ls_lora_params (&m, &lora), ==, 32 * n_params (operators, false));
  LS_CHECK_INT (n_params (operators, true), ==, ls_model_layer_params (&m, 0));
  double flops = 0, frozen = 0;
  for (guint i = 0; i < operators->len; i++) {
    const LsOperator *op = &g_array_index (operators, LsOperator, i);
    *(op->is_adapter ? &flops : &frozen) += gemm_flops (op->fwd, op->n_fwd)
        + gemm_flops (op->igrad, op->n_igrad) + gemm_flops (op->wgrad, op->n_wgrad);
    LS_CHECK (op->is_adapter || op->n_wgrad == 0);
  }
  LS_CHECK_DOUBLE (flops, ==, 6 * tokens * (double) n_params (operators, false));
  LS_CHECK_DOUBLE (frozen, ==, 4 * tokens * (double) (ls_model_layer_linear_params (&m, 0)));

  /* Q alone: inputs of four products go, that of Q is kept, and 16 numbers a token. */
  lora.modules = LS_LORA_Q;
  g_autoptr (GArray) q = adapted (&m, lora, 1, false);
  uint64_t inputs = m.seq * (4096 + 4096 + 14336) * 2;
  LS_CHECK_INT (saved_bytes (q, true), ==, saved_bytes (whole, true) - inputs + m.seq * 16 * 2);
}

/* Beside a column-parallel layer 16 numbers a token are gathered, beside a row-parallel one summed; what is on
 * every rank is of its own tokens with sequence parallelism. */
static void
adapters_over_tensor_parallel_ranks (void)
{
  LsModel m = llama (32, 4096, 32, 8, 14336, 128256);
  LsLora lora = { .rank = 16, .modules = LS_LORA_Q };
  g_autoptr (GArray) column = adapted (&m, lora, 4, true);
  lora.modules = LS_LORA_DOWN;
  g_autoptr (GArray) row = adapted (&m, lora, 4, true);
  const LsOperator *a = find_operator (column, "lora-a"), *b = find_operator (column, "lora-b");
  LS_CHECK (a->tp == LS_TP_NONE && a->param_replicated && b->tp == LS_TP_COLUMN && !b->param_replicated);
  LS_CHECK_INT (a->fwd[0].m, ==, 2048);
  LS_CHECK_INT (b->fwd[0].m, ==, 8192);
  LS_CHECK_INT (b->param_numel[0], ==, 16 * 1024);
  LS_CHECK_INT (b->tp_bytes, ==, 8192 * 16 * 2);
  a = find_operator (row, "lora-a"), b = find_operator (row, "lora-b");
  LS_CHECK (a->tp == LS_TP_ROW && !a->param_replicated && b->tp == LS_TP_NONE && b->param_replicated);
  LS_CHECK_INT (a->param_numel[0], ==, 16 * 3584);
  LS_CHECK_INT (a->tp_bytes, ==, 8192 * 16 * 2);
  LS_CHECK_INT (b->fwd[0].m, ==, 2048);
}

/* 4.127 bits a weight are read, 16 written, before each use. */
static void
weights_of_four_bits_are_written_out (void)
{
  LsModel m = llama (32, 4096, 32, 8, 14336, 128256);
  LsLora lora = { .rank = 16, .modules = LS_LORA_ALL, .is_nf4 = true };
  g_autoptr (GArray) operators = adapted (&m, lora, 1, false);
  const LsOperator *fc1 = find_operator (operators, "fc1");
  double numel = 2 * 4096.0 * 14336;
  LS_CHECK (fc1->is_nf4 && !find_operator (operators, "input-norm")->is_nf4);
  LS_CHECK_STR (fc1->fwd[0].name, "nf4-dequant");
  LS_CHECK_STR (fc1->igrad[0].name, "nf4-dequant");
  LS_CHECK_NEAR (fc1->fwd[0].bytes, numel * (4.127 / 8 + 2), 1e-7);
  LS_CHECK_INT (ls_nf4_bytes (8000), ==, 4127);
}

/* Those of the model, or a word that is none. */
static void
modules_by_name (void)
{
  LsModel m = llama (12, 1024, 8, 2, 4096, 32000), g = gpt (2, 1024, 16), moe = m;
  uint32_t set = 0;
  char *wrong = NULL;
  moe.n_experts = 4;
  LS_CHECK (ls_lora_modules (&m, NULL, &set, &wrong) && set == LS_LORA_ALL);
  LS_CHECK (ls_lora_modules (&m, "q,v", &set, &wrong) && set == (LS_LORA_Q | LS_LORA_V));
  LS_CHECK (ls_lora_modules (&g, "all-linear", &set, &wrong) && set == (LS_LORA_ALL & ~LS_LORA_GATE));
  LS_CHECK (ls_lora_modules (&moe, "all-linear", &set, &wrong) && set == LS_LORA_ATTENTION);
  LS_CHECK (!ls_lora_modules (&moe, "q,down", &set, &wrong));
  LS_CHECK_STR (wrong, "down");
  g_clear_pointer (&wrong, g_free);
  LS_CHECK (!ls_lora_modules (&g, "gate", &set, &wrong));
  g_clear_pointer (&wrong, g_free);
}

LS_TEST_SUITE (LS_TEST (adapters_learn_alone), LS_TEST (adapters_over_tensor_parallel_ranks),
               LS_TEST (weights_of_four_bits_are_written_out), LS_TEST (modules_by_name))
