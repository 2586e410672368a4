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

/* One cell more, or several with "\v" between them; rows are filled from the left. */
void ls_text_table_add (LsTextTable *t, const char *format, ...) G_GNUC_PRINTF (2, 3);
void ls_text_table_take (LsTextTable *t, char *cell); /* owned from here on; NULL: empty */
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

#endif
