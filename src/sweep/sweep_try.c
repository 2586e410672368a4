/* sweep/sweep_try.c — one configuration of a sweep, simulated. */
#include <math.h>

#include "job/job_steps.h"
#include "sweep/sweep_state.h"

/* Up to its step; is_plain: without what its allocator costs it. Owns prepared. */
static LsJobResult *
run (const LsSweepRun *x, Work *w, LsJobResult *prepared, const LsRunOptions *options, bool is_plain,
     double cost_share[4])
{
  gint64 start = g_get_monotonic_time ();
  LsJobResult *r = (is_plain ? ls_job_run_plain : ls_job_run_prepared) (prepared, x->hardware, options,
                                                                        cost_share, NULL);
  w->simulate_us += g_get_monotonic_time () - start;
  return r;
}

/* As all are run, with the times of all ops or without. */
static LsRunOptions
options_of (const LsSweepRun *x, bool has_times)
{
  LsRunOptions options = x->options;
  options.no_spans = !has_times;
  options.steady = true;
  return options;
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

/* By the order of allocations, without running; at_least: of any run. */
static uint64_t
memory_in_order (const LsSweepRun *x, const LsJobResult *prepared, bool at_least)
{
  LsMemoryInput in = ls_job_result_memory_input (prepared, x->hardware, &x->options.memory);
  in.options.allocator = LS_MEMORY_EXACT;
  in.at_least = at_least;
  g_autoptr (LsMemory) m = ls_memory_new (&in);
  return ls_memory_fullest (m)->needed_bytes;
}

static LsTime
step_of (const LsJobResult *r)
{
  return r->timeline->window_end - r->timeline->window_start;
}

static void
add_interval (const LsSweepRun *x, LsJobResult *r, Figures *figures)
{
  LsInterval interval = { .none = NULL };
  LsJobSpec spec = x->spec->job; /* borrows all */
  spec.from = NULL;              /* it simulates the job as it is once more */
  r->hardware = x->hardware;     /* lends it */
  if (x->residuals)
    ls_job_interval (&spec, r, x->residuals, &interval);
  r->hardware = NULL;
  bool has_one = x->residuals && !interval.none;
  figures->low = has_one ? interval.low : NAN;
  figures->high = has_one ? interval.high : NAN;
  ls_interval_clear (&interval);
}

/* Memory by recorded times, and what the step is made of. Owns plain, with the times of its ops; NULL: it
 * cannot run. */
static void
confirm (const LsSweepRun *x, Work *w, LsJobResult *plain, const LsRunOptions *options, double cost_share[4])
{
  Confirmation *to = &w->confirmed;
  gint64 start = g_get_monotonic_time ();
  g_autoptr (LsJobResult) r = ls_job_simulate_rest (plain, x->hardware, options, cost_share, NULL);
  w->simulate_us += g_get_monotonic_time () - start;
  to->status = TRY_ILLEGAL;
  if (!r)
    return;
  const LsReport *p = &r->report;
  to->status = p->needed_bytes <= candidate_limit (x, &r->strategy) ? TRY_DONE : TRY_INFEASIBLE;
  to->step = step_of (r);
  to->memory_bytes = p->needed_bytes;
  to->figures = (Figures) { .n_ranks = p->n_ranks, .tokens_per_s = p->tokens_per_s, .mfu = p->mfu };
  for (int i = 0; i < LS_N_PARTS; i++)
    to->figures.breakdown_s[i] = p->breakdown_s[i];
  add_interval (x, r, &to->figures);
}

/* What its allocator costs it is looked for where all that its programs take may be too much. */
static bool
may_retry (const LsSweepRun *x, const Work *w, const LsJobResult *prepared)
{
  bool has_places = prepared->strategy.offload_activations;
  return ls_job_may_retry (prepared, has_places ? memory_in_order (x, prepared, false) : w->memory_bytes);
}

/* Owns prepared. */
static void
run_to_its_step (const LsSweepRun *x, Work *w, LsJobResult *prepared)
{
  bool retries = may_retry (x, w, prepared), wants_all = sweep_wants_all (x),
       is_likely = !wants_all && w->least <= w->likely;
  LsRunOptions options = options_of (x, is_likely);
  double cost_share[4];
  g_autoptr (LsJobResult) r = run (x, w, prepared, &options, !wants_all, cost_share);
  if (!r)
    return;
  w->status = retries && !wants_all ? TRY_RAN : TRY_DONE;
  w->step = step_of (r);
  if (is_likely && w->step <= w->hope)
    confirm (x, w, g_steal_pointer (&r), &options, cost_share);
}

static void
try_it (const LsSweepRun *x, Work *w)
{
  bool is_host = x->options.memory.clock == LS_MEMORY_HOST; /* the device's may hold less */
  g_autoptr (LsJobResult) prepared = prepare (x, w);
  w->status = TRY_ILLEGAL;
  if (!prepared)
    return;
  if (w->least == 0 && !x->spec->no_prune)
    w->least = ls_job_bound (prepared, x->hardware, &x->options);
  if (w->least > w->limit) { /* the cheaper of the two questions comes first */
    w->status = TRY_PRUNED;
    return;
  }
  w->memory_bytes = memory_in_order (x, prepared, true);
  if (is_host && w->memory_bytes > candidate_limit (x, &prepared->strategy)) {
    w->status = TRY_INFEASIBLE;
    return;
  }
  run_to_its_step (x, w, g_steal_pointer (&prepared));
}

static void
confirm_it (const LsSweepRun *x, Work *w)
{
  LsRunOptions options = options_of (x, true);
  double cost_share[4];
  LsJobResult *prepared = prepare (x, w);
  confirm (x, w, run (x, w, prepared, &options, true, cost_share), &options, cost_share);
}

/* Of what is cut off nothing counts. */
void
work_do (const LsSweepRun *x, Work *w)
{
  const Work asked = *w;
  ls_stop_begin (x->stop, w->kind == WORK_TRY ? 0 : SWEEP_GRACE_US);
  if (ls_stopped ())
    ;
  else if (w->kind == WORK_TRY)
    try_it (x, w);
  else
    confirm_it (x, w);
  if (ls_stopped ()) {
    *w = asked;
    w->is_cut = true;
  }
  ls_stop_begin (NULL, 0);
}
