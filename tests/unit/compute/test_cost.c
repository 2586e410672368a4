/* The cost of one kernel: each limit of the formula, its worked example, and what
 * must hold for every kernel. Numbers that the formula gives are written out. */
#include "ls_test.h"

#include "fixtures.h"

static void
roofline_is_peak_or_bandwidth (void)
{
  LsGpu gpu = round_gpu ();
  LsCalibration c;
  ls_calibration_init_roofline (&c);

  LsKernel deep = gemm (1000, 1000, 5000, 1); /* 1e10 FLOPs, 22 MB */
  LsKernelCost cost = ls_kernel_cost (&c, &gpu, &deep);
  LS_CHECK_INT (cost.alone, ==, 100 * LS_US);
  LS_CHECK_INT (cost.bound, ==, LS_BOUND_COMPUTE);
  LS_CHECK_INT (cost.source, ==, LS_COST_ROOFLINE);
  LS_CHECK (!cost.extrapolated);

  LsKernel stream = ls_kernel_stream ("add", LS_KERNEL_ELEMENTWISE, LS_DTYPE_BF16, 1, 1, 6e8, 1e9);
  cost = ls_kernel_cost (&c, &gpu, &stream);
  LS_CHECK_INT (cost.alone, ==, 600 * LS_US);
  LS_CHECK_NEAR (cost.compute_s, 1e9 / 10e12, 1e-12); /* on the vector units */
  LS_CHECK_INT (cost.bound, ==, LS_BOUND_MEMORY);
  ls_calibration_clear (&c);
  LS_CHECK (c.name == NULL);
  ls_calibration_clear (NULL);
}

/* The example in the header of cost.c, computed there by hand. */
static void
worked_example_takes_106_us (void)
{
  LsGpu a100 = { .n_sm = 108, .hbm_bytes_per_s = 2.039e12 };
  a100.peak_flops[LS_DTYPE_BF16] = 312e12;
  LsKindFit fit = { .compute_efficiency = 0.9,
                    .depth_half = 200,
                    .tile_half = 20,
                    .wave_rounding = 0.5,
                    .memory_efficiency = 1 };
  LsKernel kernel = gemm (2048, 1536, 4096, 1);
  LsCalibration c = calibration_of (LS_KERNEL_GEMM, fit);
  LS_CHECK_NEAR (ls_kernel_cost (&c, &a100, &kernel).compute_s, 105.8e-6, 1e-3);

  c.kind[LS_KERNEL_GEMM].wave_rounding = 0;
  LS_CHECK_NEAR (ls_kernel_cost (&c, &a100, &kernel).compute_s, 96.3e-6, 1e-3);
  ls_calibration_clear (&c);
}

/* Units of a sixteenth of the rate: what a tile takes besides its products is as long, so a sixteenth of it in
 * products, and they do not heat the chip. 2 m n k / (0.8 peak) (1 + 8 / 4096) in 16 whole waves of tiles of
 * 256 x 128; in 16 bits 1 + 128 / 4096. */
static void
fp32_products_are_of_slower_units (void)
{
  LsGpu gpu = round_gpu ();
  gpu.vector_flops = gpu.peak_flops[LS_DTYPE_FP32] = 100e12 / 16;
  LsKindFit fit = tiled_fit ();
  fit.throttle = 0.1;
  fit.tile_half = fit.memory_efficiency = 0;
  LsCalibration c = calibration_of (LS_KERNEL_GEMM, fit);
  LsKernel narrow = gemm (256 * 40, 128 * 40, 4096, 1);
  LsKernel wide = ls_kernel_gemm ("gemm", LS_DTYPE_FP32, narrow.m, narrow.n, narrow.k, 1, 4, false);
  double flops = 2.0 * 256 * 40 * 128 * 40 * 4096;
  LS_CHECK_NEAR (ls_kernel_cost (&c, &gpu, &narrow).compute_s, flops / 80e12 * (1 + 128.0 / 4096) * 1.1,
                 1e-9);
  LS_CHECK_NEAR (ls_kernel_cost (&c, &gpu, &wide).compute_s, flops / 5e12 * (1 + 8.0 / 4096), 1e-9);
  ls_calibration_clear (&c);
}

static void
empty_kernel_costs_its_launch (void)
{
  LsKindFit fit = tiled_fit ();
  LsKernel tiny = gemm (8, 8, 8, 1);
  LsKernelCost cost = cost_with (&fit, &tiny);
  LS_CHECK_INT (cost.bound, ==, LS_BOUND_LAUNCH);
  LS_CHECK_INT (cost.alone, >=, 3 * LS_US);
  LS_CHECK_INT (cost.alone, <, 6 * LS_US);

  LsKernel nothing = ls_kernel_stream ("nothing", LS_KERNEL_GEMM, LS_DTYPE_BF16, 0, 0, 0, 0);
  LS_CHECK_INT (cost_with (&fit, &nothing).alone, ==, 3 * LS_US);
}

/* Deep and wide: tiles, waves and prologue no longer matter. */
static void
huge_gemm_approaches_the_efficiency (void)
{
  LsKindFit fit = tiled_fit ();
  LsKernel kernel = gemm (32768, 32768, 65536, 1);
  LsKernelCost cost = cost_with (&fit, &kernel);
  LS_CHECK_NEAR (cost.compute_s, kernel.flops / (0.8 * 100e12), 0.01);
  LS_CHECK_INT (cost.bound, ==, LS_BOUND_COMPUTE);
  LS_CHECK (cost.extrapolated);
}

static void
shallow_gemm_is_bound_by_memory (void)
{
  LsKindFit fit = tiled_fit ();
  LsKernel kernel = gemm (32768, 32768, 16, 1); /* 2.1 GB out, 3.4e10 FLOPs */
  fit.depth_half = 0;
  LsKernelCost cost = cost_with (&fit, &kernel);
  LS_CHECK_INT (cost.bound, ==, LS_BOUND_MEMORY);
  LS_CHECK_NEAR (ls_time_to_s (cost.alone), 3e-6 + kernel.bytes / 0.75e12, 1e-9);
}

/* With whole waves and one tile size in reach, one tile more than the SMs hold
 * doubles the time. (64 x 64 is the smallest tile; k = 64 allows no split.) */
static void
one_tile_too_many_starts_a_wave (void)
{
  LsKindFit fit = { .compute_efficiency = 1, .wave_rounding = 1, .memory_efficiency = 1 };
  LsKernel full = gemm (64, 100 * 64, 64, 1), over = gemm (64, 100 * 64 + 1, 64, 1);
  double tile_s = 2.0 * 64 * 64 * 64 / 1e12;
  LS_CHECK_NEAR (cost_with (&fit, &full).compute_s, tile_s, 1e-12);
  LS_CHECK_NEAR (cost_with (&fit, &over).compute_s, 2 * tile_s, 1e-12);
}

/* 64 x 64 x 65536 is a single tile: only a cut along k uses more than one SM. */
static void
deep_narrow_gemm_is_cut_along_k (void)
{
  LsKindFit fit = { .compute_efficiency = 1, .wave_rounding = 1, .memory_efficiency = 1 };
  LsKernel kernel = gemm (64, 64, 65536, 1);
  double one_tile_s = kernel.flops / 1e12;
  double partial_s = 8.0 * 8 * 64 * 64 / 1e12;
  LS_CHECK_NEAR (cost_with (&fit, &kernel).compute_s, one_tile_s / 8 + partial_s, 1e-12);
}

/* 2560 x 2560: 100 tiles of 256 x 256, one for each SM. The largest tile is then the measure of the others. */
static void
square_tile_is_one_more_of_the_list (void)
{
  LsKindFit fit = { .compute_efficiency = 1, .tile_half = 20, .wave_rounding = 1, .memory_efficiency = 1 };
  LsKernel wide = gemm (2560, 2560, 128, 1), narrow = gemm (25600, 128, 128, 1);
  double half_s = 2.0 * 256 * 128 * 128 / 1e12;
  double slow = (1 + 10 * (1 / 256.0 + 1 / 128.0)) / (1 + 20 / 256.0);
  LS_CHECK_NEAR (cost_with (&fit, &narrow).compute_s, half_s, 1e-12);
  fit.square_tile = 256;
  LS_CHECK_NEAR (cost_with (&fit, &wide).compute_s, 2 * half_s, 1e-12);
  LS_CHECK_NEAR (cost_with (&fit, &narrow).compute_s, slow * half_s, 1e-12);
}

/* 110 tiles of 256 x 128 on 100 SMs, two waves. Of 128 x 128 they are 220: three waves of half the work. By their share
 * alone both are 1.1, and a library that reckons so takes the larger. */
static void
library_blind_to_waves_takes_the_larger_tile (void)
{
  LsKindFit fit = { .compute_efficiency = 1, .wave_rounding = 1, .memory_efficiency = 1 };
  LsKernel kernel = gemm (11 * 256, 10 * 128, 128, 1);
  double tile_s = 2.0 * 256 * 128 * 128 / 1e12;
  LS_CHECK (cost_with (&fit, &kernel).compute_s < 1.6 * tile_s);
  fit.wave_blind = true;
  LS_CHECK_NEAR (cost_with (&fit, &kernel).compute_s, 2 * tile_s, 1e-12);
}

/* Input and result stay in the L2 while they fit, half of them at 1.5 times its size; what adds to fp32 results does not. */
static void
gemm_reads_only_its_weights_while_the_rest_fits (void)
{
  LsKindFit fit = { .compute_efficiency = 1, .memory_efficiency = 1 };
  LsKernel kernel = gemm (128, 512, 4096, 1),
           sum = ls_kernel_gemm ("w", LS_DTYPE_BF16, 128, 512, 4096, 1, 4, true);
  double weights = 2.0 * 512 * 4096, rest = 2.0 * 128 * 4096 + 2.0 * 128 * 512;
  LS_CHECK_NEAR (cost_with (&fit, &kernel).memory_s, (weights + rest) / 1e12, 1e-15);
  fit.cache_bytes = rest;
  LS_CHECK_NEAR (cost_with (&fit, &kernel).memory_s, weights / 1e12, 1e-15);
  LS_CHECK_NEAR (cost_with (&fit, &sum).memory_s, sum.bytes / 1e12, 1e-15);
  fit.cache_bytes = rest / 1.5;
  LS_CHECK_NEAR (cost_with (&fit, &kernel).memory_s, (weights + rest / 2) / 1e12, 1e-15);
}

/* A cut that leaves 256 of k is made, one that leaves less is not. */
static void
no_cut_leaves_less_than_256_of_k (void)
{
  LsKindFit fit = { .compute_efficiency = 1, .wave_rounding = 1, .memory_efficiency = 1 };
  LsKernel deep = gemm (64, 64, 512, 1), shallow = gemm (64, 64, 511, 1);
  double partial_s = 8.0 * 2 * 64 * 64 / 1e12;
  LS_CHECK_NEAR (cost_with (&fit, &deep).compute_s, deep.flops / 1e12 / 2 + partial_s, 1e-12);
  LS_CHECK_NEAR (cost_with (&fit, &shallow).compute_s, shallow.flops / 1e12, 1e-12);
}

/* Scores of unfused attention: 24 heads write 201 MB for 26 GFLOPs. */
static void
batched_scores_are_bound_by_memory (void)
{
  LsKindFit fit = tiled_fit ();
  fit.depth_half = 0;
  LsKernel scores = gemm (2048, 2048, 128, 24);
  LS_CHECK_INT (scores.kind, ==, LS_KERNEL_BATCHED_GEMM);
  LsGpu gpu = round_gpu ();
  gpu.peak_flops[LS_DTYPE_BF16] = 312e12;
  LsCalibration c = calibration_of (LS_KERNEL_BATCHED_GEMM, fit);
  LsKernelCost cost = ls_kernel_cost (&c, &gpu, &scores);
  LS_CHECK_INT (cost.bound, ==, LS_BOUND_MEMORY);
  LS_CHECK_NEAR (cost.memory_s, 24 * 2.0 * (2048.0 * 2048 + 2 * 2048 * 128) / 0.75e12, 1e-12);
  ls_calibration_clear (&c);
}

/* A batch fills waves together: it never costs more than its members in turn. */
static void
batch_costs_at_most_its_members (void)
{
  LsKindFit fit = tiled_fit ();
  LsKernel one = gemm (512, 512, 1024, 1), many = gemm (512, 512, 1024, 16);
  LS_CHECK_DOUBLE (cost_with (&fit, &many).compute_s, <=, 16 * cost_with (&fit, &one).compute_s);
}

/* Worked examples gpu-mm-1, gpu-mm-2, gpu-add-1, gpu-add-2, rl-2 and rl-5 (tests/README.md): data sheets
 * alone. */
static void
rooflines_of_the_book (void)
{
  LsGpu b200 = { .n_sm = 148, .hbm_bytes_per_s = 8e12, .vector_flops = 80e12 };
  LsGpu h100 = { .n_sm = 132, .hbm_bytes_per_s = 3.35e12, .vector_flops = 67e12 };
  b200.peak_flops[LS_DTYPE_FP16] = 2.3e15;
  h100.peak_flops[LS_DTYPE_BF16] = 1e15;
  LsCalibration c;
  ls_calibration_init_roofline (&c);
  LsKernel thin = ls_kernel_gemm ("g", LS_DTYPE_FP16, 64, 8192, 4096, 1, 2, false);
  LsKernel thick = ls_kernel_gemm ("g", LS_DTYPE_FP16, 512, 8192, 4096, 1, 2, false);
  LS_CHECK_NEAR (ls_time_to_s (ls_kernel_cost (&c, &b200, &thin).alone), 8.58522e-6, 1e-2);
  LS_CHECK_INT (ls_kernel_cost (&c, &b200, &thin).bound, ==, LS_BOUND_MEMORY);
  LS_CHECK_NEAR (ls_time_to_s (ls_kernel_cost (&c, &b200, &thick).alone), 14.939e-6, 1e-2);
  LS_CHECK_INT (ls_kernel_cost (&c, &b200, &thick).bound, ==, LS_BOUND_COMPUTE);

  LsKernel add
      = ls_kernel_stream ("add", LS_KERNEL_ELEMENTWISE, LS_DTYPE_FP32, 1, 1 << 30, 12.0 * (1 << 30), 1 << 30);
  LsKernel small
      = ls_kernel_stream ("add", LS_KERNEL_ELEMENTWISE, LS_DTYPE_FP32, 1, 65536, 12.0 * 65536, 65536);
  LS_CHECK_NEAR (ls_time_to_s (ls_kernel_cost (&c, &h100, &add).alone), 3.84624e-3, 1e-2);
  LS_CHECK_NEAR (ls_time_to_s (ls_kernel_cost (&c, &h100, &small).alone), 0.234756e-6, 3e-2);

  /* rl-2: with 298 tokens or fewer, a large weight matrix costs its bytes; 1 % off for the activations. */
  LsKernel below = gemm (290, 1 << 17, 1 << 17, 1), above = gemm (307, 1 << 17, 1 << 17, 1);
  LS_CHECK_INT (ls_kernel_cost (&c, &h100, &below).bound, ==, LS_BOUND_MEMORY);
  LS_CHECK_INT (ls_kernel_cost (&c, &h100, &above).bound, ==, LS_BOUND_COMPUTE);
  ls_calibration_clear (&c);
}

static void
long_kernels_of_a_loop_run_hot (void)
{
  LsKindFit fit = { .compute_efficiency = 1, .throttle = 0.2, .burst = 100 * LS_US, .memory_efficiency = 1 };
  LsKernel brief = gemm (1000, 1000, 5000, 1), longer = gemm (1000, 1000, 20000, 1); /* 100 us, 400 us */
  LS_CHECK_NEAR (cost_with (&fit, &brief).compute_s, 100e-6, 1e-12);
  LS_CHECK_NEAR (cost_with (&fit, &longer).compute_s, 400e-6 * (1 + 0.2 * 0.75), 1e-12);

  LsGpu gpu = round_gpu (); /* in a step both do, as long as they take */
  LS_CHECK_NEAR (ls_kernel_cost_by (&fit, 0.5, &gpu, &brief).compute_s, 100e-6 / 0.5 * 1.2, 1e-12);
}

/* Equal terms and p = 2: sqrt (2) of each. */
static void
what_does_not_overlap_stretches_both_terms (void)
{
  LsKindFit fit = { .compute_efficiency = 1, .overlap = 2, .memory_efficiency = 1 };
  LsKernel even = gemm (1000, 1000, 5000, 1);
  even.bytes = 100e6; /* 100 us as well */
  LsKernelCost cost = cost_with (&fit, &even);
  LS_CHECK_NEAR (cost.compute_s, 100e-6 * sqrt (2), 1e-12);
  LS_CHECK_NEAR (cost.memory_s, cost.compute_s, 1e-12);
  even.bytes = 0;
  LS_CHECK_NEAR (cost_with (&fit, &even).compute_s, 100e-6, 1e-12);
}

static void
timings_hold_more_than_the_kernel (void)
{
  LsGpu gpu = round_gpu ();
  LsKindFit fit = { .timed_host = 5 * LS_US, .timed_efficiency = 0.5 };
  LS_CHECK_NEAR (ls_kernel_timed_besides_s (&fit, &gpu, 1e6, true), 5e-6 + 2e-6, 1e-12);
  LS_CHECK_NEAR (ls_kernel_timed_besides_s (&fit, &gpu, 1e6, false), 2e-6, 1e-12);
  fit.timed_efficiency = 0;
  LS_CHECK_DOUBLE (ls_kernel_timed_besides_s (&fit, &gpu, 1e6, false), ==, 0);
}

static void
fp8_uses_its_own_fit_only_if_it_has_one (void)
{
  LsGpu gpu = round_gpu ();
  LsCalibration c;
  ls_calibration_init_roofline (&c);
  LsKernel kernel = ls_kernel_gemm ("gemm", LS_DTYPE_FP8, 4096, 4096, 4096, 1, 2, false);
  LS_CHECK_NEAR (ls_kernel_cost (&c, &gpu, &kernel).compute_s, kernel.flops / 200e12, 1e-12);

  c.kind[LS_ENTRY_GEMM_FP8]
      = (LsKindFit) { .is_fitted = true, .compute_efficiency = 0.5, .memory_efficiency = 1 };
  LsKernelCost cost = ls_kernel_cost (&c, &gpu, &kernel);
  LS_CHECK_NEAR (cost.compute_s, kernel.flops / 100e12, 1e-12);
  LS_CHECK_INT (cost.source, ==, LS_COST_FITTED);

  LsKernel by_blocks = kernel;
  by_blocks.by_blocks = true;
  LS_CHECK_INT (ls_kernel_cost (&c, &gpu, &by_blocks).alone, ==, cost.alone);
  c.kind[LS_ENTRY_GEMM_FP8_BLOCKS]
      = (LsKindFit) { .is_fitted = true, .compute_efficiency = 0.25, .memory_efficiency = 1 };
  LS_CHECK_NEAR (ls_kernel_cost (&c, &gpu, &by_blocks).compute_s, kernel.flops / 50e12, 1e-12);
  LS_CHECK_INT (ls_kernel_cost (&c, &gpu, &kernel).alone, ==, cost.alone);

  gpu.peak_flops[LS_DTYPE_FP8] = 0; /* matrix units without fp8: the vector units do it */
  LS_CHECK_NEAR (ls_kernel_cost (&c, &gpu, &kernel).compute_s, kernel.flops / 5e12, 1e-12);
  ls_calibration_clear (&c);
}

static void
extrapolation_is_outside_the_range_of_the_fit (void)
{
  LsKindFit fit = tiled_fit (); /* 1e9 to 1e13 */
  LsKernel below = gemm (256, 256, 256, 1), inside = gemm (4096, 4096, 4096, 1),
           above = gemm (32768, 32768, 32768, 1);
  LS_CHECK (cost_with (&fit, &below).extrapolated);
  LS_CHECK (!cost_with (&fit, &inside).extrapolated);
  LS_CHECK (cost_with (&fit, &above).extrapolated);

  LsKernel stream
      = ls_kernel_stream ("add", LS_KERNEL_ELEMENTWISE, LS_DTYPE_BF16, 1, 1, 2e9, 0); /* bytes count here */
  LS_CHECK (!cost_with (&fit, &stream).extrapolated);
  fit.max_work = 1.5e9;
  LS_CHECK (cost_with (&fit, &stream).extrapolated);
}

static void
beside_nobody_is_alone (void)
{
  LsKindFit fit = tiled_fit ();
  LsKernel kernels[] = { gemm (2048, 2048, 2048, 1), gemm (2048, 2048, 64, 24), gemm (8, 8, 8, 1) };
  for (size_t i = 0; i < G_N_ELEMENTS (kernels); i++) {
    LsKernelCost cost = cost_with (&fit, &kernels[i]);
    LS_CHECK_INT (ls_kernel_time_beside (&cost, 0), ==, cost.alone);
  }
}

/* A quarter of the SMs gone: compute takes 4/3, memory what it took. */
static void
lost_sms_slow_only_the_compute_term (void)
{
  LsKernelCost cost = { .launch_s = 2e-6, .compute_s = 30e-6, .memory_s = 10e-6 };
  LS_CHECK_INT (ls_kernel_time_beside (&cost, 0.25), ==, 42 * LS_US);
  cost.memory_s = 100e-6;
  LS_CHECK_INT (ls_kernel_time_beside (&cost, 0.25), ==, 102 * LS_US);
}

/* With wave_rounding 0 the time rises with each dimension; with bytes always. */
static void
more_work_never_takes_less_time (void)
{
  LsKindFit even = tiled_fit (),
            stream_fit = { .compute_efficiency = 1, .memory_efficiency = 0.8, .launch = LS_US };
  even.wave_rounding = 0;
  LsTime last_gemm = 0, last_stream = 0;
  for (uint64_t n = 16; n <= 16384; n += 48) {
    LsKernel kernel = gemm (512, n, n, 1);
    LsKernel stream
        = ls_kernel_stream ("add", LS_KERNEL_ELEMENTWISE, LS_DTYPE_BF16, 1, n, (double) n * 6e4, 0);
    LsTime gemm_time = cost_with (&even, &kernel).alone, stream_time = cost_with (&stream_fit, &stream).alone;
    LS_CHECK_INT (gemm_time, >, last_gemm);
    LS_CHECK_INT (stream_time, >, last_stream);
    last_gemm = gemm_time;
    last_stream = stream_time;
  }
}

/* Tiled costs step, but never fall: padding to the larger shape is always open. */
static void
tiled_gemm_never_gets_faster_with_size (void)
{
  LsKindFit fit = tiled_fit ();
  LsTime last = 0;
  for (uint64_t m = 1; m <= 4096; m += 37) {
    LsKernel kernel = gemm (m, 1536, 2048, 1);
    LsTime t = cost_with (&fit, &kernel).alone;
    LS_CHECK_INT (t, >=, last);
    last = t;
  }
}

/* --- tiles and waves -------------------------------------------------------------------------------- */

/* Tiles and waves: worked examples tile-* and wave-* (tests/README.md). */

static void
blocks_are_rounded_up_in_both_directions (void)
{
  LS_CHECK_DOUBLE (ls_tile_blocks (8192, 14336, 128, 256), ==, 3584); /* tile-1 */
  LS_CHECK_DOUBLE (ls_tile_blocks (1792, 1792, 256, 128), ==, 98);    /* tile-3 */
  LS_CHECK_DOUBLE (ls_tile_blocks (2304, 1536, 256, 128), ==, 108);   /* tile-4 */
  LS_CHECK_DOUBLE (ls_tile_blocks (2304, 1537, 256, 128), ==, 117);
}

static void
one_block_too_many_starts_a_wave (void)
{
  LS_CHECK_DOUBLE (ls_tile_waves_paid (108, 108, 1), ==, 1);
  LS_CHECK_DOUBLE (ls_tile_waves_paid (109, 108, 1), ==, 2); /* tile-2 */
  LS_CHECK_DOUBLE (ls_tile_waves_paid (117, 108, 1), ==, 2);
}

/* wave-148 ... wave-50000: what 152 SMs save over 148. */
static void
four_more_sms_help_by_the_wave (void)
{
  static const struct {
    double blocks, waves_148, waves_152, speedup;
  } rows[] = { { 148, 1, 1, 1 },   { 152, 2, 1, 2 },         { 296, 2, 2, 1 },
               { 304, 3, 2, 1.5 }, { 3584, 25, 24, 1.0417 }, { 50000, 338, 329, 1.0274 } };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    LS_CHECK_DOUBLE (ls_tile_waves_paid (rows[i].blocks, 148, 1), ==, rows[i].waves_148);
    LS_CHECK_DOUBLE (ls_tile_waves_paid (rows[i].blocks, 152, 1), ==, rows[i].waves_152);
    LS_CHECK_NEAR (ls_tile_waves_paid (rows[i].blocks, 148, 1) / ls_tile_waves_paid (rows[i].blocks, 152, 1),
                   rows[i].speedup, 1e-3);
  }
}

static void
rounding_pays_its_share_of_a_wave (void)
{
  LS_CHECK_DOUBLE (ls_tile_waves_paid (150, 100, 1), ==, 2);
  LS_CHECK_DOUBLE (ls_tile_waves_paid (150, 100, 0), ==, 1.5);
  LS_CHECK_DOUBLE (ls_tile_waves_paid (150, 100, 0.5), ==, 1.75);
  LS_CHECK_DOUBLE (ls_tile_waves_paid (30, 100, 0), ==, 1); /* never less than one */
}

LS_TEST_SUITE (LS_TEST (roofline_is_peak_or_bandwidth), LS_TEST (worked_example_takes_106_us),
               LS_TEST (fp32_products_are_of_slower_units), LS_TEST (empty_kernel_costs_its_launch),
               LS_TEST (huge_gemm_approaches_the_efficiency), LS_TEST (shallow_gemm_is_bound_by_memory),
               LS_TEST (one_tile_too_many_starts_a_wave), LS_TEST (deep_narrow_gemm_is_cut_along_k),
               LS_TEST (no_cut_leaves_less_than_256_of_k), LS_TEST (square_tile_is_one_more_of_the_list),
               LS_TEST (library_blind_to_waves_takes_the_larger_tile),
               LS_TEST (gemm_reads_only_its_weights_while_the_rest_fits),
               LS_TEST (batched_scores_are_bound_by_memory), LS_TEST (batch_costs_at_most_its_members),
               LS_TEST (rooflines_of_the_book), LS_TEST (long_kernels_of_a_loop_run_hot),
               LS_TEST (what_does_not_overlap_stretches_both_terms),
               LS_TEST (timings_hold_more_than_the_kernel), LS_TEST (fp8_uses_its_own_fit_only_if_it_has_one),

               LS_TEST (extrapolation_is_outside_the_range_of_the_fit), LS_TEST (beside_nobody_is_alone),
               LS_TEST (lost_sms_slow_only_the_compute_term), LS_TEST (more_work_never_takes_less_time),
               LS_TEST (tiled_gemm_never_gets_faster_with_size),
               LS_TEST (blocks_are_rounded_up_in_both_directions), LS_TEST (one_block_too_many_starts_a_wave),
               LS_TEST (four_more_sms_help_by_the_wave), LS_TEST (rounding_pays_its_share_of_a_wave))
