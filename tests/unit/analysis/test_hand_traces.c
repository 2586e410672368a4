/* Pins the explanation of small steps by hand: the breakdown, and the reasons of bubbles. */
#include "ls_test.h"
#include "hand_trace.h"

#include "analysis/report.h"

/* Pins each key of the breakdown to the picosecond on jobs of two to four ranks,
 * run by the engine: what the clock does and how it is explained. Each case
 * derives its numbers in its comment; T is the time of the communication alone. */

#define US LS_US
#define MB (UINT64_C (1) << 20)

static const uint32_t pair[] = { 0, 1 }, quad[] = { 0, 1, 2, 3 };

/* All parts but those listed are zero, and they sum to the window. */
static void
check_parts (const LsTimeline *t, uint32_t rank, const LsTime *expected)
{
  LsTime parts[LS_N_PARTS], sum = 0;
  ls_breakdown_rank (t, rank, parts);
  for (int p = 0; p < LS_N_PARTS; p++) {
    ls_check_impl (parts[p] == expected[p], __FILE__, __LINE__,
                   "rank %u %s: %" G_GINT64_FORMAT " ps, expected %" G_GINT64_FORMAT, rank,
                   ls_part_name ((LsPart) p), parts[p], expected[p]);
    sum += parts[p];
  }
  LS_CHECK_INT (sum, ==, t->window_end - t->window_start);
}
#define PARTS(...) ((const LsTime[LS_N_PARTS]) { __VA_ARGS__ })

/* Both compute 10 us, reduce for T, compute 5 us: T is exposed on the axis. */
static void
exposed_on (LsSlot slot, LsAxis axis, LsPart part)
{
  Hand *h = hand_new (2);
  hand_comm (h, slot, axis, false, pair, 2);
  for (uint32_t r = 0; r < 2; r++) {
    hand_kernel (h, r, LS_TAG_F, 10 * US);
    hand_sync (h, r, slot, LS_STREAM_TP, LS_COLL_ALL_REDUCE, 8 * MB);
    hand_kernel (h, r, LS_TAG_B, 5 * US);
  }
  LsTime comm = hand_coll_time (h, LS_COLL_ALL_REDUCE, 8 * MB, pair, 2);
  g_autoptr (LsTimeline) t = hand_run (h);
  LS_CHECK_INT (t->window_end, ==, 15 * US + comm);
  LsTime expected[LS_N_PARTS] = { [LS_PART_FORWARD] = 10 * US, [LS_PART_BACKWARD] = 5 * US };
  expected[part] = comm;
  check_parts (t, 0, expected);
  check_parts (t, 1, expected);
  hand_free (h);
}

static void
exposed_communication_belongs_to_its_axis (void)
{
  exposed_on (LS_SLOT_TP, LS_AXIS_TP, LS_PART_EXPOSED_TP);
  exposed_on (LS_SLOT_DP, LS_AXIS_DP, LS_PART_EXPOSED_DP);
  exposed_on (LS_SLOT_CP, LS_AXIS_CP, LS_PART_EXPOSED_CP);
  exposed_on (LS_SLOT_EP, LS_AXIS_EP, LS_PART_EXPOSED_EP);
}

/* Rank 1 is 7 us late: rank 0 waits 7 us (skew, or bubble where the communicator
 * spans stages), then both move for T. */
static void
late_peer (bool spans_stages, LsPart waiting, LsPart moving)
{
  Hand *h = hand_new (2);
  hand_comm (h, LS_SLOT_MODEL, spans_stages ? LS_AXIS_PP : LS_AXIS_TP, spans_stages, pair, 2);
  for (uint32_t r = 0; r < 2; r++) {
    hand_kernel (h, r, LS_TAG_F, (10 + 7 * r) * US);
    hand_sync (h, r, LS_SLOT_MODEL, LS_STREAM_GLOBAL, LS_COLL_ALL_REDUCE, MB);
    hand_kernel (h, r, LS_TAG_OPTIMIZER, US);
  }
  LsTime comm = hand_coll_time (h, LS_COLL_ALL_REDUCE, MB, pair, 2);
  g_autoptr (LsTimeline) t = hand_run (h);
  LsTime early[LS_N_PARTS] = { [LS_PART_FORWARD] = 10 * US, [LS_PART_OPTIMIZER] = US };
  LsTime late[LS_N_PARTS] = { [LS_PART_FORWARD] = 17 * US, [LS_PART_OPTIMIZER] = US };
  early[waiting] = 7 * US;
  early[moving] = late[moving] = comm;
  check_parts (t, 0, early);
  check_parts (t, 1, late);
  hand_free (h);
}

static void
waiting_for_a_late_peer_is_skew_or_bubble (void)
{
  late_peer (false, LS_PART_SKEW, LS_PART_EXPOSED_TP);
  late_peer (true, LS_PART_BUBBLE, LS_PART_EXPOSED_PP);
}

/* Rank 1 receives what rank 0 sends after 10 us: bubble until then, T exposed.
 * Rank 0 has nothing left: its tail, until rank 1 is done, is not explained by any
 * op and has no next step to wait in: it begins the next step instead. */
static void
p2p_wait_is_bubble (void)
{
  Hand *h = hand_new (2);
  hand_kernel (h, 0, LS_TAG_F, 10 * US);
  hand_p2p (h, 0, LS_SLOT_NEXT, true, 4 * MB);
  hand_join (h, 1, hand_p2p (h, 1, LS_SLOT_PREV, false, 4 * MB));
  hand_kernel (h, 1, LS_TAG_F, 3 * US);
  LsTime comm = hand_coll_time (h, LS_COLL_SEND_RECV, 4 * MB, pair, 2);
  g_autoptr (LsTimeline) t = hand_run (h);
  LS_CHECK_INT (t->window_end, ==, 10 * US + comm + 3 * US);
  check_parts (t, 1,
               PARTS ([LS_PART_FORWARD] = 3 * US, [LS_PART_BUBBLE] = 10 * US, [LS_PART_EXPOSED_PP] = comm));
  hand_free (h);
}

/* Each launch costs the host 4 us, each kernel runs 1 us: 4, 1+3, 1+3, ... The
 * first two microseconds of each gap are the host's. */
static void
slow_launches_are_host_time (void)
{
  Hand *h = hand_new (1);
  h->options.host.cost[LS_HOST_LAUNCH] = 4 * US;
  for (int i = 0; i < 3; i++)
    hand_kernel (h, 0, LS_TAG_F, US);
  g_autoptr (LsTimeline) t = hand_run (h);
  LS_CHECK_INT (t->window_end, ==, 13 * US);
  check_parts (t, 0, PARTS ([LS_PART_FORWARD] = 3 * US, [LS_PART_HOST] = 10 * US));
  hand_free (h);
}

/* The host waits for a receive (rank 0 sends at 10 us), pays 2 us for the sync and
 * 3 us for the launch: bubble 10, exposed T, host 5. */
static void
host_sync_hands_its_wait_to_what_it_waited_for (void)
{
  Hand *h = hand_new (2);
  h->options.host.cost[LS_HOST_SYNC] = 2 * US;
  hand_kernel (h, 0, LS_TAG_F, 10 * US);
  hand_p2p (h, 0, LS_SLOT_NEXT, true, MB);
  hand_host_sync (h, 1, hand_p2p (h, 1, LS_SLOT_PREV, false, MB));
  LsOp delay = ls_op_blank (LS_OP_HOST_DELAY, LS_STREAM_COMPUTE, LS_TAG_SYNC, "python");
  delay.recorded = 3 * US;
  hand_op (h, 1, delay, NULL, 0);
  hand_kernel (h, 1, LS_TAG_F, US);
  LsTime comm = hand_coll_time (h, LS_COLL_SEND_RECV, MB, pair, 2);
  g_autoptr (LsTimeline) t = hand_run (h);
  check_parts (t, 1,
               PARTS ([LS_PART_FORWARD] = US, [LS_PART_BUBBLE] = 10 * US, [LS_PART_EXPOSED_PP] = comm,
                      [LS_PART_HOST] = 5 * US));
  hand_free (h);
}

/* A collective of 8 channels holds 8/32 of the SMs from launch to end. A compute
 * kernel of 90 us beside it runs at 3/4: by the time T that the collective ends it
 * has done 3/4 T; the rest runs alone. It ends at 90 us + T/4: that is slowdown. */
static void
residency_slows_the_kernel_beside_it (void)
{
  Hand *h = hand_new (2);
  hand_comm (h, LS_SLOT_DP, LS_AXIS_DP, false, pair, 2);
  for (uint32_t r = 0; r < 2; r++) {
    hand_async (h, r, LS_SLOT_DP, LS_STREAM_DP, LS_COLL_ALL_REDUCE, 8 * MB);
    hand_kernel (h, r, LS_TAG_B, 90 * US);
  }
  LsTime comm = hand_coll_time (h, LS_COLL_ALL_REDUCE, 8 * MB, pair, 2);
  LS_CHECK_INT (comm, <, 90 * US);
  g_autoptr (LsTimeline) t = hand_run (h);
  LsTime end = t->window_end;
  LS_CHECK_INT (ABS (end - (90 * US + comm / 4)), <=, 2); /* rates are doubles: rounded up once */
  check_parts (t, 0, PARTS ([LS_PART_BACKWARD] = 90 * US, [LS_PART_SLOWDOWN] = end - 90 * US));
  hand_free (h);
}

/* The wait for a late partner holds SMs too: rank 0 launches at 0, rank 1 at 40 us;
 * rank 0's kernel of 30 us runs at 3/4 all the way: 40 us. */
static void
waiting_holds_sms_too (void)
{
  Hand *h = hand_new (2);
  hand_comm (h, LS_SLOT_DP, LS_AXIS_DP, false, pair, 2);
  hand_kernel (h, 1, LS_TAG_F, 40 * US);
  for (uint32_t r = 0; r < 2; r++)
    hand_async (h, r, LS_SLOT_DP, LS_STREAM_DP, LS_COLL_ALL_REDUCE, 8 * MB);
  hand_kernel (h, 0, LS_TAG_B, 30 * US);
  g_autoptr (LsTimeline) t = hand_run (h);
  const LsSpan *kernel = NULL;
  for (uint32_t i = 0; i < t->ranks[0].n && !kernel; i++)
    if (ls_span_op (t, 0, &t->ranks[0].spans[i])->tag == LS_TAG_B)
      kernel = &t->ranks[0].spans[i];
  if (LS_CHECK (kernel != NULL)) {
    LS_CHECK_INT (kernel->alone, ==, 30 * US);
    LS_CHECK_INT (kernel->end - kernel->start, ==, 40 * US);
  }
  hand_free (h);
}

/* Four ranks, two collectives back to back on one communicator: the wait for the
 * second, launched but queued behind the first, belongs to the first. */
static void
queued_calls_are_charged_to_what_is_ahead (void)
{
  Hand *h = hand_new (4);
  hand_comm (h, LS_SLOT_TP, LS_AXIS_TP, false, quad, 4);
  for (uint32_t r = 0; r < 4; r++) {
    hand_kernel (h, r, LS_TAG_F, (r == 3 ? 9 : 4) * US);
    hand_async (h, r, LS_SLOT_TP, LS_STREAM_TP, LS_COLL_ALL_REDUCE, 4 * MB);
    hand_sync (h, r, LS_SLOT_TP, LS_STREAM_TP, LS_COLL_ALL_GATHER, 2 * MB);
    hand_kernel (h, r, LS_TAG_F, US);
  }
  LsTime first = hand_coll_time (h, LS_COLL_ALL_REDUCE, 4 * MB, quad, 4);
  LsTime second = hand_coll_time (h, LS_COLL_ALL_GATHER, 2 * MB, quad, 4);
  g_autoptr (LsTimeline) t = hand_run (h);
  LS_CHECK_INT (t->window_end, ==, 10 * US + first + second);
  check_parts (
      t, 0,
      PARTS ([LS_PART_FORWARD] = 5 * US, [LS_PART_SKEW] = 5 * US, [LS_PART_EXPOSED_TP] = first + second));
  check_parts (t, 3, PARTS ([LS_PART_FORWARD] = 10 * US, [LS_PART_EXPOSED_TP] = first + second));
  hand_free (h);
}

static void
tags_go_to_their_parts (void)
{
  Hand *h = hand_new (1);
  hand_kernel (h, 0, LS_TAG_F, 1 * US);
  hand_kernel (h, 0, LS_TAG_I, 2 * US);
  hand_kernel (h, 0, LS_TAG_W, 3 * US);
  hand_kernel (h, 0, LS_TAG_RECOMPUTE, 5 * US);
  hand_kernel (h, 0, LS_TAG_OPTIMIZER, 7 * US);
  g_autoptr (LsTimeline) t = hand_run (h);
  check_parts (t, 0,
               PARTS ([LS_PART_FORWARD] = US, [LS_PART_BACKWARD] = 5 * US, [LS_PART_RECOMPUTE] = 5 * US,
                      [LS_PART_OPTIMIZER] = 7 * US));
  hand_free (h);
}

/* Pins which reason a bubble has: where in the step the kernel stands that ended it, what it
 * was spent on, and how much the rank computes less than the busiest. By hand, in ps:
 *
 *     rank 0   F 0-10 | recv, matched 14, over 15 | B 15-25 | recv, 28, 29 | F 29-35 | recv, 40, 41 |
 *              B 41-50 | norm, 57, 58 | optimizer 58-60            computes 35
 *     rank 1   F 0-37 | optimizer 37-60                            computes 37
 */

enum { FORWARD, BACKWARD, RECEIVE, NORM, OPTIMIZER, N_SEGMENTS };

typedef struct {
  LsOp ops[N_SEGMENTS];
  LsSegment segments[N_SEGMENTS];
  LsInstance instances[9];
  LsProgram program;
  LsCommunicator comm;
  LsBinding bindings[2];
  LsPlan plan;
  LsRankSpans ranks[2];
  uint32_t multiplicity[2];
  LsTimeline t;
} BubbleHand;

static const LsSpan rank_0[] = {
  { .start = 0, .matched = 10, .end = 10, .instance = 0, .cause = LS_SPAN_NONE },
  { .start = 10, .matched = 14, .end = 15, .instance = 1, .cause = 0, .cause_kind = LS_CAUSE_DEP },
  { .start = 15, .matched = 10, .end = 25, .instance = 2, .cause = 1, .cause_kind = LS_CAUSE_DEP },
  { .start = 25, .matched = 28, .end = 29, .instance = 3, .cause = 2, .cause_kind = LS_CAUSE_DEP },
  { .start = 29, .matched = 6, .end = 35, .instance = 4, .cause = 3, .cause_kind = LS_CAUSE_DEP },
  { .start = 35, .matched = 40, .end = 41, .instance = 5, .cause = 4, .cause_kind = LS_CAUSE_DEP },
  { .start = 41, .matched = 9, .end = 50, .instance = 6, .cause = 5, .cause_kind = LS_CAUSE_DEP },
  { .start = 50, .matched = 57, .end = 58, .instance = 7, .cause = 6, .cause_kind = LS_CAUSE_DEP },
  { .start = 58, .matched = 2, .end = 60, .instance = 8, .cause = 7, .cause_kind = LS_CAUSE_DEP },
};

static const LsSpan rank_1[] = {
  { .start = 0, .matched = 37, .end = 37, .instance = 0, .cause = LS_SPAN_NONE },
  { .start = 37, .matched = 23, .end = 60, .instance = 8, .cause = 0, .cause_kind = LS_CAUSE_STREAM },
};

static void
hand_init (BubbleHand *h)
{
  static const int order[9]
      = { FORWARD, RECEIVE, BACKWARD, RECEIVE, FORWARD, RECEIVE, BACKWARD, NORM, OPTIMIZER };
  *h = (BubbleHand) { .multiplicity = { 1, 1 } };
  h->ops[FORWARD] = (LsOp) { .kind = LS_OP_KERNEL, .tag = LS_TAG_F };
  h->ops[BACKWARD] = (LsOp) { .kind = LS_OP_KERNEL, .tag = LS_TAG_B };
  h->ops[RECEIVE] = (LsOp) { .kind = LS_OP_P2P, .stream = LS_STREAM_PP_FWD, .tag = LS_TAG_SYNC };
  h->ops[NORM] = (LsOp) {
    .kind = LS_OP_COLLECTIVE, .stream = LS_STREAM_GLOBAL, .tag = LS_TAG_SYNC, .slot = LS_SLOT_MODEL
  };
  h->ops[OPTIMIZER] = (LsOp) { .kind = LS_OP_KERNEL, .tag = LS_TAG_OPTIMIZER };
  for (int s = 0; s < N_SEGMENTS; s++)
    h->segments[s] = (LsSegment) { .n_ops = 1, .ops = &h->ops[s] };
  for (int i = 0; i < 9; i++)
    h->instances[i].segment = (uint32_t) order[i];
  h->program = (LsProgram) { .n_instances = 9, .instances = h->instances };
  h->comm = (LsCommunicator) { .axis = LS_AXIS_PP, .spans_stages = true };
  h->plan = (LsPlan) { .n_ranks = 2,
                       .n_segments = N_SEGMENTS,
                       .segments = h->segments,
                       .n_roles = 1,
                       .programs = &h->program,
                       .n_comms = 1,
                       .comms = &h->comm,
                       .bindings = h->bindings };
  h->ranks[0]
      = (LsRankSpans) { .n = G_N_ELEMENTS (rank_0), .spans = (LsSpan *) rank_0, .tail_cause = LS_SPAN_NONE };
  h->ranks[1]
      = (LsRankSpans) { .n = G_N_ELEMENTS (rank_1), .spans = (LsSpan *) rank_1, .tail_cause = LS_SPAN_NONE };
  h->t = (LsTimeline) { .plan = &h->plan,
                        .n_ranks = 2,
                        .n_rows = 2,
                        .ranks = h->ranks,
                        .multiplicity = h->multiplicity,
                        .window_end = 60 };
}

static void
check (const LsTimeline *t, const LsTime expected[LS_N_BUBBLES])
{
  LsTime parts[LS_N_PARTS], bubbles[LS_N_BUBBLES];
  ls_breakdown (t, parts, bubbles);
  for (int b = 0; b < LS_N_BUBBLES; b++)
    ls_check_impl (bubbles[b] == expected[b], __FILE__, __LINE__,
                   "bubble %d is %" G_GINT64_FORMAT ", not %" G_GINT64_FORMAT, b, bubbles[b], expected[b]);
}

/* 35 of 37: 2 of the 3 that rank 0 waits in its steady state are imbalance. */
static void
each_wait_has_its_reason (void)
{
  BubbleHand h;
  hand_init (&h);
  check (&h.t, (const LsTime[LS_N_BUBBLES]) { 4, 1, 2, 5, 7 });
}

static void
even_ranks_have_no_imbalance (void)
{
  BubbleHand h;
  hand_init (&h);
  h.multiplicity[0] = 2;
  h.multiplicity[1] = 0;
  check (&h.t, (const LsTime[LS_N_BUBBLES]) { 8, 6, 0, 10, 14 });
}

/* The window ends before the optimizer begins, and in another cut inside the second receive. */
static void
what_the_window_cuts_off_keeps_its_reason (void)
{
  BubbleHand h;
  hand_init (&h);
  h.multiplicity[1] = 0;
  h.t.window_end = 55;
  h.ranks[0].n = 8;
  h.ranks[0].tail_cause = 7;
  h.ranks[0].tail_cause_kind = LS_CAUSE_DEP;
  check (&h.t, (const LsTime[LS_N_BUBBLES]) { 4, 3, 0, 5, 5 });
  h.t.window_end = 27;
  h.ranks[0].n = 4;
  h.ranks[0].tail_cause = 3;
  check (&h.t, (const LsTime[LS_N_BUBBLES]) { 4, 2, 0, 0, 0 });
}

LS_TEST_SUITE (LS_TEST (exposed_communication_belongs_to_its_axis),
               LS_TEST (waiting_for_a_late_peer_is_skew_or_bubble), LS_TEST (p2p_wait_is_bubble),
               LS_TEST (slow_launches_are_host_time),
               LS_TEST (host_sync_hands_its_wait_to_what_it_waited_for),
               LS_TEST (residency_slows_the_kernel_beside_it), LS_TEST (waiting_holds_sms_too),
               LS_TEST (queued_calls_are_charged_to_what_is_ahead), LS_TEST (tags_go_to_their_parts),
               LS_TEST (each_wait_has_its_reason), LS_TEST (even_ranks_have_no_imbalance),
               LS_TEST (what_the_window_cuts_off_keeps_its_reason))
