/* Pins: where a step is known to be as all that follow, it is the last, and a run that is to show the steady
 * state only begins at the quiescent point (exec/shortcuts/steady.c). By hand: the worked example; and what
 * has no quiescent point, or loses it: a host that never waits, something sent behind it, data on the way,
 * ranks that get there while others still communicate, calls that do not match from there on, compute that is
 * not over, a step that waits for another rank's first. The reported step has all its spans. What is told of the end of the last step depends on
 * no further one. Each job is also run step by step and op by op, and must come out the same (--coarsen
 * check); random jobs are in test_fold.c. */
#include "ls_test.h"

#include "hand_trace.h"

#include "exec/extras.h"

static const uint32_t all[] = { 0, 1, 2, 3 };

/* n ranks: 2 ms of kernels, then the norm: a kernel and an all-reduce of all. */
static Hand *
job_new (uint32_t n, bool has_world)
{
  Hand *h = hand_new (n);
  h->options.n_steps = 3;
  h->options.steady = true;
  h->options.coarsen = LS_SHORTCUT_CHECK;
  h->options.host.cost[LS_HOST_LAUNCH] = LS_US;
  h->options.host.cost[LS_HOST_SYNC] = 10 * LS_US;
  if (has_world)
    hand_comm (h, LS_SLOT_WORLD, LS_AXIS_TP, false, all, n);
  for (uint32_t r = 0; r < n; r++) {
    for (int i = 0; i < 4; i++)
      hand_kernel (h, r, LS_TAG_F, 500 * LS_US);
    hand_next_segment (h, r);
    hand_kernel (h, r, LS_TAG_OPTIMIZER, 20 * LS_US);
  }
  return h;
}

/* The host reads what the all-reduce gives, and goes on. */
static void
read_norm (Hand *h, uint32_t rank, LsSlot slot)
{
  hand_host_sync (h, rank, hand_sync (h, rank, slot, LS_STREAM_GLOBAL, LS_COLL_ALL_REDUCE, 4));
  hand_kernel (h, rank, LS_TAG_OPTIMIZER, 30 * LS_US);
}

/* Frees the job. */
static void
check_begin (Hand *h, bool is_quiescent, uint32_t n_steps)
{
  g_autoptr (LsTimeline) t = hand_run (h);
  if (t) {
    LS_CHECK_INT (t->first_step == 0, ==, is_quiescent);
    LS_CHECK_INT (t->n_steps, ==, n_steps);
  }
  hand_free (h);
}

static Hand *
worked_example (void)
{
  Hand *h = job_new (2, true);
  for (uint32_t r = 0; r < 2; r++)
    read_norm (h, r, LS_SLOT_WORLD);
  return h;
}

static void
one_step_is_enough (void)
{
  Hand *h = worked_example ();
  LsTime all_reduce = hand_coll_time (h, LS_COLL_ALL_REDUCE, 4, all, 2);
  g_autoptr (LsTimeline) t = hand_run (h);
  if (t) {
    LS_CHECK_INT (t->first_step, ==, 0);
    LS_CHECK_INT (t->n_steps, ==, 2);
    LS_CHECK_INT (t->n_segments, ==, 2 + 2 * 2); /* that of the quiescent point, and a step */
    /* kernels follow the optimizer; the host goes on 10 us behind the all-reduce and issues in 1 us */
    LS_CHECK_INT (t->window_end - t->window_start, ==, (2000 + 20 + 10 + 1 + 30) * LS_US + all_reduce);
  }
  hand_free (h);
}

static void
a_first_step_that_is_wanted_is_whole (void)
{
  Hand *h = worked_example ();
  h->options.steady = false;
  check_begin (h, false, 2);
  h = worked_example ();
  h->options.n_steps = 2; /* it would be reported */
  check_begin (h, false, 2);
}

static void
a_host_that_never_waits (void)
{
  Hand *h = job_new (2, true);
  for (uint32_t r = 0; r < 2; r++)
    hand_sync (h, r, LS_SLOT_WORLD, LS_STREAM_GLOBAL, LS_COLL_ALL_REDUCE, 4);
  check_begin (h, false, 3);
}

/* The second rank falls behind by half a millisecond a step: no step is as the one before. */
static void
ranks_that_drift_apart (void)
{
  Hand *h = job_new (2, false);
  hand_kernel (h, 1, LS_TAG_OPTIMIZER, 500 * LS_US);
  for (uint32_t r = 0; r < 2; r++) {
    hand_host_sync (h, r, hand_kernel (h, r, LS_TAG_OPTIMIZER, 10 * LS_US));
    hand_kernel (h, r, LS_TAG_OPTIMIZER, 30 * LS_US);
  }
  check_begin (h, false, 3);
}

static void
something_is_sent_behind_it (void)
{
  Hand *h = worked_example ();
  hand_p2p (h, 0, LS_SLOT_NEXT, true, 1 << 20);
  LsTransfer *receive = ls_arena_new_array (h->plan->arena, LsTransfer, 1);
  *receive = (LsTransfer) { 1 << 20, LS_SLOT_PREV, false };
  LsOp op = ls_op_blank (LS_OP_P2P, LS_STREAM_PP_FWD_RECV, LS_TAG_SYNC, "receive");
  op.transfers = receive;
  op.n_transfers = 1;
  hand_op (h, 1, op, NULL, 0);
  check_begin (h, false, 3);
}

/* An all-reduce of 1 GiB that nobody waits for. */
static void
data_are_on_the_way (void)
{
  Hand *h = job_new (2, true);
  hand_comm (h, LS_SLOT_DP, LS_AXIS_DP, false, all, 2);
  for (uint32_t r = 0; r < 2; r++) {
    hand_async (h, r, LS_SLOT_DP, LS_STREAM_DP, LS_COLL_ALL_REDUCE, 1 << 30);
    read_norm (h, r, LS_SLOT_WORLD);
  }
  check_begin (h, false, 3);
}

/* Two pairs that have nothing to do with each other: one reads its norm early in a step, the other late.
 * Nothing says when which begins, and while one goes on the other still communicates. */
static void
others_still_communicate (void)
{
  for (int steady = 0; steady < 2; steady++) {
    Hand *h = job_new (4, false);
    h->options.steady = steady;
    for (uint32_t pair = 0; pair < 2; pair++) {
      hand_comm (h, LS_SLOT_TP, LS_AXIS_TP, false, &all[2 * pair], 2);
      for (uint32_t r = 2 * pair; r < 2 * pair + 2; r++) {
        hand_kernel (h, r, LS_TAG_OPTIMIZER, (100 + 600 * pair) * LS_US);
        hand_next_segment (h, r); /* which would be a beginning: but for all at once */
        read_norm (h, r, LS_SLOT_TP);
        hand_kernel (h, r, LS_TAG_OPTIMIZER, (700 - 600 * pair) * LS_US);
      }
    }
    check_begin (h, false, 3);
  }
}

/* Rank 1 waits once more, behind what rank 0 has called behind its own quiescent point. */
static void
calls_that_do_not_match (void)
{
  Hand *h = worked_example ();
  hand_comm (h, LS_SLOT_DP, LS_AXIS_DP, false, all, 2);
  hand_async (h, 0, LS_SLOT_DP, LS_STREAM_DP, LS_COLL_ALL_REDUCE, 4);
  hand_async (h, 1, LS_SLOT_DP, LS_STREAM_DP, LS_COLL_ALL_REDUCE, 4);
  hand_next_segment (h, 1);
  hand_kernel (h, 1, LS_TAG_OPTIMIZER, LS_US);
  LsOp sync = ls_op_blank (LS_OP_HOST_SYNC, LS_STREAM_COMPUTE, LS_TAG_SYNC, "host sync");
  LsDep dep = { LS_DEP_STREAM, LS_STREAM_COMPUTE };
  hand_op (h, 1, sync, &dep, 1);
  g_autoptr (LsTimeline) t = hand_run (h);
  if (t)
    LS_CHECK (t->first_step > 0);
  hand_free (h);
}

/* Memory is copied on the compute stream, and the host waits for a kernel beside it only. */
static void
compute_is_not_over (void)
{
  Hand *h = job_new (1, false);
  h->options.host.cost[LS_HOST_SYNC] = 0;
  LsOp copy = ls_op_blank (LS_OP_COPY, LS_STREAM_COMPUTE, LS_TAG_SYNC, "copy");
  copy.recorded = 3 * LS_MS;
  hand_next_segment (h, 0);
  LsOp early = ls_op_blank (LS_OP_KERNEL, LS_STREAM_DP, LS_TAG_OPTIMIZER, "kernel");
  early.recorded = 10 * LS_US;
  LsDep compute = { LS_DEP_STREAM, LS_STREAM_COMPUTE };
  uint16_t read = hand_op (h, 0, early, &compute, 1);
  hand_op (h, 0, copy, NULL, 0);
  hand_host_sync (h, 0, read);
  check_begin (h, false, 3);
}

/* What rank 1 does once takes longer than two steps of rank 0, whose third waits until that first step is
 * over. */
static void
a_step_that_begins_late (void)
{
  Hand *h = hand_new (2);
  h->options.coarsen = LS_SHORTCUT_CHECK;
  h->options.n_steps = 4;
  hand_kernel (h, 1, LS_TAG_F, 5 * LS_MS);
  hand_next_segment (h, 1);
  for (uint32_t r = 0; r < 2; r++)
    hand_host_sync (h, r, hand_kernel (h, r, LS_TAG_F, 2 * LS_MS));
  hand_freeze (h);
  h->plan->programs[1].n_lead = 1;
  g_autoptr (LsTimeline) t = hand_run (h);
  if (t) {
    LS_CHECK_INT (t->n_steps, ==, 3);
    LS_CHECK (t->is_periodic);
  }
  hand_free (h);
}

/* Rank 0 is a little earlier than rank 1, and begins the next step before the end of the one that is
 * reported. Which may be the last or not: what is told of its end is the same. */
static void
what_is_behind_the_last_step (void)
{
  LsTimeline *t[2] = { NULL };
  LsCluster *cluster = NULL;
  Hand *h[2];
  for (uint32_t i = 0; i < 2; i++) {
    h[i] = hand_new (2);
    h[i]->options.n_steps = 2 + i;
    LsOp delay = ls_op_blank (LS_OP_HOST_DELAY, LS_STREAM_COMPUTE, LS_TAG_SYNC, "delay");
    delay.recorded = 400 * LS_US;
    hand_op (h[i], 0, delay, NULL, 0);
    LsOp copy = ls_op_blank (LS_OP_COPY, LS_STREAM_COPY, LS_TAG_SYNC, "copy");
    copy.recorded = 500 * LS_US;
    hand_join (h[i], 0, hand_op (h[i], 0, copy, NULL, 0));
    hand_host_sync (h[i], 0, hand_kernel (h[i], 0, LS_TAG_F, 1050 * LS_US));
    hand_kernel (h[i], 1, LS_TAG_F, 2000 * LS_US);
    cluster = h[i]->cluster;
    t[i] = hand_run (h[i]);
  }
  g_autoptr (GError) error = NULL;
  if (t[0] && t[1])
    fold_check (t[0], t[1], cluster, "of two steps and of three", &error);
  LS_CHECK_NO_ERROR (error);
  for (uint32_t i = 0; i < 2; i++) {
    g_clear_pointer (&t[i], ls_timeline_free);
    hand_free (h[i]);
  }
}

/* Only of the first step of several, which is never reported, the last spans alone are kept. */
static void
a_step_that_is_reported_keeps_all_its_spans (void)
{
  for (uint32_t n_steps = 1; n_steps <= 3; n_steps++) {
    Hand *h = worked_example ();
    h->options.steady = false;
    h->options.n_steps = n_steps;
    g_autoptr (LsTimeline) t = hand_run (h);
    const LsRankSpans *r = t ? &t->ranks[ls_timeline_representative (t, 1)] : NULL;
    uint32_t n_kernels = 0;
    for (uint32_t i = 0; r && i < r->n && r->spans[i].start < t->window_end; i++) {
      const LsSpan *s = &r->spans[i];
      n_kernels += ls_span_op (t, 1, s)->kind == LS_OP_KERNEL;
      LS_CHECK_INT (s->step, ==, MIN (n_steps, 2) - 1); /* the second tells that the third is like it */
      LS_CHECK (s->start >= t->window_start && s->end > s->start && s->end <= t->window_end);
      LS_CHECK (s->cause == LS_SPAN_NONE || s->cause < i);
    }
    LS_CHECK_INT (n_kernels, ==, 6);
    hand_free (h);
  }
}

LS_TEST_SUITE (LS_TEST (one_step_is_enough), LS_TEST (a_first_step_that_is_wanted_is_whole),
               LS_TEST (a_host_that_never_waits), LS_TEST (ranks_that_drift_apart),
               LS_TEST (something_is_sent_behind_it), LS_TEST (data_are_on_the_way),
               LS_TEST (others_still_communicate), LS_TEST (calls_that_do_not_match),
               LS_TEST (compute_is_not_over), LS_TEST (a_step_that_begins_late),
               LS_TEST (what_is_behind_the_last_step), LS_TEST (a_step_that_is_reported_keeps_all_its_spans))
