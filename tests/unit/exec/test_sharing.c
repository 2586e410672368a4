/* Pins: tensor-, data-, pipeline- and expert-parallel traffic of a rank overlap on the
 * links that they share and slow each other, each pair by what max-min fairness between
 * the two says: inside a node over NVLink, across nodes through one NIC. */
#include "ls_test.h"

#include <math.h>

#include "core/maxmin.h" /* LS_COEF_ONE */
#include "hand_trace.h"

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
  h->plan->gpu_of_rank[1] = spec.gpus_per_node;
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
  LsCollRequest request = { .kind = t->kind, .gpus = h->plan->gpu_of_rank, .n = 2, .bytes = BYTES };
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
      fprintf (stderr, "%s beside %s: %g, alone %g ms\n", t[i]->name, t[1 - i]->name,
               ls_time_to_s (together[i]) * 1e3, ls_time_to_s (alone[i]) * 1e3);
    if (!LS_CHECK (fabs (ls_time_to_s (together[i]) / predicted[i] - 1) < 1e-6))
      fprintf (stderr, "%s beside %s: %.9g ms, by hand %.9g\n", t[i]->name, t[1 - i]->name,
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

LS_TEST_SUITE (LS_TEST (pairs_share_nvlink), LS_TEST (pairs_share_a_nic))
