#include "cluster/cluster.h"

#include "cluster/dealt.h"
#include "cluster/index.h"

bool
ls_gpus_copy (const LsClusterSpec *spec, uint32_t from, uint32_t to)
{
  if (spec->copies != LS_COPIES_BELOW_SWITCH)
    return spec->copies == LS_COPIES_ANYWHERE;
  return spec->pcie_switches > 0 && plug_of_gpu (spec, from) == plug_of_gpu (spec, to);
}

const LsTrunk *
ls_cluster_trunk (const LsCluster *c, uint32_t trunk)
{
  g_assert (trunk < c->n_trunks);
  return &g_array_index (c->trunks, LsTrunk, ls_trunk_slot (c, trunk));
}

/* Whose trunk it is, and which. */
static uint32_t
host_of_trunk (const LsCluster *c, uint32_t trunk, uint32_t *ret_local)
{
  uint32_t low = 0, high = c->spec.n_nodes;
  g_assert (trunk < c->index->fabric->first_trunk);
  if (!c->index->starts)
    low = trunk / c->index->layouts[0].n_trunks;
  while (c->index->starts && high - low > 1) {
    uint32_t middle = low + (high - low) / 2;
    *(ls_first_trunk (c, middle) <= trunk ? &low : &high) = middle;
  }
  *ret_local = trunk - ls_first_trunk (c, low);
  return low;
}

uint32_t
ls_cluster_edge_of_trunk (const LsCluster *c, uint32_t trunk)
{
  const LsFabric *fabric = c->index->fabric;
  uint32_t local, host = host_of_trunk (c, trunk, &local), n_inside = ls_interior_of (c, host)->n_trunks;
  g_assert (local >= n_inside);
  return fabric->kind->edge (fabric, host, (local - n_inside) / 2);
}

uint32_t
ls_cluster_n_edges (const LsCluster *c)
{
  return c->index->fabric->n_edges;
}

double
ls_cluster_resource_capacity (const LsCluster *c, uint32_t resource)
{
  g_assert (resource < ls_cluster_n_resources (c));
  if (resource < c->n_trunks)
    return ls_cluster_trunk (c, resource)->capacity_bytes_per_s;
  const LsGpu *gpu = ls_cluster_gpu_spec (c, resource - c->n_trunks);
  return gpu->hbm_bytes_per_s * gpu->hbm_efficiency;
}

static char *
trunk_name (const LsCluster *c, uint32_t trunk, LsHostNames *names)
{
  const char *known = ls_cluster_trunk (c, trunk)->name;
  if (known)
    return g_strdup (known);
  const LsFabric *fabric = c->index->fabric;
  if (trunk >= fabric->first_trunk)
    return fabric->kind->trunk_name (fabric, trunk - fabric->first_trunk);
  uint32_t local, host = host_of_trunk (c, trunk, &local);
  if (!names->trunks || names->host != host) {
    ls_host_names_clear (names);
    *names = (LsHostNames) { host, ls_cluster_host_trunk_names (c, host) };
  }
  return g_strdup (names->trunks[local]);
}

void
ls_host_names_clear (LsHostNames *names)
{
  g_clear_pointer (&names->trunks, g_strfreev);
}

char *
ls_cluster_resource_name (const LsCluster *c, uint32_t resource)
{
  g_auto (LsHostNames) names = { 0 };
  return ls_cluster_resource_name_with (c, resource, &names);
}

char *
ls_cluster_resource_name_with (const LsCluster *c, uint32_t resource, LsHostNames *names)
{
  g_assert (resource < ls_cluster_n_resources (c));
  if (resource < c->n_trunks)
    return trunk_name (c, resource, names);
  uint32_t gpu = resource - c->n_trunks;
  return g_strdup_printf ("node%u/gpu%u/hbm", ls_cluster_host_of (c, gpu), ls_cluster_local_of (c, gpu));
}
