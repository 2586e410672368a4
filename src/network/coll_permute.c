/* network/coll_permute.c — each member sends S bytes to the next one, the last to the
 * first: a step of ring attention, or of a ring exchange that a GEMM runs beside (XLA's
 * collective-permute, sendrecv_perf of nccl-tests).
 *
 * Problem. n messages at once; each member sends one and receives one.
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
#include <math.h>

#include "cluster/route.h"
#include "core/maxmin.h" /* LS_COEF_ONE */
#include "network/algorithm.h"

static bool
is_by_copy_engine (const LsCollCall *call)
{
  return call->kind == LS_COLL_COPY_PERMUTE && call->n_hosts == 1;
}

static uint32_t
sends (const LsScript *s, uint32_t place, uint32_t round, LsSend *ret)
{
  (void) round;
  *ret = (LsSend) { .to = (place + 1) % s->n, .first = place, .n = 1 };
  return 1;
}

static uint32_t
n_receives (const LsScript *s, uint32_t place, uint32_t round)
{
  (void) s, (void) place, (void) round;
  return 1;
}

static LsTime
longest_route (const LsCollCall *call)
{
  LsTime longest = 0;
  for (uint32_t i = 0; i < call->n; i++) {
    LsRoute route;
    ls_route (call->cluster, call->gpus[i], call->gpus[(i + 1) % call->n], LS_NIC_AUTO, LS_NIC_AUTO, &route);
    longest = MAX (longest, route.latency);
  }
  return longest;
}

static uint32_t
n_flows (const LsCollCall *call)
{
  return is_by_copy_engine (call) ? 1 : ls_nccl_p2p_channels (call);
}

/* Of a message, all its flows together. */
static double
rate (const LsCollCall *call)
{
  double s = is_by_copy_engine (call) ? 0 : ls_nccl_p2p_seconds (call);
  double fastest = call->n_hosts > 1 ? call->nccl->p2p_inter : call->nccl->p2p_intra;
  return s > 0 ? (double) call->bytes / s : fastest;
}

static void
script (const LsCollCall *call, LsScript *s)
{
  s->n_blocks = call->n;
  s->block_bytes = (double) call->bytes;
  s->n_rounds = s->max_sends = 1;
  s->sends = sends;
  s->n_receives = n_receives;
  s->base = is_by_copy_engine (call) ? longest_route (call) : ls_nccl_p2p_latency (call); /* hop included */
  s->rate_intra = s->rate_inter = rate (call) / n_flows (call);
  s->flows = n_flows (call) * LS_COEF_ONE;
  s->hbm_from = s->hbm_to = is_by_copy_engine (call) ? 1 : call->nccl->hbm_per_wire_p2p;
}

static void
plan (const LsCollCall *call, LsCollPlan *ret_plan)
{
  LsScript s = ls_script_of (call);
  script (call, &s);
  LsRounds round = { .n_rounds = 1, .latency = s.base };
  ret_plan->sm_share
      = is_by_copy_engine (call) ? 0 : fmin (1, n_flows (call) * call->nccl->sm_share_per_channel);
  ret_plan->n_phases = 1;
  ret_plan->phases = ls_arena_new_array (call->arena, LsPhase, 1);
  ls_phase_of_rounds (call, &s, &round, n_flows (call), ret_plan->phases);
}

#define KINDS (LS_COLL_BIT (LS_COLL_PERMUTE) | LS_COLL_BIT (LS_COLL_COPY_PERMUTE))

const LsCollAlgorithm ls_coll_shift
    = { .name = "shift", .kinds = KINDS, .automatic = KINDS, .plan = plan, .script = script };
