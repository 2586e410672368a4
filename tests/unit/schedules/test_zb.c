/* Pins what an automatic zero-bubble order must keep, whatever the times: it can run, holds no more than the
 * limit, takes what the search said, is not later than 1F1B; that it reaches the closed forms where there are
 * some, and what its single steps are there for; that it is the same every time. */
#include "ls_test.h"

#include <string.h>

#include "sched_run.h"
#include "schedules/zb.h"

/* --- a job searched with a given effort, its order run by the evaluator of all schedules --------------- */

/* The order of a search as those of any schedule. */
static LsOrders *
zb_orders (LsZbSearch *search)
{
  static const LsActionType types[] = { LS_ACTION_F, LS_ACTION_I, LS_ACTION_W };
  const LsZbJob *job = search->run.job;
  size_t length = ls_zb_length (job);
  g_autofree uint8_t *order = g_malloc (job->p * length);
  g_autofree LsStageRef *stages = g_new0 (LsStageRef, job->p * job->v);

  for (uint32_t r = 0; r < job->p; r++)
    for (uint32_t c = 0; c < job->v; c++)
      stages[r * job->v + c].stage = (uint16_t) ls_zb_stage (job, r, c);
  LsOrders *orders = ls_orders_new (job->p, job->v, 1, job->p * job->v, job->m, stages);
  ls_zb_fill (&search->run, search->best_string, search->best_rules, order);
  for (uint32_t r = 0; r < job->p; r++) {
    uint32_t n[6] = { 0 };
    for (size_t k = 0; k < length; k++) {
      uint8_t symbol = order[r * length + k];
      LsAction a = { .mb = n[symbol]++, .chunk = symbol & 1, .type = (uint8_t) types[symbol / 2] };
      g_array_append_val (orders->ranks[r], a);
    }
  }
  return orders;
}

/* Searches a job; checks that its order can run, takes what the search says and keeps the
 * limit. Returns the evaluation, NULL if it cannot run. */
static LsSchedEval *
zb_evaluate (const LsZbJob *job, int64_t effort)
{
  g_autoptr (LsArena) arena = ls_arena_new ();
  LsZbSearch search;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autofree LsChunkTimes *stages = g_new0 (LsChunkTimes, job->p * job->v);
  for (uint32_t s = 0; s < job->p * job->v; s++)
    stages[s] = (LsChunkTimes) { job->f[s], job->i[s], job->w[s], job->i[s] + job->w[s], 0 };
  LsSchedTimes times = { .stages = stages, .comm = job->comm };

  ls_zb_search_init (&search, job, effort, arena);
  if (job->v == 1)
    ls_zb_search_line (&search);
  else
    ls_zb_search_vee (&search);
  g_autoptr (LsOrders) orders = zb_orders (&search);
  gboolean can_run = ls_orders_check (orders, NULL, diags);
  g_autofree char *text = ls_diag_list_format (diags);
  LsSchedEval *e = NULL;
  if (ls_check_impl (can_run, __FILE__, __LINE__, "p %u v %u m %u limit %u: %s", job->p, job->v, job->m,
                     job->limit, text)) {
    e = ls_orders_eval (orders, &times);
    LS_CHECK_INT (e->span, ==, search.best.span);
    for (uint32_t r = 0; r < job->p; r++)
      LS_CHECK_INT (e->ranks[r].split_peak, <=, job->limit);
  }
  return e;
}

/* --- what an order keeps -------------------------------------------------------------------------------- */

#define MAX_STAGES   32
#define SMALL_EFFORT 20000

typedef struct {
  LsTime f[MAX_STAGES], i[MAX_STAGES], w[MAX_STAGES];
  LsZbJob job;
} Random;

static void
random_job (Random *c, GRand *rand)
{
  uint32_t p = (uint32_t) g_rand_int_range (rand, 1, 9), v = (uint32_t) g_rand_int_range (rand, 1, 3);
  gboolean is_even = g_rand_boolean (rand);
  for (uint32_t s = 0; s < p * v; s++) {
    c->f[s] = is_even && s ? c->f[0] : g_rand_int_range (rand, 1, 30);
    c->i[s] = is_even && s ? c->i[0] : g_rand_int_range (rand, 1, 30);
    c->w[s] = is_even && s ? c->w[0] : g_rand_int_range (rand, 0, 30);
  }
  c->job = (LsZbJob) {
    .p = p,
    .v = v,
    .m = (uint32_t) g_rand_int_range (rand, 1, 20),
    .f = c->f,
    .i = c->i,
    .w = c->w,
    .comm = g_rand_int_range (rand, 0, 4),
    .limit = LS_ZB_UNLIMITED,
  };
  if (g_rand_boolean (rand))
    c->job.limit = (uint32_t) g_rand_int_range (rand, 2 * (gint32) v, 4 * (gint32) (p * v) + 2);
}

static void
random_jobs_run_within_their_memory (void)
{
  guint n = ls_test_cases (40, 80);
  for (guint seed = 1; seed <= n; seed++) {
    g_autoptr (GRand) rand = g_rand_new_with_seed (seed);
    Random c;
    random_job (&c, rand);
    g_autoptr (LsSchedEval) e = zb_evaluate (&c.job, SMALL_EFFORT);
    if (e)
      LS_CHECK_INT (e->span, >=, e->ideal);
  }
}

static void
no_order_is_later_than_1f1b_with_its_memory (void)
{
  for (guint seed = 1; seed <= 60; seed++) {
    g_autoptr (GRand) rand = g_rand_new_with_seed (seed);
    Random c;
    random_job (&c, rand);
    c.job.v = 1;
    c.job.limit = 2 * c.job.p;
    LsChunkTimes stages[MAX_STAGES];
    for (uint32_t s = 0; s < c.job.p; s++)
      stages[s] = (LsChunkTimes) { c.f[s], c.i[s], c.w[s], c.i[s] + c.w[s], 0 };
    LsSchedTimes times = { .stages = stages, .comm = c.job.comm };
    LsSchedShape shape = { c.job.p, 1, c.job.m };
    g_autoptr (LsSchedEval) fused = evaluate ("1f1b", &shape, &times);
    g_autoptr (LsSchedEval) ours = zb_evaluate (&c.job, SMALL_EFFORT);
    if (fused && ours)
      LS_CHECK_INT (ours->span, <=, fused->span);
  }
}

/* Even when nothing may be spent, and with memory for one micro-batch. */
static void
the_least_effort_and_memory_give_an_order (void)
{
  static const LsTime ones[MAX_STAGES] = { 1, 1, 1, 1, 1, 1, 1, 1 };
  for (uint32_t v = 1; v <= 2; v++) {
    LsZbJob job = { .p = 4, .v = v, .m = 6, .f = ones, .i = ones, .w = ones, .limit = 2 * v };
    g_autoptr (LsSchedEval) e = zb_evaluate (&job, 1);
    if (e)
      LS_CHECK_INT (e->ranks[0].split_peak, ==, job.limit);
  }
}

static LsSchedShape
shape_of (uint32_t p, uint32_t m, LsTime f, LsTime i, LsTime w)
{
  return (LsSchedShape) { .pp = p, .n_micro_batches = m, .times = times_of (f, i, w, 0, 0) };
}

/* Rows of ../shared/reference/schedule-formulas.csv: ZB-H1 (= ZB-1p) and ZB-2p. */
static void
zb_1p_and_zb_2p_reach_their_formulas (void)
{
  static const struct {
    uint32_t p, m;
    LsTime f, i, w, bubble;
  } rows[] = { { 4, 8, 1, 1, 1, 3 }, { 4, 8, 10, 12, 8, 42 } };
  for (guint k = 0; k < G_N_ELEMENTS (rows); k++) {
    LsSchedShape shape = shape_of (rows[k].p, rows[k].m, rows[k].f, rows[k].i, rows[k].w);
    g_autoptr (LsSchedEval) e = evaluate ("zb-1p", &shape, &shape.times);
    LS_CHECK_INT (e->span - e->ideal, <=, rows[k].bubble);
  }
  for (uint32_t p = 2; p <= 8; p += 2) {
    LsSchedShape shape = shape_of (p, 2 * p, 1, 1, 1);
    g_autoptr (LsSchedEval) e = evaluate ("zb-2p", &shape, &shape.times);
    LS_CHECK_INT (e->span, ==, e->ideal);
  }
}

/* Bubbles for F = I = W = 1 that the zero-bubble authors' own schedulers reach (sail-sg/zero-bubble). */
static void
v_half_and_v_min_reach_their_bubbles (void)
{
  static const LsTime ones[MAX_STAGES] = {
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
  };
  static const struct {
    uint32_t p;
    LsTime half, min;
  } rows[] = { { 4, 5, 11 }, { 8, 17, 27 }, { 16, 41, 59 } };
  for (guint k = 0; k < G_N_ELEMENTS (rows); k++) {
    uint32_t p = rows[k].p;
    LsZbJob job = { .p = p, .v = 2, .m = 2 * p, .f = ones, .i = ones, .w = ones, .limit = (p + 2) / 2 * 4 };
    g_autoptr (LsSchedEval) half = zb_evaluate (&job, 4000 * 1000);
    LS_CHECK_INT (half->span - half->ideal, <=, rows[k].half);
    job.limit = (p + 4) / 3 * 4;
    g_autoptr (LsSchedEval) min = zb_evaluate (&job, 4000 * 1000);
    LS_CHECK_INT (min->span - min->ideal, <=, rows[k].min);
  }
}

/* With memory for three micro-batches on four ranks single warm-ups are moved: lines of them reach 39 at
 * best. */
static void
warm_ups_leave_the_line (void)
{
  static const LsTime ones[MAX_STAGES] = { 1, 1, 1, 1 };
  const LsZbJob job = { .p = 4, .v = 1, .m = 10, .f = ones, .i = ones, .w = ones, .limit = 6 };
  g_autoptr (LsSchedEval) e = zb_evaluate (&job, 200 * 1000);
  if (e)
    LS_CHECK_INT (e->span, <=, 37);
}

/* On a V building blocks are tried where memory is ample, too: the greedy ways alone reach 90. */
static void
blocks_help_where_memory_is_ample (void)
{
  static const LsTime f[MAX_STAGES] = { 2, 2, 2, 2, 2, 2, 2, 2 }, i[MAX_STAGES] = { 3, 3, 3, 3, 3, 3, 3, 3 },
                      w[MAX_STAGES] = { 1, 1, 1, 1, 1, 1, 1, 1 };
  const LsZbJob job = { .p = 4, .v = 2, .m = 6, .f = f, .i = i, .w = w, .limit = 16 };
  g_autoptr (LsSchedEval) e = zb_evaluate (&job, 10 * 1000 * 1000);
  if (e)
    LS_CHECK_INT (e->span, <=, 82);
}

static char *
text_of (const char *schedule, const LsSchedShape *shape)
{
  g_autoptr (LsOrders) orders = checked_orders (schedule, shape);
  GString *text = g_string_new (NULL);
  for (uint32_t r = 0; orders && r < shape->pp; r++)
    ls_orders_append_rank (orders, r, text);
  return g_string_free (text, FALSE);
}

/* The second forward of rank 0 has no memory: its first is the only action that is timed, and no other rank is
 * looked at. */
static void
what_breaks_the_limit_is_timed_no_further (void)
{
  static const LsTime one[] = { 1, 1 };
  static const uint8_t F = LS_ZB_F, I = LS_ZB_I, W = LS_ZB_W;
  const uint8_t string[] = { F, F, I, W, I, W, F, I, W, F, I, W };
  const LsZbRule rules[2] = { { LS_ZB_OBEY, 16 }, { LS_ZB_OBEY, 16 } };
  const LsZbJob job = { .p = 2, .v = 1, .m = 2, .f = one, .i = one, .w = one, .limit = 2 };
  g_autoptr (LsArena) arena = ls_arena_new ();
  LsZbRun run;
  ls_zb_run_init (&run, &job, 100, arena);
  LS_CHECK_INT (ls_zb_fill (&run, string, rules, NULL).span, ==, INT64_MAX);
  LS_CHECK_INT (run.budget, ==, 99);
}

/* The most that a rank holds, in units of the job. */
static uint32_t
most_held (const LsZbJob *job, const LsOrders *orders)
{
  uint32_t most = 0;
  for (uint32_t r = 0; r < job->p; r++) {
    uint32_t held = 0;
    for (guint k = 0; k < orders->ranks[r]->len; k++) {
      const LsAction *a = &g_array_index (orders->ranks[r], LsAction, k);
      uint32_t kept = ls_zb_kept (job, ls_zb_stage (job, r, a->chunk));
      held += a->type == LS_ACTION_F ? job->chunk : 0;
      held += a->type == LS_ACTION_I ? kept - job->chunk : 0;
      most = MAX (most, held);
      held -= a->type == LS_ACTION_W ? kept : 0;
    }
  }
  return most;
}

/* What a chunk keeps from I to W is what it says: nothing of its activations, some, all, or half as much again, which
 * one I may hold above the limit where no W is left to run. Of one chunk and of two, with memory for p and for p / 2
 * micro-batches. */
static void
memory_counts_what_a_chunk_keeps (void)
{
  static const uint32_t shares[] = { 0, 32, 64, 96 };
  static const LsTime f[] = { 10, 10, 10, 10, 10, 10, 10, 12 };
  for (guint k = 0; k < 4 * G_N_ELEMENTS (shares); k++) {
    uint32_t v = 1 + k % 2, kept[8], limit = (k / 2 % 2 ? 4 : 2) * 64 * v,
             above = MAX (64, shares[k / 4]) - 64;
    for (guint s = 0; s < 8; s++)
      kept[s] = shares[k / 4];
    LsZbJob job = {
      .p = 4, .v = v, .m = 12, .f = f, .i = f, .w = f, .comm = 1, .chunk = 64, .kept = kept, .limit = limit
    };
    g_autoptr (LsArena) arena = ls_arena_new ();
    LsZbSearch search;
    ls_zb_search_init (&search, &job, 300000, arena);
    (v == 1 ? ls_zb_search_line : ls_zb_search_vee) (&search);
    g_autoptr (LsOrders) orders = zb_orders (&search);
    uint32_t most = most_held (&job, orders);
    LS_CHECK (most <= limit + above && most > limit / 2);
  }
}

static void
schedules_are_the_same_every_time (void)
{
  static const char *const names[] = { "zb-auto", "zbv-auto", "v-half", "v-min" };
  for (guint k = 0; k < G_N_ELEMENTS (names); k++) {
    LsSchedShape shape = shape_of (2, 4, 10, 12, 8);
    shape.memory_limit = 2;
    g_autofree char *a = text_of (names[k], &shape);
    g_autofree char *b = text_of (names[k], &shape);
    LS_CHECK_STR (a, b);
  }
}

static void
illegal_shapes_are_refused (void)
{
  LsSchedShape shape = { .pp = 4, .n_micro_batches = 8, .memory_limit = 0.5 };
  static const char too_little[] = "the memory limit must be at least 1 micro-batch";
  LS_CHECK_STR (ls_sched_refusal (ls_sched_find ("zb-auto"), &shape), too_little);
  LS_CHECK_STR (ls_sched_refusal (ls_sched_find ("v-min"), &shape), too_little);
  shape = (LsSchedShape) { .pp = 4, .vpp = 2, .n_micro_batches = 8 };
  LS_CHECK_STR (ls_sched_refusal (ls_sched_find ("zb-2p"), &shape), "vpp must be 1: a rank holds one stage");
  shape.vpp = 3;
  LS_CHECK_STR (ls_sched_refusal (ls_sched_find ("zbv-auto"), &shape),
                "vpp must be 2: the model goes down the ranks and back");
}

/* --- beside their inventors ------------------------------------------------------------------------- */

/* Pins how the automatic schedulers compare with their inventors' heuristics: the rows of
 * ../shared/data/schedules/zero-bubble-costs.csv, each a job and the best span reached
 * there. Every 41st row by default; all with LS_CASES=500, where the table that is printed
 * must be the pinned one. */

#define N_ROWS 500
#define EFFORT (10 * 1000 * 1000) /* that of schedules/zb_auto.c for these sizes */

typedef struct {
  const char *schedule;
  guint n, n_reached, n_better;
} Share;

/* All 500, as LS_CASES=500 prints them. */
static const Share pinned[] = {
  { "zb-auto", 322, 321, 22 },
  { "zbv-auto", 62, 61, 41 },
  { "v-half", 66, 66, 53 },
  { "v-min", 50, 50, 45 },
};

static uint32_t
limit_of (const char *schedule, uint32_t p, uint32_t v, const char *cell)
{
  if (strcmp (schedule, "v-half") == 0)
    return (p + 2) / 2 * 4;
  if (strcmp (schedule, "v-min") == 0)
    return (p + 4) / 3 * 4;
  return *cell ? (uint32_t) (g_ascii_strtod (cell, NULL) * 2 * v) : LS_ZB_UNLIMITED;
}

static void
check_row (char **cells, Share *share)
{
  LsTime f[MAX_STAGES], i[MAX_STAGES], w[MAX_STAGES];
  uint32_t p = (uint32_t) g_ascii_strtoull (cells[1], NULL, 10),
           v = strcmp (cells[0], "zb-auto") == 0 ? 1 : 2;
  for (guint s = 0; s < MAX_STAGES; s++) {
    f[s] = g_ascii_strtoll (cells[3], NULL, 10);
    i[s] = g_ascii_strtoll (cells[4], NULL, 10);
    w[s] = g_ascii_strtoll (cells[5], NULL, 10);
  }
  LsZbJob job = {
    .p = p,
    .v = v,
    .m = (uint32_t) g_ascii_strtoull (cells[2], NULL, 10),
    .f = f,
    .i = i,
    .w = w,
    .comm = g_ascii_strtoll (cells[6], NULL, 10),
    .limit = limit_of (cells[0], p, v, cells[7]),
  };
  double theirs = g_ascii_strtod (cells[9], NULL);
  g_autoptr (LsSchedEval) e = zb_evaluate (&job, EFFORT);
  share->n++;
  share->n_reached += e && (double) e->span <= theirs;
  share->n_better += e && (double) e->span < theirs;
  if (e && (double) e->span > theirs)
    printf ("  later: %s p %s m %s F %s I %s W %s comm %s limit %s: %" G_GINT64_FORMAT ", theirs %g\n",
            cells[0], cells[1], cells[2], cells[3], cells[4], cells[5], cells[6], *cells[7] ? cells[7] : "-",
            e->span, theirs);
}

static void
spans_are_at_most_those_of_the_inventors (void)
{
  const char *root = ls_test_shared_data ();
  if (root == NULL)
    return;
  guint n_rows = ls_test_cases (6, 12);
  guint step = MAX (1, N_ROWS / MAX (1, n_rows));
  g_autofree char *path = g_build_filename (root, "schedules", "zero-bubble-costs.csv", NULL);
  g_autofree char *text = NULL;
  if (!LS_CHECK (g_file_get_contents (path, &text, NULL, NULL)))
    return;

  Share shares[G_N_ELEMENTS (pinned)] = { 0 };
  Share all = { "all", 0, 0, 0 };
  g_auto (GStrv) lines = g_strsplit (g_strchomp (text), "\n", -1);
  if (!LS_CHECK (g_strv_length (lines) == N_ROWS + 1))
    return;
  for (guint k = 1; k <= N_ROWS; k += step) {
    g_auto (GStrv) cells = g_strsplit (lines[k], ",", -1);
    for (guint i = 0; i < G_N_ELEMENTS (pinned); i++)
      if (strcmp (cells[0], pinned[i].schedule) == 0)
        check_row (cells, &shares[i]);
  }
  for (guint i = 0; i < G_N_ELEMENTS (pinned); i++) {
    printf ("  %-8s %3u rows, reached %3u, better %3u\n", pinned[i].schedule, shares[i].n,
            shares[i].n_reached, shares[i].n_better);
    all.n += shares[i].n;
    all.n_reached += shares[i].n_reached;
    if (step == 1) {
      LS_CHECK_INT (shares[i].n, ==, pinned[i].n);
      LS_CHECK_INT (shares[i].n_reached, ==, pinned[i].n_reached);
      LS_CHECK_INT (shares[i].n_better, ==, pinned[i].n_better);
    }
  }
  LS_CHECK_INT (100 * all.n_reached, >=, 99 * all.n);
}

LS_TEST_SUITE (LS_TEST (random_jobs_run_within_their_memory),
               LS_TEST (no_order_is_later_than_1f1b_with_its_memory),
               LS_TEST (the_least_effort_and_memory_give_an_order),
               LS_TEST (zb_1p_and_zb_2p_reach_their_formulas), LS_TEST (v_half_and_v_min_reach_their_bubbles),
               LS_TEST (warm_ups_leave_the_line), LS_TEST (blocks_help_where_memory_is_ample),
               LS_TEST (what_breaks_the_limit_is_timed_no_further),
               LS_TEST (memory_counts_what_a_chunk_keeps), LS_TEST (schedules_are_the_same_every_time),
               LS_TEST (illegal_shapes_are_refused), LS_TEST (spans_are_at_most_those_of_the_inventors))
