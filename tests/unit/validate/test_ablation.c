/* Pins that each mechanism can be switched off and that nothing else goes with it: what is off
 * costs no time where it costs time, a job without the mechanism keeps its time, an ablation of
 * what is already off changes nothing, and the hardware that others share stays as it was.
 * Simulates the small job of tests/golden/data. */
#include "ls_test.h"

#include <string.h>

#include "data/jobs/job_files.h"
#include "job/job.h"
#include "validate/validate.h"

typedef struct {
  LsModel model;
  LsHardware *hardware;
  LsStrategy strategy;
  LsRunOptions options;
} Job;

/* The tiny model over two nodes of two GPUs. */
static void
job_init (Job *j, uint32_t n_gpus, uint32_t tp, uint32_t pp)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LS_CHECK (ls_model_load ("tiny", &j->model, NULL, diags));
  j->hardware = ls_hardware_load ("pair", diags);
  LS_CHECK (j->hardware != NULL);
  ls_strategy_init (&j->strategy);
  j->strategy.gpus = n_gpus;
  j->strategy.tp = tp;
  j->strategy.pp = pp;
  ls_run_options_init (&j->options);
  j->options.no_spans = true;
}

static void
job_clear (Job *j)
{
  ls_model_clear (&j->model);
  ls_hardware_free (j->hardware);
  ls_strategy_clear (&j->strategy);
}

static double
step_s (const Job *j)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (LsJobResult) r = ls_job_simulate (&j->model, j->hardware, 0, &j->strategy, &j->options, &error);
  LS_CHECK_NO_ERROR (error);
  return r ? ls_job_result_step_time_s (r) : 0;
}

static double
step_without_s (const Job *j, LsAblation ablation)
{
  LsAblated a;
  g_autoptr (GError) error = NULL;
  ls_ablated_init (&a, ablation, j->hardware, &j->strategy, &j->options);
  g_autoptr (LsJobResult) r = ls_job_simulate (&j->model, &a.hardware, 0, &a.strategy, &a.options, &error);
  LS_CHECK_NO_ERROR (error);
  ls_ablated_clear (&a);
  return r ? ls_job_result_step_time_s (r) : 0;
}

/* One GPU talks to nobody. The GPU of the tests is a roofline already. */
static void
what_a_job_does_not_use_is_worth_nothing (void)
{
  Job j;
  job_init (&j, 1, 1, 1);
  double whole = step_s (&j);
  static const LsAblation unused[] = {
    LS_ABLATE_CONTENTION, LS_ABLATE_SLOWDOWN, LS_ABLATE_GRAD_NORM, LS_ABLATE_P2P,
    LS_ABLATE_LATENCY,    LS_ABLATE_CLOCKS,   LS_ABLATE_TILES,
  };
  for (guint i = 0; i < G_N_ELEMENTS (unused); i++) {
    double without = step_without_s (&j, unused[i]);
    if (unused[i] == LS_ABLATE_GRAD_NORM) /* the norm itself is computed */
      LS_CHECK (without <= whole);
    else
      LS_CHECK (without == whole);
  }
  job_clear (&j);
}

static void
what_costs_time_is_gone (void)
{
  Job j;
  job_init (&j, 4, 2, 1);
  double whole = step_s (&j);
  LS_CHECK (step_without_s (&j, LS_ABLATE_LATENCY) < whole);
  LS_CHECK (step_without_s (&j, LS_ABLATE_HOST) <= whole);
  LS_CHECK (step_without_s (&j, LS_ABLATE_CONTENTION) <= whole);
  LS_CHECK (step_s (&j) == whole); /* the hardware is as it was */
  job_clear (&j);
}

/* A host that is the step: without it the step is what the kernels take. */
static void
a_slow_host_is_gone (void)
{
  Job j;
  job_init (&j, 1, 1, 1);
  double whole = step_without_s (&j, LS_ABLATE_HOST);
  j.options.host.cost[LS_HOST_LAUNCH] = LS_S;
  LS_CHECK (step_s (&j) > 10 * whole);
  LS_CHECK (step_without_s (&j, LS_ABLATE_HOST) == whole);
  job_clear (&j);
}

/* What the calibration of a real GPU says is gone, and put back nowhere. */
static void
calibrated_kernels_become_rooflines (void)
{
  Job j;
  job_init (&j, 1, 1, 1);
  LsCalibration *c = &j.hardware->calibration;
  double roofline = step_without_s (&j, LS_ABLATE_KERNELS);
  LsKindFit *gemm = &c->kind[LS_KERNEL_GEMM];
  *gemm = (LsKindFit) { .is_fitted = true,
                        .compute_efficiency = 0.5,
                        .memory_efficiency = 0.5,
                        .throttle = 0.2,
                        .tile_half = 50,
                        .wave_rounding = 1,
                        .launch = 3 * LS_US };
  c->sustained = 0.9;
  double whole = step_s (&j);
  LS_CHECK (step_without_s (&j, LS_ABLATE_CLOCKS) < whole);
  LS_CHECK (step_without_s (&j, LS_ABLATE_TILES) < whole);
  LS_CHECK (step_without_s (&j, LS_ABLATE_HBM) <= whole);
  LS_CHECK (step_without_s (&j, LS_ABLATE_KERNELS) == roofline);
  LS_CHECK (gemm->throttle == 0.2 && c->sustained == 0.9);
  job_clear (&j);
}

static void
p2p_of_1f1b_stays (void)
{
  Job j;
  LsAblated a;
  job_init (&j, 4, 1, 4);
  j.strategy.schedule = g_strdup ("1f1b");
  ls_ablated_init (&a, LS_ABLATE_P2P, j.hardware, &j.strategy, &j.options);
  LS_CHECK_INT (a.strategy.mp.p2p, ==, j.strategy.mp.p2p);
  ls_ablated_clear (&a);
  g_free (j.strategy.schedule);
  j.strategy.schedule = g_strdup ("zb-h1");
  ls_ablated_init (&a, LS_ABLATE_P2P, j.hardware, &j.strategy, &j.options);
  LS_CHECK_INT (a.strategy.mp.p2p, ==, LS_P2P_OVERLAPPED);
  ls_ablated_clear (&a);
  job_clear (&j);
}

static void
each_has_a_name (void)
{
  for (LsAblation a = 0; a < LS_N_ABLATIONS; a++)
    for (LsAblation b = 0; b < a; b++)
      LS_CHECK (strcmp (ls_ablations[a].key, ls_ablations[b].key) != 0
                && strcmp (ls_ablations[a].label, ls_ablations[b].label) != 0);
}

LS_TEST_SUITE_WITH (ls_test_golden_data, NULL, LS_TEST (what_a_job_does_not_use_is_worth_nothing),
                    LS_TEST (what_costs_time_is_gone), LS_TEST (a_slow_host_is_gone),
                    LS_TEST (calibrated_kernels_become_rooflines), LS_TEST (p2p_of_1f1b_stays),
                    LS_TEST (each_has_a_name))
