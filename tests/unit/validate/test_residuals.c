/* Pins what errors of predictions are laid beside and become: a calculator's, and residuals. */
#include "ls_test.h"

#include <math.h>
#include <string.h>

#include "analysis/interval.h"
#include "data/measured/read_cases.h"
#include "job/job_interval.h"
#include "validate/validate.h"

/* Pins how a scoreboard becomes residuals, and coverage by the other sources: shares and widths
 * worked out by hand. */

#define ROW(family_, architecture_, over)                                                                    \
  {                                                                                                          \
    .measured_s = (over), .predicted_s = 1, .family = (family_), .architecture = (architecture_),            \
    .software = "Megatron-LM", .mfu = 0.5                                                                    \
  }

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
  LS_CHECK_NEAR (g_array_index (group (r, 1)->residuals, double, 1), sqrt (0.5) * log (1.2), 1e-12);
  LS_CHECK_STR (group (r, 2)->architecture, "ampere");
  LS_CHECK_STR (group (r, 3)->source, "sc21");
}

/* A row with another software is of another group. */
static void
rows_are_grouped_by_software_too (void)
{
  LsScoreRow rows[]
      = { ROW ("a", "ampere", 1.1), ROW ("a", "ampere", 1.2), ROW ("vtrain-multi", "ampere", 1.3) };
  rows[1].software = "loops on PyTorch";
  g_autoptr (LsResiduals) r = ls_residuals_of_rows (rows, G_N_ELEMENTS (rows));
  static const char *const software[] = { "Megatron-LM", "loops on PyTorch", "Megatron-LM" };
  if (LS_CHECK_INT (r->groups->len, ==, G_N_ELEMENTS (software)))
    for (guint i = 0; i < r->groups->len; i++)
      LS_CHECK_STR (group (r, i)->software, software[i]);
}

/* What was predicted before it was seen counts, with the MFU of then. */
static void
first_predictions_count (void)
{
  LsScoreRow rows[] = { ROW ("a", "ampere", 1.1), ROW ("a", "ampere", 1.1) };
  rows[1].first_s = 0.5; /* half of the step, twice the MFU */
  g_autoptr (LsResiduals) r = ls_residuals_of_rows (rows, G_N_ELEMENTS (rows));
  LS_CHECK_NEAR (g_array_index (group (r, 0)->residuals, double, 0), sqrt (0.5) * log (1.1), 1e-12);
  LS_CHECK_NEAR (g_array_index (group (r, 0)->residuals, double, 1), log (2.2), 1e-12);
}

/* Six sources, so each rests on five others, of one software. Of a to e 0 to 4 %, of f 50 %. Without one of a to
 * d the weights are 0.5 each and 2/3 of e with two rows, of which 0.8 is held up to 4 %; without e 0.8 are four
 * of five, up to 3 %, so e is outside, and f always. */
static void
each_source_is_tried_by_the_others (void)
{
  const LsScoreRow rows[] = {
    ROW ("a", "ampere", 1.00), ROW ("b", "ampere", 1.01), ROW ("c", "ampere", 1.02),
    ROW ("d", "ampere", 1.03), ROW ("e", "ampere", 1.04), ROW ("e", "ampere", 1.04),
    ROW ("f", "ampere", 1.50),
  };
  g_autoptr (LsCoverage) c = ls_coverage_new (rows, G_N_ELEMENTS (rows));
  static const double covered[] = { 1, 1, 1, 1, 0, 0 };
  static const double reach[] = { 1.04, 1.04, 1.04, 1.04, 1.03, 1.04 };
  LS_CHECK_INT (c->sources->len, ==, 6);
  for (guint i = 0; i < G_N_ELEMENTS (covered); i++) {
    const LsCoverageLine *l = &g_array_index (c->sources, LsCoverageLine, i);
    LS_CHECK_NEAR (l->covered, covered[i], 1e-12);
    LS_CHECK_NEAR (l->width, reach[i] * reach[i], 1e-12);
  }
  LS_CHECK_INT (c->rows.n, ==, 7);
  LS_CHECK_NEAR (c->rows.covered, 4.0 / 7, 1e-12);
  LS_CHECK_NEAR (c->each.covered, 4.0 / 6, 1e-12);
}

/* Of two softwares, each row once; narrowest of the rows of the other sources: of five 0.8 are four. */
static void
softwares_are_summed_up (void)
{
  LsScoreRow rows[] = {
    ROW ("a", "ampere", 1.00), ROW ("b", "ampere", 1.01), ROW ("c", "ampere", 1.02),
    ROW ("d", "ampere", 1.03), ROW ("e", "ampere", 1.04), ROW ("f", "ampere", 1.50),
    ROW ("g", "ampere", 1.20),
  };
  rows[6].software = "loops on PyTorch";
  g_autoptr (LsCoverage) c = ls_coverage_new (rows, G_N_ELEMENTS (rows));
  if (!LS_CHECK_INT (c->softwares->len, ==, 2))
    return;
  const LsCoverageLine *megatron = &g_array_index (c->softwares, LsCoverageLine, 0),
                       *other = &g_array_index (c->softwares, LsCoverageLine, 1);
  LS_CHECK_STR (megatron->source, "Megatron-LM");
  LS_CHECK_INT (megatron->n, ==, 6);
  LS_CHECK_NEAR (megatron->narrowest, 1.03, 1e-12); /* without e; without a or f 1.04 / 1.01, else 1.04 */
  LS_CHECK_INT (other->n, ==, 1);
  LS_CHECK (isnan (other->narrowest));
  guint n_left_out = 0;
  for (guint i = 0; i < c->left_out->len; i++)
    n_left_out += g_str_has_prefix (g_array_index (c->left_out, LsCoverageLine, i).source, "software ");
  LS_CHECK_INT (n_left_out, ==, 2);
}

static void
too_few_sources_have_no_coverage (void)
{
  const LsScoreRow rows[] = { ROW ("a", "ampere", 1.00), ROW ("b", "ampere", 1.01) };
  g_autoptr (LsCoverage) c = ls_coverage_new (rows, G_N_ELEMENTS (rows));
  LS_CHECK_INT (c->each.n, ==, 0);
  LS_CHECK_INT (c->each.n_unlike, ==, 2);
  LS_CHECK (isnan (c->each.covered) && isnan (c->each.width));
}

#define TRAITS(family_, format_, gpus_, residual_)                                                           \
  {                                                                                                          \
    .measured_s = 1, .predicted_s = exp (-(residual_) / sqrt (0.5)), .family = (family_),                    \
    .architecture = "ampere", .software = "Megatron-LM", .mfu = 0.5,                                         \
    .traits                                                                                                  \
        = {.word = { [LS_ASPECT_FORMAT] = (format_) },                                                       \
           .figure = { [LS_ASPECT_GPUS - LS_N_WORD_ASPECTS] = (gpus_) } }                                    \
  }

static void
what_was_left_out_says_how_much_wider (void)
{
  const LsScoreRow rows[] = {
    TRAITS ("a", "bf16", 8, 0.00), TRAITS ("b", "bf16", 8, 0.01), TRAITS ("c", "bf16", 8, 0.02),
    TRAITS ("d", "bf16", 8, 0.03), TRAITS ("e", "fp8", 8, 0.06),  TRAITS ("f", "fp16", 64, 0.03),
  };
  g_autoptr (LsResiduals) r = ls_residuals_of_rows (rows, G_N_ELEMENTS (rows));
  /* Three formats can be left out. fp8 by the five others, of 3 points: 6 / 3. fp16 by 3 of a to e but 6: half;
   * bf16 by e and f, of 6 points: at most a half. Of three the largest counts. */
  LS_CHECK_INT (r->n_unlike, ==, 3);
  LS_CHECK_NEAR (r->unlike, 2, 1e-9);
  LS_CHECK_INT (group (r, 0)->traits->len, ==, 1);
  LS_CHECK_STR (g_array_index (group (r, 4)->traits, char *, 0), "format fp8");
  LS_CHECK_NEAR (group (r, 5)->figures[LS_ASPECT_GPUS - LS_N_WORD_ASPECTS], 64, 1e-12);
}

/* fp8 by those without it: with no more than fp16 and bf16 to learn from it stays outside; these by the rest
 * are inside. */
static void
each_word_is_tried_by_the_others (void)
{
  const LsScoreRow rows[] = {
    TRAITS ("a", "bf16", 8, 0.00), TRAITS ("b", "bf16", 8, 0.01), TRAITS ("c", "bf16", 8, 0.02),
    TRAITS ("g", "fp16", 8, 0.01), TRAITS ("d", "bf16", 8, 0.03), TRAITS ("e", "fp8", 8, 0.30),
    TRAITS ("f", "fp16", 8, 0.02),
  };
  g_autoptr (LsCoverage) c = ls_coverage_new (rows, G_N_ELEMENTS (rows));
  guint n_seen = 0;
  for (guint i = 0; i < c->left_out->len; i++) {
    const LsCoverageLine *l = &g_array_index (c->left_out, LsCoverageLine, i);
    if (strcmp (l->source, "format fp8") == 0 || strcmp (l->source, "format fp16") == 0) {
      bool is_fp8 = strcmp (l->source, "format fp8") == 0;
      n_seen++;
      LS_CHECK_INT (l->n + l->n_unlike, ==, is_fp8 ? 1u : 2u);
      if (l->n > 0)
        LS_CHECK_NEAR (l->covered, is_fp8 ? 0 : 1, 1e-12);
    }
  }
  LS_CHECK_INT (n_seen, ==, 2);
}

/* Pins what a calculator with one MFU says to values worked out by hand and, where ../shared is, to
 * a known figure, that no row teaches itself, and how refusals are grouped. */

/* A row that is ideal_s / mfu long. */
#define BASELINE_ROW(family_, ideal_s_, mfu)                                                                 \
  {                                                                                                          \
    .id = "x", .family = (family_), .measured_s = (ideal_s_) / (mfu), .predicted_s = 1,                      \
    .ideal_s = (ideal_s_)                                                                                    \
  }

static void
own_leaves_the_row_out (void)
{
  /* The example of the header. */
  LsScoreRow rows[]
      = { BASELINE_ROW ("a", 1, 0.5), BASELINE_ROW ("a", 10, 0.4), BASELINE_ROW ("a", 100, 0.2) };
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
  LsScoreRow rows[] = { BASELINE_ROW ("a", 1, 0.5), BASELINE_ROW ("b", 3, 0.4), BASELINE_ROW ("b", 3, 0.3),
                        BASELINE_ROW ("b", 3, 0.1), BASELINE_ROW ("a", 1, 0.2) };
  ls_baseline (rows, G_N_ELEMENTS (rows));
  LS_CHECK_NEAR (rows[0].baseline_s[LS_BASELINE_OTHERS], 1 / 0.3, 1e-12);
  LS_CHECK_NEAR (rows[4].baseline_s[LS_BASELINE_OTHERS], 1 / 0.3, 1e-12);
  LS_CHECK_NEAR (rows[1].baseline_s[LS_BASELINE_OTHERS], 3 / 0.35, 1e-12);
  LS_CHECK_NEAR (rows[0].baseline_s[LS_BASELINE_OWN], 1 / 0.2, 1e-12);
}

static void
a_family_of_one_learns_from_others (void)
{
  LsScoreRow rows[] = { BASELINE_ROW ("a", 1, 0.5), BASELINE_ROW ("b", 3, 0.4) };
  ls_baseline (rows, G_N_ELEMENTS (rows));
  LS_CHECK_NEAR (rows[0].baseline_s[LS_BASELINE_OWN], 2.5, 1e-12);
  LS_CHECK_NEAR (rows[1].baseline_s[LS_BASELINE_OWN], 6, 1e-12);
}

static void
refused_rows_neither_teach_nor_are_told (void)
{
  LsScoreRow rows[] = { BASELINE_ROW ("a", 1, 0.5), BASELINE_ROW ("a", 1, 0.4), BASELINE_ROW ("a", 1, 0.1) };
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
  g_autoptr (GPtrArray) cases = ls_read_cases (path, NULL, false, diags);
  if (!LS_CHECK (cases != NULL))
    return;
  g_autofree LsScoreRow *rows = g_new0 (LsScoreRow, cases->len);
  guint n = 0;
  for (guint i = 0; i < cases->len; i++) {
    const LsCase *c = g_ptr_array_index (cases, i);
    if (!g_str_has_prefix (c->id, "vtrain-multi"))
      continue;
    uint64_t vocab = ls_model_padded_vocab (&c->model, c->strategy.use.vocab_multiple, c->strategy.tp);
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

LS_TEST_SUITE (LS_TEST (rows_are_grouped_by_family_and_architecture),
               LS_TEST (rows_are_grouped_by_software_too), LS_TEST (first_predictions_count),
               LS_TEST (softwares_are_summed_up), LS_TEST (each_source_is_tried_by_the_others),
               LS_TEST (too_few_sources_have_no_coverage), LS_TEST (what_was_left_out_says_how_much_wider),
               LS_TEST (each_word_is_tried_by_the_others), LS_TEST (own_leaves_the_row_out),
               LS_TEST (others_are_all_rows_of_other_families), LS_TEST (vtrain_is_told_17_5_percent_off),
               LS_TEST (a_family_of_one_learns_from_others),
               LS_TEST (refused_rows_neither_teach_nor_are_told),
               LS_TEST (reasons_that_differ_in_numbers_are_one))
