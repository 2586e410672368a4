/* Pins: each once, whatever the threads; progress counts from 1 to n; threads listen to whom the caller does. */
#include "ls_test.h"

#include "base/parallel.h"
#include "base/stop.h"

#define N 1000

typedef struct {
  gint n_times[N];
  guint64 n_done;
  gboolean is_in_order;
} Seen;

static void
mark (guint i, gpointer data)
{
  Seen *seen = data;
  g_atomic_int_inc (&seen->n_times[i]);
}

static void
count (guint64 n_done, guint64 n_to_do, gpointer data)
{
  Seen *seen = data;
  seen->is_in_order = seen->is_in_order && n_done == seen->n_done + 1 && n_to_do == N;
  seen->n_done = n_done;
}

static void
each_once (void)
{
  for (guint n_threads = 0; n_threads <= 16; n_threads += 4) {
    Seen seen = { .is_in_order = TRUE };
    const LsProgress progress = { count, &seen };
    ls_parallel (N, n_threads, mark, &seen, &progress);
    for (guint i = 0; i < N; i++)
      LS_CHECK_INT (seen.n_times[i], ==, 1);
    LS_CHECK (seen.is_in_order);
    LS_CHECK_INT (seen.n_done, ==, N);
  }
}

static void
nobody_asks (void)
{
  Seen seen = { .is_in_order = TRUE };
  const LsProgress none = { NULL, NULL };
  ls_parallel (0, 4, mark, &seen, NULL);
  LS_CHECK_INT (seen.n_times[0], ==, 0);
  ls_parallel (1, 4, mark, &seen, &none);
  LS_CHECK_INT (seen.n_times[0], ==, 1);
}

static void
note_stopped (guint i, gpointer data)
{
  ((gboolean *) data)[i] = ls_stopped ();
}

static void
threads_listen (void)
{
  gboolean is_stopped[N];
  gint asked = 0;
  LsStop stop = { .asked = &asked };
  for (guint is_heard = 0; is_heard < 2; is_heard++)
    for (asked = 0; asked < 2; asked++) {
      ls_stop_begin (is_heard ? &stop : NULL, 0);
      ls_parallel (N, 4, note_stopped, is_stopped, NULL);
      for (guint i = 0; i < N; i++)
        LS_CHECK (is_stopped[i] == (is_heard && asked));
    }
  ls_stop_begin (NULL, 0);
}

LS_TEST_SUITE (LS_TEST (each_once), LS_TEST (nobody_asks), LS_TEST (threads_listen))
