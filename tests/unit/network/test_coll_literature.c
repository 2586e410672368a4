/* Pins worked examples of others (ids of tests/README.md) through our plans,
 * with their round figures and NCCL's rates out of the way:
 *
 *     nv-*  8 H100s at 450 GB/s (jax-ml/scaling-book gpus.md@1a55377)
 *     lg-1  LogGOPSim's dissemination barrier (spcl/atlahs sim/LogGOPSim)
 *     sg-*  a message over a link (simgrid/simgrid docs/source/Models.rst)
 *
 * sg-1 and sg-3 have no counterpart: the factors 13.01 and 0.97 / 1.05 of LV08 and the window
 * gamma / (2 lat) of CM02 are those of TCP, and what is modelled here moves by RDMA. */
#include "fixtures.h"

#define N 8
#define W 450e9 /* bytes/s of a GPU's NVLinks, one direction */

/* Only NVLink binds. */
static LsClusterSpec
h100 (void)
{
  LsClusterSpec s = tiny_dgx (1);
  s.nvswitch_planes = 4;
  s.nvlinks_per_gpu = 18;
  s.nvlink = tiny_link (W / 18, 1, LS_US);
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
  s.nic = s.spine = tiny_link (bytes_per_s, 1, 0);
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

LS_TEST_MAIN ("coll_literature", LS_TEST (an_all_gather_takes_what_each_gpu_still_lacks),
              LS_TEST (an_all_to_all_takes_an_eighth_of_it),
              LS_TEST (switches_that_add_up_save_at_most_a_third), LS_TEST (a_barrier_takes_its_rounds),
              LS_TEST (a_message_takes_latency_and_size_over_rate))
