/* Pins the worked examples in the headers of coll_X.c, and what links carry where a
 * formula says it. */
#include "fixtures.h"

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
  spec.nvlink.bandwidth_bytes_per_s *= 100;
  spec.pcie.bandwidth_bytes_per_s *= 100;
  spec.nic.bandwidth_bytes_per_s *= 100;
  spec.spine.bandwidth_bytes_per_s *= 100;
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
  spec.nodes_per_leaf = 2;
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

LS_TEST_MAIN ("coll_worked", LS_TEST (tree), LS_TEST (pairwise), LS_TEST (star), LS_TEST (server),
              LS_TEST (barrier), LS_TEST (halving), LS_TEST (pat), LS_TEST (hierarchical), LS_TEST (collnet),
              LS_TEST (collnet_adds_in_the_switches), LS_TEST (nvls_tree))
