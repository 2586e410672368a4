/* exec/shortcuts/shapes.h — what calls load, by the shape of their ranks instead of by the ranks (private to
 * exec/).
 *
 * Two communicators have one shape if their members lie alike (cluster/places.h), and if they make the same
 * calls. What the one loads at a place, the other loads at the place of the same number.
 *
 * What is loaded at a place is a *vector*: a list of (resource by its number there, pattern, coefficient).
 * Most places have one of a few: of a ring all hosts the same, of a tree one for each way to be part of it.
 */
#ifndef LS_EXEC_SHORTCUTS_SHAPES_H
#define LS_EXEC_SHORTCUTS_SHAPES_H

#include "exec/replay/calls.h"
#include "exec/shortcuts/fold.h"
#include "exec/shortcuts/refine.h"

#define NO_SHAPE      UINT32_MAX
#define NO_LOCAL      UINT32_MAX
#define NO_GPU_NUMBER UINT32_MAX

typedef struct {
  uint64_t coef;
  uint32_t local;   /* resource, by its number at the place                */
  uint32_t pattern; /* which of those of the shape, see refine.h           */
} PlaceLoad;

/* A call as it was planned: all but what it loads, of which the patterns are left. */
typedef struct {
  CallKey key;
  const LsCollPlan *plan;  /* without loads                                              */
  const uint32_t *pattern; /* [plan->n_phases] of the shape; UINT32_MAX: it loads nothing */
  uint64_t stall;          /* call_stall()                                               */
} ShapedCall;

struct ShapedCalls {
  uint32_t n;
  ShapedCall *calls;
};

typedef struct {
  LsSig sig; /* of all that the calls are, but for where */
  uint32_t n_patterns, n_places;
  const ShapedCalls *calls; /* in the arena of the run; of copies NULL */
  const uint32_t *vector;   /* [n_places] */
  const uint32_t *label;    /* [n_places] of the vector and the GPUs of members there; 0: neither */
  uint32_t gpu;             /* whose members have all that number in hosts of their own (below) */
  uint32_t like; /* the shape that this one is, but for that number: where labels differ, so do its */
} Shape;

typedef struct Shapes Shapes;

/* In arena. is_one: all of the cluster is one place. Else NULL: it is not one of places. Borrows the run. */
Shapes *shapes_new (const Run *x, bool is_one, LsArena *arena);
const LsPlaces *shapes_places (const Shapes *s);

/* The shape of calls of these ranks; list: equal of equal keys. *ret_places, of shape->n_places, borrowed
 * until the next call, are where it lies. NO_SHAPE: a call cannot be planned, loads something elsewhere, or
 * takes too much memory. */
uint32_t shapes_of_calls (Shapes *s, const GArray *keys, uint32_t list, const uint32_t *ranks, uint32_t n,
                          const uint32_t **ret_places);
/* How these ranks lie, with a number for what they do; where, as above. */
LsSig shapes_key (Shapes *s, uint32_t list, const uint32_t *ranks, uint32_t n, const uint32_t **ret_places,
                  uint32_t *ret_n_places);
/* The copies of a rank; it has one place. */
uint32_t shapes_of_copies (Shapes *s, const RoleCalls *role, uint32_t rank);

const Shape *shapes_at (const Shapes *s, uint32_t shape);
const PlaceLoad *shapes_vector (const Shapes *s, uint32_t vector, uint32_t *ret_n);
/* Those of shapes so far are not there any longer, nor do labels of new ones tell these from those. */
void shapes_forget_vectors (Shapes *s);

/* ---- rails ---- */

/* What GPUs of one number in their hosts load, told by those of another number.
 *
 * Problem. A communicator with one member in each of many hosts has GPU i of them all, and tensor parallelism
 * of 8 makes eight such, that differ in i alone. To plan one of 8,192 members takes a while.
 *
 * Equation. Where the ways between any two of its hosts are, from GPU i, as long and as wide as from GPU j,
 * trunk by trunk, and each trunk of the one always stands where the same one of the other does, all that is
 * loaded by i is loaded by j on the trunk that stands there. How hosts lie to each other is all that ways
 * depend on (cluster/places.h): hosts of one group, of one pod, of two pods.
 *
 * Worked example. dgx-h100: GPU 0 goes over its NIC to leaf 0 of the group, GPU 3 over its own to leaf 3. So
 * NIC 3 stands for NIC 0, leaf 3 for leaf 0. Where GPUs 0 and 1 have a NIC each, and GPU 2 none, 1 can stand
 * for 0, and 2 for neither. */

/* Of hosts, groups and pods: by the number of a resource there, that of the one that stands for it, or
 * NO_LOCAL. */
typedef struct {
  uint32_t *local[3];
} Rails;

/* The number that all GPUs have in their hosts, of which no two are the same; NO_GPU_NUMBER: none. */
uint32_t rails_number (const LsPlaces *at, const uint32_t *gpus, uint32_t n);

/* GPU `to` of each host for these GPUs, of one number. Without faults. False: it cannot stand for them. Free
 * with rails_clear(), in any case. */
bool rails_find (Rails *r, const LsCluster *c, const LsPlaces *at, const uint32_t *gpus, uint32_t n,
                 uint32_t to);
void rails_clear (Rails *r);

#endif
