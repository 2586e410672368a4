/* job/rerun.h — the plan of a job run again on hardware that is a little different.
 *
 * Only how long the step takes is wanted: no spans are kept, and no more steps are simulated than show it. */
#ifndef LS_JOB_RERUN_H
#define LS_JOB_RERUN_H

#include "job/job.h"

/* As the job ran; what was checked then is not checked again. Borrows of spec. Errors as of
 * ls_job_spec_options(). */
gboolean ls_rerun_options (const LsJobSpec *spec, const LsJobResult *r, LsRunOptions *ret_options,
                           GError **error);
/* On a cluster of this spec; hardware: its kernels and collectives. Free the cluster and the timeline; a
 * timeline borrows of neither. ret_cluster NULL: not wanted. NULL: errors as of ls_run() and
 * ls_cluster_build(). */
LsTimeline *ls_rerun (const LsJobResult *r, const LsHardware *hardware, const LsRunOptions *options,
                      LsCluster **ret_cluster, GError **error);

static inline double
ls_rerun_step_s (const LsTimeline *t)
{
  return ls_time_to_s (t->window_end - t->window_start);
}

#endif
