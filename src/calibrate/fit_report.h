/* calibrate/fit_report.h — what a fit to measured kernels reached: errors by class of kernels, and the
 * coefficients that moved. */
#ifndef LS_CALIBRATE_FIT_REPORT_H
#define LS_CALIBRATE_FIT_REPORT_H

#include <glib.h>
#include <gsl/gsl_matrix.h>
#include <stdbool.h>

#include "compute/cost.h"
#include "data/measured/read_kernels.h"
#include "model/kernel.h"

/* Errors of predicted over measured time: fractions, predicted / measured - 1. */
typedef struct {
  guint n;
  double mape;
  double bias;
  double median;
} LsFitError;

/* A kernel with the time that its fit gives, what its timing holds besides it included. */
typedef struct {
  LsKernel kernel; /* its name is static */
  guint class;     /* in LsFitReport     */
  double measured_s, predicted_s;
  bool held_out;
} LsFittedKernel;

/* Kernels of an entry of the calibration and a number format. */
typedef struct {
  const char *key; /* of the calibration, static */
  LsDtype dtype;
  bool is_alone; /* all were held out, so nothing was: the fit saw all */
  LsFitError fit, held_out;
} LsFitClass;

/* A coefficient of the calibration that was there, and what the kernels made of it. */
typedef struct {
  const char *key, *name; /* entry and coefficient, static               */
  bool is_time;           /* before and after are seconds                */
  double before, after;   /* equal if it is kept                         */
  double change,
      error; /* of its ln, as the kernels would have it, and the standard error of that; NaN: not told */
  bool is_replaced;
  const char *why; /* it is kept; static                          */
} LsFitChange;

typedef struct {
  char *gpu;
  char *base;          /* the calibration that was there; NULL: none  */
  char *kept;          /* its entries that no kernel is of; NULL: none */
  GArray *changes;     /* LsFitChange                                 */
  GPtrArray *follows;  /* char *: "batched-gemm as gemm"              */
  char *timing;        /* "burst: ...": what the times stand for      */
  GPtrArray *files;    /* char *: a line for each                     */
  GArray *classes;     /* LsFitClass                                  */
  GArray *kernels;     /* LsFittedKernel, in the order of the files   */
  guint n_measured;    /* rows of the measured table                  */
  GArray *assumptions; /* LsAssumption (calibrate/assumed.h)           */
} LsFitReport;

/* x as the coefficient is printed: "0.84", "4.2us"; and why it is what it is. Newly allocated. */
char *ls_fit_change_value (const LsFitChange *change, double x);
char *ls_fit_change_verdict (const LsFitChange *change);

/* "gemm compute_efficiency: 0.84 to 0.7, standard error 1.2 %"; newly allocated. */
char *ls_fit_change_to_text (const LsFitChange *change);

/* --- by how much measured kernels are off a calibration, together -------------------------------- */

/* Problem. A calibration is off by some percent on each shape, and alike on shapes that are alike: a library
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

/* Covariance of the kernels' misfits (const LsTimedKernel; at least one), in its lower triangle. `mape`: mean
 * absolute error of `fit`, a fraction above 0. Free with gsl_matrix_free(). */
gsl_matrix *ls_misfit_covariance (const GPtrArray *samples, const LsKindFit *fit, const LsGpu *gpu,
                                  double mape);

/* As how many independent ones the kernels tell a mean: n^2 over the sum of their correlations. `which` of
 * them, ascending (guint; NULL: all). */
double ls_misfit_independent (const gsl_matrix *K, const GArray *which);

#endif
