#include "schedules/sched_eval.h"

#include "base/arena.h"

/* --- runs orders until nothing moves: each rank executes its list in order as outputs arrive ----- */

static const LsAction *
action_at (const LsReplay *r, uint32_t rank, guint i)
{
  return &g_array_index (r->orders->ranks[rank], LsAction, i);
}

static gsize
ls_output_index (const LsLayout *l, const LsStageOutput *o)
{
  gsize cell = ((gsize) o->pipe * l->n_stages + o->stage) * l->n_micro_batches + o->mb;
  return 2 * cell + o->is_gradient;
}

/* not of a W */
static LsStageOutput
ls_action_output (const LsLayout *l, uint32_t rank, const LsAction *a)
{
  LsStageRef ref = ls_layout_stage (l, rank, a->chunk);
  return (LsStageOutput) { a->type != LS_ACTION_F, ref.pipe, ref.stage, a->mb };
}

/* What an action needs; returns how many. */
static guint
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
  const LsTime times[]
      = { [LS_ACTION_F] = t->f, [LS_ACTION_B] = t->b, [LS_ACTION_I] = t->i, [LS_ACTION_W] = t->w };
  return times[type];
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

static void
ls_replay_init (LsReplay *r, const LsOrders *orders, const LsSchedTimes *times, LsSchedEval *eval,
                LsArena *arena)
{
  const LsLayout *l = &orders->layout;
  gsize n_outputs = (gsize) 2 * l->n_pipes * l->n_stages * l->n_micro_batches;
  *r = (LsReplay) {
    .orders = orders,
    .l = l,
    .times = times,
    .eval = eval,
    .next = ls_arena_new_array (arena, guint, l->n_ranks),
    .free_at = ls_arena_new_array (arena, LsTime, l->n_ranks),
    .end = ls_arena_new_array (arena, LsTime, n_outputs),
    .waiter = ls_arena_new_array (arena, uint32_t, n_outputs),
    .runnable = ls_arena_list (arena, sizeof (uint32_t)),
  };
  for (gsize i = 0; i < n_outputs; i++)
    r->end[i] = -1;
}

static void
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

  g_autoptr (LsArena) arena = ls_arena_new ();
  LsReplay replay;
  ls_replay_init (&replay, orders, times, e, arena);
  ls_replay_run (&replay);
  for (uint32_t r = 0; r < e->n_ranks; r++)
    g_assert (replay.next[r] == orders->ranks[r]->len);
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

typedef struct {
  const LsOrders *orders;
  const LsLayout *l;
  const LsOrderPlaces *places; /* or NULL */
  LsDiagList *diags;
  uint8_t *seen; /* [cell] a bit per LsActionType */
} Check;

static void G_GNUC_PRINTF (5, 6)
    complain (const Check *c, uint32_t rank, guint i, const char *hint, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *text = g_strdup_vprintf (format, args);
  va_end (args);
  g_autofree char *pointer = g_strdup_printf ("/%u/%u", rank, i);
  const LsOrderPlaces *p = c->places;
  if (p)
    ls_diag_add (c->diags, LS_ERROR_INPUT, p->file, (int) rank + 1, p->columns[rank][i], pointer,
                 p->texts[rank], hint, "%s", text);
  else
    ls_diag_add (c->diags, LS_ERROR_CONFLICT, NULL, 0, 0, pointer, NULL, hint, "%s", text);
}

/* Of no rank. */
static void
complain_of_all (const Check *c, const char *text)
{
  ls_diag_add (c->diags, c->places ? LS_ERROR_INPUT : LS_ERROR_CONFLICT, c->places ? c->places->file : NULL,
               0, 0, NULL, NULL, NULL, "%s", text);
}

static char *
text_of (const LsLayout *l, uint32_t rank, const LsAction *a)
{
  GString *text = g_string_new (NULL);
  ls_action_append_text (l, rank, a, text);
  return g_string_free (text, FALSE);
}

static char *
output_text (const LsLayout *l, const LsStageOutput *o, LsActionType type)
{
  GString *text = g_string_new (NULL);
  if (l->n_pipes > 1)
    g_string_append_printf (text, "d%us", o->pipe);
  g_string_append_printf (text, "%u%c%u", o->stage, ls_action_letter (type), o->mb);
  return g_string_free (text, FALSE);
}

static gboolean
is_in_range (const Check *c, uint32_t rank, guint i, const LsAction *a)
{
  const LsLayout *l = c->l;
  if (a->chunk >= l->n_chunks || a->type > LS_ACTION_W) {
    complain (c, rank, i, NULL, "expected one of %u chunks and F, B, I or W; got chunk %u", l->n_chunks,
              a->chunk);
    return FALSE;
  }
  LsStageRef ref = ls_layout_stage (l, rank, a->chunk);
  if (ref.pipe >= l->n_pipes || ref.stage >= l->n_stages || a->mb >= l->n_micro_batches) {
    g_autofree char *text = text_of (l, rank, a);
    complain (c, rank, i, NULL, "expected one of %u stages and %u micro-batches; got %s", l->n_stages,
              l->n_micro_batches, text);
    return FALSE;
  }
  return TRUE;
}

static void
check_home (const Check *c, uint32_t rank, guint i, const LsAction *a)
{
  LsStageRef ref = ls_layout_stage (c->l, rank, a->chunk);
  uint32_t home = ls_layout_home (c->l, ref.pipe, ref.stage).rank;
  if (home == rank)
    return;
  g_autofree char *text = text_of (c->l, rank, a);
  complain (c, rank, i, "a stage is on one rank, where its parameters are",
            "%s is on the wrong rank: stage %u belongs to rank %u", text, ref.stage, home);
}

static void
check_pair (const Check *c, uint32_t rank, guint i)
{
  const GArray *actions = c->orders->ranks[rank];
  const LsAction *a = &g_array_index (actions, LsAction, i);
  bool is_pair = i + 1 < actions->len && !a[1].is_paired
      && ((a->type == LS_ACTION_F && a[1].type == LS_ACTION_B)
          || (a->type == LS_ACTION_B && a[1].type == LS_ACTION_F));
  if (!is_pair)
    complain (c, rank, i, NULL, "expected a pair of a forward and a full backward");
}

/* An I excludes a B and the other way round; a W goes with an I. */
static void
check_once (const Check *c, uint32_t rank, guint i, const LsAction *a)
{
  static const uint8_t excludes[] = {
    [LS_ACTION_F] = 1 << LS_ACTION_F,
    [LS_ACTION_B] = 1 << LS_ACTION_B | 1 << LS_ACTION_I | 1 << LS_ACTION_W,
    [LS_ACTION_I] = 1 << LS_ACTION_B | 1 << LS_ACTION_I,
    [LS_ACTION_W] = 1 << LS_ACTION_B | 1 << LS_ACTION_W,
  };
  LsStageOutput o = ls_action_output (c->l, rank, a);
  uint8_t *seen = &c->seen[ls_output_index (c->l, &o) / 2];
  if (*seen & excludes[a->type]) {
    g_autofree char *text = text_of (c->l, rank, a);
    bool is_same = *seen & 1 << a->type;
    if (is_same)
      complain (c, rank, i, NULL, "%s is there twice", text);
    else
      complain (c, rank, i, "B is I and W together", "%s repeats a backward", text);
  }
  *seen |= (uint8_t) (1 << a->type);
}

static void
check_rank (const Check *c, uint32_t rank)
{
  const GArray *actions = c->orders->ranks[rank];
  for (guint i = 0; i < actions->len; i++) {
    const LsAction *a = &g_array_index (actions, LsAction, i);
    if (is_in_range (c, rank, i, a)) {
      check_home (c, rank, i, a);
      check_once (c, rank, i, a);
    }
    if (a->is_paired)
      check_pair (c, rank, i);
  }
}

static void
complain_missing (const Check *c, const LsStageOutput *o, LsActionType type)
{
  uint32_t rank = ls_layout_home (c->l, o->pipe, o->stage).rank;
  g_autofree char *text = output_text (c->l, o, type);
  if (rank != UINT32_MAX) {
    complain (c, rank, c->orders->ranks[rank]->len, NULL, "%s is missing", text);
    return;
  }
  g_autofree char *all = g_strdup_printf ("%s is missing: no rank has stage %u", text, o->stage);
  complain_of_all (c, all);
}

static void
check_missing (const Check *c)
{
  const LsLayout *l = c->l;
  LsStageOutput o = { 0 };
  for (o.pipe = 0; o.pipe < l->n_pipes; o.pipe++)
    for (o.stage = 0; o.stage < l->n_stages; o.stage++)
      for (o.mb = 0; o.mb < l->n_micro_batches; o.mb++) {
        uint8_t seen = c->seen[ls_output_index (l, &o) / 2];
        bool is_split = !(seen & 1 << LS_ACTION_B) && seen & (1 << LS_ACTION_I | 1 << LS_ACTION_W);
        uint32_t expected = is_split ? 1 << LS_ACTION_F | 1 << LS_ACTION_I | 1 << LS_ACTION_W
                                     : 1 << LS_ACTION_F | 1 << LS_ACTION_B;
        for (LsActionType type = LS_ACTION_F; type <= LS_ACTION_W; type++)
          if (expected & ~seen & 1u << type)
            complain_missing (c, &o, type);
      }
}

/* ---- deadlock ---- */

/* What the next action of a rank lacks; FALSE if the rank is done. */
static gboolean
lacks (const LsReplay *r, uint32_t rank, LsStageOutput *missing, const LsAction **waiting)
{
  const GArray *actions = r->orders->ranks[rank];
  guint first = r->next[rank];
  if (first == actions->len)
    return FALSE;
  guint n = g_array_index (actions, LsAction, first).is_paired ? 2 : 1;
  for (guint k = 0; k < n; k++) {
    LsStageOutput needs[2];
    *waiting = &g_array_index (actions, LsAction, first + k);
    guint n_needs = ls_action_needs (r->l, rank, *waiting, needs);
    for (guint i = 0; i < n_needs; i++)
      if (r->end[ls_output_index (r->l, &needs[i])] < 0) {
        *missing = needs[i];
        return TRUE;
      }
  }
  g_assert_not_reached ();
}

/* Follows who waits for whom from a rank that waits, until one comes up again. */
static uint32_t
rank_on_cycle (const LsReplay *r, uint32_t rank)
{
  g_autofree gboolean *is_visited = g_new0 (gboolean, r->l->n_ranks);
  while (!is_visited[rank]) {
    LsStageOutput missing;
    const LsAction *waiting;
    is_visited[rank] = TRUE;
    if (!lacks (r, rank, &missing, &waiting))
      g_assert_not_reached (); /* it has made all its outputs */
    rank = ls_layout_home (r->l, missing.pipe, missing.stage).rank;
  }
  return rank;
}

static void
complain_cycle (const Check *c, const LsReplay *r, uint32_t first)
{
  g_autoptr (GString) text = g_string_new (NULL);
  uint32_t rank = first;
  do {
    LsStageOutput missing;
    const LsAction *waiting;
    lacks (r, rank, &missing, &waiting);
    uint32_t from = ls_layout_home (r->l, missing.pipe, missing.stage).rank;
    g_autofree char *what = text_of (r->l, rank, waiting);
    g_autofree char *needed = output_text (r->l, &missing, missing.is_gradient ? LS_ACTION_B : LS_ACTION_F);
    g_string_append_printf (text, "%srank %u waits with %s for %s of rank %u", text->len > 0 ? ", " : "",
                            rank, what, needed, from);
    rank = from;
  } while (rank != first);
  complain (c, first, r->next[first],
            "a rank executes its list in order; B stands for I where the backward is split", "deadlock: %s",
            text->str);
}

static void
check_deadlock (const Check *c)
{
  static const LsSchedTimes no_times;
  g_autoptr (LsArena) arena = ls_arena_new ();
  LsReplay r;
  ls_replay_init (&r, c->orders, &no_times, NULL, arena);
  ls_replay_run (&r);
  uint32_t rank = 0;
  while (rank < c->l->n_ranks && r.next[rank] == c->orders->ranks[rank]->len)
    rank++;
  if (rank < c->l->n_ranks)
    complain_cycle (c, &r, rank_on_cycle (&r, rank));
}

/* ---- all of it ---- */

/* More cells than actions: something is missing all over, and the table of cells may be
 * too large to make. */
static gboolean
check_size (const Check *c)
{
  guint64 n_actions = 0;
  for (uint32_t rank = 0; rank < c->l->n_ranks; rank++)
    n_actions += c->orders->ranks[rank]->len;
  guint64 n_cells = (guint64) c->l->n_pipes * c->l->n_stages;
  if (n_cells <= n_actions && c->l->n_micro_batches <= n_actions / MAX (n_cells, 1))
    return TRUE;
  g_autofree char *text
      = g_strdup_printf ("expected a forward and a backward of %u micro-batches on %" G_GUINT64_FORMAT
                         " stages; got %" G_GUINT64_FORMAT " actions",
                         c->l->n_micro_batches, n_cells, n_actions);
  complain_of_all (c, text);
  return FALSE;
}

gboolean
ls_orders_check (const LsOrders *orders, const LsOrderPlaces *places, LsDiagList *diags)
{
  guint n_before = ls_diag_list_n (diags);
  Check c = { .orders = orders, .l = &orders->layout, .places = places, .diags = diags };
  if (!check_size (&c))
    return FALSE;

  c.seen = g_new0 (uint8_t, (gsize) c.l->n_pipes * c.l->n_stages * c.l->n_micro_batches);
  for (uint32_t rank = 0; rank < c.l->n_ranks; rank++)
    check_rank (&c, rank);
  check_missing (&c);
  if (ls_diag_list_n (diags) == n_before)
    check_deadlock (&c);
  g_free (c.seen);
  return ls_diag_list_n (diags) == n_before;
}
