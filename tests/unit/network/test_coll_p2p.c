/* Pins send/recv over NVLink, NICs and rails; and permutes: a send and a receive per member, by NCCL's kernels or
 * by copy engines. */
#include "ls_test.h"

#include "fixtures.h"
#include "network/script.h"

static const LsCollPlan *
send (const LsCluster *c, uint32_t from, uint32_t to, uint64_t bytes, LsArena *arena)
{
  uint32_t gpus[] = { from, to };
  return plan_of (c, &round_nccl, LS_COLL_SEND_RECV, gpus, 2, bytes, LS_NETWORK_FLOW, arena);
}

static void
over_nvlink (void)
{
  g_autoptr (LsCluster) c = built (tiny_dgx (1));
  g_autoptr (LsArena) arena = ls_arena_new ();
  const LsCollPlan *plan = send (c, 6, 1, 64 * MIB, arena);
  LS_CHECK_STR (plan->algorithm, "p2p");
  LS_CHECK_NEAR (ls_time_to_s (ls_coll_time_alone (c, plan)), 12e-6 + 64 * MIB / 250e9, 1e-9);
  LS_CHECK_NEAR (bytes_on (c, plan->phases, "node0/gpu6>nvswitch"), 64 * MIB, 1e-12);
  LS_CHECK_NEAR (bytes_on (c, plan->phases, "node0/nvswitch>gpu1"), 64 * MIB, 1e-12);
  LS_CHECK_DOUBLE (bytes_on (c, plan->phases, "node0/nvswitch>gpu6"), ==, 0.0); /* one direction only */
  LS_CHECK_NEAR (bytes_on (c, plan->phases, "*/hbm"), 2 * 2 * 64 * MIB, 1e-12);
}

static void
across_nodes (void)
{
  g_autoptr (LsCluster) c = built (tiny_dgx (2));
  g_autoptr (LsArena) arena = ls_arena_new ();
  const LsCollPlan *same_rail = send (c, 3, 11, 64 * MIB, arena), *cross = send (c, 3, 12, 64 * MIB, arena);
  LS_CHECK_NEAR (ls_time_to_s (ls_coll_time_alone (c, same_rail)), 36e-6 + 64 * MIB / 20e9, 1e-9);
  LS_CHECK_INT (coef_on (c, same_rail->phases, "node0/nic3>leaf3"), ==, 2 * LS_COEF_ONE);
  LS_CHECK_INT (coef_on (c, same_rail->phases, "leaf3>spines"), ==, 0);
  LS_CHECK_INT (coef_on (c, cross->phases, "leaf3>spines"), ==, 2 * LS_COEF_ONE);
  LS_CHECK_INT (coef_on (c, cross->phases, "leaf4>node1/nic4"), ==, 2 * LS_COEF_ONE);
}

static void
small_messages_use_one_channel (void)
{
  g_autoptr (LsCluster) c = built (tiny_dgx (2));
  g_autoptr (LsArena) arena = ls_arena_new ();
  LS_CHECK_INT (coef_on (c, send (c, 0, 8, 511 * 1024, arena)->phases, "node0/nic0>leaf0"), ==, LS_COEF_ONE);
  LS_CHECK_INT (coef_on (c, send (c, 0, 8, 512 * 1024, arena)->phases, "node0/nic0>leaf0"), ==,
                2 * LS_COEF_ONE);
}

/* NCCL gives a communicator of two ranks half of its channels: 8 of the 16 that 12 rings become. */
static void
a_communicator_of_two_uses_half_of_its_channels (void)
{
  g_autoptr (LsCluster) c = built (tiny_dgx (1));
  g_autoptr (LsArena) arena = ls_arena_new ();
  LsNccl rings = round_nccl;
  rings.channels_ring = 12;
  const struct {
    uint64_t bytes;
    uint32_t n_channels;
  } rows[] = { { 100 * 1024, 1 }, { MIB / 4, 4 },    { 64 * MIB, 8 },
               { 128 * MIB, 8 },  { 129 * MIB, 16 }, { 1024 * MIB, 16 } };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    uint32_t gpus[] = { 6, 1 };
    const LsCollPlan *plan
        = plan_of (c, &rings, LS_COLL_SEND_RECV, gpus, 2, rows[i].bytes, LS_NETWORK_FLOW, arena);
    LS_CHECK_INT (coef_on (c, plan->phases, "node0/gpu6>nvswitch"), ==, rows[i].n_channels * LS_COEF_ONE);
    LS_CHECK_NEAR (plan->sm_share, rows[i].n_channels * rings.sm_share_per_channel, 1e-12);
  }
}

/* The worked example of coll_p2p.c. */
static void
inside_a_node (void)
{
  g_autoptr (LsCluster) c = built (tiny_dgx (1));
  g_autoptr (LsArena) arena = ls_arena_new ();
  uint32_t gpus[] = { 0, 1, 2, 3 };
  const LsCollPlan *plan
      = plan_of (c, &round_nccl, LS_COLL_PERMUTE, gpus, 4, 64 * MIB, LS_NETWORK_FLOW, arena);
  LS_CHECK_STR (plan->algorithm, "shift");
  LS_CHECK_NEAR (ls_time_to_s (ls_coll_time_alone (c, plan)), 12e-6 + 64 * MIB / 250e9, 1e-9);
  LS_CHECK_NEAR (bytes_on (c, plan->phases, "node0/gpu3>nvswitch"), 64 * MIB, 1e-12);
  LS_CHECK_NEAR (bytes_on (c, plan->phases, "node0/nvswitch>gpu0"), 64 * MIB, 1e-12);
  LS_CHECK_DOUBLE (bytes_on (c, plan->phases, "node0/gpu4>nvswitch"), ==, 0.0);
  LS_CHECK_NEAR (bytes_on (c, plan->phases, "*/hbm"), 4 * 2 * 2 * 64 * MIB, 1e-12);
  LS_CHECK_NEAR (plan->sm_share, 8.0 / 108, 1e-12); /* 32 channels among 4 members */
}

/* As long as a send: a ring of two is a send both ways. */
static void
takes_as_long_as_a_send (void)
{
  g_autoptr (LsCluster) c = built (tiny_dgx (4));
  g_autoptr (LsArena) arena = ls_arena_new ();
  const struct {
    uint32_t gpus[4], n;
  } cases[] = { { { 0, 1 }, 2 }, { { 0, 8 }, 2 }, { { 0, 8, 16, 24 }, 4 }, { { 6, 1, 3 }, 3 } };
  for (size_t i = 0; i < G_N_ELEMENTS (cases); i++)
    for (uint64_t bytes = 1; bytes <= 64 * MIB; bytes *= 64) {
      const LsCollPlan *plan = plan_of (c, &round_nccl, LS_COLL_PERMUTE, cases[i].gpus, cases[i].n, bytes,
                                        LS_NETWORK_FLOW, arena);
      const LsCollPlan *send
          = plan_of (c, &round_nccl, LS_COLL_SEND_RECV, cases[i].gpus, 2, bytes, LS_NETWORK_FLOW, arena);
      LS_CHECK_NEAR ((double) ls_coll_time_alone (c, plan), (double) ls_coll_time_alone (c, send), 1e-6);
      LS_CHECK (cases[i].n > 2 || plan->sm_share == send->sm_share);
    }
}

static void
across_nodes_each_has_its_nic (void)
{
  g_autoptr (LsCluster) c = built (tiny_dgx (4));
  g_autoptr (LsArena) arena = ls_arena_new ();
  uint32_t gpus[] = { 3, 11, 19, 27 };
  const LsCollPlan *plan
      = plan_of (c, &round_nccl, LS_COLL_PERMUTE, gpus, 4, 64 * MIB, LS_NETWORK_FLOW, arena);
  LS_CHECK_NEAR (bytes_on (c, plan->phases, "node3/nic3>leaf3"), 64 * MIB, 1e-12);
  LS_CHECK_NEAR (bytes_on (c, plan->phases, "leaf3>node0/nic3"), 64 * MIB, 1e-12);
  LS_CHECK_INT (coef_on (c, plan->phases, "node1/nic3>leaf3"), ==, 2 * LS_COEF_ONE);
}

static void
copy_engines_hold_no_sms (void)
{
  g_autoptr (LsCluster) c = built (tiny_dgx (2));
  g_autoptr (LsArena) arena = ls_arena_new ();
  uint32_t near[] = { 0, 1, 2, 3 }, far[] = { 0, 8 };
  const LsCollPlan *plan
      = plan_of (c, &round_nccl, LS_COLL_COPY_PERMUTE, near, 4, 64 * MIB, LS_NETWORK_FLOW, arena);
  LS_CHECK_DOUBLE (plan->sm_share, ==, 0.0);
  LS_CHECK_NEAR (bytes_on (c, plan->phases, "node0/gpu3>nvswitch"), 64 * MIB, 1e-12);
  LS_CHECK_NEAR (bytes_on (c, plan->phases, "*/hbm"), 4 * 2 * 64 * MIB, 1e-12);
  LS_CHECK (plan->phases[0].latency < 12 * LS_US);
  /* They do not reach other hosts. */
  plan = plan_of (c, &round_nccl, LS_COLL_COPY_PERMUTE, far, 2, 64 * MIB, LS_NETWORK_FLOW, arena);
  const LsCollPlan *permute
      = plan_of (c, &round_nccl, LS_COLL_PERMUTE, far, 2, 64 * MIB, LS_NETWORK_FLOW, arena);
  LS_CHECK_INT (ls_coll_time_alone (c, plan), ==, ls_coll_time_alone (c, permute));
  LS_CHECK_DOUBLE (plan->sm_share, ==, permute->sm_share);
}

/* --- unequal parts ---------------------------------------------------------------------------------- */

/* Pins all-to-alls whose parts are unequal: bytes on each link, and the busiest member's time. */

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

/* Messages of nothing, four at once: a quarter of what sends move each. */
static void
nothing_has_the_rate_of_a_send (void)
{
  const uint32_t gpus[] = { 0, 1, 2, 3, 4 };
  g_autoptr (LsCluster) c = built (tiny_dgx (1));
  g_autoptr (LsArena) arena = ls_arena_new ();
  LsCollRequest q = { .kind = LS_COLL_ALL_TO_ALL, .gpus = gpus, .n = 5 };
  const LsScript *s = ls_coll_script (c, &round_nccl, &q, arena);
  LS_CHECK_DOUBLE (s->rate_cap (s, 0, 1, 1), ==, round_nccl.p2p_intra / 4 / 0.25); /* of flows of a quarter */
}

LS_TEST_SUITE (LS_TEST (a_communicator_of_two_uses_half_of_its_channels), LS_TEST (over_nvlink),
               LS_TEST (across_nodes), LS_TEST (nothing_has_the_rate_of_a_send),
               LS_TEST (small_messages_use_one_channel), LS_TEST (inside_a_node),
               LS_TEST (takes_as_long_as_a_send), LS_TEST (across_nodes_each_has_its_nic),
               LS_TEST (copy_engines_hold_no_sms), LS_TEST (bytes_follow_the_weights),
               LS_TEST (the_busiest_member_governs), LS_TEST (equal_weights_change_nothing))
