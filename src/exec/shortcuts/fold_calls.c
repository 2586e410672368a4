/* exec/shortcuts/fold_calls.c — what the programs call, each call lowered for each communicator and
 * channel apart: nothing is assumed to be alike that was not looked at. */

#include <string.h>

#include "exec/replay/calls.h"
#include "exec/shortcuts/shapes.h"
#include "exec/extras.h"

typedef struct {
  Run *x;
  const LsPlan *plan;     /* whole */
  const RoleCalls *roles; /* Run.role_calls */
  GArray *loads;          /* RefineLoad; of resources of the cluster until they are numbered */
  GArray *patterns;       /* uint32_t: where those of the present owner begin in loads       */
  guint first_pattern;    /* since when they are for the same ranks                           */
  uint32_t *first;
  uint32_t (*sends)[3];
  const double *capacity;
  Refine *out;
  bool keeps;                 /* what the calls of these ranks load by pattern: */
  const ShapedCalls *kept[2]; /* of a communicator in the first; to previous and next */
} Lowering;

/* --- what is loaded --------------------------------------------------------------- */

static void
begin_owner (Lowering *l, uint32_t owner)
{
  l->first[owner] = l->loads->len;
  g_array_set_size (l->patterns, 0);
  l->first_pattern = 0;
}

static bool
is_pattern (const Lowering *l, guint pattern, const LsLoad *loads, uint32_t n)
{
  uint32_t from = g_array_index (l->patterns, uint32_t, pattern);
  uint32_t to
      = pattern + 1 < l->patterns->len ? g_array_index (l->patterns, uint32_t, pattern + 1) : l->loads->len;
  if (to - from != n)
    return false;
  const RefineLoad *known = &g_array_index (l->loads, RefineLoad, from);
  for (uint32_t i = 0; i < n; i++)
    if (known[i].resource != loads[i].resource || known[i].coef != loads[i].coef)
      return false;
  return true;
}

/* What follows is for others. */
static uint32_t
begin_partners (Lowering *l)
{
  l->first_pattern = l->patterns->len;
  return l->loads->len;
}

/* Its number among those of the owner; most calls load the same, whatever their size. */
static uint32_t
pattern_of (Lowering *l, const LsLoad *loads, uint32_t n)
{
  if (n == 0)
    return UINT32_MAX;
  for (guint i = l->first_pattern; i < l->patterns->len; i++)
    if (is_pattern (l, i, loads, n))
      return i;
  uint32_t first = l->loads->len, pattern = l->patterns->len;
  g_array_append_val (l->patterns, first);
  g_array_set_size (l->loads, first + n);
  RefineLoad *to = &g_array_index (l->loads, RefineLoad, first);
  for (uint32_t i = 0; i < n; i++)
    to[i] = (RefineLoad) { .coef = loads[i].coef, .resource = loads[i].resource, .pattern = pattern };
  return pattern;
}

/* ret_patterns: [plan->n_phases]. */
static void
add_plan (Lowering *l, CallKey key, const LsCollPlan *plan, uint64_t stall, LsSig *sig,
          uint32_t *ret_patterns)
{
  sig_add_call (sig, key, plan, stall);
  for (uint32_t i = 0; i < plan->n_phases; i++) {
    const LsPhase *p = &plan->phases[i];
    sig_add_phase (sig, p);
    ret_patterns[i] = pattern_of (l, p->loads, p->n_loads);
    ls_sig_add (sig, ret_patterns[i]);
  }
}

/* Calls of these ranks, in the order of the list. */
static bool
lower_calls (Lowering *l, const GArray *keys, const uint32_t *ranks, uint32_t n, LsSig *sig, int kept)
{
  g_autoptr (LsArena) arena = ls_arena_new ();
  g_autoptr (LsCollMemo) memo = n > 2 ? ls_coll_memo_new () : NULL;
  LsArena *lasting = l->keeps ? l->x->arena : arena;
  ShapedCalls *shaped = ls_arena_new_array (lasting, ShapedCalls, 1);
  shaped->calls = ls_arena_new_array (lasting, ShapedCall, keys->len);
  l->kept[kept] = shaped;
  for (guint i = 0; i < keys->len; i++) {
    CallKey key = g_array_index (keys, CallKey, i);
    LsCollRequest request = run_request (l->x, key, ranks, n, memo, arena);
    const LsCollPlan *plan = known_call_plan (l->x, &request, arena, NULL);
    if (!plan)
      return false;
    uint32_t *patterns = ls_arena_new_array (lasting, uint32_t, plan->n_phases);
    add_plan (l, key, plan, call_stall (l->x, key, &request, plan), sig, patterns);
    shaped->calls[shaped->n++] = (ShapedCall) { .key = key, .pattern = patterns };
  }
  return true;
}

/* A quarter of what the run may take: this is there before the run is. */
static bool
has_room (const Lowering *l)
{
  return l->loads->len < UINT32_MAX / 4
      && l->loads->len * sizeof (RefineLoad) < l->x->options.max_memory_bytes / 4;
}

static bool
lower_comm (Lowering *l, uint32_t c, uint8_t slot)
{
  const LsCommunicator comm = ls_plan_communicator (l->plan, c);
  const RoleCalls *role = &l->roles[ls_plan_role (l->plan, ls_comm_rank (&comm, 0))];
  g_autofree uint32_t *ranks = ls_comm_ranks (&comm);
  begin_owner (l, c);
  ls_sig_add (&l->out->comm[c], comm.n_ranks);
  return has_room (l) && lower_calls (l, role->keys[CALLS + slot], ranks, comm.n_ranks, &l->out->comm[c], 0);
}

static void
lower_copies (Lowering *l, const RoleCalls *role, uint32_t rank, LsSig *sig)
{
  for (int d = 0; d < LS_N_COPY_DIRECTIONS; d++) {
    const GArray *keys = role->keys[COPIES + d];
    g_autoptr (LsArena) arena = keys->len > 0 ? ls_arena_new () : NULL;
    for (guint i = 0; i < keys->len; i++) {
      CallKey key = g_array_index (keys, CallKey, i);
      const LsCollPlan *plan = ls_copy_plan (l->x->cluster, ls_plan_gpu (l->plan, rank), (LsCopyDirection) d,
                                             key.bytes, l->x->options.network, arena);
      add_plan (l, key, plan, 0, sig, ls_arena_new_array (arena, uint32_t, plan->n_phases));
    }
  }
}

/* Its kernels, its sends, its copies. */
static bool
lower_rank (Lowering *l, uint32_t rank)
{
  const LsBinding b = ls_plan_binding (l->plan, rank);
  const RoleCalls *role = &l->roles[b.role];
  LsSig *sig = &l->out->rank[rank];
  LsLoad kernel = { ls_cluster_hbm_resource (l->x->cluster, ls_plan_gpu (l->plan, rank)), LS_COEF_ONE };
  begin_owner (l, l->plan->n_comms + rank);
  ls_sig_add (sig, b.role);
  ls_sig_add_double (sig, l->x->options.slow ? l->x->options.slow[rank] : 1);
  ls_sig_add (sig, (uint64_t) (run_kind_of (l->x, l->plan, rank) - l->x->kinds));
  pattern_of (l, &kernel, 1);
  for (int p = 0; p < 2; p++) {
    l->sends[rank][p] = begin_partners (l);
    if (role->id[SENDS + p] != 0
        && !lower_calls (l, role->keys[SENDS + p], (const uint32_t[]) { rank, b.peer[p] }, 2, sig, p))
      return false;
  }
  l->sends[rank][2] = begin_partners (l);
  lower_copies (l, role, rank, sig);
  return true;
}

/* --- numbers for what is loaded ------------------------------------------------------ */

/* Resources are alike only where the same traffic loads them, as much. number: + 1. */
static void
tell_traffic (Lowering *l, const uint32_t *number, FoldClasses *out)
{
  g_autoptr (GArray) others = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  for (uint32_t t = 0; t < l->x->extras->n_traffic; t++) {
    const LsPhase *p = l->x->extras->traffic[t].phase;
    for (uint32_t i = 0; i < p->n_loads; i++) {
      uint32_t at = number[p->loads[i].resource] - 1;
      ls_sig_add (&l->out->resource[at], t);
      ls_sig_add (&l->out->resource[at], p->loads[i].coef);
      g_array_append_val (others, at);
    }
  }
  out->n_others = others->len;
  out->others = (uint32_t *) g_array_free (g_steal_pointer (&others), FALSE);
}

static uint32_t *
number_resources (Lowering *l, FoldClasses *out)
{
  uint32_t n = ls_cluster_n_resources (l->x->cluster), n_loaded = 0;
  g_autofree uint32_t *number = g_new0 (uint32_t, n); /* + 1 */
  uint32_t *resource_of = g_new (uint32_t, n);
  for (guint i = 0; i < l->loads->len; i++)
    number[g_array_index (l->loads, RefineLoad, i).resource] = 1;
  for (uint32_t t = 0; t < l->x->extras->n_traffic; t++)
    for (uint32_t i = 0; i < l->x->extras->traffic[t].phase->n_loads; i++)
      number[l->x->extras->traffic[t].phase->loads[i].resource] = 1;
  for (uint32_t i = 0; i < n; i++)
    if (number[i] > 0) {
      resource_of[n_loaded++] = i;
      number[i] = n_loaded;
    }
  for (guint i = 0; i < l->loads->len; i++) {
    RefineLoad *load = &g_array_index (l->loads, RefineLoad, i);
    load->resource = number[load->resource] - 1;
  }
  LsPlaces at;
  bool has_places = ls_places_init (&at, l->x->cluster), *is_ample = g_new0 (bool, n_loaded + 1);
  l->out->n_resources = n_loaded;
  l->out->is_ample = is_ample;
  l->out->resource = g_new0 (LsSig, n_loaded + 1);
  for (uint32_t i = 0; i < n_loaded; i++) {
    ls_sig_add_double (&l->out->resource[i], l->capacity[resource_of[i]]);
    is_ample[i] = has_places && ls_places_is_ample (&at, l->x->cluster, resource_of[i]);
  }
  tell_traffic (l, number, out);
  return resource_of;
}

static bool
lower_all (Lowering *l, const uint8_t *slot)
{
  for (uint32_t c = 0; c < l->plan->n_comms; c++)
    if (!lower_comm (l, c, slot[c]))
      return false;
  for (uint32_t i = 0; i < l->plan->n_ranks; i++)
    if (!has_room (l) || !lower_rank (l, i))
      return false;
  begin_owner (l, l->plan->n_comms + l->plan->n_ranks); /* none: where the last ends */
  return true;
}

/* Each class stands for itself in the refinement by its first. */
static void
take_classes (const Lowering *l, const uint32_t *resource_of, Classes *c, FoldClasses *ret)
{
  uint32_t n = ls_cluster_n_resources (l->x->cluster);
  ret->has_slots_apart = fold_has_slots_apart (l->out, c->comm);
  ret->n_ranks = c->n_ranks;
  ret->n_comms = c->n_comms;
  ret->n_resources = c->n_resources;
  ret->rank = ls_rank_classes_new (g_steal_pointer (&c->rank), l->plan->n_ranks);
  ret->comm = g_steal_pointer (&c->comm);
  ret->class_of = g_steal_pointer (&c->resource);
  ret->resource = g_new (uint32_t, n);
  memset (ret->resource, 0xff, n * sizeof *ret->resource);
  for (uint32_t i = 0; i < l->out->n_resources; i++)
    ret->resource[resource_of[i]] = ret->class_of[i];
  ret->row_of_rank = g_new (uint32_t, c->n_ranks + 1);
  ret->row_of_comm = g_new (uint32_t, c->n_comms + 1);
  for (uint32_t i = l->plan->n_ranks; i-- > 0;)
    ret->row_of_rank[ls_rank_class (ret->rank, i)] = i;
  for (uint32_t i = l->plan->n_comms; i-- > 0;)
    ret->row_of_comm[ret->comm[i]] = i;
  ret->owner = g_new (uint32_t, (gsize) l->plan->n_comms + l->plan->n_ranks + 1);
  memcpy (ret->owner, ret->comm, l->plan->n_comms * sizeof *ret->owner);
  for (uint32_t i = 0; i < l->plan->n_ranks; i++)
    ret->owner[l->plan->n_comms + i] = ret->n_comms + ls_rank_class (ret->rank, i);
}

/* What each class calls, by those that stand for them, lowered once more: patterns come out as before. */
static void
keep_calls (const Lowering *lowered, const uint8_t *slot, FoldClasses *ret)
{
  const LsPlan *plan = lowered->plan;
  g_autofree uint32_t *first = g_new (uint32_t, (size_t) plan->n_comms + plan->n_ranks + 1);
  g_autofree void *sends = g_malloc_n ((gsize) plan->n_ranks + 1, sizeof *lowered->sends);
  Lowering l = *lowered;
  l.keeps = true;
  l.first = first;
  l.sends = sends;
  l.loads = g_array_new (FALSE, FALSE, sizeof (RefineLoad));
  ret->calls = g_new0 (const ShapedCalls *, ret->n_comms + 2 * (gsize) ret->n_ranks + 1);
  ret->first_pattern = g_new0 (uint32_t, ret->n_comms + 2 * (gsize) ret->n_ranks + 1);
  for (uint32_t i = 0; i < ret->n_comms; i++) {
    lower_comm (&l, ret->row_of_comm[i], slot[ret->row_of_comm[i]]);
    ret->calls[i] = l.kept[0];
  }
  for (uint32_t i = 0; i < ret->n_ranks; i++) {
    l.kept[0] = l.kept[1] = NULL;
    lower_rank (&l, ret->row_of_rank[i]);
    memcpy (&ret->calls[ret->n_comms + 2 * i], l.kept, sizeof l.kept);
  }
  g_array_unref (l.loads);
}

bool
fold_by_walk (Run *x, const double *capacity, FoldClasses *out)
{
  const LsPlan *plan = x->plan;
  g_autofree uint8_t *slot = fold_owed (x), *peers = fold_peers (x);
  if (!slot)
    return false;
  Refine *r = g_new0 (Refine, 1);
  *out = (FoldClasses) { .refine = r };
  r->n_ranks = plan->n_ranks;
  r->n_comms = plan->n_comms;
  r->bindings = ls_plan_bindings (plan, x->arena);
  r->peers = peers;
  r->rank = g_new0 (LsSig, plan->n_ranks + 1);
  r->comm = g_new0 (LsSig, plan->n_comms + 1);
  Lowering l = { .x = x, .plan = plan, .roles = x->role_calls, .capacity = capacity, .out = r };
  l.loads = g_array_new (FALSE, FALSE, sizeof (RefineLoad));
  l.patterns = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  out->sends = l.sends = g_malloc0_n ((gsize) plan->n_ranks + 1, sizeof *l.sends);
  r->first = l.first = g_new0 (uint32_t, (size_t) plan->n_comms + plan->n_ranks + 1);
  bool ok = lower_all (&l, slot);
  g_autofree uint32_t *resource_of = ok ? number_resources (&l, out) : NULL;
  r->loads = (RefineLoad *) g_array_free (l.loads, FALSE);
  if (ok) {
    Classes c = refine (r);
    take_classes (&l, resource_of, &c, out);
    classes_clear (&c);
    keep_calls (&l, slot, out);
  }
  g_array_unref (l.patterns);
  return ok;
}
