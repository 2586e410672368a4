#include "core/fill_resource.h"

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

void
ls_fill_resource_freeze (LsFillResource *r, uint32_t slot, int64_t level)
{
  uint64_t coef = r->users[slot].coef;
  r->rising -= coef;
  r->left -= ls_load_of_level (level, coef);
  r->most_frozen = MAX (r->most_frozen, level);
  r->frozen[r->n_frozen] = level;
  swap_users (r, slot, r->n_frozen++);
}

void
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
int64_t
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

void
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

void
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

int64_t
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

void
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

void
ls_fill_resource_remove (LsFillResource *r, const LsFlowUse *use)
{
  if (use->slot < r->n_frozen)
    ls_fill_resource_thaw (r, use->slot);
  r->rising -= use->coef;
  r->coefs -= use->coef;
  put_user (r, use->slot, r->users[--r->n]);
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

void
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
