/* sweep/sweep_try.c — one configuration of a sweep, simulated. */
#include "sweep/sweep_state.h"

/* Owns prepared. step_only: nothing is wanted of the result but its step. */
static LsJobResult *
simulate (const LsSweepRun *x, Work *w, LsJobResult *prepared, bool step_only)
{
  LsRunOptions options = x->options;
  options.no_spans = step_only;
  options.steady = true;
  gint64 start = g_get_monotonic_time ();
  LsJobResult *r = step_only ? ls_job_run_prepared (prepared, x->hardware, &options, NULL, NULL)
                             : ls_job_simulate_prepared (prepared, x->hardware, &options, NULL);
  w->simulate_us += g_get_monotonic_time () - start;
  return r;
}

static LsJobResult *
prepare (const LsSweepRun *x, const Work *w)
{
  LsStrategy s;
  candidate_strategy_at (x, w->index, &s);
  LsJobResult *r = ls_job_prepare (&x->model, x->hardware, x->spec->job.n_nodes, &s, NULL);
  ls_strategy_clear (&s);
  return r;
}

/* By the order of allocations, without running. */
static uint64_t
least_memory (const LsSweepRun *x, const LsJobResult *prepared)
{
  LsMemoryInput in = ls_job_result_memory_input (prepared, x->hardware, &x->options.memory);
  in.options.allocator = LS_MEMORY_EXACT;
  g_autoptr (LsMemory) m = ls_memory_new (&in);
  return ls_memory_fullest (m)->needed_bytes;
}

static LsTime
step_of (const LsJobResult *r)
{
  return r->timeline->window_end - r->timeline->window_start;
}

static void
try_it (const LsSweepRun *x, Work *w)
{
  bool is_host = x->options.memory.clock == LS_MEMORY_HOST; /* the device's may hold less */
  LsJobResult *prepared = prepare (x, w);
  w->status = TRY_ILLEGAL;
  if (!prepared)
    return;
  w->least = x->spec->no_prune ? 0 : ls_job_bound (prepared, x->hardware, &x->options);
  if (w->least > w->limit) { /* the cheaper of the two questions comes first */
    w->status = TRY_PRUNED;
    ls_job_result_free (prepared);
    return;
  }
  w->memory_bytes = least_memory (x, prepared);
  if (is_host && w->memory_bytes > candidate_limit (x, &prepared->strategy)) {
    w->status = TRY_INFEASIBLE;
    ls_job_result_free (prepared);
    return;
  }
  g_autoptr (LsJobResult) r = simulate (x, w, prepared, true);
  if (!r)
    return;
  w->status = TRY_DONE;
  w->step = step_of (r);
}

/* Memory by recorded times, and what the step is made of. */
static void
confirm (const LsSweepRun *x, Work *w)
{
  LsJobResult *prepared = prepare (x, w);
  g_autoptr (LsJobResult) r = prepared ? simulate (x, w, prepared, false) : NULL;
  w->status = TRY_ILLEGAL;
  if (!r)
    return;
  const LsReport *p = &r->report;
  w->status = p->needed_bytes <= candidate_limit (x, &r->strategy) ? TRY_DONE : TRY_INFEASIBLE;
  w->step = step_of (r);
  w->memory_bytes = p->needed_bytes;
  w->figures = (Figures) { .n_ranks = p->n_ranks, .tokens_per_s = p->tokens_per_s, .mfu = p->mfu };
  for (int i = 0; i < LS_N_PARTS; i++)
    w->figures.breakdown_s[i] = p->breakdown_s[i];
}

void
work_do (const LsSweepRun *x, Work *w)
{
  if (w->kind == WORK_TRY)
    try_it (x, w);
  else
    confirm (x, w);
}
