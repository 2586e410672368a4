#include <string.h>

#include "exec/memory/memory_laps.h"

#include "base/order.h"
#include "base/stop.h"

static int
compare_events (gconstpointer x, gconstpointer y)
{
  const MemoryEvent *a = x, *b = y;
  LS_SMALLER_FIRST (a->at, b->at);
  LS_SMALLER_FIRST (a->phase, b->phase);
  LS_SMALLER_FIRST (a->lap, b->lap);
  LS_SMALLER_FIRST (a->index, b->index);
  return (int) b->is_issue - (int) a->is_issue;
}

static void
add_event (GArray *events, LsTime at, guint index, uint8_t phase, bool is_issue)
{
  MemoryEvent e = { .at = at, .index = index, .phase = phase, .is_issue = is_issue };
  g_array_append_val (events, e);
}

static bool
is_sorted (const GArray *events)
{
  for (guint i = 1; i < events->len; i++)
    if (compare_events (&g_array_index (events, MemoryEvent, i - 1), &g_array_index (events, MemoryEvent, i))
        > 0)
      return false;
  return true;
}

static void
sort (GArray *events)
{
  if (!is_sorted (events))
    g_array_sort (events, compare_events);
}

/* Both sorted; later is emptied. */
static void
merge (GArray *events, GArray *later)
{
  guint a = events->len, b = later->len, n = a + b;
  g_array_set_size (events, n);
  MemoryEvent *to = (MemoryEvent *) (gpointer) events->data;
  const MemoryEvent *from = (const MemoryEvent *) (gconstpointer) later->data;
  while (b > 0)
    to[--n] = a > 0 && compare_events (&to[a - 1], &from[b - 1]) > 0 ? to[--a] : from[--b];
  g_array_set_size (later, 0);
}

GArray *
memory_events (const GArray *changes)
{
  GArray *events = g_array_sized_new (FALSE, FALSE, sizeof (MemoryEvent), changes->len);
  g_autoptr (GArray) later = g_array_new (FALSE, FALSE, sizeof (MemoryEvent));
  for (guint i = 0; i < changes->len; i++) {
    const MemoryChange *c = &g_array_index (changes, MemoryChange, i);
    add_event (c->issued < c->at ? later : events, c->at, i, c->phase, false);
    if (c->buffer->is_free && c->issued < c->at)
      add_event (events, c->issued, i, PHASE_STARTS, true);
  }
  sort (events); /* on the host's clock they are */
  sort (later);
  merge (events, later);
  return events;
}

MemoryLaps
memory_laps_of (const GArray *events, uint32_t n_laps, LsTime period)
{
  g_assert (n_laps >= 1 && n_laps <= MEMORY_MAX_LAPS);
  return (MemoryLaps) {
    .events = events, .period = period, .n_laps = n_laps, .shift = n_laps == 1 ? 0 : -period
  };
}

bool
memory_laps_next (MemoryLaps *l, MemoryEvent *ret)
{
  uint32_t first = l->n_laps;
  if (ls_stop_tick (&l->n_ticks))
    return false;
  bool is_begun = true; /* of one that is not, the first event is before all of the next lap */
  for (uint32_t lap = 0; lap < l->n_laps && is_begun; lap++) {
    is_begun = l->next[lap] > 0;
    if (l->next[lap] == l->events->len)
      continue;
    MemoryEvent e = g_array_index (l->events, MemoryEvent, l->next[lap]);
    e.at += l->shift + (LsTime) lap * l->period;
    e.lap = lap;
    if (first < l->n_laps && compare_events (ret, &e) < 0)
      continue;
    *ret = e;
    first = lap;
  }
  if (first < l->n_laps)
    l->next[first]++;
  return first < l->n_laps;
}

uint32_t *
memory_laps_handles (uint32_t n_laps, guint n_changes)
{
  gsize n = MAX (1, (n_laps + 1) * (gsize) n_changes);
  uint32_t *handles = g_new (uint32_t, n);
  memset (handles, 0xff, n * sizeof *handles);
  return handles;
}

MemoryWindow
memory_window_of (const LsTimeline *t, bool overlaps)
{
  MemoryWindow w = { .from = G_MININT64, .to = G_MAXINT64, .n_laps = 1 };
  if (!t)
    return w;
  w.start = t->window_start;
  w.period = t->window_end - t->window_start;
  if (!overlaps || t->n_steps == 1)
    return w;
  w.from = t->window_start;
  w.to = t->window_end;
  w.n_laps = MEMORY_WINDOW_LAPS;
  return w;
}
