/* A node as a tree: CPUs, what is plugged into them, and NVLink below the GPUs. */
#include <math.h>

#include "show/draw/topology_draw.h"

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
  LsXY *at; /* [vertices of node 0] centre of the top edge; x < 0: not drawn */
} Tree;

static const LsTopoPart *
part_at (const GPtrArray *parts, guint i)
{
  return g_ptr_array_index (parts, i);
}

static const LsTopoNode *
vertex (const Tree *t, uint32_t v)
{
  return &g_array_index (t->map->cluster->nodes, LsTopoNode, v);
}

static guint
n_leaves (const LsTopoPart *part)
{
  guint n = part->children->len == 0;
  for (guint i = 0; i < part->children->len; i++)
    n += n_leaves (part_at (part->children, i));
  return n;
}

static const char *
link_name (const Tree *t, const LsTopoPart *part)
{
  return part->links < 0 ? "" : g_array_index (t->map->links, LsTopoLinks, part->links).name;
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
  ls_draw_vertex (t->d, x - BOX_W / 2, y, BOX_W, BOX_H, part->kind, vertex (t, part->vertex)->index);
  for (guint i = 0; i < part->children->len; i++) {
    const LsTopoPart *child = part_at (part->children, i);
    LsXY to = t->at[child->vertex];
    double aside = child->kind == LS_NODE_CPU_MEMORY ? 6 : 0; /* not upon the lines of others */
    double middle = y + BOX_H + (ROW - BOX_H) / 2 - aside;
    const LsXY elbow[]
        = { { x + aside, y + BOX_H }, { x + aside, middle }, { to.x, middle }, { to.x, to.y } };
    char tip[LS_LINK_TIP];
    double share = t->use ? ls_topo_use_between (t->use, part->vertex, child->vertex) : 0;
    const LsStroke stroke = ls_draw_link_stroke (t->use, link_name (t, child), share, 1.6, tip);
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
  for (uint32_t v = 0; t->use && v < t->map->cluster->nodes->len && vertex (t, v)->host == 0; v++)
    if (vertex (t, v)->kind == LS_NODE_NVSWITCH)
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
  for (uint32_t v = 0; v < t->map->cluster->nodes->len && vertex (t, v)->host == 0; v++) {
    if (vertex (t, v)->kind != LS_NODE_GPU || t->at[v].x < 0)
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
  const LsDrawnBox bar
      = { LS_LAYER_BOXES, left, y, fmax (right - left, 320), BAR_H, ls_draw_kind_paint (LS_NODE_NVSWITCH), 0,
          true,           text };
  ls_drawing_box (t->d, &bar);
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
    if (link->from > link->to || vertex (t, link->to)->host != 0
        || vertex (t, link->from)->kind != vertex (t, link->to)->kind || t->at[link->from].x < 0
        || t->at[link->to].x < 0)
      continue;
    LsXY a = t->at[link->from], b = t->at[link->to];
    bool is_gpu = vertex (t, link->from)->kind == LS_NODE_GPU;
    const char *name = is_gpu ? "nvlink" : "cpu interconnect";
    double share = t->use ? ls_topo_use_between (t->use, link->from, link->to) : 0;
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
  while (n < map->cluster->nodes->len && g_array_index (map->cluster->nodes, LsTopoNode, n).host == 0)
    n++;
  g_autofree LsXY *at = g_new (LsXY, n + 1);
  for (uint32_t v = 0; v < n; v++)
    at[v] = (LsXY) { -1, -1 };
  Tree t = { .d = d, .map = map, .use = use, .top = top, .bottom = top, .at = at };
  draw_roots (&t);
  draw_peers (&t);
  for (guint i = 0; i < map->each->len; i++)
    if (part_at (map->each, i)->kind == LS_NODE_NVSWITCH && !part_at (map->each, i)->is_peers)
      draw_nvswitches (&t, part_at (map->each, i));
  return (LsExtent) { t.right - LS_DRAW_MARGIN, t.bottom - top };
}
