/* network/coll_hierarchical.c — all-reduce, all-gather and reduce-scatter in two levels.
 *
 * Problem. k members on each of N hosts move S bytes, and the network between hosts is
 * slower than the links inside.
 *
 * Model. Reduce-scatter inside each host by direct exchange (k - 1 rounds), so that
 * member l has the host's sum of the l-th k-th; reduce-scatter and all-gather of that
 * among the members l of all hosts, by a ring over hosts (N - 1 rounds each); all-gather
 * inside each host. Reduce-scatter alone is the first half, all-gather the second.
 *
 *     inside a host     a member sends (k-1)/k S each way of the trip
 *     across hosts      a member sends (N-1)/N S / k each way
 *
 * Rates are those of NCCL's rings, inside a host and for each member's share of the NICs.
 * Each of the (up to four) parts is a phase:
 *
 *     time alone = base + (k-1) hop_intra + (k-1)/k S / bus_intra
 *                + (N-1) hop_inter + (N-1)/N S / (nics * bus_per_nic)     (twice for
 *                                                                          all-reduce)
 *
 * Worked example: all-reduce of 4 GiB over 4 hosts of 8, 50 GB/s for each of 8 NICs:
 * across hosts 2 * 3/4 * 4.295e9 / 400e9 = 16.1 ms (worked example st-hier), inside with
 * 700 GB/s 2 * 7/8 * 4.295e9 / 700e9 = 10.7 ms.
 *
 * Deviations. Parts do not overlap, as they would with several buckets on their way.
 *
 * Reference: Cho, Finkler & Kung, BlueConnect, MLSys 2019; Mikami et al.,
 * arXiv 1811.05233 (2D-torus all-reduce on hosts and GPUs). */
#include <math.h>

#include "core/maxmin.h" /* LS_COEF_ONE */
#include "network/algorithm.h"

typedef enum { SCATTER_INSIDE, SCATTER_ACROSS, GATHER_ACROSS, GATHER_INSIDE, N_PARTS } Part;

typedef struct {
  const LsCollCall *call;
  uint32_t n_rounds[N_PARTS]; /* 0: left out */
} Levels;

static bool
is_across (Part part)
{
  return part == SCATTER_ACROSS || part == GATHER_ACROSS;
}

static bool
applies (const LsCollCall *call)
{
  return call->seats.n_hosts > 1 && call->seats.per_host > 1;
}

static uint32_t
sends (const LsScript *s, uint32_t place, uint32_t round, LsSend *ret)
{
  const Levels *x = s->data;
  const LsCollSeats *seats = &x->call->seats;
  uint32_t k = seats->per_host, n = seats->n_hosts, h = seats->seat[place] / k, l = seats->seat[place] % k,
           r = round;
  Part part = SCATTER_INSIDE;
  while (r >= x->n_rounds[part])
    r -= x->n_rounds[part++];
  uint32_t peer = (l + r + 1) % k;
  const uint32_t first[N_PARTS]
      = { peer * n, l * n + (h + 2 * n - 1 - r) % n, l * n + (h + n - r) % n, l * n };
  *ret = (LsSend) { .to = seats->member[is_across (part) ? (h + 1) % n * k + l : h * k + peer],
                    .first = first[part],
                    .n = is_across (part) ? 1 : n,
                    .reduces = part <= SCATTER_ACROSS };
  return 1;
}

static void
script (const LsCollCall *call, LsScript *s)
{
  Levels *x = ls_arena_new_array (call->arena, Levels, 1);
  uint32_t k = call->seats.per_host, n_hosts = call->seats.n_hosts;
  uint32_t *part_of = ls_arena_new_array (call->arena, uint32_t, call->n);
  x->call = call;
  if (call->kind != LS_COLL_ALL_GATHER) {
    x->n_rounds[SCATTER_INSIDE] = k - 1;
    x->n_rounds[SCATTER_ACROSS] = n_hosts - 1;
  }
  if (call->kind != LS_COLL_REDUCE_SCATTER) {
    x->n_rounds[GATHER_ACROSS] = n_hosts - 1;
    x->n_rounds[GATHER_INSIDE] = k - 1;
  }
  for (uint32_t seat = 0; seat < call->n; seat++)
    part_of[call->seats.member[seat]] = seat % k * n_hosts + seat / k;
  const LsNccl *nccl = call->nccl;
  uint32_t n_channels = ls_coll_channels (call);
  ls_script_cut (call, s, call->n);
  s->data = x;
  s->part_of = part_of;
  for (Part part = 0; part < N_PARTS; part++)
    s->n_rounds += x->n_rounds[part];
  s->max_sends = 1;
  s->sends = sends;
  s->n_receives = ls_script_receives_most;
  s->base = ls_nccl_base (nccl, call->kind);
  s->hop_intra = nccl->hop_intra;
  s->hop_inter = nccl->hop_inter;
  s->rate_intra = nccl->ring_bus_intra / n_channels;
  s->rate_inter = call->seats.min_nics * nccl->ring_bus_per_nic / k / n_channels;
  s->flows = n_channels * LS_COEF_ONE;
}

static void
plan (const LsCollCall *call, LsCollPlan *ret_plan)
{
  LsScript s = ls_script_of (call);
  script (call, &s);
  const Levels *x = s.data;
  uint32_t n_flows = (uint32_t) (s.flows / LS_COEF_ONE), first = 0;
  ret_plan->sm_share = fmin (1, n_flows * call->nccl->sm_share_per_channel);
  ret_plan->phases = ls_arena_new_array (call->arena, LsPhase, N_PARTS);
  for (Part part = 0; part < N_PARTS; part++) {
    if (x->n_rounds[part] == 0)
      continue;
    LsTime hops = (LsTime) x->n_rounds[part] * (is_across (part) ? s.hop_inter : s.hop_intra);
    LsRounds rounds = { .first = first,
                        .n_rounds = x->n_rounds[part],
                        .is_same = is_across (part),
                        .latency = hops + (first == 0 ? s.base : 0) };
    ls_phase_of_rounds (call, &s, &rounds, n_flows, &ret_plan->phases[ret_plan->n_phases++]);
    first += x->n_rounds[part];
  }
}

const LsCollAlgorithm ls_coll_hierarchical
    = { .name = "hierarchical",
        .kinds = LS_COLL_HALVES,
        .applies = applies,
        .wants = "two nodes or more, as many ranks on each, at least 2",
        .plan = plan,
        .script = script };
