/* What the phases of a collective cost: an all-reduce of 1 GiB, the cluster's building
 * included, as `run` pays for it once; and an all-to-all at the 24 sizes of a table of
 * `lockstep collective`, without the building. Nodes of eight GPUs and NICs on eight rails.
 * The figure should not grow with the GPUs: building and phases are linear in them, and only
 * an all-to-all looks at all pairs, once a table.
 *
 * Targets: an all-reduce over 4,096 GPUs in 50 ms, an all-to-all in a second. */
#include "ls_bench.h"

#include <stdlib.h>

#include "cli/heap.h"
#include "network/coll.h"
#include "nccl_tables.h"
#include "tiny_cluster.h"

static const LsNccl nccl = {
  .tables = LS_TEST_NCCL_VOLTA,
  .channels_ring = 24,
  .channels_net = 2,
  .channels_p2p = 2,
  .ring_bus_intra = 240e9,
  .ring_bus_per_nic = 20e9,
  .p2p_intra = 250e9,
  .p2p_inter = 20e9,
  .base_all_reduce = 10 * LS_US,
  .base_p2p_inter = 36 * LS_US,
  .hop_intra = LS_US,
  .hop_inter = 14 * LS_US,
  .sm_share_per_channel = 1.0 / 108,
  .hbm_per_wire_all_reduce = 3,
  .hbm_per_wire_all_gather = 3,
};

static LsCluster *
build (uint32_t n_gpus)
{
  LsClusterSpec spec = tiny_dgx (n_gpus / 8);
  g_autoptr (GError) error = NULL;
  LsCluster *c = ls_cluster_build (&spec, &error);
  if (!c) {
    fprintf (stderr, "bench_coll: %s\n", error->message);
    exit (1);
  }
  return c;
}

static uint32_t *
all_gpus (uint32_t n)
{
  uint32_t *gpus = g_new (uint32_t, n);
  for (uint32_t i = 0; i < n; i++)
    gpus[i] = i;
  return gpus;
}

/* Seconds. */
static double
all_reduce (uint32_t n)
{
  double start = ls_bench_cpu_s ();
  g_autoptr (LsCluster) c = build (n);
  g_autoptr (LsArena) arena = ls_arena_new ();
  g_autofree uint32_t *gpus = all_gpus (n);
  LsCollRequest request = { .kind = LS_COLL_ALL_REDUCE, .gpus = gpus, .n = n, .bytes = UINT64_C (1) << 30 };
  const LsCollPlan *plan = ls_coll_plan (c, &nccl, &request, LS_NETWORK_FLOW, arena);
  if (ls_coll_time_alone (c, plan) <= 0)
    exit (1);
  return ls_bench_cpu_s () - start;
}

static double
table (uint32_t n)
{
  g_autoptr (LsCluster) c = build (n);
  g_autofree uint32_t *gpus = all_gpus (n);
  double start = ls_bench_cpu_s ();
  g_autoptr (LsCollMemo) memo = ls_coll_memo_new ();
  for (int i = 10; i < 34; i++) {
    g_autoptr (LsArena) arena = ls_arena_new ();
    LsCollRequest request
        = { .kind = LS_COLL_ALL_TO_ALL, .gpus = gpus, .n = n, .bytes = UINT64_C (1) << i, .memo = memo };
    if (ls_coll_time_alone (c, ls_coll_plan (c, &nccl, &request, LS_NETWORK_FLOW, arena)) <= 0)
      exit (1);
  }
  return ls_bench_cpu_s () - start;
}

/* Of three: what disturbs only slows. */
static double
best_of (double (*seconds) (uint32_t n), uint32_t n)
{
  double best = seconds (n);
  for (int i = 1; i < 3; i++)
    best = MIN (best, seconds (n));
  return best;
}

int
main (void)
{
  static const uint32_t sizes[] = { 256, 1024, 4096, 16384, 65536 };
  cli_keep_memory ();
  ls_bench_header ();
  for (size_t i = 0; i < G_N_ELEMENTS (sizes); i++) {
    double s = best_of (all_reduce, sizes[i]);
    ls_bench_print ("coll_all_reduce", sizes[i], "ns/GPU", s * 1e9 / sizes[i], 0);
    if (sizes[i] == 4096)
      ls_bench_print ("coll_all_reduce_wall", sizes[i], "s", s, 0);
  }
  for (size_t i = 1; i < 3; i++)
    ls_bench_print ("coll_all_to_all_table", sizes[i], "s", best_of (table, sizes[i]), 0);
}
