/* A hold model through the real dispatch: n events are pending; each, when it
 * fires, schedules itself again at now + random, with the keys of a run (time,
 * phase, sequence). `moved` moves one pending event, drawn at random, with every
 * second event that fires. */
#include "ls_bench.h"

#include "cli/heap.h"
#include "core/engine.h"

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

int
main (void)
{
  static const struct {
    uint32_t n;
    uint64_t n_events, n_reference; /* 0: the reference takes too long */
  } sizes[] = { { 1000, 10000000, 1000000 }, { 100000, 10000000, 20000 }, { 1000000, 10000000, 0 } };

  cli_keep_memory ();
  ls_bench_header ();
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
