#include "show/plot/plots.h"

#include <stdio.h>

#include "show/plot/gnuplot.h"
#include "show/plot/picture.h"

#define WIDTH     1400 /* of the picture, pixels */
#define HEIGHT    620
#define N_COLUMNS 1200 /* in which the curve is drawn: narrower peaks stand in one */
#define GIB       1073741824.0

/* Paul Tol, "Colour schemes", SRON/EPS/TN/09-002, "bright" and "vibrant". */
static const char *const colors[LS_N_MEM] = {
  [LS_MEM_PARAMETERS] = "#4477AA",  [LS_MEM_GRADIENTS] = "#66CCEE", [LS_MEM_OPTIMIZER] = "#228833",
  [LS_MEM_ACTIVATIONS] = "#CCBB44", [LS_MEM_UNSHARDED] = "#EE6677", [LS_MEM_COMM_BUFFERS] = "#AA3377",
  [LS_MEM_WORKSPACE] = "#BBBBBB",
};

typedef struct {
  const LsMemoryPlot *plot;
  const LsPicture *picture;
} Page;

static const LsMemorySample *
sample_at (const Page *p, guint i)
{
  return &g_array_index (p->plot->samples, LsMemorySample, i);
}

static bool
is_shown (const Page *p, int category)
{
  for (guint i = 0; i < p->plot->samples->len; i++)
    if (sample_at (p, i)->alive[category] > 0)
      return true;
  return false;
}

/* --- data ------------------------------------------------------------------------ */

static void
write_number (FILE *out, double value, const char *format)
{
  char text[G_ASCII_DTOSTR_BUF_SIZE];
  fprintf (out, " %s", g_ascii_formatd (text, sizeof text, format, value));
}

/* Time, then the upper edges of all areas. */
static void
write_row (FILE *out, LsTime at, const LsMemorySample *s)
{
  uint64_t edge = 0;
  write_number (out, (double) at / (double) LS_MS, "%.6f");
  for (int c = 0; c < LS_N_MEM; c++) {
    edge += s->alive[c];
    write_number (out, (double) edge / GIB, "%.5f");
  }
  fputc ('\n', out);
}

static guint
column_of (const Page *p, guint i)
{
  double share = (double) sample_at (p, i)->at / (double) MAX (p->plot->window, 1);
  return (guint) (share * N_COLUMNS);
}

/* Of the samples of a column the fullest, and the last, which holds until the next. */
static void
write_samples (FILE *out, const Page *p)
{
  const LsMemorySample *before = sample_at (p, 0);
  write_row (out, 0, before);
  for (guint i = 0, end; i < p->plot->samples->len; i = end) {
    const LsMemorySample *fullest = sample_at (p, i);
    for (end = i; end < p->plot->samples->len && column_of (p, end) == column_of (p, i); end++)
      if (ls_memory_sample_total (sample_at (p, end)) > ls_memory_sample_total (fullest))
        fullest = sample_at (p, end);
    write_row (out, fullest->at, before);
    write_row (out, fullest->at, fullest);
    before = sample_at (p, end - 1);
    if (before == fullest)
      continue;
    write_row (out, before->at, fullest);
    write_row (out, before->at, before);
  }
  write_row (out, p->plot->window, before);
}

static gboolean
write_data (FILE *out, void *data, GError **error)
{
  const Page *p = data;
  fputs ("# ms from the start of the step, then GiB up to the upper edge of", out);
  for (int c = 0; c < LS_N_MEM; c++)
    fprintf (out, "%s %s", c > 0 ? "," : "", ls_mem_category_name ((LsMemCategory) c));
  fputc ('\n', out);
  write_samples (out, p);
  return TRUE;
}

/* --- script ---------------------------------------------------------------------- */

static double
highest (const Page *p)
{
  uint64_t most = p->plot->capacity_bytes;
  for (guint i = 0; i < p->plot->samples->len; i++)
    most = MAX (most, ls_memory_sample_total (sample_at (p, i)));
  return 1.06 * (double) most / GIB;
}

static void
write_frame (FILE *out, const Page *p)
{
  g_autofree char *title = ls_gnuplot_quote (p->plot->title), *note = ls_gnuplot_quote (p->plot->note);
  fprintf (out,
           "set label 1 %s at screen 0.055, screen 0.965 left noenhanced font title_font\n"
           "set label 2 %s at screen 0.055, screen 0.922 left noenhanced textcolor rgb '#555555'\n"
           "set lmargin at screen 0.055\nset rmargin at screen 0.985\nset tmargin at screen 0.845\nset "
           "bmargin at screen 0.095\n"
           "set xlabel 'time from the start of the step (ms)'\nset ylabel 'GiB'\n"
           "set border 3 linecolor rgb '#555555'\nset xtics out nomirror\nset ytics out nomirror\n"
           "set key at screen 0.985, screen 0.88 right center horizontal Left reverse maxrows 1 samplen "
           "1.2\n",
           title, note);
  fputs ("set xrange [0:", out);
  write_number (out, (double) p->plot->window / (double) LS_MS, "%.6f");
  fputs ("]\nset yrange [0:", out);
  write_number (out, highest (p), "%.4f");
  fputs ("]\ncapacity =", out);
  write_number (out, (double) p->plot->capacity_bytes / GIB, "%.4f");
  fputs ("\n\n", out);
}

static void
write_plot (FILE *out, const Page *p)
{
  ls_picture_write_data_name (p->picture, out);
  fputs ("plot ", out);
  for (int c = 0; c < LS_N_MEM; c++) {
    if (!is_shown (p, c))
      continue;
    g_autofree char *name = g_strdelimit (g_strdup (ls_mem_category_name ((LsMemCategory) c)), "_", ' ');
    g_autofree char *below = c == 0 ? g_strdup ("(0)") : g_strdup_printf ("%d", c + 1);
    fprintf (out,
             "data using 1:%s:%d with filledcurves fillstyle solid 0.9 noborder fillcolor rgb '%s' title "
             "'%s', \\\n  ",
             below, c + 2, colors[c], name);
  }
  fputs ("capacity with lines linewidth 2 dashtype 2 linecolor rgb '#222222' title 'capacity'\n", out);
}

static gboolean
write_script (FILE *out, void *data, GError **error)
{
  const Page *p = data;
  fputs ("# Drawn by gnuplot 5.4 or later; edit and run again.\n", out);
  ls_picture_write_terminal (p->picture, out, WIDTH, HEIGHT, "title_font = ',18'", "title_font = ',15'");
  write_frame (out, p);
  write_plot (out, p);
  return TRUE;
}

gboolean
ls_plot_memory (const LsMemoryPlot *plot, const char *path, GError **error)
{
  g_auto (LsPicture) picture = { 0 };
  if (!ls_picture_init (&picture, path, error))
    return FALSE;
  Page page = { plot, &picture };
  return ls_picture_draw (&picture, write_data, write_script, &page, error);
}
