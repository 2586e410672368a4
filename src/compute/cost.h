/* compute/cost.h — how long one kernel takes alone.
 *
 *     t = t0 + max (FLOPs / (e * peak), bytes / (b * bandwidth))
 *
 * with launch time t0, compute efficiency e and bandwidth efficiency b fitted per
 * kernel kind and GPU (a calibration), or a plain roofline where nothing was
 * fitted. Every estimate knows its source and whether it extrapolates. */
#ifndef LS_COMPUTE_COST_H
#define LS_COMPUTE_COST_H

#include <glib.h>

#include <lockstep/units.h>

#include "cluster/gpu.h"
#include "model/kernel.h"

typedef enum { LS_COST_ROOFLINE, LS_COST_FITTED, LS_COST_MEASURED, LS_COST_RECORDED } LsCostSource;
typedef enum { LS_BOUND_COMPUTE, LS_BOUND_MEMORY, LS_BOUND_LAUNCH } LsBound;

/* Coefficients of one kernel kind. e falls off for small problems:
 * e(x) = e / (1 + (x0 / x)) with x = FLOPs per launch; b likewise with bytes. */
typedef struct {
  bool is_fitted;          /* false: the numbers below are a stated guess           */
  double compute_efficiency; /* e, (0, 1]                                           */
  double flops_half;         /* x0, FLOPs at which e is halved; 0: no fall-off      */
  double memory_efficiency;  /* b, (0, 1]                                           */
  double bytes_half;         /* bytes at which b is halved; 0: no fall-off          */
  LsTime launch;             /* t0                                                  */
  double min_work, max_work; /* range of FLOPs (compute kinds) or bytes seen in the fit */
  double mape;               /* on held-out families, fraction; NaN if none          */
} LsKindFit;

typedef struct {
  char *name;   /* "a100" */
  char *source; /* data, method, date, hold-out */
  LsKindFit kind[LS_N_KERNEL_KINDS];
  LsKindFit gemm_fp8;   /* used for fp8 GEMMs if is_fitted */
} LsCalibration;

void ls_calibration_clear (LsCalibration *c);          /* NULL allowed */
void ls_calibration_init_roofline (LsCalibration *c);  /* e = b = 1, t0 = 0, not fitted */

typedef struct {
  LsTime alone;      /* whole time with the GPU to itself                   */
  double compute_s;  /* FLOP term, launch excluded                          */
  double memory_s;   /* byte term, launch excluded                          */
  double launch_s;   /* t0                                                  */
  LsCostSource source;
  LsBound bound;
  bool extrapolated;
} LsKernelCost;

LsKernelCost ls_kernel_cost (const LsCalibration *calibration, const LsGpu *gpu, const LsKernel *kernel);

/* Time of the kernel when communication kernels hold `sm_share` of the SMs and
 * HBM is not contended: launch + max (compute / (1 - sm_share), memory). */
LsTime ls_kernel_time_beside (const LsKernelCost *cost, double sm_share);

#endif
