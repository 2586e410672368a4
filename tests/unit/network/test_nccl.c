/* Pins latency: ring and tree, their crossing, hops by kind. */
#include "fixtures.h"

static LsTime
latency (const LsCluster *c, LsCollKind kind, uint32_t n, uint32_t per_node)
{
  g_autoptr (LsArena) arena = ls_arena_new ();
  uint32_t *gpus = ls_arena_new_array (arena, uint32_t, n);
  spread (gpus, n, per_node);
  return ls_coll_plan (c, &round_nccl, kind, gpus, n, MIB, LS_NETWORK_FLOW, arena)->phases[0].latency;
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

static void
clear_accepts_null_and_twice (void)
{
  LsNccl nccl = { .name = g_strdup ("x"), .source = g_strdup ("y") };
  ls_nccl_clear (&nccl);
  ls_nccl_clear (&nccl);
  ls_nccl_clear (NULL);
  LS_CHECK (nccl.name == NULL && nccl.source == NULL);
}

LS_TEST_MAIN ("nccl", LS_TEST (rings_inside_a_node_pay_each_step), LS_TEST (rings_across_nodes_pay_each_node),
              LS_TEST (all_reduce_grows_with_the_depth_of_the_tree), LS_TEST (clear_accepts_null_and_twice))
