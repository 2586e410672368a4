/* cluster/nvlink_mesh.h — GPUs of a node joined straight by NVLinks (private to cluster/):
 * which pairs, and the ways over them. */
#ifndef LS_CLUSTER_NVLINK_MESH_H
#define LS_CLUSTER_NVLINK_MESH_H

#include "cluster/cluster.h"
#include "cluster/ways.h"

/* A table of pairs is kept; more ports than any GPU has. */
#define LS_MESH_MAX_GPUS 64

/* Whether the mesh can be built: its shape fits the number of GPUs, no pair twice; and,
 * without PCIe, whether any two GPUs are joined or have a common neighbour. */
gboolean ls_mesh_check (const LsClusterSpec *spec, bool has_pcie, GError **error);

/* Pairs of GPUs that are joined. */
double ls_mesh_n_links (const LsClusterSpec *spec);

/* LsMeshLink, a < b, by a then b. Free with g_array_unref(). */
GArray *ls_mesh_links (const LsClusterSpec *spec);

/* From any GPU to any; trunk 2 i is link i from a to b, 2 i + 1 back. */
LsWays *ls_mesh_ways (const LsClusterSpec *spec, const GArray *mesh_links);

#endif
