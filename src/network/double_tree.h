/* network/double_tree.h — two binary trees over n hosts, as NCCL builds them (private to network/).
 *
 * In the first, odd hosts are leaves, hosts 2 mod 4 stand above them, and so on: the
 * parent of r, whose lowest set bit is b, is r with b cleared and the next bit set, or
 * with b cleared only where that host does not exist. Host 0 is the root. The second
 * tree is the first one mirrored (n even) or moved on by one host (n odd): who is a leaf
 * in one is not in the other, except that with n odd one host may be a leaf twice. Half
 * of the data goes through each, so that every host forwards about as much as it
 * contributes.
 *
 * Hosts that load alike. Both directions of an edge carry the same. So where all hosts
 * have the same GPUs in a call, what is loaded at one depends on nothing but how many
 * of its edges, of both trees, end in its group, in its pod and elsewhere; and what is
 * loaded at a group or a pod, on its hosts. A period of hosts (place_loads.h) is as an
 * earlier one if its hosts are, one by one.
 *
 * Worked example. 32 hosts, 4 a group. Host 12 has in the first tree host 8 above it,
 * and 10 and 14 below, of which 14 is in its group. In the second it is what host 31 -
 * 12 = 19 is in the first, a leaf below 18, mirrored: 13, in its group. So two of its
 * edges end in its group and two elsewhere. Host 20, two groups on, has 24 above it
 * and 18 and 22 below; it is as host 11 in the second tree, a leaf below 10, mirrored:
 * 21. So are the others of groups 3 and 5, and of 1, alike, and those of groups 2, 4
 * and 6. Groups 0 and 7 have a root.
 *
 * Reference: Sanders, Speck & Traeff, Two-tree algorithms for full bandwidth broadcast,
 * reduction and scan, Parallel Computing 35 (2009); NCCL 2.30.7 src/graph/trees.cc. */
#ifndef LS_NETWORK_DOUBLE_TREE_H
#define LS_NETWORK_DOUBLE_TREE_H

#include "network/algorithm.h"
#include "network/place_loads.h"

#define LS_NO_HOST UINT32_MAX

typedef struct {
  uint32_t parent;   /* LS_NO_HOST at the root            */
  uint32_t child[2]; /* in order; LS_NO_HOST: none        */
  uint32_t depth;    /* 0 at the root; of ls_double_tree() */
} LsTreeNode;

typedef struct {
  uint32_t n_trees;    /* ls_n_trees()      */
  uint32_t depth;      /* of the deeper one */
  LsTreeNode *node[2]; /* [n] */
} LsDoubleTree;

/* Two, or one over one host. */
static inline uint32_t
ls_n_trees (uint32_t n_hosts)
{
  return n_hosts > 1 ? 2 : 1;
}

/* Without its depth. */
LsTreeNode ls_tree_node (uint32_t n_hosts, uint32_t tree, uint32_t host);
LsDoubleTree ls_double_tree (uint32_t n_hosts, LsArena *arena);

/* LsCollPeriod.like of a call whose hosts are joined by these trees; NULL: hosts have not the same GPUs, or
 * most periods are like no other. In the arena. Cost: linear in the hosts. */
const uint32_t *ls_double_tree_alike (const LsCollCall *call, const LsCollPeriod *p, LsArena *arena);

/* What calls on the same GPUs have in common, kept from one to the next (private to
 * network/). */

struct LsCollMemo {
  LsArena *arena;
  const LsCluster *cluster; /* NULL: not used yet                             */
  GPtrArray *known;         /* of rounds.c                                    */
  const uint32_t *gpus;     /* [n] of the latest call                         */
  uint32_t n;
  LsCollSeats seats;     /* theirs                                        */
  bool has_alike;        /* LsCollAlgorithm.alike, of theirs, was asked for */
  const uint32_t *alike; /* what it said                                  */
  LsDoubleTree trees;
  uint32_t n_hosts_of_trees; /* 0: none yet */
};

#endif
