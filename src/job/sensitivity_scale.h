/* job/sensitivity_scale.h — hardware with one parameter scaled (private to sweep/). */
#ifndef LS_JOB_SENSITIVITY_SCALE_H
#define LS_JOB_SENSITIVITY_SCALE_H

#include "exec/run.h"
#include "job/hardware.h"

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

#endif
