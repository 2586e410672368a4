/* exec/shortcuts/fold_blocks.h — classes from the structure of the cluster, without a walk over all that each
 * rank loads (private to exec/).
 *
 * Problem. As refine.h, of a plan on a cluster of places (cluster/places.h), where calls load by shapes
 * (shapes.h).
 *
 * Algorithm, in two steps. First places and communicators are refined, a place as a whole:
 *
 *     place          of a host its ranks, one by one: role, pace; and the multiset of (who loads it or
 *                    has members there, label), of communicators and of what is sent
 *     communicator   its calls, the multiset of (class of place, label) but for places that are ample
 *                    (cluster/places.h), which have no say in what loads them
 *
 * until nothing splits, where a label says what is loaded and by which GPUs of the place (shapes.h).
 * Communicators in the same places are one thing, a *bundle*, and so is what neighbouring ranks of a host
 * send to those of another; one in a single host is part of what tells that host apart. Ranks and resources
 * that are the same of places of one class then see the same, so that this is a stable partition, though not
 * the coarsest: GPU 0 and GPU 1 of a host are apart. Second, one place of each class stands for all of it,
 * and refine() finds the coarsest partition of these few. Coarsest of all is what that one says of all: a
 * stable partition is a refinement of the coarsest, and the coarsest of the quotient by it is the same
 * (Cardon and Crochemore, Theoretical Computer Science 19, 1982).
 *
 * Where things lie is asked once of those that lie alike. Nothing tells a host from the one a whole number of
 * *periods* further on: pods, or groups, or hosts, where links above these differ in nothing. So a
 * communicator of a mesh, and what a host sends, is where the first of its kind is, moved by periods.
 *
 * Where whole stretches of hosts come again, only one of each sort is looked at.
 *
 * A cluster that is laid out otherwise, or whose hosts traffic loads or several jobs use, is one place: then
 * the first step knows nothing, the second looks at each rank, communicator and resource, and nothing is
 * assumed to be alike. LsRunOptions.folds_by_walk has it so for any cluster.
 *
 * Cost. Once: O(communicators), O(ranks) to compare their roles and to say their classes. First step: O(kept
 * places + (bundles at such a place)) a round. Second step: O(classes of places * what one loads). Shapes:
 * each is lowered once, in the hosts of its ranks.
 *
 * Worked example. 1,048,576 GPUs in hosts of 8, 32 hosts a leaf of each rail, tp 8, pp 16: 131,072 hosts are
 * 256 stretches of 32 hosts of each stage. Data-parallel trees have a root in the first and in the last:
 * these two and the second are kept, 1,536 hosts and 48 groups, some hundred classes of places, and these 32
 * classes of ranks. The eight data-parallel communicators of the GPUs of a host are one bundle: 16 of these,
 * for 128 communicators. */
#ifndef LS_EXEC_SHORTCUTS_FOLD_BLOCKS_H
#define LS_EXEC_SHORTCUTS_FOLD_BLOCKS_H

#include "exec/replay/state.h"
#include "exec/shortcuts/shapes.h"

/* ---- stretches ---- */

/* Stretches of hosts that are alike, because all of a job and its cluster comes again.
 *
 * Problem. More data-parallel copies are more of the same. A job on 131,072 hosts has the classes of one on
 * 2,048, and to look at each host to find that out takes longer than the run.
 *
 * Equation. Ranks are in blocks, of a pipeline stage or of the whole job, in which data-parallel copies
 * follow each other. A *stretch* is so many hosts of each block that they are a whole number of copies and of
 * periods of the cluster. So roles, neighbours and what is above hosts come again in each
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

/* sort: [n], numbers in the order of the first of each. One of each sort is kept. Borrows the list and the
 * arena. */
void stretches_keep (Stretches *s, uint32_t *sort, uint32_t n_sorts, LsArena *arena);

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

/* ---- who lies where ---- */

/* Where a communicator in several stretches lies, and what it loads in each: of GPUs of another number in the
 * same hosts the same, but for that number (shapes.h). */
typedef struct {
  const uint32_t *places;       /* of the shape, as if its first member were in the first block */
  const uint32_t *kept_members; /* see Template; NULL: they are not known yet, and lie is not */
  uint32_t n_kept_members, lie;
  uint32_t n;
  uint32_t *stretch; /* [n] */
  LsSig *sum;        /* [n] over places */
} Crossing;

/* Communicators that lie alike, whole periods apart, and call the same; those in several stretches, whole
 * blocks apart. */
typedef struct {
  uint32_t shape;
  uint32_t lie;     /* which list of places, by their numbers in the shape: equal of equal lists */
  Crossing *across; /* NULL: in one stretch */
  uint32_t n_kept_members;
  const uint32_t *kept_members; /* those in stretches that are kept; NULL: all */
} Template;

typedef struct {
  uint32_t comm, template;
} AcrossComm;

/* Bundles that are alike but for where they are. */
typedef struct {
  LsSig sig;              /* of all that its callers are, but for where */
  uint32_t n;             /* kept places where something is loaded or a member is         */
  const uint32_t *times;  /* [n] for how many places each stands; NULL: 1                 */
  const uint32_t *number; /* [n] in the shapes                                            */
  const uint32_t *label;  /* [n] equal of what is equal, of bundles of one sig            */
  uint32_t n_callers;
  const uint32_t *shape; /* [n_callers]                                                  */
  uint32_t gpu, to_next; /* of what is sent: by GPUs from this one on; NO_GPU_NUMBER: of communicators */
} BundleKind;

/* A communicator that stands for those of other stretches. */
typedef struct {
  uint32_t comm, template;
  const uint32_t *offsets; /* of it: those of alike communicators are the same */
  uint32_t shift;          /* in periods */
  uint32_t bundle, class;
} KeptComm;

/* Communicators in the same places; or what neighbouring GPUs of a host, which is the first place, send to
 * those of another, in one direction. */
typedef struct {
  uint32_t kind, shift;
  uint32_t place; /* into places, where the first of those that are alike but for whole periods is */
  uint32_t first; /* of communicators: into kept_of_bundle */
} Bundle;

/* What the first step finds out, of places that are kept. */
typedef struct {
  const Run *x;
  const LsPlan *plan; /* whole */
  const RoleCalls *roles;
  const uint8_t *peers; /* see Refine */
  bool is_one;          /* all is one place */
  Shapes *shapes;
  Stretches stretches;
  const LsPlaces *laid_out; /* places of the cluster, with what is ample; NULL: it has none */
  LsPlaces laid_out_else;   /* these, where all is one place                               */
  double *capacity;         /* likewise: [resources]; NULL: run_capacity()                 */
  const LsPlaces *at;       /* of stretches */
  double fastest;           /* run_fastest_kernel() */
  uint32_t period, groups_of_period, pods_of_period; /* hosts; 0: nothing is known of other places         */
  uint32_t *rank_of_gpu;                             /* [GPUs], or UINT32_MAX; NULL: GPU i has rank i      */
  LsArena *arena;
  GArray *templates, *kinds; /* Template, BundleKind                        */
  GArray *kept;              /* KeptComm, in the order of communicators     */
  uint32_t *kept_of_comm;    /* [n_comms] which one stands for each         */
  GArray *across;            /* AcrossComm, in the order of communicators; NULL: all is kept */
  GArray *bundles;           /* Bundle: of communicators, then of what hosts send, in the order of these */
  uint32_t n_comm_bundles;
  uint32_t *kept_of_bundle; /* by bundle, in order                         */
  GArray *places;           /* uint32_t: of bundles                        */
  uint32_t n_places;
  bool *is_ample; /* [groups, pods] all that is there */
  uint32_t *class_of_place, n_place_classes;
  uint32_t n_comm_classes;
} Blocks;

/* Of a GPU of those places; UINT32_MAX: none. */
static inline uint32_t
blocks_rank (const Blocks *b, uint32_t gpu)
{
  if (b->rank_of_gpu)
    return b->rank_of_gpu[gpu];
  uint32_t rank = stretch_gpu (&b->stretches, gpu);
  return rank < b->plan->n_ranks ? rank : UINT32_MAX;
}

/* The host of a rank, or the one that stands for it. */
static inline uint32_t
blocks_host (const Blocks *b, uint32_t rank)
{
  return stretch_kept (&b->stretches, ls_plan_gpu (b->plan, rank) / b->at->gpus_per_host);
}

static inline uint32_t
blocks_resource (const Blocks *b, uint32_t place, uint32_t local)
{
  return ls_places_resource (b->stretches.whole, stretch_place (&b->stretches, place), local);
}

static inline double
blocks_capacity (const Blocks *b, uint32_t resource)
{
  return b->capacity ? b->capacity[resource] : run_capacity (b->x, b->stretches.whole, b->fastest, resource);
}

/* A place, so many periods further on. */
static inline uint32_t
blocks_moved (const Blocks *b, uint32_t place, uint32_t shift)
{
  if (place < b->at->n_hosts)
    return place + shift * b->period;
  bool is_group = place < b->at->n_hosts + b->at->n_groups;
  return place + shift * (is_group ? b->groups_of_period : b->pods_of_period);
}

static inline const Bundle *
blocks_bundle (const Blocks *b, uint32_t i)
{
  return &g_array_index (b->bundles, Bundle, i);
}

static inline const BundleKind *
blocks_kind (const Blocks *b, const Bundle *bundle)
{
  return &g_array_index (b->kinds, BundleKind, bundle->kind);
}

/* The k-th of its kind. */
static inline uint32_t
blocks_place (const Blocks *b, const Bundle *bundle, uint32_t k)
{
  return blocks_moved (b, g_array_index (b->places, uint32_t, bundle->place + k), bundle->shift);
}

/* In one host alone. */
static inline bool
blocks_is_local (const Blocks *b, const Bundle *bundle)
{
  return blocks_kind (b, bundle)->n == 1 && blocks_place (b, bundle, 0) < b->at->n_hosts;
}

static inline KeptComm *
blocks_kept (const Blocks *b, uint32_t i)
{
  return &g_array_index (b->kept, KeptComm, i);
}

/* What it loads, and where the first of its kind does so. */
static inline const Template *
blocks_template (const Blocks *b, const KeptComm *kept)
{
  return &g_array_index (b->templates, Template, kept->template);
}

/* The class of a communicator. */
static inline uint32_t
blocks_class (const Blocks *b, uint32_t comm)
{
  return blocks_kept (b, b->kept_of_comm[comm])->class;
}

/* A rank by the class of its place and its number there. */
static inline uint32_t
blocks_seat (const Blocks *b, uint32_t rank)
{
  uint32_t per_host = b->at->gpus_per_host;
  return b->class_of_place[blocks_host (b, rank)] * per_host + ls_plan_gpu (b->plan, rank) % per_host;
}

/* Whether what others load at a place matters to them. */
static inline bool
blocks_matters (const Blocks *b, uint32_t place)
{
  return place < b->at->n_hosts || !b->is_ample[place - b->at->n_hosts];
}

/* Parts of fold_classes(), fold_bundles.c. The first keeps one stretch of each sort and fills in across and
 * their templates; false: there are too many, or a call cannot be planned. The others: false: a call cannot
 * be planned, or stretches are not alike after all. */
bool sorts_find (Blocks *b, const uint8_t *slot);
bool bundles_find (Blocks *b, const uint8_t *slot);
bool sends_find (Blocks *b);
/* Whether GPUs of both hosts have ranks of the same roles, where GPU i has rank i. */
bool hosts_have_same_roles (const Blocks *b, uint32_t host, uint32_t other);

/* fold_quotient.c: the first step. Fills in the classes of places and of communicators that are kept. */
void blocks_refine (Blocks *b);

/* The shapes of the sends of a kept rank to previous and next, and of its copies; NO_SHAPE: none. ret_places:
 * of sends, where these lie, SEND_PLACES at most. False: a call cannot be planned. */
#define SEND_PLACES 6
bool sends_shape_rank (const Blocks *b, uint32_t rank, uint32_t ret_shape[3],
                       uint32_t ret_places[2][SEND_PLACES]);

/* The second step. Takes the blocks' arrays for scratch. False: a copy cannot be planned. */
bool blocks_classify (const Blocks *b, const uint8_t *slot, FoldClasses *ret);

#endif
