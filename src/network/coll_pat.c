/* network/coll_pat.c — NCCL's parallel aggregated trees: all-gather and reduce-scatter
 * with one member on each host.
 *
 * Problem. n members, one to a host, move S bytes in log2 n steps across the network.
 *
 * Model. All-gather: with distances d = 2^(m-1), .. 2, 1 (2^m >= n) member i, in the order
 * of hosts, sends to i + d modulo n the parts of i - a for all multiples a of 2 d with
 * a + d < n: what it has of a tree of which every member is the root of one. The farthest
 * step moves the least. Reduce-scatter is this backwards, adding up. All parts move once:
 *
 *     each member sends (n-1)/n S
 *
 * NCCL runs steps into each other: one phase, the latency and bandwidth of its tuning
 * model (0.75 of the bus; log2 n hops at 1/3.5 and 2.8 us for each member posted to a
 * NIC).
 *
 *     time alone = base + log2(n) hop_inter / 3.5 + 2.8 us n + (n-1)/n S / (0.75 bus)
 *
 * Worked example: all-gather of 64 MiB over 4 hosts, base 9 us, hop 14 us, 16 GB/s:
 * 9 + 8 + 11.2 us + 50.33e6 / 12e9 = 4.222 ms.
 *
 * Deviations. With n not a power of two NCCL's trees are cut in the same way, but its
 * buffer may split a step in several.
 *
 * Reference: Jeaugey, PAT: a new algorithm for all-gather and reduce-scatter operations
 * at scale, arXiv 2506.20252; NCCL 2.30.7 src/graph/tuning.cc. */
#include <math.h>

#include "core/maxmin.h" /* LS_COEF_ONE */
#include "network/algorithm.h"

#define BUS_SHARE    0.75
#define HOPS_AT_ONCE 3.5
#define POST_PS      ((LsTime) (2.8 * LS_US))

static bool
applies (const LsCollCall *call)
{
  return call->n_hosts > 1 && call->n_hosts == call->n;
}

/* Far to near, or back. */
static uint32_t
distance (const LsScript *s, uint32_t round)
{
  return 1u << (s->kind == LS_COLL_ALL_GATHER ? s->n_rounds - 1 - round : round);
}

static uint32_t
sends (const LsScript *s, uint32_t place, uint32_t round, LsSend *ret)
{
  const LsCollCall *call = s->data;
  uint32_t n = s->n, d = distance (s, round), seat = call->seat[place];
  bool gathers = s->kind == LS_COLL_ALL_GATHER;
  uint32_t to = gathers ? (seat + d) % n : (seat + n - d) % n;
  uint32_t newest = gathers ? seat : to;
  uint32_t n_parts = (n - d + 2 * d - 1) / (2 * d);
  /* Parts newest, newest - 2 d, ..: from the oldest on. */
  uint32_t oldest = (newest + n - (n_parts - 1) * 2 * d) % n;
  *ret = (LsSend) {
    .to = call->member[to], .first = oldest, .n = n_parts, .stride = 2 * d, .reduces = !gathers
  };
  return 1;
}

static uint32_t
n_receives (const LsScript *s, uint32_t place, uint32_t round)
{
  return 1;
}

static void
script (const LsCollCall *call, LsScript *s)
{
  uint32_t n_channels = ls_coll_channels (call);
  ls_script_cut (call, s, call->n);
  s->data = call;
  s->part_of = call->seat;
  s->n_rounds = g_bit_storage (call->n - 1);
  s->max_sends = 1;
  s->sends = sends;
  s->n_receives = n_receives;
  s->base = ls_nccl_base (call->nccl, call->kind);
  s->hop_intra = s->hop_inter
      = (LsTime) ((double) call->nccl->hop_inter / HOPS_AT_ONCE) + POST_PS * call->n / s->n_rounds;
  s->rate_intra = s->rate_inter = BUS_SHARE * ls_coll_bus (call) / n_channels;
  s->flows = n_channels * LS_COEF_ONE;
  s->hbm_from = s->hbm_to = ls_nccl_hbm_per_wire (call->nccl, call->kind) / 2;
}

static void
plan (const LsCollCall *call, LsCollPlan *ret_plan)
{
  LsScript s = ls_script_of (call);
  script (call, &s);
  uint32_t n_flows = (uint32_t) (s.flows / LS_COEF_ONE);
  LsRounds all = { .n_rounds = s.n_rounds, .latency = s.base + s.n_rounds * s.hop_inter };
  ret_plan->sm_share = fmin (1, n_flows * call->nccl->sm_share_per_channel);
  ret_plan->n_phases = 1;
  ret_plan->phases = ls_arena_new_array (call->arena, LsPhase, 1);
  ls_phase_of_rounds (call, &s, &all, n_flows, ret_plan->phases);
}

#define KINDS (LS_COLL_BIT (LS_COLL_ALL_GATHER) | LS_COLL_BIT (LS_COLL_REDUCE_SCATTER))

const LsCollAlgorithm ls_coll_pat = { .name = "pat",
                                      .kinds = KINDS,
                                      .applies = applies,
                                      .wants = "two nodes or more, one rank on each",
                                      .only_simple = true,
                                      .turns = true,
                                      .plan = plan,
                                      .script = script };
