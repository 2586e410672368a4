/* Programs in Python that a command starts: what they say themselves of options, variables and files that
 * they import from. */
#include <string.h>

#include "data/launch/launch_script.h"
#include "data/launch/program/program_map.h"

char *
python_find_module (const char *path, const char *module)
{
  g_auto (GStrv) parts = g_strsplit (module, ".", -1);
  g_autofree char *name = g_strjoinv ("/", parts), *file = g_strconcat (name, ".py", NULL),
                  *folder = g_path_get_dirname (path);
  while (folder && *name) {
    g_autofree char *whole = g_build_filename (folder, file, NULL),
                    *init = g_build_filename (folder, name, "__init__.py", NULL),
                    *base = g_path_get_basename (folder);
    if (g_file_test (whole, G_FILE_TEST_IS_REGULAR))
      return g_steal_pointer (&whole);
    if (g_file_test (init, G_FILE_TEST_IS_REGULAR))
      return g_steal_pointer (&init);
    g_autofree char *here = *base == '.' ? g_canonicalize_filename (folder, NULL) : g_steal_pointer (&folder),
                    *above = g_path_get_dirname (here); /* above where we are too */
    g_free (folder);
    folder = strcmp (above, here) != 0 ? g_steal_pointer (&above) : NULL;
  }
  return NULL;
}

bool
python_add_imported (LsPython *python, GPtrArray *paths, GPtrArray *texts, guint most, PythonFind *find,
                     gpointer data, LsDiagList *diags)
{
  for (guint i = 0; i < paths->len && i < most; i++) {
    const GPtrArray *modules = ls_python_imports (python, i);
    for (guint k = 0; k < modules->len; k++) {
      gsize n = 0;
      g_autofree char *path = NULL, *text = find (modules->pdata[k], paths->pdata[i], &n, &path, data);
      const char *own = text;
      if (!text || g_ptr_array_find_with_equal_func (paths, path, g_str_equal, NULL))
        continue;
      g_ptr_array_add (texts, g_steal_pointer (&text));
      if (!ls_python_add (python, own, n, path, diags))
        return false;
      g_ptr_array_add (paths, g_steal_pointer (&path));
    }
  }
  return true;
}

#define MAX_IMPORTED 16 /* files of a program */
#define MAX_SHOWN    8  /* options */

/* Beside it, "from arguments import get_args"; packages are others. files: ImportFiles. */
static char *
find_beside (const char *module, const char *from, gsize *ret_n, char **ret_path, gpointer files)
{
  module += *module == '.';
  *ret_path = g_strconcat (module, ".py", NULL);
  return *module && !strchr (module, '.') ? launch_file_of (files, *ret_path, ret_n) : NULL;
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
    if (reads_is (kind->of, "around")
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

/* The configuration of DeepSpeed that it hands over, as the file that it names; where it is not known, as the
 * switch of a program that makes it in Python. */
static void
add_engine (LaunchWords *words, const LsPython *python)
{
  static const char *const options[] = { "deepspeed", "deepspeed_config", "deepspeed_config_file" };
  const cJSON *engine = ls_python_found (python)->engine;
  for (guint i = 0; i < G_N_ELEMENTS (options) && engine; i++)
    engine = launch_words_find (words, options[i]) ? NULL : engine;
  if (!engine)
    return;
  bool is_path = cJSON_IsString (engine) && !ls_shell_has_hole (engine->valuestring);
  launch_words_add_value (words, "deepspeed", is_path ? engine->valuestring : NULL);
}

static void
add_variables (const LsPython *python, GHashTable *variables, GHashTable *exported)
{
  g_autoptr (GHashTable) set = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  GHashTableIter iter;
  gpointer name;
  ls_python_add_variables (python, set);
  ls_python_add_variables (python, variables);
  for (g_hash_table_iter_init (&iter, set); g_hash_table_iter_next (&iter, &name, NULL);)
    g_hash_table_add (exported, g_strdup (name));
}

void
launch_python (const ImportFiles *files, const LaunchKind *kind, const GPtrArray *command, LaunchWords *words,
               GHashTable *variables, GHashTable *exported, LsImport *import)
{
  gsize n;
  guint at = 0;
  g_autofree char *name = NULL;
  const guint first = launch_find_script ((char *const *) command->pdata, command->len, &at, &name);
  const char *path = first > 0 && g_str_has_suffix (command->pdata[at], ".py") ? command->pdata[at] : NULL;
  g_autofree char *beside = path ? launch_file_of (files, path, &n) : NULL,
                  *above = path && !beside && *path != '/' ? launch_read_above (files, path, true, &n) : NULL;
  const char *text = beside ? beside : above;
  g_autoptr (GPtrArray) texts = g_ptr_array_new_with_free_func (g_free),
                        paths = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (LsDiagList) none = ls_diag_list_new ();
  g_autoptr (LsPython) python = text ? ls_python_new (text, n, name, none) : NULL;
  if (!python)
    return;
  g_ptr_array_add (paths, g_strdup (name));
  python_add_imported (python, paths, texts, MAX_IMPORTED, find_beside, (gpointer) files, none);
  ls_python_start (python);
  add_options (words, python, kind, name, import);
  tell_packages (text, python, name, import);
  if (reads_is (kind->of, "around"))
    add_engine (words, python);
  add_variables (python, variables, exported);
}

void
launch_environment (bool has_te, GHashTable *variables, GHashTable *exported, LsImport *import)
{
  LaunchJob job = { .import = import, .variables = variables, .exported = exported };
  program_doors->run_map ("environment", has_te ? "transformer-engine" : "torch", (ProgramRun) { NULL },
                          &job);
}

void
launch_python_environment (const LsPython *python, bool has_te, LsImport *import)
{
  g_autoptr (GHashTable) variables = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free),
                         exported = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  add_variables (python, variables, exported);
  launch_environment (has_te, variables, exported, import);
}
