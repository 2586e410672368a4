/* Pins what a host does that waits for each op it launches (CUDA_LAUNCH_BLOCKING=1): behind each of these
 * stands a wait for its end, and for no other, in the layer that it is of. */
#include "fixtures.h"

static bool
is_launched (const LsOp *op)
{
  return op->kind == LS_OP_KERNEL || op->kind == LS_OP_COLLECTIVE || op->kind == LS_OP_P2P
      || op->kind == LS_OP_COPY;
}

static bool
is_wait (const LsOp *op)
{
  return op->kind == LS_OP_HOST_SYNC && strcmp (op->name, "launch blocks") == 0;
}

/* How many waits stand in it; each is checked. */
static guint
check_waits (const LsSegment *seg, guint *ret_n_of_layers)
{
  guint n = 0;
  for (uint32_t o = 0; o < seg->n_ops; o++) {
    const LsOp *op = &seg->ops[o], *next = o + 1 < seg->n_ops ? op + 1 : NULL;
    LS_CHECK_INT (is_launched (op), ==, next && is_wait (next));
    if (!next || !is_wait (next))
      continue;
    n++;
    *ret_n_of_layers += next->layer != UINT16_MAX;
    LS_CHECK_INT (next->layer, ==, op->layer);
    LS_CHECK_INT (next->host, ==, LS_HOST_SYNC);
    if (LS_CHECK_INT (next->n_deps, ==, 1)) {
      LS_CHECK_INT (next->deps[0].kind, ==, LS_DEP_END);
      LS_CHECK_INT (next->deps[0].index, ==, o);
    }
  }
  return n;
}

static void
each_launch_is_waited_for_in_its_layer (void)
{
  LsStrategy s = job (2, 1);
  guint n = 0, n_of_layers = 0;
  s.launch_blocking = true;
  g_autoptr (LsPlan) plan = lowered_model (&model, &s);
  for (uint32_t i = 0; plan && i < plan->n_segments; i++)
    n += check_waits (&plan->segments[i], &n_of_layers);
  LS_CHECK (n > 50 && n_of_layers > 50 && n_of_layers < n);
  ls_strategy_clear (&s);
}

LS_TEST_SUITE (LS_TEST (each_launch_is_waited_for_in_its_layer))
