/* Programs and configurations in Python: names at the start of their lines, and functions. A configuration
 * has names of files that it imports all names from,
 *
 *     with read_base():
 *         from configs._base_.models.internlm2_7B import *
 *
 * which hold where it sets none of its own (Config.from_file of mmengine, and of InternEvo's
 * internlm/core/context/parallel_context.py). */
#include <lockstep/error.h>
#include <string.h>

#include "base/list.h"
#include "data/launch/launch_script.h"
#include "data/launch/program/program_map.h"
#include "data/python/python.h"
#include "data/shell/shell.h"
#include "data/text/read_file.h"

#define MAX_BASES  4 /* files that import others */
#define MAX_NAMES  200
#define MAX_PASSED 5 /* places that are named */
#define JOB        "lockstep_job"
#define NAME_CHARS G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "_"

/* --- files ------------------------------------------------------------------------------------------- */

/* The module of a line "from MODULE import *"; NULL: it is another line. */
static char *
imported (const char *line)
{
  line += strspn (line, " \t");
  if (!g_str_has_prefix (line, "from "))
    return NULL;
  line += strlen ("from ") + strspn (line + strlen ("from "), " ");
  gsize n = strspn (line, NAME_CHARS ".");
  const char *rest = line + n;
  return g_str_has_prefix (rest, " import *") ? g_strndup (line, n) : NULL;
}

/* What a text imports, each in front of it: "configs._base_.models.internlm2_7B" by its file, from the end of
 * its path. */
static void
add_text (GString *to, const char *text, const char *path, guint depth, const ImportFiles *files,
          LsImport *import)
{
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  for (char **line = lines; *line; line++) {
    gsize n;
    g_autofree char *module = imported (*line), *base = NULL,
                    *front = module ? g_strdelimit (g_strdup (module), ".", '/') : NULL,
                    *file = front ? g_strconcat (front, ".py", NULL) : NULL;
    const char *at = depth > 0 ? file : NULL;
    while (at && !(base = launch_file_of (files, at, &n)))
      at = strchr (at, '/') ? strchr (at, '/') + 1 : NULL;
    if (base)
      add_text (to, base, at, depth - 1, files, import);
    else if (module)
      import_unknown (import, "what %s sets: it is imported, and not here", module);
  }
  g_string_append_printf (to, LS_PYTHON_FILE "%s\n%s\n", path, text);
}

/* --- functions --------------------------------------------------------------------------------------- */

const char *
python_pick_function (const LsPython *python, const cJSON *of, const char *asked, const char *path,
                      LsDiagList *diags)
{
  const GPtrArray *functions = ls_python_found (python)->functions;
  const char *noun = reads_text (of, "noun");
  for (guint i = 0; i < functions->len; i++)
    if (g_strcmp0 (asked, functions->pdata[i]) == 0 || (!asked && functions->len == 1))
      return functions->pdata[i];
  g_autofree char *names = ls_joined (functions, 0, ", "),
                  *hint = asked
      ? NULL
      : g_strdup_printf ("say which after its name: %s:%s=NAME", path, reads_text (of, "returns"));
  ls_diag_add (diags, LS_ERROR_INPUT, path, 0, 0, NULL, NULL, hint,
               asked ? "it has no %s %s; it has %s" : "it has several %ss%s: %s",
               noun ? noun : "configuration", asked ? asked : "", names);
  return NULL;
}

/* --- what is told ------------------------------------------------------------------------------------- */

void
python_tell_passed (LsImport *import, const char *function, const GPtrArray *passed)
{
  g_autoptr (GString) places = g_string_new (NULL);
  for (guint i = 0; i < MIN (passed->len, MAX_PASSED); i++)
    g_string_append_printf (places, "%s%s", i > 0 ? ", " : "", (const char *) passed->pdata[i]);
  if (passed->len > MAX_PASSED)
    g_string_append_printf (places, ", and %u more", passed->len - MAX_PASSED);
  if (passed->len > 0)
    import_unknown (import, "what %s does besides is not followed: %s", function, places->str);
}

/* --- names --------------------------------------------------------------------------------------------- */

/* By a function that returns all that is set, behind the text: by lines "model = dict (", of small letters,
 * as capitals are constants. */
cJSON *
python_names_of (const ImportFiles *files, const char *own, gsize n_own, const char *path, LsImport *import,
                 LsDiagList *diags)
{
  g_autofree char *whole = g_strndup (own, n_own);
  g_autoptr (GString) text = g_string_new (NULL);
  add_text (text, whole, path, MAX_BASES, files, import);
  g_auto (GStrv) lines = g_strsplit (text->str, "\n", -1);
  g_autoptr (GHashTable) seen = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  g_string_append (text, "\ndef " JOB " ():\n    return dict (");
  for (char **line = lines; *line && g_hash_table_size (seen) < MAX_NAMES; line++) {
    const gsize n = g_ascii_islower (**line) ? strspn (*line, NAME_CHARS) : 0;
    const char *mark = *line + n + strspn (*line + n, " ");
    g_autofree char *name = g_strndup (*line, n);
    bool sets = n > 0 && *mark == '=' && mark[1] != '=';
    if (sets && g_hash_table_add (seen, g_strdup (name)))
      g_string_append_printf (text, "%s=%s, ", name, name);
  }
  g_string_append (text, ")\n");
  g_autoptr (LsPython) python = ls_python_new (text->str, text->len, path, diags);
  if (!python)
    return NULL;
  cJSON *tree = ls_python_value (python, JOB, NULL, diags);
  python_tell_passed (import, path, ls_python_found (python)->file_passed);
  launch_python_environment (python, false, import);
  return tree;
}

/* Whether an object is what a function gives of which no member is known: not an instance of a class, which
 * has a capital letter. */
static bool
is_open_call (const cJSON *item)
{
  const cJSON *made = cJSON_GetObjectItemCaseSensitive (item, "()");
  const char *name = cJSON_IsString (made) ? made->valuestring : NULL,
             *dot = name ? strrchr (name, '.') : NULL;
  for (const cJSON *part = item->child; part; part = part->next)
    if (strcmp (part->string, "()") != 0 && !g_ascii_isdigit (*part->string))
      return false;
  return name && strcmp (name, "dict") != 0 && !g_ascii_isupper (dot ? dot[1] : *name);
}

/* "max(...)" in the place of a member is a value that is not said here. */
void
python_names_forget_calls (cJSON *tree)
{
  for (cJSON *item = tree->child, *next; item; item = next) {
    next = item->next;
    if (item->string && (strcmp (item->string, "()") == 0 || g_ascii_isdigit (*item->string)))
      cJSON_Delete (cJSON_DetachItemViaPointer (tree, item));
    else if (cJSON_IsObject (item) && is_open_call (item)) {
      const char *made = cJSON_GetObjectItemCaseSensitive (item, "()")->valuestring;
      g_autofree char *text = ls_shell_has_hole (made)
          ? g_strdup (made)
          : g_strdup_printf ("%c%s(...)%c", LS_SHELL_HOLE, made, LS_SHELL_HOLE_END);
      cJSON *hole = cJSON_CreateString (text);
      hole->string = g_strdup (item->string);
      cJSON_ReplaceItemViaPointer (tree, item, hole);
    } else if (cJSON_IsObject (item))
      python_names_forget_calls (item);
  }
}

#define MAX_FILES 64

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

/* Where it lies as in the program: beside the folders of the file that names it. parts: text. */
static char *
find_joined (const char *module, const char *from, gsize *ret_n, char **ret_path, gpointer parts)
{
  g_autoptr (LsDiagList) none = ls_diag_list_new ();
  *ret_path = launch_has_part (module, ".", parts) ? python_find_module (from, module) : NULL;
  return *ret_path ? ls_read_file (*ret_path, LAUNCH_MAX_BESIDE, ret_n, none) : NULL;
}

/* What functions of the program do that are not here. */
static bool
add_known (LsPython *python, const cJSON *known, GPtrArray *texts, LsDiagList *diags)
{
  const cJSON *one, *line;
  bool ok = true;
  cJSON_ArrayForEach (one, known)
  {
    GString *text = g_string_new (NULL);
    cJSON_ArrayForEach (line, one)
    {
      g_string_append_printf (text, "%s\n", cJSON_IsString (line) ? line->valuestring : "");
    }
    gsize n = text->len;
    char *whole = g_string_free (text, FALSE);
    g_ptr_array_add (texts, whole);
    ok = ok && ls_python_add (python, whole, n, one->string, diags);
  }
  return ok;
}

LsPython *
python_join (const cJSON *of, const ImportFiles *files, const ImportFile *first, GPtrArray *texts,
             LsImport *import, LsDiagList *diags)
{
  g_autoptr (GPtrArray) paths = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (LsPython) python = NULL;
  const ImportFile *file = files->files;
  bool ok = true;
  while (file + 1 < files->files + files->n && file->text != first->text)
    file++;
  for (; file < files->files + files->n && ok; file++) {
    import_use_file (file);
    ok = python ? ls_python_add (python, file->text, file->n, file->path, diags)
                : (python = ls_python_new (file->text, file->n, file->path, diags)) != NULL;
    g_ptr_array_add (paths, g_strdup (file->path));
  }
  guint n_given = paths->len;
  ok = ok
      && python_add_imported (python, paths, texts, MAX_FILES, find_joined,
                              (gpointer) reads_text (of, "joins"), diags)
      && add_known (python, reads_node (of, "functions"), texts, diags);
  for (guint i = n_given; i < paths->len; i++)
    g_ptr_array_add (import->made.files, g_strdup (paths->pdata[i]));
  return ok ? g_steal_pointer (&python) : NULL;
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
