#include "base/order.h"
#include "show/plot/plots.h"

#include <math.h>

#include <lockstep/error.h>

#include "show/plot/picture.h"

/* Pixels. */
#define PANEL_WIDTH  300
#define PANEL_HEIGHT 260
#define TOP          96
#define LEFT         84
#define GAP_X        84
#define GAP_Y        92
#define BOTTOM       62
#define KEY_WIDTH    190 /* legend, right of the panels */

/* As many, so that words of a legend fit beside its panels. */
#define MAX_CURVES 12

/* Numbers of GPUs and batches are an order: viridis (N. Smith and S. van der Walt, matplotlib)
 * at 0, 0.2, .. 0.8. */
static const guint32 colors[] = { 0x440154, 0x414487, 0x2a788e, 0x22a884, 0x7ad151 };
/* gnuplot's filled circle, square, triangle, diamond, triangle down. */
static const int markers[] = { 7, 5, 9, 13, 11 };

/* A row of panels: over GPUs with a curve for each batch, or the other way round. */
typedef struct {
  bool over_gpus;
  GArray *curves; /* uint32_t: batches or GPUs, ascending */
  GArray *xs;     /* uint32_t: the other, ascending       */
} Row;

typedef struct {
  const LsSweepReport *r;
  const LsPicture *picture;
  Row rows[2];
  guint n_rows;
  int width, height;
} Plot;

/* --- what is drawn ------------------------------------------------------------------------ */

static uint32_t
x_of (const Row *row, const LsSweepGroup *g)
{
  return row->over_gpus ? g->gpus : g->global_batch;
}

static uint32_t
curve_of (const Row *row, const LsSweepGroup *g)
{
  return row->over_gpus ? g->global_batch : g->gpus;
}

static void
add_number (GArray *list, uint32_t number)
{
  for (guint i = 0; i < list->len; i++)
    if (g_array_index (list, uint32_t, i) == number)
      return;
  g_array_append_val (list, number);
  g_array_sort (list, ls_compare_uint32);
}

static const LsSweepGroup *
group_at (const Plot *p, guint i)
{
  return &g_array_index (p->r->groups, LsSweepGroup, i);
}

/* Only if there is more than one place along x. */
static void
add_row (Plot *p, bool over_gpus)
{
  Row row = { over_gpus, g_array_new (FALSE, FALSE, sizeof (uint32_t)),
              g_array_new (FALSE, FALSE, sizeof (uint32_t)) };
  for (guint i = 0; i < p->r->groups->len; i++) {
    const LsSweepGroup *g = group_at (p, i);
    if (!g->first)
      continue;
    add_number (row.curves, curve_of (&row, g));
    add_number (row.xs, x_of (&row, g));
  }
  if (row.xs->len > 1) {
    p->rows[p->n_rows++] = row;
    return;
  }
  g_array_unref (row.curves);
  g_array_unref (row.xs);
}

static void
plot_init (Plot *p)
{
  add_row (p, true);
  add_row (p, false);
  p->width = LEFT + 3 * (PANEL_WIDTH + GAP_X) - GAP_X + KEY_WIDTH;
  p->height = TOP + (int) p->n_rows * (PANEL_HEIGHT + GAP_Y) - GAP_Y + BOTTOM;
}

static void
plot_clear (Plot *p)
{
  for (guint i = 0; i < p->n_rows; i++) {
    g_array_unref (p->rows[i].curves);
    g_array_unref (p->rows[i].xs);
  }
}

/* --- data ----------------------------------------------------------------------------------- */

static void
write_number (FILE *out, double value)
{
  char buffer[G_ASCII_DTOSTR_BUF_SIZE];
  fprintf (out, " %s", g_ascii_formatd (buffer, sizeof buffer, "%.6g", value));
}

static const LsSweepGroup *
find_group (const Plot *p, const Row *row, uint32_t curve, uint32_t x)
{
  for (guint i = 0; i < p->r->groups->len; i++)
    if (group_at (p, i)->first && curve_of (row, group_at (p, i)) == curve
        && x_of (row, group_at (p, i)) == x)
      return group_at (p, i);
  return NULL;
}

/* What a panel shows, and how that follows the tokens/s of a GPU. */
typedef enum { IS_TIME, IS_RATE, IS_APART } Follows;
typedef struct {
  const char *name;
  double (*of) (const LsSweepGroup *g);
  Follows follows;
  bool is_percent, is_linear;
} Panel;

static double
step_of (const LsSweepGroup *g)
{
  return ls_time_to_s (g->first->step);
}

static double
tokens_of (const LsSweepGroup *g)
{
  return g->first->tokens_per_s;
}

static double
counted_of (const LsSweepGroup *g)
{
  return g->first->tokens_per_s * g->first->goodput;
}

static double
mfu_of (const LsSweepGroup *g)
{
  return 100 * g->first->mfu;
}

static double
goodput_of (const LsSweepGroup *g)
{
  return 100 * g->first->goodput;
}

static double
days_of (const LsSweepGroup *g)
{
  return g->first->to_loss.time_s / 86400;
}

static double
hours_of (const LsSweepGroup *g)
{
  return g->gpus * g->first->to_loss.time_s / 3600;
}

static double
usd_of (const LsSweepGroup *g)
{
  return g->first->to_loss.usd;
}

#define N_PANELS 3

/* By the objective; what a loss costs is time of GPUs where they have no price. */
static const Panel *
panel_of (const Plot *p, guint column)
{
  static const Panel of_steps[] = { { "step time (s)", step_of, IS_TIME, false, false },
                                    { "tokens/s", tokens_of, IS_RATE, false, false },
                                    { "MFU (%)", mfu_of, IS_RATE, true, true } };
  static const Panel of_goodput[] = { { "step time (s)", step_of, IS_TIME, false, false },
                                      { "tokens/s that count", counted_of, IS_RATE, false, false },
                                      { "goodput (%)", goodput_of, IS_APART, true, true } };
  static const Panel to_loss[] = { { "days to the loss", days_of, IS_TIME, false, false },
                                   { "cost to the loss ($)", usd_of, IS_TIME, false, true },
                                   { "goodput (%)", goodput_of, IS_APART, true, true } };
  static const Panel hours = { "chip hours to the loss", hours_of, IS_TIME, false, true };
  int kind = p->r->objective ? p->r->objective->kind : LS_OBJECTIVE_STEP;
  if (kind == LS_OBJECTIVE_STEP)
    return &of_steps[column];
  if (kind == LS_OBJECTIVE_GOODPUT)
    return &of_goodput[column];
  return column == 1 && isnan (p->r->usd_per_gpu_hour) ? &hours : &to_loss[column];
}

/* What panel `column` shows of a group: as it is, and were all tokens/s
 * of a GPU those of the base. */
static void
values_of (const Plot *p, const Row *row, const LsSweepGroup *g, guint column, double ret[2])
{
  double share = row->over_gpus ? g->of_fewest_gpus : g->of_largest_batch;
  const Panel *panel = panel_of (p, column);
  ret[0] = panel->of (g);
  ret[1] = panel->follows == IS_TIME ? ret[0] * share : panel->follows == IS_RATE ? ret[0] / share : ret[0];
}

static void
write_point (FILE *out, const Plot *p, const Row *row, const LsSweepGroup *g)
{
  double values[N_PANELS][2];
  for (guint column = 0; column < N_PANELS; column++)
    values_of (p, row, g, column, values[column]);
  fprintf (out, "%u", x_of (row, g));
  for (guint is_ideal = 0; is_ideal < 2; is_ideal++)
    for (guint column = 0; column < 3; column++)
      write_number (out, values[column][is_ideal]);
  fputc ('\n', out);
}

static gboolean
write_data (FILE *out, void *data, GError **error)
{
  const Plot *p = data;
  fprintf (out,
           "# %s or global batch, then %s, %s, %s, and these three were scaling ideal. A block is a curve.\n",
           p->r->chips, panel_of (p, 0)->name, panel_of (p, 1)->name, panel_of (p, 2)->name);
  for (guint r = 0, n = 0; r < p->n_rows; r++) {
    const Row *row = &p->rows[r];
    for (guint c = 0; c < row->curves->len; c++) {
      uint32_t curve = g_array_index (row->curves, uint32_t, c);
      fprintf (out, "%s# %s %u\n", n++ > 0 ? "\n\n" : "", row->over_gpus ? "global batch" : p->r->chips,
               curve);
      for (guint i = 0; i < row->xs->len; i++) {
        const LsSweepGroup *g = find_group (p, row, curve, g_array_index (row->xs, uint32_t, i));
        if (g)
          write_point (out, p, row, g);
      }
    }
  }
  return TRUE;
}

/* --- script ---------------------------------------------------------------------------------- */

static guint32
color_of (const Row *row, guint curve)
{
  guint n = row->curves->len;
  return colors[n <= 1 ? 1 : curve * (G_N_ELEMENTS (colors) - 1) / (n - 1)];
}

static void
write_title (FILE *out, const Plot *p)
{
  g_autofree char *text = g_strdup_printf ("%s: the best configuration as it scales", p->r->title),
                  *title = ls_gnuplot_quote (text);
  fprintf (out, "set label 1 %s at screen %.6f, screen %.6f left noenhanced font title_font\n", title,
           24.0 / p->width, 1 - 26.0 / p->height);
  g_autofree char *note = p->n_rows > 1
      ? g_strdup_printf ("dashed: ideal; over %s from the fewest, over batches from the largest", p->r->chips)
      : p->rows[0].over_gpus
      ? g_strdup_printf ("dashed: ideal, each %s as fast as with the fewest", p->r->chip)
      : g_strdup ("dashed: ideal, each sequence as fast as with the largest batch");
  fprintf (out, "set label 2 '%s' at screen %.6f, screen %.6f left noenhanced textcolor rgb '#555555'\n",
           note, 24.0 / p->width, 1 - 50.0 / p->height);
}

/* A tic where there are points. */
static void
write_xtics (FILE *out, const Row *row)
{
  guint n = row->xs->len;
  fprintf (out, "set xrange [%u / 1.15:%u * 1.15]\nset xtics out nomirror (",
           g_array_index (row->xs, uint32_t, 0), g_array_index (row->xs, uint32_t, n - 1));
  for (guint i = 0; i < n; i++)
    fprintf (out, "%s%u", i > 0 ? ", " : "", g_array_index (row->xs, uint32_t, i));
  fputs (")\n", out);
}

/* Tics at 1, 2 and 5 of each decade. */
static void
write_log_tics (FILE *out, double lo, double hi, guint column)
{
  static const int digits[] = { 1, 2, 5 };
  const char *separator = "set logscale y\nset ytics out nomirror (";
  for (int decade = (int) floor (log10 (lo)); decade <= (int) ceil (log10 (hi)); decade++)
    for (guint d = 0; d < G_N_ELEMENTS (digits); d++) {
      double at = digits[d] * pow (10, decade);
      char text[G_ASCII_DTOSTR_BUF_SIZE], place[G_ASCII_DTOSTR_BUF_SIZE];
      bool is_kilo = column == 1 && at >= 1e3;
      if (at < lo || at > hi)
        continue;
      fprintf (out, "%s'%s%s' %s", separator,
               g_ascii_formatd (text, sizeof text, "%.10g", is_kilo ? at / 1e3 : at), is_kilo ? "k" : "",
               g_ascii_formatd (place, sizeof place, "%.10g", at));
      separator = ", ";
    }
  fputs (*separator == ',' ? ")\n" : "set logscale y\nset ytics out nomirror autofreq\n", out);
}

#define MARGIN        1.12 /* of a logarithmic axis, factor */
#define LEAST_PERCENT 10   /* that the axis of MFU spans    */

static void
write_yaxis (FILE *out, const Plot *p, const Row *row, guint column)
{
  double lo = INFINITY, hi = 0;
  char a[G_ASCII_DTOSTR_BUF_SIZE], b[G_ASCII_DTOSTR_BUF_SIZE];
  for (guint i = 0; i < p->r->groups->len; i++) {
    double values[2];
    if (!group_at (p, i)->first)
      continue;
    values_of (p, row, group_at (p, i), column, values);
    lo = fmin (lo, fmin (values[0], values[1]));
    hi = fmax (hi, fmax (values[0], values[1]));
  }
  const Panel *panel = panel_of (p, column);
  double spare = fmax (0.1 * (hi - lo), panel->is_percent ? 0.5 * (LEAST_PERCENT - (hi - lo)) : 0.02 * hi);
  lo = panel->is_linear ? fmax (0, lo - spare) : lo / MARGIN;
  hi = panel->is_linear ? hi + spare : hi * MARGIN;
  if (panel->is_percent)
    hi = fmin (hi, 100);
  if (!panel->is_linear)
    write_log_tics (out, lo, hi, column);
  else
    fputs ("unset logscale y\nset ytics out nomirror autofreq\nset format y '%g'\n", out);
  fprintf (out, "set yrange [%s:%s]\n", g_ascii_formatd (a, sizeof a, "%.6g", lo),
           g_ascii_formatd (b, sizeof b, "%.6g", hi));
}

static void
write_panel (FILE *out, const Plot *p, guint r, guint column, guint first)
{
  const Row *row = &p->rows[r];
  int left = LEFT + (int) column * (PANEL_WIDTH + GAP_X), top = TOP + (int) r * (PANEL_HEIGHT + GAP_Y);
  fputc ('\n', out);
  ls_picture_write_margins (out, (double) left / p->width, (double) (left + PANEL_WIDTH) / p->width,
                            1 - (double) top / p->height, 1 - (double) (top + PANEL_HEIGHT) / p->height);
  fprintf (out, "set xlabel '%s'\nset ylabel '%s'\n",
           row->over_gpus ? p->r->chips : "global batch (sequences)", panel_of (p, column)->name);
  write_xtics (out, row);
  write_yaxis (out, p, row, column);
  for (guint c = 0; c < row->curves->len; c++)
    fprintf (out,
             "%sdata index %u using 1:%u with lines linewidth 1 dashtype 2 linecolor rgb '#%06x' notitle, "
             "\\\n"
             "  data index %u using 1:%u with linespoints linewidth 2 pointtype %d pointsize 0.9 linecolor "
             "rgb '#%06x' notitle",
             c > 0 ? ", \\\n  " : "plot ", first + c, column + 5, color_of (row, c), first + c, column + 2,
             markers[c % G_N_ELEMENTS (markers)], color_of (row, c));
  fputs ("\nunset label\n", out);
}

/* Beside the panels of a row, in an empty one. */
static void
write_legend (FILE *out, const Plot *p, guint r)
{
  const Row *row = &p->rows[r];
  int top = TOP + (int) r * (PANEL_HEIGHT + GAP_Y);
  fprintf (out,
           "\nset key at screen %.6f, screen %.6f left top Left reverse vertical maxcolumns 1 samplen 2 "
           "spacing 1.25 noenhanced\n"
           "unset border; unset tics; unset grid; unset xlabel; unset ylabel; unset logscale y\nplot [1:2] "
           "[1:2] ",
           1 - (KEY_WIDTH - 16.0) / p->width, 1 - (top - 6.0) / p->height);
  for (guint c = 0; c < MIN (row->curves->len, MAX_CURVES); c++)
    fprintf (out,
             "%sNaN with linespoints linewidth 2 pointtype %d pointsize 0.9 linecolor rgb '#%06x' title "
             "'%s%u%s%s'",
             c > 0 ? ", \\\n  " : "", markers[c % G_N_ELEMENTS (markers)], color_of (row, c),
             row->over_gpus ? "batch " : "", g_array_index (row->curves, uint32_t, c),
             row->over_gpus ? "" : " ", row->over_gpus ? "" : p->r->chips);
  fputs (", \\\n  NaN with lines linewidth 1 dashtype 2 linecolor rgb '#555555' title 'ideal'\nunset key\n",
         out);
}

#define AXES                                                                                                 \
  "set border 3 linecolor rgb '#555555'\nset tics out nomirror\nset logscale x 2\n"                          \
  "set grid ytics linetype 1 linecolor rgb '#e6e6e6' linewidth 1\n"

static gboolean
write_script (FILE *out, void *data, GError **error)
{
  const Plot *p = data;
  fputs ("# Drawn by gnuplot 5.4 or later; edit and run again.\n", out);
  ls_picture_write_terminal (p->picture, out, p->width, p->height, "title_font = ',18'",
                             "title_font = ',15'");
  ls_picture_write_data_name (p->picture, out);
  write_title (out, p);
  fputs ("unset key\nset multiplot\n", out);
  for (guint r = 0, first = 0; r < p->n_rows; first += p->rows[r++].curves->len) {
    fputs (AXES, out);
    for (guint column = 0; column < 3; column++)
      write_panel (out, p, r, column, first);
    write_legend (out, p, r);
  }
  fputs ("unset multiplot\n", out);
  return TRUE;
}

gboolean
ls_plot_scaling (const LsSweepReport *report, const char *path, GError **error)
{
  g_auto (LsPicture) picture = { 0 };
  if (!ls_picture_init (&picture, path, error))
    return FALSE;
  Plot p = { .r = report, .picture = &picture };
  plot_init (&p);
  gboolean ok = FALSE;
  if (p.n_rows > 0)
    ok = ls_picture_draw (&picture, write_data, write_script, &p, error);
  else
    g_set_error (error, LS_ERROR, LS_ERROR_CONFLICT,
                 "%s: fewer than two numbers of %s or global batches have a legal configuration that fits",
                 path, report->chips);
  plot_clear (&p);
  return ok;
}
