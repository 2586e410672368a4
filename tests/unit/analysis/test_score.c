/* Pins the statistics of the scoreboard to values worked out by hand. */
#include "ls_test.h"

#include <math.h>

#include "analysis/score.h"

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

LS_TEST_SUITE (LS_TEST (errors_are_signed_percent_of_the_measurement),
               LS_TEST (median_of_an_even_number_is_the_middle_of_two), LS_TEST (tau_counts_discordant_rows),
               LS_TEST (tau_b_corrects_for_ties), LS_TEST (nothing_simulated_has_no_statistics),
               LS_TEST (total_tau_weighs_families_by_size), LS_TEST (families_are_scored_apart_and_together))
