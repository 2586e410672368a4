/* network/call_times.h — what calls take alone, each kind of place asked once.
 *
 * Two groups take the same time if one is the other shifted: by whole nodes for a group in a node; along
 * the axes of a torus, the links of which are alike, for one in a slice that goes round no edge that the
 * other does not (cluster/torus.h: a carry from one axis to the next would tell them apart). What is known
 * is thus looked up by the places of the members relative to the first. Elsewhere, and where links are
 * degraded or nodes are of several kinds, by the GPUs themselves. */
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
