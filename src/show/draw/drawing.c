#include "show/draw/drawing.h"

#include <math.h>
#include <string.h>

#include "data/text/write_file.h"
#include "show/plot/plots.h"

/* ---- a drawing as SVG ---- */

#define RADIUS 4.0 /* of corners, pixels */
#define SIZE   11  /* of words that say no other */

/* In the C locale, with two decimals, of which zeros at the end are left out. */
static char *
number (double value)
{
  char text[G_ASCII_DTOSTR_BUF_SIZE];
  g_ascii_formatd (text, sizeof text, "%.2f", value);
  gsize n = strlen (text);
  while (text[n - 1] == '0')
    text[--n] = '\0';
  if (text[n - 1] == '.')
    text[n - 1] = '\0';
  return g_strdup (strcmp (text, "-0") == 0 ? "0" : text);
}

/* What XML does not have, control characters and U+FFFE and U+FFFF, become spaces. */
static char *
escaped (const char *text)
{
  g_autofree char *valid = g_utf8_make_valid (text, -1);
  g_autoptr (GString) kept = g_string_new (NULL);
  for (const char *c = valid; *c; c = g_utf8_next_char (c)) {
    gunichar letter = g_utf8_get_char (c);
    bool is_in_xml = letter == '\n' || (letter >= ' ' && letter != 0xfffe && letter != 0xffff);
    g_string_append_unichar (kept, is_in_xml ? letter : ' ');
  }
  return g_markup_escape_text (kept->str, -1);
}

/* --- the style sheet --------------------------------------------------------------------------------- */

typedef struct {
  GHashTable *fills, *strokes; /* names, static */
} Used;

static Used
used_of (const LsDrawing *d)
{
  Used used = { g_hash_table_new (g_str_hash, g_str_equal), g_hash_table_new (g_str_hash, g_str_equal) };
  g_hash_table_add (used.fills, "ground");
  for (int layer = 0; layer < LS_N_LAYERS; layer++)
    for (guint i = 0; i < d->layers[layer]->len; i++) {
      const LsDrawnItem *item = &g_array_index (d->layers[layer], LsDrawnItem, i);
      g_hash_table_add (item->kind == LS_DRAWN_LINE ? used.strokes : used.fills, (gpointer) item->paint);
      if (item->has_edge)
        g_hash_table_add (used.strokes, "edge");
    }
  for (guint i = 0; i < d->words->len; i++)
    g_hash_table_add (used.fills, (gpointer) g_array_index (d->words, LsDrawnWord, i).paint);
  return used;
}

/* LsPaint of these names, in their order. */
static GPtrArray *
sorted_paints (GHashTable *names)
{
  GPtrArray *paints = g_ptr_array_new ();
  g_autoptr (GList) sorted = g_list_sort (g_hash_table_get_keys (names), (GCompareFunc) strcmp);
  for (const GList *name = sorted; name; name = name->next)
    g_ptr_array_add (paints, (gpointer) ls_palette_find (name->data));
  return paints;
}

#include "show/drawing_svg_text.h"

/* ---- a drawing as gnuplot draws it: for PNG, and as a script with its data ---- */

#define POINTS_PER_PIXEL "0.79" /* of PNG: 9.5 points are as large as 12 pixels (show/plot/picture.c) */

/* What one element of the plot draws: items of a layer that look alike, boxes but for their colour; an area
 * alone. */
typedef struct {
  int layer;
  const LsDrawnItem *first;
} Block;

typedef struct {
  const LsDrawing *d;
  GArray *blocks; /* Block */
} Plot;

static bool
is_in (const Block *b, const LsDrawnItem *item)
{
  const LsDrawnItem *first = b->first;
  if (first->kind != item->kind || first->has_edge != item->has_edge)
    return false;
  if (item->kind == LS_DRAWN_AREA)
    return first == item;
  return item->kind == LS_DRAWN_BOX
      || (first->paint == item->paint && first->width == item->width && first->is_dashed == item->is_dashed);
}

static void
add_block (Plot *p, const Block *block, guint first)
{
  for (guint k = first; k < p->blocks->len; k++)
    if (is_in (&g_array_index (p->blocks, Block, k), block->first))
      return;
  g_array_append_vals (p->blocks, block, 1);
}

/* Areas, then boxes, then lines of each layer. */
static void
find_blocks (Plot *p)
{
  static const LsDrawnKind kinds[] = { LS_DRAWN_AREA, LS_DRAWN_BOX, LS_DRAWN_LINE };
  for (int layer = 0; layer < LS_N_LAYERS; layer++) {
    guint first = p->blocks->len;
    for (guint k = 0; k < G_N_ELEMENTS (kinds); k++)
      for (guint i = 0; i < p->d->layers[layer]->len; i++) {
        const Block block = { layer, &g_array_index (p->d->layers[layer], LsDrawnItem, i) };
        if (block.first->kind == kinds[k])
          add_block (p, &block, first);
      }
  }
}

#include "show/drawing_gnuplot_text.h"

/* An LsDrawing as .png or .gp. */
static gboolean
ls_drawing_plot (const LsDrawing *d, const char *path, GError **error)
{
  const LsChart chart = { .width = d->width,
                          .height = d->height,
                          .svg_fonts = "scale = 1.0",
                          .png_fonts = "scale = " POINTS_PER_PIXEL };
  Plot plot = { d, g_array_new (FALSE, FALSE, sizeof (Block)) };
  find_blocks (&plot);
  gboolean ok = ls_chart_draw (path, &chart, write_data, write_script, &plot, error);
  g_array_unref (plot.blocks);
  return ok;
}

#define CURVE_STEPS 24
#define HEAD        6.0 /* of an arrow, pixels */

LsDrawing *
ls_drawing_new (const char *title)
{
  LsDrawing *d = g_new0 (LsDrawing, 1);
  d->title = g_strdup (title);
  for (int layer = 0; layer < LS_N_LAYERS; layer++)
    d->layers[layer] = g_array_new (FALSE, FALSE, sizeof (LsDrawnItem));
  d->words = g_array_new (FALSE, FALSE, sizeof (LsDrawnWord));
  d->points = g_array_new (FALSE, FALSE, sizeof (LsXY));
  d->texts = g_string_chunk_new (4096);
  return d;
}

void
ls_drawing_free (LsDrawing *d)
{
  if (!d)
    return;
  for (int layer = 0; layer < LS_N_LAYERS; layer++)
    g_array_unref (d->layers[layer]);
  g_array_unref (d->words);
  g_array_unref (d->points);
  g_string_chunk_free (d->texts);
  g_free (d->title);
  g_free (d);
}

void
ls_drawing_resize (LsDrawing *d, double width, double height)
{
  d->width = width;
  d->height = height;
}

/* Moves all that is there down, to make room above. */
static void
shift (LsDrawing *d, double y)
{
  for (int layer = 0; layer < LS_N_LAYERS; layer++)
    for (guint i = 0; i < d->layers[layer]->len; i++)
      g_array_index (d->layers[layer], LsDrawnItem, i).y += y;
  for (guint i = 0; i < d->words->len; i++)
    g_array_index (d->words, LsDrawnWord, i).y += y;
  for (guint i = 0; i < d->points->len; i++)
    g_array_index (d->points, LsXY, i).y += y;
}

static const char *
keep (LsDrawing *d, const char *text)
{
  return text ? g_string_chunk_insert (d->texts, text) : NULL;
}

static const char *
paint_of (const char *name)
{
  const LsPaint *paint = ls_palette_find (name);
  g_assert (paint);
  return paint->name;
}

void
ls_drawing_box (LsDrawing *d, LsLayer layer, LsDrawnItem box)
{
  box.paint = paint_of (box.paint);
  box.opacity = box.opacity > 0 ? box.opacity : 1;
  box.tint = box.tint > 0 ? box.tint : 1;
  box.tip = keep (d, box.tip);
  g_array_append_val (d->layers[layer], box);
}

void
ls_drawing_rect (LsDrawing *d, LsLayer layer, LsRect r, const char *paint, bool has_edge, const char *tip)
{
  const LsDrawnItem box = {
    .x = r.x, .y = r.y, .width = r.width, .height = r.height, .paint = paint, .has_edge = has_edge, .tip = tip
  };
  ls_drawing_box (d, layer, box);
}

static LsDrawnItem
item_of_points (LsDrawing *d, LsDrawnKind kind, const LsXY *points, guint n, const char *paint,
                const char *tip)
{
  const LsDrawnItem item = { .kind = kind,
                             .paint = paint_of (paint),
                             .opacity = 1,
                             .tint = 1,
                             .first_point = d->points->len,
                             .n_points = n,
                             .tip = keep (d, tip) };
  g_array_append_vals (d->points, points, n);
  return item;
}

void
ls_drawing_line (LsDrawing *d, const LsXY *points, guint n, const LsStroke *s)
{
  LsDrawnItem item = item_of_points (d, LS_DRAWN_LINE, points, n, s->paint, s->tip);
  item.width = s->width;
  item.is_dashed = s->is_dashed;
  g_array_append_val (d->layers[s->layer], item);
}

void
ls_drawing_segment (LsDrawing *d, LsXY from, LsXY to, const LsStroke *s)
{
  ls_drawing_line (d, (const LsXY[]) { from, to }, 2, s);
}

void
ls_drawing_curve (LsDrawing *d, LsXY from, LsXY control, LsXY to, const LsStroke *s)
{
  LsXY points[CURVE_STEPS + 1];
  for (guint i = 0; i <= CURVE_STEPS; i++) {
    double t = (double) i / CURVE_STEPS, u = 1 - t;
    points[i].x = u * u * from.x + 2 * u * t * control.x + t * t * to.x;
    points[i].y = u * u * from.y + 2 * u * t * control.y + t * t * to.y;
  }
  ls_drawing_line (d, points, CURVE_STEPS + 1, s);
}

/* There, to one side of the head, to its tip again and to the other side: one line. */
void
ls_drawing_arrow (LsDrawing *d, LsXY from, LsXY to, const LsStroke *s)
{
  double dx = from.x - to.x, dy = from.y - to.y, length = hypot (dx, dy);
  if (length <= 0)
    return;
  double head = fmin (HEAD, length / 2), ux = head * dx / length, uy = head * dy / length;
  const LsXY points[] = { from,
                          to,
                          { to.x + ux - 0.45 * uy, to.y + uy + 0.45 * ux },
                          to,
                          { to.x + ux + 0.45 * uy, to.y + uy - 0.45 * ux } };
  ls_drawing_line (d, points, G_N_ELEMENTS (points), s);
}

void
ls_drawing_area (LsDrawing *d, const LsXY *points, guint n, const char *paint, const char *tip)
{
  const LsDrawnItem item = item_of_points (d, LS_DRAWN_AREA, points, n, paint, tip);
  g_array_append_val (d->layers[LS_LAYER_BOXES], item);
}

void
ls_drawing_text (LsDrawing *d, double x, double y, double size, LsAlign align, const char *paint,
                 const char *text)
{
  const LsDrawnWord word = { x, y, size, align, paint_of (paint), keep (d, text) };
  g_array_append_val (d->words, word);
}

/* Whether anything of the layer of boxes has that paint. */
static bool
has_paint (const LsDrawing *d, const char *paint)
{
  const GArray *boxes = d->layers[LS_LAYER_BOXES];
  for (guint i = 0; i < boxes->len; i++)
    if (strcmp (g_array_index (boxes, LsDrawnItem, i).paint, paint) == 0)
      return true;
  return false;
}

double
ls_text_width (const char *text, double size)
{
  return 0.57 * size * (double) g_utf8_strlen (text, -1);
}

gboolean
ls_drawing_check (const char *path, GError **error)
{
  return g_str_has_suffix (path, ".svg") ? ls_write_file_check (path, error) : ls_picture_check (path, error);
}

gboolean
ls_drawing_write (const LsDrawing *d, const char *path, GError **error)
{
  if (!g_str_has_suffix (path, ".svg"))
    return ls_drawing_plot (d, path, error);
  g_autofree char *svg = ls_drawing_to_svg (d);
  return ls_write_text (path, svg, error);
}

/* --- axes and legends ---------------------------------------------------------------------------- */

#define LABEL_SIZE  11.0 /* of letters, pixels */
#define TITLE_SIZE  16.0
#define TICK        5.0
#define TICK_ROOM   90.0 /* of one with its value, along the axis */
#define LEGEND_LINE 20.0
#define MARK        12.0

const char *
ls_axis_unit (LsTime largest, LsTime *ret_unit)
{
  static const struct {
    const char *name;
    LsTime unit;
  } units[] = { { "s", LS_S }, { "ms", LS_MS }, { "us", LS_US } };
  for (guint i = 0; i < G_N_ELEMENTS (units); i++)
    if (largest >= units[i].unit) {
      *ret_unit = units[i].unit;
      return units[i].name;
    }
  *ret_unit = LS_NS;
  return "ns";
}

/* 1, 2 or 5 times a power of ten: at most n in the range. */
static double
step_of (double range, double n)
{
  double power = pow (10, floor (log10 (range / n)));
  for (int i = 0; i < 3; i++) {
    double step = power * (i == 0 ? 1 : i == 1 ? 2 : 5);
    if (step * n >= range)
      return step;
  }
  return 10 * power;
}

static void
tick_text (char text[G_ASCII_DTOSTR_BUF_SIZE], double value, double step)
{
  g_ascii_formatd (text, G_ASCII_DTOSTR_BUF_SIZE, "%.10g", fabs (value) < step * 1e-9 ? 0 : value);
}

double
ls_draw_axis_below (LsDrawing *d, double left, double right, double y, const LsDrawnAxis *axis)
{
  const LsStroke stroke = { .layer = LS_LAYER_OVER, .paint = "quiet", .width = 1 };
  double range = axis->to - axis->from, step = step_of (range, fmax (2, (right - left) / TICK_ROOM));
  for (double at = ceil (axis->from / step - 1e-9) * step; at <= axis->to + 1e-9 * range; at += step) {
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    tick_text (text, at, step);
    double x = left + (at - axis->from) / range * (right - left);
    ls_drawing_segment (d, (LsXY) { x, y }, (LsXY) { x, y + TICK }, &stroke);
    bool is_at_edge = x + ls_text_width (text, LABEL_SIZE) / 2 > right + 16;
    ls_drawing_text (d, x, y + 14, LABEL_SIZE, is_at_edge ? LS_RIGHT : LS_CENTER, "quiet", text);
  }
  ls_drawing_text (d, left, y + 31, LABEL_SIZE, LS_LEFT, "quiet", axis->name);
  return 40;
}

void
ls_draw_axis_left (LsDrawing *d, double left, double right, double top, double bottom,
                   const LsDrawnAxis *axis)
{
  const LsStroke stroke = { .layer = LS_LAYER_GROUND, .paint = "line", .width = 1 };
  double range = axis->to - axis->from, step = step_of (range, fmax (2, (bottom - top) / (TICK_ROOM / 2)));
  for (double at = ceil (axis->from / step - 1e-9) * step; at <= axis->to + 1e-9 * range; at += step) {
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    tick_text (text, at, step);
    double y = bottom - (at - axis->from) / range * (bottom - top);
    ls_drawing_segment (d, (LsXY) { left, y }, (LsXY) { right, y }, &stroke);
    ls_drawing_text (d, left - 8, y, LABEL_SIZE, LS_RIGHT, "quiet", text);
  }
  ls_drawing_text (d, left, top - 12, LABEL_SIZE, LS_LEFT, "quiet", axis->name);
}

/* Those that the drawing has, behind each other, in as many lines as they need; returns their height. Only
 * measured unless is_drawn. */
static double
lay_legend (LsDrawing *d, double left, double right, double y, const LsLegendEntry *entries, guint n,
            bool is_drawn)
{
  double x = left, line = y;
  for (guint i = 0; i < n; i++) {
    if (!has_paint (d, entries[i].paint))
      continue;
    double width = MARK + 5 + ls_text_width (entries[i].name, LABEL_SIZE);
    if (x > left && x + width > right) {
      x = left;
      line += LEGEND_LINE;
    }
    if (is_drawn) {
      ls_drawing_rect (d, LS_LAYER_OVER, (LsRect) { x, line, MARK, MARK }, entries[i].paint, false, NULL);
      ls_drawing_text (d, x + MARK + 5, line + MARK / 2, LABEL_SIZE, LS_LEFT, "text", entries[i].name);
    }
    x += width + 18;
  }
  return line + (x > left ? LEGEND_LINE : 0) - y;
}

double
ls_draw_head (LsDrawing *d, double left, double right, const char *title, const char *note,
              const LsLegendEntry *entries, guint n)
{
  double top = note ? 58 : 42, height = top + lay_legend (d, left, right, top, entries, n, false) + 6;
  shift (d, height);
  ls_drawing_text (d, left, 22, TITLE_SIZE, LS_LEFT, "text", title);
  if (note)
    ls_drawing_text (d, left, 42, LABEL_SIZE, LS_LEFT, "quiet", note);
  lay_legend (d, left, right, top, entries, n, true);
  return height;
}
