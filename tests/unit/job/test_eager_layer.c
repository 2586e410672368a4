/* Pins: the kernels of an eager layer, forwards, are those of a profile: of Qwen1.5-0.5B by Hugging Face
 * transformers 4.49 on an H100 (inference, so nothing runs backwards), as many of each class, each class but
 * attention within 10 % of its time, the layer within 5 %, with and without the gaps between kernels.
 * Attention is 30 % too fast: FlashAttention-2 was measured from 7e10 FLOPs on and at whole tiles of 128
 * tokens, here it has 1e10 at 559 tokens. The rates of kernels by how they touch memory come from this
 * profile; those of products and of attention, the lists and the gap between kernels of other sorts do not.
 *
 * And the collectives of a layer under DTensor's tensor parallelism, with their copies, are as many as in
 * KempnerForge's profile of 13B, and as torchtitan's plan has them. */
#include "ls_test.h"

#include <math.h>
#include <string.h>

#include "data/jobs/job_files.h"
#include "data/measured/read_kineto.h"
#include "job/hardware.h"
#include "job/job.h"
#include "model/operators.h"

enum { GEMM, ATTENTION, MEMSET, REDUCTION, CAT, COPY, ELEMENTWISE, N_GROUPS };

static const char *const group_names[N_GROUPS]
    = { "gemm", "attention", "memset", "reduction", "cat", "copy and cast", "elementwise" };

static const double tolerances[N_GROUPS] = { 0.10, 0.32, 0.10, 0.10, 0.10, 0.10, 0.10 };

typedef struct {
  guint n[N_GROUPS];
  double us[N_GROUPS], busy_us, period_us;
} Layer;

/* --- in the profile ----------------------------------------------------------------------- */

static int
group_of_name (const char *name)
{
  static const struct {
    const char *part;
    int group;
  } rules[] = { { "gemm", GEMM },     { "flash_fwd", ATTENTION },
                { "Memset", MEMSET }, { "reduce_kernel", REDUCTION },
                { "CatArray", CAT },  { "copy_kernel", COPY } };
  for (guint i = 0; i < G_N_ELEMENTS (rules); i++)
    if (strstr (name, rules[i].part))
      return rules[i].group;
  return ELEMENTWISE;
}

/* From one attention to the next is a layer; the one that holds the end of a forward is longer. */
static guint
add_layers (const LsKineto *k, Layer *sum)
{
  guint n_layers = 0, from = G_MAXUINT;
  for (guint i = 0; i < k->ops->len; i++) {
    const LsKinetoOp *op = &g_array_index (k->ops, LsKinetoOp, i);
    if (group_of_name (op->name) != ATTENTION)
      continue;
    bool is_layer = from != G_MAXUINT && i - from == 49;
    n_layers += is_layer;
    for (guint j = is_layer ? from + 1 : i + 1; j <= i; j++) {
      const LsKinetoOp *one = &g_array_index (k->ops, LsKinetoOp, j);
      int group = group_of_name (one->name);
      sum->n[group]++;
      sum->us[group] += (double) (one->end - one->start) / 1000;
    }
    sum->period_us += is_layer ? (double) (op->end - g_array_index (k->ops, LsKinetoOp, from).end) / 1000 : 0;
    from = i;
  }
  return n_layers;
}

/* --- as it is lowered ----------------------------------------------------------------------- */

static int
group_of_kernel (const LsKernel *k)
{
  if (k->kind == LS_KERNEL_GEMM)
    return GEMM;
  if (k->kind == LS_KERNEL_ATTENTION_FWD)
    return ATTENTION;
  if (k->access == LS_ACCESS_CASTDN || k->access == LS_ACCESS_CASTUP || g_str_has_prefix (k->name, "copy "))
    return COPY;
  return k->access == LS_ACCESS_FILL  ? MEMSET
      : k->access == LS_ACCESS_ROWRED ? REDUCTION
      : k->access == LS_ACCESS_CAT    ? CAT
                                      : ELEMENTWISE;
}

/* What a profile calls the time of a kernel is without the gap before it. */
static void
add_lowered (const LsHardware *h, const GArray *operators, Layer *layer)
{
  double gap_us = ls_time_to_s (h->calibration.access[LS_ACCESS_VEC].launch) * 1e6;
  for (guint i = 0; i < operators->len; i++) {
    const LsOperator *o = &g_array_index (operators, LsOperator, i);
    for (uint32_t k = 0; k < o->n_fwd; k++) {
      double us = ls_time_to_s (ls_kernel_cost (&h->calibration, &h->spec.gpu, &o->fwd[k]).alone) * 1e6;
      int group = group_of_kernel (&o->fwd[k]);
      layer->n[group]++;
      layer->us[group] += us - gap_us;
      layer->period_us += us;
    }
  }
}

static const LsModel qwen = { .n_layers = 24,
                              .hidden = 1024,
                              .n_heads = 16,
                              .n_kv_heads = 16,
                              .head_dim = 64,
                              .ffn = 2816,
                              .vocab = 151936,
                              .seq = 559,
                              .norm = LS_NORM_RMSNORM,
                              .mlp = LS_MLP_SWIGLU,
                              .position = LS_POSITION_ROPE,
                              .attn.qkv_bias = true };

static bool
lower_layer (Layer *layer)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsHardware) h = ls_hardware_load ("dgx-h100", diags);
  g_autoptr (LsRecipes) recipes = ls_recipes_load ("hf-transformers-4.49", diags);
  LsHardware chosen;
  if (!LS_CHECK (h && recipes))
    return false;
  const LsStrategy with_fa2 = { .use.attention_kernel = LS_ATTENTION_KERNEL_FA2 };
  ls_hardware_for_job (h, &with_fa2, 1, &chosen);
  const LsShard shard = { .tp = 1,
                          .micro_batch = 16,
                          .seq = 559,
                          .cp = 1,
                          .attention = LS_ATTENTION_FLASH,
                          .dtype = LS_DTYPE_BF16,
                          .grad_dtype = LS_DTYPE_BF16,
                          .grad.is_fresh = true,
                          .recipes = recipes };
  g_autoptr (GArray) operators = ls_operators_new ();
  ls_operators_layer (&qwen, &shard, 0, operators);
  add_lowered (&chosen, operators, layer);
  return true;
}

static guint
n_of (const Layer *layer)
{
  guint n = 0;
  for (int g = 0; g < N_GROUPS; g++)
    n += layer->n[g];
  return n;
}

/* 42 kernels and 7 memsets. */
static void
a_layer_has_as_many_kernels_as_it_launches (void)
{
  Layer layer = { 0 };
  if (!lower_layer (&layer))
    return;
  LS_CHECK_INT (n_of (&layer) - layer.n[MEMSET], ==, 42);
  LS_CHECK_INT (layer.n[MEMSET], ==, 7);
  LS_CHECK_INT (layer.n[GEMM], ==, 7);
}

static void
a_layer_takes_what_it_takes_in_a_profile (void)
{
  Layer lowered = { 0 }, seen = { 0 };
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  if (!ls_test_shared_data ())
    return;
  g_autofree char *path
      = g_build_filename (ls_test_shared_data (), "kineto", "tracelens_h100_qwen1.5-0.5b.json.gz", NULL);
  g_autoptr (LsKineto) profile = ls_kineto_load (path, diags);
  if (!LS_CHECK (profile != NULL) || !lower_layer (&lowered))
    return;
  guint n = add_layers (profile, &seen);
  LS_CHECK_INT (n, ==, 32);
  for (int g = 0; g < N_GROUPS; g++) {
    double us = seen.us[g] / n;
    ls_check_impl (seen.n[g] == n * lowered.n[g], __FILE__, __LINE__,
                   "%s: %u kernels of %u layers, %u lowered", group_names[g], seen.n[g], n, lowered.n[g]);
    ls_check_impl (fabs (lowered.us[g] / us - 1) < tolerances[g], __FILE__, __LINE__,
                   "%s: %.1f us, in the profile %.1f", group_names[g], lowered.us[g], us);
    seen.busy_us += us;
    lowered.busy_us += lowered.us[g];
  }
  LS_CHECK_NEAR (lowered.busy_us, seen.busy_us, 0.05);
  LS_CHECK_NEAR (lowered.period_us, seen.period_us / n, 0.05);
}

/* --- a step, eager and compiled ---------------------------------------------------------------- */

static double
step_s (const char *kernels)
{
  static const char *const knobs[][2] = { { "software", "torchtitan-2024-12" },
                                          { "model", "llama3.1-8b" },
                                          { "cluster", "grand-teton-h100-96g" },
                                          { "gpus", "8" },
                                          { "micro-batch", "2" },
                                          { "global-batch", "16" },
                                          { "seq", "8192" },
                                          { "recompute", "selective" },
                                          { "residuals", "none" } };
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsJobSpec spec;
  ls_job_spec_init (&spec);
  for (guint i = 0; i < G_N_ELEMENTS (knobs); i++)
    LS_CHECK (ls_job_spec_set (&spec, knobs[i][0], knobs[i][1], diags));
  LS_CHECK (ls_job_spec_set (&spec, "kernels", kernels, diags));
  g_autoptr (LsJobResult) r = ls_job_spec_run (&spec, NULL);
  ls_job_spec_clear (&spec);
  return r ? ls_job_result_step_time_s (r) : NAN;
}

/* torchtitan's published pair (pytorch/torchtitan, benchmarks/llama3_h100_202412_torchtitan.md): 5,762 and
 * 6,667 tokens/s per GPU of 16,384 tokens. Each within 5 %, what compiling is worth within 20 %. Neither was
 * fitted to. */
static void
compiling_is_worth_what_was_published (void)
{
  double eager = 16384 / 5762.0, compiled = 16384 / 6667.0, eager_s = step_s ("torchtitan-2024-12"),
         compiled_s = step_s ("torchtitan-2024-12-compile");
  LS_CHECK_NEAR (eager_s, eager, 0.05);
  LS_CHECK_NEAR (compiled_s, compiled, 0.05);
  LS_CHECK_NEAR (eager_s - compiled_s, eager - compiled, 0.20);
}

/* --- a layer under DTensor's tensor parallelism ------------------------------------------------- */

enum {
  GATHERS,
  SCATTERS,
  COPIES_OUT,
  COPIES_OF_ONE,
  COPIES_OF_LOGITS,
  COPIES_IN,
  ROPE_CATS,
  ROPE_PRODUCTS,
  LOSS_REDUCTIONS,
  SOFTMAX_AGAIN,
  N_COUNTS
};

static void
count_op (const LsOp *op, int *n)
{
  bool is_tp = op->kind == LS_OP_COLLECTIVE && op->slot == LS_SLOT_TP;
  n[GATHERS] += is_tp && op->coll == LS_COLL_ALL_GATHER;
  n[SCATTERS] += is_tp && op->coll == LS_COLL_REDUCE_SCATTER;
  n[LOSS_REDUCTIONS] += is_tp && strcmp (op->name, "loss all-reduce") == 0;
  n[COPIES_OUT] += strcmp (op->name, "tp-gather-copy") == 0;
  n[COPIES_OF_ONE] += strcmp (op->name, "tp-gather-copy-of-one") == 0;
  n[COPIES_OF_LOGITS] += strcmp (op->name, "tp-logits-copy") == 0;
  n[SOFTMAX_AGAIN] += strcmp (op->name, "softmax again") == 0;
  n[COPIES_IN] += strcmp (op->name, "tp-scatter-copy") == 0;
  n[ROPE_CATS] += g_str_has_prefix (op->name, "rope ") && g_str_has_suffix (op->name, " cat");
  n[ROPE_PRODUCTS] += g_str_has_prefix (op->name, "rope ") && strstr (op->name, " times ") != NULL;
}

/* A micro-batch of 13B on 24 H200, tp 4, as configs/train/13b_24gpu_validation.toml of KempnerForge has it,
 * but for the number of layers. */
static bool
count_step (const char *software, const char *model, const char *micro_batch, int *n)
{
  const char *const knobs[][2] = { { "software", software },
                                   { "model", model },
                                   { "cluster", "hgx-h200-4" },
                                   { "gpus", "24" },
                                   { "tp", "4" },
                                   { "sp", "true" },
                                   { "micro-batch", micro_batch },
                                   { "global-batch", "12" },
                                   { "seq", "4096" },
                                   { "recompute", "full" },
                                   { "residuals", "none" } };
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsJobSpec spec;
  ls_job_spec_init (&spec);
  for (guint i = 0; i < G_N_ELEMENTS (knobs); i++)
    LS_CHECK (ls_job_spec_set (&spec, knobs[i][0], knobs[i][1], diags));
  g_autoptr (LsJobResult) r = ls_job_spec_run (&spec, NULL);
  const LsProgram *program = r ? &r->plan->programs[0] : NULL;
  for (uint32_t i = 0; program && i < program->n_instances; i++) {
    const LsSegment *seg = &r->plan->segments[program->instances[i].segment];
    for (uint32_t o = 0; o < seg->n_ops; o++)
      count_op (&seg->ops[o], n);
  }
  ls_job_spec_clear (&spec);
  return LS_CHECK (r != NULL);
}

/* Of a layer and micro-batch the profile (KempnerInstitute/KempnerForge@5666d0d,
 * benchmarks/profiling/13b_24gpu_profiling.md: 40 layers, 5 steps of 4 micro-batches) has 9,679 / 800 = 12.1
 * gathers, 6,420 / 800 = 8.0 reductions, 19,340 / 800 = 24.2 torch.cat and 24 products of elements. By hand:
 * Q, K, V, gate and up gather forward and again, the gradients of projection and down once: 5 + 5 + 2.
 * Projection and down reduce forward, the projection again (what runs again stops before the product down),
 * the input gradients of five products: 2 + 1 + 5. */
static void
tensor_parallel_products_gather_each_for_itself (void)
{
  int two[N_COUNTS] = { 0 }, three[N_COUNTS] = { 0 };
  if (!count_step ("kempnerforge-2025-eager", "llama3.1-8b:layers=2", "2", two)
      || !count_step ("kempnerforge-2025-eager", "llama3.1-8b:layers=3", "2", three))
    return;
  LS_CHECK_INT (three[GATHERS] - two[GATHERS], ==, 12);
  LS_CHECK_INT (three[SCATTERS] - two[SCATTERS], ==, 8);
  LS_CHECK_INT (three[COPIES_OUT] - two[COPIES_OUT], ==, 12);
  LS_CHECK_INT (three[COPIES_IN] - two[COPIES_IN], ==, 8);
  LS_CHECK_INT (three[ROPE_CATS] - two[ROPE_CATS], ==, 4);
  LS_CHECK_INT (three[ROPE_PRODUCTS] - two[ROPE_PRODUCTS], ==, 24);
  LS_CHECK_INT (two[LOSS_REDUCTIONS], ==, 0); /* each rank has all logits */
}

/* Aleph Alpha's norms gather for gate and up, whose gradients are then reduced once: forward, again and
 * backward 2 + 2 + 2 gathers, as many reductions. Only logits are copied. */
static void
norms_that_gather_reduce_once (void)
{
  int two[N_COUNTS] = { 0 }, three[N_COUNTS] = { 0 };
  if (!count_step ("aleph-alpha-scaling", "llama3.1-8b:layers=2", "2", two)
      || !count_step ("aleph-alpha-scaling", "llama3.1-8b:layers=3", "2", three))
    return;
  LS_CHECK_INT (three[GATHERS] - two[GATHERS], ==, 6);
  LS_CHECK_INT (three[SCATTERS] - two[SCATTERS], ==, 6);
  LS_CHECK_INT (two[COPIES_OF_LOGITS], ==, 1);
  LS_CHECK (two[COPIES_OUT] == 0 && two[COPIES_IN] == 0 && two[LOSS_REDUCTIONS] == 0);
}

/* Equal gathers are one in a compiled graph: 2 + 2 + 2. Behind a gather of one sequence nothing is out of
 * order; outside of layers the head's input and the logits are gathered, and a gradient of words. */
static void
compiled_products_share_a_gather (void)
{
  int two[N_COUNTS] = { 0 }, three[N_COUNTS] = { 0 }, one_each[N_COUNTS] = { 0 };
  if (!count_step ("kempnerforge-2025", "llama3.1-8b:layers=2", "2", two)
      || !count_step ("kempnerforge-2025", "llama3.1-8b:layers=3", "2", three)
      || !count_step ("kempnerforge-2025", "llama3.1-8b:layers=2", "1", one_each))
    return;
  LS_CHECK_INT (three[GATHERS] - two[GATHERS], ==, 6);
  LS_CHECK_INT (three[SCATTERS] - two[SCATTERS], ==, 8);
  LS_CHECK_INT (three[COPIES_OUT] - two[COPIES_OUT], ==, 6);
  LS_CHECK_INT (two[GATHERS], ==, 2 * 6 + 3);
  LS_CHECK_INT (one_each[COPIES_OUT], ==, 2); /* of logits, which are cut along words, in two micro-batches */
}

/* torchtitan's plan gathers once for Q, K, V and once for gate and up, and reduces their input gradients once:
 * 2 + 2 + 2 gathers, 2 + 1 + 2 reductions, each with its copy, also of one sequence. Its loss is of a cut
 * vocabulary: three reductions and DTensor's own kernels, in each micro-batch. */
static void
torchtitan_shares_its_gathers (void)
{
  int two[N_COUNTS] = { 0 }, three[N_COUNTS] = { 0 }, one_each[N_COUNTS] = { 0 };
  if (!count_step ("torchtitan-2025-03", "llama3.1-8b:layers=2", "2", two)
      || !count_step ("torchtitan-2025-03", "llama3.1-8b:layers=3", "2", three)
      || !count_step ("torchtitan-2025-03", "llama3.1-8b:layers=2", "1", one_each))
    return;
  LS_CHECK_INT (three[GATHERS] - two[GATHERS], ==, 6);
  LS_CHECK_INT (three[SCATTERS] - two[SCATTERS], ==, 5);
  LS_CHECK_INT (three[COPIES_OUT] - two[COPIES_OUT], ==, 6);
  LS_CHECK_INT (three[COPIES_IN] - two[COPIES_IN], ==, 5);
  LS_CHECK_INT (one_each[COPIES_OUT], ==, 0);
  LS_CHECK_INT (one_each[COPIES_OF_ONE], ==, 2 * two[COPIES_OUT]);
  LS_CHECK_INT (two[COPIES_OF_ONE], ==, 0);
  LS_CHECK_INT (two[LOSS_REDUCTIONS], ==, 3);
  LS_CHECK_INT (two[SOFTMAX_AGAIN], ==, 1);
  LS_CHECK_INT (one_each[SOFTMAX_AGAIN], ==, 2);
}

LS_TEST_SUITE (LS_TEST (a_layer_has_as_many_kernels_as_it_launches),
               LS_TEST (a_layer_takes_what_it_takes_in_a_profile),
               LS_TEST (compiling_is_worth_what_was_published),
               LS_TEST (tensor_parallel_products_gather_each_for_itself),
               LS_TEST (norms_that_gather_reduce_once), LS_TEST (compiled_products_share_a_gather),
               LS_TEST (torchtitan_shares_its_gathers))
