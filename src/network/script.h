/* network/script.h — a collective message by message: what every member sends to
 * whom, in which order, and what the receiver does with it. The same script serves
 * the proof that an algorithm is right (contributions counted symbolically) and
 * `--network step` (every send its own flow).
 *
 * The array is cut into n_blocks blocks of bytes / n_blocks each. Places 0 .. n-1 are
 * the members of the call in communicator order; places n .. n + n_switches - 1 are
 * switches that compute (NVLS, SHARP): they start with nothing. Each place goes
 * through rounds 0 .. n_rounds - 1 by itself: in a round it makes its sends, all at
 * once, with the data that it has when it enters the round; it enters the next round
 * when all that it sends and all that it receives in this round is over. Nobody
 * waits for anybody else. A place that has left its last round is done.
 *
 * A script of N places is never laid out in memory: sends() computes them. */
#ifndef LS_NETWORK_SCRIPT_H
#define LS_NETWORK_SCRIPT_H

#include <stdbool.h>
#include <stdint.h>

#include "cluster/route.h"
#include "network/coll.h"

typedef struct {
  uint32_t to;       /* place                                                       */
  uint32_t first, n; /* blocks first, first + 1, .. first + n - 1, modulo n_blocks  */
  bool reduces;      /* added to what the receiver has of them; else replaces it    */
} LsSend;

typedef struct LsScript LsScript;
struct LsScript {
  LsCollKind kind;
  uint32_t n, n_switches, root;
  uint32_t n_blocks, n_rounds;
  uint32_t max_sends;    /* of one place in one round */
  double block_bytes;
  const uint32_t *gpus;  /* [n] */
  const LsCluster *cluster;
  const void *data;      /* of the algorithm, in the arena of the script */

  /* Sends of this place in this round into ret (room for max_sends); how many. */
  uint32_t (*sends) (const LsScript *s, uint32_t place, uint32_t round, LsSend *ret);
  uint32_t (*n_receives) (const LsScript *s, uint32_t place, uint32_t round);
  /* NULL: ls_route() between the two GPUs. */
  void (*route) (const LsScript *s, uint32_t from, uint32_t to, LsRoute *ret_route);

  /* What a message costs: `latency` with nothing moving, then its bytes at `rate_cap`
   * or less, loading each trunk of its route with `flows` (2^-20 flows, spread over the
   * script: demand and cap are those of one flow). */
  LsTime base;             /* once, before the first round */
  LsTime latency_intra, latency_inter;
  double rate_cap;         /* bytes/s of one flow */
  uint64_t flows;
};

#endif
