#include "exec/shortcuts/rails.h"
#include "exec/shortcuts/shapes_state.h"

#include <string.h>

#include "exec/calls.h"
#include "exec/state.h"

Shapes *
shapes_new (const Run *x)
{
  LsLie lie;
  if (!ls_lie_init (&lie, x->cluster))
    return NULL;
  Shapes *s = g_new0 (Shapes, 1);
  uint32_t zero = 0;
  s->x = x;
  s->plan = x->plan;
  s->lie = lie;
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
  return s;
}

static void
lying_clear (Lying *l)
{
  g_free (l->ranks);
  g_free (l->places);
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

/* --- what it loads ---------------------------------------------------------------- */

static guint
end_of_pattern (const Shapes *s, guint pattern)
{
  return pattern + 1 < s->patterns->len ? g_array_index (s->patterns, Pattern, pattern + 1).first
                                        : s->found->len;
}

static bool
is_pattern (const Shapes *s, guint pattern, const LsLoad *loads, uint32_t n, uint32_t n_periods)
{
  const Pattern *known = &g_array_index (s->patterns, Pattern, pattern);
  guint from = known->first;
  if (end_of_pattern (s, pattern) - from != n || known->n_periods != n_periods)
    return false;
  for (uint32_t i = 0; i < n; i++) {
    const Found *f = &g_array_index (s->found, Found, from + i);
    uint32_t local, place = ls_places_find (&s->lie.at, loads[i].resource, &local);
    if (f->load.coef != loads[i].coef || f->load.local != local || f->place != s->lie.number[place])
      return false;
  }
  return true;
}

/* UINT32_MAX: of no loads. *ok: false if one is elsewhere. */
static uint32_t
pattern_of (Shapes *s, const LsLoad *loads, uint32_t n, uint32_t n_periods, bool *ok)
{
  if (n == 0)
    return UINT32_MAX;
  for (guint i = 0; i < s->patterns->len; i++)
    if (is_pattern (s, i, loads, n, n_periods))
      return i;
  uint32_t pattern = s->patterns->len;
  const Pattern own = { s->found->len, n_periods };
  g_array_append_val (s->patterns, own);
  g_array_set_size (s->found, own.first + n);
  Found *found = &g_array_index (s->found, Found, own.first);
  for (uint32_t i = 0; i < n; i++) {
    found[i].load = (PlaceLoad) { .coef = loads[i].coef, .pattern = pattern };
    found[i].place = s->lie.number[ls_places_find (&s->lie.at, loads[i].resource, &found[i].load.local)];
    *ok = *ok && found[i].place != LS_NO_PLACE;
  }
  return pattern;
}

/* patterns: [plan->n_phases], filled in. */
static bool
add_plan (Shapes *s, CallKey key, const LsCollPlan *plan, uint64_t stall, uint32_t *patterns, LsSig *sig)
{
  bool ok = true;
  sig_add_call (sig, key, plan, stall);
  for (uint32_t i = 0; i < plan->n_phases; i++) {
    const LsPhase *p = &plan->phases[i];
    patterns[i] = pattern_of (s, p->loads, p->n_loads, plan->n_periods, &ok);
    sig_add_phase (sig, p);
    ls_sig_add (sig, patterns[i]);
  }
  return ok;
}

/* Those of one place together, else in the order in which they were found: by pattern and resource. */
static void
sort_found (Shapes *s, uint32_t n_places)
{
  g_autofree uint32_t *first = g_new0 (uint32_t, n_places + 1);
  GArray *sorted = g_array_sized_new (FALSE, FALSE, sizeof (Found), s->found->len);
  g_array_set_size (sorted, s->found->len);
  for (guint i = 0; i < s->found->len; i++)
    first[g_array_index (s->found, Found, i).place + 1]++;
  for (uint32_t p = 0; p < n_places; p++)
    first[p + 1] += first[p];
  for (guint i = 0; i < s->found->len; i++) {
    const Found *f = &g_array_index (s->found, Found, i);
    g_array_index (sorted, Found, first[f->place]++) = *f;
  }
  g_array_unref (s->found);
  s->found = sorted;
}

LsSig *
shapes_keep_sig (Shapes *s, LsSig sig)
{
  LsSig *kept = ls_arena_new_array (s->arena, LsSig, 1);
  *kept = sig;
  return kept;
}

uint32_t
shapes_vector_of (Shapes *s, guint from, guint to)
{
  LsSig sig = { to - from, 0 };
  for (guint i = from; i < to; i++) {
    const PlaceLoad *l = &g_array_index (s->found, Found, i).load;
    ls_sig_add (&sig, (uint64_t) l->pattern << 32 | l->local);
    ls_sig_add (&sig, l->coef);
  }
  uint32_t n_known = shapes_n_vectors (s), vector = sigs_id (s->vectors, s->arena, sig) - 1;
  if (vector < n_known)
    return vector;
  for (guint i = from; i < to; i++)
    g_array_append_val (s->loads, g_array_index (s->found, Found, i).load);
  g_array_append_val (s->first, s->loads->len);
  return vector;
}

/* Which GPUs of each place, of hosts, members have: newly allocated. */
static LsSig *
find_members (const Shapes *s, const uint32_t *ranks, uint32_t n)
{
  LsSig *members = g_new0 (LsSig, s->lie.places->len + 1);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t gpu = ls_plan_gpu (s->plan, ranks[i]), host = gpu / s->lie.at.gpus_per_host;
    ls_sig_add_times (&members[s->lie.number[host]], 1, ls_sig_of (gpu % s->lie.at.gpus_per_host));
  }
  return members;
}

uint32_t
shapes_label_of (Shapes *s, uint32_t vector, LsSig members)
{
  uint32_t n_loads;
  shapes_vector (s, vector, &n_loads);
  if (n_loads == 0 && members.a == 0 && members.b == 0)
    return 0;
  ls_sig_add (&members, vector);
  return sigs_id (s->labels, s->arena, members);
}

static const uint32_t *
labels_of (Shapes *s, const uint32_t *vector, uint32_t n_places, const uint32_t *ranks, uint32_t n_ranks)
{
  uint32_t *label = ls_arena_new_array (s->arena, uint32_t, MAX (n_places, 1));
  g_autofree LsSig *members = find_members (s, ranks, n_ranks);
  for (uint32_t k = 0; k < n_places; k++) {
    bool is_as_before = k > 0 && vector[k] == vector[k - 1] && ls_sig_is_same (&members[k], &members[k - 1]);
    label[k] = is_as_before ? label[k - 1] : shapes_label_of (s, vector[k], members[k]);
  }
  return label;
}

uint32_t
shapes_keep (Shapes *s, LsSig key, Shape shape)
{
  g_array_append_val (s->shapes, shape);
  g_hash_table_insert (s->known, shapes_keep_sig (s, key), GUINT_TO_POINTER (s->shapes->len));
  return s->shapes->len - 1;
}

/* The fewest and the most of all patterns. */
static void
find_periods (const Shapes *s, uint32_t *ret_fewest, uint32_t *ret_most)
{
  *ret_fewest = *ret_most = s->patterns->len > 0 ? g_array_index (s->patterns, Pattern, 0).n_periods : 1;
  for (guint i = 1; i < s->patterns->len; i++) {
    uint32_t n = g_array_index (s->patterns, Pattern, i).n_periods;
    *ret_fewest = MIN (*ret_fewest, n);
    *ret_most = MAX (*ret_most, n);
  }
}

/* What one period loads is loaded by all. */
static void
repeat_periods (Shapes *s)
{
  GArray *all = g_array_new (FALSE, FALSE, sizeof (Found));
  for (guint p = 0; p < s->patterns->len; p++) {
    uint32_t n_periods = g_array_index (s->patterns, Pattern, p).n_periods,
             shift = s->lie.places->len / n_periods;
    for (uint32_t k = 0; k < n_periods; k++)
      for (guint i = g_array_index (s->patterns, Pattern, p).first; i < end_of_pattern (s, p); i++) {
        Found f = g_array_index (s->found, Found, i);
        f.place += k * shift;
        g_array_append_val (all, f);
      }
  }
  g_array_unref (s->found);
  s->found = all;
}

static bool
is_vector (const Shapes *s, uint32_t vector, guint from, guint to)
{
  uint32_t n;
  const PlaceLoad *loads = shapes_vector (s, vector, &n);
  bool is_same = n == to - from;
  for (uint32_t i = 0; i < n && is_same; i++) {
    const PlaceLoad *l = &g_array_index (s->found, Found, from + i).load;
    is_same = l->coef == loads[i].coef && l->local == loads[i].local && l->pattern == loads[i].pattern;
  }
  return is_same;
}

/* The latest vectors: what a place loads, one shortly before it mostly loads too. */
#define N_LATEST 4
typedef struct {
  uint32_t vector[N_LATEST], n; /* that ever were */
} Latest;

/* The vector of found[from .. to). */
static uint32_t
vector_after (Shapes *s, Latest *latest, guint from, guint to)
{
  for (uint32_t i = 0; i < MIN (latest->n, N_LATEST); i++)
    if (is_vector (s, latest->vector[i], from, to))
      return latest->vector[i];
  return latest->vector[latest->n++ % N_LATEST] = shapes_vector_of (s, from, to);
}

/* Of what was found at the first places; those behind them have the same, again and again. */
static const uint32_t *
find_vectors (Shapes *s, uint32_t n_first)
{
  uint32_t n = s->lie.places->len, *vector = ls_arena_new_array (s->arena, uint32_t, MAX (n, 1));
  Latest latest = { .n = 0 };
  sort_found (s, n_first);
  for (guint place = 0, i = 0; place < n_first; place++) {
    guint from = i;
    while (i < s->found->len && g_array_index (s->found, Found, i).place == place)
      i++;
    vector[place] = vector_after (s, &latest, from, i);
  }
  for (uint32_t place = n_first; place < n; place++)
    vector[place] = vector[place - n_first];
  return vector;
}

/* Of what was found, of these ranks; `shape` has the calls. */
static uint32_t
keep_shape (Shapes *s, LsSig key, Shape shape, const uint32_t *ranks, uint32_t n_ranks)
{
  uint32_t n = s->lie.places->len, fewest, most;
  find_periods (s, &fewest, &most);
  if (fewest != most)
    repeat_periods (s);
  const uint32_t *vector = find_vectors (s, fewest == most ? n / most : n);
  shape.n_patterns = s->patterns->len;
  shape.n_places = n;
  shape.vector = vector;
  shape.label = labels_of (s, vector, n, ranks, n_ranks);
  shape.like = s->shapes->len;
  return shapes_keep (s, key, shape);
}

static void
begin_shape (Shapes *s)
{
  g_array_set_size (s->found, 0);
  g_array_set_size (s->patterns, 0);
}

/* As of all that a run takes before it begins: a quarter of what it may. */
static bool
has_room (const Shapes *s)
{
  return s->loads->len < UINT32_MAX / 4 && s->found->len < UINT32_MAX / 4
      && s->loads->len * sizeof (PlaceLoad) + s->found->len * sizeof (Found)
      < s->x->options->max_memory_bytes / 4;
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
                 .memo = ls_coll_memo_new () };
  return l;
}

static uint32_t
lower_calls (Shapes *s, LsSig key, const GArray *keys, const uint32_t *ranks, uint32_t n, LsCollMemo *memo)
{
  g_autoptr (LsArena) arena = ls_arena_new ();
  ShapedCalls *shaped = ls_arena_new_array (s->x->arena, ShapedCalls, 1);
  Shape shape = { .calls = shaped };
  shaped->calls = ls_arena_new_array (s->x->arena, ShapedCall, keys->len);
  shaped->n = keys->len;
  begin_shape (s);
  for (guint i = 0; i < keys->len; i++) {
    CallKey call = g_array_index (keys, CallKey, i);
    LsCollRequest request = run_request (s->x, call, ranks, n, memo, arena);
    request.places = s->lie.has_faults ? NULL : &s->lie.at;
    const LsCollPlan *plan = call_plan (s->x, &request, arena, NULL);
    if (!plan)
      return NO_SHAPE;
    uint32_t *patterns = ls_arena_new_array (s->x->arena, uint32_t, plan->n_phases);
    uint64_t stall = call_stall (s->x, call, &request, plan);
    shaped->calls[i] = (ShapedCall) { call, call_keep_plan (s->x->arena, plan), patterns, stall };
    if (!add_plan (s, call, plan, stall, patterns, &shape.sig) || !has_room (s))
      return NO_SHAPE;
  }
  return keep_shape (s, key, shape, ranks, n);
}

/* By the first that lay so. */
static uint32_t
lower_first (Shapes *s, LsSig lie, LsSig key, const GArray *keys, const uint32_t *ranks, uint32_t n)
{
  const Lying *first = find_lying (s, lie, ranks, n);
  bool is_itself = memcmp (first->ranks, ranks, n * sizeof *ranks) == 0;
  uint32_t n_own = s->lie.places->len;
  g_autofree uint32_t *own = is_itself ? NULL : places_now (s);
  if (!is_itself)
    ls_lie_restore (&s->lie, first->places, first->n_places);
  uint32_t shape = lower_calls (s, key, keys, first->ranks, n, first->memo);
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
    shape = lower_calls (s, key, keys, ranks, n, NULL);
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
  Shape shape = { 0 };
  for (int d = 0; d < LS_N_COPY_DIRECTIONS; d++)
    ls_sig_add (&key, role->id[COPIES + d]);
  guint known = GPOINTER_TO_UINT (g_hash_table_lookup (s->known, &key));
  if (known > 0)
    return known - 1;
  g_autoptr (LsArena) arena = ls_arena_new ();
  begin_shape (s);
  for (int d = 0; d < LS_N_COPY_DIRECTIONS; d++)
    for (guint i = 0; i < role->keys[COPIES + d]->len; i++) {
      CallKey call = g_array_index (role->keys[COPIES + d], CallKey, i);
      const LsCollPlan *plan
          = ls_copy_plan (s->x->cluster, gpu, (LsCopyDirection) d, call.bytes, s->x->options->network, arena);
      uint32_t *patterns = ls_arena_new_array (arena, uint32_t, plan->n_phases);
      if (!add_plan (s, call, plan, 0, patterns, &shape.sig))
        return NO_SHAPE;
    }
  return keep_shape (s, key, shape, &rank, 1);
}
