/* The nodes with their NICs, and tier above tier of switches that these are joined to; of a
 * row that would be too long, the first ones and the last. */
#include <math.h>

#include "base/order.h"
#include "show/draw/drawing.h"
#include "show/draw/pictures.h"

#define MAX_NODES    8u
#define MAX_LEAVES   20u
#define MAX_SWITCHES 12u /* of a higher tier, all joined to all: more would be a carpet */
#define ROW          116.0
#define BOX_H        34.0
#define NODE_H       44.0
#define NIC_W        13.0
#define GAP_X        16.0
#define LABEL_W      120.0
#define MAX_ROWS     8

typedef struct {
  LsDrawing *d;
  const LsTopoMap *map;
  const LsTopoUse *use;
  LsXY *at;               /* [vertices] middle of what is drawn; x < 0: nothing */
  GArray *rows[MAX_ROWS]; /* uint32_t vertices (of row 0 hosts), from the nodes up */
  LsNodeKind kind[MAX_ROWS];
  uint64_t n_all[MAX_ROWS];
  guint n_rows;
  double width, top;
} Fabric;

/* Leaves the first ones and the last. */
static void
shorten (GArray *row, guint most)
{
  if (row->len > most)
    g_array_remove_range (row, most - 1, row->len - most);
}

static void
choose_nodes (Fabric *f)
{
  f->rows[0] = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  for (uint32_t host = 0; host < f->map->cluster->spec.n_nodes; host++)
    g_array_append_val (f->rows[0], host);
  f->n_all[0] = f->rows[0]->len;
  shorten (f->rows[0], MAX_NODES);
  f->n_rows = 1;
}

/* Switches of a kind that what is already chosen is joined to. */
static void
choose_switches (Fabric *f, LsNodeKind kind, bool *is_chosen)
{
  const LsCluster *c = f->map->cluster;
  GArray *row = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  g_autofree bool *is_found = g_new0 (bool, c->nodes->len);
  for (guint i = 0; i < c->links->len; i++) {
    const LsLink *link = &g_array_index (c->links, LsLink, i);
    if (ls_cluster_vertex (c, link->to)->kind != kind || is_found[link->to] || !is_chosen[link->from])
      continue;
    is_found[link->to] = true;
    g_array_append_val (row, link->to);
  }
  g_array_sort (row, ls_compare_uint32);
  shorten (row, kind == LS_NODE_LEAF ? MAX_LEAVES : MAX_SWITCHES);
  for (guint i = 0; i < row->len; i++)
    is_chosen[g_array_index (row, uint32_t, i)] = true;
  f->kind[f->n_rows] = kind;
  f->n_all[f->n_rows] = f->map->n_of_kind[kind];
  f->rows[f->n_rows++] = row;
}

static void
choose (Fabric *f)
{
  const LsCluster *c = f->map->cluster;
  g_autofree bool *is_chosen = g_new0 (bool, c->nodes->len);
  choose_nodes (f);
  for (guint v = 0; v < c->nodes->len; v++)
    for (guint i = 0; i < f->rows[0]->len; i++)
      is_chosen[v] = is_chosen[v]
          || (ls_cluster_vertex (c, v)->kind == LS_NODE_NIC
              && ls_cluster_vertex (c, v)->host == g_array_index (f->rows[0], uint32_t, i));
  for (int kind = LS_NODE_LEAF; kind < LS_N_NODE_KINDS && f->n_rows < MAX_ROWS; kind++)
    if (f->map->n_of_kind[kind] > 0)
      choose_switches (f, (LsNodeKind) kind, is_chosen);
}

/* Of any node; the least or the most. */
static uint32_t
nics_of_nodes (const Fabric *f, bool is_most)
{
  const LsCluster *c = f->map->cluster;
  uint32_t n = ls_cluster_node_spec (c, 0)->nics.n;
  for (uint32_t host = 1; host < c->spec.n_nodes && c->kind_of_host; host++) {
    uint32_t own = ls_cluster_node_spec (c, host)->nics.n;
    n = is_most ? MAX (n, own) : MIN (n, own);
  }
  return n;
}

static double
item_width (const Fabric *f, guint row)
{
  if (row == 0)
    return fmax (72, MIN (nics_of_nodes (f, true), 16) * NIC_W + 8);
  return 44;
}

/* Whether some are left out before the i-th of a row: their numbers follow each other. */
static bool
is_after_gap (const Fabric *f, guint r, guint i)
{
  return i > 0 && g_array_index (f->rows[r], uint32_t, i) != g_array_index (f->rows[r], uint32_t, i - 1) + 1;
}

static double
row_width (const Fabric *f, guint r)
{
  double w = f->rows[r]->len * (item_width (f, r) + GAP_X) - GAP_X;
  for (guint i = 0; i < f->rows[r]->len; i++)
    w += is_after_gap (f, r, i) ? 30 : 0;
  return w;
}

/* One row, in the middle of the width. */
static void
place_row (Fabric *f, guint r)
{
  guint n = f->rows[r]->len;
  double w = item_width (f, r), all = row_width (f, r);
  double x = LS_DRAW_MARGIN + LABEL_W + fmax (0, (f->width - all) / 2),
         y = f->top + (f->n_rows - 1 - r) * ROW;
  for (guint i = 0; i < n; i++) {
    uint32_t v = g_array_index (f->rows[r], uint32_t, i);
    if (is_after_gap (f, r, i)) {
      ls_drawing_text (f->d, x + 7, y + BOX_H / 2, 16, LS_CENTER, "quiet", "...");
      x += 30;
    }
    if (r > 0) {
      ls_draw_vertex (f->d, x, y, w, BOX_H, f->kind[r], ls_cluster_vertex (f->map->cluster, v)->index);
      f->at[v] = (LsXY) { x + w / 2, y + BOX_H / 2 };
    } else {
      g_autofree char *name = g_strdup_printf ("node %u", v);
      ls_drawing_rect (f->d, LS_LAYER_BOXES, (LsRect) { x, y, w, NODE_H }, "node", true, NULL);
      ls_drawing_text (f->d, x + w / 2, y + 29, 11, LS_CENTER, "text", name);
      f->at[f->map->cluster->nodes->len + i] = (LsXY) { x, y };
    }
    x += w + GAP_X;
  }
}

/* NICs of the nodes that are drawn: small boxes at their upper edge. */
static void
place_nics (Fabric *f)
{
  double w = item_width (f, 0), step = (w - 8) / nics_of_nodes (f, true);
  for (uint32_t v = 0; v < f->map->cluster->nodes->len; v++) {
    const LsTopoNode *node = ls_cluster_vertex (f->map->cluster, v);
    for (guint i = 0; node->kind == LS_NODE_NIC && i < f->rows[0]->len; i++) {
      if (g_array_index (f->rows[0], uint32_t, i) != node->host)
        continue;
      LsXY corner = f->at[f->map->cluster->nodes->len + i];
      f->at[v] = (LsXY) { corner.x + 4 + (node->index + 0.5) * step, corner.y + 6 };
      double side = fmin (NIC_W - 3, step - 1);
      g_autofree char *tip = g_strdup_printf ("nic %u of node %u", node->index, node->host);
      const LsRect rect = { f->at[v].x - side / 2, corner.y + 3, side, 12 };
      ls_drawing_rect (f->d, LS_LAYER_BOXES, rect, ls_draw_kind_paint (LS_NODE_NIC), true, tip);
    }
  }
}

/* Rails, or whatever tells the links of a NIC apart. */
static const char *
line_paint (const Fabric *f, const LsLink *link)
{
  const LsTopoNode *from = ls_cluster_vertex (f->map->cluster, link->from);
  uint32_t n_rails = f->map->cluster->spec.network.rails;
  if (from->kind == LS_NODE_NIC)
    return ls_palette_series (n_rails > 1 ? from->index % n_rails : 0)->name;
  return "link-many";
}

static char *
name_of (const Fabric *f, const LsLink *link)
{
  const LsCluster *c = f->map->cluster;
  const LsTopoNode *from = ls_cluster_vertex (c, link->from), *to = ls_cluster_vertex (c, link->to);
  g_autofree char *rate = ls_format_rate (link->capacity_bytes_per_s);
  return g_strdup_printf ("%s %u to %s %u, %s", ls_topo_kind_name (from->kind), from->index,
                          ls_topo_kind_name (to->kind), to->index, rate);
}

static void
draw_link (const Fabric *f, const LsLink *link)
{
  const LsCluster *c = f->map->cluster;
  LsNodeKind from = ls_cluster_vertex (c, link->from)->kind, to = ls_cluster_vertex (c, link->to)->kind;
  LsXY a = f->at[link->from], b = f->at[link->to];
  bool is_nic = from == LS_NODE_NIC, is_peer = from == to;
  if (from > to || (is_peer && link->from > link->to))
    return;
  char tip[LS_LINK_TIP];
  g_autofree char *name = name_of (f, link);
  double share = ls_topo_use_between (f->use, link->from, link->to);
  LsStroke stroke = ls_draw_link_stroke (f->use, name, share, is_nic ? 1.4 : is_peer ? 1.2 : 0.9, tip);
  if (!f->use)
    stroke.paint = line_paint (f, link);
  if (is_peer) {
    LsXY control = { (a.x + b.x) / 2, a.y - 26 - 0.1 * fabs (b.x - a.x) };
    ls_drawing_curve (f->d, (LsXY) { a.x, a.y - BOX_H / 2 }, control, (LsXY) { b.x, b.y - BOX_H / 2 },
                      &stroke);
    return;
  }
  ls_drawing_segment (f->d, (LsXY) { a.x, is_nic ? a.y - 4 : a.y - BOX_H / 2 },
                      (LsXY) { b.x, b.y + BOX_H / 2 }, &stroke);
}

static void
draw_links (const Fabric *f)
{
  const LsCluster *c = f->map->cluster;
  for (guint i = 0; i < c->links->len; i++) {
    const LsLink *link = &g_array_index (c->links, LsLink, i);
    if (ls_cluster_vertex (c, link->from)->kind >= LS_NODE_NIC
        && ls_cluster_vertex (c, link->to)->kind >= LS_NODE_LEAF && f->at[link->from].x >= 0
        && f->at[link->to].x >= 0)
      draw_link (f, link);
  }
}

static void
draw_labels (const Fabric *f)
{
  for (guint r = 0; r < f->n_rows; r++) {
    double y = f->top + (f->n_rows - 1 - r) * ROW + 16;
    g_autofree char *text = r == 0
        ? g_strdup_printf ("%" G_GUINT64_FORMAT " x node", f->n_all[0])
        : g_strdup_printf ("%" G_GUINT64_FORMAT " x %s", f->n_all[r], ls_topo_kind_name (f->kind[r]));
    ls_drawing_text (f->d, LS_DRAW_MARGIN, y, 13, LS_LEFT, "text", text);
    if (r == 0) {
      uint32_t least = nics_of_nodes (f, false), most = nics_of_nodes (f, true);
      g_autofree char *nics = least == most ? g_strdup_printf ("%u nics each", least)
                                            : g_strdup_printf ("%u to %u nics each", least, most);
      ls_drawing_text (f->d, LS_DRAW_MARGIN, y + 18, 11, LS_LEFT, "quiet", nics);
    }
  }
}

LsExtent
ls_draw_fabric (LsDrawing *d, const LsTopoMap *map, const LsTopoUse *use, double top)
{
  guint n = map->cluster->nodes->len;
  Fabric f = { .d = d, .map = map, .use = use, .top = top };
  f.at = g_new (LsXY, n + MAX_NODES);
  for (guint i = 0; i < n + MAX_NODES; i++)
    f.at[i] = (LsXY) { -1, -1 };
  choose (&f);
  for (guint r = 0; r < f.n_rows; r++)
    f.width = fmax (f.width, row_width (&f, r));
  for (guint r = 0; r < f.n_rows; r++)
    place_row (&f, r);
  place_nics (&f);
  draw_links (&f);
  draw_labels (&f);
  for (guint r = 0; r < f.n_rows; r++)
    g_array_unref (f.rows[r]);
  g_free (f.at);
  return (LsExtent) { f.width + LABEL_W, (f.n_rows - 1) * ROW + NODE_H };
}
