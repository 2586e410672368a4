#include "sweep/calibrate_levels.h"

#include <math.h>
#include <stddef.h>

#include "sweep/calibrate_fit.h"
#include "sweep/svd.h"

#define KNEE          0.1
#define MIN_TELLING   3
#define PRIOR_KERNELS 4
#define LEAST_SCATTER 0.01
#define USUAL_SCATTER 0.075 /* where the calibration does not say: 1.25 times 6 %, as most entries have */
#define CORRELATION   0.5   /* of kernels of a family   */
#define SIGNIFICANT   3     /* standard errors          */
#define N_ITERATIONS  12
#define MAX_STEP      0.7   /* of ln, in an iteration   */
#define DELTA         1e-4  /* of ln, in differences    */

enum { COMPUTE, MEMORY, LAUNCH, HOST, SIDE, N_LEVELS };

static const struct {
  const char *name;
  size_t offset; /* in LsKindFit */
  bool is_time;
  double lo, hi;       /* seconds if a time                                      */
  double telling;      /* share of a kernel's time from which that kernel tells it */
  const char *unseen;
} levels[N_LEVELS] = {
  [COMPUTE] = { "compute_efficiency", offsetof (LsKindFit, compute_efficiency), false, 0.01, 1, 0.5,
                "too few kernels are large enough to run at the full rate" },
  [MEMORY] = { "memory_efficiency", offsetof (LsKindFit, memory_efficiency), false, 0.01, 1, 0.5,
               "too few kernels are bound by HBM" },
  [LAUNCH] = { "launch", offsetof (LsKindFit, launch), true, 0.1e-6, 100e-6, 0.25, "too few kernels are as short" },
  [HOST] = { "timed_host", offsetof (LsKindFit, timed_host), true, 1e-8, 1e-3, 0.1, "too few kernels are as short" },
  [SIDE] = { "timed_efficiency", offsetof (LsKindFit, timed_efficiency), false, 0.01, 1e3, 0.1, "too few kernels have so much beside them" },
};

typedef struct {
  const LsKindFit *base;
  const LsGpu *gpu;
  GPtrArray *samples; /* const LsTimedKernel: those that are fitted */
  double n_effective; /* of them                                    */
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
  bool is_attention = kernel->kind == LS_KERNEL_ATTENTION_FWD || kernel->kind == LS_KERNEL_ATTENTION_BWD;
  return is_attention && kernel->k > 0 ? s * (1 + fit->width_half / (double) kernel->k) : s;
}

static double
share_of (const Problem *p, int level, const LsTimedKernel *t)
{
  double all_s = ls_fit_predict_s (p->base, p->gpu, t);
  bool is_cached = p->base->cache_bytes > 0 && t->kernel.bytes < 2 * p->base->cache_bytes;
  switch (level) {
  case COMPUTE:
    return t->kernel.kind <= LS_KERNEL_ATTENTION_BWD ? full_rate_s (p->base, p->gpu, &t->kernel) / all_s : 0;
  case MEMORY:
    return is_cached ? 0 : t->kernel.bytes / (p->base->memory_efficiency * p->gpu->hbm_bytes_per_s) / all_s;
  case LAUNCH:
    return t->has_host ? 0 : ls_time_to_s (p->base->launch) / all_s;
  case SIDE:
    return p->base->timed_efficiency > 0 ? t->side_bytes / (p->base->timed_efficiency * p->gpu->hbm_bytes_per_s) / all_s : 0;
  default:
    return t->has_host ? ls_time_to_s (p->base->timed_host) / all_s : 0;
  }
}

static bool
is_besides (int level)
{
  return level == HOST || level == SIDE;
}

static guint
n_telling (const Problem *p, int level)
{
  guint n = 0;
  for (guint i = 0; i < p->samples->len; i++)
    n += share_of (p, level, p->samples->pdata[i]) >= levels[level].telling;
  return n;
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

/* Rows of sqrt (w) d ln (predicted) / d ln (coefficient), and of sqrt (w) r; the weighted sum of r^2. */
static double
linearise (const Problem *p, const double *d, gsl_matrix *J, gsl_vector *r)
{
  double sum = 0;
  LsKindFit at = moved (p, d);
  for (size_t a = 0; a < p->n_free; a++) {
    LsKindFit beside = at;
    double step = get_level (&at, p->free[a]) * exp (DELTA) < levels[p->free[a]].hi ? DELTA : -DELTA;
    set_level (&beside, p->free[a], get_level (&at, p->free[a]) * exp (step));
    for (guint i = 0; i < p->samples->len; i++)
      gsl_matrix_set (J, i, a, (residual (p, &at, i) - residual (p, &beside, i)) / step);
  }
  for (guint i = 0; i < p->samples->len; i++) {
    double e = residual (p, &at, i), w = weight (e);
    gsl_vector_view row = gsl_matrix_row (J, i);
    gsl_vector_scale (&row.vector, sqrt (w));
    gsl_vector_set (r, i, sqrt (w) * e);
    sum += w * e * e;
  }
  return sum;
}

/* Where the sum of squares is least, and the standard errors there. */
static void
solve (const Problem *p, double s0, double *ret_d, double *ret_error)
{
  gsl_matrix *J = gsl_matrix_calloc (MAX (p->samples->len, p->n_free), p->n_free);
  gsl_vector *r = gsl_vector_calloc (J->size1), *x = gsl_vector_calloc (p->n_free);
  double sum = 0;
  for (int i = 0; i <= N_ITERATIONS; i++) {
    LsSvd svd;
    sum = linearise (p, ret_d, J, r);
    ls_svd_init (&svd, J);
    for (size_t a = 0; a < p->n_free; a++)
      ret_error[a] = sqrt (ls_svd_variance (&svd, a));
    ls_svd_solve (&svd, r, x);
    ls_svd_clear (&svd);
    for (size_t a = 0; a < p->n_free && i < N_ITERATIONS; a++)
      ret_d[a] += CLAMP (gsl_vector_get (x, a), -MAX_STEP, MAX_STEP);
  }
  double n_prior = s0 > 0 ? PRIOR_KERNELS : 0;
  double n_left = fmax (1, n_prior + p->n_effective - (double) p->n_free);
  double design = p->samples->len / p->n_effective;
  double variance = (n_prior * s0 * s0 + sum / design) / n_left;
  for (size_t a = 0; a < p->n_free; a++)
    ret_error[a] *= fmax (LEAST_SCATTER, sqrt (variance)) * sqrt (design);
  gsl_matrix_free (J);
  gsl_vector_free (r);
  gsl_vector_free (x);
}

/* ---- what moves ---- */

static void
note (GArray *changes, const char *key, const Problem *p, int level, const char *why)
{
  const LsFitChange c = { .key = key, .name = levels[level].name, .is_time = levels[level].is_time,
                          .before = get_level (p->base, level), .after = get_level (p->base, level), .error = NAN, .change = NAN, .why = why };
  g_array_append_val (changes, c);
}

/* The one that differs least for its error; n_free: all differ. */
static size_t
least_of (const Problem *p, const double *d, const double *error)
{
  size_t least = p->n_free;
  double ratio = SIGNIFICANT;
  for (size_t a = 0; a < p->n_free; a++)
    if (!is_besides (p->free[a]) && fabs (d[a]) < ratio * error[a]) {
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
    if (share_of (p, level, p->samples->pdata[i]) >= levels[level].telling)
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
  double s0 = is_guess ? 0 : p->base->mape > 0 ? fmax (LEAST_SCATTER, 1.25 * p->base->mape) : USUAL_SCATTER;
  double d[N_LEVELS] = { 0 }, error[N_LEVELS];
  while (p->n_free > 0) {
    for (size_t a = 0; a < p->n_free; a++)
      d[a] = 0;
    solve (p, s0, d, error);
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
    double by = CLAMP (is_guess || is_besides (p->free[a]) ? d[a] : garrote (d[a], error[a]), -most, most);
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

/* How many independent ones they are worth. */
static double
effective (const GPtrArray *samples)
{
  g_autoptr (GHashTable) families = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  for (guint i = 0; i < samples->len; i++) {
    const LsKernel *k = &((const LsTimedKernel *) samples->pdata[i])->kernel;
    g_hash_table_add (families, g_strdup_printf ("%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT, k->n, k->k));
  }
  double n = samples->len, each = n / MAX (1, g_hash_table_size (families));
  return n / (1 + (each - 1) * CORRELATION);
}

static GPtrArray *
pick (const GArray *samples)
{
  GPtrArray *some = g_ptr_array_new ();
  for (guint i = 0; i < samples->len; i++) {
    LsTimedKernel *t = &g_array_index (samples, LsTimedKernel, i);
    if (!t->held_out)
      g_ptr_array_add (some, t);
  }
  return some;
}

bool
ls_levels_fit (LsKindFit *fit, bool is_guess, const char *key, const LsGpu *gpu, const GArray *samples, GArray *changes)
{
  const LsKindFit base = *fit;
  g_autoptr (GPtrArray) some = pick (samples);
  Problem p = { .base = &base, .gpu = gpu, .samples = some, .n_effective = effective (some) };
  bool has_host = false;
  for (guint i = 0; i < some->len; i++)
    has_host = has_host || ((const LsTimedKernel *) some->pdata[i])->has_host;
  for (int level = 0; level < N_LEVELS; level++) {
    bool is_matrix = some->len > 0 && ((const LsTimedKernel *) some->pdata[0])->kernel.kind <= LS_KERNEL_ATTENTION_BWD;
    if ((level == COMPUTE && !is_matrix) || (is_besides (level) && !has_host) || (level == LAUNCH && has_host))
      continue;
    if (n_telling (&p, level) >= MIN_TELLING)
      p.free[p.n_free++] = level;
    else
      note (changes, key, &p, level, levels[level].unseen);
  }
  return move (&p, is_guess, key, fit, changes);
}
