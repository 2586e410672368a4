/* show/text_table.h — columns of text as wide as their widest cell, and headings of sections. */
#ifndef LS_SHOW_TEXT_TABLE_H
#define LS_SHOW_TEXT_TABLE_H

#include <glib.h>
#include <stdbool.h>

#define LS_TEXT_TABLE_MAX_COLUMNS 16

typedef struct {
  const char *align; /* borrowed: a letter per column, 'l' or 'r' */
  GPtrArray *cells;  /* char *, row by row */
  GPtrArray *notes;  /* char *: a line below each row, or NULL */
} LsTextTable;

void ls_text_table_init (LsTextTable *t, const char *align);

/* One cell more, owned from here on, NULL: empty; rows are filled from the left. */
void ls_text_table_take (LsTextTable *t, char *cell);
/* Below the row that was filled last. */
void ls_text_table_note (LsTextTable *t, const char *note);

/* Appends all rows, `indent` blanks before each, and clears the table. */
void ls_text_table_print (LsTextTable *t, int indent, GString *out);

/* A heading behind an empty line, bold, and a note on its line, dim, where is_color: ANSI escapes. */
void ls_text_heading (GString *out, bool is_color, const char *heading, const char *note);
/* An ANSI escape, "1" bold, "0" plain again, where is_color. */
void ls_text_paint (GString *out, bool is_color, const char *code);
/* Without the blanks at its end. */
void ls_text_end_line (GString *out);

/* How wide the widest of n texts is, and at least: `first` points to the first, the others are `size` bytes
 * apart. */
int ls_text_widest (int least, const void *first, guint n, gsize size);

/* --- quantities ---------------------------------------------------------------------------------- */

/* A quantity in a text: each has one form, in all commands. NaN: "-". Newly allocated.
 * Sizes, rates and FLOP/s are of lockstep/units.h. */

/* "412.3 us", "7.000 s", and from an hour on "3.089 h", from a day on "41.20 days"; "never". */
char *ls_text_time (double seconds);
/* Tokens, parameters, hours: "3.25", "603,659", "1.21 M", "15 T". */
char *ls_text_count (double n);
/* "$0.123", "$12,345.67", "$1.21 million" */
char *ls_text_money (double usd);
/* "812.4 kWh", "1.21 MWh" */
char *ls_text_energy (double kwh);
/* "1,234,567.8" */
char *ls_text_grouped (double value, int decimals);
/* As printf() in the C locale; plain: for programs, NaN "NaN". */
char *ls_text_number (const char *format, double value);
char *ls_text_plain (const char *format, double value);
/* A name of ours without its underscores: "exposed_tp" as "exposed tp". */
char *ls_text_words (const char *name);

#define LS_TEXT_GIB 1073741824.0

#endif
