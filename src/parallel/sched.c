#include "parallel/sched.h"

#include <string.h>

#include "parallel/sched_impl.h"

static const LsSched *const registry[] = {
  &ls_sched_none,
  &ls_sched_1f1b,
  &ls_sched_interleaved,
};

const LsSched *
ls_sched_find (const char *name)
{
  for (guint i = 0; i < G_N_ELEMENTS (registry); i++)
    if (strcmp (registry[i]->name, name) == 0)
      return registry[i];
  return NULL;
}

const LsSched *
ls_sched_at (guint i)
{
  return i < G_N_ELEMENTS (registry) ? registry[i] : NULL;
}

void
ls_sched_append_1f1b (const LsSchedShape *shape, uint32_t n_warmup, LsSchedNth nth, GArray *actions)
{
  uint32_t n = shape->vpp * shape->n_micro_batches;
  g_assert (n_warmup <= n);

  for (uint32_t k = 0; k < n + n_warmup; k++) {
    if (k < n) {
      LsAction forward = nth (shape, LS_ACTION_F, k);
      g_array_append_val (actions, forward);
    }
    if (k >= n_warmup) {
      LsAction backward = nth (shape, LS_ACTION_B, k - n_warmup);
      g_array_append_val (actions, backward);
    }
  }
}

LsAction
ls_sched_nth_in_order (const LsSchedShape *shape, LsActionType type, uint32_t k)
{
  return (LsAction){ .mb = k, .chunk = 0, .type = (uint8_t) type };
}
