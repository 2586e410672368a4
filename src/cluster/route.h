/* cluster/route.h — the trunks that a flow between two GPUs crosses.
 *
 * Same host: over NVSwitch where there is one, else over PCIe. Other host: GPU >
 * PCIe switch > NIC > leaf (> spine > leaf) > NIC > PCIe switch > GPU, spread
 * ideally over parallel links. A GPU sends through its own NIC: NIC
 * local_gpu * nics / gpus_per_node (affinity); via_nic overrides it.
 *
 * ls_route() follows from the shape: O(hops), no search, no allocation.
 * ls_route_bfs() is the plain reference: shortest paths over all links, split
 * over all of them. The tests hold the two against each other, trunk by trunk.
 *
 * Not modelled: PXN (NVLink to the GPU whose NIC is on the peer's rail). */
#ifndef LS_CLUSTER_ROUTE_H
#define LS_CLUSTER_ROUTE_H

#include "cluster/cluster.h"

#define LS_ROUTE_MAX_HOPS 64
#define LS_NIC_AUTO UINT32_MAX

/* One trunk, and how much of the flow takes it: LS_HOP_WHOLE where there is one way,
 * less where the flow is split over several. */
typedef struct {
  uint32_t trunk, share;
} LsHop;
#define LS_HOP_WHOLE (1u << 20)

typedef struct {
  uint32_t n_hops;
  LsTime latency; /* sum over the links of one path */
  LsHop hop[LS_ROUTE_MAX_HOPS]; /* in order of travel, each trunk once */
} LsRoute;

/* from == to gives an empty route. nic_from / nic_to: NIC index within the host
 * or LS_NIC_AUTO; ignored on the same host. */
void ls_route (const LsCluster *c, uint32_t gpu_from, uint32_t gpu_to, uint32_t nic_from,
               uint32_t nic_to, LsRoute *ret_route);

/* Between a GPU and the memory of the CPU behind its PCIe switch: GPU > PCIe switch >
 * CPU > memory, or back. A host without described CPUs ends at the PCIe switch; without
 * PCIe the route is empty. */
void ls_route_host_memory (const LsCluster *c, uint32_t gpu, bool is_to_host, LsRoute *ret_route);

/* Load on every trunk (array of c->trunks->len doubles, zeroed by the callee) of
 * one unit of flow split equally at each vertex over its shortest onward links
 * in proportion to their capacity. NVLink is preferred to PCIe by weight: a
 * path's length is its sum of link weights (NVLink 1, all others 2). GPUs do not
 * forward; of the NICs only the two GPUs' own carry the flow. */
void ls_route_bfs (const LsCluster *c, uint32_t gpu_from, uint32_t gpu_to, double *ret_load);

uint32_t ls_nic_of_gpu (const LsCluster *c, uint32_t gpu); /* within its host */

#endif
