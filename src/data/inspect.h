/* data/inspect.h — what does this file hold, and is it right? */
#ifndef LS_DATA_INSPECT_H
#define LS_DATA_INSPECT_H

#include "base/diag.h"
#include "data/datadir.h"
#include "data/text/json_out.h"

/* Reads a file of the kind that its "schema" names, a Hugging Face model if it has none, or what shows a
 * machine (data/text/lookalike.h), with all checks, also whether a cluster can be built. What it holds is
 * returned in a line ("model, 96 layers, 174.6e9 parameters"), newly allocated, or NULL with diagnostics.
 * *ret_kind: as the "schema" of a file has it, "model" of "lockstep.model/1"; static. */
char *ls_inspect_file (const char *path, const char **ret_kind, LsDiagList *diags);

/* The same of one file of ours, which is taken. */
char *ls_inspect_doc (LsJsonDoc *doc, const char **ret_kind, LsDiagList *diags);

/* The kinds of files of ours, and what each may hold, as JSON Schema by the tables that read them
 * (data/text/field.h). */

/* As the "schema" of a file has it. Static; NULL behind the last. */
const char *ls_file_schema_kind (guint i);
/* What it is, in words; static. */
const char *ls_file_schema_meaning (guint i);
/* The members of its schema, whose braces the caller writes. */
void ls_file_schema_write (guint i, LsJsonOut *w);

#endif
