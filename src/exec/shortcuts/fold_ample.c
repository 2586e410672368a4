/* exec/shortcuts/fold_ample.c — what ample resources carry in a folded run.
 *
 * Problem. An ample resource (cluster/places.h) never fills, so ranks and communicators of one class may load
 * different ones, or none: what one of a class loads says nothing of the others. But each resource knows all
 * that load it (T of refine.h), and those of one class have the same.
 *
 * Equation. With T[r, o, p] the sum of coefficients that pattern p of owners of class o puts on a resource r,
 * and D[o, p] what the one that stands for o moved by that pattern, r carried the sum of T * D over o and p.
 * So a call of the quotient gets uses with the coefficients T that count bytes only, behind those of its
 * flow.
 *
 * Worked example. Rings over three hosts, two hosts a leaf: 0 1 | 2, 3 | 4 5, 6 7 | 8. Each goes up once from
 * two leaves, one of which the first and the second share. The three are one class if leaves are ample; T is
 * 2 for that leaf, 1 for the other four. */
#include <stdlib.h>

#include "base/order.h"
#include "exec/shortcuts/shapes.h"
#include "exec/replay/state.h"

/* A use of the only one of its class that is looked at. */
typedef struct {
  uint32_t owner, pattern; /* class of communicators, or of ranks behind them */
  LsFlowUse use;
} AmpleUse;

struct FoldAmple {
  GArray *uses;              /* AmpleUse, in order, each owner, pattern and resource once */
  const ShapedCalls **calls; /* as of FoldClasses */
  uint32_t *first_pattern;
  uint32_t n_comms; /* of the quotient */
};

static int
by_owner (const void *a, const void *b)
{
  const AmpleUse *x = a, *y = b;
  if (x->owner != y->owner)
    return LS_ORDER (x->owner, y->owner);
  return x->pattern != y->pattern ? LS_ORDER (x->pattern, y->pattern)
                                  : LS_ORDER (x->use.resource, y->use.resource);
}

/* By resource of refine: whether it is the ample one that is looked at in its class. */
static bool *
find_seen (const FoldClasses *c)
{
  const Refine *r = c->refine;
  g_autofree bool *has_one = g_new0 (bool, c->n_resources + 1);
  bool *is_seen = g_new0 (bool, r->n_resources + 1);
  for (uint32_t i = 0; i < r->n_resources; i++) {
    if (!r->is_ample[i] || c->class_of[i] == NO_CLASS || has_one[c->class_of[i]])
      continue;
    has_one[c->class_of[i]] = is_seen[i] = true;
  }
  return is_seen;
}

static GArray *
find_uses (const FoldClasses *c)
{
  const Refine *r = c->refine;
  g_autofree bool *is_seen = find_seen (c);
  GArray *uses = g_array_new (FALSE, FALSE, sizeof (AmpleUse));
  for (uint32_t t = 0; t < r->n_resources; t++)
    for (uint32_t i = r->first_use[t]; i < r->first_use[t + 1] && is_seen[t]; i++) {
      const RefineUse *of = &r->uses[i];
      const AmpleUse use
          = { c->owner[of->owner], of->pattern, { .coef = of->coef, .resource = c->class_of[t] } };
      g_array_append_val (uses, use);
    }
  return uses;
}

/* Sums the coefficients of what is the same. */
static void
merge (GArray *uses)
{
  guint n = 0;
  g_array_sort (uses, by_owner);
  for (guint i = 0; i < uses->len; i++) {
    const AmpleUse *use = &g_array_index (uses, AmpleUse, i);
    if (n > 0 && by_owner (&g_array_index (uses, AmpleUse, n - 1), use) == 0)
      g_array_index (uses, AmpleUse, n - 1).use.coef += use->use.coef;
    else
      g_array_index (uses, AmpleUse, n++) = *use;
  }
  g_array_set_size (uses, n);
}

FoldAmple *
fold_ample_new (FoldClasses *c)
{
  FoldAmple *a = g_new0 (FoldAmple, 1);
  a->uses = find_uses (c);
  merge (a->uses);
  a->calls = g_steal_pointer (&c->calls);
  a->first_pattern = g_steal_pointer (&c->first_pattern);
  a->n_comms = c->n_comms;
  return a;
}

void
fold_ample_free (FoldAmple *a)
{
  if (!a)
    return;
  g_array_unref (a->uses);
  g_free (a->calls);
  g_free (a->first_pattern);
  g_free (a);
}

/* The first that does not come before that owner and pattern. */
static guint
find_first (const FoldAmple *a, uint32_t owner, uint32_t pattern)
{
  guint from = 0, to = a->uses->len;
  while (from < to) {
    guint mid = (from + to) / 2;
    const AmpleUse *use = &g_array_index (a->uses, AmpleUse, mid);
    if (use->owner < owner || (use->owner == owner && use->pattern < pattern))
      from = mid + 1;
    else
      to = mid;
  }
  return from;
}

const ShapedCalls *
fold_ample_calls (const FoldAmple *a, uint32_t list)
{
  return a->calls[list];
}

const ShapedCall *
fold_ample_call (const FoldAmple *a, uint32_t list, CallKey key)
{
  const ShapedCalls *calls = a ? a->calls[list] : NULL;
  for (uint32_t i = 0; calls && i < calls->n; i++)
    if (call_key_equal (calls->calls[i].key, key))
      return &calls->calls[i];
  return NULL;
}

uint32_t
fold_ample_uses (const FoldAmple *a, uint32_t list, uint32_t pattern, LsFlowUse *ret)
{
  uint32_t n = 0, owner = list < a->n_comms ? list : a->n_comms + (list - a->n_comms) / 2;
  if (pattern == UINT32_MAX)
    return 0;
  pattern += a->first_pattern[list];
  for (guint i = find_first (a, owner, pattern); i < a->uses->len; i++) {
    const AmpleUse *use = &g_array_index (a->uses, AmpleUse, i);
    if (use->owner != owner || use->pattern != pattern)
      break;
    if (ret)
      ret[n] = use->use;
    n++;
  }
  return n;
}
