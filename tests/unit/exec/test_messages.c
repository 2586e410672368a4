/* Pins: when a script's messages end, alone and beside others; that leases change no
 * picosecond: random scripts that contend with each other and with flows that come, go
 * and change their cap enter every round at the same time when every message is a flow of
 * the net, and when the net solves everything every time; bytes are counted by link. */
#include "message_table.h"

/* --- alone --------------------------------------------------------------------- */

static void
a_ring_takes_rounds_times_message (void)
{
  g_autoptr (LsCluster) c = nodes (1);
  Table t;
  table_ring (&t, c, 4);
  t.script.block_bytes = 262144;
  t.script.rate_intra = 100e9;
  t.script.base = 7 * LS_US;
  LS_CHECK_INT (ls_messages_time_alone (&t.script, c, NULL), ==, 7 * LS_US + 6 * (LS_US + 2621440));
  t.script.rate_intra = 3e11 / 7; /* 6,116,693.33 ps: rounded up in each message */
  LS_CHECK_INT (ls_messages_time_alone (&t.script, c, NULL), ==, 7 * LS_US + 6 * (LS_US + 6116694));
  table_clear (&t);
}

/* Two flows for each message: half the bytes on each. */
static void
flows_divide_a_message (void)
{
  g_autoptr (LsCluster) c = nodes (1);
  Table t;
  table_ring (&t, c, 4);
  t.script.rate_intra = 10e9;
  t.script.flows = 2 * LS_COEF_ONE;
  LS_CHECK_INT (ls_messages_time_alone (&t.script, c, NULL), ==, 6 * (LS_US + 50 * LS_US));
  table_clear (&t);
}

static void
without_bytes_only_latency (void)
{
  g_autoptr (LsCluster) c = nodes (1);
  Table t;
  table_ring (&t, c, 5);
  t.script.block_bytes = 0;
  LS_CHECK_INT (ls_messages_time_alone (&t.script, c, NULL), ==, 8 * LS_US);
  t.script.n_rounds = 0;
  LS_CHECK_INT (ls_messages_time_alone (&t.script, c, NULL), ==, 0);
  table_clear (&t);
}

/* Beyond half of what a clock can say there is no time, whether one message takes it, some
 * after each other do, or a link that is all but dead. */
static void
what_takes_too_long_never_ends (void)
{
  g_autoptr (LsCluster) c = nodes (1);
  Table t;
  table_ring (&t, c, 4);
  t.script.rate_intra = 1;
  for (double block = 1e6; block < 1e30; block *= 1e3) {
    t.script.block_bytes = block;
    LS_CHECK_INT (ls_messages_time_alone (&t.script, c, NULL), ==, LS_TIME_NEVER);
  }
  t.script.block_bytes = 7e5; /* 6 messages of 700,000 s: 48.6 days of 53.4 */
  LS_CHECK_INT (ls_messages_time_alone (&t.script, c, NULL), ==, 6 * (LS_US + 700000 * LS_S));
  table_clear (&t);
  LsClusterSpec dead = tiny_dgx (1);
  dead.server.nvlink.bandwidth_bytes_per_s = 1e-9;
  g_autoptr (LsCluster) slow = ls_cluster_build (&dead, NULL);
  table_ring (&t, slow, 4);
  LS_CHECK_INT (ls_messages_time_alone (&t.script, slow, NULL), ==, LS_TIME_NEVER);
  table_clear (&t);
}

/* Three senders and one link into the receiver, of 273 GB/s: 91 GB/s each. After 1 ms their
 * bytes have left; place 1 goes on to round 3, and its message finds place 2 in round 2. */
static void
one_link_is_shared_and_early_messages_wait (void)
{
  g_autoptr (LsCluster) c = nodes (1);
  Table t;
  table_init (&t, c, 4, 4, 1);
  for (uint32_t i = 1; i < 4; i++)
    table_send (&t, 0, i, 0, 91); /* 91 MB at 91 GB/s: 1 ms */
  table_send (&t, 3, 1, 2, 1);
  table_send (&t, 2, 2, 3, 91); /* at 200 GB/s */
  t.script.rate_intra = 200e9;
  LS_CHECK_INT (ls_messages_time_alone (&t.script, c, NULL), ==, LS_MS + 455 * LS_US + LS_US);
  table_clear (&t);
}

/* 0 -> 1 -> 2, and 2 is so slow that 1 is done with 40 rounds before 2 is in its second. */
static void
a_place_may_be_far_ahead (void)
{
  g_autoptr (LsCluster) c = nodes (1);
  Table t;
  table_init (&t, c, 4, 40, 1);
  for (uint32_t r = 0; r < 40; r++)
    table_send (&t, r, 0, 1, 1);
  table_send (&t, 0, 2, 3, 100000); /* 10 s */
  table_send (&t, 39, 3, 1, 1);
  LS_CHECK_INT (ls_messages_time_alone (&t.script, c, NULL), ==, LS_US + 10 * LS_S + LS_US + 100 * LS_US);
  table_clear (&t);
}

/* Two rings in opposite directions over two nodes. Together each round waits for the slow
 * edge, as each place is at it in one of the two; apart only what passes it does. */
static void
lanes_go_by_themselves (void)
{
  g_autoptr (LsCluster) c = nodes (2);
  Table t;
  table_init (&t, c, 4, 6, 2);
  for (uint32_t i = 0; i < 4; i++)
    t.gpus[i] = i < 2 ? i : 8 + i;
  for (uint32_t r = 0; r < 6; r++)
    for (uint32_t i = 0; i < 4; i++) {
      table_send (&t, r, i, (i + 1) % 4, 1);
      table_send (&t, r, i, (i + 3) % 4, 1);
    }
  t.script.hop_inter = 50 * LS_US;
  LS_CHECK_INT (ls_messages_time_alone (&t.script, c, NULL), ==, 6 * (100 + 50) * LS_US);
  t.script.has_lanes = true; /* of 6 edges in a row up to 3 are between the nodes */
  LS_CHECK_INT (ls_messages_time_alone (&t.script, c, NULL), ==,
                6 * 100 * LS_US + 3 * 50 * LS_US + 3 * LS_US);
  table_clear (&t);
}

/* --- together ---------------------------------------------------------------------- */

/* A flow beside the scripts: it begins, perhaps changes its cap, and ends. */
typedef struct {
  LsFlow flow;
  LsFlowUse uses[3];
  LsEvent begins, changes;
  double new_cap;
  LsTime ended;
} Other;

typedef struct {
  Table table;
  LsEvent begins;
  Messages *messages;
  LsTime ended;
  uint32_t n_again; /* times that it runs again when it is over */
} Work;

typedef struct {
  LsEngine engine;
  MessageNet net;
  double *bytes;
  bool lost;
} World;

#define N_WORKS  4
#define N_OTHERS 12

static void
other_begins (LsEvent *event, void *context)
{
  World *w = context;
  Other *o = (Other *) ((char *) event - G_STRUCT_OFFSET (Other, begins));
  ls_flow_add (w->net.flows, &o->flow);
}

static void
other_changes (LsEvent *event, void *context)
{
  World *w = context;
  Other *o = (Other *) ((char *) event - G_STRUCT_OFFSET (Other, changes));
  if (!o->flow.is_active)
    return;
  ls_flow_set_cap (w->net.flows, &o->flow, o->new_cap);
}

static void
other_ends (LsEvent *event, void *context)
{
  World *w = context;
  Other *o = (Other *) ((char *) event - G_STRUCT_OFFSET (Other, flow.done));
  ls_flow_remove (w->net.flows, &o->flow);
  o->ended = event->at;
}

static void
work_begins (LsEvent *event, void *context)
{
  World *w = context;
  Work *k = (Work *) ((char *) event - G_STRUCT_OFFSET (Work, begins));
  messages_begin (k->messages, k, w->bytes);
}

static void
work_ended (void *context, void *owner, LsTime at)
{
  Work *k = owner;
  k->ended = at;
  if (k->n_again == 0)
    return;
  k->n_again--;
  ls_engine_at (&((World *) context)->engine, &k->begins, at + 5 * LS_US, LS_PHASE_COMPLETE);
}

static void
check_moved (void *context, const LsFlow *f, double asked)
{
  World *w = context;
  w->lost = w->lost || ABS (f->moved - asked) > 1e-9 * asked + 2e-12 * f->cap;
}

static void
random_other (Other *o, World *w, GRand *rand, const LsCluster *c)
{
  LsRoute route;
  uint32_t from = (uint32_t) g_rand_int_range (rand, 0, (gint32) c->n_gpus), to = (from + 3) % c->n_gpus;
  ls_route (c, from, to, 0, &route);
  *o = (Other) { .ended = -1 };
  o->uses[0] = (LsFlowUse) { .resource = ls_cluster_hbm_resource (c, from), .coef = LS_COEF_ONE };
  o->uses[1] = (LsFlowUse) { .resource = route.hop[0].trunk, .coef = LS_COEF_ONE };
  o->uses[2] = (LsFlowUse) { .resource = route.hop[route.n_hops - 1].trunk, .coef = LS_COEF_ONE };
  o->flow.uses = o->uses;
  o->flow.n_uses = (uint32_t) g_rand_int_range (rand, 1, 4);
  o->flow.cap = 1e9 * g_rand_int_range (rand, 1, 2500);
  o->flow.remaining = 1e5 * g_rand_int_range (rand, 1, 200);
  o->new_cap = 1e9 * g_rand_int_range (rand, 1, 2500);
  ls_flow_init (&o->flow, other_ends);
  ls_event_init (&o->begins, other_begins);
  ls_event_init (&o->changes, other_changes);
  LsTime at = g_rand_int_range (rand, 0, 300) * LS_US;
  ls_engine_at (&w->engine, &o->begins, at, LS_PHASE_DISPATCH);
  ls_engine_at (&w->engine, &o->changes, at + g_rand_int_range (rand, 1, 50) * LS_US, LS_PHASE_COMPLETE);
}

typedef enum { LEASED, PLAIN, SOLVE_ALL } How;

/* Everything that happens at its time: rounds entered, ends; newly allocated. */
static GArray *
run_world (guint32 seed, const LsCluster *c, How how, double *ret_bytes, uint64_t *ret_events)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (seed);
  World w = { .bytes = ret_bytes };
  uint32_t n_res = ls_cluster_n_resources (c);
  g_autofree double *capacity = g_new (double, n_res);
  for (uint32_t i = 0; i < n_res; i++)
    capacity[i] = ls_cluster_resource_capacity (c, i);
  ls_engine_init (&w.engine, &ls_evq_radix, &w);
  w.net = (MessageNet) { .engine = &w.engine, .flow_over = check_moved, .context = &w };
  w.net.flows = ls_flow_net_new (&w.engine, n_res, capacity, how == SOLVE_ALL);
  w.net.leases = how == LEASED ? leases_new (w.net.flows, n_res, capacity, messages_revoked) : NULL;
  Work works[N_WORKS];
  Other others[N_OTHERS];
  int n_others = g_rand_int_range (rand, 0, N_OTHERS + 1);
  for (uint32_t i = 0; i < N_WORKS; i++) {
    Work *k = &works[i];
    *k = (Work) { .ended = -1, .n_again = (uint32_t) g_rand_int_range (rand, 0, 3) };
    table_random (&k->table, c, rand, 3 * i, (uint32_t) g_rand_int_range (rand, 2, 9));
    k->table.engine = &w.engine;
    k->messages = messages_new (&w.net, &k->table.script, work_ended);
    ls_event_init (&k->begins, work_begins);
    ls_engine_at (&w.engine, &k->begins, g_rand_int_range (rand, 0, 100) * LS_US, LS_PHASE_COMPLETE);
  }
  for (int i = 0; i < n_others; i++)
    random_other (&others[i], &w, rand, c);
  ls_engine_run (&w.engine);
  *ret_events = w.engine.n_events;
  LS_CHECK (!w.lost);

  GArray *times = g_array_new (FALSE, FALSE, sizeof (LsTime));
  for (uint32_t i = 0; i < N_WORKS; i++) {
    Table *t = &works[i].table;
    g_array_append_vals (times, t->entered, t->script.n_rounds * t->script.n);
    g_array_append_val (times, works[i].ended);
    messages_free (works[i].messages);
    table_clear (t);
  }
  for (int i = 0; i < n_others; i++)
    g_array_append_val (times, others[i].ended);
  leases_free (w.net.leases);
  ls_flow_net_check (w.net.flows);
  ls_flow_net_free (w.net.flows);
  ls_engine_clear (&w.engine);
  return times;
}

static void
check_same (const GArray *a, const GArray *b, guint32 seed, const char *what)
{
  bool same = a->len == b->len;
  for (guint i = 0; i < a->len && same; i++)
    same = g_array_index (a, LsTime, i) == g_array_index (b, LsTime, i) && g_array_index (a, LsTime, i) >= 0;
  ls_check_impl (same, __FILE__, __LINE__, "seed %u: %s differs", seed, what);
}

static void
leases_change_no_picosecond (void)
{
  g_autoptr (LsCluster) c = nodes (3);
  uint32_t n_res = ls_cluster_n_resources (c);
  guint n = ls_test_cases (100, 100);
  uint64_t n_leased = 0, n_plain = 0;
  for (guint32 seed = 1; seed <= n; seed++) {
    g_autofree double *bytes = g_new0 (double, n_res), *plain_bytes = g_new0 (double, n_res);
    uint64_t events, plain_events, ignored;
    g_autoptr (GArray) leased = run_world (seed, c, LEASED, bytes, &events);
    g_autoptr (GArray) plain = run_world (seed, c, PLAIN, plain_bytes, &plain_events);
    g_autoptr (GArray) all = run_world (seed, c, SOLVE_ALL, NULL, &ignored);
    check_same (leased, plain, seed, "every message a flow");
    check_same (plain, all, seed, "everything solved every time");
    for (uint32_t i = 0; i < n_res; i++)
      LS_CHECK_NEAR (bytes[i], plain_bytes[i], 1e-12);
    n_leased += events;
    n_plain += plain_events;
  }
  LS_CHECK_INT (n_leased, <, n_plain); /* else leases were never granted */
}

/* In a ring alone each trunk of a member carries what it sends or receives, and each message
 * is one event. */
static void
a_message_is_one_event_and_its_bytes_are_counted (void)
{
  g_autoptr (LsCluster) c = nodes (1);
  uint32_t n_res = ls_cluster_n_resources (c);
  g_autofree double *bytes = g_new0 (double, n_res), *capacity = g_new (double, n_res);
  for (uint32_t i = 0; i < n_res; i++)
    capacity[i] = ls_cluster_resource_capacity (c, i);
  World w = { 0 };
  ls_engine_init (&w.engine, &ls_evq_radix, &w);
  w.net = (MessageNet) { .engine = &w.engine,
                         .flows = ls_flow_net_new (&w.engine, n_res, capacity, false),
                         .context = &w };
  w.net.leases = leases_new (w.net.flows, n_res, capacity, messages_revoked);
  Work k = { .ended = -1 };
  table_ring (&k.table, c, 4);
  k.table.script.flows = 3 * LS_COEF_ONE;
  k.table.script.rate_intra = 90e9; /* 270 of the link's 273 GB/s: no room for what is not there */
  k.table.script.hbm_from = 1.5;
  k.table.script.hbm_to = 2;
  k.messages = messages_new (&w.net, &k.table.script, work_ended);
  messages_begin (k.messages, &k, bytes);
  ls_engine_run (&w.engine);
  LS_CHECK_INT (w.engine.n_events, ==, 24); /* one a message */
  LsRoute route;
  ls_route (c, 0, 1, 0, &route);
  for (uint32_t h = 0; h < route.n_hops; h++)
    LS_CHECK_NEAR (bytes[route.hop[h].trunk], 6e6, 1e-12);
  LS_CHECK_NEAR (bytes[ls_cluster_hbm_resource (c, 0)], 6e6 * 3.5, 1e-12);
  LS_CHECK_NEAR (bytes[ls_cluster_hbm_resource (c, 7)], 0.0, 0);

  /* A flow that fills a link ends leases; after it they are granted again. */
  Other o = { .uses[0] = { .resource = route.hop[0].trunk, .coef = LS_COEF_ONE } };
  o.flow = (LsFlow) { .remaining = 1000, .cap = 1e12, .uses = o.uses, .n_uses = 1 };
  ls_flow_init (&o.flow, other_ends);
  messages_begin (k.messages, &k, bytes);
  ls_flow_add (w.net.flows, &o.flow);
  ls_engine_run (&w.engine);
  uint64_t n_events = w.engine.n_events;
  LS_CHECK_INT (n_events, >, 2 * 24 + 2); /* the flow's end, a solve, and more for messages */
  messages_begin (k.messages, &k, bytes);
  ls_engine_run (&w.engine);
  LS_CHECK_INT (w.engine.n_events - n_events, ==, 24);
  messages_free (k.messages);
  table_clear (&k.table);
  leases_free (w.net.leases);
  ls_flow_net_free (w.net.flows);
  ls_engine_clear (&w.engine);
}

/* Told of ever more messages, up to those that were counted first. */
static void
note_progress (guint64 n_done, guint64 n_to_do, gpointer data)
{
  guint64 *last = data;
  LS_CHECK (n_done > last[0] && n_done <= n_to_do);
  last[0] = n_done;
  last[1] = n_to_do;
}

static void
progress_is_of_the_messages_counted_first (void)
{
  g_autoptr (LsCluster) c = nodes (32);
  g_autoptr (LsArena) arena = ls_arena_new ();
  uint32_t gpus[256];
  for (uint32_t i = 0; i < G_N_ELEMENTS (gpus); i++)
    gpus[i] = i;
  const LsNccl nccl = { .channels_ring = 24,
                        .channels_net = 2,
                        .channels_p2p = 2,
                        .ring_bus_intra = 240e9,
                        .ring_bus_per_nic = 16e9,
                        .p2p_intra = 250e9,
                        .p2p_inter = 20e9,
                        .base_p2p_intra = 12 * LS_US,
                        .base_p2p_inter = 36 * LS_US,
                        .sm_share_per_channel = 1.0 / 108 };
  const LsCollRequest request = {
    .kind = LS_COLL_ALL_TO_ALL, .gpus = gpus, .n = MIN (G_N_ELEMENTS (gpus), c->n_gpus), .bytes = 1 << 20
  };
  const LsScript *script = ls_coll_script (c, &nccl, &request, arena);
  guint64 last[2] = { 0, 0 };
  LsTime told = ls_messages_time_alone (script, c, &(LsProgress) { note_progress, last });
  LS_CHECK_INT (told, ==, ls_messages_time_alone (script, c, NULL));
  LS_CHECK (last[0] > 0);
  LS_CHECK_INT (last[1], ==, ls_script_n_messages (script));
}

LS_TEST_SUITE (LS_TEST (progress_is_of_the_messages_counted_first),
               LS_TEST (a_ring_takes_rounds_times_message), LS_TEST (flows_divide_a_message),
               LS_TEST (without_bytes_only_latency), LS_TEST (what_takes_too_long_never_ends),
               LS_TEST (one_link_is_shared_and_early_messages_wait), LS_TEST (a_place_may_be_far_ahead),
               LS_TEST (lanes_go_by_themselves), LS_TEST (leases_change_no_picosecond),
               LS_TEST (a_message_is_one_event_and_its_bytes_are_counted))
