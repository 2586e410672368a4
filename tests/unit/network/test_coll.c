/* Pins what holds for the call of any collective: its bytes and time, its independence of other calls, its limits. */
#include "fixtures.h"
#include "tiny_cluster.h"

#include <string.h>

#include "network/coll.h"
#include <lockstep/error.h>

/* Pins what holds for every algorithm: wire factors, the shape of a plan,
 * monotone time, alpha-beta. */

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
  LS_CHECK_STR (ls_protocol_names[LS_PROTOCOL_LL128], "LL128");
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
  LS_CHECK (can (c, "nvls", LS_COLL_ALL_REDUCE, gpus, 7));
  LS_CHECK (!can (c, "nvls", LS_COLL_ALL_REDUCE, gpus, 2));
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

#define ROUNDING 4 /* ps: rates of flows are in steps */

/* Of a communicator that is held to a few thread blocks: it holds no more SMs, and no call is faster; with as
 * many blocks as there are channels it is the call that it was. */
static void
takes_no_less_with_fewer_blocks (const LsCluster *c, const LsNccl *nccl, LsCollRequest request)
{
  static const uint32_t blocks[] = { 1, 2, 3, 8, 16, 255 };
  request.bytes = 64 * MIB;
  g_autoptr (LsArena) arena = ls_arena_new ();
  const LsCollPlan *whole = ls_coll_plan (c, nccl, &request, LS_NETWORK_FLOW, arena);
  for (guint i = 0; i < G_N_ELEMENTS (blocks); i++) {
    request.max_ctas = blocks[i];
    const LsCollPlan *held = ls_coll_plan (c, nccl, &request, LS_NETWORK_FLOW, arena);
    LsTime all = ls_coll_time_alone (c, whole), some = ls_coll_time_alone (c, held);
    ls_check_impl (blocks[i] == 255 ? some == all : some >= all - ROUNDING, __FILE__, __LINE__,
                   "%s %s of %u: %u blocks take %" G_GINT64_FORMAT " ps, all %" G_GINT64_FORMAT,
                   request.algorithm ? request.algorithm : "automatic", ls_coll_kind_name (request.kind),
                   request.n, blocks[i], (gint64) some, (gint64) all);
    LS_CHECK (held->sm_share <= whole->sm_share);
  }
}

static void
fewer_blocks_are_no_faster (void)
{
  LsNccl nccl = round_nccl;
  nccl.nvls_bus = 400e9;
  for_all (&nccl, takes_no_less_with_fewer_blocks);
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
      LsCollRequest request = { LS_COLL_ALL_REDUCE, gpus, shapes[i].n, .bytes = 64 * MIB, .is_light = true };
      const LsCollPlan *light = ls_coll_plan (c, &round_nccl, &request, LS_NETWORK_FLOW, arena);
      LS_CHECK_INT (light->phases[0].n_loads, ==, 0);
      LS_CHECK_INT (ls_coll_time_alone (c, light), ==, ls_coll_time_alone (c, flow));
    }
  }
}

/* Pins: what a call takes alone does not depend on which calls were asked for before. Groups that lie alike
 * share an answer, and only those do: in any order, each is the time of its own plan, to the picosecond. */

static LsTime
planned (const LsCluster *c, LsCollKind kind, uint64_t bytes, const uint32_t *gpus, uint32_t n)
{
  g_autoptr (LsArena) arena = ls_arena_new ();
  return ls_coll_time_alone (c, plan_of (c, &round_nccl, kind, gpus, n, bytes, LS_NETWORK_FLOW, arena));
}

/* Ascending: n GPUs, each `stride` from the one before. */
static void
check_group (LsCallTimes *times, const LsCluster *c, LsCollKind kind, uint32_t first, uint32_t stride,
             uint32_t n)
{
  uint32_t gpus[8];
  for (uint32_t i = 0; i < n; i++)
    gpus[i] = first + i * stride;
  if (gpus[n - 1] < c->n_gpus)
    LS_CHECK_INT (ls_call_time (times, c, kind, 3 * MIB, gpus, n), ==, planned (c, kind, 3 * MIB, gpus, n));
}

static void
check_all (LsClusterSpec spec)
{
  g_autoptr (LsCluster) c = built (spec);
  g_autoptr (LsCallTimes) times = ls_call_times_new (&round_nccl, false);
  const LsCollKind kinds[] = { LS_COLL_ALL_REDUCE, LS_COLL_ALL_TO_ALL, LS_COLL_REDUCE_SCATTER };
  for (guint k = 0; k < G_N_ELEMENTS (kinds); k++)
    for (uint32_t n = 2; n <= 8; n *= 2)
      for (uint32_t stride = 1; stride <= 16; stride *= 2)
        for (uint32_t first = 0; first < c->n_gpus; first++)
          check_group (times, c, kinds[k], first, stride, n);
}

static void
groups_that_lie_alike_share_an_answer (void)
{
  LsClusterSpec leaves = tiny_dgx (7), cut = tiny_dgx (4);
  leaves.network.nodes_per_leaf = 2; /* neighbours share a leaf or do not */
  leaves.network.oversubscription = 2;
  cut.network.nodes_per_leaf = 2;
  cut.network.faults = g_array_new (FALSE, TRUE, sizeof (LsFault));
  const LsFault half = { .link = (char *) "node1/nic0>leaf0", .capacity = 0.5 };
  g_array_append_val (cut.network.faults, half);
  check_all (tiny_dgx (3));
  check_all (leaves);
  check_all (tiny_fat_tree (9));
  check_all (tiny_dragonfly (11, LS_FABRIC_DRAGONFLY, LS_ROUTING_IDEAL));
  check_all (tiny_dragonfly (11, LS_FABRIC_DRAGONFLY, LS_ROUTING_MINIMAL));
  check_all (tiny_dragonfly (11, LS_FABRIC_DRAGONFLY_PLUS, LS_ROUTING_VALIANT));
  check_all (cut);
  check_all (tiny_torus (1, 4, 4, 0, LS_WRAP_NONE));
  g_array_unref (cut.network.faults);
}

static void
clusters_and_directions_are_told_apart (void)
{
  g_autoptr (LsCluster) c = built (tiny_dgx (2)), slow = NULL;
  LsClusterSpec spec = tiny_dgx (2);
  spec.nics.port.bandwidth_bytes_per_s /= 2;
  slow = built (spec);
  g_autoptr (LsCallTimes) times = ls_call_times_new (&round_nccl, false);
  const uint32_t there[] = { 0, 8 }, back[] = { 8, 0 };
  for (int i = 0; i < 2; i++) {
    LS_CHECK_INT (ls_call_time (times, c, LS_COLL_SEND_RECV, 64 * MIB, there, 2), ==,
                  planned (c, LS_COLL_SEND_RECV, 64 * MIB, there, 2));
    LS_CHECK_INT (ls_call_time (times, slow, LS_COLL_SEND_RECV, 64 * MIB, there, 2), ==,
                  planned (slow, LS_COLL_SEND_RECV, 64 * MIB, there, 2));
    LS_CHECK_INT (ls_call_time (times, c, LS_COLL_SEND_RECV, 64 * MIB, back, 2), ==,
                  planned (c, LS_COLL_SEND_RECV, 64 * MIB, back, 2));
  }
  LS_CHECK (planned (c, LS_COLL_SEND_RECV, 64 * MIB, there, 2)
            < planned (slow, LS_COLL_SEND_RECV, 64 * MIB, there, 2));
}

/* On links alone a call takes no longer where memory is slow. */
static void
memory_does_not_hold_up_calls_on_links (void)
{
  LsClusterSpec spec = tiny_dgx (2);
  g_autoptr (LsCluster) c = built (spec), slow = NULL;
  spec.gpu.hbm_efficiency /= 1000;
  slow = built (spec);
  g_autoptr (LsCallTimes) times = ls_call_times_new (&round_nccl, false),
                          on_links = ls_call_times_new (&round_nccl, true);
  const uint32_t gpus[] = { 0, 1, 2, 3 };
  LsTime alone = ls_call_time (times, c, LS_COLL_ALL_REDUCE, 64 * MIB, gpus, 4);
  LS_CHECK_INT (ls_call_time (on_links, c, LS_COLL_ALL_REDUCE, 64 * MIB, gpus, 4), ==, alone);
  LS_CHECK_INT (ls_call_time (on_links, slow, LS_COLL_ALL_REDUCE, 64 * MIB, gpus, 4), ==, alone);
  LS_CHECK_INT (ls_call_time (times, slow, LS_COLL_ALL_REDUCE, 64 * MIB, gpus, 4), >, alone);
}

/* Pins: calls that are too large are refused before they are begun, with the numbers; those
 * just below are not; nothing overflows on the way. */

typedef struct {
  LsCollKind kind;
  const char *algorithm;
  LsNetworkFidelity fidelity;
  uint32_t n;
  const char *says; /* NULL: accepted */
} Case;

static void
check_case (const LsCluster *c, const uint32_t *gpus, const Case *x)
{
  g_autoptr (GError) error = NULL;
  LsCollRequest request
      = { .kind = x->kind, .gpus = gpus, .n = x->n, .bytes = 1024 * MIB, .algorithm = x->algorithm };
  gboolean ok = ls_coll_check_size (c, &round_nccl, &request, x->fidelity, &error);
  if (!x->says) {
    LS_CHECK_NO_ERROR (error);
    LS_CHECK (ok);
    return;
  }
  if (LS_CHECK (!ok && g_error_matches (error, LS_ERROR, LS_ERROR_LIMIT)))
    ls_check_impl (strstr (error->message, x->says) != NULL, __FILE__, __LINE__, "\"%s\" does not say \"%s\"",
                   error->message, x->says);
}

static void
messages_are_counted_first (void)
{
  g_autoptr (LsCluster) c = built (tiny_dgx (2100));
  g_autofree uint32_t *gpus = g_new (uint32_t, 16800);
  for (uint32_t i = 0; i < 16800; i++)
    gpus[i] = i;
  const Case cases[] = {
    { LS_COLL_ALL_TO_ALL, NULL, LS_NETWORK_FLOW, 16384, NULL },
    { LS_COLL_ALL_TO_ALL, NULL, LS_NETWORK_FLOW, 16392, "2.69e+08 messages to add up" },
    { LS_COLL_ALL_REDUCE, "pairwise", LS_NETWORK_FLOW, 16384, "5.37e+08 messages to add up" },
    { LS_COLL_ALL_REDUCE, "ring", LS_NETWORK_FLOW, 16800, NULL },
    { LS_COLL_ALL_REDUCE, "ring", LS_NETWORK_STEP, 1024, NULL },
    { LS_COLL_ALL_REDUCE, "ring", LS_NETWORK_STEP, 16800, "messages, one by one" },
    { LS_COLL_ALL_REDUCE, "naive", LS_NETWORK_STEP, 16800, "messages at once" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    check_case (c, gpus, &cases[i]);
}

/* Nodes of 72 + 71: 5,112 rings, which 143 members may still run. Of 53, 59, 61, 67, 71: 9e8 would be
 * needed, and 4e9 is beyond 32 bits with one more of 72; a plan takes as many as it can tell apart. */
static void
rings_of_uneven_nodes_are_counted_first (void)
{
  LsClusterSpec spec = tiny_dgx (6);
  spec.gpus_per_node = 72;
  spec.nics.n = spec.network.rails = 72;
  g_autoptr (LsCluster) c = built (spec);
  const uint32_t members[] = { 53, 59, 61, 67, 71, 72 };
  uint32_t gpus[6 * 72], n = 0;
  for (uint32_t i = 0; i < 143; i++)
    gpus[i] = i;
  check_case (c, gpus, &(Case) { LS_COLL_ALL_REDUCE, "ring", LS_NETWORK_STEP, 143, NULL });
  check_case (c, gpus, &(Case) { LS_COLL_ALL_REDUCE, "ring", LS_NETWORK_FLOW, 143, NULL });
  for (uint32_t h = 0; h < 6; h++)
    for (uint32_t i = 0; i < members[h]; i++)
      gpus[n++] = h * 72 + i;
  check_case (c, gpus, &(Case) { LS_COLL_ALL_REDUCE, "ring", LS_NETWORK_STEP, n, "messages at once" });
  check_case (c, gpus, &(Case) { LS_COLL_ALL_REDUCE, "tree", LS_NETWORK_FLOW, n, "messages to add up" });
  g_autoptr (LsArena) arena = ls_arena_new ();
  const LsCollPlan *p = plan_by (c, &round_nccl, "ring", LS_COLL_ALL_REDUCE, gpus, n, 1024 * MIB, arena);
  LS_CHECK (ls_coll_time_alone (c, p) > 0 && ls_coll_time_alone (c, p) < LS_S);
}

LS_TEST_SUITE (LS_TEST (wire_factors_are_those_of_nccl_tests), LS_TEST (kinds_have_names),
               LS_TEST (algorithms_have_names), LS_TEST (an_algorithm_says_what_it_can_do),
               LS_TEST (each_kind_has_its_own_default), LS_TEST (one_member_moves_nothing),
               LS_TEST (no_bytes_cost_latency_only), LS_TEST (loads_are_sorted_and_single),
               LS_TEST (order_of_members_does_not_matter), LS_TEST (time_grows_with_bytes),
               LS_TEST (fewer_blocks_are_no_faster), LS_TEST (time_of_a_send_grows_with_bytes),
               LS_TEST (alpha_beta_is_the_flow_alone), LS_TEST (groups_that_lie_alike_share_an_answer),
               LS_TEST (clusters_and_directions_are_told_apart),
               LS_TEST (memory_does_not_hold_up_calls_on_links), LS_TEST (messages_are_counted_first),
               LS_TEST (rings_of_uneven_nodes_are_counted_first))
