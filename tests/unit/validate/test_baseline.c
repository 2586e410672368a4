/* Pins what a calculator with one MFU says to values worked out by hand and, where ../shared is, to
 * a known figure, that no row teaches itself, and how refusals are grouped. */
#include "ls_test.h"

#include <math.h>

#include "analysis/score.h"
#include "data/measured/read_cases.h"
#include "validate/baseline.h"
#include "validate/scores.h"

/* A row that is ideal_s / mfu long. */
#define ROW(family_, ideal_s_, mfu)                                                                          \
  {                                                                                                          \
    .id = "x", .family = (family_), .measured_s = (ideal_s_) / (mfu), .predicted_s = 1,                      \
    .ideal_s = (ideal_s_)                                                                                    \
  }

static void
own_leaves_the_row_out (void)
{
  /* The example of the header. */
  LsScoreRow rows[] = { ROW ("a", 1, 0.5), ROW ("a", 10, 0.4), ROW ("a", 100, 0.2) };
  ls_baseline (rows, G_N_ELEMENTS (rows));
  LS_CHECK_NEAR (rows[0].baseline_s[LS_BASELINE_OWN], 1 / 0.3, 1e-12);
  LS_CHECK_NEAR (rows[1].baseline_s[LS_BASELINE_OWN], 10 / 0.35, 1e-12);
  LS_CHECK_NEAR (rows[2].baseline_s[LS_BASELINE_OWN], 100 / 0.45, 1e-12);
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    LS_CHECK (isnan (rows[i].baseline_s[LS_BASELINE_OTHERS]));
}

static void
others_are_all_rows_of_other_families (void)
{
  LsScoreRow rows[]
      = { ROW ("a", 1, 0.5), ROW ("b", 3, 0.4), ROW ("b", 3, 0.3), ROW ("b", 3, 0.1), ROW ("a", 1, 0.2) };
  ls_baseline (rows, G_N_ELEMENTS (rows));
  LS_CHECK_NEAR (rows[0].baseline_s[LS_BASELINE_OTHERS], 1 / 0.3, 1e-12);
  LS_CHECK_NEAR (rows[4].baseline_s[LS_BASELINE_OTHERS], 1 / 0.3, 1e-12);
  LS_CHECK_NEAR (rows[1].baseline_s[LS_BASELINE_OTHERS], 3 / 0.35, 1e-12);
  LS_CHECK_NEAR (rows[0].baseline_s[LS_BASELINE_OWN], 1 / 0.2, 1e-12);
}

static void
a_family_of_one_learns_from_others (void)
{
  LsScoreRow rows[] = { ROW ("a", 1, 0.5), ROW ("b", 3, 0.4) };
  ls_baseline (rows, G_N_ELEMENTS (rows));
  LS_CHECK_NEAR (rows[0].baseline_s[LS_BASELINE_OWN], 2.5, 1e-12);
  LS_CHECK_NEAR (rows[1].baseline_s[LS_BASELINE_OWN], 6, 1e-12);
}

static void
refused_rows_neither_teach_nor_are_told (void)
{
  LsScoreRow rows[] = { ROW ("a", 1, 0.5), ROW ("a", 1, 0.4), ROW ("a", 1, 0.1) };
  rows[2].predicted_s = rows[2].ideal_s = NAN;
  ls_baseline (rows, G_N_ELEMENTS (rows));
  LS_CHECK_NEAR (rows[0].baseline_s[LS_BASELINE_OWN], 2.5, 1e-12);
  LS_CHECK_NEAR (rows[1].baseline_s[LS_BASELINE_OWN], 2, 1e-12);
  LS_CHECK (isnan (rows[2].baseline_s[LS_BASELINE_OWN]));
}

/* vTrain's multi-node runs, all on A100s with 312 TFLOP/s; a constant MFU is known to be 17.5 % off
 * there. Nothing is simulated. */
static void
vtrain_is_told_17_5_percent_off (void)
{
  const char *shared = ls_test_shared_data ();
  if (!shared)
    return;
  g_autofree char *path = g_build_filename (shared, "runs", "cases.csv", NULL);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GPtrArray) cases = ls_read_cases (path, NULL, diags);
  if (!LS_CHECK (cases != NULL))
    return;
  g_autofree LsScoreRow *rows = g_new0 (LsScoreRow, cases->len);
  guint n = 0;
  for (guint i = 0; i < cases->len; i++) {
    const LsCase *c = g_ptr_array_index (cases, i);
    if (!g_str_has_prefix (c->id, "vtrain-multi"))
      continue;
    uint64_t vocab = ls_model_padded_vocab (&c->model, c->strategy.tp);
    double flops = ls_model_flops (&c->model, vocab, c->model.seq, c->strategy.global_batch, false);
    rows[n++] = (LsScoreRow) { .id = c->id,
                               .family = "vtrain-multi",
                               .measured_s = c->measured_s,
                               .predicted_s = 1,
                               .ideal_s = flops / (312e12 * c->strategy.gpus) };
  }
  ls_baseline (rows, n);
  for (guint i = 0; i < n; i++)
    rows[i].predicted_s = rows[i].baseline_s[LS_BASELINE_OWN];
  LsScore score;
  ls_score (rows, n, &score);
  LS_CHECK_INT (score.n, ==, 43);
  LS_CHECK_NEAR (score.mape_pct, 17.5, 0.1 / 17.5);
}

#define REFUSED(id_, reason_)                                                                                \
  {                                                                                                          \
    .id = (id_), .predicted_s = NAN, .reason = (reason_)                                                     \
  }

static void
reasons_that_differ_in_numbers_are_one (void)
{
  static const LsScoreRow rows[] = {
    REFUSED ("1", "1f1b: no zero3"), REFUSED ("2", "got 7 of 12"), REFUSED ("3", "1f1b: no zero3"),
    { .id = "4", .predicted_s = 1 }, REFUSED ("5", "got 13 of 1"), REFUSED ("6", "got 1f of 1"),
    REFUSED ("7", "got 2 of 12"),
  };
  g_autoptr (GArray) refusals = ls_refusals (rows, G_N_ELEMENTS (rows));
  if (!LS_CHECK (refusals->len == 3))
    return;
  static const LsRefusal expected[] = { { (char *) "got # of #", 3, "2" },
                                        { (char *) "1f1b: no zero3", 2, "1" },
                                        { (char *) "got 1f of 1", 1, "6" } };
  for (guint i = 0; i < 3; i++) {
    const LsRefusal *r = &g_array_index (refusals, LsRefusal, i);
    LS_CHECK_STR (r->reason, expected[i].reason);
    LS_CHECK_STR (r->example, expected[i].example);
    LS_CHECK_INT (r->n, ==, expected[i].n);
  }
}

LS_TEST_SUITE (LS_TEST (own_leaves_the_row_out), LS_TEST (others_are_all_rows_of_other_families),
               LS_TEST (vtrain_is_told_17_5_percent_off), LS_TEST (a_family_of_one_learns_from_others),
               LS_TEST (refused_rows_neither_teach_nor_are_told),
               LS_TEST (reasons_that_differ_in_numbers_are_one))
