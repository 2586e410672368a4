/* io/read_file.h — the bytes of an input file, with a limit on what a path can
 * make us read. */
#ifndef LS_IO_READ_FILE_H
#define LS_IO_READ_FILE_H

#include <glib.h>

#include "base/diag.h"

#define LS_MAX_INPUT_BYTES ((size_t) 64 << 20)

/* The whole file (or pipe), newly allocated, with a NUL after its *ret_n bytes.
 * NULL and a diagnostic (LS_ERROR_INPUT) if it is missing, unreadable, a
 * directory or larger than max_bytes. */
char *ls_read_file (const char *path, size_t max_bytes, size_t *ret_n, LsDiagList *diags);

#endif
