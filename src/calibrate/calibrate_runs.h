/* calibrate/calibrate_runs.h — a cluster fitted to step times that its owner measured on it.
 *
 * The file is one of data/measured/read_cases.h, all rows of one cluster. A row is simulated as
 * `lockstep run` would with the knobs of its columns (architecture by its mlp: data/measured/read_cases.h, no
 * family's own software). At most five parameters are fitted (calibrate/runs_fit.h, job/hardware.h);
 * where they start is what the cluster's files say, and how far they may go is:
 *
 *   compute      0.5 to 1.2 times   kernels alone on a cool GPU against a step under a power
 *                                   limit; a guess at how far that may go
 *   overlap      0.25 to 4 times    a guess
 *   intra_node   0.4 to 1.25 times  what NCCL reaches is some 0.8 of the wire, which is the
 *   inter_node                      most; below 0.4 a link is broken, not slow
 *   host_launch  2 to 50 us         5 to 25 us an op are told (exec/replay/host.c), and twice that on
 *                                   either side; on other CPUs than those of x86 servers times
 *                                   the cluster's call_time
 *
 * How far off the rows were that were left out in turn goes into the file with what was fitted: the interval
 * of later jobs on the cluster (analysis/interval.h).
 *
 * Rows that cannot be simulated are left out, and said to be. No row of this project's own
 * validation is ever used unless its file is named. */
#ifndef LS_CALIBRATE_CALIBRATE_RUNS_H
#define LS_CALIBRATE_CALIBRATE_RUNS_H

#include <glib.h>
#include <stdbool.h>

#include "base/parallel.h"
#include "cluster/cluster.h"

typedef struct {
  const char *name; /* a key of "fitted"                       */
  const char *unit; /* "us", or "" of a factor                 */
  bool is_fitted, at_bound;
  double start, value, lo, hi; /* in that unit                  */
  double error;                /* standard error of its ln; NaN: not said */
  double sensitivity;          /* most that a step's ln moves over half of its range */
  const char *why;             /* if it is not fitted: in words; borrowed */
} LsFittedLine;

typedef struct {
  const char *id;                                   /* borrowed */
  double measured_s, before_s, after_s, left_out_s; /* NaN: nothing was fitted */
} LsFittedRow;

/* Means of |predicted / measured - 1|, as fractions. */
typedef struct {
  double before, after, left_out;
} LsFittedError;

typedef struct {
  char *cluster, *file, *sha256;
  GArray *lines; /* LsFittedLine */
  GArray *rows;  /* LsFittedRow  */
  LsFittedError error;
  LsFittedRuns left_out; /* n 0: nothing was fitted */
  double condition;      /* of the Jacobian of what is fitted; NaN: nothing is */
  GArray *singular;      /* double: of all, at the start                      */
  char *rest;            /* what rows rest on that they do not say, in words; "": nothing */
  const char *version;
  GPtrArray *notes; /* char *: rows that were left out, and what is odd about others, a line each */
} LsFittedReport;

typedef struct {
  const char *const *paths; /* of tables and logs: job/job_cases.h; a fit is of all rows of one cluster */
  const char *cluster;      /* name or file; NULL: that of the column; of logs it is needed */
  guint n_threads;          /* 0: one per processor                   */
  const char *version;      /* of Lockstep, for the provenance        */
  LsProgress progress;      /* in simulations                         */
} LsCalibrateRunsSpec;

typedef struct LsCalibrateRuns LsCalibrateRuns;

/* NULL: LS_ERROR_INPUT (a bad file, other units, fewer than two rows that can be simulated),
 * LS_ERROR_CONFLICT (rows of several clusters; a cluster that was fitted before). The result
 * does not depend on n_threads. */
LsCalibrateRuns *ls_calibrate_runs_new (const LsCalibrateRunsSpec *spec, GError **error);
void ls_calibrate_runs_free (LsCalibrateRuns *run); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsCalibrateRuns, ls_calibrate_runs_free)

const LsFittedReport *ls_calibrate_runs_report (const LsCalibrateRuns *run);
/* The cluster as a file of that name; newly allocated. LS_ERROR_UNSUPPORTED: it came from XML;
 * LS_ERROR_FAILED: nothing was fitted. */
char *ls_calibrate_runs_json (const LsCalibrateRuns *run, const char *name, GError **error);

/* --- what a fit to measured steps should not be asked to explain ------------------------------------- */

/*   other units     in the median measured is 20 times what is predicted, or a 20th: an error
 *   an outlier      further from the median of ln (measured / predicted) than 1.5 times and than 5
 *                   median deviations from it: a note
 *   contradiction   runs predicted alike to the last digit, the slowest of which took 1.05 times
 *                   what the fastest did: a note for each, of the fastest
 *
 * Nothing is left out: whose runs they are knows why. */

typedef struct {
  const char *id;
  double measured_s, predicted_s;
} LsCheckedRun;

/* Appends notes (char *) of n > 0 runs. LS_ERROR_INPUT, beginning with the file's name: other units. */
gboolean ls_runs_check (const char *file, const LsCheckedRun *runs, guint n, GPtrArray *notes,
                        GError **error);

#endif
