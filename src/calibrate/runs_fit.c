#include "calibrate/runs_fit.h"

#include <glib.h>
#include <math.h>
#include <string.h>

#include "calibrate/runs_work.h"
#include "calibrate/svd.h"

#define MOST_ERROR  1 /* of half of a range */
#define SIGNIFICANT 1 /* standard errors    */
#define MAX_ROUNDS  6
#define SAME        5e-5 /* ln: of what curves and a simulation say */
#define RUN_SCATTER 0.01 /* ln: repeated steps of one job; a guess */

/* ---- standard errors ---- */

/* The one that is furthest from being told, by its error as a share of half of its range, or its distance
 * from the start in errors; n_active: all are told. */
static size_t
set_errors (const RunsWork *w, const gsl_vector *u, const LsSvd *d, const double *r, LsRunsFit *fit,
            LsRunsState *ret_why)
{
  size_t n = w->p->n_rows, worst = w->n_active;
  double most = 1,
         scatter = fmax (RUN_SCATTER, sqrt (runs_sum_of_squares (r, n) / (double) (n - w->n_active)));
  for (size_t a = 0; a < w->n_active; a++) {
    double error = scatter * sqrt (ls_svd_variance (d, a));
    fit->error[w->active[a]] = error * runs_half_range (&w->p->parameters[w->active[a]]);
    double untold
        = fmax (error / MOST_ERROR, SIGNIFICANT * error / fmax (fabs (gsl_vector_get (u, a)), 1e-9));
    if (untold > most) {
      most = untold;
      worst = a;
      *ret_why = error > MOST_ERROR ? LS_KEPT_UNCERTAIN : LS_KEPT_AGREES;
    }
  }
  return worst;
}

/* ---- left out ---- */

static bool
is_same_job (const LsRunsProblem *p, size_t a, size_t b)
{
  return a == b || (p->jobs && p->jobs[a] == p->jobs[b]);
}

/* Where the fit would be without a row's job: least squares of the other rows, linear around u. */
static void
step_without (const LsRunsProblem *p, const gsl_matrix *J, const double *r, size_t row, const gsl_vector *u,
              gsl_vector *ret_u)
{
  gsl_matrix *K = gsl_matrix_alloc (J->size1, J->size2);
  gsl_vector *b = gsl_vector_alloc (J->size1);
  gsl_matrix_memcpy (K, J);
  for (size_t i = 0; i < J->size1; i++) {
    bool is_out = is_same_job (p, i, row);
    gsl_vector_set (b, i, is_out ? 0 : -r[i]);
    for (size_t j = 0; is_out && j < J->size2; j++)
      gsl_matrix_set (K, i, j, 0);
  }
  LsSvd d;
  ls_svd_init (&d, K);
  ls_svd_solve (&d, b, ret_u); /* a direction that only this job saw stays where it is */
  gsl_vector_add (ret_u, u);
  ls_svd_clear (&d);
  gsl_matrix_free (K);
  gsl_vector_free (b);
}

/* By how much the curves of runs_descend.c move from the fit to there: no simulation. */
static void
leave_out (RunsWork *w, const gsl_vector *u, const gsl_matrix *J, LsRunsFit *fit)
{
  gsl_vector *v = gsl_vector_alloc (w->n_active);
  for (size_t i = 0; i < w->p->n_rows; i++) {
    step_without (w->p, J, fit->after, i, u, v);
    fit->left_out[i] = fit->after[i] + runs_rough (w, v, i) - runs_rough (w, u, i);
  }
  gsl_vector_free (v);
}

/* ---- all of it ---- */

static void
take_values (const RunsWork *w, const gsl_vector *u, const LsSvd *d, LsRunsFit *fit)
{
  runs_values_at (w, u, fit->value);
  for (size_t a = 0; a < w->n_active; a++) {
    const LsRunsParameter *x = &w->p->parameters[w->active[a]];
    double value = fit->value[w->active[a]];
    fit->at_bound[w->active[a]] = value <= x->lo * 1.001 || value >= x->hi * 0.999;
  }
  fit->n_fitted = w->n_active;
  fit->condition = ls_svd_condition (d);
}

/* One fit of what is active; *ret_again if somebody had to go. */
static bool
fit_active (RunsWork *w, LsRunsFit *fit, bool *ret_again)
{
  gsl_vector *u = gsl_vector_alloc (w->n_active);
  gsl_matrix *J = gsl_matrix_alloc (w->p->n_rows, w->n_active);
  bool ok = runs_find_best (w, u) && runs_residuals (w, u, fit->after) && runs_jacobian (w, u, J);
  *ret_again = false;
  if (ok) {
    LsSvd d;
    ls_svd_init (&d, J);
    LsRunsState why = LS_KEPT_UNCERTAIN;
    size_t worst = set_errors (w, u, &d, fit->after, fit, &why);
    *ret_again = w->may_drop && worst < w->n_active;
    if (*ret_again)
      runs_drop (w, worst, why, fit);
    else
      take_values (w, u, &d, fit);
    if (!*ret_again)
      leave_out (w, u, J, fit);
    ls_svd_clear (&d);
  }
  gsl_matrix_free (J);
  gsl_vector_free (u);
  return ok;
}

static void
start (const LsRunsProblem *p, RunsWork *w, LsRunsFit *fit)
{
  *w = (RunsWork) { .p = p, .n_active = p->n_parameters, .known_u = { NAN }, .slope_u = { NAN } };
  w->known_r = g_new0 (double, p->n_rows);
  w->slope = g_new0 (double, p->n_rows * p->n_parameters);
  w->off = g_new0 (double, p->n_rows);
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
  for (size_t i = 0; p->log_start && i < p->n_rows; i++)
    w->known_r[i] = p->log_start[i] - p->log_measured[i];
  w->known_u[0] = p->log_start ? 0 : NAN;
}

static void
finish (RunsWork *w)
{
  for (size_t j = 0; j < w->p->n_parameters; j++) {
    g_free (w->end_r[j][0]);
    g_free (w->end_r[j][1]);
  }
  g_free (w->known_r);
  g_free (w->slope);
  g_free (w->off);
}

/* Simulates where the curves ended, and puts them right there; *ret_gap: how far off a row was. */
static bool
correct (RunsWork *w, LsRunsFit *fit, double *ret_gap)
{
  size_t n = w->p->n_rows;
  g_autofree double *r = g_new (double, n);
  gsl_vector *u = gsl_vector_alloc (w->n_active);
  for (size_t a = 0; a < w->n_active; a++)
    gsl_vector_set (u, a, w->from[w->active[a]]);
  w->is_rough = false;
  bool ok = runs_simulate (w, u, LS_ALL_ROWS, r);
  w->is_rough = true;
  *ret_gap = 0;
  for (size_t i = 0; i < n && ok; i++) {
    *ret_gap = fmax (*ret_gap, fabs (r[i] - fit->after[i]));
    w->off[i] += r[i] - fit->after[i];
    fit->after[i] = r[i];
  }
  gsl_vector_free (u);
  return ok;
}

/* By the curves, put right by a simulation where each fit ends, until they say what it says. Nobody goes
 * before the second. */
static bool
fit_by_curves (RunsWork *w, LsRunsFit *fit)
{
  bool ok = true;
  double gap = INFINITY;
  w->is_rough = true;
  for (int round = 0; ok && w->n_active > 0 && round < MAX_ROUNDS && (round < 2 || gap > SAME); round++) {
    w->known_u[0] = w->slope_u[0] = NAN;
    w->may_drop = round > 0;
    for (bool again = true; ok && again && w->n_active > 0;)
      ok = fit_active (w, fit, &again);
    ok = ok && (w->n_active == 0 || correct (w, fit, &gap));
  }
  return ok;
}

/* Both ends of each range, then where each round of curves ends. */
size_t
ls_runs_most_simulations (size_t n_parameters)
{
  return 2 * n_parameters + MAX_ROUNDS;
}

bool
ls_runs_fit (const LsRunsProblem *p, LsRunsFit *ret_fit)
{
  g_assert (p->n_parameters > 0 && p->n_parameters <= LS_RUNS_MAX_PARAMETERS && p->n_rows > 0);
  RunsWork w;
  start (p, &w, ret_fit);
  gsl_vector *zero = gsl_vector_calloc (p->n_parameters);
  w.start_r = ret_fit->before;
  bool ok = runs_residuals (&w, zero, ret_fit->before) && runs_look (&w, ret_fit);
  gsl_vector_free (zero);
  memcpy (ret_fit->after, ret_fit->before, p->n_rows * sizeof *ret_fit->after);
  ok = ok && fit_by_curves (&w, ret_fit);
  if (ok && w.n_active == 0)
    memcpy (ret_fit->after, ret_fit->before, p->n_rows * sizeof *ret_fit->after);
  finish (&w);
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
