/* Pins what the ranks of a group of experts receive, as weights of its all-to-alls: tokens, and, where these
 * are more than 2^30, shares of 2^30. */
#include "fixtures.h"

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

LS_TEST_MAIN ("weights", LS_TEST (weights_are_tokens_or_shares_of_many))
