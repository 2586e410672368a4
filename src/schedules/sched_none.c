/* No pipeline: one forward, then its backward, per micro-batch. With pairs the forward of the next
 * micro-batch goes together with the backward: F0 (F1;B0) (F2;B1) B2. */
#include "schedules/sched_impl.h"

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

static void
order (const LsSchedShape *shape, uint32_t rank, GArray *actions)
{
  ls_sched_append_1f1b (shape, n_warmup (shape, rank), ls_sched_nth_in_order, actions);
}

const LsSched ls_sched_none = {
  .name = "none",
  .recipe = LS_RECIPE_MEGATRON,
  .knobs = LS_SCHED_PAIRS,
  .refusal = refusal,
  .order = order,
  .n_warmup = n_warmup,
};
