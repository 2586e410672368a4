/* Files of a package in Python that one of its files imports from: they are given too, or lie as in a
 * checkout. */
#include <string.h>

#include "data/launch/launch_script.h"
#include "data/launch/python/python_names.h"
#include "data/text/read_file.h"

#define MAX_FILES 64

/* The folder above one, above where we are too; NULL: there is none. The caller frees it. */
static char *
folder_above (const char *folder)
{
  g_autofree char *name = g_path_get_basename (folder),
                  *whole = *name == '.' ? g_canonicalize_filename (folder, NULL) : g_strdup (folder),
                  *above = g_path_get_dirname (whole);
  return strcmp (above, whole) != 0 ? g_steal_pointer (&above) : NULL;
}

char *
python_find_module (const char *path, const char *module)
{
  g_auto (GStrv) parts = g_strsplit (module, ".", -1);
  g_autofree char *name = g_strjoinv ("/", parts), *file = g_strconcat (name, ".py", NULL),
                  *folder = g_path_get_dirname (path);
  while (folder && *name) {
    g_autofree char *whole = g_build_filename (folder, file, NULL),
                    *init = g_build_filename (folder, name, "__init__.py", NULL),
                    *parent = folder_above (folder);
    if (g_file_test (whole, G_FILE_TEST_IS_REGULAR))
      return g_steal_pointer (&whole);
    if (g_file_test (init, G_FILE_TEST_IS_REGULAR))
      return g_steal_pointer (&init);
    g_free (folder);
    folder = g_steal_pointer (&parent);
  }
  return NULL;
}

/* Whether a part of "a.b.c" is one of these. */
static bool
has_part (const char *module, char *const *parts)
{
  g_auto (GStrv) all = g_strsplit (module, ".", -1);
  bool has_one = false;
  for (; *parts; parts++)
    has_one = has_one || g_strv_contains ((const char *const *) all, *parts);
  return has_one;
}

/* Files that those which are given import from, where they lie as in the program: beside the folders of the
 * file that names them. */
static bool
add_imported (LsPython *python, const PythonJoin *join, GPtrArray *paths, GPtrArray *texts, LsDiagList *diags)
{
  g_auto (GStrv) parts = g_strsplit (join->parts, " ", -1);
  for (guint i = 0; i < paths->len && i < MAX_FILES; i++) {
    const GPtrArray *modules = ls_python_imports (python, i);
    for (guint k = 0; k < modules->len; k++) {
      gsize n;
      const char *module = modules->pdata[k];
      g_autofree char *path = has_part (module, parts) ? python_find_module (paths->pdata[i], module) : NULL;
      if (!path || g_ptr_array_find_with_equal_func (paths, path, g_str_equal, NULL))
        continue;
      char *text = ls_read_file (path, LAUNCH_MAX_BESIDE, &n, diags);
      if (!text)
        return false;
      g_ptr_array_add (texts, text);
      g_ptr_array_add (join->import->files, g_strdup (path));
      g_ptr_array_add (paths, g_steal_pointer (&path));
      if (!ls_python_add (python, text, n, paths->pdata[paths->len - 1], diags))
        return false;
    }
  }
  return true;
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
python_join (const PythonJoin *join, GPtrArray *texts, LsDiagList *diags)
{
  const ImportFiles *files = join->files;
  g_autoptr (GPtrArray) paths = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (LsPython) python = NULL;
  bool ok = true;
  for (guint i = join->first; i < files->n && ok; i++) {
    const ImportFile *file = &files->files[i];
    import_use_file (file);
    ok = i == join->first ? (python = ls_python_new (file->text, file->n, file->path, diags)) != NULL
                          : ls_python_add (python, file->text, file->n, file->path, diags);
    g_ptr_array_add (paths, g_strdup (file->path));
  }
  ok = ok && add_imported (python, join, paths, texts, diags)
      && add_known (python, join->known, texts, diags);
  return ok ? g_steal_pointer (&python) : NULL;
}
