#include "show/draw/pictures.h"

#include <math.h>

#include "show/draw/topology_draw.h"

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
draw_links_legend (const Sheet *s, bool (*wanted) (const LsTopoLinks *), double top)
{
  double y = top + LEGEND_LINE / 2;
  for (guint i = 0; i < s->map->links->len; i++) {
    const LsTopoLinks *l = &g_array_index (s->map->links, LsTopoLinks, i);
    if (!wanted (l))
      continue;
    g_autofree char *text = legend_text (&s->map->cluster->spec, l);
    const LsStroke stroke
        = { LS_LAYER_LINES, s->use ? "quiet" : ls_draw_link_paint (l->name), 3, false, NULL };
    ls_drawing_segment (s->d, (LsXY) { LS_DRAW_MARGIN, y }, (LsXY) { LS_DRAW_MARGIN + 26, y }, &stroke);
    ls_drawing_text (s->d, LS_DRAW_MARGIN + 34, y, 11, LS_LEFT, "text", text);
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

typedef LsExtent (*DrawPart) (LsDrawing *d, const LsTopoMap *map, const LsTopoUse *use, double top);

/* A heading, a drawing, a legend. */
static void
draw_section (Sheet *s, const char *title, DrawPart draw, bool (*wanted) (const LsTopoLinks *))
{
  ls_drawing_text (s->d, LS_DRAW_MARGIN, s->y + 8, 14, LS_LEFT, "text", title);
  LsExtent body = draw (s->d, s->map, s->use, s->y + GAP);
  LsExtent legend = draw_links_legend (s, wanted, s->y + GAP + body.height + 10);
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
  bool is_torus = map->cluster->spec.interior == LS_INTERIOR_TORUS;
  const char *title = is_torus ? "One slice"
      : use                    ? "One node, each link as the busiest in its place"
                               : "One node";
  add_title (s.d, map);
  if (use) {
    s.width = fmax (s.width, ls_draw_use_legend (s.d, LS_DRAW_MARGIN, s.y) - LS_DRAW_MARGIN);
    s.y += GAP;
  }
  draw_section (&s, title, is_torus ? ls_draw_torus : ls_draw_node, is_of_node);
  if (map->fabric->len > 0)
    draw_section (&s, "Fabric", ls_draw_fabric, is_of_fabric);
  ls_drawing_resize (s.d, s.width + 2 * LS_DRAW_MARGIN, s.y);
  return s.d;
}
