#include "show/answers.h"

#include <lockstep/units.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "data/text/json_out.h"

#define MAX_LINKS  10 /* of a text */
#define NAME_WIDTH 28

static void compare_texts_print (LsResultFile *const *files, guint n, GString *out);

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

static void
compare_value_print (GString *out, double value, int section)
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
static void
compare_file_print (GString *out, const char *side, const LsResultFile *file)
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

/* A line above all, where the results are not of one program. */
static void
compare_programs_print (GString *out, LsResultFile *const *files, guint n)
{
  bool is_mixed = false;
  for (guint i = 1; i < n; i++)
    is_mixed |= g_strcmp0 (ls_result_option (files[i]->options, "--software"),
                           ls_result_option (files[0]->options, "--software"))
        != 0;
  if (is_mixed)
    g_string_append (out, "These results mix programs (--software): what differs is of these, too.\n");
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
  LsResultFile *const files[] = { (LsResultFile *) c->a, (LsResultFile *) c->b };
  compare_programs_print (out, files, 2);
  compare_file_print (out, "A", c->a);
  compare_file_print (out, "B", c->b);
  if (!may_be_one_model (c->a, c->b))
    append_remark (out, "model", c->a->model, c->b->model);
  append_remark (out, "trace", c->a->trace, c->b->trace);
  append_remark (out, "cluster", c->a->cluster, c->b->cluster);
  compare_texts_print (files, 2, out);
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

/* --- options that differ, and more than two results in columns ----------------------------------- */

/* "A" to "Z", then "27" */
static char *
column_name (guint i)
{
  return i < 26 ? g_strdup_printf ("%c", 'A' + (int) i) : g_strdup_printf ("%u", i + 1);
}

/* --- options, and what numbers rest on --- */

/* A list of texts that each file has. */
typedef struct {
  const char *key, *title;
  size_t list; /* its place in LsResultFile */
  const char *(*value) (const GPtrArray *list, const char *name);
  bool of_differing; /* shown: else all of them */
} Texts;

static const Texts options
    = { "options", "options that differ", offsetof (LsResultFile, options), ls_result_option, true };
static const Texts assumptions
    = { "rests_on", "what they rest on", offsetof (LsResultFile, assumptions), ls_result_assumption, false };

static const GPtrArray *
list_of (const LsResultFile *file, const Texts *t)
{
  return *(GPtrArray *const *) ((const char *) file + t->list);
}

static const char *
text_of (const LsResultFile *file, const Texts *t, const char *name)
{
  return t->value (list_of (file, t), name);
}

static bool
is_shown (LsResultFile *const *files, guint n, const Texts *t, const char *name)
{
  for (guint i = 1; i < n && t->of_differing; i++)
    if (g_strcmp0 (text_of (files[i], t, name), text_of (files[0], t, name)) != 0)
      return true;
  return !t->of_differing;
}

static bool
has_text (const GPtrArray *names, const char *name)
{
  return g_ptr_array_find_with_equal_func ((GPtrArray *) names, name, g_str_equal, NULL);
}

/* Names (char *, borrowed) of those that are shown, in the order in which they appear; where a file does not
 * say its own, none. n > 0. Free with g_ptr_array_unref(). */
static GPtrArray *
compare_names (LsResultFile *const *files, guint n, const Texts *t)
{
  GPtrArray *names = g_ptr_array_new ();
  for (guint i = 0; i < n; i++)
    if (list_of (files[i], t)->len == 0)
      return names;
  for (guint i = 0; i < n; i++)
    for (guint k = 0; k < list_of (files[i], t)->len; k++) {
      const char *name = ((const LsResultOption *) g_ptr_array_index (list_of (files[i], t), k))->name;
      if (!has_text (names, name) && is_shown (files, n, t, name))
        g_ptr_array_add (names, (gpointer) name);
    }
  return names;
}

static void
print_head (const char *title, guint n, int width, GString *out)
{
  g_string_append_printf (out, "\n%-*s", width + 2, title);
  for (guint i = 0; i < n; i++) {
    g_autofree char *column = column_name (i);
    g_string_append_printf (out, " %14s", column);
  }
  g_string_append_c (out, '\n');
}

/* Their rows, "--tp  2  4", below a line with the columns; nothing if there are none. */
static void
print_texts (LsResultFile *const *files, guint n, const Texts *t, GString *out)
{
  g_autoptr (GPtrArray) names = compare_names (files, n, t);
  if (names->len > 0)
    print_head (t->title, n, NAME_WIDTH, out);
  for (guint k = 0; k < names->len; k++) {
    const char *name = g_ptr_array_index (names, k);
    g_string_append_printf (out, "  %-*s", NAME_WIDTH, name);
    for (guint i = 0; i < n; i++) {
      const char *value = text_of (files[i], t, name);
      g_string_append_printf (out, " %14s", value ? value : "-");
    }
    g_string_append_c (out, '\n');
  }
}

static void
compare_texts_print (LsResultFile *const *files, guint n, GString *out)
{
  print_texts (files, n, &assumptions, out);
  print_texts (files, n, &options, out);
}

/* A member of an open object: names and values, as a and b of two files. */
static void
write_texts (LsJsonOut *w, LsResultFile *const *files, guint n, const Texts *t)
{
  g_autoptr (GPtrArray) names = compare_names (files, n, t);
  ls_json_out_begin_array (w, t->key);
  for (guint k = 0; k < names->len; k++) {
    const char *name = g_ptr_array_index (names, k);
    ls_json_out_begin_object (w, NULL);
    ls_json_out_string (w, "name", name);
    if (n > 2)
      ls_json_out_begin_array (w, "values");
    for (guint i = 0; i < n; i++)
      ls_json_out_string (w, n > 2 ? NULL : i == 0 ? "a" : "b", text_of (files[i], t, name));
    if (n > 2)
      ls_json_out_end_array (w);
    ls_json_out_end_object (w);
  }
  ls_json_out_end_array (w);
}

/* --- numbers --- */

/* NaN: the file lacks it. */
static double
number_of (const LsResultFile *file, int section, const char *name)
{
  for (guint i = 0; i < file->sections[section]->len; i++) {
    const LsResultNumber *number = &g_array_index (file->sections[section], LsResultNumber, i);
    if (strcmp (number->name, name) == 0)
      return number->value;
  }
  return NAN;
}

/* What any file has of a section, in the order in which it appears; char *, borrowed. */
static GPtrArray *
names_of (LsResultFile *const *files, guint n, int section)
{
  GPtrArray *names = g_ptr_array_new ();
  g_autoptr (GHashTable) seen = g_hash_table_new (g_str_hash, g_str_equal);
  for (guint i = 0; i < n; i++)
    for (guint k = 0; k < files[i]->sections[section]->len; k++) {
      char *name = g_array_index (files[i]->sections[section], LsResultNumber, k).name;
      if (g_hash_table_add (seen, name))
        g_ptr_array_add (names, name);
    }
  return names;
}

static bool
says_something (LsResultFile *const *files, guint n, int section, const char *name)
{
  for (guint i = 0; i < n; i++) {
    double value = number_of (files[i], section, name);
    if (!isnan (value) && value != 0)
      return true;
  }
  return false;
}

static void
print_section (LsResultFile *const *files, guint n, int section, GString *out)
{
  g_autoptr (GPtrArray) names = names_of (files, n, section);
  bool has_head = false;
  for (guint k = 0; k < names->len; k++) {
    const char *name = g_ptr_array_index (names, k);
    if (!says_something (files, n, section, name))
      continue;
    if (!has_head)
      print_head (sections[section].title, n, NAME_WIDTH, out);
    has_head = true;
    g_string_append_printf (out, "  %-*s", NAME_WIDTH, name);
    for (guint i = 0; i < n; i++)
      compare_value_print (out, number_of (files[i], section, name), section);
    g_string_append_c (out, '\n');
  }
}

char *
ls_compare_many_to_text (LsResultFile *const *files, guint n)
{
  GString *out = g_string_new (NULL);
  compare_programs_print (out, files, n);
  for (guint i = 0; i < n; i++) {
    g_autofree char *column = column_name (i);
    compare_file_print (out, column, files[i]);
  }
  compare_texts_print (files, n, out);
  for (int s = 0; s < LS_RESULT_LINKS; s++)
    print_section (files, n, s, out);
  return g_string_free (out, FALSE);
}

/* --- for programs ----------------------------------------------------------------------------------- */

/* A row of more than two. */
static void
write_values (LsJsonOut *w, LsResultFile *const *files, guint n, int section, const char *name)
{
  ls_json_out_begin_object (w, NULL);
  ls_json_out_string (w, "name", name);
  ls_json_out_begin_array (w, "values");
  for (guint i = 0; i < n; i++)
    ls_json_out_double (w, NULL, number_of (files[i], section, name));
  ls_json_out_end_array (w);
  ls_json_out_end_object (w);
}

static void
write_pair (LsJsonOut *w, const LsCompareRow *row)
{
  ls_json_out_begin_object (w, NULL);
  ls_json_out_string (w, "name", row->name);
  ls_json_out_double (w, "a", row->a);
  ls_json_out_double (w, "b", row->b);
  ls_json_out_double (w, "delta", row->b - row->a);
  ls_json_out_double (w, "change_pct", percent (row->a, row->b));
  ls_json_out_end_object (w);
}

/* Of two as they are compared, of more without c. */
static void
write_section (LsJsonOut *w, const LsResultCompare *c, LsResultFile *const *files, guint n, int section)
{
  g_autoptr (GPtrArray) names = names_of (files, n, section);
  ls_json_out_begin_array (w, sections[section].key);
  for (guint i = 0; c && i < c->sections[section]->len; i++)
    write_pair (w, &g_array_index (c->sections[section], LsCompareRow, i));
  for (guint k = 0; !c && k < names->len; k++)
    write_values (w, files, n, section, g_ptr_array_index (names, k));
  ls_json_out_end_array (w);
}

#include "show/compare_keys.h"

static char *
to_json (const LsResultCompare *c, const LsSpanCompare *spans, LsResultFile *const *files, guint n)
{
  LsJsonOut w;
  ls_json_out_open_as (&w, "compare");
  ls_keys_compare (&w, c, spans, files, n);
  return ls_json_out_close (&w);
}

char *
ls_result_compare_to_json (const LsResultCompare *c)
{
  return to_json (c, NULL, (LsResultFile *const[]) { (LsResultFile *) c->a, (LsResultFile *) c->b }, 2);
}

char *
ls_span_compare_to_json (const LsSpanCompare *c)
{
  return to_json (NULL, c, NULL, 0);
}

char *
ls_compare_many_to_json (LsResultFile *const *files, guint n)
{
  return to_json (NULL, NULL, files, n);
}
