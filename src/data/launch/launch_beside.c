/* Files next to those that are read, which a command names; what a text or a name begins with, has and ends
 * in. */
#include <lockstep/error.h>
#include <string.h>

#include "base/list.h"
#include "data/launch/launch_script.h"
#include "data/launch/program/program_map.h"
#include "data/text/read_file.h"

#define MAX_ABOVE 4 /* folders */

char *
launch_read_beside (const ImportFiles *files, const char *name, bool is_of_job, gsize *ret_n)
{
  g_autofree char *folder = g_path_get_dirname (files->files[0].path),
                  *path = g_build_filename (folder, name, NULL);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  char *text = g_file_test (path, G_FILE_TEST_IS_REGULAR)
      ? ls_read_file (path, LAUNCH_MAX_BESIDE, ret_n, diags)
      : NULL;
  const char *own = g_str_has_prefix (path, "./") ? path + 2 : path;
  if (text && is_of_job && !g_ptr_array_find_with_equal_func (files->found, own, g_str_equal, NULL))
    g_ptr_array_add (files->found, g_strdup (own)); /* it is told as one of the job's */
  return text;
}

char *
launch_read_above (const ImportFiles *files, const char *name, bool is_of_job, gsize *ret_n)
{
  char *text = NULL;
  g_autoptr (GString) path = g_string_new (name);
  for (guint i = 0; i < MAX_ABOVE && !text; i++) {
    g_string_prepend (path, "../");
    text = launch_read_beside (files, path->str, is_of_job, ret_n);
  }
  return text;
}

/* is_of_job: what is found is read for the job, not to see what it is. */
static char *
find_file (const ImportFiles *files, const char *name, bool is_of_job, gsize *ret_n)
{
  g_autofree char *base = g_path_get_basename (name);
  const char *written = g_hash_table_lookup (files->written, base);
  if (written) {
    *ret_n = strlen (written);
    return g_strdup (written);
  }
  for (guint i = 1; i < files->n; i++)
    if (g_str_has_suffix (files->files[i].path, base)) {
      if (is_of_job)
        import_use_file (&files->files[i]);
      *ret_n = files->files[i].n;
      return g_strndup (files->files[i].text, files->files[i].n);
    }
  bool can_be_above = strchr (name, '/') && *name != '/' && !ls_shell_has_hole (name);
  char *text = launch_read_beside (files, name, is_of_job, ret_n);
  text = text || !can_be_above ? text : launch_read_above (files, name, is_of_job, ret_n);
  return text ? text : launch_read_beside (files, base, is_of_job, ret_n);
}

char *
launch_file_of (const ImportFiles *files, const char *name, gsize *ret_n)
{
  return find_file (files, name, true, ret_n);
}

bool
launch_refuse_config (const char *name, const LsImport *import, LsDiagList *diags)
{
  ls_diag_add (diags, LS_ERROR_INPUT, import->made.path, 0, 0, NULL, NULL, "give it too, after the script",
               "a script of %s, whose configuration%s%s is not here", import->made.program, name ? " " : "",
               name ? name : "");
  return false;
}

gboolean
launch_has_line (const char *text, const char *start)
{
  for (const char *p = strstr (text, start); p; p = strstr (p + 1, start)) {
    const char *q = p;
    while (q > text && (q[-1] == ' ' || q[-1] == '\t'))
      q--;
    if (q == text || q[-1] == '\n')
      return true;
  }
  return false;
}

bool
launch_has_any_line (const char *text, const char *starts, const char *separator)
{
  return program_any_word (starts, separator, launch_has_line, text);
}

bool
launch_has_end (const char *name, const char *ends)
{
  return program_any_word (ends, " ", g_str_has_suffix, name);
}

bool
launch_is_yaml (const char *name)
{
  return launch_has_end (name, ".yaml .yml");
}

bool
launch_names_file (const ImportFiles *files, char *const *words, guint n, const char *marks)
{
  for (guint i = 0; i < n; i++) {
    const char *equals = words[i][0] == '-' ? strchr (words[i], '=') : NULL,
               *name = equals ? equals + 1 : words[i];
    gsize size;
    bool is_json = g_str_has_suffix (name, ".json");
    g_autofree char *text = launch_is_yaml (name) || is_json ? find_file (files, name, false, &size) : NULL;
    if (text && launch_has_any_line (text, marks, " "))
      return true;
  }
  return false;
}

bool
launch_has_part (const char *name, const char *separators, const char *parts)
{
  g_auto (GStrv) words = g_strsplit_set (name, separators, -1);
  for (char **word = words; *word; word++)
    if (ls_is_one_of (*word, parts))
      return true;
  return false;
}
