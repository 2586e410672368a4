/* Pins what stands beside kernels in a lowered job: waits for each launch, and weights of exchanges. */
#include "fixtures.h"

/* Pins what a host does that waits for each op it launches (CUDA_LAUNCH_BLOCKING=1): behind each of these
 * stands a wait for its end, and for no other, in the layer that it is of. */

static bool
is_launched (const LsOp *op)
{
  return op->kind == LS_OP_KERNEL || op->kind == LS_OP_COLLECTIVE || op->kind == LS_OP_P2P
      || op->kind == LS_OP_COPY;
}

static bool
is_wait (const LsOp *op)
{
  return op->kind == LS_OP_HOST_SYNC && strcmp (op->name, "launch blocks") == 0;
}

/* How many waits stand in it; each is checked. */
static guint
check_waits (const LsSegment *seg, guint *ret_n_of_layers)
{
  guint n = 0;
  for (uint32_t o = 0; o < seg->n_ops; o++) {
    const LsOp *op = &seg->ops[o], *next = o + 1 < seg->n_ops ? op + 1 : NULL;
    LS_CHECK_INT (is_launched (op), ==, next && is_wait (next));
    if (!next || !is_wait (next))
      continue;
    n++;
    *ret_n_of_layers += next->layer != UINT16_MAX;
    LS_CHECK_INT (next->layer, ==, op->layer);
    LS_CHECK_INT (next->host, ==, LS_HOST_SYNC);
    if (LS_CHECK_INT (next->n_deps, ==, 1)) {
      LS_CHECK_INT (next->deps[0].kind, ==, LS_DEP_END);
      LS_CHECK_INT (next->deps[0].index, ==, o);
    }
  }
  return n;
}

static void
each_launch_is_waited_for_in_its_layer (void)
{
  LsStrategy s = job (2, 1);
  guint n = 0, n_of_layers = 0;
  s.launch_blocking = true;
  g_autoptr (LsPlan) plan = lowered_model (&model, &s);
  for (uint32_t i = 0; plan && i < plan->n_segments; i++)
    n += check_waits (&plan->segments[i], &n_of_layers);
  LS_CHECK (n > 50 && n_of_layers > 50 && n_of_layers < n);
  ls_strategy_clear (&s);
}

/* Pins what the ranks of a group of experts receive, as weights of its all-to-alls: tokens, and, where these
 * are more than 2^30, shares of 2^30; and what sequence parallelism gathers in a backward. */

static void
check_weights (uint32_t seq, uint32_t micro_batch, double sum)
{
  static const double share[] = { 0.5, 0.25, 0.125, 0.125 }; /* of ranks, two experts each */
  LsModel m = model;
  m.seq = seq;
  m.attention = LS_ATTENTION_FLASH;
  m.n_experts = 8;
  m.top_k = 1;
  m.expert_ffn = 1024;
  m.moe_every = 1;
  LsStrategy s = job (1, 1);
  s.gpus = s.dp = s.ep = 4;
  s.micro_batch = micro_batch;
  s.global_batch = 4 * micro_batch;
  s.expert_load = g_strdup ("4,4,2,2,1,1,1,1");
  g_autoptr (LsPlan) plan = lowered_model (&m, &s);
  if (plan && LS_CHECK_INT (plan->n_weights, ==, 4))
    for (uint32_t r = 0; r < 4; r++)
      LS_CHECK_NEAR ((double) plan->weights[r], share[r] * sum, 1e-6);
  ls_strategy_clear (&s);
}

static void
weights_are_tokens_or_shares_of_many (void)
{
  check_weights (4096, 2, 4 * 4096 * 2);
  check_weights (1 << 18, 1 << 14, (double) (1u << 30)); /* of 2^34 tokens */
}

static guint
gathers_of_backward (uint32_t lora_rank)
{
  guint n = 0;
  LsStrategy s = job (2, 1);
  s.sp = true;
  s.lora_rank = lora_rank;
  s.lora_modules = g_strdup ("q");
  g_autoptr (LsPlan) plan = lowered_model (&model, &s);
  for (LsOpPlace at = LS_OP_BEFORE (0); plan && ls_op_next (plan, &at);) {
    const LsOp *op = ls_op_at (plan, at);
    n += op->tag == LS_TAG_B && strcmp (op->name, "tp all-gather") == 0;
  }
  ls_strategy_clear (&s);
  return n;
}

/* Of four layers: inputs of qkv and fc1 for their weight gradients, gradients of the outputs of proj and fc2;
 * of the model the input of the head, and the gradient of the embedding's output. Of what is frozen gradients
 * of proj and fc2 alone, and beside q the input of B. */
static void
frozen_layers_gather_no_input (void)
{
  LS_CHECK_INT (gathers_of_backward (0), ==, 4 * 4 + 2);
  LS_CHECK_INT (gathers_of_backward (8), ==, 4 * 3);
}

LS_TEST_SUITE (LS_TEST (each_launch_is_waited_for_in_its_layer),
               LS_TEST (weights_are_tokens_or_shares_of_many), LS_TEST (frozen_layers_gather_no_input))
