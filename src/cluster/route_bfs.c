/* cluster/route_bfs.c — routing without knowing the shape: distances by
 * relaxing all links until nothing changes, then one unit of flow pushed down
 * the distances. Quadratic and proud of it; a reference for route.c.
 *
 * GPUs do not forward, and of the NICs only those of the two GPUs carry the
 * flow: affinity is a rule of the software, not of the graph. */
#include "cluster/route.h"

#include "cluster/index.h"

#include <string.h>

#define FAR (UINT32_MAX / 2)

static uint32_t
vertex_of_gpu (const LsCluster *c, uint32_t gpu)
{
  uint32_t per_node = c->spec.gpus_per_node;
  return gpu / per_node * c->index->vertices_per_host + c->index->v_gpu + gpu % per_node;
}

static uint32_t
vertex_of_nic (const LsCluster *c, uint32_t gpu)
{
  uint32_t host = ls_cluster_host_of (c, gpu);
  if (c->spec.nics == 0)
    return UINT32_MAX;
  return host * c->index->vertices_per_host + c->index->v_nic + ls_nic_of_gpu (c, gpu);
}

static LsNodeKind
kind_of (const LsCluster *c, uint32_t v)
{
  return g_array_index (c->nodes, LsTopoNode, v).kind;
}

static uint32_t
weight (const LsCluster *c, const LsLink *link)
{
  return kind_of (c, link->from) == LS_NODE_NVSWITCH || kind_of (c, link->to) == LS_NODE_NVSWITCH ? 1 : 2;
}

/* What the flow may pass through on its way to `to`. */
typedef struct {
  uint32_t to, nic_from, nic_to; /* vertices */
} Ends;

static gboolean
may_enter (const LsCluster *c, const Ends *ends, uint32_t v)
{
  switch (kind_of (c, v)) {
  case LS_NODE_GPU:
    return v == ends->to;
  case LS_NODE_NIC:
    return v == ends->nic_from || v == ends->nic_to;
  default:
    return TRUE;
  }
}

/* dist[v] = length of the shortest path from v to the destination. */
static void
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
      uint32_t via = dist[link->to] + weight (c, link);
      if (may_enter (c, ends, link->to) && via < dist[link->from]) {
        dist[link->from] = via;
        has_changed = TRUE;
      }
    }
  }
}

static gboolean
is_onward (const LsCluster *c, const Ends *ends, const LsLink *link, const uint32_t *dist)
{
  return may_enter (c, ends, link->to) && dist[link->from] < FAR
         && dist[link->from] == dist[link->to] + weight (c, link);
}

void
ls_route_bfs (const LsCluster *c, uint32_t gpu_from, uint32_t gpu_to, double *ret_load)
{
  memset (ret_load, 0, c->trunks->len * sizeof *ret_load);
  if (gpu_from == gpu_to)
    return;

  guint n = c->nodes->len;
  g_autofree uint32_t *dist = g_new (uint32_t, n);
  g_autofree double *flow = g_new0 (double, n), *onward = g_new0 (double, n);
  Ends ends = { .to = vertex_of_gpu (c, gpu_to) };
  ends.nic_from = vertex_of_nic (c, gpu_from);
  ends.nic_to = vertex_of_nic (c, gpu_to);
  distances (c, &ends, dist);
  for (guint i = 0; i < c->links->len; i++) {
    const LsLink *link = &g_array_index (c->links, LsLink, i);
    if (is_onward (c, &ends, link, dist))
      onward[link->from] += link->capacity_bytes_per_s;
  }

  uint32_t from = vertex_of_gpu (c, gpu_from);
  g_assert (dist[from] < FAR);
  flow[from] = 1;
  for (uint32_t d = dist[from]; d > 0; d--)
    for (guint i = 0; i < c->links->len; i++) {
      const LsLink *link = &g_array_index (c->links, LsLink, i);
      if (dist[link->from] != d || flow[link->from] == 0 || !is_onward (c, &ends, link, dist))
        continue;
      double part = flow[link->from] * link->capacity_bytes_per_s / onward[link->from];
      ret_load[link->trunk] += part;
      flow[link->to] += part;
    }
}
