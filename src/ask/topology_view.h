/* ask/topology_view.h — a cluster from its file, described, with ways that were asked for. */
#ifndef LS_ASK_TOPOLOGY_VIEW_H
#define LS_ASK_TOPOLOGY_VIEW_H

#include "analysis/topology.h"
#include "base/diag.h"
#include "job/job.h"

typedef struct {
  LsCluster *cluster;
  LsTopoMap *map;
  GPtrArray *paths; /* LsTopoPath */
} LsTopologyRun;

/* Of spec only cluster, n_nodes, slice and strategy.gpus count: that many nodes, or as
 * many as hold the GPUs, or the file's. paths: "A,B", each a GPU of the cluster or such as
 * "node1/gpu3"; NULL-terminated; NULL: none. lists: the option that asks for every single link, NULL: none
 * does; LS_ERROR_LIMIT: there are more than LS_TOPOLOGY_MAX_LISTED.
 *
 * LS_ERROR_USAGE: no cluster, a malformed path, one from a GPU to itself; LS_ERROR_INPUT: a file;
 * LS_ERROR_CONFLICT: it cannot be built, its nodes do not hold the GPUs, or it has no such GPU. */
#define LS_TOPOLOGY_MAX_LISTED 1000000
LsTopologyRun *ls_topology_run_new (const LsJobSpec *spec, const char *const *paths, const char *lists,
                                    GError **error);
void ls_topology_run_free (LsTopologyRun *run); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsTopologyRun, ls_topology_run_free)

#endif
