#include "sweep/runs_fit.h"

#include <glib.h>
#include <gsl/gsl_linalg.h>
#include <gsl/gsl_multifit_nlinear.h>
#include <math.h>
#include <string.h>

#define DELTA       0.02  /* of u, in differences                            */
#define UNSEEN      1e-3  /* ln: less than any timing tells                  */
#define RUN_SCATTER 0.01  /* ln: repeated steps of one job; a guess          */
#define MAX_STEPS   30

/* A fit of some of the parameters. */
typedef struct {
  const LsRunsProblem *p;
  size_t active[LS_RUNS_MAX_PARAMETERS], n_active;
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

static bool
residuals (Work *w, const gsl_vector *u, size_t row, double *r)
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

static int
on_residuals (const gsl_vector *u, void *data, gsl_vector *f)
{
  Work *w = data;
  residuals (w, u, LS_ALL_ROWS, f->data);
  return w->has_failed ? GSL_EFAILED : GSL_SUCCESS;
}

/* Towards the inside of the range. */
static bool
jacobian (Work *w, const gsl_vector *u, gsl_matrix *J)
{
  size_t n = w->p->n_rows;
  g_autofree double *at = g_new (double, n), *beside = g_new (double, n);
  gsl_vector *v = gsl_vector_alloc (w->n_active);
  bool ok = residuals (w, u, LS_ALL_ROWS, at);
  for (size_t a = 0; a < w->n_active && ok; a++) {
    const LsRunsParameter *x = &w->p->parameters[w->active[a]];
    double place = gsl_vector_get (u, a), step = value_at (x, place + DELTA) < x->hi ? DELTA : -DELTA;
    gsl_vector_memcpy (v, u);
    gsl_vector_set (v, a, place + step);
    ok = residuals (w, v, LS_ALL_ROWS, beside);
    for (size_t i = 0; i < n; i++)
      gsl_matrix_set (J, i, a, (beside[i] - at[i]) / step);
  }
  gsl_vector_free (v);
  return ok;
}

static int
on_jacobian (const gsl_vector *u, void *data, gsl_matrix *J)
{
  return jacobian (data, u, J) ? GSL_SUCCESS : GSL_EFAILED;
}

/* ---- one fit ---- */

/* Beyond its range a value stays, and nothing would depend on it there. */
static void
clamp (const Work *w, gsl_vector *u)
{
  for (size_t a = 0; a < w->n_active; a++) {
    const LsRunsParameter *x = &w->p->parameters[w->active[a]];
    double lo = log (x->lo / x->start) / half_range (x), hi = log (x->hi / x->start) / half_range (x);
    gsl_vector_set (u, a, CLAMP (gsl_vector_get (u, a), lo, hi));
  }
}

static bool
descend (Work *w, gsl_vector *u)
{
  gsl_multifit_nlinear_parameters how = gsl_multifit_nlinear_default_parameters ();
  gsl_multifit_nlinear_workspace *s = gsl_multifit_nlinear_alloc (gsl_multifit_nlinear_trust, &how, w->p->n_rows, w->n_active);
  gsl_multifit_nlinear_fdf fdf = { .f = on_residuals, .df = on_jacobian, .n = w->p->n_rows, .p = w->n_active, .params = w };
  int why;
  if (gsl_multifit_nlinear_init (u, &fdf, s) == GSL_SUCCESS)
    gsl_multifit_nlinear_driver (MAX_STEPS, 1e-4, 1e-6, 0, NULL, NULL, &why, s);
  gsl_vector_memcpy (u, gsl_multifit_nlinear_position (s));
  gsl_multifit_nlinear_free (s);
  clamp (w, u);
  return !w->has_failed;
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
  double sum = 0, most = 1;
  for (size_t i = 0; i < n; i++)
    sum += r[i] * r[i];
  double scatter = fmax (RUN_SCATTER, sqrt (sum / (double) (n - w->n_active)));
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
    ok = residuals (w, v, i, fit->left_out);
  }
  gsl_vector_free (v);
  return ok;
}

/* ---- all of it ---- */

/* What all of them do around the start: singular values, and who is seen. */
static bool
look (Work *w, LsRunsFit *fit)
{
  size_t n = w->p->n_parameters, n_rows = w->p->n_rows;
  gsl_vector *u = gsl_vector_calloc (n);
  gsl_matrix *J = gsl_matrix_alloc (MAX (n_rows, n), n); /* GSL wants no fewer rows than columns */
  gsl_matrix_set_zero (J);
  bool ok = jacobian (w, u, J);
  if (ok) {
    Svd d;
    svd_init (&d, J);
    for (size_t j = 0; j < n; j++) {
      gsl_vector_const_view column = gsl_matrix_const_column (J, j);
      fit->singular[j] = gsl_vector_get (d.S, j);
      fit->sensitivity[j] = fmax (fabs (gsl_vector_max (&column.vector)), fabs (gsl_vector_min (&column.vector)));
    }
    svd_clear (&d);
  }
  gsl_matrix_free (J);
  gsl_vector_free (u);
  return ok;
}

static void
drop_hopeless (Work *w, LsRunsFit *fit)
{
  for (size_t a = w->n_active; a-- > 0;)
    if (fit->sensitivity[w->active[a]] < UNSEEN / 2)
      drop (w, a, LS_KEPT_UNSEEN, fit);
  while (w->n_active > w->p->n_rows / 2) {
    size_t least = 0;
    for (size_t a = 1; a < w->n_active; a++)
      if (fit->sensitivity[w->active[a]] < fit->sensitivity[w->active[least]])
        least = a;
    drop (w, least, LS_KEPT_FEW_ROWS, fit);
  }
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
  gsl_vector *u = gsl_vector_calloc (w->n_active);
  gsl_matrix *J = gsl_matrix_alloc (w->p->n_rows, w->n_active);
  bool ok = descend (w, u) && residuals (w, u, LS_ALL_ROWS, fit->after) && jacobian (w, u, J);
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
  *w = (Work) { .p = p, .n_active = p->n_parameters };
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
  bool ok = residuals (&w, zero, LS_ALL_ROWS, ret_fit->before) && look (&w, ret_fit);
  gsl_vector_free (zero);
  memcpy (ret_fit->after, ret_fit->before, p->n_rows * sizeof *ret_fit->after);
  if (ok)
    drop_hopeless (&w, ret_fit);
  for (bool again = w.n_active > 0; ok && again;)
    ok = fit_active (&w, ret_fit, &again) && (again = again && w.n_active > 0, true);
  if (ok && w.n_active == 0)
    memcpy (ret_fit->after, ret_fit->before, p->n_rows * sizeof *ret_fit->after);
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
