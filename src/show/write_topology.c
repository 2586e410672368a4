/* show/write_topology.c — a described cluster for people and for programs. */
#include "show/answers.h"

#include <math.h>

#include "base/list.h"
#include "job/assumptions.h"
#include "show/draw/pictures.h"
#include "show/text_table.h"

#define MAX_LINE 110 /* of a source */

typedef struct {
  const LsTopoMap *map;
  const LsTopologyText *text;
  GString *out;
  const LsClusterSpec *node; /* whose tree is written */
} Page;

static const LsTopoLinks *
links_at (const LsTopoMap *map, int i)
{
  return &g_array_index (map->links, LsTopoLinks, i);
}

static char *
ends_of (const LsClusterSpec *spec, const LsTopoLinks *l)
{
  return g_strdup_printf ("%s to %s", ls_topo_kind_word (spec, l->a), ls_topo_kind_word (spec, l->b));
}

char *
ls_topology_gpu_name (const LsCluster *c, uint32_t gpu)
{
  return g_strdup_printf ("node%u/gpu%u", ls_cluster_host_of (c, gpu), ls_cluster_local_of (c, gpu));
}

static char *
rate (double bytes_per_s)
{
  return isfinite (bytes_per_s) ? ls_format_rate (bytes_per_s) : g_strdup ("-");
}

/* A long line broken at blanks, all but the first indented. */
static char *
wrapped (const char *text, int indent)
{
  g_auto (GStrv) words = g_strsplit (text, " ", -1);
  GString *out = g_string_new (NULL);
  glong at = indent;
  for (char **word = words; *word; word++) {
    glong n = g_utf8_strlen (*word, -1);
    bool is_first = word == words, breaks = !is_first && at + 1 + n > MAX_LINE;
    if (breaks)
      g_string_append_printf (out, "\n%*s", indent, "");
    else if (!is_first)
      g_string_append_c (out, ' ');
    g_string_append (out, *word);
    at = breaks ? indent + n : at + n + !is_first;
  }
  return g_strstrip (g_string_free (out, FALSE));
}

/* --- trees ------------------------------------------------------------------------- */

static char *
part_note (const Page *p, LsNodeKind kind)
{
  const LsCluster *c = p->map->cluster;
  const LsClusterSpec *s = p->node;
  uint32_t n_of_node
      = c->kind_of_host ? s->server.cpu_sockets : (uint32_t) (p->map->n_of_kind[kind] / c->spec.n_nodes);
  if (kind == LS_NODE_GPU)
    return g_strdup (s->gpu.name);
  if (kind == LS_NODE_CPU_MEMORY && s->server.cpu_memory_bytes > 0 && n_of_node > 0)
    return ls_format_bytes (s->server.cpu_memory_bytes * ls_cluster_n_cpu_hosts (s) / n_of_node);
  if (kind == LS_NODE_NVME && s->server.nvme_bytes > 0)
    return ls_format_bytes (s->server.nvme_bytes);
  return NULL;
}

/* A part with the lines of the tree before it. */
typedef struct {
  char *line; /* owned */
  const LsTopoPart *part;
  guint depth;
} Branch;

static void
add_branches (GArray *branches, const GPtrArray *parts, guint depth, const char *before, bool ascii)
{
  for (guint i = 0; i < parts->len; i++) {
    bool is_last = i + 1 == parts->len;
    const char *line = is_last ? (ascii ? "`-" : "└─") : ascii ? "|-" : "├─";
    g_autofree char *below = g_strconcat (before, is_last ? "   " : ascii ? "|  " : "│  ", NULL);
    const Branch branch = { g_strconcat (before, line, NULL), g_ptr_array_index (parts, i), depth };
    g_array_append_val (branches, branch);
    add_branches (branches, branch.part->children, depth + 1, below, ascii);
  }
}

static GArray *
branches_of (const GPtrArray *parts, bool ascii)
{
  GArray *branches = ls_list_new (sizeof (Branch), ls_clear_text);
  add_branches (branches, parts, 0, "", ascii);
  return branches;
}

/* --- a cluster as a graph for Graphviz ----------------------------------------------------------- */

#define NO_HOST UINT32_MAX

/* Two ends as drawn, and how many links are between them. */
typedef struct {
  char *ends;
  uint64_t n_physical;
  double capacity; /* of all */
} Edge;

/* "gpu3", "node2", "leaf1": an identifier. */
static char *
name_of (const LsCluster *c, uint32_t v)
{
  const LsTopoNode *node = ls_cluster_vertex (c, v);
  if (node->host != NO_HOST && node->host != 0)
    return g_strdup_printf ("node%u", node->host);
  g_autofree char *kind = g_strdelimit (g_strdup (ls_topo_kind_name (node->kind)), " ", '_');
  return g_strdup_printf ("%s%u", kind, node->index);
}

/* One direction of each, in the order of the cluster's links. */
static GArray *
collect_edges (const LsCluster *c)
{
  GArray *edges = ls_list_new (sizeof (Edge), ls_clear_text);
  g_autoptr (GHashTable) index = g_hash_table_new (g_str_hash, g_str_equal); /* ends > place + 1 */
  for (guint i = 0; i < c->links->len; i++) {
    const LsLink *link = &g_array_index (c->links, LsLink, i);
    uint32_t from = ls_cluster_vertex (c, link->from)->host, to = ls_cluster_vertex (c, link->to)->host;
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

/* Whether it is the first of a node behind node 0. */
static bool
begins_node (const LsCluster *c, uint32_t v)
{
  uint32_t host = ls_cluster_vertex (c, v)->host;
  return host != 0 && host != NO_HOST && host != ls_cluster_vertex (c, v - 1)->host;
}

#include "show/topology_text.h"

/* --- for programs ---------------------------------------------------------------------------------- */

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
