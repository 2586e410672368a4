#include "cluster/proxy.h"

#include "cluster/index.h"
#include "cluster/route.h"

/* A way must leave room for the other node (interior_list.c). */
#define MAX_HOPS (LS_ROUTE_MAX_INTERIOR / 2 - 4)

/* Trunks of the node's NVLinks, by local number; NULL if it has none. */
static bool *
find_nvlinks (const LsCluster *c, uint32_t host)
{
  const LsNodeLayout *layout = ls_layout_of (c, host);
  bool *is_nvlink = g_new0 (bool, layout->interior->n_trunks + 1), has_some = false;
  uint32_t first = ls_first_link (c, host);
  for (guint i = first; i < first + layout->interior_links; i++) {
    const LsLink *link = &g_array_index (c->links, LsLink, i);
    LsNodeKind from = g_array_index (c->nodes, LsTopoNode, link->from).kind,
               to = g_array_index (c->nodes, LsTopoNode, link->to).kind;
    bool is
        = from == LS_NODE_NVSWITCH || to == LS_NODE_NVSWITCH || (from == LS_NODE_GPU && to == LS_NODE_GPU);
    is_nvlink[link->trunk - ls_first_trunk_slot (c, host)] |= is;
    has_some |= is;
  }
  if (!has_some)
    g_clear_pointer (&is_nvlink, g_free);
  return is_nvlink;
}

static bool
nvlink_leads (const LsCluster *c, uint32_t host, const bool *is_nvlink, uint32_t from, uint32_t to)
{
  LsRoute r = { .n_hops = 0 };
  if (!ls_route_within (c, host, from, to, &r))
    return false;
  for (uint32_t i = 0; i < r.n_hops; i++)
    if (!is_nvlink[r.hop[i].trunk - ls_first_trunk (c, host)])
      return false;
  return ls_route_to_nic (c, host, to, ls_nic_of_gpu (c, ls_cluster_gpu_at (c, host, to)), &r)
      && r.n_hops <= MAX_HOPS;
}

static uint32_t
proxy_of (const LsCluster *c, uint32_t host, const bool *is_nvlink, uint32_t gpu, uint32_t rail)
{
  uint32_t n_gpus = ls_cluster_gpus_of (c, host), n = 0;
  g_autofree uint32_t *able = g_new (uint32_t, n_gpus);
  for (uint32_t g = 0; g < n_gpus; g++) {
    if (ls_nic_of_gpu (c, ls_cluster_gpu_at (c, host, g)) % c->spec.rails != rail)
      continue;
    if (g == gpu)
      return gpu;
    if (nvlink_leads (c, host, is_nvlink, gpu, g))
      able[n++] = g;
  }
  return n > 0 ? able[gpu % n] : gpu;
}

uint32_t *
ls_proxies_new (const LsCluster *c, uint32_t host)
{
  const LsClusterSpec *s = &c->spec;
  if (!s->pxn || s->is_staged || s->rails < 2 || s->nics == 0 || s->interior == LS_INTERIOR_TORUS)
    return NULL;
  g_autofree bool *is_nvlink = find_nvlinks (c, host);
  if (!is_nvlink)
    return NULL;
  uint32_t n_gpus = ls_cluster_gpus_of (c, host), *proxies = g_new (uint32_t, (gsize) n_gpus * s->rails);
  for (uint32_t gpu = 0; gpu < n_gpus; gpu++)
    for (uint32_t rail = 0; rail < s->rails; rail++)
      proxies[gpu * s->rails + rail] = proxy_of (c, host, is_nvlink, gpu, rail);
  return proxies;
}
