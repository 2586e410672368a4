#include "compute/clock.h"

#include "base/draw.h"

/* Of what a power limit leaves. */
static double
power_share (const LsCalibration *c, const LsGpu *gpu)
{
  const LsKindFit *gemm = &c->kind[LS_KERNEL_GEMM];
  double sustained = c->sustained > 0 ? c->sustained : 1;
  double peak = gpu->peak_flops[gpu->peak_flops[LS_DTYPE_BF16] > 0 ? LS_DTYPE_BF16 : LS_DTYPE_FP16];
  double reached = gemm->compute_efficiency * sustained * peak / (1 + gemm->throttle);
  return gpu->power_limited_flops > 0 && reached > gpu->power_limited_flops
      ? gpu->power_limited_flops / reached
      : 1;
}

static double
largest_of (uint32_t n)
{
  return n > 1 ? ls_normal_quantile ((n - 0.375) / (n + 0.25)) : 0;
}

double
ls_clock (const LsCalibration *c, const LsGpu *gpu, uint32_t n_gpus)
{
  return power_share (c, gpu) / (1 + gpu->clock_spread * largest_of (n_gpus));
}
