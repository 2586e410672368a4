/* cluster/spec.h — what the builder needs to know of a spec (private to
 * cluster/): copies, legality, and the sizes that follow from it. */
#ifndef LS_CLUSTER_SPEC_H
#define LS_CLUSTER_SPEC_H

#include <math.h>

#include "cluster/cluster.h"

/* A guard against typing errors, far above any machine: 2^20. */
#define LS_CLUSTER_MAX_GPUS (1u << 20)

void ls_cluster_spec_copy (const LsClusterSpec *spec, LsClusterSpec *ret_copy);

/* LS_ERROR_CONFLICT: counts that do not deal out evenly, links without a rate;
 * LS_ERROR_LIMIT: more GPUs than LS_CLUSTER_MAX_GPUS. */
gboolean ls_cluster_spec_validate (const LsClusterSpec *spec, GError **error);

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
