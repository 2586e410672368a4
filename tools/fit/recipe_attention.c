/* Fits of attention to what was printed of implementations of it (README.md of this folder). */
#include <math.h>
#include <string.h>

#include "data/machines/machines.h"
#include "recipe.h"

#define SPILLING_ABOVE 64
#define PROMISED_MAPE  0.12

/* Kernels for heads of 32, 64, 96 and 128: Dao-AILab/flash-attention, csrc/flash_attn/src, HEADDIM_SWITCH. */
#define FA2_STEP 32

/* FlashAttention and its version in Triton spill registers with heads of 128. */
static bool
spills (LsAttentionKernel kernel)
{
  return kernel == LS_ATTENTION_KERNEL_FA1 || kernel == LS_ATTENTION_KERNEL_TRITON;
}

static bool
has_two_widths (const GArray *samples)
{
  for (guint i = 1; i < samples->len; i++)
    if (g_array_index (samples, LsTimedKernel, i).kernel.k
        != g_array_index (samples, LsTimedKernel, 0).kernel.k)
      return true;
  return false;
}

/* A forward that is printed apart has few rows, none with a mask: what a mask and a length cost is as with FlashAttention. */
static bool
is_like_fa1 (LsAttentionKernel kernel, bool is_backward)
{
  return kernel == LS_ATTENTION_KERNEL_TRITON && !is_backward;
}

/* What is not fitted, and which coefficients are. */
static guint
start (const LsRecipe *r, LsAttentionKernel kernel, const LsFigure *figure, const GArray *samples,
       LsKindFit *fit)
{
  LsCalibration copy = r->calibration; /* for a pointer that may be written through */
  bool as_fa1 = is_like_fa1 (kernel, figure->is_backward), has_widths = has_two_widths (samples);
  *fit = as_fa1 ? copy.kind[ls_entry_attention (LS_ATTENTION_KERNEL_FA1, 0)]
                : copy.kind[LS_KERNEL_ATTENTION_FWD];
  fit->timed_efficiency = 0;
  fit->timed_host = 0;
  fit->wide_slow = 0;
  fit->throttle = fit->burst
      = 0; /* their products are synchronous, far from what power limits: as on the H20 */
  fit->width_half = spills (kernel) ? 0 : figure->forward ? figure->forward->width_half : fit->width_half;
  fit->wide_head = spills (kernel) && has_widths ? SPILLING_ABOVE : 0;
  fit->width_step = figure->head_step;
  guint width = !has_widths ? 0 : spills (kernel) ? LS_FREE_WIDE : LS_FREE_WIDTH;
  return LS_FREE_COMPUTE | width | (as_fa1 ? 0 : LS_FREE_DEPTH | LS_FREE_TAIL);
}

static void
set_source (LsRecipe *r, guint slot, guint free_mask, const LsFigure *figure)
{
  bool has_widths = free_mask & (LS_FREE_WIDE | LS_FREE_WIDTH);
  double own_width = r->calibration.kind[LS_KERNEL_ATTENTION_FWD].width_half;
  bool as_forward = figure->forward && figure->forward->width_half != own_width;
  ls_recipe_set_source (r, slot, "attention_figures.csv%s%s; %s%s; nothing held out",
                        figure->only_causal ? ", causal alone" : "",
                        figure->as ? ": the A100's, times what FlashAttention gains here" : "",
                        !(free_mask & LS_FREE_DEPTH) ? "mask and length as fa1_fwd"
                            : has_widths             ? "heads of 64 and 128"
                            : as_forward             ? "heads of one width, others as forward"
                                                     : "softmax as attention-fwd",
                        figure->head_step > 0 ? "; width_step: HEADDIM_SWITCH of flash-attention" : "");
}

/* Whether forward and backward are printed apart. */
static bool
fit_pass (LsRecipe *r, const char *folder, LsAttentionKernel kernel, LsFigure *figure, LsDiagList *diags)
{
  guint slot = ls_entry_attention (kernel, figure->is_backward);
  const char *key = ls_entry_key (slot);
  g_autofree char *name = g_strndup (key, strlen (key) - strlen ("_fwd"));
  g_autoptr (GArray) samples = g_array_new (FALSE, TRUE, sizeof (LsTimedKernel));
  LsSampleSink sink = { folder, samples, diags };
  figure->kernel = name;
  bool has_passes = ls_samples_attention_figures (&sink, "attention_figures.csv", figure);
  LsKindFit fit;
  guint free_mask = start (r, kernel, figure, samples, &fit);
  ls_fit_solve (&fit, free_mask, &r->gpu, samples, 0);
  r->calibration.kind[slot] = fit;
  set_source (r, slot, free_mask, figure);
  ls_recipe_add_check (r, key, slot, NULL, samples, PROMISED_MAPE, 0);
  return has_passes;
}

static void
fit_passes (LsRecipe *r, const char *folder, LsAttentionKernel kernel, LsFigure forward, LsDiagList *diags)
{
  bool has_passes = fit_pass (r, folder, kernel, &forward, diags);
  LsFigure backward = forward;
  backward.is_backward = true;
  backward.forward = has_passes ? &r->calibration.kind[ls_entry_attention (kernel, 0)] : NULL;
  fit_pass (r, folder, kernel, &backward, diags);
}

void
ls_recipe_fit_attention_kernel (LsRecipe *r, const char *folder, LsAttentionKernel kernel, const char *as,
                                LsDiagList *diags)
{
  double head_step = kernel == LS_ATTENTION_KERNEL_FA2 ? FA2_STEP : 0;
  fit_passes (r, folder, kernel,
              (LsFigure) { .gpu = r->name, .as = as, .chip = &r->gpu, .head_step = head_step }, diags);
}

void
ls_recipe_fit_rocm_attention (LsRecipe *r, const char *folder, LsDiagList *diags)
{
  const LsFigure causal = { .gpu = r->name, .chip = &r->gpu, .only_causal = true };
  fit_passes (r, folder, LS_ATTENTION_KERNEL_AOTRITON, causal, diags);
  fit_passes (r, folder, LS_ATTENTION_KERNEL_FA2, causal, diags);
}

/* ---- cuDNN's ---- */

#define CUDNN_TABLE "sdpa_cudnn_frontend.csv"

/* Calls are timed one by one, on a chip that did little in between: what makes those of 30 ms and more slower on Blackwell is a limit of
 * power that is reached inside the call. Of 2, 5, 10 and 20 ms until then the calls that are held out prefer this. */
#define CUDNN_BURST (10 * LS_MS)

typedef struct {
  LsAttentionKernel kernel;
  const char *dtype, *ratio_dtype, *name[2];
} CudnnFormat;

static const CudnnFormat cudnn_formats[] = {
  { LS_ATTENTION_KERNEL_CUDNN, "bfloat16", "bfloat16", { "cudnn_fwd", "cudnn_bwd" } },
  { LS_ATTENTION_KERNEL_CUDNN_FP8, "fp8", "fp8", { "cudnn_fp8_fwd", "cudnn_fp8_bwd" } },
  { LS_ATTENTION_KERNEL_CUDNN_MXFP8, "mxfp8", "fp8", { "cudnn_mxfp8_fwd", "cudnn_mxfp8_bwd" } },
};

#define HEAD_STEP_SOURCE                                                                                                                      \
  "; width_step: heads of 80 and 96 run kernels named 64x64x128 and 64x128x128, as those of 128 do (profiles of training steps on one H100, " \
  "torch 2.11, November 2026)"

static double
head_step (const CudnnFormat *format, const LsCudnnOf *of)
{
  return format->kernel == LS_ATTENTION_KERNEL_CUDNN ? of->head_step : 0;
}

static void
set_cudnn_source (LsRecipe *r, guint slot, const CudnnFormat *format, const LsCudnnOf *of,
                  const LsCudnnRows *rows)
{
  const char *sums = rows->is_backward && format->kernel != LS_ATTENTION_KERNEL_CUDNN
      ? "; its sum of K's and V's gradients over the heads of a group apart"
      : "",
             *mask = rows->only_causal ? ", causal alone: the whole square is 1.3 to 1.8 times as fast" : "";
  g_autofree char *words = g_strdup_printf (
      CUDNN_TABLE ", %s, %s%s (cuDNN 9.19 on H200, 9.22 on others, in calls one by one%s), no windows",
      of->gpu, format->dtype, mask, sums);
  if (of->own_table)
    ls_recipe_set_source (
        r, slot,
        "no data: %s, times %.3f, what TensorRT-LLM's attention forward in %s takes on %s over %s (calls from 1 ms on)",
        words, rows->slower, format->ratio_dtype, r->name, of->name);
  else
    ls_recipe_set_source (r, slot, "%s; hold-out by (seq,heads,kv_heads)%s", words,
                          head_step (format, of) > 0 ? HEAD_STEP_SOURCE : "");
}

/* Of a chip that was not measured: a stated guess. */
static void
make_guess (LsKindFit *fit)
{
  fit->is_fitted = false;
  fit->mape = NAN;
  fit->min_work = fit->max_work = 0;
  fit->timed_efficiency = 0;
}

static void
fit_cudnn_pass (LsRecipe *r, const CudnnFormat *format, const LsCudnnOf *of, const LsCudnnRows *rows,
                LsSampleSink *sink)
{
  guint slot = ls_entry_attention (format->kernel, rows->is_backward);
  LsKindFit *fit = &r->calibration.kind[slot];
  double stream = r->calibration.kind[LS_KERNEL_ELEMENTWISE].memory_efficiency;
  bool has_sums = rows->is_backward && format->kernel != LS_ATTENTION_KERNEL_CUDNN;
  *fit = (LsKindFit) { .memory_efficiency = stream,
                       .timed_efficiency = has_sums ? stream : 0,
                       .burst = of->is_hot_when_long ? CUDNN_BURST : 0,
                       .launch = rows->launch,
                       .width_step = head_step (format, of) };
  guint width = has_two_widths (sink->samples) ? LS_FREE_WIDTH | LS_FREE_WIDE : 0;
  ls_fit_solve (fit,
                LS_FREE_COMPUTE | LS_FREE_DEPTH | LS_FREE_TAIL | LS_FIT_SCATTERED | width
                    | (of->is_hot_when_long ? LS_FREE_THROTTLE : 0),
                &r->gpu, sink->samples, 0);
  set_cudnn_source (r, slot, format, of, rows);
  if (of->own_table)
    make_guess (fit);
  else
    ls_recipe_add_check (r, format->name[rows->is_backward], slot, NULL, sink->samples,
                         rows->only_causal ? 0.15 : 0.05, 0);
}

static void
fit_cudnn (LsRecipe *r, const char *folder, const CudnnFormat *format, const LsCudnnOf *of, bool is_backward,
           LsDiagList *diags)
{
  LsSampleSink sink = { folder, g_array_new (FALSE, TRUE, sizeof (LsTimedKernel)), diags };
  LsCudnnRows rows
      = { .gpu = of->gpu,
          .dtype = format->dtype,
          .is_backward = is_backward,
          .only_causal = is_backward && format->kernel == LS_ATTENTION_KERNEL_CUDNN_FP8 && of->has_slow_mask,
          .launch = r->calibration.kind[LS_KERNEL_GEMM].launch,
          .slower = 1 };
  if (of->own_table)
    rows.slower = ls_fit_round (
        ls_samples_attention_ratio (&sink, of->own_table, of->its_table, format->ratio_dtype), 4);
  ls_samples_cudnn_attention (&sink, "blackwell/" CUDNN_TABLE, &rows);
  if (sink.samples->len > 0)
    fit_cudnn_pass (r, format, of, &rows, &sink);
  g_array_unref (sink.samples);
}

void
ls_recipe_fit_cudnn (LsRecipe *r, const char *folder, const LsCudnnOf *of, LsDiagList *diags)
{
  for (guint i = 0; i < G_N_ELEMENTS (cudnn_formats); i++)
    for (guint backward = 0; backward < 2; backward++)
      fit_cudnn (r, folder, &cudnn_formats[i], of, backward, diags);
}

void
ls_recipe_take_cudnn (LsRecipe *r, const LsRecipe *from)
{
  LsCalibration copy = from->calibration; /* for a pointer that may be written through */
  for (guint slot = ls_entry_attention (LS_ATTENTION_KERNEL_CUDNN, false); slot < LS_N_ENTRIES; slot++)
    if (from->slot_source[slot]) {
      r->calibration.kind[slot] = copy.kind[slot];
      ls_recipe_set_source (r, slot, "as on the %s, the same die: %s", from->name, from->slot_source[slot]);
    }
}

static void
drop_checks (LsRecipe *r, guint slot)
{
  for (guint i = r->checks->len; i-- > 0;)
    if (g_array_index (r->checks, LsFitCheck, i).slot == slot) {
      g_array_unref (g_array_index (r->checks, LsFitCheck, i).samples);
      g_array_remove_index (r->checks, i);
    }
}

/* Duration of a call up to which a loop of it stays cool. Forward, the loops of 32768 tokens (3.4 ms a call) are as fast as those of 4096, those
 * of 131072 (31 ms and more) are 17 % slower: anything from 3.5 to 16 ms fits as well, with a throttle of 0.21 to 0.46, and of
 * 3.5, 5, 8 and 12 ms the calls that are held out prefer this. They come after 10 of their kind or more: 0.1 s of load. */
#define LOOP_BURST (5 * LS_MS)

/* Instead of the fit to TensorRT-LLM's kernels, of which only what wide heads cost is left. The
 * heads of both tables are 128 wide: a share of peak and the time of softmax cannot be told
 * apart, and the former is assumed to be 1. The backward has the softmax of the forward. Calls of
 * 131072 tokens heat the chip by themselves; without a throttle the held-out forward is 13 % off, with it 4 %.
 * Several minima: from one start both ended on the sides of their ranges. */
void
ls_recipe_fit_training_attention (LsRecipe *r, const char *folder, LsDiagList *diags)
{
  drop_checks (r, LS_KERNEL_ATTENTION_FWD);
  static const LsKernelKind kinds[] = { LS_KERNEL_ATTENTION_FWD, LS_KERNEL_ATTENTION_BWD };
  static const char *const names[] = { "attention-fwd, cuDNN", "attention-bwd, cuDNN" };
  for (guint backward = 0; backward < 2; backward++) {
    LsSampleSink sink = { folder, g_array_new (FALSE, TRUE, sizeof (LsTimedKernel)), diags };
    ls_samples_simumax_attention (&sink, "simumax_b200_attention.csv", backward);
    LsKindFit *fit = &r->calibration.kind[kinds[backward]];
    *fit = r->calibration.kind[LS_KERNEL_ATTENTION_FWD];
    fit->timed_efficiency = 0;
    fit->compute_efficiency = 1;
    fit->burst = LOOP_BURST;
    ls_fit_solve (fit,
                  LS_FREE_DEPTH | LS_FREE_TAIL | LS_FREE_HOST | LS_FREE_THROTTLE | LS_FIT_SCATTERED
                      | (backward ? LS_FREE_COMPUTE : LS_FREE_WIDTH),
                  &r->gpu, sink.samples, 0);
    ls_recipe_set_source (
        r, kinds[backward],
        "simumax_b200_attention.csv, bf16, %s (cuDNN by Transformer Engine, kernel by kernel, heads of 128); "
        "wider heads as in attn_fwd_b200.csv; hold-out by (seq,heads,kv_heads)",
        backward ? "backward" : "forward");
    ls_recipe_add_check (r, names[backward], kinds[backward], NULL, sink.samples, 0.2, 0);
    g_array_unref (sink.samples);
  }
}
