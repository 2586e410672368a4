/* What products do inside a step: on a hot chip, by number format, and with results of more than 16 bits. README.md has the
 * tables and what was found. */
#include <math.h>

#include "hot_loops.h"
#include "recipe.h"

#define HOT_LOOPS "hot_loops.csv"

/* ---- of training sizes, in vidur's layers, times `correction` ---- */

void
ls_recipe_fit_sustained (LsRecipe *r, const char *folder, const char *const *mlp, double correction,
                         LsDiagList *diags)
{
  LsSampleSink sink = ls_samples_sink (folder, diags);
  ls_samples_read (&sink, "gemm_vidur.csv", r->name, ls_sample_is_training_gemm);
  for (guint i = 0; mlp[i]; i++)
    ls_samples_read (&sink, mlp[i], r->name, ls_sample_is_training_gemm);
  double ratio = ls_fit_sustained (&r->calibration.kind[LS_KERNEL_GEMM], &r->gpu, sink.samples);
  r->calibration.sustained = ls_fit_round (fmin (0.999, (isnan (ratio) ? 1 : ratio) * correction), 3);
  ls_recipe_add_check (r, "vidur gemm, m >= 2048, n k >= 512", LS_KERNEL_GEMM, NULL, sink.samples, 0.15, 0);
  g_array_unref (sink.samples);
}

/* ---- SimuMax's loops ---- */

static GArray *
not_held_out (const GArray *samples)
{
  GArray *some = g_array_new (FALSE, TRUE, sizeof (LsTimedKernel));
  for (guint i = 0; i < samples->len; i++)
    if (!g_array_index (samples, LsTimedKernel, i).held_out)
      g_array_append_vals (some, &g_array_index (samples, LsTimedKernel, i), 1);
  return some;
}

static void
check_loops (LsRecipe *r, const char *name, GArray *samples, double sustained)
{
  ls_recipe_add_check (r, name, LS_KERNEL_GEMM, NULL, samples, 0.08, 0.05);
  g_array_index (r->checks, LsFitCheck, r->checks->len - 1).sustained = sustained;
}

/* Of results of 16 bits. */
static double
fit_rate (LsRecipe *r, const LsHotTable *of, LsDiagList *diags)
{
  LsSampleSink sink = ls_samples_sink (of->folder, diags);
  ls_samples_simumax_gemm (&sink, of->file, r->gpu.peak_flops[LS_DTYPE_BF16], false);
  g_autoptr (GArray) some = not_held_out (sink.samples);
  double ratio = ls_fit_sustained (&r->calibration.kind[LS_KERNEL_GEMM], &r->gpu, some);
  double sustained = ls_fit_round (fmin (0.999, isnan (ratio) ? 1 : ratio), 3);
  check_loops (r, "hot loops, 16-bit result", sink.samples, sustained);
  g_array_unref (sink.samples);
  return sustained;
}

/* Predicted over measured, the median, if that share of a wide result is exposed. */
static double
ratio_if (LsKindFit gemm, double exposed, const LsGpu *gpu, const GArray *samples)
{
  gemm.wide_exposed = exposed;
  return ls_fit_sustained (&gemm, gpu, samples);
}

/* The share with which the median is right, to 1 / 1024. */
static double
exposed_of (const LsKindFit *gemm, const LsGpu *gpu, const GArray *samples)
{
  double lo = 0, hi = 1;
  for (guint i = 0; i < 10; i++) {
    double middle = (lo + hi) / 2;
    if (ratio_if (*gemm, middle, gpu, samples) < 1)
      lo = middle;
    else
      hi = middle;
  }
  return (lo + hi) / 2;
}

static double
fit_wide (LsRecipe *r, const LsHotTable *of, double sustained, LsDiagList *diags)
{
  LsGpu gpu = r->gpu;
  LsKindFit gemm = r->calibration.kind[LS_KERNEL_GEMM];
  LsSampleSink sink = ls_samples_sink (of->folder, diags);
  ls_samples_simumax_gemm (&sink, of->file, gpu.peak_flops[LS_DTYPE_BF16], true);
  g_autoptr (GArray) some = not_held_out (sink.samples);
  gemm.compute_efficiency *= sustained;
  gpu.hbm_bytes_per_s = of->hbm_bytes_per_s;
  double exposed = some->len > 0 ? ls_fit_round (exposed_of (&gemm, &gpu, some), 2) : 0;
  check_loops (r, "hot loops, added to fp32", sink.samples, sustained);
  g_array_unref (sink.samples);
  return exposed;
}

LsHotFit
ls_recipe_fit_hot (LsRecipe *r, const LsHotTable *of, LsDiagList *diags)
{
  LsHotFit hot = { .sustained = fit_rate (r, of, diags) };
  hot.wide_exposed = fit_wide (r, of, hot.sustained, diags);
  return hot;
}

void
ls_recipe_set_wide (LsRecipe *r, double exposed, const char *why)
{
  static const guint slots[]
      = { LS_KERNEL_GEMM, LS_KERNEL_BATCHED_GEMM, LS_ENTRY_GEMM_FP8, LS_ENTRY_GEMM_NVFP4 };
  for (guint i = 0; i < G_N_ELEMENTS (slots); i++) {
    g_autofree char *source = g_strdup (r->slot_source[slots[i]]);
    if (!source)
      continue;
    ls_entry_fit (&r->calibration, slots[i])->wide_exposed = exposed;
    ls_recipe_set_source (r, slots[i], "%s; wide_exposed: %s", source, why);
  }
}

void
ls_recipe_take_wide (LsRecipe *r, const LsRecipe *const *from, guint n)
{
  g_autoptr (GString) names = g_string_new (NULL);
  double sum = 0;
  for (guint i = 0; i < n; i++) {
    g_string_append_printf (names, "%s%s", i > 0 ? " and " : "", from[i]->name);
    sum += from[i]->calibration.kind[LS_KERNEL_GEMM].wide_exposed;
  }
  g_autofree char *why
      = g_strdup_printf ("%s %s", n > 1 ? "not measured, the mean of" : "not measured, as", names->str);
  ls_recipe_set_wide (r, ls_fit_round (sum / n, 2), why);
}

/* ---- number formats: loops of Transformer Engine and of Azure ---- */

static double
sustained_in (const LsRecipe *r, const char *path, LsDtype dtype, double in_layers, LsDiagList *diags)
{
  double ratio = ls_hot_loops_ratio (path, r->name, dtype, &r->calibration, &r->gpu, diags);
  return isnan (ratio) ? 0 : ls_fit_round (fmin (0.999, ratio) * in_layers, 3);
}

void
ls_recipe_part_formats (LsRecipe *r, const char *folder, const char *gpu_name, LsDiagList *diags)
{
  g_autofree char *path = g_build_filename (folder, HOT_LOOPS, NULL);
  LsCalibration *c = &r->calibration;
  double bf16 = ls_hot_loops_ratio (path, gpu_name, LS_DTYPE_BF16, c, &r->gpu, diags),
         fp8 = ls_hot_loops_ratio (path, gpu_name, LS_DTYPE_FP8, c, &r->gpu, diags);
  c->sustained_fp8 = c->sustained;
  c->sustained = ls_fit_round (c->sustained * bf16 / fp8, 3);
}

void
ls_recipe_fit_formats (LsRecipe *r, const char *folder, double in_layers, LsDiagList *diags)
{
  g_autofree char *path = g_build_filename (folder, HOT_LOOPS, NULL);
  LsCalibration *c = &r->calibration;
  double sustained = sustained_in (r, path, LS_DTYPE_BF16, in_layers, diags),
         fp8 = sustained_in (r, path, LS_DTYPE_FP8, in_layers, diags),
         nvfp4 = sustained_in (r, path, LS_DTYPE_NVFP4, in_layers, diags);
  c->sustained = sustained > 0 ? sustained : c->sustained;
  c->sustained_fp8 = fp8 > 0 ? fp8 : c->sustained_fp8;
  c->sustained_nvfp4 = nvfp4 > 0 ? nvfp4 : c->sustained_nvfp4;
}
