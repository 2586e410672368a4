#include "base/parallel.h"

#include "base/crew.h"
#include "base/handover.h"

typedef struct {
  guint n;
  LsParallelFunc each;
  gpointer data;
  const LsProgress *progress;
  GMutex mutex; /* guards what follows, and calls of progress */
  guint n_done;
} Parallel;

void
ls_progress_tell (const LsProgress *p, guint64 n_done, guint64 n_to_do)
{
  if (p && p->func)
    p->func (n_done, n_to_do, p->data);
}

static void
run_one (gpointer i_plus_one, gpointer data)
{
  Parallel *p = data;
  LS_TAKE_OVER (p);
  p->each (GPOINTER_TO_UINT (i_plus_one) - 1, p->data);
  g_mutex_lock (&p->mutex);
  LS_TAKE_OVER (&p->mutex);
  ls_progress_tell (p->progress, ++p->n_done, p->n);
  LS_HAND_OVER (&p->mutex);
  g_mutex_unlock (&p->mutex);
}

void
ls_parallel (guint n, guint n_threads, LsParallelFunc each, gpointer data, const LsProgress *progress)
{
  Parallel p = { .n = n, .each = each, .data = data, .progress = progress };
  g_mutex_init (&p.mutex);
  LsCrew *crew = ls_crew_new (run_one, &p, n_threads > 0 ? n_threads : g_get_num_processors ());
  LS_HAND_OVER (&p);
  for (guint i = 0; i < n; i++)
    ls_crew_push (crew, GUINT_TO_POINTER (i + 1)); /* NULL is no item */
  ls_crew_end (crew);
  LS_TAKE_OVER (&p.mutex);
  g_mutex_clear (&p.mutex);
}

guint
ls_parallel_first_error (GError **errors, guint n, GError **error)
{
  guint first = n;
  for (guint i = 0; i < n; i++)
    if (errors[i] && first == n) {
      g_propagate_error (error, g_steal_pointer (&errors[i]));
      first = i;
    } else
      g_clear_error (&errors[i]);
  return first;
}
