/* Profiles beside predictions: LsReconciliation of lockstep/lockstep.h. */
#include "api/job.h"
#include "ask/reconcile_job.h"
#include "data/text/write_file.h"
#include "show/run/write_reconcile.h"
#include "show/run/write_seen_software.h"

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
