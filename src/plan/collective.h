/* plan/collective.h — collectives and the algorithms that carry them out, as numbers. A plan holds
 * the numbers; network/coll.h names them and knows what they do. */
#ifndef LS_PLAN_COLLECTIVE_H
#define LS_PLAN_COLLECTIVE_H

#include <stdbool.h>

#include "base/draw.h"

/* Send/recv comes last: the others are collectives in the strict sense. */
typedef enum {
  LS_COLL_ALL_REDUCE,
  LS_COLL_ALL_GATHER,
  LS_COLL_REDUCE_SCATTER,
  LS_COLL_BROADCAST,
  LS_COLL_REDUCE,
  LS_COLL_ALL_TO_ALL,
  LS_COLL_GATHER,
  LS_COLL_SCATTER,
  LS_COLL_BARRIER,
  LS_COLL_PERMUTE,      /* each member sends to the next one, the last to the first */
  LS_COLL_COPY_PERMUTE, /* the same by copy engines, which hold no SMs              */
  LS_COLL_SEND_RECV,    /* one message */
  LS_N_COLL_KINDS
} LsCollKind;

/* In the order in which they are tried: of those that are equally fast, the first is taken. */
typedef enum {
  LS_ALGORITHM_CHOOSE, /* as NCCL does */
  LS_ALGORITHM_RING,
  LS_ALGORITHM_TREE,
  LS_ALGORITHM_NVLS,
  LS_ALGORITHM_NVLS_TREE,
  LS_ALGORITHM_P2P,
  LS_ALGORITHM_SHIFT,
  LS_ALGORITHM_PAIRWISE,
  LS_ALGORITHM_DIRECT,
  LS_ALGORITHM_DISSEMINATION,
  LS_ALGORITHM_HIERARCHICAL,
  LS_ALGORITHM_HALVING,
  LS_ALGORITHM_COLLNET,
  LS_ALGORITHM_PAT,
  LS_ALGORITHM_SERVER,
  LS_ALGORITHM_NAIVE,
  LS_ALGORITHM_TORUS,
  LS_ALGORITHM_DISPATCH,
  LS_ALGORITHM_COMBINE,
  LS_N_ALGORITHMS
} LsAlgorithm;

/* Of an all-to-all by LS_ALGORITHM_DISPATCH or COMBINE, whose bytes are those of a row for each expert of
 * each token: how tokens fall on its members, which have equal parts of the experts in order. */
typedef struct {
  LsDraw draw;       /* the experts of a token; n_drawn 0: no such calls */
  uint64_t n_tokens; /* of a member */
  uint32_t n_sms;    /* that a call holds */
  bool is_hybrid;    /* by HybridEP, not DeepEP */
} LsSpread;

#endif
