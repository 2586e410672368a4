#include "analysis/conformal.h"

#include <math.h>
#include <stdlib.h>

#define ROUNDING 1e-9 /* of sums of weights, which are 1 in all */

double
ls_conformal_share (guint n, double level)
{
  return n > 0 ? level * (n + 1) / n : INFINITY;
}

bool
ls_conformal_is_enough (guint n, double level)
{
  return ls_conformal_share (n, level) <= 1 + ROUNDING;
}

guint
ls_conformal_least (double level)
{
  return (guint) ceil (level / (1 - level) - ROUNDING);
}

static int
compare (const void *a, const void *b)
{
  double x = ((const LsWeighted *) a)->value, y = ((const LsWeighted *) b)->value;
  return (x > y) - (x < y);
}

void
ls_weighted_sort (GArray *values)
{
  qsort (values->data, values->len, sizeof (LsWeighted), compare);
}

void
ls_weighted_range (const GArray *values, double share, double *ret_low, double *ret_high)
{
  const LsWeighted *v = (const LsWeighted *) (gconstpointer) values->data;
  double held = 0, width = INFINITY;
  guint end = 0;
  for (guint i = 0; i < values->len; held -= v[i++].weight) {
    while (end < values->len && held < share - ROUNDING)
      held += v[end++].weight;
    if (held < share - ROUNDING)
      return;
    if (v[end - 1].value - v[i].value >= width)
      continue;
    width = v[end - 1].value - v[i].value;
    *ret_low = v[i].value;
    *ret_high = v[end - 1].value;
  }
}

double
ls_weighted_quantile (const GArray *values, double share)
{
  const LsWeighted *v = (const LsWeighted *) (gconstpointer) values->data;
  double held = 0;
  guint i = 0;
  while (i < values->len && held < share - ROUNDING)
    held += v[i++].weight;
  return i > 0 ? v[i - 1].value : 0;
}
