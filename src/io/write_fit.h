/* io/write_fit.h — what a fit to measured kernels reached: errors by class of kernels,
 * the worst of them, for people. */
#ifndef LS_IO_WRITE_FIT_H
#define LS_IO_WRITE_FIT_H

#include <glib.h>

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
  const char *key;  /* of the calibration, static */
  LsDtype dtype;
  bool is_alone;    /* all were held out, so nothing was: the fit saw all */
  LsFitError fit, held_out;
} LsFitClass;

typedef struct {
  char *gpu;
  char *timing;        /* "burst: ...": what the times stand for      */
  GPtrArray *files;    /* char *: a line for each                     */
  GArray *classes;     /* LsFitClass                                  */
  GArray *kernels;     /* LsFittedKernel, in the order of the files   */
  guint n_measured;    /* rows of the measured table                  */
} LsFitReport;

/* Newly allocated, ending in a newline. */
char *ls_fit_report_to_text (const LsFitReport *report);

#endif
