/* What runs again, what is kept meanwhile, where it waits: sums over the ops of a small job,
 * by hand. */
#include <string.h>

#include "lower/lower.h"
#include "ls_test.h"
#include "plan/plan_check.h"

/* Letters of Korthikanti et al. 2022: L = 4, s = 128, h = 256, f = 1024, a = 4, b = 2. */
static const LsModel model = {
  .name = (char *) "small",
  .n_layers = 4,
  .hidden = 256,
  .n_heads = 4,
  .n_kv_heads = 4,
  .head_dim = 64,
  .ffn = 1024,
  .vocab = 1000,
  .seq = 128,
  .mlp = LS_MLP_GELU,
  .norm = LS_NORM_LAYERNORM,
  .position = LS_POSITION_NONE,
  .attention = LS_ATTENTION_UNFUSED,
  .linear_bias = true,
  .dropout = true,
};

#define SBH (128u * 2u * 256u)

/* A resolved job of tp * pp ranks; knobs that matter are set by the caller. */
static LsStrategy
job (uint32_t tp, uint32_t pp)
{
  LsStrategy s;
  ls_strategy_init (&s);
  s.tp = tp;
  s.pp = pp;
  s.gpus = tp * pp;
  s.micro_batch = 2;
  s.global_batch = 2 * pp;
  return s;
}

static LsPlan *
lowered_model (const LsModel *m, LsStrategy *s)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GError) error = NULL;
  if (!LS_CHECK (ls_strategy_resolve (s, m, s->gpus, 8, diags)))
    return NULL;
  LsPlan *plan = ls_lower (m, s, NULL, &error);
  LS_CHECK_NO_ERROR (error);
  if (plan)
    LS_CHECK (ls_plan_check (plan, &error));
  LS_CHECK_NO_ERROR (error);
  return plan;
}

static LsPlan *
lowered (LsStrategy *s)
{
  return lowered_model (&model, s);
}

typedef struct {
  double flops[LS_N_TAGS];
  uint64_t allocated, freed; /* activations, of one step */
  uint64_t copied[LS_N_COPY_DIRECTIONS];
  uint64_t gathered; /* tp all-gathers of recomputation */
} Sums;

static void
add_op (const LsPlan *plan, const LsOp *op, Sums *sums)
{
  if (op->kind == LS_OP_KERNEL
      && plan->kernels[op->kernel].kind <= LS_KERNEL_ATTENTION_BWD) /* dropout has FLOPs of its own */
    sums->flops[op->tag] += plan->kernels[op->kernel].flops;
  if (op->kind == LS_OP_COPY)
    sums->copied[op->root] += op->bytes;
  if (op->kind == LS_OP_COLLECTIVE && op->tag == LS_TAG_RECOMPUTE
      && strcmp (op->name, "activation all-gather") == 0)
    sums->gathered += op->bytes;
  for (uint16_t i = 0; i < op->n_buffers; i++)
    if (op->buffers[i].category == LS_MEM_ACTIVATIONS)
      *(op->buffers[i].is_free ? &sums->freed : &sums->allocated) += op->buffers[i].bytes;
}

static Sums
sums_of (const LsPlan *plan, uint32_t role)
{
  Sums sums = { 0 };
  const LsProgram *p = &plan->programs[role];
  for (uint32_t i = 0; i < p->n_instances; i++) {
    const LsSegment *seg = &plan->segments[p->instances[i].segment];
    for (uint32_t o = 0; o < seg->n_ops; o++)
      add_op (plan, &seg->ops[o], &sums);
  }
  LS_CHECK_INT (sums.allocated, ==, sums.freed);
  return sums;
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

/* Llama: K and V half as wide as Q, gated MLP. */
static LsModel
llama (void)
{
  LsModel m = model;
  m.n_kv_heads = 2;
  m.mlp = LS_MLP_SWIGLU;
  m.norm = LS_NORM_RMSNORM;
  m.position = LS_POSITION_ROPE;
  m.attention = LS_ATTENTION_FLASH;
  m.linear_bias = m.dropout = false;
  return m;
}

static LsStrategy
op_job (uint32_t tp)
{
  LsStrategy s = job (tp, 1);
  s.dp = 2;
  s.gpus = 2 * tp;
  s.global_batch = 4;
  s.sp = tp > 1;
  s.dp_kind = LS_DP_FSDP2;
  s.recompute = LS_RECOMPUTE_SELECTIVE;
  return s;
}

static guint
count_again (const LsPlan *plan, const char *name)
{
  guint n = 0;
  for (uint32_t i = 0; i < plan->programs[0].n_instances; i++) {
    const LsSegment *seg = &plan->segments[plan->programs[0].instances[i].segment];
    for (uint32_t o = 0; o < seg->n_ops; o++)
      n += seg->ops[o].tag == LS_TAG_RECOMPUTE && strcmp (seg->ops[o].name, name) == 0;
  }
  return n;
}

/* torchtitan's "op": of q, k, v, projection, gate, up, down every other product runs again: k (a
 * quarter of the QKV columns here), projection, up. Not attention, and nothing behind up. Of
 * 2 s b x in x out FLOPs each. */
static void
op_runs_every_other_product_again (void)
{
  const double tokens = 128 * 2, h = 256, f = 1024;
  for (uint32_t tp = 1; tp <= 2; tp++) {
    const LsModel m = llama ();
    LsStrategy s = op_job (tp);
    g_autoptr (LsPlan) plan = lowered_model (&m, &s);
    if (!LS_CHECK (plan != NULL))
      return;
    LS_CHECK_INT (s.recompute_parts, ==, LS_RECOMPUTE_OP);
    Sums sums = sums_of (plan, 0);
    LS_CHECK_NEAR (sums.flops[LS_TAG_RECOMPUTE], 4 * 2 * tokens * (h * 128 + h * h + h * f) / tp, 1e-12);
    LS_CHECK_INT (count_again (plan, "rmsnorm-fwd"), ==, 8);
    LS_CHECK_INT (count_again (plan, "rope-fwd"), ==, 4);
    LS_CHECK_INT (count_again (plan, "swiglu"), ==, 4);
    LS_CHECK_INT (count_again (plan, "fc2"), ==, 0);
    LS_CHECK_INT (count_again (plan, "flash-attention-fwd"), ==, 0);
    LS_CHECK_INT (count_again (plan, "tp all-gather"), ==, tp > 1 ? 8 : 0);
    LS_CHECK_INT (count_again (plan, "tp reduce-scatter"), ==, 0);
    ls_strategy_clear (&s);
  }
}

static LsRecipe
one_by_one (LsRecipeOperator which)
{
  const LsRecipeKernel core = { .is_core = true };
  LsRecipe r = { .operator_ = which,
                 .one_by_one = which != LS_RECIPE_ATTENTION,
                 .forward = g_array_new (FALSE, FALSE, sizeof core),
                 .backward = g_array_new (FALSE, FALSE, sizeof core) };
  g_array_append_val (r.forward, core);
  g_array_append_val (r.backward, core);
  return r;
}

/* With a matrix product for each of them those that are kept are no kernels any more; copies around attention
 * are made again. */
static void
op_runs_products_one_by_one_again (void)
{
  const double tokens = 128 * 2, h = 256, f = 1024;
  char *message = NULL;
  LsRecipe recipes[]
      = { one_by_one (LS_RECIPE_QKV), one_by_one (LS_RECIPE_FC1), one_by_one (LS_RECIPE_ATTENTION) };
  const LsRecipeKernel copy = { .name = g_strdup ("repeat k"),
                                .access = LS_ACCESS_STRIDED16,
                                .elements = ls_expression_parse ("s*b*q", &message) };
  g_array_prepend_val (recipes[2].forward, copy);
  const LsModel m = llama ();
  LsStrategy s = op_job (1);
  s.kernels = g_strdup ("by hand");
  s.recipes = ls_recipes_new ();
  s.recipes->operators = g_array_new (FALSE, FALSE, sizeof (LsRecipe));
  g_array_append_vals (s.recipes->operators, recipes, G_N_ELEMENTS (recipes));
  g_autoptr (LsPlan) plan = lowered_model (&m, &s);
  if (!LS_CHECK (plan != NULL))
    return;
  Sums sums = sums_of (plan, 0);
  LS_CHECK_NEAR (sums.flops[LS_TAG_RECOMPUTE], 4 * 2 * tokens * (h * 128 + h * h + h * f), 1e-12);
  LS_CHECK_INT (count_again (plan, "qkv"), ==, 4); /* k */
  LS_CHECK_INT (count_again (plan, "fc1"), ==, 4); /* up */
  LS_CHECK_INT (count_again (plan, "proj"), ==, 4);
  LS_CHECK_INT (count_again (plan, "repeat k"), ==, 4);
  LS_CHECK_INT (count_again (plan, "flash-attention-fwd"), ==, 0);
  LS_CHECK_INT (sums.allocated, ==, sums.freed);
  ls_strategy_clear (&s);
}

/* The copies of FSDP that a list names are touched as it says; the others are as built in. */
static void
listed_copies_of_fsdp_say_how_they_touch_memory (void)
{
  const LsRecipeKernel copy = { .name = g_strdup ("gather-copy-out"), .access = LS_ACCESS_MULTI };
  LsRecipe r = { .operator_ = LS_RECIPE_FSDP, .forward = g_array_new (FALSE, FALSE, sizeof copy) };
  g_array_append_val (r.forward, copy);
  const LsModel m = llama ();
  LsStrategy s = op_job (1);
  s.kernels = g_strdup ("by hand");
  s.recipes = ls_recipes_new ();
  s.recipes->operators = g_array_new (FALSE, FALSE, sizeof (LsRecipe));
  g_array_append_val (s.recipes->operators, r);
  g_autoptr (LsPlan) plan = lowered_model (&m, &s);
  guint n_out = 0, n_in = 0;
  for (uint32_t i = 0; plan && i < plan->n_kernels; i++) {
    const LsKernel *k = &plan->kernels[i];
    n_out += strcmp (k->name, "gather-copy-out") == 0 && k->access == LS_ACCESS_MULTI;
    n_in += strcmp (k->name, "gather-copy-in") == 0 && k->access == LS_ACCESS_NONE;
  }
  LS_CHECK_INT (n_out, ==, 2); /* layers, and the root */
  LS_CHECK_INT (n_in, ==, 2);
  ls_strategy_clear (&s);
}

/* Kernels of one name and shape that touch memory otherwise are two. */
static void
kernels_of_another_access_are_others (void)
{
  char *message = NULL;
  LsRecipe r
      = { .operator_ = LS_RECIPE_NORM, .forward = g_array_new (FALSE, FALSE, sizeof (LsRecipeKernel)) };
  static const LsAccess accesses[] = { LS_ACCESS_VEC, LS_ACCESS_STRIDED16 };
  for (guint i = 0; i < G_N_ELEMENTS (accesses); i++) {
    const LsRecipeKernel k = { .name = g_strdup ("norm"),
                               .access = (int) accesses[i],
                               .elements = ls_expression_parse ("s*b*h", &message),
                               .read = 2 };
    g_array_append_val (r.forward, k);
  }
  const LsModel m = llama ();
  LsStrategy s = op_job (1);
  s.kernels = g_strdup ("by hand");
  s.recipes = ls_recipes_new ();
  s.recipes->operators = g_array_new (FALSE, FALSE, sizeof (LsRecipe));
  g_array_append_val (s.recipes->operators, r);
  g_autoptr (LsPlan) plan = lowered_model (&m, &s);
  guint n[LS_N_ACCESSES] = { 0 };
  for (uint32_t i = 0; plan && i < plan->n_kernels; i++)
    n[plan->kernels[i].access] += strcmp (plan->kernels[i].name, "norm") == 0;
  LS_CHECK_INT (n[LS_ACCESS_VEC], ==, 1);
  LS_CHECK_INT (n[LS_ACCESS_STRIDED16], ==, 1);
  ls_strategy_clear (&s);
}

/* In s b elements of 2 bytes, per layer: its input h, q h and v h/2, the context h, gate f, down h; and the
 * log-sum-exp of each row and head. Without: two norms' inputs 2h, two norms' outputs 2h, q, k and v 2h, the
 * context h, gate and up 2f, what they make f. Of dots: its input h, q, k and v 2h, the projection's output
 * h, gate and up 2f; where attention is kept the context h and its log-sum-exp too. */
static void
op_keeps_the_other_products (void)
{
  static const uint32_t parts[] = { 0, LS_RECOMPUTE_OP, LS_RECOMPUTE_DOTS, LS_RECOMPUTE_DOTS_FLASH };
  const LsModel m = llama ();
  const uint64_t tokens = 128 * 2, lse = 4 * tokens * 4;
  uint64_t kept[G_N_ELEMENTS (parts)] = { 0 };
  for (guint p = 0; p < G_N_ELEMENTS (parts); p++) {
    LsStrategy s = op_job (1);
    s.recompute = parts[p] ? LS_RECOMPUTE_SELECTIVE : LS_RECOMPUTE_NONE;
    s.recompute_parts = parts[p];
    g_autoptr (LsPlan) plan = lowered_model (&m, &s);
    for (uint32_t i = 0; plan && i < plan->programs[0].n_instances; i++) {
      const LsSegment *seg = &plan->segments[plan->programs[0].instances[i].segment];
      Sums sums = { 0 };
      for (uint32_t o = 0; o < seg->n_ops; o++)
        add_op (plan, &seg->ops[o], &sums);
      if (g_str_has_prefix (seg->name, "forward"))
        kept[p] = sums.allocated - sums.freed;
    }
    ls_strategy_clear (&s);
  }
  uint64_t dots = 2 * tokens * (4 * 256 + 2 * 1024);
  LS_CHECK_INT (kept[0] - kept[2], ==, 4 * (2 * tokens * (7 * 256 + 3 * 1024) + lse - dots));
  LS_CHECK_INT (kept[3] - kept[2], ==, 4 * (2 * tokens * 256 + lse));
  uint64_t all = 2 * tokens * (7 * 256 + 3 * 1024) + lse, ops = 2 * tokens * (4 * 256 + 128 + 1024) + lse;
  LS_CHECK_INT (kept[0] - kept[1], ==, 4 * (all - ops));
}

/* JAX's policies: no matrix product of a layer runs again, whatever its format; norms, rope and the
 * activation do, and attention unless that is kept. */
static void
dots_run_all_but_products_again (void)
{
  static const uint32_t parts[] = { LS_RECOMPUTE_DOTS, LS_RECOMPUTE_DOTS_FLASH };
  const LsModel m = llama ();
  for (guint i = 0; i < G_N_ELEMENTS (parts); i++)
    for (int is_fp8 = 0; is_fp8 < 2; is_fp8++) {
      LsStrategy s = op_job (1);
      s.recompute_parts = parts[i];
      s.dtype = is_fp8 ? LS_DTYPE_FP8 : s.dtype;
      g_autoptr (LsPlan) plan = lowered_model (&m, &s);
      if (!LS_CHECK (plan != NULL))
        return;
      guint n = 0;
      static const char *const products[] = { "qkv", "proj", "fc1", "fc2" };
      for (guint p = 0; p < G_N_ELEMENTS (products); p++)
        n += count_again (plan, products[p]);
      LS_CHECK_INT (n, ==, 0);
      LS_CHECK_INT (count_again (plan, "rmsnorm-fwd"), ==, 8);
      LS_CHECK_INT (count_again (plan, "swiglu"), ==, 4);
      LS_CHECK_INT (count_again (plan, "flash-attention-fwd"), ==, parts[i] == LS_RECOMPUTE_DOTS ? 4 : 0);
      ls_strategy_clear (&s);
    }
}

static void
op_goes_with_plain_layers_only (void)
{
  static const struct {
    uint32_t parts, pp;
    uint32_t resolved; /* 0: refused */
  } jobs[] = {
    { LS_RECOMPUTE_OP | LS_RECOMPUTE_NORM, 1, 0 },
    { LS_RECOMPUTE_OP, 2, 0 },
    { LS_RECOMPUTE_DOTS, 2, 0 },
    { LS_RECOMPUTE_DOTS | LS_RECOMPUTE_OP, 1, 0 },
    { LS_RECOMPUTE_DOTS_FLASH, 1, LS_RECOMPUTE_DOTS_FLASH },
    { 0, 2, LS_RECOMPUTE_CORE }, /* by itself it is not chosen there */
    { 0, 1, LS_RECOMPUTE_OP },
  };
  const LsModel m = llama ();
  for (guint i = 0; i < G_N_ELEMENTS (jobs); i++) {
    LsStrategy s = op_job (1);
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    s.recompute_parts = jobs[i].parts;
    s.pp = jobs[i].pp;
    s.gpus = 2 * s.pp;
    s.zero_stage = s.pp > 1 ? 2 : 3;
    s.schedule = s.pp > 1 ? g_strdup ("zb-h1") : NULL;
    gboolean ok = ls_strategy_resolve (&s, &m, s.gpus, 8, diags);
    LS_CHECK_INT (ok, ==, jobs[i].resolved != 0);
    LS_CHECK (!ok || s.recompute_parts == jobs[i].resolved);
    LS_CHECK (ok || ls_diag_list_n (diags) == 1);
    ls_strategy_clear (&s);
  }
}

static void
odd_recomputation_is_refused (void)
{
  static const struct {
    const char *pointer;
    uint32_t tp, n_stages;
    int recompute;
    bool sp, partitions;
  } wrong[] = {
    { "/recompute_stages", 1, 2, LS_RECOMPUTE_SELECTIVE, false, false },
    { "/partition_activations", 1, 0, LS_RECOMPUTE_FULL, false, true },
    { "/partition_activations", 2, 0, LS_RECOMPUTE_FULL, true, true },
    { "/partition_activations", 2, 0, LS_RECOMPUTE_NONE, false, true },
  };
  for (guint i = 0; i < G_N_ELEMENTS (wrong); i++) {
    LsStrategy s = job (wrong[i].tp, 1);
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    s.recompute = wrong[i].recompute;
    s.sp = wrong[i].sp;
    s.partition_activations = wrong[i].partitions;
    s.n_recompute_stages = wrong[i].n_stages;
    s.recompute_stages = wrong[i].n_stages > 0 ? g_new0 (uint32_t, wrong[i].n_stages) : NULL;
    LS_CHECK (!ls_strategy_resolve (&s, &model, s.gpus, 8, diags));
    g_autofree char *text = ls_diag_list_format (diags);
    LS_CHECK (strstr (text, wrong[i].pointer) != NULL);
    ls_strategy_clear (&s);
  }
}

LS_TEST_MAIN ("recompute", LS_TEST (uniform_runs_all_layers_again),
              LS_TEST (early_stop_leaves_the_last_product_out), LS_TEST (block_runs_the_first_layers_again),
              LS_TEST (selective_parts_make_inputs_again), LS_TEST (selective_parts_keep_less),
              LS_TEST (split_backward_frees_what_was_made_again), LS_TEST (partitioned_inputs_are_gathered),
              LS_TEST (offloaded_activations_come_back), LS_TEST (op_runs_every_other_product_again),
              LS_TEST (op_runs_products_one_by_one_again),
              LS_TEST (listed_copies_of_fsdp_say_how_they_touch_memory),
              LS_TEST (kernels_of_another_access_are_others), LS_TEST (op_keeps_the_other_products),
              LS_TEST (op_goes_with_plain_layers_only), LS_TEST (dots_run_all_but_products_again),
              LS_TEST (odd_recomputation_is_refused))
