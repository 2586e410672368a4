/* cluster/index.h — where vertices and trunks lie (private to cluster/).
 *
 * Every node is laid out alike, so that ids follow from counts and no table over the
 * cluster is needed:
 *
 *     vertices   interior of node 0, of node 1, .., then the switches of the fabric
 *     trunks     node 0: interior, NIC ports; node 1: ..; then those of the fabric */
#ifndef LS_CLUSTER_INDEX_H
#define LS_CLUSTER_INDEX_H

#include "cluster/cluster.h"
#include "cluster/fabric.h"
#include "cluster/interior.h"

typedef struct LsTopoIndex {
  LsInterior *interior;
  LsFabric *fabric;
  uint32_t trunks_per_node;                /* of the interior and the fabric */
  uint32_t links_per_node, interior_links; /* of each node; the latter come first */
  GStringChunk *names;
  uint32_t *proxies;            /* of a node without faults (proxy.h); NULL: no PXN       */
  GHashTable *faulty_nodes;     /* host > LsNodeFaults (faults.h); NULL: none             */
  bool has_failed_switch_links; /* between switches of the fabric                         */
} LsTopoIndex;

static inline bool
ls_trunk_is_failed (const LsCluster *c, uint32_t trunk)
{
  return g_array_index (c->trunks, LsTrunk, trunk).is_failed;
}

/* Trunk i of those that the fabric laid out with this node. */
static inline uint32_t
ls_node_trunk (const LsCluster *c, uint32_t host, uint32_t i)
{
  return host * c->index->trunks_per_node + c->index->interior->n_trunks + i;
}

static inline uint32_t
ls_gpu_vertex (const LsCluster *c, uint32_t gpu)
{
  const LsInterior *in = c->index->interior;
  return gpu / c->spec.gpus_per_node * in->n_vertices + in->v_gpu + gpu % c->spec.gpus_per_node;
}

static inline uint32_t
ls_nic_vertex (const LsCluster *c, uint32_t host, uint32_t nic)
{
  const LsInterior *in = c->index->interior;
  return host * in->n_vertices + in->v_nic + nic;
}

/* One more trunk on the way, taken by all of the flow. */
static inline void
ls_route_hop (LsRoute *r, uint32_t trunk, LsTime latency)
{
  g_assert (r->n_hops < LS_ROUTE_MAX_HOPS);
  r->hop[r->n_hops++] = (LsHop) { .trunk = trunk, .share = LS_HOP_WHOLE };
  r->latency += latency;
}

#endif
