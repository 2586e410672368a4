#include "train/checkpoint.h"

#include <gsl/gsl_sf_lambert.h>
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

double
ls_best_interval_s (double save_s, double mtbf_s)
{
  return mtbf_s * (1 + gsl_sf_lambert_W0 (-exp (-1 - save_s / mtbf_s)));
}

double
ls_expected_piece_s (double work_s, double save_s, double restart_s, double mtbf_s)
{
  if (isinf (mtbf_s))
    return work_s + save_s;
  return mtbf_s * exp (restart_s / mtbf_s) * expm1 ((work_s + save_s) / mtbf_s);
}
