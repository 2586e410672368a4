/* data/traces/op_walk.c — the ops of a rank as nodes of a graph. */
#include "data/traces/trace_file.h"

void
ls_op_walk_add (GArray *ids, uint64_t id)
{
  for (guint i = ids->len; i-- > 0;)
    if (g_array_index (ids, uint64_t, i) == id)
      return;
  g_array_append_val (ids, id);
}

static void
add_nodes (GArray *ids, const LsOpNodes *nodes)
{
  for (uint32_t i = 0; i < nodes->n; i++)
    ls_op_walk_add (ids, nodes->first + i);
}

static void
gather (LsOpWalk *w, const LsInstance *instance, const LsOp *op)
{
  g_array_set_size (w->ends, 0);
  g_array_set_size (w->issues, 0);
  if (!ls_op_is_of_host (op->kind))
    add_nodes (w->ends, &w->last[op->stream]);
  add_nodes (w->ends, &w->host);
  for (uint32_t i = 0; i < op->n_deps; i++) {
    const LsDep *dep = &op->deps[i];
    add_nodes (dep->kind == LS_DEP_ISSUE ? w->issues : w->ends,
               dep->kind == LS_DEP_STREAM ? &w->last[dep->index]
                                          : &g_array_index (w->ops, LsOpNodes, dep->index));
  }
  gpointer event = GSIZE_TO_POINTER (ls_plan_event (w->plan, instance, op));
  uint64_t recorded = ls_op_awaits (op) ? GPOINTER_TO_SIZE (g_hash_table_lookup (w->events, event)) : 0;
  if (recorded > 0)
    ls_op_walk_add (w->ends, recorded - 1);
}

gboolean
ls_op_walk_instance (LsOpWalk *w, const LsInstance *instance, LsOpPut *put, void *data, GError **error)
{
  const LsSegment *segment = &w->plan->segments[instance->segment];
  g_array_set_size (w->ops, 0);
  for (uint32_t i = 0; i < segment->n_ops; i++) {
    const LsOp *op = &segment->ops[i];
    LsOpNodes nodes = { 0 };
    gather (w, instance, op);
    if (!put (data, op, &nodes, error))
      return FALSE;
    g_array_append_val (w->ops, nodes);
    *(ls_op_is_of_host (op->kind) ? &w->host : &w->last[op->stream]) = nodes;
    if (ls_op_records (op) && nodes.n > 0)
      g_hash_table_insert (w->events, GSIZE_TO_POINTER (ls_plan_event (w->plan, instance, op)),
                           GSIZE_TO_POINTER (nodes.first + 1));
  }
  return TRUE;
}

void
ls_op_walk_begin (LsOpWalk *w, const LsPlan *plan, uint32_t rank)
{
  *w = (LsOpWalk) { .plan = plan, .rank = rank, .binding = ls_plan_binding (plan, rank) };
  w->program = &plan->programs[w->binding.role];
  w->ends = g_array_new (FALSE, FALSE, sizeof (uint64_t));
  w->issues = g_array_new (FALSE, FALSE, sizeof (uint64_t));
  w->ops = g_array_new (FALSE, FALSE, sizeof (LsOpNodes));
  w->events = g_hash_table_new (NULL, NULL);
}

void
ls_op_walk_end (LsOpWalk *w)
{
  g_array_unref (w->ends);
  g_array_unref (w->issues);
  g_array_unref (w->ops);
  g_hash_table_unref (w->events);
}
