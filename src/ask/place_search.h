/* ask/place_search.h — the search of place.c and its parts (private to place*.c). */
#ifndef LS_ASK_PLACE_SEARCH_H
#define LS_ASK_PLACE_SEARCH_H

#include "ask/place.h"

typedef struct {
  LsRankOrder order;
  bool is_own_order; /* the job's, as it names it */
  const char *seats_name;
  uint32_t *gpus;   /* [n_ranks], owned                              */
  uint32_t *layers; /* [pp], owned: of each stage; NULL: as the job's */
  uint32_t *counts; /* [dp], owned: micro-batches of each replica; NULL: as the job's */
  LsTime step, least;
  char *refused;
} Candidate;

typedef struct {
  const LsJobSpec *spec;
  const LsPlaceOptions *options;
  const LsProgress *progress;
  LsRunOptions run;
  LsPlace *p;
  uint32_t n_ranks;
  uint32_t n_stages;    /* whose layers may differ; 0: they may not          */
  uint32_t n_replicas;  /* whose micro-batches may differ; 0: they may not   */
  double *stage_s;      /* [pp * kinds of nodes] what a micro-batch takes there; NULL: nothing may differ */
  uint32_t *own_layers; /* [n_stages] of the job as it is */
  Candidate *batch;     /* of the present round */
  LsTime limit;         /* what a candidate has to be below; LS_TIME_NEVER: nothing */
} Search;

void candidate_clear (Candidate *c);
/* A copy of its own, without a step. */
Candidate candidate_copy (const Search *x, const Candidate *c);
/* Each has its step, its lower bound, or why it is refused. */
void try_batch (Search *x, Candidate *batch, guint n);
/* The fastest below the limit, of equal ones the first; n: none is. */
guint fastest_of (const Candidate *batch, guint n, LsTime limit);

/* place_swaps.c: one round: whether it gained, in place. n_tries: left. */
bool try_swaps (Search *x, Candidate *best, guint *n_tries);

/* place_swaps.c: layers of stages, and micro-batches of replicas, by the speed of their nodes. */
void shares_init (Search *x);
void shares_clear (Search *x);
char *shares_text (const uint32_t *shares, uint32_t n); /* "21,11", newly allocated; NULL of NULL */
#define MOST_SHARES 2
/* How many: ret_others are c with layers, and with micro-batches by speed, to be cleared; none where all are
 * equally fast. */
guint shares_by_speed (const Search *x, const Candidate *c, Candidate *ret_others);
/* A layer or a micro-batch at a time moves to another stage or replica as long as one gains; in place. */
void shares_search (Search *x, Candidate *best);

#endif
