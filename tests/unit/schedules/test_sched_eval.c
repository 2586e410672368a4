/* Pins what a schedule takes: orders by hand, and schedules beside those of others. */
#include "ls_test.h"
#include "sched_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Pins the evaluation of orders by examples small enough to do by hand: communication,
 * stages of unequal times, pairs, activations; and what is said of orders that cannot
 * run, with its place. */

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
    "none",           "naive", "gpipe",     "gpipe-lifo",       "1f1b",
    "pipedream",      "zb-h1", "zb-h2",     "interleaved-1f1b", "looped-bfs",
    "interleaved-zb", "zbv",   "dualpipev", "hanayo",
  };
  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    LsSchedShape shape = { 1, i < 8 ? 1 : 2, 4 };
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

/* Schedules beside those of others. */

/* --- another implementation ------------------------------------------------------------------------- */

/* Pins schedules whose authors' code was not found against the orders of an independent
 * implementation (ELF) where they are, both run on our evaluator: never later, never more
 * activations than their bound. */

static uint32_t
number_after (const char *name, const char *key)
{
  const char *p = strstr (name, key);
  return p ? (uint32_t) g_ascii_strtoull (p + strlen (key), NULL, 10) : 0;
}

static void
append_cell (LsOrders *o, uint32_t rank, const char *cell)
{
  static const char letters[] = "FBIW";
  char *p;
  uint32_t stage = (uint32_t) g_ascii_strtoull (cell, &p, 10);
  LsAction a = {
    .chunk = ls_layout_home (&o->layout, 0, stage).chunk,
    .type = (uint8_t) (strchr (letters, *p) - letters),
    .mb = (uint32_t) g_ascii_strtoull (p + 1, NULL, 10),
  };
  g_array_append_val (o->ranks[rank], a);
}

/* The orders of a file, on the layout of ours. */
static LsOrders *
read_orders (const char *path, const LsOrders *ours)
{
  const LsLayout *l = &ours->layout;
  g_autofree char *text = NULL;
  g_autoptr (GError) error = NULL;
  g_file_get_contents (path, &text, NULL, &error);
  if (!LS_CHECK_NO_ERROR (error))
    return NULL;
  LsOrders *o = ls_orders_new (l->n_ranks, l->n_chunks, 1, l->n_stages, l->n_micro_batches, l->stages);
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  for (uint32_t rank = 0; rank < l->n_ranks; rank++) {
    g_auto (GStrv) cells = g_strsplit (lines[rank], ",", -1);
    for (guint i = 0; cells[i]; i++)
      append_cell (o, rank, cells[i]);
  }
  return o;
}

/* F, I, W, comm: equal, inputs dearer, forwards dearer, fused, extremes, profiled ones. */
static const LsTime costs[][4] = {
  { 1, 1, 1, 0 },
  { 10, 12, 8, 0 },
  { 12, 10, 8, 0 },
  { 1, 2, 0, 0 },
  { 2, 1, 0, 0 },
  { 10, 5, 15, 0 },
  { 20, 10, 5, 0 },
  { 10, 30, 5, 0 },
  { 10, 12, 8, 1 },
  { 10, 10, 10, 5 },
  { 10, 20, 0, 4 },
  { 18522, 18086, 9337, 601 },
  { 29718, 29444, 19927, 527 },
};

static void
compare (const char *path, const char *name, const char *schedule)
{
  LsSchedShape shape = {
    .pp = number_after (name, "_p"),
    .n_micro_batches = number_after (name, "_m"),
    .waves = number_after (name, "_waves"),
  };
  g_autoptr (LsOrders) ours = checked_orders (schedule, &shape);
  g_autoptr (LsOrders) theirs = ours ? read_orders (path, ours) : NULL;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  if (!theirs || !LS_CHECK (ls_orders_check (theirs, NULL, diags)))
    return;
  for (guint i = 0; i < G_N_ELEMENTS (costs); i++) {
    LsSchedTimes times = times_of (costs[i][0], costs[i][1], costs[i][2], 0, costs[i][3]);
    g_autoptr (LsSchedEval) a = ls_orders_eval (ours, &times);
    g_autoptr (LsSchedEval) b = ls_orders_eval (theirs, &times);
    if (!LS_CHECK_INT (a->makespan, <=, b->makespan) || !LS_CHECK_INT (a->span, <=, b->span))
      printf ("  %s, times %u\n", name, i);
  }
}

static void
compare_family (const char *schedule, guint n_files)
{
  const char *shared = ls_test_shared_data ();
  if (!shared)
    return;
  g_autofree char *folder = g_build_filename (shared, "schedules", schedule, NULL);
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  if (!LS_CHECK (dir != NULL))
    return;
  guint n = 0;
  for (const char *name; (name = g_dir_read_name (dir)); n++) {
    g_autofree char *path = g_build_filename (folder, name, NULL);
    compare (path, name, schedule);
  }
  LS_CHECK_INT (n, ==, n_files);
}

static void
zb_h1_is_never_later (void)
{
  compare_family ("zb-h1", 10);
}

static void
zb_h2_is_never_later (void)
{
  compare_family ("zb-h2", 11);
}

static void
hanayo_is_never_later (void)
{
  compare_family ("hanayo", 44);
}

/* --- a measured run --------------------------------------------------------------------------------- */

/* Pins: 1F1B and interleaved 1F1B with the forward and backward times of a measured run
 * reproduce its iterations (../shared/data/kernels/primus_pp_trace.csv, Primus on MI300X,
 * 8 stages, 16 micro-batches): rank 0's total within 2 %. Sends, optimizer and gaps
 * between passes are not in the times, so the prediction must be the shorter one. */

enum { PP = 8, MICRO_BATCHES = 16, MAX_PASSES = 2 * MICRO_BATCHES };

typedef struct {
  double forward_ms[PP][MAX_PASSES], backward_ms[PP][MAX_PASSES]; /* in execution order */
  double total_ms;                                                /* of rank 0 */
  guint n;
} Iteration;

/* Columns: schedule, rank, iter, iter_total_ms, idx, fwd_start_ms, fwd_end_ms, bwd_start_ms, bwd_end_ms. */
static void
read_iteration (const char *text, const char *schedule, const char *iteration, Iteration *ret)
{
  *ret = (Iteration) { .n = 0 };
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  for (char **line = lines + 1; *line; line++) {
    g_auto (GStrv) cell = g_strsplit (*line, ",", -1);
    if (g_strv_length (cell) < 9 || strcmp (cell[0], schedule) != 0 || strcmp (cell[2], iteration) != 0)
      continue;
    int rank = atoi (cell[1]), k = atoi (cell[4]);
    if (!LS_CHECK (rank >= 0 && rank < PP && k >= 0 && k < MAX_PASSES))
      return;
    ret->forward_ms[rank][k] = g_ascii_strtod (cell[6], NULL) - g_ascii_strtod (cell[5], NULL);
    ret->backward_ms[rank][k] = g_ascii_strtod (cell[8], NULL) - g_ascii_strtod (cell[7], NULL);
    if (rank == 0)
      ret->total_ms = g_ascii_strtod (cell[3], NULL);
    ret->n++;
  }
}

/* The k-th forward of a rank is that of its order. */
static LsTime *
action_times (const LsOrders *orders, uint32_t rank, const Iteration *it)
{
  guint n_forward = 0, n_backward = 0;
  LsTime *times = g_new (LsTime, orders->ranks[rank]->len);
  for (guint i = 0; i < orders->ranks[rank]->len; i++) {
    bool is_forward = g_array_index (orders->ranks[rank], LsAction, i).type == LS_ACTION_F;
    double ms = is_forward ? it->forward_ms[rank][n_forward++] : it->backward_ms[rank][n_backward++];
    times[i] = (LsTime) llround (ms * (double) LS_MS);
  }
  return times;
}

static void
check_iteration (const char *text, const char *schedule, uint32_t vpp, const char *traced,
                 const char *iteration)
{
  Iteration it;
  read_iteration (text, traced, iteration, &it);
  LS_CHECK_INT (it.n, ==, PP * MICRO_BATCHES * vpp);
  LsSchedShape shape = { .pp = PP, .vpp = vpp, .n_micro_batches = MICRO_BATCHES };
  g_autoptr (LsOrders) orders = checked_orders (schedule, &shape);
  if (!orders)
    return;
  LsTime *of_rank[PP];
  for (uint32_t r = 0; r < PP; r++)
    of_rank[r] = action_times (orders, r, &it);
  LsSchedTimes times = { .actions = (const LsTime *const *) of_rank };
  g_autoptr (LsSchedEval) eval = ls_orders_eval (orders, &times);
  double ratio = ls_time_to_s (eval->ranks[0].last) * 1e3 / it.total_ms;
  printf ("%s, iteration %s: %.1f ms, measured %.1f, %+.1f %%\n", schedule, iteration,
          ls_time_to_s (eval->ranks[0].last) * 1e3, it.total_ms, 100 * (ratio - 1));
  LS_CHECK_DOUBLE (ratio, >=, 0.98);
  LS_CHECK_DOUBLE (ratio, <=, 1.0);
  for (uint32_t r = 0; r < PP; r++)
    g_free (of_rank[r]);
}

static void
measured_iterations_are_reproduced (void)
{
  const char *data = ls_test_shared_data ();
  if (!data)
    return;
  g_autofree char *path = g_build_filename (data, "kernels", "primus_pp_trace.csv", NULL), *text = NULL;
  if (!LS_CHECK (g_file_get_contents (path, &text, NULL, NULL)))
    return;
  static const char *const iterations[] = { "6", "7", "8" };
  for (guint i = 0; i < G_N_ELEMENTS (iterations); i++) {
    check_iteration (text, "1f1b", 1, "pp8", iterations[i]);
    check_iteration (text, "interleaved-1f1b", 2, "pp8_vpp2", iterations[i]);
  }
}

LS_TEST_SUITE (LS_TEST (an_order_is_timed_as_drawn), LS_TEST (communication_takes_time_between_ranks_only),
               LS_TEST (stages_may_take_unequal_times), LS_TEST (a_pair_ends_together),
               LS_TEST (activations_are_freed_at_once_or_by_halves), LS_TEST (one_rank_alone_is_legal),
               LS_TEST (missing_and_repeated_actions_are_named), LS_TEST (misplaced_actions_are_named),
               LS_TEST (deadlocks_are_told_as_cycles), LS_TEST (sizes_without_actions_are_refused_first),
               LS_TEST (zb_h1_is_never_later), LS_TEST (zb_h2_is_never_later),
               LS_TEST (hanayo_is_never_later), LS_TEST (measured_iterations_are_reproduced))
