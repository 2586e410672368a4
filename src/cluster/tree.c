#include "cluster/tree.h"

#include <math.h>

#include "cluster/ecmp.h"
#include "cluster/index.h"
#include "cluster/spec.h"

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

double
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
ls_tree_lay_out_trunks (const LsTree *f, LsCluster *c, LsTreeAdd *add_leaf, LsTreeAdd *add_pod)
{
  uint32_t n_leaves = c->index->is_brief ? 1 : f->n_leaves, n_pods = c->index->is_brief ? 1 : f->n_pods;
  for (uint32_t leaf = 0; leaf < n_leaves && f->spines_per_pod > 0; leaf++)
    add_leaf (f, c, leaf);
  for (uint32_t pod = 0; pod < n_pods && f->uplinks > 0; pod++)
    add_pod (f, c, pod);
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
