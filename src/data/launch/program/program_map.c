#include "data/launch/program/program_map.h"

#include <string.h>

#include "data/datadir.h"
#include "data/jobs/job_files.h"
#include "data/text/field.h"

const LsField ls_program_fields[] = {
  LS_FIELDS_HEADER (ProgramMap),
  { "program", LS_FIELD_STRING, offsetof (ProgramMap, program), .required = true,
    .meaning = "what it is called: \"Levanter\"" },
  { "prefix", LS_FIELD_STRING, offsetof (ProgramMap, prefix), .default_text = "none",
    .meaning = "what `$` in front of an option stands for: \"model.model_config.\"" },
  { "reads", LS_FIELD_IGNORED, .default_text = "none", .expected = "list",
    .meaning = "how its files are known, a file after the other" },
  { "options", LS_FIELD_IGNORED, .default_text = "none", .expected = "list",
    .meaning = "what its options are, group after group; of several that fit the first holds" },
  { "rules", LS_FIELD_IGNORED, .default_text = "none", .expected = "list",
    .meaning = "what they mean together, in order" },
  { "logs", LS_FIELD_IGNORED, .default_text = "none", .expected = "list",
    .meaning = "which lines of its logs say which numbers" },
  { NULL },
};

void
program_map_free (ProgramMap *map)
{
  if (!map)
    return;
  ls_fields_clear (ls_program_fields, map);
  if (map->files)
    g_array_unref (map->files);
  g_free ((gpointer) map->table.rows);
  ls_json_doc_free (map->doc);
  g_free (map);
}

/* --- reading ------------------------------------------------------------------------------------------- */

typedef struct {
  ProgramMap *map;
  LsDiagList *diags;
  GArray *rows; /* OptionRow; texts are interned, as rows have static ones */
  bool is_right;
} Reading;

static void G_GNUC_PRINTF (3, 4) complain (Reading *x, const cJSON *node, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *text = g_strdup_vprintf (format, args);
  va_end (args);
  ls_json_doc_diag (x->map->doc, node, LS_JSON_AT_VALUE, x->diags, NULL, "%s", text);
  x->is_right = false;
}

static const char *
interned (const cJSON *object, const char *key)
{
  return g_intern_string (cJSON_GetStringValue (cJSON_GetObjectItemCaseSensitive (object, key)));
}

static void
add_row (Reading *x, const char *option, OptionRow row)
{
  g_autofree char *name = program_option (x->map, option, strlen (option));
  row.option = g_intern_string (name);
  g_array_append_val (x->rows, row);
}

/* "a b c*" */
static void
add_rows (Reading *x, const char *options, OptionRow row)
{
  g_auto (GStrv) names = g_strsplit (options, " ", -1);
  for (char **name = names; *name; name++)
    if (**name)
      add_row (x, *name, row);
}

/* The name of our file for a key; NULL and a complaint: there is none. */
static const char *
key_of (Reading *x, const cJSON *node, OptionKind kind)
{
  const char *key = cJSON_GetStringValue (node);
  const LsField *f = !key    ? NULL
      : kind == OPTION_MODEL ? ls_field_find_value (ls_model_fields, key)
                             : ls_field_find (ls_strategy_fields, key);
  if (!f)
    complain (x, node, "expected a key of a %s", kind == OPTION_MODEL ? "model" : "strategy");
  return f ? f->key : NULL;
}

static OptionWord *
words_of (const cJSON *object)
{
  guint n = (guint) cJSON_GetArraySize (object);
  OptionWord *words = g_new0 (OptionWord, n + 1); /* stays as long as the program runs */
  const cJSON *one;
  n = 0;
  cJSON_ArrayForEach (one, object)
  {
    words[n++] = (OptionWord) { g_intern_string (one->string), g_intern_string (cJSON_GetStringValue (one)) };
  }
  return words;
}

/* "known": as "rule", but no rule asks for it: what it says is so anyway. "as": another program's, which has
 * it under that name; of a text those of the same name. */
static const struct {
  const char *name;
  OptionKind kind;
  bool is_unasked, is_of_other;
} groups[] = {
  { "model", OPTION_MODEL },         { "strategy", OPTION_STRATEGY }, { "rule", OPTION_RULE },
  { "packs", OPTION_PACKS },         { "known", OPTION_RULE, true },  { "ignored", OPTION_IGNORED },
  { "as", OPTION_RULE, true, true },
};

#define UNASKED "unasked" /* the remark of such a row, which only those that are written have otherwise */

/* { "option": NAME, "strategy": KEY, "with": ... }: one with more to say. */
static void
add_option (Reading *x, const cJSON *group, const char *option)
{
  OptionRow row = { .kind = OPTION_RULE };
  const cJSON *node = NULL;
  for (guint i = 0; i < G_N_ELEMENTS (groups) && !node; i++) {
    node = cJSON_GetObjectItemCaseSensitive (group, groups[i].name);
    row.kind = node ? groups[i].kind : row.kind;
  }
  const cJSON *decides = cJSON_GetObjectItemCaseSensitive (group, "decides"),
              *words = cJSON_GetObjectItemCaseSensitive (group, "words");
  if (row.kind == OPTION_MODEL || row.kind == OPTION_STRATEGY)
    row.key = key_of (x, node, row.kind);
  else if (decides)
    row.key = key_of (x, decides, OPTION_STRATEGY);
  row.on = interned (group, "on");
  row.off = interned (group, "off");
  row.otherwise = interned (group, "otherwise");
  row.none = interned (group, "none");
  row.with = interned (group, "with");
  row.until = interned (group, "until");
  row.is_count = cJSON_IsTrue (cJSON_GetObjectItemCaseSensitive (group, "count"));
  row.words = words ? words_of (words) : NULL;
  add_row (x, option, row);
}

/* { "model": { OPTION: KEY, ... } }, or { "rule": "a b c" }. */
static void
add_group (Reading *x, const cJSON *group)
{
  const char *option = cJSON_GetStringValue (cJSON_GetObjectItemCaseSensitive (group, "option"));
  if (option) {
    add_option (x, group, option);
    return;
  }
  for (guint i = 0; i < G_N_ELEMENTS (groups); i++) {
    const cJSON *node = cJSON_GetObjectItemCaseSensitive (group, groups[i].name), *one;
    OptionRow row = { .kind = groups[i].kind,
                      .key = groups[i].is_of_other ? "*" : NULL,
                      .remark = groups[i].is_unasked ? UNASKED : NULL };
    if (!node)
      continue;
    if (cJSON_IsString (node) && row.kind != OPTION_MODEL && row.kind != OPTION_STRATEGY)
      add_rows (x, node->valuestring, row);
    else if (cJSON_IsObject (node))
      cJSON_ArrayForEach (one, node)
      {
        row.key = groups[i].is_of_other ? g_intern_string (cJSON_GetStringValue (one))
                                        : key_of (x, one, row.kind);
        add_row (x, one->string, row);
      }
    else
      complain (x, node, "expected %s", row.kind <= OPTION_STRATEGY ? "an object" : "a text");
    return;
  }
  complain (
      x, group,
      "expected \"option\", \"model\", \"strategy\", \"rule\", \"known\", \"as\", \"packs\" or \"ignored\"");
}

/* NULL allowed. */
static void
check_expression (Reading *x, const cJSON *node)
{
  ProgramRun run = { .map = x->map };
  if (cJSON_IsString (node)) {
    ProgramValue v = program_eval (&run, node->valuestring);
    program_value_clear (&v);
  }
  if (run.wrong)
    complain (x, node, "%s", run.wrong);
  g_free (run.wrong);
}

static void
check_file (Reading *x, const cJSON *node, const ProgramFile *file)
{
  static const char *const expressions[] = { "fits", "overrides", "word" };
  const cJSON *one;
  if (!file->yaml == !(file->marks || file->starts))
    complain (x, node, "expected \"yaml\", of a configuration, or \"marks\" or \"starts\", of a script");
  for (guint i = 0; i < G_N_ELEMENTS (expressions); i++)
    check_expression (x, cJSON_GetObjectItemCaseSensitive (node, expressions[i]));
  cJSON_ArrayForEach (one, file->beside)
  {
    if (!cJSON_IsString (one))
      complain (x, one, "expected an expression");
    check_expression (x, one);
  }
}

static bool
is_true (const cJSON *object, const char *key)
{
  return cJSON_IsTrue (cJSON_GetObjectItemCaseSensitive (object, key));
}

static void
read_files (Reading *x, const cJSON *list)
{
  const cJSON *one;
  cJSON_ArrayForEach (one, list)
  {
    const ProgramFile file = { .what = interned (one, "what"),
                               .marks = interned (one, "marks"),
                               .starts = interned (one, "starts"),
                               .config = interned (one, "config"),
                               .has_pairs = is_true (one, "pairs"),
                               .submits = is_true (one, "submits"),
                               .yaml = interned (one, "yaml"),
                               .fits = interned (one, "fits"),
                               .moves = cJSON_GetObjectItemCaseSensitive (one, "moves"),
                               .lifts = interned (one, "lifts"),
                               .drops = interned (one, "drops"),
                               .is_apart = is_true (one, "apart"),
                               .is_alone = is_true (one, "alone"),
                               .beside = cJSON_GetObjectItemCaseSensitive (one, "beside"),
                               .rules = cJSON_GetObjectItemCaseSensitive (one, "rules"),
                               .overrides = cJSON_GetObjectItemCaseSensitive (one, "overrides"),
                               .word = interned (one, "word"),
                               .behind = interned (one, "behind") };
    check_file (x, one, &file);
    g_array_append_val (x->map->files, file);
  }
  if (list && x->map->files->len == 0)
    complain (x, list, "expected a list of at least one file");
}

/* Rules that a row announces, and that no rule asks for. */
static void
check_named (Reading *x, const cJSON *options, GHashTable *named)
{
  for (guint i = 0; i < x->map->table.n; i++) {
    const OptionRow *row = &x->map->table.rows[i];
    bool is_named = row->kind != OPTION_RULE || row->remark;
    GHashTableIter iter;
    gpointer name;
    for (g_hash_table_iter_init (&iter, named); !is_named && g_hash_table_iter_next (&iter, &name, NULL);)
      is_named = option_fits (row->option, name) || strcmp (row->option, name) == 0;
    if (!is_named)
      complain (x, options, "no rule asks for the option %s: it is \"ignored\", or a rule is missing",
                row->option);
  }
}

static void
read_lists (Reading *x)
{
  ProgramMap *map = x->map;
  const cJSON *root = ls_json_doc_root (map->doc), *one,
              *options = cJSON_GetObjectItemCaseSensitive (root, "options");
  g_autoptr (GHashTable) named = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  map->rules = cJSON_GetObjectItemCaseSensitive (root, "rules");
  map->logs = cJSON_GetObjectItemCaseSensitive (root, "logs");
  if (!map->logs && !cJSON_GetObjectItemCaseSensitive (root, "reads"))
    complain (x, root, "expected \"reads\", with \"options\" and \"rules\", or \"logs\"");
  x->is_right &= program_check_logs (map, x->diags);
  cJSON_ArrayForEach (one, options)
  {
    add_group (x, one);
  }
  map->table.n = x->rows->len;
  map->table.rows = (const OptionRow *) g_array_free (x->rows, FALSE);
  x->rows = NULL;
  read_files (x, cJSON_GetObjectItemCaseSensitive (root, "reads"));
  ProgramRun run = { .map = map, .named = named };
  for (guint i = 0; i < map->files->len; i++)
    x->is_right
        &= program_check_rules (&run, map->doc, g_array_index (map->files, ProgramFile, i).rules, x->diags);
  x->is_right &= program_check_rules (&run, map->doc, map->rules, x->diags);
  g_hash_table_unref (run.lets);
  if (x->is_right)
    check_named (x, options, named);
}

ProgramMap *
program_map_read (const LsJsonDoc *doc, LsDiagList *diags)
{
  g_autoptr (ProgramMap) map = g_new0 (ProgramMap, 1);
  if (!ls_fields_read_file (ls_program_fields, "program", doc, map, diags))
    return NULL;
  map->doc = ls_json_doc_ref (doc);
  map->files = g_array_new (FALSE, FALSE, sizeof (ProgramFile));
  Reading x = { map, diags, g_array_new (FALSE, FALSE, sizeof (OptionRow)), true };
  read_lists (&x);
  if (x.rows)
    g_array_unref (x.rows);
  return x.is_right ? g_steal_pointer (&map) : NULL;
}

ProgramMap *
program_map_load (const char *name, LsDiagList *diags)
{
  g_autoptr (LsJsonDoc) doc = ls_data_load (LS_DATA_PROGRAMS, name, diags);
  return doc ? program_map_read (doc, diags) : NULL;
}

const ProgramMap *
program_map_get (const char *name)
{
  static GMutex lock;
  static GHashTable *maps; /* NULL: cannot be read */
  g_mutex_lock (&lock);
  if (!maps)
    maps = g_hash_table_new (g_str_hash, g_str_equal);
  gpointer map = NULL;
  if (!g_hash_table_lookup_extended (maps, name, NULL, &map)) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    map = program_map_load (name, diags);
    g_hash_table_insert (maps, g_strdup (name), map);
  }
  g_mutex_unlock (&lock);
  return map;
}
