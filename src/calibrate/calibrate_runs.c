#include "calibrate/calibrate_runs.h"

#include <math.h>
#include <string.h>

#include "analysis/interval.h"
#include "base/diag.h"
#include "base/order.h"
#include "base/parallel.h"
#include "calibrate/fit_report.h"
#include "calibrate/runs_fit.h"
#include "data/machines/machines.h"
#include "job/hardware.h"
#include "job/job_cases.h"
#include "job/job_interval.h"
#include "job/softwares.h"

/* ---- what a fit should not be asked to explain ---- */

#define OTHER_UNITS   20.0
#define OUTLIER       1.5
#define N_DEVIATIONS  5
#define CONTRADICTION 1.05

static double
median_of (const double *values, guint n)
{
  g_autofree double *copy = g_new (double, MAX (n, 1));
  memcpy (copy, values, n * sizeof *values);
  return ls_median (copy, n);
}

static void
note_outliers (const LsCheckedRun *runs, const double *off, guint n, double median, GPtrArray *notes)
{
  g_autofree double *apart = g_new (double, n);
  for (guint i = 0; i < n; i++)
    apart[i] = fabs (off[i] - median);
  double limit = fmax (log (OUTLIER), N_DEVIATIONS * median_of (apart, n));
  for (guint i = 0; i < n; i++)
    if (apart[i] > limit)
      ls_note (notes,
               "%s is far from the others: measured is %.3g times what is "
               "predicted, in the median of all %.3g",
               runs[i].id, exp (off[i]), exp (median));
}

/* Of each group that is predicted alike the slowest run, against the fastest. */
static void
note_contradictions (const LsCheckedRun *runs, guint n, GPtrArray *notes)
{
  for (guint i = 0; i < n; i++) {
    guint slow = i, fast = i;
    gboolean is_first = TRUE;
    for (guint j = 0; j < n; j++) {
      if (runs[j].predicted_s != runs[i].predicted_s)
        continue;
      is_first = is_first && j >= i;
      slow = runs[j].measured_s > runs[slow].measured_s ? j : slow;
      fast = runs[j].measured_s < runs[fast].measured_s ? j : fast;
    }
    double ratio = runs[slow].measured_s / runs[fast].measured_s;
    if (is_first && ratio > CONTRADICTION)
      ls_note (notes,
               "%s and %s are one job to the simulator, and measured %.3g times "
               "apart: nothing that is fitted explains that",
               runs[fast].id, runs[slow].id, ratio);
  }
}

gboolean
ls_runs_check (const char *file, const LsCheckedRun *runs, guint n, GPtrArray *notes, GError **error)
{
  g_autofree double *off = g_new (double, n);
  for (guint i = 0; i < n; i++)
    off[i] = log (runs[i].measured_s / runs[i].predicted_s);
  double median = median_of (off, n);
  if (fabs (median) > log (OTHER_UNITS))
    return ls_fail (error, LS_ERROR_INPUT,
                    "%s: measured times are %.3g times what is predicted, in the median\n"
                    "note: iteration_s is in seconds",
                    file, exp (median));
  note_outliers (runs, off, n, median, notes);
  note_contradictions (runs, n, notes);
  return TRUE;
}

/* ---- a fit ---- */

#define N_MIN_ROWS 2

/* Where each parameter lives, and its range (calibrate_runs.h). */
static const struct {
  LsRunsParameter p;
  size_t offset; /* in LsFitted */
  bool is_time;  /* us on an x86 server, else a factor */
} parameters[] = {
  { { "compute", 1, 0.5, 1.2 }, offsetof (LsFitted, compute), false },
  { { "overlap", 1, 0.25, 4 }, offsetof (LsFitted, overlap), false },
  { { "intra_node", 1, 0.4, 1.25 }, offsetof (LsFitted, intra_node), false },
  { { "inter_node", 1, 0.4, 1.25 }, offsetof (LsFitted, inter_node), false },
  { { "host_launch", 10, 2, 50 }, offsetof (LsFitted, host_launch), true },
};
#define N_PARAMETERS G_N_ELEMENTS (parameters)

/* Of a run as the cluster's own files predict it. */
typedef struct {
  double mfu;
  LsTraits traits;
} Facts;

struct LsCalibrateRuns {
  GPtrArray *cases; /* LsCase: those that can be simulated */
  char *name;       /* of the cluster, as it was asked for */
  LsHardware *hardware;
  LsJobSpec job; /* the defaults */
  LsRunOptions options;
  guint n_threads;
  LsProgress progress;
  guint64 n_simulated, n_to_simulate; /* the second at most */
  double *log_start;                  /* ln of the steps of the cluster as it is */
  Facts *facts;                       /* of each case, likewise */
  LsFittedReport report;
};

void
ls_calibrate_runs_free (LsCalibrateRuns *run)
{
  if (!run)
    return;
  g_clear_pointer (&run->cases, g_ptr_array_unref);
  g_ptr_array_unref (run->report.notes);
  g_free (run->name);
  ls_hardware_free (run->hardware);
  g_free (run->report.cluster);
  g_free (run->report.file);
  g_free (run->report.sha256);
  g_array_unref (run->report.lines);
  g_array_unref (run->report.rows);
  g_free (run->report.rest);
  g_array_unref (run->report.singular);
  g_free (run->report.left_out.file);
  g_free (run->report.left_out.architecture);
  g_clear_pointer (&run->report.left_out.traits, g_array_unref); /* which frees its words */
  g_free (run->log_start);
  g_free (run->facts);
  g_free (run);
}

static LsCalibrateRuns *
run_alloc (const LsCalibrateRunsSpec *spec)
{
  LsCalibrateRuns *run = g_new0 (LsCalibrateRuns, 1);
  run->report.notes = g_ptr_array_new_with_free_func (g_free);
  run->n_threads = spec->n_threads;
  run->progress = spec->progress;
  run->report.file = ls_job_cases_name (spec->paths);
  run->report.version = spec->version;
  run->report.lines = g_array_new (FALSE, FALSE, sizeof (LsFittedLine));
  run->report.rows = g_array_new (FALSE, FALSE, sizeof (LsFittedRow));
  run->report.singular = g_array_new (FALSE, FALSE, sizeof (double));
  ls_job_spec_init (&run->job);
  run->options = run->job.options;
  run->options.no_spans = run->options.steady = true;
  return run;
}

/* ---- files ---- */

static gboolean
load_cases (LsCalibrateRuns *run, const LsCalibrateRunsSpec *spec, GError **error)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  run->cases = ls_job_cases_load (spec->paths, spec->cluster, false, &run->report.sha256, diags);
  if (!run->cases)
    return ls_diag_list_to_error (diags, error);
  g_autoptr (GPtrArray) ignored = ls_job_cases_names (run->cases, LS_CASES_IGNORED);
  g_autofree char *names = g_strjoinv (", ", (char **) ignored->pdata);
  if (*names)
    ls_note (run->report.notes, "columns that nothing reads: %s", names);
  return TRUE;
}

static gboolean
choose_cluster (LsCalibrateRuns *run, const LsCalibrateRunsSpec *spec, GError **error)
{
  const LsCase *first = g_ptr_array_index (run->cases, 0);
  for (guint i = 1; i < run->cases->len && !spec->cluster; i++) {
    const LsCase *c = g_ptr_array_index (run->cases, i);
    if (strcmp (c->cluster, first->cluster) == 0)
      continue;
    return ls_fail (error, LS_ERROR_CONFLICT,
                    "%s: runs on %s (%s) and on %s (%s): a fit is of one cluster\n"
                    "note: give each its own file, or --cluster if they are one",
                    run->report.file, first->cluster, first->id, c->cluster, c->id);
  }
  run->name = g_strdup (spec->cluster ? spec->cluster : first->cluster);
  return TRUE;
}

static gboolean
load_cluster (LsCalibrateRuns *run, GError **error)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  run->hardware = ls_hardware_load (run->name, diags);
  if (!run->hardware)
    return ls_diag_list_to_error (diags, error);
  run->report.cluster = g_strdup (run->hardware->spec.name);
  if (!ls_hardware_check_alike (&run->hardware->spec, "a fit to runs", error))
    return FALSE;
  for (guint i = 0; i < run->cases->len; i++) {
    LsCase *c = run->cases->pdata[i];
    ls_softwares_settle (NULL, run->hardware, c->said, &c->strategy);
  }
  const LsFitted *f = &run->hardware->spec.fitted;
  if (f->compute + f->overlap + f->intra_node + f->inter_node > 0 || f->host_launch > 0)
    return ls_fail (error, LS_ERROR_CONFLICT,
                    "%s was fitted already\nnote: fit the cluster that it was made of, with all runs at once",
                    run->name);
  return TRUE;
}

/* ---- predictions ---- */

typedef struct {
  LsCalibrateRuns *run;
  const LsHardware *hardware;
  double *log_s; /* NaN: it cannot be simulated */
  char **why;    /* NULL: nobody asks           */
  Facts *facts;  /* likewise                    */
} Batch;

static void
predict_row (guint i, gpointer data)
{
  Batch *b = data;
  LsCase *c = g_ptr_array_index (b->run->cases, i);
  g_autoptr (GError) error = NULL;
  g_autoptr (LsJobResult) r = b->why
      ? ls_job_case_run (c, b->hardware, &b->run->job, &error)
      : ls_job_run_prepared (ls_job_prepare (&c->model, b->hardware, 0, &c->strategy, &error), b->hardware,
                             &b->run->options, NULL, &error);
  b->log_s[i] = r ? log (ls_job_result_step_time_s (r)) : NAN;
  if (!r && b->why)
    b->why[i] = g_strdup (error->message);
  if (r && b->facts) {
    b->facts[i].mfu = ls_job_result_mfu (r, false);
    ls_job_traits (r, &b->hardware->spec, &b->facts[i].traits);
  }
}

static void
count_row (guint64 n_done G_GNUC_UNUSED, guint64 n_to_do G_GNUC_UNUSED, gpointer data)
{
  LsCalibrateRuns *run = data;
  ls_progress_tell (&run->progress, ++run->n_simulated, run->n_to_simulate);
}

/* Whether all could be simulated. */
static bool
predict_rows (Batch *b)
{
  const LsProgress progress = { count_row, b->run };
  ls_parallel (b->run->cases->len, b->run->n_threads, predict_row, b, &progress);
  bool ok = true;
  for (guint i = 0; i < b->run->cases->len; i++)
    ok = ok && !isnan (b->log_s[i]);
  return ok;
}

static LsFitted
fitted_of (const double *values, double call_time)
{
  LsFitted f = { 0 };
  for (guint j = 0; j < N_PARAMETERS; j++) {
    char *at = (char *) &f + parameters[j].offset;
    if (parameters[j].is_time)
      *(LsTime *) at = (LsTime) llround (values[j] * call_time * (double) LS_US);
    else
      *(double *) at = values[j];
  }
  return f;
}

static bool
predict (void *context, const double *values, double *ret_log)
{
  LsCalibrateRuns *run = context;
  const LsFitted f = fitted_of (values, ls_cluster_call_time (&run->hardware->spec));
  LsHardware *hardware = ls_fitted_copy_new (run->hardware, &f);
  Batch b = { .run = run, .hardware = hardware, .log_s = ret_log };
  bool ok = predict_rows (&b);
  ls_fitted_copy_free (hardware);
  return ok;
}

static gboolean
check_runs (LsCalibrateRuns *run, const double *log_s, GError **error)
{
  guint n = run->cases->len;
  g_autofree LsCheckedRun *list = g_new (LsCheckedRun, n);
  for (guint i = 0; i < n; i++) {
    const LsCase *c = g_ptr_array_index (run->cases, i);
    list[i] = (LsCheckedRun) { c->id, c->measured_s, exp (log_s[i]) };
  }
  return ls_runs_check (run->report.file, list, n, run->report.notes, error);
}

/* Rows that cannot be simulated are not there from here on. */
static gboolean
drop_refused (LsCalibrateRuns *run, GError **error)
{
  guint n = run->cases->len;
  double *log_s = run->log_start = g_new (double, n);
  g_autofree char **why = g_new0 (char *, n);
  run->facts = g_new0 (Facts, n);
  Batch b = { .run = run, .hardware = run->hardware, .log_s = log_s, .why = why, .facts = run->facts };
  run->n_to_simulate = n + n * ls_runs_most_simulations (N_PARAMETERS);
  predict_rows (&b);
  g_ptr_array_extend_and_steal (run->report.notes, ls_job_cases_notes (run->cases));
  for (guint i = n; i-- > 0;) {
    if (!why[i])
      continue;
    const LsCase *c = g_ptr_array_index (run->cases, i);
    g_autofree char *line = ls_first_line (why[i]);
    g_ptr_array_insert (run->report.notes, 0, g_strdup_printf ("%s is left out: %s", c->id, line));
    g_ptr_array_remove_index (run->cases, i);
    memmove (log_s + i, log_s + i + 1, (n - i - 1) * sizeof *log_s);
    memmove (run->facts + i, run->facts + i + 1, (n - i - 1) * sizeof *run->facts);
    g_free (why[i]);
  }
  run->n_to_simulate = n + run->cases->len * ls_runs_most_simulations (N_PARAMETERS);
  if (run->cases->len >= N_MIN_ROWS)
    return check_runs (run, log_s, error);
  const char *reason = run->cases->len < n ? g_ptr_array_index (run->report.notes, 0) : NULL;
  g_autofree char *too_few = g_strdup_printf ("one run cannot tell a slow %s from a slow network",
                                              ls_cluster_chip_word (&run->hardware->spec, 1));
  return ls_fail (error, LS_ERROR_INPUT,
                  "%s: expected %d runs or more that can be simulated; got %u\nnote: %s", run->report.file,
                  N_MIN_ROWS, run->cases->len, reason ? reason : too_few);
}

/* ---- report ---- */

static const char *const reasons[]
    = { [LS_FITTED] = NULL,
        [LS_KEPT_UNSEEN] = "no run depends on it",
        [LS_KEPT_FEW_ROWS] = "too few runs: two for each that is fitted",
        [LS_KEPT_UNCERTAIN] = "these runs cannot tell it, its error exceeds half of its range",
        [LS_KEPT_AGREES] = "its standard error exceeds its distance from what it was" };

static double
off (double log_ratio)
{
  return fabs (exp (log_ratio) - 1);
}

/* What the runs say of the next job on the cluster: how far off each was that was left out, and what they
 * have. */
static void
sum_up (LsCalibrateRuns *run, const LsRunsFit *fit, const guint *jobs)
{
  guint n = run->cases->len;
  LsResidualGroup group = { .architecture = (char *) ls_hardware_architecture (run->hardware) };
  g_autofree double *errors = g_new (double, n);
  double lowest_mfu = INFINITY;
  for (guint i = 0; i < n; i++) {
    ls_residual_group_add_traits (&group, &run->facts[i].traits);
    errors[i] = -fit->left_out[i];
    /* MFU goes as 1 / step */
    lowest_mfu = fmin (lowest_mfu, run->facts[i].mfu * exp (fit->before[i] - fit->after[i]));
  }
  run->report.left_out = (LsFittedRuns) {
    .file = g_path_get_basename (run->report.file),
    .architecture = g_strdup (group.architecture),
    .traits = group.traits,
    .lowest_mfu = lowest_mfu,
    .gpus = group.figures[LS_ASPECT_GPUS - LS_N_WORD_ASPECTS],
    .tp = group.figures[LS_ASPECT_TENSOR - LS_N_WORD_ASPECTS],
    .params = group.figures[LS_ASPECT_PARAMS - LS_N_WORD_ASPECTS],
    .fabric = group.figures[LS_ASPECT_FABRIC - LS_N_WORD_ASPECTS],
  };
  ls_own_runs_set_range (errors, jobs, n, &run->report.left_out);
}

static void
fill_lines (LsFittedReport *r, const LsRunsFit *fit, double call_time)
{
  for (guint j = 0; j < N_PARAMETERS; j++) {
    const LsRunsParameter *p = &parameters[j].p;
    double times = parameters[j].is_time ? call_time : 1;
    const LsFittedLine line = { .name = p->name,
                                .unit = parameters[j].is_time ? "us" : "",
                                .is_fitted = fit->state[j] == LS_FITTED,
                                .at_bound = fit->at_bound[j],
                                .start = times * p->start,
                                .value = times * fit->value[j],
                                .lo = times * p->lo,
                                .hi = times * p->hi,
                                .error = fit->error[j],
                                .sensitivity = fit->sensitivity[j],
                                .why = reasons[fit->state[j]] };
    g_array_append_val (r->lines, line);
    g_array_append_val (r->singular, fit->singular[j]);
  }
  r->condition = fit->condition;
}

static void
fill_report (LsCalibrateRuns *run, const LsRunsFit *fit, const guint *jobs)
{
  LsFittedReport *r = &run->report;
  fill_lines (r, fit, ls_cluster_call_time (&run->hardware->spec));
  guint n = run->cases->len;
  r->rest = ls_job_cases_rest (run->cases, "lockstep validate --json");
  for (guint i = 0; i < n; i++) {
    const LsCase *c = g_ptr_array_index (run->cases, i);
    const LsFittedRow row = { .id = c->id,
                              .measured_s = c->measured_s,
                              .before_s = c->measured_s * exp (fit->before[i]),
                              .after_s = fit->n_fitted > 0 ? c->measured_s * exp (fit->after[i]) : NAN,
                              .left_out_s = c->measured_s * exp (fit->left_out[i]) };
    g_array_append_val (r->rows, row);
    r->error.before += off (fit->before[i]) / n;
    r->error.after += off (fit->after[i]) / n;
    r->error.left_out += off (fit->left_out[i]) / n;
  }
  if (fit->n_fitted == 0)
    r->error.after = NAN;
  else
    sum_up (run, fit, jobs);
}

static gboolean
fit_rows (LsCalibrateRuns *run, GError **error)
{
  guint n = run->cases->len;
  g_autofree double *log_measured = g_new (double, n);
  g_autofree guint *jobs = g_new (guint, n);
  LsRunsParameter list[N_PARAMETERS];
  for (guint i = 0; i < n; i++) {
    log_measured[i] = log (((const LsCase *) g_ptr_array_index (run->cases, i))->measured_s);
    jobs[i] = 0; /* the first run that the cluster as it is predicts alike: they are of one job */
    while (run->log_start[jobs[i]] < run->log_start[i] || run->log_start[jobs[i]] > run->log_start[i])
      jobs[i]++;
  }
  for (guint j = 0; j < N_PARAMETERS; j++)
    list[j] = parameters[j].p;
  const LsRunsProblem problem = { list, N_PARAMETERS, n, log_measured, run->log_start, jobs, predict, run };
  LsRunsFit fit;
  if (!ls_runs_fit (&problem, &fit))
    return ls_fail (error, LS_ERROR_FAILED,
                    "%s: a run cannot be simulated with other figures than the cluster's own",
                    run->report.file);
  fill_report (run, &fit, jobs);
  ls_runs_fit_clear (&fit);
  return TRUE;
}

LsCalibrateRuns *
ls_calibrate_runs_new (const LsCalibrateRunsSpec *spec, GError **error)
{
  g_autoptr (LsCalibrateRuns) run = run_alloc (spec);
  if (!load_cases (run, spec, error) || !choose_cluster (run, spec, error) || !load_cluster (run, error)
      || !drop_refused (run, error) || !fit_rows (run, error))
    return NULL;
  return g_steal_pointer (&run);
}

const LsFittedReport *
ls_calibrate_runs_report (const LsCalibrateRuns *run)
{
  return &run->report;
}

char *
ls_calibrate_runs_json (const LsCalibrateRuns *run, const char *name, GError **error)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  if (isnan (run->report.error.after))
    return ls_fail_null (error, LS_ERROR_FAILED, "%s: nothing was fitted, so there is nothing to write",
                         name);
  g_autoptr (LsJsonDoc) base = ls_cluster_open (run->name, diags);
  if (base)
    return ls_fitted_to_json (base, &run->report, name);
  ls_diag_list_to_error (diags, error);
  return NULL;
}
