#include "network/nccl/nccl_links.h"

#include <string.h>

/* --- the links of a cluster --- */

static const char *
first_gpu (const LsClusterSpec *s)
{
  for (guint i = 0; i < s->list_vertices->len; i++)
    if (g_array_index (s->list_vertices, LsListVertex, i).kind == LS_NODE_GPU)
      return g_array_index (s->list_vertices, LsListVertex, i).name;
  return "";
}

/* NVLinks of the first GPU of a listed node. */
static void
add_listed_nvlinks (const LsClusterSpec *s, LsNcclLinks *l)
{
  const char *gpu = first_gpu (s);
  for (guint i = 0; s->list_links && i < s->list_links->len; i++) {
    const LsListLink *link = &g_array_index (s->list_links, LsListLink, i);
    bool is_its_own = strcmp (link->from, gpu) == 0 || strcmp (link->to, gpu) == 0;
    if (!is_its_own || !ls_cluster_spec_is_nvlink (s, link))
      continue;
    l->nvlink += link->count * link->link.bandwidth_bytes_per_s;
    l->nvlink_latency = link->link.latency;
  }
}

/* Links of the first GPU of a mesh; a hybrid cube has six. */
static uint32_t
n_mesh_links (const LsClusterSpec *s)
{
  uint32_t n = s->mesh == LS_MESH_HYBRID_CUBE ? 6 : s->mesh == LS_MESH_FULL ? s->gpus_per_node - 1 : 0;
  for (guint i = 0; s->mesh == LS_MESH_LIST && s->mesh_links && i < s->mesh_links->len; i++) {
    const LsMeshLink *link = &g_array_index (s->mesh_links, LsMeshLink, i);
    n += link->a == 0 || link->b == 0 ? link->count : 0;
  }
  return n;
}

LsNcclLinks
ls_nccl_links_of (const LsClusterSpec *s)
{
  LsNcclLinks l = { .nic = s->nic.bandwidth_bytes_per_s,
                    .nic_latency = s->nic.latency,
                    .pcie_latency = s->pcie.latency };
  if (s->is_staged)
    l.staging_latency = 2 * s->pcie.latency + 2 * s->cpu_memory.latency;
  if (s->interior == LS_INTERIOR_LIST) {
    add_listed_nvlinks (s, &l);
    return l;
  }
  uint32_t n = s->nvswitch_planes > 0 ? s->nvlinks_per_gpu : n_mesh_links (s);
  l.nvlink = n * s->nvlink.bandwidth_bytes_per_s;
  l.nvlink_latency = s->nvlink.latency;
  return l;
}

/* --- carrying --- */

static void
scale (double *const *rates, guint n, double by)
{
  for (guint i = 0; i < n; i++)
    *rates[i] *= by;
}

static void
lengthen (LsTime *const *latencies, guint n, LsTime by)
{
  for (guint i = 0; i < n; i++)
    *latencies[i] = MAX (0, *latencies[i] + by);
}

static void
carry_inside (LsNccl *n, const LsNcclLinks *to)
{
  const LsNcclLinks *from = &n->measured_on;
  double *const rates[] = { &n->nvlink, &n->ring_bus_intra, &n->nvls_bus, &n->p2p_intra };
  LsTime *const latencies[] = { &n->hop_intra, &n->base_p2p_intra, &n->base_nvls };
  if (from->nvlink <= 0 || to->nvlink <= 0)
    return;
  scale (rates, G_N_ELEMENTS (rates), to->nvlink / from->nvlink);
  lengthen (latencies, G_N_ELEMENTS (latencies), 2 * (to->nvlink_latency - from->nvlink_latency));
}

static void
carry_across (LsNccl *n, const LsNcclLinks *to)
{
  const LsNcclLinks *from = &n->measured_on;
  double *const rates[] = { &n->ring_bus_per_nic, &n->p2p_inter };
  LsTime *const latencies[] = { &n->hop_inter, &n->base_p2p_inter };
  if (from->nic <= 0 || to->nic <= 0)
    return;
  LsTime pcie
      = from->pcie_latency > 0 && to->pcie_latency > 0 ? 4 * (to->pcie_latency - from->pcie_latency) : 0;
  pcie += 2 * (to->staging_latency - from->staging_latency);
  scale (rates, G_N_ELEMENTS (rates), to->nic / from->nic);
  lengthen (latencies, G_N_ELEMENTS (latencies), pcie + 2 * (to->nic_latency - from->nic_latency));
}

void
ls_nccl_carry (LsNccl *nccl, const LsNcclLinks *links)
{
  carry_inside (nccl, links);
  carry_across (nccl, links);
  nccl->measured_on = *links;
}
