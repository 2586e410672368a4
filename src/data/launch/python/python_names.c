/* What a configuration in Python sets: names at the start of its lines, and those of files that it imports
 * all names from,
 *
 *     with read_base():
 *         from configs._base_.models.internlm2_7B import *
 *
 * which hold where it sets none of its own (Config.from_file of mmengine, and of InternEvo's
 * internlm/core/context/parallel_context.py). */
#include "data/launch/python/python_names.h"

#include <lockstep/error.h>
#include <string.h>

#include "data/launch/launch_script.h"
#include "data/python/python.h"
#include "data/shell/shell.h"

#define MAX_BASES  4 /* files that import others */
#define MAX_NAMES  200
#define MAX_PASSED 5 /* places that are named */
#define JOB        "lockstep_job"
#define NAME_CHARS G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "_"

/* --- files ------------------------------------------------------------------------------------------- */

/* "configs._base_.models.internlm2_7B": its file, from the end of its path, and that path; NULL: it is not
 * here. */
static char *
base_of (const ImportFiles *files, const char *module, char **ret_path)
{
  g_autofree char *path = g_strdelimit (g_strdup (module), ".", '/'), *file = g_strconcat (path, ".py", NULL);
  for (const char *at = file; at; at = strchr (at, '/')) {
    at += *at == '/';
    gsize n;
    char *text = launch_file_of (files, at, &n);
    if (text) {
      *ret_path = g_strdup (at);
      return text;
    }
  }
  return NULL;
}

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

/* The text that is read, and of which files its lines are. */
typedef struct {
  const ImportFiles *files;
  LsImport *import;
  GString *text;
  guint n_lines;
  GArray *firsts;   /* of guint: the first line of each file */
  GPtrArray *paths; /* char * */
} Pasted;

/* What a text imports, each in front of it. */
static void
add_text (Pasted *to, const char *text, const char *path, guint depth)
{
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  for (char **line = lines; *line; line++) {
    g_autofree char *module = imported (*line), *found = NULL,
                    *base = module && depth > 0 ? base_of (to->files, module, &found) : NULL;
    if (base)
      add_text (to, base, found, depth - 1);
    else if (module)
      import_unknown (to->import, "what %s sets: it is imported, and not here", module);
  }
  guint first = to->n_lines + 1;
  g_array_append_val (to->firsts, first);
  g_ptr_array_add (to->paths, g_strdup (path));
  for (char **line = lines; *line; line++, to->n_lines++)
    g_string_append_printf (to->text, "%s\n", *line);
}

/* --- functions --------------------------------------------------------------------------------------- */

const char *
python_pick_function (const LsPython *python, const PythonPick *pick, const char *asked, const char *path,
                      LsDiagList *diags)
{
  const GPtrArray *functions = ls_python_found (python)->functions;
  g_autoptr (GString) names = g_string_new (NULL);
  for (guint i = 0; i < functions->len; i++) {
    if (g_strcmp0 (asked, functions->pdata[i]) == 0)
      return functions->pdata[i];
    g_string_append_printf (names, "%s%s", i > 0 ? ", " : "", (const char *) functions->pdata[i]);
  }
  if (!asked && functions->len == 1)
    return functions->pdata[0];
  g_autofree char *hint = g_strdup_printf ("say which after its name: %s:%s=NAME", path, pick->key);
  ls_diag_add (diags, LS_ERROR_INPUT, path, 0, 0, NULL, NULL, asked ? NULL : hint,
               asked ? "it has no %s %s; it has %s" : "it has several %ss%s: %s", pick->what,
               asked ? asked : "", names->str);
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

bool
python_refuse_program (const LsPython *python, const char *path, const char *program, LsDiagList *diags)
{
  const char *place = ls_python_found (python)->program;
  g_autofree char *hint
      = g_strdup_printf ("run it, by \"python -m lockstep.dump %s MODULE:FUNCTION > job.json\", and "
                         "import that, or by \"lockstep capture -- COMMAND\"",
                         program);
  if (place)
    ls_diag_add (diags, LS_ERROR_UNSUPPORTED, path, 0, 0, NULL, NULL, hint,
                 "it computes its configuration: %s", place);
  return place != NULL;
}

/* --- names --------------------------------------------------------------------------------------------- */

/* "model = dict (": of small letters, as capitals are constants; NULL: the line sets nothing. */
static char *
name_set (const char *line)
{
  gsize n = g_ascii_islower (*line) ? strspn (line, NAME_CHARS) : 0, blanks = strspn (line + n, " ");
  return n > 0 && line[n + blanks] == '=' && line[n + blanks + 1] != '=' ? g_strndup (line, n) : NULL;
}

/* A function that returns all that is set, behind the text. */
static void
add_job (GString *text)
{
  g_auto (GStrv) lines = g_strsplit (text->str, "\n", -1);
  g_autoptr (GHashTable) seen = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  g_string_append (text, "\ndef " JOB " ():\n    return dict (");
  for (char **line = lines; *line && g_hash_table_size (seen) < MAX_NAMES; line++) {
    char *name = name_set (*line);
    if (name && !g_hash_table_contains (seen, name))
      g_string_append_printf (text, "%s=%s, ", name, name);
    if (name)
      g_hash_table_add (seen, name);
  }
  g_string_append (text, ")\n");
}

bool
python_names_is_open_call (const cJSON *item)
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
static void
open_call (cJSON *tree, cJSON *item)
{
  const char *made = cJSON_GetObjectItemCaseSensitive (item, "()")->valuestring;
  g_autofree char *name = g_strdup (item->string),
                  *text = ls_shell_has_hole (made)
      ? g_strdup (made)
      : g_strdup_printf ("%c%s(...)%c", LS_SHELL_HOLE, made, LS_SHELL_HOLE_END);
  cJSON_ReplaceItemInObjectCaseSensitive (tree, name, cJSON_CreateString (text));
}

void
python_names_forget_calls (cJSON *tree)
{
  for (cJSON *item = tree->child, *next; item; item = next) {
    next = item->next;
    if (item->string && (strcmp (item->string, "()") == 0 || g_ascii_isdigit (*item->string)))
      cJSON_Delete (cJSON_DetachItemViaPointer (tree, item));
    else if (cJSON_IsObject (item) && python_names_is_open_call (item))
      open_call (tree, item);
    else if (cJSON_IsObject (item))
      python_names_forget_calls (item);
  }
}

cJSON *
python_names_of (const ImportFiles *files, const char *own, gsize n, const char *name, LsImport *import,
                 LsDiagList *diags)
{
  g_autofree char *whole = g_strndup (own, n);
  g_autoptr (GString) text = g_string_new (NULL);
  g_autoptr (GArray) firsts = g_array_new (FALSE, FALSE, sizeof (guint));
  g_autoptr (GPtrArray) paths = g_ptr_array_new_with_free_func (g_free);
  Pasted pasted = { files, import, text, 0, firsts, paths };
  add_text (&pasted, whole, name, MAX_BASES);
  add_job (text);
  g_autoptr (LsPython) python = ls_python_new (text->str, text->len, name, diags);
  if (!python)
    return NULL;
  for (guint i = 0; i < paths->len; i++)
    ls_python_paste (python, g_array_index (firsts, guint, i), paths->pdata[i], 1);
  cJSON *tree = ls_python_value (python, JOB, NULL, diags);
  python_tell_passed (import, name, ls_python_found (python)->file_passed);
  launch_python_environment (python, false, import);
  return tree;
}
