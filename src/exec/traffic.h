/* exec/traffic.h — what moves between nodes and is of no job: checkpoints, storage.
 *
 * Problem. Jobs share the fabric with traffic that nobody replays op by op, and that does not wait for them.
 *
 * Model. So many bytes from one node to another, over and over: begun every period, or, where one is not over
 * by then, right behind it; with no period one behind the other, without end. They are spread evenly over the
 * NICs of the two nodes, which move together: one activity with a flow for each NIC, from the sender's NIC
 * over the fabric to the receiver's,
 *
 *     bytes / NICs on each flow,   rate <= min (rate asked for, capacity of each link alone)
 *
 * that shares links with the flows of jobs by the same rules (core/maxmin.h).
 *
 * Worked example. 20 GB every 2 s over two NICs of 25 GB/s: 10 GB on each, 0.4 s where nothing else moves,
 * 0.8 s beside a flow that takes half of each.
 *
 * Deviations. Inside the nodes nothing is loaded: no memory, no PCIe. No latency. A slow NIC slows all.
 * Storage is a node that stands for it; a network of its own is none of ours. */
#ifndef LS_EXEC_TRAFFIC_H
#define LS_EXEC_TRAFFIC_H

#include "cluster/cluster.h"
#include "network/coll.h"

typedef struct {
  uint32_t node_from, node_to; /* two of the cluster */
  uint64_t bytes;              /* > 0 */
  LsTime period;               /* 0: one behind the other */
  LsTime start;
  double rate; /* bytes/s at most, 0: any */
} LsTraffic;

/* What one of them loads, in arena: demand_bytes and rate_cap of one flow, of *ret_n_flows. NULL: the nodes
 * have no NICs, or there is no way. */
LsPhase *ls_traffic_phase (const LsCluster *c, const LsTraffic *t, uint32_t *ret_n_flows, LsArena *arena);

#endif
