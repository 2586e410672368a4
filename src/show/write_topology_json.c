/* show/write_topology_json.c — a described cluster for programs: as JSON, and as a graph for Graphviz. */
#include <math.h>

#include "analysis/topology.h"
#include "data/text/json_out.h"
#include "show/write_topology.h"

/* --- a cluster as a graph for Graphviz ----------------------------------------------------------- */

#define NO_HOST UINT32_MAX

/* Paul Tol, "Colour schemes", SRON/EPS/TN/09-002, "light"; people with impaired colour
 * vision tell them apart. */
static const char *const colors[LS_TOPO_MAX_KINDS] = {
  [LS_NODE_GPU] = "#bbcc33",     [LS_NODE_NVSWITCH] = "#44bb99",   [LS_NODE_PCIE_SWITCH] = "#eedd88",
  [LS_NODE_CPU] = "#ee8866",     [LS_NODE_CPU_MEMORY] = "#ffaabb", [LS_NODE_NVME] = "#dddddd",
  [LS_NODE_NIC] = "#77aadd",     [LS_NODE_BRIDGE] = "#ee8866",     [LS_NODE_LEAF] = "#99ddff",
  [LS_NODE_SPINE] = "#99ddff",   [LS_NODE_CORE] = "#99ddff",       [LS_NODE_LOCALS] = "#99ddff",
  [LS_NODE_GLOBALS] = "#99ddff",
};

/* Two ends as drawn, and how many links are between them. */
typedef struct {
  char *ends;
  uint64_t n_physical;
  double capacity; /* of all */
} Edge;

static const LsTopoNode *
vertex (const LsCluster *c, uint32_t v)
{
  return &g_array_index (c->nodes, LsTopoNode, v);
}

/* "gpu3", "node2", "leaf1": an identifier. */
static char *
name_of (const LsCluster *c, uint32_t v)
{
  const LsTopoNode *node = vertex (c, v);
  if (node->host != NO_HOST && node->host != 0)
    return g_strdup_printf ("node%u", node->host);
  g_autofree char *kind = g_strdelimit (g_strdup (ls_topo_kind_name (node->kind)), " ", '_');
  return g_strdup_printf ("%s%u", kind, node->index);
}

static void
add_vertex (GString *out, const LsCluster *c, uint32_t v, const char *indent)
{
  const LsTopoNode *node = vertex (c, v);
  g_autofree char *name = name_of (c, v);
  const char *color = colors[node->kind] ? colors[node->kind] : "#ffffff";
  g_string_append_printf (out, "%s%s [label=\"%s %u\", fillcolor=\"%s\"];\n", indent, name,
                          ls_topo_kind_word (&c->spec, node->kind), node->index, color);
}

static void
add_vertices (GString *out, const LsCluster *c)
{
  g_string_append (out,
                   "  subgraph cluster_node0 {\n    label=\"node 0\";\n    style=rounded;\n    "
                   "color=\"#888888\";\n");
  guint v = 0;
  for (; v < c->nodes->len && vertex (c, v)->host == 0; v++)
    add_vertex (out, c, v, "    ");
  g_string_append (out, "  }\n");
  for (; v < c->nodes->len && vertex (c, v)->host != NO_HOST; v++)
    if (vertex (c, v)->host != vertex (c, v - 1)->host)
      g_string_append_printf (out, "  node%u [label=\"node %u\", fillcolor=\"#eeeeee\"];\n",
                              vertex (c, v)->host, vertex (c, v)->host);
  for (; v < c->nodes->len; v++)
    add_vertex (out, c, v, "  ");
}

static void
edge_clear (gpointer data)
{
  g_free (((Edge *) data)->ends);
}

/* One direction of each, in the order of the cluster's links. */
static GArray *
collect_edges (const LsCluster *c)
{
  GArray *edges = g_array_new (FALSE, FALSE, sizeof (Edge));
  g_autoptr (GHashTable) index = g_hash_table_new (g_str_hash, g_str_equal); /* ends > place + 1 */
  g_array_set_clear_func (edges, edge_clear);
  for (guint i = 0; i < c->links->len; i++) {
    const LsLink *link = &g_array_index (c->links, LsLink, i);
    uint32_t from = vertex (c, link->from)->host, to = vertex (c, link->to)->host;
    if (link->from > link->to || (from == to && from != 0 && from != NO_HOST))
      continue;
    g_autofree char *a = name_of (c, link->from), *b = name_of (c, link->to);
    char *ends = g_strdup_printf ("%s -- %s", a, b);
    guint at = GPOINTER_TO_UINT (g_hash_table_lookup (index, ends));
    if (at == 0) {
      Edge edge = { .ends = ends };
      g_array_append_val (edges, edge);
      at = edges->len;
      g_hash_table_insert (index, ends, GUINT_TO_POINTER (at));
    } else {
      g_free (ends);
    }
    Edge *edge = &g_array_index (edges, Edge, at - 1);
    edge->n_physical += link->n_physical;
    edge->capacity += link->capacity_bytes_per_s;
  }
  return edges;
}

char *
ls_dot_format (const LsCluster *c)
{
  GString *out = g_string_new (NULL);
  g_autofree char *title = g_strescape (c->spec.name ? c->spec.name : "", NULL);
  g_string_append_printf (out,
                          "graph \"%s\" {\n"
                          "  // links: how many physical ones side by side, and their payload together, one "
                          "direction\n"
                          "  graph [fontname=\"DejaVu Sans\", ranksep=1];\n"
                          "  node [fontname=\"DejaVu Sans\", fontsize=10, shape=box, "
                          "style=\"rounded,filled\", color=\"#666666\"];\n"
                          "  edge [fontname=\"DejaVu Sans\", fontsize=8, color=\"#666666\"];\n",
                          title);
  add_vertices (out, c);
  GArray *edges = collect_edges (c);
  for (guint i = 0; i < edges->len; i++) {
    const Edge *edge = &g_array_index (edges, Edge, i);
    g_autofree char *rate = ls_format_rate (edge->capacity);
    g_string_append_printf (out, "  %s [tooltip=\"%" G_GUINT64_FORMAT " x, %s\"", edge->ends,
                            edge->n_physical, rate);
    if (edge->n_physical > 1)
      g_string_append_printf (out, ", label=\"%" G_GUINT64_FORMAT "\"", edge->n_physical);
    g_string_append (out, "];\n");
  }
  g_array_unref (edges);
  g_string_append (out, "}\n");
  return g_string_free (out, FALSE);
}

/* Infinity has no number in JSON: with one part nothing limits, as nothing moves. */
static void
add_both (LsJsonOut *w, const char *key, LsBandwidth b)
{
  ls_json_out_begin_object (w, key);
  ls_json_out_double (w, "data_sheet_bytes_per_s", b.data_sheet);
  ls_json_out_double (w, "payload_bytes_per_s", b.payload);
  ls_json_out_end_object (w);
}

static void
add_parts (LsJsonOut *w, const LsTopoMap *map, const GPtrArray *parts, uint64_t depth)
{
  for (guint i = 0; i < parts->len; i++) {
    const LsTopoPart *part = g_ptr_array_index (parts, i);
    ls_json_out_begin_object (w, NULL);
    ls_json_out_uint (w, "depth", depth);
    ls_json_out_uint (w, "count", part->n);
    ls_json_out_string (w, "kind", ls_topo_kind_name (part->kind));
    ls_json_out_bool (w, "is_pair", part->is_peers);
    ls_json_out_string (w, "link",
                        part->links < 0 ? NULL : g_array_index (map->links, LsTopoLinks, part->links).name);
    ls_json_out_uint (w, "n_links", part->n_physical);
    ls_json_out_end_object (w);
    add_parts (w, map, part->children, depth + 1);
  }
}

static void
add_tree (LsJsonOut *w, const char *key, const LsTopoMap *map, const GPtrArray *parts)
{
  ls_json_out_begin_array (w, key);
  add_parts (w, map, parts, 0);
  ls_json_out_end_array (w);
}

static void
add_counts (LsJsonOut *w, const LsTopoMap *map)
{
  ls_json_out_begin_array (w, "counts");
  for (int kind = 0; kind < LS_TOPO_MAX_KINDS; kind++) {
    if (map->n_of_kind[kind] == 0)
      continue;
    ls_json_out_begin_object (w, NULL);
    ls_json_out_string (w, "kind", ls_topo_kind_name ((LsNodeKind) kind));
    ls_json_out_uint (w, "count", map->n_of_kind[kind]);
    ls_json_out_end_object (w);
  }
  ls_json_out_end_array (w);
}

static void
add_levels (LsJsonOut *w, const LsTopoMap *map)
{
  ls_json_out_begin_array (w, "levels");
  for (guint i = 0; i < map->levels->len; i++) {
    const LsTopoLevel *l = &g_array_index (map->levels, LsTopoLevel, i);
    ls_json_out_begin_object (w, NULL);
    ls_json_out_string (w, "name", l->name);
    ls_json_out_string (w, "part", l->part);
    ls_json_out_uint (w, "n_groups", l->n_groups);
    ls_json_out_uint (w, "n_parts", l->n_parts);
    add_both (w, "each", l->each);
    add_both (w, "together", l->together);
    add_both (w, "all_gather", l->all_gather);
    ls_json_out_end_object (w);
  }
  ls_json_out_end_array (w);
}

static void
add_links (LsJsonOut *w, const LsTopoMap *map)
{
  ls_json_out_begin_array (w, "links");
  for (guint i = 0; i < map->links->len; i++) {
    const LsTopoLinks *l = &g_array_index (map->links, LsTopoLinks, i);
    ls_json_out_begin_object (w, NULL);
    ls_json_out_string (w, "name", l->name);
    ls_json_out_string (w, "from", ls_topo_kind_name (l->a));
    ls_json_out_string (w, "to", ls_topo_kind_name (l->b));
    ls_json_out_uint (w, "n_pairs", l->n_pairs);
    ls_json_out_uint (w, "n_links", l->n_physical);
    ls_json_out_double (w, "data_sheet_bytes_per_s", ls_topo_links_rate (l).data_sheet);
    ls_json_out_double (w, "efficiency", l->link ? l->link->efficiency : NAN);
    ls_json_out_double (w, "payload_bytes_per_s", l->capacity_bytes_per_s);
    ls_json_out_double (w, "latency_s", ls_time_to_s (l->latency));
    ls_json_out_string (w, "source", l->link ? l->link->source : NULL);
    ls_json_out_end_object (w);
  }
  ls_json_out_end_array (w);
}

static void
add_trunk (LsJsonOut *w, const LsTrunk *trunk)
{
  ls_json_out_string (w, "name", trunk->name);
  ls_json_out_double (w, "data_sheet_bytes_per_s", ls_topo_trunk_rate (trunk).data_sheet);
  ls_json_out_double (w, "payload_bytes_per_s", ls_topo_trunk_rate (trunk).payload);
  ls_json_out_double (w, "latency_s", ls_time_to_s (trunk->latency));
}

static void
add_trunks (LsJsonOut *w, const LsCluster *c)
{
  ls_json_out_begin_array (w, "trunks");
  for (guint i = 0; i < c->n_trunks; i++) {
    ls_json_out_begin_object (w, NULL);
    add_trunk (w, &g_array_index (c->trunks, LsTrunk, i));
    ls_json_out_end_object (w);
  }
  ls_json_out_end_array (w);
}

static void
add_path (LsJsonOut *w, const LsCluster *c, const LsTopoPath *path)
{
  g_autofree char *from = ls_topology_gpu_name (c, path->from), *to = ls_topology_gpu_name (c, path->to);
  ls_json_out_begin_object (w, NULL);
  ls_json_out_string (w, "from", from);
  ls_json_out_string (w, "to", to);
  ls_json_out_double (w, "payload_bytes_per_s", path->rate);
  ls_json_out_double (w, "latency_s", ls_time_to_s (path->latency));
  ls_json_out_string (w, "narrowest", g_array_index (path->hops, LsTopoHop, path->narrowest).trunk->name);
  ls_json_out_begin_array (w, "hops");
  for (guint i = 0; i < path->hops->len; i++) {
    const LsTopoHop *hop = &g_array_index (path->hops, LsTopoHop, i);
    ls_json_out_begin_object (w, NULL);
    add_trunk (w, hop->trunk);
    ls_json_out_double (w, "share", hop->share);
    ls_json_out_end_object (w);
  }
  ls_json_out_end_array (w);
  ls_json_out_end_object (w);
}

static void
add_head (LsJsonOut *w, const LsCluster *c)
{
  const LsClusterSpec *s = &c->spec;
  ls_json_out_string (w, "cluster", s->name);
  ls_json_out_string (w, "source", s->source);
  ls_json_out_string (w, "gpu", ls_cluster_node_spec (c, 0)->gpu.name);
  ls_json_out_uint (w, "n_nodes", s->n_nodes);
  ls_json_out_uint (w, "gpus_per_node", ls_cluster_gpus_of (c, 0));
  ls_json_out_uint (w, "n_gpus", c->n_gpus);
}

/* Of nodes of other kinds than that of node 0. */
static void
add_others (LsJsonOut *w, const LsTopoMap *map)
{
  if (!map->others)
    return;
  ls_json_out_begin_array (w, "other_nodes");
  for (guint i = 0; i < map->others->len; i++) {
    const LsTopoOther *other = &g_array_index (map->others, LsTopoOther, i);
    ls_json_out_begin_object (w, NULL);
    ls_json_out_uint (w, "first", other->host);
    ls_json_out_string (w, "gpu", ls_cluster_node_spec (map->cluster, other->host)->gpu.name);
    ls_json_out_uint (w, "gpus_per_node", ls_cluster_gpus_of (map->cluster, other->host));
    add_tree (w, "node", map, other->parts);
    ls_json_out_end_object (w);
  }
  ls_json_out_end_array (w);
}

static GString *
write_json (const LsTopoMap *map, const GPtrArray *paths, bool has_all, FILE *file)
{
  GString *text = g_string_new (NULL);
  LsJsonOut w;
  ls_json_out_init (&w, text, 2);
  w.file = file;
  ls_json_out_begin_object (&w, NULL);
  ls_json_out_schema (&w, "topology");
  add_head (&w, map->cluster);
  add_counts (&w, map);
  add_tree (&w, "node", map, map->node);
  add_others (&w, map);
  add_tree (&w, "fabric", map, map->fabric);
  add_levels (&w, map);
  ls_json_out_begin_object (&w, "bisection");
  add_both (&w, "node", map->node_bisection);
  add_both (&w, "cluster", map->cluster_bisection);
  ls_json_out_end_object (&w);
  add_links (&w, map);
  if (has_all)
    add_trunks (&w, map->cluster);
  ls_json_out_begin_array (&w, "paths");
  for (guint i = 0; i < paths->len; i++)
    add_path (&w, map->cluster, g_ptr_array_index (paths, i));
  ls_json_out_end_array (&w);
  ls_json_out_end_object (&w);
  g_string_append_c (text, '\n');
  return text;
}

char *
ls_topology_to_json (const LsTopoMap *map, const GPtrArray *paths, bool has_all)
{
  return g_string_free (write_json (map, paths, has_all, NULL), FALSE);
}

void
ls_topology_write_json (const LsTopoMap *map, const GPtrArray *paths, bool has_all, FILE *out)
{
  GString *rest = write_json (map, paths, has_all, out);
  fwrite (rest->str, 1, rest->len, out);
  g_string_free (rest, TRUE);
}
