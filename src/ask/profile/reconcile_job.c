#include "ask/profile/reconcile_job.h"

#include <string.h>

#include <lockstep/error.h>

#include "ask/profile/measured_step.h"
#include "ask/profile/reconcile_layer.h"
#include "data/text/override.h"
#include "job/gpu_called.h"

struct LsReconcileRun {
  LsKineto *profile;
  LsMeasuredStep measured;
  LsJobResult *job;
  LsStepSide *predicted;
  LsReconciled *reconciled;
  LsLayerReport *layer;
  LsSeenReport *software;
  LsReconcileReport report;
};

void
ls_reconcile_run_free (LsReconcileRun *run)
{
  if (!run)
    return;
  ls_seen_report_free (run->software);
  ls_layer_report_free (run->layer);
  ls_reconciled_free (run->reconciled);
  ls_step_side_free (run->predicted);
  ls_measured_step_clear (&run->measured);
  ls_job_result_free (run->job);
  ls_kineto_free (run->profile);
  g_free (run);
}

static gboolean
load_profile (LsReconcileRun *run, const LsReconcileSpec *spec, GError **error)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  run->profile = ls_kineto_load (spec->path, diags);
  if (!run->profile) {
    ls_diag_list_to_error (diags, error);
    return FALSE;
  }
  return ls_measured_step_cut (run->profile, spec->step, &run->measured, error);
}

/* The rank of the job, and what the profile says that contradicts it. */
static uint32_t
choose_rank (LsReconcileRun *run, const LsReconcileSpec *spec)
{
  LsKineto *k = run->profile;
  if (k->world_size > 0 && k->world_size != run->job->plan->n_ranks)
    g_ptr_array_add (k->notes,
                     g_strdup_printf ("%s: profiled in a world of %" G_GINT64_FORMAT " ranks; the job has %u",
                                      k->path, k->world_size, run->job->plan->n_ranks));
  if (spec->rank >= 0 && k->rank >= 0 && k->rank != spec->rank)
    g_ptr_array_add (k->notes,
                     g_strdup_printf ("%s: the profile is of rank %" G_GINT64_FORMAT
                                      "; it is compared with rank %" G_GINT64_FORMAT,
                                      k->path, k->rank, spec->rank));
  int64_t rank = spec->rank >= 0 ? spec->rank : MAX (k->rank, 0);
  return (uint32_t) MIN (rank, (int64_t) UINT32_MAX);
}

static void
note_other_gpu (const LsReconcileRun *run)
{
  const char *ours = run->job->cluster->spec.gpu.name, *theirs = run->profile->gpu;
  if (theirs && ls_gpu_is_other (theirs, ours))
    g_ptr_array_add (run->profile->notes,
                     g_strdup_printf ("%s: profiled on \"%s\"; %s of %s are %s", run->profile->path, theirs,
                                      ls_cluster_chip_word (&run->job->cluster->spec, 2),
                                      run->job->cluster->spec.name, ours));
}

static void
note_open_end (const LsReconcileRun *run)
{
  if (run->measured.is_open)
    g_ptr_array_add (run->profile->notes,
                     g_strdup_printf ("%s: %s is the last one: it is taken to end with its last kernel",
                                      run->profile->path, run->measured.what));
}

/* Of the job's software without the changes of its name, which a file may not be based on. */
static gboolean
find_software (LsReconcileRun *run, const LsReconcileSpec *spec, GError **error)
{
  const LsSeenSoftware seen = ls_software_seen (run->measured.side);
  const char *name = run->job->strategy.software, *changes = name ? ls_override_find (name) : NULL;
  LsHardware chosen;
  if (!ls_hardware_for_job (run->job->hardware, run->job->strategy.attention_kernel, run->job->plan->n_ranks,
                            &chosen, error))
    return FALSE;
  run->software = ls_seen_report_new (&seen, run->layer, &chosen.calibration);
  run->software->based_on
      = name ? g_strndup (name, changes ? (gsize) (changes - name) - 1 : strlen (name)) : NULL;
  run->software->program
      = g_strdup (spec->job->software ? spec->job->software->program : "software of a trace");
  run->software->profile = run->profile->path;
  run->software->step = run->measured.what;
  run->software->gpu = run->profile->gpu;
  return TRUE;
}

static gboolean
check_same_job (const LsReconcileRun *run, const LsReconcileSpec *spec, GError **error)
{
  g_autofree char *why = spec->other_job ? NULL : ls_reconciled_other (run->reconciled);
  if (!why)
    return TRUE;
  const char *gpu = run->profile->gpu ? run->profile->gpu : "a GPU that it does not name";
  g_set_error (error, LS_ERROR, LS_ERROR_CONFLICT,
               "%s: error: it is plainly of another job, and is not compared: %s\n"
               "note: %s of it ran on %s, the job on %s; is it this model, batch, rank and step (--step)? "
               "--other-job compares it all the same",
               run->profile->path, why, run->measured.what, gpu, run->job->cluster->spec.gpu.name);
  return FALSE;
}

static gboolean
reconcile (LsReconcileRun *run, const LsReconcileSpec *spec, GError **error)
{
  uint32_t rank = choose_rank (run, spec);
  run->predicted = ls_step_side_of_timeline (run->job->timeline, rank, error);
  if (!run->predicted)
    return FALSE;
  run->reconciled = ls_reconcile (run->measured.side, run->predicted);
  if (!check_same_job (run, spec, error))
    return FALSE;
  run->layer = ls_layer_report_new (run->measured.side, run->predicted, run->job, error);
  if (!run->layer || !find_software (run, spec, error))
    return FALSE;
  note_other_gpu (run);
  note_open_end (run);
  run->report = (LsReconcileReport) { .reconciled = run->reconciled,
                                      .layer = run->layer,
                                      .software = run->software,
                                      .profile = run->profile->path,
                                      .step = run->measured.what,
                                      .gpu = run->profile->gpu,
                                      .cluster = run->job->cluster->spec.name,
                                      .rank = rank };
  return TRUE;
}

LsReconcileRun *
ls_reconcile_run_new (const LsReconcileSpec *spec, GError **error)
{
  g_autoptr (LsReconcileRun) run = g_new0 (LsReconcileRun, 1);
  if (!ls_measured_step_check (spec->step, error) || !load_profile (run, spec, error))
    return NULL;
  run->job = ls_job_spec_run (spec->job, error);
  return run->job && reconcile (run, spec, error) ? g_steal_pointer (&run) : NULL;
}

const LsReconcileReport *
ls_reconcile_run_report (const LsReconcileRun *run)
{
  return &run->report;
}

const GPtrArray *
ls_reconcile_run_notes (const LsReconcileRun *run)
{
  return run->profile->notes;
}
