/* Pins a training run with failures: closed forms without failures and with exponential ones, runs by hand of
 * each effect, that all time is accounted for, that a seed says everything, that the best interval is best. */
#include "ls_test.h"

#include <math.h>

#include "train/run_history.h"

/* --- runs to be made ------------------------------------------------------------------- */

typedef struct {
  LsReliability reliability;
  LsRunPhase phases[2];
  LsRunPlan plan;
} Case;

/* 1,000 steps of 2.5 s, a checkpoint of 7 s behind each hundred, and nothing that fails. */
static Case *
case_new (void)
{
  Case *c = g_new0 (Case, 1);
  c->reliability.causes = g_array_new (FALSE, FALSE, sizeof (LsFailureCause));
  c->phases[0] = (LsRunPhase) { 1000, 2.5, 100 };
  c->plan = (LsRunPlan) {
    .phases = c->phases,
    .n_phases = 1,
    .checkpoint = { .save_s = 7 },
    .reliability = &c->reliability,
    .units = { { 16, 2, 16, 1 } },
    .spares = LS_SPARES_ANY,
    .n_replicas = 2,
    .nodes_per_replica = 1,
  };
  return c;
}

static void
case_free (Case *c)
{
  ls_reliability_clear (&c->reliability);
  g_free (c);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC (Case, case_free)

/* So many a day of the job, noticed after detect_s. */
static LsFailureCause *
add_cause (Case *c, LsFailureEffect effect, double per_day, double detect_s)
{
  LsFailureCause cause = { .name = g_strdup ("cause"),
                           .unit = LS_FAILS_JOB,
                           .effect = effect,
                           .per_day = per_day,
                           .detect = ls_time_from_s (detect_s),
                           .repair = ls_time_from_s (1000),
                           .factor = effect == LS_FAILURE_SLOW ? 2 : 1 };
  g_array_append_val (c->reliability.causes, cause);
  return &g_array_index (c->reliability.causes, LsFailureCause, c->reliability.causes->len - 1);
}

static double
lost_in_all (const LsRunHistory *h)
{
  double sum = 0;
  for (int k = 0; k < LS_N_LOST; k++)
    sum += h->lost_s[k];
  return sum;
}

/* When the first failure of a seed comes: the first number drawn, at the rate of all causes. */
static double
first_failure_s (const Case *c, uint32_t seed)
{
  double rate = 0;
  for (guint i = 0; i < c->reliability.causes->len; i++)
    rate += g_array_index (c->reliability.causes, LsFailureCause, i).per_day / 86400;
  g_autoptr (GRand) rand = g_rand_new_with_seed (seed);
  return -log (1 - g_rand_double (rand)) / rate;
}

/* A seed with one failure within the run, and the next far behind its end: a wait, a cause, a wait are drawn. */
static uint32_t
seed_of_one (const Case *c, double run_s)
{
  for (uint32_t seed = 1;; seed++) {
    g_autoptr (GRand) rand = g_rand_new_with_seed (seed);
    double first = first_failure_s (c, seed), drawn = log (1 - g_rand_double (rand));
    g_rand_double (rand);
    double next = first * log (1 - g_rand_double (rand)) / drawn;
    if (first > 0.2 * run_s && first < 0.8 * run_s && next > 3 * run_s)
      return seed;
  }
}

/* --- closed forms ---------------------------------------------------------------------- */

static void
without_failures_steps_and_checkpoints_add_up (void)
{
  g_autoptr (Case) c = case_new ();
  LsRunHistory h;
  ls_run_history_init (&h, &c->plan, 1);
  LS_CHECK (h.is_finished && fabs (h.wall_s / (2500 + 10 * 7) - 1) < 1e-9);
  LS_CHECK (fabs (h.useful_s - 2500) < 1e-9 * 2500);
  LS_CHECK (fabs (h.lost_s[LS_LOST_CHECKPOINT] - 70) < 1e-6 && h.n_stops == 0);
  ls_run_history_clear (&h);

  c->plan.checkpoint.save_s = 0;
  ls_run_history_init (&h, &c->plan, 1);
  LS_CHECK (fabs (h.wall_s / 2500 - 1) < 1e-9);
  ls_run_history_clear (&h);

  /* Two phases; the last checkpoint of each is behind its last step: 3 and 2. */
  c->phases[0] = (LsRunPhase) { 250, 2.5, 100 };
  c->phases[1] = (LsRunPhase) { 60, 4, 40 };
  c->plan.n_phases = 2;
  c->plan.checkpoint.save_s = 7;
  ls_run_history_init (&h, &c->plan, 1);
  LS_CHECK (fabs (h.wall_s / (250 * 2.5 + 60 * 4 + 5 * 7) - 1) < 1e-9);
  ls_run_history_clear (&h);
}

/* Steps that are longer than predicted in the mean: by that part, of each phase, in an account of its own; and what
 * slows them besides is of the longer step. */
static void
steps_that_vary_take_their_mean (void)
{
  g_autoptr (Case) c = case_new ();
  LsRunHistory h;
  c->phases[0] = (LsRunPhase) { 250, 2.5, 100, 0.04 };
  c->phases[1] = (LsRunPhase) { 60, 4, 40, 0.01 };
  c->plan.n_phases = 2;
  c->plan.checkpoint.save_s = 7;
  ls_run_history_init (&h, &c->plan, 1);
  double more = 250 * 2.5 * 0.04 + 60 * 4 * 0.01;
  LS_CHECK (fabs (h.wall_s / (250 * 2.5 + 60 * 4 + more + 5 * 7) - 1) < 1e-9);
  LS_CHECK (fabs (h.useful_s - (250 * 2.5 + 60 * 4)) < 1e-6);
  LS_CHECK (fabs (h.lost_s[LS_LOST_VARIATION] - more) < 1e-6);
  ls_run_history_clear (&h);
}

/* Storage that takes longer than the work in between: each checkpoint but the first waits for the one before. */
static void
slow_storage_holds_the_job_up (void)
{
  g_autoptr (Case) c = case_new ();
  c->plan.checkpoint.write_s = 400;
  LsRunHistory h;
  ls_run_history_init (&h, &c->plan, 1);
  LS_CHECK (fabs (h.wall_s - (250 + 9 * 400 + 10 * 7)) < 1e-6);
  ls_run_history_clear (&h);
  c->plan.checkpoint.write_s = 200; /* is done before the next */
  ls_run_history_init (&h, &c->plan, 1);
  LS_CHECK (fabs (h.wall_s - (2500 + 10 * 7)) < 1e-6);
  ls_run_history_clear (&h);
}

/* Daly's exact expectation: pieces of t + C, restarts of R in which the next failure may come. */
static void
exponential_failures_take_what_is_expected (void)
{
  g_autoptr (Case) c = case_new ();
  add_cause (c, LS_FAILURE_RESTART, 86400 / 700.0, 60);
  c->reliability.initialise = ls_time_from_s (30);
  c->plan.checkpoint.read_s = 10;
  enum { N = 2000 };
  double sum = 0, squares = 0;
  for (uint32_t seed = 1; seed <= N; seed++) {
    LsRunHistory h;
    ls_run_history_init (&h, &c->plan, seed);
    sum += h.wall_s;
    squares += h.wall_s * h.wall_s;
    ls_run_history_clear (&h);
  }
  double mean = sum / N, error = sqrt ((squares / N - mean * mean) / N);
  double expected = 10 * ls_expected_piece_s (250, 7, 100, 700);
  if (!LS_CHECK (fabs (mean - expected) < 4 * error && error < 0.01 * expected))
    g_printerr ("# %g +- %g s, expected %g s\n", mean, error, expected);
}

/* --- by hand --------------------------------------------------------------------------- */

/* One failure at t: all since the last checkpoint is done again, and the stop is added. */
static void
a_failure_costs_the_stop_and_what_was_not_saved (void)
{
  g_autoptr (Case) c = case_new ();
  LsFailureCause *cause = add_cause (c, LS_FAILURE_REPLACE, 86400 / 5000.0, 60);
  cause->locate = ls_time_from_s (40);
  c->reliability.initialise = ls_time_from_s (30);
  c->plan.checkpoint.read_s = 10;
  uint32_t seed = seed_of_one (c, 2570);
  double at = first_failure_s (c, seed), since = fmod (at, 257);
  LsRunHistory h;
  ls_run_history_init (&h, &c->plan, seed);
  LS_CHECK (h.n_stops == 1 && h.causes[0].n == 1);
  LS_CHECK (fabs (h.wall_s - (2570 + 140 + since)) < 1e-5);
  LS_CHECK (fabs (h.lost_s[LS_LOST_DETECTION] - 100) < 1e-5 && fabs (h.lost_s[LS_LOST_RESTART] - 40) < 1e-5);
  LS_CHECK (fabs (h.lost_s[LS_LOST_REWORK] - fmin (since, 250)) < 1e-5);
  LS_CHECK (fabs (h.causes[0].lost_s - 140 - h.lost_s[LS_LOST_REWORK]) < 1e-5);
  ls_run_history_clear (&h);

  /* Without a spare it waits for the repair of 1,000 s; with one it does not; elastic, it is half as fast. */
  c->plan.spares = 0;
  ls_run_history_init (&h, &c->plan, seed);
  LS_CHECK (fabs (h.lost_s[LS_LOST_WAITING] - 1000) < 1e-4);
  ls_run_history_clear (&h);
  c->plan.spares = 1;
  ls_run_history_init (&h, &c->plan, seed);
  LS_CHECK (fabs (h.wall_s - (2570 + 140 + since)) < 1e-5);
  ls_run_history_clear (&h);
  c->plan.spares = 0;
  c->plan.is_elastic = true;
  cause->repair = ls_time_from_s (1e6); /* behind the end */
  ls_run_history_init (&h, &c->plan, seed);
  double left = 2500 - floor (at / 257) * 250;
  LS_CHECK (fabs (h.lost_s[LS_LOST_SMALLER] - left) < 1e-4 && h.lost_s[LS_LOST_WAITING] == 0);
  ls_run_history_clear (&h);
}

static void
a_planned_stop_loses_no_work (void)
{
  g_autoptr (Case) c = case_new ();
  add_cause (c, LS_FAILURE_PLANNED, 86400 / 5000.0, 0);
  c->reliability.initialise = ls_time_from_s (30);
  uint32_t seed = seed_of_one (c, 2570);
  LsRunHistory h;
  ls_run_history_init (&h, &c->plan, seed);
  bool is_in_save = fmod (first_failure_s (c, seed), 257) >= 250;
  LS_CHECK (h.lost_s[LS_LOST_REWORK] == 0 && fabs (h.lost_s[LS_LOST_RESTART] - 30) < 1e-5);
  LS_CHECK (fabs (h.lost_s[LS_LOST_CHECKPOINT] - (is_in_save ? 70 : 77)) < 1e-5);
  ls_run_history_clear (&h);
}

static void
a_stall_waits_and_a_slow_node_slows (void)
{
  g_autoptr (Case) stall = case_new ();
  add_cause (stall, LS_FAILURE_STALL, 86400 / 5000.0, 55);
  stall->plan.checkpoint.save_s = 0;
  uint32_t seed = seed_of_one (stall, 2500);
  LsRunHistory h;
  ls_run_history_init (&h, &stall->plan, seed);
  LS_CHECK (fabs (h.wall_s - 2555) < 1e-5 && fabs (h.lost_s[LS_LOST_STALL] - 55) < 1e-5 && h.n_stops == 0);
  ls_run_history_clear (&h);

  g_autoptr (Case) slow = case_new (); /* at half the speed from t on, and not found */
  add_cause (slow, LS_FAILURE_SLOW, 86400 / 5000.0, 1e6);
  slow->plan.checkpoint.save_s = 0;
  ls_run_history_init (&h, &slow->plan, seed);
  double at = first_failure_s (slow, seed);
  LS_CHECK (fabs (h.wall_s - (at + 2 * (2500 - at))) < 1e-4);
  LS_CHECK (fabs (h.lost_s[LS_LOST_SLOW] - (2500 - at)) < 1e-4);
  ls_run_history_clear (&h);

  slow->phases[0].longer = 0.04; /* twice as long as that, from t on */
  ls_run_history_init (&h, &slow->plan, seed);
  double done = at / 1.04;
  LS_CHECK (fabs (h.wall_s - (at + 2 * 1.04 * (2500 - done))) < 1e-4);
  LS_CHECK (fabs (h.lost_s[LS_LOST_SLOW] - 1.04 * (2500 - done)) < 1e-4);
  LS_CHECK (fabs (h.lost_s[LS_LOST_VARIATION] - 0.04 * 2500) < 1e-4);
  ls_run_history_clear (&h);
}

/* It is noticed 600 s later: two or three checkpoints are no use. */
static void
wrong_numbers_cost_all_behind_them (void)
{
  g_autoptr (Case) c = case_new ();
  add_cause (c, LS_FAILURE_CORRUPT, 86400 / 5000.0, 600);
  c->plan.checkpoint.save_s = 0;
  uint32_t seed = seed_of_one (c, 2500);
  double at = first_failure_s (c, seed);
  LsRunHistory h;
  ls_run_history_init (&h, &c->plan, seed);
  LS_CHECK (fabs (h.lost_s[LS_LOST_REWORK] - (600 + fmod (at, 250))) < 1e-4);
  ls_run_history_clear (&h);
}

/* On the drives of a node, and each third on storage: a node that fails takes the other two with it. */
static void
what_is_on_a_node_is_lost_with_it (void)
{
  g_autoptr (Case) c = case_new ();
  LsFailureCause *cause = add_cause (c, LS_FAILURE_REPLACE, 86400 / 5000.0, 60);
  c->plan.checkpoint
      = (LsCheckpointTimes) { .is_on_node = true, .storage_every = 3, .storage_read_s = 90, .read_s = 5 };
  uint32_t seed = seed_of_one (c, 2500);
  double at = first_failure_s (c, seed);
  LsRunHistory h;
  ls_run_history_init (&h, &c->plan, seed);
  LS_CHECK (fabs (h.lost_s[LS_LOST_REWORK] - fmod (at, 750)) < 1e-4);
  LS_CHECK (fabs (h.lost_s[LS_LOST_RESTART] - (at < 750 ? 5 : 90)) < 1e-4);
  ls_run_history_clear (&h);
  cause->effect = LS_FAILURE_RESTART;
  ls_run_history_init (&h, &c->plan, seed);
  LS_CHECK (fabs (h.lost_s[LS_LOST_REWORK] - fmod (at, 250)) < 1e-4);
  LS_CHECK (fabs (h.lost_s[LS_LOST_RESTART] - 5) < 1e-4);
  ls_run_history_clear (&h);
}

/* A checkpoint is no use before it is written: a failure goes back to the one before, a planned stop waits. */
static void
what_is_being_written_cannot_be_read (void)
{
  g_autoptr (Case) c = case_new ();
  LsFailureCause *cause = add_cause (c, LS_FAILURE_RESTART, 86400 / 5000.0, 0);
  c->plan.checkpoint = (LsCheckpointTimes) { .write_s = 249.9 };
  uint32_t seed = seed_of_one (c, 2500);
  LsRunHistory h;
  ls_run_history_init (&h, &c->plan, seed);
  LS_CHECK (fabs (h.lost_s[LS_LOST_REWORK] - (250 + fmod (first_failure_s (c, seed), 250))) < 1e-4);
  ls_run_history_clear (&h);
  cause->effect = LS_FAILURE_PLANNED;
  c->reliability.initialise = ls_time_from_s (30);
  c->plan.checkpoint.write_s = 200;
  ls_run_history_init (&h, &c->plan, seed);
  double left = fmax (200 - fmod (first_failure_s (c, seed), 250), 0); /* of the one before */
  LS_CHECK (fabs (h.lost_s[LS_LOST_RESTART] - 200) < 1e-4
            && fabs (h.lost_s[LS_LOST_CHECKPOINT] - left) < 1e-4);
  ls_run_history_clear (&h);
}

/* --- properties ------------------------------------------------------------------------ */

static void
draw_case (GRand *rand, Case *c)
{
  guint n = (guint) g_rand_int_range (rand, 1, 5);
  for (guint i = 0; i < n; i++) {
    LsFailureCause *cause
        = add_cause (c, (LsFailureEffect) g_rand_int_range (rand, 0, 6),
                     86400 / g_rand_double_range (rand, 300, 1e4), g_rand_double_range (rand, 0, 300));
    cause->locate = ls_time_from_s (g_rand_double_range (rand, 0, 100));
    cause->repair = ls_time_from_s (g_rand_double_range (rand, 0, 5000));
  }
  c->phases[0]
      = (LsRunPhase) { (uint64_t) g_rand_int_range (rand, 1, 2000), g_rand_double_range (rand, 0.01, 5),
                       (uint64_t) g_rand_int_range (rand, 1, 300) };
  c->phases[1]
      = (LsRunPhase) { (uint64_t) g_rand_int_range (rand, 1, 500), g_rand_double_range (rand, 0.01, 5),
                       (uint64_t) g_rand_int_range (rand, 1, 300) };
  c->plan.n_phases = (guint) g_rand_int_range (rand, 1, 3);
  c->plan.checkpoint
      = (LsCheckpointTimes) { g_rand_double_range (rand, 0, 20),        g_rand_double_range (rand, 0, 100),
                              g_rand_double_range (rand, 0, 20),        g_rand_boolean (rand),
                              (uint32_t) g_rand_int_range (rand, 0, 4), g_rand_double_range (rand, 0, 100),
                              g_rand_double_range (rand, 0, 20) };
  c->plan.spares = g_rand_boolean (rand) ? LS_SPARES_ANY : (uint32_t) g_rand_int_range (rand, 0, 4);
  c->plan.is_elastic = g_rand_boolean (rand);
  c->plan.end_s = g_rand_boolean (rand) ? 5000 : 50000;
}

/* Of 500 runs of all kinds: time that counted and time that was lost are all the time there was; what causes lost
 * is a part of it; the same seed is the same run. */
static void
every_second_is_accounted_for (void)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (25);
  for (uint32_t i = 0; i < 500; i++) {
    g_autoptr (Case) c = case_new ();
    draw_case (rand, c);
    LsRunHistory h, again;
    ls_run_history_init (&h, &c->plan, i);
    ls_run_history_init (&again, &c->plan, i);
    double sum = h.useful_s + lost_in_all (&h);
    if (!LS_CHECK (fabs (sum - h.wall_s) <= 1e-6 * h.wall_s))
      g_printerr ("# run %u: %.9g s counted and lost, %.9g s passed\n", i, sum, h.wall_s);
    double of_causes = 0;
    for (guint k = 0; k < c->reliability.causes->len; k++)
      of_causes += h.causes[k].lost_s;
    LS_CHECK (of_causes <= lost_in_all (&h) * (1 + 1e-9) + 1e-6);
    LS_CHECK (h.wall_s == again.wall_s && h.useful_s == again.useful_s && h.n_events == again.n_events);
    LS_CHECK (h.is_finished || fabs (h.wall_s - c->plan.end_s) < 1e-6);
    ls_run_history_clear (&h);
    ls_run_history_clear (&again);
  }
}

/* Of causes that leave it no time; and of many slow nodes the slowest counts, not all. */
static void
what_does_not_get_on_is_given_up (void)
{
  static const LsFailureEffect effects[] = { LS_FAILURE_STALL, LS_FAILURE_CORRUPT, LS_FAILURE_REPLACE };
  for (guint i = 0; i < G_N_ELEMENTS (effects); i++) {
    g_autoptr (Case) c = case_new ();
    add_cause (c, effects[i], 1e6, effects[i] == LS_FAILURE_CORRUPT ? 0.01 : 30 * 86400);
    LsRunHistory h;
    ls_run_history_init (&h, &c->plan, 1);
    LS_CHECK (h.is_endless && !h.is_finished);
    ls_run_history_clear (&h);
  }
  g_autoptr (Case) slow = case_new ();
  add_cause (slow, LS_FAILURE_SLOW, 86400 / 20.0, 1e6);
  LsRunHistory h;
  ls_run_history_init (&h, &slow->plan, 1);
  LS_CHECK (h.causes[0].n > 50 && h.is_finished && h.wall_s < 2 * 2500 + 70 + 1e-3);
  LS_CHECK_NEAR (h.causes[0].lost_s, h.lost_s[LS_LOST_SLOW], 1e-9);
  ls_run_history_clear (&h);
}

/* --- intervals ------------------------------------------------------------------------- */

static void
formulas_give_the_worked_example (void)
{
  double mtbf = 54.0 * 86400 / 419;
  LS_CHECK (fabs (ls_young_interval_s (10, mtbf) - 472) < 1);
  LS_CHECK (fabs (ls_daly_interval_s (10, mtbf) - 465) < 1);
  LS_CHECK (fabs (ls_best_interval_s (10, mtbf) - 465) < 1);
  LS_CHECK (fabs (ls_expected_piece_s (465, 10, 300, mtbf) - 499) < 1);
  LS_CHECK (ls_daly_interval_s (20, 10) == 10);
  LS_CHECK (ls_expected_piece_s (250, 7, 100, INFINITY) == 257);
  for (double save = 0.1; save < 1e4; save *= 1.7) { /* nothing beside it is better */
    double best = ls_best_interval_s (save, mtbf), least = ls_expected_piece_s (best, save, 300, mtbf) / best;
    LS_CHECK (least <= ls_expected_piece_s (best * 1.01, save, 300, mtbf) / (best * 1.01));
    LS_CHECK (least <= ls_expected_piece_s (best / 1.01, save, 300, mtbf) / (best / 1.01));
    LS_CHECK (save > 0.1 * mtbf || fabs (ls_daly_interval_s (save, mtbf) / best - 1) < 0.02);
  }
}

/* Mean time of the same 400 seeds with a checkpoint behind so many steps. */
/* One failure of two nodes at once, of which one has a spare: it waits for a repair; what peers kept is lost. */
static void
nodes_fail_together (void)
{
  for (uint32_t nodes = 1; nodes <= 2; nodes++) {
    g_autoptr (Case) c = case_new ();
    add_cause (c, LS_FAILURE_REPLACE, 30, 0)->nodes = nodes;
    c->plan.spares = 1;
    c->plan.checkpoint = (LsCheckpointTimes) { .read_s = 3, .frozen_s = 4, .is_on_peer = true };
    c->plan.end_s = first_failure_s (c, 7) + 1;
    LsRunHistory h;
    ls_run_history_init (&h, &c->plan, 7);
    double at = first_failure_s (c, 7);
    LS_CHECK_NEAR (h.lost_s[LS_LOST_REWORK], nodes == 1 ? fmod (at, 250) : at, 1e-6);
    LS_CHECK_NEAR (h.lost_s[nodes == 1 ? LS_LOST_RESTART : LS_LOST_WAITING], 1, 1e-6);
    ls_run_history_clear (&h);
  }
}

/* A stop that is announced during a stall has a cause of its own: the stall is charged to the stall. */
static void
a_stall_keeps_its_cause (void)
{
  g_autoptr (Case) c = case_new ();
  add_cause (c, LS_FAILURE_STALL, 400, 100);
  add_cause (c, LS_FAILURE_PLANNED, 400, 0);
  for (uint32_t seed = 1; seed <= 20; seed++) {
    LsRunHistory h;
    ls_run_history_init (&h, &c->plan, seed);
    LS_CHECK_NEAR (h.causes[0].lost_s, h.lost_s[LS_LOST_STALL], 1e-9);
    ls_run_history_clear (&h);
  }
}

static double
mean_s (Case *c, uint64_t every)
{
  double sum = 0;
  c->phases[0].every = every;
  for (uint32_t seed = 1; seed <= 400; seed++) {
    LsRunHistory h;
    ls_run_history_init (&h, &c->plan, seed);
    sum += h.wall_s / 400;
    ls_run_history_clear (&h);
  }
  return sum;
}

/* Failures each 3,000 s, checkpoints of 10 s: the least mean time of simulated runs over intervals, by a parabola
 * over the logarithm of the interval, is within 2 % of the least that the formula's interval gives. */
static void
the_best_interval_is_the_simulated_one (void)
{
  g_autoptr (Case) c = case_new ();
  add_cause (c, LS_FAILURE_RESTART, 86400 / 3000.0, 100);
  c->phases[0] = (LsRunPhase) { 40000, 1, 100 };
  c->plan.checkpoint.save_s = 10;
  double best = ls_best_interval_s (10, 3000), at_best = mean_s (c, (uint64_t) round (best)), least = at_best;
  for (double times = 0.5; times < 2.1; times *= 1.1)
    least = fmin (least, mean_s (c, (uint64_t) round (best * times)));
  if (!LS_CHECK (at_best <= 1.002 * least))
    g_printerr ("# %g s at the formula's interval, %g s at the best simulated one\n", at_best, least);
  LS_CHECK (mean_s (c, (uint64_t) round (best / 4)) > 1.01 * at_best);
  LS_CHECK (mean_s (c, (uint64_t) round (best * 4)) > 1.01 * at_best);
}

LS_TEST_SUITE (LS_TEST (without_failures_steps_and_checkpoints_add_up),
               LS_TEST (steps_that_vary_take_their_mean), LS_TEST (slow_storage_holds_the_job_up),
               LS_TEST (exponential_failures_take_what_is_expected),
               LS_TEST (a_failure_costs_the_stop_and_what_was_not_saved),
               LS_TEST (a_planned_stop_loses_no_work), LS_TEST (a_stall_waits_and_a_slow_node_slows),
               LS_TEST (wrong_numbers_cost_all_behind_them), LS_TEST (what_is_on_a_node_is_lost_with_it),
               LS_TEST (what_is_being_written_cannot_be_read), LS_TEST (every_second_is_accounted_for),
               LS_TEST (nodes_fail_together), LS_TEST (a_stall_keeps_its_cause),
               LS_TEST (what_does_not_get_on_is_given_up), LS_TEST (formulas_give_the_worked_example),
               LS_TEST (the_best_interval_is_the_simulated_one))
