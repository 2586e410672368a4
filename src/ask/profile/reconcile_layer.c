#include "ask/profile/reconcile_layer.h"

#include "data/jobs/read_recipes.h"
#include "lower/lower.h"

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
  g_autoptr (GArray) operators = g_array_new (FALSE, FALSE, sizeof (LsOperator));
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
  ls_recipes_unref (s.recipes);
  s.recipes = ls_recipes_ref (recipes);
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
  const char *own = job->strategy.kernels ? job->strategy.kernels : LS_BUILT_IN_KERNELS;
  if (!ls_hardware_for_job (job->hardware, job->strategy.attention_kernel, job->plan->n_ranks,
                            &lists.hardware, error))
    return NULL;
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
