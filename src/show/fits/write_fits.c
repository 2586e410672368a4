#include "show/fits/write_fits.h"

#include <math.h>

#include "analysis/interval.h"
#include "data/measured/read_cases.h"
#include "job/assumptions.h"
#include "show/text_table.h"

#define N_WORST         8
#define AGREES          0.1
#define case_of(s, row) ((const LsCase *) (s)->cases->pdata[row])
#define NOTHING         1e-9 /* of the largest singular value: rounding */

/* Largest first; of equals in the order of the files. */
static gint
by_error (gconstpointer a, gconstpointer b)
{
  const LsFittedKernel *x = *(const LsFittedKernel *const *) a, *y = *(const LsFittedKernel *const *) b;
  double ex = fabs (log (x->predicted_s / x->measured_s)), ey = fabs (log (y->predicted_s / y->measured_s));
  return ex != ey ? (ex < ey) - (ex > ey) : (x > y) - (x < y);
}

/* LsFittedKernel, borrowed. */
static GPtrArray *
worst_first (const LsFitReport *r)
{
  GPtrArray *order = g_ptr_array_new ();
  for (guint i = 0; i < r->kernels->len; i++)
    g_ptr_array_add (order, &g_array_index (r->kernels, LsFittedKernel, i));
  g_ptr_array_sort (order, by_error);
  return order;
}

static char *
value_of (double value, const char *unit)
{
  return isnan (value) ? g_strdup ("-") : g_strdup_printf ("%.4g%s%s", value, *unit ? " " : "", unit);
}

#include "show/fits_text.h"

/* ---- times of kernels, for people and programs ---- */

#define MAX_LISTED 40 /* lines of a table that somebody reads */

static const char *const source_names[] = {
  [LS_COST_ROOFLINE] = "roofline",         [LS_COST_FITTED] = "fitted",     [LS_COST_MEASURED] = "measured",
  [LS_COST_INTERPOLATED] = "interpolated", [LS_COST_RECORDED] = "recorded",
};
static const char *const bound_names[] = {
  [LS_BOUND_COMPUTE] = "compute",
  [LS_BOUND_MEMORY] = "memory",
  [LS_BOUND_LAUNCH] = "launch",
};

#include "show/kernel_keys.h"

/* ---- text ---- */

/* In decimal units, as rates and --bytes 1GB are. */
static char *
bytes_text (double bytes)
{
  static const char *const units[] = { "B", "kB", "MB", "GB", "TB", "PB" };
  guint i = 0;
  for (; bytes >= 1000 && i + 1 < G_N_ELEMENTS (units); i++)
    bytes /= 1000;
  return g_strdup_printf ("%.4g %s", bytes, units[i]);
}

#include "show/kernel_text.h"

/* ---- write scores ---- */

/* The scoreboard of `validate`: what mechanisms are worth, how well intervals
 * hold. */

/* --- what mechanisms are worth ---------------------------------------------------------------------- */

#define LABEL_WIDTH 22
#define MIN_WIDTH   9

/* Column 0 is all rows, the others are families; row 0 has all mechanisms on. */
static const LsScore *
score_at (const LsScores *s, guint row, guint column)
{
  if (row == 0)
    return column == 0 ? &s->total : &s->families[column - 1].score;
  const LsAblationScore *a = &s->ablations[row - 1];
  return column == 0 ? &a->total : &a->families[column - 1];
}

static const char *
label_of (const LsScores *s, guint row)
{
  return row == 0 ? "nothing" : s->ablations[row - 1].label;
}

static const char *
name_of (const LsScores *s, guint column)
{
  return column == 0 ? "all" : s->families[column - 1].family;
}

static char *
mape (const LsScore *s)
{
  return ls_text_number ("%.1f", s->mape_pct);
}

static char *
bias (const LsScore *s)
{
  return ls_text_number ("%+.1f", s->bias_pct);
}

static int
width_of (const LsScores *s, guint column)
{
  return MAX (MIN_WIDTH, 2 + (int) g_utf8_strlen (name_of (s, column), -1));
}

/* --- the scoreboard --------------------------------------------------------------------------------- */

static const struct {
  const char *head, *format;
  int width;
} columns[] = {
  { "n", "%.0f", 6 },        { "refused", "%.0f", 9 },    { "mape %", "%.1f", 9 },
  { "median %", "%.1f", 9 }, { "bias %", "%+.1f", 9 },    { "worst %", "%+.1f", 9 },
  { "tau", "%.3f", 9 },      { "own-mfu %", "%.1f", 11 }, { "any-mfu %", "%.1f", 11 },
};
/* Of a baseline, as a score of its own: mape to tau. */
#define FIRST_OF_BASELINE 2
#define LAST_OF_BASELINE  6

static double
column_value (const LsFamilyScore *f, guint column)
{
  const LsScore *s = &f->score;
  const double values[] = {
    s->n,
    s->refused,
    s->mape_pct,
    s->median_abs_pct,
    s->bias_pct,
    s->worst_pct,
    s->kendall_tau,
    f->baseline[LS_BASELINE_OWN].mape_pct,
    f->baseline[LS_BASELINE_OTHERS].mape_pct,
  };
  return values[column];
}

static LsFamilyScore
whole (const LsScores *s)
{
  LsFamilyScore all = { .family = "all", .score = s->total };
  for (LsBaseline b = 0; b < LS_N_BASELINES; b++)
    all.baseline[b] = s->total_baseline[b];
  return all;
}

#include "show/scores_text.h"

/* --- the same for programs ------------------------------------------------------------------------- */

#include "show/validate_keys.h"
