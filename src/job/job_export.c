/* job/job_export.c — the plan of a job as files: traces, and its kernels as a list. */
#include "compute/cost.h"
#include "data/jobs/write_shapes.h"
#include "data/traces/chakra.h"
#include "data/traces/goal.h"
#include "data/traces/trace_json.h"
#include "job/job.h"
#include "job/knobs.h"

/* What a file says that a plan is of. */
static char *
source_of (const LsJobResult *r, const char *command)
{
  if (!r->model.name)
    return g_strdup_printf ("%s: %s", r->trace, r->trace_source);
  g_autofree char *knobs = ls_knobs_format (&r->strategy);
  return g_strdup_printf ("%s of %s: %s", command, r->model.name, knobs);
}

char *
ls_job_spec_shapes (const LsJobSpec *spec, GError **error)
{
  g_autoptr (LsJobResult) r = ls_job_spec_prepare (spec, error);
  if (!r)
    return NULL;
  g_autofree char *source = source_of (r, "lockstep kernel --list-shapes");
  return ls_shapes_to_json (r->plan, source);
}

/* A job as far as its plan, and what a file says of it. */
typedef struct {
  LsJobResult *job;
  LsMesh mesh;
  char *source;
  LsTraceHead head;
} Export;

static gboolean
export_begin (const LsJobSpec *spec, const char *name, Export *e, GError **error)
{
  LsJobResult *r = e->job = ls_job_spec_prepare (spec, error);
  if (!r)
    return FALSE;
  bool has_model = r->model.name != NULL;
  ls_strategy_forget_placement (&r->strategy); /* the trace says where each rank is */
  e->mesh = (LsMesh) { r->strategy.tp, r->strategy.cp, r->strategy.dp, r->strategy.pp };
  e->source = source_of (r, "lockstep trace export");
  e->head = (LsTraceHead) {
    .name = name,
    .source = e->source,
    .mesh = &e->mesh,
    .model = has_model ? &r->model : NULL,
    .strategy = has_model ? &r->strategy : NULL,
  };
  return TRUE;
}

static void
export_end (Export *e)
{
  ls_job_result_free (e->job);
  g_free (e->source);
}

char *
ls_job_spec_export (const LsJobSpec *spec, const char *name, GError **error)
{
  Export e;
  if (!export_begin (spec, name, &e, error))
    return NULL;
  char *text = ls_trace_format (e.job->plan, &e.head, error);
  export_end (&e);
  return text;
}

/* Each kernel alone on the job's GPU. */
static LsTime *
kernel_times (const LsJobResult *r)
{
  LsTime *times = g_new (LsTime, MAX (1, r->plan->n_kernels));
  for (uint32_t i = 0; i < r->plan->n_kernels; i++)
    times[i] = ls_kernel_cost (&r->hardware->calibration, &r->cluster->spec.gpu, &r->plan->kernels[i]).alone;
  return times;
}

gboolean
ls_job_spec_export_chakra (const LsJobSpec *spec, const char *name, bool by_role, const char *folder,
                           GError **error)
{
  Export e;
  if (!export_begin (spec, name, &e, error))
    return FALSE;
  if (!ls_hardware_check_alike (&e.job->cluster->spec, "a trace with times of kernels", error)) {
    export_end (&e);
    return FALSE;
  }
  g_autofree LsTime *times = kernel_times (e.job);
  gboolean ok = ls_chakra_write (e.job->plan, &e.head, times, by_role, folder, error);
  export_end (&e);
  return ok;
}

gboolean
ls_job_spec_export_goal (const LsJobSpec *spec, const char *name, const char *path, char **ret_note,
                         GError **error)
{
  Export e;
  *ret_note = NULL;
  if (!export_begin (spec, name, &e, error))
    return FALSE;
  if (!ls_hardware_check_alike (&e.job->cluster->spec, "a trace with times of kernels", error)) {
    export_end (&e);
    return FALSE;
  }
  g_autofree LsTime *times = kernel_times (e.job);
  uint32_t n_rings;
  const LsGoal goal = { e.job->plan, e.job->cluster, &e.job->hardware->nccl, times, e.source };
  gboolean ok = ls_goal_write (&goal, path, &n_rings, error);
  if (ok && n_rings > 0)
    *ret_note = g_strdup_printf ("%u collective%s in switches (NVLS, SHARP) written as ring%s: GOAL has no "
                                 "switches that compute",
                                 n_rings, n_rings == 1 ? "" : "s", n_rings == 1 ? "" : "s");
  export_end (&e);
  return ok;
}
