#include "job/lower_costs.h"

#include "base/digest.h"
#include "compute/cost.h"
#include "network/coll.h"
#include "plan/mesh.h"
#include "plan/plan.h"

static LsTime
kernel_time (const LsKernel *kernel, void *data)
{
  const LsCostSources *of = data;
  return ls_kernel_cost (&of->hardware->calibration, &of->cluster->spec.gpu, kernel).alone;
}

/* A call of n GPUs, `stride` apart. No gaps: hashed and compared as bytes. */
typedef struct {
  const LsCluster *cluster;
  uint64_t bytes;
  uint32_t kind, first, stride, n;
} Call;

typedef struct {
  Call call;
  LsTime time;
} KnownCall;

LS_DEFINE_BYTES_KEY (call, Call)

GHashTable *
ls_call_times_new (void)
{
  return g_hash_table_new_full (call_hash, call_equal, NULL, g_free);
}

static LsTime
plan_call (const LsCostSources *of, const Call *call)
{
  g_autofree uint32_t *gpus = g_new (uint32_t, call->n);
  for (uint32_t i = 0; i < call->n; i++)
    gpus[i] = ls_cluster_gpu_of (&of->cluster->spec, call->first + i * call->stride);
  LsArena *arena = ls_arena_new ();
  const LsCollRequest request = { .kind = (LsCollKind) call->kind, .gpus = gpus, .n = call->n, .bytes = call->bytes };
  const LsCollPlan *plan = ls_coll_plan (of->cluster, &of->hardware->nccl, &request, LS_NETWORK_FLOW, arena);
  LsTime time = ls_coll_time_alone (of->cluster, plan);
  ls_arena_free (arena);
  return time;
}

static LsTime
call_time (const LsCostSources *of, const Call *call)
{
  const KnownCall *known = of->call_times ? g_hash_table_lookup (of->call_times, call) : NULL;
  if (known)
    return known->time;
  LsTime time = plan_call (of, call);
  if (of->call_times) {
    KnownCall *new_call = g_new (KnownCall, 1);
    *new_call = (KnownCall) { *call, time };
    g_hash_table_insert (of->call_times, &new_call->call, new_call);
  }
  return time;
}

/* The group of rank 0: n ranks, `stride` apart. */
static void
group_of (const LsStrategy *s, int slot, uint32_t *ret_n, uint32_t *ret_stride)
{
  *ret_n = slot == LS_SLOT_CP ? s->cp : slot == LS_SLOT_EP ? s->ep : slot == LS_SLOT_ETP ? s->etp : s->tp;
  *ret_stride = slot == LS_SLOT_CP ? s->tp : slot == LS_SLOT_EP ? s->etp : 1;
}

static LsTime
collective_time (int slot, int coll, uint64_t bytes, void *data)
{
  const LsCostSources *of = data;
  Call call = { .cluster = of->cluster, .bytes = bytes, .kind = (uint32_t) coll };
  group_of (of->strategy, slot, &call.n, &call.stride);
  return call_time (of, &call);
}

static LsTime
send_time (uint64_t bytes, void *data)
{
  const LsCostSources *of = data;
  const LsStrategy *s = of->strategy;
  const LsMesh mesh = { .tp = s->tp, .cp = s->cp, .dp = s->dp, .pp = s->pp };
  LsTime sum = 0;
  for (uint32_t pp = 0; pp + 1 < s->pp; pp++) {
    uint32_t from = ls_mesh_rank (&mesh, (LsCoord) { .pp = pp }), to = ls_mesh_rank (&mesh, (LsCoord) { .pp = pp + 1 });
    const Call call = { .cluster = of->cluster, .bytes = bytes, .kind = LS_COLL_SEND_RECV, .first = from, .stride = to - from, .n = 2 };
    sum += call_time (of, &call);
  }
  return s->pp > 1 ? sum / (s->pp - 1) : 0;
}

LsLowerCosts
ls_lower_costs (LsCostSources *of)
{
  return (LsLowerCosts) { kernel_time, collective_time, send_time, of };
}
