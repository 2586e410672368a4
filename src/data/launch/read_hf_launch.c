/* A configuration of accelerate, in YAML, or a script that launches a Trainer of Hugging Face; with what they
 * name behind them: configurations of accelerate and DeepSpeed, a model's config.json. */
#include <lockstep/error.h>
#include <string.h>

#include "data/jobs/job_files.h"
#include "data/launch/hf_rules.h"
#include "data/launch/launch_script.h"
#include "data/launch/yaml_config.h"
#include "data/text/json_scan.h"
#include "data/text/yaml.h"

#define ARGUMENT "model_name_or_path:"     /* of a Trainer, in YAML */
#define DUMPED   "\"model_name_or_path\":" /* in JSON */

static bool
add_yaml (LaunchWords *words, const char *text, gsize n, const char *path, LsImport *import,
          LsDiagList *diags)
{
  g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
  cJSON *tree = ls_yaml_parse (text, n, path, notes, diags);
  if (!tree)
    return false;
  launch_words_add_tree (words, tree);
  cJSON_Delete (tree);
  for (guint i = 0; i < notes->len; i++)
    import_infer (import, "%s", (const char *) notes->pdata[i]);
  return true;
}

/* --- configurations -------------------------------------------------------------------------------- */

bool
hf_read_configuration (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  const ImportFile *file = &files->files[0];
  g_autoptr (LaunchWords) words = launch_words_new ();
  LaunchJob job = { .import = import, .words = words };
  const ProgramTold told[] = { { "alone", "configuration" }, { NULL } };
  return add_yaml (words, file->text, file->n, file->path, import, diags)
      && program_doors->run_map ("trainer", NULL, &(ProgramWith) { .told = told }, &job, files, diags);
}

/* --- scripts --------------------------------------------------------------------------------------- */

/* What submits a command to several nodes has its processes on each, where they are those of one node and the
 * command says no nodes itself (allenai/open-instruct: mason.py). */
static void
add_nodes (const LaunchScript *script, const LaunchWords *front, LaunchWords *words, LsImport *import)
{
  const char *each = launch_words_text (words, "num_processes");
  guint64 n = each ? launch_last_number (each) : 0;
  if (script->nodes <= 1 || n == 0 || n != script->of_node || launch_words_find (front, "num_machines"))
    return;
  g_autofree char *all = g_strdup_printf ("%" G_GUINT64_FORMAT, n * script->nodes);
  launch_words_add_by (words, false, "num_processes", all);
  import_infer (import,
                "gpus %s: %" G_GUINT64_FORMAT
                " nodes, as what starts the command has it, with %" G_GUINT64_FORMAT " processes each",
                all, script->nodes, n);
}

/* What accelerate launch is told in front of the script, which changes what its configuration says. */
static bool
add_front (const ImportFiles *files, const LaunchScript *script, LaunchWords *words, LsImport *import,
           LsDiagList *diags)
{
  g_autoptr (LaunchWords) front = launch_words_new ();
  bool is_accelerate = false;
  for (guint i = 0; i < script->front->len; i++)
    is_accelerate = is_accelerate || strstr (script->front->pdata[i], "accelerate");
  if (!is_accelerate)
    return true;
  launch_words_add (front, (char *const *) script->front->pdata, script->front->len);
  const char *name = launch_words_text (front, "config_file");
  gsize n;
  g_autofree char *text = name ? launch_file_of (files, name, &n) : NULL;
  if (name && !text)
    import_unknown (import, "what %s says: it is not here",
                    ls_shell_has_hole (name) ? "--config_file" : name);
  if (text && !add_yaml (words, text, n, name, import, diags))
    return false;
  launch_words_add_words (words, front);
  add_nodes (script, front, words, import);
  return true;
}

/* What a file of JSON behind --fsdp_config says, by the names that a mapping in its place has. */
static bool
add_fsdp (const ImportFiles *files, LaunchWords *words, LsDiagList *diags)
{
  const char *name = launch_words_text (words, "fsdp_config");
  gsize n;
  g_autofree char *text = name && *name != '{' ? launch_file_of (files, name, &n) : NULL;
  g_autoptr (LsJsonDoc) doc = text ? relaxed_json_parse (text, n, name, diags) : NULL;
  if (doc) {
    cJSON *tree = cJSON_CreateObject ();
    cJSON_AddItemToObject (tree, "fsdp_config", cJSON_Duplicate (ls_json_doc_root (doc), true));
    launch_words_add_tree (words, tree);
    cJSON_Delete (tree);
  }
  return !text || doc;
}

/* Its options as those of a Trainer, with its defaults; what is told of them is told. gpus: 0: not
 * known. NULL: with a diagnostic. */
static LaunchWords *
dialect_words (const ProgramMap *d, LaunchWords *words, guint64 gpus, LsImport *import, LsDiagList *diags)
{
  g_autoptr (LaunchWords) to = launch_words_new ();
  LaunchJob own = { .import = import,
                    .words = words,
                    .table = &d->table,
                    .gpus = gpus,
                    .open = g_hash_table_new (g_str_hash, g_str_equal) };
  ProgramRun run
      = { .map = d,
          .job = &own,
          .words = words,
          .says = to,
          .other = { .import = import, .words = to, .table = hf_options (), .gpus = gpus, .open = own.open },
          .path = import->path,
          .diags = diags };
  if (hf_dialect_is_own (d))
    import_infer (import, IMPORT_READ_AS, d->program, ls_json_doc_name (d->doc));
  option_translate (&own, to);
  bool ok = program_doors->run_rules (&run, d->rules);
  run.says = NULL; /* not its own */
  program_run_clear (&run);
  return ok ? g_steal_pointer (&to) : NULL;
}

/* With the words of the program that it is, if it is around a Trainer. */
static bool
read_words (const ImportFiles *files, const char *script, LaunchWords *said, LaunchWords *words, guint64 gpus,
            LsImport *import, LsDiagList *diags)
{
  const ProgramMap *dialect = hf_dialect_of (script, said);
  const ProgramTold told[] = { { "alone", "script" },
                               { "around", dialect ? dialect->program : NULL },
                               { "data", dialect ? dialect->around.data : NULL },
                               { "front", words->options->len > 0 ? "1" : NULL },
                               { "software", dialect ? dialect->around.release : NULL },
                               { "why", dialect ? dialect->around.pins : NULL },
                               { "old", dialect ? hf_dialect_old (dialect, said) : NULL },
                               { NULL } };
  const ProgramWith with = { .told = told, .around = dialect };
  LaunchJob own = { .import = import, .words = said, .script = script, .gpus = gpus }, job = own;
  if ((dialect && !hf_dialect_check (dialect, script, said, import->path, diags))
      || !program_doors->run_map ("trainer", "task", &with, &own, files, diags))
    return false;
  g_autoptr (LaunchWords) theirs = dialect ? dialect_words (dialect, said, gpus, import, diags) : NULL;
  if (dialect && !theirs)
    return false;
  launch_words_add_words (words, theirs ? theirs : said);
  job.words = words;
  return add_fsdp (files, words, diags)
      && program_doors->run_map ("trainer", NULL, &with, &job, files, diags);
}

/* "key=value" behind a file of arguments (OmegaConf.from_cli of LLaMA-Factory). */
static void
add_pairs (const LaunchWords *own, LaunchWords *said)
{
  for (guint i = 1; i < own->others->len; i++) {
    char *word = own->others->pdata[i];
    if (g_ascii_isalpha (*word) && strchr (word, '='))
      launch_words_add_pairs (said, &word, 1);
  }
}

/* Arguments in YAML or JSON that a script is started with, before those of the command: --config of TRL, and
 * a file alone, of HfArgumentParser and LLaMA-Factory. */
static bool
add_arguments (const ImportFiles *files, const LaunchWords *own, LaunchWords *said, LsImport *import,
               LsDiagList *diags)
{
  const LaunchOption *config = launch_words_find (own, "config");
  const GPtrArray *names = config ? config->values : own->others;
  const char *name = names->len > 0 ? names->pdata[0] : NULL;
  bool is_yaml
      = name && (launch_is_yaml (name) || launch_names_file (files, (char *const *) names->pdata, 1, DUMPED));
  gsize n;
  g_autofree char *text = is_yaml ? launch_file_of (files, name, &n) : NULL;
  if (text && !add_yaml (said, text, n, name, import, diags))
    return false;
  if (!text && (is_yaml || config))
    import_unknown (import, "what %s says: it is not here",
                    name && !ls_shell_has_hole (name) ? name : "--config");
  if (is_yaml && !config)
    add_pairs (own, said);
  launch_words_add_words (said, own);
  return true;
}

static bool
read_launch (const ImportFiles *files, const LaunchScript *script, LsImport *import, LsDiagList *diags)
{
  g_autoptr (LaunchWords) words = launch_words_new (), said = launch_words_new ();
  return add_front (files, script, words, import, diags)
      && add_arguments (files, script->words, said, import, diags)
      && read_words (files, script->script, said, words, script->gpus, import, diags);
}

/* Arguments without the command that they are of: how many GPUs there are, and what shards, it says. */
static bool
check_command (const ImportFile *file, LsDiagList *diags)
{
  static const char *const starts[] = { "accelerate ", "torchrun ", "deepspeed ", "python", "#!" };
  bool is_bare = launch_has_line (file->text, ARGUMENT);
  for (guint i = 0; i < G_N_ELEMENTS (starts) && is_bare; i++)
    is_bare = !launch_has_line (file->text, starts[i]);
  if (is_bare)
    ls_diag_add (diags, LS_ERROR_INPUT, file->path, 0, 0, NULL, NULL,
                 "give the script that is started with them, which names this file, and this file after it",
                 "arguments of a Trainer, without the command that they are of");
  return !is_bare;
}

bool
hf_read_script (const LaunchKind *kind, const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  LaunchScript script;
  if (!check_command (&files->files[0], diags))
    return false;
  bool ok = launch_script_read (files, kind, &script, import, diags)
      && read_launch (files, &script, import, diags);
  launch_script_clear (&script);
  return ok;
}

/* --- configurations of programs around a Trainer ----------------------------------------------------- */

bool
hf_read_around (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  const ImportFile *file = &files->files[0];
  g_autoptr (LaunchWords) said = launch_words_new (), words = launch_words_new ();
  return add_yaml (said, file->text, file->n, file->path, import, diags)
      && read_words (files, NULL, said, words, 0, import, diags);
}

bool
hf_is_around (const ImportFile *file)
{
  const cJSON *tree = yaml_config_tree (file);
  g_autoptr (LaunchWords) words = launch_words_new ();
  if (!cJSON_IsObject (tree))
    return false;
  launch_words_add_tree (words, tree);
  const ProgramMap *d = hf_dialect_of (NULL, words);
  const OptionRow *model = d ? option_find (&d->table, "model") : NULL;
  bool is_own = model && g_strcmp0 (model->key, "model_name_or_path") == 0;
  return d && launch_words_find (words, is_own ? "model" : "model_name_or_path");
}

const OptionTable *
hf_options (void)
{
  static const OptionTable none;
  const ProgramMap *trainer = program_doors->map_get ("trainer");
  return trainer ? &trainer->table : &none;
}

typedef struct {
  GPtrArray *maps; /* const ProgramMap * */
  guint n_own;     /* the first of them: a user's own */
} Dialects;

static const Dialects *
all_dialects (void)
{
  static Dialects all;
  static gsize is_made;
  if (g_once_init_enter (&is_made)) {
    all.maps = g_ptr_array_new ();
    for (const ProgramAsked *a = program_doors->maps (); a->map; a++) {
      const ProgramMap *map = program_doors->map_get (a->map);
      if (!map || !map->is_around || g_ptr_array_find (all.maps, map, NULL))
        continue;
      all.n_own += a->is_own;
      g_ptr_array_add (all.maps, (gpointer) map);
    }
    g_once_init_leave (&is_made, 1);
  }
  return &all;
}

bool
hf_dialect_is_own (const ProgramMap *d)
{
  guint i;
  return g_ptr_array_find (all_dialects ()->maps, d, &i) && i < all_dialects ()->n_own;
}

/* --- whose it is --------------------------------------------------------------------------------------- */

/* "swift sft" among "swift sft swift pt"; list NULL: it is not. */
static bool
is_listed (const char *list, const char *item)
{
  g_autofree char *all = g_strdup_printf (" %s ", list ? list : ""), *one = g_strdup_printf (" %s ", item);
  return strstr (all, one) != NULL;
}

const char *
hf_dialect_old (const ProgramMap *d, const LaunchWords *words)
{
  return launch_words_first (words, d->around.old);
}

/* Its commands begin as this one does. */
static bool
begins (const ProgramAround *a, const char *script)
{
  return script && a->commands_of && g_str_has_prefix (script, a->commands_of);
}

/* It has no option that this program lacks. */
static bool
is_command (const ProgramAround *a, const char *script, const LaunchWords *words)
{
  return a->commands_of && is_listed (a->commands, script)
      && (strchr (script, ' ') || !launch_words_has_any (words, a->lacks));
}

/* Options that it alone has go first: two trainers of a program may have one command. */
const ProgramMap *
hf_dialect_of (const char *script, const LaunchWords *words)
{
  const GPtrArray *all = all_dialects ()->maps;
  for (guint i = 0; i < all->len; i++)
    if (launch_words_has_any (words, ((const ProgramMap *) all->pdata[i])->around.marks))
      return all->pdata[i];
  for (guint i = 0; i < all->len && script; i++)
    if (is_command (&((const ProgramMap *) all->pdata[i])->around, script, words))
      return all->pdata[i];
  for (guint i = 0; i < all->len; i++)
    if (begins (&((const ProgramMap *) all->pdata[i])->around, script))
      return all->pdata[i];
  return NULL;
}

bool
hf_dialect_check (const ProgramMap *d, const char *script, const LaunchWords *words, const char *path,
                  LsDiagList *diags)
{
  const ProgramAround *a = &d->around;
  bool is_other = begins (a, script) && !is_listed (a->commands, script);
  const LaunchOption *kind = launch_words_find (words, "rlhf_type");
  g_autofree char *name = a->tasks ? g_strndup (a->tasks, strcspn (a->tasks, "=")) : g_strdup ("");
  const char *text = launch_words_text (words, name);
  g_autofree char *pair = text ? g_strconcat (name, "=", text, NULL) : NULL;
  const char *trains = a->trains ? a->trains : "do_train";
  const char *other = launch_words_find (words, trains) ? NULL : launch_words_first (words, a->others);
  const char *learns = script ? NULL : launch_words_first (words, a->learns);
  if (other)
    return import_refuse_task (path, diags, "%s without %s", other, trains);
  if (learns)
    return import_refuse_task (path, diags, "%s", learns);
  if (!is_other && !kind && (!pair || is_listed (a->tasks, pair)))
    return true;
  return import_refuse_task (path, diags, "%s", is_other ? script : kind ? kind->written : pair);
}

/* --- how its commands are known ------------------------------------------------------------------------- */

bool
hf_knows (const char *name)
{
  const OptionRow *row = option_find (hf_options (), name);
  const GPtrArray *all = all_dialects ()->maps;
  for (guint i = 0; i < all->len && !(row && row->kind != OPTION_IGNORED); i++) {
    const OptionRow *own = option_find (&((const ProgramMap *) all->pdata[i])->table, name);
    row = own && *own->option != '*' ? own : row;
  }
  return row && row->kind != OPTION_IGNORED;
}

/* A program of nobody here may be told no more than a configuration of DeepSpeed, which its script names or
 * writes. */
bool
hf_needs_one (const ImportFiles *files)
{
  const ImportFile *file = &files->files[0];
  return strstr (file->text, "--deepspeed")
      && (strstr (file->text, ".json") || strstr (file->text, "zero_optimization")
          || strstr (file->text, "--deepspeed_config"));
}
