#include "show/plot/collective_axis.h"

#include <math.h>
#include <stdbool.h>

#define LABEL_WIDTH 62   /* pixels, the widest: "512 KiB" with room beside it */
#define LOG_ROOM    1.25 /* between the outermost points and the frame */

uint64_t
ls_collective_x (const LsCollectiveTable *t, const LsCollectiveRow *row)
{
  return t->is_scaling ? row->n_ranks : row->bytes;
}

gboolean
ls_collective_is_drawn (const LsCollectiveTable *t, const LsCollectiveRow *row)
{
  return ls_collective_x (t, row) > 0;
}

gboolean
ls_collective_shows_time (const LsCollectiveTable *t)
{
  return t->rows[0].bytes == 0;
}

static char *
label_of (const LsCollectiveTable *t, int exponent)
{
  static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB" };
  if (t->is_scaling)
    return g_strdup_printf ("%d", 1 << exponent);
  return g_strdup_printf ("%d %s", 1 << exponent % 10, units[exponent / 10]);
}

/* Powers of two around all rows. */
static void
find_range (const LsCollectiveTable *t, int *ret_first, int *ret_last)
{
  uint64_t low = UINT64_MAX, high = 1;
  for (guint i = 0; i < t->n_rows; i++)
    if (ls_collective_is_drawn (t, &t->rows[i])) {
      low = MIN (low, ls_collective_x (t, &t->rows[i]));
      high = MAX (high, ls_collective_x (t, &t->rows[i]));
    }
  *ret_first = (int) floor (log2 ((double) low));
  *ret_last = MAX ((int) ceil (log2 ((double) high)), *ret_first + 1);
}

/* Each power of two labelled, or so many that neighbours do not touch. */
static void
write_tics (FILE *out, const LsCollectiveTable *t, int first, int last, int width)
{
  int n_labels = width / LABEL_WIDTH, step = 1;
  while ((last - first) / step >= n_labels)
    step = step == 1 ? 2 : step == 2 ? 5 : step + 5;
  fputs ("set xtics out nomirror (", out);
  bool is_first = true;
  for (int e = (first + step - 1) / step * step; e <= last; e += step) {
    g_autofree char *label = label_of (t, e);
    fprintf (out, "%s'%s' %.1f", is_first ? "" : ", ", label, exp2 (e));
    is_first = false;
  }
  fputs (")\n", out);
}

/* Beyond this many GPUs traffic takes another way. */
static void
write_boundary (FILE *out, const LsCollectiveTable *t, const char *what, double n_gpus, int first, int last)
{
  if (n_gpus < exp2 (first) || n_gpus >= exp2 (last))
    return;
  fprintf (out,
           "set arrow from %.1f, graph 0 to %.1f, graph 1 nohead back linewidth 1 dashtype (6,4) linecolor "
           "rgb '#999999'\n",
           n_gpus, n_gpus);
  fprintf (out,
           "set label '%s: %.0f %s' at %.1f, graph 1 offset 0, character 0.6 center noenhanced textcolor rgb "
           "'#555555'\n",
           what, n_gpus, t->chips, n_gpus);
}

void
ls_collective_write_axis (FILE *out, const LsCollectiveTable *t, int width)
{
  int first, last;
  find_range (t, &first, &last);
  fprintf (out, "set logscale x 2\nset xrange [%.1f:%.1f]\n", exp2 (first), exp2 (last));
  write_tics (out, t, first, last, width);
  if (!t->is_scaling)
    return;
  write_boundary (out, t, "node", t->gpus_per_node, first, last);
  if (t->gpus_per_leaf > t->gpus_per_node)
    write_boundary (out, t, "leaf", (double) t->gpus_per_leaf, first, last);
  if (t->gpus_per_pod > t->gpus_per_leaf)
    write_boundary (out, t, "pod", (double) t->gpus_per_pod, first, last);
}

static void
write_double (FILE *out, double value)
{
  char buffer[G_ASCII_DTOSTR_BUF_SIZE];
  fputs (g_ascii_formatd (buffer, sizeof buffer, "%.6g", value), out);
}

/* GB/s; one GPU alone has no bandwidth, and no place on the axis. */
static void
find_ratios (const LsCollectiveTable *t, double *ret_low, double *ret_high)
{
  double low = INFINITY, high = 0;
  for (guint i = 0; i < t->n_rows; i++) {
    double y = ls_collective_busbw (&t->rows[i]) / 1e9;
    low = y > 0 ? fmin (low, y) : low;
    high = fmax (high, y);
  }
  *ret_low = high > 0 ? low / LOG_ROOM : 1;
  *ret_high = high > 0 ? high * LOG_ROOM : 10;
}

/* Tics at 1, 2 and 5 of each decade; over many decades at 1. */
void
ls_collective_write_ratios (FILE *out, const LsCollectiveTable *t)
{
  static const double steps[] = { 1, 2, 5 };
  double low, high;
  find_ratios (t, &low, &high);
  fputs ("set logscale y 10\nset yrange [", out);
  write_double (out, low);
  fputc (':', out);
  write_double (out, high);
  fputs ("]\nset ytics out nomirror (", out);
  size_t n_steps = high / low < 1e4 ? G_N_ELEMENTS (steps) : 1;
  bool is_first = true;
  for (int e = (int) floor (log10 (low)); e <= (int) ceil (log10 (high)); e++)
    for (size_t i = 0; i < n_steps; i++) {
      double tic = steps[i] * pow (10, e);
      if (tic < low || tic > high)
        continue;
      fputs (is_first ? "'" : ", '", out);
      write_double (out, tic);
      fputs ("' ", out);
      write_double (out, tic);
      is_first = false;
    }
  fputs (")\n", out);
}
