/* data/text/journal.h — a file that says what is done, so that work goes on after any kill.
 *
 * Lines are appended as they come, each with its checksum; the first says what work it is, and each program
 * that opens it adds who it is:
 *
 *     lockstep.journal/1 KEY 0123456789abcdef
 *     writer 4711 HOST 89abcdef01234567
 *     TEXT fedcba9876543210
 *
 * A kill may leave the last line torn: it is cut off when the file is opened again. A checksum
 * that is wrong anywhere else is an error. */
#ifndef LS_DATA_TEXT_JOURNAL_H
#define LS_DATA_TEXT_JOURNAL_H

#include <glib.h>

typedef struct LsJournal LsJournal;

/* Makes the file, or reads what it holds: each text goes to `found`; FALSE from it means that
 * it makes no sense. key, text: one line. LS_ERROR_INPUT: no journal, or damaged; LS_ERROR_CONFLICT:
 * of other work; LS_ERROR_IO: cannot be read or written, or another program has it open, and which. */
LsJournal *ls_journal_open (const char *path, const char *key,
                            gboolean (*found) (const char *text, gpointer data), gpointer data,
                            GError **error);
void ls_journal_close (LsJournal *journal); /* NULL allowed */

/* Appends a text. LS_ERROR_IO. */
gboolean ls_journal_add (LsJournal *journal, const char *text, GError **error);
/* What was added stays, even if the machine fails. LS_ERROR_IO. */
gboolean ls_journal_sync (LsJournal *journal, GError **error);

#endif
