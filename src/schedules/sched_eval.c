#include "schedules/sched_eval.h"

#include "schedules/sched_replay.h"

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
