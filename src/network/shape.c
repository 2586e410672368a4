/* network/shape.c — how the members of a call lie on hosts, and what NCCL makes of it. */
#include <math.h>

#include "cluster/route.h"
#include "network/nccl/nccl.h"
#include "network/period.h"

/* How finely a script cuts a pipeline. That data follow one another through it is physical;
 * how finely is not. NCCL 2.30.7 moves slices of 16 to 512 KiB a channel (src/enqueue.cc,
 * calcCollChunking) while more of them come in, and what filling the pipeline costs was
 * measured with all else and is in the time of the call (ramp_bytes, nccl.h). Rounds must
 * not charge for it again: so many chunks that filling takes 1 / 32 of the time. */
#define CHUNKS_PER_STAGE 32
#define MIN_CHUNK_BYTES  2048
/* Bounds a script: some 4 s. Beyond it chunks grow, and filling takes longer. */
#define MAX_MESSAGES (UINT64_C (1) << 25)

uint32_t
ls_coll_loaded_hosts (const LsCollCall *call)
{
  return call->period && !call->period->like ? call->period->n_hosts : call->n_hosts;
}

uint32_t
ls_coll_loaded_members (const LsCollCall *call)
{
  return call->period && !call->period->like ? call->period->n_members : call->n;
}

uint32_t
ls_coll_members_per_host (const LsCollCall *call)
{
  for (uint32_t h = 1; h < call->n_hosts; h++)
    if (call->hosts[h].n != call->hosts[0].n)
      return 0;
  return call->hosts[0].n;
}

uint32_t
ls_coll_whole_hosts (const LsCollCall *call)
{
  uint32_t k = ls_coll_members_per_host (call);
  for (uint32_t h = 0; h < call->n_hosts; h++)
    if (ls_cluster_gpus_of (call->cluster, ls_cluster_host_of (call->cluster, call->hosts[h].gpus[0])) != k)
      return 0;
  return k;
}

uint32_t
ls_coll_max_members (const LsCollCall *call)
{
  uint32_t k = 0;
  for (uint32_t h = 0; h < call->n_hosts; h++)
    k = MAX (k, call->hosts[h].n);
  return k;
}

uint32_t
ls_coll_min_members (const LsCollCall *call)
{
  uint32_t k = call->n;
  for (uint32_t h = 0; h < call->n_hosts; h++)
    k = MIN (k, call->hosts[h].n);
  return k;
}

bool
ls_coll_has_nvswitch (const LsCollCall *call)
{
  const LsCluster *c = call->cluster;
  uint32_t n = c->kind_of_host || c->spec.network.faults ? call->n_hosts
                                                         : MIN (call->n_hosts, 1); /* else all are alike */
  for (uint32_t h = 0; h < n; h++)
    if (!ls_host_has_nvswitch (c, ls_cluster_host_of (c, call->hosts[h].gpus[0])))
      return false;
  return true;
}

uint32_t
ls_coll_nics (const LsCluster *c, const LsCollHost *host)
{
  uint32_t n = 0;
  for (uint32_t i = 0; i < host->n; i++)
    n += i == 0 || ls_nic_of_gpu (c, host->gpus[i]) != ls_nic_of_gpu (c, host->gpus[i - 1]);
  return n;
}

const LsClusterSpec *
ls_coll_host_spec (const LsCollCall *call, uint32_t h)
{
  const LsCluster *c = call->cluster;
  return ls_cluster_node_spec (c, ls_cluster_host_of (c, call->hosts[h].gpus[0]));
}

LsNcclLinks
ls_coll_links (const LsCollCall *call)
{
  LsNcclLinks least = ls_nccl_links_of (ls_coll_host_spec (call, 0));
  for (uint32_t h = 1; call->cluster->kind_of_host && h < call->n_hosts; h++) {
    const LsNcclLinks links = ls_nccl_links_of (ls_coll_host_spec (call, h));
    least.nvlink = fmin (least.nvlink, links.nvlink);
    least.nic = fmin (least.nic, links.nic);
  }
  return least;
}

/* Whether a ring over the GPUs of a host has a step that is staged in the memory of its CPUs. */
static bool
is_staged (const LsCollCall *call, uint32_t h)
{
  const LsClusterSpec *s = ls_coll_host_spec (call, h);
  const LsCollHost *host = &call->hosts[h];
  if (s->server.nvswitch_planes > 0 || s->server.mesh != LS_MESH_NONE || s->interior != LS_INTERIOR_SERVER)
    return false;
  for (uint32_t i = 1; i < host->n; i++)
    if (!ls_gpus_copy (s, ls_cluster_local_of (call->cluster, host->gpus[0]),
                       ls_cluster_local_of (call->cluster, host->gpus[i])))
      return true;
  return false;
}

double
ls_coll_bus_inside (const LsCollCall *call)
{
  const LsNccl *nccl = call->nccl;
  for (uint32_t h = 0; nccl->ring_bus_staged > 0 && h < call->n_hosts; h++)
    if (is_staged (call, h))
      return fmin (nccl->ring_bus_intra, nccl->ring_bus_staged);
  return nccl->ring_bus_intra;
}

double
ls_coll_bus (const LsCollCall *call)
{
  const LsNccl *nccl = call->nccl;
  double inside = ls_coll_bus_inside (call);
  if (call->n_hosts == 1)
    return inside;
  return fmin (inside, ls_nccl_rings_across (nccl, call->min_nics) * nccl->ring_bus_per_nic);
}

uint32_t
ls_coll_max_channels (const LsCollCall *call)
{
  const LsNccl *nccl = call->nccl;
  uint32_t all = call->n_hosts == 1 ? nccl->channels_ring : nccl->channels_net * call->min_nics;
  return nccl->max_ctas > 0 ? MIN (all, nccl->max_ctas) : all;
}

uint32_t
ls_coll_channels (const LsCollCall *call)
{
  return ls_tune_channels (LS_TUNE_RING, call->protocol, call->n, ls_coll_max_channels (call), call->bytes);
}

uint32_t
ls_coll_chunks (const LsCollCall *call, uint32_t n_channels, uint32_t stages, uint64_t n_messages)
{
  uint64_t wanted = (uint64_t) CHUNKS_PER_STAGE * MAX (1, stages - 1);
  uint64_t may = MIN (call->bytes / n_channels / MIN_CHUNK_BYTES, MAX_MESSAGES / n_messages);
  return (uint32_t) MAX (1, MIN (wanted, may));
}

uint32_t
ls_coll_seat_in_order (const LsCollCall *call, uint32_t h, uint32_t entry, uint32_t x)
{
  const LsCollHost *host = &call->hosts[h];
  return (uint32_t) (host->gpus - call->sorted) + (entry + x) % host->n;
}

uint32_t
ls_coll_order_of_seat (const LsCollCall *call, uint32_t seat, uint32_t entry)
{
  const LsCollHost *host = &call->hosts[call->host_of[seat]];
  uint32_t local = seat - (uint32_t) (host->gpus - call->sorted);
  return (local + host->n - entry % host->n) % host->n;
}

uint64_t
ls_coll_sum_of_weights (const LsCollCall *call)
{
  uint64_t sum = 0;
  for (uint32_t i = 0; i < call->n; i++)
    sum += call->weights[i];
  return sum;
}

double
ls_coll_busiest_over_mean (const LsCollCall *call)
{
  uint32_t most = 0;
  for (uint32_t i = 0; i < call->n && call->weights; i++)
    most = MAX (most, call->weights[i]);
  return call->weights ? (double) most * call->n / (double) ls_coll_sum_of_weights (call) : 1;
}
