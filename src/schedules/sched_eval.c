#include "schedules/sched_eval.h"

/* --- runs orders until nothing moves: each rank executes its list in order as outputs arrive ----- */

static const LsAction *
action_at (const LsReplay *r, uint32_t rank, guint i)
{
  return &g_array_index (r->orders->ranks[rank], LsAction, i);
}

gsize
ls_output_index (const LsLayout *l, const LsStageOutput *o)
{
  gsize cell = ((gsize) o->pipe * l->n_stages + o->stage) * l->n_micro_batches + o->mb;
  return 2 * cell + o->is_gradient;
}

LsStageOutput
ls_action_output (const LsLayout *l, uint32_t rank, const LsAction *a)
{
  LsStageRef ref = ls_layout_stage (l, rank, a->chunk);
  return (LsStageOutput) { a->type != LS_ACTION_F, ref.pipe, ref.stage, a->mb };
}

guint
ls_action_needs (const LsLayout *l, uint32_t rank, const LsAction *a, LsStageOutput needs[2])
{
  LsStageRef ref = ls_layout_stage (l, rank, a->chunk);
  guint n = 0;
  if (a->type == LS_ACTION_F) {
    if (ref.stage > 0)
      needs[n++] = (LsStageOutput) { false, ref.pipe, (uint16_t) (ref.stage - 1), a->mb };
  } else if (a->type == LS_ACTION_W) {
    needs[n++] = (LsStageOutput) { true, ref.pipe, ref.stage, a->mb };
  } else {
    needs[n++] = (LsStageOutput) { false, ref.pipe, ref.stage, a->mb };
    if (ref.stage + 1u < l->n_stages)
      needs[n++] = (LsStageOutput) { true, ref.pipe, (uint16_t) (ref.stage + 1), a->mb };
  }
  return n;
}

/* ---- times ---- */

static const LsChunkTimes *
chunk_times (const LsReplay *r, uint32_t rank, const LsAction *a)
{
  return r->times->stages ? &r->times->stages[ls_layout_stage (r->l, rank, a->chunk).stage]
                          : &r->times->chunk;
}

static LsTime
time_of (const LsChunkTimes *t, uint8_t type)
{
  switch (type) {
  case LS_ACTION_F:
    return t->f;
  case LS_ACTION_B:
    return t->b;
  case LS_ACTION_I:
    return t->i;
  default:
    return t->w;
  }
}

/* Of an action, or of it and its partner. */
static LsTime
duration (const LsReplay *r, uint32_t rank, const LsAction *a)
{
  if (r->times->actions)
    return r->times->actions[rank][r->next[rank]];
  const LsChunkTimes *x = chunk_times (r, rank, a);
  if (!a->is_paired)
    return time_of (x, a->type);
  const LsChunkTimes *y = chunk_times (r, rank, a + 1);
  return time_of (x, a->type) + time_of (y, a[1].type) - MIN (x->f + x->b - x->fb, y->f + y->b - y->fb);
}

/* ---- the replay ---- */

/* When the inputs of an action have arrived, at the earliest at; -1 if one has not been
 * made yet, which is put into *missing. */
static LsTime
inputs_at (const LsReplay *r, uint32_t rank, const LsAction *a, LsTime at, LsStageOutput *missing)
{
  LsStageOutput needs[2];
  guint n = ls_action_needs (r->l, rank, a, needs);
  for (guint i = 0; i < n; i++) {
    LsTime end = r->end[ls_output_index (r->l, &needs[i])];
    if (end < 0) {
      *missing = needs[i];
      return -1;
    }
    uint32_t from = ls_layout_home (r->l, needs[i].pipe, needs[i].stage).rank;
    at = MAX (at, end + (from != rank ? r->times->comm : 0));
  }
  return at;
}

static void
finish (LsReplay *r, uint32_t rank, guint i, LsTime start, LsTime end)
{
  const LsAction *a = action_at (r, rank, i);
  if (r->eval)
    r->eval->times[rank][i] = (LsActionTime) { start, end };
  if (a->type == LS_ACTION_W)
    return;
  LsStageOutput o = ls_action_output (r->l, rank, a);
  gsize index = ls_output_index (r->l, &o);
  r->end[index] = end;
  if (r->waiter[index] != 0) {
    uint32_t waiter = r->waiter[index] - 1;
    g_array_append_val (r->runnable, waiter);
  }
}

/* Runs the next action of a rank, with its partner; FALSE if it must wait, for *missing. */
static gboolean
step (LsReplay *r, uint32_t rank, LsStageOutput *missing)
{
  guint i = r->next[rank];
  const LsAction *a = action_at (r, rank, i);
  guint n = a->is_paired ? 2 : 1;

  LsTime start = r->free_at[rank];
  for (guint k = 0; k < n && start >= 0; k++)
    start = inputs_at (r, rank, a + k, start, missing);
  if (start < 0)
    return FALSE;

  LsTime time = duration (r, rank, a);
  for (guint k = 0; k < n; k++)
    finish (r, rank, i + k, start, start + time);
  if (r->eval)
    r->eval->ranks[rank].busy += time;
  r->free_at[rank] = start + time;
  r->next[rank] = i + n;
  return TRUE;
}

static void
advance (LsReplay *r, uint32_t rank)
{
  while (r->next[rank] < r->orders->ranks[rank]->len) {
    LsStageOutput missing = { 0 };
    if (!step (r, rank, &missing)) {
      r->waiter[ls_output_index (r->l, &missing)] = rank + 1;
      return;
    }
  }
}

void
ls_replay_init (LsReplay *r, const LsOrders *orders, const LsSchedTimes *times, LsSchedEval *eval)
{
  const LsLayout *l = &orders->layout;
  gsize n_outputs = (gsize) 2 * l->n_pipes * l->n_stages * l->n_micro_batches;
  *r = (LsReplay) {
    .orders = orders,
    .l = l,
    .times = times,
    .eval = eval,
    .next = g_new0 (guint, l->n_ranks),
    .free_at = g_new0 (LsTime, l->n_ranks),
    .end = g_new (LsTime, n_outputs),
    .waiter = g_new0 (uint32_t, n_outputs),
    .runnable = g_array_new (FALSE, FALSE, sizeof (uint32_t)),
  };
  for (gsize i = 0; i < n_outputs; i++)
    r->end[i] = -1;
}

void
ls_replay_clear (LsReplay *r)
{
  g_free (r->next);
  g_free (r->free_at);
  g_free (r->end);
  g_free (r->waiter);
  g_array_unref (r->runnable);
}

void
ls_replay_run (LsReplay *r)
{
  for (uint32_t rank = r->l->n_ranks; rank-- > 0;)
    g_array_append_val (r->runnable, rank);
  while (r->runnable->len > 0) {
    uint32_t rank = g_array_index (r->runnable, uint32_t, r->runnable->len - 1);
    g_array_set_size (r->runnable, r->runnable->len - 1);
    advance (r, rank);
  }
}

/* --- when each action of an order happens, how long ranks wait and how many activations they hold --- */

/* Half chunks that an action takes before it starts and gives back at its end, where half
 * of an activation lives until I (`split`) or all of it until W (`held`). */
typedef struct {
  uint32_t takes, gives_split, gives_held;
} Weight;

static const Weight weights[] = {
  [LS_ACTION_F] = { 2, 0, 0 },
  [LS_ACTION_B] = { 0, 2, 2 },
  [LS_ACTION_I] = { 0, 1, 0 },
  [LS_ACTION_W] = { 0, 1, 2 },
};

static void
find_peaks (const GArray *actions, LsRankEval *rank)
{
  uint32_t split = 0, held = 0, held_peak = 0;
  for (guint i = 0; i < actions->len; i++) {
    const LsAction *a = &g_array_index (actions, LsAction, i);
    guint n = a->is_paired ? 2 : 1;
    for (guint k = 0; k < n; k++) {
      split += weights[a[k].type].takes;
      held += weights[a[k].type].takes;
    }
    rank->split_peak = MAX (rank->split_peak, split);
    held_peak = MAX (held_peak, held);
    for (guint k = 0; k < n; k++) {
      split -= weights[a[k].type].gives_split;
      held -= weights[a[k].type].gives_held;
    }
    i += n - 1;
  }
  rank->held_peak = held_peak / 2;
}

static void
summarise (LsSchedEval *e, const LsOrders *orders)
{
  for (uint32_t r = 0; r < e->n_ranks; r++) {
    LsRankEval *rank = &e->ranks[r];
    guint n = orders->ranks[r]->len;
    find_peaks (orders->ranks[r], rank);
    if (n > 0) {
      rank->first = e->times[r][0].start;
      rank->last = e->times[r][n - 1].end;
    }
    e->makespan = MAX (e->makespan, rank->last);
    e->span = MAX (e->span, rank->last - rank->first);
    e->ideal = MAX (e->ideal, rank->busy);
  }
}

LsSchedEval *
ls_orders_eval (const LsOrders *orders, const LsSchedTimes *times)
{
  LsSchedEval *e = g_new0 (LsSchedEval, 1);
  e->n_ranks = orders->layout.n_ranks;
  e->per_chunk = (double) orders->layout.n_ranks / orders->layout.n_stages;
  e->ranks = g_new0 (LsRankEval, e->n_ranks);
  e->times = g_new (LsActionTime *, e->n_ranks);
  for (uint32_t r = 0; r < e->n_ranks; r++)
    e->times[r] = g_new0 (LsActionTime, orders->ranks[r]->len);

  LsReplay replay;
  ls_replay_init (&replay, orders, times, e);
  ls_replay_run (&replay);
  for (uint32_t r = 0; r < e->n_ranks; r++)
    g_assert (replay.next[r] == orders->ranks[r]->len);
  ls_replay_clear (&replay);
  summarise (e, orders);
  return e;
}

void
ls_sched_eval_free (LsSchedEval *e)
{
  if (!e)
    return;
  for (uint32_t r = 0; r < e->n_ranks; r++)
    g_free (e->times[r]);
  g_free (e->times);
  g_free (e->ranks);
  g_free (e);
}
