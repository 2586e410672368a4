/* show/draw/topology_node.c — what joins accelerators closely, drawn: a node as a tree, a slice of a
 * torus as a grid. */
#include <math.h>

#include "show/draw/pictures.h"

/* A slice of a torus: a grid of chips, on the areas of their hosts; a third axis goes back and up. */

/* Links that wrap bow over the row, or leave as stubs where bows would hide
 * what is between. */

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
  double share = ls_topo_use_between (g->use, g->chips[chip_at (g, a)], g->chips[chip_at (g, b)]);
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
  const LsRect area = { g->left + at[0] * g->cell_x + 3, g->top + at[1] * g->cell_y + 3, w - 6, h - 6 };
  ls_drawing_rect (g->d, LS_LAYER_GROUND, area, "node", true, NULL);
}

static void
draw_chip (const Grid *g, const uint32_t *at)
{
  LsXY m = middle (g, at);
  g_autofree char *number = g_strdup_printf ("%u", chip_at (g, at));
  const LsRect rect = { m.x - g->box / 2, m.y - g->box / 2, g->box, g->box };
  ls_drawing_rect (g->d, LS_LAYER_BOXES, rect, ls_draw_kind_paint (LS_NODE_GPU), true, number);
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
    const LsTopoNode *node = ls_cluster_vertex (c, v);
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

/* --- a node as a tree: CPUs, what is plugged into them, and NVLink below the GPUs ---------------- */

#define BOX_W      44.0
#define BOX_H      34.0
#define GAP_X      8.0
#define GROUP_GAP  14.0 /* between neighbours with children */
#define ROW        78.0
#define MAX_LEAVES 36 /* of a tree that is drawn whole    */
#define BAR_H      30.0

typedef struct {
  LsDrawing *d;
  const LsTopoMap *map;
  const LsTopoUse *use;
  double top, bottom, right;
  uint32_t n; /* vertices of node 0 */
  LsXY *at;   /* [n] centre of the top edge; x < 0: not drawn */
} Tree;

static const LsTopoPart *
part_at (const GPtrArray *parts, guint i)
{
  return g_ptr_array_index (parts, i);
}

static guint
n_leaves (const LsTopoPart *part)
{
  guint n = part->children->len == 0;
  for (guint i = 0; i < part->children->len; i++)
    n += n_leaves (part_at (part->children, i));
  return n;
}

/* Returns where the next one may begin. */
static double
draw_part (Tree *t, const LsTopoPart *part, double left, guint depth)
{
  double y = t->top + depth * ROW, right = left;
  for (guint i = 0; i < part->children->len; i++) {
    const LsTopoPart *child = part_at (part->children, i);
    right = draw_part (t, child, right, depth + 1) + (child->children->len > 0 ? GROUP_GAP : GAP_X);
  }
  right = part->children->len > 0 ? right - GAP_X : left + BOX_W;
  double x = (left + right) / 2;
  t->at[part->vertex] = (LsXY) { x, y };
  t->bottom = fmax (t->bottom, y + BOX_H);
  ls_draw_vertex (t->d, x - BOX_W / 2, y, BOX_W, BOX_H, part->kind,
                  ls_cluster_vertex (t->map->cluster, part->vertex)->index);
  for (guint i = 0; i < part->children->len; i++) {
    const LsTopoPart *child = part_at (part->children, i);
    LsXY to = t->at[child->vertex];
    double aside = child->kind == LS_NODE_CPU_MEMORY ? 6 : 0; /* not upon the lines of others */
    double middle = y + BOX_H + (ROW - BOX_H) / 2 - aside;
    const LsXY elbow[]
        = { { x + aside, y + BOX_H }, { x + aside, middle }, { to.x, middle }, { to.x, to.y } };
    char tip[LS_LINK_TIP];
    const char *name = child->links < 0 ? "" : g_array_index (t->map->links, LsTopoLinks, child->links).name;
    double share = ls_topo_use_between (t->use, part->vertex, child->vertex);
    const LsStroke stroke = ls_draw_link_stroke (t->use, name, share, 1.6, tip);
    ls_drawing_line (t->d, elbow, G_N_ELEMENTS (elbow), &stroke);
  }
  return right;
}

/* The first ones and the last, if all would be too many. */
static void
draw_roots (Tree *t)
{
  GPtrArray *roots = g_ptr_array_new ();
  guint all = 0, shown = 0, hidden = 0;
  for (guint i = 0; i < t->map->each->len; i++)
    if (!part_at (t->map->each, i)->is_peers && part_at (t->map->each, i)->kind != LS_NODE_NVSWITCH) {
      g_ptr_array_add (roots, (gpointer) part_at (t->map->each, i));
      all += n_leaves (part_at (t->map->each, i));
    }
  double x = LS_DRAW_MARGIN;
  for (guint i = 0; i < roots->len; i++) {
    const LsTopoPart *root = part_at (roots, i);
    bool is_last = i + 1 == roots->len;
    if (all > MAX_LEAVES && roots->len > 2 && i > 1 && !is_last
        && shown + n_leaves (root) > MAX_LEAVES * 2 / 3) {
      hidden++;
      continue;
    }
    if (is_last && hidden > 0) {
      g_autofree char *text = g_strdup_printf ("... %u more", hidden);
      ls_drawing_text (t->d, x + 44, t->top + BOX_H / 2, 12, LS_CENTER, "quiet", text);
      x += 100;
    }
    shown += n_leaves (root);
    x = draw_part (t, root, x, 0) + 2 * GROUP_GAP;
  }
  t->right = x - 2 * GROUP_GAP;
  g_ptr_array_unref (roots);
}

/* Of the links of a GPU to all NVSwitches. */
static double
switch_use (const Tree *t, uint32_t gpu)
{
  double most = 0;
  for (uint32_t v = 0; t->use && v < t->n; v++)
    if (ls_cluster_vertex (t->map->cluster, v)->kind == LS_NODE_NVSWITCH)
      most = fmax (most, ls_topo_use_between (t->use, gpu, v));
  return most;
}

/* All planes as one bar, with a line from each GPU. */
static void
draw_nvswitches (Tree *t, const LsTopoPart *part)
{
  const LsTopoLinks *l = &g_array_index (t->map->links, LsTopoLinks, part->links);
  double y = t->bottom + 44, left = INFINITY, right = 0;
  uint32_t n = ls_cluster_gpus_of (t->map->cluster, 0);
  for (uint32_t v = 0; v < t->n; v++) {
    if (ls_cluster_vertex (t->map->cluster, v)->kind != LS_NODE_GPU || t->at[v].x < 0)
      continue;
    LsXY at = t->at[v];
    left = fmin (left, at.x - BOX_W / 2);
    right = fmax (right, at.x + BOX_W / 2);
    char tip[LS_LINK_TIP];
    const LsStroke stroke = ls_draw_link_stroke (t->use, l->name, switch_use (t, v), 2, tip);
    for (int side = -1; side <= 1; side++)
      ls_drawing_segment (t->d, (LsXY) { at.x + 7 * side, at.y + BOX_H }, (LsXY) { at.x + 7 * side, y },
                          &stroke);
  }
  g_autofree char *rate = ls_format_rate (
      part->n_physical * (l->link ? l->link->bandwidth_bytes_per_s : l->capacity_bytes_per_s));
  g_autofree char *text
      = g_strdup_printf ("%u x nvswitch, %u links of each of %u %ss: %s", part->n, part->n_physical, n,
                         ls_topo_kind_word (&t->map->cluster->spec, LS_NODE_GPU), rate);
  const LsRect bar = { left, y, fmax (right - left, 320), BAR_H };
  ls_drawing_rect (t->d, LS_LAYER_BOXES, bar, ls_draw_kind_paint (LS_NODE_NVSWITCH), true, text);
  ls_drawing_text (t->d, left + fmax (right - left, 320) / 2, y + BAR_H / 2, 12, LS_CENTER, "black", text);
  t->right = fmax (t->right, left + 320);
  t->bottom = y + BAR_H;
}

/* Straight NVLinks as bows below, thicker where they are double; those of CPUs above. */
static void
draw_peers (Tree *t)
{
  const LsCluster *c = t->map->cluster;
  double low = t->bottom;
  for (guint i = 0; i < c->links->len; i++) {
    const LsLink *link = &g_array_index (c->links, LsLink, i);
    if (link->from > link->to || ls_cluster_vertex (c, link->to)->host != 0
        || ls_cluster_vertex (c, link->from)->kind != ls_cluster_vertex (c, link->to)->kind
        || t->at[link->from].x < 0 || t->at[link->to].x < 0)
      continue;
    LsXY a = t->at[link->from], b = t->at[link->to];
    bool is_gpu = ls_cluster_vertex (c, link->from)->kind == LS_NODE_GPU;
    const char *name = is_gpu ? "nvlink" : "cpu interconnect";
    double share = ls_topo_use_between (t->use, link->from, link->to);
    char tip[LS_LINK_TIP];
    const LsStroke stroke
        = ls_draw_link_stroke (t->use, name, share, is_gpu ? 1.3 * link->n_physical : 2, tip);
    if (!is_gpu) {
      ls_drawing_segment (t->d, (LsXY) { a.x, a.y + BOX_H / 2 }, (LsXY) { b.x, b.y + BOX_H / 2 }, &stroke);
      continue;
    }
    double drop = 26 + 0.22 * fabs (b.x - a.x);
    LsXY from = { a.x, a.y + BOX_H }, to = { b.x, b.y + BOX_H },
         control = { (a.x + b.x) / 2, a.y + BOX_H + 2 * drop };
    ls_drawing_curve (t->d, from, control, to, &stroke);
    low = fmax (low, a.y + BOX_H + drop);
  }
  t->bottom = low;
}

LsExtent
ls_draw_node (LsDrawing *d, const LsTopoMap *map, const LsTopoUse *use, double top)
{
  uint32_t n = 0;
  while (n < map->cluster->nodes->len && ls_cluster_vertex (map->cluster, n)->host == 0)
    n++;
  g_autofree LsXY *at = g_new (LsXY, n + 1);
  for (uint32_t v = 0; v < n; v++)
    at[v] = (LsXY) { -1, -1 };
  Tree t = { .d = d, .map = map, .use = use, .top = top, .bottom = top, .n = n, .at = at };
  draw_roots (&t);
  draw_peers (&t);
  for (guint i = 0; i < map->each->len; i++)
    if (part_at (map->each, i)->kind == LS_NODE_NVSWITCH && !part_at (map->each, i)->is_peers)
      draw_nvswitches (&t, part_at (map->each, i));
  return (LsExtent) { t.right - LS_DRAW_MARGIN, t.bottom - top };
}
