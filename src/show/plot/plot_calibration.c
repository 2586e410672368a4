#include "show/plot/plots.h"

#include <math.h>

#include "show/plot/picture.h"
#include "show/draw/palette.h"

/* Pixels. */
#define WIDTH  980
#define HEIGHT 700
#define TOP    78
#define LEFT   88
#define RIGHT  310 /* legend, right of the panel */
#define BOTTOM 68

#define BAND 1.1

typedef struct {
  const LsFitReport *r;
  const LsPicture *picture;
  double lo, hi; /* of both axes, in us */
} Plot;

static void
find_range (Plot *p)
{
  p->lo = INFINITY;
  p->hi = 0;
  for (guint i = 0; i < p->r->kernels->len; i++) {
    const LsFittedKernel *k = &g_array_index (p->r->kernels, LsFittedKernel, i);
    p->lo = fmin (p->lo, 1e6 * fmin (k->measured_s, k->predicted_s));
    p->hi = fmax (p->hi, 1e6 * fmax (k->measured_s, k->predicted_s));
  }
  p->lo /= 1.3;
  p->hi *= 1.3;
}

/* Blocks 2 i and 2 i + 1 are those of class i that were fitted and held out. */
static guint
n_in_block (const Plot *p, guint class, bool held_out)
{
  const LsFitClass *c = &g_array_index (p->r->classes, LsFitClass, class);
  return held_out ? c->held_out.n : c->fit.n;
}

static gboolean
write_data (FILE *out, void *data, GError **error)
{
  const Plot *p = data;
  char x[G_ASCII_DTOSTR_BUF_SIZE], y[G_ASCII_DTOSTR_BUF_SIZE];
  fputs ("# Measured time, then predicted, in us. Two blocks for each class: fitted, held out.\n", out);
  for (guint block = 0; block < 2 * p->r->classes->len; block++) {
    const LsFitClass *c = &g_array_index (p->r->classes, LsFitClass, block / 2);
    fprintf (out, "%s# %s %s, %s\n", block > 0 ? "\n\n" : "", c->key, ls_dtype_name (c->dtype),
             block % 2 ? "held out" : "fitted");
    for (guint i = 0; i < p->r->kernels->len; i++) {
      const LsFittedKernel *k = &g_array_index (p->r->kernels, LsFittedKernel, i);
      if (k->class == block / 2 && k->held_out == (block % 2 == 1))
        fprintf (out, "%s %s\n", g_ascii_formatd (x, sizeof x, "%.6g", k->measured_s * 1e6),
                 g_ascii_formatd (y, sizeof y, "%.6g", k->predicted_s * 1e6));
    }
    if (n_in_block (p, block / 2, block % 2) == 0)
      fputs ("NaN NaN\n", out); /* or the next block would take its number */
  }
  return TRUE;
}

static void
write_axes (FILE *out, const Plot *p)
{
  char lo[G_ASCII_DTOSTR_BUF_SIZE], hi[G_ASCII_DTOSTR_BUF_SIZE];
  g_ascii_formatd (lo, sizeof lo, "%.6g", p->lo);
  g_ascii_formatd (hi, sizeof hi, "%.6g", p->hi);
  ls_picture_write_margins (out, (double) LEFT / WIDTH, 1 - (double) RIGHT / WIDTH, 1 - (double) TOP / HEIGHT,
                            (double) BOTTOM / HEIGHT);
  fprintf (out, "set logscale xy\nset xrange [%s:%s]\nset yrange [%s:%s]\n", lo, hi, lo, hi);
  fputs ("set xlabel 'measured time (us)'\nset ylabel 'predicted time (us)' offset 1\n"
         "set format '%g'\nset tics out nomirror\nset border 3 linecolor rgb '#555555'\n"
         "set grid xtics ytics linetype 1 linecolor rgb '#e6e6e6' linewidth 1\n",
         out);
  fprintf (out,
           "set key at screen %.6f, screen %.6f left top Left reverse vertical maxcolumns 1 samplen 1 "
           "spacing 1.2 noenhanced\n",
           1 - (RIGHT - 16.0) / WIDTH, 1 - TOP / (double) HEIGHT);
}

static void
write_class (FILE *out, const Plot *p, guint i)
{
  const LsFitClass *c = &g_array_index (p->r->classes, LsFitClass, i);
  for (guint held_out = 0; held_out < 2; held_out++) {
    guint n = n_in_block (p, i, held_out);
    if (n == 0)
      continue;
    g_autofree char *label = g_strdup_printf ("%s %s, %s (%.1f %%)", c->key, ls_dtype_name (c->dtype),
                                              held_out ? "held out" : "fitted",
                                              100 * (held_out ? c->held_out.mape : c->fit.mape));
    g_autofree char *quoted = ls_gnuplot_quote (label);
    fprintf (out,
             ", \\\n  data index %u using 1:2 with points pointtype %d pointsize 0.6 linewidth 1 linecolor "
             "rgb '#%06x' title %s",
             2 * i + held_out, ls_series_markers[i % LS_N_SERIES_MARKERS] - (int) held_out,
             ls_palette_series (i)->light, quoted);
  }
}

static gboolean
write_script (FILE *out, void *data, GError **error)
{
  const Plot *p = data;
  fputs ("# Drawn by gnuplot 5.4 or later; edit and run again.\n", out);
  ls_picture_write_terminal (p->picture, out, WIDTH, HEIGHT, "title_font = ',18'", "title_font = ',15'");
  g_autofree char *title = g_strdup_printf ("Kernels on %s: predicted over measured time", p->r->gpu);
  g_autofree char *quoted_title = ls_gnuplot_quote (title);
  ls_picture_write_data_name (p->picture, out);
  fprintf (out, "set label 1 %s at screen %.6f, screen %.6f left noenhanced font title_font\n", quoted_title,
           (double) LEFT / WIDTH, 1 - 26.0 / HEIGHT);
  fprintf (out,
           "set label 2 'in the band within 10 %%; open: held out of the fit; in brackets the mean absolute "
           "error' at screen %.6f, "
           "screen %.6f left noenhanced textcolor rgb '#555555'\n",
           (double) LEFT / WIDTH, 1 - 50.0 / HEIGHT);
  write_axes (out, p);
  fprintf (out,
           "plot '+' using 1:($1 / %g):($1 * %g) with filledcurves linecolor rgb '#d9d9d9' notitle, \\\n  x "
           "with lines linewidth 1 linecolor rgb '#888888' notitle",
           BAND, BAND);
  for (guint i = 0; i < p->r->classes->len; i++)
    write_class (out, p, i);
  fputc ('\n', out);
  return TRUE;
}

gboolean
ls_plot_calibration (const LsFitReport *report, const char *path, GError **error)
{
  g_auto (LsPicture) picture = { 0 };
  if (!ls_picture_init (&picture, path, error))
    return FALSE;
  Plot plot = { .r = report, .picture = &picture };
  find_range (&plot);
  return ls_picture_draw (&picture, write_data, write_script, &plot, error);
}
