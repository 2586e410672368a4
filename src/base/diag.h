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
/* Only counts, for those who ask whether there is a mistake and not which: it has ls_diag_list_n () only. */
LsDiagList *ls_diag_list_new_counting (void);
void ls_diag_list_free (LsDiagList *list); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsDiagList, ls_diag_list_free)

/* How many are kept and shown. Of the rest only the number is known: a million mistakes
 * cost a million calls and no memory. Whoever has to search for a place or to build a
 * pointer may spare it beyond these. */
#define LS_DIAG_MAX_SHOWN 20

/* Appends one diagnostic; of all strings, what is shown is copied (base/printable.h, long
 * ones cut); file, pointer, source_line and hint may be NULL. source_line is the text of
 * that line (without newline). */
void ls_diag_add (LsDiagList *list, LsErrorCode code, const char *file, int line, int col,
                  const char *pointer, const char *source_line, const char *hint, const char *format, ...)
    G_GNUC_PRINTF (9, 10);

/* One that is kept, as it is shown; what it lacks is NULL or 0. Of the list. */
typedef struct {
  const char *file, *pointer, *hint, *message;
  int line, col;
} LsDiagView;
/* i: below ls_diag_list_n_kept (). */
LsDiagView ls_diag_list_at (const LsDiagList *list, guint i);
guint ls_diag_list_n_kept (const LsDiagList *list);

guint ls_diag_list_n (const LsDiagList *list); /* with those that are not kept */

/* All diagnostics (LS_DIAG_MAX_SHOWN at most, then "... and N more"), newly allocated, ending
 * in a newline; "" if there are none. */
char *ls_diag_list_format (const LsDiagList *list);

/* If the list is not empty, sets *error to its first code with all of the
 * formatted text as message (no trailing newline) and returns FALSE. */
gboolean ls_diag_list_to_error (const LsDiagList *list, GError **error);

/* --- what is told at once --------------------------------------------------------------------------- */

/* Sets *error as g_set_error() does, of the domain LS_ERROR. Returns FALSE, or NULL, for who fails. */
gboolean ls_fail (GError **error, LsErrorCode code, const char *format, ...) G_GNUC_PRINTF (3, 4);
gpointer ls_fail_null (GError **error, LsErrorCode code, const char *format, ...) G_GNUC_PRINTF (3, 4);

/* Of what may be wrong with a request. */
typedef struct {
  gboolean is_wrong;
  const char *why;
} LsWrong;
/* Whether none of the n is; else LS_ERROR_USAGE, of the first that is. */
gboolean ls_check (const LsWrong *rows, guint n, GError **error);

/* Appends a diagnostic that has no place. Returns FALSE. */
gboolean ls_diag_fail (LsDiagList *list, LsErrorCode code, const char *format, ...) G_GNUC_PRINTF (3, 4);

/* The first line of a message, without what is up to an "error: " in it; newly allocated. */
char *ls_first_line (const char *message);

/* Appends a line to notes (char *). */
void ls_note (GPtrArray *notes, const char *format, ...) G_GNUC_PRINTF (2, 3);

#endif
