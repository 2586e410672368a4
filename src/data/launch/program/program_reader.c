#include <string.h>

#include <lockstep/error.h>

#include "data/launch/launch_script.h"
#include "data/launch/program/program_map.h"
#include "data/launch/yaml_config.h"

/* --- whose file it is ---------------------------------------------------------------------------------- */

static bool
fits (const ProgramMap *map, const ProgramFile *of, const cJSON *tree)
{
  ProgramRun run = { .map = map, .tree = tree };
  bool is_its = !of->fits || program_holds (&run, of->fits);
  g_free (run.wrong);
  return is_its;
}

static bool
is_of (const ProgramMap *map, const ProgramFile *of, const ImportFile *file)
{
  if (!of->yaml)
    return program_has_marks (file->text, file->n, of->marks);
  const cJSON *tree = strstr (file->text, of->yaml) ? yaml_config_tree (file) : NULL;
  return cJSON_IsObject (tree) && fits (map, of, tree);
}

/* --- reading it ---------------------------------------------------------------------------------------- */

static void
clear_run (ProgramRun *run)
{
  if (run->lets)
    g_hash_table_unref (run->lets);
  g_hash_table_unref (run->job->open);
  launch_words_free (run->says);
  g_free (run->wrong);
}

/* Whether a rule says when its options are read, be it as those of another program. */
static bool
has_rules_before (const ProgramMap *map)
{
  const cJSON *rule;
  cJSON_ArrayForEach (rule, map->rules)
  {
    if (cJSON_GetObjectItemCaseSensitive (rule, "read"))
      return true;
  }
  return false;
}

/* The options of run->job by the rules. */
static bool
read_job (ProgramRun *run)
{
  run->job->table = &run->map->table;
  run->path = run->job->import->path;
  if (has_rules_before (run->map))
    run->job->open = g_hash_table_new (g_str_hash, g_str_equal);
  else
    option_read_all (run->job);
  bool ok = program_run_rules (run, run->map->rules);
  clear_run (run);
  return ok;
}

/* Takes the tree. script: that names it; NULL: none does. */
static bool
read_tree (const ProgramMap *map, const ProgramFile *of, const ImportFiles *files, cJSON *tree,
           const LaunchScript *script, guint64 gpus, LsImport *import, LsDiagList *diags)
{
  const cJSON *one;
  cJSON_ArrayForEach (one, of->moves)
  {
    yaml_config_move (tree, one->string, cJSON_GetStringValue (one));
  }
  if (of->lifts)
    yaml_config_lift (tree, of->lifts);
  cJSON *copy = cJSON_Duplicate (tree, true); /* what rules see is as it stands in the file */
  g_autoptr (LaunchWords) words = yaml_config_words (tree);
  LaunchJob job = { .import = import, .words = words, .gpus = gpus };
  bool ok = read_job (&(ProgramRun) {
      .map = map, .job = &job, .tree = copy, .script = script, .files = files, .diags = diags });
  cJSON_Delete (copy);
  return ok;
}

/* --- scripts ------------------------------------------------------------------------------------------- */

/* Pairs of the command lie on top of the configuration that one of them names. */
static void
add_pairs (ProgramRun *run, const ProgramFile *of, cJSON *tree)
{
  const GPtrArray *pairs = run->script->words->others;
  bool lie_on_top = program_holds (run, of->pairs);
  for (guint i = 0; lie_on_top && i < pairs->len; i++)
    if (!program_pair_value (pairs->pdata[i], of->config))
      yaml_config_set_pair (tree, pairs->pdata[i]);
}

/* A member by its path. */
static void
drop (cJSON *tree, const char *path)
{
  const char *dot = strrchr (path, '.');
  g_autofree char *front = dot ? g_strndup (path, (gsize) (dot - path)) : NULL;
  cJSON *parent = front ? yaml_config_find (tree, front) : tree;
  if (cJSON_IsObject (parent))
    cJSON_DeleteItemFromObjectCaseSensitive (parent, dot ? dot + 1 : path);
}

/* "loss=a.b.CrossEntropy" sets the member of the mapping that says what it is; "~lr_scheduler" drops one. */
static void
add_behind (cJSON *tree, const char *word, const char *member, LsImport *import)
{
  const char *equals = strchr (word, '=');
  if (*word == '~') {
    drop (tree, word + 1);
    return;
  }
  if (!equals) {
    import_unknown (import, "%s: behind the name of a configuration", word);
    return;
  }
  g_autofree char *path = g_strndup (word, (gsize) (equals - word)),
                  *within = g_strconcat (path, ".", member, NULL);
  yaml_config_set (tree, cJSON_IsObject (yaml_config_find (tree, path)) ? within : path, equals + 1);
}

/* What a command puts on top of the configuration that it names. */
static void
add_words (ProgramRun *run, const ProgramFile *of, cJSON *tree)
{
  const LaunchOption *config = launch_words_find (run->script->words, of->config);
  if (of->pairs)
    add_pairs (run, of, tree);
  for (guint i = 1; of->behind && config && i < config->values->len; i++)
    add_behind (tree, config->values->pdata[i], of->behind, run->job->import);
}

/* The configuration that a command names, which run is of. NULL: a diagnostic. */
static cJSON *
tree_of_command (ProgramRun *run, const ProgramFile *of, const ImportFiles *files)
{
  const LaunchScript *script = run->script;
  LsImport *import = run->job->import;
  if (!program_run_rules (run, of->command))
    return NULL;
  const char *name
      = of->pairs ? program_pair (script, of->config) : launch_words_text (script->words, of->config);
  cJSON *tree = yaml_config_of_name (files, name, import, run->diags);
  if (tree)
    add_words (run, of, tree);
  if (!tree || fits (run->map, of, tree))
    return tree;
  ls_diag_add (run->diags, LS_ERROR_UNSUPPORTED, import->path, 0, 0, NULL, NULL, NULL,
               "--%s %s: it is no configuration of %s, and what else is started so is not known", of->config,
               name, run->map->program);
  cJSON_Delete (tree);
  return NULL;
}

/* With a configuration that its command names. */
static bool
read_configured (const ProgramMap *map, const ProgramFile *of, const ImportFiles *files,
                 const LaunchScript *script, LsImport *import, LsDiagList *diags)
{
  LaunchJob job = { .import = import,
                    .words = script->words,
                    .table = &map->table,
                    .gpus = script->gpus,
                    .variables = script->variables,
                    .open = g_hash_table_new (g_str_hash, g_str_equal) };
  ProgramRun run = { .map = map, .job = &job, .script = script, .path = import->path, .diags = diags };
  cJSON *tree = tree_of_command (&run, of, files);
  clear_run (&run);
  return tree && read_tree (map, of, files, tree, script, job.gpus, import, diags);
}

/* With options of its own. */
static bool
read_options (const ProgramMap *map, const LaunchScript *script, LsImport *import, LsDiagList *diags)
{
  LaunchJob job
      = { .import = import, .words = script->words, .gpus = script->gpus, .variables = script->variables };
  return read_job (&(ProgramRun) { .map = map, .job = &job, .script = script, .diags = diags });
}

/* Words that a script's command is known by: the file's option, or the program's own. */
static bool
read_script (const ProgramMap *map, const ProgramFile *of, const ImportFiles *files, LsImport *import,
             LsDiagList *diags)
{
  const LaunchKind kind = { .program = map->program,
                            .n_needed = 1,
                            .config = of->config,
                            .table = of->config && !of->pairs ? NULL : &map->table,
                            .has_pairs = of->pairs != NULL,
                            .gpus = of->pairs && !of->submits ? "" : NULL,
                            .start_words = of->starts };
  LaunchScript script;
  bool ok = launch_script_read (files, &kind, &script, import, diags)
      && (of->config ? read_configured (map, of, files, &script, import, diags)
                     : read_options (map, &script, import, diags));
  launch_script_clear (&script);
  return ok;
}

/* --- files ------------------------------------------------------------------------------------------- */

static char *
folded (const char *key)
{
  return g_strdelimit (g_strdup (key), "-", '_');
}

static void
tell_apart (const cJSON *tree, const ImportFile *file, LsImport *import)
{
  g_autoptr (GHashTable) keys = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  const cJSON *other = yaml_config_tree (file), *item;
  cJSON_ArrayForEach (item, tree) g_hash_table_add (keys, folded (item->string));
  for (item = cJSON_IsObject (other) ? other->child : NULL; item; item = item->next) {
    g_autofree char *key = folded (item->string);
    if (g_hash_table_contains (keys, key))
      import_conflict (import, "%s: %s has it too", key, file->path);
  }
}

/* The files of a configuration, each on top of those before it. NULL: a diagnostic. */
static cJSON *
load (const ProgramFile *of, const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  cJSON *tree = cJSON_CreateObject ();
  for (guint i = 0; i < (of->is_alone ? 1 : files->n); i++) {
    if (of->is_apart)
      tell_apart (tree, &files->files[i], import);
    if (!yaml_config_add (tree, &files->files[i], import, diags)) {
      cJSON_Delete (tree);
      return NULL;
    }
  }
  return tree;
}

/* --- the reader of a file of a map --------------------------------------------------------------- */

typedef struct {
  ImportReader reader;
  const ProgramMap *map;
  const ProgramFile *file;
  bool is_own;
} Reader;

static bool
read (const ImportReader *reader, const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  const Reader *r = (const Reader *) (gconstpointer) reader;
  import->program = r->map->program;
  if (r->is_own)
    import_infer (import, "read as %s, by %s", r->map->program, ls_json_doc_name (r->map->doc));
  if (!r->file->yaml)
    return read_script (r->map, r->file, files, import, diags);
  cJSON *tree = load (r->file, files, import, diags);
  return tree && read_tree (r->map, r->file, files, tree, NULL, 0, import, diags);
}

const ImportReader *
program_reader_of (const char *name, bool is_own, const ImportFile *file)
{
  static GMutex lock;
  static GHashTable *readers; /* ProgramFile * -> Reader *, kept */
  const ProgramMap *map = program_map_get (name);
  for (guint i = 0; map && i < map->files->len; i++) {
    const ProgramFile *of = &g_array_index (map->files, ProgramFile, i);
    if (!is_of (map, of, file))
      continue;
    g_mutex_lock (&lock);
    if (!readers)
      readers = g_hash_table_new (g_direct_hash, g_direct_equal);
    Reader *r = g_hash_table_lookup (readers, of);
    if (!r) {
      r = g_new (Reader, 1);
      *r = (Reader) { { .what = of->what, .read_by = read }, map, of, is_own };
      g_hash_table_insert (readers, (gpointer) of, r);
    }
    g_mutex_unlock (&lock);
    return &r->reader;
  }
  return NULL;
}
