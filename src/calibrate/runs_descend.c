/* Levenberg-Marquardt over what is active, from more than one place. */
#include <glib.h>
#include <gsl/gsl_multifit_nlinear.h>
#include <math.h>

#include "calibrate/runs_work.h"

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
