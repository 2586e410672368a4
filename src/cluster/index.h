/* cluster/index.h — where vertices and trunks lie, and what the builder needs (private to cluster/).
 *
 * Every node of a kind is laid out alike, so that ids follow from counts; a table over the nodes is
 * needed only where there are several kinds:
 *
 *     vertices   interior of node 0, of node 1, .., then the switches of the fabric
 *     trunks     node 0: interior, NIC ports; node 1: ..; then those of the fabric
 *
 * In a *brief* cluster one node is laid out for all that are alike, and of the fabric one pair of trunks of a
 * leaf and one of a pod; they have no names there. */
#ifndef LS_CLUSTER_INDEX_H
#define LS_CLUSTER_INDEX_H

#include "base/diag.h"
#include "cluster/fabric.h"
#include "cluster/interior.h"

/* --- a spec: copies, limits, and what its checks share (spec.c) --- */

/* Guards against typing errors, far above any machine: GPUs; leaves, and uplinks of
 * one leaf, which are its spines; links of the graph, each direction one (2^20 GPUs
 * in DGX H100 nodes have a third of that; a link takes 48 bytes); letters of a vertex. */
#define LS_CLUSTER_MAX_GPUS   (1u << 20)
#define LS_CLUSTER_MAX_FABRIC 65536
#define LS_CLUSTER_MAX_LINKS  (1u << 26)
#define LS_MAX_VERTEX_NAME    64

void ls_cluster_spec_copy (const LsClusterSpec *spec, LsClusterSpec *ret_copy);

/* LsNodeKind of a vertex of its list; -1: there is none of that name. */
int ls_spec_list_kind (const LsClusterSpec *s, const char *name);

/* LS_ERROR_CONFLICT; FALSE, to be returned. */
#define ls_spec_conflict(error, ...) ls_fail (error, LS_ERROR_CONFLICT, __VA_ARGS__)

/* Whether a link that is used has a rate. */
gboolean ls_spec_check_link (const char *what, gboolean is_used, const LsLinkSpec *link, GError **error);

/* Of link i of a list: it joins two others, which no link before it joins (joined: a set of pairs, which it
 * is added to), and has these figures. is_in_order: two names stand in order. */
gboolean ls_spec_check_listed (const char *what, guint i, const LsListLink *link, bool is_in_order,
                               const LsLinkSpec *figures, GHashTable *joined, GError **error);

/* "Evenly" both ways: 8 NICs on 4 switches, or 2 NICs on 4 switches. */
static inline gboolean
ls_deals_out (uint32_t a, uint32_t b)
{
  return a % b == 0 || b % a == 0;
}

/* --- what was built --- */

/* What all nodes of a kind have in common. */
typedef struct {
  LsInterior *interior;
  uint32_t n_trunks;                /* of the interior and the fabric          */
  uint32_t n_links, interior_links; /* of each node; the latter come first     */
  uint32_t *proxies;                /* without faults (route.h); NULL: no PXN  */
} LsNodeLayout;

/* Where what a node has begins. */
typedef struct {
  uint32_t vertex, trunk, link;
} LsNodeStart;

typedef struct LsTopoIndex {
  LsArena *arena; /* of all that is here */
  LsNodeLayout layouts[LS_MAX_NODE_KINDS];
  LsNodeStart *starts; /* [n_nodes + 1]; NULL: all nodes are alike */
  LsFabric *fabric;
  GStringChunk *names;
  bool is_brief;                /* few nodes are laid out, and the first of these stands for all others */
  uint32_t *own;                /* [n_own] in order, of a brief cluster: nodes that stand for themselves */
  uint32_t n_own, first_alike;  /* and the node that is laid out for the others                        */
  bool has_links;               /* what is laid out now; not of the fabric of a brief cluster */
  GHashTable *faulty_nodes;     /* host > LsNodeFaults (faults.h); NULL: none             */
  bool has_failed_switch_links; /* between switches of the fabric                         */
} LsTopoIndex;

static inline const LsNodeLayout *
ls_layout_of (const LsCluster *c, uint32_t host)
{
  return &c->index->layouts[ls_cluster_kind_of (c, host)];
}

static inline const LsInterior *
ls_interior_of (const LsCluster *c, uint32_t host)
{
  return ls_layout_of (c, host)->interior;
}

/* Which of those that are laid out a node is; with the number of nodes, how many are. */
static inline uint32_t
ls_slot_of (const LsCluster *c, uint32_t host)
{
  const LsTopoIndex *x = c->index;
  if (!x->is_brief)
    return host;
  if (host == c->spec.n_nodes)
    return x->n_own + 1;
  uint32_t low = 0, high = x->n_own;
  while (low < high) {
    uint32_t middle = (low + high) / 2;
    *(x->own[middle] < host ? &low : &high) = x->own[middle] < host ? middle + 1 : middle;
  }
  return low < x->n_own && x->own[low] == host ? low + 1 : 0;
}

/* Of what a node has, or with the number of nodes behind the last: numbers of trunks are those of the whole
 * cluster, but vertices, links and slots of trunks those of what is laid out. Links while that goes on. */
static inline uint32_t
ls_first_vertex (const LsCluster *c, uint32_t host)
{
  const LsTopoIndex *x = c->index;
  return x->starts ? x->starts[host].vertex : ls_slot_of (c, host) * x->layouts[0].interior->n_vertices;
}
static inline uint32_t
ls_first_trunk_slot (const LsCluster *c, uint32_t host)
{
  const LsTopoIndex *x = c->index;
  return x->starts ? x->starts[host].trunk : ls_slot_of (c, host) * x->layouts[0].n_trunks;
}
static inline uint32_t
ls_first_trunk (const LsCluster *c, uint32_t host)
{
  const LsTopoIndex *x = c->index;
  return x->starts ? x->starts[host].trunk : host * x->layouts[0].n_trunks;
}
static inline uint32_t
ls_first_link (const LsCluster *c, uint32_t host)
{
  const LsTopoIndex *x = c->index;
  return x->starts ? x->starts[host].link : ls_slot_of (c, host) * x->layouts[0].n_links;
}

/* Trunks of the fabric that are laid out: of a brief cluster a pair of an edge, and one of a pod. */
static inline uint32_t
ls_fabric_slots (const LsCluster *c)
{
  const LsFabric *fabric = c->index->fabric;
  return !c->index->is_brief
      ? fabric->n_trunks
      : 2 * (uint32_t) (fabric->n_lower > 0) + 2 * (uint32_t) (fabric->n_trunks > fabric->n_lower);
}

/* Where a trunk is laid out. */
static inline uint32_t
ls_trunk_slot (const LsCluster *c, uint32_t trunk)
{
  const LsTopoIndex *x = c->index;
  if (!x->is_brief)
    return trunk;
  if (trunk >= x->fabric->first_trunk) {
    uint32_t i = trunk - x->fabric->first_trunk, n_lower = x->fabric->n_lower;
    return i % 2 + 2 * (uint32_t) (i >= n_lower && n_lower > 0) + ls_first_trunk_slot (c, c->spec.n_nodes);
  }
  uint32_t per_node = x->layouts[0].n_trunks;
  return ls_first_trunk_slot (c, trunk / per_node) + trunk % per_node;
}

static inline bool
ls_trunk_is_failed (const LsCluster *c, uint32_t trunk)
{
  return g_array_index (c->trunks, LsTrunk, ls_trunk_slot (c, trunk)).is_failed;
}

/* Trunk i of those that the fabric laid out with this node. */
static inline uint32_t
ls_node_trunk (const LsCluster *c, uint32_t host, uint32_t i)
{
  return ls_first_trunk (c, host) + ls_interior_of (c, host)->n_trunks + i;
}

static inline uint32_t
ls_nic_vertex (const LsCluster *c, uint32_t host, uint32_t nic)
{
  return ls_first_vertex (c, host) + ls_interior_of (c, host)->v_nic + nic;
}

/* One more trunk on the way, taken by all of the flow. */
static inline void
ls_route_hop (LsRoute *r, uint32_t trunk, LsTime latency)
{
  g_assert (r->n_hops < LS_ROUTE_MAX_HOPS);
  r->hop[r->n_hops++] = (LsHop) { .trunk = trunk, .share = LS_HOP_WHOLE };
  r->latency += latency;
}

/* --- building (spec.c) --- */

/* Putting vertices, links, trunks and their names into a cluster
 * that is being built. */

/* One end of a link, by its name: "node3/gpu5". */
typedef struct {
  uint32_t vertex;
  uint32_t host;    /* LS_NO_NUMBER: of the fabric                              */
  const char *kind; /* "gpu", "leaf"                                            */
  uint32_t number;  /* LS_NO_NUMBER: it stands for all of its kind ("spines"), or
                       kind is the whole name                                   */
} LsEnd;

#define LS_NO_NUMBER UINT32_MAX
#define LS_END(vertex_, host_, kind_, number_)                                                               \
  ((LsEnd) { .vertex = (vertex_), .host = (host_), .kind = (kind_), .number = (number_) })

/* Newly allocated: "node3/gpu5>nvswitch". */
char *ls_layout_name (LsEnd from, LsEnd to);

/* n more vertices of a kind, with index 0 .. n-1. */
void ls_layout_vertices (LsCluster *c, LsNodeKind kind, uint32_t host, uint32_t n);

/* A pair of trunks, a > b then b > a, of n_physical links between a and the n vertices
 * from b on; the first of these get one more where it does not divide (18 NVLinks on 4
 * planes: 5 5 4 4). */
void ls_layout_pair (LsCluster *c, LsEnd a, LsEnd b, uint32_t n, uint32_t n_physical, const LsLinkSpec *spec);

/* The same in two steps, for links from several vertices: a pair of trunks without links;
 * and n_physical links between a and b, both ways, in the last pair. */
void ls_layout_trunks (LsCluster *c, LsEnd a, LsEnd b, const LsLinkSpec *spec);
void ls_layout_links (LsCluster *c, uint32_t a, uint32_t b, uint32_t n_physical, const LsLinkSpec *spec);

/* The last pair of trunks carries that share of what its links do, each of these alike, and takes that long.
 * */
void ls_layout_limit (LsCluster *c, double share, LsTime latency);

/* --- faults (faults.c) --- */

typedef struct {
  LsWays *ways[LS_LEG_FROM_NIC + 1]; /* by leg; NULL: no search here     */
  uint32_t *nic_of_gpu;              /* [GPUs of the node]; NULL: no NICs  */
  uint32_t *proxies;                 /* as LsTopoIndex.proxies          */
  bool has_nvlink_fault;             /* a failed one                    */
} LsNodeFaults;

/* All in the order of a build. Marks trunks and scales capacities. LS_ERROR_CONFLICT: no such link. */
gboolean ls_faults_apply (LsCluster *c, GError **error);
/* After the fabric is finished: tables of the nodes concerned, and whether all that must
 * be reached can be. */
gboolean ls_faults_finish (LsCluster *c, GError **error);

/* LsLink of first .. end - 1 that work, newly allocated, their vertices and trunks counted from these. */
GArray *ls_working_links (const LsCluster *c, guint first, guint end, uint32_t vertex, uint32_t trunk);

/* The node that a trunk of this name is in; n_nodes: in none. */
uint32_t ls_faults_node_named (const LsClusterSpec *spec, const char *trunk);

/* NULL: this node has none. */
static inline const LsNodeFaults *
ls_faults_of_node (const LsCluster *c, uint32_t host)
{
  GHashTable *faulty = c->index->faulty_nodes;
  return faulty ? g_hash_table_lookup (faulty, GUINT_TO_POINTER (host)) : NULL;
}

/* A node of that kind without, else one with; n_nodes: there is none of that kind. */
uint32_t ls_first_sound_node (const LsCluster *c, uint32_t kind);

#endif
