#define _GNU_SOURCE /* O_TMPFILE */

#include "data/text/write_file.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/diag.h"

static gboolean
io_error (const char *path, int code, GError **error)
{
  return ls_fail (error, LS_ERROR_IO, "%s: %s", path, g_strerror (code));
}

/* ---- a file that is not there yet ---- */

/* Without a name where the system can do that, so that nothing is left behind however we end;
 * else under a temporary one. */
typedef struct {
  FILE *out;
  char *name; /* NULL: it has none */
  const char *place;
} Draft;

static FILE *
open_descriptor (int fd)
{
  FILE *out = fd >= 0 ? fdopen (fd, "w") : NULL;
  int code = errno;
  if (!out && fd >= 0)
    close (fd);
  errno = code;
  return out;
}

/* -1 where there is no such thing: other systems, old file systems, no /proc. */
static int
open_nameless (const char *place)
{
#ifdef O_TMPFILE
  g_autofree char *folder = g_path_get_dirname (place);
  return access ("/proc/self/fd", X_OK) == 0 ? open (folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666) : -1;
#else
  return -1;
#endif
}

/* As open() with the user's umask would make a new file, unlike mkstemp(). */
static gboolean
draft_init (Draft *d, const char *place)
{
  *d = (Draft) { .out = open_descriptor (open_nameless (place)), .place = place };
  if (d->out)
    return TRUE;
  d->name = g_strconcat (place, ".XXXXXX", NULL);
  d->out = open_descriptor (g_mkstemp_full (d->name, O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
  if (!d->out) {
    g_free (d->name);
    d->name = NULL;
  }
  return d->out != NULL;
}

/* A name that nobody has, for the moment between linking and renaming: only a link of that name
 * could replace a file that exists. */
static gboolean
give_name (Draft *d)
{
  g_autofree char *open_file = g_strdup_printf ("/proc/self/fd/%d", fileno (d->out));
  for (guint i = 0; i < 1000; i++) {
    g_autofree char *name = g_strdup_printf ("%s.%d-%u", d->place, (int) getpid (), i);
    if (linkat (AT_FDCWD, open_file, AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0) {
      d->name = g_steal_pointer (&name);
      return TRUE;
    }
    if (errno != EEXIST)
      return FALSE;
  }
  return FALSE;
}

/* stdio says that a write failed, and forgets why. Asked again, the system says so again. */
static int
why_it_failed (FILE *out)
{
  clearerr (out);
  errno = 0;
  return fputc ('\n', out) == EOF || fflush (out) == EOF ? errno : EIO;
}

static gboolean
flush_file (FILE *out, const char *path, GError **error)
{
  int code = fflush (out) == 0 && !ferror (out) ? 0 : why_it_failed (out);
  return code == 0 || io_error (path, code, error);
}

static gboolean
close_file (FILE *out, const char *path, GError **error)
{
  gboolean is_flushed = flush_file (out, path, error);
  if (fclose (out) != 0 && is_flushed)
    return io_error (path, errno, error);
  return is_flushed;
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
  Draft d;
  if (!draft_init (&d, path))
    return io_error (path, errno, error);
  gboolean ok = write (d.out, data, error) && flush_file (d.out, path, error);
  if (ok && !d.name && !give_name (&d))
    ok = io_error (path, errno, error);
  gboolean is_closed = close_file (d.out, path, ok ? error : NULL);
  ok = ok && is_closed;
  if (ok && g_rename (d.name, path) != 0)
    ok = io_error (path, errno, error);
  if (!ok && d.name)
    g_unlink (d.name);
  g_free (d.name);
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
  return ls_fail (error, LS_ERROR_USAGE, "\"%s\": expected the name of a file%s", shown,
                  *path ? " without control characters" : "");
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

/* What fails is seen by who closes it. */
gboolean
ls_write_bytes (FILE *out, gpointer bytes, GError **error)
{
  (void) error;
  fwrite (g_bytes_get_data (bytes, NULL), 1, g_bytes_get_size (bytes), out);
  return TRUE;
}

gboolean
ls_write_text (const char *path, const char *text, GError **error)
{
  return ls_write_file (path, write_string, (void *) text, error);
}

char *
ls_output_name (const char *path, GError **error)
{
  g_autofree char *base = g_path_get_basename (path);
  gsize n = strlen (base);
  bool is_plain = g_str_has_suffix (base, ".json") && n > strlen (".json");
  for (const char *c = base; *c && is_plain; c++)
    is_plain = g_ascii_isalnum (*c) || strchr ("-_.", *c);
  if (is_plain)
    return g_strndup (base, n - strlen (".json"));
  return ls_fail_null (error, LS_ERROR_USAGE,
                       "%s: expected NAME.json, NAME of letters, digits, \"-\", \"_\" and \".\"", path);
}

/* --- packed ----------------------------------------------------------------------------------------- */

GByteArray *
ls_gzip (const char *text, gsize n)
{
  z_stream z = { 0 };
  int ok = deflateInit2 (&z, Z_BEST_COMPRESSION, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY);
  g_assert (ok == Z_OK);
  GByteArray *packed = g_byte_array_new ();
  g_byte_array_set_size (packed, (guint) deflateBound (&z, n));
  z.next_in = (Bytef *) text;
  z.avail_in = (uInt) n;
  z.next_out = packed->data;
  z.avail_out = packed->len;
  ok = deflate (&z, Z_FINISH);
  g_assert (ok == Z_STREAM_END);
  g_byte_array_set_size (packed, (guint) z.total_out);
  deflateEnd (&z);
  return packed;
}

gboolean
ls_write_file_packed (const char *path, LsWriteFunc write, void *data, GError **error)
{
  if (!g_str_has_suffix (path, ".gz"))
    return ls_write_file (path, write, data, error);
  if (!ls_write_file_check (path, error))
    return FALSE;
  char *text = NULL;
  size_t n = 0;
  FILE *memory = open_memstream (&text, &n);
  gboolean ok = memory && write (memory, data, error);
  if (memory)
    fclose (memory);
  else
    g_set_error (error, LS_ERROR, LS_ERROR_IO, "cannot write to memory: %s", g_strerror (errno));
  if (ok) {
    g_autoptr (GBytes) packed = g_byte_array_free_to_bytes (ls_gzip (text, n));
    ok = ls_write_file (path, ls_write_bytes, packed, error);
  }
  free (text);
  return ok;
}

gboolean
ls_make_folder (const char *path, GError **error)
{
  if (g_mkdir (path, 0777) == 0)
    return TRUE;
  return ls_fail (error, LS_ERROR_IO, "%s: %s; expected the name of a new folder", path, g_strerror (errno));
}

void
ls_remove_folder (const char *path)
{
  g_autoptr (GDir) dir = g_dir_open (path, 0, NULL);
  for (const char *name = dir ? g_dir_read_name (dir) : NULL; name; name = g_dir_read_name (dir)) {
    g_autofree char *file = g_build_filename (path, name, NULL);
    if (g_file_test (file, G_FILE_TEST_IS_DIR) && !g_file_test (file, G_FILE_TEST_IS_SYMLINK))
      ls_remove_folder (file);
    g_remove (file);
  }
  g_rmdir (path);
}
