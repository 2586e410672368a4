/* Pins what a degraded or failed link does: capacities, ways around it against search,
 * and the error that names who is cut off. */
#include "tiny_cluster.h"
#include "ls_test.h"
#include "route_agreement.h"

#include <string.h>

#include <lockstep/error.h>

static char *
route_of (const LsCluster *c, uint32_t from, uint32_t to)
{
  LsRoute r;
  ls_route (c, from, to, 0, &r);
  return describe (c, &r);
}

static void
a_degraded_link_has_less_both_ways (void)
{
  LsClusterSpec s = tiny_dgx (40), sound = tiny_dgx (40);
  add_fault (&s, "node3/nic2>leaf2", 0.5);
  add_fault (&s, "leaf1>spines", 1);
  add_fault (&s, "leaf4>spines", 0.25);
  g_array_index (s.network.faults, LsFault, 1).failed_links = 5;
  g_array_index (s.network.faults, LsFault, 2).one_way = true;
  g_autoptr (LsCluster) c = build (&s), whole = build (&sound);
  if (LS_CHECK (c && whole)) {
    ls_cluster_check (c);
    LS_CHECK_DOUBLE (trunk_capacity (c, "node3/nic2>leaf2"), ==,
                     trunk_capacity (whole, "node3/nic2>leaf2") / 2);
    LS_CHECK_DOUBLE (trunk_capacity (c, "leaf2>node3/nic2"), ==,
                     trunk_capacity (whole, "leaf2>node3/nic2") / 2);
    LS_CHECK_NEAR (trunk_capacity (c, "spines>leaf1"), trunk_capacity (whole, "spines>leaf1") * 15 / 20,
                   1e-12);
    LS_CHECK_DOUBLE (trunk_capacity (c, "leaf4>spines"), ==, trunk_capacity (whole, "leaf4>spines") / 4);
    LS_CHECK_DOUBLE (trunk_capacity (c, "spines>leaf4"), ==, trunk_capacity (whole, "spines>leaf4"));
  }
  ls_cluster_spec_clear (&s);
}

static void
without_nvlink_over_pcie (void)
{
  LsClusterSpec s = tiny_dgx (2);
  add_fault (&s, "node0/gpu3>nvswitch", 0);
  g_autoptr (LsCluster) c = build (&s);
  if (LS_CHECK (c != NULL)) {
    g_autofree char *cut = route_of (c, 0, 3), *other = route_of (c, 0, 4), *elsewhere = route_of (c, 8, 11);
    LS_CHECK_STR (cut, "node0/gpu0>pcie0 node0/pcie0>cpu0 node0/cpu0>pcie1 node0/pcie1>gpu3");
    LS_CHECK_STR (other, "node0/gpu0>nvswitch node0/nvswitch>gpu4");
    LS_CHECK_STR (elsewhere, "node1/gpu0>nvswitch node1/nvswitch>gpu3");
    LS_CHECK (!ls_host_has_nvswitch (c, 0) && ls_host_has_nvswitch (c, 1));
  }
  ls_cluster_spec_clear (&s);
}

/* GPU 2 has NIC 2 on its PCIe switch, and NIC 3 beside it; the next nearest are across. */
static void
without_its_nic_through_the_next (void)
{
  LsClusterSpec s = tiny_dgx (2);
  add_fault (&s, "node0/nic2>leaf2", 0);
  g_autoptr (LsCluster) c = build (&s);
  if (LS_CHECK (c != NULL)) {
    LS_CHECK_INT (ls_nic_of_gpu (c, 2), ==, 3);
    LS_CHECK_INT (ls_nic_of_gpu (c, 3), ==, 3);
    LS_CHECK_INT (ls_nic_of_gpu (c, 10), ==, 2);
    g_autofree char *out = route_of (c, 2, 10), *in = route_of (c, 10, 2);
    LS_CHECK_STR (
        out,
        "node0/gpu2>pcie1 node0/pcie1>nic3 node0/nic3>leaf3 leaf3>spines spines>leaf2 leaf2>node1/nic2 "
        "node1/nic2>pcie1 node1/pcie1>gpu2");
    LS_CHECK (strstr (in, "node1/nic2>leaf2 leaf2>spines spines>leaf3 leaf3>node0/nic3"));
  }
  add_fault (&s, "node0/pcie1>nic3", 0);
  g_autoptr (LsCluster) worse = build (&s);
  if (LS_CHECK (worse != NULL))
    LS_CHECK_INT (ls_nic_of_gpu (worse, 2), ==,
                  0); /* the same socket, and the first after its own going round */
  ls_cluster_spec_clear (&s);
}

/* Any faults that leave the cluster whole: routes agree with search, and none takes what failed. */
static void
check_faults (LsClusterSpec s, const char *const *links, uint32_t seed)
{
  for (uint32_t i = 0; links[i]; i++)
    add_fault (&s, links[i], i % 3 == 2 ? 0.5 : 0);
  g_autoptr (GRand) rand = g_rand_new_with_seed (seed);
  LS_CHECK (agree_on_pairs (&s, rand, 80));
  ls_cluster_spec_clear (&s);
}

static LsClusterSpec
square (void)
{
  LsClusterSpec s = listed_fabric (8, 1);
  add_switch (&s, "a");
  add_switch (&s, "b");
  add_switch (&s, "c");
  add_switch (&s, "d");
  join_switches (&s, "a", "b", 1);
  join_switches (&s, "b", "c", 3);
  join_switches (&s, "c", "d", 2);
  join_switches (&s, "d", "a", 1);
  join_switches (&s, "a", "c", 1);
  place_nics (&s, 0, 0, 1, "a");
  place_nics (&s, 0, 2, 3, "b");
  place_nics (&s, 0, 4, 5, "c");
  place_nics (&s, 0, 6, 7, "d");
  return s;
}

static void
ways_around_agree_with_search (void)
{
  LsClusterSpec leaves = tiny_dgx (6), rails = tiny_dgx (6), mesh = tiny_dgx (2);
  leaves.network.nodes_per_leaf = 2;
  rails.network.pxn = true;
  mesh.server.nvswitch_planes = 0;
  mesh.server.mesh = LS_MESH_HYBRID_CUBE;
  check_faults (leaves,
                (const char *const[]) { "node0/gpu3>nvswitch", "node1/nic0>leaf0", "leaf3>spines",
                                        "node2/pcie1>nic2", NULL },
                1);
  check_faults (
      rails, (const char *const[]) { "node5/gpu0>nvswitch", "node1/nic6>leaf6", "node4/gpu1>nvswitch", NULL },
      2);
  check_faults (mesh, (const char *const[]) { "node0/gpu0>gpu1", "node1/gpu0>gpu4", "node0/gpu2>gpu3", NULL },
                3);
  check_faults (tiny_fat_tree (20),
                (const char *const[]) { "node9/nic1>leaf17", "node8/gpu1>nvswitch", "pod1>cores", NULL }, 4);
  check_faults (square (), (const char *const[]) { "a>c", "node3/nic5>b", "b>c", NULL }, 5);
}

/* With one spine's link to a leaf gone, no flow from or to that leaf takes that spine. */
static void
hashing_leaves_out_what_failed (void)
{
  LsClusterSpec s = tiny_fat_tree (20);
  s.network.routing = LS_ROUTING_ECMP;
  add_fault (&s, "leaf0>spine1", 0);
  add_fault (&s, "spine2>core33", 0);
  g_autoptr (LsCluster) c = build (&s);
  bool seen[4] = { false };
  for (uint32_t k = 0; c && k < 400; k++) {
    uint32_t a = 8 * (k % 4), b = 8 * (k % 2 ? 4 + k % 3 : 8 + k % 12);
    LsRouteEnds ends = { .gpu_from = k % 3 ? a : b,
                         .gpu_to = k % 3 ? b : a,
                         .nic_from = LS_NIC_AUTO,
                         .nic_to = LS_NIC_AUTO,
                         .channel = k };
    LsRoute r;
    ls_route_ends (c, &ends, &r);
    for (uint32_t i = 0; i < r.n_hops; i++)
      LS_CHECK (!g_array_index (c->trunks, LsTrunk, r.hop[i].trunk).is_failed);
    g_autofree char *text = describe (c, &r);
    for (uint32_t spine = 0; spine < 4; spine++) {
      g_autofree char *up = g_strdup_printf ("leaf0>spine%u ", spine);
      seen[spine] |= strstr (text, up) != NULL;
    }
  }
  LS_CHECK (seen[0] && !seen[1] && seen[2] && seen[3]);
  ls_cluster_spec_clear (&s);
}

static void
refuse (LsClusterSpec s, const char *link, const char *link_2, const char *part)
{
  add_fault (&s, link, 0);
  if (link_2)
    add_fault (&s, link_2, 0);
  g_autoptr (GError) error = NULL;
  g_autoptr (LsCluster) c = ls_cluster_build (&s, &error);
  LS_CHECK (c == NULL);
  if (!g_error_matches (error, LS_ERROR, LS_ERROR_CONFLICT) || !strstr (error->message, part))
    ls_check_impl (false, __FILE__, __LINE__, "%s: expected \"%s\", got \"%s\"", link, part,
                   error ? error->message : "no error");
  ls_cluster_spec_clear (&s);
}

static void
who_is_cut_off_is_named (void)
{
  LsClusterSpec leaves = tiny_dgx (6), one_nic = tiny_pcie (2), bare = tiny_dgx (1);
  leaves.network.nodes_per_leaf = 2;
  leaves.network.rails = 1;
  one_nic.nics.n = 1;
  bare.server.pcie_switches = bare.server.cpu_sockets = bare.server.nvme_drives = bare.nics.n = 0;
  refuse (leaves, "leaf1>spines", NULL, "faults: no way from leaf0 (node0/nic0) to leaf1 (node2/nic0)");
  refuse (one_nic, "node1/nic0>leaf0", NULL, "faults: no way from node1/gpu0 to any NIC of its node is left");
  refuse (bare, "node0/gpu5>nvswitch", NULL, "faults: no way from node0/gpu0 to node0/gpu5 is left");
  refuse (tiny_dgx (2), "node0/gpu2>pcie1", NULL,
          "faults: no way from node0/gpu2 to any NIC of its node is left");
  refuse (tiny_dgx (1), "node0/pcie1>cpu0", NULL,
          "faults: no way from node0/gpu2 to the memory of its CPU is left");
  refuse (square (), "a>b", "b>c", "faults: no way from a (node0/nic0) to b (node2/nic0)");
}

/* PXN needs no spines as long as all NICs work. */
static void
spines_may_fail_where_pxn_needs_none (void)
{
  LsClusterSpec s = tiny_dgx (6);
  s.network.pxn = true;
  add_fault (&s, "leaf1>spines", 0);
  g_autoptr (LsCluster) c = build (&s);
  LS_CHECK (c != NULL);
  ls_cluster_spec_clear (&s);
  s = tiny_dgx (6);
  s.network.pxn = true;
  add_fault (&s, "leaf1>spines", 0);
  refuse (s, "node0/nic1>leaf1", NULL, "faults: no way from leaf0 (node0/nic0) to leaf1");
}

static void
unknown_links_are_refused (void)
{
  refuse (
      tiny_dgx (2), "node0/gpu3>nvswich", NULL,
      "no link is named \"node0/gpu3>nvswich\" in a cluster of 2 nodes; did you mean \"node0/gpu3>nvswitch\"?");
  refuse (tiny_dgx (2), "node7/gpu3>nvswitch", NULL, "in a cluster of 2 nodes");
  refuse (tiny_dgx (2), "leaf0>spine", NULL, "did you mean \"leaf0>spines\"?");
  refuse (tiny_dgx (2), "eaf0>spines", NULL, "did you mean \"leaf0>spines\"?");
  LsClusterSpec s = tiny_dgx (2);
  add_fault (&s, "leaf0>spines", 1);
  g_array_index (s.network.faults, LsFault, 0).failed_links = 21;
  refuse (s, "leaf1>spines", NULL, "\"leaf0>spines\" has 20 links; 21 cannot fail");
}

/* One of the 8 uplinks of a leaf at a tenth: 7.1 of 8 where each packet takes the least loaded, 0.8 of 8 where
 * packets go in turn; a failed one is gone around either way. In a node routing is none of the fabric's. */
static void
a_slow_link_of_a_trunk_is_a_matter_of_routing (void)
{
  static const struct {
    LsRouting routing;
    double capacity, share;
  } cases[] = { { LS_ROUTING_IDEAL, 0.1, 7.1 / 8 },
                { LS_ROUTING_ADAPTIVE, 0.1, 7.1 / 8 },
                { LS_ROUTING_SPRAY, 0.1, 0.1 },
                { LS_ROUTING_SPRAY, 0, 7.0 / 8 } };
  for (size_t i = 0; i < G_N_ELEMENTS (cases); i++) {
    LsClusterSpec spec = tiny_dgx (2);
    spec.network.rails = spec.network.nodes_per_leaf = 1;
    spec.network.routing = cases[i].routing;
    const LsFault slow[]
        = { { .link = g_strdup ("leaf0>spines"), .capacity = cases[i].capacity, .n_links = 1 },
            { .link = g_strdup ("node0/gpu0>nvswitch"), .capacity = 0.5, .n_links = 6 } };
    spec.network.faults = g_array_new (FALSE, FALSE, sizeof (LsFault));
    g_array_append_vals (spec.network.faults, slow, 2);
    g_autoptr (GError) error = NULL;
    g_autoptr (LsCluster) c = ls_cluster_build (&spec, &error);
    LS_CHECK_NO_ERROR (error);
    for (guint t = 0; c && t < c->trunks->len; t++) {
      const LsTrunk *trunk = &g_array_index (c->trunks, LsTrunk, t);
      if (strcmp (trunk->name, "leaf0>spines") == 0)
        LS_CHECK_NEAR (trunk->capacity_bytes_per_s, cases[i].share * 8 * 25e9 * 0.97, 1e-9);
      if (strcmp (trunk->name, "node0/gpu0>nvswitch") == 0)
        LS_CHECK_NEAR (trunk->capacity_bytes_per_s, 0.75 * 12 * 25e9 * 0.91, 1e-9);
    }
    ls_cluster_spec_clear (&spec);
  }
}

LS_TEST_SUITE (LS_TEST (a_slow_link_of_a_trunk_is_a_matter_of_routing),
               LS_TEST (a_degraded_link_has_less_both_ways), LS_TEST (without_nvlink_over_pcie),
               LS_TEST (without_its_nic_through_the_next), LS_TEST (ways_around_agree_with_search),
               LS_TEST (hashing_leaves_out_what_failed), LS_TEST (who_is_cut_off_is_named),
               LS_TEST (spines_may_fail_where_pxn_needs_none), LS_TEST (unknown_links_are_refused))
