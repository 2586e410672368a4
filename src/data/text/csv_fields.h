/* data/text/csv_fields.h — rows of a CSV read by field tables (data/text/field.h): a column is named
 * and spelt as a key. The limits of a cell are those of its field. */
#ifndef LS_DATA_TEXT_CSV_FIELDS_H
#define LS_DATA_TEXT_CSV_FIELDS_H

#include <stddef.h>

#include "data/text/csv.h"
#include "data/text/field.h"

/* Where a column's values go. */
typedef struct {
  const LsField *field;
  size_t offset; /* in a row's struct, of the struct that the field belongs to */
  guint column;
  bool may_be_empty; /* an empty cell leaves the field alone */
} LsCsvField;

/* Appends the column of that field, if there is one, to an array of LsCsvField; a
 * diagnostic if there is none and it is required. */
void ls_csv_fields_find (const LsCsv *csv, const LsField *field, gboolean is_required, size_t offset,
                         GArray *columns, LsDiagList *diags);
/* The same of a column whose cells may be empty, and which need not be there. */
void ls_csv_fields_find_optional (const LsCsv *csv, const LsField *field, size_t offset, GArray *columns);

/* Sets in target what the cells of a row say; a diagnostic for each that is wrong. */
void ls_csv_fields_read (const LsCsv *csv, guint row, const GArray *columns, void *target, LsDiagList *diags);

#endif
