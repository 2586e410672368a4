/* Pins worked examples that need several rooms (tests/README.md): rl-1,
 * rl-3, rl-4, gpu-peak-1, gpu-peak-2, opt-1, tp-1, bs-1, dp-5, with the shipped files where they are about
 * machines that ship. Prints how far the measured fa-4 and nv-sharp are. */
#include "ls_test.h"

#include <math.h>
#include <string.h>

#include "tiny_cluster.h"

#include "ask/collective/collective_table.h"
#include "ask/kernel_times.h"
#include "data/machines/machines.h"
#include "job/job.h"
#include "lower/lower.h"
#include "model/operators.h"

/* --- rooflines ---------------------------------------------------------------------- */

static LsGpu
v5e (double hbm)
{
  LsGpu gpu = { .n_sm = 1, .hbm_bytes_per_s = hbm, .vector_flops = 1e15 };
  gpu.peak_flops[LS_DTYPE_BF16] = 1.97e14;
  gpu.peak_flops[LS_DTYPE_FP8] = 3.94e14; /* stands for int8: a byte an element */
  return gpu;
}

/* Tokens from which on a product with a huge matrix is bound by compute. */
static uint32_t
critical_tokens (const LsGpu *gpu, LsDtype dtype)
{
  LsCalibration c;
  ls_calibration_init_roofline (&c);
  uint32_t low = 1, high = 4096;
  while (low < high) {
    uint32_t middle = (low + high) / 2;
    LsKernel gemm
        = ls_kernel_gemm ("g", dtype, middle, 1 << 17, 1 << 17, 1, (uint32_t) ls_dtype_bytes (dtype), false);
    if (ls_kernel_cost (&c, gpu, &gemm).bound == LS_BOUND_COMPUTE)
      high = middle;
    else
      low = middle + 1;
  }
  ls_calibration_clear (&c);
  return low;
}

static void
products_turn_compute_bound (void)
{
  LsGpu slow = v5e (8.2e11), fast = v5e (8.1e11);
  LS_CHECK_NEAR ((double) critical_tokens (&slow, LS_DTYPE_BF16), 240.244, 1e-2);
  LS_CHECK_NEAR ((double) critical_tokens (&fast, LS_DTYPE_FP8), 243.21, 1e-2);
}

/* rl-3: two chips split the inner dimension D; each then sends its partial sums to the
 * other. Both take as long at D = 2 C / W. */
static void
a_split_product_turns_compute_bound (void)
{
  enum { B = 4096, F = 8192, D = 8755 };
  LsClusterSpec spec = tiny_torus (1, 4, 4, 0, LS_WRAP_NONE);
  LsCluster *cluster = ls_cluster_build (&spec, NULL);
  g_autoptr (LsArena) arena = ls_arena_new ();
  LsNccl none = { 0 };
  const uint32_t pair[] = { 0, 1 };
  LsCollRequest request = { .kind = LS_COLL_SEND_RECV, .gpus = pair, .n = 2, .bytes = 2ul * B * F };
  LsCollPlan *plan = ls_coll_plan (cluster, &none, &request, LS_NETWORK_FLOW, arena);
  LsTime moving = ls_coll_time_alone (cluster, plan);
  for (uint32_t i = 0; i < plan->n_phases; i++)
    moving -= plan->phases[i].latency;

  LsGpu gpu = v5e (1e15);
  LsCalibration c;
  ls_calibration_init_roofline (&c);
  LsKernel half = ls_kernel_gemm ("g", LS_DTYPE_BF16, B, F, D / 2, 1, 2, false);
  LS_CHECK_NEAR (ls_time_to_s (ls_kernel_cost (&c, &gpu, &half).alone), ls_time_to_s (moving), 1e-2);
  ls_calibration_clear (&c);
  ls_cluster_free (cluster);
}

/* --- machines ------------------------------------------------------------------------ */

/* Peak = clock, fused multiply-adds of a tensor core per clock, two FLOPs each, tensor cores. */
static void
peaks_are_those_of_the_tensor_cores (void)
{
  static const struct {
    const char *gpu;
    double clock, fma, cores_per_sm;
  } gpus[] = { { "h100", 1830e6, 512, 4 }, { "a100-80g", 1410e6, 256, 4 }, { "v100", 1530e6, 64, 8 } };
  for (guint i = 0; i < G_N_ELEMENTS (gpus); i++) {
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    LsGpu gpu = { 0 };
    if (!LS_CHECK (ls_data_file_load (&ls_gpu_file, gpus[i].gpu, &gpu, diags)))
      continue;
    LS_CHECK_NEAR (gpu.peak_flops[LS_DTYPE_FP16],
                   gpus[i].clock * gpus[i].fma * 2 * gpus[i].cores_per_sm * gpu.n_sm, 3e-3);
    ls_gpu_clear (&gpu);
  }
}

/* Bytes of parameters, gradients and optimizer per parameter. */
static double
bytes_per_parameter (const char *zero)
{
  LsJobSpec spec;
  ls_job_spec_init (&spec);
  const char *const knobs[][2] = { { "model", "gpt-1.7b" },  { "cluster", "dgx-a100-80g" },
                                   { "gpus", "8" },          { "steps", "1" },
                                   { "micro-batch", "1" },   { "global-batch", "8" },
                                   { "grad-dtype", "fp32" }, { "zero", zero } };
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  for (guint i = 0; i < G_N_ELEMENTS (knobs); i++)
    LS_CHECK (ls_job_spec_set (&spec, knobs[i][0], knobs[i][1], diags));
  g_autoptr (GError) error = NULL;
  g_autoptr (LsJobResult) r = ls_job_spec_run (&spec, &error);
  LS_CHECK_NO_ERROR (error);
  const uint64_t *bytes = r->report.by_category;
  double sum = (double) bytes[LS_MEM_PARAMETERS] + (double) bytes[LS_MEM_GRADIENTS]
      + (double) bytes[LS_MEM_OPTIMIZER];
  double per_parameter = sum
      / (double) ls_model_params (&r->model,
                                  ls_model_padded_vocab (&r->model, r->strategy.use.vocab_multiple, 1));
  ls_job_spec_clear (&spec);
  return per_parameter;
}

/* opt-1: fp32 gradients; the distributed optimizer over d = 8 leaves 6 + 12/d. */
static void
states_take_18_bytes_per_parameter (void)
{
  LS_CHECK_NEAR (bytes_per_parameter ("0"), 18, 2e-3);
  LS_CHECK_NEAR (bytes_per_parameter ("1"), 7.5, 2e-3);
}

/* --- measured ------------------------------------------------------------------------- */

/* fa-4: attention of a LLaMA-8B step of 8,192 tokens, forward and backward. */
static void
attention_of_a_step (void)
{
  static const struct {
    const char *gpu;
    double measured;
  } rows[] = { { "h200", 447e12 }, { "b200", 834e12 } };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    double flops = 0, seconds = 0;
    for (int backward = 0; backward < 2; backward++) {
      const char *const knobs[][2] = { { "gpu", rows[i].gpu },
                                       { "attention", "1,8192,32,8,128" },
                                       { "sustained", "1" },
                                       { "backward", backward ? "1" : "0" } };
      LsKernelSpec spec;
      ls_kernel_spec_init (&spec);
      g_autoptr (LsDiagList) diags = ls_diag_list_new ();
      for (guint k = 0; k < G_N_ELEMENTS (knobs); k++)
        LS_CHECK (ls_kernel_spec_set (&spec, knobs[k][0], knobs[k][1], diags));
      g_autoptr (LsKernelRows) kernels = ls_kernel_rows_new (&spec, NULL);
      if (!LS_CHECK (kernels && kernels->rows->len == 1))
        return;
      const LsKernelRow *row = &g_array_index (kernels->rows, LsKernelRow, 0);
      flops += row->kernel.flops;
      seconds += row->time_s;
      ls_kernel_spec_clear (&spec);
    }
    printf ("fa-4, %s: %.0f TFLOP/s, %.2f of what was measured\n", rows[i].gpu, flops / seconds * 1e-12,
            flops / seconds / rows[i].measured);
  }
}

static double
bus_rate (const char *algorithm)
{
  const char *const knobs[][2]
      = { { "cluster", "dgx-h100" }, { "op", "all-reduce" }, { "nodes", "1" },
          { "min", "8GiB" },         { "max", "8GiB" },      { "algorithm", algorithm } };
  LsCollectiveSpec spec;
  ls_collective_spec_init (&spec);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  for (guint i = 0; i < G_N_ELEMENTS (knobs); i++)
    LS_CHECK (ls_collective_spec_set (&spec, knobs[i][0], knobs[i][1], diags));
  g_autoptr (GError) error = NULL;
  g_autoptr (LsCollectiveRun) run = ls_collective_run_new (&spec, &error);
  LS_CHECK_NO_ERROR (error);
  ls_collective_spec_clear (&spec);
  const LsCollectiveRow *row = run->table.rows;
  return row->bus_factor * (double) row->bytes / ls_time_to_s (row->time);
}

/* nv-sharp: an all-reduce in the switches of an H100 node, 480 GB/s, beside a ring's 370. */
static void
switches_of_a_node_add_up (void)
{
  double ring = bus_rate ("ring"), nvls = bus_rate ("nvls");
  LS_CHECK (nvls > ring);
  printf ("nv-sharp: NVLS %.0f, ring %.0f GB/s: %.3f; measured 480 / 370 = %.3f\n", nvls * 1e-9, ring * 1e-9,
          nvls / ring, 480.0 / 370);
}

/* --- parallelism ------------------------------------------------------------------------ */

/* Products of an MLP of Llama's 70B width on one of tp ranks, over the all-gather before and the
 * reduce-scatter behind them, at 990 TFLOP/s and 450 GB/s. */
static double
math_over_communication (uint32_t tp)
{
  LsClusterSpec spec = tiny_dgx (1);
  spec.gpus_per_node = 16;
  spec.server.nvlinks_per_gpu = 18;
  spec.server.nvlink = tiny_link (25e9, 1, 0);
  spec.gpu.peak_flops[LS_DTYPE_BF16] = 990e12;
  spec.gpu.hbm_bytes_per_s = 3350e9;
  LsCluster *cluster = ls_cluster_build (&spec, NULL);
  const LsNccl nccl = { .channels_ring = 16, .ring_bus_intra = 450e9, .p2p_intra = 450e9 };
  const LsModel mlp = { .hidden = 8192,
                        .n_heads = 64,
                        .n_kv_heads = 64,
                        .head_dim = 128,
                        .ffn = 28672,
                        .vocab = 32000,
                        .mlp = LS_MLP_GELU,
                        .attention = LS_ATTENTION_FLASH };
  const LsShard shard = { .tp = tp,
                          .sp = true,
                          .micro_batch = 1,
                          .seq = 65536,
                          .attention = LS_ATTENTION_FLASH,
                          .dtype = LS_DTYPE_BF16,
                          .grad_dtype = LS_DTYPE_FP32,
                          .cp = 1 };
  g_autoptr (GArray) operators = ls_operators_new ();
  g_autoptr (LsArena) arena = ls_arena_new ();
  uint32_t gpus[16] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
  LsTime math = 0, communication = 0;
  LsCalibration c;
  ls_calibration_init_roofline (&c);
  ls_operators_layer (&mlp, &shard, 0, operators);
  for (guint i = 0; i < operators->len; i++) {
    const LsOperator *o = &g_array_index (operators, LsOperator, i);
    if (strcmp (o->name, "fc1") == 0 || strcmp (o->name, "fc2") == 0)
      math += ls_kernel_cost (&c, &spec.gpu, &o->fwd[0]).alone;
  }
  for (LsCollKind kind = LS_COLL_ALL_GATHER; kind <= LS_COLL_REDUCE_SCATTER; kind++) {
    LsCollRequest q = {
      .kind = kind, .gpus = gpus, .n = tp, .bytes = ls_boundary_bytes (&mlp, &shard) * tp, .algorithm = "ring"
    };
    communication += ls_coll_time_alone (cluster, ls_coll_plan (cluster, &nccl, &q, LS_NETWORK_FLOW, arena));
  }
  ls_calibration_clear (&c);
  ls_cluster_free (cluster);
  return (double) math / (double) communication;
}

/* tp-1: both take as long at F W / C = 13.03 ways, which leaves out that a rank need not send its
 * own part: 14.03. */
static void
tensor_parallelism_turns_bound_by_communication (void)
{
  double ways = 28672 * 450e9 / 990e12;
  LS_CHECK_NEAR (ways, 13.03, 1e-3);
  LS_CHECK_NEAR (math_over_communication (8), ways / 7, 1e-2);
  LS_CHECK_NEAR (math_over_communication (16), ways / 15, 1e-2);
  LS_CHECK (math_over_communication (8) > 1 && math_over_communication (16) < 1);
}

/* Tokens of a step that rank 0 has in each of its layers, over the ranks that have the same ones. */
static double
tokens_of_a_gpu (uint32_t gpus, uint32_t pp, uint32_t sequences)
{
  const LsModel m = { .name = (char *) "m",
                      .n_layers = 8,
                      .hidden = 1024,
                      .n_heads = 16,
                      .n_kv_heads = 16,
                      .head_dim = 64,
                      .ffn = 4096,
                      .vocab = 32000,
                      .seq = 4096,
                      .mlp = LS_MLP_GELU,
                      .attention = LS_ATTENTION_FLASH };
  LsStrategy s;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  ls_strategy_init (&s);
  s.gpus = gpus;
  s.tp = 8;
  s.cp = 2;
  s.pp = pp;
  s.global_batch = sequences;
  LS_CHECK (ls_strategy_resolve (&s, &m, gpus, 8, diags));
  g_autoptr (LsPlan) plan = ls_lower (&m, &s, NULL, NULL);
  double tokens = 0;
  for (uint32_t i = 0; plan && i < plan->programs[0].n_instances; i++) {
    const LsSegment *segment = &plan->segments[plan->programs[0].instances[i].segment];
    for (uint32_t o = 0; o < segment->n_ops; o++)
      if (segment->ops[o].kernel != UINT32_MAX && strcmp (segment->ops[o].name, "qkv") == 0)
        tokens += (double) plan->kernels[segment->ops[o].kernel].m;
  }
  ls_strategy_clear (&s);
  return tokens / (m.n_layers / pp) / (8 * pp);
}

/* bs-1: Megatron's 16B, 70B and 314B, whatever is cut how. */
static void
a_gpu_has_its_part_of_the_batch (void)
{
  LS_CHECK_DOUBLE (tokens_of_a_gpu (192, 1, 192), ==, 4096);
  LS_CHECK_DOUBLE (tokens_of_a_gpu (768, 4, 384), ==, 2048);
  LS_CHECK_DOUBLE (tokens_of_a_gpu (3072, 8, 1536), ==, 2048);
}

/* dp-5: gradients of all experts move (2 times 2 bytes each, 1 / W), those that a token is sent to are
 * computed with (6 FLOPs and half of them in the backward, 1 / C): E / k C / W tokens. 128 experts, 4 for
 * each token, H100s of 990e12 FLOP/s and 400e9 B/s. */
static void
experts_ask_for_more_tokens (void)
{
  const LsModel m = { .n_layers = 1,
                      .hidden = 2880,
                      .n_heads = 64,
                      .n_kv_heads = 8,
                      .head_dim = 64,
                      .ffn = 2880,
                      .mlp = LS_MLP_SWIGLU,
                      .norm = LS_NORM_RMSNORM,
                      .moe.n_experts = 128,
                      .moe.top_k = 4,
                      .moe.expert_ffn = 2880,
                      .moe.every = 1 };
  LsModel none = m;
  none.moe.n_experts = none.moe.top_k = none.moe.expert_ffn = none.moe.every = 0;
  none.ffn = 0;
  double moved = (double) ls_model_layer_params (&m, 0) - (double) ls_model_layer_params (&none, 0)
      - 128.0 * 2880; /* router */
  double computed
      = (double) ls_model_active_params (&m, 0) - (double) ls_model_params (&none, 0) - 128.0 * 2880;
  LS_CHECK_NEAR (moved / computed * 990e12 / 400e9, 79200, 1e-3);
}

LS_TEST_SUITE (LS_TEST (products_turn_compute_bound), LS_TEST (a_split_product_turns_compute_bound),
               LS_TEST (peaks_are_those_of_the_tensor_cores), LS_TEST (states_take_18_bytes_per_parameter),
               LS_TEST (attention_of_a_step), LS_TEST (switches_of_a_node_add_up),
               LS_TEST (tensor_parallelism_turns_bound_by_communication),
               LS_TEST (a_gpu_has_its_part_of_the_batch), LS_TEST (experts_ask_for_more_tokens))
