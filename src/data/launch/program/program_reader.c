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

/* Of each list, which are apart by ';', one is in the text. */
static bool
has_marks (const char *text, const char *marks)
{
  g_auto (GStrv) lists = g_strsplit (marks, ";", -1);
  for (char **list = lists; *list; list++) {
    g_auto (GStrv) words = g_strsplit (*list, " ", -1);
    bool has_one = false;
    for (char **word = words; *word; word++)
      has_one |= **word && strstr (text, *word);
    if (!has_one)
      return false;
  }
  return true;
}

static bool
is_of (const ProgramMap *map, const ProgramFile *of, const ImportFile *file)
{
  if (!of->yaml)
    return has_marks (file->text, of->marks);
  const cJSON *tree = strstr (file->text, of->yaml) ? yaml_config_tree (file) : NULL;
  return cJSON_IsObject (tree) && fits (map, of, tree);
}

/* --- reading it ---------------------------------------------------------------------------------------- */

/* The options of a job by the rules; job->words and more are known. */
static bool
read_job (const ProgramMap *map, LaunchJob *job, const cJSON *tree, LsDiagList *diags)
{
  ProgramRun run = { .map = map, .job = job, .tree = tree, .path = job->import->path, .diags = diags };
  job->table = &map->table;
  option_read_all (job);
  bool ok = program_run_rules (&run, map->rules);
  if (run.lets)
    g_hash_table_unref (run.lets);
  g_hash_table_unref (job->open);
  g_free (run.wrong);
  return ok;
}

/* Takes the tree. */
static bool
read_tree (const ProgramMap *map, const ProgramFile *of, cJSON *tree, guint64 gpus, LsImport *import,
           LsDiagList *diags)
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
  bool ok = read_job (map, &job, copy, diags);
  cJSON_Delete (copy);
  return ok;
}

/* Words that a script's command is known by: those of the file's option, or the program's own. */
static bool
read_script (const ProgramMap *map, const ProgramFile *of, const ImportFiles *files, LsImport *import,
             LsDiagList *diags)
{
  const LaunchKind kind = { .program = map->program,
                            .n_needed = 1,
                            .config = of->config,
                            .table = of->config ? NULL : &map->table,
                            .start_words = of->starts };
  LaunchScript script;
  bool ok;
  if (of->config) {
    cJSON *tree = yaml_config_of_script (files, &kind, of->config, &script, import, diags);
    ok = tree && fits (map, of, tree);
    if (tree && !ok)
      ls_diag_add (diags, LS_ERROR_UNSUPPORTED, import->path, 0, 0, NULL, NULL, NULL,
                   "--%s %s: it is no configuration of %s, and what else is started so is not known",
                   of->config, (const char *) launch_words_find (script.words, of->config)->values->pdata[0],
                   map->program);
    if (ok)
      ok = read_tree (map, of, g_steal_pointer (&tree), script.gpus, import, diags);
    cJSON_Delete (tree);
  } else {
    ok = launch_script_read (files, &kind, &script, import, diags);
    LaunchJob job
        = { .import = import, .words = script.words, .gpus = script.gpus, .variables = script.variables };
    ok = ok && read_job (map, &job, NULL, diags);
  }
  launch_script_clear (&script);
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
  if (!r->file->yaml)
    return read_script (r->map, r->file, files, import, diags);
  cJSON *tree = yaml_config_load (files, import, diags);
  return tree && read_tree (r->map, r->file, tree, 0, import, diags);
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
