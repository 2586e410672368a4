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
 * Not modelled: limits of a switch other than its ports; pods of different sizes.
 *
 * Trunks of a node: NIC > leaf and back, a pair per NIC. The rest, in pairs, up and down; numbers of trunks
 * and ways follow by arithmetic:
 *
 *     ideal   leaf > what joins those of its pod, then pod > what joins pods
 *     hashed  leaf > spine by (leaf, spine of its pod), then spine > core by (spine, uplink) */

#include <math.h>

#include "cluster/index.h"

typedef struct LsTree LsTree;
/* Appends the trunks of a leaf, or of a pod. */
typedef void TreeAdd (const LsTree *f, LsCluster *c, uint32_t number);

/* Dragonflies with detours are of it, too. */
struct LsTree {
  LsFabric base;
  bool is_hashed;
  uint32_t n_leaves, n_pods, leaves_per_pod;
  uint32_t spines_per_pod, uplinks;  /* of a spine; 0 without cores; hashed: choices on the way up */
  uint32_t t_cores;                  /* first of the trunks to cores, set by tree_number() */
  LsTime leaf_latency, core_latency; /* of a trunk of a leaf, and of a pod */
  const char *pod, *spines, *cores;  /* in names of trunks: "pod", "spines", "cores" */
  LsNodeKind hub, top;               /* what joins the leaves of a pod, and pods */
  uint32_t n_top;
  TreeAdd *add_leaf, *add_pod;
};

/* Whether a way leads from a leaf or pod to another by this spine, or by that uplink of the spine. */
typedef bool TreeWorks (const LsTree *f, const LsCluster *c, uint32_t from, uint32_t to, uint32_t choice,
                        uint32_t spine);

#define LS_TREE_SPINES(f_, vertex_) LS_END (vertex_, LS_NO_NUMBER, (f_)->spines, LS_NO_NUMBER)
#define LS_TREE_POD(f_, pod_)       LS_END (0, LS_NO_NUMBER, (f_)->pod, pod_)
#define LS_TREE_CORES(f_)           LS_END (0, LS_NO_NUMBER, (f_)->cores, LS_NO_NUMBER)

/* --- of a spec --- */

/* Of nodes, below leaves of all rails. */
static uint64_t
n_groups (const LsClusterSpec *s)
{
  return ((uint64_t) s->n_nodes + s->network.nodes_per_leaf - 1) / s->network.nodes_per_leaf;
}

/* Leaves with nodes; 0 without NICs. */
static uint64_t
tree_n_leaves (const LsClusterSpec *s)
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
tree_leaf_bandwidth (const LsClusterSpec *s)
{
  return (double) nics_of_leaf (s) * s->nics.port.bandwidth_bytes_per_s;
}

/* By oversubscription, as a number that need not be whole. */
static double
tree_leaf_uplinks (const LsClusterSpec *s)
{
  return tree_leaf_bandwidth (s) / s->network.oversubscription / s->network.spine.bandwidth_bytes_per_s;
}

static bool
tree_is_whole (double n)
{
  return round (n) >= 1 && fabs (n - round (n)) <= 1e-6;
}

/* --- what is legal --- */

/* Of nodes with NICs: LS_ERROR_CONFLICT if they do not deal out to leaves, or a link has no rate. */
static gboolean
tree_check_leaves (const LsClusterSpec *s, GError **error)
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
  if (tree_n_leaves (s) > LS_CLUSTER_MAX_FABRIC)
    return ls_spec_conflict (
        error, "%u nodes, %u on a leaf, with %u rails need %" G_GUINT64_FORMAT " leaves; expected at most %u",
        s->n_nodes, s->network.nodes_per_leaf, s->network.rails, (guint64) tree_n_leaves (s),
        LS_CLUSTER_MAX_FABRIC);
  return TRUE;
}

/* The number also where one leaf serves all: a leaf like that is a mistake with any. */
static gboolean
tree_check_uplinks (const LsClusterSpec *s, GError **error)
{
  if (!(s->network.oversubscription >= 1))
    return ls_spec_conflict (error, "oversubscription %g: expected 1 or more", s->network.oversubscription);
  if (tree_leaf_uplinks (s) > LS_CLUSTER_MAX_FABRIC) {
    g_autofree char *down = ls_format_rate (tree_leaf_bandwidth (s)),
                    *up = ls_format_rate (s->network.spine.bandwidth_bytes_per_s);
    return ls_spec_conflict (
        error,
        "a leaf of %u nodes with %u NICs each on its rail takes %s; with oversubscription %g and %s an uplink"
        " it needs %.0f uplinks; expected at most %u",
        s->network.nodes_per_leaf, s->nics.n / s->network.rails, down, s->network.oversubscription, up,
        ceil (tree_leaf_uplinks (s)), LS_CLUSTER_MAX_FABRIC);
  }
  if (tree_n_leaves (s) > 1 && !tree_is_whole (tree_leaf_uplinks (s)))
    return ls_spec_conflict (
        error, "oversubscription %g leaves %.3f uplinks per leaf, not a whole number; change nodes_per_leaf",
        s->network.oversubscription, tree_leaf_uplinks (s));
  return TRUE;
}

/* --- layout, ways, and what else is of a kind --- */

/* Of what is set, all that counts trunks. */
static void
tree_number (LsTree *f)
{
  uint32_t leaf_pairs = f->is_hashed ? f->spines_per_pod : MIN (f->spines_per_pod, 1);
  uint32_t pod_pairs = f->is_hashed ? f->spines_per_pod * f->uplinks : MIN (f->uplinks, 1);
  f->t_cores = 2 * f->n_leaves * leaf_pairs;
  f->base.n_trunks = f->t_cores + 2 * f->n_pods * pod_pairs;
  f->base.n_edges = f->n_leaves;
  f->base.n_lower = f->t_cores;
  f->base.n_vertices = f->n_leaves + f->n_pods * f->spines_per_pod + f->n_top;
}

uint32_t
ls_tree_leaf_of (const LsFabric *fabric, uint32_t host, uint32_t nic)
{
  const LsFabricSpec *n = &fabric->spec->network;
  return host / n->nodes_per_leaf * n->rails + nic % n->rails;
}

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
core_works (const LsTree *f, const LsCluster *c, uint32_t pod_from, uint32_t pod_to, uint32_t uplink,
            uint32_t spine)
{
  return !ls_trunk_is_failed (c, core_trunk (f, pod_from, spine, uplink))
      && !ls_trunk_is_failed (c, core_trunk (f, pod_to, spine, uplink) + 1);
}

/* Whether one can get from leaf to leaf over this spine of the first one's pod. */
static bool
spine_works (const LsTree *f, const LsCluster *c, uint32_t from, uint32_t to, uint32_t spine, uint32_t unused)
{
  if (ls_trunk_is_failed (c, leaf_trunk (f, from, spine))
      || ls_trunk_is_failed (c, leaf_trunk (f, to, spine) + 1))
    return false;
  uint32_t pod_from = from / f->leaves_per_pod, pod_to = to / f->leaves_per_pod;
  bool works = pod_from == pod_to;
  for (uint32_t j = 0; j < f->uplinks && !works; j++)
    works = core_works (f, c, pod_from, pod_to, j, spine);
  return works;
}

static bool
tree_reaches (const LsFabric *fabric, const LsCluster *c, uint32_t from, uint32_t to)
{
  const LsTree *f = (const LsTree *) fabric;
  for (uint32_t i = 0; i < f->spines_per_pod; i++)
    if (spine_works (f, c, from, to, i, 0))
      return true;
  return from == to;
}

/* Which of n_all spines, or of the uplinks of a spine, at this switch: 0 where they are one trunk. */
static uint32_t
choose (const LsTree *f, const LsCluster *c, const LsFabricFlow *flow, uint32_t at, uint32_t n_all,
        TreeWorks *works, uint32_t from, uint32_t to, uint32_t spine)
{
  if (!f->is_hashed)
    return 0;
  uint32_t n = n_all, v = f->base.first_vertex + at;
  if (!c->index->has_failed_switch_links)
    return ls_ecmp_choose (f->base.spec, flow, v, n_all);
  for (uint32_t i = 0; i < n_all; i++)
    n -= !works (f, c, from, to, i, spine);
  uint32_t left = ls_ecmp_choose (f->base.spec, flow, v, n), i = 0;
  while (!works (f, c, from, to, i, spine) || left-- > 0)
    i++;
  return i;
}

static void
tree_way (const LsFabric *fabric, const LsCluster *c, const LsFabricFlow *flow, LsRoute *r)
{
  const LsTree *f = (const LsTree *) fabric;
  uint32_t from = ls_tree_leaf_of (fabric, flow->node_from, flow->nic_from),
           to = ls_tree_leaf_of (fabric, flow->node_to, flow->nic_to);
  if (from == to)
    return;
  uint32_t spine = choose (f, c, flow, from, f->spines_per_pod, spine_works, from, to, 0);
  uint32_t pod_from = from / f->leaves_per_pod, pod_to = to / f->leaves_per_pod;
  ls_route_hop (r, leaf_trunk (f, from, spine), f->leaf_latency);
  if (pod_from != pod_to) {
    uint32_t uplink = choose (f, c, flow, f->n_leaves + pod_from * f->spines_per_pod + spine, f->uplinks,
                              core_works, pod_from, pod_to, spine);
    ls_route_hop (r, core_trunk (f, pod_from, spine, uplink), f->core_latency);
    ls_route_hop (r, core_trunk (f, pod_to, spine, uplink) + 1, f->core_latency);
  }
  ls_route_hop (r, leaf_trunk (f, to, spine) + 1, f->leaf_latency);
}

/* Of a brief cluster the trunks of the first leaf and pod. */
static void
tree_lay_out (const LsFabric *fabric, LsCluster *c)
{
  const LsTree *f = (const LsTree *) fabric;
  uint32_t n_leaves = c->index->is_brief ? 1 : f->n_leaves, n_pods = c->index->is_brief ? 1 : f->n_pods;
  ls_layout_vertices (c, LS_NODE_LEAF, LS_NO_NUMBER, f->n_leaves);
  ls_layout_vertices (c, f->hub, LS_NO_NUMBER, f->n_pods * f->spines_per_pod);
  ls_layout_vertices (c, f->top, LS_NO_NUMBER, f->n_top);
  for (uint32_t leaf = 0; leaf < n_leaves && f->spines_per_pod > 0; leaf++)
    f->add_leaf (f, c, leaf);
  for (uint32_t pod = 0; pod < n_pods && f->uplinks > 0; pod++)
    f->add_pod (f, c, pod);
}

static bool
tree_groups (const LsFabric *fabric, LsPlaces *p)
{
  const LsTree *f = (const LsTree *) fabric;
  const LsClusterSpec *s = f->base.spec;
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
static char *
tree_trunk_name (const LsFabric *fabric, uint32_t trunk)
{
  const LsTree *f = (const LsTree *) fabric;
  bool is_lower = trunk < fabric->n_lower, is_up = trunk % 2 == 0;
  const LsEnd below = is_lower ? LS_TREE_LEAF (0, trunk / 2) : LS_TREE_POD (f, (trunk - fabric->n_lower) / 2),
              above = is_lower ? LS_TREE_SPINES (f, 0) : LS_TREE_CORES (f);
  return ls_layout_name (is_up ? below : above, is_up ? above : below);
}

#define LS_TREE_KIND(name_, check_, n_links_, new_)                                                          \
  {                                                                                                          \
    .name = (name_), .check = (check_), .n_links = (n_links_), .new = (new_), .lay_out = tree_lay_out,       \
    .edge = ls_tree_leaf_of, .reaches = tree_reaches, .groups = tree_groups, .trunk_name = tree_trunk_name,  \
    .way = tree_way,                                                                                         \
  }

/* --- leaf-spines and fat-trees --- */

static bool
has_cores (const LsClusterSpec *s)
{
  return s->fabric == LS_FABRIC_FAT_TREE;
}

/* Leaves of a full pod. */
static uint64_t
leaves_per_pod (const LsClusterSpec *s)
{
  if (tree_n_leaves (s) == 0)
    return 0;
  return has_cores (s) ? (uint64_t) s->network.nodes_per_pod / s->network.nodes_per_leaf * s->network.rails
                       : tree_n_leaves (s);
}

static uint64_t
n_pods (const LsClusterSpec *s)
{
  return tree_n_leaves (s) == 0 ? 0 : (tree_n_leaves (s) + leaves_per_pod (s) - 1) / leaves_per_pod (s);
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
  return tree_n_leaves (s) > 1 ? (uint32_t) round (tree_leaf_uplinks (s)) : 0;
}
static uint32_t
n_core_uplinks (const LsClusterSpec *s)
{
  return has_cores (s) && n_pods (s) > 1 ? (uint32_t) round (spine_uplinks (s)) : 0;
}

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
  double cores = round (tree_leaf_uplinks (s)) * spine_uplinks (s),
         spines = (double) n_pods (s) * round (tree_leaf_uplinks (s));
  if (cores > LS_CLUSTER_MAX_FABRIC || spines > LS_CLUSTER_MAX_FABRIC)
    return ls_spec_conflict (error, "%u pods need %.0f spines and %.0f cores; expected at most %u of each",
                             (uint32_t) n_pods (s), spines, cores, LS_CLUSTER_MAX_FABRIC);
  if (!tree_is_whole (spine_uplinks (s)))
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
  return tree_check_leaves (s, error) && tree_check_uplinks (s, error)
      && (!has_cores (s) || check_cores (s, error));
}

static double
n_links (const LsClusterSpec *s)
{
  double spines = (double) n_pods (s) * n_spines (s);
  return 2
      * ((double) s->n_nodes * s->nics.n + (double) tree_n_leaves (s) * n_spines (s)
         + spines * n_core_uplinks (s));
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

static LsFabric *
tree_new (const LsClusterSpec *s, LsArena *arena)
{
  LsTree *f = ls_arena_new_array (arena, LsTree, 1);
  f->is_hashed = s->network.routing == LS_ROUTING_ECMP;
  f->n_leaves = (uint32_t) tree_n_leaves (s);
  f->leaves_per_pod = (uint32_t) leaves_per_pod (s);
  f->n_pods = (uint32_t) n_pods (s);
  f->spines_per_pod = n_spines (s);
  f->uplinks = n_core_uplinks (s);
  f->leaf_latency = s->network.spine.latency;
  f->core_latency = s->network.core.latency;
  f->pod = "pod";
  f->spines = "spines";
  f->cores = "cores";
  f->hub = LS_NODE_SPINE;
  f->top = LS_NODE_CORE;
  f->n_top = f->spines_per_pod * f->uplinks;
  f->add_leaf = add_leaf;
  f->add_pod = add_pod;
  tree_number (f);
  return &f->base;
}

const LsFabricKind ls_fabric_leaf_spine = LS_TREE_KIND ("leaf-spine", check, n_links, tree_new),
                   ls_fabric_fat_tree = LS_TREE_KIND ("fat-tree", check, n_links, tree_new);

/* ---- dragonfly and dragonfly+ (fabric.h) whose switches take detours: with adaptive routing, or always
 * (valiant) ----
 *
 * What joins its members each to each is a star: each has one trunk out and one in, of as many links as its
 * traffic has ways (below). So a dragonfly is a tree of trunks, whose ways do not depend on
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
  return ls_dragonfly_has_spines (s) ? (uint32_t) round (tree_leaf_uplinks (s)) : 0;
}

uint32_t
ls_dragonfly_n_groups (const LsClusterSpec *s)
{
  return s->nics.n == 0
      ? 0
      : (uint32_t) (((uint64_t) s->n_nodes + s->network.nodes_per_group - 1) / s->network.nodes_per_group);
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
    return tree_check_uplinks (s, error);
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
  return tree_check_leaves (s, error) && check_routing (s, error) && check_groups (s, error)
      && check_local (s, error) && check_global (s, error);
}

/* Vertices of a group that join its leaves: spines, or one for links from each to each. */
static uint32_t
n_hubs (const LsClusterSpec *s)
{
  return tree_n_leaves (s) < 2 ? 0 : ls_dragonfly_has_spines (s) ? ls_dragonfly_spines (s) : 1;
}

static double
dragonfly_n_links (const LsClusterSpec *s)
{
  return 2
      * ((double) s->n_nodes * s->nics.n + (double) tree_n_leaves (s) * n_hubs (s)
         + (double) ls_dragonfly_n_groups (s) * n_hubs (s));
}

/* Half of a link, or of the two of a detour. */
static LsTime
latency_of_arm (const LsClusterSpec *s, const LsLinkSpec *link)
{
  return s->network.routing == LS_ROUTING_VALIANT ? link->latency : link->latency / 2;
}

/* The last pair of trunks is an arm of a star that joins n members, n_busy of them with traffic. */
static void
make_arm (const LsTree *f, LsCluster *c, uint32_t n, uint32_t n_busy, uint32_t n_links_each, LsTime latency)
{
  double links = ls_all_to_all_links (f->base.spec->network.routing, n, n_busy, n_links_each);
  ls_layout_limit (c, links / ((double) (n - 1) * n_links_each), latency);
}

static void
add_switch (const LsTree *f, LsCluster *c, uint32_t leaf)
{
  const LsClusterSpec *s = &c->spec;
  LsEnd end = LS_TREE_LEAF (f->base.first_vertex + leaf, leaf);
  LsEnd hub = LS_TREE_SPINES (f, f->base.first_vertex + f->n_leaves + leaf / f->leaves_per_pod);
  uint32_t n = f->leaves_per_pod;
  ls_layout_pair (c, end, hub, 1, (n - 1) * s->network.local_links, &s->network.spine);
  make_arm (f, c, n, MIN (n, f->n_leaves), s->network.local_links, f->leaf_latency);
}

static void
add_group (const LsTree *f, LsCluster *c, uint32_t group)
{
  const LsClusterSpec *s = &c->spec;
  uint32_t n = f->spines_per_pod, v_hub = f->base.first_vertex + f->n_leaves,
           v_globals = v_hub + f->n_pods * n, links = (s->network.groups - 1) * s->network.global_links;
  ls_layout_trunks (c, LS_TREE_POD (f, group), LS_TREE_CORES (f), &s->network.core);
  for (uint32_t i = 0; i < n && i < links; i++)
    ls_layout_links (c, v_hub + group * n + i, v_globals, links / n + (i < links % n), &s->network.core);
  make_arm (f, c, s->network.groups, f->n_pods, s->network.global_links, f->core_latency);
}

static LsFabric *
dragonfly_new (const LsClusterSpec *s, LsArena *arena)
{
  LsTree *f = ls_arena_new_array (arena, LsTree, 1);
  bool has_spines = ls_dragonfly_has_spines (s);
  f->n_leaves = (uint32_t) tree_n_leaves (s);
  f->n_pods = ls_dragonfly_n_groups (s);
  f->leaves_per_pod = ls_dragonfly_leaves (s);
  f->spines_per_pod = n_hubs (s);
  f->uplinks = f->n_pods > 1 ? 1 : 0;
  f->leaf_latency = has_spines ? s->network.spine.latency : latency_of_arm (s, &s->network.spine);
  f->core_latency = latency_of_arm (s, &s->network.core) + (has_spines ? 0 : s->network.spine.latency / 2);
  f->pod = "group";
  f->spines = has_spines ? "spines" : "locals";
  f->cores = "globals";
  f->hub = has_spines ? LS_NODE_SPINE : LS_NODE_LOCALS;
  f->top = LS_NODE_GLOBALS;
  f->n_top = f->uplinks;
  f->add_leaf = has_spines ? add_leaf : add_switch;
  f->add_pod = add_group;
  tree_number (f);
  return &f->base;
}

const LsFabricKind ls_fabric_dragonfly
    = LS_TREE_KIND ("dragonfly", ls_dragonfly_check, dragonfly_n_links, dragonfly_new),
    ls_fabric_dragonfly_plus
    = LS_TREE_KIND ("dragonfly+", ls_dragonfly_check, dragonfly_n_links, dragonfly_new);

/* What a member of a group sends to the others, where each is joined to each by as many links and switches
 * choose ways as they fill.
 *
 * Problem. In a dragonfly the switches of a group are joined so, and the groups: few links lead from one to
 * the next, and a ring or a pipeline sends all that leaves a group to one other. Adaptive routing (UGAL)
 * takes the direct links until they are full, and then detours over a third member, which cross two links
 * instead of one. How much can a member send?
 *
 * Model. Of n members b have traffic, each to one other, and k links join any two. A member has k direct
 * links to where it sends, and k (n - 2) others, over which detours spread evenly. The second link of a
 * detour begins at a member that may need it itself: of those that can be in between, b - 2 of n - 2. So a
 * byte on a detour takes of its kind
 *
 *     w = 1 + (b - 2) / (n - 2)     links that members with traffic have,
 *
 * and what leaves a member at most is, in links,
 *
 *     minimal    k                           direct links alone
 *     valiant    k (n - 2) / w               always a detour
 *     adaptive   k + k (n - 2) / w           direct links, then detours
 *
 * A member is so a star's arm: one trunk out and one in, of that many links, whoever it sends to. That keeps
 * rates independent of which members talk to each other.
 *
 * Worked example. 74 groups, 4 links between any two, all of them busy: w = 2, and of its 292 links a group
 * has 4 + 4 * 72 / 2 = 148 for what leaves it, 144 with valiant, 4 with minimal. If only two groups have
 * traffic, all others are detours: w = 1, 4 + 288 = 292.
 *
 * Deviations. Where all members send to all others as much, direct links suffice and carry k (n - 1), up to
 * twice of what is said here with b = n; of few busy members among many it is the same. A member counts as
 * busy if the cluster has nodes there, whether or not a job is on them. Detours take links of switches
 * within the group between, which is not counted. Adaptive switches see queues nearby and react late; here
 * they know all. Other jobs' traffic is not there.
 *
 * References: J. Kim, W. J. Dally, S. Scott, D. Abts, Technology-driven, highly-scalable dragonfly topology,
 * ISCA 2008 (the topology, VAL and UGAL: adversarial traffic gets half under VAL); A. Shpiner et al.,
 * Dragonfly+: low cost topology for scaling datacenters, HiPINEB 2017; D. De Sensi et al., An in-depth
 * analysis of the Slingshot interconnect, SC 2020 (adaptive routing that weighs minimal and non-minimal
 * ways). */
double
ls_all_to_all_links (LsRouting routing, uint32_t n, uint32_t n_busy, uint32_t n_links)
{
  g_assert (n > 1 && n_busy > 0 && n_busy <= n);
  if (routing == LS_ROUTING_MINIMAL || n == 2)
    return n_links;
  double between = n - 2.0, weight = 1 + (n_busy > 2 ? (n_busy - 2) / between : 0);
  return n_links * (between / weight + (routing == LS_ROUTING_VALIANT ? 0 : 1));
}
