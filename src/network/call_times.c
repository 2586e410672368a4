#include "network/call_times.h"

struct LsCallTimes {
  const LsNccl *nccl;
  LsTime (*time) (const LsCluster *, const LsCollPlan *);
  GHashTable *known; /* GBytes -> LsTime * */
};

static LsCallTimes *
times_new (const LsNccl *nccl, LsTime (*time) (const LsCluster *, const LsCollPlan *))
{
  LsCallTimes *times = g_new (LsCallTimes, 1);
  *times = (LsCallTimes) {
    nccl, time, g_hash_table_new_full (g_bytes_hash, g_bytes_equal, (GDestroyNotify) g_bytes_unref, g_free)
  };
  return times;
}

LsCallTimes *
ls_call_times_new (const LsNccl *nccl)
{
  return times_new (nccl, ls_coll_time_alone);
}

LsCallTimes *
ls_call_times_new_on_links (const LsNccl *nccl)
{
  return times_new (nccl, ls_coll_time_on_links);
}

void
ls_call_times_free (LsCallTimes *times)
{
  if (!times)
    return;
  g_hash_table_unref (times->known);
  g_free (times);
}

/* In one slice, as steps along the axes from the first member. */
static void
add_torus_places (const LsTorusSpec *t, const uint32_t *gpus, uint32_t n, uint32_t per_slice, GArray *key)
{
  LsTorusCoord first = ls_torus_coord (t, gpus[0] % per_slice);
  for (uint32_t i = 0; i < n; i++) {
    LsTorusCoord at = ls_torus_coord (t, gpus[i] % per_slice);
    for (int axis = 0; axis < LS_TORUS_AXES; axis++) {
      uint32_t step = at.at[axis] - first.at[axis]; /* below 0: a large number of its own */
      g_array_append_val (key, step);
    }
  }
}

/* As runs of the same step: of each its first, step and number. */
static void
add_runs (const uint32_t *gpus, uint32_t n, uint32_t from, GArray *key)
{
  for (uint32_t i = 0, n_run; i < n; i += n_run) {
    uint32_t step = i + 1 < n ? gpus[i + 1] - gpus[i] : 0;
    for (n_run = 1; i + n_run < n && gpus[i + n_run] - gpus[i + n_run - 1] == step; n_run++)
      ;
    const uint32_t run[] = { gpus[i] - from, step, n_run };
    g_array_append_vals (key, run, G_N_ELEMENTS (run));
  }
}

static GBytes *
key_of (const LsCluster *cluster, LsCollKind kind, uint64_t bytes, const uint32_t *gpus, uint32_t n)
{
  const LsClusterSpec *spec = &cluster->spec;
  uint32_t node = ls_cluster_host_of (cluster, gpus[0]);
  bool has_faults = (spec->faults && spec->faults->len > 0) || spec->others,
       is_torus = spec->interior == LS_INTERIOR_TORUS, is_inside = !has_faults;
  for (uint32_t i = 1; i < n && is_inside; i++)
    is_inside = ls_cluster_host_of (cluster, gpus[i]) == node;
  const uint64_t head[] = { (uint64_t) (uintptr_t) cluster, bytes, (uint64_t) kind, n, is_inside };
  g_autoptr (GArray) key = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  g_array_append_vals (key, head, 2 * G_N_ELEMENTS (head));
  if (is_inside && is_torus)
    add_torus_places (&spec->torus, gpus, n, spec->gpus_per_node, key);
  else
    add_runs (gpus, n, is_inside ? ls_cluster_gpu_at (cluster, node, 0) : 0, key);
  return g_bytes_new (key->data, key->len * sizeof (uint32_t));
}

static LsTime
plan_call (const LsCallTimes *times, const LsCluster *cluster, const LsCollRequest *request)
{
  if (!ls_coll_applies (cluster, times->nccl, request)
      || !ls_coll_check_size (cluster, times->nccl, request, LS_NETWORK_FLOW, NULL))
    return 0;
  g_autoptr (LsArena) arena = ls_arena_new ();
  return times->time (cluster, ls_coll_plan (cluster, times->nccl, request, LS_NETWORK_FLOW, arena));
}

LsTime
ls_call_time (LsCallTimes *times, const LsCluster *cluster, LsCollKind kind, uint64_t bytes,
              const uint32_t *gpus, uint32_t n)
{
  g_autoptr (GBytes) key = key_of (cluster, kind, bytes, gpus, n);
  const LsTime *known = g_hash_table_lookup (times->known, key);
  if (known)
    return *known;
  LsTime time
      = plan_call (times, cluster, &(LsCollRequest) { .kind = kind, .gpus = gpus, .n = n, .bytes = bytes });
  g_hash_table_insert (times->known, g_steal_pointer (&key), g_memdup2 (&time, sizeof time));
  return time;
}
