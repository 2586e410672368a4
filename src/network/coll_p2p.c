/* network/coll_p2p.c — messages between pairs: one send with its receive; each member to the next.
 *
 * Problem. gpus[0] sends S bytes to gpus[1].
 *
 * Model. C flows of S/C bytes on the route between the two GPUs; the HBM of both
 * carries hbm_per_wire_p2p for each byte. A flow never exceeds p2p / C, with p2p
 * what NCCL's copy kernels reach on NVLink or through one NIC. Small messages
 * use fewer channels: each gets at least 64 KiB inside a node, 256 KiB across.
 *
 * Channels inside a node. A communicator has P for p2p: those of its rings, rounded up to a
 * power of 2. One of n ranks gives a message the most, C, with C n <= P, and twice as many
 * as long as each had more than 16 MiB:
 *
 *     A100, H100: 24 rings, P = 32; n = 2: 16 channels to 256 MiB, then 32
 *
 * Each holds an SM at both ends.
 *
 *     time alone = base + S / p2p
 *
 * Worked example: 64 MiB over NVLink, base 12 us, 274 GB/s: 257 us.
 *
 * Deviations. No rendezvous cost apart from the base; one NIC per GPU. A send or receive
 * of a pipeline has a communicator of its two ranks, as torch's isend and irecv make; in a batch
 * torch takes that of the group, whose larger n means fewer channels. GPUs that are joined by
 * few NVLinks (DGX-1) have no more than 2 channels for each of these in NCCL.
 *
 * Reference: NCCL 2.30.7 src/enqueue.cc (scheduleP2pTasksToPlan, calcP2pChannelCount:
 * minPart = step/8 or step/2, maxPart = 32 steps or one, of 512 KiB) and src/graph/paths.cc
 * (ncclTopoComputeP2pChannels). */
#include <math.h>

#include "core/maxmin.h" /* LS_COEF_ONE */
#include "network/algorithm.h"

#define MIN_PART_INTRA (64 * 1024)
#define MIN_PART_INTER (256 * 1024)
#define MAX_PART_INTRA (16 * 1024 * 1024)

static void
add_loads (const LsCollCall *call, uint32_t n_channels, LsPhase *phase)
{
  uint64_t flows = n_channels * LS_COEF_ONE;
  uint64_t hbm = (uint64_t) llround ((double) flows * call->nccl->hbm_per_wire_p2p);
  LsLoadList loads = ls_load_list_new (call->cluster);
  ls_load_list_add_route (&loads, call->gpus[0], call->gpus[1], flows);
  for (uint32_t i = 0; i < 2; i++)
    ls_load_list_add (&loads, ls_cluster_hbm_resource (call->cluster, call->gpus[i]), hbm);
  ls_load_list_finish (&loads, call->arena, phase);
}

static uint32_t
channels_inside (const LsCollCall *call)
{
  uint32_t all = 1, n_channels;
  while (all < call->nccl->channels_ring)
    all *= 2;
  for (n_channels = all; (uint64_t) n_channels * call->n > all && n_channels > 1;)
    n_channels /= 2;
  while ((call->bytes + n_channels - 1) / n_channels > MAX_PART_INTRA && n_channels <= all / 2)
    n_channels *= 2;
  return n_channels;
}

/* Channels of one message to a peer (coll_p2p.c). */
static uint32_t
nccl_p2p_channels (const LsCollCall *call)
{
  bool is_across = call->seats.n_hosts > 1;
  uint32_t n_channels = is_across ? call->nccl->channels_p2p : channels_inside (call);
  return ls_nccl_channels (n_channels, call->bytes, is_across ? MIN_PART_INTER : MIN_PART_INTRA);
}

static bool
is_by_copy_engine (const LsCollCall *call)
{
  return call->kind == LS_COLL_COPY_PERMUTE && call->seats.n_hosts == 1;
}

/* Of a message, all its flows together. */
static double
rate (const LsCollCall *call)
{
  double s = is_by_copy_engine (call) ? 0 : ls_nccl_p2p_seconds (call);
  double fastest = call->seats.n_hosts > 1 ? call->nccl->p2p_inter : call->nccl->p2p_intra;
  return s > 0 ? (double) call->bytes / s : fastest;
}

static void
plan (const LsCollCall *call, LsCollPlan *ret_plan)
{
  g_assert (call->n == 2);
  uint32_t n_used = nccl_p2p_channels (call);

  LsPhase *phase = ls_plan_phases (call, n_used, 1, ret_plan);
  phase->latency = ls_nccl_p2p_latency (call);
  phase->demand_bytes = (double) call->bytes / n_used;
  phase->rate_cap = rate (call) / n_used;
  if (call->bytes > 0)
    add_loads (call, n_used, phase);
}

/* One message from place 0 to place 1. */
static void
script (const LsCollCall *call, LsScript *s)
{
  const LsNccl *nccl = call->nccl;
  uint32_t n_used = nccl_p2p_channels (call);
  ls_script_cut (call, s, 1);
  ls_script_of_root (s);
  s->base = ls_nccl_p2p_latency (call); /* hop included */
  s->rate_intra = s->rate_inter = rate (call) / n_used;
  s->flows = n_used * LS_COEF_ONE;
  s->hbm_from = s->hbm_to = nccl->hbm_per_wire_p2p;
}

#define KINDS LS_COLL_BIT (LS_COLL_SEND_RECV)

const LsCollAlgorithm ls_coll_p2p
    = { .name = "p2p", .kinds = KINDS, .automatic = KINDS, .plan = plan, .script = script };

/* Each member sends S bytes to the next one, the last to the first: a step of ring attention, or of a
 * ring exchange that a GEMM runs beside (XLA's collective-permute, sendrecv_perf of nccl-tests). */

/* Problem. n messages at once; each member sends one and receives one.
 *
 * Model. Permute: one group of a send and a receive per member, as NCCL runs it: C flows of S/C bytes from
 * each member to the next, with the latency and rate of a single send, and its channels in a communicator of
 * n (coll_p2p.c). Across hosts the rate is that of a NIC for all, as all end together.
 *
 *     time alone = base + S / p2p
 *
 * Copy-permute: the same by copy engines, a memory copy into the peer's memory. It holds no
 * SMs and needs no channels; its latency is that of the links alone. Copy engines reach the
 * GPUs of their host: across hosts it is a permute.
 *
 * Worked example: 64 MiB over NVLink, base 12 us, 250 GB/s: 12e-6 + 67.1e6 / 250e9 = 280.4 us;
 * each GPU's way to the NVSwitches carries 64 MiB up and 64 MiB down.
 *
 * Deviations. A step begins when all members are there, and ends for all at once, though a
 * member waits for its neighbours only. The rate of a copy engine is taken to be that of NCCL's
 * copy kernels, which is measured; the cost of its signal to the peer is left out.
 *
 * Reference: NCCL 2.30.7 src/enqueue.cc, as coll_p2p.c. Copies: Transformer Engine's
 * userbuffers (ring_exchange, use_ce) and PyTorch's symmetric memory
 * (discuss.pytorch.org/t/209487, async tensor parallelism). */

static uint32_t
sends_permute (const LsScript *s, uint32_t place, uint32_t round, LsSend *ret)
{
  *ret = (LsSend) { .to = (place + 1) % s->n, .first = place, .n = 1 };
  return 1;
}

uint32_t
ls_script_receives_most (const LsScript *s, uint32_t place, uint32_t round)
{
  return s->max_sends;
}

void
ls_script_shift (LsScript *s)
{
  s->n_rounds = s->max_sends = 1;
  s->sends = sends_permute;
  s->n_receives = ls_script_receives_most;
}

static LsTime
longest_route (const LsCollCall *call)
{
  LsTime longest = 0;
  for (uint32_t i = 0; i < call->n; i++) {
    LsRoute route;
    ls_route (call->cluster, call->gpus[i], call->gpus[(i + 1) % call->n], 0, &route);
    longest = MAX (longest, route.latency);
  }
  return longest;
}

static uint32_t
n_flows (const LsCollCall *call)
{
  return is_by_copy_engine (call) ? 1 : nccl_p2p_channels (call);
}

static void
script_permute (const LsCollCall *call, LsScript *s)
{
  s->n_blocks = call->n;
  s->block_bytes = (double) call->bytes;
  ls_script_shift (s);
  s->base = is_by_copy_engine (call) ? longest_route (call) : ls_nccl_p2p_latency (call); /* hop included */
  s->rate_intra = s->rate_inter = rate (call) / n_flows (call);
  s->flows = n_flows (call) * LS_COEF_ONE;
  s->hbm_from = s->hbm_to = is_by_copy_engine (call) ? 1 : call->nccl->hbm_per_wire_p2p;
}

static void
plan_permute (const LsCollCall *call, LsCollPlan *ret_plan)
{
  LsScript s = ls_script_of (call);
  script_permute (call, &s);
  ls_plan_as_one (call, &s, n_flows (call), s.base, 0, ret_plan);
  if (is_by_copy_engine (call))
    ret_plan->sm_share = 0;
}

#define KINDS_PERMUTE (LS_COLL_BIT (LS_COLL_PERMUTE) | LS_COLL_BIT (LS_COLL_COPY_PERMUTE))

const LsCollAlgorithm ls_coll_shift = { .name = "shift",
                                        .kinds = KINDS_PERMUTE,
                                        .automatic = KINDS_PERMUTE,
                                        .plan = plan_permute,
                                        .script = script_permute };
