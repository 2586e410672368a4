/* cluster/route.h — the trunks that a flow between two GPUs crosses.
 *
 * Same host: over NVLink where there is a way, else over PCIe. Other host: GPU > its
 * NIC > fabric > NIC > GPU, spread ideally over parallel links. A GPU sends through
 * its own NIC (affinity: the interior says which); nic_from and nic_to override it.
 *
 * ls_route() puts together what the interior and the fabric know: O(hops), no search,
 * no allocation. ls_route_bfs() is the plain reference: shortest paths over all links,
 * split over all of them. The tests hold the two against each other, trunk by trunk.
 *
 * Not modelled: PXN (NVLink to the GPU whose NIC is on the peer's rail). */
#ifndef LS_CLUSTER_ROUTE_H
#define LS_CLUSTER_ROUTE_H

#include "cluster/cluster.h"

#define LS_ROUTE_MAX_HOPS 256
#define LS_NIC_AUTO UINT32_MAX

/* One trunk, and how much of the flow takes it: LS_HOP_WHOLE where there is one way,
 * less where the flow is split over several. */
typedef struct {
  uint32_t trunk, share;
} LsHop;
#define LS_HOP_WHOLE (1u << 20)

typedef struct {
  uint32_t n_hops;
  LsTime latency; /* sum over the links of one path, the slowest where it is split */
  LsHop hop[LS_ROUTE_MAX_HOPS]; /* in order of travel, each trunk once */
} LsRoute;

/* A flow: its ends, and what tells it apart from others between the same two. */
typedef struct {
  uint32_t gpu_from, gpu_to;
  uint32_t nic_from, nic_to; /* within the host, or LS_NIC_AUTO; ignored on the same host */
  uint32_t channel;          /* seed for fabrics that hash flows; others ignore it       */
} LsRouteEnds;

void ls_route_ends (const LsCluster *c, const LsRouteEnds *ends, LsRoute *ret_route);

/* The same with channel 0. from == to gives an empty route. nic_from / nic_to: NIC index within the host
 * or LS_NIC_AUTO; ignored on the same host. */
void ls_route (const LsCluster *c, uint32_t gpu_from, uint32_t gpu_to, uint32_t nic_from,
               uint32_t nic_to, LsRoute *ret_route);

/* Within a slice of a torus: dimension-ordered, beginning with first_axis and going on
 * in cyclic order (ls_route() begins with x). */
void ls_route_torus (const LsCluster *c, uint32_t gpu_from, uint32_t gpu_to, uint32_t first_axis,
                     LsRoute *ret_route);

/* Between a GPU and the memory of its CPU: GPU > PCIe switch > CPU > memory, or back. A
 * host without described CPUs ends at the PCIe switch; without PCIe the route is empty. */
void ls_route_host_memory (const LsCluster *c, uint32_t gpu, bool is_to_host, LsRoute *ret_route);

/* Load on every trunk (array of c->trunks->len doubles, zeroed by the callee) of
 * one unit of flow split at each vertex over its shortest onward links in
 * proportion to their capacity. NVLink is preferred to PCIe by weight: a path's
 * length is its sum of link weights (NVLink 2, all others 4). A GPU forwards only
 * between two NVLinks, from the flow's first GPU straight to its last, at weight 1
 * (NCCL's NVB); of the NICs only the two GPUs' own carry the flow. */
void ls_route_bfs (const LsCluster *c, uint32_t gpu_from, uint32_t gpu_to, double *ret_load);

uint32_t ls_nic_of_gpu (const LsCluster *c, uint32_t gpu); /* within its host */

#endif
