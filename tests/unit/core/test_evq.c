/* Pins: both queues pop the same events in (at, phase, seq) order under traffic as
 * an engine makes it: nothing before the last time popped, many ties, earlier phases
 * of the present time, moves and removals, near and far times. A pop never passes its
 * limit, and a removed event is not touched again. Does not pin speed. */
#include "ls_test.h"

#include "core/evq.h"

static const LsEvqType *const types[] = { &ls_evq_radix, &ls_evq_reference };
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
    t->queue[k] = types[k]->create ();
    t->events[k] = g_new (LsEvent, n);
    for (int i = 0; i < n; i++)
      ls_event_init (&t->events[k][i], never_fires);
  }
}

static void
traffic_clear (Traffic *t)
{
  for (int k = 0; k < t->n_types; k++) {
    types[k]->destroy (t->queue[k]);
    g_free (t->events[k]);
  }
  g_rand_free (t->rand);
}

/* Pushes event i, or moves it if it is queued: to now, or up to 2^45 ps ahead. */
static void
schedule (Traffic *t, int i)
{
  LsTime at = t->now;
  if (g_rand_int_range (t->rand, 0, 4) > 0) {
    int bits = g_rand_int_range (t->rand, 1, 46);
    at += (LsTime) ((uint64_t) g_rand_int (t->rand) << 13 >> (45 - bits));
  }
  uint64_t order = (uint64_t) g_rand_int_range (t->rand, 0, LS_N_PHASES) << 56 | t->seq++;
  for (int k = 0; k < t->n_types; k++) {
    LsEvent *e = &t->events[k][i];
    if (ls_event_is_queued (e)) {
      types[k]->update (t->queue[k], e, at, order);
      continue;
    }
    e->at = at;
    e->order = order;
    types[k]->push (t->queue[k], e);
  }
}

/* The index that the queues pop; -1: nothing before that time, -2: they differ. */
static int
pop (Traffic *t, LsTime before)
{
  int index = -1;
  for (int k = 0; k < t->n_types; k++) {
    LsEvent *e = types[k]->pop (t->queue[k], before);
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
  size_t left = types[FAST]->size (t->queue[FAST]);
  int i;
  for (LsEvent last = { .at = -1 }; (i = pop (t, LS_TIME_NEVER)) >= 0; last = t->last, left--)
    if (!LS_CHECK (ls_event_before (&last, &t->last)))
      return;
  LS_CHECK_INT (i, ==, -1);
  LS_CHECK_INT (left, ==, 0);
  LS_CHECK_INT (types[FAST]->size (t->queue[FAST]), ==, 0);
}

static void
churn (Traffic *t, int n_rounds)
{
  for (int round = 0; round < n_rounds; round++) {
    int i = g_rand_int_range (t->rand, 0, t->n), what = g_rand_int_range (t->rand, 0, 8);
    if (!ls_event_is_queued (&t->events[FAST][i]) || what < 3)
      schedule (t, i);
    else if (what == 3)
      for (int k = 0; k < t->n_types; k++)
        types[k]->remove (t->queue[k], &t->events[k][i]);
    else if (!LS_CHECK_INT (pop (t, t->now), ==, -1)
             || !LS_CHECK_INT (pop (t, what == 4 ? t->now + 1 : LS_TIME_NEVER), >=, -1))
      return;
    for (int k = 1; k < t->n_types; k++)
      if (!LS_CHECK_INT (types[0]->size (t->queue[0]), ==, types[k]->size (t->queue[k])))
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
    void *q = types[k]->create ();
    LsEvent e[300], early = { .at = 77, .order = 300 };
    for (uint64_t i = 0; i < 300; i++) {
      ls_event_init (&e[i], never_fires);
      e[i].at = 77;
      e[i].order = (1 + i % 2) << 56 | i;
      types[k]->push (q, &e[i]);
    }
    for (int i = 0; i < 300; i += 2)
      LS_CHECK (types[k]->pop (q, 78) == &e[i]);
    LS_CHECK (types[k]->pop (q, 78) == &e[1]);
    ls_event_init (&early, never_fires);
    types[k]->push (q, &early);
    LS_CHECK (types[k]->pop (q, 78) == &early);
    LS_CHECK (types[k]->pop (q, 78) == &e[3]);
    LS_CHECK_INT (types[k]->size (q), ==, 148);
    types[k]->destroy (q);
  }
}

/* Having been asked in vain, a queue still takes earlier events. */
static void
a_pop_in_vain_changes_nothing (void)
{
  for (int k = 0; k < N_TYPES; k++) {
    void *q = types[k]->create ();
    LsEvent late = { .at = LS_S }, soon = { .at = 5, .order = 1 },
            never = { .at = LS_TIME_NEVER, .order = 2 };
    LS_CHECK (types[k]->pop (q, LS_TIME_NEVER) == NULL);
    types[k]->push (q, &late);
    LS_CHECK (types[k]->pop (q, LS_S) == NULL && types[k]->size (q) == 1);
    types[k]->push (q, &soon);
    types[k]->push (q, &never);
    LS_CHECK (types[k]->pop (q, LS_S) == &soon);
    LS_CHECK (types[k]->pop (q, LS_S) == NULL);
    LS_CHECK (types[k]->pop (q, LS_S + 1) == &late);
    LS_CHECK (types[k]->pop (q, LS_TIME_NEVER) == NULL && ls_event_is_queued (&never));
    types[k]->destroy (q);
  }
}

/* The owner of a removed event may go at once; the sanitizer sees who looks. */
static void
a_removed_event_may_be_freed (void)
{
  for (int k = 0; k < N_TYPES; k++) {
    void *q = types[k]->create ();
    LsEvent stays[100];
    for (int i = 0; i < 100; i++) {
      LsEvent *goes = g_new (LsEvent, 1);
      ls_event_init (goes, never_fires);
      ls_event_init (&stays[i], never_fires);
      goes->at = stays[i].at = 1000 * i;
      goes->order = 2 * (uint64_t) i;
      stays[i].order = 2 * (uint64_t) i + 1;
      types[k]->push (q, goes);
      types[k]->push (q, &stays[i]);
      types[k]->remove (q, goes);
      g_free (goes);
    }
    for (int i = 0; i < 100; i++)
      LS_CHECK (types[k]->pop (q, LS_TIME_NEVER) == &stays[i]);
    types[k]->destroy (q);
  }
}

LS_TEST_SUITE (LS_TEST (same_order_under_random_traffic), LS_TEST (a_hundred_thousand_come_out_in_order),
               LS_TEST (order_survives_any_number_of_moves), LS_TEST (ties_go_by_phase_and_history),
               LS_TEST (a_pop_in_vain_changes_nothing), LS_TEST (a_removed_event_may_be_freed))
