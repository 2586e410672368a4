/* Pins errors of predictions: statistics of the scoreboard, and the intervals that follow from errors. */
#include "ls_test.h"

#include <math.h>
#include <string.h>

#include "analysis/interval.h"

/* Pins intervals of predictions: the worked example of analysis/interval.h, what sources and their rows weigh,
 * and that a job unlike all runs has a wider one, which says so. */

#define OTHER "loops on PyTorch"

static void
add_on (LsResiduals *r, const char *source, const char *family, const char *architecture,
        const char *software, double *points, guint n)
{
  for (guint i = 0; i < n; i++)
    points[i] *= 0.01;
  ls_residuals_add (r, source, family, architecture, software, 0.05, points, n);
}

#define ADD(r, source, software, ...)                                                                        \
  add_on (r, source, source, "ampere", software, (double[]) { __VA_ARGS__ },                                 \
          sizeof ((double[]) { __VA_ARGS__ }) / sizeof (double))

static const LsIntervalJob job
    = { .architecture = "ampere", .software = "Megatron-LM", .mfu = 0.36, .traits = { .chips = "GPUs" } };

/* In points, back from the factors: on both sides alike. */
static void
check_points (const LsResiduals *r, const LsIntervalJob *of, double points)
{
  LsInterval i;
  ls_interval_find (r, of, &i);
  if (LS_CHECK (!i.none)) {
    LS_CHECK_NEAR (-100 * sqrt (of->mfu) * log (i.low), points, 1e-9);
    LS_CHECK_NEAR (100 * sqrt (of->mfu) * log (i.high), points, 1e-9);
  }
  ls_interval_clear (&i);
}

static LsResiduals *
worked_example (void)
{
  LsResiduals *r = ls_residuals_new ();
  ADD (r, "a", "Megatron-LM", 1);
  ADD (r, "b", "Megatron-LM", -2);
  ADD (r, "c", "Megatron-LM", 9);
  ADD (r, "d", OTHER, 4);
  ADD (r, "e", OTHER, -30);
  return r;
}

static void
the_worked_example_holds (void)
{
  g_autoptr (LsResiduals) r = worked_example ();
  LsInterval i;
  ls_interval_find (r, &job, &i);
  LS_CHECK_INT (i.n_sources, ==, 3);
  LS_CHECK_INT (i.n_others, ==, 2);
  LS_CHECK (i.wider == NULL);
  LS_CHECK_NEAR (10 * i.low, 8.607, 1e-3);
  LS_CHECK_NEAR (10 * i.high, 11.618, 1e-3);
  g_autofree char *label = ls_interval_label (&i);
  LS_CHECK_STR (label,
                "80 % interval, from the errors on 3 published sources with Megatron-LM and, with less "
                "weight, 2 with other software");
  ls_interval_clear (&i);

  LsIntervalJob idle = job;
  idle.mfu = 0.09;
  ls_interval_find (r, &idle, &i);
  LS_CHECK_NEAR (10 * i.low, 7.408, 1e-3);
  LS_CHECK_NEAR (10 * i.high, 13.499, 1e-3);
  ls_interval_clear (&i);
}

/* Without b, of the weights 2 + 0.5, 2, 2 + 0.5 and 2 up to 30 points 7.2 must be held: not by 1, 4 and 9. */
static void
the_source_of_the_job_does_not_count (void)
{
  g_autoptr (LsResiduals) r = worked_example ();
  LsIntervalJob own = job;
  own.without = "b";
  check_points (r, &own, 30);
}

/* Of the weight 8 + 4.5 that the others have up to 8 points and one source with 400 rows, n / (n + 1), nearly
 * twice of each, is held 0.8 without it. With as many rows as sources it would not. */
static void
rows_of_a_source_count_little (void)
{
  g_autoptr (LsResiduals) r = ls_residuals_new ();
  double many[400];
  for (guint i = 0; i < G_N_ELEMENTS (many); i++)
    many[i] = 20;
  add_on (r, "many", "many", "ampere", "Megatron-LM", many, G_N_ELEMENTS (many));
  LS_CHECK_INT (g_array_index (r->groups, LsResidualGroup, 0).residuals->len, ==, LS_RESIDUAL_POINTS);
  for (guint k = 1; k <= 8; k++) {
    const char name[] = { (char) ('a' + k), '\0' };
    ADD (r, name, "Megatron-LM", k);
  }
  check_points (r, &job, 8);
  r->groups->len--; /* of seven with 3.5 the 0.8 of 4.5 is more */
  check_points (r, &job, 20);
  r->groups->len++;
}

/* Two families of a source share what it counts, by their rows. */
static void
families_share_their_source (void)
{
  g_autoptr (LsResiduals) one = ls_residuals_new (), two = ls_residuals_new ();
  ADD (one, "s", "Megatron-LM", 1, 20, 20, 20);
  add_on (two, "s", "s-a", "ampere", "Megatron-LM", (double[]) { 1 }, 1);
  add_on (two, "s", "s-b", "ampere", "Megatron-LM", (double[]) { 20, 20, 20 }, 3);
  for (guint k = 0; k < 4; k++) {
    const char name[] = { (char) ('a' + k), '\0' };
    ADD (one, name, "Megatron-LM", 2 + k);
    ADD (two, name, "Megatron-LM", 2 + k);
  }
  LS_CHECK_NEAR (ls_residuals_spread (one, OTHER), 0.2, 1e-12);
  LS_CHECK_NEAR (ls_residuals_spread (two, OTHER), 0.2, 1e-12);
  LS_CHECK_NEAR (ls_residuals_spread (one, "Megatron-LM"), ls_residuals_spread (two, "Megatron-LM"), 1e-12);
}

static void
few_sources_say_nothing (void)
{
  g_autoptr (LsResiduals) r = ls_residuals_new ();
  static const char *const why[]
      = { "measured runs, of 0 sources, are too few", "measured runs, of 1 source, are too few",
          "measured runs, of 2 sources, are too few", "measured runs, of 3 sources, are too few", NULL };
  for (guint k = 0; k < G_N_ELEMENTS (why); k++) {
    const char name[] = { (char) ('a' + k), '\0' };
    LsInterval i;
    ls_interval_find (r, &job, &i);
    LS_CHECK_STR (i.none, why[k]);
    ls_interval_clear (&i);
    ADD (r, name, k % 2 ? OTHER : "Megatron-LM", k);
  }
}

/* All sources alike, and it says so. */
static void
software_that_nobody_measured_has_one (void)
{
  g_autoptr (LsResiduals) r = worked_example ();
  LsIntervalJob unknown = job;
  unknown.software = "software that is not known";
  check_points (r, &unknown, 9);
  LsInterval i;
  ls_interval_find (r, &unknown, &i);
  LS_CHECK_INT (i.n_sources, ==, 0);
  g_autofree char *label = ls_interval_label (&i);
  LS_CHECK_STR (label,
                "80 % interval, from the errors on all 5 published sources, as nothing like it was "
                "measured: none is with software that is not known");
  ls_interval_clear (&i);
}

/* 0 to 99 in the wrong order: of each five the middle one. */
static void
many_rows_become_quantiles (void)
{
  g_autoptr (LsResiduals) r = ls_residuals_new ();
  double rows[100];
  for (guint i = 0; i < 100; i++)
    rows[i] = 99 - i;
  ls_residuals_add (r, "a", "a", "ampere", OTHER, 0.1, rows, 100);
  const LsResidualGroup *g = &g_array_index (r->groups, LsResidualGroup, 0);
  LS_CHECK_INT (g->n, ==, 100);
  for (guint k = 0; k < LS_RESIDUAL_POINTS; k++)
    LS_CHECK_NEAR (g_array_index (g->residuals, double, k), 5.0 * k + 2, 1e-12);
}

/* By one factor, in however many aspects: words as of the runs with its software, figures as of all runs. */
static void
unlike_jobs_are_wider (void)
{
  g_autoptr (LsResiduals) r = worked_example ();
  LsTraits known
      = { .word = { [LS_ASPECT_FORMAT] = "bf16", [LS_ASPECT_NODE] = "nvlink" }, .figure = { 8, 25e9, 0 } };
  LsTraits larger = { .word = { [LS_ASPECT_FORMAT] = "fp16" }, .figure = { 64, 50e9, 0 } };
  LsResidualGroup *group = &g_array_index (r->groups, LsResidualGroup, 1);
  for (int row = 0; row < 2; row++)
    ls_residual_group_add_traits (group, &known);
  LS_CHECK_INT (group->traits->len, ==, 2);
  ls_residual_group_add_traits (&g_array_index (r->groups, LsResidualGroup, 4), &larger);
  g_autoptr (GArray) needed = g_array_new (FALSE, FALSE, sizeof (double));
  g_array_append_vals (needed, (double[]) { 9, 1.5, 0.5, 3, 2, 1, 1, 1, 1 }, 9);
  ls_residuals_set_unlike (r, needed); /* 0.8 * 10 / 9 of nine: the eighth */
  LS_CHECK_NEAR (r->unlike, 3, 1e-12);
  LS_CHECK_INT (r->n_unlike, ==, 9);

  static const struct {
    const char *architecture, *format, *node;
    double gpus, fabric, mfu;
    const char *else_, *words;
  } cases[] = {
    { "ampere", "bf16", "nvlink", 64, 25e9, 0.36, NULL, NULL },
    { "ampere", NULL, NULL, 0, 0, 0.36, NULL, NULL },
    { "ampere", "fp8", "nvlink", 8, 0, 0.36, NULL, "is in fp8" },
    { "ampere", "fp16", "nvlink", 8, 0, 0.36, NULL, "is in fp16" }, /* by the others only */
    { "ampere", "bf16", "nvlink", 64, 10e9, 0.36, NULL, "has a fabric of 10 GB/s per GPU (25 at least)" },
    { "ampere", "fp8", "pcie", 128, 0, 0.36, NULL,
      "is in fp8 or is on nodes with PCIe only or is on more than 64 GPUs" },
    { "volta", "bf16", "nvlink", 64, 100e9, 0.36, NULL, "is on GPUs of architecture volta" },
    { "ampere", "bf16", "nvlink", 64, 25e9, 0.04, NULL, "has an MFU below 5.0 %" },
    { "ampere", "fp8", "nvlink", 64, 25e9, 0.36, "has an encoder", "has an encoder or is in fp8" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    LsIntervalJob unlike = { .architecture = cases[i].architecture,
                             .software = job.software,
                             .mfu = cases[i].mfu,
                             .unlike = cases[i].else_,
                             .traits = { .chip = "GPU", .chips = "GPUs" } };
    unlike.traits.word[LS_ASPECT_FORMAT] = cases[i].format;
    unlike.traits.word[LS_ASPECT_NODE] = cases[i].node;
    unlike.traits.figure[0] = cases[i].gpus;
    unlike.traits.figure[1] = cases[i].fabric;
    LsInterval found;
    ls_interval_find (r, &unlike, &found);
    LS_CHECK_STR (found.wider, cases[i].words);
    LS_CHECK_NEAR (found.stretch, cases[i].words ? 3 : 1, 1e-12);
    ls_interval_clear (&found);
    check_points (r, &unlike, cases[i].words ? 27 : 9);
  }
}

static void
residuals_go_with_the_root_of_the_mfu (void)
{
  LS_CHECK_NEAR (ls_residual (11, 10, 0.25), 0.5 * log (1.1), 1e-15);
  LS_CHECK_NEAR (ls_residual (10, 10, 0.5), 0, 1e-15);
}

/* By as much on both sides; where there is none, it is told all the same. */
static void
errors_of_the_machine_widen (void)
{
  LsInterval i = { .low = 0.9, .high = 1.2, .remark = g_strdup ("first") },
             none = { .none = g_strdup ("no") };
  ls_interval_widen (&i, 0.1, "kernels");
  ls_interval_widen (&none, 0.1, "kernels");
  LS_CHECK_NEAR (i.low, 0.9 / 1.105171, 1e-6);
  LS_CHECK_NEAR (i.high, 1.2 * 1.105171, 1e-6);
  LS_CHECK_STR (i.remark, "first; wider for what was not measured on this machine: kernels");
  LS_CHECK_STR (none.remark, "not measured on this machine: kernels");
  LS_CHECK_DOUBLE (none.high, ==, 0);
  ls_interval_clear (&i);
  ls_interval_clear (&none);
}

/* What is not simulated makes steps longer, never shorter. */
static void
what_is_missing_lengthens (void)
{
  LsInterval i = { .low = 0.9, .high = 1.2, .remark = g_strdup ("first") },
             none = { .none = g_strdup ("no") };
  ls_interval_lengthen (&i, 2, "a host");
  ls_interval_lengthen (&none, 2, "a host");
  LS_CHECK_DOUBLE (i.low, ==, 0.9);
  LS_CHECK_DOUBLE (i.high, ==, 2.4);
  LS_CHECK_STR (i.remark, "first; up to 2 times as long, as it is not simulated: a host");
  LS_CHECK_DOUBLE (none.high, ==, 0);
  ls_interval_clear (&i);
  ls_interval_clear (&none);
}

/* Pins the statistics of the scoreboard to values worked out by hand. */

#define ROW(measured, predicted)                                                                             \
  {                                                                                                          \
    .measured_s = (measured), .predicted_s = (predicted)                                                     \
  }

static void
errors_are_signed_percent_of_the_measurement (void)
{
  static const LsScoreRow rows[] = { ROW (10, 11), ROW (10, 8), ROW (10, 10.5), ROW (10, NAN) };
  LsScore s;
  ls_score (rows, G_N_ELEMENTS (rows), &s);
  LS_CHECK_INT (s.n, ==, 3);
  LS_CHECK_INT (s.refused, ==, 1);
  LS_CHECK_NEAR (s.mape_pct, 35.0 / 3, 1e-12); /* 10, 20, 5 */
  LS_CHECK_NEAR (s.bias_pct, -5.0 / 3, 1e-12); /* 10, -20, 5 */
  LS_CHECK_NEAR (s.median_abs_pct, 10.0, 1e-12);
  LS_CHECK_NEAR (s.worst_pct, -20.0, 1e-12);
}

static void
median_of_an_even_number_is_the_middle_of_two (void)
{
  static const LsScoreRow rows[] = { ROW (100, 101), ROW (100, 103), ROW (100, 93), ROW (100, 120) };
  LsScore s;
  ls_score (rows, G_N_ELEMENTS (rows), &s);
  LS_CHECK_NEAR (s.median_abs_pct, 5.0, 1e-9); /* 1 3 | 7 20 */
}

static void
tau_counts_discordant_rows (void)
{
  static const LsScoreRow rows[] = { ROW (1, 10), ROW (2, 30), ROW (3, 20), ROW (99, NAN) };
  LsScore s;
  ls_score (rows, G_N_ELEMENTS (rows), &s);
  LS_CHECK_NEAR (s.kendall_tau, 1.0 / 3, 1e-12);
}

static void
tau_b_corrects_for_ties (void)
{
  /* Six rows, one tied in the measurement; of the other five all agree:
   * 5 / sqrt (5 * 6). */
  static const LsScoreRow rows[] = { ROW (1, 1), ROW (1, 2), ROW (2, 3), ROW (3, 4) };
  LsScore s;
  ls_score (rows, G_N_ELEMENTS (rows), &s);
  LS_CHECK_NEAR (s.kendall_tau, 5 / sqrt (30), 1e-12);
}

static void
nothing_simulated_has_no_statistics (void)
{
  static const LsScoreRow rows[] = { ROW (1, NAN) };
  LsScore s;
  ls_score (rows, 1, &s);
  LS_CHECK_INT (s.n, ==, 0);
  LS_CHECK_INT (s.refused, ==, 1);
  LS_CHECK (isnan (s.mape_pct) && isnan (s.kendall_tau) && isnan (s.worst_pct));
}

static void
total_tau_weighs_families_by_size (void)
{
  const LsScore families[]
      = { { .n = 3, .kendall_tau = 1 }, { .n = 1, .kendall_tau = NAN }, { .n = 9, .kendall_tau = 0 } };
  LS_CHECK_NEAR (ls_score_mean_tau (families, 3), 0.25, 1e-12);
  LS_CHECK (isnan (ls_score_mean_tau (families + 1, 1)));
}

static void
families_are_scored_apart_and_together (void)
{
  static const LsScoreRow rows[] = {
    { .family = "a", .measured_s = 1, .predicted_s = 1.1 },
    { .family = "b", .measured_s = 3, .predicted_s = 3.9 },
    { .family = "a", .measured_s = 2, .predicted_s = 1.0 },
    { .family = "b", .measured_s = 4, .predicted_s = 4.0 },
  };
  static const char *const names[] = { "b", "a" };
  LsScore families[2], total;
  ls_score_by_family (rows, G_N_ELEMENTS (rows), names, 2, families, &total);
  LS_CHECK_NEAR (families[0].mape_pct, 15, 1e-9); /* 30, 0 */
  LS_CHECK_NEAR (families[1].mape_pct, 30, 1e-9); /* 10, -50 */
  LS_CHECK_NEAR (total.mape_pct, 22.5, 1e-9);
  LS_CHECK_NEAR (total.kendall_tau, 0, 1e-12); /* 1 in b, -1 in a; over all rows it is 4 / 6 */
}

LS_TEST_SUITE (LS_TEST (the_worked_example_holds), LS_TEST (the_source_of_the_job_does_not_count),
               LS_TEST (rows_of_a_source_count_little), LS_TEST (families_share_their_source),
               LS_TEST (few_sources_say_nothing), LS_TEST (software_that_nobody_measured_has_one),
               LS_TEST (many_rows_become_quantiles), LS_TEST (errors_of_the_machine_widen),
               LS_TEST (what_is_missing_lengthens), LS_TEST (residuals_go_with_the_root_of_the_mfu),
               LS_TEST (unlike_jobs_are_wider), LS_TEST (errors_are_signed_percent_of_the_measurement),
               LS_TEST (median_of_an_even_number_is_the_middle_of_two), LS_TEST (tau_counts_discordant_rows),
               LS_TEST (tau_b_corrects_for_ties), LS_TEST (nothing_simulated_has_no_statistics),
               LS_TEST (total_tau_weighs_families_by_size), LS_TEST (families_are_scored_apart_and_together))
