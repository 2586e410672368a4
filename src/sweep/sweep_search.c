/* sweep/sweep_search.c — which configurations of a sweep are tried: see sweep.h. */
#include "sweep/sweep_state.h"

#include <math.h>

#include "base/order.h"
#include "job/knobs.h"

/* --- one beside another ------------------------------------------------------------------------- */

static double
seconds_per_token (const LsSweepRun *x, const Candidate *c, LsTime step)
{
  return ls_time_to_s (step) / g_array_index (x->groups, Group, c->group).global_batch;
}

/* Per sequence: sequences are of one length. */
static double
gpu_seconds (const LsSweepRun *x, const Candidate *c, LsTime step)
{
  return seconds_per_token (x, c, step) * g_array_index (x->groups, Group, c->group).gpus;
}

/* Whether a, as it was simulated, is as good in all as b with this time and memory, and
 * better in one. */
static bool
dominates (const LsSweepRun *x, const Candidate *a, const Candidate *b, LsTime step, uint64_t memory_bytes)
{
  double ta = seconds_per_token (x, a, a->step), tb = seconds_per_token (x, b, step);
  double ca = gpu_seconds (x, a, a->step), cb = gpu_seconds (x, b, step);
  if (ta > tb || ca > cb || a->memory_bytes > memory_bytes)
    return false;
  return ta < tb || ca < cb || a->memory_bytes < memory_bytes;
}

static bool
is_dominated (const LsSweepRun *x, const Candidate *c, LsTime step, uint64_t memory_bytes)
{
  for (guint i = 0; i < x->front->len; i++) {
    const Candidate *other = candidate_at (x, g_array_index (x->front, guint, i));
    if (other != c && dominates (x, other, c, step, memory_bytes))
      return true;
  }
  return false;
}

double
sweep_paced (const Candidate *c)
{
  return (double) c->step / c->goodput;
}

/* Rounding never makes it shorter: what is as good as the pace stays within. */
LsTime
sweep_step_within (const Candidate *c, double pace)
{
  if (isinf (pace))
    return LS_TIME_NEVER;
  return c->goodput == 1 ? (LsTime) pace : (LsTime) (pace * c->goodput) + 1;
}

LsTime
sweep_step_limit (const LsSweepRun *x, const Candidate *c)
{
  return sweep_step_within (c, g_array_index (x->groups, Group, c->group).limit);
}

static int
compare_paces (gconstpointer a, gconstpointer b)
{
  const Candidate *x = *(Candidate *const *) a, *y = *(Candidate *const *) b;
  LS_SMALLER_FIRST (sweep_paced (x), sweep_paced (y));
  return LS_ORDER (x->index, y->index);
}

GPtrArray *
sweep_ranking (LsSweepRun *x, const Group *g)
{
  GPtrArray *done = g_ptr_array_new ();
  for (guint i = 0; i < g->n; i++)
    if (candidate_at (x, g->first + i)->status == TRY_DONE)
      g_ptr_array_add (done, candidate_at (x, g->first + i));
  g_ptr_array_sort (done, compare_paces);
  return done;
}

/* --- the limit and the front -------------------------------------------------------------------- */

static double *
of_idea (const GArray *paces, uint32_t idea)
{
  return &g_array_index (paces, double, idea *N_OF_IDEA);
}

static void
add_pace (const GArray *paces, const Candidate *c)
{
  double *best = of_idea (paces, c->idea), pace = sweep_paced (c);
  for (guint i = 0; i < N_OF_IDEA; i++)
    if (pace < best[i]) {
      double worse = best[i];
      best[i] = pace;
      pace = worse;
    }
}

/* The best of the `top`th best idea; INFINITY: there are fewer. */
static double
find_limit (const LsSweepRun *x, GPtrArray *list)
{
  g_autoptr (GHashTable) seen = g_hash_table_new (NULL, NULL);
  g_ptr_array_sort (list, compare_paces);
  for (guint i = 0; i < list->len; i++) {
    const Candidate *c = list->pdata[i];
    g_hash_table_add (seen, GUINT_TO_POINTER (c->idea));
    if (g_hash_table_size (seen) == x->spec->top)
      return sweep_paced (c);
  }
  return INFINITY;
}

static void
update_limit (LsSweepRun *x, Group *g, Candidate **wave, guint n)
{
  for (guint i = 0; i < n; i++)
    if (wave[i]->is_confirmed) {
      g_ptr_array_add (x->confirmed, wave[i]);
      add_pace (x->paces, wave[i]);
    }
  g->limit = find_limit (x, x->confirmed);
}

void
sweep_tell (LsSweepRun *x, const Candidate *c, const Confirmation *answer)
{
  const LsProgress *to = &x->spec->progress;
  Group *g = &g_array_index (x->groups, Group, c->group);
  double pace = (double) answer->step / c->goodput;
  if (!to->best || answer->status != TRY_DONE || pace >= g->told)
    return;
  LsStrategy s;
  candidate_settled (x, c, &s);
  g_autofree char *what = ls_knobs_summary (&s, &x->model);
  ls_strategy_clear (&s);
  g->told = pace;
  to->best (ls_time_to_s (answer->step), what, to->best_data);
}

/* Of a group of which nothing ran yet. */
static void
begin_hope (LsSweepRun *x)
{
  g_ptr_array_set_size (x->ran, 0);
  x->hope = INFINITY;
  x->stretch = 1;
}

/* What is to be hoped for, from those that ran. Where all are simulated nothing is confirmed at once. */
static void
update_hope (LsSweepRun *x, Candidate **wave, guint n)
{
  for (guint i = 0; i < n && !sweep_wants_all (x); i++) {
    const Candidate *c = wave[i];
    if ((c->status != TRY_RAN && c->status != TRY_DONE) || c->is_confirmed)
      continue;
    g_ptr_array_add (x->ran, wave[i]);
    add_pace (x->ran_paces, c);
    double stretch = c->least > 0 ? (double) c->step / (double) c->least : 1;
    x->stretch += (stretch - x->stretch) / x->ran->len;
  }
  x->hope = find_limit (x, x->ran);
}

LsTime
sweep_hope (const LsSweepRun *x, const Candidate *c)
{
  const double *of_others = of_idea (x->ran_paces, c->idea);
  return sweep_step_within (c, MIN (x->hope, of_others[N_OF_IDEA - 1]));
}

static void
update_front (LsSweepRun *x)
{
  if (!x->spec->pareto)
    return;
  g_array_set_size (x->front, 0);
  for (guint i = 0; i < x->candidates->len; i++)
    if (candidate_at (x, i)->status == TRY_DONE && candidate_at (x, i)->is_confirmed)
      g_array_append_val (x->front, i);
  for (guint i = x->front->len; i-- > 0;) {
    const Candidate *c = candidate_at (x, g_array_index (x->front, guint, i));
    if (is_dominated (x, c, c->step, c->memory_bytes))
      g_array_remove_index (x->front, i);
  }
}

/* --- what is of interest ------------------------------------------------------------------------ */

/* As many of its idea as are ranked with the best are better. */
static bool
is_of_known_idea (const LsSweepRun *x, const Candidate *c)
{
  return !sweep_wants_all (x) && c->key > sweep_step_within (c, of_idea (x->paces, c->idea)[N_OF_IDEA - 1]);
}

bool
sweep_cannot_win (const LsSweepRun *x, const Candidate *c)
{
  if (x->spec->no_prune)
    return false;
  if (x->spec->pareto)
    return c->key > sweep_step_limit (x, c) && is_dominated (x, c, c->key, c->bound.memory_bytes);
  return c->key > sweep_step_limit (x, c) || is_of_known_idea (x, c);
}

/* Where all are simulated, those that are not among the best are not confirmed; on a front all are. */
static bool
is_idle (const LsSweepRun *x, const Candidate *c)
{
  if (c->status == TRY_PENDING)
    return sweep_cannot_win (x, c);
  const double *of_others = of_idea (x->paces, c->idea);
  return !x->spec->pareto
      && (c->key > sweep_step_limit (x, c) || c->key > sweep_step_within (c, of_others[N_OF_IDEA - 1]));
}

Candidate *
sweep_next_ahead (LsSweepRun *x)
{
  const Group *g = x->ahead;
  while (g && x->ahead_at < g->n) {
    Candidate *c = candidate_at (x, g->first + x->ahead_at++);
    const Known *known = sweep_known (x, c);
    if (c->status == TRY_PENDING && !(known && known->tried.is_there) && !sweep_cannot_win (x, c))
      return c;
  }
  return NULL;
}

/* --- waves -------------------------------------------------------------------------------------- */

/* Of a wave: a plan, a plan and a run, a run with its times. */
#define COST_OF_PLAN    1
#define COST_OF_RUN     2
#define COST_OF_CONFIRM 4

static guint
cost_of (const Candidate *c)
{
  bool has_plan = c->key > c->bound.step; /* not c->least, which somebody may have found ahead */
  return c->status != TRY_PENDING ? COST_OF_CONFIRM : has_plan ? COST_OF_RUN : COST_OF_PLAN;
}

/* What is idle stays so: limits only fall. One that is stopped confirms what it has. */
static guint
next_wave (LsSweepRun *x, Queue *q, Candidate **wave)
{
  guint n = 0, cost = 0;
  Candidate *c;
  while (cost < LS_SWEEP_WAVE && (c = queue_take (q)))
    if (!is_idle (x, c) && !(c->status == TRY_PENDING && is_stopped (x))) {
      wave[n++] = c;
      cost += cost_of (c);
    }
  const Candidate *next = queue_first (q);
  x->threshold = q->group->limit;
  if (x->spec->no_prune || x->spec->pareto) /* on the front more than time counts */
    x->threshold = INFINITY;
  else if (!sweep_wants_all (x) && next)
    x->threshold = MIN (x->threshold, (double) next->key / next->goodput);
  return n;
}

/* For a front, by which the next are left out. */
static void
confirm_wave (LsSweepRun *x, Candidate **wave, guint n)
{
  g_autoptr (GPtrArray) unsure = g_ptr_array_new ();
  for (guint i = 0; i < n; i++)
    if (x->spec->pareto && wave[i]->status == TRY_DONE && !wave[i]->is_confirmed)
      g_ptr_array_add (unsure, wave[i]);
  workers_do (x, WORK_CONFIRM, (Candidate **) unsure->pdata, unsure->len);
}

static void
put_back (Queue *q, Candidate **wave, guint n)
{
  for (guint i = 0; i < n; i++) {
    Candidate *c = wave[i];
    bool is_open = c->status == TRY_PENDING || c->status == TRY_RAN || c->status == TRY_DONE;
    if (is_open && !c->is_confirmed)
      queue_put_back (q, c);
  }
}

/* What was not simulated to its end: left by one that is stopped, else it cannot win. */
static void
settle_rest (LsSweepRun *x, const Group *g)
{
  for (uint32_t i = g->first; i < g->first + g->n; i++) {
    Candidate *c = candidate_at (x, i);
    if (c->status != TRY_PENDING && c->status != TRY_RAN)
      continue;
    c->status = TRY_PENDING;
    if (!is_stopped (x) || sweep_cannot_win (x, c))
      c->status = TRY_PRUNED;
  }
}

static void
search_group (LsSweepRun *x, Group *g)
{
  Candidate *wave[LS_SWEEP_WAVE], *rule = g->rule < 0 ? NULL : candidate_at (x, (guint) g->rule);
  Queue q;
  queue_init (&q, x, g);
  x->ahead = g;
  x->ahead_at = 0;
  g_ptr_array_set_size (x->confirmed, 0);
  begin_hope (x);
  update_limit (x, g, &rule, rule ? 1 : 0);
  for (guint n; !x->error && (n = next_wave (x, &q, wave)) > 0;) {
    x->ahead_at = MAX (x->ahead_at, q.at);
    workers_do (x, WORK_NEXT, wave, n);
    confirm_wave (x, wave, n);
    put_back (&q, wave, n);
    update_hope (x, wave, n);
    update_limit (x, g, wave, n);
    update_front (x);
    sweep_journal_sync (x);
  }
  g_sequence_free (q.again);
  settle_rest (x, g);
}

void
sweep_begin_search (LsSweepRun *x)
{
  double none = INFINITY;
  begin_hope (x);
  for (guint i = 0; i < (g_hash_table_size (x->ideas) + 1) * N_OF_IDEA; i++) {
    g_array_append_val (x->paces, none);
    g_array_append_val (x->ran_paces, none);
  }
}

void
sweep_search (LsSweepRun *x)
{
  for (guint i = 0; i < x->groups->len; i++)
    search_group (x, &g_array_index (x->groups, Group, i));
  x->ahead = NULL;
  x->threshold = INFINITY;
}
