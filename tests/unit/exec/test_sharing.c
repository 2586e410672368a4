/* Pins what traffic takes from other traffic on the same links: of one rank, and of several jobs. */
#include "ls_test.h"
#include "hand_trace.h"

#include <math.h>

#include "core/maxmin.h" /* LS_COEF_ONE */
#include "exec/share.h"
#include <lockstep/error.h>

/* Pins: tensor-, data-, pipeline- and expert-parallel traffic of a rank overlap on the
 * links that they share and slow each other, each pair by what max-min fairness between
 * the two says: inside a node over NVLink, across nodes through one NIC. */

#define BYTES (UINT64_C (256) << 20)

typedef struct {
  const char *name;
  LsSlot slot;
  LsStream stream;
  LsAxis axis;
  LsCollKind kind;
} Traffic;

static const Traffic traffic[] = {
  { "tp", LS_SLOT_TP, LS_STREAM_TP, LS_AXIS_TP, LS_COLL_ALL_REDUCE },
  { "dp", LS_SLOT_DP, LS_STREAM_DP, LS_AXIS_DP, LS_COLL_REDUCE_SCATTER },
  { "pp", LS_SLOT_NEXT, LS_STREAM_PP_FWD, LS_AXIS_PP, LS_COLL_SEND_RECV },
  { "ep", LS_SLOT_EP, LS_STREAM_GLOBAL, LS_AXIS_EP, LS_COLL_ALL_TO_ALL },
};

static const uint32_t both[] = { 0, 1 };

static void
issue (Hand *h, const Traffic *t)
{
  if (t->kind != LS_COLL_SEND_RECV)
    hand_comm (h, t->slot, t->axis, false, both, 2);
  for (uint32_t rank = 0; rank < 2; rank++) {
    if (t->kind != LS_COLL_SEND_RECV)
      hand_sync (h, rank, t->slot, t->stream, (int) t->kind, BYTES);
    else
      hand_join (h, rank, hand_p2p (h, rank, rank == 0 ? LS_SLOT_NEXT : LS_SLOT_PREV, rank == 0, BYTES));
  }
}

/* Two ranks: on one node, or on the first GPU of each of two. */
static Hand *
pair_new (bool is_across)
{
  Hand *h = hand_new (2);
  if (!is_across)
    return h;
  LsClusterSpec spec = tiny_dgx (2);
  ls_cluster_free (h->cluster);
  h->cluster = ls_cluster_build (&spec, NULL);
  ls_plan_gpus (h->plan)[1] = spec.gpus_per_node;
  return h;
}

/* When each of the ops of rank 0 was over. */
static void
run (bool is_across, const Traffic *const *t, uint32_t n, LsTime *ret_end)
{
  Hand *h = pair_new (is_across);
  for (uint32_t i = 0; i < n; i++)
    issue (h, t[i]);
  for (uint32_t rank = 0; rank < 2; rank++) /* waits for all: the next step does not begin beside this one */
    hand_kernel (h, rank, LS_TAG_F, LS_US);
  g_autoptr (LsTimeline) timeline = hand_run (h);
  const LsRankSpans *spans = &timeline->ranks[0];
  for (uint32_t i = 0; i < spans->n; i++) /* the next step has begun too */
    if (spans->spans[i].step == 0 && spans->spans[i].op < n)
      ret_end[spans->spans[i].op] = spans->spans[i].end;
  g_clear_pointer (&timeline, ls_timeline_free);
  hand_free (h);
}

/* --- the same by hand ------------------------------------------------------------ */

static uint64_t
coef_of (const LsPhase *p, uint32_t resource)
{
  for (uint32_t i = 0; i < p->n_loads; i++)
    if (p->loads[i].resource == resource)
      return p->loads[i].coef;
  return 0;
}

/* Rate of a flow of a while b's flows run at rate_b. */
static double
rest_for (const LsCluster *c, const LsPhase *a, const LsPhase *b, double rate_b)
{
  double rate = a->rate_cap;
  for (uint32_t i = 0; i < a->n_loads; i++) {
    double other = (double) coef_of (b, a->loads[i].resource) * rate_b;
    double left = ls_cluster_resource_capacity (c, a->loads[i].resource) * (double) LS_COEF_ONE - other;
    rate = fmin (rate, left / (double) a->loads[i].coef);
  }
  return rate;
}

/* Max-min of two: equal rates as far as they go, then the rest to who can use it. */
static void
share (const LsCluster *c, const LsPhase *const p[2], double ret_rate[2])
{
  double equal = fmin (p[0]->rate_cap, p[1]->rate_cap);
  bool is_shared_full = false;
  for (uint32_t i = 0; i < p[0]->n_loads; i++) {
    uint64_t k = coef_of (p[1], p[0]->loads[i].resource);
    double rate = ls_cluster_resource_capacity (c, p[0]->loads[i].resource) * (double) LS_COEF_ONE
        / (double) (p[0]->loads[i].coef + k);
    if (k > 0 && rate < equal) {
      equal = rate;
      is_shared_full = true;
    }
  }
  for (int i = 0; i < 2; i++)
    ret_rate[i]
        = is_shared_full ? equal : rest_for (c, p[i], p[1 - i], p[1 - i]->rate_cap == equal ? equal : 0);
  if (!is_shared_full) /* who is capped lower runs at its cap */
    ret_rate[p[0]->rate_cap <= p[1]->rate_cap ? 0 : 1] = equal;
}

static void
predict (const LsCluster *c, const LsPhase *const p[2], double ret_end_s[2])
{
  double left[2] = { p[0]->demand_bytes, p[1]->demand_bytes }, now = 0;
  while (left[0] > 0 || left[1] > 0) {
    double rate[2], next = INFINITY;
    bool moves[2];
    for (int i = 0; i < 2; i++)
      moves[i] = left[i] > 0 && ls_time_to_s (p[i]->latency) <= now;
    share (c, p, rate);
    for (int i = 0; i < 2; i++) {
      if (!moves[1 - i])
        rate[i] = rest_for (c, p[i], p[1 - i], 0);
      if (left[i] > 0)
        next = fmin (next, moves[i] ? now + left[i] / rate[i] : ls_time_to_s (p[i]->latency));
    }
    for (int i = 0; i < 2; i++) {
      left[i] -= moves[i] ? rate[i] * (next - now) : 0;
      if (moves[i] && left[i] <= 1e-9 * p[i]->demand_bytes) {
        left[i] = 0;
        ret_end_s[i] = next;
      }
    }
    now = next;
  }
}

static const LsPhase *
phase_of (const Hand *h, const Traffic *t, LsArena *arena)
{
  LsCollRequest request = { .kind = t->kind, .gpus = ls_plan_gpus (h->plan), .n = 2, .bytes = BYTES };
  LsCollPlan *plan = ls_coll_plan (h->cluster, &h->nccl, &request, LS_NETWORK_FLOW, arena);
  LS_CHECK_INT (plan->n_phases, ==, 1);
  return &plan->phases[0];
}

/* --- the tests --------------------------------------------------------------------- */

static void
check_pair (bool is_across, const Traffic *a, const Traffic *b)
{
  const Traffic *const t[] = { a, b };
  LsTime alone[2] = { 0 }, together[2] = { 0 };
  for (uint32_t i = 0; i < 2; i++)
    run (is_across, &t[i], 1, &alone[i]);
  run (is_across, t, 2, together);

  Hand *h = pair_new (is_across);
  g_autoptr (LsArena) arena = ls_arena_new ();
  const LsPhase *const phases[] = { phase_of (h, a, arena), phase_of (h, b, arena) };
  double predicted[2];
  predict (h->cluster, phases, predicted);
  for (uint32_t i = 0; i < 2; i++) {
    if (!LS_CHECK ((double) together[i] > 1.05 * (double) alone[i]))
      fprintf (stderr, "%s next to %s: %g, alone %g ms\n", t[i]->name, t[1 - i]->name,
               ls_time_to_s (together[i]) * 1e3, ls_time_to_s (alone[i]) * 1e3);
    if (!LS_CHECK (fabs (ls_time_to_s (together[i]) / predicted[i] - 1) < 1e-6))
      fprintf (stderr, "%s next to %s: %.9g ms, by hand %.9g\n", t[i]->name, t[1 - i]->name,
               ls_time_to_s (together[i]) * 1e3, predicted[i] * 1e3);
  }
  hand_free (h);
}

static void
check_all_pairs (bool is_across)
{
  for (guint a = 0; a < G_N_ELEMENTS (traffic); a++)
    for (guint b = a + 1; b < G_N_ELEMENTS (traffic); b++)
      check_pair (is_across, &traffic[a], &traffic[b]);
}

static void
pairs_share_nvlink (void)
{
  check_all_pairs (false);
}

static void
pairs_share_a_nic (void)
{
  check_all_pairs (true);
}

/* Pins: what jobs on one cluster take from each other. On links of their own each takes what it takes alone, to
 * the picosecond; on one link two equal ones get half of it each; shifted apart in time each gets all of it.
 * How long is measured, and what is refused. tests/unit/exec/test_fold_random.c folds random pairs. */

/* Four nodes, two leaves. Between leaves a rail has one link of 24.25 GB/s for two nodes. */
static LsCluster *
two_leaves (void)
{
  LsClusterSpec spec = tiny_dgx (4);
  spec.network.nodes_per_leaf = 2;
  spec.network.oversubscription = 2;
  return ls_cluster_build (&spec, NULL);
}

/* GPU 0 of a node computes for some time, and sends 97 MB to that of another, who waits for it: 20 us and
 * 4 ms at the rate of a link, and 1 us of a kernel behind. */
static Hand *
sender_new (uint32_t from_node, uint32_t to_node, LsTime compute)
{
  Hand *h = hand_new (2);
  h->nccl.p2p_inter = 25e9;
  ls_plan_gpus (h->plan)[0] = 8 * from_node;
  ls_plan_gpus (h->plan)[1] = 8 * to_node;
  for (uint32_t r = 0; r < 2; r++) {
    hand_kernel (h, r, LS_TAG_F, compute);
    hand_join (h, r, hand_p2p (h, r, r == 0 ? LS_SLOT_NEXT : LS_SLOT_PREV, r == 0, 97000000));
    hand_kernel (h, r, LS_TAG_B, LS_US);
  }
  hand_freeze (h);
  return h;
}

static LsShareJob
job_of (const Hand *h, LsTime start)
{
  return (LsShareJob) {
    .plan = h->plan, .calibration = &h->calibration, .host = &h->options.host, .start = start
  };
}

typedef struct {
  Hand *a, *b;
  LsCluster *cluster;
  LsRunOptions options;
  const LsShareTraffic *traffic;
} Pair;

static Pair
share_pair_new (Hand *a, Hand *b)
{
  Pair p = { a, b, two_leaves (), a->options, NULL };
  p.options.n_steps = 8;
  p.options.fold = p.options.coarsen = LS_SHORTCUT_CHECK;
  return p;
}

static void
pair_free (Pair *p)
{
  hand_free (p->a);
  hand_free (p->b);
  ls_cluster_free (p->cluster);
}

static LsShare *
run_pair (const Pair *p, LsTime start, uint32_t only, GError **error)
{
  const LsShareJob jobs[] = { job_of (p->a, 0), job_of (p->b, start) };
  return ls_run_share (jobs, 2, only, p->traffic, p->cluster, &p->a->nccl, &p->options, error);
}

/* The mean step of each, with its extremes where all are alike. */
static void
check_steps (const Pair *p, LsTime start, uint32_t only, LsTime a, LsTime b)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (LsShare) s = run_pair (p, start, only, &error);
  LS_CHECK_NO_ERROR (error);
  if (!s)
    return;
  const LsTime wanted[] = { a, b };
  for (uint32_t i = 0; i < 2; i++) {
    if (only != LS_SHARE_ALL && only != i) {
      LS_CHECK_INT (s->jobs[i].n_steps, ==, 0);
      continue;
    }
    LS_CHECK_DOUBLE (s->jobs[i].step_ps, ==, (double) wanted[i]);
    LS_CHECK_INT (s->jobs[i].shortest, ==, wanted[i]);
    LS_CHECK_INT (s->jobs[i].longest, ==, wanted[i]);
  }
}

#define OVERHEAD (21 * LS_US)

static void
jobs_on_links_of_their_own_are_as_alone (void)
{
  Pair p = share_pair_new (sender_new (0, 1, 6 * LS_MS), sender_new (2, 3, 7 * LS_MS));
  LsTime a = 10 * LS_MS + OVERHEAD, b = 11 * LS_MS + OVERHEAD;
  check_steps (&p, 0, 0, a, b);
  check_steps (&p, 0, 1, a, b);
  check_steps (&p, 0, LS_SHARE_ALL, a, b);
  check_steps (&p, 3 * LS_MS, LS_SHARE_ALL, a, b);
  pair_free (&p);
}

/* 97 MB at half of 24.25 GB/s take 8 ms. Begun 5 ms later, one sends while the other computes. */
static void
equal_jobs_get_half_of_a_link_or_take_turns (void)
{
  Pair p = share_pair_new (sender_new (0, 2, 6 * LS_MS), sender_new (1, 3, 6 * LS_MS));
  LsTime alone = 10 * LS_MS + OVERHEAD, half = 14 * LS_MS + OVERHEAD;
  check_steps (&p, 0, 0, alone, 0);
  check_steps (&p, 0, 1, 0, alone);
  check_steps (&p, 0, LS_SHARE_ALL, half, half);
  check_steps (&p, 5 * LS_MS, LS_SHARE_ALL, alone, alone);
  /* a whole step later it is as at once */
  check_steps (&p, alone, LS_SHARE_ALL, half, half);
  pair_free (&p);
}

/* What is alike from the third step on is measured over one step of the first job. */
static void
a_period_ends_the_window (void)
{
  Pair p = share_pair_new (sender_new (0, 2, 6 * LS_MS), sender_new (1, 3, 6 * LS_MS));
  g_autoptr (GError) error = NULL;
  g_autoptr (LsShare) s = run_pair (&p, 0, LS_SHARE_ALL, &error);
  LS_CHECK_NO_ERROR (error);
  LS_CHECK (s && s->is_periodic && s->jobs[0].n_steps == 1 && s->jobs[1].n_steps == 1);
  LS_CHECK_INT (s->window_end - s->window_start, ==, 14 * LS_MS + OVERHEAD);
  pair_free (&p);
}

/* Steps of 10 and 11 ms on links of their own do not come round soon: six of each at least. */
static void
without_a_period_all_steps_count (void)
{
  Pair p = share_pair_new (sender_new (0, 1, 6 * LS_MS), sender_new (2, 3, 7 * LS_MS));
  g_autoptr (GError) error = NULL;
  g_autoptr (LsShare) s = run_pair (&p, 0, LS_SHARE_ALL, &error);
  LS_CHECK_NO_ERROR (error);
  LS_CHECK (s && !s->is_periodic && s->jobs[0].n_steps >= 6 && s->jobs[1].n_steps >= 6);
  pair_free (&p);
}

/* A job of a tenth of the step does many while the other does one, and is always there. */
static void
a_short_job_starts_over_as_long_as_another_is_measured (void)
{
  Pair p = share_pair_new (sender_new (0, 2, 100 * LS_MS), sender_new (1, 3, 6 * LS_MS));
  g_autoptr (GError) error = NULL;
  g_autoptr (LsShare) s = run_pair (&p, 0, LS_SHARE_ALL, &error);
  LS_CHECK_NO_ERROR (error);
  if (s) {
    LS_CHECK_INT (s->jobs[1].n_steps, >, 6 * s->jobs[0].n_steps);
    LS_CHECK (s->jobs[0].step_ps > (double) (104 * LS_MS + OVERHEAD));
    LS_CHECK (s->jobs[1].longest > 10 * LS_MS + OVERHEAD && s->jobs[1].shortest == 10 * LS_MS + OVERHEAD);
  }
  pair_free (&p);
}

/* Of one step, whoever it is of: 97 MB on each link of the way. */
static void
bytes_are_of_one_step_of_each_job (void)
{
  Pair p = share_pair_new (sender_new (0, 2, 6 * LS_MS), sender_new (1, 3, 60 * LS_MS));
  g_autoptr (GError) error = NULL;
  g_autoptr (LsShare) s = run_pair (&p, 0, LS_SHARE_ALL, &error);
  LS_CHECK_NO_ERROR (error);
  guint n_both = 0;
  for (uint32_t i = 0; s && i < p.cluster->trunks->len; i++) {
    double a = s->jobs[0].resource_bytes[i], b = s->jobs[1].resource_bytes[i];
    LS_CHECK (a == 0 || a == 97e6);
    LS_CHECK (b == 0 || b == 97e6);
    n_both += a > 0 && b > 0;
  }
  LS_CHECK_INT (n_both, ==, 2); /* up to the spine and down from it */
  pair_free (&p);
}

/* Node 1 sends to node 3 over all NICs, without end. On the rail of the first NIC job a sends from node 0 to
 * node 2 by two channels, which get a third of the link between the leaves each: 6 ms for its 97 MB. The flows
 * of the traffic move together, so all of them wait. Job b is far from both. */
static void
traffic_takes_its_share (void)
{
  Pair p = share_pair_new (sender_new (0, 2, 6 * LS_MS), sender_new (1, 3, 60 * LS_MS));
  const LsTraffic without_end = { .node_from = 1, .node_to = 3, .bytes = 1000000000 };
  p.traffic = &(LsShareTraffic) { &without_end, 1 };
  ls_plan_gpus (p.a->plan)[0] = 0;
  ls_plan_gpus (p.b->plan)[0] = 8 * 1 + 7; /* within one node: over no NIC */
  ls_plan_gpus (p.b->plan)[1] = 8 * 1 + 6;
  g_autoptr (GError) error = NULL;
  g_autoptr (LsShare) s = run_pair (&p, 0, LS_SHARE_ALL, &error);
  LS_CHECK_NO_ERROR (error);
  if (s) {
    LS_CHECK_NEAR (s->jobs[0].step_ps, (double) (12 * LS_MS + OVERHEAD), 1e-9);
    LS_CHECK (!s->is_periodic);
    LS_CHECK_NEAR (s->traffic_rate[0], 8 * 24.25e9 * (6 / 3.0 + 6.021) / 12.021, 0.01);
  }
  g_autoptr (LsShare) alone = run_pair (&p, 0, 0, &error);
  LS_CHECK_NO_ERROR (error);
  LS_CHECK (alone && !alone->traffic_rate && alone->jobs[0].step_ps == (double) (10 * LS_MS + OVERHEAD));
  pair_free (&p);
}

/* 194 MB every 5 ms over 8 NICs of 24.25 GB/s take 1 ms; at 19.4 GB/s 10 ms: each begins late. */
static void
traffic_keeps_its_period_where_it_can (void)
{
  static const double rates[] = { 0, 19.4e9 };
  for (guint i = 0; i < G_N_ELEMENTS (rates); i++) {
    Pair p = share_pair_new (sender_new (0, 1, 46 * LS_MS), sender_new (2, 3, 46 * LS_MS));
    const LsTraffic often
        = { .node_from = 1, .node_to = 3, .bytes = 194000000, .period = 5 * LS_MS, .rate = rates[i] };
    p.traffic = &(LsShareTraffic) { &often, 1 };
    g_autoptr (GError) error = NULL;
    g_autoptr (LsShare) s = run_pair (&p, 0, LS_SHARE_ALL, &error);
    LS_CHECK_NO_ERROR (error);
    if (s)
      LS_CHECK_NEAR (s->traffic_rate[0], i == 0 ? 38.8e9 : 19.4e9, 0.01);
    pair_free (&p);
  }
}

/* Windows of steps are no multiple of periods, and bursts wait for those before them: over whole periods it is
 * as much as is asked for at most, and where there is none nobody knows. */
static void
traffic_gets_at_most_what_it_asks_for (void)
{
  guint n_known = 0, n_unknown = 0;
  for (guint seed = 1; seed <= ls_test_cases (8, 200); seed++) {
    g_autoptr (GRand) rand = g_rand_new_with_seed (seed);
    Pair p = share_pair_new (sender_new (0, 2, g_rand_int_range (rand, 1, 40) * LS_MS),
                             sender_new (1, 3, g_rand_int_range (rand, 1, 40) * LS_MS));
    p.options.n_steps = (uint32_t) g_rand_int_range (rand, 3, 9);
    const LsTraffic bursts = { .node_from = 1,
                               .node_to = 3,
                               .bytes = (uint64_t) g_rand_int_range (rand, 1000000, 2000000000),
                               .period = g_rand_int_range (rand, 1, 200) * LS_MS,
                               .start = g_rand_int_range (rand, 0, 60) * LS_MS };
    p.traffic = &(LsShareTraffic) { &bursts, 1 };
    g_autoptr (GError) error = NULL;
    g_autoptr (LsShare) s = run_pair (&p, 0, LS_SHARE_ALL, &error);
    LS_CHECK_NO_ERROR (error);
    const double asked = (double) bursts.bytes / ls_time_to_s (bursts.period);
    if (s && isnan (s->traffic_rate[0]))
      n_unknown += LS_CHECK (2 * bursts.period > s->window_end - s->window_start);
    else if (s)
      n_known += ls_check_impl (s->traffic_rate[0] <= asked * (1 + 1e-12), __FILE__, __LINE__,
                                "seed %u: %g of %g bytes/s", seed, s->traffic_rate[0], asked);
    pair_free (&p);
  }
  LS_CHECK (n_known > 0 && n_unknown > 0);
}

static void
check_refused (Pair *p, LsErrorCode code, const char *says)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (LsShare) s = run_pair (p, 0, LS_SHARE_ALL, &error);
  LS_CHECK (!s && g_error_matches (error, LS_ERROR, code));
  if (error)
    LS_CHECK_STR (error->message, says);
  pair_free (p);
}

static void
what_cannot_be_shared_is_refused (void)
{
  Pair twice = share_pair_new (sender_new (0, 2, LS_MS), sender_new (1, 2, LS_MS));
  check_refused (&twice, LS_ERROR_CONFLICT, "jobs 1 and 2 both run on GPU 16");
  Pair nowhere = share_pair_new (sender_new (0, 2, LS_MS), sender_new (1, 4, LS_MS));
  check_refused (&nowhere, LS_ERROR_CONFLICT, "rank 3 runs on GPU 32, but the cluster has 32 GPUs");
  Pair messages = share_pair_new (sender_new (0, 2, LS_MS), sender_new (1, 3, LS_MS));
  messages.options.network = LS_NETWORK_STEP;
  check_refused (&messages, LS_ERROR_UNSUPPORTED,
                 "several jobs are not simulated message by message; expected --network flow");
}

LS_TEST_SUITE (LS_TEST (pairs_share_nvlink), LS_TEST (pairs_share_a_nic),
               LS_TEST (jobs_on_links_of_their_own_are_as_alone),
               LS_TEST (equal_jobs_get_half_of_a_link_or_take_turns), LS_TEST (a_period_ends_the_window),
               LS_TEST (without_a_period_all_steps_count),
               LS_TEST (a_short_job_starts_over_as_long_as_another_is_measured),
               LS_TEST (bytes_are_of_one_step_of_each_job), LS_TEST (traffic_takes_its_share),
               LS_TEST (traffic_keeps_its_period_where_it_can),
               LS_TEST (traffic_gets_at_most_what_it_asks_for), LS_TEST (what_cannot_be_shared_is_refused))
