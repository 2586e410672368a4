/* network/memo.h — what calls on the same GPUs have in common, kept from one to the next (private to
 * network/). */
#ifndef LS_NETWORK_MEMO_H
#define LS_NETWORK_MEMO_H

#include "network/double_tree.h"

struct LsCollMemo {
  LsArena *arena;
  const LsCluster *cluster; /* NULL: not used yet                             */
  GPtrArray *known;         /* of rounds.c                                    */
  const uint32_t *gpus;     /* [n] of the latest call                         */
  uint32_t n;
  LsCollSeats seats;     /* theirs                                        */
  bool has_alike;        /* LsCollAlgorithm.alike, of theirs, was asked for */
  const uint32_t *alike; /* what it said                                  */
  LsDoubleTree trees;
  uint32_t n_hosts_of_trees; /* 0: none yet */
};

#endif
