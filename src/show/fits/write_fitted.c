#include "show/fits/write_fits.h"

#include <math.h>

#include "analysis/conformal.h"
#include "analysis/interval.h"
#include "calibrate/fitted_file.h"
#include "show/text_table.h"

#define NOTHING 1e-9 /* of the largest singular value: rounding */

/* ---- for people ---- */

static void
add_line (LsTextTable *t, const LsFittedLine *l)
{
  ls_text_table_add (t, "%s", l->name);
  ls_text_table_add (t, "%.3g%s", l->start, l->unit);
  ls_text_table_add (t, "%.3g%s", l->value, l->unit);
  if (l->is_fitted)
    ls_text_table_add (t, "%.1f %%", 100 * l->error);
  else
    ls_text_table_add (t, "-");
  ls_text_table_add (t, "%.3g to %.3g%s", l->lo, l->hi, l->unit);
  ls_text_table_add (t, "%.2f %%", 100 * l->sensitivity);
  if (l->is_fitted)
    ls_text_table_add (t,
                       l->at_bound ? "fitted, at the end of its range: something else is wrong" : "fitted");
  else
    ls_text_table_add (t, "kept: %s", l->why);
}

static void
append_lines (GString *out, const LsFittedReport *r)
{
  static const char *const head[]
      = { "parameter", "before", "fitted", "std error", "range", "moves a step by", "" };
  LsTextTable t;
  ls_text_table_init (&t, "lrrrlrl");
  for (guint i = 0; i < G_N_ELEMENTS (head); i++)
    ls_text_table_add (&t, "%s", head[i]);
  for (guint i = 0; i < r->lines->len; i++)
    add_line (&t, &g_array_index (r->lines, LsFittedLine, i));
  ls_text_table_print (&t, 0, out);
}

static void
add_prediction (LsTextTable *t, double predicted_s, double measured_s)
{
  if (isnan (predicted_s)) {
    ls_text_table_add (t, "-");
    ls_text_table_add (t, "-");
    return;
  }
  ls_text_table_add (t, "%.4g s", predicted_s);
  ls_text_table_add (t, "%+.1f %%", 100 * (predicted_s / measured_s - 1));
}

static void
append_rows (GString *out, const LsFittedReport *r)
{
  static const char *const head[] = { "run", "measured", "before", "", "fitted", "", "left out", "" };
  LsTextTable t;
  ls_text_table_init (&t, "lrrrrrrr");
  for (guint i = 0; i < G_N_ELEMENTS (head); i++)
    ls_text_table_add (&t, "%s", head[i]);
  for (guint i = 0; i < r->rows->len; i++) {
    const LsFittedRow *row = &g_array_index (r->rows, LsFittedRow, i);
    ls_text_table_add (&t, "%s", row->id);
    ls_text_table_add (&t, "%.4g s", row->measured_s);
    add_prediction (&t, row->before_s, row->measured_s);
    add_prediction (&t, row->after_s, row->measured_s);
    add_prediction (&t, row->left_out_s, row->measured_s);
  }
  ls_text_table_print (&t, 0, out);
}

static void
append_interval (GString *out, const LsFittedRuns *runs)
{
  if (runs->low > 0)
    g_string_append_printf (out,
                            "interval of a job like these, from %u runs left out one at a time: "
                            "%.3f to %.3f times the predicted step, made to hold %.0f %%\n",
                            runs->n, runs->low, runs->high, 100 * LS_INTERVAL_LEVEL);
  else if (runs->n > 0)
    g_string_append_printf (out,
                            "no interval from these runs: they are of %u different jobs, %u are enough\n",
                            runs->n, ls_conformal_least (LS_INTERVAL_LEVEL));
}

char *
ls_fitted_report_to_text (const LsFittedReport *r)
{
  GString *out = g_string_new (NULL);
  g_string_append_printf (out, "%s, fitted to %u runs of %s\n\n", r->cluster, r->rows->len, r->file);
  append_lines (out, r);
  g_string_append (out, "\nsingular values of all, per half of their ranges:");
  for (guint i = 0; i < r->singular->len; i++) {
    double s = g_array_index (r->singular, double, i);
    g_string_append_printf (out, " %.2g", s < NOTHING * g_array_index (r->singular, double, 0) ? 0 : s);
  }
  if (!isnan (r->condition))
    g_string_append_printf (out, "; condition of what is fitted %.3g", r->condition);
  g_string_append (out, "\n\n");
  append_rows (out, r);
  g_string_append_c (out, '\n');
  ls_fitted_error_print (&r->error, out);
  g_string_append_c (out, '\n');
  append_interval (out, &r->left_out);
  if (isnan (r->error.after))
    g_string_append (out, "nothing was fitted: keep the cluster as it is\n");
  else if (r->error.left_out >= r->error.before)
    g_string_append (out, "runs left out are predicted no better than by the cluster as it is: keep that\n");
  return g_string_free (out, FALSE);
}
