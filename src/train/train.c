#include "train/train.h"

#include <lockstep/error.h>
#include <math.h>
#include <string.h>

#include "base/list.h"
#include "base/order.h"
#include "base/team.h"
#include "data/machines/machines.h"
#include "job/assumptions.h"
#include "train/run_history.h"
#include "train/train_steps.h"

/* ---- what is assumed of a training run; options without effect ---- */

/* That writing takes longer than it is to the next checkpoint. */
static void
ls_train_note_storage (LsTrainReport *r, const LsTrainChoice *choice)
{
  const LsCheckpointTimes *t = &r->checkpoint.times;
  g_autofree char *takes = g_strdup_printf ("%.4g s", t->write_s),
                  *has = g_strdup_printf ("%.4g s", choice->interval_s);
  if (t->write_s <= choice->interval_s
      || strcmp (takes, has) == 0) /* what it waits then is nothing to tell */
    return;
  ls_note (r->notes,
           "writing a checkpoint takes %s, longer than the %s to the next: the job "
           "waits for it each time",
           takes, has);
}

static void
note (LsTrainReport *r, bool holds, const char *text)
{
  if (holds)
    g_ptr_array_add (r->notes, g_strdup (text));
}

static bool
replaces_nodes (const LsReliability *reliability)
{
  for (guint i = 0; i < reliability->causes->len; i++) {
    int effect = g_array_index (reliability->causes, LsFailureCause, i).effect;
    if (effect == LS_FAILURE_REPLACE || effect == LS_FAILURE_SLOW || effect == LS_FAILURE_CORRUPT)
      return true;
  }
  return false;
}

#define FAR 2 /* times as many GPUs, or as few */

/* What is counted by the job does not grow with it. */
static void
note_causes_of_jobs (LsTrainReport *r, const LsReliability *reliability)
{
  double seen = reliability->seen.of[LS_FAILS_GPU], own = r->n_gpus;
  g_autoptr (GString) names = g_string_new (NULL);
  for (guint i = 0; i < reliability->causes->len; i++) {
    const LsFailureCause *cause = &g_array_index (reliability->causes, LsFailureCause, i);
    if (cause->unit == LS_FAILS_JOB)
      g_string_append_printf (names, "%s%s", names->len > 0 ? ", " : "", cause->name);
  }
  if (names->len > 0 && seen > 0 && (own * FAR < seen || own > seen * FAR))
    ls_note (r->notes,
             "%s: taken as often as in the job of %.0f GPUs where it was counted, "
             "though this one has %.0f: how it depends on size is not known",
             names->str, seen, own);
}

/* Checkpoints of all phases are those of the last. */
static void
note_phases_of_other_state (LsTrainReport *r)
{
  for (guint i = 0; i < r->phases->len; i++) {
    const LsTrainPhase *p = &g_array_index (r->phases, LsTrainPhase, i);
    g_autofree char *own = ls_format_bytes ((uint64_t) p->checkpoint_bytes),
                    *counted = ls_format_bytes ((uint64_t) r->checkpoint.bytes);
    if (p->checkpoint_bytes != r->checkpoint.bytes)
      ls_note (r->notes,
               "a checkpoint of phase %s has %s: it is counted as one of "
               "the last phase, %s",
               p->name, own, counted);
  }
}

/* What the run rests on besides its job, in the terms of its knobs. */
static void
assume (LsTrainReport *r, const LsTrainSpec *spec, bool has_storage, const LsReliability *reliability)
{
  const LsEvery best = { LS_EVERY_BEST, 1 };
  bool fails = r->causes->len > 0, replaces = replaces_nodes (reliability),
       is_endless = r->spares == LS_SPARES_ANY, is_storage = spec->checkpoint_to == LS_CHECKPOINT_STORAGE;
  g_autofree char *every
      = ls_train_every_text (r, spec->every ? &g_array_index (spec->every, LsEvery, 0) : &best),
      *time
      = g_str_has_suffix (every, "s") ? ls_format_time (ls_time_from_s (g_ascii_strtod (every, NULL))) : NULL,
      *rate = ls_format_rate (r->checkpoint.storage_bytes_per_s),
      *spares = is_endless ? g_strdup ("any") : g_strdup_printf ("%u", r->spares);
  const struct {
    bool holds;
    const char *key, *words, *value, *why; /* NULL: the knob's own; by default */
  } rows[] = {
    { true, "checkpoint_every", time ? "checkpoints every %s" : "checkpoints every %s steps",
      time ? time : every, "the best" },
    { true, "checkpoint_to", "checkpoints to %s" },
    { is_storage, "checkpoint_async", "--checkpoint-async %s", NULL, "the job waits" },
    { !is_storage, "storage_every", "every %s. to storage" },
    { has_storage, "storage_bandwidth", "storage at %s", rate, "150 MB/s for each accelerator" },
    { true, "reliability", "failures %s", r->reliability, fails ? NULL : "nothing is known of these chips" },
    { true, "jitter", "jitter %s", r->step_spread ? r->step_spread->jitter : LS_JITTER_OFF,
      r->step_spread                     ? NULL
          : spec->job.slow.ranks         ? "--slow says how fast each rank is"
          : r->job->cluster->spec.others ? "nodes are of several kinds"
          : spec->job.trace              ? "a trace does not say which ranks make up a replica"
                                         : "how ranks differ is not known" },
    { r->step_spread, "jitter_seed", "jitter seed %s" },
    { replaces, "spares", "spare nodes %s", spares },
    { replaces && !is_endless, "elastic", "--elastic %s" },
    { fails, "seeds", "seeds %s" },
    { fails, "first_seed", "from seed %s on" },
  };
  const guint first = r->job->assumptions ? r->job->assumptions->len : 0;
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    const LsField *knob = ls_field_find (ls_train_fields, rows[i].key);
    const char *why = rows[i].why ? rows[i].why : "by default";
    g_autofree char *own = rows[i].value ? g_strdup (rows[i].value) : ls_field_text (knob, spec, NULL),
                    *instead = spec->job.trace && g_str_equal (knob->key, "jitter") /* refused */
        ? NULL
        : ls_field_option (knob, ls_field_argument (knob));
    if (rows[i].holds)
      ls_assumptions_add (&r->job->assumptions, knob->key, g_strdup (ls_field_typed (knob, own)),
                          rows[i].words, g_hash_table_contains (spec->said, knob->key) ? NULL : why, instead);
  }
  LsAssumption *interval = &g_array_index (r->job->assumptions, LsAssumption, first);
  g_free (interval->value);
  interval->value = g_steal_pointer (&every); /* exact, as it is typed again */
  if (has_storage)
    ls_assumptions_add (&r->job->assumptions, "checkpoint_bytes",
                        ls_format_bytes ((uint64_t) r->checkpoint.bytes), "checkpoints of %s",
                        "weights, masters and state of the optimizer",
                        "--checkpoint-save TIME, --checkpoint-read TIME");
  if (r->step_spread)
    ls_step_spread_assume (r->step_spread, &r->job->assumptions);
  ls_loss_goal_assume (&r->goal, &spec->goal, &r->job->assumptions);
}

/* What is assumed, and options that change nothing in this run. */
static void
ls_train_notes (LsTrainReport *r, const LsTrainSpec *spec, const LsReliability *reliability)
{
  bool is_storage = spec->checkpoint_to == LS_CHECKPOINT_STORAGE;
  bool has_spare = !spec->spares || g_array_index (spec->spares, uint32_t, 0) == LS_SPARES_ANY;
  bool is_given = spec->given.save != LS_TIME_NEVER && spec->given.read != LS_TIME_NEVER,
       has_storage = !is_storage || !is_given || spec->checkpoint_async, is_safe = r->causes->len == 0;
  note (r, !spec->reliability && is_safe, "nothing is known of failures of these chips: none is assumed");
  note (
      r, !r->job->model.name && !is_given,
      "the trace does not say what a checkpoint holds: each rank is assumed to write its own parameters and "
      "state of the optimizer, which is too much where ranks hold the same (--checkpoint-save, "
      "--checkpoint-read)");
  note (
      r, r->goal.law.name && r->goal.critical_batch == 0,
      "the law of the loss says nothing of batches: this one is taken to need no more tokens than small ones "
      "(--critical-batch)");
  note_causes_of_jobs (r, reliability);
  note_phases_of_other_state (r);
  note (r, spec->elastic && is_safe, "--elastic has no effect here: nothing fails");
  note (r, spec->given.read != LS_TIME_NEVER && is_safe,
        "--checkpoint-read has no effect here: nothing fails");
  note (r, spec->elastic && !is_safe && has_spare,
        "--elastic has no effect here: a spare node is always free");
  note (r, spec->elastic && r->job->strategy.dp == 1, "--elastic has no effect here: there is one replica");
  note (r, spec->spares && (is_safe || !replaces_nodes (reliability)),
        "--spares saves no time here, as no node is replaced; spare nodes are paid for");
  note (r, is_storage && g_hash_table_contains (spec->said, "storage_every"),
        "--storage-every has no effect here: each checkpoint goes to storage");
  note (r, spec->checkpoint_async && !is_storage,
        "--checkpoint-async has no effect here: the job never waits for storage");
  assume (r, spec, has_storage, reliability);
  note (r, spec->storage_bytes_per_s > 0 && !has_storage,
        "--storage-bandwidth has no effect here: how long saving and reading take is given");
  note (r, spec->seed != 1 && is_safe, "--first-seed has no effect here: nothing fails");
  note (r, !r->step_spread && spec->jitter_seed != 1, "--jitter-seed has no effect here: steps do not vary");
  note (r, spec->job.trace && !spec->jitter,
        "steps do not vary: a trace does not say which ranks make up a replica");
  note (r, spec->job.slow.ranks && !spec->jitter,
        "steps do not vary: --slow says how fast each rank is (--jitter)");
  note (r, spec->co2_g_per_kwh > 0 && isnan (r->mwh),
        "--co2 has no effect here: the power of a chip is not known");
  note (r, !isnan (spec->price.pue) && isnan (r->mwh),
        "--pue has no effect here: the power of a chip is not known (--gpu-watts)");
}

/* ---- GPU hours, money, energy by what GPUs do ---- */

/* Means over all steps, of one. */
static LsActivities
activities_of (const LsTrainReport *r)
{
  LsActivities sum = { 0 };
  for (guint i = 0; i < r->phases->len; i++) {
    const LsTrainPhase *p = &g_array_index (r->phases, LsTrainPhase, i);
    sum.computing_s += p->n_steps * p->activities.computing_s / r->ideal_s;
    sum.communicating_s += p->n_steps * p->activities.communicating_s / r->ideal_s;
    sum.idle_s += p->n_steps * p->activities.idle_s / r->ideal_s;
  }
  return sum;
}

static void
add_energy (LsTrainReport *r, const LsPrice *price, guint n_spare)
{
  LsActivities share = activities_of (r);
  double held_s = r->lost_s[LS_LOST_CHECKPOINT] + r->lost_s[LS_LOST_STALL] + r->lost_s[LS_LOST_DETECTION]
      + r->lost_s[LS_LOST_VARIATION],
         down_s = r->lost_s[LS_LOST_WAITING] + r->lost_s[LS_LOST_RESTART],
         steps_s = r->wall_s.mean - held_s - down_s, mwh_per_watt_s = price->pue / 3.6e9;
  const LsGpuPower *w = &price->power;
  r->mwh_by.computing = mwh_per_watt_s * r->n_gpus * steps_s * share.computing_s * w->computing;
  r->mwh_by.communicating = mwh_per_watt_s * r->n_gpus * steps_s * share.communicating_s * w->communicating;
  r->mwh_by.idle = mwh_per_watt_s * r->n_gpus * (steps_s * share.idle_s + held_s) * w->idle;
  r->mwh_by.free = mwh_per_watt_s * (r->n_gpus * down_s + n_spare * r->wall_s.mean) * w->free;
  r->mwh = r->mwh_by.computing + r->mwh_by.communicating + r->mwh_by.idle + r->mwh_by.free;
  r->gpu_watts = r->mwh / (mwh_per_watt_s * (r->n_gpus + n_spare) * r->wall_s.mean);
  r->has_activities = ls_price_has_activities (price);
}

/* Fills GPU hours, money, energy and CO2: once the time and what was lost are known. */
static void
ls_train_costs (LsTrainReport *r, const LsTrainSpec *spec, const LsClusterSpec *cluster)
{
  LsPrice price = ls_price_of_cluster (&spec->price, cluster);
  guint n_spare = r->spares == LS_SPARES_ANY ? 0 : r->spares * r->job->cluster->spec.gpus_per_node;
  r->gpu_hours = (r->n_gpus + n_spare) * r->wall_s.mean / 3600;
  r->usd = ls_price_usd (&price, r->n_gpus + n_spare, 1) * r->wall_s.mean;
  add_energy (r, &price, n_spare);
  r->co2_t = spec->co2_g_per_kwh > 0 ? r->mwh * spec->co2_g_per_kwh / 1e3 : NAN;
  ls_price_assume (&price, &spec->price, false, &r->job->assumptions);
}

#define DEFAULT_RELIABILITY "llama3-h100"
#define NO_FAILURES         "none"
#define MAX_STRETCH         100.0 /* times the ideal time: beyond, no history is tried */
#define MAX_SECONDS         1e9   /* 31 years */
#define MAX_CHECKPOINTS     2e7

/* --- the report ------------------------------------------------------------------------ */

static void
phase_clear (gpointer data)
{
  LsTrainPhase *p = data;
  g_free (p->name);
  g_clear_pointer (&p->rests_on, g_array_unref);
}

static LsTrainReport *
report_new (void)
{
  LsTrainReport *r = g_new0 (LsTrainReport, 1);
  r->phases = ls_list_new (sizeof (LsTrainPhase), phase_clear);
  r->causes = ls_list_new (sizeof (LsTrainCause), ls_clear_text);
  r->choices = g_array_new (FALSE, FALSE, sizeof (LsTrainChoice));
  r->batches = ls_list_new (sizeof (LsTrainBatch), ls_clear_text);
  r->notes = g_ptr_array_new_with_free_func (g_free);
  return r;
}

void
ls_train_report_free (LsTrainReport *r)
{
  if (!r)
    return;
  ls_job_result_free (r->job);
  ls_loss_goal_clear (&r->goal);
  ls_step_spread_free (r->step_spread);
  g_free (r->reliability);
  g_free (r->reliability_source);
  g_array_unref (r->phases);
  g_array_unref (r->causes);
  g_clear_pointer (&r->timeline, g_array_unref);
  g_array_unref (r->choices);
  g_array_unref (r->batches);
  g_ptr_array_unref (r->notes);
  g_free (r);
}

/* --- histories ------------------------------------------------------------------------- */

static LsOverSeeds
spread_of (const double *values, guint n)
{
  g_autofree double *sorted = g_memdup2 (values, n * sizeof *values);
  qsort (sorted, n, sizeof *sorted, ls_compare_doubles);
  double sum = 0, squares = 0;
  for (guint i = 0; i < n; i++)
    sum += sorted[i];
  for (guint i = 0; i < n; i++)
    squares += (sorted[i] - sum / n) * (sorted[i] - sum / n);
  double error = n > 1 ? sqrt (squares / (n - 1) / n) : 0;
  return (LsOverSeeds) { sum / n, sorted[(guint) (0.05 * (n - 1))], sorted[(guint) ceil (0.95 * (n - 1))],
                         error };
}

typedef enum { WALL, GOODPUT, STOPS } Figure;

static LsOverSeeds
spread (const LsRunHistory *histories, guint n, Figure figure)
{
  g_autofree double *values = g_new (double, n);
  for (guint i = 0; i < n; i++)
    values[i] = figure == WALL ? histories[i].wall_s
        : figure == STOPS      ? (double) histories[i].n_stops
                               : histories[i].useful_s / histories[i].wall_s;
  return spread_of (values, n);
}

/* Its mean is of the time of all runs, so that it and what was lost make up the whole. */
static LsOverSeeds
spread_goodput (const LsRunHistory *histories, guint n)
{
  LsOverSeeds s = spread (histories, n, GOODPUT);
  double useful = 0, wall = 0;
  for (guint i = 0; i < n; i++) {
    useful += histories[i].useful_s;
    wall += histories[i].wall_s;
  }
  s.mean = useful / wall;
  return s;
}

/* What was done of the phases in so much useful time: steps, their tokens, and those that small batches would
 * have needed. */
static void
count_done (const LsTrainReport *r, double useful_s, double *ret_steps, double *ret_tokens,
            double *ret_small_tokens)
{
  *ret_steps = *ret_tokens = *ret_small_tokens = 0;
  for (guint i = 0; i < r->phases->len && useful_s > 0; i++) {
    const LsTrainPhase *p = &g_array_index (r->phases, LsTrainPhase, i);
    double steps = MIN (p->n_steps, floor (useful_s / p->step_s + 1e-6));
    *ret_steps += steps;
    *ret_tokens += steps * p->tokens_per_step;
    *ret_small_tokens += ls_train_small_batch_tokens (r, p, steps);
    useful_s -= p->n_steps * p->step_s;
  }
}

static void
spread_done (LsTrainReport *r, const LsRunHistory *histories, guint n)
{
  g_autofree double *steps = g_new (double, n), *tokens = g_new (double, n);
  for (guint i = 0; i < n; i++) {
    double small_tokens;
    count_done (r, histories[i].useful_s, &steps[i], &tokens[i], &small_tokens);
    r->small_tokens += small_tokens / n;
  }
  r->loss = ls_loss_goal_after (&r->goal, r->small_tokens);
  r->steps = spread_of (steps, n);
  r->tokens = spread_of (tokens, n);
}

static void
add_causes (LsTrainReport *r, const LsReliability *reliability, const LsRunHistory *histories, guint n)
{
  for (guint c = 0; c < reliability->causes->len; c++) {
    LsTrainCause cause = { .name = g_strdup (g_array_index (reliability->causes, LsFailureCause, c).name) };
    for (guint i = 0; i < n; i++) {
      cause.n += (double) histories[i].causes[c].n / n;
      cause.lost_s += histories[i].causes[c].lost_s / n;
    }
    g_array_append_val (r->causes, cause);
  }
}

/* Everything of the run itself; of the other choices only the two figures that a table shows. */
static void
summarise (LsTrainReport *r, const LsReliability *reliability, const LsRunHistory *histories, guint n)
{
  r->wall_s = spread (histories, n, WALL);
  r->goodput = spread_goodput (histories, n);
  r->stops = spread (histories, n, STOPS);
  spread_done (r, histories, n);
  add_causes (r, reliability, histories, n);
  for (guint i = 0; i < n; i++)
    for (int k = 0; k < LS_N_LOST; k++)
      r->lost_s[k] += histories[i].lost_s[k] / n;
}

static gboolean
try_choice (LsTrainReport *r, const LsTrainSpec *spec, const LsRunPlan *plan, LsTrainChoice *choice,
            GError **error)
{
  guint n = spec->seeds;
  g_autofree char *key = g_strdup_printf ("train %s on %u of %s, seeds %u from %u",
                                          r->job->trace ? r->job->trace : r->job->model.name, r->n_gpus,
                                          r->job->cluster->spec.name, n, spec->seed);
  const LsTeamSetup setup
      = { .team = spec->team, .n_threads = spec->n_threads, .key = key, .progress = &spec->progress };
  g_autofree LsRunHistory *histories = ls_run_histories_new (plan, spec->seed, n, &setup, error);
  if (!histories)
    return FALSE;
  choice->goodput = spread_goodput (histories, n);
  choice->wall_s = spread (histories, n, WALL);
  if (r->choices->len == 0)
    summarise (r, plan->reliability, histories, n);
  g_array_append_val (r->choices, *choice);
  for (guint i = 0; i < n; i++) {
    r->n_events += histories[i].n_events;
    ls_run_history_clear (&histories[i]);
  }
  return TRUE;
}

/* --- what can be said without a history ------------------------------------------------------ */

/* Whether so many failures leave a run the time to get on. */
static gboolean
check_survival (const LsTrainReport *r, const LsRunPlan *plan, GError **error)
{
  const LsTrainCheckpoint *c = &r->checkpoint;
  double ideal = 0, expected = 0;
  for (guint i = 0; i < plan->n_phases; i++) {
    const LsRunPhase *p = &plan->phases[i];
    double work = p->step_s * (1 + p->longer) * (double) MIN (p->every, p->n_steps);
    ideal += work;
    expected += ls_expected_piece_s (work, c->times.save_s, c->restart_s, c->mtbf_s);
  }
  return expected <= MAX_STRETCH * ideal
      || ls_fail (
             error, LS_ERROR_LIMIT,
             "with checkpoints so far apart no run survives: a failure every %.4g s, a restart takes %.4g s, "
             "and from a checkpoint to the next there are %.4g s of work and %.4g s of saving",
             c->mtbf_s, c->restart_s, ideal / plan->n_phases, c->times.save_s);
}

/* Whether so many checkpoints can be simulated. */
static gboolean
check_checkpoints (const LsRunPlan *plan, GError **error)
{
  double n = 0;
  for (guint i = 0; i < plan->n_phases; i++)
    n += (double) plan->phases[i].n_steps / (double) plan->phases[i].every;
  return n <= MAX_CHECKPOINTS
      || ls_fail (error, LS_ERROR_LIMIT, "a run with %.3g checkpoints is too long: at most %.0e", n,
                  MAX_CHECKPOINTS);
}

/* --- the road -------------------------------------------------------------------------------- */

/* Of chips other than GPUs nothing is known: none is said to fail. */
gboolean
ls_train_load_reliability (const char *name, const LsClusterSpec *cluster, LsReliability *ret_reliability,
                           GError **error)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  const char *usual = cluster && ls_cluster_traits (cluster)->runs_xla ? NO_FAILURES : DEFAULT_RELIABILITY;
  return ls_data_file_load (&ls_reliability_file, name ? name : usual, ret_reliability, diags)
      || ls_diag_list_to_error (diags, error);
}

/* The run of one seed again, with all that held it up. */
static void
keep_timeline (LsTrainReport *r, const LsRunPlan *plan, uint32_t seed)
{
  LsRunPlan own = *plan; /* borrows */
  own.keeps_spans = true;
  LsRunHistory h;
  ls_run_history_init (&h, &own, seed);
  r->timeline = g_steal_pointer (&h.spans);
  r->timeline_s = h.wall_s;
  ls_run_history_clear (&h);
}

/* Each interval with each reserve; the first of both is the run. */
static gboolean
try_all (LsTrainReport *r, const LsTrainSpec *spec, LsRunPlan *plan, LsRunPhase *phases, GError **error)
{
  static const LsEvery best = { LS_EVERY_BEST, 1 };
  static const uint32_t any = LS_SPARES_ANY;
  guint n_every = spec->every ? spec->every->len : 1, n_spares = spec->spares ? spec->spares->len : 1;
  for (guint i = 0; i < n_every * n_spares; i++) {
    const LsEvery *every = spec->every ? &g_array_index (spec->every, LsEvery, i % n_every) : &best;
    plan->spares = spec->spares ? g_array_index (spec->spares, uint32_t, i / n_every) : any;
    ls_train_set_every (r, every, phases);
    const LsRunPhase *last = &phases[plan->n_phases - 1];
    LsTrainChoice choice = { .interval_s = last->step_s * (1 + last->longer) * (double) last->every,
                             .every = last->every,
                             .spares = plan->spares };
    if (i == 0) {
      r->spares = plan->spares;
      ls_train_expect (r, plan);
      ls_train_note_storage (r, &choice);
    }
    if (i > 0 && !check_survival (r, plan, NULL)) { /* another interval, which no run survives */
      choice.goodput = choice.wall_s = (LsOverSeeds) { NAN, NAN, NAN, NAN };
      g_array_append_val (r->choices, choice);
      continue;
    }
    if (!check_checkpoints (plan, error) || !check_survival (r, plan, error)
        || !try_choice (r, spec, plan, &choice, error))
      return FALSE;
    if (i == 0 && spec->keeps_timeline)
      keep_timeline (r, plan, spec->seed);
  }
  return TRUE;
}

static gboolean
run_with (LsTrainReport *r, const LsTrainSpec *spec, const LsReliability *reliability, GError **error)
{
  const LsClusterSpec *cluster = &r->job->cluster->spec;
  g_autofree LsRunPhase *phases = ls_train_run_phases (r);
  LsRunPlan plan = {
    .phases = phases,
    .n_phases = r->phases->len,
    .reliability = reliability,
    .units = ls_train_units (reliability, cluster, r->n_gpus),
    .is_elastic = spec->elastic,
    .n_replicas = MAX (r->job->strategy.dp, 1), /* of a trace: not known */
    .nodes_per_replica = (double) r->n_nodes / MAX (r->job->strategy.dp, 1),
    .end_s = spec->days * 86400,
  };
  if (r->ideal_s > MAX_SECONDS)
    return ls_fail (error, LS_ERROR_LIMIT, "the steps alone take %.3g years", r->ideal_s / 86400 / 365.25);
  if (!ls_train_checkpoint (r, spec, &plan, error))
    return FALSE;
  plan.checkpoint = r->checkpoint.times;
  if (!try_all (r, spec, &plan, phases, error))
    return FALSE;
  ls_train_costs (r, spec, cluster);
  return TRUE;
}

/* A file that was named is read before anything is simulated. */
static gboolean
simulate (LsTrainReport *r, const LsTrainSpec *spec, LsReliability *reliability, GError **error)
{
  if (!ls_train_check (spec, error))
    return FALSE;
  if (spec->reliability && !ls_train_load_reliability (spec->reliability, NULL, reliability, error))
    return FALSE;
  if (!ls_loss_goal_find (&spec->goal, &spec->job, &r->goal, error))
    return FALSE;
  if (!ls_train_simulate (r, spec, error))
    return FALSE;
  if (!spec->reliability && !ls_train_load_reliability (NULL, &r->job->cluster->spec, reliability, error))
    return FALSE;
  r->reliability = g_strdup (reliability->name);
  r->reliability_source = g_strdup (reliability->source);
  r->reliability_is_assumed = !spec->reliability;
  return run_with (r, spec, reliability, error);
}

static LsTrainReport *
run_one (const LsTrainSpec *spec, GError **error)
{
  g_autoptr (LsTrainReport) r = report_new ();
  LsReliability reliability = { 0 };
  gboolean ok = simulate (r, spec, &reliability, error);
  if (ok)
    ls_train_notes (r, spec, &reliability);
  ls_reliability_clear (&reliability);
  return ok ? g_steal_pointer (&r) : NULL;
}

/* --- other batches ----------------------------------------------------------------------------- */

static void
add_batch (GArray *batches, const LsTrainReport *r)
{
  const LsTrainPhase *p = &g_array_index (r->phases, LsTrainPhase, r->phases->len - 1);
  const LsTrainBatch batch = { .global_batch = p->global_batch,
                               .tokens = r->tokens.mean,
                               .steps = r->steps.mean,
                               .fits = p->fits,
                               .step_s = p->step_s,
                               .wall_s = r->wall_s.mean,
                               .gpu_hours = r->gpu_hours,
                               .usd = r->usd };
  g_array_append_val (batches, batch);
}

static gboolean
has_batch (const GArray *batches, uint32_t global_batch)
{
  for (guint i = 0; i < batches->len; i++)
    if (g_array_index (batches, LsTrainBatch, i).global_batch == global_batch)
      return TRUE;
  return FALSE;
}

/* One that its job cannot have is a row with the reason. */
static gboolean
try_batch (GArray *batches, const LsTrainSpec *spec, uint32_t global_batch, GError **error)
{
  LsTrainSpec one = *spec; /* borrows all but the job */
  ls_job_spec_copy (&spec->job, &one.job);
  one.job.strategy.global_batch = global_batch;
  one.batches = NULL;
  GError *why = NULL;
  g_autoptr (LsTrainReport) r = run_one (&one, &why);
  ls_job_spec_clear (&one.job);
  if (r) {
    add_batch (batches, r);
  } else if (g_error_matches (why, LS_ERROR, LS_ERROR_CONFLICT)) {
    const LsTrainBatch refused
        = { g_strdup (why->message), global_batch, false, NAN, NAN, NAN, NAN, NAN, NAN };
    g_array_append_val (batches, refused);
    g_clear_error (&why);
  } else {
    g_propagate_error (error, why);
    return FALSE;
  }
  return TRUE;
}

LsTrainReport *
ls_train_run (const LsTrainSpec *spec, GError **error)
{
  g_autoptr (LsTrainReport) r = run_one (spec, error);
  if (!r)
    return NULL;
  if (spec->batches)
    add_batch (r->batches, r);
  for (guint i = 0; spec->batches && i < spec->batches->len; i++) {
    uint32_t batch = g_array_index (spec->batches, uint32_t, i);
    if (!has_batch (r->batches, batch) && !try_batch (r->batches, spec, batch, error))
      return NULL;
  }
  return g_steal_pointer (&r);
}
