/* plan/plan_stalls.c — ops of a plan before which the host is held up. */
#include "plan/plan.h"

#include <string.h>

#include <lockstep/error.h>

#define MAX_OPS (UINT16_MAX - 1)

/* Stalls of one instance, a part of the list. */
typedef struct {
  const LsStall *stalls;
  guint n;
} Stalls;

static LsOp
wait_for_all (LsPlan *plan)
{
  LsOp op = ls_op_blank (LS_OP_HOST_SYNC, LS_STREAM_COMPUTE, LS_TAG_SYNC, "allocator retry");
  LsDep *deps = ls_arena_new_array (plan->arena, LsDep, LS_N_STREAMS);
  for (int s = 0; s < LS_N_STREAMS; s++)
    deps[s] = (LsDep) { LS_DEP_STREAM, (uint16_t) s };
  op.host = LS_HOST_SYNC;
  op.deps = deps;
  op.n_deps = LS_N_STREAMS;
  return op;
}

static LsOp
busy (LsTime time)
{
  LsOp op = ls_op_blank (LS_OP_HOST_DELAY, LS_STREAM_COMPUTE, LS_TAG_SYNC, "cudaFree, cudaMalloc");
  op.recorded = time;
  return op;
}

static const LsDep *
moved_deps (LsPlan *plan, const LsOp *op, const uint16_t *moved)
{
  LsDep *deps = ls_arena_new_array (plan->arena, LsDep, op->n_deps);
  for (uint32_t d = 0; d < op->n_deps; d++) {
    deps[d] = op->deps[d];
    if (deps[d].kind != LS_DEP_STREAM)
      deps[d].index = moved[deps[d].index];
  }
  return deps;
}

static LsSegment
stalled (LsPlan *plan, const LsSegment *from, const Stalls *s)
{
  LsSegment to = { .name = from->name };
  to.ops = ls_arena_new_array (plan->arena, LsOp, from->n_ops + 2 * s->n);
  g_autofree uint16_t *moved = g_new (uint16_t, from->n_ops);
  guint next = 0;
  for (uint32_t i = 0; i < from->n_ops; i++) {
    if (next < s->n && s->stalls[next].op == i) {
      if (s->stalls[next].waits)
        to.ops[to.n_ops++] = wait_for_all (plan);
      to.ops[to.n_ops++] = busy (s->stalls[next++].time);
    }
    moved[i] = (uint16_t) to.n_ops;
    LsOp *op = &to.ops[to.n_ops++];
    *op = from->ops[i];
    op->deps = moved_deps (plan, op, moved);
  }
  return to;
}

/* What follows of the same instance. */
static Stalls
next_instance (const GArray *stalls, guint from)
{
  Stalls s = { &g_array_index (stalls, LsStall, from), 1 };
  while (from + s.n < stalls->len && s.stalls[s.n].instance == s.stalls[0].instance)
    s.n++;
  return s;
}

static gboolean
check (const LsPlan *plan, const LsProgram *p, const GArray *stalls, guint *ret_n, GError **error)
{
  *ret_n = 0;
  for (guint i = 0; i < stalls->len; ++*ret_n) {
    Stalls s = next_instance (stalls, i);
    const LsSegment *seg = &plan->segments[p->instances[s.stalls[0].instance].segment];
    i += s.n;
    if (seg->n_ops + 2 * s.n <= MAX_OPS)
      continue;
    g_set_error (error, LS_ERROR, LS_ERROR_LIMIT,
                 "segment %s has %u ops and %u stalls; with two for each it may have %u", seg->name,
                 seg->n_ops, s.n, MAX_OPS);
    return FALSE;
  }
  return TRUE;
}

gboolean
ls_plan_add_stalls (LsPlan *plan, uint32_t role, const GArray *stalls, GError **error)
{
  LsProgram *p = &plan->programs[role];
  guint n;
  if (!check (plan, p, stalls, &n, error))
    return FALSE;
  LsSegment *segments = ls_arena_new_array (plan->arena, LsSegment, plan->n_segments + n);
  LsInstance *instances = ls_arena_new_array (plan->arena, LsInstance, p->n_instances);
  memcpy (segments, plan->segments, plan->n_segments * sizeof *segments);
  memcpy (instances, p->instances, p->n_instances * sizeof *instances);
  plan->segments = segments;
  p->instances = instances;
  for (guint i = 0; i < stalls->len;) {
    Stalls s = next_instance (stalls, i);
    LsInstance *instance = &instances[s.stalls[0].instance];
    segments[plan->n_segments] = stalled (plan, &segments[instance->segment], &s);
    instance->segment = plan->n_segments++;
    i += s.n;
  }
  return TRUE;
}
