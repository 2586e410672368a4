#include <math.h>
#include <string.h>

#include "recipe.h"

/* Tensor FLOPs per clock of an SM, dense bf16, A100 over H100 (stas00/ml-engineering compute/accelerator). */
#define FLOPS_PER_CLOCK_RATIO (2048.0 / 4096.0)
/* FlashAttention-2 (Dao, arXiv 2307.08691): forward up to 73 % (abstract), backward
 * up to 63 % (from memory, not looked up) of peak on the A100. */
#define A100_ATTENTION_BWD (63.0 / 73.0)
/* stas00/ml-engineering and pytorch/benchmark, pull request 2391: forward and backward of FA3 447 TFLOP/s in a training step, forward
 * alone 600: backward 2.5 / (3.5 / 447 - 1 / 600) = 406, and 406 / 600 = 0.68. */
#define H100_ATTENTION_BWD 0.68

#define H100_HBM 3.35e12
/* relu of 2^28 fp16 numbers, 4 bytes each, 156.56 us from launch to launch, less a launch, of 8 TB/s (NVIDIA/cccl, pull request
 * 7391, January 2026). The memory itself moves 7.67 TB/s (pytorch/ao, pull request 4002). A norm written for this
 * chip reaches 6.52 (NVIDIA/cutlass, pull request 2917). */
#define B200_STREAM_EFFICIENCY 0.868

static void
set_peaks (LsGpu *gpu, double bf16, double fp8)
{
  gpu->peak_flops[LS_DTYPE_BF16] = gpu->peak_flops[LS_DTYPE_FP16] = bf16;
  gpu->peak_flops[LS_DTYPE_FP8] = fp8;
}

/* A100 SXM over PCIe, best matmul rates. */
static double
sxm_over_pcie (const char *folder, LsDiagList *diags)
{
  double sxm = 1, pcie = 1;
  uint64_t shape[3];
  bool ok = ls_samples_mamf (folder, "NVIDIA A100 SXM", "bf16", &sxm, shape, diags)
      && ls_samples_mamf (folder, "NVIDIA A100 PCIe", "bf16", &pcie, shape, diags);
  return ok ? sxm / pcie : 1;
}

LsRecipe *
ls_recipe_a100 (const char *folder, const char *own, const LsRecipe *h100, LsDiagList *diags)
{
  static const char *const mlp[] = { "vidur_mlp_a100_Llama-2-7b-hf.csv", "vidur_mlp_a100_Meta-Llama-3-8B.csv",
                                     "vidur_mlp_a100_Qwen-72B.csv", "vidur_mlp_a100_internlm-20b.csv", NULL };
  LsRecipe *r
      = ls_recipe_new ("a100",
                       "tools/fit/fit_kernels over the measured kernels of data/README.md (2026-11): "
                       "TensorRT-LLM sweeps for the form, vidur's layers (PCIe cards by inference: corrected "
                       "by MAMF 271.2 / 252.9) for sustained; mape on held-out families before "
                       "sustained; no training run was used");
  double h100_width = h100->calibration.kind[LS_KERNEL_ATTENTION_FWD].width_half;
  /* SXM4 80 GB: hardware.csv */
  r->gpu = (LsGpu) { .n_sm = 108, .hbm_bytes_per_s = 2.039e12, .vector_flops = 19.5e12 };
  set_peaks (&r->gpu, 312e12, 0);

  ls_recipe_fit_elementwise (
      r, folder, 0,
      "elementwise_vidur.csv (add) and llmcompass_gelu_A100.csv from 8 MB on; hold-out by (rows,columns)",
      diags);
  ls_recipe_fit_norm (r, folder, diags);
  ls_recipe_fit_gemm (r, folder, LS_DTYPE_BF16, NULL, diags);
  ls_recipe_fit_attention (r, folder, LS_DTYPE_BF16, h100_width * FLOPS_PER_CLOCK_RATIO, NULL, diags);
  ls_recipe_set_backward (
      r, A100_ATTENTION_BWD,
      "the ratio of FlashAttention-2 on the A100: backward 63 % of peak (from memory), forward 73 % (arXiv "
      "2307.08691)");
  ls_recipe_fit_attention_kernel (r, own, LS_ATTENTION_KERNEL_FA1, NULL, diags);
  ls_recipe_fit_attention_kernel (r, own, LS_ATTENTION_KERNEL_TRITON, NULL, diags);
  ls_recipe_fit_attention_kernel (r, own, LS_ATTENTION_KERNEL_FA2, NULL, diags);
  ls_recipe_fit_embedding (r, folder, mlp, diags);
  r->adam_s = h100->adam_s;
  ls_recipe_copy_streams (r);
  ls_recipe_overlap_streams (r);
  ls_recipe_fit_vllm (r, folder, diags);
  ls_recipe_fit_sustained (r, folder, mlp, sxm_over_pcie (folder, diags), diags);
  const LsHotTable loops
      = { .folder = own, .file = "simumax_a100_gemm.csv", .hbm_bytes_per_s = 1.935e12 }; /* PCIe card */
  ls_recipe_set_wide (
      r, ls_recipe_fit_hot (r, &loops, diags).wide_exposed,
      "hot loops of weight gradients, A100 PCIe, K = 4,096 and more (tools/fit/simumax_a100_gemm.csv)");
  return r;
}

/* Products with rows on no 16 bytes, bf16: those of logits of GPT-2 on an H100, forward, and both of the backward. The first has the
 * rate of others off 16 bytes on an H200 (72,000 x 3,072 by 3,072 and 14,336: 95.7 and 99.1 TFLOP/s; Frankaaay/FastWAM,
 * scripts/microbench_gemm_alignment.py), the other layouts run other kernels. One share for all three, as a step has them. */
#define UNALIGNED_SOURCE                                                                                                                     \
  "gemm_unaligned: the products of 50,257 words by 768 for 8,192 tokens, bf16, one H100, torch 2.11, November 2026: 6.63, 4.50 and 4.27 ms " \
  "in cutlass_75_tensorop_bf16_s1688gemm, 95, 141 and 148 TFLOP/s, their mean by time"

static double
unaligned_share (double peak_flops)
{
  static const double ms[] = { 6.6295, 4.5003, 4.2680 };
  double seconds = 0;
  for (guint i = 0; i < G_N_ELEMENTS (ms); i++)
    seconds += ms[i] * 1e-3;
  return ls_fit_round (G_N_ELEMENTS (ms) * 2.0 * 8192 * 50257 * 768 / (seconds * peak_flops), 2);
}

/* cuDNN's attention with a mask, bf16, 2 x 4,096 tokens, 32 heads of 128 (8 of keys), both passes, over the same FLOPs at the rate
 * of its causal kernels of that shape (tools/kernelbench/profiles/h200-libraries-2026-11.json, which have half of them). */
#define MASKED_SOURCE                                                                                                                          \
  "attention_masked: cuDNN's kernels in a step of mistral-7b with a mask, one H200, torch 2.11, November 2026: 1.732 and 5.134 ms, where the " \
  "causal ones of half of the FLOPs take 0.477 and 1.462"

static double
masked_rate (void)
{
  return ls_fit_round (2 * (0.477 + 1.462) / (1.732 + 5.134), 2);
}

/* GEMMs of cuBLASLt 13.1 beside a kernel that holds SMs, measured on the H200 and taken for the H100, whose die it has. */
static void
set_lost_clusters (LsRecipe *r)
{
  static char *source[]
      = { "lost_clusters",
          "lockstep calibrate tools/kernelbench/profiles/h200-beside-2026-11.json, rows default of slowdown: "
          "cuBLASLt 13.1 on an H200, whose die the H100 has",
          NULL };
  r->calibration.around.lost_clusters = 1.581;
  r->around_source = source;
}

LsRecipe *
ls_recipe_h100 (const char *folder, const char *own, LsDiagList *diags)
{
  static const char *const mlp[] = { "vidur_mlp_h100_Llama-2-7b-hf.csv", "vidur_mlp_h100_Qwen-72B.csv",
                                     "vidur_mlp_h100_internlm-20b.csv", NULL };
  LsRecipe *r = ls_recipe_new (
      "h100",
      "tools/fit/fit_kernels over the measured kernels of data/README.md (2026-11): "
      "TensorRT-LLM sweeps for the form, vidur's layers (DGX H100) for sustained, in 16 bits "
      "less by hot loops of both formats on an H200 NVL (tools/fit/hot_loops.csv); mape on "
      "held-out families before sustained; no training run was used; " UNALIGNED_SOURCE "; " MASKED_SOURCE);
  /* SXM5: hardware.csv */
  r->gpu = (LsGpu) { .n_sm = 132, .hbm_bytes_per_s = H100_HBM, .vector_flops = 67e12 };
  set_peaks (&r->gpu, 989.4e12, 1978.9e12);

  ls_recipe_fit_elementwise (
      r, folder, ls_recipe_profile_stream (r, own, "h100-2026-11.json", diags),
      "HBM: streams of tools/kernelbench from 100 MB on (profiles/h100-2026-11.json); L2: elementwise_vidur.csv "
      "(add) from 8 MB on, nothing of which is well beyond it; hold-out by (rows,columns)",
      diags);
  ls_recipe_profile_adam (r, own, "h100-libraries-2026-11.json", diags);
  ls_recipe_fit_gemm (r, folder, LS_DTYPE_BF16, NULL, diags);
  ls_recipe_fit_gemm (r, folder, LS_DTYPE_FP8, NULL, diags);
  ls_recipe_fit_blocks_wgrad (r, own, diags);
  ls_recipe_fit_attention (r, folder, LS_DTYPE_BF16, 0, NULL, diags);
  ls_recipe_fit_attention (r, folder, LS_DTYPE_FP8, 0, NULL, diags);
  ls_recipe_set_backward (
      r, H100_ATTENTION_BWD,
      "from FlashAttention-3: 447 TFLOP/s forward and backward, 600 forward (stas00/ml-engineering; pytorch/benchmark, pull request 2391)");
  ls_recipe_fit_attention_kernel (r, own, LS_ATTENTION_KERNEL_FA1, NULL, diags);
  ls_recipe_fit_attention_kernel (r, own, LS_ATTENTION_KERNEL_TRITON, "fa1", diags);
  ls_recipe_fit_attention_kernel (r, own, LS_ATTENTION_KERNEL_FA2, NULL, diags);
  ls_recipe_fit_attention_kernel (r, own, LS_ATTENTION_KERNEL_FA3, NULL, diags);
  ls_recipe_fit_embedding (r, folder, mlp, diags);
  ls_recipe_copy_streams (r);
  ls_recipe_copy (r, LS_KERNEL_NORM, &r->calibration.kind[LS_KERNEL_ELEMENTWISE],
                  "as elementwise; vidur's rmsnorm (0.33) is an old kernel");
  ls_recipe_fit_vllm (r, folder, diags);
  ls_recipe_fit_sustained (r, folder, mlp, 1, diags);
  r->in_layers = r->calibration.sustained;
  ls_recipe_part_formats (r, own, "h200-nvl", diags);
  r->calibration.gemm_unaligned = unaligned_share (r->gpu.peak_flops[LS_DTYPE_BF16]);
  r->calibration.attention_masked = masked_rate ();
  set_lost_clusters (r);
  return r;
}

/* No layer was timed on these two: what a loop of other kernels costs a GEMM is taken
 * from the H100. die: see recipe.h. */
static void
fit_sweeps (LsRecipe *r, const char *folder, const LsRecipe *h100, const LsKindFit *stream,
            const char *stream_why, const LsRecipe *die, LsDiagList *diags)
{
  ls_recipe_copy (r, LS_KERNEL_ELEMENTWISE, stream, stream_why);
  r->adam_s = h100->adam_s;
  ls_recipe_fit_gemm (r, folder, LS_DTYPE_BF16, die, diags);
  ls_recipe_fit_gemm (r, folder, LS_DTYPE_FP8, die, diags);
  ls_recipe_fit_attention (r, folder, LS_DTYPE_BF16, 0, die, diags);
  ls_recipe_fit_attention (r, folder, LS_DTYPE_FP8, 0, die, diags);
  ls_recipe_copy_streams (r);
  ls_recipe_copy (r, LS_KERNEL_NORM, stream, "as elementwise");
  ls_recipe_copy (r, LS_KERNEL_EMBEDDING, &h100->calibration.kind[LS_KERNEL_EMBEDDING],
                  "share of bandwidth of the H100's gather");
  r->calibration.sustained = h100->calibration.sustained;
}

/* The same chip. */
static void
copy_attention_kernels (LsRecipe *r, const LsRecipe *from)
{
  for (guint slot = LS_ENTRY_ATTENTION; slot < LS_N_ENTRIES; slot++) {
    r->calibration.kind[slot] = from->calibration.kind[slot];
    if (from->slot_source[slot]) /* it was measured there */
      ls_recipe_set_source (r, slot, "as on the H100, the same chip: %s", from->slot_source[slot]);
  }
}

#define H200_STREAMS                                                                                         \
  "HBM: streams of tools/kernelbench from 100 MB on (profiles/h200-2026-11.json); the H100's rate of the L2: the same chip"

/* H100-SXM5 and H200-SXM have one compute die, with as many SMs, the same clocks and the same limit of power, and another HBM. Their
 * two tables are of two machines with two versions of the libraries: the best product of each GPU is said to be the same
 * (mamf_table.csv), and yet the table of the H200 has products above 10 TFLOP 6 % slower, and in fp8 those of 0.1 TFLOP 2 %
 * faster. What the die does is therefore fitted once, on the H100, on which layers and other kernels were measured too;
 * what the H200's table says of it is its error (README.md of this folder). */
LsRecipe *
ls_recipe_h200 (const char *folder, const char *own, const LsRecipe *h100, LsDiagList *diags)
{
  LsRecipe *r = ls_recipe_new (
      "h200",
      "the compute die of the H100, by its coefficients; memory, and what TensorRT-LLM's sweeps of the H200 time "
      "besides, by tools/fit/fit_kernels (measured kernels of data/README.md, 2026-11); sustained as on the H100, "
      "under the same 700 W; mape on held-out families of the H200's sweep before sustained; no training run was used; " UNALIGNED_SOURCE
      "; " MASKED_SOURCE);
  /* SXM: hardware.csv */
  r->gpu = (LsGpu) { .n_sm = 132, .hbm_bytes_per_s = 4.8e12, .vector_flops = 67e12 };
  set_peaks (&r->gpu, 989.4e12, 1978.9e12);
  LsKindFit stream = h100->calibration.kind[LS_KERNEL_ELEMENTWISE];
  r->adam_s = h100->adam_s;
  ls_recipe_profile_adam (r, own, "h200-libraries-2026-11.json", diags);
  double h100_stream = H100_HBM * stream.memory_efficiency;
  stream.memory_efficiency = ls_fit_round (ls_recipe_profile_stream (r, own, "h200-2026-11.json", diags), 3);
  stream.cache_speed
      = ceil (1e4 * stream.cache_speed * h100_stream / (r->gpu.hbm_bytes_per_s * stream.memory_efficiency))
      / 1e4; /* not below the H100's */
  fit_sweeps (r, folder, h100, &stream, H200_STREAMS, h100, diags);
  r->calibration.kind[LS_KERNEL_ELEMENTWISE].is_fitted = true;
  ls_recipe_set_source (r, LS_KERNEL_ELEMENTWISE, "%s", H200_STREAMS);
  r->calibration.sustained_fp8 = h100->calibration.sustained_fp8;
  ls_recipe_set_backward (r, H100_ATTENTION_BWD, "the H100's ratio (FlashAttention-3)");
  copy_attention_kernels (r, h100);
  ls_recipe_take_blocks_wgrad (r, h100);
  r->calibration.gemm_unaligned = h100->calibration.gemm_unaligned;
  r->calibration.attention_masked = h100->calibration.attention_masked;
  set_lost_clusters (r);
  const LsCudnnOf cudnn = { .gpu = "NVIDIA H200", .name = "h200", .has_slow_mask = true, .head_step = 64 };
  ls_recipe_fit_cudnn (r, folder, &cudnn, diags);
  return r;
}

/* Of grouped products; tools/fit/README.md says how it was found. */
#define B200_MATRIX_LAUNCH (42 * LS_US / 10)

static void
set_grouped (LsRecipe *r)
{
  g_autofree char *gemm = g_strdup (r->slot_source[LS_KERNEL_GEMM]);
  r->calibration.kind[LS_KERNEL_GEMM].matrix_launch = B200_MATRIX_LAUNCH;
  ls_recipe_set_source (
      r, LS_KERNEL_GEMM,
      "%s; matrix_launch: grouped products of SimuMax's B200 (tools/fit/README.md), held out 10.4 %% (21.2 %% without)",
      gemm);
}

#define GB200_CUDNN "NVIDIA GB200" /* as its table of cuDNN's attention calls it */

/* What Azure measured on GB200 in fp8, with random data on a warm chip, over the best isolated loop of TensorRT-LLM there. */
#define GB200_SUSTAINED 0.786

LsRecipe *
ls_recipe_b200 (const char *folder, const char *own, const LsRecipe *h100, LsDiagList *diags)
{
  LsRecipe *r = ls_recipe_new (
      "b200",
      "tools/fit/fit_kernels over the measured kernels of data/README.md (2026-11): TensorRT-LLM sweeps for the "
      "form; sustained and attention from the loops of a B200 machine of SimuMax (tools/fit/README.md), times the "
      "H100's sustained; in fp8, which it has no loops of, as gb200, the same chip; mape on held-out families before "
      "sustained; no training run was used");
  /* SXM (HGX): hardware.csv */
  r->gpu = (LsGpu) { .n_sm = 148, .hbm_bytes_per_s = 8e12, .vector_flops = 80e12 };
  set_peaks (&r->gpu, 2250e12, 4500e12);
  r->gpu.peak_flops[LS_DTYPE_NVFP4] = 9000e12;
  LsKindFit stream = h100->calibration.kind[LS_KERNEL_ELEMENTWISE];
  stream.cache_bytes = stream.cache_speed = 0;
  stream.memory_efficiency = B200_STREAM_EFFICIENCY;
  fit_sweeps (
      r, folder, h100, &stream,
      "one kernel: relu of 2^28 fp16 in 156.56 us, launch to launch (NVIDIA/cccl, pull request 7391); the L2 is left out",
      NULL, diags);
  ls_recipe_fit_gemm (r, folder, LS_DTYPE_NVFP4, NULL, diags);
  ls_recipe_fit_cublaslt_nvfp4 (r, own, diags);
  ls_recipe_fit_training_attention (r, own, diags);
  /* SimuMax's loops are hot, but repeat one product of the same operands, which an L2 of 126 MB keeps. What it costs to take
   * them from memory, with other kernels in between, was measured on the H100. */
  const LsHotTable loops
      = { .folder = own, .file = "simumax_b200_gemm.csv", .hbm_bytes_per_s = r->gpu.hbm_bytes_per_s };
  const LsHotFit hot = ls_recipe_fit_hot (r, &loops, diags);
  r->calibration.sustained = ls_fit_round (hot.sustained * h100->in_layers, 3);
  r->calibration.sustained_fp8 = GB200_SUSTAINED;
  set_grouped (r);
  ls_recipe_set_wide (r, hot.wide_exposed,
                      "hot loops of weight gradients, K = 4,096 (tools/fit/simumax_b200_gemm.csv)");
  const LsCudnnOf cudnn = { .gpu = GB200_CUDNN,
                            .name = "gb200",
                            .is_hot_when_long = true,
                            .own_table = "attn_fwd_b200.csv",
                            .its_table = "blackwell/attn_fwd_gb200.csv" };
  ls_recipe_fit_cudnn (r, folder, &cudnn, diags);
  ls_recipe_fit_attention_kernel (r, own, LS_ATTENTION_KERNEL_FA2, NULL, diags);
  return r;
}

/* The same chip; but what it sustains is a matter of its power and its cooling, and cuDNN's attention was measured on it. */
LsRecipe *
ls_recipe_gb200 (const char *folder, const LsRecipe *b200, LsDiagList *diags)
{
  LsRecipe *r = ls_recipe_new (
      "gb200",
      "kernels of b200, the same chip; sustained: Azure measured 2,744 TFLOP/s in fp8 on GB200 with "
      "random data after 10,000 runs to warm up (techcommunity.microsoft.com, Unpacking NVIDIA "
      "GB200 GPU performance, 4390442), 0.786 of the best isolated loop of TensorRT-LLM there "
      "(3,493 TFLOP/s); bf16 is assumed to be limited alike; no training run was used");
  char *name = r->calibration.name, *source = r->calibration.source;
  r->gpu = b200->gpu;
  r->calibration = b200->calibration;
  r->calibration.name = name;
  r->calibration.source = source;
  r->calibration.measured = NULL;
  r->calibration.sustained = GB200_SUSTAINED;
  r->calibration.sustained_fp8 = 0; /* of all formats the same */
  r->cublaslt_nvfp4 = b200->cublaslt_nvfp4;
  r->adam_s = b200->adam_s; /* for those that are like it */
  for (guint i = 0; i < LS_N_ENTRIES; i++)
    r->slot_source[i] = g_strdup (b200->slot_source[i]);
  const LsCudnnOf cudnn = { .gpu = GB200_CUDNN, .name = "gb200", .is_hot_when_long = true };
  ls_recipe_fit_cudnn (r, folder, &cudnn, diags);
  return r;
}
