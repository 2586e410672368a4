/* tests/support/cluster_check.h — what holds in every cluster that was built. */
#ifndef LS_TESTS_CLUSTER_CHECK_H
#define LS_TESTS_CLUSTER_CHECK_H

#include <math.h>
#include <stdlib.h>

#include "cluster/cluster.h"

static inline uint64_t
link_ends (uint32_t from, uint32_t to)
{
  return (uint64_t) from << 32 | to;
}

static inline int
compare_links (const void *a, const void *b)
{
  uint64_t x = *(const uint64_t *) a, y = *(const uint64_t *) b;
  return (x > y) - (x < y);
}

static inline void
check_links (const LsCluster *c)
{
  guint n = c->links->len;
  g_autofree uint64_t *pairs = g_new (uint64_t, n);
  for (guint i = 0; i < n; i++) {
    const LsLink *link = &g_array_index (c->links, LsLink, i);
    g_assert (link->from < c->nodes->len && link->to < c->nodes->len && link->from != link->to);
    g_assert (link->trunk < c->trunks->len);
    g_assert (link->n_physical > 0 && link->capacity_bytes_per_s > 0 && link->latency >= 0);
    pairs[i] = link_ends (link->from, link->to);
  }
  if (n > 0)
    qsort (pairs, n, sizeof *pairs, compare_links);
  for (guint i = 0; i < n; i++) {
    uint64_t reverse = link_ends ((uint32_t) pairs[i], (uint32_t) (pairs[i] >> 32));
    g_assert (i == 0 || pairs[i] != pairs[i - 1] || c->spec.network.routing == LS_ROUTING_ECMP);
    g_assert (bsearch (&reverse, pairs, n, sizeof *pairs, compare_links) != NULL);
  }
}

static inline void
check_trunks (const LsCluster *c)
{
  g_autofree double *sum = g_new0 (double, c->trunks->len);
  for (guint i = 0; i < c->links->len; i++) {
    const LsLink *link = &g_array_index (c->links, LsLink, i);
    sum[link->trunk] += link->capacity_bytes_per_s;
  }
  for (guint t = 0; t < c->trunks->len; t++) {
    const LsTrunk *trunk = &g_array_index (c->trunks, LsTrunk, t);
    g_assert (trunk->name != NULL && trunk->latency >= 0);
    g_assert (fabs (trunk->capacity_bytes_per_s - sum[t]) <= 1e-9 * sum[t]);
  }
}

static inline uint32_t
root_of (uint32_t *parent, uint32_t v)
{
  while (parent[v] != v)
    v = parent[v] = parent[parent[v]];
  return v;
}

static inline void
check_connected (const LsCluster *c)
{
  g_autofree uint32_t *parent = g_new (uint32_t, c->nodes->len);
  for (guint v = 0; v < c->nodes->len; v++)
    parent[v] = v;
  for (guint i = 0; i < c->links->len; i++) {
    const LsLink *link = &g_array_index (c->links, LsLink, i);
    if (g_array_index (c->trunks, LsTrunk, link->trunk).is_failed)
      continue;
    parent[root_of (parent, link->from)] = root_of (parent, link->to);
  }

  uint32_t n_gpus = 0, first = UINT32_MAX;
  for (guint v = 0; v < c->nodes->len; v++) {
    if (g_array_index (c->nodes, LsTopoNode, v).kind != LS_NODE_GPU)
      continue;
    if (n_gpus++ == 0)
      first = v;
    g_assert (root_of (parent, v) == root_of (parent, first));
  }
  g_assert (n_gpus == c->n_gpus);
}

/* Asserts every structural invariant: link ends exist, each link has a reverse,
 * trunk capacity = sum of its links, every GPU reaches every other. */
static inline void
ls_cluster_check (const LsCluster *c)
{
  check_links (c);
  check_trunks (c);
  check_connected (c);
}

#endif
