/* Pins NVLink SHARP: when it is chosen, its bytes, its time. */
#include "fixtures.h"

#include "cluster/route.h"
#include "tiny_cluster.h"
#include "network/script.h"

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
  spec.nvlinks_per_gpu = 18;
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
  LS_CHECK_STR (all_reduce (c, 7, 64 * MIB, arena)->algorithm, "ring");
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
  spec.faults = g_array_new (FALSE, FALSE, sizeof fault);
  g_array_append_val (spec.faults, fault);
  g_autoptr (LsCluster) faulty = built (spec);
  LS_CHECK (!ls_host_has_nvswitch (faulty, 0));
  LS_CHECK (ls_host_has_nvswitch (faulty, 1));
  g_clear_pointer (&spec.faults, g_array_unref);
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

LS_TEST_SUITE (LS_TEST (whole_nodes_reduce_in_the_switch),
               LS_TEST (each_trunk_carries_the_array_and_its_share),
               LS_TEST (a_script_loads_the_memories_as_a_plan_does),
               LS_TEST (parts_of_nodes_and_other_kinds_do_without), LS_TEST (small_messages_stay_on_the_ring),
               LS_TEST (listed_nodes_reduce_in_the_switch), LS_TEST (without_a_switch_for_all_there_is_none))
