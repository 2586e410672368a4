#include "io/write_file.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
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

/* --- where it goes ------------------------------------------------------------ */

static gboolean
check_name (const char *path, GError **error)
{
  g_autofree char *shown = g_strdup (path);
  gboolean is_plain = TRUE;
  for (char *c = shown; *c; c++)
    if (g_ascii_iscntrl (*c)) {
      *c = '?';
      is_plain = FALSE;
    }
  if (is_plain && *path)
    return TRUE;
  g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "\"%s\": expected the name of a file%s", shown,
               *path ? " without control characters" : "");
  return FALSE;
}

/* What a chain of links ends in, which need not exist. The caller has made sure
 * that the chain is finite. */
static char *
follow_links (const char *path)
{
  char *at = g_strdup (path);
  for (char *target; (target = g_file_read_link (at, NULL));) {
    g_autofree char *folder = g_path_get_dirname (at);
    g_free (at);
    at = g_path_is_absolute (target) ? g_strdup (target) : g_build_filename (folder, target, NULL);
    g_free (target);
  }
  return at;
}

static gboolean
check_access (const char *path, const char *subject, int mode, GError **error)
{
  return faccessat (AT_FDCWD, subject, mode, AT_EACCESS) == 0 || io_error (path, errno, error);
}

/* Where a regular file is or will be, newly allocated. NULL: path is something
 * else, to be written directly. */
static gboolean
find_place (const char *path, char **ret_place, GError **error)
{
  struct stat info;
  gboolean exists = stat (path, &info) == 0;
  if (!exists && errno != ENOENT)
    return io_error (path, errno, error);
  if (exists ? S_ISDIR (info.st_mode) : g_str_has_suffix (path, "/"))
    return io_error (path, EISDIR, error);
  if (exists && !check_access (path, path, W_OK, error))
    return FALSE;
  if (exists && !S_ISREG (info.st_mode)) {
    *ret_place = NULL;
    return TRUE;
  }
  g_autofree char *place = follow_links (path), *folder = g_path_get_dirname (place);
  if (!check_access (path, folder, W_OK | X_OK, error))
    return FALSE;
  *ret_place = g_steal_pointer (&place);
  return TRUE;
}

gboolean
ls_write_file_check (const char *path, GError **error)
{
  g_autofree char *place = NULL;
  return check_name (path, error) && find_place (path, &place, error);
}

gboolean
ls_write_file (const char *path, LsWriteFunc write, void *data, GError **error)
{
  g_autofree char *place = NULL;
  if (!check_name (path, error) || !find_place (path, &place, error))
    return FALSE;
  return place ? write_beside (place, write, data, error) : write_directly (path, write, data, error);
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
