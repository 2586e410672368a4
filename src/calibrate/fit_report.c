#include "calibrate/fit_report.h"

#include <math.h>

#include "analysis/interval.h"
#include "data/machines/machines.h"
#include "data/text/json_out.h"

/* ---- what a fit to measured runs leaves ---- */

/* What runs say of the next job on the cluster that was fitted to them: how far off each was that was
 * left out, and what they have (LsFittedRuns, cluster/cluster.h). */

void
ls_runs_number_jobs (const double *log_start, guint n, guint *ret_jobs)
{
  for (guint i = 0; i < n; i++) {
    ret_jobs[i] = i;
    for (guint k = 0; k < i && ret_jobs[i] == i; k++)
      if (log_start[k] <= log_start[i] && log_start[k] >= log_start[i])
        ret_jobs[i] = k;
  }
}

void
ls_runs_summary (const LsSummedRun *runs, guint n, const char *file, const char *architecture,
                 LsFittedRuns *ret)
{
  LsResidualGroup group = { .architecture = (char *) architecture };
  g_autofree double *errors = g_new (double, n), *log_start = g_new (double, n);
  g_autofree guint *jobs = g_new (guint, n);
  double lowest_mfu = INFINITY;
  for (guint i = 0; i < n; i++) {
    ls_residual_group_add_traits (&group, &runs[i].traits);
    errors[i] = runs[i].log_measured - runs[i].log_left_out;
    log_start[i] = runs[i].log_start;
    /* MFU goes as 1 / step */
    lowest_mfu = fmin (lowest_mfu, runs[i].mfu * exp (runs[i].log_start - runs[i].log_fitted));
  }
  *ret = (LsFittedRuns) {
    .file = g_path_get_basename (file),
    .architecture = g_strdup (architecture),
    .traits = group.traits,
    .lowest_mfu = lowest_mfu,
    .gpus = group.figures[LS_ASPECT_GPUS - LS_N_WORD_ASPECTS],
    .tp = group.figures[LS_ASPECT_TENSOR - LS_N_WORD_ASPECTS],
    .params = group.figures[LS_ASPECT_PARAMS - LS_N_WORD_ASPECTS],
    .fabric = group.figures[LS_ASPECT_FABRIC - LS_N_WORD_ASPECTS],
  };
  ls_runs_number_jobs (log_start, n, jobs);
  ls_own_runs_set_range (errors, jobs, n, ret);
}

void
ls_runs_summary_clear (LsFittedRuns *summary)
{
  g_free (summary->file);
  g_free (summary->architecture);
  g_clear_pointer (&summary->traits, g_array_unref); /* which frees its words */
  *summary = (LsFittedRuns) { 0 };
}

/* --- a cluster file with what was fitted to steps measured on it --------------------------------- */

/* Digits of a ratio that a step time has: a range does not need more. */
static double
rounded (double ratio)
{
  return round (1e6 * ratio) / 1e6;
}

#include "calibrate/fitted_text.h"

char *
ls_fitted_to_json (const LsJsonDoc *base, const LsFittedReport *r, const char *name)
{
  g_autofree char *file = g_path_get_basename (r->file), *fitted = fitted_text (r);
  g_autofree char *source
      = g_strdup_printf ("%s, fitted to steps measured on it (%s); see fitted", r->cluster, file);
  cJSON *root = cJSON_Duplicate (ls_json_doc_root (base), true);
  cJSON_ReplaceItemInObjectCaseSensitive (root, "name", cJSON_CreateString (name));
  cJSON_ReplaceItemInObjectCaseSensitive (root, "source", cJSON_CreateString (source));
  cJSON_AddItemToObject (root, "fitted", cJSON_Parse (fitted));
  char *text = ls_cluster_print (root);
  cJSON_Delete (root);
  return text;
}
