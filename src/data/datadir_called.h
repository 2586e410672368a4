/* data/datadir_called.h — names of data files as people write them: in other case, with blanks, or as a cloud
 * calls a cluster ("also" in its file). Private to data. */
#ifndef LS_DATA_DATADIR_CALLED_H
#define LS_DATA_DATADIR_CALLED_H

#include "data/datadir.h"

/* As names are compared: in lower case, each run of blanks, dots, dashes and underscores as one dash.
 * "GB300 NVL72" is "gb300-nvl72". Newly allocated. */
char *ls_data_folded (const char *name);

/* The file of that kind whose name is the same but for that, or of a cluster that has it in "also" or among
 * its "slices"; the first of ls_data_list(). Newly allocated; NULL: none. */
char *ls_data_find_called (LsDataKind kind, const char *name);

/* What the name changes in the cluster that was found for it, as data/text/override.h has changes: of
 * "v5p-1024", which is among its "slices", "node.torus.slice=[8,8,8]". Newly allocated; NULL: nothing. */
char *ls_data_slice_named (const char *path, const char *name);

/* Of a name of no cluster that names an accelerator, alone or among other words ("H100", "A100-SXM4-80GB"): a
 * sentence with the clusters that have one, newly allocated. NULL: it names none. */
char *ls_data_clusters_with (const char *name);

#endif
