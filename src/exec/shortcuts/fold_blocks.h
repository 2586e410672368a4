/* exec/shortcuts/fold_blocks.h — classes from the structure of the cluster, without a walk over all that each
 * rank loads (private to exec/).
 *
 * Problem. As refine.h, of a plan on a cluster of places (cluster/places.h), where calls load by shapes
 * (shapes.h).
 *
 * Algorithm, in two steps. First places and communicators are refined, a place as a whole:
 *
 *     place          of a host its ranks, one by one: role, pace; and the multiset of (who loads it or
 *                    has members there, label), of communicators and of what a host sends to another
 *     communicator   its calls, the multiset of (class of place, label) but for places that are ample
 *                    (cluster/places.h), which have no say in what loads them
 *
 * until nothing splits, where a label says what is loaded and by which GPUs of the place (shapes.h). What the
 * ranks of a host send to those of another host is one thing, a *row*. Ranks and resources that are the same
 * of places of one class then see the same, so that this is a stable partition, though not the coarsest: GPU
 * 0 and GPU 1 of a host are apart. Second, one place of each class stands for all of it, and refine() finds
 * the coarsest partition of these few. Coarsest of all is what that one says of all: a stable partition is a
 * refinement of the coarsest, and the coarsest of the quotient by it is the same (Cardon and Crochemore,
 * Theoretical Computer Science 19, 1982).
 *
 * Cost. Once: O(ranks * slots), to find out where all lie. First step: O(places * (communicators at a place))
 * a round, with a few nanoseconds each. Second step:
 * O(classes of places * what one loads). Shapes: each is lowered once.
 *
 * Worked example. 16,384 GPUs in hosts of 8, tp 8, pp 16: 2,048 hosts and 512 groups and pods become some
 * hundred classes of places, and these 32 classes of ranks. */
#ifndef LS_EXEC_SHORTCUTS_FOLD_BLOCKS_H
#define LS_EXEC_SHORTCUTS_FOLD_BLOCKS_H

#include "exec/shortcuts/fold.h"
#include "exec/shortcuts/shapes.h"

/* What neighbouring GPUs of a host send to ranks of another, in one direction. */
typedef struct {
  uint32_t gpu, n, to_next; /* GPUs: from gpu on */
  const uint32_t *shape;    /* [n] of the sends of each; NO_SHAPE: it only receives from there */
  uint32_t n_places;        /* where any of these load */
  uint32_t label;           /* at the first of these; the others follow */
} Row;

typedef struct {
  uint32_t from, to; /* hosts */
  uint32_t row;
  uint32_t first; /* into row_places */
} RowAt;

/* What the first step finds out. */
typedef struct {
  const Run *x;
  const LsPlan *plan; /* whole */
  const RoleCalls *roles;
  const uint8_t *peers; /* see Refine */
  Shapes *shapes;
  const LsPlaces *at;
  double fastest;           /* run_fastest_kernel() */
  uint32_t *rank_of_gpu;    /* [GPUs], or UINT32_MAX                                     */
  uint32_t *shape_of_comm;  /* [n_comms]                                                 */
  uint32_t *places, *first; /* of a communicator, by their number in its shape: [n_comms + 1] */
  LsArena *arena;
  GArray *rows;       /* Row */
  GHashTable *known;  /* LsSig > row + 1 */
  GArray *rows_at;    /* RowAt */
  GArray *row_places; /* uint32_t */
  uint32_t n_row_labels;
  uint32_t n_places;
  bool *is_ample; /* [groups, pods] all that is there */
  uint32_t *class_of_place, n_place_classes;
  uint32_t *class_of_comm, n_comm_classes;
} Blocks;

/* slot: [n_comms] of each communicator's members. False: this cluster or plan is not made so. */
bool blocks_init (Blocks *b, const Run *x, const uint8_t *slot, const uint8_t *peers);
void blocks_clear (Blocks *b);

/* A rank by the class of its place and its number there. */
static inline uint32_t
blocks_seat (const Blocks *b, uint32_t rank)
{
  uint32_t gpu = b->plan->gpu_of_rank[rank], per_host = b->at->gpus_per_host;
  return b->class_of_place[gpu / per_host] * per_host + gpu % per_host;
}

/* Whether what others load at a place matters to them. */
static inline bool
blocks_matters (const Blocks *b, uint32_t place)
{
  return place < b->at->n_hosts || !b->is_ample[place - b->at->n_hosts];
}

/* The shapes of the sends of a rank to previous and next, and of its copies; NO_SHAPE: none. ret_places: of
 * sends, where these lie, SEND_PLACES at most. False: a call cannot be planned. */
#define SEND_PLACES 6
bool blocks_shape_rank (const Blocks *b, uint32_t rank, uint32_t ret_shape[3],
                        uint32_t ret_places[2][SEND_PLACES]);

/* fold_quotient.c: the second step. Takes the blocks' arrays for scratch. False: a copy cannot be planned. */
bool blocks_classify (const Blocks *b, const uint8_t *slot, FoldClasses *ret);

/* Fills in places, class_of and n_resources of classes of which the refinement is there. place: the first of
 * each class; first: [classes + 1] of its elements; class_of: [elements] what the refinement made of them. */
void blocks_spread_resources (const Blocks *b, const uint32_t *place, const uint32_t *first,
                              const uint32_t *class_of, FoldClasses *ret);

#endif
