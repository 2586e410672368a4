/* train/train_costs.c — GPU hours, money, energy by what GPUs do. */
#include <math.h>

#include "train/train_steps.h"

/* Means over all steps, of one. */
static LsActivities
activities_of (const LsTrainReport *r)
{
  LsActivities sum = { 0 };
  for (guint i = 0; i < r->phases->len; i++) {
    const LsTrainPhase *p = &g_array_index (r->phases, LsTrainPhase, i);
    sum.computing_s += p->n_steps * p->activities.computing_s / r->ideal_s;
    sum.communicating_s += p->n_steps * p->activities.communicating_s / r->ideal_s;
    sum.idle_s += p->n_steps * p->activities.idle_s / r->ideal_s;
  }
  return sum;
}

static void
add_energy (LsTrainReport *r, const LsPrice *price, guint n_spare)
{
  LsActivities share = activities_of (r);
  double held_s = r->lost_s[LS_LOST_CHECKPOINT] + r->lost_s[LS_LOST_STALL] + r->lost_s[LS_LOST_DETECTION]
      + r->lost_s[LS_LOST_VARIATION],
         down_s = r->lost_s[LS_LOST_WAITING] + r->lost_s[LS_LOST_RESTART],
         steps_s = r->wall_s.mean - held_s - down_s, mwh_per_watt_s = price->pue / 3.6e9;
  const LsGpuPower *w = &price->power;
  r->mwh_by.computing = mwh_per_watt_s * r->n_gpus * steps_s * share.computing_s * w->computing;
  r->mwh_by.communicating = mwh_per_watt_s * r->n_gpus * steps_s * share.communicating_s * w->communicating;
  r->mwh_by.idle = mwh_per_watt_s * r->n_gpus * (steps_s * share.idle_s + held_s) * w->idle;
  r->mwh_by.free = mwh_per_watt_s * (r->n_gpus * down_s + n_spare * r->wall_s.mean) * w->free;
  r->mwh = r->mwh_by.computing + r->mwh_by.communicating + r->mwh_by.idle + r->mwh_by.free;
  r->gpu_watts = r->mwh / (mwh_per_watt_s * (r->n_gpus + n_spare) * r->wall_s.mean);
  r->has_activities = ls_price_has_activities (price);
}

void
ls_train_costs (LsTrainReport *r, const LsTrainSpec *spec, const LsClusterSpec *cluster)
{
  LsPrice price = ls_price_of_cluster (&spec->price, cluster);
  guint n_spare = r->spares == LS_SPARES_ANY ? 0 : r->spares * r->job->cluster->spec.gpus_per_node;
  r->gpu_hours = (r->n_gpus + n_spare) * r->wall_s.mean / 3600;
  r->usd = ls_price_usd (&price, r->n_gpus + n_spare, 1) * r->wall_s.mean;
  add_energy (r, &price, n_spare);
  r->co2_t = spec->co2_g_per_kwh > 0 ? r->mwh * spec->co2_g_per_kwh / 1e3 : NAN;
}
