/* cluster/ways.h — ways through a small graph, found by search and tabled (private to
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
#ifndef LS_CLUSTER_WAYS_H
#define LS_CLUSTER_WAYS_H

#include "cluster/cluster.h"
#include "cluster/route.h"

#define LS_WAYS_NONE UINT32_MAX

typedef struct LsWays LsWays;

/* kinds of n_vertices; links among them, whose trunks are what the ways consist of. From
 * each of the first list to each of the second; equal ends have an empty way. */
LsWays *ls_ways_new (const LsNodeKind *kinds, uint32_t n_vertices, const LsLink *links, uint32_t n_links,
                     const uint32_t *from, uint32_t n_from, const uint32_t *to, uint32_t n_to);
void ls_ways_free (LsWays *ways); /* NULL allowed */

/* Of from[i] to to[j]: sum of weights, LS_WAYS_NONE if there is no way; number of hops;
 * and the hops, which are appended (nothing where there is no way). */
uint32_t ls_ways_length (const LsWays *ways, uint32_t i, uint32_t j);
uint32_t ls_ways_n_hops (const LsWays *ways, uint32_t i, uint32_t j);
void ls_ways_append (const LsWays *ways, uint32_t i, uint32_t j, LsRoute *route);

#endif
