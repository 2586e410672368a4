/* Interleaved zero bubble, as PyTorch runs it.
 *
 * Interleaved 1F1B with split backwards. Only input gradients are on the way from stage
 * to stage, so rank r warms up with one forward, not two, per rank after it,
 *
 *     w = min (m v, (p - r - 1) + (v - 1) N),
 *
 * and then runs pairs (F, I), then the I's that are left. From the r-th I on, each is
 * followed by the oldest weight gradient; the r that remain fill the end.
 * Micro-batches pass in rounds of N as PyTorch's interleaved 1F1B forms them; m must be a
 * multiple of their number. Each rank keeps at most w + 1 + r = v N chunk activations
 * (held until W), no more than m v. With whole-rank times, m a multiple of p and W no
 * longer than F or I, the step takes m (F + I + W) + (p - 1)(F + I - W)/v.
 *
 *     p = 2, v = 2, m = 2; stage.micro-batch
 *     rank 0   F0.0 F0.1 F2.0 F2.1 I2.0 W2.0 I2.1 W2.1 I0.0 W0.0 I0.1 W0.1
 *     rank 1   F1.0 F1.1 F3.0 I3.0 F3.1 I3.1 W3.0 I1.0 W3.1 I1.1 W1.0 W1.1
 *
 * Reference: PyTorch's ScheduleInterleavedZeroBubble, after Qi et al., Zero Bubble
 * Pipeline Parallelism, ICLR 2024. */
#include "schedules/sched_impl.h"

static LsSchedShape
in_rounds (const LsSchedShape *shape)
{
  LsSchedShape rounds = *shape;
  rounds.rounds = LS_ROUNDS_PYTORCH;
  return rounds;
}

static const char *
refusal (const LsSchedShape *shape)
{
  if (shape->vpp < 2)
    return "vpp must be greater than 1: one chunk per rank is zb-h1";
  if (ls_sched_round_size (shape) == 0)
    return "the number of micro-batches must be a multiple of the rounds, max (1, micro-batches / pp)";
  return NULL;
}

static void
order (const LsSchedShape *shape, uint32_t rank, GArray *actions)
{
  LsSchedShape rounds = in_rounds (shape);
  uint32_t n_warmup = MIN (shape->n_micro_batches * shape->vpp,
                           shape->pp - rank - 1 + (shape->vpp - 1) * ls_sched_round_size (shape));
  ls_sched_append_1f1b_split (&rounds, n_warmup, rank, ls_sched_nth_in_groups, actions);
}

const LsSched ls_sched_interleaved_zb = {
  .name = "interleaved-zb",
  .has_pytorch_rounds = true,
  .is_split = true,
  .refusal = refusal,
  .order = order,
};
