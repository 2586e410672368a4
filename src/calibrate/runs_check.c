#include "calibrate/runs_check.h"

#include <math.h>
#include <string.h>

#include "base/diag.h"
#include "base/order.h"

#define OTHER_UNITS   20.0
#define OUTLIER       1.5
#define N_DEVIATIONS  5
#define CONTRADICTION 1.05

static double
median_of (const double *values, guint n)
{
  g_autofree double *copy = g_new (double, MAX (n, 1));
  memcpy (copy, values, n * sizeof *values);
  return ls_median (copy, n);
}

static void
note_outliers (const LsCheckedRun *runs, const double *off, guint n, double median, GPtrArray *notes)
{
  g_autofree double *apart = g_new (double, n);
  for (guint i = 0; i < n; i++)
    apart[i] = fabs (off[i] - median);
  double limit = fmax (log (OUTLIER), N_DEVIATIONS * median_of (apart, n));
  for (guint i = 0; i < n; i++)
    if (apart[i] > limit)
      g_ptr_array_add (notes,
                       g_strdup_printf ("%s is far from the others: measured is %.3g times what is "
                                        "predicted, in the median of all %.3g",
                                        runs[i].id, exp (off[i]), exp (median)));
}

/* Of each group that is predicted alike the slowest run, against the fastest. */
static void
note_contradictions (const LsCheckedRun *runs, guint n, GPtrArray *notes)
{
  for (guint i = 0; i < n; i++) {
    guint slow = i, fast = i;
    gboolean is_first = TRUE;
    for (guint j = 0; j < n; j++) {
      if (runs[j].predicted_s != runs[i].predicted_s)
        continue;
      is_first = is_first && j >= i;
      slow = runs[j].measured_s > runs[slow].measured_s ? j : slow;
      fast = runs[j].measured_s < runs[fast].measured_s ? j : fast;
    }
    double ratio = runs[slow].measured_s / runs[fast].measured_s;
    if (is_first && ratio > CONTRADICTION)
      g_ptr_array_add (notes,
                       g_strdup_printf ("%s and %s are one job to the simulator, and measured %.3g times "
                                        "apart: nothing that is fitted explains that",
                                        runs[fast].id, runs[slow].id, ratio));
  }
}

gboolean
ls_runs_check (const char *file, const LsCheckedRun *runs, guint n, GPtrArray *notes, GError **error)
{
  g_autofree double *off = g_new (double, n);
  for (guint i = 0; i < n; i++)
    off[i] = log (runs[i].measured_s / runs[i].predicted_s);
  double median = median_of (off, n);
  if (fabs (median) > log (OTHER_UNITS)) {
    g_set_error (error, LS_ERROR, LS_ERROR_INPUT,
                 "%s: measured times are %.3g times what is predicted, in the median\n"
                 "note: iteration_s is in seconds",
                 file, exp (median));
    return FALSE;
  }
  note_outliers (runs, off, n, median, notes);
  note_contradictions (runs, n, notes);
  return TRUE;
}
