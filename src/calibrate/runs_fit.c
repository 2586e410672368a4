#include "calibrate/runs_fit.h"

#include <glib.h>
#include <gsl/gsl_blas.h>
#include <gsl/gsl_matrix.h>
#include <gsl/gsl_multifit_nlinear.h>
#include <gsl/gsl_vector.h>
#include <math.h>
#include <string.h>

#include "calibrate/solve.h"

/* u: places in units of half of each range, from the start of the parameter; vectors of u have a component
 * for each active parameter. r: ln (predicted / measured) of each row. */

/* A fit of some of the parameters, by curves through what was simulated at the ends of their ranges. */
typedef struct {
  const LsRunsProblem *p;
  size_t active[LS_RUNS_MAX_PARAMETERS], n_active;
  double from[LS_RUNS_MAX_PARAMETERS]; /* u of each parameter from which the next fit starts */
  double away[LS_RUNS_MAX_PARAMETERS]; /* another, where it moves rows on one side only; 0: both */
  double end_u[LS_RUNS_MAX_PARAMETERS][2],
      *end_r[LS_RUNS_MAX_PARAMETERS][2]; /* the ends; NULL: none simulated */
  const double *start_r;                 /* where all parameters start     */
  double *off;                           /* by how much the curves are put right, of each row */
  bool may_drop;
} RunsWork;

/* --- residuals and slopes of the runs ------------------------------------------------------------ */

#define DELTA 0.02 /* of u, in differences          */

/* Of ln. */
static double
half_range (const LsRunsParameter *x)
{
  return 0.5 * log (x->hi / x->lo);
}

static double
u_of (const LsRunsParameter *x, double value)
{
  return log (value / x->start) / half_range (x);
}

static double
value_at (const LsRunsParameter *x, double u)
{
  return CLAMP (x->start * exp (u * half_range (x)), x->lo, x->hi);
}

/* Residuals of all rows by simulation; false: one failed. */
static bool
simulate (const LsRunsProblem *p, const double *values, double *r)
{
  bool ok = p->predict (p->context, values, r);
  for (size_t i = 0; ok && i < p->n_rows; i++)
    r[i] -= p->log_measured[i];
  return ok;
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

/* The residual of a row by the curves. */
static double
residual (const RunsWork *w, const gsl_vector *u, size_t row)
{
  double r = w->start_r[row] + w->off[row];
  for (size_t a = 0; a < w->n_active; a++)
    r += curve (w, w->active[a], row, gsl_vector_get (u, a));
  return r;
}

static void
residuals (const RunsWork *w, const gsl_vector *u, double *ret)
{
  for (size_t i = 0; i < w->p->n_rows; i++)
    ret[i] = residual (w, u, i);
}

static double
sum_of_squares (const double *r, size_t n)
{
  double sum = 0;
  for (size_t i = 0; i < n; i++)
    sum += r[i] * r[i];
  return sum;
}

/* By differences towards the inside of the range, of the curves: a simulation tells how far a row is off,
 * which its slopes need not. */
static void
jacobian (const RunsWork *w, const gsl_vector *u, gsl_matrix *J)
{
  gsl_vector *v = gsl_vector_alloc (w->n_active);
  for (size_t a = 0; a < w->n_active; a++) {
    const LsRunsParameter *x = &w->p->parameters[w->active[a]];
    double place = gsl_vector_get (u, a), step = value_at (x, place + DELTA) < x->hi ? DELTA : -DELTA;
    gsl_vector_memcpy (v, u);
    gsl_vector_set (v, a, place + step);
    for (size_t i = 0; i < w->p->n_rows; i++)
      gsl_matrix_set (J, i, a, (residual (w, v, i) - residual (w, u, i)) / step);
  }
  gsl_vector_free (v);
}

static void
drop (RunsWork *w, size_t a, LsRunsState why, LsRunsFit *fit)
{
  fit->state[w->active[a]] = why;
  memmove (w->active + a, w->active + a + 1, (w->n_active - a - 1) * sizeof *w->active);
  w->n_active--;
}

/* --- Levenberg-Marquardt over what is active, from more than one place --------------------------- */

#define CONVERGED 3e-4 /* of u: a step that ends a descent,               */
#define NO_GAIN   1e-3 /* or of the sum of squares                        */
#define NUDGE     0.1  /* of u: from the end of a range to the inside     */
#define MAX_STEPS 20

static int
on_residuals (const gsl_vector *u, void *data, gsl_vector *f)
{
  residuals (data, u, f->data);
  return GSL_SUCCESS;
}

static int
on_jacobian (const gsl_vector *u, void *data, gsl_matrix *J)
{
  jacobian (data, u, J);
  return GSL_SUCCESS;
}

/* Into each range, that far from its ends; whether it was outside. */
static bool
keep_inside (const RunsWork *w, double margin, gsl_vector *u)
{
  bool was_outside = false;
  for (size_t a = 0; a < w->n_active; a++) {
    const LsRunsParameter *x = &w->p->parameters[w->active[a]];
    double lo = u_of (x, x->lo), hi = u_of (x, x->hi), at = gsl_vector_get (u, a);
    if (at < lo || at > hi) {
      was_outside = true;
      gsl_vector_set (u, a, CLAMP (at, lo + margin, hi - margin));
    }
  }
  return was_outside;
}

static void
descend (RunsWork *w, gsl_vector *u)
{
  gsl_multifit_nlinear_parameters how = gsl_multifit_nlinear_default_parameters ();
  gsl_multifit_nlinear_workspace *s
      = gsl_multifit_nlinear_alloc (gsl_multifit_nlinear_trust, &how, w->p->n_rows, w->n_active);
  gsl_multifit_nlinear_fdf fdf
      = { .f = on_residuals, .df = on_jacobian, .n = w->p->n_rows, .p = w->n_active, .params = w };
  bool goes_on = gsl_multifit_nlinear_init (u, &fdf, s) == GSL_SUCCESS;
  for (int i = 0; goes_on && i < MAX_STEPS; i++) {
    const gsl_matrix *J = gsl_multifit_nlinear_jac (s);
    if (gsl_matrix_max (J) <= 0 && gsl_matrix_min (J) >= 0)
      break; /* nothing depends on anything: GSL's QR wants a rank of 1 at least */
    double before = sum_of_squares (gsl_multifit_nlinear_residual (s)->data, w->p->n_rows);
    goes_on = gsl_multifit_nlinear_iterate (s) == GSL_SUCCESS;
    double after = sum_of_squares (gsl_multifit_nlinear_residual (s)->data, w->p->n_rows);
    gsl_vector_sub (u, gsl_multifit_nlinear_position (s));
    goes_on = goes_on && fmax (gsl_vector_max (u), -gsl_vector_min (u)) > CONVERGED
        && after < (1 - NO_GAIN) * before;
    gsl_vector_memcpy (u, gsl_multifit_nlinear_position (s));
  }
  gsl_multifit_nlinear_free (s);
}

static double
cost_at (const RunsWork *w, const gsl_vector *u)
{
  g_autofree double *r = g_new (double, w->p->n_rows);
  residuals (w, u, r);
  return sum_of_squares (r, w->p->n_rows);
}

/* The cost that is reached. Beyond its range a value stays, and nothing depends on it: what got there starts
 * again from the inside of the range, and the better end is taken. */
static double
descend_inside (RunsWork *w, gsl_vector *u)
{
  gsl_vector *again = gsl_vector_alloc (w->n_active);
  descend (w, u);
  gsl_vector_memcpy (again, u);
  bool was_outside = keep_inside (w, NUDGE, again);
  keep_inside (w, 0, u);
  double cost = cost_at (w, u);
  if (was_outside) {
    descend (w, again);
    keep_inside (w, 0, again);
    double other = cost_at (w, again);
    if (other < cost)
      gsl_vector_memcpy (u, again);
    cost = fmin (cost, other);
  }
  gsl_vector_free (again);
  return cost;
}

/* The least sum of squares within the ranges: from where the last fit ended; and from there with those
 * parameters moved to where they bite that bite on one side of their start only: where one does not, nothing
 * depends on it, and no slope leads back. */
static void
find_best (RunsWork *w, gsl_vector *u)
{
  gsl_vector *v = gsl_vector_alloc (w->n_active);
  bool has_other = false;
  for (size_t a = 0; a < w->n_active; a++) {
    size_t j = w->active[a];
    gsl_vector_set (u, a, w->from[j]);
    gsl_vector_set (v, a, w->away[j] != 0 ? w->away[j] : w->from[j]);
    has_other |= w->away[j] != 0;
  }
  double cost = descend_inside (w, u);
  if (has_other && descend_inside (w, v) < cost)
    gsl_vector_memcpy (u, v);
  for (size_t a = 0; a < w->n_active; a++)
    w->from[w->active[a]] = gsl_vector_get (u, a);
  gsl_vector_free (v);
}

/* ---- what each parameter does to the runs over its range, and who is worth a fit ---- */

#define ONE_SIDED 0.05 /* of what a row moves on the other side of the start */
#define UNSEEN    1e-3 /* ln: less than any timing tells                  */

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
  double along, square;
  gsl_blas_ddot (r, c, &along);
  gsl_blas_ddot (c, c, &square);
  double u = square > 0 ? CLAMP (-along / square, u_of (x, x->lo), u_of (x, x->hi)) : 0;
  return -u * (2 * along + u * square);
}

/* No more than half as many as rows: one after the other that which explains most of what those before it
 * leave, by slopes over whole ranges; where none explains anything, that which moves rows most. Spoils J. */
static void
keep_telling (RunsWork *w, gsl_matrix *J, LsRunsFit *fit)
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
      double gain
          = gain_of (&w->p->parameters[w->active[a]], r, &c.vector) + 1e-9 * fit->sensitivity[w->active[a]];
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
look_at_end (const RunsWork *w, size_t j, double end, double *ret_u, double *r, double *ret_most)
{
  double values[LS_RUNS_MAX_PARAMETERS], u = *ret_u = u_of (&w->p->parameters[j], end);
  for (size_t k = 0; k < w->p->n_parameters; k++)
    values[k] = w->p->parameters[k].start;
  values[j] = value_at (&w->p->parameters[j], u);
  bool ok = u == 0 || simulate (w->p, values, r);
  *ret_most = 0;
  for (size_t i = 0; i < w->p->n_rows; i++)
    if (u == 0)
      r[i] = w->start_r[i];
    else
      *ret_most = fmax (*ret_most, fabs ((r[i] - w->start_r[i]) / u));
  return ok;
}

/* What all of them do over their ranges: both ends of each range, as some bite on one side of the start only
 * (a NIC behind a slower NVLink); drops whom no run depends on and whom so few rows cannot tell. Fills
 * sensitivity and singular of fit, by its `before`. */
static bool
look (RunsWork *w, LsRunsFit *fit)
{
  size_t n = w->p->n_parameters, n_rows = w->p->n_rows;
  gsl_matrix *J = gsl_matrix_calloc (MAX (n_rows, n), n); /* GSL wants no fewer rows than columns */
  bool ok = true;
  for (size_t j = 0; j < n && ok; j++) {
    const LsRunsParameter *x = &w->p->parameters[j];
    double *low = w->end_r[j][0] = g_new0 (double, n_rows), *high = w->end_r[j][1] = g_new0 (double, n_rows);
    double u_low = 0, u_high = 0, below = 0, above = 0;
    ok = look_at_end (w, j, x->lo, &u_low, low, &below) && look_at_end (w, j, x->hi, &u_high, high, &above);
    fit->sensitivity[j] = fmax (below, above);
    if (fmin (below, above) < ONE_SIDED * fmax (below, above))
      w->away[j] = 0.75 * (below > above ? u_low : u_high);
    w->end_u[j][0] = u_low;
    w->end_u[j][1] = u_high;
    for (size_t i = 0; i < n_rows && ok; i++)
      gsl_matrix_set (J, i, j, (high[i] - low[i]) / (u_high - u_low));
  }
  if (ok) {
    LsSvd d;
    ls_svd_init (&d, J);
    for (size_t j = 0; j < n; j++)
      fit->singular[j] = gsl_vector_get (d.S, j);
    ls_svd_clear (&d);
    for (size_t a = w->n_active; a-- > 0;)
      if (fit->sensitivity[w->active[a]] < UNSEEN / 2)
        drop (w, a, LS_KEPT_UNSEEN, fit);
    keep_telling (w, J, fit);
  }
  gsl_matrix_free (J);
  return ok;
}

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
  double most = 1, scatter = fmax (RUN_SCATTER, sqrt (sum_of_squares (r, n) / (double) (n - w->n_active)));
  for (size_t a = 0; a < w->n_active; a++) {
    double error = scatter * sqrt (ls_svd_variance (d, a));
    fit->error[w->active[a]] = error * half_range (&w->p->parameters[w->active[a]]);
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

/* Where the fit would be without a row's job: least squares of the other rows, linear around u. */
static void
step_without (const LsRunsProblem *p, const gsl_matrix *J, const double *r, size_t row, const gsl_vector *u,
              gsl_vector *ret_u)
{
  gsl_matrix *K = gsl_matrix_alloc (J->size1, J->size2);
  gsl_vector *b = gsl_vector_alloc (J->size1);
  gsl_matrix_memcpy (K, J);
  for (size_t i = 0; i < J->size1; i++) {
    bool is_out = i == row || (p->jobs && p->jobs[i] == p->jobs[row]);
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

/* By how much the curves move from the fit to there: no simulation. */
static void
leave_out (RunsWork *w, const gsl_vector *u, const gsl_matrix *J, LsRunsFit *fit)
{
  gsl_vector *v = gsl_vector_alloc (w->n_active);
  for (size_t i = 0; i < w->p->n_rows; i++) {
    step_without (w->p, J, fit->after, i, u, v);
    fit->left_out[i] = fit->after[i] + residual (w, v, i) - residual (w, u, i);
  }
  gsl_vector_free (v);
}

/* ---- all of it ---- */

static void
take_values (const RunsWork *w, const gsl_vector *u, const LsSvd *d, LsRunsFit *fit)
{
  for (size_t j = 0; j < w->p->n_parameters; j++)
    fit->value[j] = w->p->parameters[j].start;
  for (size_t a = 0; a < w->n_active; a++) {
    const LsRunsParameter *x = &w->p->parameters[w->active[a]];
    double value = fit->value[w->active[a]] = value_at (x, gsl_vector_get (u, a));
    fit->at_bound[w->active[a]] = value <= x->lo * 1.001 || value >= x->hi * 0.999;
  }
  fit->n_fitted = w->n_active;
  fit->condition = ls_svd_condition (d);
}

/* One fit of what is active; whether somebody had to go. */
static bool
fit_active (RunsWork *w, LsRunsFit *fit)
{
  gsl_vector *u = gsl_vector_alloc (w->n_active);
  gsl_matrix *J = gsl_matrix_alloc (w->p->n_rows, w->n_active);
  LsRunsState why = LS_KEPT_UNCERTAIN;
  LsSvd d;
  find_best (w, u);
  residuals (w, u, fit->after);
  jacobian (w, u, J);
  ls_svd_init (&d, J);
  size_t worst = set_errors (w, u, &d, fit->after, fit, &why);
  bool has_to_go = w->may_drop && worst < w->n_active;
  if (has_to_go) {
    drop (w, worst, why, fit);
  } else {
    take_values (w, u, &d, fit);
    leave_out (w, u, J, fit);
  }
  ls_svd_clear (&d);
  gsl_matrix_free (J);
  gsl_vector_free (u);
  return has_to_go;
}

/* As nothing is fitted. */
static void
fit_nothing (const LsRunsProblem *p, LsRunsFit *fit)
{
  fit->n_fitted = 0;
  fit->condition = NAN;
  memcpy (fit->after, fit->before, p->n_rows * sizeof *fit->after);
  for (size_t j = 0; j < p->n_parameters; j++)
    fit->value[j] = p->parameters[j].start;
  for (size_t i = 0; i < p->n_rows; i++)
    fit->left_out[i] = NAN;
}

/* Residuals are `before` and, as nothing is fitted yet, `after`; false: a simulation failed. */
static bool
start (const LsRunsProblem *p, RunsWork *w, LsRunsFit *fit)
{
  size_t n = p->n_rows;
  *fit = (LsRunsFit) { .before = g_new0 (double, n),
                       .after = g_new0 (double, n),
                       .left_out = g_new0 (double, n) };
  *w = (RunsWork) { .p = p, .n_active = p->n_parameters, .off = g_new0 (double, n), .start_r = fit->before };
  for (size_t j = 0; j < p->n_parameters; j++) {
    w->active[j] = j;
    fit->value[j] = p->parameters[j].start;
    fit->error[j] = NAN;
  }
  for (size_t i = 0; i < n; i++)
    fit->before[i] = p->log_start ? p->log_start[i] - p->log_measured[i] : NAN;
  bool ok = p->log_start || simulate (p, fit->value, fit->before);
  fit_nothing (p, fit);
  return ok;
}

/* Simulates where the curves ended, and puts them right there; *ret_gap: how far off a row was. */
static bool
correct (RunsWork *w, LsRunsFit *fit, double *ret_gap)
{
  g_autofree double *r = g_new (double, w->p->n_rows);
  bool ok = simulate (w->p, fit->value, r);
  *ret_gap = 0;
  for (size_t i = 0; i < w->p->n_rows && ok; i++) {
    *ret_gap = fmax (*ret_gap, fabs (r[i] - fit->after[i]));
    w->off[i] += r[i] - fit->after[i];
    fit->after[i] = r[i];
  }
  return ok;
}

/* By the curves, put right by a simulation where each fit ends, until they say what it says. Nobody goes
 * before the second. */
static bool
fit_by_curves (RunsWork *w, LsRunsFit *fit)
{
  bool ok = true;
  double gap = INFINITY;
  for (int round = 0; ok && w->n_active > 0 && round < MAX_ROUNDS && (round < 2 || gap > SAME); round++) {
    w->may_drop = round > 0;
    while (w->n_active > 0 && fit_active (w, fit))
      ;
    ok = w->n_active == 0 || correct (w, fit, &gap);
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
  bool ok = start (p, &w, ret_fit) && look (&w, ret_fit) && fit_by_curves (&w, ret_fit);
  if (ok && w.n_active == 0)
    fit_nothing (p, ret_fit);
  for (size_t j = 0; j < p->n_parameters; j++) {
    g_free (w.end_r[j][0]);
    g_free (w.end_r[j][1]);
  }
  g_free (w.off);
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
