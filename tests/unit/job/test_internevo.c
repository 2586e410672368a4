/* Pins: what InternEvo launches for a layer, read in its code (strategies/kernels: internevo-0.3): both
 * norms, and the sum before the second, run again in the backward though nothing else is recomputed; the MLP
 * has two products up; a norm reads what was made fp32 for it. Its own software file names the list. */
#include "ls_test.h"

#include <string.h>

#include "data/jobs/read_recipes.h"
#include "job/job.h"
#include "model/operators.h"

enum { TOKENS = 2 * 2048, HIDDEN = 4096, FFN = 11008 };

static const LsModel model = { .n_layers = 32,
                               .hidden = HIDDEN,
                               .n_heads = 32,
                               .n_kv_heads = 32,
                               .head_dim = 128,
                               .ffn = FFN,
                               .vocab = 103168,
                               .seq = 2048,
                               .norm = LS_NORM_RMSNORM,
                               .mlp = LS_MLP_SWIGLU,
                               .position = LS_POSITION_ROPE };

typedef struct {
  guint n_forward, n_gemms, n_norms_again, n_adds_again;
  double norm_bytes; /* an element of the residual stream, both ways, without sums */
} Layer;

static void
add_kernel (Layer *layer, const LsKernel *k, bool is_forward)
{
  bool is_add = strstr (k->name, "residual") != NULL, is_again = g_str_has_suffix (k->name, " again");
  layer->n_forward += is_forward;
  layer->n_gemms += is_forward && k->kind == LS_KERNEL_GEMM;
  layer->n_norms_again += is_again && strstr (k->name, "rmsnorm") != NULL;
  layer->n_adds_again += is_again && is_add;
  layer->norm_bytes += k->kind == LS_KERNEL_NORM && !is_add ? k->bytes / ((double) TOKENS * HIDDEN) : 0;
}

static Layer
lower (const LsRecipes *recipes)
{
  const LsShard shard = { .tp = 1,
                          .micro_batch = 2,
                          .seq = 2048,
                          .cp = 1,
                          .attention = LS_ATTENTION_FLASH,
                          .dtype = LS_DTYPE_BF16,
                          .grad_dtype = LS_DTYPE_BF16,
                          .recipes = recipes };
  g_autoptr (GArray) operators = g_array_new (FALSE, FALSE, sizeof (LsOperator));
  Layer layer = { 0 };
  ls_operators_layer (&model, &shard, 0, operators);
  for (guint i = 0; i < operators->len; i++) {
    const LsOperator *o = &g_array_index (operators, LsOperator, i);
    for (uint32_t k = 0; k < o->n_fwd; k++)
      add_kernel (&layer, &o->fwd[k], true);
    for (uint32_t k = 0; k < o->n_igrad; k++)
      add_kernel (&layer, &o->igrad[k], false);
  }
  return layer;
}

static void
norms_run_again (void)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsRecipes) recipes = ls_recipes_load ("internevo-0.3", diags);
  if (!LS_CHECK (recipes != NULL))
    return;
  Layer listed = lower (recipes), fused = lower (NULL);
  LS_CHECK_INT (listed.n_forward, ==, 15); /* norms 2 x 2, products 5, rotations 2, attention, sums 2, silu */
  LS_CHECK_INT (listed.n_gemms, ==, 5);
  LS_CHECK_INT (listed.n_norms_again, ==, 2);
  LS_CHECK_INT (listed.n_adds_again, ==, 1);
  LS_CHECK_NEAR (listed.norm_bytes, 2 * (12 + 12 + 22), 1e-9);
  LS_CHECK (listed.norm_bytes > 4 * fused.norm_bytes);
}

static void
its_software_names_the_list (void)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsJobSpec spec;
  ls_job_spec_init (&spec);
  LS_CHECK (ls_job_spec_set (&spec, "software", "internevo-0.3", diags));
  LS_CHECK (ls_job_spec_set (&spec, "model", "llama3.1-8b", diags)
            && ls_job_spec_set (&spec, "cluster", "dgx-a100-80g", diags));
  LS_CHECK (ls_job_spec_set (&spec, "gpus", "8", diags)
            && ls_job_spec_set (&spec, "residuals", "none", diags));
  g_autoptr (LsJobResult) r = ls_job_spec_run (&spec, NULL);
  bool is_found = false;
  for (uint32_t k = 0; r && k < r->plan->n_kernels; k++)
    is_found |= strcmp (r->plan->kernels[k].name, "rmsnorm again") == 0;
  LS_CHECK (is_found);
  ls_job_spec_clear (&spec);
}

LS_TEST_SUITE (LS_TEST (norms_run_again), LS_TEST (its_software_names_the_list))
