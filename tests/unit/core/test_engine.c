/* Pins the order of events: the engine, and the queues below it. */
#include "ls_test.h"

#include <string.h>

#include "core/engine.h"
#include "core/evq.h"

/* Pins: events fire in the order (time, phase, history), also those that an event
 * schedules, moves or cancels at its own time; a run that stopped goes on where it
 * was. With both queues. */

static const LsEvqType *const types[] = { &ls_evq_radix, &ls_evq_reference };

typedef struct {
  LsEngine engine;
  LsEvent a, b, c, d;
  char log[32];
} World;

static void
note (LsEvent *e, void *context)
{
  World *w = context;
  size_t n = strlen (w->log);
  w->log[n] = e == &w->a ? 'a' : e == &w->b ? 'b' : e == &w->c ? 'c' : 'd';
  w->log[n + 1] = '\0';
}

/* c is of the last phase: what it schedules now comes next, whatever its phase. */
static void
schedules_earlier_phase (LsEvent *e, void *context)
{
  World *w = context;
  note (e, w);
  ls_engine_at (&w->engine, &w->a, w->engine.now, LS_PHASE_COMPLETE);
  ls_engine_cancel (&w->engine, &w->b);
  ls_engine_cancel (&w->engine, &w->b); /* idle: no effect */
}

static void
world_init (World *w, const LsEvqType *type)
{
  *w = (World) { 0 };
  ls_engine_init (&w->engine, type, w);
  ls_event_init (&w->a, note);
  ls_event_init (&w->b, note);
  ls_event_init (&w->c, note);
  ls_event_init (&w->d, note);
}

static void
an_instant_goes_by_phase_then_history (void)
{
  for (size_t k = 0; k < G_N_ELEMENTS (types); k++) {
    World w;
    world_init (&w, types[k]);
    w.c.fire = schedules_earlier_phase;
    ls_engine_at (&w.engine, &w.c, 10, LS_PHASE_RATE);
    ls_engine_at (&w.engine, &w.d, 10, LS_PHASE_RATE);
    ls_engine_at (&w.engine, &w.b, 11, LS_PHASE_COMPLETE);
    ls_engine_at (&w.engine, &w.a, 10, LS_PHASE_DISPATCH);
    LS_CHECK_INT (ls_engine_run (&w.engine), ==, LS_ENGINE_DRAINED);
    LS_CHECK_STR (w.log, "acad");
    LS_CHECK_INT (w.engine.now, ==, 10);
    LS_CHECK_INT (w.engine.n_events, ==, 4);
    ls_engine_clear (&w.engine);
  }
}

static void
a_moved_event_goes_behind_its_new_equals (void)
{
  for (size_t k = 0; k < G_N_ELEMENTS (types); k++) {
    World w;
    world_init (&w, types[k]);
    ls_engine_at (&w.engine, &w.a, 5, LS_PHASE_COMPLETE);
    ls_engine_at (&w.engine, &w.b, 9, LS_PHASE_COMPLETE);
    ls_engine_at (&w.engine, &w.c, 5, LS_PHASE_COMPLETE);
    ls_engine_at (&w.engine, &w.a, 5, LS_PHASE_COMPLETE);
    ls_engine_at (&w.engine, &w.b, 2, LS_PHASE_RATE);
    LS_CHECK_INT (ls_engine_run (&w.engine), ==, LS_ENGINE_DRAINED);
    LS_CHECK_STR (w.log, "bca");
    ls_engine_clear (&w.engine);
  }
}

static void
a_stopped_run_goes_on (void)
{
  for (size_t k = 0; k < G_N_ELEMENTS (types); k++) {
    World w;
    world_init (&w, types[k]);
    ls_engine_at (&w.engine, &w.a, 3, LS_PHASE_RATE);
    ls_engine_at (&w.engine, &w.b, 1000000, LS_PHASE_COMPLETE);
    w.engine.stop_at = 1000000;
    LS_CHECK_INT (ls_engine_run (&w.engine), ==, LS_ENGINE_STOPPED);
    LS_CHECK_STR (w.log, "a");
    LS_CHECK_INT (w.engine.now, ==, 3);
    ls_engine_at (&w.engine, &w.c, 3, LS_PHASE_COMPLETE);
    ls_engine_at (&w.engine, &w.d, 999999, LS_PHASE_RATE);
    w.engine.stop_at = LS_TIME_NEVER;
    LS_CHECK_INT (ls_engine_run (&w.engine), ==, LS_ENGINE_DRAINED);
    LS_CHECK_STR (w.log, "acdb");
    ls_engine_clear (&w.engine);
  }
}

/* Pins: both queues pop the same events in (at, phase, seq) order under traffic as
 * an engine makes it: nothing before the last time popped, many ties, earlier phases
 * of the present time, moves and removals, near and far times. A pop never passes its
 * limit, and a removed event is not touched again. Does not pin speed. */

static const LsEvqType *const evq_types[] = { &ls_evq_radix, &ls_evq_reference };
enum { FAST, PLAIN, N_TYPES };

typedef struct {
  GRand *rand;
  void *queue[N_TYPES];
  LsEvent *events[N_TYPES]; /* the same ones */
  int n, n_types;           /* 1: the fast queue alone */
  LsTime now;
  uint64_t seq;
  LsEvent last; /* that was popped */
} Traffic;

static void
never_fires (LsEvent *e, void *context)
{
}

static void
traffic_init (Traffic *t, guint32 seed, int n, int n_types)
{
  *t = (Traffic) { .rand = g_rand_new_with_seed (seed), .n = n, .n_types = n_types, .last.at = -1 };
  for (int k = 0; k < n_types; k++) {
    t->queue[k] = evq_types[k]->create ();
    t->events[k] = g_new (LsEvent, n);
    for (int i = 0; i < n; i++)
      ls_event_init (&t->events[k][i], never_fires);
  }
}

static void
traffic_clear (Traffic *t)
{
  for (int k = 0; k < t->n_types; k++) {
    evq_types[k]->destroy (t->queue[k]);
    g_free (t->events[k]);
  }
  g_rand_free (t->rand);
}

/* Pushes event i, or moves it if it is queued. */
static void
schedule_at (Traffic *t, int i, LsTime at)
{
  uint64_t order = (uint64_t) g_rand_int_range (t->rand, 0, LS_N_PHASES) << 56 | t->seq++;
  for (int k = 0; k < t->n_types; k++) {
    LsEvent *e = &t->events[k][i];
    if (ls_event_is_queued (e)) {
      evq_types[k]->update (t->queue[k], e, at, order);
      continue;
    }
    e->at = at;
    e->order = order;
    evq_types[k]->push (t->queue[k], e);
  }
}

/* To now, or up to 2^45 ps ahead. */
static void
schedule (Traffic *t, int i)
{
  LsTime at = t->now;
  if (g_rand_int_range (t->rand, 0, 4) > 0) {
    int bits = g_rand_int_range (t->rand, 1, 46);
    at += (LsTime) ((uint64_t) g_rand_int (t->rand) << 13 >> (45 - bits));
  }
  schedule_at (t, i, at);
}

/* The index that the queues pop; -1: nothing before that time, -2: they differ. */
static int
pop (Traffic *t, LsTime before)
{
  int index = -1;
  for (int k = 0; k < t->n_types; k++) {
    LsEvent *e = evq_types[k]->pop (t->queue[k], before);
    int i = e ? (int) (e - t->events[k]) : -1;
    if (k > 0 && i != index)
      return -2;
    index = i;
    if (!e)
      continue;
    if (ls_event_is_queued (e) || e->at < t->now || e->at >= before)
      return -2;
    t->last = *e;
  }
  t->now = MAX (t->now, t->last.at);
  return index;
}

static void
drain (Traffic *t)
{
  size_t left = evq_types[FAST]->size (t->queue[FAST]);
  int i;
  for (LsEvent last = { .at = -1 }; (i = pop (t, LS_TIME_NEVER)) >= 0; last = t->last, left--)
    if (!LS_CHECK (ls_event_before (&last, &t->last)))
      return;
  LS_CHECK_INT (i, ==, -1);
  LS_CHECK_INT (left, ==, 0);
  LS_CHECK_INT (evq_types[FAST]->size (t->queue[FAST]), ==, 0);
}

/* If it is queued. */
static void
remove_one (Traffic *t, int i)
{
  for (int k = 0; k < t->n_types; k++)
    if (ls_event_is_queued (&t->events[k][i]))
      evq_types[k]->remove (t->queue[k], &t->events[k][i]);
}

static void
churn (Traffic *t, int n_rounds)
{
  for (int round = 0; round < n_rounds; round++) {
    int i = g_rand_int_range (t->rand, 0, t->n), what = g_rand_int_range (t->rand, 0, 8);
    if (!ls_event_is_queued (&t->events[FAST][i]) || what < 3)
      schedule (t, i);
    else if (what == 3)
      remove_one (t, i);
    else if (!LS_CHECK_INT (pop (t, t->now), ==, -1)
             || !LS_CHECK_INT (pop (t, what == 4 ? t->now + 1 : LS_TIME_NEVER), >=, -1))
      return;
    for (int k = 1; k < t->n_types; k++)
      if (!LS_CHECK_INT (evq_types[0]->size (t->queue[0]), ==, evq_types[k]->size (t->queue[k])))
        return;
  }
}

static void
same_order_under_random_traffic (void)
{
  static const int sizes[] = { 1, 2, 10, 400, 5000 };
  for (guint32 s = 0; s < G_N_ELEMENTS (sizes); s++) {
    Traffic t;
    traffic_init (&t, 20 + s, sizes[s], N_TYPES);
    churn (&t, 40000);
    drain (&t);
    traffic_clear (&t);
  }
}

/* Lists of any length are opened, those that the front takes and longer ones, with times
 * all over them or mostly the same, with their first entries removed and some others. */
static void
lists_of_any_length_come_out_in_order (void)
{
  enum { ROUNDS = 400, MOST = 700 };
  for (guint32 s = 0; s < ROUNDS; s++) {
    Traffic t;
    traffic_init (&t, 500 + s, 1 + (int) (s * 37 % MOST), N_TYPES);
    LsTime span = 1 << g_rand_int_range (t.rand, 8, 25); /* of one list, where that is a digit's */
    int n_same = g_rand_int_range (t.rand, 0, 3) * t.n / 3;
    for (int i = 0; i < t.n; i++)
      schedule_at (&t, i, span + (i < n_same ? span / 2 : g_rand_int_range (t.rand, 0, (gint32) span)));
    int n_gone = g_rand_int_range (t.rand, 0, t.n);
    for (int i = 0; i < n_gone / 2; i++)
      remove_one (&t, i);
    for (int i = 0; i < n_gone / 2; i++)
      remove_one (&t, g_rand_int_range (t.rand, 0, t.n));
    if (s % 2)
      churn (&t, 2 * t.n);
    drain (&t);
    traffic_clear (&t);
  }
}

/* A sorted array of that size takes too long; draining shows the order as well. */
static void
a_hundred_thousand_come_out_in_order (void)
{
  Traffic t;
  traffic_init (&t, 30, 100000, 1);
  for (int i = 0; i < t.n; i++)
    schedule (&t, i);
  churn (&t, 400000);
  drain (&t);
  traffic_clear (&t);
}

/* Moves without a pop leave only empty entries behind; the queue sweeps them. */
static void
order_survives_any_number_of_moves (void)
{
  Traffic t;
  traffic_init (&t, 31, 50, N_TYPES);
  for (int round = 0; round < 100000; round++) {
    schedule (&t, g_rand_int_range (t.rand, 0, t.n));
    if (round % 10000 == 0 && !LS_CHECK_INT (pop (&t, LS_TIME_NEVER), >=, 0))
      break;
  }
  drain (&t);
  traffic_clear (&t);
}

/* Events of all ranks at one time: by phase, then as they were scheduled; what is
 * added now in an earlier phase comes before what is left. */
static void
ties_go_by_phase_and_history (void)
{
  for (int k = 0; k < N_TYPES; k++) {
    void *q = evq_types[k]->create ();
    LsEvent e[300], early = { .at = 77, .order = 300 };
    for (uint64_t i = 0; i < 300; i++) {
      ls_event_init (&e[i], never_fires);
      e[i].at = 77;
      e[i].order = (1 + i % 2) << 56 | i;
      evq_types[k]->push (q, &e[i]);
    }
    for (int i = 0; i < 300; i += 2)
      LS_CHECK (evq_types[k]->pop (q, 78) == &e[i]);
    LS_CHECK (evq_types[k]->pop (q, 78) == &e[1]);
    ls_event_init (&early, never_fires);
    evq_types[k]->push (q, &early);
    LS_CHECK (evq_types[k]->pop (q, 78) == &early);
    LS_CHECK (evq_types[k]->pop (q, 78) == &e[3]);
    LS_CHECK_INT (evq_types[k]->size (q), ==, 148);
    evq_types[k]->destroy (q);
  }
}

/* More events soon after the present time than the fast queue keeps sorted: those of the
 * present time that are left still come before what is scheduled at it afterwards. */
static void
a_crowded_future_keeps_the_present_in_order (void)
{
  enum { N_FIRST = 20, N_SOON = 400, N = N_FIRST + N_SOON + 1 };
  for (int k = 0; k < N_TYPES; k++) {
    void *q = evq_types[k]->create ();
    LsEvent e[N];
    for (uint64_t i = 0; i < N; i++) {
      ls_event_init (&e[i], never_fires);
      e[i].at = i < N_FIRST || i == N - 1 ? 100 : 101 + (LsTime) (i % 27);
      e[i].order = UINT64_C (1) << 56 | i;
      if (i == N_FIRST)
        LS_CHECK (evq_types[k]->pop (q, LS_TIME_NEVER) == &e[0]);
      evq_types[k]->push (q, &e[i]);
    }
    evq_types[k]->remove (q, &e[1]);
    for (int i = 2; i < N_FIRST; i++)
      LS_CHECK (evq_types[k]->pop (q, LS_TIME_NEVER) == &e[i]);
    LS_CHECK (evq_types[k]->pop (q, LS_TIME_NEVER) == &e[N - 1]);
    LsEvent last = e[N - 1];
    for (int i = 0; i < N_SOON; i++) {
      LsEvent *next = evq_types[k]->pop (q, LS_TIME_NEVER);
      if (!LS_CHECK (next && ls_event_before (&last, next)))
        break;
      last = *next;
    }
    LS_CHECK_INT (evq_types[k]->size (q), ==, 0);
    evq_types[k]->destroy (q);
  }
}

/* Having been asked in vain, a queue still takes earlier events. */
static void
a_pop_in_vain_changes_nothing (void)
{
  for (int k = 0; k < N_TYPES; k++) {
    void *q = evq_types[k]->create ();
    LsEvent late = { .at = LS_S }, soon = { .at = 5, .order = 1 },
            never = { .at = LS_TIME_NEVER, .order = 2 };
    LS_CHECK (evq_types[k]->pop (q, LS_TIME_NEVER) == NULL);
    evq_types[k]->push (q, &late);
    LS_CHECK (evq_types[k]->pop (q, LS_S) == NULL && evq_types[k]->size (q) == 1);
    evq_types[k]->push (q, &soon);
    evq_types[k]->push (q, &never);
    LS_CHECK (evq_types[k]->pop (q, LS_S) == &soon);
    LS_CHECK (evq_types[k]->pop (q, LS_S) == NULL);
    LS_CHECK (evq_types[k]->pop (q, LS_S + 1) == &late);
    LS_CHECK (evq_types[k]->pop (q, LS_TIME_NEVER) == NULL && ls_event_is_queued (&never));
    evq_types[k]->destroy (q);
  }
}

/* The owner of a removed event may go at once; the sanitizer sees who looks. */
static void
a_removed_event_may_be_freed (void)
{
  for (int k = 0; k < N_TYPES; k++) {
    void *q = evq_types[k]->create ();
    LsEvent stays[100];
    for (int i = 0; i < 100; i++) {
      LsEvent *goes = g_new (LsEvent, 1);
      ls_event_init (goes, never_fires);
      ls_event_init (&stays[i], never_fires);
      goes->at = stays[i].at = 1000 * i;
      goes->order = 2 * (uint64_t) i;
      stays[i].order = 2 * (uint64_t) i + 1;
      evq_types[k]->push (q, goes);
      evq_types[k]->push (q, &stays[i]);
      evq_types[k]->remove (q, goes);
      g_free (goes);
    }
    for (int i = 0; i < 100; i++)
      LS_CHECK (evq_types[k]->pop (q, LS_TIME_NEVER) == &stays[i]);
    evq_types[k]->destroy (q);
  }
}

LS_TEST_SUITE (LS_TEST (an_instant_goes_by_phase_then_history),
               LS_TEST (a_moved_event_goes_behind_its_new_equals), LS_TEST (a_stopped_run_goes_on),
               LS_TEST (same_order_under_random_traffic), LS_TEST (lists_of_any_length_come_out_in_order),
               LS_TEST (a_hundred_thousand_come_out_in_order), LS_TEST (order_survives_any_number_of_moves),
               LS_TEST (ties_go_by_phase_and_history), LS_TEST (a_crowded_future_keeps_the_present_in_order),
               LS_TEST (a_pop_in_vain_changes_nothing), LS_TEST (a_removed_event_may_be_freed))
