/* The clock of a job: what a power limit leaves, and the slowest of n GPUs, worked out by hand;
 * which kernels it slows. */
#include "ls_test.h"

#include "compute/cost.h"

static LsGpu
gpu_of (double limited, double spread)
{
  LsGpu gpu = { .n_sm = 100,
                .hbm_bytes_per_s = 1e12,
                .vector_flops = 10e12,
                .power_limited_flops = limited,
                .clock_spread = spread };
  gpu.peak_flops[LS_DTYPE_BF16] = 100e12;
  return gpu;
}

static double
clock_of (double limited, double spread, uint32_t n_gpus)
{
  LsGpu gpu = gpu_of (limited, spread);
  LsCalibration c;
  ls_calibration_init_roofline (&c);
  c.sustained = 0.9;
  c.kind[LS_KERNEL_GEMM].compute_efficiency = 0.8;
  c.kind[LS_KERNEL_GEMM].throttle = 0.2;
  double clock = ls_clock (&c, &gpu, n_gpus);
  ls_calibration_clear (&c);
  return clock;
}

/* Hot GEMMs reach 0.8 * 0.9 * 100 / 1.2 = 60 TFLOP/s. */
static void
a_power_limit_counts_where_it_is_below_what_is_reached (void)
{
  LS_CHECK_NEAR (clock_of (0, 0, 64), 1, 0);
  LS_CHECK_NEAR (clock_of (45e12, 0, 64), 0.75, 1e-12);
  LS_CHECK_NEAR (clock_of (70e12, 0, 64), 1, 0);
}

/* T4 and V100 have fp16 and no bf16. */
static void
a_power_limit_counts_without_bf16 (void)
{
  LsGpu gpu = gpu_of (50e12, 0);
  gpu.peak_flops[LS_DTYPE_BF16] = 0;
  gpu.peak_flops[LS_DTYPE_FP16] = 100e12;
  LsCalibration c;
  ls_calibration_init_roofline (&c);
  LS_CHECK_NEAR (ls_clock (&c, &gpu, 1), 0.5 / c.kind[LS_KERNEL_GEMM].compute_efficiency, 1e-12);
  ls_calibration_clear (&c);
}

/* Means of the largest of n normal draws: 0.564, 1.424, 2.376 and 3.240 for 2, 8, 64 and 1024
 * (Harter, Biometrika 48, 1961, up to 400); Blom's formula is within 0.06 of them. */
static void
the_slowest_of_many_sets_the_pace (void)
{
  static const struct {
    uint32_t n;
    double largest;
  } known[] = { { 2, 0.564 }, { 8, 1.424 }, { 64, 2.376 }, { 1024, 3.240 } };
  LS_CHECK_NEAR (clock_of (0, 0.02, 1), 1, 0);
  for (guint i = 0; i < G_N_ELEMENTS (known); i++)
    LS_CHECK_NEAR ((1 / clock_of (0, 0.02, known[i].n) - 1) / 0.02, known[i].largest, 0.06);
  LS_CHECK_NEAR (clock_of (45e12, 0.02, 64), 0.75 * clock_of (0, 0.02, 64), 1e-12);
}

static double
slower_at_half_clock (LsKernel kernel)
{
  LsGpu gpu = gpu_of (0, 0);
  LsCalibration c;
  ls_calibration_init_roofline (&c);
  double full = ls_kernel_cost (&c, &gpu, &kernel).compute_s;
  c.clock = 0.5;
  double half = ls_kernel_cost (&c, &gpu, &kernel).compute_s;
  ls_calibration_clear (&c);
  return half / full;
}

static void
only_matrix_units_follow_it (void)
{
  LS_CHECK_NEAR (slower_at_half_clock (ls_kernel_gemm ("g", LS_DTYPE_BF16, 4096, 4096, 4096, 1, 2, false)), 2,
                 1e-9);
  LS_CHECK_NEAR (slower_at_half_clock (
                     ls_kernel_stream ("s", LS_KERNEL_ELEMENTWISE, LS_DTYPE_BF16, 4096, 4096, 1e6, 1e9)),
                 1, 1e-9);
}

LS_TEST_SUITE (LS_TEST (a_power_limit_counts_where_it_is_below_what_is_reached),
               LS_TEST (a_power_limit_counts_without_bf16), LS_TEST (the_slowest_of_many_sets_the_pace),
               LS_TEST (only_matrix_units_follow_it))
