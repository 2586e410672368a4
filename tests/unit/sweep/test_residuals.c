/* Pins how a scoreboard becomes residuals, and coverage by the other sources: shares and widths
 * worked out by hand. */
#include "ls_test.h"

#include <math.h>

#include "sweep/job_interval.h"
#include "sweep/residuals.h"

#define ROW(family_, architecture_, over)                                                                      \
  { .measured_s = (over), .predicted_s = 1, .family = (family_), .architecture = (architecture_), .mfu = 0.5 }

static const LsResidualGroup *
group (const LsResiduals *r, guint i)
{
  return &g_array_index (r->groups, LsResidualGroup, i);
}

static void
rows_are_grouped_by_family_and_architecture (void)
{
  const LsScoreRow rows[] = {
    ROW ("sc21-t1", "ampere", 1.1), ROW ("mpt", "hopper", 1.2), { .predicted_s = NAN, .family = "mpt" },
    ROW ("mpt", "ampere", 1.3),     ROW ("mpt", "hopper", 1.0), ROW ("sc21-t2", "ampere", 1.4),
  };
  g_autoptr (LsResiduals) r = ls_residuals_of_rows (rows, G_N_ELEMENTS (rows));
  if (!LS_CHECK_INT (r->groups->len, ==, 4))
    return;
  LS_CHECK_STR (group (r, 0)->source, "sc21");
  LS_CHECK_STR (group (r, 0)->family, "sc21-t1");
  LS_CHECK_STR (group (r, 1)->source, "mpt");
  LS_CHECK_STR (group (r, 1)->architecture, "hopper");
  LS_CHECK_INT (group (r, 1)->n, ==, 2);
  LS_CHECK_NEAR (g_array_index (group (r, 1)->residuals, double, 0), 0, 1e-12);
  LS_CHECK_NEAR (g_array_index (group (r, 1)->residuals, double, 1), 0.5 * log (1.2), 1e-12);
  LS_CHECK_STR (group (r, 2)->architecture, "ampere");
  LS_CHECK_STR (group (r, 3)->source, "sc21");
}

/* vTrain's rows say megatron, and it was Megatron-DeepSpeed; a row that says another software is of another group. */
static void
what_a_source_is_known_to_have_used_counts (void)
{
  LsScoreRow rows[] = { ROW ("a", "ampere", 1.1), ROW ("a", "ampere", 1.2), ROW ("vtrain-multi", "ampere", 1.3), ROW ("sc21-t1", "ampere", 1.4) };
  rows[1].software = rows[3].software = LS_SOFTWARE_OTHER;
  g_autoptr (LsResiduals) r = ls_residuals_of_rows (rows, G_N_ELEMENTS (rows));
  static const int software[] = { LS_SOFTWARE_MEGATRON, LS_SOFTWARE_OTHER, LS_SOFTWARE_OTHER, LS_SOFTWARE_MEGATRON };
  if (LS_CHECK_INT (r->groups->len, ==, G_N_ELEMENTS (software)))
    for (guint i = 0; i < r->groups->len; i++)
      LS_CHECK_INT (group (r, i)->software, ==, software[i]);
}

static void
a_strategy_implies_software (void)
{
  LsStrategy s;
  ls_strategy_init (&s);
  s.dp_kind = LS_DP_MEGATRON;
  LS_CHECK_INT (ls_strategy_software (&s, "hopper"), ==, LS_SOFTWARE_MEGATRON);
  s.dp_kind = LS_DP_NONE;
  LS_CHECK_INT (ls_strategy_software (&s, "hopper"), ==, LS_SOFTWARE_MEGATRON);
  LS_CHECK_INT (ls_strategy_software (&s, "tpu"), ==, LS_SOFTWARE_XLA);
  s.dp_kind = LS_DP_FSDP2;
  LS_CHECK_INT (ls_strategy_software (&s, "hopper"), ==, LS_SOFTWARE_OTHER);
  ls_strategy_clear (&s);
}

/* Five sources, so each rests on four others, of which everything must be held (0.8 * 5 / 4 = 1): but for
 * itself 0 to 50 %, without a 1 to 50 %, without d 0 to 4 %. Of d one row of two lies outside. */
static void
each_source_is_tried_by_the_others (void)
{
  const LsScoreRow rows[] = {
    ROW ("a", "ampere", 1.00), ROW ("b", "ampere", 1.01), ROW ("c", "ampere", 1.02), ROW ("d", "ampere", 1.03),
    ROW ("d", "ampere", 1.50), ROW ("e", "ampere", 1.04), ROW ("e", "hopper", 1.04),
  };
  g_autoptr (LsResiduals) r = ls_residuals_of_rows (rows, G_N_ELEMENTS (rows));
  LsCoverageRun *run = ls_coverage_run_new (r, rows, G_N_ELEMENTS (rows));
  const LsCoverage *c = ls_coverage_run_result (run);
  static const double covered[] = { 0, 1, 1, 0.5, 1 };
  static const double width[] = { 0.49, 0.5, 0.5, 0.04, 0.5 };
  LS_CHECK_INT (c->n_sources, ==, 5);
  for (guint i = 0; i < 5; i++) {
    LS_CHECK_NEAR (c->sources[i].covered, covered[i], 1e-12);
    LS_CHECK_NEAR (c->sources[i].width, width[i], 1e-12);
  }
  LS_CHECK_INT (c->sources[4].n, ==, 1);
  LS_CHECK_INT (c->sources[4].n_unlike, ==, 1); /* nobody else is on hopper */
  LS_CHECK_INT (c->rows.n, ==, 6);
  LS_CHECK_INT (c->rows.n_unlike, ==, 1);
  LS_CHECK_NEAR (c->rows.covered, 4.0 / 6, 1e-12); /* not a and a half of d */
  LS_CHECK_NEAR (c->each.covered, 3.5 / 5, 1e-12);
  LS_CHECK_NEAR (c->each.width, 0.5, 1e-12);
  ls_coverage_run_free (run);
}

static void
too_few_sources_have_no_coverage (void)
{
  const LsScoreRow rows[] = { ROW ("a", "ampere", 1.00), ROW ("b", "ampere", 1.01) };
  g_autoptr (LsResiduals) r = ls_residuals_of_rows (rows, G_N_ELEMENTS (rows));
  LsCoverageRun *run = ls_coverage_run_new (r, rows, G_N_ELEMENTS (rows));
  const LsCoverage *c = ls_coverage_run_result (run);
  LS_CHECK_INT (c->each.n, ==, 0);
  LS_CHECK_INT (c->each.n_unlike, ==, 2);
  LS_CHECK (isnan (c->each.covered) && isnan (c->each.width));
  ls_coverage_run_free (run);
}

LS_TEST_MAIN ("sweep/residuals", LS_TEST (rows_are_grouped_by_family_and_architecture),
              LS_TEST (a_strategy_implies_software), LS_TEST (what_a_source_is_known_to_have_used_counts),
              LS_TEST (each_source_is_tried_by_the_others), LS_TEST (too_few_sources_have_no_coverage))
