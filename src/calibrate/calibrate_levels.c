#include "calibrate/calibrate_levels.h"

#include <gsl/gsl_blas.h>
#include <gsl/gsl_matrix.h>
#include <math.h>
#include <stddef.h>

#include "calibrate/calibrate_fit.h"
#include "calibrate/svd.h"
#include "compute/cost.h"
#include "data/measured/read_kernels.h"

/* ---- by how much measured kernels are off a calibration, together ---- */

/* Problem. A calibration is off by some percent on each shape, and alike on shapes that are alike: a library
 * takes the same kernel there. Ten products of one model, all 10 % slower, may say that the GPU is slow, or
 * only that this kernel is. Counted as ten independent timings they say too much.
 *
 * Model. ln (measured / predicted) of kernel i has the standard deviation
 *
 *     s_i = 1.4 of the calibration's mean absolute error for a kernel that is bound by arithmetic,
 *           2 for any other
 *
 * and two kernels that are d octaves apart have the correlation 0.7 exp (-d), d being the Euclidean distance
 * of (log2 m, log2 n, log2 k, log2 batch); timings of one shape 0.99.
 *
 * Where from. Residuals of the calibrations of A100, H100, H200 and B200 on the tables of products and
 * attention that they were fitted to, 87,175 timings in 13 classes: correlations over d in [0, 0.5), [0.5,
 * 1), .. [2, 2.5) have the medians 0.63, 0.43, 0.27, 0.15, 0.10, and are 0 beyond; 0.7 exp (-d) has 0.54,
 * 0.33, 0.20, 0.12, 0.07. Standard deviations are 1.0 to 1.5 of the mean absolute error where arithmetic
 * bounds, 1.3 to 2.2 where memory or the launch does.
 *
 * Worked example. Two products, d = 1, both off by x: correlation 0.258, so together they weigh as 2 / 1.258
 * = 1.59 independent ones.
 *
 * Reference. N. Cressie, Statistics for Spatial Data (1993): variogram, nugget, generalised least squares. */

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

/* Covariance of the kernels' misfits (const LsTimedKernel; at least one), in its lower triangle. `mape`: mean
 * absolute error of `fit`, a fraction above 0. Free with gsl_matrix_free(). */
static gsl_matrix *
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

/* As how many independent ones the kernels tell a mean: n^2 over the sum of their correlations. `which` of
 * them, ascending (guint; NULL: all). */
static double
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

#define LARGEST_L2                                                                                           \
  128e6 /* bytes, of NVIDIA's GPUs so far (B200: 126 MB), where an entry has no cache of its own */
#define KNEE            0.1
#define MIN_TELLING     3    /* kernels                                       */
#define MIN_INDEPENDENT 2    /* and as many of them that are not alike        */
#define MAX_KERNELS     1000 /* evenly picked: more of a calibration's range lie too close to tell more */
#define PRIOR_KERNELS   4
#define LEAST_MAPE      0.01
#define USUAL_MAPE      0.06 /* where the calibration does not say: as most entries have */
#define SIGNIFICANT     4    /* standard errors          */
#define N_ITERATIONS    12
#define MAX_STEP        0.7  /* of ln, in an iteration   */
#define DELTA           1e-4 /* of ln, in differences    */

enum { COMPUTE, MEMORY, LAUNCH, HOST, SIDE, N_LEVELS };

static const struct {
  const char *name;
  size_t offset; /* in LsKindFit */
  bool is_time;
  double lo, hi;  /* seconds if a time                                      */
  double telling; /* share of a kernel's time from which that kernel tells it */
  const char *unseen;
} levels[N_LEVELS] = {
  [COMPUTE] = { "compute_efficiency", offsetof (LsKindFit, compute_efficiency), false, 0.01, 1, 0.7,
                "too few kernels are large enough to run at the full rate" },
  [MEMORY] = { "memory_efficiency", offsetof (LsKindFit, memory_efficiency), false, 0.01, 1, 0.7,
               "too few kernels are bound by HBM" },
  [LAUNCH]
  = { "launch", offsetof (LsKindFit, launch), true, 0.1e-6, 100e-6, 0.25, "too few kernels are as short" },
  [HOST]
  = { "timed_host", offsetof (LsKindFit, timed_host), true, 1e-8, 1e-3, 0.1, "too few kernels are as short" },
  [SIDE] = { "timed_efficiency", offsetof (LsKindFit, timed_efficiency), false, 0.01, 1e3, 0.1,
             "too few kernels have so much next to them" },
};

typedef struct {
  const LsKindFit *base;
  const LsGpu *gpu;
  GPtrArray *samples; /* const LsTimedKernel: those that are fitted */
  gsl_matrix *misfit;
  guint8 *tells; /* of each, a bit for each level that it tells */
  int free[N_LEVELS];
  size_t n_free;
} Problem;

/* ---- coefficients ---- */

static double
get_level (const LsKindFit *fit, int level)
{
  const char *at = (const char *) fit + levels[level].offset;
  return levels[level].is_time ? ls_time_to_s (*(const LsTime *) at) : *(const double *) at;
}

static void
set_level (LsKindFit *fit, int level, double x)
{
  char *at = (char *) fit + levels[level].offset;
  x = CLAMP (x, levels[level].lo, levels[level].hi);
  if (levels[level].is_time)
    *(LsTime *) at = ls_time_from_s (x);
  else
    *(double *) at = x;
}

/* By exp (d) of each that is free. */
static LsKindFit
moved (const Problem *p, const double *d)
{
  LsKindFit fit = *p->base;
  for (size_t a = 0; a < p->n_free; a++)
    set_level (&fit, p->free[a], get_level (p->base, p->free[a]) * exp (d[a]));
  return fit;
}

/* ---- who tells what ---- */

/* The kernel as if nothing but its arithmetic at the full rate took time. */
static double
full_rate_s (const LsKindFit *fit, const LsGpu *gpu, const LsKernel *kernel)
{
  const LsKindFit bare = { .compute_efficiency = fit->compute_efficiency, .memory_efficiency = 1 };
  double s = ls_kernel_cost_by (&bare, 1, gpu, kernel).compute_s;
  bool is_attention = ls_kernel_is_attention (kernel->kind);
  return is_attention && kernel->k > 0 ? s * (1 + fit->width_half / (double) kernel->k) : s;
}

static double
share_of (const Problem *p, int level, const LsTimedKernel *t)
{
  double all_s = ls_fit_predict_s (p->base, p->gpu, t);
  double held = p->base->cache_bytes > 0 ? p->base->cache_bytes : LARGEST_L2;
  switch (level) {
  case COMPUTE:
    return t->kernel.kind <= LS_KERNEL_ATTENTION_BWD ? full_rate_s (p->base, p->gpu, &t->kernel) / all_s : 0;
  case MEMORY:
    return t->kernel.bytes < 2 * held
        ? 0
        : t->kernel.bytes / (p->base->memory_efficiency * p->gpu->hbm_bytes_per_s) / all_s;
  case LAUNCH:
    return t->has_host ? 0 : ls_time_to_s (p->base->launch) / all_s;
  case SIDE:
    return p->base->timed_efficiency > 0
        ? t->side_bytes / (p->base->timed_efficiency * p->gpu->hbm_bytes_per_s) / all_s
        : 0;
  default:
    return t->has_host ? ls_time_to_s (p->base->timed_host) / all_s : 0;
  }
}

static bool
is_besides (int level)
{
  return level == HOST || level == SIDE;
}

/* A bit for each coefficient that the kernel tells. */
static guint8
told_by (const Problem *p, const LsTimedKernel *t)
{
  guint8 mask = 0;
  for (int level = 0; level < N_LEVELS; level++)
    if (share_of (p, level, t) >= levels[level].telling)
      mask |= (guint8) (1u << level);
  return mask;
}

static bool
tells (const Problem *p, int level, guint i)
{
  return p->tells[i] & 1u << level;
}

/* By so many, and not all of one kind of shape. */
static bool
is_told (const Problem *p, int level)
{
  g_autoptr (GArray) telling = g_array_new (FALSE, FALSE, sizeof (guint));
  for (guint i = 0; i < p->samples->len; i++)
    if (tells (p, level, i))
      g_array_append_val (telling, i);
  return telling->len >= MIN_TELLING && ls_misfit_independent (p->misfit, telling) >= MIN_INDEPENDENT;
}

/* ---- least squares ---- */

static double
residual (const Problem *p, const LsKindFit *fit, guint i)
{
  const LsTimedKernel *t = p->samples->pdata[i];
  return log (t->measured_s / ls_fit_predict_s (fit, p->gpu, t));
}

static double
weight (double r)
{
  return fmin (1, KNEE / fmax (fabs (r), 1e-12));
}

/* Rows of sqrt (w) d ln (predicted) / d ln (coefficient), and of sqrt (w) r. */
static void
linearise (const Problem *p, const LsKindFit *at, gsl_matrix *J, gsl_vector *r)
{
  for (guint i = 0; i < p->samples->len; i++) {
    double e = residual (p, at, i);
    gsl_vector_set (r, i, sqrt (weight (e)) * e);
  }
  for (size_t a = 0; a < p->n_free; a++) {
    LsKindFit beside = *at;
    double x = get_level (at, p->free[a]), step = x * exp (DELTA) < levels[p->free[a]].hi ? DELTA : -DELTA;
    set_level (&beside, p->free[a], x * exp (step));
    for (guint i = 0; i < p->samples->len; i++) {
      double e = residual (p, at, i);
      bool is_form = p->free[a] == MEMORY && !tells (p, MEMORY, i); /* loads beside arithmetic: overlap */
      gsl_matrix_set (J, i, a, is_form ? 0 : sqrt (weight (e)) * (e - residual (p, &beside, i)) / step);
    }
  }
}

/* Sum of w r^2, in variances of the misfits. */
static double
sum_of_squares (const Problem *p, const LsKindFit *at)
{
  double sum = 0;
  for (guint i = 0; i < p->samples->len; i++) {
    double e = residual (p, at, i);
    sum += weight (e) * e * e / gsl_matrix_get (p->misfit, i, i);
  }
  return sum;
}

/* Of the misfits, in units of what the calibration's error lets expect. */
static double
spread (const Problem *p, const LsKindFit *at)
{
  double n = p->samples->len, independent = ls_misfit_independent (p->misfit, NULL);
  double sum = PRIOR_KERNELS + sum_of_squares (p, at) * independent / n;
  return sqrt (sum / fmax (1, PRIOR_KERNELS + independent - (double) p->n_free));
}

/* U' K U, K being that of the rows of J: sqrt (w) times that of the misfits. */
static gsl_matrix *
seen_misfit (const Problem *p, const LsKindFit *at, const gsl_matrix *U)
{
  gsl_matrix *weighted = gsl_matrix_calloc (U->size1, U->size2),
             *K_U = gsl_matrix_calloc (U->size1, U->size2), *seen = gsl_matrix_alloc (U->size2, U->size2);
  size_t n = p->samples->len;
  for (guint i = 0; i < n; i++)
    for (size_t a = 0; a < U->size2; a++)
      gsl_matrix_set (weighted, i, a, sqrt (weight (residual (p, at, i))) * gsl_matrix_get (U, i, a));
  gsl_matrix_view some = gsl_matrix_submatrix (weighted, 0, 0, n, U->size2),
                  product = gsl_matrix_submatrix (K_U, 0, 0, n, U->size2);
  gsl_blas_dsymm (CblasLeft, CblasLower, 1, p->misfit, &some.matrix, 0, &product.matrix);
  gsl_blas_dgemm (CblasTrans, CblasNoTrans, 1, weighted, K_U, 0, seen);
  gsl_matrix_free (weighted);
  gsl_matrix_free (K_U);
  return seen;
}

/* Of V S^-1 U' K U S^-1 V': roots of the diagonal. */
static void
standard_errors (const Problem *p, const LsKindFit *at, const LsSvd *svd, double *ret_error)
{
  gsl_matrix *seen = seen_misfit (p, at, svd->U);
  double least = 1e-9 * gsl_vector_get (svd->S, 0) + 1e-300;
  for (size_t a = 0; a < p->n_free; a++) {
    double variance = 0;
    for (size_t i = 0; i < p->n_free; i++)
      for (size_t j = 0; j < p->n_free; j++)
        variance += gsl_matrix_get (svd->V, a, i) / fmax (least, gsl_vector_get (svd->S, i))
            * gsl_matrix_get (seen, i, j) * gsl_matrix_get (svd->V, a, j)
            / fmax (least, gsl_vector_get (svd->S, j));
    ret_error[a] = sqrt (fmax (0, variance)) * spread (p, at);
  }
  gsl_matrix_free (seen);
}

/* Where the sum of squares is least, and the standard errors there. */
static void
solve (const Problem *p, double *ret_d, double *ret_error)
{
  gsl_matrix *J = gsl_matrix_calloc (MAX (p->samples->len, p->n_free), p->n_free);
  gsl_vector *r = gsl_vector_calloc (J->size1), *x = gsl_vector_calloc (p->n_free);
  for (int i = 0; i <= N_ITERATIONS; i++) {
    LsSvd svd;
    LsKindFit at = moved (p, ret_d);
    linearise (p, &at, J, r);
    ls_svd_init (&svd, J);
    ls_svd_solve (&svd, r, x);
    for (size_t a = 0; a < p->n_free && i < N_ITERATIONS; a++)
      ret_d[a] += CLAMP (gsl_vector_get (x, a), -MAX_STEP, MAX_STEP);
    if (i == N_ITERATIONS)
      standard_errors (p, &at, &svd, ret_error);
    ls_svd_clear (&svd);
  }
  gsl_matrix_free (J);
  gsl_vector_free (r);
  gsl_vector_free (x);
}

/* ---- what moves ---- */

static void
note (GArray *changes, const char *key, const Problem *p, int level, const char *why)
{
  const LsFitChange c = { .key = key,
                          .name = levels[level].name,
                          .is_time = levels[level].is_time,
                          .before = get_level (p->base, level),
                          .after = get_level (p->base, level),
                          .error = NAN,
                          .change = NAN,
                          .why = why };
  g_array_append_val (changes, c);
}

/* The one that differs least for its error; n_free: all differ. */
static size_t
least_of (const Problem *p, const double *d, const double *error)
{
  size_t least = p->n_free;
  double ratio = SIGNIFICANT;
  for (size_t a = 0; a < p->n_free; a++)
    if (fabs (d[a]) < ratio * error[a]) {
      ratio = fabs (d[a]) / error[a];
      least = a;
    }
  return least;
}

static void
drop (Problem *p, size_t a)
{
  for (size_t b = a; b + 1 < p->n_free; b++)
    p->free[b] = p->free[b + 1];
  p->n_free--;
}

/* By how much the kernels that tell a coefficient are off at most. */
static double
most_off (const Problem *p, int level)
{
  double most = 0;
  for (guint i = 0; i < p->samples->len; i++)
    if (tells (p, level, i))
      most = fmax (most, fabs (residual (p, p->base, i)));
  return most;
}

static double
garrote (double d, double error)
{
  return d * fmax (0, 1 - pow (SIGNIFICANT * error / d, 2));
}

/* As files spell it: four digits, times to 10 ns. */
static double
rounded (int level, double x)
{
  return levels[level].is_time ? round (x * 1e8) / 1e8 : ls_fit_round (x, 4);
}

static bool
move (Problem *p, bool is_guess, const char *key, LsKindFit *fit, GArray *changes)
{
  double d[N_LEVELS] = { 0 }, error[N_LEVELS];
  while (p->n_free > 0) {
    for (size_t a = 0; a < p->n_free; a++)
      d[a] = 0;
    solve (p, d, error);
    size_t least = least_of (p, d, error);
    if (least == p->n_free)
      break;
    note (changes, key, p, p->free[least], "the kernels agree with it");
    LsFitChange *c = &g_array_index (changes, LsFitChange, changes->len - 1);
    c->change = d[least];
    c->error = error[least];
    drop (p, least);
  }
  for (size_t a = 0; a < p->n_free; a++) {
    double most = is_besides (p->free[a]) ? INFINITY : most_off (p, p->free[a]);
    double by = CLAMP (is_guess ? d[a] : garrote (d[a], error[a]), -most, most);
    set_level (fit, p->free[a], rounded (p->free[a], get_level (p->base, p->free[a]) * exp (by)));
    note (changes, key, p, p->free[a], NULL);
    LsFitChange *c = &g_array_index (changes, LsFitChange, changes->len - 1);
    c->change = by;
    c->error = error[a];
    c->after = get_level (fit, p->free[a]);
    c->is_replaced = true;
  }
  return p->n_free > 0;
}

/* ---- which kernels ---- */

static GPtrArray *
pick (const GArray *samples)
{
  g_autoptr (GPtrArray) all = g_ptr_array_new ();
  for (guint i = 0; i < samples->len; i++) {
    LsTimedKernel *t = &g_array_index (samples, LsTimedKernel, i);
    if (!t->held_out)
      g_ptr_array_add (all, t);
  }
  GPtrArray *some = g_ptr_array_new ();
  guint stride = (all->len + MAX_KERNELS - 1) / MAX_KERNELS;
  for (guint i = 0; i < all->len; i += stride)
    g_ptr_array_add (some, all->pdata[i]);
  return some;
}

static gsl_matrix *
misfit_of (const Problem *p)
{
  return ls_misfit_covariance (p->samples, p->base, p->gpu,
                               p->base->mape > 0 ? fmax (LEAST_MAPE, p->base->mape) : USUAL_MAPE);
}

static Problem
problem_new (const LsKindFit *base, const LsGpu *gpu, const GArray *samples)
{
  Problem p = { .base = base, .gpu = gpu, .samples = pick (samples) };
  p.misfit = misfit_of (&p);
  p.tells = g_new0 (guint8, p.samples->len);
  for (guint i = 0; i < p.samples->len; i++)
    p.tells[i] = told_by (&p, p.samples->pdata[i]);
  return p;
}

static void
problem_clear (Problem *p)
{
  g_ptr_array_unref (p->samples);
  gsl_matrix_free (p->misfit);
  g_free (p->tells);
}

/* Kernels that tell nothing that may move are ruled by forms: they would pull with what those are off. */
static void
leave_telling (Problem *p)
{
  guint8 mask = 0;
  for (size_t a = 0; a < p->n_free; a++)
    mask |= (guint8) (1u << p->free[a]);
  guint n = 0;
  for (guint i = 0; i < p->samples->len; i++)
    if (p->tells[i] & mask) {
      p->samples->pdata[n] = p->samples->pdata[i];
      p->tells[n++] = p->tells[i];
    }
  g_ptr_array_set_size (p->samples, (gint) n);
  gsl_matrix_free (p->misfit);
  p->misfit = misfit_of (p);
}

bool
ls_levels_fit (LsKindFit *fit, bool is_guess, const char *key, const LsGpu *gpu, const GArray *samples,
               GArray *changes)
{
  const LsKindFit base = *fit;
  Problem p = problem_new (&base, gpu, samples);
  bool has_host = false;
  for (guint i = 0; i < p.samples->len; i++)
    has_host = has_host || ((const LsTimedKernel *) p.samples->pdata[i])->has_host;
  for (int level = 0; level < N_LEVELS; level++) {
    bool is_matrix = p.samples->len > 0
        && ((const LsTimedKernel *) p.samples->pdata[0])->kernel.kind <= LS_KERNEL_ATTENTION_BWD;
    if ((level == COMPUTE && !is_matrix) || (is_besides (level) && !has_host)
        || (level == LAUNCH && has_host))
      continue;
    if (is_told (&p, level))
      p.free[p.n_free++] = level;
    else
      note (changes, key, &p, level, levels[level].unseen);
  }
  if (p.n_free > 0)
    leave_telling (&p);
  bool has_moved = move (&p, is_guess, key, fit, changes);
  problem_clear (&p);
  return has_moved;
}

double
ls_levels_misfit (const LsKindFit *base, const LsKindFit *fit, const LsGpu *gpu, const GArray *samples)
{
  Problem p = problem_new (base, gpu, samples);
  double sum = sum_of_squares (&p, fit) * ls_misfit_independent (p.misfit, NULL) / p.samples->len;
  problem_clear (&p);
  return sum;
}
