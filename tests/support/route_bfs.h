/* tests/support/route_bfs.h — routing without knowing the shape: distances by
 * relaxing all links until nothing changes, then one unit of flow pushed down
 * the distances. Quadratic and proud of it; a reference for route.c.
 *
 * GPUs forward only between two NVLinks, from the first GPU to the last, and of the
 * NICs only those of the two GPUs carry the flow: affinity is a rule of the software,
 * not of the graph. */
#ifndef LS_TESTS_ROUTE_BFS_H
#define LS_TESTS_ROUTE_BFS_H

#include <string.h>

#include "cluster/index.h"
#include "cluster/route.h"

#define FAR (UINT32_MAX / 2)

static inline LsNodeKind
kind_of (const LsCluster *c, uint32_t v)
{
  return g_array_index (c->nodes, LsTopoNode, v).kind;
}

static inline bool
is_nvlink (const LsCluster *c, const LsLink *link)
{
  LsNodeKind from = kind_of (c, link->from), to = kind_of (c, link->to);
  return from == LS_NODE_NVSWITCH || to == LS_NODE_NVSWITCH || (from == LS_NODE_GPU && to == LS_NODE_GPU);
}

static inline uint32_t
gpu_vertex (const LsCluster *c, uint32_t gpu)
{
  uint32_t host = ls_cluster_host_of (c, gpu);
  return ls_first_vertex (c, host) + ls_interior_of (c, host)->v_gpu + ls_cluster_local_of (c, gpu);
}

/* What the flow may pass through on its way to `to`. */
typedef struct {
  uint32_t from, to, nic_from, nic_to; /* vertices */
} Ends;

static inline uint32_t
weight (const LsCluster *c, const Ends *ends, const LsLink *link)
{
  return (is_nvlink (c, link) ? 2 : 4) + (kind_of (c, link->to) == LS_NODE_GPU && link->to != ends->to);
}

/* dist is what is known so far: 2 for who has an NVLink to the last GPU. */
static inline bool
may_enter (const LsCluster *c, const Ends *ends, const LsLink *link, const uint32_t *dist)
{
  uint32_t v = link->to;
  if (ls_trunk_is_failed (c, link->trunk))
    return false;
  switch (kind_of (c, v)) {
  case LS_NODE_GPU:
    return v == ends->to || (link->from == ends->from && is_nvlink (c, link) && dist[v] == 2);
  case LS_NODE_NIC:
    return v == ends->nic_from || v == ends->nic_to;
  default:
    return true;
  }
}

/* dist[v] = length of the shortest path from v to the destination. */
static inline void
distances (const LsCluster *c, const Ends *ends, uint32_t *dist)
{
  for (guint v = 0; v < c->nodes->len; v++)
    dist[v] = FAR;
  dist[ends->to] = 0;

  gboolean has_changed = TRUE;
  while (has_changed) {
    has_changed = FALSE;
    for (guint i = 0; i < c->links->len; i++) {
      const LsLink *link = &g_array_index (c->links, LsLink, i);
      uint32_t via = dist[link->to] + weight (c, ends, link);
      if (may_enter (c, ends, link, dist) && via < dist[link->from]) {
        dist[link->from] = via;
        has_changed = TRUE;
      }
    }
  }
}

static inline gboolean
is_onward (const LsCluster *c, const Ends *ends, const LsLink *link, const uint32_t *dist)
{
  return may_enter (c, ends, link, dist) && dist[link->from] < FAR
      && dist[link->from] == dist[link->to] + weight (c, ends, link);
}

static inline Ends
ends_of (const LsCluster *c, uint32_t gpu_from, uint32_t gpu_to)
{
  Ends ends = { .from = gpu_vertex (c, gpu_from),
                .to = gpu_vertex (c, gpu_to),
                .nic_from = UINT32_MAX,
                .nic_to = UINT32_MAX };
  if (c->spec.nics.n > 0) {
    ends.nic_from = ls_nic_vertex (c, ls_cluster_host_of (c, gpu_from), ls_nic_of_gpu (c, gpu_from));
    ends.nic_to = ls_nic_vertex (c, ls_cluster_host_of (c, gpu_to), ls_nic_of_gpu (c, gpu_to));
  }
  return ends;
}

/* Adds to the load. */
static inline void
push (const LsCluster *c, Ends ends, double *load)
{
  guint n = c->nodes->len;
  g_autofree uint32_t *dist = g_new (uint32_t, n);
  g_autofree double *flow = g_new0 (double, n), *onward = g_new0 (double, n);
  uint32_t from = ends.from;
  distances (c, &ends, dist);
  for (guint i = 0; i < c->links->len; i++) {
    const LsLink *link = &g_array_index (c->links, LsLink, i);
    if (is_onward (c, &ends, link, dist))
      onward[link->from] += link->capacity_bytes_per_s;
  }

  g_assert (dist[from] < FAR);
  flow[from] = 1;
  for (uint32_t d = dist[from]; d > 0; d--)
    for (guint i = 0; i < c->links->len; i++) {
      const LsLink *link = &g_array_index (c->links, LsLink, i);
      if (dist[link->from] != d || flow[link->from] == 0 || !is_onward (c, &ends, link, dist))
        continue;
      double part = flow[link->from] * link->capacity_bytes_per_s / onward[link->from];
      load[link->trunk] += part;
      flow[link->to] += part;
    }
}

/* The memory of CPUs of its host that is next to a GPU. */
static inline uint32_t
nearest_memory (const LsCluster *c, uint32_t gpu)
{
  g_autofree uint32_t *dist = g_new (uint32_t, c->nodes->len);
  uint32_t nearest = UINT32_MAX, length = FAR, host = ls_cluster_host_of (c, gpu);
  for (guint v = 0; v < c->nodes->len; v++) {
    const LsTopoNode *node = &g_array_index (c->nodes, LsTopoNode, v);
    if (node->kind != LS_NODE_CPU_MEMORY || node->host != host)
      continue;
    Ends ends = { .from = gpu_vertex (c, gpu), .to = v, .nic_from = UINT32_MAX, .nic_to = UINT32_MAX };
    distances (c, &ends, dist);
    if (dist[ends.from] < length) {
      nearest = v;
      length = dist[ends.from];
    }
  }
  return nearest;
}

/* From GPU to GPU of different nodes, by way of the memory next to each. */
static inline void
push_staged (const LsCluster *c, uint32_t gpu_from, uint32_t gpu_to, double *load)
{
  Ends out = ends_of (c, gpu_from, gpu_to), over = out, in = out;
  out.to = over.from = nearest_memory (c, gpu_from);
  over.to = in.from = nearest_memory (c, gpu_to);
  push (c, out, load);
  push (c, over, load);
  push (c, in, load);
}

/* Load on every trunk (array of c->trunks->len doubles, zeroed by the callee) of
 * one unit of flow split at each vertex over its shortest onward links in
 * proportion to their capacity. NVLink is preferred to PCIe by weight: a path's
 * length is its sum of link weights (NVLink 2, all others 4). A GPU forwards only
 * between two NVLinks, from the flow's first GPU straight to its last, at weight 1
 * (NCCL's NVB); of the NICs only the two GPUs' own carry the flow; what has failed
 * carries nothing. With PXN first to the GPU that sends; without GPUDirect by way of the memory of the CPUs
 * next to both. It does not hash. */
static inline void
ls_route_bfs (const LsCluster *c, uint32_t gpu_from, uint32_t gpu_to, double *ret_load)
{
  memset (ret_load, 0, c->trunks->len * sizeof *ret_load);
  if (gpu_from == gpu_to)
    return;
  uint32_t proxy = ls_route_proxy (c, gpu_from, gpu_to);
  if (proxy != gpu_from)
    push (c, ends_of (c, gpu_from, proxy), ret_load);
  if (c->spec.nics.is_staged && ls_cluster_host_of (c, proxy) != ls_cluster_host_of (c, gpu_to))
    push_staged (c, proxy, gpu_to, ret_load);
  else
    push (c, ends_of (c, proxy, gpu_to), ret_load);
}

#endif
