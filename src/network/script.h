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
 * when all that it sends has left and all that it receives in this round is there. What
 * is sent in round r is received in the receiver's round r. Nobody waits for anybody
 * else. A place that has left its last round is done.
 *
 * If `has_lanes`, each place sends and receives max_sends messages in each round, and they
 * are the channels of an algorithm that go by themselves: the k-th message of a round waits
 * only for the k-th that its sender sent and received in the round before; it is the
 * receiver's k-th too. In all rounds it goes to the same place and has as many blocks, one lane
 * to one place each.
 *
 * What member i has at the start and what it must have at the end. Part i is the
 * n_blocks / n blocks from part_of[i] n_blocks / n on: an algorithm may lay the array
 * out as it likes.
 *
 *     kind                         start               end
 *     all-reduce                   its own, all        sum, all
 *     reduce-scatter               its own, all        sum, part i
 *     reduce                       its own, all        sum, all: at the root
 *     all-gather, barrier          part i              all
 *     gather                       part i              all: at the root
 *     broadcast                    root: all           all
 *     scatter                      root: all           part i
 *     all-to-all (n^2 blocks)      blocks i n + j      blocks j n + i, for all j
 *     permute (n blocks, of one    block i             block i - 1
 *       message each)
 *     send-recv                    member 0: all       member 1: all
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
  uint32_t first, n; /* blocks first + i stride, 0 <= i < n, modulo n_blocks        */
  uint32_t stride;   /* 0 stands for 1                                              */
  bool reduces;      /* added to what the receiver has of them; else replaces it    */
} LsSend;

typedef struct LsEdges LsEdges; /* network/algorithm.h */
typedef struct LsScript LsScript;
struct LsScript {
  LsCollKind kind;
  uint32_t n, n_switches, root;
  uint32_t n_blocks, n_rounds;
  uint32_t max_sends; /* of one place in one round */
  bool has_lanes;
  double block_bytes;
  const uint32_t *gpus;    /* [n] */
  const uint32_t *part_of; /* [n], a permutation; NULL: part i belongs to member i */
  const LsCluster *cluster;
  const void *data; /* of the algorithm, in the arena of the script */

  /* Sends of this place in this round into ret (room for max_sends); how many. */
  uint32_t (*sends) (const LsScript *s, uint32_t place, uint32_t round, LsSend *ret);
  uint32_t (*n_receives) (const LsScript *s, uint32_t place, uint32_t round);
  /* Of a pipeline, from which the two above follow (ls_script_pipe()): the edges of a place; its chunks, and
   * the blocks from one to the next. */
  void (*edges) (const LsScript *s, uint32_t place, LsEdges *ret);
  const GArray *known_edges; /* LsEdge, place by place; NULL: the above is asked each time */
  const uint32_t *n_edges;   /* [n + n_switches]: up to the end of each place              */
  uint32_t n_chunks, step;
  /* Of one channel, which matters where switches hash. NULL: between the two GPUs. */
  void (*route) (const LsScript *s, uint32_t from, uint32_t to, uint32_t channel, LsRoute *ret_route);

  /* What a message costs: its bytes in `flows` (2^-20) equal flows, each at a rate cap or
   * less and on each trunk of its route, and HBM traffic per byte at both ends. When they
   * have left, the sender is free, and a latency later the receiver has them. */
  LsTime base;                                /* once, before the first round */
  LsTime hop_intra, hop_inter, hop_switch;    /* the last: to or from a switch */
  double rate_intra, rate_inter, rate_switch; /* caps, bytes/s of one flow     */
  uint64_t flows;
  double hbm_from, hbm_to; /* HBM bytes per byte sent, received */
  /* Cap of a message of n blocks, if the rates above are not all: for several at once that
   * share what a place can move. NULL: they are. */
  double (*rate_cap) (const LsScript *s, uint32_t from, uint32_t to, uint32_t n);
};

/* Of a message between two places. Where switches hash, its flows take ways of their own: a
 * channel is one flow (2^-20: LS_COEF_ONE), the last what is over; elsewhere there is one. */
uint32_t ls_script_n_channels (const LsScript *s);
uint64_t ls_script_channel_flows (const LsScript *s, uint32_t channel);
void ls_script_route_channel (const LsScript *s, uint32_t from, uint32_t to, uint32_t channel,
                              LsRoute *ret_route);
LsTime ls_script_latency (const LsScript *s, uint32_t from, uint32_t to);
double ls_script_rate_cap (const LsScript *s, uint32_t from, uint32_t to,
                           uint32_t n); /* of n blocks; bytes/s of one flow */

/* Of all places in all rounds, counted from above. */
uint64_t ls_script_n_messages (const LsScript *script);

#endif
