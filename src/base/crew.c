#include "base/crew.h"

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
