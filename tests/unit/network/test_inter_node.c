/* Pins the worked examples st-* of an all-reduce of 4 GiB between 4 nodes of 8 B200s with a
 * NIC of 50 GB/s each (stas00/ml-engineering network/README.md@744d01e): what a flat ring
 * takes, and which share of its bytes a hierarchical one sends between nodes. st-hier is in
 * coll_worked, st-naive in analysis/topology, st-meas in api/topology. */
#include "fixtures.h"

#define N 32
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

LS_TEST_MAIN ("inter_node", LS_TEST (a_flat_ring_takes_what_its_nics_do), LS_TEST (a_hierarchy_sends_a_tenth_between_nodes))
