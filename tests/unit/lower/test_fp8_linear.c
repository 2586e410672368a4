/* What runs again and what is kept of products in fp8 where operators are chosen one by one: of torchao's, which
 * are products of PyTorch, as of those in bf16; of Transformer Engine's nothing is kept. */
#include "fixtures.h"

typedef struct {
  uint64_t kept;
  double flops;
  guint n_amax, n_casts;
} Again;

static Again
run_again (LsDtype dtype, LsFp8Linear linear)
{
  const LsModel m = small_llama ();
  LsStrategy s = job (1, 1);
  s.dp = s.gpus = 2;
  s.global_batch = 4;
  s.dp_kind = LS_DP_FSDP2;
  s.recompute = LS_RECOMPUTE_SELECTIVE;
  s.memory.recompute_parts = LS_RECOMPUTE_OP;
  s.dtype = dtype;
  s.opt.grad_dtype = LS_DTYPE_FP32;
  s.fp8.recipe = LS_FP8_CURRENT;
  s.fp8.linear = linear;
  g_autoptr (LsPlan) plan = lowered_model (&m, &s);
  ls_strategy_clear (&s);
  if (!LS_CHECK (plan != NULL))
    return (Again) { 0 };
  Sums sums = sums_of (plan, 0);
  Again again = { .kept = sums.allocated, .flops = sums.flops[LS_TAG_RECOMPUTE] };
  for (uint32_t i = 0; i < plan->programs[0].n_instances; i++) {
    const LsSegment *seg = &plan->segments[plan->programs[0].instances[i].segment];
    for (uint32_t o = 0; o < seg->n_ops; o++) {
      bool is_again = seg->ops[o].tag == LS_TAG_RECOMPUTE;
      again.n_amax += is_again && strcmp (seg->ops[o].name, "fp8-amax") == 0;
      again.n_casts += is_again && strcmp (seg->ops[o].name, "fp8-cast") == 0;
    }
  }
  return again;
}

/* 2 layers of 2 micro-batches. Of q, k, v, the projection, gate, up, down run again k, the projection and up,
 * whose inputs and weights are cast again; their maxima are kept. */
static void
products_of_torchao_are_kept_as_in_bf16 (void)
{
  Again bf16 = run_again (LS_DTYPE_BF16, LS_FP8_LINEAR_TE),
        torchao = run_again (LS_DTYPE_FP8, LS_FP8_LINEAR_TORCHAO),
        cast = run_again (LS_DTYPE_FP8, LS_FP8_LINEAR_TORCHAO_CAST),
        te = run_again (LS_DTYPE_FP8, LS_FP8_LINEAR_TE);
  LS_CHECK_INT (torchao.kept, ==, bf16.kept);
  LS_CHECK_INT (cast.kept, ==, bf16.kept);
  LS_CHECK_NEAR (torchao.flops, bf16.flops, 1e-12);
  LS_CHECK_INT (torchao.n_amax, ==, 0);
  LS_CHECK_INT (torchao.n_casts, ==, 2 * 2 * 3 * 2);
  LS_CHECK (te.kept < bf16.kept && te.flops > bf16.flops);
}

/* A program that would have torchao's linear layers in fp8 runs a job in bf16 as any other, and keeps its word
 * for jobs in fp8. */
static void
in_bf16_they_are_all_the_same (void)
{
  Again te = run_again (LS_DTYPE_BF16, LS_FP8_LINEAR_TE),
        torchao = run_again (LS_DTYPE_BF16, LS_FP8_LINEAR_TORCHAO);
  LS_CHECK_INT (torchao.kept, ==, te.kept);
  LS_CHECK_NEAR (torchao.flops, te.flops, 1e-12);
  LS_CHECK_INT (torchao.n_casts + torchao.n_amax, ==, 0);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsStrategy s = job (1, 1);
  s.fp8.linear = LS_FP8_LINEAR_TORCHAO;
  LS_CHECK (ls_strategy_resolve (&s, &model, s.gpus, 8, diags));
  LS_CHECK_INT (s.fp8.linear, ==, LS_FP8_LINEAR_TORCHAO);
  ls_strategy_clear (&s);
}

LS_TEST_SUITE (LS_TEST (in_bf16_they_are_all_the_same), LS_TEST (products_of_torchao_are_kept_as_in_bf16))
