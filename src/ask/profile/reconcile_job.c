#include "ask/profile/reconcile_job.h"

#include <lockstep/error.h>
#include <string.h>

#include "base/list.h"
#include "compute/measured.h"
#include "data/jobs/job_files.h"
#include "data/text/field.h"
#include "data/text/override.h"
#include "job/assumptions.h"
#include "job/hardware.h"
#include "lower/lower.h"

/* --- what a profile shows of the software that ran it, as keys of a strategy --------------------- */

/* Takes value and why. */
static void
add_key (GArray *keys, const char *key, char *value, char *why)
{
  ls_list_add (keys, &(LsSeenKey) { value, why, key });
}

/* As the strategy that has it would be written. */
static char *
text_of (const char *key, const LsStrategy *s)
{
  return ls_field_text (ls_field_find (ls_strategy_fields, key), s, NULL);
}

static void
add_host_launch (GArray *keys, const LsSeenSoftware *seen)
{
  bool is_told = seen->host_launch >= 0;
  add_key (keys, "host_launch",
           is_told ? g_strdup_printf ("%.3fus", ls_time_to_s (seen->host_launch) * 1e6) : NULL,
           g_strdup_printf (is_told
                                ? "median time between launches, of %u at which nothing ran; with what the "
                                  "profiler costs the host"
                                : "%u launches of kernels found nothing running, too few to tell",
                            seen->n_launches));
}

static void
add_kernels (GArray *keys, const LsLayerReport *layer)
{
  const LsLayerList *near = ls_layer_report_is_there (layer) ? ls_layer_report_nearest (layer) : NULL;
  add_key (keys, "kernels", near ? g_strdup (near->name) : NULL,
           near ? g_strdup_printf ("the nearest list, %u kernels of a layer apart", near->off)
                : g_strdup ("layers are not distinguished"));
}

static void
add_graphs (GArray *keys, const LsSeenSoftware *seen, LsStrategy *s)
{
  bool is_told = seen->cuda_graphs >= 0;
  s->launch.cuda_graphs = seen->cuda_graphs;
  add_key (keys, "cuda_graphs", is_told ? text_of ("cuda_graphs", s) : NULL,
           is_told ? g_strdup_printf ("%u graphs are launched", seen->n_graphs)
               : seen->n_graphs == 0
               ? g_strdup ("no graph is launched in this step")
               : g_strdup_printf ("%u graphs, neither of a layer nor of a step", seen->n_graphs));
}

static void
add_attention (GArray *keys, const LsSeenSoftware *seen, const LsCalibration *c, LsStrategy *s)
{
  g_autofree char *name = seen->attention_name
      ? g_utf8_make_valid (seen->attention_name, MIN (strlen (seen->attention_name), 60))
      : NULL;
  if (seen->attention < 0) {
    add_key (keys, "attention_kernel", NULL,
             name ? g_strdup_printf ("none of those that a strategy names is called \"%s\"", name)
                  : g_strdup ("no flash attention runs"));
    return;
  }
  s->use.attention_kernel = seen->attention;
  g_autofree char *value = text_of ("attention_kernel", s);
  bool is_known = ls_calibration_has_attention (c, (LsAttentionKernel) seen->attention);
  char *why = is_known ? g_strdup_printf ("its kernel is called \"%s\"", name)
                       : g_strdup_printf ("it is %s, which was not measured on the job's accelerator", value);
  add_key (keys, "attention_kernel", is_known ? g_steal_pointer (&value) : NULL, why);
}

/* LsSeenKey. calibration: of the job, whose attentions there are; layer->lists may be empty. */
static GArray *
seen_keys (const LsSeenSoftware *seen, const LsLayerReport *layer, const LsCalibration *calibration)
{
  GArray *keys = ls_list_new (sizeof (LsSeenKey), ls_clear_2_texts);
  LsStrategy s;
  ls_strategy_init (&s);
  add_host_launch (keys, seen);
  add_kernels (keys, layer);
  add_graphs (keys, seen, &s);
  add_attention (keys, seen, calibration, &s);
  add_key (keys, "host_comm", NULL, g_strdup ("a launch does not show what of it is the collective's"));
  add_key (keys, "host_sync", NULL, g_strdup ("a blocking call lasts as long as what it waits for"));
  ls_strategy_clear (&s);
  return keys;
}

/* The kernels of a profiled layer beside those that the job launches, and those that it would launch
 * with each list of kernels that there is (strategies/kernels). */

void
ls_layer_report_free (LsLayerReport *report)
{
  if (!report)
    return;
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

LsLayerReport *
ls_layer_report_new (const LsStepSide *measured, const LsStepSide *predicted, const LsJobResult *job,
                     GError **error)
{
  g_autoptr (LsLayerReport) report = g_new0 (LsLayerReport, 1);
  report->measured = ls_layer_kernels_of_side (measured);
  report->lists = ls_list_new (sizeof (LsLayerList), ls_clear_text);
  report->why = job->model.n_layers == 0 ? "the job is of a trace, which knows no model"
      : job->strategy.cp > 1             ? "with cp above 1 attention comes in steps, which are not layers"
                                         : NULL;
  if (report->why)
    return g_steal_pointer (&report);
  Lists lists = { .report = report, .job = job };
  const char *own = job->strategy.use.kernels ? job->strategy.use.kernels : LS_BUILT_IN_KERNELS;
  ls_hardware_for_job (job->hardware, &job->strategy, job->plan->n_ranks, &lists.hardware);
  LsLayerKernels operators;
  if (!kernels_of (&lists, &job->strategy, &operators, error))
    return NULL;
  find_besides (&lists, predicted, &operators);
  if (!add_list (&lists, own, &job->strategy, error) || !add_other (&lists, LS_BUILT_IN_KERNELS, NULL, error))
    return NULL;
  const GPtrArray *shipped = ls_recipes_all ();
  bool takes_lists = job->strategy.dtype != LS_DTYPE_FP32 && job->strategy.dtype != LS_DTYPE_TF32;
  for (guint i = 0; takes_lists && i < shipped->len; i++)
    if (!add_other (&lists, ((LsRecipes *) shipped->pdata[i])->name, shipped->pdata[i], error))
      return NULL;
  for (guint i = 1; i < report->lists->len; i++)
    if (g_array_index (report->lists, LsLayerList, i).off < ls_layer_report_nearest (report)->off)
      report->nearest = i;
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

void
ls_reconcile_report_free (LsReconcileReport *r)
{
  if (!r)
    return;
  g_clear_pointer (&r->seen, g_array_unref);
  g_free (r->based_on);
  g_free (r->program);
  ls_layer_report_free (r->layer);
  ls_reconciled_free (r->reconciled);
  ls_step_side_free (r->predicted);
  ls_measured_step_clear (&r->measured);
  ls_job_result_free (r->job);
  ls_kineto_free (r->trace);
  g_free (r);
}

static gboolean
load_profile (LsReconcileReport *r, const LsReconcileSpec *spec, GError **error)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  r->trace = ls_kineto_load (spec->path, diags);
  if (!r->trace)
    return ls_diag_list_to_error (diags, error);
  gboolean ok = ls_measured_step_cut (r->trace, spec->step, &r->measured, error);
  r->profile = r->trace->path;
  r->step = r->measured.what;
  r->gpu = r->trace->gpu;
  return ok;
}

/* The rank of the job, and what the profile says that contradicts it. */
static uint32_t
choose_rank (const LsReconcileReport *r, const LsReconcileSpec *spec)
{
  const LsKineto *k = r->trace;
  if (k->world_size > 0 && k->world_size != r->job->plan->n_ranks)
    ls_note (k->notes, "%s: profiled in a world of %" G_GINT64_FORMAT " ranks; the job has %u", k->path,
             k->world_size, r->job->plan->n_ranks);
  if (spec->rank >= 0 && k->rank >= 0 && k->rank != spec->rank)
    ls_note (k->notes,
             "%s: the profile is of rank %" G_GINT64_FORMAT "; it is compared with rank %" G_GINT64_FORMAT,
             k->path, k->rank, spec->rank);
  int64_t rank = spec->rank >= 0 ? spec->rank : MAX (k->rank, 0);
  return (uint32_t) MIN (rank, (int64_t) UINT32_MAX);
}

static void
note_differences (const LsReconcileReport *r)
{
  const LsClusterSpec *cluster = &r->job->cluster->spec;
  if (r->gpu && ls_gpu_is_other (r->gpu, cluster->gpu.name))
    ls_note (r->trace->notes, "%s: profiled on \"%s\"; %s of %s are %s", r->profile, r->gpu,
             ls_cluster_chip_word (cluster, 2), cluster->name, cluster->gpu.name);
  if (r->measured.is_open)
    ls_note (r->trace->notes, "%s: %s is the last one: it is assumed to end with its last kernel", r->profile,
             r->step);
}

/* Of the job's software without the changes of its name, which a file may not be based on. */
static void
find_software (LsReconcileReport *r, const LsReconcileSpec *spec)
{
  const LsSeenSoftware seen = ls_software_seen (r->measured.side);
  const char *name = r->job->strategy.program.software;
  LsHardware chosen;
  ls_hardware_for_job (r->job->hardware, &r->job->strategy, r->job->plan->n_ranks, &chosen);
  r->seen = seen_keys (&seen, r->layer, &chosen.calibration);
  r->based_on = name ? ls_override_bare (name) : NULL;
  r->program = g_strdup (spec->job->software ? spec->job->software->program : "software of a trace");
}

static gboolean
check_same_job (const LsReconcileReport *r, const LsReconcileSpec *spec, GError **error)
{
  g_autofree char *why = spec->other_job ? NULL : ls_reconciled_other (r->reconciled);
  return !why
      || ls_fail (error, LS_ERROR_CONFLICT,
                  "%s: error: it is plainly of another job, and is not compared: %s\n"
                  "note: %s of it ran on %s, the job on %s; is it this model, batch, rank and step (--step)? "
                  "--other-job compares it all the same",
                  r->profile, why, r->step, r->gpu ? r->gpu : "a GPU that it does not name",
                  r->job->cluster->spec.gpu.name);
}

/* Which step and rank are compared is a row, as what the job rests on. */
static void
assume_step (LsReconcileReport *r, const LsReconcileSpec *spec)
{
  GArray **rows = &r->job->assumptions;
  const bool has_steps = r->trace->steps->len > 0, says_rank = spec->rank >= 0;
  const char *step = has_steps ? "the last whole one" : "the profile marks no steps",
             *rank = r->trace->rank >= 0 ? "the profile's" : "by default";
  ls_assumptions_add (rows, "step", g_strdup (r->step), spec->step ? NULL : "%s", spec->step ? NULL : step,
                      has_steps ? "--step N" : "--step FROM:TO");
  ls_assumptions_add (rows, "rank", g_strdup_printf ("%u", r->rank), says_rank ? NULL : "rank %s",
                      says_rank ? NULL : rank, "--rank N");
  ls_assumptions_drop_memory (r->job);
}

static gboolean
reconcile (LsReconcileReport *r, const LsReconcileSpec *spec, GError **error)
{
  r->cluster = r->job->cluster->spec.name;
  r->rank = choose_rank (r, spec);
  r->predicted = ls_step_side_of_timeline (r->job->timeline, r->rank, error);
  if (!r->predicted)
    return FALSE;
  r->reconciled = ls_reconcile (r->measured.side, r->predicted);
  if (!check_same_job (r, spec, error))
    return FALSE;
  r->layer = ls_layer_report_new (r->measured.side, r->predicted, r->job, error);
  if (!r->layer)
    return FALSE;
  find_software (r, spec);
  note_differences (r);
  assume_step (r, spec);
  return TRUE;
}

LsReconcileReport *
ls_reconcile_report_new (const LsReconcileSpec *spec, GError **error)
{
  g_autoptr (LsReconcileReport) r = g_new0 (LsReconcileReport, 1);
  if (!ls_measured_step_check (spec->step, error) || !load_profile (r, spec, error))
    return NULL;
  r->job = ls_job_spec_run (spec->job, error);
  return r->job && reconcile (r, spec, error) ? g_steal_pointer (&r) : NULL;
}
