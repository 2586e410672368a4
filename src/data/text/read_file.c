#include "data/text/read_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <lockstep/units.h>

#include "base/near.h"
#include "data/text/text_place.h"

/* --- the whole -------------------------------------------------------------------------------------- */

static gpointer
refuse_errno (LsDiagList *diags, const char *path)
{
  ls_file_diag (diags, LS_ERROR_INPUT, path, NULL, "cannot read this file: %s", g_strerror (errno));
  return NULL;
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
      ls_file_diag (diags, LS_ERROR_INPUT, path, NULL, "larger than %zu MiB; expected a smaller file",
                    max_bytes >> 20);
      return NULL;
    }
    g_string_append_len (text, piece, (gssize) n);
  }
  if (ferror (file))
    return refuse_errno (diags, path);
  *ret_n = text->len;
  return g_string_free (g_steal_pointer (&text), FALSE);
}

FILE *
ls_open_file (const char *path, LsDiagList *diags)
{
  bool is_stdin = strcmp (path, "/dev/stdin") == 0;
  if (!is_stdin && g_getenv ("LS_CONFINE") && !ls_is_near (path)) {
    ls_diag_fail (diags, LS_ERROR_INPUT,
                  "%s: not read, as it lies outside the folders of the files that were named (--confine)",
                  path);
    return NULL;
  }
  FILE *file = open_file (path, is_stdin);
  if (!file)
    return refuse_errno (diags, path);
  const char *reason = reason_to_refuse (file, is_stdin);
  if (!reason)
    return file;
  ls_file_diag (diags, LS_ERROR_INPUT, path, NULL, "%s", reason);
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

/* --- piece by piece --------------------------------------------------------------------------------- */

#define PIECE ((size_t) 1 << 16)

struct LsInput {
  gzFile file;     /* reads what is not packed as it is */
  uint64_t n_size; /* of the file; 0: not known */
  uint64_t n_out;
  char *trouble;
};

/* Takes file. */
static LsInput *
input_new (FILE *file)
{
  LsInput *in = g_new0 (LsInput, 1);
  struct stat info;
  in->n_size = fstat (fileno (file), &info) == 0 && S_ISREG (info.st_mode) ? (uint64_t) info.st_size : 0;
  in->file = gzdopen (fcntl (fileno (file), F_DUPFD_CLOEXEC, 0), "rb");
  if (in->file)
    gzbuffer (in->file, PIECE / 2); /* a piece goes straight to who asked for it */
  else
    in->trouble = g_strdup ("zlib cannot begin to read");
  fclose (file);
  return in;
}

LsInput *
ls_input_of_memory (const void *bytes, size_t n)
{
  FILE *file = tmpfile ();
  if (!file || fwrite (bytes, 1, n, file) < n || fflush (file) != 0)
    g_error ("cannot write a temporary file: %s", g_strerror (errno));
  rewind (file);
  return input_new (file);
}

LsInput *
ls_input_open (const char *path, LsDiagList *diags)
{
  FILE *file = ls_open_file (path, diags);
  return file ? input_new (file) : NULL;
}

void
ls_input_free (LsInput *in)
{
  if (!in)
    return;
  gzclose (in->file);
  g_free (in->trouble);
  g_free (in);
}

const char *
ls_input_trouble (const LsInput *in)
{
  return in->trouble;
}

/* Why the bytes end here, newly allocated; NULL: the file does. */
static char *
why_it_ends (const LsInput *in)
{
  int code;
  const char *text = gzerror (in->file, &code), *what = strstr (text, ": "); /* behind the name of the file */
  if (code == Z_BUF_ERROR)
    return g_strdup ("the gzip data end in the middle: the file is cut off");
  return code == Z_OK || code == Z_STREAM_END
      ? NULL
      : g_strconcat (code == Z_ERRNO ? "cannot read this file: " : "damaged gzip data: ",
                     what ? what + strlen (": ") : text, NULL);
}

/* Bytes of the file that what came out is of; at least 1. */
static uint64_t
n_used (const LsInput *in)
{
  return (uint64_t) MAX (gzoffset (in->file), 1);
}

/* The whole of it, by what came out of the part that is read. */
static double
projected (const LsInput *in)
{
  bool is_probe = in->n_size > 0 && in->n_out >= LS_INPUT_PROBE_BYTES;
  return is_probe ? (double) in->n_out * ((double) in->n_size / (double) n_used (in)) : (double) in->n_out;
}

/* Its budget: of the whole, and of gzip whose size nobody can tell, or which changes its ways. */
static void
check_budget (LsInput *in)
{
  double all = projected (in);
  bool is_gzip = !gzdirect (in->file);
  uint64_t most = is_gzip ? LS_INPUT_MAX_UNPACKED : LS_INPUT_MAX_BYTES;
  bool is_bomb = is_gzip && in->n_size > 0 && in->n_out >= LS_INPUT_PROBE_BYTES
      && in->n_out / LS_INPUT_MAX_RATIO > n_used (in);
  if (all <= (double) most && !is_bomb)
    return;
  g_autofree char *size = ls_format_bytes ((uint64_t) MIN (all, 1e18));
  in->trouble = is_bomb && all <= (double) most
      ? g_strdup_printf ("unpacks to more than %d times its size, which no profile does; gunzip it first, "
                         "what is unpacked is read up to %d GiB",
                         LS_INPUT_MAX_RATIO, (int) (LS_INPUT_MAX_BYTES >> 30))
      : g_strdup_printf ("about %s %s; %d GiB at most, record fewer steps%s", size,
                         is_gzip ? "unpacked" : "of text", (int) (most >> 30),
                         is_gzip ? " or gunzip it first" : "");
}

size_t
ls_input_read (LsInput *in, void *to, size_t n)
{
  if (in->trouble)
    return 0;
  int got = gzread (in->file, to, (unsigned) MIN (n, PIECE));
  if (got <= 0) {
    in->trouble = why_it_ends (in);
    return 0;
  }
  in->n_out += (uint64_t) got;
  check_budget (in);
  return in->trouble ? 0 : (size_t) got;
}
