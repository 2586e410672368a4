#include "core/fill.h"

#include "core/waiting.h"

/* ---- a resource as the fast solver keeps it ---- */

/* Who is on it, and where it fills.
 *
 * W of core/fill.h depends on the levels of those below it. What they take is kept as a sum, so
 * W mostly follows without a look at them. Who is on a resource is one of two:
 *
 *     frozen   at a level below that of the resource: cap or another resource holds it back
 *     rising   to the level of the resource, which holds it back
 *
 * Few change sides when levels move: a level that moves changes nothing in the sums of those
 * that rise. Private to fill.c. What a system does with one is no part of its own loops: inlined, storms on
 * narrow fabrics are solved 9 % slower (tests/bench/bench_storm.c). */

#define LS_FILL_N_WATCHED 64 /* bits of LsFlow.watched: of its first uses */

/* An activity on a resource. */
typedef struct {
  uint64_t coef;
  LsFlow *flow;
  uint32_t use; /* of the flow: flow->uses[use].slot leads back here */
} LsFillUser;

/* Those that are frozen come first. In the order in which it is read. */
typedef struct {
  LsLoad left; /* of the capacity by those that are frozen        */
  int64_t level;
  int64_t most_frozen; /* nobody is frozen above it                       */
  int64_t *frozen;     /* [n_frozen]: levels                              */
  LsFillUser *users;   /* [n]                                             */
  uint32_t n, n_frozen;
  uint32_t n_counts; /* changes below its level since it was slack      */
  bool is_touched, is_slack;
  bool is_far; /* is or was beyond the first uses of an activity  */

  uint64_t coefs;  /* sum of coef                                     */
  uint64_t rising; /* of those that rise                              */
  LsLoad capacity;
  int64_t next;    /* W                                               */
  LsWaiter waiter; /* while its level is not W                        */
  uint32_t max;    /* users there is room for                         */
} __attribute__ ((aligned (64))) LsFillResource;

/* --- who is frozen -------------------------------------------------------- */

static inline void
put_user (LsFillResource *r, uint32_t slot, LsFillUser u)
{
  r->users[slot] = u;
  u.flow->uses[u.use].slot = slot;
}

static void
swap_users (LsFillResource *r, uint32_t a, uint32_t b)
{
  LsFillUser u = r->users[a];
  put_user (r, a, r->users[b]);
  put_user (r, b, u);
}

/* From one side to the other: `level` is below that of r. */
static G_GNUC_NO_INLINE void
ls_fill_resource_freeze (LsFillResource *r, uint32_t slot, int64_t level)
{
  uint64_t coef = r->users[slot].coef;
  r->rising -= coef;
  r->left -= ls_load_of_level (level, coef);
  r->most_frozen = MAX (r->most_frozen, level);
  r->frozen[r->n_frozen] = level;
  swap_users (r, slot, r->n_frozen++);
}

static void
ls_fill_resource_thaw (LsFillResource *r, uint32_t slot)
{
  uint64_t coef = r->users[slot].coef;
  r->rising += coef;
  r->left += ls_load_of_level (r->frozen[slot], coef);
  r->frozen[slot] = r->frozen[--r->n_frozen];
  swap_users (r, slot, r->n_frozen);
}

/* --- W --------------------------------------------------------------------- */

static int64_t
most_frozen (const LsFillResource *r)
{
  int64_t most = 0;
  for (uint32_t i = 0; i < r->n_frozen; i++)
    most = MAX (most, r->frozen[i]);
  return most;
}

/* x or 0, without a branch. */
static inline int64_t
where (bool condition, int64_t x)
{
  return x & -(int64_t) condition;
}

/* From a level that is not above W, a pass leads to a greater one that is not either, and
 * to W once nobody freezes in between. */
static int64_t
w_from (LsFillResource *r, int64_t level)
{
  r->most_frozen = most_frozen (r);
  for (;;) {
    LsLoad left = r->capacity;
    uint64_t frozen = 0;
    int64_t next = LS_LEVEL_NEVER;
    for (uint32_t i = 0; i < r->n_frozen; i++) {
      bool is_below = r->frozen[i] < level;
      left -= ls_load_of_level (where (is_below, r->frozen[i]), r->users[i].coef);
      frozen += (uint64_t) where (is_below, (int64_t) r->users[i].coef);
      next = MIN (next, is_below ? LS_LEVEL_NEVER : r->frozen[i]);
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
static G_GNUC_NO_INLINE int64_t
ls_fill_resource_w (LsFillResource *r)
{
  if (r->n == 0)
    return LS_LEVEL_NEVER;
  if (r->rising == 0)
    return w_from (r, ls_level_of_fill (r->capacity, r->coefs));
  LsLoad lifted = r->left - (LsLoad) (r->coefs - r->rising);
  if (lifted < ls_load_of_level (r->most_frozen + 1, r->rising))
    return w_from (r, ls_level_of_fill (lifted, r->rising));
  return ls_level_of_fill (r->left, r->rising); /* who has a lower cap will touch r again */
}

/* Its level becomes r->next: who is frozen there or above rises. */
static G_GNUC_NO_INLINE void
ls_fill_resource_change_level (LsFillResource *r)
{
  r->level = r->next;
  if (r->most_frozen < r->level)
    return;
  for (uint32_t i = r->n_frozen; i-- > 0;)
    if (r->frozen[i] >= r->level)
      ls_fill_resource_thaw (r, i);
  r->most_frozen = most_frozen (r);
}

/* --- slack ---------------------------------------------------------------- */

/* By how much all users may be counted above their levels: half of what leaves room; all, if one is alone. */
static int64_t
spare_level (const LsFillResource *r)
{
  uint64_t shares = r->n > 1 ? 2 * r->coefs : r->coefs;
  return MIN (ls_level_of_fill (r->left - (LsLoad) r->coefs, shares), LS_LEVEL_MAX / 2) - 1;
}

/* Lets the activities on it change up to some level without a look at r: see core/fill.h. Not
 * while some rise. */
static G_GNUC_NO_INLINE void
ls_fill_resource_make_slack (LsFillResource *r)
{
  r->n_counts = 0;
  if (r->is_far || r->rising > 0)
    return;
  int64_t spare = spare_level (r);
  r->is_slack = true;
  for (uint32_t i = 0; i < r->n; i++) {
    const LsFillUser *u = &r->users[i];
    r->frozen[i] += spare;
    r->left -= ls_load_of_level (spare, u->coef);
    u->flow->watched &= ~(UINT64_C (1) << u->use);
    u->flow->reserved = MIN (u->flow->reserved, r->frozen[i]);
  }
}

static void
watch (LsFillResource *r)
{
  r->is_slack = false;
  r->left = r->capacity;
  for (uint32_t i = 0; i < r->n; i++) {
    const LsFillUser *u = &r->users[i];
    r->frozen[i] = u->flow->level;
    r->left -= ls_load_of_level (r->frozen[i], u->coef);
    u->flow->watched |= UINT64_C (1) << u->use;
  }
  r->most_frozen = most_frozen (r);
}

/* One on slack r reaches this level. Returns up to which level r then counts it, or "never" if
 * r is not slack any more. */
static G_GNUC_NO_INLINE int64_t
ls_fill_resource_reserve (LsFillResource *r, const LsFlowUse *use, int64_t level)
{
  int64_t *counted = &r->frozen[use->slot];
  if (level <= *counted)
    return *counted;
  LsLoad left = r->left - ls_load_of_level (level - *counted, use->coef);
  if (left < (LsLoad) r->coefs) {
    watch (r);
    return LS_LEVEL_NEVER;
  }
  r->left = left;
  int64_t spare = spare_level (r);
  r->left -= ls_load_of_level (spare, use->coef);
  *counted = level + spare;
  return *counted;
}

/* --- users come and go ----------------------------------------------------- */

/* frozen at 0 */
static G_GNUC_NO_INLINE void
ls_fill_resource_add (LsFillResource *r, LsFlow *f, uint32_t use)
{
  if (r->n == r->max) {
    r->max = MAX (2, 2 * r->max);
    r->users = g_renew (LsFillUser, r->users, r->max);
    r->frozen = g_renew (int64_t, r->frozen, r->max);
  }
  r->is_far |= use >= LS_FILL_N_WATCHED;
  if (r->is_slack && r->is_far)
    watch (r);
  uint64_t coef = f->uses[use].coef;
  put_user (r, r->n++, (LsFillUser) { .coef = coef, .flow = f, .use = use });
  r->coefs += coef;
  r->rising += coef;
  ls_fill_resource_freeze (r, r->n - 1, 0);
  if (r->is_slack) {
    f->watched &= ~(UINT64_C (1) << use);
    f->reserved = 0;
  }
}

/* --- what must hold -------------------------------------------------------- */

static void
check_user (const LsFillResource *r, uint32_t slot)
{
  const LsFillUser *u = &r->users[slot];
  int64_t level = u->flow->level;
  g_assert (&r->users[u->flow->uses[u->use].slot] == u);
  if (slot >= r->n_frozen)
    g_assert (level == r->level);
  else if (r->is_slack)
    g_assert (r->frozen[slot] >= level);
  else
    g_assert (r->frozen[slot] == level && level < r->level && level <= r->most_frozen);
}

/* Asserts, after a settling: what is counted is what the activities have. */
static void
ls_fill_resource_check (const LsFillResource *r)
{
  LsLoad left = r->capacity;
  uint64_t rising = r->coefs;
  for (uint32_t i = 0; i < r->n; i++)
    check_user (r, i);
  for (uint32_t i = 0; i < r->n_frozen; i++) {
    left -= ls_load_of_level (r->frozen[i], r->users[i].coef);
    rising -= r->users[i].coef;
  }
  g_assert (left == r->left && rising == r->rising);
}

struct LsFill {
  LsFillResource *res;
  uint32_t n_res;
  double quantum;
  uint64_t n_settles;
  uint32_t n_flows, max_flows;
  LsFlow **changed, **stale; /* [max_flows]; stale: may not have the level it is allowed */
  uint32_t n_changed, n_stale;
  LsFillResource **touched, **batch; /* [n_res]     */
  uint32_t n_touched;
  LsWaiting waiting; /* resources whose level is not W, at the lesser of both */
};

LsFill *
ls_fill_new (uint32_t n, const double *capacity)
{
  LsFill *fill = g_new0 (LsFill, 1);
  fill->n_res = n;
  fill->quantum = ls_level_quantum (n, capacity);
  fill->res = g_aligned_alloc0 (MAX (n, 1), sizeof (LsFillResource), 64);
  for (uint32_t i = 0; i < n; i++) {
    fill->res[i].capacity = fill->res[i].left = ls_load_of_capacity (capacity[i], fill->quantum);
    fill->res[i].level = LS_LEVEL_NEVER;
  }
  fill->touched = g_new (LsFillResource *, n + 1); /* touch() writes beyond the last */
  fill->batch = g_new (LsFillResource *, n);
  ls_waiting_init (&fill->waiting, n);
  return fill;
}

void
ls_fill_free (LsFill *fill)
{
  if (!fill)
    return;
  for (uint32_t i = 0; i < fill->n_res; i++) {
    g_free (fill->res[i].users);
    g_free (fill->res[i].frozen);
  }
  g_aligned_free (fill->res);
  g_free (fill->changed);
  g_free (fill->stale);
  g_free (fill->touched);
  g_free (fill->batch);
  ls_waiting_clear (&fill->waiting);
  g_free (fill);
}

double
ls_fill_quantum (const LsFill *fill)
{
  return fill->quantum;
}

/* --- sums ----------------------------------------------------------------- */

static inline void
touch (LsFill *fill, LsFillResource *r)
{
  fill->touched[fill->n_touched] = r;
  fill->n_touched += !r->is_touched;
  r->is_touched = true;
}

/* Nobody holds back who is on r, and W is "never": all could rise by a quantum. */
static inline bool
has_room (const LsFillResource *r)
{
  return r->level == LS_LEVEL_NEVER && r->waiter.key == 0 && r->left >= (LsLoad) r->coefs;
}

static void
reserve (LsFill *fill, LsFlow *f, int64_t level)
{
  f->reserved = LS_LEVEL_NEVER;
  for (uint32_t i = 0; i < MIN (f->n_uses, LS_FILL_N_WATCHED); i++)
    if (!(f->watched >> i & 1)) {
      const LsFlowUse *use = &f->uses[i];
      int64_t counted = ls_fill_resource_reserve (&fill->res[use->resource], use, level);
      f->reserved = MIN (f->reserved, counted);
    }
}

/* --- what changed --------------------------------------------------------- */

/* was: its level so far. A resource that is watched counts it at that. */
static inline void
set_level_on (LsFill *fill, const LsFlowUse *use, int64_t was, int64_t level)
{
  LsFillResource *r = &fill->res[use->resource];
  uint32_t slot = use->slot;
  if (slot < r->n_frozen) {
    if (G_UNLIKELY (level >= r->level)) {
      ls_fill_resource_thaw (r, slot);
    } else {
      r->left += ls_load_of_level (was - level, use->coef);
      r->frozen[slot] = level;
      r->most_frozen = MAX (r->most_frozen, level);
    }
  } else {
    if (G_LIKELY (level >= r->level))
      return;
    ls_fill_resource_freeze (r, slot, level);
  }
  if (!has_room (r))
    touch (fill, r);
  else if (++r->n_counts > r->n)
    ls_fill_resource_make_slack (r);
}

static inline void
note_changed (LsFill *fill, LsFlow *f)
{
  if (f->changed_in == fill->n_settles)
    return;
  f->changed_in = fill->n_settles;
  fill->changed[fill->n_changed++] = f;
  __builtin_prefetch (&f->updated_at, 1);
}

/* known: bits of uses that count it already. */
static inline void
set_level (LsFill *fill, LsFlow *f, int64_t level, uint64_t known)
{
  if (level > f->reserved)
    reserve (fill, f, level);
  for (uint64_t w = f->watched & ~known; w; w &= w - 1)
    set_level_on (fill, &f->uses[__builtin_ctzll (w)], f->level, level);
  for (uint32_t i = LS_FILL_N_WATCHED; i < f->n_uses; i++)
    set_level_on (fill, &f->uses[i], f->level, level);
  if (level != f->level)
    note_changed (fill, f);
  f->level = level;
}

static inline int64_t
allowed_level (const LsFill *fill, const LsFlow *f, int64_t level, uint64_t known)
{
  for (uint64_t w = f->watched & ~known; w; w &= w - 1)
    level = MIN (level, fill->res[f->uses[__builtin_ctzll (w)].resource].level);
  for (uint32_t i = LS_FILL_N_WATCHED; i < f->n_uses; i++)
    level = MIN (level, fill->res[f->uses[i].resource].level);
  return level;
}

static void
renew_stale (LsFill *fill)
{
  for (uint32_t i = 0; i < fill->n_stale; i++) {
    LsFlow *f = fill->stale[i];
    f->is_stale = false;
    set_level (fill, f, allowed_level (fill, f, f->cap_level, 0), 0);
    note_changed (fill, f); /* its cap, which is its rate, may be another one of the same level */
  }
  fill->n_stale = 0;
}

void
ls_fill_add (LsFill *fill, LsFlow *f)
{
  if (fill->n_flows++ == fill->max_flows) {
    fill->max_flows = MAX (64, 2 * fill->max_flows);
    fill->changed = g_renew (LsFlow *, fill->changed, fill->max_flows);
    fill->stale = g_renew (LsFlow *, fill->stale, fill->max_flows);
  }
  f->level = 0;
  f->reserved = LS_LEVEL_NEVER;
  f->watched = f->n_uses < LS_FILL_N_WATCHED ? (UINT64_C (1) << f->n_uses) - 1 : UINT64_MAX;
  f->changed_in = fill->n_settles;
  f->is_stale = false;
  for (uint32_t i = 0; i < f->n_uses; i++)
    ls_fill_resource_add (&fill->res[f->uses[i].resource], f, i);
  ls_fill_set_cap (fill, f);
}

void
ls_fill_remove (LsFill *fill, LsFlow *f)
{
  for (uint32_t i = 0; i < f->n_uses; i++) {
    const LsFlowUse *use = &f->uses[i];
    LsFillResource *r = &fill->res[use->resource];
    if (use->slot < r->n_frozen)
      ls_fill_resource_thaw (r, use->slot);
    r->rising -= use->coef;
    r->coefs -= use->coef;
    put_user (r, use->slot, r->users[--r->n]);
    if (r->level != LS_LEVEL_NEVER)
      touch (fill, r);
  }
  /* Leaves the list without a hole; its order may depend on history, but not on chance. */
  for (uint32_t i = 0; f->is_stale; i++)
    if (fill->stale[i] == f) {
      fill->stale[i] = fill->stale[--fill->n_stale];
      break;
    }
  fill->n_flows--;
}

void
ls_fill_set_cap (LsFill *fill, LsFlow *f)
{
  f->cap_level = ls_level_of_cap (f->cap, fill->quantum);
  if (f->is_stale)
    return;
  f->is_stale = true;
  fill->stale[fill->n_stale++] = f;
}

/* --- levels --------------------------------------------------------------- */

/* Where it waits; 0: nowhere. */
static inline int64_t
key_of (const LsFillResource *r)
{
  return r->next == r->level ? 0 : MIN (r->next, r->level);
}

/* Who is not in its place in the heap goes there. Most are, which is hard to foresee: they are passed over
 * without a branch. */
static void
refill_touched (LsFill *fill)
{
  uint32_t n = 0;
  for (uint32_t i = 0; i < fill->n_touched; i++) {
    LsFillResource *r = fill->touched[i];
    r->is_touched = false;
    r->next = ls_fill_resource_w (r);
    fill->touched[n] = r;
    n += key_of (r) != r->waiter.key;
  }
  for (uint32_t i = 0; i < n; i++)
    ls_waiting_set (&fill->waiting, &fill->touched[i]->waiter, key_of (fill->touched[i]));
  fill->n_touched = 0;
}

/* What renewing a user some places on will read: the beginning of an activity, which may lie in two lines of
 * the cache, and then its uses. */
static inline void
fetch_ahead (const LsFillResource *r, uint32_t i)
{
  const LsFlow *f = r->users[MIN (i + 8, r->n - 1)].flow;
  __builtin_prefetch (f, 1);
  __builtin_prefetch (&f->uses, 1);
  __builtin_prefetch (r->users[MIN (i + 4, r->n - 1)].flow->uses, 1);
}

/* Those that are held back by r get what their other resources allow too. Who freezes on r
 * changes places with one that has been renewed. */
static void
renew_held (LsFill *fill, LsFillResource *r)
{
  for (uint32_t i = r->n_frozen; i < r->n; i++) {
    const LsFillUser *u = &r->users[i];
    LsFlow *f = u->flow;
    fetch_ahead (r, i);
    uint64_t known = (uint64_t) (u->use < LS_FILL_N_WATCHED) << (u->use & 63);
    int64_t level = allowed_level (fill, f, MIN (f->cap_level, r->level), known);
    set_level (fill, f, level, level == r->level ? known : 0);
  }
}

static void
settle_least (LsFill *fill)
{
  LsWaiting *waiting = &fill->waiting;
  uint32_t n = 0;
  for (int64_t x = waiting->heap[0].key; waiting->n > 0 && waiting->heap[0].key == x; n++) {
    fill->batch[n] = (LsFillResource *) ((char *) waiting->heap[0].who - offsetof (LsFillResource, waiter));
    ls_waiting_set (waiting, waiting->heap[0].who, 0);
  }
  for (uint32_t i = 0; i < n; i++)
    ls_fill_resource_change_level (fill->batch[i]);
  for (uint32_t i = 0; i < n; i++)
    renew_held (fill, fill->batch[i]);
}

bool
ls_fill_settle (LsFill *fill, LsFlow ***ret_changed, uint32_t *ret_n)
{
  fill->n_settles++;
  fill->n_changed = 0;
  renew_stale (fill);
  bool is_filled = fill->n_touched > 0;
  for (refill_touched (fill); fill->waiting.n > 0; refill_touched (fill))
    settle_least (fill);
  *ret_changed = fill->changed;
  *ret_n = fill->n_changed;
  return is_filled;
}

void
ls_fill_check (const LsFill *fill)
{
  for (uint32_t i = 0; i < fill->n_res; i++)
    ls_fill_resource_check (&fill->res[i]);
}
