/* What runs again and what is kept where operators are chosen one by one, or by what they are: sums over the
 * ops of a small job, by hand. */
#include "fixtures.h"

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
  s.memory.recompute_parts = LS_RECOMPUTE_OP;
  return s;
}

/* torchtitan's "op": of q, k, v, projection, gate, up, down every other product runs again: k (a
 * quarter of the QKV columns here), projection, up. Not attention, and nothing behind up. Of
 * 2 s b x in x out FLOPs each. */
static void
op_runs_every_other_product_again (void)
{
  const double tokens = 128 * 2, h = 256, f = 1024;
  for (uint32_t tp = 1; tp <= 2; tp++) {
    const LsModel m = small_llama ();
    LsStrategy s = op_job (tp);
    g_autoptr (LsPlan) plan = lowered_model (&m, &s);
    if (!LS_CHECK (plan != NULL))
      return;
    LS_CHECK_INT (s.memory.recompute_parts, ==, LS_RECOMPUTE_OP);
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
  const LsModel m = small_llama ();
  LsStrategy s = op_job (1);
  s.use.kernels = g_strdup ("by hand");
  s.use.recipes = ls_recipes_new ();
  s.use.recipes->operators = g_array_new (FALSE, FALSE, sizeof (LsRecipe));
  g_array_append_vals (s.use.recipes->operators, recipes, G_N_ELEMENTS (recipes));
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
  const LsModel m = small_llama ();
  LsStrategy s = op_job (1);
  s.use.kernels = g_strdup ("by hand");
  s.use.recipes = ls_recipes_new ();
  s.use.recipes->operators = g_array_new (FALSE, FALSE, sizeof (LsRecipe));
  g_array_append_val (s.use.recipes->operators, r);
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
  const LsModel m = small_llama ();
  LsStrategy s = op_job (1);
  s.use.kernels = g_strdup ("by hand");
  s.use.recipes = ls_recipes_new ();
  s.use.recipes->operators = g_array_new (FALSE, FALSE, sizeof (LsRecipe));
  g_array_append_val (s.use.recipes->operators, r);
  g_autoptr (LsPlan) plan = lowered_model (&m, &s);
  guint n[LS_N_ACCESSES] = { 0 };
  for (uint32_t i = 0; plan && i < plan->n_kernels; i++)
    n[plan->kernels[i].access] += strcmp (plan->kernels[i].name, "norm") == 0;
  LS_CHECK_INT (n[LS_ACCESS_VEC], ==, 1);
  LS_CHECK_INT (n[LS_ACCESS_STRIDED16], ==, 1);
  ls_strategy_clear (&s);
}

/* Two ranks of data parallelism, or of one sequence. */
static LsStrategy
cut_job (uint32_t cp)
{
  LsStrategy s = op_job (1);
  s.cp = cp;
  s.dp = 2 / cp;
  s.global_batch = 2 * s.dp;
  return s;
}

/* Bytes of activations that are left behind a forward. */
static uint64_t
kept_by (uint32_t parts, uint32_t cp)
{
  const LsModel m = small_llama ();
  LsStrategy s = cut_job (cp);
  s.recompute = parts ? LS_RECOMPUTE_SELECTIVE : LS_RECOMPUTE_NONE;
  s.memory.recompute_parts = parts;
  g_autoptr (LsPlan) plan = lowered_model (&m, &s);
  uint64_t kept = kept_by_forward (plan);
  ls_strategy_clear (&s);
  return kept;
}

static double
attention_flops (const LsPlan *plan, LsTag tag)
{
  double flops = 0;
  for (uint32_t i = 0; i < plan->programs[0].n_instances; i++) {
    const LsSegment *seg = &plan->segments[plan->programs[0].instances[i].segment];
    for (uint32_t o = 0; o < seg->n_ops; o++)
      if (seg->ops[o].kind == LS_OP_KERNEL && seg->ops[o].tag == tag
          && plan->kernels[seg->ops[o].kernel].kind == LS_KERNEL_ATTENTION_FWD)
        flops += plan->kernels[seg->ops[o].kernel].flops;
  }
  return flops;
}

/* In s b elements of 2 bytes, per layer: its input h, q h and v h/2, the context h, gate f, down h; and the
 * log-sum-exp of each row and head. Without: two norms' inputs 2h, two norms' outputs 2h, q, k and v 2h, the
 * context h, gate and up 2f, what they make f. Of dots: its input h, q, k and v 2h, the projection's output
 * h, gate and up 2f; where attention is kept the context h and its log-sum-exp too. */
static void
op_keeps_the_other_products (void)
{
  static const uint32_t parts[] = { 0, LS_RECOMPUTE_OP, LS_RECOMPUTE_DOTS, LS_RECOMPUTE_DOTS_FLASH };
  const uint64_t tokens = 128 * 2, lse = 4 * tokens * 4;
  uint64_t kept[G_N_ELEMENTS (parts)] = { 0 };
  for (guint p = 0; p < G_N_ELEMENTS (parts); p++)
    kept[p] = kept_by (parts[p], 1);
  uint64_t dots = 2 * tokens * (4 * 256 + 2 * 1024);
  LS_CHECK_INT (kept[0] - kept[2], ==, 4 * (2 * tokens * (7 * 256 + 3 * 1024) + lse - dots));
  LS_CHECK_INT (kept[3] - kept[2], ==, 4 * (2 * tokens * 256 + lse));
  uint64_t all = 2 * tokens * (7 * 256 + 3 * 1024) + lse, ops = 2 * tokens * (4 * 256 + 128 + 1024) + lse;
  LS_CHECK_INT (kept[0] - kept[1], ==, 4 * (all - ops));
}

/* Experts over two ranks, two of four for each token. */
static LsModel
with_experts (void)
{
  LsModel m = small_llama ();
  m.moe.n_experts = 4, m.moe.top_k = 2, m.moe.expert_ffn = 512, m.moe.every = 1;
  return m;
}

static LsPlan *
lowered_experts (const LsModel *m, uint32_t parts, LsDispatcher dispatcher)
{
  LsStrategy s = op_job (1);
  s.experts.dispatcher = dispatcher;
  s.ep = m->moe.n_experts > 0 ? 2 : 1;
  s.recompute = parts ? LS_RECOMPUTE_SELECTIVE : LS_RECOMPUTE_NONE;
  s.memory.recompute_parts = parts;
  LsPlan *plan = lowered_model (m, &s);
  ls_strategy_clear (&s);
  return plan;
}

/* Grouped products and the router's run again, in each layer to its end; no tokens are sent or counted again.
 * What both exchanges bring stays, 2 s b h each; of the rest of a layer as above its input h, q h, v h/2, the
 * context h and its log-sum-exp. */
static void
op_keeps_what_exchanges_bring (void)
{
  static const char *const again[] = { "expert-fc1", "expert-fc2", "router", "permute", "unpermute" };
  static const char *const once[] = { "dispatch all-to-all", "combine all-to-all", "token counts",
                                      "token counts all-gather", "flash-attention-fwd" };
  const uint64_t tokens = 128 * 2, lse = 4 * tokens * 4;
  const LsModel m = with_experts ();
  g_autoptr (LsPlan) plan = lowered_experts (&m, LS_RECOMPUTE_OP, LS_DISPATCHER_ALL_TO_ALL);
  if (!LS_CHECK (plan != NULL))
    return;
  for (guint i = 0; i < G_N_ELEMENTS (again); i++)
    LS_CHECK_INT (count_again (plan, again[i]), ==, 4);
  for (guint i = 0; i < G_N_ELEMENTS (once); i++)
    LS_CHECK_INT (count_again (plan, once[i]), ==, 0);
  Sums sums = sums_of (plan, 0);
  LS_CHECK_INT (sums.allocated, ==, sums.freed);
  const LsModel plain = small_llama ();
  g_autoptr (LsPlan) dense = lowered_experts (&plain, 0, LS_DISPATCHER_ALL_TO_ALL);
  uint64_t kept = 2 * tokens * (3 * 256 + 128) + lse + 2 * (2 * tokens * 2 * 256);
  uint64_t ends = dense ? kept_by_forward (dense) - 4 * (2 * tokens * (7 * 256 + 3 * 1024) + lse) : 0;
  LS_CHECK_INT (kept_by_forward (plan), ==, 4 * kept + ends);
}

/* Experts that are cut, without groups of them: tokens are gathered again, and what is reduce-scattered behind
 * them is kept. */
static void
op_gathers_tokens_of_cut_experts_again (void)
{
  const LsModel m = with_experts ();
  LsStrategy s = op_job (2);
  s.sp = true;
  s.experts.etp = 2;
  g_autoptr (LsPlan) plan = lowered_model (&m, &s);
  if (!LS_CHECK (plan != NULL)) {
    ls_strategy_clear (&s);
    return;
  }
  LS_CHECK_INT (count_again (plan, "expert all-gather"), ==, 4);
  LS_CHECK_INT (count_again (plan, "expert reduce-scatter"), ==, 0);
  LS_CHECK_INT (count_again (plan, "token counts"), ==, 0);
  Sums sums = sums_of (plan, 0);
  LS_CHECK_INT (sums.allocated, ==, sums.freed);
  ls_strategy_clear (&s);
}

/* DeepEP sends a token once to each of two ranks, however many of its two experts of four are there: one in
 * three has both on the same rank, so 2 - 1/3 rows for each token arrive in the mean; back comes each once. */
static void
op_keeps_what_deepep_brings (void)
{
  const uint64_t tokens = 128 * 2;
  const LsModel m = with_experts ();
  g_autoptr (LsPlan) all = lowered_experts (&m, LS_RECOMPUTE_OP, LS_DISPATCHER_ALL_TO_ALL);
  g_autoptr (LsPlan) deepep = lowered_experts (&m, LS_RECOMPUTE_OP, LS_DISPATCHER_DEEPEP);
  if (!LS_CHECK (all && deepep))
    return;
  uint64_t rows = (2 + 2) * tokens - (uint64_t) ((2 - 1.0 / 3) * (double) tokens) - tokens;
  LS_CHECK_NEAR ((double) (kept_by_forward (all) - kept_by_forward (deepep)), (double) (4 * rows * 2 * 256),
                 0.01);
  LS_CHECK_INT (count_again (deepep, "dispatch all-to-all"), ==, 0);
}

/* Of queries' and keys' latents and what is made of them, projection, gate, up, down the odd ones run again;
 * down is behind all that the backward needs. */
static void
op_counts_latent_products (void)
{
  static const struct {
    const char *name;
    guint n;
  } products[] = { { "q-down", 0 }, { "q-up", 4 }, { "kv-down", 0 }, { "kv-up", 4 },
                   { "proj", 0 },   { "fc1", 4 },  { "fc2", 0 } };
  LsModel m = small_llama ();
  m.n_kv_heads = 4;
  m.latent.kv_lora = 64, m.latent.q_lora = 96, m.latent.rope_dim = 32, m.v_dim = 32;
  LsStrategy s = op_job (1);
  g_autoptr (LsPlan) plan = lowered_model (&m, &s);
  if (!LS_CHECK (plan != NULL))
    return;
  for (guint i = 0; i < G_N_ELEMENTS (products); i++)
    LS_CHECK_INT (count_again (plan, products[i].name), ==, products[i].n);
  const double tokens = 128 * 2;
  Sums sums = sums_of (plan, 0);
  LS_CHECK_NEAR (sums.flops[LS_TAG_RECOMPUTE], 4 * 2 * tokens * (96 * 256 + 64 * 4 * (32 + 32) + 256 * 1024),
                 1e-12); /* gate */
  LS_CHECK_INT (sums.allocated, ==, sums.freed);
  ls_strategy_clear (&s);
}

/* Where two ranks share a sequence, each keeps that of its half: attention is attention, if in steps. */
static void
attention_over_a_cut_sequence_is_kept_alike (void)
{
  const uint64_t tokens = 128 * 2 / 2, lse = 4 * tokens * 4;
  uint64_t all = kept_by (0, 2), op = kept_by (LS_RECOMPUTE_OP, 2), dots = kept_by (LS_RECOMPUTE_DOTS, 2),
           flash = kept_by (LS_RECOMPUTE_DOTS_FLASH, 2);
  LS_CHECK_INT (flash - dots, ==, 4 * (2 * tokens * 256 + lse));
  LS_CHECK_INT (all - op, ==, 4 * 2 * tokens * ((7 - 4) * 256 - 128 + (3 - 1) * 1024));
}

/* It runs again where all of a layer does, also where that stops early, and where dots alone are kept; not
 * where attention is kept. Of as many FLOPs as in the forward. */
static void
attention_over_a_cut_sequence_runs_again (void)
{
  static const struct {
    LsRecompute recompute;
    uint32_t parts;
    bool stops_early, runs;
  } cases[] = {
    { LS_RECOMPUTE_FULL, 0, false, true },
    { LS_RECOMPUTE_FULL, 0, true, true },
    { LS_RECOMPUTE_SELECTIVE, LS_RECOMPUTE_DOTS, false, true },
    { LS_RECOMPUTE_SELECTIVE, LS_RECOMPUTE_DOTS_FLASH, false, false },
    { LS_RECOMPUTE_SELECTIVE, LS_RECOMPUTE_OP, false, false },
  };
  static const LsCpKind kinds[] = { LS_CP_RING, LS_CP_ALL_GATHER, LS_CP_ULYSSES };
  const LsModel m = small_llama ();
  for (guint i = 0; i < G_N_ELEMENTS (cases) * G_N_ELEMENTS (kinds); i++) {
    guint c = i / G_N_ELEMENTS (kinds);
    LsStrategy s = cut_job (2);
    s.mp.cp_kind = kinds[i % G_N_ELEMENTS (kinds)];
    s.recompute = cases[c].recompute;
    s.memory.recompute_parts = cases[c].parts;
    s.memory.recompute_early_stop = cases[c].stops_early;
    g_autoptr (LsPlan) plan = lowered_model (&m, &s);
    double forward = plan ? attention_flops (plan, LS_TAG_F) : 0;
    LS_CHECK (forward > 0);
    LS_CHECK_DOUBLE (plan ? attention_flops (plan, LS_TAG_RECOMPUTE) : 0, ==, cases[c].runs ? forward : 0);
    ls_strategy_clear (&s);
  }
}

/* JAX's policies, by name: what is not named runs again, whatever the format of products, but the product at
 * the end of a layer, whose output nothing needs; norms and the activation do. Kept are, in s b elements of 2
 * bytes per layer beside its input, q h, k and v h/2 each, the projection's h, gate and up 2f, the context h
 * with its log-sum-exp. */
static void
what_is_named_does_not_run_again (void)
{
  static const struct {
    uint32_t parts;
    guint qkv, proj, fc1, attention;
    uint64_t h, f, lse;
  } cases[] = {
    { LS_RECOMPUTE_BUT_QKV, 0, 4, 4, 4, 2, 0, 0 },
    { LS_RECOMPUTE_BUT_PROJECTION, 4, 0, 4, 4, 1, 0, 0 },
    { LS_RECOMPUTE_BUT_QKV | LS_RECOMPUTE_BUT_PROJECTION | LS_RECOMPUTE_BUT_DOWN, 0, 0, 4, 4, 3, 0, 0 },
    { LS_RECOMPUTE_BUT_QKV | LS_RECOMPUTE_BUT_ATTENTION | LS_RECOMPUTE_BUT_PROJECTION, 0, 0, 4, 0, 4, 0, 1 },
    { LS_RECOMPUTE_BUT_UP, 4, 4, 0, 4, 0, 2, 0 },
    { LS_RECOMPUTE_BUT_DOWN, 4, 4, 4, 4, 0, 0, 0 },
    { LS_RECOMPUTE_DOTS, 0, 0, 0, 4, 3, 2, 0 },
    { LS_RECOMPUTE_DOTS_FLASH, 0, 0, 0, 0, 4, 2, 1 },
  };
  const uint64_t tokens = 128 * 2, lse = 4 * tokens * 4, dots = kept_by (LS_RECOMPUTE_DOTS, 1);
  const LsModel m = small_llama ();
  for (guint i = 0; i < 2 * G_N_ELEMENTS (cases); i++) {
    guint c = i / 2;
    LsStrategy s = op_job (1);
    s.memory.recompute_parts = cases[c].parts;
    s.dtype = i % 2 == 0 ? s.dtype : LS_DTYPE_FP8;
    g_autoptr (LsPlan) plan = lowered_model (&m, &s);
    if (!LS_CHECK (plan != NULL))
      return;
    LS_CHECK_INT (count_again (plan, "qkv"), ==, cases[c].qkv);
    LS_CHECK_INT (count_again (plan, "proj"), ==, cases[c].proj);
    LS_CHECK_INT (count_again (plan, "fc1"), ==, cases[c].fc1);
    LS_CHECK_INT (count_again (plan, "fc2"), ==, 0);
    LS_CHECK_INT (count_again (plan, "flash-attention-fwd"), ==, cases[c].attention);
    LS_CHECK_INT (count_again (plan, "rmsnorm-fwd"), ==, 8);
    LS_CHECK_INT (count_again (plan, "swiglu"), ==, 4);
    uint64_t more = 2 * tokens * (cases[c].h * 256 + cases[c].f * 1024) + cases[c].lse * lse;
    LS_CHECK_INT (kept_by (cases[c].parts, 1) - (dots - 4 * 2 * tokens * (3 * 256 + 2 * 1024)), ==, 4 * more);
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
    { LS_RECOMPUTE_BUT_QKV | LS_RECOMPUTE_NORM, 1, 0 },
    { LS_RECOMPUTE_BUT_QKV, 2, 0 },
    { LS_RECOMPUTE_BUT_QKV, 1, LS_RECOMPUTE_BUT_QKV },
    { LS_RECOMPUTE_DOTS_FLASH, 1, LS_RECOMPUTE_DOTS_FLASH },
    { LS_RECOMPUTE_OP, 1, LS_RECOMPUTE_OP },
    { 0, 2, LS_RECOMPUTE_CORE },
    { 0, 1, LS_RECOMPUTE_CORE }, /* selective is the same with every way to be data parallel */
  };
  const LsModel m = small_llama ();
  for (guint i = 0; i < G_N_ELEMENTS (jobs); i++) {
    LsStrategy s = op_job (1);
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    s.memory.recompute_parts = jobs[i].parts;
    s.pp = jobs[i].pp;
    s.gpus = 2 * s.pp;
    s.zero_stage = s.pp > 1 ? 2 : 3;
    s.schedule = s.pp > 1 ? g_strdup ("zb-h1") : NULL;
    gboolean ok = ls_strategy_resolve (&s, &m, s.gpus, 8, diags);
    LS_CHECK_INT (ok, ==, jobs[i].resolved != 0);
    LS_CHECK (!ok || s.memory.recompute_parts == jobs[i].resolved);
    LS_CHECK (ok || ls_diag_list_n (diags) == 1);
    ls_strategy_clear (&s);
  }
}

/* And the message says why. */
static void
op_is_refused_where_nothing_is_known (void)
{
  static const struct {
    uint32_t parts, tp, etp;
    bool is_deepep;
    const char *why;
  } jobs[] = {
    { LS_RECOMPUTE_DOTS, 1, 1, false, "with experts or latent attention, or op" },
    { LS_RECOMPUTE_OP, 2, 2, false, "etp 1 has them whole" },
    { LS_RECOMPUTE_DOTS_FLASH, 1, 1, true, "with experts or latent attention, or op" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (jobs); i++) {
    const LsModel m = with_experts ();
    LsStrategy s = op_job (jobs[i].tp);
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    s.memory.recompute_parts = jobs[i].parts;
    s.ep = 2;
    s.experts.etp = jobs[i].etp;
    s.experts.dispatcher = jobs[i].is_deepep ? LS_DISPATCHER_DEEPEP : LS_DISPATCHER_ALL_TO_ALL;
    LS_CHECK (!ls_strategy_resolve (&s, &m, s.gpus, 8, diags));
    g_autofree char *text = ls_diag_list_format (diags);
    ls_check_impl (strstr (text, jobs[i].why) != NULL, __FILE__, __LINE__, "%s", text);
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
    { "/partition_activations", 2, 0, LS_RECOMPUTE_FULL, true, true },
    { "/partition_activations", 2, 0, LS_RECOMPUTE_NONE, false, true },
  };
  for (guint i = 0; i < G_N_ELEMENTS (wrong); i++) {
    LsStrategy s = job (wrong[i].tp, 1);
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    s.recompute = wrong[i].recompute;
    s.sp = wrong[i].sp;
    s.memory.partition_activations = wrong[i].partitions;
    s.memory.n_recompute_stages = wrong[i].n_stages;
    s.memory.recompute_stages = wrong[i].n_stages > 0 ? g_new0 (uint32_t, wrong[i].n_stages) : NULL;
    LS_CHECK (!ls_strategy_resolve (&s, &model, s.gpus, 8, diags));
    g_autofree char *text = ls_diag_list_format (diags);
    LS_CHECK (strstr (text, wrong[i].pointer) != NULL);
    ls_strategy_clear (&s);
  }
}

LS_TEST_SUITE (LS_TEST (op_runs_every_other_product_again), LS_TEST (op_runs_products_one_by_one_again),
               LS_TEST (listed_copies_of_fsdp_say_how_they_touch_memory),
               LS_TEST (kernels_of_another_access_are_others), LS_TEST (op_keeps_the_other_products),
               LS_TEST (attention_over_a_cut_sequence_is_kept_alike),
               LS_TEST (attention_over_a_cut_sequence_runs_again), LS_TEST (op_goes_with_plain_layers_only),
               LS_TEST (op_keeps_what_exchanges_bring), LS_TEST (op_keeps_what_deepep_brings),
               LS_TEST (op_gathers_tokens_of_cut_experts_again), LS_TEST (op_counts_latent_products),
               LS_TEST (op_is_refused_where_nothing_is_known), LS_TEST (what_is_named_does_not_run_again),
               LS_TEST (odd_recomputation_is_refused))
