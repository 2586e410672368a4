/* Pins: scripts whose messages meet nobody end by the recurrence when they end event by event, to the
 * picosecond: random sends, random cycles of lanes, and every algorithm in random sizes on random members
 * of random machines; what could fill a resource is left to events; one lane of several that are alike
 * stands for them, and one period for a cycle. */
#include "message_table.h"

#include "nccl_tables.h"
#include "tiny_cluster.h"

typedef struct {
  uint64_t n_lanes, n_rounds, n_shared; /* known by lanes, by rounds; left to events */
} Seen;

static guint
n_cases (guint n)
{
  const char *asked = g_getenv ("LS_CASES");
  return asked ? (guint) g_ascii_strtoull (asked, NULL, 10) : n;
}

static void
check_same (const LsScript *script, Seen *seen, const char *what, guint32 seed)
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
  for (guint32 seed = 1; seed <= n_cases (300); seed++) {
    g_autoptr (GRand) rand = g_rand_new_with_seed (seed);
    Table t;
    table_random (&t, c, rand, (uint32_t) g_rand_int_range (rand, 0, 20),
                  (uint32_t) g_rand_int_range (rand, 2, 9));
    t.script.rate_intra /= g_rand_boolean (rand) ? 10 : 1;
    t.script.rate_inter /= g_rand_boolean (rand) ? 10 : 1;
    check_same (&t.script, &seen, "random sends", seed);
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
  for (guint32 seed = 1; seed <= n_cases (200); seed++) {
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
    check_same (&t.script, &seen, "random cycles", seed);
    table_clear (&t);
  }
  LS_CHECK (seen.n_lanes > 0 && seen.n_shared > 0);
}

/* --- collectives ------------------------------------------------------------------ */

static const LsNccl nccl = {
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
  LsClusterSpec s = tiny_dgx (g_rand_boolean (rand) ? 8 : (uint32_t) g_rand_int_range (rand, 1, 7));
  s.nodes_per_leaf = 4;
  s.oversubscription = s.n_nodes == 8 ? 4 : 1;
  s.rails = g_rand_boolean (rand) ? 1 : s.rails;
  s.routing = g_rand_boolean (rand) ? LS_ROUTING_ECMP : s.routing;
  return s;
}

#define MOST_MESSAGES 20000 /* that all contend take a second */

static void
every_algorithm_ends_as_event_by_event (void)
{
  Seen seen = { 0 };
  for (guint32 seed = 1; seed <= n_cases (40); seed++) {
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
        if (!ls_coll_applies (c, &nccl, &request)
            || !ls_coll_check_size (c, &nccl, &request, LS_NETWORK_STEP, NULL))
          continue;
        const LsScript *script = ls_coll_script (c, &nccl, &request, arena);
        if (ls_script_n_messages (script) <= MOST_MESSAGES)
          check_same (script, &seen, *name, seed);
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

LS_TEST_SUITE (LS_TEST (random_scripts_end_as_event_by_event), LS_TEST (random_cycles_end_as_event_by_event),
               LS_TEST (every_algorithm_ends_as_event_by_event), LS_TEST (what_never_ends_is_told))
