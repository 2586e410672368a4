/* DualPipe.
 *
 * Two replicas of the model run through p ranks in opposite directions, each with half of
 * the micro-batches: rank r holds stage r of the one (chunk 0) and stage p - 1 - r of the
 * other (chunk 1). A forward of one direction and a backward of the other are executed as
 * one pair, so that the communication of each hides behind the computation of the other.
 *
 * Ranks r and p - 1 - r mirror each other. With h = min (r, p - 1 - r), the side of the
 * direction that starts nearer as chunk 0 and m/2 micro-batches per direction, the order
 * is that of place h of p/2 in DualPipeV (schedules/sched_dualpipev.c has the eight steps).
 * p and m must be even, and m >= 2 p.
 *
 * A rank holds at most p + 1 micro-batches' activations, and two stages' parameters. With
 * F = I, B = I + W, the most that a rank is idle is (p/2 - 1)(FB + B - 3 W), FB the time
 * of a pair; where I < F, (p/2 - 1)(FB + F + I - 2 W); where I > F it is more than the
 * latter and less than the former, and only the order tells.
 *
 *     p = 2, m = 4; direction:stage.micro-batch
 *     rank 0   F0:0.0 F1:1.0 F0:0.1 B1:1.0 (F1:1.1;B0:0.0) B1:1.1 I0:0.1 W0:0.1
 *     rank 1   F1:0.0 F0:1.0 F1:0.1 B0:1.0 (F0:1.1;B1:0.0) B0:1.1 I1:0.1 W1:0.1
 *
 * Reference: DeepSeek-AI, DeepSeek-V3 Technical Report, 2024, section 3.2.1; orders
 * checked against github.com/deepseek-ai/DualPipe. */
#include "schedules/sched_impl.h"

static const char *
refusal (const LsSchedShape *shape)
{
  if (shape->vpp > 1)
    return ls_sched_refuse_chunks (shape);
  if (shape->pp % 2 != 0)
    return "pp must be even: ranks mirror each other";
  if (shape->n_micro_batches % 2 != 0)
    return "the number of micro-batches must be even: half of them go in each direction";
  if (shape->n_micro_batches < 2 * shape->pp)
    return "there must be at least 2 pp micro-batches";
  return NULL;
}

static void
order (const LsSchedShape *shape, uint32_t rank, GArray *actions)
{
  uint32_t is_mirrored = rank >= shape->pp / 2;
  uint32_t place = is_mirrored ? shape->pp - 1 - rank : rank;
  ls_sched_append_dualpipe (shape->pp / 2, place, shape->n_micro_batches / 2, is_mirrored, actions);
}

const LsSched ls_sched_dualpipe = {
  .name = "dualpipe",
  .placement = LS_PLACE_PIPES,
  .is_split = true,
  .always_pairs = true,
  .refusal = refusal,
  .n_chunks = ls_sched_two_chunks,
  .order = order,
};
