/* train/train_phases.c — a simulated step of each phase of a training run. */
#include "train/train_steps.h"

#include <math.h>
#include <string.h>

#include <lockstep/error.h>

#include "base/list.h"
#include "data/machines/machines.h"
#include "job/assumptions.h"

#define MAX_PARTS 1000

/* --- parts: jobs, of which each is simulated once ---------------------------------------- */

typedef struct {
  LsJobSpec job;
  LsPhaseSize size; /* neither tokens nor steps: what is left of the run */
  LsJobResult *result;
  LsStepSpread *spread; /* NULL: not wanted */
  GError *error;
} Part;

static void
part_clear (gpointer part)
{
  Part *p = part;
  ls_job_spec_clear (&p->job);
  g_free (p->size.name);
  ls_job_result_free (p->result);
  ls_step_spread_free (p->spread);
  g_clear_error (&p->error);
}

static Part *
part_at (const GArray *parts, guint i)
{
  return &g_array_index (parts, Part, i);
}

static Part *
add_part (GArray *parts, const LsJobSpec *job)
{
  g_array_set_size (parts, parts->len + 1);
  Part *p = part_at (parts, parts->len - 1);
  ls_job_spec_copy (job, &p->job);
  p->job.no_notes = parts->len > 1;
  return p;
}

static gboolean
add_phase (GArray *parts, const LsTrainSpec *spec, const char *text, GError **error)
{
  Part *p = add_part (parts, &spec->job);
  if (!ls_train_phase_read (text, &p->job, &p->size, error))
    return FALSE;
  return p->size.tokens + p->size.steps + spec->goal.tokens + spec->goal.loss + spec->steps + spec->days > 0
      || ls_fail (error, LS_ERROR_USAGE, "--phase \"%s\": expected tokens=N or steps=N", text);
}

/* A part for each batch below the job's, for the same number of sequences. */
static gboolean
add_ramp (GArray *parts, const LsTrainSpec *spec, GError **error)
{
  const LsBatchRamp *ramp = &spec->ramp;
  double last = spec->job.strategy.global_batch, n = (last - ramp->start) / ramp->increment;
  const LsWrong rows[] = {
    { last == 0, "--batch-ramp needs --global-batch, up to which it grows" },
    { n < 1 || n != floor (n) || n > MAX_PARTS,
      "--batch-ramp: expected whole increments up to --global-batch" },
  };
  if (!ls_check (rows, G_N_ELEMENTS (rows), error))
    return FALSE;
  for (double i = 0; i < n; i++) {
    Part *p = add_part (parts, &spec->job);
    p->job.strategy.global_batch = (uint32_t) (ramp->start + i * ramp->increment);
    p->job.options.no_spans = p->job.options.steady
        = true; /* its step is all that is asked: it holds no more than the last */
    p->size.steps = ceil (ramp->samples / n / p->job.strategy.global_batch);
  }
  return TRUE;
}

static gboolean
add_parts (GArray *parts, const LsTrainSpec *spec, GError **error)
{
  if (spec->ramp.samples > 0 && spec->phases->len > 0)
    return ls_fail (error, LS_ERROR_USAGE, "expected --batch-ramp or --phase; got both");
  if (spec->ramp.samples > 0 && !add_ramp (parts, spec, error))
    return FALSE;
  if (spec->phases->len == 0)
    add_part (parts, &spec->job);
  for (guint i = 0; i < spec->phases->len; i++)
    if (!add_phase (parts, spec, spec->phases->pdata[i], error))
      return FALSE;
  return TRUE;
}

/* Whether each part has a size, and what the run says of its size counts. */
static gboolean
check_sizes (const GArray *parts, const LsTrainSpec *spec, GError **error)
{
  guint n_open = 0, n_tokens = 0;
  for (guint i = 0; i < parts->len; i++) {
    n_open += part_at (parts, i)->size.tokens + part_at (parts, i)->size.steps == 0;
    n_tokens += part_at (parts, i)->size.tokens > 0;
  }
  bool has_goal = spec->goal.tokens + spec->goal.loss > 0, has_size = has_goal || spec->steps > 0;
  const LsWrong rows[] = {
    { has_size && n_open == 0,
      "all phases say how long they are: --tokens, --loss and --train-steps say nothing" },
    { has_size && n_open > 1,
      "more than one phase has no size of its own: which takes the rest is not said" },
    { spec->goal.critical_batch > 0 && n_tokens == 0 && !has_goal,
      "--critical-batch says how many tokens a batch needs: expected --tokens N or --loss X" },
    { ls_loss_ask_needs_law (&spec->goal) && !has_goal,
      "a law of loss or batch says what a run needs: expected --loss X or --tokens N" },
  };
  return ls_check (rows, G_N_ELEMENTS (rows), error);
}

static void
simulate_part (guint i, gpointer parts)
{
  Part *p = part_at (parts, i);
  p->result = ls_job_spec_run (&p->job, &p->error);
  if (p->result && !p->result->knobs)
    p->result->knobs = ls_assumptions_of_knobs (&p->job, p->result, p->result->hardware, NULL, NULL);
}

/* --- how steps vary ------------------------------------------------------------------------ */

/* Where nothing is said of jitter: of chips that are no GPUs nothing is known; stragglers have speeds, kinds
 * of nodes their own; and a trace does not say which ranks make up a replica. */
static bool
is_off (const LsTrainSpec *spec, const LsJobResult *job)
{
  if (spec->jitter)
    return strcmp (spec->jitter, LS_JITTER_OFF) == 0;
  return spec->job.slow.ranks || spec->job.trace || job->cluster->spec.others
      || ls_cluster_traits (&job->cluster->spec)->runs_xla;
}

typedef struct {
  GArray *parts;
  const LsTrainSpec *spec;
  LsJitter jitter;
} Spreads;

static void
spread_part (guint i, gpointer data)
{
  Spreads *s = data;
  Part *p = part_at (s->parts, i);
  bool is_of_ramp = s->spec->ramp.samples > 0 && i + 1 < s->parts->len;
  guint n_threads = s->parts->len > 1 ? 1 : s->spec->n_threads;
  if (!is_of_ramp)
    p->spread
        = ls_step_spread_new (&p->job, p->result, &s->jitter, s->spec->jitter_seed, n_threads, &p->error);
}

static gboolean
take_error (const GArray *parts, GError **error)
{
  for (guint i = 0; i < parts->len; i++)
    if (part_at (parts, i)->error) {
      g_propagate_error (error, g_steal_pointer (&part_at (parts, i)->error));
      return FALSE;
    }
  return TRUE;
}

static gboolean
load_jitter (const LsTrainSpec *spec, LsJitter *ret_jitter, GError **error)
{
  const char *name = spec->jitter ? spec->jitter : LS_JITTER_DEFAULT;
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  return strcmp (name, LS_JITTER_OFF) == 0 || ls_data_file_load (&ls_jitter_file, name, ret_jitter, diags)
      || ls_diag_list_to_error (diags, error);
}

static gboolean
spread_parts (Spreads *s, GError **error)
{
  const Part *last = part_at (s->parts, s->parts->len - 1);
  if (is_off (s->spec, last->result))
    return TRUE;
  ls_parallel (s->parts->len, s->spec->n_threads, spread_part, s, NULL);
  return take_error (s->parts, error);
}

/* The mean step over the predicted one, less 1; parts of a ramp as the last. */
static double
longer_of (const GArray *parts, guint i)
{
  const LsStepSpread *s = part_at (parts, i)->spread;
  if (!s)
    s = part_at (parts, parts->len - 1)->spread;
  return s ? (1 + s->shift) * (1 + ls_step_spread_of_job (s)->noise) - 1 : 0;
}

/* --- phases ------------------------------------------------------------------------------ */

/* How many more tokens a batch needs than small ones do. */
static double
more_tokens (const LsTrainReport *r, double tokens_per_step)
{
  return r->goal.critical_batch > 0 ? 1 + tokens_per_step / r->goal.critical_batch : 1;
}

/* Steps that tokens make, the last one perhaps not full. */
static double
steps_of_tokens (const LsTrainReport *r, double tokens, double tokens_per_step)
{
  return ceil (tokens * more_tokens (r, tokens_per_step) / tokens_per_step);
}

/* As said of the phase, or what is left of the run; 0: nothing is. */
static double
n_steps (const LsTrainReport *r, const LsTrainSpec *spec, const LsPhaseSize *size, const LsTrainPhase *p)
{
  double tokens = r->goal.tokens, steps = spec->steps, until_end = ceil (spec->days * 86400 / p->step_s);
  for (guint i = 0; i < r->phases->len; i++) {
    const LsTrainPhase *before = &g_array_index (r->phases, LsTrainPhase, i);
    tokens -= before->tokens / more_tokens (r, before->tokens_per_step);
    steps -= before->n_steps;
  }
  double n = size->steps > 0 ? ceil (size->steps)
      : size->tokens > 0     ? steps_of_tokens (r, size->tokens, p->tokens_per_step)
      : spec->steps > 0      ? ceil (fmax (steps, 0))
      : r->goal.tokens > 0   ? steps_of_tokens (r, fmax (tokens, 0), p->tokens_per_step)
                             : until_end;
  return spec->days > 0 ? fmin (n, until_end) : n;
}

/* "--seq N" as that phase alone takes it, "--phase seq=N"; of a cluster, or a run without phases, itself. */
static char *
option_of_phase (const LsTrainSpec *spec, const char *option)
{
  if (spec->phases->len == 0 || g_str_has_prefix (option, "--cluster"))
    return g_strdup (option);
  const char *name = option + strlen (g_str_has_prefix (option, "--set ") ? "--set " : "--");
  gsize end = strcspn (name, " =");
  return g_strdup_printf ("--phase %.*s=%s", (int) end, name, name[end] ? name + end + 1 : "1");
}

/* What it rests on otherwise than the last, but for tokens, which have a column. */
static GArray *
rests_on (const LsTrainSpec *spec, const LsJobResult *own, const LsJobResult *last)
{
  GArray *all = NULL;
  ls_assumptions_add_beside (&all, own->assumptions, last->assumptions);
  ls_assumptions_add_beside (&all, own->knobs, last->knobs);
  for (guint i = all->len; i-- > 0;) {
    LsAssumption *a = &g_array_index (all, LsAssumption, i);
    g_autofree char *words = a->words ? a->words : g_strdup_printf ("%s %s", a->key, a->value),
                    *option = a->instead;
    a->instead = option_of_phase (spec, option);
    a->words = g_strdup_printf ("%s (%s; %s)", words, a->why, a->instead);
    if (strcmp (a->key, "tokens") == 0)
      g_array_remove_index (all, i);
  }
  return all;
}

static gboolean
add_to_report (LsTrainReport *r, const LsTrainSpec *spec, const GArray *parts, guint i, GError **error)
{
  Part *part = part_at (parts, i);
  const LsJobResult *job = part->result;
  const LsStrategy *s = &job->strategy;
  LsTrainPhase p = {
    .step_s = ls_job_result_step_time_s (job),
    .longer = longer_of (parts, i),
    .tokens_per_step = job->model.name ? (double) s->global_batch * s->seq : NAN,
    .mfu = ls_job_result_mfu (job, true),
    .global_batch = s->global_batch,
    .seq = s->seq,
    .checkpoint_bytes = ls_train_checkpoint_bytes_of (job),
    .fits = part->job.options.no_spans || job->report.fits,
    .activities = ls_activities_of (job->report.breakdown_s),
  };
  p.n_steps = n_steps (r, spec, &part->size, &p);
  r->goal.counts_tokens |= part->size.tokens > 0;
  if (p.n_steps < 1)
    return ls_fail (error, LS_ERROR_USAGE,
                    "the parts before take all of --tokens, --loss or --train-steps: nothing is left");
  p.tokens = p.n_steps * p.tokens_per_step;
  p.name = part->size.name ? g_steal_pointer (&part->size.name) : g_strdup_printf ("%u", r->phases->len + 1);
  p.rests_on = rests_on (spec, job, part_at (parts, parts->len - 1)->result);
  g_array_append_val (r->phases, p);
  r->ideal_s += p.n_steps * p.step_s;
  return TRUE;
}

/* The last part is what most of a run is: it says on what. */
static gboolean
take_machine (LsTrainReport *r, const GArray *parts, GError **error)
{
  Part *last = part_at (parts, parts->len - 1);
  r->n_gpus = last->result->plan->n_ranks;
  for (guint i = 0; i < parts->len; i++)
    if (part_at (parts, i)->result->plan->n_ranks != r->n_gpus)
      return ls_fail (error, LS_ERROR_CONFLICT, "all phases run on the same GPUs: one has %u, another %u",
                      r->n_gpus, part_at (parts, i)->result->plan->n_ranks);
  r->job = g_steal_pointer (&last->result);
  LsClusterSpec needed = r->job->cluster->spec; /* borrows */
  needed.taken_per_node = 0;
  ls_cluster_spec_fit (&needed, r->n_gpus);
  r->n_nodes = needed.n_nodes;
  r->chip = r->job->report.chip;
  return TRUE;
}

/* A trace that does not know its model has a step's time, and no tokens, batch or replicas. */
static gboolean
check_trace (const LsTrainSpec *spec, const LsJobResult *job, GError **error)
{
  bool has_parts = spec->phases->len > 0 || spec->ramp.samples > 0 || spec->batches;
  if (job->model.name || (spec->goal.tokens + spec->goal.loss == 0 && !has_parts && !spec->elastic))
    return TRUE;
  return ls_fail (error, LS_ERROR_USAGE,
                  "the trace does not say what is trained: expected --train-steps N or --days N, and neither "
                  "--tokens, --loss, --phase, --batch-ramp, --batches nor --elastic");
}

static gboolean
check_size (const LsTrainSpec *spec, GError **error)
{
  double n_sizes = (spec->goal.tokens > 0) + (spec->goal.loss > 0) + (spec->steps > 0);
  const LsWrong rows[] = {
    { n_sizes > 1, "expected one of --tokens, --loss and --train-steps; got more" },
    { spec->batches && (spec->phases->len > 0 || spec->ramp.samples > 0),
      "--batches compares whole runs: it goes with neither --phase nor --batch-ramp" },
    { spec->batches && spec->job.strategy.global_batch == 0,
      "--batches compares with --global-batch; it is not given" },
    { n_sizes == 0 && spec->days == 0 && spec->phases->len == 0,
      "how much is trained? expected --tokens N, --train-steps N, --loss X, --days N, or --phase with "
      "tokens" },
  };
  return ls_check (rows, G_N_ELEMENTS (rows), error);
}

static double
seconds_of (const LsActivities *a)
{
  return a->computing_s + a->communicating_s + a->idle_s;
}

/* Of steps whose times alone are known, as those of the last phase. */
static void
fill_activities (LsTrainReport *r)
{
  const LsTrainPhase *last = &g_array_index (r->phases, LsTrainPhase, r->phases->len - 1);
  for (guint i = 0; i < r->phases->len; i++) {
    LsTrainPhase *p = &g_array_index (r->phases, LsTrainPhase, i);
    const LsActivities *from = seconds_of (&p->activities) > 0 ? &p->activities : &last->activities;
    double scale = seconds_of (from) > 0 ? p->step_s / seconds_of (from) : 0;
    p->activities
        = (LsActivities) { scale * from->computing_s, scale * from->communicating_s, scale * from->idle_s };
  }
}

/* NULL: as of ls_train_check(). */
static GArray *
parts_new (const LsTrainSpec *spec, GError **error)
{
  g_autoptr (GArray) parts = ls_list_new (sizeof (Part), part_clear);
  bool ok = check_size (spec, error) && add_parts (parts, spec, error) && check_sizes (parts, spec, error);
  return ok ? g_steal_pointer (&parts) : NULL;
}

gboolean
ls_train_check (const LsTrainSpec *spec, GError **error)
{
  g_autoptr (GArray) parts = parts_new (spec, error);
  return parts != NULL;
}

gboolean
ls_train_simulate (LsTrainReport *r, const LsTrainSpec *spec, GError **error)
{
  g_autoptr (GArray) parts = parts_new (spec, error);
  if (!parts)
    return FALSE;
  Spreads spreads = { .parts = parts, .spec = spec };
  if (!load_jitter (spec, &spreads.jitter, error))
    return FALSE;
  ls_parallel (parts->len, spec->n_threads, simulate_part, parts, NULL);
  gboolean ok = take_error (parts, error) && spread_parts (&spreads, error);
  ls_jitter_clear (&spreads.jitter);
  if (!ok || !check_trace (spec, part_at (parts, 0)->result, error))
    return FALSE;
  for (guint i = 0; i < parts->len; i++)
    if (!add_to_report (r, spec, parts, i, error))
      return FALSE;
  r->step_spread = g_steal_pointer (&part_at (parts, parts->len - 1)->spread);
  fill_activities (r);
  const GPtrArray *notes = part_at (parts, 0)->result->notes; /* what run would say of the first step */
  for (guint i = 0; notes && i < notes->len; i++)
    g_ptr_array_add (r->notes, g_strdup (notes->pdata[i]));
  r->has_end = spec->days > 0;
  r->has_steps = spec->steps > 0;
  r->n_seeds = spec->seeds;
  return take_machine (r, parts, error);
}

double
ls_train_small_batch_tokens (const LsTrainReport *r, const LsTrainPhase *p, double steps)
{
  return steps * p->tokens_per_step / more_tokens (r, p->tokens_per_step);
}

LsRunPhase *
ls_train_run_phases (const LsTrainReport *r)
{
  LsRunPhase *phases = g_new (LsRunPhase, r->phases->len);
  for (guint i = 0; i < r->phases->len; i++) {
    const LsTrainPhase *p = &g_array_index (r->phases, LsTrainPhase, i);
    phases[i] = (LsRunPhase) { (uint64_t) p->n_steps, p->step_s, 1, p->longer };
  }
  return phases;
}
