#include "sweep/job_interval.h"

#include <string.h>

#include "io/read_residuals.h"

#define NAME "residuals"

/* Without a name a missing file is no mistake: there is nothing to make an interval of. */
gboolean
ls_job_residuals_load (const LsJobSpec *spec, LsResiduals **ret_residuals, GError **error)
{
  *ret_residuals = NULL;
  if (g_strcmp0 (spec->residuals, "none") == 0)
    return TRUE;
  if (!spec->residuals && !ls_residuals_exist (NAME)) {
    *ret_residuals = ls_residuals_new ();
    return TRUE;
  }
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  *ret_residuals = ls_residuals_load (spec->residuals ? spec->residuals : NAME, diags);
  return *ret_residuals || ls_diag_list_to_error (diags, error);
}

LsSoftware
ls_strategy_software (const LsStrategy *s, const char *architecture)
{
  if (strcmp (architecture, "tpu") == 0)
    return LS_SOFTWARE_XLA;
  return s->dp_kind == LS_DP_MEGATRON || s->dp_kind == LS_DP_NONE ? LS_SOFTWARE_MEGATRON : LS_SOFTWARE_OTHER;
}

/* What published runs cannot tell of a job; NULL: they may. */
static const char *
why_none (const LsJobSpec *spec, const LsJobResult *r, const LsResiduals *residuals)
{
  if (!residuals->name)
    return "there is no file " NAME ".json of measured runs";
  if (!r->model.name)
    return "the trace does not say what is trained";
  if (r->model.n_experts > 0)
    return "none of the measured runs has experts";
  if (spec->network != LS_JOB_NETWORK_FLOW && spec->network != LS_JOB_NETWORK_ALL)
    return "the measured runs were compared with --network flow";
  return NULL;
}

void
ls_job_interval (const LsJobSpec *spec, const LsJobResult *r, const LsResiduals *residuals, LsInterval *ret)
{
  const char *none = why_none (spec, r, residuals);
  *ret = (LsInterval) { .none = g_strdup (none) };
  if (none)
    return;
  const char *architecture = ls_hardware_architecture (r->hardware);
  const LsIntervalJob job = { architecture, ls_strategy_software (&r->strategy, architecture), ls_job_result_mfu (r) };
  ls_interval_find (residuals, NULL, &job, ret);
}
