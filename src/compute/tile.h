/* compute/tile.h — output tiles of a GEMM and the waves in which SMs take them.
 *
 * A thread block computes one tile; n_sm of them run at a time, one per SM, so
 * blocks come in ceil (blocks / n_sm) waves. 2304 x 1536 in tiles of 256 x 128 on
 * an A100: 9 * 12 = 108 blocks, one wave; a column of tiles more, 117, is two.
 * Facts: NVIDIA, "Matrix Multiplication Background User's Guide". */
#ifndef LS_COMPUTE_TILE_H
#define LS_COMPUTE_TILE_H

#include <math.h>

#include "compute/cost.h"

static inline double
ls_tile_blocks (double m, double n, double tile_m, double tile_n)
{
  return ceil (m / tile_m) * ceil (n / tile_n);
}

static inline double
ls_tile_waves (double blocks, double n_sm)
{
  return ceil (blocks / n_sm);
}

/* Waves that are paid: `rounding` of each started one, the rest as the work
 * spreads when clocks drift apart; never less than one. */
static inline double
ls_tile_waves_paid (double blocks, double n_sm, double rounding)
{
  double exact = blocks / n_sm;
  return rounding * ls_tile_waves (blocks, n_sm) + (1 - rounding) * fmax (exact, 1);
}

#endif
