/* calibrate/calibrate_fit.h — coefficients of a kernel kind from measured samples.
 *
 * Minimises the mean over the samples that are not held out of
 *
 *     huber (log (predicted / measured)),   quadratic up to 0.1, then linear
 *
 * so that one odd kernel choice of a library does not pull the rest, and a factor
 * too slow weighs as much as the same factor too fast. The prediction is that of
 * compute/cost.c itself plus two nuisances that are fitted and then dropped: a
 * constant host time and a second kernel of known traffic in the same timing.
 *
 * Each free coefficient lives between two bounds and is mapped to the whole real
 * line by x = lo (hi / lo) ^ logistic (u); u is found by Nelder and Mead's simplex
 * (GSL, nmsimplex2), restarted three times from the best point, because ceil(),
 * min() and max() leave no useful gradient, and all that from two starts, because
 * fewer whole waves of faster tiles look much like more of slower ones. No random numbers: the same samples
 * give the same coefficients.
 *
 * With `prior` > 0 the loss has a term that draws each free coefficient to its physical
 * limit, where the effect is gone (an efficiency of 1, no launch, no overhead):
 *
 *     prior / samples * sum of (distance from that bound, as a share of the range)^2
 *
 * the range being that of log x. Few samples then leave an effect out that they do not
 * show, many outweigh it. */
#ifndef LS_CALIBRATE_CALIBRATE_FIT_H
#define LS_CALIBRATE_CALIBRATE_FIT_H

#include "calibrate/fit_report.h"
#include "compute/cost.h"
#include "data/measured/read_kernels.h"

typedef bool (*LsSampleFilter) (const LsTimedKernel *sample); /* NULL: all */

typedef enum {
  LS_FREE_COMPUTE = 1 << 0,
  LS_FREE_MEMORY = 1 << 1,
  LS_FREE_LAUNCH = 1 << 2,
  LS_FREE_DEPTH = 1 << 3,
  LS_FREE_WIDTH = 1 << 4,
  LS_FREE_TILE = 1 << 5,
  LS_FREE_WAVE = 1 << 6,
  LS_FREE_BYTES_HALF = 1 << 7,
  LS_FREE_HOST = 1 << 8,
  LS_FREE_SIDE = 1 << 9,
  LS_FREE_SPLIT = 1 << 10,
  LS_FREE_OVERLAP = 1 << 11,
  LS_FREE_THROTTLE = 1 << 12, /* with burst */
  LS_FREE_BURST = 1 << 13,
  LS_FREE_CACHE = 1 << 14, /* with its speed */
  LS_FREE_CACHE_SPEED = 1 << 15,
  LS_FREE_TAIL = 1 << 16,
  LS_FREE_WIDE = 1 << 17,
  LS_FIT_SCATTERED
  = 1 << 18, /* no coefficient: from starts all over the ranges too, where there are several minima */
} LsFree;

double ls_fit_predict_s (const LsKindFit *fit, const LsGpu *gpu, const LsTimedKernel *sample);

/* `fit` holds the fixed coefficients and receives the free ones, rounded to
 * four digits (launch to 10 ns), with is_fitted, the range of work and the error
 * on held-out samples. */
void ls_fit_solve (LsKindFit *fit, guint free_mask, const LsGpu *gpu, const GArray *samples, double prior);

LsFitError ls_fit_error (const LsKindFit *fit, const LsGpu *gpu, const GArray *samples, bool held_out,
                         LsSampleFilter filter);

/* The samples that a fit sees: those that are not held out, at most so many, evenly picked. LsTimedKernel,
 * borrowed. */
GPtrArray *ls_fit_pick (const GArray *samples, guint most);

/* Widens the range of work that the coefficients rest on by that of the samples. */
void ls_fit_reach (LsKindFit *fit, const GArray *samples);

#define LS_FIT_HOT (1 - 1e-9) /* a `sustained` that only says: inside a step */

/* What LsCalibration.sustained is by samples that were timed hot or inside a step: the
 * median of fitted (on a hot chip) over measured time; NaN without samples. */
double ls_fit_sustained (const LsKindFit *gemm, const LsGpu *gpu, const GArray *samples);

double ls_fit_round (double value, int digits); /* to significant decimal digits */

#endif
