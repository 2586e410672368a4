/* job/sensitivity_scale.h — the plan of a job run again on hardware that is a little different, as with
 * one parameter scaled. */
#ifndef LS_JOB_SENSITIVITY_SCALE_H
#define LS_JOB_SENSITIVITY_SCALE_H

#include "exec/run.h"
#include "job/hardware.h"
#include "job/job.h"

typedef enum {
  LS_SCALE_GPU_FLOPS,
  LS_SCALE_HBM_BANDWIDTH,
  LS_SCALE_NVLINK_BANDWIDTH,
  LS_SCALE_NIC_BANDWIDTH,
  LS_SCALE_NETWORK_LATENCY,
  LS_SCALE_HOST_LAUNCH,
  LS_N_SCALES
} LsScale;

/* A hardware that differs from another one in a parameter. Strings, and lists that nothing
 * changes in, are borrowed from it. */
typedef struct {
  LsClusterSpec spec;
  LsCalibration calibration;
  LsNccl nccl;
  LsHostCosts host;
  GArray *own[4]; /* lists of its own; NULL: none */
} LsScaled;

/* spec: of the cluster that ran, with its number of nodes. Free with ls_scaled_clear(). */
void ls_scaled_init (LsScaled *x, const LsClusterSpec *spec, const LsHardware *hardware,
                     const LsHostCosts *host, LsScale scale, double factor);
void ls_scaled_clear (LsScaled *x);

/* --- the plan of a job run again on hardware that is a little different -------------------------- */

/* Only how long the step takes is wanted: no spans are kept, and no more steps are simulated than show it. */

/* As the job ran; what was checked then is not checked again. Borrows of spec. */
LsRunOptions ls_rerun_options (const LsJobSpec *spec, const LsJobResult *r);
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
