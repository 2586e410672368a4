#include "show/write_compare.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include <lockstep/units.h>

#include "data/text/json_out.h"

#define MAX_LINKS  10 /* of a text */
#define NAME_WIDTH 28

static double
percent (double a, double b)
{
  return a == 0 || isnan (a) || isnan (b) ? NAN : 100 * (b / a - 1);
}

/* ---- two results ---- */

static const struct {
  const char *key, *title;
  double scale; /* to the unit of the text */
} sections[] = {
  [LS_RESULT_STEP] = { "step", "step", 1 },
  [LS_RESULT_BREAKDOWN] = { "breakdown_s", "breakdown, ms", 1e3 },
  [LS_RESULT_BUBBLES] = { "bubble_parts_s", "bubble, ms", 1e3 },
  [LS_RESULT_PATH] = { "critical_path_ps", "critical path, ms", 1e-9 },
  [LS_RESULT_MEMORY] = { "memory_bytes", "memory, MiB", 1.0 / (1 << 20) },
  [LS_RESULT_LINKS] = { "links", "busiest links, %", 100 },
};

/* Three decimals where the section has a unit, otherwise six digits. */
static void
append_value (GString *out, double value, int s)
{
  if (isnan (value))
    g_string_append_printf (out, " %14s", "-");
  else if (s == LS_RESULT_STEP)
    g_string_append_printf (out, " %14.6g", value);
  else
    g_string_append_printf (out, " %14.3f", value);
}

const char *
ls_compare_section_key (int section)
{
  return sections[section].key;
}

const char *
ls_compare_section_title (int section)
{
  return sections[section].title;
}

void
ls_compare_value_print (GString *out, double value, int section)
{
  append_value (out, value * sections[section].scale, section);
}

static void
append_delta (GString *out, double delta, int s)
{
  if (isnan (delta))
    g_string_append_printf (out, " %14s", "-");
  else if (s == LS_RESULT_STEP)
    g_string_append_printf (out, " %+14.6g", delta);
  else
    g_string_append_printf (out, " %+14.3f", delta);
}

static void
append_row (GString *out, const LsCompareRow *row, int s)
{
  double pct = percent (row->a, row->b), delta = row->b - row->a, scale = sections[s].scale;
  g_string_append_printf (out, "  %-*s", NAME_WIDTH, row->name);
  append_value (out, row->a * scale, s);
  append_value (out, row->b * scale, s);
  append_delta (out, delta * scale, s);
  if (isnan (pct))
    g_string_append_printf (out, " %9s\n", "-");
  else
    g_string_append_printf (out, " %+9.2f\n", pct == 0 ? 0 : pct);
}

static bool
says_nothing (const LsCompareRow *row)
{
  return (row->a == 0 || isnan (row->a)) && (row->b == 0 || isnan (row->b));
}

static double
moved (const LsCompareRow *row)
{
  return fabs ((isnan (row->b) ? 0 : row->b) - (isnan (row->a) ? 0 : row->a));
}

static int
by_move (gconstpointer a, gconstpointer b)
{
  double x = moved (a), y = moved (b);
  return x > y ? -1 : x < y;
}

/* Rows of a section that a text shows. */
static GArray *
shown_rows (const LsResultCompare *c, int s)
{
  GArray *rows = g_array_new (FALSE, FALSE, sizeof (LsCompareRow));
  for (guint i = 0; i < c->sections[s]->len; i++) {
    const LsCompareRow *row = &g_array_index (c->sections[s], LsCompareRow, i);
    if (!says_nothing (row) && (s != LS_RESULT_LINKS || moved (row) > 0))
      g_array_append_vals (rows, row, 1);
  }
  if (s == LS_RESULT_LINKS) {
    g_array_sort (rows, by_move); /* stable: equal ones stay in the order of the file */
    g_array_set_size (rows, MIN (rows->len, MAX_LINKS));
  }
  return rows;
}

/* "A a.json: llama3-8b on dgx-h100, step 1.234 s" */
void
ls_compare_file_print (GString *out, const char *side, const LsResultFile *file)
{
  const char *what = file->model ? file->model : file->trace;
  double step_s = g_array_index (file->sections[LS_RESULT_STEP], LsResultNumber, 0).value;
  g_autofree char *time = ls_format_time (ls_time_from_s (step_s));
  g_string_append_printf (out, "%s %s:", side, file->path);
  if (what)
    g_string_append_printf (out, " %s%s%s,", what, file->cluster ? " on " : "",
                            file->cluster ? file->cluster : "");
  g_string_append_printf (out, " step %s\n", time);
}

static void
append_remark (GString *out, const char *what, const char *a, const char *b)
{
  if (a && b && strcmp (a, b) != 0)
    g_string_append_printf (out, "note: not the same %s\n", what);
}

/* A launch file gives its name to its model: by that it is not known to be another one. */
static bool
may_be_one_model (const LsResultFile *a, const LsResultFile *b)
{
  return (a->model_is_of_file || b->model_is_of_file) && a->params == b->params;
}

char *
ls_result_compare_to_text (const LsResultCompare *c)
{
  GString *out = g_string_new (NULL);
  ls_compare_file_print (out, "A", c->a);
  ls_compare_file_print (out, "B", c->b);
  if (!may_be_one_model (c->a, c->b))
    append_remark (out, "model", c->a->model, c->b->model);
  append_remark (out, "trace", c->a->trace, c->b->trace);
  append_remark (out, "cluster", c->a->cluster, c->b->cluster);
  LsResultFile *const files[] = { (LsResultFile *) c->a, (LsResultFile *) c->b };
  ls_compare_options_print (files, 2, NAME_WIDTH, out);
  for (int s = 0; s < LS_N_RESULT_SECTIONS; s++) {
    g_autoptr (GArray) rows = shown_rows (c, s);
    if (rows->len == 0)
      continue;
    g_string_append_printf (out, "\n%-*s %14s %14s %14s %9s\n", NAME_WIDTH + 2, sections[s].title, "A", "B",
                            "B - A", "%");
    for (guint i = 0; i < rows->len; i++)
      append_row (out, &g_array_index (rows, LsCompareRow, i), s);
  }
  return g_string_free (out, FALSE);
}

char *
ls_result_compare_to_json (const LsResultCompare *c)
{
  LsJsonOut w;
  ls_json_out_open_as (&w, "compare");
  ls_json_out_string (&w, "a", c->a->path);
  ls_json_out_string (&w, "b", c->b->path);
  LsResultFile *const files[] = { (LsResultFile *) c->a, (LsResultFile *) c->b };
  ls_compare_options_write (files, 2, &w);
  for (int s = 0; s < LS_N_RESULT_SECTIONS; s++) {
    ls_json_out_begin_array (&w, sections[s].key);
    for (guint i = 0; i < c->sections[s]->len; i++) {
      const LsCompareRow *row = &g_array_index (c->sections[s], LsCompareRow, i);
      ls_json_out_begin_object (&w, NULL);
      ls_json_out_string (&w, "name", row->name);
      ls_json_out_double (&w, "a", row->a);
      ls_json_out_double (&w, "b", row->b);
      ls_json_out_double (&w, "delta", row->b - row->a);
      ls_json_out_double (&w, "change_pct", percent (row->a, row->b));
      ls_json_out_end_object (&w);
    }
    ls_json_out_end_array (&w);
  }
  return ls_json_out_close (&w);
}

/* ---- spans ---- */

static void
append_ratio (GString *out, double predicted, double measured)
{
  double ratio = measured / predicted;
  if (isfinite (ratio))
    g_string_append_printf (out, " %10.3f\n", ratio);
  else
    g_string_append_printf (out, " %10s\n", "-");
}

static void
append_us (GString *out, double us)
{
  if (isnan (us))
    g_string_append_printf (out, " %14s", "-");
  else
    g_string_append_printf (out, " %14.3f", us);
}

static void
append_total (GString *out, const char *name, double predicted, double measured)
{
  g_string_append_printf (out, "%-*s %6s %6s", NAME_WIDTH, name, "", "");
  append_us (out, predicted);
  append_us (out, measured);
  append_ratio (out, predicted, measured);
}

char *
ls_span_compare_to_text (const LsSpanCompare *c)
{
  GString *out = g_string_new (NULL);
  g_string_append_printf (out, "rank %u\n%-*s %6s %6s %14s %14s %10s\n", c->rank, NAME_WIDTH, "spans", "n",
                          "n meas.", "predicted us", "measured us", "meas./pred.");
  for (guint i = 0; i < c->classes->len; i++) {
    const LsSpanClass *k = &g_array_index (c->classes, LsSpanClass, i);
    g_string_append_printf (out, "%-*s %6u %6u", NAME_WIDTH, k->name, k->n_predicted, k->n_measured);
    append_us (out, k->predicted_us);
    append_us (out, k->measured_us);
    append_ratio (out, k->predicted_us, k->measured_us);
  }
  g_string_append_c (out, '\n');
  append_total (out, "computing", c->predicted.busy_us, c->measured.busy_us);
  append_total (out, "gaps between", c->predicted.gap_us, c->measured.gap_us);
  append_total (out, "step", c->predicted.step_us, c->measured.step_us);
  return g_string_free (out, FALSE);
}

static void
write_total (LsJsonOut *w, const char *key, const LsSpanTotal *t)
{
  ls_json_out_begin_object (w, key);
  ls_json_out_double (w, "step_us", t->step_us);
  ls_json_out_double (w, "busy_us", t->busy_us);
  ls_json_out_double (w, "gap_us", t->gap_us);
  ls_json_out_end_object (w);
}

char *
ls_span_compare_to_json (const LsSpanCompare *c)
{
  LsJsonOut w;
  ls_json_out_open_as (&w, "compare");
  ls_json_out_uint (&w, "rank", c->rank);
  write_total (&w, "predicted", &c->predicted);
  write_total (&w, "measured", &c->measured);
  ls_json_out_begin_array (&w, "classes");
  for (guint i = 0; i < c->classes->len; i++) {
    const LsSpanClass *k = &g_array_index (c->classes, LsSpanClass, i);
    ls_json_out_begin_object (&w, NULL);
    ls_json_out_string (&w, "name", k->name);
    ls_json_out_uint (&w, "n_predicted", k->n_predicted);
    ls_json_out_uint (&w, "n_measured", k->n_measured);
    ls_json_out_double (&w, "predicted_us", k->predicted_us);
    ls_json_out_double (&w, "measured_us", k->measured_us);
    ls_json_out_double (&w, "ratio", k->measured_us / k->predicted_us);
    ls_json_out_end_object (&w);
  }
  ls_json_out_end_array (&w);
  return ls_json_out_close (&w);
}
