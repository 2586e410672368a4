/* bound/bound_comm.c — groups of a pipeline's ranks, each kind of place asked once.
 *
 * Two groups take the same time if one is the other shifted: by whole nodes for a group in a node; along
 * the axes of a torus, the links of which are alike, for one in a slice that goes round no edge that the
 * other does not (cluster/torus.h: a carry from one axis to the next would tell them apart). What is known
 * is thus looked up by the places of the members relative to the first. Elsewhere, and where links are
 * degraded, by the GPUs themselves. */
#include "bound/bound_comm.h"

#include "exec/shortcuts/least.h"

struct BoundMemo {
  const LsNccl *nccl;
  GHashTable *known; /* GBytes -> LsTime * */
};

BoundMemo *
bound_memo_new (const LsNccl *nccl)
{
  BoundMemo *memo = g_new0 (BoundMemo, 1);
  memo->nccl = nccl;
  memo->known = g_hash_table_new_full (g_bytes_hash, g_bytes_equal, (GDestroyNotify) g_bytes_unref, g_free);
  return memo;
}

void
bound_memo_free (BoundMemo *memo)
{
  if (!memo)
    return;
  g_hash_table_unref (memo->known);
  g_free (memo);
}

/* --- one group ------------------------------------------------------------------------------ */

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

/* gpus ascend, but for a message back. */
static GBytes *
key_of (const LsCluster *cluster, LsCollKind kind, uint64_t bytes, const uint32_t *gpus, uint32_t n)
{
  const LsClusterSpec *spec = &cluster->spec;
  uint32_t per_node = spec->gpus_per_node, node = gpus[0] / per_node;
  bool has_faults = spec->faults && spec->faults->len > 0, is_torus = spec->interior == LS_INTERIOR_TORUS, is_inside = !has_faults;
  for (uint32_t i = 1; i < n && is_inside; i++)
    is_inside = gpus[i] / per_node == node;
  const uint64_t head[] = { (uint64_t) (uintptr_t) cluster, bytes, (uint64_t) kind, n, is_inside };
  g_autoptr (GArray) key = g_array_new (FALSE, FALSE, sizeof (uint32_t));
  g_array_append_vals (key, head, 2 * G_N_ELEMENTS (head));
  if (is_inside && is_torus)
    add_torus_places (&spec->torus, gpus, n, per_node, key);
  else
    for (uint32_t i = 0; i < n; i++) {
      uint32_t place = is_inside ? gpus[i] % per_node : gpus[i];
      g_array_append_val (key, place);
    }
  return g_bytes_new (key->data, key->len * sizeof (uint32_t));
}

static LsTime
group_time (const BoundComm *c, LsCollKind kind, uint64_t bytes, const uint32_t *gpus, uint32_t n)
{
  g_autoptr (GBytes) key = key_of (c->cluster, kind, bytes, gpus, n);
  const LsTime *known = g_hash_table_lookup (c->memo->known, key);
  if (known)
    return *known;
  g_autoptr (LsArena) arena = ls_arena_new ();
  const LsCollRequest request = { .kind = kind, .gpus = gpus, .n = n, .bytes = bytes };
  LsTime time = 0;
  if (ls_coll_applies (c->cluster, c->memo->nccl, &request)
      && ls_coll_check_size (c->cluster, c->memo->nccl, &request, LS_NETWORK_FLOW, NULL)) {
    const LsCollPlan *plan = ls_coll_plan (c->cluster, c->memo->nccl, &request, LS_NETWORK_FLOW, arena);
    time = (LsTime) ((double) ls_coll_time_alone (c->cluster, plan) * LS_RATE_ROUNDING);
  }
  g_hash_table_insert (c->memo->known, g_steal_pointer (&key), g_memdup2 (&time, sizeof time));
  return time;
}

/* --- groups of a job ------------------------------------------------------------------------ */

/* Members that are `stride` apart, from the first rank of each stage on (plan/mesh.h). */
static LsTime
fastest (const BoundComm *c, LsCollKind kind, uint64_t bytes, uint32_t n, uint32_t stride)
{
  const LsStrategy *s = c->s;
  uint32_t per_stage = s->tp * s->cp * s->dp;
  LsTime least = LS_TIME_NEVER;
  if (n == 1 || bytes == 0)
    return 0;
  g_autofree uint32_t *gpus = g_new (uint32_t, n);
  for (uint32_t stage = 0; stage < s->pp; stage++) {
    for (uint32_t i = 0; i < n; i++)
      gpus[i] = ls_cluster_gpu_of (&c->cluster->spec, stage * per_stage + i * stride);
    LsTime time = group_time (c, kind, bytes, gpus, n);
    least = MIN (least, time);
  }
  return least;
}

LsTime
bound_tp_time (const BoundComm *c, LsCollKind kind, uint64_t bytes)
{
  return fastest (c, kind, bytes, c->s->tp, 1);
}

LsTime
bound_dp_time (const BoundComm *c, LsCollKind kind, uint64_t bytes)
{
  return fastest (c, kind, bytes, c->s->cp * c->s->dp, c->s->tp);
}

LsTime
bound_send_time (const BoundComm *c, uint64_t bytes)
{
  const LsStrategy *s = c->s;
  uint32_t per_stage = s->tp * s->cp * s->dp;
  LsTime least = LS_TIME_NEVER;
  if (s->pp == 1)
    return 0;
  for (uint32_t from = 0; from < s->pp; from++)
    for (int is_back = 0; is_back < 2; is_back++) {
      uint32_t to = (from + (is_back ? s->pp - 1 : 1)) % s->pp;
      const LsClusterSpec *spec = &c->cluster->spec;
      const uint32_t gpus[] = { ls_cluster_gpu_of (spec, from * per_stage), ls_cluster_gpu_of (spec, to * per_stage) };
      LsTime time = group_time (c, LS_COLL_SEND_RECV, bytes, gpus, 2);
      least = MIN (least, time);
    }
  return least;
}
