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

#include "cluster/fabric.h"
#include "cluster/index.h"
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

/* Of nodes, below leaves of all rails. */
static uint64_t
n_groups (const LsClusterSpec *s)
{
  return ((uint64_t) s->n_nodes + s->network.nodes_per_leaf - 1) / s->network.nodes_per_leaf;
}

uint64_t
ls_tree_n_leaves (const LsClusterSpec *s)
{
  return s->nics.n == 0 ? 0 : n_groups (s) * s->network.rails;
}

static uint64_t
nics_of_leaf (const LsClusterSpec *s)
{
  return (uint64_t) (s->nics.n / s->network.rails) * s->network.nodes_per_leaf;
}

/* Bytes/s that the nodes below a leaf can send into it. */
static double
leaf_intake (const LsClusterSpec *s)
{
  return (double) nics_of_leaf (s) * ls_link_capacity (&s->nics.port);
}

/* Bytes/s into a leaf by the data sheet of its NICs' links: so they are dealt out, whatever share of it
 * payload reaches on one kind of link and on another. */
static double
ls_tree_leaf_bandwidth (const LsClusterSpec *s)
{
  return (double) nics_of_leaf (s) * s->nics.port.bandwidth_bytes_per_s;
}

double
ls_tree_leaf_uplinks (const LsClusterSpec *s)
{
  return ls_tree_leaf_bandwidth (s) / s->network.oversubscription / s->network.spine.bandwidth_bytes_per_s;
}

bool
ls_tree_is_whole (double n)
{
  return round (n) >= 1 && fabs (n - round (n)) <= 1e-6;
}

/* --- what is legal --- */

gboolean
ls_tree_check_leaves (const LsClusterSpec *s, GError **error)
{
  if (!ls_spec_check_link ("nic link", TRUE, &s->nics.port, error)
      || !ls_spec_check_link ("fabric link", TRUE, &s->network.spine, error))
    return FALSE;
  if (s->network.rails == 0 || s->nics.n % s->network.rails != 0)
    return ls_spec_conflict (error,
                             "%u NICs per node do not deal out to %u rails: \"rails\" is to divide \"nics\"",
                             s->nics.n, s->network.rails);
  if (s->network.nodes_per_leaf == 0)
    return ls_spec_conflict (error, "a leaf needs at least one node");
  if (ls_tree_n_leaves (s) > LS_CLUSTER_MAX_FABRIC)
    return ls_spec_conflict (
        error, "%u nodes, %u on a leaf, with %u rails need %" G_GUINT64_FORMAT " leaves; expected at most %u",
        s->n_nodes, s->network.nodes_per_leaf, s->network.rails, (guint64) ls_tree_n_leaves (s),
        LS_CLUSTER_MAX_FABRIC);
  return TRUE;
}

/* The number also where one leaf serves all: a leaf like that is a mistake with any. */
gboolean
ls_tree_check_uplinks (const LsClusterSpec *s, GError **error)
{
  if (!(s->network.oversubscription >= 1))
    return ls_spec_conflict (error, "oversubscription %g: expected 1 or more", s->network.oversubscription);
  if (ls_tree_leaf_uplinks (s) > LS_CLUSTER_MAX_FABRIC) {
    g_autofree char *down = ls_format_rate (ls_tree_leaf_bandwidth (s)),
                    *up = ls_format_rate (s->network.spine.bandwidth_bytes_per_s);
    return ls_spec_conflict (
        error,
        "a leaf of %u nodes with %u NICs each on its rail takes %s; with oversubscription %g and %s an uplink"
        " it needs %.0f uplinks; expected at most %u",
        s->network.nodes_per_leaf, s->nics.n / s->network.rails, down, s->network.oversubscription, up,
        ceil (ls_tree_leaf_uplinks (s)), LS_CLUSTER_MAX_FABRIC);
  }
  if (ls_tree_n_leaves (s) > 1 && !ls_tree_is_whole (ls_tree_leaf_uplinks (s)))
    return ls_spec_conflict (
        error, "oversubscription %g leaves %.3f uplinks per leaf, not a whole number; change nodes_per_leaf",
        s->network.oversubscription, ls_tree_leaf_uplinks (s));
  return TRUE;
}

void
ls_tree_number (LsTree *f)
{
  uint32_t leaf_pairs = f->is_hashed ? f->spines_per_pod : MIN (f->spines_per_pod, 1);
  uint32_t pod_pairs = f->is_hashed ? f->spines_per_pod * f->uplinks : MIN (f->uplinks, 1);
  f->t_cores = 2 * f->n_leaves * leaf_pairs;
  f->base.n_trunks = f->t_cores + 2 * f->n_pods * pod_pairs;
  f->base.n_edges = f->n_leaves;
  f->base.n_lower = f->t_cores;
}

/* --- members of a kind --- */

void
ls_tree_free (LsFabric *fabric)
{
  g_free (fabric);
}

uint32_t
ls_tree_leaf_of (const LsClusterSpec *s, uint32_t host, uint32_t nic)
{
  return host / s->network.nodes_per_leaf * s->network.rails + nic % s->network.rails;
}

uint32_t
ls_tree_edge (const LsFabric *fabric, uint32_t host, uint32_t nic)
{
  return ls_tree_leaf_of (((const LsTree *) fabric)->spec, host, nic);
}

void
ls_tree_lay_out_ports (const LsFabric *fabric, LsCluster *c, uint32_t host,
                       uint32_t (*edge) (const LsFabric *, uint32_t, uint32_t))
{
  const LsLinkSpec *port = &ls_cluster_node_spec (c, host)->nics.port;
  for (uint32_t i = 0; i < ls_cluster_node_spec (c, host)->nics.n; i++) {
    uint32_t leaf = edge (fabric, host, i);
    ls_layout_pair (c, LS_END (ls_nic_vertex (c, host, i), host, "nic", i),
                    LS_TREE_LEAF (fabric->first_vertex + leaf, leaf), 1, 1, port);
  }
}

void
ls_tree_lay_out_node (const LsFabric *fabric, LsCluster *c, uint32_t host)
{
  ls_tree_lay_out_ports (fabric, c, host, ls_tree_edge);
}

/* --- ways --- */

/* Upward; the way down is the next. */
static uint32_t
leaf_trunk (const LsTree *f, uint32_t leaf, uint32_t spine)
{
  return f->base.first_trunk + 2 * (f->is_hashed ? leaf * f->spines_per_pod + spine : leaf);
}
static uint32_t
core_trunk (const LsTree *f, uint32_t pod, uint32_t spine, uint32_t uplink)
{
  uint32_t i = f->is_hashed ? (pod * f->spines_per_pod + spine) * f->uplinks + uplink : pod;
  return f->base.first_trunk + f->t_cores + 2 * i;
}

static bool
core_works (const LsTree *f, const LsCluster *c, uint32_t pod_from, uint32_t pod_to, uint32_t spine,
            uint32_t uplink)
{
  return !ls_trunk_is_failed (c, core_trunk (f, pod_from, spine, uplink))
      && !ls_trunk_is_failed (c, core_trunk (f, pod_to, spine, uplink) + 1);
}

/* Whether one can get from leaf to leaf over this spine of the first one's pod. */
static bool
spine_works (const LsTree *f, const LsCluster *c, uint32_t from, uint32_t to, uint32_t spine)
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

bool
ls_tree_reaches (const LsFabric *fabric, const LsCluster *c, uint32_t from, uint32_t to)
{
  const LsTree *f = (const LsTree *) fabric;
  for (uint32_t i = 0; i < f->spines_per_pod; i++)
    if (spine_works (f, c, from, to, i))
      return true;
  return from == to;
}

static uint32_t
choose_spine (const LsTree *f, const LsCluster *c, const LsFabricFlow *flow, uint32_t from, uint32_t to)
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
choose_uplink (const LsTree *f, const LsCluster *c, const LsFabricFlow *flow, uint32_t pod_from,
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

void
ls_tree_way (const LsFabric *fabric, const LsCluster *c, const LsFabricFlow *flow, LsRoute *r)
{
  const LsTree *f = (const LsTree *) fabric;
  uint32_t from = ls_tree_edge (fabric, flow->node_from, flow->nic_from),
           to = ls_tree_edge (fabric, flow->node_to, flow->nic_to);
  if (from == to)
    return;
  uint32_t spine = choose_spine (f, c, flow, from, to);
  uint32_t pod_from = from / f->leaves_per_pod, pod_to = to / f->leaves_per_pod;
  ls_route_hop (r, leaf_trunk (f, from, spine), f->leaf_latency);
  if (pod_from != pod_to) {
    uint32_t uplink = choose_uplink (f, c, flow, pod_from, pod_to, spine);
    ls_route_hop (r, core_trunk (f, pod_from, spine, uplink), f->core_latency);
    ls_route_hop (r, core_trunk (f, pod_to, spine, uplink) + 1, f->core_latency);
  }
  ls_route_hop (r, leaf_trunk (f, to, spine) + 1, f->leaf_latency);
}

void
ls_tree_lay_out_trunks (const LsTree *f, LsCluster *c, LsTreeAdd *lay_leaf, LsTreeAdd *lay_pod)
{
  uint32_t n_leaves = c->index->is_brief ? 1 : f->n_leaves, n_pods = c->index->is_brief ? 1 : f->n_pods;
  for (uint32_t leaf = 0; leaf < n_leaves && f->spines_per_pod > 0; leaf++)
    lay_leaf (f, c, leaf);
  for (uint32_t pod = 0; pod < n_pods && f->uplinks > 0; pod++)
    lay_pod (f, c, pod);
}

bool
ls_tree_groups (const LsFabric *fabric, LsPlaces *p)
{
  const LsTree *f = (const LsTree *) fabric;
  const LsClusterSpec *s = f->spec;
  if (f->is_hashed || f->n_leaves == 0)
    return false;
  p->hosts_per_group = s->network.nodes_per_leaf;
  p->n_groups = f->n_leaves / s->network.rails;
  p->groups_per_pod = f->leaves_per_pod / s->network.rails;
  p->n_pods = f->n_pods;
  p->trunks_per_group = f->spines_per_pod > 0 ? 2 * s->network.rails : 0;
  p->trunks_per_pod = f->uplinks > 0 ? 2 : 0;
  p->first_of_pods = fabric->first_trunk + f->t_cores;
  p->group_intake = leaf_intake (s);
  p->pod_intake = f->leaves_per_pod * leaf_intake (s);
  return true;
}

/* Of trunks that ideal spreading makes of all spines, and of all cores. */
char *
ls_tree_trunk_name (const LsFabric *fabric, uint32_t trunk)
{
  const LsTree *f = (const LsTree *) fabric;
  bool is_lower = trunk < fabric->n_lower, is_up = trunk % 2 == 0;
  const LsEnd below = is_lower ? LS_TREE_LEAF (0, trunk / 2) : LS_TREE_POD (f, (trunk - fabric->n_lower) / 2),
              above = is_lower ? LS_TREE_SPINES (f, 0) : LS_TREE_CORES (f);
  return ls_layout_name (is_up ? below : above, is_up ? above : below);
}
