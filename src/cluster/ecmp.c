#include "cluster/ecmp.h"

#include <string.h>

#include "cluster/index.h"

static uint64_t
mix (uint64_t x)
{
  x += UINT64_C (0x9e3779b97f4a7c15);
  x = (x ^ x >> 30) * UINT64_C (0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C (0x94d049bb133111eb);
  return x ^ x >> 31;
}

uint32_t
ls_ecmp_choose (const LsClusterSpec *spec, const LsFabricFlow *flow, uint32_t switch_number, uint32_t n)
{
  uint64_t h = mix (spec->seed);
  h = mix (h + ((uint64_t) flow->node_from << 32 | flow->nic_from));
  h = mix (h + ((uint64_t) flow->node_to << 32 | flow->nic_to));
  h = mix (h + ((uint64_t) flow->channel << 32 | switch_number));
  return (uint32_t) ((h >> 32) * n >> 32);
}

/* --- what it does to a leaf --- */

static bool
leaves_switch (const LsCluster *c, const LsLink *link, uint32_t v)
{
  return link->from == v && g_array_index (c->nodes, LsTopoNode, link->to).host == UINT32_MAX
      && !g_array_index (c->trunks, LsTrunk, link->trunk).is_failed;
}

LsUplinkLoad
ls_cluster_uplink_load (const LsCluster *c, const LsRouteEnds *flows, uint32_t n_flows, uint32_t leaf)
{
  g_autofree double *load = g_new0 (double, c->trunks->len);
  LsRoute r;
  for (uint32_t i = 0; i < n_flows; i++) {
    ls_route_ends (c, &flows[i], &r);
    for (uint32_t k = 0; k < r.n_hops; k++)
      load[r.hop[k].trunk] += (double) r.hop[k].share / LS_HOP_WHOLE;
  }
  LsUplinkLoad sum = { .n_uplinks = 0 };
  for (guint i = 0; i < c->links->len; i++) {
    const LsLink *link = &g_array_index (c->links, LsLink, i);
    if (!leaves_switch (c, link, c->index->fabric->first_vertex + leaf))
      continue;
    /* A trunk's load is spread over its links by their capacity. */
    double part
        = link->capacity_bytes_per_s / g_array_index (c->trunks, LsTrunk, link->trunk).capacity_bytes_per_s;
    double own = load[link->trunk] * part / link->n_physical;
    sum.n_uplinks += link->n_physical;
    sum.mean += own * link->n_physical;
    sum.max = MAX (sum.max, own);
  }
  sum.mean = sum.n_uplinks > 0 ? sum.mean / sum.n_uplinks : 0;
  return sum;
}
