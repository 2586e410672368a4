/* data/machines/write_cluster.h — a cluster's file with some of it changed, as a file of its own. */
#ifndef LS_DATA_MACHINES_WRITE_CLUSTER_H
#define LS_DATA_MACHINES_WRITE_CLUSTER_H

#include "data/text/json_doc.h"

/* The document as our files are indented, newly allocated. */
char *ls_cluster_print (const cJSON *root);

/* A GPU that the cluster names becomes an object in it: paths in an object are found from where the file is.
 * Takes doc; NULL: diagnostics. */
LsJsonDoc *ls_cluster_with_own_gpu (LsJsonDoc *doc, LsDiagList *diags);

/* `base` (a cluster; taken, freed) with changes as of data/text/override.h (char *), under another name, with
 * its source. Newly allocated; NULL: diagnostics. */
char *ls_cluster_changed_to_json (LsJsonDoc *base, const GPtrArray *changes, const char *name,
                                  const char *source, LsDiagList *diags);

#endif
