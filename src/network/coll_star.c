/* network/coll_star.c — everything to the root, or from it: gather and scatter as NCCL
 * does them ("direct"), and the naive way to do the others ("naive").
 *
 * Problem. n members, S bytes, one root.
 *
 * Model. In a round all members send to the root, or the root sends to all:
 *
 *     gather          in: part i                     (n-1)/n S into the root
 *     scatter         out: part i                    (n-1)/n S out of it
 *     reduce          in: all, added up              (n-1) S
 *     broadcast       out: all                       (n-1) S
 *     all-reduce      reduce, then broadcast         (n-1) S in, then out
 *     reduce-scatter  reduce, then scatter           (n-1) S in, (n-1)/n S out
 *     all-gather      gather, then broadcast         (n-1)/n S in, (n-1) S out
 *
 * A round is a phase: hop latency (and base before the first), then the bytes at the
 * rate of a send. The root is the bottleneck by construction: this is what the other
 * algorithms are better than.
 *
 * Worked example: all-reduce of 1 MiB over 8 GPUs of a node, 250 GB/s, base 10 us, hop
 * 1 us: 10 + 2 (1 + 7 * 1.049e6 / 250e9) = 70.7 us.
 *
 * Deviations. The root's own reduction of n - 1 streams costs no more than receiving
 * them. NCCL's ncclGather and ncclScatter are groups of sends and receives.
 *
 * Reference: NCCL 2.30.7 src/collectives.cc; the bound (n-1) S is in Chan, Heimlich,
 * Purkayastha & van de Geijn, Collective communication: theory, practice, and
 * experience, CCPE 19 (2007). */
#include "network/algorithm.h"

typedef enum { TO_ROOT, FROM_ROOT } Direction;

/* One round: which way, all of the array or only the member's part. */
typedef struct {
  Direction direction;
  bool is_part, reduces;
} Star;

static const struct {
  uint32_t n_rounds;
  Star star[2];
} stars[LS_N_COLL_KINDS] = {
  [LS_COLL_GATHER] = { 1, { { TO_ROOT, true, false } } },
  [LS_COLL_SCATTER] = { 1, { { FROM_ROOT, true, false } } },
  [LS_COLL_REDUCE] = { 1, { { TO_ROOT, false, true } } },
  [LS_COLL_BROADCAST] = { 1, { { FROM_ROOT, false, false } } },
  [LS_COLL_ALL_REDUCE] = { 2, { { TO_ROOT, false, true }, { FROM_ROOT, false, false } } },
  [LS_COLL_REDUCE_SCATTER] = { 2, { { TO_ROOT, false, true }, { FROM_ROOT, true, false } } },
  [LS_COLL_ALL_GATHER] = { 2, { { TO_ROOT, true, false }, { FROM_ROOT, false, false } } },
};

static LsSend
send_of (const LsScript *s, const Star *star, uint32_t to, uint32_t member)
{
  if (star->is_part)
    return (LsSend) { .to = to, .first = member, .n = 1, .reduces = star->reduces };
  return (LsSend) { .to = to, .first = 0, .n = s->n_blocks, .reduces = star->reduces };
}

static uint32_t
sends (const LsScript *s, uint32_t place, uint32_t round, LsSend *ret)
{
  const Star *star = &stars[s->kind].star[round];
  uint32_t n = 0;
  if (star->direction == TO_ROOT && place != s->root)
    ret[n++] = send_of (s, star, s->root, place);
  for (uint32_t i = 0; star->direction == FROM_ROOT && place == s->root && i < s->n; i++)
    if (i != s->root)
      ret[n++] = send_of (s, star, i, i);
  return n;
}

static uint32_t
n_receives (const LsScript *s, uint32_t place, uint32_t round)
{
  bool is_root = place == s->root;
  if (stars[s->kind].star[round].direction == TO_ROOT)
    return is_root ? s->n - 1 : 0;
  return is_root ? 0 : 1;
}

static void
script (const LsCollCall *call, LsScript *s)
{
  ls_script_cut (call, s, call->n);
  ls_script_like_p2p (call, s);
  ls_script_star (call, s, call->hosts[call->host_of[call->seat[call->root]]].n);
  s->n_rounds = stars[call->kind].n_rounds;
  s->max_sends = call->n - 1;
  s->sends = sends;
  s->n_receives = n_receives;
}

#define NAIVE                                                                                                \
  (LS_COLL_BIT (LS_COLL_ALL_REDUCE) | LS_COLL_BIT (LS_COLL_ALL_GATHER)                                       \
   | LS_COLL_BIT (LS_COLL_REDUCE_SCATTER) | LS_COLL_BIT (LS_COLL_BROADCAST) | LS_COLL_BIT (LS_COLL_REDUCE))
#define DIRECT (LS_COLL_BIT (LS_COLL_GATHER) | LS_COLL_BIT (LS_COLL_SCATTER))

const LsCollAlgorithm ls_coll_naive = { .name = "naive", .kinds = NAIVE, .script = script };
const LsCollAlgorithm ls_coll_direct
    = { .name = "direct", .kinds = DIRECT, .automatic = DIRECT, .script = script };
