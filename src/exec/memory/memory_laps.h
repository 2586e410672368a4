/* exec/memory/memory_laps.h — the changes of a recorded step in the order in which they happen, with the
 * same step laid before and behind it (private).
 *
 * Laps are 0, 1, 2 and so on; the second is the step itself. A single lap is the step alone. At one instant
 * phases come in their order (memory_times.h), then laps, then changes. */
#ifndef LS_EXEC_MEMORY_MEMORY_LAPS_H
#define LS_EXEC_MEMORY_MEMORY_LAPS_H

#include "exec/memory/memory_times.h"

#define MEMORY_WINDOW_LAPS 3 /* of a window          */
#define MEMORY_MAX_LAPS    6 /* that there may be    */

/* A change of one of the laps happens; or a free is issued, long before it happens. */
typedef struct {
  LsTime at;
  uint32_t lap, index; /* index of the change */
  uint8_t phase;
  bool is_issue;
} MemoryEvent;

typedef struct {
  const GArray *events; /* MemoryEvent, in order: of a lap without a shift */
  LsTime period, shift;
  uint32_t n_laps, n_ticks; /* n_ticks: of ls_stop_tick () */
  guint next[MEMORY_MAX_LAPS];
} MemoryLaps;

/* Changes as they happen, and where frees are issued that happen later: MemoryEvent, in order, newly
 * allocated. */
GArray *memory_events (const GArray *changes);

/* events: borrowed. n_laps: 1 to MEMORY_MAX_LAPS. */
MemoryLaps memory_laps_of (const GArray *events, uint32_t n_laps, LsTime period);
/* The next event; false: there is none, or it is stopped (base/stop.h). */
bool memory_laps_next (MemoryLaps *l, MemoryEvent *ret);

/* What of the laps counts, and how far from the start of the step an instant is. */
typedef struct {
  LsTime from, to;
  LsTime start, period; /* period 0: times are not known */
  uint32_t n_laps;
} MemoryWindow;

/* All of one lap, or with `overlaps`, where something of a step outlives it, the window of the timeline. t
 * NULL: the changes are in order only. */
MemoryWindow memory_window_of (const LsTimeline *t, bool overlaps);

/* Of allocations, by memory_laps_place(): none is made yet, which is UINT32_MAX. g_free(). */
uint32_t *memory_laps_handles (uint32_t n_laps, guint n_changes);

/* The buffer of a change among n_laps + 1 rows of n_changes: first those of the lap before all. The change
 * must have an `alloc`. */
static inline gsize
memory_laps_place (const MemoryChange *c, uint32_t lap, guint n_changes)
{
  return (gsize) (lap + !c->is_carried) * n_changes + c->alloc;
}

#endif
