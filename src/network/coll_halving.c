/* network/coll_halving.c — all-reduce, all-gather and reduce-scatter by recursive halving
 * and doubling.
 *
 * Problem. n members move S bytes in about log2 n rounds and no more bytes than a ring.
 *
 * Model. p = 2^m <= n members take part, in the order of their GPUs; each of the n - p
 * others belongs to a partner. Reduce-scatter: the others send all they have to their
 * partners; then in round s member v exchanges with v xor 2^s the half of the array for
 * which the other one stays responsible, s = 0 .. m-1: half, a quarter, ...; then the
 * others get their part back. All-gather is this backwards, all-reduce one after the
 * other without the parts in between. The first and biggest exchange is with a neighbour
 * and usually inside a host.
 *
 * Blocks are laid out so that what a member sends is one range: members in bit-reversed
 * order, each with its part and that of the member it stands for.
 *
 *     each member sends 2 (n-1)/n S (all-reduce, n = p), in 2 m rounds
 *
 * A round is a phase: the longest hop (and base before the first), then the bytes at the
 * rate of a send.
 *
 * Worked example: all-reduce of 64 MiB over 8 GPUs of a node, 250 GB/s, base 10 us, hop
 * 1 us: 10 + 6 + 7/4 * 67.1e6 / 250e9 = 485.8 us.
 *
 * Deviations. NCCL has no such algorithm; MPI libraries do. Rounds do not overlap.
 *
 * Reference: Rabenseifner, Optimization of collective reduction operations, ICCS 2004;
 * Thakur, Rabenseifner & Gropp, IJHPCA 19 (2005). */
#include "network/algorithm.h"

#include <math.h>

#include "core/maxmin.h" /* LS_COEF_ONE */

typedef struct {
  const LsCollCall *call;
  uint32_t m, n_others;
  const uint32_t *first; /* [2^m + 1] first block of the member at a bit-reversed place */
} Butterfly;

/* Members that do not take part sit at odd seats below 2 n_others, their partners before
 * them. UINT32_MAX: does not take part. */
static uint32_t
butterfly_of_seat (const Butterfly *x, uint32_t seat)
{
  if (seat >= 2 * x->n_others)
    return seat - x->n_others;
  return seat % 2 == 0 ? seat / 2 : UINT32_MAX;
}

static uint32_t
seat_of_butterfly (const Butterfly *x, uint32_t v)
{
  return v < x->n_others ? 2 * v : v + x->n_others;
}

static uint32_t
reversed (const Butterfly *x, uint32_t v)
{
  uint32_t r = 0;
  for (uint32_t i = 0; i < x->m; i++)
    r |= (v >> i & 1) << (x->m - 1 - i);
  return r;
}

/* The blocks for which v is responsible after `halvings`: those of the members that agree
 * with it in so many low bits. */
static LsSend
range_of (const Butterfly *x, uint32_t v, uint32_t halvings, uint32_t to)
{
  uint32_t low = v & ((1u << halvings) - 1);
  uint32_t place = reversed (x, low), size = 1u << (x->m - halvings);
  return (LsSend) { .to = x->call->seats.member[seat_of_butterfly (x, to)],
                    .first = x->first[place],
                    .n = x->first[place + size] - x->first[place] };
}

/* What a round does. */
typedef enum { FOLD, HALVE, DOUBLE, UNFOLD } Act;

static Act
act_of (const LsScript *s, uint32_t round, uint32_t *ret_step)
{
  const Butterfly *x = s->data;
  uint32_t fold = x->n_others > 0;
  if (fold && round == 0)
    return FOLD;
  round -= fold;
  bool halves = s->kind != LS_COLL_ALL_GATHER;
  *ret_step = round;
  if (halves && round < x->m)
    return HALVE;
  round -= halves ? x->m : 0;
  *ret_step = x->m - 1 - round;
  return s->kind != LS_COLL_REDUCE_SCATTER && round < x->m ? DOUBLE : UNFOLD;
}

/* The member without a place in the butterfly sends what it has. */
static uint32_t
fold (const LsScript *s, uint32_t seat, LsSend *ret)
{
  const Butterfly *x = s->data;
  if (seat >= 2 * x->n_others || seat % 2 == 0)
    return 0;
  *ret = (LsSend) { .to = x->call->seats.member[seat - 1], .first = 0, .n = s->n_blocks, .reduces = true };
  if (s->kind == LS_COLL_ALL_GATHER)
    *ret = (LsSend) { .to = x->call->seats.member[seat - 1],
                      .first = s->part_of[x->call->seats.member[seat]],
                      .n = 1 };
  return 1;
}

/* Its partner sends it what it must have. */
static uint32_t
unfold (const LsScript *s, uint32_t seat, LsSend *ret)
{
  const Butterfly *x = s->data;
  if (seat >= 2 * x->n_others || seat % 2 == 1)
    return 0;
  uint32_t to = x->call->seats.member[seat + 1];
  *ret = (LsSend) { .to = to, .first = 0, .n = s->n_blocks };
  if (s->kind == LS_COLL_REDUCE_SCATTER)
    *ret = (LsSend) { .to = to, .first = s->part_of[to], .n = 1 };
  if (s->kind == LS_COLL_ALL_GATHER)
    *ret = (LsSend) { .to = to, .first = (s->part_of[to] + 1) % s->n_blocks, .n = s->n_blocks - 1 };
  return 1;
}

static uint32_t
sends (const LsScript *s, uint32_t place, uint32_t round, LsSend *ret)
{
  const Butterfly *x = s->data;
  uint32_t seat = x->call->seats.seat[place], step = 0;
  Act act = act_of (s, round, &step);
  if (act == FOLD)
    return fold (s, seat, ret);
  if (act == UNFOLD)
    return unfold (s, seat, ret);
  uint32_t v = butterfly_of_seat (x, seat);
  if (v == UINT32_MAX)
    return 0;
  uint32_t partner = v ^ (1u << step);
  *ret = range_of (x, act == HALVE ? partner : v, step + 1, partner);
  ret->reduces = act == HALVE;
  return 1;
}

static uint32_t
n_receives (const LsScript *s, uint32_t place, uint32_t round)
{
  const Butterfly *x = s->data;
  uint32_t seat = x->call->seats.seat[place], step = 0;
  Act act = act_of (s, round, &step);
  if (act == FOLD || act == UNFOLD)
    return seat < 2 * x->n_others && seat % 2 == (act == FOLD ? 0 : 1);
  return butterfly_of_seat (x, seat) != UINT32_MAX;
}

/* All-reduce: one block for each that takes part. Else a part for each member. */
static void
lay_out (const LsCollCall *call, Butterfly *x, LsScript *s)
{
  bool has_parts = call->kind != LS_COLL_ALL_REDUCE;
  uint32_t p = 1u << x->m, block = 0;
  uint32_t *first = ls_arena_new_array (call->arena, uint32_t, p + 1);
  uint32_t *part_of = ls_arena_new_array (call->arena, uint32_t, call->n);
  for (uint32_t place = 0; place < p; place++) {
    uint32_t v = reversed (x, place), seat = seat_of_butterfly (x, v);
    first[place] = block;
    part_of[call->seats.member[seat]] = block++;
    if (has_parts && v < x->n_others)
      part_of[call->seats.member[seat + 1]] = block++;
  }
  first[p] = block;
  x->first = first;
  s->part_of = has_parts ? part_of : NULL;
  ls_script_cut (call, s, block);
}

static void
script (const LsCollCall *call, LsScript *s)
{
  Butterfly *x = ls_arena_new_array (call->arena, Butterfly, 1);
  x->call = call;
  x->m = g_bit_storage (call->n) - 1;
  x->n_others = call->n - (1u << x->m);
  s->data = x;
  lay_out (call, x, s);
  ls_script_like_p2p (call, s);
  s->n_rounds = (call->kind == LS_COLL_ALL_REDUCE ? 2 : 1) * x->m + (x->n_others > 0 ? 2 : 0);
  s->max_sends = 1;
  s->sends = sends;
  s->n_receives = n_receives;
}

const LsCollAlgorithm ls_coll_halving
    = { .name = "halving-doubling", .kinds = LS_COLL_HALVES, .script = script };

/* NCCL's parallel aggregated trees: all-gather and reduce-scatter
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
 * model (0.75 of the bus, which fills as that of a ring; log2 n hops at 1/3.5 and 2.8 us for each
 * member posted to a NIC).
 *
 *     time alone = base + log2(n) hop_inter / 3.5 + 2.8 us n + (n-1)/n S / (0.75 bus)
 *
 * Worked example: all-gather of 64 MiB over 4 hosts, base 9 us, hop 14 us, 16 GB/s:
 * 9 + 8 + 11.2 us + 50.33e6 / 12e9 = 4.222 ms.
 *
 * Deviations. With n not a power of two NCCL's trees are cut in the same way, but its
 * buffer may split a step in several. NCCL adds no means up so (ncclAvg, of FSDP2): a plan does not say
 * what it adds up to.
 *
 * Reference: Jeaugey, PAT: a new algorithm for all-gather and reduce-scatter operations
 * at scale, arXiv 2506.20252; NCCL 2.30.7 src/graph/tuning.cc. */

#define BUS_SHARE    0.75
#define HOPS_AT_ONCE 3.5
#define POST_PS      ((LsTime) (2.8 * LS_US))

static bool
applies (const LsCollCall *call)
{
  return call->seats.n_hosts > 1 && call->seats.n_hosts == call->n;
}

static uint32_t
pat_sends (const LsScript *s, uint32_t place, uint32_t round, LsSend *ret)
{
  const LsCollCall *call = s->data;
  bool gathers = s->kind == LS_COLL_ALL_GATHER; /* far to near, or back */
  uint32_t n = s->n, d = 1u << (gathers ? s->n_rounds - 1 - round : round), seat = call->seats.seat[place];
  uint32_t to = gathers ? (seat + d) % n : (seat + n - d) % n;
  uint32_t newest = gathers ? seat : to;
  uint32_t n_parts = (n - d + 2 * d - 1) / (2 * d);
  /* Parts newest, newest - 2 d, ..: from the oldest on. */
  uint32_t oldest = (newest + n - (n_parts - 1) * 2 * d) % n;
  *ret = (LsSend) {
    .to = call->seats.member[to], .first = oldest, .n = n_parts, .stride = 2 * d, .reduces = !gathers
  };
  return 1;
}

static void
pat_script (const LsCollCall *call, LsScript *s)
{
  uint32_t n_channels = ls_coll_channels (call);
  ls_script_cut (call, s, call->n);
  s->data = call;
  s->part_of = call->seats.seat;
  s->n_rounds = g_bit_storage (call->n - 1);
  s->max_sends = 1;
  s->sends = pat_sends;
  s->n_receives = ls_script_receives_most;
  s->base = ls_nccl_base (call->nccl, call->kind);
  s->hop_intra = s->hop_inter
      = (LsTime) ((double) call->nccl->hop_inter / HOPS_AT_ONCE) + POST_PS * call->n / s->n_rounds;
  s->rate_intra = s->rate_inter = BUS_SHARE * ls_coll_bus (call) / n_channels;
  s->flows = n_channels * LS_COEF_ONE;
}

static void
plan (const LsCollCall *call, LsCollPlan *ret_plan)
{
  LsScript s = ls_script_of (call);
  pat_script (call, &s);
  ls_plan_as_one (call, &s, (uint32_t) (s.flows / LS_COEF_ONE), s.base + s.n_rounds * s.hop_inter,
                  ls_nccl_seconds (call, LS_TUNE_RING) / BUS_SHARE, ret_plan);
}

#define PAT_KINDS (LS_COLL_BIT (LS_COLL_ALL_GATHER) | LS_COLL_BIT (LS_COLL_REDUCE_SCATTER))

const LsCollAlgorithm ls_coll_pat = { .name = "pat",
                                      .kinds = PAT_KINDS,
                                      .automatic = PAT_KINDS,
                                      .is_of_tuner = true,
                                      .applies = applies,
                                      .wants = "two nodes or more, one rank on each",
                                      .only_simple = true,
                                      .turns = true,
                                      .plan = plan,
                                      .script = pat_script };

/* A barrier: nobody leaves before all have come.
 *
 * Problem. n members learn that all others have arrived; nothing is moved.
 *
 * Model. Dissemination: in round r member i (members in the order of their GPUs) sends an
 * empty message to i + 2^r modulo n, which stands for all of whom i has heard. After
 * ceil(log2 n) rounds everybody has heard of everybody.
 *
 *     time = base + the longest way through the rounds: of the hops between hosts, as many
 *            as one chain of messages takes, not one each round
 *
 * Worked example: 8 members of a node, base 9 us, hop 1 us: 12 us.
 *
 * Deviations. NCCL has no barrier: frameworks all-reduce one element instead, which takes
 * the hops of NCCL's tree.
 *
 * Reference: Hensgen, Finkel & Manber, Two algorithms for barrier synchronization,
 * International Journal of Parallel Programming 17 (1988). */

static uint32_t
barrier_sends (const LsScript *s, uint32_t place, uint32_t round, LsSend *ret)
{
  const LsCollCall *call = s->data;
  uint32_t heard = 1u << round, seat = call->seats.seat[place];
  uint32_t news = MIN (heard, s->n - heard);
  *ret = (LsSend) { .to = call->seats.member[(seat + heard) % s->n],
                    .first = (seat + s->n - (news - 1)) % s->n,
                    .n = news };
  return 1;
}

static void
barrier_script (const LsCollCall *call, LsScript *s)
{
  ls_script_cut (call, s, call->n);
  ls_script_like_p2p (call, s);
  s->data = call;
  s->part_of = call->seats.seat;
  s->n_rounds = g_bit_storage (call->n - 1);
  s->max_sends = 1;
  s->sends = barrier_sends;
  s->n_receives = ls_script_receives_most;
}

#define BARRIER_KINDS LS_COLL_BIT (LS_COLL_BARRIER)

const LsCollAlgorithm ls_coll_dissemination = {
  .name = "dissemination", .kinds = BARRIER_KINDS, .automatic = BARRIER_KINDS, .script = barrier_script
};
