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
  uint32_t n_stages; /* whose layers may differ; 0: they may not          */
  double *layer_s;   /* [n_stages * kinds of nodes] what a layer takes there */
  Candidate *batch;  /* of the present round */
  LsTime limit;      /* what a candidate has to be below; LS_TIME_NEVER: nothing */
} Search;

void candidate_clear (Candidate *c);
/* Each has its step, its lower bound, or why it is refused. */
void try_batch (Search *x, Candidate *batch, guint n);
/* The fastest below the limit, of equal ones the first; n: none is. */
guint fastest_of (const Candidate *batch, guint n, LsTime limit);

/* place_swaps.c: one round: whether it gained, in place. n_tries: left. */
bool try_swaps (Search *x, Candidate *best, guint *n_tries);

/* place_shares.c: layers of stages by the speed of the nodes that they are on. */
void shares_init (Search *x);
void shares_clear (Search *x);
char *shares_text (const uint32_t *layers, uint32_t n); /* "21,11", newly allocated */
/* 1: *ret_other is c with such layers, to be cleared; 0: its stages are equally fast. */
guint shares_by_speed (const Search *x, const Candidate *c, Candidate *ret_other);
/* A layer at a time moves from a stage to another as long as one gains; in place. */
void shares_search (Search *x, Candidate *best);

#endif
