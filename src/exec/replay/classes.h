/* exec/replay/classes.h — which ranks are alike: a class for each, said once for stretches that come
 * again.
 *
 * Problem. A million ranks have a few dozen classes, and a list of a million numbers takes longer than the
 * run.
 *
 * Equation. Ranks lie in blocks, blocks in stretches (shortcuts/fold_blocks.h). Of those that are alike one
 * is kept, kept[s] for the s-th of a block, so with n_kept of them rank r has what stands in class_of at
 *
 *     (r / per_block * n_kept + kept[r mod per_block / per_stretch]) per_stretch + r mod per_stretch.
 *
 * Where nothing comes again all ranks are one stretch.
 *
 * Worked example. 16 ranks in two blocks of four stretches of 2; the first and the last are kept, and the
 * others are as the first: kept is 0 0 0 1, n_kept 2. Rank 13 is in the third stretch of the second block: 0
 * stands for it, and class_of[(1 * 2 + 0) * 2 + 1] is its class. */
#ifndef LS_EXEC_REPLAY_CLASSES_H
#define LS_EXEC_REPLAY_CLASSES_H

#include <glib.h>
#include <stdint.h>

#include "cluster/places.h"

typedef struct {
  uint32_t n_ranks;
  uint32_t per_block, per_stretch, n_kept;
  uint32_t *kept;     /* [stretches of a block]                                                     */
  uint32_t *class_of; /* [ranks that are kept]                                                      */
  uint32_t *n_alike;  /* [the same] how many of one class begin there, up to the end of the stretch */
} LsRankClasses;

/* Takes the list, of each rank. */
LsRankClasses *ls_rank_classes_new (uint32_t *class_of, uint32_t n_ranks);
/* The same of stretches, kept: [per_block / per_stretch], copied; the list is of those that are kept. */
LsRankClasses *ls_rank_classes_of_stretches (uint32_t *class_of, uint32_t n_ranks, uint32_t per_block,
                                             uint32_t per_stretch, const uint32_t *kept, uint32_t n_kept);
void ls_rank_classes_free (LsRankClasses *c); /* NULL allowed */

/* [classes], both: the first rank of each, and how many there are, added to zeros. */
void ls_rank_classes_count (const LsRankClasses *c, uint32_t *ret_first, uint32_t *ret_n);

/* Where the class of a rank stands in the list. */
static inline uint32_t
ls_rank_classes_at (const LsRankClasses *c, uint32_t rank)
{
  uint32_t stretch = rank % c->per_block / c->per_stretch;
  return (rank / c->per_block * c->n_kept + c->kept[stretch]) * c->per_stretch + rank % c->per_stretch;
}

/* NULL: each rank is its own class. */
static inline uint32_t
ls_rank_class (const LsRankClasses *c, uint32_t rank)
{
  return c ? c->class_of[ls_rank_classes_at (c, rank)] : rank;
}

/* Where the list has the first rank of a stretch. */
typedef struct {
  uint32_t first, at;
} LsRankStretch;

static inline LsRankStretch
ls_rank_stretch (const LsRankClasses *c, uint32_t rank)
{
  uint32_t first = rank - rank % c->per_stretch;
  return (LsRankStretch) { first, ls_rank_classes_at (c, first) };
}

/* As ls_rank_class(), of ranks that mostly are in the stretch of the last one. */
static inline uint32_t
ls_rank_class_near (const LsRankClasses *c, uint32_t rank, LsRankStretch *last)
{
  if (rank - last->first >= c->per_stretch)
    *last = ls_rank_stretch (c, rank);
  return c->class_of[last->at + (rank - last->first)];
}

/* The first rank behind those of one class that begin with this one, up to the end of its stretch. */
static inline uint32_t
ls_rank_classes_end (const LsRankClasses *c, uint32_t rank)
{
  return rank + (c ? c->n_alike[ls_rank_classes_at (c, rank)] : 1);
}

/* ---- which resources are alike, by where they lie (private to exec/) ---- */

#define NO_CLASS UINT32_MAX

/* The i-th resource of all places of a class is element first[class] + i. */
typedef struct PlaceClasses {
  LsPlaces at;
  uint32_t *class_of_place; /* [places]                               */
  uint32_t *first;          /* [classes of places]                    */
  uint32_t *class_of;       /* [elements] NO_CLASS: not loaded        */
} PlaceClasses;

void place_classes_free (PlaceClasses *p); /* NULL allowed */
/* NO_CLASS: not loaded. */
uint32_t place_classes_of (const PlaceClasses *p, uint32_t resource);

#endif
