#include "network/script.h"

#include <string.h>

#include "core/maxmin.h" /* LS_COEF_ONE */

/* Another GPU of the node. */
static uint32_t
neighbour (const LsCluster *c, uint32_t gpu)
{
  uint32_t k = ls_cluster_gpus_of (c, ls_cluster_host_of (c, gpu)), local = ls_cluster_local_of (c, gpu);
  return gpu - local + (local + 1) % k;
}

/* A way over NVSwitches goes up to all of them, then down from all. */
static void
keep_half (const LsCluster *c, LsRoute *route, uint32_t half)
{
  g_assert (route->n_hops > 0 && route->n_hops % 2 == 0);
  route->n_hops /= 2;
  memmove (route->hop, route->hop + half * route->n_hops, route->n_hops * sizeof *route->hop);
  route->latency = 0;
  for (uint32_t i = 0; i < route->n_hops; i++)
    route->latency = MAX (route->latency, ls_cluster_trunk (c, route->hop[i].trunk)->latency);
}

void
ls_route_up (const LsCluster *c, uint32_t gpu, LsRoute *ret_route)
{
  ls_route (c, gpu, neighbour (c, gpu), LS_NIC_AUTO, LS_NIC_AUTO, ret_route);
  keep_half (c, ret_route, 0);
}

void
ls_route_down (const LsCluster *c, uint32_t gpu, LsRoute *ret_route)
{
  ls_route (c, neighbour (c, gpu), gpu, LS_NIC_AUTO, LS_NIC_AUTO, ret_route);
  keep_half (c, ret_route, 1);
}

uint32_t
ls_script_n_channels (const LsScript *s)
{
  return s->cluster->spec.network.routing == LS_ROUTING_ECMP ? (uint32_t) MAX (1, s->flows / LS_COEF_ONE) : 1;
}

uint64_t
ls_script_channel_flows (const LsScript *s, uint32_t channel)
{
  uint32_t last = ls_script_n_channels (s) - 1;
  return channel < last ? LS_COEF_ONE : s->flows - last * LS_COEF_ONE;
}

void
ls_script_route_gpus (const LsCluster *c, uint32_t gpu_from, uint32_t gpu_to, uint32_t channel,
                      LsRoute *ret_route)
{
  LsRouteEnds ends = {
    .gpu_from = gpu_from, .gpu_to = gpu_to, .nic_from = LS_NIC_AUTO, .nic_to = LS_NIC_AUTO, .channel = channel
  };
  ls_route_ends (c, &ends, ret_route);
}

void
ls_script_route_channel (const LsScript *s, uint32_t from, uint32_t to, uint32_t channel, LsRoute *ret_route)
{
  if (s->route)
    s->route (s, from, to, channel, ret_route);
  else
    ls_script_route_gpus (s->cluster, s->gpus[from], s->gpus[to], channel, ret_route);
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
