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

#include "show/topology_keys.h"

static GString *
write_json (const LsTopoMap *map, const GPtrArray *paths, bool has_all, FILE *file)
{
  GString *text = g_string_new (NULL);
  LsJsonOut w;
  ls_json_out_init (&w, text, 2);
  w.file = file;
  ls_json_out_begin_object (&w, NULL);
  ls_json_out_schema (&w, "topology");
  ls_keys_topology (&w, map, paths, has_all);
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
