/* No pipeline: one forward, then its backward, per micro-batch. */
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
  return 0;
}

static void
order (const LsSchedShape *shape, uint32_t rank, GArray *actions)
{
  ls_sched_append_1f1b (shape, 0, ls_sched_nth_in_order, actions);
}

const LsSched ls_sched_none = {
  .name = "none",
  .recipe = LS_RECIPE_MEGATRON,
  .refusal = refusal,
  .order = order,
  .n_warmup = n_warmup,
};
