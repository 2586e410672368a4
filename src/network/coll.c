#include "network/coll.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/maxmin.h" /* LS_COEF_ONE */
#include "network/algorithm.h"

/* Ties go to the first. */
static const LsCollAlgorithm *const registry[] = {
  &ls_coll_ring,
  &ls_coll_nvls,
  &ls_coll_p2p,
};

static const char *const kind_names[LS_N_COLL_KINDS] = {
  [LS_COLL_ALL_REDUCE] = "all-reduce",         [LS_COLL_ALL_GATHER] = "all-gather",
  [LS_COLL_REDUCE_SCATTER] = "reduce-scatter", [LS_COLL_BROADCAST] = "broadcast",
  [LS_COLL_SEND_RECV] = "send-recv",
};

const char *
ls_coll_kind_name (LsCollKind kind)
{
  g_assert (kind < LS_N_COLL_KINDS);
  return kind_names[kind];
}

double
ls_coll_wire_factor (LsCollKind kind, uint32_t n)
{
  if (n < 2)
    return 0;
  switch (kind) {
  case LS_COLL_ALL_REDUCE:
    return 2.0 * (n - 1) / n;
  case LS_COLL_ALL_GATHER:
  case LS_COLL_REDUCE_SCATTER:
    return (n - 1.0) / n;
  default:
    return 1;
  }
}

static int
by_gpu (const void *a, const void *b)
{
  uint32_t x = *(const uint32_t *) a, y = *(const uint32_t *) b;
  return (x > y) - (x < y);
}

static void
group_by_host (LsCollCall *call)
{
  uint32_t *sorted = ls_arena_new_array (call->arena, uint32_t, call->n);
  memcpy (sorted, call->gpus, call->n * sizeof *sorted);
  qsort (sorted, call->n, sizeof *sorted, by_gpu);

  call->hosts = ls_arena_new_array (call->arena, LsCollHost, MIN (call->n, call->cluster->spec.n_nodes));
  for (uint32_t i = 0; i < call->n; i++) {
    g_assert (sorted[i] < call->cluster->n_gpus && (i == 0 || sorted[i] != sorted[i - 1]));
    if (i == 0
        || ls_cluster_host_of (call->cluster, sorted[i]) != ls_cluster_host_of (call->cluster, sorted[i - 1]))
      call->hosts[call->n_hosts++].gpus = &sorted[i];
    call->hosts[call->n_hosts - 1].n++;
  }
}

/* What one flow gets while nothing else moves. */
static double
rate_alone (const LsCluster *c, const LsPhase *phase)
{
  double rate = phase->rate_cap;
  for (uint32_t i = 0; i < phase->n_loads; i++) {
    double flows = (double) phase->loads[i].coef / (double) LS_COEF_ONE;
    rate = fmin (rate, ls_cluster_resource_capacity (c, phase->loads[i].resource) / flows);
  }
  return rate;
}

/* At most LS_TIME_NEVER. */
static LsTime
add_times (LsTime a, LsTime b)
{
  return a > LS_TIME_NEVER - b ? LS_TIME_NEVER : a + b;
}

static LsTime
phase_alone (const LsCluster *c, const LsPhase *phase)
{
  LsTime moving
      = phase->demand_bytes > 0 ? ls_time_from_s_up (phase->demand_bytes / rate_alone (c, phase)) : 0;
  return add_times (phase->latency, moving);
}

LsTime
ls_coll_time_alone (const LsCluster *c, const LsCollPlan *plan)
{
  LsTime t = 0;
  for (uint32_t i = 0; i < plan->n_phases; i++)
    t = add_times (t, phase_alone (c, &plan->phases[i]));
  return t;
}

static void
share_nothing (const LsCluster *c, LsCollPlan *plan)
{
  for (uint32_t i = 0; i < plan->n_phases; i++) {
    LsPhase *phase = &plan->phases[i];
    phase->rate_cap = rate_alone (c, phase);
    phase->n_loads = 0;
    phase->loads = NULL;
  }
}

static LsCollPlan *
fastest (const LsCollCall *call)
{
  LsCollPlan *best = NULL;
  LsTime best_time = 0;
  for (size_t i = 0; i < G_N_ELEMENTS (registry); i++) {
    if (!registry[i]->applies (call))
      continue;
    LsCollPlan *plan = ls_arena_new_array (call->arena, LsCollPlan, 1);
    plan->algorithm = registry[i]->name;
    plan->protocol = "Simple";
    registry[i]->plan (call, plan);
    LsTime time = ls_coll_time_alone (call->cluster, plan);
    if (!best || time < best_time) {
      best = plan;
      best_time = time;
    }
  }
  g_assert (best);
  return best;
}

LsCollPlan *
ls_coll_plan (const LsCluster *c, const LsNccl *nccl, LsCollKind kind, const uint32_t *gpus, uint32_t n,
              uint64_t bytes, LsNetworkFidelity fidelity, LsArena *arena)
{
  g_assert (kind < LS_N_COLL_KINDS && n > 0);
  if (n == 1) {
    LsCollPlan *nothing = ls_arena_new_array (arena, LsCollPlan, 1);
    nothing->algorithm = nothing->protocol = "";
    return nothing;
  }

  LsCollCall call
      = { .cluster = c, .nccl = nccl, .kind = kind, .gpus = gpus, .n = n, .bytes = bytes, .arena = arena };
  group_by_host (&call);
  LsCollPlan *plan = fastest (&call);
  if (fidelity == LS_NETWORK_ALPHABETA)
    share_nothing (c, plan);
  return plan;
}
