/* data/text/write_file.h — an output file that is there as a whole or not at all: it is
 * written in the folder of its final place without a name (O_TMPFILE; where that is not to
 * be had, under a temporary one), then named and moved there. A signal leaves nothing. */
#ifndef LS_DATA_TEXT_WRITE_FILE_H
#define LS_DATA_TEXT_WRITE_FILE_H

#include <glib.h>
#include <stdio.h>

/* Writes the contents; FALSE with *error set gives up. Stream errors need not be
 * checked: ls_write_file() does. */
typedef gboolean (*LsWriteFunc) (FILE *out, void *data, GError **error);

/* A file that exists at path is replaced only on success; of a symbolic link, what
 * it points to, whether that exists or not. What is no regular file (/dev/stdout, a
 * pipe) is written directly. Errors: those of ls_write_file_check(), LS_ERROR_IO, or
 * what `write` sets. */
gboolean ls_write_file (const char *path, LsWriteFunc write, void *data, GError **error);

/* For it, of GBytes. */
gboolean ls_write_bytes (FILE *out, gpointer bytes, GError **error);

/* Whether ls_write_file() can begin; creates nothing. LS_ERROR_USAGE: the path is
 * empty or has control characters in it, which programs and terminals may take for
 * something else; LS_ERROR_IO: it is a folder, its folder is missing, or one of them
 * must not be written. */
gboolean ls_write_file_check (const char *path, GError **error);

/* The same for a text that is already there. */
gboolean ls_write_text (const char *path, const char *text, GError **error);

/* A new folder, which must not be there. LS_ERROR_IO. */
gboolean ls_make_folder (const char *path, GError **error);
/* With the files in it. */
void ls_remove_folder (const char *path);

/* What a file calls itself that is found by its name: that of the path without ".json", newly allocated.
 * NULL, LS_ERROR_USAGE: the path is not of NAME.json, NAME of letters, digits, "-", "_" and ".". */
char *ls_output_name (const char *path, GError **error);

/* --- packed ----------------------------------------------------------------------------------------- */

/* Gzip (RFC 1952) written: no name and no time in it, so that equal texts are equal bytes. */

/* n bytes packed. */
GByteArray *ls_gzip (const char *text, gsize n);

/* As ls_write_file(), but what `write` writes is packed where the path ends in ".gz". It is held in memory
 * until then. */
gboolean ls_write_file_packed (const char *path, LsWriteFunc write, void *data, GError **error);

#endif
