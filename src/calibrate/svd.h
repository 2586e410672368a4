/* calibrate/svd.h — a matrix by its singular values: J = U S V'. */
#ifndef LS_CALIBRATE_SVD_H
#define LS_CALIBRATE_SVD_H

#include <gsl/gsl_matrix.h>
#include <gsl/gsl_vector.h>

typedef struct {
  gsl_matrix *U, *V; /* [size1][size2], [size2][size2] */
  gsl_vector *S;     /* [size2], descending            */
} LsSvd;

/* Of a matrix with no fewer rows than columns, which stays as it is. */
void ls_svd_init (LsSvd *svd, const gsl_matrix *J);
void ls_svd_clear (LsSvd *svd);

/* (J'J)^-1_jj: the variance of unknown j for residuals of variance 1. Huge if a singular value is 0. */
double ls_svd_variance (const LsSvd *svd, size_t j);
/* Largest over smallest singular value. */
double ls_svd_condition (const LsSvd *svd);
/* The x that is least of those with least |J x - b|. Singular values below 1e-9 of the largest count as 0:
 * what J does not see stays 0. */
void ls_svd_solve (LsSvd *svd, const gsl_vector *b, gsl_vector *ret_x);

#endif
