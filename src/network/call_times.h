/* network/call_times.h — what calls take alone, each kind of place asked once.
 *
 * Two groups take the same time if they lie alike (cluster/lie.h). In a slice of a torus they do if one is
 * the other shifted along the axes, the links of which are alike, and goes round no edge that the other
 * does not (cluster/torus.h: a carry from one axis to the next would tell them apart). In other clusters
 * without places they do if one is the other shifted by whole nodes, inside of a node, and if no link is
 * degraded and nodes are of one kind; else it is the GPUs themselves that count. */
#ifndef LS_NETWORK_CALL_TIMES_H
#define LS_NETWORK_CALL_TIMES_H

#include "network/coll.h"

/* For any clusters that outlive it, with one NCCL. One thread at a time. */
typedef struct LsCallTimes LsCallTimes;
LsCallTimes *ls_call_times_new (const LsNccl *nccl); /* borrowed */
/* Of links alone, memory being of any bandwidth: ls_coll_time_on_links (). For what bounds a run. */
LsCallTimes *ls_call_times_new_on_links (const LsNccl *nccl);
void ls_call_times_free (LsCallTimes *times); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsCallTimes, ls_call_times_free)

/* gpus ascend, but for a message back. 0: it cannot be carried out, or is too large to be planned. */
LsTime ls_call_time (LsCallTimes *times, const LsCluster *cluster, LsCollKind kind, uint64_t bytes,
                     const uint32_t *gpus, uint32_t n);

#endif
