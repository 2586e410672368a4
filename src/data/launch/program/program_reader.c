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
    return program_has_marks (file->text, file->n, of->marks ? of->marks : of->starts);
  const cJSON *tree = strstr (file->text, of->yaml) ? yaml_config_tree (file) : NULL;
  return cJSON_IsObject (tree) && fits (map, of, tree);
}

/* --- reading it ---------------------------------------------------------------------------------------- */

/* What is being read. */
typedef struct {
  const ProgramMap *map;
  const ProgramFile *of;
  const ImportFiles *files;
  LaunchScript *script; /* that starts it; NULL: none does */
  char *command;        /* what of this starts the program; NULL: nothing is known */
  LsImport *import;
  LsDiagList *diags;
} Reading;

static LaunchJob
job_of (const Reading *r, const LaunchWords *words)
{
  return (LaunchJob) { .import = r->import,
                       .words = words,
                       .table = &r->map->table,
                       .gpus = r->script ? r->script->gpus : 0,
                       .variables = r->script ? r->script->variables : NULL };
}

/* tree: NULL: there is none. */
static ProgramRun
run_of (const Reading *r, LaunchJob *job, const cJSON *tree)
{
  return (ProgramRun) { .map = r->map,
                        .job = job,
                        .tree = tree,
                        .path = r->import->path,
                        .script = r->script,
                        .command = r->command,
                        .files = r->files,
                        .diags = r->diags };
}

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

/* The options of a job by the rules. tree: as it stands in the file; NULL: there is none. */
static bool
read_job (const Reading *r, const LaunchWords *words, const cJSON *tree)
{
  LaunchJob job = job_of (r, words);
  ProgramRun run = run_of (r, &job, tree);
  if (has_rules_before (r->map))
    job.open = g_hash_table_new (g_str_hash, g_str_equal);
  else
    option_read_all (&job);
  bool ok = program_run_rules (&run, r->map->rules);
  clear_run (&run);
  return ok;
}

/* --- a configuration ----------------------------------------------------------------------------------- */

/* A member by its path; false: there is none. */
static bool
drop (cJSON *tree, const char *path)
{
  const char *dot = strrchr (path, '.');
  g_autofree char *front = dot ? g_strndup (path, (gsize) (dot - path)) : NULL;
  cJSON *parent = front ? yaml_config_find (tree, front) : tree;
  bool is_there = cJSON_IsObject (parent) && yaml_config_find (tree, path);
  if (is_there)
    cJSON_DeleteItemFromObjectCaseSensitive (parent, dot ? dot + 1 : path);
  return is_there;
}

static void
drop_all (cJSON *tree, const char *paths, LsImport *import)
{
  g_auto (GStrv) all = g_strsplit (paths, " ", -1);
  for (char **path = all; *path; path++)
    if (**path && drop (tree, *path))
      import_ignore (import, "%s", *path);
}

/* The files behind the first that fit become that member, the last of them holds. */
static void
add_files (const Reading *r, cJSON *tree, const char *name, const char *holds)
{
  for (guint i = 1; i < r->files->n; i++) {
    const cJSON *own = yaml_config_tree (&r->files->files[i]);
    ProgramRun run = { .map = r->map, .tree = own };
    if (cJSON_IsObject (own) && program_holds (&run, holds)) {
      import_use_file (&r->files->files[i]);
      cJSON_DeleteItemFromObjectCaseSensitive (tree, name);
      cJSON_AddItemToObject (tree, name, cJSON_Duplicate (own, true));
    }
    g_free (run.wrong);
  }
}

/* Takes the tree. */
static bool
read_tree (const Reading *r, cJSON *tree)
{
  const cJSON *one;
  cJSON_ArrayForEach (one, r->of->moves)
  {
    yaml_config_move (tree, one->string, cJSON_GetStringValue (one));
  }
  if (r->of->lifts)
    yaml_config_lift (tree, r->of->lifts);
  if (r->of->drops)
    drop_all (tree, r->of->drops, r->import);
  cJSON_ArrayForEach (one, r->of->beside)
  {
    add_files (r, tree, one->string, cJSON_GetStringValue (one));
  }
  cJSON *copy = cJSON_Duplicate (tree, true); /* what rules see is as it stands in the file */
  g_autoptr (LaunchWords) words = yaml_config_words (tree);
  bool ok = read_job (r, words, copy);
  cJSON_Delete (copy);
  return ok;
}

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

/* Its files, each on top of those before it. NULL: a diagnostic. */
static cJSON *
load (const Reading *r)
{
  cJSON *tree = cJSON_CreateObject ();
  for (guint i = 0; i < (r->of->is_alone ? 1 : r->files->n); i++) {
    if (r->of->is_apart)
      tell_apart (tree, &r->files->files[i], r->import);
    if (!yaml_config_add (tree, &r->files->files[i], r->import, r->diags)) {
      cJSON_Delete (tree);
      return NULL;
    }
  }
  return tree;
}

/* --- scripts ------------------------------------------------------------------------------------------- */

/* Pairs of the command, but that which names the configuration. */
static void
add_pairs (const Reading *r, cJSON *tree)
{
  const GPtrArray *pairs = r->script->words->others;
  for (guint i = 0; i < pairs->len; i++)
    if (!program_pair_value (pairs->pdata[i], r->of->config))
      yaml_config_set_pair (tree, pairs->pdata[i]);
}

/* An option without a value is true; of several values the first is its own; '-' in its name is '_'. */
static void
add_options (const Reading *r, cJSON *tree)
{
  const GPtrArray *options = r->script->words->options;
  for (guint i = 0; i < options->len; i++) {
    const LaunchOption *o = options->pdata[i];
    g_autofree char *name = folded (o->name);
    if (strcmp (name, r->of->config) != 0)
      yaml_config_set (tree, name, o->values->len > 0 ? o->values->pdata[0] : "true");
  }
}

/* "loss=a.b.CrossEntropy" sets the member of the mapping that says what it is; "~lr_scheduler" drops one. */
static void
add_behind (const Reading *r, cJSON *tree, const char *word)
{
  const char *equals = strchr (word, '=');
  if (*word == '~') {
    drop (tree, word + 1);
    return;
  }
  if (!equals) {
    import_unknown (r->import, "%s: behind the name of a configuration", word);
    return;
  }
  g_autofree char *path = g_strndup (word, (gsize) (equals - word)),
                  *within = g_strconcat (path, ".", r->of->behind, NULL);
  yaml_config_set (tree, cJSON_IsObject (yaml_config_find (tree, path)) ? within : path, equals + 1);
}

/* What a command puts on top of its configuration. */
static void
add_words (ProgramRun *run, const Reading *r, cJSON *tree)
{
  const ProgramFile *of = r->of;
  const LaunchWords *words = r->script->words;
  const LaunchOption *config = launch_words_find (words, of->config);
  const char *word = of->word ? launch_words_alone (words, NULL) : NULL;
  run->tree = tree;
  if (cJSON_IsString (of->overrides) ? program_holds (run, of->overrides->valuestring)
                                     : cJSON_IsTrue (of->overrides))
    (of->has_pairs ? add_pairs : add_options) (r, tree);
  if (word) {
    ProgramValue option = program_eval (run, of->word);
    yaml_config_set (tree, option.text ? option.text : "", word);
    program_value_clear (&option);
  }
  for (guint i = 1; of->behind && config && i < config->values->len; i++)
    add_behind (r, tree, config->values->pdata[i]);
}

/* NULL: none is said. */
static const char *
config_name (const Reading *r)
{
  const LaunchWords *words = r->script->words;
  if (r->of->has_pairs)
    return program_pair (r->script, r->of->config);
  if (*r->of->config)
    return launch_words_text (words, r->of->config);
  return words->others->len > 0 ? words->others->pdata[0] : NULL;
}

/* The configuration of that name; where it is what the script is given, the file behind the script. NULL: a
 * diagnostic. */
static cJSON *
load_named (const Reading *r, const char *name)
{
  bool is_option = *r->of->config && !r->of->has_pairs;
  if (is_option && r->of->overrides && !launch_words_find (r->script->words, r->of->config))
    return cJSON_CreateObject ();
  if (!*r->of->config && name && ls_shell_has_hole (name) && r->files->n > 1) {
    import_infer (r->import, "%s: what the script is given as a configuration", r->files->files[1].path);
    cJSON *tree = cJSON_CreateObject ();
    if (yaml_config_add (tree, &r->files->files[1], r->import, r->diags))
      return tree;
    cJSON_Delete (tree);
    return NULL;
  }
  return yaml_config_of_name (r->files, name, r->import, r->diags);
}

/* What a command names that is started with another program's configuration. */
static void
refuse_other (const Reading *r, const char *name)
{
  bool is_option = *r->of->config != '\0';
  ls_diag_add (r->diags, LS_ERROR_UNSUPPORTED, r->import->path, 0, 0, NULL, NULL, NULL,
               "%s%s%s%s: it is no configuration of %s, and what else %s%s is not known",
               is_option ? "--" : "", r->of->config, is_option ? " " : "", name ? name : "", r->map->program,
               is_option ? "is started so" : r->of->starts, is_option ? "" : " is started with");
}

/* The configuration of a command, with what this puts on top. NULL: a diagnostic. */
static cJSON *
tree_of_command (ProgramRun *run, const Reading *r)
{
  if (!program_run_rules (run, r->of->rules))
    return NULL;
  const char *name = config_name (r);
  cJSON *tree = load_named (r, name);
  if (!tree)
    return NULL;
  if (fits (r->map, r->of, tree)) {
    add_words (run, r, tree);
    return tree;
  }
  refuse_other (r, name);
  cJSON_Delete (tree);
  return NULL;
}

/* With a configuration that its command names. */
static bool
read_configured (const Reading *r)
{
  LaunchJob job = job_of (r, r->script->words);
  job.open = g_hash_table_new (g_str_hash, g_str_equal);
  ProgramRun run = run_of (r, &job, NULL);
  cJSON *tree = tree_of_command (&run, r);
  r->script->gpus = job.gpus; /* as a rule may have it */
  clear_run (&run);
  return tree && read_tree (r, tree);
}

/* "litgpt~pretrain": whether the script is the first of them, or both, and the words behind it begin with the
 * second, which is then none of them. */
static bool
is_started_by (const char *start, const LaunchScript *script)
{
  const char *second = strchr (start, '~') + 1, *blank = strchr (script->script ? script->script : "", ' ');
  GPtrArray *others = script->words->others;
  if (blank)
    return strcmp (blank + 1, second) == 0;
  if (others->len == 0 || strcmp (others->pdata[0], second) != 0)
    return false;
  g_ptr_array_remove_index (others, 0);
  return true;
}

/* What starts the program, of starts that which does; false: none does, with a diagnostic. */
static bool
take_command (Reading *r)
{
  g_auto (GStrv) starts = g_strsplit (r->of->starts ? r->of->starts : "", " ", -1);
  const char *first = NULL;
  for (char **start = starts; *start && !r->command; start++) {
    if (!strchr (*start, '~'))
      continue;
    first = *start;
    if (is_started_by (*start, r->script))
      r->command = g_strdelimit (g_strdup (*start), "~", ' ');
  }
  if (first && !r->command) {
    ls_diag_add (r->diags, LS_ERROR_UNSUPPORTED, r->import->path, 0, 0, NULL, NULL, NULL,
                 "how %.*s is started here is not known", (int) strcspn (first, "~"), first);
    return false;
  }
  if (!r->command)
    r->command = g_strdup (r->script->script);
  return true;
}

/* Words that a script's command is known by: the file's option, or the program's own. */
static bool
read_script (Reading *r)
{
  const ProgramFile *of = r->of;
  const LaunchKind kind = { .program = r->map->program,
                            .n_needed = 1,
                            .config = of->config && *of->config ? of->config : NULL,
                            .table = of->config && !of->overrides && !of->has_pairs ? NULL : &r->map->table,
                            .has_pairs = of->has_pairs,
                            .gpus = of->has_pairs && !of->submits ? "" : NULL,
                            .start_words = of->starts };
  LaunchScript script;
  r->script = &script;
  bool ok = launch_script_read (r->files, &kind, &script, r->import, r->diags) && take_command (r)
      && (of->config ? read_configured (r) : read_job (r, script.words, NULL));
  launch_script_clear (&script);
  g_free (r->command);
  return ok;
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
  Reading x = { r->map, r->file, files, NULL, NULL, import, diags };
  if (!r->file->yaml)
    return read_script (&x);
  cJSON *tree = load (&x);
  return tree && read_tree (&x, tree);
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
