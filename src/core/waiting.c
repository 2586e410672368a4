#include "core/waiting.h"

#include <glib.h>

void
ls_waiting_init (LsWaiting *waiting, uint32_t n_ids)
{
  *waiting = (LsWaiting) {
    .heap = g_new (LsWaitingEntry, n_ids),
    .key = g_new0 (int64_t, n_ids),
    .place = g_new (uint32_t, n_ids),
  };
}

void
ls_waiting_clear (LsWaiting *waiting)
{
  g_free (waiting->heap);
  g_free (waiting->key);
  g_free (waiting->place);
}

static inline void
put (LsWaiting *waiting, uint32_t at, LsWaitingEntry e)
{
  waiting->heap[at] = e;
  waiting->place[e.id] = at;
}

/* Puts e where it belongs, from a place that is free: there, or nearer to the first. */
static void
rise (LsWaiting *waiting, uint32_t at, LsWaitingEntry e)
{
  const LsWaitingEntry *heap = waiting->heap;
  for (; at > 0 && e.key < heap[(at - 1) / 2].key; at = (at - 1) / 2)
    put (waiting, at, heap[(at - 1) / 2]);
  put (waiting, at, e);
}

/* There, or farther from the first. */
static void
sink (LsWaiting *waiting, uint32_t at, LsWaitingEntry e)
{
  const LsWaitingEntry *heap = waiting->heap;
  for (uint32_t child; (child = 2 * at + 1) < waiting->n; at = child) {
    child += child + 1 < waiting->n && heap[child + 1].key < heap[child].key;
    if (e.key <= heap[child].key)
      break;
    put (waiting, at, heap[child]);
  }
  put (waiting, at, e);
}

static void
fill_gap (LsWaiting *waiting, uint32_t at)
{
  LsWaitingEntry last = waiting->heap[--waiting->n];
  if (at == waiting->n)
    return;
  if (at > 0 && last.key < waiting->heap[(at - 1) / 2].key)
    rise (waiting, at, last);
  else
    sink (waiting, at, last);
}

void
ls_waiting_set (LsWaiting *waiting, uint32_t id, int64_t key)
{
  int64_t old = waiting->key[id];
  waiting->key[id] = key;
  if (key == old)
    return;
  if (key == 0)
    fill_gap (waiting, waiting->place[id]);
  else if (old == 0)
    rise (waiting, waiting->n++, (LsWaitingEntry) { key, id });
  else if (key < old)
    rise (waiting, waiting->place[id], (LsWaitingEntry) { key, id });
  else
    sink (waiting, waiting->place[id], (LsWaitingEntry) { key, id });
}
