/* exec/steps.c — when a step is over on all ranks, and when to stop: after the
 * last step asked for, or once the next is known to be the same (steady.c), or two steps in a
 * row are equal to the picosecond, as their digests tell.
 * Ranks that are early go on into the next step until the clock reaches the end
 * of the window, so that the window shows the steady state. */
#include "exec/rank.h"
#include "exec/state.h"

#include <string.h>

static void
step_done (Run *x, uint32_t step)
{
  uint64_t digest = digest_of_step (x, step);
  x->is_periodic |= step > 0 && !x->begins_at_quiescence && digest == x->last_digest;
  x->last_digest = digest;
  if (step + 1 == x->n_steps || x->is_periodic) {
    x->last_step = step;
    x->engine.stop_at = MAX (x->step_end[step], x->engine.now)
        + 1; /* what begins then tells what the end was waiting for */
    return;
  }
  memset (x->digest[step & 1], 0, sizeof x->digest[step & 1]); /* for the next but one */
  for (uint32_t i = 0; i < x->plan->n_ranks; i++)
    if (x->ranks[i].is_gated)
      rank_ready (x, &x->ranks[i]);
}

void
step_rank_done (Run *x, Rank *r, uint32_t step, LsTime end)
{
  r->steps_done = step + 1;
  if (step > x->n_steps)
    return;
  x->step_end[step] = MAX (x->step_end[step], end);
  if (++x->step_n_done[step] == x->plan->n_ranks && x->last_step == NO_ID)
    step_done (x, step);
}
