/* Interleaved 1F1B, as Megatron-LM runs it.
 *
 * Each of p ranks holds v chunks; m micro-batches pass in groups of N (p unless
 * given): all of a group through chunk 0, then all through chunk 1, and so on, then
 * the next group; the last group may be smaller. Backwards follow the same list
 * with the chunks reversed. Rank r runs
 *
 *     w = min (m v, 2 (p - r - 1) + (v - 1) N)
 *
 * forwards, then pairs (F, B), then the backwards that are left; it keeps at most
 * min (m v, w + 1) chunk activations. With whole-rank times F and B and m a
 * multiple of p, the step takes m (F + B) + (p - 1)(F + B)/v.
 *
 *     p = 2, v = 2, m = 2; chunk.micro-batch
 *     rank 0   F0.0 F0.1 F1.0 F1.1 B1.0 B1.1 B0.0 B0.1
 *     rank 1   F0.0 F0.1 F1.0 B1.0 F1.1 B1.1 B0.0 B0.1
 *
 * Legal where p <= N <= m and the last group is empty or at least p: a smaller one
 * would reach the next chunk before its predecessor on the last rank is done.
 *
 * Reference: Narayanan et al., Efficient Large-Scale Language Model Training on GPU
 * Clusters Using Megatron-LM, SC 2021; groups of N as in Megatron-LM's
 * microbatch-group-size-per-virtual-pipeline-stage. */
#include "parallel/sched_impl.h"

static uint32_t
group_size (const LsSchedShape *shape)
{
  return shape->group ? shape->group : shape->pp;
}

static const char *
refusal (const LsSchedShape *shape)
{
  uint32_t group = group_size (shape);
  uint32_t m = shape->n_micro_batches;

  if (shape->pp < 2)
    return "pp must be greater than 1";
  if (shape->vpp < 2)
    return "vpp must be greater than 1: one chunk per rank is 1f1b";
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

static LsAction
nth (const LsSchedShape *shape, LsActionType type, uint32_t k)
{
  uint32_t group = group_size (shape);
  uint32_t first_mb = k / (group * shape->vpp) * group;
  uint32_t n_mb = MIN (group, shape->n_micro_batches - first_mb);
  uint32_t within = k - first_mb * shape->vpp;
  uint32_t chunk = within / n_mb;

  return (LsAction){
    .mb = first_mb + within % n_mb,
    .chunk = (uint16_t) (type == LS_ACTION_F ? chunk : shape->vpp - 1 - chunk),
    .type = (uint8_t) type,
  };
}

static uint32_t
n_warmup (const LsSchedShape *shape, uint32_t rank)
{
  return MIN (shape->n_micro_batches * shape->vpp,
              2 * (shape->pp - rank - 1) + (shape->vpp - 1) * group_size (shape));
}

static void
order (const LsSchedShape *shape, uint32_t rank, GArray *actions)
{
  ls_sched_append_1f1b (shape, n_warmup (shape, rank), nth, actions);
}

const LsSched ls_sched_interleaved = {
  .name = "interleaved-1f1b",
  .refusal = refusal,
  .order = order,
  .n_warmup = n_warmup,
};
