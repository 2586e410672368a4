/* Pins errors of predictions: statistics of the scoreboard, and the intervals that follow from errors. */
#include "ls_test.h"

#include <math.h>
#include <string.h>

#include "analysis/interval.h"

/* Pins intervals of predictions: the worked example of analysis/interval.h, that sources count and
 * not rows, that other software does not count, and that a job unlike all runs has none. */

static void
add_on (LsResiduals *r, const char *source, const char *family, const char *architecture, double *points,
        guint n)
{
  for (guint i = 0; i < n; i++)
    points[i] *= 0.01;
  ls_residuals_add (r, source, family, architecture, "Megatron-LM", 0.1, points, n);
}

#define ADD(r, source, family, ...)                                                                          \
  add_on (r, source, family, "ampere", (double[]) { __VA_ARGS__ },                                           \
          sizeof ((double[]) { __VA_ARGS__ }) / sizeof (double))

static const LsIntervalJob job = { "ampere", "Megatron-LM", 0.4 };

/* In points of MFU, back from the factors. */
static void
check_points (const LsResiduals *r, const char *without, double low, double high)
{
  LsInterval i;
  ls_interval_find (r, without, &job, &i);
  if (LS_CHECK (!i.none)) {
    LS_CHECK_NEAR (100 * job.mfu * log (i.low), low, 1e-9);
    LS_CHECK_NEAR (100 * job.mfu * log (i.high), high, 1e-9);
  }
  ls_interval_clear (&i);
}

static void
check_none (const LsResiduals *r, const char *without, const LsIntervalJob *unlike, const char *why)
{
  LsInterval i;
  ls_interval_find (r, without, unlike, &i);
  LS_CHECK_STR (i.none, why);
  ls_interval_clear (&i);
}

/* -1 0 1 2 3 4 5 6 30 points: nine sources named 0 to 8. */
static LsResiduals *
worked_example (void)
{
  static const double points[] = { -1, 0, 1, 2, 3, 4, 5, 6, 30 };
  LsResiduals *r = ls_residuals_new ();
  for (guint k = 0; k < G_N_ELEMENTS (points); k++) {
    const char name[] = { (char) ('0' + k), '\0' };
    ADD (r, name, name, points[k]);
  }
  return r;
}

static void
the_worked_example_holds (void)
{
  g_autoptr (LsResiduals) r = worked_example ();
  LsInterval i;
  ls_interval_find (r, NULL, &job, &i);
  LS_CHECK_INT (i.n_sources, ==, 9);
  LS_CHECK_NEAR (10 * i.low, 9.753, 1e-3);
  LS_CHECK_NEAR (10 * i.high, 11.618, 1e-3);
  ls_interval_clear (&i);

  const LsIntervalJob idle = { "ampere", "Megatron-LM", 0.2 };
  ls_interval_find (r, NULL, &idle, &i);
  LS_CHECK_NEAR (10 * i.low, 9.512, 1e-3);
  LS_CHECK_NEAR (10 * i.high, 13.499, 1e-3);
  ls_interval_clear (&i);
}

/* Eight sources must all be held if one is unknown: 0.8 * 9 / 8 = 0.9 of eight. */
static void
a_source_left_out_says_nothing (void)
{
  g_autoptr (LsResiduals) r = worked_example ();
  check_points (r, "8", -1, 6);
  check_points (r, "0", 0, 30);
}

/* Of fewer than nine sources from the least to the most; of one there is none. */
static void
few_sources_have_a_range (void)
{
  g_autoptr (LsResiduals) r = ls_residuals_new ();
  double low, high;
  ADD (r, "a", "a", -2);
  LS_CHECK (!ls_residuals_range (r, "Megatron-LM", &low, &high));
  ADD (r, "b", "b", 3);
  if (LS_CHECK (ls_residuals_range (r, "Megatron-LM", &low, &high))) {
    LS_CHECK_NEAR (low, -0.02, 1e-12);
    LS_CHECK_NEAR (high, 0.03, 1e-12);
  }
}

/* 400 rows at 20 points weigh as much as each of the eight other rows. */
static void
sources_count_not_rows (void)
{
  g_autoptr (LsResiduals) r = ls_residuals_new ();
  double many[400];
  for (guint i = 0; i < G_N_ELEMENTS (many); i++)
    many[i] = 20;
  add_on (r, "many", "many", "ampere", many, G_N_ELEMENTS (many));
  LS_CHECK_INT (g_array_index (r->groups, LsResidualGroup, 0).residuals->len, ==, LS_RESIDUAL_POINTS);
  for (guint k = 0; k < 8; k++) {
    const char name[] = { (char) ('a' + k), '\0' };
    ADD (r, name, name, k);
  }
  check_points (r, NULL, 0, 7);
}

/* As above: two families of one source share what it counts, whatever their rows. */
static void
families_share_their_source (void)
{
  g_autoptr (LsResiduals) r = ls_residuals_new ();
  ADD (r, "two", "two-a", 20);
  ADD (r, "two", "two-b", 20, 20, 20);
  for (guint k = 0; k < 8; k++) {
    const char name[] = { (char) ('a' + k), '\0' };
    ADD (r, name, name, k);
  }
  check_points (r, NULL, 0, 7);
}

static void
few_sources_say_nothing (void)
{
  g_autoptr (LsResiduals) r = ls_residuals_new ();
  check_none (r, NULL, &job, "measured runs with Megatron-LM, of 0 sources, are too few");
  ADD (r, "a", "a", 1);
  check_none (r, NULL, &job, "measured runs with Megatron-LM, of 1 source, are too few");
  ADD (r, "b", "b", 2);
  ADD (r, "c", "c", -3);
  check_none (r, NULL, &job, "measured runs with Megatron-LM, of 3 sources, are too few");
  ADD (r, "d", "d", 4);
  check_points (r, NULL, -3, 4); /* 0.8 * 5 / 4 is all */
  check_none (r, "d", &job, "measured runs with Megatron-LM, of 3 sources, are too few");
}

static void
unlike_jobs_have_none (void)
{
  g_autoptr (LsResiduals) r = worked_example ();
  const LsIntervalJob elsewhere = { "volta", "Megatron-LM", 0.4, { .chips = "GPUs" } },
                      idle = { "ampere", "Megatron-LM", 0.05 };
  check_none (r, NULL, &elsewhere, "none of the measured runs is on GPUs of architecture volta");
  check_none (r, NULL, &idle, "an MFU of 5.0 % is below that of all measured runs");
  add_on (r, "v", "v", "volta", (double[]) { 1 }, 1);
  LsInterval i;
  ls_interval_find (r, NULL, &elsewhere, &i);
  LS_CHECK (!i.none);
  ls_interval_clear (&i);
  check_none (r, "v", &elsewhere, "none of the measured runs is on GPUs of architecture volta");
}

/* Runs with other software neither widen the interval of a job nor make up for missing ones, but those of a
 * source with both share only what counts. */
static void
other_software_does_not_count (void)
{
  g_autoptr (LsResiduals) r = worked_example ();
  double far[] = { 0.5 }, both[] = { 0.6 };
  ls_residuals_add (r, "far", "far", "ampere", "other software than Megatron-LM on GPUs", 0.1, far, 1);
  ls_residuals_add (r, "0", "0-b", "ampere", "other software than Megatron-LM on GPUs", 0.1, both, 1);
  check_points (r, NULL, -1, 6);

  const LsIntervalJob other = { "ampere", "other software than Megatron-LM on GPUs", 0.4 };
  check_none (r, NULL, &other,
              "measured runs with other software than Megatron-LM on GPUs, of 2 sources, are too few");
  for (guint k = 2; k < 4; k++) {
    const char name[] = { (char) ('0' + k), '\0' };
    double points[] = { 0.5 + 0.01 * k };
    ls_residuals_add (r, name, "other", "ampere", "other software than Megatron-LM on GPUs", 0.1, points, 1);
  }
  LsInterval i;
  ls_interval_find (r, NULL, &other, &i);
  LS_CHECK_INT (i.n_sources, ==, 4);
  LS_CHECK_STR (i.software, "other software than Megatron-LM on GPUs");
  LS_CHECK_NEAR (i.low, exp (0.5 / 0.4), 1e-12);
  LS_CHECK_NEAR (i.high, exp (0.6 / 0.4), 1e-12);
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
  ls_residuals_add (r, "a", "a", "ampere", "other software than Megatron-LM on GPUs", 0.1, rows, 100);
  const LsResidualGroup *g = &g_array_index (r->groups, LsResidualGroup, 0);
  LS_CHECK_INT (g->n, ==, 100);
  for (guint k = 0; k < LS_RESIDUAL_POINTS; k++)
    LS_CHECK_NEAR (g_array_index (g->residuals, double, k), 5.0 * k + 2, 1e-12);
}

/* About its middle, 2.5 points; once for each aspect; without a factor there is none, nor further away than
 * was tried. */
static void
unlike_jobs_are_wider (void)
{
  g_autoptr (LsResiduals) r = worked_example ();
  LsTraits known
      = { .word = { [LS_ASPECT_FORMAT] = "bf16", [LS_ASPECT_NODE] = "nvlink" }, .figure = { 64, 25e9, 0 } };
  LsResidualGroup *group = &g_array_index (r->groups, LsResidualGroup, 3);
  for (int row = 0; row < 2; row++)
    ls_residual_group_add_traits (group, &known);
  LS_CHECK_INT (group->traits->len, ==, 2);
  g_autoptr (GArray) needed = g_array_new (FALSE, FALSE, sizeof (double));
  g_array_append_vals (needed, (double[]) { 3, 2 }, 2);
  ls_residuals_add_stretch (r, LS_ASPECT_FORMAT, needed, 0);
  g_array_append_vals (needed, (double[]) { 1, 1, 1 }, 3); /* 0.8 * 6 / 5: the largest of five */
  ls_residuals_add_stretch (r, LS_ASPECT_FABRIC, needed, log (4));
  g_array_set_size (needed, 1);
  ls_residuals_add_stretch (r, LS_ASPECT_NODE, needed, 0);
  LS_CHECK_INT (r->stretches->len, ==, 2);

  static const struct {
    const char *format, *node;
    double gpus, fabric, stretch;
    const char *words;
    bool is_torus;
  } cases[] = {
    { "bf16", "nvlink", 64, 25e9, 1, NULL },
    { NULL, NULL, 0, 0, 1, NULL },
    { "fp8", "nvlink", 8, 0, 3, "is in fp8" },
    { "bf16", "nvlink", 64, 10e9, 3, "has a fabric of 10 GB/s per GPU (25 at least)" },
    { "fp8", "nvlink", 64, 10e9, 9, "is in fp8 or has a fabric of 10 GB/s per GPU (25 at least)" },
    { "bf16", "nvlink", 64, 100e9, 1, NULL },
    { "bf16", "nvlink", 64, 5e9, 0,
      "none of the measured runs has a fabric of 5 GB/s per GPU (25 at least)" },
    { "bf16", "nvlink", 128, 25e9, 0, "none of the measured runs is on more than 64 GPUs" },
    { "bf16", "nvlink", 64, 10e9, 3, "has a fabric of 10 GB/s per chip (25 at least)", true },
    { "bf16", "nvlink", 128, 25e9, 0, "none of the measured runs is on more than 64 chips", true },
    { "bf16", "pcie", 64, 25e9, 0, "none of the measured runs is on nodes with PCIe only" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    LsIntervalJob unlike = job;
    unlike.traits.word[LS_ASPECT_FORMAT] = cases[i].format;
    unlike.traits.word[LS_ASPECT_NODE] = cases[i].node;
    unlike.traits.figure[0] = cases[i].gpus;
    unlike.traits.figure[1] = cases[i].fabric;
    unlike.traits.chip = cases[i].is_torus ? "chip" : "GPU";
    unlike.traits.chips = cases[i].is_torus ? "chips" : "GPUs";
    LsInterval found;
    ls_interval_find (r, NULL, &unlike, &found);
    LS_CHECK_STR (cases[i].stretch > 0 ? found.wider : found.none, cases[i].words);
    if (cases[i].stretch > 0 && LS_CHECK (!found.none)) {
      LS_CHECK_NEAR (found.stretch, cases[i].stretch, 1e-12);
      LS_CHECK_NEAR (100 * job.mfu * log (found.low), 2.5 - 3.5 * cases[i].stretch, 1e-9);
      LS_CHECK_NEAR (100 * job.mfu * log (found.high), 2.5 + 3.5 * cases[i].stretch, 1e-9);
    }
    ls_interval_clear (&found);
  }
}

/* Two sources of three and one rows: 1 1 1 and 4, all is held of two; of four that are alike 0.8 * 5 / 4. */
static void
the_stretch_holds_each_source_alike (void)
{
  GArray *sources[2];
  for (guint k = 0; k < 2; k++)
    sources[k] = g_array_new (FALSE, FALSE, sizeof (double));
  g_array_append_vals (sources[0], (double[]) { 0.2, 0.3, 0.5 }, 3);
  g_array_append_vals (sources[1], (double[]) { 4 }, 1);
  LS_CHECK_NEAR (ls_stretch_needed (sources, 2), 4, 1e-12);
  LS_CHECK_NEAR (ls_stretch_needed (sources, 1), 1, 1e-12); /* never narrower */
  for (guint k = 0; k < 2; k++)
    g_array_unref (sources[k]);
}

static void
residuals_are_points_of_mfu (void)
{
  LS_CHECK_NEAR (ls_residual (11, 10, 0.5), 0.5 * log (1.1), 1e-15);
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

LS_TEST_SUITE (LS_TEST (the_worked_example_holds), LS_TEST (a_source_left_out_says_nothing),
               LS_TEST (few_sources_have_a_range), LS_TEST (sources_count_not_rows),
               LS_TEST (families_share_their_source), LS_TEST (few_sources_say_nothing),
               LS_TEST (unlike_jobs_have_none), LS_TEST (other_software_does_not_count),
               LS_TEST (many_rows_become_quantiles), LS_TEST (errors_of_the_machine_widen),
               LS_TEST (what_is_missing_lengthens), LS_TEST (residuals_are_points_of_mfu),
               LS_TEST (unlike_jobs_are_wider), LS_TEST (the_stretch_holds_each_source_alike),
               LS_TEST (errors_are_signed_percent_of_the_measurement),
               LS_TEST (median_of_an_even_number_is_the_middle_of_two), LS_TEST (tau_counts_discordant_rows),
               LS_TEST (tau_b_corrects_for_ties), LS_TEST (nothing_simulated_has_no_statistics),
               LS_TEST (total_tau_weighs_families_by_size), LS_TEST (families_are_scored_apart_and_together))
