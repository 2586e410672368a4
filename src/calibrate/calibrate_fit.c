#include "calibrate/calibrate_fit.h"

#include <gsl/gsl_qrng.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/order.h"
#include "calibrate/solve.h"

#define N_ROUNDS     4
#define N_SCATTERED  32
#define N_ITERATIONS 400
#define SIMPLEX_SIZE 1e-7
#define MAX_SAMPLES  2000 /* of a fit: evenly picked; errors are those of all samples */

typedef struct {
  guint free;
  size_t offset; /* in LsKindFit */
  bool is_time;
  bool ends_high;       /* at hi the effect is gone, otherwise at lo */
  double lo, hi, start; /* seconds if a time */
} Coefficient;

#define OF(free_, member) free_, offsetof (LsKindFit, member)

/* Ranges wide enough that no result lies on one, except shares <= 1 by definition and
 * effects that the data do not show: they end at the side where they do nothing. */
static const Coefficient coefficients[] = {
  { OF (LS_FREE_COMPUTE, compute_efficiency), false, true, 0.05, 1, 0.8 },
  { OF (LS_FREE_MEMORY, memory_efficiency), false, true, 0.05, 1, 0.8 },
  { OF (LS_FREE_LAUNCH, launch), true, false, 0.2e-6, 50e-6, 3e-6 },
  { OF (LS_FREE_DEPTH, depth_half), false, false, 1, 3000, 150 },
  { OF (LS_FREE_WIDTH, width_half), false, false, 0.1, 500, 30 },
  { OF (LS_FREE_TILE, tile_half), false, false, 0.1, 500, 20 },
  { OF (LS_FREE_WAVE, wave_rounding), false, false, 0.01, 1, 0.5 },
  { OF (LS_FREE_BYTES_HALF, bytes_half), false, false, 1, 1e8, 1e5 },
  { OF (LS_FREE_HOST, timed_host), true, false, 1e-8, 2e-4, 5e-6 },
  { OF (LS_FREE_SIDE, timed_efficiency), false, true, 0.05, 20, 0.5 },
  { OF (LS_FREE_SPLIT, split_launch), true, false, 1e-8, 2e-5, 1e-6 },
  { OF (LS_FREE_OVERLAP, overlap), false, true, 1, 50, 3 },
  { OF (LS_FREE_THROTTLE, throttle), false, false, 1e-3, 0.5, 0.1 },
  { OF (LS_FREE_BURST, burst), true, true, 1e-5, 2e-3, 2e-4 },
  { OF (LS_FREE_CACHE, cache_bytes), false, false, 2e6, 2e8, 2e7 },
  { OF (LS_FREE_CACHE_SPEED, cache_speed), false, false, 1.01, 8, 2 },
  { OF (LS_FREE_TAIL, tail), false, false, 0.01, 5, 0.5 },
  { OF (LS_FREE_WIDE, wide_slow), false, false, 1e-3, 3, 0.1 },
};
#define N_COEFFICIENTS G_N_ELEMENTS (coefficients)

typedef struct {
  const LsKindFit *fixed;
  guint free_mask;
  size_t n_free;
  const Coefficient *free[N_COEFFICIENTS];
  const LsGpu *gpu;
  const GPtrArray *samples; /* of const LsTimedKernel */
  double prior;
} Problem;

static double
share_of (double u)
{
  return 1 / (1 + exp (-u));
}

static LsKindFit
fit_at (const Problem *p, const gsl_vector *u)
{
  LsKindFit fit = *p->fixed;
  for (size_t i = 0; i < p->n_free; i++) {
    const Coefficient *c = p->free[i];
    double share = share_of (gsl_vector_get (u, i));
    ls_number_set (&fit, c->offset, c->is_time, c->lo * pow (c->hi / c->lo, share));
  }
  return fit;
}

double
ls_fit_predict_s (const LsKindFit *fit, const LsGpu *gpu, const LsTimedKernel *sample)
{
  LsKernelCost cost = ls_kernel_cost_by (fit, 1, gpu, &sample->kernel);
  return cost.launch_s + fmax (cost.compute_s, cost.memory_s)
      + ls_kernel_timed_besides_s (fit, gpu, sample->side_bytes, sample->has_host);
}

static double
loss (const gsl_vector *u, void *problem)
{
  const Problem *p = problem;
  LsKindFit fit = fit_at (p, u);
  double penalty = 0;
  for (size_t i = 0; i < p->n_free; i++) {
    double share = share_of (gsl_vector_get (u, i));
    penalty += p->free[i]->ends_high ? (1 - share) * (1 - share) : share * share;
  }
  double sum = p->prior * penalty;
  for (guint i = 0; i < p->samples->len; i++) {
    const LsTimedKernel *sample = g_ptr_array_index (p->samples, i);
    sum += ls_huber (log (ls_fit_predict_s (&fit, p->gpu, sample) / sample->measured_s));
  }
  return p->samples->len > 0 ? sum / p->samples->len : 0;
}

/* Starts one and two differ in how whole waves are. */
static void
set_start (const Problem *p, gsl_vector *u, int which)
{
  for (size_t i = 0; i < p->n_free; i++) {
    const Coefficient *c = p->free[i];
    double start = which == 1 && c->free == LS_FREE_WAVE ? 0.9 : c->start;
    double share = log (start / c->lo) / log (c->hi / c->lo);
    gsl_vector_set (u, i, log (share / (1 - share)));
  }
}

/* Anywhere: the next point of a Sobol sequence over all ranges. */
static void
set_scattered_start (gsl_qrng *points, gsl_vector *u)
{
  gsl_qrng_get (points, u->data);
  for (size_t i = 0; i < u->size; i++) {
    double share = gsl_vector_get (u, i);
    gsl_vector_set (u, i, log (share / (1 - share)));
  }
}

static LsKindFit
minimise (const Problem *p)
{
  gsl_vector *u = gsl_vector_alloc (p->n_free);
  gsl_qrng *points = gsl_qrng_alloc (gsl_qrng_sobol, (unsigned int) u->size);
  int n_starts = p->free_mask & LS_FREE_WAVE ? 2 : 1;
  int n_scattered = p->free_mask & LS_FIT_SCATTERED ? N_SCATTERED : 0;
  double least = INFINITY;
  LsKindFit best = *p->fixed;
  for (int start = 0; start < n_starts + n_scattered; start++) {
    if (start < n_starts)
      set_start (p, u, start);
    else
      set_scattered_start (points, u);
    double reached = INFINITY;
    for (int round = 0; round < N_ROUNDS; round++) /* again from where it ended */
      reached = ls_descend (loss, p, u, 0.5, N_ITERATIONS, SIMPLEX_SIZE);
    if (reached < least)
      best = fit_at (p, u);
    least = fmin (least, reached);
  }
  gsl_qrng_free (points);
  gsl_vector_free (u);
  return best;
}

double
ls_fit_round (double value, int digits)
{
  char text[32];
  g_snprintf (text, sizeof text, "%.*g", digits, value);
  return g_ascii_strtod (text, NULL);
}

void
ls_fit_reach (LsKindFit *fit, const GArray *samples)
{
  for (guint i = 0; i < samples->len; i++) {
    const LsKernel *k = &g_array_index (samples, LsTimedKernel, i).kernel;
    double work = k->kind <= LS_KERNEL_ATTENTION_BWD ? k->flops : k->bytes;
    fit->min_work = fmin (fit->min_work, work);
    fit->max_work = fmax (fit->max_work, work);
  }
}

GPtrArray *
ls_fit_pick (const GArray *samples, guint most)
{
  g_autoptr (GPtrArray) all = g_ptr_array_new ();
  for (guint i = 0; i < samples->len; i++) {
    LsTimedKernel *sample = &g_array_index (samples, LsTimedKernel, i);
    if (!sample->held_out)
      g_ptr_array_add (all, sample);
  }
  GPtrArray *some = g_ptr_array_new ();
  guint stride = (all->len + most - 1) / most;
  for (guint i = 0; i < all->len; i += stride)
    g_ptr_array_add (some, g_ptr_array_index (all, i));
  return some;
}

void
ls_fit_solve (LsKindFit *fit, guint free_mask, const LsGpu *gpu, const GArray *samples, double prior)
{
  g_autoptr (GPtrArray) some = ls_fit_pick (samples, MAX_SAMPLES);
  Problem p = { .fixed = fit, .free_mask = free_mask, .gpu = gpu, .samples = some, .prior = prior };
  for (size_t i = 0; i < N_COEFFICIENTS; i++)
    if (free_mask & coefficients[i].free)
      p.free[p.n_free++] = &coefficients[i];
  *fit = minimise (&p);
  for (size_t i = 0; i < N_COEFFICIENTS; i++) { /* four digits; times to 10 ns, as the files spell them */
    const Coefficient *c = &coefficients[i];
    LsTime *t = (LsTime *) ((char *) fit + c->offset);
    if (c->is_time)
      *t = (*t + 5 * LS_NS) / (10 * LS_NS) * (10 * LS_NS);
    else
      ls_number_set (fit, c->offset, false, ls_fit_round (ls_number_get (fit, c->offset, false), 4));
  }
  fit->is_fitted = true;
  fit->min_work = INFINITY;
  fit->max_work = 0;
  ls_fit_reach (fit, samples);
  LsFitError held_out = ls_fit_error (fit, gpu, samples, true, NULL);
  fit->mape = held_out.n > 0 ? held_out.mape : NAN;
}

LsFitError
ls_fit_error (const LsKindFit *fit, const LsGpu *gpu, const GArray *samples, bool held_out,
              LsSampleFilter filter)
{
  g_autoptr (GArray) errors = g_array_new (FALSE, FALSE, sizeof (double));
  LsFitError e = { 0 };
  for (guint i = 0; i < samples->len; i++) {
    const LsTimedKernel *sample = &g_array_index (samples, LsTimedKernel, i);
    if (sample->held_out != held_out || (filter && !filter (sample)))
      continue;
    double error = ls_fit_predict_s (fit, gpu, sample) / sample->measured_s - 1;
    e.mape += fabs (error);
    e.bias += error;
    g_array_append_val (errors, error);
  }
  if (errors->len == 0)
    return e;
  qsort (errors->data, errors->len, sizeof (double), ls_compare_doubles);
  e.n = errors->len;
  e.mape /= e.n;
  e.bias /= e.n;
  e.median = g_array_index (errors, double, e.n / 2);
  return e;
}

double
ls_fit_sustained (const LsKindFit *gemm, const LsGpu *gpu, const GArray *samples)
{
  g_autoptr (GArray) ratio = g_array_new (FALSE, FALSE, sizeof (double));
  for (guint i = 0; i < samples->len; i++) {
    const LsTimedKernel *s = &g_array_index (samples, LsTimedKernel, i);
    double x = ls_time_to_s (ls_kernel_cost_by (gemm, LS_FIT_HOT, gpu, &s->kernel).alone) / s->measured_s;
    g_array_append_val (ratio, x);
  }
  if (ratio->len == 0)
    return NAN;
  qsort (ratio->data, ratio->len, sizeof (double), ls_compare_doubles);
  return g_array_index (ratio, double, ratio->len / 2);
}
