#include "exec/extras.h"

/* --- ahead of the clock --- */

/* A rank goes ahead of the clock.
 *
 * As long as no communication is resident on a rank and no kernel is held as an activity, nothing outside the
 * rank can touch it: its kernels then take the time that they take alone, and the rank is advanced in its own
 * local time, without events, to its next communication. That is exact, and makes the cost of a run
 * proportional to communications rather than to kernels. LsRunOptions.no_run_ahead switches it off; the
 * results are the same. */

/* Each step but the first may be the last until it is over on all ranks. */
static bool
is_behind_last_step (const Run *x, const Rank *r)
{
  uint32_t n = r->steps_done;
  return n >= x->n_steps || (n >= 2 && r->job->step_n_done[n - 1] < r->job->n_ranks) || x->last_step != NO_ID;
}

/* Nothing outside can touch it (rank.h): not while its host waits for other ranks either, as they decide when
 * it issues more, nor after what may be the last step. */
static bool
may_run_ahead (const Run *x, const Rank *r)
{
  return !r->is_gated && r->n_resident == 0 && r->n_copies == 0 && !r->is_kernel_running
      && !is_behind_last_step (x, r);
}

/* --- what hangs on the hooks --- */

static LsReplayOptions
plain_options (const LsRunOptions *o)
{
  return (LsReplayOptions) {
    .n_steps = o->n_steps,
    .network = o->network,
    .queue = o->queue,
    .solver = o->solver,
    .no_spans = o->no_spans,
    .checks = o->checks,
    .max_spans = o->max_spans,
    .max_memory_bytes = o->max_memory_bytes,
    .slow = o->slow,
  };
}

static bool
stand_for (Run *x)
{
  traffic_lower (x);
  return fold_new (x);
}

static void
begun (Run *x)
{
  sent_init (x);
  coarsen_init (x);
  steady_init (x);
  traffic_init (x);
}

void
extras_hang (Run *x, Extras *extras, const LsRunOptions *options)
{
  x->extras = extras;
  x->extras->options = options;
  x->options = plain_options (options);
  x->hooks.stand_for = stand_for;
  x->hooks.begun = begun;
  x->hooks.plan_call = known_call_plan;
  x->hooks.may_run_ahead = options->no_run_ahead ? NULL : may_run_ahead;
}

void
extras_clear (Run *x)
{
  coarsen_clear (x);
  sent_clear (x);
  fold_free (x->extras->fold);
}
