/* show/catalog.h — what there is to simulate, and whether a file of it is right. */
#ifndef LS_SHOW_CATALOG_H
#define LS_SHOW_CATALOG_H

#include <glib.h>

#include "base/diag.h"

/* kind: "models", "clusters", "gpus", "strategies", "traces", "schedules"; NULL: all. Newly
 * allocated text; LS_ERROR_USAGE for another kind. A file that is wrong is listed
 * as such. */
char *ls_catalog_list (const char *kind, GError **error);
/* The same as JSON. */
char *ls_catalog_to_json (const char *kind, GError **error);

/* A file that was read. */
typedef struct {
  char *path, *about; /* what it holds; NULL: it is wrong                                              */
  LsDiagList *diags;  /* mistakes with their places; none where `problem` alone says what is wrong     */
  GError *problem;    /* all of them as a text: LS_ERROR_INPUT, LS_ERROR_CONFLICT, LS_ERROR_UNSUPPORTED */
} LsCheckedFile;

/* Reads one file and, if it holds a strategy and model and cluster are given (both
 * or neither), resolves and lowers it against them. Newly allocated. */
LsCheckedFile *ls_catalog_check (const char *path, const char *model, const char *cluster);
void ls_checked_file_free (LsCheckedFile *f); /* NULL allowed */
/* GPtrArray of LsCheckedFile: a line for each that is right; all, with what is wrong (lockstep.check/1).
 * Newly allocated. */
char *ls_checked_files_to_text (const GPtrArray *files);
char *ls_checked_files_to_json (const GPtrArray *files);

/* --- schemas ------------------------------------------------------------------------------------- */

/* JSON Schemas of all JSON of ours, read or written; of what is written, generate.py
 * makes them of result_keys.txt. */

/* A schema as a JSON document. name: "run" or "lockstep.run/1". Newly allocated; NULL with LS_ERROR_USAGE:
 * there is none of that name. */
char *ls_schema_to_json (const char *name, GError **error);
/* What there is, as text. Newly allocated. */
char *ls_schemas_list (void);

#endif
