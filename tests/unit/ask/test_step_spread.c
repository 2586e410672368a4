/* Pins how steps vary: without spread and noise nothing does; a slow rank delays a job by its share of kernels;
 * the mean of a step is that of the largest of n normals; a pipeline follows drawn speeds of all its ranks as
 * a simulation of each rank does; published steps on many GPUs vary as those on a node say; threads change
 * nothing; what says the same in two ways is refused. */
#include "ls_test.h"

#include <math.h>
#include <string.h>

#include <lockstep/error.h>

#include "ask/step_spread.h"
#include "base/draw.h"

/* --- without a job: one stage, replicas of one GPU, kernels all of the step ----------------------- */

static LsPace *
plain_pace (uint32_t n_replicas)
{
  LsPace *p = g_malloc0 (sizeof *p + sizeof *p->alone);
  *p = (LsPace) { .n_stages = 1, .n_replicas = n_replicas, .n_together = 1, .step_s = 1, .clock = 1 };
  p->alone[0] = 1;
  return p;
}

static void
nothing_varies_of_itself (void)
{
  g_autofree LsPace *p = plain_pace (16);
  LsSpreadRow row;
  ls_spread_draw (p, 16, 0, 0, 0, 1, 1, &row);
  LS_CHECK (row.slowest == 0 && row.noise == 0 && row.low == 1 && row.median == 1 && row.high == 1);
  LS_CHECK (row.of_gpus == 0 && row.of_noise == 0 && row.of_day == 0 && row.n_gpus == 16);
}

/* Of n normals: Harter, Expected values of normal order statistics, Biometrika 48, 1961, table 1; 1,000 by the
 * integral of x n phi Phi^(n - 1). The standard deviation of the largest falls from 0.59 to 0.35. */
static void
steps_wait_for_the_largest_of_n (void)
{
  static const struct {
    uint32_t n;
    double mean, deviation;
  } cases[] = { { 1, 0, 1 },
                { 2, 0.56419, 0.82565 },
                { 10, 1.53875, 0.5868 },
                { 100, 2.50759, 0.429 },
                { 1000, 3.24144, 0.351 } };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree LsPace *p = plain_pace (cases[i].n);
    LsSpreadRow by_noise, by_gpus;
    ls_spread_draw (p, cases[i].n, 0, 0.01, 0, 1, 1, &by_noise);
    ls_spread_draw (p, cases[i].n, 0.01, 0, 0, 1, 1, &by_gpus);
    double steps = by_noise.n_clusters * by_noise.n_steps, clusters = by_gpus.n_clusters;
    double mean = 0.01 * cases[i].mean, deviation = 0.01 * cases[i].deviation;
    LS_CHECK (fabs (by_noise.noise - mean) < 4 * deviation / sqrt (steps));
    LS_CHECK (fabs (by_gpus.slowest - mean) < 4 * deviation / sqrt (clusters));
    LS_CHECK_NEAR (by_noise.of_noise, deviation, 0.1);
    LS_CHECK (by_noise.of_gpus == 0 && by_gpus.of_noise == 0 && by_gpus.noise < 1e-12);
  }
}

/* A sine at equal distances: 5 % of it are below sin (-0.45 pi). */
static void
a_day_swings (void)
{
  g_autofree LsPace *p = plain_pace (4);
  LsSpreadRow row;
  ls_spread_draw (p, 4, 0, 0, 0.02, 1, 1, &row);
  LS_CHECK_NEAR (row.low, 1 - 0.01 * sin (0.45 * G_PI), 1e-4);
  LS_CHECK_NEAR (row.high, 1 + 0.01 * sin (0.45 * G_PI), 1e-4);
  LS_CHECK_NEAR (row.median, 1, 1e-4);
  LS_CHECK (row.noise == 0);
}

/* Two stages of 0.5, of which 0.1 each beside the slowest: worked by hand. */
static void
a_pipeline_follows_its_slowest_stage (void)
{
  g_autofree LsPace *p = g_malloc0 (sizeof *p + 2 * sizeof *p->alone);
  *p = (LsPace) { .n_stages = 2, .n_replicas = 2, .n_together = 1, .step_s = 1, .clock = 1, .beside = 0.1 };
  p->alone[0] = p->alone[1] = 0.5;
  static const double x[2][2] = { { 0.04, 0.01 }, { 0.02, 0.03 } };
  for (int meets = 0; meets < 2; meets++) {
    p->meets_each_layer = meets;
    LS_CHECK_NEAR (ls_pace_step (p, x[0], 2), 0.4 * 0.04 + 0.1 * (0.04 + (meets ? 0.03 : 0.01)), 1e-12);
  }
}

static void
threads_change_nothing (void)
{
  g_autofree LsPace *p = plain_pace (32);
  LsSpreadRow one, four, other;
  ls_spread_draw (p, 32, 0.01, 0.02, 0.01, 7, 1, &one);
  ls_spread_draw (p, 32, 0.01, 0.02, 0.01, 7, 4, &four);
  ls_spread_draw (p, 32, 0.01, 0.02, 0.01, 8, 1, &other);
  LS_CHECK (memcmp (&one, &four, sizeof one) == 0 && memcmp (&one, &other, sizeof one) != 0);
}

/* --- published steps that topologies/jitter does not rest on ------------------------------------------- */

/* Half of what the middle half of the steps spans, over 0.674. */
static double
middle_spread (const LsSpreadRow *row)
{
  double low = 0.75 * row->quantile[5] + 0.25 * row->quantile[4],
         high = 0.75 * row->quantile[15] + 0.25 * row->quantile[16];
  return (high - low) / 1.349;
}

static double
spread_of_steps (uint32_t n, double seconds, double noise)
{
  g_autofree LsPace *p = plain_pace (n);
  LsSpreadRow row;
  ls_spread_draw (p, n, 0, noise / sqrt (seconds), 0, 1, 1, &row);
  return middle_spread (&row);
}

/* MLPerf Training v5.1, Llama 3.1 8B, times of each step (mlcommons/training_results_v5.1@441d65f): the first ten of
 * a run left out, all runs of a submission over their medians. alone: noise of the same machine's steps on one node,
 * 0: it submitted none. Not those of two systems whose steps wait for something else (Dell on 2 nodes, Cisco). */
static void
noise_falls_with_length_and_number (void)
{
  static const struct {
    const char *system;
    uint32_t n;
    double seconds, spread, alone;
  } rows[] = {
    { "HPE, H200", 64, 0.353, 0.00337, 0 },
    { "Lambda, GB300", 72, 0.161, 0.00874, 0 },
    { "NVIDIA theia, GB300", 72, 0.148, 0.00335, 0.00252 },
    { "NVIDIA theia, GB300", 512, 0.085, 0.00313, 0.00252 },
    { "NVIDIA tyche, GB200", 72, 0.171, 0.00724, 0.00500 },
    { "NVIDIA tyche, GB200", 512, 0.089, 0.00265, 0.00500 },
    { "Nebius, B200", 16, 0.496, 0.00689, 0.01025 },
    { "Nebius, B200", 32, 0.268, 0.00888, 0.01025 },
    { "Oracle, B200", 64, 0.190, 0.00814, 0.00644 },
    { "University of Florida, B200", 16, 0.575, 0.00922, 0.00987 },
    { "University of Florida, B200", 32, 0.189, 0.01199, 0.00987 },
    { "University of Florida, B200", 64, 0.190, 0.01011, 0.00987 },
    { "University of Florida, B200", 128, 0.193, 0.00968, 0.00987 },
    { "University of Florida, B200", 256, 0.221, 0.00837, 0.00987 },
    { "Verda, B200", 64, 0.191, 0.00918, 0 },
  };
  double off = 0, off_alone = 0;
  int n_alone = 0;
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    double usual = spread_of_steps (rows[i].n, rows[i].seconds, 0.0054);
    double own = rows[i].alone > 0 ? spread_of_steps (rows[i].n, rows[i].seconds, rows[i].alone) : NAN;
    printf ("# %s on %u: %.2f %% measured, %.2f %%, by its noise on a node %.2f %%\n", rows[i].system,
            rows[i].n, 100 * rows[i].spread, 100 * usual, 100 * own);
    off += fabs (log (usual / rows[i].spread));
    off_alone += rows[i].alone > 0 ? fabs (log (own / rows[i].spread)) : 0;
    n_alone += rows[i].alone > 0;
  }
  printf ("# a factor of %.2f off in the mean; by noise on a node %.2f\n", exp (off / G_N_ELEMENTS (rows)),
          exp (off_alone / n_alone));
  LS_CHECK (exp (off / G_N_ELEMENTS (rows)) < 1.8 && exp (off_alone / n_alone) < 1.25);
}

/* --- of jobs ------------------------------------------------------------------------------------------- */

static void
set (LsJobSpec *spec, const char *key, const char *value)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LS_CHECK (ls_job_spec_set (spec, key, value, diags));
}

typedef struct {
  LsJobSpec spec;
  LsJobResult *r;
  LsPace *pace;
} Case;

/* text: "key value ..." */
static void
case_init (Case *c, const char *text)
{
  g_autoptr (GError) error = NULL;
  g_auto (GStrv) words = g_strsplit (text, " ", -1);
  ls_job_spec_init (&c->spec);
  for (char **word = words; *word; word += 2)
    set (&c->spec, word[0], word[1]);
  c->r = ls_job_spec_run (&c->spec, &error);
  LS_CHECK_NO_ERROR (error);
  c->pace = ls_pace_new (&c->spec, c->r, 1, &error);
  LS_CHECK_NO_ERROR (error);
}

static void
case_clear (Case *c)
{
  g_free (c->pace);
  ls_job_result_free (c->r);
  ls_job_spec_clear (&c->spec);
}

/* Each rank simulated with x of its own, over all alike, less 1. */
static double
simulated (const Case *c, const double *x)
{
  g_autoptr (GError) error = NULL;
  uint32_t n = c->r->plan->n_ranks;
  g_autofree double *slow = g_new (double, n);
  for (uint32_t i = 0; i < n; i++)
    slow[i] = 1 + x[i];
  LsRunOptions options = ls_job_spec_options (&c->spec);
  LsHardware h;
  ls_hardware_host (c->r->hardware, &c->r->strategy, &options.host);
  options.no_spans = true;
  options.slow = slow;
  ls_hardware_for_job (c->r->hardware, &c->r->strategy, 1, &h);
  g_autoptr (LsTimeline) t
      = ls_run (c->r->plan, c->r->cluster, &h.calibration, &h.nccl, &options, NULL, &error);
  LS_CHECK_NO_ERROR (error);
  return t ? ls_time_to_s (t->window_end - t->window_start) / c->pace->step_s - 1 : NAN;
}

/* The same by the pace. */
static double
composed (const Case *c, const double *x)
{
  const LsPace *p = c->pace;
  g_autofree double *slowest = g_new (double, p->n_replicas * p->n_stages);
  for (uint32_t g = 0; g < p->n_replicas; g++)
    for (uint32_t s = 0; s < p->n_stages; s++) {
      double *at = &slowest[g * p->n_stages + s];
      *at = -INFINITY;
      for (uint32_t i = 0; i < p->n_together; i++)
        *at = fmax (*at, x[(s * p->n_replicas + g) * p->n_together + i]);
    }
  return ls_pace_step (p, slowest, p->n_replicas);
}

/* What it takes longer for drawn speeds, simulated and composed: mean of both, and of their difference's size, in
 * parts of the step. */
static void
compare (const Case *c, double sigma, double *ret_simulated, double *ret_error, double *ret_bias)
{
  enum { N_DRAWS = 5 };
  uint32_t n = c->r->plan->n_ranks;
  g_autofree double *x = g_new (double, n);
  uint64_t state = 42;
  *ret_simulated = *ret_error = *ret_bias = 0;
  for (int draw = 0; draw < N_DRAWS; draw++) {
    for (uint32_t i = 0; i < n; i++)
      x[i] = sigma * ls_draw_normal (&state);
    double full = simulated (c, x), fast = composed (c, x);
    *ret_simulated += full / N_DRAWS;
    *ret_error += fabs (fast - full) / N_DRAWS;
    *ret_bias += (fast - full) / N_DRAWS;
  }
}

/* The extra time is met within a tenth of itself, or of what all ranks slower by a deviation would take. */
static void
speeds_of_all_ranks_are_followed (void)
{
  static const char *const jobs[] = {
    "model gpt-1.7b cluster dgx-a100-80g nodes 4 global-batch 64",
    "model gpt-1.7b cluster dgx-a100-80g nodes 4 global-batch 32 dp-kind fsdp2",
    "model gpt-1.7b cluster dgx-a100-80g nodes 4 tp 4 global-batch 32",
    "model gpt-1.7b cluster dgx-a100-80g nodes 4 tp 2 pp 4 global-batch 32",
    "model gpt-1.7b cluster dgx-a100-80g nodes 8 tp 2 pp 4 global-batch 128",
    "model gpt-1.7b cluster dgx-a100-80g nodes 8 tp 1 pp 8 global-batch 64",
    "model gpt-1.7b cluster dgx-a100-80g nodes 4 pp 8 schedule zb-h1 global-batch 64",
    "model mixtral-8x7b cluster dgx-h100 nodes 4 pp 4 ep 8 global-batch 32",
    "model gpt-1.7b cluster dgx-a100-80g nodes 4 pp 4 vpp 2 schedule interleaved-1f1b global-batch 64",
  };
  for (guint i = 0; i < G_N_ELEMENTS (jobs); i++) {
    Case c;
    double full, error, bias;
    case_init (&c, jobs[i]);
    compare (&c, 0.015, &full, &error, &bias);
    printf ("# %s: simulated %+.3f %%, error %.3f %%, bias %+.3f %%; c %.3f d %.4f m %.3f\n", jobs[i],
            100 * full, 100 * error, 100 * bias, c.pace->alone[0], c.pace->beside, c.pace->clock);
    LS_CHECK (error < 0.1 * fmax (full, 0.015));
    case_clear (&c);
  }
}

/* The ranks of a stage are those of the mesh: on one node, where all are as near to each other, stages have the same
 * pace in any order of ranks. */
static void
stages_are_found_in_any_order_of_ranks (void)
{
  Case usual, other;
  case_init (&usual, "model gpt-1.7b cluster dgx-a100-80g nodes 1 pp 4 global-batch 32");
  case_init (&other, "model gpt-1.7b cluster dgx-a100-80g nodes 1 pp 4 global-batch 32 rank-order pp-dp");
  printf ("# stages of pp 4: %.4f %.4f, by pp-dp %.4f %.4f\n", usual.pace->alone[0], usual.pace->alone[1],
          other.pace->alone[0], other.pace->alone[1]);
  for (int stage = 0; stage < 4; stage++)
    LS_CHECK_NEAR (other.pace->alone[stage], usual.pace->alone[stage], 0.01);
  LS_CHECK_NEAR (other.pace->beside, usual.pace->beside, 0.02);
  case_clear (&usual);
  case_clear (&other);
}

/* The mean without noise is the predicted step, whatever the file of the GPU says of its spread; another spread moves
 * it by as much as it moves what was drawn. */
static void
the_slowest_is_not_counted_twice (void)
{
  Case c;
  case_init (&c, "model gpt-1.7b cluster dgx-a100-80g nodes 2 tp 2 global-batch 16");
  double usual = c.r->cluster->spec.gpu.clock_spread, step_s = ls_job_result_step_time_s (c.r);
  LsJitter jitter = { .name = (char *) "lab", .source = (char *) "a test", .spread = NAN };
  g_autoptr (LsStepSpread) as_file = ls_step_spread_new (&c.spec, c.r, &jitter, 1, 1, NULL);
  jitter.spread = 2 * usual;
  g_autoptr (LsStepSpread) twice = ls_step_spread_new (&c.spec, c.r, &jitter, 1, 1, NULL);
  jitter.spread = 0;
  jitter.noise = 0.01;
  g_autoptr (LsStepSpread) none = ls_step_spread_new (&c.spec, c.r, &jitter, 1, 1, NULL);
  LS_CHECK (usual > 0 && as_file->shift == 0 && ls_step_spread_base_s (as_file) == step_s);
  LS_CHECK_NEAR (twice->shift, ls_step_spread_of_job (as_file)->slowest, 0.05);
  LS_CHECK_NEAR (none->shift, -ls_step_spread_of_job (as_file)->slowest, 0.05);
  LS_CHECK_NEAR (none->noise, 0.01 / sqrt (step_s), 1e-12);
  LS_CHECK_NEAR (ls_step_spread_base_s (none), none->alike_s, 2e-3);
  LS_CHECK (fabs (as_file->slack) < 2e-3); /* no pipeline: all wait for the slowest */
  case_clear (&c);
}

/* Of GPUs that are all alike the step is that of the job, to the picosecond; and one slow rank of a synchronous job
 * makes it as much longer as all would, which is its kernels' share. */
static void
one_slow_rank_delays_all (void)
{
  Case c;
  case_init (&c, "model gpt-1.7b cluster dgx-a100-80g:gpu.clock_spread=0 nodes 2 global-batch 16");
  double x[16] = { 0 }, share = c.pace->alone[0];
  LS_CHECK (c.pace->step_s == ls_job_result_step_time_s (c.r) && simulated (&c, x) == 0);
  x[5] = 0.03;
  double slower = simulated (&c, x);
  printf ("# one rank of 16 that is 3 %% slower: %.4f %% longer, share %.4f\n", 100 * slower, share);
  LS_CHECK_NEAR (composed (&c, x), 0.03 * share, 1e-12);
  LS_CHECK_NEAR (slower, 0.03 * share, 2e-3);
  LS_CHECK (share > 0.9 && share < 1);
  case_clear (&c);
}

static void
what_has_speeds_already_is_refused (void)
{
  Case c;
  g_autoptr (GError) error = NULL;
  case_init (&c, "model gpt-1.7b cluster dgx-a100-80g gpus 2 global-batch 2");
  set (&c.spec, "slow", "rank=1:1.1");
  LS_CHECK (ls_pace_new (&c.spec, c.r, 1, &error) == NULL
            && g_error_matches (error, LS_ERROR, LS_ERROR_CONFLICT));
  case_clear (&c);
}

LS_TEST_SUITE (LS_TEST (nothing_varies_of_itself), LS_TEST (steps_wait_for_the_largest_of_n),
               LS_TEST (a_day_swings), LS_TEST (a_pipeline_follows_its_slowest_stage),
               LS_TEST (threads_change_nothing), LS_TEST (noise_falls_with_length_and_number),
               LS_TEST (the_slowest_is_not_counted_twice), LS_TEST (what_has_speeds_already_is_refused),
               LS_TEST (one_slow_rank_delays_all), LS_TEST (speeds_of_all_ranks_are_followed),
               LS_TEST (stages_are_found_in_any_order_of_ranks))
