/* Files beside those that are read: what a job names, what a text begins with. */
#include <string.h>

#include <lockstep/error.h>

#include "data/launch/launch_script.h"
#include "data/text/read_file.h"

bool
launch_script_refuse (const ImportFile *file, LsDiagList *diags)
{
  static const char *const ends[] = { ".sh", ".bash", ".slurm", ".sbatch", ".sub" };
  bool is_script = g_str_has_prefix (file->text, "#!");
  for (guint i = 0; i < G_N_ELEMENTS (ends); i++)
    is_script = is_script || g_str_has_suffix (file->path, ends[i]);
  if (is_script)
    ls_diag_add (diags, LS_ERROR_INPUT, file->path, 0, 0, NULL, NULL, NULL,
                 "a script, but no command of it launches a program that is read");
  return is_script;
}

char *
launch_file_of (const ImportFiles *files, const char *name, gsize *ret_n)
{
  g_autofree char *base = g_path_get_basename (name), *folder = g_path_get_dirname (files->files[0].path),
                  *path = g_build_filename (folder, base, NULL);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  const char *written = g_hash_table_lookup (files->written, base);
  if (written) {
    *ret_n = strlen (written);
    return g_strdup (written);
  }
  for (guint i = 1; i < files->n; i++)
    if (g_str_has_suffix (files->files[i].path, base)) {
      *ret_n = files->files[i].n;
      return g_strndup (files->files[i].text, files->files[i].n);
    }
  return g_file_test (path, G_FILE_TEST_IS_REGULAR) ? ls_read_file (path, LAUNCH_MAX_BESIDE, ret_n, diags)
                                                    : NULL;
}

bool
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
