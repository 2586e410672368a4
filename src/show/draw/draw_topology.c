/* show/draw/draw_topology.c — a cluster, drawn: its parts by kind or by how busy they were in a step. */
#include "show/draw/pictures.h"

#include <math.h>
#include <string.h>

/* --- vertices and links of a drawn topology, by their kind or by how busy they were -------------- */

const char *
ls_draw_kind_paint (LsNodeKind kind)
{
  static const char *const paints[LS_N_NODE_KINDS] = {
    [LS_NODE_GPU] = "gpu",
    [LS_NODE_NVSWITCH] = "nvswitch",
    [LS_NODE_PCIE_SWITCH] = "pcie-switch",
    [LS_NODE_CPU] = "cpu",
    [LS_NODE_CPU_MEMORY] = "cpu-memory",
    [LS_NODE_NVME] = "drive",
    [LS_NODE_NIC] = "nic",
    [LS_NODE_BRIDGE] = "cpu",
  };
  return paints[kind] ? paints[kind] : "switch";
}

static const char *
draw_link_paint (const char *name)
{
  static const struct {
    const char *name, *paint;
  } paints[] = {
    { "nvlink", "link-nvlink" },        { "nvlink-c2c", "link-c2c" },
    { "ici", "link-nvlink" },           { "pcie", "link-pcie" },
    { "memory", "link-memory" },        { "nvme", "link-drive" },
    { "cpu interconnect", "link-cpu" }, { "nic", "link-nic" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (paints); i++)
    if (strcmp (paints[i].name, name) == 0)
      return paints[i].paint;
  return "link-fabric";
}

void
ls_draw_vertex (LsDrawing *d, double x, double y, double w, double h, LsNodeKind kind, uint32_t number)
{
  static const char *const short_names[LS_N_NODE_KINDS]
      = { [LS_NODE_PCIE_SWITCH] = "pcie", [LS_NODE_CPU_MEMORY] = "mem" };
  const char *name = ls_topo_kind_name (kind);
  g_autofree char *digits = g_strdup_printf ("%u", number), *tip = g_strdup_printf ("%s %u", name, number);
  ls_drawing_rect (d, LS_LAYER_BOXES, (LsRect) { x, y, w, h }, ls_draw_kind_paint (kind), true, tip);
  ls_drawing_text (d, x + w / 2, y + h * 0.3, 9.5, LS_CENTER, "black",
                   short_names[kind] ? short_names[kind] : name);
  ls_drawing_text (d, x + w / 2, y + h * 0.7, 10.5, LS_CENTER, "black", digits);
}

/* --- by use ------------------------------------------------------------------------------------------- */

/* Upper ends of what a colour stands for, above idle: links of a step are seldom full. */
static const struct {
  double end;
  const char *paint, *name;
} steps[] = { { 0, "use-0", "idle" },      { 0.01, "use-1", "to 1 %" }, { 0.05, "use-2", "to 5 %" },
              { 0.2, "use-3", "to 20 %" }, { 0.5, "use-4", "to 50 %" }, { 1, "use-5", "more" } };

struct LsTopoUse {
  const LsCluster *cluster;
  GHashTable *between; /* key of two vertices -> double */
};

/* Inside of nodes, that of vertices that stand at the same place in each. */
static guint64
key_of (const LsTopoUse *u, uint32_t v, uint32_t w)
{
  const LsTopoNode *a = ls_cluster_vertex (u->cluster, v), *b = ls_cluster_vertex (u->cluster, w);
  guint64 x = v, y = w;
  bool is_inside = a->host == b->host && a->host != UINT32_MAX;
  if (is_inside) {
    x = (guint64) a->kind << 24 | a->index;
    y = (guint64) b->kind << 24 | b->index;
  }
  return (guint64) is_inside << 63 | MIN (x, y) << 31 | MAX (x, y);
}

static void
put (LsTopoUse *u, const LsLink *link, double share)
{
  guint64 key = key_of (u, link->from, link->to);
  double *most = g_hash_table_lookup (u->between, &key);
  if (most)
    *most = fmax (*most, share);
  else
    g_hash_table_insert (u->between, g_memdup2 (&key, sizeof key), g_memdup2 (&share, sizeof share));
}

LsTopoUse *
ls_topo_use_new (const LsCluster *c, const LsTimeline *t)
{
  LsTopoUse *u = g_new (LsTopoUse, 1);
  *u = (LsTopoUse) { c, g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, g_free) };
  double window = ls_time_to_s (t->window_end - t->window_start);
  for (guint i = 0; i < c->links->len; i++) {
    const LsLink *link = &g_array_index (c->links, LsLink, i);
    const LsTrunk *trunk = &g_array_index (c->trunks, LsTrunk, link->trunk);
    double bytes = link->trunk < t->n_resources ? ls_timeline_bytes (t, link->trunk) : 0;
    put (u, link, window > 0 && bytes > 0 ? bytes / (trunk->capacity_bytes_per_s * window) : 0);
  }
  return u;
}

void
ls_topo_use_free (LsTopoUse *u)
{
  if (!u)
    return;
  g_hash_table_unref (u->between);
  g_free (u);
}

double
ls_topo_use_between (const LsTopoUse *u, uint32_t v, uint32_t w)
{
  guint64 key = u ? key_of (u, v, w) : 0;
  const double *share = u ? g_hash_table_lookup (u->between, &key) : NULL;
  return share ? *share : 0;
}

static guint
step_of (double share)
{
  guint i = 0;
  while (i + 1 < G_N_ELEMENTS (steps) && share > steps[i].end)
    i++;
  return i;
}

LsStroke
ls_draw_link_stroke (const LsTopoUse *use, const char *name, double share, double width,
                     char tip[LS_LINK_TIP])
{
  g_strlcpy (tip, name, LS_LINK_TIP);
  if (!use)
    return (LsStroke) { LS_LAYER_LINES, draw_link_paint (name), width, false, tip };
  char text[G_ASCII_DTOSTR_BUF_SIZE];
  g_snprintf (tip, LS_LINK_TIP, "%s: %s %% of its capacity", name,
              g_ascii_formatd (text, sizeof text, "%.3g", 100 * share));
  return (LsStroke) { LS_LAYER_LINES, steps[step_of (share)].paint, 1 + 0.7 * step_of (share), false, tip };
}

/* Returns its right end. */
static double
draw_use_legend (LsDrawing *d, double left, double y)
{
  static const char title[] = "share of its capacity that a link carried over the step:";
  ls_drawing_text (d, left, y, 11, LS_LEFT, "quiet", title);
  double x = left + ls_text_width (title, 11) + 12;
  for (guint i = 0; i < G_N_ELEMENTS (steps); i++) {
    const LsStroke stroke = { LS_LAYER_LINES, steps[i].paint, 1 + 0.7 * i, false, NULL };
    ls_drawing_segment (d, (LsXY) { x, y }, (LsXY) { x + 24, y }, &stroke);
    ls_drawing_text (d, x + 30, y, 11, LS_LEFT, "text", steps[i].name);
    x += 46 + ls_text_width (steps[i].name, 11);
  }
  return x;
}

#define HEAD        84.0
#define GAP         26.0
#define LEGEND_LINE 20.0
#define MIN_WIDTH   720.0
#define MAX_TITLE   60 /* letters, which fit that width */

typedef struct {
  LsDrawing *d;
  const LsTopoMap *map;
  const LsTopoUse *use; /* may be NULL */
  double width, y;
} Sheet;

static char *
legend_text (const LsClusterSpec *spec, const LsTopoLinks *l)
{
  g_autofree char *rate = ls_format_rate (l->link ? l->link->bandwidth_bytes_per_s : l->capacity_bytes_per_s);
  g_autofree char *latency = ls_format_time (l->latency);
  return g_strdup_printf ("%s, %s to %s: %" G_GUINT64_FORMAT " link%s of %s, %.1f %% reached, %s", l->name,
                          ls_topo_kind_word (spec, l->a), ls_topo_kind_word (spec, l->b), l->n_physical,
                          l->n_physical == 1 ? "" : "s", rate,
                          l->link ? 100 * l->capacity_bytes_per_s / l->link->bandwidth_bytes_per_s : 100.0,
                          latency);
}

static LsExtent
draw_links_legend (const Sheet *s, bool is_of_node, double top)
{
  double y = top + LEGEND_LINE / 2;
  for (guint i = 0; i < s->map->links->len; i++) {
    const LsTopoLinks *l = &g_array_index (s->map->links, LsTopoLinks, i);
    if ((l->a < LS_NODE_LEAF && l->b < LS_NODE_LEAF) != is_of_node)
      continue;
    g_autofree char *text = legend_text (&s->map->cluster->spec, l);
    /* The links of NICs to the fabric are drawn by rails. */
    bool is_by_rail = !s->use && !is_of_node && (l->a == LS_NODE_NIC || l->b == LS_NODE_NIC);
    guint n = is_by_rail ? MAX (s->map->cluster->spec.network.rails, 1) : 1;
    for (guint k = 0; k < n; k++) {
      const char *paint = s->use ? "quiet"
          : is_by_rail           ? ls_palette_series (k)->name
                                 : draw_link_paint (l->name);
      const LsStroke stroke = { LS_LAYER_LINES, paint, 3, false, NULL };
      ls_drawing_segment (s->d, (LsXY) { LS_DRAW_MARGIN + 26.0 * k / n, y },
                          (LsXY) { LS_DRAW_MARGIN + 26.0 * (k + 1) / n, y }, &stroke);
    }
    ls_drawing_text (s->d, LS_DRAW_MARGIN + 34, y, 11, LS_LEFT, "text", text);
    y += LEGEND_LINE;
  }
  return (LsExtent) { MIN_WIDTH, y - LEGEND_LINE / 2 - top };
}

typedef LsExtent (*DrawPart) (LsDrawing *d, const LsTopoMap *map, const LsTopoUse *use, double top);

/* A heading, a drawing, a legend. */
static void
draw_section (Sheet *s, const char *title, DrawPart draw, bool is_of_node)
{
  ls_drawing_text (s->d, LS_DRAW_MARGIN, s->y + 8, 14, LS_LEFT, "text", title);
  LsExtent body = draw (s->d, s->map, s->use, s->y + GAP);
  LsExtent legend = draw_links_legend (s, is_of_node, s->y + GAP + body.height + 10);
  s->width = fmax (s->width, fmax (body.width, legend.width));
  s->y += GAP + body.height + 10 + legend.height + GAP;
}

/* A name can hold any number of changes of its file (data/text/override.h). */
static char *
short_name (const char *name)
{
  if (g_utf8_strlen (name, -1) <= MAX_TITLE)
    return g_strdup (name);
  g_autofree char *start = g_utf8_substring (name, 0, MAX_TITLE - 3);
  return g_strconcat (start, "...", NULL);
}

static void
add_title (LsDrawing *d, const LsTopoMap *map)
{
  const LsClusterSpec *s = &map->cluster->spec;
  g_autofree char *nodes = ls_topo_nodes_text (map->cluster);
  g_autofree char *line = g_strdup_printf ("%s, %u %s", nodes, map->cluster->n_gpus,
                                           ls_cluster_chip_word (s, map->cluster->n_gpus));
  g_autofree char *name = short_name (s->name);
  ls_drawing_text (d, LS_DRAW_MARGIN, 30, 20, LS_LEFT, "text", name);
  ls_drawing_text (d, LS_DRAW_MARGIN, 54, 12, LS_LEFT, "quiet", line);
}

LsDrawing *
ls_draw_topology (const LsTopoMap *map, const LsTopoUse *use)
{
  Sheet s = { ls_drawing_new (map->cluster->spec.name), map, use, MIN_WIDTH, HEAD };
  bool is_slice = ls_cluster_traits (&map->cluster->spec)->is_slice;
  const char *title = is_slice ? "One slice"
      : use                    ? "One node, each link as the busiest in its place"
                               : "One node";
  add_title (s.d, map);
  if (use) {
    s.width = fmax (s.width, draw_use_legend (s.d, LS_DRAW_MARGIN, s.y) - LS_DRAW_MARGIN);
    s.y += GAP;
  }
  draw_section (&s, title, is_slice ? ls_draw_torus : ls_draw_node, true);
  if (map->fabric->len > 0)
    draw_section (&s, "Fabric", ls_draw_fabric, false);
  ls_drawing_resize (s.d, s.width + 2 * LS_DRAW_MARGIN, s.y);
  return s.d;
}
