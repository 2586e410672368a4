/* show/schema/schemas.h — JSON Schemas of all JSON of ours, read or written. */
#ifndef LS_SHOW_SCHEMA_SCHEMAS_H
#define LS_SHOW_SCHEMA_SCHEMAS_H

#include <glib.h>

#include "data/text/json_out.h"

/* A schema as a JSON document. name: "run" or "lockstep.run/1". Newly allocated; NULL with LS_ERROR_USAGE:
 * there is none of that name. */
char *ls_schema_to_json (const char *name, GError **error);
/* What there is, as text. Newly allocated. */
char *ls_schemas_list (void);

/* --- of what is written ----------------------------------------------------------------------------- */

/* The keys of JSON that is written, by schema: result_keys.txt, which lies in
 * the program. */

/* A row of the table. All is borrowed from the list that it is in. */
typedef struct {
  char **keys;         /* each with its way: "memory.headroom.parts[].what"            */
  char **types;        /* of each key, or one of all: "string/null"                     */
  const char *shown;   /* the keys as they are written there: "links[].name .bytes"     */
  const char *meaning; /* "": an object or a list that need not be there, or more of the row before */
} LsResultRow;

/* The rows of a schema, "run" of lockstep.run/1; LsResultRow, freed with the list. NULL: there is none. */
GPtrArray *ls_result_rows (const char *name);
/* The names of the schemas, in the order of the file, and what each is; both newly allocated lists. */
char **ls_result_schema_names (char ***ret_meanings);
/* The members of the JSON Schema of one of them, whose braces the caller writes. Keys that it does not have
 * are allowed: later releases may add some. */
void ls_result_schema_write (const char *name, LsJsonOut *w);

#endif
