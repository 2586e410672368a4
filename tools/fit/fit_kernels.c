/* tools/fit/fit_kernels.c — kernel calibrations from measured kernels.
 *
 *     fit_kernels DATA OWN OUT          fit, print the errors, write OUT/gpus.set.json
 *     fit_kernels --check DATA OWN OUT  fit, read the set in OUT back, print its
 *                                       errors; exit 1 if it differs from the fit
 *                                       or a held-out error is above what recipe.c
 *                                       promises; exit 77 (skip) if DATA is not there
 *
 * DATA is the folder kernels/ of the measured data, OWN this one (README.md), OUT
 * topologies/calib.
 *
 * Which data set stands for training? (A100, bf16, n and k of some thousands)
 *
 *   LLMCompass          277 to 293 TFLOP/s   the clock does not fall; 295 is what
 *                                            8192^3 gives with zeros [1]
 *   TensorRT-LLM sweep  255 to 262           an isolated loop; with random data
 *                                            8192^3 gives 257 [1], here 262
 *   MAMF, best shape    271 at 1024 x 10240 x 5120, where the sweep has 279: 0.975
 *                       (H100: 794 at 2048 x 2048 x 13312, sweep 805: 0.987)
 *   vidur               217 to 230           medians of its models; the operators of
 *                                            a layer one after another; on A100 PCIe
 *                                            or SXM, it does not say [2]
 *
 * The sweep has by far the most shapes, so it gives the form of the curve (e and all
 * other coefficients). Training runs GEMMs as vidur does: other kernels in between,
 * weights not in L2, hot. So `sustained` is the median of vidur's rate over the
 * fitted rate at m >= 2048, n and k >= 512: 0.92 on the H100, a DGX. On the A100 it
 * is 0.87, divided by the MAMF ratio of PCIe and SXM cards (252.9 / 271.2): 0.94.
 * That vidur's A100 was a 300 W PCIe card is inferred, not stated: its best rate,
 * 271, is 1.07 times the MAMF of that card, as the sweep's best, 290, is 1.07 times
 * that of the SXM card; and the two GPUs then agree. No training run was looked at.
 *
 * The head_dim at which softmax takes half of attention's time is fitted on the H100,
 * whose table has head_dim 64 and 128, and scaled to the A100, which has only 128, by
 * tensor FLOPs per exponential: 4 k tensor FLOPs go with one exponential, 16 of which
 * an SM does per clock on both (CUDA programming guide, from memory), and 2048 or
 * 4096 dense bf16 FLOPs (stas00/ml-engineering compute/accelerator).
 *
 * Streaming kernels: tables that fit in the L2 are left out of b. LLMCompass times
 * contain a constant host time, which is fitted and dropped, and so is the rotation
 * and KV-cache copy in TensorRT-LLM's attention and the cast in its fp8 linear.
 *
 * [1] H. He, "Strangely, Matrix Multiplications on GPUs Run Faster When Given
 *     'Predictable' Data!", thonking.ai, 2024.
 * [2] microsoft/vidur, docs/profiling.md: its a100 folder does not tell Azure
 *     NC96ads_A100_v4 (PCIe) from DGX A100. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/machines/machines.h"
#include "data/text/write_file.h"
#include "recipe.h"

#define SKIP 77
#define SET  "gpus.set.json"

static void
print_errors (const LsRecipe *r, const LsCalibration *c)
{
  printf ("%s: errors of predicted over measured time, each class with its number of kernels\n", r->name);
  printf ("  %-34s %8s %8s %8s   %8s %8s %8s %8s\n", "class", "fit n", "mape %", "bias %", "held n", "mape %",
          "bias %", "median %");
  for (guint i = 0; i < r->checks->len; i++) {
    const LsFitCheck *check = &g_array_index (r->checks, LsFitCheck, i);
    LsFitError in = ls_recipe_error (r, c, check, false), out = ls_recipe_error (r, c, check, true);
    printf ("  %-34s %8u %8.2f %+8.2f   %8u %8.2f %+8.2f %+8.2f\n", check->name, in.n, 100 * in.mape,
            100 * in.bias, out.n, 100 * out.mape, 100 * out.bias, 100 * out.median);
  }
  printf ("  sustained %.3g of these GEMM rates inside a training step", c->sustained);
  if (c->sustained_fp8 > 0)
    printf (", %.3g in fp8", c->sustained_fp8);
  if (c->sustained_nvfp4 > 0)
    printf (", %.3g in nvfp4", c->sustained_nvfp4);
  printf ("\n\n");
}

/* Classes without held-out families are judged on what they were fitted to. */
static int
count_broken_promises (const LsRecipe *r, const LsCalibration *c)
{
  int n_broken = 0;
  for (guint i = 0; i < r->checks->len; i++) {
    const LsFitCheck *check = &g_array_index (r->checks, LsFitCheck, i);
    LsFitError error = ls_recipe_error (r, c, check, true);
    if (error.n == 0)
      error = ls_recipe_error (r, c, check, false);
    bool is_centred = check->promised_median <= 0 || fabs (error.median) <= check->promised_median;
    if (error.n > 0 && error.mape <= check->promised_mape && is_centred)
      continue;
    fprintf (stderr, "%s: %s: error %.2f %%, median %+.2f %%, over %u kernels; promised %.2f %%, %.2f %%\n",
             r->name, check->name, 100 * error.mape, 100 * error.median, error.n, 100 * check->promised_mape,
             100 * check->promised_median);
    n_broken++;
  }
  return n_broken;
}

/* A fit as a member of the set: without the lines that name its schema and itself. */
static void
append_member (GString *set, LsRecipe *r)
{
  g_autofree char *fitted = ls_recipe_json (r);
  g_auto (GStrv) lines = g_strsplit (fitted, "\n", -1);
  guint last = g_strv_length (lines) - 2; /* "}", before an empty one */
  g_string_append_printf (set, "    \"%s\": {\n", r->name);
  for (guint i = 3; i < last; i++)
    g_string_append_printf (set, "    %s\n", lines[i]);
  g_string_append (set, "    }");
}

static char *
set_of (GPtrArray *all)
{
  GString *set
      = g_string_new ("{\n  \"schema\": \"lockstep.set/1\",\n  \"of\": \"lockstep.calibration/1\",\n"
                      "  \"source\": \"Calibrations of GPUs whose kernels were measured, as tools/fit makes "
                      "them of these: each says of which\",\n  \"members\": {\n");
  for (guint i = 0; i < all->len; i++) {
    g_string_append (set, i > 0 ? ",\n" : "");
    append_member (set, g_ptr_array_index (all, i));
  }
  g_string_append (set, "\n  }\n}\n");
  return g_string_free (set, FALSE);
}

/* The set must be, to the last character, what the fit writes. */
static int
check_set (GPtrArray *all, const char *folder)
{
  g_autofree char *fitted = set_of (all), *shipped = NULL, *path = g_build_filename (folder, SET, NULL);
  if (g_file_get_contents (path, &shipped, NULL, NULL) && strcmp (fitted, shipped) == 0)
    return 0;
  fprintf (stderr, "%s: not what this tool fits, which is\n%s", path, fitted);
  return 1;
}

static int
check (LsRecipe *r, const char *folder, LsDiagList *diags)
{
  g_autofree char *member = g_strconcat (SET "#", r->name, NULL);
  g_autofree char *path = g_build_filename (folder, member, NULL);
  LsCalibration shipped;
  if (!ls_data_file_load (&ls_calibration_file, path, &shipped, diags))
    return 1;
  print_errors (r, &shipped);
  int n_bad = count_broken_promises (r, &shipped);
  ls_calibration_clear (&shipped);
  return n_bad;
}

static int
write_set (GPtrArray *all, const char *folder)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *json = set_of (all), *path = g_build_filename (folder, SET, NULL);
  if (ls_write_text (path, json, &error))
    return 0;
  fprintf (stderr, "%s\n", error->message);
  return 1;
}

static void
free_recipe (gpointer recipe)
{
  ls_recipe_free (recipe);
}

/* Of all GPUs, each behind those whose figures it takes over. */
static GPtrArray *
fit_all (const char *data, const char *own, LsDiagList *diags)
{
  GPtrArray *all = g_ptr_array_new_with_free_func (free_recipe);
  LsRecipe *h100 = ls_recipe_h100 (data, own, diags), *a100 = ls_recipe_a100 (data, own, h100, diags),
           *h200 = ls_recipe_h200 (data, own, h100, diags), *b200 = ls_recipe_b200 (data, own, h100, diags),
           *gb200 = ls_recipe_gb200 (data, b200, diags);
  const LsRecipe *const timed[] = { a100, b200 };
  ls_recipe_take_cudnn (h100, h200);
  ls_recipe_take_wide (h100, timed, G_N_ELEMENTS (timed));
  ls_recipe_take_wide (h200, timed, G_N_ELEMENTS (timed));
  LsRecipe *const measured[] = { h100, a100, h200, b200, gb200 };
  for (guint i = 0; i < G_N_ELEMENTS (measured); i++)
    g_ptr_array_add (all, measured[i]);

  const LsSweptFrom from = { .data = data, .own = own, .relatives = all, .in_layers = h100->in_layers };
  LsRecipe *swept;
  for (guint i = 0; (swept = ls_recipe_swept (i, &from, diags)); i++)
    g_ptr_array_add (all, swept);
  return all;
}

static int
run (const char *data, const char *own, const char *out, bool is_check)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GPtrArray) all = fit_all (data, own, diags);
  int n_bad = 0;
  for (guint i = 0; i < all->len && ls_diag_list_n (diags) == 0; i++) {
    LsRecipe *r = g_ptr_array_index (all, i);
    if (is_check)
      n_bad += check (r, out, diags);
    else
      print_errors (r, &r->calibration);
  }
  if (ls_diag_list_n (diags) == 0)
    n_bad += is_check ? check_set (all, out) : write_set (all, out);
  g_autofree char *trouble = ls_diag_list_format (diags);
  fputs (trouble, stderr);
  return n_bad > 0 || ls_diag_list_n (diags) > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

int
main (int argc, char **argv)
{
  bool is_check = argc == 5 && strcmp (argv[1], "--check") == 0;
  if (argc != 4 && !is_check) {
    fprintf (stderr, "usage: fit_kernels [--check] DATA OWN OUT\n");
    return 2;
  }
  const char *data = argv[argc - 3], *own = argv[argc - 2], *out = argv[argc - 1];
  if (is_check && !g_file_test (data, G_FILE_TEST_IS_DIR)) {
    printf ("skipped: measured data not here\n");
    return SKIP;
  }
  return run (data, own, out, is_check);
}
