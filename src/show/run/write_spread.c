#include "show/run/write_run.h"

#include "show/text_table.h"

static char *
more_text (double part)
{
  return g_strdup_printf ("%+.2f %%", 100 * part);
}

static void
append_rows (const LsStepSpread *s, GString *out)
{
  static const char *const heads[] = { "ranks",  "replicas", "slowest",  "noise",    "5 %",
                                       "median", "95 %",     "by speed", "by noise", "by day" };
  LsTextTable table;
  ls_text_table_init (&table, "rrrrrrrrrr");
  for (guint i = 0; i < G_N_ELEMENTS (heads); i++)
    ls_text_table_add (&table, "%s", heads[i]);
  for (guint i = 0; i < s->rows->len; i++) {
    const LsSpreadRow *row = &g_array_index (s->rows, LsSpreadRow, i);
    const double more[] = { row->slowest, row->noise, row->low - 1, row->median - 1, row->high - 1 };
    const double deviations[] = { row->of_gpus, row->of_noise, row->of_day };
    ls_text_table_add (&table, "%u", row->n_gpus);
    ls_text_table_add (&table, "%u", row->n_replicas);
    for (guint k = 0; k < G_N_ELEMENTS (more); k++)
      ls_text_table_take (&table, more_text (more[k]));
    for (guint k = 0; k < G_N_ELEMENTS (deviations); k++)
      ls_text_table_add (&table, "%.2f %%", 100 * deviations[k]);
  }
  ls_text_table_print (&table, 2, out);
}

static char *
time_text (double seconds)
{
  return ls_format_time (ls_time_from_s (seconds));
}

void
ls_spread_to_text (const LsStepSpread *s, bool is_color, GString *out)
{
  const char *bold = is_color ? "\033[1m" : "", *dim = is_color ? "\033[2m" : "",
             *end = is_color ? "\033[0m" : "";
  const LsSpreadRow *job = ls_step_spread_of_job (s);
  double base = ls_step_spread_base_s (s);
  g_autofree char *mean = time_text (base * (1 + job->noise)), *low = time_text (base * job->low),
                  *median = time_text (base * job->median), *high = time_text (base * job->high),
                  *alike = time_text (s->alike_s);
  g_string_append_printf (out,
                          "\n%sVariation of steps%s  %sjitter %s: %u clusters drawn, %u steps of each%s\n",
                          bold, end, dim, s->jitter, job->n_clusters, job->n_steps, end);
  g_string_append_printf (out, "  steps    mean %s, median %s; 5 %% to 95 %%: %s to %s\n", mean, median, low,
                          high);
  g_string_append_printf (
      out, "  slowest  in the predicted step: %+.2f %% over all %ss alike, %s; drawn one by one %+.2f %%\n",
      100 * (s->step_s / s->alike_s - 1), s->chip, alike, 100 * job->slowest);
  g_string_append_printf (out, "  noise    not in it: %.2f %% of a %s's step makes steps %.2f %% longer\n",
                          100 * s->noise, s->chip, 100 * job->noise);
  if (s->shift != 0)
    g_string_append_printf (out,
                            "  spread   another than the accelerator's file has: steps change by %+.2f %%\n",
                            100 * s->shift);
  append_rows (s, out);
}

static void
json_row (const LsSpreadRow *row, LsJsonOut *w)
{
  ls_json_out_begin_object (w, NULL);
  ls_json_out_uint (w, "ranks", row->n_gpus);
  ls_json_out_uint (w, "replicas", row->n_replicas);
  ls_json_out_uint (w, "clusters", row->n_clusters);
  ls_json_out_uint (w, "steps", row->n_steps);
  ls_json_out_double (w, "slowest", row->slowest);
  ls_json_out_double (w, "noise", row->noise);
  ls_json_out_double (w, "p5", row->low);
  ls_json_out_double (w, "median", row->median);
  ls_json_out_double (w, "p95", row->high);
  ls_json_out_double (w, "deviation_by_speed", row->of_gpus);
  ls_json_out_double (w, "deviation_by_noise", row->of_noise);
  ls_json_out_double (w, "deviation_by_day", row->of_day);
  ls_json_out_end_object (w);
}

void
ls_spread_to_json (const LsStepSpread *s, LsJsonOut *w)
{
  const LsSpreadRow *job = ls_step_spread_of_job (s);
  double base = ls_step_spread_base_s (s);
  ls_json_out_begin_object (w, "step_spread");
  ls_json_out_string (w, "jitter", s->jitter);
  ls_json_out_string (w, "source", s->source);
  ls_json_out_double (w, "spread", s->spread);
  ls_json_out_double (w, "step_noise", s->noise);
  ls_json_out_double (w, "day", s->day);
  ls_json_out_uint (w, "seed", s->seed);
  ls_json_out_double (w, "alike_s", s->alike_s);
  ls_json_out_double (w, "slack", s->slack);
  ls_json_out_double (w, "shift", s->shift);
  ls_json_out_double (w, "mean_s", base * (1 + job->noise));
  ls_json_out_double (w, "median_s", base * job->median);
  ls_json_out_double (w, "p5_s", base * job->low);
  ls_json_out_double (w, "p95_s", base * job->high);
  ls_json_out_begin_array (w, "quantiles");
  for (int i = 0; i < LS_SPREAD_N_QUANTILES; i++) {
    ls_json_out_begin_object (w, NULL);
    ls_json_out_double (w, "share", (i + 0.5) / LS_SPREAD_N_QUANTILES);
    ls_json_out_double (w, "step_s", base * job->quantile[i]);
    ls_json_out_end_object (w);
  }
  ls_json_out_end_array (w);
  ls_json_out_begin_array (w, "scales");
  for (guint i = 0; i < s->rows->len; i++)
    json_row (&g_array_index (s->rows, LsSpreadRow, i), w);
  ls_json_out_end_array (w);
  ls_json_out_end_object (w);
}
