#include "exec/shortcuts/fold.h"

#include "exec/shortcuts/shapes.h"
#include "exec/state.h"

static uint32_t *
identity (uint32_t n)
{
  uint32_t *map = g_new (uint32_t, (gsize) n + 1);
  for (uint32_t i = 0; i < n; i++)
    map[i] = i;
  return map;
}

static uint32_t *
ones (uint32_t n)
{
  uint32_t *count = g_new (uint32_t, (gsize) n + 1);
  for (uint32_t i = 0; i < n; i++)
    count[i] = 1;
  return count;
}

static void
stay_unfolded (Fold *f, const LsCluster *cluster, const double *capacity)
{
  f->n_ranks = f->plan->n_ranks;
  f->rank = identity (f->n_ranks);
  f->n_of_rank = ones (f->n_ranks);
  f->comm = identity (f->plan->n_comms);
  f->n_of_comm = ones (f->plan->n_comms);
  f->n_resources = ls_cluster_n_resources (cluster);
  f->class_of_resource = identity (f->n_resources);
  f->n_of_resource = ones (f->n_resources);
  f->capacity = g_memdup2 (capacity, f->n_resources * sizeof *capacity);
}

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

/* Takes the classes of resources, which know how many they are. */
static void
fold_places (Fold *f, FoldClasses *c)
{
  f->n_resources = c->n_resources + 1;
  f->places = g_steal_pointer (&c->places);
  f->n_of_resource = g_steal_pointer (&f->places->n_of_resource);
  f->capacity = g_steal_pointer (&f->places->capacity);
}

/* The same, found out one by one. */
static void
fold_resources (Fold *f, const LsCluster *cluster, const double *capacity, FoldClasses *c)
{
  uint32_t n = ls_cluster_n_resources (cluster);
  double most = 0;
  f->n_resources = c->n_resources + 1;
  f->class_of_resource = g_steal_pointer (&c->resource);
  f->n_of_resource = g_new0 (uint32_t, f->n_resources);
  f->capacity = g_new0 (double, f->n_resources);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t class = f->class_of_resource[i];
    most = MAX (most, capacity[i]);
    if (class == NO_CLASS)
      continue;
    f->capacity[class] = capacity[i];
    f->n_of_resource[class]++;
  }
  f->capacity[c->n_resources] = most;
}

/* A member of the quotient's communicator: a class of ranks. All have it in one slot (fold_owed()). */
static void
fold_comm (Fold *f, const FoldClasses *c, uint32_t id, uint32_t *seen)
{
  LsPlan *q = f->quotient;
  const LsCommunicator from = ls_plan_communicator (f->plan, f->comm[id]);
  LsCommunicator *to = &q->comms[id];
  int slot = 0;
  while (ls_plan_comm_of (f->plan, ls_comm_rank (&from, 0), (LsSlot) slot) != f->comm[id])
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
    q->bindings[class].member[slot] = to->n_ranks;
    to->offsets[to->n_ranks++] = class;
  }
}

static void
fold_plan (Fold *f, const FoldClasses *c)
{
  LsPlan *q = f->quotient = g_new (LsPlan, 1);
  *q = *f->plan;
  q->arena = ls_arena_new ();
  q->n_ranks = c->n_ranks;
  q->n_comms = c->n_comms;
  q->comms = ls_arena_new_array (q->arena, LsCommunicator, MAX (1, q->n_comms));
  q->bindings = ls_arena_new_array (q->arena, LsBinding, q->n_ranks);
  q->gpu_of_rank = ls_arena_new_array (q->arena, uint32_t, q->n_ranks);
  for (uint32_t i = 0; i < q->n_ranks; i++) {
    LsBinding *b = &q->bindings[i];
    *b = ls_plan_binding (f->plan, f->rank[i]);
    q->gpu_of_rank[i] = ls_plan_gpu (f->plan, f->rank[i]);
    for (int s = 0; s < LS_SLOT_PREV; s++)
      b->comm[s] = b->comm[s] == UINT32_MAX ? UINT32_MAX : c->comm[b->comm[s]];
    for (int p = 0; p < 2; p++)
      b->peer[p] = b->peer[p] == UINT32_MAX ? UINT32_MAX : ls_rank_class (c->rank, b->peer[p]);
  }
  g_autofree uint32_t *seen = g_new0 (uint32_t, (gsize) q->n_ranks + 1);
  for (uint32_t i = 0; i < q->n_comms; i++)
    fold_comm (f, c, i, seen);
}

static void
fold_by (Fold *f, const Run *x, const double *capacity, FoldClasses *c)
{
  f->n_ranks = c->n_ranks;
  ls_rank_classes_count (c->rank, c->n_ranks, &f->rank, &f->n_of_rank);
  count_classes (c->comm, f->plan->n_comms, c->n_comms, &f->comm, &f->n_of_comm);
  if (c->places)
    fold_places (f, c);
  else
    fold_resources (f, x->cluster, capacity, c);
  fold_plan (f, c);
  f->classes = g_steal_pointer (&c->rank);
  f->is_private = fold_private (f, c);
  f->is_ample = g_new0 (bool, f->n_resources);
  for (uint32_t i = 0; i < c->refine->n_resources; i++)
    if (c->class_of[i] != NO_CLASS)
      f->is_ample[c->class_of[i]] = c->refine->is_ample[i];
  f->ample = fold_ample_new (c);
  f->calls = f->places ? fold_planned (x, f, c) : NULL;
}

/* Where a rank has two communicators of one class, one in the quotient cannot be both. */
bool
fold_has_slots_apart (const Refine *r, const uint32_t *comm)
{
  for (uint32_t i = 0; i < r->n_ranks; i++)
    for (int s = 0; s < LS_SLOT_PREV; s++)
      for (int o = 0; o < s && r->bindings[i].comm[s] != UINT32_MAX; o++)
        if (r->bindings[i].comm[o] != UINT32_MAX
            && comm[r->bindings[i].comm[o]] == comm[r->bindings[i].comm[s]])
          return false;
  return true;
}

void
fold_places_free (FoldPlaces *p)
{
  if (!p)
    return;
  g_free (p->class_of_place);
  g_free (p->first);
  g_free (p->class_of);
  g_free (p->n_of_resource);
  g_free (p->capacity);
  g_free (p);
}

void
fold_classes_clear (FoldClasses *c)
{
  Refine *r = c->refine;
  ls_rank_classes_free (c->rank);
  g_free (c->comm);
  g_free (c->resource);
  fold_places_free (c->places);
  g_free (c->sends);
  g_free (c->class_of);
  g_free (c->row_of_rank);
  g_free (c->row_of_comm);
  g_free (c->others);
  g_free (c->owner);
  g_free (c->calls);
  g_free (c->first_pattern);
  if (!r)
    return;
  g_free (r->rank);
  g_free (r->comm);
  g_free (r->resource);
  g_free ((void *) r->is_ample);
  g_free ((void *) r->loads);
  g_free ((void *) r->first);
  if (r->uses) /* else they are the plan's */
    g_free ((void *) r->bindings);
  g_free ((void *) r->members);
  g_free ((void *) r->first_member);
  g_free ((void *) r->uses);
  g_free ((void *) r->first_use);
  g_free (r);
}

void
fold_new (Run *x)
{
  Fold *f = x->fold = g_new0 (Fold, 1);
  f->plan = x->plan;
  FoldClasses classes = { 0 };
  bool may_fold
      = x->options->fold != LS_SHORTCUT_OFF && x->options->network != LS_NETWORK_STEP && x->plan->n_ranks > 1;
  bool is_known = may_fold && !x->options->folds_by_walk && fold_by_blocks (x, &classes);
  g_autofree double *capacity = is_known ? NULL : run_capacities (x);
  if (may_fold && !is_known)
    is_known = fold_by_walk (x, capacity, &classes);
  bool is_folded = is_known && classes.n_ranks < x->plan->n_ranks && classes.has_slots_apart;
  if (is_known && !is_folded && !capacity)
    capacity = run_capacities (x);
  if (is_folded)
    fold_by (f, x, capacity, &classes);
  else
    stay_unfolded (f, x->cluster, capacity);
  fold_weigh (f, x, is_folded ? classes.comm : NULL);
  f->sum = g_new0 (uint64_t, f->n_resources);
  fold_classes_clear (&classes);
}

void
fold_free (Fold *f)
{
  if (!f)
    return;
  if (f->quotient)
    ls_arena_free (f->quotient->arena);
  g_free (f->quotient);
  ls_rank_classes_free (f->classes);
  g_free (f->rank);
  g_free (f->n_of_rank);
  g_free (f->comm);
  g_free (f->n_of_comm);
  g_free (f->class_of_resource);
  fold_places_free (f->places);
  g_free (f->n_of_resource);
  g_free (f->capacity);
  g_free (f->is_private);
  g_free (f->comm_weight);
  g_free (f->channel_weight);
  g_free (f->copy_weight);
  g_free (f->calls);
  g_free (f->is_ample);
  fold_ample_free (f->ample);
  g_free (f->sum);
  g_free (f);
}

uint32_t
fold_places_class (const FoldPlaces *p, uint32_t resource)
{
  uint32_t local, place = ls_places_find (&p->at, resource, &local);
  return p->class_of[p->first[p->class_of_place[place]] + local];
}

static uint32_t
class_of_resource (const Fold *f, uint32_t resource)
{
  return f->places ? fold_places_class (f->places, resource) : f->class_of_resource[resource];
}

static void
spread_at (const FoldPlaces *p, uint32_t place, const double *of_class, double *ret)
{
  uint32_t n = ls_places_n_at (&p->at, place);
  const uint32_t *class_of = &p->class_of[p->first[p->class_of_place[place]]];
  for (uint32_t i = 0; i < n; i++)
    ret[ls_places_resource (&p->at, place, i)] = class_of[i] == NO_CLASS ? 0 : of_class[class_of[i]];
}

void
fold_spread (const Fold *f, const double *of_class, uint32_t n, double *ret)
{
  if (!f->places)
    for (uint32_t i = 0; i < n; i++)
      ret[i] = f->class_of_resource[i] == NO_CLASS ? 0 : of_class[f->class_of_resource[i]];
  else
    for (uint32_t place = 0; place < ls_places_n (&f->places->at); place++)
      spread_at (f->places, place, of_class, ret);
}

uint32_t
fold_uses (const Fold *f, const LsLoad *loads, uint32_t n, uint32_t n_alike, LsFlowUse *ret_uses)
{
  uint32_t n_uses = 0;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t class = class_of_resource (f, loads[i].resource);
    g_assert (class != NO_CLASS);
    if (f->is_ample && f->is_ample[class])
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
