/* compute/cost.c — time of one kernel from its shape and a calibration.
 *
 * Problem. A kernel is cut into tiles (thread blocks), the tiles are dealt out to
 * the n_sm SMs in waves, and meanwhile its operands cross HBM. Which is slower?
 *
 * Streaming kinds (softmax, norms, elementwise, optimizer ...)
 *
 *     t = t0 + max (FLOPs / vector_flops, (bytes + bytes_half) / (b * bandwidth))
 *
 * GEMM, m x n x k, `batch` of them, tile tm x tn, cut s times along k:
 *
 *     tiles    T = s * batch * ceil (m / tm) * ceil (n / tn)
 *     waves    w = T / n_sm,   W = r * ceil (w) + (1 - r) * max (w, 1)
 *     a tile   c = 2 tm tn (k / s + depth_half) * slow (tm, tn) / (e * peak / n_sm)
 *     slow     1 + (tile_half / 2) (1 / tm + 1 / tn), relative to the largest tile
 *     compute  min over tiles and s of
 *              W * c + [s > 1] (split_launch + 8 s m n batch / (b * bandwidth))
 *
 * Side by side (`batch` of kind GEMM: those of experts) each is a kernel of its own on one of a few streams,
 * as Transformer Engine launches them, and the SMs run dry between them: t0 + (batch - 1) matrix_launch.
 *
 * The library is taken to choose the best tile of a list, hence the minimum; one more tile may be there
 * (square_tile). One that chooses by rule, not by measurement, may be blind to waves (wave_blind): it takes
 * what were best with r = 0, the largest tile that gives each SM a block, and pays its W. slow
 * is the operand traffic of an SM (tm + tn elements per tm tn multiply-adds);
 * depth_half is the prologue and epilogue of a tile in units of k; r is
 * wave_rounding: with r = 1 a started wave costs as much as a whole one, with
 * r = 0 only its share (clocks drift apart, tiles of the next wave move up). A
 * cut along k writes and reads s partial sums in fp32. Inside a training step
 * `sustained` * e stands for e: isolated loops find their operands in L2 and the
 * chip cooler. Number formats may have a `sustained` of their own.
 *
 * A wide result. The fits are of 16-bit results. One of more bytes, as of a weight gradient that is added to
 * in fp32 (read and written, 8 bytes), is moved when a tile ends, and no other tile of the SM computes:
 *
 *     wide = bytes - operands - 2 m n;   compute + wide_exposed * wide / HBM,   memory without these bytes
 *
 * Attention, `batch` heads of m queries, n keys and head_dim k: a tile is 128 query
 * rows and goes over the keys that they see, on average n, or (n + 128) / 2 under a
 * causal mask, where the last rows see all n. depth_half keys more stand for its
 * prologue and epilogue. A tile takes
 *
 *     longest   L = (n + depth_half) * s        mean  a = (mean keys + depth_half) * s
 *     per key   s = FLOPs of 128 rows and a key / (e * peak / n_sm)
 *                   * (1 + width_half / k) * (1 + [k > wide_head] wide_slow)
 *                   with k, up to 128, the next multiple of width_step, in the FLOPs too: heads of 96 run
 *                   cuDNN's kernels for 128
 *     compute   max (L, batch * ceil (m / 128) * a / n_sm + tail * L)
 *
 * width_half is the exponentials, whose number per FLOP goes with 1 / k; tail says how
 * long the SMs run dry one after another at the end. Kernels that skip larger blocks than a tile (splash
 * attention of TPUs: 512 queries by 512 keys) meet (n + causal_block) / 2 keys on average.
 *
 * Kernels with an access kind (LsAccess), whose figures are those of topologies/calib/access-*.json:
 *
 *     t = launch + max (bytes / (share * bandwidth), elements / (elements_per_sm * n_sm), n_serial step)
 *
 * Products of chunks of a sequence that Triton makes (triton-dot) do as many multiply-adds in a second on an
 * SM, and where each waits for the one before, as states of gated delta nets do, one in a step.
 *
 * What PyTorch launches one by one is of two sorts. Contiguous tensors are loaded in vectors, near the
 * bandwidth. A broadcast, transposed or cast operand is loaded element by element: such a kernel takes a
 * constant time per element, in fp32 as in 16 bits, and gains nothing from a faster HBM. launch is the gap
 * that a GPU leaves between two kernels of a queue; the time of a kernel in a profile does not hold it.
 *
 * Casts to mxfp8 (mx-cast, mx-cast-both) are bound by the SMs (NVIDIA/TransformerEngine, pull request 1628);
 * without a figure of them by their kind.
 *
 * Heat. A loop of one kernel stays cool up to `burst`, the rest of a longer one runs
 * hot; inside a training step (`sustained` < 1) everything does:
 *
 *     compute   times 1 + throttle * (1 - min (1, burst / compute)), or 1 + throttle
 *
 * A layer. What a kernel that streams finds in the L2, and whose writes it waits for, is another inside a
 * layer than in a loop of its own. Where that was measured (compute/around.h), kernels of the kinds that
 * layers have, elementwise, norms, softmaxes and reductions, take streams_in_layer times as long between
 * launch and end. Kernels with an access kind do not: their figures are of steps.
 *
 * Overlap. Where compute and memory are alike, neither hides the other in full: both
 * are stretched by (1 + (smaller / larger)^p)^(1 / p), p = overlap.
 *
 * L2. Streaming kernels whose bytes fit in cache_bytes move them cache_speed times as
 * fast; from twice that on nothing stays. The first operand of a GEMM and its result are handed over by the
 * kernels before and after: while both fit in cache_bytes, only the weights cross HBM. Not so where
 * it adds to an fp32 result, which nobody has just touched.
 *
 * Worked example. An A100 (108 SMs, 312 TFLOP/s), GEMM 2048 x 1536 x 4096 with
 * e = 0.9, depth_half = 200, tile_half = 20, r = 0.5; e * peak / n_sm = 2.6 TFLOP/s.
 * Tile 256 x 128: T = 8 * 12 = 96, w = 0.889, W = 0.5 * 1 + 0.5 * 1 = 1, slow = 1,
 * c = 2 * 256 * 128 * 4296 / 2.6e12 = 108.3 us. Tile 128 x 128: T = 192, w = 1.778,
 * W = 0.5 * 2 + 0.5 * 1.778 = 1.889, slow = (1 + 10 / 64) / (1 + 10 * 3 / 256) = 1.035,
 * c = 56.0 us, W * c = 105.8 us: the least. Spread evenly it would be 96.3 us.
 *
 * Deviations. Six tiles stand for the hundreds of kernels of cuBLAS, whose choice
 * is not always the best. Heat is no state: a kernel does not know what ran before
 * it. A GEMM's re-reads beyond the L2 are in the coefficients only.
 *
 * Reference. Tile and wave quantisation: NVIDIA, "Matrix Multiplication Background
 * User's Guide", and S. Bekman, ml-engineering (training/performance); roofline:
 * Williams, Waterman, Patterson, CACM 52(4), 2009. */
#include "compute/cost.h"

#include <math.h>
#include <string.h>

#include "base/draw.h"
#include "compute/measured.h"

/* ---- tiles of a product ---- */

/* Which tile and cut along k a GEMM gets, and what that takes: cost.c has the equations. */

#define MAX_SPLIT       8
#define MIN_SPLIT_DEPTH 256.0 /* no cut along k leaves less than this */

typedef struct {
  double m, n;
} Tile;

/* Thread-block tiles of cuBLAS on sm_70 to sm_90, largest first. */
static const Tile tiles[]
    = { { 256, 128 }, { 128, 256 }, { 128, 128 }, { 128, 64 }, { 64, 128 }, { 64, 64 } };

/* Time of a tile relative to the largest one, per multiply-add. */
static double
tile_slowness (const LsKindFit *fit, Tile tile)
{
  double half = fit->tile_half / 2, square = fit->square_tile;
  double largest = 1 + half * (square > 0 ? 2 / square : 1 / tiles[0].m + 1 / tiles[0].n);
  return (1 + half * (1 / tile.m + 1 / tile.n)) / largest;
}

/* A tile, and what of it does not depend on how k is cut. */
typedef struct {
  double area;      /* 2 tm tn                       */
  double slow;      /* tile_slowness ()              */
  double per_layer; /* ceil (m / tm) * ceil (n / tn) */
} TileUse;

static double
tiled_gemm_s (const LsKindFit *fit, const LsGpu *gpu, const LsKernel *kernel, double rate, const TileUse *use,
              int split, double rounding)
{
  double batch = fmax (1, (double) kernel->batch);
  double depth = (double) kernel->k / split + fit->depth_half;
  double tile_s = use->area * depth * use->slow * gpu->n_sm / rate;
  double all_s = ls_tile_waves_paid (split * batch * use->per_layer, gpu->n_sm, rounding) * tile_s;
  if (split == 1)
    return all_s;
  double partial_bytes = 8 * split * (double) kernel->m * (double) kernel->n * batch;
  return all_s + ls_time_to_s (fit->split_launch)
      + partial_bytes / (fit->memory_efficiency * gpu->hbm_bytes_per_s);
}

/* The least of all cuts along k by what the library reckons with; what that one takes. */
typedef struct {
  double reckoned_s, takes_s;
} Choice;

static void
try_tile (const LsKindFit *fit, const LsGpu *gpu, const LsKernel *kernel, double rate, Tile tile,
          Choice *best)
{
  const TileUse use = {
    .area = 2 * tile.m * tile.n,
    .slow = tile_slowness (fit, tile),
    .per_layer = ls_tile_blocks ((double) kernel->m, (double) kernel->n, tile.m, tile.n),
  };
  double reckons = fit->wave_blind ? 0 : fit->wave_rounding;
  for (int split = 1; split <= MAX_SPLIT; split *= 2) {
    if (split > 1 && (double) kernel->k / split < MIN_SPLIT_DEPTH)
      break;
    double s = tiled_gemm_s (fit, gpu, kernel, rate, &use, split, reckons);
    if (s >= best->reckoned_s)
      continue;
    best->reckoned_s = s;
    best->takes_s
        = fit->wave_blind ? tiled_gemm_s (fit, gpu, kernel, rate, &use, split, fit->wave_rounding) : s;
  }
}

/* How fast the units that multiply a GEMM in fp32 are, beside the matrix units that a fit is of; 1: it runs
 * on those. What a tile takes besides its products (depth_half, tile_half) is as long on either, so that much
 * less of it; nor do the slower ones heat the chip (throttle). */
static double
ls_tile_units_share (const LsGpu *gpu, const LsKernel *kernel)
{
  double matrix = fmax (gpu->peak_flops[LS_DTYPE_BF16], gpu->peak_flops[LS_DTYPE_FP16]),
         fp32 = gpu->peak_flops[LS_DTYPE_FP32];
  bool is_slower = kernel->dtype == LS_DTYPE_FP32 && fp32 > 0 && fp32 == gpu->vector_flops && fp32 < matrix;
  return is_slower ? fp32 / matrix : 1;
}

/* Compute term of a GEMM on a cool chip, in seconds, by the tile and the cut along k that its library
 * chooses; rate: FLOP/s of the whole chip in the largest tile and a deep loop, above 0. */
static double
ls_tile_gemm_s (const LsKindFit *fit, const LsGpu *gpu, const LsKernel *kernel, double rate)
{
  Choice best = { INFINITY, INFINITY };
  LsKindFit of_units = *fit;
  of_units.depth_half *= ls_tile_units_share (gpu, kernel);
  of_units.tile_half *= ls_tile_units_share (gpu, kernel);
  if (fit->square_tile > 0)
    try_tile (&of_units, gpu, kernel, rate, (Tile) { fit->square_tile, fit->square_tile }, &best);
  for (size_t i = 0; i < G_N_ELEMENTS (tiles); i++)
    try_tile (&of_units, gpu, kernel, rate, tiles[i], &best);
  return best.takes_s;
}

/* ---- the clock of the GPU ---- */

/* The clock of a job's matrix units, relative to the GPU that was fitted.
 *
 * Problem. Kernels are timed on one GPU at its full power limit. A cluster may run its GPUs
 * at a lower limit; and no two chips of a kind are alike: under a limit of power the leakier
 * one clocks lower. Ranks of a synchronous job wait for each other at every collective, so
 * that the slowest sets the pace of all.
 *
 *     clock    min (1, limited / reached) / (1 + spread * E (n))
 *     reached  e * sustained * peak / (1 + throttle)   16-bit GEMM in a hot step (cost.h)
 *     E (n)    Phi^-1 ((n - 3/8) / (n + 1/4))          the largest of n normal draws
 *
 * `limited` and `spread` are the GPU file's power_limited and clock_spread. What runs on matrix
 * units takes 1 / clock as long in its compute term; memory has a clock of its own.
 *
 * Worked example. spread 0.015 and 64 GPUs: Phi^-1 (63.625 / 64.25) = 2.339, 1.035 times as
 * long. limited 593 of 989.4 TFLOP/s with e 0.84, throttle 0.09: reached 762, 1.285 times.
 *
 * Deviations. A mean of draws, so that ranks stay alike and fold: which GPU is slow, and the
 * slack of stages beside a slow one, need --slow. Kernels that are bound by HBM keep their
 * time, as they should; those that use the vector units do, too, as they hardly meet the limit.
 *
 * Reference. E (n): Blom, Statistical estimates and transformed beta-variables, 1958. Spread:
 * Sinha et al., Not All GPUs Are Created Equal, SC 2022 (arXiv 2208.11035). */

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

double
ls_clock (const LsCalibration *c, const LsGpu *gpu, uint32_t n_gpus)
{
  double slowest = n_gpus > 1 ? ls_normal_quantile ((n_gpus - 0.375) / (n_gpus + 0.25)) : 0;
  return power_share (c, gpu) / (1 + gpu->clock_spread * slowest);
}

#define ATTENTION_TILE_ROWS 128.0 /* query rows per thread block: FlashAttention-2 and -3 */
#define WIDE_HEAD           128.0 /* above, two tiles do not fit beside each other       */

void
ls_calibration_clear (LsCalibration *c)
{
  if (!c)
    return;
  g_free (c->name);
  g_free (c->source);
  ls_measured_free (c->measured);
  for (uint32_t i = 0; i < c->n_others; i++)
    ls_calibration_clear (&c->others[i]);
  g_free (c->others);
  memset (c, 0, sizeof *c);
}

const LsCalibration *
ls_calibration_of_kind (const LsCalibration *c, uint32_t kind, const LsGpu *gpu, LsCalibration *room)
{
  if (kind == 0)
    return c;
  g_assert (kind <= c->n_others);
  *room = c->others[kind - 1];
  room->attention_kernel = c->attention_kernel;
  room->clock = c->clock_gpus > 0 ? ls_clock (room, gpu, c->clock_gpus) : room->clock;
  return room;
}

const LsCalibration ls_rooflines = {
  .sustained = 1,
  .kind
  = { [0 ... LS_ENTRY_ATTENTION - 1] = { .compute_efficiency = 1, .memory_efficiency = 1, .mape = NAN } },
  .access = { [0 ... LS_N_ACCESSES - 1] = { .share = 1 } },
};

void
ls_calibration_init_roofline (LsCalibration *c)
{
  *c = ls_rooflines;
  c->name = g_strdup (LS_ROOFLINE);
  c->source = g_strdup ("data sheet; nothing fitted");
}

static double
result_elements (const LsKernel *k)
{
  return fmax (1, (double) k->batch) * (double) k->m * (double) k->n;
}

/* Traffic of a GEMM beside its operands. */
static double
result_bytes (const LsKernel *k)
{
  double operands = ls_dtype_size (k->dtype) * fmax (1, (double) k->batch) * (double) k->k
      * ((double) k->m + (double) k->n);
  return k->bytes - operands;
}

double
ls_calibration_sustained (const LsCalibration *c, const LsKernel *kernel)
{
  double of_format = kernel->dtype == LS_DTYPE_FP8 ? c->sustained_fp8
      : kernel->dtype == LS_DTYPE_NVFP4            ? c->sustained_nvfp4
                                                   : 0;
  return of_format > 0 ? of_format : c->sustained;
}

static double
peak_of (const LsGpu *gpu, const LsKernel *kernel)
{
  double matrix = gpu->peak_flops[kernel->dtype];
  bool on_matrix_units
      = (ls_kernel_is_gemm (kernel->kind) || ls_kernel_is_attention (kernel->kind)) && matrix > 0;
  return on_matrix_units ? matrix : gpu->vector_flops;
}

/* Keys that are met: by the mean query; by the mean tile of queries, with the corners that its mask cuts;
 * by the longest. */
typedef struct {
  double by_query, by_tile, by_longest;
} Keys;

/* All keys, half of them with a causal mask, fewer with a window, which has a corner at both ends: as the
 * FLOPs say. */
static Keys
keys_met (const LsKindFit *fit, const LsKernel *kernel)
{
  double passes = kernel->kind == LS_KERNEL_ATTENTION_BWD ? 2.5 : 1, n = (double) kernel->n;
  double pairs = (double) kernel->batch * (double) kernel->m * n;
  double share = kernel->flops / (4 * passes * pairs * (double) kernel->k);
  double corner = fmin (n, fmax (ATTENTION_TILE_ROWS, fit->causal_block));
  if (share >= 0.75)
    return (Keys) { n, n, n };
  Keys causal = { n / 2, (n + corner) / 2, n };
  if (share > 0.499)
    return causal;
  double windowed = fmin (share * n + corner, causal.by_tile);
  return (Keys) { share * n, windowed, windowed };
}

/* Of the heads that the kernel computes. Above, there are kernels for pairs of widths (192 of Q and K, 128 of
 * V), of which k is the mean. */
static double
head_width (const LsKindFit *fit, const LsKernel *kernel)
{
  double k = (double) kernel->k, step = fit->width_step;
  return step > 0 && k < WIDE_HEAD ? fmin (WIDE_HEAD, step * ceil (k / step)) : k;
}

static double
attention_compute_s (const LsKindFit *fit, const LsGpu *gpu, const LsKernel *kernel, double rate)
{
  double m = (double) kernel->m, heads = fmax (1, (double) kernel->batch);
  double blocks = heads * ceil (m / ATTENTION_TILE_ROWS);
  const Keys met = keys_met (fit, kernel);
  double key_s = kernel->flops / (heads * m * met.by_query) * ATTENTION_TILE_ROWS * gpu->n_sm / rate;
  double wide = fit->wide_head > 0 ? fit->wide_head : WIDE_HEAD, width = head_width (fit, kernel);
  key_s
      *= width / (double) kernel->k * (1 + fit->width_half / width) * (width > wide ? 1 + fit->wide_slow : 1);
  double longest_s = (met.by_longest + fit->depth_half) * key_s;
  double even_s = blocks * (met.by_tile + fit->depth_half) * key_s / gpu->n_sm;
  return fmax (longest_s, even_s + fit->tail * longest_s);
}

static double
cool_compute_s (const LsKindFit *fit, double sustained, const LsGpu *gpu, const LsKernel *kernel)
{
  double peak = peak_of (gpu, kernel);
  if (kernel->flops <= 0 || peak <= 0)
    return 0;

  double rate = fit->compute_efficiency * sustained * peak;
  bool has_shape = kernel->m > 0 && kernel->n > 0 && kernel->k > 0;
  if (fit->wave_rounding > 0 && gpu->n_sm > 0 && has_shape && ls_kernel_is_gemm (kernel->kind))
    return ls_tile_gemm_s (fit, gpu, kernel, rate);
  bool has_tiles = (fit->tail > 0 || fit->causal_block > 0) && gpu->n_sm > 0;
  if (has_tiles && has_shape && ls_kernel_is_attention (kernel->kind))
    return attention_compute_s (fit, gpu, kernel, rate);
  /* FLOPs spread evenly over the SMs. */
  bool has_depth = ls_kernel_is_gemm (kernel->kind) && kernel->k > 0;
  double stretch = has_depth ? 1 + fit->depth_half / (double) kernel->k : 1;
  return (kernel->flops * stretch + fit->flops_half) / rate;
}

/* Inside a training step, where sustained < 1, the chip is always hot. */
static double
compute_s (const LsKindFit *fit, double sustained, const LsGpu *gpu, const LsKernel *kernel)
{
  bool is_in_step = sustained > 0 && sustained < 1;
  double s
      = cool_compute_s (fit, is_in_step && ls_kernel_is_gemm (kernel->kind) ? sustained : 1, gpu, kernel);
  if (fit->throttle <= 0 || s <= 0 || ls_tile_units_share (gpu, kernel) < 1)
    return s;
  double heat = is_in_step ? 1 : 1 - fmin (1, ls_time_to_s (fit->burst) / s);
  return s * (1 + fit->throttle * heat);
}

/* Share of the traffic that stays in the L2: all up to cache_bytes, none from twice that. */
static double
hit_share (const LsKindFit *fit, double bytes)
{
  return fit->cache_bytes > 0 ? CLAMP (2 - bytes / fit->cache_bytes, 0, 1) : 0;
}

/* All but the second operand. */
static double
handed_over (const LsKernel *k)
{
  if (k->kind == LS_KERNEL_GEMM && result_bytes (k) >= 8 * result_elements (k))
    return 0; /* it adds to an fp32 result: reads and writes 4 bytes of each element */
  double second = ls_dtype_size (k->dtype) * (double) k->k * (double) k->n * fmax (1, (double) k->batch);
  return fmax (0, k->bytes - second);
}

/* Share of a kernel's bytes that the L2 saves. */
static double
saved_share (const LsKindFit *fit, const LsKernel *kernel)
{
  if (!ls_kernel_is_gemm (kernel->kind))
    return fit->cache_speed > 1 ? hit_share (fit, kernel->bytes) * (1 - 1 / fit->cache_speed) : 0;
  double handed = handed_over (kernel);
  return hit_share (fit, handed) * handed / kernel->bytes;
}

/* exposed: bytes that are timed with the FLOPs. */
static double
memory_s (const LsKindFit *fit, const LsGpu *gpu, const LsKernel *kernel, double exposed)
{
  if (kernel->bytes <= 0)
    return 0;
  double bytes = kernel->bytes * (1 - saved_share (fit, kernel)) - exposed;
  return (bytes + fit->bytes_half) / (fit->memory_efficiency * gpu->hbm_bytes_per_s);
}

/* Loads that do not hide behind arithmetic, and arithmetic that waits for loads,
 * stretch both terms by the same factor, so that their larger one is the time. */
static void
stretch (LsKernelCost *cost, double p)
{
  double large = fmax (cost->compute_s, cost->memory_s), small = fmin (cost->compute_s, cost->memory_s);
  if (p <= 0 || small <= 0)
    return;
  double factor = pow (1 + pow (small / large, p), 1 / p);
  cost->compute_s *= factor;
  cost->memory_s *= factor;
}

/* What follows from its parts. */
static void
settle (LsKernelCost *cost)
{
  double longer = fmax (cost->compute_s, cost->memory_s);
  cost->bound = cost->launch_s > longer  ? LS_BOUND_LAUNCH
      : cost->compute_s > cost->memory_s ? LS_BOUND_COMPUTE
                                         : LS_BOUND_MEMORY;
  cost->alone = ls_kernel_time_beside (cost, 0);
}

static bool
extrapolates (const LsKindFit *fit, const LsKernel *kernel)
{
  if (fit->max_work <= 0)
    return false;
  bool by_flops = ls_kernel_is_gemm (kernel->kind) || ls_kernel_is_attention (kernel->kind);
  double work = by_flops ? kernel->flops : kernel->bytes;
  return work < fit->min_work || work > fit->max_work;
}

static double
launch_s (const LsKindFit *fit, const LsKernel *kernel)
{
  double more = kernel->kind == LS_KERNEL_GEMM && kernel->batch > 1 ? (double) kernel->batch - 1 : 0;
  return ls_time_to_s (fit->launch) + more * ls_time_to_s (fit->matrix_launch);
}

LsKernelCost
ls_kernel_cost_by (const LsKindFit *fit, double sustained, const LsGpu *gpu, const LsKernel *kernel)
{
  /* What a GEMM moves while no FLOPs run, of its result beyond writing 16 bits of each element. */
  bool has_exposed = fit->wide_exposed > 0 && ls_kernel_is_gemm (kernel->kind);
  double exposed
      = has_exposed ? fit->wide_exposed * fmax (0, result_bytes (kernel) - 2 * result_elements (kernel)) : 0;
  LsKernelCost cost = {
    .compute_s = compute_s (fit, sustained, gpu, kernel) + exposed / gpu->hbm_bytes_per_s,
    .memory_s = memory_s (fit, gpu, kernel, exposed),
    .launch_s = launch_s (fit, kernel),
    .source = fit->is_fitted ? LS_COST_FITTED : LS_COST_ROOFLINE,
    .extrapolated = extrapolates (fit, kernel),
  };
  stretch (&cost, fit->overlap);
  settle (&cost);
  return cost;
}

/* Elements are the SMs' business, as FLOPs of other kernels are. */
static LsKernelCost
access_cost (const LsAccessFit *fit, const LsGpu *gpu, const LsKernel *kernel)
{
  bool is_gemm = ls_kernel_is_gemm (kernel->kind);
  double elements = is_gemm ? kernel->flops / 2 : (double) kernel->m * (double) kernel->n;
  double rate = fit->elements_per_sm * gpu->n_sm, chain_s = kernel->n_serial * ls_time_to_s (fit->step);
  LsKernelCost cost = {
    .compute_s = fmax (rate > 0 ? elements / rate : 0, chain_s),
    .memory_s = kernel->bytes / (fit->share * gpu->hbm_bytes_per_s),
    .launch_s = ls_time_to_s (fit->launch) * (is_gemm ? 1 : fmax (1, (double) kernel->batch)),
    .source = fit->is_fitted ? LS_COST_FITTED : LS_COST_ROOFLINE,
  };
  settle (&cost);
  return cost;
}

void
ls_kernel_cost_in_layer (const LsCalibration *calibration, const LsKernel *kernel, LsKernelCost *cost)
{
  double slower = ls_around_streams (&calibration->around);
  LsKernelKind kind = kernel->kind;
  bool streams = kind == LS_KERNEL_SOFTMAX || kind == LS_KERNEL_NORM || kind == LS_KERNEL_ELEMENTWISE
      || kind == LS_KERNEL_REDUCTION;
  if (slower == 1 || !streams || kernel->access != LS_ACCESS_NONE)
    return;
  cost->compute_s *= slower;
  cost->memory_s *= slower;
  settle (cost);
}

void
ls_kernel_cost_unaligned (const LsCalibration *c, const LsGpu *gpu, const LsKernel *kernel,
                          LsKernelCost *cost)
{
  double rate = c->gemm_unaligned * gpu->peak_flops[kernel->dtype];
  if (!kernel->unaligned || ls_dtype_array_bytes (kernel->dtype, 2) != 4) /* nvfp4 has no whole number */
    return;
  cost->extrapolated = cost->extrapolated || rate <= 0;
  if (rate > 0)
    cost->compute_s = fmax (cost->compute_s, kernel->flops / rate);
  settle (cost);
}

LsKernelCost
ls_kernel_cost (const LsCalibration *calibration, const LsGpu *gpu, const LsKernel *kernel)
{
  const LsAccessFit *access = &calibration->access[kernel->access];
  bool may_lack = ls_kernel_is_gemm (kernel->kind) || ls_access_is_of_library (kernel->access),
       is_unknown = may_lack && access->elements_per_sm <= 0 && access->share >= 1;
  if (kernel->access != LS_ACCESS_NONE && !is_unknown)
    return access_cost (access, gpu, kernel);
  const LsKindFit *fit = ls_calibration_fit (calibration, kernel);
  LsKindFit at = *fit; /* at the clock of the job */
  if (calibration->clock > 0 && (ls_kernel_is_gemm (kernel->kind) || ls_kernel_is_attention (kernel->kind)))
    at.compute_efficiency *= calibration->clock;
  LsKernelCost cost = ls_kernel_cost_by (&at, ls_calibration_sustained (calibration, kernel), gpu, kernel);
  ls_measured_refine (calibration->measured, ls_calibration_implementation (calibration, kernel), fit, gpu,
                      kernel, &cost);
  ls_kernel_cost_unaligned (calibration, gpu, kernel, &cost);
  if (kernel->masked) { /* a number of the mask is loaded for each pair, between its two products */
    double slower = calibration->attention_masked;
    cost.extrapolated = cost.extrapolated || slower <= 0;
    cost.compute_s /= slower > 0 ? slower : 1;
    settle (&cost);
  }
  cost.is_guess = kernel->is_guess;
  cost.extrapolated = cost.extrapolated || kernel->is_guess;
  ls_kernel_cost_in_layer (calibration, kernel, &cost);
  return cost;
}

double
ls_kernel_timed_besides_s (const LsKindFit *fit, const LsGpu *gpu, double side_bytes, bool has_host)
{
  double s = has_host ? ls_time_to_s (fit->timed_host) : 0;
  if (fit->timed_efficiency > 0)
    s += side_bytes / (fit->timed_efficiency * gpu->hbm_bytes_per_s);
  return s;
}

LsTime
ls_kernel_time_beside (const LsKernelCost *cost, double sm_share)
{
  g_assert (sm_share >= 0 && sm_share < 1);
  return ls_time_from_s (cost->launch_s + fmax (cost->compute_s / (1 - sm_share), cost->memory_s));
}
