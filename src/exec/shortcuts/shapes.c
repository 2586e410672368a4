#include "exec/shortcuts/shapes.h"

#include <string.h>

#include "base/order.h"
#include "exec/extras.h"

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

/* Ranks that lie in one way: other calls of ranks that lie alike add up the same messages, and are planned
 * for these ranks. */
typedef struct {
  LsSig key; /* of how they lie */
  uint32_t *ranks, n;
  uint32_t *places, n_places; /* LsLie.places of these */
  LsCollMemo *memo;
  uint32_t shape; /* of the first calls; NO_SHAPE: there are none */
} Lying;

/* So many are kept, the latest: tensor parallelism of a node makes as many data-parallel groups that lie
 * differently. */
#define N_LYING 16

/* So many places before one are looked at for what it loads. */
#define N_LATEST 4

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
  GArray *sorted;          /* PlaceLoad: of what was found, by place */
  Lying lying[N_LYING];
  uint32_t n_lying; /* that ever were; the i-th is lying[i % N_LYING] */
  GArray *patterns; /* Pattern */
};

static void
lying_clear (Lying *l)
{
  g_free (l->ranks);
  g_free (l->places);
  ls_coll_memo_free (l->memo);
}

static void
shapes_clear (gpointer shapes)
{
  Shapes *s = shapes;
  ls_lie_clear (&s->lie);
  for (uint32_t i = 0; i < N_LYING; i++)
    lying_clear (&s->lying[i]);
}

Shapes *
shapes_new (const Run *x, bool is_one, LsArena *arena)
{
  LsLie lie;
  if (is_one)
    ls_lie_init_at (&lie, x->cluster, ls_places_one (x->cluster));
  else if (!ls_lie_init (&lie, x->cluster))
    return NULL;
  Shapes *s = ls_arena_new_array (arena, Shapes, 1);
  uint32_t zero = 0;
  *s = (Shapes) { .x = x,
                  .plan = x->plan,
                  .lie = lie,
                  .is_one = is_one,
                  .arena = arena,
                  .shapes = ls_arena_list (arena, sizeof (Shape)),
                  .known = ls_arena_table (arena, ls_sig_hash, ls_sig_is_same),
                  .on_rails = ls_arena_table (arena, ls_sig_hash, ls_sig_is_same),
                  .first_gpus = ls_arena_list (arena, sizeof (uint32_t)),
                  .loads = ls_arena_list (arena, sizeof (PlaceLoad)),
                  .first = ls_arena_list (arena, sizeof (uint32_t)),
                  .vectors = ls_arena_table (arena, ls_sig_hash, ls_sig_is_same),
                  .labels = ls_arena_table (arena, ls_sig_hash, ls_sig_is_same),
                  .found = ls_arena_list (arena, sizeof (Found)),
                  .sorted = ls_arena_list (arena, sizeof (PlaceLoad)),
                  .patterns = ls_arena_list (arena, sizeof (Pattern)) };
  g_array_append_val (s->first, zero);
  return ls_arena_own (arena, s, shapes_clear);
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

void
shapes_forget_vectors (Shapes *s)
{
  g_hash_table_remove_all (s->vectors);
  g_array_set_size (s->loads, 0);
  g_array_set_size (s->first, 1);
}

/* --- where it lies ---------------------------------------------------------------- */

/* How these ranks lie. Numbers all their places. */
static LsSig
lie_of (Shapes *s, const uint32_t *ranks, uint32_t n)
{
  g_array_set_size (s->first_gpus, 0);
  return ls_lie_of (&s->lie, s->plan->gpu_of_rank, ranks, n);
}

LsSig
shapes_key (Shapes *s, uint32_t list, const uint32_t *ranks, uint32_t n, const uint32_t **ret_places,
            uint32_t *ret_n_places)
{
  LsSig key = lie_of (s, ranks, n);
  ls_sig_add (&key, list);
  *ret_places = &g_array_index (s->lie.places, uint32_t, 0);
  *ret_n_places = s->lie.places->len;
  return key;
}

static uint32_t
keep_shape (Shapes *s, LsSig key, Shape shape)
{
  g_array_append_val (s->shapes, shape);
  g_hash_table_insert (s->known, sig_keep (s->arena, key), GUINT_TO_POINTER (s->shapes->len));
  return s->shapes->len - 1;
}

/* --- what calls load at each place -------------------------------------------------- */

static guint
end_of_pattern (const Shapes *s, guint pattern)
{
  return pattern + 1 < s->patterns->len ? g_array_index (s->patterns, Pattern, pattern + 1).first
                                        : s->found->len;
}

static bool
is_pattern (const Shapes *s, guint pattern, const LsPhase *p, const Periods *periods)
{
  const Pattern *known = &g_array_index (s->patterns, Pattern, pattern);
  guint from = known->first;
  if (end_of_pattern (s, pattern) - from != p->n_loads || !are_same_periods (&known->periods, periods))
    return false;
  for (uint32_t i = 0; i < p->n_loads; i++) {
    const Found *f = &g_array_index (s->found, Found, from + i);
    uint32_t local, place = ls_places_find (&s->lie.at, p->loads[i].resource, &local);
    if (f->load.coef != p->loads[i].coef || f->load.local != local || f->place != s->lie.number[place])
      return false;
  }
  return true;
}

/* Of what a phase loads; UINT32_MAX: nothing. *ok: false if something is elsewhere. */
static uint32_t
pattern_of (Shapes *s, const LsPhase *p, Periods periods, bool *ok)
{
  if (p->n_loads == 0)
    return UINT32_MAX;
  for (guint i = 0; i < s->patterns->len; i++)
    if (is_pattern (s, i, p, &periods))
      return i;
  uint32_t pattern = s->patterns->len;
  const Pattern own = { s->found->len, periods };
  g_array_append_val (s->patterns, own);
  g_array_set_size (s->found, own.first + p->n_loads);
  Found *found = &g_array_index (s->found, Found, own.first);
  for (uint32_t i = 0; i < p->n_loads; i++) {
    found[i].load = (PlaceLoad) { .coef = p->loads[i].coef, .pattern = pattern };
    found[i].place = s->lie.number[ls_places_find (&s->lie.at, p->loads[i].resource, &found[i].load.local)];
    *ok = *ok && found[i].place != LS_NO_PLACE;
  }
  return pattern;
}

/* As of all that a run takes before it begins: a quarter of what it may. */
static bool
has_room (const Shapes *s)
{
  return s->loads->len < UINT32_MAX / 4 && s->found->len < UINT32_MAX / 4
      && s->loads->len * sizeof (PlaceLoad) + s->found->len * sizeof (Found)
      < s->x->options.max_memory_bytes / 4;
}

/* Those of one place together, else in the order in which they were found: by pattern and resource. Where
 * those of each place begin, and of one more: newly allocated. */
static uint32_t *
sort_found (Shapes *s, uint32_t n_places)
{
  uint32_t *first = g_new0 (uint32_t, (gsize) n_places + 2);
  g_array_set_size (s->sorted, s->found->len);
  for (guint i = 0; i < s->found->len; i++)
    first[g_array_index (s->found, Found, i).place + 2]++;
  for (uint32_t p = 0; p < n_places; p++)
    first[p + 2] += first[p + 1];
  for (guint i = 0; i < s->found->len; i++) {
    const Found *f = &g_array_index (s->found, Found, i);
    g_array_index (s->sorted, PlaceLoad, first[f->place + 1]++) = f->load;
  }
  return first;
}

/* Of those that are sorted. */
static uint32_t
vector_of (Shapes *s, guint from, guint to)
{
  const PlaceLoad *loads = &g_array_index (s->sorted, PlaceLoad, from);
  LsSig sig = { to - from, 0 };
  for (guint i = 0; i < to - from; i++) {
    ls_sig_add (&sig, (uint64_t) loads[i].pattern << 32 | loads[i].local);
    ls_sig_add (&sig, loads[i].coef);
  }
  uint32_t n_known = s->first->len - 1, vector = sigs_id (s->vectors, s->arena, sig) - 1;
  if (vector < n_known)
    return vector;
  g_array_append_vals (s->loads, loads, to - from);
  g_array_append_val (s->first, s->loads->len);
  return vector;
}

/* What a place loads, one of the n before it mostly loads too; ret: after theirs. */
static void
find_vector (Shapes *s, guint from, guint to, uint32_t n, uint32_t *ret)
{
  for (uint32_t *before = ret, n_loads; n > 0; n--) {
    const PlaceLoad *loads = shapes_vector (s, *--before, &n_loads);
    *ret = *before;
    const PlaceLoad *own = &g_array_index (s->sorted, PlaceLoad, from);
    if (n_loads == to - from && (n_loads == 0 || memcmp (loads, own, n_loads * sizeof *loads) == 0))
      return;
  }
  *ret = vector_of (s, from, to);
}

static uint32_t
label_of (Shapes *s, uint32_t vector, LsSig members)
{
  uint32_t n_loads;
  shapes_vector (s, vector, &n_loads);
  if (n_loads == 0 && members.a == 0 && members.b == 0)
    return 0;
  ls_sig_add (&members, vector);
  return sigs_id (s->labels, s->arena, members);
}

/* --- periods ---------------------------------------------------------------------- */

static const Periods *
periods_of (const Shapes *s, guint pattern)
{
  return &g_array_index (s->patterns, Pattern, pattern).periods;
}

/* What is loaded in a period of a pattern: so much as in the one that it is like. */
static void
add_period (const Shapes *s, guint pattern, uint32_t k, GArray *all)
{
  const Periods *own = periods_of (s, pattern);
  uint32_t like = period_like (own, k), size = s->lie.places->len / own->n;
  for (guint i = g_array_index (s->patterns, Pattern, pattern).first; i < end_of_pattern (s, pattern); i++) {
    Found f = g_array_index (s->found, Found, i);
    if (f.place / size != like)
      continue;
    f.place += (k - like) * size;
    g_array_append_val (all, f);
  }
}

/* What is known of some periods is said of all. */
static void
repeat_periods (Shapes *s)
{
  g_autoptr (GArray) all = g_array_new (FALSE, FALSE, sizeof (Found));
  for (guint p = 0; p < s->patterns->len; p++)
    for (uint32_t k = 0; k < periods_of (s, p)->n; k++)
      add_period (s, p, k, all);
  g_array_set_size (s->found, 0);
  g_array_append_vals (s->found, all->data, all->len);
}

/* Those of all patterns, where they have the same. */
static Periods
find_periods (Shapes *s)
{
  const Periods none = { .n = 1 }, own = s->patterns->len > 0 ? *periods_of (s, 0) : none;
  bool have_same = true;
  for (guint i = 1; i < s->patterns->len; i++)
    have_same = have_same && are_same_periods (periods_of (s, i), &own);
  if (have_same)
    return own;
  repeat_periods (s);
  return none;
}

/* What is known of the first of each sort, of its like: size numbers each. */
static void
spread_periods (const Periods *p, uint32_t size, uint32_t *of_places)
{
  for (uint32_t k = 0; k < p->n; k++)
    if (!is_first_period (p, k))
      memcpy (&of_places[k * size], &of_places[period_like (p, k) * size], size * sizeof *of_places);
}

/* --- vectors and labels ----------------------------------------------------------- */

/* Which GPUs of each host members have, by n_ranks of each period, in those that are the first of their sort:
 * newly allocated. */
static LsSig *
find_members (const Shapes *s, const Periods *p, const uint32_t *ranks, uint32_t n_ranks)
{
  LsSig *members = g_new0 (LsSig, s->lie.places->len + 1);
  for (uint32_t k = 0; k < p->n; k++)
    for (uint32_t i = k * n_ranks; is_first_period (p, k) && i < (k + 1) * n_ranks; i++) {
      uint32_t gpu = ls_plan_gpu (s->plan, ranks[i]), host = gpu / s->lie.at.gpus_per_host;
      ls_sig_add_times (&members[s->lie.number[host]], 1, ls_sig_of (gpu % s->lie.at.gpus_per_host));
    }
  return members;
}

static const uint32_t *
labels_of (Shapes *s, const Periods *p, const uint32_t *vector, const uint32_t *ranks, uint32_t n_ranks)
{
  uint32_t n_places = s->lie.places->len, size = n_places / p->n,
           *label = ls_arena_new_array (s->arena, uint32_t, MAX (n_places, 1));
  g_autofree LsSig *members = find_members (s, p, ranks, n_ranks / p->n);
  for (uint32_t period = 0; period < p->n; period++)
    for (uint32_t k = period * size; is_first_period (p, period) && k < (period + 1) * size; k++) {
      bool is_as_before
          = k > period * size && vector[k] == vector[k - 1] && ls_sig_is_same (&members[k], &members[k - 1]);
      label[k] = is_as_before ? label[k - 1] : label_of (s, vector[k], members[k]);
    }
  spread_periods (p, size, label);
  return label;
}

/* Of what was found in the first period of each sort. */
static const uint32_t *
find_vectors (Shapes *s, const Periods *p)
{
  uint32_t n = s->lie.places->len, size = n / p->n,
           *vector = ls_arena_new_array (s->arena, uint32_t, MAX (n, 1));
  g_autofree uint32_t *first = sort_found (s, n);
  for (uint32_t period = 0; period < p->n; period++)
    for (uint32_t k = 0, place = period * size; is_first_period (p, period) && k < size; k++, place++)
      find_vector (s, first[place], first[place + 1], MIN (k, N_LATEST), &vector[place]);
  spread_periods (p, size, vector);
  return vector;
}

/* --- rails -------------------------------------------------------------------------- */

uint32_t
rails_number (const LsPlaces *at, const uint32_t *gpus, uint32_t n)
{
  uint32_t per_host = at->gpus_per_host, number = gpus[0] % per_host, step = per_host; /* of whole hosts */
  for (uint32_t i = 1; i < n; i++) {
    if (gpus[i] <= gpus[i - 1] || (gpus[i] - gpus[i - 1] != step && (gpus[i] - gpus[i - 1]) % per_host != 0))
      return NO_GPU_NUMBER;
    step = gpus[i] - gpus[i - 1];
  }
  return number;
}

/* False: another one stands for it already, or it for another. */
static bool
pair (Rails *r, const LsPlaces *at, uint32_t of, uint32_t by)
{
  uint32_t local, local_by, place = ls_places_find (at, of, &local),
                            place_by = ls_places_find (at, by, &local_by);
  uint32_t *known = &r->local[ls_places_tier (at, place)][local];
  if (place != place_by || (*known != NO_LOCAL && *known != local_by))
    return false;
  *known = local_by;
  return true;
}

static bool
pair_ways (Rails *r, const LsCluster *c, const LsPlaces *at, uint32_t from, uint32_t to, uint32_t moved)
{
  LsRoute way, by;
  ls_route (c, from, to, 0, &way);
  ls_route (c, from + moved, to + moved, 0, &by);
  bool are_alike = way.n_hops == by.n_hops && way.latency == by.latency;
  for (uint32_t i = 0; i < way.n_hops && are_alike; i++)
    are_alike = way.hop[i].share == by.hop[i].share
        && ls_cluster_resource_capacity (c, way.hop[i].trunk)
            == ls_cluster_resource_capacity (c, by.hop[i].trunk)
        && pair (r, at, way.hop[i].trunk, by.hop[i].trunk);
  return are_alike;
}

/* Two trunks, and one that stands for both: loads of the two would be one. */
static bool
is_one_to_one (const uint32_t *local, uint32_t n)
{
  g_autofree bool *stands = g_new0 (bool, n + 1);
  for (uint32_t i = 0; i < n; i++) {
    if (local[i] == NO_LOCAL)
      continue;
    if (stands[local[i]])
      return false;
    stands[local[i]] = true;
  }
  return true;
}

bool
rails_find (Rails *r, const LsCluster *c, const LsPlaces *at, const uint32_t *gpus, uint32_t n, uint32_t to)
{
  uint32_t per_host = at->gpus_per_host, moved = to - gpus[0] % per_host,
           n_local[3] = { ls_places_n_at (at, 0), at->trunks_per_group, at->trunks_per_pod };
  bool is_seen[4] = { false }, ok = true;                      /* by how hosts lie, which are not the same */
  uint32_t n_left = 1 + (at->n_groups > 1) + (at->n_pods > 1); /* of ways to lie, not seen */
  for (int k = 0; k < 3; k++) {
    r->local[k] = g_new (uint32_t, n_local[k] + 1);
    memset (r->local[k], 0xff, n_local[k] * sizeof *r->local[k]);
  }
  for (uint32_t i = 1; i < n && ok && n_left > 0; i++) {
    bool *seen = &is_seen[ls_places_relation (at, gpus[0] / per_host, gpus[i] / per_host)];
    if (*seen)
      continue;
    ok = pair_ways (r, c, at, gpus[0], gpus[i], moved) && pair_ways (r, c, at, gpus[i], gpus[0], moved);
    *seen = true;
    n_left--;
  }
  r->local[0][at->trunks_per_host + gpus[0] % per_host] = at->trunks_per_host + to;
  for (int k = 0; k < 3 && ok; k++)
    ok = is_one_to_one (r->local[k], n_local[k]);
  return ok;
}

void
rails_clear (Rails *r)
{
  for (int k = 0; k < 3; k++)
    g_clear_pointer (&r->local[k], g_free);
}

/* --- by GPUs of another number in their hosts -------------------------------------- */

/* How ranks lie: as GPUs 0 of their hosts do, and their number in these, where they have one. Numbers all
 * their places. */
typedef struct {
  LsSig of_first;
  uint32_t number; /* NO_GPU_NUMBER: of_first is how they lie themselves (below) */
} RailsLie;

static int
by_pattern_and_local (const void *a, const void *b)
{
  const PlaceLoad *x = a, *y = b;
  return x->pattern != y->pattern ? LS_ORDER (x->pattern, y->pattern) : LS_ORDER (x->local, y->local);
}

/* What stands for a vector at a place; NO_SHAPE: nothing does. */
static uint32_t
vector_on_rails (Shapes *s, const Rails *rails, uint32_t place, uint32_t vector)
{
  uint32_t n;
  const PlaceLoad *loads = shapes_vector (s, vector, &n);
  g_array_set_size (s->sorted, 0);
  for (uint32_t i = 0; i < n; i++) {
    PlaceLoad own = loads[i];
    own.local = rails->local[ls_places_tier (&s->lie.at, place)][own.local];
    if (own.local == NO_LOCAL)
      return NO_SHAPE;
    g_array_append_val (s->sorted, own);
  }
  g_array_sort (s->sorted, by_pattern_and_local);
  return vector_of (s, 0, n);
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
  moved->label = label_of (s, moved->vector, members);
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
  const Shape first = *shapes_at (s, from);
  uint32_t known = find_of_number (s, first.like, to);
  Shape shape = first;
  shape.gpu = to;
  if (known != NO_SHAPE) {
    shape.vector = shapes_at (s, known)->vector;
    shape.label = shapes_at (s, known)->label;
    return keep_shape (s, key, shape);
  }
  Rails rails;
  uint32_t *vector = ls_arena_new_array (s->arena, uint32_t, MAX (shape.n_places, 1)),
           *label = ls_arena_new_array (s->arena, uint32_t, MAX (shape.n_places, 1));
  g_autofree uint32_t *own = g_new (uint32_t, n);
  for (uint32_t i = 0; i < n; i++)
    own[i] = gpus[i] - to + first.gpu;
  bool ok = rails_find (&rails, s->x->cluster, &s->lie.at, own, n, to)
      && move_places (s, &rails, &first, to, vector, label);
  rails_clear (&rails);
  shape.vector = vector;
  shape.label = label;
  return ok ? keep_shape (s, key, shape) : NO_SHAPE;
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

static RailsLie
rails_lie_of (Shapes *s, const uint32_t *ranks, uint32_t n)
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

static uint32_t
find_on_rails (Shapes *s, RailsLie lie, LsSig key, uint32_t list, const uint32_t *ranks, uint32_t n)
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

static void
keep_on_rails (Shapes *s, RailsLie lie, uint32_t list, uint32_t shape)
{
  if (lie.number == NO_GPU_NUMBER || shape == NO_SHAPE)
    return;
  g_array_index (s->shapes, Shape, shape).gpu = lie.number;
  g_hash_table_insert (s->on_rails, sig_keep (s->arena, rails_key (lie, list)), GUINT_TO_POINTER (shape + 1));
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
  return shaped;
}

/* False: something is loaded elsewhere, or it takes too much memory. */
static bool
add_call (Shapes *s, ShapedCalls *calls, LsArena *arena, CallKey key, const LsCollPlan *plan, uint64_t stall)
{
  bool ok = true;
  uint32_t *patterns = ls_arena_new_array (arena, uint32_t, plan->n_phases);
  calls->calls[calls->n++] = (ShapedCall) { key, call_keep_plan (arena, plan, false), patterns, stall };
  for (uint32_t i = 0; i < plan->n_phases && ok; i++) {
    patterns[i] = pattern_of (s, &plan->phases[i], (Periods) { plan->n_periods, plan->like_period }, &ok);
    ok = ok && has_room (s);
  }
  return ok;
}

/* What tells calls and their phases apart, but for what they load. */
static LsSig
sig_of (const ShapedCalls *calls)
{
  LsSig sig = { 0 };
  for (const ShapedCall *c = calls->calls; c < calls->calls + calls->n; c++) {
    ls_sig_add (&sig, c->key.kind);
    ls_sig_add (&sig, c->key.root);
    ls_sig_add (&sig, c->key.bytes);
    ls_sig_add (&sig, c->stall);
    ls_sig_add_double (&sig, c->plan->sm_share);
    for (uint32_t i = 0; i < c->plan->n_phases; i++) {
      const LsPhase *phase = &c->plan->phases[i];
      ls_sig_add (&sig, (uint64_t) phase->latency);
      ls_sig_add_double (&sig, phase->demand_bytes);
      ls_sig_add_double (&sig, phase->rate_cap);
      ls_sig_add (&sig, c->pattern[i]);
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
                 .memo = ls_coll_memo_new (),
                 .shape = NO_SHAPE };
  return l;
}

/* What was added. */
static uint32_t
shape_new (Shapes *s, LsSig key, const ShapedCalls *calls, const uint32_t *ranks, uint32_t n)
{
  Shape shape = { .sig = sig_of (calls),
                  .calls = calls,
                  .n_places = s->lie.places->len,
                  .gpu = NO_GPU_NUMBER,
                  .like = s->shapes->len };
  const Periods periods = find_periods (s);
  shape.n_patterns = s->patterns->len;
  shape.vector = find_vectors (s, &periods);
  shape.label = labels_of (s, &periods, shape.vector, ranks, n);
  return keep_shape (s, key, shape);
}

/* What calls of these ranks load, of which the places are numbered. memo: of ranks that lie so; NULL: none.
 * NO_SHAPE: something is loaded elsewhere, it takes too much memory, or a call cannot be planned. */
static uint32_t
lower_calls (Shapes *s, LsSig key, const GArray *keys, const uint32_t *ranks, uint32_t n, LsCollMemo *memo)
{
  g_autoptr (LsArena) arena = ls_arena_new (); /* of loads that are not in the memo */
  ShapedCalls *shaped = begin_calls (s, s->x->arena, keys->len);
  for (guint i = 0; i < keys->len; i++) {
    CallKey call = g_array_index (keys, CallKey, i);
    LsCollRequest request = run_request (s->x, call, ranks, n, memo, arena);
    request.places = s->lie.has_faults || s->is_one ? NULL : &s->lie.at;
    const LsCollPlan *plan = known_call_plan (s->x, &request, arena, NULL);
    if (!plan || !add_call (s, shaped, s->x->arena, call, plan, call_stall (s->x, call, &request, plan)))
      return NO_SHAPE;
  }
  return shape_new (s, key, shaped, ranks, n);
}

/* Whether one loads at all places what the first of those that lie so does, as labels tell. */
static void
find_like (const Shapes *s, uint32_t first, uint32_t shape)
{
  const Shape *known = shapes_at (s, first);
  Shape *own = &g_array_index (s->shapes, Shape, shape);
  if (own->n_patterns == known->n_patterns
      && memcmp (own->label, known->label, own->n_places * sizeof *own->label) == 0)
    own->like = known->like;
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
  uint32_t shape = lower_calls (s, key, keys, first->ranks, first->n, first->memo);
  if (!is_itself)
    ls_lie_restore (&s->lie, own, n_own);
  first->shape = first->shape == NO_SHAPE ? shape : first->shape;
  if (shape != NO_SHAPE)
    find_like (s, first->shape, shape);
  return shape;
}

/* --- shapes ------------------------------------------------------------------------ */

uint32_t
shapes_of_calls (Shapes *s, const GArray *keys, uint32_t list, const uint32_t *ranks, uint32_t n,
                 const uint32_t **ret_places)
{
  RailsLie on_rails = n > 2 ? rails_lie_of (s, ranks, n) : (RailsLie) { lie_of (s, ranks, n), NO_GPU_NUMBER };
  LsSig lie = on_rails.of_first;
  ls_sig_add (&lie, on_rails.number);
  LsSig key = lie;
  ls_sig_add (&key, list);
  guint known = GPOINTER_TO_UINT (g_hash_table_lookup (s->known, &key));
  uint32_t shape = known - 1;
  if (known == 0 && n <= 2)
    shape = lower_calls (s, key, keys, ranks, n, NULL);
  else if (known == 0) {
    shape = find_on_rails (s, on_rails, key, list, ranks, n);
    if (shape == NO_SHAPE) {
      shape = lower_first (s, lie, key, keys, ranks, n);
      keep_on_rails (s, on_rails, list, shape);
    }
  }
  *ret_places = &g_array_index (s->lie.places, uint32_t, 0);
  return shape;
}

uint32_t
shapes_of_copies (Shapes *s, const RoleCalls *role, uint32_t rank)
{
  uint32_t gpu = ls_plan_gpu (s->plan, rank);
  LsSig key = lie_of (s, &rank, 1);
  ls_sig_add (&key, UINT32_MAX);
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
  bool ok = true;
  for (int d = 0; d < LS_N_COPY_DIRECTIONS; d++)
    for (guint i = 0; i < role->keys[COPIES + d]->len && ok; i++) {
      CallKey call = g_array_index (role->keys[COPIES + d], CallKey, i);
      ok = add_call (
          s, calls, arena, call,
          ls_copy_plan (s->x->cluster, gpu, (LsCopyDirection) d, call.bytes, s->x->options.network, arena),
          0);
    }
  uint32_t shape = ok ? shape_new (s, key, calls, &rank, 1) : NO_SHAPE;
  if (shape != NO_SHAPE)
    g_array_index (s->shapes, Shape, shape).calls = NULL;
  return shape;
}
