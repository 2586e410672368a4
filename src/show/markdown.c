/* show/markdown.c — a result as Markdown, for an issue or a paper: its JSON as tables.
 *
 * An object becomes a table of its members, a list of objects a table with a column for each member; an
 * object in a row has columns of its own. Units follow the names of members, as everywhere in our JSON: "_s"
 * seconds, "_ps" picoseconds, "bytes", fractions of 1 ("mfu", "_frac"), "_pct". What is null or empty is left
 * out, so are members that take no time, and how the simulation ran. What is deeper than the second level has
 * only the JSON; rows beyond LS_MARKDOWN_MAX_ROWS too, which the text says. */
#include "show/answers.h"

#include <math.h>
#include <string.h>

#include <lockstep/units.h>

#include "base/list.h"
#include "data/text/json_doc.h"
#include "show/text_table.h"

#define MAX_LEVEL 2

/* --- values ------------------------------------------------------------------------------------------ */

static char *
number (double value, const char *format, const char *unit)
{
  g_autofree char *text = ls_text_plain (format, value);
  return g_strconcat (text, unit, NULL);
}

static bool
is_fraction (const char *key)
{
  static const char *const keys[] = { "mfu",           "mfu_causal",  "mfu_all_pairs",   "hfu",
                                      "hfu_all_pairs", "utilisation", "max_utilisation", "mean_utilisation",
                                      "share",         "gain",        "elasticity",      NULL };
  return g_strv_contains (keys, key) || strstr (key, "_frac");
}

static char *
time_text (double seconds)
{
  return fabs (seconds) < 9e6 ? ls_format_time ((LsTime) llround (seconds * (double) LS_S))
                              : number (seconds, "%.4g", " s");
}

static char *
bytes_text (double bytes)
{
  g_autofree char *text = ls_format_bytes ((uint64_t) fabs (bytes));
  return g_strconcat (bytes < 0 ? "-" : "", text, NULL);
}

static char *
number_text (const char *key, double value)
{
  if (g_str_has_suffix (key, "_ps"))
    return ls_format_time ((LsTime) value);
  if (g_str_has_suffix (key, "_s") && !g_str_has_suffix (key, "_per_s"))
    return time_text (value);
  if (g_str_has_suffix (key, "_us"))
    return time_text (value * 1e-6);
  if (g_str_has_suffix (key, "bytes") && fabs (value) < 1e18)
    return bytes_text (value);
  if (is_fraction (key))
    return number (100 * value, "%.4g", " %");
  return number (value, fabs (value) < 1e15 && value == floor (value) ? "%.0f" : "%.6g", "");
}

/* What a cell cannot hold as it is: bars, markup, breaks. */
static char *
escaped (const char *text)
{
  GString *out = g_string_new (NULL);
  for (; *text; text++) {
    if (strchr ("|\\`*<[]&", *text))
      g_string_append_c (out, '\\');
    g_string_append_c (out, (guchar) *text < ' ' ? ' ' : *text);
  }
  return g_string_free (out, FALSE);
}

/* Newly allocated; NULL: no scalar, or null. */
static char *
scalar_text (const cJSON *value)
{
  const char *key = value->string ? value->string : "";
  if (cJSON_IsNumber (value))
    return number_text (key, value->valuedouble);
  if (cJSON_IsBool (value))
    return g_strdup (cJSON_IsTrue (value) ? "yes" : "no");
  return cJSON_IsString (value) ? escaped (value->valuestring) : NULL;
}

/* "peak_bytes" is "peak": the unit stands with the value. "tokens_per_s" is "tokens/s". */
static char *
words_of (const char *key)
{
  static const char *const units[] = { "_s", "_ps", "_us", "_bytes", NULL };
  g_autoptr (GString) words = g_string_new (key);
  g_string_replace (words, "_per_", "/", 0);
  for (guint i = 0; units[i]; i++)
    if (g_str_has_suffix (words->str, units[i]))
      g_string_truncate (words, words->len - strlen (units[i]));
  g_string_replace (words, "_frac", "", 0);
  g_string_replace (words, "_", " ", 0);
  g_string_replace (words, "mfu", "MFU", 0);
  g_string_replace (words, "hfu", "HFU", 0);
  return escaped (words->str);
}

/* --- tables ------------------------------------------------------------------------------------------ */

/* How the simulation ran, and what other members say with less. */
static bool
is_left_out (const char *key)
{
  static const char *const keys[]
      = { "n_classes", "n_steps",    "n_op_instances", "n_segments",  "n_segments_in_one_piece",
          "digest",    "provenance", "step_time_ps",   "by_category", "formula",
          "schema",    NULL };
  return key && g_strv_contains (keys, key);
}

/* A member that takes no time says nothing. */
static bool
is_worth_a_row (const cJSON *value)
{
  if (is_left_out (value->string))
    return false;
  bool is_time
      = value->string && (g_str_has_suffix (value->string, "_s") || g_str_has_suffix (value->string, "_ps"));
  return !(is_time && cJSON_IsNumber (value) && value->valuedouble == 0);
}

/* The unit of the members of an object: that of its name, "breakdown_s"; of what ranks hold, bytes. "":
 * none. */
static const char *
unit_of_members (const char *name)
{
  static const char *const held[] = { "by_category", "at_peak", "formula", NULL };
  return g_strv_contains (held, name)     ? "_bytes"
      : g_str_has_suffix (name, "_ps")    ? "_ps"
      : g_str_has_suffix (name, "_s")     ? "_s"
      : g_str_has_suffix (name, "_bytes") ? "_bytes"
                                          : "";
}

static char *
member_text (const cJSON *value, const char *unit)
{
  g_autofree char *key = g_strconcat (value->string, unit, NULL);
  if (*unit && cJSON_IsNumber (value))
    return value->valuedouble != 0 ? number_text (key, value->valuedouble) : NULL;
  return is_worth_a_row (value) ? scalar_text (value) : NULL;
}

/* name: of the object; "": the result itself. */
static void
append_members (GString *out, const cJSON *object, const char *name)
{
  bool has_head = false;
  const char *unit = unit_of_members (name);
  const cJSON *value;
  cJSON_ArrayForEach (value, object) {
    g_autofree char *text = member_text (value, unit);
    if (!text)
      continue;
    g_autofree char *words = words_of (value->string);
    g_string_append_printf (out, "%s| %s | %s |\n", has_head ? "" : "| | |\n|---|---:|\n", words, text);
    has_head = true;
  }
  if (has_head)
    g_string_append_c (out, '\n');
}

typedef struct {
  char *path; /* "config.tp" */
  const char *key;
  bool is_word;
} Column;

static const cJSON *
cell_of (const cJSON *row, const Column *c)
{
  g_auto (GStrv) steps = g_strsplit (c->path, ".", 2);
  for (char **step = steps; row && *step; step++)
    row = cJSON_GetObjectItemCaseSensitive (row, *step);
  return row;
}

static void
add_column (GArray *columns, const char *parent, const cJSON *value)
{
  bool is_scalar = cJSON_IsNumber (value) || cJSON_IsBool (value) || cJSON_IsString (value);
  if (!is_scalar || is_left_out (value->string))
    return;
  g_autofree char *path = parent ? g_strconcat (parent, ".", value->string, NULL) : g_strdup (value->string);
  for (guint i = 0; i < columns->len; i++)
    if (strcmp (g_array_index (columns, Column, i).path, path) == 0)
      return;
  ls_list_add (columns, &(Column) { g_steal_pointer (&path), value->string, cJSON_IsString (value) });
}

/* Of all rows, in the order in which they appear. */
static GArray *
columns_of (const cJSON *rows)
{
  GArray *columns = ls_list_new (sizeof (Column), ls_clear_text);
  const cJSON *row, *value, *inner;
  cJSON_ArrayForEach (row, rows)
    cJSON_ArrayForEach (value, row)
      if (!cJSON_IsObject (value))
        add_column (columns, NULL, value);
      else if (!is_left_out (value->string))
        cJSON_ArrayForEach (inner, value)
          add_column (columns, value->string, inner);

  return columns;
}

static void
append_heads (GString *out, const GArray *columns)
{
  for (guint i = 0; i < columns->len; i++) {
    const Column *c = &g_array_index (columns, Column, i);
    g_autofree char *path = g_strdelimit (g_strdup (c->path), ".", ' ');
    g_autofree char *words = words_of (g_str_has_prefix (path, "config ") ? c->key : path);
    g_string_append_printf (out, "| %s ", words);
  }
  g_string_append (out, "|\n");
  for (guint i = 0; i < columns->len; i++)
    g_string_append (out, g_array_index (columns, Column, i).is_word ? "|---" : "|---:");
  g_string_append (out, "|\n");
}

/* Of two results a row has a name, whose unit its values have: "step_time_s". */
static char *
compared_text (const char *name, const cJSON *value, const char *list)
{
  bool is_of_links = strcmp (list, "links") == 0;
  if (cJSON_IsString (value))
    return is_of_links ? scalar_text (value) : words_of (name);
  if (!cJSON_IsNumber (value) || strcmp (value->string, "change_pct") == 0)
    return scalar_text (value);
  g_autofree char *key
      = is_of_links ? g_strdup ("utilisation") : g_strconcat (name, unit_of_members (list), NULL);
  return number_text (key, value->valuedouble);
}

/* Newly allocated; NULL: empty. list: the name of the rows. */
static char *
cell_text (const cJSON *row, const Column *c, const char *list)
{
  const cJSON *value = cell_of (row, c);
  const char *name = cJSON_GetStringValue (cJSON_GetObjectItemCaseSensitive (row, "name"));
  if (!value)
    return NULL;
  if (name && cJSON_HasObjectItem (row, "change_pct"))
    return compared_text (name, value, list);
  g_auto (GStrv) steps = g_strsplit (c->path, ".", 2);
  const char *unit = steps[1] ? unit_of_members (steps[0]) : "";
  g_autofree char *key = g_strconcat (value->string, unit, NULL);
  return *unit && cJSON_IsNumber (value) ? number_text (key, value->valuedouble) : scalar_text (value);
}

static void
append_rows (GString *out, const cJSON *rows)
{
  g_autoptr (GArray) columns = columns_of (rows);
  int n = 0;
  const cJSON *row;
  append_heads (out, columns);
  cJSON_ArrayForEach (row, rows) {
    if (++n > LS_MARKDOWN_MAX_ROWS)
      break;
    for (guint i = 0; i < columns->len; i++) {
      g_autofree char *text = cell_text (row, &g_array_index (columns, Column, i), rows->string);
      g_string_append_printf (out, "| %s ", text ? text : "");
    }
    g_string_append (out, "|\n");
  }
  if (n > LS_MARKDOWN_MAX_ROWS)
    g_string_append_printf (out, "\n%d more rows are in the JSON.\n",
                            cJSON_GetArraySize (rows) - LS_MARKDOWN_MAX_ROWS);
  g_string_append_c (out, '\n');
}

/* Texts or numbers, a line; lists of them, a line each. */
static void
append_list (GString *out, const cJSON *list)
{
  const cJSON *value;
  bool is_first = true;
  cJSON_ArrayForEach (value, list) {
    g_autofree char *text = scalar_text (value);
    if (cJSON_IsArray (value)) {
      g_string_append (out, "- ");
      append_list (out, value);
      continue;
    }
    g_string_append_printf (out, "%s%s", is_first ? "" : " ", text ? text : "");
    is_first = false;
  }
  g_string_append_c (out, '\n');
}

/* --- the whole --------------------------------------------------------------------------------------- */

static void
append_object (GString *out, const cJSON *object, const char *name, int level)
{
  append_members (out, object, name);
  const cJSON *value;
  cJSON_ArrayForEach (value, object) {
    bool is_list = cJSON_IsArray (value) && value->child, is_object = cJSON_IsObject (value) && value->child;
    if ((!is_list && !is_object) || level == MAX_LEVEL || is_left_out (value->string)
        || (strcmp (value->string, "links") == 0 && cJSON_HasObjectItem (object, "link_groups")))
      continue;
    g_autofree char *words = words_of (value->string);
    g_string_append_printf (out, "%s %s\n\n", level == 0 ? "###" : "####", words);
    if (is_object)
      append_object (out, value, value->string, level + 1);
    else if (cJSON_IsObject (value->child))
      append_rows (out, value);
    else {
      append_list (out, value);
      g_string_append_c (out, '\n');
    }
  }
}

char *
ls_markdown_of_json (const char *json, const char *command)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (json, strlen (json), "result", diags);
  g_assert (doc);
  GString *out = g_string_new (NULL);
  g_string_append_printf (out, "```\n%s\n```\n\n", command);
  append_object (out, ls_json_doc_root (doc), "", 0);
  g_string_append (out, "All numbers: `--json`.\n");
  return g_string_free (out, FALSE);
}
