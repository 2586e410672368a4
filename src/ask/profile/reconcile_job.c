#include "ask/profile/reconcile_job.h"

#include <lockstep/error.h>
#include <string.h>

#include "ask/profile/measured_step.h"
#include "compute/measured.h"
#include "data/jobs/job_files.h"
#include "data/text/field.h"
#include "data/text/override.h"
#include "job/hardware.h"
#include "lower/lower.h"

/* --- what a profile shows of the software that ran it, as keys of a strategy --------------------- */

/* NULL allowed */
static void
seen_report_free (LsSeenReport *r)
{
  if (!r)
    return;
  for (guint i = 0; i < r->keys->len; i++) {
    g_free (g_array_index (r->keys, LsSeenKey, i).value);
    g_free (g_array_index (r->keys, LsSeenKey, i).why);
  }
  g_array_unref (r->keys);
  g_free (r->based_on);
  g_free (r->program);
  g_free (r);
}

/* ---- keys ---- */

/* Takes value and why. */
static void
add_key (LsSeenReport *r, const char *key, char *value, char *why)
{
  const LsSeenKey k = { key, value, why };
  g_array_append_val (r->keys, k);
}

/* As the strategy that has it would be written. */
static char *
text_of (const char *key, const LsStrategy *s)
{
  return ls_field_text (ls_field_find (ls_strategy_fields, key), s, NULL);
}

static void
add_host_launch (LsSeenReport *r, const LsSeenSoftware *seen)
{
  if (seen->host_launch < 0) {
    add_key (
        r, "host_launch", NULL,
        g_strdup_printf ("%u launches of kernels found nothing running, too few to tell", seen->n_launches));
    return;
  }
  char *value = g_strdup_printf ("%.3fus", ls_time_to_s (seen->host_launch) * 1e6);
  add_key (
      r, "host_launch", value,
      g_strdup_printf (
          "median time between launches, of %u at which nothing ran; with what the profiler costs the host",
          seen->n_launches));
}

static void
add_kernels (LsSeenReport *r, const LsLayerReport *layer)
{
  if (!ls_layer_report_is_there (layer)) {
    add_key (r, "kernels", NULL, g_strdup ("layers are not distinguished"));
    return;
  }
  const LsLayerList *near = ls_layer_report_nearest (layer);
  add_key (r, "kernels", g_strdup (near->name),
           g_strdup_printf ("the nearest list, %u kernels of a layer apart", near->off));
}

static void
add_graphs (LsSeenReport *r, const LsSeenSoftware *seen, LsStrategy *s)
{
  if (seen->cuda_graphs < 0) {
    add_key (r, "cuda_graphs", NULL,
             seen->n_graphs == 0
                 ? g_strdup ("no graph is launched in this step")
                 : g_strdup_printf ("%u graphs, neither of a layer nor of a step", seen->n_graphs));
    return;
  }
  s->launch.cuda_graphs = seen->cuda_graphs;
  add_key (r, "cuda_graphs", text_of ("cuda_graphs", s),
           g_strdup_printf ("%u graphs are launched", seen->n_graphs));
}

static void
add_attention (LsSeenReport *r, const LsSeenSoftware *seen, const LsCalibration *c, LsStrategy *s)
{
  g_autofree char *name = seen->attention_name
      ? g_utf8_make_valid (seen->attention_name, MIN (strlen (seen->attention_name), 60))
      : NULL;
  if (seen->attention < 0) {
    add_key (r, "attention_kernel", NULL,
             name ? g_strdup_printf ("none of those that a strategy names is called \"%s\"", name)
                  : g_strdup ("no flash attention runs"));
    return;
  }
  s->use.attention_kernel = seen->attention;
  g_autofree char *value = text_of ("attention_kernel", s);
  bool is_known = ls_calibration_has_attention (c, (LsAttentionKernel) seen->attention);
  char *why = is_known ? g_strdup_printf ("its kernel is called \"%s\"", name)
                       : g_strdup_printf ("it is %s, which was not measured on the job's accelerator", value);
  add_key (r, "attention_kernel", is_known ? g_steal_pointer (&value) : NULL, why);
}

/* calibration: of the job, whose attentions there are; layer->lists may be empty. */
static LsSeenReport *
seen_report_new (const LsSeenSoftware *seen, const LsLayerReport *layer, const LsCalibration *calibration)
{
  LsSeenReport *r = g_new0 (LsSeenReport, 1);
  LsStrategy s;
  r->keys = g_array_new (FALSE, FALSE, sizeof (LsSeenKey));
  ls_strategy_init (&s);
  add_host_launch (r, seen);
  add_kernels (r, layer);
  add_graphs (r, seen, &s);
  add_attention (r, seen, calibration, &s);
  add_key (r, "host_comm", NULL, g_strdup ("a launch does not show what of it is the collective's"));
  add_key (r, "host_sync", NULL, g_strdup ("a blocking call lasts as long as what it waits for"));
  ls_strategy_clear (&s);
  return r;
}

/* The kernels of a profiled layer beside those that the job launches, and those that it would launch
 * with each list of kernels that there is (strategies/kernels). */

void
ls_layer_report_free (LsLayerReport *report)
{
  if (!report)
    return;
  for (guint i = 0; i < report->lists->len; i++)
    g_free (g_array_index (report->lists, LsLayerList, i).name);
  g_array_unref (report->lists);
  g_free (report);
}

typedef struct {
  LsLayerReport *report;
  const LsJobResult *job;
  LsHardware hardware;
  guint n_besides; /* kernels of a layer backwards that are of no operator */
  LsTime besides;
} Lists;

/* What the lowering adds around operators (gradients cast, added, copied) is the same with any list: what the
 * simulated step has more than the operators of the job. */
static void
find_besides (Lists *lists, const LsStepSide *predicted, const LsLayerKernels *operators)
{
  const LsLayerKernels simulated = ls_layer_kernels_of_side (predicted);
  const LsPassKernels *p = &simulated.pass[LS_PASS_BACKWARD];
  const LsPassKernels o = ls_pass_kernels_as (&operators->pass[LS_PASS_BACKWARD], p);
  if (p->n_layers == 0 || p->n[LS_LAYER_REST] <= o.n[LS_LAYER_REST])
    return;
  lists->n_besides = p->n[LS_LAYER_REST] - o.n[LS_LAYER_REST];
  lists->besides = MAX (0, p->time[LS_LAYER_REST] - o.time[LS_LAYER_REST]);
}

static gboolean
kernels_of (const Lists *lists, const LsStrategy *s, LsLayerKernels *ret, GError **error)
{
  g_autoptr (GArray) operators = ls_operators_new ();
  if (!ls_layer_operators (&lists->job->model, s, operators, error))
    return FALSE;
  *ret = ls_layer_kernels_of_operators (operators, &lists->hardware.calibration,
                                        &lists->job->cluster->spec.gpu);
  ret->pass[LS_PASS_BACKWARD].n[LS_LAYER_BESIDE] += lists->n_besides;
  ret->pass[LS_PASS_BACKWARD].time[LS_LAYER_BESIDE] += lists->besides;
  return TRUE;
}

static gboolean
add_list (Lists *lists, const char *name, const LsStrategy *s, GError **error)
{
  LsLayerList list = { 0 };
  if (!kernels_of (lists, s, &list.kernels, error))
    return FALSE;
  list.name = g_strdup (name);
  list.off = ls_layer_kernels_off (&lists->report->measured, &list.kernels);
  g_array_append_val (lists->report->lists, list);
  return TRUE;
}

/* The job with other kernels. */
static gboolean
add_other (Lists *lists, const char *name, LsRecipes *recipes, GError **error)
{
  LsStrategy s;
  if (g_strcmp0 (name, g_array_index (lists->report->lists, LsLayerList, 0).name) == 0)
    return TRUE;
  ls_strategy_copy (&s, &lists->job->strategy);
  ls_recipes_unref (s.use.recipes);
  s.use.recipes = ls_recipes_ref (recipes);
  gboolean ok = add_list (lists, name, &s, error);
  ls_strategy_clear (&s);
  return ok;
}

static bool
takes_lists (const LsStrategy *s)
{
  return s->dtype != LS_DTYPE_FP32 && s->dtype != LS_DTYPE_TF32;
}

static gboolean
add_shipped (Lists *lists, GError **error)
{
  const GPtrArray *all = ls_recipes_all ();
  gboolean ok = TRUE;
  for (guint i = 0; i < all->len && ok && takes_lists (&lists->job->strategy); i++) {
    LsRecipes *recipes = all->pdata[i];
    ok = add_other (lists, recipes->name, recipes, error);
  }
  return ok;
}

static void
find_nearest (LsLayerReport *report)
{
  for (guint i = 1; i < report->lists->len; i++)
    if (g_array_index (report->lists, LsLayerList, i).off < ls_layer_report_nearest (report)->off)
      report->nearest = i;
}

/* NULL: it has layers as a profile shows them. */
static const char *
refusal (const LsJobResult *job)
{
  if (job->model.n_layers == 0)
    return "the job is of a trace, which knows no model";
  return job->strategy.cp > 1 ? "with cp above 1 attention comes in steps, which are not layers" : NULL;
}

LsLayerReport *
ls_layer_report_new (const LsStepSide *measured, const LsStepSide *predicted, const LsJobResult *job,
                     GError **error)
{
  g_autoptr (LsLayerReport) report = g_new0 (LsLayerReport, 1);
  report->measured = ls_layer_kernels_of_side (measured);
  report->lists = g_array_new (FALSE, FALSE, sizeof (LsLayerList));
  report->why = refusal (job);
  if (report->why)
    return g_steal_pointer (&report);
  Lists lists = { .report = report, .job = job };
  const char *own = job->strategy.use.kernels ? job->strategy.use.kernels : LS_BUILT_IN_KERNELS;
  ls_hardware_for_job (job->hardware, &job->strategy, job->plan->n_ranks, &lists.hardware);
  LsLayerKernels operators;
  if (!kernels_of (&lists, &job->strategy, &operators, error))
    return NULL;
  find_besides (&lists, predicted, &operators);
  if (!add_list (&lists, own, &job->strategy, error) || !add_other (&lists, LS_BUILT_IN_KERNELS, NULL, error)
      || !add_shipped (&lists, error))
    return NULL;
  find_nearest (report);
  return g_steal_pointer (&report);
}

bool
ls_layer_report_is_there (const LsLayerReport *r)
{
  return r->lists->len > 0
      && (r->measured.pass[LS_PASS_FORWARD].n_layers > 0 || r->measured.pass[LS_PASS_BACKWARD].n_layers > 0);
}

const LsLayerList *
ls_layer_report_job (const LsLayerReport *r)
{
  return &g_array_index (r->lists, LsLayerList, 0);
}

const LsLayerList *
ls_layer_report_nearest (const LsLayerReport *r)
{
  return &g_array_index (r->lists, LsLayerList, r->nearest);
}

/* --- a job simulated, and a profile of one of its ranks laid beside it --------------------------- */

struct LsReconcileRun {
  LsKineto *profile;
  LsMeasuredStep measured;
  LsJobResult *job;
  LsStepSide *predicted;
  LsReconcileReport report;
};

void
ls_reconcile_run_free (LsReconcileRun *run)
{
  if (!run)
    return;
  seen_report_free (run->report.software);
  ls_layer_report_free (run->report.layer);
  ls_reconciled_free (run->report.reconciled);
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
  return run->profile ? ls_measured_step_cut (run->profile, spec->step, &run->measured, error)
                      : ls_diag_list_to_error (diags, error);
}

/* The rank of the job, and what the profile says that contradicts it. */
static uint32_t
choose_rank (LsReconcileRun *run, const LsReconcileSpec *spec)
{
  LsKineto *k = run->profile;
  if (k->world_size > 0 && k->world_size != run->job->plan->n_ranks)
    ls_note (k->notes, "%s: profiled in a world of %" G_GINT64_FORMAT " ranks; the job has %u", k->path,
             k->world_size, run->job->plan->n_ranks);
  if (spec->rank >= 0 && k->rank >= 0 && k->rank != spec->rank)
    ls_note (k->notes,
             "%s: the profile is of rank %" G_GINT64_FORMAT "; it is compared with rank %" G_GINT64_FORMAT,
             k->path, k->rank, spec->rank);
  int64_t rank = spec->rank >= 0 ? spec->rank : MAX (k->rank, 0);
  return (uint32_t) MIN (rank, (int64_t) UINT32_MAX);
}

static void
note_other_gpu (const LsReconcileRun *run)
{
  const char *ours = run->job->cluster->spec.gpu.name, *theirs = run->profile->gpu;
  if (theirs && ls_gpu_is_other (theirs, ours))
    ls_note (run->profile->notes, "%s: profiled on \"%s\"; %s of %s are %s", run->profile->path, theirs,
             ls_cluster_chip_word (&run->job->cluster->spec, 2), run->job->cluster->spec.name, ours);
}

static void
note_open_end (const LsReconcileRun *run)
{
  if (run->measured.is_open)
    ls_note (run->profile->notes, "%s: %s is the last one: it is assumed to end with its last kernel",
             run->profile->path, run->measured.what);
}

/* Of the job's software without the changes of its name, which a file may not be based on. */
static void
find_software (LsReconcileRun *run, const LsReconcileSpec *spec)
{
  const LsSeenSoftware seen = ls_software_seen (run->measured.side);
  const char *name = run->job->strategy.program.software, *changes = name ? ls_override_find (name) : NULL;
  LsHardware chosen;
  ls_hardware_for_job (run->job->hardware, &run->job->strategy, run->job->plan->n_ranks, &chosen);
  run->report.software = seen_report_new (&seen, run->report.layer, &chosen.calibration);
  run->report.software->based_on
      = name ? g_strndup (name, changes ? (gsize) (changes - name) - 1 : strlen (name)) : NULL;
  run->report.software->program
      = g_strdup (spec->job->software ? spec->job->software->program : "software of a trace");
  run->report.software->profile = run->profile->path;
  run->report.software->step = run->measured.what;
  run->report.software->gpu = run->profile->gpu;
}

static gboolean
check_same_job (const LsReconcileRun *run, const LsReconcileSpec *spec, GError **error)
{
  g_autofree char *why = spec->other_job ? NULL : ls_reconciled_other (run->report.reconciled);
  const char *gpu = run->profile->gpu ? run->profile->gpu : "a GPU that it does not name";
  return !why
      || ls_fail (error, LS_ERROR_CONFLICT,
                  "%s: error: it is plainly of another job, and is not compared: %s\n"
                  "note: %s of it ran on %s, the job on %s; is it this model, batch, rank and step (--step)? "
                  "--other-job compares it all the same",
                  run->profile->path, why, run->measured.what, gpu, run->job->cluster->spec.gpu.name);
}

static gboolean
reconcile (LsReconcileRun *run, const LsReconcileSpec *spec, GError **error)
{
  uint32_t rank = choose_rank (run, spec);
  run->predicted = ls_step_side_of_timeline (run->job->timeline, rank, error);
  if (!run->predicted)
    return FALSE;
  run->report.reconciled = ls_reconcile (run->measured.side, run->predicted);
  if (!check_same_job (run, spec, error))
    return FALSE;
  run->report.layer = ls_layer_report_new (run->measured.side, run->predicted, run->job, error);
  if (!run->report.layer)
    return FALSE;
  find_software (run, spec);
  note_other_gpu (run);
  note_open_end (run);
  run->report.profile = run->profile->path;
  run->report.step = run->measured.what;
  run->report.gpu = run->profile->gpu;
  run->report.cluster = run->job->cluster->spec.name;
  run->report.rank = rank;
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
