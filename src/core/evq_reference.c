/* core/evq_reference.c — the plain queue: an array kept sorted, last first. */
#include "core/evq.h"

#include <glib.h>

static void
renumber (GPtrArray *a, guint from)
{
  for (guint i = from; i < a->len; i++)
    ((LsEvent *) a->pdata[i])->place = i;
}

static void *
sorted_create (void)
{
  return g_ptr_array_new ();
}

static void
sorted_destroy (void *queue)
{
  g_ptr_array_unref (queue);
}

static void
sorted_push (void *queue, LsEvent *e)
{
  GPtrArray *a = queue;
  guint i = a->len;
  while (i > 0 && ls_event_before (a->pdata[i - 1], e))
    i--;
  g_ptr_array_insert (a, (gint) i, e);
  renumber (a, i);
}

static void
sorted_remove (void *queue, LsEvent *e)
{
  guint i = e->place;
  g_ptr_array_remove_index (queue, i);
  e->place = LS_EVENT_IDLE;
  renumber (queue, i);
}

static void
sorted_update (void *queue, LsEvent *e, LsTime at, uint64_t order)
{
  sorted_remove (queue, e);
  e->at = at;
  e->order = order;
  sorted_push (queue, e);
}

static LsEvent *
sorted_peek (void *queue)
{
  GPtrArray *a = queue;
  return a->len > 0 ? a->pdata[a->len - 1] : NULL;
}

static LsEvent *
sorted_pop (void *queue)
{
  LsEvent *e = sorted_peek (queue);
  if (e)
    sorted_remove (queue, e);
  return e;
}

static size_t
sorted_size (void *queue)
{
  return ((GPtrArray *) queue)->len;
}

const LsEvqType ls_evq_reference = {
  "reference", sorted_create, sorted_destroy, sorted_push, sorted_update, sorted_remove, sorted_pop, sorted_peek, sorted_size,
};
