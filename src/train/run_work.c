/* train/run_work.c — what a training run's time went to: work, checkpoints. */
#include <math.h>

#include "train/run_state.h"

#define MANY_SAVED 65536

const char *
ls_lost_name (LsLost lost)
{
  static const char *const names[LS_N_LOST] = { "checkpoints", "rework",  "detection", "waiting",  "restart",
                                                "slow",        "smaller", "stalls",    "variation" };
  return names[lost];
}

LsTime
ls_run_ns (double seconds)
{
  return (LsTime) llround (fmin (seconds, LS_RUN_FAR_S) * LS_RUN_NS_PER_S);
}

const LsFailureCause *
ls_run_cause (const LiveRun *r, guint i)
{
  return &g_array_index (r->plan->reliability->causes, LsFailureCause, i);
}

/* --- accounts -------------------------------------------------------------------------- */

uint32_t
ls_run_lost_replicas (const LiveRun *r)
{
  if (r->missing_nodes == 0)
    return 0;
  return (uint32_t) MIN (ceil (r->missing_nodes / r->plan->nodes_per_replica), r->plan->n_replicas);
}

/* By how much a step takes longer for what it counts, as replicas are missing. */
static double
smaller (const LiveRun *r)
{
  uint32_t n = r->plan->n_replicas, lost = ls_run_lost_replicas (r);
  return lost < n ? (double) n / (n - lost) : INFINITY;
}

static void
lose_to (LiveRun *r, LsLost kind, double seconds, guint cause)
{
  r->out->lost_s[kind] += seconds;
  r->out->causes[cause].lost_s += seconds;
}

static void
lose (LiveRun *r, LsLost kind, double seconds)
{
  lose_to (r, kind, seconds, r->cause);
}

static void
account_work (LiveRun *r, double seconds)
{
  double fewer = smaller (r), done = seconds / (r->slow * fewer * r->longer), steps = done * r->longer;
  r->position += done;
  r->out->lost_s[LS_LOST_VARIATION] += done * (r->longer - 1);
  r->out->lost_s[LS_LOST_SLOW] += steps * (r->slow - 1);
  if (r->slow > 1)
    r->out->causes[r->slow_cause].lost_s += steps * (r->slow - 1);
  r->out->lost_s[LS_LOST_SMALLER] += steps * r->slow * (fewer - 1);
}

/* Neighbours of one kind and cause are one. */
static void
keep_span (LiveRun *r, LsLost kind, guint cause, double seconds)
{
  double to_s = (double) r->engine.now / LS_RUN_NS_PER_S, from_s = to_s - seconds;
  GArray *spans = r->out->spans;
  LsRunSpan *last = spans->len > 0 ? &g_array_index (spans, LsRunSpan, spans->len - 1) : NULL;
  if (last && last->kind == kind && last->cause == cause && last->to_s >= from_s - 1e-6) {
    last->to_s = to_s;
    return;
  }
  const LsRunSpan span = { kind, cause, from_s, to_s };
  g_array_append_val (spans, span);
}

static const LsLost lost_in_stage[N_STAGES]
    = { LS_LOST_DETECTION, LS_LOST_DETECTION, LS_LOST_RESTART, LS_LOST_RESTART };

static void
keep (LiveRun *r, double seconds)
{
  if (r->state == STALLED)
    keep_span (r, LS_LOST_STALL, r->stall_cause, seconds);
  else if (r->state == DOWN)
    keep_span (r, lost_in_stage[r->stage], r->cause, seconds);
  else if (r->state == WAITING)
    keep_span (r, LS_LOST_WAITING, r->cause, seconds);
  else if (r->state == WORKING && r->slow > 1)
    keep_span (r, LS_LOST_SLOW, r->slow_cause, seconds);
  else if (r->state == WORKING && r->missing_nodes > 0)
    keep_span (r, LS_LOST_SMALLER, r->cause, seconds);
}

/* The time since the last account, to what it was. */
void
ls_run_account (LiveRun *r)
{
  double seconds = (double) (r->engine.now - r->mark) / LS_RUN_NS_PER_S;
  r->mark = r->engine.now;
  if (r->out->spans && seconds > 0)
    keep (r, seconds);
  switch (r->state) {
  case WORKING:
    account_work (r, seconds);
    break;
  case SAVING:
    r->out->lost_s[LS_LOST_CHECKPOINT] += seconds;
    break;
  case STALLED:
    lose_to (r, LS_LOST_STALL, seconds, r->stall_cause);
    break;
  case DOWN:
    lose (r, lost_in_stage[r->stage], seconds);
    break;
  case WAITING:
    lose (r, LS_LOST_WAITING, seconds);
    break;
  case DONE:
    break;
  }
}

/* The state that follows, which ends in so many seconds. */
void
ls_run_enter (LiveRun *r, RunState state, double seconds)
{
  r->state = state;
  ls_engine_at (&r->engine, &r->end_of_state, r->engine.now + ls_run_ns (seconds), LS_PHASE_COMPLETE);
}

void
ls_run_enter_open (LiveRun *r, RunState state)
{
  r->state = state;
  ls_engine_cancel (&r->engine, &r->end_of_state);
}

/* --- work and checkpoints --------------------------------------------------------------- */

static SavedWork *
last_saved (const LiveRun *r)
{
  return r->saved->len > 0 ? &g_array_index (r->saved, SavedWork, r->saved->len - 1) : NULL;
}

/* Where the next checkpoint is due: behind `every` more steps of the phase, or at its end. */
static double
next_target (const LiveRun *r, double *ret_longer)
{
  guint p = 0;
  while (p + 1 < r->plan->n_phases && r->position >= r->phase_end[p])
    p++;
  const LsRunPhase *phase = &r->plan->phases[p];
  *ret_longer = 1 + phase->longer;
  double start = p > 0 ? r->phase_end[p - 1] : 0;
  double step = round ((r->position - start) / phase->step_s);
  double next = (floor (step / (double) phase->every) + 1) * (double) phase->every;
  return next >= (double) phase->n_steps ? r->phase_end[p] : start + next * phase->step_s;
}

void
ls_run_go_on (LiveRun *r)
{
  ls_run_enter (r, WORKING, fmax (r->target - r->position, 0) * r->longer * r->slow * smaller (r));
}

void
ls_run_begin_work (LiveRun *r)
{
  r->target = next_target (r, &r->longer);
  ls_run_go_on (r);
}

/* Until the last checkpoint may be read. */
static double
left_s (const LiveRun *r, LsTime at)
{
  return fmax ((double) (at - r->engine.now) / LS_RUN_NS_PER_S, 0);
}

double
ls_run_writing_left_s (const LiveRun *r)
{
  const SavedWork *last = last_saved (r);
  return last ? left_s (r, last->durable_at) : 0;
}

/* Of checkpoints that stay near, each so manieth goes to storage too. */
static bool
next_goes_to_storage (const LiveRun *r)
{
  uint32_t every = r->plan->checkpoint.storage_every;
  return every > 0 && (r->n_saved + 1) % every == 0;
}

void
ls_run_begin_save (LiveRun *r)
{
  double wait = ls_run_writing_left_s (r);
  if (next_goes_to_storage (r))
    wait = fmax (wait, left_s (r, r->storage_free_at));
  r->save_began = r->engine.now;
  ls_run_enter (r, SAVING, wait + r->plan->checkpoint.save_s);
}

/* What nobody will go back to any more, of a long run. */
static void
forget_old (LiveRun *r)
{
  guint half = r->saved->len / 2;
  if (half < MANY_SAVED / 2)
    return;
  LsTime longest = 0;
  for (guint i = 0; i < r->plan->reliability->causes->len; i++)
    longest = MAX (longest, ls_run_cause (r, i)->detect);
  LsTime at = g_array_index (r->saved, SavedWork, half).durable_at;
  if (at < r->engine.now - ls_run_ns (ls_time_to_s (longest)))
    g_array_remove_range (r->saved, 0, half);
}

void
ls_run_add_saved (LiveRun *r)
{
  const LsCheckpointTimes *c = &r->plan->checkpoint;
  SavedWork saved = { r->position, r->save_began, r->engine.now + ls_run_ns (c->write_s), LS_TIME_NEVER,
                      c->is_on_node || c->is_on_peer };
  if (next_goes_to_storage (r))
    r->storage_free_at = saved.storage_at = r->engine.now + ls_run_ns (c->storage_write_s);
  r->n_saved++;
  g_array_append_val (r->saved, saved);
  if (r->position > r->furthest) {
    r->furthest = r->position;
    r->n_idle_events = 0;
  }
  forget_old (r);
}

/* Back to the last checkpoint that may be read and was taken by then. With a node what is on its drives is
 * lost, with several what is in their memory. */
void
ls_run_go_back (LiveRun *r, LsTime taken_by, guint n_lost)
{
  const LsCheckpointTimes *c = &r->plan->checkpoint;
  bool is_lost = n_lost > 0 && (c->is_on_node || n_lost > 1);
  double from = r->position;
  for (guint i = 0; is_lost && i < r->saved->len; i++) {
    SavedWork *s = &g_array_index (r->saved, SavedWork, i);
    if (s->on_node)
      s->durable_at = s->storage_at;
    s->on_node = false;
  }
  while (r->saved->len > 0) {
    const SavedWork *s = last_saved (r);
    if (s->durable_at <= r->engine.now && s->taken_at <= taken_by)
      break;
    g_array_set_size (r->saved, r->saved->len - 1);
  }
  const SavedWork *s = last_saved (r);
  r->position = s ? s->position : 0;
  r->reads_storage = s && (c->is_on_node || c->is_on_peer) && !s->on_node;
  lose (r, LS_LOST_REWORK, from - r->position);
}
