#include "show/run/write_run.h"

#include <math.h>

#define N_SHOWN 20

/* "link at 50 % of its capacity", "gpu at 90 % of its speed", "failed link". */
static char *
what_text (const LsFaultAsk *ask, const char *kind)
{
  if (ask->share == 0)
    return g_strdup_printf ("failed %s", kind);
  return g_strdup_printf ("%s at %.4g %% of its %s", kind, 100 * ask->share,
                          ask->kind == LS_FAULT_LINK ? "capacity" : "speed");
}

void
ls_faults_to_text (const LsFaultTable *t, bool is_color, GString *out)
{
  const char *bold = is_color ? "\033[1m" : "", *dim = is_color ? "\033[2m" : "",
             *end = is_color ? "\033[0m" : "";
  if (!t)
    return;
  const char *kind = t->ask.kind == LS_FAULT_GPU ? t->chip : ls_fault_kind_name (t->ask.kind);
  if (t->rows->len == 0) {
    g_string_append_printf (out, "\n%sOne %s slower%s  there is none that the step uses\n", bold, kind, end);
    return;
  }
  g_autofree char *what = what_text (&t->ask, kind);
  g_string_append_printf (
      out, "\n%sOne %s%s  %sthe step with each, one at a time; alike: as many as it stands for%s\n", bold,
      what, end, dim, end);
  g_string_append_printf (out, "  %12s %9s %7s  %s\n", "step", "slower", "alike", kind);
  for (guint i = 0; i < MIN (t->rows->len, N_SHOWN); i++) {
    const LsFaultRow *row = &g_array_index (t->rows, LsFaultRow, i);
    g_autofree char *step = row->cut_off ? g_strdup ("none") : ls_format_time (ls_time_from_s (row->step_s)),
                    *slower
        = row->cut_off ? g_strdup ("") : g_strdup_printf ("%+.2f %%", 100 * (row->step_s / t->step_s - 1));
    g_string_append_printf (out, "  %12s %9s %7u  %s", step, slower, row->n_alike, row->first);
    if (row->pattern)
      g_string_append_printf (out, "  of %s", row->pattern);
    if (row->cut_off)
      g_string_append_printf (out, "  %s", row->cut_off);
    g_string_append_c (out, '\n');
  }
  if (t->rows->len > N_SHOWN)
    g_string_append_printf (out, "  %u more slow the step no more than these\n", t->rows->len - N_SHOWN);
  if (t->n_idle > 0)
    g_string_append_printf (out, "  %u links carry nothing\n", t->n_idle);
}

void
ls_faults_to_json (const LsFaultTable *t, LsJsonOut *w)
{
  ls_json_out_begin_object (w, "faults");
  ls_json_out_string (w, "each", ls_fault_kind_name (t->ask.kind));
  ls_json_out_double (w, "share", t->ask.share);
  ls_json_out_uint (w, "n_idle", t->n_idle);
  ls_json_out_begin_array (w, "rows");
  for (guint i = 0; i < t->rows->len; i++) {
    const LsFaultRow *row = &g_array_index (t->rows, LsFaultRow, i);
    ls_json_out_begin_object (w, NULL);
    ls_json_out_string (w, "first", row->first);
    ls_json_out_string (w, "pattern", row->pattern);
    ls_json_out_uint (w, "n_alike", row->n_alike);
    ls_json_out_double (w, "step_time_s", row->step_s);
    ls_json_out_double (w, "slower", row->step_s / t->step_s - 1);
    ls_json_out_string (w, "cut_off", row->cut_off);
    ls_json_out_end_object (w);
  }
  ls_json_out_end_array (w);
  ls_json_out_end_object (w);
}
