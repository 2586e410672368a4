/* analysis/critical_link.h — which link limits a call, and how it is run.
 *
 * Of all links that a call loads, the one that would need longest for its bytes if it carried
 * nothing else: sum over phases of demand * flows that cross it / capacity. Where NCCL itself
 * is slower than all links, that is less than the time in which the data move. */
#ifndef LS_ANALYSIS_CRITICAL_LINK_H
#define LS_ANALYSIS_CRITICAL_LINK_H

#include "cluster/cluster.h"
#include "exec/timeline.h"
#include "network/coll.h"

typedef struct {
  LsTime latency;   /* of all phases                          */
  uint32_t link;    /* resource; UINT32_MAX: it loads none    */
  uint32_t n_links; /* as long as this one, which is the first */
  double busy_s;
  const char *algorithm, *protocol; /* of collectives: "ring", "Simple"; static; NULL: not known */
} LsCallLimit;

typedef struct LsCallLimits LsCallLimits;

/* Borrows all. With cluster or nccl NULL nothing is known of any call. */
LsCallLimits *ls_call_limits_new (const LsPlan *plan, const LsCluster *cluster, const LsNccl *nccl);
void ls_call_limits_free (LsCallLimits *l); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsCallLimits, ls_call_limits_free)

/* A collective of the rank; a transfer from one rank to another; a copy of the rank. */
LsCallLimit ls_limit_of_call (LsCallLimits *l, uint32_t rank, const LsOp *op);
LsCallLimit ls_limit_of_transfer (LsCallLimits *l, uint32_t from, uint32_t to, uint64_t bytes);
LsCallLimit ls_limit_of_copy (LsCallLimits *l, uint32_t rank, const LsOp *op);

#endif
