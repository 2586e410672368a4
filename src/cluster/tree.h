/* cluster/tree.h — what trees of switches have in common (private to cluster/): leaves, each with a rail of
 * some nodes; pods of leaves; something that joins the leaves of a pod, and something that joins pods.
 * Numbers of trunks and ways follow by arithmetic.
 *
 * Trunks of a node: NIC > leaf and back, a pair per NIC. The rest, in pairs, up and down:
 *
 *     ideal   leaf > what joins those of its pod, then pod > what joins pods
 *     hashed  leaf > spine by (leaf, spine of its pod), then spine > core by (spine, uplink) */
#ifndef LS_CLUSTER_TREE_H
#define LS_CLUSTER_TREE_H

#include "cluster/fabric.h"
#include "cluster/spec.h"

/* A fabric whose kind is made of the functions below. */
typedef struct {
  LsFabric base;
  const LsClusterSpec *spec;
  bool is_hashed;
  uint32_t n_leaves, n_pods, leaves_per_pod;
  uint32_t spines_per_pod, uplinks;  /* of a spine; 0 without cores; hashed: choices on the way up */
  uint32_t t_cores;                  /* first of the trunks to cores, set by ls_tree_number() */
  LsTime leaf_latency, core_latency; /* of a trunk of a leaf, and of a pod */
  const char *pod, *spines, *cores;  /* in names of trunks: "pod", "spines", "cores" */
} LsTree;

/* --- of a spec --- */

/* Leaves with nodes; 0 without NICs. */
uint64_t ls_tree_n_leaves (const LsClusterSpec *s);
/* Uplinks of a leaf by oversubscription, as a number that need not be whole. */
double ls_tree_leaf_uplinks (const LsClusterSpec *s);
bool ls_tree_is_whole (double n);

/* Of nodes with NICs: LS_ERROR_CONFLICT if they do not deal out to leaves, or a link has no rate; and if
 * uplinks by oversubscription are too many, or with more than one leaf no whole number. */
gboolean ls_tree_check_leaves (const LsClusterSpec *s, GError **error);
gboolean ls_tree_check_uplinks (const LsClusterSpec *s, GError **error);

/* --- layout --- */

#define LS_TREE_LEAF(vertex_, leaf_) LS_END (vertex_, LS_NO_NUMBER, "leaf", leaf_)
#define LS_TREE_SPINES(f_, vertex_)  LS_END (vertex_, LS_NO_NUMBER, (f_)->spines, LS_NO_NUMBER)
#define LS_TREE_POD(f_, pod_)        LS_END (0, LS_NO_NUMBER, (f_)->pod, pod_)
#define LS_TREE_CORES(f_)            LS_END (0, LS_NO_NUMBER, (f_)->cores, LS_NO_NUMBER)

/* Of what is set, all that counts trunks. */
void ls_tree_number (LsTree *f);

/* The leaf of a NIC; and the links of a node's NICs to leaves, as lay_out_node of a kind, by its edge. */
uint32_t ls_tree_leaf_of (const LsClusterSpec *s, uint32_t host, uint32_t nic);
void ls_tree_lay_out_ports (const LsFabric *fabric, LsCluster *c, uint32_t host,
                            uint32_t (*edge) (const LsFabric *, uint32_t, uint32_t));

/* The trunks of leaves, then of pods, by a function for each; of a brief cluster those of the first. */
typedef void LsTreeAdd (const LsTree *f, LsCluster *c, uint32_t number);
void ls_tree_lay_out_trunks (const LsTree *f, LsCluster *c, LsTreeAdd *add_leaf, LsTreeAdd *add_pod);

/* --- members of a kind --- */

#define LS_TREE_KIND(name_, check_, n_links_, new_, lay_out_)                                                \
  {                                                                                                          \
    .name = (name_), .check = (check_), .n_links = (n_links_), .new = (new_), .free = ls_tree_free,          \
    .lay_out_node = ls_tree_lay_out_node, .lay_out = (lay_out_), .edge = ls_tree_edge,                       \
    .reaches = ls_tree_reaches, .groups = ls_tree_groups, .trunk_name = ls_tree_trunk_name,                  \
    .way = ls_tree_way,                                                                                      \
  }

void ls_tree_free (LsFabric *fabric);
uint32_t ls_tree_edge (const LsFabric *fabric, uint32_t host, uint32_t nic);
void ls_tree_lay_out_node (const LsFabric *fabric, LsCluster *c, uint32_t host);
bool ls_tree_reaches (const LsFabric *fabric, const LsCluster *c, uint32_t edge_from, uint32_t edge_to);
bool ls_tree_groups (const LsFabric *fabric, LsPlaces *ret_places);
char *ls_tree_trunk_name (const LsFabric *fabric, uint32_t trunk);
void ls_tree_way (const LsFabric *fabric, const LsCluster *c, const LsFabricFlow *flow, LsRoute *route);

#endif
