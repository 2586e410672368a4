/* exec/replay/replay.c — a replay from its beginning to its end: everything is checked, compiled and put in
 * its place; the clock runs; what came of it is collected. */
#include <string.h>

#include <lockstep/error.h>

#include "exec/replay/replay.h"
#include "exec/replay/state.h"

static void
dispatch_fired (LsEvent *event, void *context)
{
  Run *x = context;
  GPtrArray *now = x->ready;
  x->ready = x->ready_next;
  x->ready_next = now;
  for (guint i = 0; i < now->len; i++)
    ((Rank *) now->pdata[i])->is_ready = false;
  g_assert (x->ready->len == 0);
  for (guint i = 0; i < now->len; i++)
    rank_advance (x, now->pdata[i]);
  g_ptr_array_set_size (now, 0);
}

/* For so many. */
static void
steps_make_room (XJob *job, uint32_t n)
{
  if (n <= job->n_kept)
    return;
  uint32_t old = job->n_kept;
  job->n_kept = MAX (n, 2 * old);
  job->step_n_done = g_renew (uint32_t, job->step_n_done, job->n_kept);
  job->step_end = g_renew (LsTime, job->step_end, job->n_kept);
  memset (job->step_n_done + old, 0, (job->n_kept - old) * sizeof *job->step_n_done);
  memset (job->step_end + old, 0, (job->n_kept - old) * sizeof *job->step_end);
}

/* Spans of all ranks, or of the first of each role. */
static void
choose_recorded (Run *x)
{
  uint64_t n_spans = 0;
  g_autofree uint64_t *n_ranks = ls_plan_ranks_of_roles (x->plan);
  for (uint32_t role = 0; role < x->plan->n_roles; role++)
    n_spans += n_ranks[role] * x->spans_of_role[role];
  x->keeps_all_spans = n_spans <= x->options.max_spans;
}

static void
mark_recorded (Run *x)
{
  g_autofree bool *has_one = g_new0 (bool, x->plan->n_roles);
  for (uint32_t i = 0; i < x->plan->n_ranks; i++) {
    bool *seen = &has_one[ls_plan_role (x->plan, i)];
    x->ranks[i].keeps_spans = !x->options.no_spans && (x->keeps_all_spans || !*seen);
    *seen = true;
  }
}

/* No event fires later. Half of what can be represented: the kernels of all steps,
 * which may be ahead of the clock, take a quarter at most (refuse.c). */
#define CLOCK_END (LS_TIME_NEVER / 2)

static void
run_init (Run *x)
{
  ls_engine_init (&x->engine, x->options.queue == LS_QUEUE_FAST ? &ls_evq_radix : &ls_evq_reference, x);
  x->engine.stop_at = CLOCK_END;
  x->engine.after = x->options.checks ? run_check : NULL;
  x->net = ls_flow_net_new (&x->engine, x->whole->n_resources, x->whole->capacity,
                            x->options.solver == LS_SOLVER_REFERENCE);
  ls_event_init (&x->dispatch, dispatch_fired);
  x->ready = ls_arena_own (x->arena, g_ptr_array_new (), (GDestroyNotify) g_ptr_array_unref);
  x->ready_next = ls_arena_own (x->arena, g_ptr_array_new (), (GDestroyNotify) g_ptr_array_unref);
  for (uint32_t i = 0; i < x->n_jobs; i++)
    steps_make_room (&x->jobs[i], 4);
  x->last_step = NO_ID;
  collectives_init (x);
  groups_init (x);
  copies_init (x);
  x->bindings = x->plan->bindings ? x->plan->bindings : ls_plan_bindings (x->plan, x->arena);
  x->ranks = ls_arena_new_array (x->arena, Rank, x->plan->n_ranks);
  for (uint32_t i = 0; i < x->plan->n_ranks; i++)
    rank_init (x, &x->ranks[i], i);
  mark_recorded (x);
}

void
run_clear (Run *x)
{
  for (uint32_t i = 0; x->ranks && i < x->plan->n_ranks; i++)
    rank_clear (&x->ranks[i]);
  if (x->net) {
    groups_clear (x);
    ls_flow_net_free (x->net);
    ls_engine_clear (&x->engine);
  }
  for (uint32_t i = 0; i < x->n_jobs; i++) {
    g_free (x->jobs[i].step_n_done);
    g_free (x->jobs[i].step_end);
  }
  if (x->whole)
    whole_clear (x->whole);
  ls_arena_free (x->arena);
}

/* A run ends when the reported step is over on all ranks, or a hook says so. */
gboolean
run_clock (Run *x, GError **error)
{
  for (uint32_t i = 0; i < x->plan->n_ranks; i++)
    if (!x->ranks[i].job->is_absent)
      rank_ready (x, &x->ranks[i]);
  LsEngineEnd end = ls_engine_run (&x->engine);
  if (x->error) {
    g_propagate_error (error, x->error);
    return FALSE;
  }
  if (x->last_step != NO_ID)
    return x->hooks.step_over || conserve_step (x, x->jobs, x->last_step, error);
  if (end == LS_ENGINE_LIVELOCK)
    g_set_error (error, LS_ERROR, LS_ERROR_LIMIT,
                 "more than %u events at one instant (%" G_GINT64_FORMAT " ps)", LS_ENGINE_MAX_PER_INSTANT,
                 x->engine.now);
  else if (end == LS_ENGINE_STOPPED)
    g_set_error (error, LS_ERROR, LS_ERROR_LIMIT,
                 "the steps are not over after %.3g days; more cannot be simulated",
                 ls_time_to_s (CLOCK_END) / 86400);
  else
    g_propagate_error (error, deadlock_report (x));
  return FALSE;
}

gboolean
run_begin (Run *x, GError **error)
{
  x->arena = ls_arena_new ();
  if (!run_check_plan (x, error) || !run_compile (x, error))
    return FALSE;
  x->role_calls = role_calls_new (x->plan, x->arena);
  x->whole = ls_arena_new_array (x->arena, Whole, 1);
  x->whole->plan = x->plan;
  if (!x->hooks.stand_for || !x->hooks.stand_for (x))
    whole_is_itself (x->whole, x);
  choose_recorded (x);
  if (!run_check_limits (x, error))
    return FALSE;
  run_init (x);
  if (x->hooks.begun)
    x->hooks.begun (x);
  return run_plan_calls (x, error);
}

LsTimeline *
ls_replay (const LsReplayInput *input, GError **error)
{
  XJob job = { .plan = input->plan, .calibration = input->calibration, .host = input->host };
  Run x = { .plan = input->plan,
            .jobs = &job,
            .n_jobs = 1,
            .cluster = input->cluster,
            .nccl = input->nccl,
            .options = input->options,
            .n_steps = MAX (1, input->options.n_steps) };
  g_assert (input->options.network != LS_NETWORK_STEP);
  LsTimeline *timeline = run_begin (&x, error) && run_clock (&x, error) ? timeline_collect (&x) : NULL;
  run_clear (&x);
  return timeline;
}

/* ---- steps ---- */

/* When a step is over on all ranks of its job, and when to stop. A run of one job
 * stops after the last step asked for, or once a hook knows the next to be the same, or two steps in a row
 * are equal to the picosecond, as their digests tell; of several jobs, a hook says when. Ranks that are
 * early go on into the next step until the clock reaches the end of the window, so that the window shows the
 * steady state. */

/* Of the one job: what begins right behind its last step tells what the end was waiting for. */
static bool
is_last (Run *x, const XJob *job, uint32_t step, bool is_as_before)
{
  x->is_periodic |= is_as_before && !x->begins_late;
  if (step + 1 != x->n_steps && !x->is_periodic)
    return false;
  g_assert (x->last_step == NO_ID && step < x->n_steps);
  x->last_step = step;
  x->engine.stop_at = MAX (job->step_end[step], x->engine.now) + 1;
  return true;
}

void
step_done (Run *x, XJob *job, uint32_t step)
{
  g_assert (job->step_n_done[step] == job->n_ranks);
  g_assert (step == 0 || job->step_end[step] >= job->step_end[step - 1]);
  uint64_t digest = digest_of_step (job, step);
  bool is_as_before = step > 0 && digest == job->last_digest;
  job->last_digest = digest;
  steps_make_room (job, step + 4);
  if (x->hooks.step_over)
    x->hooks.step_over (x, job, step);
  else if (is_last (x, job, step, is_as_before))
    return;
  memset (job->digest[step & 1], 0, sizeof job->digest[step & 1]); /* for the next but one */
  for (uint32_t i = 0; i < x->plan->n_ranks; i++)
    if (x->ranks[i].is_gated && x->ranks[i].job == job)
      rank_ready (x, &x->ranks[i]);
}

void
step_rank_done (Run *x, Rank *r, uint32_t step, LsTime end)
{
  XJob *job = r->job;
  g_assert (r->steps_done == step);
  r->steps_done = step + 1;
  if (step > x->n_steps)
    return;
  g_assert (step < job->n_kept && job->step_n_done[step] < job->n_ranks);
  job->step_end[step] = MAX (job->step_end[step], end);
  if (++job->step_n_done[step] < job->n_ranks || x->last_step != NO_ID)
    return;
  if (!x->hooks.step_waits || !x->hooks.step_waits (x, job, step))
    step_done (x, job, step);
}
