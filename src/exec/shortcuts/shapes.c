#include "exec/shortcuts/rails.h"
#include "exec/shortcuts/shapes_state.h"

#include <string.h>

#include "exec/extras.h"

void
sig_add_call (LsSig *sig, CallKey key, const LsCollPlan *plan, uint64_t stall)
{
  ls_sig_add (sig, key.kind);
  ls_sig_add (sig, key.root);
  ls_sig_add (sig, key.bytes);
  ls_sig_add (sig, stall);
  ls_sig_add_double (sig, plan->sm_share);
}

void
sig_add_phase (LsSig *sig, const LsPhase *phase)
{
  ls_sig_add (sig, (uint64_t) phase->latency);
  ls_sig_add_double (sig, phase->demand_bytes);
  ls_sig_add_double (sig, phase->rate_cap);
}

Shapes *
shapes_new (const Run *x, bool is_one)
{
  LsLie lie;
  if (is_one)
    ls_lie_init_at (&lie, x->cluster, ls_places_one (x->cluster));
  else if (!ls_lie_init (&lie, x->cluster))
    return NULL;
  Shapes *s = g_new0 (Shapes, 1);
  uint32_t zero = 0;
  s->x = x;
  s->plan = x->plan;
  s->lie = lie;
  s->is_one = is_one;
  s->arena = ls_arena_new ();
  s->shapes = g_array_new (FALSE, FALSE, sizeof (Shape));
  s->known = g_hash_table_new (ls_sig_hash, ls_sig_is_same);
  s->on_rails = g_hash_table_new (ls_sig_hash, ls_sig_is_same);
  s->first_gpus = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  s->loads = g_array_new (FALSE, FALSE, sizeof (PlaceLoad));
  s->first = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  g_array_append_val (s->first, zero);
  s->vectors = g_hash_table_new (ls_sig_hash, ls_sig_is_same);
  s->labels = g_hash_table_new (ls_sig_hash, ls_sig_is_same);
  s->found = g_array_new (FALSE, FALSE, sizeof (Found));
  s->patterns = g_array_new (FALSE, FALSE, sizeof (Pattern));
  s->phases = g_array_new (FALSE, FALSE, sizeof (PhaseLoads));
  return s;
}

static void
lying_clear (Lying *l)
{
  g_free (l->ranks);
  g_free (l->places);
  g_clear_pointer (&l->phases, g_array_unref);
  ls_arena_free (l->arena);
  ls_coll_memo_free (l->memo);
}

void
shapes_free (Shapes *s)
{
  if (!s)
    return;
  ls_arena_free (s->arena);
  g_array_unref (s->shapes);
  g_hash_table_unref (s->known);
  g_hash_table_unref (s->on_rails);
  g_array_unref (s->first_gpus);
  g_array_unref (s->loads);
  g_array_unref (s->first);
  g_hash_table_unref (s->vectors);
  g_hash_table_unref (s->labels);
  ls_lie_clear (&s->lie);
  g_array_unref (s->found);
  g_array_unref (s->patterns);
  g_array_unref (s->phases);
  for (uint32_t i = 0; i < N_LYING; i++)
    lying_clear (&s->lying[i]);
  g_free (s);
}

const LsPlaces *
shapes_places (const Shapes *s)
{
  return &s->lie.at;
}

const Shape *
shapes_at (const Shapes *s, uint32_t shape)
{
  return &g_array_index (s->shapes, Shape, shape);
}

const PlaceLoad *
shapes_vector (const Shapes *s, uint32_t vector, uint32_t *ret_n)
{
  const uint32_t *first = &g_array_index (s->first, uint32_t, vector);
  *ret_n = first[1] - first[0];
  return &g_array_index (s->loads, PlaceLoad, first[0]);
}

uint32_t
shapes_n_vectors (const Shapes *s)
{
  return s->first->len - 1;
}

/* --- where it lies ---------------------------------------------------------------- */

/* How these ranks lie. Numbers all their places. */
static LsSig
lie_of (Shapes *s, const uint32_t *ranks, uint32_t n)
{
  g_array_set_size (s->first_gpus, 0);
  return ls_lie_of (&s->lie, s->plan->gpu_of_rank, ranks, n);
}

/* The same with a number for what they do. */
static LsSig
key_of (Shapes *s, uint32_t list, const uint32_t *ranks, uint32_t n)
{
  LsSig key = lie_of (s, ranks, n);
  ls_sig_add (&key, list);
  return key;
}

LsSig
shapes_key (Shapes *s, uint32_t list, const uint32_t *ranks, uint32_t n, const uint32_t **ret_places,
            uint32_t *ret_n_places)
{
  LsSig key = key_of (s, list, ranks, n);
  *ret_places = &g_array_index (s->lie.places, uint32_t, 0);
  *ret_n_places = s->lie.places->len;
  return key;
}

LsSig *
shapes_keep_sig (Shapes *s, LsSig sig)
{
  LsSig *kept = ls_arena_new_array (s->arena, LsSig, 1);
  *kept = sig;
  return kept;
}

uint32_t
shapes_keep (Shapes *s, LsSig key, Shape shape)
{
  g_array_append_val (s->shapes, shape);
  g_hash_table_insert (s->known, shapes_keep_sig (s, key), GUINT_TO_POINTER (s->shapes->len));
  return s->shapes->len - 1;
}

/* --- what it loads ---------------------------------------------------------------- */

/* For calls that add_call() adds, n of them, in the arena. */
static ShapedCalls *
begin_calls (Shapes *s, LsArena *arena, uint32_t n)
{
  ShapedCalls *shaped = ls_arena_new_array (arena, ShapedCalls, 1);
  shaped->calls = ls_arena_new_array (arena, ShapedCall, n);
  g_array_set_size (s->found, 0);
  g_array_set_size (s->patterns, 0);
  g_array_set_size (s->phases, 0);
  return shaped;
}

static void
add_call (Shapes *s, ShapedCalls *calls, LsArena *arena, CallKey key, const LsCollPlan *plan, uint64_t stall)
{
  uint32_t *patterns = ls_arena_new_array (arena, uint32_t, plan->n_phases);
  calls->calls[calls->n++] = (ShapedCall) { key, call_keep_plan (arena, plan), patterns, stall };
  for (uint32_t i = 0; i < plan->n_phases; i++) {
    const LsPhase *phase = &plan->phases[i];
    const PhaseLoads own
        = { phase->loads, phase->n_loads, { plan->n_periods, plan->like_period }, &patterns[i] };
    g_array_append_val (s->phases, own);
  }
}

static LsSig
sig_of (const ShapedCalls *calls)
{
  LsSig sig = { 0 };
  for (uint32_t c = 0; c < calls->n; c++) {
    const ShapedCall *own = &calls->calls[c];
    sig_add_call (&sig, own->key, own->plan, own->stall);
    for (uint32_t i = 0; i < own->plan->n_phases; i++) {
      sig_add_phase (&sig, &own->plan->phases[i]);
      ls_sig_add (&sig, own->pattern[i]);
    }
  }
  return sig;
}

/* Newly allocated. */
static uint32_t *
places_now (const Shapes *s)
{
  return g_memdup2 (s->lie.places->data, MAX (1, s->lie.places->len) * sizeof (uint32_t));
}

/* The first that lay so, as far as they are kept. */
static Lying *
find_lying (Shapes *s, LsSig key, const uint32_t *ranks, uint32_t n)
{
  for (uint32_t i = 0; i < MIN (s->n_lying, N_LYING); i++)
    if (ls_sig_is_same (&s->lying[i].key, &key))
      return &s->lying[i];
  Lying *l = &s->lying[s->n_lying++ % N_LYING];
  lying_clear (l);
  *l = (Lying) { .key = key,
                 .ranks = g_memdup2 (ranks, n * sizeof *ranks),
                 .n = n,
                 .places = places_now (s),
                 .n_places = s->lie.places->len,
                 .arena = ls_arena_new (),
                 .memo = ls_coll_memo_new () };
  return l;
}

/* NULL: a call cannot be planned. Loads are in this arena, or in the memo. */
static ShapedCalls *
plan_calls (Shapes *s, const GArray *keys, const uint32_t *ranks, uint32_t n, LsCollMemo *memo,
            LsArena *arena)
{
  ShapedCalls *shaped = begin_calls (s, s->x->arena, keys->len);
  for (guint i = 0; i < keys->len; i++) {
    CallKey call = g_array_index (keys, CallKey, i);
    LsCollRequest request = run_request (s->x, call, ranks, n, memo, arena);
    request.places = s->lie.has_faults || s->is_one ? NULL : &s->lie.at;
    const LsCollPlan *plan = known_call_plan (s->x, &request, arena, NULL);
    if (!plan)
      return NULL;
    add_call (s, shaped, s->x->arena, call, plan, call_stall (s->x, call, &request, plan));
  }
  return shaped;
}

/* What was added; NO_SHAPE: something is loaded elsewhere, or it takes too much memory. */
static uint32_t
shape_new (Shapes *s, LsSig key, const ShapedCalls *calls, const uint32_t *ranks, uint32_t n)
{
  if (!shapes_find_patterns (s))
    return NO_SHAPE;
  Shape shape = { .sig = sig_of (calls),
                  .calls = calls,
                  .n_places = s->lie.places->len,
                  .gpu = NO_GPU_NUMBER,
                  .like = s->shapes->len };
  shapes_place_loads (s, ranks, n, &shape);
  return shapes_keep (s, key, shape);
}

static bool
is_same_loads (const PhaseLoads *a, const PhaseLoads *b)
{
  bool is_same = a->n == b->n && are_same_periods (&a->periods, &b->periods);
  for (uint32_t i = 0; i < a->n && is_same && a->loads != b->loads; i++)
    is_same = a->loads[i].resource == b->loads[i].resource && a->loads[i].coef == b->loads[i].coef;
  return is_same;
}

/* Whether what was added loads what the first calls of ranks that lie so do. */
static bool
loads_as_first (const Shapes *s, const Lying *first)
{
  bool is_same = first->phases && first->phases->len == s->phases->len;
  for (guint i = 0; i < s->phases->len && is_same; i++)
    is_same = is_same_loads (&g_array_index (s->phases, PhaseLoads, i),
                             &g_array_index (first->phases, PhaseLoads, i));
  return is_same;
}

/* Its places load what those of the first do. */
static uint32_t
shape_like_first (Shapes *s, LsSig key, const ShapedCalls *calls, const Lying *first)
{
  Shape shape = *shapes_at (s, first->shape);
  for (guint i = 0; i < s->phases->len; i++)
    *g_array_index (s->phases, PhaseLoads, i).pattern = *g_array_index (first->phases, PhaseLoads, i).pattern;
  shape.sig = sig_of (calls);
  shape.calls = calls;
  return shapes_keep (s, key, shape);
}

/* By ranks that lie so, of which the places are numbered. */
static uint32_t
lower_lying (Shapes *s, LsSig key, const GArray *keys, Lying *first)
{
  g_autoptr (LsArena) scratch = ls_arena_new ();
  const ShapedCalls *calls
      = plan_calls (s, keys, first->ranks, first->n, first->memo, first->phases ? scratch : first->arena);
  if (calls && loads_as_first (s, first))
    return shape_like_first (s, key, calls, first);
  uint32_t shape = calls ? shape_new (s, key, calls, first->ranks, first->n) : NO_SHAPE;
  if (!first->phases && shape != NO_SHAPE) {
    first->phases = g_array_copy (s->phases);
    first->shape = shape;
  }
  return shape;
}

/* Without what calls of ranks that lie alike have in common. */
static uint32_t
lower_few (Shapes *s, LsSig key, const GArray *keys, const uint32_t *ranks, uint32_t n)
{
  g_autoptr (LsArena) arena = ls_arena_new ();
  const ShapedCalls *calls = plan_calls (s, keys, ranks, n, NULL, arena);
  return calls ? shape_new (s, key, calls, ranks, n) : NO_SHAPE;
}

/* By the first that lay so. */
static uint32_t
lower_first (Shapes *s, LsSig lie, LsSig key, const GArray *keys, const uint32_t *ranks, uint32_t n)
{
  Lying *first = find_lying (s, lie, ranks, n);
  bool is_itself = memcmp (first->ranks, ranks, n * sizeof *ranks) == 0;
  uint32_t n_own = s->lie.places->len;
  g_autofree uint32_t *own = is_itself ? NULL : places_now (s);
  if (!is_itself)
    ls_lie_restore (&s->lie, first->places, first->n_places);
  uint32_t shape = lower_lying (s, key, keys, first);
  if (!is_itself)
    ls_lie_restore (&s->lie, own, n_own);
  return shape;
}

/* --- shapes ------------------------------------------------------------------------ */

uint32_t
shapes_of_calls (Shapes *s, const GArray *keys, uint32_t list, const uint32_t *ranks, uint32_t n,
                 const uint32_t **ret_places)
{
  RailsLie on_rails
      = n > 2 ? shapes_rails_lie (s, ranks, n) : (RailsLie) { lie_of (s, ranks, n), NO_GPU_NUMBER };
  LsSig lie = on_rails.of_first;
  ls_sig_add (&lie, on_rails.number);
  LsSig key = lie;
  ls_sig_add (&key, list);
  guint known = GPOINTER_TO_UINT (g_hash_table_lookup (s->known, &key));
  uint32_t shape = known - 1;
  if (known == 0 && n <= 2)
    shape = lower_few (s, key, keys, ranks, n);
  else if (known == 0) {
    shape = shapes_on_rails (s, on_rails, key, list, ranks, n);
    if (shape == NO_SHAPE) {
      shape = lower_first (s, lie, key, keys, ranks, n);
      shapes_keep_on_rails (s, on_rails, list, shape);
    }
  }
  *ret_places = &g_array_index (s->lie.places, uint32_t, 0);
  return shape;
}

uint32_t
shapes_of_copies (Shapes *s, const RoleCalls *role, uint32_t rank)
{
  uint32_t gpu = ls_plan_gpu (s->plan, rank);
  LsSig key = key_of (s, UINT32_MAX, &rank, 1);
  uint32_t n = 0;
  for (int d = 0; d < LS_N_COPY_DIRECTIONS; d++) {
    ls_sig_add (&key, role->id[COPIES + d]);
    n += role->keys[COPIES + d]->len;
  }
  guint known = GPOINTER_TO_UINT (g_hash_table_lookup (s->known, &key));
  if (known > 0)
    return known - 1;
  g_autoptr (LsArena) arena = ls_arena_new ();
  ShapedCalls *calls = begin_calls (s, arena, n);
  for (int d = 0; d < LS_N_COPY_DIRECTIONS; d++)
    for (guint i = 0; i < role->keys[COPIES + d]->len; i++) {
      CallKey call = g_array_index (role->keys[COPIES + d], CallKey, i);
      add_call (
          s, calls, arena, call,
          ls_copy_plan (s->x->cluster, gpu, (LsCopyDirection) d, call.bytes, s->x->options.network, arena),
          0);
    }
  uint32_t shape = shape_new (s, key, calls, &rank, 1);
  if (shape != NO_SHAPE)
    g_array_index (s->shapes, Shape, shape).calls = NULL;
  return shape;
}
