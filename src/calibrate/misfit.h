/* calibrate/misfit.h — by how much measured kernels are off a calibration, together.
 *
 * Problem. A calibration is off by some percent on each shape, and alike on shapes that are alike: a library
 * takes the same kernel there. Ten products of one model, all 10 % slower, may say that the GPU is slow, or
 * only that this kernel is. Counted as ten independent timings they say too much.
 *
 * Model. ln (measured / predicted) of kernel i has the standard deviation
 *
 *     s_i = 1.4 of the calibration's mean absolute error for a kernel that is bound by arithmetic,
 *           2 for any other
 *
 * and two kernels that are d octaves apart have the correlation 0.7 exp (-d), d being the Euclidean distance
 * of (log2 m, log2 n, log2 k, log2 batch); timings of one shape 0.99.
 *
 * Where from. Residuals of the calibrations of A100, H100, H200 and B200 on the tables of products and
 * attention that they were fitted to, 87,175 timings in 13 classes: correlations over d in [0, 0.5), [0.5,
 * 1), .. [2, 2.5) have the medians 0.63, 0.43, 0.27, 0.15, 0.10, and are 0 beyond; 0.7 exp (-d) has 0.54,
 * 0.33, 0.20, 0.12, 0.07. Standard deviations are 1.0 to 1.5 of the mean absolute error where arithmetic
 * bounds, 1.3 to 2.2 where memory or the launch does.
 *
 * Worked example. Two products, d = 1, both off by x: correlation 0.258, so together they weigh as 2 / 1.258
 * = 1.59 independent ones.
 *
 * Reference. N. Cressie, Statistics for Spatial Data (1993): variogram, nugget, generalised least squares. */
#ifndef LS_CALIBRATE_MISFIT_H
#define LS_CALIBRATE_MISFIT_H

#include <gsl/gsl_matrix.h>

#include "compute/cost.h"
#include "data/measured/read_kernels.h"

/* Covariance of the kernels' misfits (const LsTimedKernel; at least one), in its lower triangle. `mape`: mean
 * absolute error of `fit`, a fraction above 0. Free with gsl_matrix_free(). */
gsl_matrix *ls_misfit_covariance (const GPtrArray *samples, const LsKindFit *fit, const LsGpu *gpu,
                                  double mape);

/* As how many independent ones the kernels tell a mean: n^2 over the sum of their correlations. `which` of
 * them, ascending (guint; NULL: all). */
double ls_misfit_independent (const gsl_matrix *K, const GArray *which);

#endif
