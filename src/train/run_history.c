#include "train/run_history.h"

#include <lockstep/error.h>
#include <string.h>
#include <float.h>
#include <math.h>

#include "train/run_state.h"

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

/* --- a training run with its failures, event by event -------------------------------------------- */

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
array_of (const char *type, gconstpointer elements, gsize n, gsize size)
{
  return g_variant_new_fixed_array (G_VARIANT_TYPE (type), elements, n, size);
}

/* But for its spans. */
static GVariant *
pack_history (guint i, gconstpointer data)
{
  const Work *w = data;
  const LsRunHistory *h = &w->histories[i];
  gsize n_causes = h->causes ? w->plan->reliability->causes->len : 0;
  GVariant *lost = array_of ("d", h->lost_s, LS_N_LOST, sizeof *h->lost_s);
  GVariant *causes = array_of ("(td)", h->causes, n_causes, sizeof *h->causes);
  return g_variant_new ("(dd@adttbb@a(td))", h->wall_s, h->useful_s, lost, h->n_stops, h->n_events,
                        h->is_finished, h->is_endless, causes);
}

static void
unpack_history (guint i, GVariant *packed, gpointer data)
{
  Work *w = data;
  LsRunHistory *h = &w->histories[i];
  g_autoptr (GVariant) lost = NULL, causes = NULL;
  gboolean is_finished, is_endless;
  gsize n;
  g_variant_get (packed, "(dd@adttbb@a(td))", &h->wall_s, &h->useful_s, &lost, &h->n_stops, &h->n_events,
                 &is_finished, &is_endless, &causes);
  h->is_finished = is_finished;
  h->is_endless = is_endless;
  memcpy (h->lost_s, g_variant_get_fixed_array (lost, &n, sizeof *h->lost_s), sizeof h->lost_s);
  const LsCauseTally *tallies = g_variant_get_fixed_array (causes, &n, sizeof *tallies);
  h->causes = g_memdup2 (tallies, n * sizeof *tallies);
  if (h->is_endless)
    g_atomic_int_set (&w->has_given_up, 1);
}

LsRunHistory *
ls_run_histories_new (const LsRunPlan *plan, uint32_t first_seed, guint n, const LsTeamSetup *setup,
                      GError **error)
{
  Work w = { plan, first_seed, 0, g_new0 (LsRunHistory, n) };
  const LsTeamLoop loop = { .each = find_history,
                            .pack = pack_history,
                            .unpack = unpack_history,
                            .type = "(ddadttbba(td))",
                            .data = &w };
  gboolean ok = ls_team_each (setup, n, &loop, error);
  if (ok && !w.has_given_up)
    return w.histories;
  if (ok)
    g_set_error (
        error, LS_ERROR, LS_ERROR_LIMIT,
        "the run does not get on: %u events passed without a new checkpoint, %u in all, or a century",
        LS_HISTORY_MAX_IDLE_EVENTS, LS_HISTORY_MAX_EVENTS);
  for (guint i = 0; i < n; i++)
    ls_run_history_clear (&w.histories[i]);
  g_free (w.histories);
  return NULL;
}
