#include "job/job_steps.h"

#include "compute/cost.h"
#include "plan/mesh.h"
#include "plan/plan.h"

static LsTime
kernel_time (const LsKernel *kernel, void *data)
{
  const LsCostSources *of = data;
  return ls_kernel_cost (&of->hardware->calibration, &of->cluster->spec.gpu, kernel).alone;
}

/* Of n GPUs, `stride` apart. */
static LsTime
call_time (const LsCostSources *of, LsCollKind kind, uint64_t bytes, uint32_t first, uint32_t stride,
           uint32_t n)
{
  g_autofree uint32_t *gpus = g_new (uint32_t, n);
  for (uint32_t i = 0; i < n; i++)
    gpus[i] = ls_cluster_gpu_of (&of->cluster->spec, first + i * stride);
  return ls_call_time (of->call_times, of->cluster, kind, bytes, gpus, n);
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
  uint32_t n, stride;
  group_of (of->strategy, slot, &n, &stride);
  return call_time (of, (LsCollKind) coll, bytes, 0, stride, n);
}

static LsTime
send_time (uint64_t bytes, void *data)
{
  const LsCostSources *of = data;
  const LsStrategy *s = of->strategy;
  const LsMesh mesh = { .tp = s->tp, .cp = s->cp, .dp = s->dp, .pp = s->pp };
  LsTime sum = 0;
  for (uint32_t pp = 0; pp + 1 < s->pp; pp++) {
    uint32_t from = ls_mesh_rank (&mesh, (LsCoord) { .pp = pp }),
             to = ls_mesh_rank (&mesh, (LsCoord) { .pp = pp + 1 });
    sum += call_time (of, LS_COLL_SEND_RECV, bytes, from, to - from, 2);
  }
  return s->pp > 1 ? sum / (s->pp - 1) : 0;
}

LsLowerCosts
ls_lower_costs (LsCostSources *of)
{
  return (LsLowerCosts) { kernel_time, collective_time, send_time, of };
}
