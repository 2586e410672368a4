/* exec/shortcuts/ahead.c — a rank goes ahead of the clock.
 *
 * As long as no communication is resident on a rank and no kernel is held as an activity, nothing outside the
 * rank can touch it: its kernels then take the time that they take alone, and the rank is advanced in its own
 * local time, without events, to its next communication. That is exact, and makes the cost of a run
 * proportional to communications rather than to kernels. LsRunOptions.no_run_ahead switches it off; the
 * results are the same. */
#include "exec/extras.h"

/* Each step but the first may be the last until it is over on all ranks. */
static bool
is_behind_last_step (const Run *x, const Rank *r)
{
  uint32_t n = r->steps_done;
  return n >= x->n_steps || (n >= 2 && r->job->step_n_done[n - 1] < r->job->n_ranks) || x->last_step != NO_ID;
}

/* Nothing outside can touch it (rank.h): not while its host waits for other ranks either, as they decide when
 * it issues more, nor after what may be the last step. */
bool
may_run_ahead (const Run *x, const Rank *r)
{
  return !r->is_gated && r->n_resident == 0 && r->n_copies == 0 && !r->is_kernel_running
      && !is_behind_last_step (x, r);
}
