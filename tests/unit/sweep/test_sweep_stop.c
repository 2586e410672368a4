/* Pins how a sweep ends that is asked to: a simulation that takes long is left off in the middle, also its walks
 * through memory and what is confirmed. Small jobs of tests/golden/data with far too many micro-batches. */
#include "small_sweep.h"

#include <string.h>

#include <lockstep/error.h>

#define LATE_US (100 * 1000)
#define IN_TIME                                                                                              \
  (30 * G_USEC_PER_SEC) /* plans are checked here, on a machine that others use; in 0.1 s else */
#define LONG_JOB "model", "tiny", "gpus", "4", "tp", "2", "pp", "2", "zero", "0", "recompute", "none"

static gpointer
ask_later (gpointer stop)
{
  g_usleep (LATE_US);
  g_atomic_int_set ((gint *) stop, 1);
  return NULL;
}

/* By its user, and by its time. */
static void
a_simulation_in_flight_ends (void)
{
  for (int is_by_time = 0; is_by_time < 2; is_by_time++) {
    LsSweepSpec spec;
    gint stop = 0;
    SPEC_INIT (&spec, LONG_JOB, "global-batch", "50000", "threads", "2");
    spec.stop = is_by_time ? NULL : &stop;
    spec.time_limit = is_by_time ? LATE_US * LS_US : 0;
    gint64 start = g_get_monotonic_time ();
    GThread *asks = g_thread_new ("asks", ask_later, &stop);
    g_autoptr (LsSweepRun) x = run (&spec);
    LS_CHECK_INT (g_get_monotonic_time () - start, <, LATE_US + IN_TIME);
    g_thread_join (asks);
    LS_CHECK (x->report.is_interrupted);
    LS_CHECK_INT (x->report.best->len, ==, 0);
    LS_CHECK_INT (x->report.counts.simulated, ==, 0);
    ls_sweep_spec_clear (&spec);
  }
}

static LsJobResult *
prepared_job (const LsSweepRun *x)
{
  const Candidate *c = candidate_at (x, 0);
  LsPoint p;
  LsStrategy s;
  g_autoptr (GError) error = NULL;
  ls_space_point (&x->spec->space, c->index, &p);
  candidate_strategy (x, &p, &s, NULL);
  LsJobResult *job = ls_job_prepare_on (&x->model, x->hardware, candidate_cluster (x, &p), &s, &error);
  LS_CHECK_NO_ERROR (error);
  ls_strategy_clear (&s);
  return job;
}

/* In a thread that has been asked already a run ends with an error, and a walk through memory with nothing; in one
 * that listens to nobody, or has a grace left, neither does. */
static void
each_part_of_a_job_ends (void)
{
  static const struct {
    bool is_asked;
    gint64 grace_us;
    bool is_cut;
  } cases[] = { { false, 0, false }, { true, 0, true }, { true, 1000 * G_USEC_PER_SEC, false } };
  LsSweepSpec spec;
  SPEC_INIT (&spec, LONG_JOB, "global-batch", "4096");
  g_autoptr (LsSweepRun) x = run (&spec);
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    gint asked = cases[i].is_asked;
    LsStop stop = { .asked = &asked };
    g_autoptr (GError) error = NULL;
    g_autoptr (LsJobResult) job = prepared_job (x);
    ls_stop_begin (&stop, cases[i].grace_us);
    LsMemoryInput in = ls_job_result_memory_input (job, x->hardware, &x->options.memory);
    g_autoptr (LsMemory) memory = ls_memory_new (&in);
    g_autoptr (LsTimeline) t = ls_run (job->plan, job->cluster, &x->hardware->calibration, &x->hardware->nccl,
                                       &x->options, NULL, &error);
    ls_stop_begin (NULL, 0);
    LS_CHECK (!ls_stopped ());
    LS_CHECK (g_error_matches (error, LS_ERROR, LS_ERROR_STOPPED) == cases[i].is_cut);
    LS_CHECK ((t == NULL) == cases[i].is_cut);
    LS_CHECK (ls_memory_fullest (memory)->at_end[LS_MEM_ACTIVATIONS] == 0 || cases[i].is_cut);
  }
  ls_sweep_spec_clear (&spec);
}

static void
ask_at_once (double step_s, const char *what, gpointer stop)
{
  g_atomic_int_set ((gint *) stop, 1);
}

/* What ran before the end is told, though others were in flight. */
static void
what_was_found_is_told (void)
{
  LsSweepSpec spec;
  gint stop = 0;
  SPEC_INIT (&spec, LONG_JOB, "global-batch", "16,50000", "threads", "1");
  spec.stop = &stop;
  spec.progress = (LsProgress) { .best = ask_at_once, .best_data = &stop };
  g_autoptr (LsSweepRun) x = run (&spec);
  LS_CHECK (x->report.is_interrupted);
  if (LS_CHECK_INT (x->report.best->len, ==, 1))
    LS_CHECK_INT (g_array_index (x->report.best, LsSweepRow, 0).strategy.global_batch, ==, 16);
  ls_sweep_spec_clear (&spec);
}

LS_TEST_SUITE_WITH (ls_test_golden_data, NULL, LS_TEST (a_simulation_in_flight_ends),
                    LS_TEST (each_part_of_a_job_ends), LS_TEST (what_was_found_is_told))
