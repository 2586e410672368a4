#include "api/answers.h"

#include "ask/profile/reconcile_job.h"
#include "data/text/write_file.h"
#include "show/run/write_run.h"

LS_ANSWER_FORM (to_text, ls_reconcile_to_text (ls_reconcile_run_report (data)))
LS_ANSWER_FORM (to_json, ls_reconcile_to_json (ls_reconcile_run_report (data)))
LS_ANSWER_FREE (run_free, ls_reconcile_run_free)

static const LsAnswerForms forms = { .text = to_text, .json = to_json, .free = run_free };

/* What the profile shows of the software that ran it. */
static gboolean
write_software (gconstpointer run, const char *path, GError **error)
{
  g_autofree char *name = ls_output_name (path, error);
  g_autofree char *json
      = name ? ls_seen_report_file (ls_reconcile_run_report (run)->software, name, error) : NULL;
  return json && ls_write_text (path, json, error);
}

static gboolean
check (const LsRequest *r, GError **error)
{
  static const char *const others[]
      = { "file",     "nccl",     "runs",           "gpu", "op", "plot", "threads",
          "hold-out", "max-mape", "cluster-output", NULL };
  return !ls_request_has_any (r, others)
      || ls_request_refuse (
          "--pytorch-trace goes with the flags of a job, --rank, --step, --other-job, --json and --output "
          "only",
          error);
}

gboolean
ls_request_reconcile (const LsRequest *r, LsAnswer *a, GError **error)
{
  LsJobSpec job;
  gint64 rank = -1;
  if (!check (r, error) || !ls_request_number (r, "rank", 0, G_MAXINT64, &rank, error))
    return FALSE;
  gboolean is_read = ls_request_job (r, &job, error);
  const LsReconcileSpec spec = { .job = &job,
                                 .path = ls_request_text (r, "pytorch-trace"),
                                 .step = ls_request_text (r, "step"),
                                 .rank = rank,
                                 .other_job = ls_request_is_on (r, "other-job") };
  LsReconcileRun *run = is_read ? ls_reconcile_run_new (&spec, error) : NULL;
  ls_job_spec_clear (&job);
  if (!run)
    return FALSE;
  ls_answer_take (a, run, &forms);
  ls_answer_note_all (a, ls_reconcile_run_notes (run));
  ls_answer_write (a, r, "output", write_software);
  return TRUE;
}
