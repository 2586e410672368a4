/* Levenberg-Marquardt over what is active, from more than one place. */
#include <glib.h>
#include <gsl/gsl_matrix.h>
#include <gsl/gsl_multifit_nlinear.h>
#include <math.h>
#include <string.h>

#include "calibrate/runs_work.h"

/* --- residuals and slopes of the runs: what is known already is not simulated again -------------- */

#define DELTA 0.02 /* of u, in differences          */

double
runs_half_range (const LsRunsParameter *x)
{
  return 0.5 * log (x->hi / x->lo);
}

double
runs_u_of (const LsRunsParameter *x, double value)
{
  return log (value / x->start) / runs_half_range (x);
}

static double
value_at (const LsRunsParameter *x, double u)
{
  return CLAMP (x->start * exp (u * runs_half_range (x)), x->lo, x->hi);
}

void
runs_values_at (const RunsWork *w, const gsl_vector *u, double *ret_values)
{
  for (size_t j = 0; j < w->p->n_parameters; j++)
    ret_values[j] = w->p->parameters[j].start;
  for (size_t a = 0; a < w->n_active; a++)
    ret_values[w->active[a]] = value_at (&w->p->parameters[w->active[a]], gsl_vector_get (u, a));
}

/* How far apart in the component that differs most; NaN if b is. */
static double
distance (const RunsWork *w, const gsl_vector *a, const double *b)
{
  double most = 0;
  for (size_t j = 0; j < w->n_active; j++) {
    double d = fabs (gsl_vector_get (a, j) - b[j]);
    most = isnan (d) || d > most ? d : most;
  }
  return most;
}

static void
note_place (const RunsWork *w, const gsl_vector *u, double *ret_place)
{
  for (size_t j = 0; j < w->n_active; j++)
    ret_place[j] = gsl_vector_get (u, j);
}

/* What row i moves by, from the start to u of parameter j: the parabola through start and both ends; where
 * the parameter bites on one side only, straight lines. */
static double
curve (const RunsWork *w, size_t j, size_t i, double u)
{
  const double *lo = w->end_r[j][0], *hi = w->end_r[j][1];
  double a = w->end_u[j][0], b = w->end_u[j][1], at = CLAMP (u, a, b);
  double below = a < 0 ? (lo[i] - w->start_r[i]) / a : 0,
         above = b > 0 ? (hi[i] - w->start_r[i]) / b : 0; /* slopes of chords */
  if (a >= 0 || b <= 0 || w->away[j] != 0)
    return at * (at < 0 ? below : above);
  double bend = (above - below) / (b - a);
  return at * (above - bend * (b - at));
}

double
runs_rough (const RunsWork *w, const gsl_vector *u, size_t row)
{
  double r = w->start_r[row] + w->off[row];
  for (size_t a = 0; a < w->n_active; a++)
    r += curve (w, w->active[a], row, gsl_vector_get (u, a));
  return r;
}

bool
runs_simulate (RunsWork *w, const gsl_vector *u, size_t row, double *r)
{
  double values[LS_RUNS_MAX_PARAMETERS];
  for (size_t i = 0; i < w->p->n_rows && w->is_rough; i++)
    if (row == LS_ALL_ROWS || row == i)
      r[i] = runs_rough (w, u, i);
  if (w->is_rough)
    return true;
  runs_values_at (w, u, values);
  if (!w->p->predict (w->p->context, values, row, r))
    w->has_failed = true;
  for (size_t i = 0; i < w->p->n_rows; i++)
    if (row == LS_ALL_ROWS || row == i)
      r[i] = w->has_failed ? 0 : r[i] - w->p->log_measured[i];
  return !w->has_failed;
}

bool
runs_residuals (RunsWork *w, const gsl_vector *u, double *r)
{
  if (!(distance (w, u, w->known_u) <= 0)) {
    if (!runs_simulate (w, u, LS_ALL_ROWS, w->known_r))
      return false;
    note_place (w, u, w->known_u);
  }
  memcpy (r, w->known_r, w->p->n_rows * sizeof *r);
  return true;
}

double
runs_sum_of_squares (const double *r, size_t n)
{
  double sum = 0;
  for (size_t i = 0; i < n; i++)
    sum += r[i] * r[i];
  return sum;
}

/* Towards the inside of the range. By the curves: a simulation tells how far a row is off, which its slopes
 * need not. */
static void
differences (RunsWork *w, const gsl_vector *u)
{
  size_t n = w->p->n_rows, p = w->n_active;
  gsl_vector *v = gsl_vector_alloc (p);
  for (size_t a = 0; a < p; a++) {
    const LsRunsParameter *x = &w->p->parameters[w->active[a]];
    double place = gsl_vector_get (u, a), step = value_at (x, place + DELTA) < x->hi ? DELTA : -DELTA;
    gsl_vector_memcpy (v, u);
    gsl_vector_set (v, a, place + step);
    for (size_t i = 0; i < n; i++)
      w->slope[i * p + a] = (runs_rough (w, v, i) - runs_rough (w, u, i)) / step;
  }
  note_place (w, u, w->slope_u);
  gsl_vector_free (v);
}

bool
runs_jacobian (RunsWork *w, const gsl_vector *u, gsl_matrix *J)
{
  if (!(distance (w, u, w->slope_u) <= 0))
    differences (w, u);
  gsl_matrix_const_view slope = gsl_matrix_const_view_array (w->slope, w->p->n_rows, w->n_active);
  gsl_matrix_memcpy (J, &slope.matrix);
  return true;
}

void
runs_drop (RunsWork *w, size_t a, LsRunsState why, LsRunsFit *fit)
{
  fit->state[w->active[a]] = why;
  memmove (w->active + a, w->active + a + 1, (w->n_active - a - 1) * sizeof *w->active);
  w->n_active--;
  w->known_u[0] = w->slope_u[0] = NAN;
}

/* --- levenberg-Marquardt over what is active, from more than one place --------------------------- */

#define CONVERGED 3e-4 /* of u: a step that ends a descent,               */
#define NO_GAIN   1e-3 /* or of the sum of squares                        */
#define NUDGE     0.1  /* of u: from the end of a range to the inside     */
#define MAX_STEPS 20

static int
on_residuals (const gsl_vector *u, void *data, gsl_vector *f)
{
  return runs_residuals (data, u, f->data) ? GSL_SUCCESS : GSL_EFAILED;
}

static int
on_jacobian (const gsl_vector *u, void *data, gsl_matrix *J)
{
  return runs_jacobian (data, u, J) ? GSL_SUCCESS : GSL_EFAILED;
}

/* Into each range, that far from its ends; whether it was outside. */
static bool
keep_inside (const RunsWork *w, double margin, gsl_vector *u)
{
  bool was_outside = false;
  for (size_t a = 0; a < w->n_active; a++) {
    const LsRunsParameter *x = &w->p->parameters[w->active[a]];
    double lo = runs_u_of (x, x->lo), hi = runs_u_of (x, x->hi), at = gsl_vector_get (u, a);
    if (at < lo || at > hi) {
      was_outside = true;
      gsl_vector_set (u, a, CLAMP (at, lo + margin, hi - margin));
    }
  }
  return was_outside;
}

/* Nothing depends on anything: GSL's QR wants a rank of 1 at least. */
static bool
is_flat (const gsl_matrix *J)
{
  return gsl_matrix_max (J) <= 0 && gsl_matrix_min (J) >= 0;
}

static bool
descend (RunsWork *w, gsl_vector *u)
{
  gsl_multifit_nlinear_parameters how = gsl_multifit_nlinear_default_parameters ();
  gsl_multifit_nlinear_workspace *s
      = gsl_multifit_nlinear_alloc (gsl_multifit_nlinear_trust, &how, w->p->n_rows, w->n_active);
  gsl_multifit_nlinear_fdf fdf
      = { .f = on_residuals, .df = on_jacobian, .n = w->p->n_rows, .p = w->n_active, .params = w };
  bool goes_on = gsl_multifit_nlinear_init (u, &fdf, s) == GSL_SUCCESS;
  for (int i = 0; goes_on && i < MAX_STEPS && !is_flat (gsl_multifit_nlinear_jac (s)); i++) {
    double before = runs_sum_of_squares (gsl_multifit_nlinear_residual (s)->data, w->p->n_rows);
    goes_on = gsl_multifit_nlinear_iterate (s) == GSL_SUCCESS;
    double after = runs_sum_of_squares (gsl_multifit_nlinear_residual (s)->data, w->p->n_rows);
    gsl_vector_sub (u, gsl_multifit_nlinear_position (s));
    goes_on = goes_on && fmax (gsl_vector_max (u), -gsl_vector_min (u)) > CONVERGED
        && after < (1 - NO_GAIN) * before;
    gsl_vector_memcpy (u, gsl_multifit_nlinear_position (s));
  }
  gsl_multifit_nlinear_free (s);
  return !w->has_failed;
}

/* Beyond its range a value stays, and nothing depends on it: what got there starts again from the inside of
 * the range, and the better end is taken. */
static bool
descend_inside (RunsWork *w, gsl_vector *u, double *ret_cost)
{
  g_autofree double *r = g_new (double, w->p->n_rows);
  gsl_vector *again = gsl_vector_alloc (w->n_active);
  bool ok = descend (w, u);
  gsl_vector_memcpy (again, u);
  bool was_outside = keep_inside (w, NUDGE, again);
  keep_inside (w, 0, u);
  ok = ok && runs_residuals (w, u, r);
  *ret_cost = runs_sum_of_squares (r, w->p->n_rows);
  if (ok && was_outside && descend (w, again)) {
    keep_inside (w, 0, again);
    ok = runs_residuals (w, again, r);
    double cost = runs_sum_of_squares (r, w->p->n_rows);
    if (ok && cost < *ret_cost) {
      *ret_cost = cost;
      gsl_vector_memcpy (u, again);
    }
  }
  gsl_vector_free (again);
  return ok && !w->has_failed;
}

/* From where the last fit ended; and from there with those parameters moved to where they bite that bite on
 * one side of their start only: where one does not, nothing depends on it, and no slope leads back. */
bool
runs_find_best (RunsWork *w, gsl_vector *u)
{
  gsl_vector *v = gsl_vector_alloc (w->n_active);
  double cost, other;
  bool has_other = false;
  for (size_t a = 0; a < w->n_active; a++) {
    size_t j = w->active[a];
    gsl_vector_set (u, a, w->from[j]);
    gsl_vector_set (v, a, w->away[j] != 0 ? w->away[j] : w->from[j]);
    has_other |= w->away[j] != 0;
  }
  bool ok = descend_inside (w, u, &cost);
  if (ok && has_other) {
    ok = descend_inside (w, v, &other);
    if (ok && other < cost)
      gsl_vector_memcpy (u, v);
  }
  for (size_t a = 0; a < w->n_active; a++)
    w->from[w->active[a]] = gsl_vector_get (u, a);
  gsl_vector_free (v);
  return ok;
}
