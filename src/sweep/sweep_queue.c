/* sweep/sweep_queue.c — candidates in the order of what their steps take at least. Those that nobody has
 * looked at lie sorted; the others are a heap. */
#include "base/order.h"
#include "sweep/sweep_state.h"

static double
pace_of (const Candidate *c)
{
  return (double) c->key / c->goodput;
}

static int
compare (const Candidate *a, const Candidate *b)
{
  LS_SMALLER_FIRST (pace_of (a), pace_of (b));
  return LS_ORDER (a->index, b->index);
}

void
queue_init (Queue *q, LsSweepRun *x, const Group *group)
{
  *q = (Queue) { x, group, 0, g_ptr_array_new () };
}

void
queue_clear (Queue *q)
{
  g_ptr_array_unref (q->again);
}

/* What is not pending was tried before. */
static Candidate *
first_new (const Queue *q, uint32_t *ret_at)
{
  for (*ret_at = q->at; *ret_at < q->group->n; ++*ret_at) {
    Candidate *c = candidate_at (q->x, q->group->first + *ret_at);
    if (c->status == TRY_PENDING)
      return c;
  }
  return NULL;
}

Candidate *
queue_first (const Queue *q)
{
  uint32_t at;
  Candidate *fresh = first_new (q, &at), *again = q->again->len > 0 ? q->again->pdata[0] : NULL;
  return fresh && (!again || compare (fresh, again) < 0) ? fresh : again;
}

static void
sink (Candidate **heap, guint n, guint i)
{
  for (guint child = 2 * i + 1; child < n; child = 2 * i + 1) {
    child += child + 1 < n && compare (heap[child + 1], heap[child]) < 0;
    if (compare (heap[i], heap[child]) < 0)
      return;
    Candidate *c = heap[i];
    heap[i] = heap[child];
    heap[child] = c;
    i = child;
  }
}

Candidate *
queue_take (Queue *q)
{
  Candidate *first = queue_first (q);
  if (first && q->again->len > 0 && first == q->again->pdata[0]) {
    g_ptr_array_remove_index_fast (q->again, 0);
    sink ((Candidate **) q->again->pdata, q->again->len, 0);
    return first;
  }
  first_new (q, &q->at);
  q->at += first != NULL;
  return first;
}

void
queue_put_back (Queue *q, Candidate *c)
{
  g_ptr_array_add (q->again, c);
  Candidate **heap = (Candidate **) q->again->pdata;
  for (guint i = q->again->len - 1; i > 0 && compare (heap[i], heap[(i - 1) / 2]) < 0; i = (i - 1) / 2) {
    Candidate *up = heap[(i - 1) / 2];
    heap[(i - 1) / 2] = heap[i];
    heap[i] = up;
  }
}
