#include "data/launch/program/program_map.h"

#include <string.h>

#include "base/list.h"
#include "data/datadir.h"
#include "data/jobs/job_files.h"
#include "data/text/field.h"

const LsField ls_program_fields[] = {
  LS_FIELDS_HEADER (ProgramMap),
  { "program", LS_FIELD_STRING, offsetof (ProgramMap, program), .required = true },
  { "prefix", LS_FIELD_STRING, offsetof (ProgramMap, prefix) },
  { "sections", LS_FIELD_STRING, offsetof (ProgramMap, sections) },
  { "reads", LS_FIELD_IGNORED, .expected = "list" },
  { "around", LS_FIELD_IGNORED, .expected = "object" },
  { "comes_with", LS_FIELD_IGNORED, .expected = "object" },
  { "arguments", LS_FIELD_IGNORED, .expected = "object" },
  { "releases", LS_FIELD_IGNORED, .expected = "list" },
  { "options", LS_FIELD_IGNORED, .expected = "list" },
  { "rules", LS_FIELD_IGNORED, .expected = "list" },
  { "parts", LS_FIELD_IGNORED, .expected = "object" },
  { "tables", LS_FIELD_IGNORED, .expected = "object" },
  { "writes", LS_FIELD_IGNORED, .expected = "object" },
  { "logs", LS_FIELD_IGNORED, .expected = "list" },
  { "unwraps", LS_FIELD_IGNORED, .expected = "object" },
  { .table = "program" },
};

void
program_map_free (ProgramMap *map)
{
  if (!map)
    return;
  ls_fields_clear (ls_program_fields, map);
  if (map->arguments)
    g_free ((gpointer) map->arguments->table.rows);
  g_free (map->arguments);
  g_free ((gpointer) map->table.rows);
  if (map->kept)
    g_ptr_array_unref (map->kept);
  ls_json_doc_free (map->doc);
  g_free (map);
}

/* --- reading ------------------------------------------------------------------------------------------- */

typedef struct {
  ProgramMap *map;
  LsJsonCheck check;
  GArray *rows; /* OptionRow */
  GPtrArray *kept;
} Reading;

static bool
is_true (const cJSON *object, const char *key)
{
  return cJSON_IsTrue (ls_json_at (object, key));
}

static void
add_row (Reading *x, const char *option, OptionRow row)
{
  char *name = program_option (x->map, option);
  row.option = name;
  g_ptr_array_add (x->kept, name);
  g_array_append_val (x->rows, row);
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
    ls_json_complain (&x->check, node, "expected a key of a %s", kind == OPTION_MODEL ? "model" : "strategy");
  return f ? f->key : NULL;
}

/* "known": as "rule", but no rule asks for it: what it says is so anyway. "as": another program's, which has
 * it under that name; of a text, or of "*", under the same. */
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
add_option (Reading *x, const cJSON *group, const char *option, OptionRow row)
{
  const cJSON *all = ls_json_at (group, "words"), *one;
  OptionWord *words = all ? g_new0 (OptionWord, cJSON_GetArraySize (all) + 1) : NULL;
  g_ptr_array_add (x->kept, words);
  row.words = words;
  cJSON_ArrayForEach (one, all)
    *words++ = (OptionWord) { one->string, cJSON_GetStringValue (one) };

  row.on = ls_json_text (group, "on");
  row.off = ls_json_text (group, "off");
  row.otherwise = ls_json_text (group, "otherwise");
  row.none = ls_json_text (group, "none");
  row.with = ls_json_text (group, "with");
  row.is_count = is_true (group, "count");

  row.write = ls_json_text (group, "write");
  row.only = ls_json_text (group, "when");
  row.joins = is_true (group, "joins");
  row.remark = ls_json_text (group, "remark");
  add_row (x, option, row);
}

/* { "model": { OPTION: KEY, ... } }, or { "rule": "a b c" }, or one option. */
static void
add_group (Reading *x, const cJSON *group)
{
  const char *option = ls_json_text (group, "option");
  const cJSON *decides = ls_json_at (group, "decides"), *node = NULL, *one;
  guint i = 0;
  while (i < G_N_ELEMENTS (groups) && !(node = ls_json_at (group, groups[i].name)))
    i++;
  bool is_of_other = node && groups[i].is_of_other, is_unasked = node && groups[i].is_unasked;
  OptionRow row = { .kind = node ? groups[i].kind : OPTION_RULE, .until = ls_json_text (group, "until") };
  bool is_key = row.kind == OPTION_MODEL || row.kind == OPTION_STRATEGY;
  row.key = option && is_key   ? key_of (x, node, row.kind)
      : !option && is_of_other ? "*"
      : decides                ? key_of (x, decides, OPTION_STRATEGY)
                               : ls_json_text (group, "alike");
  g_auto (GStrv) names = program_words (cJSON_GetStringValue (node), " ");
  row.remark = is_unasked ? UNASKED : NULL;
  x->map->is_dialect |= !option && is_of_other;
  if (option)
    add_option (x, group, option, row);
  else if (!node)
    ls_json_complain (&x->check, group,
                      "expected \"option\", \"model\", \"strategy\", \"rule\", \"known\", \"as\", "
                      "\"packs\" or \"ignored\"");
  else if (cJSON_IsString (node) && !is_key)
    for (char **name = names; *name; name++) { /* "a b c*" */
      if (**name)
        add_row (x, *name, row);
    }
  else if (cJSON_IsObject (node))
    cJSON_ArrayForEach (one, node) {
      if (is_of_other && !cJSON_IsString (one))
        ls_json_complain (&x->check, one, "expected the name of an option");
      row.key = is_of_other ? cJSON_GetStringValue (one) : key_of (x, one, row.kind);
      add_row (x, one->string, row);
    }
  else
    ls_json_complain (&x->check, node, "expected %s", is_key ? "an object" : "a text");
}

/* --- releases ------------------------------------------------------------------------------------------ */

/* { "name": "core 0.6", "software": profile, "year": 2024, "new": [ "a b" ], "last": [ "c" ] } */

static void
check_release (Reading *x, const cJSON *one)
{
  const cJSON *const lists[] = { ls_json_at (one, "new"), ls_json_at (one, "last") }, *text;
  if (!ls_json_text (one, "name") || !cJSON_IsNumber (ls_json_at (one, "year"))
      || (!one->next && !ls_json_text (one, "software")))
    ls_json_complain (&x->check, one, "expected \"name\" and \"year\", and of the last \"software\"");
  for (guint i = 0; i < G_N_ELEMENTS (lists); i++)
    cJSON_ArrayForEach (text, lists[i]) {
      g_auto (GStrv) names = program_words (cJSON_GetStringValue (text), " ");
      for (char **name = names; *name; name++)
        if (!option_find (&x->map->table, *name))
          ls_json_complain (&x->check, text, "there is no option %s among the options", *name);
    }
}

/* Such an expression sees no job. NULL allowed. */
static void
check_expression (Reading *x, const cJSON *node)
{
  ProgramRun run = { .map = x->map, .check = &x->check };
  if (cJSON_IsString (node))
    program_check_text (&run, node, false);
}

/* --- how files are known ------------------------------------------------------------------------------- */

/* A key that there is not, or one of a text or a truth value that has something else. */
static void
check_reads_key (Reading *x, const cJSON *node)
{
  static const char texts[]
      = "what when marks starts knows config ends below environment yaml_lines stacks adds "
        "prints gpus within noun joins asks module toml json returns places changes word "
        "behind yaml python fits lifts drops fills under at keeps made_by own",
      truths[] = "pairs submits te around switches last valued takes_variables means variables log picks "
                 "open plain apart alone without_none",
      others[] = "others ships says lines chooses begins functions shapes rules overrides "
                 "beside"
                 " sets without needs";
  bool is_text = ls_is_one_of (node->string, texts), is_truth = ls_is_one_of (node->string, truths);
  if ((is_text && !cJSON_IsString (node)) || (is_truth && !cJSON_IsBool (node)))
    ls_json_complain (&x->check, node, "expected %s", is_text ? "a text" : "true or false");
  else if (!is_text && !is_truth && !ls_is_one_of (node->string, others)
           && !g_str_has_prefix (node->string, "x-"))
    ls_json_complain (&x->check, node, "\"reads\" has no such key \"%s\"", node->string);
}

static void
check_file (Reading *x, const cJSON *of)
{
  static const char *const expressions[] = { "when", "fits", "overrides", "word", "adds", "needs" };
  const cJSON *const lists[]
      = { ls_json_at (of, "beside"), ls_json_at (of, "without"), ls_json_at (of, "says") },
      *one;
  bool is_tree = ls_json_at (of, "yaml") || ls_json_at (of, "json")
      || (ls_json_at (of, "toml") && !reads_is_script (of));
  if (!reads_is (of, "log") && is_tree == (ls_json_at (of, "python") || reads_is_script (of)))
    ls_json_complain (
        &x->check, of,
        "expected \"yaml\", \"toml\", \"json\" or \"python\", of a configuration, or \"marks\" or "
        "\"starts\", of a script");
  cJSON_ArrayForEach (one, of)
    check_reads_key (x, one);

  for (guint i = 0; i < G_N_ELEMENTS (expressions); i++)
    check_expression (x, ls_json_at (of, expressions[i]));
  for (guint i = 0; i < G_N_ELEMENTS (lists); i++)
    cJSON_ArrayForEach (one, lists[i]) {
      if (!cJSON_IsString (one) && !(i == 1 && cJSON_IsTrue (one)))
        ls_json_complain (&x->check, one, "expected an expression");
      check_expression (x, one);
    }
  cJSON_ArrayForEach (one, ls_json_at (of, "lines"))
    if (!ls_json_text (one, "has"))
      ls_json_complain (&x->check, one, "expected \"has\", texts that such a line has");

  cJSON_ArrayForEach (one, ls_json_at (of, "sets"))
    if (!cJSON_IsString (one))
      ls_json_complain (&x->check, one, "expected a path");
}

/* What the first of rules that has such a member says there; NULL: none has. */
static const cJSON *
first_rule (const cJSON *rules, const char *key)
{
  const cJSON *rule, *first = NULL;
  cJSON_ArrayForEach (rule, rules)
    first = first ? first : ls_json_at (rule, key);

  return first;
}

/* The options that those of a dialect become, or that are said beside: of the reader that a rule names. NULL:
 * none is known. */
static const OptionTable *
options_of_reader (const ProgramMap *map)
{
  const cJSON *reader
      = first_rule (ls_json_at (map->root, "rules"), map->has_beside ? "beside" : "translate");
  for (const cJSON *of = cJSON_GetArrayItem (program_section (map, "reads"), 0); of && !reader; of = of->next)
    reader = first_rule (ls_json_at (of, "rules"), "translate");
  return program_table_find (ls_json_at (map->root, "around") ? "trainer" : cJSON_GetStringValue (reader));
}

static void
check_theirs (Reading *x, const cJSON *options, const OptionTable *theirs)
{
  for (guint i = 0; i < x->map->table.n && theirs; i++) {
    const OptionRow *row = &x->map->table.rows[i];
    if (row->kind == OPTION_RULE && row->remark && row->key && strcmp (row->key, "*") != 0
        && !option_find (theirs, row->key))
      ls_json_complain (&x->check, options, "%s is as %s, which is no option of that program", row->option,
                        row->key);
  }
}

/* Rules that a row announces, and that no rule asks for. */
static void
check_named (Reading *x, const cJSON *options, GHashTable *named)
{
  for (guint i = 0; i < x->map->table.n; i++) {
    const OptionRow *row = &x->map->table.rows[i];
    bool is_named = row->kind != OPTION_RULE || row->remark || row->write || row->only;
    GHashTableIter iter;
    gpointer name;
    for (g_hash_table_iter_init (&iter, named); !is_named && g_hash_table_iter_next (&iter, &name, NULL);)
      is_named = option_fits (row->option, name) || strcmp (row->option, name) == 0;
    if (!is_named)
      ls_json_complain (&x->check, options,
                        "no rule asks for the option %s: it is \"ignored\", or a rule is missing",
                        row->option);
  }
}

/* What is calculated is known to rules and to options that are written. */
static void
check_writes (Reading *x)
{
  const cJSON *writes = ls_json_at (x->map->root, "writes"), *one;
  ProgramRun run = { .map = x->map, .check = &x->check };
  cJSON_ArrayForEach (one, ls_json_at (writes, "let")) {
    if (cJSON_IsString (one))
      program_check_text (&run, one, false);
    program_let (&run, one->string, program_none ());
  }
  program_check_rules (&run, ls_json_at (writes, "finds"));
  program_check_rules (&run, ls_json_at (writes, "rules"));
  for (guint i = 0; writes && i < 2 * x->map->table.n; i++) {
    const OptionRow *row = &x->map->table.rows[i / 2];
    const char *expression = i % 2 == 0 ? row->write : row->only;
    g_auto (ProgramValue) v = expression ? program_eval (&run, expression) : program_none ();
    if (run.wrong)
      ls_json_complain (&x->check, writes, "%s: %s", row->option, run.wrong);
    g_clear_pointer (&run.wrong, g_free);
  }
  program_run_clear (&run);
}

/* Of a map whose rules write a script; its parts may use what they calculate. */
static void
check_unwraps (Reading *x, ProgramRun *run)
{
  const cJSON *wrap = ls_json_at (x->map->root, "unwraps");
  if (!wrap)
    return;
  if (!ls_json_text (wrap, "when"))
    ls_json_complain (&x->check, wrap,
                      "expected \"when\", what holds of the text of such a file, and \"rules\"");
  check_expression (x, ls_json_at (wrap, "when"));
  check_expression (x, ls_json_at (wrap, "fits"));
  program_let (run, "wrong", program_none ());
  program_check_rules (run, ls_json_at (wrap, "rules"));
}

/* Options and rules of a map, or of its arguments. theirs: the options that its own become; NULL: those of
 * the program that a rule names. */
static void
read_lists (Reading *x, const cJSON *node, const OptionTable *theirs)
{
  ProgramMap *map = x->map;
  const cJSON *one, *options = ls_json_at (node, "options"), *rules = ls_json_at (node, "rules"),
                    *reads = ls_json_at (node, "reads");
  g_autoptr (GHashTable) named = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL),
                         parts = g_hash_table_new (g_str_hash, g_str_equal);
  map->root = node;
  map->has_beside = first_rule (rules, "beside") != NULL;
  x->rows = g_array_new (FALSE, FALSE, sizeof (OptionRow));
  cJSON_ArrayForEach (one, options)
    add_group (x, one);

  map->table.map = map;
  map->table.n = x->rows->len;
  map->table.rows = (const OptionRow *) g_array_free (x->rows, FALSE);
  cJSON_ArrayForEach (one, ls_json_at (node, "releases"))
    check_release (x, one);

  if (reads && !reads->child)
    ls_json_complain (&x->check, reads, "expected a list of at least one file");
  cJSON_ArrayForEach (one, reads)
    check_file (x, one);

  ProgramRun run = { .map = map,
                     .check = &x->check,
                     .named = named,
                     .parts = parts,
                     .theirs = theirs ? theirs : options_of_reader (map) };
  check_theirs (x, options, run.theirs);
  check_unwraps (x, &run);
  check_writes (x);
  cJSON_ArrayForEach (one, reads) {
    program_check_rules (&run, ls_json_at (one, "rules"));
    program_check_rules (&run, ls_json_at (one, "shapes"));
  }
  program_check_rules (&run, rules);
  cJSON_ArrayForEach (one, ls_json_at (node, "parts")) {
    g_clear_pointer (&run.lets, g_hash_table_unref);
    if (!g_hash_table_contains (parts, one->string))
      program_check_rules (&run, one);
  }
  program_run_clear (&run);
  if (x->check.n_wrong == 0)
    check_named (x, options, named);
}

/* They see no options but their own. */
static void
read_arguments (Reading *x, const cJSON *node)
{
  ProgramMap *map = x->map;
  if (!node)
    return;
  map->arguments = g_new0 (ProgramMap, 1);
  map->arguments->program = map->program;
  map->arguments->doc = map->doc;
  x->map = map->arguments;
  read_lists (x, node, &map->table);
  x->map = map;
}

ProgramMap *
program_map_read (const LsJsonDoc *doc, LsDiagList *diags)
{
  g_autoptr (ProgramMap) map = g_new0 (ProgramMap, 1);
  if (!ls_fields_read_file (ls_program_fields, "program", doc, map, diags))
    return NULL;
  const cJSON *root = ls_json_doc_root (doc);
  map->doc = ls_json_doc_ref (doc);
  map->kept = g_ptr_array_new_with_free_func (g_free);
  Reading x = { map, { map->doc, diags, 0 }, NULL, map->kept };
  bool has_some = false;
  for (const cJSON *one = root->child; one && !has_some; one = one->next)
    has_some = ls_is_one_of (one->string, "logs reads around parts tables unwraps");
  if (!has_some)
    ls_json_complain (&x.check, root,
                      "expected \"reads\", with \"options\" and \"rules\", \"parts\" or \"logs\"");
  program_check_logs (&x.check, ls_json_at (root, "logs"));
  read_lists (&x, root, NULL);
  read_arguments (&x, ls_json_at (root, "arguments"));
  return x.check.n_wrong == 0 ? g_steal_pointer (&map) : NULL;
}

ProgramMap *
program_map_load (const char *name, LsDiagList *diags)
{
  g_autoptr (LsJsonDoc) doc = ls_data_load (LS_DATA_PROGRAMS, name, diags);
  return doc ? program_map_read (doc, diags) : NULL;
}

/* One that ships, where no folder of data has it. */
static ProgramMap *
load_embedded (const char *name)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autofree char *message = NULL, *path = ls_data_find (LS_DATA_PROGRAMS, name, &message);
  for (guint i = 0; !path && program_embedded[i][0]; i++) {
    const char *text = program_embedded[i][1];
    g_autoptr (LsJsonDoc) doc = strcmp (program_embedded[i][0], name) == 0
        ? ls_json_doc_parse (text, strlen (text), name, diags)
        : NULL;
    if (doc)
      return program_map_read (doc, diags);
  }
  return NULL;
}

const ProgramMap *
program_map_get (const char *name)
{
  static GRecMutex lock;   /* a map may look at another */
  static GHashTable *maps; /* NULL: cannot be read */
  g_rec_mutex_lock (&lock);
  if (!maps)
    maps = g_hash_table_new (g_str_hash, g_str_equal);
  gpointer map = NULL;
  if (!g_hash_table_lookup_extended (maps, name, NULL, &map)) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    map = program_map_load (name, diags);
    map = map ? map : load_embedded (name);
    g_hash_table_insert (maps, g_strdup (name), map);
  }
  g_rec_mutex_unlock (&lock);
  return map;
}

char *
ls_program_inspect (const LsJsonDoc *doc, LsDiagList *diags)
{
  g_autoptr (ProgramMap) map = program_map_read (doc, diags);
  return map ? g_strdup_printf ("program, %s: %u options, %d rules", map->program, map->table.n,
                                cJSON_GetArraySize (program_section (map, "rules")))
             : NULL;
}
