#include "train/run_history.h"

#include <float.h>
#include <lockstep/error.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/diag.h"
#include "base/list.h"
#include "core/engine.h"

#define LS_RUN_NS_PER_S 1e9

#define LS_RUN_FAR_S 3e9 /* a century: nothing that is later matters, and times of it add up in 64 bits */

typedef enum { WORKING, SAVING, STALLED, DOWN, WAITING, DONE } RunState;

/* What a run that is down goes through, in this order; a node is taken between the second and the third. */
typedef enum { DETECTING, LOCATING, PLACING, READING, N_STAGES } StopStage;

/* A checkpoint that was begun. */
typedef struct {
  double position;   /* of the work, seconds                        */
  LsTime taken_at;   /* work until then is in it                    */
  LsTime durable_at; /* from then on it may be read                 */
  LsTime storage_at; /* from then on storage; LS_TIME_NEVER: never  */
  bool on_node;      /* a copy is on the drives of nodes            */
} SavedWork;

/* Something that happens later on: a node is back, a fault is found. */
typedef struct {
  LsEvent event; /* first */
  guint cause;
  LsTime since;
} Later;

typedef struct {
  const LsRunPlan *plan;
  LsRunHistory *out;
  LsEngine engine;
  GRand *rand;
  double rate;       /* of all causes, per second */
  double total_s;    /* of all work */
  double *phase_end; /* [n_phases] positions      */
  LsEvent failure, end_of_state;
  GPtrArray *later; /* Later *, of which some are idle */
  RunState state;
  StopStage stage;
  LsTime mark;     /* until then all is accounted for */
  double position; /* of the work: at mark, while it works */
  double target;   /* where the next checkpoint is due */
  GArray *saved;   /* SavedWork, in order of position */
  uint32_t n_saved;
  bool stops_behind;  /* a checkpoint is followed by a stop */
  guint cause;        /* of the stop that there is, or will be */
  guint stall_cause;  /* of the stall that there is */
  bool reads_storage; /* that stop lost the fast checkpoint */
  GArray *failed;     /* guint: causes of nodes that need another in their place */
  uint32_t free_nodes, missing_nodes;
  guint *n_slow; /* of each cause: nodes that are slow now */
  double slow;   /* factor of a step, of the slowest       */
  double longer; /* factor of the mean step of this phase  */
  guint slow_cause;
  LsTime save_began, storage_free_at;
  uint64_t n_idle_events; /* since a checkpoint was further than all before */
  double furthest;
} LiveRun;

#define MANY_SAVED 65536

const char *const ls_lost_names[LS_N_LOST] = { "checkpoints", "rework",  "detection", "waiting",  "restart",
                                               "slow",        "smaller", "stalls",    "variation" };

static LsTime
ls_run_ns (double seconds)
{
  return (LsTime) llround (fmin (seconds, LS_RUN_FAR_S) * LS_RUN_NS_PER_S);
}

static const LsFailureCause *
ls_run_cause (const LiveRun *r, guint i)
{
  return &g_array_index (r->plan->reliability->causes, LsFailureCause, i);
}

/* --- accounts -------------------------------------------------------------------------- */

/* Data-parallel replicas that stand still, as their nodes are missing. */
static uint32_t
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
  ls_list_add (spans, &(LsRunSpan) { kind, cause, from_s, to_s });
}

static const LsLost lost_in_stage[N_STAGES]
    = { LS_LOST_DETECTION, LS_LOST_DETECTION, LS_LOST_RESTART, LS_LOST_RESTART };

/* Whether the time of this state is lost, to what and by which cause. */
static bool
loses (const LiveRun *r, LsLost *ret_kind, guint *ret_cause)
{
  *ret_kind = r->state == STALLED ? LS_LOST_STALL
      : r->state == DOWN          ? lost_in_stage[r->stage]
                                  : LS_LOST_WAITING;
  *ret_cause = r->state == STALLED ? r->stall_cause : r->cause;
  return r->state == STALLED || r->state == DOWN || r->state == WAITING;
}

/* The time since the last account, to what it was. */
static void
ls_run_account (LiveRun *r)
{
  double seconds = (double) (r->engine.now - r->mark) / LS_RUN_NS_PER_S;
  bool keeps = r->out->spans && seconds > 0;
  LsLost kind;
  guint cause;
  r->mark = r->engine.now;
  if (loses (r, &kind, &cause)) {
    lose_to (r, kind, seconds, cause);
  } else if (r->state == WORKING) {
    kind = r->slow > 1 ? LS_LOST_SLOW : LS_LOST_SMALLER;
    cause = r->slow > 1 ? r->slow_cause : r->cause;
    keeps = keeps && (r->slow > 1 || r->missing_nodes > 0);
    account_work (r, seconds);
  } else {
    keeps = false;
    r->out->lost_s[LS_LOST_CHECKPOINT] += r->state == SAVING ? seconds : 0;
  }
  if (keeps)
    keep_span (r, kind, cause, seconds);
}

/* The state that follows: it ends in so many seconds, or when something happens. */
static void
ls_run_enter (LiveRun *r, RunState state, double seconds)
{
  r->state = state;
  ls_engine_at (&r->engine, &r->end_of_state, r->engine.now + ls_run_ns (seconds), LS_PHASE_COMPLETE);
}

static void
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

/* Works from where it is: to the target that there is, or to the next. */
static void
ls_run_go_on (LiveRun *r)
{
  ls_run_enter (r, WORKING, fmax (r->target - r->position, 0) * r->longer * r->slow * smaller (r));
}

static void
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

/* Until the last checkpoint may be read, seconds; until storage is free for the next. */
static double
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

static void
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

static void
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
static void
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
  lose_to (r, LS_LOST_REWORK, from - r->position, r->cause);
}

/* --- stops, and what failures do
 * ------------------------------------------------------------------------------ */

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

/* Nothing happens any more. */
static void
ls_run_end (LiveRun *r)
{
  ls_run_enter_open (r, DONE);
  r->engine.stop_at = r->engine.now;
}

/* Gives up what does not get on; whether it has. Before each event. */
static bool
ls_run_gives_up (LiveRun *r)
{
  if (++r->n_idle_events <= LS_HISTORY_MAX_IDLE_EVENTS && r->engine.n_events <= LS_HISTORY_MAX_EVENTS)
    return false;
  ls_run_account (r);
  ls_run_end (r);
  return true;
}

/* Down, from that stage on. */
static void
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

static void
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

/* One of a cause, now. */
static void
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

/* --- what checkpoints of a training run cost, and how often they are worth it -------------------- */

double
ls_young_interval_s (double save_s, double mtbf_s)
{
  return sqrt (2 * save_s * mtbf_s);
}

double
ls_daly_interval_s (double save_s, double mtbf_s)
{
  if (save_s >= 2 * mtbf_s)
    return mtbf_s;
  double half = save_s / (2 * mtbf_s);
  return sqrt (2 * save_s * mtbf_s) * (1 + sqrt (half) / 3 + half / 9) - save_s;
}

/* x = t / M of -x - ln (1 - x) = C / M, by Newton from above: the left side is convex, so that no step goes
 * too far. */
double
ls_best_interval_s (double save_s, double mtbf_s)
{
  double cost = save_s / mtbf_s, x = fmin (sqrt (2 * cost), -expm1 (-1 - cost));
  for (double step = x; step > DBL_EPSILON * x && x < 1;) {
    step = (-x - log1p (-x) - cost) * (1 - x) / x;
    x -= step;
  }
  return mtbf_s * x;
}

double
ls_expected_piece_s (double work_s, double save_s, double restart_s, double mtbf_s)
{
  if (isinf (mtbf_s))
    return work_s + save_s;
  return mtbf_s * exp (restart_s / mtbf_s) * expm1 ((work_s + save_s) / mtbf_s);
}

/* --- events ----------------------------------------------------------------------------- */

static void
plan_failure (LiveRun *r)
{
  double wait = fmin (-log (1 - g_rand_double (r->rand)) / r->rate, LS_RUN_FAR_S);
  ls_engine_at (&r->engine, &r->failure, r->engine.now + MAX (ls_run_ns (wait), 1), LS_PHASE_DISPATCH);
}

static guint
draw_cause (LiveRun *r)
{
  guint n = r->plan->reliability->causes->len;
  double at = g_rand_double (r->rand) * r->rate;
  for (guint i = 0; i + 1 < n; i++) {
    at -= ls_failure_rate (ls_run_cause (r, i), &r->plan->units);
    if (at < 0)
      return i;
  }
  return n - 1;
}

static void
on_failure (LsEvent *event, void *context)
{
  LiveRun *r = context;
  (void) event;
  if (ls_run_gives_up (r))
    return;
  guint cause = draw_cause (r);
  if (r->state != WAITING) {
    ls_run_account (r);
    r->out->causes[cause].n++;
    ls_run_happen (r, cause);
  }
  plan_failure (r);
}

static void
on_end_of_state (LsEvent *event, void *context)
{
  LiveRun *r = context;
  (void) event;
  if (ls_run_gives_up (r))
    return;
  ls_run_account (r);
  if (r->state == WORKING) {
    r->position = r->target;
    ls_run_begin_save (r);
  } else if (r->state == SAVING) {
    ls_run_add_saved (r);
    if (r->position >= r->total_s)
      ls_run_end (r);
    else if (r->stops_behind)
      ls_run_go_down (r, r->cause, r->failed->len > 0 ? LOCATING : PLACING);
    else
      ls_run_begin_work (r);
  } else if (r->state == STALLED) {
    if (r->stops_behind)
      ls_run_begin_save (r);
    else
      ls_run_go_on (r);
  } else if (r->state == DOWN) {
    ls_run_next_stage (r);
  }
}

/* --- the whole -------------------------------------------------------------------------- */

static void
prepare (LiveRun *r, uint32_t seed)
{
  const LsRunPlan *plan = r->plan;
  r->rand = g_rand_new_with_seed (seed);
  r->later = g_ptr_array_new_with_free_func (g_free);
  r->saved = g_array_new (FALSE, FALSE, sizeof (SavedWork));
  r->phase_end = g_new (double, plan->n_phases);
  for (guint i = 0; i < plan->n_phases; i++)
    r->phase_end[i] = r->total_s += (double) plan->phases[i].n_steps * plan->phases[i].step_s;
  for (guint i = 0; i < plan->reliability->causes->len; i++)
    r->rate += ls_failure_rate (ls_run_cause (r, i), &plan->units);
  r->free_nodes = plan->spares;
  r->failed = g_array_new (FALSE, FALSE, sizeof (guint));
  r->n_slow = g_new0 (guint, MAX (plan->reliability->causes->len, 1));
  r->slow = r->longer = 1;
  ls_engine_init (&r->engine, &ls_evq_radix, r);
  ls_event_init (&r->failure, on_failure);
  ls_event_init (&r->end_of_state, on_end_of_state);
  r->engine.stop_at = ls_run_ns (plan->end_s > 0 ? plan->end_s : LS_RUN_FAR_S);
}

static void
clear (LiveRun *r)
{
  ls_engine_clear (&r->engine);
  g_ptr_array_unref (r->later);
  g_array_unref (r->saved);
  g_array_unref (r->failed);
  g_free (r->n_slow);
  g_rand_free (r->rand);
  g_free (r->phase_end);
}

void
ls_run_history_init (LsRunHistory *h, const LsRunPlan *plan, uint32_t seed)
{
  *h = (LsRunHistory) { .causes = g_new0 (LsCauseTally, MAX (plan->reliability->causes->len, 1)) };
  if (plan->keeps_spans)
    h->spans = g_array_new (FALSE, FALSE, sizeof (LsRunSpan));
  LiveRun r = { .plan = plan, .out = h };
  prepare (&r, seed);
  if (r.rate > 0)
    plan_failure (&r);
  ls_run_begin_work (&r);
  LsEngineEnd end = ls_engine_run (&r.engine);
  if (end == LS_ENGINE_STOPPED && r.state != DONE) {
    r.engine.now = r.engine.stop_at;
    ls_run_account (&r);
  }
  h->is_finished = r.position >= r.total_s && r.state == DONE;
  h->is_endless = !h->is_finished && (r.state == DONE || plan->end_s <= 0);
  h->wall_s = (double) r.engine.now / LS_RUN_NS_PER_S;
  h->useful_s = r.position;
  h->n_events = r.engine.n_events;
  clear (&r);
}

void
ls_run_history_clear (LsRunHistory *h)
{
  g_clear_pointer (&h->causes, g_free);
  g_clear_pointer (&h->spans, g_array_unref);
}

/* --- of many seeds --- */

typedef struct {
  const LsRunPlan *plan;
  uint32_t first_seed;
  gint has_given_up;       /* atomic: one seed does not end, so no other is tried */
  LsRunHistory *histories; /* [n] */
} Work;

static void
find_history (guint i, gpointer data)
{
  Work *w = data;
  if (g_atomic_int_get (&w->has_given_up))
    return;
  ls_run_history_init (&w->histories[i], w->plan, w->first_seed + i);
  if (w->histories[i].is_endless)
    g_atomic_int_set (&w->has_given_up, 1);
}

static GVariant *
bytes_of (gconstpointer place, gsize n)
{
  return g_variant_new_fixed_array (G_VARIANT_TYPE_BYTE, place, n, 1);
}

/* But for its spans. What is ahead of its pointers travels between processes as it is. */
static GVariant *
pack_history (guint i, gconstpointer data)
{
  const Work *w = data;
  const LsRunHistory *h = &w->histories[i];
  gsize n_causes = h->causes ? w->plan->reliability->causes->len : 0;
  return g_variant_new ("(@ay@aybb)", bytes_of (h, offsetof (LsRunHistory, causes)),
                        bytes_of (h->causes, n_causes * sizeof *h->causes), h->is_finished, h->is_endless);
}

static void
unpack_history (guint i, GVariant *packed, gpointer data)
{
  Work *w = data;
  LsRunHistory *h = &w->histories[i];
  g_autoptr (GVariant) whole = NULL, causes = NULL;
  gboolean is_finished, is_endless;
  gsize n;
  g_variant_get (packed, "(@ay@aybb)", &whole, &causes, &is_finished, &is_endless);
  memcpy (h, g_variant_get_fixed_array (whole, &n, 1), offsetof (LsRunHistory, causes));
  h->is_finished = is_finished;
  h->is_endless = is_endless;
  gconstpointer tallies = g_variant_get_fixed_array (causes, &n, 1);
  h->causes = g_memdup2 (tallies, n);
  h->spans = NULL;
  if (h->is_endless)
    g_atomic_int_set (&w->has_given_up, 1);
}

LsRunHistory *
ls_run_histories_new (const LsRunPlan *plan, uint32_t first_seed, guint n, const LsTeamSetup *setup,
                      GError **error)
{
  Work w = { plan, first_seed, 0, g_new0 (LsRunHistory, n) };
  const LsTeamLoop loop = {
    .each = find_history, .pack = pack_history, .unpack = unpack_history, .type = "(ayaybb)", .data = &w
  };
  gboolean ok = ls_team_each (setup, n, &loop, error);
  if (ok && !w.has_given_up)
    return w.histories;
  if (ok)
    ls_fail (error, LS_ERROR_LIMIT,
             "the run does not get on: %u events passed without a new checkpoint, %u in all, or a century",
             LS_HISTORY_MAX_IDLE_EVENTS, LS_HISTORY_MAX_EVENTS);
  for (guint i = 0; i < n; i++)
    ls_run_history_clear (&w.histories[i]);
  g_free (w.histories);
  return NULL;
}
