/* Pins which reason a bubble has: where in the step the kernel stands that ended it, what it
 * was spent on, and how much the rank computes less than the busiest. By hand, in ps:
 *
 *     rank 0   F 0-10 | recv, matched 14, over 15 | B 15-25 | recv, 28, 29 | F 29-35 | recv, 40, 41 |
 *              B 41-50 | norm, 57, 58 | optimizer 58-60            computes 35
 *     rank 1   F 0-37 | optimizer 37-60                            computes 37
 */
#include "ls_test.h"

#include "analysis/report.h"

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
} Hand;

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
hand_init (Hand *h)
{
  static const int order[9]
      = { FORWARD, RECEIVE, BACKWARD, RECEIVE, FORWARD, RECEIVE, BACKWARD, NORM, OPTIMIZER };
  *h = (Hand) { .multiplicity = { 1, 1 } };
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
  h->t = (LsTimeline) {
    .plan = &h->plan, .n_ranks = 2, .ranks = h->ranks, .multiplicity = h->multiplicity, .window_end = 60
  };
}

static void
check (const LsTimeline *t, const LsTime expected[LS_N_BUBBLES])
{
  LsTime bubbles[LS_N_BUBBLES];
  ls_bubbles (t, bubbles);
  for (int b = 0; b < LS_N_BUBBLES; b++)
    ls_check_impl (bubbles[b] == expected[b], __FILE__, __LINE__,
                   "%s is %" G_GINT64_FORMAT ", not %" G_GINT64_FORMAT, ls_bubble_name ((LsBubble) b),
                   bubbles[b], expected[b]);
}

/* 35 of 37: 2 of the 3 that rank 0 waits in its steady state are imbalance. */
static void
each_wait_has_its_reason (void)
{
  Hand h;
  hand_init (&h);
  check (&h.t, (const LsTime[LS_N_BUBBLES]) { 4, 1, 2, 5, 7 });
}

static void
even_ranks_have_no_imbalance (void)
{
  Hand h;
  hand_init (&h);
  h.multiplicity[0] = 2;
  h.multiplicity[1] = 0;
  check (&h.t, (const LsTime[LS_N_BUBBLES]) { 8, 6, 0, 10, 14 });
}

/* The window ends before the optimizer begins, and in another cut inside the second receive. */
static void
what_the_window_cuts_off_keeps_its_reason (void)
{
  Hand h;
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

LS_TEST_SUITE (LS_TEST (each_wait_has_its_reason), LS_TEST (even_ranks_have_no_imbalance),
               LS_TEST (what_the_window_cuts_off_keeps_its_reason))
