/* train/run_stops.c — stops of a training run, its nodes, what failures do. */
#include <math.h>

#include "train/run_state.h"

/* --- stops ------------------------------------------------------------------------------ */

static double
detect_s (const LiveRun *r, guint cause)
{
  return ls_time_to_s (ls_run_cause (r, cause)->detect);
}

/* Behind the writing of the checkpoint. */
static double
reading_s (const LiveRun *r)
{
  const LsCheckpointTimes *c = &r->plan->checkpoint;
  if (r->saved->len == 0)
    return c->frozen_s;
  return c->frozen_s + ls_run_writing_left_s (r) + (r->reads_storage ? c->storage_read_s : c->read_s);
}

static double
stage_s (const LiveRun *r, StopStage stage)
{
  switch (stage) {
  case DETECTING:
    return detect_s (r, r->cause);
  case LOCATING:
    return ls_time_to_s (ls_run_cause (r, r->cause)->locate);
  case PLACING:
    return ls_reliability_place_s (r->plan->reliability, r->plan->units.of[LS_FAILS_GPU]);
  default:
    return reading_s (r);
  }
}

static bool
is_up (const LiveRun *r)
{
  return r->state == WORKING || r->state == SAVING || r->state == STALLED;
}

void
ls_run_end (LiveRun *r)
{
  ls_run_enter_open (r, DONE);
  r->engine.stop_at = r->engine.now;
}

bool
ls_run_gives_up (LiveRun *r)
{
  if (++r->n_idle_events <= LS_HISTORY_MAX_IDLE_EVENTS && r->engine.n_events <= LS_HISTORY_MAX_EVENTS)
    return false;
  ls_run_account (r);
  ls_run_end (r);
  return true;
}

void
ls_run_go_down (LiveRun *r, guint cause, StopStage from)
{
  r->out->n_stops += is_up (r);
  r->cause = cause;
  r->stops_behind = false;
  r->stage = from;
  ls_run_enter (r, DOWN, stage_s (r, from));
}

static void on_repaired (LsEvent *event, void *context);

/* An event of its own, that many seconds from now. */
static void
add_later (LiveRun *r, LsEventFn fire, guint cause, double seconds)
{
  Later *l = g_new (Later, 1);
  *l = (Later) { .cause = cause, .since = r->engine.now };
  ls_event_init (&l->event, fire);
  g_ptr_array_add (r->later, l);
  ls_engine_at (&r->engine, &l->event, r->engine.now + ls_run_ns (seconds), LS_PHASE_DISPATCH);
}

static bool
has_nodes (const LiveRun *r)
{
  return r->missing_nodes == 0 || (r->plan->is_elastic && ls_run_lost_replicas (r) < r->plan->n_replicas);
}

/* Nodes that failed go to repair, each for as long as its cause takes, and others take their places. */
static void
take_nodes (LiveRun *r)
{
  for (guint i = 0; i < r->failed->len && r->plan->spares != LS_SPARES_ANY; i++) {
    guint cause = g_array_index (r->failed, guint, i);
    add_later (r, on_repaired, cause, ls_time_to_s (ls_run_cause (r, cause)->repair));
    if (r->free_nodes > 0)
      r->free_nodes--;
    else
      r->missing_nodes++;
  }
  g_array_set_size (r->failed, 0);
}

void
ls_run_next_stage (LiveRun *r)
{
  if (r->stage == LOCATING)
    take_nodes (r);
  if (r->stage == LOCATING && !has_nodes (r)) {
    ls_run_enter_open (r, WAITING);
  } else if (r->stage == READING) {
    ls_run_begin_work (r);
  } else {
    r->stage++;
    ls_run_enter (r, DOWN, stage_s (r, r->stage));
  }
}

/* A stop that is announced: behind a checkpoint. */
static void
stop_behind_save (LiveRun *r, guint cause)
{
  r->cause = cause;
  r->reads_storage = false;
  r->stops_behind = true;
  if (r->state == WORKING)
    ls_run_begin_save (r);
}

/* It is put to use where it helps: of an elastic job, if it completes a replica. */
static void
on_repaired (LsEvent *event, void *context)
{
  LiveRun *r = context;
  if (ls_run_gives_up (r))
    return;
  if (r->missing_nodes == 0) {
    r->free_nodes++;
    return;
  }
  ls_run_account (r);
  uint32_t before = ls_run_lost_replicas (r);
  r->missing_nodes--;
  if (r->state == WAITING && has_nodes (r))
    ls_run_go_down (r, r->cause, PLACING);
  else if (is_up (r) && ls_run_lost_replicas (r) < before)
    stop_behind_save (r, ((Later *) event)->cause);
}

/* A step takes as long as that of the slowest node. */
static void
set_slow (LiveRun *r)
{
  r->slow = 1;
  for (guint i = 0; i < r->plan->reliability->causes->len; i++)
    if (r->n_slow[i] > 0 && ls_run_cause (r, i)->factor > r->slow) {
      r->slow = ls_run_cause (r, i)->factor;
      r->slow_cause = i;
    }
}

/* A slow node was found. */
static void
on_slow_found (LsEvent *event, void *context)
{
  LiveRun *r = context;
  guint cause = ((Later *) event)->cause;
  if (ls_run_gives_up (r))
    return;
  ls_run_account (r);
  r->n_slow[cause]--;
  set_slow (r);
  g_array_append_val (r->failed, cause);
  if (is_up (r))
    stop_behind_save (r, cause);
}

static void
on_corrupt_found (LsEvent *event, void *context)
{
  LiveRun *r = context;
  const Later *l = (const Later *) event;
  if (ls_run_gives_up (r))
    return;
  ls_run_account (r);
  r->cause = l->cause;
  g_array_append_val (r->failed, l->cause);
  ls_run_go_back (r, l->since, 1);
  ls_run_go_down (r, l->cause, LOCATING);
}

/* --- failures -------------------------------------------------------------------------- */

static void
fail (LiveRun *r, guint cause, guint n_lost)
{
  r->cause = cause;
  for (guint i = 0; i < n_lost; i++)
    g_array_append_val (r->failed, cause);
  ls_run_go_back (r, r->engine.now, n_lost);
  ls_run_go_down (r, cause, DETECTING);
}

/* No more than the job has. */
static guint
n_taken (const LiveRun *r, guint cause)
{
  double all = ceil (r->plan->n_replicas * r->plan->nodes_per_replica);
  return (guint) fmax (fmin (ls_run_cause (r, cause)->nodes, all), 1);
}

static void
slow_down (LiveRun *r, guint cause)
{
  r->n_slow[cause]++;
  set_slow (r);
  add_later (r, on_slow_found, cause, detect_s (r, cause));
  if (r->state == WORKING)
    ls_run_go_on (r);
}

void
ls_run_happen (LiveRun *r, guint cause)
{
  switch ((LsFailureEffect) ls_run_cause (r, cause)->effect) {
  case LS_FAILURE_REPLACE:
    fail (r, cause, n_taken (r, cause));
    break;
  case LS_FAILURE_RESTART:
    fail (r, cause, 0);
    break;
  case LS_FAILURE_PLANNED:
    if (is_up (r))
      stop_behind_save (r, cause);
    break;
  case LS_FAILURE_STALL:
    if (r->state == WORKING) {
      r->stall_cause = cause;
      ls_run_enter (r, STALLED, detect_s (r, cause));
    }
    break;
  case LS_FAILURE_SLOW:
    slow_down (r, cause);
    break;
  case LS_FAILURE_CORRUPT:
    add_later (r, on_corrupt_found, cause, detect_s (r, cause));
    break;
  }
}
