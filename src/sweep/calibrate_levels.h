/* sweep/calibrate_levels.h — measured kernels laid over the coefficients of a calibration that is there already.
 *
 * Of a kernel kind these may move; all other coefficients (tiles, waves, depth, heat, caches) are forms, which few kernels
 * cannot tell, and stay:
 *
 *   compute_efficiency   of large products and long attention
 *   memory_efficiency    of what streams
 *   launch               of small kernels
 *   timed_host, timed_efficiency   what the timing holds besides, where it does, in place of the launch
 *
 * Who is free. A kernel tells one of them if it takes half of the kernel's time, and the launch a quarter: FLOPs at the
 * full rate, bytes from HBM at the full bandwidth, the launch, over the predicted time. Three kernels must. So a table of small
 * products does not change the saturation of large ones, nor the other way round.
 *
 * Least squares of ln (measured / predicted), Huber's weights (knee 0.1), by Gauss-Newton from the calibration's values.
 * Standard errors are those of the least squares, times sqrt (D): kernels of one family (n, k) are off together, and
 * m of them count as m / D, D = 1 + (m - 1) / 2 (Kish's design effect; half as the intra-class correlation is a guess). The variance of a
 * residual is that which the table shows, and as much as four kernels of the error that the calibration has on shapes it never saw:
 *
 *     s^2 = (4 s0^2 + sum w r^2) / (4 + n / D - p),     s0 = 1.25 times its mean absolute error, 1 % at least
 *
 * What moves. A change d of ln (coefficient) with a standard error e. The one of least d / e goes as long as that is below 3:
 * the table agrees with the calibration, which stays. What is left moves by d (1 - (3 e / d)^2) (Breiman's
 * non-negative garrote): a small table moves a little, and chance next to nothing. A coefficient that is a guess, and what is besides a
 * kernel in its timing, moves by d. None moves by more than the kernels that tell it are off, at most: a launch is not charged with
 * what keeps short kernels long.
 *
 * Worked example. 16 products, each of its own family, all large, exactly 20 % slower than a calibration with a mean absolute error
 * of 6 %: d = -0.182; s^2 = 4 * 0.075^2 / (4 + 16 - 1) = 0.034^2, e = 0.034 / 4 = 0.0086, the efficiency goes to
 * exp (-0.182 * (1 - 0.020)) = 0.837 of what it was.
 *
 * Reference. L. Breiman, Better subset regression using the nonnegative garrote, Technometrics 37 (1995); L. Kish, Survey
 * Sampling (1965). */
#ifndef LS_SWEEP_CALIBRATE_LEVELS_H
#define LS_SWEEP_CALIBRATE_LEVELS_H

#include "compute/cost.h"
#include "io/read_kernels.h"
#include "io/write_fit.h"

/* fit: the coefficients that are there, changed in place. is_guess: nobody measured them. `key`, static, names the entry.
 * Appends an LsFitChange for each coefficient that might have moved. Whether one did. */
bool ls_levels_fit (LsKindFit *fit, bool is_guess, const char *key, const LsGpu *gpu, const GArray *samples, GArray *changes);

#endif
