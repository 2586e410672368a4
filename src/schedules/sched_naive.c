/* Naive model parallelism.
 *
 * The model is cut into p stages because it does not fit on one rank, and that is all:
 * a micro-batch goes forward through them and back before the next one starts. One rank
 * works at a time, so the step takes m p (F + B), a rank is busy for 1/p of it, and keeps
 * the activations of one micro-batch.
 *
 *     p = 2, m = 2      rank 0   F0 .  .  B0 F1 .  .  B1
 *     (F = B)           rank 1   .  F0 B0 .  .  F1 B1 .
 *
 * Reference: the baseline of Huang et al., GPipe, NeurIPS 2019, figure 2b. */
#include "schedules/sched_impl.h"

static void
order (const LsSchedShape *shape, uint32_t rank, GArray *actions)
{
  ls_sched_append_1f1b (shape, 0, ls_sched_nth_in_order, actions);
}

const LsSched ls_sched_naive = {
  .name = "naive",
  .refusal = ls_sched_refuse_chunks,
  .order = order,
};
