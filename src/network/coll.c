#include "network/coll.h"

#include <math.h>
#include <string.h>

#include "base/handover.h"
#include "network/algorithm.h"

/* Ties go to the first. */
static const LsCollAlgorithm *const registry[LS_N_ALGORITHMS - 1] = {
  [LS_ALGORITHM_RING - 1] = &ls_coll_ring,
  [LS_ALGORITHM_TREE - 1] = &ls_coll_tree,
  [LS_ALGORITHM_NVLS - 1] = &ls_coll_nvls,
  [LS_ALGORITHM_NVLS_TREE - 1] = &ls_coll_nvls_tree,
  [LS_ALGORITHM_P2P - 1] = &ls_coll_p2p,
  [LS_ALGORITHM_SHIFT - 1] = &ls_coll_shift,
  [LS_ALGORITHM_PAIRWISE - 1] = &ls_coll_pairwise,
  [LS_ALGORITHM_DIRECT - 1] = &ls_coll_direct,
  [LS_ALGORITHM_DISSEMINATION - 1] = &ls_coll_dissemination,
  [LS_ALGORITHM_HIERARCHICAL - 1] = &ls_coll_hierarchical,
  [LS_ALGORITHM_HALVING - 1] = &ls_coll_halving,
  [LS_ALGORITHM_COLLNET - 1] = &ls_coll_collnet,
  [LS_ALGORITHM_PAT - 1] = &ls_coll_pat,
  [LS_ALGORITHM_SERVER - 1] = &ls_coll_server,
  [LS_ALGORITHM_NAIVE - 1] = &ls_coll_naive,
  [LS_ALGORITHM_TORUS - 1] = &ls_coll_torus,
  [LS_ALGORITHM_DISPATCH - 1] = &ls_coll_dispatch,
  [LS_ALGORITHM_COMBINE - 1] = &ls_coll_combine,
};

const char *const *
ls_coll_algorithms (void)
{
  static const char *names[G_N_ELEMENTS (registry) + 1];
  static gsize is_filled;
  if (ls_once_enter (&is_filled)) {
    for (size_t i = 0; i < G_N_ELEMENTS (registry); i++)
      names[i] = registry[i]->name;
    ls_once_leave (&is_filled);
  }
  return names;
}

const char *
ls_coll_algorithm_name (LsAlgorithm algorithm)
{
  g_assert (algorithm < LS_N_ALGORITHMS);
  return algorithm == LS_ALGORITHM_CHOOSE ? NULL : registry[algorithm - 1]->name;
}

bool
ls_coll_algorithm_find (const char *name, LsAlgorithm *ret)
{
  for (size_t i = 0; i < G_N_ELEMENTS (registry); i++)
    if (strcmp (registry[i]->name, name) == 0) {
      *ret = (LsAlgorithm) (i + 1);
      return true;
    }
  return false;
}

uint32_t
ls_coll_kinds (const LsCluster *c, const uint32_t *gpus, uint32_t n)
{
  uint32_t kinds = 0;
  for (uint32_t i = 0; i < n && c->kind_of_host; i++)
    kinds |= 1u << ls_cluster_kind_of (c, ls_cluster_host_of (c, gpus[i]));
  return kinds == 0 ? 1 : kinds;
}

static LsCollCall
call_of (const LsCluster *c, const LsNccl *nccl, const LsCollRequest *q, LsArena *arena)
{
  g_assert (q->kind < LS_N_COLL_KINDS && q->n > 0);
  g_assert (!ls_coll_kind_has_root (q->kind) || q->root < q->n);
  const LsNccl *own = ls_nccl_among (nccl, ls_coll_kinds (c, q->gpus, q->n));
  const uint32_t max_ctas = q->max_ctas > 0 ? q->max_ctas : own->max_ctas;
  LsCollCall call = { .cluster = c,
                      .nccl = max_ctas > 0 ? ls_nccl_with_ctas (own, max_ctas, arena) : own,
                      .kind = q->kind,
                      .gpus = q->gpus,
                      .n = q->n,
                      .arena = arena,
                      .asked = *q };
  call.root = ls_coll_kind_has_root (q->kind) ? q->root : 0;
  call.bytes = q->kind == LS_COLL_BARRIER ? 0 : q->bytes;
  call.protocol = q->protocol;
  call.weights = q->kind == LS_COLL_ALL_TO_ALL ? q->weights : NULL;
  if (call.weights && !ls_cluster_traits (&c->spec)->has_nccl) { /* knows equal parts only */
    call.bytes = (uint64_t) ceil ((double) call.bytes * ls_coll_busiest_over_mean (&call));
    call.weights = NULL;
  }
  ls_coll_take_seats (&call);
  return call;
}

/* What one flow gets while nothing else moves, of the resources below n. */
static double
rate_alone (const LsCluster *c, const LsPhase *phase, uint32_t n)
{
  bool is_known = phase->loads_rate > 0 && n == ls_cluster_n_resources (c);
  return fmin (phase->rate_cap,
               is_known ? phase->loads_rate : ls_loads_rate (c, phase->loads, phase->n_loads, n));
}

/* At most LS_TIME_NEVER. */
static LsTime
add_times (LsTime a, LsTime b)
{
  return a > LS_TIME_NEVER - b ? LS_TIME_NEVER : a + b;
}

static LsTime
time_alone (const LsCluster *c, const LsCollPlan *plan, uint32_t n)
{
  LsTime t = 0;
  for (uint32_t i = 0; i < plan->n_phases; i++) {
    const LsPhase *p = &plan->phases[i];
    LsTime moving = p->demand_bytes > 0 ? ls_time_from_s_up (p->demand_bytes / rate_alone (c, p, n)) : 0;
    t = add_times (t, add_times (p->latency, moving));
  }
  return t;
}

LsTime
ls_coll_time_alone (const LsCluster *c, const LsCollPlan *plan)
{
  return time_alone (c, plan, ls_cluster_n_resources (c));
}

LsTime
ls_coll_time_on_links (const LsCluster *c, const LsCollPlan *plan)
{
  return time_alone (c, plan, c->n_trunks);
}

/* Where there is no NCCL there are other algorithms, and elsewhere never these. */
static bool
applies (const LsCollAlgorithm *a, const LsCollCall *call, uint32_t kinds)
{
  if (a->is_of_ici == ls_cluster_traits (&call->cluster->spec)->has_nccl)
    return false;
  if (a->only_simple && (call->protocol == LS_PROTOCOL_LL || call->protocol == LS_PROTOCOL_LL128))
    return false;
  return (kinds & LS_COLL_BIT (call->kind)) != 0 && (!a->applies || a->applies (call));
}

static const LsCollAlgorithm *
find_algorithm (const char *name)
{
  LsAlgorithm number;
  return ls_coll_algorithm_find (name, &number) ? registry[number - 1] : NULL;
}

static void
plan_by_rounds (const LsCollAlgorithm *a, const LsCollCall *call, LsCollPlan *plan)
{
  LsScript s = ls_script_of (call);
  a->script (call, &s);
  uint64_t flows = s.flows; /* of a message: so many ways */
  ls_script_like_p2p (call, &s);
  s.flows = flows;
  ls_plan_of_rounds (call, &s, plan);
}

/* Once for calls of one memo. */
static const uint32_t *
alike_of (const LsCollAlgorithm *a, const LsCollCall *call, const LsCollPeriod *period)
{
  LsCollMemo *memo = call->asked.memo;
  if (!memo)
    return a->alike (call, period, call->arena);
  if (!memo->has_alike)
    memo->alike = a->alike (call, period, memo->arena);
  memo->has_alike = true;
  return memo->alike;
}

static bool
find_period (const LsCollAlgorithm *a, const LsCollCall *call, const LsPlaces *places, LsCollPeriod *ret)
{
  bool turns = a->turns && !ls_coll_kind_has_root (call->kind);
  if (!places || (!turns && !a->alike) || !ls_coll_period (call, places, ret))
    return false;
  ret->like = turns ? NULL : alike_of (a, call, ret);
  return turns || ret->like;
}

/* Of one period, where that will do. */
static LsCollCall
loaded_part (const LsCollAlgorithm *a, const LsCollCall *call, const LsPlaces *places)
{
  LsCollCall part = *call;
  LsCollPeriod *period = ls_arena_new_array (call->arena, LsCollPeriod, 1);
  part.algorithm = a;
  part.places = places;
  part.period = find_period (a, call, places, period) ? period : NULL;
  return part;
}

static LsCollPlan *
plan_by (const LsCollAlgorithm *a, const LsCollCall *whole, const LsPlaces *places)
{
  LsCollCall part = loaded_part (a, whole, places), *call = &part;
  LsCollPlan *plan = ls_arena_new_array (call->arena, LsCollPlan, 1);
  plan->algorithm = a->name;
  plan->protocol = ls_protocol_names[call->protocol];
  plan->array_bytes = (double) call->bytes;
  plan->n_periods = call->period ? call->period->n : 1;
  plan->like_period = call->period ? call->period->like : NULL;
  if (a->plan)
    a->plan (call, plan);
  else
    plan_by_rounds (a, call, plan);
  return plan;
}

/* Whether it may run without being asked for: NCCL_ALGO may leave it out; where it leaves none, rings run. */
static bool
is_automatic (const LsCollAlgorithm *a, const LsCollCall *call)
{
  const uint8_t without = call->nccl->no_algorithms[call->kind];
  const bool does_apply
      = (!a->is_of_tuner || ls_nccl_has_tuner (call->nccl)) && applies (a, call, a->automatic);
  if (!does_apply || !without)
    return does_apply;
  bool is_left_out = false, is_any_left = false;
  for (LsTuneAlgorithm t = 0; t < LS_N_TUNE_ALGORITHMS; t++) {
    const LsCollAlgorithm *other = find_algorithm (ls_tune_algorithm_names[t]);
    is_left_out = is_left_out || (a == other && without >> t & 1);
    is_any_left = is_any_left || (other && !(without >> t & 1) && applies (other, call, other->automatic));
  }
  return is_any_left ? !is_left_out : a == find_algorithm (ls_tune_algorithm_names[LS_TUNE_RING]);
}

static LsCollPlan *
fastest (const LsCollCall *call, const LsPlaces *places)
{
  LsCollPlan *best = NULL;
  LsTime best_time = 0;
  for (size_t i = 0; i < G_N_ELEMENTS (registry); i++) {
    if (!is_automatic (registry[i], call))
      continue;
    LsCollPlan *plan = plan_by (registry[i], call, places);
    LsTime time = ls_coll_time_alone (call->cluster, plan);
    if (!best || time < best_time) {
      best = plan;
      best_time = time;
    }
  }
  g_assert (best);
  return best;
}

/* Its algorithm; none is planned where there is no choice. */
static const LsCollAlgorithm *
fastest_algorithm (const LsCollCall *call)
{
  const LsCollAlgorithm *last = NULL;
  guint n = 0;
  for (size_t i = 0; i < G_N_ELEMENTS (registry); i++)
    if (is_automatic (registry[i], call)) {
      last = registry[i];
      n++;
    }
  return n == 1 ? last : find_algorithm (fastest (call, NULL)->algorithm);
}

bool
ls_coll_applies (const LsCluster *c, const LsNccl *nccl, const LsCollRequest *request)
{
  if (!request->algorithm || request->n == 1)
    return true;
  g_autoptr (LsArena) arena = ls_arena_new ();
  LsCollCall call = call_of (c, nccl, request, arena);
  const LsCollAlgorithm *a = find_algorithm (request->algorithm);
  return a && applies (a, &call, a->kinds);
}

const char *
ls_coll_lacks_protocol (const LsCluster *c, const LsNccl *nccl, const LsCollRequest *request)
{
  g_autoptr (LsArena) arena = ls_arena_new ();
  LsCollCall call = call_of (c, nccl, request, arena);
  return ls_nccl_lacks_protocol (&call);
}

char *
ls_coll_rule (const char *algorithm)
{
  const LsCollAlgorithm *a = find_algorithm (algorithm);
  g_assert (a);
  GString *rule = g_string_new (NULL);
  for (int kind = 0; kind < LS_N_COLL_KINDS; kind++)
    if (a->kinds & LS_COLL_BIT (kind))
      g_string_append_printf (rule, "%s%s", rule->len > 0 ? ", " : "", ls_coll_kind_name ((LsCollKind) kind));
  if (a->only_simple)
    g_string_append (rule, ", only with Simple");
  if (a->wants)
    g_string_append_printf (rule, "; it wants %s", a->wants);
  return g_string_free (rule, FALSE);
}

/* Those of which fastest() tries the plans. */
static gboolean
all_are_small (const LsCollCall *call, GError **error)
{
  for (size_t i = 0; i < G_N_ELEMENTS (registry); i++)
    if (is_automatic (registry[i], call) && !ls_coll_plan_is_small (call, registry[i], error))
      return FALSE;
  return TRUE;
}

/* Bits of what the tuner may choose from: what is asked for, else all that apply. A protocol that
 * it finds best for what does not run would be wrong for what runs in its place. */
static uint32_t
tuner_may_choose (const LsCollCall *call, const LsCollAlgorithm *asked)
{
  uint32_t bits = 0;
  for (LsTuneAlgorithm t = 0; t < LS_N_TUNE_ALGORITHMS; t++) {
    const LsCollAlgorithm *a = find_algorithm (ls_tune_algorithm_names[t]);
    if (a && (asked ? a == asked : is_automatic (a, call)))
      bits |= 1u << t;
  }
  return bits;
}

bool
ls_coll_is_of_tuner (const LsCluster *c, const LsNccl *nccl, const LsCollRequest *request)
{
  g_autoptr (LsArena) arena = ls_arena_new ();
  LsCollCall call = call_of (c, nccl, request, arena);
  const LsCollAlgorithm *a = find_algorithm (request->algorithm);
  LsTuneAlgorithm chosen;
  return a && applies (a, &call, a->kinds) && !ls_nccl_lacks_protocol (&call)
      && ls_nccl_choose (&call, tuner_may_choose (&call, a), &chosen);
}

/* The protocol, and the algorithm if NCCL's tuner or the request knows it. */
static const LsCollAlgorithm *
settle (const LsCollRequest *request, LsCollCall *call)
{
  const LsCollAlgorithm *a = request->algorithm ? find_algorithm (request->algorithm) : NULL;
  LsTuneAlgorithm chosen;
  g_assert (!request->algorithm || (a && applies (a, call, a->kinds)));
  if (ls_nccl_choose (call, tuner_may_choose (call, a), &chosen) && !a)
    a = find_algorithm (ls_tune_algorithm_names[chosen]);
  if (call->protocol == LS_PROTOCOL_AUTO)
    call->protocol = ls_nccl_p2p_protocol (call);
  return a;
}

LsCollPlan *
ls_coll_plan (const LsCluster *c, const LsNccl *nccl, const LsCollRequest *request,
              LsNetworkFidelity fidelity, LsArena *arena)
{
  if (request->n == 1) {
    LsCollPlan *nothing = ls_arena_new_array (arena, LsCollPlan, 1);
    nothing->algorithm = nothing->protocol = "";
    nothing->n_periods = 1;
    return nothing;
  }
  LsCollCall call = call_of (c, nccl, request, arena);
  const LsCollAlgorithm *a = settle (request, &call);
  LsCollPlan *plan = a ? plan_by (a, &call, request->places) : fastest (&call, request->places);
  bool shares_nothing = fidelity == LS_NETWORK_ALPHABETA || request->is_light;
  for (uint32_t i = 0; i < plan->n_phases && shares_nothing; i++)
    plan->phases[i].rate_cap = rate_alone (c, &plan->phases[i], ls_cluster_n_resources (c));
  for (uint32_t i = 0; i < plan->n_phases && (shares_nothing || request->is_tiny); i++) {
    plan->phases[i].n_loads = 0;
    plan->phases[i].loads = NULL;
    plan->phases[i].loads_rate = 0;
  }
  return plan;
}

const LsScript *
ls_coll_script (const LsCluster *c, const LsNccl *nccl, const LsCollRequest *request, LsArena *arena)
{
  LsCollCall *call = ls_arena_new_array (arena, LsCollCall, 1);
  LsCollRequest own = *request;
  own.memo = NULL; /* the script outlives it */
  *call = call_of (c, nccl, &own, arena);
  LsScript *s = ls_arena_new_array (arena, LsScript, 1);
  *s = ls_script_of (call);
  if (call->n == 1)
    return s;
  const LsCollAlgorithm *a = settle (request, call);
  call->algorithm = a ? a : fastest_algorithm (call);
  call->algorithm->script (call, s);
  return s;
}

gboolean
ls_coll_check_size (const LsCluster *c, const LsNccl *nccl, const LsCollRequest *request,
                    LsNetworkFidelity fidelity, GError **error)
{
  if (request->n == 1)
    return TRUE;
  g_autoptr (LsArena) arena = ls_arena_new ();
  LsCollCall call = call_of (c, nccl, request, arena);
  const LsCollAlgorithm *a = settle (request, &call);
  if (!(a ? ls_coll_plan_is_small (&call, a, error) : all_are_small (&call, error)))
    return FALSE;
  if (fidelity != LS_NETWORK_STEP)
    return TRUE;
  LsScript s = ls_script_of (&call);
  call.algorithm = a ? a : fastest_algorithm (&call);
  call.algorithm->script (&call, &s);
  return ls_coll_script_is_small (&call, call.algorithm, &s, error);
}

/* No gaps: hashed and compared as bytes. */
typedef struct {
  const LsCluster *cluster;
  uint64_t bytes, kind;
  LsSig where;
} Key;

LS_DEFINE_BYTES_KEY (key, Key)

struct LsCallTimes {
  const LsNccl *nccl;
  LsTime (*time) (const LsCluster *, const LsCollPlan *);
  LsArena *arena;    /* of all of it                             */
  GHashTable *known; /* Key -> LsTime *                          */
  GHashTable *lies;  /* LsCluster -> LsLie *; NULL: it has none */
};

LsCallTimes *
ls_call_times_new (const LsNccl *nccl, bool on_links)
{
  LsArena *arena = ls_arena_new ();
  LsCallTimes *times = ls_arena_new_array (arena, LsCallTimes, 1);
  *times = (LsCallTimes) { nccl, on_links ? ls_coll_time_on_links : ls_coll_time_alone, arena,
                           ls_arena_table (arena, key_hash, key_equal), ls_arena_table (arena, NULL, NULL) };
  return times;
}

void
ls_call_times_free (LsCallTimes *times)
{
  if (times)
    ls_arena_free (times->arena);
}

static void
lie_clear (gpointer lie)
{
  ls_lie_clear (lie);
}

/* NULL: the cluster is not one of places. */
static LsLie *
lie_in (LsCallTimes *times, const LsCluster *cluster)
{
  gpointer known;
  if (g_hash_table_lookup_extended (times->lies, cluster, NULL, &known))
    return known;
  LsLie *lie = ls_arena_new_array (times->arena, LsLie, 1);
  lie = ls_lie_init (lie, cluster) ? ls_arena_own (times->arena, lie, lie_clear) : NULL;
  g_hash_table_insert (times->lies, (gpointer) cluster, lie);
  return lie;
}

/* In one slice, as steps along the axes from the first member. */
static LsSig
torus_places (const LsTorusSpec *t, const uint32_t *gpus, uint32_t n, uint32_t per_slice)
{
  LsTorusCoord first = ls_torus_coord (t, gpus[0] % per_slice);
  LsSig where = ls_sig_of (n);
  for (uint32_t i = 0; i < n; i++) {
    LsTorusCoord at = ls_torus_coord (t, gpus[i] % per_slice);
    for (int axis = 0; axis < LS_TORUS_AXES; axis++) {
      uint32_t step = at.at[axis] - first.at[axis]; /* below 0: a large number of its own */
      ls_sig_add (&where, step);
    }
  }
  return where;
}

/* In one node from its first GPU on; elsewhere they are who they are. */
static LsSig
own_places (const uint32_t *gpus, uint32_t n, bool is_inside, uint32_t from)
{
  LsSig where = ls_sig_of (is_inside ? UINT64_C (2) << 32 | n : UINT64_C (1) << 32 | n);
  for (uint32_t i = 0; i < n; i++)
    ls_sig_add (&where, gpus[i] - from);
  return where;
}

static LsSig
where_of (LsCallTimes *times, const LsCluster *cluster, const uint32_t *gpus, uint32_t n)
{
  const LsClusterSpec *spec = &cluster->spec;
  LsLie *lie = lie_in (times, cluster);
  if (lie)
    return ls_lie_of (lie, NULL, gpus, n);
  uint32_t node = ls_cluster_host_of (cluster, gpus[0]);
  bool is_slice = ls_cluster_traits (spec)->is_slice,
       is_inside = !ls_cluster_has_faults (spec) && !spec->others;
  for (uint32_t i = 1; i < n && is_inside; i++)
    is_inside = ls_cluster_host_of (cluster, gpus[i]) == node;
  return is_inside && is_slice
      ? torus_places (&spec->torus, gpus, n, spec->gpus_per_node)
      : own_places (gpus, n, is_inside, is_inside ? ls_cluster_gpu_at (cluster, node, 0) : 0);
}

LsTime
ls_call_time (LsCallTimes *times, const LsCluster *cluster, LsCollKind kind, uint64_t bytes,
              const uint32_t *gpus, uint32_t n)
{
  const Key key = { cluster, bytes, (uint64_t) kind, where_of (times, cluster, gpus, n) };
  const LsTime *known = g_hash_table_lookup (times->known, &key);
  if (known)
    return *known;
  const LsCollRequest request = { .kind = kind, .gpus = gpus, .n = n, .bytes = bytes };
  g_autoptr (LsArena) arena = ls_arena_new ();
  LsTime time = 0;
  if (ls_coll_applies (cluster, times->nccl, &request)
      && ls_coll_check_size (cluster, times->nccl, &request, LS_NETWORK_FLOW, NULL))
    time = times->time (cluster, ls_coll_plan (cluster, times->nccl, &request, LS_NETWORK_FLOW, arena));
  Key *own_key = ls_arena_new_array (times->arena, Key, 1);
  LsTime *own_time = ls_arena_new_array (times->arena, LsTime, 1);
  *own_key = key;
  *own_time = time;
  g_hash_table_insert (times->known, own_key, own_time);
  return time;
}
