#include "data/text/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/diag.h"

#include "base/digest.h"
#include "base/printable.h"

#define MAGIC           "lockstep.journal/1"
#define CHECKSUM_LENGTH 16
#define WRITER          "writer "

struct LsJournal {
  char *path;
  int fd;
};

static gboolean
fail (const char *path, const char *what, GError **error)
{
  return ls_fail (error, LS_ERROR_IO, "%s: cannot %s: %s", path, what, g_strerror (errno));
}

static char *
line_of (const char *text)
{
  LsDigest digest;
  ls_digest_init (&digest);
  ls_digest_bytes (&digest, text, strlen (text));
  return g_strdup_printf ("%s %016" G_GINT64_MODIFIER "x\n", text, ls_digest_get (&digest));
}

static gboolean
fail_as_foreign (const char *path, GError **error)
{
  return ls_fail (error, LS_ERROR_INPUT, "%s:1: error: expected a journal of lockstep", path);
}

/* Cuts the checksum off a line without its newline; false: it is wrong. */
static bool
check_line (char *line)
{
  size_t n = strlen (line);
  if (n <= CHECKSUM_LENGTH)
    return false;
  g_autofree char *text = g_strndup (line, n - CHECKSUM_LENGTH - 1);
  g_autofree char *right = line_of (text);
  if (strncmp (line, right, n) != 0 || strlen (right) != n + 1)
    return false;
  line[n - CHECKSUM_LENGTH - 1] = '\0';
  return true;
}

/* All that is sound; *ret_n: its bytes. */
static gboolean
read_lines (const char *path, char *bytes, gsize n, const char *head,
            gboolean (*found) (const char *text, gpointer data), gpointer data, gsize *ret_n, GError **error)
{
  *ret_n = 0;
  for (guint number = 1; *ret_n < n; number++) {
    char *line = bytes + *ret_n, *end = memchr (line, '\n', n - *ret_n);
    if (!end) { /* torn; a file of others is left alone */
      g_autofree char *first = line_of (head);
      return number > 1 || g_str_has_prefix (first, line) || fail_as_foreign (path, error);
    }
    gsize length = (gsize) (end - line) + 1;
    bool is_last = *ret_n + length == n;
    *end = '\0';
    bool is_sound = strlen (line) + 1 == length && check_line (line);
    if (!is_sound && is_last && number > 1)
      return TRUE;
    if (number == 1 && is_sound && strcmp (line, head) != 0 && g_str_has_prefix (line, MAGIC))
      return ls_fail (error, LS_ERROR_CONFLICT,
                      "%s: the journal is of other work, or of other versions of its files", path);
    if (number == 1 && (!is_sound || strcmp (line, head) != 0))
      return fail_as_foreign (path, error);
    bool is_writer = is_sound && number > 1 && g_str_has_prefix (line, WRITER);
    if (!is_sound || (number > 1 && !is_writer && !found (line, data)))
      return ls_fail (error, LS_ERROR_INPUT, "%s:%u: error: the line is damaged", path, number);
    *ret_n += length;
  }
  return TRUE;
}

/* A device may be read without end. */
static bool
is_file (int fd)
{
  struct stat st;
  return fstat (fd, &st) == 0 && S_ISREG (st.st_mode);
}

static gboolean
read_all (int fd, GString *bytes)
{
  char part[65536];
  gssize n;
  while ((n = read (fd, part, sizeof part)) > 0 || (n < 0 && errno == EINTR))
    if (n > 0)
      g_string_append_len (bytes, part, n);
  return n == 0;
}

/* The last that opened it says who holds it. */
static gboolean
fail_as_held (const char *path, int fd, GError **error)
{
  g_autoptr (GString) bytes = g_string_new (NULL);
  g_autofree char *writer = NULL;
  if (errno == EWOULDBLOCK && read_all (fd, bytes)) {
    g_auto (GStrv) lines = g_strsplit (bytes->str, "\n", -1);
    for (char **line = lines; *line; line++)
      if (g_str_has_prefix (*line, WRITER) && check_line (*line)) {
        g_free (writer);
        writer = g_strdup (*line + strlen (WRITER));
      }
    g_auto (GStrv) words = g_strsplit (writer ? writer : "", " ", 2);
    return ls_fail (error, LS_ERROR_IO, "%s: in use: %s%s%s%s writes this journal", path,
                    writer ? "process " : "another process", writer ? words[0] : "",
                    writer && words[1] ? " on " : "", writer && words[1] ? words[1] : "");
  }
  return fail (path, "lock the journal", error);
}

static gboolean
add_writer (LsJournal *j, GError **error)
{
  g_autofree char *host = ls_printable (g_get_host_name ());
  g_autofree char *text = g_strdup_printf (WRITER "%ld %s", (long) getpid (), host);
  return ls_journal_add (j, text, error);
}

LsJournal *
ls_journal_open (const char *path, const char *key, gboolean (*found) (const char *text, gpointer data),
                 gpointer data, GError **error)
{
  g_autoptr (GString) bytes = g_string_new (NULL);
  g_autofree char *head = g_strdup_printf (MAGIC " %s", key);
  LsJournal *j = g_new0 (LsJournal, 1);
  gsize n_sound = 0;
  gboolean ok = FALSE;
  j->path = g_strdup (path);
  j->fd = open (path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (j->fd < 0)
    fail (path, "open the journal", error);
  else if (!is_file (j->fd))
    g_set_error (error, LS_ERROR, LS_ERROR_IO, "%s: a journal must be a regular file", path);
  else if (flock (j->fd, LOCK_EX | LOCK_NB) != 0)
    fail_as_held (path, j->fd, error);
  else if (!read_all (j->fd, bytes))
    fail (path, "read the journal", error);
  else if (read_lines (path, bytes->str, bytes->len, head, found, data, &n_sound, error))
    ok = (n_sound == bytes->len || ftruncate (j->fd, (off_t) n_sound) == 0)
        || fail (path, "cut off a torn line", error);
  if (ok && n_sound == 0)
    ok = ls_journal_add (j, head, error);
  ok = ok && add_writer (j, error);
  if (ok)
    return j;
  ls_journal_close (j);
  return NULL;
}

void
ls_journal_close (LsJournal *j)
{
  if (!j)
    return;
  if (j->fd >= 0)
    close (j->fd);
  g_free (j->path);
  g_free (j);
}

gboolean
ls_journal_add (LsJournal *j, const char *text, GError **error)
{
  g_autofree char *line = line_of (text);
  for (size_t at = 0, n = strlen (line); at < n;) {
    ssize_t written = write (j->fd, line + at, n - at);
    if (written < 0 && errno != EINTR)
      return fail (j->path, "write the journal", error);
    at += written > 0 ? (size_t) written : 0;
  }
  return TRUE;
}

gboolean
ls_journal_sync (LsJournal *j, GError **error)
{
  return fdatasync (j->fd) == 0 || fail (j->path, "write the journal", error);
}
