/* exec/memory/history.h — what PyTorch's caching allocator does on a rank over a step, event by event, and
 * what stands where at its end: what torch.cuda.memory._snapshot() would tell.
 *
 * Model. The changes of exec/memory/memory.h, in the same order and with the same window, go through
 * exec/memory/allocator.h. What is alive when the window begins is allocated first, at one instant: what
 * a rank holds for the whole run, a block for each category, then what the step before has left. A buffer
 * that is freed by another stream than its own is requested to be freed when the host issues that, and freed
 * when that has ended on the device.
 *
 * So the requested bytes of the blocks that are not freed yet are, at most, the peak of memory.h without what
 * NCCL has from the driver; and segments are at most its reserved_bytes.
 *
 * Deviations. Those of memory.h and allocator.h. */
#ifndef LS_EXEC_MEMORY_HISTORY_H
#define LS_EXEC_MEMORY_HISTORY_H

#include "exec/memory/memory.h"

typedef enum {
  LS_ACTION_ALLOC,
  LS_ACTION_FREE_REQUESTED,
  LS_ACTION_FREE_COMPLETED,
  LS_ACTION_SEGMENT_ALLOC,
  LS_ACTION_SEGMENT_FREE,
  LS_ACTION_OOM,      /* once: a segment is beyond the memory of the GPU, and is taken all the same */
  LS_ACTION_SNAPSHOT, /* the end */
  LS_N_MEMORY_ACTIONS
} LsMemoryAction;

/* "alloc", ...: as PyTorch calls them. */
extern const char *const ls_memory_action_names[LS_N_MEMORY_ACTIONS];

/* What a block is for. */
typedef struct {
  uint8_t category;  /* LsMemCategory; LS_N_MEM: not known */
  uint32_t instance; /* of the program; UINT32_MAX: held for the whole run */
  const LsOp *op;    /* that allocated it; NULL: held for the whole run    */
} LsBlockUse;

typedef struct {
  LsTime at; /* from the start of the window; without times its number in the order of the program */
  uint8_t action;
  uint32_t stream;
  uint64_t address;
  uint64_t size;        /* as it was asked for; of a segment: all of it; of SNAPSHOT: what is in use */
  uint64_t device_free; /* OOM: what is left of the GPU's memory */
  LsBlockUse use;       /* of alloc and free; else that of what it is done for */
} LsMemoryEvent;

typedef enum { LS_BLOCK_FREE, LS_BLOCK_IN_USE, LS_BLOCK_PENDING } LsBlockState;

typedef struct {
  uint64_t address, size;
  uint64_t requested; /* of one in use or pending */
  uint8_t state;      /* LsBlockState */
  bool begins_segment, is_small;
  uint32_t stream;
  LsBlockUse use;
} LsHistoryBlock;

typedef struct {
  uint32_t rank;       /* whose spans it is of         */
  bool is_timed;       /* else in the order of its program */
  GArray *events;      /* LsMemoryEvent                */
  GArray *blocks;      /* LsHistoryBlock by address, at the end of `events` */
  uint64_t n_changes;  /* allocations and frees of the window; of these */
  uint64_t n_left_out; /* are not in `events`, which has those around the peak */
} LsMemoryHistory;

/* Of a rank, or of the one that stands for it; at most about max_changes allocations and frees: where there
 * are more, those around the peak. The rank must have spans unless none has. in->options.allocator is not
 * looked at. */
LsMemoryHistory *ls_memory_history_new (const LsMemoryInput *in, uint32_t rank, uint64_t max_changes);
void ls_memory_history_free (LsMemoryHistory *h); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsMemoryHistory, ls_memory_history_free)

#endif
