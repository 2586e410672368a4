#include "analysis/own_runs.h"

#include <math.h>

#include "analysis/conformal.h"

/* ---- the range ---- */

static guint
count_alike (const guint *jobs, guint n, guint job)
{
  guint count = 0;
  for (guint i = 0; i < n; i++)
    count += jobs[i] == job;
  return count;
}

static bool
is_first (const guint *jobs, guint i)
{
  for (guint k = 0; k < i; k++)
    if (jobs[k] == jobs[i])
      return false;
  return true;
}

void
ls_own_runs_set_range (const double *errors, const guint *jobs, guint n, LsFittedRuns *ret)
{
  ret->n = 0;
  for (guint i = 0; i < n; i++)
    ret->n += is_first (jobs, i);
  ret->low = ret->high = 0;
  if (!ls_conformal_is_enough (ret->n, LS_INTERVAL_LEVEL))
    return;
  g_autoptr (GArray) values = g_array_new (FALSE, FALSE, sizeof (LsWeighted));
  for (guint i = 0; i < n; i++) {
    LsWeighted v = { fabs (errors[i]), 1.0 / ret->n / count_alike (jobs, n, jobs[i]) };
    g_array_append_val (values, v);
  }
  ls_weighted_sort (values);
  double most = ls_weighted_quantile (values, ls_conformal_share (ret->n, LS_INTERVAL_LEVEL));
  ret->low = exp (-most);
  ret->high = exp (most);
}

/* ---- a job ---- */

char *
ls_own_runs_unlike (const LsFittedRuns *own, const LsIntervalJob *job)
{
  LsResidualGroup group = { .source = (char *) "",
                            .architecture = own->architecture,
                            .software = (char *) job->software,
                            .traits = own->traits };
  group.figures[LS_ASPECT_GPUS - LS_N_WORD_ASPECTS] = own->gpus;
  group.figures[LS_ASPECT_FABRIC - LS_N_WORD_ASPECTS] = own->fabric;
  group.figures[LS_ASPECT_TENSOR - LS_N_WORD_ASPECTS] = own->tp;
  group.figures[LS_ASPECT_PARAMS - LS_N_WORD_ASPECTS] = own->params;
  g_autoptr (GArray) groups = g_array_new (FALSE, FALSE, sizeof (LsResidualGroup));
  g_array_append_val (groups, group);
  const LsResiduals one = { .groups = groups };
  return ls_residuals_unlike (&one, job);
}

static const char *
plural (guint n)
{
  return n == 1 ? "" : "s";
}

/* Why there is none. */
static void
deny (const LsFittedRuns *own, const char *unlike, LsInterval *interval)
{
  g_autofree char *published = interval->none;
  interval->none = g_strdup_printf ("none of your %u runs (%s) %s; of published ones: %s", own->n, own->file,
                                    unlike, published);
}

/* By how much errors are larger at the job's MFU; appends to *wider what that comes from. */
static double
compare_mfu (const LsFittedRuns *own, const LsIntervalJob *job, char **wider)
{
  double scale = own->lowest_mfu / job->mfu;
  if (!(scale > 1))
    return 1;
  g_autofree char *before = *wider;
  *wider = g_strdup_printf ("%s%shas an MFU below %.1f %%", before ? before : "", before ? " or " : "",
                            100 * own->lowest_mfu);
  return scale;
}

void
ls_own_runs_interval (const LsFittedRuns *own, const LsIntervalJob *job, LsInterval *interval)
{
  if (own->low <= 0) {
    interval->remark
        = g_strdup_printf ("your %u run%s (%s) are too few for an interval of their own, %u are enough",
                           own->n, plural (own->n), own->file, ls_conformal_least (LS_INTERVAL_LEVEL));
    return;
  }
  char *wider = ls_own_runs_unlike (own, job);
  if (wider && interval->none) {
    deny (own, wider, interval);
    g_free (wider);
    return;
  }
  bool is_added = wider != NULL;
  double added = is_added ? log (interval->high / interval->low) / 2 : 0;
  guint n_sources = is_added ? interval->n_sources : 0;
  double low = log (own->low), high = log (own->high), scale = compare_mfu (own, job, &wider);
  double half = scale * (high - low) / 2 + added, middle = scale * (low + high) / 2;
  double stretch = high > low ? 2 * half / (high - low) : half > 0 ? INFINITY : 1;
  ls_interval_clear (interval);
  *interval = (LsInterval) { .low = exp (middle - half),
                             .high = exp (middle + half),
                             .stretch = stretch,
                             .wider = wider,
                             .software = job->software,
                             .n_sources = n_sources,
                             .n_runs = own->n,
                             .runs = g_strdup (own->file) };
}
