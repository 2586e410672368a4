/* show/catalog.h — what there is to simulate, and whether a file of it is right. */
#ifndef LS_SHOW_CATALOG_H
#define LS_SHOW_CATALOG_H

#include <glib.h>

/* kind: "models", "clusters", "gpus", "strategies", "traces", "schedules"; NULL: all. Newly
 * allocated text; LS_ERROR_USAGE for another kind. A file that is wrong is listed
 * as such. */
char *ls_catalog_list (const char *kind, GError **error);
/* The same as JSON. */
char *ls_catalog_to_json (const char *kind, GError **error);

/* Reads one file and, if it holds a strategy and model and cluster are given (both
 * or neither), resolves and lowers it against them. Newly allocated line without
 * newline; LS_ERROR_INPUT, LS_ERROR_CONFLICT, LS_ERROR_UNSUPPORTED. */
char *ls_catalog_check (const char *path, const char *model, const char *cluster, GError **error);

#endif
