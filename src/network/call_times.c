#include "network/call_times.h"

#include "cluster/lie.h"

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
  GHashTable *known; /* Key -> LsTime *                          */
  GHashTable *lies;  /* LsCluster -> LsLie *; NULL: it has none */
};

static void
lie_free (gpointer lie)
{
  if (!lie)
    return;
  ls_lie_clear (lie);
  g_free (lie);
}

static LsCallTimes *
times_new (const LsNccl *nccl, LsTime (*time) (const LsCluster *, const LsCollPlan *))
{
  LsCallTimes *times = g_new (LsCallTimes, 1);
  *times = (LsCallTimes) { nccl, time, g_hash_table_new_full (key_hash, key_equal, g_free, g_free),
                           g_hash_table_new_full (NULL, NULL, NULL, lie_free) };
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
  g_hash_table_unref (times->lies);
  g_free (times);
}

/* NULL: the cluster is not one of places. */
static LsLie *
lie_in (LsCallTimes *times, const LsCluster *cluster)
{
  gpointer known;
  if (g_hash_table_lookup_extended (times->lies, cluster, NULL, &known))
    return known;
  LsLie made, *lie = ls_lie_init (&made, cluster) ? g_memdup2 (&made, sizeof made) : NULL;
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
  bool is_torus = spec->interior == LS_INTERIOR_TORUS,
       is_inside = !ls_cluster_has_faults (spec) && !spec->others;
  for (uint32_t i = 1; i < n && is_inside; i++)
    is_inside = ls_cluster_host_of (cluster, gpus[i]) == node;
  return is_inside && is_torus
      ? torus_places (&spec->torus, gpus, n, spec->gpus_per_node)
      : own_places (gpus, n, is_inside, is_inside ? ls_cluster_gpu_at (cluster, node, 0) : 0);
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
  const Key key = { cluster, bytes, (uint64_t) kind, where_of (times, cluster, gpus, n) };
  const LsTime *known = g_hash_table_lookup (times->known, &key);
  if (known)
    return *known;
  LsTime time
      = plan_call (times, cluster, &(LsCollRequest) { .kind = kind, .gpus = gpus, .n = n, .bytes = bytes });
  g_hash_table_insert (times->known, g_memdup2 (&key, sizeof key), g_memdup2 (&time, sizeof time));
  return time;
}
