/* network/double_tree.c — two binary trees over the same hosts, as NCCL builds them.
 *
 * In the first, odd hosts are leaves, hosts 2 mod 4 stand above them, and so on: the
 * parent of r, whose lowest set bit is b, is r with b cleared and the next bit set, or
 * with b cleared only where that host does not exist. Host 0 is the root. The second
 * tree is the first one mirrored (n even) or moved on by one host (n odd): who is a leaf
 * in one is not in the other, except that with n odd one host may be a leaf twice. Half
 * of the data goes through each, so that every host forwards about as much as it
 * contributes.
 *
 * Reference: Sanders, Speck & Traeff, Two-tree algorithms for full bandwidth broadcast,
 * reduction and scan, Parallel Computing 35 (2009); NCCL 2.30.7 src/graph/trees.cc. */
#include "network/algorithm.h"

/* In the first tree over n hosts. */
static uint32_t
parent_of (uint32_t n, uint32_t r)
{
  if (r == 0)
    return LS_NO_HOST;
  uint32_t bit = r & -r;
  uint32_t up = (r ^ bit) | (bit << 1);
  return up < n ? up : r ^ bit;
}

static uint32_t
parent_in (uint32_t n, uint32_t tree, uint32_t r)
{
  if (tree == 0)
    return parent_of (n, r);
  uint32_t up = n % 2 == 0 ? parent_of (n, n - 1 - r) : parent_of (n, (r + n - 1) % n);
  if (up == LS_NO_HOST)
    return up;
  return n % 2 == 0 ? n - 1 - up : (up + 1) % n;
}

static void
add_child (LsTreeNode *node, uint32_t child)
{
  uint32_t i = node->child[0] == LS_NO_HOST ? 0 : 1;
  g_assert (node->child[i] == LS_NO_HOST);
  node->child[i] = child;
}

LsDoubleTree
ls_double_tree (uint32_t n, LsArena *arena)
{
  LsDoubleTree d = { .n_trees = n > 1 ? 2 : 1 };
  for (uint32_t t = 0; t < d.n_trees; t++) {
    LsTreeNode *node = d.node[t] = ls_arena_new_array (arena, LsTreeNode, n);
    for (uint32_t r = 0; r < n; r++)
      node[r] = (LsTreeNode) { .parent = parent_in (n, t, r), .child = { LS_NO_HOST, LS_NO_HOST } };
    for (uint32_t r = 0; r < n; r++) {
      if (node[r].parent != LS_NO_HOST)
        add_child (&node[node[r].parent], r);
      for (uint32_t up = node[r].parent; up != LS_NO_HOST; up = node[up].parent)
        node[r].depth++;
      d.depth = MAX (d.depth, node[r].depth);
    }
  }
  return d;
}
