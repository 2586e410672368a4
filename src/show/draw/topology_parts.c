/* Vertices and links of a drawn topology, by their kind or by how busy they were. */
#include <math.h>
#include <string.h>

#include "show/draw/topology_draw.h"

/* --- by kind ------------------------------------------------------------------------------------------ */

const char *
ls_draw_kind_paint (LsNodeKind kind)
{
  static const char *const paints[LS_TOPO_MAX_KINDS] = {
    [LS_NODE_GPU] = "gpu", [LS_NODE_NVSWITCH] = "nvswitch",     [LS_NODE_PCIE_SWITCH] = "pcie-switch",
    [LS_NODE_CPU] = "cpu", [LS_NODE_CPU_MEMORY] = "cpu-memory", [LS_NODE_NVME] = "drive",
    [LS_NODE_NIC] = "nic",
  };
  return paints[kind] ? paints[kind] : "switch";
}

const char *
ls_draw_link_paint (const char *name)
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
  static const char *const short_names[LS_TOPO_MAX_KINDS]
      = { [LS_NODE_PCIE_SWITCH] = "pcie", [LS_NODE_CPU_MEMORY] = "mem" };
  const char *name = ls_topo_kind_name (kind);
  g_autofree char *digits = g_strdup_printf ("%u", number), *tip = g_strdup_printf ("%s %u", name, number);
  const LsDrawnBox box = { LS_LAYER_BOXES, x, y, w, h, ls_draw_kind_paint (kind), 0, true, tip };
  ls_drawing_box (d, &box);
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
  GHashTable *between; /* key of two vertices -> index + 1 */
  GArray *shares;      /* double */
};

static const LsTopoNode *
vertex (const LsTopoUse *u, uint32_t v)
{
  return &g_array_index (u->cluster->nodes, LsTopoNode, v);
}

/* Inside of nodes, that of vertices that stand at the same place in each. */
static guint64
key_of (const LsTopoUse *u, uint32_t v, uint32_t w)
{
  const LsTopoNode *a = vertex (u, v), *b = vertex (u, w);
  guint64 x = v, y = w;
  bool is_inside = a->host == b->host && a->host != UINT32_MAX;
  if (is_inside) {
    x = (guint64) a->kind << 24 | a->index;
    y = (guint64) b->kind << 24 | b->index;
  }
  return (guint64) is_inside << 63 | MIN (x, y) << 31 | MAX (x, y);
}

static guint
index_of (const LsTopoUse *u, guint64 key)
{
  return GPOINTER_TO_UINT (g_hash_table_lookup (u->between, &key));
}

static void
put (LsTopoUse *u, const LsLink *link, double share)
{
  guint64 key = key_of (u, link->from, link->to);
  guint known = index_of (u, key);
  if (known > 0) {
    double *most = &g_array_index (u->shares, double, known - 1);
    *most = fmax (*most, share);
    return;
  }
  g_array_append_val (u->shares, share);
  g_hash_table_insert (u->between, g_memdup2 (&key, sizeof key), GUINT_TO_POINTER (u->shares->len));
}

LsTopoUse *
ls_topo_use_new (const LsCluster *c, const LsTimeline *t)
{
  LsTopoUse *u = g_new (LsTopoUse, 1);
  *u = (LsTopoUse) { c, g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, NULL),
                     g_array_new (FALSE, FALSE, sizeof (double)) };
  double window = ls_time_to_s (t->window_end - t->window_start);
  for (guint i = 0; i < c->links->len; i++) {
    const LsLink *link = &g_array_index (c->links, LsLink, i);
    const LsTrunk *trunk = &g_array_index (c->trunks, LsTrunk, link->trunk);
    double bytes = link->trunk < t->n_resources ? t->resource_bytes[link->trunk] : 0;
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
  g_array_unref (u->shares);
  g_free (u);
}

double
ls_topo_use_between (const LsTopoUse *u, uint32_t v, uint32_t w)
{
  guint known = index_of (u, key_of (u, v, w));
  return known > 0 ? g_array_index (u->shares, double, known - 1) : 0;
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
    return (LsStroke) { LS_LAYER_LINES, ls_draw_link_paint (name), width, false, tip };
  char text[G_ASCII_DTOSTR_BUF_SIZE];
  g_snprintf (tip, LS_LINK_TIP, "%s: %s %% of its capacity", name,
              g_ascii_formatd (text, sizeof text, "%.3g", 100 * share));
  return (LsStroke) { LS_LAYER_LINES, steps[step_of (share)].paint, 1 + 0.7 * step_of (share), false, tip };
}

double
ls_draw_use_legend (LsDrawing *d, double left, double y)
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
