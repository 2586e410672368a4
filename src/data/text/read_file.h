/* data/text/read_file.h — the bytes of an input file, with a limit on what a path can
 * make us read. */
#ifndef LS_DATA_TEXT_READ_FILE_H
#define LS_DATA_TEXT_READ_FILE_H

#include <glib.h>
#include <stdio.h>

#include "base/diag.h"

#define LS_MAX_INPUT_BYTES ((size_t) 64 << 20)

/* The whole file, newly allocated, with a NUL after its *ret_n bytes. The path
 * /dev/stdin stands for what the program was given as such, whatever that is; any
 * other pipe or device is refused, as reading it might never end. NULL and a
 * diagnostic (LS_ERROR_INPUT) if the file is missing, unreadable, no regular file or
 * larger than max_bytes. */
char *ls_read_file (const char *path, size_t max_bytes, size_t *ret_n, LsDiagList *diags);

/* The file opened, by the same rules. Close with fclose(). */
FILE *ls_open_file (const char *path, LsDiagList *diags);

#endif
