/* Pins: the conservation laws hold for lowered jobs of every kind, and notice when a plan
 * computes something else, forgets a buffer, or frees what is not there. */
#include "ls_test.h"

#include <string.h>

#include "random_job.h"

#include "analysis/conservation.h"

static LsOp *
find_op (LsPlan *plan, bool (*is_it) (const LsOp *op))
{
  for (uint32_t s = 0; s < plan->n_segments; s++)
    for (uint32_t i = 0; i < plan->segments[s].n_ops; i++)
      if (is_it (&plan->segments[s].ops[i]))
        return &plan->segments[s].ops[i];
  return NULL;
}

static bool
frees (const LsOp *op)
{
  return op->n_buffers > 0 && op->buffers[op->n_buffers - 1].is_free;
}

static gboolean
conserves (const Job *j, GError **error)
{
  g_autoptr (LsMemory) memory = ls_memory_new (&(LsMemoryInput) { .plan = j->plan });
  return ls_conserves_flops (j->plan, &j->model, &j->strategy, error) && ls_conserves_memory (memory, error);
}

static void
check_broken (const Job *j, const char *law)
{
  g_autoptr (GError) error = NULL;
  LS_CHECK (!conserves (j, &error));
  LS_CHECK (error && error->code == LS_ERROR_FAILED);
  ls_check_impl (error && strstr (error->message, law), __FILE__, __LINE__, "\"%s\" does not speak of %s",
                 error ? error->message : "", law);
}

static void
jobs_of_every_kind_keep_the_laws (void)
{
  for (guint32 seed = 1; seed <= 60; seed++) {
    g_autoptr (GRand) rand = g_rand_new_with_seed (seed);
    g_autoptr (GError) error = NULL;
    Job j;
    if (job_init (&j, rand))
      LS_CHECK (conserves (&j, &error));
    LS_CHECK_NO_ERROR (error);
    job_clear (&j);
  }
}

static void
a_missing_percent_of_a_kernel_is_noticed (void)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (1);
  Job j;
  if (!LS_CHECK (job_init (&j, rand)))
    return;
  for (uint32_t k = 0; k < j.plan->n_kernels; k++)
    j.plan->kernels[k].flops *= 0.99;
  check_broken (&j, "FLOPs");
  job_clear (&j);
}

static void
a_kernel_that_only_recomputes_does_not_count (void)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (1);
  Job j;
  if (!LS_CHECK (job_init (&j, rand)))
    return;
  double own = ls_plan_model_flops (j.plan, false), again = ls_plan_model_flops (j.plan, true);
  for (uint32_t s = 0; s < j.plan->n_segments; s++)
    for (uint32_t i = 0; i < j.plan->segments[s].n_ops; i++)
      j.plan->segments[s].ops[i].tag = LS_TAG_RECOMPUTE;
  LS_CHECK_DOUBLE (ls_plan_model_flops (j.plan, false), ==, 0);
  LS_CHECK_NEAR (ls_plan_model_flops (j.plan, true), own + again, 1e-12);
  check_broken (&j, "FLOPs");
  job_clear (&j);
}

static void
a_buffer_of_another_size_is_noticed (void)
{
  for (int sign = -1; sign <= 1; sign += 2) {
    g_autoptr (GRand) rand = g_rand_new_with_seed (2);
    Job j;
    if (!LS_CHECK (job_init (&j, rand)))
      return;
    LsOp *op = find_op (j.plan, frees);
    if (LS_CHECK (op != NULL)) {
      LsBufferEvent *b = (LsBufferEvent *) &op->buffers[op->n_buffers - 1];
      b->bytes = sign < 0 ? b->bytes / 2 : UINT64_MAX / 4;
      check_broken (&j, sign < 0 ? "bytes of activations and ends with" : "freed that were not alive");
    }
    job_clear (&j);
  }
}

/* Half the capacity that even experts need: half of what they would compute is dropped. */
static void
dropped_tokens_have_no_flops (void)
{
  const LsModel m = {
    .n_layers = 3,
    .hidden = 64,
    .n_heads = 4,
    .n_kv_heads = 4,
    .head_dim = 16,
    .ffn = 128,
    .vocab = 1000,
    .seq = 32,
    .mlp = LS_MLP_SWIGLU,
    .n_experts = 4,
    .top_k = 2,
    .expert_ffn = 128,
    .moe_every = 1,
  };
  LsStrategy s;
  ls_strategy_init (&s);
  s.global_batch = 8;
  s.expert_capacity = 0.5;
  double of_experts = 6.0 * 3 * 64 * 128 * 8 * 32 * 2 * 3; /* 6 x weights of one x tokens x top_k x layers */
  LS_CHECK_NEAR (ls_dropped_flops (&m, &s, 32), of_experts / 2, 1e-12);
  s.expert_capacity = 0;
  LS_CHECK_DOUBLE (ls_dropped_flops (&m, &s, 32), ==, 0);
}

LS_TEST_MAIN ("conservation", LS_TEST (jobs_of_every_kind_keep_the_laws),
              LS_TEST (a_missing_percent_of_a_kernel_is_noticed),
              LS_TEST (a_kernel_that_only_recomputes_does_not_count),
              LS_TEST (a_buffer_of_another_size_is_noticed), LS_TEST (dropped_tokens_have_no_flops))
