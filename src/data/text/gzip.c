#include "data/text/gzip.h"

#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

#include <lockstep/error.h>

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

static gboolean
write_bytes (FILE *out, void *data, GError **error)
{
  const GByteArray *bytes = data;
  fwrite (bytes->data, 1, bytes->len, out);
  return TRUE;
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
    g_autoptr (GByteArray) packed = ls_gzip (text, n);
    ok = ls_write_file (path, write_bytes, packed, error);
  }
  free (text);
  return ok;
}
