/* Pins: both queues pop the same events in (at, phase, seq) order under random
 * pushes, moves and removals. Does not pin speed. */
#include "ls_test.h"

#include "core/evq.h"

#define N 400

static void
never_fires (LsEvent *e, void *context)
{
}

static void
same_order_under_random_traffic (void)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (20);
  void *heap = ls_evq_heap.create (), *plain = ls_evq_reference.create ();
  LsEvent a[N], b[N];
  for (int i = 0; i < N; i++) {
    ls_event_init (&a[i], never_fires);
    ls_event_init (&b[i], never_fires);
  }
  uint64_t seq = 0;
  for (int round = 0; round < 20000; round++) {
    int i = g_rand_int_range (rand, 0, N);
    LsTime at = g_rand_int_range (rand, 0, 50);
    uint64_t order = (uint64_t) g_rand_int_range (rand, 0, 3) << 56 | seq++;
    if (!ls_event_is_queued (&a[i])) {
      a[i].at = b[i].at = at;
      a[i].order = b[i].order = order;
      ls_evq_heap.push (heap, &a[i]);
      ls_evq_reference.push (plain, &b[i]);
    } else if (g_rand_boolean (rand)) {
      ls_evq_heap.update (heap, &a[i], at, order);
      ls_evq_reference.update (plain, &b[i], at, order);
    } else if (g_rand_int_range (rand, 0, 4) == 0) {
      ls_evq_heap.remove (heap, &a[i]);
      ls_evq_reference.remove (plain, &b[i]);
    } else {
      LsEvent *p = ls_evq_heap.pop (heap), *q = ls_evq_reference.pop (plain);
      if (!LS_CHECK_INT (p - a, ==, q - b))
        break;
    }
    if (!LS_CHECK_INT (ls_evq_heap.size (heap), ==, ls_evq_reference.size (plain)))
      break;
  }
  LsEvent *p, *last = NULL;
  while ((p = ls_evq_heap.pop (heap))) {
    LS_CHECK (last == NULL || ls_event_before (last, p));
    LS_CHECK_INT (p - a, ==, ls_evq_reference.pop (plain) - b);
    last = p;
  }
  ls_evq_heap.destroy (heap);
  ls_evq_reference.destroy (plain);
}

static void
empty_queue_pops_nothing (void)
{
  void *heap = ls_evq_heap.create (), *plain = ls_evq_reference.create ();
  LS_CHECK (ls_evq_heap.pop (heap) == NULL && ls_evq_heap.peek (heap) == NULL);
  LS_CHECK (ls_evq_reference.pop (plain) == NULL && ls_evq_reference.peek (plain) == NULL);
  ls_evq_heap.destroy (heap);
  ls_evq_reference.destroy (plain);
}

LS_TEST_MAIN ("evq", LS_TEST (same_order_under_random_traffic), LS_TEST (empty_queue_pops_nothing))
