#include "io/gnuplot.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <string.h>

#include <lockstep/error.h>

char *
ls_gnuplot_quote (const char *text)
{
  GString *quoted = g_string_new ("'");
  for (const char *c = text; *c; c++) {
    if (*c == '\'')
      g_string_append_c (quoted, '\'');
    g_string_append_c (quoted, (unsigned char) *c < 0x20 ? ' ' : *c);
  }
  g_string_append_c (quoted, '\'');
  return g_string_free (quoted, FALSE);
}

static gboolean
spawn (const char *script, const char *output, GError **error)
{
  g_autofree char *folder = g_path_get_dirname (script), *name = g_path_get_basename (script);
  g_autofree char *quoted = ls_gnuplot_quote (output);
  g_autofree char *set_output = g_strconcat ("output = ", quoted, NULL);
  const char *argv[] = { "gnuplot", "-e", set_output, name, NULL };
  g_autofree char *messages = NULL;
  g_autoptr (GError) failure = NULL;
  int status;

  if (!g_spawn_sync (folder, (char **) argv, NULL, G_SPAWN_SEARCH_PATH | G_SPAWN_STDOUT_TO_DEV_NULL, NULL, NULL, NULL,
                     &messages, &status, &failure)) {
    if (g_error_matches (failure, G_SPAWN_ERROR, G_SPAWN_ERROR_NOENT))
      g_set_error (error, LS_ERROR, LS_ERROR_IO, "gnuplot is not installed (Debian package gnuplot-nox); %s can be drawn later",
                   script);
    else
      g_set_error (error, LS_ERROR, LS_ERROR_IO, "gnuplot did not start: %s", failure->message);
    return FALSE;
  }
  if (!g_spawn_check_wait_status (status, NULL)) {
    g_strstrip (messages);
    g_set_error (error, LS_ERROR, LS_ERROR_IO, "gnuplot failed on %s: %s", script, messages);
    return FALSE;
  }
  return TRUE;
}

/* "timeline.svg" becomes "timeline.part.svg": the type of a picture is that of
 * its name. */
static char *
temporary_name (const char *picture)
{
  g_autofree char *name = g_path_get_basename (picture);
  char *dot = strrchr (name, '.');
  if (!dot)
    return g_strconcat (name, ".part", NULL);
  *dot = '\0';
  return g_strconcat (name, ".part.", dot + 1, NULL);
}

gboolean
ls_gnuplot_run (const char *script, const char *picture, GError **error)
{
  g_autofree char *name = temporary_name (picture), *folder = g_path_get_dirname (picture);
  g_autofree char *temporary = g_build_filename (folder, name, NULL);
  if (!spawn (script, name, error)) {
    g_unlink (temporary);
    return FALSE;
  }
  if (g_rename (temporary, picture) != 0) {
    g_set_error (error, LS_ERROR, LS_ERROR_IO, "%s: %s", picture, g_strerror (errno));
    g_unlink (temporary);
    return FALSE;
  }
  return TRUE;
}
