/* network/coll_tree.c — all-reduce over NCCL's double binary tree.
 *
 * Problem. n members, k of them on each of N hosts, sum an array of S bytes with a
 * latency that grows with log2 N.
 *
 * Model. Channel e enters each host at member e mod k; from there the members of the
 * host form a chain. Two trees join the hosts (below), each with half of the
 * channels' data. A chunk is added up towards the root and copied back down, one chunk
 * behind the other: both directions of every edge are busy at once, and each carries S
 * over all channels.
 *
 *     inside a host      each edge of the chain            S (k-1)/k, both ways
 *     across hosts       all NICs of a host, in and out    2 S (N - 1) / N on average
 *
 * Rate. NCCL takes a tree to reach at most 0.92 of the bus bandwidth of a ring, and its
 * algorithm bandwidth is half of that; what NICs carry is a limit of its own (nccl.c). With
 * Simple, and without ramp,
 *
 *     time alone = base + 2 ((k-1) hop_intra + floor(log2 N) hop_inter) + 2 S / (0.92 bus)
 *
 * Worked example: 16 MiB over 64 members, 8 on each of 8 hosts, base 8.4 us, hops 3.4 and
 * 14 us, bus 128 GB/s: 8.4 + 2 (7 * 3.4 + 3 * 14) + 2 * 16.78e6 / 117.8e9 = 140 + 285 us.
 *
 * Deviations. All channels take both trees; NCCL gives each channel one of them. NCCL may
 * put parent and children of a host on two GPUs (balanced trees); here one GPU talks to
 * all three. The table by which NCCL's tuner lowers the bandwidth of small trees is a
 * matter of choice (tuning.c), not of time.
 *
 * Reference: NCCL 2.30.7 src/graph/trees.cc, src/graph/tuning.cc,
 * src/device/all_reduce.h (runTreeSplit). */
#include <math.h>

#include "base/digest.h"
#include "core/maxmin.h" /* LS_COEF_ONE */
#include "network/algorithm.h"

/* --- pipelines ----------------------------------------------------------------------------------- */

void
ls_edges_add_tree (LsEdges *e, uint32_t parent, const uint32_t *children, uint32_t n_children, uint32_t up,
                   uint32_t down, uint32_t first)
{
  if (parent != UINT32_MAX)
    ls_edges_add (
        e, (LsEdge) { .to = parent, .out = up, .in = down - 1, .first = first, .n = 1, .reduces = true });
  for (uint32_t i = 0; i < n_children; i++)
    ls_edges_add (e, (LsEdge) { .to = children[i], .out = down, .in = up - 1, .first = first, .n = 1 });
}

static inline uint32_t
edges_of_round (const LsScript *s, uint32_t place, uint32_t round, LsSend *ret)
{
  LsEdges e = { .s = s, .round = round, .sends = ret };
  if (!s->known_edges)
    s->edges (s, place, &e);
  else
    for (uint32_t i = place > 0 ? s->n_edges[place - 1] : 0; i < s->n_edges[place]; i++)
      ls_edges_add (&e, g_array_index (s->known_edges, LsEdge, i));
  return e.n;
}

static uint32_t
sends (const LsScript *s, uint32_t place, uint32_t round, LsSend *ret)
{
  return edges_of_round (s, place, round, ret);
}

static uint32_t
n_receives (const LsScript *s, uint32_t place, uint32_t round)
{
  return edges_of_round (s, place, round, NULL);
}

void
ls_script_pipe (LsScript *s, uint32_t n_chunks, uint32_t step, uint32_t n_stages,
                void (*edges) (const LsScript *s, uint32_t place, LsEdges *ret))
{
  s->n_chunks = n_chunks;
  s->step = step;
  s->n_rounds = n_chunks + n_stages - 1;
  s->edges = edges;
  s->sends = sends;
  s->n_receives = n_receives;
}

/* --- all-reduce over NCCL's double binary tree --------------------------------------------------- */

typedef struct {
  const LsCollCall *call;
  LsDoubleTree trees; /* flat: not made */
  uint32_t n_trees, n_entries;
  uint32_t depth; /* of the deepest member                              */
  bool is_flat;   /* all messages in one round, for sums over a script */
} Tree;

static uint32_t
member_at (const Tree *x, uint32_t host, uint32_t entry, uint32_t order)
{
  return x->call->seats.member[ls_coll_seat_in_order (x->call, host, entry, order)];
}

/* The deepest member starts in round 0. */
static void
edges (const LsScript *s, uint32_t place, LsEdges *ret)
{
  const Tree *x = s->data;
  uint32_t seat = x->call->seats.seat[place], h = x->call->seats.host_of[seat];
  for (uint32_t i = 0; i < x->n_entries * x->n_trees; i++) {
    uint32_t entry = i / x->n_trees, tree = i % x->n_trees, children[3], n = 0;
    LsTreeNode node = x->is_flat ? ls_tree_node (x->call->seats.n_hosts, tree, h) : x->trees.node[tree][h];
    uint32_t order = ls_coll_order_of_seat (x->call, seat, entry), parent = UINT32_MAX; /* at the root */
    if (order > 0)
      parent = member_at (x, h, entry, order - 1);
    else if (node.parent != LS_NO_HOST)
      parent = member_at (x, node.parent, entry, 0);
    if (order + 1 < x->call->seats.hosts[h].n)
      children[n++] = member_at (x, h, entry, order + 1);
    for (uint32_t c = 0; c < 2 && order == 0; c++)
      if (node.child[c] != LS_NO_HOST)
        children[n++] = member_at (x, node.child[c], entry, 0);
    uint32_t depth = x->is_flat ? 0 : node.depth + order;
    ls_edges_add_tree (ret, parent, children, n, x->depth - depth, x->depth + depth, i * s->n_chunks);
  }
}

static void
script_of (const LsCollCall *call, bool is_flat, LsScript *s)
{
  Tree *x = ls_arena_new_array (call->arena, Tree, 1);
  x->call = call;
  x->n_trees = ls_n_trees (call->seats.n_hosts);
  x->trees = is_flat ? x->trees : ls_double_tree (call->seats.n_hosts, call->arena);
  x->n_entries = call->seats.n_entries;
  x->is_flat = is_flat;
  x->depth = is_flat ? 0 : x->trees.depth + call->seats.most - 1;
  uint32_t n_trees = x->n_entries * x->n_trees, n_channels = ls_coll_channels (call);
  uint32_t n_chunks = is_flat ? 1
                              : ls_coll_chunks (call, MAX (n_channels, n_trees), 2 * x->depth,
                                                2 * (uint64_t) n_trees * (call->n - 1));
  ls_script_cut (call, s, n_trees * n_chunks);
  ls_script_pipe (s, n_chunks, 1, is_flat ? 1 : 2 * x->depth, edges);
  s->data = x;
  s->max_sends = 4 * n_trees;
  s->flows = MAX (1, n_channels * LS_COEF_ONE / n_trees);
}

static void
script (const LsCollCall *call, LsScript *s)
{
  script_of (call, false, s);
  const Tree *x = s->data;
  uint32_t n_trees = x->n_entries * x->n_trees;
  s->base = ls_nccl_start (call);
  ls_script_pipeline (call, s, ls_nccl_latency (call, LS_TUNE_TREE) - s->base);
  /* A message is one of n_trees that leave for a parent at once; it has its share of the
   * channels, and these its share of the bandwidth. */
  double alg
      = call->bytes > 0 ? (double) call->bytes / ls_nccl_seconds (call, LS_TUNE_TREE) : ls_coll_bus (call);
  s->rate_intra = s->rate_inter = alg / n_trees / ((double) s->flows / (double) LS_COEF_ONE);
}

static void
plan (const LsCollCall *call, LsCollPlan *ret_plan)
{
  LsScript s = ls_script_of (call);
  script_of (call, true, &s);
  ls_plan_as_one (call, &s, ls_coll_channels (call), ls_nccl_latency (call, LS_TUNE_TREE),
                  ls_nccl_seconds (call, LS_TUNE_TREE), ret_plan);
}

/* Those of a chunk, up and down. */
static uint64_t
n_messages (const LsCollCall *call)
{
  return 4 * (uint64_t) call->n * call->seats.n_entries;
}

#define KINDS LS_COLL_BIT (LS_COLL_ALL_REDUCE)

const LsCollAlgorithm ls_coll_tree = { .name = "tree",
                                       .kinds = KINDS,
                                       .automatic = KINDS,
                                       .n_messages = n_messages,
                                       .alike = ls_double_tree_alike,
                                       .plan = plan,
                                       .script = script };

/* --- nodes ------------------------------------------------------------------------------------- */

/* Two binary trees over n hosts, as NCCL builds them.
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
 * loaded at a group or a pod, on its hosts. A period of hosts (loads.c) is as an
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
  const LsCollHost *first = &call->seats.hosts[0];
  for (uint32_t h = 1; h < p->n_hosts; h++) {
    uint32_t shift = call->seats.hosts[h].gpus[0] - first->gpus[0];
    if (call->seats.hosts[h].n != first->n || shift % p->at->gpus_per_host != 0)
      return false;
    for (uint32_t i = 0; i < first->n; i++)
      if (call->seats.hosts[h].gpus[i] - first->gpus[i] != shift)
        return false;
  }
  return true;
}

/* By how hosts lie to each other (ls_places_relation()), a byte for each: a host has six edges at most. */
static uint32_t *
count_edges (const LsCollCall *call, const LsCollPeriod *p)
{
  uint32_t n = call->seats.n_hosts, *edges = g_new0 (uint32_t, n);
  for (uint32_t t = 0; t < ls_n_trees (n); t++)
    for (uint32_t r = 0; r < n; r++) {
      uint32_t up = parent_in (n, t, r);
      if (up == LS_NO_HOST)
        continue;
      uint32_t relation = ls_places_relation (p->at, call->seats.hosts[r].gpus[0] / p->at->gpus_per_host,
                                              call->seats.hosts[up].gpus[0] / p->at->gpus_per_host);
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
