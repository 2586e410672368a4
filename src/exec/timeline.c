#include "exec/timeline.h"

#include "network/coll.h"

void
ls_timeline_free (LsTimeline *t)
{
  if (!t)
    return;
  for (uint32_t i = 0; t->ranks && i < t->n_ranks; i++)
    g_free (t->ranks[i].spans);
  g_free (t->ranks);
  g_free (t->multiplicity);
  g_free (t->representative);
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

const char *
ls_span_name (const LsTimeline *t, uint32_t rank, const LsSpan *span)
{
  const LsOp *op = ls_span_op (t, rank, span);
  if (op->name)
    return op->name;
  switch (op->kind) {
  case LS_OP_KERNEL:
    return op->kernel != UINT32_MAX ? t->plan->kernels[op->kernel].name : "kernel";
  case LS_OP_COLLECTIVE:
    return ls_coll_kind_name ((LsCollKind) op->coll);
  case LS_OP_P2P:
    return "p2p";
  case LS_OP_COPY:
    return "copy";
  case LS_OP_RECORD:
    return "record";
  case LS_OP_WAIT:
    return "wait";
  default:
    return "host";
  }
}

const char *
ls_cause_name (LsCause cause)
{
  static const char *const names[] = {
    [LS_CAUSE_NONE] = "none",
    [LS_CAUSE_STREAM] = "stream",
    [LS_CAUSE_DEP] = "dep",
    [LS_CAUSE_HOST] = "host",
  };
  g_assert ((guint) cause < G_N_ELEMENTS (names));
  return names[cause];
}
