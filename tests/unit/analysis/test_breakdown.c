/* Pins every key of the breakdown to the picosecond on timelines worked out by
 * hand. All windows start at 1000 unless a test is about edges. */
#include "analysis/idle.h"
#include "ls_test.h"
#include "trace.h"

typedef LsTime Parts[LS_N_PARTS];

static void
check_rank (const Trace *trace, uint32_t rank, const Parts want, const char *what)
{
  Parts got;
  ls_breakdown_rank (&trace->t, rank, got);
  for (int part = 0; part < LS_N_PARTS; part++)
    ls_check_impl (got[part] == want[part], __FILE__, __LINE__,
                   "%s, rank %u: %s is %" G_GINT64_FORMAT ", not %" G_GINT64_FORMAT, what, rank,
                   ls_part_names[part], got[part], want[part]);
}

#define CHECK_RANK(trace, rank, ...) check_rank ((trace), (rank), (const Parts) { __VA_ARGS__ }, __func__)

static void
each_tag_has_its_key (void)
{
  Trace trace;
  trace_init (&trace, 1, 1000, 1280);
  TRACE_ADD (
      &trace, 0, { OP_F, 1000, 10, 1010, LS_CAUSE_NONE, NONE }, { OP_I, 1010, 20, 1030, LS_CAUSE_STREAM, 0 },
      { OP_W, 1030, 30, 1060, LS_CAUSE_STREAM, 1 }, { OP_B, 1060, 40, 1100, LS_CAUSE_STREAM, 2 },
      { OP_RECOMPUTE, 1100, 50, 1150, LS_CAUSE_STREAM, 3 },
      { OP_OPTIMIZER, 1150, 60, 1210, LS_CAUSE_STREAM, 4 }, { OP_SYNC, 1210, 70, 1280, LS_CAUSE_STREAM, 5 });
  CHECK_RANK (&trace, 0, [LS_PART_FORWARD] = 10, [LS_PART_BACKWARD] = 160, [LS_PART_RECOMPUTE] = 50,
              [LS_PART_OPTIMIZER] = 60);
}

static void
slowdown_is_what_sharing_added (void)
{
  Trace trace;
  trace_init (&trace, 1, 1000, 1200);
  TRACE_ADD (&trace, 0, { OP_F, 1000, 70, 1100, LS_CAUSE_NONE, NONE },
             { OP_B, 1100, 99, 1200, LS_CAUSE_STREAM, 0 });
  CHECK_RANK (&trace, 0, [LS_PART_FORWARD] = 70, [LS_PART_BACKWARD] = 99, [LS_PART_SLOWDOWN] = 31);
}

/* Alone 7 of 10 ps, cut after 5: 3.5 rounds down to 3; the next window gets 4. */
static void
window_cuts_a_kernel_in_two_exact_pieces (void)
{
  Trace trace;
  trace_init (&trace, 1, 1000, 1005);
  TRACE_ADD (&trace, 0, { OP_F, 1000, 7, 1010, LS_CAUSE_NONE, NONE });
  CHECK_RANK (&trace, 0, [LS_PART_FORWARD] = 3, [LS_PART_SLOWDOWN] = 2);
  trace.t.window_start = 1005;
  trace.t.window_end = 1010;
  CHECK_RANK (&trace, 0, [LS_PART_FORWARD] = 4, [LS_PART_SLOWDOWN] = 1);
}

/* One ps in a thousand of a whole second: 64 bits would overflow. */
static void
long_kernels_do_not_overflow (void)
{
  Trace trace;
  trace_init (&trace, 1, 0, 60 * LS_S);
  TRACE_ADD (&trace, 0, { OP_F, 0, 100 * LS_S, 120 * LS_S, LS_CAUSE_NONE, NONE });
  CHECK_RANK (&trace, 0, [LS_PART_FORWARD] = 50 * LS_S, [LS_PART_SLOWDOWN] = 10 * LS_S);
}

static void
unfinished_kernel_ends_with_the_window (void)
{
  Trace trace;
  trace_init (&trace, 1, 1000, 1100);
  TRACE_ADD (&trace, 0, { OP_F, 1000, 80, NEVER, LS_CAUSE_NONE, NONE });
  CHECK_RANK (&trace, 0, [LS_PART_FORWARD] = 80, [LS_PART_SLOWDOWN] = 20);
}

/* A kernel, a collective that depends on it, a kernel that depends on that: 10
 * waiting for partners, 30 moving. */
static void
check_collective (int op, LsPart moving, LsPart waiting)
{
  Trace trace;
  trace_init (&trace, 1, 1000, 1100);
  trace_add (&trace, 0, (TestSpan) { OP_F, 1000, 40, 1040, LS_CAUSE_NONE, NONE });
  trace_add (&trace, 0, (TestSpan) { op, 1040, 1050, 1080, LS_CAUSE_DEP, 0 });
  trace_add (&trace, 0, (TestSpan) { OP_B, 1080, 20, 1100, LS_CAUSE_DEP, 1 });
  Parts want = { [LS_PART_FORWARD] = 40, [LS_PART_BACKWARD] = 20 };
  want[moving] += 30;
  want[waiting] += 10;
  check_rank (&trace, 0, want, ls_part_names[moving]);
}

static void
tp_collective_exposes_tp (void)
{
  check_collective (OP_TP, LS_PART_EXPOSED_TP, LS_PART_SKEW);
}
static void
dp_collective_exposes_dp (void)
{
  check_collective (OP_DP, LS_PART_EXPOSED_DP, LS_PART_SKEW);
}
static void
cp_collective_exposes_cp (void)
{
  check_collective (OP_CP, LS_PART_EXPOSED_CP, LS_PART_SKEW);
}
static void
ep_collective_exposes_ep (void)
{
  check_collective (OP_EP, LS_PART_EXPOSED_EP, LS_PART_SKEW);
}
static void
tied_embedding_exposes_pp (void)
{
  check_collective (OP_EMBEDDING, LS_PART_EXPOSED_PP, LS_PART_BUBBLE);
}
/* Its axis is tp, but it spans stages. */
static void
gradient_norm_exposes_pp (void)
{
  check_collective (OP_NORM, LS_PART_EXPOSED_PP, LS_PART_BUBBLE);
}
static void
p2p_exposes_pp_and_bubble (void)
{
  check_collective (OP_P2P, LS_PART_EXPOSED_PP, LS_PART_BUBBLE);
}

/* Two stages, one micro-batch: forward 100 on each, transfers of 10 each way,
 * backward 200 on each. Stage 1 waits 100 for its input; stage 0 waits 310 for
 * the gradient. Both windows are 620 long. */
static void
two_stages_one_micro_batch (void)
{
  Trace trace;
  trace_init (&trace, 2, 1000, 1620);
  TRACE_ADD (&trace, 0, { OP_F, 1000, 100, 1100, LS_CAUSE_NONE, NONE },
             { OP_P2P, 1100, 1100, 1110, LS_CAUSE_DEP, 0 }, { OP_P2P, 1110, 1410, 1420, LS_CAUSE_STREAM, 1 },
             { OP_B, 1420, 200, 1620, LS_CAUSE_DEP, 2 });
  TRACE_ADD (&trace, 1, { OP_P2P, 1000, 1100, 1110, LS_CAUSE_NONE, NONE },
             { OP_F, 1110, 100, 1210, LS_CAUSE_DEP, 0 }, { OP_B, 1210, 200, 1410, LS_CAUSE_STREAM, 1 },
             { OP_P2P, 1410, 1410, 1420, LS_CAUSE_DEP, 2 });
  trace.ranks[1].tail_cause_kind = LS_CAUSE_DEP;
  trace.ranks[1].tail_cause = 4;
  trace_add (&trace, 1, (TestSpan) { OP_P2P, 1420, NEVER, NEVER, LS_CAUSE_STREAM, 3 });
  /* the gap of rank 0: 10 moving backward, 300 waiting, 10 moving forward (its own send) */
  CHECK_RANK (&trace, 0, [LS_PART_FORWARD] = 100, [LS_PART_BACKWARD] = 200, [LS_PART_EXPOSED_PP] = 20,
              [LS_PART_BUBBLE] = 300);
  /* rank 1: waits 100 + 10 for its input; tail: 10 sending, 200 waiting for the next input */
  CHECK_RANK (&trace, 1, [LS_PART_FORWARD] = 100, [LS_PART_BACKWARD] = 200, [LS_PART_EXPOSED_PP] = 20,
              [LS_PART_BUBBLE] = 300);

  Parts sum;
  LsTime bubbles[LS_N_BUBBLES];
  ls_breakdown (&trace.t, sum, bubbles);
  LS_CHECK_INT (sum[LS_PART_BUBBLE], ==, 600);
  trace.multiplicity[0] = 3; /* rank 0 stands for three, rank 1 for one */
  ls_breakdown (&trace.t, sum, bubbles);
  LS_CHECK_INT (sum[LS_PART_BUBBLE], ==, 1200);
  LS_CHECK_INT (sum[LS_PART_FORWARD], ==, 400);
}

/* Four data-parallel ranks; rank 2 computes 30 longer. The others wait for it
 * (skew), then all move for 50. */
static void
straggler_makes_skew_on_the_others (void)
{
  Trace trace;
  trace_init (&trace, 4, 1000, 1200);
  for (uint32_t rank = 0; rank < 4; rank++) {
    LsTime alone = rank == 2 ? 120 : 90;
    trace_add (&trace, rank, (TestSpan) { OP_B, 1000, alone, 1000 + alone, LS_CAUSE_NONE, NONE });
    trace_add (&trace, rank, (TestSpan) { OP_DP, 1000 + alone, 1120, 1170, LS_CAUSE_DEP, 0 });
    trace_add (&trace, rank, (TestSpan) { OP_OPTIMIZER, 1170, 30, 1200, LS_CAUSE_DEP, 1 });
  }
  for (uint32_t rank = 0; rank < 4; rank++)
    CHECK_RANK (&trace, rank, [LS_PART_BACKWARD] = rank == 2 ? 120 : 90, [LS_PART_OPTIMIZER] = 30,
                [LS_PART_EXPOSED_DP] = 50, [LS_PART_SKEW] = rank == 2 ? 0 : 30);
}

/* Communication that ran beside kernels costs nothing: only 15 of its 60 show. */
static void
overlapped_communication_is_exposed_at_its_end_only (void)
{
  Trace trace;
  trace_init (&trace, 1, 1000, 1100);
  TRACE_ADD (&trace, 0, { OP_B, 1000, 30, 1030, LS_CAUSE_NONE, NONE },
             { OP_B, 1030, 40, 1070, LS_CAUSE_STREAM, 0 }, { OP_OPTIMIZER, 1085, 15, 1100, LS_CAUSE_DEP, 3 },
             { OP_DP, 1030, 1025, 1085, LS_CAUSE_DEP, 0 });
  CHECK_RANK (&trace, 0, [LS_PART_BACKWARD] = 70, [LS_PART_OPTIMIZER] = 15, [LS_PART_EXPOSED_DP] = 15);
}

/* A bucket waits behind an earlier bucket of its communicator, which waited for
 * its partners: 20 moving, then 25 moving and 5 skew of the earlier one. */
static void
waiting_behind_an_earlier_op_belongs_to_that_op (void)
{
  Trace trace;
  trace_init (&trace, 1, 1000, 1100);
  TRACE_ADD (&trace, 0, { OP_B, 1000, 40, 1040, LS_CAUSE_NONE, NONE },
             { OP_EMBEDDING, 1040, 1045, 1070, LS_CAUSE_DEP, 0 },
             { OP_DP, 1070, 1070, 1090, LS_CAUSE_STREAM, 1 },
             { OP_OPTIMIZER, 1090, 10, 1100, LS_CAUSE_DEP, 2 });
  CHECK_RANK (&trace, 0, [LS_PART_BACKWARD] = 40, [LS_PART_OPTIMIZER] = 10, [LS_PART_EXPOSED_DP] = 20,
              [LS_PART_EXPOSED_PP] = 25, [LS_PART_BUBBLE] = 5);
}

static void
launch_bound_kernel_waits_for_the_host (void)
{
  Trace trace;
  trace_init (&trace, 1, 1000, 1100);
  TRACE_ADD (&trace, 0, { OP_F, 1010, 30, 1040, LS_CAUSE_HOST, NONE },
             { OP_F, 1047, 53, 1100, LS_CAUSE_HOST, NONE });
  CHECK_RANK (&trace, 0, [LS_PART_FORWARD] = 83, [LS_PART_HOST] = 17);
}

/* The host slept until a p2p ended, then needed 6 to launch the kernel. */
static void
host_held_up_by_p2p_then_launch (void)
{
  Trace trace;
  trace_init (&trace, 1, 1000, 1100);
  TRACE_ADD (&trace, 0, { OP_F, 1000, 40, 1040, LS_CAUSE_NONE, NONE },
             { OP_P2P, 1043, 1060, 1072, LS_CAUSE_HOST, NONE }, { OP_F, 1078, 22, 1100, LS_CAUSE_HOST, 1 });
  CHECK_RANK (
      &trace,
      0, [LS_PART_FORWARD] = 62, [LS_PART_HOST] = 6 + 3, [LS_PART_EXPOSED_PP] = 12, [LS_PART_BUBBLE] = 17);
}

/* The host waited for a kernel: it is the launch that the stream waits for. */
static void
host_held_up_by_a_kernel (void)
{
  Trace trace;
  trace_init (&trace, 1, 1000, 1100);
  TRACE_ADD (&trace, 0, { OP_F, 1000, 40, 1040, LS_CAUSE_NONE, NONE },
             { OP_F, 1050, 50, 1100, LS_CAUSE_HOST, 0 });
  CHECK_RANK (&trace, 0, [LS_PART_FORWARD] = 90, [LS_PART_HOST] = 10);
}

/* Receive held back by a host that an earlier p2p had held up: 10 + 20 of p2p 2,
 * 4 of the host, 6 + 15 of p2p 1. */
static void
chain_over_host_and_two_p2p (void)
{
  Trace trace;
  trace_init (&trace, 1, 1000, 1100);
  TRACE_ADD (&trace, 0, { OP_F, 1000, 25, 1025, LS_CAUSE_NONE, NONE },
             { OP_P2P, 1025, 1040, 1046, LS_CAUSE_DEP, 0 }, { OP_P2P, 1050, 1070, 1080, LS_CAUSE_HOST, 1 },
             { OP_B, 1080, 20, 1100, LS_CAUSE_DEP, 2 });
  CHECK_RANK (&trace, 0, [LS_PART_FORWARD] = 25, [LS_PART_BACKWARD] = 20, [LS_PART_EXPOSED_PP] = 16,
              [LS_PART_BUBBLE] = 35, [LS_PART_HOST] = 4);
}

/* The window opens while data move and closes while the next are awaited. */
static void
window_cuts_gaps (void)
{
  Trace trace;
  trace_init (&trace, 1, 1000, 1100);
  TRACE_ADD (&trace, 0, { OP_P2P, 940, 970, 1012, LS_CAUSE_NONE, NONE },
             { OP_F, 1012, 60, 1072, LS_CAUSE_DEP, 0 }, { OP_P2P, 1072, 1090, 1130, LS_CAUSE_DEP, 1 },
             { OP_B, 1130, 10, 1140, LS_CAUSE_DEP, 2 });
  CHECK_RANK (&trace, 0, [LS_PART_FORWARD] = 60, [LS_PART_EXPOSED_PP] = 12 + 10, [LS_PART_BUBBLE] = 18);
}

static void
tail_waits_for_an_unfinished_collective (void)
{
  Trace trace;
  trace_init (&trace, 1, 1000, 1100);
  TRACE_ADD (&trace, 0, { OP_B, 1000, 40, 1040, LS_CAUSE_NONE, NONE },
             { OP_DP, 1040, 1055, NEVER, LS_CAUSE_DEP, 0 });
  trace.ranks[0].tail_cause_kind = LS_CAUSE_DEP;
  trace.ranks[0].tail_cause = 1;
  CHECK_RANK (&trace, 0, [LS_PART_BACKWARD] = 40, [LS_PART_EXPOSED_DP] = 45, [LS_PART_SKEW] = 15);
}

static void
tail_waits_for_a_collective_that_never_matched (void)
{
  Trace trace;
  trace_init (&trace, 1, 1000, 1100);
  TRACE_ADD (&trace, 0, { OP_B, 1000, 40, 1040, LS_CAUSE_NONE, NONE },
             { OP_DP, 1040, NEVER, NEVER, LS_CAUSE_DEP, 0 });
  trace.ranks[0].tail_cause_kind = LS_CAUSE_DEP;
  trace.ranks[0].tail_cause = 1;
  CHECK_RANK (&trace, 0, [LS_PART_BACKWARD] = 40, [LS_PART_SKEW] = 60);
}

/* The host waits for a p2p and will launch once it ends; it has not ended. */
static void
tail_waits_for_a_host_in_a_sync (void)
{
  Trace trace;
  trace_init (&trace, 1, 1000, 1100);
  TRACE_ADD (&trace, 0, { OP_B, 1000, 40, 1040, LS_CAUSE_NONE, NONE },
             { OP_P2P, 1040, 1090, NEVER, LS_CAUSE_DEP, 0 });
  trace.ranks[0].tail_cause_kind = LS_CAUSE_HOST;
  trace.ranks[0].tail_cause = 1;
  CHECK_RANK (&trace, 0, [LS_PART_BACKWARD] = 40, [LS_PART_EXPOSED_PP] = 10, [LS_PART_BUBBLE] = 50);
}

static void
host_delay_is_host (void)
{
  Trace trace;
  trace_init (&trace, 1, 1000, 1100);
  TRACE_ADD (&trace, 0, { OP_F, 1000, 40, 1040, LS_CAUSE_NONE, NONE },
             { OP_HOST_DELAY, 1040, 1040, 1060, LS_CAUSE_DEP, 0 },
             { OP_F, 1065, 35, 1100, LS_CAUSE_HOST, 1 });
  CHECK_RANK (&trace, 0, [LS_PART_FORWARD] = 75, [LS_PART_HOST] = 25);
}

/* Copies have a part of their own, kernels count whatever their stream, and a gap without cause
 * is `other`. */
static void
the_rest_is_other (void)
{
  Trace trace;
  trace_init (&trace, 1, 1000, 1200);
  TRACE_ADD (&trace, 0, { OP_F, 1000, 10, 1010, LS_CAUSE_NONE, NONE },
             { OP_COPY, 1010, 1010, 1030, LS_CAUSE_DEP, 0 }, { OP_F, 1030, 70, 1100, LS_CAUSE_DEP, 1 },
             { OP_SIDE_KERNEL, 1100, 5, 1105, LS_CAUSE_DEP, 2 }, { OP_F, 1105, 55, 1160, LS_CAUSE_DEP, 3 });
  CHECK_RANK (&trace, 0, [LS_PART_FORWARD] = 140, [LS_PART_EXPOSED_COPY] = 20, [LS_PART_OTHER] = 40);
}

/* A malformed timeline must not hang the analysis. */
static void
a_circle_of_causes_ends (void)
{
  Trace trace;
  trace_init (&trace, 1, 1000, 1100);
  TRACE_ADD (&trace, 0, { OP_P2P, 1050, 1050, 1050, LS_CAUSE_STREAM, 1 },
             { OP_P2P, 1050, 1050, 1050, LS_CAUSE_STREAM, 0 }, { OP_F, 1050, 50, 1100, LS_CAUSE_DEP, 1 });
  CHECK_RANK (&trace, 0, [LS_PART_FORWARD] = 50, [LS_PART_OTHER] = 50);
}

static void
a_rank_that_does_nothing (void)
{
  Trace trace;
  trace_init (&trace, 1, 1000, 1100);
  CHECK_RANK (&trace, 0, [LS_PART_OTHER] = 100);
}

static void
keys_are_those_of_the_design (void)
{
  static const char *const keys[] = { "forward",      "backward",   "recompute",  "optimizer",  "slowdown",
                                      "exposed_tp",   "exposed_dp", "exposed_pp", "exposed_cp", "exposed_ep",
                                      "exposed_copy", "bubble",     "skew",       "host",       "other" };
  G_STATIC_ASSERT (G_N_ELEMENTS (keys) == LS_N_PARTS);
  for (int part = 0; part < LS_N_PARTS; part++)
    LS_CHECK_STR (ls_part_names[part], keys[part]);
}

/* Random timelines with random causes: whatever they say, the parts must cover
 * the window exactly (ls_breakdown_rank asserts it) and none be negative. */
static void
parts_cover_the_window_whatever_the_causes (void)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (20);
  for (int round = 0; round < 2000; round++) {
    Trace trace;
    trace_init (&trace, 1, 1000, 1100);
    LsTime at = 990;
    for (uint32_t i = 0; i < 12; i++) {
      bool is_kernel = g_rand_boolean (rand);
      LsTime start = at + g_rand_int_range (rand, 0, 15), end = start + g_rand_int_range (rand, 0, 15);
      TestSpan s = {
        .op = is_kernel ? g_rand_int_range (rand, OP_F, OP_TP) : g_rand_int_range (rand, OP_TP, N_OPS),
        .start = start,
        .matched = is_kernel ? g_rand_int_range (rand, 0, 20) : start + (end - start) / 2,
        .end = end,
        .cause_kind = g_rand_int_range (rand, LS_CAUSE_NONE, LS_CAUSE_HOST + 1),
        .cause = i > 0 && g_rand_boolean (rand) ? (uint32_t) g_rand_int_range (rand, 0, (int) i) : NONE,
      };
      if (s.cause_kind == LS_CAUSE_NONE)
        s.cause = NONE;
      trace_add (&trace, 0, s);
      at = is_kernel ? end : at;
    }
    Parts got;
    ls_breakdown_rank (&trace.t, 0, got);
    for (int part = 0; part < LS_N_PARTS; part++)
      LS_CHECK_INT (got[part], >=, 0);
  }
}

LS_TEST_SUITE (LS_TEST (each_tag_has_its_key), LS_TEST (slowdown_is_what_sharing_added),
               LS_TEST (window_cuts_a_kernel_in_two_exact_pieces), LS_TEST (long_kernels_do_not_overflow),
               LS_TEST (unfinished_kernel_ends_with_the_window), LS_TEST (tp_collective_exposes_tp),
               LS_TEST (dp_collective_exposes_dp), LS_TEST (cp_collective_exposes_cp),
               LS_TEST (ep_collective_exposes_ep), LS_TEST (tied_embedding_exposes_pp),
               LS_TEST (gradient_norm_exposes_pp), LS_TEST (p2p_exposes_pp_and_bubble),
               LS_TEST (two_stages_one_micro_batch), LS_TEST (straggler_makes_skew_on_the_others),
               LS_TEST (overlapped_communication_is_exposed_at_its_end_only),
               LS_TEST (waiting_behind_an_earlier_op_belongs_to_that_op),
               LS_TEST (launch_bound_kernel_waits_for_the_host), LS_TEST (host_held_up_by_p2p_then_launch),
               LS_TEST (host_held_up_by_a_kernel), LS_TEST (chain_over_host_and_two_p2p),
               LS_TEST (window_cuts_gaps), LS_TEST (tail_waits_for_an_unfinished_collective),
               LS_TEST (tail_waits_for_a_collective_that_never_matched),
               LS_TEST (tail_waits_for_a_host_in_a_sync), LS_TEST (host_delay_is_host),
               LS_TEST (the_rest_is_other), LS_TEST (a_circle_of_causes_ends),
               LS_TEST (a_rank_that_does_nothing), LS_TEST (keys_are_those_of_the_design),
               LS_TEST (parts_cover_the_window_whatever_the_causes))
