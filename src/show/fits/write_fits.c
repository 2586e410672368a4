#include "show/fits/write_fits.h"

#include <math.h>

#include "analysis/conformal.h"
#include "analysis/interval.h"
#include "calibrate/fitted_file.h"
#include "show/quantity.h"
#include "show/text_table.h"

/* --- measured kernels ------------------------------------------------------------------------------- */

#define N_WORST 8

static double
error_of (const LsFittedKernel *k)
{
  return k->predicted_s / k->measured_s - 1;
}

static void
append_error (GString *out, const LsFitError *e)
{
  if (e->n > 0)
    g_string_append_printf (out, " %7u %8.2f %+8.2f %+8.2f", e->n, 100 * e->mape, 100 * e->bias,
                            100 * e->median);
  else
    g_string_append_printf (out, " %7u %8s %8s %8s", e->n, "-", "-", "-");
}

static void
append_classes (GString *out, const LsFitReport *r)
{
  g_string_append_printf (out, "%-20s %33s  %33s\n", "", "fit", "held out");
  g_string_append_printf (out, "%-20s %7s %8s %8s %8s  %7s %8s %8s %8s\n", "kernels", "n", "mape %", "bias %",
                          "median %", "n", "mape %", "bias %", "median %");
  for (guint i = 0; i < r->classes->len; i++) {
    const LsFitClass *c = &g_array_index (r->classes, LsFitClass, i);
    g_autofree char *name = g_strdup_printf ("%s %s", c->key, ls_dtype_name (c->dtype));
    g_string_append_printf (out, "%-20s", name);
    append_error (out, &c->fit);
    g_string_append_c (out, ' ');
    append_error (out, &c->held_out);
    g_string_append (out, c->is_alone ? "  (all are held out, so the fit saw all)\n" : "\n");
  }
}

/* Largest first; of equals in the order of the files. */
static gint
by_error (gconstpointer a, gconstpointer b)
{
  const LsFittedKernel *x = *(const LsFittedKernel *const *) a, *y = *(const LsFittedKernel *const *) b;
  double ex = fabs (log (x->predicted_s / x->measured_s)), ey = fabs (log (y->predicted_s / y->measured_s));
  return ex != ey ? (ex < ey) - (ex > ey) : (x > y) - (x < y);
}

static char *
shape_of (const LsKernel *k)
{
  g_autofree char *batch
      = k->batch > 1 ? g_strdup_printf ("%" G_GUINT64_FORMAT " of ", k->batch) : g_strdup ("");
  g_autofree char *inner = k->k > 0 ? g_strdup_printf (" x %" G_GUINT64_FORMAT, k->k) : g_strdup ("");
  return g_strdup_printf ("%s%" G_GUINT64_FORMAT " x %" G_GUINT64_FORMAT "%s", batch, k->m, k->n, inner);
}

static void
append_worst (GString *out, const LsFitReport *r)
{
  g_autoptr (GPtrArray) order = g_ptr_array_new ();
  for (guint i = 0; i < r->kernels->len; i++)
    g_ptr_array_add (order, &g_array_index (r->kernels, LsFittedKernel, i));
  g_ptr_array_sort (order, by_error);
  g_string_append_printf (out, "\n%-28s %-6s %-28s %12s %12s %8s\n", "worst", "dtype", "shape",
                          "predicted us", "measured us", "error %");
  for (guint i = 0; i < MIN (order->len, N_WORST); i++) {
    const LsFittedKernel *k = g_ptr_array_index (order, i);
    g_autofree char *shape = shape_of (&k->kernel);
    g_string_append_printf (out, "%-28s %-6s %-28s %12.2f %12.2f %+8.1f%s\n", k->kernel.name,
                            ls_dtype_name (k->kernel.dtype), shape, k->predicted_s * 1e6, k->measured_s * 1e6,
                            100 * error_of (k), k->held_out ? "  held out" : "");
  }
}

/* ---- over a calibration ---- */

static void
add_change (LsTextTable *t, const LsFitChange *c)
{
  ls_text_table_add (t, "%s\v%s", c->key, c->name);
  ls_text_table_take (t, ls_fit_change_value (c, c->before));
  ls_text_table_take (t, ls_fit_change_value (c, c->after));
  if (isnan (c->error))
    ls_text_table_add (t, "-");
  else
    ls_text_table_add (t, "%.1f %%", 100 * c->error);
  ls_text_table_take (t, ls_fit_change_verdict (c));
}

static void
append_changes (GString *out, const LsFitReport *r)
{
  if (!r->base) {
    g_string_append (out,
                     "the accelerator has no calibration to start from: what is not below runs at its "
                     "physical limits\n\n");
    return;
  }
  LsTextTable t;
  ls_text_table_init (&t, "llrrrl");
  ls_text_table_add (&t, "entry\vcoefficient\vbefore\vnow\vstd error\v");
  for (guint i = 0; i < r->changes->len; i++)
    add_change (&t, &g_array_index (r->changes, LsFitChange, i));
  g_string_append_printf (out, "over calibration %s:\n", r->base);
  ls_text_table_print (&t, 0, out);
  for (guint i = 0; i < r->follows->len; i++)
    g_string_append_printf (out, "%s: moved with it\n", (const char *) g_ptr_array_index (r->follows, i));
  g_string_append_printf (out, "no kernels of, so kept: %s\nall other coefficients are kept\n\n", r->kept);
}

char *
ls_fit_report_to_text (const LsFitReport *r)
{
  GString *out = g_string_new (NULL);
  g_string_append_printf (out, "%s, %s\n", r->gpu, r->timing);
  for (guint i = 0; i < r->files->len; i++)
    g_string_append_printf (out, "  %s\n", (const char *) g_ptr_array_index (r->files, i));
  g_string_append_c (out, '\n');
  append_changes (out, r);
  if (r->classes->len > 0) {
    append_classes (out, r);
    append_worst (out, r);
  }
  if (r->n_measured > 0)
    g_string_append_printf (out, "\n%u measured kernels are kept, and go before the fit\n", r->n_measured);
  g_autofree char *assumptions = ls_assumptions_to_text (r->assumptions);
  g_string_append_printf (out, "%s%s", *assumptions && r->classes->len > 0 ? "\n" : "", assumptions);
  return g_string_free (out, FALSE);
}

/* --- what is assumed beside it ---------------------------------------------------------------------- */

#define AGREES 0.1

static char *
value_of (double value, const char *unit)
{
  return isnan (value) ? g_strdup ("-") : g_strdup_printf ("%.4g%s%s", value, *unit ? " " : "", unit);
}

static char *
verdict_of (const LsAssumption *a)
{
  if (isnan (a->assumed))
    return g_strdup (a->needs_cluster ? "name the --cluster to compare" : "not simulated");
  if (a->assumed == 0)
    return a->measured > 0 ? g_strdup ("none is assumed") : g_strdup ("agrees");
  double off = a->measured / a->assumed - 1;
  return fabs (off) <= AGREES ? g_strdup_printf ("agrees (%+.1f %%)", 100 * off)
                              : g_strdup_printf ("differs: measured %+.0f %%", 100 * off);
}

static void
add_row (LsTextTable *t, const LsAssumption *a)
{
  ls_text_table_add (t, "%s", a->what);
  ls_text_table_take (t, value_of (a->assumed, a->unit));
  ls_text_table_take (t, value_of (a->measured, a->unit));
  ls_text_table_take (t, verdict_of (a));
  bool is_unused = !a->use && !a->needs_cluster;
  ls_text_table_add (t, "%s%s%s",
                     a->use          ? a->use
                         : is_unused ? "unused"
                                     : "",
                     (a->use || is_unused) && a->note ? "; " : "", a->note ? a->note : "");
}

char *
ls_assumptions_to_text (const GArray *assumptions)
{
  LsTextTable t;
  if (assumptions->len == 0)
    return g_strdup ("");
  ls_text_table_init (&t, "lrrll");
  ls_text_table_add (&t, "beside kernels\vassumed\vmeasured\vverdict\vgoes to");
  for (guint i = 0; i < assumptions->len; i++)
    add_row (&t, &g_array_index (assumptions, LsAssumption, i));
  GString *out = g_string_new (NULL);
  ls_text_table_print (&t, 0, out);
  return g_string_free (out, FALSE);
}

/* --- measured steps --------------------------------------------------------------------------------- */

#define NOTHING 1e-9 /* of the largest singular value: rounding */

/* ---- for people ---- */

static void
add_line (LsTextTable *t, const LsFittedLine *l)
{
  ls_text_table_add (t, "%s\v%.3g%s\v%.3g%s", l->name, l->start, l->unit, l->value, l->unit);
  if (l->is_fitted)
    ls_text_table_add (t, "%.1f %%", 100 * l->error);
  else
    ls_text_table_add (t, "-");
  ls_text_table_add (t, "%.3g to %.3g%s\v%.2f %%", l->lo, l->hi, l->unit, 100 * l->sensitivity);
  if (l->is_fitted)
    ls_text_table_add (t,
                       l->at_bound ? "fitted, at the end of its range: something else is wrong" : "fitted");
  else
    ls_text_table_add (t, "kept: %s", l->why);
}

static void
append_lines (GString *out, const LsFittedReport *r)
{
  LsTextTable t;
  ls_text_table_init (&t, "lrrrlrl");
  ls_text_table_add (&t, "parameter\vbefore\vfitted\vstd error\vrange\vmoves a step by\v");
  for (guint i = 0; i < r->lines->len; i++)
    add_line (&t, &g_array_index (r->lines, LsFittedLine, i));
  ls_text_table_print (&t, 0, out);
}

static void
add_prediction (LsTextTable *t, double predicted_s, double measured_s)
{
  ls_text_table_take (t, ls_text_time (predicted_s));
  ls_text_table_take (t,
                      isnan (predicted_s)
                          ? g_strdup ("-")
                          : g_strdup_printf ("%+.1f %%", 100 * (predicted_s / measured_s - 1)));
}

static void
append_rows (GString *out, const LsFittedReport *r)
{
  LsTextTable t;
  ls_text_table_init (&t, "lrrrrrrr");
  ls_text_table_add (&t, "run\vmeasured\vbefore\v\vfitted\v\vleft out\v");
  for (guint i = 0; i < r->rows->len; i++) {
    const LsFittedRow *row = &g_array_index (r->rows, LsFittedRow, i);
    ls_text_table_add (&t, "%s", row->id);
    ls_text_table_take (&t, ls_text_time (row->measured_s));
    add_prediction (&t, row->before_s, row->measured_s);
    add_prediction (&t, row->after_s, row->measured_s);
    add_prediction (&t, row->left_out_s, row->measured_s);
  }
  ls_text_table_print (&t, 0, out);
}

static void
append_interval (GString *out, const LsFittedRuns *runs)
{
  if (runs->low > 0)
    g_string_append_printf (out,
                            "%.0f %% interval of a job like these, from %u runs left out one at a time: "
                            "%.3f to %.3f times the predicted step\n",
                            100 * LS_INTERVAL_LEVEL, runs->n, runs->low, runs->high);
  else if (runs->n > 0)
    g_string_append_printf (out,
                            "no interval from these runs: they are of %u different jobs, %u are enough\n",
                            runs->n, ls_conformal_least (LS_INTERVAL_LEVEL));
}

char *
ls_fitted_report_to_text (const LsFittedReport *r)
{
  GString *out = g_string_new (NULL);
  g_string_append_printf (out, "%s, fitted to %u runs of %s\n\n", r->cluster, r->rows->len, r->file);
  append_lines (out, r);
  g_string_append (out, "\nsingular values of all, per half of their ranges:");
  for (guint i = 0; i < r->singular->len; i++) {
    double s = g_array_index (r->singular, double, i);
    g_string_append_printf (out, " %.2g", s < NOTHING * g_array_index (r->singular, double, 0) ? 0 : s);
  }
  if (!isnan (r->condition))
    g_string_append_printf (out, "; condition of what is fitted %.3g", r->condition);
  g_string_append (out, "\n\n");
  append_rows (out, r);
  g_string_append_c (out, '\n');
  ls_fitted_error_print (&r->error, out);
  g_string_append_c (out, '\n');
  append_interval (out, &r->left_out);
  if (isnan (r->error.after))
    g_string_append (out, "nothing was fitted: keep the cluster as it is\n");
  else if (r->error.left_out >= r->error.before)
    g_string_append (out, "runs left out are predicted no better than by the cluster as it is: keep that\n");
  return g_string_free (out, FALSE);
}

/* --- measured collectives --------------------------------------------------------------------------- */

static void
append_nccl_error (GString *out, const LsFitError *e)
{
  if (e->n > 0)
    g_string_append_printf (out, " %5u %8.2f %+8.2f", e->n, 100 * e->mape, 100 * e->bias);
  else
    g_string_append_printf (out, " %5u %8s %8s", e->n, "-", "-");
}

static void
append_nccl_line (GString *out, const char *name, const LsFitError error[2], const char *note)
{
  g_string_append_printf (out, "%-44s", name);
  append_nccl_error (out, &error[0]);
  g_string_append_c (out, ' ');
  append_nccl_error (out, &error[1]);
  g_string_append_printf (out, "%s\n", note);
}

static void
append_kept (GString *out, const LsNcclFitReport *r)
{
  for (guint i = 0; i < r->kept->len; i++) {
    const LsNcclKept *k = &g_array_index (r->kept, LsNcclKept, i);
    g_string_append_printf (out, "%-22s %14s %14s          -  kept: %s\n", k->key, k->value, k->value,
                            k->why);
  }
  if (r->changes->len == 0)
    g_string_append (out, "nothing was fitted: all figures stay\n");
}

char *
ls_nccl_report_to_text (const LsNcclFitReport *r)
{
  GString *out = g_string_new (NULL);
  g_string_append_printf (out, "NCCL on %s\n", r->cluster);
  for (guint i = 0; i < r->files->len; i++)
    g_string_append_printf (out, "  %s\n", (const char *) g_ptr_array_index (r->files, i));
  g_string_append_printf (out, "\n%-22s %14s %14s %10s\n", "figure", "before", "now", "std error");
  for (guint i = 0; i < r->changes->len; i++) {
    const LsNcclChange *c = &g_array_index (r->changes, LsNcclChange, i);
    g_string_append_printf (out, "%-22s %14s %14s", c->key, c->was, c->now);
    if (c->is_derived)
      g_string_append (out, "          -  follows\n");
    else
      g_string_append_printf (out, " %8.1f %%  fitted\n", 100 * c->error);
  }
  append_kept (out, r);
  g_string_append_printf (out, "\n%-44s %23s  %23s\n", "", "< 1 MiB", ">= 1 MiB");
  g_string_append_printf (out, "%-44s %5s %8s %8s  %5s %8s %8s\n", "curve", "n", "mape %", "bias %", "n",
                          "mape %", "bias %");
  for (guint i = 0; i < r->curves->len; i++) {
    const LsNcclFitCurve *c = &g_array_index (r->curves, LsNcclFitCurve, i);
    append_nccl_line (out, c->name, c->error, c->held_out ? "  held out" : "");
  }
  append_nccl_line (out, "all that were fitted", r->all[0], "");
  append_nccl_line (out, "all that were held out", r->all[1], "");
  return g_string_free (out, FALSE);
}
