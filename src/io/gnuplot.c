#include "io/gnuplot.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <lockstep/error.h>

#include "io/write_file.h"

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

gboolean
ls_gnuplot_check (GError **error)
{
  g_autofree char *program = g_find_program_in_path ("gnuplot");
  if (!program)
    g_set_error (error, LS_ERROR, LS_ERROR_IO,
                 "gnuplot, which draws the picture, is not installed (Debian package gnuplot-nox)");
  return program != NULL;
}

/* All that can be read from fd, which is closed. */
static char *
drain (int fd)
{
  GString *text = g_string_new (NULL);
  char piece[4096];
  ssize_t n;
  while ((n = read (fd, piece, sizeof piece)) > 0 || (n < 0 && errno == EINTR))
    if (n > 0)
      g_string_append_len (text, piece, n);
  close (fd);
  g_strstrip (text->str);
  return g_string_free (text, FALSE);
}

static gboolean
succeeds (GPid child)
{
  int status;
  while (waitpid (child, &status, 0) < 0)
    if (errno != EINTR)
      return FALSE;
  return WIFEXITED (status) && WEXITSTATUS (status) == 0;
}

/* An LsWriteFunc; data is the path of the script. */
static gboolean
draw (FILE *out, void *data, GError **error)
{
  const char *script = data;
  g_autofree char *folder = g_path_get_dirname (script), *name = g_path_get_basename (script);
  g_autofree char *here = g_strconcat ("./", name, NULL); /* not an option, whatever it begins with */
  const char *argv[] = { "gnuplot", "-e", "to_stdout = 1", here, NULL };
  g_autoptr (GError) failure = NULL;
  GPid child;
  int complaints;
  if (!g_spawn_async_with_pipes_and_fds (folder, argv, NULL, G_SPAWN_SEARCH_PATH | G_SPAWN_DO_NOT_REAP_CHILD, NULL, NULL,
                                         -1, fileno (out), -1, NULL, NULL, 0, &child, NULL, NULL, &complaints,
                                         &failure)) {
    g_set_error (error, LS_ERROR, LS_ERROR_IO, "gnuplot did not start: %s", failure->message);
    return FALSE;
  }
  g_autofree char *messages = drain (complaints);
  if (!succeeds (child) || lseek (fileno (out), 0, SEEK_END) == 0) {
    g_set_error (error, LS_ERROR, LS_ERROR_IO, "gnuplot failed on %s: %s", script, *messages ? messages : "it drew nothing");
    return FALSE;
  }
  return TRUE;
}

gboolean
ls_gnuplot_run (const char *script, const char *picture, GError **error)
{
  return ls_gnuplot_check (error) && ls_write_file (picture, draw, (void *) script, error);
}
