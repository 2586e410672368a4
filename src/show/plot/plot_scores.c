#include "show/plot/plots.h"

#include <math.h>
#include <stdbool.h>

#include <lockstep/error.h>

#include "show/plot/picture.h"
#include "show/draw/palette.h"

/* Pixels: the upper panel is square, the lower one shares its x axis. */
#define WIDTH  980
#define HEIGHT 980
#define TOP    78
#define LEFT   88
#define RIGHT  250 /* legend, right of the panels */
#define SIDE   (WIDTH - LEFT - RIGHT)
#define GAP    24
#define BOTTOM 62

#define BAND 1.1

typedef struct {
  const LsScores *s;
  const LsPicture *picture;
  double lo, hi;  /* of both axes, in seconds  */
  double max_pct; /* of the errors' axis, both ways */
} Plot;

static void
find_range (Plot *p)
{
  p->lo = INFINITY;
  p->hi = 0;
  for (guint i = 0; i < p->s->n_rows; i++) { /* fmin and fmax pass over NaN */
    p->lo = fmin (p->lo, fmin (p->s->rows[i].measured_s, p->s->rows[i].predicted_s));
    p->hi = fmax (p->hi, fmax (p->s->rows[i].measured_s, p->s->rows[i].predicted_s));
  }
  p->lo /= 1.3;
  p->hi *= 1.3;
  p->max_pct = fmax (20, 10 * ceil (fabs (p->s->total.worst_pct) / 10));
}

static gboolean
write_data (FILE *out, void *data, GError **error)
{
  const Plot *p = data;
  char x[G_ASCII_DTOSTR_BUF_SIZE], y[G_ASCII_DTOSTR_BUF_SIZE];
  fputs ("# Measured step time, then predicted, in seconds. A block for each family.\n", out);
  for (guint f = 0; f < p->s->n_families; f++) {
    fprintf (out, "%s# %s\n", f > 0 ? "\n\n" : "", p->s->families[f].family);
    for (guint i = 0; i < p->s->n_rows; i++) {
      const LsScoreRow *row = &p->s->rows[i];
      if (!isnan (row->predicted_s) && g_str_equal (row->family, p->s->families[f].family))
        fprintf (out, "%s %s\n", g_ascii_formatd (x, sizeof x, "%.6g", row->measured_s),
                 g_ascii_formatd (y, sizeof y, "%.6g", row->predicted_s));
    }
    if (p->s->families[f].score.n == 0)
      fputs ("NaN NaN\n", out); /* or the next block would take its number */
  }
  return TRUE;
}

static void
write_head (FILE *out, const Plot *p)
{
  fputs ("# Drawn by gnuplot 5.4 or later; edit and run again.\n", out);
  ls_picture_write_terminal (p->picture, out, WIDTH, HEIGHT, "title_font = ',18'", "title_font = ',15'");
  ls_picture_write_data_name (p->picture, out);
  fputs ("set multiplot\n", out);
  fprintf (out,
           "set label 1 'Predicted over measured step time' at screen %.6f, screen %.6f left noenhanced font "
           "title_font\n",
           (double) LEFT / WIDTH, 1 - 26.0 / HEIGHT);
  fprintf (out,
           "set label 2 '%u runs, mean absolute error %.1f %%, bias %+.1f %%; in the band within 10 %%' at "
           "screen %.6f, "
           "screen %.6f left noenhanced textcolor rgb '#555555'\n",
           p->s->total.n, p->s->total.mape_pct, p->s->total.bias_pct, (double) LEFT / WIDTH,
           1 - 50.0 / HEIGHT);
}

static void
write_axes (FILE *out, const Plot *p)
{
  char lo[G_ASCII_DTOSTR_BUF_SIZE], hi[G_ASCII_DTOSTR_BUF_SIZE];
  g_ascii_formatd (lo, sizeof lo, "%.6g", p->lo);
  g_ascii_formatd (hi, sizeof hi, "%.6g", p->hi);
  ls_picture_write_margins (out, (double) LEFT / WIDTH, 1 - (double) RIGHT / WIDTH, 1 - (double) TOP / HEIGHT,
                            1 - (double) (TOP + SIDE) / HEIGHT);
  fprintf (out, "set logscale xy\nset xrange [%s:%s]\nset yrange [%s:%s]\n", lo, hi, lo, hi);
  fputs ("set ylabel 'predicted (s)' offset 1\nset format '%g'\nset format x ''\n"
         "set tics out nomirror\nset border 3 linecolor rgb '#555555'\n"
         "set grid xtics ytics linetype 1 linecolor rgb '#e6e6e6' linewidth 1\n",
         out);
  fprintf (out,
           "set key at screen %.6f, screen %.6f left top Left reverse vertical maxcolumns 1 samplen 1 "
           "spacing 1.2 noenhanced "
           "title 'family: runs, mean error' left\n",
           1 - (RIGHT - 16.0) / WIDTH, 1 - TOP / (double) HEIGHT);
}

/* y: how the column pair makes the ordinate. The title is empty in the lower panel. */
static void
write_families (FILE *out, const Plot *p, const char *y, bool has_title)
{
  for (guint i = 0; i < p->s->n_families; i++) {
    const LsFamilyScore *f = &p->s->families[i];
    if (f->score.n == 0)
      continue;
    g_autofree char *label = g_strdup_printf ("%s: %u, %.1f %%", f->family, f->score.n, f->score.mape_pct);
    g_autofree char *quoted = ls_gnuplot_quote (label);
    fprintf (out,
             ", \\\n  data index %u using 1:%s with points pointtype %d pointsize 0.9 linewidth 1 linecolor "
             "rgb '#30%06x' %s %s",
             i, y, ls_series_markers[i % LS_N_SERIES_MARKERS], ls_palette_series (i)->light,
             has_title ? "title" : "notitle", has_title ? quoted : "");
  }
  fputc ('\n', out);
}

static void
write_errors (FILE *out, const Plot *p)
{
  fputs ("unset label\nunset key\nunset logscale y\nset format x '%g'\nset xlabel 'measured (s)'\nset ylabel "
         "'error (%)' offset 1\n",
         out);
  fprintf (out, "set ytics %g\n", p->max_pct / 2);
  fprintf (out, "set tmargin at screen %.6f\nset bmargin at screen %.6f\nset yrange [%g:%g]\n",
           1 - (double) (TOP + SIDE + GAP) / HEIGHT, (double) BOTTOM / HEIGHT, -p->max_pct, p->max_pct);
  fprintf (out,
           "plot '+' using 1:(-%g):(%g) with filledcurves linecolor rgb '#d9d9d9' notitle, \\\n  0 with "
           "lines linewidth 1 linecolor rgb '#888888' notitle",
           100 * (BAND - 1), 100 * (BAND - 1));
  write_families (out, p, "(100 * ($2 / $1 - 1))", false);
}

static gboolean
write_script (FILE *out, void *data, GError **error)
{
  const Plot *p = data;
  write_head (out, p);
  write_axes (out, p);
  fprintf (out,
           "plot '+' using 1:($1 * %g):($1 * %g) with filledcurves linecolor rgb '#d9d9d9' notitle, \\\n  x "
           "with lines linewidth 1 linecolor rgb '#888888' notitle",
           2 - BAND, BAND);
  write_families (out, p, "2", true);
  write_errors (out, p);
  fputs ("unset multiplot\n", out);
  return TRUE;
}

gboolean
ls_plot_scores (const LsScores *scores, const char *path, GError **error)
{
  g_auto (LsPicture) picture = { 0 };
  if (!ls_picture_init (&picture, path, error))
    return FALSE;
  if (scores->total.n == 0) {
    g_set_error (error, LS_ERROR, LS_ERROR_FAILED, "%s: nothing to draw, as no row could be simulated", path);
    return FALSE;
  }
  Plot plot = { .s = scores, .picture = &picture };
  find_range (&plot);
  return ls_picture_draw (&picture, write_data, write_script, &plot, error);
}
