/* job/job_trace.c — a job that a trace holds. */
#include "job/assumptions.h"
#include "job/job_steps.h"

#include "data/traces/traces.h"
#include "job/hardware.h"

/* What a trace has fixed cannot be set. */
static gboolean
check_trace_knobs (const LsJobSpec *spec, GError **error)
{
  const char *knob = spec->model ? "model"
      : spec->order              ? "order"
      : spec->is_strict          ? "strict"
      : spec->segment > 0        ? "segment"
                                 : spec->strategy_knob;
  if (knob)
    g_set_error (error, LS_ERROR, LS_ERROR_USAGE, "--%s does not go with --trace, which has fixed it", knob);
  else if (!spec->cluster)
    g_set_error_literal (error, LS_ERROR, LS_ERROR_USAGE, "expected --cluster");
  return !knob && spec->cluster;
}

static uint32_t
n_gpus_of (const LsPlan *plan)
{
  uint32_t n = 0;
  for (uint32_t rank = 0; rank < plan->n_ranks; rank++)
    n = MAX (n, ls_plan_gpu (plan, rank) + 1);
  return n;
}

/* The trace is emptied. What the host pays may be said besides. */
static void
take_trace (LsJobResult *r, LsTrace *t, const LsStrategy *said)
{
  r->plan = g_steal_pointer (&t->plan);
  r->model = t->model;
  t->model = (LsModel) { 0 };
  r->strategy = t->strategy;
  ls_strategy_init (&t->strategy);
  for (int i = 0; i < LS_N_HOST_COSTS; i++)
    if (said->launch.host[i] != LS_HOST_AUTO)
      r->strategy.launch.host[i] = said->launch.host[i];
  if (t->has_model)
    return;
  r->trace = g_steal_pointer (&t->name);
  r->trace_source = g_steal_pointer (&t->source);
}

/* Its ranks on other GPUs than the trace says, if the job does. */
static gboolean
place (LsJobResult *r, const LsAllocation *a, GError **error)
{
  return !a || ls_allocation_gpus (a, &r->cluster->spec, r->plan->n_ranks, ls_plan_gpus (r->plan), error);
}

static const char *
whence_of_trace (const char *knob)
{
  return "the trace's";
}

LsJobResult *
ls_job_prepare_trace (const LsJobSpec *spec, GError **error)
{
  if (!check_trace_knobs (spec, error))
    return NULL;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsTrace) trace = ls_trace_load (spec->trace, spec->strategy.dp, diags);
  g_autoptr (LsHardware) hardware = ls_job_hardware_load (spec, diags);
  if (!ls_diag_list_to_error (diags, error))
    return NULL;
  hardware->max_memory_bytes = spec->options.max_memory_bytes;

  g_autoptr (LsJobResult) r = g_new0 (LsJobResult, 1);
  take_trace (r, trace, &spec->strategy);
  if (!ls_hardware_set_slice (hardware, spec->slice, error)
      || !ls_hardware_check_allocator (&hardware->spec, &spec->options.memory, error))
    return NULL;
  hardware->spec.segment = 0; /* it says where each rank is */
  LsStrategy size = { .gpus = spec->n_nodes || hardware->spec.n_nodes > 1 ? 0 : n_gpus_of (r->plan),
                      .layout.allocation = spec->strategy.layout.allocation };
  r->cluster = ls_job_build_cluster (&size, hardware, spec->n_nodes, error);
  if (!r->cluster || !place (r, size.layout.allocation, error)
      || (r->model.name && !ls_hardware_check_formats (&r->cluster->spec, &r->strategy, error)))
    return NULL;
  r->strategy.program.architecture = g_intern_string (ls_hardware_architecture (hardware));
  if (r->model.name)
    r->assumptions = ls_assumptions_new (spec, &r->model, &r->strategy, whence_of_trace);
  r->hardware = g_steal_pointer (&hardware);
  r->notes = g_ptr_array_new_with_free_func (g_free);
  return g_steal_pointer (&r);
}
