/* Pins what products take inside a training step: on a hot chip, by number format, with results of more than 16 bits,
 * and of rows that are not aligned. */
#include "ls_test.h"
#include "fixtures.h"

static void
sustained_slows_gemms_and_nothing_else (void)
{
  LsGpu gpu = round_gpu ();
  LsCalibration c;
  ls_calibration_init_roofline (&c);
  LsKernel matrix = gemm (4096, 4096, 4096, 1), flash = attention (16, 2048, 128);
  LsKernelCost loop = ls_kernel_cost (&c, &gpu, &matrix), flash_loop = ls_kernel_cost (&c, &gpu, &flash);
  c.sustained = 0.8;
  LsKernelCost step = ls_kernel_cost (&c, &gpu, &matrix), flash_step = ls_kernel_cost (&c, &gpu, &flash);
  LS_CHECK_NEAR (step.compute_s, loop.compute_s / 0.8, 1e-12);
  LS_CHECK_DOUBLE (step.memory_s, ==, loop.memory_s);
  LS_CHECK_INT (flash_step.alone, ==, flash_loop.alone);
  c.sustained = 0;
  LS_CHECK_INT (ls_kernel_cost (&c, &gpu, &matrix).alone, ==, loop.alone);
  ls_calibration_clear (&c);
}

static LsKernel
in_format (LsKernel kernel, LsDtype dtype)
{
  kernel.dtype = dtype;
  return kernel;
}

/* A format without a rate of its own takes that of 16 bits. */
static void
number_formats_may_sustain_another_rate (void)
{
  LsGpu gpu = round_gpu ();
  gpu.peak_flops[LS_DTYPE_FP8] = gpu.peak_flops[LS_DTYPE_NVFP4] = 100e12;
  LsCalibration c;
  ls_calibration_init_roofline (&c);
  LsKernel bf16 = gemm (4096, 4096, 4096, 1), fp8 = in_format (bf16, LS_DTYPE_FP8),
           nvfp4 = in_format (bf16, LS_DTYPE_NVFP4);
  double peak_s = bf16.flops / 100e12;
  c.sustained = 0.8;
  LS_CHECK_NEAR (ls_kernel_cost (&c, &gpu, &fp8).compute_s, peak_s / 0.8, 1e-12);
  LS_CHECK_NEAR (ls_kernel_cost (&c, &gpu, &nvfp4).compute_s, peak_s / 0.8, 1e-12);
  c.sustained_fp8 = 0.5;
  c.sustained_nvfp4 = 0.25;
  LS_CHECK_NEAR (ls_kernel_cost (&c, &gpu, &bf16).compute_s, peak_s / 0.8, 1e-12);
  LS_CHECK_NEAR (ls_kernel_cost (&c, &gpu, &fp8).compute_s, peak_s / 0.5, 1e-12);
  LS_CHECK_NEAR (ls_kernel_cost (&c, &gpu, &nvfp4).compute_s, peak_s / 0.25, 1e-12);
  ls_calibration_clear (&c);
}

/* Of a result that is added to in fp32, 8 bytes an element, all but the 2 that a 16-bit result has count as wide;
 * half of them are exposed here. What is exposed is not hidden as well. Of matrices in one kernel all count. */
static void
wide_results_are_exposed_in_part (void)
{
  LsGpu gpu = round_gpu ();
  LsKindFit fit = { .compute_efficiency = 1, .memory_efficiency = 1, .wide_exposed = 0.5 };
  uint64_t n = 4096;
  double elements = (double) (n * n), flops_s = 2 * elements * (double) n / 100e12,
         byte_s = 1 / gpu.hbm_bytes_per_s;
  LsKernel narrow = gemm (n, n, n, 1), added = ls_kernel_gemm ("wgrad", LS_DTYPE_BF16, n, n, n, 1, 4, true),
           stored = ls_kernel_gemm ("wgrad", LS_DTYPE_BF16, n, n, n, 1, 4, false),
           added_16 = ls_kernel_gemm ("wgrad", LS_DTYPE_BF16, n, n, n, 1, 2, true),
           four = ls_kernel_gemm ("wgrad", LS_DTYPE_BF16, n, n, n, 4, 4, true);
  const struct {
    const LsKernel *kernel;
    double matrices, wide; /* bytes an element */
  } cases[]
      = { { &narrow, 1, 0 }, { &added, 1, 6 }, { &stored, 1, 2 }, { &added_16, 1, 2 }, { &four, 4, 6 } };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    double exposed = 0.5 * cases[i].wide * elements * cases[i].matrices;
    LsKernelCost cost = ls_kernel_cost_by (&fit, 1, &gpu, cases[i].kernel);
    LS_CHECK_NEAR (cost.compute_s, cases[i].matrices * flops_s + exposed * byte_s, 1e-12);
    LS_CHECK_NEAR (cost.memory_s, (cases[i].kernel->bytes - exposed) * byte_s, 1e-12);
  }
}

/* A GEMM that reads rows on no 16 bytes, of 1e10 FLOPs at 100 TFLOP/s: 100 us aligned, 1 ms at a tenth of
 * the peak. Without a rate it is as if aligned, and said to be beyond what was measured. */
static void
unaligned_gemms_reach_their_own_rate (void)
{
  LsGpu gpu = round_gpu ();
  LsCalibration c;
  ls_calibration_init_roofline (&c);
  LsKernel deep = gemm (1000, 1000, 5000, 1);
  deep.unaligned = true;
  LsKernelCost cost = ls_kernel_cost (&c, &gpu, &deep);
  LS_CHECK_INT (cost.alone, ==, 100 * LS_US);
  LS_CHECK (cost.extrapolated);
  c.gemm_unaligned = 0.1;
  cost = ls_kernel_cost (&c, &gpu, &deep);
  LS_CHECK_INT (cost.alone, ==, LS_MS);
  LS_CHECK_INT (cost.bound, ==, LS_BOUND_COMPUTE);
  LS_CHECK (!cost.extrapolated);
  deep.unaligned = false;
  LS_CHECK_INT (ls_kernel_cost (&c, &gpu, &deep).alone, ==, 100 * LS_US);
  deep.unaligned = true;
  deep.dtype = LS_DTYPE_NVFP4; /* whose numbers are no whole bytes */
  LS_CHECK_INT (ls_kernel_cost (&c, &gpu, &deep).alone, >, 0);
  ls_calibration_clear (&c);
}

/* Attention of 1e10 FLOPs at 100 TFLOP/s: 100 us, and with a mask at half of the rate 200. */
static void
attention_with_a_mask_has_its_own_rate (void)
{
  LsGpu gpu = round_gpu ();
  LsCalibration c;
  ls_calibration_init_roofline (&c);
  LsKernel k = { .name = "flash-attention-fwd", .kind = LS_KERNEL_ATTENTION_FWD, .dtype = LS_DTYPE_FP16 };
  k.m = k.n = 1000, k.k = 100, k.batch = 25, k.flops = 1e10, k.bytes = 1e3;
  LsTime alone = ls_kernel_cost (&c, &gpu, &k).alone;
  k.masked = true;
  LsKernelCost cost = ls_kernel_cost (&c, &gpu, &k);
  LS_CHECK_INT (cost.alone, ==, alone);
  LS_CHECK (cost.extrapolated);
  c.attention_masked = 0.5;
  cost = ls_kernel_cost (&c, &gpu, &k);
  LS_CHECK_INT (cost.alone, ==, 2 * alone);
  LS_CHECK (!cost.extrapolated);
  ls_calibration_clear (&c);
}

LS_TEST_SUITE (LS_TEST (sustained_slows_gemms_and_nothing_else),
               LS_TEST (number_formats_may_sustain_another_rate), LS_TEST (wide_results_are_exposed_in_part),
               LS_TEST (unaligned_gemms_reach_their_own_rate),
               LS_TEST (attention_with_a_mask_has_its_own_rate))
