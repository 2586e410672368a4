/* sweep/sweep_try.c — one configuration of a sweep, simulated. */
#include "job/job_steps.h"
#include "sweep/sweep_state.h"

/* How it is simulated: for its step, at least or with what its allocator costs it; for all. */
typedef enum { SIMULATE_PLAIN, SIMULATE_STEP, SIMULATE_ALL } Depth;

/* Owns prepared. */
static LsJobResult *
simulate (const LsSweepRun *x, Work *w, LsJobResult *prepared, Depth depth)
{
  LsRunOptions options = x->options;
  options.no_spans = depth != SIMULATE_ALL;
  options.steady = true;
  gint64 start = g_get_monotonic_time ();
  LsJobResult *r = depth == SIMULATE_PLAIN ? ls_job_run_plain (prepared, x->hardware, &options, NULL, NULL)
      : depth == SIMULATE_STEP             ? ls_job_run_prepared (prepared, x->hardware, &options, NULL, NULL)
                                           : ls_job_simulate_prepared (prepared, x->hardware, &options, NULL);
  w->simulate_us += g_get_monotonic_time () - start;
  return r;
}

static LsJobResult *
prepare (const LsSweepRun *x, const Work *w)
{
  LsStrategy s;
  LsPoint p;
  ls_space_point (&x->spec->space, w->index, &p);
  candidate_strategy (x, &p, &s, NULL);
  LsJobResult *r = ls_job_prepare_on (&x->model, x->hardware, candidate_cluster (x, &p), &s, NULL);
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
  bool is_plain = !sweep_wants_all (x) && ls_job_may_retry (prepared, w->memory_bytes);
  g_autoptr (LsJobResult) r = simulate (x, w, prepared, is_plain ? SIMULATE_PLAIN : SIMULATE_STEP);
  if (!r)
    return;
  w->status = is_plain ? TRY_RAN : TRY_DONE;
  w->step = step_of (r);
}

/* Memory by recorded times, and what the step is made of. */
static void
confirm (const LsSweepRun *x, Work *w)
{
  LsJobResult *prepared = prepare (x, w);
  g_autoptr (LsJobResult) r = prepared ? simulate (x, w, prepared, SIMULATE_ALL) : NULL;
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
