#include "exec/shortcuts/fold.h"

#include <math.h>

#include "base/list.h"
#include "base/order.h"
#include "exec/extras.h"
#include "exec/shortcuts/shapes.h"

/* --- the quotient ------------------------------------------------------------- */

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
fold_plan (Fold *f, const FoldClasses *c, LsArena *arena)
{
  LsPlan *q = f->quotient;
  *q = *f->whole.plan;
  q->arena = arena;
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

static void
classes_free (FoldClasses *c)
{
  ls_rank_classes_free (c->rank);
  place_classes_free (c->places);
  ls_arena_free (c->arena);
}

/* ---- what communicators have to themselves ---- */

/* Which communicators have what they load to themselves.
 *
 * Everything that loads a resource needs some ranks: a collective its members, a transfer
 * both ends, a kernel or a copy one. A resource is owned by the classes of ranks that all of
 * these need: while one of them does something else, nothing loads it. A communicator of one
 * class whose calls load only what that class owns cannot be disturbed by anything in which
 * the class has no part.
 *
 * Worked example. Tensor parallelism in a node beside a pipeline: the NVLink ports of a GPU carry
 * its all-reduces and, if the next stage is in the same node, its sends. All need that GPU, so
 * its class owns the port. If all-reduces cross a NIC that another class sends through, nobody
 * owns that, nor what traffic of no rank loads. */

#define NOBODY UINT32_MAX

typedef struct {
  uint32_t a, b; /* classes of ranks; NOBODY: none; b is not a */
  bool is_loaded;
} Owners;

typedef struct {
  const FoldClasses *c;
  Owners *owners; /* by class of resource */
} Private;

static bool
is_among (const uint32_t *classes, uint32_t n, uint32_t class)
{
  for (uint32_t i = 0; i < n; i++)
    if (classes[i] == class)
      return true;
  return false;
}

/* Of what is loaded; NULL: it is ample, and disturbs nobody. */
static Owners *
owners_of (const Private *p, uint32_t load)
{
  uint32_t resource = p->c->refine->loads[load].resource;
  return p->c->refine->is_ample[resource] ? NULL : &p->owners[p->c->class_of[resource]];
}

/* Loads from .. to need these classes: owners are those that have been needed each time. More than
 * two come last: what only they load, is of no communicator of one class. */
static void
need (Private *p, uint32_t from, uint32_t to, const uint32_t *classes, uint32_t n)
{
  for (uint32_t i = from; i < to; i++) {
    Owners *o = owners_of (p, i);
    if (!o)
      continue;
    if (!o->is_loaded)
      *o = (Owners) { classes[0], n > 1 ? classes[1] : NOBODY, true };
    if (!is_among (classes, n, o->a))
      o->a = NOBODY;
    if (!is_among (classes, n, o->b))
      o->b = NOBODY;
  }
}

static void
need_sends (Private *p, const Fold *f, uint32_t class, int to_next)
{
  uint32_t rank = f->whole.rank[class], peer = ls_plan_peer (f->whole.plan, rank, to_next);
  const uint32_t *sends = p->c->sends[p->c->row_of_rank[class]];
  const uint32_t ends[2] = { class, peer == UINT32_MAX ? class : ls_rank_class (f->whole.classes, peer) };
  need (p, sends[to_next], sends[to_next + 1], ends, 2);
}

/* One of a class stands for all: they load resources of the same classes. */
static void
find_owners (Private *p, const Fold *f)
{
  const uint32_t *first = p->c->refine->first;
  for (uint32_t i = 0; i < f->quotient->n_ranks; i++) {
    uint32_t row = p->c->row_of_rank[i], at = p->c->refine->n_comms + row;
    need (p, first[at], p->c->sends[row][0], &i, 1);
    need_sends (p, f, i, 0);
    need_sends (p, f, i, 1);
    need (p, p->c->sends[row][2], first[at + 1], &i, 1);
  }
  for (int is_last = 0; is_last < 2; is_last++)
    for (uint32_t i = 0; i < f->quotient->n_comms; i++) {
      const LsCommunicator c = ls_plan_communicator (f->quotient, i);
      g_autofree uint32_t *ranks = ls_comm_ranks (&c);
      if ((c.n_ranks > 1) == is_last)
        need (p, first[p->c->row_of_comm[i]], first[p->c->row_of_comm[i] + 1], ranks, c.n_ranks);
    }
  for (uint32_t i = 0; i < p->c->n_others; i++)
    p->owners[p->c->class_of[p->c->others[i]]] = (Owners) { NOBODY, NOBODY, true };
}

static bool
owns_all (const Private *p, uint32_t from, uint32_t to, uint32_t class)
{
  for (uint32_t i = from; i < to; i++) {
    const Owners *o = owners_of (p, i);
    if (o && o->a != class && o->b != class)
      return false;
  }
  return true;
}

/* See Fold.is_private, in the arena. */
static bool *
find_private (const Fold *f, const FoldClasses *classes, LsArena *arena)
{
  g_autofree Owners *owners = g_new0 (Owners, f->whole.n_resources);
  Private p = { classes, owners };
  find_owners (&p, f);
  bool *is_private = ls_arena_new_array (arena, bool, f->quotient->n_comms);
  for (uint32_t i = 0; i < f->quotient->n_comms; i++) {
    const LsCommunicator c = ls_plan_communicator (f->quotient, i);
    const uint32_t *first = &classes->refine->first[classes->row_of_comm[i]];
    is_private[i] = c.n_ranks == 1 && owns_all (&p, first[0], first[1], ls_comm_rank (&c, 0));
  }
  return is_private;
}

/* What the quotient's one makes of a sum of coefficients over a class of n_resources, each loaded by n_alike
 * in all. */
static uint64_t
fold_coef (uint64_t sum, uint32_t n_alike, uint32_t n_resources)
{
  unsigned __int128 all = (unsigned __int128) sum * n_alike;
  g_assert (all % n_resources == 0);
  return (uint64_t) (all / n_resources);
}

/* ---- what ample resources carry ---- */

/* What ample resources carry in a folded run.
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

/* A use of the only one of its class that is looked at. */
typedef struct {
  uint32_t owner, pattern; /* class of communicators, or of ranks behind them */
  LsFlowUse use;
} AmpleUse;

static int
by_owner (const void *a, const void *b)
{
  const AmpleUse *x = a, *y = b;
  return x->owner != y->owner ? LS_ORDER (x->owner, y->owner) : LS_ORDER (x->pattern, y->pattern);
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

/* AmpleUse, in order. */
static GArray *
find_uses (const FoldClasses *c)
{
  const Refine *r = c->refine;
  g_autofree bool *is_seen = find_seen (c);
  GArray *uses = g_array_new (FALSE, FALSE, sizeof (AmpleUse));
  for (uint32_t i = 0, owner = 0; i < r->n_uses; i++) {
    const RefineUse of = refine_use (r, i, &owner);
    const AmpleUse use
        = { c->owner[of.owner], of.pattern, { .coef = of.coef, .resource = c->class_of[of.resource] } };
    if (is_seen[of.resource])
      g_array_append_val (uses, use);
  }
  g_array_sort (uses, by_owner);
  return uses;
}

/* ---- calls that are planned ---- */

/* The calls of the quotient's communicators, and what its ranks send, without planning them again: the
 * structure of the cluster (fold_blocks.h) has planned one of each shape, and knows what that loads by
 * class. */

typedef struct {
  const Run *x;
  const Fold *f;
  const FoldClasses *c;
  const GArray *ample; /* AmpleUse */
  uint32_t owner, row; /* who calls: by class, communicators first; in the quotient */
  uint32_t n_alike;    /* how many that stands for */
  uint32_t *classes;   /* [n_uses] of resources loaded by the present phase */
  uint64_t *sum;       /* [n_resources] zeros between phases                */
} Planned;

/* What a phase of that pattern loads; behind these *ret_n_ample that are ample. */
static LsFlowUse *
uses_of (Planned *p, uint32_t pattern, uint32_t *ret_n, uint32_t *ret_n_ample)
{
  const Refine *r = p->c->refine;
  guint first = ls_list_first_from (p->ample, by_owner, &(AmpleUse) { p->owner, pattern }),
        end = ls_list_first_from (p->ample, by_owner, &(AmpleUse) { p->owner, pattern + 1 });
  uint32_t n = 0;
  for (uint32_t i = r->first[p->row]; i < r->first[p->row + 1]; i++) {
    const RefineLoad *l = &r->loads[i];
    if (l->pattern != pattern || r->is_ample[l->resource])
      continue;
    uint32_t class = p->c->class_of[l->resource];
    if (p->sum[class] == 0)
      p->classes[n++] = class;
    p->sum[class] += l->coef;
  }
  LsFlowUse *uses = ls_arena_new_array (p->x->arena, LsFlowUse, n + (end - first));
  for (uint32_t i = 0; i < n; i++) {
    uint32_t class = p->classes[i];
    uses[i] = (LsFlowUse) { .resource = class,
                            .coef = fold_coef (p->sum[class], p->n_alike, p->f->n_of_resource[class]) };
    p->sum[class] = 0;
  }
  for (guint i = first; i < end; i++)
    uses[n + (i - first)] = g_array_index (p->ample, AmpleUse, i).use;
  *ret_n = n;
  *ret_n_ample = end - first;
  return uses;
}

/* first: pattern of the caller's, where its calls begin. */
static Call *
call_of (Planned *p, const ShapedCall *shaped, uint32_t first, Call *next)
{
  Call *call = call_new (p->x->arena, shaped->key, shaped->plan, next);
  call->stall = shaped->stall;
  for (uint32_t i = 0; i < shaped->plan->n_phases; i++)
    if (shaped->pattern[i] != UINT32_MAX)
      call->uses[i] = uses_of (p, first + shaped->pattern[i], &call->n_uses[i], &call->n_ample[i]);
  return call;
}

/* See Whole.calls; in the arena of x. */
static Call **
plan_calls (const Run *x, const Fold *f, const FoldClasses *c)
{
  g_autofree uint32_t *classes = g_new (uint32_t, f->whole.n_resources);
  g_autofree uint64_t *sum = g_new0 (uint64_t, f->whole.n_resources);
  g_autoptr (GArray) ample = find_uses (c);
  uint32_t n_lists = c->n_comms + 2 * c->n_ranks;
  Call **calls = ls_arena_new_array (x->arena, Call *, n_lists);
  Planned p = { .x = x, .f = f, .c = c, .ample = ample, .classes = classes, .sum = sum };
  for (uint32_t list = 0; list < n_lists; list++) {
    const ShapedCalls *shaped = c->calls[list];
    bool is_comm = list < c->n_comms;
    uint32_t rank = is_comm ? 0 : (list - c->n_comms) / 2;
    p.owner = is_comm ? list : c->n_comms + rank;
    p.row = is_comm ? c->row_of_comm[list] : c->refine->n_comms + c->row_of_rank[rank];
    p.n_alike = is_comm ? f->whole.n_of_comm[list] : f->whole.n_of_rank[rank];
    g_assert (p.n_alike > 0);
    for (uint32_t i = 0; shaped && i < shaped->n; i++)
      calls[list] = call_of (&p, &shaped->calls[i], c->first_pattern[list], calls[list]);
  }
  return calls;
}

/* ---- weights in the digest ---- */

/* By what the members of a class count in the digest.
 *
 * Problem. The digest is a sum of weights times powers of times (replay/rank.h), so a class counts by the
 * sum of the weights of all its ranks, as they do one by one. A million ranks have a few classes, in long
 * runs: a sum over a run must not take each of them.
 *
 * Equation. The weight of rank r for a thing of kind w is a product of two words that look random,
 *
 *     weight (r, w) = f(r / B, w) g(r mod B),  B = 4096, f and g of SplitMix64,
 *
 * so the ranks from a up to b - 1 sum up to
 *
 *     G(b') f(b / B, w) - G(a') f(a / B, w) + G(B) sum of f(k, w) over a / B <= k < b / B,
 *     where G(i) = g(0) + ... + g(i - 1), a' = a mod B, b' = b mod B.
 *
 * Two ranks that change places differ in the sum, as in a sum of single words; four in a rectangle of two
 * blocks do too, by (f - f') (g - g').
 *
 * Worked example. Ranks 4,000 to 9,000, B = 4096: G(808) f(2) - G(4000) f(0) + G(4096) (f(0) + f(1)): that is
 * 96 of block 0, all of block 1 and 808 of block 2, where 9,000 itself is left out.
 *
 * Reference. Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014. */

typedef struct {
  Fold *f;
  const RoleCalls *roles;
  uint64_t *sum; /* [n + 1] G (i), of the n ranks of a block, or of all if these are fewer */
} Weights;

static uint64_t *
sums_new (uint32_t n_ranks)
{
  uint32_t n = MIN (n_ranks, DIGEST_RANKS_PER_BLOCK);
  uint64_t *sum = g_new (uint64_t, (gsize) n + 1);
  sum[0] = 0;
  for (uint32_t i = 0; i < n; i++)
    sum[i + 1] = sum[i] + digest_word_of_rank (i);
  return sum;
}

/* Of ranks that follow each other: from the first up to the one before `end`. */
static uint64_t
weight_of (const Weights *w, uint64_t what, uint32_t first, uint32_t end)
{
  uint32_t block = first / DIGEST_RANKS_PER_BLOCK, last = end / DIGEST_RANKS_PER_BLOCK;
  uint64_t sum = -w->sum[first % DIGEST_RANKS_PER_BLOCK] * digest_word_of_block (what, block);
  for (; block < last; block++)
    sum += w->sum[DIGEST_RANKS_PER_BLOCK] * digest_word_of_block (what, block);
  return sum + w->sum[end % DIGEST_RANKS_PER_BLOCK] * digest_word_of_block (what, last);
}

/* Those of a role are of one stage, so in a mesh their neighbours are at one distance. */
static uint32_t
end_of_alike (const Fold *f, uint32_t first)
{
  const LsPlan *plan = f->whole.plan;
  return plan->bindings
      ? first + 1
      : MIN (ls_plan_end_of_role (plan, first), ls_rank_classes_end (f->whole.classes, first));
}

/* Returns the first behind those that are alike. */
static uint32_t
weigh_alike (Weights *w, uint32_t first)
{
  Fold *f = w->f;
  const uint32_t *calls = w->roles[ls_plan_role (f->whole.plan, first)].id;
  bool copies = false;
  uint32_t class = ls_rank_class (f->whole.classes, first), end = end_of_alike (f, first);
  g_assert (end > first && class < f->quotient->n_ranks);
  for (int d = 0; d < LS_N_COPY_DIRECTIONS; d++)
    copies |= calls[COPIES + d] != 0;
  if (copies)
    f->whole.copy_weight[class] += weight_of (w, DIGEST_COPY, first, end);
  for (uint32_t p = 0; p < 2; p++)
    if (calls[SENDS + 1 - p] != 0)
      f->whole.channel_weight[2 * class + p]
          += weight_of (w, ls_plan_peer (f->whole.plan, first, 1 - p) - first, first, end);
  return end;
}

/* The weights of all classes. */
static void
weigh (Fold *f, const Run *x, const uint32_t *class_of_comm)
{
  const LsPlan *plan = f->whole.plan;
  uint32_t n_ranks = f->quotient->n_ranks;
  Weights w = { .f = f, .roles = x->role_calls, .sum = sums_new (plan->n_ranks) };
  f->whole.comm_weight = ls_arena_new_array (x->arena, uint64_t, f->quotient->n_comms);
  f->whole.channel_weight = ls_arena_new_array (x->arena, uint64_t, 2 * (gsize) n_ranks);
  f->whole.copy_weight = ls_arena_new_array (x->arena, uint64_t, n_ranks);
  for (uint32_t i = 0; i < plan->n_comms; i++)
    f->whole.comm_weight[class_of_comm[i]] += digest_of (i);
  for (uint32_t i = 0; i < plan->n_ranks;)
    i = weigh_alike (&w, i);
  g_free (w.sum);
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

static void
fold_by (Run *x, FoldClasses *c)
{
  Fold *f = x->extras->fold = ls_arena_new_array (x->arena, Fold, 1);
  x->whole = &f->whole;
  f->whole.plan = x->plan;
  f->quotient = ls_arena_new_array (x->arena, LsPlan, 1);
  f->whole.rank = ls_arena_new_array (x->arena, uint32_t, c->n_ranks);
  f->whole.n_of_rank = ls_arena_new_array (x->arena, uint32_t, c->n_ranks);
  ls_rank_classes_count (c->rank, f->whole.rank, f->whole.n_of_rank);
  f->whole.comm = ls_arena_new_array (x->arena, uint32_t, c->n_comms);
  f->whole.n_of_comm = ls_arena_new_array (x->arena, uint32_t, c->n_comms);
  for (uint32_t i = x->plan->n_comms; i-- > 0;) {
    f->whole.comm[c->comm[i]] = i;
    f->whole.n_of_comm[c->comm[i]]++;
  }
  f->whole.n_resources = c->n_resources + 1;
  f->whole.capacity = c->capacity;
  f->whole.places = g_steal_pointer (&c->places);
  f->n_of_resource = c->n_of_resource;
  fold_plan (f, c, x->arena);
  g_assert (f->quotient->n_ranks < x->plan->n_ranks && f->quotient->n_comms <= x->plan->n_comms);
  f->whole.classes = g_steal_pointer (&c->rank);
  f->is_private = find_private (f, c, x->arena);
  f->is_ample = ls_arena_new_array (x->arena, bool, f->whole.n_resources);
  for (uint32_t i = 0; i < c->refine->n_resources; i++)
    if (c->class_of[i] != NO_CLASS)
      f->is_ample[c->class_of[i]] = c->refine->is_ample[i];
  f->whole.calls = plan_calls (x, f, c);
  f->sum = ls_arena_new_array (x->arena, uint64_t, f->whole.n_resources);
  weigh (f, x, c->comm);
  x->plan = f->quotient;
  x->hooks.uses = fold_uses;
}

bool
fold_new (Run *x)
{
  FoldClasses classes = { 0 };
  const LsRunOptions *o = x->extras->options;
  bool may_fold = o->fold != LS_SHORTCUT_OFF && o->network != LS_NETWORK_STEP && x->plan->n_ranks > 1;
  bool is_known = may_fold && !o->folds_by_walk && fold_classes (x, false, &classes);
  if (may_fold && !is_known) {
    classes_free (&classes);
    classes = (FoldClasses) { 0 };
    is_known = fold_classes (x, true, &classes);
  }
  if (is_known && classes.n_ranks < x->plan->n_ranks && classes.has_slots_apart)
    fold_by (x, &classes);
  classes_free (&classes);
  return x->extras->fold != NULL;
}
