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
#include "cluster/all_to_all.h"
#include "cluster/dragonfly.h"
#include "cluster/spec.h"
#include "cluster/tree.h"

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
      * ((double) s->n_nodes * s->nics + (double) ls_tree_n_leaves (s) * n_hubs (s)
         + (double) ls_dragonfly_n_groups (s) * n_hubs (s));
}

/* Half of a link, or of the two of a detour. */
static LsTime
latency_of_arm (const LsClusterSpec *s, const LsLinkSpec *link)
{
  return s->routing == LS_ROUTING_VALIANT ? link->latency : link->latency / 2;
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
  f->leaf_latency = has_spines ? s->spine.latency : latency_of_arm (s, &s->spine);
  f->core_latency = latency_of_arm (s, &s->core) + (has_spines ? 0 : s->spine.latency / 2);
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
  double links = ls_all_to_all_links (f->spec->routing, n, n_busy, n_links_each);
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
    ls_layout_pair (c, end, hub, f->spines_per_pod, f->spines_per_pod, &s->spine);
    return;
  }
  uint32_t n = f->leaves_per_pod;
  ls_layout_pair (c, end, hub, 1, (n - 1) * s->local_links, &s->spine);
  make_arm (f, c, n, MIN (n, f->n_leaves), s->local_links, f->leaf_latency);
}

static void
add_group (const LsTree *f, LsCluster *c, uint32_t group)
{
  const LsClusterSpec *s = &c->spec;
  uint32_t n = f->spines_per_pod, v_hub = f->base.first_vertex + f->n_leaves,
           v_globals = v_hub + f->n_pods * n, links = ls_dragonfly_global_links (s);
  ls_layout_trunks (c, LS_TREE_POD (f, group), LS_TREE_CORES (f), &s->core);
  for (uint32_t i = 0; i < n && i < links; i++)
    ls_layout_links (c, v_hub + group * n + i, v_globals, links / n + (i < links % n), &s->core);
  make_arm (f, c, s->groups, f->n_pods, s->global_links, f->core_latency);
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
