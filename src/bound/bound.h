/* bound/bound.h — what a configuration takes at least, in time and in memory, without
 * lowering or simulating it.
 *
 * Problem. Most of a sweep's configurations cannot win. A bound that costs microseconds and
 * is never above what a simulation says allows to leave them out, and the best of the rest
 * is the best of all. What its plan says (exec/shortcuts/plan_bound.h) is closer, but takes a lowering: this
 * says which come first, and which need none. It leaves out the host and most kinds of data parallelism.
 *
 * Time of a step. Of stage s, micro-batch and chunk: f, b = forward and backward; m micro-batches,
 * o = optimizer, c = a message between neighbours, n = messages that compute waits for;
 *
 *     T >= max over s of  max (o_0 + fill_s, o_s) + m * sum over its chunks of (f + b) + n_s c + drain_s
 *     fill_s  = sum over i < s of f of chunk 0 of rank i, and s c
 *     drain_s = sum over i < s of b of chunk 0 of rank i, and s c; 0 if backwards are split in I and W
 *
 * Proof. (1) f: a pass over a layer, the embedding or the head takes the longest way through its ops as they
 * are lowered (lower/parts.h), from where the compute stream begins it to where that ends it, each op as long
 * as alone: a kernel by ls_kernel_cost(), the same as in the run (exec/replay/kernel_run.c), a collective by
 * itself, since sharing only slows (core/maxmin.h). The compute stream runs in order (exec/replay/rank.c), so
 * the passes of a chunk take the sum of those of its parts, and what else it waits for comes on top.
 * The chain goes through the ranks with tp, cp and dp index 0: their groups count, the fastest
 * of all stages for each.
 * (2) A chunk's forward of a micro-batch needs those of earlier stages, its backward those of later ones, and
 * a message each, whatever the order of a schedule. On rank s the first thing is thus F of chunk 0, behind F
 * on ranks 0 .. s - 1; the last B of chunk 0, behind which B on ranks s - 1 .. 0 are left: any other B of a
 * micro-batch on the rank is before that one. With I and W apart, W of rank s may be last: nothing is left
 * then for sure. (3) Forwards of step k are behind the optimizer of step k - 1 of their rank, in the same
 * stream, and that is behind the gradient norm, a barrier over the stages, which is behind the backwards of
 * all. So from barrier to barrier on rank 0: o_0, the chain to s, the work of s, the chain back; on s itself
 * o_s and its work. At a barrier nothing is in flight but what all steps have alike, so steps repeat, and T
 * is the time between barriers. Without a barrier (post-validation, no norm) ranks are not all in one step:
 * own work and o_s are what the compute stream does until it comes round, and the chain with o_0 holds where
 * it begins and ends on rank 0, whose last B is then behind all of s: not with I and W apart, nor in waves,
 * nor without a flush (PipeDream). (4) In Megatron-LM's batched recipes compute waits for each group of
 * messages. Those that rank s sends are between its first F and the end of the chain back; its last one is
 * the first of drain_s, which then has s - 1 c.
 *
 * What is left to reduce of the gradients of rank s comes in the place of drain_s, or for rank 0 behind it,
 * whichever is longer. A forward of a chunk waits for the gathers of its units, which wait for what was
 * computed before it (lower_dp_fsdp.c, start): what they take longer than it computes is added, in a
 * pipeline that does not reshard in the first micro-batch of a step, else in each; and what adds the
 * gradients of a micro-batch to those before.
 *
 * Waves have no fill or drain here; where the chunks of a rank are of several pipes, the mean
 * over ranks of all work counts. What is left out counts as nothing: data parallelism but for FSDP and
 * Megatron-LM's, also what context parallelism exchanges, and exchanges of tokens that are unequal or that
 * another pass hides.
 *
 * Worked example. p = 2, m = 4, f = 1 ms, b = 2 ms, o = 0.5 ms: rank 0 takes 0.5 + 12 = 12.5,
 * rank 1 0.5 + 1 + 12 + 2 = 15.5 ms. 1F1B takes (m + p - 1) (f + b) + o = 15.5 ms.
 *
 * Memory. Parameters, gradients (where Megatron-LM keeps them) and optimizer as lower_step.c
 * cuts them, and what layers keep, whatever of them runs again, of the micro-batches that are in flight
 * before the first backward of a rank: min (m, p - s) with 1F1B and ZB-H1,
 * min (m v, 2 (p - s - 1) + (v - 1) p + 1) chunks interleaved, else of a single chunk one. This is for the
 * host's clock (exec/memory/memory.h). */
#ifndef LS_BOUND_BOUND_H
#define LS_BOUND_BOUND_H

#include "job/hardware.h"
#include "lower/parts.h"
#include "strategy/strategy.h"

typedef struct LsBounds LsBounds;

/* For jobs of one model; borrows all. Remembers what configurations have in common: one
 * thread at a time. */
LsBounds *ls_bounds_new (const LsModel *m, const LsHardware *hardware);
void ls_bounds_free (LsBounds *b); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsBounds, ls_bounds_free)
LsPartsMemo *ls_bounds_parts (LsBounds *b); /* theirs: what was lowered of the model */

/* Picoseconds; bytes. s: resolved. cluster: the one that it runs on. variant: the same number for strategies
 * that agree in all knobs that have no range by themselves (ls_space_variant()); the others are told apart
 * here. Where it is placed as the cluster does not allow, it says nothing. Memory takes far less to find. */
LsTime ls_bound_step (LsBounds *b, const LsStrategy *s, const LsCluster *cluster, uint64_t variant);
uint64_t ls_bound_memory (LsBounds *b, const LsStrategy *s, uint64_t variant);
/* The same whatever the layers of its chunks are: nobody has to know them. */
uint64_t ls_bound_memory_of_any_layers (LsBounds *b, const LsStrategy *s, uint64_t variant);

#endif
