/* job/job_export.c — the plan of a job as files: traces, and its kernels as a list. */
#include <inttypes.h>
#include <string.h>

#include "compute/cost.h"
#include "data/text/json_out.h"
#include "data/text/write_file.h"
#include "data/traces/traces.h"
#include "job/assumptions.h"
#include "job/job.h"
#include "job/knobs.h"
#include "plan/plan.h"

/* The kernels of a plan as a list to be timed (lockstep.shapes/1), which tools/kernelbench --shapes
 * reads. */

/* [n_kernels] of each the first op that runs it, newly allocated; NULL: none does. */
static const LsOp **
first_ops (const LsPlan *plan)
{
  const LsOp **first = g_new0 (const LsOp *, plan->n_kernels + 1);
  for (uint32_t s = plan->n_segments; s-- > 0;)
    for (uint32_t i = plan->segments[s].n_ops; i-- > 0;) {
      const LsOp *op = &plan->segments[s].ops[i];
      if (ls_op_takes (op->kind, LS_TAKES_GPU) && op->recorded == LS_TIME_NEVER)
        first[op->kernel] = op;
    }
  return first;
}

static bool
is_same (const LsKernel *a, const LsKernel *b)
{
  return strcmp (a->name, b->name) == 0 && a->kind == b->kind && a->dtype == b->dtype && a->m == b->m
      && a->n == b->n && a->k == b->k && a->batch == b->batch && a->bytes == b->bytes && a->flops == b->flops;
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
  g_autofree const LsOp **first = first_ops (plan);
  for (uint32_t i = 0, same = 0; i < plan->n_kernels; i++) {
    for (same = 0; same < i && !(first[same] && is_same (&plan->kernels[same], &plan->kernels[i]));)
      same++;
    if (first[i] && same == i)
      write_kernel (&w, &plan->kernels[i], first[i]);
  }
  ls_json_out_end_array (&w);
  return ls_json_out_close (&w);
}

/* --- the plan of a job as files: traces, and its kernels as a list ------------------------------- */

/* What a file says that a plan is of. */
static char *
source_of (const LsJobResult *r)
{
  if (!r->model.name)
    return g_strdup_printf ("%s: %s", r->trace, r->trace_source);
  g_autofree char *knobs = ls_knobs_format (&r->strategy);
  return g_strdup_printf ("lockstep trace export of %s: %s", r->model.name, knobs);
}

/* Rows of what a list of shapes has not; from the last on, of what times of kernels alone have not. */
static const char *const of_times[] = { "gpu_calibration", "nccl", "clock_spread", NULL };

/* The same of a file that nothing replays: what its numbers rest on, no other answer says. */
static char *
whole_source_of (const LsJobSpec *spec, LsJobResult *r, const char *command, const char *const *idle,
                 GPtrArray *notes)
{
  ls_assumptions_drop (r->assumptions, idle);
  ls_assumptions_drop_memory (r);
  g_autofree char *rests = ls_assumptions_text (r->assumptions),
                  *job = r->model.name ? ls_job_command (spec, &r->model, &r->strategy) : NULL,
                  *trace = job ? NULL : source_of (r);
  ls_note (notes, "%s", rests);
  return job ? g_strdup_printf ("%s of the job of %s", command, job)
             : g_strdup_printf ("%s, on %s", trace, r->cluster->spec.name);
}

char *
ls_job_spec_shapes (const LsJobSpec *spec, GPtrArray *notes, GError **error)
{
  g_autoptr (LsJobResult) r = ls_job_spec_prepare (spec, error);
  if (!r)
    return NULL;
  g_ptr_array_extend_and_steal (notes, g_steal_pointer (&r->notes));
  g_autofree char *source = whole_source_of (spec, r, "lockstep kernel --list-shapes", of_times, notes);
  return shapes_to_json (r->plan, source);
}

/* A job as far as its plan, and what a file says of it. */
typedef struct {
  const LsJobSpec *spec;
  LsJobResult *job;
  LsTraceHead head;
  const char *path;
  GPtrArray *notes;
  bool by_role; /* of a folder */
} Export;

static gboolean
write_trace (const Export *e, GError **error)
{
  g_autofree char *text = ls_trace_format (e->job->plan, &e->head, error);
  return text && ls_write_text (e->path, text, error);
}

/* What each kernel takes alone on the job's GPU, newly allocated. NULL: LS_ERROR_UNSUPPORTED. */
static LsTime *
times_of (const LsJobResult *r, GError **error)
{
  if (!ls_hardware_check_alike (&r->cluster->spec, "a trace with times of kernels", error))
    return NULL;
  LsTime *times = g_new (LsTime, MAX (1, r->plan->n_kernels));
  for (uint32_t i = 0; i < r->plan->n_kernels; i++)
    times[i] = ls_kernel_cost (&r->hardware->calibration, &r->cluster->spec.gpu, &r->plan->kernels[i]).alone;
  return times;
}

static gboolean
write_chakra (const Export *e, GError **error)
{
  g_autofree LsTime *times = times_of (e->job, error);
  return times && ls_chakra_write (e->job->plan, &e->head, times, e->by_role, e->path, error);
}

static gboolean
write_goal (const Export *e, GError **error)
{
  uint32_t n = 0;
  g_autofree LsTime *times = times_of (e->job, error);
  g_autofree char *source
      = times ? whole_source_of (e->spec, e->job, "lockstep trace export", of_times + 2, e->notes) : NULL;
  const LsGoal goal = { e->job->plan, e->job->cluster, &e->job->hardware->nccl, times, source };
  if (!times || !ls_goal_write (&goal, e->path, &n, error))
    return FALSE;
  if (n > 0)
    ls_note (e->notes,
             "%u collective%s in switches (NVLS, SHARP) written as ring%s: GOAL has no switches that compute",
             n, n == 1 ? "" : "s", n == 1 ? "" : "s");
  return TRUE;
}

static const struct {
  const char *name;
  gboolean (*write) (const Export *e, GError **error);
  bool by_role;
} formats[] = {
  { "lockstep", write_trace },
  { "chakra", write_chakra },
  { "chakra-roles", write_chakra, true },
  { "goal", write_goal },
};

gboolean
ls_job_spec_export (const LsJobSpec *spec, const char *format, const char *name, const char *path,
                    GPtrArray *notes, GError **error)
{
  g_autoptr (LsJobResult) r = ls_job_spec_prepare (spec, error);
  if (!r)
    return FALSE;
  bool has_model = r->model.name != NULL;
  ls_strategy_forget_placement (&r->strategy); /* the trace says where each rank is */
  const LsMesh mesh = { r->strategy.tp, r->strategy.cp, r->strategy.dp, r->strategy.pp };
  g_autofree char *source = source_of (r);
  const LsTraceHead head = {
    .name = name,
    .source = source,
    .measured_on = r->measured_on,
    .assumes = r->assumes,
    .compute_scale = r->compute_scale,
    .mesh = &mesh,
    .model = has_model ? &r->model : NULL,
    .strategy = has_model ? &r->strategy : NULL,
  };
  guint i = 0;
  while (format && strcmp (formats[i].name, format) != 0)
    i++;
  if (!spec->trace || formats[i].write == write_goal) /* else a replay says the same */
    g_ptr_array_extend_and_steal (notes, g_steal_pointer (&r->notes));
  if (spec->gpu_calibration && formats[i].write == write_trace)
    ls_note (notes, "--gpu-calibration has no effect here: the file has no times of kernels");
  if (spec->nccl && formats[i].write != write_goal)
    ls_note (notes, "--nccl has no effect here: the file has no times of messages");
  return formats[i].write (&(const Export) { spec, r, head, path, notes, formats[i].by_role }, error);
}
