/* show/plot/plot_scaling.c — the best over GPUs and global batches, next to ideal. */
#include "base/order.h"
#include "show/plot/plots.h"

#include <math.h>

#include <lockstep/error.h>

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

/* A row of panels: over GPUs with a curve for each batch, or the other way round. */
typedef struct {
  bool over_gpus;
  const GArray *curves, *xs; /* batches and GPUs, or the other way */
} Row;

typedef struct {
  const LsSweepReport *r;
  GArray *gpus, *batches; /* uint32_t, ascending */
  Row rows[2];
  guint n_rows;
  LsChart chart;
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

static const LsSweepGroup *
group_at (const Plot *p, guint i)
{
  return &g_array_index (p->r->groups, LsSweepGroup, i);
}

/* Of groups that have a best, ascending, each once. */
static GArray *
numbers_of (const Plot *p, bool of_gpus)
{
  GArray *all = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  for (guint i = 0; i < p->r->groups->len; i++)
    if (group_at (p, i)->first)
      g_array_append_vals (all, of_gpus ? &group_at (p, i)->gpus : &group_at (p, i)->global_batch, 1);
  g_array_sort (all, ls_compare_uint32);
  for (guint i = all->len; i-- > 1;)
    if (g_array_index (all, uint32_t, i) == g_array_index (all, uint32_t, i - 1))
      g_array_remove_index (all, i);
  return all;
}

/* A row only if there is more than one place along x. */
static void
plot_init (Plot *p)
{
  p->gpus = numbers_of (p, true);
  p->batches = numbers_of (p, false);
  if (p->gpus->len > 1)
    p->rows[p->n_rows++] = (Row) { true, p->batches, p->gpus };
  if (p->batches->len > 1)
    p->rows[p->n_rows++] = (Row) { false, p->gpus, p->batches };
  p->chart.width = LEFT + 3 * (PANEL_WIDTH + GAP_X) - GAP_X + KEY_WIDTH;
  p->chart.height = TOP + (int) p->n_rows * (PANEL_HEIGHT + GAP_Y) - GAP_Y + BOTTOM;
  p->chart.left = 24;
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
typedef enum { STEP, TOKENS, COUNTED, MFU, GOODPUT, DAYS, HOURS, USD } Figure;
typedef enum { IS_TIME, IS_RATE, IS_APART } Follows;
typedef struct {
  const char *name;
  Figure figure;
  Follows follows;
  bool is_percent, is_linear;
} Panel;

static double
figure_of (const LsSweepGroup *g, Figure figure)
{
  const LsSweepRow *r = g->first;
  const double figures[] = {
    [STEP] = ls_time_to_s (r->step),
    [TOKENS] = r->tokens_per_s,
    [COUNTED] = r->tokens_per_s * r->goodput,
    [MFU] = 100 * r->mfu,
    [GOODPUT] = 100 * r->goodput,
    [DAYS] = r->to_loss.time_s / 86400,
    [HOURS] = g->gpus * r->to_loss.time_s / 3600,
    [USD] = r->to_loss.usd,
  };
  return figures[figure];
}

#define N_PANELS 3

/* By the objective; what a loss costs is time of GPUs where they have no price. */
static const Panel *
panel_of (const Plot *p, guint column)
{
  static const Panel of_steps[] = { { "step time (s)", STEP, IS_TIME, false, false },
                                    { "tokens/s", TOKENS, IS_RATE, false, false },
                                    { "MFU (%)", MFU, IS_RATE, true, true } };
  static const Panel of_goodput[] = { { "step time (s)", STEP, IS_TIME, false, false },
                                      { "tokens/s that count", COUNTED, IS_RATE, false, false },
                                      { "goodput (%)", GOODPUT, IS_APART, true, true } };
  static const Panel to_loss[] = { { "days to the loss", DAYS, IS_TIME, false, false },
                                   { "cost to the loss ($)", USD, IS_TIME, false, true },
                                   { "goodput (%)", GOODPUT, IS_APART, true, true } };
  static const Panel hours = { "chip hours to the loss", HOURS, IS_TIME, false, true };
  int kind = p->r->objective ? p->r->objective->kind : LS_OBJECTIVE_STEP;
  if (kind == LS_OBJECTIVE_STEP)
    return &of_steps[column];
  if (kind == LS_OBJECTIVE_GOODPUT)
    return &of_goodput[column];
  return column == 1 && isnan (p->r->price.usd_per_gpu_hour) ? &hours : &to_loss[column];
}

/* What panel `column` shows of a group: as it is, and were all tokens/s
 * of a GPU those of the base. */
static void
values_of (const Plot *p, const Row *row, const LsSweepGroup *g, guint column, double ret[2])
{
  double share = row->over_gpus ? g->of_fewest_gpus : g->of_largest_batch;
  const Panel *panel = panel_of (p, column);
  ret[0] = figure_of (g, panel->figure);
  ret[1] = panel->follows == IS_TIME ? ret[0] * share : panel->follows == IS_RATE ? ret[0] / share : ret[0];
}

#define MARGIN        1.12 /* of a logarithmic axis, factor */
#define LEAST_PERCENT 10   /* that the axis of MFU spans    */

/* Of an axis of values. */
static void
find_range (const Plot *p, const Row *row, guint column, double *ret_lo, double *ret_hi)
{
  double lo = INFINITY, hi = 0;
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
  *ret_lo = panel->is_linear ? fmax (0, lo - spare) : lo / MARGIN;
  hi = panel->is_linear ? hi + spare : hi * MARGIN;
  *ret_hi = panel->is_percent ? fmin (hi, 100) : hi;
}

static char *
note_of (const Plot *p)
{
  return p->n_rows > 1
      ? g_strdup_printf ("dashed: ideal; over %s from the fewest, over batches from the largest", p->r->chips)
      : p->rows[0].over_gpus
      ? g_strdup_printf ("dashed: ideal, each %s as fast as with the fewest", p->r->chip)
      : g_strdup ("dashed: ideal, each sequence as fast as with the largest batch");
}

static guint32
color_of (const Row *row, guint curve)
{
  guint n = row->curves->len, last = 4; /* as many colours, none between them */
  return ls_viridis_at ((n <= 1 ? 1 : curve * last / (n - 1)) / (double) last);
}

static int
marker_of (guint curve)
{
  return ls_series_markers[curve % LS_N_SERIES_MARKERS];
}

#include "show/plot_scaling_text.h"

gboolean
ls_plot_scaling (const LsSweepReport *report, const char *path, GError **error)
{
  Plot p = { .r = report };
  plot_init (&p);
  g_autofree char *title = g_strdup_printf ("%s: the best configuration as it scales", report->title),
                  *note = note_of (&p);
  p.chart.title = title;
  p.chart.note = note;
  gboolean ok = p.n_rows > 0 ? ls_chart_draw (path, &p.chart, write_data, write_script, &p, error)
                             : ls_fail (error, LS_ERROR_CONFLICT,
                                        "%s: fewer than two numbers of %s or global batches have a legal "
                                        "configuration that fits",
                                        path, report->chips);
  g_array_unref (p.gpus);
  g_array_unref (p.batches);
  return ok;
}
