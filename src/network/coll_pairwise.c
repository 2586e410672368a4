/* network/coll_pairwise.c — all-to-all, all-gather, reduce-scatter and all-reduce by
 * direct exchange.
 *
 * Problem. Every one of n members has something for every other one.
 *
 * Model. n - 1 pairs of a send and a receive, in NCCL's order: from member l of node h to
 * member l + d of node h + D, for each distance D between nodes (D = 0 first) and each d
 * within one, so that all send equally far at a time; where nodes have different numbers of
 * members, all are taken for one. All-to-all: the block for that member. All-gather: the
 * sender's part. Reduce-scatter: its contribution to the part of that member, which adds it
 * up. All-reduce: reduce-scatter, then all-gather. NCCL does an all-to-all in this way,
 * eight pairs at once (a batch of work, here a round), and batches do not wait for each
 * other: all are one phase, with a hop for each further batch. What is on links follows
 * from the messages.
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
 * Message by message a place is in one batch at a time, and those of a batch that go the
 * same way (within nodes or between them) share what a member moves that way. So NVLink
 * idles while NICs move in all batches but the first.
 *
 * Unequal parts of an all-to-all: a member's bytes are cut in as many blocks as the weights add
 * up to, and a message has as many of them as the weight of its receiver, or sender, says. The
 * time is that of equal parts times what the busiest member moves over what the mean one does.
 *
 * Deviations. Cost n^2: a plan for 1,024 members looks at a million messages (LsCollMemo
 * keeps what they add up to). NCCL deals pairs to groups of channels, which go through
 * their batches by themselves.
 *
 * Reference: NCCL 2.30.7 src/enqueue.cc (p2p scheduling), src/init.cc (order of peers) and
 * ncclAlltoAll as n - 1 send/receive pairs. */
#include <math.h>

#include "core/maxmin.h" /* LS_COEF_ONE */
#include "network/algorithm.h"

#define PAIRS_PER_BATCH 8

/* Distances 0 .. n - 1 in the order in which NCCL takes them: triangular numbers modulo a
 * power of two, without those that are too large. */
typedef struct {
  uint32_t *distance; /* [n] at a position  */
  uint32_t *position; /* [n] of a distance  */
} Order;

typedef struct {
  const LsCollCall *call;
  uint32_t n_groups, k; /* nodes and members of each, or one group */
  Order groups, within;
  double inside, across; /* bytes/s of a member, all messages together: on its host, to others */
} Pairs;

static Order
order_of (uint32_t n, LsArena *arena)
{
  Order o = { ls_arena_new_array (arena, uint32_t, n), ls_arena_new_array (arena, uint32_t, n) };
  uint32_t n_steps = n > 1 ? 1u << g_bit_storage (n - 1) : 1, at = 0, position = 0;
  for (uint32_t step = 1; step <= n_steps; step++) {
    if (at < n) {
      o.distance[position] = at;
      o.position[at] = position++;
    }
    at = (at + step) & (n_steps - 1);
  }
  return o;
}

/* Pair 0 of a member is with itself. */
static uint32_t
peer_of (const Pairs *x, uint32_t member, uint32_t pair)
{
  uint32_t seat = x->call->seats.seat[member], group = seat / x->k, local = seat % x->k;
  group = (group + x->groups.distance[pair / x->k]) % x->n_groups;
  local = (local + x->within.distance[pair % x->k]) % x->k;
  return x->call->seats.member[group * x->k + local];
}

static uint32_t
pair_of (const Pairs *x, uint32_t from, uint32_t to)
{
  uint32_t a = x->call->seats.seat[from], b = x->call->seats.seat[to];
  uint32_t groups = (b / x->k + x->n_groups - a / x->k) % x->n_groups;
  return x->groups.position[groups] * x->k + x->within.position[(b % x->k + x->k - a % x->k) % x->k];
}

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

static LsSend
send_of (const LsScript *s, uint32_t place, uint32_t to, bool gathers)
{
  const Pairs *x = s->data;
  if (x->call->weights) /* which blocks these are is left open */
    return (LsSend) { .to = to, .n = x->call->weights[x->call->asked.weighs_senders ? place : to] };
  if (s->kind == LS_COLL_ALL_TO_ALL)
    return (LsSend) { .to = to, .first = place * s->n + to, .n = 1 };
  return (LsSend) { .to = to, .first = gathers ? place : to, .n = 1, .reduces = !gathers };
}

static uint32_t
sends (const LsScript *s, uint32_t place, uint32_t round, LsSend *ret)
{
  uint32_t batch = round % n_batches (s->n), n = batch_size (s, batch);
  bool gathers
      = s->kind == LS_COLL_ALL_GATHER || (s->kind == LS_COLL_ALL_REDUCE && round >= n_batches (s->n));
  for (uint32_t i = 0; i < n; i++)
    ret[i] = send_of (s, place, peer_of (s->data, place, batch * PAIRS_PER_BATCH + i + 1), gathers);
  return n;
}

static uint32_t
n_receives (const LsScript *s, uint32_t place, uint32_t round)
{
  return batch_size (s, round % n_batches (s->n));
}

/* Messages of the batch that go the same way share what a member moves that way. */
static double
rate_cap (const LsScript *s, uint32_t from, uint32_t to, uint32_t n)
{
  const Pairs *x = s->data;
  uint32_t batch = (pair_of (x, from, to) - 1) / PAIRS_PER_BATCH, n_alike = 0;
  bool goes_across = ls_coll_is_across (x->call, from, to);
  for (uint32_t i = 0; i < batch_size (s, batch); i++)
    n_alike += ls_coll_is_across (x->call, from, peer_of (x, from, batch * PAIRS_PER_BATCH + i + 1))
        == goes_across;
  return (goes_across ? x->across : x->inside) / n_alike / ((double) s->flows / (double) LS_COEF_ONE);
}

/* NCCL's sends, or what an all-to-all gets of them: what its busiest member moves. */
static void
find_rates (Pairs *x)
{
  const LsCollCall *call = x->call;
  x->inside = call->nccl->p2p_intra;
  x->across = call->nccl->p2p_inter;
  if (call->kind != LS_COLL_ALL_TO_ALL || call->bytes == 0)
    return;
  double inside_s, across_s, message = (double) call->bytes / call->n;
  ls_nccl_all_to_all_seconds (call, &inside_s, &across_s);
  uint32_t most = call->seats.most;
  if (most > 1)
    x->inside = message * (most - 1) / inside_s;
  if (across_s > 0)
    x->across = message * (call->n - call->seats.fewest) / across_s;
}

static Pairs *
pairs_new (const LsCollCall *call)
{
  Pairs *x = ls_arena_new_array (call->arena, Pairs, 1);
  uint32_t k = call->seats.per_host;
  x->call = call;
  x->k = k > 0 ? k : call->n;
  x->n_groups = call->n / x->k;
  x->groups = order_of (x->n_groups, call->arena);
  x->within = order_of (x->k, call->arena);
  find_rates (x);
  return x;
}

/* Channels are dealt to the messages of a batch. */
static void
script (const LsCollCall *call, LsScript *s)
{
  uint32_t at_once = MIN (PAIRS_PER_BATCH, call->n - 1);
  ls_script_cut (call, s, call->kind == LS_COLL_ALL_TO_ALL ? call->n * call->n : call->n);
  if (call->weights)
    s->block_bytes = (double) call->bytes / (double) ls_coll_sum_of_weights (call);
  ls_script_like_p2p (call, s);
  s->data = pairs_new (call);
  s->flows /= at_once;
  s->n_rounds = (call->kind == LS_COLL_ALL_REDUCE ? 2 : 1) * n_batches (call->n);
  s->max_sends = at_once;
  s->sends = sends;
  s->n_receives = n_receives;
  s->rate_cap = rate_cap;
  if (call->kind == LS_COLL_ALL_TO_ALL) { /* a hop of it is that of the first message */
    LsTime hop = call->seats.n_hosts == 1 ? s->hop_intra : s->hop_inter;
    s->base = MAX (0, ls_nccl_p2p_latency (call) - hop);
  }
}

static void
plan (const LsCollCall *call, LsCollPlan *ret_plan)
{
  LsScript s = ls_script_of (call);
  script (call, &s);
  uint64_t flows = s.flows; /* of a message; all of a member's together go like p2p */
  ls_script_like_p2p (call, &s);
  s.flows = flows;
  uint32_t n_flows = ls_coll_channels (call), per_phase = n_batches (call->n);
  LsTime hop = call->seats.n_hosts == 1 ? s.hop_intra : s.hop_inter;
  LsTime further = (LsTime) (per_phase - 1) * hop;
  ls_plan_phases (call, n_flows, s.n_rounds / per_phase, ret_plan);
  for (uint32_t i = 0; i < ret_plan->n_phases; i++) {
    LsRounds rounds
        = { .first = i * per_phase, .n_rounds = per_phase, .latency = further + (i == 0 ? s.base : hop) };
    if (call->kind == LS_COLL_ALL_TO_ALL) {
      rounds.latency = further + ls_nccl_p2p_latency (call);
      rounds.min_s = ls_nccl_p2p_seconds (call) * ls_coll_busiest_over_mean (call);
    }
    ls_phase_of_rounds (call, &s, &rounds, n_flows, &ret_plan->phases[i]);
  }
}

static uint64_t
n_messages (const LsCollCall *call)
{
  return (uint64_t) call->n * (call->n - 1) * (call->kind == LS_COLL_ALL_REDUCE ? 2 : 1);
}

const LsCollAlgorithm ls_coll_pairwise = { .name = "pairwise",
                                           .kinds = LS_COLL_HALVES | LS_COLL_BIT (LS_COLL_ALL_TO_ALL),
                                           .automatic = LS_COLL_BIT (LS_COLL_ALL_TO_ALL),
                                           .n_messages = n_messages,
                                           .plan = plan,
                                           .script = script };
