/* cluster/route.c — a way = out of the sender's node, through the fabric, into the
 * receiver's node. */
#include "cluster/route.h"

#include <math.h>

#include "cluster/ecmp.h"
#include "cluster/fabric.h"
#include "cluster/faults.h"
#include "cluster/index.h"
#include "cluster/interior.h"
#include "cluster/proxy.h"
#include "cluster/spec.h"

uint32_t
ls_nic_of_gpu (const LsCluster *c, uint32_t gpu)
{
  const LsInterior *in = ls_interior_of (c, ls_cluster_host_of (c, gpu));
  const LsNodeFaults *faults = ls_faults_of_node (c, ls_cluster_host_of (c, gpu));
  uint32_t local = ls_cluster_local_of (c, gpu);
  return faults && faults->nic_of_gpu ? faults->nic_of_gpu[local] : in->kind->nic_of_gpu (in, local);
}

bool
ls_host_has_nvswitch (const LsCluster *c, uint32_t host)
{
  const LsNodeFaults *faults = ls_faults_of_node (c, host);
  return ls_interior_of (c, host)->has_nvswitch && !(faults && faults->has_nvlink_fault);
}

bool
ls_cluster_has_gpu_links (const LsCluster *c)
{
  for (uint32_t k = 0; k < ls_cluster_spec_n_kinds (&c->spec); k++)
    if (c->index->layouts[k].interior->has_gpu_links)
      return true;
  return false;
}

uint32_t
ls_gpu_links (const LsCluster *c, uint32_t gpu_from, uint32_t gpu_to)
{
  LsRoute r;
  if (!ls_cluster_has_gpu_links (c))
    return 0;
  ls_route (c, gpu_from, gpu_to, LS_NIC_AUTO, LS_NIC_AUTO, &r);
  if (r.n_hops != 1)
    return 0;
  const LsTrunk *trunk = ls_cluster_trunk (c, r.hop[0].trunk);
  /* A degraded link is one, too. */
  return (uint32_t) ceil (trunk->capacity_bytes_per_s / ls_link_capacity (trunk->link) - 1e-9);
}

/* --- in a node --- */

/* Hops from `first` on are local to a node. Whether they all work; if not, they are off again. */
static bool
place_in (const LsCluster *c, LsRoute *r, uint32_t first, LsTime latency, uint32_t host, bool may_fail)
{
  uint32_t base = ls_first_trunk (c, host);
  bool works = true;
  for (uint32_t i = first; i < r->n_hops; i++) {
    r->hop[i].trunk += base;
    works &= !(may_fail && ls_trunk_is_failed (c, r->hop[i].trunk));
  }
  if (!works) {
    r->n_hops = first;
    r->latency = latency;
  }
  return works;
}

/* The way i to j of a table, if there are both. */
static bool
search (const LsWays *ways, uint32_t i, uint32_t j, LsRoute *r)
{
  if (!ways || ls_ways_length (ways, i, j) == LS_WAYS_NONE
      || ls_ways_n_hops (ways, i, j) > LS_ROUTE_MAX_INTERIOR / 2 - 4)
    return false;
  ls_ways_append (ways, i, j, r);
  return true;
}

/* From i to j of a node: found by search where the node has faults, else the interior's way. */
static bool
route_in (const LsCluster *c, uint32_t host, uint32_t i, uint32_t j, const LsWays *ways,
          void (*way) (const LsInterior *, uint32_t, uint32_t, LsRoute *), LsRoute *r)
{
  uint32_t first = r->n_hops;
  LsTime latency = r->latency;
  if (!search (ways, i, j, r))
    way (ls_interior_of (c, host), i, j, r);
  return place_in (c, r, first, latency, host, ls_faults_of_node (c, host) != NULL);
}

bool
ls_route_within (const LsCluster *c, uint32_t host, uint32_t from, uint32_t to, LsRoute *r)
{
  const LsNodeFaults *faults = ls_faults_of_node (c, host);
  return route_in (c, host, from, to, faults ? faults->within : NULL, ls_interior_of (c, host)->kind->within,
                   r);
}

bool
ls_route_to_nic (const LsCluster *c, uint32_t host, uint32_t gpu, uint32_t nic, LsRoute *r)
{
  const LsNodeFaults *faults = ls_faults_of_node (c, host);
  return route_in (c, host, gpu, nic, faults ? faults->to_nic : NULL, ls_interior_of (c, host)->kind->to_nic,
                   r);
}

bool
ls_route_from_nic (const LsCluster *c, uint32_t host, uint32_t nic, uint32_t gpu, LsRoute *r)
{
  const LsNodeFaults *faults = ls_faults_of_node (c, host);
  return route_in (c, host, nic, gpu, faults ? faults->from_nic : NULL,
                   ls_interior_of (c, host)->kind->from_nic, r);
}

bool
ls_gpu_is_as_near_to_nic_of (const LsCluster *c, uint32_t owner, uint32_t gpu)
{
  uint32_t host = ls_cluster_host_of (c, owner), nic = ls_nic_of_gpu (c, owner);
  LsRoute own = { .n_hops = 0 }, other = { .n_hops = 0 };
  return ls_route_to_nic (c, host, ls_cluster_local_of (c, owner), nic, &own)
      && ls_route_to_nic (c, host, ls_cluster_local_of (c, gpu), nic, &other) && other.n_hops <= own.n_hops;
}

/* --- between nodes --- */

/* The GPU of the sender's node that sends for it to this NIC; within the node. */
static uint32_t
proxy_of (const LsCluster *c, uint32_t host, uint32_t gpu, uint32_t nic_to)
{
  const LsNodeFaults *faults = ls_faults_of_node (c, host);
  const uint32_t *proxies = faults ? faults->proxies : ls_layout_of (c, host)->proxies;
  return proxies ? proxies[gpu * c->spec.network.rails + nic_to % c->spec.network.rails] : gpu;
}

uint32_t
ls_route_proxy (const LsCluster *c, uint32_t gpu_from, uint32_t gpu_to)
{
  uint32_t host = ls_cluster_host_of (c, gpu_from);
  if (host == ls_cluster_host_of (c, gpu_to))
    return gpu_from;
  return ls_cluster_gpu_at (c, host,
                            proxy_of (c, host, ls_cluster_local_of (c, gpu_from), ls_nic_of_gpu (c, gpu_to)));
}

static bool
between_nodes (const LsCluster *c, const LsRouteEnds *e, uint32_t host_from, uint32_t host_to, LsRoute *r)
{
  const LsFabric *fabric = c->index->fabric;
  uint32_t from = ls_cluster_local_of (c, e->gpu_from), sender = from;
  uint32_t nic_to = e->nic_to == LS_NIC_AUTO ? ls_nic_of_gpu (c, e->gpu_to) : e->nic_to;
  if (e->nic_from == LS_NIC_AUTO)
    sender = proxy_of (c, host_from, from, nic_to);
  LsFabricFlow flow = {
    .gpu_from = e->gpu_from,
    .gpu_to = e->gpu_to,
    .node_from = host_from,
    .nic_from
    = e->nic_from == LS_NIC_AUTO ? ls_nic_of_gpu (c, ls_cluster_gpu_at (c, host_from, sender)) : e->nic_from,
    .node_to = host_to,
    .nic_to = nic_to,
    .channel = e->channel,
  };
  bool works = (sender == from || ls_route_within (c, host_from, from, sender, r))
      && ls_route_to_nic (c, host_from, sender, flow.nic_from, r);
  ls_route_hop (r, ls_node_trunk (c, host_from, 2 * flow.nic_from),
                ls_cluster_node_spec (c, host_from)->nics.port.latency);
  fabric->kind->way (fabric, c, &flow, r);
  ls_route_hop (r, ls_node_trunk (c, host_to, 2 * nic_to + 1),
                ls_cluster_node_spec (c, host_to)->nics.port.latency);
  return works && ls_route_from_nic (c, host_to, nic_to, ls_cluster_local_of (c, e->gpu_to), r);
}

void
ls_route_ends (const LsCluster *c, const LsRouteEnds *e, LsRoute *ret_route)
{
  LsRoute *r = ret_route;
  r->n_hops = 0;
  r->latency = 0;
  if (e->gpu_from == e->gpu_to)
    return;
  uint32_t host_from = ls_cluster_host_of (c, e->gpu_from), host_to = ls_cluster_host_of (c, e->gpu_to);
  bool works = host_from == host_to ? ls_route_within (c, host_from, ls_cluster_local_of (c, e->gpu_from),
                                                       ls_cluster_local_of (c, e->gpu_to), r)
                                    : between_nodes (c, e, host_from, host_to, r);
  g_assert (works); /* ls_faults_finish() has seen to it; of chosen NICs the caller */
}

void
ls_route (const LsCluster *c, uint32_t gpu_from, uint32_t gpu_to, uint32_t nic_from, uint32_t nic_to,
          LsRoute *ret_route)
{
  LsRouteEnds ends = { .gpu_from = gpu_from, .gpu_to = gpu_to, .nic_from = nic_from, .nic_to = nic_to };
  ls_route_ends (c, &ends, ret_route);
}

/* A way inside the GPU's node that ends or begins at the GPU. */
static void
route_local (const LsCluster *c, uint32_t gpu, void (*way) (const LsInterior *, uint32_t, LsRoute *),
             LsRoute *ret_route)
{
  uint32_t host = ls_cluster_host_of (c, gpu), local = ls_cluster_local_of (c, gpu);
  ret_route->n_hops = 0;
  ret_route->latency = 0;
  way (ls_interior_of (c, host), local, ret_route);
  for (uint32_t i = 0; i < ret_route->n_hops; i++)
    ret_route->hop[i].trunk += ls_first_trunk (c, host);
}

void
ls_route_host_memory (const LsCluster *c, uint32_t gpu, bool is_to_host, LsRoute *ret_route)
{
  const LsInteriorKind *kind = ls_interior_of (c, ls_cluster_host_of (c, gpu))->kind;
  route_local (c, gpu, is_to_host ? kind->to_memory : kind->from_memory, ret_route);
}

bool
ls_cluster_has_nvme (const LsCluster *c)
{
  for (uint32_t k = 0; k < ls_cluster_spec_n_kinds (&c->spec); k++)
    if (ls_cluster_spec_of_kind (&c->spec, k)->server.nvme_drives == 0
        || !c->index->layouts[k].interior->kind->to_nvme)
      return false;
  return true;
}

void
ls_route_nvme (const LsCluster *c, uint32_t gpu, bool is_to_nvme, LsRoute *ret_route)
{
  const LsInteriorKind *kind = ls_interior_of (c, ls_cluster_host_of (c, gpu))->kind;
  g_assert (ls_cluster_has_nvme (c));
  route_local (c, gpu, is_to_nvme ? kind->to_nvme : kind->from_nvme, ret_route);
}

/* ---- proxy ---- */

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
proxy_to (const LsCluster *c, uint32_t host, const bool *is_nvlink, uint32_t gpu, uint32_t rail)
{
  uint32_t n_gpus = ls_cluster_gpus_of (c, host), n = 0;
  g_autofree uint32_t *able = g_new (uint32_t, n_gpus);
  for (uint32_t g = 0; g < n_gpus; g++) {
    if (ls_nic_of_gpu (c, ls_cluster_gpu_at (c, host, g)) % c->spec.network.rails != rail)
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
  if (!s->network.pxn || s->nics.is_staged || s->network.rails < 2 || s->nics.n == 0
      || s->interior == LS_INTERIOR_TORUS)
    return NULL;
  g_autofree bool *is_nvlink = find_nvlinks (c, host);
  if (!is_nvlink)
    return NULL;
  uint32_t n_gpus = ls_cluster_gpus_of (c, host),
           *proxies = g_new (uint32_t, (gsize) n_gpus * s->network.rails);
  for (uint32_t gpu = 0; gpu < n_gpus; gpu++)
    for (uint32_t rail = 0; rail < s->network.rails; rail++)
      proxies[gpu * s->network.rails + rail] = proxy_to (c, host, is_nvlink, gpu, rail);
  return proxies;
}

/* ---- ecmp ---- */

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
  uint64_t h = mix (spec->network.seed);
  h = mix (h + ((uint64_t) flow->node_from << 32 | flow->nic_from));
  h = mix (h + ((uint64_t) flow->node_to << 32 | flow->nic_to));
  h = mix (h + ((uint64_t) flow->channel << 32 | switch_number));
  return (uint32_t) ((h >> 32) * n >> 32);
}
