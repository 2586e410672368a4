/* bound/bound_comm.c — what collectives and messages of a job's stages take at least. */
#include "bound/bound_parts.h"

#include <string.h>

#include "base/digest.h"
#include "exec/shortcuts/plan_bound.h"

typedef enum { GROUP_TP, GROUP_COPIES, GROUP_EXPERTS, GROUP_EXPERT_TP, GROUP_EXPERT_COPIES } Group;

/* A call of the groups of a mesh whose ranks lie node after node. No gaps: hashed and compared as bytes. */
typedef struct {
  const LsCluster *cluster;
  uint64_t bytes;
  LsMesh mesh;
  uint32_t kind, group;
} GroupKey;

LS_DEFINE_BYTES_KEY (group_key, GroupKey)

struct BoundTimes {
  LsCallTimes *calls;
  GHashTable *groups; /* GroupKey -> LsTime * */
};

BoundTimes *
bound_times_new (const LsNccl *nccl)
{
  BoundTimes *times = g_new (BoundTimes, 1);
  times->calls = ls_call_times_new_on_links (nccl);
  times->groups = g_hash_table_new_full (group_key_hash, group_key_equal, g_free, g_free);
  return times;
}

void
bound_times_free (BoundTimes *times)
{
  ls_call_times_free (times->calls);
  g_hash_table_unref (times->groups);
  g_free (times);
}

/* As the replay may round its rates. */
static LsTime
group_time (const BoundComm *c, LsCollKind kind, uint64_t bytes, const uint32_t *gpus, uint32_t n)
{
  return (LsTime) ((double) ls_call_time (c->times->calls, c->cluster, kind, bytes, gpus, n)
                   * LS_RATE_ROUNDING);
}

static uint32_t
gpu_of (const BoundComm *c, uint32_t rank)
{
  return c->gpus ? c->gpus[rank] : ls_cluster_gpu_of (&c->cluster->spec, rank);
}

/* The i-th of those with the rank of a stage. */
static uint32_t
member (const LsMesh *mesh, uint32_t stage, Group group, uint32_t i)
{
  LsCoord at = { .pp = stage, .tp = group == GROUP_TP ? i : 0 };
  if (group == GROUP_TP || group == GROUP_COPIES)
    return ls_mesh_rank (mesh, group == GROUP_COPIES ? ls_mesh_at_copy (mesh, at, i) : at);
  LsExpertCoord expert = ls_mesh_expert_coord (mesh, ls_mesh_rank (mesh, at));
  *(group == GROUP_EXPERTS ? &expert.ep : group == GROUP_EXPERT_TP ? &expert.etp : &expert.edp) = i;
  return ls_mesh_expert_rank (mesh, expert);
}

/* Of the ranks of a group, in order of rank. */
static LsTime
fastest_of (const BoundComm *c, const LsMesh *mesh, LsCollKind kind, uint64_t bytes, uint32_t n, Group group)
{
  LsTime least = LS_TIME_NEVER;
  g_autofree uint32_t *gpus = g_new (uint32_t, n);
  for (uint32_t stage = 0; stage < c->s->pp; stage++) {
    for (uint32_t i = 0; i < n; i++)
      gpus[i] = gpu_of (c, member (mesh, stage, group, i));
    LsTime time = group_time (c, kind, bytes, gpus, n);
    least = MIN (least, time);
  }
  return least;
}

/* Each mesh is asked once, unless its ranks are where somebody has put them. */
static LsTime
fastest (const BoundComm *c, LsCollKind kind, uint64_t bytes, uint32_t n, Group group)
{
  if (n == 1 || bytes == 0)
    return 0;
  GroupKey key;
  memset (&key, 0, sizeof key);
  key.cluster = c->cluster, key.bytes = bytes, key.mesh = ls_strategy_mesh (c->s);
  key.kind = (uint32_t) kind, key.group = group;
  const LsTime *known = c->gpus ? NULL : g_hash_table_lookup (c->times->groups, &key);
  if (known)
    return *known;
  LsTime least = fastest_of (c, &key.mesh, kind, bytes, n, group);
  if (!c->gpus)
    g_hash_table_insert (c->times->groups, g_memdup2 (&key, sizeof key), g_memdup2 (&least, sizeof least));
  return least;
}

LsTime
bound_tp_time (const BoundComm *c, LsCollKind kind, uint64_t bytes)
{
  return fastest (c, kind, bytes, c->s->tp, GROUP_TP);
}

LsTime
bound_dp_time (const BoundComm *c, LsCollKind kind, uint64_t bytes)
{
  return fastest (c, kind, bytes, c->s->cp * c->s->dp, GROUP_COPIES);
}

LsTime
bound_ep_time (const BoundComm *c, LsCollKind kind, uint64_t bytes)
{
  return fastest (c, kind, bytes, c->s->ep, GROUP_EXPERTS);
}

LsTime
bound_etp_time (const BoundComm *c, LsCollKind kind, uint64_t bytes)
{
  return fastest (c, kind, bytes, c->s->etp, GROUP_EXPERT_TP);
}

LsTime
bound_edp_time (const BoundComm *c, LsCollKind kind, uint64_t bytes)
{
  const LsStrategy *s = c->s;
  return bytes > 0 ? fastest (c, kind, bytes, s->tp * s->cp * s->dp / (s->ep * s->etp), GROUP_EXPERT_COPIES)
                   : 0;
}

LsTime
bound_send_time (const BoundComm *c, uint64_t bytes)
{
  const LsMesh mesh = ls_strategy_mesh (c->s);
  uint32_t pp = c->s->pp;
  LsTime least = LS_TIME_NEVER;
  if (pp == 1)
    return 0;
  for (uint32_t from = 0; from < pp; from++)
    for (int is_back = 0; is_back < 2; is_back++) {
      uint32_t to = (from + (is_back ? pp - 1 : 1)) % pp;
      const uint32_t gpus[] = { gpu_of (c, ls_mesh_rank (&mesh, (LsCoord) { .pp = from })),
                                gpu_of (c, ls_mesh_rank (&mesh, (LsCoord) { .pp = to })) };
      LsTime time = group_time (c, LS_COLL_SEND_RECV, bytes, gpus, 2);
      least = MIN (least, time);
    }
  return least;
}
