#include "base/parallel.h"

#include "base/handover.h"
#include "base/stop.h"

/* --- a crew --- */

struct LsCrew {
  GFunc work;
  gpointer data;
  guint n;
  GAsyncQueue *items; /* the crew itself: there are no more */
  GPtrArray *threads; /* GThread */
};

LsCrew *
ls_crew_new (GFunc work, gpointer data, guint n)
{
  LsCrew *crew = g_new0 (LsCrew, 1);
  *crew = (LsCrew) { work, data, n, g_async_queue_new (), g_ptr_array_new () };
  return crew;
}

static gpointer
serve (gpointer data)
{
  LsCrew *crew = data;
  for (gpointer item; (item = g_async_queue_pop (crew->items)) != crew;)
    crew->work (item, crew->data);
  return NULL;
}

/* FALSE: the system has none left. */
static gboolean
add_thread (LsCrew *crew)
{
  GThread *thread = g_thread_try_new ("lockstep", serve, crew, NULL);
  if (thread)
    g_ptr_array_add (crew->threads, thread);
  return thread != NULL;
}

void
ls_crew_push (LsCrew *crew, gpointer item)
{
  gboolean all_busy = g_async_queue_length (crew->items) >= 0;
  if (all_busy && crew->threads->len < crew->n && !add_thread (crew) && crew->threads->len == 0)
    crew->work (item, crew->data);
  else
    g_async_queue_push (crew->items, item);
}

void
ls_crew_end (LsCrew *crew)
{
  for (guint i = 0; i < crew->threads->len; i++)
    g_async_queue_push (crew->items, crew);
  for (guint i = 0; i < crew->threads->len; i++)
    g_thread_join (crew->threads->pdata[i]);
  g_ptr_array_unref (crew->threads);
  g_async_queue_unref (crew->items);
  g_free (crew);
}

/* --- a loop --- */

typedef struct {
  guint n;
  LsParallelFunc each;
  gpointer data;
  const LsProgress *progress;
  LsStop *stop; /* to whom its threads listen; NULL: to nobody */
  gint64 grace_us;
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
  if (p->stop)
    ls_stop_begin (p->stop, p->grace_us);
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
  p.stop = ls_stop_current (&p.grace_us);
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
