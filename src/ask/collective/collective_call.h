/* ask/collective/collective_call.h — one collective alone on a cluster: names as people write
 * them, and the time of a call (private). */
#ifndef LS_ASK_COLLECTIVE_COLLECTIVE_CALL_H
#define LS_ASK_COLLECTIVE_COLLECTIVE_CALL_H

#include "ask/collective/collective_table.h"
#include "cluster/cluster.h"
#include "network/coll.h"

/* A fidelity of the network. */
typedef struct {
  const char *name;
  LsNetworkFidelity fidelity;
} LsCollectiveNetwork;

/* The fidelity of that name, or all for "all"; static. LS_ERROR_USAGE. */
gboolean ls_collective_find_networks (const char *name, const LsCollectiveNetwork **ret_networks,
                                      guint *ret_n, GError **error);

/* The kind of an operation: the names of network/coll.h, and "p2p" for send-recv.
 * LS_ERROR_USAGE that says what was probably meant. */
gboolean ls_collective_find_kind (const char *op, LsCollKind *ret_kind, GError **error);
/* Whether there is such an algorithm: LS_ERROR_USAGE. */
gboolean ls_collective_check_algorithm (const char *algorithm, GError **error);

/* Messages that it takes one by one, 0 with a fidelity that plans them together. LS_ERROR_LIMIT,
 * LS_ERROR_CONFLICT as of the next. */
gboolean ls_collective_count (const LsCluster *c, const LsNccl *nccl, const LsCollRequest *request,
                              const LsCollectiveNetwork *network, uint64_t *ret_n, GError **error);

/* Fills algorithm, protocol, network, n_ranks, bytes, time and bus_factor. progress: of the messages counted
 * above; or NULL. LS_ERROR_CONFLICT: the algorithm does not do this. */
gboolean ls_collective_time (const LsCluster *c, const LsNccl *nccl, const LsCollRequest *request,
                             const LsCollectiveNetwork *network, const LsProgress *progress,
                             LsCollectiveRow *row, GError **error);

#endif
