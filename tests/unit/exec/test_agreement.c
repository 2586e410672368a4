/* Pins: how near a collective message by message comes to its phases, with nothing else on
 * the network. Within 5 % from 64 MiB on: rings, halving-doubling and hierarchical on a node,
 * over nodes, and behind an oversubscribed fabric; a torus. Where they differ, by what
 * messages.h says: a pipeline fills and empties. */
#include "ls_test.h"

#include <math.h>

#include "tiny_cluster.h"
#include "tiny_torus.h"

#include "exec/messages.h"

#define MIB (UINT64_C (1) << 20)

static const LsNccl nccl = {
  .channels_ring = 24, .channels_net = 2, .channels_nvls = 16, .channels_p2p = 2, .ring_bus_intra = 240e9, .ring_bus_per_nic = 16e9,
  .p2p_intra = 250e9, .p2p_inter = 20e9, .base_all_reduce = 10 * LS_US, .base_all_gather = 9 * LS_US,
  .base_reduce_scatter = 8 * LS_US, .base_nvls = 25 * LS_US, .base_p2p_intra = 12 * LS_US, .base_p2p_inter = 36 * LS_US,
  .hop_intra = LS_US, .hop_inter = 14 * LS_US, .sm_share_per_channel = 1.0 / 108, .hbm_per_wire_all_reduce = 3,
  .hbm_per_wire_all_gather = 3, .hbm_per_wire_reduce_scatter = 3, .hbm_per_wire_p2p = 2,
};

typedef struct {
  const char *name;
  LsClusterSpec spec;
  uint32_t n, per_node; /* members: the first so many GPUs of each node */
} Place;

static LsClusterSpec
oversubscribed (void)
{
  LsClusterSpec s = tiny_dgx (8);
  s.nodes_per_leaf = 4;
  s.oversubscription = 4;
  return s;
}

/* step / flow; and how many rounds it took, if that is asked for. */
static double
ratio (const Place *p, LsCollKind kind, const char *algorithm, uint64_t bytes, uint32_t *ret_n_rounds)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (LsCluster) c = ls_cluster_build (&p->spec, &error);
  LS_CHECK_NO_ERROR (error);
  if (!c)
    return NAN;
  g_autoptr (LsArena) arena = ls_arena_new ();
  g_autofree uint32_t *gpus = g_new (uint32_t, p->n);
  for (uint32_t i = 0; i < p->n; i++)
    gpus[i] = i / p->per_node * p->spec.gpus_per_node + i % p->per_node;
  LsCollRequest request = { .kind = kind, .gpus = gpus, .n = p->n, .bytes = bytes, .algorithm = algorithm };
  if (!ls_coll_applies (c, &nccl, &request))
    return NAN;
  const LsCollPlan *plan = ls_coll_plan (c, &nccl, &request, LS_NETWORK_FLOW, arena);
  const LsScript *script = ls_coll_script (c, &nccl, &request, arena);
  if (ret_n_rounds)
    *ret_n_rounds = script->n_rounds;
  return (double) ls_messages_time_alone (script, c) / (double) ls_coll_time_alone (c, plan);
}

static void
check (const Place *p, LsCollKind kind, const char *algorithm, uint64_t bytes, double least, double most)
{
  double r = ratio (p, kind, algorithm, bytes, NULL);
  ls_check_impl (r >= least && r <= most, __FILE__, __LINE__, "%s, %s by %s, %" G_GUINT64_FORMAT " MiB: step / flow %.4f, not %.2f to %.2f",
                 p->name, ls_coll_kind_name (kind), algorithm, bytes / MIB, r, least, most);
}

static void
rounds_of_equal_messages_agree (void)
{
  const Place places[] = {
    { "a node", tiny_dgx (1), 8, 8 },       { "two nodes", tiny_dgx (2), 16, 8 },  { "half of two nodes", tiny_dgx (2), 8, 4 },
    { "four nodes", tiny_dgx (4), 32, 8 },  { "one of each", tiny_dgx (8), 8, 1 }, { "oversubscribed", oversubscribed (), 16, 2 },
    { "PCIe", tiny_pcie (1), 8, 8 },
  };
  const LsCollKind kinds[] = { LS_COLL_ALL_REDUCE, LS_COLL_ALL_GATHER, LS_COLL_REDUCE_SCATTER };
  for (guint i = 0; i < G_N_ELEMENTS (places); i++)
    for (guint k = 0; k < G_N_ELEMENTS (kinds); k++)
      for (uint64_t size = 64; size <= 1024; size *= 16) {
        check (&places[i], kinds[k], "ring", size * MIB, 0.95, 1.05);
        check (&places[i], kinds[k], "halving-doubling", size * MIB, 0.95, 1.05);
        if (places[i].per_node > 1 && places[i].n > 8)
          check (&places[i], kinds[k], "hierarchical", size * MIB, 0.95, 1.05);
      }
}

static void
a_torus_agrees (void)
{
  const Place places[] = {
    { "line", tiny_torus (1, 8, 4, 0, LS_WRAP_NONE), 8, 32 },
    { "ring", tiny_torus (1, 8, 4, 0, LS_WRAP_ALL), 8, 32 },
    { "plane", tiny_torus (1, 8, 8, 0, LS_WRAP_ALL), 64, 64 },
    { "cube", tiny_torus (1, 4, 4, 4, LS_WRAP_ALL), 64, 64 },
  };
  const LsCollKind kinds[] = { LS_COLL_ALL_REDUCE, LS_COLL_ALL_GATHER, LS_COLL_REDUCE_SCATTER };
  for (guint i = 0; i < G_N_ELEMENTS (places); i++)
    for (guint k = 0; k < G_N_ELEMENTS (kinds); k++)
      check (&places[i], kinds[k], "torus", 256 * MIB, 0.95, 1.05);
}

/* A pipeline of c chunks over d stages takes c + d - 1 rounds where flow counts c: d is
 * n - 1 in a chain, 2 (n - 1) in a tree on one node, which is a chain up and down. */
static void
a_pipeline_fills_and_empties (void)
{
  const Place places[] = { { "a node", tiny_dgx (1), 8, 8 }, { "half a node", tiny_dgx (1), 4, 4 }, { "one of each", tiny_dgx (8), 8, 1 } };
  const struct {
    LsCollKind kind;
    const char *algorithm;
    uint32_t stages_per_edge;
  } calls[] = { { LS_COLL_BROADCAST, "ring", 1 }, { LS_COLL_REDUCE, "ring", 1 }, { LS_COLL_ALL_REDUCE, "tree", 2 } };
  for (guint i = 0; i < G_N_ELEMENTS (places); i++)
    for (guint k = 0; k < G_N_ELEMENTS (calls); k++) {
      if (places[i].per_node == 1 && calls[k].stages_per_edge == 2)
        continue; /* two real trees, less deep */
      uint32_t n_rounds = 0, n_stages = calls[k].stages_per_edge * (places[i].n - 1);
      double r = ratio (&places[i], calls[k].kind, calls[k].algorithm, 1024 * MIB, &n_rounds);
      LS_CHECK_NEAR (r, (double) n_rounds / (n_rounds - n_stages + 1), 0.02);
    }
}

LS_TEST_MAIN ("agreement", LS_TEST (rounds_of_equal_messages_agree), LS_TEST (a_torus_agrees),
              LS_TEST (a_pipeline_fills_and_empties))
