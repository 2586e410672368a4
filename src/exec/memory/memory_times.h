/* exec/memory/memory_times.h — when the buffers of a rank come and go, in a recorded step and with the same
 * step laid before and behind it (private). */
#ifndef LS_EXEC_MEMORY_MEMORY_TIMES_H
#define LS_EXEC_MEMORY_MEMORY_TIMES_H

#include "exec/memory/memory.h"

/* Of changes at one instant: in this order. What the host does is a start. */
enum { PHASE_ENDS, PHASE_STARTS, PHASE_INSTANTS };

/* A buffer is allocated or freed. */
typedef struct {
  LsTime at;
  LsTime issued; /* by the host; of a free that waits for the device, before `at` */
  uint32_t instance;
  uint32_t alloc; /* index of the change that allocated this buffer; UINT32_MAX: none did */
  uint16_t op;
  uint8_t stream;  /* of the op                                              */
  uint8_t phase;   /* PHASE_...                                              */
  bool is_carried; /* a free: the buffer is of the step before              */
  const LsOp *of;  /* the op                                                 */
  const LsBufferEvent *buffer;
} MemoryChange;

/* Of one step, without what only the first one does. A buffer may live from one step into the
 * next; its free is then carried, and alloc is the change of the step before.
 * In the order of the program, at 0, 1, 2, ... */
GArray *memory_changes_in_order (const LsPlan *plan, const LsProgram *program); /* MemoryChange */

/* At their times on the clock, in the order of the program. The rank must have spans. */
GArray *memory_changes_timed (const LsTimeline *t, uint32_t rank, LsMemoryClock clock);

/* Whether some buffer is freed on another stream than it was allocated on. */
bool memory_changes_streams (const GArray *changes);

/* Those of buffers that are taken when their op starts become nothing: no order says when that is. */
void memory_changes_leave_out_places (GArray *changes);

/* ---- what is there throughout: memory.c ---- */

/* What a rank of a role holds for the whole run: its program's, and of a rank (UINT32_MAX: none) on a cluster
 * what libraries take. */
void memory_throughout (const LsMemoryInput *in, uint32_t role, uint32_t rank, uint64_t ret_bytes[LS_N_MEM]);

/* Of these, what is not PyTorch's: NCCL asks the driver. */
static inline bool
memory_is_outside_allocator (int category)
{
  return category == LS_MEM_COMM_BUFFERS;
}

/* What segments may have together beside that; 0: no limit. */
uint64_t memory_allocator_limit (const LsMemoryInput *in, uint32_t rank, const uint64_t throughout[LS_N_MEM]);

/* ---- laps ---- */

/* Changes in the order in which they happen, with the same step laid before and behind it.
 *
 * Laps are 0, 1, 2 and so on; the second is the step itself. A single lap is the step alone. At one instant
 * phases come in their order, then laps, then changes. */

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

/* As ls_allocator_take(); alloc: the change that it is; NULL: bytes of that category, held throughout. */
typedef uint32_t (*MemoryTake) (void *data, uint64_t bytes, uint32_t stream, uint8_t category,
                                const MemoryChange *alloc);
/* Takes what is there when the first lap begins: of each category of PyTorch's allocator a block that is held
 * throughout, then what the step before has left to be freed, into handles. take NULL: data is an
 * LsAllocator. */
void memory_take_first (const GArray *changes, const uint64_t throughout[LS_N_MEM], MemoryTake take,
                        void *data, uint32_t *handles);

/* The buffer of a change among n_laps + 1 rows of n_changes: first those of the lap before all. The change
 * must have an `alloc`. */
static inline gsize
memory_laps_place (const MemoryChange *c, uint32_t lap, guint n_changes)
{
  return (gsize) (lap + !c->is_carried) * n_changes + c->alloc;
}

#endif
