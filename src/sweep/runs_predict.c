/* Residuals and slopes of the runs: what is known already is not simulated again. */
#include <glib.h>
#include <gsl/gsl_matrix.h>
#include <math.h>
#include <string.h>

#include "sweep/runs_work.h"

#define DELTA 0.02 /* of u, in differences          */
#define NEAR  0.03 /* of u: as far a Jacobian serves */

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

bool
runs_simulate (RunsWork *w, const gsl_vector *u, size_t row, double *r)
{
  double values[LS_RUNS_MAX_PARAMETERS];
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

/* Towards the inside of the range. */
static bool
differences (RunsWork *w, const gsl_vector *u)
{
  size_t n = w->p->n_rows, p = w->n_active;
  g_autofree double *at = g_new (double, n), *beside = g_new (double, n);
  gsl_vector *v = gsl_vector_alloc (p);
  bool ok = runs_residuals (w, u, at);
  for (size_t a = 0; a < p && ok; a++) {
    const LsRunsParameter *x = &w->p->parameters[w->active[a]];
    double place = gsl_vector_get (u, a), step = value_at (x, place + DELTA) < x->hi ? DELTA : -DELTA;
    gsl_vector_memcpy (v, u);
    gsl_vector_set (v, a, place + step);
    ok = runs_simulate (w, v, LS_ALL_ROWS, beside);
    for (size_t i = 0; i < n; i++)
      w->slope[i * p + a] = (beside[i] - at[i]) / step;
  }
  if (ok)
    note_place (w, u, w->slope_u);
  gsl_vector_free (v);
  return ok;
}

bool
runs_jacobian (RunsWork *w, const gsl_vector *u, gsl_matrix *J)
{
  if (!(distance (w, u, w->slope_u) <= NEAR) && !differences (w, u))
    return false;
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
