/* GPipe.
 *
 * All forwards, then all backwards, both in the order of the micro-batches (as in
 * PyTorch; the paper draws the backwards reversed, which takes as long). The step takes
 * (m + p - 1)(F + B), a bubble of (p - 1)/m of the ideal time, and every rank keeps the
 * activations of all m micro-batches.
 *
 *     p = 2, m = 3      rank 0   F0 F1 F2 .  .  B0 B1 B2
 *     (F = B)           rank 1   .  F0 F1 F2 B0 B1 B2 .
 *
 * Reference: Huang et al., GPipe: Efficient Training of Giant Neural Networks using
 * Pipeline Parallelism, NeurIPS 2019; orders checked against PyTorch's ScheduleGPipe. */
#include "schedules/sched_impl.h"

static void
order (const LsSchedShape *shape, uint32_t rank, GArray *actions)
{
  ls_sched_append_1f1b (shape, shape->n_micro_batches, ls_sched_nth_in_order, actions);
}

static uint64_t
in_flight (const LsSchedShape *shape, uint32_t rank)
{
  return shape->n_micro_batches;
}

const LsSched ls_sched_gpipe = {
  .name = "gpipe",
  .refusal = ls_sched_refuse_chunks,
  .order = order,
  .in_flight = in_flight,
};
