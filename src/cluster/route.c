#include "cluster/route.h"

#include "cluster/index.h"

uint32_t
ls_nic_of_gpu (const LsCluster *c, uint32_t gpu)
{
  const LsClusterSpec *s = &c->spec;
  return ls_deal (gpu % s->gpus_per_node, s->gpus_per_node, s->nics);
}

static void
hop (const LsCluster *c, LsRoute *r, uint32_t trunk)
{
  g_assert (r->n_hops < LS_ROUTE_MAX_HOPS);
  r->hop[r->n_hops++] = (LsHop) { .trunk = trunk, .share = LS_HOP_WHOLE };
  r->latency += g_array_index (c->trunks, LsTrunk, trunk).latency;
}

/* From one PCIe switch of a host to another, through the CPUs. */
static void
cross_switches (const LsCluster *c, LsRoute *r, uint32_t host, uint32_t from, uint32_t to)
{
  if (from == to)
    return;
  const LsTopoIndex *x = c->index;
  uint32_t cpu_from = ls_socket_of_switch (&c->spec, from), cpu_to = ls_socket_of_switch (&c->spec, to);
  hop (c, r, ls_host_trunk (c, host, x->t_uplink, from, LS_OUTWARD));
  if (cpu_from < cpu_to)
    hop (c, r, ls_host_trunk (c, host, x->t_socket, ls_socket_pair (&c->spec, cpu_from, cpu_to), LS_OUTWARD));
  if (cpu_from > cpu_to)
    hop (c, r, ls_host_trunk (c, host, x->t_socket, ls_socket_pair (&c->spec, cpu_to, cpu_from), LS_INWARD));
  hop (c, r, ls_host_trunk (c, host, x->t_uplink, to, LS_INWARD));
}

static void
within_host (const LsCluster *c, LsRoute *r, uint32_t host, uint32_t from, uint32_t to)
{
  const LsTopoIndex *x = c->index;
  gboolean has_nvswitch = c->spec.nvswitch_planes > 0;
  uint32_t section = has_nvswitch ? x->t_nvlink : x->t_gpu_pcie;
  hop (c, r, ls_host_trunk (c, host, section, from, LS_OUTWARD));
  if (!has_nvswitch)
    cross_switches (c, r, host, ls_switch_of_gpu (&c->spec, from), ls_switch_of_gpu (&c->spec, to));
  hop (c, r, ls_host_trunk (c, host, section, to, LS_INWARD));
}

static void
out_of_host (const LsCluster *c, LsRoute *r, uint32_t host, uint32_t gpu, uint32_t nic)
{
  const LsTopoIndex *x = c->index;
  hop (c, r, ls_host_trunk (c, host, x->t_gpu_pcie, gpu, LS_OUTWARD));
  cross_switches (c, r, host, ls_switch_of_gpu (&c->spec, gpu), ls_switch_of_nic (&c->spec, nic));
  hop (c, r, ls_host_trunk (c, host, x->t_nic_pcie, nic, LS_OUTWARD));
  hop (c, r, ls_host_trunk (c, host, x->t_port, nic, LS_OUTWARD));
}

static void
into_host (const LsCluster *c, LsRoute *r, uint32_t host, uint32_t gpu, uint32_t nic)
{
  const LsTopoIndex *x = c->index;
  hop (c, r, ls_host_trunk (c, host, x->t_port, nic, LS_INWARD));
  hop (c, r, ls_host_trunk (c, host, x->t_nic_pcie, nic, LS_INWARD));
  cross_switches (c, r, host, ls_switch_of_nic (&c->spec, nic), ls_switch_of_gpu (&c->spec, gpu));
  hop (c, r, ls_host_trunk (c, host, x->t_gpu_pcie, gpu, LS_INWARD));
}

void
ls_route (const LsCluster *c, uint32_t gpu_from, uint32_t gpu_to, uint32_t nic_from, uint32_t nic_to,
          LsRoute *ret_route)
{
  LsRoute *r = ret_route;
  r->n_hops = 0;
  r->latency = 0;
  if (gpu_from == gpu_to)
    return;

  uint32_t per_node = c->spec.gpus_per_node;
  uint32_t host_from = gpu_from / per_node, host_to = gpu_to / per_node;
  if (host_from == host_to) {
    within_host (c, r, host_from, gpu_from % per_node, gpu_to % per_node);
    return;
  }

  uint32_t from = nic_from == LS_NIC_AUTO ? ls_nic_of_gpu (c, gpu_from) : nic_from;
  uint32_t to = nic_to == LS_NIC_AUTO ? ls_nic_of_gpu (c, gpu_to) : nic_to;
  uint32_t leaf_from = ls_leaf_of_nic (&c->spec, host_from, from),
           leaf_to = ls_leaf_of_nic (&c->spec, host_to, to);
  out_of_host (c, r, host_from, gpu_from % per_node, from);
  if (leaf_from != leaf_to) {
    hop (c, r, ls_leaf_trunk (c, leaf_from, LS_OUTWARD));
    hop (c, r, ls_leaf_trunk (c, leaf_to, LS_INWARD));
  }
  into_host (c, r, host_to, gpu_to % per_node, to);
}

void
ls_route_host_memory (const LsCluster *c, uint32_t gpu, bool is_to_host, LsRoute *ret_route)
{
  const LsTopoIndex *x = c->index;
  uint32_t host = gpu / c->spec.gpus_per_node, local = gpu % c->spec.gpus_per_node;
  uint32_t pcie_switch = ls_switch_of_gpu (&c->spec, local);
  LsDirection dir = is_to_host ? LS_OUTWARD : LS_INWARD;
  bool has_cpu = c->spec.cpu_sockets > 0;
  ret_route->n_hops = 0;
  ret_route->latency = 0;
  if (c->spec.pcie_switches == 0)
    return;
  if (has_cpu && !is_to_host) {
    hop (c, ret_route, ls_host_trunk (c, host, x->t_memory, ls_socket_of_switch (&c->spec, pcie_switch), dir));
    hop (c, ret_route, ls_host_trunk (c, host, x->t_uplink, pcie_switch, dir));
  }
  hop (c, ret_route, ls_host_trunk (c, host, x->t_gpu_pcie, local, dir));
  if (has_cpu && is_to_host) {
    hop (c, ret_route, ls_host_trunk (c, host, x->t_uplink, pcie_switch, dir));
    hop (c, ret_route, ls_host_trunk (c, host, x->t_memory, ls_socket_of_switch (&c->spec, pcie_switch), dir));
  }
}
