/* Calibrations: LsCalibrated of lockstep/lockstep.h. */
#include <stdbool.h>
#include <string.h>

#include <lockstep/lockstep.h>
#include <lockstep/version.h>

#include "calibrate/calibrate.h"
#include "calibrate/calibrate_nccl.h"
#include "calibrate/calibrate_runs.h"
#include "data/text/write_file.h"
#include "show/fits/write_fit.h"
#include "show/fits/write_fitted.h"
#include "show/fits/write_nccl.h"
#include "show/plot/plot_calibration.h"

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
