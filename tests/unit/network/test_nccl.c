/* Pins what NCCL's figures make of a call, and how they follow the links of a machine. */
#include "ls_test.h"
#include "fixtures.h"

#include <string.h>

#include "network/nccl/nccl.h"

/* Pins latency (ring and tree, their crossing, hops by kind), what each protocol costs, and
 * what runs if nothing is asked for. */

static LsTime
latency (const LsCluster *c, LsCollKind kind, uint32_t n, uint32_t per_node)
{
  g_autoptr (LsArena) arena = ls_arena_new ();
  uint32_t *gpus = ls_arena_new_array (arena, uint32_t, n);
  spread (gpus, n, per_node);
  return plan_of (c, &round_nccl, kind, gpus, n, MIB, LS_NETWORK_FLOW, arena)->phases[0].latency;
}

static void
rings_inside_a_node_pay_each_step (void)
{
  g_autoptr (LsCluster) c = built (tiny_dgx (1));
  for (uint32_t n = 2; n <= 8; n++) {
    LS_CHECK_INT (latency (c, LS_COLL_ALL_REDUCE, n, 8), ==, 10 * LS_US + 2 * (n - 1) * LS_US);
    LS_CHECK_INT (latency (c, LS_COLL_ALL_GATHER, n, 8), ==, 9 * LS_US + (n - 1) * LS_US);
    LS_CHECK_INT (latency (c, LS_COLL_REDUCE_SCATTER, n, 8), ==, 8 * LS_US + (n - 1) * LS_US);
  }
}

static void
rings_across_nodes_pay_each_node (void)
{
  g_autoptr (LsCluster) c = built (tiny_dgx (16));
  for (uint32_t nodes = 2; nodes <= 16; nodes++)
    LS_CHECK_INT (latency (c, LS_COLL_ALL_GATHER, 8 * nodes, 8), ==,
                  9 * LS_US + (8 * nodes - 1 - (nodes - 1)) * LS_US + (nodes - 1) * 14 * LS_US);
}

/* base 10, hops 1 and 14: 2 (7 + 14 log2 N). A ring of two nodes pays 14 + 28,
 * the same, so from there on the tree is never worse. */
static void
all_reduce_grows_with_the_depth_of_the_tree (void)
{
  g_autoptr (LsCluster) c = built (tiny_dgx (128));
  for (uint32_t depth = 1; depth <= 7; depth++)
    LS_CHECK_INT (latency (c, LS_COLL_ALL_REDUCE, 8u << depth, 8), ==,
                  (10 + 2 * (7 + 14 * (LsTime) depth)) * LS_US);
}

/* Round numbers near those of H100. */
static const LsNccl hopper = {
  .tables = LS_TEST_NCCL_HOPPER,
  .nvlink = 18 * 20.6e9,
  .channels_ring = 24,
  .channels_net = 2,
  .channels_nvls = 16,
  .channels_p2p = 2,
  .ring_bus_intra = 360e9,
  .ring_bus_per_nic = 40e9,
  .nvls_bus = 476e9,
  .p2p_intra = 376e9,
  .p2p_inter = 40e9,
  .base_all_reduce = 5 * LS_US,
  .base_all_gather = 5 * LS_US,
  .base_reduce_scatter = 5 * LS_US,
  .base_nvls = 25 * LS_US,
  .base_p2p_intra = 6 * LS_US,
  .base_p2p_inter = 36 * LS_US,
  .hop_intra = 800 * LS_NS,
  .hop_inter = 14 * LS_US,
  .handshake = 4400 * LS_NS,
  .ramp_bytes = 7.8e6,
  .drain = 0.4,
  .self_copy = 0.2,
  .sm_share_per_channel = 1.0 / 132,
};

static LsCluster *
hopper_nodes (uint32_t n_nodes)
{
  LsClusterSpec s = tiny_dgx (n_nodes);
  s.server.nvlinks_per_gpu = 18;
  s.server.nvlink.efficiency = 0.9;
  s.server.nvswitch_planes = 6;
  s.nics.port.bandwidth_bytes_per_s = s.network.spine.bandwidth_bytes_per_s = 50e9;
  return built (s);
}

static const LsCollPlan *
plan_with (const LsNccl *nccl, const LsCluster *c, LsCollKind kind, uint32_t n, uint64_t bytes,
           const char *algorithm, LsProtocol protocol, LsArena *arena)
{
  uint32_t *gpus = ls_arena_new_array (arena, uint32_t, n);
  spread (gpus, n, 8);
  LsCollRequest q
      = { .kind = kind, .gpus = gpus, .n = n, .bytes = bytes, .algorithm = algorithm, .protocol = protocol };
  return ls_coll_plan (c, nccl, &q, LS_NETWORK_FLOW, arena);
}

static const LsCollPlan *
hopper_plan (const LsCluster *c, LsCollKind kind, uint32_t n, uint64_t bytes, const char *algorithm,
             LsProtocol protocol, LsArena *arena)
{
  return plan_with (&hopper, c, kind, n, bytes, algorithm, protocol, arena);
}

static double
us_of (const LsCluster *c, const LsCollPlan *plan)
{
  return ls_time_to_s (ls_coll_time_alone (c, plan)) * 1e6;
}

/* The example of nccl.c with its drain of 0.4: 15 us, 14.68 MB at 360 GB/s times 1 +
 * 0.4 / 7, and 5.094 MB of ramp. */
static void
simple_pays_handshake_drain_and_ramp (void)
{
  g_autoptr (LsCluster) c = hopper_nodes (1);
  g_autoptr (LsArena) arena = ls_arena_new ();
  double wire = 0.875 * 16 * MIB, fill = wire * 7.8e6 / (wire + 7.8e6);
  const LsCollPlan *p
      = hopper_plan (c, LS_COLL_REDUCE_SCATTER, 8, 16 * MIB, "ring", LS_PROTOCOL_SIMPLE, arena);
  LS_CHECK_NEAR (us_of (c, p), 15 + (wire * (1 + 0.4 / 7) + fill) / 360e3, 1e-6);
  LS_CHECK_NEAR (us_of (c, p), 72.3, 1e-3);
  /* LL128: 0.92 of the bus, as the table of channels (12 of 36.7) is above that. */
  p = hopper_plan (c, LS_COLL_REDUCE_SCATTER, 8, 16 * MIB, "ring", LS_PROTOCOL_LL128, arena);
  LS_CHECK_STR (p->protocol, "LL128");
  LS_CHECK_NEAR (us_of (c, p), 15 + (wire * (1 + 0.4 / 7) + fill) / (0.92 * 360e3), 1e-6);
}

/* Two nodes: two channels for each NIC fill a pipeline, not the 24 of a node; more than these count as 24. */
static void
fewer_channels_across_nodes_fill_sooner (void)
{
  LsClusterSpec s = tiny_dgx (2);
  s.server.pcie.bandwidth_bytes_per_s = s.nics.port.bandwidth_bytes_per_s
      = s.network.spine.bandwidth_bytes_per_s = 50e9;
  g_autoptr (LsCluster) c = built (s);
  g_autoptr (LsArena) arena = ls_arena_new ();
  double bus = 8 * 40e3, ramp = 7.8e6 * 2 * 8 / 24;
  double wire = 15.0 / 16 * 16 * MIB, fill = wire * ramp / (wire + ramp);
  const LsCollPlan *p = hopper_plan (c, LS_COLL_ALL_GATHER, 16, 16 * MIB, "ring", LS_PROTOCOL_SIMPLE, arena);
  LS_CHECK_NEAR (us_of (c, p), 5 + 4.4 + 14 * 0.8 + 14 + (wire * (1 + 0.4 / 15) + fill) / bus, 1e-6);
  LsNccl many = hopper;
  many.channels_net = 4;
  fill = wire * 7.8e6 / (wire + 7.8e6);
  p = plan_with (&many, c, LS_COLL_ALL_GATHER, 16, 16 * MIB, "ring", LS_PROTOCOL_SIMPLE, arena);
  LS_CHECK_NEAR (us_of (c, p), 5 + 4.4 + 14 * 0.8 + 14 + (wire * (1 + 0.4 / 15) + fill) / bus, 1e-6);
}

/* LL: base and hops, 141 GB/s (NCCL's limit on Hopper), nothing else. */
static void
ll_pays_only_hops (void)
{
  g_autoptr (LsCluster) c = hopper_nodes (4);
  g_autoptr (LsArena) arena = ls_arena_new ();
  double wire = 0.875 * MIB;
  const LsCollPlan *p = hopper_plan (c, LS_COLL_ALL_GATHER, 8, MIB, "ring", LS_PROTOCOL_LL, arena);
  LS_CHECK_NEAR (us_of (c, p), 5 + 7 * 0.8 + wire / 141e3, 1e-6);
  /* Across 4 hosts: 31 hops, 3 of them 2.7 us; in a tree 5 us for each of 2 levels. */
  p = hopper_plan (c, LS_COLL_ALL_GATHER, 32, MIB, "ring", LS_PROTOCOL_LL, arena);
  LS_CHECK_INT (p->phases[0].latency, ==, 5 * LS_US + 28 * 800 * LS_NS + 3 * 2700 * LS_NS);
  p = hopper_plan (c, LS_COLL_ALL_REDUCE, 32, MIB, "tree", LS_PROTOCOL_LL, arena);
  LS_CHECK_INT (p->phases[0].latency, ==, 5 * LS_US + 2 * (7 * 800 * LS_NS + 2 * 5 * LS_US));
}

/* Messages of 1/8: 7 on the wire at 360 GB/s, one copied in 0.2 of the time of one. Small
 * ones: one channel of LL each, 141 / 24 GB/s. */
static void
all_to_all_pays_for_what_it_keeps (void)
{
  g_autoptr (LsCluster) c = hopper_nodes (1);
  g_autoptr (LsArena) arena = ls_arena_new ();
  double message = 4 * MIB, wire = 7 * message, fill = wire * 7.8e6 / (wire + 7.8e6);
  const LsCollPlan *p = hopper_plan (c, LS_COLL_ALL_TO_ALL, 8, 32 * MIB, NULL, LS_PROTOCOL_AUTO, arena);
  LS_CHECK_STR (p->protocol, "Simple");
  LS_CHECK_NEAR (us_of (c, p), 6 + 0.8 + 4.4 + (wire + fill + 0.2 * message) / 360e3, 1e-6);
  p = hopper_plan (c, LS_COLL_ALL_TO_ALL, 8, 64 * 1024, NULL, LS_PROTOCOL_AUTO, arena);
  LS_CHECK_STR (p->protocol, "LL");
  LS_CHECK_NEAR (us_of (c, p), 6 + 0.8 + 8192 / (141e3 / 24), 1e-6);
}

/* 8 + 8 + 1 members, a NIC each: the one alone sends 16 messages through its own, one of the
 * others 9. */
static void
an_uneven_all_to_all_waits_for_its_slowest_host (void)
{
  g_autoptr (LsCluster) c = hopper_nodes (3);
  g_autoptr (LsArena) arena = ls_arena_new ();
  double wire = 16 * 4 * MIB, fill = wire * 7.8e6 / (wire + 7.8e6);
  const LsCollPlan *p = hopper_plan (c, LS_COLL_ALL_TO_ALL, 17, 17 * 4 * MIB, NULL, LS_PROTOCOL_AUTO, arena);
  LS_CHECK_NEAR (p->phases[0].demand_bytes / p->phases[0].rate_cap, (wire + fill) / hopper.ring_bus_per_nic,
                 1e-9);
}

static void
a_single_send_has_its_own_base (void)
{
  g_autoptr (LsCluster) c = hopper_nodes (1);
  g_autoptr (LsArena) arena = ls_arena_new ();
  const LsCollPlan *p = hopper_plan (c, LS_COLL_SEND_RECV, 2, MIB, NULL, LS_PROTOCOL_AUTO, arena);
  LS_CHECK_NEAR (us_of (c, p), 6 + MIB / 376e3, 1e-6);
  p = hopper_plan (c, LS_COLL_SEND_RECV, 2, 8192, NULL, LS_PROTOCOL_AUTO, arena);
  LS_CHECK_STR (p->protocol, "LL");
  LS_CHECK_NEAR (us_of (c, p), 5 + 8192 / (141e3 / 24), 1e-6);
}

static void
check_choice (const LsCollPlan *p, const char *algorithm, const char *protocol)
{
  LS_CHECK_STR (p->algorithm, algorithm);
  LS_CHECK_STR (p->protocol, protocol);
}

/* nccl-sel-1: ring with LL up to 1 MiB, NVLS from 2 MiB. What is asked for goes first;
 * without a count of NVLinks there is no tuner, and Simple. */
static void
what_runs_is_what_nccl_would_run (void)
{
  g_autoptr (LsCluster) c = hopper_nodes (1);
  g_autoptr (LsArena) arena = ls_arena_new ();
  check_choice (hopper_plan (c, LS_COLL_ALL_REDUCE, 8, MIB, NULL, LS_PROTOCOL_AUTO, arena), "ring", "LL");
  check_choice (hopper_plan (c, LS_COLL_ALL_REDUCE, 8, 2 * MIB, NULL, LS_PROTOCOL_AUTO, arena), "nvls",
                "Simple");
  check_choice (hopper_plan (c, LS_COLL_ALL_REDUCE, 8, 64 * MIB, "ring", LS_PROTOCOL_AUTO, arena), "ring",
                "Simple");
  check_choice (hopper_plan (c, LS_COLL_ALL_REDUCE, 8, 64 * MIB, "ring", LS_PROTOCOL_LL, arena), "ring",
                "LL");
  check_choice (hopper_plan (c, LS_COLL_ALL_REDUCE, 8, 64 * MIB, NULL, LS_PROTOCOL_LL, arena), "ring", "LL");
  check_choice (hopper_plan (c, LS_COLL_ALL_REDUCE, 4, 64 * MIB, NULL, LS_PROTOCOL_AUTO, arena), "ring",
                "Simple");
  uint32_t gpus[8];
  spread (gpus, 8, 8);
  check_choice (plan_of (c, &round_nccl, LS_COLL_ALL_GATHER, gpus, 8, 1024, LS_NETWORK_FLOW, arena), "ring",
                "Simple");
}

/* On a node of 32 the tuner finds NVLS with Simple best for a gather of 1 KiB (25 us; a ring with
 * LL 25.2). No algorithm here gathers by NVLS, so a ring runs, and with the protocol that is best
 * for rings: base and 31 hops, no handshake. */
static void
a_protocol_is_that_of_the_algorithm_that_runs (void)
{
  LsClusterSpec s = tiny_dgx (1);
  s.gpus_per_node = 32;
  s.nics.n = s.network.rails = 32;
  s.server.nvlinks_per_gpu = 18;
  g_autoptr (LsCluster) c = built (s);
  g_autoptr (LsArena) arena = ls_arena_new ();
  uint32_t gpus[32];
  spread (gpus, 32, 32);
  const LsCollPlan *p = plan_of (c, &hopper, LS_COLL_ALL_GATHER, gpus, 32, 1024, LS_NETWORK_FLOW, arena);
  check_choice (p, "ring", "LL");
  LS_CHECK_INT (p->phases[0].latency, ==, 5 * LS_US + 31 * 800 * LS_NS);
}

static void
clear_accepts_null_and_twice (void)
{
  LsNccl nccl = { .name = g_strdup ("x"), .source = g_strdup ("y") };
  ls_nccl_clear (&nccl);
  ls_nccl_clear (&nccl);
  ls_nccl_clear (NULL);
  LS_CHECK (nccl.name == NULL && nccl.source == NULL);
}

/* Pins how NCCL's figures follow the links of a machine: by the same links not at all, twice a NIC
 * twice what crosses nodes and nothing inside, there and back exactly, latencies by the difference of the
 * way; links that either side has none of change nothing. */

static const LsNcclLinks links = {
  .nvlink = 450e9,
  .nic = 50e9,
  .nvlink_latency = 300 * LS_NS,
  .nic_latency = 300 * LS_NS,
  .pcie_latency = 500 * LS_NS,
};

static LsNccl
measured (void)
{
  return (LsNccl) {
    .measured_on = links,
    .nvlink = 370e9,
    .ring_bus_intra = 360e9,
    .nvls_bus = 476e9,
    .p2p_intra = 376e9,
    .ring_bus_per_nic = 36.5e9,
    .p2p_inter = 40e9,
    .base_all_reduce = 5 * LS_US,
    .base_nvls = 25 * LS_US,
    .base_p2p_intra = 6 * LS_US,
    .base_p2p_inter = 36 * LS_US,
    .hop_intra = 800 * LS_NS,
    .hop_inter = 14 * LS_US,
  };
}

static void
the_same_links_change_nothing (void)
{
  LsNccl a = measured (), b = measured ();
  ls_nccl_carry (&a, &links);
  LS_CHECK (memcmp (&a, &b, sizeof a) == 0);
}

static void
a_faster_nic_is_for_what_crosses_nodes (void)
{
  LsNccl n = measured (), before = measured ();
  LsNcclLinks to = links;
  to.nic *= 2;
  ls_nccl_carry (&n, &to);
  LS_CHECK_DOUBLE (n.ring_bus_per_nic, ==, 73e9);
  LS_CHECK_DOUBLE (n.p2p_inter, ==, 80e9);
  LS_CHECK (n.ring_bus_intra == before.ring_bus_intra && n.p2p_intra == before.p2p_intra
            && n.hop_inter == before.hop_inter);
  ls_nccl_carry (&n, &links);
  LS_CHECK (memcmp (&n, &before, sizeof n) == 0);
}

static void
faster_nvlinks_are_for_what_stays_inside (void)
{
  LsNccl n = measured (), before = measured ();
  LsNcclLinks to = links;
  to.nvlink *= 2;
  ls_nccl_carry (&n, &to);
  LS_CHECK (n.nvlink == 2 * before.nvlink && n.ring_bus_intra == 2 * before.ring_bus_intra
            && n.nvls_bus == 2 * before.nvls_bus && n.p2p_intra == 2 * before.p2p_intra);
  LS_CHECK (n.ring_bus_per_nic == before.ring_bus_per_nic && n.p2p_inter == before.p2p_inter);
}

/* Two NIC links and four of PCIe lie on the way to another node, two NVLinks on that to a neighbour. */
static void
latencies_follow_the_way (void)
{
  LsNccl n = measured ();
  LsNcclLinks to = links;
  to.nic_latency = 100 * LS_NS;
  to.pcie_latency = 600 * LS_NS;
  to.nvlink_latency = 250 * LS_NS;
  ls_nccl_carry (&n, &to);
  LS_CHECK_INT (n.hop_inter, ==, 14 * LS_US);
  LS_CHECK_INT (n.hop_intra, ==, 700 * LS_NS);
  LS_CHECK_INT (n.base_p2p_inter, ==, 36 * LS_US);
  LS_CHECK_INT (n.base_all_reduce, ==, 5 * LS_US);
  to.nic_latency = 0;
  ls_nccl_carry (&n, &to);
  LS_CHECK_INT (n.hop_inter, ==, 14 * LS_US - 200 * LS_NS);
  LS_CHECK_INT (n.base_p2p_inter, ==, 36 * LS_US - 200 * LS_NS);
}

static void
links_that_are_not_there_change_nothing (void)
{
  LsNccl a = measured (), b;
  const LsNcclLinks none = { 0 };
  memcpy (&b, &a, sizeof b); /* with its padding */
  ls_nccl_carry (&a, &none);
  LS_CHECK (a.ring_bus_intra == b.ring_bus_intra && a.p2p_inter == b.p2p_inter && a.hop_inter == b.hop_inter);
  ls_nccl_carry (&a, &links);
  LS_CHECK (memcmp (&a, &b, sizeof a) == 0);
}

/* Four blocks of 24 carry 50 GB/s each, as NCCL's search gives a channel since Hopper before it makes two of
 * it, and hold four SMs; eight carry what all do. One block sends 50 GB/s to another GPU of the node. */
static void
few_blocks_carry_what_a_channel_may (void)
{
  g_autoptr (LsCluster) c = hopper_nodes (1);
  g_autoptr (LsArena) arena = ls_arena_new ();
  const LsNccl *four = ls_nccl_with_ctas (&hopper, 4, arena), *eight = ls_nccl_with_ctas (&hopper, 8, arena);
  LS_CHECK_NEAR (four->ring_bus_intra, 200e9, 1);
  LS_CHECK_NEAR (eight->ring_bus_intra, 360e9, 1);
  uint32_t gpus[8];
  spread (gpus, 8, 8);
  LsCollRequest q
      = { .kind = LS_COLL_ALL_GATHER, .gpus = gpus, .n = 8, .bytes = 1024 * MIB, .algorithm = "ring" };
  double all = us_of (c, ls_coll_plan (c, &hopper, &q, LS_NETWORK_FLOW, arena));
  q.max_ctas = 4;
  const LsCollPlan *held = ls_coll_plan (c, &hopper, &q, LS_NETWORK_FLOW, arena);
  LS_CHECK_NEAR (held->sm_share, 4.0 / 132, 1e-12);
  LS_CHECK_NEAR (us_of (c, held) / all, 360.0 / 200, 0.02);
  q = (LsCollRequest) { .kind = LS_COLL_SEND_RECV, .gpus = gpus, .n = 2, .bytes = 512 * MIB, .max_ctas = 1 };
  held = ls_coll_plan (c, &hopper, &q, LS_NETWORK_FLOW, arena);
  LS_CHECK_NEAR (us_of (c, held), 6 + 512 * (double) MIB / 50e3, 1);
  LS_CHECK_NEAR (held->sm_share, 1.0 / 132, 1e-12);
}

/* A figure of each sort, of NCCL and of the kernels that send tokens to experts, of both makes. */
static void
a_call_on_two_kinds_goes_at_the_pace_of_the_slower (void)
{
  const LsDispatchFigures fast = { .of_nvlink = 0.9, .base_inter = 20 },
                          slow = { .of_nvlink = 0.7, .base_inter = 30 };
  const LsNccl a = { .channels_ring = 24, .drain = 0.2, .dispatch = fast, .hybrid_dispatch = slow };
  const LsNccl b = { .channels_ring = 16, .drain = 0.4, .dispatch = slow, .hybrid_dispatch = fast };
  const LsNccl *const kinds[] = { &a, &b };
  LsNccl own = a;
  ls_nccl_mix (&own, kinds, 2);
  LS_CHECK (ls_nccl_among (&own, 1)->channels_ring == 24 && ls_nccl_among (&own, 2)->channels_ring == 16);
  const LsNccl *both = ls_nccl_among (&own, 3);
  LS_CHECK (both->channels_ring == 16 && both->drain == 0.4);
  const LsDispatchFigures *figures[] = { &both->dispatch, &both->hybrid_dispatch };
  for (int i = 0; i < 2; i++)
    LS_CHECK (figures[i]->of_nvlink == 0.7 && figures[i]->base_inter == 30);
  ls_nccl_clear (&own);
}

/* Links carry (1 + 1/n) of the array at one rate; steps are shorter, and cost more, where a call has less than
 * 64 times 16 channels by 8 heads of them: 1 GiB with steps of 128 KiB, 4 GiB with those of 512 KiB. */
static void
nvls_goes_by_links_and_steps (void)
{
  g_autoptr (LsCluster) c = hopper_nodes (1);
  g_autoptr (LsArena) arena = ls_arena_new ();
  static const struct {
    uint32_t n;
    uint64_t mib;
    double chunk, step; /* of the file, and that runs, KiB */
  } rows[] = { { 8, 512, 0, 64 }, { 8, 1024, 0, 128 }, { 8, 2048, 512, 64 },  { 8, 4096, 512, 512 },
               { 8, 32, 0, 32 },  { 5, 1024, 0, 128 }, { 4, 4096, 512, 512 }, { 8, 4, 0, 16 } };
  for (size_t i = 0; i < G_N_ELEMENTS (rows); i++) {
    LsNccl nccl = hopper;
    nccl.ramp_bytes = 0;
    nccl.nvls_step = rows[i].chunk * 1024;
    nccl.nvls_step_cost = 16 * 1024;
    const LsCollPlan *p = plan_with (&nccl, c, LS_COLL_ALL_REDUCE, rows[i].n, rows[i].mib * MIB, "nvls",
                                     LS_PROTOCOL_AUTO, arena);
    double link = 476e9 * 9 / 14 / (1 + 16 / rows[i].step), n = rows[i].n;
    LS_CHECK_NEAR (us_of (c, p) - 25, (1 + 1 / n) * (double) (rows[i].mib * MIB) / link * 1e6, 1e-6);
  }
}

/* A plug-in's tuner settles what is in its regions, on three hosts and more; its hops are its own. */
static void
a_plugin_settles_what_is_in_its_regions (void)
{
  double corners[] = { 0, 16, 8 * MIB, 16, 8 * MIB, 64, 0, 64 };
  LsNcclRegion region = { .per_host = 8,
                          .kind = LS_COLL_ALL_REDUCE,
                          .algorithm = LS_TUNE_RING,
                          .protocol = LS_PROTOCOL_LL128,
                          .corners = g_array_new (FALSE, FALSE, sizeof (double)) };
  g_array_append_vals (region.corners, corners, G_N_ELEMENTS (corners));
  LsNccl nccl = hopper;
  nccl.regions = g_array_new (FALSE, FALSE, sizeof (LsNcclRegion));
  g_array_append_val (nccl.regions, region);
  g_autoptr (LsArena) arena = ls_arena_new ();
  static const struct {
    uint32_t hosts;
    uint64_t mib;
    LsCollKind kind;
    bool is_in;
  } rows[] = { { 4, 8, LS_COLL_ALL_REDUCE, true },   { 4, 16, LS_COLL_ALL_REDUCE, false },
               { 2, 8, LS_COLL_ALL_REDUCE, false },  { 8, 1, LS_COLL_ALL_REDUCE, true },
               { 16, 1, LS_COLL_ALL_REDUCE, false }, { 4, 8, LS_COLL_REDUCE_SCATTER, false } };
  for (size_t i = 0; i < G_N_ELEMENTS (rows); i++) {
    g_autoptr (LsCluster) c = hopper_nodes (rows[i].hosts);
    const LsCollPlan *of_nccl
        = hopper_plan (c, rows[i].kind, 8 * rows[i].hosts, rows[i].mib * MIB, NULL, LS_PROTOCOL_AUTO, arena),
        *p = plan_with (&nccl, c, rows[i].kind, 8 * rows[i].hosts, rows[i].mib * MIB, NULL, LS_PROTOCOL_AUTO,
                        arena);
    check_choice (p, rows[i].is_in ? "ring" : of_nccl->algorithm,
                  rows[i].is_in ? "LL128" : of_nccl->protocol);
  }
  g_autoptr (LsCluster) four = hopper_nodes (4);
  double before
      = us_of (four, plan_with (&nccl, four, LS_COLL_ALL_REDUCE, 32, MIB, "tree", LS_PROTOCOL_LL, arena));
  nccl.hop_inter_flags = 18 * LS_US;
  double after
      = us_of (four, plan_with (&nccl, four, LS_COLL_ALL_REDUCE, 32, MIB, "tree", LS_PROTOCOL_LL, arena));
  LS_CHECK_NEAR (after - before, 4 * (18 - 5), 1e-6);
  g_array_unref (region.corners);
  g_array_unref (nccl.regions);
}

LS_TEST_SUITE (
    LS_TEST (rings_inside_a_node_pay_each_step), LS_TEST (rings_across_nodes_pay_each_node),
    LS_TEST (all_reduce_grows_with_the_depth_of_the_tree), LS_TEST (simple_pays_handshake_drain_and_ramp),
    LS_TEST (fewer_channels_across_nodes_fill_sooner), LS_TEST (ll_pays_only_hops),
    LS_TEST (all_to_all_pays_for_what_it_keeps), LS_TEST (an_uneven_all_to_all_waits_for_its_slowest_host),
    LS_TEST (a_single_send_has_its_own_base), LS_TEST (few_blocks_carry_what_a_channel_may),
    LS_TEST (what_runs_is_what_nccl_would_run), LS_TEST (a_protocol_is_that_of_the_algorithm_that_runs),
    LS_TEST (clear_accepts_null_and_twice), LS_TEST (the_same_links_change_nothing),
    LS_TEST (a_faster_nic_is_for_what_crosses_nodes), LS_TEST (faster_nvlinks_are_for_what_stays_inside),
    LS_TEST (latencies_follow_the_way), LS_TEST (a_call_on_two_kinds_goes_at_the_pace_of_the_slower),
    LS_TEST (links_that_are_not_there_change_nothing), LS_TEST (nvls_goes_by_links_and_steps),
    LS_TEST (a_plugin_settles_what_is_in_its_regions))
