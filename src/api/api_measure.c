/* What lockstep/measure.h has. */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include <lockstep/version.h>

#include "api/api_job.h"
#include "ask/kernel_times.h"
#include "ask/reconcile_job.h"
#include "calibrate/calibrate.h"
#include "calibrate/calibrate_nccl.h"
#include "calibrate/calibrate_runs.h"
#include "data/text/write_file.h"
#include "job/job.h"
#include "show/fits/write_fits.h"
#include "show/fits/write_kernel.h"
#include "show/fits/write_scores.h"
#include "show/plot/plots.h"
#include "show/run/write_reconcile.h"
#include "show/run/write_seen_software.h"
#include "validate/validate.h"

/* --- validation --- */

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

/* --- times of kernels --- */

struct LsKernelQuery {
  LsKernelSpec spec;
};

LsKernelQuery *
ls_kernel_query_new (void)
{
  LsKernelQuery *query = g_new0 (LsKernelQuery, 1);
  ls_kernel_spec_init (&query->spec);
  return query;
}

void
ls_kernel_query_free (LsKernelQuery *query)
{
  if (!query)
    return;
  ls_kernel_spec_clear (&query->spec);
  g_free (query);
}

gboolean
ls_kernel_query_set (LsKernelQuery *query, const char *key, const char *value, GError **error)
{
  g_return_val_if_fail (query && key && value, FALSE);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  return ls_kernel_spec_set (&query->spec, key, value, diags) || ls_diag_list_to_error (diags, error);
}

char *
ls_kernel_query_text (const LsKernelQuery *query, GError **error)
{
  g_return_val_if_fail (query, NULL);
  g_autoptr (LsKernelRows) rows = ls_kernel_rows_new (&query->spec, error);
  return rows ? ls_kernel_rows_to_text (rows) : NULL;
}

char *
ls_kernel_query_json (const LsKernelQuery *query, GError **error)
{
  g_return_val_if_fail (query, NULL);
  g_autoptr (LsKernelRows) rows = ls_kernel_rows_new (&query->spec, error);
  return rows ? ls_kernel_rows_to_json (rows) : NULL;
}

/* --- calibrations --- */

/* One of them: of kernels, of collectives, of whole steps. */
struct LsCalibrated {
  LsCalibrateRun *kernels;
  LsCalibrateNccl *nccl;
  LsCalibrateRuns *runs;
};

LsCalibrated *
ls_calibrate_kernels (const char *const *files, const char *gpu, const char *cluster, gboolean holds_half,
                      GError **error)
{
  const LsCalibrateSpec spec = {
    .files = files, .gpu = gpu, .cluster = cluster, .holds_half = holds_half, .version = ls_version ()
  };
  LsCalibrateRun *run = ls_calibrate_run_new (&spec, error);
  if (!run)
    return NULL;
  LsCalibrated *c = g_new0 (LsCalibrated, 1);
  c->kernels = run;
  return c;
}

LsCalibrated *
ls_calibrate_collectives (const char *const *files, const char *cluster, const char *op, GError **error)
{
  const LsCalibrateNcclSpec spec = { .files = files, .cluster = cluster, .op = op };
  LsCalibrateNccl *run = ls_calibrate_nccl_new (&spec, error);
  if (!run)
    return NULL;
  LsCalibrated *c = g_new0 (LsCalibrated, 1);
  c->nccl = run;
  return c;
}

LsCalibrated *
ls_calibrate_runs (const char *path, const char *cluster, guint n_threads, LsProgressFunc progress,
                   gpointer data, GError **error)
{
  g_return_val_if_fail (path, NULL);
  const LsCalibrateRunsSpec spec = { .path = path,
                                     .cluster = cluster,
                                     .n_threads = n_threads,
                                     .version = ls_version (),
                                     .progress = { progress, data } };
  LsCalibrateRuns *run = ls_calibrate_runs_new (&spec, error);
  if (!run)
    return NULL;
  LsCalibrated *c = g_new0 (LsCalibrated, 1);
  c->runs = run;
  return c;
}

void
ls_calibrated_free (LsCalibrated *c)
{
  if (!c)
    return;
  ls_calibrate_run_free (c->kernels);
  ls_calibrate_nccl_free (c->nccl);
  ls_calibrate_runs_free (c->runs);
  g_free (c);
}

char *
ls_calibrated_text (const LsCalibrated *c)
{
  g_return_val_if_fail (c, NULL);
  if (c->runs)
    return ls_fitted_report_to_text (ls_calibrate_runs_report (c->runs));
  return c->kernels ? ls_fit_report_to_text (ls_calibrate_run_report (c->kernels))
                    : ls_nccl_report_to_text (ls_calibrate_nccl_report (c->nccl));
}

char *
ls_calibrated_notes (const LsCalibrated *c)
{
  g_return_val_if_fail (c, NULL);
  GString *text = g_string_new (NULL);
  const GPtrArray *notes = c->kernels ? ls_calibrate_run_notes (c->kernels)
      : c->runs                       ? ls_calibrate_runs_notes (c->runs)
                                      : NULL;
  for (guint i = 0; notes && i < notes->len; i++)
    g_string_append_printf (text, "%s\n", (const char *) g_ptr_array_index (notes, i));
  return g_string_free (text, FALSE);
}

gboolean
ls_calibrated_check_mape (const LsCalibrated *c, double max_pct, GError **error)
{
  g_return_val_if_fail (c && c->kernels, FALSE);
  guint n;
  double error_pct = 100 * ls_calibrate_run_held_out_error (c->kernels, &n);
  if (n > 0 && error_pct <= max_pct)
    return TRUE;
  if (n == 0)
    g_set_error (error, LS_ERROR, LS_ERROR_TOLERANCE, "no kernel was held out, so nothing was predicted");
  else
    g_set_error (error, LS_ERROR, LS_ERROR_TOLERANCE,
                 "mean absolute error %.2f %% of %u kernels held out exceeds %.2f %%", error_pct, n, max_pct);
  return FALSE;
}

gboolean
ls_calibrated_check_path (const char *path, GError **error)
{
  g_return_val_if_fail (path, FALSE);
  g_autofree char *name = ls_output_name (path, error);
  return name && ls_write_file_check (path, error);
}

gboolean
ls_calibrated_write (const LsCalibrated *c, const char *path, GError **error)
{
  g_return_val_if_fail (c && path, FALSE);
  g_autofree char *name = ls_output_name (path, error);
  if (!name)
    return FALSE;
  g_autofree char *json = c->runs ? ls_calibrate_runs_json (c->runs, name, error)
      : c->kernels                ? ls_calibrate_run_json (c->kernels, name)
                                  : ls_calibrate_nccl_json (c->nccl, name);
  return json && ls_write_text (path, json, error);
}

gboolean
ls_calibrated_write_cluster (const LsCalibrated *c, const char *path, const char *calibration, GError **error)
{
  g_return_val_if_fail (c && path && c->kernels, FALSE);
  g_autofree char *name = ls_output_name (path, error);
  g_autofree char *json
      = name ? ls_calibrate_run_machine_json (c->kernels, name, path, calibration, error) : NULL;
  return json && ls_write_text (path, json, error);
}

gboolean
ls_calibrated_plot (const LsCalibrated *c, const char *path, GError **error)
{
  g_return_val_if_fail (c && path, FALSE);
  if (c->kernels)
    return ls_plot_calibration (ls_calibrate_run_report (c->kernels), path, error);
  g_set_error (error, LS_ERROR, LS_ERROR_USAGE,
               c->runs ? "%s: only kernels are drawn"
                       : "%s: collectives are drawn by 'lockstep collective --compare'",
               path);
  return FALSE;
}

/* --- profiles beside predictions --- */

struct LsReconciliation {
  LsReconcileRun *run;
};

LsReconciliation *
ls_job_reconcile (const LsJob *job, const char *path, const char *step, gint64 rank, GError **error)
{
  g_return_val_if_fail (job && path, NULL);
  const LsReconcileSpec spec = { .job = &job->spec, .path = path, .step = step, .rank = rank };
  LsReconcileRun *run = ls_reconcile_run_new (&spec, error);
  if (!run)
    return NULL;
  LsReconciliation *r = g_new0 (LsReconciliation, 1);
  r->run = run;
  return r;
}

void
ls_reconciliation_free (LsReconciliation *r)
{
  if (!r)
    return;
  ls_reconcile_run_free (r->run);
  g_free (r);
}

char *
ls_reconciliation_text (const LsReconciliation *r)
{
  g_return_val_if_fail (r, NULL);
  return ls_reconcile_to_text (ls_reconcile_run_report (r->run));
}

char *
ls_reconciliation_json (const LsReconciliation *r)
{
  g_return_val_if_fail (r, NULL);
  return ls_reconcile_to_json (ls_reconcile_run_report (r->run));
}

gboolean
ls_reconciliation_write_software (const LsReconciliation *r, const char *path, GError **error)
{
  g_return_val_if_fail (r && path, FALSE);
  g_autofree char *name = ls_output_name (path, error);
  g_autofree char *json
      = name ? ls_seen_report_file (ls_reconcile_run_report (r->run)->software, name, error) : NULL;
  return json && ls_write_text (path, json, error);
}

char *
ls_reconciliation_notes (const LsReconciliation *r)
{
  g_return_val_if_fail (r, NULL);
  const GPtrArray *notes = ls_reconcile_run_notes (r->run);
  GString *text = g_string_new (NULL);
  for (guint i = 0; i < notes->len; i++)
    g_string_append_printf (text, "%s\n", (const char *) g_ptr_array_index (notes, i));
  return g_string_free (text, FALSE);
}
