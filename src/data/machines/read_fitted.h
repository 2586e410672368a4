/* data/machines/read_fitted.h — the key "fitted" of a cluster file: what runs on the cluster itself say about
 * it (private to io/). */
#ifndef LS_DATA_MACHINES_READ_FITTED_H
#define LS_DATA_MACHINES_READ_FITTED_H

#include "cluster/cluster.h"
#include "data/text/field.h"

extern const LsField ls_fitted_fields[]; /* offsets in LsClusterSpec */

/* What keys by themselves do not show: a range has two ends in order, and as many runs as it takes. */
bool ls_fitted_finish (const LsJsonDoc *doc, const LsFitted *fitted, LsDiagList *diags);

#endif
