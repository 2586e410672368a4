#include "network/double_tree.h"

#include "base/digest.h"
#include "cluster/places.h"

/* --- nodes ------------------------------------------------------------------------------------- */

/* In the first tree over n hosts. */
static uint32_t
parent_in_first (uint32_t n, uint32_t r)
{
  if (r == 0)
    return LS_NO_HOST;
  uint32_t bit = r & -r;
  uint32_t up = (r ^ bit) | (bit << 1);
  return up < n ? up : r ^ bit;
}

/* Half of the lowest set bit of r away, or less far behind it where that host does not exist. The root has
 * only the second sort, as if its lowest bit were beyond all hosts. */
static void
children_in_first (uint32_t n, uint32_t r, uint32_t ret[2])
{
  uint32_t away = r > 0 ? (r & -r) / 2 : UINT32_C (1) << 31;
  ret[0] = r > 0 && away > 0 ? r - away : LS_NO_HOST;
  while (away > 0 && (uint64_t) r + away >= n)
    away /= 2;
  ret[1] = away > 0 ? r + away : LS_NO_HOST;
}

/* The host of the first tree that is where this one is in the second, and back. */
static uint32_t
in_first (uint32_t n, uint32_t r)
{
  return n % 2 == 0 ? n - 1 - r : (r + n - 1) % n;
}

static uint32_t
in_second (uint32_t n, uint32_t r)
{
  return r == LS_NO_HOST ? r : n % 2 == 0 ? n - 1 - r : (r + 1) % n;
}

static uint32_t
parent_in (uint32_t n, uint32_t tree, uint32_t r)
{
  return tree == 0 ? parent_in_first (n, r) : in_second (n, parent_in_first (n, in_first (n, r)));
}

LsTreeNode
ls_tree_node (uint32_t n, uint32_t tree, uint32_t r)
{
  LsTreeNode node = { .parent = parent_in (n, tree, r) };
  uint32_t child[2];
  children_in_first (n, tree == 0 ? r : in_first (n, r), child);
  for (uint32_t i = 0; i < 2; i++)
    child[i] = tree == 0 ? child[i] : in_second (n, child[i]);
  node.child[0] = MIN (child[0], child[1]);
  node.child[1] = MAX (child[0], child[1]);
  return node;
}

/* A depth of 0 is not known yet, but for the root. */
static uint32_t
depth_in (LsTreeNode *nodes, uint32_t r)
{
  if (nodes[r].parent != LS_NO_HOST && nodes[r].depth == 0)
    nodes[r].depth = depth_in (nodes, nodes[r].parent) + 1;
  return nodes[r].depth;
}

LsDoubleTree
ls_double_tree (uint32_t n, LsArena *arena)
{
  LsDoubleTree d = { .n_trees = ls_n_trees (n) };
  for (uint32_t t = 0; t < d.n_trees; t++) {
    LsTreeNode *node = d.node[t] = ls_arena_new_array (arena, LsTreeNode, n);
    for (uint32_t r = 0; r < n; r++)
      node[r] = ls_tree_node (n, t, r);
    for (uint32_t r = 0; r < n; r++)
      d.depth = MAX (d.depth, depth_in (node, r));
  }
  return d;
}

/* --- hosts that load alike ---------------------------------------------------------------------- */

static bool
have_same_gpus (const LsCollCall *call, const LsCollPeriod *p)
{
  const LsCollHost *first = &call->hosts[0];
  for (uint32_t h = 1; h < p->n_hosts; h++) {
    uint32_t shift = call->hosts[h].gpus[0] - first->gpus[0];
    if (call->hosts[h].n != first->n || shift % p->at->gpus_per_host != 0)
      return false;
    for (uint32_t i = 0; i < first->n; i++)
      if (call->hosts[h].gpus[i] - first->gpus[i] != shift)
        return false;
  }
  return true;
}

/* By how hosts lie to each other (ls_places_relation()), a byte for each: a host has six edges at most. */
static uint32_t *
count_edges (const LsCollCall *call, const LsCollPeriod *p)
{
  uint32_t n = call->n_hosts, *edges = g_new0 (uint32_t, n);
  for (uint32_t t = 0; t < ls_n_trees (n); t++)
    for (uint32_t r = 0; r < n; r++) {
      uint32_t up = parent_in (n, t, r);
      if (up == LS_NO_HOST)
        continue;
      uint32_t relation = ls_places_relation (p->at, call->hosts[r].gpus[0] / p->at->gpus_per_host,
                                              call->hosts[up].gpus[0] / p->at->gpus_per_host);
      edges[r] += UINT32_C (1) << 8 * relation;
      edges[up] += UINT32_C (1) << 8 * relation;
    }
  return edges;
}

static LsSig
sig_of_period (const uint32_t *edges, uint32_t n_hosts)
{
  LsSig sig = { 0 };
  for (uint32_t i = 0; i < n_hosts; i++)
    ls_sig_add_times (&sig, 1, ls_sig_of ((uint64_t) i << 32 | edges[i]));
  return sig;
}

const uint32_t *
ls_double_tree_alike (const LsCollCall *call, const LsCollPeriod *p, LsArena *arena)
{
  if (!have_same_gpus (call, p))
    return NULL;
  g_autofree uint32_t *edges = count_edges (call, p);
  g_autofree LsSig *sigs = g_new (LsSig, p->n);
  g_autoptr (GHashTable) known = g_hash_table_new (ls_sig_hash, ls_sig_is_same); /* > period + 1 */
  uint32_t *like = ls_arena_new_array (arena, uint32_t, p->n);
  for (uint32_t k = 0; k < p->n; k++) {
    sigs[k] = sig_of_period (&edges[k * p->n_hosts], p->n_hosts);
    uint32_t first = GPOINTER_TO_UINT (g_hash_table_lookup (known, &sigs[k]));
    if (first == 0)
      g_hash_table_insert (known, &sigs[k], GUINT_TO_POINTER (first = k + 1));
    like[k] = first - 1;
  }
  return g_hash_table_size (known) <= p->n / 2 ? like : NULL;
}
