/* Pins programs with transformer layers of their own: InternEvo, zero bubble's fork of Megatron-LM, and what
 * Megatron-Core does not fuse. */
#include "dp_timeline.h"
#include "ls_test.h"

#include <string.h>

#include "data/jobs/job_files.h"
#include "data/jobs/read_software.h"
#include "job/hardware.h"
#include "job/job.h"
#include "model/operators.h"

/* Pins: what InternEvo launches for a layer, read in its code (strategies/kernels: internevo-0.3): both
 * norms, and the sum before the second, run again in the backward though nothing else is recomputed; the MLP
 * has two products up; a norm reads what was made fp32 for it. Its own software file names the list. */

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

static LsShard
shard_with (const LsRecipes *recipes)
{
  return (LsShard) { .tp = 1,
                     .micro_batch = 2,
                     .seq = 2048,
                     .cp = 1,
                     .attention = LS_ATTENTION_FLASH,
                     .dtype = LS_DTYPE_BF16,
                     .grad_dtype = LS_DTYPE_BF16,
                     .recipes = recipes };
}

static Layer
lower (const LsRecipes *recipes)
{
  const LsShard shard = shard_with (recipes);
  g_autoptr (GArray) operators = ls_operators_new ();
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

/* Whether a job of the software on eight A100s launches a kernel of that name. */
static bool
launches (const char *software, const char *model_name, const char *attention, const char *kernel)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsJobSpec spec;
  ls_job_spec_init (&spec);
  LS_CHECK (ls_job_spec_set (&spec, "software", software, diags));
  LS_CHECK (ls_job_spec_set (&spec, "model", model_name, diags)
            && ls_job_spec_set (&spec, "cluster", "dgx-a100-80g", diags));
  LS_CHECK (ls_job_spec_set (&spec, "gpus", "8", diags)
            && ls_job_spec_set (&spec, "residuals", "none", diags));
  LS_CHECK (ls_job_spec_set (&spec, "attention", attention, diags));
  g_autoptr (LsJobResult) r = ls_job_spec_run (&spec, NULL);
  bool is_found = false;
  LS_CHECK (r != NULL);
  for (uint32_t k = 0; r && k < r->plan->n_kernels; k++)
    is_found |= strcmp (r->plan->kernels[k].name, kernel) == 0;
  ls_job_spec_clear (&spec);
  return is_found;
}

static void
its_software_names_the_list (void)
{
  LS_CHECK (launches ("internevo-0.3", "llama3.1-8b", "flash", "rmsnorm again"));
}

/* Pins: what Megatron-LM of 2021 and 2022 launches beside its products (strategies/kernels: megatron-lm-2021):
 * the bias of Q, K and V, until PyTorch 1.12 fused it (Megatron-DeepSpeed of 2022), a copy of the context, the
 * concatenation of three gradients; and that the fork of 2023, whose list is based on it, keeps all three. */
static void
megatron_of_2021_copies_around_attention (void)
{
  static const struct {
    const char *software;
    bool has_bias;
  } all[] = { { "megatron-lm-2021-04", true },
              { "megatron-lm-2022-05", true },
              { "megatron-deepspeed-2021", true },
              { "megatron-deepspeed-2021-zero3", true },
              { "bigscience-2022", true },
              { "megatron-deepspeed-2022", false },
              { "gpt-neox", false },
              { "megatron-lm-2023-08", true } };
  for (guint i = 0; i < G_N_ELEMENTS (all); i++) {
    LS_CHECK_INT (launches (all[i].software, "gpt-7.5b", "unfused", "qkv bias"), ==, all[i].has_bias);
    LS_CHECK (launches (all[i].software, "gpt-7.5b", "unfused", "qkv grad concat"));
    LS_CHECK (launches (all[i].software, "gpt-7.5b", "unfused", "context copy"));
  }
}

/* Pins: the fork of Megatron-LM that zero bubble's authors ran, with its own transformer layer. The gradients
 * of a layer's inputs take what they measured, because PyTorch's concatenation, copies and sums with a
 * broadcast bias are slower than memory; a list of kernels for it has one of each; only the first and the
 * last stage wait for a micro-batch; what its hosts need behind a transfer is of each exchange that blocks,
 * and of none that does not. */

/* Qi et al. 2024, arXiv 2401.10241, table 6: T_B over the layers of a pass; table 3: the models. Heads of 96
 * and 128. */
typedef struct {
  uint64_t hidden, heads, micro_batch;
  double backward_ms;
} Measured;

static const Measured measured[]
    = { { 2304, 24, 6, 6.03 }, { 4096, 32, 3, 7.36 }, { 5120, 40, 1, 3.75 }, { 6144, 48, 1, 5.10 } };

static double
ms_of (const LsHardware *h, const LsKernel *k)
{
  return ls_time_to_s (ls_kernel_cost (&h->calibration, &h->spec.gpu, k).alone) * 1e3;
}

/* Gradients of inputs, and of biases, which that code computes with them; *ret_n: launches by this access. */
static double
backward_ms (const Measured *m, const LsHardware *h, const LsRecipes *recipes, LsAccess access, guint *ret_n)
{
  const LsModel timed = { .n_layers = 22,
                          .hidden = m->hidden,
                          .n_heads = m->heads,
                          .n_kv_heads = m->heads,
                          .head_dim = m->hidden / m->heads,
                          .ffn = 4 * m->hidden,
                          .vocab = 32000,
                          .seq = 1024,
                          .norm = LS_NORM_LAYERNORM,
                          .mlp = LS_MLP_GELU,
                          .position = LS_POSITION_LEARNED,
                          .linear_bias = true,
                          .dropout = true };
  const LsShard shard = { .tp = 1,
                          .micro_batch = m->micro_batch,
                          .seq = 1024,
                          .cp = 1,
                          .attention = LS_ATTENTION_UNFUSED,
                          .dtype = LS_DTYPE_BF16,
                          .grad_dtype = LS_DTYPE_BF16,
                          .grad.is_fused = true,
                          .bias_is_apart = true,
                          .recipes = recipes };
  g_autoptr (GArray) operators = ls_operators_new ();
  double ms = 0;
  ls_operators_layer (&timed, &shard, 0, operators);
  *ret_n = 0;
  for (guint i = 0; i < operators->len; i++) {
    const LsOperator *o = &g_array_index (operators, LsOperator, i);
    for (uint32_t k = 0; k < o->n_igrad; k++)
      ms += ms_of (h, &o->igrad[k]);
    for (uint32_t k = 0; k < o->n_wgrad; k++)
      ms += o->wgrad[k].kind == LS_KERNEL_GEMM ? 0 : ms_of (h, &o->wgrad[k]);
    for (uint32_t k = 0; k < o->n_fwd; k++)
      *ret_n += o->fwd[k].access == access;
    for (uint32_t k = 0; k < o->n_igrad; k++)
      *ret_n += o->igrad[k].access == access;
  }
  return ms;
}

static void
input_gradients_take_what_was_measured (void)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsHardware) h = ls_hardware_load ("dgx-a100-80g", diags);
  g_autoptr (LsRecipes) recipes = ls_recipes_load ("megatron-lm-2023-08", diags);
  guint n_cat, n_bias, n_copies, none;
  if (!LS_CHECK (h && recipes))
    return;
  for (guint i = 0; i < G_N_ELEMENTS (measured); i++) {
    LS_CHECK_NEAR (backward_ms (&measured[i], h, recipes, LS_ACCESS_CAT, &n_cat), measured[i].backward_ms,
                   0.055);
    LS_CHECK (backward_ms (&measured[i], h, NULL, LS_ACCESS_CAT, &none) < 0.97 * measured[i].backward_ms);
  }
  backward_ms (&measured[0], h, recipes, LS_ACCESS_BCAST16, &n_bias);
  backward_ms (&measured[0], h, recipes, LS_ACCESS_STRIDED16, &n_copies);
  LS_CHECK_INT (n_cat, ==, 1);
  LS_CHECK_INT (n_bias, ==, 3); /* of QKV, behind attention, behind the MLP */
  LS_CHECK_INT (n_copies, ==, 1);
  LS_CHECK_INT (none, ==, 0);
}

static guint
n_named (const LsSegment *seg, const char *name)
{
  guint n = 0;
  for (uint32_t i = 0; i < seg->n_ops; i++)
    n += strcmp (seg->ops[i].name, name) == 0;
  return n;
}

/* In a step, over the stages: how often a host fetches a micro-batch. */
static guint
n_fetches (const char *flags)
{
  g_autoptr (LsPlan) plan = dp_plan (flags, NULL);
  guint n = 0;
  for (uint32_t r = 0; plan && r < plan->n_roles; r++)
    for (uint32_t i = 0; i < plan->programs[r].n_instances; i++)
      n += n_named (&plan->segments[plan->programs[r].instances[i].segment], "batch");
  return n;
}

static void
stages_between_keep_their_mask (void)
{
  const char *flags = "--gpus 4 --pp 4 --global-batch 8 --batch-sync ";
  g_autofree char *all = g_strconcat (flags, "1", NULL),
                  *ends = g_strconcat (flags, "1 --batch-ends 1", NULL),
                  *none = g_strconcat (flags, "0 --batch-ends 1", NULL);
  LS_CHECK_INT (n_fetches (all), ==, 4 * 8);
  LS_CHECK_INT (n_fetches (ends), ==, 2 * 8);
  LS_CHECK_INT (n_fetches (none), ==, 0);
}

/* --- hosts behind a transfer -------------------------------------------------------------- */

static double
step_of (const char *job, const char *host_sync)
{
  g_autofree char *flags = g_strconcat (job, " --host-sync ", host_sync, NULL);
  DpRun run = dp_run (flags, NULL);
  double step_s = run.result ? run.result->report.step_time_s : 0;
  dp_clear (&run);
  return step_s * 1e6;
}

/* us. 4 stages, 8 micro-batches of little work. The last stage waits once a micro-batch, behind the exchange
 * with the stage before; on the way in and out each of three stages does. In zb-1p no host waits for a
 * transfer, only for the norm at the end. */
static void
hosts_are_late_behind_transfers_that_block (void)
{
  const char *blocking = "--gpus 4 --pp 4 --schedule 1f1b --global-batch 8 --p2p batched",
             *behind = "--gpus 4 --pp 4 --schedule zb-1p --global-batch 8 --p2p batched";
  double late = step_of (blocking, "280us") - step_of (blocking, "0us"),
         free = step_of (behind, "280us") - step_of (behind, "0us");
  LS_CHECK_NEAR (late, (8 + 2 * 3) * 280, 1e-6);
  LS_CHECK_NEAR (free, 280, 1e-6);
}

/* T_comm of table 6: a hop of 10 and of 12 MiB, ms, and what is simulated of its transfer on 16 and 32 GPUs
 * (`lockstep collective --op p2p`; one hop of 15 and three of 31 are between nodes). The same authors' fork of
 * 2024 blocks as that one does. */
static void
an_exchange_takes_what_was_measured (void)
{
  static const struct {
    double measured_ms, transfer_ms;
  } hops[] = { { 0.378, 0.076 }, { 0.408, 0.104 } };
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsSoftwareSpec software, later;
  LsHostCosts costs;
  ls_host_costs_default (&costs);
  if (!LS_CHECK (ls_software_load ("megatron-lm-2023-08", &software, diags)))
    return;
  double host_ms
      = ls_time_to_s (software.defaults.launch.host[LS_HOST_SYNC] + costs.cost[LS_HOST_COMM]) * 1e3;
  for (guint i = 0; i < G_N_ELEMENTS (hops); i++)
    LS_CHECK_NEAR (hops[i].transfer_ms + host_ms, hops[i].measured_ms, 0.02);
  if (LS_CHECK (ls_software_load ("megatron-lm-2024-vocab", &later, diags))) {
    LS_CHECK_INT (later.defaults.launch.host[LS_HOST_SYNC], ==, software.defaults.launch.host[LS_HOST_SYNC]);
    ls_software_clear (&later);
  }
  ls_software_clear (&software);
}

/* Pins: what Megatron-Core launches around experts with biases and limits (strategies/kernels:
 * megatron-core-unfused), by hand: passes over a tensor in 16 bits, read and written; and that Transformer
 * Engine's fuser, and a model without these, launch one kernel. */

typedef struct {
  const char *op, *list;
  bool is_plain; /* a gate by SiLU, no biases */
  const char *kernels;
  double fwd_bytes, bwd_bytes; /* an element of rows x width, products and probabilities aside */
} Unfused;

#define LIMITS      "limit gate; limit up; limits concat; offset; quick-geglu; "
#define LIMITS_GRAD "quick-geglu grad; limit gate grad; limit up grad; halves grad concat; "
#define BIAS        "expert bias; expert bias add; expert outputs concat; "
#define BIAS_GRAD                                                                                            \
  "grad times bias; probability grad; grad times probability; expert bias grad; expert grads concat; "

static const LsOperator *
operator_named (const GArray *operators, const char *name)
{
  for (guint i = 0; i < operators->len; i++)
    if (strcmp (g_array_index (operators, LsOperator, i).name, name) == 0)
      return &g_array_index (operators, LsOperator, i);
  return NULL;
}

/* Appends names of what is no product; its bytes. */
static double
streams_of (const LsKernel *kernels, uint32_t n, GString *names)
{
  double bytes = 0;
  for (uint32_t k = 0; k < n; k++)
    if (kernels[k].kind != LS_KERNEL_GEMM) {
      g_string_append_printf (names, "%s; ", kernels[k].name);
      bytes += kernels[k].bytes;
    }
  return bytes;
}

static void
check_unfused (const Unfused *u)
{
  LsModel m = model;
  m.moe.n_experts = 8, m.moe.top_k = 2, m.moe.expert_ffn = 512, m.hidden = 1024;
  m.mlp = u->is_plain ? LS_MLP_SWIGLU : LS_MLP_QUICK_GEGLU, m.act_limit = m.linear_bias = !u->is_plain;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsRecipes) recipes = ls_recipes_load (u->list, diags);
  LsShard shard = shard_with (recipes);
  shard.experts.ep = 2, shard.experts.etp = 1;
  g_autoptr (GArray) operators = ls_operators_new ();
  ls_operators_layer (&m, &shard, 0, operators);
  const LsOperator *op = operator_named (operators, u->op);
  if (!LS_CHECK (recipes && op))
    return;
  bool is_act = strcmp (u->op, "expert-act") == 0;
  double elements = 2.0 * TOKENS * (is_act ? 512 : 1024), weights = is_act ? 2.0 * TOKENS * 4 : 0;
  g_autoptr (GString) names = g_string_new (NULL);
  double fwd = streams_of (op->fwd, op->n_fwd, names), bwd = streams_of (op->igrad, op->n_igrad, names);
  LS_CHECK_STR (names->str, u->kernels);
  LS_CHECK_INT (op->params.n == 2 ? op->params.numel[1] : 0, ==,
                is_act || u->is_plain ? 0 : 4 * 1024); /* biases */
  LS_CHECK_INT (op->n_host_reads, ==, strstr (u->kernels, "offset; ") != NULL);
  LS_CHECK_DOUBLE (round ((fwd - weights) / elements), ==, u->fwd_bytes);
  LS_CHECK_DOUBLE (round ((bwd - 2 * weights) / elements), ==, u->bwd_bytes);
}

static void
megatron_fuses_neither_limits_nor_biases (void)
{
  static const Unfused unfused[] = {
    { "expert-act", "megatron-core-unfused", false, LIMITS LIMITS_GRAD, 16 + 6, 10 + 6 + 6 + 8 },
    { "expert-act", "megatron-core", false, LIMITS LIMITS_GRAD, 16 + 6, 10 + 6 + 6 + 8 },
    { "expert-act", "megatron-core-op-fuser", false, "limited quick-geglu; limited quick-geglu grad; ", 6,
      10 },
    { "expert-act", "megatron-core-unfused", true, "swiglu; swiglu-bwd; ", 6, 10 },
    { "expert-fc2", "megatron-core-unfused", false, BIAS BIAS_GRAD, 2 + 6 + 4, 4 + 2 + 4 + 2 + 4 },
    { "expert-fc2", "megatron-core-op-fuser", false, "", 0, 0 },
    { "expert-fc2", "megatron-core-unfused", true, "", 0, 0 },
  };
  for (guint i = 0; i < G_N_ELEMENTS (unfused); i++)
    check_unfused (&unfused[i]);
}

/* GPT-OSS: the bias behind attention is added in a kernel of its own, 4 bytes a number, before the sum of 6;
 * behind experts there is the sum alone, as behind attention without biases. */
static void
megatron_adds_a_bias_apart_with_limits (void)
{
  static const struct {
    const char *op;
    bool is_plain;
    const char *kernels;
    double bytes;
  } sums[] = { { "attention-add", false, "output bias; residual add; ", 4 + 6 },
               { "mlp-add", false, "residual-add; ", 6 },
               { "attention-add", true, "residual-add; ", 6 } };
  for (guint i = 0; i < G_N_ELEMENTS (sums); i++) {
    LsModel m = model;
    m.moe.n_experts = 8, m.moe.top_k = 2, m.moe.expert_ffn = 512, m.hidden = 1024;
    m.mlp = sums[i].is_plain ? LS_MLP_SWIGLU : LS_MLP_QUICK_GEGLU;
    m.act_limit = m.linear_bias = !sums[i].is_plain;
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    g_autoptr (LsRecipes) recipes = ls_recipes_load ("megatron-core-op-fuser", diags);
    LsShard shard = shard_with (recipes);
    g_autoptr (GArray) operators = ls_operators_new ();
    ls_operators_layer (&m, &shard, 0, operators);
    const LsOperator *op = operator_named (operators, sums[i].op);
    g_autoptr (GString) names = g_string_new (NULL);
    LS_CHECK (op != NULL);
    LS_CHECK_DOUBLE (streams_of (op->fwd, op->n_fwd, names), ==, sums[i].bytes * TOKENS * 1024);
    LS_CHECK_STR (names->str, sums[i].kernels);
  }
}

/* Of routers by sigmoids, where they are not fused, by hand: bytes for each token and expert, and for each token
 * and expert of its own; backward also the input in fp32, 6 bytes a number, and its gradient in 16 bits. Others,
 * and where they are fused, have a kernel each way. */
static void
routers_that_are_not_fused_are_many_kernels (void)
{
  static const char *const lists[]
      = { "megatron-core-unfused-router", "megatron-core-op-fuser+megatron-core-unfused-router",
          "megatron-core-unfused", "megatron-core-unfused-router" };
  for (guint i = 0; i < G_N_ELEMENTS (lists); i++) {
    LsModel m = model;
    m.moe.n_experts = 64, m.moe.top_k = 8, m.moe.expert_ffn = 512, m.hidden = 1024,
    m.moe.sigmoid_router = i < 3;
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    g_autoptr (LsRecipes) recipes = ls_recipes_load (lists[i], diags);
    LsShard shard = shard_with (recipes);
    shard.experts.ep = 2, shard.experts.etp = 1;
    g_autoptr (GArray) operators = ls_operators_new ();
    ls_operators_layer (&m, &shard, 0, operators);
    const LsOperator *op = operator_named (operators, "router");
    if (!LS_CHECK (recipes && op))
      return;
    g_autoptr (GString) names = g_string_new (NULL);
    double scores = 64.0 * TOKENS, chosen = 8.0 * TOKENS, input = 1024.0 * TOKENS;
    double fwd = streams_of (op->fwd, op->n_fwd, names), bwd = streams_of (op->igrad, op->n_igrad, names);
    bool is_listed = i < 2;
    LS_CHECK_DOUBLE (fwd, ==,
                     is_listed ? 112 * scores + (48 + 16 + 32 + 48) * chosen + 6 * 12 * 64
                               : (2 + 4 + 1) * scores);
    LS_CHECK_DOUBLE (bwd - 6 * input, ==, /* less a sum of gradients */
                     is_listed ? (4 + 24 + 16 + 12 + 4 + 24) * scores + (96 + 16 + 16) * chosen + 12 * input
                               : (2 + 8 + 1) * scores);
  }
}

/* Pins: inputs of PEFT's adapters become fp32 and 16 bits again; of models in fp32 only the second. */
static void
adapters_of_peft_are_cast (void)
{
  static const char *const lists[] = { "hf-transformers-5", "hf-transformers-5-autocast" };
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  guint n_seen = 0;
  for (guint i = 0; i < G_N_ELEMENTS (lists); i++) {
    g_autoptr (LsRecipes) recipes = ls_recipes_load (lists[i], diags);
    g_autoptr (GArray) operators = ls_operators_new ();
    LsShard shard = shard_with (recipes);
    shard.lora = (LsLora) { .rank = 16, .modules = LS_LORA_DOWN };
    ls_operators_layer (&model, &shard, 0, operators);
    for (guint o = 0; o < operators->len; o++) {
      const LsOperator *op = &g_array_index (operators, LsOperator, o);
      if (strcmp (op->name, "lora-a") != 0)
        continue;
      n_seen++;
      LS_CHECK_INT (op->n_fwd, ==, 3 - i); /* casts, and the product */
      LS_CHECK_INT (op->n_igrad, ==, 4 - i);
      LS_CHECK_INT (op->fwd[0].n, ==, (uint64_t) TOKENS * FFN);
      LS_CHECK_INT (op->kept.saved_bytes, ==, (uint64_t) 2 * TOKENS * FFN);
    }
  }
  LS_CHECK_INT (n_seen, ==, 2);
}

LS_TEST_SUITE (LS_TEST (norms_run_again), LS_TEST (routers_that_are_not_fused_are_many_kernels),
               LS_TEST (megatron_fuses_neither_limits_nor_biases),
               LS_TEST (megatron_adds_a_bias_apart_with_limits), LS_TEST (its_software_names_the_list),
               LS_TEST (megatron_of_2021_copies_around_attention), LS_TEST (adapters_of_peft_are_cast),
               LS_TEST (input_gradients_take_what_was_measured), LS_TEST (stages_between_keep_their_mask),
               LS_TEST (hosts_are_late_behind_transfers_that_block),
               LS_TEST (an_exchange_takes_what_was_measured))
