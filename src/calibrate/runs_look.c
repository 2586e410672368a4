/* What each parameter does to the runs over its range, and who is worth a fit. */
#include <glib.h>
#include <gsl/gsl_blas.h>
#include <math.h>
#include <string.h>

#include "calibrate/runs_work.h"
#include "calibrate/svd.h"

#define ONE_SIDED 0.05 /* of what a row moves on the other side of the start */
#define UNSEEN    1e-3 /* ln: less than any timing tells                  */

static void
drop_unseen (RunsWork *w, LsRunsFit *fit)
{
  for (size_t a = w->n_active; a-- > 0;)
    if (fit->sensitivity[w->active[a]] < UNSEEN / 2)
      runs_drop (w, a, LS_KEPT_UNSEEN, fit);
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
  double along, square;
  gsl_blas_ddot (r, c, &along);
  gsl_blas_ddot (c, c, &square);
  double u = square > 0 ? CLAMP (-along / square, runs_u_of (x, x->lo), runs_u_of (x, x->hi)) : 0;
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
    runs_drop (w, w->n_active - 1, LS_KEPT_FEW_ROWS, fit);
}

/* One parameter at one end of its range: the most that a row moves for each half of the range; *ret_u where
 * that is, r what is predicted there. */
static bool
look_at_end (RunsWork *w, size_t j, double end, const double *before, double *ret_u, double *r,
             double *ret_most)
{
  const LsRunsParameter *x = &w->p->parameters[j];
  gsl_vector *u = gsl_vector_calloc (w->p->n_parameters);
  *ret_u = runs_u_of (x, end);
  gsl_vector_set (u, j, *ret_u);
  bool ok = *ret_u == 0 ? (memcpy (r, before, w->p->n_rows * sizeof *r), true)
                        : runs_simulate (w, u, LS_ALL_ROWS, r);
  *ret_most = 0;
  for (size_t i = 0; i < w->p->n_rows && *ret_u != 0; i++)
    *ret_most = fmax (*ret_most, fabs ((r[i] - before[i]) / *ret_u));
  gsl_vector_free (u);
  return ok;
}

/* What all of them do over their ranges: singular values, who is worth a fit, and who bites on one side of
 * the start only (a NIC behind a slower NVLink). */
bool
runs_look (RunsWork *w, LsRunsFit *fit)
{
  size_t n = w->p->n_parameters, n_rows = w->p->n_rows;
  gsl_matrix *J = gsl_matrix_calloc (MAX (n_rows, n), n); /* GSL wants no fewer rows than columns */
  bool ok = true;
  for (size_t j = 0; j < n && ok; j++) {
    const LsRunsParameter *x = &w->p->parameters[j];
    double *low = w->end_r[j][0] = g_new0 (double, n_rows), *high = w->end_r[j][1] = g_new0 (double, n_rows);
    double u_low = 0, u_high = 0, below = 0, above = 0;
    ok = look_at_end (w, j, x->lo, fit->before, &u_low, low, &below)
        && look_at_end (w, j, x->hi, fit->before, &u_high, high, &above);
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
    drop_unseen (w, fit);
    keep_telling (w, J, fit);
  }
  gsl_matrix_free (J);
  return ok;
}
