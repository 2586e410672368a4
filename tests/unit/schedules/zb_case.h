/* What the tests of the automatic schedulers share: a job searched with a given effort,
 * its order run by the evaluator of all schedules. */
#ifndef TEST_ZB_CASE_H
#define TEST_ZB_CASE_H

#include <string.h>

#include "sched_run.h"
#include "schedules/zb.h"

/* The order of a search as those of any schedule. */
static inline LsOrders *
zb_orders (LsZbSearch *search)
{
  static const LsActionType types[] = { LS_ACTION_F, LS_ACTION_I, LS_ACTION_W };
  const LsZbJob *job = search->run.job;
  size_t length = ls_zb_length (job);
  g_autofree uint8_t *order = g_malloc (job->p * length);
  g_autofree LsStageRef *stages = g_new0 (LsStageRef, job->p * job->v);

  for (uint32_t r = 0; r < job->p; r++)
    for (uint32_t c = 0; c < job->v; c++)
      stages[r * job->v + c].stage = (uint16_t) ls_zb_stage (job, r, c);
  LsOrders *orders = ls_orders_new (job->p, job->v, 1, job->p * job->v, job->m, stages);
  ls_zb_fill (&search->run, search->best_string, search->best_rules, order);
  for (uint32_t r = 0; r < job->p; r++) {
    uint32_t n[6] = { 0 };
    for (size_t k = 0; k < length; k++) {
      uint8_t symbol = order[r * length + k];
      LsAction a = { .mb = n[symbol]++, .chunk = symbol & 1, .type = (uint8_t) types[symbol / 2] };
      g_array_append_val (orders->ranks[r], a);
    }
  }
  return orders;
}

/* Searches a job; checks that its order can run, takes what the search says and keeps the
 * limit. Returns the evaluation, NULL if it cannot run. */
static inline LsSchedEval *
zb_evaluate (const LsZbJob *job, int64_t effort)
{
  LsZbSearch search;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autofree LsChunkTimes *stages = g_new0 (LsChunkTimes, job->p * job->v);
  for (uint32_t s = 0; s < job->p * job->v; s++)
    stages[s] = (LsChunkTimes) { job->f[s], job->i[s], job->w[s], job->i[s] + job->w[s], 0 };
  LsSchedTimes times = { .stages = stages, .comm = job->comm };

  ls_zb_search_init (&search, job, effort);
  if (job->v == 1)
    ls_zb_search_line (&search);
  else
    ls_zb_search_vee (&search);
  g_autoptr (LsOrders) orders = zb_orders (&search);
  gboolean can_run = ls_orders_check (orders, NULL, diags);
  g_autofree char *text = ls_diag_list_format (diags);
  LsSchedEval *e = NULL;
  if (ls_check_impl (can_run, __FILE__, __LINE__, "p %u v %u m %u limit %u: %s", job->p, job->v, job->m,
                     job->limit, text)) {
    e = ls_orders_eval (orders, &times);
    LS_CHECK_INT (e->span, ==, search.best.span);
    for (uint32_t r = 0; r < job->p; r++)
      LS_CHECK_INT (e->ranks[r].split_peak, <=, job->limit);
  }
  ls_zb_search_clear (&search);
  return e;
}

#endif
