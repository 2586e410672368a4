#include "exec/timeline.h"

void
ls_timeline_free (LsTimeline *t)
{
  if (!t)
    return;
  for (uint32_t i = 0; t->ranks && i < t->n_ranks; i++)
    g_free (t->ranks[i].spans);
  g_free (t->ranks);
  g_free (t->multiplicity);
  g_free (t->resource_bytes);
  g_free (t);
}

const LsInstance *
ls_span_instance (const LsTimeline *t, uint32_t rank, const LsSpan *span)
{
  return &t->plan->programs[t->plan->bindings[rank].role].instances[span->instance];
}

const LsOp *
ls_span_op (const LsTimeline *t, uint32_t rank, const LsSpan *span)
{
  return &t->plan->segments[ls_span_instance (t, rank, span)->segment].ops[span->op];
}
