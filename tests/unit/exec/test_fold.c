/* Pins: folding and coarsening are exact. Random small jobs on every kind of cluster, folded and with each
 * rank by itself, in pieces and op by op, have the same picoseconds, causes, bytes and digest (--fold check,
 * --coarsen check), and most of them do fold; the fast and the plain implementations by turns. By hand: what
 * splits classes and what does not, that the comparison notices a picosecond and a byte, that errors name
 * real ranks. LS_CASES says how many random jobs; 2,000 take some minutes. */
#include "ls_test.h"

#include <math.h>

#include "fabric_cluster.h"
#include "hand_trace.h"
#include "random_job.h"
#include "tiny_torus.h"

#include "exec/shortcuts/fold.h"
#include "exec/shortcuts/plan_bound.h"

typedef enum { DGX, PCIE, OVERSUBSCRIBED, ECMP, FAT_TREE, FAULTS, TORUS, UNEVEN, N_KINDS } Kind;

static const char *const kind_names[N_KINDS]
    = { "dgx", "pcie", "oversubscribed", "ecmp", "fat tree", "faults", "torus", "uneven" };

static void
degrade (GRand *rand, LsClusterSpec *spec)
{
  static const char *const links[]
      = { "node0/gpu1>nvswitch", "node1/gpu0>nvswitch", "node1/nic0>leaf0", "node2/nic3>leaf3" };
  guint n = 1 + (guint) g_rand_int_range (rand, 0, 2);
  for (guint i = 0; i < n; i++) {
    const char *link = links[(guint) g_rand_int_range (rand, 0, 2) + 2 * i];
    add_fault (spec, link, g_rand_double_range (rand, 0.2, 0.9));
  }
}

/* Else all kernels are bound by memory. */
static void
draw_compute (GRand *rand, LsGpu *gpu)
{
  bool is_bound_by_compute = g_rand_boolean (rand);
  gpu->persistent_gemms = g_rand_boolean (rand);
  for (int d = 0; d < LS_N_DTYPES && is_bound_by_compute; d++)
    gpu->peak_flops[d] = 100e12;
}

static LsClusterSpec
cluster_of (Kind kind, GRand *rand)
{
  LsClusterSpec s = kind == PCIE ? tiny_pcie (8) : kind == FAT_TREE ? tiny_fat_tree (16) : tiny_dgx (8);
  if (kind == OVERSUBSCRIBED || kind == ECMP) {
    s.nodes_per_leaf = 2;
    s.oversubscription = kind == ECMP ? 1 : 2;
    s.rails = g_rand_boolean (rand) ? 8 : 1;
  }
  if (g_rand_int_range (rand, 0, 4) == 0) /* a link that nobody uses, and the quantum of all rates */
    s.cpu_memory.bandwidth_bytes_per_s = 1e18;
  if (kind == ECMP) {
    s.routing = LS_ROUTING_ECMP;
    s.seed = g_rand_int (rand) & 0xff;
  } else if (kind == FAULTS)
    degrade (rand, &s);
  else if (kind == TORUS)
    s = tiny_torus (4, 4, 4, 0, LS_WRAP_ALL);
  else if (kind == UNEVEN) {
    s.gpus_per_node = s.nics = s.rails = 6;
    s.pcie_switches = s.cpu_sockets = 2;
    s.nvme_drives = 2;
    s.n_nodes = 11;
    s.nodes_per_leaf = 3;
  }
  draw_compute (rand, &s.gpu);
  return s;
}

/* More replicas than random_strategy() has: they are what folds. */
static void
widen (GRand *rand, LsStrategy *s)
{
  uint32_t by = pick (rand, 3, (uint32_t[]) { 1, 2, 4 });
  while (by * s->gpus > 64)
    by /= 2;
  s->dp *= by;
  s->gpus *= by;
  s->global_batch *= by;
}

/* More that repeats, and nothing beside it that could start meanwhile: receives of Megatron-LM's
 * schedules follow kernels. */
static void
repeat (LsStrategy *s)
{
  s->global_batch *= 3;
  s->dp_overlap = false;
  g_clear_pointer (&s->schedule, g_free);
  if (s->pp > 1)
    s->p2p = LS_P2P_BATCHED;
}

typedef struct {
  uint32_t n_run, n_folded, n_coarse, n_from_quiescence;
  double tightness; /* sum of bounds over steps */
} Tally;

static void
check_job (guint32 seed, Tally *tally)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (seed);
  Kind kind = (Kind) (seed % N_KINDS);
  guint32 turn = seed / N_KINDS;
  LsClusterSpec spec = cluster_of (kind, rand);
  g_autoptr (GError) error = NULL;
  g_autoptr (LsCluster) cluster = ls_cluster_build (&spec, &error);
  if (spec.faults)
    ls_cluster_spec_clear (&spec);
  LS_CHECK_NO_ERROR (error);
  if (!cluster)
    return;
  LsModel model = small_model (rand);
  LsStrategy s;
  random_strategy (rand, &s);
  widen (rand, &s);
  if (turn % 3 < 2)
    repeat (&s);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  if (!ls_strategy_resolve (&s, &model, s.gpus, cluster->spec.gpus_per_node, diags)) {
    ls_strategy_clear (&s); /* not every recipe goes with every cluster */
    return;
  }
  g_autoptr (LsPlan) plan = ls_lower (&model, &s, NULL, &error);
  LS_CHECK_NO_ERROR (error);
  LsCalibration calibration;
  ls_calibration_init_roofline (&calibration);
  double slow[64];
  for (guint i = 0; i < 64; i++)
    slow[i] = g_rand_int_range (rand, 0, 8) == 0 ? g_rand_double_range (rand, 0.9, 1.4) : 1;
  LsRunOptions options;
  ls_run_options_init (&options);
  options.n_steps = turn % 4 == 0 ? 2 : 3;
  options.steady = turn % 5 < 3;
  options.fold = turn % 4 == 3 ? LS_SHORTCUT_AUTO : LS_SHORTCUT_CHECK;
  options.coarsen = turn % 8 == 7 ? LS_SHORTCUT_OFF : LS_SHORTCUT_CHECK;
  options.slow = g_rand_int_range (rand, 0, 4) == 0 ? slow : NULL;
  options.network = g_rand_int_range (rand, 0, 8) == 0 ? LS_NETWORK_ALPHABETA : LS_NETWORK_FLOW;
  if (g_rand_boolean (
          rand)) /* ties: everything at once, but for a quiescent point (exec/shortcuts/steady.c) */
    options.host = (LsHostCosts) { .cost[LS_HOST_SYNC] = 1 };
  options.solver = seed % 5 == 0 ? LS_SOLVER_REFERENCE : LS_SOLVER_FAST;
  options.queue = seed % 7 == 0 ? LS_QUEUE_REFERENCE : LS_QUEUE_FAST;
  options.no_run_ahead = turn % 4 == 2;
  LsNccl with_stall = nccl;
  with_stall.stall_per_byte = g_rand_boolean (rand) ? 1.6 : 0;
  g_autoptr (LsTimeline) t
      = plan ? ls_run (plan, cluster, &calibration, &with_stall, &options, NULL, &error) : NULL;
  ls_check_impl (t != NULL, __FILE__, __LINE__, "seed %u on %s, tp %u pp %u dp %u: %s", seed,
                 kind_names[kind], s.tp, s.pp, s.dp, error ? error->message : "not lowered");
  if (t) {
    tally->n_run++;
    tally->n_folded += t->n_classes < t->n_ranks;
    tally->n_coarse += t->n_coarse > 0;
    tally->n_from_quiescence += t->first_step == 0;
    LsTime least = ls_plan_bound (plan, cluster, &calibration, &with_stall, &options),
           step = t->window_end - t->window_start;
    ls_check_impl (least > 0 && least <= step, __FILE__, __LINE__,
                   "seed %u on %s takes %.9g s, at least %.9g s", seed, kind_names[kind], ls_time_to_s (step),
                   ls_time_to_s (least));
    tally->tightness += ls_time_to_s (least) / ls_time_to_s (step);
  }
  ls_strategy_clear (&s);
  ls_calibration_clear (&calibration);
}

static void
random_jobs_fold_exactly (void)
{
  const char *wanted = g_getenv ("LS_CASES");
  guint n = wanted ? (guint) g_ascii_strtoull (wanted, NULL, 10) : 32;
  Tally tally = { 0 };
  for (guint32 seed = 1; seed <= n; seed++)
    check_job (seed, &tally);
  if (n < 141)
    check_job (
        141,
        &tally); /* a small kernel at 1.1 times the speed took a picosecond more as an activity: its HBM was too slow for it */
  LS_CHECK_INT (tally.n_run, >, n / 2);
  LS_CHECK_INT (tally.n_folded, >, tally.n_run / 3);
  LS_CHECK_INT (tally.n_coarse, >, tally.n_run / 4);
  LS_CHECK_INT (tally.n_from_quiescence, >, tally.n_run / 8);
  LS_CHECK (tally.tightness > 0.3 * tally.n_run);
  if (wanted)
    printf (
        "of %u jobs %u folded, %u had segments in one piece, %u began at the quiescent point; bounds are %.3f of steps\n",
        tally.n_run, tally.n_folded, tally.n_coarse, tally.n_from_quiescence, tally.tightness / tally.n_run);
}

/* --- by hand -------------------------------------------------------------------- */

/* n ranks run one program: a kernel and an all-reduce in communicators of `width`. */
static Hand *
alike (uint32_t n, uint32_t width)
{
  Hand *h = hand_new (n);
  h->options.fold = LS_SHORTCUT_CHECK;
  h->options.n_steps = 2;
  for (uint32_t r = 0; r < n; r++)
    h->plan->bindings[r].role = 0;
  for (uint32_t first = 0; first < n; first += width) {
    uint32_t ranks[HAND_MAX_RANKS];
    for (uint32_t i = 0; i < width; i++)
      ranks[i] = first + i;
    hand_comm (h, LS_SLOT_TP, LS_AXIS_TP, false, ranks, width);
  }
  hand_kernel (h, 0, LS_TAG_F, 10 * LS_US);
  hand_sync (h, 0, LS_SLOT_TP, LS_STREAM_TP, LS_COLL_ALL_REDUCE, 1 << 20);
  hand_kernel (h, 0, LS_TAG_F, 10 * LS_US);
  return h;
}

/* expected: [n_ranks] who stands for each. */
static void
check_classes (Hand *h, const uint32_t *expected)
{
  g_autoptr (LsTimeline) t = hand_run (h);
  uint32_t n_classes = 0, n_ranks = 0;
  for (uint32_t r = 0; t && r < t->n_ranks; r++) {
    LS_CHECK_INT (t->representative[r], ==, expected[r]);
    LS_CHECK_INT (t->multiplicity[r] > 0, ==, expected[r] == r);
    LS_CHECK_INT (t->ranks[r].n > 0, ==, expected[r] == r);
    n_classes += expected[r] == r;
    n_ranks += t->multiplicity[r];
  }
  if (t) {
    LS_CHECK_INT (t->n_classes, ==, n_classes);
    LS_CHECK_INT (n_ranks, ==, t->n_ranks);
  }
  hand_free (h);
}

static void
replicas_are_one_class (void)
{
  check_classes (alike (8, 2), (const uint32_t[8]) { 0 });
  check_classes (alike (8, 8), (const uint32_t[8]) { 0 });
}

/* A step that repeats before the last one asked for is recognised when the last rank has
 * finished it, by when others have run on into the next, unless their hosts are that far ahead:
 * that is no difference. */
static void
steps_that_repeat_compare_too (void)
{
  Hand *h = alike (8, 2);
  h->options.n_steps = 4;
  for (int i = 0; i < 1100; i++) /* more than the launch queue holds */
    hand_kernel (h, 0, LS_TAG_F, LS_NS);
  check_classes (h, (const uint32_t[8]) { 0 });
}

static void
a_straggler_is_apart_and_so_are_its_partners (void)
{
  Hand *h = alike (8, 2);
  double slow[8] = { 1, 1, 1, 1.5, 1, 1, 1, 1 };
  h->options.slow = slow;
  check_classes (h, (const uint32_t[]) { 0, 0, 2, 3, 0, 0, 0, 0 });
}

static void
two_like_stragglers_are_one_class (void)
{
  Hand *h = alike (8, 2);
  double slow[8] = { 1, 1, 1, 1.5, 1, 1.5, 1, 1 };
  h->options.slow = slow;
  check_classes (h, (const uint32_t[]) { 0, 0, 2, 3, 2, 3, 0, 0 });
}

static void
replace_cluster (Hand *h, LsClusterSpec *spec)
{
  g_autoptr (GError) error = NULL;
  ls_cluster_free (h->cluster);
  h->cluster = ls_cluster_build (spec, &error);
  LS_CHECK_NO_ERROR (error);
}

/* The worked example of exec/shortcuts/refine.h. */
static void
a_slow_link_is_felt_by_its_ring (void)
{
  Hand *h = alike (8, 4);
  LsClusterSpec spec = tiny_dgx (1);
  add_fault (&spec, "node0/gpu1>nvswitch", 0.25);
  replace_cluster (h, &spec);
  ls_cluster_spec_clear (&spec);
  check_classes (h, (const uint32_t[]) { 0, 0, 0, 0, 4, 4, 4, 4 });
}

/* With no flow on it, it is felt by nobody. */
static void
an_idle_link_splits_nothing (void)
{
  Hand *h = alike (8, 4);
  LsClusterSpec spec = tiny_dgx (1);
  add_fault (&spec, "node0/gpu1>pcie0", 0.25);
  replace_cluster (h, &spec);
  ls_cluster_spec_clear (&spec);
  check_classes (h, (const uint32_t[8]) { 0 });
}

static void
exchange (Hand *h, uint32_t rank)
{
  LsTransfer *t = ls_arena_new_array (h->plan->arena, LsTransfer, 2);
  t[0] = (LsTransfer) { 1 << 20, LS_SLOT_NEXT, true };
  t[1] = (LsTransfer) { 1 << 20, LS_SLOT_PREV, false };
  LsOp op = hand_blank (LS_OP_P2P, LS_STREAM_PP_FWD, LS_TAG_SYNC, "p2p");
  op.transfers = t;
  op.n_transfers = 2;
  LsDep compute = { LS_DEP_STREAM, LS_STREAM_COMPUTE };
  hand_join (h, rank, hand_op (h, rank, op, &compute, 1));
  hand_kernel (h, rank, LS_TAG_F, 5 * LS_US);
}

/* One rank in the quotient, which sends to itself. */
static void
a_ring_of_sends_is_one_class (void)
{
  Hand *h = alike (8, 2);
  exchange (h, 0);
  check_classes (h, (const uint32_t[8]) { 0 });
}

/* The straggler is at another distance from each. */
static void
a_ring_of_sends_around_a_straggler_is_none (void)
{
  Hand *h = alike (8, 2);
  double slow[8] = { 1.5, 1, 1, 1, 1, 1, 1, 1 };
  exchange (h, 0);
  h->options.slow = slow;
  check_classes (h, (const uint32_t[]) { 0, 1, 2, 3, 4, 5, 6, 7 });
}

/* Nor does it help that nothing is shared, so that no link tells of the neighbour. */
static void
neighbours_count_without_links (void)
{
  Hand *h = alike (8, 2);
  double slow[8] = { 1.5, 1, 1, 1, 1, 1, 1, 1 };
  exchange (h, 0);
  h->options.slow = slow;
  h->options.network = LS_NETWORK_ALPHABETA;
  check_classes (h, (const uint32_t[]) { 0, 1, 2, 3, 4, 5, 6, 7 });
}

/* GPUs 0 and 1 are on one socket with 2 and 3; a copy loads its PCIe link and that socket's
 * memory. */
static void
copies_share_the_memory_of_their_socket (void)
{
  Hand *h = alike (8, 2);
  hand_copy (h, 0, LS_COPY_TO_HOST, UINT64_C (1) << 28);
  check_classes (h, (const uint32_t[8]) { 0 });

  h = alike (6, 2);
  hand_copy (h, 0, LS_COPY_TO_HOST, UINT64_C (1) << 28);
  check_classes (h, (const uint32_t[]) { 0, 0, 0, 0, 4, 4 });
}

static void
message_by_message_nothing_folds (void)
{
  Hand *h = alike (8, 2);
  h->options.network = LS_NETWORK_STEP;
  check_classes (h, (const uint32_t[]) { 0, 1, 2, 3, 4, 5, 6, 7 });
}

/* Two of six GPUs have a socket for themselves; and collectives that load many links over PCIe, more than a
 * run without spans takes. */
static Hand *
laden (void)
{
  static const uint32_t all[] = { 0, 1, 2, 3, 4, 5 };
  static const LsCollKind kinds[]
      = { LS_COLL_ALL_REDUCE, LS_COLL_ALL_GATHER, LS_COLL_REDUCE_SCATTER, LS_COLL_ALL_TO_ALL };
  LsClusterSpec spec = tiny_pcie (1);
  Hand *h = alike (6, 6);
  replace_cluster (h, &spec);
  for (int slot = LS_SLOT_DP; slot < LS_SLOT_PREV; slot++) {
    hand_comm (h, (LsSlot) slot, LS_AXIS_TP, false, all, 6);
    for (size_t k = 0; k < G_N_ELEMENTS (kinds); k++)
      hand_sync (h, 0, (LsSlot) slot, LS_STREAM_TP, kinds[k], 1 << 20);
  }
  hand_copy (h, 0, LS_COPY_TO_HOST, UINT64_C (1) << 28);
  h->options.no_spans = true;
  return h;
}

/* With less and less memory a job folds; then it does not, as its loads would take more than a quarter of it;
 * then it is refused. */
static void
loads_beyond_a_quarter_of_memory_fold_nothing (void)
{
  bool has_folded = false, has_not = false;
  for (uint64_t memory = 1 << 17; memory > 1 << 14; memory -= memory / 32) {
    Hand *h = laden ();
    h->options.max_memory_bytes = memory;
    g_autoptr (GError) error = NULL;
    g_autoptr (LsTimeline) t = hand_run_error (h, &error);
    LS_CHECK (t || (has_not && g_error_matches (error, LS_ERROR, LS_ERROR_LIMIT)));
    has_not = has_not || (t && t->n_classes != 2);
    has_folded = has_folded || !has_not;
    if (t)
      LS_CHECK_INT (t->n_classes, ==, has_not ? 6 : 2);
    hand_free (h);
  }
  LS_CHECK (has_folded && has_not);
}

/* Rank 5 of another role never calls: all 8 are looked at, as without folding. */
static void
errors_name_real_ranks (void)
{
  char *message[2] = { NULL, NULL };
  for (int fold = 0; fold < 2; fold++) {
    Hand *h = alike (8, 2);
    h->options.fold = fold ? LS_SHORTCUT_AUTO : LS_SHORTCUT_OFF;
    h->plan->bindings[5].role = 1;
    hand_kernel (h, 1, LS_TAG_F, 10 * LS_US);
    g_autoptr (GError) error = NULL;
    g_autoptr (LsTimeline) t = hand_run_error (h, &error);
    LS_CHECK (!t && g_error_matches (error, LS_ERROR, LS_ERROR_DEADLOCK));
    message[fold] = error ? g_strdup (error->message) : g_strdup ("");
    hand_free (h);
  }
  LS_CHECK_STR (message[0], message[1]);
  LS_CHECK (strstr (message[1], "rank 4") != NULL);
  g_free (message[0]);
  g_free (message[1]);
}

static void
expect_difference (const LsTimeline *folded, const LsTimeline *whole, const LsCluster *cluster,
                   const char *word)
{
  g_autoptr (GError) error = NULL;
  LS_CHECK (!fold_check (folded, whole, cluster, "folded and unfolded", &error));
  LS_CHECK (error && strstr (error->message, word));
}

/* What is looked at is changed by the least there is, and back. */
static void
the_comparison_notices_a_picosecond (void)
{
  Hand *h = alike (8, 2);
  g_autoptr (LsTimeline) folded = hand_run (h);
  h->options.fold = LS_SHORTCUT_OFF;
  g_autoptr (LsTimeline) whole = hand_run (h);
  g_autoptr (GError) error = NULL;
  if (!folded || !whole)
    return;
  LS_CHECK (fold_check (folded, whole, h->cluster, "folded and unfolded", &error));
  LS_CHECK_NO_ERROR (error);
  LsSpan *span = &whole->ranks[6].spans[0];
  span->end++;
  expect_difference (folded, whole, h->cluster, "end of kernel");
  span->end--;
  span->start--;
  expect_difference (folded, whole, h->cluster, "rank 6");
  span->start++;
  whole->ranks[6].spans[1].cause_kind ^= 1;
  expect_difference (folded, whole, h->cluster, "cause");
  whole->ranks[6].spans[1].cause_kind ^= 1;
  whole->resource_bytes[0] += 1;
  expect_difference (folded, whole, h->cluster, "bytes of node0");
  whole->resource_bytes[0] -= 1;
  whole->digest ^= 1;
  expect_difference (folded, whole, h->cluster, "digest");
  hand_free (h);
}

/* --- stragglers ------------------------------------------------------------------- */

static void
stragglers_depend_on_seed_and_rank_only (void)
{
  LsSlow s = { .sigma = 0.05, .seed = 1 };
  g_autoptr (GError) error = NULL;
  g_autofree double *few = ls_slow_factors (&s, 10, &error), *many = ls_slow_factors (&s, 10000, &error);
  double sum = 0, squares = 0;
  for (int r = 0; r < 10000; r++) {
    sum += log (many[r]);
    squares += log (many[r]) * log (many[r]);
    if (r < 10)
      LS_CHECK (few[r] == many[r]);
  }
  LS_CHECK (fabs (sum / 10000) < 0.002); /* four standard errors */
  LS_CHECK_NEAR (sqrt (squares / 10000), 0.05, 0.03);
  s.seed = 2;
  g_autofree double *other = ls_slow_factors (&s, 10, &error);
  LS_CHECK (other[0] != few[0]);
  LS_CHECK_NO_ERROR (error);
}

static void
named_stragglers (void)
{
  LsSlow s = { .ranks = g_array_new (FALSE, FALSE, sizeof (LsSlowRank)) };
  g_autoptr (GError) error = NULL;
  LS_CHECK (ls_slow_factors (&s, 4, &error) == NULL && !error);
  LsSlowRank slow = { 3, 1.5 };
  g_array_append_val (s.ranks, slow);
  g_autofree double *factor = ls_slow_factors (&s, 4, &error);
  LS_CHECK (factor && factor[0] == 1 && factor[3] == 1.5);
  LS_CHECK (ls_slow_factors (&s, 3, &error) == NULL);
  LS_CHECK (g_error_matches (error, LS_ERROR, LS_ERROR_CONFLICT));
  ls_slow_clear (&s);
}

LS_TEST_MAIN ("fold", LS_TEST (replicas_are_one_class), LS_TEST (steps_that_repeat_compare_too),
              LS_TEST (a_straggler_is_apart_and_so_are_its_partners),
              LS_TEST (two_like_stragglers_are_one_class), LS_TEST (a_slow_link_is_felt_by_its_ring),
              LS_TEST (an_idle_link_splits_nothing), LS_TEST (a_ring_of_sends_is_one_class),
              LS_TEST (a_ring_of_sends_around_a_straggler_is_none), LS_TEST (neighbours_count_without_links),
              LS_TEST (copies_share_the_memory_of_their_socket), LS_TEST (message_by_message_nothing_folds),
              LS_TEST (loads_beyond_a_quarter_of_memory_fold_nothing), LS_TEST (errors_name_real_ranks),
              LS_TEST (the_comparison_notices_a_picosecond),
              LS_TEST (stragglers_depend_on_seed_and_rank_only), LS_TEST (named_stragglers),
              LS_TEST (random_jobs_fold_exactly))
