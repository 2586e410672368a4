#include "core/fill.h"

#include "core/fill_resource.h"
#include "core/waiting.h"

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

static inline void
note_stale (LsFill *fill, LsFlow *f)
{
  if (f->is_stale)
    return;
  f->is_stale = true;
  fill->stale[fill->n_stale++] = f;
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
    LsFillResource *r = &fill->res[f->uses[i].resource];
    ls_fill_resource_remove (r, &f->uses[i]);
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

static LsFillResource *
resource_of (LsWaiter *waiter)
{
  return (LsFillResource *) ((char *) waiter - offsetof (LsFillResource, waiter));
}

static void
settle_least (LsFill *fill)
{
  LsWaiting *waiting = &fill->waiting;
  uint32_t n = 0;
  for (int64_t x = waiting->heap[0].key; waiting->n > 0 && waiting->heap[0].key == x; n++) {
    fill->batch[n] = resource_of (waiting->heap[0].who);
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
