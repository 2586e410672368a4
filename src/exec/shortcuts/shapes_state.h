/* exec/shortcuts/shapes_state.h — shapes as they are found out (private to shapes*.c). */
#ifndef LS_EXEC_SHORTCUTS_SHAPES_STATE_H
#define LS_EXEC_SHORTCUTS_SHAPES_STATE_H

#include <string.h>

#include "exec/shortcuts/shapes.h"

/* While a shape is found out: at which of its places something is loaded. */
typedef struct {
  uint32_t place;
  PlaceLoad load;
} Found;

/* Of which periods loads are (LsCollPlan). */
typedef struct {
  uint32_t n;
  const uint32_t *like; /* [n]; NULL: all are like the first */
} Periods;

static inline uint32_t
period_like (const Periods *p, uint32_t k)
{
  return p->like ? p->like[k] : 0;
}

/* Others have what the first of their sort has. */
static inline bool
is_first_period (const Periods *p, uint32_t k)
{
  return period_like (p, k) == k;
}

static inline bool
are_same_periods (const Periods *a, const Periods *b)
{
  return a->n == b->n
      && (a->like == b->like
          || (a->like && b->like && memcmp (a->like, b->like, a->n * sizeof *a->like) == 0));
}

/* What a phase of a call loads, and where its pattern is to be. */
typedef struct {
  const LsLoad *loads;
  uint32_t n;
  Periods periods;
  uint32_t *pattern; /* of ShapedCall */
} PhaseLoads;

/* What was planned for ranks that lie in one way: other calls of ranks that lie alike add up the same
 * messages, are planned for these ranks, and mostly load the same. */
typedef struct {
  LsSig key; /* of how they lie */
  uint32_t *ranks, n;
  uint32_t *places, n_places; /* LsLie.places of these */
  LsCollMemo *memo;
  LsArena *arena; /* of the loads of phases                                                  */
  GArray *phases; /* PhaseLoads of the first calls of which there is a shape; NULL: none yet */
  uint32_t shape; /* theirs                                                                  */
} Lying;

/* So many are kept, the latest: tensor parallelism of a node makes as many data-parallel groups that lie
 * differently. */
#define N_LYING 16

/* Of the present shape: its loads are found[first ..), up to those of the next pattern. */
typedef struct {
  guint first;
  Periods periods;
} Pattern;

struct Shapes {
  const Run *x;
  const LsPlan *plan; /* whole */
  LsLie lie;
  bool is_one; /* all is one place */
  LsArena *arena;
  GArray *shapes;       /* Shape */
  GHashTable *known;    /* LsSig of a key > shape + 1 */
  GHashTable *on_rails; /* the same of GPUs of one number, as if that were 0 */
  GArray *first_gpus; /* uint32_t: GPUs, as if they were of number 0, whose places are numbered in lie; empty:
                           it is not known of which */
  bool first_are_on_rails; /* they were so made */
  LsSig lie_of_first;      /* how these lie     */
  GArray *loads;           /* PlaceLoad of all vectors */
  GArray *first;           /* uint32_t: where those of each vector begin, and of one more */
  GHashTable *vectors;     /* LsSig > vector + 1 */
  GHashTable *labels;      /* LsSig > label */
  GArray *found;           /* Found */
  Lying lying[N_LYING];
  uint32_t n_lying; /* that ever were; the i-th is lying[i % N_LYING] */
  GArray *patterns; /* Pattern                                                       */
  GArray *phases;   /* PhaseLoads of the calls that are looked at                    */
};

LsSig *shapes_keep_sig (Shapes *s, LsSig sig);
/* The vector of found[from .. to). */
uint32_t shapes_vector_of (Shapes *s, guint from, guint to);
/* members: of a place, its GPUs that have some. */
uint32_t shapes_label_of (Shapes *s, uint32_t vector, LsSig members);
uint32_t shapes_keep (Shapes *s, LsSig key, Shape shape);

/* shapes_vectors.c: the patterns of the phases, and where they load; false: elsewhere, or it takes too much
 * memory. */
bool shapes_find_patterns (Shapes *s);
/* What they load at each of shape->n_places, into vector, label and n_patterns; by members of these ranks. */
void shapes_place_loads (Shapes *s, const uint32_t *ranks, uint32_t n_ranks, Shape *shape);

/* How ranks lie: as GPUs 0 of their hosts do, and their number in these, where they have one. Numbers all
 * their places. */
typedef struct {
  LsSig of_first;
  uint32_t number; /* NO_GPU_NUMBER: of_first is how they lie themselves (rails.h) */
} RailsLie;

RailsLie shapes_rails_lie (Shapes *s, const uint32_t *ranks, uint32_t n);
/* By a shape of GPUs that lie so but for their number; NO_SHAPE: there is none that can stand for these. */
uint32_t shapes_on_rails (Shapes *s, RailsLie lie, LsSig key, uint32_t list, const uint32_t *ranks,
                          uint32_t n);
/* What stands for those, from now on. */
void shapes_keep_on_rails (Shapes *s, RailsLie lie, uint32_t list, uint32_t shape);

#endif
