/* job/job_order.c — what orders the pipeline of a job: a file, or times of its cluster. */
#include "job/job_steps.h"

#include <lockstep/error.h>

#include "compute/cost.h"
#include "data/jobs/read_schedule.h"
#include "plan/mesh.h"
#include "plan/plan.h"
#include "schedules/sched.h"
#include "schedules/sched_layout.h"

/* --- times of a cluster by which a pipeline is ordered ------------------------------------------- */

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
    LsCalibration room;
    const LsCalibration *own = ls_calibration_of_kind (all, k, gpu, &room);
    longest = MAX (longest, ls_kernel_cost (own, gpu, kernel).alone);
  }
  return longest;
}

/* Of the GPUs of n ranks. */
static LsTime
call_time (const LsCostSources *of, LsCollKind kind, uint64_t bytes, const uint32_t *ranks, uint32_t n)
{
  g_autofree uint32_t *gpus = g_new (uint32_t, n);
  for (uint32_t i = 0; i < n; i++)
    gpus[i] = of->gpu_of_rank ? of->gpu_of_rank[ranks[i]] : ls_cluster_gpu_of (&of->cluster->spec, ranks[i]);
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
  uint32_t n = slot == LS_SLOT_CP ? s->cp
      : slot == LS_SLOT_EP        ? s->ep
      : slot == LS_SLOT_ETP       ? s->experts.etp
                                  : s->tp;
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

static gboolean
has_shape (const char *path, const LsOrders *orders, const LsStrategy *s, GError **error)
{
  const LsLayout *l = &orders->layout;
  if (s->layout.micro_batches_per_replica)
    return ls_fail (error, LS_ERROR_CONFLICT,
                    "--order %s: it is of one number of micro-batches; got micro_batches_per_replica", path);
  const LsSchedShape shape = ls_strategy_sched_shape (s, ls_strategy_micro_batches (s, 0));
  const LsSched *sched = ls_sched_find (s->schedule);
  uint32_t n_chunks = ls_sched_n_chunks (sched, &shape),
           n_pipes = sched->placement == LS_PLACE_PIPES ? n_chunks : 1;
  if (l->n_ranks == s->pp && l->n_chunks == n_chunks && l->n_pipes == n_pipes
      && l->n_micro_batches * l->n_pipes == shape.n_micro_batches)
    return TRUE;
  return ls_fail (
      error, LS_ERROR_CONFLICT,
      "--order %s: pp %u, vpp %u, %u micro-batches%s; expected pp %u, vpp %u, %u micro-batches%s, "
      "as the job has them",
      path, l->n_ranks, l->n_pipes > 1 ? 1 : l->n_chunks, l->n_micro_batches * l->n_pipes,
      l->n_pipes > 1 ? " and replicas of the model" : "", s->pp, s->vpp, shape.n_micro_batches,
      n_pipes > 1 ? " and replicas of the model" : "");
}

static gboolean
is_placed_alike (const char *path, const LsOrders *orders, const LsStrategy *s, GError **error)
{
  const LsLayout *l = &orders->layout;
  LsPlacement placement = ls_sched_find (s->schedule)->placement;
  for (uint32_t rank = 0; rank < l->n_ranks; rank++)
    for (uint32_t chunk = 0; chunk < l->n_chunks; chunk++) {
      LsStageRef at = ls_layout_stage (l, rank, chunk);
      LsStageRef expected = ls_place (placement, l->n_ranks, l->n_chunks, rank, chunk);
      if (at.stage == expected.stage && at.pipe == expected.pipe)
        continue;
      return ls_fail (error, LS_ERROR_CONFLICT,
                      "--order %s: stage %u is chunk %u of rank %u, where --schedule %s has stage %u; name a "
                      "schedule with the same placement",
                      path, at.stage, chunk, rank, s->schedule, expected.stage);
    }
  return TRUE;
}

LsOrders *
ls_job_order_load (const char *path, const LsStrategy *s, GError **error)
{
  if (!ls_sched_is_flushed (ls_sched_find (s->schedule)))
    return ls_fail_null (error, LS_ERROR_CONFLICT,
                         "--order %s: %s has no flush, so its steps have no order of their own", path,
                         s->schedule);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsOrders) orders = ls_read_schedule (path, diags);
  if (!orders) {
    ls_diag_list_to_error (diags, error);
    return NULL;
  }
  if (!has_shape (path, orders, s, error) || !is_placed_alike (path, orders, s, error))
    return NULL;
  return g_steal_pointer (&orders);
}
