#include "calibrate/misfit.h"

#include <math.h>

#define ALIKE          0.7  /* correlation of shapes that are next to each other */
#define SAME           0.99 /* and of timings of one shape                      */
#define OCTAVES        1.0  /* until it is 1 / e of that                         */
#define COMPUTE_SPREAD 1.4  /* standard deviation over mean absolute error       */
#define OTHER_SPREAD   2.0
#define HALF           0.5 /* of the time: what bounds a kernel                 */

enum { N_SIZES = 4 };

typedef struct {
  double octave[N_SIZES];
  double spread;
} Place;

static Place
place_of (const LsTimedKernel *t, const LsKindFit *fit, const LsGpu *gpu, double mape)
{
  const LsKernel *k = &t->kernel;
  const uint64_t sizes[N_SIZES] = { k->m, k->n, k->k, k->batch };
  LsKernelCost cost = ls_kernel_cost_by (fit, 1, gpu, k);
  Place place = { .spread = mape
                      * (cost.compute_s > HALF * ls_time_to_s (cost.alone) ? COMPUTE_SPREAD : OTHER_SPREAD) };
  for (guint i = 0; i < N_SIZES; i++)
    place.octave[i] = log2 ((double) MAX (1, sizes[i]));
  return place;
}

static double
covariance (const Place *a, const Place *b)
{
  double square = 0;
  for (guint i = 0; i < N_SIZES; i++)
    square += (a->octave[i] - b->octave[i]) * (a->octave[i] - b->octave[i]);
  return a->spread * b->spread * (square > 0 ? ALIKE * exp (-sqrt (square) / OCTAVES) : SAME);
}

gsl_matrix *
ls_misfit_covariance (const GPtrArray *samples, const LsKindFit *fit, const LsGpu *gpu, double mape)
{
  g_autofree Place *places = g_new (Place, samples->len);
  gsl_matrix *K = gsl_matrix_alloc (MAX (1, samples->len), MAX (1, samples->len));
  for (guint i = 0; i < samples->len; i++) {
    places[i] = place_of (samples->pdata[i], fit, gpu, mape);
    for (guint j = 0; j <= i; j++)
      gsl_matrix_set (K, i, j,
                      i == j ? places[i].spread * places[i].spread : covariance (&places[i], &places[j]));
  }
  return K;
}

double
ls_misfit_independent (const gsl_matrix *K, const GArray *which)
{
  guint n = which ? which->len : (guint) K->size1;
  double sum = 0;
  for (guint a = 0; a < n; a++)
    for (guint b = 0; b < a; b++) {
      guint i = which ? g_array_index (which, guint, a) : a, j = which ? g_array_index (which, guint, b) : b;
      sum += 2 * gsl_matrix_get (K, i, j) / sqrt (gsl_matrix_get (K, i, i) * gsl_matrix_get (K, j, j));
    }
  return n / (1 + sum / n);
}
