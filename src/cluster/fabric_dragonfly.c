/* cluster/fabric_dragonfly.c — dragonfly and dragonfly+ (dragonfly.h) whose switches take detours: with
 * adaptive routing, or always (valiant).
 *
 * What joins its members each to each is a star: each has one trunk out and one in, of as many links as its
 * traffic has ways (all_to_all.h). So a dragonfly is a tree of trunks (tree.h), whose ways do not depend on
 * which groups they join:
 *
 *     dragonfly    leaf > locals of each switch, then group > globals of each group
 *     dragonfly+   leaf > spines as in a leaf-spine, then group > globals
 *
 * A flow between groups crosses both on its way out, and both on its way in. Latencies are those of a direct
 * way, with valiant of a detour; each arm of a star has half of what the star's links take. Of a dragonfly a
 * way between groups crosses a link of each, one more than a way within: half of that is at either group's
 * arm, too.
 *
 * Worked example. 2 groups of 4 switches, each with 2 nodes of one NIC of 25 GB/s; one link of 25 GB/s
 * between any two switches of a group and any two groups, of 8 groups in all. With 3 links to others, all
 * busy, a switch has 1 + 2 / 2 = 2 for what leaves it: 50 GB/s, as much as its NICs. A group has 7 links to
 * others, and with two of 8 groups busy all 7: 175 GB/s for the 200 GB/s of its NICs. With valiant it is 1
 * and 6.
 *
 * A fault of a trunk names links of a group or a switch: one that failed between two groups is missing in
 * both. */
#include "cluster/fabric.h"

#include <math.h>

#include "cluster/all_to_all.h"
#include "cluster/spec.h"
#include "cluster/tree.h"

/* ---- dragonfly ---- */

/* Over which a flow splits with minimal routing: three trunks each (route.h). */
#define MAX_GATEWAYS 60

uint32_t
ls_dragonfly_leaves (const LsClusterSpec *s)
{
  return s->nics.n == 0 ? 0 : s->network.nodes_per_group / s->network.nodes_per_leaf * s->network.rails;
}

uint32_t
ls_dragonfly_spines (const LsClusterSpec *s)
{
  return ls_dragonfly_has_spines (s) ? (uint32_t) round (ls_tree_leaf_uplinks (s)) : 0;
}

uint32_t
ls_dragonfly_n_groups (const LsClusterSpec *s)
{
  return s->nics.n == 0
      ? 0
      : (uint32_t) (((uint64_t) s->n_nodes + s->network.nodes_per_group - 1) / s->network.nodes_per_group);
}

static uint32_t
ls_dragonfly_global_links (const LsClusterSpec *s)
{
  return (s->network.groups - 1) * s->network.global_links;
}

static gboolean
check_routing (const LsClusterSpec *s, GError **error)
{
  if (s->network.routing != LS_ROUTING_ECMP && s->network.routing != LS_ROUTING_SPRAY)
    return TRUE;
  return ls_spec_conflict (error,
                           "routing \"%s\" has no meaning in a dragonfly, whose ways are of unequal length; "
                           "expected adaptive, minimal or valiant",
                           s->network.routing == LS_ROUTING_ECMP ? "ecmp" : "spray");
}

static gboolean
check_groups (const LsClusterSpec *s, GError **error)
{
  if (s->network.nodes_per_group == 0 || s->network.nodes_per_group % s->network.nodes_per_leaf != 0)
    return ls_spec_conflict (error, "%u nodes per group do not deal out to leaves of %u nodes",
                             s->network.nodes_per_group, s->network.nodes_per_leaf);
  uint64_t leaves = (uint64_t) s->network.nodes_per_group / s->network.nodes_per_leaf * s->network.rails;
  if (leaves > LS_CLUSTER_MAX_FABRIC)
    return ls_spec_conflict (
        error, "%u nodes per group, %u on a leaf, need %" G_GUINT64_FORMAT " leaves; expected at most %u",
        s->network.nodes_per_group, s->network.nodes_per_leaf, (guint64) leaves, LS_CLUSTER_MAX_FABRIC);
  if (ls_dragonfly_n_groups (s) > s->network.groups)
    return ls_spec_conflict (error, "%u nodes fill %u groups of %u nodes; the machine has %u (\"groups\")",
                             s->n_nodes, ls_dragonfly_n_groups (s), s->network.nodes_per_group,
                             s->network.groups);
  return TRUE;
}

static gboolean
check_local (const LsClusterSpec *s, GError **error)
{
  if (ls_dragonfly_has_spines (s))
    return ls_tree_check_uplinks (s, error);
  uint32_t leaves = ls_dragonfly_leaves (s);
  if (leaves == 1 && s->network.groups > 1)
    return ls_spec_conflict (error,
                             "a group of %u nodes is one switch: expected two or more in a group; "
                             "switches that are joined each to each are one group",
                             s->network.nodes_per_group);
  if (leaves > 1 && (s->network.local_links == 0 || s->network.local_links > LS_CLUSTER_MAX_FABRIC / leaves))
    return ls_spec_conflict (error,
                             "%u links between any two of the %u switches of a group: expected 1 to %u",
                             s->network.local_links, leaves, LS_CLUSTER_MAX_FABRIC / leaves);
  return TRUE;
}

static gboolean
check_global (const LsClusterSpec *s, GError **error)
{
  if (s->network.groups < 2)
    return TRUE;
  if (!ls_spec_check_link ("fabric global_link", TRUE, &s->network.core, error))
    return FALSE;
  if (s->network.global_links == 0 || s->network.global_links > LS_CLUSTER_MAX_FABRIC / s->network.groups)
    return ls_spec_conflict (
        error, "%u links between any two of %u groups (\"global_links\"): expected 1 to %u",
        s->network.global_links, s->network.groups, LS_CLUSTER_MAX_FABRIC / s->network.groups);
  uint32_t gateways
      = ls_dragonfly_has_spines (s) ? 0 : MIN (ls_dragonfly_leaves (s), s->network.global_links);
  if (s->network.routing == LS_ROUTING_MINIMAL && gateways > MAX_GATEWAYS)
    return ls_spec_conflict (
        error,
        "%u links between two groups begin at %u switches; with minimal routing expected "
        "at most %d",
        s->network.global_links, gateways, MAX_GATEWAYS);
  return TRUE;
}

gboolean
ls_dragonfly_check (const LsClusterSpec *s, GError **error)
{
  if (s->nics.n == 0)
    return s->n_nodes == 1 || ls_spec_conflict (error, "%u nodes need NICs between them", s->n_nodes);
  return ls_tree_check_leaves (s, error) && check_routing (s, error) && check_groups (s, error)
      && check_local (s, error) && check_global (s, error);
}

/* Vertices of a group that join its leaves: spines, or one for links from each to each. */
static uint32_t
n_hubs (const LsClusterSpec *s)
{
  return ls_tree_n_leaves (s) < 2 ? 0 : ls_dragonfly_has_spines (s) ? ls_dragonfly_spines (s) : 1;
}

static double
n_links (const LsClusterSpec *s)
{
  return 2
      * ((double) s->n_nodes * s->nics.n + (double) ls_tree_n_leaves (s) * n_hubs (s)
         + (double) ls_dragonfly_n_groups (s) * n_hubs (s));
}

/* Half of a link, or of the two of a detour. */
static LsTime
latency_of_arm (const LsClusterSpec *s, const LsLinkSpec *link)
{
  return s->network.routing == LS_ROUTING_VALIANT ? link->latency : link->latency / 2;
}

static LsFabric *
dragonfly_new (const LsClusterSpec *s)
{
  LsTree *f = g_new0 (LsTree, 1);
  bool has_spines = ls_dragonfly_has_spines (s);
  f->spec = s;
  f->n_leaves = (uint32_t) ls_tree_n_leaves (s);
  f->n_pods = ls_dragonfly_n_groups (s);
  f->leaves_per_pod = ls_dragonfly_leaves (s);
  f->spines_per_pod = n_hubs (s);
  f->uplinks = f->n_pods > 1 ? 1 : 0;
  f->leaf_latency = has_spines ? s->network.spine.latency : latency_of_arm (s, &s->network.spine);
  f->core_latency = latency_of_arm (s, &s->network.core) + (has_spines ? 0 : s->network.spine.latency / 2);
  f->pod = "group";
  f->spines = has_spines ? "spines" : "locals";
  f->cores = "globals";
  ls_tree_number (f);
  f->base.n_vertices = f->n_leaves + f->n_pods * f->spines_per_pod + f->uplinks;
  return &f->base;
}

/* The last pair of trunks is an arm of a star that joins n members, n_busy of them with traffic. */
static void
make_arm (const LsTree *f, LsCluster *c, uint32_t n, uint32_t n_busy, uint32_t n_links_each, LsTime latency)
{
  double links = ls_all_to_all_links (f->spec->network.routing, n, n_busy, n_links_each);
  ls_layout_limit (c, links / ((double) (n - 1) * n_links_each), latency);
}

static void
add_leaf (const LsTree *f, LsCluster *c, uint32_t leaf)
{
  const LsClusterSpec *s = &c->spec;
  LsEnd end = LS_TREE_LEAF (f->base.first_vertex + leaf, leaf);
  LsEnd hub
      = LS_TREE_SPINES (f, f->base.first_vertex + f->n_leaves + leaf / f->leaves_per_pod * f->spines_per_pod);
  if (ls_dragonfly_has_spines (s)) {
    ls_layout_pair (c, end, hub, f->spines_per_pod, f->spines_per_pod, &s->network.spine);
    return;
  }
  uint32_t n = f->leaves_per_pod;
  ls_layout_pair (c, end, hub, 1, (n - 1) * s->network.local_links, &s->network.spine);
  make_arm (f, c, n, MIN (n, f->n_leaves), s->network.local_links, f->leaf_latency);
}

static void
add_group (const LsTree *f, LsCluster *c, uint32_t group)
{
  const LsClusterSpec *s = &c->spec;
  uint32_t n = f->spines_per_pod, v_hub = f->base.first_vertex + f->n_leaves,
           v_globals = v_hub + f->n_pods * n, links = ls_dragonfly_global_links (s);
  ls_layout_trunks (c, LS_TREE_POD (f, group), LS_TREE_CORES (f), &s->network.core);
  for (uint32_t i = 0; i < n && i < links; i++)
    ls_layout_links (c, v_hub + group * n + i, v_globals, links / n + (i < links % n), &s->network.core);
  make_arm (f, c, s->network.groups, f->n_pods, s->network.global_links, f->core_latency);
}

static void
lay_out (const LsFabric *fabric, LsCluster *c)
{
  const LsTree *f = (const LsTree *) fabric;
  ls_layout_vertices (c, LS_NODE_LEAF, LS_NO_NUMBER, f->n_leaves);
  ls_layout_vertices (c, ls_dragonfly_has_spines (f->spec) ? LS_NODE_SPINE : LS_NODE_LOCALS, LS_NO_NUMBER,
                      f->n_pods * f->spines_per_pod);
  ls_layout_vertices (c, LS_NODE_GLOBALS, LS_NO_NUMBER, f->uplinks);
  ls_tree_lay_out_trunks (f, c, add_leaf, add_group);
}

const LsFabricKind ls_fabric_dragonfly
    = LS_TREE_KIND ("dragonfly", ls_dragonfly_check, n_links, dragonfly_new, lay_out),
    ls_fabric_dragonfly_plus
    = LS_TREE_KIND ("dragonfly+", ls_dragonfly_check, n_links, dragonfly_new, lay_out);

/* ---- all to all ---- */

double
ls_all_to_all_links (LsRouting routing, uint32_t n, uint32_t n_busy, uint32_t n_links)
{
  g_assert (n > 1 && n_busy > 0 && n_busy <= n);
  if (routing == LS_ROUTING_MINIMAL || n == 2)
    return n_links;
  double between = n - 2.0, weight = 1 + (n_busy > 2 ? (n_busy - 2) / between : 0);
  return n_links * (between / weight + (routing == LS_ROUTING_VALIANT ? 0 : 1));
}
