/* Pins ops of DeepSpeed's stage 3 by hand. */
#include "fixtures.h"

/* What an op of that name of the first rank's step has; NULL without one. */
static const LsOp *
first_op (const LsPlan *plan, const char *name)
{
  for (LsOpPlace at = LS_OP_BEFORE (0); plan && ls_op_next (plan, &at);)
    if (strcmp (ls_op_at (plan, at)->name, name) == 0)
      return ls_op_at (plan, at);
  return NULL;
}

/* On 18 ranks, of which the last has one of 256 elements: 8 vectors of each of 4 layers, 2 of the last norm. */
static void
persistent_vectors_are_copied_in_parts (void)
{
  LsStrategy s = job (1, 1);
  s.gpus = s.dp = 18, s.global_batch = 36;
  s.dp_kind = LS_DP_DEEPSPEED, s.zero_stage = 3;
  s.data.persistence_threshold = 1024;
  s.data.collective_lists = true;
  g_autoptr (LsPlan) plan = lowered_model (&model, &s);
  const LsOp *copy = first_op (plan, "persistent-copy-out");
  if (LS_CHECK (copy != NULL)) {
    const LsKernel *kernel = &plan->kernels[copy->kernel];
    LS_CHECK_INT (copy->repeat, ==, 18 * (4 * 8 + 2));
    LS_CHECK_INT (kernel->dtype, ==, LS_DTYPE_BF16);
  }
  ls_strategy_clear (&s);
}

LS_TEST_SUITE (LS_TEST (persistent_vectors_are_copied_in_parts))
