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
 * Trunks of a node: NIC > leaf and back, a pair per NIC. The rest, in pairs:
 *
 *     ideal   leaf > spines of each leaf, then pod > cores of each pod
 *     hashed  leaf > spine by (leaf, spine of its pod), then spine > core by (spine, uplink)
 *
 * Not modelled: limits of a switch other than its ports; pods of different sizes. */
#include "cluster/fabric.h"

#include <math.h>

#include "cluster/ecmp.h"
#include "cluster/index.h"
#include "cluster/layout.h"
#include "cluster/spec.h"

typedef struct {
  LsFabric base;
  const LsClusterSpec *spec;
  bool is_hashed;
  uint32_t n_leaves, n_pods, leaves_per_pod;
  uint32_t spines_per_pod, uplinks; /* of a spine; 0 without cores */
  uint32_t t_cores;                 /* first of the trunks to cores */
} Tree;

static bool
has_cores (const LsClusterSpec *s)
{
  return s->fabric == LS_FABRIC_FAT_TREE;
}

static uint64_t
n_groups (const LsClusterSpec *s)
{
  return ((uint64_t) s->n_nodes + s->nodes_per_leaf - 1) / s->nodes_per_leaf;
}

static uint64_t
n_leaves (const LsClusterSpec *s)
{
  return s->nics == 0 ? 0 : n_groups (s) * s->rails;
}

/* Leaves of a full pod. */
static uint64_t
leaves_per_pod (const LsClusterSpec *s)
{
  if (n_leaves (s) == 0)
    return 0;
  return has_cores (s) ? (uint64_t) s->nodes_per_pod / s->nodes_per_leaf * s->rails : n_leaves (s);
}

static uint64_t
n_pods (const LsClusterSpec *s)
{
  return n_leaves (s) == 0 ? 0 : (n_leaves (s) + leaves_per_pod (s) - 1) / leaves_per_pod (s);
}

static uint64_t
nics_of_leaf (const LsClusterSpec *s)
{
  return (uint64_t) (s->nics / s->rails) * s->nodes_per_leaf;
}

/* Bytes/s that the nodes below a leaf can send into it. */
static double
leaf_intake (const LsClusterSpec *s)
{
  return (double) nics_of_leaf (s) * ls_link_capacity (&s->nic);
}

/* The same by the data sheet of its links: so they are dealt out, whatever share of it payload reaches on one
 * kind of link and on another. */
static double
leaf_bandwidth (const LsClusterSpec *s)
{
  return (double) nics_of_leaf (s) * s->nic.bandwidth_bytes_per_s;
}

/* Uplinks of a leaf, and of a spine, as numbers that need not be whole. */
static double
leaf_uplinks (const LsClusterSpec *s)
{
  return leaf_bandwidth (s) / s->oversubscription / s->spine.bandwidth_bytes_per_s;
}
static double
spine_uplinks (const LsClusterSpec *s)
{
  return (double) leaves_per_pod (s) * s->spine.bandwidth_bytes_per_s / s->spine_oversubscription
      / s->core.bandwidth_bytes_per_s;
}

static uint32_t
n_spines (const LsClusterSpec *s)
{
  return n_leaves (s) > 1 ? (uint32_t) round (leaf_uplinks (s)) : 0;
}
static uint32_t
n_core_uplinks (const LsClusterSpec *s)
{
  return has_cores (s) && n_pods (s) > 1 ? (uint32_t) round (spine_uplinks (s)) : 0;
}

/* --- what is legal --- */

/* Also where one leaf serves all: a leaf like that is a mistake with any number. */
static gboolean
check_size (const LsClusterSpec *s, GError **error)
{
  if (n_leaves (s) > LS_CLUSTER_MAX_FABRIC)
    return ls_spec_conflict (
        error, "%u nodes, %u on a leaf, with %u rails need %" G_GUINT64_FORMAT " leaves; expected at most %u",
        s->n_nodes, s->nodes_per_leaf, s->rails, (guint64) n_leaves (s), LS_CLUSTER_MAX_FABRIC);
  if (leaf_uplinks (s) <= LS_CLUSTER_MAX_FABRIC)
    return TRUE;
  g_autofree char *down = ls_format_rate (leaf_bandwidth (s)),
                  *up = ls_format_rate (s->spine.bandwidth_bytes_per_s);
  return ls_spec_conflict (
      error,
      "a leaf of %u nodes with %u NICs each on its rail takes %s; with oversubscription %g and %s an uplink"
      " it needs %.0f uplinks; expected at most %u",
      s->nodes_per_leaf, s->nics / s->rails, down, s->oversubscription, up, ceil (leaf_uplinks (s)),
      LS_CLUSTER_MAX_FABRIC);
}

static bool
is_whole (double n)
{
  return round (n) >= 1 && fabs (n - round (n)) <= 1e-6;
}

static gboolean
check_cores (const LsClusterSpec *s, GError **error)
{
  if (!ls_spec_check_link ("fabric core_link", TRUE, &s->core, error))
    return FALSE;
  if (s->nodes_per_pod == 0 || s->nodes_per_pod % s->nodes_per_leaf != 0)
    return ls_spec_conflict (error, "%u nodes per pod do not deal out to leaves of %u nodes",
                             s->nodes_per_pod, s->nodes_per_leaf);
  if (!(s->spine_oversubscription >= 1))
    return ls_spec_conflict (error, "spine_oversubscription %g: expected 1 or more",
                             s->spine_oversubscription);
  if (n_pods (s) < 2)
    return TRUE;
  double cores = round (leaf_uplinks (s)) * spine_uplinks (s),
         spines = (double) n_pods (s) * round (leaf_uplinks (s));
  if (cores > LS_CLUSTER_MAX_FABRIC || spines > LS_CLUSTER_MAX_FABRIC)
    return ls_spec_conflict (error, "%u pods need %.0f spines and %.0f cores; expected at most %u of each",
                             (uint32_t) n_pods (s), spines, cores, LS_CLUSTER_MAX_FABRIC);
  if (!is_whole (spine_uplinks (s)))
    return ls_spec_conflict (
        error,
        "spine_oversubscription %g leaves %.3f uplinks per spine, not a whole number; change nodes_per_pod",
        s->spine_oversubscription, spine_uplinks (s));
  return TRUE;
}

static gboolean
check (const LsClusterSpec *s, GError **error)
{
  if (s->nics == 0)
    return s->n_nodes == 1 || ls_spec_conflict (error, "%u nodes need NICs between them", s->n_nodes);
  if (!ls_spec_check_link ("nic link", TRUE, &s->nic, error)
      || !ls_spec_check_link ("fabric link", TRUE, &s->spine, error))
    return FALSE;
  if (s->rails == 0 || s->nics % s->rails != 0)
    return ls_spec_conflict (error,
                             "%u NICs per node do not deal out to %u rails: \"rails\" is to divide \"nics\"",
                             s->nics, s->rails);
  if (s->nodes_per_leaf == 0)
    return ls_spec_conflict (error, "a leaf needs at least one node");
  if (!(s->oversubscription >= 1))
    return ls_spec_conflict (error, "oversubscription %g: expected 1 or more", s->oversubscription);
  if (!check_size (s, error))
    return FALSE;
  if (n_leaves (s) > 1 && !is_whole (leaf_uplinks (s)))
    return ls_spec_conflict (
        error, "oversubscription %g leaves %.3f uplinks per leaf, not a whole number; change nodes_per_leaf",
        s->oversubscription, leaf_uplinks (s));
  return !has_cores (s) || check_cores (s, error);
}

static double
n_links (const LsClusterSpec *s)
{
  double spines = (double) n_pods (s) * n_spines (s);
  return 2
      * ((double) s->n_nodes * s->nics + (double) n_leaves (s) * n_spines (s) + spines * n_core_uplinks (s));
}

/* --- layout --- */

#define LEAF_END(vertex_, leaf_) LS_END (vertex_, LS_NO_NUMBER, "leaf", leaf_)
#define SPINES_END(vertex_)      LS_END (vertex_, LS_NO_NUMBER, "spines", LS_NO_NUMBER)
#define POD_END(pod_)            LS_END (0, LS_NO_NUMBER, "pod", pod_)
#define CORES_END                LS_END (0, LS_NO_NUMBER, "cores", LS_NO_NUMBER)

static LsFabric *
tree_new (const LsClusterSpec *s)
{
  Tree *f = g_new0 (Tree, 1);
  f->spec = s;
  f->is_hashed = s->routing == LS_ROUTING_ECMP;
  f->n_leaves = (uint32_t) n_leaves (s);
  f->leaves_per_pod = (uint32_t) leaves_per_pod (s);
  f->n_pods = (uint32_t) n_pods (s);
  f->spines_per_pod = n_spines (s);
  f->uplinks = n_core_uplinks (s);
  uint32_t leaf_pairs = f->is_hashed ? f->spines_per_pod : MIN (f->spines_per_pod, 1);
  uint32_t pod_pairs = f->is_hashed ? f->spines_per_pod * f->uplinks : MIN (f->uplinks, 1);
  f->t_cores = 2 * f->n_leaves * leaf_pairs;
  f->base = (LsFabric) {
    .n_vertices = f->n_leaves + f->n_pods * f->spines_per_pod + f->spines_per_pod * f->uplinks,
    .n_trunks = f->t_cores + 2 * f->n_pods * pod_pairs,
    .n_edges = f->n_leaves,
    .n_lower = f->t_cores,
  };
  return &f->base;
}

static void
tree_free (LsFabric *fabric)
{
  g_free (fabric);
}

static uint32_t
edge (const LsFabric *fabric, uint32_t host, uint32_t nic)
{
  const LsClusterSpec *s = ((const Tree *) fabric)->spec;
  return host / s->nodes_per_leaf * s->rails + nic % s->rails;
}

static void
lay_out_node (const LsFabric *fabric, LsCluster *c, uint32_t host)
{
  const LsLinkSpec *port = &ls_cluster_node_spec (c, host)->nic;
  for (uint32_t i = 0; i < ls_cluster_node_spec (c, host)->nics; i++) {
    uint32_t leaf = edge (fabric, host, i);
    ls_layout_pair (c, LS_END (ls_nic_vertex (c, host, i), host, "nic", i),
                    LEAF_END (fabric->first_vertex + leaf, leaf), 1, 1, port);
  }
}

static void
add_leaf (const Tree *f, LsCluster *c, uint32_t leaf)
{
  uint32_t first = leaf / f->leaves_per_pod * f->spines_per_pod,
           v_spine = f->base.first_vertex + f->n_leaves + first;
  LsEnd end = LEAF_END (f->base.first_vertex + leaf, leaf);
  if (!f->is_hashed)
    ls_layout_pair (c, end, SPINES_END (v_spine), f->spines_per_pod, f->spines_per_pod, &c->spec.spine);
  for (uint32_t i = 0; i < f->spines_per_pod && f->is_hashed; i++)
    ls_layout_pair (c, end, LS_END (v_spine + i, LS_NO_NUMBER, "spine", first + i), 1, 1, &c->spec.spine);
}

static void
add_pod (const Tree *f, LsCluster *c, uint32_t pod)
{
  uint32_t v_spine = f->base.first_vertex + f->n_leaves, v_core = v_spine + f->n_pods * f->spines_per_pod;
  if (!f->is_hashed)
    ls_layout_trunks (c, POD_END (pod), CORES_END, &c->spec.core);
  for (uint32_t i = 0; i < f->spines_per_pod; i++)
    for (uint32_t j = 0; j < f->uplinks; j++) {
      uint32_t spine = pod * f->spines_per_pod + i, core = i * f->uplinks + j;
      if (f->is_hashed)
        ls_layout_pair (c, LS_END (v_spine + spine, LS_NO_NUMBER, "spine", spine),
                        LS_END (v_core + core, LS_NO_NUMBER, "core", core), 1, 1, &c->spec.core);
      else
        ls_layout_links (c, v_spine + spine, v_core + core, 1, &c->spec.core);
    }
}

static void
lay_out (const LsFabric *fabric, LsCluster *c)
{
  const Tree *f = (const Tree *) fabric;
  ls_layout_vertices (c, LS_NODE_LEAF, LS_NO_NUMBER, f->n_leaves);
  ls_layout_vertices (c, LS_NODE_SPINE, LS_NO_NUMBER, f->n_pods * f->spines_per_pod);
  ls_layout_vertices (c, LS_NODE_CORE, LS_NO_NUMBER, f->spines_per_pod * f->uplinks);
  uint32_t n_leaves = c->index->is_brief ? 1 : f->n_leaves, n_pods = c->index->is_brief ? 1 : f->n_pods;
  for (uint32_t leaf = 0; leaf < n_leaves && f->spines_per_pod > 0; leaf++)
    add_leaf (f, c, leaf);
  for (uint32_t pod = 0; pod < n_pods && f->uplinks > 0; pod++)
    add_pod (f, c, pod);
}

/* --- ways --- */

/* Upward; the way down is the next. */
static uint32_t
leaf_trunk (const Tree *f, uint32_t leaf, uint32_t spine)
{
  return f->base.first_trunk + 2 * (f->is_hashed ? leaf * f->spines_per_pod + spine : leaf);
}
static uint32_t
core_trunk (const Tree *f, uint32_t pod, uint32_t spine, uint32_t uplink)
{
  uint32_t i = f->is_hashed ? (pod * f->spines_per_pod + spine) * f->uplinks + uplink : pod;
  return f->base.first_trunk + f->t_cores + 2 * i;
}

static bool
core_works (const Tree *f, const LsCluster *c, uint32_t pod_from, uint32_t pod_to, uint32_t spine,
            uint32_t uplink)
{
  return !ls_trunk_is_failed (c, core_trunk (f, pod_from, spine, uplink))
      && !ls_trunk_is_failed (c, core_trunk (f, pod_to, spine, uplink) + 1);
}

/* Whether one can get from leaf to leaf over this spine of the first one's pod. */
static bool
spine_works (const Tree *f, const LsCluster *c, uint32_t from, uint32_t to, uint32_t spine)
{
  if (ls_trunk_is_failed (c, leaf_trunk (f, from, spine))
      || ls_trunk_is_failed (c, leaf_trunk (f, to, spine) + 1))
    return false;
  uint32_t pod_from = from / f->leaves_per_pod, pod_to = to / f->leaves_per_pod;
  bool works = pod_from == pod_to;
  for (uint32_t j = 0; j < f->uplinks && !works; j++)
    works = core_works (f, c, pod_from, pod_to, spine, j);
  return works;
}

static bool
reaches (const LsFabric *fabric, const LsCluster *c, uint32_t from, uint32_t to)
{
  const Tree *f = (const Tree *) fabric;
  for (uint32_t i = 0; i < f->spines_per_pod; i++)
    if (spine_works (f, c, from, to, i))
      return true;
  return from == to;
}

static uint32_t
choose_spine (const Tree *f, const LsCluster *c, const LsFabricFlow *flow, uint32_t from, uint32_t to)
{
  if (!f->is_hashed)
    return 0;
  uint32_t all = f->spines_per_pod, n = all, v = f->base.first_vertex + from;
  if (!c->index->has_failed_switch_links)
    return ls_ecmp_choose (f->spec, flow, v, all);
  for (uint32_t i = 0; i < all; i++)
    n -= !spine_works (f, c, from, to, i);
  uint32_t left = ls_ecmp_choose (f->spec, flow, v, n), i = 0;
  while (!spine_works (f, c, from, to, i) || left-- > 0)
    i++;
  return i;
}

static uint32_t
choose_uplink (const Tree *f, const LsCluster *c, const LsFabricFlow *flow, uint32_t pod_from,
               uint32_t pod_to, uint32_t spine)
{
  if (!f->is_hashed)
    return 0;
  uint32_t all = f->uplinks, n = all,
           v = f->base.first_vertex + f->n_leaves + pod_from * f->spines_per_pod + spine;
  if (!c->index->has_failed_switch_links)
    return ls_ecmp_choose (f->spec, flow, v, all);
  for (uint32_t j = 0; j < all; j++)
    n -= !core_works (f, c, pod_from, pod_to, spine, j);
  uint32_t left = ls_ecmp_choose (f->spec, flow, v, n), j = 0;
  while (!core_works (f, c, pod_from, pod_to, spine, j) || left-- > 0)
    j++;
  return j;
}

static void
way (const LsFabric *fabric, const LsCluster *c, const LsFabricFlow *flow, LsRoute *r)
{
  const Tree *f = (const Tree *) fabric;
  const LsClusterSpec *s = &c->spec;
  uint32_t from = edge (fabric, flow->node_from, flow->nic_from),
           to = edge (fabric, flow->node_to, flow->nic_to);
  ls_route_hop (r, ls_node_trunk (c, flow->node_from, 2 * flow->nic_from),
                ls_cluster_node_spec (c, flow->node_from)->nic.latency);
  if (from != to) {
    uint32_t spine = choose_spine (f, c, flow, from, to);
    uint32_t pod_from = from / f->leaves_per_pod, pod_to = to / f->leaves_per_pod;
    ls_route_hop (r, leaf_trunk (f, from, spine), s->spine.latency);
    if (pod_from != pod_to) {
      uint32_t uplink = choose_uplink (f, c, flow, pod_from, pod_to, spine);
      ls_route_hop (r, core_trunk (f, pod_from, spine, uplink), s->core.latency);
      ls_route_hop (r, core_trunk (f, pod_to, spine, uplink) + 1, s->core.latency);
    }
    ls_route_hop (r, leaf_trunk (f, to, spine) + 1, s->spine.latency);
  }
  ls_route_hop (r, ls_node_trunk (c, flow->node_to, 2 * flow->nic_to + 1),
                ls_cluster_node_spec (c, flow->node_to)->nic.latency);
}

static bool
groups (const LsFabric *fabric, LsPlaces *p)
{
  const Tree *f = (const Tree *) fabric;
  const LsClusterSpec *s = f->spec;
  if (f->is_hashed || f->n_leaves == 0)
    return false;
  p->hosts_per_group = s->nodes_per_leaf;
  p->n_groups = f->n_leaves / s->rails;
  p->groups_per_pod = f->leaves_per_pod / s->rails;
  p->n_pods = f->n_pods;
  p->trunks_per_group = f->spines_per_pod > 0 ? 2 * s->rails : 0;
  p->trunks_per_pod = f->uplinks > 0 ? 2 : 0;
  p->first_of_pods = fabric->first_trunk + f->t_cores;
  p->group_intake = leaf_intake (s);
  p->pod_intake = f->leaves_per_pod * leaf_intake (s);
  return true;
}

/* Of trunks that ideal spreading makes of all spines, and of all cores. */
static char *
trunk_name (const LsFabric *fabric, uint32_t trunk)
{
  bool is_lower = trunk < fabric->n_lower, is_up = trunk % 2 == 0;
  const LsEnd below = is_lower ? LEAF_END (0, trunk / 2) : POD_END ((trunk - fabric->n_lower) / 2),
              above = is_lower ? SPINES_END (0) : CORES_END;
  return ls_layout_name (is_up ? below : above, is_up ? above : below);
}

#define TREE(name_)                                                                                          \
  {                                                                                                          \
    .name = name_, .check = check, .n_links = n_links, .new = tree_new, .free = tree_free,                   \
    .lay_out_node = lay_out_node, .lay_out = lay_out, .edge = edge, .reaches = reaches, .groups = groups,    \
    .trunk_name = trunk_name, .way = way,                                                                    \
  }

const LsFabricKind ls_fabric_leaf_spine = TREE ("leaf-spine"), ls_fabric_fat_tree = TREE ("fat-tree");
