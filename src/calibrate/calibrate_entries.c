/* calibrate/calibrate_entries.c — which coefficients of which entry of a calibration are fitted. */
#include "calibrate/calibrate_run.h"

#include <gsl/gsl_blas.h>
#include <gsl/gsl_matrix.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "calibrate/calibrate_fit.h"
#include "calibrate/solve.h"
#include "compute/cost.h"
#include "data/machines/machines.h"
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
misfit_covariance (const GPtrArray *samples, const LsKindFit *fit, const LsGpu *gpu, double mape)
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
misfit_independent (const gsl_matrix *K, const GArray *which)
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

/* ---- measured kernels laid over the coefficients of a calibration that is there already ---- */

/* Of a kernel kind these may move; all other coefficients (tiles, waves, depth, heat, caches) are forms,
 * which few kernels cannot tell, and stay:
 *
 *   compute_efficiency   of large products and long attention
 *   memory_efficiency    of what streams
 *   launch               of small kernels
 *   timed_host, timed_efficiency   what the timing holds besides, where it does, in place of the launch
 *
 * Who tells one. A kernel whose time is to 70 % FLOPs at the full rate, or bytes from HBM at the full
 * bandwidth, or to a quarter the launch. Bytes are not from HBM if the L2 may hold half of them: an isolated
 * loop finds them there. Three kernels must tell a coefficient, worth two that are not alike (above). Kernels
 * that tell none of those that may move are left out: waves, split products and caches rule them. So a table
 * of small products does not change the rate of large ones, nor the other way round.
 *
 * Least squares of ln (measured / predicted), Huber's weights (knee 0.1), by Gauss-Newton from the
 * calibration's values. Standard errors are those for residuals with the covariance K above,
 * which are off together where shapes are alike: with J' the weighted derivatives, the diagonal of (J'J)^-1
 * J' K J (J'J)^-1. K is scaled by what the table shows, and as much as four independent kernels of what the
 * calibration's error lets expect; n kernels count as their N independent ones:
 *
 *     s^2 = (4 + (N / n) sum w r^2 / K_ii) / (4 + N - p)
 *
 * What moves. A change d of ln (coefficient) with a standard error e. The one of least d / e goes as long as
 * that is below 4: the table agrees with the calibration, which stays. (4, not 3: misfits have long tails.)
 * What is left moves by d (1 - (4 e / d)^2) (Breiman's non-negative garrote): a small table moves a little,
 * and chance next to nothing. A coefficient that is a guess moves by d. None moves by more than the kernels
 * that tell it are off, at most: a launch is not charged with what keeps short kernels long. So a few
 * kernels, of whichever shapes, make no prediction worse (tests/unit/calibrate/test_calibrate_subsets.c).
 *
 * Worked example. 16 products, no two alike, all large, exactly 20 % slower than a calibration with a mean
 * absolute error of 6 %: d = -0.182, K_ii = 0.084^2, s^2 = 4 / (4 + 16 - 1) = 0.46^2, e = 0.46 * 0.084 / 4 =
 * 0.0096; the efficiency goes to exp (-0.182 * (1 - 0.045)) = 0.840 of what it was.
 *
 * Reference. L. Breiman, Better subset regression using the nonnegative garrote, Technometrics 37 (1995); L.
 * Kish, Survey Sampling (1965). */

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
  return ls_number_get (fit, levels[level].offset, levels[level].is_time);
}

static void
set_level (LsKindFit *fit, int level, double x)
{
  ls_number_set (fit, levels[level].offset, levels[level].is_time,
                 CLAMP (x, levels[level].lo, levels[level].hi));
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
  return telling->len >= MIN_TELLING && misfit_independent (p->misfit, telling) >= MIN_INDEPENDENT;
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
  double n = p->samples->len, independent = misfit_independent (p->misfit, NULL);
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

/* Borrowed until the next. */
static LsFitChange *
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
  return &g_array_index (changes, LsFitChange, changes->len - 1);
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
    LsFitChange *c = note (changes, key, p, p->free[least], "the kernels agree with it");
    c->change = d[least];
    c->error = error[least];
    p->n_free--;
    memmove (p->free + least, p->free + least + 1, (p->n_free - least) * sizeof *p->free);
  }
  for (size_t a = 0; a < p->n_free; a++) {
    double most = is_besides (p->free[a]) ? INFINITY : most_off (p, p->free[a]);
    double garrote = is_guess ? 1 : fmax (0, 1 - pow (SIGNIFICANT * error[a] / d[a], 2));
    double by = CLAMP (d[a] * garrote, -most, most);
    double x = get_level (p->base, p->free[a]) * exp (by); /* as files spell it: times to 10 ns */
    set_level (fit, p->free[a], levels[p->free[a]].is_time ? round (x * 1e8) / 1e8 : ls_fit_round (x, 4));
    LsFitChange *c = note (changes, key, p, p->free[a], NULL);
    c->change = by;
    c->error = error[a];
    c->after = get_level (fit, p->free[a]);
    c->is_replaced = true;
  }
  return p->n_free > 0;
}

/* ---- which kernels ---- */

static gsl_matrix *
misfit_of (const Problem *p)
{
  return misfit_covariance (p->samples, p->base, p->gpu,
                            p->base->mape > 0 ? fmax (LEAST_MAPE, p->base->mape) : USUAL_MAPE);
}

static Problem
problem_new (const LsKindFit *base, const LsGpu *gpu, const GArray *samples)
{
  Problem p = { .base = base, .gpu = gpu, .samples = ls_fit_pick (samples, MAX_KERNELS) };
  p.misfit = misfit_of (&p);
  p.tells = g_new0 (guint8, p.samples->len);
  for (guint i = 0; i < p.samples->len; i++)
    for (int level = 0; level < N_LEVELS; level++)
      if (share_of (&p, level, p.samples->pdata[i]) >= levels[level].telling)
        p.tells[i] |= (guint8) (1u << level);
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

/* fit: the coefficients that are there, changed in place. is_guess: nobody measured them. `key`, static,
 * names the entry. Appends an LsFitChange for each coefficient that might have moved. Whether one did. */
static bool
levels_fit (LsKindFit *fit, bool is_guess, const char *key, const LsGpu *gpu, const GArray *samples,
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

/* How far `fit` is from the samples that are not held out: the sum of w r^2 / K_ii, of as many independent
 * ones as they are worth by the misfits of `base`. At least one sample is not held out. */
static double
levels_misfit (const LsKindFit *base, const LsKindFit *fit, const LsGpu *gpu, const GArray *samples)
{
  Problem p = problem_new (base, gpu, samples);
  double sum = sum_of_squares (&p, fit) * misfit_independent (p.misfit, NULL) / p.samples->len;
  problem_clear (&p);
  return sum;
}

/* ---- entries ---- */

/* What the pull to physical limits weighs: as much, for a coefficient at the far end of its
 * range, as one kernel that is off by 6 % (0.06^2 / 2). */
#define PRIOR            0.002
#define KERNELS_PER_FREE 2  /* of a kind, for each free coefficient, at least */
#define MIN_SUSTAINED    3  /* kernels on a hot GPU, to go before the calibration that is there */
#define N_AFRESH         20 /* kernels from which an entry that is a guess may be fitted whole */
#define MIN_GAIN                                                                                             \
  9 /* and what of the sum of squares each of its coefficients is to explain: three standard errors */

/* What to free, the most telling first; what belongs together is one step. */
static const guint gemm_steps[] = {
  LS_FREE_COMPUTE, LS_FREE_LAUNCH,
  LS_FREE_DEPTH,   LS_FREE_WAVE | LS_FREE_TILE,
  LS_FREE_MEMORY,  LS_FREE_THROTTLE | LS_FREE_BURST,
  LS_FREE_SPLIT,   LS_FREE_OVERLAP,
};
static const guint attention_steps[] = { LS_FREE_COMPUTE, LS_FREE_TAIL, LS_FREE_DEPTH, LS_FREE_LAUNCH };
static const guint stream_steps[] = { LS_FREE_MEMORY, LS_FREE_LAUNCH, LS_FREE_CACHE | LS_FREE_CACHE_SPEED };

static guint
free_steps (const guint *steps, guint n_steps, guint n_kernels)
{
  guint budget = (n_kernels + KERNELS_PER_FREE - 1) / KERNELS_PER_FREE, mask = 0;
  for (guint i = 0; i < n_steps && (guint) __builtin_popcount (mask | steps[i]) <= budget; i++)
    mask |= steps[i];
  return mask;
}

static bool
is_matrix_slot (guint slot)
{
  return slot <= LS_KERNEL_ATTENTION_BWD || slot == LS_ENTRY_GEMM_FP8 || slot == LS_ENTRY_GEMM_FP8_BLOCKS
      || slot == LS_ENTRY_GEMM_NVFP4 || slot == LS_ENTRY_ATTENTION_FP8 || slot >= LS_ENTRY_ATTENTION;
}

static bool
is_attention_slot (guint slot)
{
  return slot == LS_KERNEL_ATTENTION_FWD || slot == LS_KERNEL_ATTENTION_BWD || slot == LS_ENTRY_ATTENTION_FP8
      || slot >= LS_ENTRY_ATTENTION;
}

/* Softmax shows where heads differ in width; beyond 128 they show another effect. */
static guint
free_widths (const GArray *samples)
{
  uint64_t least = UINT64_MAX, most = 0;
  for (guint i = 0; i < samples->len; i++) {
    uint64_t width = g_array_index (samples, LsTimedKernel, i).kernel.k;
    least = MIN (least, width);
    most = MAX (most, width);
  }
  return (least < most ? LS_FREE_WIDTH : 0) | (least <= 128 && most > 128 ? LS_FREE_WIDE : 0);
}

static bool
has_besides (const GArray *samples)
{
  for (guint i = 0; i < samples->len; i++)
    if (g_array_index (samples, LsTimedKernel, i).has_host)
      return true;
  return false;
}

/* A constant host time and a launch cannot be told apart: then the launch is that of GEMMs. */
static guint
free_of (guint slot, const GArray *samples, guint n_seen)
{
  guint mask;
  if (is_attention_slot (slot))
    mask = free_steps (attention_steps, G_N_ELEMENTS (attention_steps), n_seen) | free_widths (samples);
  else if (is_matrix_slot (slot))
    mask = free_steps (gemm_steps, G_N_ELEMENTS (gemm_steps), n_seen);
  else
    mask = free_steps (stream_steps, G_N_ELEMENTS (stream_steps), n_seen);
  return has_besides (samples) ? (mask & ~(guint) LS_FREE_LAUNCH) | LS_FREE_HOST | LS_FREE_SIDE : mask;
}

static guint
n_not_held_out (const GArray *samples)
{
  guint n = 0;
  for (guint i = 0; i < samples->len; i++)
    n += !g_array_index (samples, LsTimedKernel, i).held_out;
  return n;
}

/* Names of files go into a JSON text as they are. */
static char *
plain_files (const LsCalibrateRun *run)
{
  GString *text = g_string_new (NULL);
  for (guint i = 0; i < run->profiles->len; i++) {
    const LsProfile *p = g_ptr_array_index (run->profiles, i);
    g_autofree char *file = g_path_get_basename (p->path);
    for (char *c = file; *c; c++)
      if (*c == '"' || *c == '\\' || (unsigned char) *c < ' ' || *c == 0x7f)
        *c = '_';
    g_string_append_printf (text, "%s%s", i > 0 ? ", " : "", file);
  }
  return g_string_free (text, FALSE);
}

static void
say_source (LsCalibrateRun *run, guint slot, const char *how)
{
  g_autofree char *files = plain_files (run), *was = run->slot_source[slot];
  const char *held_out = run->is_alone[slot]     ? "all are held out by the rule, so nothing is"
      : isnan (run->calibration.kind[slot].mape) ? "no family of them is held out"
      : is_attention_slot (slot)                 ? "hold-out by (heads,kv_heads,head_dim)"
      : is_matrix_slot (slot)                    ? "hold-out by (n,k)"
                                                 : "hold-out by (rows,columns)";
  run->slot_source[slot]
      = g_strdup_printf ("%u kernels of %s; %s; %s", run->samples[slot]->len, files, how, held_out);
}

/* From nothing but physical limits. */
static void
fit_afresh (LsCalibrateRun *run, guint slot)
{
  GArray *samples = run->samples[slot];
  LsKindFit *fit = &run->calibration.kind[slot];
  const LsKindFit *gemm = &run->calibration.kind[LS_KERNEL_GEMM],
                  *stream = &run->calibration.kind[LS_KERNEL_ELEMENTWISE];
  *fit = (LsKindFit) { .compute_efficiency = 1, .memory_efficiency = 1 };
  if (has_besides (samples))
    fit->launch = gemm->launch;
  if (is_attention_slot (slot) && stream->is_fitted)
    fit->memory_efficiency = stream->memory_efficiency;
  ls_fit_solve (fit, free_of (slot, samples, n_not_held_out (samples)), &run->gpu, samples, PRIOR);
  say_source (run, slot, "robust fit, weak pull to physical limits");
}

/* ---- over the calibration that is there ---- */

/* What an entry that the calibration lacks runs like there (compute/cost.c); LS_N_ENTRIES: like nothing. */
static guint
stand_in (guint slot)
{
  if (slot >= LS_ENTRY_ATTENTION)
    return slot % 2 == LS_ENTRY_ATTENTION % 2 ? LS_KERNEL_ATTENTION_FWD : LS_KERNEL_ATTENTION_BWD;
  return slot == LS_ENTRY_GEMM_FP8       ? LS_KERNEL_GEMM
      : slot == LS_ENTRY_GEMM_FP8_BLOCKS ? LS_ENTRY_GEMM_FP8
      : slot == LS_ENTRY_ATTENTION_FP8   ? LS_KERNEL_ATTENTION_FWD
                                         : LS_N_ENTRIES;
}

static bool
is_known (const LsCalibrateRun *run, guint slot)
{
  return slot < LS_N_ENTRIES && run->base_has[slot];
}

static void
fit_over (LsCalibrateRun *run, guint slot, guint from)
{
  const GArray *samples = run->samples[slot];
  const LsKindFit base = run->base.kind[from];
  LsKindFit *fit = &run->calibration.kind[slot];
  bool is_guess = !base.is_fitted || from != slot;
  *fit = base;
  if (!levels_fit (fit, is_guess, ls_entry_key (slot), &run->gpu, samples, run->report.changes)) {
    if (from != slot)
      say_source (run, slot, "agree with the entry that stands in for it");
    return;
  }
  fit->is_fitted = true;
  LsFitError held_out = ls_fit_error (fit, &run->gpu, samples, true, NULL);
  fit->mape = held_out.n > 0 ? held_out.mape : NAN;
  if (base.max_work > 0 || !base.is_fitted) { /* else it never extrapolates */
    fit->min_work = base.max_work > 0 ? base.min_work : INFINITY;
    fit->max_work = base.max_work;
    ls_fit_reach (fit, samples);
  }
  g_autofree char *how
      = g_strdup_printf ("over calibration %s, of which provenance says what it replaces", run->base.name);
  say_source (run, slot, how);
}

/* Of a guess: whole, if that is so much closer to the kernels that chance does not explain it. */
static void
fit_whole (LsCalibrateRun *run, guint slot, guint from, guint n_changes)
{
  const GArray *samples = run->samples[slot];
  const LsKindFit *base = &run->base.kind[from], over = run->calibration.kind[slot];
  g_autofree char *source = g_strdup (run->slot_source[slot]);
  fit_afresh (run, slot);
  double gain = levels_misfit (base, &over, &run->gpu, samples)
      - levels_misfit (base, &run->calibration.kind[slot], &run->gpu, samples);
  if (gain > MIN_GAIN * __builtin_popcount (free_of (slot, samples, n_not_held_out (samples)))) {
    g_array_set_size (run->report.changes, n_changes);
    return;
  }
  run->calibration.kind[slot] = over;
  g_free (run->slot_source[slot]);
  run->slot_source[slot] = g_steal_pointer (&source);
}

static void
fit_slot (LsCalibrateRun *run, guint slot)
{
  GArray *samples = run->samples[slot];
  guint from = is_known (run, slot) ? slot : stand_in (slot), n_changes = run->report.changes->len;
  run->is_alone[slot] = n_not_held_out (samples) == 0;
  for (guint i = 0; run->is_alone[slot] && i < samples->len; i++)
    g_array_index (samples, LsTimedKernel, i).held_out = false;
  bool is_guess = !(is_known (run, slot) && run->base.kind[slot].is_fitted);
  if (!is_known (run, from)) {
    fit_afresh (run, slot);
    return;
  }
  fit_over (run, slot, from);
  if (is_guess && n_not_held_out (samples) >= N_AFRESH) /* they may tell all of its coefficients */
    fit_whole (run, slot, from, n_changes);
}

static bool
is_same_but_for_errors (const LsKindFit *a, const LsKindFit *b)
{
  return a->compute_efficiency == b->compute_efficiency && a->memory_efficiency == b->memory_efficiency
      && a->launch == b->launch && a->depth_half == b->depth_half && a->cache_bytes == b->cache_bytes;
}

/* Entries that were taken from another go where that goes. */
static void
follow (LsCalibrateRun *run, guint to, guint from)
{
  const LsKindFit *was = &run->base.kind[from], *now = &run->calibration.kind[from];
  LsKindFit *fit = &run->calibration.kind[to];
  if (run->samples[to] || !run->samples[from] || !is_known (run, to) || !is_known (run, from)
      || (fit->is_fitted && !is_same_but_for_errors (fit, was)) || is_same_but_for_errors (was, now))
    return;
  fit->compute_efficiency = ls_fit_round (
      fmin (1, fit->compute_efficiency * now->compute_efficiency / was->compute_efficiency), 4);
  fit->memory_efficiency
      = ls_fit_round (fmin (1, fit->memory_efficiency * now->memory_efficiency / was->memory_efficiency), 4);
  if (was->launch > 0)
    fit->launch
        = (LsTime) llround ((double) fit->launch / was->launch * now->launch / (10 * LS_NS)) * 10 * LS_NS;
  fit->mape = NAN;
  g_autofree char *source = run->slot_source[to];
  run->slot_source[to] = g_strdup_printf ("%s; moved as %s", source, ls_entry_key (from));
  run->has_followed[to] = true;
  ls_note (run->report.follows, "%s as %s", ls_entry_key (to), ls_entry_key (from));
}

/* A kind for which nothing was measured runs like another that was. */
static void
copy_slot (LsCalibrateRun *run, guint to, guint from)
{
  const char *why = from == LS_KERNEL_GEMM ? "as one GEMM"
      : from == LS_KERNEL_ATTENTION_FWD    ? "as the forward"
                                           : "as elementwise, streams its tensors";
  LsKindFit *fit = &run->calibration.kind[to];
  if (run->samples[to] || !run->samples[from])
    return;
  *fit = run->calibration.kind[from];
  fit->is_fitted = false;
  fit->mape = NAN;
  fit->min_work = fit->max_work = 0;
  fit->timed_host = 0;
  fit->timed_efficiency = 0;
  run->slot_source[to] = g_strdup_printf ("no data: %s", why);
}

/* The mean rate of the products of a layer inside of it, relative to alone: what `sustained` is, loops of one
 * GEMM stand for it. NaN: there are none. */
static double
products_in_layer (const LsCalibrateRun *run)
{
  double ratio = NAN;
  for (guint i = 0; i < run->profiles->len && isnan (ratio); i++)
    ratio = ls_profile_mean_noted (g_ptr_array_index (run->profiles, i), "context", "layer-gemms", "ratio");
  return 1 / ratio;
}

/* The ratio of a number format that was not timed hot, where the calibration that is there has one, moves as
 * that of 16 bits does. */
static double
moved_along (double format, double was, double now)
{
  return format > 0 && was > 0 ? ls_fit_round (fmin (0.999, format * now / was), 3) : format;
}

/* What the hot kernels say; without any, the ratio of the calibration that is there: it goes along with what
 * is measured cool. */
static void
fit_sustained (LsCalibrateRun *run)
{
  LsCalibration *c = &run->calibration;
  guint n = run->sustained->len;
  bool is_enough = n >= (run->has_base ? MIN_SUSTAINED : 1) && c->kind[LS_KERNEL_GEMM].is_fitted;
  double was = c->sustained,
         ratio = is_enough ? ls_fit_sustained (&c->kind[LS_KERNEL_GEMM], &run->gpu, run->sustained) : NAN;
  double in_layer = products_in_layer (run);
  ratio = isnan (in_layer) ? ratio : in_layer;
  run->has_sustained = !isnan (ratio);
  if (!isnan (ratio)) {
    c->sustained = ls_fit_round (fmin (0.999, ratio), 3);
    c->sustained_fp8 = moved_along (c->sustained_fp8, was, c->sustained);
    c->sustained_nvfp4 = moved_along (c->sustained_nvfp4, was, c->sustained);
  }
  if (!isnan (in_layer))
    run->report.timing = g_strdup_printf ("burst and sustained: kernels alone on a cool accelerator, and the "
                                          "products of whole layers (sustained %g)",
                                          c->sustained);
  else if (!isnan (ratio))
    run->report.timing = g_strdup_printf ("burst and sustained: kernels alone on a cool accelerator, and %u "
                                          "GEMMs on a hot one (sustained %g)",
                                          n, c->sustained);
  else if (run->has_base)
    run->report.timing = g_strdup_printf ("burst: kernels alone on a cool accelerator; %s timed hot, so "
                                          "inside a step GEMMs keep their share of that rate "
                                          "(sustained %g of %s)",
                                          n > 0 ? "too few were" : "none was", c->sustained, run->base.name);
  else
    run->report.timing = g_strdup ("burst: kernels alone on a cool accelerator; none was timed hot, so "
                                   "inside a step GEMMs run as fast "
                                   "(sustained 1)");
}

void
ls_calibrate_slots (LsCalibrateRun *run)
{
  /* Attention takes what streams and GEMMs have shown. */
  static const guint first[] = { LS_KERNEL_ELEMENTWISE, LS_KERNEL_GEMM };
  for (guint i = 0; i < G_N_ELEMENTS (first); i++)
    if (run->samples[first[i]])
      fit_slot (run, first[i]);
  for (guint slot = 0; slot < LS_N_ENTRIES; slot++)
    if (run->samples[slot] && slot != LS_KERNEL_ELEMENTWISE && slot != LS_KERNEL_GEMM)
      fit_slot (run, slot);
  void (*const take) (LsCalibrateRun *, guint, guint) = run->has_base ? follow : copy_slot;
  take (run, LS_KERNEL_BATCHED_GEMM, LS_KERNEL_GEMM);
  take (run, LS_KERNEL_ATTENTION_BWD, LS_KERNEL_ATTENTION_FWD);
  for (guint slot = LS_KERNEL_SOFTMAX; slot <= LS_KERNEL_MEMSET; slot++)
    take (run, slot, LS_KERNEL_ELEMENTWISE);
  fit_sustained (run);
  /* entries with no kernel of their own, that moved with no other */
  GString *kept = g_string_new (NULL);
  for (guint slot = 0; slot < LS_N_ENTRIES && run->has_base; slot++)
    if (!run->samples[slot] && run->slot_source[slot] && !run->has_followed[slot])
      g_string_append_printf (kept, "%s%s", kept->len > 0 ? ", " : "", ls_entry_key (slot));
  run->report.kept = g_string_free (kept, !run->has_base);
}
