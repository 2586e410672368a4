/* A configuration of accelerate, in YAML, or a script that launches a Trainer of Hugging Face, or a program
 * around one; with what they name behind them: configurations of accelerate and DeepSpeed, a config.json. */
#include <string.h>

#include <lockstep/error.h>

#include "data/launch/launch_script.h"
#include "data/launch/program/program_map.h"
#include "data/launch/yaml_config.h"
#include "data/text/json_doc.h"

/* --- programs around a Trainer ----------------------------------------------------------------------- */

/* A map that is asked, if it is of one; NULL: it is not. */
static const ProgramMap *
around_of (const ProgramAsked *a)
{
  const ProgramMap *map = program_doors->map_get (a->map);
  return program_section (map, "around") ? map : NULL;
}

/* How a command is known: by options that its program alone has; by one that trains, with no option that the
 * program lacks; by what the program's commands begin with. */
typedef enum { BY_MARKS, BY_COMMAND, BY_BEGIN, N_WAYS } Way;

static bool
is_of (const cJSON *around, Way way, const char *script, const LaunchWords *words)
{
  if (!around)
    return false;
  const char *begin = ls_json_text (around, "commands_of");
  if (way == BY_MARKS)
    return launch_words_has_any (words, ls_json_text (around, "marks"));
  if (!begin || !script)
    return false;
  /* "swift sft" among "swift sft swift pt" */
  const char *commands = ls_json_text (around, "commands");
  g_autofree char *all = g_strdup_printf (" %s ", commands ? commands : ""),
                  *one = g_strdup_printf (" %s ", script);
  return way == BY_BEGIN ? g_str_has_prefix (script, begin)
                         : strstr (all, one)
          && (strchr (script, ' ') || !launch_words_has_any (words, ls_json_text (around, "lacks")));
}

/* By its command, or by an option of it; NULL: it is a Trainer itself, or unknown. Options that it alone has
 * go first: two trainers of a program may have one command. */
static const ProgramAsked *
dialect_of (const char *script, const LaunchWords *words)
{
  for (Way way = 0; way < N_WAYS; way++)
    for (const ProgramAsked *a = program_doors->maps (); a->map; a++)
      if (is_of (program_section (program_doors->map_get (a->map), "around"), way, script, words))
        return a;
  return NULL;
}

bool
hf_knows (const char *name)
{
  const ProgramMap *trainer = program_doors->map_get ("trainer");
  const OptionRow *row = trainer ? option_find (&trainer->table, name) : NULL;
  for (const ProgramAsked *a = program_doors->maps (); a->map && !(row && row->kind != OPTION_IGNORED); a++) {
    const ProgramMap *map = around_of (a);
    const OptionRow *own = map ? option_find (&map->table, name) : NULL;
    row = own && *own->option != '*' ? own : row;
  }
  return row && row->kind != OPTION_IGNORED;
}

bool
hf_is_around (const ImportFile *file)
{
  const cJSON *tree = yaml_config_tree (file);
  g_autoptr (LaunchWords) words = launch_words_new ();
  if (!cJSON_IsObject (tree))
    return false;
  launch_words_add_tree (words, tree);
  const ProgramAsked *d = dialect_of (NULL, words);
  const OptionRow *model = d ? option_find (&around_of (d)->table, "model") : NULL;
  bool is_own = model && g_strcmp0 (model->key, "model_name_or_path") == 0;
  return d && launch_words_find (words, is_own ? "model" : "model_name_or_path");
}

/* --- configurations ---------------------------------------------------------------------------------- */

static bool
add_yaml (LaunchWords *words, const char *text, gsize n, const char *path, LsImport *import,
          LsDiagList *diags)
{
  const ImportFile file = { .path = path, .text = (char *) text, .n = n };
  g_autoptr (cJSON) tree = yaml_config_parse (&file, import, diags);
  launch_words_add_tree (words, tree);
  return tree != NULL;
}

/* What a file of JSON behind --fsdp_config says, by the names that a mapping in its place has. */
static bool
add_fsdp (const ImportFiles *files, LaunchWords *words, LsDiagList *diags)
{
  const char *name = launch_words_text (words, "fsdp_config");
  gsize n;
  g_autofree char *text = name && *name != '{' ? launch_file_of (files, name, &n) : NULL;
  g_autoptr (LsJsonDoc) doc = text ? ls_json_doc_parse_as (text, n, name, LS_JSON_BY_HAND, diags) : NULL;
  if (doc) {
    cJSON *tree = cJSON_CreateObject ();
    cJSON_AddItemToObject (tree, "fsdp_config", cJSON_Duplicate (ls_json_doc_root (doc), true));
    launch_words_add_tree (words, tree);
    cJSON_Delete (tree);
  }
  return !text || doc;
}

/* Reads words that a script or a configuration says, behind those in front of the script: a program around a
 * Trainer has its own part "task", and makes them words of a Trainer. script NULL: there is none. */
static bool
read_words (const ImportFiles *files, const char *script, LaunchWords *said, LaunchWords *words, guint64 gpus,
            LsImport *import, LsDiagList *diags)
{
  const ProgramAsked *a = dialect_of (script, said);
  const ProgramMap *d = a ? around_of (a) : NULL;
  const cJSON *around = program_section (d, "around");
  g_autoptr (cJSON) told = cJSON_CreateObject (); /* what is NULL is not added */
  cJSON_AddStringToObject (told, "alone", "script");
  cJSON_AddStringToObject (told, "around", d ? d->program : NULL);
  cJSON_AddStringToObject (told, "front", words->options->len > 0 ? "1" : NULL);
  cJSON_AddStringToObject (told, "software", ls_json_text (around, "release"));
  cJSON_AddStringToObject (told, "why", ls_json_text (around, "pins"));
  cJSON_AddStringToObject (told, "old", launch_words_first (said, ls_json_text (around, "old")));
  g_autoptr (LaunchWords) theirs = launch_words_new ();
  const ProgramRun with = { .told = told, .around = d, .files = files, .diags = diags },
                   translated = { .told = told, .says = theirs, .diags = diags };
  LaunchJob own = { .import = import, .words = said, .script = script, .gpus = gpus }, job = own;
  if ((d && !program_doors->run_map (a->map, "task", with, &own))
      || !program_doors->run_map ("trainer", "task", with, &own))
    return false;
  if (d && a->is_own)
    import_infer (import, IMPORT_READ_AS, d->program, ls_json_doc_name (d->doc));
  if (d && !program_doors->run_map (a->map, NULL, translated, &own))
    return false;
  launch_words_add_words (words, d ? theirs : said);
  job.words = words;
  return add_fsdp (files, words, diags) && program_doors->run_map ("trainer", NULL, with, &job);
}

bool
hf_read_configuration (const ImportFiles *files, bool is_around, LsImport *import, LsDiagList *diags)
{
  const ImportFile *file = &files->files[0];
  g_autoptr (LaunchWords) said = launch_words_new (), words = launch_words_new ();
  LaunchJob job = { .import = import, .words = said };
  g_autoptr (cJSON) told = cJSON_CreateObject ();
  cJSON_AddStringToObject (told, "alone", "configuration");
  if (!add_yaml (said, file->text, file->n, file->path, import, diags))
    return false;
  return is_around ? read_words (files, NULL, said, words, 0, import, diags)
                   : program_doors->run_map (
                       "trainer", NULL, (ProgramRun) { .told = told, .files = files, .diags = diags }, &job);
}

/* --- scripts --------------------------------------------------------------------------------------- */

/* What accelerate launch is told in front of the script, which changes what its configuration says. What
 * submits a command to several nodes has its processes on each, where they are those of one node and the
 * command says no nodes itself (allenai/open-instruct: mason.py). */
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
  const char *each = launch_words_text (words, "num_processes");
  const guint64 of_node = each ? launch_last_number (each) : 0;
  if (script->nodes <= 1 || of_node == 0 || of_node != script->of_node
      || launch_words_find (front, "num_machines"))
    return true;
  g_autofree char *all = g_strdup_printf ("%" G_GUINT64_FORMAT, of_node * script->nodes);
  launch_words_add_by (words, false, "num_processes", all);
  import_infer (import,
                "gpus %s: %" G_GUINT64_FORMAT
                " nodes, as what starts the command has it, with %" G_GUINT64_FORMAT " processes each",
                all, script->nodes, of_node);
  return true;
}

/* Arguments in YAML or JSON that a script is started with, before those of the command: --config of TRL, and
 * a file alone, of HfArgumentParser and LLaMA-Factory, behind which is "key=value" (OmegaConf.from_cli). */
static bool
add_arguments (const ImportFiles *files, const LaunchWords *own, LaunchWords *said, LsImport *import,
               LsDiagList *diags)
{
  const LaunchOption *config = launch_words_find (own, "config");
  const GPtrArray *names = config ? config->values : own->others;
  const char *name = names->len > 0 ? names->pdata[0] : NULL;
  bool is_yaml = name
      && (launch_is_yaml (name)
          || launch_names_file (files, (char *const *) names->pdata, 1, "\"model_name_or_path\":"));
  gsize n;
  g_autofree char *text = is_yaml ? launch_file_of (files, name, &n) : NULL;
  if (text && !add_yaml (said, text, n, name, import, diags))
    return false;
  if (!text && (is_yaml || config))
    import_unknown (import, "what %s says: it is not here",
                    name && !ls_shell_has_hole (name) ? name : "--config");
  for (guint i = 1; is_yaml && !config && i < own->others->len; i++) {
    g_auto (GStrv) pair = g_strsplit (own->others->pdata[i], "=", 2);
    if (pair[0] && pair[1] && g_ascii_isalpha (*pair[0]))
      launch_words_add_value (said, pair[0], pair[1]);
  }
  launch_words_add_words (said, own);
  return true;
}

bool
hf_read_script (const LaunchKind *kind, const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  g_autoptr (LaunchWords) words = launch_words_new (), said = launch_words_new ();
  LaunchScript script;
  bool ok = launch_script_read (files, kind, &script, import, diags)
      && add_front (files, &script, words, import, diags)
      && add_arguments (files, script.words, said, import, diags)
      && read_words (files, script.script, said, words, script.gpus, import, diags);
  launch_script_clear (&script);
  return ok;
}
