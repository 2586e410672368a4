/* show/schema/schemas.h — JSON Schemas of all JSON of ours, read or written; of what is written, generate.py
 * makes them of result_keys.txt. */
#ifndef LS_SHOW_SCHEMA_SCHEMAS_H
#define LS_SHOW_SCHEMA_SCHEMAS_H

#include <glib.h>

/* A schema as a JSON document. name: "run" or "lockstep.run/1". Newly allocated; NULL with LS_ERROR_USAGE:
 * there is none of that name. */
char *ls_schema_to_json (const char *name, GError **error);
/* What there is, as text. Newly allocated. */
char *ls_schemas_list (void);

#endif
