#include "job/job.h"

#include <math.h>
#include <string.h>

#include "analysis/conservation.h"
#include "analysis/op_class.h"
#include "data/jobs/job_files.h"
#include "data/traces/traces.h"
#include "exec/shortcuts/plan_bound.h"
#include "job/assumptions.h"
#include "job/job_from.h"
#include "job/job_interval.h"
#include "job/job_steps.h"
#include "job/softwares.h"
#include "lower/lower.h"

void
ls_job_result_free (LsJobResult *r)
{
  if (!r)
    return;
  ls_report_clear (&r->report);
  ls_timeline_free (r->timeline);
  ls_memory_free (r->memory);
  ls_plan_free (r->plan);
  if (!r->cluster_is_lent)
    ls_cluster_free (r->cluster);
  ls_hardware_free (r->hardware);
  g_clear_pointer (&r->notes, g_ptr_array_unref);
  ls_strategy_clear (&r->strategy);
  ls_model_clear (&r->model);
  g_clear_pointer (&r->assumptions, g_array_unref);
  g_clear_pointer (&r->knobs, g_array_unref);
  g_free (r->trace);
  g_free (r->trace_source);
  g_free (r->measured_on);
  g_free (r->assumes);
  ls_software_clear (r->software);
  g_free (r->software);
  g_free (r);
}

const LsSoftwareSpec *
ls_job_software (const LsJobSpec *spec, const LsJobResult *r)
{
  return spec->software || !r ? spec->software : r->software;
}

double
ls_job_result_step_time_s (const LsJobResult *r)
{
  return ls_time_to_s (r->timeline->window_end - r->timeline->window_start);
}

double
ls_job_result_mfu (const LsJobResult *r, bool is_causal)
{
  return r->model.name ? ls_mfu (&r->model, &r->strategy, r->cluster, r->plan, r->plan->n_ranks,
                                 ls_job_result_step_time_s (r), is_causal)
                       : NAN;
}

LsMemoryInput
ls_job_result_memory_input (const LsJobResult *r, const LsHardware *hardware, const LsMemoryOptions *options)
{
  return (LsMemoryInput) {
    .plan = r->plan,
    .timeline = r->timeline,
    .cluster = r->cluster,
    .nccl = &hardware->nccl,
    .options = *options,
  };
}

/* On TPUs a step is one executable, whose ops no host waits for, and data parallelism is XLA's, and slices
 * replicate what one of them cuts, unless the strategy says otherwise. */
static void
prefer_xla (LsStrategy *s, const LsCluster *cluster)
{
  bool is_open = s->dp_kind == LS_DP_AUTO && (s->zero_stage == LS_ZERO_AUTO || s->zero_stage == 3);
  if (!ls_cluster_traits (&cluster->spec)->runs_xla)
    return;
  s->launch.is_compiled = true;
  s->launch.launch_blocking = false;
  if (!is_open)
    return;
  s->dp_kind = LS_DP_XLA_FSDP;
  uint32_t per_slice = cluster->spec.gpus_per_node, n = s->gpus ? s->gpus : cluster->n_gpus;
  bool fills_slices = n > per_slice && n % per_slice == 0 && s->tp > 0 && per_slice % s->tp == 0;
  if (fills_slices && s->zero_stage == LS_ZERO_AUTO && s->pp == 1 && s->ep == 1)
    s->data.zero_group = per_slice / s->tp;
}

static gboolean
resolve (LsStrategy *s, const LsModel *model, const LsCluster *cluster, GError **error)
{
  prefer_xla (s, cluster);
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  if (ls_strategy_resolve (s, model, ls_cluster_n_taken (cluster), ls_cluster_common (cluster), diags))
    return TRUE;
  ls_diag_list_to_error (diags, error);
  return FALSE;
}

/* Also finds the layers of each chunk, where they are to be balanced. */
static LsPlan *
make_plan (const LsModel *model, const LsHardware *hardware, const LsCluster *cluster, LsStrategy *s,
           const char *order, GError **error)
{
  g_autoptr (LsOrders) orders = order ? ls_job_order_load (order, s, error) : NULL;
  if ((order && !orders) || !ls_budget_check_passes (s, model, hardware->max_memory_bytes, error))
    return NULL;
  g_autofree uint32_t *gpus = s->layout.allocation ? ls_job_gpus (s, cluster, error) : NULL;
  if (s->layout.allocation && !gpus)
    return NULL;
  g_autoptr (LsCallTimes) times = ls_call_times_new (&hardware->nccl, false);
  LsCostSources of = { hardware, cluster, s, times, gpus };
  LsLowerCosts costs = ls_lower_costs (&of);
  if (!ls_strategy_balance (s, model, &costs, error))
    return NULL;
  g_autoptr (LsPlan) plan = ls_lower_orders (model, s, orders, &costs, error);
  if (!plan || !ls_budget_check_plan (plan, hardware->max_memory_bytes, error))
    return NULL;
  for (uint32_t r = 0; r < plan->n_ranks && (gpus || cluster->spec.taken_per_node > 0); r++)
    ls_plan_gpus (plan)[r] = gpus ? gpus[r] : ls_cluster_gpu_of (&cluster->spec, r);
  if (!ls_job_check_pieces (plan, s, cluster, error))
    return NULL;
#ifndef NDEBUG
  if (!ls_plan_check (plan, error)) {
    g_prefix_error_literal (error, "the plan is broken: ");
    return NULL;
  }
#endif
  return g_steal_pointer (&plan);
}

static LsJobResult *
result_new (const LsModel *model, const LsStrategy *strategy)
{
  LsJobResult *r = g_new0 (LsJobResult, 1);
  ls_model_copy (&r->model, model);
  ls_strategy_copy (&r->strategy, strategy);
  return r;
}

/* On its cluster. */
static gboolean
settle (LsJobResult *r, const LsHardware *hardware, GError **error)
{
  return resolve (&r->strategy, &r->model, r->cluster, error)
      && ls_hardware_check_formats (&r->cluster->spec, &r->strategy, error)
      && ls_hardware_check_parts (hardware, r->cluster, &r->strategy, error);
}

static LsJobResult *
settle_new (const LsModel *model, const LsHardware *hardware, uint32_t n_nodes, const LsStrategy *strategy,
            GError **error)
{
  g_autoptr (LsJobResult) r = result_new (model, strategy);
  r->cluster = ls_job_build_cluster (&r->strategy, hardware, n_nodes, error);
  return r->cluster && settle (r, hardware, error) ? g_steal_pointer (&r) : NULL;
}

/* It follows from the GPUs, where they are said, and the nodes. */
static bool
has_same_cluster (const LsJobResult *job, const LsStrategy *s)
{
  return s->gpus > 0 && s->gpus == job->strategy.gpus && !s->layout.allocation
      && !job->strategy.layout.allocation;
}

LsJobResult *
ls_job_settle_beside (const LsJobResult *job, const LsHardware *hardware, uint32_t n_nodes,
                      const LsStrategy *strategy, GError **error)
{
  if (!has_same_cluster (job, strategy))
    return settle_new (&job->model, hardware, n_nodes, strategy, error);
  g_autoptr (LsJobResult) r = result_new (&job->model, strategy);
  r->cluster = job->cluster;
  r->cluster_is_lent = true;
  return settle (r, hardware, error) ? g_steal_pointer (&r) : NULL;
}

/* In the order of a file, if one is named. */
static gboolean
lower (LsJobResult *r, const LsHardware *hardware, const char *order, GError **error)
{
  LsHardware chosen;
  ls_hardware_for_job (hardware, &r->strategy, r->strategy.gpus, &chosen);
  r->plan = make_plan (&r->model, &chosen, r->cluster, &r->strategy, order, error);
  return r->plan && ls_conserves_flops (r->plan, &r->model, &r->strategy, error);
}

gboolean
ls_job_lower (LsJobResult *settled, const LsHardware *hardware, GError **error)
{
  return lower (settled, hardware, NULL, error);
}

/* Everything up to the plan. */
static LsJobResult *
prepare (const LsModel *model, const LsHardware *hardware, uint32_t n_nodes, const LsStrategy *strategy,
         const char *order, GError **error)
{
  g_autoptr (LsJobResult) r = settle_new (model, hardware, n_nodes, strategy, error);
  return r && lower (r, hardware, order, error) ? g_steal_pointer (&r) : NULL;
}

LsJobResult *
ls_job_prepare_on (const LsModel *model, const LsHardware *hardware, const LsCluster *cluster,
                   const LsStrategy *strategy, GError **error)
{
  g_autoptr (LsJobResult) r = result_new (model, strategy);
  r->cluster = (LsCluster *) cluster;
  r->cluster_is_lent = true;
  return settle (r, hardware, error) && lower (r, hardware, NULL, error) ? g_steal_pointer (&r) : NULL;
}

/* Rates need a time. Only a trace can be empty enough. */
static gboolean
check_duration (const LsTimeline *t, GError **error)
{
  if (t->window_end > t->window_start)
    return TRUE;
  return ls_fail (error, LS_ERROR_INPUT, "the step takes no time: there is nothing to report");
}

/* By the clock and the allocator that are asked for; it may have been measured so already. */
static void
measure_memory (LsJobResult *r, const LsHardware *hardware, const LsRunOptions *options)
{
  if (r->memory && memcmp (&r->memory->options, &options->memory, sizeof options->memory) == 0)
    return;
  const LsMemoryInput in = ls_job_result_memory_input (r, hardware, &options->memory);
  ls_memory_free (r->memory);
  r->memory = ls_memory_new (&in);
}

void
ls_job_hardware (const LsJobResult *r, const LsHardware *hardware, const LsRunOptions *options,
                 LsHardware *ret_hardware)
{
  bool is_drawn = options->stragglers && options->stragglers->sigma > 0;
  ls_hardware_for_job (hardware, &r->strategy, is_drawn ? 1 : r->plan->n_ranks, ret_hardware);
}

/* The cost of its allocator near the limit of the memory. */
static LsJobResult *
settle_allocator (LsJobResult *run, const LsHardware *hardware, const LsRunOptions *options,
                  double *ret_cost_share, GError **error)
{
  g_autoptr (LsJobResult) r = run;
  LsRunOptions own = *options;
  LsHardware chosen;
  if (!r)
    return NULL;
  ls_job_hardware (r, hardware, options, &chosen);
  ls_hardware_host (hardware, &r->strategy, &own.host);
  gboolean is_settled = ls_job_settle_retries (r, &chosen, &own, ret_cost_share, error);
  return is_settled ? g_steal_pointer (&r) : NULL;
}

LsJobResult *
ls_job_run_plain (LsJobResult *prepared, const LsHardware *hardware, const LsRunOptions *options,
                  double *ret_cost_share, GError **error)
{
  g_autoptr (LsJobResult) r = prepared;
  if (!r)
    return NULL;
  LsRunOptions own = *options;
  LsHardware chosen;
  ls_job_hardware (r, hardware, options, &chosen);
  ls_hardware_host (hardware, &r->strategy, &own.host);
  r->timeline
      = ls_run (r->plan, r->cluster, &chosen.calibration, &hardware->nccl, &own, ret_cost_share, error);
  return r->timeline && check_duration (r->timeline, error) ? g_steal_pointer (&r) : NULL;
}

LsJobResult *
ls_job_run_prepared (LsJobResult *prepared, const LsHardware *hardware, const LsRunOptions *options,
                     double *ret_cost_share, GError **error)
{
  LsJobResult *r = ls_job_run_plain (prepared, hardware, options, ret_cost_share, error);
  return settle_allocator (r, hardware, options, ret_cost_share, error);
}

LsJobResult *
ls_job_simulate_rest (LsJobResult *plain, const LsHardware *hardware, const LsRunOptions *options,
                      double cost_share[LS_N_COST_SHARES], GError **error)
{
  g_autoptr (LsJobResult) r = settle_allocator (plain, hardware, options, cost_share, error);
  if (!r)
    return NULL;
  double kernels_s = cost_share[0] + cost_share[1] + cost_share[2];
  r->guessed_share = kernels_s > 0 ? cost_share[2] / kernels_s : 0;
  measure_memory (r, hardware, options);
  if (!ls_conserves_memory (r->memory, error))
    return NULL;
  ls_job_fit_retries (r);
  if (options->no_spans)
    return g_steal_pointer (&r);
  const LsModel *model = r->model.name ? &r->model : NULL;
  ls_report_init (&r->report, r->timeline, r->memory, model, &r->strategy, r->cluster, cost_share);
  r->report.retries = r->retries;
  return g_steal_pointer (&r);
}

LsJobResult *
ls_job_simulate_prepared (LsJobResult *prepared, const LsHardware *hardware, const LsRunOptions *options,
                          GError **error)
{
  double cost_share[LS_N_COST_SHARES];
  LsJobResult *plain = ls_job_run_plain (prepared, hardware, options, cost_share, error);
  return ls_job_simulate_rest (plain, hardware, options, cost_share, error);
}

LsTime
ls_job_bound (const LsJobResult *prepared, const LsHardware *hardware, const LsRunOptions *options)
{
  LsHardware chosen;
  ls_job_hardware (prepared, hardware, options, &chosen);
  return ls_plan_bound (prepared->plan, prepared->cluster, &chosen.calibration, &hardware->nccl, options);
}

LsJobResult *
ls_job_prepare (const LsModel *model, const LsHardware *hardware, uint32_t n_nodes,
                const LsStrategy *strategy, GError **error)
{
  return prepare (model, hardware, n_nodes, strategy, NULL, error);
}

LsJobResult *
ls_job_simulate (const LsModel *model, const LsHardware *hardware, uint32_t n_nodes,
                 const LsStrategy *strategy, const LsRunOptions *options, GError **error)
{
  return ls_job_simulate_prepared (prepare (model, hardware, n_nodes, strategy, NULL, error), hardware,
                                   options, error);
}

/* --- model and strategy --------------------------------------------------------- */

/* Both inputs, all their diagnostics together. notes: of a foreign model file. */
static gboolean
load (const LsJobSpec *spec, LsModel *ret_model, LsHardware **ret_hardware, GPtrArray *notes, GError **error)
{
  if (!ls_job_check_named (spec, error))
    return FALSE;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  gboolean has_model = ls_job_load_model (spec, ls_job_says, ret_model, notes, diags);
  *ret_hardware = ls_job_hardware_load (spec, diags);
  bool is_loaded = has_model && *ret_hardware;
  if (is_loaded) {
    (*ret_hardware)->max_memory_bytes = spec->options.max_memory_bytes;
    is_loaded = ls_job_from_has_size (spec, &(*ret_hardware)->spec, diags);
  }
  if (is_loaded ? ls_hardware_set_slice (*ret_hardware, spec->slice, error)
              && ls_hardware_check_allocator (&(*ret_hardware)->spec, &spec->options.memory, error)
                : ls_diag_list_to_error (diags, error))
    return TRUE;
  if (has_model)
    ls_model_clear (ret_model);
  g_clear_pointer (ret_hardware, ls_hardware_free);
  return FALSE;
}

/* With what is left to the program that it is for, which may refuse it. */
static LsJobResult *
prepare_for (const LsJobSpec *spec, const LsModel *model, const LsHardware *hardware, GError **error)
{
  LsStrategy s;
  ls_strategy_copy (&s, &spec->strategy);
  ls_softwares_settle (spec->software, hardware, spec->said, &s);
  ls_job_fit_attention (spec, model, hardware, &s);
  LsJobResult *r = prepare (model, hardware, spec->n_nodes, &s, spec->order, error);
  ls_strategy_clear (&s);
  if (!r || ls_software_check (spec->program, model, &r->strategy, error))
    return r;
  ls_job_result_free (r);
  return NULL;
}

/* Of jobs that share a cluster its name alone says these. */
static void
assume_place (const LsJobSpec *spec, LsJobResult *r)
{
  ls_assumptions_add_place (&r->assumptions, spec->cluster, &r->cluster->spec,
                            spec->slice[0] > 0 || spec->segment > 0, spec->of_nodes ? NULL : "");
}

/* Nodes of several kinds have as many micro-batches each, where nothing else is said. */
static void
assume_micro_batches (LsJobResult *r)
{
  const LsStrategy *s = &r->strategy;
  if (ls_cluster_spec_n_kinds (&r->cluster->spec) == 1 || s->dp == 1 || s->layout.micro_batches_per_replica)
    return;
  ls_assumptions_add (&r->assumptions, "micro_batches_per_replica",
                      g_strdup_printf ("%u each", s->global_batch / (s->micro_batch * s->dp)),
                      "micro-batches of copies %s", "however fast their nodes are",
                      "--micro-batches-per-replica A,B,...");
}

/* Everything up to the plan. */
static LsJobResult *
prepare_spec (const LsJobSpec *spec, GError **error)
{
  LsModel model = { 0 };
  g_autoptr (LsHardware) hardware = NULL;
  g_autoptr (GPtrArray) notes = g_ptr_array_new_with_free_func (g_free);
  if (!load (spec, &model, &hardware, notes, error))
    return NULL;
  LsJobResult *r = prepare_for (spec, &model, hardware, error);
  ls_model_clear (&model);
  if (!r)
    return NULL;
  if (!spec->no_notes)
    ls_idle_notes (spec, r, hardware, notes);
  ls_job_note_attention_fit (spec, &r->model, hardware, &r->strategy, notes);
  r->assumptions = ls_assumptions_new (spec, &r->model, &r->strategy, NULL, NULL);
  ls_assumptions_add_times (&r->assumptions, spec, hardware, NULL, r->plan->n_ranks);
  assume_place (spec, r);
  assume_micro_batches (r);
  if (!spec->no_notes)
    r->knobs = ls_assumptions_of_knobs (spec, r, hardware, NULL, NULL);
  r->hardware = g_steal_pointer (&hardware);
  r->notes = g_steal_pointer (&notes);
  return r;
}

/* --- the whole road ---------------------------------------------------------------- */

static void
add_headroom (const LsJobSpec *spec, LsJobResult *r)
{
  LsReport *report = &r->report;
  ls_headroom_of (&spec->headroom, spec->program, ls_job_software (spec, r), r->strategy.dp_kind, r->hardware,
                  &spec->options.memory, &report->headroom);
  if (report->headroom.is_asked)
    report->fits = ls_headroom_is_left (&report->headroom, report->needed_bytes, report->capacity_bytes);
}

static LsJobResult *
run_one (const LsJobSpec *spec, GError **error)
{
  const LsRunOptions options = ls_job_spec_options (spec);
  LsJobResult *r = ls_job_spec_prepare (spec, error);
  r = ls_job_simulate_prepared (r, r ? r->hardware : NULL, &options, error);
  if (r)
    add_headroom (spec, r);
  if (r && !spec->no_notes) {
    ls_job_note_schedule (r);
    ls_job_note_kernels (spec, r);
    ls_job_note_retries (spec, r);
    const LsClusterSpec *c = &r->cluster->spec;
    bool is_across = ls_gpus_span_nodes (r->cluster, r->plan->gpu_of_rank, r->plan->n_ranks);
    ls_note_network (c, is_across, r->notes);
    ls_cluster_doubts (c, r->notes);
    ls_job_note_nodes (spec, r);
    ls_job_note_program (spec, r);
    ls_note_nccl (spec->nccl, r->hardware, &r->strategy, r->notes);
    ls_job_note_calibration (spec, r);
    ls_job_note_drawn_speeds (spec, r);
    if (r->guessed_share > 0) /* of a trace times may be recorded */
      ls_note_roofline (r->hardware, r->notes);
    ls_strategy_notes (&r->strategy, &r->model, r->notes);
    ls_note_documents (&r->strategy, &r->model, r->notes);
    ls_note_drops (&r->strategy, &r->model, r->notes);
  }
  return r;
}

/* The same job again; one that cannot be simulated, say for lack of memory, says why. */
static void
add_network (LsReport *report, const LsJobSpec *spec, LsJobNetwork network, const char *name)
{
  LsNetworkTime *row = &report->networks[report->n_networks++];
  LsJobSpec other = *spec; /* borrows all */
  other.network = network;
  g_autoptr (GError) error = NULL;
  g_autoptr (LsJobResult) r = run_one (&other, &error);
  row->name = name;
  row->refused = r ? NULL : g_strdup (error->message);
  if (!r)
    return;
  row->step_time_s = r->report.step_time_s;
  memcpy (row->breakdown_s, r->report.breakdown_s, sizeof row->breakdown_s);
}

static uint32_t
n_gpus_of (const LsPlan *plan)
{
  uint32_t n = 0;
  for (uint32_t rank = 0; rank < plan->n_ranks; rank++)
    n = MAX (n, ls_plan_gpu (plan, rank) + 1);
  return n;
}

/* Nodes that the job leaves idle, and what its network does not count. */
static void
note_uncounted (const LsJobSpec *spec, LsJobResult *r)
{
  const LsCluster *c = r->cluster;
  uint32_t n_gpus = spec->trace ? n_gpus_of (r->plan) : r->plan->n_ranks,
           n = (n_gpus - 1) / ls_cluster_taken (&c->spec) + 1;
  if (spec->n_nodes > n && !c->kind_of_host && !r->strategy.layout.placement)
    ls_note (r->notes, "--nodes %u: %u %s fill %u of them, the others are idle", spec->n_nodes,
             r->plan->n_ranks, ls_cluster_chip_word (&c->spec, r->plan->n_ranks), n);
  if (spec->network == LS_JOB_NETWORK_ALPHABETA)
    ls_note (r->notes, "--network alphabeta does not count what links carry: nothing is said of it");
}

/* --- knobs that change what is done, and no number of it --- */

/* Other work may hide it, or nothing wait for it. What a launch file says is not typed. */
static bool
may_be_hidden (const LsJobSpec *spec, const LsField *f)
{
  static const char *const keys[]
      = { "cuda_graphs", "dp_overlap", "placement", "rank_order", "tp_async", NULL };
  return !f->file_only && !ls_job_has_from (spec, f, &spec->strategy)
      && (g_strv_contains (keys, f->key) || g_str_has_suffix (f->key, "_max_ctas")
          || strcmp (f->topic, "host") == 0);
}

static void
forget (LsJobSpec *spec, const LsField *f)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  LsStrategy blank;
  ls_strategy_init (&blank);
  g_autofree char *usual = ls_field_text (f, spec->software ? &spec->software->defaults : &blank, NULL);
  if (f->kind == LS_FIELD_TIME)
    *(LsTime *) ((char *) &spec->strategy + f->offset) = LS_HOST_AUTO;
  else if (strcmp (f->key, "placement") == 0)
    ls_strategy_forget_placement (&spec->strategy);
  else
    ls_field_set_text (ls_strategy_fields, &spec->strategy, f->key, usual, diags);
  ls_strategy_clear (&blank);
  g_hash_table_remove (spec->said, f->key);
}

/* Whether the job is simulated once more to see what f does: not where what was typed is what it would be
 * without. Of a trace all that is typed is looked at. */
static bool
is_another_job (const LsJobSpec *spec, const LsJobSpec *without, const LsField *f)
{
  g_autofree char *own = ls_field_text (f, &spec->strategy, NULL),
                  *usual = ls_field_text (f, &without->strategy, NULL);
  return spec->trace || g_strcmp0 (own, usual) != 0;
}

/* Takes `without`: the job without what was typed, which says f (NULL: no knob of the strategy). What that
 * would be anyway is not noted. */
static void
note_if_hidden (LsJobSpec *without, const LsField *f, const char *typed, LsJobResult *r)
{
  const LsReport *own = &r->report;
  without->no_notes = true;
  g_autoptr (LsJobResult) other = run_one (without, NULL);
  g_autofree char *value = f && !without->trace ? ls_field_text (f, &r->strategy, NULL) : NULL,
                  *anyway = f && other ? ls_field_text (f, &other->strategy, NULL) : NULL;
  if (other && other->report.step_time_s == own->step_time_s && !(value && g_strcmp0 (value, anyway) == 0)
      && other->report.needed_bytes == own->needed_bytes
      && memcmp (other->report.breakdown_s, own->breakdown_s, sizeof own->breakdown_s) == 0)
    ls_note (r->notes, "%s changes neither the time nor the peak memory of this step", typed);
  ls_job_spec_clear (without);
}

static void
note_hidden (const LsJobSpec *spec, LsJobResult *r)
{
  LsJobSpec without;
  for (const LsField *f = ls_strategy_fields; f->key; f++) {
    g_autofree char *typed = may_be_hidden (spec, f) ? ls_job_said_as (spec, f) : NULL;
    if (!typed || g_ptr_array_find_with_equal_func (r->notes, typed, (GEqualFunc) g_str_has_prefix, NULL))
      continue;
    ls_job_spec_copy (spec, &without);
    forget (&without, f);
    if (is_another_job (spec, &without, f))
      note_if_hidden (&without, f, typed, r);
    else
      ls_job_spec_clear (&without);
  }
  if (spec->options.memory.clock == LS_MEMORY_HOST)
    return;
  ls_job_spec_copy (spec, &without);
  without.options.memory.clock = LS_MEMORY_HOST;
  note_if_hidden (&without, NULL, "--memory-clock", r);
}

LsJobResult *
ls_job_spec_run (const LsJobSpec *spec, GError **error)
{
  g_autoptr (LsJobResult) r = run_one (spec, error);
  if (r && !spec->no_notes)
    note_uncounted (spec, r);
  if (r && !spec->no_notes)
    note_hidden (spec, r);
  if (!r || spec->network != LS_JOB_NETWORK_ALL)
    return g_steal_pointer (&r);
  LsReport *report = &r->report;
  report->networks = g_new0 (LsNetworkTime, 3);
  report->n_networks = 1;
  report->networks[0] = (LsNetworkTime) { .name = "flow", .step_time_s = report->step_time_s };
  memcpy (report->networks[0].breakdown_s, report->breakdown_s, sizeof report->breakdown_s);
  add_network (report, spec, LS_JOB_NETWORK_ALPHABETA, "alphabeta");
  add_network (report, spec, LS_JOB_NETWORK_STEP, "step");
  return g_steal_pointer (&r);
}

gboolean
ls_job_spec_check (const LsJobSpec *spec, GError **error)
{
  LsJobSpec plain = *spec; /* borrows all */
  plain.no_notes = true;
  g_autoptr (LsJobResult) r = prepare_spec (&plain, error);
  return r != NULL;
}

/* --- a job that a trace holds -------------------------------------------------------------------- */

/* What a trace has fixed cannot be set. */
static gboolean
check_trace_knobs (const LsJobSpec *spec, GError **error)
{
  const char *knob = spec->model ? "model"
      : spec->order              ? "order"
      : spec->is_strict          ? "strict"
      : spec->segment > 0        ? "segment"
                                 : spec->strategy_knob;
  const LsField *f = knob ? ls_field_find_value (ls_strategy_fields, knob) : NULL;
  g_autofree char *flag = f ? ls_field_flag (f) : g_strconcat ("--", knob, NULL);
  if (knob)
    return ls_fail (error, LS_ERROR_USAGE, "%s does not go with --trace, which has fixed it", flag);
  return spec->cluster || ls_fail (error, LS_ERROR_USAGE, "expected --cluster");
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
  r->measured_on = g_steal_pointer (&t->measured_on);
  r->assumes = g_steal_pointer (&t->assumes);
  r->compute_scale = t->compute_scale > 0 ? t->compute_scale : 1;
  r->takes_dp = t->takes_dp;
  if (t->has_model)
    return;
  r->trace = g_steal_pointer (&t->name);
  r->trace_source = g_steal_pointer (&t->source);
}

/* Headroom and interval are as of the program that a trace names. */
static void
assume_software (const LsJobSpec *spec, LsJobResult *r)
{
  const char *name = r->strategy.program.software;
  bool is_named = name && strcmp (name, LS_SOFTWARE_TEXTBOOK) != 0;
  g_autoptr (LsDiagList) unheard = ls_diag_list_new_counting ();
  LsSoftwareSpec software;
  if (is_named && ls_software_load (name, &software, unheard))
    r->software = g_memdup2 (&software, sizeof software);
  else if (is_named)
    ls_note (
        r->notes,
        "software %s, which the trace names, is not at hand: headroom is as of %s, the interval as of what "
        "reduces gradients so",
        name, LS_SOFTWARE_TEXTBOOK);
  const bool has_model = r->model.name != NULL;
  if (!name && (has_model || !spec->headroom.is_set))
    ls_assumptions_add (&r->assumptions, "software", g_strdup (LS_SOFTWARE_TEXTBOOK),
                        has_model ? "headroom and interval as of %s" : "headroom as of %s",
                        "the trace says no program",
                        has_model ? "lockstep trace export --software NAME" : "--headroom SIZE");
}

/* What its import assumed, which is noted. */
static void
assume_import (LsJobResult *r)
{
  g_auto (GStrv) each = g_strsplit (r->assumes, " | ", -1);
  for (char **line = each; *line; line++)
    ls_note (r->notes, "%s", *line);
  ls_assumptions_add (&r->assumptions, "import", g_strjoinv ("; ", each), NULL, "the trace's",
                      "lockstep trace import PROFILE");
}

/* Of what a trace has times of, on whatever it is replayed. Kernels that were scaled are as somebody wants
 * them. */
static void
assume_measured (LsJobResult *r)
{
  static const char in_file[] = "\"recorded\" in its file",
                    in_any[] = "\"recorded\" or duration_micros in its file";
  const LsClusterSpec *c = &r->cluster->spec;
  const bool has_kernels = ls_plan_has_ops (r->plan, LS_TAKES_GPU, true), is_scaled = r->compute_scale != 1,
             is_kept = has_kernels && !is_scaled, has_ours = ls_plan_has_ops (r->plan, LS_TAKES_GPU, false);
  const char *quote = r->measured_on ? "\"" : "", *kernels = has_ours ? "recorded kernels" : "kernels";
  g_autofree char *copies = ls_op_classes_recorded (r->plan),
                  *gpu = g_strdup (r->measured_on ? r->measured_on : "a GPU that it does not name");
  if (has_kernels)
    ls_assumptions_add (&r->assumptions, "kernels",
                        is_scaled ? g_strdup_printf ("%s, times %g", gpu, r->compute_scale) : g_strdup (gpu),
                        has_ours ? "recorded kernels as they ran on %s" : "kernels as they ran on %s",
                        "the trace's",
                        r->assumes ? "lockstep trace import PROFILE --compute-scale FACTOR" : in_any);
  if (ls_plan_has_ops (r->plan, LS_TAKES_HOST, true))
    ls_assumptions_add (&r->assumptions, "host", g_strdup ("as measured"), "host %s", "the trace's",
                        r->assumes ? "lockstep trace import PROFILE --without-stalls" : in_any);
  if (copies)
    ls_assumptions_add (&r->assumptions, "copies", g_strdup (copies), "%s as measured", "the trace's",
                        in_file);
  if ((is_kept || copies) && (!r->measured_on || ls_gpu_is_other (r->measured_on, c->gpu.name)))
    ls_note (r->notes, "warning: %s%s%s keep the times that they took on %s%s%s; %s of %s are %s%s",
             is_kept ? kernels : "", is_kept && copies ? ", " : "", copies ? copies : "", quote, gpu, quote,
             ls_cluster_chip_word (c, 2), c->name, c->gpu.name,
             is_kept && r->assumes
                 ? ": lockstep trace import PROFILE --compute-scale FACTOR changes those of kernels"
                 : "");
  if (r->assumes)
    assume_import (r);
}

/* Up to its plan. Errors: those of reading it, LS_ERROR_USAGE (knobs that it has fixed),
 * LS_ERROR_CONFLICT. */
static LsJobResult *
prepare_trace (const LsJobSpec *spec, GError **error)
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
  const LsAllocation *others = size.layout.allocation; /* than the trace says, for its ranks */
  if (!r->cluster
      || (others
          && !ls_allocation_gpus (others, &r->cluster->spec, r->plan->n_ranks, ls_plan_gpus (r->plan), error))
      || (r->model.name && !ls_hardware_check_formats (&r->cluster->spec, &r->strategy, error)))
    return NULL;
  r->strategy.program.architecture = g_intern_string (ls_hardware_architecture (hardware));
  r->notes = g_ptr_array_new_with_free_func (g_free);
  if (r->model.name)
    r->assumptions = ls_assumptions_new (spec, &r->model, &r->strategy, NULL, NULL);
  assume_software (spec, r);
  ls_assumptions_add_times (&r->assumptions, spec, hardware, r->plan, r->plan->n_ranks);
  assume_place (spec, r);
  r->knobs = ls_assumptions_of_knobs (spec, r, hardware, NULL, NULL);
  ls_idle_notes (spec, r, hardware, r->notes);
  r->hardware = g_steal_pointer (&hardware);
  assume_measured (r);
  return g_steal_pointer (&r);
}

LsJobResult *
ls_job_spec_prepare (const LsJobSpec *spec, GError **error)
{
  return spec->trace ? prepare_trace (spec, error) : prepare_spec (spec, error);
}
