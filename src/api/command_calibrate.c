/* `lockstep calibrate`: kernels, collectives or a cluster fitted to what was measured; a profile of PyTorch
 * next to a job. */
#include "api/job_answer.h"

#include <string.h>

#include "api/commands.h"
#include "ask/profile/reconcile_job.h"
#include "calibrate/calibrate.h"
#include "calibrate/calibrate_nccl.h"
#include "calibrate/calibrate_runs.h"
#include "data/measured/read_cases.h"
#include "data/text/write_file.h"
#include "show/fits/write_fits.h"
#include "show/plot/plots.h"
#include "show/run/write_run.h"

/* --- a profile laid beside a job -------------------------------------------------------------------- */

LS_ANSWER_FORM (profile_text, ls_reconcile_to_text (data))
LS_ANSWER_FORM (profile_json, ls_reconcile_to_json (data))
LS_ANSWER_FREE (profile_free, ls_reconcile_report_free)

static const LsAnswerForms profile_forms
    = { .text = profile_text, .json = profile_json, .free = profile_free };

/* What the profile shows of the software that ran it. */
static gboolean
write_software (gconstpointer report, const char *path, GError **error)
{
  g_autofree char *name = ls_output_name (path, error);
  g_autofree char *json = name ? ls_seen_report_file (report, name, error) : NULL;
  return json && ls_write_text (path, json, error);
}

/* Errors as of ls_reconcile_report_new(). */
static gboolean
reconcile (const LsRequest *r, LsAnswer *a, GError **error)
{
  LsJobSpec job;
  gint64 rank = -1;
  if (!ls_request_number (r, "rank", 0, G_MAXINT64, &rank, error))
    return FALSE;
  gboolean is_read = ls_request_job (r, &job, error);
  const LsReconcileSpec spec = { .job = &job,
                                 .path = ls_request_text (r, "pytorch-trace"),
                                 .step = ls_request_text (r, "step"),
                                 .rank = rank,
                                 .other_job = ls_request_is_on (r, "other-job") };
  LsReconcileReport *report = is_read ? ls_reconcile_report_new (&spec, error) : NULL;
  ls_job_spec_clear (&job);
  if (!report)
    return FALSE;
  ls_answer_take (a, report, &profile_forms);
  ls_answer_note_all (a, report->trace->notes);
  ls_job_tell_idle (r, LS_IDLE_OF_MEMORY, a);
  ls_answer_write (a, r, "output", write_software);
  return TRUE;
}

/* One of them: of kernels, of collectives, of whole steps. */
typedef struct {
  LsCalibrateRun *kernels;
  LsCalibrateNccl *nccl;
  LsCalibrateRuns *runs;
} Data;

static void
data_free (gpointer data)
{
  Data *c = data;
  ls_calibrate_run_free (c->kernels);
  ls_calibrate_nccl_free (c->nccl);
  ls_calibrate_runs_free (c->runs);
  g_free (c);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC (Data, data_free)

/* --- what it prints and writes -------------------------------------------------------------------- */

static char *
to_text (gconstpointer data, const LsTextStyle *style)
{
  const Data *c = data;
  if (c->runs)
    return ls_fitted_report_to_text (ls_calibrate_runs_report (c->runs));
  return c->kernels ? ls_fit_report_to_text (ls_calibrate_run_report (c->kernels))
                    : ls_nccl_report_to_text (ls_calibrate_nccl_report (c->nccl));
}

static const LsAnswerForms forms = { .text = to_text, .free = data_free };

static gboolean
draw (gconstpointer data, const char *path, GError **error)
{
  return ls_plot_calibration (ls_calibrate_run_report (((const Data *) data)->kernels), path, error);
}

static gboolean
write_calibration (gconstpointer data, const char *path, GError **error)
{
  const Data *c = data;
  g_autofree char *name = ls_output_name (path, error);
  if (!name)
    return FALSE;
  g_autofree char *json = c->runs ? ls_calibrate_runs_json (c->runs, name, error)
      : c->kernels                ? ls_calibrate_run_json (c->kernels, name)
                                  : ls_calibrate_nccl_json (c->nccl, name);
  return json && ls_write_text (path, json, error);
}

static gboolean
write_cluster (const Data *c, const char *path, const char *calibration, GError **error)
{
  g_autofree char *name = ls_output_name (path, error);
  g_autofree char *json
      = name ? ls_calibrate_run_machine_json (c->kernels, name, path, calibration, error) : NULL;
  return json && ls_write_text (path, json, error);
}

/* The cluster first: it may be refused, and is then no place for a calibration. */
static void
write_files (const Data *c, const LsRequest *r, LsAnswer *a)
{
  GError *error = NULL;
  const char *cluster = ls_request_text (r, "cluster-output");
  ls_answer_write (a, r, "plot", draw);
  if (cluster && !write_cluster (c, cluster, ls_request_text (r, "output"), &error))
    ls_answer_fail (a, error);
  else
    ls_answer_write (a, r, "output", write_calibration);
}

/* --- the command ---------------------------------------------------------------------------------- */

/* "--runs *.log": the first belongs to the option, the others follow. */
static LsCalibrateRuns *
fit_runs (const LsRequest *r, GError **error)
{
  g_autofree const char **paths = ls_request_paths (r, "runs", "file");
  LsCalibrateRunsSpec spec = { .paths = paths,
                               .cluster = ls_request_text (r, "cluster"),
                               .version = ls_version (),
                               .progress = ls_request_progress (r) };
  return ls_request_threads (r, &spec.n_threads, error) ? ls_calibrate_runs_new (&spec, error) : NULL;
}

static gboolean
fit (const LsRequest *r, Data *c, GError **error)
{
  g_autofree const char **files = ls_request_texts (r, "file");
  const char *gpu = ls_request_text (r, "gpu"), *cluster = ls_request_text (r, "cluster");
  if (ls_request_text (r, "runs"))
    return (c->runs = fit_runs (r, error)) != NULL;
  if (ls_request_is_on (r, "nccl")) {
    const LsCalibrateNcclSpec spec = { files, cluster, ls_request_text (r, "op") };
    return (c->nccl = ls_calibrate_nccl_new (&spec, error)) != NULL;
  }
  gboolean holds_half = g_strcmp0 (ls_request_text (r, "hold-out"), "half") == 0;
  const LsCalibrateSpec spec = { files, gpu, cluster, holds_half, ls_version () };
  return (c->kernels = ls_calibrate_run_new (&spec, error)) != NULL;
}

static void
check_mape (const LsCalibrateRun *kernels, double max_pct, LsAnswer *a)
{
  guint n = ls_calibrate_run_report (kernels)->held_out.n;
  double error_pct = 100 * ls_calibrate_run_report (kernels)->held_out.mape;
  if (n > 0 && error_pct <= max_pct)
    return;
  if (n == 0)
    ls_answer_fail_with (a, LS_ERROR_TOLERANCE, "no kernel was held out, so nothing was predicted");
  else
    ls_answer_fail_with (a, LS_ERROR_TOLERANCE,
                         "mean absolute error %.2f %% of %u kernels held out exceeds %.2f %%", error_pct, n,
                         max_pct);
}

static const char *const templates[] = { "runs", "nccl", "kernels", NULL };

static gboolean
show_template (const LsRequest *r, LsAnswer *a, GError **error)
{
  const char *which = ls_request_text (r, "template");
  char *text = ls_template_text (which);
  if (text)
    ls_answer_take_text (a, text);
  else
    ls_request_refuse_word ("--template", templates, which, error);
  return text != NULL;
}

gboolean
command_calibrate (const LsRequest *r, LsAnswer *a, GError **error)
{
  double max_pct = 0;
  if (ls_request_text (r, "template"))
    return show_template (r, a, error);
  if (ls_request_text (r, "pytorch-trace"))
    return reconcile (r, a, error);
  if (!ls_request_percent (r, "max-mape", G_MAXDOUBLE, &max_pct, error))
    return FALSE;
  g_autoptr (Data) made = g_new0 (Data, 1);
  if (!fit (r, made, error))
    return FALSE;
  Data *c = g_steal_pointer (&made);
  ls_answer_take (a, c, &forms);
  ls_answer_note_all (a,
                      c->kernels    ? ls_calibrate_run_report (c->kernels)->notes
                          : c->runs ? ls_calibrate_runs_report (c->runs)->notes
                                    : NULL);
  ls_job_tell_idle (r, LS_IDLE_OF_MEMORY, a);
  write_files (c, r, a);
  if (ls_request_text (r, "max-mape"))
    check_mape (c->kernels, max_pct, a);
  return TRUE;
}
