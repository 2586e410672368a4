/* A slice of a torus: a grid of chips, on the areas of their hosts; a third axis goes
 * back and up. Links that wrap bow over the row, or leave as stubs where bows would hide
 * what is between. */
#include <math.h>

#include "show/draw/topology_draw.h"

#define MAX_2D  32u
#define MAX_3D  8u
#define MAX_BOW 8u

typedef struct {
  LsDrawing *d;
  const LsTorusSpec *torus;
  const LsTopoUse *use;
  const uint32_t *chips;        /* their vertices by number */
  uint32_t dims[LS_TORUS_AXES]; /* as drawn */
  bool is_3d, is_cut;
  double cell_x, cell_y, step, box, left, top;
} Grid;

static void
size (Grid *g)
{
  const LsTorusSpec *t = g->torus;
  g->is_3d = t->n_axes == 3 && t->dims[2] > 1;
  uint32_t most = g->is_3d ? MAX_3D : MAX_2D, longest = 1;
  for (uint32_t a = 0; a < LS_TORUS_AXES; a++) {
    g->dims[a] = MIN (t->dims[a], most);
    g->is_cut = g->is_cut || g->dims[a] < t->dims[a];
    longest = MAX (longest, g->dims[a]);
  }
  g->step = g->is_3d ? 30 : 0;
  g->cell_x = g->is_3d ? g->dims[2] * g->step + 42 : CLAMP (900.0 / longest, 40, 84);
  g->cell_y = g->cell_x;
  g->box = g->is_3d ? 24 : fmin (g->cell_x * 0.52, 40);
}

/* The middle of a chip; planes further back are up and to the right. */
static LsXY
middle (const Grid *g, const uint32_t *at)
{
  double back = (g->is_3d ? g->dims[2] - 1.0 : 0) * g->step, edge = g->is_3d ? 30 : g->cell_x / 2;
  return (LsXY) { g->left + edge + at[0] * g->cell_x + at[2] * g->step,
                  g->top + edge + back + at[1] * g->cell_y - at[2] * g->step };
}

static uint32_t
chip_at (const Grid *g, const uint32_t *at)
{
  const LsTorusCoord coord = { { at[0], at[1], at[2] } };
  return ls_torus_chip (g->torus, coord);
}

/* Of the link between two neighbours; without use in that paint. */
static LsStroke
stroke_of (const Grid *g, const uint32_t *a, const uint32_t *b, const char *paint, char tip[LS_LINK_TIP])
{
  double share
      = g->use ? ls_topo_use_between (g->use, g->chips[chip_at (g, a)], g->chips[chip_at (g, b)]) : 0;
  LsStroke stroke = ls_draw_link_stroke (g->use, "ici", share, 1.7, tip);
  if (!g->use)
    stroke.paint = paint;
  return stroke;
}

static void
draw_wrap (const Grid *g, const uint32_t *at, uint32_t axis, const char *paint)
{
  uint32_t end[LS_TORUS_AXES] = { at[0], at[1], at[2] };
  end[axis] = g->torus->dims[axis] - 1;
  char tip[LS_LINK_TIP];
  const LsStroke stroke = stroke_of (g, at, end, paint, tip);
  end[axis] = g->dims[axis] - 1;
  LsXY a = middle (g, at), b = middle (g, end);
  double r = g->box / 2;
  if (!g->is_3d && !g->is_cut && g->dims[axis] <= MAX_BOW) {
    LsXY from = axis == 0 ? (LsXY) { a.x, a.y - r } : (LsXY) { a.x - r, a.y };
    LsXY to = axis == 0 ? (LsXY) { b.x, b.y - r } : (LsXY) { b.x - r, b.y };
    double bow = 2 * (g->cell_x * 0.46 - r) + 6;
    LsXY control
        = axis == 0 ? (LsXY) { (a.x + b.x) / 2, a.y - r - bow } : (LsXY) { a.x - r - bow, (a.y + b.y) / 2 };
    ls_drawing_curve (g->d, from, control, to, &stroke);
    return;
  }
  double dx = axis == 0 ? 1 : axis == 2 ? 0.7 : 0, dy = axis == 1 ? 1 : axis == 2 ? -0.7 : 0, n = r + 11;
  ls_drawing_segment (g->d, a, (LsXY) { a.x - dx * n, a.y - dy * n }, &stroke);
  ls_drawing_segment (g->d, b, (LsXY) { b.x + dx * n, b.y + dy * n }, &stroke);
}

/* Links from a chip up each axis. */
static void
draw_links (const Grid *g, const uint32_t *at)
{
  for (uint32_t axis = 0; axis < g->torus->n_axes; axis++) {
    uint32_t next[LS_TORUS_AXES] = { at[0], at[1], at[2] };
    if (++next[axis] < g->dims[axis]) {
      char tip[LS_LINK_TIP];
      const LsStroke stroke = stroke_of (g, at, next, axis == 2 ? "link-back" : "link-nvlink", tip);
      ls_drawing_segment (g->d, middle (g, at), middle (g, next), &stroke);
    }
    if (at[axis] == 0 && ls_torus_wraps (g->torus, axis))
      draw_wrap (g, at, axis, "link-cpu");
  }
}

/* Of a host: of one plane only, where there are more. */
static void
draw_host (const Grid *g, const uint32_t *at)
{
  const uint32_t *host = g->torus->host;
  if (g->is_3d || at[0] % host[0] != 0 || at[1] % host[1] != 0)
    return;
  double w = MIN (host[0], g->dims[0] - at[0]) * g->cell_x, h = MIN (host[1], g->dims[1] - at[1]) * g->cell_y;
  const LsDrawnBox area = { LS_LAYER_GROUND,
                            g->left + at[0] * g->cell_x + 3,
                            g->top + at[1] * g->cell_y + 3,
                            w - 6,
                            h - 6,
                            "node",
                            0,
                            true,
                            NULL };
  ls_drawing_box (g->d, &area);
}

static void
draw_chip (const Grid *g, const uint32_t *at)
{
  LsXY m = middle (g, at);
  g_autofree char *number = g_strdup_printf ("%u", chip_at (g, at));
  const LsDrawnBox box = { LS_LAYER_BOXES,
                           m.x - g->box / 2,
                           m.y - g->box / 2,
                           g->box,
                           g->box,
                           ls_draw_kind_paint (LS_NODE_GPU),
                           0,
                           true,
                           number };
  ls_drawing_box (g->d, &box);
  if (g->box >= 22)
    ls_drawing_text (g->d, m.x, m.y, g->is_3d ? 8.5 : 11, LS_CENTER, "black", number);
}

/* Planes from the back to the front. */
static void
draw_all (const Grid *g, void (*draw) (const Grid *, const uint32_t *))
{
  for (uint32_t z = g->dims[2]; z-- > 0;)
    for (uint32_t y = 0; y < g->dims[1]; y++)
      for (uint32_t x = 0; x < g->dims[0]; x++)
        draw (g, (const uint32_t[]) { x, y, z });
}

static char *
caption (const Grid *g)
{
  const LsTorusSpec *t = g->torus;
  GString *text = g_string_new (NULL);
  for (uint32_t a = 0; a < t->n_axes; a++)
    g_string_append_printf (text, "%s%u", a > 0 ? " x " : "", t->dims[a]);
  g_string_append (text, " chips");
  if (g->is_cut)
    g_string_append_printf (text, ", the first %u x %u x %u of them", g->dims[0], g->dims[1], g->dims[2]);
  const char *wraps = "";
  for (uint32_t a = 0; a < t->n_axes; a++)
    if (ls_torus_wraps (t, a)) {
      g_string_append_printf (text, "%s%c", *wraps ? wraps : "; wraps (red) along ", "xyz"[a]);
      wraps = ", ";
    }
  g_string_append_printf (text, "; %u hosts", ls_torus_n_hosts (t));
  return g_string_free (text, FALSE);
}

LsExtent
ls_draw_torus (LsDrawing *d, const LsTopoMap *map, const LsTopoUse *use, double top)
{
  const LsCluster *c = map->cluster;
  g_autofree uint32_t *chips = g_new0 (uint32_t, c->nodes->len);
  for (uint32_t v = 0; v < c->nodes->len; v++) {
    const LsTopoNode *node = &g_array_index (c->nodes, LsTopoNode, v);
    if (node->kind == LS_NODE_GPU && node->host == 0)
      chips[node->index] = v;
  }
  Grid g = { .d = d, .torus = &c->spec.torus, .use = use, .chips = chips };
  size (&g);
  g.left = LS_DRAW_MARGIN + 16;
  g.top = top + 30;
  g_autofree char *text = caption (&g);
  ls_drawing_text (d, LS_DRAW_MARGIN, top + 4, 12, LS_LEFT, "quiet", text);
  draw_all (&g, draw_host);
  draw_all (&g, draw_links);
  draw_all (&g, draw_chip);
  const uint32_t far[LS_TORUS_AXES] = { g.dims[0] - 1, 0, g.dims[2] - 1 },
                 low[LS_TORUS_AXES] = { 0, g.dims[1] - 1, 0 };
  double edge = g.is_3d ? 30 : g.cell_x / 2;
  return (LsExtent) { middle (&g, far).x + edge - LS_DRAW_MARGIN, middle (&g, low).y + edge + 8 - top };
}
