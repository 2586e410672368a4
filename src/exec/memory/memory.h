/* exec/memory/memory.h — bytes alive on a rank over a step, by category.
 *
 * Problem. Ops allocate and free buffers (plan/plan.h). When, depends on who asks.
 *
 * Host clock. What the caching allocator sees: a buffer is allocated when the host issues
 * the op, and free again when the host issues the op that frees it, since what comes later
 * on the same stream cannot overtake. A buffer that is freed by an op of another stream
 * than the one it was allocated on is so only when that op has also ended on the device
 * (record_stream). The host runs ahead, so this holds more than the device needs.
 *
 * Device clock. Live tensors, which closed formulas count: from the start of the op that
 * allocates to the end of the op that frees. At one instant what ends comes first.
 *
 * Where no buffer changes streams the host clock is the order of the program: one walk per
 * role. That walk is also the estimate of a run that keeps no times, which is then too low
 * for buffers that do change streams, and too high for those that are taken when their op starts
 * (what was offloaded comes back): the host is ahead, so that others are gone by then. Without
 * these it is what any run holds at least.
 *
 * Steady state. Steps are alike and overlap at their ends: the step that was recorded is
 * laid before and after itself, and what is alive in the window counts.
 *
 * Worked example. X (1 GiB) is gathered by an op of stream dp which the host issues at 0
 * ms, and freed by a kernel that it issues at 1 ms and that runs from 8 to 9 ms. X is alive
 * from 0 to 9 ms on the host clock (to 1 ms if the kernel's stream had allocated it), on
 * the device clock from the start of the gather.
 *
 * Deviations. What a kernel needs only while it runs is not in a plan. An op without time on
 * the device (an event) is taken to be issued with the op before it. The rank's own
 * allocations of parameters, gradients and optimizer are one block each for the allocator. */
#ifndef LS_EXEC_MEMORY_MEMORY_H
#define LS_EXEC_MEMORY_MEMORY_H

#include "exec/replay/timeline.h"
#include "network/nccl/nccl.h"

typedef enum { LS_MEMORY_HOST, LS_MEMORY_DEVICE } LsMemoryClock;
typedef enum { LS_MEMORY_EXACT, LS_MEMORY_CACHING } LsMemoryAllocator;

typedef struct {
  int clock;     /* LsMemoryClock     */
  int allocator; /* LsMemoryAllocator */
} LsMemoryOptions;

/* What a GPU has for all categories together: its HBM without the CUDA context and the like. */
uint64_t ls_memory_capacity (const LsGpu *gpu);

/* Of a rank's own GPU; of a role, the least of its ranks' GPUs (0: it has no rank). */
uint64_t ls_memory_capacity_of (const LsPlan *plan, const LsCluster *cluster, uint32_t rank);
uint64_t ls_memory_least_capacity (const LsPlan *plan, const LsCluster *cluster, uint32_t role);

typedef struct LsRetries LsRetries; /* exec/memory/retries.h */

/* Only the plan is needed. */
typedef struct {
  const LsPlan *plan;
  const LsTimeline *timeline; /* NULL, or without spans: the order of each program */
  const LsCluster *cluster;   /* with nccl: what libraries take; NULL: nothing      */
  const LsNccl *nccl;
  LsMemoryOptions options;
  bool at_least;      /* without a timeline: a bound, of what is there whenever ops start */
  LsRetries *retries; /* NULL, or new: filled in the same walk, on the host's clock */
} LsMemoryInput;

/* Ranks of a role that hold the same, on GPUs of one kind. */
typedef struct {
  uint32_t rank; /* the first of them */
  uint32_t role;
  uint32_t count; /* how many          */
  uint64_t peak_bytes;
  uint64_t at_peak[LS_N_MEM];
  uint64_t category_peak[LS_N_MEM]; /* each category's own maximum */
  uint32_t peak_instance;           /* of the program              */
  uint16_t peak_op;                 /* UINT16_MAX: from the start  */
  LsTime peak_at;                   /* from the start of the window; LS_TIME_NEVER: not known */
  /* At most, of activations of layers, what forward keeps for backward: neither embedding and
   * head nor what is computed again. What the papers' formulas count. */
  uint64_t kept_by_layers;
  uint64_t at_begin[LS_N_MEM], at_end[LS_N_MEM]; /* of a step: the same */
  uint64_t overfreed_bytes;                      /* freed, but not alive: 0. See analysis/conservation.h   */
  /* What the GPU must have: the peak, or with the caching allocator its segments and what
   * lies outside of them. */
  uint64_t needed_bytes;
  uint64_t reserved_bytes;  /* segments at most, and   */
  uint64_t allocated_bytes; /* of that, rounded blocks; both 0 without the caching allocator */
  uint64_t capacity_bytes;  /* of such a GPU; 0 without a cluster             */
  uint64_t n_given_back;    /* times that segments were given back, so that it fits          */
} LsClassMemory;

typedef struct {
  uint32_t n_classes;
  LsClassMemory *classes; /* by role, then rank; in the order of programs: one per role, also if
                             no rank has it (count 0)  */
  LsMemoryOptions options;
  bool is_timed; /* else in the order of programs */
} LsMemory;

/* What ls_memory_new() needs for the longest program, about. */
uint64_t ls_memory_walk_bytes (const LsPlan *plan);
LsMemory *ls_memory_new (const LsMemoryInput *in);
void ls_memory_free (LsMemory *m); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsMemory, ls_memory_free)

/* What PyTorch's allocator has handed out at most on any rank (torch.cuda.max_memory_allocated):
 * the peak without what NCCL has from the driver. */
uint64_t ls_memory_allocated (const LsMemory *m);

/* The class of a rank that leaves least of its GPU; without a cluster the one that
 * needs most. Of equals the one with the lowest rank. */
const LsClassMemory *ls_memory_fullest (const LsMemory *m);

/* What is alive from `at` on, until the next sample. */
typedef struct {
  LsTime at; /* from the start of the window */
  uint64_t alive[LS_N_MEM];
} LsMemorySample;

/* Bytes of all categories. */
uint64_t ls_memory_sample_total (const LsMemorySample *s);

/* Of each of n_columns equal parts of the window the fullest sample, and the last, which holds until the
 * next: LsMemorySample, a new array. */
GArray *ls_memory_samples_thin (const GArray *samples, LsTime window, guint n_columns);

/* Of a rank that has spans, over the window, in order of time. The first sample is at 0. */
GArray *ls_memory_curve (const LsMemoryInput *in, uint32_t rank);

/* "host", "device"; "exact", "caching"; static. */
extern const LsEnumName ls_memory_clock_names[], ls_memory_allocator_names[]; /* by value */

#endif
