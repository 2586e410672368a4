/* data/text/text_place.h — where in a text something stands, and diagnostics that show it. */
#ifndef LS_DATA_TEXT_TEXT_PLACE_H
#define LS_DATA_TEXT_TEXT_PLACE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/diag.h"

/* Moves a 1-based line and column (in code points) n bytes on: many places cost one walk. */
void ls_text_advance (const char *text, size_t n, int *line, int *col);

/* Appends a diagnostic that shows the line of a byte. text: NUL-terminated; name: of the file; pointer and
 * hint may be NULL. */
void ls_text_diag (LsErrorCode code, const char *name, const char *text, size_t offset, LsDiagList *diags,
                   const char *pointer, const char *hint, const char *message);

/* The same of a file as a whole (of none: ls_diag_fail()). Returns false, as what complains does. */
bool ls_file_diag (LsDiagList *diags, LsErrorCode code, const char *path, const char *hint,
                   const char *format, ...) G_GNUC_PRINTF (5, 6);

/* Whether n bytes can be such a text, "JSON": UTF-8 without NUL; false: a diagnostic. */
bool ls_text_check (const char *text, size_t n, const char *name, const char *what, LsDiagList *diags);

#endif
