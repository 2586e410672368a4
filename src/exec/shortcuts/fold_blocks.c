#include "exec/shortcuts/fold_blocks.h"

#include <string.h>

#include "base/gcd.h"
#include "exec/extras.h"

/* ---- stretches ---- */

/* Tiers of which nothing is above hosts do not come again: there may be one for all. */
static void
set_tiers (Stretches *s, uint32_t n_blocks, uint32_t n)
{
  const uint32_t n_places[3] = { s->whole->n_hosts, s->whole->n_groups, s->whole->n_pods };
  const bool comes_again[3] = { true, s->whole->trunks_per_group > 0, s->whole->trunks_per_pod > 0 };
  uint32_t first = 0;
  for (int k = 0; k < 3; k++) {
    uint32_t block = MAX (1, comes_again[k] ? n_places[k] / n_blocks : n_places[k]);
    s->tier[k] = (StretchTier) { first, first, block, comes_again[k] ? block / n : block };
    first += n_places[k];
  }
  s->n = s->n_kept = n;
  s->gpus_of_block = s->tier[0].block * s->whole->gpus_per_host;
  s->gpus_of_stretch = s->tier[0].stretch * s->whole->gpus_per_host;
}

/* One that is all. */
static void
stretches_init (Stretches *s, const LsPlaces *whole)
{
  *s = (Stretches) { .whole = whole, .at = *whole };
  set_tiers (s, 1, 1);
}

/* Whether ranks of a block have the same roles a stretch on: a block is of whole stages, or part of one. */
static bool
have_same_roles (const LsPlan *plan, uint32_t block, uint32_t stretch)
{
  const uint32_t *role = plan->role_of_rank;
  for (uint32_t first = 0; role && first < plan->n_ranks; first += block)
    if (memcmp (&role[first], &role[first + stretch], (block - stretch) * sizeof *role) != 0)
      return false;
  return true;
}

/* The shortest that mesh and cluster allow; period: of the cluster, in hosts. GPU i has rank i. All are kept.
 * False: they do not come again, and nothing is changed. */
static bool
find_stretches (Stretches *s, const LsPlan *plan, uint32_t period)
{
  uint32_t per_host = s->whole->gpus_per_host, block, unit = ls_mesh_binding_repeats (plan->by_mesh, &block);
  uint64_t gpus = period * (uint64_t) per_host, stretch = gpus / ls_gcd ((uint32_t) gpus, unit) * unit;
  if (plan->n_ranks != s->whole->n_hosts * per_host || block % per_host != 0 || stretch >= block
      || block % stretch != 0 || !have_same_roles (plan, block, (uint32_t) stretch))
    return false;
  set_tiers (s, plan->n_ranks / block, (uint32_t) (block / stretch));
  return true;
}

void
stretches_keep (Stretches *s, uint32_t *sort, uint32_t n_sorts, LsArena *arena)
{
  uint32_t *n_kept[3] = { &s->at.n_hosts, &s->at.n_groups, &s->at.n_pods }, first = 0;
  s->kept = sort;
  s->first = ls_arena_new_array (arena, uint32_t, n_sorts);
  s->n_of = ls_arena_new_array (arena, uint32_t, n_sorts);
  for (uint32_t i = 0; i < s->n; i++)
    if (s->n_of[sort[i]]++ == 0)
      s->first[sort[i]] = i;
  s->n_kept = n_sorts;
  for (int k = 0; k < 3; k++) {
    StretchTier *t = &s->tier[k];
    t->first_kept = first;
    if (t->stretch < t->block)
      *n_kept[k] = *n_kept[k] / t->block * n_sorts * t->stretch;
    first += *n_kept[k];
  }
}

void
stretches_spread (const Stretches *s, const uint32_t *of_kept, uint32_t *ret)
{
  const uint32_t n[3] = { s->whole->n_hosts, s->whole->n_groups, s->whole->n_pods };
  for (int k = 0; k < 3; k++)
    for (uint32_t i = 0; i < n[k]; i += s->tier[k].stretch) {
      uint32_t place = s->tier[k].first + i;
      memcpy (&ret[place], &of_kept[stretch_kept (s, place)],
              MIN (s->tier[k].stretch, n[k] - i) * sizeof *ret);
    }
}

uint32_t
stretch_n_gpus (const Stretches *s)
{
  return s->at.n_hosts * s->at.gpus_per_host;
}

LsRankClasses *
stretch_classes_new (const Stretches *s, uint32_t *class_of, uint32_t n_ranks)
{
  return s->kept ? ls_rank_classes_of_stretches (class_of, n_ranks, s->gpus_of_block, s->gpus_of_stretch,
                                                 s->kept, s->n_kept)
                 : ls_rank_classes_new (class_of, n_ranks);
}

/* --- what lies where ------------------------------------------------------------------ */

/* GPU i has rank i. */
static bool
is_identity (const LsPlan *plan)
{
  for (uint32_t i = 0; i < plan->n_ranks && plan->gpu_of_rank; i++)
    if (plan->gpu_of_rank[i] != i)
      return false;
  return true;
}

/* False: two ranks share a GPU. */
static bool
find_ranks (Blocks *b)
{
  uint32_t n_gpus = b->stretches.whole->n_hosts * b->stretches.whole->gpus_per_host;
  if (b->plan->n_ranks <= n_gpus && is_identity (b->plan))
    return true;
  b->rank_of_gpu = ls_arena_new_array (b->arena, uint32_t, n_gpus);
  memset (b->rank_of_gpu, 0xff, n_gpus * sizeof *b->rank_of_gpu);
  for (uint32_t i = 0; i < b->plan->n_ranks; i++) {
    uint32_t *rank = &b->rank_of_gpu[ls_plan_gpu (b->plan, i)];
    if (*rank != UINT32_MAX)
      return false;
    *rank = i;
  }
  return true;
}

/* After how many hosts all comes again: where ranks are bound by a mesh, in the order of GPUs, and what is
 * above hosts differs in nothing. */
static void
find_period (Blocks *b)
{
  if (b->rank_of_gpu || b->plan->bindings || ls_cluster_has_faults (&b->x->cluster->spec))
    return;
  b->period = b->at->trunks_per_pod > 0 ? b->at->hosts_per_group * b->at->groups_per_pod
      : b->at->trunks_per_group > 0     ? b->at->hosts_per_group
                                        : 1;
}

/* --- all of it ---------------------------------------------------------------------------- */

static bool
find (Blocks *b, const uint8_t *slot)
{
  b->n_places = ls_places_n (b->at);
  b->groups_of_period = b->at->trunks_per_group > 0 ? b->period / b->at->hosts_per_group : 0;
  b->pods_of_period
      = b->at->trunks_per_pod > 0 ? b->period / (b->at->hosts_per_group * b->at->groups_per_pod) : 0;
  return bundles_find (b, slot) && sends_find (b);
}

/* False: nothing comes again that often, and nothing is found. */
static bool
find_in_stretches (Blocks *b, const uint8_t *slot)
{
  uint32_t period = b->period;
  if (period == 0 || b->x->options.slow || !find_stretches (&b->stretches, b->plan, period))
    return false;
  b->period = b->stretches.tier[0].stretch;
  if (sorts_find (b, slot) && find (b, slot))
    return true;
  b->templates = b->across = NULL;
  b->n_comm_bundles = 0;
  b->period = period;
  stretches_init (&b->stretches, b->stretches.whole);
  return false;
}

/* The cluster as its places are, or as one. False: it has none. */
static bool
lay_out (Blocks *b)
{
  const Run *x = b->x;
  bool knows_hosts = x->n_jobs == 1 && x->extras->n_traffic == 0;
  b->shapes = b->is_one || knows_hosts ? shapes_new (x, b->is_one, b->arena) : NULL;
  if (!b->shapes)
    return false;
  stretches_init (&b->stretches, shapes_places (b->shapes));
  b->at = &b->stretches.at;
  b->fastest = run_fastest_kernel (x);
  b->capacity = b->is_one ? run_capacities (x, b->arena) : NULL;
  b->laid_out = !b->is_one                             ? b->stretches.whole
      : ls_places_init (&b->laid_out_else, x->cluster) ? &b->laid_out_else
                                                       : NULL;
  return true;
}

/* slot: [n_comms] of each communicator's members. False: this cluster or plan is not made so. */
static bool
blocks_init (Blocks *b, const uint8_t *slot)
{
  const Run *x = b->x;
  b->arena = ls_arena_new ();
  if (!lay_out (b) || !find_ranks (b))
    return false;
  if (!b->is_one)
    find_period (b);
  if (!find_in_stretches (b, slot) && !find (b, slot))
    return false;
  b->is_ample = ls_arena_new_array (b->arena, bool, b->n_places - b->at->n_hosts);
  for (uint32_t i = b->at->n_hosts; i < b->n_places; i++)
    b->is_ample[i - b->at->n_hosts]
        = ls_places_are_ample (b->stretches.whole, x->cluster, stretch_place (&b->stretches, i));
  blocks_refine (b);
  return true;
}

/* ---- what ranks owe each other ---- */

/* Before it is asked who is alike, each must get what it waits for. */

typedef struct {
  const LsPlan *plan;     /* whole */
  const RoleCalls *roles; /* Run.role_calls */
  bool is_by_stage;       /* ranks of a mesh, all of a stage do the same */
} Owed;

/* By communicator the slot in which all its members have it, newly allocated; NULL: they have it in several,
 * or not all have it. */
static uint8_t *
slots_of_comms (const LsPlan *plan)
{
  g_autofree uint8_t *slot = g_new0 (uint8_t, plan->n_comms + 1);
  g_autofree uint32_t *n_bound = plan->bindings ? g_new0 (uint32_t, plan->n_comms + 1) : NULL;
  for (int s = 0; s < LS_SLOT_PREV && !plan->bindings; s++) {
    uint32_t first, n = ls_mesh_binding_comms (plan->by_mesh, (LsSlot) s, &first);
    memset (&slot[first], s, n);
  }
  for (uint32_t i = 0; i < plan->n_ranks && plan->bindings; i++)
    for (uint8_t s = 0; s < LS_SLOT_PREV; s++) {
      uint32_t comm = plan->bindings[i].comm[s];
      if (comm == UINT32_MAX)
        continue;
      if (n_bound[comm]++ > 0 && slot[comm] != s)
        return NULL;
      slot[comm] = s;
    }
  for (uint32_t c = 0; c < plan->n_comms && plan->bindings; c++)
    if (n_bound[c] != ls_plan_communicator (plan, c).n_ranks)
      return NULL;
  return g_steal_pointer (&slot);
}

/* Members of a communicator must call the same. */
static bool
calls_the_same (const Owed *l, uint32_t comm, int list)
{
  const LsCommunicator c = ls_plan_communicator (l->plan, comm);
  uint32_t role = ls_plan_role (l->plan, ls_comm_rank (&c, 0));
  for (uint32_t i = 1; i < c.n_ranks; i++) {
    uint32_t other = ls_plan_role (l->plan, ls_comm_rank (&c, i));
    if (other != role && l->roles[other].id[list] != l->roles[role].id[list])
      return false;
  }
  return true;
}

/* Communicators of most slots of a mesh have members of the same stages each, or of one: where all of a stage
 * do the same, the first says it of all. */
static bool
check_calls (const Owed *l, const uint8_t *slot)
{
  for (uint32_t c = 0, n, first; c < l->plan->n_comms; c += n) {
    bool is_known = l->is_by_stage && slot[c] != LS_SLOT_PIPES;
    n = is_known ? ls_mesh_binding_comms (l->plan->by_mesh, (LsSlot) slot[c], &first) : 1;
    if (!calls_the_same (l, c, CALLS + slot[c]))
      return false;
  }
  return true;
}

/* What rank i sends to that neighbour, the neighbour expects, and nobody else does; what it expects from
 * there, is sent. In a mesh each is the neighbour of its neighbour. */
static bool
check_neighbour (const Owed *l, uint32_t i, uint32_t p)
{
  const uint32_t *own = l->roles[ls_plan_role (l->plan, i)].id;
  if (own[SENDS + p] == 0 && own[RECEIVES + p] == 0)
    return true;
  uint32_t peer = ls_plan_peer (l->plan, i, p);
  if (peer == UINT32_MAX || (l->plan->bindings && l->plan->bindings[peer].peer[1 - p] != i))
    return false;
  const uint32_t *theirs = l->roles[ls_plan_role (l->plan, peer)].id;
  return (own[SENDS + p] == 0 || theirs[RECEIVES + 1 - p] == own[SENDS + p])
      && (own[RECEIVES + p] == 0 || theirs[SENDS + 1 - p] == own[RECEIVES + p]);
}

static bool
check_neighbours (const Owed *l, uint32_t i)
{
  return check_neighbour (l, i, 0) && check_neighbour (l, i, 1);
}

/* Of all ranks, or of one of each stage. */
static bool
check_transfers (const Owed *l)
{
  bool ok = true;
  for (uint32_t s = 0; s < l->plan->n_roles && l->is_by_stage && ok; s++)
    ok = check_neighbours (l, ls_mesh_binding_first_of_stage (l->plan->by_mesh, s));
  for (uint32_t i = 0; i < l->plan->n_ranks && !l->is_by_stage && ok; i++)
    ok = check_neighbours (l, i);
  return ok;
}

uint8_t *
fold_owed (const Run *x)
{
  bool is_plain = x->plan->bindings || x->extras->options->folds_by_walk;
  const Owed o
      = { .plan = x->plan,
          .roles = x->role_calls,
          .is_by_stage = !is_plain && x->plan->n_roles == ls_mesh_binding_stages (x->plan->by_mesh) };
  g_autofree uint8_t *slot = slots_of_comms (x->plan);
  return slot && check_calls (&o, slot) && check_transfers (&o) ? g_steal_pointer (&slot) : NULL;
}

/* See Refine.peers, newly allocated. */
static uint8_t *
peers_of (const Run *x)
{
  uint8_t *peers = g_new0 (uint8_t, x->plan->n_roles + 1);
  for (uint32_t r = 0; r < x->plan->n_roles; r++)
    for (int p = 0; p < 2; p++)
      if (x->role_calls[r].id[SENDS + p] != 0 || x->role_calls[r].id[RECEIVES + p] != 0)
        peers[r] |= (uint8_t) (1 << p);
  return peers;
}

/* ---- classes ---- */

bool
fold_classes (Run *x, bool is_one, FoldClasses *ret)
{
  g_autofree uint8_t *slot = fold_owed (x), *peers = peers_of (x);
  Blocks b = { .x = x, .plan = x->plan, .roles = x->role_calls, .peers = peers, .is_one = is_one };
  bool ok = slot && blocks_init (&b, slot);
  ok = ok && blocks_classify (&b, slot, ret);
  ls_arena_free (b.arena);
  return ok;
}
