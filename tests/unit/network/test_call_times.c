/* Pins: what a call takes alone does not depend on which calls were asked for before. Groups that lie alike
 * share an answer, and only those do: in any order, each is the time of its own plan, to the picosecond. */
#include "fixtures.h"
#include "network/call_times.h"
#include "tiny_cluster.h"

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
  g_autoptr (LsCallTimes) times = ls_call_times_new (&round_nccl);
  const LsCollKind kinds[] = { LS_COLL_ALL_REDUCE, LS_COLL_ALL_TO_ALL, LS_COLL_REDUCE_SCATTER };
  for (guint k = 0; k < G_N_ELEMENTS (kinds); k++)
    for (uint32_t n = 2; n <= 8; n *= 2)
      for (uint32_t stride = 1; stride <= 8; stride *= 2)
        for (uint32_t first = 0; first < c->n_gpus; first++)
          check_group (times, c, kinds[k], first, stride, n);
}

static void
groups_that_lie_alike_share_an_answer (void)
{
  check_all (tiny_dgx (3));
  check_all (tiny_torus (1, 4, 4, 0, LS_WRAP_NONE));
}

static void
clusters_and_directions_are_told_apart (void)
{
  g_autoptr (LsCluster) c = built (tiny_dgx (2)), slow = NULL;
  LsClusterSpec spec = tiny_dgx (2);
  spec.nic.bandwidth_bytes_per_s /= 2;
  slow = built (spec);
  g_autoptr (LsCallTimes) times = ls_call_times_new (&round_nccl);
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

LS_TEST_SUITE (LS_TEST (groups_that_lie_alike_share_an_answer),
               LS_TEST (clusters_and_directions_are_told_apart))
