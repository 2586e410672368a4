#include "analysis/score.h"

#include <math.h>
#include <string.h>

#include "base/order.h"

static int
sign (double a, double b)
{
  return (a > b) - (a < b);
}

static double
tau_b (const LsScoreRow *rows, guint n_rows)
{
  gint64 balance = 0, n_untied_measured = 0, n_untied_predicted = 0;
  for (guint i = 0; i < n_rows; i++)
    for (guint k = 0; k < i; k++) {
      if (isnan (rows[i].predicted_s) || isnan (rows[k].predicted_s))
        continue;
      int measured = sign (rows[i].measured_s, rows[k].measured_s);
      int predicted = sign (rows[i].predicted_s, rows[k].predicted_s);
      balance += measured * predicted;
      n_untied_measured += measured != 0;
      n_untied_predicted += predicted != 0;
    }
  if (n_untied_measured == 0 || n_untied_predicted == 0)
    return NAN;
  return (double) balance / sqrt ((double) n_untied_measured * (double) n_untied_predicted);
}

void
ls_score (const LsScoreRow *rows, guint n_rows, LsScore *ret_score)
{
  LsScore s = { .mape_pct = NAN, .median_abs_pct = NAN, .bias_pct = NAN, .worst_pct = NAN };
  g_autofree double *magnitude = g_new (double, n_rows);
  double sum = 0, sum_abs = 0, worst = 0;

  for (guint i = 0; i < n_rows; i++) {
    double error = ls_score_row_error_pct (&rows[i]);
    if (isnan (error)) {
      s.refused++;
      continue;
    }
    magnitude[s.n++] = fabs (error);
    sum += error;
    sum_abs += fabs (error);
    if (fabs (error) > fabs (worst))
      worst = error;
  }
  if (s.n > 0) {
    s.mape_pct = sum_abs / s.n;
    s.bias_pct = sum / s.n;
    s.worst_pct = worst;
    s.median_abs_pct = ls_median (magnitude, s.n);
  }
  s.kendall_tau = tau_b (rows, n_rows);
  *ret_score = s;
}

double
ls_score_mean_tau (const LsScore *families, guint n_families)
{
  double sum = 0;
  guint n = 0;
  for (guint i = 0; i < n_families; i++)
    if (!isnan (families[i].kendall_tau)) {
      sum += families[i].n * families[i].kendall_tau;
      n += families[i].n;
    }
  return n > 0 ? sum / n : NAN;
}

void
ls_score_by_family (const LsScoreRow *rows, guint n_rows, const char *const *families, guint n_families,
                    LsScore *ret_families, LsScore *ret_total)
{
  g_autofree LsScoreRow *chosen = g_new (LsScoreRow, n_rows);
  for (guint f = 0; f < n_families; f++) {
    guint n = 0;
    for (guint i = 0; i < n_rows; i++)
      if (g_str_equal (rows[i].family, families[f]))
        chosen[n++] = rows[i];
    ls_score (chosen, n, &ret_families[f]);
  }
  ls_score (rows, n_rows, ret_total);
  ret_total->kendall_tau = ls_score_mean_tau (ret_families, n_families);
}

double
ls_score_row_error_pct (const LsScoreRow *row)
{
  return 100 * (row->predicted_s / row->measured_s - 1);
}

double
ls_score_row_memory_error_pct (const LsScoreRow *row)
{
  return 100 * (row->predicted_gib / row->measured_gib - 1);
}

/* --- for another process ------------------------------------------------------------------- */

GVariant *
ls_score_row_pack (const LsScoreRow *row)
{
  const LsTraits *t = &row->traits;
  GVariant *figures
      = g_variant_new_fixed_array (G_VARIANT_TYPE_DOUBLE, t->figure, LS_N_FIGURE_ASPECTS, sizeof *t->figure);
  GVariantBuilder words;
  g_variant_builder_init (&words, G_VARIANT_TYPE ("ams"));
  for (int i = 0; i < LS_N_WORD_ASPECTS; i++)
    g_variant_builder_add (&words, "ms", t->word[i]);
  return g_variant_new ("(dddd@admsmsmsmsmsams)", row->predicted_s, row->ideal_s, row->mfu,
                        row->predicted_gib, figures, row->reason, row->architecture, row->software, t->chip,
                        t->chips, &words);
}

void
ls_score_row_unpack (LsScoreRow *row, GVariant *packed)
{
  LsTraits *t = &row->traits;
  g_autoptr (GVariant) figures = NULL;
  g_autoptr (GVariantIter) words = NULL;
  const char *architecture, *software, *chip, *chips;
  char *reason;
  gsize n;
  g_variant_get (packed, "(dddd@admsm&sm&sm&sm&sams)", &row->predicted_s, &row->ideal_s, &row->mfu,
                 &row->predicted_gib, &figures, &reason, &architecture, &software, &chip, &chips, &words);
  row->reason = reason;
  row->architecture = g_intern_string (architecture);
  row->software = g_intern_string (software);
  t->chip = g_intern_string (chip);
  t->chips = g_intern_string (chips);
  memcpy (t->figure, g_variant_get_fixed_array (figures, &n, sizeof *t->figure), sizeof t->figure);
  for (int i = 0; i < LS_N_WORD_ASPECTS; i++) {
    const char *word = NULL;
    g_variant_iter_next (words, "m&s", &word);
    t->word[i] = g_intern_string (word);
  }
}
