#include "data/measured/read_result.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/list.h"
#include "data/jobs/job_files.h"
#include "data/text/csv.h"
#include "data/text/field.h"
#include "data/text/json_doc.h"

/* Spans read back: those that `run --csv` predicts (show/run/write_run.h) and those that
 * tools/kernelbench measures (`kernelbench --plan`). */

#define US_PER_PS    1e-6
#define MAX_TIME     1e18
#define TIME(member) LS_FIELD_DOUBLE, offsetof (Row, member), .min = -MAX_TIME, .max = MAX_TIME

/* A row, in the unit of its file. */
typedef struct {
  char *stream, *name;
  uint32_t rank;
  double start, end;
} Row;

static const LsField row_fields[] = {
  { "rank", LS_FIELD_UINT, offsetof (Row, rank) },
  { "stream", LS_FIELD_STRING, offsetof (Row, stream) },
  { "name", LS_FIELD_STRING, offsetof (Row, name) },
  { NULL },
};
static const LsField measured_times[] = { { "start_us", TIME (start) }, { "end_us", TIME (end) }, { NULL } };
static const LsField predicted_times[] = { { "start_ps", TIME (start) }, { "end_ps", TIME (end) }, { NULL } };

void
ls_span_table_free (LsSpanTable *table)
{
  if (!table)
    return;
  g_array_unref (table->spans);
  g_free (table);
}

static bool
find_columns (const LsCsv *csv, bool is_measured, GArray *columns, LsDiagList *diags)
{
  guint n_before = ls_diag_list_n (diags);
  if (!is_measured && ls_csv_column (csv, "start_ps") < 0) {
    ls_csv_header_error (csv, diags,
                         "expected spans, with a column \"start_ps\" (lockstep run --csv) or \"start_us\" "
                         "(kernelbench --plan); got neither");
    return false;
  }
  for (const LsField *f = row_fields; f->key; f++)
    ls_csv_fields_find (csv, f, LS_CSV_REQUIRED, 0, columns, diags);
  for (const LsField *f = is_measured ? measured_times : predicted_times; f->key; f++)
    ls_csv_fields_find (csv, f, LS_CSV_REQUIRED, 0, columns, diags);
  return ls_diag_list_n (diags) == n_before;
}

/* Of a row, as it stands there; i: of the fields. */
static const char *
cell_of (const LsCsv *csv, guint row, const GArray *columns, guint i)
{
  return ls_csv_cell (csv, row, g_array_index (columns, LsCsvField, i).column);
}

/* What is of the host, or never ended, is passed over. */
static void
read_row (LsSpanTable *table, const LsCsv *csv, guint row, const GArray *columns, LsDiagList *diags)
{
  enum { STREAM = 1, START = 3, END };
  guint n_before = ls_diag_list_n (diags);
  Row r = { 0 };
  if (strcmp (cell_of (csv, row, columns, STREAM), "host") == 0 || !*cell_of (csv, row, columns, END))
    return;
  ls_csv_fields_read (csv, row, columns, &r, diags);
  if (ls_diag_list_n (diags) == n_before && r.end < r.start)
    ls_csv_error (csv, row, g_array_index (columns, LsCsvField, END).column, diags,
                  "expected an end that is not before the start, %s; got %s",
                  cell_of (csv, row, columns, START), cell_of (csv, row, columns, END));
  if (ls_diag_list_n (diags) == n_before) {
    double unit = table->is_measured ? 1 : US_PER_PS;
    const LsSpanRow span
        = { g_intern_string (r.stream), g_intern_string (r.name), r.rank, r.start * unit, r.end * unit };
    if (strcmp (r.stream, "step") != 0)
      g_array_append_val (table->spans, span);
    else if (strcmp (r.name, "step") == 0)
      table->step_us = (r.end - r.start) * unit;
  }
  ls_fields_clear (row_fields, &r);
}

LsSpanTable *
ls_span_table_load (const char *path, LsDiagList *diags)
{
  g_autoptr (LsCsv) csv = ls_csv_parse (path, NULL, -1, diags);
  g_autoptr (GArray) columns = g_array_new (FALSE, FALSE, sizeof (LsCsvField));
  bool is_measured = csv && ls_csv_column (csv, "start_us") >= 0;
  if (!csv || !find_columns (csv, is_measured, columns, diags))
    return NULL;
  guint n_before = ls_diag_list_n (diags);
  g_autoptr (LsSpanTable) table = g_new0 (LsSpanTable, 1);
  *table = (LsSpanTable) { is_measured, NAN, g_array_new (FALSE, FALSE, sizeof (LsSpanRow)) };
  for (guint row = 0; row < ls_csv_n_rows (csv); row++)
    read_row (table, csv, row, columns, diags);
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

/* What is read of a result, by section; what is not required may be absent. */
static const struct {
  LsResultSection section;
  enum {
    NUMBER, /* or null                                  */
    FIGURE, /* a number; anything else counts as absent */
    MEMBERS /* an object of numbers, or nulls           */
  } kind;
  const char *parent; /* an object of the root; NULL: the root itself              */
  const char *key;
  const char *name;   /* NULL: key; members have their own                         */
  const char *before; /* the key in results without "mfu_all_pairs"; NULL: the same */
  bool is_required;
} parts[] = {
  { LS_RESULT_STEP, NUMBER, NULL, "step_time_s" },
  { LS_RESULT_STEP, NUMBER, NULL, "first_step_s" },
  { LS_RESULT_STEP, NUMBER, NULL, "tokens_per_s" },
  { LS_RESULT_STEP, NUMBER, NULL, "mfu_causal" },
  { LS_RESULT_STEP, NUMBER, NULL, "mfu_all_pairs", NULL, "mfu" },
  { LS_RESULT_STEP, NUMBER, NULL, "hfu_all_pairs", NULL, "hfu" },
  { LS_RESULT_STEP, NUMBER, NULL, "bubble_frac" },
  { LS_RESULT_STEP, FIGURE, "interval", "low_s", "interval_low_s" },
  { LS_RESULT_STEP, FIGURE, "interval", "high_s", "interval_high_s" },
  { LS_RESULT_BREAKDOWN, MEMBERS, NULL, "breakdown_s", .is_required = true },
  { LS_RESULT_BUBBLES, MEMBERS, NULL, "bubble_parts_s" },
  { LS_RESULT_PATH, MEMBERS, "critical_path", "by_kind_ps" },
  { LS_RESULT_MEMORY, NUMBER, "memory", "peak_bytes", "peak", .is_required = true },
  { LS_RESULT_MEMORY, NUMBER, "memory", "needed_bytes", "needed" },
  { LS_RESULT_MEMORY, NUMBER, "memory", "capacity_bytes", "capacity" },
  { LS_RESULT_MEMORY, MEMBERS, "memory", "at_peak", .is_required = true },
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

void
ls_result_file_free (LsResultFile *file)
{
  if (!file)
    return;
  for (int s = 0; s < LS_N_RESULT_SECTIONS; s++)
    g_array_unref (file->sections[s]);
  g_ptr_array_unref (file->options);
  g_ptr_array_unref (file->assumptions);
  g_ptr_array_unref (file->origins);
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
  const cJSON *node = ls_json_at (parent, key);
  if (is_kind (node))
    return node;
  g_autofree char *got = node ? ls_json_describe (node) : g_strdup ("none");
  ls_json_doc_diag (doc, node ? node : parent, LS_JSON_AT_VALUE, diags, hint, "expected \"%s\", %s; got %s",
                    key, kind, got);
  return NULL;
}

/* A member that must be a number or null. */
static void
read_number (LsResultFile *file, const LsJsonDoc *doc, LsResultSection section, const char *name,
             const cJSON *node, LsDiagList *diags)
{
  const LsResultNumber number = { g_strdup (name), cJSON_IsNumber (node) ? node->valuedouble : NAN };
  g_array_append_val (file->sections[section], number);
  g_autofree char *got = cJSON_IsNumber (node) || cJSON_IsNull (node) ? NULL : ls_json_describe (node);
  if (got)
    ls_json_doc_diag (doc, node, LS_JSON_AT_VALUE, diags, hint, "expected a number; got %s", got);
}

static void
read_part (LsResultFile *file, const LsJsonDoc *doc, guint i, LsDiagList *diags)
{
  const cJSON *root = ls_json_doc_root (doc), *each;
  const cJSON *parent = parts[i].parent ? ls_json_at (root, parts[i].parent) : root;
  bool is_before = parts[i].before && !cJSON_HasObjectItem (root, "mfu_all_pairs");
  const char *key = is_before ? parts[i].before : parts[i].key,
             *name = parts[i].name ? parts[i].name : parts[i].key;
  const cJSON *node = ls_json_at (parent, key);
  if (parts[i].parent && parts[i].is_required && !cJSON_IsObject (parent))
    return;
  if (parts[i].kind == MEMBERS && (node || parts[i].is_required))
    node = require (doc, parent, key, cJSON_IsObject, "an object", diags);
  else if (parts[i].is_required)
    node = require (doc, parent, key, cJSON_IsNumber, "a number", diags);
  if (parts[i].kind == MEMBERS)
    cJSON_ArrayForEach (each, node)
      read_number (file, doc, parts[i].section, each->string, each, diags);
  else if (node && (parts[i].kind == NUMBER || cJSON_IsNumber (node)))
    read_number (file, doc, parts[i].section, name, node, diags);
}

/* key: of the number of a link, or of a group of them. */
static void
read_links (LsResultFile *file, const LsJsonDoc *doc, const cJSON *links, const char *key, LsDiagList *diags)
{
  const cJSON *link;
  cJSON_ArrayForEach (link, links) {
    const cJSON *name = require (doc, link, "name", cJSON_IsString, "text", diags);
    const cJSON *use = require (doc, link, key, cJSON_IsNumber, "a number", diags);
    if (name && use)
      read_number (file, doc, LS_RESULT_LINKS, name->valuestring, use, diags);
  }
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

static void
read_names (LsResultFile *file, const cJSON *root)
{
  const cJSON *provenance = ls_json_at (root, "provenance");
  file->model = g_strdup (ls_json_text (ls_json_at (provenance, "model"), "name"));
  file->trace = g_strdup (ls_json_text (ls_json_at (provenance, "trace"), "name"));
  file->cluster = g_strdup (ls_json_text (ls_json_at (provenance, "cluster"), "name"));
  file->model_is_of_file = cJSON_HasObjectItem (provenance, "from");
  file->params = cJSON_GetNumberValue (ls_json_at (root, "params"));
  /* "--tp 2 --sp --set tp_async=0": a word that begins with two dashes and what follows it */
  const char *options = ls_json_text (provenance, "options");
  g_auto (GStrv) words = g_strsplit (options ? options : "", " ", -1);
  for (char **word = words; *word; word++) {
    bool has_value = word[1] && !g_str_has_prefix (word[1], "--");
    if (g_str_has_prefix (*word, "--"))
      g_ptr_array_add (file->options, option_new (*word, has_value ? word[1] : "on"));
  }
  if (ls_json_text (provenance, "software"))
    g_ptr_array_add (file->options, option_new ("--software", ls_json_text (provenance, "software")));
}

/* That member of each. */
static void
read_assumptions (GPtrArray *texts, const char *member, const cJSON *list)
{
  const cJSON *node;
  cJSON_ArrayForEach (node, list)
    if (ls_json_text (node, "key") && ls_json_text (node, member))
      g_ptr_array_add (texts, option_new (ls_json_text (node, "key"), ls_json_text (node, member)));
}

static void
read_root (LsResultFile *file, const LsJsonDoc *doc, LsDiagList *diags)
{
  const cJSON *root = ls_json_doc_root (doc), *schema = ls_json_at (root, "schema");
  if (schema && g_strcmp0 (ls_json_text (root, "schema"), SCHEMA) != 0) {
    g_autofree char *got = ls_json_describe (schema);
    ls_json_doc_diag (doc, schema, LS_JSON_AT_VALUE, diags, hint, "expected \"" SCHEMA "\"; got %s", got);
    return;
  }
  if (!require (doc, root, "step_time_s", cJSON_IsNumber, "a number", diags))
    return;
  for (guint i = 0; i < G_N_ELEMENTS (parts); i++)
    read_part (file, doc, i, diags);
  require (doc, root, "memory", cJSON_IsObject, "an object", diags);
  const cJSON *groups = ls_json_at (root, "link_groups");
  const cJSON *links = require (doc, root, groups ? "link_groups" : "links", cJSON_IsArray, "a list", diags);
  read_links (file, doc, links, groups ? "max_utilisation" : "utilisation", diags);
  read_assumptions (file->assumptions, "value", ls_json_at (root, "assumptions"));
  read_assumptions (file->origins, "why", ls_json_at (root, "assumptions"));
  read_names (file, root);
}

static LsResultFile *
read_doc (const char *path, const LsJsonDoc *doc, LsDiagList *diags)
{
  guint n_before = ls_diag_list_n (diags);
  g_autoptr (LsResultFile) file = g_new0 (LsResultFile, 1);
  file->path = g_strdup (path);
  file->options = g_ptr_array_new_with_free_func (option_free);
  file->assumptions = g_ptr_array_new_with_free_func (option_free);
  file->origins = g_ptr_array_new_with_free_func (option_free);
  for (int s = 0; s < LS_N_RESULT_SECTIONS; s++)
    file->sections[s] = ls_list_new (sizeof (LsResultNumber), ls_clear_text);
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
