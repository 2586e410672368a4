/* cluster/route.c — a way = out of the sender's node, through the fabric, into the
 * receiver's node. */
#include "cluster/route.h"

#include "cluster/fabric.h"
#include "cluster/index.h"
#include "cluster/interior.h"

uint32_t
ls_nic_of_gpu (const LsCluster *c, uint32_t gpu)
{
  const LsInterior *in = c->index->interior;
  return in->kind->nic_of_gpu (in, gpu % c->spec.gpus_per_node);
}

/* Hops from `first` on are local to a node. */
static void
place_in (const LsCluster *c, LsRoute *r, uint32_t first, uint32_t host)
{
  uint32_t base = host * c->index->trunks_per_node;
  for (uint32_t i = first; i < r->n_hops; i++)
    r->hop[i].trunk += base;
}

static void
between_nodes (const LsCluster *c, const LsRouteEnds *e, uint32_t host_from, uint32_t host_to, LsRoute *r)
{
  const LsInterior *in = c->index->interior;
  const LsFabric *fabric = c->index->fabric;
  uint32_t per_node = c->spec.gpus_per_node;
  LsFabricFlow flow = {
    .gpu_from = e->gpu_from,
    .gpu_to = e->gpu_to,
    .node_from = host_from,
    .nic_from = e->nic_from == LS_NIC_AUTO ? ls_nic_of_gpu (c, e->gpu_from) : e->nic_from,
    .node_to = host_to,
    .nic_to = e->nic_to == LS_NIC_AUTO ? ls_nic_of_gpu (c, e->gpu_to) : e->nic_to,
    .channel = e->channel,
  };
  in->kind->to_nic (in, e->gpu_from % per_node, flow.nic_from, r);
  place_in (c, r, 0, host_from);
  fabric->kind->way (fabric, c, &flow, r);
  uint32_t inside = r->n_hops;
  in->kind->from_nic (in, flow.nic_to, e->gpu_to % per_node, r);
  place_in (c, r, inside, host_to);
}

void
ls_route_ends (const LsCluster *c, const LsRouteEnds *e, LsRoute *ret_route)
{
  LsRoute *r = ret_route;
  r->n_hops = 0;
  r->latency = 0;
  if (e->gpu_from == e->gpu_to)
    return;
  uint32_t per_node = c->spec.gpus_per_node;
  uint32_t host_from = e->gpu_from / per_node, host_to = e->gpu_to / per_node;
  if (host_from != host_to) {
    between_nodes (c, e, host_from, host_to, r);
    return;
  }
  const LsInterior *in = c->index->interior;
  in->kind->within (in, e->gpu_from % per_node, e->gpu_to % per_node, r);
  place_in (c, r, 0, host_from);
}

void
ls_route (const LsCluster *c, uint32_t gpu_from, uint32_t gpu_to, uint32_t nic_from, uint32_t nic_to,
          LsRoute *ret_route)
{
  LsRouteEnds ends = { .gpu_from = gpu_from, .gpu_to = gpu_to, .nic_from = nic_from, .nic_to = nic_to };
  ls_route_ends (c, &ends, ret_route);
}

void
ls_route_host_memory (const LsCluster *c, uint32_t gpu, bool is_to_host, LsRoute *ret_route)
{
  const LsInterior *in = c->index->interior;
  uint32_t host = gpu / c->spec.gpus_per_node, local = gpu % c->spec.gpus_per_node;
  ret_route->n_hops = 0;
  ret_route->latency = 0;
  (is_to_host ? in->kind->to_memory : in->kind->from_memory) (in, local, ret_route);
  place_in (c, ret_route, 0, host);
}
