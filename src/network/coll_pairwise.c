/* network/coll_pairwise.c — all-to-all, all-gather, reduce-scatter and all-reduce by
 * direct exchange.
 *
 * Problem. Every one of n members has something for every other one.
 *
 * Model. n - 1 pairs of a send and a receive; in pair r member i sends to i + r + 1 and
 * receives from i - r - 1 (modulo n). All-to-all: its block for that member. All-gather: its part.
 * Reduce-scatter: its contribution to the part of that member, which adds it up.
 * All-reduce: reduce-scatter, then all-gather. NCCL does an all-to-all in this way, eight
 * pairs at once (a batch of work, here a round), and batches do not wait for each other:
 * all are one phase, with a hop for each further batch. What is on links follows from the
 * messages.
 *
 * Latency and rate of an all-to-all are those of nccl.c. The others, which NCCL does not
 * do like this, start as its collectives and move at the rate of its sends:
 *
 *     time alone = base + (ceil((n-1) / 8) - 1) hop + max (S (k-1)/n / p2p_intra,
 *                                                          S (n-k)/n / p2p_inter)
 *
 * for n members, k on each host; hop and base are those of the farthest peer. All-reduce
 * takes that twice, and a hop between.
 *
 * Worked example: all-gather of 64 MiB over 8 members of one host, 250 GB/s, base 9 us:
 * 9e-6 + 7/8 * 67.1e6 / 250e9 = 243.9 us.
 *
 * Deviations. Cost n^2: a plan for 1,024 members looks at a million messages. NCCL orders
 * pairs by distance.
 *
 * Reference: NCCL 2.30.7 src/enqueue.cc (p2p scheduling) and
 * ncclAlltoAll as n - 1 send/receive pairs, summarised in MODELS.md 2.1. */
#include <math.h>

#include "network/algorithm.h"

#define PAIRS_PER_BATCH 8

/* Batches in which everybody meets everybody. */
static uint32_t
n_batches (uint32_t n)
{
  return (n - 1 + PAIRS_PER_BATCH - 1) / PAIRS_PER_BATCH;
}

static uint32_t
batch_size (const LsScript *s, uint32_t batch)
{
  return MIN (PAIRS_PER_BATCH, s->n - 1 - batch * PAIRS_PER_BATCH);
}

static bool
is_gathering (const LsScript *s, uint32_t round)
{
  return s->kind == LS_COLL_ALL_GATHER || (s->kind == LS_COLL_ALL_REDUCE && round >= n_batches (s->n));
}

static LsSend
send_of (const LsScript *s, uint32_t place, uint32_t to, bool gathers)
{
  if (s->kind == LS_COLL_ALL_TO_ALL)
    return (LsSend){ .to = to, .first = place * s->n + to, .n = 1 };
  return (LsSend){ .to = to, .first = gathers ? place : to, .n = 1, .reduces = !gathers };
}

static uint32_t
sends (const LsScript *s, uint32_t place, uint32_t round, LsSend *ret)
{
  uint32_t batch = round % n_batches (s->n), n = batch_size (s, batch);
  for (uint32_t i = 0; i < n; i++)
    ret[i] = send_of (s, place, (place + batch * PAIRS_PER_BATCH + i + 1) % s->n, is_gathering (s, round));
  return n;
}

static uint32_t
n_receives (const LsScript *s, uint32_t place, uint32_t round)
{
  return batch_size (s, round % n_batches (s->n));
}

/* The channels are dealt to the messages of a batch; each may be as fast as if alone. */
static void
script (const LsCollCall *call, LsScript *s)
{
  uint32_t at_once = MIN (PAIRS_PER_BATCH, call->n - 1);
  ls_script_cut (call, s, call->kind == LS_COLL_ALL_TO_ALL ? call->n * call->n : call->n);
  ls_script_like_p2p (call, s);
  s->flows /= at_once;
  s->rate_intra *= at_once;
  s->rate_inter *= at_once;
  s->n_rounds = (call->kind == LS_COLL_ALL_REDUCE ? 2 : 1) * n_batches (call->n);
  s->max_sends = at_once;
  s->sends = sends;
  s->n_receives = n_receives;
}

static void
plan (const LsCollCall *call, LsCollPlan *ret_plan)
{
  LsScript s = ls_script_of (call);
  script (call, &s);
  ls_script_like_p2p (call, &s); /* all of a member's messages together */
  uint32_t n_flows = ls_coll_channels (call), per_phase = n_batches (call->n);
  LsTime hop = call->n_hosts == 1 ? s.hop_intra : s.hop_inter;
  LsTime further = (LsTime)(per_phase - 1) * hop;
  ret_plan->sm_share = fmin (1, n_flows * call->nccl->sm_share_per_channel);
  ret_plan->n_phases = s.n_rounds / per_phase;
  ret_plan->phases = ls_arena_new_array (call->arena, LsPhase, ret_plan->n_phases);
  for (uint32_t i = 0; i < ret_plan->n_phases; i++) {
    LsRounds rounds
        = { .first = i * per_phase, .n_rounds = per_phase, .latency = further + (i == 0 ? s.base : hop) };
    if (call->kind == LS_COLL_ALL_TO_ALL) {
      rounds.latency = further + ls_nccl_p2p_latency (call);
      rounds.min_s = ls_nccl_p2p_seconds (call);
    }
    ls_phase_of_rounds (call, &s, &rounds, n_flows, &ret_plan->phases[i]);
  }
}

#define KINDS                                                                                                \
  (LS_COLL_BIT (LS_COLL_ALL_REDUCE) | LS_COLL_BIT (LS_COLL_ALL_GATHER)                                       \
   | LS_COLL_BIT (LS_COLL_REDUCE_SCATTER) | LS_COLL_BIT (LS_COLL_ALL_TO_ALL))

const LsCollAlgorithm ls_coll_pairwise = { .name = "pairwise",
                                           .kinds = KINDS,
                                           .automatic = LS_COLL_BIT (LS_COLL_ALL_TO_ALL),
                                           .plan = plan,
                                           .script = script };
