/* job/job_export.c — the plan of a job as files: traces, and its kernels as a list. */
#include <inttypes.h>
#include <string.h>

#include "compute/cost.h"
#include "data/text/json_out.h"
#include "data/traces/traces.h"
#include "job/job.h"
#include "job/knobs.h"
#include "plan/plan.h"

/* The kernels of a plan as a list to be timed (lockstep.shapes/1), which tools/kernelbench --shapes
 * reads. */

/* The first op that runs it; NULL: none does. */
static const LsOp *
find_op (const LsPlan *plan, uint32_t kernel)
{
  for (uint32_t s = 0; s < plan->n_segments; s++)
    for (uint32_t i = 0; i < plan->segments[s].n_ops; i++) {
      const LsOp *op = &plan->segments[s].ops[i];
      if (ls_op_takes (op->kind, LS_TAKES_GPU) && op->kernel == kernel && op->recorded == LS_TIME_NEVER)
        return op;
    }
  return NULL;
}

static bool
is_same (const LsKernel *a, const LsKernel *b)
{
  return strcmp (a->name, b->name) == 0 && a->kind == b->kind && a->dtype == b->dtype && a->m == b->m
      && a->n == b->n && a->k == b->k && a->batch == b->batch && a->bytes == b->bytes && a->flops == b->flops;
}

static bool
is_written (const LsPlan *plan, uint32_t kernel)
{
  for (uint32_t i = 0; i < kernel; i++)
    if (is_same (&plan->kernels[i], &plan->kernels[kernel]) && find_op (plan, i))
      return true;
  return false;
}

static void
write_size (LsJsonOut *w, const char *key, uint64_t size)
{
  if (size > 0)
    ls_json_out_uint (w, key, size);
}

static void
write_kernel (LsJsonOut *w, const LsKernel *k, const LsOp *op)
{
  g_autofree char *bytes = g_strdup_printf ("%" PRIu64 "B", (uint64_t) k->bytes);
  ls_json_out_begin_object (w, NULL);
  ls_json_out_string (w, "name", k->name);
  ls_json_out_string (w, "kind", ls_kernel_kind_names[k->kind].name);
  ls_json_out_string (w, "dtype", ls_dtype_name (k->dtype));
  write_size (w, "m", k->m);
  write_size (w, "n", k->n);
  write_size (w, "k", k->k);
  ls_json_out_uint (w, "batch", k->batch);
  ls_json_out_double (w, "flops", k->flops);
  ls_json_out_string (w, "bytes", bytes);
  if (k->access != LS_ACCESS_NONE)
    ls_json_out_string (w, "access", ls_access_names[k->access].name);
  ls_json_out_string (w, "tag", ls_tag_names[op->tag].name);
  ls_json_out_end_object (w);
}

/* Each kernel once, in the order of the plan, as a trace has it (src/manual/formats/trace.md), with the tag
 * of the first op that runs it: of a product it says which operands are transposed. Kernels that
 * no op runs are left out. source: what the plan is of. Newly allocated JSON text. */
static char *
shapes_to_json (const LsPlan *plan, const char *source)
{
  LsJsonOut w;
  ls_json_out_open_as (&w, "shapes");
  ls_json_out_string (&w, "source", source);
  ls_json_out_begin_array (&w, "kernels");
  for (uint32_t i = 0; i < plan->n_kernels; i++) {
    const LsOp *op = find_op (plan, i);
    if (op && !is_written (plan, i))
      write_kernel (&w, &plan->kernels[i], op);
  }
  ls_json_out_end_array (&w);
  return ls_json_out_close (&w);
}

/* --- the plan of a job as files: traces, and its kernels as a list ------------------------------- */

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
  return shapes_to_json (r->plan, source);
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
    .measured_on = r->measured_on,
    .assumes = r->assumes,
    .compute_scale = r->compute_scale,
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

/* The same with what each kernel takes alone on the job's GPU, newly allocated; NULL: *error is set, and
 * there is nothing to end. */
static LsTime *
export_begin_timed (const LsJobSpec *spec, const char *name, Export *e, GError **error)
{
  if (!export_begin (spec, name, e, error))
    return NULL;
  const LsJobResult *r = e->job;
  if (!ls_hardware_check_alike (&r->cluster->spec, "a trace with times of kernels", error)) {
    export_end (e);
    return NULL;
  }
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
  g_autofree LsTime *times = export_begin_timed (spec, name, &e, error);
  if (!times)
    return FALSE;
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
  g_autofree LsTime *times = export_begin_timed (spec, name, &e, error);
  if (!times)
    return FALSE;
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
