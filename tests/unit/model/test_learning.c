/* Pins the weights that learn: what an optimizer step moves, and adapters on frozen ones. */
#include "ls_test.h"
#include "model_shapes.h"

#include "model/lora.h"
#include "model/operators.h"

/* Pins the bytes of an optimizer step. */

static GArray *
optimizer (uint64_t n_params, LsDtype dtype, LsDtype grad_dtype)
{
  GArray *kernels = g_array_new (FALSE, FALSE, sizeof (LsKernel));
  ls_optimizer_kernels (n_params, dtype, grad_dtype, kernels);
  return kernels;
}

static double
bytes_of (const GArray *kernels, const char *name)
{
  for (guint i = 0; i < kernels->len; i++)
    if (g_str_equal (g_array_index (kernels, LsKernel, i).name, name))
      return g_array_index (kernels, LsKernel, i).bytes;
  return 0;
}

static double
bytes_per_param (LsDtype dtype, LsDtype grad_dtype)
{
  g_autoptr (GArray) kernels = optimizer (1000, dtype, grad_dtype);
  double bytes = 0;
  for (guint i = 0; i < kernels->len; i++)
    bytes += g_array_index (kernels, LsKernel, i).bytes / 1000;
  return bytes;
}

/* norm 4, clip 8, Adam 28 always; 16-bit gradients are copied to fp32 (6); fp16
 * unscales (8); masters are copied to 16-bit weights (6). */
static void
bytes_follow_from_the_recipe (void)
{
  LS_CHECK_DOUBLE (bytes_per_param (LS_DTYPE_BF16, LS_DTYPE_BF16), ==, 6 + 40 + 6);
  LS_CHECK_DOUBLE (bytes_per_param (LS_DTYPE_BF16, LS_DTYPE_FP32), ==, 40 + 6);
  LS_CHECK_DOUBLE (bytes_per_param (LS_DTYPE_FP16, LS_DTYPE_FP16), ==, 6 + 8 + 40 + 6);
  LS_CHECK_DOUBLE (bytes_per_param (LS_DTYPE_FP32, LS_DTYPE_FP32), ==, 40);
}

/* opt-2 (tests/README.md) counts fused kernels: 30 bytes for each of
 * 70e9 / 64 parameters at 85 % of 3.35 TB/s, 11.5 ms. Adam alone moves 28 of them;
 * the 16-bit write is a kernel of its own here. */
static void
adam_moves_28_of_the_30_bytes_of_a_fused_step (void)
{
  g_autoptr (GArray) kernels = optimizer (70000000000 / 64, LS_DTYPE_BF16, LS_DTYPE_FP32);
  LS_CHECK_NEAR (bytes_of (kernels, "adam") * 30 / 28 / (0.85 * 3.35e12), 11.5e-3, 0.005);
}

static void
only_fp16_unscales (void)
{
  g_autoptr (GArray) fp16 = optimizer (10, LS_DTYPE_FP16, LS_DTYPE_FP32);
  g_autoptr (GArray) bf16 = optimizer (10, LS_DTYPE_BF16, LS_DTYPE_FP32);
  LS_CHECK_DOUBLE (bytes_of (fp16, "grad-unscale"), ==, 80);
  LS_CHECK_DOUBLE (bytes_of (bf16, "grad-unscale"), ==, 0);
  LS_CHECK_INT (fp16->len, ==, bf16->len + 1);
}

static GArray *
casts (LsDtype dtype)
{
  GArray *kernels = g_array_new (FALSE, FALSE, sizeof (LsKernel));
  ls_weight_cast_kernels (16, dtype, kernels);
  return kernels;
}

/* fp8: 2 bytes read, 1 written in each of two layouts. nvfp4: a pass over 2 bytes for the maximum, then 2
 * read and 9/16 written twice. The optimizer's own kernels are those of bf16. */
static void
scaled_formats_cast_weights (void)
{
  g_autoptr (GArray) fp8 = casts (LS_DTYPE_FP8), nvfp4 = casts (LS_DTYPE_NVFP4), bf16 = casts (LS_DTYPE_BF16);
  LS_CHECK_DOUBLE (bytes_of (fp8, "fp8-weight-cast"), ==, 16 * 4);
  LS_CHECK_DOUBLE (bytes_of (nvfp4, "nvfp4-weight-amax"), ==, 16 * 2);
  LS_CHECK_DOUBLE (bytes_of (nvfp4, "nvfp4-weight-cast"), ==, 16 * 2 + 2 * 9);
  LS_CHECK_INT (bf16->len, ==, 0);
  LS_CHECK_DOUBLE (bytes_per_param (LS_DTYPE_NVFP4, LS_DTYPE_BF16), ==,
                   bytes_per_param (LS_DTYPE_BF16, LS_DTYPE_BF16));
}

/* The gradient-norm all-reduce goes after the one REDUCTION, before the clip. */
static void
one_reduction_comes_before_clip_and_adam (void)
{
  g_autoptr (GArray) kernels = optimizer (10, LS_DTYPE_FP16, LS_DTYPE_FP16);
  const char *expected[]
      = { "main-grad-copy", "grad-unscale", "grad-norm", "grad-clip", "adam", "weight-copy" };
  if (!LS_CHECK (kernels->len == G_N_ELEMENTS (expected)))
    return;
  for (guint i = 0; i < kernels->len; i++) {
    const LsKernel *k = &g_array_index (kernels, LsKernel, i);
    LS_CHECK_STR (k->name, expected[i]);
    LS_CHECK_INT (k->kind == LS_KERNEL_REDUCTION, ==, g_str_equal (k->name, "grad-norm"));
  }
}

/* FSDP: fp32 shards only. Norm 4, clip 8, Adam 28; fp16 unscales. */
static void
shards_are_stepped_on_in_place (void)
{
  static const LsDtype dtypes[] = { LS_DTYPE_BF16, LS_DTYPE_FP32, LS_DTYPE_FP16 };
  for (guint i = 0; i < G_N_ELEMENTS (dtypes); i++) {
    g_autoptr (GArray) kernels = g_array_new (FALSE, FALSE, sizeof (LsKernel));
    ls_optimizer_kernels_own (10, dtypes[i], LS_DTYPE_FP32, kernels);
    LS_CHECK_INT (kernels->len, ==, dtypes[i] == LS_DTYPE_FP16 ? 4 : 3);
    LS_CHECK_DOUBLE (bytes_of (kernels, "grad-norm") + bytes_of (kernels, "grad-clip")
                         + bytes_of (kernels, "adam"),
                     ==, 400);
  }
}

/* Transformer Engine's FusedAdam: gradients of 2 bytes as they are, norm 2, clip 4; the step in fp32: 2 + 16 + 8
 * with the 16 bits that bf16 lacks. Moments of 2 bytes are cast there and back, 6 each way; of 1 byte 5, and 9
 * with its largest value; fp16 is scaled by 8 more each way, a master too. */
static void
narrower_states_are_cast (void)
{
  const LsAdamStates bf16 = { LS_MASTER_REMAINDER, LS_DTYPE_BF16, LS_DTYPE_FP8 },
                     fp16 = { LS_MASTER_FP16, LS_DTYPE_FP32, LS_DTYPE_FP32 },
                     plain = { LS_MASTER_FP32, 0, 0 };
  g_autoptr (GArray) a = g_array_new (FALSE, FALSE, sizeof (LsKernel)),
                     b = g_array_new (FALSE, FALSE, sizeof (LsKernel));
  double sum_a = 0, sum_b = 0;
  ls_optimizer_kernels_narrow (10, LS_DTYPE_BF16, LS_DTYPE_BF16, &bf16, a);
  ls_optimizer_kernels_narrow (10, LS_DTYPE_BF16, LS_DTYPE_FP32, &fp16, b);
  for (guint i = 0; i < a->len; i++)
    sum_a += g_array_index (a, LsKernel, i).bytes;
  for (guint i = 0; i < b->len; i++)
    sum_b += g_array_index (b, LsKernel, i).bytes;
  LS_CHECK_DOUBLE (sum_a, ==, 10 * (2 + 4 + 6 + 5 + 26 + 6 + 9));
  LS_CHECK_DOUBLE (sum_b, ==, 10 * (4 + 8 + 14 + 30 + 18));
  LS_CHECK_INT (ls_adam_bytes (&bf16, LS_DTYPE_BF16), ==, 2 + 2 + 1);
  LS_CHECK_INT (ls_adam_bytes (&fp16, LS_DTYPE_BF16), ==, 2 + 4 + 4);
  LS_CHECK_INT (ls_adam_bytes (&plain, LS_DTYPE_FP32), ==, 8);
  LS_CHECK (ls_adam_is_plain (&plain) && !ls_adam_is_plain (&fp16));
}

/* Pins adapters on frozen weights (model/lora.h) against counts by hand: what learns, what is computed and kept, how
 * tensor parallelism cuts it, and weights of 4 bits. */

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
    for (uint32_t p = 0; p < op->params.n && op->params.is_frozen == is_frozen; p++)
      sum += op->params.numel[p];
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
    *(op->params.is_adapter ? &flops : &frozen) += gemm_flops (op->fwd, op->n_fwd)
        + gemm_flops (op->igrad, op->n_igrad) + gemm_flops (op->wgrad, op->n_wgrad);
    LS_CHECK (op->params.is_adapter || op->n_wgrad == 0);
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
  LS_CHECK (a->tp == LS_TP_NONE && a->params.is_replicated && b->tp == LS_TP_COLUMN
            && !b->params.is_replicated);
  LS_CHECK_INT (a->fwd[0].m, ==, 2048);
  LS_CHECK_INT (b->fwd[0].m, ==, 8192);
  LS_CHECK_INT (b->params.numel[0], ==, 16 * 1024);
  LS_CHECK_INT (b->comm.tp_bytes, ==, 8192 * 16 * 2);
  a = find_operator (row, "lora-a"), b = find_operator (row, "lora-b");
  LS_CHECK (a->tp == LS_TP_ROW && !a->params.is_replicated && b->tp == LS_TP_NONE && b->params.is_replicated);
  LS_CHECK_INT (a->params.numel[0], ==, 16 * 3584);
  LS_CHECK_INT (a->comm.tp_bytes, ==, 8192 * 16 * 2);
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
  LS_CHECK (fc1->params.is_nf4 && !find_operator (operators, "input-norm")->params.is_nf4);
  LS_CHECK_STR (fc1->fwd[0].name, "nf4-dequant");
  LS_CHECK_STR (fc1->igrad[0].name, "nf4-dequant");
  LS_CHECK_NEAR (fc1->fwd[0].bytes, numel * (4.127 / 8 + 2), 1e-7);
  LS_CHECK_INT (ls_nf4_bytes (8000), ==, 4127);
}

/* Of 8,192 tokens: the norm writes 16 bits, for the adapter too; a frozen product of fp8 has its input and its
 * gradient in one layout (3 bytes an element, a maximum first with scales of now) and, of weights in fp8 alone,
 * their transpose; adapters multiply 16 bits. What learns has both layouts. */
static void
frozen_products_of_fp8_want_one_layout (void)
{
  LsModel m = llama (32, 4096, 32, 8, 14336, 128256);
  LsShard s = shard (&m, 1, false, 1);
  s.dtype = LS_DTYPE_FP8;
  for (int recipe = LS_FP8_DELAYED; recipe <= LS_FP8_CURRENT; recipe++) {
    g_autoptr (GArray) frozen = operators_new (), learns = operators_new ();
    s.fp8.recipe = (LsFp8Recipe) recipe;
    s.lora = (LsLora) { 0 };
    ls_operators_layer (&m, &s, 0, learns);
    s.lora = (LsLora) { .rank = 16, .modules = LS_LORA_ATTENTION, .is_fp8 = true };
    ls_operators_layer (&m, &s, 0, frozen);
    double tokens = s.micro_batch * (double) s.seq;
    uint32_t first = recipe == LS_FP8_CURRENT ? 3 : 0; /* behind the maximum, its zero and the scale */
    const LsOperator *norm = find_operator (frozen, "input-norm"), *fc2 = find_operator (frozen, "fc2");
    LS_CHECK_NEAR (norm->fwd[0].bytes, tokens * 4096 * 4, 1e-9);
    LS_CHECK_STR (fc2->fwd[first].name, "fp8-cast");
    LS_CHECK_NEAR (fc2->fwd[first].bytes, tokens * 14336 * 3, 1e-9);
    LS_CHECK_NEAR (fc2->igrad[first].bytes, tokens * 4096 * 3, 1e-9);
    LS_CHECK_STR (fc2->igrad[first + 1].name, "fp8-transpose");
    LS_CHECK_NEAR (fc2->igrad[first + 1].bytes, 2 * 4096.0 * 14336, 1e-9);
    LS_CHECK_INT (find_operator (frozen, "lora-a")->fwd[0].dtype, ==, LS_DTYPE_BF16);
    LS_CHECK_STR (find_operator (learns, "fc2")->fwd[first].name, "fp8-cast-transpose");
  }
}

/* Those of the model, or a word that is none. */
static void
modules_by_name (void)
{
  LsModel m = llama (12, 1024, 8, 2, 4096, 32000), g = gpt (2, 1024, 16), moe = m;
  uint32_t set = 0;
  char *wrong = NULL;
  moe.moe.n_experts = 4;
  LS_CHECK (ls_lora_modules (&m, NULL, &set, &wrong) && set == (LS_LORA_ATTENTION | LS_LORA_MLP));
  LS_CHECK (ls_lora_modules (&m, "q,v", &set, &wrong) && set == (LS_LORA_Q | LS_LORA_V));
  LS_CHECK (ls_lora_modules (&g, "all-linear", &set, &wrong)
            && set == (LS_LORA_ATTENTION | LS_LORA_UP | LS_LORA_DOWN));
  LS_CHECK (ls_lora_modules (&moe, "all-linear", &set, &wrong) && set == LS_LORA_ATTENTION);
  LS_CHECK (!ls_lora_modules (&moe, "q,down", &set, &wrong));
  LS_CHECK_STR (wrong, "down");
  g_clear_pointer (&wrong, g_free);
  LS_CHECK (!ls_lora_modules (&g, "gate", &set, &wrong));
  g_clear_pointer (&wrong, g_free);
}

LS_TEST_SUITE (LS_TEST (narrower_states_are_cast), LS_TEST (shards_are_stepped_on_in_place),
               LS_TEST (bytes_follow_from_the_recipe),
               LS_TEST (adam_moves_28_of_the_30_bytes_of_a_fused_step), LS_TEST (only_fp16_unscales),
               LS_TEST (scaled_formats_cast_weights), LS_TEST (one_reduction_comes_before_clip_and_adam),
               LS_TEST (adapters_learn_alone), LS_TEST (adapters_over_tensor_parallel_ranks),
               LS_TEST (weights_of_four_bits_are_written_out),
               LS_TEST (frozen_products_of_fp8_want_one_layout), LS_TEST (modules_by_name))
