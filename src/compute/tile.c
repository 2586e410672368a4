/* compute/tile.c — which tile and cut along k a GEMM gets, and what that takes: cost.c has the equations. */
#include "compute/tile.h"

#include <math.h>

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

double
ls_tile_units_share (const LsGpu *gpu, const LsKernel *kernel)
{
  double matrix = fmax (gpu->peak_flops[LS_DTYPE_BF16], gpu->peak_flops[LS_DTYPE_FP16]),
         fp32 = gpu->peak_flops[LS_DTYPE_FP32];
  bool is_slower = kernel->dtype == LS_DTYPE_FP32 && fp32 > 0 && fp32 == gpu->vector_flops && fp32 < matrix;
  return is_slower ? fp32 / matrix : 1;
}

double
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
