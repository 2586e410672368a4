#include "sweep/price.h"

#include <math.h>
#include <string.h>

/* Watts: board limits of the data sheets. Dollars: on-demand prices of an hour in May 2026, the
 * middle of what was asked (A100 1.10 to 3.00, H200 2.50 to 7.00, mercatus-ai.com/blog/cloud-gpu-pricing),
 * of H100 the median, TPU v6e 2.70; v5p 4.00 at Google in August 2025. */
static const struct {
  const char *prefix;
  double usd, watts;
} known[] = {
  { "a100", 2.05, 400 }, { "h100", 2.95, 700 },  { "h200", 4.75, 700 },  { "b200", NAN, 1000 }, { "gb200", NAN, 1200 },
  { "v100", NAN, 300 },  { "tpu-v6e", 2.70, NAN }, { "tpu-v5p", 4.00, NAN },
};

LsPrice
ls_price_default (const char *gpu)
{
  LsPrice p = { NAN, NAN, LS_PRICE_PUE };
  for (guint i = 0; i < G_N_ELEMENTS (known); i++)
    if (g_str_has_prefix (gpu, known[i].prefix)) {
      p.usd_per_gpu_hour = known[i].usd;
      p.gpu_watts = known[i].watts;
    }
  return p;
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
