#include "cluster/reliability.h"

#include <glib.h>
#include <math.h>

/* --- how much GPUs of a kind differ, and how much the steps of one ------------------------------- */

void
ls_jitter_clear (LsJitter *j)
{
  g_free (j->name);
  g_free (j->source);
  *j = (LsJitter) { 0 };
}

/* How often parts of a cluster fail, what each failure does to a job, and how long it takes until the
 * job goes on. */

#define DAY_S 86400.0

void
ls_reliability_clear (LsReliability *r)
{
  g_free (r->name);
  g_free (r->source);
  if (r->causes)
    for (guint i = 0; i < r->causes->len; i++)
      g_free (g_array_index (r->causes, LsFailureCause, i).name);
  g_clear_pointer (&r->causes, g_array_unref);
  *r = (LsReliability) { 0 };
}

double
ls_failure_rate (const LsFailureCause *cause, const LsJobUnits *job)
{
  return cause->per_day / DAY_S * job->of[cause->unit];
}

bool
ls_failure_ends_job (const LsFailureCause *cause)
{
  return cause->effect == LS_FAILURE_REPLACE || cause->effect == LS_FAILURE_RESTART
      || cause->effect == LS_FAILURE_CORRUPT;
}

double
ls_reliability_rate (const LsReliability *r, const LsJobUnits *job)
{
  double sum = 0;
  for (guint i = 0; i < r->causes->len; i++) {
    const LsFailureCause *cause = &g_array_index (r->causes, LsFailureCause, i);
    if (ls_failure_ends_job (cause))
      sum += ls_failure_rate (cause, job);
  }
  return sum;
}

double
ls_reliability_place_s (const LsReliability *r, double n_gpus)
{
  double doublings = r->place_gpus > 0 ? fmax (log2 (n_gpus / r->place_gpus), 0) : 0;
  return ls_time_to_s (r->place) + doublings * ls_time_to_s (r->place_more) + ls_time_to_s (r->initialise);
}
