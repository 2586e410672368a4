#include "sweep/job_order.h"

#include <lockstep/error.h>

#include "io/read_schedule.h"
#include "parallel/sched.h"

static uint32_t
n_micro_batches (const LsStrategy *s)
{
  return s->global_batch / (s->micro_batch * s->dp);
}

static gboolean
has_shape (const char *path, const LsOrders *orders, const LsStrategy *s, GError **error)
{
  const LsLayout *l = &orders->layout;
  if (l->n_ranks == s->pp && l->n_chunks == s->vpp && l->n_pipes == 1 && l->n_micro_batches == n_micro_batches (s))
    return TRUE;
  g_set_error (error, LS_ERROR, LS_ERROR_CONFLICT,
               "--order %s: pp %u, vpp %u, %u micro-batches%s; expected pp %u, vpp %u, %u micro-batches, as the job has them", path,
               l->n_ranks, l->n_chunks, l->n_micro_batches, l->n_pipes > 1 ? " and replicas of the model" : "", s->pp, s->vpp,
               n_micro_batches (s));
  return FALSE;
}

static gboolean
is_placed_alike (const char *path, const LsOrders *orders, const LsStrategy *s, GError **error)
{
  const LsLayout *l = &orders->layout;
  LsPlacement placement = ls_sched_find (s->schedule)->placement;
  for (uint32_t rank = 0; rank < l->n_ranks; rank++)
    for (uint32_t chunk = 0; chunk < l->n_chunks; chunk++) {
      uint32_t stage = ls_layout_stage (l, rank, chunk).stage;
      uint32_t expected = ls_place (placement, l->n_ranks, l->n_chunks, rank, chunk).stage;
      if (stage == expected)
        continue;
      g_set_error (error, LS_ERROR, LS_ERROR_CONFLICT,
                   "--order %s: stage %u is chunk %u of rank %u, where --schedule %s has stage %u; name a schedule with the same placement",
                   path, stage, chunk, rank, s->schedule, expected);
      return FALSE;
    }
  return TRUE;
}

LsOrders *
ls_job_order_load (const char *path, const LsStrategy *s, GError **error)
{
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
