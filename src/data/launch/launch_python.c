/* What a program in Python that a command starts says itself, where it lies next to the script: options that
 * the command leaves as they are declared (argparse, dataclasses), and variables that it sets for its
 * processes. */
#include <string.h>

#include "data/launch/launch_script.h"
#include "data/launch/program/program_map.h"
#include "data/python/python.h"

#define MAX_FILES 16 /* of a program */
#define MAX_SHOWN 8  /* options */
#define MAX_ABOVE 3  /* folders above the script */

static const char *
exported_variable (const char *name, gpointer data)
{
  const LaunchEnvironment *e = data;
  return g_hash_table_contains (e->exported, name) ? g_hash_table_lookup (e->variables, name) : NULL;
}

/* Files beside it that it imports from, "from arguments import get_args"; packages are others. */
static void
add_beside (LsPython *python, const ImportFiles *files, GPtrArray *texts)
{
  g_autoptr (LsDiagList) none = ls_diag_list_new ();
  for (guint file = 0; file <= texts->len && file < MAX_FILES; file++) {
    const GPtrArray *modules = ls_python_imports (python, file);
    for (guint i = 0; i < modules->len; i++) {
      const char *module = (const char *) modules->pdata[i] + (*(const char *) modules->pdata[i] == '.');
      g_autofree char *name = g_strconcat (module, ".py", NULL);
      gsize n;
      char *text = *module && !strchr (module, '.') ? launch_file_of (files, name, &n) : NULL;
      if (!text)
        continue;
      g_ptr_array_add (texts, text);
      if (!ls_python_add (python, text, n, name, none))
        return;
    }
  }
}

/* As a command would say it; NULL: it would not, or its value is not known. The caller frees it. */
static char *
word_of (const cJSON *usual)
{
  if (cJSON_IsString (usual))
    return ls_shell_has_hole (usual->valuestring) || usual->valueint > 0 ? NULL
                                                                         : g_strdup (usual->valuestring);
  if (!cJSON_IsNumber (usual))
    return NULL;
  char number[G_ASCII_DTOSTR_BUF_SIZE];
  return g_strdup (g_ascii_dtostr (number, sizeof number, usual->valuedouble));
}

/* A list of texts as the words of an option; NULL: it is none, or one of them is not known. */
static GPtrArray *
list_of (const cJSON *usual)
{
  g_autoptr (GPtrArray) words = g_ptr_array_new_with_free_func (g_free);
  g_ptr_array_add (words, g_strconcat ("--", usual->string, NULL));
  for (const cJSON *one = cJSON_IsArray (usual) ? usual->child : NULL; one; one = one->next) {
    char *word = cJSON_IsString (one) ? word_of (one) : NULL;
    if (!word)
      return NULL;
    g_ptr_array_add (words, word);
  }
  return words->len > 1 ? g_steal_pointer (&words) : NULL;
}

/* Options that matter and that the command does not say. */
static void
add_options (LaunchWords *words, const LsPython *python, const LaunchKind *kind, const char *name,
             LsImport *import)
{
  g_autoptr (GString) told = g_string_new (NULL);
  guint n = 0;
  for (const cJSON *one = ls_python_found (python)->options->child; one; one = one->next) {
    g_autofree char *word = word_of (one);
    g_autoptr (GPtrArray) list = word ? NULL : list_of (one);
    bool is_of_other = strstr (one->string, "ref_model") || strstr (one->string, "reference_model");
    if (kind->of->is_around
        && is_of_other) /* what learns from preferences, whether a command says it or not */
      launch_words_add_value (words, one->string, NULL);
    bool is_on = cJSON_IsTrue (one),
         is_open
        = !cJSON_IsBool (one) && !cJSON_IsNull (one) && !word && !list && launch_knows (kind, one->string);
    if (cJSON_IsFalse (one) && launch_knows (kind, one->string) && !launch_words_find (words, one->string))
      launch_words_add_by (words, false, one->string, "False");
    if (is_open && !launch_words_find (words, one->string))
      import_unknown (import, "--%s: what %s declares it to be is not followed", one->string, name);
    if ((!word && !list && !is_on) || !launch_knows (kind, one->string)
        || launch_words_find (words, one->string))
      continue;
    if (list) {
      launch_words_add (words, (char *const *) list->pdata, list->len);
      g_ptr_array_remove_index (list, 0);
      g_ptr_array_add (list, NULL);
      word = g_strjoinv (",", (char **) list->pdata);
    } else
      launch_words_add_value (words, one->string, word);
    if (++n <= MAX_SHOWN)
      g_string_append_printf (told, "%s--%s%s%s", n > 1 ? ", " : "", one->string, word ? " " : "",
                              word ? word : "");
  }
  if (n > MAX_SHOWN)
    g_string_append_printf (told, ", and %u more", n - MAX_SHOWN);
  if (n > 0)
    import_infer (import, "options that the command leaves as %s declares them: %s", name, told->str);
}

/* Packages that read a command, or files beside it, in ways that are not followed. */
static void
tell_packages (const char *text, const LsPython *python, const char *name, LsImport *import)
{
  static const char *const packages[] = { "hydra",   "absl",           "jsonargparse",
                                          "draccus", "simple_parsing", "pydantic_settings",
                                          "typer",   "click" };
  bool has_options = ls_python_found (python)->options->child != NULL;
  for (guint i = 0; i < G_N_ELEMENTS (packages) && !has_options; i++) {
    g_autofree char *plain = g_strconcat ("import ", packages[i], NULL),
                    *from = g_strconcat ("from ", packages[i], NULL);
    if (launch_has_line (text, plain) || launch_has_line (text, from)) {
      import_unknown (import, "what %s takes where the command says nothing: it reads options by %s", name,
                      packages[i]);
      return;
    }
  }
}

/* As a file would have it: with "$" and a name for what is not known. */
static void
name_holes (cJSON *item)
{
  for (cJSON *one = item->child, *next; one; one = next) {
    next = one->next;
    const char *made = cJSON_GetStringValue (cJSON_GetObjectItemCaseSensitive (one, "()"));
    bool is_open = cJSON_IsString (one) && (ls_shell_has_hole (one->valuestring) || one->valueint > 0);
    g_autofree char *name = made ? g_strconcat ("$", made, NULL)
        : is_open                ? launch_with_names (one->valuestring)
                                 : NULL;
    g_autofree char *own = name && *name != '$' ? g_strconcat ("$", name, NULL) : g_strdup (name);
    g_autofree char *key = g_strdup (one->string); /* not that of what is replaced */
    if (own && cJSON_IsObject (item))
      cJSON_ReplaceItemInObjectCaseSensitive (item, key, cJSON_CreateString (own));
    else if (!own)
      name_holes (one);
  }
}

/* The configuration of DeepSpeed that it hands over, as a file that the command names; where it is not known,
 * as the switch of a program that makes it in Python. */
static void
add_engine (const ImportFiles *files, LaunchWords *words, const LsPython *python, const char *name,
            LsImport *import)
{
  static const char *const options[] = { "deepspeed", "deepspeed_config", "deepspeed_config_file" };
  const cJSON *engine = ls_python_found (python)->engine;
  for (guint i = 0; i < G_N_ELEMENTS (options) && engine; i++)
    engine = launch_words_find (words, options[i]) ? NULL : engine;
  if (!engine)
    return;
  bool is_path = cJSON_IsString (engine) && !ls_shell_has_hole (engine->valuestring) && engine->valueint == 0,
       is_whole = cJSON_IsObject (engine) && !cJSON_GetObjectItemCaseSensitive (engine, "()");
  g_autofree char *file = g_strdup_printf ("%s, deepspeed.initialize", name);
  if (is_whole) {
    cJSON *tree = cJSON_Duplicate (engine, true);
    name_holes (tree);
    char *text = cJSON_PrintUnformatted (tree);
    g_hash_table_replace (files->written, g_strdup (file), g_strdup (text));
    import_infer (import, "the configuration of DeepSpeed: what %s hands to deepspeed.initialize", name);
    cJSON_free (text);
    cJSON_Delete (tree);
  }
  launch_words_add_value (words, "deepspeed", is_whole ? file : is_path ? engine->valuestring : NULL);
}

static void
add_variables (const LsPython *python, const LaunchEnvironment *e)
{
  g_autoptr (GHashTable) set = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  GHashTableIter iter;
  gpointer name;
  ls_python_add_variables (python, set);
  ls_python_add_variables (python, e->variables);
  for (g_hash_table_iter_init (&iter, set); g_hash_table_iter_next (&iter, &name, NULL);)
    g_hash_table_add (e->exported, g_strdup (name));
}

/* Where it says from the folder of the script, beside that, or above, where the script may be started;
 * NULL: it is not there. The caller frees it. */
static char *
find_program (const ImportFiles *files, const char *path, gsize *ret_n)
{
  char *text = g_str_has_suffix (path, ".py") ? launch_file_of (files, path, ret_n) : NULL;
  g_autoptr (GString) above = g_string_new (path);
  for (guint i = 0; i < MAX_ABOVE && !text && g_str_has_suffix (path, ".py") && *path != '/'; i++) {
    g_string_prepend (above, "../");
    text = launch_file_of (files, above->str, ret_n);
  }
  return text;
}

void
launch_python (const ImportFiles *files, const LaunchKind *kind, const GPtrArray *command, LaunchWords *words,
               const LaunchEnvironment *environment, LsImport *import)
{
  gsize n;
  guint at = 0;
  g_autofree char *name = NULL;
  const guint first = launch_find_script (command, &at, &name);
  g_autofree char *text = first > 0 ? find_program (files, command->pdata[at], &n) : NULL;
  g_autoptr (GPtrArray) texts = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (LsDiagList) none = ls_diag_list_new ();
  g_autoptr (LsPython) python = text ? ls_python_new (text, n, name, none) : NULL;
  if (!python)
    return;
  add_beside (python, files, texts);
  ls_python_set_environment (python, exported_variable, (gpointer) environment);
  ls_python_start (python);
  add_options (words, python, kind, name, import);
  tell_packages (text, python, name, import);
  if (kind->of->is_around)
    add_engine (files, words, python, name, import);
  add_variables (python, environment);
}

void
launch_environment (bool has_te, GHashTable *variables, GHashTable *exported, LsImport *import)
{
  LaunchJob job = { .import = import, .variables = variables, .exported = exported };
  program_run_map ("environment", has_te ? "transformer-engine" : "torch", &job, NULL, NULL);
}

void
launch_python_environment (const LsPython *python, bool has_te, LsImport *import)
{
  g_autoptr (GHashTable) variables = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free),
                         exported = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  const LaunchEnvironment e = { variables, exported };
  add_variables (python, &e);
  launch_environment (has_te, variables, exported, import);
}
