/* Jobs of XTuner v1: a configuration in Python, which sets `trainer`, and commands that start
 * xtuner/v1/train/cli/sft.py with one, or with arguments (InternLM/xtuner@b934f462, August 2026). */
#include <string.h>

#include <lockstep/error.h>

#include "data/launch/hf_rules.h"
#include "data/launch/launch_script.h"
#include "data/launch/python/python_names.h"
#include "data/launch/xtuner/xtuner_1_rules.h"
#include "data/launch/xtuner/xtuner_1_tree.h"
#include "data/python/python.h"

#define PROGRAM   "XTuner v1"
#define MAX_FILES 16 /* of a configuration, that import from others */

/* --- the environment ---------------------------------------------------------------------------------- */

static void
note (GPtrArray *list, const char *text)
{
  if (!g_ptr_array_find_with_equal_func (list, text, g_str_equal, NULL))
    g_ptr_array_add (list, g_strdup (text));
}

const char *
xtuner_1_variable (const char *name, gpointer environment)
{
  const Xtuner1Environment *e = environment;
  const char *set = e->variables ? g_hash_table_lookup (e->variables, name) : NULL,
             *given = set ? NULL : import_given (e->files, name);
  g_autofree char *both = set ? g_strdup_printf ("%s=%s", name, set) : NULL;
  if (both)
    note (e->asked, both);
  if (set || given)
    return set ? set : given;
  if (e->ranks && strcmp (name, "WORLD_SIZE") == 0)
    return e->ranks;
  note (e->unset, name);
  return NULL;
}

static char *
joined (GPtrArray *list)
{
  g_ptr_array_add (list, NULL);
  char *text = g_strjoinv (", ", (char **) list->pdata);
  g_ptr_array_set_size (list, 0);
  return text;
}

static void
tell_environment (const Xtuner1Environment *e, LsImport *import)
{
  g_autofree char *asked = joined (e->asked), *unset = joined (e->unset);
  if (*asked)
    import_infer (import, "variables of the script, taken to be exported: %s", asked);
  if (*unset)
    import_infer (import, "taken as not set in the environment: %s", unset);
}

/* --- a file ------------------------------------------------------------------------------------------- */

/* Files that it imports from, which stand behind it or beside it, to texts; those of XTuner itself are not
 * asked for. */
static bool
add_imported (LsPython *python, const ImportFiles *files, GPtrArray *texts, LsDiagList *diags)
{
  g_autoptr (GHashTable) seen = g_hash_table_new (g_str_hash, g_str_equal);
  for (guint file = 0; file <= texts->len && file < MAX_FILES; file++) {
    const GPtrArray *modules = ls_python_imports (python, file);
    for (guint i = 0; i < modules->len; i++) {
      const char *module = modules->pdata[i];
      g_autofree char *name = g_strdelimit (g_strconcat (module, ".", NULL), ".", '/'), *path = NULL;
      name[strlen (name) - 1] = '\0';
      path = g_strconcat (name, ".py", NULL);
      bool is_own = *module != '.' && !g_str_has_prefix (module, "xtuner.");
      gsize n;
      char *text
          = is_own && g_hash_table_add (seen, (gpointer) module) ? launch_file_of (files, path, &n) : NULL;
      if (!text)
        continue;
      g_ptr_array_add (texts, text);
      if (!ls_python_add (python, text, n, path, diags))
        return false;
    }
  }
  return true;
}

/* What a file sets a name to; NULL: a diagnostic. */
static cJSON *
value_of (const char *text, gsize n, const char *path, const char *name, Xtuner1Environment *e,
          LsImport *import, LsDiagList *diags)
{
  g_autoptr (GPtrArray) texts = g_ptr_array_new_with_free_func (g_free),
                        passed = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (LsPython) python = ls_python_new (text, n, path, diags);
  if (!python || !add_imported (python, e->files, texts, diags))
    return NULL;
  ls_python_set_environment (python, xtuner_1_variable, e);
  cJSON *value = ls_python_name (python, name, passed, diags);
  if (value) {
    python_tell_passed (import, path, passed);
    tell_environment (e, import);
    launch_python_environment (python, false, import);
  }
  return value;
}

/* Which trainer it is: one of reinforcement learning has another name. */
static bool
check_task (const cJSON *tree, const LsImport *import, LsDiagList *diags)
{
  const cJSON *made = cJSON_GetObjectItemCaseSensitive (tree, "()");
  const char *name = cJSON_IsString (made) ? made->valuestring : "something that is not followed",
             *dot = strrchr (name, '.'), *last = dot ? dot + 1 : name;
  return strcmp (last, "TrainerConfig") == 0 || strcmp (last, "Trainer") == 0
      || import_refuse_task (import->path, diags, "trainer %s", last);
}

/* The words of its trainer. */
static bool
add_config (LaunchWords *words, const char *text, gsize n, const char *path, Xtuner1Environment *e,
            LsImport *import, LsDiagList *diags)
{
  cJSON *tree = value_of (text, n, path, "trainer", e, import, diags);
  bool ok = tree && check_task (tree, import, diags);
  if (ok) {
    xtuner_1_settle (tree);
    launch_words_add_tree (words, tree);
  }
  cJSON_Delete (tree);
  return ok;
}

/* The words of the `model` that a file sets, which --model-cfg names. */
static bool
add_model (LaunchWords *words, const char *text, gsize n, const char *path, Xtuner1Environment *e,
           LsImport *import, LsDiagList *diags)
{
  cJSON *model = value_of (text, n, path, "model", e, import, diags), *tree = cJSON_CreateObject ();
  if (model) {
    cJSON_AddItemToObject (tree, "model_cfg", model);
    xtuner_1_settle (tree);
    launch_words_add_tree (words, tree);
  }
  cJSON_Delete (tree);
  return model != NULL;
}

/* gpus 0: those that are given beside the file, or not known. */
static Xtuner1Environment
environment_of (const ImportFiles *files, GHashTable *variables, guint64 gpus, const LsImport *import)
{
  guint64 ranks = import_has_strategy (import, "gpus") ? import->strategy.gpus : gpus;
  return (Xtuner1Environment) {
    .files = files,
    .variables = variables,
    .asked = g_ptr_array_new_with_free_func (g_free),
    .unset = g_ptr_array_new_with_free_func (g_free),
    .ranks = ranks > 0 ? g_strdup_printf ("%" G_GUINT64_FORMAT, ranks) : NULL,
  };
}

static void
environment_clear (Xtuner1Environment *e)
{
  g_ptr_array_unref (e->asked);
  g_ptr_array_unref (e->unset);
  g_free (e->ranks);
}

/* All options; of a file that sets a model alone no more than that. */
static void
read_options (LaunchJob *job, Xtuner1Environment *environment, bool is_model)
{
  job->table = &xtuner_1_options;
  import_set_software (job->import, "xtuner-v1-2026");
  option_read_all (job);
  xtuner_1_model (job);
  if (is_model)
    import_unknown (job->import, "sequences, batch and all else: the file sets a model alone");
  else
    xtuner_1_strategy (job, environment);
  g_hash_table_unref (job->open);
}

/* Which of the two a file sets: a job, or the model of one that a command names. */
static bool
is_job (const char *text)
{
  return launch_has_line (text, "trainer");
}

static bool
read_config (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  const ImportFile *file = &files->files[0];
  Xtuner1Environment e = environment_of (files, NULL, 0, import);
  g_autoptr (LaunchWords) words = launch_words_new ();
  import->program = PROGRAM;
  bool ok = is_job (file->text) ? add_config (words, file->text, file->n, file->path, &e, import, diags)
                                : add_model (words, file->text, file->n, file->path, &e, import, diags);
  ok = ok && hf_read_model (files, import, diags);
  if (ok)
    read_options (&(LaunchJob) { .import = import, .words = words }, &e, !is_job (file->text));
  environment_clear (&e);
  return ok;
}

static bool
is_config (const ImportFile *file)
{
  return (is_job (file->text) || launch_has_line (file->text, "model = "))
      && (launch_has_line (file->text, "from xtuner.v1") || launch_has_line (file->text, "import xtuner.v1"));
}

/* Named by the reader of its first generation. */
const ImportReader import_xtuner_1 = { NULL, is_config, read_config };

/* --- commands ----------------------------------------------------------------------------------------- */

static bool
is_known (const char *name)
{
  return option_find (&xtuner_1_arguments, name) != NULL;
}

static bool
starts (char *const *words, guint n)
{
  for (guint i = 0; i < n; i++)
    if (strcmp (words[i], "xtuner.v1.train.cli.sft") == 0
        || g_str_has_suffix (words[i], "xtuner/v1/train/cli/sft.py"))
      return true;
  return false;
}

/* "--fsdp-config.no-torch-compile" is torch_compile off. */
static void
add_negations (LaunchWords *words)
{
  for (guint i = 0, n = words->options->len; i < n; i++) {
    const LaunchOption *o = words->options->pdata[i];
    const char *dot = strrchr (o->name, '.'), *last = dot ? dot + 1 : o->name;
    if (!g_str_has_prefix (last, "no-") && !g_str_has_prefix (last, "no_"))
      continue;
    g_autofree char *name
        = g_strdup_printf ("%.*s%s", (int) (last - o->name), o->name, last + strlen ("no-"));
    if (option_find (&xtuner_1_arguments, name))
      launch_words_add_value (words, name, "False");
  }
}

/* What TrainingArguments has by itself, where TrainerConfig has something else. Of a loader of which anything
 * is said the rest is as a loader has it. */
static void
add_defaults (LaunchWords *words, const LaunchWords *arguments)
{
  static const char *const of_loader[] = { "pack_max_length",       "pack_level",   "pack_to_max_length",
                                           "pack_chunk_size",       "pack_workers", "global_pack",
                                           "group_by_length",       "num_workers",  "collator",
                                           "pack_extra_buffer_size" };
  bool has_loader = false;
  for (guint i = 0; i < G_N_ELEMENTS (of_loader); i++)
    has_loader = has_loader || launch_words_find (arguments, of_loader[i]);
  if (!has_loader)
    launch_words_add_value (words, "dataloader_cfg.pack_max_length", "4096");
  if (!launch_words_find (words, "loss_cfg.mode"))
    launch_words_add_value (words, "loss_cfg.mode", "chunk");
  launch_words_add_value (words, "optim_cfg.foreach", "False");
}

/* A configuration of a model is a file, or a name. */
static bool
read_arguments (const ImportFiles *files, LaunchScript *script, LaunchWords *words, Xtuner1Environment *e,
                LsImport *import, LsDiagList *diags)
{
  const char *model = launch_words_text (script->words, "model_cfg");
  bool is_file = model && g_str_has_suffix (model, ".py");
  gsize n = 0;
  g_autofree char *text = is_file ? launch_file_of (files, model, &n) : NULL;
  if (is_file && !text)
    return launch_refuse_config (model, import, diags);
  if (text && !add_model (words, text, n, model, e, import, diags))
    return false;
  add_negations (script->words);
  LaunchJob own = { .import = import, .words = script->words, .table = &xtuner_1_arguments };
  option_translate (&own, words);
  if (is_file)
    launch_words_add_value (words, "model_cfg.name", NULL);
  add_defaults (words, script->words);
  return true;
}

static bool
read_job (const ImportFiles *files, LaunchScript *script, Xtuner1Environment *e, LsImport *import,
          LsDiagList *diags)
{
  const char *name = launch_words_text (script->words, "config");
  gsize n = 0;
  g_autofree char *text = name ? launch_file_of (files, name, &n) : NULL;
  g_autoptr (LaunchWords) words = launch_words_new ();
  import->program = PROGRAM;
  if (name && !text)
    return launch_refuse_config (name, import, diags);
  bool ok = text ? add_config (words, text, n, name, e, import, diags)
                 : read_arguments (files, script, words, e, import, diags);
  if (ok && hf_read_model (files, import, diags)) {
    read_options (&(LaunchJob) { .import = import, .words = words, .gpus = script->gpus }, e, false);
    return true;
  }
  return false;
}

static bool
read_script (const ImportFiles *files, LsImport *import, LsDiagList *diags)
{
  static const LaunchKind kind
      = { .program = PROGRAM, .is_known = is_known, .n_needed = 1, .starts = starts };
  LaunchScript script;
  bool ok = launch_script_read (files, &kind, &script, import, diags);
  if (ok) {
    Xtuner1Environment e = environment_of (files, script.variables, script.gpus, import);
    ok = read_job (files, &script, &e, import, diags);
    environment_clear (&e);
  }
  launch_script_clear (&script);
  return ok;
}

/* Not in a comment, as configurations say how they are started. */
static bool
is_script (const ImportFile *file)
{
  g_auto (GStrv) lines = g_strsplit (file->text, "\n", -1);
  for (char **line = lines; *line; line++)
    if (*g_strchug (*line) != '#'
        && (strstr (*line, "xtuner.v1.train.cli.sft") || strstr (*line, "xtuner/v1/train/cli/sft.py")))
      return true;
  return false;
}

const ImportReader import_xtuner_1_script = { NULL, is_script, read_script };
