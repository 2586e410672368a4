#include "calibrate/svd.h"

#include <gsl/gsl_linalg.h>
#include <math.h>

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
