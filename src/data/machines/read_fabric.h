/* data/machines/read_fabric.h — of a cluster file, what joins the nodes, and what of it is broken
 * (private to io/). Which links exist, and whether a list joins all, is for
 * ls_cluster_build() to say. */
#ifndef LS_DATA_MACHINES_READ_FABRIC_H
#define LS_DATA_MACHINES_READ_FABRIC_H

#include "cluster/cluster.h"
#include "data/text/field.h"

extern const LsField ls_fabric_fields[]; /* offsets in an LsClusterSpec */

/* After the fields of the file are read: keys that only some kinds of fabric need or
 * have, and the object "faults", into spec->faults. */
bool ls_fabric_finish (const LsJsonDoc *doc, LsClusterSpec *spec, LsDiagList *diags);

#endif
