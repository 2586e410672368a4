/* schedules/sched_gpipe.c — schedules with all forwards before all backwards: none, naive, GPipe, looped
 * breadth-first.
 *
 * GPipe: all forwards, then all backwards, both in the order of the micro-batches (as in
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

/* --- no pipeline: one forward, then its backward, per micro-batch -------------------------------- */

/* With pairs the forward of the next
 * micro-batch goes together with the backward: F0 (F1;B0) (F2;B1) B2. */

static const char *
refusal (const LsSchedShape *shape)
{
  if (shape->pp > 1)
    return "without a pipeline schedule pp must be 1";
  if (shape->vpp > 1)
    return "without a pipeline schedule vpp must be 1";
  return NULL;
}

static uint32_t
n_warmup (const LsSchedShape *shape, uint32_t rank)
{
  return shape->has_pairs ? 1 : 0;
}

const LsSched ls_sched_none = {
  .name = "none",
  .use = LS_SCHED_ONE_STAGE,
  .recipe = LS_RECIPE_MEGATRON,
  .knobs = LS_SCHED_PAIRS,
  .refusal = refusal,
  .n_warmup = n_warmup,
};

/* --- naive model parallelism --------------------------------------------------------------------- */

/* The model is cut into p stages because it does not fit on one rank, and that is all:
 * a micro-batch goes forward through them and back before the next one starts. One rank
 * works at a time, so the step takes m p (F + B), a rank is busy for 1/p of it, and keeps
 * the activations of one micro-batch.
 *
 *     p = 2, m = 2      rank 0   F0 .  .  B0 F1 .  .  B1
 *     (F = B)           rank 1   .  F0 B0 .  .  F1 B1 .
 *
 * Reference: the baseline of Huang et al., GPipe, NeurIPS 2019, figure 2b. */

const LsSched ls_sched_naive = {
  .name = "naive",
  .refusal = ls_sched_refuse_chunks,
};

/* --- looped breadth-first ------------------------------------------------------------------------ */

/* Each of p ranks holds v chunks on a loop. All micro-batches pass chunk 0, then all
 * chunk 1, and so on; then the backwards, last chunk first, and within a chunk the last
 * micro-batch first. Each chunk is visited once, so what belongs to it (gathered
 * parameters, the reduction of its gradients) happens once and overlaps the next
 * chunk's work.
 *
 * With whole-rank times F and B and m >= p, the step takes m (F + B) + (p - 1)(F + B)/v;
 * with fewer micro-batches ranks wait between chunks. Every rank keeps the activations
 * of all m v chunks.
 *
 *     p = 2, v = 2, m = 2; stage.micro-batch
 *     rank 0   F0.0 F0.1 F2.0 F2.1 B2.1 B2.0 B0.1 B0.0
 *     rank 1   F1.0 F1.1 F3.0 F3.1 B3.1 B3.0 B1.1 B1.0
 *
 * Reference: Lamy-Poirier, Breadth-First Pipeline Parallelism, MLSys 2023; orders
 * checked against PyTorch's ScheduleLoopedBFS, which reverses the micro-batches. */

static const char *
refusal_looped_bfs (const LsSchedShape *shape)
{
  return shape->vpp < 2 ? "vpp must be greater than 1: one chunk per rank is gpipe" : NULL;
}

static LsAction
nth (const LsSchedShape *shape, LsActionType type, uint32_t k)
{
  uint32_t m = shape->n_micro_batches;
  uint32_t in_time = type == LS_ACTION_F ? k : shape->vpp * m - 1 - k;
  return (LsAction) { .mb = in_time % m, .chunk = (uint16_t) (in_time / m), .type = (uint8_t) type };
}

static uint32_t
all_forwards (const LsSchedShape *shape, uint32_t rank)
{
  return MAX (shape->vpp, 1) * shape->n_micro_batches;
}

const LsSched ls_sched_looped_bfs = {
  .name = "looped-bfs",
  .refusal = refusal_looped_bfs,
  .n_warmup = all_forwards,
  .nth = nth,
};

/* --- GPipe --------------------------------------------------------------------------------------- */

static uint64_t
in_flight (const LsSchedShape *shape, uint32_t rank)
{
  return shape->n_micro_batches;
}

const LsSched ls_sched_gpipe = {
  .name = "gpipe",
  .refusal = ls_sched_refuse_chunks,
  .n_warmup = all_forwards,
  .in_flight = in_flight,
};
