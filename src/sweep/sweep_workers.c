/* sweep/sweep_workers.c — who does the work of a sweep: threads of this process, and other processes
 * with threads of theirs.
 *
 * The calling thread hands out one configuration at a time to whoever has a thread idle, and does
 * what follows from the results. While it waits for the last of a wave, idle threads go ahead to
 * configurations of later waves: what they find stays aside until these waves come, so nothing
 * depends on who was fast, and is lost if the wave does not come. */
#include "base/order.h"

#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "base/handover.h"
#include "job/job_steps.h"
#include "job/knobs.h"
#include "sweep/sweep_state.h"

/* ---- candidates in the order of what their steps take at least ---- */

/* Those that nobody has looked at lie sorted, and so do the others, by themselves. */

static double
pace_of (const Candidate *c)
{
  return (double) c->key / c->goodput;
}

static int
by_pace (gconstpointer x, gconstpointer y, gpointer none)
{
  const Candidate *a = x, *b = y;
  LS_SMALLER_FIRST (pace_of (a), pace_of (b));
  return LS_ORDER (a->index, b->index);
}

void
queue_init (Queue *q, LsSweepRun *x, const Group *group)
{
  *q = (Queue) { x, group, 0, g_sequence_new (NULL) };
}

/* What is not pending was tried before. */
static Candidate *
first_new (const Queue *q, uint32_t *ret_at)
{
  for (*ret_at = q->at; *ret_at < q->group->n; ++*ret_at) {
    Candidate *c = candidate_at (q->x, q->group->first + *ret_at);
    if (c->status == TRY_PENDING)
      return c;
  }
  return NULL;
}

Candidate *
queue_first (const Queue *q)
{
  uint32_t at;
  Candidate *fresh = first_new (q, &at),
            *again
      = g_sequence_is_empty (q->again) ? NULL : g_sequence_get (g_sequence_get_begin_iter (q->again));
  return fresh && (!again || by_pace (fresh, again, NULL) < 0) ? fresh : again;
}

Candidate *
queue_take (Queue *q)
{
  Candidate *first = queue_first (q);
  GSequenceIter *again = g_sequence_get_begin_iter (q->again);
  if (first && !g_sequence_iter_is_end (again) && first == g_sequence_get (again)) {
    g_sequence_remove (again);
    return first;
  }
  first_new (q, &q->at);
  q->at += first != NULL;
  return first;
}

void
queue_put_back (Queue *q, Candidate *c)
{
  g_sequence_insert_sorted (q->again, c, by_pace, NULL);
}

/* ---- one configuration of a sweep, simulated ---- */

/* Up to its step; is_plain: without what its allocator costs it. Owns prepared. */
static LsJobResult *
run (const LsSweepRun *x, Work *w, LsJobResult *prepared, const LsRunOptions *options, bool is_plain,
     double cost_share[LS_N_COST_SHARES])
{
  gint64 start = g_get_monotonic_time ();
  LsJobResult *r = (is_plain ? ls_job_run_plain : ls_job_run_prepared) (prepared, x->hardware, options,
                                                                        cost_share, NULL);
  w->simulate_us += g_get_monotonic_time () - start;
  return r;
}

/* As all are run, with the times of all ops or without. */
static LsRunOptions
options_of (const LsSweepRun *x, bool has_times)
{
  LsRunOptions options = x->options;
  options.no_spans = !has_times;
  options.steady = true;
  return options;
}

static LsJobResult *
prepare (const LsSweepRun *x, const Work *w)
{
  LsStrategy s;
  LsPoint p;
  ls_space_point (&x->spec->space, w->index, &p);
  candidate_strategy (x, &p, &s, NULL);
  LsJobResult *r = ls_job_prepare_on (&x->model, x->hardware, candidate_cluster (x, &p), &s, NULL);
  ls_strategy_clear (&s);
  return r;
}

/* By the order of allocations, without running; at_least: of any run. */
static uint64_t
memory_in_order (const LsSweepRun *x, const LsJobResult *prepared, bool at_least)
{
  LsMemoryInput in = ls_job_result_memory_input (prepared, x->hardware, &x->options.memory);
  in.options.allocator = LS_MEMORY_EXACT;
  in.at_least = at_least;
  g_autoptr (LsMemory) m = ls_memory_new (&in);
  return ls_memory_fullest (m)->needed_bytes;
}

static LsTime
step_of (const LsJobResult *r)
{
  return r->timeline->window_end - r->timeline->window_start;
}

static void
add_interval (const LsSweepRun *x, LsJobResult *r, Figures *figures)
{
  LsInterval interval = { .none = NULL };
  LsJobSpec spec = x->spec->job; /* borrows all */
  spec.from = NULL;              /* it simulates the job as it is once more */
  r->hardware = x->hardware;     /* lends it */
  if (x->residuals)
    ls_job_interval (&spec, r, x->residuals, NULL, &interval);
  r->hardware = NULL;
  bool has_one = x->residuals && !interval.none;
  figures->low = has_one ? interval.low : NAN;
  figures->high = has_one ? interval.high : NAN;
  ls_interval_clear (&interval);
}

/* Memory by recorded times, and what the step is made of. Owns plain, with the times of its ops; NULL: it
 * cannot run. */
static void
confirm (const LsSweepRun *x, Work *w, LsJobResult *plain, const LsRunOptions *options,
         double cost_share[LS_N_COST_SHARES])
{
  Confirmation *to = &w->confirmed;
  gint64 start = g_get_monotonic_time ();
  g_autoptr (LsJobResult) r = ls_job_simulate_rest (plain, x->hardware, options, cost_share, NULL);
  w->simulate_us += g_get_monotonic_time () - start;
  to->status = TRY_ILLEGAL;
  if (!r)
    return;
  const LsReport *p = &r->report;
  to->status = p->needed_bytes <= candidate_limit (x, &r->strategy) ? TRY_DONE : TRY_INFEASIBLE;
  to->step = step_of (r);
  to->memory_bytes = p->needed_bytes;
  to->figures = (Figures) { .n_ranks = p->n_ranks, .tokens_per_s = p->tokens_per_s, .mfu = p->mfu };
  for (int i = 0; i < LS_N_PARTS; i++)
    to->figures.breakdown_s[i] = p->breakdown_s[i];
  add_interval (x, r, &to->figures);
}

/* What its allocator costs it is looked for where all that its programs take may be too much. */
static bool
may_retry (const LsSweepRun *x, const Work *w, const LsJobResult *prepared)
{
  bool has_places = prepared->strategy.memory.offload_activations;
  return ls_job_may_retry (prepared, has_places ? memory_in_order (x, prepared, false) : w->memory_bytes);
}

/* Owns prepared. */
static void
run_to_its_step (const LsSweepRun *x, Work *w, LsJobResult *prepared)
{
  bool retries = may_retry (x, w, prepared), wants_all = sweep_wants_all (x),
       is_likely = !wants_all && w->least <= w->likely;
  LsRunOptions options = options_of (x, is_likely);
  double cost_share[LS_N_COST_SHARES];
  g_autoptr (LsJobResult) r = run (x, w, prepared, &options, !wants_all, cost_share);
  if (!r)
    return;
  w->status = retries && !wants_all ? TRY_RAN : TRY_DONE;
  w->step = step_of (r);
  if (is_likely && w->step <= w->hope)
    confirm (x, w, g_steal_pointer (&r), &options, cost_share);
}

static void
try_it (const LsSweepRun *x, Work *w)
{
  bool is_host = x->options.memory.clock == LS_MEMORY_HOST; /* the device's may hold less */
  g_autoptr (LsJobResult) prepared = prepare (x, w);
  w->status = TRY_ILLEGAL;
  if (!prepared)
    return;
  if (w->least == 0 && !x->spec->no_prune)
    w->least = ls_job_bound (prepared, x->hardware, &x->options);
  if (w->least > w->limit) { /* the cheaper of the two questions comes first */
    w->status = TRY_PRUNED;
    return;
  }
  w->memory_bytes = memory_in_order (x, prepared, true);
  if (is_host && w->memory_bytes > candidate_limit (x, &prepared->strategy)) {
    w->status = TRY_INFEASIBLE;
    return;
  }
  run_to_its_step (x, w, g_steal_pointer (&prepared));
}

static void
confirm_it (const LsSweepRun *x, Work *w)
{
  LsRunOptions options = options_of (x, true);
  double cost_share[LS_N_COST_SHARES];
  LsJobResult *prepared = prepare (x, w);
  confirm (x, w, run (x, w, prepared, &options, true, cost_share), &options, cost_share);
}

/* Of what is cut off nothing counts. */
void
work_do (const LsSweepRun *x, Work *w)
{
  const Work asked = *w;
  ls_stop_begin (x->stop, w->kind == WORK_TRY ? 0 : SWEEP_GRACE_US);
  if (ls_stopped ())
    ;
  else if (w->kind == WORK_TRY)
    try_it (x, w);
  else
    confirm_it (x, w);
  if (ls_stopped ()) {
    *w = asked;
    w->is_cut = true;
  }
  ls_stop_begin (NULL, 0);
}

#define POLL_US 100 /* of messages, beside results of own threads; a simulation takes milliseconds */

G_STATIC_ASSERT (sizeof (Work) <= LS_TEAM_MAX_BYTES);

typedef struct {
  guint n, n_busy; /* threads */
  guint n_wanted;  /* n, once it is proven that its simulations come out alike */
} Hands;

struct Workers {
  LsSweepRun *x;
  LsTeam *team; /* NULL: this process alone */
  guint n_hands;
  Hands *hands; /* [0]: the threads here   */
  LsCrew *threads;
  GAsyncQueue *done; /* Work, by threads here */
};

/* --- threads here ------------------------------------------------------------------------------- */

static void
do_work (gpointer work, gpointer workers)
{
  Workers *c = workers;
  GAsyncQueue *done = c->done;
  LS_TAKE_OVER (work);
  work_do (c->x, work);
  LS_HAND_OVER (work);
  LS_HAND_OVER (c);
  g_async_queue_push (done, work);
}

Workers *
workers_new (LsSweepRun *x)
{
  Workers *workers = g_new0 (Workers, 1);
  LsTeam *team = x->spec->team;
  guint n_default = team ? ls_team_default_threads (team) : g_get_num_processors ();
  workers->x = x;
  workers->team = team;
  workers->n_hands = team ? ls_team_n (team) : 1;
  workers->hands = g_new0 (Hands, workers->n_hands);
  workers->hands[0].n = x->spec->n_threads > 0 ? x->spec->n_threads : n_default;
  workers->done = g_async_queue_new_full (g_free);
  workers->threads = ls_crew_new (do_work, workers, workers->hands[0].n);
  return workers;
}

void
workers_free (Workers *workers)
{
  if (!workers)
    return;
  ls_crew_end (workers->threads); /* what runs, runs to its end */
  LS_TAKE_OVER (workers);
  g_async_queue_unref (workers->done);
  g_free (workers->hands);
  g_free (workers);
}

guint
workers_n_threads (const Workers *workers)
{
  return workers->hands[0].n;
}

/* To a thread of this process. */
static void
push (Workers *workers, const Work *work)
{
  Work *own = g_memdup2 (work, sizeof *work);
  LS_HAND_OVER (own);
  ls_crew_push (workers->threads, own);
}

/* What a thread has done, NULL if it takes too long; is_patient: as long as it takes. Free it. */
static Work *
pop (Workers *workers, bool is_patient)
{
  Work *done
      = is_patient ? g_async_queue_pop (workers->done) : g_async_queue_timeout_pop (workers->done, POLL_US);
  if (done)
    LS_TAKE_OVER (done);
  return done;
}

/* --- another process --- */

void
workers_serve (LsSweepRun *x)
{
  Workers *workers = x->workers;
  g_autofree char *key = sweep_digest (x);
  ls_team_report (workers->team, key, workers->hands[0].n);
  for (;;) {
    LsTeamMessage m;
    guint from;
    while (ls_team_receive (workers->team, &m, &from)) {
      if (m.kind == LS_TEAM_QUIT)
        return;
      push (workers, (const Work *) m.bytes);
    }
    g_autofree Work *done = pop (workers, false);
    if (done)
      ls_team_send (workers->team, 0, LS_TEAM_WORK, done, sizeof *done);
  }
}

/* --- the leader: who is there ------------------------------------------------------------------- */

static void
give (Workers *workers, guint to, const Work *work)
{
  workers->hands[to].n_busy++;
  if (to == 0)
    push (workers, work);
  else
    ls_team_send (workers->team, to, LS_TEAM_WORK, work, sizeof *work);
}

gboolean
workers_gather (LsSweepRun *x, GError **error)
{
  Workers *workers = x->workers;
  if (!workers->team)
    return TRUE;
  g_autofree char *key = sweep_digest (x);
  g_autofree guint *n_threads = g_new0 (guint, workers->n_hands);
  if (!ls_team_gather (workers->team, key, n_threads, error))
    return FALSE;
  for (guint i = 1; i < workers->n_hands; i++)
    workers->hands[i].n_wanted = n_threads[i];
  return TRUE;
}

void
workers_prove (LsSweepRun *x, const Candidate *rule)
{
  Workers *workers = x->workers;
  for (guint i = 1; i < workers->n_hands; i++) {
    Work work = { .kind = WORK_PROOF };
    if (!rule) {
      workers->hands[i].n = workers->hands[i].n_wanted;
      continue;
    }
    work.candidate = (uint32_t) (rule - candidate_at (x, 0));
    work.index = rule->index;
    give (workers, i, &work);
  }
}

/* Files of the same names may differ between machines. */
static void
take_proof (Workers *workers, guint from, const Work *work)
{
  LsSweepRun *x = workers->x;
  const Candidate *rule = candidate_at (x, work->candidate);
  const Confirmation *found = &work->confirmed;
  if (found->status == TRY_DONE && found->step == rule->step && found->memory_bytes == rule->memory_bytes)
    workers->hands[from].n = workers->hands[from].n_wanted;
  else if (!x->error)
    g_set_error (&x->error, LS_ERROR, LS_ERROR_CONFLICT,
                 "process %u simulates another step than process 0: all need the same program, model, "
                 "cluster and calibration",
                 from);
}

/* --- the leader: results -------------------------------------------------------------------------- */

static WorkKind
kind_of (WorkKind kind, const Candidate *c)
{
  return kind != WORK_NEXT ? kind : c->status == TRY_PENDING ? WORK_TRY : WORK_CONFIRM;
}

/* It takes longer by its plan than what is worth simulating now, whether or not somebody did so ahead. */
static bool
is_put_off (const LsSweepRun *x, const Candidate *c)
{
  return c->least > sweep_step_within (c, x->threshold);
}

/* Somebody tried it ahead, for whom it was not worth simulating. */
static bool
is_too_little (const LsSweepRun *x, WorkKind kind, const Candidate *c)
{
  return kind == WORK_TRY && c->found == TRY_PRUNED && !is_put_off (x, c);
}

/* What the program of the launch files refuses cannot be run. */
static void
read_again (LsSweepRun *x, Candidate *c)
{
  LsStrategy s;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  candidate_settled (x, c, &s);
  if (!ls_job_is_read (&x->spec->job, &x->model, &s, diags)) {
    c->status = TRY_ILLEGAL;
    c->is_confirmed = false;
    if (x->n_refused++ == 0)
      x->refused = g_strdup (ls_diag_list_at (diags, 0).message);
  }
  ls_strategy_clear (&s);
}

/* What was found holds from now on. */
static void
take (LsSweepRun *x, WorkKind kind, Candidate *c, bool is_known)
{
  bool is_new = kind == WORK_TRY && c->key == c->bound.step;
  c->is_due = false;
  if (kind == WORK_TRY)
    c->key = MAX (c->key, c->least);
  if (is_new) { /* what a journal knows was done before: the rate is that of what is simulated now */
    x->n_to_do -= is_known;
    x->n_done += !is_known;
    ls_progress_tell (&x->spec->progress, x->n_done, x->n_to_do);
  }
  if (kind == WORK_TRY && is_put_off (x, c))
    return;
  if (kind == WORK_TRY)
    c->bound.memory_bytes = MAX (c->bound.memory_bytes, c->memory_bytes);
  bool may_be_off_front = kind == WORK_TRY && !is_known && x->spec->pareto && c->least > 0;
  c->status = may_be_off_front && sweep_cannot_win (x, c) ? TRY_PRUNED : c->found; /* by its plan */
  if (c->status == TRY_PRUNED)
    return;
  if (c->status == TRY_DONE || c->status == TRY_RAN)
    c->key = c->step;
  c->is_confirmed |= kind != WORK_TRY && c->status == TRY_DONE;
  if (kind == WORK_TRY && !is_known)
    sweep_journal_try (x, c);
  if (kind == WORK_CONFIRM && !is_known)
    sweep_journal_confirm (x, c);
  if (kind == WORK_CONFIRM && c->is_confirmed && x->spec->job.from)
    read_again (x, c);
}

const Confirmation *
sweep_answer (const LsSweepRun *x, const Candidate *c)
{
  return g_hash_table_lookup (x->answers, GUINT_TO_POINTER ((guint) (c - candidate_at (x, 0))));
}

static void
take_confirmation (LsSweepRun *x, WorkKind kind, Candidate *c, const Confirmation *answer)
{
  c->found = answer->status;
  c->memory_bytes = answer->memory_bytes;
  c->step = answer->step;
  take (x, kind, c, false);
}

static bool
take_known (LsSweepRun *x, WorkKind kind, Candidate *c)
{
  const Known *known = sweep_known (x, c);
  const Found *found = !known ? NULL : kind == WORK_TRY ? &known->tried : &known->confirmed;
  if (!found || !found->is_there || kind == WORK_REPORT)
    return false;
  c->found = found->status;
  c->memory_bytes = found->memory_bytes;
  c->step = found->step;
  if (kind == WORK_TRY)
    c->least = found->least;
  take (x, kind, c, true);
  return true;
}

static void
take_result (Workers *workers, guint from, const Work *work)
{
  LsSweepRun *x = workers->x;
  Candidate *c = candidate_at (x, work->candidate);
  workers->hands[from].n_busy--;
  x->simulate_us += work->simulate_us;
  if (work->is_cut && work->kind != WORK_PROOF) { /* whether it fits is not known */
    c->is_asked = c->is_due = false;
    c->status = TRY_PENDING;
  }
  if (work->is_cut)
    return;
  if (work->kind == WORK_PROOF) {
    take_proof (workers, from, work);
    return;
  }
  c->is_asked = false;
  if (work->confirmed.status != TRY_PENDING)
    g_hash_table_insert (x->answers, GUINT_TO_POINTER (work->candidate),
                         g_memdup2 (&work->confirmed, sizeof work->confirmed));
  sweep_tell (x, c, &work->confirmed);
  if (work->kind != WORK_TRY) {
    take_confirmation (x, work->kind, c, &work->confirmed);
    return;
  }
  c->found = work->status;
  c->memory_bytes = work->memory_bytes;
  c->step = work->step;
  c->least = work->least;
  if (c->is_due && !is_too_little (x, work->kind, c))
    take (x, work->kind, c, false);
}

/* At least one, if any is to come from a thread here. */
static void
wait_for_results (Workers *workers)
{
  LsTeamMessage m;
  guint from;
  bool is_alone = workers->n_hands == 1;
  g_autofree Work *done = pop (workers, is_alone);
  if (done)
    take_result (workers, 0, done);
  while (!is_alone && ls_team_receive (workers->team, &m, &from)) {
    Work work;
    memcpy (&work, m.bytes, sizeof work);
    take_result (workers, from, &work);
  }
}

/* --- the leader: work ----------------------------------------------------------------------------- */

/* Most of whose threads are idle; false: none is. */
static bool
find_idle (const Workers *workers, guint *ret_to)
{
  guint most = 0;
  for (guint i = 0; i < workers->n_hands; i++) {
    const Hands *h = &workers->hands[i];
    if (h->n > h->n_busy && h->n - h->n_busy > most) {
      most = h->n - h->n_busy;
      *ret_to = i;
    }
  }
  return most > 0;
}

static void
ask (Workers *workers, guint to, WorkKind kind, Candidate *c)
{
  const LsSweepRun *x = workers->x;
  Work work = { .kind = (uint8_t) kind,
                .index = c->index,
                .candidate = (uint32_t) (c - candidate_at (x, 0)),
                .limit = sweep_step_within (c, x->threshold),
                .least = kind == WORK_TRY ? c->least : 0,
                .hope = sweep_hope (x, c) };
  work.likely = work.hope == LS_TIME_NEVER ? work.hope : (LsTime) ((double) work.hope / x->stretch);
  c->is_asked = true;
  give (workers, to, &work);
}

/* The first that is due; is_free: and in nobody's hands. */
static Candidate *
first_due (Candidate **list, guint n, bool is_free)
{
  for (guint i = 0; i < n; i++)
    if (list[i]->is_due && !(is_free && list[i]->is_asked))
      return list[i];
  return NULL;
}

/* Marks what is to be done, takes what is known. */
static void
begin (LsSweepRun *x, WorkKind kind, Candidate **list, guint n)
{
  for (guint i = 0; i < n; i++) {
    Candidate *c = list[i];
    WorkKind own = kind_of (kind, c);
    bool is_found = own == WORK_TRY && c->found != TRY_PENDING; /* ahead */
    const Confirmation *answer = own == WORK_CONFIRM ? sweep_answer (x, c) : NULL;
    if (is_found && !is_too_little (x, own, c))
      take (x, own, c, false);
    else if (answer)
      take_confirmation (x, own, c, answer);
    else if (!take_known (x, own, c))
      c->is_due = true;
  }
}

void
workers_do (LsSweepRun *x, WorkKind kind, Candidate **list, guint n)
{
  Workers *workers = x->workers;
  guint to;
  begin (x, kind, list, n);
  for (;;) {
    Candidate *c;
    for (guint i = 0; i < n && is_stopped (x); i++) /* what was not begun then is not tried */
      if (kind_of (kind, list[i]) == WORK_TRY)
        list[i]->is_due &= list[i]->is_asked;
    while (find_idle (workers, &to) && (c = first_due (list, n, true)))
      ask (workers, to, kind_of (kind, c), c);
    if (!first_due (list, n, false))
      return;
    while (!is_stopped (x) && find_idle (workers, &to) && (c = sweep_next_ahead (x)))
      ask (workers, to, WORK_TRY, c);
    wait_for_results (workers);
  }
}
