/* Pins hashed routing: each flow on one of the shortest ways, all of them used evenly in
 * the long run, collisions as balls into bins, and the same for the same seed. */
#include "tiny_cluster.h"
#include "ls_test.h"
#include "route_agreement.h"

#include <string.h>

#include "cluster/index.h"

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
  s.routing = LS_ROUTING_ECMP;
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
  s.routing = LS_ROUTING_ECMP;
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
  small.nodes_per_leaf = 2;
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
  s.nics = 1;
  s.pcie_switches = 1;
  s.cpu_sockets = 1;
  s.nvme_drives = 0;
  s.nodes_per_leaf = k;
  s.routing = LS_ROUTING_ECMP;
  double sum = 0;
  g_autofree LsRouteEnds *flows = g_new0 (LsRouteEnds, k * channels);
  for (uint32_t i = 0; i < k * channels; i++)
    flows[i] = (LsRouteEnds) { .gpu_from = i % k * 8,
                               .gpu_to = (k + i % k) * 8,
                               .nic_from = LS_NIC_AUTO,
                               .nic_to = LS_NIC_AUTO,
                               .channel = i / k };
  for (s.seed = 0; s.seed < n_seeds; s.seed++) {
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
  s.routing = LS_ROUTING_ECMP;
  s.seed = seed;
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

LS_TEST_SUITE (LS_TEST (flows_take_shortest_ways), LS_TEST (collisions_are_those_of_balls_in_bins),
               LS_TEST (ideal_spreading_has_no_collisions), LS_TEST (the_seed_decides),
               LS_TEST (channels_use_all_links))
