/* Pins all-to-alls whose parts are unequal: bytes on each link, and the busiest member's time. */
#include "fixtures.h"

static LsCollPlan *
weighted (const LsCluster *c, const uint32_t *gpus, uint32_t n, const uint32_t *weights, bool weighs_senders,
          LsArena *arena)
{
  LsCollRequest request = { .kind = LS_COLL_ALL_TO_ALL,
                            .gpus = gpus,
                            .n = n,
                            .bytes = 64 * MIB,
                            .weights = weights,
                            .weighs_senders = weighs_senders };
  return ls_coll_plan (c, &round_nccl, &request, LS_NETWORK_FLOW, arena);
}

static LsTime
moving (const LsCluster *c, const LsCollPlan *plan)
{
  LsTime t = ls_coll_time_alone (c, plan);
  for (uint32_t i = 0; i < plan->n_phases; i++)
    t -= plan->phases[i].latency;
  return t;
}

/* Four members, of whom the second receives half of everything: 4, 8, 2 and 2 sixteenths. */
static void
bytes_follow_the_weights (void)
{
  g_autoptr (LsCluster) c = built (tiny_dgx (1));
  g_autoptr (LsArena) arena = ls_arena_new ();
  const uint32_t gpus[] = { 0, 1, 2, 3 }, weights[] = { 4, 8, 2, 2 };
  const LsCollPlan *receive = weighted (c, gpus, 4, weights, false, arena),
                   *send = weighted (c, gpus, 4, weights, true, arena);
  for (uint32_t i = 0; i < 4; i++) {
    g_autofree char *up = g_strdup_printf ("node0/gpu%u>nvswitch", i),
                    *down = g_strdup_printf ("node0/nvswitch>gpu%u", i);
    double w = weights[i] / 16.0;
    LS_CHECK_NEAR (bytes_on (c, receive->phases, down), 3 * w * 64 * MIB, 1e-9);
    LS_CHECK_NEAR (bytes_on (c, receive->phases, up), (1 - w) * 64 * MIB, 1e-9);
    LS_CHECK_NEAR (bytes_on (c, send->phases, up), 3 * w * 64 * MIB, 1e-9);
    LS_CHECK_NEAR (bytes_on (c, send->phases, down), (1 - w) * 64 * MIB, 1e-9);
  }
}

static void
the_busiest_member_governs (void)
{
  g_autoptr (LsCluster) c = built (tiny_dgx (2));
  g_autoptr (LsArena) arena = ls_arena_new ();
  const uint32_t inside[] = { 0, 1, 2, 3 }, across[] = { 0, 1, 8, 9 }, weights[] = { 4, 8, 2, 2 };
  for (uint32_t i = 0; i < 2; i++) {
    const uint32_t *gpus = i == 0 ? inside : across;
    const LsCollPlan *even
        = plan_of (c, &round_nccl, LS_COLL_ALL_TO_ALL, gpus, 4, 64 * MIB, LS_NETWORK_FLOW, arena);
    for (int senders = 0; senders < 2; senders++) {
      const LsCollPlan *plan = weighted (c, gpus, 4, weights, senders, arena);
      LS_CHECK_STR (plan->algorithm, "pairwise");
      LS_CHECK_NEAR ((double) moving (c, plan), 2.0 * (double) moving (c, even), 1e-6);
    }
  }
}

static void
equal_weights_change_nothing (void)
{
  g_autoptr (LsCluster) c = built (tiny_dgx (2));
  g_autoptr (LsArena) arena = ls_arena_new ();
  const uint32_t gpus[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 },
                 weights[] = { 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5 };
  const LsCollPlan *even
      = plan_of (c, &round_nccl, LS_COLL_ALL_TO_ALL, gpus, 12, 64 * MIB, LS_NETWORK_FLOW, arena);
  const LsCollPlan *plan = weighted (c, gpus, 12, weights, false, arena);
  LS_CHECK_INT (ls_coll_time_alone (c, plan), ==, ls_coll_time_alone (c, even));
  LS_CHECK_NEAR (bytes_on (c, plan->phases, "node0/gpu3>nvswitch"),
                 bytes_on (c, even->phases, "node0/gpu3>nvswitch"), 1e-9);
}

LS_TEST_MAIN ("coll_weights", LS_TEST (bytes_follow_the_weights), LS_TEST (the_busiest_member_governs),
              LS_TEST (equal_weights_change_nothing))
