/* core/evq_reference.c — the plain queue: an array kept sorted, last first. */
#include "core/evq.h"

#include <glib.h>

/* Where e is, or belongs: behind all that come after it. */
static guint
position (const GPtrArray *a, const LsEvent *e)
{
  guint from = 0, to = a->len;
  while (from < to) {
    guint middle = (from + to) / 2;
    if (ls_event_before (e, a->pdata[middle]))
      from = middle + 1;
    else
      to = middle;
  }
  return from;
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
  g_assert (!ls_event_is_queued (e));
  g_ptr_array_insert (queue, (gint) position (queue, e), e);
  e->place = queue;
}

static void
sorted_remove (void *queue, LsEvent *e)
{
  g_ptr_array_remove_index (queue, position (queue, e));
  e->place = NULL;
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
sorted_pop (void *queue, LsTime before)
{
  GPtrArray *a = queue;
  LsEvent *e = a->len > 0 ? a->pdata[a->len - 1] : NULL;
  if (!e || e->at >= before)
    return NULL;
  sorted_remove (a, e);
  return e;
}

static size_t
sorted_size (void *queue)
{
  return ((GPtrArray *) queue)->len;
}

const LsEvqType ls_evq_reference = {
  "reference",   sorted_create, sorted_destroy, sorted_push,
  sorted_update, sorted_remove, sorted_pop,     sorted_size,
};
