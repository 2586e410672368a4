/* cluster/fabric_list.c — switches and links as listed, for networks that no arithmetic
 * describes: dragonflies, trees with unequal leaves, what is really plugged in.
 *
 * Rules say at which switch the NICs of a rail of a run of nodes are. Ways between switches
 * are the shortest by number of links. With ideal spreading a flow splits at each switch
 * over its onward links in proportion to their capacity (route.h), found once for each pair
 * of switches with NICs; with hashing it takes one physical link at each (fabric.h).
 *
 * Trunks of a node: NIC > switch and back, a pair per NIC. The rest: a pair for each link of
 * the list, or with hashing for each physical one ("leaf0>spine0", of several
 * "leaf0>spine0/1"). Vertices: switches with NICs, in the order of the list, then the others.
 *
 * Cost: switches with NICs * links, and a table of all pairs of these; hence the bounds. */

#include <string.h>

#include "base/order.h"
#include "base/suggest.h"
#include "cluster/index.h"

#define MAX_SWITCHES 4096
#define MAX_EDGES    256
#define MAX_LINKS    16384
#define MAX_HOPS     (LS_ROUTE_MAX_FABRIC - 2)

typedef struct {
  LsFabric base;
  uint32_t n_switches;
  const char **names;  /* [n_switches] by vertex, borrowed   */
  uint32_t *edge_of;   /* [n_nodes * rails]                  */
  GHashTable *by_name; /* name > 1 + vertex                  */
  LsWays *ways;        /* ideal: from any edge to any        */
  /* Hashed: links out of each switch, and hops from each switch to each edge. */
  uint32_t *first_out, *out; /* indices into c->links; [n_switches + 1], [..] */
  uint32_t *dist;            /* [n_switches * n_edges]                         */
} List;

static const char *
switch_at (const LsClusterSpec *s, guint i)
{
  return g_array_index (s->network.switches, char *, i);
}
static const LsListLink *
link_at (const LsClusterSpec *s, guint i)
{
  return &g_array_index (s->network.links, LsListLink, i);
}
static const LsListNics *
nics_at (const LsClusterSpec *s, guint i)
{
  return &g_array_index (s->network.nics, LsListNics, i);
}
static guint
n_listed_links (const LsClusterSpec *s)
{
  return s->network.links ? s->network.links->len : 0;
}

/* Its own figures, or those of the fabric. */
static const LsLinkSpec *
figures_of (const LsClusterSpec *s, const LsListLink *link)
{
  return link->link.bandwidth_bytes_per_s > 0 ? &link->link : &s->network.spine;
}

/* --- what is legal --- */

static gboolean
check_name (const LsClusterSpec *s, GHashTable *names, const char *what, const char *name, GError **error)
{
  if (g_hash_table_contains (names, name))
    return TRUE;
  g_autofree const char **known = g_new0 (const char *, s->network.switches->len + 1);
  for (guint i = 0; i < s->network.switches->len; i++)
    known[i] = switch_at (s, i);
  g_autofree char *hint = ls_did_you_mean (name, known);
  return ls_spec_conflict (error, "fabric: %s names \"%s\", which is no switch%s", what, name, hint);
}

static gboolean
check_switches (const LsClusterSpec *s, GHashTable *names, GError **error)
{
  for (guint i = 0; i < s->network.switches->len; i++) {
    const char *name = switch_at (s, i);
    if (strlen (name) > LS_MAX_VERTEX_NAME)
      return ls_spec_conflict (error, "fabric: the name \"%s\" is longer than %d letters", name,
                               LS_MAX_VERTEX_NAME);
    if (!g_hash_table_add (names, (gpointer) name))
      return ls_spec_conflict (error, "fabric: two switches are named \"%s\"", name);
  }
  return TRUE;
}

static gboolean
check_links (const LsClusterSpec *s, GHashTable *names, GError **error)
{
  g_autoptr (GHashTable) joined = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  for (guint i = 0; i < n_listed_links (s); i++) {
    const LsListLink *link = link_at (s, i);
    g_autofree char *number = g_strdup_printf ("link %u", i);
    if (!check_name (s, names, number, link->from, error) || !check_name (s, names, number, link->to, error))
      return FALSE;
    if (!ls_spec_check_listed ("fabric", i, link, true, figures_of (s, link), joined, error))
      return FALSE;
  }
  return TRUE;
}

static const LsSortKey by_rail_and_node[]
    = { { LS_RISING (LsListNics, rail) }, { LS_RISING (LsListNics, first) }, { 0 } };

/* Each rail of each node at one switch. */
static gboolean
check_nics (const LsClusterSpec *s, GHashTable *names, GError **error)
{
  g_autoptr (GArray) sorted = g_array_copy (s->network.nics);
  ls_sort_by (sorted, by_rail_and_node);
  guint i = 0;
  for (uint32_t rail = 0; rail < s->network.rails; rail++) {
    uint64_t next = 0; /* node */
    for (; i < sorted->len && g_array_index (sorted, LsListNics, i).rail == rail; i++) {
      const LsListNics *n = &g_array_index (sorted, LsListNics, i);
      if (!check_name (s, names, "a rule for NICs", n->at, error))
        return FALSE;
      if (n->first < next && n->first < s->n_nodes)
        return ls_spec_conflict (error, "fabric: two rules place the NICs of rail %u of node %u", rail,
                                 n->first);
      if (n->first > next)
        break;
      next = (uint64_t) n->last + 1;
    }
    if (next < s->n_nodes)
      return ls_spec_conflict (error, "fabric: no rule places the NICs of rail %u of node %u", rail,
                               (uint32_t) next);
    while (i < sorted->len && g_array_index (sorted, LsListNics, i).rail == rail)
      i++;
  }
  if (i < sorted->len)
    return ls_spec_conflict (error, "fabric: a rule places NICs of rail %u; there are %u rails",
                             g_array_index (sorted, LsListNics, i).rail, s->network.rails);
  return TRUE;
}

static gboolean
check (const LsClusterSpec *s, GError **error)
{
  if (!s->network.switches || !s->network.nics || s->network.switches->len > MAX_SWITCHES
      || n_listed_links (s) > MAX_LINKS)
    return ls_spec_conflict (error,
                             "fabric: expected switches and NICs at them, at most %d switches and %d links",
                             MAX_SWITCHES, MAX_LINKS);
  if (s->nics.n == 0)
    return ls_spec_conflict (error, "fabric: nodes without NICs are at no switch");
  if (s->network.rails == 0 || s->nics.n % s->network.rails != 0)
    return ls_spec_conflict (error, "%u NICs per node do not deal out to %u rails", s->nics.n,
                             s->network.rails);
  g_autoptr (GHashTable) names = g_hash_table_new (g_str_hash, g_str_equal);
  return ls_spec_check_link ("nic link", TRUE, &s->nics.port, error) && check_switches (s, names, error)
      && check_links (s, names, error) && check_nics (s, names, error);
}

static uint64_t
n_switch_links (const LsClusterSpec *s)
{
  uint64_t n = n_listed_links (s);
  for (guint i = 0; i < n_listed_links (s) && s->network.routing == LS_ROUTING_ECMP; i++)
    n += link_at (s, i)->count - 1;
  return n;
}

static double
n_links (const LsClusterSpec *s)
{
  return 2 * ((double) s->n_nodes * s->nics.n + (double) n_switch_links (s));
}

/* --- layout --- */

/* Those with NICs of this cluster's nodes first. */
static void
number_switches (List *f, const LsClusterSpec *s)
{
  g_autoptr (GHashTable) edges = g_hash_table_new (g_str_hash, g_str_equal);
  for (guint i = 0; i < s->network.nics->len; i++)
    if (nics_at (s, i)->first < s->n_nodes)
      g_hash_table_add (edges, nics_at (s, i)->at);
  uint32_t v = 0;
  for (int pass = 0; pass < 2; pass++) {
    for (guint i = 0; i < s->network.switches->len; i++)
      if (g_hash_table_contains (edges, switch_at (s, i)) == (pass == 0)) {
        f->names[v] = switch_at (s, i);
        g_hash_table_insert (f->by_name, (gpointer) switch_at (s, i), GUINT_TO_POINTER (++v));
      }
    if (pass == 0)
      f->base.n_edges = v;
  }
}

static uint32_t
vertex_named (const List *f, const char *name)
{
  return GPOINTER_TO_UINT (g_hash_table_lookup (f->by_name, name)) - 1;
}

static LsFabric *
list_new (const LsClusterSpec *s, LsArena *arena)
{
  List *f = ls_arena_new_array (arena, List, 1);
  f->n_switches = s->network.switches->len;
  f->names = ls_arena_new_array (arena, const char *, f->n_switches);
  f->by_name = ls_arena_table (arena, g_str_hash, g_str_equal);
  f->base = (LsFabric) { .n_vertices = f->n_switches, .n_trunks = 2 * (uint32_t) n_switch_links (s) };
  number_switches (f, s);
  f->edge_of = ls_arena_new_array (arena, uint32_t, (gsize) s->n_nodes * s->network.rails);
  for (guint i = 0; i < s->network.nics->len; i++) {
    const LsListNics *n = nics_at (s, i);
    for (uint64_t node = n->first; node <= n->last && node < s->n_nodes; node++)
      f->edge_of[node * s->network.rails + n->rail] = vertex_named (f, n->at);
  }
  return &f->base;
}

static uint32_t
edge (const LsFabric *fabric, uint32_t host, uint32_t nic)
{
  const List *f = (const List *) fabric;
  return f->edge_of[(gsize) host * f->base.spec->network.rails + nic % f->base.spec->network.rails];
}

static LsEnd
switch_end (const List *f, uint32_t v, const char *name)
{
  return LS_END (f->base.first_vertex + v, LS_NO_NUMBER, name, LS_NO_NUMBER);
}

static const char *
edge_name (const LsFabric *fabric, uint32_t edge)
{
  return ((const List *) fabric)->names[edge];
}

static void
lay_out (const LsFabric *fabric, LsCluster *c)
{
  const List *f = (const List *) fabric;
  ls_layout_vertices (c, LS_NODE_LEAF, LS_NO_NUMBER, fabric->n_edges);
  ls_layout_vertices (c, LS_NODE_SPINE, LS_NO_NUMBER, f->n_switches - fabric->n_edges);
  for (guint i = 0; i < n_listed_links (f->base.spec); i++) {
    const LsListLink *link = link_at (f->base.spec, i);
    bool is_each = f->base.spec->network.routing == LS_ROUTING_ECMP && link->count > 1;
    uint32_t to = vertex_named (f, link->to);
    LsEnd from = switch_end (f, vertex_named (f, link->from), link->from);
    for (uint32_t k = 0; k < (is_each ? link->count : 1); k++) {
      g_autofree char *name = is_each ? g_strdup_printf ("%s/%u", link->to, k) : g_strdup (link->to);
      ls_layout_pair (c, from, switch_end (f, to, name), 1, is_each ? 1 : link->count,
                      figures_of (f->base.spec, link));
    }
  }
}

/* --- ways --- */

static gboolean
find_ideal_ways (List *f, const LsCluster *c, const GArray *links, GError **error)
{
  uint32_t n_edges = f->base.n_edges;
  g_autofree LsNodeKind *kinds = g_new (LsNodeKind, f->n_switches);
  for (uint32_t v = 0; v < f->n_switches; v++)
    kinds[v] = v < n_edges ? LS_NODE_LEAF : LS_NODE_SPINE;
  const LsVertices edges = { 0, n_edges };
  f->ways = ls_ways_new (kinds, f->n_switches, (const LsLink *) (gconstpointer) links->data, links->len,
                         edges, edges, c->index->arena);
  for (uint32_t i = 0; i < n_edges; i++)
    for (uint32_t j = 0; j < n_edges; j++)
      if (ls_ways_n_hops (f->ways, i, j) > MAX_HOPS)
        return ls_spec_conflict (
            error, "fabric: equal ways from \"%s\" to \"%s\" take %u links; expected at most %d", f->names[i],
            f->names[j], ls_ways_n_hops (f->ways, i, j), MAX_HOPS);
  return TRUE;
}

/* Hops from each switch to one, breadth first. */
static void
find_distances (List *f, const LsLink *links, uint32_t to)
{
  uint32_t n_edges = f->base.n_edges, n_queued = 1;
  g_autofree uint32_t *queue = g_new (uint32_t, f->n_switches);
  queue[0] = to;
  f->dist[(gsize) to * n_edges + to] = 0;
  for (uint32_t k = 0; k < n_queued; k++)
    for (uint32_t i = f->first_out[queue[k]]; i < f->first_out[queue[k] + 1]; i++) {
      /* A link's reverse may have failed alone, so look at the links towards it. */
      const LsLink *back = &links[f->out[i]];
      uint32_t *dist = &f->dist[(gsize) back->from * n_edges + to];
      if (*dist != LS_WAYS_NONE)
        continue;
      *dist = f->dist[(gsize) queue[k] * n_edges + to] + 1;
      queue[n_queued++] = back->from;
    }
}

static gboolean
find_hashed_ways (List *f, const LsCluster *c, const GArray *links, GError **error)
{
  gsize n = (gsize) f->n_switches * f->base.n_edges;
  const LsLink *link = (const LsLink *) (gconstpointer) links->data;
  f->first_out = ls_arena_new_array (c->index->arena, uint32_t, f->n_switches + 1);
  f->out = ls_arena_new_array (c->index->arena, uint32_t, links->len);
  f->dist = ls_arena_new_array (c->index->arena, uint32_t, n);
  for (gsize i = 0; i < n; i++)
    f->dist[i] = LS_WAYS_NONE;
  ls_ways_index (link, links->len, f->n_switches, false, f->first_out, f->out);
  for (uint32_t e = 0; e < f->base.n_edges; e++)
    find_distances (f, link, e);
  for (gsize i = 0; i < n; i++)
    if (f->dist[i] != LS_WAYS_NONE && f->dist[i] > MAX_HOPS)
      return ls_spec_conflict (error, "fabric: a way takes %u links; expected at most %d", f->dist[i],
                               MAX_HOPS);
  ls_ways_index (link, links->len, f->n_switches, true, f->first_out, f->out);
  /* From places among the working links to places in the cluster. */
  uint32_t k = 0, first = ls_first_link (c, f->base.spec->n_nodes);
  g_autofree uint32_t *place = g_new (uint32_t, links->len);
  for (guint i = first; i < c->links->len; i++)
    if (!ls_trunk_is_failed (c, g_array_index (c->links, LsLink, i).trunk))
      place[k++] = i;
  for (guint i = 0; i < links->len; i++)
    f->out[i] = place[f->out[i]];
  return TRUE;
}

static gboolean
finish (LsFabric *fabric, const LsCluster *c, GError **error)
{
  List *f = (List *) fabric;
  if (fabric->n_edges > MAX_EDGES)
    return ls_spec_conflict (
        error, "fabric: %u switches have NICs; of a list expected at most %d (a fat-tree has no such limit)",
        fabric->n_edges, MAX_EDGES);
  g_autoptr (GArray) links
      = ls_working_links (c, ls_first_link (c, c->spec.n_nodes), c->links->len, fabric->first_vertex, 0);
  return f->base.spec->network.routing == LS_ROUTING_ECMP ? find_hashed_ways (f, c, links, error)
                                                          : find_ideal_ways (f, c, links, error);
}

static bool
reaches (const LsFabric *fabric, const LsCluster *c, uint32_t from, uint32_t to)
{
  const List *f = (const List *) fabric;
  return (f->ways ? ls_ways_length (f->ways, from, to) : f->dist[(gsize) from * fabric->n_edges + to])
      != LS_WAYS_NONE;
}

static bool
is_onward (const List *f, const LsLink *link, uint32_t to)
{
  uint32_t n_edges = f->base.n_edges, from = link->from - f->base.first_vertex,
           next = link->to - f->base.first_vertex;
  uint32_t left = f->dist[(gsize) next * n_edges + to];
  return left != LS_WAYS_NONE && left + 1 == f->dist[(gsize) from * n_edges + to];
}

/* One of the onward links of switch v. */
static const LsLink *
choose_link (const List *f, const LsCluster *c, const LsFabricFlow *flow, uint32_t v, uint32_t to)
{
  uint32_t n = 0;
  for (uint32_t i = f->first_out[v]; i < f->first_out[v + 1]; i++)
    n += is_onward (f, &g_array_index (c->links, LsLink, f->out[i]), to);
  uint32_t left = ls_ecmp_choose (f->base.spec, flow, f->base.first_vertex + v, n), i = f->first_out[v];
  while (!is_onward (f, &g_array_index (c->links, LsLink, f->out[i]), to) || left-- > 0)
    i++;
  return &g_array_index (c->links, LsLink, f->out[i]);
}

static void
way (const LsFabric *fabric, const LsCluster *c, const LsFabricFlow *flow, LsRoute *r)
{
  const List *f = (const List *) fabric;
  uint32_t v = edge (fabric, flow->node_from, flow->nic_from),
           to = edge (fabric, flow->node_to, flow->nic_to);
  if (f->ways && v != to)
    ls_ways_append (f->ways, v, to, r);
  while (!f->ways && v != to) {
    const LsLink *link = choose_link (f, c, flow, v, to);
    ls_route_hop (r, link->trunk, link->latency);
    v = link->to - fabric->first_vertex;
  }
}

const LsFabricKind ls_fabric_list = {
  .name = "list",
  .check = check,
  .n_links = n_links,
  .new = list_new,
  .lay_out = lay_out,
  .finish = finish,
  .edge = edge,
  .edge_name = edge_name,
  .reaches = reaches,
  .way = way,
};
