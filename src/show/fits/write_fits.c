#include "show/fits/write_fits.h"

#include <math.h>

#include "analysis/conformal.h"
#include "analysis/interval.h"
#include "calibrate/fitted_file.h"

#define N_WORST 8
#define AGREES  0.1
#define NOTHING 1e-9 /* of the largest singular value: rounding */

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
shape_of (const LsKernel *k)
{
  g_autofree char *batch
      = k->batch > 1 ? g_strdup_printf ("%" G_GUINT64_FORMAT " of ", k->batch) : g_strdup ("");
  g_autofree char *inner = k->k > 0 ? g_strdup_printf (" x %" G_GUINT64_FORMAT, k->k) : g_strdup ("");
  return g_strdup_printf ("%s%" G_GUINT64_FORMAT " x %" G_GUINT64_FORMAT "%s", batch, k->m, k->n, inner);
}

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

#include "show/fits_text.h"
