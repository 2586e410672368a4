/* exec/shortcuts/shapes_rails.c — shapes of GPUs of one number in their hosts, by those of another number. */
#include <string.h>

#include "base/order.h"
#include "exec/shortcuts/rails.h"
#include "exec/shortcuts/shapes_state.h"
#include "exec/replay/state.h"

static int
by_pattern_and_local (const void *a, const void *b)
{
  const PlaceLoad *x = &((const Found *) a)->load, *y = &((const Found *) b)->load;
  return x->pattern != y->pattern ? LS_ORDER (x->pattern, y->pattern) : LS_ORDER (x->local, y->local);
}

/* What stands for a vector at a place; NO_SHAPE: nothing does. */
static uint32_t
vector_on_rails (Shapes *s, const Rails *rails, uint32_t place, uint32_t vector)
{
  uint32_t n;
  const PlaceLoad *loads = shapes_vector (s, vector, &n);
  g_array_set_size (s->found, 0);
  for (uint32_t i = 0; i < n; i++) {
    Found f = { .load = loads[i] };
    f.load.local = rails_local (rails, &s->lie.at, place, loads[i].local);
    if (f.load.local == NO_LOCAL)
      return NO_SHAPE;
    g_array_append_val (s->found, f);
  }
  g_array_sort (s->found, by_pattern_and_local);
  return shapes_vector_of (s, 0, n);
}

/* What stands for a vector and a label; NO_SHAPE: it is not known yet. */
typedef struct {
  uint32_t vector, label;
} Moved;

/* Of the k-th place. Each host has one member, and what is above hosts none. False: nothing does. */
static bool
move_place (Shapes *s, const Rails *rails, const Shape *from, uint32_t to, uint32_t k, Moved *moved)
{
  uint32_t place = g_array_index (s->lie.places, uint32_t, k);
  LsSig members = { 0 };
  moved->vector = vector_on_rails (s, rails, place, from->vector[k]);
  if (moved->vector == NO_SHAPE)
    return false;
  if (ls_places_tier (&s->lie.at, place) == 0)
    ls_sig_add_times (&members, 1, ls_sig_of (to));
  moved->label = shapes_label_of (s, moved->vector, members);
  return true;
}

/* Fills in vectors and labels; places of a tier that have one label have one vector, and have members or have
 * none. */
static bool
move_places (Shapes *s, const Rails *rails, const Shape *from, uint32_t to, uint32_t *vector, uint32_t *label)
{
  uint32_t n_labels = g_hash_table_size (s->labels) + 1;
  g_autofree Moved *known = g_new (Moved, 3 * (gsize) n_labels);
  memset (known, 0xff, 3 * n_labels * sizeof *known);
  for (uint32_t k = 0; k < from->n_places; k++) {
    uint32_t place = g_array_index (s->lie.places, uint32_t, k);
    Moved *moved = &known[ls_places_tier (&s->lie.at, place) * n_labels + from->label[k]];
    if (moved->vector == NO_SHAPE && !move_place (s, rails, from, to, k, moved))
      return false;
    vector[k] = moved->vector;
    label[k] = moved->label;
  }
  return true;
}

/* A shape that loads the same by GPUs of this number already. NO_SHAPE: there is none. */
static uint32_t
find_of_number (const Shapes *s, uint32_t like, uint32_t number)
{
  for (guint i = s->shapes->len; i-- > 0;)
    if (shapes_at (s, i)->like == like && shapes_at (s, i)->gpu == number)
      return i;
  return NO_SHAPE;
}

/* The shape of these GPUs, as GPUs of another number in their hosts have that one. NO_SHAPE: theirs is
 * another. */
static uint32_t
shape_on_rails (Shapes *s, LsSig key, uint32_t from, uint32_t to, const uint32_t *gpus, uint32_t n)
{
  Shape shape = *shapes_at (s, from);
  uint32_t known = find_of_number (s, shape.like, to);
  shape.gpu = to;
  if (known != NO_SHAPE) {
    shape.vector = shapes_at (s, known)->vector;
    shape.label = shapes_at (s, known)->label;
    return shapes_keep (s, key, shape);
  }
  Rails rails;
  uint32_t *vector = ls_arena_new_array (s->arena, uint32_t, MAX (shape.n_places, 1)),
           *label = ls_arena_new_array (s->arena, uint32_t, MAX (shape.n_places, 1));
  g_autofree uint32_t *own = g_new (uint32_t, n);
  for (uint32_t i = 0; i < n; i++)
    own[i] = gpus[i] - to + shapes_at (s, from)->gpu;
  const Shape first = *shapes_at (s, from);
  bool ok = rails_find (&rails, s->x->cluster, &s->lie.at, own, n, to)
      && move_places (s, &rails, &first, to, vector, label);
  rails_clear (&rails);
  shape.vector = vector;
  shape.label = label;
  return ok ? shapes_keep (s, key, shape) : NO_SHAPE;
}

/* Newly allocated. */
static uint32_t *
gpus_of (const Shapes *s, const uint32_t *ranks, uint32_t n)
{
  uint32_t *gpus = g_memdup2 (ranks, n * sizeof *ranks);
  for (uint32_t i = 0; i < n && s->plan->gpu_of_rank; i++)
    gpus[i] = s->plan->gpu_of_rank[ranks[i]];
  return gpus;
}

/* Whether these are those of before, by another number in the same hosts. */
static bool
are_of_first (const Shapes *s, const uint32_t *gpus, uint32_t n)
{
  const uint32_t *first = (const uint32_t *) s->first_gpus->data;
  if (s->first_gpus->len != n || !s->first_are_on_rails)
    return false;
  uint32_t number = gpus[0] - first[0], differ = number >= s->lie.at.gpus_per_host;
  for (uint32_t i = 0; i < n; i++)
    differ |= gpus[i] - first[i] - number;
  return differ == 0;
}

/* Of GPUs that are not those of before. */
static void
look_at_gpus (Shapes *s, uint32_t *gpus, uint32_t n)
{
  uint32_t number = s->lie.has_faults ? NO_GPU_NUMBER : rails_number (&s->lie.at, gpus, n);
  s->first_are_on_rails = number != NO_GPU_NUMBER;
  for (uint32_t i = 0; i < n && s->first_are_on_rails; i++)
    gpus[i] -= number;
  s->lie_of_first = ls_lie_of (&s->lie, NULL, gpus, n);
  g_array_set_size (s->first_gpus, 0);
  g_array_append_vals (s->first_gpus, gpus, n);
}

RailsLie
shapes_rails_lie (Shapes *s, const uint32_t *ranks, uint32_t n)
{
  g_autofree uint32_t *gpus = gpus_of (s, ranks, n);
  uint32_t first = gpus[0];
  if (!are_of_first (s, gpus, n))
    look_at_gpus (s, gpus, n);
  uint32_t number = first - g_array_index (s->first_gpus, uint32_t, 0);
  return (RailsLie) { s->lie_of_first, s->first_are_on_rails ? number : NO_GPU_NUMBER };
}

static LsSig
rails_key (RailsLie lie, uint32_t list)
{
  ls_sig_add (&lie.of_first, list);
  return lie.of_first;
}

uint32_t
shapes_on_rails (Shapes *s, RailsLie lie, LsSig key, uint32_t list, const uint32_t *ranks, uint32_t n)
{
  if (lie.number == NO_GPU_NUMBER)
    return NO_SHAPE;
  const LsSig of = rails_key (lie, list);
  guint known = GPOINTER_TO_UINT (g_hash_table_lookup (s->on_rails, &of));
  if (known == 0)
    return NO_SHAPE;
  g_autofree uint32_t *gpus = gpus_of (s, ranks, n);
  return shape_on_rails (s, key, known - 1, lie.number, gpus, n);
}

void
shapes_keep_on_rails (Shapes *s, RailsLie lie, uint32_t list, uint32_t shape)
{
  if (lie.number == NO_GPU_NUMBER || shape == NO_SHAPE)
    return;
  g_array_index (s->shapes, Shape, shape).gpu = lie.number;
  g_hash_table_insert (s->on_rails, shapes_keep_sig (s, rails_key (lie, list)), GUINT_TO_POINTER (shape + 1));
}
