/* Pins what the replay refuses or reports: mismatched collectives, deadlocks,
 * unequal messages; and that several runs can live side by side. */
#include "ls_test.h"

#include <lockstep/error.h>

#include "hand_trace.h"

#include "cluster/route.h"
#include "exec/replay/rank.h"

static const uint32_t pair[] = { 0, 1 };

static void
mismatched_collectives_name_both_sides (void)
{
  Hand *h = hand_new (2);
  g_autoptr (GError) error = NULL;
  hand_comm (h, LS_SLOT_TP, LS_AXIS_TP, false, pair, 2);
  hand_sync (h, 0, LS_SLOT_TP, LS_STREAM_TP, LS_COLL_ALL_REDUCE, 1024);
  hand_sync (h, 1, LS_SLOT_TP, LS_STREAM_TP, LS_COLL_ALL_GATHER, 1024);
  LS_CHECK (hand_run_error (h, &error) == NULL);
  LS_CHECK (g_error_matches (error, LS_ERROR, LS_ERROR_INPUT));
  LS_CHECK_STR (
      error ? error->message : NULL,
      "communicator 0 (tp): rank 1 calls all-gather of 1024 bytes (fp16), but rank 0 called all-reduce of 1024 bytes (fp16)");
  hand_free (h);
}

static void
members_must_agree_on_algorithm_and_parts (void)
{
  Hand *h = hand_new (2);
  g_autoptr (GError) error = NULL;
  hand_comm (h, LS_SLOT_TP, LS_AXIS_TP, false, pair, 2);
  uint16_t first = hand_sync (h, 0, LS_SLOT_TP, LS_STREAM_TP, LS_COLL_ALL_TO_ALL, 1024);
  uint16_t second = hand_sync (h, 1, LS_SLOT_TP, LS_STREAM_TP, LS_COLL_ALL_TO_ALL, 1024);
  g_array_index (h->ops[0], LsOp, first).algorithm = LS_ALGORITHM_PAIRWISE;
  g_array_index (h->ops[1], LsOp, second).parts = LS_PARTS_SENT;
  h->plan->n_weights = 2;
  h->plan->weights = (uint32_t[]) { 1, 3 };
  LS_CHECK (hand_run_error (h, &error) == NULL);
  LS_CHECK_STR (
      error ? error->message : NULL,
      "communicator 0 (tp): rank 1 calls all-to-all of 1024 bytes (fp16), parts by sender, but rank 0 called all-to-all of "
      "1024 bytes (fp16), by pairwise");
  hand_free (h);
}

/* The first call never has its partner: a deadlock, had the clock started. */
static void
what_cannot_be_carried_out_ends_a_run_before_it_begins (void)
{
  Hand *h = hand_new (2);
  g_autoptr (GError) error = NULL;
  hand_comm (h, LS_SLOT_TP, LS_AXIS_TP, false, pair, 2);
  hand_sync (h, 0, LS_SLOT_TP, LS_STREAM_TP, LS_COLL_ALL_REDUCE, 1024);
  uint16_t second = hand_sync (h, 0, LS_SLOT_TP, LS_STREAM_TP, LS_COLL_ALL_GATHER, 1024);
  g_array_index (h->ops[0], LsOp, second).algorithm = LS_ALGORITHM_TREE;
  LS_CHECK (hand_run_error (h, &error) == NULL);
  LS_CHECK (g_error_matches (error, LS_ERROR, LS_ERROR_CONFLICT));
  LS_CHECK_STR (error ? error->message : NULL, "an all-gather over 2 ranks by tree: it does all-reduce");
  hand_free (h);
}

static void
call_with_root (Hand *h, uint32_t rank, LsCollKind kind, uint64_t bytes, uint32_t root)
{
  uint16_t op = hand_sync (h, rank, LS_SLOT_TP, LS_STREAM_TP, kind, bytes);
  g_array_index (h->ops[rank], LsOp, op).root = root;
}

static void
members_must_agree_on_the_root (void)
{
  Hand *h = hand_new (2);
  g_autoptr (GError) error = NULL;
  hand_comm (h, LS_SLOT_TP, LS_AXIS_TP, false, pair, 2);
  call_with_root (h, 0, LS_COLL_BROADCAST, 1024, 0);
  call_with_root (h, 1, LS_COLL_BROADCAST, 1024, 1);
  LS_CHECK (hand_run_error (h, &error) == NULL);
  LS_CHECK_STR (
      error ? error->message : NULL,
      "communicator 0 (tp): rank 1 calls broadcast of 1024 bytes (fp16), root 1, but rank 0 called broadcast of "
      "1024 bytes (fp16), root 0");
  hand_free (h);
}

/* Out of the root of a broadcast, into that of a reduction; two roots are two calls. */
static void
the_root_says_which_way_data_go (void)
{
  static const LsNetworkFidelity networks[] = { LS_NETWORK_FLOW, LS_NETWORK_STEP };
  for (guint i = 0; i < G_N_ELEMENTS (networks); i++)
    for (uint32_t root = 0; root < 2; root++) {
      Hand *h = hand_new (2);
      h->options.network = networks[i];
      hand_comm (h, LS_SLOT_TP, LS_AXIS_TP, false, pair, 2);
      for (uint32_t rank = 0; rank < 2; rank++) {
        call_with_root (h, rank, LS_COLL_BROADCAST, 3000000, root);
        call_with_root (h, rank, LS_COLL_BROADCAST, 3000000, root);
        call_with_root (h, rank, LS_COLL_REDUCE, 1000000, root);
        call_with_root (h, rank, LS_COLL_BROADCAST, 3000000, 1 - root);
      }
      g_autoptr (LsTimeline) t = hand_run (h);
      LsRoute away, back;
      ls_route (h->cluster, root, 1 - root, 0, &away);
      ls_route (h->cluster, 1 - root, root, 0, &back);
      LS_CHECK_NEAR (t ? ls_timeline_bytes (t, away.hop[0].trunk) : 0, 6e6, 1e-6);
      LS_CHECK_NEAR (t ? ls_timeline_bytes (t, back.hop[0].trunk) : 0, 4e6, 1e-6);
      hand_free (h);
    }
}

static void
unequal_messages_are_refused (void)
{
  Hand *h = hand_new (2);
  g_autoptr (GError) error = NULL;
  hand_p2p (h, 0, LS_SLOT_NEXT, true, 100);
  hand_p2p (h, 1, LS_SLOT_PREV, false, 200);
  LS_CHECK (hand_run_error (h, &error) == NULL);
  LS_CHECK_STR (error ? error->message : NULL, "rank 0 sends 100 bytes to rank 1, which expects 200");
  hand_free (h);
}

/* Both receive before they send, and the host waits: neither gets to its send. */
static void
a_cycle_is_reported_with_its_ranks (void)
{
  Hand *h = hand_new (2);
  g_autoptr (GError) error = NULL;
  for (uint32_t r = 0; r < 2; r++) {
    hand_host_sync (h, r, hand_p2p (h, r, r == 0 ? LS_SLOT_NEXT : LS_SLOT_PREV, false, 8));
    hand_p2p (h, r, r == 0 ? LS_SLOT_NEXT : LS_SLOT_PREV, true, 8);
  }
  LS_CHECK (hand_run_error (h, &error) == NULL);
  LS_CHECK (g_error_matches (error, LS_ERROR, LS_ERROR_DEADLOCK));
  LS_CHECK_STR (
      error ? error->message : NULL,
      "deadlock: 2 of 2 ranks wait and no event is left\n"
      "  rank 0 waits in p2p (segment hand-written, micro-batch 0, chunk 0, op 0): no matching send or receive from rank 1\n"
      "  rank 1 waits in p2p (segment hand-written, micro-batch 0, chunk 0, op 0): no matching send or receive from rank 0\n"
      "  cycle: back to rank 0");
  hand_free (h);
}

static void
a_missing_member_is_named (void)
{
  Hand *h = hand_new (2);
  g_autoptr (GError) error = NULL;
  hand_comm (h, LS_SLOT_DP, LS_AXIS_DP, false, pair, 2);
  hand_sync (h, 0, LS_SLOT_DP, LS_STREAM_DP, LS_COLL_ALL_REDUCE, 1024);
  hand_kernel (h, 0, LS_TAG_F, LS_US);
  hand_kernel (h, 1, LS_TAG_F, LS_US);
  LS_CHECK (hand_run_error (h, &error) == NULL);
  LS_CHECK (g_error_matches (error, LS_ERROR, LS_ERROR_DEADLOCK));
  LS_CHECK (error && strstr (error->message, "all-reduce on the dp communicator; missing: rank 1") != NULL);
  hand_free (h);
}

/* An event that nobody records is a deadlock too. */
static void
an_event_never_recorded_is_reported (void)
{
  Hand *h = hand_new (1);
  g_autoptr (GError) error = NULL;
  LsOp wait = ls_op_blank (LS_OP_WAIT, LS_STREAM_COMPUTE, LS_TAG_SYNC, "wait");
  wait.event = 1;
  hand_op (h, 0, wait, NULL, 0);
  LS_CHECK (hand_run_error (h, &error) == NULL);
  LS_CHECK (error && strstr (error->message, "its event is never recorded") != NULL);
  hand_free (h);
}

/* Record on one stream, wait on another: 3 us of kernel, then 2 us. */
static void
events_order_streams (void)
{
  Hand *h = hand_new (1);
  hand_kernel (h, 0, LS_TAG_F, 3 * LS_US);
  LsOp record = ls_op_blank (LS_OP_RECORD, LS_STREAM_COPY, LS_TAG_SYNC, "record");
  record.event = 2;
  LsDep compute = { LS_DEP_STREAM, LS_STREAM_COMPUTE };
  LsOp copy = ls_op_blank (LS_OP_COPY, LS_STREAM_COPY, LS_TAG_SYNC, "copy");
  copy.recorded = 5 * LS_US;
  hand_op (h, 0, copy, &compute, 1);
  hand_op (h, 0, record, NULL, 0);
  LsOp wait = ls_op_blank (LS_OP_WAIT, LS_STREAM_COMPUTE, LS_TAG_SYNC, "wait");
  wait.event = 2;
  hand_op (h, 0, wait, NULL, 0);
  hand_kernel (h, 0, LS_TAG_F, 2 * LS_US);
  g_autoptr (LsTimeline) t = hand_run (h);
  LS_CHECK_INT (t->window_end, ==, 10 * LS_US);
  LS_CHECK_INT (t->n_ops, ==, 5 * h->options.n_steps);
  hand_free (h);
}

/* Rank 0 copies for some 70 us a step, and rank 1 computes for 100 us: as the second step of rank 1 ends, the
 * third copy runs. The host of rank 0 waits for it, or the next kernel does. */
static void
what_holds_a_rank_up_at_the_end_is_told (void)
{
  for (int is_host = 0; is_host < 2; is_host++) {
    Hand *h = hand_new (2);
    uint16_t copy = hand_copy (h, 0, LS_COPY_TO_HOST, 1750 * 1000);
    if (is_host)
      hand_host_sync (h, 0, copy);
    else
      hand_join (h, 0, copy);
    hand_kernel (h, 0, LS_TAG_F, LS_US);
    hand_kernel (h, 1, LS_TAG_F, 100 * LS_US);
    h->options.n_steps = 2;
    g_autoptr (LsTimeline) t = hand_run (h);
    if (t) {
      const LsRankSpans *r = &t->ranks[0];
      LS_CHECK_INT (r->tail_cause_kind, ==, is_host ? LS_CAUSE_HOST : LS_CAUSE_DEP);
      LS_CHECK (r->tail_cause < r->n && r->spans[r->tail_cause].step == 2
                && r->spans[r->tail_cause].op == copy);
    }
    hand_free (h);
  }
}

/* A kernel of 40 us runs alone in the rank's own time only if nothing can start
 * beside it: this collective is issued 4 us into it and slows it by its 8/32 of the
 * SMs while it lasts, T, and so does that of the next step, which follows at once,
 * for nobody waits for them: 40 us + T/4 + T/4. */
static void
a_late_issue_still_meets_the_kernel (void)
{
  Hand *h = hand_new (2);
  hand_comm (h, LS_SLOT_DP, LS_AXIS_DP, false, pair, 2);
  for (uint32_t r = 0; r < 2; r++) {
    hand_kernel (h, r, LS_TAG_F, 40 * LS_US);
    LsOp delay = ls_op_blank (LS_OP_HOST_DELAY, LS_STREAM_COMPUTE, LS_TAG_SYNC, "python");
    delay.recorded = 4 * LS_US;
    hand_op (h, r, delay, NULL, 0);
    LsOp op = ls_op_blank (LS_OP_COLLECTIVE, LS_STREAM_DP, LS_TAG_SYNC, "collective");
    op.slot = LS_SLOT_DP;
    op.coll = LS_COLL_ALL_REDUCE;
    op.bytes = 1 << 20;
    op.dtype = LS_DTYPE_FP16;
    hand_op (h, r, op, NULL, 0);
  }
  LsTime comm = hand_coll_time (h, LS_COLL_ALL_REDUCE, 1 << 20, pair, 2);
  LS_CHECK_INT (2 * comm, <, 36 * LS_US);
  g_autoptr (LsTimeline) t = hand_run (h);
  LS_CHECK_INT (ABS (t->window_end - (40 * LS_US + comm / 2)), <=, 2);
  hand_free (h);
}

/* Three kernels of 5 us as one op, 20 us each to launch: the first starts at 20 us, the host goes on
 * at 60; then two views of 3 us, and one more launch. */
static void
a_repeated_op_starts_with_its_first_launch (void)
{
  Hand *h = hand_new (1);
  h->options.host.cost[LS_HOST_LAUNCH] = 20 * LS_US;
  h->options.host.cost[LS_HOST_VIEW] = 3 * LS_US;
  LsOp kernels = ls_op_blank (LS_OP_KERNEL, LS_STREAM_COPY, LS_TAG_F, "copies");
  kernels.recorded = 5 * LS_US;
  kernels.host = LS_HOST_LAUNCH;
  kernels.repeat = 3;
  hand_op (h, 0, kernels, NULL, 0);
  LsOp views = ls_op_blank (LS_OP_HOST_DELAY, LS_STREAM_COMPUTE, LS_TAG_SYNC, "views");
  views.recorded = 0;
  views.host = LS_HOST_VIEW;
  views.repeat = 2;
  hand_op (h, 0, views, NULL, 0);
  hand_kernel (h, 0, LS_TAG_F, LS_US);
  g_autoptr (LsTimeline) t = hand_run (h);
  LS_CHECK_INT (t->ranks[0].spans[0].start, ==, 20 * LS_US);
  LS_CHECK_INT (t->ranks[0].spans[0].end, ==, 35 * LS_US);
  LS_CHECK_INT (t->window_end, ==, (60 + 6 + 20 + 1) * LS_US); /* hand_kernel() has a launch too */
  hand_free (h);
}

static void
only_kernels_and_delays_repeat (void)
{
  Hand *h = hand_new (2);
  g_autoptr (GError) error = NULL;
  LsOp copy = ls_op_blank (LS_OP_COPY, LS_STREAM_COPY, LS_TAG_SYNC, "copy");
  copy.recorded = LS_US;
  copy.repeat = 2;
  hand_op (h, 0, copy, NULL, 0);
  hand_freeze (h);
  LS_CHECK (!ls_plan_check (h->plan, &error));
  LS_CHECK (error && strstr (error->message, "repeat 2: only kernels and host delays have it") != NULL);
  hand_free (h);
}

/* PCIe of the tiny cluster: 31.5 GB/s at 0.8; GPUs 0 and 1 are behind one switch and
 * share its uplink to the CPU, GPUs 0 and 2 are not. Latency: GPU, uplink, memory. */
static LsTime
copy_time (uint32_t n_ranks, uint32_t other_gpu)
{
  Hand *h = hand_new (n_ranks);
  if (n_ranks > 1)
    ls_plan_gpus (h->plan)[1] = other_gpu;
  for (uint32_t r = 0; r < n_ranks; r++) {
    hand_join (h, r, hand_copy (h, r, LS_COPY_TO_HOST, 252000000));
    hand_kernel (h, r, LS_TAG_F, LS_US);
  }
  g_autoptr (LsTimeline) t = hand_run (h);
  LsTime time = t ? t->window_end - LS_US : 0;
  hand_free (h);
  return time;
}

/* What the CPU does for a rank (offloaded optimizers) needs memory that it does it in: with a node
 * of NVSwitches only there is no way to it, with PCIe and no CPU none at its end. */
static void
work_in_the_host_wants_its_memory (void)
{
  for (uint32_t n_switches = 0; n_switches <= 1; n_switches++) {
    Hand *h = hand_new (1);
    LsClusterSpec spec = tiny_dgx (1);
    spec.server.cpu_sockets = spec.server.nvme_drives = spec.nics.n = spec.network.rails = 0;
    spec.server.pcie_switches = n_switches;
    ls_cluster_free (h->cluster);
    h->cluster = ls_cluster_build (&spec, NULL);
    g_autoptr (GError) error = NULL;
    uint16_t op = hand_copy (h, 0, LS_COPY_IN_HOST, 1000);
    LS_CHECK (h->cluster != NULL && hand_run_error (h, &error) == NULL);
    LS_CHECK (g_error_matches (error, LS_ERROR, LS_ERROR_CONFLICT));
    LS_CHECK (error
              && g_str_has_suffix (error->message, " works in the memory of CPUs, but the nodes have none"));
    h->plan->segments[h->plan->programs[0].instances[0].segment].ops[op].recorded = LS_MS; /* loads nothing */
    g_autoptr (LsTimeline) t = hand_run (h);
    LS_CHECK (t && t->window_end == LS_MS);
    hand_free (h);
  }
}

/* Hosts of 4 chips and 512 GiB: what each of 8 chips offloads fits as a host has four of them, not a slice. */
static void
chips_share_the_memory_of_their_host (void)
{
  static const uint64_t gib[] = { 128, 129 };
  for (guint i = 0; i < G_N_ELEMENTS (gib); i++) {
    Hand *h = hand_new (8);
    LsClusterSpec spec = tiny_torus (1, 4, 2, 0, LS_WRAP_FULL_AXES);
    ls_cluster_free (h->cluster);
    h->cluster = ls_cluster_build (&spec, NULL);
    for (uint32_t r = 0; r < 8; r++)
      hand_kernel (h, r, LS_TAG_F, LS_US);
    hand_freeze (h);
    for (uint32_t r = 0; r < 8; r++)
      h->plan->programs[r].host_bytes = gib[i] << 30;
    g_autoptr (GError) error = NULL;
    g_autoptr (LsTimeline) t = hand_run_error (h, &error);
    bool fits = t != NULL;
    LS_CHECK (fits == (i == 0));
    LS_CHECK (fits || g_str_has_prefix (error->message, "what is offloaded to the memory of node 0"));
    hand_free (h);
  }
}

static void
copies_share_the_pcie_that_they_cross (void)
{
  LsTime latency = LS_US / 2 + LS_US / 2 + LS_US / 10;
  LS_CHECK_INT (copy_time (1, 0), ==, latency + 10 * LS_MS); /* 252 MB at 25.2 GB/s */
  LS_CHECK_INT (copy_time (2, 1), ==, latency + 20 * LS_MS);
  LS_CHECK_INT (copy_time (2, 2), ==, latency + 10 * LS_MS);
}

/* Two directions, two engines; a kernel beside them keeps all its SMs. */
static void
copies_both_ways_leave_the_sms_alone (void)
{
  Hand *h = hand_new (1);
  LsOp back = ls_op_blank (LS_OP_COPY, LS_STREAM_DP, LS_TAG_SYNC, "copy");
  back.direction = LS_COPY_TO_DEVICE;
  back.bytes = 252000000;
  hand_join (h, 0, hand_copy (h, 0, LS_COPY_TO_HOST, 252000000));
  hand_join (h, 0, hand_op (h, 0, back, NULL, 0));
  hand_op (h, 0, ls_op_blank (LS_OP_RECORD, LS_STREAM_COPY, LS_TAG_SYNC, "nothing"), NULL, 0);
  g_array_index (h->ops[0], LsOp, 2).event = LS_EVENT_NONE;
  LsOp kernel = ls_op_blank (LS_OP_KERNEL, LS_STREAM_TP, LS_TAG_F, "kernel");
  kernel.recorded = 4 * LS_MS;
  hand_op (h, 0, kernel, NULL, 0);
  hand_kernel (h, 0, LS_TAG_F, LS_US);
  g_autoptr (LsTimeline) t = hand_run (h);
  LsTime latency = LS_US / 2 + LS_US / 2 + LS_US / 10;
  LS_CHECK_INT (t ? t->window_end : 0, ==, latency + 10 * LS_MS + LS_US);
  for (uint32_t i = 0; t && i < t->ranks[0].n; i++)
    if (g_str_equal (ls_span_op (t, 0, &t->ranks[0].spans[i])->name, "kernel")
        && t->ranks[0].spans[i].end != LS_TIME_NEVER)
      LS_CHECK_INT (t->ranks[0].spans[i].end - t->ranks[0].spans[i].start, ==, t->ranks[0].spans[i].alone);
  hand_free (h);
}

/* Equal steps stop the run after the second. */
static void
a_repeating_period_stops_the_run (void)
{
  Hand *h = hand_new (1);
  h->options.n_steps = 50;
  hand_kernel (h, 0, LS_TAG_F, 7 * LS_US);
  g_autoptr (LsTimeline) t = hand_run (h);
  LS_CHECK_INT (t->n_steps, ==, 2);
  LS_CHECK (t->is_periodic);
  LS_CHECK_INT (t->window_start, ==, 7 * LS_US);
  LS_CHECK_INT (t->window_end, ==, 14 * LS_US);
  hand_free (h);
}

static gpointer
run_many (gpointer data)
{
  LsTime last = 0;
  for (int i = 0; i < 20; i++) {
    Hand *h = hand_new (2);
    hand_comm (h, LS_SLOT_TP, LS_AXIS_TP, false, pair, 2);
    for (uint32_t r = 0; r < 2; r++) {
      hand_kernel (h, r, LS_TAG_F, 10 * LS_US);
      hand_sync (h, r, LS_SLOT_TP, LS_STREAM_TP, LS_COLL_ALL_REDUCE, 1 << 20);
      hand_kernel (h, r, LS_TAG_F, 10 * LS_US);
    }
    LsTimeline *t = hand_run_error (h, NULL);
    last = t ? t->window_end : -1;
    ls_timeline_free (t);
    hand_free (h);
  }
  return GSIZE_TO_POINTER ((gsize) last);
}

static void
runs_do_not_share_state (void)
{
  GThread *a = g_thread_new ("a", run_many, NULL), *b = g_thread_new ("b", run_many, NULL);
  gpointer x = g_thread_join (a), y = g_thread_join (b);
  LS_CHECK (x == y && x != NULL);
}

/* Alone, message by message, a ring of equal links takes as long as its phases; with more
 * and more memory a run is refused for its plan, then for its messages, then not at all. */
static void
messages_run_or_are_refused_for_their_memory (void)
{
  static const uint32_t all[] = { 0, 1, 2, 3, 4, 5, 6, 7 };
  bool were_refused = false;
  for (uint64_t memory = 1024; memory < UINT64_C (1) << 30; memory += memory / 8) {
    Hand *h = hand_new (8);
    g_autoptr (GError) error = NULL;
    LsTime phases = 0;
    hand_comm (h, LS_SLOT_TP, LS_AXIS_TP, false, all, 8);
    for (uint64_t size = 64; size < 84; size++) { /* MiB */
      for (uint32_t r = 0; r < 8; r++)
        hand_sync (h, r, LS_SLOT_TP, LS_STREAM_TP, LS_COLL_ALL_REDUCE, size << 20);
      phases += hand_coll_time (h, LS_COLL_ALL_REDUCE, size << 20, all, 8);
    }
    h->options.network = LS_NETWORK_STEP;
    h->options.max_memory_bytes = memory;
    g_autoptr (LsTimeline) t = hand_run_error (h, &error);
    if (t) {
      LS_CHECK_INT (ABS (t->window_end - phases), <=, 20 * 14); /* rounded up in each message */
      memory = UINT64_C (1) << 40;
    } else {
      LS_CHECK (g_error_matches (error, LS_ERROR, LS_ERROR_LIMIT));
      were_refused = were_refused
          || (error && strstr (error->message, "the messages of all-reduce over 8 ranks need"));
    }
    hand_free (h);
  }
  LS_CHECK (were_refused);
}

/* The lowering, which does not see network/, writes collectives as numbers. */
/* What --help, README.md and host.c's sources say; no golden job waits for all of them. */
static void
host_costs_are_as_documented (void)
{
  LsHostCosts costs;
  ls_host_costs_default (&costs);
  LS_CHECK_INT (costs.cost[LS_HOST_LAUNCH], ==, 10 * LS_US);
  LS_CHECK_INT (costs.cost[LS_HOST_COMM], ==, 20 * LS_US);
  LS_CHECK_INT (costs.cost[LS_HOST_FREE], ==, 0);
  LS_CHECK_INT (costs.cost[LS_HOST_SYNC], ==, 10 * LS_US);
  LS_CHECK_INT (costs.cost[LS_HOST_VIEW], ==, 2 * LS_US);
  LS_CHECK_INT (costs.cost[LS_HOST_BATCH], ==, 513 * LS_US);
  LS_CHECK_INT (costs.cost[LS_HOST_PRODUCT], ==, 33 * LS_US);
  LS_CHECK_INT (costs.cost[LS_HOST_PYTHON], ==, 1 * LS_US);
}

/* Pins: what stands in a stream is begun, and what holds SMs is communication. */
static void
each_kind_of_op_is_begun (void)
{
  for (uint8_t kind = 0; kind < LS_N_OP_KINDS; kind++) {
    LS_CHECK ((op_begins[kind].begin == NULL) == ls_op_is_of_host (kind));
    LS_CHECK ((op_begins[kind].sm_share != NULL) == ls_op_is_communication (kind));
  }
}

LS_TEST_SUITE (LS_TEST (each_kind_of_op_is_begun), LS_TEST (mismatched_collectives_name_both_sides),
               LS_TEST (members_must_agree_on_algorithm_and_parts),
               LS_TEST (what_cannot_be_carried_out_ends_a_run_before_it_begins),
               LS_TEST (members_must_agree_on_the_root), LS_TEST (the_root_says_which_way_data_go),
               LS_TEST (unequal_messages_are_refused), LS_TEST (a_cycle_is_reported_with_its_ranks),
               LS_TEST (a_missing_member_is_named), LS_TEST (an_event_never_recorded_is_reported),
               LS_TEST (events_order_streams), LS_TEST (what_holds_a_rank_up_at_the_end_is_told),
               LS_TEST (a_late_issue_still_meets_the_kernel),
               LS_TEST (a_repeated_op_starts_with_its_first_launch), LS_TEST (only_kernels_and_delays_repeat),
               LS_TEST (work_in_the_host_wants_its_memory), LS_TEST (chips_share_the_memory_of_their_host),
               LS_TEST (copies_share_the_pcie_that_they_cross),
               LS_TEST (copies_both_ways_leave_the_sms_alone), LS_TEST (a_repeating_period_stops_the_run),
               LS_TEST (runs_do_not_share_state), LS_TEST (messages_run_or_are_refused_for_their_memory),
               LS_TEST (host_costs_are_as_documented))
