/* data/text/gzip.h — gzip (RFC 1952) written: no name and no time in it, so that equal texts are equal bytes.
 * What reads it: data/text/input_bytes.h. */
#ifndef LS_DATA_TEXT_GZIP_H
#define LS_DATA_TEXT_GZIP_H

#include "data/text/write_file.h"

/* n bytes packed. */
GByteArray *ls_gzip (const char *text, gsize n);

/* As ls_write_file(), but what `write` writes is packed where the path ends in ".gz". It is held in memory
 * until then. */
gboolean ls_write_file_packed (const char *path, LsWriteFunc write, void *data, GError **error);

#endif
