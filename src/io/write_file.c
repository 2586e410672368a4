#include "io/write_file.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <lockstep/error.h>

static gboolean
io_error (const char *path, int code, GError **error)
{
  g_set_error (error, LS_ERROR, LS_ERROR_IO, "%s: %s", path, g_strerror (code));
  return FALSE;
}

/* As open() with the user's umask would make a new file, unlike mkstemp(). */
static FILE *
open_temporary (char *temporary)
{
  int fd = g_mkstemp_full (temporary, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0)
    return NULL;
  FILE *out = fdopen (fd, "w");
  if (!out) {
    int code = errno;
    close (fd);
    g_unlink (temporary);
    errno = code;
  }
  return out;
}

static gboolean
close_file (FILE *out, const char *path, GError **error)
{
  gboolean ok = !ferror (out);
  errno = ok ? 0 : EIO;
  if (fclose (out) != 0 || !ok)
    return io_error (path, errno, error);
  return TRUE;
}

static gboolean
write_directly (const char *path, LsWriteFunc write, void *data, GError **error)
{
  FILE *out = g_fopen (path, "we");
  if (!out)
    return io_error (path, errno, error);
  gboolean is_written = write (out, data, error);
  return close_file (out, path, is_written ? error : NULL) && is_written;
}

static gboolean
write_beside (const char *path, LsWriteFunc write, void *data, GError **error)
{
  g_autofree char *temporary = g_strconcat (path, ".XXXXXX", NULL);
  FILE *out = open_temporary (temporary);
  if (!out)
    return io_error (path, errno, error);

  gboolean is_written = write (out, data, error);
  gboolean ok = close_file (out, path, is_written ? error : NULL) && is_written;
  if (ok && g_rename (temporary, path) != 0)
    ok = io_error (path, errno, error);
  if (!ok)
    g_unlink (temporary);
  return ok;
}

gboolean
ls_write_file (const char *path, LsWriteFunc write, void *data, GError **error)
{
  struct stat info;
  if (stat (path, &info) == 0 && !S_ISREG (info.st_mode))
    return S_ISDIR (info.st_mode) ? io_error (path, EISDIR, error) : write_directly (path, write, data, error);
  char *resolved = realpath (path, NULL); /* NULL: nothing there yet */
  gboolean ok = write_beside (resolved ? resolved : path, write, data, error);
  free (resolved);
  return ok;
}

static gboolean
write_string (FILE *out, void *data, GError **error)
{
  fputs (data, out);
  return TRUE;
}

gboolean
ls_write_text (const char *path, const char *text, GError **error)
{
  return ls_write_file (path, write_string, (void *) text, error);
}
