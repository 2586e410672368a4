#include "train/checkpoint.h"

#include <float.h>
#include <math.h>

double
ls_young_interval_s (double save_s, double mtbf_s)
{
  return sqrt (2 * save_s * mtbf_s);
}

double
ls_daly_interval_s (double save_s, double mtbf_s)
{
  if (save_s >= 2 * mtbf_s)
    return mtbf_s;
  double half = save_s / (2 * mtbf_s);
  return sqrt (2 * save_s * mtbf_s) * (1 + sqrt (half) / 3 + half / 9) - save_s;
}

/* x = t / M of -x - ln (1 - x) = C / M, by Newton from above: the left side is convex, so that no step goes
 * too far. */
double
ls_best_interval_s (double save_s, double mtbf_s)
{
  double cost = save_s / mtbf_s, x = fmin (sqrt (2 * cost), -expm1 (-1 - cost));
  for (double step = x; step > DBL_EPSILON * x && x < 1;) {
    step = (-x - log1p (-x) - cost) * (1 - x) / x;
    x -= step;
  }
  return mtbf_s * x;
}

double
ls_expected_piece_s (double work_s, double save_s, double restart_s, double mtbf_s)
{
  if (isinf (mtbf_s))
    return work_s + save_s;
  return mtbf_s * exp (restart_s / mtbf_s) * expm1 ((work_s + save_s) / mtbf_s);
}
