/* data/text/csv.h — a table from comma-separated text (RFC 4180), and its rows read by field tables.
 *
 * A line that begins
 * with '#' is a comment; a first cell that does stands in quotes. Every cell keeps its
 * place in the file, so that whoever reads a number can say where it stood.
 *
 *     # where, and how many GPUs
 *     id,gpus,source
 *     a-1,8,"Table 1, row 3" */
#ifndef LS_DATA_TEXT_CSV_H
#define LS_DATA_TEXT_CSV_H

#include <glib.h>
#include <stddef.h>
#include <stdio.h>

#include "base/diag.h"
#include "data/text/field.h"

typedef struct LsCsv LsCsv;

/* Of n bytes and a NUL in memory, -1: up to the NUL; text NULL: of the whole file of that name. NULL, with
 * located diagnostics, if it cannot be read, is empty, names a column twice, leaves a quote open, or has a
 * row with another number of cells than the header. Free with ls_csv_free(). */
LsCsv *ls_csv_parse (const char *name, const char *text, gssize n, LsDiagList *diags);
void ls_csv_free (LsCsv *csv); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsCsv, ls_csv_free)

const char *ls_csv_name (const LsCsv *csv); /* of the file, or what stands for it */
guint ls_csv_n_rows (const LsCsv *csv);     /* without the header */
guint ls_csv_n_columns (const LsCsv *csv);
int ls_csv_column (const LsCsv *csv, const char *name); /* -1 if there is none */
const char *ls_csv_column_name (const LsCsv *csv, guint column);

/* Appends a cell as this reader has it: in quotes where it needs them; behind an apostrophe what a
 * spreadsheet would calculate ("=1+1"). NULL: empty. */
void ls_csv_append (GString *out, const char *cell);
void ls_csv_append_quoted (GString *out, const char *cell); /* in quotes whatever it is */
void ls_csv_append_number (GString *out, double value);     /* reads back as the same double; NaN: empty */
void ls_csv_append_int (GString *out, int64_t value);
void ls_csv_print (FILE *out, const char *cell); /* the same into a file */

/* Borrowed until the table is freed; never NULL; as base/printable.h makes it. */
const char *ls_csv_cell (const LsCsv *csv, guint row, guint column);

/* Adds a diagnostic of LS_ERROR_INPUT that points at a cell, named /ROW-ID/COLUMN
 * after the first cell of its row. */
void ls_csv_error (const LsCsv *csv, guint row, guint column, LsDiagList *diags, const char *format, ...)
    G_GNUC_PRINTF (5, 6);
/* The same for the header row as a whole. */
void ls_csv_header_error (const LsCsv *csv, LsDiagList *diags, const char *format, ...) G_GNUC_PRINTF (3, 4);

/* --- rows of a CSV read by field tables (data/text/field.h): a column is named and spelt as a key --- */

/* The limits of a cell are those of its field. */

/* Where a column's values go. */
typedef struct {
  const LsField *field;
  size_t offset; /* in a row's struct, of the struct that the field belongs to */
  guint column;
  bool may_be_empty; /* an empty cell leaves the field alone */
} LsCsvField;

/* What a table need not have: the column, or that and a value in each cell. */
typedef enum { LS_CSV_REQUIRED, LS_CSV_MAY_LACK, LS_CSV_OPTIONAL } LsCsvNeed;

/* Appends the column of that field, if there is one, to an array of LsCsvField; a
 * diagnostic if there is none and it is required. */
void ls_csv_fields_find (const LsCsv *csv, const LsField *field, LsCsvNeed need, size_t offset,
                         GArray *columns, LsDiagList *diags);
/* The same of a whole table of fields: the column of one that is required, and those of others that may be
 * empty. */
void ls_csv_fields_find_all (const LsCsv *csv, const LsField *fields, size_t offset, GArray *columns,
                             LsDiagList *diags);

/* Names of the columns that are not among these, with commas: notes of whoever made the table, or keys that
 * were mistyped. Newly allocated; NULL: there are none. */
char *ls_csv_unread (const LsCsv *csv, const GArray *columns);

/* Sets in target what the cells of a row say; a diagnostic for each that is wrong. */
void ls_csv_fields_read (const LsCsv *csv, guint row, const GArray *columns, void *target, LsDiagList *diags);

#endif
