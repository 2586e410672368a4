#include "sweep/sweep.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include <lockstep/error.h>

#include "data/text/field.h"
#include "job/job_from.h"
#include "job/job_interval.h"
#include "job/softwares.h"
#include "sweep/sweep_charts.h"
#include "sweep/sweep_report.h"
#include "sweep/sweep_state.h"

/* --- what is asked ---------------------------------------------------------------------------- */

void
ls_sweep_spec_init (LsSweepSpec *spec)
{
  *spec = (LsSweepSpec) { .top = 5, .price = LS_PRICE_NOT_GIVEN };
  ls_job_spec_init (&spec->job);
  ls_space_init (&spec->space);
}

void
ls_sweep_spec_clear (LsSweepSpec *spec)
{
  ls_job_spec_clear (&spec->job);
  ls_objective_ask_clear (&spec->objective);
  ls_space_clear (&spec->space);
}

static bool
parse_prune (const char *text, void *target)
{
  bool is_off = strcmp (text, "off") == 0;
  if (!is_off && strcmp (text, "on") != 0)
    return false;
  ((LsSweepSpec *) target)->no_prune = is_off;
  return true;
}

static bool
parse_time_limit (const char *text, void *ret_limit)
{
  return ls_parse_time (text, ret_limit, NULL) && *(LsTime *) ret_limit > 0;
}

static const LsField fields[] = {
  { "prune", LS_FIELD_CUSTOM, .parse = parse_prune, .expected = "on or off" },
  { "top", LS_FIELD_UINT, offsetof (LsSweepSpec, top), .min = 1, .max = 1000 },
  { "time_limit", LS_FIELD_CUSTOM, offsetof (LsSweepSpec, time_limit), .parse = parse_time_limit,
    .expected = "a time above 0 such as 90s" },
  { "threads", LS_FIELD_UINT, offsetof (LsSweepSpec, n_threads), .min = 1, .max = 1024 },
  { "gpu_hour", LS_FIELD_DOUBLE, offsetof (LsSweepSpec, price.usd_per_gpu_hour), .max = 1e6 },
  { "gpu_watts", LS_FIELD_DOUBLE, offsetof (LsSweepSpec, price.gpu_watts), .above = true, .max = 1e6 },
  { "pue", LS_FIELD_DOUBLE, offsetof (LsSweepSpec, price.pue), .min = 1, .max = 100 },
  { NULL },
};

gboolean
ls_sweep_spec_set (LsSweepSpec *spec, const char *key, const char *value, LsDiagList *diags)
{
  LsSpaceAxis axis = ls_space_axis (key);
  bool has_range = axis < LS_N_SPACE_AXES;
  if (axis != LS_NO_SPACE_AXIS && (has_range || ls_space_is_list (axis, value)))
    return ls_space_set (&spec->space, axis, value, diags);
  if (axis != LS_NO_SPACE_AXIS) /* of a file of ranges */
    ls_space_unset (&spec->space, axis);
  if (axis != LS_NO_SPACE_AXIS && axis == spec->space.layers_axis)
    spec->has_layers = true;
  if (ls_field_find (fields, key))
    return ls_field_set_text (fields, spec, key, value, diags);
  if (ls_objective_ask_has (key))
    return ls_objective_ask_set (&spec->objective, key, value, diags);
  return ls_job_spec_set (&spec->job, key, value, diags);
}

/* --- the road ------------------------------------------------------------------------------------ */

static LsSweepRun *
run_new (LsSweepSpec *spec)
{
  LsSweepRun *x = g_new0 (LsSweepRun, 1);
  x->spec = spec;
  x->started = g_get_monotonic_time ();
  x->clusters = g_ptr_array_new_with_free_func ((GDestroyNotify) ls_cluster_free);
  x->candidates = g_array_new (FALSE, TRUE, sizeof (Candidate));
  x->groups = g_array_new (FALSE, TRUE, sizeof (Group));
  x->front = g_array_new (FALSE, FALSE, sizeof (guint));
  x->known = g_hash_table_new_full (g_int64_hash, g_int64_equal, NULL, g_free);
  x->answers = g_hash_table_new_full (g_direct_hash, g_direct_equal, NULL, g_free);
  x->ideas = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  x->threshold = INFINITY;
  x->confirmed = g_ptr_array_new ();
  x->ran = g_ptr_array_new ();
  x->paces = g_array_new (FALSE, FALSE, sizeof (double));
  x->ran_paces = g_array_new (FALSE, FALSE, sizeof (double));
  x->stop = g_new0 (LsStop, 1);
  x->stop->asked = spec->stop;
  if (spec->time_limit > 0)
    x->stop->deadline = x->started + spec->time_limit / LS_US;
  return x;
}

void
ls_sweep_run_free (LsSweepRun *x)
{
  if (!x)
    return;
  workers_free (x->workers);
  g_clear_pointer (&x->report.best, g_array_unref);
  g_clear_pointer (&x->report.front, g_array_unref);
  g_clear_pointer (&x->report.groups, g_array_unref);
  ls_journal_close (x->journal);
  g_hash_table_unref (x->known);
  g_hash_table_unref (x->answers);
  g_hash_table_unref (x->ideas);
  ls_sweep_none_free (x->report.none);
  g_clear_error (&x->error);
  g_clear_error (&x->over_budget);
  g_ptr_array_unref (x->clusters);
  g_array_unref (x->candidates);
  g_clear_pointer (&x->settled, g_array_unref);
  g_array_unref (x->groups);
  g_array_unref (x->front);
  g_ptr_array_unref (x->confirmed);
  g_ptr_array_unref (x->ran);
  g_array_unref (x->paces);
  g_array_unref (x->ran_paces);
  for (int kind = 0; kind < LS_N_DP_KINDS; kind++) {
    ls_headroom_clear (&x->headroom[kind]);
    ls_strategy_clear (&x->base[kind]);
  }
  ls_objective_clear (&x->objective);
  ls_known_calls_free (x->calls);
  ls_hardware_free (x->hardware);
  ls_residuals_free (x->residuals);
  ls_model_clear (&x->model);
  g_free (x->stop);
  g_free (x->report.title);
  g_free (x->refused);
  ls_sweep_changes_free (x->report.changes);
  g_clear_pointer (&x->report.untried, g_array_unref);
  g_free (x->report.headroom);
  g_clear_pointer (&x->report.assumptions, g_array_unref);
  g_clear_pointer (&x->report.knobs, g_array_unref);
  g_free (x);
}

/* A knob with a range needs no value. */
static bool
is_given (const LsJobSpec *job, const char *key)
{
  return ls_space_axis (key) < LS_N_SPACE_AXES || ls_job_says (job, key);
}

/* Bounds and the table have one size of memory. */
static gboolean
check_memory (const LsClusterSpec *spec, GError **error)
{
  for (uint32_t k = 1; k < ls_cluster_spec_n_kinds (spec); k++) {
    const LsGpu *a = &spec->gpu, *b = &ls_cluster_spec_of_kind (spec, k)->gpu;
    if (ls_memory_capacity (a) == ls_memory_capacity (b))
      continue;
    return ls_fail (error, LS_ERROR_UNSUPPORTED,
                    "a sweep over nodes whose GPUs differ in memory (%s and %s) is not supported\n"
                    "note: lockstep run and place check each rank against its own GPU",
                    a->name, b->name);
  }
  return TRUE;
}

static gboolean
load (LsSweepRun *x, GError **error)
{
  const LsJobSpec *job = &x->spec->job;
  if (!ls_job_check_named (job, error))
    return FALSE;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  gboolean has_model = ls_job_load_model (job, is_given, &x->model, NULL, diags);
  x->hardware = ls_job_hardware_load (job, diags);
  if (!has_model || !x->hardware)
    return ls_diag_list_to_error (diags, error);
  x->hardware->max_memory_bytes = job->options.max_memory_bytes;
  x->options = ls_job_spec_options (job);
  x->options.calls = x->calls = ls_known_calls_new ();
  return ls_job_residuals_load (job, NULL, &x->residuals, error)
      && ls_hardware_check_formats (&x->hardware->spec, &job->strategy, error)
      && ls_hardware_check_allocator (&x->hardware->spec, &x->options.memory, error)
      && check_memory (&x->hardware->spec, error);
}

/* Of axes that have no range by themselves the job's own value counts. Of a program that runs the job, the
 * ways to be data parallel and the parts that it runs again: the other ranges are of --for. */
static void
add_ranges (LsSweepSpec *spec)
{
  const LsJobSpec *job = &spec->job;
  const LsSoftwareSpec *software = job->software ? job->software : ls_softwares_textbook ();
  LsSpaceAxis parts = ls_space_axis ("recompute_parts");
  for (guint a = 0; job->program && a < ls_space_n_axes (); a++)
    if (a < LS_N_SPACE_AXES || !job->said || !g_hash_table_contains (job->said, ls_space_axis_name (a)))
      ls_space_add_range (&spec->space, &job->program->ranges, a);
  if (!job->program && job->software)
    ls_space_add_range (&spec->space, &job->software->ranges, LS_SPACE_DP_KIND);
  if (!job->program && software && job->strategy.lora.rank == 0 && !ls_job_says (job, "recompute_parts"))
    ls_space_add_range (&spec->space, &software->ranges, parts);
}

/* Layers that a file lists are of its own stages: with others they lie as the program lays them. */
static void
add_layers (LsSweepSpec *spec)
{
  LsSpaceAxis axis = spec->space.layers_axis;
  const LsStrategy *base = &spec->job.strategy;
  if (!base->layout.layers_per_chunk || spec->has_layers || spec->space.texts[axis]->len > 0)
    return;
  g_autofree char *list = ls_sweep_layers_text (base), *both = g_strconcat (list, "/auto", NULL);
  g_autoptr (LsDiagList) none = ls_diag_list_new ();
  gboolean ok = ls_space_set (&spec->space, axis, both, none);
  g_assert (ok);
}

static uint32_t
n_gpus_of (const LsClusterSpec *placed, uint32_t n_nodes)
{
  LsClusterSpec of = *placed; /* borrows */
  of.n_nodes = n_nodes;
  return placed->taken_per_node > 0 ? n_nodes * placed->taken_per_node
                                    : (uint32_t) MIN (ls_cluster_spec_n_gpus (&of), UINT32_MAX);
}

/* Of the largest nodes. */
static uint32_t
taken_of_largest (const LsClusterSpec *placed)
{
  uint32_t most = ls_cluster_taken (placed);
  for (uint32_t k = 1; k < ls_cluster_spec_n_kinds (placed); k++)
    most = MAX (most, ls_cluster_spec_of_kind (placed, k)->gpus_per_node);
  return most;
}

static gboolean
fill_space (LsSweepRun *x, GError **error)
{
  const LsClusterSpec *c = &x->hardware->spec;
  LsStrategy *base = &x->spec->job.strategy;
  bool has_size = c->n_nodes > 1 || c->torus.is_given;
  uint32_t own = has_size ? MAX (c->n_nodes, 1) : 0;
  uint32_t n_nodes = x->spec->job.n_nodes > 0 ? x->spec->job.n_nodes : own;
  LsClusterSpec placed = *c; /* borrows */
  if (!ls_segment_place (&placed, n_nodes, base->gpus, error))
    return FALSE;
  if (base->gpus == 0)
    base->gpus = ls_allocation_n_ranks (base->layout.allocation, &placed);
  if (base->gpus == 0 && n_nodes > 0)
    base->gpus = n_gpus_of (&placed, n_nodes);
  add_ranges (x->spec);
  add_layers (x->spec);
  return ls_space_fill (&x->spec->space, &x->model, base, taken_of_largest (&placed),
                        ls_cluster_traits (c)->runs_xla, error);
}

/* A lone copy has none. */
static bool
may_be_tried (const LsSpace *space, int kind)
{
  bool may_be = kind == LS_DP_NONE;
  for (guint i = 0; i < ls_space_n (space, LS_SPACE_DP_KIND) && !may_be; i++) {
    int value = (int) g_array_index (space->values[LS_SPACE_DP_KIND], uint32_t, i);
    may_be = value == kind || value == LS_DP_AUTO;
  }
  return may_be;
}

/* Launch files are read with the backend, which formats may follow in their program. */
static void
start_base (const LsJobSpec *job, int kind, bool is_tried, LsStrategy *ret_base)
{
  LsJobSpec again;
  g_autoptr (LsDiagList) unheard = ls_diag_list_new_counting ();
  g_autoptr (LsChange) change = ls_change_new (NULL, NULL, false);
  ls_change_set (change, "dp_kind", "%s", ls_dp_kind_name (kind));
  bool reads = job->from && is_tried, is_read = reads && ls_change_make (change, job, &again, unheard);
  ls_strategy_copy (ret_base, is_read ? &again.strategy : &job->strategy);
  if (reads)
    ls_job_spec_clear (&again);
  ret_base->gpus = job->strategy.gpus;
  ret_base->dp_kind = kind;
}

/* Of each backend of data parallelism; headrooms, too. */
static void
find_bases (LsSweepRun *x)
{
  const LsJobSpec *job = &x->spec->job;
  for (int kind = 0; kind < LS_N_DP_KINDS; kind++) {
    LsStrategy *base = &x->base[kind];
    start_base (job, kind, may_be_tried (&x->spec->space, kind), base);
    ls_softwares_settle (NULL, x->hardware, job->said, base); /* p2p differs by point */
    ls_job_fit_attention (job, &x->model, x->hardware, base);
    ls_headroom_of (&job->headroom, job->program, job->software, kind, x->hardware, &job->options.memory,
                    &x->headroom[kind]);
  }
}

/* A front is of time and cost per token. */
static gboolean
find_objective (LsSweepRun *x, GError **error)
{
  const LsSweepSpec *spec = x->spec;
  if (spec->pareto && spec->objective.kind != LS_OBJECTIVE_STEP)
    return ls_fail (
        error, LS_ERROR_USAGE,
        "--pareto and --pareto-chart compare tokens, memory and cost: they go with --objective step");
  x->report.objective = &x->objective;
  return ls_objective_find (&spec->objective, &spec->job, &x->hardware->spec, &x->report.price, &x->objective,
                            error);
}

LsSweepRun *
ls_sweep_spec_run (LsSweepSpec *spec, GError **error)
{
  g_autoptr (LsSweepRun) x = run_new (spec);
  if (!load (x, error) || !fill_space (x, error) || !ls_sweep_spec_check_charts (spec, error))
    return NULL;
  x->report.price = ls_price_of_cluster (&x->spec->price, &x->hardware->spec);
  if (!find_objective (x, error))
    return NULL;
  find_bases (x);
  if (!sweep_build_clusters (x, error))
    return NULL;
  x->workers = workers_new (x);
  if (spec->team && ls_team_own_rank (spec->team) > 0) {
    workers_serve (x);
    g_clear_pointer (&x->workers, workers_free);
    return g_steal_pointer (&x);
  }
  sweep_enumerate (x, workers_n_threads (x->workers));
  sweep_begin_search (x);
  if (!workers_gather (x, error))
    return NULL;
  if (x->candidates->len == 0 && x->report.counts.infeasible == 0 && x->over_budget) {
    g_propagate_error (error, g_steal_pointer (&x->over_budget));
    return NULL;
  }
  Candidate *rule = sweep_rule (x);
  if (spec->journal && !sweep_journal_open (x, rule, error))
    return NULL;
  workers_prove (x, rule);
  sweep_search (x);
  if (x->error) {
    g_propagate_error (error, g_steal_pointer (&x->error));
    return NULL;
  }
  sweep_rank (x);
  if (spec->heat_map)
    sweep_settle_map (x);
  g_clear_pointer (&x->workers, workers_free); /* it may be ahead still, and reads the spec */
  x->report.title = g_strdup_printf ("%s on %s", x->model.name, x->hardware->spec.name);
  x->report.software = x->base[LS_DP_NONE].program.software;
  x->report.has_experts = x->model.moe.n_experts > 0;
  x->report.chip = ls_cluster_chip_word (&x->hardware->spec, 1);
  x->report.chips = ls_cluster_chip_word (&x->hardware->spec, 2);
  bool is_asked = spec->stop && g_atomic_int_get (spec->stop) != 0;
  x->report.is_interrupted = is_asked || x->is_cut || x->report.counts.left > 0;
  x->report.has_timing = spec->has_timing;
  x->report.changes = ls_sweep_changes_new (x);
  if (x->report.best->len == 0 && !x->report.is_interrupted)
    sweep_explain_none (x);
  x->report.simulate_s = (double) x->simulate_us / 1e6;
  x->report.wall_s = (double) (g_get_monotonic_time () - x->started) / 1e6;
  return g_steal_pointer (&x);
}

void
ls_sweep_run_notes (const LsSweepRun *run, GPtrArray *notes)
{
  uint32_t most = 0;
  for (guint i = 0; run->clusters && i < run->clusters->len; i++)
    most = MAX (most, ((const LsCluster *) run->clusters->pdata[i])->n_gpus);
  ls_note_machine (&run->spec->job, run->hardware, most, notes);
  if (!isnan (run->spec->price.pue) && isnan (run->report.price.gpu_watts))
    g_ptr_array_add (notes,
                     g_strdup ("--pue has no effect here: the power of a chip is not known "
                               "(--gpu-watts)"));
  if (run->n_refused > 0)
    ls_note (notes, "%u of what was simulated left out, as the launch files are refused with it: %s",
             run->n_refused, run->refused);
  if (run->report.best->len == 0)
    return;
  const LsSweepRow *best = &g_array_index (run->report.best, LsSweepRow, 0);
  if (run->hardware->spec.others)
    ls_note (notes,
             "nodes are of several kinds: layers and micro-batches are dealt evenly here; lockstep place "
             "and --layers-per-chunk, --micro-batches-per-replica deal them by what the nodes can");
  ls_note_missing (run->spec->job.software, &run->model, &best->strategy, best->memory_bytes, notes);
  ls_sweep_note_now (run, notes);
  if (isnan (best->low_s))
    return;
  g_autofree char *low = ls_format_time (ls_time_from_s (best->low_s)),
                  *high = ls_format_time (ls_time_from_s (best->high_s));
  ls_note (notes,
           "a step of the best takes %s to %s: %.0f %% interval, whose "
           "sources lockstep run names",
           low, high, 100 * LS_INTERVAL_LEVEL);
}

const LsSweepReport *
ls_sweep_run_report (const LsSweepRun *x)
{
  return &x->report;
}
