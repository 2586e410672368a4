/* exec/shortcuts/shapes_vectors.c — what calls load at each place of a shape. */
#include <string.h>

#include "exec/shortcuts/shapes_state.h"
#include "exec/replay/state.h"

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
  if (end_of_pattern (s, pattern) - from != p->n || !are_same_periods (&known->periods, &p->periods))
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
  const Pattern own = { s->found->len, p->periods };
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
      < s->x->options.max_memory_bytes / 4;
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
  GArray *all = g_array_new (FALSE, FALSE, sizeof (Found));
  for (guint p = 0; p < s->patterns->len; p++)
    for (uint32_t k = 0; k < periods_of (s, p)->n; k++)
      add_period (s, p, k, all);
  g_array_unref (s->found);
  s->found = all;
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
      label[k] = is_as_before ? label[k - 1] : shapes_label_of (s, vector[k], members[k]);
    }
  spread_periods (p, size, label);
  return label;
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

/* Of what was found in the first period of each sort. */
static const uint32_t *
find_vectors (Shapes *s, const Periods *p)
{
  uint32_t n = s->lie.places->len, size = n / p->n,
           *vector = ls_arena_new_array (s->arena, uint32_t, MAX (n, 1));
  Latest latest = { .n = 0 };
  guint i = 0;
  sort_found (s, n);
  for (uint32_t period = 0; period < p->n; period++)
    for (uint32_t place = period * size; is_first_period (p, period) && place < (period + 1) * size;
         place++) {
      guint from = i;
      while (i < s->found->len && g_array_index (s->found, Found, i).place == place)
        i++;
      vector[place] = vector_after (s, &latest, from, i);
    }
  spread_periods (p, size, vector);
  return vector;
}

void
shapes_place_loads (Shapes *s, const uint32_t *ranks, uint32_t n_ranks, Shape *shape)
{
  const Periods periods = find_periods (s);
  shape->n_patterns = s->patterns->len;
  shape->vector = find_vectors (s, &periods);
  shape->label = labels_of (s, &periods, shape->vector, ranks, n_ranks);
}
