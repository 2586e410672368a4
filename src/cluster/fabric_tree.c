/* cluster/fabric_tree.c — trees of switches: leaf-spine (two tiers) and fat-tree (three).
 *
 * With rails > 1 NIC i of every node goes to a leaf of rail i mod rails. A leaf serves
 * nodes_per_leaf nodes of its rail and has one uplink to each spine of its pod. A spine has
 * one uplink to each core of its own group: spine i of every pod goes to group i. A
 * leaf-spine is one pod without cores. One leaf needs no spine, one pod no core. With W
 * for the bandwidth of one link by its data sheet:
 *
 *     spines of a pod    = NICs of a leaf * W nic / oversubscription / W link
 *     uplinks of a spine = leaves of a pod * W link / spine_oversubscription / W core_link
 *     cores              = spines of a pod * uplinks of a spine
 *
 * Worked example: 96 nodes of 8 NICs, all rates alike, 16 nodes a leaf, 8 rails, 32 nodes
 * a pod, oversubscription 1 and 2: 16 leaves and 16 spines in each of 3 pods, 8 uplinks a
 * spine, 128 cores; a pod takes in 256 links and sends 128 up.
 *
 * Ideal spreading (as adaptive routing does in the limit) loads the uplinks of a leaf
 * alike, and so those of all spines of a pod: each is one trunk. With hashing each link
 * is a trunk, and a leaf chooses the spine, the spine the core; the way down is given.
 *
 * Not modelled: limits of a switch other than its ports; pods of different sizes. */
#include <math.h>

#include "cluster/spec.h"
#include "cluster/tree.h"

static bool
has_cores (const LsClusterSpec *s)
{
  return s->fabric == LS_FABRIC_FAT_TREE;
}

/* Leaves of a full pod. */
static uint64_t
leaves_per_pod (const LsClusterSpec *s)
{
  if (ls_tree_n_leaves (s) == 0)
    return 0;
  return has_cores (s) ? (uint64_t) s->network.nodes_per_pod / s->network.nodes_per_leaf * s->network.rails
                       : ls_tree_n_leaves (s);
}

static uint64_t
n_pods (const LsClusterSpec *s)
{
  return ls_tree_n_leaves (s) == 0 ? 0 : (ls_tree_n_leaves (s) + leaves_per_pod (s) - 1) / leaves_per_pod (s);
}

static double
spine_uplinks (const LsClusterSpec *s)
{
  return (double) leaves_per_pod (s) * s->network.spine.bandwidth_bytes_per_s
      / s->network.spine_oversubscription / s->network.core.bandwidth_bytes_per_s;
}

static uint32_t
n_spines (const LsClusterSpec *s)
{
  return ls_tree_n_leaves (s) > 1 ? (uint32_t) round (ls_tree_leaf_uplinks (s)) : 0;
}
static uint32_t
n_core_uplinks (const LsClusterSpec *s)
{
  return has_cores (s) && n_pods (s) > 1 ? (uint32_t) round (spine_uplinks (s)) : 0;
}

/* --- what is legal --- */

static gboolean
check_cores (const LsClusterSpec *s, GError **error)
{
  if (!ls_spec_check_link ("fabric core_link", TRUE, &s->network.core, error))
    return FALSE;
  if (s->network.nodes_per_pod == 0 || s->network.nodes_per_pod % s->network.nodes_per_leaf != 0)
    return ls_spec_conflict (error, "%u nodes per pod do not deal out to leaves of %u nodes",
                             s->network.nodes_per_pod, s->network.nodes_per_leaf);
  if (!(s->network.spine_oversubscription >= 1))
    return ls_spec_conflict (error, "spine_oversubscription %g: expected 1 or more",
                             s->network.spine_oversubscription);
  if (n_pods (s) < 2)
    return TRUE;
  double cores = round (ls_tree_leaf_uplinks (s)) * spine_uplinks (s),
         spines = (double) n_pods (s) * round (ls_tree_leaf_uplinks (s));
  if (cores > LS_CLUSTER_MAX_FABRIC || spines > LS_CLUSTER_MAX_FABRIC)
    return ls_spec_conflict (error, "%u pods need %.0f spines and %.0f cores; expected at most %u of each",
                             (uint32_t) n_pods (s), spines, cores, LS_CLUSTER_MAX_FABRIC);
  if (!ls_tree_is_whole (spine_uplinks (s)))
    return ls_spec_conflict (
        error,
        "spine_oversubscription %g leaves %.3f uplinks per spine, not a whole number; change nodes_per_pod",
        s->network.spine_oversubscription, spine_uplinks (s));
  return TRUE;
}

static gboolean
check (const LsClusterSpec *s, GError **error)
{
  if (s->nics.n == 0)
    return s->n_nodes == 1 || ls_spec_conflict (error, "%u nodes need NICs between them", s->n_nodes);
  return ls_tree_check_leaves (s, error) && ls_tree_check_uplinks (s, error)
      && (!has_cores (s) || check_cores (s, error));
}

static double
n_links (const LsClusterSpec *s)
{
  double spines = (double) n_pods (s) * n_spines (s);
  return 2
      * ((double) s->n_nodes * s->nics.n + (double) ls_tree_n_leaves (s) * n_spines (s)
         + spines * n_core_uplinks (s));
}

/* --- layout --- */

static LsFabric *
tree_new (const LsClusterSpec *s)
{
  LsTree *f = g_new0 (LsTree, 1);
  f->spec = s;
  f->is_hashed = s->network.routing == LS_ROUTING_ECMP;
  f->n_leaves = (uint32_t) ls_tree_n_leaves (s);
  f->leaves_per_pod = (uint32_t) leaves_per_pod (s);
  f->n_pods = (uint32_t) n_pods (s);
  f->spines_per_pod = n_spines (s);
  f->uplinks = n_core_uplinks (s);
  f->leaf_latency = s->network.spine.latency;
  f->core_latency = s->network.core.latency;
  f->pod = "pod";
  f->spines = "spines";
  f->cores = "cores";
  ls_tree_number (f);
  f->base.n_vertices = f->n_leaves + f->n_pods * f->spines_per_pod + f->spines_per_pod * f->uplinks;
  return &f->base;
}

static void
add_leaf (const LsTree *f, LsCluster *c, uint32_t leaf)
{
  uint32_t first = leaf / f->leaves_per_pod * f->spines_per_pod,
           v_spine = f->base.first_vertex + f->n_leaves + first;
  LsEnd end = LS_TREE_LEAF (f->base.first_vertex + leaf, leaf);
  if (!f->is_hashed)
    ls_layout_pair (c, end, LS_TREE_SPINES (f, v_spine), f->spines_per_pod, f->spines_per_pod,
                    &c->spec.network.spine);
  for (uint32_t i = 0; i < f->spines_per_pod && f->is_hashed; i++)
    ls_layout_pair (c, end, LS_END (v_spine + i, LS_NO_NUMBER, "spine", first + i), 1, 1,
                    &c->spec.network.spine);
}

static void
add_pod (const LsTree *f, LsCluster *c, uint32_t pod)
{
  uint32_t v_spine = f->base.first_vertex + f->n_leaves, v_core = v_spine + f->n_pods * f->spines_per_pod;
  if (!f->is_hashed)
    ls_layout_trunks (c, LS_TREE_POD (f, pod), LS_TREE_CORES (f), &c->spec.network.core);
  for (uint32_t i = 0; i < f->spines_per_pod; i++)
    for (uint32_t j = 0; j < f->uplinks; j++) {
      uint32_t spine = pod * f->spines_per_pod + i, core = i * f->uplinks + j;
      if (f->is_hashed)
        ls_layout_pair (c, LS_END (v_spine + spine, LS_NO_NUMBER, "spine", spine),
                        LS_END (v_core + core, LS_NO_NUMBER, "core", core), 1, 1, &c->spec.network.core);
      else
        ls_layout_links (c, v_spine + spine, v_core + core, 1, &c->spec.network.core);
    }
}

static void
lay_out (const LsFabric *fabric, LsCluster *c)
{
  const LsTree *f = (const LsTree *) fabric;
  ls_layout_vertices (c, LS_NODE_LEAF, LS_NO_NUMBER, f->n_leaves);
  ls_layout_vertices (c, LS_NODE_SPINE, LS_NO_NUMBER, f->n_pods * f->spines_per_pod);
  ls_layout_vertices (c, LS_NODE_CORE, LS_NO_NUMBER, f->spines_per_pod * f->uplinks);
  ls_tree_lay_out_trunks (f, c, add_leaf, add_pod);
}

const LsFabricKind ls_fabric_leaf_spine = LS_TREE_KIND ("leaf-spine", check, n_links, tree_new, lay_out),
                   ls_fabric_fat_tree = LS_TREE_KIND ("fat-tree", check, n_links, tree_new, lay_out);
