/* Products that training runs by other kernels than the sweeps time. README.md has the tables and what was found. */
#include <math.h>

#include "recipe.h"

/* ---- nvfp4: TensorRT-LLM's sweep times a kernel of CUTLASS, Transformer Engine calls cuBLASLt ---- */

#define CUBLASLT_TABLE "cublaslt_b200_nvfp4.csv"

static void
forget_checks_of (LsRecipe *r, guint slot)
{
  for (guint i = r->checks->len; i-- > 0;)
    if (g_array_index (r->checks, LsFitCheck, i).slot == slot)
      g_array_remove_index (r->checks, i);
}

static void
set_cublaslt (LsRecipe *r, double over_sweep, const char *where)
{
  LsKindFit *fit = &r->calibration.gemm_nvfp4;
  g_autofree char *sweep = g_strdup (r->slot_source[LS_ENTRY_GEMM_NVFP4]);
  r->cublaslt_nvfp4 = over_sweep;
  fit->compute_efficiency = ls_fit_round (fmin (1, fit->compute_efficiency * over_sweep), 4);
  fit->throttle = 0;
  fit->burst = 0;
  ls_recipe_set_source (r, LS_ENTRY_GEMM_NVFP4,
                        "%s; rate times %.3g, of cuBLASLt over this kernel%s (tools/fit/" CUBLASLT_TABLE ")",
                        sweep, over_sweep, where);
  forget_checks_of (r, LS_ENTRY_GEMM_NVFP4);
}

/* With the throttle off, as in set_cublaslt (). */
static double
cublaslt_over_sweep (const LsRecipe *r, const GArray *samples)
{
  LsKindFit cool = r->calibration.gemm_nvfp4;
  g_autoptr (GArray) large = g_array_new (FALSE, TRUE, sizeof (LsTimedKernel));
  cool.throttle = 0;
  for (guint i = 0; i < samples->len; i++)
    if (ls_sample_is_training_gemm (&g_array_index (samples, LsTimedKernel, i)))
      g_array_append_vals (large, &g_array_index (samples, LsTimedKernel, i), 1);
  return ls_fit_round (ls_fit_sustained (&cool, &r->gpu, large), 3);
}

void
ls_recipe_fit_cublaslt_nvfp4 (LsRecipe *r, const char *folder, LsDiagList *diags)
{
  LsSampleSink sink = ls_samples_sink (folder, diags);
  ls_samples_cublaslt_nvfp4 (&sink, CUBLASLT_TABLE);
  if (sink.samples->len > 0) {
    set_cublaslt (r, cublaslt_over_sweep (r, sink.samples), "");
    ls_recipe_add_check (r, "gemm nvfp4, cuBLASLt", LS_ENTRY_GEMM_NVFP4, ls_sample_is_training_gemm,
                         sink.samples, 0.15, 0);
  }
  g_array_unref (sink.samples);
}

void
ls_recipe_take_cublaslt_nvfp4 (LsRecipe *r, const LsRecipe *from)
{
  if (from->cublaslt_nvfp4 > 0 && r->slot_source[LS_ENTRY_GEMM_NVFP4])
    set_cublaslt (r, from->cublaslt_nvfp4, " on the B200");
}

/* ---- fp8, weight gradients ---- */

/* deepseek-ai/DeepGEMM, pull request 95: "a ~20% speedup compared to the internal CUTLASS implementation", which DeepSeek-V3 was
 * trained with. */
#define DEEPGEMM_OVER_CUTLASS 1.2

/* Tiles, waves and memory as of other fp8 products. */
void
ls_recipe_fit_blocks_wgrad (LsRecipe *r, const char *folder, LsDiagList *diags)
{
  LsSampleSink sink = ls_samples_sink (folder, diags);
  ls_samples_deepgemm_wgrad (&sink, "deepgemm_wgrad.csv");
  LsKindFit *fit = &r->calibration.gemm_fp8_blocks;
  *fit = r->calibration.gemm_fp8;
  fit->throttle = fit->timed_efficiency = 0;
  fit->burst = fit->timed_host = 0;
  ls_fit_solve (fit, LS_FREE_COMPUTE | LS_FREE_DEPTH, &r->gpu, sink.samples, NO_PRIOR);
  fit->compute_efficiency = ls_fit_round (fit->compute_efficiency / DEEPGEMM_OVER_CUTLASS, 4);
  ls_recipe_set_source (
      r, LS_ENTRY_GEMM_FP8_BLOCKS,
      "DeepGEMM's weight gradients (tools/fit/deepgemm_wgrad.csv), of which DeepSeek-V3's own kernels reached "
      "1 / %g (deepseek-ai/DeepGEMM, pull request 95); tiles, waves and memory as gemm_fp8",
      DEEPGEMM_OVER_CUTLASS);
  ls_recipe_add_check (r, "gemm fp8 by blocks, W", LS_ENTRY_GEMM_FP8_BLOCKS, NULL, sink.samples, 0.05, 0);
  g_array_index (r->checks, LsFitCheck, r->checks->len - 1).sustained
      = DEEPGEMM_OVER_CUTLASS; /* back to DeepGEMM's */
  g_array_unref (sink.samples);
}

void
ls_recipe_take_blocks_wgrad (LsRecipe *r, const LsRecipe *from)
{
  r->calibration.gemm_fp8_blocks = from->calibration.gemm_fp8_blocks;
  ls_recipe_set_source (r, LS_ENTRY_GEMM_FP8_BLOCKS, "as on the H100, the same chip: %s",
                        from->slot_source[LS_ENTRY_GEMM_FP8_BLOCKS]);
}
