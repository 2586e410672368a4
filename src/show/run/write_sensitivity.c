#include "show/run/write_run.h"

#include <math.h>

#define BAR_WIDTH   30
#define LABEL_WIDTH 28

/* Most effect first; of equals that which the table has first. */
static void
sort (const LsSensitivityTable *t, guint *order)
{
  for (guint i = 0; i < t->n; i++) {
    guint at = i;
    for (; at > 0 && fabs (t->rows[i].elasticity) > fabs (t->rows[order[at - 1]].elasticity); at--)
      order[at] = order[at - 1];
    order[at] = i;
  }
}

void
ls_sensitivity_to_text (const LsSensitivityTable *t, bool is_color, bool is_ascii, GString *out)
{
  const char *bold = is_color ? "\033[1m" : "", *dim = is_color ? "\033[2m" : "",
             *end = is_color ? "\033[0m" : "";
  g_autofree guint *order = g_new0 (guint, t->n);
  sort (t, order);
  g_string_append_printf (
      out, "\n%sSensitivity%s  %spercent of the step's time per percent more of each; ms per percent%s\n",
      bold, end, dim, end);
  double most = t->n > 0 ? fabs (t->rows[order[0]].elasticity) : 0;
  for (guint i = 0; i < t->n; i++) {
    const LsSensitivity *row = &t->rows[order[i]];
    int n = most > 0 ? (int) lround (fabs (row->elasticity) / most * BAR_WIDTH) : 0;
    g_string_append_printf (out, "  %-*s %+7.3f %+11.4f ms%s", LABEL_WIDTH, row->label,
                            row->elasticity == 0 ? 0 : row->elasticity,
                            row->seconds_per_percent == 0 ? 0 : 1e3 * row->seconds_per_percent,
                            n > 0 ? "  " : "");
    for (int k = 0; k < n; k++)
      g_string_append (out, is_ascii ? "#" : "█");
    g_string_append_c (out, '\n');
  }
}

void
ls_sensitivity_to_json (const LsSensitivityTable *t, LsJsonOut *w)
{
  ls_json_out_begin_array (w, "sensitivity");
  for (guint i = 0; i < t->n; i++) {
    const LsSensitivity *row = &t->rows[i];
    ls_json_out_begin_object (w, NULL);
    ls_json_out_string (w, "parameter", row->parameter);
    ls_json_out_double (w, "elasticity", row->elasticity);
    ls_json_out_double (w, "seconds_per_percent", row->seconds_per_percent);
    ls_json_out_double (w, "step_time_up_s", row->up_s);
    ls_json_out_double (w, "step_time_down_s", row->down_s);
    ls_json_out_end_object (w);
  }
  ls_json_out_end_array (w);
}
