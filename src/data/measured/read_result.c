#include "data/measured/read_result.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "data/jobs/job_files.h"
#include "data/text/csv.h"
#include "data/text/field.h"
#include "data/text/json_doc.h"

/* Spans read back: those that `run --csv` predicts (show/run/write_run.h) and those that
 * tools/kernelbench measures (`kernelbench --plan`). */

#define US_PER_PS 1e-6
#define MAX_RANK  G_MAXUINT32

typedef struct {
  guint rank, stream, name, start, end;
} Columns;

void
ls_span_table_free (LsSpanTable *table)
{
  if (!table)
    return;
  g_array_unref (table->spans);
  g_free (table);
}

static guint
find_column (const LsCsv *csv, const char *name, LsDiagList *diags)
{
  int column = ls_csv_column (csv, name);
  if (column < 0)
    ls_csv_header_error (csv, diags, "expected a column \"%s\"; got none", name);
  return column < 0 ? 0 : (guint) column;
}

static bool
find_columns (const LsCsv *csv, bool is_measured, Columns *ret, LsDiagList *diags)
{
  guint n_before = ls_diag_list_n (diags);
  if (ls_csv_column (csv, "start_us") < 0 && ls_csv_column (csv, "start_ps") < 0) {
    ls_csv_header_error (csv, diags,
                         "expected spans, with a column \"start_ps\" (lockstep run --csv) or \"start_us\" "
                         "(kernelbench --plan); got neither");
    return false;
  }
  *ret = (Columns) {
    .rank = find_column (csv, "rank", diags),
    .stream = find_column (csv, "stream", diags),
    .name = find_column (csv, "name", diags),
    .start = find_column (csv, is_measured ? "start_us" : "start_ps", diags),
    .end = find_column (csv, is_measured ? "end_us" : "end_ps", diags),
  };
  return ls_diag_list_n (diags) == n_before;
}

static bool
read_time (const LsCsv *csv, guint row, guint column, double *ret, LsDiagList *diags)
{
  const char *text = ls_csv_cell (csv, row, column);
  char *end;
  errno = 0;
  *ret = g_ascii_strtod (text, &end);
  if (end != text && !*end && isfinite (*ret) && errno == 0)
    return true;
  ls_csv_error (csv, row, column, diags, "expected a time; got \"%.40s\"", text);
  return false;
}

static bool
read_rank (const LsCsv *csv, guint row, guint column, uint32_t *ret, LsDiagList *diags)
{
  guint64 rank;
  const char *text = ls_csv_cell (csv, row, column);
  if (!g_ascii_string_to_unsigned (text, 10, 0, MAX_RANK, &rank, NULL)) {
    ls_csv_error (csv, row, column, diags, "expected a rank; got \"%.40s\"", text);
    return false;
  }
  *ret = (uint32_t) rank;
  return true;
}

static void
read_row (LsSpanTable *table, const LsCsv *csv, guint row, const Columns *c, LsDiagList *diags)
{
  const char *stream = ls_csv_cell (csv, row, c->stream), *name = ls_csv_cell (csv, row, c->name);
  double unit = table->is_measured ? 1 : US_PER_PS, start, end;
  LsSpanRow span = { g_intern_string (stream), g_intern_string (name), 0, 0, 0 };
  if (strcmp (stream, "host") == 0 || !*ls_csv_cell (csv, row, c->end))
    return;
  if (!read_rank (csv, row, c->rank, &span.rank, diags) || !read_time (csv, row, c->start, &start, diags)
      || !read_time (csv, row, c->end, &end, diags))
    return;
  if (end < start) {
    ls_csv_error (csv, row, c->end, diags, "expected an end that is not before the start, %s; got %s",
                  ls_csv_cell (csv, row, c->start), ls_csv_cell (csv, row, c->end));
    return;
  }
  if (strcmp (stream, "step") == 0) {
    if (strcmp (name, "step") == 0)
      table->step_us = (end - start) * unit;
    return;
  }
  span.start_us = start * unit;
  span.end_us = end * unit;
  g_array_append_val (table->spans, span);
}

LsSpanTable *
ls_span_table_load (const char *path, LsDiagList *diags)
{
  g_autoptr (LsCsv) csv = ls_csv_load (path, diags);
  Columns columns;
  if (!csv)
    return NULL;
  bool is_measured = ls_csv_column (csv, "start_us") >= 0;
  if (!find_columns (csv, is_measured, &columns, diags))
    return NULL;
  guint n_before = ls_diag_list_n (diags);
  g_autoptr (LsSpanTable) table = g_new0 (LsSpanTable, 1);
  *table = (LsSpanTable) { is_measured, NAN, g_array_new (FALSE, FALSE, sizeof (LsSpanRow)) };
  for (guint row = 0; row < ls_csv_n_rows (csv); row++)
    read_row (table, csv, row, &columns, diags);
  if (ls_diag_list_n (diags) == n_before && table->spans->len == 0)
    ls_csv_header_error (csv, diags, "expected a span below the header; got none");
  else if (ls_diag_list_n (diags) == n_before && is_measured && !(table->step_us > 0))
    ls_csv_header_error (csv, diags,
                         "expected a row of stream \"step\" and name \"step\" that takes time; got none");
  return ls_diag_list_n (diags) == n_before ? g_steal_pointer (&table) : NULL;
}

/* --- a result of `run --json` as named numbers, for comparing two of them ------------------------ */

#define SET    "--set "
#define SCHEMA "lockstep.run/1" /* results of before there was one have none */

/* before: the name that the number had in results without "mfu_all_pairs"; NULL: its own. */
static const struct {
  const char *key, *before;
} step_keys[] = {
  { "step_time_s" },          { "first_step_s" },         { "tokens_per_s" }, { "mfu_causal" },
  { "mfu_all_pairs", "mfu" }, { "hfu_all_pairs", "hfu" }, { "bubble_frac" },
};

static void
option_free (gpointer data)
{
  LsResultOption *option = data;
  g_free (option->name);
  g_free (option->value);
  g_free (option);
}

/* What holds without an option: static; NULL: that depends on others. */
static const char *
usual_value (const char *name)
{
  const LsField *field = ls_field_find (ls_strategy_fields,
                                        name + (g_str_has_prefix (name, SET) ? strlen (SET) : strlen ("--")));
  LsStrategy blank;
  ls_strategy_init (&blank);
  g_autofree char *value = field ? ls_field_text (field, &blank, NULL) : NULL;
  ls_strategy_clear (&blank);
  if (!value || strcmp (value, "auto") == 0 || ls_field_is_switch (field))
    return NULL;
  return g_intern_string (ls_field_typed (field, value));
}

const char *
ls_result_assumption (const GPtrArray *assumptions, const char *name)
{
  for (guint i = 0; i < assumptions->len; i++) {
    const LsResultOption *assumption = g_ptr_array_index (assumptions, i);
    if (g_str_equal (assumption->name, name))
      return assumption->value;
  }
  return NULL;
}

const char *
ls_result_option (const GPtrArray *options, const char *name)
{
  const char *value = ls_result_assumption (options, name);
  return value || options->len == 0 ? value : usual_value (name);
}

static void
clear_number (gpointer number)
{
  g_free (((LsResultNumber *) number)->name);
}

void
ls_result_file_free (LsResultFile *file)
{
  if (!file)
    return;
  for (int s = 0; s < LS_N_RESULT_SECTIONS; s++)
    g_array_unref (file->sections[s]);
  g_ptr_array_unref (file->options);
  g_ptr_array_unref (file->assumptions);
  g_free (file->path);
  g_free (file->model);
  g_free (file->trace);
  g_free (file->cluster);
  g_free (file);
}

static const char hint[] = "lockstep run --json writes such a file";

static const cJSON *
require (const LsJsonDoc *doc, const cJSON *parent, const char *key, cJSON_bool (*is_kind) (const cJSON *),
         const char *kind, LsDiagList *diags)
{
  const cJSON *node = cJSON_GetObjectItemCaseSensitive (parent, key);
  if (is_kind (node))
    return node;
  g_autofree char *got = node ? ls_json_describe (node) : g_strdup ("none");
  ls_json_doc_diag (doc, node ? node : parent, LS_JSON_AT_VALUE, diags, hint, "expected \"%s\", %s; got %s",
                    key, kind, got);
  return NULL;
}

static void
append (LsResultFile *file, LsResultSection section, const char *name, const cJSON *node)
{
  LsResultNumber number = { g_strdup (name), cJSON_IsNumber (node) ? node->valuedouble : NAN };
  g_array_append_val (file->sections[section], number);
}

/* A member that must be a number or null. */
static void
read_number (LsResultFile *file, const LsJsonDoc *doc, LsResultSection section, const char *name,
             const cJSON *node, LsDiagList *diags)
{
  if (cJSON_IsNumber (node) || cJSON_IsNull (node)) {
    append (file, section, name, node);
    return;
  }
  g_autofree char *got = ls_json_describe (node);
  ls_json_doc_diag (doc, node, LS_JSON_AT_VALUE, diags, hint, "expected a number; got %s", got);
}

static void
read_members (LsResultFile *file, const LsJsonDoc *doc, LsResultSection section, const cJSON *object,
              LsDiagList *diags)
{
  const cJSON *node;
  cJSON_ArrayForEach (node, object) read_number (file, doc, section, node->string, node, diags);
}

/* A member that older files, or runs that were not asked for it, do not have. */
static void
read_optional (LsResultFile *file, const LsJsonDoc *doc, LsResultSection section, const cJSON *parent,
               const char *key, LsDiagList *diags)
{
  const cJSON *object = cJSON_GetObjectItemCaseSensitive (parent, key);
  if (object && require (doc, parent, key, cJSON_IsObject, "an object", diags))
    read_members (file, doc, section, object, diags);
}

static void
read_memory (LsResultFile *file, const LsJsonDoc *doc, const cJSON *memory, LsDiagList *diags)
{
  const cJSON *peak = require (doc, memory, "peak_bytes", cJSON_IsNumber, "a number", diags);
  const cJSON *needed = cJSON_GetObjectItemCaseSensitive (memory, "needed_bytes");
  const cJSON *capacity = cJSON_GetObjectItemCaseSensitive (memory, "capacity_bytes");
  const cJSON *at_peak = require (doc, memory, "at_peak", cJSON_IsObject, "an object", diags);
  if (peak)
    append (file, LS_RESULT_MEMORY, "peak", peak);
  if (needed)
    read_number (file, doc, LS_RESULT_MEMORY, "needed", needed, diags);
  if (capacity)
    read_number (file, doc, LS_RESULT_MEMORY, "capacity", capacity, diags);
  if (at_peak)
    read_members (file, doc, LS_RESULT_MEMORY, at_peak, diags);
}

/* key: of the number of a link, or of a group of them. */
static void
read_links (LsResultFile *file, const LsJsonDoc *doc, const cJSON *links, const char *key, LsDiagList *diags)
{
  const cJSON *link;
  cJSON_ArrayForEach (link, links)
  {
    const cJSON *name = require (doc, link, "name", cJSON_IsString, "text", diags);
    const cJSON *use = require (doc, link, key, cJSON_IsNumber, "a number", diags);
    if (name && use)
      append (file, LS_RESULT_LINKS, name->valuestring, use);
  }
}

/* Of the model, cluster or trace; NULL if the file does not say. */
static char *
read_name (const cJSON *provenance, const char *what)
{
  const cJSON *object = cJSON_GetObjectItemCaseSensitive (provenance, what);
  return g_strdup (cJSON_GetStringValue (cJSON_GetObjectItemCaseSensitive (object, "name")));
}

static LsResultOption *
option_new (const char *flag, const char *value)
{
  LsResultOption *option = g_new (LsResultOption, 1);
  const char *of_key = g_str_equal (flag, "--set") ? strchr (value, '=') : NULL;
  if (of_key)
    *option = (LsResultOption) { g_strdup_printf (SET "%.*s", (int) (of_key - value), value),
                                 g_strdup (of_key + 1) };
  else
    *option = (LsResultOption) { g_strdup (flag), g_strdup (value) };
  return option;
}

/* "--tp 2 --sp --set tp_async=0": a word that begins with two dashes and what follows it. */
static void
read_options (LsResultFile *file, const char *text)
{
  g_auto (GStrv) words = g_strsplit (text ? text : "", " ", -1);
  for (char **word = words; *word; word++) {
    if (!g_str_has_prefix (*word, "--"))
      continue;
    bool has_value = word[1] && !g_str_has_prefix (word[1], "--");
    g_ptr_array_add (file->options, option_new (*word, has_value ? word[1] : "on"));
  }
}

static void
read_names (LsResultFile *file, const cJSON *root)
{
  const cJSON *provenance = cJSON_GetObjectItemCaseSensitive (root, "provenance");
  file->model = read_name (provenance, "model");
  file->model_is_of_file = cJSON_HasObjectItem (provenance, "from");
  file->params = cJSON_GetNumberValue (cJSON_GetObjectItemCaseSensitive (root, "params"));
  file->trace = read_name (provenance, "trace");
  file->cluster = read_name (provenance, "cluster");
  read_options (file, cJSON_GetStringValue (cJSON_GetObjectItemCaseSensitive (provenance, "options")));
  const char *software = cJSON_GetStringValue (cJSON_GetObjectItemCaseSensitive (provenance, "software"));
  if (software)
    g_ptr_array_add (file->options, option_new ("--software", software));
}

static void
read_assumptions (LsResultFile *file, const cJSON *list)
{
  const cJSON *node;
  cJSON_ArrayForEach (node, list)
  {
    const char *key = cJSON_GetStringValue (cJSON_GetObjectItemCaseSensitive (node, "key")),
               *value = cJSON_GetStringValue (cJSON_GetObjectItemCaseSensitive (node, "value"));
    if (key && value)
      g_ptr_array_add (file->assumptions, option_new (key, value));
  }
}

/* Nothing where there is none. */
static void
read_interval (LsResultFile *file, const LsJsonDoc *doc, const cJSON *interval, LsDiagList *diags)
{
  static const char *const keys[] = { "low_s", "high_s" },
                           *const names[] = { "interval_low_s", "interval_high_s" };
  for (guint i = 0; i < G_N_ELEMENTS (keys); i++) {
    const cJSON *node = cJSON_GetObjectItemCaseSensitive (interval, keys[i]);
    if (cJSON_IsNumber (node))
      read_number (file, doc, LS_RESULT_STEP, names[i], node, diags);
  }
}

static void
read_root (LsResultFile *file, const LsJsonDoc *doc, LsDiagList *diags)
{
  const cJSON *root = ls_json_doc_root (doc), *schema = cJSON_GetObjectItemCaseSensitive (root, "schema");
  if (schema && g_strcmp0 (cJSON_GetStringValue (schema), SCHEMA) != 0) {
    g_autofree char *got = ls_json_describe (schema);
    ls_json_doc_diag (doc, schema, LS_JSON_AT_VALUE, diags, hint, "expected \"" SCHEMA "\"; got %s", got);
    return;
  }
  if (!require (doc, root, "step_time_s", cJSON_IsNumber, "a number", diags))
    return;
  for (guint i = 0; i < G_N_ELEMENTS (step_keys); i++) {
    bool is_before = step_keys[i].before && !cJSON_HasObjectItem (root, "mfu_all_pairs");
    const char *key = is_before ? step_keys[i].before : step_keys[i].key;
    const cJSON *node = cJSON_GetObjectItemCaseSensitive (root, key);
    if (node)
      read_number (file, doc, LS_RESULT_STEP, step_keys[i].key, node, diags);
  }
  read_interval (file, doc, cJSON_GetObjectItemCaseSensitive (root, "interval"), diags);
  read_assumptions (file, cJSON_GetObjectItemCaseSensitive (root, "assumptions"));
  const cJSON *breakdown = require (doc, root, "breakdown_s", cJSON_IsObject, "an object", diags);
  const cJSON *memory = require (doc, root, "memory", cJSON_IsObject, "an object", diags);
  const cJSON *groups = cJSON_GetObjectItemCaseSensitive (root, "link_groups");
  const cJSON *links = require (doc, root, groups ? "link_groups" : "links", cJSON_IsArray, "a list", diags);
  read_names (file, root);
  if (breakdown)
    read_members (file, doc, LS_RESULT_BREAKDOWN, breakdown, diags);
  read_optional (file, doc, LS_RESULT_BUBBLES, root, "bubble_parts_s", diags);
  read_optional (file, doc, LS_RESULT_PATH, cJSON_GetObjectItemCaseSensitive (root, "critical_path"),
                 "by_kind_ps", diags);
  if (memory)
    read_memory (file, doc, memory, diags);
  if (links)
    read_links (file, doc, links, groups ? "max_utilisation" : "utilisation", diags);
}

static LsResultFile *
read_doc (const char *path, const LsJsonDoc *doc, LsDiagList *diags)
{
  guint n_before = ls_diag_list_n (diags);
  g_autoptr (LsResultFile) file = g_new0 (LsResultFile, 1);
  file->path = g_strdup (path);
  file->options = g_ptr_array_new_with_free_func (option_free);
  file->assumptions = g_ptr_array_new_with_free_func (option_free);
  for (int s = 0; s < LS_N_RESULT_SECTIONS; s++) {
    file->sections[s] = g_array_new (FALSE, FALSE, sizeof (LsResultNumber));
    g_array_set_clear_func (file->sections[s], clear_number);
  }
  read_root (file, doc, diags);
  return ls_diag_list_n (diags) == n_before ? g_steal_pointer (&file) : NULL;
}

LsResultFile *
ls_result_file_load (const char *path, LsDiagList *diags)
{
  g_autoptr (LsJsonDoc) doc = ls_json_doc_load_or_given (path, "result", diags);
  return doc ? read_doc (ls_json_doc_name (doc), doc, diags) : NULL;
}

LsResultFile *
ls_result_file_parse (const char *name, const char *text, LsDiagList *diags)
{
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text, strlen (text), name, diags);
  return doc ? read_doc (name, doc, diags) : NULL;
}
