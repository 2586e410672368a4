#include "calibrate/fit_report.h"

#include <math.h>

char *
ls_fit_change_value (const LsFitChange *c, double x)
{
  return c->is_time ? g_strdup_printf ("%.4gus", x * 1e6) : g_strdup_printf ("%.4g", x);
}

char *
ls_fit_change_verdict (const LsFitChange *c)
{
  if (c->is_replaced)
    return g_strdup ("replaced");
  return isnan (c->change) ? g_strdup_printf ("kept: %s", c->why)
                           : g_strdup_printf ("kept: %s (%+.1f %%)", c->why, 100 * expm1 (c->change));
}

char *
ls_fit_change_to_text (const LsFitChange *c)
{
  g_autofree char *before = ls_fit_change_value (c, c->before), *after = ls_fit_change_value (c, c->after),
                  *verdict = ls_fit_change_verdict (c);
  g_autofree char *error
      = isnan (c->error) ? g_strdup ("") : g_strdup_printf (", standard error %.1f %%", 100 * c->error);
  return c->is_replaced ? g_strdup_printf ("%s %s: %s, was %s%s", c->key, c->name, after, before, error)
                        : g_strdup_printf ("%s %s: %s %s%s", c->key, c->name, before, verdict, error);
}
