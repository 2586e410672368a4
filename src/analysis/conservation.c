#include "analysis/conservation.h"

#include <math.h>

#include <lockstep/error.h>

/* FLOPs of a kernel as model FLOPs count them: matrix products only, and
 * attention over all pairs of positions, whatever a causal kernel skips. The
 * backward of attention counts twice its forward: what a flash kernel recomputes
 * inside is not the recipe's recomputation. */
static double
model_flops_of (const LsKernel *k)
{
  double pairs = (double) k->batch * (double) k->m * (double) k->n * (double) k->k;
  switch (k->kind) {
  case LS_KERNEL_GEMM:
  case LS_KERNEL_BATCHED_GEMM:
    return k->flops;
  case LS_KERNEL_ATTENTION_FWD:
    return 4 * pairs;
  case LS_KERNEL_ATTENTION_BWD:
    return 8 * pairs;
  default:
    return 0;
  }
}

static double
flops_of_segment (const LsPlan *plan, const LsSegment *segment, bool is_recomputed)
{
  double flops = 0;
  for (uint32_t i = 0; i < segment->n_ops; i++) {
    const LsOp *op = &segment->ops[i];
    if (op->kind == LS_OP_KERNEL && (op->tag == LS_TAG_RECOMPUTE) == is_recomputed && op->kernel != UINT32_MAX)
      flops += model_flops_of (&plan->kernels[op->kernel]);
  }
  return flops;
}

double
ls_plan_model_flops (const LsPlan *plan, bool is_recomputed)
{
  g_autofree double *of_segment = g_new (double, plan->n_segments);
  for (uint32_t i = 0; i < plan->n_segments; i++)
    of_segment[i] = flops_of_segment (plan, &plan->segments[i], is_recomputed);

  g_autofree uint64_t *n_ranks = ls_plan_ranks_of_roles (plan);
  double flops = 0;
  for (uint32_t role = 0; role < plan->n_roles; role++) {
    const LsProgram *program = &plan->programs[role];
    double of_rank = 0;
    for (uint32_t i = 0; i < program->n_instances; i++)
      of_rank += of_segment[program->instances[i].segment];
    flops += of_rank * n_ranks[role];
  }
  return flops;
}

/* Sums of up to 10^8 terms that are each exact to 2^-53. */
#define FLOPS_TOLERANCE 1e-7

/* With more tensor-parallel ranks than key-value heads each rank computes a whole head:
 * 6 FLOPs a token for each weight of K and V that is there more than once. */
static double
repeated_flops (const LsModel *m, const LsStrategy *s, uint32_t seq)
{
  double n_more = s->tp > m->n_kv_heads ? s->tp - m->n_kv_heads : 0;
  return 6.0 * s->global_batch * seq * m->n_layers * m->hidden * 2 * n_more * m->head_dim;
}

gboolean
ls_conserves_flops (const LsPlan *plan, const LsModel *m, const LsStrategy *s, GError **error)
{
  uint32_t seq = s->seq ? s->seq : m->seq;
  double asked = ls_model_flops (m, ls_model_padded_vocab (m, s->tp), seq, s->global_batch, false) + repeated_flops (m, s, seq);
  double done = ls_plan_model_flops (plan, false);
  if (fabs (done - asked) <= FLOPS_TOLERANCE * asked)
    return TRUE;
  g_set_error (error, LS_ERROR, LS_ERROR_FAILED,
               "internal error: the kernels of a step compute %.17g FLOPs without what they recompute; the model has %.17g", done, asked);
  return FALSE;
}

gboolean
ls_conserves_memory (const LsPlan *plan, const LsMemory *memory, GError **error)
{
  for (uint32_t role = 0; role < memory->n_roles; role++)
    for (int c = 0; c < LS_N_MEM; c++) {
      uint64_t begin = plan->programs[role].static_bytes[c], end = memory->roles[role].at_end[c];
      if (begin == end && memory->roles[role].overfreed_bytes == 0)
        continue;
      g_set_error (error, LS_ERROR, LS_ERROR_FAILED,
                   "internal error: a step of role %u begins with %" G_GUINT64_FORMAT " bytes of %s and ends with %" G_GUINT64_FORMAT
                   "; %" G_GUINT64_FORMAT " bytes were freed that were not alive",
                   role, begin, ls_mem_category_name ((LsMemCategory) c), end, memory->roles[role].overfreed_bytes);
      return FALSE;
    }
  return TRUE;
}
