/* base/diag.h — located diagnostics, collected so that all are reported.
 *
 * One diagnostic reads
 *
 *     FILE:LINE:COL: error: /json/pointer: expected ...; got ...
 *         7 |     { "kind": "ib", "bandwidth": 400 }
 *           |                                  ^
 *     note: write "400Gbit/s" for bits or "400GB/s" for bytes
 *
 * line and col are 1-based, columns count code points; both 0 if the place is
 * not known (then they are not printed), file NULL if there is none. */
#ifndef LS_BASE_DIAG_H
#define LS_BASE_DIAG_H

#include <glib.h>

#include <lockstep/error.h>

typedef struct LsDiagList LsDiagList;

LsDiagList *ls_diag_list_new (void);
void ls_diag_list_free (LsDiagList *list); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsDiagList, ls_diag_list_free)

/* Appends one diagnostic; all strings are copied; file, pointer, source_line and
 * hint may be NULL. source_line is the text of that line (without newline). */
void ls_diag_add (LsDiagList *list, LsErrorCode code, const char *file, int line, int col,
                  const char *pointer, const char *source_line, const char *hint,
                  const char *format, ...) G_GNUC_PRINTF (9, 10);

guint ls_diag_list_n (const LsDiagList *list);

/* All diagnostics (20 at most, then "... and N more"), newly allocated, ending
 * in a newline; "" if there are none. */
char *ls_diag_list_format (const LsDiagList *list);

/* If the list is not empty, sets *error to its first code with all of the
 * formatted text as message (no trailing newline) and returns FALSE. */
gboolean ls_diag_list_to_error (const LsDiagList *list, GError **error);

#endif
