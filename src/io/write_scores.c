#include "io/write_scores.h"

#include <math.h>

#include "io/json_out.h"

double
ls_score_row_error_pct (const LsScoreRow *row)
{
  return 100 * (row->predicted_s / row->measured_s - 1);
}

/* ---- JSON ---- */

static void
write_score (LsJsonOut *w, const char *name, const LsScore *s)
{
  ls_json_out_begin_object (w, name);
  ls_json_out_uint (w, "n", s->n);
  ls_json_out_uint (w, "refused", s->refused);
  ls_json_out_double (w, "mape_pct", s->mape_pct);
  ls_json_out_double (w, "median_abs_pct", s->median_abs_pct);
  ls_json_out_double (w, "bias_pct", s->bias_pct);
  ls_json_out_double (w, "worst_pct", s->worst_pct);
  ls_json_out_double (w, "kendall_tau", s->kendall_tau);
  ls_json_out_end_object (w);
}

static void
write_row (LsJsonOut *w, const LsScoreRow *row)
{
  ls_json_out_begin_object (w, NULL);
  ls_json_out_string (w, "id", row->id);
  ls_json_out_double (w, "measured_s", row->measured_s);
  ls_json_out_double (w, "predicted_s", row->predicted_s);
  ls_json_out_double (w, "error_pct", ls_score_row_error_pct (row));
  ls_json_out_string (w, "status", isnan (row->predicted_s) ? "refused" : "ok");
  ls_json_out_string (w, "reason", row->reason);
  ls_json_out_end_object (w);
}

char *
ls_scores_to_json (const LsScores *s)
{
  GString *text = g_string_new (NULL);
  LsJsonOut w;
  ls_json_out_init (&w, text, 2);
  ls_json_out_begin_object (&w, NULL);
  write_score (&w, "summary", &s->total);
  ls_json_out_begin_object (&w, "by_family");
  for (guint i = 0; i < s->n_families; i++)
    write_score (&w, s->families[i].family, &s->families[i].score);
  ls_json_out_end_object (&w);
  ls_json_out_begin_array (&w, "cases");
  for (guint i = 0; i < s->n_rows; i++)
    write_row (&w, &s->rows[i]);
  ls_json_out_end_array (&w);
  if (s->assumed && s->assumed[0]) {
    ls_json_out_begin_array (&w, "assumed");
    for (guint i = 0; s->assumed[i]; i++)
      ls_json_out_string (&w, NULL, s->assumed[i]);
    ls_json_out_end_array (&w);
  }
  ls_json_out_end_object (&w);
  g_string_append_c (text, '\n');
  return g_string_free (text, FALSE);
}

/* ---- text ---- */

/* A number with a sign if asked for, or a dash, right-aligned. */
static void
append_number (GString *out, int width, const char *format, double value)
{
  g_autofree char *text = isnan (value) ? g_strdup ("-") : NULL;
  if (!text) {
    char buffer[G_ASCII_DTOSTR_BUF_SIZE];
    text = g_strdup (g_ascii_formatd (buffer, sizeof buffer, format, value));
  }
  g_string_append_printf (out, "%*s", width, text);
}

static int
longest_id (const LsScores *s)
{
  glong width = 6;
  for (guint i = 0; i < s->n_rows; i++)
    width = MAX (width, g_utf8_strlen (s->rows[i].id, -1));
  return (int) width;
}

static void
append_row (GString *out, int id_width, const LsScoreRow *row)
{
  g_string_append_printf (out, "%-*s", id_width, row->id);
  append_number (out, 14, "%.4f", row->measured_s);
  append_number (out, 14, "%.4f", row->predicted_s);
  if (isnan (row->predicted_s))
    g_string_append_printf (out, "   refused: %s\n", row->reason ? row->reason : "");
  else {
    append_number (out, 9, "%+.1f", ls_score_row_error_pct (row));
    g_string_append (out, " %\n");
  }
}

static void
append_score (GString *out, int id_width, const char *name, const LsScore *s)
{
  g_string_append_printf (out, "%-*s%6u%9u", id_width, name, s->n, s->refused);
  append_number (out, 9, "%.1f", s->mape_pct);
  append_number (out, 9, "%.1f", s->median_abs_pct);
  append_number (out, 9, "%+.1f", s->bias_pct);
  append_number (out, 9, "%+.1f", s->worst_pct);
  append_number (out, 9, "%.3f", s->kendall_tau);
  g_string_append_c (out, '\n');
}

char *
ls_scores_to_text (const LsScores *s)
{
  int id_width = longest_id (s);
  GString *out = g_string_new (NULL);
  g_string_append_printf (out, "%-*s%14s%14s%9s\n", id_width, "id", "measured s", "predicted s", "error");
  for (guint i = 0; i < s->n_rows; i++)
    append_row (out, id_width, &s->rows[i]);

  id_width = MAX (id_width, 14);
  g_string_append_printf (out, "\n%-*s%6s%9s%9s%9s%9s%9s%9s\n", id_width, "family", "n", "refused", "mape %",
                          "median %", "bias %", "worst %", "tau");
  for (guint i = 0; i < s->n_families; i++)
    append_score (out, id_width, s->families[i].family, &s->families[i].score);
  append_score (out, id_width, "all", &s->total);
  for (guint i = 0; s->assumed && s->assumed[i]; i++)
    g_string_append_printf (out, "%s%s", i == 0 ? "\nassumed for every row, whatever it says: " : ", ", s->assumed[i]);
  if (s->assumed && s->assumed[0])
    g_string_append_c (out, '\n');
  return g_string_free (out, FALSE);
}
