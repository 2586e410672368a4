#include "job/job_steps.h"

#include "compute/cost.h"
#include "plan/mesh.h"
#include "plan/plan.h"

/* Of nodes of several kinds the slowest: any stage may be on one. */
static LsTime
kernel_time (const LsKernel *kernel, void *data)
{
  const LsCostSources *of = data;
  const LsCalibration *all = &of->hardware->calibration;
  const LsClusterSpec *spec = &of->cluster->spec;
  LsTime longest = ls_kernel_cost (all, &spec->gpu, kernel).alone;
  for (uint32_t k = 1; of->cluster->kind_of_host && k < ls_cluster_spec_n_kinds (spec); k++) {
    const LsGpu *gpu = &ls_cluster_spec_of_kind (spec, k)->gpu;
    const LsCalibration own = ls_calibration_of_kind (all, k, gpu);
    longest = MAX (longest, ls_kernel_cost (&own, gpu, kernel).alone);
  }
  return longest;
}

/* Of the GPUs of n ranks. */
static LsTime
call_time (const LsCostSources *of, LsCollKind kind, uint64_t bytes, const uint32_t *ranks, uint32_t n)
{
  g_autofree uint32_t *gpus = g_new (uint32_t, n);
  for (uint32_t i = 0; i < n; i++)
    gpus[i] = of->gpu_of_rank[ranks[i]];
  return ls_call_time (of->call_times, of->cluster, kind, bytes, gpus, n);
}

/* Member i of the group of rank 0. */
static uint32_t
rank_of_member (const LsMesh *m, int slot, uint32_t i)
{
  switch (slot) {
  case LS_SLOT_CP:
    return ls_mesh_rank (m, (LsCoord) { .cp = i });
  case LS_SLOT_EP:
    return ls_mesh_expert_rank (m, (LsExpertCoord) { .ep = i });
  case LS_SLOT_ETP:
    return ls_mesh_expert_rank (m, (LsExpertCoord) { .etp = i });
  default:
    return ls_mesh_rank (m, (LsCoord) { .tp = i });
  }
}

static LsTime
collective_time (int slot, int coll, uint64_t bytes, void *data)
{
  const LsCostSources *of = data;
  const LsStrategy *s = of->strategy;
  const LsMesh mesh = ls_strategy_mesh (s);
  uint32_t n = slot == LS_SLOT_CP ? s->cp : slot == LS_SLOT_EP ? s->ep : slot == LS_SLOT_ETP ? s->etp : s->tp;
  g_autofree uint32_t *ranks = g_new (uint32_t, n);
  for (uint32_t i = 0; i < n; i++)
    ranks[i] = rank_of_member (&mesh, slot, i);
  return call_time (of, (LsCollKind) coll, bytes, ranks, n);
}

static LsTime
send_time (uint64_t bytes, void *data)
{
  const LsCostSources *of = data;
  const LsStrategy *s = of->strategy;
  const LsMesh mesh = ls_strategy_mesh (s);
  LsTime sum = 0;
  for (uint32_t pp = 0; pp + 1 < s->pp; pp++) {
    const uint32_t ends[]
        = { ls_mesh_rank (&mesh, (LsCoord) { .pp = pp }), ls_mesh_rank (&mesh, (LsCoord) { .pp = pp + 1 }) };
    sum += call_time (of, LS_COLL_SEND_RECV, bytes, ends, 2);
  }
  return s->pp > 1 ? sum / (s->pp - 1) : 0;
}

LsLowerCosts
ls_lower_costs (LsCostSources *of)
{
  return (LsLowerCosts) { kernel_time, collective_time, send_time, of };
}
