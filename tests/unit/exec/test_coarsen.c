/* Pins: a segment that nothing can disturb runs in one piece, and one that something could does
 * not. By hand: the worked example of exec/shortcuts/coarsen.c, what the host does meanwhile, how far it was
 * ahead, and what keeps a segment from it: copies, receives, links that others load, streams that
 * the host or a kernel waits for, ranks that are a step behind. Each job is also run op by op and
 * must come out the same: times, issue times, causes, bytes, digest (--coarsen check). */
#include "ls_test.h"

#include "hand_trace.h"

#include "exec/extras.h"

#define ENOUGH 1100 /* kernels: more than the host looks ahead */

static void
kernels (Hand *h, uint32_t rank, uint32_t n, LsTime duration)
{
  for (uint32_t i = 0; i < n; i++)
    hand_kernel (h, rank, LS_TAG_F, duration);
}

/* One that nothing waits for before it but what it says. */
static uint16_t
op_on (Hand *h, uint32_t rank, LsOpKind kind, LsStream stream, LsTime duration, LsStream after)
{
  LsOp op = ls_op_blank (kind, stream, LS_TAG_SYNC, "besides");
  LsDep dep = { LS_DEP_STREAM, (uint16_t) after };
  op.recorded = duration;
  return hand_op (h, rank, op, &dep, after == LS_N_STREAMS ? 0 : 1);
}

/* Frees the job. */
static void
check_pieces (Hand *h, uint64_t n_coarse)
{
  g_autoptr (LsTimeline) t = hand_run (h);
  if (t)
    LS_CHECK_INT (t->n_coarse, ==, n_coarse);
  hand_free (h);
}

/* The i-th span of an instance of the first step. */
static const LsSpan *
span_of (const LsTimeline *t, uint32_t instance, uint32_t i)
{
  for (uint32_t s = 0; s < t->ranks[0].n; s++)
    if (t->ranks[0].spans[s].step == 0 && t->ranks[0].spans[s].instance == instance && i-- == 0)
      return &t->ranks[0].spans[s];
  static const LsSpan none;
  LS_CHECK (!"there is such a span");
  return &none;
}

/* --- in one piece ----------------------------------------------------------------- */

/* A forward of 10 us behind a kernel of 50, then behind one that the host waits for: twice each. */
static void
the_worked_example (void)
{
  Hand *h = hand_coarse_new (1);
  h->options.host.cost[LS_HOST_LAUNCH] = LS_US;
  kernels (h, 0, 10, LS_US);
  hand_next_segment (h, 0);
  kernels (h, 0, 1, 50 * LS_US);
  hand_next_segment (h, 0);
  hand_host_sync (h, 0, hand_kernel (h, 0, LS_TAG_F, 10 * LS_US));
  hand_next_segment (h, 0);
  kernels (h, 0, ENOUGH, LS_NS);
  const uint32_t order[] = { 1, 0, 1, 0, 2, 0, 2, 0, 3 };
  for (guint i = 0; i < G_N_ELEMENTS (order); i++)
    hand_then (h, 0, order[i], 1);
  g_autoptr (LsTimeline) t = hand_run (h);
  const LsTime begin_us[] = { 51, 111, 132, 153 }; /* 1 + 50; 61 + 50; 121 + 10 + 1; 142 + 10 + 1 */
  for (uint32_t i = 0; t && i < 4; i++) {
    LS_CHECK_INT (span_of (t, 2 * i + 1, 0)->start, ==, begin_us[i] * LS_US);
    LS_CHECK_INT (span_of (t, 2 * i + 1, 9)->end, ==, (begin_us[i] + 10) * LS_US);
    LS_CHECK_INT (span_of (t, 2 * i + 1, 0)->cause_kind, ==, i < 2 ? LS_CAUSE_STREAM : LS_CAUSE_HOST);
    LS_CHECK_INT (span_of (t, 2 * i + 1, 9)->cause_kind, ==, LS_CAUSE_STREAM);
  }
  if (t)
    LS_CHECK_INT (t->n_coarse, ==, 2); /* the second of each */
  hand_free (h);
}

/* Of 12 times 200 kernels 1,200 fit at first; the ninth 200 are issued when the 577th kernel ends,
 * in the middle of a piece. */
static void
the_launch_queue_is_full_meanwhile (void)
{
  Hand *h = hand_coarse_new (1);
  h->options.host.cost[LS_HOST_LAUNCH] = LS_US;
  kernels (h, 0, 200, 10 * LS_US);
  hand_then (h, 0, 0, 12);
  g_autoptr (LsTimeline) t = hand_run (h);
  if (t) {
    LS_CHECK_INT (span_of (t, 8, 0)->issued, ==, (1 + 5770 + 1) * LS_US);
    LS_CHECK_INT (t->n_coarse, ==, 10); /* but the first, which is idle before, and the second */
  }
  hand_free (h);
}

/* The host issues every 3 us: of the four kernels behind one of 8 us it is ahead by 5, and the
 * third and fourth wait for it. */
static void
a_host_that_is_ahead_by_as_much (void)
{
  Hand *h = hand_coarse_new (1);
  h->options.host.cost[LS_HOST_LAUNCH] = 3 * LS_US;
  kernels (h, 0, 4, LS_US);
  hand_next_segment (h, 0);
  kernels (h, 0, 1, 8 * LS_US);
  hand_next_segment (h, 0);
  kernels (h, 0, ENOUGH, LS_NS);
  for (int i = 0; i < 3; i++) {
    hand_then (h, 0, 1, 1);
    hand_then (h, 0, 0, 1);
  }
  hand_then (h, 0, 2, 1);
  g_autoptr (LsTimeline) t = hand_run (h);
  for (uint32_t i = 0; t && i < 3; i++) {
    LS_CHECK_INT (span_of (t, 2 * i + 1, 0)->start, ==, (11 + 15 * i) * LS_US);
    LS_CHECK_INT (span_of (t, 2 * i + 1, 3)->start, ==, (15 + 15 * i) * LS_US);
    LS_CHECK_INT (span_of (t, 2 * i + 1, 3)->cause_kind, ==, LS_CAUSE_HOST);
  }
  if (t)
    LS_CHECK_INT (t->n_coarse, ==, 4);
  hand_free (h);
}

/* It gains 4 us on every four kernels: each is another beginning, until it is ahead of all four. */
static void
a_host_that_gets_ahead (void)
{
  Hand *h = hand_coarse_new (1);
  h->options.host.cost[LS_HOST_LAUNCH] = 9 * LS_US;
  kernels (h, 0, 4, 10 * LS_US);
  hand_then (h, 0, 0, 600);
  check_pieces (h, 600 - 1 - 6 - 1); /* idle; ahead by 1 + 4 k < 27 us, k = 1 .. 6; by more */
}

/* Beside a collective of its own, which holds SMs of what runs beside, over a link that others
 * load too, but not without it. */
static Hand *
with_collectives (void)
{
  Hand *h = hand_coarse_new (4);
  for (uint32_t r = 0; r < 4; r++)
    h->plan->bindings[r].role = 0;
  hand_comm (h, LS_SLOT_TP, LS_AXIS_TP, false, (const uint32_t[]) { 0, 1 }, 2);
  hand_comm (h, LS_SLOT_TP, LS_AXIS_TP, false, (const uint32_t[]) { 2, 3 }, 2);
  h->options.fold = LS_SHORTCUT_CHECK;
  hand_kernel (h, 0, LS_TAG_F, 10 * LS_US);
  uint16_t all_reduce = hand_async (h, 0, LS_SLOT_TP, LS_STREAM_TP, LS_COLL_ALL_REDUCE, 1 << 20);
  kernels (h, 0, 2, 8 * LS_US);
  hand_join (h, 0, all_reduce);
  hand_kernel (h, 0, LS_TAG_F, 10 * LS_US);
  hand_next_segment (h, 0);
  kernels (h, 0, ENOUGH, LS_NS);
  hand_then (h, 0, 0, 4);
  hand_then (h, 0, 1, 1);
  return h;
}

static void
collectives_of_one_class (void)
{
  check_pieces (with_collectives (), 2); /* the first begins as everything does: unlike the others */
  Hand *h = with_collectives ();
  h->options.host.cost[LS_HOST_COMM] = 100 * LS_US;
  check_pieces (h, 2); /* the host is always ahead by as much */
  h = with_collectives ();
  h->options.network = LS_NETWORK_ALPHABETA;
  check_pieces (h, 2);
  h = with_collectives ();
  h->options.fold = LS_SHORTCUT_OFF; /* two ranks each: who knows when the other comes */
  check_pieces (h, 0);
}

/* --- not in one piece --------------------------------------------------------------- */

/* Three times the same behind a kernel that keeps the stream busy, then a segment to be written. */
static Hand *
three_and (uint32_t n_ranks)
{
  Hand *h = hand_coarse_new (n_ranks);
  kernels (h, 0, 10, LS_US);
  hand_next_segment (h, 0);
  kernels (h, 0, 1, 50 * LS_US);
  hand_next_segment (h, 0);
  kernels (h, 0, ENOUGH, LS_NS);
  hand_next_segment (h, 0);
  hand_then (h, 0, 1, 1);
  hand_then (h, 0, 0, 3);
  hand_then (h, 0, 3, 1);
  hand_then (h, 0, 2, 1);
  hand_kernel (h, 0, LS_TAG_F, LS_US);
  return h;
}

static void
a_copy_could_start_meanwhile (void)
{
  Hand *h = three_and (1);
  op_on (h, 0, LS_OP_COPY, LS_STREAM_COPY, LS_US, LS_STREAM_COMPUTE);
  check_pieces (h, 2); /* it cannot: it follows the kernels */
  h = three_and (1);
  op_on (h, 0, LS_OP_COPY, LS_STREAM_COPY, LS_US, LS_N_STREAMS);
  check_pieces (h, 0);
  h = three_and (1);
  hand_copy (h, 0, LS_COPY_TO_HOST, 1 << 20);
  check_pieces (h, 0);
}

static void
a_kernel_of_another_stream_could_start_meanwhile (void)
{
  Hand *h = three_and (1);
  op_on (h, 0, LS_OP_KERNEL, LS_STREAM_GATHER, LS_US, LS_N_STREAMS);
  check_pieces (h, 0);
  h = three_and (1);
  op_on (h, 0, LS_OP_KERNEL, LS_STREAM_GATHER, LS_US, LS_STREAM_COPY); /* nor is that the compute stream */
  check_pieces (h, 0);
}

static void
a_receive_could_start_meanwhile (void)
{
  for (int follows = 0; follows < 2; follows++) {
    Hand *h = three_and (2);
    LsTransfer *receive = ls_arena_new_array (h->plan->arena, LsTransfer, 1);
    *receive = (LsTransfer) { 1 << 20, LS_SLOT_PREV, false };
    LsOp op = ls_op_blank (LS_OP_P2P, LS_STREAM_PP_FWD_RECV, LS_TAG_SYNC, "receive");
    op.transfers = receive;
    op.n_transfers = 1;
    LsDep compute = { LS_DEP_STREAM, LS_STREAM_COMPUTE };
    hand_op (h, 0, op, &compute, follows ? 1 : 0);
    hand_p2p (h, 1, LS_SLOT_NEXT, true, 1 << 20);
    check_pieces (h, follows ? 2 : 0);
  }
}

/* Two classes with a communicator each, from node to node; their GPUs share a NIC, or do not. */
static void
others_load_the_same_link (void)
{
  for (uint32_t gpu = 1; gpu <= 4; gpu += 3) {
    Hand *h = hand_coarse_new (4);
    LsClusterSpec spec = tiny_pcie (2);
    ls_cluster_free (h->cluster);
    h->cluster = ls_cluster_build (&spec, NULL);
    h->options.fold = LS_SHORTCUT_CHECK;
    for (uint32_t r = 0; r < 4; r++) {
      h->plan->bindings[r].role = r / 2;
      ls_plan_gpus (h->plan)[r] = r / 2 * gpu + r % 2 * 8;
    }
    for (uint32_t pair = 0; pair < 2; pair++) {
      hand_comm (h, LS_SLOT_TP, LS_AXIS_TP, false, (const uint32_t[]) { 2 * pair, 2 * pair + 1 }, 2);
      hand_kernel (h, pair, LS_TAG_F, (10 + 3 * pair) * LS_US);
      hand_sync (h, pair, LS_SLOT_TP, LS_STREAM_TP, LS_COLL_ALL_REDUCE, 1 << 20);
      hand_kernel (h, pair, LS_TAG_F, 10 * LS_US);
      hand_next_segment (h, pair);
      kernels (h, pair, ENOUGH, LS_NS);
      hand_then (h, pair, 0, 4);
      hand_then (h, pair, 1, 1);
    }
    check_pieces (h, gpu == 4 ? 4 : 0);
  }
}

/* Kernels that wait for a copy of before, which ends now sooner, now later. */
static void
a_stream_of_before_that_is_not_over (void)
{
  Hand *h = hand_coarse_new (1);
  h->options.no_spans = true; /* causes would tell */
  op_on (h, 0, LS_OP_KERNEL, LS_STREAM_COMPUTE, LS_US, LS_STREAM_COPY);
  kernels (h, 0, 9, LS_US);
  for (int i = 0; i < 2; i++) {
    hand_next_segment (h, 0);
    hand_kernel (h, 0, LS_TAG_F, 5 * LS_US);
    op_on (h, 0, LS_OP_COPY, LS_STREAM_COPY, (30 + 20 * i) * LS_US, LS_STREAM_COMPUTE);
  }
  hand_next_segment (h, 0);
  kernels (h, 0, ENOUGH, LS_NS);
  const uint32_t order[] = { 1, 0, 2, 0, 3 };
  for (guint i = 0; i < G_N_ELEMENTS (order); i++)
    hand_then (h, 0, order[i], 1);
  check_pieces (h, 0);
}

/* Behind 300 kernels the host waits for the second of them only, goes on, and finds the launch
 * queue full while they run. */
static void
a_host_that_goes_on_meanwhile (void)
{
  Hand *h = hand_coarse_new (1);
  h->options.host.cost[LS_HOST_LAUNCH] = LS_NS;
  hand_kernel (h, 0, LS_TAG_F, LS_US);
  op_on (h, 0, LS_OP_KERNEL, LS_STREAM_TP, LS_US, LS_STREAM_COMPUTE);
  kernels (h, 0, 300, LS_US);
  hand_next_segment (h, 0);
  LsOp sync = ls_op_blank (LS_OP_HOST_SYNC, LS_STREAM_COMPUTE, LS_TAG_SYNC, "host sync");
  LsDep tp = { LS_DEP_STREAM, LS_STREAM_TP };
  hand_op (h, 0, sync, &tp, 1);
  hand_kernel (h, 0, LS_TAG_F, LS_US);
  hand_next_segment (h, 0);
  kernels (h, 0, 20, LS_US);
  for (int i = 0; i < 3; i++) {
    hand_then (h, 0, 0, 1);
    hand_then (h, 0, 1, 1);
    hand_then (h, 0, 2, 60);
  }
  g_autoptr (LsTimeline) t = hand_run (h);
  if (t)
    LS_CHECK (t->n_coarse > 10); /* of those far enough from the next wait there are some */
  hand_free (h);
}

/* Its host may not begin step 2 before the other rank, of which nothing is known yet, has ended
 * step 0: it is stopped in the middle of what would be a piece. */
static void
a_rank_that_is_a_step_ahead (void)
{
  Hand *h = hand_coarse_new (2);
  h->options.n_steps = 3;
  h->options.host.cost[LS_HOST_LAUNCH] = LS_NS;
  for (uint32_t r = 0; r < 2; r++) {
    kernels (h, r, 20, LS_US);
    hand_next_segment (h, r);
    kernels (h, r, 500, LS_US);
    hand_then (h, r, 0, 25);
    hand_then (h, r, 1, 3);
  }
  g_autoptr (LsTimeline) t = hand_run (h);
  if (t)
    LS_CHECK (t->n_coarse > 60);
  hand_free (h);
}

/* --- the comparison -------------------------------------------------------------------- */

static void
expect_difference (const LsTimeline *pieces, const LsTimeline *by_op, const LsCluster *cluster,
                   const char *word)
{
  g_autoptr (GError) error = NULL;
  LS_CHECK (!fold_check (pieces, by_op, cluster, "in pieces and op by op", &error));
  LS_CHECK (error && strstr (error->message, word));
}

/* What a piece has left behind is changed by the least there is, and back. */
static void
the_comparison_notices (void)
{
  Hand *h = three_and (1);
  h->options.coarsen = LS_SHORTCUT_AUTO;
  g_autoptr (LsTimeline) pieces = hand_run (h);
  h->options.coarsen = LS_SHORTCUT_OFF;
  g_autoptr (LsTimeline) by_op = hand_run (h);
  g_autoptr (GError) error = NULL;
  if (!pieces || !by_op)
    return;
  LS_CHECK_INT (pieces->n_coarse, ==, 2);
  LS_CHECK_INT (by_op->n_coarse, ==, 0);
  LS_CHECK (fold_check (pieces, by_op, h->cluster, "in pieces and op by op", &error));
  pieces->window_end++;
  expect_difference (pieces, by_op, h->cluster, "differ in the duration of the step: ");
  pieces->window_end--;
  LsSpan *span = (LsSpan *) span_of (pieces, 3, 4); /* of the third, so of a piece */
  span->issued++;
  expect_difference (pieces, by_op, h->cluster,
                     "in pieces and op by op differ in the issue of kernel (step 0, instance 3, op 4)");
  span->issued--;
  span->cause--;
  expect_difference (pieces, by_op, h->cluster, "cause");
  span->cause++;
  span->end++;
  expect_difference (pieces, by_op, h->cluster, "end");
  span->end--;
  LS_CHECK (fold_check (pieces, by_op, h->cluster, "in pieces and op by op", &error));
  hand_free (h);
}

LS_TEST_SUITE (LS_TEST (the_worked_example), LS_TEST (the_launch_queue_is_full_meanwhile),
               LS_TEST (a_host_that_is_ahead_by_as_much), LS_TEST (a_host_that_gets_ahead),
               LS_TEST (collectives_of_one_class), LS_TEST (a_copy_could_start_meanwhile),
               LS_TEST (a_kernel_of_another_stream_could_start_meanwhile),
               LS_TEST (a_receive_could_start_meanwhile), LS_TEST (others_load_the_same_link),
               LS_TEST (a_stream_of_before_that_is_not_over), LS_TEST (a_host_that_goes_on_meanwhile),
               LS_TEST (a_rank_that_is_a_step_ahead), LS_TEST (the_comparison_notices))
