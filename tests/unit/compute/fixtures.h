/* tests/unit/compute/fixtures.h — an accelerator of round numbers, and the cost of a kernel on it. */
#ifndef LS_TESTS_COMPUTE_FIXTURES_H
#define LS_TESTS_COMPUTE_FIXTURES_H

#include "ls_test.h"

#include <math.h>

#include "compute/cost.h"
#include "compute/measured.h"

/* 100 SMs, 100 TFLOP/s: 1 TFLOP/s per SM. */
static inline LsGpu
round_gpu (void)
{
  LsGpu gpu = { .n_sm = 100, .hbm_bytes_per_s = 1e12, .vector_flops = 10e12 };
  gpu.peak_flops[LS_DTYPE_BF16] = 100e12;
  gpu.peak_flops[LS_DTYPE_FP8] = 200e12;
  return gpu;
}

static inline LsKindFit
tiled_fit (void)
{
  return (LsKindFit) { .is_fitted = true,
                       .compute_efficiency = 0.8,
                       .depth_half = 128,
                       .tile_half = 20,
                       .wave_rounding = 0.5,
                       .memory_efficiency = 0.75,
                       .launch = 3 * LS_US,
                       .min_work = 1e9,
                       .max_work = 1e13,
                       .mape = 0.08 };
}

static inline LsCalibration
calibration_of (LsKernelKind kind, LsKindFit fit)
{
  LsCalibration c;
  ls_calibration_init_roofline (&c);
  c.kind[kind] = fit;
  return c;
}

static inline LsKernel
gemm (uint64_t m, uint64_t n, uint64_t k, uint64_t batch)
{
  return ls_kernel_gemm ("gemm", LS_DTYPE_BF16, m, n, k, batch, 2, false);
}

static inline LsKernelCost
cost_with (const LsKindFit *fit, const LsKernel *kernel)
{
  LsGpu gpu = round_gpu ();
  LsCalibration c = calibration_of (kernel->kind, *fit);
  LsKernelCost cost = ls_kernel_cost (&c, &gpu, kernel);
  ls_calibration_clear (&c);
  return cost;
}

static inline LsKernel
attention (uint64_t batch, uint64_t seq, uint64_t d)
{
  double flops = 2.0 * (double) (batch * seq * seq * d);
  return (LsKernel) { .name = "attention",
                      .kind = LS_KERNEL_ATTENTION_FWD,
                      .dtype = LS_DTYPE_BF16,
                      .m = seq,
                      .n = seq,
                      .k = d,
                      .batch = batch,
                      .flops = flops,
                      .bytes = 8.0 * (double) (batch * seq * d) };
}

#endif
