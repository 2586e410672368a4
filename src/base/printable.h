/* base/printable.h — text of strangers as it may be shown.
 *
 * A name in a file may hold anything that UTF-8 can: escape sequences that drive a
 * terminal, line breaks that forge a row of a table, U+202E that turns the rest of the
 * line around. Whoever reads text hands it on as this file makes it (data/text/json_doc.h,
 * data/text/json_pull.h, data/text/csv.h and the other readers), so that no printer need think of it. */
#ifndef LS_BASE_PRINTABLE_H
#define LS_BASE_PRINTABLE_H

/* In place, of valid UTF-8: a line break becomes a blank; other control characters but tabs,
 * and the invisible ones that Unicode calls format (directions, zero widths), become '?'.
 * Keeps the number of code points, never makes a text longer. NULL allowed. */
void ls_make_printable (char *text);

/* The same of any bytes, newly allocated: each that is no UTF-8 becomes U+FFFD. NULL of NULL. */
char *ls_printable (const char *text);
/* The same of a text of ours of several lines that quotes somebody: its line breaks stay. */
char *ls_printable_lines (const char *text);

#endif
