/* data/text/field_write.h — an object written by the field table that reads it.
 *
 * Quantities come out exact, in the smallest unit ("1500000ps", "4096B"), so that
 * reading gives back the same bits. A field is left out if it equals that of
 * `blank`, which is what reading starts from, and if its value is one that no text
 * stands for (0 for "the default" where 0 is out of range, a name that is not in
 * the list, NULL). */
#ifndef LS_DATA_TEXT_FIELD_WRITE_H
#define LS_DATA_TEXT_FIELD_WRITE_H

#include "data/text/field.h"
#include "data/text/json_out.h"

/* The members of an object, whose braces the caller writes; blank may be NULL.
 * Elements of ARRAY and values of ROW are on a line each. IGNORED, SOURCES, RATE and
 * FLOPS are not written: nothing needs it yet. */
void ls_fields_write (const LsField *fields, LsJsonOut *w, const void *target, const void *blank);

/* The value of one simple field (no list of objects) as the text of its flag; NULL if
 * ls_fields_write() would leave it out. Newly allocated. */
char *ls_field_text (const LsField *field, const void *target, const void *blank);

#endif
