/* Pins fat trees and listed fabrics: routes against search, bandwidth level by level
 * (scaling-book's worked examples ft-1 to ft-3), PXN, what is refused. */
#include "tiny_cluster.h"
#include "ls_test.h"
#include "route_agreement.h"

#include <math.h>
#include <string.h>

#include "cluster/places.h"
#include <lockstep/error.h>

static void
check_agreement (LsClusterSpec *s, uint32_t seed, int n_pairs)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (seed);
  LS_CHECK (agree_on_pairs (s, rand, n_pairs));
  ls_cluster_spec_clear (s);
}

static void
fat_trees_agree_with_search (void)
{
  LsClusterSpec specs[]
      = { tiny_fat_tree (21), tiny_fat_tree (24), tiny_fat_tree (17), tiny_fat_tree (6), tiny_fat_tree (9) };
  specs[1].network.spine_oversubscription = 4;
  specs[1].network.oversubscription = 2;
  specs[2].network.rails = 2; /* 4 NICs of a node on a leaf */
  specs[2].network.core.bandwidth_bytes_per_s *= 2;
  specs[3].network.pxn = true;
  specs[4].server.nvswitch_planes = specs[4].server.nvlinks_per_gpu = 0; /* PXN without NVLink is none */
  specs[4].network.pxn = true;
  for (uint32_t i = 0; i < G_N_ELEMENTS (specs); i++)
    check_agreement (&specs[i], 7000 + i, 40);
}

static void
a_route_reads_as_expected (void)
{
  LsClusterSpec s = tiny_fat_tree (24);
  g_autoptr (LsCluster) c = build (&s);
  if (!LS_CHECK (c != NULL))
    return;
  LsRoute r;
  ls_route (c, 0, 8 * 9, 0, &r); /* node 9 is in the second pod */
  g_autofree char *text = describe (c, &r);
  LS_CHECK_STR (text,
                "node0/gpu0>pcie0 node0/pcie0>nic0 node0/nic0>leaf0 leaf0>spines pod0>cores cores>pod1 "
                "spines>leaf16 leaf16>node9/nic0 node9/nic0>pcie0 node9/pcie0>gpu0");
  ls_route (c, 0, 8 * 5, 0, &r); /* node 5 in the first, below another leaf */
  g_autofree char *near = describe (c, &r);
  LS_CHECK (strstr (near, "leaf0>spines spines>leaf8") && !strstr (near, "core"));
}

/* Capacity upwards of a tier, without efficiencies. */
static double
tier (const LsCluster *c, const char *prefix, const char *suffix, double efficiency)
{
  double sum = 0;
  for (guint t = 0; t < c->trunks->len; t++) {
    const LsTrunk *trunk = &g_array_index (c->trunks, LsTrunk, t);
    if (g_str_has_prefix (trunk->name, prefix) && g_str_has_suffix (trunk->name, suffix))
      sum += trunk->capacity_bytes_per_s / efficiency;
  }
  return sum;
}

/* The DGX H100 SuperPOD of 4 scalable units as three tiers with a unit as a pod: the same at
 * each level (worked examples of tests/README.md: ft-3 and, D W / (D - 1) for D at each level, ft-1). */
static void
bandwidth_of_levels_is_that_of_a_superpod (void)
{
  LsClusterSpec s = tiny_fat_tree (128);
  s.network.nodes_per_leaf = s.network.nodes_per_pod = 32;
  s.server.nvlinks_per_gpu = 18;
  s.server.nvswitch_planes = 4;
  s.nics.port.bandwidth_bytes_per_s = s.network.spine.bandwidth_bytes_per_s
      = s.network.core.bandwidth_bytes_per_s = 50e9;
  g_autoptr (LsCluster) c = build (&s);
  if (!LS_CHECK (c != NULL))
    return;
  double node = tier (c, "node0/gpu", ">nvswitch", s.server.nvlink.efficiency);
  double egress = 0, leaves = tier (c, "leaf", ">spines", s.network.spine.efficiency),
         pod = tier (c, "pod0>", "cores", s.network.core.efficiency);
  for (uint32_t i = 0; i < 8; i++) {
    g_autofree char *name = g_strdup_printf ("node0/nic%u>leaf%u", i, i);
    egress += trunk_capacity (c, name) / s.nics.port.efficiency;
  }
  LS_CHECK_NEAR (node, 3.6e12, 1e-9);
  LS_CHECK_NEAR (egress, 400e9, 1e-9);
  LS_CHECK_NEAR (leaves, 51.2e12, 1e-9);
  LS_CHECK_NEAR (pod, 12.8e12, 1e-9);
  /* ft-1: the least of D W / (D - 1): 8 GPUs, 32 nodes of a unit, 4 units. */
  LS_CHECK_NEAR (8 * node / 8 / 7, 514e9, 0.01);
  LS_CHECK_NEAR (32 * egress / 31, 413e9, 0.01);
  LS_CHECK_NEAR (4 * pod / 3, 17067e9, 0.01);
  /* ft-2: all-gather over 2 nodes, max (7 B / 8 / 450e9, B / 2 / 400e9). */
  LS_CHECK_NEAR (fmax (7.0 / 8 / (node / 8), 1.0 / 2 / egress), 1.94553e-12, 0.01);
}

static void
spine_oversubscription_takes_uplinks_away (void)
{
  static const double ratios[] = { 1, 2, 4, 8, 16 };
  for (size_t i = 0; i < G_N_ELEMENTS (ratios); i++) {
    LsClusterSpec s = tiny_fat_tree (24);
    s.network.spine_oversubscription = ratios[i];
    g_autoptr (LsCluster) c = build (&s);
    if (!LS_CHECK (c != NULL))
      return;
    ls_cluster_check (c);
    LS_CHECK_NEAR (trunk_capacity (c, "pod1>cores") * ratios[i], 16 * trunk_capacity (c, "leaf0>spines"),
                   1e-12);
  }
}

/* Two rows of switches, a mesh between, unequal counts; leaf a has two ways to d. */
static LsClusterSpec
odd_list (LsRouting routing)
{
  LsClusterSpec s = listed_fabric (6, 2);
  static const char *const names[] = { "a", "b", "c", "d", "x", "y", "z" };
  for (size_t i = 0; i < G_N_ELEMENTS (names); i++)
    add_switch (&s, names[i]);
  join_switches (&s, "a", "x", 3);
  join_switches (&s, "a", "y", 1);
  join_switches (&s, "b", "x", 2);
  join_switches (&s, "c", "y", 2);
  join_switches (&s, "x", "d", 2);
  join_switches (&s, "y", "d", 4);
  join_switches (&s, "x", "z", 1);
  join_switches (&s, "z", "y", 1);
  join_switches (&s, "b", "c", 1);
  place_nics (&s, 0, 0, 2, "a");
  place_nics (&s, 0, 3, 99, "b");
  place_nics (&s, 1, 0, 0, "c");
  place_nics (&s, 1, 1, UINT32_MAX - 1, "d");
  s.network.routing = routing;
  return s;
}

/* What payload reaches of a NIC's link, or of links between switches, moves no cable: a leaf has 4 uplinks, the
 * spines of a pod have 64. */
static void
uplinks_are_dealt_by_bandwidth (void)
{
  for (guint i = 0; i < 4; i++) {
    LsClusterSpec s = tiny_fat_tree (24);
    s.nics.port.efficiency = i == 1 ? 0.37 : 0.97;
    s.network.spine.efficiency = i == 2 ? 0.37 : 0.97;
    s.network.core.efficiency = i == 3 ? 0.37 : 0.97;
    g_autoptr (LsCluster) c = build (&s);
    if (!LS_CHECK (c != NULL))
      return;
    LS_CHECK_NEAR (trunk_capacity (c, "leaf0>spines"), 4 * 25e9 * s.network.spine.efficiency, 1e-12);
    LS_CHECK_NEAR (trunk_capacity (c, "pod1>cores"), 64 * 25e9 * s.network.core.efficiency, 1e-12);
  }
}

static void
lists_agree_with_search (void)
{
  LsClusterSpec odd = odd_list (LS_ROUTING_IDEAL), pxn = odd_list (LS_ROUTING_IDEAL);
  pxn.network.pxn = true;
  check_agreement (&odd, 7100, 200);
  check_agreement (&pxn, 7101, 200);
}

/* The same leaf-spine by arithmetic and as a list: same names, same shares. */
static void
a_list_can_say_what_a_leaf_spine_says (void)
{
  LsClusterSpec tree = tiny_dgx (6), list = listed_fabric (6, 1);
  tree.network.rails = 1;
  tree.network.nodes_per_leaf = 2;
  add_switch (&list, "spines");
  for (uint32_t leaf = 0; leaf < 3; leaf++) {
    g_autofree char *name = g_strdup_printf ("leaf%u", leaf);
    add_switch (&list, name);
    join_switches (&list, name, "spines", 16);
    place_nics (&list, 0, 2 * leaf, 2 * leaf + 1, name);
  }
  g_autoptr (LsCluster) a = build (&tree), b = build (&list);
  for (uint32_t gpu = 1; a && b && gpu < a->n_gpus; gpu++) {
    LsRoute x, y;
    ls_route (a, 0, gpu, 0, &x);
    ls_route (b, 0, gpu, 0, &y);
    g_autofree char *p = describe (a, &x), *q = describe (b, &y);
    LS_CHECK_STR (p, q);
    LS_CHECK_INT (x.latency, ==, y.latency);
    LS_CHECK_DOUBLE (trunk_capacity (a, "leaf1>spines"), ==, trunk_capacity (b, "leaf1>spines"));
  }
  ls_cluster_spec_clear (&list);
}

/* GPU 0 to GPU 5 of another node: by GPU 5 of its own, and one leaf. */
static void
pxn_keeps_to_the_rail (void)
{
  LsClusterSpec s = tiny_dgx (40);
  s.network.pxn = true;
  g_autoptr (LsCluster) c = build (&s);
  if (!LS_CHECK (c != NULL))
    return;
  LsRoute r;
  ls_route (c, 0, 13, 0, &r);
  g_autofree char *text = describe (c, &r);
  LS_CHECK_STR (text,
                "node0/gpu0>nvswitch node0/nvswitch>gpu5 node0/gpu5>pcie2 node0/pcie2>nic5 node0/nic5>leaf5 "
                "leaf5>node1/nic5 node1/nic5>pcie2 node1/pcie2>gpu5");
  LS_CHECK_INT (ls_route_proxy (c, 0, 13), ==, 5);
  LS_CHECK_INT (ls_route_proxy (c, 0, 8), ==, 0);
  ls_route_ends (c, &(LsRouteEnds) { 0, 13, 0, 5, 0 }, &r); /* chosen NICs are kept */
  g_autofree char *chosen = describe (c, &r);
  LS_CHECK (strstr (chosen, "leaf0>spines") != NULL);
  check_agreement (&s, 7200, 60);
}

static void
refuse (LsClusterSpec s, const char *part)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (LsCluster) c = ls_cluster_build (&s, &error);
  LS_CHECK (c == NULL);
  if (!g_error_matches (error, LS_ERROR, LS_ERROR_CONFLICT) || !strstr (error->message, part))
    ls_check_impl (false, __FILE__, __LINE__, "expected \"%s\", got \"%s\"", part,
                   error ? error->message : "no error");
  ls_cluster_spec_clear (&s);
}

#define REFUSE(base, part, ...)                                                                              \
  G_STMT_START                                                                                               \
  {                                                                                                          \
    LsClusterSpec s = base;                                                                                  \
    __VA_ARGS__;                                                                                             \
    refuse (s, part);                                                                                        \
  }                                                                                                          \
  G_STMT_END

static void
what_cannot_be_built_is_refused (void)
{
  REFUSE (tiny_fat_tree (24), "6 nodes per pod do not deal out to leaves of 4", s.network.nodes_per_pod = 6);
  REFUSE (tiny_fat_tree (24), "spine_oversubscription 3 leaves 5.333 uplinks",
          s.network.spine_oversubscription = 3);
  REFUSE (tiny_fat_tree (24), "fabric core_link", s.network.core.efficiency = 0);
  REFUSE (tiny_fat_tree (8196), "2049 pods need 65568 spines", s.network.nodes_per_pod = 4,
          s.network.rails = 1);
  LsClusterSpec most = tiny_fat_tree (8192);
  most.network.nodes_per_pod = 4, most.network.rails = 1;
  LS_CHECK (ls_cluster_spec_validate (&most, NULL));
  REFUSE (odd_list (LS_ROUTING_IDEAL), "to lonely", add_switch (&s, "lonely"),
          g_array_index (s.network.nics, LsListNics, 3).last = 4, place_nics (&s, 1, 5, 5, "lonely"));
}

static void
lists_with_mistakes_are_refused (void)
{
  LsRouting ideal = LS_ROUTING_IDEAL;
  REFUSE (odd_list (ideal), "two switches are named \"x\"", add_switch (&s, "x"));
  REFUSE (odd_list (ideal), "names \"leaf\", which is no switch", join_switches (&s, "leaf", "x", 1));
  REFUSE (odd_list (ideal), "joins \"a\" to itself", join_switches (&s, "a", "a", 1));
  REFUSE (odd_list (ideal), "\"a\" and \"x\" are joined twice", join_switches (&s, "x", "a", 1));
  REFUSE (odd_list (ideal), "joined by 0 links", join_switches (&s, "a", "b", 0));
  REFUSE (odd_list (ideal), "two rules place the NICs of rail 0 of node 2", place_nics (&s, 0, 2, 2, "c"));
  REFUSE (odd_list (ideal), "no rule places the NICs of rail 0 of node 3",
          g_array_index (s.network.nics, LsListNics, 1).first = 4);
  REFUSE (odd_list (ideal), "a rule places NICs of rail 2; there are 2 rails", place_nics (&s, 2, 0, 0, "a"));
}

/* Pins the example of lie.h: which lists of GPUs may stand for each other. */
static void
gpus_lie_alike_by_hosts_and_leaves (void)
{
  static const struct {
    uint32_t gpus[3];
    bool is_alike; /* to the first */
  } lists[] = {
    { { 0, 8, 16 }, true },   { { 32, 40, 48 }, true }, { { 16, 24, 0 }, true }, { { 33, 41, 49 }, false },
    { { 8, 16, 24 }, false }, { { 0, 16, 32 }, false }, { { 0, 1, 16 }, false }, { { 8, 0, 16 }, true },
  };
  LsClusterSpec s = tiny_dgx (7);
  s.network.nodes_per_leaf = 2;
  s.network.oversubscription = 2;
  g_autoptr (LsCluster) c = build (&s);
  LsLie lie;
  LS_CHECK (ls_lie_init (&lie, c));
  LsSig first = ls_lie_of (&lie, NULL, lists[0].gpus, 3);
  for (guint i = 0; i < G_N_ELEMENTS (lists); i++) {
    LsSig own = ls_lie_of (&lie, NULL, lists[i].gpus, 3);
    ls_check_impl (ls_sig_is_same (&own, &first) == lists[i].is_alike, __FILE__, __LINE__, "list %u", i);
  }
  ls_lie_clear (&lie);
}

/* One node, one leaf and one pod of a brief cluster say of each resource what the whole says. */
static void
a_brief_cluster_is_the_whole (void)
{
  LsClusterSpec specs[] = { tiny_fat_tree (21),
                            tiny_fat_tree (24),
                            tiny_fat_tree (17),
                            tiny_dgx (40),
                            tiny_dragonfly (40, LS_FABRIC_DRAGONFLY, LS_ROUTING_ADAPTIVE),
                            tiny_dragonfly (5, LS_FABRIC_DRAGONFLY, LS_ROUTING_VALIANT),
                            tiny_dragonfly (40, LS_FABRIC_DRAGONFLY_PLUS, LS_ROUTING_IDEAL) };
  specs[1].network.spine_oversubscription = 4;
  specs[2].network.rails = 2;
  for (guint k = 0; k < G_N_ELEMENTS (specs); k++) {
    g_autoptr (LsCluster) brief = ls_cluster_build_within (&specs[k], true, UINT64_MAX, NULL);
    g_autoptr (LsCluster) whole = build (&specs[k]);
    bool are_same = LS_CHECK (brief && whole) && LS_CHECK_INT (brief->n_trunks, ==, whole->n_trunks)
        && LS_CHECK (brief->trunks->len < whole->trunks->len);
    for (uint32_t i = 0; are_same && i < ls_cluster_n_resources (whole); i++) {
      g_autofree char *own = ls_cluster_resource_name (brief, i), *name = ls_cluster_resource_name (whole, i);
      are_same = LS_CHECK_STR (own, name)
          && ls_cluster_resource_capacity (brief, i) == ls_cluster_resource_capacity (whole, i)
          && (i >= whole->n_trunks || ls_cluster_trunk (brief, i)->from == ls_cluster_trunk (whole, i)->from);
    }
    LS_CHECK (are_same);
    ls_cluster_spec_clear (&specs[k]);
  }
}

LS_TEST_SUITE (LS_TEST (a_brief_cluster_is_the_whole), LS_TEST (gpus_lie_alike_by_hosts_and_leaves),
               LS_TEST (fat_trees_agree_with_search), LS_TEST (a_route_reads_as_expected),
               LS_TEST (bandwidth_of_levels_is_that_of_a_superpod),
               LS_TEST (spine_oversubscription_takes_uplinks_away), LS_TEST (uplinks_are_dealt_by_bandwidth),
               LS_TEST (lists_agree_with_search), LS_TEST (a_list_can_say_what_a_leaf_spine_says),
               LS_TEST (pxn_keeps_to_the_rail), LS_TEST (what_cannot_be_built_is_refused),
               LS_TEST (lists_with_mistakes_are_refused))
