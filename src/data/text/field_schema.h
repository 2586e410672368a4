/* data/text/field_schema.h — what a field table reads, as JSON Schema (2020-12).
 *
 * It says what a key is called, its type, range, choices and pattern, and which keys there must be. What two
 * keys mean together is said by no table, and so by no schema: that is left to the reader. */
#ifndef LS_DATA_TEXT_FIELD_SCHEMA_H
#define LS_DATA_TEXT_FIELD_SCHEMA_H

#include "data/text/field.h"
#include "data/text/json_out.h"

/* The dialect: the value of "$schema". */
#define LS_JSON_SCHEMA_DIALECT "https://json-schema.org/draft/2020-12/schema"

/* The members of the schema of a file, whose braces the caller writes: an object of `fields` whose "schema"
 * is "lockstep.<kind>/1". extends: a file of the kind may name another under "extends"; then no key but the
 * first three must be there, and null takes one out. */
void ls_fields_schema (const LsField *fields, const char *kind, bool extends, LsJsonOut *w);

#endif
