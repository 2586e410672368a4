#include "calibrate/solve.h"

#include <gsl/gsl_linalg.h>
#include <gsl/gsl_multimin.h>
#include <lockstep/units.h>
#include <math.h>

#define KNEE 0.1
#define NONE 1e-9 /* of the largest singular value: rounding */

void
ls_svd_init (LsSvd *svd, const gsl_matrix *J)
{
  gsl_vector *work = gsl_vector_alloc (J->size2);
  *svd = (LsSvd) { gsl_matrix_alloc (J->size1, J->size2), gsl_matrix_alloc (J->size2, J->size2),
                   gsl_vector_alloc (J->size2) };
  gsl_matrix_memcpy (svd->U, J);
  gsl_linalg_SV_decomp (svd->U, svd->V, svd->S, work);
  gsl_vector_free (work);
}

void
ls_svd_clear (LsSvd *svd)
{
  gsl_matrix_free (svd->U);
  gsl_matrix_free (svd->V);
  gsl_vector_free (svd->S);
}

double
ls_svd_variance (const LsSvd *svd, size_t j)
{
  double sum = 0;
  for (size_t k = 0; k < svd->S->size; k++) {
    double v = gsl_matrix_get (svd->V, j, k), s = gsl_vector_get (svd->S, k);
    sum += v * v / fmax (s * s, 1e-30);
  }
  return sum;
}

double
ls_svd_condition (const LsSvd *svd)
{
  return gsl_vector_get (svd->S, 0) / gsl_vector_get (svd->S, svd->S->size - 1);
}

void
ls_svd_solve (LsSvd *svd, const gsl_vector *b, gsl_vector *ret_x)
{
  for (size_t k = 0; k < svd->S->size; k++)
    if (gsl_vector_get (svd->S, k) < NONE * gsl_vector_get (svd->S, 0))
      gsl_vector_set (svd->S, k, 0);
  gsl_linalg_SV_solve (svd->U, svd->V, svd->S, b, ret_x);
}

double
ls_huber (double x)
{
  double a = fabs (x);
  return a < KNEE ? 0.5 * x * x : KNEE * (a - 0.5 * KNEE);
}

double
ls_descend (double (*loss) (const gsl_vector *u, void *problem), const void *problem, gsl_vector *u,
            double step, int n_iterations, double size)
{
  gsl_multimin_function f = { .f = loss, .n = u->size, .params = (void *) problem };
  gsl_multimin_fminimizer *m = gsl_multimin_fminimizer_alloc (gsl_multimin_fminimizer_nmsimplex2, u->size);
  gsl_vector *steps = gsl_vector_alloc (u->size);
  gsl_vector_set_all (steps, step);
  gsl_multimin_fminimizer_set (m, &f, u, steps);
  for (int i = 0; i < n_iterations && gsl_multimin_fminimizer_size (m) > size; i++)
    if (gsl_multimin_fminimizer_iterate (m))
      break;
  gsl_vector_memcpy (u, m->x);
  double least = m->fval;
  gsl_vector_free (steps);
  gsl_multimin_fminimizer_free (m);
  return least;
}

double
ls_number_get (const void *of, size_t offset, bool is_time)
{
  const char *at = (const char *) of + offset;
  return is_time ? ls_time_to_s (*(const LsTime *) at) : *(const double *) at;
}

void
ls_number_set (void *of, size_t offset, bool is_time, double x)
{
  char *at = (char *) of + offset;
  if (is_time)
    *(LsTime *) at = ls_time_from_s (x);
  else
    *(double *) at = x;
}
