/* Pins routes: the one between two GPUs, and hashed ones over many. */
#include "ls_test.h"
#include "route_agreement.h"
#include "tiny_cluster.h"

#include <math.h>
#include <string.h>

#include "cluster/index.h"
#include "cluster/route.h"

/* Pins ls_route() against ls_route_bfs(), trunk by trunk, and a few routes by
 * name. */

static void
shape_and_search_agree_on_random_pairs (void)
{
  LsClusterSpec specs[] = { tiny_dgx (1),  tiny_dgx (3), tiny_dgx (45), tiny_pcie (1), tiny_pcie (3),
                            tiny_pcie (9), tiny_dgx (5), tiny_dgx (6),  tiny_dgx (8) };
  specs[6].server.nvswitch_planes = 4; /* 18 links on 4 planes: unequal shares */
  specs[6].server.nvlinks_per_gpu = 18;
  specs[7].nics.n = 4;
  specs[7].network.rails = 2;
  specs[7].network.nodes_per_leaf = 2;
  specs[7].network.oversubscription = 2;
  specs[8].gpus_per_node = 16;
  specs[8].server.pcie_switches = 8;
  specs[8].server.cpu_sockets = 4;
  specs[8].nics.n = 2; /* far NICs: the path goes through other sockets */
  specs[8].network.rails = 1;
  specs[8].network.nodes_per_leaf = 4;

  g_autoptr (GRand) rand = g_rand_new_with_seed (20240501);
  for (size_t i = 0; i < G_N_ELEMENTS (specs); i++)
    if (!agree_on_pairs (&specs[i], rand, 60))
      return;
}

/* Nodes 1 and 2 with other NVSwitches, slower NICs and other PCIe: more vertices and trunks in some nodes than
 * in others; then with 4 GPUs beside 8, and fewer NICs; with rails and PXN, hashed, and with faults in nodes of either kind. */
static void
nodes_of_several_kinds_agree_too (void)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (20261122);
  for (int i = 0; i < 6; i++) {
    LsClusterSpec spec = tiny_dgx (5), *other = g_new (LsClusterSpec, 1);
    spec.network.pxn = i % 3 == 0;
    spec.network.nodes_per_leaf = 2;
    *other = spec;
    other->server.nvswitch_planes = 4;
    other->server.nvlinks_per_gpu = 18;
    other->server.nvme_drives = 0;
    other->server.pcie_switches = 2;
    other->nics.port.latency = 2 * LS_US;
    other->nics.port.bandwidth_bytes_per_s /= 2;
    LsOtherNodes nodes = { .ranges = g_array_new (FALSE, FALSE, sizeof (LsNodeRange)), .spec = other };
    g_array_append_val (nodes.ranges, ((LsNodeRange) { 1, 2 }));
    spec.others = g_array_new (FALSE, FALSE, sizeof (LsOtherNodes));
    g_array_append_val (spec.others, nodes);
    if (i >= 3) { /* half the GPUs, and with 2 NICs no port on rails 2 to 7 */
      other->gpus_per_node = 4;
      other->nics.n = i == 4 ? 2 : 4;
    }
    if (i % 3 == 2) {
      add_fault (&spec, "node1/gpu1>nvswitch", 0);
      add_fault (&spec, "node4/nic3>leaf19", 0.5);
    }
    LS_CHECK (agree_on_pairs (&spec, rand, 120));
    ls_cluster_spec_clear (&spec);
  }
}

/* The same nodes without PCIe switches, with NVLink-C2C and boards, and in meshes. */
static void
odd_servers_agree_too (void)
{
  LsClusterSpec specs[] = { tiny_pcie (3), tiny_dgx (3), tiny_dgx (3), tiny_pcie (3), tiny_pcie (1) };
  specs[0].server.pcie_switches = 0; /* all at the two CPUs */
  specs[1].server.pcie_switches = 0; /* a rack of 4 boards with 2 CPUs and 4 GPUs each */
  specs[1].gpus_per_node = specs[1].nics.n = specs[1].network.rails = 16;
  specs[1].server.nvswitch_planes = specs[1].server.nvlinks_per_gpu = 18;
  specs[1].server.cpu_sockets = 8;
  specs[1].server.cpu_boards = 4;
  specs[1].server.c2c = tiny_link (225e9, 0.8, LS_US / 4);
  specs[1].server.nvme_drives = 0;
  specs[2].server.nvswitch_planes = 0;
  specs[2].server.mesh = LS_MESH_HYBRID_CUBE;
  static const LsMeshLink chain[] = { { 0, 1, 2 }, { 2, 1, 1 }, { 2, 3, 3 }, { 4, 5, 4 }, { 3, 0, 1 } };
  for (int i = 3; i < 5; i++) { /* a ring of four, a pair, and two on PCIe alone */
    specs[i].server.mesh = LS_MESH_LIST;
    specs[i].server.mesh_links = g_array_new (FALSE, FALSE, sizeof (LsMeshLink));
    g_array_append_vals (specs[i].server.mesh_links, chain, G_N_ELEMENTS (chain));
  }
  g_autoptr (GRand) rand = g_rand_new_with_seed (20240502);
  for (size_t i = 0; i < G_N_ELEMENTS (specs); i++)
    LS_CHECK (agree_on_pairs (&specs[i], rand, 120));
  g_array_unref (specs[3].server.mesh_links);
  g_array_unref (specs[4].server.mesh_links);
}

static char *
numbered (const char *kind, int i)
{
  static char names[8][16];
  static int next;
  char *name = names[next++ % 8];
  g_snprintf (name, sizeof names[0], "%s%d", kind, i);
  return name;
}

/* Everything hangs on a switch or CPU before it; NVSwitches, NVLinks between GPUs and
 * further links between switches at random. */
static LsClusterSpec
random_list (GRand *rand, uint32_t n_nodes)
{
  LsClusterSpec s = list_cluster (n_nodes);
  int n_cpus = g_rand_int_range (rand, 1, 3), n_switches = g_rand_int_range (rand, 0, 4),
      n_gpus = g_rand_int_range (rand, 1, 7);
  int n_nvswitches = g_rand_int_range (rand, 0, 3), n_nics = n_nodes > 1 ? g_rand_int_range (rand, 1, 4) : 0;
  for (int i = 0; i < n_cpus; i++)
    list_add (&s, LS_NODE_CPU, numbered ("cpu", i));
  for (int i = 1; i < n_cpus; i++)
    list_join (&s, "cpu0", numbered ("cpu", i), 1, 16e9);
  for (int i = 0; i < n_switches; i++) {
    list_add (&s, LS_NODE_PCIE_SWITCH, numbered ("sw", i));
    for (int up = 0; up < i; up++)
      if (g_rand_int_range (rand, 0, 3) == 0)
        list_join (&s, numbered ("sw", up), numbered ("sw", i), 1, 1e9 * g_rand_int_range (rand, 1, 5));
    list_join (&s, numbered ("cpu", g_rand_int_range (rand, 0, n_cpus)), numbered ("sw", i), 1, 31e9);
  }
  for (int i = 0; i < n_nvswitches; i++)
    list_add (&s, LS_NODE_NVSWITCH, numbered ("nvs", i));
  for (int i = 0; i < n_gpus; i++) {
    list_add (&s, LS_NODE_GPU, numbered ("gpu", i));
    int at = g_rand_int_range (rand, 0, n_cpus + n_switches);
    list_join (&s, numbered ("gpu", i), at < n_cpus ? numbered ("cpu", at) : numbered ("sw", at - n_cpus), 1,
               31e9);
    for (int k = 0; k < n_nvswitches && g_rand_int_range (rand, 0, 2); k++)
      list_join (&s, numbered ("nvs", k), numbered ("gpu", i), (uint32_t) g_rand_int_range (rand, 1, 6),
                 25e9);
    for (int k = 0; k < i; k++)
      if (g_rand_int_range (rand, 0, 3) == 0)
        list_join (&s, numbered ("gpu", i), numbered ("gpu", k), (uint32_t) g_rand_int_range (rand, 1, 4),
                   25e9);
  }
  for (int i = 0; i < n_nics; i++) {
    list_add (&s, LS_NODE_NIC, numbered ("nic", i));
    int at = g_rand_int_range (rand, 0, n_cpus + n_switches);
    list_join (&s, at < n_cpus ? numbered ("cpu", at) : numbered ("sw", at - n_cpus), numbered ("nic", i), 1,
               25e9);
  }
  return s;
}

static void
random_lists_agree_with_search (void)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (20240503);
  for (int k = 0; k < 60; k++) {
    LsClusterSpec s = random_list (rand, k % 3 + 1);
    bool ok = LS_CHECK (agree_on_pairs (&s, rand, 40));
    ls_cluster_spec_clear (&s);
    if (!ok)
      return;
  }
}

static void
check_route (const LsClusterSpec *spec, uint32_t from, uint32_t to, const char *expected)
{
  g_autoptr (LsCluster) c = build (spec);
  if (!LS_CHECK (c != NULL))
    return;
  LsRoute r;
  ls_route (c, from, to, 0, &r);
  g_autofree char *text = describe (c, &r);
  LS_CHECK_STR (text, expected);
}

static void
routes_read_as_expected (void)
{
  LsClusterSpec dgx = tiny_dgx (40), pcie = tiny_pcie (2);
  check_route (&dgx, 3, 3, "");
  check_route (&dgx, 0, 5, "node0/gpu0>nvswitch node0/nvswitch>gpu5");
  check_route (&dgx, 1, 9,
               "node0/gpu1>pcie0 node0/pcie0>nic1 node0/nic1>leaf1 leaf1>node1/nic1 node1/nic1>pcie0 "
               "node1/pcie0>gpu1");
  /* Another rail: over the spines. */
  check_route (&dgx, 0, 13,
               "node0/gpu0>pcie0 node0/pcie0>nic0 node0/nic0>leaf0 leaf0>spines spines>leaf5 "
               "leaf5>node1/nic5 node1/nic5>pcie2 node1/pcie2>gpu5");
  check_route (&pcie, 0, 1, "node0/gpu0>pcie0 node0/pcie0>gpu1");
  check_route (&pcie, 0, 2, "node0/gpu0>pcie0 node0/pcie0>cpu0 node0/cpu0>pcie1 node0/pcie1>gpu2");
  check_route (&pcie, 7, 0,
               "node0/gpu7>pcie3 node0/pcie3>cpu1 node0/cpu1>cpu0 node0/cpu0>pcie0 node0/pcie0>gpu0");
}

static void
nics_can_be_chosen (void)
{
  LsClusterSpec dgx = tiny_dgx (2);
  g_autoptr (LsCluster) c = build (&dgx);
  if (!LS_CHECK (c != NULL))
    return;
  LsRoute r;
  ls_route_ends (c, &(LsRouteEnds) { 0, 8, 6, 6, 0 }, &r);
  g_autofree char *text = describe (c, &r);
  LS_CHECK_STR (
      text,
      "node0/gpu0>pcie0 node0/pcie0>cpu0 node0/cpu0>cpu1 node0/cpu1>pcie3 node0/pcie3>nic6 node0/nic6>leaf6 "
      "leaf6>node1/nic6 node1/nic6>pcie3 node1/pcie3>cpu1 node1/cpu1>cpu0 node1/cpu0>pcie0 node1/pcie0>gpu0");
  for (uint32_t gpu = 0; gpu < c->n_gpus; gpu++)
    LS_CHECK_INT (ls_nic_of_gpu (c, gpu), ==, gpu % 8);
}

/* --- how a flow splits ------------------------------------------------------------------------------ */

/* Pins how a flow splits over ways of one length: in proportion to capacity, and its parts add up, also where
 * 2^-20 does not divide by the number of links. */

/* A GPU, a switch, a GPU; up to seven links, of these capacities, between the switch and the last. */
static void
check_split (const double *capacity, uint32_t n)
{
  static const LsNodeKind kinds[] = { LS_NODE_GPU, LS_NODE_NVSWITCH, LS_NODE_GPU };
  LsLink links[8] = { { .from = 0, .to = 1, .trunk = 0, .capacity_bytes_per_s = 100 } };
  double all = 0;
  for (uint32_t i = 0; i < n; i++) {
    links[1 + i] = (LsLink) { .from = 1, .to = 2, .trunk = 1 + i, .capacity_bytes_per_s = capacity[i] };
    all += capacity[i];
  }
  LsRoute route = { 0 };
  g_autoptr (LsArena) arena = ls_arena_new ();
  LsWays *ways = ls_ways_new (kinds, 3, links, 1 + n, (LsVertices) { 0, 1 }, (LsVertices) { 2, 1 }, arena);
  ls_ways_append (ways, 0, 0, &route);
  LS_CHECK_INT (ls_ways_length (ways, 0, 0), ==, 4);
  uint32_t sum = 0;
  if (LS_CHECK_INT (route.n_hops, ==, 1 + n))
    for (uint32_t i = 0; i < n; i++) {
      LS_CHECK_INT (route.hop[1 + i].trunk, ==, 1 + i);
      LS_CHECK (fabs (route.hop[1 + i].share - LS_HOP_WHOLE * capacity[i] / all) <= 1);
      sum += route.hop[1 + i].share;
    }
  LS_CHECK_INT (sum, ==, LS_HOP_WHOLE);
}

static void
parts_of_a_flow_add_up (void)
{
  static const double equal[] = { 50, 50, 50, 50, 50, 50, 50 }, unequal[] = { 50, 25, 12.5, 100, 3, 7, 11 };
  for (uint32_t n = 1; n <= 7; n++) {
    check_split (equal, n);
    check_split (unequal, n);
  }
}

/* Pins hashed routing: each flow on one of the shortest ways, all of them used evenly in
 * the long run, collisions as balls into bins, and the same for the same seed. */

static LsClusterSpec
hashed_list (void)
{
  LsClusterSpec s = listed_fabric (4, 1);
  add_switch (&s, "left");
  add_switch (&s, "right");
  add_switch (&s, "up");
  add_switch (&s, "over");
  join_switches (&s, "left", "up", 3);
  join_switches (&s, "left", "over", 1);
  join_switches (&s, "right", "up", 2);
  join_switches (&s, "over", "right", 4);
  place_nics (&s, 0, 0, 1, "left");
  place_nics (&s, 0, 2, 3, "right");
  s.network.routing = LS_ROUTING_ECMP;
  return s;
}

/* Every hop is on some shortest way by search, whole, and the latency is that of the hops. */
static void
check_flow (const LsCluster *c, uint32_t from, uint32_t to, uint32_t channel)
{
  g_autofree double *searched = g_new (double, c->trunks->len);
  LsRouteEnds ends = {
    .gpu_from = from, .gpu_to = to, .nic_from = LS_NIC_AUTO, .nic_to = LS_NIC_AUTO, .channel = channel
  };
  LsRoute r;
  ls_route_ends (c, &ends, &r);
  ls_route_bfs (c, from, to, searched);
  LsTime latency = 0;
  for (uint32_t i = 0; i < r.n_hops; i++) {
    LS_CHECK (searched[r.hop[i].trunk] > 0 && r.hop[i].share == LS_HOP_WHOLE);
    latency += g_array_index (c->trunks, LsTrunk, r.hop[i].trunk).latency;
  }
  LS_CHECK_INT (r.latency, ==, latency);
}

static void
check_flows (LsClusterSpec s)
{
  s.network.routing = LS_ROUTING_ECMP;
  g_autoptr (LsCluster) c = build (&s);
  g_autoptr (GRand) rand = g_rand_new_with_seed (8000);
  if (!LS_CHECK (c != NULL))
    return;
  ls_cluster_check (c);
  for (int k = 0; k < 20; k++)
    check_flow (c, (uint32_t) g_rand_int_range (rand, 0, (gint32) c->n_gpus),
                (uint32_t) g_rand_int_range (rand, 0, (gint32) c->n_gpus), (uint32_t) k);
  ls_cluster_spec_clear (&s);
}

static void
flows_take_shortest_ways (void)
{
  LsClusterSpec small = tiny_dgx (6);
  small.network.nodes_per_leaf = 2;
  check_flows (small);
  check_flows (tiny_fat_tree (20));
  check_flows (hashed_list ());
}

/* --- what hashing does to a leaf --- */

/* Flows on each physical uplink of a leaf (a switch with NICs: the leaf-th of the fabric) if
 * the given flows, one each, run at once: mean and busiest. Hashing shows in max / mean. */
typedef struct {
  uint32_t n_uplinks;
  double mean, max;
} UplinkLoad;

static bool
leaves_switch (const LsCluster *c, const LsLink *link, uint32_t v)
{
  return link->from == v && g_array_index (c->nodes, LsTopoNode, link->to).host == UINT32_MAX
      && !g_array_index (c->trunks, LsTrunk, link->trunk).is_failed;
}

static UplinkLoad
uplink_load (const LsCluster *c, const LsRouteEnds *flows, uint32_t n_flows, uint32_t leaf)
{
  g_autofree double *load = g_new0 (double, c->trunks->len);
  LsRoute r;
  for (uint32_t i = 0; i < n_flows; i++) {
    ls_route_ends (c, &flows[i], &r);
    for (uint32_t k = 0; k < r.n_hops; k++)
      load[r.hop[k].trunk] += (double) r.hop[k].share / LS_HOP_WHOLE;
  }
  UplinkLoad sum = { .n_uplinks = 0 };
  for (guint i = 0; i < c->links->len; i++) {
    const LsLink *link = &g_array_index (c->links, LsLink, i);
    if (!leaves_switch (c, link, c->index->fabric->first_vertex + leaf))
      continue;
    /* A trunk's load is spread over its links by their capacity. */
    double part
        = link->capacity_bytes_per_s / g_array_index (c->trunks, LsTrunk, link->trunk).capacity_bytes_per_s;
    double own = load[link->trunk] * part / link->n_physical;
    sum.n_uplinks += link->n_physical;
    sum.mean += own * link->n_physical;
    sum.max = MAX (sum.max, own);
  }
  sum.mean = sum.n_uplinks > 0 ? sum.mean / sum.n_uplinks : 0;
  return sum;
}

/* One flow of each node of a leaf of `k` nodes to a node below the other leaf: k uplinks. */
static double
mean_of_max (uint32_t k, uint32_t channels, uint32_t n_seeds)
{
  LsClusterSpec s = tiny_pcie (2 * k);
  s.nics.n = 1;
  s.server.pcie_switches = 1;
  s.server.cpu_sockets = 1;
  s.server.nvme_drives = 0;
  s.network.nodes_per_leaf = k;
  s.network.routing = LS_ROUTING_ECMP;
  double sum = 0;
  g_autofree LsRouteEnds *flows = g_new0 (LsRouteEnds, k * channels);
  for (uint32_t i = 0; i < k * channels; i++)
    flows[i] = (LsRouteEnds) { .gpu_from = i % k * 8,
                               .gpu_to = (k + i % k) * 8,
                               .nic_from = LS_NIC_AUTO,
                               .nic_to = LS_NIC_AUTO,
                               .channel = i / k };
  for (s.network.seed = 0; s.network.seed < n_seeds; s.network.seed++) {
    g_autoptr (LsCluster) c = build (&s);
    UplinkLoad load = uplink_load (c, flows, k * channels, 0);
    LS_CHECK_INT (load.n_uplinks, ==, k);
    LS_CHECK_NEAR (load.mean, channels, 1e-12);
    sum += load.max;
  }
  return sum / n_seeds;
}

/* Exact expectations of the fullest of m bins, from the coefficients of
 * (sum_{i <= t} x^i / i!)^m; the standard error over 400 seeds is below 0.05. */
static void
collisions_are_those_of_balls_in_bins (void)
{
  LS_CHECK_NEAR (mean_of_max (8, 1, 400), 2.59723, 0.05);
  LS_CHECK_NEAR (mean_of_max (8, 2, 400), 4.20142, 0.05);
  LS_CHECK_NEAR (mean_of_max (16, 1, 400), 3.07825, 0.05);
}

static void
ideal_spreading_has_no_collisions (void)
{
  LsClusterSpec s = tiny_dgx (40);
  g_autoptr (LsCluster) c = build (&s);
  LsRouteEnds flows[20];
  for (uint32_t i = 0; i < 20; i++)
    flows[i] = (LsRouteEnds) {
      .gpu_from = 8 * i, .gpu_to = 8 * (20 + i), .nic_from = LS_NIC_AUTO, .nic_to = LS_NIC_AUTO
    };
  UplinkLoad load = uplink_load (c, flows, 20, 0);
  LS_CHECK_INT (load.n_uplinks, ==, 20);
  LS_CHECK_NEAR (load.max, 1, 1e-6);
  LS_CHECK_NEAR (load.mean, 1, 1e-6);
}

/* All uplinks of a leaf as texts, flow by flow. */
static char *
choices (uint32_t seed)
{
  LsClusterSpec s = tiny_fat_tree (16);
  s.network.routing = LS_ROUTING_ECMP;
  s.network.seed = seed;
  g_autoptr (LsCluster) c = build (&s);
  GString *text = g_string_new (NULL);
  for (uint32_t channel = 0; c && channel < 8; channel++) {
    LsRouteEnds ends = {
      .gpu_from = 0, .gpu_to = 8 * 12, .nic_from = LS_NIC_AUTO, .nic_to = LS_NIC_AUTO, .channel = channel
    };
    LsRoute r;
    ls_route_ends (c, &ends, &r);
    g_autofree char *way = describe (c, &r);
    g_string_append_printf (text, "%s\n", way);
  }
  return g_string_free (text, FALSE);
}

static void
the_seed_decides (void)
{
  g_autofree char *a = choices (1), *b = choices (1), *other = choices (2);
  LS_CHECK_STR (a, b);
  LS_CHECK (strcmp (a, other) != 0);
}

/* Over many channels each of the links side by side gets its part: left has 3 links up and
 * 1 over, all equal to a hash. */
static void
channels_use_all_links (void)
{
  LsClusterSpec s = hashed_list ();
  g_autoptr (LsCluster) c = build (&s);
  uint32_t n_over = 0;
  for (uint32_t channel = 0; c && channel < 4000; channel++) {
    LsRouteEnds ends
        = { .gpu_from = 0, .gpu_to = 31, .nic_from = LS_NIC_AUTO, .nic_to = LS_NIC_AUTO, .channel = channel };
    LsRoute r;
    ls_route_ends (c, &ends, &r);
    g_autofree char *way = describe (c, &r);
    n_over += strstr (way, "left>over") != NULL;
  }
  LS_CHECK_NEAR (n_over, 1000, 0.1);
  LS_CHECK (trunk_capacity (c, "left>up/2") > 0 && trunk_capacity (c, "left>up/3") < 0
            && trunk_capacity (c, "left>over") > 0);
  ls_cluster_spec_clear (&s);
}

LS_TEST_SUITE (LS_TEST (shape_and_search_agree_on_random_pairs), LS_TEST (odd_servers_agree_too),
               LS_TEST (nodes_of_several_kinds_agree_too), LS_TEST (random_lists_agree_with_search),
               LS_TEST (routes_read_as_expected), LS_TEST (nics_can_be_chosen),
               LS_TEST (parts_of_a_flow_add_up), LS_TEST (flows_take_shortest_ways),
               LS_TEST (collisions_are_those_of_balls_in_bins), LS_TEST (ideal_spreading_has_no_collisions),
               LS_TEST (the_seed_decides), LS_TEST (channels_use_all_links))
