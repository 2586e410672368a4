#include "job/job_steps.h"

#include <lockstep/error.h>

#include "exec/memory/memory.h"
#include "exec/timeline.h"

/* Ops of a step that leave a span, on one rank of each role. */
static double
count_spans (const LsPlan *plan)
{
  double n = 0;
  g_autofree uint32_t *of_segment = g_new0 (uint32_t, plan->n_segments);
  for (uint32_t s = 0; s < plan->n_segments; s++)
    for (uint32_t i = 0; i < plan->segments[s].n_ops; i++) {
      LsOpKind kind = (LsOpKind) plan->segments[s].ops[i].kind;
      of_segment[s] += kind == LS_OP_KERNEL || kind == LS_OP_COLLECTIVE;
    }
  for (uint32_t role = 0; role < plan->n_roles; role++)
    for (uint32_t i = 0; i < plan->programs[role].n_instances; i++)
      n += of_segment[plan->programs[role].instances[i].segment];
  return n;
}

gboolean
ls_budget_check_plan (const LsPlan *plan, uint64_t max_bytes, GError **error)
{
  double n = count_spans (plan), bytes = MAX (2 * n * sizeof (LsSpan), (double) ls_memory_walk_bytes (plan));
  if (max_bytes == 0 || bytes <= (double) max_bytes)
    return TRUE;
  g_autofree char *need = ls_format_bytes ((uint64_t) MIN (bytes, 1e18)), *may = ls_format_bytes (max_bytes);
  g_set_error (error, LS_ERROR, LS_ERROR_LIMIT,
               "a step of %u micro-batches, %.3g ops on a rank of each stage, needs %s of memory or more;"
               " --max-memory is %s",
               plan->n_micro_batches, n, need, may);
  return FALSE;
}

/* Of a layer in each direction, whatever it is made of: query-key-value, attention, projection, and two
 * products of an MLP or of experts. */
#define MIN_KERNELS_OF_LAYER 5

gboolean
ls_budget_check_passes (const LsStrategy *s, const LsModel *m, uint64_t max_bytes, GError **error)
{
  uint64_t n_micro_batches = ls_strategy_most_micro_batches (s);
  double n = 2.0 * MIN_KERNELS_OF_LAYER * (double) n_micro_batches * m->n_layers,
         bytes = 2 * n * sizeof (LsSpan);
  if (max_bytes == 0 || bytes <= (double) max_bytes)
    return TRUE;
  g_autofree char *need = ls_format_bytes ((uint64_t) MIN (bytes, 1e18)), *may = ls_format_bytes (max_bytes);
  g_set_error (error, LS_ERROR, LS_ERROR_LIMIT,
               "a step of %" G_GUINT64_FORMAT " micro-batches through %u layers needs %s of memory or more;"
               " --max-memory is %s",
               n_micro_batches, m->n_layers, need, may);
  return FALSE;
}
