/* Interleaved 1F1B, as Megatron-LM or PyTorch run it.
 *
 * Each of p ranks holds v chunks on a loop; m micro-batches pass in groups of N: all of
 * a group through chunk 0, then all through chunk 1, and so on, then the next group; the
 * last group may be smaller. Backwards follow the same list with the chunks reversed.
 * Rank r runs
 *
 *     w = min (m v, 2 (p - r - 1) + (v - 1) N)
 *
 * forwards, then pairs (F, B), then the backwards that are left; it keeps at most
 * min (m v, w + 1) chunk activations. With whole-rank times F and B and N >= p, the step
 * takes m (F + B) + (p - 1)(F + B)/v.
 *
 *     p = 2, v = 2, m = 2; chunk.micro-batch
 *     rank 0   F0.0 F0.1 F1.0 F1.1 B1.0 B1.1 B0.0 B0.1
 *     rank 1   F0.0 F0.1 F1.0 B1.0 F1.1 B1.1 B0.0 B0.1
 *
 * Executed as pairs (F;B), the backward of a pair is that of the micro-batch before: a rank
 * runs one forward more, w + 1, first (Megatron-LM, overlap_moe_expert_parallel_comm).
 *
 * The rules for N differ. Megatron-LM: given, or p; N = m comes close to breadth-first,
 * sizes between are Llama 3's flexible schedule. Legal where p <= N <= m and the last
 * group is empty or at least p: a smaller one would reach the next chunk before its
 * predecessor on the last rank is done. PyTorch: max (1, m / p) rounds of equal size,
 * which must divide m; N = p where p does, and fewer than p micro-batches are one round
 * (then ranks wait between chunks, and the step takes longer).
 *
 * Reference: Narayanan et al., Efficient Large-Scale Language Model Training on GPU
 * Clusters Using Megatron-LM, SC 2021; groups of N as in Megatron-LM's
 * microbatch-group-size-per-virtual-pipeline-stage; rounds as in PyTorch's
 * ScheduleInterleaved1F1B. */
#include "schedules/sched_impl.h"

/* m / max (1, m / pp), PyTorch's micro-batches per round; 0 if the rounds do not divide m. */
static uint32_t
sched_round_size (const LsSchedShape *shape)
{
  uint32_t n_rounds = MAX (1, shape->n_micro_batches / shape->pp);
  return shape->n_micro_batches % n_rounds == 0 ? shape->n_micro_batches / n_rounds : 0;
}

/* of a legal shape */
static uint32_t
sched_group_size (const LsSchedShape *shape)
{
  if (shape->rounds == LS_ROUNDS_PYTORCH)
    return sched_round_size (shape);
  return shape->group ? shape->group : shape->pp;
}

static const char *
refuse_megatron (const LsSchedShape *shape)
{
  uint32_t group = sched_group_size (shape);
  uint32_t m = shape->n_micro_batches;

  if (group < shape->pp)
    return "the micro-batch group must not be smaller than pp";
  if (group > m)
    return shape->group ? "the micro-batch group must not exceed the number of micro-batches"
                        : "there must be at least pp micro-batches";
  if (m % group != 0 && m % group < shape->pp)
    return shape->group ? "the last micro-batch group must be full or hold at least pp"
                        : "the number of micro-batches must be a multiple of pp";
  return NULL;
}

static const char *
refuse_pytorch (const LsSchedShape *shape)
{
  if (shape->group)
    return "with PyTorch's rounds the micro-batch group follows from pp and may not be given";
  if (sched_round_size (shape) == 0)
    return "the number of micro-batches must be a multiple of the rounds, max (1, micro-batches / pp)";
  return NULL;
}

static const char *
refusal (const LsSchedShape *shape)
{
  if (shape->vpp < 2)
    return "vpp must be greater than 1: one chunk per rank is 1f1b";
  return shape->rounds == LS_ROUNDS_PYTORCH ? refuse_pytorch (shape) : refuse_megatron (shape);
}

/* Several chunks per rank on a loop, micro-batches in groups: see schedules/sched_interleaved.c. */
static LsAction
sched_nth_in_groups (const LsSchedShape *shape, LsActionType type, uint32_t k)
{
  uint32_t group = sched_group_size (shape);
  uint32_t first_mb = k / (group * shape->vpp) * group;
  uint32_t n_mb = MIN (group, shape->n_micro_batches - first_mb);
  uint32_t within = k - first_mb * shape->vpp;
  uint32_t chunk = within / n_mb;

  return (LsAction) {
    .mb = first_mb + within % n_mb,
    .chunk = (uint16_t) (type == LS_ACTION_F ? chunk : shape->vpp - 1 - chunk),
    .type = (uint8_t) type,
  };
}

static uint32_t
n_warmup (const LsSchedShape *shape, uint32_t rank)
{
  return MIN (shape->n_micro_batches * shape->vpp,
              2 * (shape->pp - rank - 1) + (shape->vpp - 1) * sched_group_size (shape)
                  + (shape->has_pairs ? 1 : 0));
}

/* Of groups of pp micro-batches: Narayanan et al. 2021, section 2.2. */
static uint64_t
in_flight (const LsSchedShape *shape, uint32_t rank)
{
  uint64_t behind = shape->pp - rank - 1;
  return MIN ((uint64_t) shape->n_micro_batches * shape->vpp,
              2 * behind + (shape->vpp - UINT64_C (1)) * shape->pp + 1);
}

const LsSched ls_sched_interleaved = {
  .name = "interleaved-1f1b",
  .use = LS_SCHED_CHUNKS,
  .recipe = LS_RECIPE_MEGATRON,
  .knobs = LS_SCHED_GROUP | LS_SCHED_ROUNDS | LS_SCHED_PAIRS,
  .refusal = refusal,
  .n_warmup = n_warmup,
  .nth = sched_nth_in_groups,
  .in_flight = in_flight,
};

/* --- interleaved zero bubble, as PyTorch runs it ------------------------------------------------- */

/* Interleaved 1F1B with split backwards. Only input gradients are on the way from stage
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

static const char *
refusal_interleaved_zb (const LsSchedShape *shape)
{
  if (shape->vpp < 2)
    return "vpp must be greater than 1: one chunk per rank is zb-h1";
  if (sched_round_size (shape) == 0)
    return "the number of micro-batches must be a multiple of the rounds, max (1, micro-batches / pp)";
  return NULL;
}

static uint32_t
n_warmup_in_rounds (const LsSchedShape *shape, uint32_t rank)
{
  return MIN (shape->n_micro_batches * shape->vpp,
              shape->pp - rank - 1 + (shape->vpp - 1) * sched_round_size (shape));
}

static LsAction
nth_in_rounds (const LsSchedShape *shape, LsActionType type, uint32_t k)
{
  LsSchedShape rounds = *shape;
  rounds.rounds = LS_ROUNDS_PYTORCH;
  return sched_nth_in_groups (&rounds, type, k);
}

const LsSched ls_sched_interleaved_zb = {
  .name = "interleaved-zb",
  .has_pytorch_rounds = true,
  .is_split = true,
  .refusal = refusal_interleaved_zb,
  .n_warmup = n_warmup_in_rounds,
  .n_delay = ls_sched_rank,
  .nth = nth_in_rounds,
};
