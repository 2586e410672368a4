/* schedules/sched_1f1b.c — the 1F1B family: warm-up forwards, then forwards and backwards in turns, then the
 * backwards that are left.
 *
 * GPipe, all of whose forwards are warm-up: all forwards, then all backwards, both in the order of the
 * micro-batches (as in PyTorch; gpipe-lifo has the backwards reversed, as the paper draws them, and takes as
 * long). The step takes (m + p - 1)(F + B), a bubble of (p - 1)/m of the ideal time, and every rank keeps the
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
refusal_none (const LsSchedShape *shape)
{
  return shape->pp > 1 ? "without a pipeline schedule pp must be 1"
      : shape->vpp > 1 ? "without a pipeline schedule vpp must be 1"
                       : NULL;
}

static uint32_t
n_warmup_none (const LsSchedShape *shape, uint32_t rank)
{
  return shape->has_pairs ? 1 : 0;
}

const LsSched ls_sched_none = {
  .name = "none",
  .use = LS_SCHED_ONE_STAGE,
  .recipe = LS_RECIPE_MEGATRON,
  .knobs = LS_SCHED_PAIRS,
  .refusal = refusal_none,
  .n_warmup = n_warmup_none,
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
  .chunks = LS_CHUNKS_ONE,
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

static LsAction
nth_breadth_first (const LsSchedShape *shape, LsActionType type, uint32_t k)
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
  .chunks = LS_CHUNKS_SEVERAL,
  .other = "vpp must be greater than 1: one chunk per rank is gpipe",
  .n_warmup = all_forwards,
  .nth = nth_breadth_first,
};

/* --- GPipe --------------------------------------------------------------------------------------- */

static uint64_t
all_in_flight (const LsSchedShape *shape, uint32_t rank)
{
  return shape->n_micro_batches;
}

const LsSched ls_sched_gpipe = {
  .name = "gpipe",
  .chunks = LS_CHUNKS_ONE,
  .n_warmup = all_forwards,
  .in_flight = all_in_flight,
};

/* The backwards begin with the micro-batch that came last, as figure 2c of the paper draws them. */
static LsAction
nth_last_first (const LsSchedShape *shape, LsActionType type, uint32_t k)
{
  return (LsAction) { .mb = type == LS_ACTION_F ? k : shape->n_micro_batches - 1 - k,
                      .type = (uint8_t) type };
}

const LsSched ls_sched_gpipe_lifo = {
  .name = "gpipe-lifo",
  .chunks = LS_CHUNKS_ONE,
  .n_warmup = all_forwards,
  .nth = nth_last_first,
  .in_flight = all_in_flight,
};

/* --- 1F1B ----------------------------------------------------------------------------------------- */

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
  .chunks = LS_CHUNKS_ONE,
  .other = "vpp must be 1: several chunks per rank need interleaved-1f1b",
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
  .chunks = LS_CHUNKS_ONE,
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
  .chunks = LS_CHUNKS_ONE,
  .n_warmup = twice_n_warmup,
  .n_delay = twice_rank,
};

/* --- ZB-H1: zero bubble with the memory of 1F1B -------------------------------------------------- */

const LsSched ls_sched_zb_h1 = {
  .name = "zb-h1",
  .is_split = true,
  .chunks = LS_CHUNKS_ONE,
  .n_warmup = n_warmup,
  .n_delay = ls_sched_rank,
  .in_flight = ls_sched_in_flight_1f1b,
};

/* --- interleaved 1F1B ---------------------------------------------------------------------------- */

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
refuse_rounds (const LsSchedShape *shape)
{
  return sched_round_size (shape) == 0
      ? "the number of micro-batches must be a multiple of the rounds, max (1, micro-batches / pp)"
      : NULL;
}

static const char *
refuse_pytorch (const LsSchedShape *shape)
{
  return shape->group ? "with PyTorch's rounds the micro-batch group follows from pp and may not be given"
                      : refuse_rounds (shape);
}

static const char *
refusal_interleaved (const LsSchedShape *shape)
{
  return shape->rounds == LS_ROUNDS_PYTORCH ? refuse_pytorch (shape) : refuse_megatron (shape);
}

/* Several chunks per rank on a loop, micro-batches in groups. */
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
n_warmup_interleaved (const LsSchedShape *shape, uint32_t rank)
{
  return MIN (shape->n_micro_batches * shape->vpp,
              2 * (shape->pp - rank - 1) + (shape->vpp - 1) * sched_group_size (shape)
                  + (shape->has_pairs ? 1 : 0));
}

/* Of groups of pp micro-batches: Narayanan et al. 2021, section 2.2. */
static uint64_t
in_flight_interleaved (const LsSchedShape *shape, uint32_t rank)
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
  .chunks = LS_CHUNKS_SEVERAL,
  .other = "vpp must be greater than 1: one chunk per rank is 1f1b",
  .refusal = refusal_interleaved,
  .n_warmup = n_warmup_interleaved,
  .nth = sched_nth_in_groups,
  .in_flight = in_flight_interleaved,
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
  .chunks = LS_CHUNKS_SEVERAL,
  .other = "vpp must be greater than 1: one chunk per rank is zb-h1",
  .refusal = refuse_rounds,
  .n_warmup = n_warmup_in_rounds,
  .n_delay = ls_sched_rank,
  .nth = nth_in_rounds,
};
