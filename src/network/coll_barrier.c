/* network/coll_barrier.c — a barrier: nobody leaves before all have come.
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
#include "network/algorithm.h"

static uint32_t
sends (const LsScript *s, uint32_t place, uint32_t round, LsSend *ret)
{
  const LsCollCall *call = s->data;
  uint32_t heard = 1u << round, seat = call->seat[place];
  uint32_t news = MIN (heard, s->n - heard);
  *ret = (LsSend) { .to = call->member[(seat + heard) % s->n],
                    .first = (seat + s->n - (news - 1)) % s->n,
                    .n = news };
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
  ls_script_cut (call, s, call->n);
  ls_script_like_p2p (call, s);
  s->data = call;
  s->part_of = call->seat;
  s->n_rounds = g_bit_storage (call->n - 1);
  s->max_sends = 1;
  s->sends = sends;
  s->n_receives = n_receives;
}

#define KINDS LS_COLL_BIT (LS_COLL_BARRIER)

const LsCollAlgorithm ls_coll_dissemination
    = { .name = "dissemination", .kinds = KINDS, .automatic = KINDS, .script = script };
