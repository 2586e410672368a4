/* Pins intervals of predictions: the worked example of analysis/interval.h, that sources count and
 * not rows, that other software does not count, and that a job unlike all runs has none. */
#include "analysis/interval.h"

#include <math.h>
#include <string.h>

#include "ls_test.h"

static void
add_on (LsResiduals *r, const char *source, const char *family, const char *architecture, double *points, guint n)
{
  for (guint i = 0; i < n; i++)
    points[i] *= 0.01;
  ls_residuals_add (r, source, family, architecture, LS_SOFTWARE_MEGATRON, 0.1, points, n);
}

#define ADD(r, source, family, ...)                                                           \
  add_on (r, source, family, "ampere", (double[]) { __VA_ARGS__ }, sizeof ((double[]) { __VA_ARGS__ }) / sizeof (double))

static const LsIntervalJob job = { "ampere", LS_SOFTWARE_MEGATRON, 0.4 };

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

  const LsIntervalJob idle = { "ampere", LS_SOFTWARE_MEGATRON, 0.2 };
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
  const LsIntervalJob elsewhere = { "volta", LS_SOFTWARE_MEGATRON, 0.4 }, idle = { "ampere", LS_SOFTWARE_MEGATRON, 0.05 };
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
  ls_residuals_add (r, "far", "far", "ampere", LS_SOFTWARE_OTHER, 0.1, far, 1);
  ls_residuals_add (r, "0", "0-b", "ampere", LS_SOFTWARE_OTHER, 0.1, both, 1);
  check_points (r, NULL, -1, 6);

  const LsIntervalJob other = { "ampere", LS_SOFTWARE_OTHER, 0.4 };
  check_none (r, NULL, &other, "measured runs with other software than Megatron-LM on GPUs, of 2 sources, are too few");
  for (guint k = 2; k < 4; k++) {
    const char name[] = { (char) ('0' + k), '\0' };
    double points[] = { 0.5 + 0.01 * k };
    ls_residuals_add (r, name, "other", "ampere", LS_SOFTWARE_OTHER, 0.1, points, 1);
  }
  LsInterval i;
  ls_interval_find (r, NULL, &other, &i);
  LS_CHECK_INT (i.n_sources, ==, 4);
  LS_CHECK_INT (i.software, ==, LS_SOFTWARE_OTHER);
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
  ls_residuals_add (r, "a", "a", "ampere", LS_SOFTWARE_OTHER, 0.1, rows, 100);
  const LsResidualGroup *g = &g_array_index (r->groups, LsResidualGroup, 0);
  LS_CHECK_INT (g->n, ==, 100);
  for (guint k = 0; k < LS_RESIDUAL_POINTS; k++)
    LS_CHECK_NEAR (g_array_index (g->residuals, double, k), 5.0 * k + 2, 1e-12);
}

static void
residuals_are_points_of_mfu (void)
{
  LS_CHECK_NEAR (ls_residual (11, 10, 0.5), 0.5 * log (1.1), 1e-15);
  LS_CHECK_NEAR (ls_residual (10, 10, 0.5), 0, 1e-15);
}

LS_TEST_MAIN ("interval", LS_TEST (the_worked_example_holds), LS_TEST (a_source_left_out_says_nothing),
              LS_TEST (sources_count_not_rows), LS_TEST (families_share_their_source), LS_TEST (few_sources_say_nothing),
              LS_TEST (unlike_jobs_have_none), LS_TEST (other_software_does_not_count),
              LS_TEST (many_rows_become_quantiles), LS_TEST (residuals_are_points_of_mfu))
