#include "show/fits/write_fits.h"

#include <math.h>

#include "data/text/json_out.h"

static void
write_statistics (LsJsonOut *w, const LsScore *s)
{
  ls_json_out_uint (w, "n", s->n);
  ls_json_out_uint (w, "refused", s->refused);
  ls_json_out_double (w, "mape_pct", s->mape_pct);
  ls_json_out_double (w, "median_abs_pct", s->median_abs_pct);
  ls_json_out_double (w, "bias_pct", s->bias_pct);
  ls_json_out_double (w, "worst_pct", s->worst_pct);
  ls_json_out_double (w, "kendall_tau", s->kendall_tau);
}

static void
write_score (LsJsonOut *w, const char *name, const LsScore *s)
{
  ls_json_out_begin_object (w, name);
  write_statistics (w, s);
  ls_json_out_end_object (w);
}

static const char *const baseline_keys[LS_N_BASELINES]
    = { [LS_BASELINE_OWN] = "own", [LS_BASELINE_OTHERS] = "others" };

/* With what a calculator reaches on the same rows. */
static void
write_compared (LsJsonOut *w, const char *name, const LsScore *s, const LsScore baseline[LS_N_BASELINES])
{
  ls_json_out_begin_object (w, name);
  write_statistics (w, s);
  ls_json_out_begin_object (w, "constant_mfu");
  for (LsBaseline b = 0; b < LS_N_BASELINES; b++)
    write_score (w, baseline_keys[b], &baseline[b]);
  ls_json_out_end_object (w);
  ls_json_out_end_object (w);
}

static void
write_row (LsJsonOut *w, const LsScoreRow *row)
{
  ls_json_out_begin_object (w, NULL);
  ls_json_out_string (w, "id", row->id);
  ls_json_out_string (w, "source", row->source && *row->source ? row->source : NULL);
  ls_json_out_double (w, "measured_s", row->measured_s);
  ls_json_out_double (w, "predicted_s", row->predicted_s);
  ls_json_out_double (w, "error_pct", ls_score_row_error_pct (row));
  ls_json_out_string (w, "status", isnan (row->predicted_s) ? "refused" : "ok");
  ls_json_out_string (w, "reason", row->reason);
  if (row->measured_gib > 0) {
    ls_json_out_double (w, "measured_gib", row->measured_gib);
    ls_json_out_double (w, "predicted_gib", row->predicted_gib);
    ls_json_out_double (w, "memory_error_pct", ls_score_row_memory_error_pct (row));
  }
  ls_json_out_double (w, "ideal_s", row->ideal_s);
  ls_json_out_begin_object (w, "constant_mfu_s");
  for (LsBaseline b = 0; b < LS_N_BASELINES; b++)
    ls_json_out_double (w, baseline_keys[b], row->baseline_s[b]);
  ls_json_out_end_object (w);
  ls_json_out_end_object (w);
}

static void
write_refusals (LsJsonOut *w, const LsScores *s)
{
  ls_json_out_begin_array (w, "refusals");
  for (guint i = 0; i < s->n_refusals; i++) {
    ls_json_out_begin_object (w, NULL);
    ls_json_out_uint (w, "n", s->refusals[i].n);
    ls_json_out_string (w, "reason", s->refusals[i].reason);
    ls_json_out_string (w, "example", s->refusals[i].example);
    ls_json_out_end_object (w);
  }
  ls_json_out_end_array (w);
}

static void
write_ablation (LsJsonOut *w, const LsScores *s, const LsAblationScore *a)
{
  ls_json_out_begin_object (w, NULL);
  ls_json_out_string (w, "off", a->key);
  write_score (w, "summary", &a->total);
  ls_json_out_begin_object (w, "by_family");
  for (guint i = 0; i < s->n_families; i++)
    write_score (w, s->families[i].family, &a->families[i]);
  ls_json_out_end_object (w);
  ls_json_out_end_object (w);
}

static void
write_ablations (LsJsonOut *w, const LsScores *s)
{
  if (s->n_ablations == 0)
    return;
  ls_json_out_begin_array (w, "ablation");
  for (guint i = 0; i < s->n_ablations; i++)
    write_ablation (w, s, &s->ablations[i]);
  ls_json_out_end_array (w);
}

static void
write_names (LsJsonOut *w, const char *key, const char *const *names)
{
  if (!names || !names[0])
    return;
  ls_json_out_begin_array (w, key);
  for (guint i = 0; names[i]; i++)
    ls_json_out_string (w, NULL, names[i]);
  ls_json_out_end_array (w);
}

char *
ls_scores_to_json (const LsScores *s)
{
  LsJsonOut w;
  ls_json_out_open_as (&w, "validate");
  write_compared (&w, "summary", &s->total, s->total_baseline);
  if (s->memory.n + s->memory.refused > 0)
    write_score (&w, "memory", &s->memory);
  ls_json_out_begin_object (&w, "by_family");
  for (guint i = 0; i < s->n_families; i++)
    write_compared (&w, s->families[i].family, &s->families[i].score, s->families[i].baseline);
  ls_json_out_end_object (&w);
  ls_json_out_begin_array (&w, "cases");
  for (guint i = 0; i < s->n_rows; i++)
    write_row (&w, &s->rows[i]);
  ls_json_out_end_array (&w);
  write_refusals (&w, s);
  write_ablations (&w, s);
  if (s->coverage)
    ls_coverage_to_json (s->coverage, &w);
  write_names (&w, "assumed", s->assumed);
  write_names (&w, "families_with_facts", s->own_knobs);
  write_names (&w, "clusters_by_hardware", s->by_hardware);
  write_names (&w, "ignored_columns", s->ignored);
  return ls_json_out_close (&w);
}
