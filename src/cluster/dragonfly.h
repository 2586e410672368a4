/* cluster/dragonfly.h — groups of switches that are joined each to each: sizes and what is legal (private to
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
#ifndef LS_CLUSTER_DRAGONFLY_H
#define LS_CLUSTER_DRAGONFLY_H

#include "cluster/cluster.h"

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

#endif
