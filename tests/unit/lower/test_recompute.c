/* What runs again, what is kept meanwhile, where it waits: sums over the ops of a small job,
 * by hand. */
#include "fixtures.h"

#define SBH (128u * 2u * 256u)

static LsPlan *
lowered (LsStrategy *s)
{
  return lowered_model (&model, s);
}

static Sums
sums_of_job (LsStrategy *s, uint32_t role)
{
  g_autoptr (LsPlan) plan = lowered (s);
  Sums sums = plan ? sums_of (plan, role) : (Sums) { 0 };
  ls_strategy_clear (s);
  return sums;
}

/* Forward FLOPs of one layer: 24 s b h^2 (1 + s/6h) */
static double
layer_flops (void)
{
  return 24.0 * SBH * 256 * (1 + 128.0 / (6 * 256));
}

/* Full, uniform: every layer once more, whatever the groups. Their inputs are kept: one 2sbh
 * per group, and in the backward all that a layer saves. */
static void
uniform_runs_all_layers_again (void)
{
  uint64_t allocated[3];
  for (uint32_t g = 1; g <= 3; g++) {
    LsStrategy s = job (1, 1);
    s.recompute = LS_RECOMPUTE_FULL;
    s.recompute_layers = g;
    Sums sums = sums_of_job (&s, 0);
    LS_CHECK_NEAR (sums.flops[LS_TAG_RECOMPUTE], 4 * layer_flops (), 1e-12);
    allocated[g - 1] = sums.allocated;
  }
  LS_CHECK_INT (allocated[0] - allocated[1], ==, 2 * 2 * SBH); /* 4 inputs, then 2: layers 0, 2 */
  LS_CHECK_INT (allocated[1], ==, allocated[2]);               /* layers 0, 3 */
}

/* Early stop: fc2, 8 sbh^2 FLOPs, is behind all that the backward of a layer needs, unless the dropout
 * behind it keeps a mask; inside of a group its output is the next layer's input. */
static void
early_stop_leaves_the_last_product_out (void)
{
  double fc2 = 8.0 * SBH * 256;
  for (uint32_t g = 1; g <= 2; g++)
    for (int dropout = 0; dropout <= 1; dropout++) {
      LsModel m = model;
      m.dropout = dropout;
      LsStrategy s = job (1, 1);
      s.recompute = LS_RECOMPUTE_FULL;
      s.recompute_layers = g;
      s.recompute_early_stop = true;
      g_autoptr (LsPlan) plan = lowered_model (&m, &s);
      double again = plan ? sums_of (plan, 0).flops[LS_TAG_RECOMPUTE] : 0;
      LS_CHECK_NEAR (again, 4 * layer_flops () - (dropout ? 0 : 4 / g * fc2), 1e-12);
      ls_strategy_clear (&s);
    }
}

/* Block: the first N layers of a chunk, or as many as its rank is given. */
static void
block_runs_the_first_layers_again (void)
{
  LsStrategy s = job (1, 1);
  s.recompute = LS_RECOMPUTE_FULL;
  s.recompute_method = LS_RECOMPUTE_BLOCK;
  s.recompute_layers = 3;
  LS_CHECK_NEAR (sums_of_job (&s, 0).flops[LS_TAG_RECOMPUTE], 3 * layer_flops (), 1e-12);

  for (uint32_t rank = 0; rank < 2; rank++) {
    s = job (1, 2);
    s.recompute = LS_RECOMPUTE_FULL;
    s.recompute_method = LS_RECOMPUTE_BLOCK;
    s.recompute_stages = g_memdup2 ((uint32_t[]) { 2, 1 }, 2 * sizeof (uint32_t));
    s.n_recompute_stages = 2;
    double per_micro_batch = sums_of_job (&s, rank).flops[LS_TAG_RECOMPUTE] / 2;
    LS_CHECK_NEAR (per_micro_batch, (rank == 0 ? 2 : 1) * layer_flops (), 1e-12);
  }
}

/* Selective: the core drops 5 a s^2 b; the outputs of both norms 2 * 2sbh, of the activation
 * 2 s b f. They are made again for the product that wants them, and freed with it: the sum
 * over a step stays, but not the peak, which test_memory.c looks at. What runs again are the
 * kernels of the norm and of the activation, which have no FLOPs here. */
static void
selective_parts_make_inputs_again (void)
{
  for (uint32_t parts = 1; parts < 8; parts++) {
    LsStrategy s = job (1, 1);
    s.recompute = LS_RECOMPUTE_SELECTIVE;
    s.recompute_parts = parts;
    g_autoptr (LsPlan) plan = lowered (&s);
    guint n_norms = 0, n_activations = 0, n_scores = 0;
    for (uint32_t i = 0; plan && i < plan->programs[0].n_instances; i++) {
      const LsSegment *seg = &plan->segments[plan->programs[0].instances[i].segment];
      for (uint32_t o = 0; o < seg->n_ops; o++) {
        if (seg->ops[o].tag != LS_TAG_RECOMPUTE)
          continue;
        n_norms += strcmp (seg->ops[o].name, "layernorm-fwd") == 0;
        n_activations += strcmp (seg->ops[o].name, "bias-gelu") == 0;
        n_scores += strcmp (seg->ops[o].name, "scores-bmm") == 0;
      }
    }
    LS_CHECK_INT (n_norms, ==, parts & LS_RECOMPUTE_NORM ? 8 : 0);
    LS_CHECK_INT (n_activations, ==, parts & LS_RECOMPUTE_ACTIVATION ? 4 : 0);
    LS_CHECK_INT (n_scores, ==, parts & LS_RECOMPUTE_CORE ? 4 : 0);
    ls_strategy_clear (&s);
  }
}

/* Bytes of activations that a forward leaves alive. */
static uint64_t
kept_by_forward (LsStrategy *s)
{
  g_autoptr (LsPlan) plan = lowered (s);
  uint64_t kept = 0;
  for (uint32_t i = 0; plan && i < plan->programs[0].n_instances; i++) {
    const LsSegment *seg = &plan->segments[plan->programs[0].instances[i].segment];
    Sums sums = { 0 };
    for (uint32_t o = 0; o < seg->n_ops; o++)
      add_op (plan, &seg->ops[o], &sums);
    if (g_str_has_prefix (seg->name, "forward"))
      kept = sums.allocated - sums.freed;
  }
  ls_strategy_clear (s);
  return kept;
}

static void
selective_parts_keep_less (void)
{
  const uint64_t core = 5u * 4 * 128 * 128 * 2, norm = 4u * SBH,
                 activation = 2u * 128 * 2 * 1024; /* of a layer */
  LsStrategy none = job (1, 1);
  uint64_t all = kept_by_forward (&none);
  for (uint32_t parts = 1; parts < 8; parts++) {
    LsStrategy s = job (1, 1);
    s.recompute = LS_RECOMPUTE_SELECTIVE;
    s.recompute_parts = parts;
    uint64_t dropped = (parts & LS_RECOMPUTE_CORE ? core : 0) + (parts & LS_RECOMPUTE_NORM ? norm : 0)
        + (parts & LS_RECOMPUTE_ACTIVATION ? activation : 0);
    LS_CHECK_INT (all - kept_by_forward (&s), ==, 4 * dropped);
  }
}

/* A split backward holds an input that was made again from I to W, and frees it there. */
static void
split_backward_frees_what_was_made_again (void)
{
  LsStrategy s = job (1, 2);
  s.schedule = g_strdup ("zb-h1");
  s.recompute = LS_RECOMPUTE_SELECTIVE;
  s.recompute_parts = LS_RECOMPUTE_NORM | LS_RECOMPUTE_ACTIVATION;
  sums_of_job (&s, 0);
}

/* Partitioned: the kept input is a t-th, and gathered whole before its group runs again. */
static void
partitioned_inputs_are_gathered (void)
{
  LsStrategy s = job (2, 1), whole = job (2, 1);
  s.recompute = whole.recompute = LS_RECOMPUTE_FULL;
  s.partition_activations = true;
  Sums sums = sums_of_job (&s, 0);
  LS_CHECK_INT (sums.gathered, ==, 4 * 2 * SBH);
  LS_CHECK_INT (sums_of_job (&whole, 0).allocated - sums.allocated, ==, 4 * SBH);
}

/* Offloaded: all layers but the last go out and come back, as many bytes. */
static void
offloaded_activations_come_back (void)
{
  LsStrategy none = job (1, 1), s = job (1, 1);
  s.offload_activations = true;
  uint64_t kept = kept_by_forward (&none);
  Sums sums = sums_of_job (&s, 0);
  LS_CHECK_INT (sums.copied[LS_COPY_TO_HOST], ==, sums.copied[LS_COPY_TO_DEVICE]);
  /* Korthikanti et al., equation 1, of three layers */
  uint64_t layer = 34u * SBH + 5u * 4 * 128 * 128 * 2;
  LS_CHECK_INT (sums.copied[LS_COPY_TO_HOST], ==, 3 * layer);
  LS_CHECK (sums.copied[LS_COPY_TO_HOST] < kept);
}

LS_TEST_MAIN ("recompute", LS_TEST (uniform_runs_all_layers_again),
              LS_TEST (early_stop_leaves_the_last_product_out), LS_TEST (block_runs_the_first_layers_again),
              LS_TEST (selective_parts_make_inputs_again), LS_TEST (selective_parts_keep_less),
              LS_TEST (split_backward_frees_what_was_made_again), LS_TEST (partitioned_inputs_are_gathered),
              LS_TEST (offloaded_activations_come_back))
