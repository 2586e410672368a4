#include "show/plot/plots.h"

#include <math.h>
#include <string.h>

#include "show/plot/topology_draw.h"

#define HEAD        84.0
#define GAP         26.0
#define LEGEND_LINE 20.0
#define MIN_WIDTH   720.0
#define MAX_TITLE   60 /* letters, which fit that width */

/* Paul Tol, "Colour schemes", SRON/EPS/TN/09-002: "light" for boxes, "bright" for lines. */
guint32
ls_draw_kind_color (LsNodeKind kind)
{
  static const guint32 colors[LS_TOPO_MAX_KINDS] = {
    [LS_NODE_GPU] = 0xbbcc33, [LS_NODE_NVSWITCH] = 0x44bb99,   [LS_NODE_PCIE_SWITCH] = 0xeedd88,
    [LS_NODE_CPU] = 0xee8866, [LS_NODE_CPU_MEMORY] = 0xffaabb, [LS_NODE_NVME] = 0xdddddd,
    [LS_NODE_NIC] = 0x77aadd, [LS_NODE_LEAF] = 0x99ddff,       [LS_NODE_SPINE] = 0x99ddff,
  };
  return colors[kind] ? colors[kind] : 0x99ddff;
}

guint32
ls_draw_link_color (const char *name)
{
  static const struct {
    const char *name;
    guint32 color;
  } colors[] = {
    { "nvlink", 0x228833 },           { "nvlink-c2c", 0x44bb99 }, { "ici", 0x228833 },  { "pcie", 0x999999 },
    { "cpu interconnect", 0xee6677 }, { "memory", 0xaa3377 },     { "nvme", 0xbbbbbb }, { "nic", 0x4477aa },
  };
  for (guint i = 0; i < G_N_ELEMENTS (colors); i++)
    if (strcmp (colors[i].name, name) == 0)
      return colors[i].color;
  return 0x66aacc;
}

void
ls_draw_vertex (LsScene *scene, double x, double y, double w, double h, LsNodeKind kind, uint32_t number)
{
  static const char *const short_names[LS_TOPO_MAX_KINDS]
      = { [LS_NODE_PCIE_SWITCH] = "pcie", [LS_NODE_CPU_MEMORY] = "mem" };
  const char *name = short_names[kind] ? short_names[kind] : ls_topo_kind_name (kind);
  ls_scene_box (scene, x, y, w, h, ls_draw_kind_color (kind), 0x666666);
  g_autofree char *digits = g_strdup_printf ("%u", number);
  ls_scene_text (scene, x + w / 2, y + h * 0.3, 9.5, LS_CENTER, LS_DRAW_INK, name);
  ls_scene_text (scene, x + w / 2, y + h * 0.7, 10.5, LS_CENTER, LS_DRAW_INK, digits);
}

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

LsExtent
ls_draw_legend (LsScene *scene, const LsTopoMap *map, bool (*wanted) (const LsTopoLinks *), double top)
{
  double y = top + LEGEND_LINE / 2;
  for (guint i = 0; i < map->links->len; i++) {
    const LsTopoLinks *l = &g_array_index (map->links, LsTopoLinks, i);
    if (!wanted (l))
      continue;
    g_autofree char *text = legend_text (&map->cluster->spec, l);
    ls_scene_segment (scene, LS_DRAW_MARGIN, y, LS_DRAW_MARGIN + 26, y, ls_draw_link_color (l->name), 3);
    ls_scene_text (scene, LS_DRAW_MARGIN + 34, y, 11, LS_LEFT, LS_DRAW_INK, text);
    y += LEGEND_LINE;
  }
  return (LsExtent) { MIN_WIDTH, y - LEGEND_LINE / 2 - top };
}

static bool
is_of_node (const LsTopoLinks *l)
{
  return l->a < LS_NODE_LEAF && l->b < LS_NODE_LEAF;
}

static bool
is_of_fabric (const LsTopoLinks *l)
{
  return !is_of_node (l);
}

/* A heading, a drawing, a legend; returns the next free y. */
static double
section (LsScene *scene, const LsTopoMap *map, const char *title,
         LsExtent (*draw) (LsScene *, const LsTopoMap *, double), bool (*wanted) (const LsTopoLinks *),
         double top, double *width)
{
  ls_scene_text (scene, LS_DRAW_MARGIN, top + 8, 14, LS_LEFT, LS_DRAW_INK, title);
  LsExtent body = draw (scene, map, top + GAP);
  LsExtent legend = ls_draw_legend (scene, map, wanted, top + GAP + body.height + 10);
  *width = fmax (*width, fmax (body.width, legend.width));
  return top + GAP + body.height + 10 + legend.height + GAP;
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
add_title (LsScene *scene, const LsTopoMap *map)
{
  const LsClusterSpec *s = &map->cluster->spec;
  g_autofree char *line = g_strdup_printf (
      "%u node%s of %u x %s, %u %s", s->n_nodes, s->n_nodes == 1 ? "" : "s", s->gpus_per_node, s->gpu.name,
      map->cluster->n_gpus, ls_cluster_chip_word (s, map->cluster->n_gpus));
  g_autofree char *name = short_name (s->name);
  ls_scene_text (scene, LS_DRAW_MARGIN, 30, 20, LS_LEFT, LS_DRAW_INK, name);
  ls_scene_text (scene, LS_DRAW_MARGIN, 54, 12, LS_LEFT, LS_DRAW_FAINT, line);
}

gboolean
ls_plot_topology (const LsTopoMap *map, const char *path, GError **error)
{
  g_autoptr (LsScene) scene = ls_scene_new ();
  double width = MIN_WIDTH, y = HEAD;
  bool is_torus = map->cluster->spec.interior == LS_INTERIOR_TORUS;
  add_title (scene, map);
  y = section (scene, map, is_torus ? "One slice" : "One node", is_torus ? ls_draw_torus : ls_draw_node,
               is_of_node, y, &width);
  if (map->fabric->len > 0)
    y = section (scene, map, "Fabric", ls_draw_fabric, is_of_fabric, y, &width);
  ls_scene_resize (scene, width + 2 * LS_DRAW_MARGIN, y);
  return ls_scene_draw (scene, path, error);
}
