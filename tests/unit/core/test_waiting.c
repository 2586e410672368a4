/* Pins: the first of those that wait is one with the least key, while things come, leave and
 * change their keys; each is found at its place. */
#include "ls_test.h"

#include "core/waiting.h"

#define N_IDS 40

static void
check_heap (const LsWaiting *w, const LsWaiter *things, const int64_t *key)
{
  uint32_t n = 0;
  int64_t least = 0;
  for (uint32_t i = 0; i < N_IDS; i++) {
    LS_CHECK_INT (things[i].key, ==, key[i]);
    if (key[i] == 0)
      continue;
    n++;
    least = least == 0 ? key[i] : MIN (least, key[i]);
    LS_CHECK (w->heap[things[i].place].who == &things[i]);
    LS_CHECK_INT (w->heap[things[i].place].key, ==, key[i]);
  }
  LS_CHECK_INT (w->n, ==, n);
  if (n > 0)
    LS_CHECK_INT (w->heap[0].key, ==, least);
}

static void
the_least_key_is_first_whatever_changes (void)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (1);
  LsWaiting w;
  LsWaiter things[N_IDS] = { 0 };
  int64_t key[N_IDS] = { 0 };
  ls_waiting_init (&w, N_IDS);
  for (int step = 0; step < 20000; step++) {
    uint32_t id = (uint32_t) g_rand_int_range (rand, 0, N_IDS);
    int drawn = g_rand_int_range (rand, -25, 50);
    key[id] = MAX (0, drawn);
    ls_waiting_set (&w, &things[id], key[id]);
    check_heap (&w, things, key);
  }
  ls_waiting_clear (&w);
}

static void
all_leave_in_order (void)
{
  LsWaiting w;
  LsWaiter things[N_IDS] = { 0 };
  ls_waiting_init (&w, N_IDS);
  for (uint32_t i = 0; i < N_IDS; i++)
    ls_waiting_set (&w, &things[i], 1 + i * 17 % N_IDS);
  for (int64_t due = 1; due <= N_IDS; due++) {
    LS_CHECK_INT (w.heap[0].key, ==, due);
    ls_waiting_set (&w, w.heap[0].who, 0);
  }
  LS_CHECK_INT (w.n, ==, 0);
  ls_waiting_clear (&w);
}

LS_TEST_SUITE (LS_TEST (the_least_key_is_first_whatever_changes), LS_TEST (all_leave_in_order))
