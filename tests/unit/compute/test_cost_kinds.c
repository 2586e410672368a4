/* Pins the cost of kernels that are no products, and of products on TPUs. */
#include "ls_test.h"
#include "fixtures.h"

#include "compute/measured.h"

/* The cost of kernels that are no products: attention, streams, access to memory. Numbers that the formula
 * gives are written out. */

/* Seconds of 128 rows and a key, on one of 100 SMs at 0.5 TFLOP/s. */
static double
key_s (double head_dim, double softmax)
{
  return 4 * head_dim * 128 / 0.5e12 * softmax;
}

static void
attention_deals_out_the_tiles_of_a_triangle (void)
{
  LsKindFit fit
      = { .compute_efficiency = 0.5, .depth_half = 512, .width_half = 64, .tail = 1, .memory_efficiency = 1 };
  LsKernel kernel = attention (100, 2048, 128); /* 1600 tiles of (2048 + 128) / 2 + 512 keys on average */
  LS_CHECK_NEAR (cost_with (&fit, &kernel).compute_s, (16 * 1600 + 2560) * key_s (128, 1.5), 1e-12);

  LsKernel narrow = attention (100, 2048, 64); /* half the FLOPs, as many exponentials */
  LS_CHECK_NEAR (cost_with (&fit, &narrow).compute_s, (16 * 1600 + 2560) * key_s (64, 2), 1e-12);

  LsKernel square = kernel; /* no mask: every tile sees all keys */
  square.flops *= 2;
  LS_CHECK_NEAR (cost_with (&fit, &square).compute_s, (16 * 2560 + 2560) * key_s (128, 1.5), 1e-12);

  LsKernel lonely = attention (1, 128, 128); /* one tile on 100 SMs */
  fit.tail = 1e-9;
  LS_CHECK_NEAR (cost_with (&fit, &lonely).compute_s, 640 * key_s (128, 1.5), 1e-9);
}

static void
wide_heads_cost_extra (void)
{
  LsKindFit fit = { .compute_efficiency = 0.5, .tail = 0.5, .wide_slow = 0.25, .memory_efficiency = 1 };
  LsKernel narrow = attention (100, 2048, 128), wide = attention (100, 2048, 256);
  LS_CHECK_NEAR (cost_with (&fit, &wide).compute_s, 2 * 1.25 * cost_with (&fit, &narrow).compute_s, 1e-12);

  LsKindFit spills = fit; /* as FlashAttention with heads of 128 */
  spills.wide_head = 64;
  LS_CHECK_NEAR (cost_with (&spills, &narrow).compute_s, 1.25 * cost_with (&fit, &narrow).compute_s, 1e-12);
  LsKernel at_limit = attention (100, 2048, 64);
  LS_CHECK_DOUBLE (cost_with (&spills, &at_limit).compute_s, ==, cost_with (&fit, &at_limit).compute_s);
}

/* A library with kernels for 64, 128 and so on: heads of 80 and 96 take what those of 128 do. */
static void
heads_run_the_kernel_for_the_next_width (void)
{
  LsKindFit own = { .compute_efficiency = 0.5, .tail = 0.5, .width_half = 20, .memory_efficiency = 1 },
            padded = own;
  padded.width_step = 64;
  LsKernel next = attention (100, 2048, 128), same = attention (100, 2048, 64);
  static const uint64_t widths[] = { 80, 96 };
  for (guint i = 0; i < G_N_ELEMENTS (widths); i++) {
    LsKernel odd = attention (100, 2048, widths[i]);
    LS_CHECK_NEAR (cost_with (&padded, &odd).compute_s, cost_with (&own, &next).compute_s, 1e-12);
    LS_CHECK (cost_with (&own, &odd).compute_s < cost_with (&padded, &odd).compute_s);
  }
  LS_CHECK_DOUBLE (cost_with (&padded, &same).compute_s, ==, cost_with (&own, &same).compute_s);
}

/* Splash attention of TPUs: 2048 queries and keys in blocks of 512 are 10 of 16 under a causal mask, where FLOPs
 * count a half; without a mask all of them, and of one block the whole. */
static void
blocks_under_a_causal_mask_are_whole (void)
{
  LsKindFit fit = { .compute_efficiency = 0.5, .causal_block = 512, .memory_efficiency = 1 };
  LsGpu gpu = { .n_sm = 1, .hbm_bytes_per_s = 1e12, .peak_flops = { [LS_DTYPE_BF16] = 100e12 } };
  static const struct {
    uint64_t seq;
    bool is_causal;
    double share; /* of the square */
  } cases[] = { { 2048, true, 10.0 / 16 }, { 2048, false, 1 }, { 512, true, 1 }, { 256, true, 1 } };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    for (int is_backward = 0; is_backward <= 1; is_backward++) {
      double seq = (double) cases[i].seq, square = 4 * seq * seq * 8 * 128 * (is_backward ? 2.5 : 1);
      LsKernel kernel = ls_kernel_attention ("a", LS_DTYPE_BF16, 1, cases[i].seq, 8, 8, 128,
                                             cases[i].is_causal, is_backward);
      LS_CHECK_NEAR (ls_kernel_cost_by (&fit, 1, &gpu, &kernel).compute_s, cases[i].share * square / 50e12,
                     1e-9);
    }
}

/* Worked example fa-1: 1 x 16,384 tokens, 16 heads of 128, without a mask. */
static void
attention_counts_its_flops (void)
{
  LsKernel full = ls_kernel_attention ("a", LS_DTYPE_BF16, 1, 16384, 16, 16, 128, false, false);
  LS_CHECK_NEAR (full.flops, 2.19902e12, 1e-5);
  LsKernel causal = ls_kernel_attention ("a", LS_DTYPE_BF16, 1, 16384, 16, 16, 128, true, false);
  LsKernel backward = ls_kernel_attention ("a", LS_DTYPE_BF16, 1, 16384, 16, 16, 128, true, true);
  LS_CHECK_DOUBLE (causal.flops, ==, full.flops / 2);
  LS_CHECK_DOUBLE (backward.flops, ==, 2.5 * causal.flops);
}

static double
stream_s (double peak, double bytes_per_s, LsKindFit fit, LsKernelKind kind, double n, double bytes,
          double flops)
{
  LsGpu gpu = { .n_sm = 108, .hbm_bytes_per_s = bytes_per_s, .vector_flops = peak };
  LsKernel kernel = ls_kernel_stream ("stream", kind, LS_DTYPE_FP16, 1, (uint64_t) n, bytes * n, flops * n);
  return ls_time_to_s (ls_kernel_cost_by (&fit, 1, &gpu, &kernel).alone);
}

/* What overlap = 1.65 was taken from (tools/fit/recipe.c), and the layer norms of apex that were reckoned
 * with it (model/operators_build.c): dropout of 2^25 elements on a V100, 572.4 GB/s of 4 bytes each; 2^24
 * elements through layer norm on an A100-40GB, 75.1 us, and 176.2 us for its two backward kernels. */
static void
streams_with_arithmetic_take_what_was_measured (void)
{
  LsKindFit fit = { .compute_efficiency = 1, .overlap = 1.65, .memory_efficiency = 0.918 };
  double n = 1 << 25, v100 = stream_s (15.7e12, 900e9, fit, LS_KERNEL_ELEMENTWISE, n, 5, 43);
  LS_CHECK_NEAR (4 * n / v100, 572.4e9, 0.005);
  fit.memory_efficiency = 0.8813;
  fit.launch = 2 * LS_US;
  n = 1 << 24;
  LS_CHECK_NEAR (stream_s (19.5e12, 1555e9, fit, LS_KERNEL_NORM, n, 4, 55), 75.1e-6, 0.005);
  double backward = stream_s (19.5e12, 1555e9, fit, LS_KERNEL_NORM, n, 4, 48)
      + stream_s (19.5e12, 1555e9, fit, LS_KERNEL_NORM, n, 6, 72);
  LS_CHECK_NEAR (backward, 176.2e-6, 0.005);
}

static void
joining_partial_sums_takes_a_launch (void)
{
  LsKindFit fit = { .compute_efficiency = 1, .wave_rounding = 1, .memory_efficiency = 1 };
  LsKernel kernel = gemm (64, 64, 65536, 1);
  double without = cost_with (&fit, &kernel).compute_s;
  fit.split_launch = 2 * LS_US;
  LS_CHECK_NEAR (cost_with (&fit, &kernel).compute_s, without + 2e-6, 1e-12);
}

/* Of a grouped product the first matrix is launched as any other; one in a batch is none of its own. */
static void
each_matrix_of_a_group_takes_a_launch (void)
{
  LsKindFit fit = { .compute_efficiency = 1, .memory_efficiency = 1, .launch = 2 * LS_US };
  LsKernel one = gemm (4096, 512, 512, 1), group = gemm (4096, 512, 512, 1), batch = gemm (4096, 512, 512, 8);
  group.batch = 8;
  LsTime alone = cost_with (&fit, &one).alone, grouped = cost_with (&fit, &group).alone,
         batched = cost_with (&fit, &batch).alone;
  fit.matrix_launch = 3 * LS_US;
  LS_CHECK_INT (cost_with (&fit, &one).alone, ==, alone);
  LS_CHECK_INT (cost_with (&fit, &group).alone, ==, grouped + 7 * 3 * LS_US);
  LS_CHECK_INT (cost_with (&fit, &batch).alone, ==, batched);
}

/* 20 MB stay in an L2 of that size, half of 30 MB do, nothing of 40 MB. */
static void
small_streams_stay_in_the_l2 (void)
{
  LsKindFit fit = { .compute_efficiency = 1, .cache_bytes = 20e6, .cache_speed = 2, .memory_efficiency = 1 };
  const double bytes[] = { 10e6, 20e6, 30e6, 40e6, 80e6 },
               expected[] = { 5e-6, 10e-6, 22.5e-6, 40e-6, 80e-6 };
  for (guint i = 0; i < G_N_ELEMENTS (bytes); i++) {
    LsKernel stream = ls_kernel_stream ("add", LS_KERNEL_ELEMENTWISE, LS_DTYPE_BF16, 1, 1, bytes[i], 0);
    LS_CHECK_NEAR (cost_with (&fit, &stream).memory_s, expected[i], 1e-12);
  }
}

/* Each way has coefficients of its own; what was measured was measured with another one. */
static void
another_attention_has_its_own_fits (void)
{
  LsGpu gpu = round_gpu ();
  LsCalibration c;
  ls_calibration_init_roofline (&c);
  LsKernel forward = attention (16, 2048, 128), backward = forward;
  backward.kind = LS_KERNEL_ATTENTION_BWD;
  LsMeasuredKernel row = { .kind = LS_KERNEL_ATTENTION_FWD,
                           .dtype = LS_DTYPE_BF16,
                           .m = forward.m,
                           .n = forward.n,
                           .k = forward.k,
                           .batch = forward.batch,
                           .flops = forward.flops,
                           .bytes = forward.bytes,
                           .time = LS_S };
  c.measured = g_array_new (FALSE, TRUE, sizeof row);
  g_array_append_val (c.measured, row);
  LS_CHECK_NEAR (ls_time_to_s (ls_kernel_cost (&c, &gpu, &forward).alone), 1, 1e-6);

  c.attention_kernel = LS_ATTENTION_KERNEL_FA2; /* not known: what is known stays */
  LS_CHECK_NEAR (ls_time_to_s (ls_kernel_cost (&c, &gpu, &forward).alone), 1, 1e-6);
  for (int way = 0; way < 2; way++)
    c.kind[ls_entry_attention (LS_ATTENTION_KERNEL_FA2, way)]
        = (LsKindFit) { .is_fitted = true, .compute_efficiency = way ? 0.25 : 0.5, .memory_efficiency = 1 };
  LS_CHECK_NEAR (ls_kernel_cost (&c, &gpu, &forward).compute_s, forward.flops / 50e12, 1e-12);
  LS_CHECK_NEAR (ls_kernel_cost (&c, &gpu, &backward).compute_s, backward.flops / 25e12, 1e-12);
  c.attention_kernel = LS_ATTENTION_KERNEL_AUTO;
  LS_CHECK_NEAR (ls_time_to_s (ls_kernel_cost (&c, &gpu, &forward).alone), 1, 1e-6);
  ls_calibration_clear (&c);
}

/* cuDNN's attention has coefficients for each format of its operands; another's forward in fp8 is that of
 * attention_fp8. An entry that is a guess counts, and says so. */
static void
attention_in_fp8_is_cudnns (void)
{
  LsGpu gpu = round_gpu ();
  gpu.peak_flops[LS_DTYPE_FP8] = 100e12;
  LsCalibration c = calibration_of (LS_KERNEL_ATTENTION_FWD, tiled_fit ());
  c.kind[LS_ENTRY_ATTENTION_FP8]
      = (LsKindFit) { .is_fitted = true, .compute_efficiency = 0.8, .memory_efficiency = 1 };
  for (int kernel = LS_ATTENTION_KERNEL_CUDNN; kernel <= LS_ATTENTION_KERNEL_CUDNN_MXFP8; kernel++)
    for (int way = 0; way < 2; way++)
      c.kind[ls_entry_attention (kernel, way)]
          = (LsKindFit) { .is_fitted = kernel != LS_ATTENTION_KERNEL_CUDNN_MXFP8,
                          .compute_efficiency = 0.1 * (2 * (kernel - LS_ATTENTION_KERNEL_CUDNN) + way + 1),
                          .memory_efficiency = 1 };
  LsKernel forward = ls_kernel_attention ("a", LS_DTYPE_FP8, 1, 16384, 16, 16, 128, true, false),
           backward = ls_kernel_attention ("a", LS_DTYPE_FP8, 1, 16384, 16, 16, 128, true, true);
  LS_CHECK_NEAR (ls_kernel_cost (&c, &gpu, &forward).compute_s, forward.flops / 80e12, 1e-12);
  c.attention_kernel = LS_ATTENTION_KERNEL_CUDNN;
  LS_CHECK_NEAR (ls_kernel_cost (&c, &gpu, &forward).compute_s, forward.flops / 30e12, 1e-12);
  LS_CHECK_NEAR (ls_kernel_cost (&c, &gpu, &backward).compute_s, backward.flops / 40e12, 1e-12);
  LS_CHECK_INT (ls_kernel_cost (&c, &gpu, &forward).source, ==, LS_COST_FITTED);
  forward.by_blocks = backward.by_blocks = true;
  LS_CHECK_NEAR (ls_kernel_cost (&c, &gpu, &forward).compute_s, forward.flops / 50e12, 1e-12);
  LS_CHECK_NEAR (ls_kernel_cost (&c, &gpu, &backward).compute_s, backward.flops / 60e12, 1e-12);
  LS_CHECK_INT (ls_kernel_cost (&c, &gpu, &forward).source, ==, LS_COST_ROOFLINE);
  LS_CHECK (ls_calibration_has_attention (&c, LS_ATTENTION_KERNEL_CUDNN_MXFP8));
  LS_CHECK (!ls_calibration_has_attention (&c, LS_ATTENTION_KERNEL_FA3));
  ls_calibration_clear (&c);
}

/* --- by how a kernel touches memory --------------------------------------------- */

static LsKernel
touching (LsAccess access, uint64_t elements, double bytes_per_element)
{
  LsKernel k = ls_kernel_stream ("copy", LS_KERNEL_NORM, LS_DTYPE_BF16, 1, elements,
                                 (double) elements * bytes_per_element, 0);
  k.access = access;
  return k;
}

/* 100 SMs do 1e12 elements a second, half of 1e12 bytes/s is there: below 0.5 bytes an element the SMs
 * bind, above it the memory; 2 us before either. Its kind has no say. */
static void
access_is_elements_or_bytes_behind_the_gap (void)
{
  LsGpu gpu = round_gpu ();
  LsCalibration c = calibration_of (LS_KERNEL_NORM, tiled_fit ());
  c.access[LS_ACCESS_STRIDED16] = (LsAccessFit) { true, 0.5, 1e10, 2 * LS_US };
  LsKernel bytes = touching (LS_ACCESS_STRIDED16, 100000000, 4),
           elements = touching (LS_ACCESS_STRIDED16, 100000000, 0.25);
  LsKernelCost cost = ls_kernel_cost (&c, &gpu, &bytes);
  LS_CHECK_INT (cost.alone, ==, 802 * LS_US);
  LS_CHECK_INT (cost.bound, ==, LS_BOUND_MEMORY);
  LS_CHECK_INT (cost.source, ==, LS_COST_FITTED);
  cost = ls_kernel_cost (&c, &gpu, &elements);
  LS_CHECK_INT (cost.alone, ==, 102 * LS_US);
  LS_CHECK_INT (cost.bound, ==, LS_BOUND_COMPUTE);
  LS_CHECK_INT (ls_kernel_time_beside (&cost, 0.5), ==, 202 * LS_US); /* fewer SMs, fewer elements */
  gpu.hbm_bytes_per_s *= 2;
  LS_CHECK_INT (ls_kernel_cost (&c, &gpu, &elements).alone, ==,
                102 * LS_US); /* a faster memory does not help */
  LS_CHECK_INT (ls_kernel_cost (&c, &gpu, &bytes).alone, ==, 402 * LS_US);
  LsKernel many = touching (LS_ACCESS_STRIDED16, 1000000, 4);
  LsTime one = ls_kernel_cost (&c, &gpu, &many).alone;
  many.batch = 11; /* launches, which share the work */
  LS_CHECK_INT (ls_kernel_cost (&c, &gpu, &many).alone - one, ==, 10 * 2 * LS_US);
  ls_calibration_clear (&c);
}

/* Without figures of its own: the bandwidth, said to be a guess. */
static void
access_without_figures_is_a_roofline (void)
{
  LsGpu gpu = round_gpu ();
  LsCalibration c;
  ls_calibration_init_roofline (&c);
  for (int access = LS_ACCESS_NONE + 1; access < LS_N_ACCESSES; access++) {
    LsKernel k = touching ((LsAccess) access, 100000000, 4);
    LsKernelCost cost = ls_kernel_cost (&c, &gpu, &k);
    LS_CHECK_INT (cost.alone, ==, 400 * LS_US);
    LS_CHECK_INT (cost.source, ==, LS_COST_ROOFLINE);
  }
  ls_calibration_clear (&c);
}

/* 100 SMs find the maxima of 1e12 elements a second, whatever the memory; without that figure a cast takes
 * what its kind does. */
static void
casts_to_mxfp8_are_bound_by_elements (void)
{
  LsGpu gpu = round_gpu ();
  LsCalibration c = calibration_of (LS_KERNEL_NORM, tiled_fit ());
  LsKernel plain = touching (LS_ACCESS_NONE, 100000000, 1),
           cast = touching (LS_ACCESS_MX_CAST_BOTH, 100000000, 1);
  LS_CHECK_INT (ls_kernel_cost (&c, &gpu, &cast).alone, ==, ls_kernel_cost (&c, &gpu, &plain).alone);
  c.access[LS_ACCESS_MX_CAST_BOTH] = (LsAccessFit) { true, 0.9, 1e9, 2 * LS_US };
  LS_CHECK_INT (ls_kernel_cost (&c, &gpu, &cast).alone, ==, 1002 * LS_US);
  cast.access = LS_ACCESS_MX_CAST;
  LS_CHECK_INT (ls_kernel_cost (&c, &gpu, &cast).alone, ==, ls_kernel_cost (&c, &gpu, &plain).alone);
  ls_calibration_clear (&c);
}

/* Between launch and end, kinds that layers have, and no others; what was timed too, but nothing with an
 * access kind. */
static void
streams_take_longer_in_a_layer (void)
{
  static const LsKernelKind in_layers[]
      = { LS_KERNEL_SOFTMAX, LS_KERNEL_NORM, LS_KERNEL_ELEMENTWISE, LS_KERNEL_REDUCTION };
  LsGpu gpu = round_gpu ();
  for (int kind = 0; kind < LS_N_KERNEL_KINDS; kind++) {
    LsCalibration c = calibration_of ((LsKernelKind) kind, tiled_fit ());
    LsKernel k = ls_kernel_stream ("k", (LsKernelKind) kind, LS_DTYPE_BF16, 1000, 1000, 75e6, 0);
    LsTime alone = ls_kernel_cost (&c, &gpu, &k).alone;
    LS_CHECK_INT (alone, ==, 103 * LS_US);
    bool is_in_layers = false;
    for (guint i = 0; i < G_N_ELEMENTS (in_layers); i++)
      is_in_layers |= (int) in_layers[i] == kind;
    c.around.streams_in_layer = 1.2;
    LS_CHECK_INT (ls_kernel_cost (&c, &gpu, &k).alone, ==, is_in_layers ? 123 * LS_US : alone);
    c.around.streams_in_layer = 1;
    LS_CHECK_INT (ls_kernel_cost (&c, &gpu, &k).alone, ==, alone);
    LsTime last = 0;
    for (c.around.streams_in_layer = 0.5; c.around.streams_in_layer < 2; c.around.streams_in_layer += 0.1) {
      LsTime t = ls_kernel_cost (&c, &gpu, &k).alone;
      LS_CHECK_INT (t, >=, last);
      last = t;
    }
    LsAccessFit access = { .share = 0.75, .launch = 3 * LS_US };
    c.access[LS_ACCESS_VEC] = access;
    k.access = LS_ACCESS_VEC;
    LsKernelCost cost = ls_kernel_cost (&c, &gpu, &k);
    LS_CHECK_INT (cost.alone, ==, 103 * LS_US);
    ls_kernel_cost_in_layer (&c, &k, &cost);
    LS_CHECK_INT (cost.alone, ==, 103 * LS_US);
    ls_calibration_clear (&c);
  }
}

/* Pins the roofline on TPUs: worked examples of the scaling book (tpu-* of
 * tests/README.md, within the tolerances given there). */

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

LS_TEST_SUITE (LS_TEST (attention_deals_out_the_tiles_of_a_triangle), LS_TEST (wide_heads_cost_extra),
               LS_TEST (heads_run_the_kernel_for_the_next_width),
               LS_TEST (blocks_under_a_causal_mask_are_whole), LS_TEST (attention_counts_its_flops),
               LS_TEST (another_attention_has_its_own_fits), LS_TEST (attention_in_fp8_is_cudnns),
               LS_TEST (streams_with_arithmetic_take_what_was_measured),
               LS_TEST (joining_partial_sums_takes_a_launch), LS_TEST (each_matrix_of_a_group_takes_a_launch),
               LS_TEST (small_streams_stay_in_the_l2), LS_TEST (access_is_elements_or_bytes_behind_the_gap),
               LS_TEST (access_without_figures_is_a_roofline), LS_TEST (casts_to_mxfp8_are_bound_by_elements),
               LS_TEST (streams_take_longer_in_a_layer), LS_TEST (parameters_come_from_hbm),
               LS_TEST (few_rows_take_the_time_of_their_flops), LS_TEST (int8_becomes_bound_by_compute))
