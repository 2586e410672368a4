/* exec/shortcuts/shapes_vectors.c — what calls load at each place of a shape. */
#include <string.h>

#include "exec/shortcuts/shapes_state.h"
#include "exec/state.h"

/* --- what it loads ---------------------------------------------------------------- */

static guint
end_of_pattern (const Shapes *s, guint pattern)
{
  return pattern + 1 < s->patterns->len ? g_array_index (s->patterns, Pattern, pattern + 1).first
                                        : s->found->len;
}

static bool
is_pattern (const Shapes *s, guint pattern, const PhaseLoads *p)
{
  const Pattern *known = &g_array_index (s->patterns, Pattern, pattern);
  guint from = known->first;
  if (end_of_pattern (s, pattern) - from != p->n || known->n_periods != p->n_periods)
    return false;
  for (uint32_t i = 0; i < p->n; i++) {
    const Found *f = &g_array_index (s->found, Found, from + i);
    uint32_t local, place = ls_places_find (&s->lie.at, p->loads[i].resource, &local);
    if (f->load.coef != p->loads[i].coef || f->load.local != local || f->place != s->lie.number[place])
      return false;
  }
  return true;
}

/* UINT32_MAX: of no loads. *ok: false if one is elsewhere. */
static uint32_t
pattern_of (Shapes *s, const PhaseLoads *p, bool *ok)
{
  if (p->n == 0)
    return UINT32_MAX;
  for (guint i = 0; i < s->patterns->len; i++)
    if (is_pattern (s, i, p))
      return i;
  uint32_t pattern = s->patterns->len;
  const Pattern own = { s->found->len, p->n_periods };
  g_array_append_val (s->patterns, own);
  g_array_set_size (s->found, own.first + p->n);
  Found *found = &g_array_index (s->found, Found, own.first);
  for (uint32_t i = 0; i < p->n; i++) {
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
      < s->x->options->max_memory_bytes / 4;
}

bool
shapes_find_patterns (Shapes *s)
{
  bool ok = true;
  for (guint i = 0; i < s->phases->len && ok; i++) {
    const PhaseLoads *p = &g_array_index (s->phases, PhaseLoads, i);
    *p->pattern = pattern_of (s, p, &ok);
    ok = ok && has_room (s);
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

void
shapes_place_loads (Shapes *s, const uint32_t *ranks, uint32_t n_ranks, Shape *shape)
{
  uint32_t n = s->lie.places->len, fewest, most;
  find_periods (s, &fewest, &most);
  if (fewest != most)
    repeat_periods (s);
  shape->n_patterns = s->patterns->len;
  shape->vector = find_vectors (s, fewest == most ? n / most : n);
  shape->label = labels_of (s, shape->vector, n, ranks, n_ranks);
}
