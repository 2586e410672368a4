/* Pins what every legal shape of every fixed schedule must keep, over some thousands of
 * random ones: each action once and on its rank, no deadlock, inputs before outputs, the
 * bound on activations, and with equal times the bubble of the closed form. */
#include <string.h>

#include "sched_run.h"

#define N_SHAPES 300
#define ANY      UINT32_MAX

/* ---- bounds and closed forms ---- */

/* The most chunk activations that a rank may hold until W. */
static uint32_t
bound (const char *schedule, const LsSchedShape *s, uint32_t r)
{
  uint32_t p = s->pp, v = s->vpp, m = s->n_micro_batches;
  uint32_t n_rounds = MAX (1, m / p);
  uint32_t pytorch = m / n_rounds;
  uint32_t group = s->rounds == LS_ROUNDS_PYTORCH ? pytorch : s->group ? s->group : p;

  if (strcmp (schedule, "none") == 0 || strcmp (schedule, "naive") == 0)
    return 1;
  if (g_str_has_prefix (schedule, "gpipe"))
    return m;
  if (strcmp (schedule, "1f1b") == 0 || strcmp (schedule, "pipedream") == 0)
    return MIN (m, p - r);
  if (strcmp (schedule, "interleaved-1f1b") == 0)
    return MIN (m * v, 2 * (p - r - 1) + (v - 1) * group + 1);
  if (strcmp (schedule, "looped-bfs") == 0)
    return m * v;
  if (strcmp (schedule, "interleaved-zb") == 0)
    return MIN (m * v, p + (v - 1) * pytorch);
  if (strcmp (schedule, "zb-h1") == 0)
    return MIN (m, p);
  if (strcmp (schedule, "zb-h2") == 0)
    return MIN (m, 2 * p - 1);
  if (strcmp (schedule, "zbv") == 0)
    return MIN (2 * m, 2 * p);
  if (strcmp (schedule, "dualpipe") == 0)
    return p + 1;
  if (strcmp (schedule, "dualpipev") == 0)
    return 2 * p + 1;
  if (strcmp (schedule, "chimera") == 0)
    return MIN (m, p);
  if (strcmp (schedule, "hanayo") == 0) {
    uint32_t n = MIN (m, s->group ? s->group : m);
    return s->group || n < p ? 2 * s->waves * n : 2 * s->waves * n - (p - 1 - r);
  }
  return ANY; /* an automatic one: its own tests */
}

/* What the schedule's formula says with F = I = W = 1, B = 2 and pairs of 3; of *value.
 * 0 if it says nothing about this shape. */
static LsTime
formula (const char *schedule, const LsSchedShape *s, const LsSchedEval *e, LsTime *value)
{
  LsTime p = s->pp, v = s->vpp, m = s->n_micro_batches;
  *value = e->makespan;

  if (strcmp (schedule, "none") == 0 || strcmp (schedule, "naive") == 0)
    return 3 * m * p;
  if (g_str_has_prefix (schedule, "gpipe") || strcmp (schedule, "1f1b") == 0
      || strcmp (schedule, "pipedream") == 0)
    return 3 * (m + p - 1);
  if (strcmp (schedule, "interleaved-1f1b") == 0 || strcmp (schedule, "looped-bfs") == 0)
    return m >= p ? 3 * (m * v + p - 1) : 0;
  if (strcmp (schedule, "interleaved-zb") == 0)
    return m % p == 0 ? 3 * m * v + p - 1 : 0;
  if (strcmp (schedule, "zb-h1") == 0)
    return m >= p ? 3 * m + p - 1 : 0;
  if (strcmp (schedule, "hanayo") == 0)
    return m >= p && !s->group ? 6 * s->waves * m + 2 * (p - 1) : 0;

  *value = e->span;
  if (strcmp (schedule, "zb-h2") == 0)
    return m >= 2 * p - 1 ? 3 * m : 0;
  if (strcmp (schedule, "zbv") == 0)
    return m >= 2 * p - 1 ? 6 * m : 0;

  *value = max_idle (e) + 1;
  if (strcmp (schedule, "dualpipe") == 0)
    return (p / 2 - 1) * 2 + 1;
  if (strcmp (schedule, "dualpipev") == 0)
    return (p - 1) * 2 + 1;
  return 0;
}

/* ---- one shape ---- */

/* The end of what a stage sends on for a micro-batch, by a look through its rank's list. */
static LsTime
output_end (const LsOrders *o, const LsSchedEval *e, uint32_t pipe, uint32_t stage, uint32_t mb,
            bool is_forward, uint32_t *rank)
{
  LsHome home = ls_layout_home (&o->layout, pipe, stage);
  const GArray *actions = o->ranks[home.rank];
  *rank = home.rank;
  for (guint i = 0; i < actions->len; i++) {
    const LsAction *a = &g_array_index (actions, LsAction, i);
    if (a->chunk == home.chunk && a->mb == mb && a->type != LS_ACTION_W
        && is_forward == (a->type == LS_ACTION_F))
      return e->times[home.rank][i].end;
  }
  return LS_TIME_NEVER;
}

/* Of an action: not before the one before it, nor before its inputs have arrived. */
static void
check_start (const LsOrders *o, const LsSchedEval *e, const LsSchedTimes *t, uint32_t rank, guint i)
{
  const LsAction *a = &g_array_index (o->ranks[rank], LsAction, i);
  LsStageRef ref = ls_layout_stage (&o->layout, rank, a->chunk);
  LsTime start = e->times[rank][i].start;
  uint32_t from;
  if (i > 0 && !(a - 1)->is_paired)
    LS_CHECK_INT (start, >=, e->times[rank][i - 1].end);
  if (a->type != LS_ACTION_F)
    LS_CHECK_INT (start, >=, output_end (o, e, ref.pipe, ref.stage, a->mb, a->type != LS_ACTION_W, &from));
  bool is_backward = a->type == LS_ACTION_B || a->type == LS_ACTION_I;
  uint32_t next = is_backward ? ref.stage + 1 : ref.stage - 1;
  if (a->type == LS_ACTION_W || next >= o->layout.n_stages) /* stage 0 has none before: it wraps around */
    return;
  LsTime arrival = output_end (o, e, ref.pipe, next, a->mb, !is_backward, &from);
  LS_CHECK_INT (start, >=, arrival + (from != rank ? t->comm : 0));
}

static void
check_times (const LsOrders *o, GRand *rand)
{
  LsSchedTimes t = times_of (g_rand_int_range (rand, 1, 50), g_rand_int_range (rand, 1, 50),
                             g_rand_int_range (rand, 1, 50), 0, g_rand_int_range (rand, 0, 20));
  g_autoptr (LsSchedEval) e = ls_orders_eval (o, &t);
  /* One rank: each start costs a look through a list. */
  uint32_t rank = (uint32_t) g_rand_int_range (rand, 0, (gint32) o->layout.n_ranks);
  for (guint i = 0; i < o->ranks[rank]->len; i++)
    check_start (o, e, &t, rank, i);
  LS_CHECK_INT (e->span, <=, e->makespan);
  LS_CHECK_INT (e->ideal, <=, e->span);
}

static void
describe (const char *schedule, const LsSchedShape *s)
{
  printf ("  %s pp %u vpp %u m %u group %u rounds %u waves %u pipes %u\n", schedule, s->pp, s->vpp,
          s->n_micro_batches, s->group, s->rounds, s->waves, s->pipes);
}

static void
check_shape (const char *schedule, const LsSchedShape *shape, GRand *rand)
{
  g_autoptr (LsOrders) orders = checked_orders (schedule, shape);
  if (!orders)
    return;
  check_times (orders, rand);

  LsSchedTimes unit = times_of (1, 1, 1, 3, 0);
  g_autoptr (LsSchedEval) e = ls_orders_eval (orders, &unit);
  LsTime value, expected = formula (schedule, shape, e, &value);
  if (expected > 0 && !LS_CHECK_INT (value, ==, expected))
    describe (schedule, shape);
  for (uint32_t r = 0; r < shape->pp; r++) {
    LS_CHECK_INT (e->ranks[r].split_peak, <=, 2 * e->ranks[r].held_peak);
    if (!LS_CHECK_INT (e->ranks[r].held_peak, <=, bound (schedule, shape, r)))
      describe (schedule, shape);
  }
}

/* ---- random shapes ---- */

static uint32_t
pick (GRand *rand, uint32_t from, uint32_t to)
{
  return (uint32_t) g_rand_int_range (rand, (gint32) from, (gint32) to + 1);
}

/* A shape that may well be illegal; with what the schedule does not know left out. */
static LsSchedShape
random_shape (const LsSched *sched, GRand *rand)
{
  const char *name = sched->name;
  LsSchedShape s = { .pp = pick (rand, 1, 10), .n_micro_batches = pick (rand, 1, 24) };
  bool is_looped = strcmp (name, "interleaved-1f1b") == 0 || strcmp (name, "looped-bfs") == 0
      || strcmp (name, "interleaved-zb") == 0;
  if (strcmp (name, "none") == 0)
    s.pp = 1;
  s.vpp = is_looped ? pick (rand, 2, 5) : sched->n_chunks ? 0 : 1;
  if (strcmp (name, "interleaved-1f1b") == 0) {
    s.rounds = pick (rand, 0, 1) ? LS_ROUNDS_PYTORCH : LS_ROUNDS_MEGATRON;
    s.group = s.rounds == LS_ROUNDS_MEGATRON && pick (rand, 0, 3) ? pick (rand, s.pp, s.pp + 6) : 0;
  }
  if (strcmp (name, "hanayo") == 0) {
    s.waves = pick (rand, 1, 4);
    s.group = pick (rand, 0, 2) == 0 ? pick (rand, s.pp, s.pp + 6) : 0;
  }
  if (strcmp (name, "chimera") == 0)
    s.pipes = 2 * pick (rand, 1, 3);
  if (strcmp (name, "chimera") == 0 || strcmp (name, "dualpipe") == 0)
    s.pp *= 2;
  if (g_str_has_prefix (name, "dualpipe"))
    s.n_micro_batches = 2 * s.pp + pick (rand, 0, 12);
  return s;
}

static void
check_schedule (const LsSched *sched)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (g_str_hash (sched->name));
  guint n_legal = 0;
  for (guint i = 0; n_legal < N_SHAPES && i < 20 * N_SHAPES; i++) {
    LsSchedShape shape = random_shape (sched, rand);
    if (ls_sched_refusal (sched, &shape))
      continue;
    check_shape (sched->name, &shape, rand);
    n_legal++;
  }
  LS_CHECK_INT (n_legal, ==, N_SHAPES);
}

static void
every_legal_shape_keeps_its_promises (void)
{
  const LsSched *sched;
  for (guint i = 0; (sched = ls_sched_at (i)); i++)
    if (!sched->orders)
      check_schedule (sched);
}

/* A new one has a row in bound(): without it this test would say nothing of its memory. */
static void
every_fixed_schedule_has_a_bound (void)
{
  const LsSchedShape shape = { .pp = 4, .vpp = 2, .n_micro_batches = 8, .waves = 1, .pipes = 2 };
  const LsSched *sched;
  for (guint i = 0; (sched = ls_sched_at (i)); i++)
    if (!LS_CHECK (sched->orders || bound (sched->name, &shape, 0) != ANY))
      g_printerr ("# %s\n", sched->name);
}

/* ---- closed forms that need other times than units ---- */

/* What is idle where W is no longer than F or I (for zbv, W <= F <= I). */
static void
zero_bubble_formulas_hold_for_short_weight_gradients (void)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (6);
  for (guint n = 0; n < 400; n++) {
    LsTime w = pick (rand, 0, 12), f = w + pick (rand, 0, 9), i = w + pick (rand, 0, 9), all = f + i + w;
    uint32_t pp = pick (rand, 1, 8), k = pick (rand, 1, 3);
    LsTime hops = pp - 1;

    LsSchedTimes t = times_of (f, i, w, 0, 0);
    LsSchedShape h1 = { pp, 1, pp + k }, h2 = { pp, 1, 2 * pp - 2 + k }, looped = { pp, 1 + k, pp * k };
    g_autoptr (LsSchedEval) a = evaluate ("zb-h1", &h1, &t);
    LS_CHECK_INT (a->makespan, ==, h1.n_micro_batches * all + hops * (f + i - w));
    g_autoptr (LsSchedEval) b = evaluate ("zb-h2", &h2, &t);
    LS_CHECK_INT (b->span, ==, h2.n_micro_batches * all + hops * (f + i - 2 * w));
    g_autoptr (LsSchedEval) c = evaluate ("interleaved-zb", &looped, &t);
    LS_CHECK_INT (c->makespan, ==, looped.vpp * looped.n_micro_batches * all + hops * (f + i - w));

    LsSchedTimes sorted = times_of (MIN (f, i), MAX (f, i), w, 0, 0);
    LsSchedShape v = { pp, 2, h2.n_micro_batches };
    g_autoptr (LsSchedEval) d = evaluate ("zbv", &v, &sorted);
    LS_CHECK_INT (d->span, ==, 2 * v.n_micro_batches * all + 2 * hops * (MAX (f, i) - w));
  }
}

/* Equal forwards and backwards: 2 N + D/f - 2 with 2 f pipes and N a multiple of D. */
static void
chimera_idles_less_with_more_pipes (void)
{
  static const uint32_t shapes[][2]
      = { { 4, 2 }, { 4, 4 }, { 8, 2 }, { 8, 4 }, { 8, 8 }, { 12, 6 }, { 12, 12 } };
  for (guint i = 0; i < G_N_ELEMENTS (shapes); i++)
    for (uint32_t n = 1; n <= 4; n++) {
      uint32_t pp = shapes[i][0], pipes = shapes[i][1];
      LsSchedShape shape = { .pp = pp, .n_micro_batches = n * pp, .pipes = pipes };
      LsSchedTimes times = times_of (2, 1, 1, 0, 0);
      g_autoptr (LsSchedEval) e = evaluate ("chimera", &shape, &times);
      LS_CHECK_INT (e->makespan, ==, 2 * (2 * n * pp + 2 * pp / pipes - 2));
    }
}

/* 2 w m (F + I + W) + 2 (p - 1) max (F, I) where I >= F or W = 0; groups keep it if F = B. */
static void
hanayo_takes_what_its_formula_says (void)
{
  static const LsTime costs[][3]
      = { { 1, 1, 1 }, { 10, 12, 8 }, { 1, 2, 0 }, { 2, 1, 0 }, { 3, 3, 5 }, { 5, 9, 20 } };
  for (uint32_t pp = 1; pp <= 6; pp++)
    for (uint32_t m = pp; m <= 3 * pp; m++)
      for (uint32_t waves = 1; waves <= 3; waves++) {
        LsSchedShape shape = { .pp = pp, .n_micro_batches = m, .waves = waves };
        for (guint c = 0; c < G_N_ELEMENTS (costs); c++) {
          LsTime f = costs[c][0], i = costs[c][1], w = costs[c][2];
          LsSchedTimes times = times_of (f, i, w, 0, 0);
          g_autoptr (LsSchedEval) e = evaluate ("hanayo", &shape, &times);
          LS_CHECK_INT (e->makespan, ==, 2 * waves * m * (f + i + w) + 2 * (pp - 1) * MAX (f, i));
        }
        if (m % pp != 0)
          continue;
        shape.group = pp;
        LsSchedTimes equal = times_of (1, 1, 0, 0, 0);
        g_autoptr (LsSchedEval) e = evaluate ("hanayo", &shape, &equal);
        LS_CHECK_INT (e->makespan, ==, 4 * waves * m + 2 * (pp - 1));
      }
}

LS_TEST_SUITE (LS_TEST (every_legal_shape_keeps_its_promises), LS_TEST (every_fixed_schedule_has_a_bound),
               LS_TEST (zero_bubble_formulas_hold_for_short_weight_gradients),
               LS_TEST (chimera_idles_less_with_more_pipes), LS_TEST (hanayo_takes_what_its_formula_says))
