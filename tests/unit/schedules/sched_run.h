/* What the tests of schedules share: a schedule of a shape, evaluated. */
#ifndef TEST_SCHED_RUN_H
#define TEST_SCHED_RUN_H

#include "ls_test.h"
#include "schedules/sched_eval.h"

/* The orders of a shape that must be legal, checked; NULL if they cannot run. */
static inline LsOrders *
checked_orders (const char *schedule, const LsSchedShape *shape)
{
  const LsSched *sched = ls_sched_find (schedule);
  const char *rule = ls_sched_refusal (sched, shape);
  if (!ls_check_impl (rule == NULL, __FILE__, __LINE__, "%s pp %u vpp %u m %u: %s", schedule, shape->pp,
                      shape->vpp, shape->n_micro_batches, rule))
    return NULL;

  g_autoptr (LsOrders) orders = ls_sched_orders (sched, shape);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  gboolean can_run = ls_orders_check (orders, NULL, diags);
  g_autofree char *text = ls_diag_list_format (diags);
  if (!ls_check_impl (can_run, __FILE__, __LINE__, "%s pp %u vpp %u m %u: %s", schedule, shape->pp,
                      shape->vpp, shape->n_micro_batches, text))
    return NULL;
  return g_steal_pointer (&orders);
}

static inline LsSchedEval *
evaluate (const char *schedule, const LsSchedShape *shape, const LsSchedTimes *times)
{
  g_autoptr (LsOrders) orders = checked_orders (schedule, shape);
  return orders ? ls_orders_eval (orders, times) : NULL;
}

/* b = i + w, and a pair takes fb, or as long as its parts if that is 0. */
static inline LsSchedTimes
times_of (LsTime f, LsTime i, LsTime w, LsTime fb, LsTime comm)
{
  return (LsSchedTimes) { .chunk = { f, i, w, i + w, fb ? fb : f + i + w }, .comm = comm };
}

static inline uint32_t
max_held (const LsSchedEval *e)
{
  uint32_t peak = 0;
  for (uint32_t r = 0; r < e->n_ranks; r++)
    peak = MAX (peak, e->ranks[r].held_peak);
  return peak;
}

/* The most that a rank is idle within the makespan. */
static inline LsTime
max_idle (const LsSchedEval *e)
{
  LsTime idle = 0;
  for (uint32_t r = 0; r < e->n_ranks; r++)
    idle = MAX (idle, e->makespan - e->ranks[r].busy);
  return idle;
}

#endif
