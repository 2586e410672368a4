/* `lockstep validate`: measured training runs, simulated. */
#include <math.h>

#include "api/answer.h"
#include "api/commands.h"
#include "api/job_answer.h"
#include "api/request.h"
#include "data/measured/read_cases.h"
#include "data/text/write_file.h"
#include "job/job_cases.h"
#include "show/fits/write_fits.h"
#include "show/plot/plots.h"
#include "validate/validate.h"

static const char *const of_coverage[] = { "coverage", "min-coverage", "max-width", NULL };

/* --- what it prints and writes -------------------------------------------------------------------- */

LS_ANSWER_FORM (to_text, ls_scores_to_text (ls_validation_run_scores (data)))
LS_ANSWER_FORM (to_json, ls_scores_to_json (ls_validation_run_scores (data)))
LS_ANSWER_FREE (run_free, ls_validation_run_free)

static const LsAnswerForms forms = { .text = to_text, .json = to_json, .free = run_free };

static gboolean
write_residuals (gconstpointer run, const char *path, GError **error)
{
  g_autofree char *name = ls_output_name (path, error);
  if (!name)
    return FALSE;
  g_autofree char *text = ls_validation_run_residuals (run, name, ls_version ());
  return ls_write_text (path, text, error);
}

static gboolean
write_markdown (gconstpointer run, const char *path, GError **error)
{
  g_autofree char *text = ls_scores_to_markdown (ls_validation_run_scores (run));
  return ls_write_text (path, text, error);
}

static gboolean
draw (gconstpointer run, const char *path, GError **error)
{
  return ls_plot_scores (ls_validation_run_scores (run), path, error);
}

/* --- what may fail though there is a result ------------------------------------------------------- */

typedef struct {
  double max_mape, min_coverage, max_width; /* percent */
  gboolean has_coverage;                    /* one of the last two was asked for */
} Limits;

static gboolean
read_limits (const LsRequest *r, Limits *limits, GError **error)
{
  static const char *const of_limits[] = { "min-coverage", "max-width", NULL };
  *limits = (Limits) { INFINITY, 0, INFINITY, ls_request_has_any (r, of_limits) };
  return ls_request_percent (r, "max-mape", G_MAXDOUBLE, &limits->max_mape, error)
      && ls_request_percent (r, "min-coverage", 100, &limits->min_coverage, error)
      && ls_request_percent (r, "max-width", G_MAXDOUBLE, &limits->max_width, error);
}

/* A figure that is not known is outside. */
static GError *
outside_coverage (const LsCoverage *c, const Limits *limits)
{
  if (100 * c->each.covered >= limits->min_coverage && 100 * (c->each.width - 1) <= limits->max_width)
    return NULL;
  if (c->each.n == 0)
    return g_error_new (LS_ERROR, LS_ERROR_TOLERANCE, "no row has an interval by the other sources");
  if (100 * c->each.covered < limits->min_coverage)
    return g_error_new (LS_ERROR, LS_ERROR_TOLERANCE,
                        "intervals hold %.2f %% of each source by the others, less than %.2f %%",
                        100 * c->each.covered, limits->min_coverage);
  return g_error_new (LS_ERROR, LS_ERROR_TOLERANCE,
                      "median width of intervals, %.2f %% from low to high, exceeds %.2f %%",
                      100 * (c->each.width - 1), limits->max_width);
}

static void
check_limits (const LsScores *scores, const Limits *limits, LsAnswer *a)
{
  if (scores->total.mape_pct > limits->max_mape)
    ls_answer_fail_with (a, LS_ERROR_TOLERANCE, "mean absolute error %.2f %% exceeds %.2f %%",
                         scores->total.mape_pct, limits->max_mape);
  GError *error = limits->has_coverage ? outside_coverage (scores->coverage, limits) : NULL;
  if (error)
    ls_answer_fail (a, error);
}

/* A table without a result says nothing. */
static gboolean
check_simulated (const LsScores *scores, GError **error)
{
  if (scores->total.n > 0)
    return TRUE;
  g_autofree char *reasons = ls_scores_refusals (scores);
  return ls_fail (error, LS_ERROR_CONFLICT, "no case could be simulated, %u refused:\n%s",
                  scores->total.refused, g_strchomp (reasons));
}

/* --- the command ---------------------------------------------------------------------------------- */

static LsValidationRun *
validate (const LsRequest *r, GError **error)
{
  g_autofree const char **paths = ls_request_paths (r, "cases", "from"),
                        **assume = ls_request_texts (r, "assume");
  LsJobSpec job;
  LsValidateSpec spec = {
    .paths = paths,
    .cluster = ls_request_text (r, "cluster"),
    .split = ls_request_text (r, "split"),
    .only = ls_request_text (r, "only"),
    .job = &job,
    .assume = assume,
    .ablate = ls_request_is_on (r, "ablate"),
    .with_coverage = ls_request_has_any (r, of_coverage),
    .progress = ls_request_progress (r),
    .team = ls_request_team (r),
  };
  bool ok = ls_request_threads (r, &spec.n_threads, error) && ls_request_job (r, &job, error)
      && ls_request_set_own (r, ls_request_set_knob, &job, error);
  LsValidationRun *made = ok ? ls_validate (&spec, error) : NULL;
  ls_job_spec_clear (&job);
  return made;
}

gboolean
command_validate (const LsRequest *r, LsAnswer *a, GError **error)
{
  Limits limits;
  if (ls_request_is_on (r, "template")) {
    ls_answer_take_text (a, ls_template_text ("runs"));
    return TRUE;
  }
  if (!read_limits (r, &limits, error))
    return FALSE;
  LsValidationRun *made = validate (r, error);
  if (!made)
    return FALSE;
  ls_answer_take (a, made, &forms);
  if (!check_simulated (ls_validation_run_scores (made), error))
    return FALSE;
  if (!ls_request_leads (r))
    return TRUE;
  g_autoptr (GPtrArray) notes = ls_job_cases_notes (ls_validation_run_scores (made)->cases);
  ls_answer_note_all (a, notes);
  ls_job_tell_idle (r, LS_IDLE_OF_MEMORY, a);
  ls_answer_write (a, r, "markdown", write_markdown);
  ls_answer_write (a, r, "chart", draw);
  ls_answer_write (a, r, "residuals", write_residuals);
  check_limits (ls_validation_run_scores (made), &limits, a);
  return TRUE;
}
