/* calibrate/calibrate_load.c — the calibration that a fit starts from, and its files; a cluster with its
 * links as measured. */
#include "calibrate/calibrate_run.h"

#include <lockstep/error.h>
#include <math.h>
#include <string.h>

#include "data/datadir.h"
#include "data/machines/machines.h"
#include "job/hardware.h"

/* --- a cluster with its links as measured -------------------------------------------------------- */

/* "h100:reserved=2GiB" is an h100. */
static bool
is_same_gpu (const char *a, const char *b)
{
  size_t n = strcspn (a, ":");
  return n == strcspn (b, ":") && strncmp (a, b, n) == 0;
}

static gboolean
check (const LsCalibrateRun *run, GError **error)
{
  const char *name = run->machine_name;
  if (!name)
    g_set_error_literal (error, LS_ERROR, LS_ERROR_USAGE,
                         "expected --cluster: what is measured of links goes into a copy of its file");
  else if (g_str_has_suffix (name, ".xml"))
    g_set_error (error, LS_ERROR, LS_ERROR_UNSUPPORTED,
                 "%s: what is measured goes into a cluster file in JSON, not into XML", name);
  else if (!is_same_gpu (run->machine->spec.gpu.name, run->gpu.name))
    g_set_error (
        error, LS_ERROR, LS_ERROR_CONFLICT,
        "%s has GPUs %s; the files were measured on %s\nnote: one with these is --cluster '%s:gpu=\"%s\"'",
        name, run->machine->spec.gpu.name, run->gpu.name, name, run->gpu.name);
  else
    return TRUE;
  return FALSE;
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
  if (!gpu->nccl && run->machine->spec.interior != LS_INTERIOR_TORUS)
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
  LsJsonDoc *base = ls_data_load (LS_DATA_CLUSTERS, run->machine_name, diags);
  base = base && calibration ? ls_cluster_with_own_gpu (base, diags) : base;
  g_autofree char *source = source_of (run);
  char *text = base ? ls_cluster_changed_to_json (base, changes, name, source, diags) : NULL;
  if (!text)
    ls_diag_list_to_error (diags, error);
  return text;
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

/* calibrate_load.c: the GPU's calibration, if it names one, becomes base, and what is there to begin with. */
static bool
calibrate_take_base (LsCalibrateRun *run, LsDiagList *diags)
{
  if (!run->gpu.calibration)
    return true;
  g_autoptr (LsJsonDoc) doc = ls_data_load (LS_DATA_CALIBRATIONS, run->gpu.calibration, diags);
  if (!doc || !ls_calibration_read (doc, &run->base, diags))
    return false;
  LsCalibration own; /* strings and rows of its own: it changes */
  if (!ls_calibration_read (doc, &own, diags))
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
    if (p->gpu) {
      g_set_error (
          error, LS_ERROR, LS_ERROR_USAGE,
          "expected --gpu: %s was measured on \"%s\", which is like none or several of 'lockstep list gpus'",
          p->path, p->gpu);
      return NULL;
    }
  }
  g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "expected --gpu: %s does not say on which it was measured",
               spec->files[0]);
  return NULL;
}

/* ---- what cannot be ---- */

static bool
is_matrix (const LsKernel *k)
{
  return k->kind <= LS_KERNEL_ATTENTION_BWD;
}

/* A number format that a GPU's file has no peak for runs at its vector rate; one with scales does not. */
static double
peak_of (const LsGpu *gpu, LsDtype dtype)
{
  double peak = gpu->peak_flops[dtype];
  return peak > 0 || ls_dtype_is_scaled (dtype) ? peak : gpu->vector_flops;
}

static void
check_rate (const LsCalibrateRun *run, const LsProfile *p, const LsTimedKernel *t, LsDiagList *diags)
{
  const LsGpu *gpu = &run->gpu;
  const LsKernel *k = &t->kernel;
  double peak = peak_of (gpu, k->dtype), flops = k->flops / t->measured_s, bytes = k->bytes / t->measured_s;
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

static bool
contradicts (double a, double b)
{
  return fmax (a, b) > MAX_SCATTER * fmin (a, b) && fabs (a - b) > MAX_STEP_S;
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
    else if (contradicts (t->measured_s, before->measured_s))
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
  guint n_other = p->n_passed - p->n_disturbed - p->n_beside - p->facts->len;
  if (n_other > 0)
    g_ptr_array_add (
        run->notes,
        g_strdup_printf ("%s: %u rows of groups or names that no entry is fitted to", p->path, n_other));
  if (p->n_disturbed > 0)
    g_ptr_array_add (
        run->notes,
        g_strdup_printf (
            "%s: %u rows that were disturbed (heat, a slowed clock, another process) are left out", p->path,
            p->n_disturbed));
  if (p->n_beside > 0)
    g_ptr_array_add (run->notes,
                     g_strdup_printf ("%s: %u spans are left out, which were together with another kernel",
                                      p->path, p->n_beside));
  if (p->n_own_attention > 0)
    g_ptr_array_add (
        run->notes,
        g_strdup_printf ("%s: %u rows of kernelbench's own flash attention are left out: jobs run others "
                         "(tools/kernelbench/libraries.py times them)",
                         p->path, p->n_own_attention));
  if (p->n_failed > 0)
    g_ptr_array_add (
        run->notes,
        g_strdup_printf ("%s: %u kernels could not be measured; the file says why", p->path, p->n_failed));
  if (p->events_s > 0)
    g_ptr_array_add (run->notes,
                     g_strdup_printf ("%s: %.2f us of events taken off the times of products and attention",
                                      p->path, p->events_s * 1e6));
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
    g_ptr_array_add (
        run->notes,
        g_strdup_printf ("%s: %u streaming kernels below 8 MB are left out of the fit", p->path, n_small));
  if (n_homeless > 0)
    g_ptr_array_add (
        run->notes,
        g_strdup_printf ("%s: %u kernels in number formats that no entry is for", p->path, n_homeless));
  return p->kernels->len - n_small - n_homeless;
}

static void
hold_half_out (LsCalibrateRun *run)
{
  for (guint i = 0; i < run->profiles->len; i++)
    ls_hold_kernels_out (((LsProfile *) g_ptr_array_index (run->profiles, i))->kernels, true);
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
    g_ptr_array_add (run->report.files,
                     g_strdup_printf ("%s: %u rows, %u kernels used%s%s%s%s", p->path, p->n_rows, n_used,
                                      p->gpu ? "; " : "", p->gpu ? p->gpu : "", p->date ? ", " : "",
                                      p->date ? p->date : ""));
  }
}

gboolean
ls_calibrate_load (LsCalibrateRun *run, const LsCalibrateSpec *spec, GError **error)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  bool has_gpu = !spec->gpu || ls_gpu_load (spec->gpu, &run->gpu, diags);
  const char *rows_for = run->gpu.calibration ? run->gpu.calibration : run->gpu.name;
  for (const char *const *file = spec->files; has_gpu && *file; file++) {
    LsProfile *p = ls_profile_load (*file, rows_for, diags);
    if (p)
      g_ptr_array_add (run->profiles, p);
  }
  if (ls_diag_list_n (diags) > 0)
    return ls_diag_list_to_error (diags, error);
  g_autofree char *gpu = find_gpu (run, spec, error);
  if (!gpu)
    return FALSE;
  if ((spec->gpu || ls_gpu_load (gpu, &run->gpu, diags)) && calibrate_take_base (run, diags))
    for (guint i = 0; i < run->profiles->len; i++)
      check_profile (run, g_ptr_array_index (run->profiles, i), diags);
  if (ls_diag_list_n (diags) > 0)
    return ls_diag_list_to_error (diags, error);
  if (spec->holds_half)
    hold_half_out (run);
  sort_profiles (run);
  return TRUE;
}
