/* Pins what holds for every algorithm: wire factors, the shape of a plan,
 * monotone time, alpha-beta. */
#include "fixtures.h"

#include <string.h>

static void
wire_factors_are_those_of_nccl_tests (void)
{
  for (uint32_t n = 2; n <= 1024; n = n * 3 / 2 + 1) {
    LS_CHECK_NEAR (ls_coll_wire_factor (LS_COLL_ALL_REDUCE, n), 2.0 * (n - 1) / n, 1e-15);
    LS_CHECK_NEAR (ls_coll_wire_factor (LS_COLL_ALL_GATHER, n), (n - 1.0) / n, 1e-15);
    LS_CHECK_NEAR (ls_coll_wire_factor (LS_COLL_REDUCE_SCATTER, n), (n - 1.0) / n, 1e-15);
    LS_CHECK_NEAR (ls_coll_wire_factor (LS_COLL_ALL_TO_ALL, n), (n - 1.0) / n, 1e-15);
    LS_CHECK_NEAR (ls_coll_wire_factor (LS_COLL_GATHER, n), (n - 1.0) / n, 1e-15);
    LS_CHECK_NEAR (ls_coll_wire_factor (LS_COLL_SCATTER, n), (n - 1.0) / n, 1e-15);
    LS_CHECK_DOUBLE (ls_coll_wire_factor (LS_COLL_BROADCAST, n), ==, 1.0);
    LS_CHECK_DOUBLE (ls_coll_wire_factor (LS_COLL_REDUCE, n), ==, 1.0);
    LS_CHECK_DOUBLE (ls_coll_wire_factor (LS_COLL_BARRIER, n), ==, 0.0);
  }
  LS_CHECK_DOUBLE (ls_coll_wire_factor (LS_COLL_ALL_REDUCE, 1), ==, 0.0);
  /* 16 GiB over 8 A100 in 127,997 us is 134.22 GB/s of algorithm and 234.89 of
   * bus bandwidth (stas00/ml-engineering network/README.md@744d01e). */
  double alg = 17179869184.0 / 127997e-6;
  LS_CHECK_NEAR (alg * ls_coll_wire_factor (LS_COLL_ALL_REDUCE, 8), 234.89e9, 1e-3);
}

static void
kinds_have_names (void)
{
  LS_CHECK_STR (ls_coll_kind_name (LS_COLL_ALL_REDUCE), "all-reduce");
  LS_CHECK_STR (ls_coll_kind_name (LS_COLL_SEND_RECV), "send-recv");
  for (LsCollKind kind = 0; kind < LS_N_COLL_KINDS; kind++)
    for (LsCollKind other = 0; other < kind; other++)
      LS_CHECK (strcmp (ls_coll_kind_name (kind), ls_coll_kind_name (other)) != 0);
  LS_CHECK_STR (ls_protocol_name (LS_PROTOCOL_LL128), "LL128");
}

static void
algorithms_have_names (void)
{
  const char *const *names = ls_coll_algorithms ();
  LS_CHECK_STR (names[0], "ring");
  for (uint32_t i = 0; names[i]; i++)
    for (uint32_t j = 0; j < i; j++)
      LS_CHECK (strcmp (names[i], names[j]) != 0);
}

static bool
can (const LsCluster *c, const char *algorithm, LsCollKind kind, const uint32_t *gpus, uint32_t n)
{
  LsNccl nccl = round_nccl;
  nccl.nvls_bus = 400e9;
  LsCollRequest request = { .kind = kind, .gpus = gpus, .n = n, .bytes = MIB, .algorithm = algorithm };
  return ls_coll_applies (c, &nccl, &request);
}

static void
an_algorithm_says_what_it_can_do (void)
{
  g_autoptr (LsCluster) c = built (tiny_dgx (4));
  uint32_t gpus[16], uneven[] = { 0, 1, 8 }, apart[] = { 0, 8, 16 };
  spread (gpus, 16, 8);
  LS_CHECK (can (c, NULL, LS_COLL_REDUCE, gpus, 16));
  LS_CHECK (can (c, "ring", LS_COLL_REDUCE, uneven, 3));
  LS_CHECK (!can (c, "ring", LS_COLL_ALL_TO_ALL, gpus, 16));
  LS_CHECK (!can (c, "rings", LS_COLL_ALL_REDUCE, gpus, 16));
  LS_CHECK (can (c, "nvls", LS_COLL_ALL_REDUCE, gpus, 8));
  LS_CHECK (!can (c, "nvls", LS_COLL_ALL_REDUCE, gpus, 7));
  LS_CHECK (!can (c, "nvls", LS_COLL_ALL_REDUCE, gpus, 16));
  LS_CHECK (can (c, "nvls-tree", LS_COLL_ALL_REDUCE, gpus, 16));
  LS_CHECK (!can (c, "nvls-tree", LS_COLL_ALL_REDUCE, gpus, 8));
  LS_CHECK (can (c, "hierarchical", LS_COLL_ALL_GATHER, gpus, 16));
  LS_CHECK (!can (c, "hierarchical", LS_COLL_ALL_GATHER, uneven, 3));
  LS_CHECK (!can (c, "hierarchical", LS_COLL_ALL_GATHER, apart, 3));
  LS_CHECK (can (c, "pat", LS_COLL_ALL_GATHER, apart, 3));
  LS_CHECK (!can (c, "pat", LS_COLL_ALL_GATHER, uneven, 3));
  LS_CHECK (can (c, "collnet", LS_COLL_ALL_REDUCE, apart, 3));
  LS_CHECK (!can (c, "collnet", LS_COLL_ALL_REDUCE, gpus, 8));
}

/* What runs when nobody says what; NCCL's tuner (tuning.h) is not asked here. */
static void
each_kind_has_its_own_default (void)
{
  g_autoptr (LsCluster) c = built (tiny_dgx (2));
  g_autoptr (LsArena) arena = ls_arena_new ();
  static const struct {
    LsCollKind kind;
    const char *algorithm;
  } rows[]
      = { { LS_COLL_ALL_GATHER, "ring" },      { LS_COLL_REDUCE, "ring" },   { LS_COLL_BROADCAST, "ring" },
          { LS_COLL_ALL_TO_ALL, "pairwise" },  { LS_COLL_GATHER, "direct" }, { LS_COLL_SCATTER, "direct" },
          { LS_COLL_BARRIER, "dissemination" } };
  uint32_t gpus[16];
  spread (gpus, 16, 8);
  for (size_t i = 0; i < G_N_ELEMENTS (rows); i++)
    LS_CHECK_STR (plan_of (c, &round_nccl, rows[i].kind, gpus, 16, MIB, LS_NETWORK_FLOW, arena)->algorithm,
                  rows[i].algorithm);
}

static void
one_member_moves_nothing (void)
{
  g_autoptr (LsCluster) c = built (tiny_dgx (1));
  g_autoptr (LsArena) arena = ls_arena_new ();
  uint32_t gpu = 5;
  const LsCollPlan *plan = plan_of (c, &round_nccl, LS_COLL_ALL_REDUCE, &gpu, 1, MIB, LS_NETWORK_FLOW, arena);
  LS_CHECK_INT (plan->n_phases, ==, 0);
  LS_CHECK_DOUBLE (plan->sm_share, ==, 0.0);
  LS_CHECK_INT (ls_coll_time_alone (c, plan), ==, 0);
}

static void
no_bytes_cost_latency_only (void)
{
  g_autoptr (LsCluster) c = built (tiny_dgx (1));
  g_autoptr (LsArena) arena = ls_arena_new ();
  uint32_t gpus[8];
  spread (gpus, 8, 8);
  const LsCollPlan *plan = plan_of (c, &round_nccl, LS_COLL_ALL_GATHER, gpus, 8, 0, LS_NETWORK_FLOW, arena);
  LS_CHECK_INT (plan->phases[0].n_loads, ==, 0);
  LS_CHECK_INT (ls_coll_time_alone (c, plan), ==, 9 * LS_US + 7 * LS_US);
}

static const struct {
  uint32_t n, per_node;
} shapes[] = { { 2, 8 }, { 3, 8 }, { 5, 8 }, { 8, 8 },  { 16, 8 }, { 24, 8 },
               { 4, 1 }, { 3, 1 }, { 9, 3 }, { 10, 5 }, { 7, 2 } };

static void
check_loads (const LsCluster *c, LsCollKind kind, const LsCollPlan *plan)
{
  bool may_be_copied = kind == LS_COLL_COPY_PERMUTE;
  LS_CHECK ((plan->sm_share > 0 || may_be_copied) && plan->sm_share <= 1);
  for (uint32_t p = 0; p < plan->n_phases; p++) {
    const LsPhase *phase = &plan->phases[p];
    LS_CHECK (phase->n_loads > 0 && phase->demand_bytes > 0 && phase->rate_cap > 0);
    for (uint32_t k = 0; k < phase->n_loads; k++) {
      LS_CHECK_INT (phase->loads[k].coef, >, 0);
      LS_CHECK_INT (phase->loads[k].resource, <, ls_cluster_n_resources (c));
      LS_CHECK (k == 0 || phase->loads[k - 1].resource < phase->loads[k].resource);
    }
  }
}

typedef void (*Check) (const LsCluster *c, const LsNccl *nccl, LsCollRequest request);

/* Every algorithm, and the automatic choice, for every kind and shape. */
static void
for_all (const LsNccl *nccl, Check check)
{
  g_autoptr (LsCluster) c = built (tiny_dgx (4));
  const char *const *names = ls_coll_algorithms ();
  for (size_t i = 0; i < G_N_ELEMENTS (shapes); i++)
    for (LsCollKind kind = 0; kind < LS_COLL_SEND_RECV; kind++) {
      uint32_t gpus[32];
      spread (gpus, shapes[i].n, shapes[i].per_node);
      LsCollRequest request = { .kind = kind, .gpus = gpus, .n = shapes[i].n };
      check (c, nccl, request);
      for (uint32_t a = 0; names[a]; a++) {
        request.algorithm = names[a];
        if (ls_coll_applies (c, nccl, &request))
          check (c, nccl, request);
      }
    }
}

static void
has_sound_loads (const LsCluster *c, const LsNccl *nccl, LsCollRequest request)
{
  g_autoptr (LsArena) arena = ls_arena_new ();
  request.bytes = 64 * MIB;
  if (request.kind != LS_COLL_BARRIER)
    check_loads (c, request.kind, ls_coll_plan (c, nccl, &request, LS_NETWORK_FLOW, arena));
}

static void
loads_are_sorted_and_single (void)
{
  LsNccl nccl = round_nccl;
  nccl.nvls_bus = 400e9;
  for_all (&nccl, has_sound_loads);
}

/* The order of the members is NCCL's business. */
static void
order_of_members_does_not_matter (void)
{
  g_autoptr (LsCluster) c = built (tiny_dgx (4));
  g_autoptr (LsArena) arena = ls_arena_new ();
  uint32_t forth[16], back[16];
  spread (forth, 16, 4);
  for (uint32_t i = 0; i < 16; i++)
    back[i] = forth[15 - i];
  const LsCollPlan *a = plan_of (c, &round_nccl, LS_COLL_ALL_REDUCE, forth, 16, MIB, LS_NETWORK_FLOW, arena);
  const LsCollPlan *b = plan_of (c, &round_nccl, LS_COLL_ALL_REDUCE, back, 16, MIB, LS_NETWORK_FLOW, arena);
  LS_CHECK_INT (a->phases[0].n_loads, ==, b->phases[0].n_loads);
  for (uint32_t i = 0; i < a->phases[0].n_loads; i++) {
    LS_CHECK_INT (a->phases[0].loads[i].resource, ==, b->phases[0].loads[i].resource);
    LS_CHECK_INT (a->phases[0].loads[i].coef, ==, b->phases[0].loads[i].coef);
  }
}

static void
takes_longer_for_more (const LsCluster *c, const LsNccl *nccl, LsCollRequest request)
{
  LsTime last = 0;
  for (uint64_t bytes = 1; bytes < UINT64_C (1) << 34; bytes = bytes * 5 / 2 + 1) {
    g_autoptr (LsArena) arena = ls_arena_new ();
    request.bytes = bytes;
    LsTime t = ls_coll_time_alone (c, ls_coll_plan (c, nccl, &request, LS_NETWORK_FLOW, arena));
    ls_check_impl (t >= last, __FILE__, __LINE__, "%s %s of %u: %" G_GUINT64_FORMAT " bytes take less",
                   request.algorithm ? request.algorithm : "automatic", ls_coll_kind_name (request.kind),
                   request.n, bytes);
    last = t;
  }
}

static void
time_grows_with_bytes (void)
{
  LsNccl nccl = round_nccl;
  nccl.ramp_bytes = 1e7;
  nccl.drain = 0.5;
  for_all (&nccl, takes_longer_for_more);
}

static void
time_of_a_send_grows_with_bytes (void)
{
  g_autoptr (LsCluster) c = built (tiny_dgx (2));
  static const uint32_t pairs[][2] = { { 0, 5 }, { 0, 8 }, { 0, 13 } };
  for (size_t i = 0; i < G_N_ELEMENTS (pairs); i++) {
    LsTime last = 0;
    for (uint64_t bytes = 1; bytes < UINT64_C (1) << 34; bytes = bytes * 5 / 4 + 1) {
      g_autoptr (LsArena) arena = ls_arena_new ();
      LsTime t = ls_coll_time_alone (
          c, plan_of (c, &round_nccl, LS_COLL_SEND_RECV, pairs[i], 2, bytes, LS_NETWORK_FLOW, arena));
      LS_CHECK_INT (t, >=, last);
      last = t;
    }
  }
}

static void
alpha_beta_is_the_flow_alone (void)
{
  /* PCIe only: there the links are the limit, not NCCL. */
  LsClusterSpec specs[] = { tiny_dgx (4), tiny_pcie (4) };
  for (size_t k = 0; k < G_N_ELEMENTS (specs); k++) {
    g_autoptr (LsCluster) c = built (specs[k]);
    for (size_t i = 0; i < G_N_ELEMENTS (shapes); i++) {
      g_autoptr (LsArena) arena = ls_arena_new ();
      uint32_t gpus[32];
      spread (gpus, shapes[i].n, shapes[i].per_node);
      const LsCollPlan *flow
          = plan_of (c, &round_nccl, LS_COLL_ALL_REDUCE, gpus, shapes[i].n, 64 * MIB, LS_NETWORK_FLOW, arena);
      const LsCollPlan *ab = plan_of (c, &round_nccl, LS_COLL_ALL_REDUCE, gpus, shapes[i].n, 64 * MIB,
                                      LS_NETWORK_ALPHABETA, arena);
      LS_CHECK_INT (ab->phases[0].n_loads, ==, 0);
      LS_CHECK_INT (ls_coll_time_alone (c, ab), ==, ls_coll_time_alone (c, flow));
    }
  }
}

LS_TEST_SUITE (LS_TEST (wire_factors_are_those_of_nccl_tests), LS_TEST (kinds_have_names),
               LS_TEST (algorithms_have_names), LS_TEST (an_algorithm_says_what_it_can_do),
               LS_TEST (each_kind_has_its_own_default), LS_TEST (one_member_moves_nothing),
               LS_TEST (no_bytes_cost_latency_only), LS_TEST (loads_are_sorted_and_single),
               LS_TEST (order_of_members_does_not_matter), LS_TEST (time_grows_with_bytes),
               LS_TEST (time_of_a_send_grows_with_bytes), LS_TEST (alpha_beta_is_the_flow_alone))
