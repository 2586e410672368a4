#include <math.h>
#include <string.h>

#include "data/text/write_file.h"
#include "show/draw/drawing.h"
#include "show/draw/palette.h"
#include "show/plot/picture.h"

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

void
ls_drawing_shift (LsDrawing *d, double y)
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
ls_drawing_box (LsDrawing *d, const LsDrawnBox *b)
{
  const LsDrawnItem item = {
    .kind = LS_DRAWN_BOX,
    .has_edge = b->has_edge,
    .paint = paint_of (b->paint),
    .x = b->x,
    .y = b->y,
    .width = b->width,
    .height = b->height,
    .opacity = b->opacity > 0 ? b->opacity : 1,
    .tint = b->tint > 0 ? b->tint : 1,
    .tip = keep (d, b->tip),
  };
  g_array_append_val (d->layers[b->layer], item);
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

bool
ls_drawing_has (const LsDrawing *d, const char *paint)
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
