/* Pins the evaluation of orders by examples small enough to do by hand: communication,
 * stages of unequal times, pairs, activations; and what is said of orders that cannot
 * run, with its place. */
#include "sched_run.h"

static void
an_order_is_timed_as_drawn (void)
{
  /* sched_eval.h: p = 2, m = 2, F = 1, B = 2 */
  LsSchedShape shape = { 2, 1, 2 };
  LsSchedTimes times = times_of (1, 1, 1, 0, 0);
  g_autoptr (LsSchedEval) e = evaluate ("1f1b", &shape, &times);
  static const LsActionTime rank_0[] = { { 0, 1 }, { 1, 2 }, { 4, 6 }, { 7, 9 } };
  static const LsActionTime rank_1[] = { { 1, 2 }, { 2, 4 }, { 4, 5 }, { 5, 7 } };
  for (guint i = 0; i < 4; i++) {
    LS_CHECK_INT (e->times[0][i].start, ==, rank_0[i].start);
    LS_CHECK_INT (e->times[0][i].end, ==, rank_0[i].end);
    LS_CHECK_INT (e->times[1][i].start, ==, rank_1[i].start);
    LS_CHECK_INT (e->times[1][i].end, ==, rank_1[i].end);
  }
  LS_CHECK_INT (e->makespan, ==, 9);
  LS_CHECK_INT (e->span, ==, 9);
  LS_CHECK_INT (e->ideal, ==, 6);
  LS_CHECK_INT (e->ranks[1].first, ==, 1);
  LS_CHECK_INT (e->ranks[1].last, ==, 7);
}

/* Between ranks a transfer takes comm; at the turn of a V, none. */
static void
communication_takes_time_between_ranks_only (void)
{
  LsSchedShape line = { 2, 1, 1 };
  LsSchedTimes times = times_of (10, 10, 10, 0, 3);
  g_autoptr (LsSchedEval) a = evaluate ("gpipe", &line, &times);
  LS_CHECK_INT (a->makespan, ==, 10 + 3 + 10 + 20 + 3 + 20);

  LsSchedShape v = { .pp = 2, .n_micro_batches = 1, .waves = 1 };
  g_autoptr (LsSchedEval) b = evaluate ("hanayo", &v, &times);
  /* F0 F1 F2 F3 with 2 hops, I3 W3 beside the hop to rank 1, I2, W2 before I1, I0, W0 */
  LS_CHECK_INT (b->makespan, ==, (10 + 3 + 10 + 10 + 3 + 10) + 10 + 3 + 10 + 10 + 10 + 3 + 10 + 10);
}

static void
stages_may_take_unequal_times (void)
{
  static const LsChunkTimes stages[] = { { .f = 1, .b = 2 }, { .f = 5, .b = 7 } };
  LsSchedTimes times = { .stages = stages };
  LsSchedShape shape = { 2, 1, 2 };
  g_autoptr (LsSchedEval) e = evaluate ("gpipe", &shape, &times);
  LS_CHECK_INT (e->makespan, ==, 1 + 2 * 5 + 2 * 7 + 2);
  LS_CHECK_INT (e->ideal, ==, 24);
  LS_CHECK_INT (e->ranks[0].busy, ==, 6);
}

/* F of one stage with B of another: what overlapping gains is the smaller of the two. */
static void
a_pair_ends_together (void)
{
  static const LsChunkTimes stages[] = {
    { .f = 10, .b = 20, .i = 10, .w = 10, .fb = 22 }, /* gains 8 */
    { .f = 4, .b = 9, .i = 5, .w = 4, .fb = 10 },     /* gains 3 */
  };
  LsSchedTimes times = { .stages = stages };
  LsSchedShape shape = { 2, 0, 4 };
  g_autoptr (LsOrders) orders = checked_orders ("dualpipe", &shape);
  g_autoptr (LsSchedEval) e = ls_orders_eval (orders, &times);
  /* rank 0, actions 4 and 5: (d1s1F1;d0s0B0) */
  const LsActionTime *t = e->times[0];
  LS_CHECK_INT (t[4].start, ==, t[5].start);
  LS_CHECK_INT (t[4].end, ==, t[5].end);
  LS_CHECK_INT (t[4].end - t[4].start, ==, 4 + 20 - 3);
}

static void
activations_are_freed_at_once_or_by_halves (void)
{
  LsSchedShape shape = { 2, 1, 3 };
  LsSchedTimes times = times_of (1, 1, 1, 0, 0);
  g_autoptr (LsSchedEval) split = evaluate ("zb-h1", &shape, &times);
  /* rank 1: F0 I0 F1 I1 W0 F2 ... holds 1/2 + 1 = 3/2 before I1, 2 in full */
  LS_CHECK_INT (split->ranks[1].held_peak, ==, 2);
  LS_CHECK_INT (split->ranks[1].split_peak, ==, 3);
  LS_CHECK_INT (split->ranks[0].split_peak, ==, 4);
  LS_CHECK_DOUBLE (split->per_chunk, ==, 1);

  LsSchedShape v = { 2, 2, 4 };
  g_autoptr (LsSchedEval) fused = evaluate ("interleaved-1f1b", &v, &times);
  LS_CHECK_INT (fused->ranks[0].held_peak, ==, 5);
  LS_CHECK_INT (fused->ranks[0].split_peak, ==, 10);
  LS_CHECK_DOUBLE (fused->per_chunk, ==, 0.5);
}

static void
one_rank_alone_is_legal (void)
{
  static const char *const names[] = {
    "none",       "naive",          "gpipe", "1f1b",      "pipedream", "zb-h1", "zb-h2", "interleaved-1f1b",
    "looped-bfs", "interleaved-zb", "zbv",   "dualpipev", "hanayo",
  };
  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    LsSchedShape shape = { 1, i < 7 ? 1 : 2, 4 };
    LsSchedTimes times = times_of (3, 4, 2, 0, 100);
    g_autoptr (LsSchedEval) e = evaluate (names[i], &shape, &times);
    if (e)
      LS_CHECK_INT (e->makespan, ==, 4 * shape.vpp * 9);
  }
}

/* ---- orders that cannot run ---- */

#define F(stage, mb_)                                                                                        \
  {                                                                                                          \
    .mb = mb_, .chunk = stage, .type = LS_ACTION_F                                                           \
  }
#define B(stage, mb_)                                                                                        \
  {                                                                                                          \
    .mb = mb_, .chunk = stage, .type = LS_ACTION_B                                                           \
  }
#define I(stage, mb_)                                                                                        \
  {                                                                                                          \
    .mb = mb_, .chunk = stage, .type = LS_ACTION_I                                                           \
  }
#define W(stage, mb_)                                                                                        \
  {                                                                                                          \
    .mb = mb_, .chunk = stage, .type = LS_ACTION_W                                                           \
  }

/* Two ranks, stage r on rank r, two micro-batches; n actions each. In chunk c, stage c. */
static void
check_faults (const LsAction *rank_0, guint n_0, const LsAction *rank_1, guint n_1, const char *expected)
{
  /* The home of a stage is where it is first seen: rank 0 has chunk 1 as stage 2, which
   * does not exist, so that stage 1 is rank 1's unless a test says so. */
  static const LsStageRef stages[] = { { 0, 0 }, { 0, 2 }, { 0, 0 }, { 0, 1 } };
  g_autoptr (LsOrders) orders = ls_orders_new (2, 2, 1, 2, 2, stages);
  g_array_append_vals (orders->ranks[0], rank_0, n_0);
  g_array_append_vals (orders->ranks[1], rank_1, n_1);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LS_CHECK (!ls_orders_check (orders, NULL, diags));
  g_autofree char *text = ls_diag_list_format (diags);
  LS_CHECK_STR (text, expected);
}

#define CHECK_FAULTS(a, b, expected) check_faults (a, G_N_ELEMENTS (a), b, G_N_ELEMENTS (b), expected)

static const LsAction good_0[] = { F (0, 0), F (0, 1), B (0, 0), B (0, 1) };
static const LsAction good_1[] = { F (1, 0), B (1, 0), F (1, 1), B (1, 1) };

static void
missing_and_repeated_actions_are_named (void)
{
  static const LsAction missing[] = { F (1, 0), B (1, 0), F (1, 1) };
  CHECK_FAULTS (good_0, missing, "error: /1/3: 1B1 is missing\n");

  static const LsAction twice[] = { F (0, 0), F (0, 1), B (0, 0), B (0, 1), F (0, 0) };
  CHECK_FAULTS (twice, good_1, "error: /0/4: 0F0 is there twice\n");

  static const LsAction repeats[] = { F (0, 0), F (0, 1), B (0, 0), B (0, 1), W (0, 1) };
  CHECK_FAULTS (repeats, good_1, "error: /0/4: 0W1 repeats a backward\nnote: B is I and W together\n");

  static const LsAction no_w[] = { F (1, 0), I (1, 0), F (1, 1), B (1, 1) };
  CHECK_FAULTS (good_0, no_w, "error: /1/4: 1W0 is missing\n");
}

static void
misplaced_actions_are_named (void)
{
  static const LsAction wrong_rank[] = { F (1, 0), B (1, 0), F (1, 1), B (1, 1), F (0, 0) };
  CHECK_FAULTS (good_0, wrong_rank,
                "error: /1/4: 0F0 is on the wrong rank: stage 0 belongs to rank 0\n"
                "note: a stage is on one rank, where its parameters are\n"
                "error: /1/4: 0F0 is there twice\n");

  static const LsAction no_such[] = { F (0, 0), F (0, 1), B (0, 0), B (0, 1), F (1, 0), F (0, 2) };
  CHECK_FAULTS (no_such, good_1,
                "error: /0/4: expected one of 2 stages and 2 micro-batches; got 2F0\n"
                "error: /0/5: expected one of 2 stages and 2 micro-batches; got 0F2\n");

  LsAction pair[] = { F (0, 0), F (0, 1), B (0, 0), B (0, 1) };
  pair[2].is_paired = true;
  CHECK_FAULTS (pair, good_1, "error: /0/2: expected a pair of a forward and a full backward\n");
}

static void
deadlocks_are_told_as_cycles (void)
{
  static const LsAction own[] = { F (1, 0), B (1, 0), B (1, 1), F (1, 1) };
  CHECK_FAULTS (good_0, own,
                "error: /1/2: deadlock: rank 1 waits with 1B1 for 1F1 of rank 1\n"
                "note: a rank executes its list in order; B stands for I where the backward is split\n");

  static const LsAction waits[] = { F (0, 0), B (0, 0), F (0, 1), B (0, 1) };
  static const LsAction for_it[] = { F (1, 0), F (1, 1), B (1, 0), B (1, 1) };
  CHECK_FAULTS (waits, for_it,
                "error: /0/1: deadlock: rank 0 waits with 0B0 for 1B0 of rank 1,"
                " rank 1 waits with 1F1 for 0F1 of rank 0\n"
                "note: a rank executes its list in order; B stands for I where the backward is split\n");

  static const LsAction w_first[] = { F (1, 0), W (1, 0), I (1, 0), F (1, 1), B (1, 1) };
  CHECK_FAULTS (good_0, w_first,
                "error: /1/1: deadlock: rank 1 waits with 1W0 for 1B0 of rank 1\n"
                "note: a rank executes its list in order; B stands for I where the backward is split\n");
}

static void
sizes_without_actions_are_refused_first (void)
{
  static const LsStageRef stages[] = { { 0, 0 } };
  g_autoptr (LsOrders) orders = ls_orders_new (1, 1, 1, 1, UINT32_MAX, stages);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  static const LsOrderPlaces places = { .file = "a.csv" };
  LS_CHECK (!ls_orders_check (orders, &places, diags));
  g_autofree char *text = ls_diag_list_format (diags);
  LS_CHECK_STR (
      text,
      "a.csv: error: expected a forward and a backward of 4294967295 micro-batches on 1 stages; got 0"
      " actions\n");
}

LS_TEST_SUITE (LS_TEST (an_order_is_timed_as_drawn), LS_TEST (communication_takes_time_between_ranks_only),
               LS_TEST (stages_may_take_unequal_times), LS_TEST (a_pair_ends_together),
               LS_TEST (activations_are_freed_at_once_or_by_halves), LS_TEST (one_rank_alone_is_legal),
               LS_TEST (missing_and_repeated_actions_are_named), LS_TEST (misplaced_actions_are_named),
               LS_TEST (deadlocks_are_told_as_cycles), LS_TEST (sizes_without_actions_are_refused_first))
