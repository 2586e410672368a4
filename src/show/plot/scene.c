#include "show/plot/scene.h"

#include <math.h>
#include <stdio.h>

#include "show/plot/gnuplot.h"
#include "show/plot/picture.h"

#define RADIUS           4.0 /* of corners, pixels */
#define CURVE_STEPS      24
#define POINTS_PER_PIXEL 0.79 /* of PNG: 9.5 points are as large as 12 pixels (show/plot/picture.c) */

typedef struct {
  double x, y, w, h;
  guint32 fill, border;
} Box;

typedef struct {
  guint32 color;
  double width;
  GString *points; /* "x y" lines; an empty line ends a stroke */
} Pen;

typedef struct {
  double x, y, size;
  LsAlign align;
  guint32 color;
  char *text;
} Word;

struct LsScene {
  double width, height;
  GArray *areas, *boxes; /* Box  */
  GArray *pens;          /* Pen  */
  GArray *words;         /* Word */
};

static void
pen_clear (gpointer data)
{
  g_string_free (((Pen *) data)->points, TRUE);
}

static void
word_clear (gpointer data)
{
  g_free (((Word *) data)->text);
}

LsScene *
ls_scene_new (void)
{
  LsScene *s = g_new0 (LsScene, 1);
  s->areas = g_array_new (FALSE, FALSE, sizeof (Box));
  s->boxes = g_array_new (FALSE, FALSE, sizeof (Box));
  s->pens = g_array_new (FALSE, FALSE, sizeof (Pen));
  s->words = g_array_new (FALSE, FALSE, sizeof (Word));
  g_array_set_clear_func (s->pens, pen_clear);
  g_array_set_clear_func (s->words, word_clear);
  return s;
}

void
ls_scene_free (LsScene *s)
{
  if (!s)
    return;
  g_array_unref (s->areas);
  g_array_unref (s->boxes);
  g_array_unref (s->pens);
  g_array_unref (s->words);
  g_free (s);
}

void
ls_scene_resize (LsScene *s, double width, double height)
{
  s->width = width;
  s->height = height;
}

void
ls_scene_box (LsScene *s, double x, double y, double w, double h, guint32 fill, guint32 border)
{
  Box box = { x, y, w, h, fill, border };
  g_array_append_val (s->boxes, box);
}

void
ls_scene_area (LsScene *s, double x, double y, double w, double h, guint32 fill, guint32 border)
{
  Box box = { x, y, w, h, fill, border };
  g_array_append_val (s->areas, box);
}

static GString *
pen (LsScene *s, guint32 color, double width)
{
  for (guint i = 0; i < s->pens->len; i++) {
    Pen *p = &g_array_index (s->pens, Pen, i);
    if (p->color == color && p->width == width)
      return p->points;
  }
  Pen p = { color, width, g_string_new (NULL) };
  g_array_append_val (s->pens, p);
  return p.points;
}

/* Numbers with a point whatever the locale. */
static void
put_point (GString *out, double x, double y)
{
  char a[G_ASCII_DTOSTR_BUF_SIZE], b[G_ASCII_DTOSTR_BUF_SIZE];
  g_string_append_printf (out, "%s %s\n", g_ascii_formatd (a, sizeof a, "%.1f", x),
                          g_ascii_formatd (b, sizeof b, "%.1f", y));
}

void
ls_scene_line (LsScene *s, const LsScenePoint *points, guint n, guint32 color, double width)
{
  GString *out = pen (s, color, width);
  for (guint i = 0; i < n; i++)
    put_point (out, points[i].x, points[i].y);
  g_string_append_c (out, '\n');
}

void
ls_scene_segment (LsScene *s, double x0, double y0, double x1, double y1, guint32 color, double width)
{
  const LsScenePoint points[] = { { x0, y0 }, { x1, y1 } };
  ls_scene_line (s, points, 2, color, width);
}

void
ls_scene_curve (LsScene *s, LsScenePoint from, LsScenePoint control, LsScenePoint to, guint32 color,
                double width)
{
  LsScenePoint points[CURVE_STEPS + 1];
  for (guint i = 0; i <= CURVE_STEPS; i++) {
    double t = (double) i / CURVE_STEPS, u = 1 - t;
    points[i].x = u * u * from.x + 2 * u * t * control.x + t * t * to.x;
    points[i].y = u * u * from.y + 2 * u * t * control.y + t * t * to.y;
  }
  ls_scene_line (s, points, CURVE_STEPS + 1, color, width);
}

void
ls_scene_text (LsScene *s, double x, double y, double size, LsAlign align, guint32 color, const char *text)
{
  Word word = { x, y, size, align, color, g_strdup (text) };
  g_array_append_val (s->words, word);
}

/* --- gnuplot ----------------------------------------------------------------------- */

typedef struct {
  const LsScene *scene;
  const LsPicture *picture;
} Drawing;

static gboolean
write_data (FILE *out, void *data, GError **error)
{
  const LsScene *s = ((Drawing *) data)->scene;
  for (guint i = 0; i < s->pens->len; i++)
    fprintf (out, "%s\n\n", g_array_index (s->pens, Pen, i).points->str);
  if (s->pens->len == 0)
    fputs ("0 0\n", out); /* gnuplot wants something to plot */
  return TRUE;
}

static void
write_boxes (FILE *out, const GArray *boxes, const char *layer, guint *n)
{
  for (guint i = 0; i < boxes->len; i++) {
    const Box *b = &g_array_index (boxes, Box, i);
    double r = fmin (RADIUS, fmin (b->w, b->h) / 3), x0 = b->x, y0 = b->y, x1 = b->x + b->w, y1 = b->y + b->h,
           k = r * 0.3;
    const LsScenePoint corners[] = {
      { x0 + r, y0 },     { x1 - r, y0 },     { x1 - k, y0 + k }, { x1, y0 + r },     { x1, y1 - r },
      { x1 - k, y1 - k }, { x1 - r, y1 },     { x0 + r, y1 },     { x0 + k, y1 - k }, { x0, y1 - r },
      { x0, y0 + r },     { x0 + k, y0 + k }, { x0 + r, y0 },
    };
    fprintf (out, "set object %u polygon", ++*n);
    for (guint c = 0; c < G_N_ELEMENTS (corners); c++) {
      char x[G_ASCII_DTOSTR_BUF_SIZE], y[G_ASCII_DTOSTR_BUF_SIZE];
      fprintf (out, "%s %s,%s", c == 0 ? " from" : " to", g_ascii_formatd (x, sizeof x, "%.1f", corners[c].x),
               g_ascii_formatd (y, sizeof y, "%.1f", corners[c].y));
    }
    fprintf (out, " %s fillcolor rgb 0x%06x fillstyle solid 1 border rgb 0x%06x linewidth 1\n", layer,
             b->fill, b->border);
  }
}

static void
write_words (FILE *out, const GArray *words)
{
  static const char *const aligns[] = { [LS_LEFT] = "left", [LS_CENTER] = "center", [LS_RIGHT] = "right" };
  for (guint i = 0; i < words->len; i++) {
    const Word *w = &g_array_index (words, Word, i);
    g_autofree char *text = ls_gnuplot_quote (w->text);
    char x[G_ASCII_DTOSTR_BUF_SIZE], y[G_ASCII_DTOSTR_BUF_SIZE], size[G_ASCII_DTOSTR_BUF_SIZE];
    fprintf (
        out,
        "set label %s at %s,%s %s front noenhanced font sprintf(',%%g', %s * scale) textcolor rgb 0x%06x\n",
        text, g_ascii_formatd (x, sizeof x, "%.1f", w->x), g_ascii_formatd (y, sizeof y, "%.1f", w->y),
        aligns[w->align], g_ascii_formatd (size, sizeof size, "%.1f", w->size), w->color);
  }
}

static void
write_lines (FILE *out, const LsScene *s)
{
  fputs ("plot ", out);
  for (guint i = 0; i < s->pens->len; i++) {
    const Pen *p = &g_array_index (s->pens, Pen, i);
    char width[G_ASCII_DTOSTR_BUF_SIZE];
    fprintf (out, "%sdata index %u with lines linewidth %s linecolor rgb 0x%06x", i > 0 ? ", \\\n     " : "",
             i, g_ascii_formatd (width, sizeof width, "%.1f", p->width), p->color);
  }
  fputs (s->pens->len > 0 ? "\n" : "data with dots linecolor rgb 0xffffff\n", out);
}

static gboolean
write_script (FILE *out, void *data, GError **error)
{
  const Drawing *d = data;
  const LsScene *s = d->scene;
  char scale[G_ASCII_DTOSTR_BUF_SIZE];
  g_autofree char *png
      = g_strdup_printf ("scale = %s", g_ascii_formatd (scale, sizeof scale, "%.2f", POINTS_PER_PIXEL));
  fputs ("# Drawn by gnuplot 5.4 or later; edit and run again.\n", out);
  ls_picture_write_terminal (d->picture, out, (int) ceil (s->width), (int) ceil (s->height), "scale = 1.0",
                             png);
  ls_picture_write_data_name (d->picture, out);
  fprintf (out,
           "unset border\nunset tics\nunset key\n"
           "set lmargin 0\nset rmargin 0\nset tmargin 0\nset bmargin 0\n"
           "set xrange [0:%d]\nset yrange [%d:0]\n",
           (int) ceil (s->width), (int) ceil (s->height));
  guint n = 0;
  write_boxes (out, s->areas, "back", &n);
  write_boxes (out, s->boxes, "front", &n);
  write_words (out, s->words);
  write_lines (out, s);
  return TRUE;
}

gboolean
ls_scene_draw (const LsScene *scene, const char *path, GError **error)
{
  g_auto (LsPicture) picture = { 0 };
  if (!ls_picture_init (&picture, path, error))
    return FALSE;
  Drawing d = { scene, &picture };
  return ls_picture_draw (&picture, write_data, write_script, &d, error);
}
