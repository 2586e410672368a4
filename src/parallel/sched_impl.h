/* parallel/sched_impl.h — what the schedules share among themselves; everybody
 * else includes parallel/sched.h. */
#ifndef LS_PARALLEL_SCHED_IMPL_H
#define LS_PARALLEL_SCHED_IMPL_H

#include "parallel/sched.h"

extern const LsSched ls_sched_1f1b;
extern const LsSched ls_sched_interleaved;
extern const LsSched ls_sched_none;

/* Chunk and micro-batch of the k-th forward (type F) or backward (type B). */
typedef LsAction (*LsSchedNth) (const LsSchedShape *shape, LsActionType type, uint32_t k);

/* The pattern of the 1F1B family: n_warmup forwards, then pairs of a forward and a
 * backward until the forwards are used up, then the backwards that are left.
 *
 *     n = 4, n_warmup = 2:   F0 F1 | F2 B0 F3 B1 | B2 B3
 *
 * n = vpp * n_micro_batches forwards and as many backwards; n_warmup <= n. */
void ls_sched_append_1f1b (const LsSchedShape *shape, uint32_t n_warmup, LsSchedNth nth, GArray *actions);

/* One chunk per rank: the k-th action of a type is micro-batch k. */
LsAction ls_sched_nth_in_order (const LsSchedShape *shape, LsActionType type, uint32_t k);

#endif
