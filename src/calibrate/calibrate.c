#include "calibrate/calibrate.h"

#include <math.h>

#include <lockstep/error.h>

#include "calibrate/assumed.h"
#include "calibrate/calibrate_fit.h"
#include "calibrate/calibrate_run.h"
#include "calibrate/write_calibration.h"
#include "compute/measured.h"
#include "data/machines/machines.h"

void
ls_calibrate_run_free (LsCalibrateRun *run)
{
  if (!run)
    return;
  ls_gpu_clear (&run->gpu);
  g_ptr_array_unref (run->profiles);
  g_ptr_array_unref (run->notes);
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

/* ---- what the fit reached ---- */

static void
report_class (LsCalibrateRun *run, guint slot, LsDtype dtype)
{
  const LsKindFit *fit = ls_entry_fit (&run->calibration, slot);
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

static bool
is_gemm (LsKernelKind kind)
{
  return kind == LS_KERNEL_GEMM || kind == LS_KERNEL_BATCHED_GEMM;
}

static LsMeasuredKernel
row_of (const LsTimedKernel *t)
{
  const LsKernel *k = &t->kernel;
  return (LsMeasuredKernel) { .name = is_gemm (k->kind) ? NULL : g_strdup (k->name),
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
keep_measured (LsCalibrateRun *run, const LsProfile *p)
{
  for (guint i = 0; p->is_ours && i < p->kernels->len; i++) {
    const LsTimedKernel *t = &g_array_index (p->kernels, LsTimedKernel, i);
    const LsMeasuredKernel row = row_of (t);
    g_array_append_val (run->calibration.measured, row);
  }
}

static void
report (LsCalibrateRun *run)
{
  run->report.gpu = g_strdup (run->gpu.name);
  for (guint slot = 0; slot < LS_N_ENTRIES; slot++)
    for (guint dtype = 0; run->samples[slot] && dtype < LS_N_DTYPES; dtype++)
      report_class (run, slot, (LsDtype) dtype);
  drop_timed_again (run);
  guint n_before = run->calibration.measured->len;
  for (guint i = 0; i < run->profiles->len; i++)
    keep_measured (run, g_ptr_array_index (run->profiles, i));
  run->report.n_measured = run->calibration.measured->len - n_before;
}

static bool
has_samples (const LsCalibrateRun *run)
{
  for (guint slot = 0; slot < LS_N_ENTRIES; slot++)
    if (run->samples[slot])
      return true;
  return false;
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
  run->notes = g_ptr_array_new_with_free_func (g_free);
  run->around_sources = g_ptr_array_new_with_free_func (g_free);
  run->changes = g_ptr_array_new_with_free_func (g_free);
  run->report.files = g_ptr_array_new_with_free_func (g_free);
  run->report.classes = g_array_new (FALSE, FALSE, sizeof (LsFitClass));
  run->report.kernels = g_array_new (FALSE, FALSE, sizeof (LsFittedKernel));
  run->report.assumptions = g_array_new (FALSE, FALSE, sizeof (LsAssumption));
  g_array_set_clear_func (run->report.assumptions, ls_assumption_clear);
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
  a.nccl = run->machine && run->machine->spec.interior != LS_INTERIOR_TORUS ? &run->machine->nccl : NULL;
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

/* Something else than kernels was measured, for which there is a place. */
static bool
has_facts (const LsCalibrateRun *run)
{
  return run->around_sources->len > 0 || run->changes->len > 0 || run->has_sustained;
}

LsCalibrateRun *
ls_calibrate_run_new (const LsCalibrateSpec *spec, GError **error)
{
  if (!spec->files || !spec->files[0]) {
    g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "expected files with measured kernels");
    return NULL;
  }
  g_autoptr (LsCalibrateRun) run = run_alloc ();
  run->version = g_strdup (spec->version);
  run->holds_half = spec->holds_half;
  if (!ls_calibrate_load (run, spec, error) || !load_machine (run, spec, error))
    return NULL;
  ls_calibrate_slots (run);
  report (run);
  if (!compare_assumptions (run, error))
    return NULL;
  if (has_samples (run) || has_facts (run))
    return g_steal_pointer (&run);
  g_set_error (error, LS_ERROR, LS_ERROR_INPUT,
               "%s: no kernel that an entry of a calibration can be fitted to%s", spec->files[0],
               n_own_attention (run) > 0 ? "\nnote: attention of \"own\" is kernelbench's, which no job "
                                           "runs: it stands for none of fa2, fa3 and cudnn"
                                         : "");
  return NULL;
}

const LsFitReport *
ls_calibrate_run_report (const LsCalibrateRun *run)
{
  return &run->report;
}

double
ls_calibrate_run_held_out_error (const LsCalibrateRun *run, guint *ret_n)
{
  double sum = 0;
  *ret_n = 0;
  for (guint i = 0; i < run->report.kernels->len; i++) {
    const LsFittedKernel *k = &g_array_index (run->report.kernels, LsFittedKernel, i);
    if (!k->held_out)
      continue;
    sum += fabs (k->predicted_s / k->measured_s - 1);
    (*ret_n)++;
  }
  return sum / *ret_n;
}

const GPtrArray *
ls_calibrate_run_notes (const LsCalibrateRun *run)
{
  return run->notes;
}

/* ---- as a file ---- */

/* Files that went into it, and the command that makes it again. */
static GArray *
provenance_files (const LsCalibrateRun *run, GPtrArray *names, GString *command)
{
  GArray *files = g_array_new (FALSE, FALSE, sizeof (LsProvenanceFile));
  for (guint i = 0; i < run->profiles->len; i++) {
    const LsProfile *p = g_ptr_array_index (run->profiles, i);
    char *file = g_path_get_basename (p->path);
    g_ptr_array_add (names, file);
    g_string_append_printf (command, " %s", file);
    const LsProvenanceFile f = { file,    p->sha256, p->gpu,    p->driver,
                                 p->cuda, p->date,   p->n_rows, g_array_index (run->n_used, guint, i) };
    g_array_append_val (files, f);
  }
  g_string_append_printf (command, " --gpu %s%s", run->gpu.name, run->holds_half ? " --hold-out half" : "");
  return files;
}

char *
ls_calibrate_run_json (LsCalibrateRun *run, const char *name)
{
  g_autoptr (GPtrArray) names = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GString) command = g_string_new ("lockstep calibrate");
  g_autoptr (GArray) files = provenance_files (run, names, command);
  const LsFitProvenance provenance = { .command = command->str,
                                       .version = run->version,
                                       .timing = run->has_sustained ? "burst and sustained" : "burst",
                                       .files = files,
                                       .base = run->report.base,
                                       .base_sha256 = run->base_sha256,
                                       .report = &run->report };
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
  const LsCalibrationFile file = { &c, run->slot_source, &provenance, (char *const *) around->pdata };
  return ls_calibration_to_json (&file);
}
