/* calibrate/calibrate_entries.c — which coefficients of which entry of a calibration are fitted. */
#include <math.h>

#include "calibrate/calibrate_fit.h"
#include "calibrate/calibrate_levels.h"
#include "calibrate/calibrate_run.h"

/* What the pull to physical limits weighs: as much, for a coefficient at the far end of its
 * range, as one kernel that is off by 6 % (0.06^2 / 2). */
#define PRIOR            0.002
#define KERNELS_PER_FREE 2  /* of a kind, for each free coefficient, at least */
#define MIN_SUSTAINED    3  /* kernels on a hot GPU, to go before the calibration that is there */
#define N_AFRESH         20 /* kernels from which an entry that is a guess may be fitted whole */
#define MIN_GAIN                                                                                             \
  9 /* and what of the sum of squares each of its coefficients is to explain: three standard errors */

/* What to free, the most telling first; what belongs together is one step. */
static const guint gemm_steps[] = {
  LS_FREE_COMPUTE, LS_FREE_LAUNCH,
  LS_FREE_DEPTH,   LS_FREE_WAVE | LS_FREE_TILE,
  LS_FREE_MEMORY,  LS_FREE_THROTTLE | LS_FREE_BURST,
  LS_FREE_SPLIT,   LS_FREE_OVERLAP,
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
  return slot <= LS_KERNEL_ATTENTION_BWD || slot == LS_ENTRY_GEMM_FP8 || slot == LS_ENTRY_GEMM_FP8_BLOCKS
      || slot == LS_ENTRY_GEMM_NVFP4 || slot == LS_ENTRY_ATTENTION_FP8 || slot >= LS_ENTRY_ATTENTION;
}

static bool
is_attention_slot (guint slot)
{
  return slot == LS_KERNEL_ATTENTION_FWD || slot == LS_KERNEL_ATTENTION_BWD || slot == LS_ENTRY_ATTENTION_FP8
      || slot >= LS_ENTRY_ATTENTION;
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

static const char *
hold_out_of (const LsCalibrateRun *run, guint slot, const LsKindFit *fit)
{
  return run->is_alone[slot]     ? "all are held out by the rule, so nothing is"
      : isnan (fit->mape)        ? "no family of them is held out"
      : is_attention_slot (slot) ? "hold-out by (heads,kv_heads,head_dim)"
      : is_matrix_slot (slot)    ? "hold-out by (n,k)"
                                 : "hold-out by (rows,columns)";
}

static void
say_source (LsCalibrateRun *run, guint slot, const char *how)
{
  g_autofree char *files = plain_files (run), *was = run->slot_source[slot];
  run->slot_source[slot] = g_strdup_printf ("%u kernels of %s; %s; %s", run->samples[slot]->len, files, how,
                                            hold_out_of (run, slot, ls_entry_fit (&run->calibration, slot)));
}

/* From nothing but physical limits. */
static void
fit_afresh (LsCalibrateRun *run, guint slot)
{
  GArray *samples = run->samples[slot];
  LsKindFit *fit = ls_entry_fit (&run->calibration, slot);
  const LsKindFit *gemm = &run->calibration.kind[LS_KERNEL_GEMM],
                  *stream = &run->calibration.kind[LS_KERNEL_ELEMENTWISE];
  *fit = (LsKindFit) { .compute_efficiency = 1, .memory_efficiency = 1 };
  if (has_besides (samples))
    fit->launch = gemm->launch;
  if (is_attention_slot (slot) && stream->is_fitted)
    fit->memory_efficiency = stream->memory_efficiency;
  ls_fit_solve (fit, free_of (slot, samples, n_not_held_out (samples)), &run->gpu, samples, PRIOR);
  say_source (run, slot, "robust fit, weak pull to physical limits");
}

/* ---- over the calibration that is there ---- */

/* What an entry that the calibration lacks runs like there (compute/cost.c); LS_N_ENTRIES: like nothing. */
static guint
stand_in (guint slot)
{
  if (slot >= LS_ENTRY_ATTENTION)
    return slot % 2 == LS_ENTRY_ATTENTION % 2 ? LS_KERNEL_ATTENTION_FWD : LS_KERNEL_ATTENTION_BWD;
  return slot == LS_ENTRY_GEMM_FP8       ? LS_KERNEL_GEMM
      : slot == LS_ENTRY_GEMM_FP8_BLOCKS ? LS_ENTRY_GEMM_FP8
      : slot == LS_ENTRY_ATTENTION_FP8   ? LS_KERNEL_ATTENTION_FWD
                                         : LS_N_ENTRIES;
}

static bool
is_known (const LsCalibrateRun *run, guint slot)
{
  return slot < LS_N_ENTRIES && run->base_has[slot];
}

static double
work_of (const LsKernel *k)
{
  return k->kind <= LS_KERNEL_ATTENTION_BWD ? k->flops : k->bytes;
}

/* Also of the range that the coefficients rest on. */
static void
widen (LsKindFit *fit, const LsKindFit *base, const GArray *samples)
{
  if (base->max_work <= 0 && base->is_fitted)
    return; /* never extrapolates */
  fit->min_work = base->max_work > 0 ? base->min_work : INFINITY;
  fit->max_work = base->max_work;
  for (guint i = 0; i < samples->len; i++) {
    double work = work_of (&g_array_index (samples, LsTimedKernel, i).kernel);
    fit->min_work = fmin (fit->min_work, work);
    fit->max_work = fmax (fit->max_work, work);
  }
}

static void
fit_over (LsCalibrateRun *run, guint slot, guint from)
{
  const GArray *samples = run->samples[slot];
  const LsKindFit base = *ls_entry_fit (&run->base, from);
  LsKindFit *fit = ls_entry_fit (&run->calibration, slot);
  bool is_guess = !base.is_fitted || from != slot;
  *fit = base;
  if (!ls_levels_fit (fit, is_guess, ls_entry_key (slot), &run->gpu, samples, run->report.changes)) {
    if (from != slot)
      say_source (run, slot, "agree with the entry that stands in for it");
    return;
  }
  fit->is_fitted = true;
  LsFitError held_out = ls_fit_error (fit, &run->gpu, samples, true, NULL);
  fit->mape = held_out.n > 0 ? held_out.mape : NAN;
  widen (fit, &base, samples);
  g_autofree char *how
      = g_strdup_printf ("over calibration %s, of which provenance says what it replaces", run->base.name);
  say_source (run, slot, how);
}

/* So many kernels may tell all of a guess's coefficients. */
static bool
is_enough (LsCalibrateRun *run, guint slot)
{
  guint n = n_not_held_out (run->samples[slot]);
  const LsKindFit *base = ls_entry_fit (&run->base, slot);
  return n >= N_AFRESH && !(is_known (run, slot) && base->is_fitted);
}

/* Of a guess: whole, if that is so much closer to the kernels that chance does not explain it. */
static void
fit_whole (LsCalibrateRun *run, guint slot, guint from, guint n_changes)
{
  const GArray *samples = run->samples[slot];
  const LsKindFit *base = ls_entry_fit (&run->base, from), over = *ls_entry_fit (&run->calibration, slot);
  g_autofree char *source = g_strdup (run->slot_source[slot]);
  fit_afresh (run, slot);
  double gain = ls_levels_misfit (base, &over, &run->gpu, samples)
      - ls_levels_misfit (base, ls_entry_fit (&run->calibration, slot), &run->gpu, samples);
  if (gain > MIN_GAIN * __builtin_popcount (free_of (slot, samples, n_not_held_out (samples)))) {
    g_array_set_size (run->report.changes, n_changes);
    return;
  }
  *ls_entry_fit (&run->calibration, slot) = over;
  g_free (run->slot_source[slot]);
  run->slot_source[slot] = g_steal_pointer (&source);
}

static void
fit_slot (LsCalibrateRun *run, guint slot)
{
  guint from = is_known (run, slot) ? slot : stand_in (slot);
  run->is_alone[slot] = n_not_held_out (run->samples[slot]) == 0;
  if (run->is_alone[slot])
    use_all (run->samples[slot]);
  guint n_changes = run->report.changes->len;
  if (is_known (run, from))
    fit_over (run, slot, from);
  if (is_known (run, from) && is_enough (run, slot))
    fit_whole (run, slot, from, n_changes);
  else if (!is_known (run, from))
    fit_afresh (run, slot);
}

static bool
is_same_but_for_errors (const LsKindFit *a, const LsKindFit *b)
{
  return a->compute_efficiency == b->compute_efficiency && a->memory_efficiency == b->memory_efficiency
      && a->launch == b->launch && a->depth_half == b->depth_half && a->cache_bytes == b->cache_bytes;
}

/* Entries that were taken from another go where that goes. */
static void
follow (LsCalibrateRun *run, guint to, guint from)
{
  const LsKindFit *was = ls_entry_fit (&run->base, from), *now = ls_entry_fit (&run->calibration, from);
  LsKindFit *fit = ls_entry_fit (&run->calibration, to);
  if (run->samples[to] || !run->samples[from] || !is_known (run, to) || !is_known (run, from)
      || (fit->is_fitted && !is_same_but_for_errors (fit, was)) || is_same_but_for_errors (was, now))
    return;
  fit->compute_efficiency = ls_fit_round (
      fmin (1, fit->compute_efficiency * now->compute_efficiency / was->compute_efficiency), 4);
  fit->memory_efficiency
      = ls_fit_round (fmin (1, fit->memory_efficiency * now->memory_efficiency / was->memory_efficiency), 4);
  if (was->launch > 0)
    fit->launch
        = (LsTime) llround ((double) fit->launch / was->launch * now->launch / (10 * LS_NS)) * 10 * LS_NS;
  fit->mape = NAN;
  g_autofree char *source = run->slot_source[to];
  run->slot_source[to] = g_strdup_printf ("%s; moved as %s", source, ls_entry_key (from));
  run->has_followed[to] = true;
  g_ptr_array_add (run->report.follows, g_strdup_printf ("%s as %s", ls_entry_key (to), ls_entry_key (from)));
}

/* A kind for which nothing was measured runs like another that was. */
static void
copy_slot (LsCalibrateRun *run, guint to, guint from)
{
  const char *why = from == LS_KERNEL_GEMM ? "as one GEMM"
      : from == LS_KERNEL_ATTENTION_FWD    ? "as the forward"
                                           : "as elementwise, streams its tensors";
  LsKindFit *fit = ls_entry_fit (&run->calibration, to);
  if (run->samples[to] || !run->samples[from])
    return;
  *fit = *ls_entry_fit (&run->calibration, from);
  fit->is_fitted = false;
  fit->mape = NAN;
  fit->min_work = fit->max_work = 0;
  fit->timed_host = 0;
  fit->timed_efficiency = 0;
  run->slot_source[to] = g_strdup_printf ("no data: %s", why);
}

/* The mean rate of the products of a layer inside of it, relative to alone: what `sustained` is, loops of one
 * GEMM stand for it. NaN: there are none. */
static double
products_in_layer (const LsCalibrateRun *run)
{
  double ratio = NAN;
  for (guint i = 0; i < run->profiles->len && isnan (ratio); i++)
    ratio = ls_profile_mean_noted (g_ptr_array_index (run->profiles, i), "context", "layer-gemms", "ratio");
  return 1 / ratio;
}

/* The ratio of a number format that was not timed hot, where the calibration that is there has one, moves as
 * that of 16 bits does. */
static double
moved_along (double format, double was, double now)
{
  return format > 0 && was > 0 ? ls_fit_round (fmin (0.999, format * now / was), 3) : format;
}

/* What the hot kernels say; without any, the ratio of the calibration that is there: it goes along with what
 * is measured cool. */
static void
fit_sustained (LsCalibrateRun *run)
{
  LsCalibration *c = &run->calibration;
  guint n = run->sustained->len;
  bool is_enough = n >= (run->has_base ? MIN_SUSTAINED : 1) && c->kind[LS_KERNEL_GEMM].is_fitted;
  double was = c->sustained,
         ratio = is_enough ? ls_fit_sustained (&c->kind[LS_KERNEL_GEMM], &run->gpu, run->sustained) : NAN;
  double in_layer = products_in_layer (run);
  ratio = isnan (in_layer) ? ratio : in_layer;
  run->has_sustained = !isnan (ratio);
  if (!isnan (ratio)) {
    c->sustained = ls_fit_round (fmin (0.999, ratio), 3);
    c->sustained_fp8 = moved_along (c->sustained_fp8, was, c->sustained);
    c->sustained_nvfp4 = moved_along (c->sustained_nvfp4, was, c->sustained);
  }
  if (!isnan (in_layer))
    run->report.timing = g_strdup_printf ("burst and sustained: kernels alone on a cool accelerator, and the "
                                          "products of whole layers (sustained %g)",
                                          c->sustained);
  else if (!isnan (ratio))
    run->report.timing = g_strdup_printf ("burst and sustained: kernels alone on a cool accelerator, and %u "
                                          "GEMMs on a hot one (sustained %g)",
                                          n, c->sustained);
  else if (run->has_base)
    run->report.timing = g_strdup_printf ("burst: kernels alone on a cool accelerator; %s timed hot, so "
                                          "inside a step GEMMs keep their share of that rate "
                                          "(sustained %g of %s)",
                                          n > 0 ? "too few were" : "none was", c->sustained, run->base.name);
  else
    run->report.timing = g_strdup ("burst: kernels alone on a cool accelerator; none was timed hot, so "
                                   "inside a step GEMMs run as fast "
                                   "(sustained 1)");
}

/* Entries with no kernel of their own, that moved with no other. */
static void
say_kept (LsCalibrateRun *run)
{
  g_autoptr (GString) kept = g_string_new (NULL);
  for (guint slot = 0; slot < LS_N_ENTRIES && run->has_base; slot++)
    if (!run->samples[slot] && run->slot_source[slot] && !run->has_followed[slot])
      g_string_append_printf (kept, "%s%s", kept->len > 0 ? ", " : "", ls_entry_key (slot));
  run->report.kept = run->has_base ? g_strdup (kept->str) : NULL;
}

static void
copy_all (LsCalibrateRun *run)
{
  void (*const take) (LsCalibrateRun *, guint, guint) = run->has_base ? follow : copy_slot;
  take (run, LS_KERNEL_BATCHED_GEMM, LS_KERNEL_GEMM);
  take (run, LS_KERNEL_ATTENTION_BWD, LS_KERNEL_ATTENTION_FWD);
  for (guint slot = LS_KERNEL_SOFTMAX; slot <= LS_KERNEL_MEMSET; slot++)
    take (run, slot, LS_KERNEL_ELEMENTWISE);
}

void
ls_calibrate_slots (LsCalibrateRun *run)
{
  /* Attention takes what streams and GEMMs have shown. */
  static const guint first[] = { LS_KERNEL_ELEMENTWISE, LS_KERNEL_GEMM };
  for (guint i = 0; i < G_N_ELEMENTS (first); i++)
    if (run->samples[first[i]])
      fit_slot (run, first[i]);
  for (guint slot = 0; slot < LS_N_ENTRIES; slot++)
    if (run->samples[slot] && slot != LS_KERNEL_ELEMENTWISE && slot != LS_KERNEL_GEMM)
      fit_slot (run, slot);
  copy_all (run);
  fit_sustained (run);
  say_kept (run);
}
