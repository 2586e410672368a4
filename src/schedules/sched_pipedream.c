/* PipeDream: 1F1B without a flush between steps, with weight stashing.
 *
 * Stage s of p runs w = min (m, p - 1 - s) forwards, then pairs (F, B), each backward
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
#include "schedules/sched_impl.h"

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
