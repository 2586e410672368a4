#include "show/write_topology.h"

#include <math.h>

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

char *
ls_topology_ends (const LsClusterSpec *spec, const LsTopoLinks *l)
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

/* Breaks a long line at blanks. */
static void
add_wrapped (GString *out, const char *text, int indent)
{
  g_auto (GStrv) words = g_strsplit (text, " ", -1);
  glong at = 0;
  for (char **word = words; *word; word++) {
    glong n = g_utf8_strlen (*word, -1);
    bool breaks = at > 0 && at + 1 + n > MAX_LINE;
    if (breaks)
      g_string_append_c (out, '\n');
    if (at == 0 || breaks)
      g_string_append_printf (out, "%*s", indent, "");
    else
      g_string_append_c (out, ' ');
    g_string_append (out, *word);
    at = at == 0 || breaks ? indent + n : at + 1 + n;
  }
  g_string_append_c (out, '\n');
}

/* --- head -------------------------------------------------------------------------- */

static const char *
plural (uint64_t n)
{
  return n == 1 ? "" : "s";
}

static void
add_head (Page *p)
{
  const LsCluster *c = p->map->cluster;
  g_autofree char *nodes = ls_topo_nodes_text (c);
  g_string_append_printf (p->out, "%s: %s, %u %s\n", c->spec.name, nodes, c->n_gpus,
                          ls_cluster_chip_word (&c->spec, c->n_gpus));
  if (c->spec.source)
    add_wrapped (p->out, c->spec.source, 0);
}

/* --- trees ------------------------------------------------------------------------- */

static char *
part_note (const LsClusterSpec *s, LsNodeKind kind, uint32_t n_of_node)
{
  if (kind == LS_NODE_GPU)
    return g_strdup (s->gpu.name);
  if (kind == LS_NODE_CPU_MEMORY && s->cpu_memory_bytes > 0 && n_of_node > 0)
    return ls_format_bytes (s->cpu_memory_bytes * ls_cluster_n_cpu_hosts (s) / n_of_node);
  if (kind == LS_NODE_NVME && s->nvme_bytes > 0)
    return ls_format_bytes (s->nvme_bytes);
  return NULL;
}

static char *
part_text (const Page *p, const LsTopoPart *part)
{
  const LsCluster *c = p->map->cluster;
  const char *kind = ls_topo_kind_word (&c->spec, part->kind);
  g_autofree char *note = part_note (
      p->node, part->kind,
      c->kind_of_host ? p->node->cpu_sockets : (uint32_t) (p->map->n_of_kind[part->kind] / c->spec.n_nodes));
  if (part->is_peers)
    return g_strdup_printf ("%u pair%s of %s", part->n, plural (part->n), kind);
  return note ? g_strdup_printf ("%u x %s, %s", part->n, kind, note)
              : g_strdup_printf ("%u x %s", part->n, kind);
}

static void
add_link_cells (LsTextTable *t, const Page *p, const LsTopoPart *part)
{
  if (part->links < 0) {
    for (int i = 0; i < 5; i++)
      ls_text_table_take (t, NULL);
    return;
  }
  const LsTopoLinks *l = links_at (p->map, part->links);
  bool is_plain = part->kind != LS_NODE_NVSWITCH && !part->is_peers;
  bool is_many_links = part->n_physical != 1 && g_str_has_suffix (l->name, "link");
  g_autofree char *of_each
      = g_strdup_printf (" of each %s", ls_topo_kind_word (&p->map->cluster->spec, LS_NODE_GPU));
  ls_text_table_add (t, "%u %s%s%s", part->n_physical, l->name, is_many_links ? "s" : "",
                     is_plain             ? ""
                         : part->is_peers ? " in all"
                                          : of_each);
  ls_text_table_take (t, rate (ls_topo_links_rate (l).data_sheet));
  ls_text_table_add (t, "%.1f %%", l->link ? 100 * l->link->efficiency : 100.0);
  ls_text_table_take (t, rate (l->capacity_bytes_per_s));
  ls_text_table_take (t, ls_format_time (l->latency));
}

static void
add_parts (LsTextTable *t, const Page *p, const GPtrArray *parts, const char *before)
{
  for (guint i = 0; i < parts->len; i++) {
    const LsTopoPart *part = g_ptr_array_index (parts, i);
    bool is_last = i + 1 == parts->len;
    g_autofree char *name = part_text (p, part);
    g_autofree char *below = g_strconcat (before, is_last ? "   " : p->text->ascii ? "|  " : "│  ", NULL);
    ls_text_table_add (t, "%s%s %s", before,
                       p->text->ascii ? (is_last ? "`-" : "|-")
                           : is_last  ? "└─"
                                      : "├─",
                       name);
    add_link_cells (t, p, part);
    add_parts (t, p, part->children, below);
  }
}

static void
add_columns (LsTextTable *t, const char *const *titles)
{
  for (; *titles; titles++)
    ls_text_table_add (t, "%s", *titles);
}

static void
add_tree (Page *p, const char *title, const GPtrArray *parts)
{
  if (parts->len == 0)
    return;
  const char *const titles[] = { title, "joined by", "each", "efficiency", "payload", "latency", NULL };
  LsTextTable t;
  g_string_append_c (p->out, '\n');
  ls_text_table_init (&t, "llrrrr");
  add_columns (&t, titles);
  add_parts (&t, p, parts, "");
  ls_text_table_print (&t, 0, p->out);
}

/* One that stands for all, of each kind. */
static void
add_nodes (Page *p)
{
  const LsCluster *c = p->map->cluster;
  g_autofree char *first = c->kind_of_host ? g_strdup_printf ("Node 0, %s", p->node->gpu.name) : NULL;
  add_tree (p, first ? first : "One node", p->map->node);
  for (guint i = 0; p->map->others && i < p->map->others->len; i++) {
    const LsTopoOther *other = &g_array_index (p->map->others, LsTopoOther, i);
    p->node = ls_cluster_node_spec (c, other->host);
    g_autofree char *title = g_strdup_printf ("Node %u, %s", other->host, p->node->gpu.name);
    add_tree (p, title, other->parts);
  }
  p->node = ls_cluster_node_spec (c, 0);
}

/* --- totals ------------------------------------------------------------------------ */

static void
add_totals (Page *p)
{
  const LsTopoMap *map = p->map;
  uint64_t n_links = 0;
  g_string_append (p->out, "\nIn all   ");
  for (int kind = 0; kind < LS_TOPO_MAX_KINDS; kind++)
    if (map->n_of_kind[kind] > 0)
      g_string_append_printf (p->out, "%" G_GUINT64_FORMAT " %s, ", map->n_of_kind[kind],
                              ls_topo_kind_word (&map->cluster->spec, (LsNodeKind) kind));
  for (guint i = 0; i < map->links->len; i++)
    n_links += links_at (map, (int) i)->n_physical;
  g_string_append_printf (p->out, "%" G_GUINT64_FORMAT " links\n", n_links);
}

/* --- bandwidth --------------------------------------------------------------------- */

static void
add_both (LsTextTable *t, LsBandwidth b)
{
  ls_text_table_take (t, rate (b.data_sheet));
  ls_text_table_take (t, rate (b.payload));
}

static void
add_bisection (LsTextTable *t, const char *what, LsBandwidth b)
{
  if (isnan (b.payload))
    return;
  ls_text_table_add (t, "bisection\v%s", what);
  ls_text_table_take (t, NULL);
  ls_text_table_take (t, NULL);
  add_both (t, b);
  ls_text_table_take (t, NULL);
  ls_text_table_take (t, NULL);
}

static void
add_bandwidth (Page *p)
{
  static const char *const titles[]
      = { "Bandwidth", "joins", "each", "payload", "together", "payload", "all-gather", "payload", NULL };
  LsTextTable t;
  g_string_append_c (p->out, '\n');
  ls_text_table_init (&t, "llrrrrrr");
  add_columns (&t, titles);
  for (guint i = 0; i < p->map->levels->len; i++) {
    const LsTopoLevel *l = &g_array_index (p->map->levels, LsTopoLevel, i);
    const char *part = l->is_of_gpus ? ls_topo_kind_word (&p->map->cluster->spec, LS_NODE_GPU) : l->part;
    ls_text_table_add (&t, "%s", l->name);
    const char *most = l->is_of_gpus && p->map->cluster->seats.first ? "up to " : "";
    if (l->n_groups == 1)
      ls_text_table_add (&t, "%u x %s", l->n_parts, part);
    else
      ls_text_table_add (&t, "%u x %s%u x %s", l->n_groups, most, l->n_parts, part);
    add_both (&t, l->each);
    add_both (&t, l->together);
    add_both (&t, l->all_gather);
  }
  add_bisection (&t, "halves of a node", p->map->node_bisection);
  add_bisection (&t, "halves of the nodes", p->map->cluster_bisection);
  ls_text_table_print (&t, 0, p->out);
}

/* --- links ------------------------------------------------------------------------- */

static void
add_links (Page *p)
{
  static const char *const titles[]
      = { "Links", "between", "pairs", "links", "each", "efficiency", "payload", "latency", NULL };
  LsTextTable t;
  g_string_append_c (p->out, '\n');
  ls_text_table_init (&t, "llrrrrrr");
  add_columns (&t, titles);
  for (guint i = 0; i < p->map->links->len; i++) {
    const LsTopoLinks *l = links_at (p->map, (int) i);
    ls_text_table_add (&t, l->capacity_bytes_per_s > 0 ? "%s" : "%s, failed", l->name);
    ls_text_table_take (&t, ls_topology_ends (&p->map->cluster->spec, l));
    ls_text_table_add (&t, "%" G_GUINT64_FORMAT, l->n_pairs);
    ls_text_table_add (&t, "%" G_GUINT64_FORMAT, l->n_physical);
    ls_text_table_take (&t, rate (ls_topo_links_rate (l).data_sheet));
    ls_text_table_add (&t, "%.1f %%", l->link ? 100 * l->link->efficiency : 100.0);
    ls_text_table_take (&t, rate (l->capacity_bytes_per_s));
    ls_text_table_take (&t, ls_format_time (l->latency));
    if (!l->link || !l->link->source)
      continue;
    GString *source = g_string_new (NULL);
    add_wrapped (source, l->link->source, 4);
    g_autofree char *note = g_string_free (source, FALSE);
    ls_text_table_note (&t, g_strstrip (note));
  }
  ls_text_table_print (&t, 0, p->out);
}

static void
add_trunks (Page *p)
{
  static const char *const titles[] = { "Every link", "together", "payload", "latency", NULL };
  const LsCluster *c = p->map->cluster;
  LsTextTable t;
  g_string_append_c (p->out, '\n');
  ls_text_table_init (&t, "lrrr");
  add_columns (&t, titles);
  for (guint i = 0; i < c->n_trunks; i++) {
    const LsTrunk *trunk = &g_array_index (c->trunks, LsTrunk, i);
    ls_text_table_add (&t, "%s", trunk->name);
    add_both (&t, ls_topo_trunk_rate (trunk));
    ls_text_table_take (&t, ls_format_time (trunk->latency));
  }
  ls_text_table_print (&t, 0, p->out);
}

/* --- ways -------------------------------------------------------------------------- */

static void
add_path (Page *p, const LsTopoPath *path)
{
  const LsCluster *c = p->map->cluster;
  g_autofree char *from = ls_topology_gpu_name (c, path->from), *to = ls_topology_gpu_name (c, path->to);
  g_autofree char *title = g_strdup_printf ("From %s to %s", from, to);
  const char *const titles[] = { title, "share", "data sheet", "payload", "latency", NULL };
  LsTextTable t;
  g_string_append_c (p->out, '\n');
  ls_text_table_init (&t, "lrrrr");
  add_columns (&t, titles);
  for (guint i = 0; i < path->hops->len; i++) {
    const LsTopoHop *hop = &g_array_index (path->hops, LsTopoHop, i);
    ls_text_table_add (&t, "%s%s\v%.4g %%", hop->trunk->name, i == path->narrowest ? "  narrowest" : "",
                       100 * hop->share);
    ls_text_table_take (&t, rate (ls_topo_trunk_rate (hop->trunk).data_sheet));
    ls_text_table_take (&t, rate (hop->trunk->capacity_bytes_per_s));
    ls_text_table_take (&t, ls_format_time (hop->trunk->latency));
  }
  ls_text_table_add (&t, "one flow alone");
  ls_text_table_take (&t, NULL);
  ls_text_table_take (&t, NULL);
  ls_text_table_take (&t, rate (path->rate));
  ls_text_table_take (&t, ls_format_time (path->latency));
  ls_text_table_print (&t, 0, p->out);
}

char *
ls_topology_to_text (const LsTopoMap *map, const GPtrArray *paths, const LsTopologyText *text)
{
  Page page = {
    .map = map, .text = text, .out = g_string_new (NULL), .node = ls_cluster_node_spec (map->cluster, 0)
  };
  add_head (&page);
  add_nodes (&page);
  add_tree (&page, "Fabric", map->fabric);
  add_totals (&page);
  add_bandwidth (&page);
  if (text->has_links)
    add_links (&page);
  if (text->has_all)
    add_trunks (&page);
  for (guint i = 0; i < paths->len; i++)
    add_path (&page, g_ptr_array_index (paths, i));
  return g_string_free (page.out, FALSE);
}
