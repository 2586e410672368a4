#include "job/rerun.h"

gboolean
ls_rerun_options (const LsJobSpec *spec, const LsJobResult *r, LsRunOptions *ret_options, GError **error)
{
  if (!ls_job_spec_options (spec, ret_options, error))
    return FALSE;
  ls_job_host (r->hardware, &r->strategy, &ret_options->host);
  ret_options->no_spans = ret_options->steady = true;
  if (ret_options->fold == LS_SHORTCUT_CHECK)
    ret_options->fold = LS_SHORTCUT_AUTO;
  return TRUE;
}

LsTimeline *
ls_rerun (const LsJobResult *r, const LsHardware *hardware, const LsRunOptions *options,
          LsCluster **ret_cluster, GError **error)
{
  LsHardware h;
  g_autoptr (LsCluster) cluster
      = ls_job_hardware (r, hardware, options, &h, error) ? ls_cluster_build (&h.spec, error) : NULL;
  LsTimeline *t = cluster ? ls_run (r->plan, cluster, &h.calibration, &h.nccl, options, NULL, error) : NULL;
  if (t && ret_cluster)
    *ret_cluster = g_steal_pointer (&cluster);
  return t;
}
