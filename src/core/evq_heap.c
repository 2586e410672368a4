/* core/evq_heap.c — a 4-ary min-heap. Four children share a cache line of keys,
 * and the tree is half as deep as a binary one. */
#include "core/evq.h"

#include <glib.h>

typedef struct {
  LsTime at;
  uint64_t order;
  LsEvent *event;
} Entry;

typedef struct {
  Entry *heap;
  uint32_t n, cap;
} Heap;

static inline bool
before (const Entry *a, const Entry *b)
{
  return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static inline void
put (Heap *h, uint32_t i, Entry e)
{
  h->heap[i] = e;
  e.event->place = i;
}

static void
sift_up (Heap *h, uint32_t i, Entry e)
{
  while (i > 0) {
    uint32_t parent = (i - 1) / 4;
    if (!before (&e, &h->heap[parent]))
      break;
    put (h, i, h->heap[parent]);
    i = parent;
  }
  put (h, i, e);
}

static void
sift_down (Heap *h, uint32_t i, Entry e)
{
  for (;;) {
    uint32_t first = 4 * i + 1, last = MIN (first + 4, h->n);
    if (first >= h->n)
      break;
    uint32_t least = first;
    for (uint32_t c = first + 1; c < last; c++)
      if (before (&h->heap[c], &h->heap[least]))
        least = c;
    if (!before (&h->heap[least], &e))
      break;
    put (h, i, h->heap[least]);
    i = least;
  }
  put (h, i, e);
}

static void
place (Heap *h, uint32_t i, Entry e)
{
  if (i > 0 && before (&e, &h->heap[(i - 1) / 4]))
    sift_up (h, i, e);
  else
    sift_down (h, i, e);
}

static void *
heap_create (void)
{
  return g_new0 (Heap, 1);
}

static void
heap_destroy (void *queue)
{
  Heap *h = queue;
  g_free (h->heap);
  g_free (h);
}

static void
heap_push (void *queue, LsEvent *e)
{
  Heap *h = queue;
  g_assert (!ls_event_is_queued (e));
  if (h->n == h->cap) {
    h->cap = MAX (64, 2 * h->cap);
    h->heap = g_renew (Entry, h->heap, h->cap);
  }
  sift_up (h, h->n++, (Entry) { e->at, e->order, e });
}

static void
heap_update (void *queue, LsEvent *e, LsTime at, uint64_t order)
{
  e->at = at;
  e->order = order;
  place (queue, e->place, (Entry) { at, order, e });
}

static void
heap_remove (void *queue, LsEvent *e)
{
  Heap *h = queue;
  uint32_t i = e->place;
  e->place = LS_EVENT_IDLE;
  Entry last = h->heap[--h->n];
  if (i < h->n)
    place (h, i, last);
}

static LsEvent *
heap_peek (void *queue)
{
  Heap *h = queue;
  return h->n > 0 ? h->heap[0].event : NULL;
}

static LsEvent *
heap_pop (void *queue)
{
  LsEvent *e = heap_peek (queue);
  if (e)
    heap_remove (queue, e);
  return e;
}

static size_t
heap_size (void *queue)
{
  return ((Heap *) queue)->n;
}

const LsEvqType ls_evq_heap = {
  "heap", heap_create, heap_destroy, heap_push, heap_update, heap_remove, heap_pop, heap_peek, heap_size,
};
