/* calibrate/runs_fit.h — a handful of parameters fitted to a few measured steps, and which of them
 * such data can tell at all.
 *
 * Unknowns. Parameter j with plausible range [lo, hi] and start s is s exp (u h),
 * h = ln (hi / lo) / 2: one unit of u is half of the range, so that columns of a Jacobian
 * compare. Residual of row i: r_i = ln (predicted_i / measured_i). Minimised is the sum of r^2 by
 * Levenberg-Marquardt (gsl_multifit_nlinear, Moré's scaling).
 *
 * A simulation may take seconds, so few are made. Each parameter is simulated at both ends of its range; the
 * rows' curves through these ends and the start (parabolas; straight lines where a parameter bites on one
 * side only), added up over the parameters, stand for the simulator in a first fit, from s. Where it ends all
 * rows are simulated, the curves put right by what they were off, and fitted again, until both say the same.
 * Each fit is also tried with those parameters moved to where they bite that do nothing on one side of s: a
 * NIC behind a slower NVLink. What ends outside a range starts again from its inside. In all, some fifteen
 * simulations of each row.
 *
 * What is fitted. One after the other is kept at its start, and says why:
 *
 *   LS_KEPT_UNSEEN      no row moves by 0.1 % over the whole of its range
 *   LS_KEPT_FEW_ROWS    more than half as many parameters as rows: those go that explain least of what
 *                       others leave, by their slopes over whole ranges
 *   LS_KEPT_UNCERTAIN   its standard error exceeds half of its range: those that it trades
 *                       with explain the rows as well
 *   LS_KEPT_AGREES      it ends within a standard error of its start
 *
 * Of the last two the worst goes, and the fit starts anew.
 *
 * Standard errors: sqrt (s^2 (J'J)^-1_jj) by the singular values of J, with s^2 the larger of
 * sum r^2 / (n - p) and a guess of what repeated runs scatter by, 1 %: data that fit too well
 * must not make every parameter certain.
 *
 * Left out. For each row the optimum without it (and without other rows of its job), one Gauss-Newton step
 * from that of all, and the row predicted there, by the curves. That is an approximation: the rows left fit
 * the same parameters as all rows do, and nothing is simulated again.
 *
 * Worked example. Rows 1 and 2 s that are all compute, predicted 0.9 and 1.8: compute comes
 * out as 0.9 times, and links are unseen. */
#ifndef LS_CALIBRATE_RUNS_FIT_H
#define LS_CALIBRATE_RUNS_FIT_H

#include <stdbool.h>
#include <stddef.h>

#define LS_RUNS_MAX_PARAMETERS 8

typedef struct {
  const char *name;
  double start, lo, hi; /* 0 < lo <= start <= hi */
} LsRunsParameter;

/* Fills ret_log[n_rows] with ln (predicted); false: it cannot. */
typedef bool (*LsRunsPredict) (void *context, const double *values, double *ret_log);

typedef struct {
  const LsRunsParameter *parameters;
  size_t n_parameters, n_rows;
  const double *log_measured; /* [n_rows] */
  const double *log_start;    /* [n_rows] what is predicted where all parameters start; NULL: not known yet */
  const unsigned
      *jobs; /* [n_rows] rows of one job share a number: they are left out together; NULL: each has its own */
  LsRunsPredict predict;
  void *context;
} LsRunsProblem;

typedef enum { LS_FITTED, LS_KEPT_UNSEEN, LS_KEPT_FEW_ROWS, LS_KEPT_UNCERTAIN, LS_KEPT_AGREES } LsRunsState;

typedef struct {
  LsRunsState state[LS_RUNS_MAX_PARAMETERS];
  double value[LS_RUNS_MAX_PARAMETERS]; /* the start, if kept                              */
  double error[LS_RUNS_MAX_PARAMETERS]; /* standard error of ln (value); NaN if it was
                                                 never part of a fit                             */
  bool at_bound[LS_RUNS_MAX_PARAMETERS];
  double sensitivity[LS_RUNS_MAX_PARAMETERS]; /* most that a row's ln moves over half the range  */
  size_t n_fitted;
  double singular[LS_RUNS_MAX_PARAMETERS]; /* of the rows' slopes over all ranges, descending */
  double condition;                        /* largest / smallest of those that are fitted     */
  double *before, *after, *left_out;       /* [n_rows] residuals; left_out NaN: nothing fitted */
} LsRunsFit;

/* How many times all rows are simulated at most, after the start. */
size_t ls_runs_most_simulations (size_t n_parameters);

/* false: a prediction failed; nothing is to be freed then. */
bool ls_runs_fit (const LsRunsProblem *problem, LsRunsFit *ret_fit);
void ls_runs_fit_clear (LsRunsFit *fit);

#endif
