/* cluster/route.h — the trunks that a flow between two GPUs crosses.
 *
 * Same host: over NVLink where there is a way, else over PCIe. Other host: GPU > its
 * NIC > fabric > NIC > GPU, spread ideally over parallel links or hashed onto one of them
 * (fabric.h). A GPU sends through its own NIC (affinity: the interior says which), or with
 * PXN through the GPU whose NIC is on the rail of the receiver's (below); nic_from and
 * nic_to override it. What has failed is routed around (faults.h).
 *
 * ls_route() puts together what the interior and the fabric know: O(hops), no search,
 * no allocation. The tests hold it against shortest paths over all links, split over all of
 * them (tests/support/route_bfs.h), trunk by trunk. */
#ifndef LS_CLUSTER_ROUTE_H
#define LS_CLUSTER_ROUTE_H

#include "base/arena.h"
#include "cluster/cluster.h"

/* Trunks of a way: in both nodes together, between them, and in all. */
#define LS_ROUTE_MAX_INTERIOR 256
#define LS_ROUTE_MAX_FABRIC   130
#define LS_ROUTE_MAX_HOPS     (LS_ROUTE_MAX_INTERIOR + LS_ROUTE_MAX_FABRIC)
#define LS_NIC_AUTO           UINT32_MAX

/* One trunk, and how much of the flow takes it: LS_HOP_WHOLE where there is one way,
 * less where the flow is split over several. */
typedef struct {
  uint32_t trunk, share;
} LsHop;
#define LS_HOP_WHOLE (1u << 20)

typedef struct {
  uint32_t n_hops;
  LsTime latency;               /* sum over the links of one path, the slowest where it is split */
  LsHop hop[LS_ROUTE_MAX_HOPS]; /* in order of travel, each trunk once */
} LsRoute;

/* A flow: its ends, and what tells it apart from others between the same two. */
typedef struct {
  uint32_t gpu_from, gpu_to;
  uint32_t nic_from, nic_to; /* within the host, or LS_NIC_AUTO; ignored on the same host */
  uint32_t channel;          /* tells flows apart where switches hash; else ignored       */
} LsRouteEnds;

void ls_route_ends (const LsCluster *c, const LsRouteEnds *ends, LsRoute *ret_route);

/* The same over LS_NIC_AUTO. from == to gives an empty route. */
void ls_route (const LsCluster *c, uint32_t gpu_from, uint32_t gpu_to, uint32_t channel, LsRoute *ret_route);

/* Within a slice of a torus: dimension-ordered, beginning with first_axis and going on
 * in cyclic order (ls_route() begins with x). */
void ls_route_torus (const LsCluster *c, uint32_t gpu_from, uint32_t gpu_to, uint32_t first_axis,
                     LsRoute *ret_route);

/* Between a GPU and the memory of its CPU: GPU > PCIe switch > CPU > memory, or back. A
 * host without described CPUs ends at the PCIe switch; without PCIe the route is empty. */
void ls_route_host_memory (const LsCluster *c, uint32_t gpu, bool is_to_host, LsRoute *ret_route);

/* Between a GPU and its NVMe drive (drives are dealt to GPUs as NICs are), as GPUDirect
 * Storage goes: GPU > PCIe switch > drive, or back; over the CPUs if the drive is at
 * another switch. Only where ls_cluster_has_nvme(). */
bool ls_cluster_has_nvme (const LsCluster *c);
void ls_route_nvme (const LsCluster *c, uint32_t gpu, bool is_to_nvme, LsRoute *ret_route);

/* Through which a GPU sends and receives, within its host: by affinity, the next that works. */
uint32_t ls_nic_of_gpu (const LsCluster *c, uint32_t gpu);
/* Whether a GPU reaches the NIC of another one of its host, the owner, over no more trunks than the owner
 * does, as where both are at one PCIe switch. */
bool ls_gpu_is_as_near_to_nic_of (const LsCluster *c, uint32_t owner, uint32_t gpu);
/* The GPU whose NIC carries what gpu_from sends to gpu_to: itself, but with PXN. */
uint32_t ls_route_proxy (const LsCluster *c, uint32_t gpu_from, uint32_t gpu_to);
/* Whether all GPUs of the host are joined by NVSwitch, as NVLS needs. */
bool ls_host_has_nvswitch (const LsCluster *c, uint32_t host);
/* Whether NVLinks join GPUs straight, on any host; how many lead from one GPU to another of
 * its host, those that work: 0 where it takes more than one hop. */
bool ls_cluster_has_gpu_links (const LsCluster *c);
uint32_t ls_gpu_links (const LsCluster *c, uint32_t gpu_from, uint32_t gpu_to);

/* Private to cluster/: parts of a route, with numbers within the host: between two accelerators; from one to
 * a NIC and back; to the memory of its CPU and back; to its NVMe drive and back. */
typedef enum {
  LS_LEG_WITHIN,
  LS_LEG_TO_NIC,
  LS_LEG_FROM_NIC,
  LS_LEG_TO_MEMORY,
  LS_LEG_FROM_MEMORY,
  LS_LEG_TO_NVME,
  LS_LEG_FROM_NVME
} LsLeg;

/* Of the first three, from and to as the leg goes. Appended; false and nothing if no way works. */
bool ls_route_leg (const LsCluster *c, uint32_t host, LsLeg leg, uint32_t from, uint32_t to, LsRoute *route);
/* The hops from `first` on become the way back. */
void ls_route_turn_back (LsRoute *route, uint32_t first);

/* Which GPU sends for which (private to cluster/): PXN. With rails, a
 * message to a NIC on another rail goes over NVLink to a GPU whose own NIC is on that rail,
 * and so crosses one leaf instead of the spines.
 *
 * Rule: a GPU whose own NIC is on the rail sends itself. Of the others of its node whose NIC
 * is, and to which NVLink leads, GPU i takes the (i mod n)-th. Without any it sends itself.
 *
 * Reference: NCCL 2.30.7 src/graph/paths.cc. Deviation: NCCL also asks whether the NIC is nearer to the other
 * GPU than PCIe allows. Without GPUDirect there is no PXN. */

/* [GPUs of the node * rails], GPUs of the node; NULL where PXN makes no difference: switched
 * off, one rail, no NVLink, or chips of a torus. Lives as long as the cluster. */
uint32_t *ls_proxies_new (const LsCluster *c, uint32_t host);

/* Ways through a small graph, found by search and tabled (private to
 * cluster/). For what no arithmetic describes: NVLink meshes, explicit lists,
 * nodes with faults.
 *
 * A way is all shortest paths, by the sum of link weights: NVLink 2, all others 4, so
 * that one hop over an NVSwitch (4) beats anything over PCIe (8 and more). At each
 * vertex the flow splits over its onward links in proportion to their capacity. GPUs,
 * NICs, drives and memories do not forward, with one exception, NCCL's NVB: where it is
 * shorter (5), a flow between two GPUs crosses the GPUs that are joined to both by NVLink.
 *
 * Shares are in 2^-20; at each split they add up exactly. */

#define LS_WAYS_NONE UINT32_MAX

typedef struct LsWays LsWays;

/* n vertices, from `first` on. */
typedef struct {
  uint32_t first, n;
} LsVertices;

/* kinds of n_vertices; links among them, whose trunks are what the ways consist of. From
 * each of the ones to each of the others; equal ends have an empty way. In arena. */
LsWays *ls_ways_new (const LsNodeKind *kinds, uint32_t n_vertices, const LsLink *links, uint32_t n_links,
                     LsVertices from, LsVertices to, LsArena *arena);

/* Of the i-th to the j-th: sum of weights, LS_WAYS_NONE if there is no way; number of hops;
 * and the hops, which are appended (nothing where there is no way). */
uint32_t ls_ways_length (const LsWays *ways, uint32_t i, uint32_t j);
uint32_t ls_ways_n_hops (const LsWays *ways, uint32_t i, uint32_t j);
void ls_ways_append (const LsWays *ways, uint32_t i, uint32_t j, LsRoute *route);

/* Such links, there and back: of trunks `trunk` and the next, so many as one. */
void ls_ways_links (const LsLinkSpec *spec, uint32_t count, uint32_t trunk, uint32_t from, uint32_t to,
                    LsLink ret_links[2]);
/* Links by the end where they begin, or end: those of v are ret_links[ret_first[v]] .. before the next one's
 * first. */
void ls_ways_index (const LsLink *links, uint32_t n_links, uint32_t n_vertices, bool by_from,
                    uint32_t *ret_first, uint32_t *ret_links);
/* Whether a link between such vertices is an NVLink. */
static inline bool
ls_ways_is_nvlink (LsNodeKind from, LsNodeKind to)
{
  return from == LS_NODE_NVSWITCH || to == LS_NODE_NVSWITCH || (from == LS_NODE_GPU && to == LS_NODE_GPU);
}
/* The same of one that is laid out. */
bool ls_link_is_nvlink (const LsCluster *c, const LsLink *link);

#endif
