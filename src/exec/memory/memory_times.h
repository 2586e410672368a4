/* exec/memory/memory_times.h — when the buffers of a rank come and go, in a recorded step
 * (private). */
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

#endif
