#include "calibrate/nccl_tell.h"

#include <math.h>

#include "calibrate/svd.h"

#define DELTA      0.02 /* of ln, in differences             */
#define MOVES      0.1  /* of a point, for all of the figure */
#define MIN_POINTS 2
#define SCATTER    0.01
#define MOST_ERROR 0.25

static size_t
n_points (const LsNcclProblem *p)
{
  size_t n = 0;
  for (guint i = 0; i < p->curves->len; i++) {
    const LsNcclCurve *c = p->curves->pdata[i];
    n += c->held_out ? 0 : c->points->len;
  }
  return n;
}

/* ln (predicted / measured) of each point that is fitted. */
static void
residuals (const LsNcclProblem *p, const LsNccl *nccl, double *ret)
{
  g_autoptr (LsArena) arena = ls_arena_new ();
  for (guint i = 0; i < p->curves->len; i++) {
    const LsNcclCurve *c = p->curves->pdata[i];
    for (guint k = 0; k < c->points->len && !c->held_out; k++) {
      const LsNcclPoint *point = &g_array_index (c->points, LsNcclPoint, k);
      *ret++ = log (ls_nccl_predict_s (p->cluster, nccl, c, point->bytes, arena) / point->measured_s);
    }
  }
}

static void
residuals_with (const LsNcclProblem *p, const LsNccl *at, size_t j, double value, double *ret)
{
  LsNccl other = *at;
  ls_nccl_set (&other, &p->fitted[j], value);
  p->complete (&other, p->fitted);
  residuals (p, &other, ret);
}

/* At the start: a figure that a fit drives to 0 would depend on nothing there. */
static guint
set_column (const LsNcclProblem *p, const LsNccl *at, size_t j, gsl_matrix *J)
{
  size_t n = n_points (p);
  g_autofree double *here = g_new (double, n), *beside = g_new (double, n);
  guint n_moving = 0;
  residuals_with (p, at, j, p->fitted[j].start, here);
  residuals_with (p, at, j, p->fitted[j].start * exp (DELTA), beside);
  for (size_t i = 0; i < n; i++) {
    double slope = (beside[i] - here[i]) / DELTA;
    n_moving += fabs (slope) >= MOVES;
    gsl_matrix_set (J, i, j, slope);
  }
  return n_moving;
}

static size_t
worst_of (const gsl_matrix *J, size_t n_fitted, double scatter, double *ret_error)
{
  LsSvd svd;
  size_t worst = n_fitted;
  double most = MOST_ERROR;
  ls_svd_init (&svd, J);
  for (size_t j = 0; j < n_fitted; j++) {
    ret_error[j] = scatter * sqrt (ls_svd_variance (&svd, j));
    if (ret_error[j] > most) {
      most = ret_error[j];
      worst = j;
    }
  }
  ls_svd_clear (&svd);
  return worst;
}

size_t
ls_nccl_untold (const LsNcclProblem *p, const LsNccl *at, double *ret_error, const char **ret_why)
{
  size_t n = n_points (p), n_fitted = 0, first = SIZE_MAX;
  while (p->fitted[n_fitted].name)
    ret_error[n_fitted++] = NAN;
  if (n_fitted == 0)
    return 0;
  g_autofree double *r = g_new0 (double, n);
  gsl_matrix *J = gsl_matrix_calloc (MAX (n, n_fitted), n_fitted);
  double sum = 0;
  residuals (p, at, r);
  for (size_t i = 0; i < n; i++)
    sum += r[i] * r[i];
  for (size_t j = 0; j < n_fitted; j++)
    if (set_column (p, at, j, J) < MIN_POINTS && first == SIZE_MAX)
      first = j;
  *ret_why = first < n_fitted ? "no size depends on it" : "these sizes cannot tell it from others";
  if (first == SIZE_MAX)
    first = worst_of (J, n_fitted, fmax (SCATTER, sqrt (sum / (double) MAX (n, n_fitted + 1))), ret_error);
  gsl_matrix_free (J);
  return first;
}
