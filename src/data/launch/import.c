/* data/launch/import.c — a job's files of another program, read. */
#include "data/jobs/imported.h"

#include <lockstep/error.h>
#include <string.h>

#include "base/suggest.h"
#include "data/jobs/job_files.h"
#include "data/launch/import_reader.h"
#include "data/launch/launch_script.h"
#include "data/launch/log_steps.h"
#include "data/launch/program/program_map.h"
#include "data/launch/yaml_config.h"
#include "data/text/field.h"
#include "data/text/text_place.h"
#include "data/text/override.h"
#include "data/text/read_file.h"

/* --- a job as the files of another program say it: launch scripts, configurations, logs ---------- */

/* --- what is given behind the name ------------------------------------------------------------------ */

static void
given_clear (gpointer given)
{
  g_free (((ImportGiven *) given)->name);
  g_free (((ImportGiven *) given)->value);
}

static const LsField *
find (const LsField *fields, const char *key)
{
  const LsField *f = ls_field_find (fields, key);
  return f && !f->file_only ? f : NULL;
}

/* Of a key that both have, that which launch files say: the length of a sequence is the model's. */
static void
set_key (LsImport *import, const LsField *model, const LsField *strategy, const char *value, bool is_quiet,
         LsDiagList *diags)
{
  bool is_model = model && (model->required || !strategy);
  const LsField *f = is_model ? model : strategy;
  g_autoptr (LsDiagList) why = ls_diag_list_new ();
  void *target = is_model ? (void *) &import->model : (void *) &import->strategy;
  if (!ls_field_set_text (is_model ? ls_model_fields : ls_strategy_fields, target, f->key, value, why)) {
    if (!is_quiet)
      ls_diag_add (diags, LS_ERROR_USAGE, import->path, 0, 0, NULL, NULL, NULL,
                   "%s=%s: that is no value for it", f->key, value);
    return;
  }
  g_hash_table_add (is_model ? import->model_said : import->strategy_said, (gpointer) f->key);
  g_hash_table_add (import->given, (gpointer) f->key);
  if (!is_quiet)
    import_infer (import, "%s %s: as given", f->key, value);
}

/* Sets the keys of ours among "vocab=50257" (char *) before a file is read, so that rules know them; no
 * reader changes them. The others are variables for the reader: ImportGiven, owned by the array. A malformed
 * value is LS_ERROR_USAGE. What has a colon in front, ":tp=2", is not told, and dropped if malformed. */
static GArray *
import_take_given (LsImport *import, const GPtrArray *changes, LsDiagList *diags)
{
  GArray *variables = g_array_new (FALSE, TRUE, sizeof (ImportGiven));
  g_array_set_clear_func (variables, given_clear);
  for (guint i = 0; i < changes->len; i++) {
    const char *change = changes->pdata[i];
    bool is_quiet = *change == ':';
    g_auto (GStrv) pair = g_strsplit (change + is_quiet, "=", 2);
    const LsField *model = find (ls_model_fields, pair[0]), *strategy = find (ls_strategy_fields, pair[0]);
    if (model || strategy) {
      set_key (import, model, strategy, pair[1], is_quiet, diags);
      continue;
    }
    const ImportGiven variable = { g_strdup (pair[0]), g_strdup (pair[1]), false, false };
    g_array_append_val (variables, variable);
  }
  return variables;
}

/* Whether a job says it, whichever model it runs. */
static bool
is_of_job (const char *key)
{
  return strcmp (key, "seq") == 0 || g_str_has_prefix (key, "predict_") || strcmp (key, "attention") == 0;
}

/* Before a file is read, as import_take_given(); what the model does not have counts too. */
static void
import_take_model (LsImport *import, const LsModel *model)
{
  import_model (import, model, "--model");
  for (const LsField *f = ls_model_fields; f->key; f++)
    if (ls_field_is_value (f) && !is_of_job (f->key))
      g_hash_table_add (import->given, (gpointer) f->key);
  import->model_is_given = true;
}

static void
refuse (const ImportFile *file, const ImportGiven *g, LsDiagList *diags)
{
  const char *near = ls_field_suggest (ls_model_fields, g->name);
  near = near ? near : ls_field_suggest (ls_strategy_fields, g->name);
  g_autofree char *hint = near && !g->is_lost ? g_strdup_printf ("did you mean %s?", near) : NULL;
  ls_diag_add (diags, LS_ERROR_USAGE, file->path, 0, 0, NULL, NULL, hint,
               g->is_lost ? "%s=%s: it sets %s itself, whatever is given"
                          : "%s=%s: there is no variable that it asks for, and no key of a model or of a "
                            "strategy, of the name %s",
               g->name, g->value, g->name);
}

/* Whether the reader had use for all variables; LS_ERROR_USAGE. */
static bool
import_check_given (const ImportFiles *files, LsDiagList *diags)
{
  bool ok = true;
  for (guint i = 0; i < files->n_given; i++)
    if (!files->given[i].is_used) {
      refuse (&files->files[0], &files->given[i], diags);
      ok = false;
    }
  return ok;
}

/* --- the files of a job ------------------------------------------------------------------------------- */

/* "train_gpt.sh" as "train_gpt". */
static char *
name_of (const char *path)
{
  char *name = g_path_get_basename (path);
  char *dot = strrchr (name, '.');
  if (dot && dot > name)
    *dot = '\0';
  for (char *p = name; *p; p++)
    if (!g_ascii_isalnum (*p) && !strchr ("-_.", *p))
      *p = '-';
  return name;
}

static void
option_clear (gpointer option)
{
  g_free (((LsImportOption *) option)->written);
  g_free (((LsImportOption *) option)->value);
}

static void
import_init (LsImport *import, const ImportFiles *files)
{
  const char *path = files->files[0].path;
  *import = (LsImport) { .name = name_of (path), .path = g_strdup (path) };
  import->files = g_ptr_array_new_with_free_func (g_free);
  import->asked = g_ptr_array_new_with_free_func (g_free);
  for (guint i = 0; i < files->n + files->n_logs; i++) {
    const ImportFile *f = &files->files[i];
    g_ptr_array_add (import->files, g_strdup (f->path));
    g_ptr_array_add (import->asked, g_strdup (f->asked ? f->asked : f->path));
  }
  import->options = g_array_new (FALSE, FALSE, sizeof (LsImportOption));
  g_array_set_clear_func (import->options, option_clear);
  import->model.attention = LS_ATTENTION_FLASH;
  ls_strategy_init (&import->strategy);
  import->model_said = g_hash_table_new (g_str_hash, g_str_equal);
  import->strategy_said = g_hash_table_new (g_str_hash, g_str_equal);
  import->by_rule = g_hash_table_new (g_str_hash, g_str_equal);
  import->words = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  import->decided = g_hash_table_new (g_str_hash, g_str_equal);
  import->given = g_hash_table_new (g_str_hash, g_str_equal);
  import->open = g_hash_table_new (g_str_hash, g_str_equal);
  import->follows_gpus = g_hash_table_new (g_str_hash, g_str_equal);
  import->inferred = g_ptr_array_new_with_free_func (g_free);
  import->unknown = g_ptr_array_new_with_free_func (g_free);
  import->ignored = g_ptr_array_new_with_free_func (g_free);
  import->conflicts = g_ptr_array_new_with_free_func (g_free);
}

/* With a diagnostic. */
static bool
is_adapter (const ImportFile *file, LsDiagList *diags)
{
  g_autoptr (LsDiagList) none = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = strstr (file->text, "\"peft_type\"")
      ? ls_json_doc_parse (file->text, file->n, file->path, none)
      : NULL;
  return doc && ls_refuse_adapter (doc, diags);
}

/* --- learned positions: a table, beside how long sequences are --------------------------------------- */

/* A length that was given is that of a sequence: the table stays as the files have it, as that of a
 * model that is named. */
static void
settle_positions (LsImport *import)
{
  const guint32 seq = import->model.seq;
  bool has_table = import_has_model (import, "position") && import->model.position == LS_POSITION_LEARNED;
  if (import->model_is_given || !has_table || !import_has_model (import, "seq") || import->positions == 0
      || import->positions == seq)
    return;
  import->strategy.seq = seq;
  g_hash_table_add (import->strategy_said, (gpointer) "seq");
  import->model.seq = import->positions;
  import_infer (import, "sequences of %u tokens, and a table of %u learned positions", seq,
                import->positions);
}

/* --- logs beside a job's files -------------------------------------------------------------------- */

/* What a log beside the files of a job timed. One is enough: another is refused as not used. */
static void
read_log_beside (const ImportFile *log, LsImport *import)
{
  import->measured.path = g_strdup (log->path);
  import_infer (import, "%s: only the times of its steps are read, as lines of %s", log->path,
                import_log_what (log));
  import_measure_log (log->text, import);
  import_use_file (log);
}

/* Every file behind the first is of use; LS_ERROR_INPUT. */
static bool
check_used (const ImportFile *files, guint n, LsDiagList *diags)
{
  bool ok = true;
  for (guint i = 1; i < n; i++) {
    bool is_log = import_log_what (&files[i]) != NULL;
    if (*files[i].is_used)
      continue;
    ls_diag_add (
        diags, LS_ERROR_INPUT, files[i].path, 0, 0, NULL, NULL,
        is_log ? "give one log with steps"
               : "leave it out, or give the file that names it; together with a job a log is read whose "
                 "lines of steps are known (lockstep import --help)",
        is_log ? "nothing of it is used: the job has its time of a step from another file"
               : "nothing of it is used: %s does not read it",
        files[0].path);
    ok = false;
  }
  return ok;
}

/* A file that no reader takes: why. */
static void
refuse_unknown (const ImportFile *file, LsDiagList *diags)
{
  if (import_log_what (file))
    ls_diag_add (diags, LS_ERROR_INPUT, file->path, 0, 0, NULL, NULL,
                 "give one of them, after the files of its job if there are", "several logs, and no job");
  else if (!is_adapter (file, diags) && !yaml_config_refuse (file, diags)
           && !launch_script_refuse (file, diags)) {
    const char *hint = ls_lookalike_hint (file->text);
    ls_diag_add (diags, LS_ERROR_INPUT, file->path, 0, 0, NULL, NULL,
                 hint ? hint
                      : "lockstep import --help lists the programs whose scripts, configurations and logs "
                        "are read",
                 "no script, configuration or log of a program that is read");
  }
}

/* changes: "vocab=50257", char *. model NULL: that of the files. */
static bool
read_files (const ImportFiles *files, const GPtrArray *changes, const LsModel *model, LsImport *ret_import,
            LsDiagList *diags)
{
  if (!import_maps_are_right (diags))
    return false;
  ProgramReader reader;
  const bool is_known = files->n > 0 && import_choose (files, &reader);
  if (!is_known && !(files->n > 0 && import_log_what (&files->files[0]))) {
    refuse_unknown (&files->files[0], diags);
    return false;
  }
  LsImport import;
  import_init (&import, files);
  g_autoptr (GArray) variables = import_take_given (&import, changes, diags);
  if (model)
    import_take_model (&import, model);
  ImportFiles all = *files;
  all.given = (ImportGiven *) (gpointer) variables->data;
  all.n_given = variables->len;
  g_autoptr (GHashTable) written = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  all.written = written;
  all.found = import.files;
  for (guint i = 0; files->told && i < files->told->len; i++)
    import_infer (&import, "%s", (const char *) files->told->pdata[i]);
  bool ok = ls_diag_list_n (diags) == 0
      && (is_known ? program_read (&reader, &all, &import, diags) : import_log_alone (&all, &import, diags))
      && import_check_given (&all, diags);
  if (ok && files->n_logs > 0 && import.measured.step_s == 0)
    read_log_beside (&files->files[files->n], &import);
  settle_positions (&import);
  ok = ok && check_used (files->files, files->n + files->n_logs, diags);
  if (ok)
    *ret_import = import;
  else
    ls_import_clear (&import);
  return ok;
}

/* "TP=2" in place of ${TP} in a configuration in YAML, as envsubst puts it; whether it has one. */
static bool
substitute (ImportFile *file, const char *change)
{
  const char *equals = strchr (change, '=');
  g_autofree char *template = g_strdup_printf ("${%.*s}", equals ? (int) (equals - change) : 0, change);
  if (!equals || g_str_has_prefix (file->text, "#!") || !strstr (file->text, template)
      || !cJSON_IsObject (yaml_config_tree (file)))
    return false;
  GString *text = g_string_new_len (file->text, (gssize) file->n);
  g_string_replace (text, template, equals + 1, 0);
  cJSON_Delete (file->yaml->tree);
  *file->yaml = (ImportYaml) { 0 };
  g_free (file->text);
  file->n = text->len;
  file->text = g_string_free (text, FALSE);
  return true;
}

/* The changes that no file has in itself. */
static GPtrArray *
substitute_all (ImportFile *files, guint n, const GPtrArray *changes, GPtrArray *told)
{
  GPtrArray *left = g_ptr_array_new ();
  for (guint i = 0; i < changes->len; i++) {
    bool is_done = false;
    for (guint k = 0; k < n; k++)
      is_done |= substitute (&files[k], changes->pdata[i]);
    if (is_done)
      g_ptr_array_add (told, g_strdup_printf ("%s: put into the file", (char *) changes->pdata[i]));
    else
      g_ptr_array_add (left, changes->pdata[i]);
  }
  return left;
}

/* Of which the first may hold a script in other words. */
static bool
unpack_and_read (ImportFile *files, guint n, const GPtrArray *all_changes, const LsModel *model,
                 LsImport *ret_import, LsDiagList *diags)
{
  g_autoptr (GPtrArray) told = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GPtrArray) changes = substitute_all (files, n, all_changes, told);
  guint n_read = import_set_logs_apart (files, n);
  const ImportFiles all = { .files = files, .n = n_read, .n_logs = n - n_read, .told = told };
  return import_unwrap (&files[0], told, diags) && read_files (&all, changes, model, ret_import, diags);
}

static void
file_clear (gpointer file)
{
  ImportFile *f = file;
  g_free (f->text);
  cJSON_Delete (f->yaml->tree);
  g_free (f->yaml);
  g_free (f->is_used);
}

/* Appends what is given behind a path, "vocab=50257"; the path without it. A file may have such a name. */
static char *
split_path (const char *path, GPtrArray *changes)
{
  const char *behind = g_file_test (path, G_FILE_TEST_EXISTS) ? NULL : ls_override_find (path);
  g_autoptr (GPtrArray) items = behind ? ls_override_split (behind) : NULL;
  for (guint i = 0; items && i < items->len; i++)
    g_ptr_array_add (changes, g_strconcat (*path == ':' ? ":" : "", items->pdata[i], NULL));
  return behind ? g_strndup (path, (gsize) (behind - 1 - path)) : g_strdup (path);
}

bool
ls_import_load (const char *const *paths, LsImport *ret_import, LsDiagList *diags)
{
  return ls_import_load_with (paths, NULL, ret_import, diags);
}

bool
ls_import_load_with (const char *const *paths, const LsModel *model, LsImport *ret_import, LsDiagList *diags)
{
  g_autoptr (GArray) files = g_array_new (FALSE, FALSE, sizeof (ImportFile));
  g_autoptr (GPtrArray) names = g_ptr_array_new_with_free_func (g_free),
                        changes = g_ptr_array_new_with_free_func (g_free);
  g_array_set_clear_func (files, file_clear);
  for (; *paths; paths++) {
    size_t n;
    char *path = split_path (*paths, changes);
    g_ptr_array_add (names, path);
    if (*path == '\0' && names->len > 1)
      continue;
    char *text = ls_read_file (path, LS_MAX_INPUT_BYTES, &n, diags);
    if (!text)
      return false;
    const ImportFile file = { path, text, n, *paths, g_new0 (ImportYaml, 1), g_new0 (bool, 1) };
    g_array_append_val (files, file);
  }
  return unpack_and_read ((ImportFile *) (gpointer) files->data, files->len, changes, model, ret_import,
                          diags);
}

bool
ls_import_read (const char *text, gsize n, const char *name, LsImport *ret_import, LsDiagList *diags)
{
  return ls_import_read_for (text, n, name, NULL, ret_import, diags);
}

bool
ls_import_read_for (const char *text, gsize n, const char *name, const LsModel *model, LsImport *ret_import,
                    LsDiagList *diags)
{
  ImportFile file = { name, g_malloc (n + 1), n, NULL, g_new0 (ImportYaml, 1), NULL };
  memcpy (file.text, text, n);
  file.text[n] = '\0';
  g_autoptr (GPtrArray) none = g_ptr_array_new ();
  bool ok = unpack_and_read (&file, 1, none, model, ret_import, diags);
  file_clear (&file);
  return ok;
}
