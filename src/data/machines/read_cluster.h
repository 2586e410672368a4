/* data/machines/read_cluster.h — topologies/NAME.json: a cluster, with its accelerator, which
 * is found by name. Whether its counts deal out evenly is for
 * ls_cluster_build() to say. */
#ifndef LS_DATA_MACHINES_READ_CLUSTER_H
#define LS_DATA_MACHINES_READ_CLUSTER_H

#include "cluster/cluster.h"
#include "data/text/field.h"

extern const LsField ls_cluster_fields[];
extern const LsField ls_link_fields[]; /* of an LsLinkSpec */

/* By name or path; what ends in ".xml" is a topology file of NCCL. On success the caller clears *ret_spec; on
 * failure it is untouched and diags says why (LS_ERROR_INPUT). */
bool ls_cluster_load (const char *name, LsClusterSpec *ret_spec, LsDiagList *diags);
/* The link of which "node.nics.link" or a key inside it, "node.nics.link.bandwidth", speaks; NULL: of
 * none. */
const LsLinkSpec *ls_cluster_link_at (const LsClusterSpec *spec, const char *path);
bool ls_cluster_read (const LsJsonDoc *doc, LsClusterSpec *ret_spec, LsDiagList *diags);

#endif
