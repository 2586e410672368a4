/* exec/memory/retries.h — what PyTorch's caching allocator does in a step where its segments meet the
 * memory of the GPU.
 *
 * Problem. A segment is taken by cudaMalloc when no free block of that stream and size is
 * cached. If that fails, the host waits for every stream that still holds a freed block, gives
 * all segments back that are free as a whole (cudaFree, which waits for the device too), and
 * takes the segment anew: a retry (num_alloc_retries). The job goes on, but the device runs
 * dry, and what was given back is soon taken again.
 *
 * Model. The changes of a recorded step on the host clock (exec/memory/memory.h) are replayed twice or
 * more, with what of the next time lies beside the last, through exec/memory/allocator.h with a limit: the
 * memory of the GPU without its context and the buffers of NCCL. Many jobs call the driver in their first
 * steps only, until the segments that are there serve every step. So the first time after the first in
 * which the driver is not called counts as the steady state, or else the fifth time. A block that was
 * freed on another stream than its own is pending until that stream has come
 * there, or until a retry, which waits for it.
 *
 * Worked example. 40 MiB are left. A gets 30 MiB of stream 1 and is freed; B needs 20 MiB of stream
 * 2: a retry, 30 MiB freed, 20 MiB taken. In the next step A finds nothing cached: a retry again,
 * 20 MiB freed, 30 taken. So a step has two.
 *
 * Deviations. Those of exec/memory/allocator.h and exec/memory/memory.h: tensors that live within
 * one op's backward, copies in fp32 and workspaces are not in a plan, so the limit is met later than
 * it is. The times of frees are those of a step without retries. One rank of each role is replayed, that
 * with the most retries; of equals the first.
 *
 * Reference: PyTorch, c10/cuda/CUDACachingAllocator.cpp: DeviceCachingAllocator::malloc,
 * alloc_block, release_cached_blocks, synchronize_and_free_events, process_events. */
#ifndef LS_EXEC_RETRIES_H
#define LS_EXEC_RETRIES_H

#include "exec/memory/memory.h"

/* The driver is called before an op is issued. */
typedef struct {
  uint32_t instance; /* of the program */
  uint16_t op;
  bool waits;              /* for the device: a retry */
  uint64_t n_freed, freed; /* segments, bytes */
  uint64_t n_taken, taken;
} LsDriverCall;

/* Of a step of one rank of a role. */
typedef struct {
  uint64_t n_retries;
  uint64_t freed, taken;   /* bytes of segments         */
  uint64_t reserved_bytes; /* of them, at most          */
  uint64_t limit_bytes;    /* for all of them together  */
  bool is_out_of_memory;   /* even what a retry gives back is too little */
  GArray *calls;           /* LsDriverCall, by instance, then op: one for each op at most */
} LsRoleRetries;

struct LsRetries {
  uint32_t n_roles;
  LsRoleRetries *roles; /* [n_roles]; of a role that no rank has, all 0 */
  GHashTable *replayed; /* LsSig: what ranks were replayed by */
};

/* Of the roles of a plan, all 0, for LsMemoryInput.retries: there must be a cluster and nccl. Without spans
 * the changes are in the order of each program, which is all there is to know where no buffer changes
 * streams. */
LsRetries *ls_retries_new (const LsPlan *plan);
void ls_retries_free (LsRetries *r); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsRetries, ls_retries_free)

/* What ls_memory_new() finds: in order, of all ranks of a role; at its times, of one. events: of the changes
 * (exec/memory/memory_times.h). */
void retries_add_role (LsRetries *r, const LsMemoryInput *in, uint32_t role, const GArray *changes);
void retries_add_rank (LsRetries *r, const LsMemoryInput *in, uint32_t rank, const GArray *changes,
                       const GArray *events, LsTime period);

/* Whether some buffer of the plan is freed on another stream than its own: when depends on times. */
bool ls_plan_changes_streams (const LsPlan *plan);

/* What the driver's calls take, without the wait; the source is in retries.c. */
LsTime ls_driver_time (const LsDriverCall *call);

#endif
