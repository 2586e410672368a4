/* Pins which plans are refused before they are walked through: two spans for each kernel and each collective
 * of one rank of every stage, to the byte; 0 allows any. */
#include "ls_test.h"

#include <lockstep/error.h>

#include "exec/timeline.h"
#include "job/job_steps.h"

/* Seven of one role, one of the other: a message between stages is none. */
#define N_SPANS 8

static gboolean
check (uint64_t max_bytes, GError **error)
{
  LsOp many[] = {
    { .kind = LS_OP_KERNEL }, { .kind = LS_OP_P2P }, { .kind = LS_OP_COLLECTIVE }, { .kind = LS_OP_KERNEL }
  };
  LsOp one[] = { { .kind = LS_OP_KERNEL } };
  LsSegment segments[] = { { "many", G_N_ELEMENTS (many), many }, { "one", 1, one } };
  LsInstance first[] = { { .segment = 0 }, { .segment = 0 }, { .segment = 1 } },
             last[] = { { .segment = 1 } };
  LsProgram programs[]
      = { { .n_instances = 3, .instances = first }, { .n_instances = 1, .instances = last } };
  const LsPlan plan
      = { .n_micro_batches = 2, .n_segments = 2, .segments = segments, .n_roles = 2, .programs = programs };
  return ls_budget_check_plan (&plan, max_bytes, error);
}

static void
spans_of_two_steps_must_fit (void)
{
  g_autoptr (GError) error = NULL;
  LS_CHECK (check (2 * N_SPANS * sizeof (LsSpan), &error) && check (0, &error));
  LS_CHECK_NO_ERROR (error);
  LS_CHECK (!check (2 * N_SPANS * sizeof (LsSpan) - 1, &error));
  if (LS_CHECK (g_error_matches (error, LS_ERROR, LS_ERROR_LIMIT)))
    LS_CHECK (g_str_has_prefix (error->message,
                                "a step of 2 micro-batches, 8 ops on a rank of each stage, needs "));
}

LS_TEST_SUITE (LS_TEST (spans_of_two_steps_must_fit))
