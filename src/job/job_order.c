#include "job/job_steps.h"

#include <lockstep/error.h>

#include "data/jobs/read_schedule.h"
#include "schedules/sched.h"
#include "schedules/sched_layout.h"

static gboolean
has_shape (const char *path, const LsOrders *orders, const LsStrategy *s, GError **error)
{
  const LsLayout *l = &orders->layout;
  if (s->micro_batches_per_replica) {
    g_set_error (error, LS_ERROR, LS_ERROR_CONFLICT,
                 "--order %s: it is of one number of micro-batches; got micro_batches_per_replica", path);
    return FALSE;
  }
  const LsSchedShape shape = ls_strategy_sched_shape (s, ls_strategy_micro_batches (s, 0));
  const LsSched *sched = ls_sched_find (s->schedule);
  uint32_t n_chunks = ls_sched_n_chunks (sched, &shape),
           n_pipes = sched->placement == LS_PLACE_PIPES ? n_chunks : 1;
  if (l->n_ranks == s->pp && l->n_chunks == n_chunks && l->n_pipes == n_pipes
      && l->n_micro_batches * l->n_pipes == shape.n_micro_batches)
    return TRUE;
  g_set_error (error, LS_ERROR, LS_ERROR_CONFLICT,
               "--order %s: pp %u, vpp %u, %u micro-batches%s; expected pp %u, vpp %u, %u micro-batches%s, "
               "as the job has them",
               path, l->n_ranks, l->n_pipes > 1 ? 1 : l->n_chunks, l->n_micro_batches * l->n_pipes,
               l->n_pipes > 1 ? " and replicas of the model" : "", s->pp, s->vpp, shape.n_micro_batches,
               n_pipes > 1 ? " and replicas of the model" : "");
  return FALSE;
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
      g_set_error (error, LS_ERROR, LS_ERROR_CONFLICT,
                   "--order %s: stage %u is chunk %u of rank %u, where --schedule %s has stage %u; name a "
                   "schedule with the same placement",
                   path, at.stage, chunk, rank, s->schedule, expected.stage);
      return FALSE;
    }
  return TRUE;
}

LsOrders *
ls_job_order_load (const char *path, const LsStrategy *s, GError **error)
{
  if (!ls_sched_is_flushed (ls_sched_find (s->schedule))) {
    g_set_error (error, LS_ERROR, LS_ERROR_CONFLICT,
                 "--order %s: %s has no flush, so its steps have no order of their own", path, s->schedule);
    return NULL;
  }
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
