/* calibrate/calibrate_levels.h — measured kernels laid over the coefficients of a calibration that is there
 * already.
 *
 * Of a kernel kind these may move; all other coefficients (tiles, waves, depth, heat, caches) are forms,
 * which few kernels cannot tell, and stay:
 *
 *   compute_efficiency   of large products and long attention
 *   memory_efficiency    of what streams
 *   launch               of small kernels
 *   timed_host, timed_efficiency   what the timing holds besides, where it does, in place of the launch
 *
 * Who tells one. A kernel whose time is to 70 % FLOPs at the full rate, or bytes from HBM at the full
 * bandwidth, or to a quarter the launch. Bytes are not from HBM if the L2 may hold half of them: an isolated
 * loop finds them there. Three kernels must tell a coefficient, worth two that are not alike
 * (calibrate_levels.c). Kernels that tell none of those that may move are left out: waves, split products and
 * caches rule them. So a table of small products does not change the rate of large ones, nor the other way
 * round.
 *
 * Least squares of ln (measured / predicted), Huber's weights (knee 0.1), by Gauss-Newton from the
 * calibration's values. Standard errors are those for residuals with the covariance K of calibrate_levels.c,
 * which are off together where shapes are alike: with J' the weighted derivatives, the diagonal of (J'J)^-1
 * J' K J (J'J)^-1. K is scaled by what the table shows, and as much as four independent kernels of what the
 * calibration's error lets expect; n kernels count as their N independent ones:
 *
 *     s^2 = (4 + (N / n) sum w r^2 / K_ii) / (4 + N - p)
 *
 * What moves. A change d of ln (coefficient) with a standard error e. The one of least d / e goes as long as
 * that is below 4: the table agrees with the calibration, which stays. (4, not 3: misfits have long tails.)
 * What is left moves by d (1 - (4 e / d)^2) (Breiman's non-negative garrote): a small table moves a little,
 * and chance next to nothing. A coefficient that is a guess moves by d. None moves by more than the kernels
 * that tell it are off, at most: a launch is not charged with what keeps short kernels long. So a few
 * kernels, of whichever shapes, make no prediction worse (tests/unit/calibrate/test_calibrate_subsets.c).
 *
 * Worked example. 16 products, no two alike, all large, exactly 20 % slower than a calibration with a mean
 * absolute error of 6 %: d = -0.182, K_ii = 0.084^2, s^2 = 4 / (4 + 16 - 1) = 0.46^2, e = 0.46 * 0.084 / 4 =
 * 0.0096; the efficiency goes to exp (-0.182 * (1 - 0.045)) = 0.840 of what it was.
 *
 * Reference. L. Breiman, Better subset regression using the nonnegative garrote, Technometrics 37 (1995); L.
 * Kish, Survey Sampling (1965). */
#ifndef LS_CALIBRATE_CALIBRATE_LEVELS_H
#define LS_CALIBRATE_CALIBRATE_LEVELS_H

#include "calibrate/fit_report.h"
#include "compute/cost.h"
#include "data/measured/read_kernels.h"

/* fit: the coefficients that are there, changed in place. is_guess: nobody measured them. `key`, static,
 * names the entry. Appends an LsFitChange for each coefficient that might have moved. Whether one did. */
bool ls_levels_fit (LsKindFit *fit, bool is_guess, const char *key, const LsGpu *gpu, const GArray *samples,
                    GArray *changes);

/* How far `fit` is from the samples that are not held out: the sum of w r^2 / K_ii, of as many independent
 * ones as they are worth by the misfits of `base`. At least one sample is not held out. */
double ls_levels_misfit (const LsKindFit *base, const LsKindFit *fit, const LsGpu *gpu,
                         const GArray *samples);

#endif
