/* network/nccl.c — latency, channels and ramp of NCCL.
 *
 * Structure and constants that are not fitted follow NCCL 2.30.7 (commit
 * 5067397), src/graph/tuning.cc and src/enqueue.cc, as summarised in MODELS.md
 * section 2.1:
 *
 *   ring latency  base + (sends - x) * hop_intra + x * hop_inter
 *                 sends = 2(n-1), x = 2(N-1) for all-reduce, else n-1 and N-1
 *   tree latency  base + 2 ((k-1) * hop_intra + floor(log2 N) * hop_inter)
 *
 * for n members on N hosts, at most k on each. NCCL's tuner changes from ring to
 * tree when the latency of the ring outweighs its bandwidth, so an all-reduce
 * pays the smaller of the two; all-gather and reduce-scatter have no tree.
 *
 * Worked example: 64 members, 8 on each of 8 hosts, base 8.4 us, hop_intra 3.4,
 * hop_inter 14. Ring: 8.4 + 112 * 3.4 + 14 * 14 = 585.2 us. Tree:
 * 8.4 + 2 (7 * 3.4 + 3 * 14) = 140 us.
 *
 * Deviation: a tree moves its bytes at other rates than a ring; only its
 * latency is taken. Protocols LL and LL128 are not modelled as choices: below
 * 1 MiB, where NCCL prefers them, an all-reduce here takes up to 30 us too long,
 * the difference of the fitted base to that of LL (6.6 us). */
#include "network/algorithm.h"

void
ls_nccl_clear (LsNccl *nccl)
{
  if (!nccl)
    return;
  g_clear_pointer (&nccl->name, g_free);
  g_clear_pointer (&nccl->source, g_free);
}

uint32_t
ls_nccl_channels (uint32_t n, uint64_t bytes, uint64_t bytes_per_channel)
{
  uint64_t affordable = bytes / bytes_per_channel;
  return (uint32_t) CLAMP (affordable, 1, n);
}

uint32_t
ls_nccl_ring_sends (LsCollKind kind, uint32_t n)
{
  return (kind == LS_COLL_ALL_REDUCE ? 2 : 1) * (n - 1);
}

static LsTime
base_of (const LsNccl *nccl, LsCollKind kind)
{
  switch (kind) {
  case LS_COLL_ALL_REDUCE:
    return nccl->base_all_reduce;
  case LS_COLL_REDUCE_SCATTER:
    return nccl->base_reduce_scatter;
  default:
    return nccl->base_all_gather;
  }
}

static uint32_t
max_members (const LsCollCall *call)
{
  uint32_t k = 0;
  for (uint32_t h = 0; h < call->n_hosts; h++)
    k = MAX (k, call->hosts[h].n);
  return k;
}

LsTime
ls_nccl_ring_latency (const LsCollCall *call)
{
  const LsNccl *nccl = call->nccl;
  uint32_t sends = ls_nccl_ring_sends (call->kind, call->n);
  uint32_t across = call->n_hosts == 1 ? 0 : ls_nccl_ring_sends (call->kind, call->n_hosts);
  LsTime ring = (LsTime) (sends - across) * nccl->hop_intra + (LsTime) across * nccl->hop_inter;
  if (call->kind == LS_COLL_ALL_REDUCE) {
    LsTime depth = (LsTime) (g_bit_storage (call->n_hosts) - 1);
    LsTime tree = 2 * ((LsTime) (max_members (call) - 1) * nccl->hop_intra + depth * nccl->hop_inter);
    ring = MIN (ring, tree);
  }
  return base_of (nccl, call->kind) + ring;
}

double
ls_nccl_hbm_per_wire (const LsNccl *nccl, LsCollKind kind)
{
  switch (kind) {
  case LS_COLL_ALL_REDUCE:
    return nccl->hbm_per_wire_all_reduce;
  case LS_COLL_REDUCE_SCATTER:
    return nccl->hbm_per_wire_reduce_scatter;
  case LS_COLL_SEND_RECV:
    return nccl->hbm_per_wire_p2p;
  default:
    return nccl->hbm_per_wire_all_gather;
  }
}

double
ls_nccl_ramp (const LsNccl *nccl, uint32_t stages, double wire_bytes)
{
  double ramp = stages * nccl->ramp_bytes;
  return ramp > 0 ? (wire_bytes + ramp) / (wire_bytes + 2 * ramp) : 1;
}
