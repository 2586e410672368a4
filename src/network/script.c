#include "network/script.h"

#include "core/maxmin.h" /* LS_COEF_ONE */

/* Another GPU of the node. */
static uint32_t
neighbour (const LsCluster *c, uint32_t gpu)
{
  uint32_t k = c->spec.gpus_per_node, local = gpu % k;
  return gpu - local + (local + 1) % k;
}

static void
keep_hop (const LsCluster *c, LsRoute *route, uint32_t i)
{
  route->hop[0] = route->hop[i];
  route->n_hops = 1;
  route->latency = g_array_index (c->trunks, LsTrunk, route->hop[0].trunk).latency;
}

void
ls_route_up (const LsCluster *c, uint32_t gpu, LsRoute *ret_route)
{
  ls_route (c, gpu, neighbour (c, gpu), LS_NIC_AUTO, LS_NIC_AUTO, ret_route);
  g_assert (ret_route->n_hops == 2);
  keep_hop (c, ret_route, 0);
}

void
ls_route_down (const LsCluster *c, uint32_t gpu, LsRoute *ret_route)
{
  ls_route (c, neighbour (c, gpu), gpu, LS_NIC_AUTO, LS_NIC_AUTO, ret_route);
  g_assert (ret_route->n_hops == 2);
  keep_hop (c, ret_route, 1);
}

uint32_t
ls_script_n_channels (const LsScript *s)
{
  bool is_hashed = !s->route && s->cluster->spec.routing == LS_ROUTING_ECMP;
  return is_hashed ? (uint32_t) MAX (1, s->flows / LS_COEF_ONE) : 1;
}

void
ls_script_route_channel (const LsScript *s, uint32_t from, uint32_t to, uint32_t channel, LsRoute *ret_route)
{
  LsRouteEnds ends = { .nic_from = LS_NIC_AUTO, .nic_to = LS_NIC_AUTO, .channel = channel };
  if (s->route) {
    s->route (s, from, to, ret_route);
    return;
  }
  ends.gpu_from = s->gpus[from];
  ends.gpu_to = s->gpus[to];
  ls_route_ends (s->cluster, &ends, ret_route);
}

void
ls_script_route (const LsScript *s, uint32_t from, uint32_t to, LsRoute *ret_route)
{
  ls_script_route_channel (s, from, to, 0, ret_route);
}

static bool
is_with_switch (const LsScript *s, uint32_t from, uint32_t to)
{
  return from >= s->n || to >= s->n;
}

static bool
is_inter (const LsScript *s, uint32_t from, uint32_t to)
{
  return ls_cluster_host_of (s->cluster, s->gpus[from]) != ls_cluster_host_of (s->cluster, s->gpus[to]);
}

LsTime
ls_script_latency (const LsScript *s, uint32_t from, uint32_t to)
{
  if (is_with_switch (s, from, to))
    return s->hop_switch;
  return is_inter (s, from, to) ? s->hop_inter : s->hop_intra;
}

double
ls_script_rate_cap (const LsScript *s, uint32_t from, uint32_t to, uint32_t n)
{
  if (s->rate_cap)
    return s->rate_cap (s, from, to, n);
  if (is_with_switch (s, from, to))
    return s->rate_switch;
  return is_inter (s, from, to) ? s->rate_inter : s->rate_intra;
}
