/* ask/collective/collective_messages.h — a collective's messages, and who holds what after each round.
 *
 * The array is cut into blocks. A place is a rank, or behind the ranks a switch that computes. Rounds are
 * those of network/script.h: each place goes through them by itself. A block that a place holds is a set of
 * contributions: of an all-reduce whose gradients are in the sum; of an all-gather, whose part it is. */
#ifndef LS_ASK_COLLECTIVE_COLLECTIVE_MESSAGES_H
#define LS_ASK_COLLECTIVE_COLLECTIVE_MESSAGES_H

#include <glib.h>

#include "network/coll.h"
#include "network/script.h"

#define LS_COLLECTIVE_MESSAGES_MAX_RANKS 16 /* more cannot be read */

typedef struct {
  uint32_t round, from; /* a place */
  LsSend send;
} LsCollectiveMessage;

typedef struct {
  uint32_t n, n_switches, n_blocks, n_rounds;
  double block_bytes;
  GArray *messages; /* LsCollectiveMessage, by round, then by sender */
  uint32_t *held;   /* [after 0 .. n_rounds rounds][place][block]: bit i: of rank i; 0: nothing */
} LsCollectiveMessages;

/* Of the algorithm of the request, else of the one that is fastest alone. The request must be met and small
 * enough (ls_coll_applies(), ls_coll_check_size() with LS_NETWORK_STEP). LS_ERROR_LIMIT: more ranks than
 * above. Cost: rounds × places × blocks. Free with ls_collective_messages_free(). */
LsCollectiveMessages *ls_collective_messages_new (const LsCluster *c, const LsNccl *nccl,
                                                  const LsCollRequest *request, GError **error);
void ls_collective_messages_free (LsCollectiveMessages *m); /* NULL allowed */

/* Block i of a message's blocks, i < send.n. */
uint32_t ls_collective_messages_block (const LsCollectiveMessages *m, const LsCollectiveMessage *message,
                                       uint32_t i);
uint32_t ls_collective_messages_held (const LsCollectiveMessages *m, uint32_t n_rounds, uint32_t place,
                                      uint32_t block);

#endif
