/* data/file_schemas.h — the kinds of files of ours, and what each may hold, as JSON Schema by the tables that
 * read them (data/text/field.h). */
#ifndef LS_DATA_FILE_SCHEMAS_H
#define LS_DATA_FILE_SCHEMAS_H

#include "data/text/json_out.h"

#include <glib.h>

/* As the "schema" of a file has it: "model" of "lockstep.model/1". Static; NULL behind the last. */
const char *ls_file_schema_kind (guint i);
/* What it is, in words; static. */
const char *ls_file_schema_meaning (guint i);
/* The members of its schema, whose braces the caller writes. */
void ls_file_schema_write (guint i, LsJsonOut *w);

#endif
