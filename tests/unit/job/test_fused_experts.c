/* Pins lists of kernels that are joined, and what Megatron-Core's of 2026 say of experts in mxfp8 and of the
 * loss (strategies/kernels: megatron-core-op-fuser, megatron-core-paged-stash, megatron-core-te-loss). */
#include "ls_test.h"

#include <string.h>

#include "data/jobs/job_files.h"
#include "model/operators.h"
#include "strategy/strategy.h"

enum { TOKENS = 2 * 2048, HIDDEN = 2048, FFN = 768, ROWS = TOKENS * 8, VOCAB = 150016 };

static const LsModel model = { .n_layers = 2,
                               .hidden = HIDDEN,
                               .n_heads = 32,
                               .n_kv_heads = 4,
                               .head_dim = 128,
                               .ffn = FFN,
                               .vocab = VOCAB,
                               .seq = 2048,
                               .moe.n_experts = 128,
                               .moe.top_k = 8,
                               .moe.expert_ffn = FFN,
                               .moe.every = 1,
                               .norm = LS_NORM_RMSNORM,
                               .mlp = LS_MLP_SWIGLU,
                               .position = LS_POSITION_ROPE };

static LsShard
shard_of (LsDtype dtype, const LsRecipes *recipes)
{
  return (LsShard) { .tp = 1,
                     .experts.etp = 1,
                     .experts.ep = 8,
                     .cp = 1,
                     .micro_batch = 2,
                     .seq = 2048,
                     .attention = LS_ATTENTION_FLASH,
                     .dtype = dtype,
                     .fp8.recipe = LS_FP8_MXFP8,
                     .grad_dtype = LS_DTYPE_BF16,
                     .recipes = recipes };
}

static LsRecipes *
load (const char *lists)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsRecipes *recipes = ls_recipes_load (lists, diags);
  LS_CHECK (recipes != NULL);
  return recipes;
}

/* A later list goes first, what both are based on stands at the end, once. */
static void
a_later_list_goes_first (void)
{
  g_autoptr (LsRecipes) joined = load ("megatron-core-op-fuser+megatron-core-unfused-router"),
                        alone = load ("megatron-core-unfused-router");
  static const char *const chain[] = { "megatron-core-op-fuser+megatron-core-unfused-router",
                                       "megatron-core-op-fuser",
                                       "megatron-core",
                                       "megatron-core-unfused",
                                       "megatron-core-mamba2",
                                       "transformer-engine" };
  const LsRecipes *list = joined;
  for (guint i = 0; i < G_N_ELEMENTS (chain) && LS_CHECK (list != NULL); i++, list = list->base)
    LS_CHECK_STR (list->name, chain[i]);
  LS_CHECK (list == NULL);
  LS_CHECK (ls_recipes_fuse_experts (joined) && !ls_recipes_fuse_experts (alone));
  LsModel m = model;
  m.moe.sigmoid_router = true;
  LS_CHECK_INT (ls_recipe_find (joined, LS_RECIPE_ROUTER, &m)->forward->len, ==,
                ls_recipe_find (alone, LS_RECIPE_ROUTER, &m)->forward->len);
}

/* Of a list that is not there it is that one which is told. */
static void
a_part_that_is_not_there_is_told (void)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LS_CHECK (!ls_recipes_load ("megatron-core-op-fuser+megatron-core-stash", diags));
  g_autofree char *said = ls_diag_list_format (diags);
  LS_CHECK (strstr (said, "megatron-core-stash") && !strstr (said, "op-fuser+"));
}

static const LsOperator *
operator_of (const GArray *operators, const char *name)
{
  for (guint i = 0; i < operators->len; i++)
    if (strcmp (g_array_index (operators, LsOperator, i).name, name) == 0)
      return &g_array_index (operators, LsOperator, i);
  return NULL;
}

static double
bytes_of (const LsKernel *kernels, uint32_t n)
{
  double bytes = 0;
  for (uint32_t i = 0; i < n; i++)
    bytes += kernels[i].bytes;
  return bytes;
}

/* Bytes of the three operators, forward and backward but for gradients of weights, and the launches of all. */
static double
experts_bytes (LsDtype dtype, const char *lists, uint32_t *ret_launches)
{
  static const char *const names[] = { "expert-fc1", "expert-act", "expert-fc2" };
  g_autoptr (LsRecipes) recipes = load (lists);
  const LsShard shard = shard_of (dtype, recipes);
  g_autoptr (GArray) operators = ls_operators_new ();
  ls_operators_layer (&model, &shard, 0, operators);
  double bytes = 0;
  *ret_launches = 0;
  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    const LsOperator *op = operator_of (operators, names[i]);
    if (!LS_CHECK (op != NULL))
      return 0;
    bytes += bytes_of (op->fwd, op->n_fwd) + bytes_of (op->igrad, op->n_igrad);
    for (uint32_t k = 0; k < op->n_fwd; k++)
      *ret_launches += MAX (1, op->fwd[k].n_launches);
  }
  return bytes;
}

/* By hand, bytes a row and column of an expert: forward the activation (6) and the cast behind it
 * (2 + 2 * 33 / 32) go, the cast is written by the product; backward its gradient (10), the cast of that for
 * two columns (4 + 4 * 33 / 32) and the product's output (2) go, and it reads 4 and writes the cast of two. Of
 * the scores, 4 and 8 bytes a row go, too. In bf16 nothing is fused. */
static void
products_of_experts_hold_what_is_between (void)
{
  uint32_t n_apart, n_fused, n;
  double apart = experts_bytes (LS_DTYPE_FP8, "megatron-core-unfused", &n_apart),
         fused = experts_bytes (LS_DTYPE_FP8, "megatron-core-op-fuser", &n_fused), cast = 2 * 33.0 / 32;
  LS_CHECK_DOUBLE (apart - fused, ==,
                   (double) ROWS * (FFN * (6 + 2 + 10 + 4 + 2.0 * cast + 2 - 4 - 2 * cast) + 4 + 8));
  LS_CHECK_INT (n_apart, ==, 16 * 4 + 1); /* of 16 experts two casts, two products; the activation */
  LS_CHECK_INT (n_fused, ==, 3);
  LS_CHECK_DOUBLE (experts_bytes (LS_DTYPE_BF16, "megatron-core-unfused", &n), ==,
                   experts_bytes (LS_DTYPE_BF16, "megatron-core-op-fuser", &n));
}

/* Each way two inputs in mxfp8, along one dimension, the activation's input in 16 bits and the scores, each read
 * and written. */
static void
what_experts_keep_is_copied (void)
{
  g_autoptr (LsRecipes) recipes = load ("megatron-core-op-fuser+megatron-core-paged-stash");
  const LsShard shard = shard_of (LS_DTYPE_FP8, recipes);
  g_autoptr (GArray) operators = ls_operators_new ();
  ls_operators_layer (&model, &shard, 0, operators);
  const LsOperator *op = operator_of (operators, "expert-stash");
  if (!LS_CHECK (op != NULL))
    return;
  double bytes = 2.0 * ROWS * (33.0 / 32 * (HIDDEN + FFN) + 2 * 2 * FFN + 4);
  LS_CHECK_DOUBLE (bytes_of (op->fwd, op->n_fwd), ==, bytes);
  LS_CHECK_DOUBLE (bytes_of (op->igrad, op->n_igrad), ==, bytes);
}

/* Logits in 16 bits: read, read and written; backward read and written. They are kept, nothing else. */
static void
the_loss_reads_logits_twice (void)
{
  g_autoptr (LsRecipes) recipes = load ("megatron-core-unfused+megatron-core-te-loss");
  const LsShard shard = shard_of (LS_DTYPE_BF16, recipes);
  g_autoptr (GArray) operators = ls_operators_new ();
  ls_operators_head (&model, &shard, true, operators);
  const LsOperator *op = operator_of (operators, "loss");
  if (!LS_CHECK (op != NULL))
    return;
  double logits = (double) TOKENS * VOCAB;
  LS_CHECK_DOUBLE (bytes_of (op->fwd, op->n_fwd), ==, 6 * logits);
  LS_CHECK_DOUBLE (bytes_of (op->igrad, op->n_igrad), ==, 4 * logits);
  LS_CHECK_DOUBLE ((double) op->kept.saved_bytes, ==, 2 * logits);
}

/* Of biases behind experts (GPT-OSS), which no product adds: with probabilities in 16 bits, bytes a row and
 * column of b p, t + b p and what is joined, 2 + 6 + 4, and 4 + 2 + 4 + 2 + 4 backward; DeepEP and HybridEP
 * bring probabilities in fp32, so that b p (4), the sum (2 + 4 + 4) and what is joined (8) are in fp32, and a
 * cast (6) follows; backward a cast (6), two products (8 each), two sums (4 each), casts back (6) and what is
 * joined (4). What each expert has is a launch for each. */
static void
probabilities_in_fp32_widen_what_they_scale (void)
{
  const double elements = (double) TOKENS * model.moe.top_k * HIDDEN,
               bytes[2][2]
      = { { 2 + 6 + 4, 4 + 2 + 4 + 2 + 4 }, { 4 + 10 + 8 + 6, 6 + 8 + 4 + 8 + 4 + 6 + 4 } };
  g_autoptr (LsRecipes) recipes = load ("megatron-core-unfused");
  LsModel m = model;
  m.mlp = LS_MLP_QUICK_GEGLU, m.act_limit = m.linear_bias = true;
  for (int once = 0; once <= 1; once++) {
    LsShard shard = shard_of (LS_DTYPE_BF16, recipes);
    shard.experts.sends_tokens_once = once;
    g_autoptr (GArray) operators = ls_operators_new ();
    ls_operators_layer (&m, &shard, 0, operators);
    const LsOperator *op = operator_of (operators, "expert-fc2");
    double streamed[2] = { 0, 0 };
    uint32_t launches = 0;
    for (uint32_t k = 0; LS_CHECK (op != NULL) && k < (uint32_t) op->n_fwd + op->n_igrad; k++) {
      const LsKernel *kernel = k < op->n_fwd ? &op->fwd[k] : &op->igrad[k - op->n_fwd];
      bool is_product = ls_kernel_is_gemm (kernel->kind);
      streamed[k >= op->n_fwd] += is_product ? 0 : kernel->bytes;
      launches += is_product ? 0 : MAX (1, kernel->n_launches);
    }
    LS_CHECK_DOUBLE (streamed[0], ==, bytes[once][0] * elements);
    LS_CHECK_DOUBLE (streamed[1], ==, bytes[once][1] * elements);
    LS_CHECK_INT (launches, ==, once ? 2 * 16 + 2 + 5 * 16 + 2 : 2 * 16 + 1 + 4 * 16 + 1);
  }
}

/* Before the products and behind them, both ways: 4 bytes an element. Nobody pads in bf16, nor rows that arrive
 * padded, nor those that the router sends in multiples. */
static void
rows_of_experts_are_padded_in_fp8 (void)
{
  static const struct {
    const char *lists;
    LsDtype dtype;
    bool arrives_padded, pads;
  } cases[] = { { "megatron-core", LS_DTYPE_FP8, false, true },
                { "megatron-core", LS_DTYPE_NVFP4, false, true },
                { "megatron-core", LS_DTYPE_BF16, false, false },
                { "megatron-core", LS_DTYPE_FP8, true, false },
                { "megatron-core+megatron-core-router-padding", LS_DTYPE_FP8, false, false } };
  static const char *const names[] = { "expert-pad", "expert-unpad" };
  for (guint i = 0; i < G_N_ELEMENTS (cases) * G_N_ELEMENTS (names); i++) {
    g_autoptr (LsRecipes) recipes = load (cases[i / 2].lists);
    LsShard s = shard_of (cases[i / 2].dtype, recipes);
    s.experts.pads_sent_tokens = cases[i / 2].arrives_padded;
    g_autoptr (GArray) operators = ls_operators_new ();
    ls_operators_layer (&model, &s, 0, operators);
    double bytes = 0;
    for (guint k = 0; k < operators->len; k++) {
      const LsOperator *o = &g_array_index (operators, LsOperator, k);
      if (strcmp (o->name, names[i % 2]) == 0 && o->n_fwd > 0)
        bytes += o->fwd[0].bytes + o->igrad[0].bytes;
    }
    LS_CHECK_DOUBLE (bytes, ==, cases[i / 2].pads ? 2 * 4.0 * ROWS * HIDDEN : 0);
  }
}

LS_TEST_SUITE (LS_TEST (a_later_list_goes_first), LS_TEST (a_part_that_is_not_there_is_told),
               LS_TEST (products_of_experts_hold_what_is_between), LS_TEST (what_experts_keep_is_copied),
               LS_TEST (the_loss_reads_logits_twice), LS_TEST (rows_of_experts_are_padded_in_fp8),
               LS_TEST (probabilities_in_fp32_widen_what_they_scale))
