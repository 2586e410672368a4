#include "exec/extras.h"

#include "exec/shortcuts/coarsen.h"

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
