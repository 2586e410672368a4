/* Pins the roofline on TPUs: worked examples of the scaling book (tpu-* of
 * tests/README.md, within the tolerances given there). */
#include "ls_test.h"

#include "compute/cost.h"

static double
alone_ms (const LsKernel *kernel, double peak, double hbm)
{
  LsCalibration roofline;
  LsGpu gpu = { .hbm_bytes_per_s = hbm, .hbm_efficiency = 1, .n_sm = 1 };
  gpu.peak_flops[LS_DTYPE_BF16] = gpu.peak_flops[LS_DTYPE_FP8] = peak;
  ls_calibration_init_roofline (&roofline);
  LsKernelCost cost = ls_kernel_cost (&roofline, &gpu, kernel);
  ls_calibration_clear (&roofline);
  return ls_time_to_s (cost.alone) * 1e3;
}

static double
read_ms (double bytes, double hbm)
{
  const LsKernel reading
      = { .name = "read", .kind = LS_KERNEL_ELEMENTWISE, .dtype = LS_DTYPE_BF16, .bytes = bytes };
  return alone_ms (&reading, 1e15, hbm);
}

static void
parameters_come_from_hbm (void)
{
  LS_CHECK_NEAR (read_ms (2 * 200e9 / 32, 1.23e12), 10, 0.03); /* tpu-hbm-1 */
  LS_CHECK_NEAR (read_ms (16e9, 8.1e11), 19, 0.05);            /* tpu-q6-c  */
}

/* tpu-q6-d: 8 rows by a square matrix, the time of its FLOPs. */
static void
few_rows_take_the_time_of_their_flops (void)
{
  LsKernel gemm = ls_kernel_gemm ("mm", LS_DTYPE_BF16, 8, 128 * 1024, 128 * 1024, 1, 2, false);
  LS_CHECK_NEAR (alone_ms (&gemm, 1.97e14, 1e18), 1.3, 0.08);
}

/* tpu-mm-1: int8[16384,4096] by [B,4096] is bound by memory below some B. One byte an
 * element as fp8 has it. */
static void
int8_becomes_bound_by_compute (void)
{
  double peak = 3.94e14;
  uint64_t b = 1;
  for (; b < 1000; b++) {
    LsKernel gemm = ls_kernel_gemm ("mm", LS_DTYPE_FP8, b, 16384, 4096, 1, 1, false);
    double compute_ms = 2.0 * 16384 * 4096 * (double) b / peak * 1e3;
    if (alone_ms (&gemm, peak, 8.1e11) <= compute_ms * (1 + 1e-6))
      break;
  }
  LS_CHECK_NEAR ((double) b, 271, 0.04);
}

LS_TEST_SUITE (LS_TEST (parameters_come_from_hbm), LS_TEST (few_rows_take_the_time_of_their_flops),
               LS_TEST (int8_becomes_bound_by_compute))
