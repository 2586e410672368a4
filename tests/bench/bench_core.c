/* What the core does per second: events that are dispatched, activities that come and go, systems that are solved.
 *
 * Usage: bench_core evq|flow|maxmin */
#include "ls_bench.h"

#include <math.h>
#include <string.h>

#include "cli/heap.h"
#include "core/engine.h"
#include "core/flow.h"
#include "core/maxmin.h"

/* ---- events ---- */

/* A hold model through the real dispatch: n events are pending; each, when it
 * fires, schedules itself again at now + random, with the keys of a run (time,
 * phase, sequence). `moved` moves one pending event, drawn at random, with every
 * second event that fires. */

#define MAX_HOLD (2 * LS_MS) /* holds are uniform below this */

typedef struct {
  LsEngine engine;
  LsEvent *events;
  uint32_t n;
  uint64_t left; /* events still to fire */
  uint64_t random;
  bool is_moving;
} Hold;

/* Vigna's splitmix64: fast enough not to be what is measured. */
static uint64_t
draw (Hold *h)
{
  uint64_t z = h->random += UINT64_C (0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C (0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C (0x94d049bb133111eb);
  return z ^ z >> 31;
}

static void
hold (Hold *h, LsEvent *e, uint64_t random)
{
  LsTime wait = (LsTime) ((random >> 32) * MAX_HOLD >> 32);
  ls_engine_at (&h->engine, e, h->engine.now + wait, random & 1 ? LS_PHASE_DISPATCH : LS_PHASE_COMPLETE);
}

static void
fires (LsEvent *e, void *context)
{
  Hold *h = context;
  if (--h->left == 0)
    h->engine.stop_at = h->engine.now;
  uint64_t random = draw (h);
  hold (h, e, random);
  if (h->is_moving && random & 2) {
    uint64_t other = draw (h);
    hold (h, &h->events[(other & UINT32_MAX) * h->n >> 32], other);
  }
}

/* Events per second; the first n, which fill the queue's memory, do not count. */
static double
events_per_s (const LsEvqType *type, uint32_t n, uint64_t n_events, bool is_moving)
{
  Hold h = { .n = n, .random = n, .is_moving = is_moving, .events = g_new (LsEvent, n) };
  ls_engine_init (&h.engine, type, &h);
  for (uint32_t i = 0; i < n; i++) {
    ls_event_init (&h.events[i], fires);
    hold (&h, &h.events[i], draw (&h));
  }
  h.left = n;
  ls_engine_run (&h.engine);

  h.engine.stop_at = LS_TIME_NEVER;
  h.left = n_events;
  double start = ls_bench_cpu_s ();
  ls_engine_run (&h.engine);
  double rate = (double) n_events / (ls_bench_cpu_s () - start);
  ls_engine_clear (&h.engine);
  g_free (h.events);
  return rate;
}

static void
bench_evq (void)
{
  static const struct {
    uint32_t n;
    uint64_t n_events, n_reference; /* 0: the reference takes too long */
  } sizes[] = { { 1000, 10000000, 1000000 }, { 100000, 10000000, 20000 }, { 1000000, 10000000, 0 } };

  for (int moving = 0; moving < 2; moving++)
    for (size_t i = 0; i < G_N_ELEMENTS (sizes); i++) {
      double fast = 0;
      for (int k = 0; k < 3; k++) /* what disturbs only slows */
        fast = MAX (fast, events_per_s (&ls_evq_radix, sizes[i].n, sizes[i].n_events, moving));
      double plain = sizes[i].n_reference
          ? events_per_s (&ls_evq_reference, sizes[i].n, sizes[i].n_reference, moving)
          : 0;
      ls_bench_print (moving ? "evq_hold_moved" : "evq_hold", sizes[i].n, "events/s", fast,
                      plain ? fast / plain : 0);
    }
}

/* ---- activities ---- */

/* Activities that come and go: n are in progress, in groups of eight that share the
 * four links of a host, which they can fill; each that ends is followed by another.
 * Activities per second, against solving all of them every time. */

#define PER_HOST  8
#define LINKS     4
#define FLOW_PATH 2

typedef struct {
  LsFlow flow;
  LsFlowUse uses[FLOW_PATH];
} Transfer;

typedef struct {
  LsEngine engine;
  LsFlowNet *net;
  GRand *rand;
  uint64_t left; /* transfers still to end */
} World;

static void
transfer_begin (World *w, Transfer *t)
{
  t->flow.remaining = 1e6 * g_rand_int_range (w->rand, 1, 1000);
  t->flow.cap = 1e9 * g_rand_int_range (w->rand, 10, 100);
  t->flow.nominal = 0;
  ls_flow_add (w->net, &t->flow);
}

static void
transfer_over (LsEvent *event, void *context)
{
  World *w = context;
  Transfer *t = (Transfer *) ((char *) event - G_STRUCT_OFFSET (Transfer, flow.done));
  ls_flow_remove (w->net, &t->flow);
  transfer_begin (w, t);
  if (--w->left == 0)
    w->engine.stop_at = w->engine.now;
}

static double
transfers_per_s (uint32_t n, uint64_t n_transfers, bool is_reference)
{
  World w = { .rand = g_rand_new_with_seed (n), .left = n_transfers };
  uint32_t n_links = n / PER_HOST * LINKS;
  double *capacity = g_new (double, n_links);
  Transfer *transfers = g_new0 (Transfer, n);
  for (uint32_t l = 0; l < n_links; l++)
    capacity[l] = 100e9;
  ls_engine_init (&w.engine, &ls_evq_radix, &w);
  w.net = ls_flow_net_new (&w.engine, n_links, capacity, is_reference);
  for (uint32_t i = 0; i < n; i++) {
    Transfer *t = &transfers[i];
    for (uint32_t k = 0; k < FLOW_PATH; k++)
      t->uses[k] = (LsFlowUse) { .resource = i / PER_HOST * LINKS + (i + k) % LINKS, .coef = LS_COEF_ONE };
    t->flow.uses = t->uses;
    t->flow.n_uses = FLOW_PATH;
    ls_flow_init (&t->flow, transfer_over);
    transfer_begin (&w, t);
  }
  double start = ls_bench_cpu_s ();
  ls_engine_run (&w.engine);
  double rate = (double) n_transfers / (ls_bench_cpu_s () - start);
  ls_flow_net_free (w.net);
  ls_engine_clear (&w.engine);
  g_rand_free (w.rand);
  g_free (capacity);
  g_free (transfers);
  return rate;
}

static void
bench_flow (void)
{
  static const struct {
    uint32_t n;
    uint64_t n_fast, n_reference;
  } sizes[] = { { 8, 500000, 500000 }, { 64, 500000, 50000 }, { 1024, 500000, 300 } };

  for (size_t i = 0; i < G_N_ELEMENTS (sizes); i++) {
    double fast = transfers_per_s (sizes[i].n, sizes[i].n_fast, false);
    double plain = transfers_per_s (sizes[i].n, sizes[i].n_reference, true);
    ls_bench_print ("flow", sizes[i].n, "activities/s", fast, fast / plain);
  }
}

/* ---- the solver ---- */

/* The solver alone: systems of n activities that cross three of n / 2 resources
 * each, half of them capped. Solves per second; the solver is its own reference. */

#define SYSTEM_PATH 3

typedef struct {
  LsMaxmin p;
  double *capacity, *cap, *rate;
  uint32_t *first, *res;
  uint64_t *coef;
  void *scratch;
} System;

static void
system_init (System *s, uint32_t n)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (n);
  uint32_t n_res = n / 2;
  *s = (System) {
    .capacity = g_new (double, n_res),
    .cap = g_new (double, n),
    .rate = g_new (double, n),
    .first = g_new0 (uint32_t, n + 1),
    .res = g_new (uint32_t, SYSTEM_PATH * n),
    .coef = g_new (uint64_t, SYSTEM_PATH * n),
  };
  for (uint32_t l = 0; l < n_res; l++)
    s->capacity[l] = 1e9 * g_rand_int_range (rand, 10, 100);
  for (uint32_t f = 0; f < n; f++) {
    uint32_t start = (uint32_t) g_rand_int_range (rand, 0, (gint32) n_res);
    s->cap[f] = f % 2 ? INFINITY : 1e9 * g_rand_int_range (rand, 1, 20);
    s->first[f + 1] = SYSTEM_PATH * (f + 1);
    for (uint32_t i = 0; i < SYSTEM_PATH; i++) {
      s->res[SYSTEM_PATH * f + i] = (start + i) % n_res;
      s->coef[SYSTEM_PATH * f + i] = LS_COEF_ONE;
    }
  }
  s->p = (LsMaxmin) { n_res, n, s->capacity, s->cap, s->first, s->res, s->coef };
  s->scratch = g_malloc (ls_maxmin_scratch_bytes (&s->p));
}

static void
system_clear (System *s)
{
  void *all[] = { s->capacity, s->cap, s->rate, s->first, s->res, s->coef, s->scratch };
  for (size_t i = 0; i < G_N_ELEMENTS (all); i++)
    g_free (all[i]);
}

static void
bench_maxmin (void)
{
  static const struct {
    uint32_t n, n_solves;
  } sizes[] = { { 8, 1000000 }, { 64, 50000 }, { 512, 1000 } };

  for (size_t i = 0; i < G_N_ELEMENTS (sizes); i++) {
    System s;
    system_init (&s, sizes[i].n);
    double start = ls_bench_cpu_s ();
    for (uint32_t k = 0; k < sizes[i].n_solves; k++)
      ls_maxmin_solve (&s.p, s.scratch, s.rate);
    ls_bench_print ("maxmin", sizes[i].n, "solves/s", sizes[i].n_solves / (ls_bench_cpu_s () - start), 0);
    system_clear (&s);
  }
}

/* ---- the program ---- */

static const struct {
  const char *name;
  void (*run) (void);
} benchmarks[] = { { "evq", bench_evq }, { "flow", bench_flow }, { "maxmin", bench_maxmin } };

int
main (int argc, char **argv)
{
  for (size_t i = 0; argc == 2 && i < G_N_ELEMENTS (benchmarks); i++)
    if (strcmp (argv[1], benchmarks[i].name) == 0) {
      cli_keep_memory ();
      ls_bench_header ();
      benchmarks[i].run ();
      return 0;
    }
  fprintf (stderr, "usage: bench_core evq|flow|maxmin\n");
  return 2;
}
