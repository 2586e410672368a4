/* network/nccl/nccl_mix.c — figures of NCCL carried to other places: other links, nodes of several
 * kinds. */
#include <math.h>
#include <string.h>

#include "network/nccl/nccl.h"

/* --- NCCL's figures, carried from the links that they were measured on to others ----------------- */

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

/* --- NCCL between nodes of several kinds: see ls_nccl_mix() -------------------------------------- */

static void
take_links (LsNcclLinks *a, const LsNcclLinks *b)
{
  a->nvlink = fmin (a->nvlink, b->nvlink);
  a->nic = fmin (a->nic, b->nic);
  a->nvlink_latency = MAX (a->nvlink_latency, b->nvlink_latency);
  a->nic_latency = MAX (a->nic_latency, b->nic_latency);
  a->pcie_latency = MAX (a->pcie_latency, b->pcie_latency);
  a->staging_latency = MAX (a->staging_latency, b->staging_latency);
}

static void
take_rates (LsNccl *a, const LsNccl *b)
{
  a->channels_ring = MIN (a->channels_ring, b->channels_ring);
  a->channels_net = MIN (a->channels_net, b->channels_net);
  a->channels_nvls = MIN (a->channels_nvls, b->channels_nvls);
  a->channels_p2p = MIN (a->channels_p2p, b->channels_p2p);
  a->ring_bus_intra = fmin (a->ring_bus_intra, b->ring_bus_intra);
  double staged = fmin (a->ring_bus_staged, b->ring_bus_staged);
  a->ring_bus_staged = staged > 0 ? staged : fmax (a->ring_bus_staged, b->ring_bus_staged);
  a->ring_bus_per_nic = fmin (a->ring_bus_per_nic, b->ring_bus_per_nic);
  a->nvls_bus = fmin (a->nvls_bus, b->nvls_bus);
  a->p2p_intra = fmin (a->p2p_intra, b->p2p_intra);
  a->p2p_inter = fmin (a->p2p_inter, b->p2p_inter);
}

static void
take_latencies (LsNccl *a, const LsNccl *b)
{
  a->base_all_reduce = MAX (a->base_all_reduce, b->base_all_reduce);
  a->base_all_gather = MAX (a->base_all_gather, b->base_all_gather);
  a->base_reduce_scatter = MAX (a->base_reduce_scatter, b->base_reduce_scatter);
  a->base_nvls = MAX (a->base_nvls, b->base_nvls);
  a->base_p2p_intra = MAX (a->base_p2p_intra, b->base_p2p_intra);
  a->base_p2p_inter = MAX (a->base_p2p_inter, b->base_p2p_inter);
  a->hop_intra = MAX (a->hop_intra, b->hop_intra);
  a->hop_inter = MAX (a->hop_inter, b->hop_inter);
  a->handshake = MAX (a->handshake, b->handshake);
  a->handshake_hop = MAX (a->handshake_hop, b->handshake_hop);
}

static void
take_costs (LsNccl *a, const LsNccl *b)
{
  a->ramp_bytes = fmax (a->ramp_bytes, b->ramp_bytes);
  a->drain = fmax (a->drain, b->drain);
  a->self_copy = fmax (a->self_copy, b->self_copy);
  a->sm_share_per_channel = fmax (a->sm_share_per_channel, b->sm_share_per_channel);
  a->stall_per_byte = fmax (a->stall_per_byte, b->stall_per_byte);
  a->hbm_per_wire_all_reduce = fmax (a->hbm_per_wire_all_reduce, b->hbm_per_wire_all_reduce);
  a->hbm_per_wire_all_gather = fmax (a->hbm_per_wire_all_gather, b->hbm_per_wire_all_gather);
  a->hbm_per_wire_reduce_scatter = fmax (a->hbm_per_wire_reduce_scatter, b->hbm_per_wire_reduce_scatter);
  a->hbm_per_wire_p2p = fmax (a->hbm_per_wire_p2p, b->hbm_per_wire_p2p);
}

static void
take_side (LsDispatchSide *a, const LsDispatchSide *b)
{
  a->token = MAX (a->token, b->token);
  a->row = MAX (a->row, b->row);
  a->per_sm = fmin (a->per_sm, b->per_sm);
}

static void
take_dispatch (LsDispatchFigures *a, const LsDispatchFigures *b)
{
  take_side (&a->dispatch, &b->dispatch);
  take_side (&a->combine, &b->combine);
  a->of_nvlink = fmin (a->of_nvlink, b->of_nvlink);
  a->of_nic = fmin (a->of_nic, b->of_nic);
  a->base_intra = MAX (a->base_intra, b->base_intra);
  a->base_inter = MAX (a->base_inter, b->base_inter);
}

static void
take (LsNccl *a, const LsNccl *b)
{
  if (b->nvlink < a->nvlink) {
    a->tables = b->tables;
    a->nvlink = b->nvlink;
  }
  take_links (&a->measured_on, &b->measured_on);
  take_rates (a, b);
  take_latencies (a, b);
  take_costs (a, b);
  take_dispatch (&a->dispatch, &b->dispatch);
}

void
ls_nccl_mix (LsNccl *nccl, const LsNccl *const *kinds, uint32_t n_kinds)
{
  LsNccl *among = g_new0 (LsNccl, 1u << n_kinds);
  for (uint32_t set = 1; set < 1u << n_kinds; set++) {
    uint32_t first = (uint32_t) g_bit_nth_lsf (set, -1);
    among[set] = *kinds[first];
    for (uint32_t k = first + 1; k < n_kinds; k++)
      if (set >> k & 1)
        take (&among[set], kinds[k]);
    among[set].among = NULL;
  }
  nccl->among = among;
  nccl->n_kinds = n_kinds;
}
