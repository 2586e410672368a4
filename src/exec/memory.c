#include "exec/memory.h"

#include <string.h>

typedef struct {
  uint64_t alive[LS_N_MEM];
  uint64_t total;
  uint64_t overfreed;
} Alive;

static void
apply (Alive *a, const LsBufferEvent *b)
{
  if (b->is_free) {
    uint64_t bytes = MIN (b->bytes, a->alive[b->category]);
    a->alive[b->category] -= bytes;
    a->total -= bytes;
    a->overfreed += b->bytes - bytes;
  } else {
    a->alive[b->category] += b->bytes;
    a->total += b->bytes;
  }
}

static void
note_peak (LsRoleMemory *m, const Alive *a, uint32_t instance, uint16_t op)
{
  for (int c = 0; c < LS_N_MEM; c++)
    m->category_peak[c] = MAX (m->category_peak[c], a->alive[c]);
  if (a->total <= m->peak_bytes)
    return;
  m->peak_bytes = a->total;
  memcpy (m->at_peak, a->alive, sizeof m->at_peak);
  m->peak_instance = instance;
  m->peak_op = op;
}

/* On the host clock an op allocates when it is issued and its frees follow as
 * soon as the host has issued it: a block freed on the stream that used it is
 * reusable at once. */
static void
walk_op (LsRoleMemory *m, Alive *a, const LsOp *op, uint32_t instance, uint16_t index)
{
  for (uint32_t b = 0; b < op->n_buffers; b++)
    if (!op->buffers[b].is_free)
      apply (a, &op->buffers[b]);
  if (op->n_buffers > 0)
    note_peak (m, a, instance, index);
  for (uint32_t b = 0; b < op->n_buffers; b++)
    if (op->buffers[b].is_free)
      apply (a, &op->buffers[b]);
}

static void
walk_role (const LsPlan *plan, const LsProgram *p, LsRoleMemory *m)
{
  Alive a = { 0 };
  for (int c = 0; c < LS_N_MEM; c++) {
    a.alive[c] = p->static_bytes[c];
    a.total += p->static_bytes[c];
  }
  note_peak (m, &a, 0, 0);
  for (uint32_t i = 0; i < p->n_instances; i++) {
    const LsSegment *seg = &plan->segments[p->instances[i].segment];
    for (uint32_t o = 0; o < seg->n_ops; o++)
      walk_op (m, &a, &seg->ops[o], i, (uint16_t) o);
  }
  memcpy (m->at_end, a.alive, sizeof m->at_end);
  m->overfreed_bytes = a.overfreed;
}

LsMemory *
ls_memory_new (const LsPlan *plan)
{
  LsMemory *m = g_new0 (LsMemory, 1);
  m->n_roles = plan->n_roles;
  m->roles = g_new0 (LsRoleMemory, plan->n_roles);
  for (uint32_t r = 0; r < plan->n_roles; r++)
    walk_role (plan, &plan->programs[r], &m->roles[r]);
  return m;
}

void
ls_memory_free (LsMemory *m)
{
  if (!m)
    return;
  g_free (m->roles);
  g_free (m);
}
