#include "validate/validate.h"

#include <math.h>
#include <string.h>

#include "analysis/conservation.h"
#include "analysis/interval.h"
#include "base/list.h"
#include "base/order.h"
#include "base/team.h"
#include "data/jobs/job_files.h"
#include "job/job_interval.h"
#include "job/softwares.h"

#define GIB 1073741824.0

struct LsValidationRun {
  GPtrArray *cases;     /* LsCase, all of the file               */
  GPtrArray *chosen;    /* borrowed from cases, in file order    */
  GPtrArray *distinct;  /* char *, borrowed: each family of chosen once */
  GHashTable *hardware; /* LsNamedHardware */
  const LsJobSpec *job;
  LsRunOptions options;
  guint n_variants; /* 1: all mechanisms on; 1 + LS_N_ABLATIONS */
  LsScoreRow *rows; /* [n_variants][chosen->len], reasons owned */
  GArray *refusals; /* LsRefusal                             */
  LsScores scores;
  char *command, *file, *sha256; /* what was asked, of which file */
};

void
ls_validation_run_free (LsValidationRun *v)
{
  if (!v)
    return;
  g_clear_pointer (&v->refusals, g_array_unref);
  for (guint i = 0; v->rows && i < v->n_variants * v->chosen->len; i++)
    g_free ((char *) v->rows[i].reason);
  g_free (v->rows);
  g_free (v->scores.families);
  g_clear_pointer (&v->scores.softwares, g_array_unref);
  for (guint a = 0; a < v->scores.n_ablations; a++)
    g_free (v->scores.ablations[a].families);
  g_free (v->scores.ablations);
  g_ptr_array_unref (v->distinct);
  g_free ((char *) v->scores.rest);
  ls_coverage_free ((LsCoverage *) v->scores.coverage);
  g_free (v->command);
  g_free (v->file);
  g_free (v->sha256);
  g_hash_table_unref (v->hardware);
  g_ptr_array_unref (v->chosen);
  g_clear_pointer (&v->cases, g_ptr_array_unref);
  for (LsCaseNames n = 0; n < LS_N_CASE_NAMES; n++)
    g_free ((gpointer) v->scores.names[n]);
  g_strfreev ((char **) v->scores.assumed);
  g_free (v);
}

static gboolean
read_cases (LsValidationRun *v, const LsValidateSpec *spec, GError **error)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  v->file = ls_job_cases_name (spec->paths);
  v->cases = ls_job_cases_load (spec->paths, spec->cluster, true, &v->sha256, diags);
  return v->cases ? ls_job_cases_check_cluster (v->cases, spec->cluster, v->file, error)
                  : ls_diag_list_to_error (diags, error);
}

/* Rows that were asked for and are not there are a mistake, not a perfect score. */
static gboolean
choose (LsValidationRun *v, const LsValidateSpec *spec, const GRegex *only, GError **error)
{
  for (guint i = 0; i < v->cases->len; i++) {
    LsCase *c = g_ptr_array_index (v->cases, i);
    if ((!spec->split || strcmp (spec->split, c->split) == 0)
        && (!only || g_regex_match (only, c->id, 0, NULL)))
      g_ptr_array_add (v->chosen, c);
  }
  return v->chosen->len > 0
      || ls_fail (error, LS_ERROR_USAGE, "no row matches%s%s%s%s", spec->split ? " --split " : "",
                  spec->split ? spec->split : "", spec->only ? " --only " : "", spec->only ? spec->only : "");
}

/* A knob of the strategy of every chosen row. */
static void
assume_knob (LsValidationRun *v, const char *key, const char *value, LsDiagList *diags)
{
  const LsField *field = ls_field_find (ls_strategy_fields, key);
  for (guint i = 0; i < v->chosen->len && ls_diag_list_n (diags) == 0; i++) {
    LsCase *c = g_ptr_array_index (v->chosen, i);
    ls_field_set_text (ls_strategy_fields, &c->strategy, key, value, diags);
    g_hash_table_add (c->said, (gpointer) field->key);
  }
}

/* Every chosen row runs that program, with what the row itself says. */
static void
assume_software (LsValidationRun *v, const char *name, LsDiagList *diags)
{
  LsSoftwareSpec software;
  if (!ls_software_load (name, &software, diags))
    return;
  for (guint i = 0; i < v->chosen->len; i++) {
    LsCase *c = g_ptr_array_index (v->chosen, i);
    LsStrategy own = c->strategy;
    ls_softwares_rebase (&software, &own, c->said, &c->strategy, diags);
    ls_strategy_clear (&own);
    ls_software_settle (&software, &c->strategy);
    c->runs_like = g_intern_string (software.runs_like);
    g_free (c->software);
    c->software = g_strdup (name);
  }
  ls_software_clear (&software);
}

static gboolean
assume (LsValidationRun *v, GError **error)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  for (guint k = 0; v->scores.assumed && v->scores.assumed[k]; k++) {
    g_auto (GStrv) pair = g_strsplit (v->scores.assumed[k], "=", 2);
    if (g_strv_length (pair) != 2)
      return ls_fail (error, LS_ERROR_USAGE,
                      "--assume: expected KNOB=VALUE such as \"recompute=none\"; got \"%s\"",
                      v->scores.assumed[k]);
    bool is_software = strcmp (pair[0], "software") == 0;
    const char *near = ls_field_suggest (ls_strategy_fields, pair[0]);
    if (!is_software && !ls_field_find (ls_strategy_fields, pair[0]))
      return ls_fail (error, LS_ERROR_USAGE, "--assume: no knob of a strategy is named \"%s\"%s%s%s", pair[0],
                      near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
    if (is_software)
      assume_software (v, pair[1], diags);
    else
      assume_knob (v, pair[0], pair[1], diags);
  }
  return ls_diag_list_n (diags) == 0 || ls_diag_list_to_error (diags, error);
}

/* Of a row whose cluster was loaded before: the same. */
static const LsNamedHardware *
hardware_of (const LsValidationRun *v, const LsCase *c)
{
  const LsMeasuredFiles files = { v->job->gpu_calibration, v->job->nccl, c->strategy.launch.nccl_env, NULL };
  return ls_named_hardware (v->hardware, c->cluster, &files);
}

/* Before the threads start. Rows that name no software run the textbook, as jobs do. */
static void
load_hardware (LsValidationRun *v)
{
  for (guint i = 0; i < v->chosen->len; i++) {
    LsCase *c = g_ptr_array_index (v->chosen, i);
    const LsNamedHardware *h = c->wrong ? NULL : hardware_of (v, c);
    if (h && h->hardware)
      ls_softwares_settle (NULL, h->hardware, c->said, &c->strategy);
  }
}

/* Seconds that the FLOPs of the model take at the peak of all GPUs. */
static double
ideal_s (const LsJobResult *r)
{
  const LsStrategy *s = &r->strategy;
  uint32_t seq = s->seq ? s->seq : r->model.seq;
  double flops = ls_trained_flops (&r->model, s, seq, false);
  return flops / (r->cluster->spec.gpu.peak_flops[s->dtype] * r->plan->n_ranks);
}

/* Fills a row, whose reason is not set yet. variant 0: all mechanisms are on. */
static void
simulate (const LsValidationRun *v, const LsHardware *hardware, LsCase *c, guint variant, LsScoreRow *row)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (LsJobResult) result = NULL;
  if (variant == 0)
    result = ls_job_case_run (c, hardware, v->job, &error);
  else {
    LsAblated a;
    ls_ablated_init (&a, (LsAblation) (variant - 1), hardware, &c->strategy, &v->options);
    result = ls_job_simulate (&c->model, &a.hardware, 0, &a.strategy, &a.options, &error);
    ls_ablated_clear (&a);
  }
  if (result) {
    row->predicted_s = ls_job_result_step_time_s (result);
    row->ideal_s = ideal_s (result);
    row->mfu = ls_job_result_mfu (result, false);
    row->architecture = ls_hardware_architecture (hardware);
    row->software = ls_softwares_runs_like (c->runs_like, &result->strategy, row->architecture);
    ls_job_traits (result, &hardware->spec, &row->traits);
    row->predicted_gib = (double) ls_memory_allocated (result->memory) / GIB;
    if (c->interval_high > 0 && variant == 0) {
      row->low = c->interval_low;
      row->high = c->interval_high;
    }
  } else
    row->reason = ls_first_line (error->message);
}

static void
begin_rows (LsValidationRun *v)
{
  guint n = v->n_variants * v->chosen->len;
  v->rows = g_new (LsScoreRow, n);
  for (guint slot = 0; slot < n; slot++) {
    const LsCase *c = g_ptr_array_index (v->chosen, slot % v->chosen->len);
    v->rows[slot] = (LsScoreRow) {
      .id = c->id,
      .family = c->family,
      .source = c->source,
      .measured_s = c->measured_s,
      .predicted_s = NAN,
      .ideal_s = NAN,
      .mfu = NAN,
      .measured_gib = c->allocated_gib,
      .predicted_gib = NAN,
      .first_s = v->scores.assumed && *v->scores.assumed ? 0 : c->first_s,
      .low = NAN,
      .high = NAN,
    };
  }
}

/* Runs one row and fills its slot; called from several threads, each on a slot of
 * its own. */
static void
run_case (guint slot, gpointer data)
{
  LsValidationRun *v = data;
  LsCase *c = g_ptr_array_index (v->chosen, slot % v->chosen->len);
  LsScoreRow *row = &v->rows[slot];
  if (c->wrong) {
    row->reason = g_strdup (c->wrong);
    return;
  }
  const LsNamedHardware *h = hardware_of (v, c);
  if (!h->hardware) {
    row->reason = g_strdup (h->reason);
    return;
  }
  simulate (v, h->hardware, c, slot / v->chosen->len, row);
}

static GVariant *
pack_case (guint slot, gconstpointer data)
{
  const LsValidationRun *v = data;
  return g_variant_new ("(@" LS_SCORE_ROW_TYPE "@" LS_JOB_CASE_TYPE ")", ls_score_row_pack (&v->rows[slot]),
                        ls_job_case_pack (v->chosen->pdata[slot % v->chosen->len]));
}

static void
unpack_case (guint slot, GVariant *packed, gpointer data)
{
  LsValidationRun *v = data;
  g_autoptr (GVariant) row = g_variant_get_child_value (packed, 0),
                       rests = g_variant_get_child_value (packed, 1);
  ls_score_row_unpack (&v->rows[slot], row);
  if (slot < v->chosen->len) /* all mechanisms are on */
    ls_job_case_unpack (v->chosen->pdata[slot], rests);
}

static gboolean
run_cases (LsValidationRun *v, const LsValidateSpec *spec, GError **error)
{
  const LsTeamLoop loop = { .each = run_case,
                            .pack = pack_case,
                            .unpack = unpack_case,
                            .type = "(" LS_SCORE_ROW_TYPE LS_JOB_CASE_TYPE ")",
                            .data = v };
  const LsRunOptions *o = &v->options;
  g_autofree char *key
      = g_strdup_printf ("%s %s %u %d %d %d %s", v->command, v->sha256, v->n_variants, (int) o->fold,
                         (int) o->coarsen, (int) o->network, spec->cluster ? spec->cluster : "");
  const LsTeamSetup setup
      = { .team = spec->team, .n_threads = spec->n_threads, .key = key, .progress = &spec->progress };
  return ls_team_each (&setup, v->n_variants * v->chosen->len, &loop, error);
}

/* ---- scores ---- */

static void
score_rows (const LsValidationRun *v, const LsScoreRow *rows, LsScore *ret_families, LsScore *ret_total)
{
  ls_score_by_family (rows, v->chosen->len, (const char *const *) v->distinct->pdata, v->distinct->len,
                      ret_families, ret_total);
}

static void
score_ours (LsValidationRun *v)
{
  g_autofree LsScore *scores = g_new (LsScore, v->distinct->len);
  score_rows (v, v->rows, scores, &v->scores.total);
  for (guint f = 0; f < v->distinct->len; f++)
    v->scores.families[f]
        = (LsFamilyScore) { .family = g_ptr_array_index (v->distinct, f), .score = scores[f] };
}

static void
score_baseline (LsValidationRun *v, LsBaseline baseline)
{
  guint n = v->chosen->len;
  g_autofree LsScoreRow *rows = g_memdup2 (v->rows, n * sizeof *rows);
  g_autofree LsScore *scores = g_new (LsScore, v->distinct->len);
  for (guint i = 0; i < n; i++)
    rows[i].predicted_s = rows[i].baseline_s[baseline];
  score_rows (v, rows, scores, &v->scores.total_baseline[baseline]);
  for (guint f = 0; f < v->distinct->len; f++)
    v->scores.families[f].baseline[baseline] = scores[f];
}

static void
score_ablations (LsValidationRun *v)
{
  v->scores.n_ablations = v->n_variants - 1;
  v->scores.ablations = g_new (LsAblationScore, v->scores.n_ablations);
  for (guint a = 0; a < v->scores.n_ablations; a++) {
    LsAblationScore *score = &v->scores.ablations[a];
    *score = (LsAblationScore) { ls_ablations[a].key, ls_ablations[a].label };
    score->families = g_new (LsScore, v->distinct->len);
    score_rows (v, &v->rows[(a + 1) * v->chosen->len], score->families, &score->total);
  }
}

/* Sizes in the place of times. */
static void
score_memory (LsValidationRun *v)
{
  g_autofree LsScoreRow *rows = g_new (LsScoreRow, v->chosen->len);
  guint n = 0;
  for (guint i = 0; i < v->chosen->len; i++)
    if (v->rows[i].measured_gib > 0)
      rows[n++]
          = (LsScoreRow) { .measured_s = v->rows[i].measured_gib, .predicted_s = v->rows[i].predicted_gib };
  ls_score (rows, n, &v->scores.memory);
}

/* Of the intervals of the rows (job/job_interval.h), each without what is known of its own source. */
static void
score_intervals (LsValidationRun *v)
{
  v->scores.softwares = g_array_new (FALSE, TRUE, sizeof (LsSoftwareScore));
  g_autofree double *widths = g_new (double, v->chosen->len);
  for (guint i = 0; i < v->chosen->len; i++) {
    guint first = 0, n = 0, n_inside = 0;
    while (v->rows[first].software != v->rows[i].software || isnan (v->rows[first].low))
      if (++first > i)
        break;
    if (first != i)
      continue;
    for (guint k = i; k < v->chosen->len; k++) {
      const LsScoreRow *row = &v->rows[k];
      if (row->software != v->rows[i].software || isnan (row->low))
        continue;
      n_inside += ls_score_row_is_inside (row);
      widths[n++] = row->high / row->low;
    }
    ls_list_add (v->scores.softwares,
                 &(LsSoftwareScore) { v->rows[i].software, n, (double) n_inside / n, ls_median (widths, n) });
  }
}

static void
score (LsValidationRun *v)
{
  g_autoptr (GHashTable) seen = g_hash_table_new (g_str_hash, g_str_equal);
  for (guint i = 0; i < v->chosen->len; i++) {
    char *family = ((const LsCase *) v->chosen->pdata[i])->family;
    if (g_hash_table_add (seen, family))
      g_ptr_array_add (v->distinct, family);
  }
  v->scores.n_families = v->distinct->len;
  v->scores.families = g_new0 (LsFamilyScore, v->distinct->len);
  ls_baseline (v->rows, v->chosen->len);
  score_ours (v);
  for (LsBaseline b = 0; b < LS_N_BASELINES; b++)
    score_baseline (v, b);
  score_ablations (v);
  score_memory (v);
  score_intervals (v);
  v->refusals = ls_refusals (v->rows, v->chosen->len);

  v->scores.n_rows = v->chosen->len;
  v->scores.rows = v->rows;
  v->scores.n_refusals = v->refusals->len;
  v->scores.refusals = (const LsRefusal *) (gpointer) v->refusals->data;
  for (LsCaseNames n = 0; n < LS_N_CASE_NAMES; n++)
    v->scores.names[n] = (gpointer) g_ptr_array_free (
        ls_job_cases_names (n == LS_CASES_IGNORED ? v->cases : v->chosen, n), FALSE);
  v->scores.cases = v->chosen;
  v->scores.rest = ls_job_cases_rest (v->chosen, "--json");
}

/* What decides on the result, as one would type it. */
static char *
command_of (const LsValidationRun *v, const LsValidateSpec *spec)
{
  GString *text = g_string_new ("lockstep validate ");
  g_string_append (text, v->file);
  if (spec->split)
    g_string_append_printf (text, " --split %s", spec->split);
  if (spec->only)
    g_string_append_printf (text, " --only '%s'", spec->only);
  for (guint k = 0; v->scores.assumed && v->scores.assumed[k]; k++)
    g_string_append_printf (text, " --assume %s", v->scores.assumed[k]);
  return g_string_free (text, FALSE);
}

LsValidationRun *
ls_validate (const LsValidateSpec *spec, GError **error)
{
  g_autoptr (LsValidationRun) v = g_new0 (LsValidationRun, 1);
  v->chosen = g_ptr_array_new ();
  v->hardware = ls_named_hardware_new ();
  v->distinct = g_ptr_array_new ();
  v->job = spec->job;
  v->n_variants = spec->ablate ? 1 + LS_N_ABLATIONS : 1;
  g_autoptr (GRegex) only = spec->only ? g_regex_new (spec->only, G_REGEX_OPTIMIZE, 0, NULL) : NULL;
  if (spec->only && !only)
    return ls_fail_null (error, LS_ERROR_USAGE, "--only: expected a regular expression; got \"%s\"",
                         spec->only);
  if (!read_cases (v, spec, error) || !choose (v, spec, only, error))
    return NULL;
  v->options = ls_job_spec_options (v->job);
  v->options.no_spans = v->options.steady = true;
  v->scores.assumed = (gpointer) g_strdupv ((char **) spec->assume);
  if (!assume (v, error))
    return NULL;
  load_hardware (v);
  v->command = command_of (v, spec);
  begin_rows (v);
  if (!run_cases (v, spec, error))
    return NULL;
  score (v);
  if (spec->with_coverage)
    v->scores.coverage = ls_coverage_new (v->rows, v->chosen->len);
  v->job = NULL;
  return g_steal_pointer (&v);
}

const LsScores *
ls_validation_run_scores (const LsValidationRun *v)
{
  return &v->scores;
}

char *
ls_validation_run_residuals (const LsValidationRun *v, const char *name, const char *version)
{
  g_autoptr (LsResiduals) residuals = ls_residuals_of_rows (v->rows, v->chosen->len);
  g_autoptr (LsCoverage) coverage = ls_coverage_new (v->rows, v->chosen->len);
  g_autofree char *command = g_strdup_printf ("%s --residuals %s.json", v->command, name);
  const LsResidualProvenance provenance = {
    .command = command,
    .version = version,
    .cases = v->file,
    .sha256 = v->sha256,
    .n_rows = v->scores.total.n,
    .digest = ls_predictions_digest (v->rows, v->chosen->len),
  };
  return ls_residuals_to_json (residuals, name, &provenance, coverage);
}
