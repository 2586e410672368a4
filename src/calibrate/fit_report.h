/* calibrate/fit_report.h — what a fit to measured kernels reached, errors by class of kernels and the
 * coefficients that moved; and what one to measured runs leaves, a cluster file. */
#ifndef LS_CALIBRATE_FIT_REPORT_H
#define LS_CALIBRATE_FIT_REPORT_H

#include <glib.h>
#include <stdbool.h>

#include "calibrate/calibrate_runs.h"
#include "data/text/json_doc.h"
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

/* What a profile says besides its kernels, held against what the simulator assumes. */
typedef struct {
  char *use;        /* where it is written; NULL: nowhere. Owned                */
  const char *what; /* static                                                   */
  const char *unit; /* static: "us", "GB/s", "" of a ratio                      */
  double assumed;   /* NaN: nothing                                             */
  double measured;
  const char *note;   /* static: what the measurement is not, or why it is unused; NULL: nothing to say */
  bool needs_cluster; /* it is of one, and none was named                       */
} LsAssumedFigure;

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
  GArray *assumptions; /* LsAssumedFigure                                 */
  LsFitError held_out; /* of all kernels that were: n, and mape; NaN of none */
  GPtrArray *notes;    /* char *: what was not used, a line each       */
} LsFitReport;

/* x as the coefficient is printed: "0.84", "4.2us"; and why it is what it is. Newly allocated. */
char *ls_fit_change_value (const LsFitChange *change, double x);
char *ls_fit_change_verdict (const LsFitChange *change);

/* "gemm compute_efficiency: 0.84 to 0.7, standard error 1.2 %"; newly allocated. */
char *ls_fit_change_to_text (const LsFitChange *change);

/* --- what a fit to measured runs leaves -------------------------------------------------------------- */

/* The cluster's file with that name, "source" and "fitted". Newly allocated. */
char *ls_fitted_to_json (const LsJsonDoc *base, const LsFittedReport *report, const char *name);

/* Appends "mean absolute error: before 12.30 %, fitted 4.10 %, ..."; what is not known is left out. */
void ls_fitted_error_print (const LsFittedError *error, GString *out);

#endif
