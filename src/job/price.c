#include "job/price.h"

#include <math.h>

static double
or_nan (double figure)
{
  return figure > 0 ? figure : NAN;
}

static double
or_else (double given, double usual)
{
  return isnan (given) ? usual : given;
}

LsPrice
ls_price_of (const LsPrice *given, const LsGpu *gpu)
{
  return (LsPrice) { or_else (given->usd_per_gpu_hour, or_nan (gpu->usd_per_hour)),
                     or_else (given->gpu_watts, or_nan (gpu->watts)), or_else (given->pue, LS_PRICE_PUE) };
}

double
ls_price_usd (const LsPrice *p, guint n_gpus, double tokens_per_s)
{
  return n_gpus * p->usd_per_gpu_hour / 3600 / tokens_per_s;
}

double
ls_price_kwh (const LsPrice *p, guint n_gpus, double tokens_per_s)
{
  return n_gpus * p->gpu_watts * p->pue / 3.6e6 / tokens_per_s;
}
