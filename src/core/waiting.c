#include "core/waiting.h"

#include <glib.h>

void
ls_waiting_init (LsWaiting *waiting, uint32_t most)
{
  *waiting = (LsWaiting) { .heap = g_new (LsWaitingEntry, most) };
}

void
ls_waiting_clear (LsWaiting *waiting)
{
  g_free (waiting->heap);
}

static inline void
put (LsWaiting *waiting, uint32_t at, LsWaitingEntry e)
{
  waiting->heap[at] = e;
  e.who->place = at;
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
ls_waiting_set (LsWaiting *waiting, LsWaiter *who, int64_t key)
{
  int64_t old = who->key;
  who->key = key;
  if (key == old)
    return;
  if (key == 0) {
    fill_gap (waiting, who->place);
    return;
  }
  uint32_t at = old == 0 ? waiting->n : who->place;
  waiting->n += old == 0;
  if ((uint64_t) key <= (uint64_t) old - 1) /* less than old, or there was none */
    rise (waiting, at, (LsWaitingEntry) { key, who });
  else
    sink (waiting, at, (LsWaitingEntry) { key, who });
}
