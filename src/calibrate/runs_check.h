/* calibrate/runs_check.h — what a fit to measured steps should not be asked to explain.
 *
 *   other units     in the median measured is 20 times what is predicted, or a 20th: an error
 *   an outlier      further from the median of ln (measured / predicted) than 1.5 times and than 5
 *                   median deviations from it: a note
 *   contradiction   runs predicted alike to the last digit, the slowest of which took 1.05 times
 *                   what the fastest did: a note for each, of the fastest
 *
 * Nothing is left out: whose runs they are knows why. */
#ifndef LS_CALIBRATE_RUNS_CHECK_H
#define LS_CALIBRATE_RUNS_CHECK_H

#include <glib.h>

typedef struct {
  const char *id;
  double measured_s, predicted_s;
} LsCheckedRun;

/* Appends notes (char *) of n > 0 runs. LS_ERROR_INPUT, beginning with the file's name: other units. */
gboolean ls_runs_check (const char *file, const LsCheckedRun *runs, guint n, GPtrArray *notes,
                        GError **error);

#endif
