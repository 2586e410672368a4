/* cluster/spec.h — what the builder needs to know of a spec (private to
 * cluster/): copies, limits, and the sizes that follow from it. */
#ifndef LS_CLUSTER_SPEC_H
#define LS_CLUSTER_SPEC_H

#include <math.h>

#include "cluster/cluster.h"

/* Guards against typing errors, far above any machine: GPUs; leaves, and uplinks of
 * one leaf, which are its spines; links of the graph, each direction one (2^20 GPUs
 * in DGX H100 nodes have a third of that; a link takes 48 bytes). */
#define LS_CLUSTER_MAX_GPUS (1u << 20)
#define LS_CLUSTER_MAX_FABRIC 65536
#define LS_CLUSTER_MAX_LINKS (1u << 26)

void ls_cluster_spec_copy (const LsClusterSpec *spec, LsClusterSpec *ret_copy);

/* Of a valid spec. One leaf needs no spine. A leaf has one uplink to each
 * spine; their number follows from the oversubscription:
 *
 *     spines = (NICs of a leaf * NIC capacity) / oversubscription / uplink capacity
 */
uint32_t ls_cluster_n_leaves (const LsClusterSpec *spec);
uint32_t ls_cluster_n_spines (const LsClusterSpec *spec);

/* Payload bytes/s of one physical link, one direction. */
static inline double
ls_link_capacity (const LsLinkSpec *link)
{
  return link->bandwidth_bytes_per_s * link->efficiency;
}

#endif
