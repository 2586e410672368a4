/* Pins collectives of GPUs on NVSwitches: rings and NVLink SHARP. */
#include "fixtures.h"
#include "tiny_cluster.h"

#include <math.h>

#include "cluster/route.h"
#include "network/script.h"

/* Pins the ring: closed form alone, bytes on links, symmetry, NICs, fractions. */

static const LsPhase *
ring (const LsCluster *c, const LsNccl *nccl, LsCollKind kind, uint32_t n, uint32_t per_node, uint64_t bytes,
      LsArena *arena)
{
  uint32_t gpus[64];
  spread (gpus, n, per_node);
  const LsCollPlan *plan = plan_by (c, nccl, "ring", kind, gpus, n, bytes, arena);
  LS_CHECK_STR (plan->algorithm, "ring");
  LS_CHECK_INT (plan->n_phases, ==, 1);
  return &plan->phases[0];
}

static double
alone_s (const LsCluster *c, const LsPhase *phase)
{
  LsCollPlan plan = { .n_phases = 1, .phases = (LsPhase *) phase };
  return ls_time_to_s (ls_coll_time_alone (c, &plan));
}

static void
alone_in_a_node_is_the_closed_form (void)
{
  g_autoptr (LsCluster) c = built (tiny_dgx (1));
  for (uint32_t n = 2; n <= 8; n++)
    for (LsCollKind kind = LS_COLL_ALL_REDUCE; kind <= LS_COLL_REDUCE_SCATTER; kind++) {
      g_autoptr (LsArena) arena = ls_arena_new ();
      LsNccl nccl = round_nccl;
      nccl.drain = 0.5;
      nccl.ramp_bytes = 8e6;
      uint32_t sends = (kind == LS_COLL_ALL_REDUCE ? 2 : 1) * (n - 1);
      double wire = (double) sends / n * 256 * MIB;
      double base = kind == LS_COLL_ALL_REDUCE ? 10e-6 : kind == LS_COLL_ALL_GATHER ? 9e-6 : 8e-6;
      double expected = base + sends * 1e-6 + wire / 240e9 * (1 + 0.5 / sends + 8e6 / (wire + 8e6));
      nccl.nvls_bus = 0;
      LS_CHECK_NEAR (alone_s (c, ring (c, &nccl, kind, n, 8, 256 * MIB, arena)), expected, 1e-8);
    }
}

/* Where GPUs have no way but through the memory of their CPUs, the slower rate of the two is the ring's. */
static void
rings_through_host_memory_are_slower (void)
{
  LsClusterSpec spec = tiny_pcie (1);
  spec.server.copies = LS_COPIES_NOWHERE;
  g_autoptr (LsCluster) c = built (spec);
  g_autoptr (LsArena) arena = ls_arena_new ();
  LsNccl nccl = round_nccl;
  nccl.ring_bus_intra = 4e9;
  for (nccl.ring_bus_staged = 2e9; nccl.ring_bus_staged < 9e9; nccl.ring_bus_staged *= 4) {
    const LsPhase *p = ring (c, &nccl, LS_COLL_ALL_GATHER, 2, 8, 1024 * MIB, arena);
    LS_CHECK_NEAR (alone_s (c, p) - ls_time_to_s (p->latency), 512 * MIB / fmin (4e9, nccl.ring_bus_staged),
                   1e-3);
  }
}

/* The example in the header of coll_ring.c. */
static void
worked_example_holds (void)
{
  g_autoptr (LsCluster) c = built (tiny_dgx (1));
  g_autoptr (LsArena) arena = ls_arena_new ();
  LsNccl nccl = round_nccl;
  nccl.drain = 0.5;
  const LsPhase *p = ring (c, &nccl, LS_COLL_ALL_REDUCE, 8, 8, 1024 * MIB, arena);
  LS_CHECK_NEAR (alone_s (c, p) - ls_time_to_s (p->latency), 8.109e-3, 1e-4);
}

/* NCCL joins nodes in order of their lowest ranks. Leaves of two nodes: by 0, 1, 2, 3 a ring goes up twice, by
 * 0, 2, 1, 3 at every node; where nodes begin and which GPU has which rank in a node changes nothing. */
static void
nodes_are_joined_in_order_of_their_ranks (void)
{
  LsClusterSpec spec = tiny_dgx (4);
  spec.network.nodes_per_leaf = 2;
  g_autoptr (LsCluster) c = built (spec);
  static const struct {
    uint32_t gpus[8], n_up;
  } orders[] = {
    { { 0, 1, 8, 9, 16, 17, 24, 25 }, 2 }, { { 1, 0, 9, 8, 17, 16, 25, 24 }, 2 },
    { { 8, 16, 24, 0, 1, 9, 25, 17 }, 2 }, { { 0, 1, 16, 17, 8, 9, 24, 25 }, 4 },
    { { 16, 8, 24, 0, 1, 17, 25, 9 }, 4 },
  };
  for (guint i = 0; i < G_N_ELEMENTS (orders); i++) {
    g_autoptr (LsArena) arena = ls_arena_new ();
    const LsCollPlan *plan
        = plan_by (c, &round_nccl, "ring", LS_COLL_ALL_GATHER, orders[i].gpus, 8, 64 * MIB, arena);
    double wire = 7.0 / 8 * 64 * MIB;
    LS_CHECK_NEAR (bytes_on (c, &plan->phases[0], "leaf*>spine*"), orders[i].n_up * wire, 1e-12);
  }
}

/* Whatever limits the rate, the bytes that cross are those of the formula. */
static void
bytes_on_links_equal_the_formula (void)
{
  LsClusterSpec spec = tiny_dgx (4);
  spec.network.pxn = true; /* rings keep to rails */
  g_autoptr (LsCluster) c = built (spec);
  static const struct {
    uint32_t n, per_node;
  } shapes[] = { { 2, 8 },  { 3, 8 },  { 8, 8 },  { 16, 8 }, { 32, 8 },
                 { 12, 3 }, { 20, 5 }, { 28, 7 }, { 24, 6 }, { 4, 1 } };
  for (size_t i = 0; i < G_N_ELEMENTS (shapes); i++)
    for (LsCollKind kind = LS_COLL_ALL_REDUCE; kind <= LS_COLL_REDUCE_SCATTER; kind++) {
      g_autoptr (LsArena) arena = ls_arena_new ();
      uint32_t n = shapes[i].n, k = MIN (n, shapes[i].per_node), hosts = n / k;
      double wire = ls_coll_wire_factor (kind, n) * 64.0 * MIB;
      const LsPhase *p = ring (c, &round_nccl, kind, n, shapes[i].per_node, 64 * MIB, arena);
      double inside = hosts == 1 ? n : hosts * (k - 1.0);
      LS_CHECK_NEAR (1 + bytes_on (c, p, "*gpu?>nvswitch"), 1 + inside * wire, 1e-12);
      LS_CHECK_NEAR (1 + bytes_on (c, p, "*/nvswitch>gpu?"), 1 + inside * wire, 1e-12);
      double across = hosts == 1 ? 0 : hosts * wire;
      LS_CHECK_NEAR (1 + bytes_on (c, p, "*/nic?>leaf*"), 1 + across, 1e-12);
      LS_CHECK_NEAR (1 + bytes_on (c, p, "leaf*>node*/nic?"), 1 + across, 1e-12);
      LS_CHECK_NEAR (1 + bytes_on (c, p, "*/gpu?>pcie?"), 1 + across, 1e-12);
      /* Rail-aligned: no channel changes its rail. */
      LS_CHECK_DOUBLE (bytes_on (c, p, "leaf*>spines"), ==, 0.0);
      LS_CHECK_NEAR (bytes_on (c, p, "*/hbm"), 3 * n * wire, 1e-12);
    }
}

static void
members_are_alike (void)
{
  g_autoptr (LsCluster) c = built (tiny_dgx (4));
  g_autoptr (LsArena) arena = ls_arena_new ();
  for (uint32_t k = 1; k <= 8; k++) {
    const LsPhase *p = ring (c, &round_nccl, LS_COLL_ALL_REDUCE, 4 * k, k, 64 * MIB, arena);
    for (uint32_t i = 0; i < 4 * k; i++) {
      g_autofree char *nic = g_strdup_printf ("node%u/nic%u>leaf%u", i / k, i % k, i % k);
      g_autofree char *gpu = g_strdup_printf ("node%u/gpu%u>nvswitch", i / k, i % k);
      LS_CHECK_INT (coef_on (c, p, nic), ==, coef_on (c, p, "node0/nic0>leaf0"));
      LS_CHECK_INT (coef_on (c, p, gpu), ==, coef_on (c, p, "node0/gpu0>nvswitch"));
      LS_CHECK_INT (coef_on (c, p, gpu), ==, (k - 1) * coef_on (c, p, nic));
    }
  }
}

static void
flows_of_a_whole_node (void)
{
  g_autoptr (LsCluster) c = built (tiny_dgx (2));
  g_autoptr (LsArena) arena = ls_arena_new ();
  const LsPhase *in = ring (c, &round_nccl, LS_COLL_ALL_GATHER, 8, 8, 64 * MIB, arena);
  LS_CHECK_INT (coef_on (c, in, "node0/gpu3>nvswitch"), ==, 24 * LS_COEF_ONE);
  const LsPhase *across = ring (c, &round_nccl, LS_COLL_ALL_GATHER, 16, 8, 64 * MIB, arena);
  LS_CHECK_INT (coef_on (c, across, "node0/gpu3>nvswitch"), ==, 14 * LS_COEF_ONE); /* 16 channels, 7 of 8 */
  LS_CHECK_INT (coef_on (c, across, "node0/nic3>leaf3"), ==, 2 * LS_COEF_ONE);
  LS_CHECK_NEAR (across->rate_cap, 8 * 16e9 / 16, 1e-12);
}

/* One member per node, as in data parallelism beside tp 8: one NIC each. */
static void
one_member_per_node_uses_one_nic (void)
{
  g_autoptr (LsCluster) c = built (tiny_dgx (4));
  g_autoptr (LsArena) arena = ls_arena_new ();
  const LsPhase *p = ring (c, &round_nccl, LS_COLL_REDUCE_SCATTER, 4, 1, 64 * MIB, arena);
  LS_CHECK_INT (coef_on (c, p, "node2/nic0>leaf0"), ==, 2 * LS_COEF_ONE);
  LS_CHECK_DOUBLE (bytes_on (c, p, "*nvswitch*"), ==, 0.0);
  double expected = 8e-6 + 3 * 14e-6 + 0.75 * 64 * MIB / 16e9;
  LS_CHECK_NEAR (alone_s (c, p), expected, 1e-9);
}

/* The NIC itself is the limit once NCCL is not. */
static void
a_slow_link_is_the_limit (void)
{
  LsClusterSpec spec = tiny_dgx (2);
  spec.nics.port.bandwidth_bytes_per_s = spec.network.spine.bandwidth_bytes_per_s = 10e9;
  spec.nics.port.efficiency = spec.network.spine.efficiency = 1;
  g_autoptr (LsCluster) c = built (spec);
  g_autoptr (LsArena) arena = ls_arena_new ();
  const LsPhase *p = ring (c, &round_nccl, LS_COLL_ALL_REDUCE, 16, 8, 1024 * MIB, arena);
  double wire = ls_coll_wire_factor (LS_COLL_ALL_REDUCE, 16) * 1024.0 * MIB;
  LS_CHECK_NEAR (alone_s (c, p) - ls_time_to_s (p->latency), wire / (8 * 10e9), 1e-9);
}

static void
small_messages_use_fewer_channels (void)
{
  g_autoptr (LsCluster) c = built (tiny_dgx (1));
  g_autoptr (LsArena) arena = ls_arena_new ();
  static const struct {
    uint64_t bytes;
    uint32_t channels;
  } rows[] = { { 1, 1 },           { 32768, 1 },           { 65535, 1 },       { 65536, 2 },
               { 10 * 32768, 10 }, { 24 * 32768 - 1, 23 }, { 24 * 32768, 24 }, { 64 * MIB, 24 } };
  uint32_t gpus[8];
  spread (gpus, 8, 8);
  for (size_t i = 0; i < G_N_ELEMENTS (rows); i++) {
    const LsCollPlan *plan
        = plan_of (c, &round_nccl, LS_COLL_ALL_REDUCE, gpus, 8, rows[i].bytes, LS_NETWORK_FLOW, arena);
    LS_CHECK_INT (coef_on (c, &plan->phases[0], "node0/gpu0>nvswitch"), ==, rows[i].channels * LS_COEF_ONE);
    LS_CHECK_NEAR (plan->sm_share, rows[i].channels / 108.0, 1e-12);
    LS_CHECK_NEAR (plan->phases[0].rate_cap * rows[i].channels, 240e9, 1e-12);
  }
}

/* 3 members on one host, 2 on another: channels pair up by number, and change
 * rails on the way. All sums stay exact. */
static void
uneven_hosts_keep_exact_sums (void)
{
  g_autoptr (LsCluster) c = built (tiny_dgx (2));
  g_autoptr (LsArena) arena = ls_arena_new ();
  static const uint32_t gpus[] = { 0, 1, 2, 8, 9 };
  const LsCollPlan *plan = plan_by (c, &round_nccl, "ring", LS_COLL_ALL_REDUCE, gpus, 5, 64 * MIB, arena);
  const LsPhase *p = &plan->phases[0];
  double wire = ls_coll_wire_factor (LS_COLL_ALL_REDUCE, 5) * 64.0 * MIB;
  LS_CHECK_NEAR (bytes_on (c, p, "node0/nic?>leaf*"), wire, 1e-12);
  LS_CHECK_NEAR (bytes_on (c, p, "node1/nic?>leaf*"), wire, 1e-12);
  LS_CHECK_NEAR (bytes_on (c, p, "node0/gpu?>nvswitch"), 2 * wire, 1e-12);
  LS_CHECK_NEAR (bytes_on (c, p, "node1/gpu?>nvswitch"), wire, 1e-12);
  LS_CHECK (bytes_on (c, p, "leaf*>spines") > 0);
}

/* Rings leave by the NIC through which they came where PXN gets there, or if each member has another one near
 * its NIC; else by the last member's, and so over the spines. What a NIC carries is the same. */
static void
rings_without_pxn_cross_rails (void)
{
  static const struct {
    uint32_t gpus[8], n;
    bool pxn, nvlink, crosses;
  } rows[] = {
    { { 0, 4, 8, 12 }, 4, false, true, true },               /* as data parallelism with tp 4      */
    { { 0, 2, 4, 6, 8, 10, 12, 14 }, 8, false, true, true }, /* with tp 2                          */
    { { 0, 1, 8, 9 }, 4, false, true, false },               /* both at one switch                 */
    { { 0, 1, 4, 8, 9, 12 }, 6, false, true, true },         /* one is alone                       */
    { { 3, 11 }, 2, false, true, false },                    /* tp 8: one way in and out           */
    { { 0, 4, 8, 12 }, 4, true, true, false },
    { { 0, 4, 8, 12 }, 4, true, false, true },
  };
  for (size_t i = 0; i < G_N_ELEMENTS (rows); i++) {
    g_autoptr (LsArena) arena = ls_arena_new ();
    LsClusterSpec spec = tiny_dgx (2);
    spec.network.pxn = rows[i].pxn;
    if (!rows[i].nvlink)
      spec.server.nvswitch_planes = spec.server.nvlinks_per_gpu = 0;
    g_autoptr (LsCluster) c = built (spec);
    const LsCollPlan *plan
        = plan_by (c, &round_nccl, "ring", LS_COLL_ALL_REDUCE, rows[i].gpus, rows[i].n, 64 * MIB, arena);
    double wire = ls_coll_wire_factor (LS_COLL_ALL_REDUCE, rows[i].n) * 64.0 * MIB;
    double spines = bytes_on (c, &plan->phases[0], "leaf*>spines");
    LS_CHECK_NEAR (bytes_on (c, &plan->phases[0], "node0/nic?>leaf*"), wire, 1e-12);
    if (!rows[i].crosses)
      LS_CHECK_INT ((long long) spines, ==, 0);
    else
      LS_CHECK_NEAR (spines, 2 * wire, 1e-12);
  }
}

/* Pins NVLink SHARP: when it is chosen, its bytes, its time. */

static LsNccl
with_nvls (void)
{
  LsNccl nccl = round_nccl;
  nccl.ring_bus_intra = 360e9;
  nccl.nvls_bus = 476e9;
  return nccl;
}

static LsCluster *
h100_node (void)
{
  LsClusterSpec spec = tiny_dgx (2);
  spec.server.nvlinks_per_gpu = 18;
  return built (spec);
}

static const LsCollPlan *
all_reduce (const LsCluster *c, uint32_t n, uint64_t bytes, LsArena *arena)
{
  uint32_t gpus[16];
  spread (gpus, n, 8);
  LsNccl nccl = with_nvls ();
  return plan_of (c, &nccl, LS_COLL_ALL_REDUCE, gpus, n, bytes, LS_NETWORK_FLOW, arena);
}

/* The example in the header of coll_nvls.c; busbw is then nvls_bus. */
static void
whole_nodes_reduce_in_the_switch (void)
{
  g_autoptr (LsCluster) c = h100_node ();
  g_autoptr (LsArena) arena = ls_arena_new ();
  const LsCollPlan *plan = all_reduce (c, 8, 1024 * MIB, arena);
  LS_CHECK_STR (plan->algorithm, "nvls");
  double moving = ls_time_to_s (ls_coll_time_alone (c, plan) - plan->phases[0].latency);
  LS_CHECK_NEAR (moving, 3.948e-3, 1e-3);
  LS_CHECK_NEAR (1.75 * 1024 * MIB / moving, 476e9, 1e-9);
}

static void
each_trunk_carries_the_array_and_its_share (void)
{
  g_autoptr (LsCluster) c = h100_node ();
  g_autoptr (LsArena) arena = ls_arena_new ();
  const LsPhase *p = &all_reduce (c, 8, 64 * MIB, arena)->phases[0];
  for (uint32_t g = 0; g < 8; g++) {
    g_autofree char *up = g_strdup_printf ("node0/gpu%u>nvswitch", g);
    g_autofree char *down = g_strdup_printf ("node0/nvswitch>gpu%u", g);
    LS_CHECK_NEAR (bytes_on (c, p, up), 1.125 * 64 * MIB, 1e-12);
    LS_CHECK_NEAR (bytes_on (c, p, down), 1.125 * 64 * MIB, 1e-12);
  }
  LS_CHECK_NEAR (bytes_on (c, p, "*/hbm"), 8 * 3 * 1.75 * 64 * MIB, 1e-6);
}

static void
parts_of_nodes_and_other_kinds_do_without (void)
{
  g_autoptr (LsCluster) c = h100_node ();
  g_autoptr (LsArena) arena = ls_arena_new ();
  LS_CHECK_STR (all_reduce (c, 4, 64 * MIB, arena)->algorithm, "ring");
  LS_CHECK_STR (all_reduce (c, 16, 64 * MIB, arena)->algorithm, "nvls-tree");
  uint32_t gpus[8];
  spread (gpus, 8, 8);
  LsNccl nccl = with_nvls ();
  const LsCollPlan *ag = plan_of (c, &nccl, LS_COLL_ALL_GATHER, gpus, 8, MIB, LS_NETWORK_FLOW, arena);
  LS_CHECK_STR (ag->algorithm, "ring");
}

/* The lower latency of the ring wins small messages, as in NCCL's own log of 8 x
 * H200 (ring up to 1 MiB, NVLS from 2 MiB). */
static void
small_messages_stay_on_the_ring (void)
{
  g_autoptr (LsCluster) c = h100_node ();
  g_autoptr (LsArena) arena = ls_arena_new ();
  LsNccl nccl = with_nvls ();
  nccl.base_all_reduce = 6 * LS_US;
  uint32_t gpus[8];
  spread (gpus, 8, 8);
  const LsCollPlan *small = plan_of (c, &nccl, LS_COLL_ALL_REDUCE, gpus, 8, 65536, LS_NETWORK_FLOW, arena);
  LS_CHECK_STR (small->algorithm, "ring");
  const LsCollPlan *large = plan_of (c, &nccl, LS_COLL_ALL_REDUCE, gpus, 8, 16 * MIB, LS_NETWORK_FLOW, arena);
  LS_CHECK_STR (large->algorithm, "nvls");
}

/* NVSwitches of a list are NVSwitches; links to each carry by their number. */
static void
listed_nodes_reduce_in_the_switch (void)
{
  LsClusterSpec spec = list_dgx (2);
  g_autoptr (LsCluster) c = built (spec);
  g_autoptr (LsArena) arena = ls_arena_new ();
  const LsCollPlan *plan = all_reduce (c, 8, 64 * MIB, arena);
  LS_CHECK_STR (plan->algorithm, "nvls");
  LS_CHECK_STR (all_reduce (c, 7, 64 * MIB, arena)->algorithm, "nvls");
  const LsPhase *p = &plan->phases[0];
  LS_CHECK_NEAR (bytes_on (c, p, "node0/gpu2>nvs0"), 1.125 * 64 * MIB * 5 / 18, 1e-5);
  LS_CHECK_NEAR (bytes_on (c, p, "node0/nvs3>gpu7"), 1.125 * 64 * MIB * 4 / 18, 1e-5);
  LS_CHECK_NEAR (bytes_on (c, p, "node0/gpu2>nvs?"), 1.125 * 64 * MIB, 1e-12);
  ls_cluster_spec_clear (&spec);
}

/* A GPU with a switch for it and one neighbour only, and a link that has failed. */
static void
without_a_switch_for_all_there_is_none (void)
{
  LsClusterSpec spec = list_dgx (1);
  list_add (&spec, LS_NODE_GPU, "other");
  list_add (&spec, LS_NODE_NVSWITCH, "apart");
  list_join (&spec, "other", "apart", 4, 22.75e9);
  list_join (&spec, "gpu0", "apart", 4, 22.75e9);
  list_join (&spec, "other", "cpu", 1, 25.2e9);
  g_autoptr (LsCluster) c = built (spec);
  LS_CHECK (!ls_host_has_nvswitch (c, 0));
  ls_cluster_spec_clear (&spec);

  LsFault fault = { .link = "node0/gpu4>nvs1", .capacity = 0 };
  spec = list_dgx (2);
  spec.network.faults = g_array_new (FALSE, FALSE, sizeof fault);
  g_array_append_val (spec.network.faults, fault);
  g_autoptr (LsCluster) faulty = built (spec);
  LS_CHECK (!ls_host_has_nvswitch (faulty, 0));
  LS_CHECK (ls_host_has_nvswitch (faulty, 1));
  g_clear_pointer (&spec.network.faults, g_array_unref);
  ls_cluster_spec_clear (&spec);
}

/* Message by message the memories move what they move as a flow: 1.125 arrays up and as many down, each
 * byte for its share of 3 times the 1.75 arrays of a wire. */
static void
a_script_loads_the_memories_as_a_plan_does (void)
{
  g_autoptr (LsCluster) c = h100_node ();
  g_autoptr (LsArena) arena = ls_arena_new ();
  uint32_t gpus[16];
  spread (gpus, 8, 8);
  LsNccl nccl = with_nvls ();
  LsCollRequest request
      = { .kind = LS_COLL_ALL_REDUCE, .gpus = gpus, .n = 8, .bytes = 64 * MIB, .algorithm = "nvls" };
  const LsScript *s = ls_coll_script (c, &nccl, &request, arena);
  if (LS_CHECK (s != NULL))
    LS_CHECK_NEAR ((s->hbm_from + s->hbm_to) * 1.125, 3 * 1.75, 1e-12);
  request.algorithm = "tree"; /* each byte of a wire: half of the 3 at either end */
  s = ls_coll_script (c, &nccl, &request, arena);
  if (LS_CHECK (s != NULL))
    LS_CHECK (s->hbm_from == 1.5 && s->hbm_to == 1.5);
}

LS_TEST_SUITE (LS_TEST (alone_in_a_node_is_the_closed_form), LS_TEST (rings_through_host_memory_are_slower),
               LS_TEST (worked_example_holds), LS_TEST (nodes_are_joined_in_order_of_their_ranks),
               LS_TEST (bytes_on_links_equal_the_formula), LS_TEST (members_are_alike),
               LS_TEST (flows_of_a_whole_node), LS_TEST (one_member_per_node_uses_one_nic),
               LS_TEST (a_slow_link_is_the_limit), LS_TEST (small_messages_use_fewer_channels),
               LS_TEST (uneven_hosts_keep_exact_sums), LS_TEST (rings_without_pxn_cross_rails),
               LS_TEST (whole_nodes_reduce_in_the_switch),
               LS_TEST (each_trunk_carries_the_array_and_its_share),
               LS_TEST (a_script_loads_the_memories_as_a_plan_does),
               LS_TEST (parts_of_nodes_and_other_kinds_do_without), LS_TEST (small_messages_stay_on_the_ring),
               LS_TEST (listed_nodes_reduce_in_the_switch), LS_TEST (without_a_switch_for_all_there_is_none))
