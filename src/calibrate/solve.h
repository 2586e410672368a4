/* calibrate/solve.h — what fits have in common: a matrix by its singular values, J = U S V', Nelder and
 * Mead's simplex, and numbers of a struct that are fitted. */
#ifndef LS_CALIBRATE_SOLVE_H
#define LS_CALIBRATE_SOLVE_H

#include <stdbool.h>

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

/* Huber's loss, quadratic up to 0.1, then linear. */
double ls_huber (double x);

/* From u to a better one, by steps of that size at first, until the simplex is that small or after so many
 * iterations. Returns the loss there. */
double ls_descend (double (*loss) (const gsl_vector *u, void *problem), const void *problem, gsl_vector *u,
                   double step, int n_iterations, double size);

/* A number at that offset of a struct: a double, or an LsTime, in seconds. */
double ls_number_get (const void *of, size_t offset, bool is_time);
void ls_number_set (void *of, size_t offset, bool is_time, double x);

#endif
