/* cluster/interior_list.c — a node given vertex by vertex and link by link, for what no
 * arithmetic describes: dumps of NCCL's topology, PCIe trees of several levels, boxes with
 * NICs on one socket only.
 *
 * Vertices are numbered by kind, in the order of the file within a kind: GPU i of the node
 * is the i-th GPU of the list. Each link is a trunk per direction, in the order of the file.
 * Ways are searched once per node (route.h: shortest, split over equals) and tabled; the
 * cost is (GPUs + NICs) * links, whatever the size of the cluster.
 *
 * A GPU's NIC is the nearest; among equally near ones, that with the fewest GPUs so far,
 * so that they are dealt out as NCCL does. Its memory is the nearest, the first of equals;
 * the nearest CPU where the list has no memory. */

#include <string.h>

#include "cluster/index.h"

#define MAX_VERTICES 1024
#define MAX_GPUS     256
#define MAX_LINKS    16384
#define N_KINDS      (LS_NODE_NIC + 1)

/* The graph of one node. */
typedef struct {
  uint32_t n_vertices, n_links;
  uint32_t first[N_KINDS + 1]; /* first vertex of each kind; the end     */
  const char **names;          /* by vertex, borrowed                    */
  LsNodeKind *kinds;
  LsLink *links; /* 2 per link of the file: there and back */
} Graph;

typedef struct {
  LsInterior base;
  Graph graph;
  LsWays *ways[LS_LEG_FROM_MEMORY + 1]; /* by leg */
  uint32_t *nic_of_gpu, *memory_of_gpu;
} List;

static uint32_t
n_of (const Graph *g, LsNodeKind kind)
{
  return g->first[kind + 1] - g->first[kind];
}

static const LsListVertex *
vertex_at (const LsClusterSpec *s, guint i)
{
  return &g_array_index (s->list.vertices, LsListVertex, i);
}

/* --- the graph --- */

/* Where each vertex of the list comes to lie, by name: GUINT of 1 + vertex. */
static GHashTable *
number_vertices (const LsClusterSpec *s, Graph *g, LsArena *arena)
{
  GHashTable *by_name = g_hash_table_new (g_str_hash, g_str_equal);
  g->n_vertices = s->list.vertices->len;
  g->names = ls_arena_new_array (arena, const char *, g->n_vertices);
  g->kinds = ls_arena_new_array (arena, LsNodeKind, g->n_vertices);
  uint32_t v = 0;
  for (int kind = 0; kind < N_KINDS; kind++) {
    g->first[kind] = v;
    for (guint i = 0; i < s->list.vertices->len; i++) {
      if (vertex_at (s, i)->kind != kind)
        continue;
      g->names[v] = vertex_at (s, i)->name;
      g->kinds[v] = (LsNodeKind) kind;
      g_hash_table_insert (by_name, vertex_at (s, i)->name, GUINT_TO_POINTER (1 + v));
      v++;
    }
  }
  g->first[N_KINDS] = v;
  return by_name;
}

static uint32_t
vertex_named (GHashTable *by_name, const char *name)
{
  return GPOINTER_TO_UINT (g_hash_table_lookup (by_name, name)) - 1;
}

static void
graph_init (const LsClusterSpec *s, Graph *g, LsArena *arena)
{
  g_autoptr (GHashTable) by_name = number_vertices (s, g, arena);
  g->n_links = 2 * s->list.links->len;
  g->links = ls_arena_new_array (arena, LsLink, g->n_links);
  for (guint i = 0; i < s->list.links->len; i++) {
    const LsListLink *link = &g_array_index (s->list.links, LsListLink, i);
    ls_ways_links (&link->link, link->count, 2 * i, vertex_named (by_name, link->from),
                   vertex_named (by_name, link->to), &g->links[2 * i]);
  }
}

/* Where copies to the host end. */
static LsNodeKind
memory_kind (const Graph *g)
{
  return n_of (g, LS_NODE_CPU_MEMORY) > 0 ? LS_NODE_CPU_MEMORY : LS_NODE_CPU;
}

static LsWays *
ways (const Graph *g, LsNodeKind from, LsNodeKind to, LsArena *arena)
{
  return ls_ways_new (g->kinds, g->n_vertices, g->links, g->n_links,
                      (LsVertices) { g->first[from], n_of (g, from) },
                      (LsVertices) { g->first[to], n_of (g, to) }, arena);
}

/* --- what is legal --- */

static uint32_t
count_kind (const LsClusterSpec *s, LsNodeKind kind)
{
  uint32_t n = 0;
  for (guint i = 0; i < s->list.vertices->len; i++)
    n += vertex_at (s, i)->kind == (int) kind;
  return n;
}

static gboolean
check_vertices (const LsClusterSpec *s, GHashTable *names, GError **error)
{
  for (guint i = 0; i < s->list.vertices->len; i++) {
    const LsListVertex *vertex = vertex_at (s, i);
    if (strlen (vertex->name) > LS_MAX_VERTEX_NAME)
      return ls_spec_conflict (error, "list: the name \"%s\" is longer than %d letters", vertex->name,
                               LS_MAX_VERTEX_NAME);
    if (vertex->kind < 0 || vertex->kind >= N_KINDS)
      return ls_spec_conflict (error, "list: \"%s\" is of a kind that belongs to the fabric", vertex->name);
    if (!g_hash_table_add (names, vertex->name))
      return ls_spec_conflict (error, "list: two vertices are named \"%s\"", vertex->name);
  }
  return TRUE;
}

static gboolean
check_links (const LsClusterSpec *s, GHashTable *names, GError **error)
{
  g_autoptr (GHashTable) joined = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  for (guint i = 0; i < s->list.links->len; i++) {
    const LsListLink *link = &g_array_index (s->list.links, LsListLink, i);
    for (int end = 0; end < 2; end++)
      if (!g_hash_table_contains (names, end == 0 ? link->from : link->to))
        return ls_spec_conflict (error, "list: link %u names \"%s\", which is no vertex", i,
                                 end == 0 ? link->from : link->to);
    if (!ls_spec_check_listed ("list", i, link, false, &link->link, joined, error))
      return FALSE;
  }
  return TRUE;
}

/* Half of a route is what one node may take of it. */
#define MAX_HOPS (LS_ROUTE_MAX_INTERIOR / 2 - 4)

static gboolean
check_ways (const Graph *g, LsNodeKind to, LsArena *arena, GError **error)
{
  const LsWays *w = ways (g, LS_NODE_GPU, to, arena);
  for (uint32_t i = 0; i < n_of (g, LS_NODE_GPU); i++)
    for (uint32_t j = 0; j < n_of (g, to); j++) {
      const char *name = g->names[g->first[to] + j];
      if (ls_ways_length (w, i, j) == LS_WAYS_NONE)
        return ls_spec_conflict (
            error, "list: no way from \"%s\" to \"%s\" (GPUs, NICs, drives and memories do not forward)",
            g->names[i], name);
      if (ls_ways_n_hops (w, i, j) > MAX_HOPS)
        return ls_spec_conflict (error,
                                 "list: equal ways from \"%s\" to \"%s\" take %u links; expected at most %d",
                                 g->names[i], name, ls_ways_n_hops (w, i, j), MAX_HOPS);
    }
  return TRUE;
}

static gboolean
check (const LsClusterSpec *s, GError **error)
{
  if (!s->list.vertices || !s->list.links || s->list.vertices->len > MAX_VERTICES
      || s->list.links->len > MAX_LINKS)
    return ls_spec_conflict (error, "list: expected vertices and links, at most %d and %d", MAX_VERTICES,
                             MAX_LINKS);
  g_autoptr (GHashTable) names = g_hash_table_new (g_str_hash, g_str_equal);
  if (!check_vertices (s, names, error) || !check_links (s, names, error))
    return FALSE;
  uint32_t n_gpus = count_kind (s, LS_NODE_GPU), n_nics = count_kind (s, LS_NODE_NIC);
  if (n_gpus != s->gpus_per_node)
    return ls_spec_conflict (error, "list: %u GPUs; the node says %u", n_gpus, s->gpus_per_node);
  if (n_nics != s->nics.n)
    return ls_spec_conflict (error, "list: %u NICs; the node says %u", n_nics, s->nics.n);
  if (n_gpus > MAX_GPUS || n_nics > MAX_GPUS)
    return ls_spec_conflict (error, "list: %u GPUs and %u NICs; expected at most %d of each", n_gpus, n_nics,
                             MAX_GPUS);
  Graph g;
  g_autoptr (LsArena) arena = ls_arena_new ();
  graph_init (s, &g, arena);
  return check_ways (&g, LS_NODE_GPU, arena, error) && check_ways (&g, LS_NODE_NIC, arena, error);
}

static double
n_links (const LsClusterSpec *s)
{
  return 2.0 * s->list.links->len;
}

/* --- interior --- */

/* The nearest of `kind` for each GPU; equals are dealt out, or all get the first. */
static uint32_t *
nearest (const Graph *g, const LsWays *w, LsNodeKind kind, bool deals, LsArena *arena)
{
  uint32_t n_gpus = n_of (g, LS_NODE_GPU), n = n_of (g, kind);
  uint32_t *of_gpu = ls_arena_new_array (arena, uint32_t, n_gpus);
  g_autofree uint32_t *n_users = g_new0 (uint32_t, n + 1);
  for (uint32_t i = 0; i < n_gpus; i++) {
    uint32_t best = 0;
    for (uint32_t j = 1; j < n; j++) {
      uint32_t own = ls_ways_length (w, i, j), old = ls_ways_length (w, i, best);
      if (own < old || (own == old && deals && n_users[j] < n_users[best]))
        best = j;
    }
    of_gpu[i] = best;
    n_users[best]++;
  }
  return of_gpu;
}

/* The length of a way tells which it is (route.h): a link straight to the other GPU 2, over
 * one NVSwitch 4. */
static void
find_nvlinks (List *in)
{
  uint32_t n = n_of (&in->graph, LS_NODE_GPU);
  in->base.has_nvswitch = n > 1;
  for (uint32_t i = 0; i < n * n; i++) {
    if (i / n == i % n)
      continue;
    uint32_t length = ls_ways_length (in->ways[LS_LEG_WITHIN], i / n, i % n);
    in->base.has_nvswitch &= length == 4;
    in->base.has_gpu_links |= length == 2;
  }
}

static LsInterior *
list_new (const LsClusterSpec *s, LsArena *arena)
{
  List *in = ls_arena_new_array (arena, List, 1);
  Graph *g = &in->graph;
  graph_init (s, g, arena);
  in->base = (LsInterior) { .n_vertices = g->n_vertices,
                            .n_trunks = g->n_links,
                            .v_gpu = g->first[LS_NODE_GPU],
                            .v_nic = g->first[LS_NODE_NIC] };
  const LsNodeKind gpu = LS_NODE_GPU, nic = LS_NODE_NIC, memory = memory_kind (g),
                   ends[][2] = { { gpu, gpu }, { gpu, nic }, { nic, gpu }, { gpu, memory }, { memory, gpu } };
  for (guint leg = 0; leg < G_N_ELEMENTS (in->ways); leg++)
    in->ways[leg] = ways (g, ends[leg][0], ends[leg][1], arena);
  find_nvlinks (in);
  in->nic_of_gpu = nearest (g, in->ways[LS_LEG_TO_NIC], nic, true, arena);
  in->memory_of_gpu = nearest (g, in->ways[LS_LEG_TO_MEMORY], memory, false, arena);
  return &in->base;
}

static void
lay_out (const LsInterior *interior, LsCluster *c, uint32_t host)
{
  const List *in = (const List *) interior;
  const Graph *g = &in->graph;
  uint32_t v = c->nodes->len;
  for (int kind = 0; kind < N_KINDS; kind++)
    ls_layout_vertices (c, (LsNodeKind) kind, host, n_of (g, (LsNodeKind) kind));
  for (uint32_t i = 0; i < g->n_links; i += 2) {
    const LsListLink *spec = &g_array_index (in->base.spec->list.links, LsListLink, i / 2);
    const LsLink *link = &g->links[i];
    ls_layout_pair (c, LS_END (v + link->from, host, g->names[link->from], LS_NO_NUMBER),
                    LS_END (v + link->to, host, g->names[link->to], LS_NO_NUMBER), 1, spec->count,
                    &spec->link);
  }
}

static void
way (const LsInterior *interior, LsLeg leg, uint32_t from, uint32_t to, LsRoute *r)
{
  const List *in = (const List *) interior;
  bool is_memory = leg >= LS_LEG_TO_MEMORY;
  if (is_memory && n_of (&in->graph, memory_kind (&in->graph)) == 0)
    return;
  if (is_memory)
    *(leg == LS_LEG_TO_MEMORY ? &to : &from) = in->memory_of_gpu[from];
  ls_ways_append (in->ways[leg], from, to, r);
}

static uint32_t
nic_of_gpu (const LsInterior *interior, uint32_t gpu)
{
  return ((const List *) interior)->nic_of_gpu[gpu];
}

static const char *
word (const LsClusterSpec *spec)
{
  for (guint i = 0; i < spec->list.vertices->len; i++)
    if (g_array_index (spec->list.vertices, LsListVertex, i).kind == LS_NODE_NVSWITCH)
      return "nvlink";
  return "listed";
}

const LsInteriorKind ls_interior_list = {
  .traits = { "list", "GPU", "GPUs", word, .is_listed = true, .has_nccl = true },
  .check = check,
  .n_links = n_links,
  .new = list_new,
  .lay_out = lay_out,
  .way = way,
  .nic_of_gpu = nic_of_gpu,
};
