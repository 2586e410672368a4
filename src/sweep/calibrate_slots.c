#include <math.h>

#include "sweep/calibrate_fit.h"
#include "sweep/calibrate_run.h"

/* What the pull to physical limits weighs: as much, for a coefficient at the far end of its
 * range, as one kernel that is off by 6 % (0.06^2 / 2). */
#define PRIOR            0.002
#define KERNELS_PER_FREE 2 /* of a kind, for each free coefficient, at least */

/* What to free, the most telling first; what belongs together is one step. */
static const guint gemm_steps[] = {
  LS_FREE_COMPUTE, LS_FREE_LAUNCH, LS_FREE_DEPTH, LS_FREE_WAVE | LS_FREE_TILE, LS_FREE_MEMORY,
  LS_FREE_THROTTLE | LS_FREE_BURST, LS_FREE_SPLIT, LS_FREE_OVERLAP,
};
static const guint attention_steps[] = { LS_FREE_COMPUTE, LS_FREE_TAIL, LS_FREE_DEPTH, LS_FREE_LAUNCH };
static const guint stream_steps[] = { LS_FREE_MEMORY, LS_FREE_LAUNCH, LS_FREE_CACHE | LS_FREE_CACHE_SPEED };

static guint
free_steps (const guint *steps, guint n_steps, guint n_kernels)
{
  guint budget = (n_kernels + KERNELS_PER_FREE - 1) / KERNELS_PER_FREE, mask = 0;
  for (guint i = 0; i < n_steps && (guint) __builtin_popcount (mask | steps[i]) <= budget; i++)
    mask |= steps[i];
  return mask;
}

static bool
is_matrix_slot (guint slot)
{
  return slot <= LS_KERNEL_ATTENTION_BWD || slot == LS_SLOT_GEMM_FP8 || slot == LS_SLOT_ATTENTION_FP8;
}

static bool
is_attention_slot (guint slot)
{
  return slot == LS_KERNEL_ATTENTION_FWD || slot == LS_KERNEL_ATTENTION_BWD || slot == LS_SLOT_ATTENTION_FP8;
}

/* Softmax shows where heads differ in width; beyond 128 they show another effect. */
static guint
free_widths (const GArray *samples)
{
  uint64_t least = UINT64_MAX, most = 0;
  for (guint i = 0; i < samples->len; i++) {
    uint64_t width = g_array_index (samples, LsTimedKernel, i).kernel.k;
    least = MIN (least, width);
    most = MAX (most, width);
  }
  return (least < most ? LS_FREE_WIDTH : 0) | (least <= 128 && most > 128 ? LS_FREE_WIDE : 0);
}

static bool
has_besides (const GArray *samples)
{
  for (guint i = 0; i < samples->len; i++)
    if (g_array_index (samples, LsTimedKernel, i).has_host)
      return true;
  return false;
}

/* A constant host time and a launch cannot be told apart: then the launch is that of GEMMs. */
static guint
free_of (guint slot, const GArray *samples, guint n_seen)
{
  guint mask;
  if (is_attention_slot (slot))
    mask = free_steps (attention_steps, G_N_ELEMENTS (attention_steps), n_seen) | free_widths (samples);
  else if (is_matrix_slot (slot))
    mask = free_steps (gemm_steps, G_N_ELEMENTS (gemm_steps), n_seen);
  else
    mask = free_steps (stream_steps, G_N_ELEMENTS (stream_steps), n_seen);
  return has_besides (samples) ? (mask & ~(guint) LS_FREE_LAUNCH) | LS_FREE_HOST | LS_FREE_SIDE : mask;
}

static guint
n_not_held_out (const GArray *samples)
{
  guint n = 0;
  for (guint i = 0; i < samples->len; i++)
    n += !g_array_index (samples, LsTimedKernel, i).held_out;
  return n;
}

static void
use_all (GArray *samples)
{
  for (guint i = 0; i < samples->len; i++)
    g_array_index (samples, LsTimedKernel, i).held_out = false;
}

/* Names of files go into a JSON text as they are. */
static char *
plain_files (const LsCalibrateRun *run)
{
  GString *text = g_string_new (NULL);
  for (guint i = 0; i < run->profiles->len; i++) {
    const LsProfile *p = g_ptr_array_index (run->profiles, i);
    g_autofree char *file = g_path_get_basename (p->path);
    for (char *c = file; *c; c++)
      if (*c == '"' || *c == '\\' || (unsigned char) *c < ' ' || *c == 0x7f)
        *c = '_';
    g_string_append_printf (text, "%s%s", i > 0 ? ", " : "", file);
  }
  return g_string_free (text, FALSE);
}

static void
fit_slot (LsCalibrateRun *run, guint slot)
{
  GArray *samples = run->samples[slot];
  LsKindFit *fit = ls_slot_fit (&run->calibration, slot);
  const LsKindFit *gemm = &run->calibration.kind[LS_KERNEL_GEMM], *stream = &run->calibration.kind[LS_KERNEL_ELEMENTWISE];
  bool is_alone = run->is_alone[slot] = n_not_held_out (samples) == 0;
  if (is_alone)
    use_all (samples);
  *fit = (LsKindFit){ .compute_efficiency = 1, .memory_efficiency = 1 };
  if (has_besides (samples))
    fit->launch = gemm->launch;
  if (is_attention_slot (slot) && stream->is_fitted)
    fit->memory_efficiency = stream->memory_efficiency;
  ls_fit_solve (fit, free_of (slot, samples, n_not_held_out (samples)), &run->gpu, samples, PRIOR);
  g_autofree char *files = plain_files (run);
  run->slot_source[slot]
      = g_strdup_printf ("%u kernels of %s; robust fit, weak pull to physical limits; %s", samples->len, files,
                         is_alone                ? "all are held out by the rule, so nothing is"
                         : isnan (fit->mape)     ? "no family of them is held out"
                         : is_attention_slot (slot) ? "hold-out by (heads,kv_heads,head_dim)"
                         : is_matrix_slot (slot) ? "hold-out by (n,k)"
                                                 : "hold-out by (rows,columns)");
}

/* A kind for which nothing was measured runs like another that was. */
static void
copy_slot (LsCalibrateRun *run, guint to, guint from, const char *why)
{
  LsKindFit *fit = ls_slot_fit (&run->calibration, to);
  if (run->samples[to] || !run->samples[from])
    return;
  *fit = *ls_slot_fit (&run->calibration, from);
  fit->is_fitted = false;
  fit->mape = NAN;
  fit->min_work = fit->max_work = 0;
  fit->timed_host = 0;
  fit->timed_efficiency = 0;
  run->slot_source[to] = g_strdup_printf ("no data: %s", why);
}

static void
fit_sustained (LsCalibrateRun *run)
{
  LsCalibration *c = &run->calibration;
  double ratio = c->kind[LS_KERNEL_GEMM].is_fitted ? ls_fit_sustained (&c->kind[LS_KERNEL_GEMM], &run->gpu, run->sustained) : NAN;
  c->sustained = isnan (ratio) ? 1 : ls_fit_round (fmin (0.999, ratio), 3);
  run->report.timing
      = isnan (ratio) ? g_strdup ("burst: kernels alone on a cool GPU; none was timed hot, so inside a step GEMMs run as fast "
                                  "(sustained 1)")
                      : g_strdup_printf ("burst and sustained: kernels alone on a cool GPU, and %u GEMMs on a hot one (sustained %g)",
                                         run->sustained->len, c->sustained);
}

void
ls_calibrate_slots (LsCalibrateRun *run)
{
  /* Attention takes what streams and GEMMs have shown. */
  static const guint first[] = { LS_KERNEL_ELEMENTWISE, LS_KERNEL_GEMM };
  for (guint i = 0; i < G_N_ELEMENTS (first); i++)
    if (run->samples[first[i]])
      fit_slot (run, first[i]);
  for (guint slot = 0; slot < LS_N_SLOTS; slot++)
    if (run->samples[slot] && !run->slot_source[slot])
      fit_slot (run, slot);
  copy_slot (run, LS_KERNEL_BATCHED_GEMM, LS_KERNEL_GEMM, "as one GEMM");
  copy_slot (run, LS_KERNEL_ATTENTION_BWD, LS_KERNEL_ATTENTION_FWD, "as the forward");
  for (guint slot = LS_KERNEL_SOFTMAX; slot <= LS_KERNEL_MEMSET; slot++)
    copy_slot (run, slot, LS_KERNEL_ELEMENTWISE, "as elementwise, streams its tensors");
  fit_sustained (run);
}
