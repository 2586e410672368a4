/* network/coll_ring.c — ring all-reduce, all-gather, reduce-scatter, broadcast.
 *
 * Problem. n members, k of them on each of N hosts, move an array of S bytes
 * over C channels. A channel is one ring through all members, driven by one
 * thread block per GPU; it carries S/C of the array.
 *
 * Model. Every edge of a ring carries w S / C bytes, w = ls_coll_wire_factor();
 * that is the demand of a flow. The rings of different channels enter a host at
 * different members: channel c at member c mod k, through the NIC of that
 * member, and it visits the others over NVLink (or PCIe). Summed over channels,
 *
 *     inside one host    each edge of the ring of members   C       flows
 *     across hosts       each edge inside a host            C (k-1)/k
 *                        each member's NIC, in and out      C / k
 *     HBM of a member    C * traffic per wire byte
 *
 * NCCL gives a channel at least 32 KiB, so small messages use fewer of them; these
 * reach the bus bandwidth all the same (measured times are flat from 16 to 512
 * KiB). Across hosts they are rounded up until C/k is a whole number of 2^-20
 * flows: all sums are exact and members alike.
 *
 * Rate. A channel never exceeds bus / C. bus is what NCCL's graph search gives
 * the ring inside a node; across nodes also what NCCL gets through the NICs used.
 * Two things keep it below:
 *
 *   drain  A thread block executes its steps in order. Of sends + 1 steps per
 *          chunk the last only copies out of the receive buffer, which takes
 *          `drain` of a step: the links idle drain / sends of the time. It
 *          explains why twice the bytes cost 2 GPUs as much time as 158 GB/s in an
 *          all-gather (256 to 512 MiB), but 8 GPUs as much as 216 GB/s.
 *   ramp   Small messages move in half-full slices (MODELS.md 2.1, chunking) or
 *          with flags between their data (LL); W wire bytes take the bus time of
 *          W + W R / (W + R).
 *
 *     time alone = latency + W / bus * (1 + drain / sends + R / (W + R))
 *
 * Worked example: all-reduce of 1 GiB over the 8 GPUs of a node, bus 240 GB/s,
 * drain 0.5, R 0: W = 1.75 GiB, 1.879e9 / 240e9 * (1 + 0.5/14) = 8.109 ms.
 *
 * Deviations. The last member of a ring inside a host hands its data to the NIC
 * of the first one; here the first one's own PCIe link carries it. The idle edge
 * into the root of a broadcast is counted as busy. Ramp and drain limit the rate,
 * so they vanish behind a slower link. Rings of communicators with different
 * numbers of members per host pair them by channel number.
 *
 * Reference: Patarasuk & Yuan, Bandwidth optimal all-reduce algorithms for
 * clusters of workstations, JPDC 69 (2009); NCCL 2.30.7 src/device/all_reduce.h,
 * src/graph/tuning.cc. */
#include <math.h>

#include "cluster/route.h"
#include "core/maxmin.h" /* LS_COEF_ONE */
#include "network/algorithm.h"

/* 512 threads, each worth 64 bytes (NCCL: nThreads * threadThreshold). */
#define BYTES_PER_CHANNEL 32768

static bool
applies (const LsCollCall *call)
{
  return call->kind != LS_COLL_SEND_RECV;
}

static uint32_t
gcd (uint32_t a, uint32_t b)
{
  return b == 0 ? a : gcd (b, a % b);
}

static uint32_t
nics_used (const LsCluster *c, const LsCollHost *host)
{
  uint32_t n = 0;
  for (uint32_t i = 0; i < host->n; i++)
    n += i == 0 || ls_nic_of_gpu (c, host->gpus[i]) != ls_nic_of_gpu (c, host->gpus[i - 1]);
  return n;
}

/* Of the host that uses the fewest. */
static uint32_t
min_nics (const LsCollCall *call)
{
  uint32_t n = UINT32_MAX;
  for (uint32_t h = 0; h < call->n_hosts; h++)
    n = MIN (n, nics_used (call->cluster, &call->hosts[h]));
  return n;
}

/* Odd part of the least common multiple of the members per host: what the number
 * of flows must be divisible by, as powers of two fit into 2^-20. */
static uint32_t
divisor_of_flows (const LsCollCall *call)
{
  uint32_t lcm = 1;
  for (uint32_t h = 0; h < call->n_hosts; h++) {
    uint32_t odd = call->hosts[h].n >> g_bit_nth_lsf (call->hosts[h].n, -1);
    lcm = lcm / gcd (lcm, odd) * odd;
  }
  return lcm;
}

static uint32_t
round_up (uint32_t value, uint32_t multiple)
{
  return (value + multiple - 1) / multiple * multiple;
}

/* The ring of members inside host h; across hosts every channel leaves out the
 * edge at which it comes and goes. */
static void
add_inside (const LsCollCall *call, const LsCollHost *host, uint64_t flows, LsLoadList *loads)
{
  uint64_t coef = call->n_hosts == 1 ? flows : flows / host->n * (host->n - 1);
  for (uint32_t i = 0; i < host->n && host->n > 1; i++)
    ls_load_list_add_route (loads, call->cluster, host->gpus[i], host->gpus[(i + 1) % host->n], coef);
}

static void
add_between (const LsCollCall *call, const LsCollHost *from, const LsCollHost *to, uint64_t flows,
             LsLoadList *loads)
{
  uint32_t n_pairs = from->n / gcd (from->n, to->n) * to->n;
  for (uint32_t c = 0; c < n_pairs; c++)
    ls_load_list_add_route (loads, call->cluster, from->gpus[c % from->n], to->gpus[c % to->n],
                            flows / n_pairs);
}

static void
add_loads (const LsCollCall *call, uint32_t n_flows, LsPhase *phase)
{
  uint64_t flows = n_flows * LS_COEF_ONE;
  uint64_t hbm = (uint64_t) llround ((double) flows * ls_nccl_hbm_per_wire (call->nccl, call->kind));
  LsLoadList loads = ls_load_list_new ();
  for (uint32_t h = 0; h < call->n_hosts; h++) {
    add_inside (call, &call->hosts[h], flows, &loads);
    if (call->n_hosts > 1)
      add_between (call, &call->hosts[h], &call->hosts[(h + 1) % call->n_hosts], flows, &loads);
  }
  for (uint32_t i = 0; i < call->n; i++)
    ls_load_list_add (&loads, ls_cluster_hbm_resource (call->cluster, call->gpus[i]), hbm);
  ls_load_list_finish (&loads, call->arena, phase);
}

static void
plan (const LsCollCall *call, LsCollPlan *ret_plan)
{
  const LsNccl *nccl = call->nccl;
  bool is_across = call->n_hosts > 1;
  uint32_t nics = is_across ? min_nics (call) : 0;
  double bus = is_across ? fmin (nccl->ring_bus_intra, nics * nccl->ring_bus_per_nic) : nccl->ring_bus_intra;
  uint32_t n_channels = is_across ? nccl->channels_net * nics : nccl->channels_ring;
  uint32_t n_used = ls_nccl_channels (n_channels, call->bytes, BYTES_PER_CHANNEL);
  uint32_t n_flows = is_across ? round_up (n_used, divisor_of_flows (call)) : n_used;

  double wire = ls_coll_wire_factor (call->kind, call->n) * (double) call->bytes;
  double idle = nccl->drain / ls_nccl_ring_sends (call->kind, call->n);
  double fill = 1 / ls_nccl_ramp (nccl, 1, wire) - 1;

  LsPhase *phase = ls_arena_new_array (call->arena, LsPhase, 1);
  phase->latency = ls_nccl_ring_latency (call);
  phase->demand_bytes = wire / n_flows;
  phase->rate_cap = bus / n_flows / (1 + idle + fill);
  if (call->bytes > 0)
    add_loads (call, n_flows, phase);
  ret_plan->sm_share = fmin (1, n_used * nccl->sm_share_per_channel);
  ret_plan->n_phases = 1;
  ret_plan->phases = phase;
}

const LsCollAlgorithm ls_coll_ring = { .name = "ring", .applies = applies, .plan = plan };
