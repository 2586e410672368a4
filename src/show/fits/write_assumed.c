#include "show/fits/write_fits.h"

#include <math.h>

#include "show/text_table.h"

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
  static const char *const head[] = { "beside kernels", "assumed", "measured", "verdict", "goes to" };
  LsTextTable t;
  if (assumptions->len == 0)
    return g_strdup ("");
  ls_text_table_init (&t, "lrrll");
  for (guint i = 0; i < G_N_ELEMENTS (head); i++)
    ls_text_table_add (&t, "%s", head[i]);
  for (guint i = 0; i < assumptions->len; i++)
    add_row (&t, &g_array_index (assumptions, LsAssumption, i));
  GString *out = g_string_new (NULL);
  ls_text_table_print (&t, 0, out);
  return g_string_free (out, FALSE);
}
