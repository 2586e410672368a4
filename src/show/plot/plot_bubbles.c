#include "base/order.h"
#include "show/plot/plots.h"

#include <stdbool.h>
#include <stdio.h>

#include <lockstep/error.h>

#include "show/draw/palette.h"
#include "show/plot/picture.h"

#define WIDTH       1180 /* pixels */
#define HEIGHT      520
#define PANEL_WIDTH 410
#define LEFT        76
#define GAP         76
#define TOP         84
#define BOTTOM      60

typedef struct {
  const LsBubbles *b;
  const LsPicture *picture;
} Plot;

static const LsBubbleCurve *
curve_at (const Plot *p, guint panel, guint i)
{
  return &g_array_index (p->b->panels[panel], LsBubbleCurve, i);
}

static gboolean
write_data (FILE *out, void *data, GError **error)
{
  const Plot *p = data;
  fputs ("# micro-batches or stages, bubble in per cent of the span; a block is a curve\n", out);
  for (guint panel = 0; panel < 2; panel++)
    for (guint i = 0; i < p->b->panels[panel]->len; i++) {
      const LsBubbleCurve *c = curve_at (p, panel, i);
      fprintf (out, "\n\n# %s_%u\n", c->schedule, panel);
      for (guint k = 0; k < c->points->len; k++) {
        const LsBubblePoint *point = &g_array_index (c->points, LsBubblePoint, k);
        char buffer[G_ASCII_DTOSTR_BUF_SIZE];
        fprintf (out, "%u %s\n", point->x,
                 g_ascii_formatd (buffer, sizeof buffer, "%.6g", 100 * point->bubble));
      }
    }
  return TRUE;
}

/* A tic where there are points. */
static void
write_xtics (FILE *out, const Plot *p, guint panel)
{
  g_autoptr (GArray) xs = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  for (guint i = 0; i < p->b->panels[panel]->len; i++)
    for (guint k = 0; k < curve_at (p, panel, i)->points->len; k++)
      g_array_append_val (xs, g_array_index (curve_at (p, panel, i)->points, LsBubblePoint, k).x);
  g_array_sort (xs, ls_compare_uint32);
  uint32_t before = 0;
  fprintf (out, "set xrange [%u * 0.93:%u * 1.07]\nset xtics out nomirror (", g_array_index (xs, uint32_t, 0),
           g_array_index (xs, uint32_t, xs->len - 1));
  for (guint i = 0; i < xs->len; i++) {
    uint32_t x = g_array_index (xs, uint32_t, i);
    if (x != before)
      fprintf (out, "%s%u", before > 0 ? ", " : "", x);
    before = x;
  }
  fputs (")\n", out);
}

static bool
is_same (const GArray *a, const GArray *b)
{
  bool is_equal = a->len == b->len;
  for (guint i = 0; is_equal && i < a->len; i++) {
    const LsBubblePoint *x = &g_array_index (a, LsBubblePoint, i), *y = &g_array_index (b, LsBubblePoint, i);
    is_equal = x->x == y->x && x->bubble == y->bubble;
  }
  return is_equal;
}

/* Curves that others cover are wider, so that they show behind them. */
static guint
n_above (const Plot *p, guint panel, guint i)
{
  guint n = 0;
  for (guint k = i + 1; k < p->b->panels[panel]->len; k++)
    n += is_same (curve_at (p, panel, i)->points, curve_at (p, panel, k)->points);
  return n;
}

static void
write_panel (FILE *out, const Plot *p, guint panel)
{
  static const char *const labels[] = { "micro-batches", "stages" };
  int left = LEFT + (int) panel * (PANEL_WIDTH + GAP);
  g_autofree char *note = ls_gnuplot_quote (p->b->notes[panel]);
  fprintf (out, "\nset lmargin at screen %.6f\nset rmargin at screen %.6f\n", (double) left / WIDTH,
           (double) (left + PANEL_WIDTH) / WIDTH);
  fprintf (out, "set label 3 %s at graph 0, graph 1 offset 0, character 0.8 left noenhanced\n", note);
  fprintf (out, "set xlabel '%s'\nset ylabel '%s'\n", labels[panel],
           panel == 0 ? "bubble (% of the span)" : "");
  write_xtics (out, p, panel);
  for (guint i = 0; i < p->b->panels[panel]->len; i++) {
    const LsBubbleCurve *c = curve_at (p, panel, i);
    fprintf (out,
             "%sdata index '%s_%u' using 1:2 with linespoints linewidth %u pointtype %u pointsize 0.8 "
             "linecolor rgb 0x%06x "
             "dashtype %u title '%s'",
             i == 0 ? "plot " : ", \\\n  ", c->schedule, panel, 2 + 3 * n_above (p, panel, i),
             4 + c->line % 10, ls_palette_series (c->line)->light, 1 + c->line / LS_N_SERIES_PAINTS,
             c->schedule);
  }
  fputs ("\nunset label 3\nunset key\n", out);
}

static gboolean
write_script (FILE *out, void *data, GError **error)
{
  const Plot *p = data;
  fputs ("# Drawn by gnuplot 5.4 or later; edit and run again.\n", out);
  ls_picture_write_terminal (p->picture, out, WIDTH, HEIGHT, "title_font = ',16'", "title_font = ',13'");
  ls_picture_write_data_name (p->picture, out);
  g_autofree char *title = ls_gnuplot_quote (p->b->title);
  fprintf (out, "set label 1 %s at screen %.6f, screen %.6f left noenhanced font title_font\n", title,
           (double) LEFT / WIDTH, 1 - 28.0 / HEIGHT);
  fprintf (out,
           "set tmargin at screen %.6f\nset bmargin at screen %.6f\n"
           "set logscale x 2\nset yrange [0:100]\nset ytics out nomirror\nset border 3 linecolor rgb "
           "'#555555'\n"
           "set grid ytics linetype 1 linecolor rgb '#e6e6e6' linewidth 1\n"
           "set key at screen %.6f, screen %.6f left top Left reverse vertical maxcolumns 1 samplen 2 "
           "spacing 1.2 noenhanced\n"
           "set multiplot\n",
           1 - (double) TOP / HEIGHT, (double) BOTTOM / HEIGHT,
           (double) (LEFT + 2 * PANEL_WIDTH + GAP + 20) / WIDTH, 1 - (TOP - 10.0) / HEIGHT);
  for (guint panel = 0; panel < 2; panel++)
    if (p->b->panels[panel]->len > 0)
      write_panel (out, p, panel);
  fputs ("unset multiplot\n", out);
  return TRUE;
}

gboolean
ls_plot_bubbles (const LsBubbles *b, const char *path, GError **error)
{
  g_auto (LsPicture) picture = { 0 };
  if (!ls_picture_init (&picture, path, error))
    return FALSE;
  if (b->panels[0]->len + b->panels[1]->len == 0) {
    g_set_error (error, LS_ERROR, LS_ERROR_CONFLICT, "%s: no schedule can be drawn", path);
    return FALSE;
  }
  Plot p = { b, &picture };
  return ls_picture_draw (&picture, write_data, write_script, &p, error);
}
