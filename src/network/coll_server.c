/* network/coll_server.c — all-reduce through parameter servers.
 *
 * Problem. n members on N hosts sum S bytes by pushing to servers and pulling from them.
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
#include "network/algorithm.h"

/* UINT32_MAX: not a server. */
static uint32_t
server_index (const LsCollCall *call, uint32_t member)
{
  if (call->n_hosts == 1)
    return member == 0 ? 0 : UINT32_MAX;
  uint32_t seat = call->seat[member];
  bool is_first = seat == 0 || call->host_of[seat] != call->host_of[seat - 1];
  return is_first ? call->host_of[seat] : UINT32_MAX;
}

static uint32_t
server_member (const LsCollCall *call, uint32_t index)
{
  return call->n_hosts == 1 ? 0 : call->member[ls_coll_seat_in_order (call, index, 0, 0)];
}

static uint32_t
sends (const LsScript *s, uint32_t place, uint32_t round, LsSend *ret)
{
  const LsCollCall *call = s->data;
  uint32_t n = 0, mine = server_index (call, place);
  for (uint32_t i = 0; round == 0 && i < s->n_blocks; i++)
    if (i != mine)
      ret[n++] = (LsSend) { .to = server_member (call, i), .first = i, .n = 1, .reduces = true };
  for (uint32_t i = 0; round == 1 && mine != UINT32_MAX && i < s->n; i++)
    if (i != place)
      ret[n++] = (LsSend) { .to = i, .first = mine, .n = 1 };
  return n;
}

static uint32_t
n_receives (const LsScript *s, uint32_t place, uint32_t round)
{
  bool is_server = server_index (s->data, place) != UINT32_MAX;
  if (round == 0)
    return is_server ? s->n - 1 : 0;
  return s->n_blocks - (is_server ? 1 : 0);
}

static void
script (const LsCollCall *call, LsScript *s)
{
  ls_script_cut (call, s, call->n_hosts);
  ls_script_like_p2p (call, s);
  /* The server of the smallest host hears from most others. */
  ls_script_star (call, s, ls_coll_min_members (call));
  s->data = call;
  s->n_rounds = 2;
  s->max_sends = MAX (call->n, call->n_hosts);
  s->sends = sends;
  s->n_receives = n_receives;
}

static uint64_t
n_messages (const LsCollCall *call)
{
  return 2 * (uint64_t) call->n * call->n_hosts;
}

const LsCollAlgorithm ls_coll_server = { .name = "parameter-server",
                                         .kinds = LS_COLL_BIT (LS_COLL_ALL_REDUCE),
                                         .n_messages = n_messages,
                                         .script = script };
