#include "recipe.h"

#include <math.h>
#include <string.h>

#define GEMM_FREE                                                                                            \
  (LS_FREE_COMPUTE | LS_FREE_MEMORY | LS_FREE_LAUNCH | LS_FREE_DEPTH | LS_FREE_TILE | LS_FREE_WAVE           \
   | LS_FREE_SPLIT | LS_FREE_OVERLAP | LS_FREE_THROTTLE | LS_FREE_BURST)
#define ATTENTION_FREE (LS_FREE_COMPUTE | LS_FREE_DEPTH | LS_FREE_TAIL | LS_FREE_SIDE | LS_FREE_HOST)
/* What members of a family with one die may differ in: what comes from memory, and what a framework's timing adds. */
#define OF_THE_MEMBER (LS_FREE_MEMORY | LS_FREE_SIDE | LS_FREE_HOST)

#define MIN_STREAM 8e6 /* bytes: below, the step of vidur's timer (STREAM_LAUNCH) is too coarse */

LsRecipe *
ls_recipe_new (const char *name, const char *source)
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
  for (guint i = 0; i < LS_N_ENTRIES; i++)
    g_free (recipe->slot_source[i]);
  ls_calibration_clear (&recipe->calibration);
  g_free (recipe);
}

void
ls_recipe_set_source (LsRecipe *r, guint slot, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_free (r->slot_source[slot]);
  r->slot_source[slot] = g_strdup_vprintf (format, args);
  va_end (args);
}

void
ls_recipe_add_check (LsRecipe *r, const char *name, guint slot, LsSampleFilter filter, GArray *samples,
                     double mape, double median)
{
  LsFitCheck check = { .name = name,
                       .slot = slot,
                       .filter = filter,
                       .samples = g_array_ref (samples),
                       .promised_mape = mape,
                       .promised_median = median };
  g_array_append_val (r->checks, check);
}

LsFitError
ls_recipe_error (const LsRecipe *recipe, const LsCalibration *calibration, const LsFitCheck *check,
                 bool held_out)
{
  LsCalibration copy = *calibration; /* for a pointer that may be written through */
  LsKindFit fit = copy.kind[check->slot];
  if (check->sustained > 0) {
    fit.compute_efficiency *= check->sustained;
    fit.burst = 0;
  }
  return ls_fit_error (&fit, &recipe->gpu, check->samples, held_out, check->filter);
}

/* ---- which samples ---- */

static bool
is_fp8 (const LsTimedKernel *s)
{
  return s->kernel.dtype == LS_DTYPE_FP8;
}

static bool
is_16_bit (const LsTimedKernel *s)
{
  return s->kernel.dtype == LS_DTYPE_BF16 || s->kernel.dtype == LS_DTYPE_FP16;
}

static bool
has_1_gflop (const LsTimedKernel *s)
{
  return s->kernel.flops >= 1e9;
}

/* What the scores of unfused attention look like: a short inner loop. */
static bool
is_short_gemm (const LsTimedKernel *s)
{
  return s->kernel.m >= 2048 && s->kernel.n >= 512 && s->kernel.k <= 256;
}

static bool
is_long_attention (const LsTimedKernel *s)
{
  return s->kernel.m >= 1024;
}

static bool
is_usual_stream (const LsTimedKernel *s)
{
  return s->what == LS_TIMED_USUAL && s->kernel.bytes >= MIN_STREAM;
}

static bool
is_vllm_rmsnorm (const LsTimedKernel *s)
{
  return s->what == LS_TIMED_VLLM_RMSNORM && s->kernel.bytes >= MIN_STREAM;
}

static bool
is_vllm_silu_mul (const LsTimedKernel *s)
{
  return s->what == LS_TIMED_VLLM_SILU_MUL && s->kernel.bytes >= MIN_STREAM;
}

/* ---- matrix kernels ---- */

static void
copy_gemm_to_batched (LsRecipe *r, const GArray *samples)
{
  const LsKindFit *gemm = &r->calibration.kind[LS_KERNEL_GEMM];
  LsFitError error = ls_fit_error (gemm, &r->gpu, samples, true, is_short_gemm);
  LsKindFit *batched = &r->calibration.kind[LS_KERNEL_BATCHED_GEMM];
  *batched = *gemm;
  batched->mape = error.mape;
  ls_recipe_set_source (r, LS_KERNEL_BATCHED_GEMM,
                        "coefficients of gemm; no batched data: mape is that of plain GEMMs with m >= 2048, "
                        "n >= 512, k <= 256");
  if (error.n > 0)
    ls_recipe_add_check (r, "gemm, m >= 2048, k <= 256", LS_KERNEL_BATCHED_GEMM, is_short_gemm,
                         (GArray *) samples, 0.1, 0);
}

/* What a fit starts from, and which of `all` it is to find: with `die` the rest is what another member of the family has. */
static guint
start_from (LsKindFit *fit, const LsRecipe *die, guint slot, guint all, guint of_the_member)
{
  if (!die)
    return all;
  LsCalibration copy = die->calibration; /* for a pointer that may be written through */
  *fit = copy.kind[slot];
  return all & of_the_member;
}

static const char *
whose (const LsRecipe *die, char **ret_words)
{
  return *ret_words = die
      ? g_strdup_printf ("die of %s; its own memory and overheads of timing by ", die->name)
      : g_strdup ("");
}

/* Of GEMMs in a format: names of the checks, what the table says of it, and what the fit promises from 1 GFLOP on. */
typedef struct {
  guint slot;
  const char *all, *large, *training, *words;
  double promised, centred;
} GemmFormat;

static const GemmFormat *
gemm_format (LsDtype dtype)
{
  static const GemmFormat bf16
      = { LS_KERNEL_GEMM, "gemm", "gemm, >= 1 GFLOP", "gemm, m >= 2048, n k >= 512", "bf16, for fp16 too",
          0.07,           0.02 },
      fp8 = { LS_ENTRY_GEMM_FP8,
              "gemm fp8",
              "gemm fp8, >= 1 GFLOP",
              "gemm fp8, m >= 2048, n k >= 512",
              "fp8",
              0.06,
              0.02 },
      nvfp4 = { LS_ENTRY_GEMM_NVFP4,
                "gemm nvfp4",
                "gemm nvfp4, >= 1 GFLOP",
                "gemm nvfp4, m >= 2048, n k >= 512",
                "nvfp4",
                0.07,
                0.02 };
  return dtype == LS_DTYPE_FP8 ? &fp8 : dtype == LS_DTYPE_NVFP4 ? &nvfp4 : &bf16;
}

static char *
read_gemms (const LsRecipe *r, LsDtype dtype, LsSampleSink *sink)
{
  if (dtype == LS_DTYPE_NVFP4) {
    char *file = g_strdup_printf ("gemm_%s_fp8block_nvfp4.csv", r->name);
    g_autofree char *path = g_build_filename ("blackwell", file, NULL);
    ls_samples_gemm_nvfp4 (sink, path);
    return file;
  }
  char *file = g_strdup_printf ("gemm_%s.csv", r->name);
  ls_samples_read (sink, file, r->name, dtype == LS_DTYPE_FP8 ? is_fp8 : is_16_bit);
  return file;
}

/* casts: of the input, in the same timing: the launch of one kernel is that of the bf16 GEMM, the rest belongs to the cast.
 */
static void
fit_gemms (LsRecipe *r, LsDtype dtype, const LsRecipe *die, const LsKindFit *library, GArray *samples,
           bool casts, const char *words)
{
  const GemmFormat *f = gemm_format (dtype);
  LsKindFit *fit = &r->calibration.kind[f->slot];
  g_autofree char *of_whom = NULL;
  *fit = *library;
  fit->launch = ls_dtype_is_scaled (dtype) ? r->calibration.kind[LS_KERNEL_GEMM].launch : 0;
  guint all = ls_dtype_is_scaled (dtype) ? GEMM_FREE & ~(guint) LS_FREE_LAUNCH : GEMM_FREE;
  all |= casts ? LS_FREE_SIDE | LS_FREE_HOST : 0;
  ls_fit_solve (fit, start_from (fit, die, f->slot, all, OF_THE_MEMBER), &r->gpu, samples, NO_PRIOR);
  ls_recipe_set_source (r, f->slot, "%s%s, all shapes, robust fit; hold-out by (n,k)", whose (die, &of_whom),
                        words);
  ls_recipe_add_check (r, f->all, f->slot, NULL, samples, 0.1, 0);
  ls_recipe_add_check (r, f->large, f->slot, has_1_gflop, samples, f->promised, f->centred);
  ls_recipe_add_check (r, f->training, f->slot, ls_sample_is_training_gemm, samples, 0.065, 0);
  if (!ls_dtype_is_scaled (dtype))
    copy_gemm_to_batched (r, samples);
}

void
ls_recipe_fit_gemm_samples (LsRecipe *r, LsDtype dtype, const LsKindFit *library, GArray *samples, bool casts,
                            const char *words)
{
  fit_gemms (r, dtype, NULL, library, samples, casts, words);
}

void
ls_recipe_fit_gemm (LsRecipe *r, const char *folder, LsDtype dtype, const LsRecipe *die, LsDiagList *diags)
{
  bool casts = ls_dtype_is_scaled (dtype);
  LsSampleSink sink = ls_samples_sink (folder, diags);
  g_autofree char *file = read_gemms (r, dtype, &sink);
  g_autofree char *words
      = g_strdup_printf ("%s, %s (TensorRT-LLM, isolated loops%s)", file, gemm_format (dtype)->words,
                         casts ? "; its cast of the input fitted apart" : "");
  fit_gemms (r, dtype, die, &(const LsKindFit) { 0 }, sink.samples, casts, words);
  g_array_unref (sink.samples);
}

void
ls_recipe_fit_attention_samples (LsRecipe *r, LsDtype dtype, double width_half, guint more_free,
                                 const LsRecipe *die, GArray *samples, const char *words)
{
  bool fp8 = dtype == LS_DTYPE_FP8;
  guint slot = fp8 ? LS_ENTRY_ATTENTION_FP8 : LS_KERNEL_ATTENTION_FWD;
  LsKindFit *fit = &r->calibration.kind[slot];
  *fit = (LsKindFit) {
    .width_half = ls_fit_round (width_half, 4),
    .memory_efficiency = r->calibration.kind[LS_KERNEL_ELEMENTWISE].memory_efficiency,
    .launch = r->calibration.kind[LS_KERNEL_GEMM].launch,
  };
  guint all = ATTENTION_FREE | (width_half > 0 ? 0 : LS_FREE_WIDTH) | more_free;
  g_autofree char *of_whom = NULL;
  ls_fit_solve (fit, start_from (fit, die, slot, all, OF_THE_MEMBER), &r->gpu, samples, NO_PRIOR);
  ls_recipe_set_source (
      r, slot,
      "%s%s, %s (TensorRT-LLM prefill; its rotation and cache copy fitted apart), memory and launch of elementwise "
      "and gemm; hold-out by (heads,kv_heads,head_dim)",
      whose (die, &of_whom), words, fp8 ? "fp8" : "bf16");
  ls_recipe_add_check (r, fp8 ? "attention-fwd fp8" : "attention-fwd", slot, NULL, samples, 0.1, 0);
  ls_recipe_add_check (r, fp8 ? "attention-fwd fp8, seq >= 1024" : "attention-fwd, seq >= 1024", slot,
                       is_long_attention, samples, 0.08, 0.02);
}

void
ls_recipe_fit_attention (LsRecipe *r, const char *folder, LsDtype dtype, double width_half,
                         const LsRecipe *die, LsDiagList *diags)
{
  g_autofree char *file = g_strdup_printf ("attn_fwd_%s.csv", r->name);
  LsSampleSink sink = ls_samples_sink (folder, diags);
  ls_samples_read (&sink, file, r->name, dtype == LS_DTYPE_FP8 ? is_fp8 : is_16_bit);
  guint wide = g_str_equal (r->name, "b200") ? LS_FREE_WIDE : 0; /* the only table with wide heads */
  ls_recipe_fit_attention_samples (r, dtype, width_half, wide, die, sink.samples, file);
  g_array_unref (sink.samples);
}

void
ls_recipe_set_backward (LsRecipe *r, double ratio, const char *why)
{
  const LsKindFit *forward = &r->calibration.kind[LS_KERNEL_ATTENTION_FWD];
  LsKindFit *backward = &r->calibration.kind[LS_KERNEL_ATTENTION_BWD];
  *backward = *forward;
  backward->is_fitted = false;
  backward->compute_efficiency = ls_fit_round (forward->compute_efficiency * ratio, 4);
  backward->min_work = backward->max_work = 0;
  backward->timed_efficiency = 0;
  backward->timed_host = 0;
  backward->mape = NAN;
  ls_recipe_set_source (r, LS_KERNEL_ATTENTION_BWD, "no data: forward times %.3f, %s", ratio, why);
}

/* ---- streaming kernels ---- */

void
ls_recipe_copy (LsRecipe *r, guint to, const LsKindFit *from, const char *why)
{
  LsKindFit *fit = &r->calibration.kind[to];
  *fit = *from;
  fit->is_fitted = false;
  fit->mape = NAN;
  fit->min_work = fit->max_work = 0;
  fit->timed_host = 0;
  ls_recipe_set_source (r, to, "no data: %s", why);
}

void
ls_recipe_copy_streams (LsRecipe *r)
{
  const LsKindFit *stream = &r->calibration.kind[LS_KERNEL_ELEMENTWISE];
  LsKindFit cold = *stream; /* what was not touched since the last step */
  cold.cache_bytes = cold.cache_speed = 0;
  ls_recipe_copy (r, LS_KERNEL_SOFTMAX, stream,
                  "as elementwise: a fused softmax reads and writes its rows once. PyTorch's own, in "
                  "llmcompass_softmax_A100.csv, reaches 0.50 of bandwidth and is not what Megatron runs");
  ls_recipe_copy (r, LS_KERNEL_REDUCTION, stream, "as elementwise, streams its input");
  ls_recipe_copy (r, LS_KERNEL_CROSS_ENTROPY, stream, "as elementwise, each pass over the logits streams");
  ls_recipe_copy (r, LS_KERNEL_OPTIMIZER, &cold,
                  "as elementwise from HBM; 0.85 of bandwidth is an estimate for a fused Adam on the A100");
  if (r->adam_s > 0)
    ls_recipe_set_optimizer (r);
  ls_recipe_copy (r, LS_KERNEL_MEMSET, &cold, "as elementwise from HBM");
}

/* How arithmetic hides behind traffic where a streaming kernel has as much of both. PyTorch's dropout of
 * 2 x 4096 x 4096 fp16 on a V100 (by inference: faster than the memory of the laptop that is the other machine
 * there): 572.4 GB/s of 4 bytes an element, 6.99 ps (facebookresearch/xformers, pull request 14). Its 5 bytes take 6.05 ps at
 * 0.918 of 900 GB/s (NeuSight's fp32 add), its 43 FLOPs (model/operators_build.c) 2.74 ps at 15.7
 * TFLOP/s: (6.05^p + 2.74^p)^(1/p) = 6.99 with p = 1.65. tests/unit/compute/test_cost.c computes it. */
#define STREAM_OVERLAP 1.65

void
ls_recipe_overlap_streams (LsRecipe *r)
{
  r->calibration.kind[LS_KERNEL_ELEMENTWISE].overlap = STREAM_OVERLAP;
  r->calibration.kind[LS_KERNEL_NORM].overlap = STREAM_OVERLAP;
}

void
ls_recipe_fit_embedding (LsRecipe *r, const char *folder, const char *const *files, LsDiagList *diags)
{
  LsSampleSink sink = ls_samples_sink (folder, diags);
  for (guint i = 0; files[i]; i++)
    ls_samples_vidur_embedding (&sink, files[i]);
  LsKindFit *fit = &r->calibration.kind[LS_KERNEL_EMBEDDING];
  *fit = (LsKindFit) { .compute_efficiency = 1, .launch = STREAM_LAUNCH };
  ls_fit_solve (fit, LS_FREE_MEMORY, &r->gpu, sink.samples, NO_PRIOR);

  LsFitError in_sample = ls_fit_error (fit, &r->gpu, sink.samples, false, NULL);
  ls_recipe_set_source (
      r, LS_KERNEL_EMBEDDING,
      "vidur_mlp_*: PyTorch gather of the vocabulary-parallel embedding, tp 1; its three widths "
      "leave nothing to hold out; error in the fit %.1f %%; the scatter of the backward is assumed "
      "to run like it",
      100 * in_sample.mape);
  ls_recipe_add_check (r, "embedding", LS_KERNEL_EMBEDDING, NULL, sink.samples, 0.05, 0);
  g_array_unref (sink.samples);
}

/* With an efficiency of the HBM given, only what the L2 saves is fitted. */
void
ls_recipe_fit_elementwise (LsRecipe *r, const char *folder, double hbm_efficiency, const char *why,
                           LsDiagList *diags)
{
  LsSampleSink sink = ls_samples_sink (folder, diags);
  ls_samples_read (&sink, "elementwise_vidur.csv", r->name, is_usual_stream);
  if (hbm_efficiency <= 0)
    ls_samples_llmcompass_gelu (&sink, "llmcompass_gelu_A100.csv");

  LsKindFit *fit = &r->calibration.kind[LS_KERNEL_ELEMENTWISE];
  *fit = (LsKindFit) { .compute_efficiency = 1,
                       .memory_efficiency = ls_fit_round (hbm_efficiency, 3),
                       .launch = STREAM_LAUNCH };
  guint free_mask
      = LS_FREE_CACHE | LS_FREE_CACHE_SPEED | (hbm_efficiency > 0 ? 0 : LS_FREE_MEMORY | LS_FREE_HOST);
  ls_fit_solve (fit, free_mask, &r->gpu, sink.samples, NO_PRIOR);
  ls_recipe_set_source (r, LS_KERNEL_ELEMENTWISE, "%s", why);
  ls_recipe_add_check (r, "elementwise, >= 8 MB", LS_KERNEL_ELEMENTWISE, is_usual_stream, sink.samples, 0.15,
                       0);
  g_array_unref (sink.samples);
}

void
ls_recipe_fit_norm (LsRecipe *r, const char *folder, LsDiagList *diags)
{
  LsSampleSink sink = ls_samples_sink (folder, diags);
  ls_samples_llmcompass_rows (&sink, "llmcompass_layernorm_A100.csv", LS_KERNEL_NORM);
  LsKindFit *fit = &r->calibration.kind[LS_KERNEL_NORM];
  *fit = (LsKindFit) { .compute_efficiency = 1, .launch = STREAM_LAUNCH };
  ls_fit_solve (fit, LS_FREE_MEMORY | LS_FREE_HOST, &r->gpu, sink.samples, NO_PRIOR);
  ls_recipe_set_source (
      r, LS_KERNEL_NORM,
      "llmcompass_layernorm_A100.csv (PyTorch, fp16; host time fitted apart); rows above 8192 run at half that "
      "there, which fused kernels for long rows are assumed not to; hold-out by (rows,columns)");
  ls_recipe_add_check (r, "norm", LS_KERNEL_NORM, NULL, sink.samples, 0.12, 0);
  g_array_unref (sink.samples);
}

static void
fit_vllm (LsRecipe *r, const char *folder, guint slot, LsSampleFilter filter, const char *name,
          LsDiagList *diags)
{
  LsSampleSink sink = ls_samples_sink (folder, diags);
  ls_samples_read (&sink, "elementwise_vidur.csv", r->name, filter);
  LsKindFit *fit = &r->calibration.kind[slot];
  *fit = (LsKindFit) { .compute_efficiency = 1 };
  ls_fit_solve (fit, LS_FREE_MEMORY | LS_FREE_LAUNCH | LS_FREE_CACHE | LS_FREE_CACHE_SPEED, &r->gpu,
                sink.samples, NO_PRIOR);
  ls_recipe_set_source (
      r, slot,
      "elementwise_vidur.csv, vLLM's kernel of 2023 from 8 MB on: not what training runs, only for "
      "comparisons; hold-out by (rows,columns)");
  ls_recipe_add_check (r, name, slot, NULL, sink.samples, 0.15, 0);
  g_array_unref (sink.samples);
}

void
ls_recipe_fit_vllm (LsRecipe *r, const char *folder, LsDiagList *diags)
{
  fit_vllm (r, folder, LS_ENTRY_VLLM_RMSNORM, is_vllm_rmsnorm, "vLLM's rmsnorm, >= 8 MB", diags);
  fit_vllm (r, folder, LS_ENTRY_VLLM_SILU_MUL, is_vllm_silu_mul, "vLLM's silu_mul, >= 8 MB", diags);
}

char *
ls_recipe_json (LsRecipe *r)
{
  return ls_calibration_to_json (&r->calibration, r->slot_source, r->around_source, NULL);
}
