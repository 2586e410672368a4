#include "job/price.h"

#include <math.h>

#include "job/assumptions.h"

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

/* None draws more than the limit, which may be that of another board. */
static LsGpuPower
power_of (const LsPrice *given, const LsGpu *gpu)
{
  double limit = or_nan (gpu->watts);
  if (!isnan (given->gpu_watts))
    return (LsGpuPower) { given->gpu_watts, given->gpu_watts, given->gpu_watts, given->gpu_watts };
  if (!(gpu->power.computing > 0))
    return (LsGpuPower) { limit, limit, limit, limit };
  return (LsGpuPower) { fmin (gpu->power.computing, limit), fmin (gpu->power.communicating, limit),
                        fmin (gpu->power.idle, limit), fmin (gpu->power.free, limit) };
}

LsPrice
ls_price_of (const LsPrice *given, const LsGpu *gpu)
{
  return (LsPrice) { or_else (given->usd_per_gpu_hour, or_nan (gpu->usd_per_hour)),
                     or_else (given->gpu_watts, or_nan (gpu->watts)), or_else (given->pue, LS_PRICE_PUE),
                     power_of (given, gpu) };
}

/* Over all GPUs; 0: not known. */
static double
mean_of (const LsClusterSpec *spec, size_t member)
{
  double sum = 0, n = 0;
  for (uint32_t host = 0; host < spec->n_nodes; host++) {
    const LsClusterSpec *of = ls_cluster_spec_of_kind (spec, ls_cluster_spec_kind_of (spec, host));
    double figure = *(const double *) (gconstpointer) ((const char *) &of->gpu + member);
    if (!(figure > 0))
      return 0;
    sum += of->gpus_per_node * figure;
    n += of->gpus_per_node;
  }
  return sum / n;
}

LsPrice
ls_price_of_cluster (const LsPrice *given, const LsClusterSpec *spec)
{
  if (!spec->others)
    return ls_price_of (given, &spec->gpu);
  const LsGpu mean = {
    .watts = mean_of (spec, offsetof (LsGpu, watts)),
    .usd_per_hour = mean_of (spec, offsetof (LsGpu, usd_per_hour)),
    .power = { mean_of (spec, offsetof (LsGpu, power.computing)),
               mean_of (spec, offsetof (LsGpu, power.communicating)),
               mean_of (spec, offsetof (LsGpu, power.idle)), mean_of (spec, offsetof (LsGpu, power.free)) },
  };
  return ls_price_of (given, &mean);
}

bool
ls_price_has_activities (const LsPrice *p)
{
  const LsGpuPower *w = &p->power;
  return w->computing > fmin (fmin (w->communicating, w->idle), w->free);
}

LsActivities
ls_activities_of (const double breakdown_s[LS_N_PARTS])
{
  LsActivities a = { 0 };
  for (int p = 0; p < LS_N_PARTS; p++) {
    if (p >= LS_PART_EXPOSED_TP && p <= LS_PART_EXPOSED_COPY)
      a.communicating_s += breakdown_s[p];
    else if (p == LS_PART_BUBBLE || p == LS_PART_SKEW || p == LS_PART_HOST)
      a.idle_s += breakdown_s[p];
    else
      a.computing_s += breakdown_s[p];
  }
  return a;
}

double
ls_price_step_watts (const LsPrice *p, const LsActivities *step)
{
  double all_s = step->computing_s + step->communicating_s + step->idle_s;
  if (!(all_s > 0))
    return p->gpu_watts;
  return (step->computing_s * p->power.computing + step->communicating_s * p->power.communicating
          + step->idle_s * p->power.idle)
      / all_s;
}

void
ls_price_assume_hour (const LsPrice *p, const char *words, const char *why, const char *instead,
                      GArray **assumptions)
{
  bool is_known = !isnan (p->usd_per_gpu_hour);
  ls_assumptions_add (assumptions, "gpu_hour",
                      is_known ? g_strdup_printf ("%g", p->usd_per_gpu_hour) : g_strdup ("unknown"),
                      is_known || !words || *words != '$' ? words : "price of an hour %s",
                      is_known ? why : "the accelerator's file has none", instead);
}

void
ls_price_assume (const LsPrice *p, const LsPrice *given, bool is_told, GArray **assumptions)
{
  static const char file[] = "the accelerator's file";
  const LsGpuPower *w = &p->power;
  bool has_activities = ls_price_has_activities (p);
  g_autofree char *by_activity = g_strdup_printf ("computing %g, communicating %g, idle %g, free %g",
                                                  w->computing, w->communicating, w->idle, w->free),
                  *watts = has_activities ? g_strdup_printf ("at most %g W for a GPU, %%s", p->gpu_watts)
                                          : g_strdup ("%s W for a GPU");
  ls_price_assume_hour (p, is_told && !isnan (p->usd_per_gpu_hour) ? NULL : "$%s for an hour of a GPU",
                        isnan (given->usd_per_gpu_hour) ? file : NULL, "--gpu-hour USD", assumptions);
  if (isnan (p->gpu_watts)) {
    ls_assumptions_add (assumptions, "gpu_watts", g_strdup ("unknown"), "power %s",
                        "the accelerator's file has none", "--gpu-watts W");
    return;
  }
  ls_assumptions_add (assumptions, "gpu_watts",
                      has_activities ? g_steal_pointer (&by_activity) : g_strdup_printf ("%g", p->gpu_watts),
                      is_told ? NULL : watts, isnan (given->gpu_watts) ? file : NULL,
                      has_activities ? "--gpu-watts W (whatever it does)" : "--gpu-watts W");
  ls_assumptions_add (assumptions, "pue", g_strdup_printf ("%g", p->pue), is_told ? NULL : "PUE %s",
                      isnan (given->pue) ? "by default" : NULL, "--pue X");
}

double
ls_price_usd (const LsPrice *p, guint n_gpus, double tokens_per_s)
{
  return n_gpus * p->usd_per_gpu_hour / 3600 / tokens_per_s;
}

double
ls_price_kwh (const LsPrice *p, double watts, guint n_gpus, double tokens_per_s)
{
  return n_gpus * watts * p->pue / 3.6e6 / tokens_per_s;
}
