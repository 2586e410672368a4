/* What products do inside a step: on a hot chip, by number format, with results of more than 16 bits, and by other kernels than the
 * sweeps time. README.md has the tables and what was found. */
#include <math.h>
#include <string.h>

#include "base/order.h"
#include "compute/measured.h"
#include "recipe.h"
#include "samples.h"

#define HOT_LOOPS "hot_loops.csv"

/* ---- products that were timed on a hot chip, one after another ---- */

enum { GPU, DTYPE, PRODUCTS, MS, N_COLUMNS };

/* "MxNxK"; false: it is none. */
static bool
read_product (const char *text, LsDtype dtype, LsKernel *ret_kernel)
{
  g_auto (GStrv) sizes = g_strsplit (text, "x", -1);
  uint64_t size[3];
  bool ok = g_strv_length (sizes) == G_N_ELEMENTS (size);
  for (guint i = 0; ok && i < G_N_ELEMENTS (size); i++)
    ok = g_ascii_string_to_unsigned (sizes[i], 10, 1, 1000000, &size[i], NULL);
  if (ok)
    *ret_kernel = ls_kernel_gemm ("gemm", dtype, size[0], size[1], size[2], 1, 2, false);
  return ok;
}

/* Seconds; NaN: the text is wrong. */
static double
predicted_s (const char *products, LsDtype dtype, const LsCalibration *c, const LsGpu *gpu)
{
  g_auto (GStrv) all = g_strsplit (products, "+", -1);
  double s = all[0] ? 0 : NAN;
  for (char **at = all; *at && !isnan (s); at++) {
    LsKernel kernel;
    s = read_product (*at, dtype, &kernel)
        ? s
            + ls_time_to_s (
                ls_kernel_cost_by (ls_calibration_fit (c, &kernel), LS_FIT_HOT, gpu, &kernel).alone)
        : NAN;
  }
  return s;
}

/* Rows of `path` with that GPU and number format: gpu, dtype, products ("MxNxK+MxNxK": one after another, 16-bit results),
 * milliseconds of all of them together. The median over the rows of the time that the fits predict of a hot chip over the
 * measured one; NaN: no such row, or, with a diagnostic, a bad one. */
static double
hot_loops_ratio (const char *path, const char *gpu_name, LsDtype dtype, const LsCalibration *calibration,
                 const LsGpu *gpu, LsDiagList *diags)
{
  g_autoptr (LsCsv) csv = ls_csv_parse (path, NULL, -1, diags);
  g_autoptr (GArray) ratios = g_array_new (FALSE, FALSE, sizeof (double));
  static const char *const names[] = { "gpu", "dtype", "products", "ms" };
  int column[N_COLUMNS];
  if (!ls_samples_find_columns (csv, diags, names, column, N_COLUMNS))
    return NAN;
  for (guint r = 0; r < ls_csv_n_rows (csv); r++) {
    if (strcmp (ls_csv_cell (csv, r, (guint) column[GPU]), gpu_name) != 0
        || strcmp (ls_csv_cell (csv, r, (guint) column[DTYPE]), ls_dtype_name (dtype)) != 0)
      continue;
    double s = predicted_s (ls_csv_cell (csv, r, (guint) column[PRODUCTS]), dtype, calibration, gpu);
    double ratio = s / (1e-3 * g_ascii_strtod (ls_csv_cell (csv, r, (guint) column[MS]), NULL));
    if (!isfinite (ratio)) {
      ls_csv_error (csv, r, (guint) column[PRODUCTS], diags, "expected MxNxK, joined by +, and milliseconds");
      return NAN;
    }
    g_array_append_val (ratios, ratio);
  }
  return ratios->len > 0 ? ls_median ((double *) (void *) ratios->data, ratios->len) : NAN;
}

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
    r->calibration.kind[slots[i]].wide_exposed = exposed;
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
  double ratio = hot_loops_ratio (path, r->name, dtype, &r->calibration, &r->gpu, diags);
  return isnan (ratio) ? 0 : ls_fit_round (fmin (0.999, ratio) * in_layers, 3);
}

void
ls_recipe_part_formats (LsRecipe *r, const char *folder, const char *gpu_name, LsDiagList *diags)
{
  g_autofree char *path = g_build_filename (folder, HOT_LOOPS, NULL);
  LsCalibration *c = &r->calibration;
  double bf16 = hot_loops_ratio (path, gpu_name, LS_DTYPE_BF16, c, &r->gpu, diags),
         fp8 = hot_loops_ratio (path, gpu_name, LS_DTYPE_FP8, c, &r->gpu, diags);
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
  LsKindFit *fit = &r->calibration.kind[LS_ENTRY_GEMM_NVFP4];
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
  LsKindFit cool = r->calibration.kind[LS_ENTRY_GEMM_NVFP4];
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
  LsKindFit *fit = &r->calibration.kind[LS_ENTRY_GEMM_FP8_BLOCKS];
  *fit = r->calibration.kind[LS_ENTRY_GEMM_FP8];
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
  r->calibration.kind[LS_ENTRY_GEMM_FP8_BLOCKS] = from->calibration.kind[LS_ENTRY_GEMM_FP8_BLOCKS];
  ls_recipe_set_source (r, LS_ENTRY_GEMM_FP8_BLOCKS, "as on the H100, the same chip: %s",
                        from->slot_source[LS_ENTRY_GEMM_FP8_BLOCKS]);
}
