/* Pins: when flows end, alone and shared; the fast solver gives the times of the
 * reference that solves everything, to the picosecond; an undisturbed flow takes exactly
 * its nominal time. */
#include "ls_test.h"

#include "core/flow.h"

typedef struct {
  LsFlow flow;
  LsEvent begin;
  LsFlowUse uses[4];
  LsTime ended;
} Job;

typedef struct {
  LsEngine engine;
  LsFlowNet *net;
} World;

static void
job_over (LsEvent *event, void *context)
{
  World *w = context;
  Job *j = (Job *) ((char *) event - G_STRUCT_OFFSET (Job, flow.done));
  ls_flow_remove (w->net, &j->flow);
  j->ended = event->at;
}

static void
job_begins (LsEvent *event, void *context)
{
  World *w = context;
  ls_flow_add (w->net, &((Job *) ((char *) event - G_STRUCT_OFFSET (Job, begin)))->flow);
}

static void
world_init (World *w, uint32_t n, const double *capacity, bool is_reference)
{
  ls_engine_init (&w->engine, &ls_evq_radix, w);
  w->net = ls_flow_net_new (&w->engine, n, capacity, is_reference);
}

static void
world_run (World *w)
{
  ls_engine_run (&w->engine);
  ls_flow_net_check (w->net);
  ls_flow_net_free (w->net);
  ls_engine_clear (&w->engine);
}

static void
job_init (World *w, Job *j, LsTime at, double bytes, double cap, uint32_t n, const uint32_t *resources)
{
  *j = (Job) { .ended = -1 };
  ls_flow_init (&j->flow, job_over);
  ls_event_init (&j->begin, job_begins);
  j->flow.remaining = bytes;
  j->flow.cap = cap;
  j->flow.uses = j->uses;
  j->flow.n_uses = n;
  for (uint32_t i = 0; i < n; i++)
    j->uses[i] = (LsFlowUse) { .resource = resources[i], .coef = LS_COEF_ONE };
  ls_engine_at (&w->engine, &j->begin, at, LS_PHASE_DISPATCH);
}

/* 1000 B at 1e9 B/s take 1 us. A second one joins half way: 500 B are left, both
 * run at half speed for 1 us; the second then finishes its other 500 B alone. */
static void
two_flows_share_one_link (void)
{
  World w;
  double capacity[] = { 1e9 };
  uint32_t link[] = { 0 };
  Job a, b;
  world_init (&w, 1, capacity, false);
  job_init (&w, &a, 0, 1000, 1e12, 1, link);
  job_init (&w, &b, 500 * LS_NS, 1000, 1e12, 1, link);
  world_run (&w);
  LS_CHECK_INT (a.ended, ==, 1500 * LS_NS);
  LS_CHECK_INT (b.ended, ==, 2000 * LS_NS);
}

static void
an_undisturbed_flow_takes_its_nominal_time (void)
{
  World w;
  double capacity[] = { 1e12 };
  uint32_t link[] = { 0 };
  Job a;
  world_init (&w, 1, capacity, false);
  job_init (&w, &a, 17, 3, 3e9 / 7, 1, link);
  a.flow.nominal = 6999;
  a.flow.nominal_rate = a.flow.cap;
  world_run (&w);
  LS_CHECK_INT (a.ended, ==, 17 + 6999);
}

/* 10 ms of latency, then 100 kB at 1 Mbit/s: 0.81 s, as SimGrid computes without the
 * factors that make its LV08 resemble TCP (docs/source/Models.rst). Those have no place
 * here: latencies and efficiencies are those of the cluster's links. */
static void
latency_is_paid_before_the_flow (void)
{
  World w;
  double capacity[] = { 1e6 / 8 };
  uint32_t link[] = { 0 };
  Job a;
  world_init (&w, 1, capacity, false);
  job_init (&w, &a, 10 * LS_MS, 100e3, 1e12, 1, link);
  ls_engine_run (&w.engine);
  LS_CHECK_INT (ls_flow_net_n_solves (w.net), >, 0);
  world_run (&w);
  LS_CHECK_INT (a.ended, ==, 810 * LS_MS);
}

/* Caps that a resource can serve together never couple: no system is solved. */
static void
resources_that_cannot_fill_do_not_couple (void)
{
  World w;
  double capacity[] = { 10e9 };
  uint32_t link[] = { 0 };
  Job a, b;
  world_init (&w, 1, capacity, false);
  job_init (&w, &a, 0, 1000, 4e9, 1, link);
  job_init (&w, &b, 0, 1000, 5e9, 1, link);
  ls_engine_run (&w.engine);
  LS_CHECK_INT (ls_flow_net_n_solves (w.net), ==, 0);
  LS_CHECK_INT (a.ended, ==, 250 * LS_NS);
  LS_CHECK_INT (b.ended, ==, 200 * LS_NS);
  world_run (&w);
}

#define N_JOBS  400
#define N_LINKS 30

static void
run_storm (guint32 seed, bool is_reference, LsTime *ended)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (seed);
  World w;
  double capacity[N_LINKS];
  Job *jobs = g_new0 (Job, N_JOBS);
  for (int l = 0; l < N_LINKS; l++)
    capacity[l]
        = seed % 2 ? 1e9 * g_rand_int_range (rand, 1, 30) : 30e9 * g_rand_double_range (rand, 0.03, 1);
  world_init (&w, N_LINKS, capacity, is_reference);
  for (int i = 0; i < N_JOBS; i++) {
    uint32_t path[4]
        = { (uint32_t) g_rand_int_range (rand, 0, 3), (uint32_t) g_rand_int_range (rand, 3, 6),
            (uint32_t) g_rand_int_range (rand, 6, 9), (uint32_t) g_rand_int_range (rand, 9, N_LINKS) };
    uint32_t n = (uint32_t) g_rand_int_range (rand, 1, 5);
    double cap = 1e9 * g_rand_int_range (rand, 1, 12);
    job_init (&w, &jobs[i], g_rand_int_range (rand, 0, 40) * LS_US, 1e3 * g_rand_int_range (rand, 1, 90), cap,
              n, path);
  }
  world_run (&w);
  for (int i = 0; i < N_JOBS; i++)
    ended[i] = jobs[i].ended;
  g_free (jobs);
}

static void
flows_end_when_the_reference_says (void)
{
  for (guint32 seed = 1; seed <= 20; seed++) {
    LsTime fast[N_JOBS], plain[N_JOBS];
    run_storm (seed, false, fast);
    run_storm (seed, true, plain);
    for (int i = 0; i < N_JOBS; i++) {
      LS_CHECK_INT (fast[i], >, 0);
      LS_CHECK_INT (fast[i], ==, plain[i]);
    }
  }
}

/* 1 B at 2^-17 B/s, and from half of it on at 2^-16: 98,304 s. A quantum is 2^-13 B/s: both are one level. */
static void
caps_below_a_quantum_count (void)
{
  for (int is_reference = 0; is_reference < 2; is_reference++) {
    World w;
    const double capacity[] = { 1e12 };
    Job a;
    world_init (&w, 1, capacity, is_reference);
    job_init (&w, &a, 0, 1, 0x1p-17, 0, NULL);
    w.engine.stop_at = 65536 * LS_S;
    ls_engine_run (&w.engine);
    w.engine.now = 65536 * LS_S;
    ls_flow_set_cap (w.net, &a.flow, 0x1p-16);
    w.engine.stop_at = LS_TIME_NEVER;
    world_run (&w);
    LS_CHECK_INT (a.ended, ==, 98304 * LS_S);
  }
}

/* Of whoever watches a net: flows that are in it, and their caps. */
typedef struct {
  int n;
  double caps;
} Watched;

static void
watched_enters (void *context, const LsFlow *f)
{
  Watched *watched = context;
  watched->n++;
  watched->caps += f->cap;
}

static void
watched_leaves (void *context, const LsFlow *f)
{
  Watched *watched = context;
  watched->n--;
  watched->caps -= f->cap;
}

static void
who_watches_a_net_knows_what_is_in_it (void)
{
  World w;
  const double capacity[] = { 100 };
  Watched watched = { 0 };
  Job a, b;
  world_init (&w, 1, capacity, false);
  ls_flow_net_watch (w.net, (LsFlowWatch) { watched_enters, watched_leaves, &watched });
  job_init (&w, &a, 0, 100, 60, 1, (const uint32_t[]) { 0 });
  job_init (&w, &b, 0, 100, 70, 1, (const uint32_t[]) { 0 });
  ls_flow_add (w.net, &a.flow);
  ls_flow_add (w.net, &b.flow);
  LS_CHECK (watched.n == 2 && watched.caps == 130);
  ls_flow_set_cap (w.net, &b.flow, 20);
  LS_CHECK (watched.n == 2 && watched.caps == 80);
  ls_flow_remove (w.net, &a.flow);
  LS_CHECK (watched.n == 1 && watched.caps == 20);
  ls_flow_remove (w.net, &b.flow);
  world_run (&w);
  LS_CHECK (watched.n == 0 && watched.caps == 0);
}

LS_TEST_SUITE (LS_TEST (two_flows_share_one_link), LS_TEST (an_undisturbed_flow_takes_its_nominal_time),
               LS_TEST (latency_is_paid_before_the_flow), LS_TEST (resources_that_cannot_fill_do_not_couple),
               LS_TEST (flows_end_when_the_reference_says), LS_TEST (who_watches_a_net_knows_what_is_in_it),
               LS_TEST (caps_below_a_quantum_count))
