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

static void
order (const LsSchedShape *shape, uint32_t rank, GArray *actions)
{
  ls_sched_append_1f1b (shape, n_warmup (shape, rank), ls_sched_nth_in_order, actions);
}

uint64_t
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
  .order = order,
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
  .order = order,
  .n_versions = n_versions,
};
