/* data/text/field_value.h — one value of one field: from text to memory. Used by
 * field.c, field_write.c, csv_fields.c and table_facts.c only. */
#ifndef LS_DATA_TEXT_FIELD_VALUE_H
#define LS_DATA_TEXT_FIELD_VALUE_H

#include "data/text/field.h"

/* Stores the value that text stands for; false leaves the field alone. Not for
 * ROW, ARRAY, OBJECT, SETTINGS, SOURCES and IGNORED. */
bool ls_field_value_set (const LsField *f, void *target, const char *text);

/* Stores a copy of a list. */
void ls_field_value_set_list (const LsField *f, void *target, const uint32_t *values, uint32_t n);

/* Whether the value lies in the field's range. */
bool ls_field_value_in_range (const LsField *f, double value);

/* The field's own limit, or that of its type. */
double ls_field_value_max (const LsField *f);

/* Where a value stood: a switch is true or false in JSON, 0 or 1 as a flag or cell. */
typedef enum { LS_FIELD_IN_JSON, LS_FIELD_IN_TEXT } LsFieldOrigin;

/* "expected a whole number from 1 to 8; got ..."; newly allocated. text: NULL if it
 * was no text; got: how to name it. */
char *ls_field_value_complaint (const LsField *f, LsFieldOrigin origin, const char *text, const char *got);

/* How to write what was probably meant; newly allocated or NULL. */
char *ls_field_value_hint (const LsField *f, const char *text);

/* " from 1 to 8", ", at most 1.000 s", "" — newly allocated. */
char *ls_field_value_range (const LsField *f);

#endif
