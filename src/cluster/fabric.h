/* cluster/fabric.h — what joins the nodes (private to cluster/): a kind of fabric lays
 * out switches, and the links from the NICs of the nodes to them, and says which trunks
 * a flow from one node's NIC to another node's NIC crosses.
 *
 * Trunks come in two blocks, so that their numbers follow by arithmetic:
 *
 *     of node h:  ls_node_trunk (c, h, i)    i < 2 * NICs of the node, after its interior
 *                                            (NIC > leaf and back: 2 * nic + direction)
 *     the rest:   fabric->first_trunk + i    i < n_trunks, after all nodes
 *
 * Vertices: fabric->first_vertex + i, i < n_vertices, after those of all nodes.
 *
 * A trunk is what traffic shares evenly. With ideal spreading the links of a leaf to all
 * spines are one trunk; with hashing (spec->routing) each link is one.
 *
 * NIC i of a node is on rail i mod rails, however many it has. A tree is dimensioned for nodes of the first
 * kind: others load its leaves with more or less.
 *
 * A new kind: one file fabric_X.c that defines an LsFabricKind, a member of LsFabricId
 * (cluster.h), a line in fabric_kinds (build.c), its members in LsClusterSpec and
 * its keys in data/machines/read_cluster.c. */
#ifndef LS_CLUSTER_FABRIC_H
#define LS_CLUSTER_FABRIC_H

#include "cluster/places.h"
#include "cluster/route.h"

typedef struct LsFabric LsFabric;

/* A flow between two nodes. Where switches hash, the flows of one collective between the
 * same two NICs differ by their channel. */
typedef struct {
  uint32_t gpu_from, gpu_to;    /* of the cluster     */
  uint32_t node_from, nic_from; /* NIC within its node */
  uint32_t node_to, nic_to;
  uint32_t channel;
} LsFabricFlow;

typedef struct {
  const char *name; /* "leaf-spine" */

  /* Whether it can be built for these nodes and NICs, links included; one node without
   * NICs needs no fabric and passes. As LsInteriorKind.check. */
  gboolean (*check) (const LsClusterSpec *spec, GError **error);
  /* Links, each direction one, those at the NICs included. Of a checked spec. */
  double (*n_links) (const LsClusterSpec *spec);

  LsFabric *(*new) (const LsClusterSpec *spec, LsArena *arena);

  /* Appends the switches, the links and trunks between them; after all nodes. */
  void (*lay_out) (const LsFabric *fabric, LsCluster *c);

  /* NULL, or: after all is laid out and faults are known. Tables of ways; LS_ERROR_CONFLICT. */
  gboolean (*finish) (LsFabric *fabric, const LsCluster *c, GError **error);

  /* The switch that a NIC is at, as a number below n_edges; and whether, with what has
   * failed, a way leads from one of these to another. */
  uint32_t (*edge) (const LsFabric *fabric, uint32_t host, uint32_t nic);
  const char *(*edge_name) (const LsFabric *fabric, uint32_t edge); /* NULL: "leaf4" */
  bool (*reaches) (const LsFabric *fabric, const LsCluster *c, uint32_t edge_from, uint32_t edge_to);

  /* NULL, or: fills in groups and pods, and what they have; false: there are none. */
  bool (*groups) (const LsFabric *fabric, LsPlaces *ret_places);

  /* NULL without groups: the name of one of its trunks, newly allocated. */
  char *(*trunk_name) (const LsFabric *fabric, uint32_t trunk);

  /* Appends hops (trunks of the cluster, shares, latency) from the switch of the one NIC to that of the
   * other. */
  void (*way) (const LsFabric *fabric, const LsCluster *c, const LsFabricFlow *flow, LsRoute *route);
} LsFabricKind;

/* The first member of each kind's own struct. */
struct LsFabric {
  uint32_t n_vertices, n_trunks; /* by new()     */
  uint32_t n_edges;              /* by new(); the first vertices are these */
  uint32_t n_lower; /* by new(), with groups: trunks up and down of edges, in turns, before those of pods */
  const LsFabricKind *kind;  /* by the builder, as the rest */
  const LsClusterSpec *spec; /* that of new() */
  uint32_t first_vertex, first_trunk;
};

extern const LsFabricKind ls_fabric_leaf_spine, ls_fabric_fat_tree, ls_fabric_list, ls_fabric_dragonfly,
    ls_fabric_dragonfly_plus;
extern const LsFabricKind ls_fabric_minimal; /* both of these, with minimal routing */

/* Hashed routing: a switch sends all packets of a flow over one of the
 * links that serve it equally well, so that flows can collide while links stand idle.
 *
 * Problem. k flows from one leaf on m uplinks: how unlucky is the busiest uplink?
 *
 * Model. A flow is (source NIC, destination NIC, channel); a channel is what hardware has
 * as a queue pair with a UDP source port of its own. At each switch with n choices it
 * takes number floor (n h / 2^32), h the upper half of
 *
 *     mix (mix (mix (mix (seed) + source NIC) + destination NIC) + (channel, switch))
 *
 * with mix the output function of SplitMix64. So every switch hashes on its own, and a
 * failed link moves only what is chosen anew.
 *
 * Worked example: 8 flows on 8 uplinks leave the busiest with 2.60 flows on average over
 * seeds (balls into bins, exact over all 8^8 cases): 39 % of what ideal spreading gets.
 *
 * Deviations. Switches hash with functions of their makers, often the same at each tier
 * (polarisation); a channel's messages here never change their way.
 *
 * Reference: G. L. Steele, D. Lea, C. H. Flood, Fast splittable pseudorandom number
 * generators, OOPSLA 2014 (mix64variant13). */

/* Which of n > 0 equal choices the flow takes at this switch. */
uint32_t ls_ecmp_choose (const LsClusterSpec *spec, const LsFabricFlow *flow, uint32_t switch_number,
                         uint32_t n);

/* Groups of switches that are joined each to each: sizes and what is legal (private to
 * cluster/).
 *
 *     dragonfly    the switches of a group are joined each to each, too, by local_links
 *     dragonfly+   a group is a leaf-spine, and links between groups begin at its spines
 *
 * A switch with nodes is a leaf; it serves nodes_per_leaf nodes of its rail. A group has nodes_per_group
 * nodes, the last one of a cluster perhaps fewer, and all its switches. The machine has `groups`, of which
 * the nodes of the cluster fill the first: jobs smaller than the machine have the others for detours.
 *
 * Worked example. 9,472 nodes of 4 NICs, 4 nodes a leaf, 128 nodes a group: 32 leaves of 16 NICs in each of
 * 74 groups; with local_links 1 and global_links 4 a leaf has 16 + 31 ports in use, and the group 292 links
 * to others: 57 % of its 512 NICs.
 *
 * Not modelled: groups of different sizes; which switch of a group a link to another is at (but with minimal
 * routing); ports of a switch as a limit. */

static inline bool
ls_dragonfly_has_spines (const LsClusterSpec *s)
{
  return s->fabric == LS_FABRIC_DRAGONFLY_PLUS;
}

/* Of a checked spec: leaves and spines of a full group, groups with nodes, links from a group to all others.
 * */
uint32_t ls_dragonfly_leaves (const LsClusterSpec *s);
uint32_t ls_dragonfly_spines (const LsClusterSpec *s);
uint32_t ls_dragonfly_n_groups (const LsClusterSpec *s);

/* As LsFabricKind.check. */
gboolean ls_dragonfly_check (const LsClusterSpec *s, GError **error);

/* The leaf of a NIC of a tree or a dragonfly, as LsFabricKind.edge, and its end of a link. */
#define LS_TREE_LEAF(vertex_, leaf_) LS_END (vertex_, LS_NO_NUMBER, "leaf", leaf_)
uint32_t ls_tree_leaf_of (const LsFabric *fabric, uint32_t host, uint32_t nic);

/* Appends the links and trunks of one node's NICs, right after its interior (spec.c). */
void ls_fabric_lay_out_ports (const LsFabric *fabric, LsCluster *c, uint32_t host);

/* Links, of one direction, that a member's traffic to one other has: of n > 1 members joined by n_links
 * between any two, n_busy > 0 with traffic (fabric_tree.c). Need not be whole. */
double ls_all_to_all_links (LsRouting routing, uint32_t n, uint32_t n_busy, uint32_t n_links);

#endif
