/* Pins the critical path. By hand, to the picosecond: through a transfer and a late member of a collective to
 * the rank that came last, the host, groups of transfers, a queue, communication that waited for SMs, a
 * kernel of another stream, the edges of the window, causes that run in a circle; and that the step follows
 * ops on the path and no others. On random jobs: pieces lie end to end from edge to edge of the window,
 * nothing is left unexplained, and folded jobs have the same path. LS_CASES says how many. */
#include "ls_test.h"

#include "hand_trace.h"
#include "random_job.h"
#include "trace.h"

#include "analysis/critical_path.h"

#define US LS_US
#define MB (UINT64_C (1) << 20)

typedef struct {
  LsPathKind kind;
  uint32_t rank;
  LsTime length;
} Expected;

static void
check_pieces (const LsCriticalPath *path, const Expected *expected, guint n)
{
  LS_CHECK_INT (path->pieces->len, ==, n);
  LsTime at = path->timeline->window_start;
  for (guint i = 0; i < MIN (n, path->pieces->len); i++) {
    const LsPathPiece *p = &g_array_index (path->pieces, LsPathPiece, i);
    ls_check_impl (p->kind == expected[i].kind && p->rank == expected[i].rank
                       && p->to - p->from == expected[i].length && p->from == at,
                   __FILE__, __LINE__,
                   "piece %u: %s of rank %u, %" G_GINT64_FORMAT " ps from %" G_GINT64_FORMAT, i,
                   ls_path_kind_names[p->kind], p->rank, p->to - p->from, p->from);
    at = p->to;
  }
  LS_CHECK_INT (at, ==, path->timeline->window_end);
}
#define CHECK_PIECES(path, ...)                                                                              \
  do {                                                                                                       \
    const Expected expected_[] = { __VA_ARGS__ };                                                            \
    check_pieces ((path), expected_, G_N_ELEMENTS (expected_));                                              \
  } while (0)

static LsCriticalPath *
path_of (const LsTimeline *t)
{
  g_autoptr (GError) error = NULL;
  LsCriticalPath *path = ls_critical_path_new (t, NULL, NULL, &error);
  LS_CHECK_NO_ERROR (error);
  return path;
}

static LsCriticalPath *
path_of_hand (const Hand *h, const LsTimeline *t)
{
  g_autoptr (GError) error = NULL;
  LsCriticalPath *path = ls_critical_path_new (t, h->cluster, &h->nccl, &error);
  LS_CHECK_NO_ERROR (error);
  return path;
}

/* --- jobs of two ranks, run by the engine --- */

/* The example of critical_path.h: base_p2p_intra is the 5 us of latency. */
static void
through_a_transfer_to_the_sender (void)
{
  static const uint32_t pair[] = { 0, 1 };
  Hand *h = hand_new (2);
  hand_kernel (h, 0, LS_TAG_F, 10 * US);
  hand_p2p (h, 0, LS_SLOT_NEXT, true, 4 * MB);
  hand_join (h, 1, hand_p2p (h, 1, LS_SLOT_PREV, false, 4 * MB));
  hand_kernel (h, 1, LS_TAG_F, 3 * US);
  LsTime comm = hand_coll_time (h, LS_COLL_SEND_RECV, 4 * MB, pair, 2);
  g_autoptr (LsTimeline) t = hand_run (h);
  g_autoptr (LsCriticalPath) path = path_of_hand (h, t);
  CHECK_PIECES (path, { LS_PATH_KERNEL, 0, 10 * US }, { LS_PATH_LATENCY, 1, 5 * US },
                { LS_PATH_MOVING, 1, comm - 5 * US }, { LS_PATH_KERNEL, 1, 3 * US });
  const LsPathPiece *moving = &g_array_index (path->pieces, LsPathPiece, 2);
  g_autofree char *link = ls_cluster_resource_name (h->cluster, moving->link);
  LS_CHECK_STR (link, "node0/gpu0>nvswitch");
  LS_CHECK_INT (moving->n_links, ==, 2); /* and the way down to GPU 1 */
  LS_CHECK (moving->busy_s > 0 && moving->busy_s <= ls_time_to_s (moving->to - moving->from));
  LS_CHECK_STR (ls_path_name (path, moving), "p2p");
  hand_free (h);
}

/* On its way out, 1.1 us long. */
static void
a_copy_is_limited_by_a_link (void)
{
  Hand *h = hand_new (1);
  hand_join (h, 0, hand_copy (h, 0, LS_COPY_TO_HOST, 4 * MB));
  hand_kernel (h, 0, LS_TAG_F, 3 * US);
  g_autoptr (LsTimeline) t = hand_run (h);
  g_autoptr (LsCriticalPath) path = path_of_hand (h, t);
  const LsPathPiece *moving = &g_array_index (path->pieces, LsPathPiece, 1);
  LsTime latency = 1100 * LS_NS, comm = moving->to - moving->from;
  CHECK_PIECES (path, { LS_PATH_LATENCY, 0, latency }, { LS_PATH_MOVING, 0, comm },
                { LS_PATH_KERNEL, 0, 3 * US });
  g_autofree char *link = ls_cluster_resource_name (h->cluster, moving->link);
  LS_CHECK_STR (link, "node0/gpu0>pcie0");
  LS_CHECK_NEAR (moving->busy_s, ls_time_to_s (comm), 1e-9);
  hand_free (h);
}

/* Rank 1 comes 7 us late; the path is its, and the reduction's. */
static LsTimeline *
late_member (Hand *h, LsTime of_0, LsTime of_1)
{
  static const uint32_t pair[] = { 0, 1 };
  hand_comm (h, LS_SLOT_DP, LS_AXIS_DP, false, pair, 2);
  for (uint32_t r = 0; r < 2; r++) {
    hand_kernel (h, r, LS_TAG_F, r == 0 ? of_0 : of_1);
    hand_sync (h, r, LS_SLOT_DP, LS_STREAM_DP, LS_COLL_ALL_REDUCE, MB);
    hand_kernel (h, r, LS_TAG_OPTIMIZER, US);
  }
  return hand_run (h);
}

static void
through_a_collective_to_the_last_member (void)
{
  static const uint32_t pair[] = { 0, 1 };
  Hand *h = hand_new (2);
  g_autoptr (LsTimeline) t = late_member (h, 10 * US, 17 * US);
  LsTime comm = hand_coll_time (h, LS_COLL_ALL_REDUCE, MB, pair, 2);
  g_autoptr (LsCriticalPath) path = path_of_hand (h, t);
  CHECK_PIECES (path, { LS_PATH_KERNEL, 1, 17 * US }, { LS_PATH_LATENCY, 0, 10 * US },
                { LS_PATH_MOVING, 0, comm - 10 * US }, { LS_PATH_KERNEL, 0, US });
  hand_free (h);
}

/* Issued after 20 us, beside a kernel whose blocks it waits for. */
static void
a_wait_for_the_blocks_of_a_kernel_is_a_queue (void)
{
  static const uint32_t pair[] = { 0, 1 };
  Hand *h = hand_new (2);
  h->calibration.around.priority_wait = 10 * US;
  h->options.host.cost[LS_HOST_COMM] = 20 * US;
  hand_comm (h, LS_SLOT_TP, LS_AXIS_TP, false, pair, 2);
  for (uint32_t r = 0; r < 2; r++) {
    hand_kernel (h, r, LS_TAG_F, 35 * US);
    uint16_t op = hand_sync (h, r, LS_SLOT_TP, LS_STREAM_TP, LS_COLL_ALL_REDUCE, MB);
    g_array_index (h->ops[r], LsOp, op).n_deps = 0;
    hand_kernel (h, r, LS_TAG_F, US);
  }
  g_autoptr (LsTimeline) t = hand_run (h);
  LsTime comm = hand_coll_time (h, LS_COLL_ALL_REDUCE, MB, pair, 2);
  g_autoptr (LsCriticalPath) path = path_of_hand (h, t);
  CHECK_PIECES (path, { LS_PATH_HOST, 0, 20 * US }, { LS_PATH_QUEUE, 0, 10 * US },
                { LS_PATH_LATENCY, 0, 10 * US }, { LS_PATH_MOVING, 0, comm - 10 * US },
                { LS_PATH_KERNEL, 0, US });
  hand_free (h);
}

/* What is on the path makes the step longer by as much, what is not by nothing. */
static void
the_step_follows_its_path (void)
{
  static const LsTime longer[][2] = { { 0, 0 }, { US, 0 }, { 0, US } };
  LsTime step[3];
  for (int i = 0; i < 3; i++) {
    Hand *h = hand_new (2);
    g_autoptr (LsTimeline) t = late_member (h, 10 * US + longer[i][0], 17 * US + longer[i][1]);
    step[i] = t->window_end;
    hand_free (h);
  }
  LS_CHECK_INT (step[1], ==, step[0]);
  LS_CHECK_INT (step[2], ==, step[0] + US);
}

/* 4 us to issue each, 1 us to run: 4 + (3) + ... ; the kernels in between end before the next
 * is issued, so only the last is on the path. */
static void
a_slow_host_is_the_path (void)
{
  Hand *h = hand_new (1);
  h->options.host.cost[LS_HOST_LAUNCH] = 4 * US;
  for (int i = 0; i < 3; i++)
    hand_kernel (h, 0, LS_TAG_F, US);
  g_autoptr (LsTimeline) t = hand_run (h);
  g_autoptr (LsCriticalPath) path = path_of_hand (h, t);
  CHECK_PIECES (path, { LS_PATH_HOST, 0, 12 * US }, { LS_PATH_KERNEL, 0, US });
  hand_free (h);
}

/* The host goes on 2 us after the reduction that it waited for. */
static void
a_host_that_waited_leads_to_what_it_waited_for (void)
{
  static const uint32_t pair[] = { 0, 1 };
  Hand *h = hand_new (2);
  h->options.host.cost[LS_HOST_SYNC] = 2 * US;
  hand_comm (h, LS_SLOT_DP, LS_AXIS_DP, false, pair, 2);
  for (uint32_t r = 0; r < 2; r++) {
    hand_host_sync (h, r, hand_async (h, r, LS_SLOT_DP, LS_STREAM_DP, LS_COLL_ALL_REDUCE, MB));
    hand_kernel (h, r, LS_TAG_OPTIMIZER, US);
  }
  LsTime comm = hand_coll_time (h, LS_COLL_ALL_REDUCE, MB, pair, 2);
  g_autoptr (LsTimeline) t = hand_run (h);
  g_autoptr (LsCriticalPath) path = path_of_hand (h, t);
  CHECK_PIECES (path, { LS_PATH_LATENCY, 0, 10 * US }, { LS_PATH_MOVING, 0, comm - 10 * US },
                { LS_PATH_HOST, 0, 2 * US }, { LS_PATH_KERNEL, 0, US });
  hand_free (h);
}

/* --- timelines written by hand --- */

static void
trace_begin (Trace *trace, uint32_t n_ranks, LsTime from, LsTime to)
{
  trace_init (trace, n_ranks, from, to);
  trace->t.n_steps = 1;
}

/* A kernel of 40 alone took 60, from before the window: half of it counts. */
static void
the_window_cuts (void)
{
  Trace trace;
  trace_begin (&trace, 1, 100, 150);
  TRACE_ADD (&trace, 0, { OP_F, 70, 40, 130, LS_CAUSE_NONE, NONE },
             { OP_B, 130, 20, 150, LS_CAUSE_STREAM, 0 });
  g_autoptr (LsCriticalPath) path = path_of (&trace.t);
  CHECK_PIECES (path, { LS_PATH_KERNEL, 0, 20 }, { LS_PATH_SLOWDOWN, 0, 10 }, { LS_PATH_KERNEL, 0, 20 });
}

/* The second kernel had all it needs at 10, and the GPU ran one of another stream until 40. */
static void
a_kernel_of_another_stream_is_in_the_way (void)
{
  Trace trace;
  trace_begin (&trace, 1, 0, 50);
  TRACE_ADD (&trace, 0, { OP_F, 0, 10, 10, LS_CAUSE_NONE, NONE },
             { OP_SIDE_KERNEL, 10, 30, 40, LS_CAUSE_NONE, NONE }, { OP_B, 40, 10, 50, LS_CAUSE_STREAM, 0 });
  g_autoptr (LsCriticalPath) path = path_of (&trace.t);
  CHECK_PIECES (path, { LS_PATH_KERNEL, 0, 10 }, { LS_PATH_KERNEL, 0, 30 }, { LS_PATH_KERNEL, 0, 10 });
}

static void
a_circle_is_left (void)
{
  Trace trace;
  trace_begin (&trace, 1, 0, 50);
  TRACE_ADD (&trace, 0, { OP_TP, 20, 20, 30, LS_CAUSE_DEP, 1 }, { OP_DP, 20, 20, 20, LS_CAUSE_DEP, 2 },
             { OP_CP, 20, 20, 20, LS_CAUSE_DEP, 1 }, { OP_F, 30, 20, 50, LS_CAUSE_DEP, 0 });
  g_autoptr (LsCriticalPath) path = path_of (&trace.t);
  CHECK_PIECES (path, { LS_PATH_OTHER, 0, 20 }, { LS_PATH_MOVING, 0, 10 }, { LS_PATH_KERNEL, 0, 20 });
}

static void
nothing_ended_in_the_window (void)
{
  Trace trace;
  trace_begin (&trace, 1, 0, 50);
  g_autoptr (LsCriticalPath) path = path_of (&trace.t);
  CHECK_PIECES (path, { LS_PATH_OTHER, 0, 50 });
  LS_CHECK_STR (ls_path_name (path, &g_array_index (path->pieces, LsPathPiece, 0)), "nothing");
}

/* Two ranks, each the other's neighbour both ways, that send and receive in one group. */
static const LsTransfer both_ways[] = { { 1, LS_SLOT_NEXT, true }, { 1, LS_SLOT_PREV, false } };

static void
trace_ring (Trace *trace, uint16_t n_transfers)
{
  trace->ops[OP_P2P].transfers = both_ways;
  trace->ops[OP_P2P].n_transfers = n_transfers;
  for (uint32_t r = 0; r < 2; r++)
    trace->bindings[r].peer[0] = trace->bindings[r].peer[1] = 1 - r;
}

/* Rank 1 came at 30, ten later than rank 0. */
static void
a_group_leads_to_who_came_last (void)
{
  Trace trace;
  trace_begin (&trace, 2, 0, 60);
  trace_ring (&trace, 2);
  TRACE_ADD (&trace, 0, { OP_F, 0, 20, 20, LS_CAUSE_NONE, NONE }, { OP_P2P, 20, 30, 50, LS_CAUSE_DEP, 0 },
             { OP_B, 50, 10, 60, LS_CAUSE_DEP, 1 });
  TRACE_ADD (&trace, 1, { OP_F, 0, 30, 30, LS_CAUSE_NONE, NONE }, { OP_P2P, 30, 30, 50, LS_CAUSE_DEP, 0 });
  g_autoptr (LsCriticalPath) path = path_of (&trace.t);
  CHECK_PIECES (path, { LS_PATH_KERNEL, 1, 30 }, { LS_PATH_MOVING, 0, 20 }, { LS_PATH_KERNEL, 0, 10 });
}

/* A role for each rank, whose p2p op has transfers of its own; neighbours in a ring. */
typedef struct {
  LsOp ops[MAX_RANKS][N_OPS];
  LsSegment segments[MAX_RANKS];
  LsInstance instances[MAX_RANKS];
  LsProgram programs[MAX_RANKS];
} Roles;

static void
trace_roles (Trace *trace, Roles *roles, const LsTransfer *const *transfers, const uint16_t *n_transfers)
{
  uint32_t n = trace->plan.n_ranks;
  for (uint32_t r = 0; r < n; r++) {
    memcpy (roles->ops[r], trace->ops, sizeof trace->ops);
    roles->ops[r][OP_P2P].transfers = transfers[r];
    roles->ops[r][OP_P2P].n_transfers = n_transfers[r];
    roles->segments[r] = (LsSegment) { .name = "own", .n_ops = N_OPS, .ops = roles->ops[r] };
    roles->instances[r] = (LsInstance) { .segment = r };
    roles->programs[r] = (LsProgram) { .n_instances = 1, .instances = &roles->instances[r] };
    trace->bindings[r].role = r;
    trace->bindings[r].peer[0] = (r + n - 1) % n;
    trace->bindings[r].peer[1] = (r + 1) % n;
  }
  trace->plan.segments = roles->segments;
  trace->plan.programs = roles->programs;
  trace->plan.n_segments = trace->plan.n_roles = n;
}

static const LsTransfer to_next = { 1, LS_SLOT_NEXT, true }, from_previous = { 1, LS_SLOT_PREV, false };

/* Both are there at 30, and an earlier transfer has the way until 40. */
static void
a_transfer_waits_for_one_before_it (void)
{
  Trace trace;
  Roles roles;
  trace_begin (&trace, 2, 0, 60);
  trace_roles (&trace, &roles, (const LsTransfer *const[]) { &to_next, &from_previous },
               (const uint16_t[]) { 1, 1 });
  TRACE_ADD (&trace, 0, { OP_F, 0, 30, 30, LS_CAUSE_NONE, NONE }, { OP_P2P, 30, 40, 50, LS_CAUSE_DEP, 0 });
  TRACE_ADD (&trace, 1, { OP_P2P, 20, 40, 50, LS_CAUSE_NONE, NONE }, { OP_F, 50, 10, 60, LS_CAUSE_DEP, 0 });
  g_autoptr (LsCriticalPath) path = path_of (&trace.t);
  CHECK_PIECES (path, { LS_PATH_KERNEL, 0, 30 }, { LS_PATH_QUEUE, 1, 10 }, { LS_PATH_MOVING, 1, 10 },
                { LS_PATH_KERNEL, 1, 10 });
}

/* Rank 1 sends to 2 and receives from 0, from 10 on, in one group that ends at 50. */
static void
a_group_of_two (LsTime came_0, LsTime end_0, LsTime came_2, uint32_t last, LsTime came)
{
  Trace trace;
  Roles roles;
  static const LsTransfer both[] = { { 1, LS_SLOT_NEXT, true }, { 1, LS_SLOT_PREV, false } };
  trace_begin (&trace, 3, 0, 60);
  trace_roles (&trace, &roles, (const LsTransfer *const[]) { &to_next, both, &from_previous },
               (const uint16_t[]) { 1, 2, 1 });
  trace_add (&trace, 0, (TestSpan) { OP_F, 0, came_0, came_0, LS_CAUSE_NONE, NONE });
  trace_add (&trace, 0, (TestSpan) { OP_P2P, came_0, came_0, end_0, LS_CAUSE_DEP, 0 });
  trace_add (&trace, 1, (TestSpan) { OP_P2P, 10, MAX (came_0, came_2), 50, LS_CAUSE_NONE, NONE });
  trace_add (&trace, 1, (TestSpan) { OP_B, 50, 10, 60, LS_CAUSE_DEP, 0 });
  trace_add (&trace, 2, (TestSpan) { OP_F, 0, came_2, came_2, LS_CAUSE_NONE, NONE });
  trace_add (&trace, 2, (TestSpan) { OP_P2P, came_2, came_2, 50, LS_CAUSE_DEP, 0 });
  g_autoptr (LsCriticalPath) path = path_of (&trace.t);
  CHECK_PIECES (path, { LS_PATH_KERNEL, last, came }, { LS_PATH_MOVING, 1, 50 - came },
                { LS_PATH_KERNEL, 1, 10 });
}

static void
a_group_ends_with_its_last_transfer (void)
{
  a_group_of_two (25, 30, 20, 2, 20); /* that of rank 0 came last, and was over before */
  a_group_of_two (30, 50, 20, 0, 30); /* both end it: the one that came last           */
  a_group_of_two (20, 50, 30, 2, 30);
}

static void
a_sample_of_ranks_is_refused (void)
{
  Trace trace;
  trace_begin (&trace, 1, 0, 50);
  trace.t.is_sampled = true;
  g_autoptr (GError) error = NULL;
  LS_CHECK (!ls_critical_path_new (&trace.t, NULL, NULL, &error));
  LS_CHECK (g_error_matches (error, LS_ERROR, LS_ERROR_LIMIT));
}

/* --- random jobs --- */

static LsTime
check_cover (const LsCriticalPath *path, guint32 seed)
{
  LsTime at = path->timeline->window_start, other = 0;
  for (guint i = 0; i < path->pieces->len; i++) {
    const LsPathPiece *p = &g_array_index (path->pieces, LsPathPiece, i);
    ls_check_impl (p->from == at && p->to > p->from, __FILE__, __LINE__,
                   "seed %u: piece %u does not begin where the last ended", seed, i);
    other += p->kind == LS_PATH_OTHER ? p->to - p->from : 0;
    at = p->to;
  }
  LS_CHECK_INT (at, ==, path->timeline->window_end);
  return other;
}

static void
check_same (const LsCriticalPath *a, const LsCriticalPath *b, guint32 seed)
{
  ls_check_impl (a->pieces->len == b->pieces->len, __FILE__, __LINE__, "seed %u: %u pieces, %u folded", seed,
                 a->pieces->len, b->pieces->len);
  for (guint i = 0; i < MIN (a->pieces->len, b->pieces->len); i++) {
    const LsPathPiece *p = &g_array_index (a->pieces, LsPathPiece, i),
                      *q = &g_array_index (b->pieces, LsPathPiece, i);
    bool same = p->from == q->from && p->kind == q->kind && p->rank == q->rank && p->span == q->span
        && p->link == q->link;
    ls_check_impl (same, __FILE__, __LINE__, "seed %u: piece %u is not the same folded", seed, i);
    if (!same)
      return;
  }
}

static void
random_jobs_are_covered (void)
{
  guint n = ls_test_cases (25, 25), n_folded = 0;
  for (guint32 seed = 1; seed <= n; seed++) {
    g_autoptr (GRand) rand = g_rand_new_with_seed (seed + 70000);
    Job j;
    if (!job_init (&j, rand))
      continue;
    LsTimeline *t[2] = { NULL, NULL };
    LsCriticalPath *path[2] = { NULL, NULL };
    for (int folded = 0; folded < 2; folded++) {
      LsRunOptions options;
      ls_run_options_init (&options);
      options.n_steps = 1 + seed % 4;
      options.slow = seed % 3 == 0 ? j.slow : NULL;
      options.fold = folded ? LS_SHORTCUT_AUTO : LS_SHORTCUT_OFF;
      g_autoptr (GError) error = NULL;
      t[folded] = ls_run (j.plan, j.cluster, &j.calibration, &nccl, &options, NULL, &error);
      LS_CHECK_NO_ERROR (error);
      path[folded] = t[folded] ? ls_critical_path_new (t[folded], j.cluster, &nccl, &error) : NULL;
      LS_CHECK_NO_ERROR (error);
    }
    LsTime other = check_cover (path[0], seed);
    ls_check_impl (other == 0, __FILE__, __LINE__,
                   "seed %u: %" G_GINT64_FORMAT " ps of the path are not explained", seed, other);
    check_cover (path[1], seed);
    check_same (path[0], path[1], seed);
    n_folded += t[1]->n_classes < t[1]->n_ranks;
    for (int i = 0; i < 2; i++) {
      ls_critical_path_free (path[i]);
      ls_timeline_free (t[i]);
    }
    job_clear (&j);
  }
  LS_CHECK (n < 25 || n_folded > n / 4);
}

LS_TEST_SUITE (LS_TEST (through_a_transfer_to_the_sender), LS_TEST (a_copy_is_limited_by_a_link),
               LS_TEST (through_a_collective_to_the_last_member),
               LS_TEST (a_wait_for_the_blocks_of_a_kernel_is_a_queue), LS_TEST (the_step_follows_its_path),
               LS_TEST (a_slow_host_is_the_path), LS_TEST (a_host_that_waited_leads_to_what_it_waited_for),
               LS_TEST (the_window_cuts), LS_TEST (a_kernel_of_another_stream_is_in_the_way),
               LS_TEST (a_circle_is_left), LS_TEST (nothing_ended_in_the_window),
               LS_TEST (a_group_leads_to_who_came_last), LS_TEST (a_transfer_waits_for_one_before_it),
               LS_TEST (a_group_ends_with_its_last_transfer), LS_TEST (a_sample_of_ranks_is_refused),
               LS_TEST (random_jobs_are_covered))
