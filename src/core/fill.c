#include "core/fill.h"

#include "core/level.h"

/* An activity on a resource, with what a pass over the resource reads. */
typedef struct {
  int64_t level; /* as the sums of the resource count it */
  uint64_t coef;
  LsFlow *flow;
  uint32_t use; /* of the flow: flow->uses[use].slot leads back here */
} User;

/* Frozen are those below the resource's level, the others rise. */
typedef struct {
  LsLoad left;         /* of the capacity by those that are frozen             */
  uint64_t coefs;      /* sum of coef                                          */
  uint64_t rising;     /* of those that rise                                   */
  int64_t most_frozen; /* nobody is frozen above it; nothing if slack          */
  int64_t level;
  int64_t key; /* in the heap; 0: is not there                         */
  User *users;
  LsLoad capacity;
  int64_t next; /* W                                                    */
  uint32_t n, max;
  uint32_t waits_at; /* in the heap                                          */
  uint32_t n_counts; /* accounts since it was slack, or could not be         */
  bool is_touched, is_slack;
  bool is_far; /* is or was beyond the first N_WATCHED uses of an activity */
} Resource;

typedef struct {
  int64_t key;
  Resource *resource;
} Waiting;

struct LsFill {
  Resource *res;
  uint32_t n_res;
  double quantum;
  uint64_t n_settles;
  uint32_t n_flows, max_flows;
  LsFlow **changed, **stale; /* [max_flows]; stale: may not have the level it is allowed */
  uint32_t n_changed, n_stale;
  User **held;                 /* [max_flows] */
  Resource **touched, **batch; /* [n_res]     */
  uint32_t n_touched;
  Waiting *heap; /* [n_res]     */
  uint32_t n_heap;
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
  fill->touched = g_new (Resource *, n);
  fill->batch = g_new (Resource *, n);
  fill->heap = g_new (Waiting, n);
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
  g_free (fill->stale);
  g_free (fill->held);
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

static inline void
heap_put (LsFill *fill, uint32_t at, Waiting w)
{
  fill->heap[at] = w;
  w.resource->waits_at = at;
}

/* Puts w where it belongs, from a place that is free. */
static void
heap_sift (LsFill *fill, uint32_t at, Waiting w)
{
  const Waiting *heap = fill->heap;
  for (; at > 0 && w.key < heap[(at - 1) / 2].key; at = (at - 1) / 2)
    heap_put (fill, at, heap[(at - 1) / 2]);
  for (uint32_t child; (child = 2 * at + 1) < fill->n_heap; at = child) {
    child += child + 1 < fill->n_heap && heap[child + 1].key < heap[child].key;
    if (w.key <= heap[child].key)
      break;
    heap_put (fill, at, heap[child]);
  }
  heap_put (fill, at, w);
}

/* r waits with this key; 0: does not. */
static void
heap_set (LsFill *fill, Resource *r, int64_t key)
{
  int64_t old = r->key;
  r->key = key;
  if (key == old)
    return;
  if (old == 0)
    r->waits_at = fill->n_heap++;
  if (key != 0)
    heap_sift (fill, r->waits_at, (Waiting) { key, r });
  else if (r->waits_at != --fill->n_heap)
    heap_sift (fill, r->waits_at, fill->heap[fill->n_heap]);
}

/* --- sums ----------------------------------------------------------------- */

/* x or 0, without a branch. */
static inline int64_t
where (bool condition, int64_t x)
{
  return x & -(int64_t) condition;
}

static inline void
touch (LsFill *fill, Resource *r)
{
  if (r->is_touched)
    return;
  r->is_touched = true;
  fill->touched[fill->n_touched++] = r;
}

/* Nobody holds back who is on r, and W is "never": all could rise by a quantum. */
static inline bool
has_room (const Resource *r)
{
  return r->level == LS_LEVEL_NEVER && r->key == 0 && r->left >= (LsLoad) r->coefs;
}

/* A user goes from level `old` to `level`, one of which is below that of r; 0: takes nothing. */
static inline void
account (Resource *r, uint64_t coef, int64_t old, int64_t level)
{
  if (old >= r->level) {
    r->rising -= coef;
    old = 0;
  } else if (level >= r->level) {
    r->rising += coef;
    level = 0;
  }
  r->left += ls_load_of_level (old - level, coef);
  r->most_frozen = MAX (r->most_frozen, level);
}

/* --- slack ---------------------------------------------------------------- */

#define N_WATCHED 64 /* bits of LsFlow.watched */

/* By how much all users may be counted above their levels: half of what leaves room. */
static int64_t
spare_level (const Resource *r)
{
  return MIN (ls_level_of_fill (r->left - (LsLoad) r->coefs, 2 * r->coefs), LS_LEVEL_MAX / 2) - 1;
}

/* Not while some are taken to rise, which is not counted yet. */
static void
make_slack (Resource *r)
{
  r->n_counts = 0;
  if (r->is_far || r->rising > 0)
    return;
  int64_t spare = spare_level (r);
  r->is_slack = true;
  for (User *u = r->users, *end = u + r->n; u < end; u++) {
    u->level += spare;
    r->left -= ls_load_of_level (spare, u->coef);
    u->flow->watched &= ~(UINT64_C (1) << u->use);
    u->flow->reserved = MIN (u->flow->reserved, u->level);
  }
}

static void
watch (Resource *r)
{
  r->is_slack = false;
  r->left = r->capacity;
  r->most_frozen = 0;
  for (User *u = r->users, *end = u + r->n; u < end; u++) {
    u->level = u->flow->level;
    r->left -= ls_load_of_level (u->level, u->coef);
    r->most_frozen = MAX (r->most_frozen, u->level);
    u->flow->watched |= UINT64_C (1) << u->use;
  }
}

/* Returns up to which level r then counts a user who reaches this one, or that it does not. */
static int64_t
reserve_on (Resource *r, User *u, int64_t level)
{
  if (level <= u->level)
    return u->level;
  LsLoad left = r->left - ls_load_of_level (level - u->level, u->coef);
  if (left < (LsLoad) r->coefs) {
    watch (r);
    return LS_LEVEL_NEVER;
  }
  r->left = left;
  int64_t spare = spare_level (r);
  r->left -= ls_load_of_level (spare, u->coef);
  u->level = level + spare;
  return u->level;
}

static void
reserve (LsFill *fill, LsFlow *f, int64_t level)
{
  f->reserved = LS_LEVEL_NEVER;
  for (uint32_t i = 0; i < MIN (f->n_uses, N_WATCHED); i++)
    if (!(f->watched >> i & 1)) {
      Resource *r = &fill->res[f->uses[i].resource];
      f->reserved = MIN (f->reserved, reserve_on (r, &r->users[f->uses[i].slot], level));
    }
}

/* --- what changed --------------------------------------------------------- */

static inline void
set_level_on (LsFill *fill, const LsFlowUse *use, int64_t level)
{
  Resource *r = &fill->res[use->resource];
  User *u = &r->users[use->slot];
  int64_t old = u->level;
  u->level = level;
  if (MIN (old, level) >= r->level)
    return;
  account (r, use->coef, old, level);
  if (!has_room (r))
    touch (fill, r);
  else if (++r->n_counts > r->n)
    make_slack (r);
}

static void
set_level (LsFill *fill, LsFlow *f, int64_t level)
{
  if (level > f->reserved)
    reserve (fill, f, level);
  for (uint64_t w = f->watched; w; w &= w - 1)
    set_level_on (fill, &f->uses[__builtin_ctzll (w)], level);
  for (uint32_t i = N_WATCHED; i < f->n_uses; i++)
    set_level_on (fill, &f->uses[i], level);
  if (level != f->level && f->changed_in != fill->n_settles) {
    f->changed_in = fill->n_settles;
    fill->changed[fill->n_changed++] = f;
  }
  f->level = level;
}

static inline int64_t
allowed_level (const LsFill *fill, const LsFlow *f)
{
  int64_t level = f->cap_level;
  for (uint64_t w = f->watched; w; w &= w - 1)
    level = MIN (level, fill->res[f->uses[__builtin_ctzll (w)].resource].level);
  for (uint32_t i = N_WATCHED; i < f->n_uses; i++)
    level = MIN (level, fill->res[f->uses[i].resource].level);
  return level;
}

static inline void
note_stale (LsFill *fill, LsFlow *f)
{
  if (f->is_stale)
    return;
  f->is_stale = true;
  fill->stale[fill->n_stale++] = f;
  __builtin_prefetch (f->uses);
}

static void
renew_stale (LsFill *fill)
{
  for (uint32_t i = 0, n = fill->n_stale; i < n; i++) {
    LsFlow *f = fill->stale[i];
    f->is_stale = false;
    set_level (fill, f, allowed_level (fill, f));
  }
  fill->n_stale = 0;
}

static void
add_user (Resource *r, LsFlow *f, uint32_t use)
{
  if (r->n == r->max) {
    r->max = MAX (2, 2 * r->max);
    r->users = g_renew (User, r->users, r->max);
  }
  r->is_far |= use >= N_WATCHED;
  if (r->is_slack && r->is_far)
    watch (r);
  LsFlowUse *u = &f->uses[use];
  u->slot = r->n++;
  r->users[u->slot] = (User) { .coef = u->coef, .flow = f, .use = use };
  r->coefs += u->coef;
  if (r->is_slack) {
    f->watched &= ~(UINT64_C (1) << use);
    f->reserved = 0;
  }
}

void
ls_fill_add (LsFill *fill, LsFlow *f)
{
  if (fill->n_flows++ == fill->max_flows) {
    fill->max_flows = MAX (64, 2 * fill->max_flows);
    fill->changed = g_renew (LsFlow *, fill->changed, fill->max_flows);
    fill->stale = g_renew (LsFlow *, fill->stale, fill->max_flows);
    fill->held = g_renew (User *, fill->held, fill->max_flows);
  }
  f->level = 0;
  f->reserved = LS_LEVEL_NEVER;
  f->watched = f->n_uses < N_WATCHED ? (UINT64_C (1) << f->n_uses) - 1 : UINT64_MAX;
  f->changed_in = fill->n_settles;
  f->is_stale = false;
  for (uint32_t i = 0; i < f->n_uses; i++)
    add_user (&fill->res[f->uses[i].resource], f, i);
  ls_fill_set_cap (fill, f);
}

/* Leaves the list without a hole; its order may depend on history, but not on chance. */
static void
forget_stale (LsFill *fill, const LsFlow *f)
{
  uint32_t i = 0;
  while (fill->stale[i] != f)
    i++;
  fill->stale[i] = fill->stale[--fill->n_stale];
}

void
ls_fill_remove (LsFill *fill, LsFlow *f)
{
  for (uint32_t i = 0; i < f->n_uses; i++) {
    LsFlowUse *u = &f->uses[i];
    Resource *r = &fill->res[u->resource];
    account (r, u->coef, r->users[u->slot].level, 0);
    User *last = &r->users[--r->n];
    r->users[u->slot] = *last;
    last->flow->uses[last->use].slot = u->slot;
    r->coefs -= u->coef;
    if (r->level != LS_LEVEL_NEVER)
      touch (fill, r);
  }
  if (f->is_stale)
    forget_stale (fill, f);
  fill->n_flows--;
}

void
ls_fill_set_cap (LsFill *fill, LsFlow *f)
{
  f->cap_level = ls_level_of_cap (f->cap, fill->quantum);
  note_stale (fill, f);
}

/* --- levels --------------------------------------------------------------- */

/* From a level that is not above W, a pass leads to a greater one that is not either, and
 * to W once nobody freezes in between. Who is held back by r would rise to his cap. */
static int64_t
find_fill_from (const Resource *r, int64_t level)
{
  for (;;) {
    LsLoad left = r->capacity;
    uint64_t frozen = 0;
    int64_t next = LS_LEVEL_NEVER, held = level > r->level ? r->level : LS_LEVEL_NEVER;
    for (const User *u = r->users, *end = u + r->n; u < end; u++) {
      int64_t bound = G_LIKELY (u->level < held) ? u->level : u->flow->cap_level;
      bool is_frozen = bound < level;
      left -= ls_load_of_level (where (is_frozen, bound), u->coef);
      frozen += (uint64_t) where (is_frozen, (int64_t) u->coef);
      next = MIN (next, is_frozen ? LS_LEVEL_NEVER : bound);
    }
    if (frozen == r->coefs)
      return LS_LEVEL_NEVER;
    level = ls_level_of_fill (left, r->coefs - frozen);
    if (level <= next)
      return level;
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
  if (lifted < ls_load_of_level (r->most_frozen + 1, r->rising))
    return find_fill_from (r, ls_level_of_fill (lifted, r->rising));
  return ls_level_of_fill (r->left, r->rising); /* who has a lower cap will touch r again */
}

static void
refill_touched (LsFill *fill)
{
  for (uint32_t i = 0; i < fill->n_touched; i++) {
    Resource *r = fill->touched[i];
    r->is_touched = false;
    r->next = find_fill (r);
    heap_set (fill, r, r->next == r->level ? 0 : MIN (r->next, r->level));
  }
  fill->n_touched = 0;
}

/* Users at `level` or above, into fill->held. */
static uint32_t
find_held (LsFill *fill, Resource *r, int64_t level)
{
  uint32_t n = 0;
  int64_t most_frozen = 0;
  for (User *u = r->users, *end = u + r->n; u < end; u++) {
    bool is_held = u->level >= level;
    most_frozen = MAX (most_frozen, where (!is_held, u->level));
    fill->held[n] = u;
    n += is_held;
  }
  r->most_frozen = most_frozen;
  return n;
}

/* Who was held back or now is goes with r, which counts him there at once, as far as his
 * other resources allow. */
static void
change_level (LsFill *fill, Resource *r)
{
  int64_t old = r->level;
  r->level = r->next;
  uint32_t n = find_held (fill, r, MIN (old, r->level));
  for (uint32_t i = 0; i < n; i++) {
    User *u = fill->held[i];
    if (u->level < old) {
      r->left += ls_load_of_level (u->level, u->coef);
      r->rising += u->coef;
    }
    u->level = r->level;
    note_stale (fill, u->flow);
  }
}

static void
settle_least (LsFill *fill)
{
  uint32_t n = 0;
  for (int64_t x = fill->heap[0].key; fill->n_heap > 0 && fill->heap[0].key == x; n++) {
    fill->batch[n] = fill->heap[0].resource;
    heap_set (fill, fill->batch[n], 0);
  }
  for (uint32_t i = 0; i < n; i++)
    change_level (fill, fill->batch[i]);
  renew_stale (fill);
}

bool
ls_fill_settle (LsFill *fill, LsFlow ***ret_changed, uint32_t *ret_n)
{
  fill->n_settles++;
  fill->n_changed = 0;
  renew_stale (fill);
  bool is_filled = fill->n_touched > 0;
  for (refill_touched (fill); fill->n_heap > 0; refill_touched (fill))
    settle_least (fill);
  *ret_changed = fill->changed;
  *ret_n = fill->n_changed;
  return is_filled;
}
