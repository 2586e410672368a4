/* Pins: what a step takes at least by its plan (exec/shortcuts/plan_bound.h), to the picosecond for jobs by
 * hand: the worked example, kernels of all streams, each stream, what the compute stream waits for, what
 * communication beside kernels costs, ranks and stragglers, and how ranks of a pipeline wait for each other
 * (exec/shortcuts/plan_bound.c). The run of each takes no less, and where the bound is tight, no more.
 * Calls that are kept from one plan to the next are told apart by all that they depend on (exec/extras.h).
 * Random jobs are in test_fold.c. */
#include "ls_test.h"

#include "hand_trace.h"

#include <lockstep/error.h>

#include "exec/extras.h"
#include "exec/shortcuts/plan_bound.h"

#define ROUNDING 0.9999 /* of what is known of collectives */

static LsTime
least_of (Hand *h)
{
  hand_freeze (h);
  return ls_plan_bound (h->plan, h->cluster, &h->calibration, &h->nccl, &h->options);
}

/* And the run takes so long. Frees the job. */
static void
check_least (Hand *h, LsTime expected, LsTime step)
{
  LS_CHECK_INT (least_of (h), ==, expected);
  LS_CHECK_INT (step, >=, expected);
  g_autoptr (LsTimeline) t = hand_run (h);
  if (t)
    LS_CHECK_INT (t->window_end - t->window_start, ==, step);
  hand_free (h);
}

/* Of recorded duration, behind the compute stream so far. */
static uint16_t
op_behind (Hand *h, LsOpKind kind, LsStream stream, LsTime duration)
{
  LsOp op = ls_op_blank (kind, stream, LS_TAG_F, "behind");
  LsDep compute = { LS_DEP_STREAM, LS_STREAM_COMPUTE };
  op.recorded = duration;
  return hand_op (h, 0, op, &compute, 1);
}

static Hand *
pair_new (void)
{
  Hand *h = hand_new (2);
  h->plan->bindings[1].role = 0;
  hand_comm (h, LS_SLOT_DP, LS_AXIS_DP, false, (const uint32_t[]) { 0, 1 }, 2);
  h->nccl.sm_share_per_channel = 0.05; /* of 8 */
  return h;
}

/* --- the worked example --------------------------------------------------------------------- */

#define GATHER_BYTES UINT64_C (4000000000) /* half of it at 200 GB/s: 10 ms */

/* Traffic of the HBM alone: it minds nothing. */
static void
norms (Hand *h, LsTime duration)
{
  double bytes = ls_time_to_s (duration) * h->cluster->spec.gpu.hbm_bytes_per_s;
  LsKernel shape = ls_kernel_stream ("norms", LS_KERNEL_NORM, LS_DTYPE_FP16, 1, 1, bytes, 0);
  LsOp op = ls_op_blank (LS_OP_KERNEL, LS_STREAM_COMPUTE, LS_TAG_F, shape.name);
  op.kernel = h->kernels->len;
  g_array_append_val (h->kernels, shape);
  hand_op (h, 0, op, NULL, 0);
}

/* Nine gathers of 10 ms, the last of which is waited for; 100 ms of kernels at 0.6 beside them. */
static void
the_worked_example (void)
{
  Hand *h = pair_new ();
  for (int i = 0; i < 8; i++)
    hand_async (h, 0, LS_SLOT_DP, LS_STREAM_DP, LS_COLL_ALL_GATHER, GATHER_BYTES);
  hand_kernel (h, 0, LS_TAG_F, 100 * LS_MS);
  norms (h, 40 * LS_MS);
  hand_sync (h, 0, LS_SLOT_DP, LS_STREAM_DP, LS_COLL_ALL_GATHER, GATHER_BYTES);
  hand_kernel (h, 0, LS_TAG_F, 0);

  g_autoptr (LsArena) arena = ls_arena_new ();
  LsCollRequest request
      = { .kind = LS_COLL_ALL_GATHER, .gpus = (const uint32_t[]) { 0, 1 }, .n = 2, .bytes = GATHER_BYTES };
  const LsCollPlan *plan = ls_coll_plan (h->cluster, &h->nccl, &request, LS_NETWORK_FLOW, arena);
  LS_CHECK_INT (plan->n_phases, ==, 1);
  LsTime alone = ls_coll_time_alone (h->cluster, plan);
  LsTime idle = (LsTime) ((double) alone * ROUNDING),
         moving = (LsTime) ((double) (alone - plan->phases[0].latency) * ROUNDING);
  double lost = (double) (9 * moving - idle - 40 * LS_MS) * 0.4;
  LsTime least = least_of (h);
  LS_CHECK_INT (least, ==, 140 * LS_MS + idle + (LsTime) (lost * ROUNDING));
  LS_CHECK_NEAR ((double) least, 166e9, 2e-3);
  g_autoptr (LsTimeline) t = hand_run (h);
  if (t)
    LS_CHECK_INT (t->window_end - t->window_start, >=, least);
  hand_free (h);
}

/* --- sums ------------------------------------------------------------------------------------ */

static void
a_gpu_runs_one_kernel_of_all_streams (void)
{
  Hand *h = hand_new (1);
  hand_kernel (h, 0, LS_TAG_F, 10 * LS_US);
  op_behind (h, LS_OP_KERNEL, LS_STREAM_GATHER, 7 * LS_US);
  hand_kernel (h, 0, LS_TAG_F, 10 * LS_US);
  check_least (h, 27 * LS_US, 27 * LS_US);
}

static void
a_stream_runs_one_op (void)
{
  Hand *h = hand_new (1);
  hand_kernel (h, 0, LS_TAG_F, 10 * LS_US);
  op_behind (h, LS_OP_COPY, LS_STREAM_COPY, 30 * LS_US);
  op_behind (h, LS_OP_COPY, LS_STREAM_COPY, 30 * LS_US);
  op_behind (h, LS_OP_COPY, LS_STREAM_COPY_IN, 50 * LS_US);
  check_least (h, 60 * LS_US, 70 * LS_US);
}

static void
each_instance_counts (void)
{
  Hand *h = hand_new (1);
  hand_kernel (h, 0, LS_TAG_F, 10 * LS_US);
  hand_join (h, 0, op_behind (h, LS_OP_COPY, LS_STREAM_COPY, 30 * LS_US));
  hand_kernel (h, 0, LS_TAG_F, 10 * LS_US);
  hand_next_segment (h, 0);
  hand_kernel (h, 0, LS_TAG_F, 5 * LS_US);
  hand_then (h, 0, 0, 3);
  hand_then (h, 0, 1, 2);
  check_least (h, 3 * 50 * LS_US + 2 * 5 * LS_US, 160 * LS_US);
}

/* What only the first step does is not in each. */
static void
the_lead_does_not_count (void)
{
  Hand *h = hand_new (1);
  h->options.n_steps = 2;
  hand_kernel (h, 0, LS_TAG_F, 90 * LS_US);
  hand_next_segment (h, 0);
  hand_kernel (h, 0, LS_TAG_F, 10 * LS_US);
  hand_freeze (h);
  h->plan->programs[0].n_lead = 1;
  check_least (h, 10 * LS_US, 10 * LS_US);
}

static void
the_slowest_role_counts (void)
{
  for (int is_slow = 0; is_slow < 2; is_slow++) {
    const double slow[] = { 2, 1 };
    Hand *h = hand_new (2);
    hand_kernel (h, 0, LS_TAG_F, 10 * LS_US);
    hand_kernel (h, 1, LS_TAG_F, 15 * LS_US);
    h->options.slow = is_slow ? slow : NULL;
    check_least (h, (is_slow ? 20 : 15) * LS_US, (is_slow ? 20 : 15) * LS_US);
  }
}

/* --- what the compute stream waits for -------------------------------------------------------- */

/* Behind one of its ops, and before another. */
static void
waiting_counts_between_kernels (void)
{
  Hand *h = hand_new (1);
  hand_kernel (h, 0, LS_TAG_F, 10 * LS_US);
  hand_join (h, 0, op_behind (h, LS_OP_COPY, LS_STREAM_COPY, 30 * LS_US));
  hand_kernel (h, 0, LS_TAG_F, 10 * LS_US);
  check_least (h, 50 * LS_US, 50 * LS_US);

  h = hand_new (1); /* it may have begun long before */
  LsOp copy = ls_op_blank (LS_OP_COPY, LS_STREAM_COPY, LS_TAG_F, "copy");
  copy.recorded = 15 * LS_US;
  hand_join (h, 0, hand_op (h, 0, copy, NULL, 0));
  hand_kernel (h, 0, LS_TAG_F, 10 * LS_US);
  check_least (h, 15 * LS_US, 25 * LS_US);
}

/* What lies beside a copy that is waited for takes no time of its own. */
static void
the_longest_way_counts (void)
{
  Hand *h = hand_new (1);
  uint16_t copy = op_behind (h, LS_OP_COPY, LS_STREAM_COPY, 205 * LS_US);
  hand_kernel (h, 0, LS_TAG_F, 10 * LS_US);
  hand_join (h, 0, copy);
  hand_kernel (h, 0, LS_TAG_F, 10 * LS_US);
  check_least (h, 215 * LS_US, 215 * LS_US);
}

/* A kernel of another stream that is waited for may be alone: it is not at its slowest. */
static void
kernels_of_other_streams_may_be_fast (void)
{
  Hand *h = hand_new (1);
  hand_kernel (h, 0, LS_TAG_F, 10 * LS_US);
  hand_join (h, 0, op_behind (h, LS_OP_KERNEL, LS_STREAM_GATHER_IN, 5 * LS_US));
  hand_kernel (h, 0, LS_TAG_F, 10 * LS_US);
  check_least (h, 25 * LS_US, 25 * LS_US);
}

/* --- ranks of a pipeline ------------------------------------------------------------------------- */

#define MESSAGE UINT64_C (200000000) /* 1 ms at 200 GB/s, and 5 us */

/* Where the next compute op waits for what came. */
static void
receive (Hand *h, uint32_t rank, LsSlot slot)
{
  hand_join (h, rank, hand_p2p (h, rank, slot, false, MESSAGE));
}

static LsTime
message_time (const Hand *h)
{
  const uint32_t gpus[] = { 0, 1 };
  return (LsTime) ((double) hand_coll_time (h, LS_COLL_SEND_RECV, MESSAGE, gpus, 2) * ROUNDING);
}

/* A micro-batch through two stages and back; the second stage has less to do behind it. */
static Hand *
pipeline_new (void)
{
  Hand *h = hand_new (2);
  hand_comm (h, LS_SLOT_MODEL, LS_AXIS_PP, true, (const uint32_t[]) { 0, 1 }, 2);
  hand_kernel (h, 0, LS_TAG_F, LS_MS);
  hand_p2p (h, 0, LS_SLOT_NEXT, true, MESSAGE);
  receive (h, 1, LS_SLOT_PREV);
  hand_kernel (h, 1, LS_TAG_F, 3 * LS_MS);
  hand_p2p (h, 1, LS_SLOT_PREV, true, MESSAGE);
  hand_next_segment (h, 0);
  receive (h, 0, LS_SLOT_NEXT);
  hand_kernel (h, 0, LS_TAG_B, 2 * LS_MS);
  for (uint32_t r = 0; r < 2; r++)
    hand_next_segment (h, r);
  h->options.n_steps = 3;
  return h;
}

static void
check_near_step (Hand *h, LsTime expected)
{
  LsTime least = least_of (h);
  LS_CHECK_INT (least, ==, expected);
  g_autoptr (LsTimeline) t = hand_run (h);
  LsTime step = t ? t->window_end - t->window_start : 0;
  LS_CHECK_INT (step, >=, least);
  LS_CHECK_NEAR ((double) step, (double) least, 2e-4);
  hand_free (h);
}

/* 1 + 3 + 2 ms of kernels, two messages; at the end what each does by itself. */
static void
a_round_without_a_barrier (void)
{
  Hand *h = pipeline_new ();
  hand_kernel (h, 0, LS_TAG_OPTIMIZER, 500 * LS_US);
  hand_kernel (h, 1, LS_TAG_OPTIMIZER, 500 * LS_US);
  check_near_step (h, 6500 * LS_US + 2 * message_time (h));
}

/* From the barrier on the second rank has 4 ms to do before it asks for a message, the first 1.5 ms before
 * it sends one. */
static void
a_round_with_a_barrier (void)
{
  static const LsTime optimizer[] = { 500 * LS_US, 4 * LS_MS };
  Hand *h = pipeline_new ();
  for (uint32_t r = 0; r < 2; r++) {
    hand_sync (h, r, LS_SLOT_MODEL, LS_STREAM_GLOBAL, LS_COLL_ALL_REDUCE, 4);
    hand_kernel (h, r, LS_TAG_OPTIMIZER, optimizer[r]);
  }
  const uint32_t gpus[] = { 0, 1 };
  LsTime barrier = (LsTime) ((double) hand_coll_time (h, LS_COLL_ALL_REDUCE, 4, gpus, 2) * ROUNDING);
  check_near_step (h, 9 * LS_MS + 2 * message_time (h) + barrier);
}

/* The first rank goes on to its next kernel when its host has seen the message arrive. */
static void
hosts_wait_for_messages (void)
{
  Hand *h = hand_new (2);
  hand_kernel (h, 0, LS_TAG_F, LS_MS);
  hand_p2p (h, 0, LS_SLOT_NEXT, true, MESSAGE);
  hand_host_sync (h, 0, 1);
  hand_kernel (h, 0, LS_TAG_F, LS_MS);
  hand_kernel (h, 1, LS_TAG_F, LS_US);
  receive (h, 1, LS_SLOT_PREV);
  hand_kernel (h, 1, LS_TAG_F, LS_US);
  check_near_step (h, 2 * LS_MS + message_time (h));
}

/* A message's arrival is recorded on its stream, and awaited on that of compute. */
static void
events_wait_for_messages (void)
{
  Hand *h = hand_new (2);
  hand_p2p (h, 1, LS_SLOT_PREV, true, MESSAGE);
  uint16_t came = hand_p2p (h, 0, LS_SLOT_NEXT, false, MESSAGE);
  LsOp record = ls_op_blank (LS_OP_RECORD, g_array_index (h->ops[0], LsOp, came).stream, LS_TAG_SYNC, "came"),
       wait = ls_op_blank (LS_OP_WAIT, LS_STREAM_COMPUTE, LS_TAG_SYNC, "wait");
  record.event = wait.event = 0;
  hand_op (h, 0, record, NULL, 0);
  hand_op (h, 0, wait, NULL, 0);
  hand_kernel (h, 0, LS_TAG_F, 3 * LS_MS);
  check_near_step (h, 3 * LS_MS + message_time (h));
}

static void
two_transfers (Hand *h, uint32_t rank, LsSlot slot, bool is_send)
{
  uint16_t op = hand_p2p (h, rank, slot, is_send, MESSAGE);
  LsOp *both = &g_array_index (h->ops[rank], LsOp, op);
  LsTransfer *t = ls_arena_new_array (h->plan->arena, LsTransfer, 2);
  t[0] = t[1] = both->transfers[0];
  both->transfers = t, both->n_transfers = 2;
  hand_join (h, rank, op);
}

/* What goes the same way goes one after the other. */
static void
messages_of_a_way_queue (void)
{
  Hand *h = hand_new (2);
  two_transfers (h, 0, LS_SLOT_NEXT, true);
  two_transfers (h, 1, LS_SLOT_PREV, false);
  hand_kernel (h, 0, LS_TAG_F, LS_MS);
  hand_kernel (h, 1, LS_TAG_F, LS_MS);
  check_near_step (h, LS_MS + 2 * message_time (h));
}

/* The first rank asks before it sends: in the order of programs each waits for the other. Its request
 * counts as met, the rest as it is. */
static void
requests_ahead_of_sends_count_as_met (void)
{
  Hand *h = hand_new (2);
  LsTransfer *t = ls_arena_new_array (h->plan->arena, LsTransfer, 1);
  *t = (LsTransfer) { MESSAGE, LS_SLOT_NEXT, false };
  LsOp ask = ls_op_blank (LS_OP_P2P, LS_STREAM_PP_BWD_RECV, LS_TAG_SYNC, "ask");
  ask.host = LS_HOST_COMM;
  ask.transfers = t;
  ask.n_transfers = 1;
  uint16_t asked = hand_op (h, 0, ask, NULL, 0);
  hand_kernel (h, 0, LS_TAG_F, LS_MS);
  hand_p2p (h, 0, LS_SLOT_NEXT, true, MESSAGE);
  hand_join (h, 0, asked);
  hand_kernel (h, 0, LS_TAG_B, 2 * LS_MS);
  receive (h, 1, LS_SLOT_PREV);
  hand_kernel (h, 1, LS_TAG_F, LS_MS);
  hand_p2p (h, 1, LS_SLOT_PREV, true, MESSAGE);
  LS_CHECK_INT (least_of (h), ==, 3 * LS_MS);
  g_autoptr (LsTimeline) run = hand_run (h);
  LS_CHECK (run && run->window_end - run->window_start >= 4 * LS_MS + 2 * message_time (h));
  hand_free (h);
}

/* --- beside communication ------------------------------------------------------------------------ */

/* Rounding aside the run takes as long: all of the gather is beside a kernel that loses 0.4. */
static void
recorded_kernels_lose_what_is_taken (void)
{
  Hand *h = pair_new ();
  hand_async (h, 0, LS_SLOT_DP, LS_STREAM_DP, LS_COLL_ALL_GATHER, GATHER_BYTES);
  hand_kernel (h, 0, LS_TAG_F, 100 * LS_MS);
  LsTime least = least_of (h);
  LS_CHECK_NEAR ((double) least, 104e9, 1e-3);
  g_autoptr (LsTimeline) t = hand_run (h);
  if (t) {
    LsTime step = t->window_end - t->window_start;
    LS_CHECK_INT (step, >=, least);
    LS_CHECK_NEAR ((double) step, (double) least, 1e-3);
  }
  hand_free (h);
}

/* Before the gather comes: it keeps its SMs, and the HBM has room for both. */
static void
persistent_gemms_lose_nothing_if_they_were_there_first (void)
{
  for (int is_recorded = 0; is_recorded < 2; is_recorded++) {
    Hand *h = pair_new ();
    LsClusterSpec spec = tiny_dgx (1);
    spec.gpu.persistent_gemms = true;
    spec.gpu.peak_flops[LS_DTYPE_FP16] = 1e12; /* 137 ms */
    ls_cluster_free (h->cluster);
    h->cluster = ls_cluster_build (&spec, NULL);
    LsKernel gemm = ls_kernel_gemm ("gemm", LS_DTYPE_FP16, 4096, 4096, 4096, 1, 2, false);
    LsOp op = ls_op_blank (LS_OP_KERNEL, LS_STREAM_COMPUTE, LS_TAG_F, gemm.name);
    op.kernel = 0;
    op.recorded = is_recorded ? 100 * LS_MS : LS_TIME_NEVER;
    g_array_append_val (h->kernels, gemm);
    LsTime alone = is_recorded ? op.recorded : ls_kernel_cost (&h->calibration, &spec.gpu, &gemm).alone;
    hand_kernel (h, 0, LS_TAG_F, LS_MS);
    LsDep first = { LS_DEP_END, 0 };
    hand_op (h, 0, op, NULL, 0);
    LsOp gather = ls_op_blank (LS_OP_COLLECTIVE, LS_STREAM_DP, LS_TAG_SYNC, "gather");
    gather.slot = LS_SLOT_DP;
    gather.coll = LS_COLL_ALL_GATHER;
    gather.bytes = GATHER_BYTES;
    gather.dtype = LS_DTYPE_FP16;
    gather.host = LS_HOST_COMM;
    hand_op (h, 0, gather, &first, 1);
    h->options.host.cost[LS_HOST_COMM] = 5 * LS_MS; /* it comes when the GEMM runs */
    check_least (h, LS_MS + alone, LS_MS + alone);
  }
}

static void
message_by_message_collectives_are_not_known (void)
{
  Hand *h = pair_new ();
  hand_kernel (h, 0, LS_TAG_F, 100 * LS_US);
  hand_sync (h, 0, LS_SLOT_DP, LS_STREAM_DP, LS_COLL_ALL_GATHER, GATHER_BYTES);
  hand_kernel (h, 0, LS_TAG_F, 100 * LS_US);
  LS_CHECK_INT (least_of (h), >, 10 * LS_MS);
  h->options.network = LS_NETWORK_STEP;
  LS_CHECK_INT (least_of (h), ==, 200 * LS_US);
  hand_free (h);
}

static void
of_what_does_not_compile_nothing_is_known (void)
{
  Hand *h = hand_new (1);
  hand_kernel (h, 0, LS_TAG_F, 10 * LS_US);
  hand_op (h, 0, ls_op_blank (LS_OP_KERNEL, LS_STREAM_COMPUTE, LS_TAG_F, "without a shape"), NULL, 0);
  LS_CHECK_INT (least_of (h), ==, 0);
  g_autoptr (GError) error = NULL;
  g_autoptr (LsTimeline) t = hand_run_error (h, &error);
  LS_CHECK (!t && g_error_matches (error, LS_ERROR, LS_ERROR_INPUT));
  hand_free (h);
}

/* --- calls that are kept ----------------------------------------------------------------------- */

static bool
is_known_as (const LsKnownCalls *calls, const LsCluster *cluster, const LsCollRequest *a,
             const LsCollRequest *b)
{
  g_autoptr (GBytes) one = known_calls_key (calls, cluster, a), other = known_calls_key (calls, cluster, b);
  return one && other && g_bytes_equal (one, other);
}

static void
kept_calls_are_told_apart (void)
{
  Hand *h = hand_new (2);
  const uint32_t gpus[] = { 0, 2, 4, 6 }, others[] = { 0, 2, 4, 7 }, weights[] = { 1, 2, 3, 4 };
  LsSpread spread = { 0 };
  LsKnownCalls *calls = ls_known_calls_new ();
  const LsCollRequest base = { .kind = LS_COLL_ALL_REDUCE, .gpus = gpus, .n = 4, .bytes = 4096 };
  LsCollRequest q[] = { base, base, base, base, base, base, base, base };
  q[0].kind = LS_COLL_REDUCE;
  q[1].gpus = others;
  q[2].n = 3;
  q[3].root = 1;
  q[4].bytes = 4097;
  q[5].algorithm = ls_coll_algorithm_name (LS_ALGORITHM_RING);
  q[6].max_ctas = 4;
  q[7].protocol = LS_PROTOCOL_SIMPLE;
  for (guint i = 0; i < G_N_ELEMENTS (q); i++)
    LS_CHECK (!is_known_as (calls, h->cluster, &base, &q[i]));
  g_autoptr (GBytes) here = known_calls_key (calls, h->cluster, &base),
                     there = known_calls_key (calls, NULL, &base);
  LS_CHECK (here && there && !g_bytes_equal (here, there));
  LS_CHECK (!known_calls_key (NULL, h->cluster, &base));
  LsCollRequest spread_out = base, weighed = base;
  spread_out.spread = &spread;
  weighed.weights = weights;
  LS_CHECK (is_known_as (calls, h->cluster, &base, &spread_out)); /* which counts for an all-to-all alone */
  spread_out.kind = weighed.kind = LS_COLL_ALL_TO_ALL;
  LS_CHECK (!known_calls_key (calls, h->cluster, &spread_out)
            && !known_calls_key (calls, h->cluster, &weighed));
  ls_known_calls_free (calls);
  hand_free (h);
}

LS_TEST_SUITE (LS_TEST (the_worked_example), LS_TEST (a_gpu_runs_one_kernel_of_all_streams),
               LS_TEST (a_stream_runs_one_op), LS_TEST (each_instance_counts),
               LS_TEST (the_lead_does_not_count), LS_TEST (the_slowest_role_counts),
               LS_TEST (waiting_counts_between_kernels), LS_TEST (the_longest_way_counts),
               LS_TEST (kernels_of_other_streams_may_be_fast), LS_TEST (recorded_kernels_lose_what_is_taken),
               LS_TEST (persistent_gemms_lose_nothing_if_they_were_there_first),
               LS_TEST (a_round_without_a_barrier), LS_TEST (a_round_with_a_barrier),
               LS_TEST (hosts_wait_for_messages), LS_TEST (events_wait_for_messages),
               LS_TEST (messages_of_a_way_queue), LS_TEST (requests_ahead_of_sends_count_as_met),
               LS_TEST (message_by_message_collectives_are_not_known),
               LS_TEST (of_what_does_not_compile_nothing_is_known), LS_TEST (kept_calls_are_told_apart))
