#include "exec/shortcuts/fold.h"

#include "exec/extras.h"
#include "exec/shortcuts/shapes.h"

/* --- the quotient ------------------------------------------------------------- */

/* Newly allocated, both: the first member of each class, and how many there are. */
static void
count_classes (const uint32_t *class_of, uint32_t n, uint32_t n_classes, uint32_t **ret_first,
               uint32_t **ret_count)
{
  uint32_t *first = g_new (uint32_t, (gsize) n_classes + 1),
           *count = g_new0 (uint32_t, (gsize) n_classes + 1);
  for (uint32_t i = n; i-- > 0;) {
    first[class_of[i]] = i;
    count[class_of[i]]++;
  }
  *ret_first = first;
  *ret_count = count;
}

/* A member of the quotient's communicator: a class of ranks. All have it in one slot (fold_owed()). */
static void
fold_comm (Fold *f, const FoldClasses *c, uint32_t id, uint32_t *seen)
{
  LsPlan *q = f->quotient;
  const LsCommunicator from = ls_plan_communicator (f->whole.plan, f->whole.comm[id]);
  LsCommunicator *to = &q->comms[id];
  int slot = 0;
  while (ls_plan_comm_of (f->whole.plan, ls_comm_rank (&from, 0), (LsSlot) slot) != f->whole.comm[id])
    slot++;
  *to = from;
  to->n_ranks = 0;
  to->first = 0;
  to->offsets = ls_arena_new_array (q->arena, uint32_t, MIN (from.n_ranks, q->n_ranks));
  LsRankStretch near = ls_rank_stretch (c->rank, ls_comm_rank (&from, 0));
  for (uint32_t i = 0; i < from.n_ranks; i++) {
    uint32_t class = ls_rank_class_near (c->rank, ls_comm_rank (&from, i), &near);
    if (seen[class] == id + 1)
      continue;
    seen[class] = id + 1;
    g_assert (q->bindings[class].comm[slot] == id);
    q->bindings[class].member[slot] = to->n_ranks;
    to->offsets[to->n_ranks++] = class;
  }
}

static void
fold_plan (Fold *f, const FoldClasses *c)
{
  LsPlan *q = f->quotient;
  *q = *f->whole.plan;
  q->arena = ls_arena_new ();
  q->n_ranks = c->n_ranks;
  q->n_comms = c->n_comms;
  q->comms = ls_arena_new_array (q->arena, LsCommunicator, MAX (1, q->n_comms));
  q->bindings = ls_arena_new_array (q->arena, LsBinding, q->n_ranks);
  q->gpu_of_rank = ls_arena_new_array (q->arena, uint32_t, q->n_ranks);
  for (uint32_t i = 0; i < q->n_ranks; i++) {
    LsBinding *b = &q->bindings[i];
    *b = ls_plan_binding (f->whole.plan, f->whole.rank[i]);
    q->gpu_of_rank[i] = ls_plan_gpu (f->whole.plan, f->whole.rank[i]);
    for (int s = 0; s < LS_SLOT_PREV; s++)
      b->comm[s] = b->comm[s] == UINT32_MAX ? UINT32_MAX : c->comm[b->comm[s]];
    for (int p = 0; p < 2; p++)
      b->peer[p] = b->peer[p] == UINT32_MAX ? UINT32_MAX : ls_rank_class (c->rank, b->peer[p]);
  }
  g_autofree uint32_t *seen = g_new0 (uint32_t, (gsize) q->n_ranks + 1);
  for (uint32_t i = 0; i < q->n_comms; i++)
    fold_comm (f, c, i, seen);
}

void
fold_classes_clear (FoldClasses *c)
{
  Refine *r = c->refine;
  ls_rank_classes_free (c->rank);
  g_free (c->comm);
  place_classes_free (c->places);
  g_free (c->sends);
  g_free (c->class_of);
  g_free (c->row_of_rank);
  g_free (c->row_of_comm);
  g_free (c->others);
  g_free (c->owner);
  g_free (c->calls);
  g_free (c->first_pattern);
  if (r)
    refine_clear (r);
  g_free (r);
}

/* --- its hooks ---------------------------------------------------------------- */

/* A load that each of n_alike makes as that of one in the quotient, but for ample resources. */
static uint32_t
fold_uses (const Run *x, const LsLoad *loads, uint32_t n, uint32_t n_alike, LsFlowUse *ret_uses)
{
  const Fold *f = x->extras->fold;
  uint32_t n_uses = 0;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t class = place_classes_of (f->whole.places, loads[i].resource);
    g_assert (class != NO_CLASS);
    if (f->is_ample[class])
      continue;
    if (f->sum[class] == 0)
      ret_uses[n_uses++].resource = class;
    f->sum[class] += loads[i].coef;
  }
  for (uint32_t i = 0; i < n_uses; i++) {
    uint64_t *sum = &f->sum[ret_uses[i].resource];
    ret_uses[i].coef = fold_coef (*sum, n_alike, f->n_of_resource[ret_uses[i].resource]);
    *sum = 0;
  }
  return n_uses;
}

static uint32_t
more_uses (const Run *x, uint32_t caller, CallKey key, uint32_t phase, LsFlowUse *ret_uses)
{
  const FoldAmple *ample = x->extras->fold->ample;
  const ShapedCall *call = fold_ample_call (ample, caller, key);
  return call ? fold_ample_uses (ample, caller, call->pattern[phase], ret_uses) : 0;
}

static void
fold_by (Run *x, FoldClasses *c)
{
  Fold *f = x->extras->fold = ls_arena_new_array (x->arena, Fold, 1);
  x->whole = &f->whole;
  f->whole.plan = x->plan;
  f->quotient = ls_arena_new_array (x->arena, LsPlan, 1);
  ls_rank_classes_count (c->rank, c->n_ranks, &f->whole.rank, &f->whole.n_of_rank);
  count_classes (c->comm, f->whole.plan->n_comms, c->n_comms, &f->whole.comm, &f->whole.n_of_comm);
  f->whole.n_resources = c->n_resources + 1;
  f->whole.places = g_steal_pointer (&c->places);
  f->n_of_resource = g_steal_pointer (&f->whole.places->n_of_resource);
  f->whole.capacity = g_steal_pointer (&f->whole.places->capacity);
  fold_plan (f, c);
  g_assert (f->quotient->n_ranks < x->plan->n_ranks && f->quotient->n_comms <= x->plan->n_comms);
  f->whole.classes = g_steal_pointer (&c->rank);
  f->is_private = fold_private (f, c);
  f->is_ample = g_new0 (bool, f->whole.n_resources);
  for (uint32_t i = 0; i < c->refine->n_resources; i++)
    if (c->class_of[i] != NO_CLASS)
      f->is_ample[c->class_of[i]] = c->refine->is_ample[i];
  f->ample = fold_ample_new (c);
  f->whole.calls = fold_planned (x, f, c);
  f->sum = g_new0 (uint64_t, f->whole.n_resources);
  fold_weigh (f, x, c->comm);
  x->plan = f->quotient;
  x->hooks.uses = fold_uses;
  x->hooks.more_uses = more_uses;
}

bool
fold_new (Run *x)
{
  FoldClasses classes = { 0 };
  const LsRunOptions *o = x->extras->options;
  bool may_fold = o->fold != LS_SHORTCUT_OFF && o->network != LS_NETWORK_STEP && x->plan->n_ranks > 1;
  bool is_known = may_fold && !o->folds_by_walk && fold_classes (x, false, &classes);
  is_known = is_known || (may_fold && fold_classes (x, true, &classes));
  if (is_known && classes.n_ranks < x->plan->n_ranks && classes.has_slots_apart)
    fold_by (x, &classes);
  fold_classes_clear (&classes);
  return x->extras->fold != NULL;
}

void
fold_free (Fold *f)
{
  if (!f)
    return;
  ls_arena_free (f->quotient->arena);
  g_free (f->n_of_resource);
  g_free (f->is_private);
  g_free (f->is_ample);
  fold_ample_free (f->ample);
  g_free (f->sum);
}
