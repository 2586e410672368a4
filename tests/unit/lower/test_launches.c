/* Pins what a rank's experts cost the host: a launch for each expert of a product, and of a cast whose scale is
 * not known before; one where one kernel has all; and that no CUDA graph of a layer holds what works on tokens
 * which the host has counted; what HybridEP sends beside tokens. */
#include "fixtures.h"
#include "unit/model/recipe_layers.h"

/* Of a role: all but the first launches of kernels, by the name of what comes before them. */
typedef struct {
  guint products, casts;
  guint graphed, counted; /* of experts: kernels in a graph, and that the host launches */
} Launches;

static void
add_segment (const LsSegment *seg, LsHostCost each, Launches *a)
{
  for (uint32_t o = 0; o < seg->n_ops; o++) {
    const LsOp *op = &seg->ops[o], *before = o > 0 ? &seg->ops[o - 1] : NULL;
    if (g_str_has_prefix (op->name, "expert-"))
      *(op->host == LS_HOST_FREE ? &a->graphed : &a->counted) += op->kind == LS_OP_KERNEL;
    if (op->kind != LS_OP_HOST_DELAY || strcmp (op->name, "launches") != 0)
      continue;
    LS_CHECK_INT (op->repeat, ==, 4 - 1);
    bool is_product = g_str_has_prefix (before->name, "expert-fc");
    LS_CHECK_INT (op->host, ==, each == LS_HOST_LAUNCH && is_product ? LS_HOST_PRODUCT : each);
    LS_CHECK_INT (before->host, ==, op->host);
    *(is_product ? &a->products : &a->casts) += 1;
  }
}

/* Four layers of 8 experts on two ranks, one micro-batch each: four experts of a rank. */
static Launches
launches_of (LsStrategy s)
{
  Launches a = { 0 };
  LsHostCost each = s.launch.cuda_graphs == LS_GRAPHS_STEP ? LS_HOST_FREE : LS_HOST_LAUNCH;
  LsModel m = model;
  m.moe.n_experts = 8;
  m.moe.top_k = 2;
  m.moe.expert_ffn = 512;
  m.moe.every = 1;
  m.linear_bias = false;
  m.attention = LS_ATTENTION_FLASH;
  s.gpus = s.dp = s.ep = 2;
  s.global_batch = 2 * s.micro_batch;
  g_autoptr (LsPlan) plan = lowered_model (&m, &s);
  for (uint32_t i = 0; plan && i < plan->programs[0].n_instances; i++)
    add_segment (&plan->segments[plan->programs[0].instances[i].segment], each, &a);
  ls_strategy_clear (&s);
  return a;
}

static LsStrategy
scaled (LsFp8Recipe recipe)
{
  LsStrategy s = job (1, 1);
  s.dtype = LS_DTYPE_FP8;
  s.fp8.recipe = recipe;
  return s;
}

/* Four layers, two products forwards, two each of dgrad and wgrad; inputs and gradients of outputs are cast. */
static void
each_expert_is_launched (void)
{
  Launches plain = launches_of (job (1, 1)), delayed = launches_of (scaled (LS_FP8_DELAYED)),
           mxfp8 = launches_of (scaled (LS_FP8_MXFP8)), current = launches_of (scaled (LS_FP8_CURRENT));
  LS_CHECK_INT (plain.products, ==, 4 * 6);
  LS_CHECK_INT (plain.casts, ==, 0);
  LS_CHECK_INT (delayed.products, ==, 4 * 6);
  LS_CHECK_INT (delayed.casts, ==, 0);
  LS_CHECK_INT (mxfp8.casts, ==, 4 * 4);
  LS_CHECK_INT (current.casts, ==, 4 * 4 * 4); /* and their maxima, zeros before and scales behind */
}

static void
one_kernel_is_one_launch (void)
{
  LsStrategy s = scaled (LS_FP8_MXFP8);
  s.experts.grouped_gemm = true;
  Launches a = launches_of (s);
  LS_CHECK_INT (a.products, ==, 0);
  LS_CHECK_INT (a.casts, ==, 0);
}

/* But for the tokens' order, which is not of their number: permute and unpermute. */
static void
graphs_do_not_hold_counted_tokens (void)
{
  LsStrategy layer = job (1, 1), step = job (1, 1);
  layer.launch.cuda_graphs = LS_GRAPHS_LAYER;
  step.launch.cuda_graphs = LS_GRAPHS_STEP;
  Launches a = launches_of (layer), b = launches_of (step);
  LS_CHECK_INT (a.graphed, ==, 0);
  LS_CHECK_INT (a.counted, >=, 4 * 8);
  LS_CHECK_INT (b.counted, ==, 0);
}

/* How often the host waits for, or launches, the others of a rank's experts, behind an op of that name. */
static guint
n_behind (const LsPlan *plan, const char *name, LsHostCost cost, uint32_t n_others)
{
  guint n = 0;
  for (uint32_t i = 0; i < plan->programs[0].n_instances; i++) {
    const LsSegment *seg = &plan->segments[plan->programs[0].instances[i].segment];
    for (uint32_t o = 1; o < seg->n_ops; o++)
      if (seg->ops[o].kind == LS_OP_HOST_DELAY && strcmp (seg->ops[o - 1].name, name) == 0) {
        LS_CHECK_INT (seg->ops[o].host, ==, cost);
        LS_CHECK_INT (seg->ops[o].repeat, ==, n_others);
        n++;
      }
  }
  return n;
}

/* Four layers of eight experts on one rank: each is counted, its rows gathered, its products launched, those of
 * gate and up apart, and its activation. */
static void
experts_run_one_after_the_other (void)
{
  const LsRecipe permute
      = { .operator_ = LS_RECIPE_PERMUTE,
          .loops = true,
          .forward = LIST (launched (kernel ("expert rows", LS_ACCESS_GATHER, "P*h", 2, 2), "O")) },
      fc1 = { .operator_ = LS_RECIPE_FC1, .one_by_one = true };
  g_autoptr (LsRecipes) recipes = recipes_of (permute);
  g_array_append_val (recipes->operators, fc1);
  LsModel m = model;
  m.moe.n_experts = 8;
  m.moe.top_k = 2;
  m.moe.expert_ffn = 512;
  m.moe.every = 1;
  m.mlp = LS_MLP_SWIGLU;
  m.linear_bias = false;
  m.attention = LS_ATTENTION_FLASH;
  LsStrategy s = job (1, 1);
  s.global_batch = s.micro_batch;
  s.use.recipes = ls_recipes_ref (recipes);
  g_autoptr (LsPlan) plan = lowered_model (&m, &s);
  if (!LS_CHECK (plan))
    return;
  LS_CHECK_INT (n_behind (plan, "token counts", LS_HOST_SYNC, 7), ==, 4);
  LS_CHECK_INT (n_behind (plan, "expert rows", LS_HOST_LAUNCH, 7), ==, 4);
  LS_CHECK_INT (n_behind (plan, "expert-fc1", LS_HOST_PRODUCT, 15), ==, 4);
  LS_CHECK_INT (n_behind (plan, "expert-fc2", LS_HOST_PRODUCT, 7), ==, 4);
  LS_CHECK_INT (n_behind (plan, "swiglu", LS_HOST_LAUNCH, 7), ==, 4);
  LS_CHECK_INT (n_behind (plan, "expert-sort", LS_HOST_LAUNCH, 7), ==, 0);
  ls_strategy_clear (&s);
}

/* A list of the optimizer's kernels: one element for each tensor. 12 of each layer, the last norm's two, words and
 * the head. */
static void
a_step_may_go_by_tensors (void)
{
  const LsRecipe step = { .operator_ = LS_RECIPE_OPTIMIZER,
                          .forward = LIST (kernel ("by tensors", LS_ACCESS_VEC, "T", 2, 2)) };
  g_autoptr (LsRecipes) recipes = recipes_of (step);
  LsStrategy s = job (1, 1);
  s.use.recipes = ls_recipes_ref (recipes);
  g_autoptr (LsPlan) plan = lowered_model (&model, &s);
  guint n = 0;
  for (uint32_t k = 0; LS_CHECK (plan != NULL) && k < plan->n_kernels; k++)
    if (strcmp (plan->kernels[k].name, "by tensors") == 0 && ++n)
      LS_CHECK_INT (plan->kernels[k].n, ==, 4 * 12 + 2 + 2);
  LS_CHECK_INT (n, ==, 1);
  ls_strategy_clear (&s);
}

/* What goes into a reduction over tp is copied as the list has it. */
static void
copies_of_tp_have_their_access (void)
{
  const LsRecipe copies
      = { .operator_ = LS_RECIPE_TP,
          .forward = LIST (kernel (ls_tp_copies[LS_TP_COPIES_SCATTERED], LS_ACCESS_CAT, "s*b*h", 2, 2)) };
  g_autoptr (LsRecipes) recipes = recipes_of (copies);
  LsStrategy s = job (2, 1);
  s.sp = true;
  s.use.recipes = ls_recipes_ref (recipes);
  g_autoptr (LsPlan) plan = lowered_model (&model, &s);
  guint n = 0;
  for (uint32_t k = 0; LS_CHECK (plan != NULL) && k < plan->n_kernels; k++)
    if (strcmp (plan->kernels[k].name, ls_tp_copies[LS_TP_COPIES_SCATTERED]) == 0 && ++n)
      LS_CHECK_INT (plan->kernels[k].access, ==, LS_ACCESS_CAT);
  LS_CHECK_INT (n, >, 0);
  ls_strategy_clear (&s);
}

/* With HybridEP two ranks gather a byte for each of eight experts of all tokens; scores go there and their gradients
 * back, not with what experts made. */
static void
hybridep_sends_scores_and_gathers_a_map (void)
{
  static const struct {
    const char *name;
    bool carries;
  } calls[] = { { "dispatch all-to-all", true },
                { "dispatch grad all-to-all", true },
                { "combine all-to-all", false },
                { "combine grad all-to-all", false } };
  LsModel m = model;
  m.moe.n_experts = 8, m.moe.top_k = 2, m.moe.expert_ffn = 512, m.moe.every = 1;
  m.linear_bias = false;
  LsStrategy s = job (1, 1);
  s.gpus = s.dp = s.ep = 2;
  s.global_batch = 2 * s.micro_batch;
  s.experts.dispatcher = LS_DISPATCHER_HYBRIDEP;
  g_autoptr (LsPlan) plan = lowered_model (&m, &s);
  const uint64_t tokens = (uint64_t) s.micro_batch * m.seq;
  guint n_maps = 0, n_calls = 0;
  for (uint32_t i = 0; LS_CHECK (plan != NULL) && i < plan->n_segments; i++)
    for (uint32_t o = 0; o < plan->segments[i].n_ops; o++) {
      const LsOp *op = &plan->segments[i].ops[o];
      if (strcmp (op->name, "routing map all-gather") == 0 && ++n_maps)
        LS_CHECK_INT (op->bytes, ==, 2 * tokens * 8);
      for (guint c = 0; c < G_N_ELEMENTS (calls); c++)
        if (strcmp (op->name, calls[c].name) == 0 && ++n_calls)
          LS_CHECK_INT (op->carries_scores, ==, calls[c].carries);
    }
  LS_CHECK (n_maps > 0 && n_calls == 4 * n_maps);
  ls_strategy_clear (&s);
}

LS_TEST_SUITE (LS_TEST (experts_run_one_after_the_other), LS_TEST (each_expert_is_launched),
               LS_TEST (one_kernel_is_one_launch), LS_TEST (a_step_may_go_by_tensors),
               LS_TEST (copies_of_tp_have_their_access), LS_TEST (hybridep_sends_scores_and_gathers_a_map),
               LS_TEST (graphs_do_not_hold_counted_tokens))
