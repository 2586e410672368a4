/* data/launch/import.c — a job's files of another program, read: which program's they are, what is given
 * behind their names, logs next to them. */
#include <lockstep/error.h>
#include <string.h>

#include "base/list.h"
#include "data/datadir.h"
#include "data/jobs/imported.h"
#include "data/jobs/job_files.h"
#include "data/launch/import_reader.h"
#include "data/launch/launch_script.h"
#include "data/launch/option_table.h"
#include "data/launch/program/program_map.h"
#include "data/launch/yaml_config.h"
#include "data/text/field.h"
#include "data/text/lookalike.h"
#include "data/text/text_place.h"
#include "data/text/override.h"
#include "data/text/read_file.h"

/* --- the registry ----------------------------------------------------------------------------------- */

/* Those that ship, in the order in which the map "strangers" has them: "deepspeed", "deepspeed last",
 * "skypilot unwraps". */
static GArray *
shipped (void)
{
  GArray *all = g_array_new (TRUE, FALSE, sizeof (ProgramAsked));
  const ProgramMap *map = program_map_get ("strangers");
  const cJSON *list = program_entry (map, "tables", "asked"), *one;
  cJSON_ArrayForEach (one, list) {
    g_auto (GStrv) words = g_strsplit (cJSON_IsString (one) ? one->valuestring : "", " ", 2);
    const ProgramAsked asked = { .map = g_intern_string (words[0] ? words[0] : ""),
                                 .unwraps = g_strcmp0 (words[1], "unwraps") == 0,
                                 .is_last = g_strcmp0 (words[1], "last") == 0 };
    g_array_append_val (all, asked);
  }
  return all;
}

/* A user's own maps, which come first: those that lie in their folders, and what else the list has not. */
static bool
is_own (const LsDataEntry *entry, const GArray *list)
{
  for (guint k = 0; k < list->len; k++)
    if (strcmp (g_array_index (list, ProgramAsked, k).map, entry->name) == 0)
      return strcmp (entry->from, ".") == 0 || strcmp (entry->from, "user") == 0;
  return true;
}

static const ProgramAsked *
all_asked (void)
{
  static GArray *all; /* kept */
  static gsize is_made;
  if (g_once_init_enter (&is_made)) {
    g_autoptr (GPtrArray) maps = ls_data_list (LS_DATA_PROGRAMS);
    g_autoptr (GArray) list = shipped ();
    all = g_array_new (TRUE, FALSE, sizeof (ProgramAsked));
    for (guint i = 0; i < maps->len; i++) {
      const char *name = g_intern_string (((const LsDataEntry *) maps->pdata[i])->name);
      const ProgramAsked own = { .map = name, .unwraps = true, .is_own = true };
      if (is_own (maps->pdata[i], list))
        g_array_append_val (all, own);
    }
    g_array_append_vals (all, list->data, list->len);
    g_once_init_leave (&is_made, 1);
  }
  return (const ProgramAsked *) (gpointer) all->data;
}

/* Whether the maps of programs that lie in folders can be read, those that others ask too: diagnostics. */
static bool
maps_are_right (LsDiagList *diags)
{
  bool ok = true;
  g_autoptr (GPtrArray) maps = ls_data_list (LS_DATA_PROGRAMS);
  for (guint i = 0; i < maps->len; i++) {
    const char *name = ((const LsDataEntry *) maps->pdata[i])->name;
    const bool is_right = program_map_get (name) != NULL;
    g_autoptr (ProgramMap) map = is_right ? NULL : program_map_load (name, diags);
    ok = ok && is_right;
  }
  return ok;
}

static bool
reader_of (const ImportFile *file, ProgramReader *ret_reader)
{
  bool is_found = false;
  for (const ProgramAsked *a = all_asked (); !is_found && a->map; a++)
    is_found = program_reader_of (a->map, a->is_own, a->is_last, file, ret_reader);
  return is_found;
}

/* By a script that lies beside and is named: one that only submits it says nothing of the job itself. False:
 * none of another program than `first` is known. */
static bool
reader_beside (const ImportFile *file, const cJSON *first, ProgramReader *ret_reader)
{
  static const char *const own[] = { "--num-layers", "--tensor-model-parallel-size", "pretrain_" };
  bool is_found = false;
  for (guint i = 0; i < G_N_ELEMENTS (own); i++)
    if (strstr (file->text, own[i]))
      return false;
  g_auto (GStrv) words = g_strsplit_set (file->text, " \t\n\r\"'`;&|()=/", -1);
  const ImportFiles files = { .files = file, .n = 1 };
  g_autofree char *self = g_path_get_basename (file->path);
  for (char **word = words; *word && !is_found; word++) {
    if (!launch_has_end (*word, ".sh .bash .slurm .sbatch") || strcmp (*word, self) == 0)
      continue;
    gsize n = 0;
    g_autofree char *text = launch_read_beside (&files, *word, false, &n);
    ImportYaml yaml = { 0 };
    const ImportFile other = { .path = *word, .text = text, .n = n, .yaml = &yaml };
    is_found = text && reader_of (&other, ret_reader) && ret_reader->file != first;
    cJSON_Delete (yaml.tree);
  }
  return is_found;
}

/* By the first file; a script that only starts another one, which stands behind it or beside it, by that.
 * False: nobody's. */
static bool
choose (const ImportFiles *files, ProgramReader *ret_reader)
{
  ProgramReader first = { NULL };
  bool is_known = reader_of (&files->files[0], &first),
       is_script = first.is_last && g_str_has_prefix (files->files[0].text, "#!");
  for (guint i = 1; i < files->n && is_script; i++)
    if (g_str_has_prefix (files->files[i].text, "#!") && reader_of (&files->files[i], ret_reader)
        && ret_reader->file != first.file)
      return true;
  if ((is_script || !is_known) && reader_beside (&files->files[0], first.file, ret_reader))
    return true;
  *ret_reader = first;
  return is_known;
}

/* --- what is given behind the name ------------------------------------------------------------------ */

/* Of a key that both have, that which launch files say: the length of a sequence is the model's. */
static void
set_key (LsImport *import, const LsField *model, const LsField *strategy, const char *value, bool is_quiet,
         LsDiagList *diags)
{
  bool is_model = model && (model->required || !strategy);
  const LsField *f = is_model ? model : strategy, *fields = is_model ? ls_model_fields : ls_strategy_fields;
  g_autoptr (LsDiagList) why = ls_diag_list_new ();
  GHashTable *said;
  if (!ls_field_set_text (fields, import_target (import, fields, &said), f->key, value, why)) {
    if (!is_quiet)
      ls_file_diag (diags, LS_ERROR_USAGE, import->made.path, NULL, "%s=%s: that is no value for it", f->key,
                    value);
    return;
  }
  g_hash_table_add (said, (gpointer) f->key);
  g_hash_table_add (import->given, (gpointer) f->key);
  if (!is_quiet)
    import_infer (import, "%s %s: as given", f->key, value);
}

/* Sets the keys of ours among "vocab=50257" (char *) before a file is read, so that rules know them; no
 * reader changes them. The others are variables for the reader: ImportGiven, owned by the array. A malformed
 * value is LS_ERROR_USAGE. What has a colon in front, ":tp=2", is not told, and dropped if malformed. */
static GArray *
take_given (LsImport *import, const GPtrArray *changes, LsDiagList *diags)
{
  GArray *variables = ls_list_new (sizeof (ImportGiven), ls_clear_2_texts);
  for (guint i = 0; i < changes->len; i++) {
    const char *change = changes->pdata[i];
    bool is_quiet = *change == ':';
    g_auto (GStrv) pair = g_strsplit (change + is_quiet, "=", 2);
    const LsField *model = ls_field_find (ls_model_fields, pair[0]),
                  *strategy = ls_field_find (ls_strategy_fields, pair[0]);
    if (model || strategy) {
      set_key (import, model, strategy, pair[1], is_quiet, diags);
      continue;
    }
    ls_list_add (variables, &(ImportGiven) { g_strdup (pair[0]), g_strdup (pair[1]), false, false });
  }
  return variables;
}

/* Before a file is read, as take_given(); what the model does not have counts too, but not what a job says
 * whichever model it runs. */
static void
take_model (LsImport *import, const LsModel *model)
{
  import_model (import, model, "--model");
  for (const LsField *f = ls_model_fields; f->key; f++)
    if (ls_field_is_value (f) && !ls_is_one_of (f->key, "seq attention")
        && !g_str_has_prefix (f->key, "predict_"))
      g_hash_table_add (import->given, (gpointer) f->key);
  import->model_is_given = true;
  import->model_is_sized = false;
}

/* Whether the reader had use for all variables; LS_ERROR_USAGE. */
static bool
check_given (const ImportFiles *files, LsDiagList *diags)
{
  bool ok = true;
  for (const ImportGiven *g = files->given; g < files->given + files->n_given; g++) {
    const char *near = ls_field_suggest (ls_model_fields, g->name);
    near = near ? near : ls_field_suggest (ls_strategy_fields, g->name);
    g_autofree char *hint = near && !g->is_lost ? g_strdup_printf ("did you mean %s?", near) : NULL;
    if (!g->is_used)
      ls_file_diag (diags, LS_ERROR_USAGE, files->files[0].path, hint,
                    g->is_lost
                        ? "%s=%s: it sets %s itself, whatever is given"
                        : "%s=%s: there is no variable that it asks for, and no key of a model or of a "
                          "strategy, of the name %s",
                    g->name, g->value, g->name);
    ok = ok && g->is_used;
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
  return g_strcanon (name, G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "-_.", '-');
}

static void
import_init (LsImport *import, const ImportFiles *files)
{
  const char *path = files->files[0].path;
  *import = (LsImport) { .made = { .name = name_of (path), .path = g_strdup (path) } };
  LsImported *made = &import->made;
  made->files = g_ptr_array_new_with_free_func (g_free);
  made->asked = g_ptr_array_new_with_free_func (g_free);
  for (guint i = 0; i < files->n + files->n_logs; i++) {
    const ImportFile *f = &files->files[i];
    g_ptr_array_add (made->files, g_strdup (f->path));
    g_ptr_array_add (made->asked, g_strdup (f->asked ? f->asked : f->path));
  }
  made->remarks = ls_list_new (sizeof (LsRemark), ls_clear_2_texts);
  import->model.attention = LS_ATTENTION_FLASH;
  ls_strategy_init (&import->strategy);
  import->words = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  GHashTable **const sets[] = { &import->model_said,    &import->strategy_said, &import->by_rule,
                                &import->model_by_rule, &import->decided,       &import->given };
  for (guint i = 0; i < G_N_ELEMENTS (sets); i++)
    *sets[i] = g_hash_table_new (g_str_hash, g_str_equal);
}

/* --- learned positions: a table, beside how long sequences are --------------------------------------- */

/* A length that was given is that of a sequence: the table stays as the files have it, as that of a
 * model that is named. */
static void
settle_positions (LsImport *import)
{
  const guint32 seq = import->model.seq;
  bool has_table
      = import_has (import, ls_model_fields, "position") && import->model.position == LS_POSITION_LEARNED;
  if (import->model_is_given || !has_table || !import_has (import, ls_model_fields, "seq")
      || import->positions == 0 || import->positions == seq)
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
  import->made.measured.source = g_strdup (log->path);
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
    ok = ls_file_diag (
        diags, LS_ERROR_INPUT, files[i].path,
        is_log ? "give one log with steps"
               : "leave it out, or give the file that names it; together with a job a log is read whose "
                 "lines of steps are known (lockstep import --help)",
        is_log ? "nothing of it is used: the job has its time of a step from another file"
               : "nothing of it is used: %s does not read it",
        files[0].path);
  }
  return ok;
}

/* A file that no reader takes: why. */
static void
refuse_unknown (const ImportFile *file, LsDiagList *diags)
{
  g_autoptr (LsDiagList) none = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) adapter = strstr (file->text, "\"peft_type\"")
      ? ls_json_doc_parse (file->text, file->n, file->path, none)
      : NULL;
  if (import_log_what (file))
    ls_file_diag (diags, LS_ERROR_INPUT, file->path,
                  "give one of them, after the files of its job if there are", "several logs, and no job");
  else if (!(adapter && ls_refuse_adapter (adapter, diags)) && !yaml_config_refuse (file, diags)
           && !launch_script_refuse (file, diags)) {
    const char *hint = ls_lookalike_hint (file->text);
    ls_file_diag (diags, LS_ERROR_INPUT, file->path,
                  hint ? hint
                       : "lockstep import --help lists the programs whose scripts, configurations and logs "
                         "are read",
                  "no script, configuration or log of a program that is read");
  }
}

/* --- what is handed over --------------------------------------------------------------------------- */

/* The keys that are set, as a file of ours. */
static LsJsonDoc *
document (LsImport *import, const char *kind, const LsField *fields, LsDiagList *diags)
{
  GHashTable *said;
  const void *target = import_target (import, fields, &said);
  g_autofree char *base = g_path_get_basename (import->made.path),
                  *source = g_strdup_printf ("%s, %s", import->made.program, base);
  LsJsonOut w;
  ls_json_out_open_as (&w, kind);
  ls_json_out_string (&w, "name", import->made.name);
  ls_json_out_string (&w, "source", source);
  for (const LsField *f = fields; f->key; f++)
    if (g_hash_table_contains (said, f->key))
      ls_fields_write ((const LsField[]) { *f, { NULL } }, &w, target, NULL);
  g_autofree char *text = ls_json_out_close (&w);
  return ls_import_parse (text, import->made.name, diags);
}

/* What is remarked of keys alone, and of options by the table that the job was read by last. */
static void
remark_keys (LsImport *import)
{
  LsImported *made = &import->made;
  GHashTableIter given;
  gpointer key;
  for (const LsField *f = ls_strategy_fields; f->key; f++)
    if (g_hash_table_contains (import->by_rule, f->key)
        && g_hash_table_contains (import->strategy_said, f->key))
      import_remark_key (import, f->of_job ? LS_REMARK_OF_JOB : LS_REMARK_BY_RULE, f->key);
  for (const LsField *f = ls_model_fields; f->key && !import->model_is_named; f++)
    if (g_hash_table_contains (import->model_by_rule, f->key))
      import_remark_key (import, LS_REMARK_OF_MODEL, f->key);
  for (g_hash_table_iter_init (&given, import->given); g_hash_table_iter_next (&given, &key, NULL);)
    import_remark_key (import, LS_REMARK_GIVEN, key);
  if (import->model_is_given && import->model_is_named)
    import_remark_key (import, LS_REMARK_DEPARTS, "model");
  else if (import->departs)
    import_remark_key (import, LS_REMARK_DEPARTS, import->departs);
  for (guint i = 0; i < made->remarks->len && made->table; i++) {
    LsRemark *o = &g_array_index (made->remarks, LsRemark, i);
    const OptionRow *row
        = o->kind == LS_REMARK_OPTION ? option_find (made->table, o->text + strspn (o->text, "-")) : NULL;
    o->key = row ? row->key : o->key;
  }
}

/* Clears all else. */
static LsImported
hand_over (LsImport *import, LsDiagList *diags)
{
  LsImported *made = &import->made;
  remark_keys (import);
  made->has_own_model = import->model_is_named || import->model_is_sized;
  made->model = document (import, "model", ls_model_fields, diags);
  made->strategy = document (import, "strategy", ls_strategy_fields, diags);
  GHashTable *const sets[]
      = { import->model_said, import->strategy_said, import->by_rule, import->model_by_rule,
          import->words,      import->decided,       import->given };
  for (guint i = 0; i < G_N_ELEMENTS (sets); i++)
    g_hash_table_unref (sets[i]);
  ls_model_clear (&import->model);
  ls_strategy_clear (&import->strategy);
  return *made;
}

/* changes: "vocab=50257", char *. model NULL: that of the files. */
static bool
read_files (const ImportFiles *files, const GPtrArray *changes, const LsModel *model, LsImported *ret_import,
            LsDiagList *diags)
{
  if (!maps_are_right (diags))
    return false;
  ProgramReader reader;
  const bool is_known = files->n > 0 && choose (files, &reader);
  if (!is_known && !(files->n > 0 && import_log_what (&files->files[0]))) {
    refuse_unknown (&files->files[0], diags);
    return false;
  }
  LsImport import;
  import_init (&import, files);
  g_autoptr (GArray) variables = take_given (&import, changes, diags);
  if (model)
    take_model (&import, model);
  ImportFiles all = *files;
  all.given = (ImportGiven *) (gpointer) variables->data;
  all.n_given = variables->len;
  g_autoptr (GHashTable) written = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  all.written = written;
  all.found = import.made.files;
  for (guint i = 0; files->told && i < files->told->len; i++)
    import_infer (&import, "%s", (const char *) files->told->pdata[i]);
  bool ok = ls_diag_list_n (diags) == 0
      && (is_known ? program_read (&reader, &all, &import, diags) : import_log_alone (&all, &import, diags))
      && check_given (&all, diags);
  if (ok && files->n_logs > 0 && import.made.measured.step_s == 0)
    read_log_beside (&files->files[files->n], &import);
  settle_positions (&import);
  ok = ok && check_used (files->files, files->n + files->n_logs, diags);
  LsImported handed = hand_over (&import, diags);
  ok = ok && handed.model && handed.strategy;
  if (ok)
    *ret_import = handed;
  else
    ls_import_clear (&handed);
  return ok;
}

/* Puts "TP=2" in place of ${TP} in configurations in YAML, as envsubst does. The changes that no file has in
 * itself. */
static GPtrArray *
substitute (ImportFile *files, guint n, const GPtrArray *changes, GPtrArray *told)
{
  GPtrArray *left = g_ptr_array_new ();
  for (guint i = 0; i < changes->len; i++) {
    const char *change = changes->pdata[i], *equals = strchr (change, '=');
    g_autofree char *template = g_strdup_printf ("${%.*s}", equals ? (int) (equals - change) : 0, change);
    bool is_done = false;
    for (ImportFile *file = files; equals && file < files + n; file++) {
      if (g_str_has_prefix (file->text, "#!") || !strstr (file->text, template)
          || !cJSON_IsObject (yaml_config_tree (file)))
        continue;
      GString *text = g_string_new_len (file->text, (gssize) file->n);
      g_string_replace (text, template, equals + 1, 0);
      import_set_text (file, text);
      is_done = true;
    }
    if (is_done)
      g_ptr_array_add (told, g_strdup_printf ("%s: put into the file", change));
    else
      g_ptr_array_add (left, changes->pdata[i]);
  }
  return left;
}

/* Of which the first may hold a script in other words. */
static bool
unpack_and_read (ImportFile *files, guint n, const GPtrArray *all_changes, const LsModel *model,
                 LsImported *ret_import, LsDiagList *diags)
{
  g_autoptr (GPtrArray) told = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GPtrArray) changes = substitute (files, n, all_changes, told);
  /* in front those that the job is read from, and behind them logs that only have steps; a log in front of a
   * job's files is the job where it says what it is */
  ProgramReader reader;
  g_autofree ImportFile *logs = g_new0 (ImportFile, n);
  guint n_files = 0, n_logs = 0;
  for (guint i = 0; i < n; i++)
    if (n > 1 && import_log_what (&files[i]) && (i > 0 || !reader_of (&files[i], &reader)))
      logs[n_logs++] = files[i];
    else
      files[n_files++] = files[i];
  memcpy (files + n_files, logs, n_logs * sizeof *logs);
  const ImportFiles all = { .files = files, .n = n_files, .n_logs = n_logs, .told = told };
  bool ok = true;
  for (const ProgramAsked *a = all_asked (); ok && a->map; a++)
    ok = !a->unwraps || program_unwrap (a->map, &files[0], told, diags);
  return ok && read_files (&all, changes, model, ret_import, diags);
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

bool
ls_import_load (const char *const *paths, const LsModel *model, LsImported *ret_import, LsDiagList *diags)
{
  g_autoptr (GArray) files = ls_list_new (sizeof (ImportFile), file_clear);
  g_autoptr (GPtrArray) names = g_ptr_array_new_with_free_func (g_free),
                        changes = g_ptr_array_new_with_free_func (g_free);
  for (; *paths; paths++) {
    size_t n;
    /* what is given behind a path, "vocab=50257"; a file may have such a name */
    const char *behind = g_file_test (*paths, G_FILE_TEST_EXISTS) ? NULL : ls_override_find (*paths);
    g_autoptr (GPtrArray) items = behind ? ls_override_split (behind) : NULL;
    if (behind && **paths != ':' && !ls_override_check (*paths, behind, diags))
      return false;
    for (guint i = 0; items && i < items->len; i++)
      g_ptr_array_add (changes, g_strconcat (**paths == ':' ? ":" : "", items->pdata[i], NULL));
    char *path = g_strndup (*paths, behind ? (gsize) (behind - 1 - *paths) : strlen (*paths));
    g_ptr_array_add (names, path);
    if (*path == '\0' && names->len > 1)
      continue;
    char *text = ls_read_file (path, LS_MAX_INPUT_BYTES, &n, diags);
    if (!text)
      return false;
    ls_list_add (files, &(ImportFile) { path, text, n, *paths, g_new0 (ImportYaml, 1), g_new0 (bool, 1) });
  }
  return unpack_and_read ((ImportFile *) (gpointer) files->data, files->len, changes, model, ret_import,
                          diags);
}

bool
ls_import_read (const char *text, gsize n, const char *name, const LsModel *model, LsImported *ret_import,
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

/* --- what lower files call of all this ------------------------------------------------------------------ */

static void __attribute__ ((constructor)) open_doors (void)
{
  static const ProgramDoors doors = {
    .maps = all_asked,
    .map_get = program_map_get,
    .function_find = program_function_find,
    .run_rules = program_run_rules,
    .run_map = program_run_map,
    .read_tree = program_read_tree,
  };
  program_doors = &doors;
}

/* --- what files say of a run ------------------------------------------------------------------------- */

static bool
ends_with_one (const char *option, const char *names)
{
  g_autofree char *key = g_strconcat (".", option + strspn (option, "-"), NULL);
  g_auto (GStrv) ends = g_strsplit (names, " ", -1);
  g_strdelimit (key, "-", '_');
  for (char **end = ends; *end; end++)
    if (g_str_has_suffix (key, *end) && key[strlen (key) - strlen (*end) - 1] == '.')
      return true;
  return false;
}

char *
ls_import_of_run (const LsImported *import, bool (*is_given) (gconstpointer of, const char *option),
                  gconstpointer of)
{
  const cJSON *table = program_entry (program_map_get ("strangers"), "tables", "of_run"), *entry;
  g_autoptr (GString) out = g_string_new (NULL);
  for (guint i = 0; i < import->remarks->len; i++) {
    const LsRemark *o = &g_array_index (import->remarks, LsRemark, i);
    cJSON_ArrayForEach (entry, table) {
      g_auto (GStrv) options = g_strsplit (entry->string, " ", -1);
      bool is_one = o->kind == LS_REMARK_OPTION && ends_with_one (o->text, entry->valuestring);
      for (char **option = options; *option; option++)
        is_one = is_one && !is_given (of, *option);
      if (is_one)
        g_string_append_printf (out, "%s%s%s%s (--%s)", out->len > 0 ? ", " : "", o->text,
                                o->value ? " " : "", o->value ? o->value : "", options[0]);
    }
  }
  return out->len > 0 ? g_string_free (g_steal_pointer (&out), FALSE) : NULL;
}
