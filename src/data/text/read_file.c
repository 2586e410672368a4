#include "data/text/read_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *
refuse (LsDiagList *diags, const char *path, const char *what)
{
  ls_diag_add (diags, LS_ERROR_INPUT, path, 0, 0, NULL, NULL, NULL, "%s", what);
  return NULL;
}

static char *
refuse_errno (LsDiagList *diags, const char *path, int code)
{
  g_autofree char *what = g_strdup_printf ("cannot read this file: %s", g_strerror (code));
  return refuse (diags, path, what);
}

/* Opening a FIFO would wait for somebody to write. */
static FILE *
open_file (const char *path, bool is_stdin)
{
  int fd = is_stdin ? fcntl (STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                    : open (path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  return fd < 0 ? NULL : fdopen (fd, "rb");
}

/* Why what was opened is not read; NULL: it can be. */
static const char *
reason_to_refuse (FILE *file, bool is_stdin)
{
  struct stat info;
  if (fstat (fileno (file), &info) != 0 || S_ISREG (info.st_mode))
    return NULL;
  if (S_ISDIR (info.st_mode))
    return "is a directory; expected a file";
  return is_stdin ? NULL : "is a pipe or a device; expected a file, or /dev/stdin";
}

/* Reads in pieces: the size of a pipe is not known, that of a file may change. */
static char *
read_all (FILE *file, const char *path, size_t max_bytes, size_t *ret_n, LsDiagList *diags)
{
  g_autoptr (GString) text = g_string_new (NULL);
  g_autofree char *piece = g_malloc (1 << 16);
  size_t n;
  errno = 0;
  while ((n = fread (piece, 1, 1 << 16, file)) > 0) {
    if (n > max_bytes - text->len) {
      g_autofree char *what
          = g_strdup_printf ("larger than %zu MiB; expected a smaller file", max_bytes >> 20);
      return refuse (diags, path, what);
    }
    g_string_append_len (text, piece, (gssize) n);
  }
  if (ferror (file))
    return refuse_errno (diags, path, errno);
  *ret_n = text->len;
  return g_string_free (g_steal_pointer (&text), FALSE);
}

FILE *
ls_open_file (const char *path, LsDiagList *diags)
{
  bool is_stdin = strcmp (path, "/dev/stdin") == 0;
  FILE *file = open_file (path, is_stdin);
  if (!file) {
    refuse_errno (diags, path, errno);
    return NULL;
  }
  const char *reason = reason_to_refuse (file, is_stdin);
  if (!reason)
    return file;
  refuse (diags, path, reason);
  fclose (file);
  return NULL;
}

char *
ls_read_file (const char *path, size_t max_bytes, size_t *ret_n, LsDiagList *diags)
{
  FILE *file = ls_open_file (path, diags);
  if (!file)
    return NULL;
  char *text = read_all (file, path, max_bytes, ret_n, diags);
  fclose (file);
  return text;
}
