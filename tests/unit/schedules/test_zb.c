/* Pins what an automatic zero-bubble order must keep, whatever the times: it can run, holds no more than the
 * limit, takes what the search said, is not later than 1F1B; that it reaches the closed forms where there are
 * some, and what its single steps are there for; that it is the same every time. */
#include "zb_case.h"

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
  guint n = (guint) g_ascii_strtoull (g_getenv ("LS_CASES") ? g_getenv ("LS_CASES") : "80", NULL, 10);
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
  LsZbRun run;
  ls_zb_run_init (&run, &job, 100);
  LS_CHECK_INT (ls_zb_fill (&run, string, rules, NULL).span, ==, INT64_MAX);
  LS_CHECK_INT (run.budget, ==, 99);
  ls_zb_run_clear (&run);
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

LS_TEST_MAIN ("zb", LS_TEST (random_jobs_run_within_their_memory),
              LS_TEST (no_order_is_later_than_1f1b_with_its_memory),
              LS_TEST (the_least_effort_and_memory_give_an_order),
              LS_TEST (zb_1p_and_zb_2p_reach_their_formulas), LS_TEST (v_half_and_v_min_reach_their_bubbles),
              LS_TEST (warm_ups_leave_the_line), LS_TEST (blocks_help_where_memory_is_ample),
              LS_TEST (what_breaks_the_limit_is_timed_no_further),
              LS_TEST (schedules_are_the_same_every_time), LS_TEST (illegal_shapes_are_refused))
