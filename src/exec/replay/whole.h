/* exec/replay/whole.h — what the ranks, communicators and resources of a replay stand for in the whole plan
 * and cluster: themselves, unless a hook has folded these (private to exec/). */
#ifndef LS_EXEC_REPLAY_WHOLE_H
#define LS_EXEC_REPLAY_WHOLE_H

#include "core/flow.h"
#include "exec/replay/classes.h"
#include "network/coll.h"
#include "plan/plan.h"

typedef struct Run Run;

/* In the arena of the run, but for classes and places, which are owned; NULL: each stands for itself, or what
 * is said there. */
typedef struct {
  const LsPlan *plan;         /* borrowed                                               */
  LsRankClasses *classes;     /* of ranks                                               */
  uint32_t *rank, *n_of_rank; /* [n_ranks of the replay] the lowest of the class, and how many it has */
  uint32_t *comm, *n_of_comm; /* [n_comms of the replay] likewise                       */
  uint32_t n_resources;       /* of the replay                                          */
  double *capacity;           /* [n_resources], never NULL                              */
  PlaceClasses *places;       /* of resources, by where they lie; NULL: otherwise       */
  /* By what each counts in the digest: sums of digest_weight(); channels: [2 * n_ranks]. */
  uint64_t *comm_weight, *channel_weight, *copy_weight;
  /* Already planned, of the replay: [n_comms], then what each rank sends to the previous, to the next; NULL:
   * they are not. */
  struct Call **calls;
} Whole;

/* Each stands for itself: of a whole that has its plan. */
void whole_is_itself (Whole *w, const Run *x);
void whole_clear (Whole *w);

static inline uint32_t
whole_rank (const Whole *w, uint32_t rank)
{
  return w->rank ? w->rank[rank] : rank;
}

static inline uint32_t
whole_n_of_rank (const Whole *w, uint32_t rank)
{
  return w->n_of_rank ? w->n_of_rank[rank] : 1;
}

/* Loads of the cluster, each once, as uses of what is replayed: [n] of ret_uses at most; returns how many. */
uint32_t run_uses (const Run *x, const LsLoad *loads, uint32_t n, uint32_t n_alike, LsFlowUse *ret_uses);

/* In the digest, a communicator, what the i-th channel sends, and a copy of a rank. */
uint64_t whole_weight_of_comm (const Whole *w, uint32_t comm);
uint64_t whole_weight_of_channel (const Whole *w, uint32_t channel);
uint64_t whole_weight_of_copy (const Whole *w, uint32_t rank);

#endif
