/* Worked examples of collectives. */
#include "ls_test.h"

#include "network/algorithm.h"

#include "fixtures.h"

/* --- of ours ---------------------------------------------------------------------------------------- */

/* Pins the worked examples in the headers of coll_X.c, and what links carry where a
 * formula says it. */

/* Seconds of an algorithm alone on the first GPUs of each node. */
static double
takes (const LsClusterSpec *spec, const LsNccl *nccl, const char *algorithm, LsCollKind kind, uint32_t n,
       uint32_t per_node, uint64_t bytes)
{
  g_autoptr (LsCluster) c = built (*spec);
  g_autoptr (LsArena) arena = ls_arena_new ();
  uint32_t gpus[64];
  spread (gpus, n, per_node);
  return ls_time_to_s (ls_coll_time_alone (c, plan_by (c, nccl, algorithm, kind, gpus, n, bytes, arena)));
}

/* Links that never bind: what is left are the rates of NCCL. */
static LsClusterSpec
fast_links (uint32_t n_nodes)
{
  LsClusterSpec spec = tiny_dgx (n_nodes);
  spec.server.nvlink.bandwidth_bytes_per_s *= 100;
  spec.server.pcie.bandwidth_bytes_per_s *= 100;
  spec.nics.port.bandwidth_bytes_per_s *= 100;
  spec.network.spine.bandwidth_bytes_per_s *= 100;
  spec.gpu.hbm_bytes_per_s *= 100;
  return spec;
}

static void
tree (void)
{
  LsClusterSpec spec = fast_links (8);
  LsNccl nccl = round_nccl;
  nccl.base_all_reduce = (LsTime) (8.4 * LS_US);
  nccl.hop_intra = (LsTime) (3.4 * LS_US);
  nccl.ring_bus_intra = 600e9;
  /* 16 MiB through each of 8 NICs' share of 128 GB/s, at 0.92, twice. */
  LS_CHECK_NEAR (takes (&spec, &nccl, "tree", LS_COLL_ALL_REDUCE, 64, 8, 16 * MIB), 140e-6 + 285e-6, 2e-3);
}

static void
pairwise (void)
{
  LsClusterSpec spec = fast_links (1);
  double t = takes (&spec, &round_nccl, "pairwise", LS_COLL_ALL_GATHER, 8, 8, 64 * MIB);
  LS_CHECK_NEAR (t, 9e-6 + 0.875 * 64 * MIB / 250e9, 1e-6);
  LS_CHECK_NEAR (t, 243.9e-6, 1e-3);
}

static void
star (void)
{
  LsClusterSpec spec = fast_links (1);
  double t = takes (&spec, &round_nccl, "naive", LS_COLL_ALL_REDUCE, 8, 8, MIB);
  LS_CHECK_NEAR (t, 10e-6 + 2 * (1e-6 + 7.0 * MIB / 250e9), 1e-6);
}

static void
server (void)
{
  LsClusterSpec spec = fast_links (4);
  double t = takes (&spec, &round_nccl, "parameter-server", LS_COLL_ALL_REDUCE, 4, 1, 64 * MIB);
  LS_CHECK_NEAR (t, 10e-6 + 2 * (14e-6 + 0.75 * 64 * MIB / 20e9), 1e-6);
}

static void
barrier (void)
{
  LsClusterSpec spec = fast_links (1);
  LS_CHECK_NEAR (takes (&spec, &round_nccl, "dissemination", LS_COLL_BARRIER, 8, 8, 0), 12e-6, 1e-9);
  LS_CHECK_NEAR (takes (&spec, &round_nccl, "dissemination", LS_COLL_BARRIER, 5, 8, 0), 12e-6, 1e-9);
  LS_CHECK_NEAR (takes (&spec, &round_nccl, "dissemination", LS_COLL_BARRIER, 4, 8, 0), 11e-6, 1e-9);
}

static void
halving (void)
{
  LsClusterSpec spec = fast_links (1);
  double t = takes (&spec, &round_nccl, "halving-doubling", LS_COLL_ALL_REDUCE, 8, 8, 64 * MIB);
  LS_CHECK_NEAR (t, 16e-6 + 1.75 * 64 * MIB / 250e9, 1e-6);
}

static void
pat (void)
{
  LsClusterSpec spec = fast_links (4);
  double t = takes (&spec, &round_nccl, "pat", LS_COLL_ALL_GATHER, 4, 1, 64 * MIB);
  LS_CHECK_NEAR (t, 9e-6 + 8e-6 + 11.2e-6 + 0.75 * 64 * MIB / 12e9, 1e-6);
}

/* st-hier: 16.1 ms across 4 hosts with 8 NICs of 50 GB/s (stas00/ml-engineering
 * network/README.md@744d01e). */
static void
hierarchical (void)
{
  LsClusterSpec spec = fast_links (4);
  LsNccl nccl = round_nccl;
  nccl.ring_bus_intra = 700e9;
  nccl.ring_bus_per_nic = 50e9;
  double latency = 10e-6 + 2 * 7 * 1e-6 + 2 * 3 * 14e-6;
  double t = takes (&spec, &nccl, "hierarchical", LS_COLL_ALL_REDUCE, 32, 8, UINT64_C (4) << 30);
  LS_CHECK_NEAR (t - latency - 1.75 * (double) (UINT64_C (4) << 30) / 700e9, 16.1061e-3, 1e-5);
}

static void
collnet (void)
{
  LsClusterSpec spec = fast_links (4);
  LsNccl nccl = round_nccl;
  nccl.ring_bus_per_nic = 45e9;
  double latency = 10e-6 + 2 * (1e-6 + 7 * 0.4e-6) + 14e-6;
  double t = takes (&spec, &nccl, "collnet", LS_COLL_ALL_REDUCE, 32, 8, 1024 * MIB);
  LS_CHECK_NEAR (t, latency + 1.75 * 1024 * MIB / 240e9, 1e-6);
}

/* The array goes once through a NIC each way, whatever the number of hosts, and leaves
 * have one answer from the spines. */
static void
collnet_adds_in_the_switches (void)
{
  LsClusterSpec spec = tiny_dgx (6);
  spec.network.nodes_per_leaf = 2;
  g_autoptr (LsCluster) c = built (spec);
  g_autoptr (LsArena) arena = ls_arena_new ();
  uint32_t gpus[48];
  spread (gpus, 48, 8);
  const LsCollPlan *plan = plan_by (c, &round_nccl, "collnet", LS_COLL_ALL_REDUCE, gpus, 48, 64 * MIB, arena);
  LS_CHECK_NEAR (bytes_on (c, &plan->phases[0], "node3/nic*>leaf*"), 64 * MIB, 1e-6);
  LS_CHECK_NEAR (bytes_on (c, &plan->phases[0], "leaf*>node3/nic*"), 64 * MIB, 1e-6);
  LS_CHECK_NEAR (bytes_on (c, &plan->phases[0], "leaf*>spines"), 3 * 64 * MIB, 1e-6);
  LS_CHECK_NEAR (bytes_on (c, &plan->phases[0], "spines>leaf*"), 3 * 64 * MIB, 1e-6);
}

static void
nvls_tree (void)
{
  LsClusterSpec spec = fast_links (4);
  LsNccl nccl = round_nccl;
  nccl.nvls_bus = 476e9;
  nccl.ring_bus_per_nic = 45e9;
  double t = takes (&spec, &nccl, "nvls-tree", LS_COLL_ALL_REDUCE, 32, 8, 1024 * MIB);
  LS_CHECK_NEAR (t, 6.046e-3, 1e-3);
}

/* --- of others -------------------------------------------------------------------------------------- */

/* Pins worked examples of others (ids of tests/README.md) through our plans,
 * with their round figures and NCCL's rates out of the way:
 *
 *     nv-*  8 H100s at 450 GB/s (jax-ml/scaling-book gpus.md@1a55377)
 *     lg-1  LogGOPSim's dissemination barrier (spcl/atlahs sim/LogGOPSim)
 *     sg-*  a message over a link (simgrid/simgrid docs/source/Models.rst)
 *
 * sg-1 and sg-3 have no counterpart: the factors 13.01 and 0.97 / 1.05 of LV08 and the window
 * gamma / (2 lat) of CM02 are those of TCP, and what is modelled here moves by RDMA. */

#define N 8
#define W 450e9 /* bytes/s of a GPU's NVLinks, one direction */

/* Only NVLink binds. */
static LsClusterSpec
h100 (void)
{
  LsClusterSpec s = tiny_dgx (1);
  s.server.nvswitch_planes = 4;
  s.server.nvlinks_per_gpu = 18;
  s.server.nvlink = tiny_link (W / 18, 1, LS_US);
  s.gpu.hbm_bytes_per_s = 1e15;
  return s;
}

static LsNccl
unlimited (void)
{
  LsNccl nccl = round_nccl;
  nccl.ring_bus_intra = nccl.ring_bus_per_nic = nccl.nvls_bus = nccl.p2p_intra = nccl.p2p_inter = 1e15;
  return nccl;
}

/* Seconds beyond the latencies. */
static double
moving (const LsCluster *c, const char *algorithm, LsCollKind kind, uint64_t bytes)
{
  LsNccl nccl = unlimited ();
  g_autoptr (LsArena) arena = ls_arena_new ();
  uint32_t gpus[N];
  spread (gpus, N, N);
  const LsCollPlan *plan = plan_by (c, &nccl, algorithm, kind, gpus, N, bytes, arena);
  LsTime latency = 0;
  for (uint32_t i = 0; i < plan->n_phases; i++)
    latency += plan->phases[i].latency;
  return ls_time_to_s (ls_coll_time_alone (c, plan) - latency);
}

/* nv-ag-1, nv-ag-2: (N - 1) B / (N W) = 1.04 ms for bf16[4096, 65536], 65 us for [1024, 16384]. */
static void
an_all_gather_takes_what_each_gpu_still_lacks (void)
{
  LsClusterSpec s = h100 ();
  g_autoptr (LsCluster) c = built (s);
  double large = moving (c, "ring", LS_COLL_ALL_GATHER, UINT64_C (2) * 4096 * 65536);
  double small = moving (c, "ring", LS_COLL_ALL_GATHER, UINT64_C (2) * 1024 * 16384);
  LS_CHECK_NEAR (large, 1.04392e-3, 1e-4);
  LS_CHECK_NEAR (small, 65.2447e-6, 1e-4);
}

/* nv-a2a-1: B (N - 1) / (W N^2), an eighth of the all-gather of as many bytes. B counts all
 * GPUs' data, of which each sends an N-th. */
static void
an_all_to_all_takes_an_eighth_of_it (void)
{
  LsClusterSpec s = h100 ();
  g_autoptr (LsCluster) c = built (s);
  double exchange = moving (c, "pairwise", LS_COLL_ALL_TO_ALL, 1024 * MIB / N);
  double gather = moving (c, "ring", LS_COLL_ALL_GATHER, 1024 * MIB);
  LS_CHECK_NEAR (exchange / gather, 0.125, 1e-6);
}

/* nv-sharp: in theory B / W, as the switches add up; measured, 480 beside 370 GB/s of a ring.
 * Links alone allow 2 (N - 1) / (N + 1) = 1.56 (coll_nvls.c). Which of it NCCL reaches is
 * measured, not derived; test sweep/worked prints that. */
static void
switches_that_add_up_save_at_most_a_third (void)
{
  LsClusterSpec s = h100 ();
  g_autoptr (LsCluster) c = built (s);
  double ring = moving (c, "ring", LS_COLL_ALL_REDUCE, 1024 * MIB);
  double nvls = moving (c, "nvls", LS_COLL_ALL_REDUCE, 1024 * MIB);
  LS_CHECK_NEAR (ring / nvls, 2.0 * (N - 1) / (N + 1), 1e-6);
  printf ("nv-sharp: ring / NVLS by links %.3f, measured 480 / 370 = %.3f\n", ring / nvls, 480.0 / 370);
}

/* lg-1: 4 rounds of L + 2 o = 2500 + 2 * 1500 ns; of one byte G is not paid. */
static void
a_barrier_takes_its_rounds (void)
{
  LsClusterSpec s = tiny_dgx (16);
  LsNccl nccl = unlimited ();
  nccl.base_all_gather = nccl.base_p2p_inter = nccl.base_p2p_intra = 0;
  nccl.hop_inter = 5500 * LS_NS;
  g_autoptr (LsCluster) c = built (s);
  g_autoptr (LsArena) arena = ls_arena_new ();
  uint32_t gpus[16];
  spread (gpus, 16, 1);
  const LsCollPlan *plan = plan_by (c, &nccl, "dissemination", LS_COLL_BARRIER, gpus, 16, 0, arena);
  CU_ASSERT_EQUAL (ls_coll_time_alone (c, plan), 22000 * LS_NS);
}

/* A message between two nodes whose NICs and leaf are a link of that rate. */
static double
message_s (double bytes_per_s, LsTime latency, uint64_t bytes)
{
  LsClusterSpec s = tiny_dgx (2);
  LsNccl nccl = unlimited ();
  nccl.base_p2p_inter = latency;
  s.nics.port = s.network.spine = tiny_link (bytes_per_s, 1, 0);
  g_autoptr (LsCluster) c = built (s);
  g_autoptr (LsArena) arena = ls_arena_new ();
  const uint32_t gpus[] = { 0, 8 };
  const LsCollPlan *plan = plan_of (c, &nccl, LS_COLL_SEND_RECV, gpus, 2, bytes, LS_NETWORK_FLOW, arena);
  return ls_time_to_s (ls_coll_time_alone (c, plan));
}

/* sg-4: 100 kB over 1 Mbit/s and 10 ms take 0.81 s; sg-2, where the window does not bind:
 * 10 Gibit over 10 Gibit/s and 10 us. */
static void
a_message_takes_latency_and_size_over_rate (void)
{
  LS_CHECK_NEAR (message_s (125e3, 10 * LS_MS, 100000), 0.81, 1e-9);
  double rate = 10.0 * (1 << 30) / 8;
  LS_CHECK_NEAR (message_s (rate, 10 * LS_US, (uint64_t) rate), 1.00001, 1e-9);
}

/* --- between nodes ---------------------------------------------------------------------------------- */

/* Pins the worked examples st-* of an all-reduce of 4 GiB between 4 nodes of 8 B200s with a NIC of 50 GB/s
 * each (stas00/ml-engineering network/README.md@744d01e): what a flat ring takes, and which share of its
 * bytes a hierarchical one sends between nodes; and what trees send. st-hier is in coll_worked, st-naive in
 * analysis/topology, st-meas in api/schedule. And what a ring takes where nodes are of unequal size. */

#define N_GPUS 32
#define NODES  4
#define BYTES  (UINT64_C (4) << 30)

/* Only NICs bind; NCCL's rates are those of the NICs. */
static LsClusterSpec
b200 (void)
{
  LsClusterSpec s = tiny_dgx (NODES);
  s.server.nvlink.bandwidth_bytes_per_s *= 100;
  s.server.pcie.bandwidth_bytes_per_s *= 100;
  s.gpu.hbm_bytes_per_s *= 100;
  s.nics.port = s.network.spine = tiny_link (50e9, 1, LS_US);
  return s;
}

static LsNccl
rates (void)
{
  LsNccl nccl = round_nccl;
  nccl.ring_bus_intra = nccl.p2p_intra = 1e15;
  nccl.ring_bus_per_nic = 1e15;
  return nccl;
}

/* st-flat: 2 (n - 1) / n P / (g W) = 20.8 ms; each NIC carries the same. */
static void
a_flat_ring_takes_what_its_nics_do (void)
{
  LsClusterSpec s = b200 ();
  LsNccl nccl = rates ();
  g_autoptr (LsCluster) c = built (s);
  g_autoptr (LsArena) arena = ls_arena_new ();
  uint32_t gpus[N_GPUS];
  spread (gpus, N_GPUS, 8);
  const LsCollPlan *plan = plan_by (c, &nccl, "ring", LS_COLL_ALL_REDUCE, gpus, N_GPUS, BYTES, arena);
  LsTime latency = 0;
  for (uint32_t i = 0; i < plan->n_phases; i++)
    latency += plan->phases[i].latency;
  double t = ls_time_to_s (ls_coll_time_alone (c, plan) - latency);
  LS_CHECK_NEAR (t, 20.8037e-3, 1e-3);
}

/* st-share: (k - 1) / (n - 1) = 0.097 of what the GPUs of a flat ring send in all, k nodes
 * and n GPUs. */
static void
a_hierarchy_sends_a_tenth_between_nodes (void)
{
  LsClusterSpec s = b200 ();
  LsNccl nccl = rates ();
  g_autoptr (LsCluster) c = built (s);
  g_autoptr (LsArena) arena = ls_arena_new ();
  uint32_t gpus[N_GPUS];
  spread (gpus, N_GPUS, 8);
  const LsCollPlan *plan = plan_by (c, &nccl, "hierarchical", LS_COLL_ALL_REDUCE, gpus, N_GPUS, BYTES, arena);
  double between = 0;
  for (uint32_t i = 0; i < plan->n_phases; i++)
    between += bytes_on (c, &plan->phases[i], "node*/nic*>leaf*");
  double all = N_GPUS * 2.0 * (N_GPUS - 1) / N_GPUS * BYTES;
  LS_CHECK_NEAR (between / all, (NODES - 1.0) / (N_GPUS - 1), 1e-6);
  LS_CHECK_NEAR (between / all, 0.097, 0.01);
}

/* Of the two trees over so many nodes, what the node with the most edges has: up and down each. */
static uint32_t
most_edges (uint32_t nodes, LsArena *arena)
{
  LsDoubleTree trees = ls_double_tree (nodes, arena);
  uint32_t most = 0;
  for (uint32_t h = 0; h < nodes; h++) {
    uint32_t edges = 0;
    for (uint32_t t = 0; t < trees.n_trees; t++) {
      const LsTreeNode *at = &trees.node[t][h];
      edges += (at->parent != LS_NO_HOST) + (at->child[0] != LS_NO_HOST) + (at->child[1] != LS_NO_HOST);
    }
    most = MAX (most, edges);
  }
  return most;
}

/* Trees take as long as the NICs of the busiest node, half of the array for each of its edges: 1,
 * 1.5 and 2 times the array over 2, 3 and more nodes. Measured on nodes of 4 and 8 GB200 with a NIC
 * of 50 GB/s each, three nodes, 16 GiB (NVIDIA/nccl issue 1801): rings 49.2 GB/s a NIC; trees as if
 * they sent 1.5 times the array at 48.0 and 47.5. */
static void
trees_send_by_the_edges_of_the_busiest_node (void)
{
  for (uint32_t nodes = 2; nodes <= 33; nodes++) {
    LsClusterSpec s = b200 ();
    LsNccl nccl = rates ();
    s.n_nodes = nodes;
    nccl.nvls_bus = 1e15;
    nccl.ring_bus_per_nic = 40e9;
    g_autoptr (LsCluster) c = built (s);
    g_autoptr (LsArena) arena = ls_arena_new ();
    uint32_t *gpus = ls_arena_new_array (arena, uint32_t, 8 * nodes), edges = most_edges (nodes, arena);
    spread (gpus, 8 * nodes, 8);
    const LsCollPlan *plan
        = plan_by (c, &nccl, "nvls-tree", LS_COLL_ALL_REDUCE, gpus, 8 * nodes, BYTES, arena);
    double t = ls_time_to_s (ls_coll_time_alone (c, plan) - plan->phases[0].latency);
    LS_CHECK_INT (edges, ==, nodes == 2 ? 2 : nodes == 3 ? 3 : 4);
    LS_CHECK_NEAR (t, edges / 2.0 * BYTES / (8 * nccl.ring_bus_per_nic), 1e-6);
  }
}

/* Nodes 2 and 3 of these four have 4 GPUs and NICs: 24 GPUs. */
static LsClusterSpec
halves (LsClusterSpec *half)
{
  LsClusterSpec s = b200 ();
  *half = s;
  half->gpus_per_node = half->nics.n = 4;
  s.others = g_array_new (FALSE, FALSE, sizeof (LsOtherNodes));
  LsOtherNodes other = { .ranges = g_array_new (FALSE, FALSE, sizeof (LsNodeRange)), .spec = half };
  g_array_append_val (other.ranges, ((LsNodeRange) { 2, 3 }));
  g_array_append_val (s.others, other);
  return s;
}

static bool
applies (const LsCluster *c, const LsNccl *nccl, const char *algorithm, const uint32_t *gpus, uint32_t n)
{
  LsCollRequest request
      = { .kind = LS_COLL_ALL_REDUCE, .gpus = gpus, .n = n, .bytes = BYTES, .algorithm = algorithm };
  return ls_coll_applies (c, nccl, &request);
}

/* A ring enters the small nodes through 4 NICs: 2 (n - 1) / n P / (4 W) = 41.16 ms with n = 24, twice what two
 * large nodes wait for. NVLS over nodes goes with whole nodes of one size: the large two, the small two, but
 * not all, and not half of a large one beside a small one; inside a node with all of its own. */
static void
the_nics_of_small_nodes_bind (void)
{
  LsClusterSpec half, s = halves (&half);
  LsNccl nccl = rates ();
  nccl.nvls_bus = 1e15;
  g_autoptr (LsCluster) c = built (s);
  g_autoptr (LsArena) arena = ls_arena_new ();
  uint32_t gpus[24];
  for (uint32_t i = 0; i < 24; i++)
    gpus[i] = i;
  const LsCollPlan *plan = plan_by (c, &nccl, "ring", LS_COLL_ALL_REDUCE, gpus, 24, BYTES, arena);
  double t = ls_time_to_s (ls_coll_time_alone (c, plan) - plan->phases[0].latency);
  LS_CHECK_NEAR (t, 41.1601e-3, 1e-3);
  const uint32_t beside[] = { 8, 9, 10, 11, 16, 17, 18, 19 };
  LS_CHECK (applies (c, &nccl, "nvls-tree", gpus, 16) && applies (c, &nccl, "nvls-tree", gpus + 16, 8));
  LS_CHECK (!applies (c, &nccl, "nvls-tree", gpus, 24) && applies (c, &nccl, "nvls-tree", beside, 8));
  LS_CHECK (applies (c, &nccl, "nvls", gpus + 20, 4) && applies (c, &nccl, "nvls", gpus + 8, 4));
  g_array_unref (g_array_index (s.others, LsOtherNodes, 0).ranges);
  g_array_unref (s.others);
}

LS_TEST_SUITE (LS_TEST (tree), LS_TEST (pairwise), LS_TEST (star), LS_TEST (server), LS_TEST (barrier),
               LS_TEST (halving), LS_TEST (pat), LS_TEST (hierarchical), LS_TEST (collnet),
               LS_TEST (collnet_adds_in_the_switches), LS_TEST (nvls_tree),
               LS_TEST (an_all_gather_takes_what_each_gpu_still_lacks),
               LS_TEST (an_all_to_all_takes_an_eighth_of_it),
               LS_TEST (switches_that_add_up_save_at_most_a_third), LS_TEST (a_barrier_takes_its_rounds),
               LS_TEST (a_message_takes_latency_and_size_over_rate), LS_TEST (the_nics_of_small_nodes_bind),
               LS_TEST (a_flat_ring_takes_what_its_nics_do),
               LS_TEST (a_hierarchy_sends_a_tenth_between_nodes),
               LS_TEST (trees_send_by_the_edges_of_the_busiest_node))
