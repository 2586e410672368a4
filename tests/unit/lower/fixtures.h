/* tests/unit/lower/fixtures.h — a small job, lowered, and sums over its ops. */
#ifndef LS_TESTS_LOWER_FIXTURES_H
#define LS_TESTS_LOWER_FIXTURES_H

#include <string.h>

#include "lower/lower.h"
#include "ls_test.h"
#include "plan/plan.h"

/* Letters of Korthikanti et al. 2022: L = 4, s = 128, h = 256, f = 1024, a = 4, b = 2. */
static const LsModel model = {
  .name = (char *) "small",
  .n_layers = 4,
  .hidden = 256,
  .n_heads = 4,
  .n_kv_heads = 4,
  .head_dim = 64,
  .ffn = 1024,
  .vocab = 1000,
  .seq = 128,
  .mlp = LS_MLP_GELU,
  .norm = LS_NORM_LAYERNORM,
  .position = LS_POSITION_NONE,
  .attention = LS_ATTENTION_UNFUSED,
  .linear_bias = true,
  .dropout = true,
};

/* The same as a Llama: K and V half as wide as Q, gated MLP. */
static inline LsModel
small_llama (void)
{
  LsModel m = model;
  m.n_kv_heads = 2;
  m.mlp = LS_MLP_SWIGLU;
  m.norm = LS_NORM_RMSNORM;
  m.position = LS_POSITION_ROPE;
  m.attention = LS_ATTENTION_FLASH;
  m.linear_bias = m.dropout = false;
  return m;
}

/* A resolved job of tp * pp ranks; knobs that matter are set by the caller. */
static inline LsStrategy
job (uint32_t tp, uint32_t pp)
{
  LsStrategy s;
  ls_strategy_init (&s);
  s.tp = tp;
  s.pp = pp;
  s.gpus = tp * pp;
  s.micro_batch = 2;
  s.global_batch = 2 * pp;
  return s;
}

static inline LsPlan *
lowered_model (const LsModel *m, LsStrategy *s)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GError) error = NULL;
  if (!LS_CHECK (ls_strategy_resolve (s, m, s->gpus, 8, diags)))
    return NULL;
  LsPlan *plan = ls_lower (m, s, NULL, &error);
  LS_CHECK_NO_ERROR (error);
  if (plan)
    LS_CHECK (ls_plan_check (plan, &error));
  LS_CHECK_NO_ERROR (error);
  return plan;
}

typedef struct {
  double flops[LS_N_TAGS];
  uint64_t allocated, freed; /* activations, of one step */
  uint64_t copied[LS_N_COPY_DIRECTIONS];
  uint64_t gathered; /* tp all-gathers of recomputation */
} Sums;

static inline void
add_op (const LsPlan *plan, const LsOp *op, Sums *sums)
{
  if (op->kind == LS_OP_KERNEL
      && plan->kernels[op->kernel].kind <= LS_KERNEL_ATTENTION_BWD) /* dropout has FLOPs of its own */
    sums->flops[op->tag] += plan->kernels[op->kernel].flops;
  if (op->kind == LS_OP_COPY)
    sums->copied[op->direction] += op->bytes;
  if (op->kind == LS_OP_COLLECTIVE && op->tag == LS_TAG_RECOMPUTE
      && strcmp (op->name, "activation all-gather") == 0)
    sums->gathered += op->bytes;
  for (uint16_t i = 0; i < op->n_buffers; i++)
    if (op->buffers[i].category == LS_MEM_ACTIVATIONS)
      *(op->buffers[i].is_free ? &sums->freed : &sums->allocated) += op->buffers[i].bytes;
}

static inline Sums
sums_of (const LsPlan *plan, uint32_t role)
{
  Sums sums = { 0 };
  const LsProgram *p = &plan->programs[role];
  for (uint32_t i = 0; i < p->n_instances; i++) {
    const LsSegment *seg = &plan->segments[p->instances[i].segment];
    for (uint32_t o = 0; o < seg->n_ops; o++)
      add_op (plan, &seg->ops[o], &sums);
  }
  LS_CHECK_INT (sums.allocated, ==, sums.freed);
  return sums;
}

/* Bytes of activations that the last forward of role 0 leaves alive. plan: NULL, 0. */
static inline uint64_t
kept_by_forward (const LsPlan *plan)
{
  uint64_t kept = 0;
  for (uint32_t i = 0; plan && i < plan->programs[0].n_instances; i++) {
    const LsSegment *seg = &plan->segments[plan->programs[0].instances[i].segment];
    Sums sums = { 0 };
    for (uint32_t o = 0; o < seg->n_ops; o++)
      add_op (plan, &seg->ops[o], &sums);
    if (g_str_has_prefix (seg->name, "forward"))
      kept = sums.allocated - sums.freed;
  }
  return kept;
}

/* Ops of that name that run again on the first rank. */
static inline guint
count_again (const LsPlan *plan, const char *name)
{
  guint n = 0;
  for (uint32_t i = 0; i < plan->programs[0].n_instances; i++) {
    const LsSegment *seg = &plan->segments[plan->programs[0].instances[i].segment];
    for (uint32_t o = 0; o < seg->n_ops; o++)
      n += seg->ops[o].tag == LS_TAG_RECOMPUTE && strcmp (seg->ops[o].name, name) == 0;
  }
  return n;
}

#endif
