#include "calibrate/calibrate.h"

#include <lockstep/error.h>
#include <math.h>
#include <string.h>

#include "base/list.h"
#include "calibrate/calibrate_fit.h"
#include "calibrate/calibrate_run.h"
#include "calibrate/solve.h"
#include "compute/measured.h"
#include "data/datadir.h"
#include "data/machines/machines.h"
#include "job/hardware.h"

void
ls_calibrate_run_free (LsCalibrateRun *run)
{
  if (!run)
    return;
  ls_gpu_clear (&run->gpu);
  g_ptr_array_unref (run->profiles);
  g_ptr_array_unref (run->report.notes);
  g_array_unref (run->n_used);
  g_free (run->version);
  for (guint slot = 0; slot < LS_N_ENTRIES; slot++) {
    g_clear_pointer (&run->samples[slot], g_array_unref);
    g_free (run->slot_source[slot]);
  }
  g_clear_pointer (&run->sustained, g_array_unref);
  ls_calibration_clear (&run->calibration);
  ls_calibration_clear (&run->base);
  g_free (run->base_sha256);
  g_ptr_array_unref (run->around_sources);
  g_ptr_array_unref (run->changes);
  ls_hardware_free (run->machine);
  g_free (run->machine_name);
  g_free (run->report.base);
  g_free (run->report.kept);
  g_array_unref (run->report.changes);
  g_ptr_array_unref (run->report.follows);
  g_free (run->report.gpu);
  g_free (run->report.timing);
  g_ptr_array_unref (run->report.files);
  g_array_unref (run->report.classes);
  g_array_unref (run->report.kernels);
  g_array_unref (run->report.assumptions);
  g_free (run);
}

/* --- the calibration that it starts from ------------------------------------------------------------ */

/* Each entry that the file has, with its source. */
static void
take_sources (LsCalibrateRun *run, const LsJsonDoc *doc)
{
  const cJSON *kernels = cJSON_GetObjectItemCaseSensitive (ls_json_doc_root (doc), "kernels");
  for (guint slot = 0; slot < LS_N_ENTRIES; slot++) {
    const cJSON *entry = cJSON_GetObjectItemCaseSensitive (kernels, ls_entry_key (slot));
    const cJSON *source = cJSON_GetObjectItemCaseSensitive (entry, "source");
    run->base_has[slot] = entry != NULL;
    if (cJSON_IsString (source))
      run->slot_source[slot] = g_strdup (source->valuestring);
  }
}

/* The GPU's calibration, if it names one, becomes base, and what is there to begin with. */
static bool
take_base (LsCalibrateRun *run, LsDiagList *diags)
{
  if (!run->gpu.calibration)
    return true;
  g_autoptr (LsJsonDoc) doc = ls_data_load (LS_DATA_CALIBRATIONS, run->gpu.calibration, diags);
  if (!doc || !ls_data_file_read (&ls_calibration_file, doc, &run->base, diags))
    return false;
  LsCalibration own; /* strings and rows of its own: it changes */
  if (!ls_data_file_read (&ls_calibration_file, doc, &own, diags))
    return false;
  ls_calibration_clear (&run->calibration);
  run->calibration = own;
  run->has_base = true;
  run->base_sha256 = ls_json_doc_sha256 (doc);
  run->report.base = g_strdup (run->base.name);
  take_sources (run, doc);
  return true;
}

/* --- its files -------------------------------------------------------------------------------------- */

/* Repeated timings of one kernel scatter; further apart they contradict each other, unless
 * the timer of the file steps as far (vidur's by 1 us). */
#define MAX_SCATTER 1.5
#define MAX_STEP_S  1.5e-6
/* Twice the largest L2 or last-level cache of a GPU so far (256 MB: AMD MI300X): more
 * traffic than that must come from HBM. */
#define BEYOND_CACHE 512e6
/* The timers of the tables of others are too coarse below: vidur's steps by 1 us. */
#define MIN_STREAM 8e6

/* ---- on which GPU ---- */

/* The first file that says so decides; a table of others cannot. */
static char *
find_gpu (const LsCalibrateRun *run, const LsCalibrateSpec *spec, GError **error)
{
  if (spec->gpu)
    return g_strdup (spec->gpu);
  for (guint i = 0; i < run->profiles->len; i++) {
    const LsProfile *p = g_ptr_array_index (run->profiles, i);
    char *name = p->gpu ? ls_gpu_called (p->gpu) : NULL;
    if (name)
      return name;
    if (p->gpu)
      return ls_fail_null (
          error, LS_ERROR_USAGE,
          "expected --gpu: %s was measured on \"%s\", which is like none or several of 'lockstep list gpus'",
          p->path, p->gpu);
  }
  return ls_fail_null (error, LS_ERROR_USAGE, "expected --gpu: %s does not say on which it was measured",
                       spec->files[0]);
}

/* ---- what cannot be ---- */

static bool
is_matrix (const LsKernel *k)
{
  return k->kind <= LS_KERNEL_ATTENTION_BWD;
}

/* A number format that a GPU's file has no peak for runs at its vector rate; one with scales does not. */
static void
check_rate (const LsCalibrateRun *run, const LsProfile *p, const LsTimedKernel *t, LsDiagList *diags)
{
  const LsGpu *gpu = &run->gpu;
  const LsKernel *k = &t->kernel;
  double peak = gpu->peak_flops[k->dtype], flops = k->flops / t->measured_s, bytes = k->bytes / t->measured_s;
  peak = peak > 0 || ls_dtype_is_scaled (k->dtype) ? peak : gpu->vector_flops;
  if (is_matrix (k) && peak <= 0)
    ls_profile_error (p, t->row, "time_us", diags, "%s has no matrix units for %s", gpu->name,
                      ls_dtype_name (k->dtype));
  else if (is_matrix (k) && flops > peak)
    ls_profile_error (p, t->row, "time_us", diags, "%.4g TFLOP/s, %.2f times the peak of %s in %s",
                      flops / 1e12, flops / peak, gpu->name, ls_dtype_name (k->dtype));
  else if (!is_matrix (k) && k->bytes >= BEYOND_CACHE && bytes > gpu->hbm_bytes_per_s)
    ls_profile_error (p, t->row, "time_us", diags, "%.4g GB/s, %.2f times the HBM bandwidth of %s",
                      bytes / 1e9, bytes / gpu->hbm_bytes_per_s, gpu->name);
}

static char *
key_of (const LsTimedKernel *t)
{
  const LsKernel *k = &t->kernel;
  return g_strdup_printf ("%s,%d,%d,%d,%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT ",%" G_GUINT64_FORMAT
                          ",%" G_GUINT64_FORMAT ",%.17g,%.17g,%.17g",
                          k->name, (int) k->kind, (int) k->dtype, (int) t->what, k->m, k->n, k->k, k->batch,
                          k->flops, k->bytes, t->side_bytes);
}

static void
check_kernels (const LsCalibrateRun *run, const LsProfile *p, const GArray *kernels, LsDiagList *diags)
{
  g_autoptr (GHashTable) seen = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  for (guint i = 0; i < kernels->len; i++) {
    const LsTimedKernel *t = &g_array_index (kernels, LsTimedKernel, i);
    check_rate (run, p, t, diags);
    g_autofree char *key = key_of (t);
    const LsTimedKernel *before = g_hash_table_lookup (seen, key);
    if (!before)
      g_hash_table_insert (seen, g_steal_pointer (&key), (gpointer) t);
    else if (fmax (t->measured_s, before->measured_s) > MAX_SCATTER * fmin (t->measured_s, before->measured_s)
             && fabs (t->measured_s - before->measured_s) > MAX_STEP_S)
      ls_profile_error (p, t->row, "time_us", diags,
                        "%.2f us contradict the %.2f us that row %u has for the same kernel",
                        t->measured_s * 1e6, before->measured_s * 1e6, before->row + 1);
  }
}

static void
check_profile (const LsCalibrateRun *run, const LsProfile *p, LsDiagList *diags)
{
  if (p->n_sm > 0 && p->n_sm != run->gpu.n_sm)
    ls_diag_add (diags, LS_ERROR_INPUT, p->path, 0, 0, NULL, NULL, NULL,
                 "was measured on \"%s\" with %u SMs; %s has %u", p->gpu, p->n_sm, run->gpu.name,
                 run->gpu.n_sm);
  check_kernels (run, p, p->kernels, diags);
  check_kernels (run, p, p->sustained, diags);
}

/* ---- into entries ---- */

static bool
is_16_bit (LsDtype dtype)
{
  return dtype == LS_DTYPE_FP16 || dtype == LS_DTYPE_BF16;
}

/* -1: there is no entry for it. */
static int
slot_of (const LsTimedKernel *t)
{
  LsDtype dtype = t->kernel.dtype;
  if (t->what != LS_TIMED_USUAL)
    return t->what == LS_TIMED_VLLM_RMSNORM ? LS_ENTRY_VLLM_RMSNORM : LS_ENTRY_VLLM_SILU_MUL;
  if (t->attention != LS_ATTENTION_KERNEL_AUTO)
    return is_16_bit (dtype)
        ? (int) ls_entry_attention (t->attention, t->kernel.kind == LS_KERNEL_ATTENTION_BWD)
        : -1;
  if (!is_matrix (&t->kernel) || is_16_bit (dtype))
    return (int) t->kernel.kind;
  if (dtype == LS_DTYPE_FP8 && t->kernel.kind == LS_KERNEL_GEMM)
    return LS_ENTRY_GEMM_FP8;
  if (dtype == LS_DTYPE_NVFP4 && t->kernel.kind == LS_KERNEL_GEMM)
    return LS_ENTRY_GEMM_NVFP4;
  return dtype == LS_DTYPE_FP8 && t->kernel.kind == LS_KERNEL_ATTENTION_FWD ? LS_ENTRY_ATTENTION_FP8 : -1;
}

static void
note_left_out (LsCalibrateRun *run, const LsProfile *p)
{
  const struct {
    guint n;
    const char *what;
  } left_out[] = {
    { p->n_passed - p->n_disturbed - p->n_beside - p->facts->len,
      "rows of groups or names that no entry is fitted to" },
    { p->n_disturbed, "rows that were disturbed (heat, a slowed clock, another process) are left out" },
    { p->n_beside, "spans are left out, which were together with another kernel" },
    { p->n_own_attention,
      "rows of kernelbench's own flash attention are left out: jobs run others "
      "(tools/kernelbench/libraries.py times them)" },
    { p->n_failed, "kernels could not be measured; the file says why" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (left_out); i++)
    if (left_out[i].n > 0)
      ls_note (run->report.notes, "%s: %u %s", p->path, left_out[i].n, left_out[i].what);
  if (p->events_s > 0)
    ls_note (run->report.notes, "%s: %.2f us of events taken off the times of products and attention",
             p->path, p->events_s * 1e6);
}

/* How many kernels found an entry. */
static guint
sort_kernels (LsCalibrateRun *run, const LsProfile *p)
{
  guint n_small = 0, n_homeless = 0;
  for (guint i = 0; i < p->kernels->len; i++) {
    const LsTimedKernel *t = &g_array_index (p->kernels, LsTimedKernel, i);
    int slot = slot_of (t);
    bool is_small = !p->is_ours && !is_matrix (&t->kernel) && t->kernel.bytes < MIN_STREAM;
    n_small += is_small;
    n_homeless += !is_small && slot < 0;
    if (is_small || slot < 0)
      continue;
    if (!run->samples[slot])
      run->samples[slot] = g_array_new (FALSE, FALSE, sizeof (LsTimedKernel));
    g_array_append_vals (run->samples[slot], t, 1);
  }
  note_left_out (run, p);
  if (n_small > 0)
    ls_note (run->report.notes, "%s: %u streaming kernels below 8 MB are left out of the fit", p->path,
             n_small);
  if (n_homeless > 0)
    ls_note (run->report.notes, "%s: %u kernels in number formats that no entry is for", p->path, n_homeless);
  return p->kernels->len - n_small - n_homeless;
}

static void
sort_profiles (LsCalibrateRun *run)
{
  run->sustained = g_array_new (FALSE, FALSE, sizeof (LsTimedKernel));
  for (guint i = 0; i < run->profiles->len; i++) {
    const LsProfile *p = g_ptr_array_index (run->profiles, i);
    guint n_used = sort_kernels (run, p);
    for (guint j = 0; j < p->sustained->len; j++) {
      const LsTimedKernel *t = &g_array_index (p->sustained, LsTimedKernel, j);
      if (is_16_bit (t->kernel.dtype) && t->kernel.kind == LS_KERNEL_GEMM)
        g_array_append_vals (run->sustained, t, 1);
    }
    n_used += p->sustained->len;
    g_array_append_val (run->n_used, n_used);
    ls_note (run->report.files, "%s: %u rows, %u kernels used%s%s%s%s", p->path, p->n_rows, n_used,
             p->gpu ? "; " : "", p->gpu ? p->gpu : "", p->date ? ", " : "", p->date ? p->date : "");
  }
}

/* Fills gpu, profiles and samples. */
static gboolean
load (LsCalibrateRun *run, const LsCalibrateSpec *spec, GError **error)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  bool has_gpu = !spec->gpu || ls_data_file_load (&ls_gpu_file, spec->gpu, &run->gpu, diags);
  const char *rows_for = run->gpu.calibration ? run->gpu.calibration : run->gpu.name;
  for (const char *const *file = spec->files; has_gpu && *file; file++) {
    LsProfile *p = ls_profile_parse (*file, NULL, 0, rows_for, diags);
    if (p)
      g_ptr_array_add (run->profiles, p);
  }
  if (ls_diag_list_n (diags) > 0)
    return ls_diag_list_to_error (diags, error);
  g_autofree char *gpu = find_gpu (run, spec, error);
  if (!gpu)
    return FALSE;
  if ((spec->gpu || ls_data_file_load (&ls_gpu_file, gpu, &run->gpu, diags)) && take_base (run, diags))
    for (guint i = 0; i < run->profiles->len; i++)
      check_profile (run, g_ptr_array_index (run->profiles, i), diags);
  if (ls_diag_list_n (diags) > 0)
    return ls_diag_list_to_error (diags, error);
  for (guint i = 0; spec->holds_half && i < run->profiles->len; i++)
    ls_hold_kernels_out (((LsProfile *) run->profiles->pdata[i])->kernels, true);
  sort_profiles (run);
  return TRUE;
}

/* ---- what the fit reached ---- */

static void
report_class (LsCalibrateRun *run, guint slot, LsDtype dtype)
{
  const LsKindFit *fit = &run->calibration.kind[slot];
  g_autoptr (GArray) some = g_array_new (FALSE, FALSE, sizeof (LsTimedKernel));
  for (guint i = 0; i < run->samples[slot]->len; i++) {
    const LsTimedKernel *t = &g_array_index (run->samples[slot], LsTimedKernel, i);
    if (t->kernel.dtype != dtype)
      continue;
    g_array_append_vals (some, t, 1);
    const LsFittedKernel k = { .kernel = t->kernel,
                               .class = run->report.classes->len,
                               .measured_s = t->measured_s,
                               .predicted_s = ls_fit_predict_s (fit, &run->gpu, t),
                               .held_out = t->held_out };
    g_array_append_val (run->report.kernels, k);
    if (k.held_out) {
      run->report.held_out.n++;
      run->report.held_out.mape += fabs (k.predicted_s / k.measured_s - 1);
    }
  }
  if (some->len == 0)
    return;
  const LsFitClass c = { .key = ls_entry_key (slot),
                         .dtype = dtype,
                         .is_alone = run->is_alone[slot],
                         .fit = ls_fit_error (fit, &run->gpu, some, false, NULL),
                         .held_out = ls_fit_error (fit, &run->gpu, some, true, NULL) };
  g_array_append_val (run->report.classes, c);
}

/* ---- measured table ---- */

static LsMeasuredKernel
row_of (const LsTimedKernel *t)
{
  const LsKernel *k = &t->kernel;
  return (LsMeasuredKernel) { .name = ls_kernel_is_gemm (k->kind) ? NULL : g_strdup (k->name),
                              .kind = (int) k->kind,
                              .dtype = (int) k->dtype,
                              .implementation = (int) t->attention,
                              .m = k->m,
                              .n = k->n,
                              .k = k->k,
                              .batch = k->batch,
                              .flops = k->flops,
                              .bytes = k->bytes,
                              .time = ls_time_from_s (t->measured_s) };
}

static bool
is_timed_again (const LsCalibrateRun *run, const LsMeasuredKernel *row)
{
  for (guint i = 0; i < run->profiles->len; i++) {
    const LsProfile *p = g_ptr_array_index (run->profiles, i);
    for (guint j = 0; p->is_ours && j < p->kernels->len; j++) {
      const LsTimedKernel *t = &g_array_index (p->kernels, LsTimedKernel, j);
      const LsKernel *k = &t->kernel;
      if (row->kind == (int) k->kind && row->implementation == (int) t->attention
          && row->dtype == (int) k->dtype && row->m == k->m && row->n == k->n && row->k == k->k
          && row->batch == k->batch && (!row->name || g_str_equal (row->name, k->name)))
        return true;
    }
  }
  return false;
}

/* Rows of the calibration that was there, of kernels that were timed now, go. */
static void
drop_timed_again (LsCalibrateRun *run)
{
  GArray *kept = g_array_new (FALSE, TRUE, sizeof (LsMeasuredKernel)), *old = run->calibration.measured;
  for (guint i = 0; old && i < old->len; i++) {
    LsMeasuredKernel row = g_array_index (old, LsMeasuredKernel, i);
    row.name = g_strdup (row.name);
    if (is_timed_again (run, &row))
      g_free (row.name);
    else
      g_array_append_val (kept, row);
  }
  ls_measured_free (old);
  run->calibration.measured = kept;
}

static void
report (LsCalibrateRun *run)
{
  run->report.gpu = g_strdup (run->gpu.name);
  for (guint slot = 0; slot < LS_N_ENTRIES; slot++)
    for (guint dtype = 0; run->samples[slot] && dtype < LS_N_DTYPES; dtype++)
      report_class (run, slot, (LsDtype) dtype);
  run->report.held_out.mape /= run->report.held_out.n;
  drop_timed_again (run);
  guint n_before = run->calibration.measured->len;
  for (guint i = 0; i < run->profiles->len; i++) {
    const LsProfile *p = run->profiles->pdata[i];
    for (guint j = 0; p->is_ours && j < p->kernels->len; j++) {
      const LsMeasuredKernel row = row_of (&g_array_index (p->kernels, LsTimedKernel, j));
      g_array_append_val (run->calibration.measured, row);
    }
  }
  run->report.n_measured = run->calibration.measured->len - n_before;
}

static guint
n_own_attention (const LsCalibrateRun *run)
{
  guint n = 0;
  for (guint i = 0; i < run->profiles->len; i++)
    n += ((const LsProfile *) g_ptr_array_index (run->profiles, i))->n_own_attention;
  return n;
}

static LsCalibrateRun *
run_alloc (void)
{
  LsCalibrateRun *run = g_new0 (LsCalibrateRun, 1);
  run->profiles = g_ptr_array_new_with_free_func ((GDestroyNotify) ls_profile_free);
  run->n_used = g_array_new (FALSE, FALSE, sizeof (guint));
  run->report.notes = g_ptr_array_new_with_free_func (g_free);
  run->around_sources = g_ptr_array_new_with_free_func (g_free);
  run->changes = g_ptr_array_new_with_free_func (g_free);
  run->report.files = g_ptr_array_new_with_free_func (g_free);
  run->report.classes = g_array_new (FALSE, FALSE, sizeof (LsFitClass));
  run->report.kernels = g_array_new (FALSE, FALSE, sizeof (LsFittedKernel));
  run->report.assumptions = ls_list_new (sizeof (LsAssumedFigure), ls_clear_text);
  run->report.changes = g_array_new (FALSE, FALSE, sizeof (LsFitChange));
  run->report.follows = g_ptr_array_new_with_free_func (g_free);
  ls_calibration_init_roofline (&run->calibration);
  return run;
}

/* What is assumed is what was there before: the calibration of the GPU, else the one that was made. */
static gboolean
compare_assumptions (LsCalibrateRun *run, GError **error)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsCalibration assumed
      = run->has_base ? run->base : run->calibration; /* borrows, but for the access kinds */
  LsTime gap = 0;
  if (!run->has_base)
    assumed.sustained = 1;
  if (!ls_access_load (run->gpu.access, &assumed, diags) || !ls_access_gap (run->gpu.access, &gap, diags))
    return ls_diag_list_to_error (diags, error);
  LsAssumed a = { .gpu = &run->gpu,
                  .assumed = &assumed,
                  .made = &run->calibration,
                  .around = &run->calibration.around,
                  .sources = run->around_sources,
                  .changes = run->changes,
                  .assumptions = run->report.assumptions };
  a.access
      = run->gpu.access && gap == 0 ? "without effect: the GPU's access file does not say its gap" : NULL;
  a.cluster = run->machine ? &run->machine->spec : NULL;
  a.nccl = run->machine && ls_cluster_traits (&run->machine->spec)->has_nccl ? &run->machine->nccl : NULL;
  for (guint i = 0; i < run->profiles->len; i++) {
    a.profile = g_ptr_array_index (run->profiles, i);
    ls_assumed_compare (&a);
  }
  return TRUE;
}

static gboolean
load_machine (LsCalibrateRun *run, const LsCalibrateSpec *spec, GError **error)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  if (!spec->cluster)
    return TRUE;
  run->machine_name = g_strdup (spec->cluster);
  run->machine = ls_hardware_load (spec->cluster, diags);
  if (!run->machine)
    return ls_diag_list_to_error (diags, error);
  return ls_hardware_check_alike (&run->machine->spec, "a calibration", error);
}

LsCalibrateRun *
ls_calibrate_run_new (const LsCalibrateSpec *spec, GError **error)
{
  if (!spec->files || !spec->files[0])
    return ls_fail_null (error, LS_ERROR_USAGE, "expected files with measured kernels");
  g_autoptr (LsCalibrateRun) run = run_alloc ();
  run->version = g_strdup (spec->version);
  run->holds_half = spec->holds_half;
  if (!load (run, spec, error) || !load_machine (run, spec, error))
    return NULL;
  ls_calibrate_slots (run);
  report (run);
  if (!compare_assumptions (run, error))
    return NULL;
  /* something else than kernels, for which there is a place, is enough */
  bool has_any = run->around_sources->len > 0 || run->changes->len > 0 || run->has_sustained;
  for (guint slot = 0; slot < LS_N_ENTRIES; slot++)
    has_any |= run->samples[slot] != NULL;
  if (has_any)
    return g_steal_pointer (&run);
  return ls_fail_null (error, LS_ERROR_INPUT,
                       "%s: no kernel that an entry of a calibration can be fitted to%s", spec->files[0],
                       n_own_attention (run) > 0
                           ? "\nnote: attention of \"own\" is kernelbench's, which no job "
                             "runs: it stands for none of fa2, fa3 and cudnn"
                           : "");
}

const LsFitReport *
ls_calibrate_run_report (const LsCalibrateRun *run)
{
  return &run->report;
}

/* ---- as a file ---- */

/* A number of a struct that is written where it is above 0. */
typedef struct {
  const char *key;
  size_t offset;
  bool is_time;
} Figure;

static const Figure rates[] = {
  { "sustained_fp8", offsetof (LsCalibration, sustained_fp8), false },
  { "sustained_nvfp4", offsetof (LsCalibration, sustained_nvfp4), false },
  { "gemm_unaligned", offsetof (LsCalibration, gemm_unaligned), false },
  { "attention_masked", offsetof (LsCalibration, attention_masked), false },
};
static const Figure figures[] = {
  { "host_launch", offsetof (LsAround, host_launch), true },
  { "kernel_gap", offsetof (LsAround, kernel_gap), true },
  { "graph_gap", offsetof (LsAround, graph_gap), true },
  { "memcpy_share", offsetof (LsAround, memcpy_share), false },
  { "copy_duplex", offsetof (LsAround, copy_duplex), false },
  { "priority_wait", offsetof (LsAround, priority_wait), true },
  { "streams_in_layer", offsetof (LsAround, streams_in_layer), false },
  { "lost_tiles", offsetof (LsAround, lost_tiles), false },
  { "lost_clusters", offsetof (LsAround, lost_clusters), false },
  { "lost_told", offsetof (LsAround, lost_told), false },
  { "waves", offsetof (LsAround, waves), false },
};

/* Coefficients are rounded to six digits, a range of shapes to four, an error to three; those that switch an
 * effect off are left out. */
static void
append_coefficient (GString *out, const LsKindFit *fit, const LsField *f)
{
  const void *place = (const char *) fit + f->offset;
  bool is_launch = f->offset == offsetof (LsKindFit, launch);
  bool is_range = f->offset == offsetof (LsKindFit, min_work) || f->offset == offsetof (LsKindFit, max_work);
  int digits = f->offset == offsetof (LsKindFit, mape) ? 3 : is_range ? 4 : 6;
  if (f->kind == LS_FIELD_TIME && (is_launch || *(const LsTime *) place > 0))
    g_string_append_printf (out, ",%s\"%s\": \"%.2fus\"", is_launch ? "\n      " : " ", f->key,
                            ls_time_to_s (*(const LsTime *) place) * 1e6);
  else if (f->kind == LS_FIELD_DOUBLE && *(const double *) place > 0)
    g_string_append_printf (out, ", \"%s\": %.*g", f->key, digits, *(const double *) place);
  else if (f->kind == LS_FIELD_BOOL && !f->required && *(const bool *) place)
    g_string_append_printf (out, ", \"%s\": true", f->key);
}

static void
append_coefficients (GString *out, const LsKindFit *fit)
{
  for (const LsField *f = ls_kind_fit_fields; f->key; f++)
    append_coefficient (out, fit, f);
}

static guint
last_slot (char *const *slot_source)
{
  guint last = 0;
  for (guint i = 0; i < LS_N_ENTRIES; i++)
    if (slot_source[i])
      last = i;
  return last;
}

/* The command that makes it again, without the folders of files. */
static char *
command_of (const LsCalibrateRun *run)
{
  GString *command = g_string_new ("lockstep calibrate");
  for (guint i = 0; i < run->profiles->len; i++) {
    g_autofree char *file = g_path_get_basename (((const LsProfile *) run->profiles->pdata[i])->path);
    g_string_append_printf (command, " %s", file);
  }
  g_string_append_printf (command, " --gpu %s%s", run->gpu.name, run->holds_half ? " --hold-out half" : "");
  return g_string_free (command, FALSE);
}

/* Nanoseconds, as kernelbench prints them, come out exact; the rest has four digits. */
static char *
figure_text (const Figure *f, const LsAround *a)
{
  double value = ls_number_get (a, f->offset, f->is_time);
  LsTime t = f->is_time ? *(const LsTime *) ((const char *) a + f->offset) : 0;
  char digits[G_ASCII_DTOSTR_BUF_SIZE];
  if (!f->is_time)
    return g_strdup_printf ("%.17g",
                            g_ascii_strtod (g_ascii_formatd (digits, sizeof digits, "%.4g", value), NULL));
  return t % LS_NS == 0 ? g_strdup_printf ("\"%.3fus\"", value * 1e6)
                        : g_strdup_printf ("\"%" G_GINT64_FORMAT "ps\"", t);
}

#include "calibrate/calibration_text.h"

char *
ls_calibrate_run_json (LsCalibrateRun *run, const char *name)
{
  LsCalibration c = run->calibration; /* borrows */
  g_autofree char *over
      = run->has_base ? g_strdup_printf (" over calibration %s", run->base.name) : g_strdup ("");
  g_autofree char *source = g_strdup_printf ("lockstep calibrate%s, from measured kernels of %s; %s; see "
                                             "provenance",
                                             over, run->gpu.name, run->report.timing);
  c.name = (char *) name;
  c.source = source;
  g_autoptr (GPtrArray) around
      = g_ptr_array_copy (run->around_sources, (GCopyFunc) (void (*) (void)) g_strdup, NULL);
  g_ptr_array_add (around, NULL);
  return ls_calibration_to_json (&c, run->slot_source, (char *const *) around->pdata, run);
}

/* --- a cluster with its links as measured -------------------------------------------------------- */

static gboolean
check (const LsCalibrateRun *run, GError **error)
{
  const char *name = run->machine_name;
  if (!name)
    return ls_fail (error, LS_ERROR_USAGE,
                    "expected --cluster: what is measured of links goes into a copy of its file");
  const char *has = run->machine->spec.gpu.name, *measured = run->gpu.name;
  size_t n = strcspn (has, ":"); /* "h100:reserved=2GiB" is an h100 */
  if (n != strcspn (measured, ":") || strncmp (has, measured, n) != 0)
    return ls_fail (
        error, LS_ERROR_CONFLICT,
        "%s has GPUs %s; the files were measured on %s\nnote: one with these is --cluster '%s:gpu=\"%s\"'",
        name, has, measured, name, measured);
  return TRUE;
}

/* As the file at `from` names it: beside it by its name, elsewhere by its whole path. */
static char *
path_from (const char *from, const char *path)
{
  g_autofree char *a = g_canonicalize_filename (from, NULL), *b = g_canonicalize_filename (path, NULL);
  g_autofree char *a_folder = g_path_get_dirname (a), *b_folder = g_path_get_dirname (b),
                  *file = g_path_get_basename (path);
  return strcmp (a_folder, b_folder) == 0 ? g_strconcat ("./", file, NULL) : g_steal_pointer (&b);
}

/* The GPU's NCCL file stays when its calibration does not. */
static void
take_calibration (const LsCalibrateRun *run, GPtrArray *changes, const char *path, const char *calibration)
{
  const LsGpu *gpu = &run->machine->spec.gpu;
  g_autofree char *named = path_from (path, calibration), *nccl = ls_hardware_nccl_name (gpu);
  g_ptr_array_insert (changes, 0, g_strdup_printf ("gpu.calibration=%s", named));
  if (!gpu->nccl && ls_cluster_traits (&run->machine->spec)->has_nccl)
    g_ptr_array_insert (changes, 0, g_strdup_printf ("gpu.nccl=%s", nccl));
}

static char *
source_of (const LsCalibrateRun *run)
{
  g_autoptr (GString) text = g_string_new (NULL);
  g_string_append_printf (text, "%s, with what lockstep calibrate found in", run->machine_name);
  for (guint i = 0; i < run->profiles->len; i++) {
    const LsProfile *p = g_ptr_array_index (run->profiles, i);
    g_autofree char *file = g_path_get_basename (p->path);
    g_string_append_printf (text, "%s %s (sha256 %s)", i > 0 ? "," : "", file, p->sha256);
  }
  g_string_append (text, ":");
  for (guint i = 0; i < run->changes->len; i++)
    if (!strstr (g_ptr_array_index (run->changes, i), ".source="))
      g_string_append_printf (text, " %s", (const char *) g_ptr_array_index (run->changes, i));
  return g_strconcat (text->str, run->changes->len > 0 ? "" : " nothing of its links", NULL);
}

char *
ls_calibrate_run_machine_json (const LsCalibrateRun *run, const char *name, const char *path,
                               const char *calibration, GError **error)
{
  if (!check (run, error))
    return NULL;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (GPtrArray) changes = g_ptr_array_new_with_free_func (g_free);
  for (guint i = 0; i < run->changes->len; i++)
    g_ptr_array_add (changes, g_strdup (g_ptr_array_index (run->changes, i)));
  if (calibration)
    take_calibration (run, changes, path, calibration);
  LsJsonDoc *base = ls_cluster_open (run->machine_name, diags);
  base = base && calibration ? ls_cluster_with_own_gpu (base, diags) : base;
  g_autofree char *source = source_of (run);
  char *text = base ? ls_cluster_changed_to_json (base, changes, name, source, diags) : NULL;
  if (!text)
    ls_diag_list_to_error (diags, error);
  return text;
}
