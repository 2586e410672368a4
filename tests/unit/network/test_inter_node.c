/* Pins the worked examples st-* of an all-reduce of 4 GiB between 4 nodes of 8 B200s with a NIC of 50 GB/s
 * each (stas00/ml-engineering network/README.md@744d01e): what a flat ring takes, and which share of its
 * bytes a hierarchical one sends between nodes; and what trees send. st-hier is in coll_worked, st-naive in
 * analysis/topology, st-meas in api/topology. And what a ring takes where nodes are of unequal size. */
#include "fixtures.h"

#include "network/algorithm.h"

#define N     32
#define NODES 4
#define BYTES (UINT64_C (4) << 30)

/* Only NICs bind; NCCL's rates are those of the NICs. */
static LsClusterSpec
b200 (void)
{
  LsClusterSpec s = tiny_dgx (NODES);
  s.nvlink.bandwidth_bytes_per_s *= 100;
  s.pcie.bandwidth_bytes_per_s *= 100;
  s.gpu.hbm_bytes_per_s *= 100;
  s.nic = s.spine = tiny_link (50e9, 1, LS_US);
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
  uint32_t gpus[N];
  spread (gpus, N, 8);
  const LsCollPlan *plan = plan_by (c, &nccl, "ring", LS_COLL_ALL_REDUCE, gpus, N, BYTES, arena);
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
  uint32_t gpus[N];
  spread (gpus, N, 8);
  const LsCollPlan *plan = plan_by (c, &nccl, "hierarchical", LS_COLL_ALL_REDUCE, gpus, N, BYTES, arena);
  double between = 0;
  for (uint32_t i = 0; i < plan->n_phases; i++)
    between += bytes_on (c, &plan->phases[i], "node*/nic*>leaf*");
  double all = N * 2.0 * (N - 1) / N * BYTES;
  LS_CHECK_NEAR (between / all, (NODES - 1.0) / (N - 1), 1e-6);
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
  half->gpus_per_node = half->nics = 4;
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
  LS_CHECK (!applies (c, &nccl, "nvls-tree", gpus, 24) && !applies (c, &nccl, "nvls-tree", beside, 8));
  LS_CHECK (applies (c, &nccl, "nvls", gpus + 20, 4) && !applies (c, &nccl, "nvls", gpus + 8, 4));
  g_array_unref (g_array_index (s.others, LsOtherNodes, 0).ranges);
  g_array_unref (s.others);
}

LS_TEST_MAIN ("inter_node", LS_TEST (the_nics_of_small_nodes_bind),
              LS_TEST (a_flat_ring_takes_what_its_nics_do), LS_TEST (a_hierarchy_sends_a_tenth_between_nodes),
              LS_TEST (trees_send_by_the_edges_of_the_busiest_node))
