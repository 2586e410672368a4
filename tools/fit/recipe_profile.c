/* What our own profiles of kernels (tools/kernelbench/profiles) say of memory: streams, and Adam.
 *
 * A stream that only moves numbers, with the L2 turned over between two launches, reaches a share of the data
 * sheet's bandwidth, whatever it does: copies 0.88 to 0.90 on the H100, sums 0.90 to 0.91. Kernels with arithmetic, random numbers
 * or sums over rows are left out.
 *
 * An optimizer of many tensors in one launch (multi_tensor_apply of PyTorch; Apex and Transformer Engine launch the same 320 blocks
 * of 65,536 elements) is slower than these, by a time for each element that does not go with bandwidth:
 *
 *     t = bytes / (stream share * bandwidth) + elements * c / SMs
 *
 * Fused Adam, 28 bytes an element, 5e8 elements (PyTorch 2.11): 5.339 ms on the H100, where a stream takes 4.65, and
 * 4.018 ms on the H200, where it takes 3.29: c of the H100 says the H200's within 2 %, and is carried to other GPUs. */
#include <string.h>

#include "data/measured/read_kernels.h"
#include "recipe.h"

#define LARGE      100e6 /* bytes: twice an L2 of 50 MB */
#define ADAM_BYTES 28.0  /* fp32: weight, gradient and two moments read, all but the gradient written */

static LsProfile *
load (const char *own, const char *name, LsDiagList *diags)
{
  g_autofree char *path = g_build_filename (own, "..", "kernelbench", "profiles", name, NULL);
  return ls_profile_parse (path, NULL, 0, NULL, diags);
}

static bool
is_plain_stream (const LsTimedKernel *s)
{
  static const char *const plain[] = { "copy",      "memcpy",      "add",         "residual-grad-add",
                                       "bias-add",  "dropout-bwd", "weight-copy", "grad-unscale",
                                       "grad-clip", "adam",        NULL };
  return s->kernel.bytes >= LARGE && g_strv_contains (plain, s->kernel.name);
}

/* None is held out: there are too few sizes. */
static GArray *
chosen (const LsProfile *p, LsSampleFilter filter)
{
  GArray *some = g_array_new (FALSE, TRUE, sizeof (LsTimedKernel));
  for (guint i = 0; i < p->kernels->len; i++) {
    LsTimedKernel t = g_array_index (p->kernels, LsTimedKernel, i);
    t.held_out = false;
    if (filter (&t))
      g_array_append_val (some, t);
  }
  return some;
}

double
ls_recipe_profile_stream (LsRecipe *r, const char *own, const char *profile, LsDiagList *diags)
{
  g_autoptr (LsProfile) p = load (own, profile, diags);
  if (!p)
    return 1;
  g_autoptr (GArray) samples = chosen (p, is_plain_stream);
  LsKindFit fit = { .compute_efficiency = 1, .launch = STREAM_LAUNCH };
  ls_fit_solve (&fit, LS_FREE_MEMORY, &r->gpu, samples, NO_PRIOR);
  ls_recipe_add_check (r, "streams, >= 100 MB", LS_KERNEL_ELEMENTWISE, is_plain_stream, samples, 0.03, 0.02);
  return fit.memory_efficiency;
}

static bool
is_adam (const LsTimedKernel *s)
{
  return strcmp (s->kernel.name, "adam") == 0;
}

/* Of elements times c, over the SMs, behind what its bytes take. */
static double
beside_s (const LsRecipe *r, const LsTimedKernel *t)
{
  double bandwidth = r->calibration.kind[LS_KERNEL_ELEMENTWISE].memory_efficiency * r->gpu.hbm_bytes_per_s;
  return t->measured_s - ls_time_to_s (STREAM_LAUNCH) - t->kernel.bytes / bandwidth;
}

void
ls_recipe_profile_adam (LsRecipe *r, const char *own, const char *profile, LsDiagList *diags)
{
  g_autoptr (LsProfile) p = load (own, profile, diags);
  if (!p)
    return;
  g_autoptr (GArray) samples = chosen (p, is_adam);
  bool is_known = r->adam_s > 0;
  for (guint i = 0; !is_known && i < samples->len; i++) {
    const LsTimedKernel *t = &g_array_index (samples, LsTimedKernel, i);
    r->adam_s += beside_s (r, t) * r->gpu.n_sm * ADAM_BYTES / t->kernel.bytes / samples->len;
  }
  r->has_adam = true;
  ls_recipe_add_check (r, "Adam, fused", LS_KERNEL_OPTIMIZER, NULL, samples, 0.05, 0);
}

void
ls_recipe_set_optimizer (LsRecipe *r)
{
  LsKindFit *fit = &r->calibration.kind[LS_KERNEL_OPTIMIZER];
  double beside = r->adam_s / r->gpu.n_sm * r->gpu.hbm_bytes_per_s / ADAM_BYTES;
  fit->memory_efficiency = ls_fit_round (1 / (1 / fit->memory_efficiency + beside), 3);
  fit->is_fitted = r->has_adam;
  ls_recipe_set_source (
      r, LS_KERNEL_OPTIMIZER,
      "%sAdam fused, many tensors in a launch: bytes as elementwise from HBM, and a time for an element and SM, as "
      "PyTorch 2.11 on the H100 and H200 (tools/fit/recipe_profile.c)",
      r->has_adam ? "" : "no data: ");
}
