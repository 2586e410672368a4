/* exec/shortcuts/fold_stretch.h — stretches of hosts that are alike, because all of a job and its cluster
 * comes again (private to exec/).
 *
 * Problem. More data-parallel copies are more of the same. A job on 131,072 hosts has the classes of one on
 * 2,048, and to look at each host to find that out takes longer than the run.
 *
 * Equation. Ranks are in blocks, of a pipeline stage or of the whole job, in which data-parallel copies
 * follow each other. A *stretch* is so many hosts of each block that they are a whole number of copies and of
 * periods of the cluster (fold_blocks.h). So roles, neighbours and what is above hosts come again in each
 * stretch. A communicator is
 *
 *     in one stretch    each other stretch has one like it
 *     in several        it may load each in another way: a tree has roots
 *
 * Stretches are alike if all communicators of the second sort load the same there, by GPUs of the same
 * numbers. Two places in the same part of stretches that are alike see the same, so this is a stable
 * partition, and the first stretch of each sort stands for it: it is *kept*, and others are not looked at. A
 * communicator in several loads what it loads in those that are kept, as often as these stand for stretches.
 *
 * Worked example. tp 8, pp 2, dp 8 on 16 hosts of 8 GPUs, 2 hosts a leaf. Hosts 0 to 7 are stage 0, the
 * others stage 1: two blocks, and four stretches, of hosts 0, 1, 8, 9, of 2, 3, 10, 11, and so on. Rings load
 * all of them alike: hosts 0, 1, 8, 9 are kept as 0 to 3, and leaves 0 and 4 as 0 and 1. Trees begin on host
 * 0 and end on host 7: the last stretch is kept too, and the second for two.
 *
 * Deviations. Faults, stragglers and GPUs in another order do not come again. All hosts are kept then. */
#ifndef LS_EXEC_SHORTCUTS_FOLD_STRETCH_H
#define LS_EXEC_SHORTCUTS_FOLD_STRETCH_H

#include <stdbool.h>

#include "cluster/places.h"
#include "exec/replay/rank_classes.h"
#include "plan/plan.h"

/* Hosts, groups or pods. */
typedef struct {
  uint32_t first, first_kept; /* among places                                           */
  uint32_t block, stretch;    /* how many; the same: the job comes again, but these do not */
} StretchTier;

typedef struct {
  const LsPlaces *whole; /* borrowed                                                     */
  LsPlaces at;           /* of those that are kept: numbers, as if there were no others    */
  uint32_t n;            /* stretches                                                    */
  uint32_t n_kept;       /* of these                                                     */
  uint32_t *kept;        /* [n] which one of those that are kept stands for it; NULL: itself */
  uint32_t *first;       /* [n_kept] which one it is                                     */
  uint32_t *n_of;        /* [n_kept] for how many it stands                              */
  StretchTier tier[3];
  uint32_t gpus_of_block, gpus_of_stretch;
} Stretches;

/* One that is all. */
void stretches_init (Stretches *s, const LsPlaces *whole);
void stretches_clear (Stretches *s);
/* The shortest that mesh and cluster allow; period: of the cluster, in hosts. GPU i has rank i. All are kept.
 * False: they do not come again, and nothing is changed. */
bool stretches_find (Stretches *s, const LsPlan *plan, uint32_t period);
/* sort: [n], numbers in the order of the first of each. One of each sort is kept. */
void stretches_keep (Stretches *s, const uint32_t *sort, uint32_t n_sorts);

/* What is known of each place that is kept, of all that it stands for; ret: [places]. */
void stretches_spread (const Stretches *s, const uint32_t *of_kept, uint32_t *ret);

/* GPUs that are kept. */
uint32_t stretch_n_gpus (const Stretches *s);
/* Classes of ranks, where GPU i has rank i if stretches come again. Takes the list, of what is kept. */
LsRankClasses *stretch_classes_new (const Stretches *s, uint32_t *class_of, uint32_t n_ranks);

static inline uint32_t
stretch_of_gpu (const Stretches *s, uint32_t gpu)
{
  return gpu % s->gpus_of_block / s->gpus_of_stretch;
}

/* A place as tier, block, stretch and number there. */
typedef struct {
  const StretchTier *tier;
  uint32_t block, stretch, number;
} StretchPlace;

static inline StretchPlace
stretch_place_of (const Stretches *s, uint32_t place)
{
  const StretchTier *t = &s->tier[ls_places_tier (s->whole, place)];
  uint32_t i = place - t->first;
  return (StretchPlace) { t, i / t->block, i % t->block / t->stretch, i % t->stretch };
}

/* Whether a place is kept. */
static inline bool
stretch_keeps (const Stretches *s, uint32_t place)
{
  uint32_t i = s->kept ? stretch_place_of (s, place).stretch : 0;
  return !s->kept || s->first[s->kept[i]] == i;
}

/* What stands for a place, by its number among those that are kept. */
static inline uint32_t
stretch_kept (const Stretches *s, uint32_t place)
{
  if (!s->kept)
    return place;
  const StretchPlace p = stretch_place_of (s, place);
  uint32_t n_kept = p.tier->stretch < p.tier->block ? s->n_kept : 1;
  return p.tier->first_kept + (p.block * n_kept + s->kept[p.stretch]) * p.tier->stretch + p.number;
}

static inline uint32_t
stretch_kept_gpu (const Stretches *s, uint32_t gpu)
{
  if (!s->kept)
    return gpu;
  return (gpu / s->gpus_of_block * s->n_kept + s->kept[stretch_of_gpu (s, gpu)]) * s->gpus_of_stretch
      + gpu % s->gpus_of_stretch;
}

/* The GPU at the same place in the stretch that is kept for that of a GPU: it or one before it. *ret_n: GPUs
 * up to the end of the stretch in this block. */
static inline uint32_t
stretch_before (const Stretches *s, uint32_t gpu, uint32_t *ret_n)
{
  uint32_t i = stretch_of_gpu (s, gpu);
  *ret_n = s->gpus_of_stretch - gpu % s->gpus_of_stretch;
  return s->kept ? gpu - (i - s->first[s->kept[i]]) * s->gpus_of_stretch : gpu;
}

/* For how many places one that is kept stands. */
static inline uint32_t
stretch_times (const Stretches *s, uint32_t kept)
{
  const StretchTier *t = &s->tier[ls_places_tier (&s->at, kept)];
  return s->kept && t->stretch < t->block ? s->n_of[(kept - t->first_kept) / t->stretch % s->n_kept] : 1;
}

/* The place that is kept under this number. */
static inline uint32_t
stretch_place (const Stretches *s, uint32_t kept)
{
  const StretchTier *t = &s->tier[ls_places_tier (&s->at, kept)];
  uint32_t i = kept - t->first_kept, in = i / t->stretch;
  if (!s->kept || t->stretch == t->block)
    return t->first + i;
  return t->first + in / s->n_kept * t->block + s->first[in % s->n_kept] * t->stretch + i % t->stretch;
}

static inline uint32_t
stretch_gpu (const Stretches *s, uint32_t kept)
{
  uint32_t in = kept / s->gpus_of_stretch;
  if (!s->kept)
    return kept;
  return in / s->n_kept * s->gpus_of_block + s->first[in % s->n_kept] * s->gpus_of_stretch
      + kept % s->gpus_of_stretch;
}

#endif
