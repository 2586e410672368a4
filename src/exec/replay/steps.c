/* exec/replay/steps.c — when a step is over on all ranks of its job, and when to stop. A run of one job
 * stops after the last step asked for, or once a hook knows the next to be the same, or two steps in a row
 * are equal to the picosecond, as their digests tell; of several jobs, a hook says when. Ranks that are
 * early go on into the next step until the clock reaches the end of the window, so that the window shows the
 * steady state. */
#include "exec/replay/rank.h"
#include "exec/replay/state.h"

#include <string.h>

void
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
