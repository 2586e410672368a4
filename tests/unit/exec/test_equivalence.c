/* Pins that fast ways of running are exact: the queue, the solver, and messages that meet nobody. */
#include "ls_test.h"
#include "hand_trace.h"
#include "message_table.h"
#include "nccl_tables.h"
#include "random_dragonfly.h"
#include "random_job.h"
#include "tiny_cluster.h"

#include <string.h>

#include "exec/memory/memory.h"
#include "exec/run.h"
#include "lower/lower.h"

/* Pins: the fast ways of running are exact. Random small jobs, lowered for real,
 * give the same picoseconds and the same spans with the reference queue, with the
 * reference solver (and each message a flow of its own), and with every op through the
 * event queue. */

static LsTimeline *
run (const Job *j, const LsRunOptions *options)
{
  g_autoptr (GError) error = NULL;
  LsTimeline *t = ls_run (j->plan, j->cluster, &j->calibration, &nccl, options, NULL, &error);
  LS_CHECK_NO_ERROR (error);
  return t;
}

/* Spans of a rank are recorded in the order in which the engine met them, which may
 * differ between streams; compare them by (instance, op). */
static int
by_op (const void *a, const void *b)
{
  const LsSpan *x = a, *y = b;
  if (x->step != y->step)
    return (int) x->step - (int) y->step;
  if (x->instance != y->instance)
    return x->instance < y->instance ? -1 : 1;
  return (int) x->op - (int) y->op;
}

static LsSpan *
sorted_spans (const LsTimeline *t, uint32_t rank, guint *ret_n)
{
  const LsRankSpans *r = &t->ranks[rank];
  LsSpan *spans = g_new (LsSpan, r->n + 1);
  guint n = 0;
  for (uint32_t i = 0; i < r->n; i++)
    if (r->spans[i].start < t->window_end) /* a rank may have run ahead of the end */
      spans[n++] = r->spans[i];
  qsort (spans, n, sizeof *spans, by_op);
  *ret_n = n;
  return spans;
}

static void
check_same (const LsTimeline *a, const LsTimeline *b, const char *what)
{
  bool same = a->window_start == b->window_start && a->window_end == b->window_end
      && a->first_step == b->first_step && a->digest == b->digest;
  for (uint32_t r = 0; r < a->n_ranks && same; r++) {
    guint n, m;
    g_autofree LsSpan *x = sorted_spans (a, r, &n), *y = sorted_spans (b, r, &m);
    same = n == m;
    for (guint i = 0; i < n && same; i++) {
      same = by_op (&x[i], &y[i]) == 0 && x[i].start == y[i].start && x[i].issued == y[i].issued
          && MIN (x[i].end, a->window_end) == MIN (y[i].end, a->window_end);
    }
  }
  ls_check_impl (same, __FILE__, __LINE__,
                 "%s differs from the fast run: step ends at %" G_GINT64_FORMAT " and %" G_GINT64_FORMAT,
                 what, a->window_end, b->window_end);
}

/* A cause is a span of the window that began no later. */
static void
check_causes (const LsTimeline *t)
{
  bool ok = true;
  for (uint32_t r = 0; r < t->n_ranks; r++)
    for (uint32_t i = 0; i < t->ranks[r].n; i++) {
      const LsSpan *s = &t->ranks[r].spans[i];
      ok = ok
          && (s->cause == LS_SPAN_NONE
              || (s->cause < t->ranks[r].n && t->ranks[r].spans[s->cause].start <= s->start));
    }
  LS_CHECK (ok);
}

static void
check_job (guint32 seed)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (seed);
  Job j;
  if (!job_init (&j, rand))
    return;
  g_autoptr (GError) error = NULL;
  LS_CHECK (ls_plan_check (j.plan, &error));
  LS_CHECK_NO_ERROR (error);
  g_autoptr (LsMemory) memory = ls_memory_new (&(LsMemoryInput) { .plan = j.plan });
  LS_CHECK_INT (memory->classes[0].peak_bytes, >, 0);

  LsRunOptions fast;
  ls_run_options_init (&fast);
  fast.n_steps = 2;
  fast.slow = seed % 3 == 0 ? j.slow : NULL;
  fast.network = seed % 2 == 0 ? LS_NETWORK_STEP : LS_NETWORK_FLOW;
  LsRunOptions queue = fast, solver = fast, plain = fast;
  queue.queue = LS_QUEUE_REFERENCE;
  solver.solver = LS_SOLVER_REFERENCE;
  plain.no_run_ahead = true;
  g_autoptr (LsTimeline) a = run (&j, &fast);
  g_autoptr (LsTimeline) b = run (&j, &queue);
  g_autoptr (LsTimeline) c = run (&j, &solver);
  g_autoptr (LsTimeline) d = run (&j, &plain);
  if (a && b && c && d) {
    check_causes (a);
    check_same (a, b, "reference queue");
    check_same (a, c, "reference solver");
    check_same (a, d, "every op an event");
  }
  job_clear (&j);
}

/* 1,500 kernels in one segment, then a collective that waits for none of them: the
 * host cannot issue it before the launch queue has room, whoever runs ahead. */
static void
the_launch_queue_is_full_in_both_ways (void)
{
  LsTimeline *t[2];
  Hand *first = NULL;
  for (int plain = 0; plain < 2; plain++) {
    Hand *h = hand_new (2);
    hand_comm (h, LS_SLOT_DP, LS_AXIS_DP, false, (const uint32_t[]) { 0, 1 }, 2);
    h->options.no_run_ahead = plain;
    h->options.host.cost[LS_HOST_LAUNCH] = 5 * LS_US;
    for (uint32_t r = 0; r < 2; r++) {
      for (int k = 0; k < 1500; k++)
        hand_kernel (h, r, LS_TAG_F, LS_MS);
      hand_next_segment (h, r);
      LsOp op = ls_op_blank (LS_OP_COLLECTIVE, LS_STREAM_DP, LS_TAG_SYNC, "collective");
      op.slot = LS_SLOT_DP;
      op.coll = LS_COLL_ALL_REDUCE;
      op.bytes = 1 << 20;
      op.dtype = LS_DTYPE_FP16;
      hand_op (h, r, op, NULL, 0);
    }
    t[plain] = hand_run (h);
    if (t[plain] && plain) {
      check_same (t[0], t[1], "every op an event");
      const LsSpan *last = NULL;
      for (uint32_t i = 0; i < t[1]->ranks[0].n; i++)
        if (ls_span_op (t[1], 0, &t[1]->ranks[0].spans[i])->kind == LS_OP_COLLECTIVE)
          last = last ? last : &t[1]->ranks[0].spans[i];
      LS_CHECK (last && last->start > 476 * LS_MS); /* 1,500 - 1,024 kernels first */
      ls_timeline_free (t[0]);
      ls_timeline_free (t[1]);
    }
    if (plain)
      hand_free (h);
    else
      first = h;
  }
  hand_free (first);
}

static void
fast_runs_equal_plain_runs (void)
{
  guint n = ls_test_cases (20, 60);
  for (guint32 seed = 1; seed <= n; seed++) {
    int before = (int) CU_get_number_of_failures ();
    check_job (seed);
    if ((int) CU_get_number_of_failures () > before)
      printf ("failing seed: %u\n", seed);
  }
}

/* Pins: scripts whose messages meet nobody end by the recurrence when they end event by event, to the
 * picosecond: random sends, random cycles of lanes, and every algorithm in random sizes on random members
 * of random machines; what could fill a resource is left to events; one lane of several that are alike
 * stands for them, and one period for a cycle. */

typedef struct {
  uint64_t n_lanes, n_rounds, n_shared; /* known by lanes, by rounds; left to events */
} Seen;

static void
unshared_check_same (const LsScript *script, Seen *seen, const char *what, guint32 seed)
{
  g_autofree double *capacity = g_new (double, ls_cluster_n_resources (script->cluster));
  for (uint32_t i = 0; i < ls_cluster_n_resources (script->cluster); i++)
    capacity[i] = ls_cluster_resource_capacity (script->cluster, i);
  LsTime end, by_events = ls_messages_time_by_events (script, script->cluster, NULL);
  bool is_known = messages_time_unshared (script, capacity, &end);
  *(!is_known ? &seen->n_shared : script->has_lanes ? &seen->n_lanes : &seen->n_rounds) += 1;
  if (is_known && end < LS_TIME_NEVER)
    end += script->base;
  ls_check_impl (!is_known || end == by_events, __FILE__, __LINE__,
                 "seed %u, %s: %" G_GINT64_FORMAT " ps by rounds, %" G_GINT64_FORMAT " by events", seed, what,
                 end, by_events);
  LS_CHECK_INT (ls_messages_time_alone (script, script->cluster, NULL), ==, by_events);
}

static void
random_scripts_end_as_event_by_event (void)
{
  g_autoptr (LsCluster) c = nodes (3);
  Seen seen = { 0 };
  for (guint32 seed = 1; seed <= ls_test_cases (100, 300); seed++) {
    g_autoptr (GRand) rand = g_rand_new_with_seed (seed);
    Table t;
    table_random (&t, c, rand, (uint32_t) g_rand_int_range (rand, 0, 20),
                  (uint32_t) g_rand_int_range (rand, 2, 9));
    t.script.rate_intra /= g_rand_boolean (rand) ? 10 : 1;
    t.script.rate_inter /= g_rand_boolean (rand) ? 10 : 1;
    unshared_check_same (&t.script, &seen, "random sends", seed);
    table_clear (&t);
  }
  LS_CHECK (seen.n_lanes > 0 && seen.n_rounds > 0 && seen.n_shared > 0);
}

/* Each place to the one behind it in a circle of its own lane. */
static void
send_in_cycles (Table *t, GRand *rand, uint32_t *order)
{
  uint32_t n = t->script.n, round = 0;
  for (uint32_t first = 0, len; first < n; first += len) {
    len = n - first < 4 ? n - first : (uint32_t) g_rand_int_range (rand, 2, (gint32) (n - first - 1));
    for (uint32_t i = 0; i < len; i++)
      for (round = 0; round < t->script.n_rounds; round++)
        table_send (t, round, order[first + i], order[first + (i + 1) % len], 1 + first % 3);
  }
}

/* In the order of places, or shuffled. */
static void
random_cycles_end_as_event_by_event (void)
{
  g_autoptr (LsCluster) c = nodes (5);
  Seen seen = { 0 };
  for (guint32 seed = 1; seed <= ls_test_cases (66, 200); seed++) {
    g_autoptr (GRand) rand = g_rand_new_with_seed (seed);
    Table t;
    uint32_t order[40], n = (uint32_t) g_rand_int_range (rand, 2, 41);
    table_init (&t, c, n, (uint32_t) g_rand_int_range (rand, 1, 60),
                (uint32_t) g_rand_int_range (rand, 1, 5));
    t.script.has_lanes = true;
    t.script.rate_inter = 1e9 * g_rand_int_range (rand, 1, 12);
    t.script.hop_inter = g_rand_int_range (rand, 0, 300) * LS_US;
    for (uint32_t lane = 0; lane < t.script.max_sends; lane++) {
      for (uint32_t i = 0; i < n; i++)
        order[i] = i;
      for (uint32_t i = 0; i < n && g_rand_boolean (rand); i++) {
        uint32_t other = (uint32_t) g_rand_int_range (rand, 0, (gint32) n), kept = order[i];
        order[i] = order[other];
        order[other] = kept;
      }
      send_in_cycles (&t, rand, order);
    }
    unshared_check_same (&t.script, &seen, "random cycles", seed);
    table_clear (&t);
  }
  LS_CHECK (seen.n_lanes > 0 && seen.n_shared > 0);
}

/* --- collectives ------------------------------------------------------------------ */

static const LsNccl round_nccl = {
  .tables = LS_TEST_NCCL_VOLTA,
  .channels_ring = 24,
  .channels_net = 2,
  .channels_nvls = 16,
  .channels_p2p = 2,
  .ring_bus_intra = 240e9,
  .ring_bus_per_nic = 16e9,
  .p2p_intra = 250e9,
  .p2p_inter = 20e9,
  .base_all_reduce = 10 * LS_US,
  .base_nvls = 25 * LS_US,
  .base_p2p_inter = 36 * LS_US,
  .hop_intra = LS_US,
  .hop_inter = 14 * LS_US,
  .sm_share_per_channel = 1.0 / 108,
  .hbm_per_wire_all_reduce = 3,
  .hbm_per_wire_all_gather = 3,
  .hbm_per_wire_reduce_scatter = 3,
  .hbm_per_wire_p2p = 2,
  .nvls_bus = 400e9,
};

static LsClusterSpec
random_spec (GRand *rand)
{
  if (g_rand_int_range (rand, 0, 4) == 0)
    return tiny_torus (1, 4, 4, 0, g_rand_boolean (rand) ? LS_WRAP_ALL : LS_WRAP_NONE);
  if (g_rand_int_range (rand, 0, 4) == 0)
    return random_dragonfly (rand, (uint32_t) g_rand_int_range (rand, 2, 24));
  LsClusterSpec s = tiny_dgx (g_rand_boolean (rand) ? 8 : (uint32_t) g_rand_int_range (rand, 1, 7));
  s.network.nodes_per_leaf = 4;
  s.network.oversubscription = s.n_nodes == 8 ? 4 : 1;
  s.network.rails = g_rand_boolean (rand) ? 1 : s.network.rails;
  s.network.routing = g_rand_boolean (rand) ? LS_ROUTING_ECMP : s.network.routing;
  return s;
}

#define MOST_MESSAGES 20000 /* that all contend take a second */

static void
every_algorithm_ends_as_event_by_event (void)
{
  Seen seen = { 0 };
  for (guint32 seed = 1; seed <= ls_test_cases (13, 40); seed++) {
    g_autoptr (GRand) rand = g_rand_new_with_seed (seed);
    LsClusterSpec spec = random_spec (rand);
    g_autoptr (GError) error = NULL;
    g_autoptr (LsCluster) c = ls_cluster_build (&spec, &error);
    LS_CHECK_NO_ERROR (error);
    if (!c)
      return;
    uint32_t gpus[24], n = 0;
    bool is_whole = g_rand_boolean (rand); /* else uneven nodes, and so many rings that differ */
    for (uint32_t i = 0; i < c->n_gpus && n < G_N_ELEMENTS (gpus); i++)
      if (is_whole || n < 2 || g_rand_int_range (rand, 0, 3) == 0)
        gpus[n++] = i;
    for (int kind = 0; kind < LS_N_COLL_KINDS; kind++)
      for (const char *const *name = ls_coll_algorithms (); *name; name++) {
        g_autoptr (LsArena) arena = ls_arena_new ();
        LsCollRequest request = { .kind = (LsCollKind) kind, .gpus = gpus, .n = n, .algorithm = *name };
        request.bytes = (uint64_t) g_rand_int_range (rand, 1, 1 << 20) << g_rand_int_range (rand, 0, 8);
        if (!ls_coll_applies (c, &round_nccl, &request)
            || !ls_coll_check_size (c, &round_nccl, &request, LS_NETWORK_STEP, NULL))
          continue;
        const LsScript *script = ls_coll_script (c, &round_nccl, &request, arena);
        if (ls_script_n_messages (script) <= MOST_MESSAGES)
          unshared_check_same (script, &seen, *name, seed);
      }
  }
  LS_CHECK (seen.n_lanes > 0 && seen.n_rounds > 0 && seen.n_shared > 0);
}

/* --- what the machine can say ------------------------------------------------------ */

/* The last round of a cycle may be over beyond what a clock can say; so may a sum. */
static void
what_never_ends_is_told (void)
{
  g_autoptr (LsCluster) c = nodes (1);
  double capacity[256];
  for (uint32_t i = 0; i < ls_cluster_n_resources (c) && i < G_N_ELEMENTS (capacity); i++)
    capacity[i] = ls_cluster_resource_capacity (c, i);
  LS_CHECK_INT (ls_cluster_n_resources (c), <=, G_N_ELEMENTS (capacity));
  for (int has_lanes = 0; has_lanes < 2; has_lanes++)
    for (double rate = 1; rate > 1e-30; rate /= 1e3) {
      Table t;
      LsTime end;
      table_ring (&t, c, 4);
      t.script.has_lanes = has_lanes;
      t.script.hop_intra = LS_TIME_NEVER / 3;
      t.script.rate_intra = rate;
      LS_CHECK (messages_time_unshared (&t.script, capacity, &end));
      LS_CHECK_INT (end, ==, LS_TIME_NEVER);
      LS_CHECK_INT (ls_messages_time_by_events (&t.script, c, NULL), ==, LS_TIME_NEVER);
      table_clear (&t);
    }
}

LS_TEST_SUITE (LS_TEST (the_launch_queue_is_full_in_both_ways), LS_TEST (fast_runs_equal_plain_runs),
               LS_TEST (random_scripts_end_as_event_by_event), LS_TEST (random_cycles_end_as_event_by_event),
               LS_TEST (every_algorithm_ends_as_event_by_event), LS_TEST (what_never_ends_is_told))
