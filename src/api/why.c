/* Why a step takes as long as it does, and how to have others run it: functions of
 * lockstep/lockstep.h. */
#include "api/job.h"

#include "ask/sensitivity.h"
#include "data/jobs/emit.h"

gboolean
ls_result_find_critical_path (LsResult *result, GError **error)
{
  g_return_val_if_fail (result, FALSE);
  if (result->critical_path)
    return TRUE;
  const LsJobResult *r = result->job;
  result->critical_path = ls_critical_path_new (r->timeline, r->cluster, &r->hardware->nccl, error);
  if (!result->critical_path)
    return FALSE;
  result->critical_summary = ls_path_summary_new (result->critical_path);
  return TRUE;
}

gboolean
ls_result_find_sensitivity (LsResult *result, const LsJob *job, guint n_threads, GError **error)
{
  g_return_val_if_fail (result && job, FALSE);
  ls_sensitivity_free (result->sensitivity);
  result->sensitivity = ls_sensitivity_new (&job->spec, result->job, n_threads, error);
  return result->sensitivity != NULL;
}

gboolean
ls_check_emit_target (const char *target, GError **error)
{
  g_return_val_if_fail (target, FALSE);
  return ls_emit_check_target (target, error);
}

char *
ls_result_emit (const LsResult *result, const LsJob *job, const char *target, char **ret_notes,
                GError **error)
{
  g_return_val_if_fail (result && job && target && ret_notes, NULL);
  const LsJobResult *r = result->job;
  if (job->spec.trace) {
    g_set_error (error, LS_ERROR, LS_ERROR_UNSUPPORTED,
                 "--emit %s does not go with --trace: it is not known which knobs made its ops", target);
    return NULL;
  }
  const LsEmitJob emitted
      = { .model = &r->model, .strategy = &r->strategy, .order = job->spec.order, .title = result->title };
  return ls_emit (&emitted, target, ret_notes, error);
}
