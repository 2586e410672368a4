/* calibrate/runs_work.h — a fit to measured runs as it goes on: what the files of calibrate/runs_fit.h share
 * (private).
 *
 * u: places in units of half of each range, from the start of the parameter; vectors of u have a
 * component for each active parameter. r: ln (predicted / measured) of each row. */
#ifndef LS_CALIBRATE_RUNS_WORK_H
#define LS_CALIBRATE_RUNS_WORK_H

#include <gsl/gsl_matrix.h>
#include <gsl/gsl_vector.h>

#include "calibrate/runs_fit.h"

/* A fit of some of the parameters, with what was predicted last: a simulation may take seconds. */
typedef struct {
  const LsRunsProblem *p;
  size_t active[LS_RUNS_MAX_PARAMETERS], n_active;
  double from[LS_RUNS_MAX_PARAMETERS]; /* u of each parameter from which the next fit starts */
  double away[LS_RUNS_MAX_PARAMETERS]; /* another, where it moves rows on one side only; 0: both */
  double known_u[LS_RUNS_MAX_PARAMETERS], *known_r; /* residuals of all rows; NaN: of none   */
  double slope_u[LS_RUNS_MAX_PARAMETERS], *slope;   /* Jacobian, row by row; likewise        */
  bool is_rough; /* predicts by curves through the ends of ranges, not by simulation */
  double end_u[LS_RUNS_MAX_PARAMETERS][2],
      *end_r[LS_RUNS_MAX_PARAMETERS][2]; /* these ends; NULL: none simulated */
  const double *start_r; /* where all parameters start                                       */
  double *off;           /* by how much the curves are put right, of each row                */
  bool may_drop;
  bool has_failed;
} RunsWork;

/* runs_descend.c. What returns bool: false, a simulation failed. */
double runs_half_range (const LsRunsParameter *x); /* in ln */
double runs_u_of (const LsRunsParameter *x, double value);
void runs_values_at (const RunsWork *w, const gsl_vector *u, double *ret_values);
bool runs_simulate (RunsWork *w, const gsl_vector *u, size_t row, double *ret_r); /* or LS_ALL_ROWS */
double runs_rough (const RunsWork *w, const gsl_vector *u, size_t row);           /* the same by the curves */
bool runs_residuals (RunsWork *w, const gsl_vector *u, double *ret_r);
bool runs_jacobian (RunsWork *w, const gsl_vector *u, gsl_matrix *ret_J); /* near u serves */
double runs_sum_of_squares (const double *r, size_t n);
void runs_drop (RunsWork *w, size_t a, LsRunsState why, LsRunsFit *fit);

/* runs_look.c: both ends of each range; drops whom no run depends on and whom so few rows cannot tell. Fills
 * sensitivity and singular of fit, by its `before`. */
bool runs_look (RunsWork *w, LsRunsFit *fit);

/* runs_descend.c: the least sum of squares within the ranges. */
bool runs_find_best (RunsWork *w, gsl_vector *ret_u);

#endif
