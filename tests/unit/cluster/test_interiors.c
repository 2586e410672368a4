/* Pins what is inside odd nodes: meshes, boxes without switches, racks of boards, and
 * explicit lists: routes by name and share, NICs and memories of GPUs, refusals. */
#include "cluster_check.h"
#include "ls_test.h"

#include <string.h>

#include <lockstep/error.h>

#include "cluster/route.h"
#include "tiny_cluster.h"
#include "built_cluster.h"

/* "gpu0>gpu1 1/3 ..": a share that is not whole follows in thousandths. */
static char *
describe (const LsCluster *c, const LsRoute *r)
{
  GString *text = g_string_new (NULL);
  for (uint32_t i = 0; i < r->n_hops; i++) {
    g_string_append_printf (text, "%s%s", i > 0 ? " " : "",
                            g_array_index (c->trunks, LsTrunk, r->hop[i].trunk).name);
    if (r->hop[i].share != LS_HOP_WHOLE)
      g_string_append_printf (text, ":%.3f", (double) r->hop[i].share / LS_HOP_WHOLE);
  }
  return g_string_free (text, FALSE);
}

static void
check_route (const LsCluster *c, uint32_t from, uint32_t to, const char *expected)
{
  LsRoute r;
  ls_route (c, from, to, 0, &r);
  g_autofree char *text = describe (c, &r);
  LS_CHECK_STR (text, expected);
}

static void
check_memory (const LsCluster *c, uint32_t gpu, const char *there, const char *back)
{
  LsRoute r;
  ls_route_host_memory (c, gpu, true, &r);
  g_autofree char *out = describe (c, &r);
  LS_CHECK_STR (out, there);
  ls_route_host_memory (c, gpu, false, &r);
  g_autofree char *in = describe (c, &r);
  LS_CHECK_STR (in, back);
}

/* --- meshes --- */

static LsClusterSpec
hybrid_cube (void)
{
  LsClusterSpec s = tiny_dgx (1);
  s.server.nvswitch_planes = 0;
  s.server.mesh = LS_MESH_HYBRID_CUBE;
  return s;
}

static void
dgx_1_has_six_nvlinks_per_gpu (void)
{
  LsClusterSpec s = hybrid_cube ();
  g_autoptr (LsCluster) c = build (&s);
  if (!LS_CHECK (c != NULL))
    return;
  for (uint32_t gpu = 0; gpu < 8; gpu++) {
    uint32_t n = 0;
    for (guint i = 0; i < c->links->len; i++) {
      const LsLink *link = &g_array_index (c->links, LsLink, i);
      if (link->from == gpu && g_array_index (c->nodes, LsTopoNode, link->to).kind == LS_NODE_GPU)
        n += link->n_physical;
    }
    LS_CHECK_INT (n, ==, 6);
  }
  LS_CHECK_NEAR (capacity_of (c, "node0/gpu0>gpu3"), 2 * 25e9 * 0.91, 1e-12);
}

/* 0 and 7: over 3 (two links from 0) and 4 (two). 0 and 5: over 1 (one link) and 4 (two).
 * Every pair of a cube has a common neighbour, so PCIe carries none of it. */
static void
far_gpus_of_a_mesh_go_over_common_neighbours (void)
{
  LsClusterSpec s = hybrid_cube ();
  g_autoptr (LsCluster) c = build (&s);
  if (!LS_CHECK (c != NULL))
    return;
  check_route (c, 0, 3, "node0/gpu0>gpu3");
  check_route (c, 3, 0, "node0/gpu3>gpu0");
  check_route (c, 0, 7,
               "node0/gpu0>gpu3:0.500 node0/gpu3>gpu7:0.500 node0/gpu0>gpu4:0.500 node0/gpu4>gpu7:0.500");
  check_route (c, 0, 5,
               "node0/gpu0>gpu1:0.333 node0/gpu1>gpu5:0.333 node0/gpu0>gpu4:0.667 node0/gpu4>gpu5:0.667");
  LsRoute r;
  ls_route (c, 0, 5, 0, &r);
  LS_CHECK_INT (r.latency, ==, 2 * LS_US);
  LS_CHECK_INT (r.hop[0].share + r.hop[2].share, ==, LS_HOP_WHOLE);
}

static void
mesh_gpus_without_a_way_use_pcie (void)
{
  static const LsMeshLink links[] = { { 1, 0, 2 } };
  LsClusterSpec s = tiny_pcie (1);
  s.server.mesh = LS_MESH_LIST;
  s.server.mesh_links = g_array_new (FALSE, FALSE, sizeof (LsMeshLink));
  g_array_append_vals (s.server.mesh_links, links, 1);
  g_autoptr (LsCluster) c = build (&s);
  if (LS_CHECK (c != NULL)) {
    check_route (c, 0, 1, "node0/gpu0>gpu1");
    check_route (c, 0, 2, "node0/gpu0>pcie0 node0/pcie0>cpu0 node0/cpu0>pcie1 node0/pcie1>gpu2");
  }
  g_array_unref (s.server.mesh_links);
}

/* --- servers --- */

static void
without_switches_all_hangs_on_the_cpus (void)
{
  LsClusterSpec s = tiny_pcie (2);
  s.server.pcie_switches = 0;
  g_autoptr (LsCluster) c = build (&s);
  if (!LS_CHECK (c != NULL))
    return;
  check_route (c, 0, 3, "node0/gpu0>cpu0 node0/cpu0>gpu3");
  check_route (c, 0, 4, "node0/gpu0>cpu0 node0/cpu0>cpu1 node0/cpu1>gpu4");
  check_route (
      c, 4, 8,
      "node0/gpu4>cpu1 node0/cpu1>nic1 node0/nic1>leaf0 leaf0>node1/nic0 node1/nic0>cpu0 node1/cpu0>gpu0");
  check_memory (c, 5, "node0/gpu5>cpu1 node0/cpu1>memory1", "node0/memory1>cpu1 node0/cpu1>gpu5");
}

/* 2 boards of 2 CPUs with 2 GPUs and 2 NICs each, as in an NVL72. */
static LsClusterSpec
rack (uint32_t n_nodes)
{
  LsClusterSpec s = tiny_dgx (n_nodes);
  s.server.pcie_switches = s.server.nvme_drives = 0;
  s.server.cpu_sockets = 4;
  s.server.cpu_boards = 2;
  s.server.c2c = tiny_link (225e9, 0.8, LS_US / 4);
  return s;
}

static void
boards_are_joined_by_nvlink_alone (void)
{
  LsClusterSpec s = rack (2);
  g_autoptr (LsCluster) c = build (&s);
  if (!LS_CHECK (c != NULL))
    return;
  LS_CHECK_NEAR (capacity_of (c, "node0/gpu3>cpu1"), 225e9 * 0.8, 1e-12);
  LS_CHECK_NEAR (capacity_of (c, "node0/cpu2>cpu3"), 64e9 * 0.8, 1e-12);
  for (guint i = 0; i < c->trunks->len; i++)
    LS_CHECK (strcmp (g_array_index (c->trunks, LsTrunk, i).name, "node0/cpu1>cpu2") != 0);
  check_route (c, 0, 7, "node0/gpu0>nvswitch node0/nvswitch>gpu7");
  check_memory (c, 5, "node0/gpu5>cpu2 node0/cpu2>memory2", "node0/memory2>cpu2 node0/cpu2>gpu5");

  /* A NIC of its board over the CPUs, one of the other over the GPU there. */
  LsRoute r;
  ls_route_ends (c, &(LsRouteEnds) { 0, 8, 2, 6, 0 }, &r);
  g_autofree char *text = describe (c, &r);
  LS_CHECK_STR (
      text,
      "node0/gpu0>cpu0 node0/cpu0>cpu1 node0/cpu1>nic2 node0/nic2>leaf2 leaf2>spines spines>leaf6 leaf6>node1/nic6 "
      "node1/nic6>cpu3 node1/cpu3>gpu6 node1/gpu6>nvswitch node1/nvswitch>gpu0");
}

/* --- lists --- */

static LsClusterSpec
small_list (uint32_t n_nodes)
{
  LsClusterSpec s = list_cluster (n_nodes);
  list_add (&s, LS_NODE_NIC, "hca-a");
  list_add (&s, LS_NODE_GPU, "g0");
  list_add (&s, LS_NODE_GPU, "g1");
  list_add (&s, LS_NODE_PCIE_SWITCH, "left");
  list_add (&s, LS_NODE_PCIE_SWITCH, "right");
  list_add (&s, LS_NODE_CPU, "socket");
  list_add (&s, LS_NODE_GPU, "g2");
  list_add (&s, LS_NODE_NIC, "hca-b");
  list_join (&s, "g0", "left", 1, 30e9);
  list_join (&s, "g0", "right", 1, 10e9);
  list_join (&s, "left", "socket", 1, 30e9);
  list_join (&s, "socket", "right", 1, 30e9);
  list_join (&s, "g1", "left", 1, 30e9);
  list_join (&s, "g1", "right", 1, 30e9);
  list_join (&s, "right", "g2", 1, 30e9);
  list_join (&s, "left", "hca-a", 1, 25e9);
  list_join (&s, "left", "hca-b", 1, 25e9);
  return s;
}

static void
equal_ways_share_by_capacity (void)
{
  LsClusterSpec s = small_list (2);
  g_autoptr (LsCluster) c = build (&s);
  if (LS_CHECK (c != NULL)) {
    LS_CHECK_INT (c->spec.gpus_per_node, ==, 3);
    check_route (c, 0, 1,
                 "node0/g0>left:0.750 node0/g0>right:0.250 node0/left>g1:0.750 node0/right>g1:0.250");
    check_route (c, 1, 0,
                 "node0/g1>left:0.500 node0/g1>right:0.500 node0/left>g0:0.500 node0/right>g0:0.500");
    check_route (c, 5, 4, "node1/g2>right node1/right>g1");
    check_route (
        c, 0, 5,
        "node0/g0>left node0/left>hca-a node0/nic0>leaf0 leaf0>node1/nic0 node1/hca-a>left node1/left>socket "
        "node1/socket>right node1/right>g2");
    /* g0 takes the first of two equally near, g1 the other, g2 the first again. */
    LS_CHECK_INT (ls_nic_of_gpu (c, 0), ==, 0);
    LS_CHECK_INT (ls_nic_of_gpu (c, 1), ==, 1);
    LS_CHECK_INT (ls_nic_of_gpu (c, 2), ==, 0);
    check_memory (
        c, 0, "node0/g0>left:0.750 node0/g0>right:0.250 node0/left>socket:0.750 node0/right>socket:0.250",
        "node0/socket>left:0.500 node0/socket>right:0.500 node0/left>g0:0.500 node0/right>g0:0.500");
  }
  ls_cluster_spec_clear (&s);
}

static void
a_list_equals_the_server_that_it_describes (void)
{
  LsClusterSpec server = tiny_pcie (1), list = list_cluster (1);
  server.gpus_per_node = 4;
  server.server.nvme_drives = server.nics.n = 0;
  server.server.pcie_switches = 2;
  for (int i = 0; i < 4; i++) {
    g_autofree char *gpu = g_strdup_printf ("gpu%d", i);
    list_add (&list, LS_NODE_GPU, gpu);
    list_join (&list, gpu, i < 2 ? "pcie0" : "pcie1", 1, 31.5e9 * 0.8);
  }
  list_add (&list, LS_NODE_PCIE_SWITCH, "pcie0");
  list_add (&list, LS_NODE_PCIE_SWITCH, "pcie1");
  for (int i = 0; i < 2; i++) {
    list_add (&list, LS_NODE_CPU, i == 0 ? "cpu0" : "cpu1");
    list_add (&list, LS_NODE_CPU_MEMORY, i == 0 ? "memory0" : "memory1");
    list_join (&list, i == 0 ? "pcie0" : "pcie1", i == 0 ? "cpu0" : "cpu1", 1, 31.5e9 * 0.8);
    list_join (&list, i == 0 ? "cpu0" : "cpu1", i == 0 ? "memory0" : "memory1", 1, 160e9);
  }
  list_join (&list, "cpu0", "cpu1", 1, 64e9 * 0.8);
  g_autoptr (LsCluster) a = build (&server), b = build (&list);
  for (uint32_t from = 0; a && b && from < 4; from++)
    for (uint32_t to = 0; to < 4; to++) {
      LsRoute x, y;
      ls_route (a, from, to, 0, &x);
      ls_route (b, from, to, 0, &y);
      g_autofree char *expected = describe (a, &x), *got = describe (b, &y);
      LS_CHECK_STR (got, expected);
      LS_CHECK_INT (x.latency, ==, y.latency);
    }
  ls_cluster_spec_clear (&list);
}

/* --- refusals --- */

static void
refuse (LsClusterSpec *s, const char *part)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (LsCluster) c = ls_cluster_build (s, &error);
  LS_CHECK (c == NULL);
  if (!g_error_matches (error, LS_ERROR, LS_ERROR_CONFLICT) || !strstr (error->message, part))
    ls_check_impl (false, __FILE__, __LINE__, "expected \"%s\", got \"%s\"", part,
                   error ? error->message : "no error");
  ls_cluster_spec_clear (s);
}

static void
refuse_mesh (const LsMeshLink *link, guint n, const char *part)
{
  LsClusterSpec s = tiny_pcie (1);
  s.server.mesh = LS_MESH_LIST;
  s.server.mesh_links = g_array_new (FALSE, FALSE, sizeof (LsMeshLink));
  g_array_append_vals (s.server.mesh_links, link, n);
  refuse (&s, part);
}

static void
meshes_that_cannot_be_are_refused (void)
{
  static const LsMeshLink outside = { 0, 8, 1 }, itself = { 3, 3, 1 }, none = { 1, 2, 0 },
                          twice[] = { { 1, 2, 1 }, { 2, 1, 2 } };
  refuse_mesh (&outside, 1, "GPU 8 of a node of 8 GPUs");
  refuse_mesh (&itself, 1, "GPU 3 is joined to itself");
  refuse_mesh (&none, 1, "joined by 0 links");
  refuse_mesh (twice, 2, "GPUs 1 and 2 are joined twice");
  LsClusterSpec s = hybrid_cube ();
  s.server.nvswitch_planes = 1;
  refuse (&s, "by NVSwitch or in a mesh, not both");
  s = hybrid_cube ();
  s.gpus_per_node = 4;
  refuse (&s, "a hybrid cube mesh has 8 GPUs; got 4");
  s = tiny_pcie (1);
  s.server.pcie_switches = s.server.cpu_sockets = s.nics.n = s.server.nvme_drives = 0;
  s.server.mesh = LS_MESH_LIST;
  refuse (&s, "GPUs 0 and 1 have no NVLink and no common neighbour, and there is no PCIe");
}

static void
servers_that_cannot_be_are_refused (void)
{
  LsClusterSpec s = rack (1);
  s.server.cpu_boards = 3;
  refuse (&s, "4 CPU sockets do not deal out to 3 boards");
  s = rack (1);
  s.server.nvswitch_planes = 0;
  refuse (&s, "nothing joins the 2 boards");
  s = rack (1);
  s.server.pcie_switches = 4;
  refuse (&s, "expected 0 PCIe switches; got 4");
  s = rack (1);
  s.server.c2c.efficiency = 2;
  refuse (&s, "c2c link");
  s = tiny_pcie (1);
  s.server.pcie_switches = 0;
  s.server.cpu_sockets = 3;
  refuse (&s, "8 GPUs per node do not deal out to 3 CPU sockets");
}

static void
lists_that_cannot_be_are_refused (void)
{
  LsClusterSpec s = small_list (1);
  list_add (&s, LS_NODE_CPU, "left");
  refuse (&s, "two vertices are named \"left\"");
  s = small_list (1);
  list_join (&s, "g0", "nowhere", 1, 1e9);
  refuse (&s, "link 9 names \"nowhere\", which is no vertex");
  s = small_list (1);
  list_join (&s, "left", "g0", 1, 1e9);
  refuse (&s, "\"left\" and \"g0\" are joined twice");
  s = small_list (1);
  list_join (&s, "left", "left", 1, 1e9);
  refuse (&s, "joins \"left\" to itself");
  s = small_list (1);
  list_join (&s, "left", "right", 0, 1e9);
  refuse (&s, "joined by 0 links");
  s = small_list (1);
  list_join (&s, "left", "right", 1, 0);
  refuse (&s, "link of \"left\" and \"right\": expected a bandwidth");
  s = small_list (1);
  list_add (&s, LS_NODE_GPU, "alone");
  refuse (&s, "no way from \"g0\" to \"alone\"");
  s = small_list (1);
  list_add (&s, LS_NODE_LEAF, "leaf");
  refuse (&s, "\"leaf\" is of a kind that belongs to the fabric");
  s = small_list (1);
  s.gpus_per_node = 4;
  refuse (&s, "3 GPUs; the node says 4");
  s = list_cluster (1);
  s.gpus_per_node = 1;
  refuse (&s, "0 GPUs; the node says 1");
}

/* More equal ways than a route holds are refused when the cluster is built. */
static void
ways_spread_too_far_are_refused (void)
{
  LsClusterSpec s = list_cluster (1);
  list_add (&s, LS_NODE_GPU, "a");
  list_add (&s, LS_NODE_GPU, "b");
  for (int i = 0; i < LS_ROUTE_MAX_INTERIOR / 2; i++) {
    g_autofree char *name = g_strdup_printf ("plane%d", i);
    list_add (&s, LS_NODE_NVSWITCH, name);
    list_join (&s, "a", name, 1, 25e9);
    list_join (&s, name, "b", 1, 25e9);
  }
  refuse (&s, "equal ways from \"a\" to \"b\" take 256 links");
}

static void
listed_links_between_gpus_are_nvlinks (void)
{
  LsClusterSpec s = list_dgx (1);
  guint n_nvlinks = 0;
  for (guint i = 0; i < s.list.links->len; i++) {
    const LsListLink *link = &g_array_index (s.list.links, LsListLink, i);
    bool is_nvlink = g_str_has_prefix (link->to, "nvs");
    LS_CHECK_INT (ls_cluster_spec_is_nvlink (&s, link), ==, is_nvlink);
    n_nvlinks += is_nvlink;
  }
  LS_CHECK_INT (n_nvlinks, ==, 8 * 4);
  ls_cluster_spec_clear (&s);
}

/* Each of the eight has seven links, one to each other. */
static void
a_full_mesh_joins_all_to_all (void)
{
  LsClusterSpec s = hybrid_cube ();
  s.server.mesh = LS_MESH_FULL;
  g_autoptr (LsCluster) c = build (&s);
  for (uint32_t a = 0; c && a < 8; a++)
    for (uint32_t b = 0; b < 8; b++)
      LS_CHECK_INT (a == b ? 0 : ls_gpu_links (c, a, b), ==, a != b);
}

/* Down to the memory of the sender's socket and up again, over the other socket where that is. */
static void
without_p2p_data_pass_the_cpu (void)
{
  LsClusterSpec s = tiny_dgx (1);
  s.server.nvswitch_planes = 0;
  s.server.copies = LS_COPIES_NOWHERE;
  g_autoptr (LsCluster) c = build (&s);
  if (!c)
    return;
  check_route (c, 0, 1,
               "node0/gpu0>pcie0 node0/pcie0>cpu0 node0/cpu0>memory0 node0/memory0>cpu0 node0/cpu0>pcie0 "
               "node0/pcie0>gpu1");
  check_route (c, 0, 7,
               "node0/gpu0>pcie0 node0/pcie0>cpu0 node0/cpu0>memory0 node0/memory0>cpu0 node0/cpu0>cpu1 "
               "node0/cpu1>pcie3 node0/pcie3>gpu7");
  s.server.pcie_switches = 1;
  s.server.cpu_sockets = 0;
  g_autoptr (GError) error = NULL;
  LS_CHECK (!ls_cluster_build (&s, &error));
  LS_CHECK (error && strstr (error->message, "without P2P") != NULL);
}

/* As NCCL has it: below one switch from GPU to GPU, else staged, also where there are no switches. */
static void
beyond_a_switch_data_pass_the_cpu (void)
{
  LsClusterSpec s = tiny_dgx (1);
  s.server.nvswitch_planes = 0;
  s.server.copies = LS_COPIES_BELOW_SWITCH;
  g_autoptr (LsCluster) c = build (&s);
  if (!c)
    return;
  check_route (c, 0, 1, "node0/gpu0>pcie0 node0/pcie0>gpu1");
  check_route (c, 1, 2,
               "node0/gpu1>pcie0 node0/pcie0>cpu0 node0/cpu0>memory0 node0/memory0>cpu0 node0/cpu0>pcie1 "
               "node0/pcie1>gpu2");
  LS_CHECK (ls_gpus_copy (&s, 6, 7) && !ls_gpus_copy (&s, 0, 7));
  s.server.pcie_switches = 0;
  LS_CHECK (!ls_gpus_copy (&s, 0, 1));
}

/* Over bridges of their own, by the rates that are said; below one switch as before. Without switches each GPU
 * has its own way to the bridge. */
static void
writes_pass_bridges (void)
{
  LsClusterSpec s = tiny_dgx (1);
  s.server.nvswitch_planes = 0;
  s.server.write_bridge = (LsLinkSpec) { .bandwidth_bytes_per_s = 5e9, .efficiency = 1 };
  g_autoptr (GError) error = NULL;
  LS_CHECK (!ls_cluster_build (&s, &error)); /* two sockets, and no rate between them */
  LS_CHECK (error && strstr (error->message, "p2p_writes sockets") != NULL);
  s.server.write_sockets = (LsLinkSpec) { .bandwidth_bytes_per_s = 1e9, .efficiency = 1 };
  g_autoptr (LsCluster) c = build (&s);
  if (!c)
    return;
  check_route (c, 0, 1, "node0/gpu0>pcie0 node0/pcie0>gpu1");
  check_route (c, 1, 2, "node0/gpu1>pcie0 node0/pcie0>bridge0 node0/bridge0>pcie1 node0/pcie1>gpu2");
  check_route (c, 7, 0,
               "node0/gpu7>pcie3 node0/pcie3>bridge1 node0/bridge1>bridge0 node0/bridge0>pcie0 "
               "node0/pcie0>gpu0");
  s.server.pcie_switches = 0;
  g_autoptr (LsCluster) bare = build (&s);
  if (!bare)
    return;
  check_route (bare, 0, 1, "node0/gpu0>bridge0 node0/bridge0>gpu1");
  check_route (bare, 0, 7, "node0/gpu0>bridge0 node0/bridge0>bridge1 node0/bridge1>gpu7");
}

static void
writes_go_with_p2p (void)
{
  LsClusterSpec s = tiny_dgx (1);
  s.server.nvswitch_planes = 0;
  s.server.write_bridge = s.server.write_sockets
      = (LsLinkSpec) { .bandwidth_bytes_per_s = 5e9, .efficiency = 1 };
  s.server.copies = LS_COPIES_BELOW_SWITCH;
  g_autoptr (GError) error = NULL;
  LS_CHECK (!ls_cluster_build (&s, &error));
  LS_CHECK (error && strstr (error->message, "p2p_writes") != NULL);
}

LS_TEST_SUITE (LS_TEST (writes_pass_bridges), LS_TEST (writes_go_with_p2p),
               LS_TEST (a_full_mesh_joins_all_to_all), LS_TEST (without_p2p_data_pass_the_cpu),
               LS_TEST (beyond_a_switch_data_pass_the_cpu), LS_TEST (listed_links_between_gpus_are_nvlinks),
               LS_TEST (dgx_1_has_six_nvlinks_per_gpu),
               LS_TEST (far_gpus_of_a_mesh_go_over_common_neighbours),
               LS_TEST (mesh_gpus_without_a_way_use_pcie), LS_TEST (without_switches_all_hangs_on_the_cpus),
               LS_TEST (boards_are_joined_by_nvlink_alone), LS_TEST (equal_ways_share_by_capacity),
               LS_TEST (a_list_equals_the_server_that_it_describes),
               LS_TEST (meshes_that_cannot_be_are_refused), LS_TEST (servers_that_cannot_be_are_refused),
               LS_TEST (lists_that_cannot_be_are_refused), LS_TEST (ways_spread_too_far_are_refused))
