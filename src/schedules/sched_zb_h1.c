/* schedules/sched_zb_h1.c — the handcrafted zero-bubble schedules ZB-H1 and ZB-H2.
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
#include "schedules/sched_impl.h"

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

static void
order_zb_h2 (const LsSchedShape *shape, uint32_t rank, GArray *actions)
{
  uint32_t n_warmup = MIN (shape->n_micro_batches, 2 * (shape->pp - rank - 1));
  uint32_t n_steady = shape->n_micro_batches - n_warmup;
  uint32_t n_delay = MIN (2 * rank, n_steady > 0 ? n_steady - 1 : 0);
  ls_sched_append_1f1b_split (shape, n_warmup, n_delay, ls_sched_nth_in_order, actions);
}

const LsSched ls_sched_zb_h2 = {
  .name = "zb-h2",
  .is_split = true,
  .refusal = ls_sched_refuse_chunks,
  .order = order_zb_h2,
};

/* --- ZB-H1: zero bubble with the memory of 1F1B -------------------------------------------------- */

static void
order (const LsSchedShape *shape, uint32_t rank, GArray *actions)
{
  uint32_t n_warmup = MIN (shape->n_micro_batches, shape->pp - rank - 1);
  ls_sched_append_1f1b_split (shape, n_warmup, rank, ls_sched_nth_in_order, actions);
}

const LsSched ls_sched_zb_h1 = {
  .name = "zb-h1",
  .is_split = true,
  .refusal = ls_sched_refuse_chunks,
  .order = order,
  .in_flight = ls_sched_in_flight_1f1b,
};
