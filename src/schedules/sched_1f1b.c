/* 1F1B (PipeDream-flush, DAPPLE; Megatron-LM's schedule without interleaving).
 *
 * Rank r of p runs w = min (m, p - r - 1) forwards, then pairs (F, B), then the
 * backwards that are left. It keeps the activations of at most min (m, p - r)
 * micro-batches, and with forwards of F and backwards of B the step takes
 * (m + p - 1)(F + B): a bubble of (p - 1)/m of the ideal time.
 *
 *     p = 2, m = 3      rank 0   F0 F1 B0 F2 B1 B2
 *                       rank 1   F0 B0 F1 B1 F2 B2
 *
 * Reference: Narayanan et al., Memory-Efficient Pipeline-Parallel DNN Training,
 * ICML 2021 (PipeDream-flush); orders checked against Megatron-LM and PyTorch. */
#include "schedules/sched_impl.h"

static const char *
refusal (const LsSchedShape *shape)
{
  if (shape->vpp > 1)
    return "vpp must be 1: several chunks per rank need interleaved-1f1b";
  return NULL;
}

static uint32_t
n_warmup (const LsSchedShape *shape, uint32_t rank)
{
  return MIN (shape->n_micro_batches, shape->pp - rank - 1);
}

/* min (m, pp - rank): 1F1B and what fills its bubbles. */
static uint64_t
ls_sched_in_flight_1f1b (const LsSchedShape *shape, uint32_t rank)
{
  return n_warmup (shape, rank) < shape->n_micro_batches ? n_warmup (shape, rank) + UINT64_C (1)
                                                         : shape->n_micro_batches;
}

const LsSched ls_sched_1f1b = {
  .name = "1f1b",
  .use = LS_SCHED_STAGES,
  .recipe = LS_RECIPE_MEGATRON,
  .refusal = refusal,
  .n_warmup = n_warmup,
  .in_flight = ls_sched_in_flight_1f1b,
};

/* --- PipeDream: 1F1B without a flush between steps, with weight stashing ------------------------- */

/* Stage s of p runs w = min (m, p - 1 - s) forwards, then pairs (F, B), each backward
 * followed by an update of the weights, then the backwards that are left when training
 * ends. Between, forwards of the next step fill what a flush would leave idle: the
 * steady state has no bubble, a micro-batch takes F + B. The order of m micro-batches
 * from an empty pipeline is that of 1f1b; what differs is what surrounds it, and memory.
 *
 * A backward must see the weights of its forward: micro-batch i runs with version
 * max (0, i - w), the one that the update of micro-batch i - w - 1 made, so stage s keeps
 * w + 1 = p - s versions of its weights, as many as micro-batches of activations.
 *
 *     p = 2, micro-batch / version
 *     stage 0   F0/0 F1/0 B0/0 F2/1 B1/0 F3/2 B2/1 ...
 *     stage 1        F0/0 B0/0 F1/1 B1/1 F2/2 B2/2 ...
 *
 * Deviation: stages are not replicated; a cluster's replicas are data parallelism's.
 *
 * Reference: Narayanan et al., PipeDream: Generalized Pipeline Parallelism for DNN
 * Training, SOSP 2019. */

static uint32_t
n_versions (const LsSchedShape *shape, uint32_t rank)
{
  return shape->pp - rank;
}

const LsSched ls_sched_pipedream = {
  .name = "pipedream",
  .recipe = LS_RECIPE_UNFLUSHED,
  .refusal = ls_sched_refuse_chunks,
  .n_warmup = n_warmup,
  .n_versions = n_versions,
};

/* The handcrafted zero-bubble schedules ZB-H1 and ZB-H2.
 *
 * 1F1B with split backwards. Only I is on the way from stage to stage, which shortens
 * the cool-down; W fills what would be idle. Rank r of p warms up with p - r - 1 forwards
 * and puts each W off by r micro-batches, so that every rank holds the activations of at
 * most p micro-batches (held until W): p - r whose I is to come and r whose W is.
 *
 *     p = 2, m = 3      rank 0   F0 F1 .  I0 W0 F2 I1 W1 I2 W2
 *                       rank 1   .  F0 I0 F1 I1 W0 F2 I2 W1 W2
 *
 * For m >= p, and W no longer than F or I, the step takes
 * m (F + I + W) + (p - 1)(F + I - W): the bubble of 1F1B less 2 (p - 1) W. Longer W's make
 * it longer, as the order does not look at the times (zb-auto does).
 *
 * Reference: Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024, section 2.1. */

/* --- ZB-H2: zero bubble with twice the memory of 1F1B -------------------------------------------- */

/* Rank r of p warms up with 2 (p - r - 1) forwards, so that no rank waits for its first
 * I, and puts each W off by 2 r micro-batches, so that no rank waits in the cool-down
 * either: between its first action and its last a rank is never idle if F = I = W. Ranks
 * start one F apart and end as much apart, so without a flush steps follow each other
 * without a gap. Every rank holds the activations of at most 2 p - 1 micro-batches
 * (held until W).
 *
 *     p = 2, m = 4      rank 0   F0 F1 F2 I0 W0 F3 I1 W1 I2 W2 I3 W3
 *                       rank 1      F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 W2 W3
 *
 * For m >= 2 p - 1, and W no longer than F or I, the span (a rank's last end less its
 * first start, the largest) is m (F + I + W) + (p - 1)(F + I - 2 W). Longer W's make it
 * longer, as the order does not look at the times (zb-auto does).
 *
 * Reference: Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024, section 2.2. */

static uint32_t
twice_n_warmup (const LsSchedShape *shape, uint32_t rank)
{
  return MIN (shape->n_micro_batches, 2 * (shape->pp - rank - 1));
}

static uint32_t
twice_rank (const LsSchedShape *shape, uint32_t rank)
{
  uint32_t n_steady = shape->n_micro_batches - twice_n_warmup (shape, rank);
  return MIN (2 * rank, n_steady > 0 ? n_steady - 1 : 0);
}

const LsSched ls_sched_zb_h2 = {
  .name = "zb-h2",
  .is_split = true,
  .refusal = ls_sched_refuse_chunks,
  .n_warmup = twice_n_warmup,
  .n_delay = twice_rank,
};

/* --- ZB-H1: zero bubble with the memory of 1F1B -------------------------------------------------- */

const LsSched ls_sched_zb_h1 = {
  .name = "zb-h1",
  .is_split = true,
  .refusal = ls_sched_refuse_chunks,
  .n_warmup = n_warmup,
  .n_delay = ls_sched_rank,
  .in_flight = ls_sched_in_flight_1f1b,
};
