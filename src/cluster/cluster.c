#include "cluster/cluster.h"

double
ls_cluster_resource_capacity (const LsCluster *c, uint32_t resource)
{
  g_assert (resource < ls_cluster_n_resources (c));
  if (resource < c->trunks->len)
    return g_array_index (c->trunks, LsTrunk, resource).capacity_bytes_per_s;
  const LsGpu *gpu = ls_cluster_gpu_spec (c, resource - c->trunks->len);
  return gpu->hbm_bytes_per_s * gpu->hbm_efficiency;
}

char *
ls_cluster_resource_name (const LsCluster *c, uint32_t resource)
{
  g_assert (resource < ls_cluster_n_resources (c));
  if (resource < c->trunks->len)
    return g_strdup (g_array_index (c->trunks, LsTrunk, resource).name);
  uint32_t gpu = resource - c->trunks->len;
  return g_strdup_printf ("node%u/gpu%u/hbm", ls_cluster_host_of (c, gpu), gpu % c->spec.gpus_per_node);
}
