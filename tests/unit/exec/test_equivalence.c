/* Pins: the fast ways of running are exact. Random small jobs, lowered for real,
 * give the same picoseconds and the same spans with the reference queue, with the
 * reference solver (and each message a flow of its own), and with every op through the
 * event queue. */
#include "ls_test.h"

#include <string.h>

#include "hand_trace.h"
#include "random_job.h"

#include "exec/memory/memory.h"
#include "exec/run.h"
#include "lower/lower.h"

static LsTimeline *
run (const Job *j, const LsRunOptions *options)
{
  g_autoptr (GError) error = NULL;
  LsTimeline *t = ls_run (j->plan, j->cluster, &j->calibration, &nccl, options, NULL, &error);
  LS_CHECK_NO_ERROR (error);
  return t;
}

/* Spans of a rank are recorded in the order in which the engine met them, which may
 * differ between streams; compare them by (instance, op). */
static int
by_op (const void *a, const void *b)
{
  const LsSpan *x = a, *y = b;
  if (x->step != y->step)
    return (int) x->step - (int) y->step;
  if (x->instance != y->instance)
    return x->instance < y->instance ? -1 : 1;
  return (int) x->op - (int) y->op;
}

static LsSpan *
sorted_spans (const LsTimeline *t, uint32_t rank, guint *ret_n)
{
  const LsRankSpans *r = &t->ranks[rank];
  LsSpan *spans = g_new (LsSpan, r->n + 1);
  guint n = 0;
  for (uint32_t i = 0; i < r->n; i++)
    if (r->spans[i].start < t->window_end) /* a rank may have run ahead of the end */
      spans[n++] = r->spans[i];
  qsort (spans, n, sizeof *spans, by_op);
  *ret_n = n;
  return spans;
}

static void
check_same (const LsTimeline *a, const LsTimeline *b, const char *what)
{
  bool same = a->window_start == b->window_start && a->window_end == b->window_end
      && a->first_step == b->first_step && a->digest == b->digest;
  for (uint32_t r = 0; r < a->n_ranks && same; r++) {
    guint n, m;
    g_autofree LsSpan *x = sorted_spans (a, r, &n), *y = sorted_spans (b, r, &m);
    same = n == m;
    for (guint i = 0; i < n && same; i++) {
      same = by_op (&x[i], &y[i]) == 0 && x[i].start == y[i].start && x[i].issued == y[i].issued
          && MIN (x[i].end, a->window_end) == MIN (y[i].end, a->window_end);
    }
  }
  ls_check_impl (same, __FILE__, __LINE__,
                 "%s differs from the fast run: step ends at %" G_GINT64_FORMAT " and %" G_GINT64_FORMAT,
                 what, a->window_end, b->window_end);
}

/* A cause is a span of the window that began no later. */
static void
check_causes (const LsTimeline *t)
{
  bool ok = true;
  for (uint32_t r = 0; r < t->n_ranks; r++)
    for (uint32_t i = 0; i < t->ranks[r].n; i++) {
      const LsSpan *s = &t->ranks[r].spans[i];
      ok = ok
          && (s->cause == LS_SPAN_NONE
              || (s->cause < t->ranks[r].n && t->ranks[r].spans[s->cause].start <= s->start));
    }
  LS_CHECK (ok);
}

static void
check_job (guint32 seed)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (seed);
  Job j;
  if (!job_init (&j, rand))
    return;
  g_autoptr (GError) error = NULL;
  LS_CHECK (ls_plan_check (j.plan, &error));
  LS_CHECK_NO_ERROR (error);
  g_autoptr (LsMemory) memory = ls_memory_new (&(LsMemoryInput) { .plan = j.plan });
  LS_CHECK_INT (memory->classes[0].peak_bytes, >, 0);

  LsRunOptions fast;
  ls_run_options_init (&fast);
  fast.n_steps = 2;
  fast.slow = seed % 3 == 0 ? j.slow : NULL;
  fast.network = seed % 2 == 0 ? LS_NETWORK_STEP : LS_NETWORK_FLOW;
  LsRunOptions queue = fast, solver = fast, plain = fast;
  queue.queue = LS_QUEUE_REFERENCE;
  solver.solver = LS_SOLVER_REFERENCE;
  plain.no_run_ahead = true;
  g_autoptr (LsTimeline) a = run (&j, &fast);
  g_autoptr (LsTimeline) b = run (&j, &queue);
  g_autoptr (LsTimeline) c = run (&j, &solver);
  g_autoptr (LsTimeline) d = run (&j, &plain);
  if (a && b && c && d) {
    check_causes (a);
    check_same (a, b, "reference queue");
    check_same (a, c, "reference solver");
    check_same (a, d, "every op an event");
  }
  job_clear (&j);
}

/* 1,500 kernels in one segment, then a collective that waits for none of them: the
 * host cannot issue it before the launch queue has room, whoever runs ahead. */
static void
the_launch_queue_is_full_in_both_ways (void)
{
  LsTimeline *t[2];
  Hand *first = NULL;
  for (int plain = 0; plain < 2; plain++) {
    Hand *h = hand_new (2);
    hand_comm (h, LS_SLOT_DP, LS_AXIS_DP, false, (const uint32_t[]) { 0, 1 }, 2);
    h->options.no_run_ahead = plain;
    h->options.host.cost[LS_HOST_LAUNCH] = 5 * LS_US;
    for (uint32_t r = 0; r < 2; r++) {
      for (int k = 0; k < 1500; k++)
        hand_kernel (h, r, LS_TAG_F, LS_MS);
      hand_next_segment (h, r);
      LsOp op = ls_op_blank (LS_OP_COLLECTIVE, LS_STREAM_DP, LS_TAG_SYNC, "collective");
      op.slot = LS_SLOT_DP;
      op.coll = LS_COLL_ALL_REDUCE;
      op.bytes = 1 << 20;
      op.dtype = LS_DTYPE_FP16;
      hand_op (h, r, op, NULL, 0);
    }
    t[plain] = hand_run (h);
    if (t[plain] && plain) {
      check_same (t[0], t[1], "every op an event");
      const LsSpan *last = NULL;
      for (uint32_t i = 0; i < t[1]->ranks[0].n; i++)
        if (ls_span_op (t[1], 0, &t[1]->ranks[0].spans[i])->kind == LS_OP_COLLECTIVE)
          last = last ? last : &t[1]->ranks[0].spans[i];
      LS_CHECK (last && last->start > 476 * LS_MS); /* 1,500 - 1,024 kernels first */
      ls_timeline_free (t[0]);
      ls_timeline_free (t[1]);
    }
    if (plain)
      hand_free (h);
    else
      first = h;
  }
  hand_free (first);
}

static void
fast_runs_equal_plain_runs (void)
{
  guint n = (guint) g_ascii_strtoull (g_getenv ("LS_CASES") ? g_getenv ("LS_CASES") : "60", NULL, 10);
  for (guint32 seed = 1; seed <= n; seed++) {
    int before = (int) CU_get_number_of_failures ();
    check_job (seed);
    if ((int) CU_get_number_of_failures () > before)
      printf ("failing seed: %u\n", seed);
  }
}

LS_TEST_SUITE (LS_TEST (the_launch_queue_is_full_in_both_ways), LS_TEST (fast_runs_equal_plain_runs))
