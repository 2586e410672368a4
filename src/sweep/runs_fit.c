#include "sweep/runs_fit.h"

#include <glib.h>
#include <gsl/gsl_blas.h>
#include <gsl/gsl_linalg.h>
#include <gsl/gsl_multifit_nlinear.h>
#include <math.h>
#include <string.h>

#define DELTA       0.02  /* of u, in differences                            */
#define NEAR        0.03  /* of u: as far a Jacobian serves                  */
#define CONVERGED   3e-4  /* of u: a step that ends a descent,               */
#define NO_GAIN     1e-3  /* or of the sum of squares                        */
#define NUDGE       0.1   /* of u: from the end of a range to the inside     */
#define ONE_SIDED   0.05  /* of what a row moves on the other side of the start */
#define UNSEEN      1e-3  /* ln: less than any timing tells                  */
#define RUN_SCATTER 0.01  /* ln: repeated steps of one job; a guess          */
#define MAX_STEPS   20

/* A fit of some of the parameters, with what was predicted last: a simulation may take seconds. */
typedef struct {
  const LsRunsProblem *p;
  size_t active[LS_RUNS_MAX_PARAMETERS], n_active;
  double from[LS_RUNS_MAX_PARAMETERS]; /* u of each parameter from which the next fit starts */
  double away[LS_RUNS_MAX_PARAMETERS]; /* and the first as well; 0: rows move both ways      */
  double known_u[LS_RUNS_MAX_PARAMETERS], *known_r; /* residuals of all rows; NaN: of none   */
  double slope_u[LS_RUNS_MAX_PARAMETERS], *slope;   /* Jacobian, row by row; likewise        */
  bool has_failed;
} Work;

/* ---- predictions ---- */

static double
half_range (const LsRunsParameter *x)
{
  return 0.5 * log (x->hi / x->lo);
}

static double
value_at (const LsRunsParameter *x, double u)
{
  return CLAMP (x->start * exp (u * half_range (x)), x->lo, x->hi);
}

static void
values_at (const Work *w, const gsl_vector *u, double *values)
{
  for (size_t j = 0; j < w->p->n_parameters; j++)
    values[j] = w->p->parameters[j].start;
  for (size_t a = 0; a < w->n_active; a++)
    values[w->active[a]] = value_at (&w->p->parameters[w->active[a]], gsl_vector_get (u, a));
}

/* How far apart in the component that differs most; NaN if b is. */
static double
distance (const Work *w, const gsl_vector *a, const double *b)
{
  double most = 0;
  for (size_t j = 0; j < w->n_active; j++) {
    double d = fabs (gsl_vector_get (a, j) - b[j]);
    most = isnan (d) || d > most ? d : most;
  }
  return most;
}

static void
note_place (const Work *w, const gsl_vector *u, double *ret_place)
{
  for (size_t j = 0; j < w->n_active; j++)
    ret_place[j] = gsl_vector_get (u, j);
}

static bool
simulate (Work *w, const gsl_vector *u, size_t row, double *r)
{
  double values[LS_RUNS_MAX_PARAMETERS];
  values_at (w, u, values);
  if (!w->p->predict (w->p->context, values, row, r))
    w->has_failed = true;
  for (size_t i = 0; i < w->p->n_rows; i++)
    if (row == LS_ALL_ROWS || row == i)
      r[i] = w->has_failed ? 0 : r[i] - w->p->log_measured[i];
  return !w->has_failed;
}

static bool
residuals (Work *w, const gsl_vector *u, double *r)
{
  if (!(distance (w, u, w->known_u) <= 0)) {
    if (!simulate (w, u, LS_ALL_ROWS, w->known_r))
      return false;
    note_place (w, u, w->known_u);
  }
  memcpy (r, w->known_r, w->p->n_rows * sizeof *r);
  return true;
}

static double
sum_of_squares (const double *r, size_t n)
{
  double sum = 0;
  for (size_t i = 0; i < n; i++)
    sum += r[i] * r[i];
  return sum;
}

static int
on_residuals (const gsl_vector *u, void *data, gsl_vector *f)
{
  return residuals (data, u, f->data) ? GSL_SUCCESS : GSL_EFAILED;
}

/* Towards the inside of the range. */
static bool
differences (Work *w, const gsl_vector *u)
{
  size_t n = w->p->n_rows, p = w->n_active;
  g_autofree double *at = g_new (double, n), *beside = g_new (double, n);
  gsl_vector *v = gsl_vector_alloc (p);
  bool ok = residuals (w, u, at);
  for (size_t a = 0; a < p && ok; a++) {
    const LsRunsParameter *x = &w->p->parameters[w->active[a]];
    double place = gsl_vector_get (u, a), step = value_at (x, place + DELTA) < x->hi ? DELTA : -DELTA;
    gsl_vector_memcpy (v, u);
    gsl_vector_set (v, a, place + step);
    ok = simulate (w, v, LS_ALL_ROWS, beside);
    for (size_t i = 0; i < n; i++)
      w->slope[i * p + a] = (beside[i] - at[i]) / step;
  }
  if (ok)
    note_place (w, u, w->slope_u);
  gsl_vector_free (v);
  return ok;
}

static bool
jacobian (Work *w, const gsl_vector *u, gsl_matrix *J)
{
  if (!(distance (w, u, w->slope_u) <= NEAR) && !differences (w, u))
    return false;
  gsl_matrix_const_view slope = gsl_matrix_const_view_array (w->slope, w->p->n_rows, w->n_active);
  gsl_matrix_memcpy (J, &slope.matrix);
  return true;
}

static int
on_jacobian (const gsl_vector *u, void *data, gsl_matrix *J)
{
  return jacobian (data, u, J) ? GSL_SUCCESS : GSL_EFAILED;
}

/* ---- one fit ---- */

/* Into each range, that far from its ends; whether it was outside. */
static bool
keep_inside (const Work *w, double margin, gsl_vector *u)
{
  bool was_outside = false;
  for (size_t a = 0; a < w->n_active; a++) {
    const LsRunsParameter *x = &w->p->parameters[w->active[a]];
    double lo = log (x->lo / x->start) / half_range (x), hi = log (x->hi / x->start) / half_range (x), at = gsl_vector_get (u, a);
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
descend (Work *w, gsl_vector *u)
{
  gsl_multifit_nlinear_parameters how = gsl_multifit_nlinear_default_parameters ();
  gsl_multifit_nlinear_workspace *s = gsl_multifit_nlinear_alloc (gsl_multifit_nlinear_trust, &how, w->p->n_rows, w->n_active);
  gsl_multifit_nlinear_fdf fdf = { .f = on_residuals, .df = on_jacobian, .n = w->p->n_rows, .p = w->n_active, .params = w };
  bool goes_on = gsl_multifit_nlinear_init (u, &fdf, s) == GSL_SUCCESS;
  for (int i = 0; goes_on && i < MAX_STEPS && !is_flat (gsl_multifit_nlinear_jac (s)); i++) {
    double before = sum_of_squares (gsl_multifit_nlinear_residual (s)->data, w->p->n_rows);
    goes_on = gsl_multifit_nlinear_iterate (s) == GSL_SUCCESS;
    double after = sum_of_squares (gsl_multifit_nlinear_residual (s)->data, w->p->n_rows);
    gsl_vector_sub (u, gsl_multifit_nlinear_position (s));
    goes_on = goes_on && fmax (gsl_vector_max (u), -gsl_vector_min (u)) > CONVERGED && after < (1 - NO_GAIN) * before;
    gsl_vector_memcpy (u, gsl_multifit_nlinear_position (s));
  }
  gsl_multifit_nlinear_free (s);
  return !w->has_failed;
}

/* Beyond its range a value stays, and nothing depends on it: what got there starts again from the inside of
 * the range, and the better end is taken. */
static bool
descend_inside (Work *w, gsl_vector *u, double *ret_cost)
{
  g_autofree double *r = g_new (double, w->p->n_rows);
  gsl_vector *again = gsl_vector_alloc (w->n_active);
  bool ok = descend (w, u);
  gsl_vector_memcpy (again, u);
  bool was_outside = keep_inside (w, NUDGE, again);
  keep_inside (w, 0, u);
  ok = ok && residuals (w, u, r);
  *ret_cost = sum_of_squares (r, w->p->n_rows);
  if (ok && was_outside && descend (w, again)) {
    keep_inside (w, 0, again);
    ok = residuals (w, again, r);
    double cost = sum_of_squares (r, w->p->n_rows);
    if (ok && cost < *ret_cost) {
      *ret_cost = cost;
      gsl_vector_memcpy (u, again);
    }
  }
  gsl_vector_free (again);
  return ok && !w->has_failed;
}

/* From where the last fit ended; the first also from where those parameters bite that do not at the start. */
static bool
find_best (Work *w, gsl_vector *u)
{
  gsl_vector *v = gsl_vector_alloc (w->n_active);
  double cost, other;
  bool has_other = false;
  for (size_t a = 0; a < w->n_active; a++) {
    size_t j = w->active[a];
    gsl_vector_set (u, a, w->from[j]);
    gsl_vector_set (v, a, w->away[j]);
    has_other |= w->away[j] != 0;
    w->away[j] = 0;
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

/* J = U S V': U in the place of J. */
typedef struct {
  gsl_matrix *U, *V;
  gsl_vector *S;
} Svd;

static void
svd_init (Svd *d, const gsl_matrix *J)
{
  gsl_vector *work = gsl_vector_alloc (J->size2);
  *d = (Svd) { gsl_matrix_alloc (J->size1, J->size2), gsl_matrix_alloc (J->size2, J->size2), gsl_vector_alloc (J->size2) };
  gsl_matrix_memcpy (d->U, J);
  gsl_linalg_SV_decomp (d->U, d->V, d->S, work);
  gsl_vector_free (work);
}

static void
svd_clear (Svd *d)
{
  gsl_matrix_free (d->U);
  gsl_matrix_free (d->V);
  gsl_vector_free (d->S);
}

/* (J'J)^-1_jj; infinite if a singular value is none. */
static double
variance_of (const Svd *d, size_t j)
{
  double sum = 0;
  for (size_t k = 0; k < d->S->size; k++) {
    double v = gsl_matrix_get (d->V, j, k), s = gsl_vector_get (d->S, k);
    sum += v * v / fmax (s * s, 1e-30);
  }
  return sum;
}

static double
condition_of (const Svd *d)
{
  return gsl_vector_get (d->S, 0) / gsl_vector_get (d->S, d->S->size - 1);
}

/* The worst of those whose error exceeds half of its range; n_active: none. */
static size_t
set_errors (const Work *w, const Svd *d, const double *r, LsRunsFit *fit)
{
  size_t n = w->p->n_rows, worst = w->n_active;
  double most = 1, scatter = fmax (RUN_SCATTER, sqrt (sum_of_squares (r, n) / (double) (n - w->n_active)));
  for (size_t a = 0; a < w->n_active; a++) {
    double error = scatter * sqrt (variance_of (d, a));
    fit->error[w->active[a]] = error * half_range (&w->p->parameters[w->active[a]]);
    if (error > most) {
      most = error;
      worst = a;
    }
  }
  return worst;
}

static void
drop (Work *w, size_t a, LsRunsState why, LsRunsFit *fit)
{
  fit->state[w->active[a]] = why;
  memmove (w->active + a, w->active + a + 1, (w->n_active - a - 1) * sizeof *w->active);
  w->n_active--;
  w->known_u[0] = w->slope_u[0] = NAN;
}

/* ---- left out ---- */

/* Where the fit would be without a row: least squares of the other rows, linear around u. */
static void
step_without (const gsl_matrix *J, const double *r, size_t row, const gsl_vector *u, gsl_vector *ret_u)
{
  gsl_matrix *K = gsl_matrix_alloc (J->size1, J->size2);
  gsl_vector *b = gsl_vector_alloc (J->size1);
  gsl_matrix_memcpy (K, J);
  for (size_t i = 0; i < J->size1; i++)
    gsl_vector_set (b, i, i == row ? 0 : -r[i]);
  for (size_t j = 0; j < J->size2; j++)
    gsl_matrix_set (K, row, j, 0);
  Svd d;
  svd_init (&d, K);
  for (size_t k = 0; k < d.S->size; k++)
    if (gsl_vector_get (d.S, k) < 1e-9 * gsl_vector_get (d.S, 0))
      gsl_vector_set (d.S, k, 0); /* a direction that only this row saw stays where it is */
  gsl_linalg_SV_solve (d.U, d.V, d.S, b, ret_u);
  gsl_vector_add (ret_u, u);
  svd_clear (&d);
  gsl_matrix_free (K);
  gsl_vector_free (b);
}

static bool
leave_out (Work *w, const gsl_vector *u, const gsl_matrix *J, LsRunsFit *fit)
{
  gsl_vector *v = gsl_vector_alloc (w->n_active);
  bool ok = true;
  for (size_t i = 0; i < w->p->n_rows && ok; i++) {
    step_without (J, fit->after, i, u, v);
    ok = simulate (w, v, i, fit->left_out);
  }
  gsl_vector_free (v);
  return ok;
}

/* ---- all of it ---- */

static void
drop_unseen (Work *w, LsRunsFit *fit)
{
  for (size_t a = w->n_active; a-- > 0;)
    if (fit->sensitivity[w->active[a]] < UNSEEN / 2)
      drop (w, a, LS_KEPT_UNSEEN, fit);
}

/* Takes out of v what points along c. */
static void
project_out (gsl_vector *v, const gsl_vector *c)
{
  double along, square;
  gsl_blas_ddot (v, c, &along);
  gsl_blas_ddot (c, c, &square);
  if (square > 0)
    gsl_blas_daxpy (-along / square, c, v);
}

/* How much less the sum of squares of r would be by this column alone, within the range of its parameter. */
static double
gain_of (const LsRunsParameter *x, const gsl_vector *r, const gsl_vector *c)
{
  double along, square, lo = log (x->lo / x->start) / half_range (x), hi = log (x->hi / x->start) / half_range (x);
  gsl_blas_ddot (r, c, &along);
  gsl_blas_ddot (c, c, &square);
  double u = square > 0 ? CLAMP (-along / square, lo, hi) : 0;
  return -u * (2 * along + u * square);
}

/* No more than half as many as rows: one after the other that which explains most of what those before it leave,
 * by slopes over whole ranges; where none explains anything, that which moves rows most. Spoils J. */
static void
keep_telling (Work *w, gsl_matrix *J, LsRunsFit *fit)
{
  size_t n_keep = w->p->n_rows / 2, n = w->n_active;
  gsl_vector *r = gsl_vector_calloc (J->size1);
  for (size_t i = 0; i < w->p->n_rows; i++)
    gsl_vector_set (r, i, fit->before[i]);
  for (size_t k = 0; k < n_keep && k < n; k++) {
    size_t best = k;
    double most = -1;
    for (size_t a = k; a < n; a++) {
      gsl_vector_const_view c = gsl_matrix_const_column (J, w->active[a]);
      double gain = gain_of (&w->p->parameters[w->active[a]], r, &c.vector) + 1e-9 * fit->sensitivity[w->active[a]];
      best = gain > most ? a : best;
      most = fmax (most, gain);
    }
    size_t chosen = w->active[best];
    w->active[best] = w->active[k];
    w->active[k] = chosen;
    gsl_vector_view c = gsl_matrix_column (J, chosen);
    project_out (r, &c.vector);
    for (size_t a = k + 1; a < n; a++) {
      gsl_vector_view other = gsl_matrix_column (J, w->active[a]);
      project_out (&other.vector, &c.vector);
    }
  }
  gsl_vector_free (r);
  while (w->n_active > n_keep)
    drop (w, w->n_active - 1, LS_KEPT_FEW_ROWS, fit);
}

/* One parameter at one end of its range: the most that a row moves for each half of the range; *ret_u where
 * that is, r what is predicted there. */
static bool
look_at_end (Work *w, size_t j, double end, const double *before, double *ret_u, double *r, double *ret_most)
{
  const LsRunsParameter *x = &w->p->parameters[j];
  gsl_vector *u = gsl_vector_calloc (w->p->n_parameters);
  *ret_u = log (end / x->start) / half_range (x);
  gsl_vector_set (u, j, *ret_u);
  bool ok = *ret_u == 0 ? (memcpy (r, before, w->p->n_rows * sizeof *r), true) : simulate (w, u, LS_ALL_ROWS, r);
  *ret_most = 0;
  for (size_t i = 0; i < w->p->n_rows && *ret_u != 0; i++)
    *ret_most = fmax (*ret_most, fabs ((r[i] - before[i]) / *ret_u));
  gsl_vector_free (u);
  return ok;
}

/* What all of them do over their ranges: singular values, who is worth a fit, and who bites on one side of the start
 * only (a NIC behind a slower NVLink). */
static bool
look (Work *w, LsRunsFit *fit)
{
  size_t n = w->p->n_parameters, n_rows = w->p->n_rows;
  g_autofree double *low = g_new (double, n_rows), *high = g_new (double, n_rows);
  gsl_matrix *J = gsl_matrix_calloc (MAX (n_rows, n), n); /* GSL wants no fewer rows than columns */
  bool ok = true;
  for (size_t j = 0; j < n && ok; j++) {
    const LsRunsParameter *x = &w->p->parameters[j];
    double u_low = 0, u_high = 0, below = 0, above = 0;
    ok = look_at_end (w, j, x->lo, fit->before, &u_low, low, &below) && look_at_end (w, j, x->hi, fit->before, &u_high, high, &above);
    fit->sensitivity[j] = fmax (below, above);
    if (fmin (below, above) < ONE_SIDED * fmax (below, above))
      w->away[j] = 0.75 * (below > above ? u_low : u_high);
    for (size_t i = 0; i < n_rows && ok; i++)
      gsl_matrix_set (J, i, j, (high[i] - low[i]) / (u_high - u_low));
  }
  if (ok) {
    Svd d;
    svd_init (&d, J);
    for (size_t j = 0; j < n; j++)
      fit->singular[j] = gsl_vector_get (d.S, j);
    svd_clear (&d);
    drop_unseen (w, fit);
    keep_telling (w, J, fit);
  }
  gsl_matrix_free (J);
  return ok;
}

static void
take_values (const Work *w, const gsl_vector *u, const Svd *d, LsRunsFit *fit)
{
  values_at (w, u, fit->value);
  for (size_t a = 0; a < w->n_active; a++) {
    const LsRunsParameter *x = &w->p->parameters[w->active[a]];
    double value = fit->value[w->active[a]];
    fit->at_bound[w->active[a]] = value <= x->lo * 1.001 || value >= x->hi * 0.999;
  }
  fit->n_fitted = w->n_active;
  fit->condition = condition_of (d);
}

/* One fit of what is active; *ret_again if somebody had to go. */
static bool
fit_active (Work *w, LsRunsFit *fit, bool *ret_again)
{
  gsl_vector *u = gsl_vector_alloc (w->n_active);
  gsl_matrix *J = gsl_matrix_alloc (w->p->n_rows, w->n_active);
  bool ok = find_best (w, u) && residuals (w, u, fit->after) && jacobian (w, u, J);
  *ret_again = false;
  if (ok) {
    Svd d;
    svd_init (&d, J);
    size_t worst = set_errors (w, &d, fit->after, fit);
    *ret_again = worst < w->n_active;
    if (*ret_again)
      drop (w, worst, LS_KEPT_UNCERTAIN, fit);
    else
      take_values (w, u, &d, fit);
    ok = *ret_again || leave_out (w, u, J, fit);
    svd_clear (&d);
  }
  gsl_matrix_free (J);
  gsl_vector_free (u);
  return ok;
}

static void
start (const LsRunsProblem *p, Work *w, LsRunsFit *fit)
{
  *w = (Work) { .p = p, .n_active = p->n_parameters, .known_u = { NAN }, .slope_u = { NAN } };
  w->known_r = g_new0 (double, p->n_rows);
  w->slope = g_new0 (double, p->n_rows * p->n_parameters);
  *fit = (LsRunsFit) { .condition = NAN };
  fit->before = g_new0 (double, p->n_rows);
  fit->after = g_new0 (double, p->n_rows);
  fit->left_out = g_new0 (double, p->n_rows);
  for (size_t j = 0; j < p->n_parameters; j++) {
    w->active[j] = j;
    fit->value[j] = p->parameters[j].start;
    fit->error[j] = NAN;
  }
  for (size_t i = 0; i < p->n_rows; i++)
    fit->left_out[i] = NAN;
}

bool
ls_runs_fit (const LsRunsProblem *p, LsRunsFit *ret_fit)
{
  g_assert (p->n_parameters > 0 && p->n_parameters <= LS_RUNS_MAX_PARAMETERS && p->n_rows > 0);
  Work w;
  start (p, &w, ret_fit);
  gsl_vector *zero = gsl_vector_calloc (p->n_parameters);
  bool ok = residuals (&w, zero, ret_fit->before) && look (&w, ret_fit);
  gsl_vector_free (zero);
  memcpy (ret_fit->after, ret_fit->before, p->n_rows * sizeof *ret_fit->after);
  for (bool again = w.n_active > 0; ok && again;)
    ok = fit_active (&w, ret_fit, &again) && (again = again && w.n_active > 0, true);
  if (ok && w.n_active == 0)
    memcpy (ret_fit->after, ret_fit->before, p->n_rows * sizeof *ret_fit->after);
  g_free (w.known_r);
  g_free (w.slope);
  if (!ok)
    ls_runs_fit_clear (ret_fit);
  return ok;
}

void
ls_runs_fit_clear (LsRunsFit *fit)
{
  g_free (fit->before);
  g_free (fit->after);
  g_free (fit->left_out);
  *fit = (LsRunsFit) { 0 };
}
