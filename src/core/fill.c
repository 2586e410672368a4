#include "core/fill.h"

#include "core/level.h"

/* An activity on a resource, with what a pass over the resource reads. */
typedef struct {
  int64_t level;
  uint64_t coef;
  LsFlow *flow;
  uint32_t use; /* of the flow: flow->uses[use].slot leads back here */
} User;

/* Frozen are those below the resource's level, the others rise. */
typedef struct {
  LsLoad capacity;
  LsLoad left;         /* of it by those that are frozen                    */
  uint64_t coefs;      /* sum of coef                                       */
  uint64_t rising;     /* of those that rise                                */
  int64_t most_frozen; /* nobody is frozen above it                         */
  int64_t level;
  int64_t next; /* W                                                 */
  int64_t key;  /* of its valid entry in the heap; 0: has none       */
  User *users;
  uint32_t n, max;
  bool is_touched;
} Resource;

typedef struct {
  int64_t key;
  uint32_t resource;
} Waiting;

struct LsFill {
  Resource *res;
  uint32_t n_res;
  double quantum;
  uint32_t n_flows, max_flows;
  LsFlow **changed, **rising; /* [max_flows] */
  uint32_t n_changed, n_rising;
  uint32_t *touched, *batch; /* [n_res]     */
  uint32_t n_touched;
  Waiting *heap;
  uint32_t n_heap, max_heap;
};

LsFill *
ls_fill_new (uint32_t n, const double *capacity)
{
  LsFill *fill = g_new0 (LsFill, 1);
  fill->n_res = n;
  fill->quantum = ls_level_quantum (n, capacity);
  fill->res = g_new0 (Resource, n);
  for (uint32_t i = 0; i < n; i++) {
    fill->res[i].capacity = fill->res[i].left = ls_load_of_capacity (capacity[i], fill->quantum);
    fill->res[i].level = LS_LEVEL_NEVER;
  }
  fill->touched = g_new (uint32_t, n);
  fill->batch = g_new (uint32_t, n);
  return fill;
}

void
ls_fill_free (LsFill *fill)
{
  if (!fill)
    return;
  for (uint32_t i = 0; i < fill->n_res; i++)
    g_free (fill->res[i].users);
  g_free (fill->res);
  g_free (fill->changed);
  g_free (fill->rising);
  g_free (fill->touched);
  g_free (fill->batch);
  g_free (fill->heap);
  g_free (fill);
}

double
ls_fill_rate (const LsFill *fill, const LsFlow *f)
{
  return f->level == f->cap_level ? ls_rate_at_cap (f->cap, f->level, fill->quantum, f->n_uses > 0)
                                  : (double) f->level * fill->quantum;
}

/* --- the heap ------------------------------------------------------------- */

static void
heap_push (LsFill *fill, int64_t key, uint32_t resource)
{
  if (fill->n_heap == fill->max_heap) {
    fill->max_heap = MAX (64, 2 * fill->max_heap);
    fill->heap = g_renew (Waiting, fill->heap, fill->max_heap);
  }
  uint32_t at = fill->n_heap++;
  for (; at > 0 && key < fill->heap[(at - 1) / 2].key; at = (at - 1) / 2)
    fill->heap[at] = fill->heap[(at - 1) / 2];
  fill->heap[at] = (Waiting) { key, resource };
}

static void
heap_pop (LsFill *fill)
{
  Waiting last = fill->heap[--fill->n_heap];
  uint32_t at = 0;
  for (uint32_t child; (child = 2 * at + 1) < fill->n_heap; at = child) {
    if (child + 1 < fill->n_heap && fill->heap[child + 1].key < fill->heap[child].key)
      child++;
    if (last.key <= fill->heap[child].key)
      break;
    fill->heap[at] = fill->heap[child];
  }
  fill->heap[at] = last;
}

/* --- what changed --------------------------------------------------------- */

static inline LsLoad
load_of (int64_t level, uint64_t coef)
{
  return (LsLoad) level * (int64_t) coef;
}

static inline void
touch (LsFill *fill, Resource *r)
{
  if (r->is_touched)
    return;
  r->is_touched = true;
  fill->touched[fill->n_touched++] = (uint32_t) (r - fill->res);
}

/* Nobody holds back who is on r, and W is "never": all could rise by a quantum. */
static inline bool
has_room (const Resource *r)
{
  return r->level == LS_LEVEL_NEVER && r->key == 0 && r->left >= (LsLoad) r->coefs;
}

/* A user goes from level `old` to `level`; 0: takes nothing. */
static inline void
account (Resource *r, uint64_t coef, int64_t old, int64_t level)
{
  if (old < r->level)
    r->left += load_of (old, coef);
  else
    r->rising -= coef;
  if (level < r->level) {
    r->left -= load_of (level, coef);
    r->most_frozen = MAX (r->most_frozen, level);
  } else
    r->rising += coef;
}

static inline void
note_changed (LsFill *fill, LsFlow *f)
{
  if (f->is_changed)
    return;
  f->is_changed = true;
  fill->changed[fill->n_changed++] = f;
}

static void
set_level (LsFill *fill, LsFlow *f, int64_t level)
{
  int64_t old = f->level;
  if (level == old)
    return;
  for (uint32_t i = 0; i < f->n_uses; i++) {
    const LsFlowUse *u = &f->uses[i];
    Resource *r = &fill->res[u->resource];
    r->users[u->slot].level = level;
    if (MIN (old, r->level) == MIN (level, r->level))
      continue;
    account (r, u->coef, old, level);
    if (!has_room (r))
      touch (fill, r);
  }
  f->level = level;
  note_changed (fill, f);
}

static int64_t
allowed_level (const LsFill *fill, const LsFlow *f)
{
  int64_t level = f->cap_level;
  for (uint32_t i = 0; i < f->n_uses; i++)
    level = MIN (level, fill->res[f->uses[i].resource].level);
  return level;
}

static void
rise_later (LsFill *fill, LsFlow *f)
{
  if (f->is_rising)
    return;
  f->is_rising = true;
  fill->rising[fill->n_rising++] = f;
}

void
ls_fill_add (LsFill *fill, LsFlow *f)
{
  if (fill->n_flows++ == fill->max_flows) {
    fill->max_flows = MAX (64, 2 * fill->max_flows);
    fill->changed = g_renew (LsFlow *, fill->changed, fill->max_flows);
    fill->rising = g_renew (LsFlow *, fill->rising, fill->max_flows);
  }
  f->level = 0;
  f->is_changed = f->is_rising = false;
  for (uint32_t i = 0; i < f->n_uses; i++) {
    LsFlowUse *u = &f->uses[i];
    Resource *r = &fill->res[u->resource];
    if (r->n == r->max) {
      r->max = MAX (2, 2 * r->max);
      r->users = g_renew (User, r->users, r->max);
    }
    u->slot = r->n++;
    r->users[u->slot] = (User) { .coef = u->coef, .flow = f, .use = i };
    r->coefs += u->coef;
  }
  ls_fill_set_cap (fill, f);
}

/* Leaves the list without a hole; its order may depend on history, but not on chance. */
static void
forget (LsFlow **list, uint32_t *n, LsFlow *f)
{
  for (uint32_t i = 0; i < *n; i++)
    if (list[i] == f) {
      list[i] = list[--*n];
      return;
    }
}

void
ls_fill_remove (LsFill *fill, LsFlow *f)
{
  for (uint32_t i = 0; i < f->n_uses; i++) {
    LsFlowUse *u = &f->uses[i];
    Resource *r = &fill->res[u->resource];
    User *last = &r->users[--r->n];
    r->users[u->slot] = *last;
    last->flow->uses[last->use].slot = u->slot;
    account (r, u->coef, f->level, 0);
    r->coefs -= u->coef;
    if (r->level != LS_LEVEL_NEVER)
      touch (fill, r);
  }
  if (f->is_rising)
    forget (fill->rising, &fill->n_rising, f);
  if (f->is_changed)
    forget (fill->changed, &fill->n_changed, f);
  fill->n_flows--;
}

void
ls_fill_set_cap (LsFill *fill, LsFlow *f)
{
  f->cap_level = ls_level_of_cap (f->cap, fill->quantum);
  rise_later (fill, f);
}

/* --- levels --------------------------------------------------------------- */

/* Who is held back by r would rise to his cap. */
static int64_t
bound_on (const Resource *r, const User *u)
{
  return u->level < r->level ? u->level : u->flow->cap_level;
}

/* From a level that is not above W, a pass leads to a greater one that is not either, and
 * to W once nobody freezes in between. */
static int64_t
find_fill_from (const Resource *r, int64_t level)
{
  for (uint64_t rose = 0;;) {
    LsLoad left = r->capacity;
    uint64_t rising = 0;
    for (const User *u = r->users, *end = u + r->n; u < end; u++) {
      int64_t bound = bound_on (r, u);
      if (bound < level)
        left -= load_of (bound, u->coef);
      else
        rising += u->coef;
    }
    if (rising == 0)
      return LS_LEVEL_NEVER;
    if (rising == rose)
      return level;
    rose = rising;
    level = ls_level_of_fill (left, rising);
  }
}

/* W of the header, mostly without a look at the users. Were those that are frozen at the
 * present level so at W, it would follow from the sums. If W is lower, some of them are
 * at W or more: let all of them rise by a quantum, and the level that leaves is not above
 * W. Where it is above all of them, they are frozen at W too. */
static int64_t
find_fill (const Resource *r)
{
  if (r->n == 0)
    return LS_LEVEL_NEVER;
  if (r->rising == 0)
    return find_fill_from (r, ls_level_of_fill (r->capacity, r->coefs));
  LsLoad lifted = r->left - (LsLoad) (r->coefs - r->rising);
  if (lifted < load_of (r->most_frozen + 1, r->rising))
    return find_fill_from (r, ls_level_of_fill (lifted, r->rising));
  return ls_level_of_fill (r->left, r->rising); /* who has a lower cap will touch r again */
}

static void
refill_touched (LsFill *fill)
{
  for (uint32_t i = 0; i < fill->n_touched; i++) {
    Resource *r = &fill->res[fill->touched[i]];
    r->is_touched = false;
    r->next = find_fill (r);
    int64_t key = r->next == r->level ? 0 : MIN (r->next, r->level);
    if (key != 0 && key != r->key)
      heap_push (fill, key, fill->touched[i]);
    r->key = key;
  }
  fill->n_touched = 0;
}

static void
rise (LsFill *fill)
{
  for (uint32_t i = 0; i < fill->n_rising; i++) {
    LsFlow *f = fill->rising[i];
    f->is_rising = false;
    set_level (fill, f, allowed_level (fill, f));
  }
  fill->n_rising = 0;
}

static void
change_level (LsFill *fill, Resource *r)
{
  int64_t old = r->level;
  r->level = r->next;
  r->left = r->capacity;
  r->rising = 0;
  r->most_frozen = 0;
  for (const User *u = r->users, *end = u + r->n; u < end; u++)
    if (u->level < r->level) {
      r->left -= load_of (u->level, u->coef);
      r->most_frozen = MAX (r->most_frozen, u->level);
      if (u->level == old)
        rise_later (fill, u->flow);
    } else {
      r->rising += u->coef;
      if (u->level > r->level)
        set_level (fill, u->flow, r->level);
    }
}

/* All that wait at the least level. */
static void
settle_least (LsFill *fill)
{
  uint32_t n = 0;
  for (int64_t x = fill->heap[0].key; fill->n_heap > 0 && fill->heap[0].key == x; heap_pop (fill)) {
    uint32_t id = fill->heap[0].resource;
    if (fill->res[id].key != x)
      continue;
    fill->res[id].key = 0;
    fill->batch[n++] = id;
  }
  for (uint32_t i = 0; i < n; i++)
    change_level (fill, &fill->res[fill->batch[i]]);
  rise (fill);
}

bool
ls_fill_settle (LsFill *fill, LsFlow ***ret_changed, uint32_t *ret_n)
{
  rise (fill);
  bool is_filled = fill->n_touched > 0;
  for (refill_touched (fill); fill->n_heap > 0; refill_touched (fill))
    settle_least (fill);
  for (uint32_t i = 0; i < fill->n_changed; i++)
    fill->changed[i]->is_changed = false;
  *ret_changed = fill->changed;
  *ret_n = fill->n_changed;
  fill->n_changed = 0;
  return is_filled;
}
