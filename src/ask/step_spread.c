#include "ask/step_spread.h"

#include <lockstep/error.h>
#include <math.h>

#include "base/draw.h"
#include "base/gcd.h"
#include "base/order.h"
#include "base/parallel.h"
#include "job/assumptions.h"
#include "job/sensitivity_scale.h"

/* --- how a step follows ranks that are slower than others ---------------------------------------- */

#define PROBE        0.03
#define MAX_STAGES   3 /* that are tried: the first, the middle, the last */
#define N_ALL_PROBES 3

/* --- runs ------------------------------------------------------------------------------------- */

typedef struct {
  const LsJobResult *r;
  LsRunOptions options;
  uint32_t stage[MAX_STAGES]; /* that are tried */
  double step_s[N_ALL_PROBES + MAX_STAGES];
  GError *errors[N_ALL_PROBES + MAX_STAGES];
} Probes;

/* What a probe slows: nothing; all kernels; all clocks; a stage. */
enum { ALIKE, ALL, CLOCK };

static double *
slow_of (const Probes *p, guint probe)
{
  const LsMesh mesh = ls_strategy_mesh (&p->r->strategy);
  uint32_t n = p->r->plan->n_ranks;
  double *slow = g_new (double, n);
  for (uint32_t rank = 0; rank < n; rank++) {
    bool is_slow = probe == ALL
        || (probe >= N_ALL_PROBES && ls_mesh_coord (&mesh, rank).pp == p->stage[probe - N_ALL_PROBES]);
    slow[rank] = is_slow ? 1 + PROBE : 1;
  }
  return slow;
}

static void
run_probe (guint i, gpointer data)
{
  Probes *p = data;
  const LsHardware *hardware = p->r->hardware;
  LsHardware h;
  ls_hardware_for_job (hardware, &p->r->strategy, 1, &h);
  if (i == CLOCK)
    h.calibration.clock /= 1 + PROBE;
  g_autofree double *slow = slow_of (p, i);
  LsRunOptions options = p->options;
  options.slow = slow;
  g_autoptr (LsTimeline) t
      = ls_run (p->r->plan, p->r->cluster, &h.calibration, &hardware->nccl, &options, NULL, &p->errors[i]);
  if (t)
    p->step_s[i] = ls_rerun_step_s (t);
}

/* --- what they say ------------------------------------------------------------------------------ */

static double
follows (const Probes *p, guint probe)
{
  return (p->step_s[probe] / p->step_s[ALIKE] - 1) / PROBE;
}

static LsPace *
pace_of (const Probes *p, guint n_tried)
{
  const LsStrategy *s = &p->r->strategy;
  LsPace *pace = g_malloc0 (sizeof *pace + s->pp * sizeof *pace->alone);
  uint32_t per_stage = p->r->plan->n_ranks / s->pp;
  pace->n_stages = s->pp;
  uint32_t dense = s->tp * s->cp, experts = MAX (s->ep, 1) * (s->experts.etp > 0 ? s->experts.etp : s->tp),
           n = s->ep > 1 ? ls_lcm (dense, experts) : dense; /* that meet each layer (plan/mesh.h) */
  pace->n_together = n > 0 && per_stage % n == 0 ? n : per_stage;
  pace->n_replicas = per_stage / pace->n_together;
  pace->meets_each_layer = s->zero_stage == 3;
  pace->step_s = p->step_s[ALIKE];
  pace->clock = p->step_s[ALL] > p->step_s[ALIKE] ? follows (p, CLOCK) / follows (p, ALL) : 0;
  double most = 0;
  for (uint32_t i = 0; i < s->pp; i++) {
    guint probe = n_tried / 2; /* of one that was not tried the middle's */
    for (guint k = 0; k < n_tried; k++)
      probe = p->stage[k] == i ? k : probe;
    pace->alone[i] = follows (p, s->pp == 1 ? ALL : N_ALL_PROBES + probe);
    most = fmax (most, pace->alone[i]);
  }
  if (s->pp > 1)
    pace->beside = fmax (follows (p, ALL) - most, 0) / (s->pp - 1);
  return pace;
}

LsPace *
ls_pace_new (const LsJobSpec *spec, const LsJobResult *r, guint n_threads, GError **error)
{
  Probes p = { .r = r };
  if (!r->model.name || spec->trace)
    return ls_fail_null (error, LS_ERROR_UNSUPPORTED,
                         "--jitter does not go with --trace: which ranks make up a replica is not known");
  if (spec->slow.ranks)
    return ls_fail_null (error, LS_ERROR_CONFLICT,
                         "--jitter does not go with --slow: both say how fast each rank is");
  p.options = ls_rerun_options (spec, r);
  uint32_t pp = r->strategy.pp;
  guint n_tried = pp > 1 ? MIN (pp, MAX_STAGES) : 0;
  for (guint i = 0; i < n_tried; i++)
    p.stage[i] = n_tried < MAX_STAGES ? i : i * (pp - 1) / (MAX_STAGES - 1);
  guint n = N_ALL_PROBES + n_tried;
  ls_parallel (n, n_threads, run_probe, &p, NULL);
  if (ls_parallel_first_error (p.errors, n, error) == n)
    return pace_of (&p, n_tried);
  g_prefix_error (error, "with slower ranks: ");
  return NULL;
}

/* --- a step ---------------------------------------------------------------------------------------- */

/* Of n replicas that go at the pace of the slowest of each stage. */
static double
of_replicas (const LsPace *p, const double *x, uint32_t n)
{
  double longest = -INFINITY, sum = 0;
  for (uint32_t i = 0; i < p->n_stages; i++) {
    double slowest = -INFINITY;
    for (uint32_t replica = 0; replica < n; replica++)
      slowest = fmax (slowest, x[(size_t) replica * p->n_stages + i]);
    longest = fmax (longest, (p->alone[i] - p->beside) * slowest);
    sum += slowest;
  }
  return longest + p->beside * sum;
}

double
ls_pace_step (const LsPace *pace, const double *x, uint32_t n_replicas)
{
  if (pace->meets_each_layer)
    return of_replicas (pace, x, n_replicas);
  double longest = -INFINITY;
  for (uint32_t replica = 0; replica < n_replicas; replica++)
    longest = fmax (longest, of_replicas (pace, x + (size_t) replica * pace->n_stages, 1));
  return longest;
}

/* --- how the steps of a job are distributed: over clusters that it may get, and its steps -------- */

#define MAX_DRAWS    8e6 /* of a row: one for each GPU and step */
#define MIN_STEPS    8   /* of a cluster */
#define MAX_STEPS    64
#define MORE         4 /* clusters for each of them */
#define REPLICAS_UP  8 /* from a row to the next              */
#define LEAST_FACTOR (-0.9)

/* --- draws ------------------------------------------------------------------------------------- */

typedef struct {
  const LsPace *pace;
  uint32_t n_replicas, n_steps;
  double spread, noise, day;
  uint32_t seed;
  double *steady; /* [n_clusters] a step without noise, over all alike */
  double *hour;   /* [n_clusters] of the first step, of a day          */
  double *steps;  /* [n_clusters][n_steps]                             */
} Draws;

/* Streams of SplitMix64 whose states are a few steps apart would be one stream: they begin at its outputs. */
static uint64_t
stream_of (uint32_t seed, guint cluster)
{
  uint64_t state = seed;
  state = ls_draw_bits (&state) + cluster;
  return ls_draw_bits (&state);
}

/* steady: [ranks] x of each GPU, in the order replica, stage, rank. x: room for those of the stages. */
static double
draw_step (const Draws *d, const double *steady, double noise, uint64_t *state, double *x)
{
  const LsPace *p = d->pace;
  for (size_t stage = 0; stage < (size_t) d->n_replicas * p->n_stages; stage++) {
    double most = LEAST_FACTOR;
    for (uint32_t i = 0; i < p->n_together; i++)
      most = fmax (most, *steady++ + (noise > 0 ? noise * ls_draw_normal (state) : 0));
    x[stage] = most;
  }
  return 1 + ls_pace_step (p, x, d->n_replicas);
}

static void
draw_cluster (guint cluster, gpointer data)
{
  Draws *d = data;
  size_t n_stages = (size_t) d->n_replicas * d->pace->n_stages, n = n_stages * d->pace->n_together;
  g_autofree double *steady = g_new (double, n), *x = g_new (double, n_stages);
  uint64_t state = stream_of (d->seed, cluster);
  for (size_t i = 0; i < n; i++)
    steady[i] = d->spread > 0 ? d->pace->clock * d->spread * ls_draw_normal (&state) : 0;
  d->steady[cluster] = draw_step (d, steady, 0, &state, x);
  d->hour[cluster] = ls_draw_uniform (&state);
  for (uint32_t i = 0; i < d->n_steps; i++)
    d->steps[(size_t) cluster * d->n_steps + i]
        = d->noise > 0 ? draw_step (d, steady, d->noise, &state, x) : d->steady[cluster];
}

/* --- what they are together -------------------------------------------------------------------- */

static double
mean_of (const double *values, size_t n)
{
  double sum = 0;
  for (size_t i = 0; i < n; i++)
    sum += values[i];
  return sum / (double) n;
}

/* Of a sample of two and more, from its mean. */
static double
deviation_of (const double *values, size_t n, double mean)
{
  double squares = 0;
  for (size_t i = 0; i < n; i++)
    squares += (values[i] - mean) * (values[i] - mean);
  return sqrt (squares / (double) (n - 1));
}

static double
quantile (const double *sorted, size_t n, double at)
{
  double place = at * (double) (n - 1);
  size_t below = (size_t) place;
  double rest = place - (double) below;
  return below + 1 < n ? sorted[below] * (1 - rest) + sorted[below + 1] * rest : sorted[below];
}

static void
summarise (const Draws *d, uint32_t n_clusters, LsSpreadRow *row)
{
  size_t n = (size_t) n_clusters * d->n_steps;
  double base = mean_of (d->steady, n_clusters);
  row->slowest = base - 1;
  row->noise = mean_of (d->steps, n) / base - 1;
  row->of_gpus = deviation_of (d->steady, n_clusters, base) / base;
  row->of_day = d->day / 2 * M_SQRT1_2;
  double squares = 0; /* of the deviation of the steps of a cluster, of all clusters */
  for (uint32_t i = 0; i < n_clusters; i++) {
    double *steps = d->steps + (size_t) i * d->n_steps;
    double one = d->noise > 0 ? deviation_of (steps, d->n_steps, mean_of (steps, d->n_steps)) : 0;
    squares += one * one / n_clusters;
    for (uint32_t k = 0; k < d->n_steps; k++) /* at equal distances over a day, so that it brings no mean */
      steps[k] *= 1 + d->day / 2 * sin (2 * G_PI * (d->hour[i] + (double) k / d->n_steps));
  }
  row->of_noise = sqrt (squares) / base;
  qsort (d->steps, n, sizeof *d->steps, ls_compare_doubles);
  row->low = quantile (d->steps, n, 0.05) / base;
  row->median = quantile (d->steps, n, 0.5) / base;
  row->high = quantile (d->steps, n, 0.95) / base;
  for (int i = 0; i < LS_SPREAD_N_QUANTILES; i++)
    row->quantile[i] = quantile (d->steps, n, (i + 0.5) / LS_SPREAD_N_QUANTILES) / base;
}

void
ls_spread_draw (const LsPace *pace, uint32_t n_replicas, double spread, double noise, double day,
                uint32_t seed, guint n_threads, LsSpreadRow *ret_row)
{
  uint32_t n_gpus = n_replicas * pace->n_stages * pace->n_together;
  uint32_t n_steps = (uint32_t) CLAMP (sqrt (MAX_DRAWS / MORE / n_gpus), MIN_STEPS, MAX_STEPS),
           n_clusters = MORE * n_steps;
  *ret_row = (LsSpreadRow) {
    .n_replicas = n_replicas, .n_gpus = n_gpus, .n_clusters = n_clusters, .n_steps = n_steps
  };
  g_autofree double *steady = g_new (double, n_clusters), *hour = g_new (double, n_clusters),
                    *steps = g_new (double, (size_t) n_clusters *n_steps);
  Draws d = { pace, n_replicas, n_steps, spread, noise, day, seed, steady, hour, steps };
  ls_parallel (n_clusters, n_threads, draw_cluster, &d, NULL);
  summarise (&d, n_clusters, ret_row);
}

/* --- of a job ------------------------------------------------------------------------------------- */

LsStepSpread *
ls_step_spread_new (const LsJobSpec *spec, const LsJobResult *r, const LsJitter *jitter, uint32_t seed,
                    guint n_threads, GError **error)
{
  if (!ls_hardware_check_alike (&r->cluster->spec, "--jitter", error))
    return NULL;
  g_autofree LsPace *pace = ls_pace_new (spec, r, n_threads, error);
  if (!pace)
    return NULL;
  LsStepSpread *s = g_new0 (LsStepSpread, 1);
  s->jitter = g_strdup (jitter->name);
  s->source = g_strdup (jitter->source);
  s->chip = ls_cluster_chip_word (&r->cluster->spec, 1);
  s->step_s = ls_job_result_step_time_s (r);
  s->alike_s = pace->step_s;
  s->spread = isnan (jitter->spread) ? r->cluster->spec.gpu.clock_spread : jitter->spread;
  s->noise = jitter->noise / sqrt (s->step_s);
  s->day = jitter->day;
  s->seed = seed;
  s->rows = g_array_new (FALSE, FALSE, sizeof (LsSpreadRow));
  for (uint64_t n = 1; n < (uint64_t) pace->n_replicas * REPLICAS_UP; n *= REPLICAS_UP) {
    LsSpreadRow row;
    ls_spread_draw (pace, (uint32_t) MIN (n, pace->n_replicas), s->spread, s->noise, s->day, seed, n_threads,
                    &row);
    g_array_append_val (s->rows, row);
  }
  double usual = r->cluster->spec.gpu.clock_spread;
  if (s->spread != usual) {
    LsSpreadRow row;
    ls_spread_draw (pace, pace->n_replicas, usual, 0, 0, seed, n_threads, &row);
    s->shift = (1 + ls_step_spread_of_job (s)->slowest) / (1 + row.slowest) - 1;
  }
  s->slack = s->alike_s * (1 + ls_step_spread_of_job (s)->slowest) / ls_step_spread_base_s (s) - 1;
  return s;
}

void
ls_step_spread_free (LsStepSpread *s)
{
  if (!s)
    return;
  g_free (s->jitter);
  g_free (s->source);
  g_array_unref (s->rows);
  g_free (s);
}

const LsSpreadRow *
ls_step_spread_of_job (const LsStepSpread *s)
{
  return &g_array_index (s->rows, LsSpreadRow, s->rows->len - 1);
}

void
ls_step_spread_assume (const LsStepSpread *s, GArray **assumptions)
{
  const LsSpreadRow *job = ls_step_spread_of_job (s);
  ls_assumptions_add (assumptions, "jitter_draws",
                      g_strdup_printf ("%u clusters, %u steps of each", job->n_clusters, job->n_steps),
                      "jitter of %s", "by the number of GPUs; others by the seed", "--jitter-seed N");
}

double
ls_step_spread_base_s (const LsStepSpread *s)
{
  return s->step_s * (1 + s->shift);
}
