/* exec/memory/allocator.h — PyTorch's caching allocator: which segments of a GPU's memory it
 * takes for a sequence of allocations and frees.
 *
 * Model. Sizes are rounded up to 512 bytes. Up to 1 MiB they are cut from segments of 2
 * MiB, below 10 MiB from segments of 20 MiB, above each gets a segment of its own size
 * rounded up to 2 MiB. The smallest free block of the same stream and kind that is large
 * enough is taken, at equal sizes the one with the lowest address; what is left of it stays
 * free if that is at least 512 bytes (small) or more than 1 MiB (large), else it goes
 * along. Free neighbours of a segment are joined. Segments are kept. Only when the next one
 * would exceed the limit are those given back that are free as a whole.
 *
 * Worked example: 1.5 MiB, then 9 MiB, on one stream: both fit into one segment of 20 MiB;
 * 1.5 MiB on another stream take 20 MiB more.
 *
 * Deviations. Addresses grow from segment to segment, as the driver's need not; options of
 * PYTORCH_CUDA_ALLOC_CONF (expandable segments, size limits of splits, rounding to powers of
 * two, garbage collection) are those of the default: off. With a limit that cannot be kept
 * segments are taken all the same: who asks wants to know how much is missing.
 *
 * Reference: PyTorch, c10/cuda/CUDACachingAllocator.cpp: kMinBlockSize, kSmallSize,
 * kSmallBuffer, kMinLargeAlloc, kLargeBuffer, kRoundLarge; round_size, get_allocation_size,
 * get_free_block, should_split, try_merge_blocks. The same numbers are expected by its own
 * test/test_cuda.py, test_graph_memory_stats_and_use_result_after_destroy_graph. */
#ifndef LS_EXEC_MEMORY_ALLOCATOR_H
#define LS_EXEC_MEMORY_ALLOCATOR_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct LsAllocator LsAllocator;

/* Bytes, and calls of the driver. */
typedef struct {
  uint64_t allocated, reserved;           /* now: rounded sizes; segments */
  uint64_t peak_allocated, peak_reserved; /* each by itself               */
  uint64_t n_given_back;                  /* times that the limit made it give back segments */
  uint64_t n_retries;                     /* times that the limit was met: PyTorch's num_alloc_retries */
  uint64_t n_taken, taken;                /* segments, by cudaMalloc      */
  uint64_t n_freed, freed;                /* segments, by cudaFree        */
} LsAllocatorStats;

LsAllocator *ls_allocator_new (uint64_t limit_bytes); /* 0: none */
void ls_allocator_free (LsAllocator *a);              /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsAllocator, ls_allocator_free)

/* A block of at least so many bytes, by its handle. O(log blocks), and the listed free blocks of its stream
 * are moved in memory. */
uint32_t ls_allocator_take (LsAllocator *a, uint64_t bytes, uint32_t stream);
/* Whether that takes no retry: a free block fits, or one more segment is within the limit. */
bool ls_allocator_has_room (const LsAllocator *a, uint64_t bytes, uint32_t stream);
/* What taking does first where there is no room: segments that are free as a whole are given back. */
void ls_allocator_retry (LsAllocator *a);
/* The handle must be of a block in use; it is one no longer. */
void ls_allocator_drop (LsAllocator *a, uint32_t handle);

LsAllocatorStats ls_allocator_stats (const LsAllocator *a);

/* A block, in use or free; or a segment. */
typedef struct {
  uint64_t address, size;
  uint32_t handle; /* of a segment: of its first block */
  uint32_t stream;
  bool is_small, is_free;
  bool begins_segment;
} LsAllocatorBlock;

/* Called for each segment that is taken, when it is counted and before it is cut, and for each that is given
 * back. */
typedef void (*LsSegmentFunc) (const LsAllocatorBlock *segment, bool is_taken, void *data);
void ls_allocator_watch (LsAllocator *a, LsSegmentFunc watch, void *data);

/* The block of a handle in use. */
LsAllocatorBlock ls_allocator_block (const LsAllocator *a, uint32_t handle);
/* LsAllocatorBlock: all there are, by address. Those of a segment come one behind the other. */
GArray *ls_allocator_blocks (const LsAllocator *a);

#endif
