/* data/traces/captured_write.c — the folder of a captured step. */
#include "data/traces/captured_trace.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <string.h>

#include <lockstep/error.h>

#include "data/text/json_out.h"
#include "data/text/write_file.h"

static gboolean
put_bytes (FILE *out, gpointer bytes, GError **error)
{
  (void) error;
  fwrite (g_bytes_get_data (bytes, NULL), 1, g_bytes_get_size (bytes),
          out); /* fails: seen by who closes it */
  return TRUE;
}

static char *
name_of (const LsCapturedFile *f)
{
  return g_strdup_printf ("rank-%u.json.gz", f->rank);
}

static char *
manifest (uint32_t world, const char *gpu, const char *roles, const GArray *files)
{
  LsJsonOut w;
  ls_json_out_open_as (&w, "captured-job");
  ls_json_out_uint (&w, "world", world);
  ls_json_out_string (&w, "gpu", gpu);
  ls_json_out_begin_array (&w, "files");
  for (guint i = 0; i < files->len; i++) {
    const LsCapturedFile *f = &g_array_index (files, LsCapturedFile, i);
    g_autofree char *name = name_of (f);
    ls_json_out_begin_object (&w, NULL);
    ls_json_out_uint (&w, "rank", f->rank);
    ls_json_out_string (&w, "file", name);
    ls_json_out_end_object (&w);
  }
  ls_json_out_end_array (&w);
  ls_json_out_null (&w, "roles");
  char *text = ls_json_out_close (&w);
  char *end = roles ? g_strrstr (text, "null") : NULL; /* roles are JSON already */
  if (end) {
    g_autofree char *head = g_strndup (text, (gsize) (end - text));
    char *all = g_strconcat (head, roles, end + strlen ("null"), NULL);
    g_free (text);
    text = all;
  }
  return text;
}

gboolean
ls_captured_trace_write (const char *folder, uint32_t world, const char *gpu, const char *roles,
                         const GArray *files, GError **error)
{
  if (g_mkdir (folder, 0777) != 0) {
    g_set_error (error, LS_ERROR, LS_ERROR_IO, "%s: %s; expected the name of a new folder", folder,
                 g_strerror (errno));
    return FALSE;
  }
  g_autofree char *text = manifest (world, gpu, roles, files),
                  *path = g_build_filename (folder, LS_CAPTURED_MANIFEST, NULL);
  guint n = 0;
  gboolean ok = TRUE;
  for (; ok && n < files->len; n++) {
    const LsCapturedFile *f = &g_array_index (files, LsCapturedFile, n);
    g_autofree char *name = name_of (f), *place = g_build_filename (folder, name, NULL);
    ok = ls_write_file (place, put_bytes, f->recorded, error);
  }
  if (ok && ls_write_text (path, text, error))
    return TRUE;
  for (guint i = 0; i < n; i++) {
    g_autofree char *name = name_of (&g_array_index (files, LsCapturedFile, i)),
                    *place = g_build_filename (folder, name, NULL);
    g_remove (place);
  }
  g_rmdir (folder);
  return FALSE;
}

bool
ls_captured_trace_is (const char *folder)
{
  g_autofree char *path = g_build_filename (folder, LS_CAPTURED_MANIFEST, NULL);
  return g_file_test (path, G_FILE_TEST_EXISTS);
}
