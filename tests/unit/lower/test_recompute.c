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
    s.memory.recompute_layers = g;
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
      s.memory.recompute_layers = g;
      s.memory.recompute_early_stop = true;
      g_autoptr (LsPlan) plan = lowered_model (&m, &s);
      double again = plan ? sums_of (plan, 0).flops[LS_TAG_RECOMPUTE] : 0;
      LS_CHECK_NEAR (again, 4 * layer_flops () - (dropout ? 0 : 4 / g * fc2), 1e-12);
      ls_strategy_clear (&s);
    }
}

/* Experts run again to their end either way: both products, what brings tokens there and back, and the sum. */
static void
early_stop_runs_experts_to_their_end (void)
{
  static const char *const names[]
      = { "dispatch all-to-all", "expert-fc1", "expert-fc2", "combine all-to-all", "unpermute" };
  LsModel m = model;
  m.moe.n_experts = 4, m.moe.top_k = 2, m.moe.expert_ffn = 512, m.moe.every = 1,
  m.linear_bias = m.dropout = false;
  for (int is_early = 0; is_early <= 1; is_early++) {
    LsStrategy s = job (1, 1);
    s.recompute = LS_RECOMPUTE_FULL, s.memory.recompute_early_stop = is_early;
    s.ep = s.dp = s.gpus = 2, s.global_batch = 4;
    g_autoptr (LsPlan) plan = lowered_model (&m, &s);
    for (guint i = 0; plan && i < G_N_ELEMENTS (names); i++)
      LS_CHECK_INT (count_again (plan, names[i]), ==, 4);
    LS_CHECK (plan != NULL);
    ls_strategy_clear (&s);
  }
}

/* A block of multi-token prediction runs again as a whole, a layer and its projection of 4 sbh^2 FLOPs, where
 * layers do by groups: it keeps what goes into its two norms. By `block` nothing of it runs again. */
static void
blocks_run_again_with_groups_of_layers (void)
{
  LsModel m = model;
  uint64_t allocated[2];
  m.predict.layers = 1;
  for (int is_block = 0; is_block <= 1; is_block++) {
    LsStrategy s = job (1, 1);
    s.recompute = LS_RECOMPUTE_FULL;
    s.memory.recompute_method = is_block ? LS_RECOMPUTE_BLOCK : LS_RECOMPUTE_UNIFORM;
    s.memory.recompute_layers = is_block ? 4 : 1;
    g_autoptr (LsPlan) plan = lowered_model (&m, &s);
    Sums sums = plan ? sums_of (plan, 0) : (Sums) { 0 };
    double block = layer_flops () + 4.0 * SBH * 256;
    LS_CHECK_NEAR (sums.flops[LS_TAG_RECOMPUTE], 4 * layer_flops () + (is_block ? 0 : block), 1e-12);
    allocated[is_block] = sums.allocated;
    ls_strategy_clear (&s);
  }
  LS_CHECK_INT (allocated[0] - allocated[1], ==, 2 * 2 * SBH);
}

/* Block: the first N layers of a chunk, or as many as its rank is given. */
static void
block_runs_the_first_layers_again (void)
{
  LsStrategy s = job (1, 1);
  s.recompute = LS_RECOMPUTE_FULL;
  s.memory.recompute_method = LS_RECOMPUTE_BLOCK;
  s.memory.recompute_layers = 3;
  LS_CHECK_NEAR (sums_of_job (&s, 0).flops[LS_TAG_RECOMPUTE], 3 * layer_flops (), 1e-12);

  for (uint32_t rank = 0; rank < 2; rank++) {
    s = job (1, 2);
    s.recompute = LS_RECOMPUTE_FULL;
    s.memory.recompute_method = LS_RECOMPUTE_BLOCK;
    s.memory.recompute_stages = g_memdup2 ((uint32_t[]) { 2, 1 }, 2 * sizeof (uint32_t));
    s.memory.n_recompute_stages = 2;
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
    s.memory.recompute_parts = parts;
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

static guint
n_again (const LsPlan *plan, const char *name)
{
  guint n = 0;
  for (uint32_t i = 0; plan && i < plan->programs[0].n_instances; i++) {
    const LsSegment *seg = &plan->segments[plan->programs[0].instances[i].segment];
    for (uint32_t o = 0; o < seg->n_ops; o++)
      n += seg->ops[o].tag == LS_TAG_RECOMPUTE && strcmp (seg->ops[o].name, name) == 0;
  }
  return n;
}

/* Of flash attention core drops nothing, and runs nothing again but where its checkpoint does not ask which
 * kernel is inside: then once for each of the four layers, and the log-sum-exp is dropped, 4 s b a bytes. */
static void
core_runs_flash_attention_again_where_its_checkpoint_does (void)
{
  uint64_t kept[2];
  for (int again = 0; again < 2; again++) {
    LsStrategy s = job (1, 1);
    s.use.attention = LS_ATTENTION_FLASH;
    s.recompute = LS_RECOMPUTE_SELECTIVE;
    s.memory.recompute_parts = LS_RECOMPUTE_CORE;
    s.memory.recompute_flash = again;
    LS_CHECK_INT (ls_strategy_recomputes_nothing (&s), ==, !again);
    g_autoptr (LsPlan) plan = lowered (&s);
    LS_CHECK_INT (n_again (plan, "flash-attention-fwd"), ==, again ? 4 : 0);
    kept[again] = kept_by_forward (plan);
    ls_strategy_clear (&s);
  }
  LS_CHECK_INT (kept[0] - kept[1], ==, 4 * 4u * 128 * 2 * 4);
}

/* Bytes of activations that a forward leaves alive. */
static uint64_t
kept_by (LsStrategy *s)
{
  g_autoptr (LsPlan) plan = lowered (s);
  uint64_t kept = kept_by_forward (plan);
  ls_strategy_clear (s);
  return kept;
}

static void
selective_parts_keep_less (void)
{
  const uint64_t core = 5u * 4 * 128 * 128 * 2, norm = 4u * SBH,
                 activation = 2u * 128 * 2 * 1024; /* of a layer */
  LsStrategy none = job (1, 1);
  uint64_t all = kept_by (&none);
  for (uint32_t parts = 1; parts < 8; parts++) {
    LsStrategy s = job (1, 1);
    s.recompute = LS_RECOMPUTE_SELECTIVE;
    s.memory.recompute_parts = parts;
    uint64_t dropped = (parts & LS_RECOMPUTE_CORE ? core : 0) + (parts & LS_RECOMPUTE_NORM ? norm : 0)
        + (parts & LS_RECOMPUTE_ACTIVATION ? activation : 0);
    LS_CHECK_INT (all - kept_by (&s), ==, 4 * dropped);
  }
}

/* A split backward holds an input that was made again from I to W, and frees it there. */
static void
split_backward_frees_what_was_made_again (void)
{
  LsStrategy s = job (1, 2);
  s.schedule = g_strdup ("zb-h1");
  s.recompute = LS_RECOMPUTE_SELECTIVE;
  s.memory.recompute_parts = LS_RECOMPUTE_NORM | LS_RECOMPUTE_ACTIVATION;
  sums_of_job (&s, 0);
  s = job (1, 2);
  s.schedule = g_strdup ("zb-h1");
  s.recompute = LS_RECOMPUTE_SELECTIVE;
  s.memory.recompute_parts = LS_RECOMPUTE_MLP | LS_RECOMPUTE_NORM;
  sums_of_job (&s, 0);
}

/* An MLP runs again from its input: of 34 sbh of a layer its first product keeps 2, which stays unless the norm
 * makes it again, the activation 8 and the second product 8. 16 sbh^2 FLOPs run again. */
static void
an_mlp_runs_again (void)
{
  const uint32_t others[] = { 0, LS_RECOMPUTE_NORM, LS_RECOMPUTE_ACTIVATION };
  LsStrategy none = job (1, 1);
  uint64_t all = kept_by (&none);
  for (guint i = 0; i < G_N_ELEMENTS (others); i++) {
    LsStrategy s = job (1, 1);
    s.recompute = LS_RECOMPUTE_SELECTIVE;
    s.memory.recompute_parts = LS_RECOMPUTE_MLP | others[i];
    LsStrategy again = s;
    uint64_t norms = others[i] == LS_RECOMPUTE_NORM ? 4u * SBH : 0; /* of attention, too */
    LS_CHECK_INT (all - kept_by (&again), ==, 4 * (16u * SBH + norms));
    LS_CHECK_NEAR (sums_of_job (&s, 0).flops[LS_TAG_RECOMPUTE], 4 * 16.0 * SBH * 256, 1e-12);
  }
}

static LsModel
moe_model (uint32_t n_dense)
{
  LsModel m = model;
  m.mlp = LS_MLP_SWIGLU;
  m.moe.n_experts = 8;
  m.moe.top_k = 2;
  m.moe.expert_ffn = m.moe.shared_ffn = 512;
  m.moe.n_dense_layers = n_dense;
  m.moe.every = 1;
  return m;
}

typedef struct {
  uint64_t kept;  /* by a forward */
  double flops;   /* that run again */
  guint n_router; /* products that run again: of the router, of dense MLPs and shared experts, of experts */
  guint n_mlp, n_experts, n_exchanges;
} Again;

static Again
again_of (const LsModel *m, uint32_t parts, int dtype)
{
  LsStrategy s = job (1, 1);
  Again again = { 0 };
  s.gpus = 4;
  s.global_batch = 8;
  s.ep = 2;
  s.dtype = dtype;
  s.recompute = parts ? LS_RECOMPUTE_SELECTIVE : LS_RECOMPUTE_NONE;
  s.memory.recompute_parts = parts;
  g_autoptr (LsPlan) plan = lowered_model (m, &s);
  for (uint32_t i = 0; plan && i < plan->programs[0].n_instances; i++) {
    const LsSegment *seg = &plan->segments[plan->programs[0].instances[i].segment];
    Sums sums = { 0 };
    for (uint32_t o = 0; o < seg->n_ops; o++) {
      const LsOp *op = &seg->ops[o];
      add_op (plan, op, &sums);
      if (op->tag != LS_TAG_RECOMPUTE)
        continue;
      again.n_router += strcmp (op->name, "router") == 0;
      again.n_experts += strcmp (op->name, "expert-fc1") == 0 || strcmp (op->name, "expert-fc2") == 0;
      again.n_mlp += strcmp (op->name, "fc1") == 0 || strcmp (op->name, "fc2") == 0;
      again.n_exchanges += strstr (op->name, "all-to-all") != NULL;
    }
    again.flops += sums.flops[LS_TAG_RECOMPUTE];
    if (g_str_has_prefix (seg->name, "forward"))
      again.kept = sums.allocated - sums.freed;
  }
  ls_strategy_clear (&s);
  return again;
}

/* One dense layer, three with experts. T = 256 tokens of h = 256 in 16 bits, k = 2 of E = 8 experts of width
 * 512: of an expert layer what operators_moe.c lists but for the input, 2 T h, goes. */
static void
experts_run_again (void)
{
  LsModel m = moe_model (1);
  const uint64_t T = 256, h = 256, f = 512, E = 8, R = 2 * T;
  const uint64_t shared = T * (2 * 2 * f + 2 * f), experts = 5 * T * E + R * (2 * h + 4 * f + 4 + 2 * f),
                 dense = T * 6 * m.ffn;
  Again none = again_of (&m, 0, LS_DTYPE_BF16), moe = again_of (&m, LS_RECOMPUTE_MOE, LS_DTYPE_BF16),
        part = again_of (&m, LS_RECOMPUTE_SHARED, LS_DTYPE_BF16),
        both = again_of (&m, LS_RECOMPUTE_MOE | LS_RECOMPUTE_MLP | LS_RECOMPUTE_NORM, LS_DTYPE_BF16);
  LS_CHECK_INT (none.kept - moe.kept, ==, 3 * (shared + experts));
  LS_CHECK_INT (none.kept - part.kept, ==, 3 * shared);
  LS_CHECK_INT (none.kept - both.kept, ==, 3 * (shared + experts) + dense + 8 * 2 * T * h);
  LS_CHECK_INT (moe.n_router, ==, 3);
  LS_CHECK_INT (moe.n_mlp, ==, 6);
  LS_CHECK_INT (moe.n_experts, ==, 6);
  LS_CHECK_INT (moe.n_exchanges, ==, 6);
  LS_CHECK_INT (both.n_mlp, ==, 8);
  LS_CHECK_INT (part.n_mlp, ==, 6);
  LS_CHECK_INT (part.n_router + part.n_experts + part.n_exchanges, ==, 0);
  LS_CHECK_NEAR (part.flops, 3 * 2.0 * (double) (T * h * 3 * f), 1e-12);
  LS_CHECK_NEAR (moe.flops, 3 * 2.0 * (double) (T * h * 3 * f + R * h * 3 * f + T * h * E), 1e-12);
}

/* In fp8 products keep a cast of it; what runs again begins with the input itself. */
static void
an_input_stays_in_its_own_format (void)
{
  LsModel m = moe_model (0);
  Again none = again_of (&m, 0, LS_DTYPE_FP8), part = again_of (&m, LS_RECOMPUTE_SHARED, LS_DTYPE_FP8);
  const uint64_t T = 256, h = 256, f = 512;
  LS_CHECK_INT (none.kept - part.kept, ==,
                4
                    * (ls_dtype_array_bytes (LS_DTYPE_FP8, T * h) + 2 * 2 * f * T
                       + ls_dtype_array_bytes (LS_DTYPE_FP8, T * f) - 2 * T * h));
}

/* Partitioned: the kept input is a t-th, and gathered whole before its group runs again. */
static void
partitioned_inputs_are_gathered (void)
{
  LsStrategy s = job (2, 1), whole = job (2, 1);
  s.recompute = whole.recompute = LS_RECOMPUTE_FULL;
  s.memory.partition_activations = true;
  Sums sums = sums_of_job (&s, 0);
  LS_CHECK_INT (sums.gathered, ==, 4 * 2 * SBH);
  LS_CHECK_INT (sums_of_job (&whole, 0).allocated - sums.allocated, ==, 4 * SBH);

  /* With tp 1 there is nothing to cut, and DeepSpeed takes it. */
  s = job (1, 1);
  s.recompute = LS_RECOMPUTE_FULL;
  s.memory.partition_activations = true;
  LS_CHECK_INT (sums_of_job (&s, 0).gathered, ==, 0);
}

/* Offloaded: all layers but the last go out and come back, as many bytes. */
static void
offloaded_activations_come_back (void)
{
  LsStrategy none = job (1, 1), s = job (1, 1);
  s.memory.offload_activations = true;
  uint64_t kept = kept_by (&none);
  Sums sums = sums_of_job (&s, 0);
  LS_CHECK_INT (sums.copied[LS_COPY_TO_HOST], ==, sums.copied[LS_COPY_TO_DEVICE]);
  /* Korthikanti et al., equation 1, of three layers */
  uint64_t layer = 34u * SBH + 5u * 4 * 128 * 128 * 2;
  LS_CHECK_INT (sums.copied[LS_COPY_TO_HOST], ==, 3 * layer);
  LS_CHECK (sums.copied[LS_COPY_TO_HOST] < kept);
}

/* What waits in the host at once: of each micro-batch in flight all layers of a stage but the last. */
static void
offloaded_activations_take_room_in_the_host (void)
{
  static const struct {
    uint32_t pp, role, n_layers;
  } cases[] = { { 1, 0, 3 }, { 2, 0, 2 }, { 2, 1, 1 } };
  uint64_t layer = 34u * SBH + 5u * 4 * 128 * 128 * 2;
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    LsStrategy s = job (1, cases[i].pp);
    g_autoptr (LsPlan) none = lowered (&s);
    s.memory.offload_activations = true;
    g_autoptr (LsPlan) plan = lowered (&s);
    if (none && plan) {
      LS_CHECK_INT (none->programs[cases[i].role].host_bytes, ==, 0);
      LS_CHECK_INT (plan->programs[cases[i].role].host_bytes, ==, cases[i].n_layers * layer);
    }
    ls_strategy_clear (&s);
  }
}

LS_TEST_SUITE (LS_TEST (blocks_run_again_with_groups_of_layers), LS_TEST (uniform_runs_all_layers_again),
               LS_TEST (early_stop_leaves_the_last_product_out),
               LS_TEST (early_stop_runs_experts_to_their_end), LS_TEST (block_runs_the_first_layers_again),
               LS_TEST (selective_parts_make_inputs_again),
               LS_TEST (core_runs_flash_attention_again_where_its_checkpoint_does),
               LS_TEST (selective_parts_keep_less), LS_TEST (split_backward_frees_what_was_made_again),
               LS_TEST (an_mlp_runs_again), LS_TEST (experts_run_again),
               LS_TEST (an_input_stays_in_its_own_format), LS_TEST (partitioned_inputs_are_gathered),
               LS_TEST (offloaded_activations_come_back),
               LS_TEST (offloaded_activations_take_room_in_the_host))
