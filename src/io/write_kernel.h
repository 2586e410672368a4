/* io/write_kernel.h — times of kernels, for people and for programs (`kernel --json`,
 * names of DESIGN.md section 9). */
#ifndef LS_IO_WRITE_KERNEL_H
#define LS_IO_WRITE_KERNEL_H

#include <glib.h>

#include "compute/cost.h"
#include "model/kernel.h"

typedef struct {
  LsKernel kernel;
  LsKernelCost cost;  /* alone; its source and extrapolation too          */
  double besides_s;   /* what a table's timing holds besides it           */
  double time_s;      /* the whole: cost and besides, or as measured      */
  LsCostSource source; /* of time_s                                       */
  bool extrapolated;
  double measured_s;  /* NaN: not measured                                */
  bool held_out;      /* of the fits                                      */
} LsKernelRow;

/* Errors in percent of the measurement; NaN without rows. */
typedef struct {
  guint n;
  double mape_pct;
  double median_pct; /* signed */
} LsKernelErrors;

typedef struct {
  const char *gpu;
  GArray *rows; /* of LsKernelRow */
  bool has_measured;
  LsKernelErrors all, held_out; /* if has_measured */
} LsKernelRows;

double ls_kernel_row_error_pct (const LsKernelRow *row); /* signed; NaN: not measured */

/* Newly allocated, ending in a newline. */
char *ls_kernel_rows_to_json (const LsKernelRows *rows);
/* All of a single kernel; a line each of up to 40; of more measured ones the errors. */
char *ls_kernel_rows_to_text (const LsKernelRows *rows);

#endif
