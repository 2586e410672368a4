/* exec/shortcuts/fold.h — ranks that provably behave alike are simulated once (private to exec/).
 *
 * A run replays a *quotient* of the plan: one rank for each class of ranks, one communicator
 * for each class of communicators, one resource for each class of resources (refine.h says
 * what a class is). Programs and segments are those of the plan. A channel or copy engine
 * belongs to the class of its rank.
 *
 *     plan       ranks 0 1 2 .. 15      tp communicators {0 1} {2 3} .. {14 15}
 *     quotient   rank 0, for 16         one, with member 0, for 8
 *
 * A member of the quotient's communicator stands for all of its class: when it arrives, they
 * do, at the same instant. A load on a resource counts k / n times, where k alike make it on
 * n resources alike.
 *
 * Equal to the picosecond and the byte to a run of the plan itself: rates are whole numbers
 * (core/maxmin.h) with the quantum of the whole cluster, completions of an instant are
 * applied together, bytes are summed in whole numbers, and the digest is linear in who
 * completes. --fold check runs both and compares.
 *
 * The quotient is the plan itself, and all counts are 1, where nothing is alike or nothing
 * can be proved: message by message (--network step) the places of a collective do not move
 * together; ranks that do not owe each other what they call or send will end in an error,
 * which is to name real ranks.
 *
 * What splits classes: stragglers, degraded links, hashed routing, programs, nodes that are
 * used unevenly, rings that a communicator crosses unevenly, and leaves, unless they are
 * ample (cluster/places.h): then only what crosses them takes its latency from them. */
#ifndef LS_EXEC_SHORTCUTS_FOLD_H
#define LS_EXEC_SHORTCUTS_FOLD_H

#include <stdbool.h>

#include "exec/replay/timeline.h"
#include "exec/replay/whole.h"

typedef struct ShapedCalls ShapedCalls; /* shapes.h */

typedef struct Fold {
  Whole whole;             /* first member: what the run knows of it */
  LsPlan *quotient;        /* in the arena of the run, but for what is in its own */
  uint32_t *n_of_resource; /* [n_resources] in the class; the last has nobody, but the most capacity of
                                  all, for the quantum                                                      */
  bool *is_private;        /* [n_comms of the quotient] of one class of ranks, without which nothing loads
                                  what its calls do                                                         */
  bool *is_ample;          /* [n_resources]                                                             */
  uint64_t *sum;           /* [n_resources] zeros: scratch of fold_uses()                               */
} Fold;

/* Of x, the plan, the cluster, NCCL and the options are there. True: something is alike: x->plan is the
 * quotient now, x->extras->fold is there, and its hooks hang on x. */
bool fold_new (Run *x);

/* What is alike, and what those load that stand for others. Classes of ranks and of communicators are in the
 * order of their first. */
typedef struct {
  LsArena *arena;                         /* of what is not said to be of another      */
  LsRankClasses *rank;                    /* of the plan; owned                        */
  uint32_t *comm;                         /* [of the plan]                             */
  PlaceClasses *places;                   /* of resources; owned                       */
  uint32_t n_ranks, n_comms, n_resources; /* classes                                   */
  uint32_t *n_of_resource;                /* [n_resources + 1] in the class; in the run's arena */
  double *capacity;      /* the same: of one; the last is the most of all, loaded or not            */
  bool has_slots_apart;  /* no rank has two communicators of one class */
  struct Refine *refine; /* with all that it points to but peers      */
  uint32_t (*sends)[3];  /* [ranks of refine] of its loads, where those of its sends to the previous
                           begin, to the next, and of what comes behind             */
  uint32_t *class_of;    /* [resources of refine] NO_CLASS: not loaded              */
  uint32_t *row_of_rank, *row_of_comm; /* by class: who of refine is the first of it              */
  uint32_t *owner;           /* [communicators, ranks of refine] its class; those of ranks come behind */
  const ShapedCalls **calls; /* [n_comms + 2 * n_ranks] of the first of each class: of communicators; what
                                ranks send to the previous, to the next. In the run's arena; NULL: none */
  uint32_t *first_pattern;   /* the same: what to add to patterns there, for those of loads */
  uint32_t *others;          /* [n_others] resources of refine that traffic of no rank loads, too */
  uint32_t n_others;
} FoldClasses;

/* By the structure of the cluster (fold_blocks.h), or is_one: with each rank looked at. False: ranks do not
 * owe each other what they call or send, a call cannot be planned, all that is loaded takes more than a
 * quarter of options->max_memory_bytes; or there is no such structure. */
bool fold_classes (Run *x, bool is_one, FoldClasses *ret);

/* [n_comms], newly allocated: the slot of the first member; NULL unless every member has the
 * communicator in one slot and calls the same, and ranks expect what is sent. */
uint8_t *fold_owed (const Run *x);

#endif
