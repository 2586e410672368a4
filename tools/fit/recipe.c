#include "recipe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GEMM_FREE                                                                                            \
  (LS_FREE_COMPUTE | LS_FREE_MEMORY | LS_FREE_LAUNCH | LS_FREE_DEPTH | LS_FREE_TILE | LS_FREE_WAVE)
#define ATTENTION_FREE (LS_FREE_COMPUTE | LS_FREE_DEPTH | LS_FREE_WAVE | LS_FREE_SIDE | LS_FREE_HOST)

/* vidur's "add" takes 1 to 2 us (its timer's step is 1 us) below 1 MB of traffic. */
#define STREAM_LAUNCH (2 * LS_US)
/* FlashAttention-2 (Dao, arXiv 2307.08691): forward up to 73 % (abstract), backward
 * up to 63 % (from memory, not looked up) of peak on the A100. */
#define A100_ATTENTION_BWD (63.0 / 73.0)
/* MODELS.md 3.3: forward and backward of FA3 447 TFLOP/s in a training step, forward
 * alone 600: backward 2.5 / (3.5 / 447 - 1 / 600) = 406, and 406 / 600 = 0.68. */
#define H100_ATTENTION_BWD 0.68
/* MODELS.md 3.2: fp32 add of 2^30 elements, 12 bytes each, in 4.1 ms, of 3.35 TB/s. */
#define H100_STREAM_EFFICIENCY (12.0 * 1073741824 / 4.1e-3 / 3.35e12)
#define A100_L2_BYTES          40e6 /* hardware.csv */
#define H100_L2_BYTES          50e6

static GArray *
new_samples (void)
{
  return g_array_new (FALSE, TRUE, sizeof (LsSample));
}

static LsSampleSink
sink_for (const char *folder, LsDiagList *diags)
{
  return (LsSampleSink){ .folder = folder, .samples = new_samples (), .diags = diags };
}

static bool
is_training_gemm (const LsSample *s)
{
  return s->kernel.m >= 2048 && s->kernel.n >= 512 && s->kernel.k >= 512;
}

/* What the scores of unfused attention look like: a short inner loop. */
static bool
is_short_gemm (const LsSample *s)
{
  return s->kernel.m >= 2048 && s->kernel.n >= 512 && s->kernel.k <= 256;
}

static bool
has_big_m (const LsSample *s)
{
  return s->kernel.m >= 2048;
}

static void
add_check (LsRecipe *r, const char *name, LsKernelKind kind, LsSampleFilter filter, GArray *samples,
           const LsFitState *nuisance, double promised_mape)
{
  LsFitCheck check = { .name = name,
                       .kind = kind,
                       .filter = filter,
                       .samples = g_array_ref (samples),
                       .promised_mape = promised_mape };
  if (nuisance)
    check.nuisance = *nuisance;
  g_array_append_val (r->checks, check);
}

LsFitError
ls_recipe_error (const LsRecipe *recipe, const LsCalibration *calibration, const LsFitCheck *check,
                 bool held_out)
{
  LsFitState state = check->nuisance;
  state.fit = check->fp8 ? calibration->gemm_fp8 : calibration->kind[check->kind];
  return ls_fit_error (&state, &recipe->gpu, check->samples, held_out, check->filter);
}

static LsRecipe *
recipe_new (const char *name, const char *source)
{
  LsRecipe *r = g_new0 (LsRecipe, 1);
  r->name = name;
  ls_calibration_init_roofline (&r->calibration);
  g_free (r->calibration.name);
  r->calibration.name = g_strdup (name);
  g_free (r->calibration.source);
  r->calibration.source = g_strdup (source);
  r->checks = g_array_new (FALSE, TRUE, sizeof (LsFitCheck));
  return r;
}

void
ls_recipe_free (LsRecipe *recipe)
{
  if (!recipe)
    return;
  for (guint i = 0; i < recipe->checks->len; i++)
    g_array_unref (g_array_index (recipe->checks, LsFitCheck, i).samples);
  g_array_unref (recipe->checks);
  for (guint i = 0; i < LS_N_KERNEL_KINDS; i++)
    g_free (recipe->kind_source[i]);
  g_free (recipe->gemm_fp8_source);
  ls_calibration_clear (&recipe->calibration);
  g_free (recipe);
}

static void G_GNUC_PRINTF (3, 4) set_source (LsRecipe *r, LsKernelKind kind, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_free (r->kind_source[kind]);
  r->kind_source[kind] = g_strdup_vprintf (format, args);
  va_end (args);
}

static void
fit_gemm (LsRecipe *r, const char *folder, const char *file, LsDiagList *diags)
{
  LsSampleSink sink = sink_for (folder, diags);
  ls_samples_gemm (&sink, file, LS_DTYPE_BF16);
  LsFitState state = { 0 };
  ls_fit_solve (&state, GEMM_FREE, &r->gpu, sink.samples);

  r->calibration.kind[LS_KERNEL_GEMM] = state.fit;
  set_source (r, LS_KERNEL_GEMM,
              "%s (TensorRT-LLM, isolated loops), all shapes, robust fit; hold-out by (n,k)", file);
  add_check (r, "gemm", LS_KERNEL_GEMM, NULL, sink.samples, NULL, 0.09);
  add_check (r, "gemm, m >= 2048", LS_KERNEL_GEMM, has_big_m, sink.samples, NULL, 0.09);
  add_check (r, "gemm, m >= 2048, n k >= 512", LS_KERNEL_GEMM, is_training_gemm, sink.samples, NULL, 0.055);

  LsFitError error = ls_fit_error (&state, &r->gpu, sink.samples, true, is_short_gemm);
  LsKindFit *batched = &r->calibration.kind[LS_KERNEL_BATCHED_GEMM];
  *batched = state.fit;
  batched->mape = error.mape;
  set_source (r, LS_KERNEL_BATCHED_GEMM,
              "coefficients of gemm; no batched data: mape is that of plain GEMMs with m >= 2048, n >= 512, "
              "k <= 256");
  add_check (r, "gemm, m >= 2048, k <= 256", LS_KERNEL_BATCHED_GEMM, is_short_gemm, sink.samples, NULL, 0.10);
  g_array_unref (sink.samples);
}

/* The cast to fp8 in the same timing is fitted and dropped: the launch of one
 * kernel is that of the bf16 GEMM, the rest belongs to the cast. */
static void
fit_gemm_fp8 (LsRecipe *r, const char *folder, const char *file, LsDiagList *diags)
{
  LsSampleSink sink = sink_for (folder, diags);
  ls_samples_gemm (&sink, file, LS_DTYPE_FP8);
  for (guint i = 0; i < sink.samples->len; i++)
    g_array_index (sink.samples, LsSample, i).has_host = true;
  LsFitState state = { .fit = { .launch = r->calibration.kind[LS_KERNEL_GEMM].launch } };
  ls_fit_solve (&state, (GEMM_FREE & ~LS_FREE_LAUNCH) | LS_FREE_SIDE | LS_FREE_HOST, &r->gpu, sink.samples);

  r->calibration.gemm_fp8 = state.fit;
  r->gemm_fp8_source
      = g_strdup_printf ("%s, fp8 rows (TensorRT-LLM linear: cast of the input fitted and dropped); "
                         "hold-out by (n,k)",
                         file);
  add_check (r, "gemm fp8", LS_KERNEL_GEMM, NULL, sink.samples, &state, 0.06);
  g_array_index (r->checks, LsFitCheck, r->checks->len - 1).fp8 = true;
  add_check (r, "gemm fp8, m >= 2048, n k >= 512", LS_KERNEL_GEMM, is_training_gemm, sink.samples, &state,
             0.06);
  g_array_index (r->checks, LsFitCheck, r->checks->len - 1).fp8 = true;
  g_array_unref (sink.samples);
}

static void
fit_attention (LsRecipe *r, const char *folder, const char *file, double width_half, double bwd,
               const char *bwd_source, LsDiagList *diags)
{
  LsSampleSink sink = sink_for (folder, diags);
  ls_samples_attention (&sink, file, LS_DTYPE_BF16);
  LsFitState state = {
    .fit = {
      .width_half = ls_fit_round (width_half, 4),
      .memory_efficiency = r->calibration.kind[LS_KERNEL_ELEMENTWISE].memory_efficiency,
      .launch = r->calibration.kind[LS_KERNEL_GEMM].launch,
    },
  };
  ls_fit_solve (&state, ATTENTION_FREE | (width_half > 0 ? 0 : LS_FREE_WIDTH), &r->gpu, sink.samples);

  r->calibration.kind[LS_KERNEL_ATTENTION_FWD] = state.fit;
  set_source (
      r, LS_KERNEL_ATTENTION_FWD,
      "%s, bf16 (TensorRT-LLM prefill; its rotation and cache copy fitted and dropped), memory and launch of "
      "elementwise and gemm; hold-out by (heads,kv_heads,head_dim)",
      file);
  add_check (r, "attention-fwd", LS_KERNEL_ATTENTION_FWD, NULL, sink.samples, &state, 0.08);

  LsKindFit *backward = &r->calibration.kind[LS_KERNEL_ATTENTION_BWD];
  *backward = state.fit;
  backward->is_fitted = false;
  backward->compute_efficiency = ls_fit_round (state.fit.compute_efficiency * bwd, 4);
  backward->min_work = backward->max_work = 0;
  backward->mape = NAN;
  set_source (r, LS_KERNEL_ATTENTION_BWD, "no data: forward times %.3f, %s", bwd, bwd_source);
  g_array_unref (sink.samples);
}

/* Drops the samples whose traffic does not leave the L2. */
static GArray *
beyond_l2 (GArray *samples, double l2_bytes)
{
  GArray *big = new_samples ();
  for (guint i = 0; i < samples->len; i++) {
    LsSample s = g_array_index (samples, LsSample, i);
    if (s.kernel.bytes > l2_bytes)
      g_array_append_val (big, s);
  }
  g_array_unref (samples);
  return big;
}

/* A kind for which nothing was measured runs like another. */
static void
copy_kind (LsRecipe *r, LsKernelKind to, const LsKindFit *from, const char *why)
{
  LsKindFit *fit = &r->calibration.kind[to];
  *fit = *from;
  fit->is_fitted = false;
  fit->mape = NAN;
  fit->min_work = fit->max_work = 0;
  set_source (r, to, "no data: %s", why);
}

static void
copy_streams (LsRecipe *r)
{
  const LsKindFit *stream = &r->calibration.kind[LS_KERNEL_ELEMENTWISE];
  copy_kind (r, LS_KERNEL_SOFTMAX, stream,
             "as elementwise: a fused softmax reads and writes its rows once. PyTorch's own, in "
             "llmcompass_softmax_A100.csv, reaches 0.50 of bandwidth and is not what Megatron runs");
  copy_kind (r, LS_KERNEL_REDUCTION, stream, "as elementwise, streams its input");
  copy_kind (r, LS_KERNEL_CROSS_ENTROPY, stream,
             "as elementwise, each pass over the logits streams (MODELS.md 3.6)");
  copy_kind (r, LS_KERNEL_OPTIMIZER, stream,
             "as elementwise; MODELS.md 3.6 takes 0.85 of bandwidth for a fused Adam on the A100");
  copy_kind (r, LS_KERNEL_MEMSET, stream, "as elementwise");
}

static void
fit_embedding (LsRecipe *r, const char *folder, const char *const *files, LsDiagList *diags)
{
  LsSampleSink sink = sink_for (folder, diags);
  for (guint i = 0; files[i]; i++)
    ls_samples_vidur_embedding (&sink, files[i]);
  LsFitState state = { .fit = { .compute_efficiency = 1, .launch = STREAM_LAUNCH } };
  ls_fit_solve (&state, LS_FREE_MEMORY, &r->gpu, sink.samples);

  r->calibration.kind[LS_KERNEL_EMBEDDING] = state.fit;
  LsFitError in_sample = ls_fit_error (&state, &r->gpu, sink.samples, false, NULL);
  set_source (r, LS_KERNEL_EMBEDDING,
              "vidur_mlp_*: PyTorch gather of the vocabulary-parallel embedding, tp 1; its three widths "
              "leave nothing "
              "to hold out; error in the fit %.1f %%; the scatter of the backward is taken to run like it",
              100 * in_sample.mape);
  add_check (r, "embedding", LS_KERNEL_EMBEDDING, NULL, sink.samples, NULL, 0.05);
  g_array_unref (sink.samples);
}

static int
by_value (const void *a, const void *b)
{
  double x = *(const double *) a, y = *(const double *) b;
  return (x > y) - (x < y);
}

/* Median of fitted over measured time at training sizes, times `correction`. */
static void
set_sustained (LsRecipe *r, GArray *vidur, double correction)
{
  const LsFitState state = { .fit = r->calibration.kind[LS_KERNEL_GEMM] };
  g_autoptr (GArray) ratio = g_array_new (FALSE, FALSE, sizeof (double));
  for (guint i = 0; i < vidur->len; i++) {
    const LsSample *s = &g_array_index (vidur, LsSample, i);
    double x = ls_fit_predict_s (&state, &r->gpu, s) / s->seconds;
    if (is_training_gemm (s))
      g_array_append_val (ratio, x);
  }
  qsort (ratio->data, ratio->len, sizeof (double), by_value);
  double median = ratio->len > 0 ? g_array_index (ratio, double, ratio->len / 2) : 1;
  r->calibration.sustained = ls_fit_round (fmin (1, median * correction), 3);
}

/* What a framework times: the kernel after a launch, and a constant host time. */
static LsFitState
fit_stream (LsRecipe *r, LsKernelKind kind, const GArray *samples)
{
  LsFitState state = { .fit = { .compute_efficiency = 1, .launch = STREAM_LAUNCH } };
  ls_fit_solve (&state, LS_FREE_MEMORY | LS_FREE_HOST, &r->gpu, samples);
  r->calibration.kind[kind] = state.fit;
  return state;
}

static void
fit_elementwise (LsRecipe *r, const char *folder, LsDiagList *diags)
{
  LsSampleSink sink = sink_for (folder, diags);
  ls_samples_vidur_add (&sink, "elementwise_vidur.csv", "a100");
  ls_samples_llmcompass_gelu (&sink, "llmcompass_gelu_A100.csv");
  sink.samples = beyond_l2 (sink.samples, A100_L2_BYTES);
  LsFitState state = fit_stream (r, LS_KERNEL_ELEMENTWISE, sink.samples);
  set_source (
      r, LS_KERNEL_ELEMENTWISE,
      "elementwise_vidur.csv (add) and llmcompass_gelu_A100.csv beyond the L2; vLLM's silu_mul of 2023 "
      "(0.50 of bandwidth) and rmsnorm (0.34) left out: not the fused kernels of training; hold-out by "
      "(rows,columns)");
  add_check (r, "elementwise", LS_KERNEL_ELEMENTWISE, NULL, sink.samples, &state, 0.05);
  g_array_unref (sink.samples);
}

static void
fit_norm (LsRecipe *r, const char *folder, LsDiagList *diags)
{
  LsSampleSink sink = sink_for (folder, diags);
  ls_samples_llmcompass_rows (&sink, "llmcompass_layernorm_A100.csv", LS_KERNEL_NORM);
  LsFitState state = fit_stream (r, LS_KERNEL_NORM, sink.samples);
  set_source (
      r, LS_KERNEL_NORM,
      "llmcompass_layernorm_A100.csv (PyTorch, fp16; host time fitted and dropped); rows above 8192 run at "
      "half that there, which fused kernels for long rows are taken not to; hold-out by (rows,columns)");
  add_check (r, "norm", LS_KERNEL_NORM, NULL, sink.samples, &state, 0.12);
  g_array_unref (sink.samples);
}

/* Nothing of vidur's on the H100 is well beyond the L2: a published figure. */
static void
set_elementwise_h100 (LsRecipe *r, const char *folder, LsDiagList *diags)
{
  LsKindFit *stream = &r->calibration.kind[LS_KERNEL_ELEMENTWISE];
  stream->memory_efficiency = ls_fit_round (H100_STREAM_EFFICIENCY, 3);
  stream->launch = STREAM_LAUNCH;
  set_source (r, LS_KERNEL_ELEMENTWISE,
              "published: fp32 add of 2^30 elements in 4.1 ms (MODELS.md 3.2); elementwise_vidur.csv has "
              "nothing well "
              "beyond the L2");

  LsSampleSink sink = sink_for (folder, diags);
  ls_samples_vidur_add (&sink, "elementwise_vidur.csv", "h100");
  sink.samples = beyond_l2 (sink.samples, H100_L2_BYTES);
  add_check (r, "elementwise (add)", LS_KERNEL_ELEMENTWISE, NULL, sink.samples, NULL, 0.15);
  g_array_unref (sink.samples);
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

static void
fit_sustained (LsRecipe *r, const char *folder, const char *const *mlp, double correction, LsDiagList *diags)
{
  LsSampleSink sink = sink_for (folder, diags);
  ls_samples_vidur_gemm (&sink, "gemm_vidur.csv", r->name);
  for (guint i = 0; mlp[i]; i++)
    ls_samples_vidur_mlp_gemm (&sink, mlp[i]);
  set_sustained (r, sink.samples, correction);
  add_check (r, "vidur gemm, m >= 2048, n k >= 512", LS_KERNEL_GEMM, is_training_gemm, sink.samples, NULL,
             0.15);
  g_array_unref (sink.samples);
}

LsRecipe *
ls_recipe_a100 (const char *folder, double attention_width_half, LsDiagList *diags)
{
  static const char *const mlp[] = { "vidur_mlp_a100_Llama-2-7b-hf.csv", "vidur_mlp_a100_Meta-Llama-3-8B.csv",
                                     "vidur_mlp_a100_Qwen-72B.csv", "vidur_mlp_a100_internlm-20b.csv", NULL };
  LsRecipe *r = recipe_new (
      "a100", "tools/fit/fit_kernels over the measured kernels of data/README.md (2026-11): "
              "TensorRT-LLM sweeps for the form, vidur's layers (PCIe cards by inference: corrected "
              "by MAMF 271.2 / 252.9) for sustained; mape on held-out families before "
              "sustained; no training run was used");
  /* SXM4 80 GB: hardware.csv */
  r->gpu = (LsGpu){ .n_sm = 108, .hbm_bytes_per_s = 2.039e12, .vector_flops = 19.5e12 };
  r->gpu.peak_flops[LS_DTYPE_BF16] = r->gpu.peak_flops[LS_DTYPE_FP16] = 312e12;

  fit_elementwise (r, folder, diags);
  fit_norm (r, folder, diags);
  fit_gemm (r, folder, "gemm_a100.csv", diags);
  fit_attention (
      r, folder, "attn_fwd_a100.csv", attention_width_half, A100_ATTENTION_BWD,
      "the ratio of FlashAttention-2 on the A100: backward 63 % of peak (from memory), forward 73 % (arXiv "
      "2307.08691)",
      diags);
  fit_embedding (r, folder, mlp, diags);
  copy_streams (r);
  fit_sustained (r, folder, mlp, sxm_over_pcie (folder, diags), diags);
  return r;
}

LsRecipe *
ls_recipe_h100 (const char *folder, LsDiagList *diags)
{
  static const char *const mlp[] = { "vidur_mlp_h100_Llama-2-7b-hf.csv", "vidur_mlp_h100_Qwen-72B.csv",
                                     "vidur_mlp_h100_internlm-20b.csv", NULL };
  LsRecipe *r
      = recipe_new ("h100", "tools/fit/fit_kernels over the measured kernels of data/README.md (2026-11): "
                            "TensorRT-LLM sweeps for the form, vidur's layers (DGX H100) for sustained; mape "
                            "on held-out families before sustained; no training run was used");
  /* SXM5: hardware.csv */
  r->gpu = (LsGpu){ .n_sm = 132, .hbm_bytes_per_s = 3.35e12, .vector_flops = 67e12 };
  r->gpu.peak_flops[LS_DTYPE_BF16] = r->gpu.peak_flops[LS_DTYPE_FP16] = 989.4e12;
  r->gpu.peak_flops[LS_DTYPE_FP8] = 1978.9e12;

  set_elementwise_h100 (r, folder, diags);
  fit_gemm (r, folder, "gemm_h100.csv", diags);
  fit_gemm_fp8 (r, folder, "gemm_h100.csv", diags);
  fit_attention (r, folder, "attn_fwd_h100.csv", 0, H100_ATTENTION_BWD,
                 "from FlashAttention-3: 447 TFLOP/s forward and backward, 600 forward (MODELS.md 3.3)",
                 diags);
  fit_embedding (r, folder, mlp, diags);
  copy_streams (r);
  copy_kind (r, LS_KERNEL_NORM, &r->calibration.kind[LS_KERNEL_ELEMENTWISE],
             "as elementwise; vidur's rmsnorm (0.33) is an old kernel");
  fit_sustained (r, folder, mlp, 1, diags);
  return r;
}
