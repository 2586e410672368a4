/* network/coll_star.c — collectives through one member: gather, scatter, the naive way; parameter
 * servers.
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

/* --- all-reduce through parameter servers -------------------------------------------------------- */

/* Problem. n members on N hosts sum S bytes by pushing to servers and pulling from them.
 *
 * Model. One member of each host, the first, is a server and has 1/N of the array; on one
 * host that is member 0 alone. Round 0, push: everybody sends to each server its part,
 * which adds it up. Round 1, pull: each server sends its part to everybody.
 *
 *     a server receives and sends (n-1) S / N; another member sends and receives S
 *
 * Each round is a phase: hop latency (and base before the first), then the bytes at the
 * rate of a send. Servers are the bottleneck when n > 2 N: that is why rings won.
 *
 * Worked example: 64 MiB, 4 hosts of 1 member, 20 GB/s through a NIC, base 10 us, hop 14
 * us: 10 + 2 (14 + 3/4 * 67.1e6 / 20e9) us = 5.071 ms.
 *
 * Deviations. Servers compute for nothing; they are members (BytePS puts them on CPUs).
 * Push and pull do not overlap.
 *
 * Reference: Li et al., Scaling distributed machine learning with the parameter server,
 * OSDI 2014; Jiang et al., BytePS, OSDI 2020. */

/* UINT32_MAX: not a server. */
static uint32_t
server_index (const LsCollCall *call, uint32_t member)
{
  if (call->seats.n_hosts == 1)
    return member == 0 ? 0 : UINT32_MAX;
  uint32_t seat = call->seats.seat[member];
  bool is_first = seat == 0 || call->seats.host_of[seat] != call->seats.host_of[seat - 1];
  return is_first ? call->seats.host_of[seat] : UINT32_MAX;
}

static uint32_t
sends_server (const LsScript *s, uint32_t place, uint32_t round, LsSend *ret)
{
  const LsCollCall *call = s->data;
  uint32_t n = 0, mine = server_index (call, place);
  for (uint32_t i = 0; round == 0 && i < s->n_blocks; i++)
    if (i != mine)
      ret[n++] = (LsSend) { .to = call->seats.n_hosts == 1
                                ? 0
                                : call->seats.member[ls_coll_seat_in_order (call, i, 0, 0)],
                            .first = i,
                            .n = 1,
                            .reduces = true };
  for (uint32_t i = 0; round == 1 && mine != UINT32_MAX && i < s->n; i++)
    if (i != place)
      ret[n++] = (LsSend) { .to = i, .first = mine, .n = 1 };
  return n;
}

static uint32_t
n_receives_server (const LsScript *s, uint32_t place, uint32_t round)
{
  bool is_server = server_index (s->data, place) != UINT32_MAX;
  if (round == 0)
    return is_server ? s->n - 1 : 0;
  return s->n_blocks - (is_server ? 1 : 0);
}

static void
script_server (const LsCollCall *call, LsScript *s)
{
  ls_script_cut (call, s, call->seats.n_hosts);
  ls_script_like_p2p (call, s);
  /* The server of the smallest host hears from most others. */
  ls_script_star (call, s, call->seats.fewest);
  s->data = call;
  s->n_rounds = 2;
  s->max_sends = MAX (call->n, call->seats.n_hosts);
  s->sends = sends_server;
  s->n_receives = n_receives_server;
}

static uint64_t
n_messages (const LsCollCall *call)
{
  return 2 * (uint64_t) call->n * call->seats.n_hosts;
}

const LsCollAlgorithm ls_coll_server = { .name = "parameter-server",
                                         .kinds = LS_COLL_BIT (LS_COLL_ALL_REDUCE),
                                         .n_messages = n_messages,
                                         .script = script_server };

/* Everything to the root, or from it: gather and scatter as NCCL does them ("direct"), and the naive
 * way to do the others ("naive"). */

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
  [LS_COLL_SEND_RECV] = { 1, { { FROM_ROOT, false, false } } },
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

void
ls_script_of_root (LsScript *s)
{
  s->n_rounds = stars[s->kind].n_rounds;
  s->max_sends = s->n - 1;
  s->sends = sends;
  s->n_receives = n_receives;
}

static void
script (const LsCollCall *call, LsScript *s)
{
  ls_script_cut (call, s, call->n);
  ls_script_like_p2p (call, s);
  ls_script_star (call, s, call->seats.hosts[call->seats.host_of[call->seats.seat[call->root]]].n);
  ls_script_of_root (s);
}

#define DIRECT (LS_COLL_BIT (LS_COLL_GATHER) | LS_COLL_BIT (LS_COLL_SCATTER))

const LsCollAlgorithm ls_coll_naive = { .name = "naive", .kinds = LS_COLL_OF_RINGS, .script = script };
const LsCollAlgorithm ls_coll_direct
    = { .name = "direct", .kinds = DIRECT, .automatic = DIRECT, .script = script };
