/* Validation: LsValidation of lockstep/lockstep.h. */
#include <math.h>
#include <string.h>

#include <lockstep/lockstep.h>

#include "data/text/write_file.h"
#include "job/job.h"
#include "show/fits/write_scores.h"
#include "show/plot/plot_scores.h"
#include "validate/validate.h"

struct LsValidation {
  LsValidationRun *run;
};

static gboolean
set_knob (LsJobSpec *spec, const char *key, const char *value, GError **error)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  return !value || ls_job_spec_set (spec, key, value, diags) || ls_diag_list_to_error (diags, error);
}

/* A table has one column for what is predicted. */
static gboolean
check_network (const LsJobSpec *spec, GError **error)
{
  if (spec->network != LS_JOB_NETWORK_ALL)
    return TRUE;
  g_set_error_literal (error, LS_ERROR, LS_ERROR_USAGE,
                       "--network all is for lockstep run; expected flow, alphabeta or step");
  return FALSE;
}

/* The options of a run, checked as those of a job are. */
static gboolean
read_options (const LsValidateOptions *o, LsRunOptions *ret_options, GError **error)
{
  LsJobSpec spec;
  ls_job_spec_init (&spec);
  gboolean ok = set_knob (&spec, "fold", o->fold, error) && set_knob (&spec, "coarsen", o->coarsen, error)
      && set_knob (&spec, "network", o->network, error) && set_knob (&spec, "debug", o->debug, error)
      && check_network (&spec, error) && ls_job_spec_options (&spec, ret_options, error);
  ls_job_spec_clear (&spec);
  return ok;
}

LsValidation *
ls_validation_run (const LsValidateOptions *options, GError **error)
{
  g_return_val_if_fail (options && options->cases_path, NULL);
  LsRunOptions run_options;
  if (!read_options (options, &run_options, error))
    return NULL;
  const LsValidateSpec spec = {
    .cases_path = options->cases_path,
    .split = options->split,
    .only = options->only,
    .n_threads = options->n_threads,
    .options = &run_options,
    .assume = options->assume,
    .ablate = options->ablate,
    .with_coverage = options->coverage,
    .progress = { options->progress, options->progress_data },
  };
  LsValidationRun *run = ls_validate (&spec, error);
  if (!run)
    return NULL;
  LsValidation *validation = g_new0 (LsValidation, 1);
  validation->run = run;
  return validation;
}

void
ls_validation_free (LsValidation *validation)
{
  if (!validation)
    return;
  ls_validation_run_free (validation->run);
  g_free (validation);
}

char *
ls_validation_text (const LsValidation *validation)
{
  g_return_val_if_fail (validation, NULL);
  return ls_scores_to_text (ls_validation_run_scores (validation->run));
}

char *
ls_validation_json (const LsValidation *validation)
{
  g_return_val_if_fail (validation, NULL);
  return ls_scores_to_json (ls_validation_run_scores (validation->run));
}

/* "a/residuals.json" is named residuals: a file says its own name. NULL with another suffix. */
static char *
name_of_residuals (const char *path, GError **error)
{
  g_autofree char *base = g_path_get_basename (path);
  if (g_str_has_suffix (base, ".json") && strlen (base) > strlen (".json"))
    return g_strndup (base, strlen (base) - strlen (".json"));
  g_set_error (error, LS_ERROR, LS_ERROR_USAGE,
               "--residuals: expected a path that ends in NAME.json; got \"%s\"", path);
  return NULL;
}

gboolean
ls_validation_check_residuals_path (const char *path, GError **error)
{
  g_return_val_if_fail (path, FALSE);
  g_autofree char *name = name_of_residuals (path, error);
  return name && ls_write_file_check (path, error);
}

gboolean
ls_validation_write_residuals (const LsValidation *validation, const char *path, GError **error)
{
  g_return_val_if_fail (validation && path, FALSE);
  g_autofree char *name = name_of_residuals (path, error);
  if (!name)
    return FALSE;
  if (ls_validation_run_scores (validation->run)->total.n == 0) {
    g_set_error_literal (error, LS_ERROR, LS_ERROR_TOLERANCE, "--residuals: no case could be simulated");
    return FALSE;
  }
  g_autofree char *text = ls_validation_run_residuals (validation->run, name, ls_version ());
  return ls_write_text (path, text, error);
}

/* A figure that is not known is outside. */
gboolean
ls_validation_check_coverage (const LsValidation *validation, double min_pct, double max_width_pct,
                              GError **error)
{
  g_return_val_if_fail (validation, FALSE);
  const LsCoverage *c = ls_validation_run_scores (validation->run)->coverage;
  g_return_val_if_fail (c, FALSE);
  if (100 * c->each.covered >= min_pct && 100 * c->each.width <= max_width_pct)
    return TRUE;
  if (c->each.n == 0)
    g_set_error_literal (error, LS_ERROR, LS_ERROR_TOLERANCE, "no row has an interval by the other sources");
  else if (100 * c->each.covered < min_pct)
    g_set_error (error, LS_ERROR, LS_ERROR_TOLERANCE,
                 "intervals hold %.2f %% of each source by the others, less than %.2f %%",
                 100 * c->each.covered, min_pct);
  else
    g_set_error (error, LS_ERROR, LS_ERROR_TOLERANCE, "median width of intervals %.2f %% exceeds %.2f %%",
                 100 * c->each.width, max_width_pct);
  return FALSE;
}

gboolean
ls_validation_write_markdown (const LsValidation *validation, const char *path, GError **error)
{
  g_return_val_if_fail (validation && path, FALSE);
  g_autofree char *text = ls_scores_to_markdown (ls_validation_run_scores (validation->run));
  return ls_write_text (path, text, error);
}

gboolean
ls_validation_plot (const LsValidation *validation, const char *path, GError **error)
{
  g_return_val_if_fail (validation && path, FALSE);
  return ls_plot_scores (ls_validation_run_scores (validation->run), path, error);
}

gboolean
ls_validation_check_simulated (const LsValidation *validation, GError **error)
{
  g_return_val_if_fail (validation, FALSE);
  const LsScore *total = &ls_validation_run_scores (validation->run)->total;
  if (total->n > 0)
    return TRUE;
  g_autofree char *reasons = ls_scores_refusals (ls_validation_run_scores (validation->run));
  g_set_error (error, LS_ERROR, LS_ERROR_CONFLICT, "no case could be simulated, %u refused:\n%s",
               total->refused, g_strchomp (reasons));
  return FALSE;
}

gboolean
ls_validation_check_mape (const LsValidation *validation, double max_pct, GError **error)
{
  g_return_val_if_fail (validation, FALSE);
  if (!isfinite (max_pct) || max_pct < 0) {
    g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "expected an error of 0 %% or more to compare with; got %g",
                 max_pct);
    return FALSE;
  }
  const LsScore *total = &ls_validation_run_scores (validation->run)->total;
  if (total->mape_pct <= max_pct)
    return TRUE;
  if (total->n == 0)
    g_set_error (error, LS_ERROR, LS_ERROR_TOLERANCE, "no case could be simulated, %u refused",
                 total->refused);
  else
    g_set_error (error, LS_ERROR, LS_ERROR_TOLERANCE, "mean absolute error %.2f %% exceeds %.2f %%",
                 total->mape_pct, max_pct);
  return FALSE;
}
