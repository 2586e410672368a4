#include "fit.h"

#include <gsl/gsl_multimin.h>
#include <math.h>
#include <string.h>

#define HUBER_KNEE   0.1
#define MAX_FREE     10
#define N_STARTS     5
#define N_ITERATIONS 400
#define SIMPLEX_SIZE 1e-7
#define START        0.3 /* logistic (START) = 0.57: just above the middle of each range */

typedef struct {
  guint free;
  double lo, hi;
} Bounds;

/* Ranges wide enough that no result lies on one, except b and e <= 1 by definition. */
static const Bounds bounds[] = {
  { LS_FREE_COMPUTE, 0.05, 1 }, { LS_FREE_MEMORY, 0.05, 1 },    { LS_FREE_LAUNCH, 0.2e-6, 50e-6 },
  { LS_FREE_DEPTH, 1, 2000 },   { LS_FREE_WIDTH, 0.1, 500 },    { LS_FREE_TILE, 0.1, 500 },
  { LS_FREE_WAVE, 0.01, 1 },    { LS_FREE_BYTES_HALF, 1, 1e8 }, { LS_FREE_HOST, 1e-7, 2e-4 },
  { LS_FREE_SIDE, 0.05, 20 },
};
G_STATIC_ASSERT (G_N_ELEMENTS (bounds) == MAX_FREE);

typedef struct {
  const LsFitState *fixed;
  guint free_mask;
  const LsGpu *gpu;
  const GArray *samples;
} Problem;

static void
set_coefficient (LsFitState *s, guint which, double x)
{
  switch ((LsFree)which) {
  case LS_FREE_COMPUTE:
    s->fit.compute_efficiency = x;
    break;
  case LS_FREE_MEMORY:
    s->fit.memory_efficiency = x;
    break;
  case LS_FREE_LAUNCH:
    s->fit.launch = ls_time_from_s (x);
    break;
  case LS_FREE_DEPTH:
    s->fit.depth_half = x;
    break;
  case LS_FREE_WIDTH:
    s->fit.width_half = x;
    break;
  case LS_FREE_TILE:
    s->fit.tile_half = x;
    break;
  case LS_FREE_WAVE:
    s->fit.wave_rounding = x;
    break;
  case LS_FREE_BYTES_HALF:
    s->fit.bytes_half = x;
    break;
  case LS_FREE_HOST:
    s->host_s = x;
    break;
  case LS_FREE_SIDE:
    s->side_efficiency = x;
    break;
  }
}

static LsFitState
state_at (const Problem *p, const gsl_vector *u)
{
  LsFitState s = *p->fixed;
  size_t at = 0;
  for (size_t i = 0; i < MAX_FREE; i++)
    if (p->free_mask & bounds[i].free) {
      double share = 1 / (1 + exp (-gsl_vector_get (u, at++)));
      set_coefficient (&s, bounds[i].free, bounds[i].lo * pow (bounds[i].hi / bounds[i].lo, share));
    }
  return s;
}

double
ls_fit_predict_s (const LsFitState *state, const LsGpu *gpu, const LsSample *sample)
{
  LsCalibration c = { .gemm_fp8 = { .is_fitted = false } };
  c.kind[sample->kernel.kind] = state->fit;
  LsKernelCost cost = ls_kernel_cost (&c, gpu, &sample->kernel);

  double s = cost.launch_s + fmax (cost.compute_s, cost.memory_s);
  if (sample->has_host)
    s += state->host_s;
  if (state->side_efficiency > 0)
    s += sample->side_bytes / (state->side_efficiency * gpu->hbm_bytes_per_s);
  return s;
}

static double
huber (double x)
{
  double a = fabs (x);
  return a < HUBER_KNEE ? 0.5 * x * x : HUBER_KNEE * (a - 0.5 * HUBER_KNEE);
}

static double
loss (const gsl_vector *u, void *problem)
{
  const Problem *p = problem;
  LsFitState s = state_at (p, u);
  double sum = 0;
  guint n = 0;
  for (guint i = 0; i < p->samples->len; i++) {
    const LsSample *sample = &g_array_index (p->samples, LsSample, i);
    if (sample->held_out)
      continue;
    sum += huber (log (ls_fit_predict_s (&s, p->gpu, sample) / sample->seconds));
    n++;
  }
  return n > 0 ? sum / n : 0;
}

static size_t
n_free (guint free_mask)
{
  size_t n = 0;
  for (size_t i = 0; i < MAX_FREE; i++)
    n += (free_mask & bounds[i].free) != 0;
  return n;
}

static LsFitState
minimise (const Problem *p)
{
  size_t n = n_free (p->free_mask);
  gsl_multimin_function f = { .f = loss, .n = n, .params = (void *) p };
  gsl_multimin_fminimizer *m = gsl_multimin_fminimizer_alloc (gsl_multimin_fminimizer_nmsimplex2, n);
  gsl_vector *u = gsl_vector_alloc (n), *step = gsl_vector_alloc (n);

  gsl_vector_set_all (u, START);
  for (int start = 0; start < N_STARTS; start++) {
    gsl_vector_set_all (step, 0.5);
    gsl_multimin_fminimizer_set (m, &f, u, step);
    for (int i = 0; i < N_ITERATIONS && gsl_multimin_fminimizer_size (m) > SIMPLEX_SIZE; i++)
      if (gsl_multimin_fminimizer_iterate (m))
        break;
    gsl_vector_memcpy (u, m->x);
  }
  LsFitState s = state_at (p, u);
  gsl_vector_free (step);
  gsl_vector_free (u);
  gsl_multimin_fminimizer_free (m);
  return s;
}

double
ls_fit_round (double value, int digits)
{
  char text[32];
  g_snprintf (text, sizeof text, "%.*g", digits, value);
  return g_ascii_strtod (text, NULL);
}

static void
round_state (LsFitState *s)
{
  LsKindFit *f = &s->fit;
  double *const coefficients[]
      = { &f->compute_efficiency, &f->memory_efficiency, &f->depth_half, &f->width_half,
          &f->tile_half,          &f->wave_rounding,     &f->bytes_half };
  for (size_t i = 0; i < G_N_ELEMENTS (coefficients); i++)
    *coefficients[i] = ls_fit_round (*coefficients[i], 4);
  f->launch = (f->launch + 5 * LS_NS) / (10 * LS_NS) * (10 * LS_NS);
}

static bool
counts_flops (LsKernelKind kind)
{
  return kind == LS_KERNEL_GEMM || kind == LS_KERNEL_ATTENTION_FWD;
}

static void
set_range (LsKindFit *f, const GArray *samples)
{
  f->min_work = INFINITY;
  f->max_work = 0;
  for (guint i = 0; i < samples->len; i++) {
    const LsKernel *k = &g_array_index (samples, LsSample, i).kernel;
    double work = counts_flops (k->kind) ? k->flops : k->bytes;
    f->min_work = fmin (f->min_work, work);
    f->max_work = fmax (f->max_work, work);
  }
}

void
ls_fit_solve (LsFitState *state, guint free_mask, const LsGpu *gpu, const GArray *samples)
{
  const Problem p = { state, free_mask, gpu, samples };
  *state = minimise (&p);
  round_state (state);
  state->fit.is_fitted = true;
  set_range (&state->fit, samples);
  LsFitError held_out = ls_fit_error (state, gpu, samples, true, NULL);
  state->fit.mape = held_out.n > 0 ? held_out.mape : NAN;
}

LsFitError
ls_fit_error (const LsFitState *state, const LsGpu *gpu, const GArray *samples, bool held_out,
              LsSampleFilter filter)
{
  LsFitError e = { 0 };
  for (guint i = 0; i < samples->len; i++) {
    const LsSample *sample = &g_array_index (samples, LsSample, i);
    if (sample->held_out != held_out || (filter && !filter (sample)))
      continue;
    double error = ls_fit_predict_s (state, gpu, sample) / sample->seconds - 1;
    e.mape += fabs (error);
    e.bias += error;
    e.n++;
  }
  if (e.n > 0) {
    e.mape /= e.n;
    e.bias /= e.n;
  }
  return e;
}
