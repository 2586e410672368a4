/* Pins what is said of a cluster, and the flows through graphs that it rests on. */
#include "ls_test.h"
#include "built_cluster.h"
#include "tiny_cluster.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/topology.h"

/* Pins what is said of a cluster: worked examples of bandwidths per level (nv-1, nvl72,
 * ft-1 to ft-3 of jax-ml/scaling-book gpus.md@1a55377), bisections against closed forms,
 * the collapsed tree, ways. */

/* A SuperPOD of DGX H100: 8 GPUs with 18 x 25 GB/s, 8 NICs of 50 GB/s on 8 rails, 32
 * nodes a unit. */
static LsClusterSpec
superpod (uint32_t n_nodes)
{
  LsClusterSpec s = tiny_dgx (n_nodes);
  s.server.nvswitch_planes = 4;
  s.server.nvlinks_per_gpu = 18;
  s.server.nvlink = tiny_link (25e9, 0.8, LS_US);
  s.nics.port = tiny_link (50e9, 0.97, LS_US);
  s.network.spine = s.nics.port;
  s.network.nodes_per_leaf = 32;
  return s;
}

static const LsTopoLevel *
level (const GArray *levels, guint i)
{
  return &g_array_index (levels, LsTopoLevel, i);
}

/* nv-1: 3.6 TB/s out of 8 GPUs; ft-3: 3.6, 12.8 and 51.2 TB/s; ft-1: 514, 413 and 17,100
 * GB/s, so that 413 limits. */
static void
a_superpod_has_three_levels (void)
{
  LsClusterSpec s = superpod (128);
  g_autoptr (LsCluster) c = build (&s);
  g_autoptr (GArray) levels = ls_topo_levels_new (c);
  if (!LS_CHECK_INT (levels->len, ==, 3))
    return;
  LS_CHECK_STR (level (levels, 0)->name, "node");
  LS_CHECK_STR (level (levels, 1)->name, "leaf");
  LS_CHECK_STR (level (levels, 2)->name, "spine");
  LS_CHECK_INT (level (levels, 0)->n_groups, ==, 128);
  LS_CHECK_INT (level (levels, 1)->n_groups, ==, 4);
  LS_CHECK_INT (level (levels, 1)->n_parts, ==, 32);
  LS_CHECK_INT (level (levels, 2)->n_parts, ==, 4);
  LS_CHECK_NEAR (level (levels, 0)->together.data_sheet / 128, 3.6e12, 1e-12);
  LS_CHECK_NEAR (level (levels, 1)->together.data_sheet / 4, 12.8e12, 1e-12);
  LS_CHECK_NEAR (level (levels, 2)->together.data_sheet, 51.2e12, 1e-12);
  LS_CHECK_NEAR (level (levels, 0)->all_gather.data_sheet, 514e9, 0.01);
  LS_CHECK_NEAR (level (levels, 1)->all_gather.data_sheet, 413e9, 0.01);
  LS_CHECK_NEAR (level (levels, 2)->all_gather.data_sheet, 17100e9, 0.01);
  LS_CHECK_NEAR (level (levels, 1)->each.data_sheet, 400e9, 1e-12);
  LS_CHECK_NEAR (level (levels, 1)->each.payload, 388e9, 1e-12);
}

/* ft-2: an all-gather over two nodes of it is bound inside the node, B / 514e9. */
static void
two_nodes_are_bound_inside (void)
{
  LsClusterSpec s = superpod (2);
  g_autoptr (LsCluster) c = build (&s);
  g_autoptr (GArray) levels = ls_topo_levels_new (c);
  if (!LS_CHECK_INT (levels->len, ==, 2))
    return;
  double inside = 1 / level (levels, 0)->all_gather.data_sheet,
         between = 1 / level (levels, 1)->all_gather.data_sheet;
  LS_CHECK_NEAR (fmax (inside, between), 1.94553e-12, 0.01);
  LS_CHECK_DOUBLE (inside, >, between);
}

/* nvl72: 72 NICs of 400 Gbit/s carry 3,600 GB/s out of a rack. */
static void
a_rack_sends_3600_GB_a_second (void)
{
  LsClusterSpec s = superpod (2);
  s.gpus_per_node = s.nics.n = 72;
  s.server.pcie_switches = s.server.cpu_sockets = 36;
  s.server.cpu_boards = 18;
  s.server.nvme_drives = 0;
  s.network.rails = 36;
  s.network.nodes_per_leaf = 16;
  g_autoptr (LsCluster) c = build (&s);
  g_autoptr (GArray) levels = ls_topo_levels_new (c);
  LS_CHECK_NEAR (level (levels, 1)->each.data_sheet, 3600e9, 1e-12);
}

/* --- bisections --- */

/* NVSwitch: what half of the GPUs can send. */
static void
half_of_an_nvswitch_node_sends_all_it_has (void)
{
  LsClusterSpec s = superpod (1);
  g_autoptr (LsCluster) c = build (&s);
  LsBandwidth b = ls_topo_node_bisection (c);
  LS_CHECK_NEAR (b.data_sheet, 4 * 450e9, 1e-12);
  LS_CHECK_NEAR (b.payload, 4 * 360e9, 1e-12);
  LS_CHECK (isnan (ls_topo_cluster_bisection (c).payload));
}

/* Six NVLinks of a DGX-1 join GPU 0-3 to 4-7 (interior_server.c). */
static void
the_hybrid_cube_is_cut_at_six_links (void)
{
  LsClusterSpec s = superpod (1);
  s.server.nvswitch_planes = 0;
  s.server.mesh = LS_MESH_HYBRID_CUBE;
  g_autoptr (LsCluster) c = build (&s);
  LS_CHECK_NEAR (ls_topo_node_bisection (c).data_sheet, 6 * 25e9, 1e-12);
}

/* Without NVLink between all, over everything: half of the GPUs at each socket. */
static void
a_pcie_node_is_cut_between_its_sockets (void)
{
  LsClusterSpec s = superpod (1);
  s.server.nvswitch_planes = s.server.nvlinks_per_gpu = 0;
  s.server.cpu_interconnect = tiny_link (20e9, 1, LS_US);
  g_autoptr (LsCluster) c = build (&s);
  LS_CHECK_NEAR (ls_topo_node_bisection (c).payload, 20e9, 1e-12);
}

/* A ring is cut twice, a line once, at the axis that is cheapest: chips of the others times
 * that. */
static void
tori_are_cut_across_their_longest_axis (void)
{
  static const struct {
    uint32_t x, y, z, cut;
    int wrap;
  } cases[] = {
    { 4, 4, 0, 4, LS_WRAP_NONE }, { 4, 4, 0, 8, LS_WRAP_ALL },  { 8, 4, 0, 4, LS_WRAP_NONE },
    { 4, 8, 0, 8, LS_WRAP_ALL },  { 4, 4, 4, 32, LS_WRAP_ALL }, { 4, 4, 8, 16, LS_WRAP_NONE },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    LsClusterSpec s = tiny_torus (1, cases[i].x, cases[i].y, cases[i].z, cases[i].wrap);
    g_autoptr (LsCluster) c = build (&s);
    LS_CHECK_NEAR (ls_topo_node_bisection (c).payload, cases[i].cut * 45e9, 1e-12);
  }
}

/* A leaf-spine between two halves of its nodes, by hand. A node sends w, the leaves of a
 * group of m nodes send U = m w / oversubscription up. The least cut leaves the spines on
 * one side, and so the leaves of each group: with the first half it cuts their nodes of the
 * second, with the second half those of the first; and U where the spines are on the other
 * side. */
static double
closed_form (const LsClusterSpec *s)
{
  double w = s->nics.n * s->nics.port.bandwidth_bytes_per_s * s->nics.port.efficiency;
  uint32_t m = s->network.nodes_per_leaf, n = s->n_nodes, h = n / 2;
  double least = INFINITY;
  for (int spines = 0; spines < 2; spines++) { /* 0: with the first half */
    double cut = 0;
    for (uint32_t first = 0; first < n; first += m) {
      uint32_t nodes = MIN (m, n - first), here = first >= h ? 0 : MIN (nodes, h - first),
               there = nodes - here;
      double up = n > m ? m * w / s->network.oversubscription : 0;
      double with_first = there * w + (spines == 1 ? up : 0), with_second = here * w + (spines == 0 ? up : 0);
      cut += fmin (with_first, with_second);
    }
    least = fmin (least, cut);
  }
  return least;
}

static void
clusters_are_cut_as_the_formula_says (void)
{
  for (uint32_t seed = 1; seed <= 60; seed++) {
    g_autoptr (GRand) rand = g_rand_new_with_seed (seed);
    LsClusterSpec s = tiny_dgx ((uint32_t) g_rand_int_range (rand, 2, 20));
    s.network.rails = 1u << g_rand_int_range (rand, 0, 4);
    s.network.nodes_per_leaf = (uint32_t) g_rand_int_range (rand, 1, 6) * 2;
    s.network.oversubscription = g_rand_boolean (rand) ? 1 : 2;
    s.nics.port = s.network.spine = tiny_link (25e9, 0.9, LS_US);
    s.server.pcie.bandwidth_bytes_per_s = 1e12; /* NICs are what limits a node */
    g_autoptr (LsCluster) c = build (&s);
    double flow = ls_topo_cluster_bisection (c).payload, formula = closed_form (&s);
    if (!ls_check_impl (
            fabs (flow - formula) <= 1e-9 * formula, __FILE__, __LINE__,
            "seed %u: %u nodes, %u a leaf, %u rails, oversubscription %g: %.17g, the formula says %.17g",
            seed, s.n_nodes, s.network.nodes_per_leaf, s.network.rails, s.network.oversubscription, flow,
            formula))
      return;
  }
}

/* --- tree, links, ways --- */

static const LsTopoPart *
child (const GPtrArray *parts, LsNodeKind kind)
{
  for (guint i = 0; i < parts->len; i++)
    if (((LsTopoPart *) parts->pdata[i])->kind == kind && !((LsTopoPart *) parts->pdata[i])->is_peers)
      return parts->pdata[i];
  ls_check_impl (false, __FILE__, __LINE__, "no %s", ls_topo_kind_name (kind));
  static const LsTopoPart none;
  return &none;
}

static void
what_is_alike_stands_once (void)
{
  LsClusterSpec s = superpod (4);
  g_autoptr (LsCluster) c = build (&s);
  g_autoptr (LsTopoMap) map = ls_topo_map_new (c);
  const LsTopoPart *cpu = child (map->node, LS_NODE_CPU);
  if (!LS_CHECK_INT (cpu->n, ==, 2))
    return;
  const LsTopoPart *pcie = child (cpu->children, LS_NODE_PCIE_SWITCH);
  LS_CHECK_INT (pcie->n, ==, 2);
  LS_CHECK_INT (child (cpu->children, LS_NODE_CPU_MEMORY)->n, ==, 1);
  LS_CHECK_INT (child (pcie->children, LS_NODE_GPU)->n, ==, 2);
  LS_CHECK_INT (child (pcie->children, LS_NODE_NIC)->n, ==, 2);
  LS_CHECK_INT (child (pcie->children, LS_NODE_NVME)->n, ==, 1);
  LS_CHECK_INT (child (map->node, LS_NODE_NVSWITCH)->n, ==, 4);
  LS_CHECK_INT (child (map->node, LS_NODE_NVSWITCH)->n_physical, ==, 18);
  LS_CHECK_INT (map->n_of_kind[LS_NODE_GPU], ==, 32);
  LS_CHECK_INT (map->n_of_kind[LS_NODE_NVSWITCH], ==, 16);
}

/* Every link of the cluster stands in one row, each direction counted half. */
static void
rows_hold_all_links (void)
{
  LsClusterSpec s = superpod (4);
  g_autoptr (LsCluster) c = build (&s);
  g_autoptr (LsTopoMap) map = ls_topo_map_new (c);
  uint64_t n_physical = 0, n_pairs = 0, is = 0;
  for (guint i = 0; i < c->links->len; i++)
    n_physical += g_array_index (c->links, LsLink, i).n_physical;
  for (guint i = 0; i < map->links->len; i++) {
    const LsTopoLinks *row = &g_array_index (map->links, LsTopoLinks, i);
    is += row->n_physical;
    n_pairs += row->n_pairs;
    if (!LS_CHECK (row->link != NULL))
      return;
    LS_CHECK_NEAR (row->capacity_bytes_per_s, row->link->bandwidth_bytes_per_s * row->link->efficiency,
                   1e-12);
  }
  LS_CHECK_INT (2 * is, ==, n_physical);
  LS_CHECK_INT (2 * n_pairs, ==, c->links->len);
}

static void
ways_know_their_narrowest_link (void)
{
  LsClusterSpec s = superpod (2);
  g_autoptr (LsCluster) c = build (&s);
  LsTopoPath *near = ls_topo_path_new (c, 0, 1), *far = ls_topo_path_new (c, 0, 8);
  LS_CHECK_INT (near->hops->len, ==, 2);
  LS_CHECK_NEAR (near->rate, 360e9, 1e-12);
  LS_CHECK_STR (g_array_index (near->hops, LsTopoHop, 1).trunk->name, "node0/nvswitch>gpu1");
  LS_CHECK_INT (near->latency, ==, 2 * LS_US);
  LS_CHECK_NEAR (far->rate, 0.8 * 31.5e9, 1e-12);
  LS_CHECK_STR (g_array_index (far->hops, LsTopoHop, far->narrowest).trunk->name, "node0/gpu0>pcie0");
  ls_topo_path_free (near);
  ls_topo_path_free (far);
}

/* st-naive: all 4 GiB through one NIC of 50 GB/s take 85.9 ms (stas00/ml-engineering
 * network/README.md@744d01e, as the wrong model that it is). */
static void
one_nic_takes_86_ms_for_4_GiB (void)
{
  LsClusterSpec s = superpod (4);
  s.nics.port = s.network.spine = tiny_link (50e9, 1, LS_US);
  s.server.pcie = tiny_link (63e9, 1, LS_US);
  g_autoptr (LsCluster) c = build (&s);
  LsTopoPath *path = ls_topo_path_new (c, 0, 24);
  LS_CHECK_NEAR ((double) (UINT64_C (4) << 30) / path->rate, 85.9e-3, 0.001);
  ls_topo_path_free (path);
}

/* Pins the flow through small graphs: by hand, and against the least cut of all that there
 * are, on random ones. */

#define MAX_VERTICES 8

static void
add (GArray *edges, uint32_t from, uint32_t to, int64_t capacity)
{
  LsFlowEdge edge = { from, to, capacity };
  g_array_append_val (edges, edge);
}

/* 0 > 1 > 3 and 0 > 2 > 3 with a bridge 1 > 2, which one unit takes:
 *
 *        3        2
 *     0 ---> 1 ------> 3         in all 5: 3 + 2 leave the source
 *      \     | 2      /
 *     2 \--> 2 ------/ 4
 */
static void
flows_take_all_ways (void)
{
  GArray *edges = g_array_new (FALSE, FALSE, sizeof (LsFlowEdge));
  add (edges, 0, 1, 3);
  add (edges, 0, 2, 2);
  add (edges, 1, 3, 2);
  add (edges, 1, 2, 2);
  add (edges, 2, 3, 4);
  LS_CHECK_INT (ls_max_flow (4, edges, (const int8_t[]) { -1, 0, 0, 1 }), ==, 5);
  LS_CHECK_INT (ls_max_flow (4, edges, (const int8_t[]) { 1, 0, 0, -1 }), ==, 0); /* one direction only */
  LS_CHECK_INT (ls_max_flow (4, edges, (const int8_t[]) { -1, -1, 1, 1 }), ==, 6);
  g_array_unref (edges);
}

/* The shortest way, 0 1 2 3, blocks both of two longer ones: they flow only if the second
 * of them sends back what the first has sent from 1 to 2. */
static void
flow_can_be_sent_back (void)
{
  static const uint32_t ways[][2]
      = { { 0, 1 }, { 1, 2 }, { 2, 3 }, { 0, 4 }, { 4, 5 }, { 5, 2 }, { 1, 6 }, { 6, 7 }, { 7, 3 } };
  GArray *edges = g_array_new (FALSE, FALSE, sizeof (LsFlowEdge));
  for (guint i = 0; i < G_N_ELEMENTS (ways); i++)
    add (edges, ways[i][0], ways[i][1], 1);
  LS_CHECK_INT (ls_max_flow (8, edges, (const int8_t[]) { -1, 0, 0, 1, 0, 0, 0, 0 }), ==, 2);
  g_array_unref (edges);
}

static void
no_edge_no_flow (void)
{
  GArray *edges = g_array_new (FALSE, FALSE, sizeof (LsFlowEdge));
  LS_CHECK_INT (ls_max_flow (2, edges, (const int8_t[]) { -1, 1 }), ==, 0);
  g_array_unref (edges);
}

/* The definition: over every way to deal the inner vertices to the two sides. */
static int64_t
least_cut (uint32_t n, const GArray *edges, const int8_t *side)
{
  int64_t least = INT64_MAX;
  for (uint32_t set = 0; set < 1u << n; set++) {
    bool is_legal = true;
    for (uint32_t v = 0; v < n; v++)
      is_legal = is_legal && (side[v] == 0 || (side[v] < 0) == ((set >> v & 1) != 0));
    int64_t cut = 0;
    for (guint i = 0; i < edges->len; i++) {
      const LsFlowEdge *e = &g_array_index (edges, LsFlowEdge, i);
      if (set >> e->from & 1 && !(set >> e->to & 1))
        cut += e->capacity;
    }
    if (is_legal && cut < least)
      least = cut;
  }
  return least;
}

static void
flow_is_the_least_cut (void)
{
  for (uint32_t seed = 1; seed <= ls_test_cases (300, 300); seed++) {
    g_autoptr (GRand) rand = g_rand_new_with_seed (seed);
    uint32_t n = (uint32_t) g_rand_int_range (rand, 2, MAX_VERTICES + 1);
    GArray *edges = g_array_new (FALSE, FALSE, sizeof (LsFlowEdge));
    for (int i = g_rand_int_range (rand, 0, 24); i > 0; i--)
      add (edges, (uint32_t) g_rand_int_range (rand, 0, (gint32) n),
           (uint32_t) g_rand_int_range (rand, 0, (gint32) n), g_rand_int_range (rand, 0, 10));
    int8_t side[MAX_VERTICES] = { -1, 1 };
    for (uint32_t v = 2; v < n; v++)
      side[v] = (int8_t) g_rand_int_range (rand, -1, 2);
    int64_t flow = ls_max_flow (n, edges, side), cut = least_cut (n, edges, side);
    g_array_unref (edges);
    if (!ls_check_impl (flow == cut, __FILE__, __LINE__,
                        "seed %u: %" G_GINT64_FORMAT " flow, the least cut is %" G_GINT64_FORMAT, seed, flow,
                        cut))
      return;
  }
}

/* Pins: a kind of vertex has a name of its own, by which it is listed and drawn. */
static void
each_kind_of_vertex_has_its_name (void)
{
  for (int kind = 0; kind < LS_N_NODE_KINDS; kind++)
    for (int other = -1; other < kind; other++)
      LS_CHECK (strcmp (ls_topo_kind_name ((LsNodeKind) kind),
                        other < 0 ? "switch" : ls_topo_kind_name ((LsNodeKind) other))
                != 0);
}

LS_TEST_SUITE (LS_TEST (each_kind_of_vertex_has_its_name), LS_TEST (a_superpod_has_three_levels),
               LS_TEST (two_nodes_are_bound_inside), LS_TEST (a_rack_sends_3600_GB_a_second),
               LS_TEST (half_of_an_nvswitch_node_sends_all_it_has),
               LS_TEST (the_hybrid_cube_is_cut_at_six_links),
               LS_TEST (a_pcie_node_is_cut_between_its_sockets),
               LS_TEST (tori_are_cut_across_their_longest_axis),
               LS_TEST (clusters_are_cut_as_the_formula_says), LS_TEST (what_is_alike_stands_once),
               LS_TEST (rows_hold_all_links), LS_TEST (ways_know_their_narrowest_link),
               LS_TEST (one_nic_takes_86_ms_for_4_GiB), LS_TEST (flows_take_all_ways),
               LS_TEST (flow_can_be_sent_back), LS_TEST (no_edge_no_flow), LS_TEST (flow_is_the_least_cut))
