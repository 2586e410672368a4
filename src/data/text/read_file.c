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

/* --- the whole -------------------------------------------------------------------------------------- */

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
  if (!is_stdin && g_getenv ("LS_CONFINE") && !ls_is_near (path)) {
    ls_diag_add (diags, LS_ERROR_INPUT, NULL, 0, 0, NULL, NULL, NULL,
                 "%s: not read, as it lies outside the folders of the files that were named (--confine)",
                 path);
    return NULL;
  }
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

/* --- piece by piece --------------------------------------------------------------------------------- */

#define PIECE     ((size_t) 1 << 16)
#define GZIP_ONLY (16 + MAX_WBITS) /* of inflateInit2() */

struct LsInput {
  FILE *file; /* NULL: memory */
  const unsigned char *memory;
  size_t n_memory;
  uint64_t n_size, n_in; /* of the file or memory, 0: not known; and what of it is in raw or behind it */
  unsigned char raw[PIECE];
  size_t n_raw, at; /* bytes in raw, and how many of them are used up */
  bool has_started, is_gzip, is_done;
  bool in_member; /* of gzip: its end has not come */
  z_stream z;
  uint64_t n_out;
  char *trouble;
};

LsInput *
ls_input_of_memory (const void *bytes, size_t n)
{
  LsInput *in = g_new0 (LsInput, 1);
  in->memory = bytes;
  in->n_memory = n;
  in->n_size = n;
  return in;
}

LsInput *
ls_input_open (const char *path, LsDiagList *diags)
{
  FILE *file = ls_open_file (path, diags);
  if (!file)
    return NULL;
  LsInput *in = g_new0 (LsInput, 1);
  in->file = file;
  struct stat info;
  in->n_size = fstat (fileno (file), &info) == 0 && S_ISREG (info.st_mode) ? (uint64_t) info.st_size : 0;
  return in;
}

void
ls_input_free (LsInput *in)
{
  if (!in)
    return;
  if (in->file)
    fclose (in->file);
  if (in->is_gzip)
    inflateEnd (&in->z);
  g_free (in->trouble);
  g_free (in);
}

const char *
ls_input_trouble (const LsInput *in)
{
  return in->trouble;
}

/* The next piece of the file as it is; false at its end. */
static bool
refill (LsInput *in)
{
  in->at = in->n_raw = 0;
  if (in->file) {
    errno = 0;
    in->n_raw = fread (in->raw, 1, PIECE, in->file);
    if (ferror (in->file) && !in->trouble)
      in->trouble = g_strdup_printf ("cannot read this file: %s", g_strerror (errno));
  } else {
    in->n_raw = MIN (in->n_memory, PIECE);
    if (in->n_raw > 0)
      memcpy (in->raw, in->memory, in->n_raw);
    in->memory += in->n_raw;
    in->n_memory -= in->n_raw;
  }
  in->n_in += in->n_raw;
  return in->n_raw > 0;
}

static void
begin (LsInput *in)
{
  in->has_started = true;
  if (!refill (in) || in->n_raw < 2 || in->raw[0] != 0x1f || in->raw[1] != 0x8b)
    return;
  in->is_gzip = inflateInit2 (&in->z, GZIP_ONLY) == Z_OK;
  in->in_member = in->is_gzip;
  if (!in->is_gzip)
    in->trouble = g_strdup ("zlib cannot begin to unpack");
}

static size_t
copy (LsInput *in, unsigned char *to, size_t n)
{
  if (in->at == in->n_raw && !refill (in))
    return 0;
  n = MIN (n, in->n_raw - in->at);
  memcpy (to, in->raw + in->at, n);
  in->at += n;
  return n;
}

/* Behind a member may come another one, or padding, which gzip(1) ignores too. */
static void
end_member (LsInput *in)
{
  in->in_member = false;
  if (in->at == in->n_raw && !refill (in)) {
    in->is_done = true;
    return;
  }
  in->is_done = in->raw[in->at] != 0x1f;
  if (!in->is_done)
    in->in_member = inflateReset (&in->z) == Z_OK;
}

static size_t
unpack (LsInput *in, unsigned char *to, size_t n)
{
  in->z.next_out = to;
  in->z.avail_out = (uInt) MIN (n, PIECE);
  uInt room = in->z.avail_out;
  while (in->z.avail_out == room && !in->is_done && !in->trouble) {
    if (in->at == in->n_raw && !refill (in)) {
      if (!in->trouble)
        in->trouble = g_strdup ("the gzip data end in the middle: the file is cut off");
      break;
    }
    in->z.next_in = in->raw + in->at;
    in->z.avail_in = (uInt) (in->n_raw - in->at);
    int status = inflate (&in->z, Z_NO_FLUSH);
    in->at = in->n_raw - in->z.avail_in;
    if (status == Z_STREAM_END)
      end_member (in);
    else if (status != Z_OK && status != Z_BUF_ERROR)
      in->trouble = g_strdup_printf ("damaged gzip data: %s", in->z.msg ? in->z.msg : "zlib cannot go on");
  }
  return room - in->z.avail_out;
}

/* Bytes of the file that what came out is of; at least 1. */
static uint64_t
n_used (const LsInput *in)
{
  return MAX (in->n_in - (in->n_raw - in->at), 1);
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
  uint64_t most = in->is_gzip ? LS_INPUT_MAX_UNPACKED : LS_INPUT_MAX_BYTES;
  bool is_bomb
      = in->is_gzip && in->n_out >= LS_INPUT_PROBE_BYTES && in->n_out / LS_INPUT_MAX_RATIO > n_used (in);
  if (in->trouble || (all <= (double) most && !is_bomb))
    return;
  g_autofree char *size = ls_format_bytes ((uint64_t) MIN (all, 1e18));
  in->trouble = is_bomb && all <= (double) most
      ? g_strdup_printf ("unpacks to more than %d times its size, which no profile does; gunzip it first, "
                         "what is unpacked is read up to %d GiB",
                         LS_INPUT_MAX_RATIO, (int) (LS_INPUT_MAX_BYTES >> 30))
      : g_strdup_printf ("about %s %s; %d GiB at most, record fewer steps%s", size,
                         in->is_gzip ? "unpacked" : "of text", (int) (most >> 30),
                         in->is_gzip ? " or gunzip it first" : "");
}

size_t
ls_input_read (LsInput *in, void *to, size_t n)
{
  if (!in->has_started)
    begin (in);
  if (in->trouble)
    return 0;
  size_t got = in->is_gzip ? unpack (in, to, n) : copy (in, to, n);
  in->n_out += got;
  check_budget (in);
  return in->trouble ? 0 : got;
}
