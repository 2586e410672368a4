/* network/torus/coll_torus.c — collectives on slices of a torus (TPU), all axes at once.
 *
 * Problem. n members, a box of A axes in each of H slices, move an array of S bytes over
 * ICI links of W bytes/s each way, and between slices over the NICs of their hosts (DCN).
 *
 * Model. All-gather: the array is cut into one part for each axis. Part p goes along axis
 * p, p + 1, .. in bundles that grow on the way (torus_shape.h); so every axis is busy
 * from the start, and the steps of a part run into each other. On a link
 *
 *     ring of X    m X / 2 shards of S / (n A) for each part; m (X - 1) / 2 if X is odd
 *     line of X    up to m (X - 1)
 *
 * with m the shards of a bundle. The busiest link sets the time. Its latency is what a
 * shard needs to the farthest member; shards follow one another without waiting for it,
 * so it only bounds the time from below:
 *
 *     time alone = start + max (hops * link latency, bytes of the busiest link / W)
 *
 * where start is what a cluster's file says of one call (key torus/start).
 *
 * An all-to-all likewise: what has far to go leaves first, and what is over the busiest link
 * last has a hop to go.
 *
 * On a ring of even length whole shards arrive at the opposite member from one side, so
 * one axis takes S / 2 W, not (X - 1) / X of it; on a cube of A even axes it is S / (2 A W):
 * the formula of the scaling book, W_bidirectional = 2 W, without its approximation.
 *
 *     reduce-scatter   an all-gather backwards
 *     all-reduce       reduce-scatter, then all-gather
 *     with H slices    all-gather: rings between the H members of a position over DCN
 *                      first, 1/n of the array each, then inside the slices, with H
 *                      shards for one; reduce-scatter backwards; all-reduce: inside,
 *                      between, inside
 *     all-to-all       every pair its own message, dimension-ordered: X/4 of what an
 *                      all-gather puts on a ring of X is 1/4 of its time
 *     send-recv        spread over as many ways as axes differ, each beginning with
 *                      another one: its latency, then S / (2 W) if two differ
 *     gather, scatter  such messages from all, to all
 *     broadcast, reduce  a pipeline through the seats, both ways from the root
 *     barrier          an all-gather of nothing
 *
 * Members that form no box take the ring of torus_shape.h over their ways.
 *
 * ICI moves data between HBMs by itself: no cores are held. Each byte sent is read once
 * from the HBM and written once where it arrives.
 *
 * Worked example: v5e, 8 members on a line that does not wrap gather 32 MiB at 45 GB/s:
 * the link next to the end carries 7 shards of 4 MiB, 652 us.
 *
 * Deviations. The last hop's transfer of a latency-bound call is left out. The start is known of
 * v5e and TPU7x; a gather on a v5e took 680 us where 559 are predicted
 * (the same source, chapter Sharding). Boxes of unlike axes are cut
 * evenly, which loads the longest axis most (4 x 8: 12 % above the average of all links).
 * Slices take their turn: DCN and ICI do not overlap within one call.
 *
 * Reference: Austin et al., How to Scale Your Model (2025), chapters TPUs and Sharding
 * (jax-ml/scaling-book@0819a7d); Chan, Heimlich, Purkayastha,
 * van de Geijn, Collective communication: theory, practice, and experience, CCPE 19
 * (2007), for the buckets by axis. */
#include <math.h>

#include "core/maxmin.h" /* LS_COEF_ONE */
#include "network/torus/torus_shape.h"

#define HBM_PER_BYTE                                                                                         \
  2.0 /* read where it leaves, written where it arrives: on average each member does both */

/* A phase in the making: whole units of `unit_bytes` on links. */
typedef struct {
  const LsCollCall *call;
  LsLoadList loads;   /* 2^-20 units on each trunk */
  uint64_t max_units; /* of one flow               */
  double unit_bytes;
  double latency; /* ps                        */
} Draft;

static Draft
draft_new (const LsCollCall *call, double unit_bytes)
{
  return (Draft) { .call = call, .loads = ls_load_list_new (call->cluster), .unit_bytes = unit_bytes };
}

static LsTime
draft_route (Draft *d, const LsRoute *route, uint64_t units)
{
  for (uint32_t i = 0; i < route->n_hops; i++)
    ls_load_list_add (&d->loads, route->hop[i].trunk, units * route->hop[i].share);
  d->max_units = MAX (d->max_units, units);
  return route->latency;
}

static LsTime
draft_send (Draft *d, uint32_t seat_from, uint32_t seat_to, uint64_t units)
{
  LsRoute route;
  ls_route (d->call->cluster, d->call->seats.sorted[seat_from], d->call->seats.sorted[seat_to], 0, &route);
  return draft_route (d, &route, units);
}

/* sent_bytes: by each member on average. is_hidden: bytes move during the latency. */
static void
draft_finish (Draft *d, double sent_bytes, bool is_hidden, LsPhase *ret_phase)
{
  const LsCollCall *call = d->call;
  LsTime latency = (LsTime) llround (d->latency);
  *ret_phase = (LsPhase) { .latency = latency };
  if (call->bytes > 0) {
    ret_phase->demand_bytes = (double) d->max_units * d->unit_bytes;
    ls_load_list_scale (&d->loads, 1.0 / (double) d->max_units);
    double hbm = HBM_PER_BYTE * sent_bytes / ret_phase->demand_bytes * (double) LS_COEF_ONE;
    for (uint32_t i = 0; i < call->n; i++)
      ls_load_list_add (&d->loads, ls_cluster_hbm_resource (call->cluster, call->gpus[i]),
                        (uint64_t) llround (hbm));
  }
  ls_load_list_finish (&d->loads, call->arena, ret_phase);
  if (call->bytes == 0) {
    ret_phase->n_loads = 0;
    return;
  }
  ret_phase->latency = is_hidden ? 0 : latency;
  ret_phase->rate_cap
      = is_hidden && latency > 0 ? ret_phase->demand_bytes / ls_time_to_s (latency) : INFINITY;
  for (uint32_t i = 0; i < ret_phase->n_loads; i++)
    ret_phase->rate_cap = fmin (ret_phase->rate_cap,
                                ls_cluster_resource_capacity (call->cluster, ret_phase->loads[i].resource)
                                    / ((double) ret_phase->loads[i].coef / (double) LS_COEF_ONE));
}

/* As the one phase of a plan. */
static void
draft_plan (Draft *d, double sent_bytes, bool is_hidden, LsCollPlan *ret_plan)
{
  ret_plan->n_phases = 1;
  ret_plan->phases = ls_arena_new_array (d->call->arena, LsPhase, 1);
  draft_finish (d, sent_bytes, is_hidden, ret_plan->phases);
}

/* --- all-gather, reduce-scatter, all-reduce --- */

/* Shards of all parts that a place sends along an axis. */
static uint64_t
shards_of (const LsTorusShape *s, uint32_t axis, uint32_t place, bool is_backward)
{
  uint64_t shards = 0;
  for (uint32_t part = 0; part < s->n_parts; part++)
    for (uint32_t j = 0; j < s->n_axes; j++)
      if (ls_torus_axis_of (s, part, j) == axis)
        shards += ls_torus_shards (&s->axis[axis], ls_torus_bundle (s, part, j), place, is_backward);
  return shards;
}

/* One link of the box, in one direction of an all-gather. */
static LsTime
add_link (Draft *d, const LsTorusShape *s, const LsTorusLine *line, uint32_t seat, uint64_t shards,
          bool is_backward, bool reduces)
{
  uint32_t slice = seat / s->per_slice * s->per_slice;
  uint32_t next = slice + ls_torus_next (line, seat - slice, is_backward);
  return reduces ? draft_send (d, next, seat, shards) : draft_send (d, seat, next, shards);
}

/* units: [2 * members along the axis], of each place, forward and backward; the links take as long as the
 * mean one in each round. */
static void
add_links (Draft *d, const LsTorusShape *s, const LsTorusLine *line, const uint64_t *units, bool reduces)
{
  uint64_t n_links = 0;
  LsTime latency = 0;
  for (uint32_t seat = 0; seat < d->call->n; seat++)
    for (uint32_t back = 0; back < 2; back++) {
      uint64_t here = units[2 * ls_torus_place_on (line, seat % s->per_slice) + back];
      if (here == 0)
        continue;
      latency += add_link (d, s, line, seat, here, back, reduces);
      n_links++;
    }
  d->latency += (double) latency / (double) n_links * ls_torus_rounds (line);
}

static void
add_axis (Draft *d, const LsTorusShape *s, uint32_t axis, bool reduces)
{
  const LsTorusLine *line = &s->axis[axis];
  g_autofree uint64_t *shards = g_new (uint64_t, 2 * (gsize) line->n);
  for (uint32_t i = 0; i < 2 * line->n; i++)
    shards[i] = shards_of (s, axis, i / 2, i % 2);
  add_links (d, s, line, shards, reduces);
}

static void
plan_inside (const LsCollCall *call, const LsTorusShape *s, bool reduces, LsPhase *ret_phase)
{
  Draft d = draft_new (call, (double) call->bytes / call->n / s->n_parts);
  for (uint32_t axis = 0; axis < s->n_axes; axis++)
    add_axis (&d, s, axis, reduces);
  double sent = (double) call->bytes * (s->per_slice - 1) / s->per_slice;
  draft_finish (&d, sent, true, ret_phase);
}

/* n_turns: 2 for an all-reduce. */
static void
plan_between (const LsCollCall *call, const LsTorusShape *s, uint32_t n_turns, LsPhase *ret_phase)
{
  Draft d = draft_new (call, (double) call->bytes / call->n);
  uint64_t shards = (uint64_t) n_turns * (s->n_slices - 1);
  LsTime latency = 0;
  for (uint32_t seat = 0; seat < call->n; seat++)
    latency += draft_send (&d, seat, (seat + s->per_slice) % call->n, shards);
  d.latency = (double) latency / call->n * (double) shards;
  draft_finish (&d, (double) shards * d.unit_bytes, true, ret_phase);
}

static void
plan_gathering (const LsCollCall *call, LsCollPlan *ret_plan)
{
  LsTorusShape s = ls_torus_shape (call);
  bool reduces = call->kind == LS_COLL_ALL_REDUCE || call->kind == LS_COLL_REDUCE_SCATTER;
  bool gathers = call->kind != LS_COLL_REDUCE_SCATTER;
  LsPhase *phase = ls_arena_new_array (call->arena, LsPhase, 3);
  ret_plan->phases = phase;
  if (reduces && s.n_axes > 0)
    plan_inside (call, &s, true, phase++);
  if (s.n_slices > 1)
    plan_between (call, &s, reduces && gathers ? 2 : 1, phase++);
  if (gathers && s.n_axes > 0)
    plan_inside (call, &s, false, phase++);
  ret_plan->n_phases = (uint32_t) (phase - ret_plan->phases);
}

/* --- all-to-all --- */

/* Times two: ordered pairs of one line whose way goes over the link from place i. On a
 * ring of even length opposite members send half each way. */
static uint64_t
pairs_over (const LsTorusLine *line, uint32_t i, bool is_backward)
{
  uint64_t n = line->n;
  if (!ls_torus_has_next (line, i, is_backward))
    return 0;
  if (!line->is_ring)
    return is_backward ? 2 * i * (n - i) : 2 * (i + 1) * (n - 1 - i);
  return n * n / 4; /* n^2/8, or (n^2 - 1)/8 */
}

static void
add_pairs_inside (Draft *d, const LsTorusShape *s)
{
  for (uint32_t axis = 0; axis < s->n_axes; axis++) {
    const LsTorusLine *line = &s->axis[axis];
    g_autofree uint64_t *pairs = g_new (uint64_t, 2 * (gsize) line->n);
    for (uint32_t i = 0; i < 2 * line->n; i++)
      pairs[i] = pairs_over (line, i / 2, i % 2) * (s->per_slice / line->n);
    add_links (d, s, line, pairs, false);
  }
}

/* What a chip sends to another slice loads what it would if all went to the chip in its
 * position, times the members there: NICs and PCIe links see no difference. */
static void
add_pairs_between (Draft *d, const LsTorusShape *s)
{
  for (uint32_t seat = 0; seat < d->call->n; seat++)
    for (uint32_t h = 1; h < s->n_slices; h++) {
      LsTime latency
          = draft_send (d, seat, (seat + h * s->per_slice) % d->call->n, 2 * (uint64_t) s->per_slice);
      d->latency = fmax (d->latency, (double) latency);
    }
}

/* No box: each pair by itself. */
static void
add_all_pairs (Draft *d)
{
  for (uint32_t from = 0; from < d->call->n; from++)
    for (uint32_t to = 0; to < d->call->n; to++)
      if (from != to)
        d->latency = fmax (d->latency, (double) draft_send (d, from, to, 2));
}

static void
plan_all_to_all (const LsCollCall *call, LsCollPlan *ret_plan)
{
  LsTorusShape s = ls_torus_shape (call);
  Draft d = draft_new (call, (double) call->bytes / call->n / 2);
  if (s.is_box) {
    add_pairs_inside (&d, &s);
    add_pairs_between (&d, &s);
  } else
    add_all_pairs (&d);
  draft_plan (&d, ls_coll_wire_factor (call->kind, call->n) * (double) call->bytes, true, ret_plan);
}

/* --- between pairs, and through all --- */

/* send-recv, gather, scatter, permute: messages of one unit, each on all its ways. */
static void
plan_messages (const LsCollCall *call, LsCollPlan *ret_plan)
{
  bool is_shift = call->kind == LS_COLL_PERMUTE || call->kind == LS_COLL_COPY_PERMUTE,
       is_pair = call->kind == LS_COLL_SEND_RECV, is_out = is_pair || call->kind == LS_COLL_SCATTER;
  Draft d = draft_new (call, (double) call->bytes / (is_pair || is_shift ? 1 : call->n));
  for (uint32_t i = 0; i < call->n; i++) {
    uint32_t peer = is_shift ? (i + 1) % call->n : call->root;
    if (i == peer)
      continue;
    LsRoute route;
    ls_torus_spread (call->cluster, call->gpus[is_out ? peer : i], call->gpus[is_out ? i : peer], &route);
    d.latency = fmax (d.latency, (double) draft_route (&d, &route, 1));
  }
  draft_plan (&d, is_shift ? d.unit_bytes : (double) (call->n - 1) * d.unit_bytes / call->n, false, ret_plan);
}

/* broadcast, reduce. */
static void
plan_chain (const LsCollCall *call, LsCollPlan *ret_plan)
{
  Draft d = draft_new (call, (double) call->bytes);
  LsTime latency[2] = { 0, 0 };
  uint32_t root = call->seats.seat[call->root];
  for (uint32_t seat = 0; seat + 1 < call->n; seat++) {
    bool is_after = seat >= root, is_up = is_after == (call->kind == LS_COLL_BROADCAST);
    latency[is_after] += draft_send (&d, is_up ? seat : seat + 1, is_up ? seat + 1 : seat, 1);
  }
  d.latency = (double) MAX (latency[0], latency[1]);
  draft_plan (&d, (double) (call->n - 1) * d.unit_bytes / call->n, true, ret_plan);
}

static void
plan (const LsCollCall *call, LsCollPlan *ret_plan)
{
  switch (call->kind) {
  case LS_COLL_ALL_TO_ALL:
    plan_all_to_all (call, ret_plan);
    break;
  case LS_COLL_SEND_RECV:
  case LS_COLL_GATHER:
  case LS_COLL_SCATTER:
  case LS_COLL_PERMUTE:
  case LS_COLL_COPY_PERMUTE:
    plan_messages (call, ret_plan);
    break;
  case LS_COLL_BROADCAST:
  case LS_COLL_REDUCE:
    plan_chain (call, ret_plan);
    break;
  default:
    plan_gathering (call, ret_plan);
  }
  if (ret_plan->n_phases > 0)
    ret_plan->phases[0].latency += call->cluster->spec.torus.start;
}

/* Only of pairs that form no box, each by itself. */
static uint64_t
n_messages (const LsCollCall *call)
{
  bool is_pairs = call->kind == LS_COLL_ALL_TO_ALL && !ls_torus_shape (call).is_box;
  return is_pairs ? (uint64_t) call->n * (call->n - 1) : call->n;
}

#define ALL_KINDS (LS_COLL_BIT (LS_N_COLL_KINDS) - 1)

const LsCollAlgorithm ls_coll_torus = { .name = "torus",
                                        .kinds = ALL_KINDS,
                                        .automatic = ALL_KINDS,
                                        .wants = "a torus",
                                        .is_of_ici = true,
                                        .n_messages = n_messages,
                                        .plan = plan,
                                        .script = ls_torus_script };
