/* Any bytes as a strategy: read, or refused with reasons. What is read is resolved for
 * a small model on 64 GPUs: refused with reasons, or lowered (if small) to a plan that
 * its own checker accepts and that keeps memory and FLOPs. */
#include "fuzz.h"

#include "analysis/conservation.h"
#include "data/jobs/read_strategy.h"
#include "lower/lower.h"

#define N_GPUS        64
#define MAX_INSTANCES 2000

static const LsModel models[2] = {
  { .n_layers = 8,
    .hidden = 512,
    .n_heads = 8,
    .n_kv_heads = 8,
    .head_dim = 64,
    .ffn = 2048,
    .vocab = 5000,
    .seq = 256,
    .mlp = LS_MLP_GELU,
    .position = LS_POSITION_LEARNED,
    .attention = LS_ATTENTION_UNFUSED,
    .linear_bias = true,
    .tied_embeddings = true,
    .dropout = true },
  { .n_layers = 6,
    .hidden = 512,
    .n_heads = 8,
    .n_kv_heads = 4,
    .head_dim = 64,
    .ffn = 1536,
    .vocab = 5001,
    .seq = 256,
    .mlp = LS_MLP_SWIGLU,
    .norm = LS_NORM_RMSNORM,
    .position = LS_POSITION_ROPE,
    .attention = LS_ATTENTION_FLASH },
};

static void
lower (const LsModel *m, const LsStrategy *s)
{
  double micro_batches = (double) s->global_batch / s->dp / s->micro_batch;
  if (micro_batches * s->pp * s->vpp > MAX_INSTANCES)
    return;
  g_autoptr (GError) error = NULL;
  g_autoptr (LsPlan) plan = ls_lower (m, s, NULL, &error);
  if (!plan) {
    g_assert (error != NULL);
    return;
  }
  if (!ls_plan_check (plan, &error))
    fuzz_fail ("a lowered plan is broken: %s", error->message);
  g_autoptr (LsMemory) memory = ls_memory_new (&(LsMemoryInput) { .plan = plan });
  if (!ls_conserves_memory (memory, &error) || !ls_conserves_flops (plan, m, s, &error))
    fuzz_fail ("%s", error->message);
}

static void
resolve (const LsStrategy *read, const LsModel *m)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsStrategy s;
  ls_strategy_copy (&s, read);
  bool ok = ls_strategy_resolve (&s, m, N_GPUS, 8, diags);
  g_assert (ok == (ls_diag_list_n (diags) == 0));
  if (ok)
    lower (m, &s);
  ls_strategy_clear (&s);
}

static bool
read_strategy (const LsJsonDoc *doc, LsDiagList *diags)
{
  LsStrategy s;
  if (!ls_strategy_read (doc, &s, diags))
    return false;
  for (guint i = 0; i < G_N_ELEMENTS (models); i++)
    resolve (&s, &models[i]);
  ls_strategy_clear (&s);
  return true;
}

int
LLVMFuzzerTestOneInput (const uint8_t *data, size_t n)
{
  fuzz_read (data, n, "fuzz.json", read_strategy);
  return 0;
}
