/* sweep/sweep_try.c — one configuration of a sweep, simulated. */
#include "sweep/sweep_state.h"

#include "sweep/knobs.h"

bool
is_stopped (const LsSweepRun *x)
{
  return (x->spec->stop && g_atomic_int_get (x->spec->stop) != 0) || g_atomic_int_get (&x->has_failed) != 0;
}

/* Owns prepared. */
static LsJobResult *
simulate (LsSweepRun *x, LsJobResult *prepared, bool no_spans)
{
  LsRunOptions options = x->options;
  options.no_spans = no_spans;
  gint64 start = g_get_monotonic_time ();
  LsJobResult *r = ls_job_simulate_prepared (prepared, x->hardware, &options, NULL);
  g_mutex_lock (&x->lock);
  x->simulate_us += g_get_monotonic_time () - start;
  g_mutex_unlock (&x->lock);
  return r;
}

static LsJobResult *
prepare (LsSweepRun *x, const Candidate *c)
{
  LsStrategy s;
  candidate_strategy_at (x, c->index, &s);
  LsJobResult *r = ls_job_prepare (&x->model, x->hardware, x->spec->job.n_nodes, &s, NULL);
  ls_strategy_clear (&s);
  return r;
}

/* By the order of allocations, without running. */
static uint64_t
least_memory (const LsSweepRun *x, const LsJobResult *prepared)
{
  LsMemoryInput in = ls_job_result_memory_input (prepared, x->hardware, &x->options.memory);
  in.options.allocator = LS_MEMORY_EXACT;
  g_autoptr (LsMemory) m = ls_memory_new (&in);
  return ls_memory_fullest (m)->needed_bytes;
}

/* Whether its plan says that it cannot win. */
static bool
is_beaten (const LsSweepRun *x, Candidate *c, const LsJobResult *prepared)
{
  if (x->spec->no_prune)
    return false;
  c->bound.step = MAX (c->bound.step, ls_job_least (prepared, x->hardware, &x->options));
  c->bound.memory_bytes = MAX (c->bound.memory_bytes, c->memory_bytes);
  return candidate_cannot_win (x, c);
}

static void
try_prepared (LsSweepRun *x, Candidate *c, LsJobResult *prepared)
{
  bool is_host = x->options.memory.clock == LS_MEMORY_HOST; /* the device's may hold less */
  if (!prepared) {
    c->status = TRY_ILLEGAL;
    return;
  }
  c->memory_bytes = least_memory (x, prepared);
  if (is_host && c->memory_bytes > x->capacity_bytes) {
    c->status = TRY_INFEASIBLE;
    ls_job_result_free (prepared);
    return;
  }
  if (is_beaten (x, c, prepared)) {
    c->status = TRY_PRUNED;
    ls_job_result_free (prepared);
    return;
  }
  g_autoptr (LsJobResult) r = simulate (x, prepared, true);
  c->status = r ? TRY_DONE : TRY_ILLEGAL;
  if (r)
    c->step = r->timeline->window_end - r->timeline->window_start;
}

void
candidate_try (LsSweepRun *x, Candidate *c)
{
  if (c->status != TRY_PENDING || is_stopped (x))
    return;
  const Known *known = sweep_known (x, c);
  if (known && known->is_tried) {
    c->status = known->status;
    c->step = known->step;
    c->memory_bytes = known->memory_bytes;
  } else
    try_prepared (x, c, prepare (x, c));
  g_mutex_lock (&x->lock);
  if (c->status != TRY_PRUNED && (!known || !known->is_tried))
    sweep_journal_try (x, c);
  x->n_done++;
  if (x->spec->progress)
    x->spec->progress (x->n_done, x->n_to_do, x->spec->progress_data);
  g_mutex_unlock (&x->lock);
}

static void
fill_row (const LsSweepRun *x, const LsJobResult *r, LsSweepRow *ret_row)
{
  const LsReport *p = &r->report;
  *ret_row = (LsSweepRow) {
    .step = r->timeline->window_end - r->timeline->window_start,
    .memory_bytes = p->needed_bytes,
    .tokens_per_s = p->tokens_per_s,
    .mfu = p->mfu,
    .bubble_s = p->breakdown_s[LS_PART_BUBBLE],
    .usd_per_trillion = 1e12 * ls_price_usd (&x->price, p->n_ranks, p->tokens_per_s),
    .kwh_per_trillion = 1e12 * ls_price_kwh (&x->price, p->n_ranks, p->tokens_per_s),
    .knobs = ls_knobs_format (&r->strategy),
  };
  ls_strategy_copy (&ret_row->strategy, &r->strategy);
  for (int i = 0; i < LS_N_PARTS; i++)
    ret_row->breakdown_s[i] = p->breakdown_s[i];
  for (int i = LS_PART_EXPOSED_TP; i <= LS_PART_EXPOSED_COPY; i++)
    ret_row->exposed_s += p->breakdown_s[i];
}

static bool
confirm_by_running (LsSweepRun *x, Candidate *c, LsSweepRow *ret_row)
{
  LsJobResult *prepared = prepare (x, c);
  g_autoptr (LsJobResult) r = prepared ? simulate (x, prepared, false) : NULL;
  if (!r || !r->report.fits) {
    c->status = r ? TRY_INFEASIBLE : TRY_ILLEGAL;
    return false;
  }
  c->is_confirmed = true;
  c->memory_bytes = r->report.needed_bytes;
  if (ret_row)
    fill_row (x, r, ret_row);
  return true;
}

bool
candidate_confirm (LsSweepRun *x, Candidate *c, LsSweepRow *ret_row)
{
  const Known *known = sweep_known (x, c);
  if (!ret_row && known && known->is_confirmed) {
    c->status = known->confirmed_status;
    c->memory_bytes = known->confirmed_bytes;
    return c->is_confirmed = c->status == TRY_DONE;
  }
  bool was_confirmed = c->is_confirmed, fits = confirm_by_running (x, c, ret_row);
  g_mutex_lock (&x->lock);
  if (!was_confirmed && !(known && known->is_confirmed))
    sweep_journal_confirm (x, c);
  g_mutex_unlock (&x->lock);
  return fits;
}

/* --- threads ---------------------------------------------------------------------------- */

typedef struct {
  LsSweepRun *x;
  void (*f) (LsSweepRun *x, Candidate *c);
} Each;

static void
do_one (gpointer candidate, gpointer data)
{
  const Each *each = data;
  each->f (each->x, candidate);
}

void
candidates_each (LsSweepRun *x, Candidate **list, guint n, void (*f) (LsSweepRun *x, Candidate *c))
{
  Each each = { x, f };
  guint n_threads = x->spec->n_threads > 0 ? x->spec->n_threads : g_get_num_processors ();
  GThreadPool *pool = n > 1 && n_threads > 1 ? g_thread_pool_new (do_one, &each, (gint) n_threads, FALSE, NULL) : NULL;
  for (guint i = 0; i < n; i++)
    if (pool)
      g_thread_pool_push (pool, list[i], NULL);
    else
      f (x, list[i]);
  if (pool)
    g_thread_pool_free (pool, FALSE, TRUE);
}
