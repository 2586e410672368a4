/* exec/shortcuts/shapes_rails.c — shapes of GPUs of one number in their hosts, by those of another number. */
#include "base/order.h"
#include "exec/shortcuts/rails.h"
#include "exec/shortcuts/shapes_state.h"
#include "exec/state.h"

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

/* Of the i-th place; known: by tier and vector, what stood for it + 1. */
static bool
move_vector (Shapes *s, const Rails *rails, const Shape *from, uint32_t i, GHashTable *known, uint32_t *ret)
{
  uint32_t place = g_array_index (s->lie.places, uint32_t, i);
  gpointer key = GSIZE_TO_POINTER ((uint64_t) ls_places_tier (&s->lie.at, place) << 32 | from->vector[i]);
  *ret = GPOINTER_TO_UINT (g_hash_table_lookup (known, key)) - 1;
  if (*ret == UINT32_MAX) {
    *ret = vector_on_rails (s, rails, place, from->vector[i]);
    g_hash_table_insert (known, key, GUINT_TO_POINTER (*ret + 1));
  }
  return *ret != NO_SHAPE;
}

/* Whether a place loads what the one before it does, of the same tier. */
static bool
is_as_before (const Shapes *s, const uint32_t *vector, uint32_t i)
{
  const uint32_t *place = &g_array_index (s->lie.places, uint32_t, 0);
  return i > 0 && vector[i] == vector[i - 1]
      && ls_places_tier (&s->lie.at, place[i]) == ls_places_tier (&s->lie.at, place[i - 1]);
}

/* The shape of these ranks, as GPUs of another number in their hosts have that one. NO_SHAPE: theirs is
 * another. */
static uint32_t
shape_on_rails (Shapes *s, LsSig key, uint32_t from, uint32_t to, const uint32_t *gpus, const uint32_t *ranks,
                uint32_t n)
{
  Shape shape = *shapes_at (s, from);
  Rails rails;
  g_autoptr (GHashTable) known = g_hash_table_new (NULL, NULL);
  uint32_t *vector = ls_arena_new_array (s->arena, uint32_t, MAX (shape.n_places, 1));
  g_autofree uint32_t *own = g_new (uint32_t, n);
  for (uint32_t i = 0; i < n; i++)
    own[i] = gpus[i] - to + shape.gpu;
  bool ok = rails_find (&rails, s->x->cluster, &s->lie.at, own, n, to);
  for (uint32_t i = 0; i < shape.n_places && ok; i++)
    if (is_as_before (s, shape.vector, i))
      vector[i] = vector[i - 1];
    else
      ok = move_vector (s, &rails, shapes_at (s, from), i, known, &vector[i]);
  rails_clear (&rails);
  shape.vector = vector;
  shape.gpu = to;
  return ok ? shapes_keep (s, key, shape, ranks, n) : NO_SHAPE;
}

/* Newly allocated. */
static uint32_t *
gpus_of (const Shapes *s, const uint32_t *ranks, uint32_t n)
{
  uint32_t *gpus = g_new (uint32_t, n);
  for (uint32_t i = 0; i < n; i++)
    gpus[i] = s->plan->gpu_of_rank[ranks[i]];
  return gpus;
}

RailsLie
shapes_rails_lie (Shapes *s, const uint32_t *ranks, uint32_t n)
{
  g_autofree uint32_t *gpus = gpus_of (s, ranks, n);
  RailsLie lie = { .number = s->lie.has_faults ? NO_GPU_NUMBER : rails_number (&s->lie.at, gpus, n) };
  for (uint32_t i = 0; i < n && lie.number != NO_GPU_NUMBER; i++)
    gpus[i] -= lie.number;
  lie.of_first = ls_lie_of (&s->lie, NULL, gpus, n);
  return lie;
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
  return shape_on_rails (s, key, known - 1, lie.number, gpus, ranks, n);
}

void
shapes_keep_on_rails (Shapes *s, RailsLie lie, uint32_t list, uint32_t shape)
{
  if (lie.number == NO_GPU_NUMBER || shape == NO_SHAPE)
    return;
  g_array_index (s->shapes, Shape, shape).gpu = lie.number;
  g_hash_table_insert (s->on_rails, shapes_keep_sig (s, rails_key (lie, list)), GUINT_TO_POINTER (shape + 1));
}
