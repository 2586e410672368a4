#include "show/fits/write_fits.h"

#include <math.h>

#include "show/text_table.h"

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
  ls_text_table_add (t, "%s", c->key);
  ls_text_table_add (t, "%s", c->name);
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
  static const char *const head[] = { "entry", "coefficient", "before", "now", "std error", "" };
  if (!r->base) {
    g_string_append (out,
                     "the accelerator has no calibration to start from: what is not below runs at its "
                     "physical limits\n\n");
    return;
  }
  LsTextTable t;
  ls_text_table_init (&t, "llrrrl");
  for (guint i = 0; i < G_N_ELEMENTS (head); i++)
    ls_text_table_add (&t, "%s", head[i]);
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
