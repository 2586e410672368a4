/* Pins who agrees on the largest numbers of fp8 tensors, when and over how many bytes: behind each pass with
 * delayed scaling, before each cast of what sequence parallelism cuts with current scaling, and never else. */
#include "fixtures.h"

/* Of a role, in the passes over its chunks. */
typedef struct {
  guint n_calls, n_light, n_updates;
  uint64_t forward, backward; /* bytes of the calls behind a pass; of the last such pass */
  uint32_t slots;             /* a set of LS_SLOT_BIT                                     */
} Amaxes;

static void
add_segment (const LsSegment *seg, Amaxes *a)
{
  for (uint32_t o = 0; o < seg->n_ops; o++) {
    const LsOp *op = &seg->ops[o];
    a->n_updates += strcmp (op->name, "fp8-scale-update") == 0;
    if (op->kind != LS_OP_COLLECTIVE || strcmp (op->name, "amax all-reduce") != 0)
      continue;
    LS_CHECK_INT (op->coll, ==, LS_COLL_ALL_REDUCE);
    a->n_calls++;
    a->slots |= 1u << op->slot;
    a->n_light += op->is_light;
    *(g_str_has_prefix (seg->name, "forward") ? &a->forward : &a->backward) = op->bytes;
  }
}

static Amaxes
amaxes_of (const LsPlan *plan, uint32_t role)
{
  Amaxes a = { 0 };
  for (uint32_t i = 0; plan && i < plan->programs[role].n_instances; i++)
    add_segment (&plan->segments[plan->programs[role].instances[i].segment], &a);
  return a;
}

/* Two micro-batches on 2 x 2 x 2 ranks, cp or dp copies. */
static LsStrategy
fp8_job (uint32_t cp, LsFp8Recipe recipe, LsAmaxReduction reduction)
{
  LsStrategy s = job (2, 2);
  s.gpus = 8;
  s.cp = cp;
  s.dp = 2 / cp;
  s.sp = true;
  s.global_batch = 2 * s.micro_batch * s.dp;
  s.dtype = LS_DTYPE_FP8;
  s.fp8.recipe = recipe;
  s.fp8.amax_reduction = reduction;
  return s;
}

static Amaxes
lowered (LsStrategy s, LsPlan **ret_plan)
{
  LsModel m = model;
  m.attention = LS_ATTENTION_FLASH;
  LsPlan *plan = lowered_model (&m, &s);
  Amaxes a = amaxes_of (plan, 0);
  ls_strategy_clear (&s);
  if (ret_plan)
    *ret_plan = plan;
  else
    ls_plan_free (plan);
  return a;
}

/* Two layers on a rank with four products each: 3 * 8 numbers forward, 2 * 8 backward; two micro-batches of two
 * passes. */
static void
delayed_scales_follow_each_pass (void)
{
  g_autoptr (LsPlan) plan = NULL;
  Amaxes a = lowered (fp8_job (1, LS_FP8_DELAYED, LS_AMAX_STAGE), &plan);
  LS_CHECK_INT (a.n_calls, ==, 4);
  LS_CHECK_INT (a.n_light, ==, 4);
  LS_CHECK_INT (a.n_updates, ==, 4);
  LS_CHECK_INT (a.forward, ==, 4 * 24);
  LS_CHECK_INT (a.backward, ==, 4 * 16);
  LS_CHECK_INT (a.slots, ==, 1u << LS_SLOT_STAGE);
  for (uint32_t r = 0; plan && r < plan->n_ranks; r++) {
    const LsCommunicator c = ls_plan_communicator (plan, ls_plan_comm_of (plan, r, LS_SLOT_STAGE));
    LS_CHECK_INT (c.n_ranks, ==, 4);
    LS_CHECK (!c.spans_stages);
  }
}

/* Where weight gradients are a pass of their own, that one follows no scale. */
static void
weight_gradients_alone_change_no_scale (void)
{
  LsStrategy s = fp8_job (1, LS_FP8_DELAYED, LS_AMAX_STAGE);
  s.schedule = g_strdup ("zb-h1");
  Amaxes a = lowered (s, NULL);
  LS_CHECK_INT (a.n_calls, ==, 4);
  LS_CHECK_INT (a.backward, ==, 4 * 16);
}

static void
ranks_agree_as_far_as_they_are_asked (void)
{
  Amaxes of_copy = lowered (fp8_job (1, LS_FP8_DELAYED, LS_AMAX_TP), NULL),
         of_parts = lowered (fp8_job (2, LS_FP8_DELAYED, LS_AMAX_TP), NULL),
         alone = lowered (fp8_job (1, LS_FP8_DELAYED, LS_AMAX_NONE), NULL);
  LS_CHECK_INT (of_copy.slots, ==, 1u << LS_SLOT_TP);
  LS_CHECK_INT (of_parts.slots, ==, 1u << LS_SLOT_TP_CP);
  LS_CHECK_INT (of_copy.n_calls, ==, 4);
  LS_CHECK_INT (alone.n_calls, ==, 0);
  LS_CHECK_INT (alone.n_updates, ==, 4);
}

/* Four products of which two have inputs, and two gradients, that are cut: 2 layers, 2 micro-batches. */
static void
current_scales_are_agreed_on_before_each_cast (void)
{
  Amaxes a = lowered (fp8_job (1, LS_FP8_CURRENT, LS_AMAX_STAGE), NULL);
  LS_CHECK_INT (a.n_calls, ==, 4 * 2 * 2);
  LS_CHECK_INT (a.n_updates, ==, 0);
  LS_CHECK_INT (a.slots, ==, 1u << LS_SLOT_TP);
  LS_CHECK_INT (a.forward, ==, 4);
  LS_CHECK_INT (a.backward, ==, 4);
  LsStrategy whole = fp8_job (1, LS_FP8_CURRENT, LS_AMAX_STAGE);
  whole.sp = false;
  LS_CHECK_INT (lowered (whole, NULL).n_calls, ==, 0);
}

static void
other_formats_need_no_scales (void)
{
  static const LsFp8Recipe recipes[] = { LS_FP8_BLOCKWISE, LS_FP8_MXFP8, LS_FP8_DEEPSEEK };
  for (guint i = 0; i < G_N_ELEMENTS (recipes); i++) {
    Amaxes a = lowered (fp8_job (1, recipes[i], LS_AMAX_STAGE), NULL);
    LS_CHECK_INT (a.n_calls + a.n_updates, ==, 0);
  }
  LsStrategy s = fp8_job (1, LS_FP8_DELAYED, LS_AMAX_STAGE);
  s.dtype = LS_DTYPE_BF16;
  Amaxes a = lowered (s, NULL);
  LS_CHECK_INT (a.n_calls + a.n_updates, ==, 0);
}

/* Experts of a rank have products of their own: 8 of 8 with ep 1, and 2 of 8 with ep 4. */
static void
each_expert_has_scales (void)
{
  uint64_t bytes[2];
  for (uint32_t i = 0; i < 2; i++) {
    LsModel m = model;
    m.attention = LS_ATTENTION_FLASH;
    m.moe.n_experts = 8;
    m.moe.top_k = 1;
    m.moe.expert_ffn = 1024;
    m.moe.every = 1;
    LsStrategy s = job (1, 1);
    s.gpus = s.dp = 4;
    s.ep = i == 0 ? 1 : 4;
    s.global_batch = 4 * s.micro_batch;
    s.dtype = LS_DTYPE_FP8;
    g_autoptr (LsPlan) plan = lowered_model (&m, &s);
    bytes[i] = amaxes_of (plan, 0).forward;
    ls_strategy_clear (&s);
  }
  LS_CHECK_INT (bytes[0] - bytes[1], ==, 4 * 3 * 4 * 2 * 6); /* bytes, tensors, layers, products, experts */
}

static void
unequal_replicas_cannot_agree (void)
{
  static uint32_t counts[] = { 3, 1 };
  for (int reduction = LS_AMAX_STAGE; reduction <= LS_AMAX_NONE; reduction++) {
    LsStrategy s = fp8_job (1, LS_FP8_DELAYED, (LsAmaxReduction) reduction);
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    s.layout.micro_batches_per_replica = g_memdup2 (counts, sizeof counts);
    s.layout.n_micro_batches_per_replica = 2;
    s.global_batch = 4 * s.micro_batch;
    LS_CHECK_INT (ls_strategy_resolve (&s, &model, 8, 8, diags), ==, reduction != LS_AMAX_STAGE);
    ls_strategy_clear (&s);
  }
}

LS_TEST_SUITE (LS_TEST (delayed_scales_follow_each_pass), LS_TEST (weight_gradients_alone_change_no_scale),
               LS_TEST (ranks_agree_as_far_as_they_are_asked),
               LS_TEST (current_scales_are_agreed_on_before_each_cast),
               LS_TEST (other_formats_need_no_scales), LS_TEST (each_expert_has_scales),
               LS_TEST (unequal_replicas_cannot_agree))
